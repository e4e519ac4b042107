package fastpath

import (
	"encoding/binary"
	"net/netip"

	"signalbox.example/nat64"
)

// Kinds of table entries.
const (
	kindMap  = 0 // translate
	kindPunt = 1 // leave the packet to the slow path
	kindPool = 2 // translate, and note the use of a pool binding
)

// The tables are longest-prefix-match maps. A key is the prefix length in host
// byte order and the address as on the wire; the values
// are the fields of value64 and value46 in order.
//
// The IPv4 address is base | ((half >> shift) & mask), where half is the low
// or, with shiftHigh set in shift, the high half of the IPv6 address as a
// number. The IPv6 address of an IPv4 address is high, then
// low | (address & mask) << shift.
const (
	keyLen6    = 4 + 16
	keyLen4    = 4 + 4
	valueLen64 = 24
	valueLen46 = 32
	shiftHigh  = 0x80000000
)

// value64 is the value of the table from IPv6 to IPv4.
type value64 struct {
	kind  uint32
	base  uint32 // host byte order
	mask  uint64
	shift uint32
	slot  uint32
}

// value46 is the value of the table from IPv4 to IPv6.
type value46 struct {
	kind  uint32
	slot  uint32
	high  [8]byte // as on the wire
	low   uint64  // host byte order
	mask  uint32  // host bits of the IPv4 address
	shift uint32
}

func (v value64) append(b []byte) []byte {
	o := binary.NativeEndian
	b = o.AppendUint32(b, v.kind)
	b = o.AppendUint32(b, v.base)
	b = o.AppendUint64(b, v.mask)
	b = o.AppendUint32(b, v.shift)
	return o.AppendUint32(b, v.slot)
}

func (v value46) append(b []byte) []byte {
	o := binary.NativeEndian
	b = o.AppendUint32(b, v.kind)
	b = o.AppendUint32(b, v.slot)
	b = append(b, v.high[:]...)
	b = o.AppendUint64(b, v.low)
	b = o.AppendUint32(b, v.mask)
	return o.AppendUint32(b, v.shift)
}

func appendKey(b []byte, p netip.Prefix) []byte {
	b = binary.NativeEndian.AppendUint32(b, uint32(p.Bits()))
	return append(b, p.Addr().AsSlice()...)
}

// entries are the contents of both tables. A later entry for the same prefix
// replaces an earlier one.
type entries struct {
	v6 map[netip.Prefix]value64
	v4 map[netip.Prefix]value46
}

func newEntries() *entries {
	e := &entries{map[netip.Prefix]value64{}, map[netip.Prefix]value46{}}
	for _, p := range neverRouted {
		e.punt(p)
	}
	return e
}

func (e *entries) punt(p netip.Prefix) {
	if p.Addr().Is4() {
		e.v4[p.Masked()] = value46{kind: kindPunt}
	} else {
		e.v6[p.Masked()] = value64{kind: kindPunt}
	}
}

// eam adds an explicit mapping in both directions. What it makes of blocks that
// are never routed is left to the slow path, which refuses it.
func (e *entries) eam(m nat64.EAM) {
	p4, p6 := m.V4.Masked(), m.V6.Masked()
	for _, block := range neverRouted {
		switch {
		case !block.Overlaps(p4):
		case block.Bits() <= p4.Bits():
			e.punt(p6)
			e.punt(p4)
			return
		default: // the table from IPv4 has the block already
			within := suffixed(p6, p4, block)
			if _, mapped := e.v6[within]; !mapped {
				e.punt(within)
			}
		}
	}
	n4 := 32 - p4.Bits() // suffix length
	base := binary.BigEndian.Uint32(p4.Addr().AsSlice())
	a := p6.Addr().As16()
	low := binary.BigEndian.Uint64(a[8:])
	mask := uint64(1)<<n4 - 1
	end := p6.Bits() + n4 // where the IPv4 suffix ends in the IPv6 address
	switch {
	case n4 == 0:
		e.v6[p6] = value64{base: base}
		e.v4[p4] = value46{high: [8]byte(a[:8]), low: low}
	case p6.Bits() >= 64:
		e.v6[p6] = value64{base: base, mask: mask, shift: uint32(128 - end)}
		e.v4[p4] = value46{high: [8]byte(a[:8]), low: low, mask: uint32(mask), shift: uint32(128 - end)}
	case end <= 64:
		// From IPv4 to IPv6 the program writes the suffix into the low half
		// only; such unusual entries take the slow path there.
		e.v6[p6] = value64{base: base, mask: mask, shift: uint32(64-end) | shiftHigh}
		e.v4[p4] = value46{kind: kindPunt}
	default: // across both halves
		e.punt(p6)
		e.punt(p4)
	}
}

// suffixed returns the part of p6 that stands for a part of p4.
func suffixed(p6, p4, part netip.Prefix) netip.Prefix {
	a, b := p6.Addr().As16(), part.Addr().As4()
	at := p6.Bits()
	for i := p4.Bits(); i < part.Bits(); i++ {
		a[at/8] |= b[i/8] >> (7 - i%8) & 1 << (7 - at%8)
		at++
	}
	return netip.PrefixFrom(netip.AddrFrom16(a), at)
}

// binding returns the entries of a pool binding.
func binding(v4, v6 netip.Addr, slot uint32) (netip.Prefix, value64, netip.Prefix, value46) {
	a := v6.As16()
	return netip.PrefixFrom(v6, 128), value64{kind: kindPool, base: binary.BigEndian.Uint32(v4.AsSlice()), slot: slot},
		netip.PrefixFrom(v4, 32), value46{kind: kindPool, slot: slot, high: [8]byte(a[:8]), low: binary.BigEndian.Uint64(a[8:])}
}

// neverRouted are the IPv4 blocks that no packet comes from or goes to across
// a router (RFC 1812 section 5.3.7).
var neverRouted = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("224.0.0.0/3")}

// notGlobal are the other blocks of RFC 6890's registry that are not globally
// reachable. The few addresses within them that are take the slow path.
var notGlobal = []string{
	"10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
	"192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
}

// fromConfig makes the entries of a translator's configuration, without those
// of its pools' bindings.
func fromConfig(c nat64.Config) *entries {
	e := newEntries()
	if c.Prefix.IsWellKnown() && !c.AllowNonGlobalWKP {
		for _, p := range notGlobal {
			e.punt(netip.MustParsePrefix(p))
		}
	}
	for _, p := range c.Pools { // an address without a binding is unmapped
		e.punt(p.V4())
	}
	for _, p := range []netip.Prefix{c.RFC6791v4, c.RFC6791v6} {
		if p.IsValid() {
			e.punt(p)
		}
	}
	for _, m := range c.EAM {
		e.eam(m)
	}
	for _, a := range []netip.Addr{c.Own4, c.Own6} { // the translator answers for itself
		if a.IsValid() {
			e.punt(netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return e
}
