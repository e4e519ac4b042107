package lpctrie

import (
	"encoding/binary"
	"fmt"
	"net/netip"
)

// A Route is what tells one route from another: the key of a kernel "FIB
// alias". Only Prefix is needed; the rest may stay zero.
type Route struct {
	// Prefix is an IPv4 prefix without host bits.
	Prefix netip.Prefix
	// Table is the routing table's number, for callers that keep several
	// tables in one trie as the kernel does with main (254) and local (255).
	// Aliases of the higher number come first.
	Table uint32
	// TOS is compared with a packet's type of service: a route with a TOS
	// other than 0 serves only packets that carry it.
	TOS uint8
	// Type is Unicast when zero.
	Type RouteType
	// Scope is the distance to the destination. The zero value is the
	// farthest, [ScopeUniverse].
	Scope Scope
	// Priority is ip's "metric": lower wins.
	Priority uint32
}

// RouteType says what happens to packets that match; values as in
// linux/rtnetlink.h.
type RouteType uint8

// Route types. The zero value means Unicast when a route is added and any
// type when one is deleted.
const (
	Unicast     RouteType = 1
	Local       RouteType = 2
	Broadcast   RouteType = 3
	Anycast     RouteType = 4
	Multicast   RouteType = 5
	Blackhole   RouteType = 6
	Unreachable RouteType = 7
	Prohibit    RouteType = 8
	Throw       RouteType = 9
	NAT         RouteType = 10
	XResolve    RouteType = 11
)

var typeNames = [...]string{"UNSPEC", "UNICAST", "LOCAL", "BROADCAST", "ANYCAST", "MULTICAST",
	"BLACKHOLE", "UNREACHABLE", "PROHIBIT", "THROW", "NAT", "XRESOLVE"}

// String returns the word that /proc/net/fib_trie prints.
func (t RouteType) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Err returns the error that a lookup ending at such a route means: one of
// ErrUnreachable, ErrBlackhole, ErrProhibit and ErrThrow, or nil for types
// that deliver packets.
func (t RouteType) Err() error {
	switch t {
	case Unreachable:
		return ErrUnreachable
	case Blackhole:
		return ErrBlackhole
	case Prohibit:
		return ErrProhibit
	case Throw:
		return ErrThrow
	}
	return nil
}

// Scope is a route's distance as in linux/rtnetlink.h: higher is nearer.
type Scope uint8

// The scopes that have names.
const (
	ScopeUniverse Scope = 0
	ScopeSite     Scope = 200
	ScopeLink     Scope = 253
	ScopeHost     Scope = 254
	ScopeNowhere  Scope = 255
)

// String returns the word that /proc/net/fib_trie prints.
func (s Scope) String() string {
	switch s {
	case ScopeUniverse:
		return "universe"
	case ScopeSite:
		return "site"
	case ScopeLink:
		return "link"
	case ScopeHost:
		return "host"
	case ScopeNowhere:
		return "nowhere"
	}
	return fmt.Sprintf("scope=%d", uint8(s))
}

// Mode says how [Table.Add] treats a route whose prefix, table, TOS and
// priority are taken already. It is a set of the netlink flags of the same
// names; the combinations that ip(8) uses have names below.
type Mode uint8

// The netlink flags.
const (
	Excl    Mode = 1 << iota // fail if there is such a route
	Replace                  // put it in the place of the first such route
	Append                   // put it behind all such routes
	Create                   // allow a route that was not there
)

// What ip(8) sends: "ip route add", "change", "replace", "append", "prepend".
const (
	ModeAdd     = Create | Excl
	ModeChange  = Replace
	ModeReplace = Create | Replace
	ModeAppend  = Create | Append
	ModePrepend = Create
)

// KeyOf returns an IPv4 address as a number in host order, 1.2.3.4 as
// 0x01020304, the form that LookupKey takes. It reports false for anything
// but IPv4, IPv4-mapped IPv6 included.
func KeyOf(a netip.Addr) (key uint32, ok bool) {
	if a.Is4() {
		key, ok = key4(a.As4()), true
	}
	return
}

// key4 is KeyOf for what is known to be IPv4. Unlike KeyOf it is inlined, so
// hot paths ask a.Is4 and use it.
func key4(b [4]byte) uint32 { return binary.BigEndian.Uint32(b[:]) }

// AddrOf is the inverse of [KeyOf].
func AddrOf(key uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], key)
	return netip.AddrFrom4(b)
}

// keyOfPrefix returns key and suffix length (32 minus the prefix length).
func keyOfPrefix(p netip.Prefix) (key uint32, slen uint8, err error) {
	key, ok := KeyOf(p.Addr())
	if !ok || p.Bits() < 0 {
		return 0, 0, fmt.Errorf("%w: %v", ErrPrefix, p)
	}
	slen = uint8(32 - p.Bits())
	if key&suffixMask(slen) != 0 {
		return 0, 0, fmt.Errorf("%w: %v", ErrPrefix, p)
	}
	return key, slen, nil
}

// suffixMask returns the lowest slen bits set, slen 0 to 32.
func suffixMask(slen uint8) uint32 { return uint32(1<<slen - 1) }

func prefixOf(key uint32, slen uint8) netip.Prefix {
	return netip.PrefixFrom(AddrOf(key), 32-int(slen))
}
