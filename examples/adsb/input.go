package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"signalbox.example/examples/adsb/recording"
	"signalbox.example/modes"
	"signalbox.example/modes/avr"
	"signalbox.example/modes/beast"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/rtltcp"
)

// input reads the source to its end, or until ctx is done, which is no error.
func (rx *receiver) input(ctx context.Context, stdin io.Reader, stderr io.Writer) error {
	o := &rx.o
	scheme, host, isURL := strings.Cut(o.in, "://")
	rx.mu.Lock()
	rx.wall = isURL || o.loop || o.net || o.live
	rx.mu.Unlock()
	var err error
	switch {
	case isURL && scheme == "rtltcp":
		err = rx.rtltcp(ctx, host, stderr)
	case isURL:
		err = rx.remote(ctx, host)
	case o.in == "-":
		err = unlessDone(ctx, func() error { return rx.stream(ctx, stdin) })
	case o.in == "":
		o.rate = recording.Rate
		err = rx.repeat(ctx, o.loop || o.net, func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(recording.UC8)), nil
		})
	default:
		file := func() (io.ReadCloser, error) {
			f, err := os.Open(o.in)
			if err != nil {
				return nil, err
			}
			if s, err := f.Stat(); err == nil && s.IsDir() {
				f.Close()
				return nil, fmt.Errorf("%s is a folder", o.in)
			} else if err == nil && s.Mode().IsRegular() {
				return &progress{ReadCloser: f, size: s.Size(), w: stderr}, nil
			}
			return f, nil
		}
		if s, e := os.Stat(o.in); e == nil && !s.Mode().IsRegular() { // a named pipe, perhaps
			err = unlessDone(ctx, func() error { return rx.repeat(ctx, o.loop, file) })
		} else {
			err = rx.repeat(ctx, o.loop, file)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// unlessDone calls f and returns when it does, or before when ctx is done:
// opening and reading may wait for ever, an interrupt must not.
func unlessDone(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return nil
	}
}

// repeat plays what open returns, once or until ctx is done. Played again and
// again it takes a second at least. Samples take the time they were recorded in
// when they are, and where the wall's clock counts.
func (rx *receiver) repeat(ctx context.Context, again bool, open func() (io.ReadCloser, error)) error {
	for {
		r, err := open()
		if err != nil {
			return err
		}
		begin := time.Now()
		var in io.Reader = r
		// What is not a recording has its own pace.
		_, file := r.(*progress)
		if recorded := file || rx.o.in == ""; rx.o.isIQ && (again || recorded && (rx.o.net || rx.o.live)) {
			in = &pace{r: r, begin: begin, rate: float64(rx.o.rate * rx.o.samples.SampleBytes())}
		}
		err = rx.stream(ctx, in)
		r.Close()
		if err != nil || !again || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second - time.Since(begin)):
		}
	}
}

// pace reads no faster than rate bytes a second.
type pace struct {
	r     io.Reader
	begin time.Time
	rate  float64
	n     int64
}

func (p *pace) Read(b []byte) (int, error) {
	time.Sleep(time.Duration(float64(p.n)/p.rate*1e9) - time.Since(p.begin))
	n, err := p.r.Read(b)
	p.n += int64(n)
	return n, err
}

// progress tells on a terminal how far a large file is read.
type progress struct {
	io.ReadCloser
	size, n int64
	w       io.Writer
	last    time.Time
	shown   bool
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	p.n += int64(n)
	if p.size >= 1<<28 && time.Since(p.last) > time.Second {
		p.last = time.Now()
		if f, ok := p.w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			fmt.Fprintf(p.w, "\radsb: %d %%", p.n*100/p.size)
			p.shown = true
		}
	}
	return n, err
}

func (p *progress) Close() error {
	if p.shown {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
	return p.ReadCloser.Close()
}

// stream reads one input of the chosen format to its end.
func (rx *receiver) stream(ctx context.Context, r io.Reader) error {
	r = &untilDone{r, ctx}
	if rx.o.isIQ {
		d, err := rx.demodulator()
		if err != nil {
			return err
		}
		for f, err := range d.Frames(r) {
			if errors.Is(err, demod.ErrTruncated) {
				return fmt.Errorf("the input ends inside a sample: its length is not a multiple of the %d bytes of %s", rx.o.samples.SampleBytes(), rx.o.format)
			} else if err != nil {
				return err
			}
			rx.sampled(f)
			if rx.stopped() {
				return nil
			}
		}
		return nil
	}
	return rx.frames(r)
}

// stopped tells that standard output is gone.
func (rx *receiver) stopped() bool {
	rx.mu.Lock()
	defer rx.mu.Unlock()
	return rx.outErr != nil
}

// untilDone ends a reader when its context does.
type untilDone struct {
	r   io.Reader
	ctx context.Context
}

func (u *untilDone) Read(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, io.EOF
	}
	return u.r.Read(b)
}

func (rx *receiver) demodulator() (*demod.Demodulator, error) {
	return demod.New(demod.Config{Format: rx.o.samples, Rate: rx.o.rate, Repair: rx.o.repair, Effort: rx.o.effort, Filter: &rx.sampleFilter})
}

// frames reads frames as text or Beast.
func (rx *receiver) frames(r io.Reader) error {
	found, other := uint64(0), uint64(0)
	take := func(f *modes.Frame, err error) error {
		if err == nil {
			rx.framed(f)
		}
		return err
	}
	if rx.o.format == "beast" {
		var d beast.Decoder
		for f, err := range d.Frames(r) {
			if err := take(f, err); err != nil || rx.stopped() {
				return err
			}
		}
		s := d.Stats()
		found, other = s.Frames+s.ModeAC, s.Skipped+s.Other+s.Cut
	} else {
		d := avr.Decoder{Bare: rx.o.format == "hex"}
		counted := &counter{Reader: bufio.NewReader(r)}
		for f, err := range d.Frames(counted) {
			if err := take(f, err); err != nil || rx.stopped() {
				return err
			}
		}
		found, other = d.Stats().Frames, uint64(counted.n)
	}
	if found == 0 && other > 0 {
		return fmt.Errorf("no frame of format %s in the input", rx.o.format)
	}
	return nil
}

type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += int64(n)
	return n, err
}

// remote reads frames from another receiver.
func (rx *receiver) remote(ctx context.Context, host string) error {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	defer conn.Close()
	return rx.frames(conn)
}

// rtltcp receives from an RTL-SDR over the network. Samples that were lost
// move the clock, so that times and positions stay right.
func (rx *receiver) rtltcp(ctx context.Context, host string, stderr io.Writer) error {
	c := rtltcp.Config{Rate: uint(rx.o.rate), PPM: rx.o.ppm, BiasTee: rx.o.biasTee}
	if g, err := strconv.ParseFloat(rx.o.gain, 64); err == nil {
		c.ManualGain, c.Gain = true, int(math.Round(g*10))
	}
	client, err := rtltcp.Dial(ctx, host, c)
	if err != nil {
		return err
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	d, err := rx.demodulator()
	if err != nil {
		return err
	}
	lost := uint64(0) // samples in all
	emit := func(f *modes.Frame) {
		f.Time12 += ticks(lost, uint64(rx.o.rate))
		rx.sampled(f)
	}
	b := make([]byte, 1<<16)
	for {
		n, gap, err := client.ReadSamples(b)
		if err != nil {
			d.Flush(emit)
			return err
		}
		if gap > 0 {
			d.Flush(emit)
			lost += gap
		}
		d.Process(b[:n], emit)
		if rx.stopped() {
			return nil
		}
	}
}

// ticks returns the time of a number of samples in ticks of 12 MHz: whole
// seconds apart, so that outages of weeks do not overflow.
func ticks(samples, rate uint64) uint64 {
	return samples/rate*modes.TicksPerSecond + samples%rate*modes.TicksPerSecond/rate
}
