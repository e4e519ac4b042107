package main

import (
	"bufio"
	"sync"
	"time"

	"signalbox.example/modes"
	"signalbox.example/modes/avr"
	"signalbox.example/modes/beast"
	"signalbox.example/modes/sbs"
	"signalbox.example/modes/track"
)

// A receiver takes frames from the input and from network clients, judges
// them, keeps the table and feeds the outputs. mu guards all of it.
type receiver struct {
	o  options
	mu sync.Mutex
	// The demodulator's filter runs by the clock of the samples, that of frames
	// by the wall's or the recording's: they cannot share one.
	sampleFilter, frameFilter modes.AddressFilter

	tracker *track.Tracker
	out     *bufio.Writer
	outErr  error
	outputs *outputs // with -net

	wall  bool      // times are those of the wall, not of the recording
	start time.Time // of the recording, whose ticks count from first
	first modes.Opt[uint64]
	last  uint64 // ticks of the last frame
	clock time.Time

	message modes.Message
	buf     []byte
	writer  messageWriter
}

func newReceiver(o options, out *bufio.Writer) *receiver {
	rx := &receiver{o: o, out: out, start: time.Now()}
	rx.clock = rx.start
	for _, a := range o.known {
		rx.sampleFilter.AddKnown(a)
		rx.frameFilter.AddKnown(a)
	}
	rx.tracker = track.New(track.Config{Reference: o.ref, MaxRange: o.maxRange})
	return rx
}

// at moves the clock to a frame of the input.
func (rx *receiver) at(f *modes.Frame) time.Time {
	if rx.wall {
		return time.Now()
	}
	if f.HasTime {
		const late = 10 * modes.TicksPerSecond
		if !rx.first.OK || f.Time12 < rx.first.V || f.Time12+late < rx.last {
			// The first frame, or a receiver that was started again.
			rx.first = modes.Some(f.Time12)
			rx.start = rx.clock
		}
		rx.last = f.Time12
		d := f.Time12 - rx.first.V
		rx.clock = rx.start.Add(time.Duration(d/modes.TicksPerSecond)*time.Second + time.Duration(d%modes.TicksPerSecond*250/3))
	}
	return rx.clock
}

// sampled takes a frame that the demodulator has judged.
func (rx *receiver) sampled(f *modes.Frame) {
	rx.mu.Lock()
	defer rx.mu.Unlock()
	rx.accepted(f, rx.at(f))
}

// framed takes a frame that came as a frame and judges it.
func (rx *receiver) framed(f *modes.Frame) {
	rx.mu.Lock()
	defer rx.mu.Unlock()
	now := rx.at(f)
	if rx.o.bits > 0 {
		if n, ok := modes.Repair(f.Bytes(), rx.o.bits); ok {
			f.Repaired = uint8(n)
		}
	}
	ticks := uint64(now.UnixNano()/1000) * 12
	if reason := rx.frameFilter.Accept(f, ticks); reason != modes.Accepted {
		if rx.o.all && rx.o.json {
			rx.write(rx.writer.rejected(rx.buf[:0], f, reason))
		}
		return
	}
	rx.accepted(f, now)
}

// write sends a line to standard output.
func (rx *receiver) write(line []byte) {
	rx.buf = line
	if rx.outErr == nil {
		_, rx.outErr = rx.out.Write(line)
	}
	if rx.wall && rx.outErr == nil {
		rx.outErr = rx.out.Flush() // somebody watches
	}
}

func (rx *receiver) accepted(f *modes.Frame, now time.Time) {
	if modes.Decode(f, &rx.message) != nil {
		return // cannot be: it was accepted
	}
	a, changes := rx.tracker.Apply(f, &rx.message, now)
	switch {
	case rx.o.raw:
		rx.write(avr.Append(rx.buf[:0], f))
	case rx.o.json:
		rx.write(rx.writer.accepted(rx.buf[:0], f, &rx.message, a, changes, now))
	}
	if rx.outputs != nil {
		rx.outputs.avr.send(func(b []byte) []byte { return avr.Append(b, f) })
		rx.outputs.beast.send(func(b []byte) []byte { return beast.Append(b, f) })
		rx.outputs.sbs.send(func(b []byte) []byte {
			var s sbs.Message
			var p modes.Opt[modes.LatLon]
			if changes.Has(track.Position) {
				p = modes.Some(a.Position.V)
			}
			if s.Fill(&rx.message, p, now) {
				b = s.Append(b)
			}
			return b
		})
	}
}
