//go:build !gc || !go1.26 || go1.27 || purego

package xfrm

import "net/netip"

// putWhole is putAddr for memory that was not cleared.
func putWhole(p *[16]byte, a *netip.Addr) {
	if !a.Is6() {
		*p = [16]byte{}
	}
	_, _ = a.AppendBinary(p[:0])
}

// getWhole stores an IPv6 address.
func getWhole(a *netip.Addr, p *[16]byte) { *a = netip.AddrFrom16(*p) }
