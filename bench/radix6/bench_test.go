package radix6

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"

	"signalbox.example/bench/routes"
)

// Sizes of the sets of addresses: hot ones' routes fit the first-level caches,
// cold ones' no cache at all.
const (
	hot  = 1024
	cold = 1 << 20
)

func addresses(ps []netip.Prefix, n int) []netip.Addr {
	r := rand.New(rand.NewPCG(1, 77))
	out := make([]netip.Addr, n)
	for i := range out {
		out[i] = Within(r, ps[r.IntN(len(ps))])
	}
	return out
}

func shuffled(ps []netip.Prefix) []netip.Prefix {
	out := append([]netip.Prefix(nil), ps...)
	rand.New(rand.NewPCG(1, 78)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// BenchmarkPeers compares all tables on the full Internet table. Run it with
// -benchtime 1x: it times by itself, in turns, with the thread's CPU clock.
func BenchmarkPeers(b *testing.B) {
	_, table, err := routes.Full()
	if err != nil {
		b.Fatal(err)
	}
	ps := shuffled(table)
	as := addresses(ps, cold)
	type row struct {
		name          string
		insert, bytes float64
		ns, ratio     [4]float64 // hot, hot chained, cold, cold chained
	}
	build := func(p Peer) (r row, t Built) {
		r.name = p.Name
		r.bytes = heap(func() {
			r.insert = float64(routes.CPU(func() { t = p.Build(ps) })) / float64(len(ps))
		}) / float64(len(ps))
		return r, t
	}
	// measure fills in the times of tables that take turns, base among them.
	measure := func(rows []row, builts []Built, base int, rounds int) {
		for k := range 4 {
			cs := make([]routes.Contestant, len(builts))
			for i, x := range builts {
				run := x.Sum
				if k&1 != 0 {
					run = x.Chain
				}
				cs[i] = routes.Contestant{Name: rows[i].name, Run: func(lo, hi int) { Sink += run(as[lo:hi]) }}
			}
			for i, t := range routes.Measure([]int{hot, hot, cold, cold}[k], rounds, cs) {
				rows[i].ns[k] = t
			}
			for i := range rows {
				rows[i].ratio[k] = rows[i].ns[k] / rows[base].ns[k]
			}
		}
	}
	for range b.N {
		// The fast ones take turns with each other, each slow one with bart.Fast
		// for a few slices; only one of those is kept at a time, because a
		// collection that has to look at it takes long.
		var rows []row
		var builts []Built
		base := 0
		for _, p := range Peers {
			if !p.Slow {
				if p.Name == BartFast.Name {
					base = len(rows)
				}
				r, t := build(p)
				rows, builts = append(rows, r), append(builts, t)
			}
		}
		measure(rows, builts, base, 24)
		fast := builts[base]
		builts = nil
		for _, p := range Peers {
			if p.Slow {
				r, t := build(p)
				pair := []row{{name: BartFast.Name}, r}
				measure(pair, []Built{fast, t}, 0, 4)
				rows = append(rows, pair[1])
			}
		}
		fmt.Printf("\n%-24s %9s %8s %16s %16s %16s %16s\n", "160,147 routes", "insert ns", "B/route", "hot", "hot chained", "cold", "cold chained")
		for _, r := range rows {
			fmt.Printf("%-24s %9.0f %8.1f", r.name, r.insert, r.bytes)
			for k, t := range r.ns {
				fmt.Printf(" %8.1f (%5.2f)", t, r.ratio[k])
			}
			fmt.Println()
		}
		for _, r := range rows { // once more for benchstat
			b.Run("impl="+strings.ReplaceAll(r.name, ", ", "-"), func(b *testing.B) {
				b.ReportMetric(0, "ns/op") // leaves it out
				b.ReportMetric(r.insert, "insert-ns/route")
				b.ReportMetric(r.bytes, "B/route")
				b.ReportMetric(r.ns[0], "hot-ns/lookup")
				b.ReportMetric(r.ns[1], "hot-chained-ns/lookup")
				b.ReportMetric(r.ns[2], "cold-ns/lookup")
				b.ReportMetric(r.ns[3], "cold-chained-ns/lookup")
			})
		}
	}
}

// BenchmarkScenarios prints the three scenarios, at a few sizes, as CSV. The
// whole of them is drawn by the command in draw.
func BenchmarkScenarios(b *testing.B) {
	_, table, err := routes.Full()
	if err != nil {
		b.Fatal(err)
	}
	for range b.N {
		fmt.Println("\n" + Header)
		for _, s := range []Scenario{FullView(table, 0), FullView(table, 40000), FullView(table, 160147), Subnets(100, 1), Subnets(40000, .1), Subnets(500000, .001), Hosts(40000), Hosts(500000)} {
			for _, r := range s.Run([]Peer{Ours, OursPacked, BartFast}, 12) {
				fmt.Println(r)
			}
		}
	}
}
