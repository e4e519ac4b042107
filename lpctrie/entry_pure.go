//go:build purego

package lpctrie

import "math/bits"

// entryOf returns the number of the entry of an address, of which word is the
// number of its word of bits.
func (s *index) entryOf(word uint, key uint32) uint32 {
	return s.ends[word] - uint32(bits.OnesCount64(s.bits[word]>>(key>>8&63)))
}

// entry returns the code at a position.
func (s *index) entry(at uint32) uint32 {
	return load(s.entries, uint(at)*uint(s.width)) & s.mask
}
