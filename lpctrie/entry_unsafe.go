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
//   - word is 4*t+b, where t is an element of top and b below 4. Every element
//     of top is below the number of nodes, and len(bits) and len(ends) are 4
//     times that;
//   - what entryOf returns is at least 0 and below the number of entries for
//     every bit of every word;
//   - a hint's bytes are in the slice of entries, or in what it has room for:
//     the third octet's share of the way to the last entry is no more than that
//     way, and makeHints leaves a hintGap behind it;
//   - a number of an entry comes from entryOf, or is one of the 2^24 of the fast
//     layout, which has at least as many, or comes from findDeep, which takes it
//     from a slot of the hash. The slice of entries is 3 bytes longer than they
//     are, so that 4 bytes can be read everywhere.
//
// Compile makes such arrays (a test runs check over them) and Open refuses
// others by check. Nobody writes to them afterwards, even to data that was given to
// Open: all but the entries is copied, and no entry is used as a number of
// anything without a check of bounds.

// entryOf returns the number of the entry of an address, of which word is the
// number of its word of bits.
func (s *index) entryOf(word uint, key uint32) uint32 {
	w := *(*uint64)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.bits)), word*8))
	end := *(*uint32)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.ends)), word*4))
	return end - uint32(bits.OnesCount64(w>>(key>>8&63)))
}

// ahead is 0. It reads two bytes, a cache line apart, on both sides of where the
// address would have its entry if those of its /16 were spread evenly. In nine of
// ten cases one of the two lines is the right one, which is on its way then while
// the bits are, and does not have to wait for them.
func (s *index) ahead(h hint, key uint32) uint32 {
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.entries)), h.near(key))
	return uint32(*(*byte)(p)|*(*byte)(unsafe.Add(p, hintGap))) & s.zero
}

// entry returns the code at a position.
func (s *index) entry(at uint32) uint32 {
	p := unsafe.Add(unsafe.Pointer(unsafe.SliceData(s.entries)), uint(at)*uint(s.width))
	return binary.LittleEndian.Uint32((*[4]byte)(p)[:]) & s.mask
}
