package nat64

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// slowEAM is the EAM table as RFC 7757 section 3.3 tells it: look at every
// entry, take the longest match, move the suffix bit by bit.
type slowEAM []EAM

func bit(b []byte, i int) byte { return b[i/8] >> (7 - i%8) & 1 }

func setBit(b []byte, i int, v byte) {
	b[i/8] = b[i/8]&^(1<<(7-i%8)) | v<<(7-i%8)
}

func (s slowEAM) to6(v4 netip.Addr) (netip.Addr, bool) {
	best := -1
	for i, e := range s {
		if e.V4.Contains(v4) && (best < 0 || e.V4.Bits() > s[best].V4.Bits()) {
			best = i
		}
	}
	if best < 0 {
		return netip.Addr{}, false
	}
	e := s[best]
	in, out := v4.AsSlice(), e.V6.Addr().AsSlice()
	for i := e.V4.Bits(); i < 32; i++ {
		setBit(out, e.V6.Bits()+i-e.V4.Bits(), bit(in, i))
	}
	a, _ := netip.AddrFromSlice(out)
	return a, true
}

func (s slowEAM) to4(v6 netip.Addr) (netip.Addr, bool) {
	best := -1
	for i, e := range s {
		if e.V6.Contains(v6) && (best < 0 || e.V6.Bits() > s[best].V6.Bits()) {
			best = i
		}
	}
	if best < 0 {
		return netip.Addr{}, false
	}
	e := s[best]
	in, out := v6.AsSlice(), e.V4.Addr().AsSlice()
	for i := e.V4.Bits(); i < 32; i++ {
		setBit(out, i, bit(in, e.V6.Bits()+i-e.V4.Bits()))
	}
	a, _ := netip.AddrFromSlice(out)
	return a, true
}

// RFC 7757 section 3.2, figure 2: the examples of the RFC.
func TestEAMExamples(t *testing.T) {
	list := []EAM{
		{netip.MustParsePrefix("2001:db8:aaaa::/128"), netip.MustParsePrefix("192.0.2.1/32")},
		{netip.MustParsePrefix("2001:db8:bbbb::b/128"), netip.MustParsePrefix("192.0.2.2/32")},
		{netip.MustParsePrefix("2001:db8:cccc::/124"), netip.MustParsePrefix("192.0.2.16/28")},
		{netip.MustParsePrefix("2001:db8:dddd::/64"), netip.MustParsePrefix("192.0.2.128/26")},
		{netip.MustParsePrefix("2001:db8:eeee::/64"), netip.MustParsePrefix("192.0.2.192/29")},
		{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("0.0.0.0/0")},
	}
	tr := must(New(Config{EAM: list}))
	for _, x := range [][2]string{
		{"192.0.2.1", "2001:db8:aaaa::"},
		{"192.0.2.2", "2001:db8:bbbb::b"},
		{"192.0.2.16", "2001:db8:cccc::"},
		{"192.0.2.24", "2001:db8:cccc::8"},
		{"192.0.2.31", "2001:db8:cccc::f"},
		{"192.0.2.128", "2001:db8:dddd::"},
		{"192.0.2.152", "2001:db8:dddd:0:6000::"},
		{"192.0.2.183", "2001:db8:dddd:0:dc00::"},
		{"192.0.2.191", "2001:db8:dddd:0:fc00::"},
		{"192.0.2.193", "2001:db8:eeee:0:2000::"},
		{"198.51.100.4", "64:ff9b::c633:6404"},
	} {
		v4, v6 := netip.MustParseAddr(x[0]), netip.MustParseAddr(x[1])
		if got, by := tr.To6(v4); got != v6 || by != ByEAM {
			t.Errorf("%v is %v by %v, want %v", v4, got, by, v6)
		}
		if got, by := tr.To4(v6); got != v4 || by != ByEAM {
			t.Errorf("%v is %v by %v, want %v", v6, got, by, v4)
		}
	}
	// Surplus suffix bits are ignored.
	if got, _ := tr.To4(netip.MustParseAddr("2001:db8:eeee:0:3fff::1")); got.String() != "192.0.2.193" {
		t.Errorf("surplus bits: %v", got)
	}
}

func randomEAM(r *rand.Rand, n int) []EAM {
	var list []EAM
	seen := map[netip.Prefix]bool{}
	for len(list) < n {
		n4 := r.IntN(33)
		n6 := r.IntN(128 - (32 - n4) + 1)
		if r.IntN(3) > 0 { // the usual lengths, close together
			n4, n6 = 24+r.IntN(9), 96+24+r.IntN(9)
			n6 = min(n6, 128-(32-n4))
		}
		// Few distinct bits, so that entries nest.
		a4 := r.Uint32() & 0x03c0c3ff
		a6 := addr6{0x20010db8<<32 | r.Uint64()&0x81, r.Uint64() & 0xc00000000000c3ff}
		e := EAM{netip.PrefixFrom(a6.netip(), n6).Masked(), netip.PrefixFrom(addr4(a4), n4).Masked()}
		if seen[e.V4] || seen[e.V6] {
			if r.IntN(50) == 0 {
				n--
			}
			continue
		}
		seen[e.V4], seen[e.V6] = true, true
		list = append(list, e)
	}
	return list
}

func TestEAMAgainstSlowTable(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	tables := 200
	if testing.Short() {
		tables = 20
	}
	for range tables {
		list := randomEAM(r, 1+r.IntN(120))
		tr := must(New(Config{EAM: list}))
		slow := slowEAM(list)
		for range 300 {
			v4 := addr4(r.Uint32() & 0x03c0c3ff)
			got, by := tr.To6(v4)
			if want, ok := slow.to6(v4); got != want || (by == ByEAM) != ok {
				t.Fatalf("%v is %v, want %v\n%v", v4, got, want, list)
			}
			v6 := addr6{0x20010db8<<32 | r.Uint64()&0x81, r.Uint64() & 0xc00000000000c3ff}.netip()
			got, by = tr.To4(v6)
			if want, ok := slow.to4(v6); got != want || (by == ByEAM) != ok {
				t.Fatalf("%v is %v, want %v\n%v", v6, got, want, list)
			}
		}
	}
}

func TestEAMErrors(t *testing.T) {
	p := netip.MustParsePrefix
	for _, x := range []struct {
		list []EAM
		want error
	}{
		{[]EAM{{p("2001:db8::/121"), p("10.0.0.0/24")}}, ErrSuffix},
		{[]EAM{{p("2001:db8::1/120"), p("10.0.0.0/24")}}, ErrHostBits},
		{[]EAM{{p("2001:db8::/120"), p("10.0.0.1/24")}}, ErrHostBits},
		{[]EAM{{p("10.0.0.0/24"), p("2001:db8::/120")}}, ErrFamily},
		{[]EAM{{}}, ErrFamily},
		{[]EAM{{p("::ffff:10.0.0.0/120"), p("10.0.0.0/24")}}, ErrFamily},
		{[]EAM{{p("2001:db8::/120"), p("10.0.0.0/24")}, {p("2001:db8::/120"), p("10.0.1.0/24")}}, ErrDuplicate},
		{[]EAM{{p("2001:db8::/120"), p("10.0.0.0/24")}, {p("2001:db8:1::/120"), p("10.0.0.0/24")}}, ErrDuplicate},
	} {
		_, err := New(Config{EAM: x.list})
		var e *ConfigError
		if !errors.Is(err, x.want) || !errors.As(err, &e) {
			t.Errorf("%v: %v, want %v", x.list, err, x.want)
		}
	}
	// Entries within others are legal (NICMx/Jool#160).
	if _, err := New(Config{EAM: []EAM{{p("2001:db8::/64"), p("10.0.0.0/8")}, {p("2001:db8::/120"), p("10.0.0.0/24")}}}); err != nil {
		t.Error(err)
	}
}
