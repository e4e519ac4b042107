package nat64

import (
	"net/netip"
	"strconv"

	"signalbox.example/nat64/internal/checksum"
)

// Prefix is a translation prefix of RFC 6052: an IPv6 prefix of 32, 40, 48,
// 56, 64 or 96 bits behind which IPv4 addresses are embedded. The zero value
// is no prefix: it matches nothing. Values are comparable.
//
// Where the four octets of the IPv4 address go (RFC 6052 section 2.2); octet
// 8, marked u, is zero when written and ignored when read, as is everything
// behind the address:
//
//	length  0    4    8    12
//	32      PPPP 4444 u... ....
//	40      PPPP P444 u4.. ....
//	48      PPPP PP44 u44. ....
//	56      PPPP PPP4 u444 ....
//	64      PPPP PPPP u444 4...
//	96      PPPP PPPP uPPP 4444
type Prefix struct {
	base addr6
	bits uint8 // 0: no prefix
}

// WellKnownPrefix returns 64:ff9b::/96 (RFC 6052 section 2.1), with which
// addresses that are not global must not be translated (section 3.1).
func WellKnownPrefix() Prefix { return Prefix{addr6{0x0064ff9b << 32, 0}, 96} }

// ParsePrefix reads a prefix such as "64:ff9b::/96". See [PrefixFrom].
func ParsePrefix(s string) (Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return Prefix{}, configErr("prefix", s, ErrSyntax)
	}
	return PrefixFrom(p)
}

// PrefixFrom checks a prefix. It fails with a [*ConfigError] that wraps
// [ErrFamily], [ErrPrefixLength], [ErrHostBits] or [ErrReservedByte].
func PrefixFrom(p netip.Prefix) (Prefix, error) {
	fail := func(err error) (Prefix, error) { return Prefix{}, configErr("prefix", p.String(), err) }
	if !p.IsValid() || !p.Addr().Is6() || p.Addr().Is4In6() {
		return fail(ErrFamily)
	}
	switch p.Bits() {
	case 32, 40, 48, 56, 64, 96:
	default:
		return fail(ErrPrefixLength)
	}
	if p != p.Masked() {
		return fail(ErrHostBits)
	}
	a := from6(p.Addr())
	if a.lo>>56 != 0 {
		return fail(ErrReservedByte)
	}
	return Prefix{a, uint8(p.Bits())}, nil
}

// IsValid reports whether p is a prefix and not the zero value.
func (p Prefix) IsValid() bool { return p.bits != 0 }

// Bits returns the length of the prefix in bits, 0 for the zero value.
func (p Prefix) Bits() int { return int(p.bits) }

// Netip returns the prefix in the form of the standard library.
func (p Prefix) Netip() netip.Prefix {
	if !p.IsValid() {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(p.base.netip(), int(p.bits))
}

func (p Prefix) String() string {
	if !p.IsValid() {
		return "no prefix"
	}
	return p.base.netip().String() + "/" + strconv.Itoa(int(p.bits))
}

// IsWellKnown reports whether p is 64:ff9b::/96 and not, for instance, a /96
// inside the local-use block 64:ff9b:1::/48 (RFC 8215).
func (p Prefix) IsWellKnown() bool { return p == WellKnownPrefix() }

// Contains reports whether the address begins with the prefix.
func (p Prefix) Contains(v6 netip.Addr) bool {
	return v6.Is6() && p.contains(from6(v6))
}

func (p Prefix) contains(a addr6) bool {
	if p.bits == 0 {
		return false
	}
	if p.bits == 96 {
		return a.hi == p.base.hi && (a.lo^p.base.lo)>>32 == 0
	}
	return (a.hi^p.base.hi)>>(64-p.bits) == 0 // 32 to 64
}

// Embed returns the IPv6 address that stands for an IPv4 address (RFC 6052
// section 2.3). It returns the zero Addr for the zero Prefix and for
// addresses that are not IPv4. It does not apply the rule about addresses
// that are not global: see [Prefix.Allowed].
func (p Prefix) Embed(v4 netip.Addr) netip.Addr {
	if !p.IsValid() || !v4.Is4() {
		return netip.Addr{}
	}
	return p.embed(from4(v4)).netip()
}

func (p Prefix) embed(v uint32) addr6 {
	a := p.base
	if p.bits == 96 {
		a.lo |= uint64(v)
		return a
	}
	// The address lies in bits bits..bits+39, less the octet at 64.
	d := uint(64 - p.bits) // bits of it before octet 8, at most 32
	a.hi |= uint64(v) << 32 >> (64 - d)
	a.lo |= uint64(v) << d & 0xffffffff << 24
	return a
}

// Extract returns the IPv4 address in an IPv6 address that begins with the
// prefix. Octet 8 and the octets behind the address are ignored (RFC 6052
// sections 2.2 and 2.3).
func (p Prefix) Extract(v6 netip.Addr) (v4 netip.Addr, ok bool) {
	if !p.Contains(v6) {
		return netip.Addr{}, false
	}
	return addr4(p.extract(from6(v6))), true
}

func (p Prefix) extract(a addr6) uint32 {
	if p.bits == 96 {
		return uint32(a.lo)
	}
	d := uint(64 - p.bits)
	return uint32(a.hi<<(32-d)) | uint32(a.lo>>24)>>d
}

// Allowed reports whether an IPv4 address may be written with the prefix:
// always, but for addresses that are not global under the well-known prefix
// (RFC 6052 section 3.1).
func (p Prefix) Allowed(v4 netip.Addr) bool {
	return p.IsValid() && v4.Is4() && (!p.IsWellKnown() || global(from4(v4)))
}

// ChecksumNeutral reports whether an embedded address has the checksum of
// the IPv4 address alone, so that transport checksums need no change when
// both ends are embedded (RFC 6052 section 4.1): the prefix's words sum to
// 0xffff, and the octets of the address keep their places in their words,
// as they do with the lengths 32 and 96 alone.
func (p Prefix) ChecksumNeutral() bool {
	return (p.bits == 32 || p.bits == 96) && checksum.Fold(p.base.sum()) == 0xffff
}

// Neutral returns a checksum-neutral /96 inside a prefix of at most 80 bits.
// The first free 16-bit word that may be set (bits 64 to 71 may not) takes
// the difference, all other free bits are zero: 64:ff9b:1::/48 gives
// 64:ff9b:1:fffe::/96. It fails with a [*ConfigError] that wraps [ErrFamily],
// [ErrHostBits], [ErrReservedByte] or, for longer prefixes and where the
// result would be the IPv4-mapped range, [ErrRange].
func Neutral(within netip.Prefix) (Prefix, error) {
	fail := func(err error) (Prefix, error) { return Prefix{}, configErr("prefix", within.String(), err) }
	if !within.IsValid() || !within.Addr().Is6() || within.Addr().Is4In6() {
		return fail(ErrFamily)
	}
	if within != within.Masked() {
		return fail(ErrHostBits)
	}
	a := from6(within.Addr())
	if a.lo>>56 != 0 {
		return fail(ErrReservedByte)
	}
	if within.Bits() > 80 {
		return fail(ErrRange)
	}
	rest := uint64(^checksum.Fold(a.sum()))
	if word := (within.Bits() + 15) / 16; word < 4 {
		a.hi |= rest << (48 - 16*word)
	} else {
		a.lo |= rest << 32
	}
	if a.hi == 0 && a.lo>>32 == 0xffff {
		return fail(ErrRange)
	}
	return Prefix{a, 96}, nil
}
