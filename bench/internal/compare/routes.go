package compare

import (
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/plotter"
)

// A scenario is one line of the CSV that the folders lpctrie and radix6 write
// of the scenarios with which Linux's lookup was measured in public.
type scenario struct {
	name, structure string // "a: full view"
	density         float64
	routes          float64
	depth, maxDepth float64
	independent     float64 // ns
	chained         float64
	median, p95     float64 // of single lookups
	insert, bytes   float64 // per route
}

// parseScenarios reads that CSV by the names of its columns.
func parseScenarios(text string) ([]scenario, error) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(records) < 2 {
		return nil, fmt.Errorf("no scenarios")
	}
	at := map[string]int{}
	for i, name := range records[0] {
		at[name] = i
	}
	var out []scenario
	for _, rec := range records[1:] {
		var s scenario
		for _, f := range []struct {
			column string
			to     *float64
		}{
			{"density", &s.density}, {"routes", &s.routes}, {"depth mean", &s.depth}, {"depth max", &s.maxDepth}, {"lookup ns", &s.independent},
			{"lookup chained ns", &s.chained}, {"single median", &s.median}, {"single p95", &s.p95},
			{"insert ns per route", &s.insert}, {"bytes per route", &s.bytes},
		} {
			i, ok := at[f.column]
			if !ok {
				return nil, fmt.Errorf("no column %q", f.column)
			}
			if *f.to, err = strconv.ParseFloat(rec[i], 64); err != nil {
				return nil, err
			}
		}
		s.name, s.structure = rec[at["scenario"]], rec[at["structure"]]
		out = append(out, s)
	}
	return out, nil
}

// curves makes a curve of each structure of the scenarios whose name begins
// with kind and which have this density (0: any), from so many routes on.
func curves(all []scenario, kind string, density, from float64, value func(scenario) float64) (lines []Line) {
	for _, s := range all {
		if !strings.HasPrefix(s.name, kind) || density > 0 && s.density != density || s.routes < from || value(s) <= 0 {
			continue
		}
		i := slices.IndexFunc(lines, func(l Line) bool { return l.Name == s.structure })
		if i < 0 {
			i, lines = len(lines), append(lines, Line{Name: s.structure})
		}
		lines[i].XY = append(lines[i].XY, plotter.XY{X: s.routes, Y: value(s)})
	}
	return lines
}

// scenarioTable shows the lookups of structures side by side, for three of
// the densities. Where none of the million addresses that the scan tries has
// a route there is nothing to show.
func (r *Report) scenarioTable(all []scenario, densities []float64, structures []string) {
	header := []string{"scenario, routes", "depth mean, max"}
	for _, s := range structures {
		header = append(header, s)
	}
	var rows [][]string
	for _, s := range all {
		if s.structure != structures[0] || s.chained <= 0 || s.density > 0 && !slices.Contains(densities, s.density) {
			continue
		}
		title := s.name
		if s.density > 0 {
			title += ", density " + strconv.FormatFloat(s.density, 'g', -1, 64)
		}
		row := []string{title + ", " + group(whole(s.routes)), fmt.Sprintf("%.1f, %.0f", s.depth, s.maxDepth)}
		for _, name := range structures {
			i := slices.IndexFunc(all, func(o scenario) bool {
				return o.name == s.name && o.density == s.density && o.routes == s.routes && o.structure == name
			})
			cell := "-"
			if i >= 0 && all[i].chained > 0 {
				cell = short(all[i].independent) + " / " + short(all[i].chained) + " / " + short(all[i].median)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	r.Printf("\nNanoseconds of a lookup in a loop / each waiting for the one before / median of single ones between two readings of the clock:\n")
	r.Table(header, rows)
}

// A routePlot is one picture of the scenarios.
type routePlot struct {
	file     string
	axes     Axes
	kind     string
	density  float64
	from     float64
	value    func(scenario) float64
	only     string // this structure alone
	without  string // not this one
	recorded []Line
}

func (r *Report) routePlots(all []scenario, plots []routePlot) error {
	for _, p := range plots {
		lines := curves(all, p.kind, p.density, p.from, p.value)
		lines = slices.DeleteFunc(lines, func(l Line) bool { return p.only != "" && l.Name != p.only || l.Name == p.without })
		if len(lines) == 0 {
			continue // a quick run has not all scenarios
		}
		p.axes.X, p.axes.LogX = "routes", true
		if err := r.Plot(p.file, p.axes.Title, drawLines(p.axes, append(lines, p.recorded...))); err != nil {
			return err
		}
	}
	return nil
}

// recorded makes a dashed line through figures that others published.
func recorded(name string, xy ...float64) Line {
	l := Line{Name: name, Recorded: true}
	for i := 0; i+1 < len(xy); i += 2 {
		l.XY = append(l.XY, plotter.XY{X: xy[i], Y: xy[i+1]})
	}
	return l
}

// markdownTables returns the lines of an output that are tables.
func markdownTables(out string) []string {
	var tables []string
	open := false
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "|") {
			open = false
			continue
		}
		if !open {
			tables = append(tables, "")
		}
		open = true
		tables[len(tables)-1] += line
	}
	return tables
}

var routeModules = []string{
	"github.com/gaissmai/bart", "github.com/kentik/patricia", "github.com/k-sone/critbitgo",
	"github.com/phemmer/go-iptrie", "github.com/infobloxopen/go-trees", "github.com/yl2chen/cidranger",
}
