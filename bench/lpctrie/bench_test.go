package lpctrie

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"signalbox.example/bench/routes"
	"signalbox.example/internal/routegen"
)

func fullTable(b testing.TB) []netip.Prefix {
	b.Helper()
	table, _, err := routes.Full()
	if err != nil {
		b.Fatal(err)
	}
	return table
}

// The benchmarks time by themselves, in turns, with the thread's CPU clock:
// run them with -benchtime 1x.

// BenchmarkPeers prints the comparison of all tables on the full Internet
// table, inserted in random order.
func BenchmarkPeers(b *testing.B) {
	rows := Compare(Shuffled(fullTable(b), 1), All, 16)
	fmt.Printf("\n%s\n", Markdown(rows, BartFast.Name))
	for _, r := range rows { // once more for benchstat
		b.Run("impl="+strings.ReplaceAll(r.Name, ", ", "-"), func(b *testing.B) {
			b.ReportMetric(0, "ns/op") // leaves it out
			b.ReportMetric(r.Insert, "insert-ns/route")
			b.ReportMetric(r.Bytes, "B/route")
			b.ReportMetric(r.Hot, "hot-ns/lookup")
			b.ReportMetric(r.HotChain, "hot-chained-ns/lookup")
			b.ReportMetric(r.ColdLookups, "cold-ns/lookup")
			b.ReportMetric(r.Chains, "cold-chained-ns/lookup")
		})
	}
}

// BenchmarkTargets prints the figures of the compiled forms beside their goals.
func BenchmarkTargets(b *testing.B) {
	table := fullTable(b)
	for range b.N {
		fmt.Printf("\n%s", TargetsHeader)
		for _, t := range Targets(table, 64) {
			fmt.Println(t)
		}
	}
}

// BenchmarkScenarios prints the scenarios of up to 100,000 routes as CSV.
func BenchmarkScenarios(b *testing.B) {
	table := fullTable(b)
	for range b.N {
		fmt.Printf("\n%s\n", Header)
		for _, s := range Scenarios(table, 100000) {
			for _, r := range s.Run(ScenarioPeers, 16) {
				fmt.Println(r)
			}
		}
	}
}

// Everything that the benchmarks and the figures are made of runs, on small
// tables.
func TestHarness(t *testing.T) {
	table := routegen.IPv4(500, 1)
	for _, r := range Compare(table, []Peer{Ours, BartFast, SnapshotCompact}, 1) {
		if r.Hot <= 0 || r.Chains <= 0 {
			t.Errorf("%+v", r)
		}
	}
	for _, s := range append(Scenarios(table, 500), Hosts(300), Subnets(200, .5)) {
		for _, r := range s.Run([]Peer{Ours, SnapshotCompact}, 1) {
			if r.Routes != len(s.Prefixes) || r.Lookups == 0 && s.Name != "c: /32" || len(r.String()) == 0 {
				t.Errorf("%+v", r)
			}
		}
	}
}

// The scan of the harness covers the range and stops at 5,000 hits.
func TestScan(t *testing.T) {
	s := FullView(nil, 0)
	as := s.Scan(func(netip.Addr) bool { return true })
	if len(as) != samples || as[0].String() != "1.0.0.0" || as[len(as)-1].String() < "223.2" {
		t.Errorf("%d addresses, %v to %v", len(as), as[0], as[len(as)-1])
	}
	tried := 0
	if as = s.Scan(func(netip.Addr) bool { tried++; return false }); len(as) != 0 || tried != tries {
		t.Errorf("%d addresses after %d tries", len(as), tried)
	}
}
