package compare

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	peers "signalbox.example/bench/radix6"
	"signalbox.example/bench/routes"
	"signalbox.example/radix6"
)

var radix6Routes = Section{
	Name: "radix6", Title: "radix6: IPv6 routes", Run: runRadix6,
}

// compiled is the snapshot as one of the tables of the scenarios.
var compiled = peers.Peer{Name: "radix6.Snapshot", Build: func(ps []netip.Prefix) peers.Built {
	vs := make([]uint32, len(ps))
	for i := range vs {
		vs[i] = uint32(i)
	}
	s, err := radix6.Compile(ps, vs, radix6.CompileOptions{})
	if err != nil {
		panic(err)
	}
	return peers.Built{
		Lookup: s.Lookup,
		Sum: func(as []netip.Addr) (n uint32) {
			for _, a := range as {
				v, _ := s.Lookup(a)
				n += v
			}
			return n
		},
		Chain: func(as []netip.Addr) (n uint32) {
			for i := 0; i < len(as); {
				v, _ := s.Lookup(as[i])
				n += v
				i += 1 + int(v>>31) // the next waits for this one; v is below 2^31
			}
			return n
		},
		Keep: s,
	}
}}

var (
	peerLine   = regexp.MustCompile(`^(\S.{22,}?) +([0-9.]+) +(-?[0-9.]+) +([0-9.]+) \( *([0-9.]+)\) +([0-9.]+) \( *([0-9.]+)\) +([0-9.]+) \( *([0-9.]+)\) +([0-9.]+) \( *([0-9.]+)\)`)
	formsTitle = regexp.MustCompile(`^(.*) \(\d+ routes\)$`)
	formsLine  = regexp.MustCompile(`^(\S.*?) +([0-9.]+) +([0-9.]+) +([0-9.]+) +([0-9.]+)$`)
	bytesLine  = regexp.MustCompile(`^(\w+): ([0-9.]+) B/route`)
)

// parseTables reads what the benchmarks Peers and Targets of radix6 print.
func parseTables(out string) (tables [][]string, forms [][]string) {
	title := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if m := peerLine.FindStringSubmatch(line); m != nil {
			row := []string{strings.TrimSpace(m[1]), m[2], m[3]}
			for i := 4; i < len(m); i += 2 {
				row = append(row, m[i]+" ("+m[i+1]+")")
			}
			tables = append(tables, row)
		} else if m := formsTitle.FindStringSubmatch(line); m != nil {
			title = m[1]
		} else if m := bytesLine.FindStringSubmatch(line); m != nil && title != "" {
			forms = append(forms, []string{title + ", " + m[1] + ", bytes per route", m[2], "", "", ""})
		} else if m := formsLine.FindStringSubmatch(line); m != nil && title != "" && !strings.HasPrefix(line, "Benchmark") {
			forms = append(forms, []string{title + ", " + m[1], m[2], m[3], m[4], m[5]})
		}
	}
	return tables, forms
}

func runRadix6(r *Report) error {
	if _, err := r.Check("every table answers like a map searched from the longest prefix on, before and after deletions", inBench,
		"go", "test", "-count=1", "-v", "-run", "TestPeersAnswerRight|TestScan", "./radix6"); err != nil {
		return err
	}
	r.Modules(routeModules...)
	r.NotRun("netipds, tailscale/art", "no released module with these tables")
	r.NotRun("Linux's own ip6_fib", "its lookup cannot be timed from outside; the published figures are drawn with dashes, and radix6's tree has the same nodes")
	r.Printf("Processor time of the thread in slices of 32,768 lookups, taken in turns, the 10th percentile. In brackets: ratio to bart.Fast.\n")
	if !r.Quick {
		out, err := r.Command(inBench, "go", "test", "-run", "^$", "-bench", "Peers|Targets", "-benchtime", "1x", "./radix6")
		if err != nil {
			return err
		}
		tables, forms := parseTables(out)
		if len(tables) == 0 || len(forms) == 0 {
			return fmt.Errorf("the benchmarks of radix6 print %d and %d lines of figures\n%s", len(tables), len(forms), tail(out))
		}
		r.Printf("\nThe full table of 160,147 routes, inserted in random order; hot: 1,024 addresses, cold: a million, nanoseconds:\n")
		r.Table([]string{"", "insert ns", "bytes/route", "hot", "hot, chained", "cold", "cold, chained"}, tables)
		r.Printf("\nThe compiled forms beside bart.Fast:\n")
		r.Table([]string{"", "hot, ns", "to bart.Fast", "cold, ns", "to bart.Fast"}, forms)
	}
	_, table, err := routes.Full()
	if err != nil {
		return err
	}
	var scenarios []peers.Scenario
	views, subnets, hosts := peers.FullViews, []int{100, 1000, 10000, 40000, 100000, 500000}, []int{1000, 10000, 40000, 100000, 500000}
	densities, rounds := []float64{1, .1, .001}, 16
	if r.Quick {
		views, subnets, hosts, densities, rounds = []int{0, 1000}, []int{1000}, []int{1000}, []float64{1}, 2
	}
	for _, n := range views {
		scenarios = append(scenarios, peers.FullView(table, n))
	}
	for _, d := range densities {
		for _, n := range subnets {
			scenarios = append(scenarios, peers.Subnets(n, d))
		}
	}
	for _, n := range hosts {
		scenarios = append(scenarios, peers.Hosts(n))
	}
	csv := peers.Header + "\n"
	for i, s := range scenarios {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		r.Progress(fmt.Sprintf("%s: scenario %d of %d: %s, %d routes", r.place, i+1, len(scenarios), s.Name, len(s.Prefixes)))
		for _, result := range s.Run([]peers.Peer{peers.Ours, compiled, peers.BartFast}, rounds) {
			csv += result.String() + "\n"
		}
	}
	r.commands = append(r.commands, "go run ./cmd/compare -only radix6 # the scenarios, in its own process")
	all, err := parseScenarios(csv)
	if err != nil {
		return err
	}
	r.scenarioTable(all, []string{"radix6.Tree", "radix6.Snapshot", "bart.Fast"})
	published, budget := recorded("Linux, published", 1, 150, 40000, 450), recorded("50 ns: budget at 10 Gbit/s", 1, 50, 500000, 50)
	chained := func(s scenario) float64 { return s.chained }
	insert := func(s scenario) float64 { return s.insert }
	return r.routePlots(all, []routePlot{
		{file: "full", axes: Axes{Title: "IPv6 lookup, views of the full table", Y: "ns, each waiting for the one before"}, kind: "a", from: 1, value: chained, recorded: []Line{published, budget}},
		{file: "subnets", axes: Axes{Title: "IPv6 lookup, /48s with gaps, density 0.1", Y: "ns, each waiting for the one before"}, kind: "b", density: .1, from: 1, value: chained, recorded: []Line{budget}},
		{file: "hosts", axes: Axes{Title: "IPv6 lookup, random /128s", Y: "ns, each waiting for the one before"}, kind: "c", from: 1, value: chained, recorded: []Line{budget}},
		{file: "memory", axes: Axes{Title: "IPv6 memory, views of the full table", Y: "bytes per route", LogY: true}, kind: "a", from: 100, value: func(s scenario) float64 { return s.bytes },
			recorded: []Line{recorded("Linux, published: 20 MiB for 40,000", 100, 524, 160147, 524)}},
		{file: "insert", axes: Axes{Title: "IPv6 insertion or compilation, random /128s", Y: "ns per route", LogY: true}, kind: "c", from: 100, value: insert,
			recorded: []Line{recorded("Linux, published: 60 s for 500,000", 250000, 120000, 500000, 120000)}},
		{file: "depth", axes: Axes{Title: "Largest depth of the IPv6 tree, views of the full table", Y: "nodes"}, kind: "a", from: 100, only: "radix6.Tree",
			value: func(s scenario) float64 { return s.maxDepth }, recorded: []Line{recorded("Linux, published: 40 at 40,000", 39000, 40, 41000, 40)}},
	})
}
