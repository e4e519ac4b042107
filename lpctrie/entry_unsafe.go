//go:build !purego

package lpctrie

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// The functions of entry_pure.go without checks of bounds. All numbers are in
// bounds because
//
//   - word is 4*n+b, where n is the number of a node in top and b below 4. Every
//     such number is below that of the nodes, and len(bits) and len(ends) are 4
//     times that;
//   - what entryOf returns is at least 0 and below the number of entries for
//     every bit of every word, and so are a /16's first entry and those that it has
//     from there on;
//   - a number of an entry comes from entryOf, or is one of the 2^24 of the fast
//     layout, which has at least as many, or comes from findDeep, which takes it
//     from a slot of the hash. The slice of entries is 3 bytes longer than they
//     are, so that 4 bytes can be read everywhere.
//
// Compile makes such arrays (a test runs check over them) and Open refuses
// others by check. Nobody writes to them afterwards, even to data that was given to
// Open: all but the entries is copied, and no entry is used as a number of
// anything without a check of bounds.

// entryOf returns the number of the entry of an address, of which p is the place
// of the /16 and word the number of the word of bits.
func (s *index) entryOf(p place, word uint, key uint32) uint32 {
	w := *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.bits)), word*8))
	end := *(*uint8)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.ends)), word))
	return p.first + uint32(end) - uint32(bits.OnesCount64(w>>(key>>8&63)))
}

// hint is 0. It reads a byte of the entry that the address would have if those of
// its /16 were spread evenly. That is in the right cache line more often than
// not, which is on its way then while the bits are, and does not have to wait for
// them. What is read is one of the /16's entries: the third octet's share of
// their number is less than that.
func (s *index) hint(p place, key uint32) uint32 {
	at := uint(p.first) + uint(key>>8&255)*uint(p.count)>>8
	return uint32(*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.entries)), at*uint(s.width)))) & s.zero
}

// entry returns the code at a position.
func (s *index) entry(at uint32) uint32 {
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.entries)), uint(at)*uint(s.width))
	return binary.LittleEndian.Uint32((*[4]byte)(p)[:]) & s.mask
}
