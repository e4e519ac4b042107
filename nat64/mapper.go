package nat64

import "net/netip"

// Mapper maps single addresses by rules of the user's own: a routing table, a
// database. It is asked after the EAM table and before pools and prefix. Its
// methods are called once or twice for every packet that the EAM table does not
// settle, by several goroutines at a time, and must not block. Addresses are in
// network order. An address for which ok is false is looked for elsewhere. The
// two methods should undo each other.
type Mapper interface {
	// To4 returns the IPv4 address that stands for an IPv6 address.
	To4(v6 [16]byte) (v4 [4]byte, ok bool)
	// To6 returns the IPv6 address that stands for an IPv4 address.
	To6(v4 [4]byte) (v6 [16]byte, ok bool)
}

// MappedBy says what mapped an address.
type MappedBy uint8

// What can map an address. The package comment tells the order in which they
// are asked.
const (
	Unmapped     MappedBy = iota
	ByEAM                 // the EAM table, RFC 7757
	ByMapper              // Config.Mapper
	ByPool                // a dynamic pool
	ByPrefix              // the prefix, RFC 6052
	ByRFC6791             // an RFC 6791 or own address in place of a source without mapping
	byForbidden           // the prefix, but RFC 6052 section 3.1 forbids it
	byUnassigned          // in a pool's range, but nobody has the address
)

// String returns the name of the rule.
func (m MappedBy) String() string {
	switch m {
	case Unmapped:
		return "no mapping"
	case ByEAM:
		return "EAM (RFC 7757 section 3.3)"
	case ByMapper:
		return "mapper"
	case ByPool:
		return "pool"
	case ByPrefix:
		return "prefix (RFC 6052 section 2.3)"
	case ByRFC6791:
		return "RFC 6791 section 3"
	case byForbidden:
		return "prefix, but not global (RFC 6052 section 3.1)"
	case byUnassigned:
		return "pool, but not assigned"
	}
	return "?"
}

// ok reports whether the address was mapped.
func (m MappedBy) ok() bool { return m-1 < byForbidden-1 }

// map6 maps an IPv6 address without making a pool binding.
func (c *snapshot) map6(a addr6) (uint32, MappedBy) {
	if c.direct && c.prefix.contains(a) {
		return c.prefix.extract(a), ByPrefix
	}
	if len(c.eam.by6) > 0 {
		if v, ok := c.eam.to4(a); ok {
			return v, ByEAM
		}
	}
	if c.simple {
		if !c.direct && c.prefix.contains(a) {
			return c.prefix.extract(a), ByPrefix
		}
		return 0, Unmapped
	}
	return c.map6slow(a)
}

func (c *snapshot) map6slow(a addr6) (uint32, MappedBy) {
	if c.mapper != nil {
		var b [16]byte
		a.store(b[:])
		if v4, ok := c.mapper.To4(b); ok {
			return be32(v4[:]), ByMapper
		}
	}
	if c.prefix.contains(a) {
		v := c.prefix.extract(a)
		if c.strict && !global(v) {
			return v, byForbidden
		}
		return v, ByPrefix
	}
	for _, p := range c.pools {
		if b := p.find6(a); b != nil {
			b.touch()
			return b.v4, ByPool
		}
	}
	return 0, Unmapped
}

// assign6 makes a pool binding for a source without mapping. It reports
// whether any pool would have the host.
func (c *snapshot) assign6(a addr6, dry bool) (v4 uint32, by MappedBy, wanted bool) {
	for _, p := range c.pools {
		if !p.allows(a) {
			continue
		}
		wanted = true
		if dry {
			continue
		}
		if b := p.assign(a); b != nil {
			b.touch()
			return b.v4, ByPool, true
		}
	}
	return 0, Unmapped, wanted
}

// map4 maps an IPv4 address.
func (c *snapshot) map4(v uint32) (addr6, MappedBy) {
	if a, ok := c.eam.to6(v); ok {
		return a, ByEAM
	}
	return c.map4rest(v)
}

// map4rest maps an IPv4 address by anything but the EAM table.
func (c *snapshot) map4rest(v uint32) (addr6, MappedBy) {
	if c.simple {
		if c.prefix.IsValid() {
			return c.prefix.embed(v), ByPrefix
		}
		return addr6{}, Unmapped
	}
	if c.mapper != nil {
		if b, ok := c.mapper.To6([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}); ok {
			return load6(b[:]), ByMapper
		}
	}
	for _, p := range c.pools {
		if p.contains4(v) {
			if b := p.find4(v); b != nil {
				b.touch()
				return b.v6, ByPool
			}
			if !c.prefix.IsValid() || v != c.own4 {
				return addr6{}, byUnassigned
			}
		}
	}
	if !c.prefix.IsValid() {
		return addr6{}, Unmapped
	}
	if c.strict && !global(v) {
		return addr6{}, byForbidden
	}
	return c.prefix.embed(v), ByPrefix
}

// To4 maps an IPv6 address as the translator would now, without assigning an
// address from a pool. The result is the zero Addr when by is not one of
// ByEAM, ByMapper, ByPool and ByPrefix.
func (t *Translator) To4(v6 netip.Addr) (v4 netip.Addr, by MappedBy) {
	if !v6.Is6() {
		return netip.Addr{}, Unmapped
	}
	v, by := t.snap.Load().map6(from6(v6))
	if !by.ok() {
		return netip.Addr{}, Unmapped
	}
	return addr4(v), by
}

// To6 maps an IPv4 address as the translator would now. The result is the
// zero Addr when by is not one of ByEAM, ByMapper, ByPool and ByPrefix.
func (t *Translator) To6(v4 netip.Addr) (v6 netip.Addr, by MappedBy) {
	if !v4.Is4() {
		return netip.Addr{}, Unmapped
	}
	a, by := t.snap.Load().map4(from4(v4))
	if !by.ok() {
		return netip.Addr{}, Unmapped
	}
	return a.netip(), by
}
