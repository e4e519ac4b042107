package radix6

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"signalbox.example/internal/routegen"
	"signalbox.example/radix6"
)

// oracle is a map searched from the longest prefix on.
type oracle map[netip.Prefix]uint32

func (o oracle) lookup(a netip.Addr) (uint32, bool) {
	for bits := a.BitLen(); bits >= 0; bits-- {
		if p, err := a.Prefix(bits); err == nil {
			if v, ok := o[p]; ok {
				return v, true
			}
		}
	}
	return 0, false
}

// Within returns a random address inside a prefix.
func Within(r *rand.Rand, p netip.Prefix) netip.Addr {
	hi, lo, _ := radix6.KeyOf(p.Addr())
	n := p.Bits()
	return radix6.AddrOf(hi|r.Uint64()>>min(n, 64), lo|r.Uint64()>>max(0, n-64))
}

// Every adapter answers like the oracle, before and after deletions.
func TestPeersAnswerRight(t *testing.T) {
	table := append(routegen.IPv6(3000, 1), routegen.Hosts128(500)...)
	r := rand.New(rand.NewPCG(1, 1))
	for _, p := range Peers {
		t.Run(p.Name, func(t *testing.T) {
			o := oracle{}
			for i, q := range table {
				o[q] = uint32(i)
			}
			b := p.Build(table)
			check := func() {
				t.Helper()
				var as []netip.Addr
				var sum uint32
				for range 4000 {
					a := radix6.AddrOf(r.Uint64()>>2, r.Uint64())
					if r.IntN(4) > 0 {
						a = Within(r, table[r.IntN(len(table))])
					}
					v, ok := b.Lookup(a)
					want, wok := o.lookup(a)
					if ok != wok || v != want && !p.Contains {
						t.Fatalf("%v: %d %v, want %d %v", a, v, ok, want, wok)
					}
					as = append(as, a)
					switch {
					case p.Contains && ok:
						sum++
					case !p.Contains:
						sum += want
					}
				}
				if s, c := b.Sum(as), b.Chain(as); s != sum || c != sum {
					t.Errorf("sums %d and %d, want %d", s, c, sum)
				}
			}
			check()
			if b.Delete == nil {
				return
			}
			for _, q := range table[:1500] {
				b.Delete(q)
				delete(o, q)
			}
			check()
		})
	}
}

func TestScanStaysInItsRange(t *testing.T) {
	for _, s := range []Scenario{Subnets(100, .1), Hosts(10000), FullView(routegen.IPv6(1000, 1), 500)} {
		tree := Tree(s.Prefixes)
		n := 0
		as := s.Scan(func(a netip.Addr) bool {
			if n++; a.Compare(s.Start) < 0 || a.Compare(s.End) > 0 {
				t.Fatalf("%s: %v is not from %v to %v", s.Name, a, s.Start, s.End)
			}
			return tree.Contains(a)
		})
		if n > tries || len(as) != samples && n != tries {
			t.Errorf("%s: %d addresses after %d tries", s.Name, len(as), n)
		}
		if s.Name[0] == 'b' && len(as) != samples {
			t.Errorf("%s: only %d addresses", s.Name, len(as))
		}
	}
	if s := FullView(nil, 0); len(s.Scan(Tree(s.Prefixes).Contains)) != samples {
		t.Error("a single route")
	}
}
