//go:build !purego

package radix6

import (
	"net/netip"
	"unsafe"
)

// An address in the form of a netip.Addr is in two words of the processor's
// already, which its methods only give out as bytes, by way of memory. That
// takes time of its own and keeps the lookups of a loop from overlapping.

// addrWords returns the words of an IPv6 address.
//
// It is called only when plainWords has found that they are the first 16 bytes
// of a netip.Addr; that it has as many is checked when this is compiled. Both
// words are integers, for which every bit pattern is valid, aligned as those
// of the Addr are; a is a copy that lives until they are read.
func addrWords(a netip.Addr) (hi, lo uint64) {
	if unsafe.Sizeof(a) < 16 {
		return 0, 0
	}
	w := (*[2]uint64)(unsafe.Pointer(&a))
	return w[0], w[1]
}

// plainWords reports whether a netip.Addr begins with the two words of its
// address, most significant first, which is nowhere promised. It looks at some
// addresses.
func plainWords() bool {
	if unsafe.Sizeof(netip.Addr{}) < 16 {
		return false
	}
	b := [16]byte{0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10, 1, 2, 3, 4, 5, 6, 7, 8}
	for i := range b {
		a := netip.AddrFrom16(b)
		for _, a := range [...]netip.Addr{a, a.WithZone("0")} {
			hi, lo := addrWords(a)
			if h, l, _ := addrKey(a); h != hi || l != lo {
				return false
			}
		}
		b[i] ^= 0xff
	}
	return true
}
