package radix6

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"signalbox.example/internal/vectors"
)

func fullTable(tb testing.TB) []netip.Prefix {
	tb.Helper()
	var out []netip.Prefix
	for _, l := range vectors.Lines(tb, "tries/bgp-2025-10.prefixes.txt.gz") {
		if p := netip.MustParsePrefix(l); p.Addr().Is6() {
			out = append(out, p)
		}
	}
	return out
}

func inside(r *rand.Rand, p netip.Prefix) key {
	hi, lo, _ := addrKey(p.Addr())
	tail := key{r.Uint64(), r.Uint64()}
	m := tail.mask(p.Bits())
	return key{hi | (tail.hi ^ m.hi), lo | (tail.lo ^ m.lo)}
}

func BenchmarkTree(b *testing.B) {
	ps := fullTable(b)
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(ps), func(i, j int) { ps[i], ps[j] = ps[j], ps[i] })
	tr := New[uint32](SourceOff)
	for i, p := range ps {
		if err := tr.Add(Route{Prefix: p}, uint32(i), ModeAdd); err != nil {
			b.Fatal(err)
		}
	}
	keys := make([]key, 1<<20)
	addrs := make([]netip.Addr, len(keys))
	for i := range keys {
		keys[i] = inside(r, ps[r.IntN(len(ps))])
		addrs[i] = keys[i].addr()
	}
	b.Run("op=insert", func(b *testing.B) {
		tr := New[uint32](SourceOff)
		for i := range b.N {
			if i%len(ps) == 0 {
				tr = New[uint32](SourceOff)
			}
			tr.Add(Route{Prefix: ps[i%len(ps)]}, uint32(i), ModeAdd)
		}
		s := tr.Stats()
		b.ReportMetric(float64(s.Bytes)/float64(len(ps)), "B/route")
		b.ReportMetric(float64(s.Live)/float64(len(ps)), "liveB/route")
	})
	for _, packed := range []bool{false, true} {
		for _, set := range []struct {
			name string
			n    int
		}{{"hot", 1024}, {"cold", len(keys)}} {
			name := fmt.Sprintf("op=lookup/keys=%s/packed=%v/with=", set.name, packed)
			b.Run(name+"key", func(b *testing.B) {
				for i := range b.N {
					k := keys[i&(set.n-1)]
					tr.LookupKey(k.hi, k.lo)
				}
			})
			b.Run(name+"addr", func(b *testing.B) {
				for i := range b.N {
					tr.Lookup(addrs[i&(set.n-1)])
				}
			})
			b.Run(name+"dependent", func(b *testing.B) {
				x := uint32(0)
				for i := range b.N {
					k := keys[(i+int(x&1))&(set.n-1)]
					x, _ = tr.LookupKey(k.hi, k.lo)
				}
			})
		}
		tr.Pack()
	}
}
