package radix6

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"strconv"
)

// DefaultMetric is the metric that Linux gives a route added without one.
// The methods of [Tree] do not apply it: a metric of 0 is a metric of 0. The
// readers of command text do.
const DefaultMetric = 1024

// Route names one route of a tree.
type Route struct {
	// Prefix is the destination. It must be a valid IPv6 prefix without bits
	// behind its length.
	Prefix netip.Prefix
	// From is the source prefix of a source-specific route. The zero Prefix
	// and ::/0 both mean any source: a generic route. Routes that come out
	// of a tree have the zero Prefix there.
	From netip.Prefix
	// Metric orders the routes of one prefix and source: the lowest wins.
	// Linux calls it metric or priority.
	Metric uint32
}

// String returns the route as ip prints it: "2001:db8::/32 from
// 2001:db8:a::/48 metric 1024".
func (r Route) String() string {
	b := r.Prefix.AppendTo(make([]byte, 0, 96))
	if r.From.IsValid() {
		b = append(b, " from "...)
		b = r.From.AppendTo(b)
	}
	b = append(b, " metric "...)
	return string(strconv.AppendUint(b, uint64(r.Metric), 10))
}

// Mode says what [Tree.Add] does when a route with the same prefix, source
// and metric exists, and when none does. It is a set of the netlink flags of
// the same names (rtnetlink(7)); the combinations that ip(8) uses have names
// below. A set with Excl or Replace looks at existing routes first; one
// without puts the new route behind those of the same metric, as Linux does
// with IPv6 routes whether or not Append is given.
type Mode uint8

// The netlink flags.
const (
	Excl    Mode = 1 << iota // fail if there is such a route
	Replace                  // give the first such route the new value
	Append                   // put it behind all such routes
	Create                   // allow a route that was not there
)

// What ip(8) sends: "ip route add", "change", "replace", "append".
const (
	ModeAdd     = Create | Excl
	ModeChange  = Replace
	ModeReplace = Create | Replace
	ModeAppend  = Create | Append
)

// SourceMode says whether a tree holds source-specific routes, and how a
// lookup treats them.
type SourceMode uint8

const (
	// SourceOff refuses routes with a source. It is the mode of a zero Tree.
	SourceOff SourceMode = iota
	// SourceLinux does what Linux does: once a prefix other than ::/0 has
	// any source-specific route, its generic routes are invisible to
	// sources that match none of them, and the lookup goes on with shorter
	// prefixes. ::/0 is the exception. (A generic route becomes visible
	// again after the caller of [Tree.LookupFunc] rejected a longer match.)
	SourceLinux
	// SourceDraft does what draft-ietf-rtgwg-dst-src-routing says: a generic
	// route is one from ::/0. The longest prefix that has a route for this
	// source wins, within it the longest source.
	SourceDraft
)

// KeyOf returns an IPv6 address as two words, most significant first, the form
// that LookupKey takes. A zone is ignored: it names a link, not an address. It
// reports false for IPv4 addresses.
func KeyOf(a netip.Addr) (hi, lo uint64, ok bool) { return addrKey(a) }

// AddrOf is the inverse of [KeyOf].
func AddrOf(hi, lo uint64) netip.Addr { return key{hi, lo}.addr() }

// key is an address as two words, most significant first.
type key struct{ hi, lo uint64 }

// addrKey is KeyOf in a form that is inlined.
//
// AsSlice is used because it is inlined and does not escape; As16 copies its
// result in a way that stalls the processor (two 8-byte stores, then one
// 16-byte load). On 32-bit machines, where it is not inlined, it would
// allocate.
func addrKey(a netip.Addr) (hi, lo uint64, ok bool) {
	if bits.UintSize == 32 {
		if !a.Is6() {
			return 0, 0, false
		}
		b := a.As16()
		return binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), true
	}
	if b := a.AsSlice(); len(b) == 16 {
		return binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]), true
	}
	return 0, 0, false
}

func (k key) addr() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], k.hi)
	binary.BigEndian.PutUint64(b[8:], k.lo)
	return netip.AddrFrom16(b)
}

func (k key) prefix(n int) netip.Prefix { return netip.PrefixFrom(k.addr(), n) }

// mask clears the bits behind the first n, 0 to 128. A shift by 64 yields 0
// in Go, so neither end needs a case of its own.
func (k key) mask(n int) key {
	if n <= 64 {
		return key{k.hi &^ (^uint64(0) >> n), 0}
	}
	return key{k.hi, k.lo &^ (^uint64(0) >> (n - 64))}
}

// bit returns bit n, 0 (most significant) to 127.
func (k key) bit(n uint32) uint32 {
	w := k.hi
	if n&64 != 0 {
		w = k.lo
	}
	return uint32(w>>(^n&63)) & 1
}

// common returns how many leading bits a and b share, 0 to 128.
func common(a, b key) int {
	if x := a.hi ^ b.hi; x != 0 {
		return bits.LeadingZeros64(x)
	}
	return 64 + bits.LeadingZeros64(a.lo^b.lo)
}

// prefixKey returns the words of a prefix that may be stored.
func prefixKey(p netip.Prefix) (key, int, error) {
	if !p.IsValid() { // one from an address with a zone is not either
		return key{}, 0, ErrPrefix
	}
	hi, lo, ok := addrKey(p.Addr())
	if !ok {
		return key{}, 0, ErrFamily
	}
	k, n := key{hi, lo}, p.Bits()
	if k.mask(n) != k {
		return key{}, 0, ErrPrefix
	}
	return k, n, nil
}

// parsed is a checked Route.
type parsed struct {
	dst, src         key
	dstBits, srcBits int // srcBits 0: generic
	metric           uint32
}

func (m SourceMode) parse(r Route) (p parsed, err error) {
	p.metric = r.Metric
	if p.dst, p.dstBits, err = prefixKey(r.Prefix); err != nil {
		return p, err
	}
	if r.From == (netip.Prefix{}) {
		return p, nil
	}
	if p.src, p.srcBits, err = prefixKey(r.From); err != nil {
		return p, err
	}
	if p.srcBits > 0 && m == SourceOff {
		return p, ErrNoSources
	}
	return p, nil
}
