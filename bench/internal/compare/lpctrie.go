package compare

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var lpctrieRoutes = Section{
	Name: "lpctrie", Title: "lpctrie: IPv4 routes", Takes: 5 * time.Minute, Pieces: []string{"budget"}, Run: runLpctrie,
}

func runLpctrie(r *Report) error {
	if _, err := r.Check("every table answers like a map searched from the longest prefix on, before and after deletions", inBench,
		"go", "test", "-count=1", "-v", "-run", "TestPeersAnswerRight", "./lpctrie"); err != nil {
		return err
	}
	r.Modules(routeModules...)
	r.NotRun("netipds, tailscale/art, lpmtrie", "no released module with these tables")
	r.NotRun("Linux's own fib_trie", "its lookup cannot be timed from outside; the published figures are drawn with dashes, and lpctrie's trie is the same node by node")
	r.NotRun("DPDK rte_lpm and rte_fib, VPP, poptrie", "C and Rust: not callable without cgo")
	r.Printf("Processor time of the thread in slices of 32,768 lookups, taken in turns, the 10th percentile. In brackets: ratio to bart.Fast.\n")
	if !r.Quick {
		for _, part := range []struct{ name, text string }{
			{"peers", "The full table of 901,899 routes, inserted in random order; hot: 1,024 addresses, cold: a million, nanoseconds:"},
			{"targets", "The compiled forms and their goals, on the same table:"},
		} {
			out, err := r.Command(inBench, "go", "run", "./lpctrie/figures", "-only", part.name)
			if err != nil {
				return err
			}
			tables := markdownTables(out)
			if len(tables) == 0 {
				return fmt.Errorf("figures -only %s printed no table\n%s", part.name, tail(out))
			}
			r.Printf("\n%s\n\n%s\n", part.text, tables[0])
			if part.name == "targets" {
				if err := r.lpctrieBudget(tables[0]); err != nil {
					return err
				}
			}
		}
	}
	limit := "1000000"
	if r.Quick {
		limit = "1000"
	}
	if _, err := r.Command(inBench, "go", "run", "./lpctrie/figures", "-only", "scenarios", "-limit", limit, "-out", "%T"); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.temp, "scenarios.csv"))
	if err != nil {
		return err
	}
	all, err := parseScenarios(string(text))
	if err != nil {
		return fmt.Errorf("scenarios.csv: %w", err)
	}
	r.scenarioTable(all, []float64{1, .1, .01}, []string{"lpctrie.Table", "lpctrie.Snapshot", "lpctrie.Snapshot, fast", "bart.Fast"})
	published := recorded("Linux, published", 1, 20, 500000, 50)
	chained := func(s scenario) float64 { return s.chained }
	return r.routePlots(all, []routePlot{
		{file: "full", axes: Axes{Title: "IPv4 lookup, views of the full table", Y: "ns, each waiting for the one before"}, kind: "a", from: 1, value: chained, recorded: []Line{published}},
		{file: "subnets", axes: Axes{Title: "IPv4 lookup, /24s without gaps", Y: "ns, each waiting for the one before"}, kind: "b", density: 1, from: 1, value: chained, recorded: []Line{published}},
		{file: "hosts", axes: Axes{Title: "IPv4 lookup, random /32s in a /8", Y: "ns, each waiting for the one before"}, kind: "c", from: 1, value: chained, recorded: []Line{published}},
		// The fast layout takes 64 MiB whatever the number of routes.
		{file: "memory", axes: Axes{Title: "IPv4 memory, views of the full table", Y: "bytes per route"}, kind: "a", from: 1000, without: "lpctrie.Snapshot, fast", value: func(s scenario) float64 { return s.bytes },
			recorded: []Line{recorded("Linux, published: 128 MiB a million", 1000, 134.2, 1e6, 134.2), recorded("Linux 6.18, fib_triestat", 10022, 138.4, 901899, 124.1)}},
		{file: "insert", axes: Axes{Title: "IPv4 insertion or compilation, views of the full table", Y: "ns per route", LogY: true}, kind: "a", from: 100, value: func(s scenario) float64 { return s.insert },
			recorded: []Line{recorded("Linux, published: under 10 s for two million", 100, 5000, 1e6, 5000)}},
		{file: "depth", axes: Axes{Title: "Mean depth of the IPv4 trie, views of the full table", Y: "nodes above a leaf"}, kind: "a", from: 100, only: "lpctrie.Table",
			value: func(s scenario) float64 { return s.depth }, recorded: []Line{recorded("Linux 6.18, fib_triestat", 10022, 1.78, 901899, 2.22)}},
	})
}

// lpctrieBudget makes the sentence about the time that a packet has.
func (r *Report) lpctrieBudget(targets string) error {
	share := map[string]string{}
	for line := range strings.Lines(targets) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		if kind, ok := strings.CutPrefix(strings.TrimSpace(cells[1]), "lookups within 50 ns, "); ok {
			share[kind] = strings.TrimSpace(cells[2])
		}
	}
	if share["hot"] == "" || share["cold"] == "" {
		return fmt.Errorf("no share of lookups within 50 ns in\n%s", targets)
	}
	r.Piece("budget", fmt.Sprintf("A 10 Gbit/s link of small packets leaves 50 ns for each. Of single lookups in lpctrie's compact snapshot of a full table of\n"+
		"901,899 IPv4 routes %s take no longer with warm caches and %s with cold ones.\n", share["hot"], share["cold"]))
	return nil
}
