package nat64

import (
	"math"
	"net/netip"
	"strconv"
)

// ZeroChecksum says what happens to UDP packets that carry no checksum, which
// IPv4 permits and IPv6 does not (RFC 7915 section 4.5).
type ZeroChecksum uint8

// Policies for UDP without a checksum. The zero value is ZeroDrop.
const (
	// ZeroDrop drops them and answers "administratively prohibited".
	ZeroDrop ZeroChecksum = iota
	// ZeroCompute computes the checksum of whole packets, and drops first
	// fragments, of which it cannot be computed.
	ZeroCompute
	// ZeroForward passes them on without a checksum, in both directions, for
	// receivers that accept it (RFC 6936).
	ZeroForward
)

// Hairpin says how two hosts of the EAM table reach each other through their
// IPv4 addresses (RFC 7757 section 4).
type Hairpin uint8

// Kinds of hairpinning. The zero value is HairpinIntrinsic.
const (
	// HairpinIntrinsic translates such a packet to IPv4 and back at once
	// (section 4.2.2).
	HairpinIntrinsic Hairpin = iota
	// HairpinSimple expects the IPv4 side to send the packet back, and then
	// leaves the EAM table out for its source (section 4.2.1).
	HairpinSimple
	// HairpinNone does neither.
	HairpinNone
)

// Defaults for fields of a [Config] that are zero.
const (
	DefaultMTU           = 1500
	DefaultLowestIPv6MTU = 1280
	DefaultErrorRate     = 1000 // ICMP errors a second
)

// Config is what a [Translator] goes by. The zero value of each field has the
// meaning its comment gives; at least one of Prefix, EAM, Mapper and Pools is
// needed. The translator keeps the slices and does not change them; nor may
// the caller once New or Update has been called.
type Config struct {
	// Prefix embeds IPv4 addresses that nothing else maps (RFC 6052).
	Prefix Prefix
	// EAM is the explicit address mapping table (RFC 7757). Entries may lie
	// within others: the longest match counts, in each direction by itself.
	EAM []EAM
	// Mapper, if set, is asked after the EAM table.
	Mapper Mapper
	// Pools hand out IPv4 addresses to sources that nothing else maps: the
	// first one that allows the source and has an address left.
	Pools []*Pool

	// Own4 and Own6 are the translator's addresses: the sources of ICMP
	// errors that it makes itself. Without Own6 the prefix embeds Own4;
	// without either no errors are made in that family. RFC 6791 addresses
	// stand in for missing ones.
	Own4, Own6 netip.Addr
	// RFC6791v4 holds addresses for ICMP errors from IPv6 routers that have
	// no IPv4 address (RFC 6791 section 3). Each router keeps one of them, by
	// a hash. Without it Own4 is used.
	RFC6791v4 netip.Prefix
	// RFC6791v6 is the same for the other direction, for configurations
	// without Prefix. As much of the router's IPv4 address as there is room
	// for goes into the lowest 32 bits. Without it Own6 is used.
	RFC6791v6 netip.Prefix

	// MTU4 and MTU6 are the MTUs of the two sides in octets: 68 (IPv6: 1280)
	// to 65535. 0: DefaultMTU.
	MTU4, MTU6 int
	// LowestIPv6MTU is the size above which IPv4 packets without DF are
	// fragmented (lowest-ipv6-mtu of RFC 7915 section 4), 1280 to 65535; where
	// MTU6 is less, that counts. 0: DefaultLowestIPv6MTU.
	LowestIPv6MTU int

	// UDPZero is the policy for UDP without a checksum.
	UDPZero ZeroChecksum
	// OtherChecksums adjusts the checksums of DCCP and UDP-Lite, too, which
	// RFC 7915 leaves open. If false they pass unchanged, like all unknown
	// transports, and will be wrong unless the prefixes are neutral.
	OtherChecksums bool
	// Hairpin chooses the kind of hairpinning.
	Hairpin Hairpin
	// AllowNonGlobalWKP permits addresses that are not global behind the
	// well-known prefix, against RFC 6052 section 3.1.
	AllowNonGlobalWKP bool
	// ResetTOS clears TOS and traffic class instead of copying them.
	ResetTOS bool

	// StrictFragmentHeader adds a fragment header to every packet translated
	// from an IPv4 packet without DF, as RFC 6145 had it. RFC 7915 no longer
	// does, because such atomic fragments do harm (RFC 8021).
	StrictFragmentHeader bool

	// NoErrors suppresses ICMP errors made by the translator itself.
	NoErrors bool
	// ErrorRate limits them to so many a second, with bursts of as many (at
	// least 10). 0: DefaultErrorRate; negative: no limit.
	ErrorRate float64
	// EchoReply answers echo requests to Own4 and Own6.
	EchoReply bool
	// Plateaus are the MTUs tried, in descending order, for "fragmentation
	// needed" messages that state none (RFC 1191 section 7). nil: its table.
	Plateaus []uint16
}

// snapshot is a configuration ready for use. It never changes.
type snapshot struct {
	cfg    Config
	prefix Prefix
	eam    eamTable
	mapper Mapper
	pools  []*Pool
	simple bool // neither mapper, pools nor the well-known prefix rule
	strict bool // RFC 6052 section 3.1 applies
	direct bool // nothing but the prefix can map its addresses: ask it first
	quick6 bool // see quick.go
	quick4 bool

	own4, pool4 uint32 // 0: none
	own6, pool6 addr6
	hasOwn6     bool
	hosts4      uint32 // mask of the host bits of RFC6791v4
	hosts6      uint32 // mask of those host bits of RFC6791v6 that are used
	has4        bool   // pool4 valid
	has6        bool   // pool6 valid

	mtu4, mtu6, lowest int
	plateaus           []uint16
}

// rfc1191Plateaus are section 7's, less the ones that never fit IPv4.
var rfc1191Plateaus = [...]uint16{65535, 32000, 17914, 8166, 4352, 2002, 1492, 1006, 508, 296, 68}

func compile(cfg Config) (*snapshot, error) {
	c := &snapshot{cfg: cfg, prefix: cfg.Prefix, mapper: cfg.Mapper, pools: cfg.Pools}
	if !cfg.Prefix.IsValid() && len(cfg.EAM) == 0 && cfg.Mapper == nil && len(cfg.Pools) == 0 {
		return nil, configErr("Config", "", ErrNoMapping)
	}
	var err error
	if c.eam, err = newEAMTable(cfg.EAM); err != nil {
		return nil, err
	}
	for i, p := range cfg.Pools {
		field := "Pools[" + strconv.Itoa(i) + "]"
		if p == nil {
			return nil, configErr(field, "nil", ErrRange)
		}
		for _, q := range cfg.Pools[:i] {
			if p == q || p.V4().Overlaps(q.V4()) {
				return nil, configErr(field, p.V4().String(), ErrDuplicate)
			}
		}
	}
	c.strict = cfg.Prefix.IsWellKnown() && !cfg.AllowNonGlobalWKP
	c.simple = cfg.Mapper == nil && len(cfg.Pools) == 0 && !c.strict
	c.direct = cfg.Prefix.IsValid() && cfg.Mapper == nil && !c.strict
	for _, e := range cfg.EAM {
		m := mask6(min(e.V6.Bits(), cfg.Prefix.Bits()))
		c.direct = c.direct && from6(e.V6.Addr()).and(m) != cfg.Prefix.base.and(m)
	}
	c.quick6, c.quick4 = c.direct, cfg.Hairpin != HairpinSimple

	if cfg.Own4.IsValid() {
		if !cfg.Own4.Is4() || neverSource(from4(cfg.Own4)) {
			return nil, configErr("Own4", cfg.Own4.String(), ErrFamily)
		}
		c.own4 = from4(cfg.Own4)
	}
	if cfg.Own6.IsValid() {
		if !cfg.Own6.Is6() || cfg.Own6.Is4In6() || cfg.Own6.Zone() != "" || cfg.Own6.IsMulticast() || cfg.Own6.IsUnspecified() {
			return nil, configErr("Own6", cfg.Own6.String(), ErrFamily)
		}
		c.own6, c.hasOwn6 = from6(cfg.Own6), true
	} else if cfg.Own4.IsValid() && cfg.Prefix.IsValid() {
		c.own6, c.hasOwn6 = cfg.Prefix.embed(c.own4), true
	}
	if p := cfg.RFC6791v4; p != (netip.Prefix{}) {
		if !p.IsValid() || !p.Addr().Is4() {
			return nil, configErr("RFC6791v4", p.String(), ErrFamily)
		}
		if p != p.Masked() {
			return nil, configErr("RFC6791v4", p.String(), ErrHostBits)
		}
		c.pool4, c.hosts4, c.has4 = from4(p.Addr()), ^mask4(p.Bits()), true
		if c.own4 == 0 {
			c.own4 = c.pool4
		}
	} else if c.own4 != 0 {
		c.pool4, c.has4 = c.own4, true
	}
	if p := cfg.RFC6791v6; p != (netip.Prefix{}) {
		if !p.IsValid() || !p.Addr().Is6() || p.Addr().Is4In6() {
			return nil, configErr("RFC6791v6", p.String(), ErrFamily)
		}
		if p != p.Masked() {
			return nil, configErr("RFC6791v6", p.String(), ErrHostBits)
		}
		c.pool6, c.hosts6, c.has6 = from6(p.Addr()), uint32(^mask64(p.Bits()-64)), true
		if !c.hasOwn6 {
			c.own6, c.hasOwn6 = c.pool6, true
		}
	} else if c.hasOwn6 {
		c.pool6, c.has6 = c.own6, true
	}

	number := func(field string, v, def, least int) (int, error) {
		if v == 0 {
			return def, nil
		}
		if v < least || v > math.MaxUint16 {
			return 0, configErr(field, strconv.Itoa(v), ErrRange)
		}
		return v, nil
	}
	if c.mtu4, err = number("MTU4", cfg.MTU4, DefaultMTU, 68); err != nil {
		return nil, err
	}
	if c.mtu6, err = number("MTU6", cfg.MTU6, DefaultMTU, 1280); err != nil {
		return nil, err
	}
	if c.lowest, err = number("LowestIPv6MTU", cfg.LowestIPv6MTU, DefaultLowestIPv6MTU, 1280); err != nil {
		return nil, err
	}
	c.lowest = min(c.lowest, c.mtu6)

	if cfg.UDPZero > ZeroForward {
		return nil, configErr("UDPZero", strconv.Itoa(int(cfg.UDPZero)), ErrRange)
	}
	if cfg.Hairpin > HairpinNone {
		return nil, configErr("Hairpin", strconv.Itoa(int(cfg.Hairpin)), ErrRange)
	}
	if math.IsNaN(cfg.ErrorRate) {
		return nil, configErr("ErrorRate", "NaN", ErrRange)
	}
	c.plateaus = cfg.Plateaus
	if c.plateaus == nil {
		c.plateaus = rfc1191Plateaus[:]
	}
	for i, p := range c.plateaus {
		if i > 0 && p >= c.plateaus[i-1] || p < 68 {
			return nil, configErr("Plateaus["+strconv.Itoa(i)+"]", strconv.Itoa(int(p)), ErrRange)
		}
	}
	return c, nil
}

// reserve tells the pools which addresses the rest of the configuration uses.
func (c *snapshot) reserve() {
	if len(c.pools) == 0 {
		return
	}
	var list []netip.Prefix
	for _, e := range c.cfg.EAM {
		list = append(list, e.V4)
	}
	if c.own4 != 0 {
		list = append(list, netip.PrefixFrom(addr4(c.own4), 32))
	}
	list = append(list, c.cfg.RFC6791v4)
	for _, p := range c.pools {
		p.Reserve(list)
	}
}
