// Command draw measures the three public scenarios of IPv6 route lookup and
// draws them: times of a lookup, depth, memory and time of insertion against
// the number of routes, as SVG, and all figures as CSV. Run it from the bench
// folder:
//
//	go run ./radix6/draw
package main

import (
	"errors"
	"flag"
	"fmt"
	"image/color"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	bench "signalbox.example/bench/radix6"
	"signalbox.example/bench/routes"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

func run(args []string, stderr io.Writer) int {
	fs := flag.NewFlagSet("draw", flag.ContinueOnError)
	fs.SetOutput(stderr)
	out := fs.String("out", filepath.Join("radix6", "plots"), "write to this `folder`")
	most := fs.Int("most", 500000, "largest number of `routes`; the public measurement went to 2,000,000")
	rounds := fs.Int("rounds", 8, "slices of 32,768 lookups per figure")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || fs.NArg() > 0 {
		return 2
	}
	if *most < 1 || *rounds < 1 {
		fmt.Fprintln(stderr, "draw: -most and -rounds begin at 1")
		return 2
	}
	if err := draw(*out, *most, *rounds, stderr); err != nil {
		fmt.Fprintln(stderr, "draw:", err)
		return 1
	}
	return 0
}

func draw(out string, most, rounds int, stderr io.Writer) error {
	_, table, err := routes.Full()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var all []bench.Result
	peers := []bench.Peer{bench.Ours, bench.OursSnapshot, bench.OursFast, bench.BartFast}
	for _, s := range scenarios(table, most) {
		fmt.Fprintf(stderr, "%s, density %g, %d routes\n", s.Name, s.Density, s.Routes)
		all = append(all, s.Run(peers, rounds)...)
	}
	var csv strings.Builder
	fmt.Fprintln(&csv, bench.Header)
	for _, r := range all {
		fmt.Fprintln(&csv, r)
	}
	if err := write(filepath.Join(out, "scenarios.csv"), []byte(csv.String())); err != nil {
		return err
	}
	lookup := func(r bench.Result) float64 { return r.Independent }
	kernel := map[string]plotter.XYs{
		// What was published of Linux: a near-empty table and 40,000 routes.
		"a": {{X: 1, Y: 150}, {X: 40000, Y: 450}},
	}
	for _, f := range []struct {
		file, title, y string
		scenario       string // first letter, or empty for all
		value          func(bench.Result) float64
		onlyTree       bool
		logY           bool
	}{
		{"lookup-a", "lookup, partial and full view", "ns", "a", lookup, false, false},
		{"lookup-b", "lookup, /48s of density 1, 0.1, 0.001", "ns", "b", lookup, false, false},
		{"lookup-c", "lookup, random /128s", "ns", "c", lookup, false, false},
		{"depth-mean", "mean depth of the radix tree", "edges", "", func(r bench.Result) float64 { return r.MeanDepth }, true, false},
		{"depth-max", "maximum depth of the radix tree", "edges", "", func(r bench.Result) float64 { return float64(r.MaxDepth) }, true, false},
		{"memory-a", "memory, partial and full view", "bytes per route", "a", func(r bench.Result) float64 { return r.BytesPerRoute }, false, true},
		{"memory-c", "memory, random /128s", "bytes per route", "c", func(r bench.Result) float64 { return r.BytesPerRoute }, false, true},
		{"insert-c", "insertion or compilation, random /128s", "seconds in all", "c", func(r bench.Result) float64 { return r.InsertNs * float64(r.Routes) / 1e9 }, false, false},
	} {
		if err := figure(filepath.Join(out, f.file+".svg"), f.title, f.y, f.scenario, all, f.value, f.onlyTree, f.logY, kernel); err != nil {
			return fmt.Errorf("%s: %w", f.file, err)
		}
	}
	return nil
}

func scenarios(table []netip.Prefix, most int) (out []bench.Scenario) {
	for _, n := range bench.FullViews {
		if n <= most {
			out = append(out, bench.FullView(table, n))
		}
	}
	for _, n := range []int{100, 1000, 10000, 40000, 100000, 500000, 1000000, 2000000} {
		if n > most {
			break
		}
		for _, d := range bench.Densities {
			out = append(out, bench.Subnets(n, d))
		}
		if n >= 10000 {
			out = append(out, bench.Hosts(n))
		}
	}
	return out
}

var colours = map[string]color.Color{
	bench.Ours.Name:         color.RGBA{0x1f, 0x4e, 0x9e, 0xff},
	bench.OursSnapshot.Name: color.RGBA{0x2a, 0x8c, 0x4a, 0xff},
	bench.OursFast.Name:     color.RGBA{0x8c, 0xb8, 0x2a, 0xff},
	bench.BartFast.Name:     color.RGBA{0xc2, 0x3b, 0x22, 0xff},
}

var dashes = map[float64][]vg.Length{.1: {vg.Points(6), vg.Points(3)}, .001: {vg.Points(2), vg.Points(3)}}

// figure draws the lines of one figure: a colour for each structure, a dash
// for each density.
func figure(file, title, y, scenario string, all []bench.Result, value func(bench.Result) float64, onlyTree, logY bool, kernel map[string]plotter.XYs) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = "routes", y
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	if logY {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	} else {
		p.Y.Min = 0
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	drawn := false
	type line struct {
		name    string
		density float64
		points  plotter.XYs
	}
	var lines []line
	for _, r := range all {
		if !strings.HasPrefix(r.Scenario, scenario) || onlyTree && r.Structure != bench.Ours.Name {
			continue
		}
		if r.Density != 0 && r.Density != 1 && dashes[r.Density] == nil {
			continue // too many lines; the CSV has them all
		}
		name := r.Structure
		if onlyTree {
			name = r.Scenario
		}
		if r.Density != 0 {
			name += fmt.Sprintf(" (%g)", r.Density)
		}
		at := 0
		for at < len(lines) && lines[at].name != name {
			at++
		}
		if at == len(lines) {
			lines = append(lines, line{name: name, density: r.Density})
		}
		if v := value(r); v > 0 && r.Routes > 0 {
			lines[at].points = append(lines[at].points, plotter.XY{X: float64(r.Routes), Y: v})
		}
	}
	for i, l := range lines {
		if len(l.points) == 0 {
			continue
		}
		g, dots, err := plotter.NewLinePoints(l.points)
		if err != nil {
			return err
		}
		structure, _, _ := strings.Cut(l.name, " (")
		g.Color = colours[structure]
		if onlyTree {
			g.Color = []color.Color{color.Black, colours[bench.Ours.Name], colours[bench.OursSnapshot.Name], colours[bench.BartFast.Name], colours[bench.OursFast.Name]}[i%5]
		}
		g.Width, g.Dashes = vg.Points(1.5), dashes[l.density]
		dots.Color, dots.Radius = g.Color, vg.Points(2)
		p.Add(g, dots)
		p.Legend.Add(l.name, g, dots)
		drawn = true
	}
	if !drawn { // no table is small enough; a logarithmic axis needs points
		return nil
	}
	if k := kernel[scenario]; k != nil {
		s, err := plotter.NewScatter(k)
		if err != nil {
			return err
		}
		s.Color, s.Radius = color.Black, vg.Points(4)
		p.Add(s)
		p.Legend.Add("Linux, as published", s)
	}
	w, err := p.WriterTo(7*vg.Inch, 4.5*vg.Inch, "svg")
	if err != nil {
		return err
	}
	var b strings.Builder
	if _, err := w.WriteTo(&b); err != nil {
		return err
	}
	return write(file, []byte(b.String()))
}

// write replaces a file at once.
func write(file string, b []byte) error {
	if err := os.WriteFile(file+".new", b, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
