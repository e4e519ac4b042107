package compare

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var radix6Routes = Section{
	Name: "radix6", Title: "radix6: IPv6 routes", Takes: 5 * time.Minute, Pieces: []string{"live", "budget"}, Run: runRadix6,
}

var (
	peerLine   = regexp.MustCompile(`^(\S.{22,}?) +([0-9.]+) +(-?[0-9.]+) +([0-9.]+) \( *([0-9.]+)\) +([0-9.]+) \( *([0-9.]+)\) +([0-9.]+) \( *([0-9.]+)\) +([0-9.]+) \( *([0-9.]+)\)`)
	formsTitle = regexp.MustCompile(`^(.*) \(\d+ routes\)$`)
	bytesLine  = regexp.MustCompile(`^(\w+): ([0-9.]+) B/route`)
)

// parseTables reads what the benchmarks Peers and Targets of radix6 print:
// the rows of the former, and the rows of the latter with their header; sizes
// are sentences about memory.
func parseTables(out string) (tables [][]string, header []string, forms [][]string, sizes []string) {
	title := ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		f := strings.Fields(line)
		if m := peerLine.FindStringSubmatch(line); m != nil {
			row := []string{strings.TrimSpace(m[1]), m[2], m[3]}
			for i := 4; i < len(m); i += 2 {
				row = append(row, m[i]+" ("+m[i+1]+")")
			}
			tables = append(tables, row)
		} else if m := formsTitle.FindStringSubmatch(line); m != nil {
			title = m[1]
		} else if m := bytesLine.FindStringSubmatch(line); m != nil && title != "" {
			sizes = append(sizes, title+", "+m[1]+": "+m[2])
		} else if rest, ok := strings.CutPrefix(line, "ns a lookup "); ok {
			header = append([]string{""}, strings.Fields(rest)...)
		} else if n := len(header) - 1; title != "" && n > 0 && len(f) > n {
			row := []string{title + ", " + strings.Join(f[:len(f)-n], " ")}
			for _, v := range f[len(f)-n:] {
				if _, err := strconv.ParseFloat(v, 64); err == nil {
					row = append(row, v)
				}
			}
			if len(row) == n+1 {
				forms = append(forms, row)
			}
		}
	}
	for i := range header {
		if header[i] == "ratio" {
			header[i] = "to bart.Fast"
		} else if i > 0 {
			header[i] += ", ns"
		}
	}
	return tables, header, forms, sizes
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
		tables, header, forms, sizes := parseTables(out)
		if len(tables) == 0 || len(forms) == 0 {
			return fmt.Errorf("the benchmarks of radix6 print %d and %d lines of figures\n%s", len(tables), len(forms), tail(out))
		}
		r.Printf("\nThe full table of 160,147 routes, inserted in random order; hot: 1,024 addresses, cold: a million, nanoseconds:\n")
		r.Table([]string{"", "insert ns", "bytes/route", "hot", "hot, chained", "cold", "cold, chained"}, tables)
		r.Printf("\nThe compiled forms beside bart.Fast. Bytes per route: %s.\n", strings.Join(sizes, "; "))
		r.Table(header, forms)
		if err := r.radix6Pieces(header, forms); err != nil {
			return err
		}
	}
	most, rounds := "500000", "4"
	if r.Quick {
		most, rounds = "10000", "1"
	}
	if _, err := r.Command(inBench, "go", "run", "./radix6/draw", "-most", most, "-rounds", rounds, "-out", "%T"); err != nil {
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
	r.scenarioTable(all, []float64{1, .1, .001}, []string{"radix6.Tree", "radix6.Snapshot", "radix6.Snapshot, fast", "bart.Fast"})
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

// formFigure returns a figure of the full table with distinct values, or "".
func formFigure(header []string, forms [][]string, form, column string) string {
	for _, f := range forms {
		if strings.Contains(f[0], "distinct values") && strings.HasSuffix(f[0], ", "+form) {
			if i := slices.Index(header, column+", ns"); i > 0 && i < len(f) {
				return f[i]
			}
		}
	}
	return ""
}

// radix6Pieces makes the sentence about the time that a packet has, and the
// figures of compilation and live tables.
func (r *Report) radix6Pieces(header []string, forms [][]string) error {
	hot, cold := formFigure(header, forms, "compact Addr chained", "hot"), formFigure(header, forms, "compact Addr chained", "evicted")
	batch := formFigure(header, forms, "compact batch of keys", "evicted")
	if hot == "" || cold == "" || batch == "" {
		return fmt.Errorf("no figures of the compact form in %q", forms)
	}
	r.Piece("budget", fmt.Sprintf("In radix6's compact snapshot of 160,147 IPv6 routes a lookup that waits for the one before takes %s ns with warm caches and\n"+
		"%s ns with cold ones, one of a batch %s ns with cold ones.\n", hot, cold, batch))

	out, err := r.Command(inBench, "go", "test", "-run", "^$", "-bench", "Compile|Live", "-benchtime", "1x", "./radix6")
	if err != nil {
		return err
	}
	var lines strings.Builder
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 1 && strings.Contains(line, ": ") && !strings.HasSuffix(f[0], ":") || strings.Contains(line, "B/route") || strings.HasPrefix(line, "publish: ") {
			lines.WriteString(line)
		}
	}
	if lines.Len() == 0 {
		return fmt.Errorf("no figures of compilation and live tables\n%s", tail(out))
	}
	r.Piece("live", "```\n"+lines.String()+"```\n")
	return nil
}
