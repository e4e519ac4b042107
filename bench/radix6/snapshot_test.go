package radix6

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/gaissmai/bart"

	"signalbox.example/bench/routes"
	"signalbox.example/internal/routegen"
	"signalbox.example/radix6"
)

func keysOf(as []netip.Addr) []radix6.Key {
	keys := make([]radix6.Key, len(as))
	for i, a := range as {
		keys[i].Hi, keys[i].Lo, _ = radix6.KeyOf(a)
	}
	return keys
}

func bartContests(t *bart.Fast[uint32]) []Contest {
	return []Contest{
		{"bart.Fast", func(as []netip.Addr, _ []radix6.Key) (sum uint32) {
			for _, a := range as {
				v, _ := t.Lookup(a)
				sum += v
			}
			return sum
		}},
		{"bart.Fast chained", func(as []netip.Addr, _ []radix6.Key) (sum uint32) {
			for i := 0; i < len(as); {
				v, _ := t.Lookup(as[i])
				sum += v
				i = next(i, v)
			}
			return sum
		}},
	}
}

// apart puts a contestant between all others that leaves nothing of theirs in
// the processor's own caches: some of the contestants share a structure, and
// one that comes second would find it warm.
func apart(cs []routes.Contestant) (out []routes.Contestant) {
	waste := make([]uint64, 16<<20/8)
	for _, c := range cs {
		out = append(out, routes.Contestant{Name: "-", Run: func(int, int) {
			for i := 0; i < len(waste); i += 8 {
				waste[i]++
			}
		}}, c)
	}
	return out
}

// tables under test: a full table with distinct values, with 16 next hops,
// and random hosts.
func BenchmarkTargets(b *testing.B) {
	_, table, err := routes.Full()
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		for _, c := range []struct {
			name  string
			ps    []netip.Prefix
			value func(i int) uint32
		}{
			{"full table, distinct values", table, func(i int) uint32 { return uint32(i) }},
			{"full table, 16 next hops", table, func(i int) uint32 { return uint32(i) * 2654435761 >> 28 }},
			{"500,000 /128", routegen.Hosts128(500000), func(i int) uint32 { return uint32(i) }},
		} {
			vs := make([]uint32, len(c.ps))
			f := new(bart.Fast[uint32])
			for i, p := range c.ps {
				vs[i] = c.value(i)
				f.Insert(p, vs[i])
			}
			contests := bartContests(f)
			fmt.Printf("\n%s (%d routes)\n", c.name, len(c.ps))
			for _, l := range []radix6.Layout{radix6.Compact, radix6.Fast} {
				s, err := radix6.Compile(c.ps, vs, radix6.CompileOptions{Layout: l})
				if err != nil {
					b.Fatal(err)
				}
				name := [...]string{"compact", "fast"}[l]
				fmt.Printf("%s: %.1f B/route, %d entries, codes of %d bytes\n", name, float64(s.Bytes())/float64(len(c.ps)), s.Entries(), s.Width())
				contests = append(contests, Lookups(name, s, 256)...)
			}
			as := addresses(c.ps, cold)
			keys := keysOf(as)
			run := func(n, rounds int, alone bool) []float64 {
				cs := make([]routes.Contestant, len(contests))
				for i, c := range contests {
					cs[i] = routes.Contestant{Name: c.Name, Run: func(lo, hi int) { Sink += c.Run(as[lo:hi], keys[lo:hi]) }}
				}
				if alone {
					cs = apart(cs)
				}
				ns := routes.Measure(n, rounds, cs)
				if alone {
					for i := range contests {
						ns[i] = ns[2*i+1]
					}
				}
				return ns
			}
			h, k, e := run(hot, 48, false), run(cold, 48, false), run(cold, 48, true)
			fmt.Printf("%-24s %8s %7s %8s %7s %8s %7s\n", "ns a lookup", "hot", "ratio", "cold", "ratio", "evicted", "ratio")
			for i, c := range contests {
				base := 0
				if len(c.Name) > 8 && c.Name[len(c.Name)-7:] == "chained" {
					base = 1
				}
				fmt.Printf("%-24s %8.1f %7.2f %8.1f %7.3f %8.1f %7.3f\n", c.Name, h[i], h[i]/h[base], k[i], k[i]/k[base], e[i], e[i]/e[base])
			}
		}
	}
}
