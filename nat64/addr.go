package nat64

import "net/netip"

// addr6 is an IPv6 address as two numbers. IPv4 addresses are uint32 inside
// the package.
type addr6 struct{ hi, lo uint64 }

func load6(b []byte) addr6 { return addr6{be64(b), be64(b[8:16])} }

func (a addr6) store(b []byte) {
	put64(b, a.hi)
	put64(b[8:16], a.lo)
}

// sum is the unfolded checksum contribution of the address.
func (a addr6) sum() uint64 {
	return a.hi>>32 + a.hi&0xffffffff + a.lo>>32 + a.lo&0xffffffff
}

func (a addr6) and(m addr6) addr6 { return addr6{a.hi & m.hi, a.lo & m.lo} }

func (a addr6) netip() netip.Addr {
	var b [16]byte
	a.store(b[:])
	return netip.AddrFrom16(b)
}

func (a addr6) multicast() bool { return a.hi>>56 == 0xff }

// neverSource reports an address that no packet comes from across a router (RFC
// 4291 sections 2.5 and 2.7): unspecified, loopback, IPv4-mapped, link-local,
// multicast.
func (a addr6) neverSource() bool {
	return a.hi == 0 && (a.lo <= 1 || a.lo>>32 == 0xffff) || a.hi>>54 == 0xfe80>>6 || a.multicast()
}

func from6(a netip.Addr) addr6 {
	b := a.As16()
	return load6(b[:])
}

func from4(a netip.Addr) uint32 {
	b := a.As4()
	return be32(b[:])
}

func addr4(v uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// mask6 and mask4 are network masks of n leading ones; n beyond the ends
// counts as the end.
func mask6(n int) addr6 {
	return addr6{mask64(n), mask64(n - 64)}
}

func mask64(n int) uint64 {
	switch {
	case n <= 0:
		return 0
	case n >= 64:
		return ^uint64(0)
	}
	return ^(^uint64(0) >> n)
}

func mask4(n int) uint32 { return uint32(mask64(n) >> 32) }

// neverSource reports an IPv4 address that no packet can come from or go to
// across a router: this network, loopback, multicast, reserved, broadcast.
func neverSource(v uint32) bool {
	b := v >> 24
	return b == 0 || b == 127 || b >= 224
}

// global reports whether an IPv4 address may be written with the well-known
// prefix: it is in none of the blocks that RFC 6890's registry (as of 2026)
// calls not globally reachable. RFC 6052 section 3.1.
func global(v uint32) bool {
	switch v >> 24 {
	case 0, 10, 127:
		return false
	case 100:
		return v>>22 != 100<<2|64>>6 // 100.64.0.0/10
	case 169:
		return v>>16 != 169<<8|254
	case 172:
		return v>>20 != 172<<4|16>>4 // 172.16.0.0/12
	case 192:
		switch v >> 8 {
		case 192 << 16: // 192.0.0.0/24, but for the two anycast addresses
			return v&0xff == 9 || v&0xff == 10
		case 192<<16 | 0<<8 | 2: // 192.0.2.0/24
			return false
		case 192<<16 | 88<<8 | 99: // 192.88.99.0/24, deprecated 6to4 relays
			return false
		}
		return v>>16 != 192<<8|168
	case 198:
		return v>>17 != (198<<8|18)>>1 && v>>8 != 198<<16|51<<8|100
	case 203:
		return v>>8 != 203<<16|0<<8|113
	}
	return v>>24 < 224
}
