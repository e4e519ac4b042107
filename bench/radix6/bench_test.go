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
		name           string
		insert, bytes  float64
		hot, hotChain  float64
		cold, coldchai float64
	}
	for range b.N {
		rows := make([]row, len(Peers))
		builts := make([]Built, len(Peers))
		for i, p := range Peers {
			rows[i].name = p.Name
			rows[i].bytes = heap(func() {
				rows[i].insert = float64(routes.CPU(func() { builts[i] = p.Build(ps) })) / float64(len(ps))
			}) / float64(len(ps))
		}
		measure := func(n, rounds int, chain bool) []float64 {
			cs := make([]routes.Contestant, len(Peers))
			for i, x := range builts {
				run := x.Sum
				if chain {
					run = x.Chain
				}
				cs[i] = routes.Contestant{Name: Peers[i].Name, Run: func(lo, hi int) { Sink += run(as[lo:hi]) }}
			}
			return routes.Measure(n, rounds, cs)
		}
		h, hc, c, cc := measure(hot, 24, false), measure(hot, 24, true), measure(cold, 32, false), measure(cold, 32, true)
		fast := 0
		for i := range Peers {
			if Peers[i].Name == BartFast.Name {
				fast = i
			}
		}
		fmt.Printf("\n%-24s %9s %8s %16s %16s %16s %16s\n", "160,147 routes", "insert ns", "B/route", "hot", "hot chained", "cold", "cold chained")
		for i, r := range rows {
			fmt.Printf("%-24s %9.0f %8.1f", r.name, r.insert, r.bytes)
			for _, t := range [][]float64{h, hc, c, cc} {
				fmt.Printf(" %8.1f (%5.2f)", t[i], t[i]/t[fast])
			}
			fmt.Println()
		}
		for i, r := range rows { // once more for benchstat
			b.Run("impl="+strings.ReplaceAll(r.name, ", ", "-"), func(b *testing.B) {
				b.ReportMetric(0, "ns/op") // leaves it out
				b.ReportMetric(r.insert, "insert-ns/route")
				b.ReportMetric(r.bytes, "B/route")
				b.ReportMetric(h[i], "hot-ns/lookup")
				b.ReportMetric(hc[i], "hot-chained-ns/lookup")
				b.ReportMetric(c[i], "cold-ns/lookup")
				b.ReportMetric(cc[i], "cold-chained-ns/lookup")
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
