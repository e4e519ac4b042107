// Command figures measures everything about lpctrie that the README beside it
// shows: it prints the tables, and writes scenarios.csv and the plots as SVG
// into a folder.
//
//	go run ./lpctrie/figures -out lpctrie
package main

import (
	"errors"
	"flag"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"signalbox.example/bench/lpctrie"
	"signalbox.example/bench/routes"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("figures", flag.ContinueOnError)
	fs.SetOutput(stderr)
	out := fs.String("out", ".", "write CSV and SVG files into this `folder`")
	limit := fs.Int("limit", 1000000, "leave out scenarios with more than `n` routes")
	only := fs.String("only", "peers,targets,scenarios", "parts to measure")
	fs.Usage = func() {
		fmt.Fprintln(stderr, "usage: figures [-out folder] [-limit n] [-only parts]\n\nMeasures lpctrie and its peers; takes some minutes.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || fs.NArg() > 0 {
		return 2
	}
	if err := measure(*out, *limit, *only, stdout); err != nil {
		fmt.Fprintf(stderr, "figures: %v\n", err)
		return 1
	}
	return 0
}

func measure(out string, limit int, only string, stdout io.Writer) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	table, _, err := routes.Full()
	if err != nil {
		return err
	}
	for _, part := range strings.Split(only, ",") {
		switch part {
		case "peers":
			rows := lpctrie.Compare(lpctrie.Shuffled(table, 1), lpctrie.All, 16)
			fmt.Fprintf(stdout, "%s\n", lpctrie.Markdown(rows, lpctrie.BartFast.Name))
		case "targets":
			fmt.Fprint(stdout, lpctrie.TargetsHeader)
			for _, t := range lpctrie.Targets(table, 64) {
				fmt.Fprintln(stdout, t)
			}
			fmt.Fprintln(stdout)
		case "scenarios":
			var results []lpctrie.Result
			csv := lpctrie.Header + "\n"
			for _, s := range lpctrie.Scenarios(table, limit) {
				for _, r := range s.Run(lpctrie.ScenarioPeers, 24) {
					results = append(results, r)
					csv += r.String() + "\n"
				}
			}
			if err := write(filepath.Join(out, "scenarios.csv"), []byte(csv)); err != nil {
				return err
			}
			if err := draw4(out, results); err != nil {
				return err
			}
		default:
			return fmt.Errorf("no part %q", part)
		}
	}
	return nil
}

// write replaces a file in one step.
func write(path string, b []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

// A series is one line of a plot.
type series struct {
	name   string
	points plotter.XYs
}

// draw4 makes the plots: lookup, depth, memory and insertion against the number
// of routes.
func draw4(out string, rs []lpctrie.Result) error {
	for _, f := range []struct {
		file, title, y string
		scenario       string
		value          func(r lpctrie.Result) float64
		known          []series // figures of the kernel
	}{
		{"lookup-full.svg", "Lookup, views of the full table", "ns per lookup, dependent", "a", func(r lpctrie.Result) float64 { return r.Chained }, nil},
		{"lookup-subnets.svg", "Lookup, /24s without gaps", "ns per lookup, dependent", "b", func(r lpctrie.Result) float64 { return r.Chained }, nil},
		{"lookup-hosts.svg", "Lookup, random /32s in a /8", "ns per lookup, dependent", "c", func(r lpctrie.Result) float64 { return r.Chained }, nil},
		{"memory.svg", "Memory, views of the full table", "bytes per route", "a", func(r lpctrie.Result) float64 { return r.BytesPerRoute },
			[]series{{"Linux 6.18 (fib_triestat)", plotter.XYs{{X: 10022, Y: 1355 * 1024. / 10022}, {X: 901899, Y: 109294 * 1024. / 901899}}}}},
		{"insert.svg", "Insertion, or compilation, of views of the full table", "ns per route", "a", func(r lpctrie.Result) float64 { return r.InsertNs }, nil},
		{"depth.svg", "Mean depth of the trie, views of the full table", "tnodes above a leaf", "a", func(r lpctrie.Result) float64 { return r.MeanDepth },
			[]series{{"Linux 6.18", plotter.XYs{{X: 10022, Y: 1.78}, {X: 901899, Y: 2.22}}}}},
	} {
		var lines []series
		at := map[string]int{}
		for _, r := range rs {
			if r.Scenario[:1] != f.scenario || r.Routes < 100 || f.scenario == "b" && r.Density != 1 {
				continue
			}
			name := r.Structure
			if f.file == "depth.svg" {
				if name != lpctrie.Ours.Name {
					continue
				}
			} else if f.file == "memory.svg" && name == lpctrie.SnapshotFast.Name {
				continue // 48 MiB whatever the number
			}
			if _, ok := at[name]; !ok {
				at[name] = len(lines)
				lines = append(lines, series{name: name})
			}
			l := &lines[at[name]]
			l.points = append(l.points, plotter.XY{X: float64(r.Routes), Y: f.value(r)})
		}
		lines = append(lines, f.known...)
		if len(lines) == 0 {
			continue
		}
		if err := plotLines(filepath.Join(out, f.file), f.title, f.y, lines); err != nil {
			return err
		}
	}
	return nil
}

var colors = []color.RGBA{{31, 119, 180, 255}, {44, 160, 44, 255}, {148, 103, 189, 255}, {214, 39, 40, 255}, {120, 120, 120, 255}}

func plotLines(path, title, y string, lines []series) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, "routes", y
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	top := 0.
	for i, s := range lines {
		l, points, err := plotter.NewLinePoints(s.points)
		if err != nil {
			return err
		}
		l.Color, points.Color = colors[i%len(colors)], colors[i%len(colors)]
		l.Width, points.Shape, points.Radius = vg.Points(1.5), draw.CircleGlyph{}, vg.Points(2.5)
		p.Add(l, points)
		p.Legend.Add(s.name, l, points)
		for _, xy := range s.points {
			top = max(top, xy.Y)
		}
	}
	p.Y.Max = top * 1.35 // room for the legend
	w, err := p.WriterTo(16*vg.Centimeter, 10*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	var b strings.Builder
	if _, err := w.WriteTo(&b); err != nil {
		return err
	}
	return write(path, []byte(b.String()))
}
