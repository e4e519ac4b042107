//go:build purego

package radix6

import "net/netip"

func addrWords(a netip.Addr) (hi, lo uint64) {
	hi, lo, _ = addrKey(a)
	return hi, lo
}

func plainWords() bool { return false }
