//go:build purego

package lpctrie

import (
	"encoding/binary"
	"math/bits"
)

// entryOf returns the number of the entry of an address, of which word is the
// number of its word of bits.
func (s *index) entryOf(word uint, key uint32) uint32 {
	return s.ends[word] - uint32(bits.OnesCount64(s.bits[word]>>(key>>8&63)))
}

// ahead is 0; see entry_unsafe.go.
func (s *index) ahead(hint, uint32) uint32 { return s.zero }

// entry returns the code at a position.
func (s *index) entry(at uint32) uint32 {
	return load(s.entries, uint(at)*uint(s.width)) & s.mask
}

// load reads four bytes. With three bounds the compiler need not care for a
// slice without capacity.
func load(b []byte, at uint) uint32 { return binary.LittleEndian.Uint32(b[at : at+4 : at+4]) }
