package lpctrie

import (
	"math/rand/v2"
	"net/netip"
	"testing"

	"signalbox.example/internal/routegen"
	"signalbox.example/lpctrie"
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

// Every adapter answers like the oracle, before and after deletions.
func TestPeersAnswerRight(t *testing.T) {
	table := routegen.IPv4(3000, 1)
	r := rand.New(rand.NewPCG(1, 1))
	for _, p := range All {
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
				for range 5000 {
					a := lpctrie.AddrOf(r.Uint32())
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
