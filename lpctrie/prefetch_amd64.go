//go:build !purego

package lpctrie

import "unsafe"

// prefetchWords asks for the words of bits, and their ends, whose numbers are given.
// A prefetch reads nothing, whatever the address.
func (s *index) prefetchWords(numbers []uint32) {
	prefetchWords(unsafe.Pointer(unsafe.SliceData(s.bits)), unsafe.Pointer(unsafe.SliceData(s.ends)), numbers)
}

// prefetchEntries asks for the entries whose numbers are given.
func (s *index) prefetchEntries(numbers []uint32) {
	prefetchItems(unsafe.Pointer(unsafe.SliceData(s.entries)), uint64(s.width), numbers)
}

// prefetchWords asks for words[n], of 8 bytes, and ends[n], of 4, for each n.
//
//go:noescape
func prefetchWords(words, ends unsafe.Pointer, numbers []uint32)

// prefetchItems asks for items[n], of size bytes, for each n.
//
//go:noescape
func prefetchItems(items unsafe.Pointer, size uint64, numbers []uint32)
