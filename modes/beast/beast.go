package beast

import (
	"bytes"
	"encoding/binary"
	"io"
	"iter"
	"math"

	"signalbox.example/modes"
)

const escape = 0x1A

// mlatMagic in place of a time marks a position that multilateration made up.
const mlatMagic = 0xFF004D4C4154

// Message types.
const (
	typeModeAC = '1'
	typeShort  = '2'
	typeLong   = '3'
)

// Append appends a frame to b, 16 to 44 bytes with its escapes. A frame without
// time or signal is written with 0 for it; times are 12 MHz ticks, cut to 48 bits
// (271 days). Frames of other lengths than 56 and 112 bits append nothing.
func Append(b []byte, f *modes.Frame) []byte {
	kind := byte(typeShort)
	switch f.Bits {
	case 56:
	case 112:
		kind = typeLong
	default:
		return b
	}
	b = append(b, escape, kind)
	return appendBody(b, f.Time12, f.HasTime, f.Signal, f.HasSignal, f.Bytes())
}

// AppendModeAC appends a Mode A/C reply at a time in ticks of 12 MHz, the code
// as in [modes.Squawk], one octal digit in each half byte, with signal 0.
func AppendModeAC(b []byte, time12 uint64, code uint16) []byte {
	b = append(b, escape, typeModeAC)
	return appendBody(b, time12, true, 0, false, []byte{byte(code >> 8), byte(code)})
}

func appendBody(b []byte, t uint64, hasTime bool, signal float32, hasSignal bool, data []byte) []byte {
	if !hasTime {
		t = 0
	}
	var body [7 + 14]byte
	binary.BigEndian.PutUint64(body[:], t<<16)
	body[6] = 0
	if hasSignal {
		const perDB = math.Log2E * math.Ln10 / 20 // octaves of amplitude
		body[6] = byte(max(1, min(255, math.Round(255*math.Exp2(float64(signal)*perDB)))))
	}
	rest := body[:7+copy(body[7:], data)]
	for {
		n := bytes.IndexByte(rest, escape)
		if n < 0 {
			return append(b, rest...)
		}
		b = append(append(b, rest[:n+1]...), escape)
		rest = rest[n+1:]
	}
}

// Stats counts what a Decoder saw.
type Stats struct {
	// Frames is the number of Mode S frames that were found, ModeAC of Mode
	// A/C replies.
	Frames, ModeAC uint64
	// Other is the number of messages of other types, which are skipped.
	Other uint64
	// Cut is the number of messages that the next one interrupted.
	Cut uint64
	// Skipped is the number of bytes outside messages.
	Skipped uint64
}

// A Decoder finds frames in a stream of bytes. The zero value is ready.
type Decoder struct {
	// GPS tells that times are those of a Radarcape with GPS; see the package
	// comment.
	GPS bool
	// OnModeAC, when set, is called for Mode A/C replies with their time in
	// ticks of 12 MHz, 0 for none, and their code as in [modes.Squawk].
	OnModeAC func(time12 uint64, code uint16)

	stats   Stats
	escaped bool // the byte before was an escape
	kind    byte // of the message being read; 0 outside
	need    int  // bytes that the message has
	n       int  // bytes of it so far
	body    [7 + 14]byte
	// levels holds the dB of each signal byte.
	levels *[256]float32
	frame  modes.Frame // handed to emit; here so that it is not allocated anew
}

// Stats returns the counters.
func (d *Decoder) Stats() Stats { return d.stats }

// Feed takes the next bytes, any number of them, and calls emit for each Mode S
// frame that is complete. The frame is valid during the call. Feed keeps nothing
// of data. It allocates once, at its first call.
func (d *Decoder) Feed(data []byte, emit func(*modes.Frame)) {
	if d.levels == nil {
		d.levels = new([256]float32)
		for i := range d.levels[1:] {
			d.levels[1+i] = float32(20 * math.Log10(float64(1+i)/255))
		}
	}
	for len(data) > 0 {
		switch {
		case d.escaped:
			d.escaped = false
			c := data[0]
			data = data[1:]
			if c != escape {
				d.begin(c)
			} else if d.kind == 0 {
				d.stats.Skipped++
			} else { // a doubled escape is one byte of data
				d.body[d.n] = c
				d.n++
			}
		case d.kind == 0:
			n := bytes.IndexByte(data, escape)
			if n < 0 {
				d.stats.Skipped += uint64(len(data))
				return
			}
			d.stats.Skipped += uint64(n)
			data, d.escaped = data[n+1:], true
		default:
			part := data[:min(d.need-d.n, len(data))]
			if n := bytes.IndexByte(part, escape); n >= 0 {
				d.n += copy(d.body[d.n:], part[:n])
				data, d.escaped = data[n+1:], true
				continue
			}
			d.n += copy(d.body[d.n:], part)
			data = data[len(part):]
		}
		if d.kind != 0 && d.n == d.need {
			d.finish(emit)
		}
	}
}

func (d *Decoder) begin(kind byte) {
	if d.kind != 0 {
		d.stats.Cut++
	}
	d.kind, d.n = kind, 0
	switch kind {
	case typeModeAC:
		d.need = 7 + 2
	case typeShort:
		d.need = 7 + 7
	case typeLong:
		d.need = 7 + 14
	default:
		d.kind = 0 // its length is not known: wait for the next escape
		d.stats.Other++
	}
}

func (d *Decoder) finish(emit func(*modes.Frame)) {
	kind := d.kind
	d.kind = 0
	b := d.body[:d.need]
	var t uint64
	for _, c := range b[:6] {
		t = t<<8 | uint64(c)
	}
	hasTime := t != 0 && t != mlatMagic
	if hasTime && d.GPS {
		t = t>>30*modes.TicksPerSecond + t&(1<<30-1)*12/1000
	}
	if !hasTime {
		t = 0
	}
	if kind == typeModeAC {
		d.stats.ModeAC++
		if d.OnModeAC != nil {
			d.OnModeAC(t, uint16(b[7])<<8|uint16(b[8]))
		}
		return
	}
	d.frame = modes.Frame{Time12: t, HasTime: hasTime, Signal: d.levels[b[6]], HasSignal: b[6] != 0, Bits: uint8((d.need - 7) * 8)}
	copy(d.frame.Data[:], b[7:])
	d.stats.Frames++
	emit(&d.frame)
}

// Frames reads r to its end and yields each frame, valid until the next one.
// An error of r other than io.EOF, or io.ErrNoProgress after a hundred reads of
// nothing, is yielded last, with a nil frame.
func (d *Decoder) Frames(r io.Reader) iter.Seq2[*modes.Frame, error] {
	return func(yield func(*modes.Frame, error) bool) {
		buf := make([]byte, 1<<16)
		more, idle := true, 0
		emit := func(f *modes.Frame) {
			if more {
				more = yield(f, nil)
			}
		}
		for more {
			n, err := r.Read(buf)
			d.Feed(buf[:n], emit)
			if n > 0 {
				idle = 0
			} else if idle++; idle == 100 && err == nil {
				err = io.ErrNoProgress
			}
			if err == nil {
				continue
			}
			if more && err != io.EOF {
				yield(nil, err)
			}
			return
		}
	}
}
