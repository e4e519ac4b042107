//go:build gc && go1.26 && !go1.27 && !purego

package xfrm

import (
	"net/netip"
	"unsafe"
)

// The methods of a netip.Addr give out its octets by way of memory, in which
// they are written by the word and read as a whole, for which processors have
// to wait, or with its zone, which costs as much again. In this version of Go,
// an Addr begins with the two words of the address, most significant first, of
// which an IPv4 address is the last 32 bits, as IPv6 maps it; TestPutAddr holds
// this against the methods. With any other version, words_pure.go is built.

// putWhole is putAddr for memory that was not cleared.
func putWhole(p *[16]byte, a *netip.Addr) {
	w := (*[2]uint64)(unsafe.Pointer(a))
	if a.Is4() {
		be.PutUint32(p[:], uint32(w[1]))
		ne.PutUint32(p[4:], 0)
		ne.PutUint64(p[8:], 0)
		return
	}
	be.PutUint64(p[:], w[0])
	be.PutUint64(p[8:], w[1])
}

// getWhole stores an IPv6 address, as the method [netip.AddrFrom16] makes it. What
// follows the words, and says that it is one without a zone, is written only if
// it changes.
func getWhole(a *netip.Addr, p *[16]byte) {
	if *formOf(a) != *formOf(&unspecified6) {
		*a = unspecified6
	}
	w := (*[2]uint64)(unsafe.Pointer(a))
	w[0], w[1] = be.Uint64(p[:]), be.Uint64(p[8:])
}

var unspecified4, unspecified6 = netip.IPv4Unspecified(), netip.IPv6Unspecified()

// formOf is where the pointer that follows the words is. It is compared only.
func formOf(a *netip.Addr) *uintptr {
	return (*uintptr)(unsafe.Add(unsafe.Pointer(a), unsafe.Sizeof([2]uint64{})))
}

// If this does not compile, an Addr has become smaller than two words.
var _ [unsafe.Sizeof(netip.Addr{}) - unsafe.Sizeof([2]uint64{})]byte
