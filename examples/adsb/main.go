// Command adsb receives aircraft at 1090 MHz: from a recording of samples, an
// RTL-SDR behind rtl_tcp, or another receiver's AVR or Beast stream, and shows
// frames, decoded messages, a table, or a live page. Without arguments it
// decodes a recording that is built in.
//
//	adsb                                    the built-in recording as a table
//	adsb -in capture.bin -format uc8 -rate 2000000 -raw
//	adsb -in rtltcp://127.0.0.1:1234 -interactive
//	adsb -in beast://127.0.0.1:30005 -json
//	adsb -net                               page at http://127.0.0.1:8080/
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"signalbox.example/modes"
	"signalbox.example/modes/demod"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// options are the flags after they were checked.
type options struct {
	in       string
	format   string // a sample format, or avr, hex, beast
	samples  demod.Format
	isIQ     bool
	rate     int
	repair   demod.Repair
	bits     int // that modes.Repair may change in frames that come as frames
	effort   demod.Effort
	ref      modes.Opt[modes.LatLon]
	known    []uint32
	raw      bool
	json     bool
	all      bool
	table    bool
	live     bool // -interactive
	net      bool
	loop     bool
	bind     string
	ports    ports
	gain     string
	ppm      int
	biasTee  bool
	maxRange float64
}

// errUsage marks errors of the command line, status 2.
var errUsage = errors.New("usage")

func usage(format string, a ...any) error {
	return fmt.Errorf("%w%s", errUsage, fmt.Sprintf(format, a...))
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return runContext(ctx, args, stdin, stdout, stderr)
}

func runContext(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, help, err := parse(args)
	if help != "" {
		io.WriteString(stdout, help)
		return 0
	}
	if err == nil {
		err = receive(ctx, o, stdin, stdout, stderr)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(stderr, "adsb: "+strings.TrimPrefix(err.Error(), errUsage.Error()))
		return 2
	default:
		fmt.Fprintln(stderr, "adsb: "+oneLine(err.Error()))
		return 1
	}
}

func oneLine(s string) string { return strings.ReplaceAll(s, "\n", "; ") }

const helpText = `usage: adsb [flags]

Receives aircraft at 1090 MHz and shows them as a table (the default), as
frames (-raw), as messages (-json), on a live screen (-interactive) or to the
network (-net). Without -in it decodes a recording that is built in.

`

func parse(args []string) (o options, help string, err error) {
	fs := flag.NewFlagSet("adsb", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.in, "in", "", "`source`: a file, - for standard input, rtltcp://HOST:PORT, beast://HOST:PORT or avr://HOST:PORT")
	fs.StringVar(&o.format, "format", "", "`format` of the input: uc8 (default), cs8, sc16, sc16q11, cf32, avr, hex or beast")
	fs.IntVar(&o.rate, "rate", demod.DefaultRate, "samples a second")
	repair := fs.String("repair", "", "bits that are repaired: none, 1, 2 or soft (default soft; for frames that come as frames none)")
	effort := fs.String("effort", "default", "processor time for sensitivity: fast, default or max")
	ref := fs.String("ref", "", "`LAT,LON` of the receiver in degrees: for surface positions and range checks")
	known := fs.String("known", "", "addresses taken as already seen: `HEX,HEX,...`")
	fs.Float64Var(&o.maxRange, "max-range", 300, "with -ref: refuse positions farther away, in nautical `miles`")
	fs.BoolVar(&o.raw, "raw", false, "print frames, *HEX;")
	fs.BoolVar(&o.json, "json", false, "print messages, one JSON object a line")
	fs.BoolVar(&o.all, "all", false, "with -json: rejected frames too (of inputs that are frames)")
	fs.BoolVar(&o.table, "table", false, "print the table of aircraft at the end of the input")
	fs.BoolVar(&o.live, "interactive", false, "show the table on the terminal, once a second; files of samples at the speed at which they were recorded")
	fs.BoolVar(&o.net, "net", false, "serve AVR in and out, SBS, Beast and a live page until interrupted; files of samples as with -interactive")
	fs.BoolVar(&o.loop, "loop", false, "play a file again and again, samples at the speed at which they were recorded, frames once a second (with -net the built-in recording is)")
	fs.StringVar(&o.bind, "bind", "127.0.0.1", "with -net: the `address` to listen on")
	fs.IntVar(&o.ports.avrIn, "port-avr-in", 30001, "with -net: port for AVR input; 0 for any, -1 for none")
	fs.IntVar(&o.ports.avrOut, "port-avr", 30002, "with -net: port for AVR output")
	fs.IntVar(&o.ports.sbs, "port-sbs", 30003, "with -net: port for SBS (BaseStation) output")
	fs.IntVar(&o.ports.beast, "port-beast", 30005, "with -net: port for Beast output")
	fs.IntVar(&o.ports.http, "port-http", 8080, "with -net: port for the live page and /data/aircraft.json")
	fs.StringVar(&o.gain, "gain", "auto", "for rtltcp: gain in `dB`, or auto")
	fs.IntVar(&o.ppm, "ppm", 0, "for rtltcp: correction of the tuner's clock")
	fs.BoolVar(&o.biasTee, "bias-tee", false, "for rtltcp: supply of an antenna amplifier")
	if err := fs.Parse(args); err == flag.ErrHelp {
		var b strings.Builder
		b.WriteString(helpText)
		fs.SetOutput(&b)
		fs.PrintDefaults()
		return o, b.String(), nil
	} else if err != nil {
		return o, "", usage("%s", oneLine(err.Error()))
	}
	if fs.NArg() > 0 {
		return o, "", usage("unexpected argument %q (a file is named with -in)", fs.Arg(0))
	}
	return o, "", o.check(*repair, *effort, *ref, *known)
}

// check completes the options from the texts of flags.
func (o *options) check(repair, effort, ref, known string) error {
	outputs := 0
	for _, b := range []bool{o.raw, o.json, o.table, o.live} {
		if b {
			outputs++
		}
	}
	if outputs > 1 {
		return usage("choose one of -raw, -json, -table and -interactive")
	}
	if outputs == 0 && !o.net {
		o.table = true
	}
	scheme, _, isURL := strings.Cut(o.in, "://")
	if isURL {
		switch scheme {
		case "beast", "avr":
			if o.format != "" && o.format != scheme {
				return usage("-format %s does not go with %s", o.format, o.in)
			}
			o.format = scheme
		case "rtltcp":
			if o.format != "" && o.format != "uc8" {
				return usage("-format %s does not go with rtltcp, which sends uc8", o.format)
			}
		default:
			return usage("unknown source %q: want a file, -, rtltcp://, beast:// or avr://", o.in)
		}
		if o.loop {
			return usage("-loop is for files")
		}
	}
	if o.in == "-" && o.loop {
		return usage("-loop is for files")
	}
	switch o.format {
	case "avr", "hex", "beast":
	default:
		if o.format == "" {
			o.format = "uc8"
		}
		f, err := demod.ParseFormat(o.format)
		if err != nil {
			return usage("unknown -format %q: want uc8, cs8, sc16, sc16q11, cf32, avr, hex or beast", o.format)
		}
		o.samples, o.isIQ = f, true
	}
	if o.in == "" && o.format != "uc8" {
		return usage("-format %s needs an input: use -in", o.format)
	}
	if o.rate < demod.MinRate || o.rate > demod.MaxRate {
		return usage("-rate %d: want %d to %d samples a second", o.rate, demod.MinRate, demod.MaxRate)
	}
	switch repair {
	case "":
		o.repair = demod.RepairSoft
	case "none":
		o.repair = demod.RepairNone
	case "1":
		o.repair, o.bits = demod.RepairOne, 1
	case "2":
		o.repair, o.bits = demod.RepairTwo, 2
	case "soft":
		o.repair = demod.RepairSoft
		if !o.isIQ {
			return usage("-repair soft needs samples, and %s has none", o.format)
		}
	default:
		return usage("unknown -repair %q: want none, 1, 2 or soft", repair)
	}
	var err error
	if o.effort, err = demod.ParseEffort(effort); err != nil {
		return usage("unknown -effort %q: want fast, default or max", effort)
	}
	if ref != "" {
		lat, lon, ok := strings.Cut(ref, ",")
		y, err1 := strconv.ParseFloat(strings.TrimSpace(lat), 64)
		x, err2 := strconv.ParseFloat(strings.TrimSpace(lon), 64)
		if !ok || err1 != nil || err2 != nil || !(y >= -90 && y <= 90 && x >= -180 && x <= 180) {
			return usage("-ref %q: want LAT,LON in degrees", ref)
		}
		o.ref = modes.Some(modes.LatLon{Lat: y, Lon: x})
	}
	if !(o.maxRange > 0) {
		return usage("-max-range %v: want nautical miles above 0", o.maxRange)
	}
	for h := range strings.SplitSeq(known, ",") {
		if known == "" {
			break
		}
		v, err := strconv.ParseUint(strings.TrimSpace(h), 16, 24)
		if err != nil || v == 0 || v == 0xFFFFFF {
			return usage("-known %q: want addresses of six hexadecimal digits", h)
		}
		o.known = append(o.known, uint32(v))
	}
	if o.gain != "auto" {
		if g, err := strconv.ParseFloat(o.gain, 64); err != nil || !(g >= -10 && g <= 100) {
			return usage("-gain %q: want auto or decibels", o.gain)
		}
	}
	return o.ports.check()
}

// receive runs one session: input, table, outputs.
func receive(ctx context.Context, o options, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	out := bufio.NewWriter(stdout)
	rx := newReceiver(o, out)
	if o.net {
		stop, err := rx.serve(ctx, stderr)
		if err != nil {
			return err
		}
		defer stop()
	}
	if o.live {
		stop, err := rx.screen(stdout)
		if err != nil {
			return err
		}
		defer stop()
	}
	err = rx.input(ctx, stdin, stderr)
	if err == nil && o.net {
		<-ctx.Done() // the ports stay open when the input has ended
	}
	rx.mu.Lock()
	defer rx.mu.Unlock()
	if o.table && (err == nil || rx.tracker.Len() > 0) {
		if e := rx.tracker.WriteTable(out, rx.now()); err == nil {
			err = e
		}
	}
	if rx.outErr == nil {
		rx.outErr = out.Flush()
	}
	if err == nil && rx.outErr != nil && !errors.Is(rx.outErr, syscall.EPIPE) {
		err = fmt.Errorf("writing: %w", rx.outErr)
	}
	return err
}

// now is the time of the last frame for recordings, and that of the wall for
// live sources.
func (rx *receiver) now() time.Time {
	if rx.wall {
		return time.Now()
	}
	return rx.clock
}
