package nat64

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// RFC 6052 section 2.4, both tables of examples.
func TestPrefixExamples(t *testing.T) {
	v4 := netip.MustParseAddr("192.0.2.33")
	for _, x := range [][2]string{
		{"2001:db8::/32", "2001:db8:c000:221::"},
		{"2001:db8:100::/40", "2001:db8:1c0:2:21::"},
		{"2001:db8:122::/48", "2001:db8:122:c000:2:2100::"},
		{"2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"},
		{"2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"},
		{"2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"},
		{"64:ff9b::/96", "64:ff9b::192.0.2.33"},
	} {
		p := must(ParsePrefix(x[0]))
		want := netip.MustParseAddr(x[1])
		if got := p.Embed(v4); got != want {
			t.Errorf("%v: %v, want %v", p, got, want)
		}
		if got, ok := p.Extract(want); !ok || got != v4 {
			t.Errorf("%v: %v, %v", p, got, ok)
		}
		if p.Netip().String() != x[0] || p.String() != x[0] {
			t.Errorf("%v printed as %v", x[0], p)
		}
	}
}

func TestPrefixRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{32, 40, 48, 56, 64, 96} {
		for range 1000 {
			a := addr6{r.Uint64(), r.Uint64() >> 8}
			p := must(PrefixFrom(netip.PrefixFrom(a.netip(), n).Masked()))
			v := addr4(r.Uint32())
			e := p.Embed(v)
			if e.As16()[8] != 0 {
				t.Fatalf("octet u of %v is set", e)
			}
			// Octet u and the suffix are ignored when read.
			b := e.As16()
			if n < 96 {
				b[8] = byte(r.Uint32())
				for i := n/8 + 5; i < 16; i++ {
					if i > 8 {
						b[i] = byte(r.Uint32())
					}
				}
			}
			if got, ok := p.Extract(netip.AddrFrom16(b)); !ok || got != v {
				t.Fatalf("%v: %v, want %v", netip.AddrFrom16(b), got, v)
			}
			b[n/8-1] ^= 1 // outside the prefix
			if got, ok := p.Extract(netip.AddrFrom16(b)); ok {
				t.Fatalf("%v gives %v", netip.AddrFrom16(b), got)
			}
		}
	}
}

func TestPrefixErrors(t *testing.T) {
	for s, want := range map[string]error{
		"64:ff9b::/95":           ErrPrefixLength,
		"64:ff9b::/128":          ErrPrefixLength,
		"2001:db8::1/96":         ErrHostBits,
		"10.0.0.0/8":             ErrFamily,
		"::ffff:0:0/96":          ErrFamily,
		"2001:db8:0:0:100::/96":  ErrReservedByte,
		"2001:db8:0:0:ff00::/96": ErrReservedByte,
		"64:ff9b::":              ErrSyntax,
		"":                       ErrSyntax,
	} {
		_, err := ParsePrefix(s)
		var e *ConfigError
		if !errors.Is(err, want) || !errors.As(err, &e) || e.Input == "" && s != "" {
			t.Errorf("%q: %v, want %v", s, err, want)
		}
	}
	var zero Prefix
	if zero.IsValid() || zero.Contains(netip.MustParseAddr("::")) || zero.Embed(netip.MustParseAddr("1.2.3.4")).IsValid() || zero.ChecksumNeutral() {
		t.Error("the zero Prefix does something")
	}
	p := WellKnownPrefix()
	if _, ok := p.Extract(netip.MustParseAddr("10.0.0.1")); ok || p.Embed(netip.MustParseAddr("::1")).IsValid() {
		t.Error("wrong family accepted")
	}
}

func TestNeutral(t *testing.T) {
	for in, want := range map[string]string{
		"64:ff9b:1::/48":           "64:ff9b:1:fffe::/96",
		"2001:db8::/32":            "2001:db8:d246::/96",
		"2001:db8:1::/64":          "2001:db8:1::d245:0:0/96",
		"2001:db8:1:2::/64":        "2001:db8:1:2:0:d243::/96",
		"2001:db8:1:2:3::/80":      "2001:db8:1:2:3:d240::/96",
		"64:ff9b:1:8000::/49":      "64:ff9b:1:8000:0:7ffe::/96",
		"fd00:1234:5678:9abc::/64": "",
	} {
		p, err := Neutral(netip.MustParsePrefix(in))
		if err != nil || !p.ChecksumNeutral() || !netip.MustParsePrefix(in).Contains(p.Netip().Addr()) {
			t.Errorf("%s: %v, %v", in, p, err)
		}
		if want != "" && p.String() != want {
			t.Errorf("%s: %v, want %s", in, p, want)
		}
	}
	for in, want := range map[string]error{
		"2001:db8::/81":         ErrRange,
		"::/80":                 ErrRange, // ::ffff:0:0/96 is the IPv4-mapped range
		"2001:db8::1/64":        ErrHostBits,
		"10.0.0.0/8":            ErrFamily,
		"2001:db8:0:0:100::/72": ErrReservedByte,
	} {
		if p, err := Neutral(netip.MustParsePrefix(in)); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", in, p, err)
		}
	}
	if !WellKnownPrefix().ChecksumNeutral() { // 0064 + ff9b = ffff
		t.Error("the well-known prefix is not neutral")
	}
}

// The blocks of RFC 6890's registry that are not globally reachable, and
// their neighbours.
func TestGlobal(t *testing.T) {
	for _, s := range []string{"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/29", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
		"224.0.0.0/4", "240.0.0.0/4"} {
		p := netip.MustParsePrefix(s)
		first := from4(p.Addr())
		last := first | ^mask4(p.Bits())
		if global(first) || global(last) {
			t.Errorf("%v is global", p)
		}
		if s != "240.0.0.0/4" && s != "0.0.0.0/8" && s != "224.0.0.0/4" && s != "192.0.0.0/29" {
			if !global(first-1) || !global(last+1) {
				t.Errorf("neighbours of %v are not global", p)
			}
		}
	}
	for _, s := range []string{"192.0.0.9", "192.0.0.10", "192.0.1.0", "8.8.8.8", "1.1.1.1", "223.255.255.255"} {
		if !global(from4(netip.MustParseAddr(s))) {
			t.Errorf("%s is not global", s)
		}
	}
	if global(from4(netip.MustParseAddr("192.0.0.11"))) {
		t.Error("192.0.0.11 is global")
	}
	wkp, local := WellKnownPrefix(), must(ParsePrefix("64:ff9b:1::/96"))
	private := netip.MustParseAddr("10.0.0.8")
	if wkp.Allowed(private) || !local.Allowed(private) || local.IsWellKnown() {
		t.Error("RFC 6052 section 3.1, RFC 8215")
	}
}
