package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot/plotter"
)

var sensitivity = Section{
	Name: "sensitivity", Title: "modes: how weak a signal may be", Needs: "dump1090-mutability",
	Takes: 2 * time.Minute, Pieces: []string{"more", "recordings", "falseframes"},
	Run: runSensitivity,
}

// Curves of receivers whose source cannot be had through a package manager,
// measured by this project in December 2026 on samples of the same recipe,
// but of another seed: per cent of 1,000 squitters (600 at offsets up to
// 500 kHz) at 2.4 Msps.
var recordedYield = map[string][]Line{
	"100": {
		{Name: "readsb 3.14 --fix, recorded", Recorded: true, XY: plotter.XYs{{X: 8, Y: .3}, {X: 9, Y: 4.2}, {X: 10, Y: 24.6}, {X: 12, Y: 88.2}, {X: 14, Y: 99.6}, {X: 17, Y: 100}}},
		{Name: "stream1090 12 MHz -q, recorded", Recorded: true, XY: plotter.XYs{{X: 7, Y: 1.5}, {X: 8, Y: 12.7}, {X: 9, Y: 59.7}, {X: 10, Y: 82.7}, {X: 12, Y: 96.7}, {X: 14, Y: 96.3}, {X: 17, Y: 96.8}}},
	},
	"500": {
		{Name: "readsb 3.14 --fix, recorded", Recorded: true, XY: plotter.XYs{{X: 8, Y: 0}, {X: 10, Y: 12.2}, {X: 12, Y: 54.5}, {X: 14, Y: 82.5}, {X: 20, Y: 100}}},
		{Name: "stream1090 12 MHz -q, recorded", Recorded: true, XY: plotter.XYs{{X: 8, Y: .3}, {X: 10, Y: 21.5}, {X: 12, Y: 43.3}, {X: 14, Y: 51.3}, {X: 20, Y: 68.7}}},
	},
}

// A yield is a table of examples/sensitivity.
type yield struct {
	Series  string // "plain: squitters ..."
	Columns []string
	DB      []float64
	Rows    [][]string // as printed: "97.0" or "97.0 (1!)" where one was wrong
	Half    []string
}

var wrong = regexp.MustCompile(`\((\d+)!\)`)

// parseYield reads the output of examples/sensitivity.
func parseYield(out string) (all []yield, err error) {
	lines := strings.Split(out, "\n")
	for i := 0; i+3 < len(lines); i++ {
		if !strings.HasPrefix(lines[i+2], "dB ") {
			continue
		}
		y := yield{Series: lines[i], Columns: strings.Fields(lines[i+2])[1:]}
		for i += 3; i < len(lines) && lines[i] != ""; i++ {
			f := strings.Fields(strings.NewReplacer("dB", "", " (", "(").Replace(lines[i]))
			if len(f) != len(y.Columns)+1 {
				return nil, fmt.Errorf("not a row of %q: %q", y.Columns, lines[i])
			}
			if f[0] == "half" {
				y.Half = f[1:]
				continue
			}
			db, err := strconv.ParseFloat(f[0], 64)
			if err != nil {
				return nil, err
			}
			y.DB, y.Rows = append(y.DB, db), append(y.Rows, f[1:])
		}
		all = append(all, y)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no table in\n%s", tail(out))
	}
	return all, nil
}

// lines returns the table's columns as curves.
func (y yield) lines() (lines []Line) {
	for c, name := range y.Columns {
		l := Line{Name: implementation(name)}
		for i, row := range y.Rows {
			v, _ := strconv.ParseFloat(wrong.ReplaceAllString(row[c], ""), 64)
			l.XY = append(l.XY, plotter.XY{X: y.DB[i], Y: v})
		}
		lines = append(lines, l)
	}
	return lines
}

func implementation(column string) string {
	if column == "dump1090" {
		return "dump1090-mutability --fix"
	}
	return "signalbox, " + column
}

func runSensitivity(r *Report) error {
	if _, err := r.Check("both receivers find strong squitters and nothing else", inBench, "go", "test", "-count=1", "-v", "-run", "TestAdapters", "./modes"); err != nil {
		return err
	}
	if has("dump1090-mutability") {
		r.Packages("dump1090-mutability")
	} else {
		r.NotRun("dump1090-mutability", "not installed")
	}
	r.NotRun("readsb, stream1090", "no package here; the dashed curves were recorded earlier, on samples of the same recipe")
	r.NotRun("dump1090-fa, rs1090, dump1090_rs, gr-air-modes", "no working package here")
	n, snr := "1000", "5,6,7,8,9,10,11,12,14,17,20"
	if r.Quick {
		n, snr = "60", "6,8,12"
	}
	r.Printf("Per cent of the messages found in synthetic samples (2.4 Msps, 8 bits) by signal-to-noise ratio in dB.\n" +
		"In brackets: frames that nobody sent. Half is the ratio at which half of the messages are found.\n")
	for _, offset := range []string{"100", "500"} {
		out, err := r.Command(inRoot, "go", "run", "./examples/sensitivity", "-n", n, "-snr", snr, "-seed", "7", "-offset", offset, "-series", "plain")
		if err != nil {
			return err
		}
		ys, err := parseYield(out)
		if err != nil {
			return err
		}
		r.Table(ys[0].table("Squitters, carriers up to " + offset + " kHz off"))
		lines := append(ys[0].lines(), recordedYield[offset]...)
		axes := Axes{Title: "Squitters found, carriers up to " + offset + " kHz off", X: "signal to noise, dB", Y: "per cent", YMax: 102, LegendLow: true}
		if err := r.Plot(offset+"khz", axes.Title, drawLines(axes, lines)); err != nil {
			return err
		}
	}
	if r.Quick {
		return nil
	}
	out, err := r.Command(inRoot, "go", "run", "./examples/sensitivity", "-n", "500", "-snr", "7,8,9,10,12,14,17", "-seed", "7",
		"-series", "smear,multipath,overlap,allcall-known,short,long")
	if err != nil {
		return err
	}
	ys, err := parseYield(out)
	if err != nil {
		return err
	}
	r.Printf("\nOther kinds of signals, each up to 100 kHz off, 500 messages:\n")
	for _, y := range ys {
		r.Table(y.table(y.Series))
	}
	return r.demodPieces()
}

// demodPieces makes what the page about the demodulator shows besides.
func (r *Report) demodPieces() error {
	more := ""
	for _, c := range []struct{ title, flags string }{
		{"up to 1,000 kHz off", "-n 500 -snr 8,9,10,11,12,14,17,20 -offset 1000 -series plain"},
		{"2.0 Msps, up to 100 kHz off", "-n 500 -snr 6,7,8,9,10,12,14,20 -rate 2000000 -series plain"},
		{"up to 100 kHz off", "-n 250 -snr 8,10,12,16,20 -series droop,dc,imbalance,clip,drop,overlap-weak,allcall"},
	} {
		out, err := r.Command(inRoot, append([]string{"go", "run", "./examples/sensitivity", "-seed", "7"}, strings.Fields(c.flags)...)...)
		if err != nil {
			return err
		}
		ys, err := parseYield(out)
		if err != nil {
			return err
		}
		for _, y := range ys {
			more += table(y.table(y.Series+"; "+c.title)) + "\n"
		}
	}
	r.Piece("more", strings.TrimSuffix(more, "\n"))

	out, err := r.Check("recordings give the agreed frames", inRoot, "SIGNALBOX_REQUIRE=vectors", "go", "test", "-count=1", "-v", "-run", "^TestModes1$", "./modes/demod")
	if err != nil {
		return err
	}
	var rows [][]string
	agreed := ""
	for line := range strings.Lines(out) {
		if m := recordingLine.FindStringSubmatch(line); m != nil {
			name := m[1]
			if m[2] == "2" {
				name += ", `-repair 1`"
			}
			rows, agreed = append(rows, []string{name, m[3], m[4]}), m[5]
		}
	}
	if rows == nil {
		return fmt.Errorf("no figures in the log of TestModes1\n%s", tail(out))
	}
	r.Piece("recordings", table([]string{"modes1.bin", "messages", "of " + agreed + " frames that two receivers agree on"}, rows))

	out, err = r.Check("noise gives no frame, signals at most one in 50,000 that nobody sent", inRoot, "SIGNALBOX_REQUIRE=noise,falseframes",
		"go", "test", "-count=1", "-v", "-run", "IntegrationNoise|IntegrationFalseFrames", "./modes/demod")
	if err != nil {
		return err
	}
	noise, wrong := noiseLine.FindStringSubmatch(out), falseLine.FindStringSubmatch(out)
	if noise == nil || wrong == nil {
		return fmt.Errorf("no figures in the log of the test of false frames\n%s", tail(out))
	}
	r.Piece("falseframes", fmt.Sprintf("%s million samples of noise with 50 known addresses: no frame at any effort. Signals of 7 to 20 dB, three ranges of carrier\n"+
		"offset, 2.0 and 2.4 Msps, every kind of reply, overlapping pairs: %s of %s accepted frames were not sent.\n", noise[1], group(wrong[1]), group(wrong[2])))
	return nil
}

var (
	recordingLine = regexp.MustCompile(`effort (\w+), repair (\d+): (\d+) messages, \d+ distinct, (\d+) of (\d+) agreed`)
	noiseLine     = regexp.MustCompile(`(\d+) million samples`)
	falseLine     = regexp.MustCompile(`(\d+) of (\d+) accepted frames were not sent`)
)

// table returns header and rows.
func (y yield) table(title string) ([]string, [][]string) {
	header := []string{title}
	for _, db := range y.DB {
		header = append(header, strconv.FormatFloat(db, 'g', -1, 64))
	}
	header = append(header, "half")
	var rows [][]string
	for c, name := range y.Columns {
		row := []string{implementation(name)}
		for i := range y.DB {
			row = append(row, strings.NewReplacer("(", " (", "!", "").Replace(y.Rows[i][c]))
		}
		half := "-"
		if c < len(y.Half) {
			half = y.Half[c]
		}
		rows = append(rows, append(row, half))
	}
	return slices.Clip(header), rows
}
