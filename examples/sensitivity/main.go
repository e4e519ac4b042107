// Command sensitivity measures how many Mode S replies the demodulator finds
// in signals of known strength: a table of per cent found by signal-to-noise
// ratio and effort. The signals are made on the spot, from another seed each
// time it runs. Where dump1090-mutability is installed, it gets the same
// samples and a column of its own.
//
//	sensitivity                                 centred carriers at 2.4 Msps
//	sensitivity -series all -seeds 5            every kind of impairment
//	sensitivity -offset 1000 -snr 8:16:1 -svg curve.svg
//	sensitivity -json                           the figures for a script
package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"signalbox.example/modes"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/synth"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// errUsage marks errors of the command line, status 2.
var errUsage = errors.New("usage")

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	out := &sticky{w: stdout}
	err := measure(args, out)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		err = out.err
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "sensitivity: %s\n", strings.TrimPrefix(err.Error(), "usage: "))
		return 2
	}
	fmt.Fprintf(stderr, "sensitivity: %v\n", err)
	return 1
}

// sticky keeps the first error of a writer, so that it is looked at once.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) Write(b []byte) (n int, err error) {
	if s.err == nil {
		n, s.err = s.w.Write(b)
	}
	return n, s.err
}

// options are the flags after they were checked.
type options struct {
	messages int
	snr      []float64
	offset   float64 // Hz
	rate     int
	seed     uint64
	seeds    int
	format   demod.Format
	series   []string
	efforts  []demod.Effort
	peer     string // dump1090-mutability, or empty
	svg      string
	json     bool
}

func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errUsage, fmt.Sprintf(format, args...))
}

func parse(args []string, stdout io.Writer) (options, error) {
	fs := flag.NewFlagSet("sensitivity", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	n := fs.Int("n", 1000, "messages of each row and seed")
	snr := fs.String("snr", "6:14:1", "signal-to-noise ratios in dB: FROM:TO:STEP, or a list with commas")
	offset := fs.Float64("offset", 100, "largest carrier offset in kHz; each message gets one up to it")
	rate := fs.Int("rate", demod.DefaultRate, "samples per second")
	seed := fs.Uint64("seed", 0, "first seed; 0 takes one from the clock")
	seeds := fs.Int("seeds", 1, "how many seeds, one after the other, make a row")
	format := fs.String("format", "uc8", "sample format: uc8, cs8, sc16, sc16q11, cf32")
	series := fs.String("series", "plain", "kind of signals, several with commas, or all:\n"+seriesHelp())
	effort := fs.String("effort", "fast,default,max", "efforts to measure, with commas")
	peer := fs.Bool("peer", true, "run dump1090-mutability too, if it is installed (uc8 at 2.4 Msps only)")
	asJSON := fs.Bool("json", false, "print one JSON object a line for each figure, instead of tables")
	svg := fs.String("svg", "", "write the curves to this SVG file as well")
	usage := func() {
		fmt.Fprintln(stdout, "usage: sensitivity [flags]\n\nMeasures how many Mode S replies the demodulator finds in synthetic signals.")
		fs.SetOutput(stdout)
		fs.PrintDefaults()
	}
	fs.Usage = func() {}
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			usage()
			return options{}, err
		}
		return options{}, usagef("%v", err)
	}
	if fs.NArg() > 0 {
		return options{}, usagef("unexpected argument %q", fs.Arg(0))
	}
	o := options{messages: *n, offset: *offset * 1e3, rate: *rate, seed: *seed, seeds: *seeds, svg: *svg, json: *asJSON}
	if o.messages < 1 || o.messages > 1_000_000 || o.seeds < 1 || o.seeds > 1000 {
		return o, usagef("-n must be from 1 to 1000000 and -seeds from 1 to 1000")
	}
	if !(*offset >= 0 && *offset <= 1200) {
		return o, usagef("-offset must be from 0 to 1200 kHz")
	}
	if o.offset == 0 {
		o.offset = -1 // none
	}
	var err error
	if o.format, err = demod.ParseFormat(*format); err != nil {
		return o, usagef("-format %s: want uc8, cs8, sc16, sc16q11 or cf32", *format)
	}
	if _, err := demod.New(demod.Config{Rate: o.rate}); err != nil {
		return o, usagef("-rate %d: want %d to %d samples per second", o.rate, demod.MinRate, demod.MaxRate)
	}
	if o.snr, err = parseList(*snr); err != nil {
		return o, usagef("-snr %s: %v", *snr, err)
	}
	for name := range strings.SplitSeq(*effort, ",") {
		e, err := demod.ParseEffort(name)
		if err != nil {
			return o, usagef("-effort %q: want fast, default or max", name)
		}
		o.efforts = append(o.efforts, e)
	}
	for name := range strings.SplitSeq(*series, ",") {
		if name == "all" {
			for _, s := range allSeries {
				o.series = append(o.series, s.name)
			}
			continue
		}
		if !slices.ContainsFunc(allSeries, func(s kind) bool { return s.name == name }) {
			return o, usagef("-series %q is not known; see -h", name)
		}
		o.series = append(o.series, name)
	}
	if o.seed == 0 {
		o.seed = uint64(time.Now().UnixNano())
	}
	if *peer && o.format == demod.UC8 && o.rate == demod.DefaultRate {
		o.peer, _ = exec.LookPath("dump1090-mutability")
	}
	return o, nil
}

// parseList reads 8:12:0.5 or 8,9,12.
func parseList(s string) (out []float64, err error) {
	if from, rest, ok := strings.Cut(s, ":"); ok {
		to, step, ok := strings.Cut(rest, ":")
		if !ok {
			step = "1"
		}
		var v [3]float64
		for i, t := range []string{from, to, step} {
			if v[i], err = strconv.ParseFloat(t, 64); err != nil {
				return nil, fmt.Errorf("%q is not a number", t)
			}
		}
		if err := inRange(v[:2]); err != nil { // before a sum that a step is too small for
			return nil, err
		}
		if !(v[2] > 0) || !((v[1]+1e-9-v[0])/v[2] < 1000) {
			return nil, errors.New("want FROM:TO:STEP with at most 1000 steps")
		}
		for i := 0; v[0]+float64(i)*v[2] <= v[1]+1e-9; i++ {
			out = append(out, v[0]+float64(i)*v[2])
		}
	} else {
		for t := range strings.SplitSeq(s, ",") {
			x, err := strconv.ParseFloat(t, 64)
			if err != nil {
				return nil, fmt.Errorf("%q is not a number", t)
			}
			out = append(out, x)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no values")
	}
	return out, inRange(out)
}

func inRange(db []float64) error {
	for _, x := range db {
		if !(math.Abs(x) <= 100) {
			return fmt.Errorf("%g dB is not from -100 to 100", x)
		}
	}
	return nil
}

// A kind is one way of making signals hard.
type kind struct {
	name, what string
	set        func(*synth.Scenario)
	counts     func(synth.Sent) bool // nil: all
}

var allSeries = []kind{
	{"plain", "squitters (DF17) in white noise, none overlapping", func(*synth.Scenario) {}, nil},
	{"smear", "pulses through a low-pass of 0.85 instead of 1.1 MHz", func(s *synth.Scenario) { s.BandwidthHz = 0.85e6 }, nil},
	{"multipath", "an echo 6 dB weaker, 1 to 3 us late", func(s *synth.Scenario) { s.MultipathDB = 6 }, nil},
	{"droop", "3 dB less amplitude at the end of a frame", func(s *synth.Scenario) { s.DroopDB = 3 }, nil},
	{"dc", "a DC offset of 5 steps of 8 bits in I and -3 in Q", func(s *synth.Scenario) { s.DC = complex(5.0/128, -3.0/128) }, nil},
	{"imbalance", "I/Q imbalance of 1 dB and 5 degrees", func(s *synth.Scenario) { s.GainDB, s.Skew = 1, 5*math.Pi/180 }, nil},
	{"clip", "all amplified by 12 dB, so that strong signals clip", func(s *synth.Scenario) { s.Scale = 4 }, nil},
	{"drop", "one buffer of 16384 samples in eleven lost", func(s *synth.Scenario) { s.Drop = 16384 }, nil},
	{"overlap", "squitters under a second one 6 dB weaker", overlap, func(s synth.Sent) bool { return !s.Weak }},
	{"overlap-weak", "squitters under a second one 6 dB stronger; dB is the stronger's", overlap, func(s synth.Sent) bool { return s.Weak }},
	{"allcall", "all-call replies (DF11) of aircraft not heard before", func(s *synth.Scenario) { s.Kind = synth.AllCalls }, nil},
	{"allcall-known", "all-call replies of aircraft heard once", func(s *synth.Scenario) { s.Kind = synth.KnownAllCalls }, nil},
	{"short", "DF0, DF4, DF5 of aircraft heard once", func(s *synth.Scenario) { s.Kind = synth.ShortReplies }, nil},
	{"long", "DF20, DF21 of aircraft heard once", func(s *synth.Scenario) { s.Kind = synth.LongReplies }, nil},
}

func overlap(s *synth.Scenario) { s.Overlap, s.OverlapDB = true, 6 }

func seriesHelp() string {
	var b strings.Builder
	for _, s := range allSeries {
		fmt.Fprintf(&b, "%-14s %s\n", s.name, s.what)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// A tally is one cell of the table.
type tally struct{ found, sent, wrong int }

func (t tally) percent() float64 { return 100 * float64(t.found) / float64(max(t.sent, 1)) }

// A curve is a column of the table.
type curve struct {
	name  string
	cells []tally
}

func measure(args []string, stdout io.Writer) error {
	o, err := parse(args, stdout)
	if err != nil {
		return err
	}
	var svg []panel
	for _, name := range o.series {
		k := allSeries[slices.IndexFunc(allSeries, func(s kind) bool { return s.name == name })]
		title := fmt.Sprintf("%s: %s", k.name, k.what)
		sub := fmt.Sprintf("%.1f Msps %v, up to %g kHz off, %d x %d messages, seed %d",
			float64(o.rate)/1e6, o.format, max(o.offset, 0)/1e3, o.seeds, o.messages, o.seed)
		table := stdout
		if o.json {
			table = io.Discard
		}
		fmt.Fprintf(table, "%s\n%s\n", title, sub)
		curves, err := o.curves(k, table)
		if err != nil {
			return err
		}
		fmt.Fprint(table, "half ")
		for _, c := range curves {
			fmt.Fprintf(table, " %12s", halfYield(o.snr, c.cells))
		}
		fmt.Fprint(table, "\n\n")
		if o.json {
			if err := o.figures(k, curves, json.NewEncoder(stdout)); err != nil {
				return err
			}
		}
		svg = append(svg, panel{title, sub, curves})
	}
	if o.svg != "" {
		return writeFile(o.svg, drawSVG(o.snr, svg))
	}
	return nil
}

// figures prints what a table holds as JSON, row by row.
func (o options) figures(k kind, curves []curve, to *json.Encoder) error {
	for i, snr := range o.snr {
		for _, c := range curves {
			err := to.Encode(struct {
				Series   string  `json:"series"`
				Rate     int     `json:"rate"`
				OffsetHz float64 `json:"offset_hz"`
				Seed     uint64  `json:"seed"`
				DB       float64 `json:"snr_db"`
				Receiver string  `json:"receiver"`
				Sent     int     `json:"sent"`
				Found    int     `json:"found"`
				Wrong    int     `json:"wrong"`
			}{k.name, o.rate, max(o.offset, 0), o.seed, snr, c.name, c.cells[i].sent, c.cells[i].found, c.cells[i].wrong})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// curves measures one series and prints its table row by row.
func (o options) curves(k kind, stdout io.Writer) ([]curve, error) {
	var curves []curve
	for _, e := range o.efforts {
		curves = append(curves, curve{name: e.String()})
	}
	if o.peer != "" {
		curves = append(curves, curve{name: "dump1090"})
	}
	fmt.Fprint(stdout, "dB   ")
	for _, c := range curves {
		fmt.Fprintf(stdout, " %12s", c.name)
	}
	fmt.Fprintln(stdout)
	for _, snr := range o.snr {
		row := make([]tally, len(curves))
		for i := range o.seeds {
			s := synth.Scenario{Rate: float64(o.rate), Messages: o.messages, SNR: snr, OffsetHz: o.offset, Seed: o.seed + uint64(i)*0x9E3779B9 + math.Float64bits(snr)}
			k.set(&s)
			rec := s.Make()
			iq := quantise(o.format, rec.IQ)
			for c, e := range o.efforts {
				got, err := demodulate(demod.Config{Format: o.format, Rate: o.rate, Effort: e}, iq)
				if err != nil {
					return nil, err
				}
				row[c].add(k, rec, got)
			}
			if o.peer != "" {
				got, err := dump1090(o.peer, iq)
				if err != nil {
					return nil, err
				}
				row[len(row)-1].add(k, rec, got)
			}
		}
		fmt.Fprintf(stdout, "%-5.4g", snr)
		for c, t := range row {
			curves[c].cells = append(curves[c].cells, t)
			text := fmt.Sprintf("%.1f", t.percent())
			if t.wrong > 0 {
				text += fmt.Sprintf(" (%d!)", t.wrong)
			}
			fmt.Fprintf(stdout, " %12s", text)
		}
		fmt.Fprintln(stdout)
	}
	return curves, nil
}

// add counts the distinct frames found of those sent, and the frames that
// nobody sent.
func (t *tally) add(k kind, rec synth.Recording, got [][]byte) {
	sent := map[string]bool{} // true: counts and was not found yet
	for _, s := range rec.Sent {
		counts := !s.Seed && !s.Damaged && (k.counts == nil || k.counts(s))
		sent[string(s.Frame)] = counts
		if counts {
			t.sent++
		}
	}
	for _, f := range got {
		counts, ok := sent[string(f)]
		switch {
		case !ok:
			t.wrong++
		case counts:
			t.found++
			sent[string(f)] = false
		}
	}
}

// halfYield returns where a curve crosses 50 per cent.
func halfYield(snr []float64, cells []tally) string {
	for i := 1; i < len(cells); i++ {
		a, b := cells[i-1].percent(), cells[i].percent()
		if a < 50 && b >= 50 {
			return fmt.Sprintf("%.1f dB", snr[i-1]+(snr[i]-snr[i-1])*(50-a)/(b-a))
		}
	}
	return "-"
}

func quantise(f demod.Format, iq []complex64) []byte {
	write := [...]func([]byte, []complex64) []byte{
		demod.UC8: synth.AppendUC8, demod.CS8: synth.AppendCS8, demod.SC16: synth.AppendSC16,
		demod.SC16Q11: synth.AppendSC16Q11, demod.CF32: synth.AppendCF32,
	}
	return write[f](make([]byte, 0, len(iq)*f.SampleBytes()), iq)
}

func demodulate(c demod.Config, iq []byte) (out [][]byte, err error) {
	d, err := demod.New(c)
	if err != nil {
		return nil, err
	}
	emit := func(f *modes.Frame) { out = append(out, slices.Clone(f.Bytes())) }
	d.Process(iq, emit)
	d.Flush(emit)
	return out, nil
}

// dump1090 runs dump1090-mutability on UC8 samples at 2.4 Msps.
func dump1090(program string, iq []byte) (out [][]byte, err error) {
	dir, err := os.MkdirTemp("", "sensitivity")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "iq")
	if err := os.WriteFile(file, iq, 0o600); err != nil {
		return nil, err
	}
	raw, err := exec.Command(program, "--ifile", file, "--iformat", "UC8", "--raw", "--fix").Output()
	if err != nil {
		return nil, fmt.Errorf("dump1090-mutability: %w", err)
	}
	for line := range bytes.Lines(raw) {
		h := strings.TrimSuffix(strings.TrimPrefix(string(bytes.TrimSpace(line)), "*"), ";")
		if f, err := hex.DecodeString(h); err == nil && (len(f) == 7 || len(f) == 14) {
			out = append(out, f)
		}
	}
	return out, nil
}

// writeFile writes to a temporary file in the same folder and renames it.
func writeFile(name string, data []byte) error {
	// Renaming over a device or link (/dev/stdout) would replace it.
	if fi, err := os.Lstat(name); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
