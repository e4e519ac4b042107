package avr

import (
	"errors"
	"io"
	"iter"
	"math"

	"signalbox.example/modes"
)

// ErrLine is returned by [Parse] for a line that is not a frame in AVR format.
var ErrLine = errors.New("avr: not a frame in AVR format")

// maxLine is the longest line: start, 12 digits of time, 2 of signal, 28 of
// frame, and the end.
const maxLine = 1 + 12 + 2 + 28 + 1

const upper = "0123456789ABCDEF"

// Append appends a frame of 56 or 112 bits as a line, "*", the hexadecimal
// digits in upper case, ";" and a line feed, to b. Time and signal are left out.
func Append(b []byte, f *modes.Frame) []byte {
	return appendHex(append(b, '*'), f)
}

// AppendTimed is [Append] in the form with time, "@" and 12 digits. A frame
// without time is written with 0; times are cut to 48 bits (271 days).
func AppendTimed(b []byte, f *modes.Frame) []byte {
	b = append(b, '@')
	t := f.Time12
	if !f.HasTime {
		t = 0
	}
	for s := 44; s >= 0; s -= 4 {
		b = append(b, upper[t>>s&15])
	}
	return appendHex(b, f)
}

func appendHex(b []byte, f *modes.Frame) []byte {
	for _, c := range f.Bytes() {
		b = append(b, upper[c>>4], upper[c&15])
	}
	return append(b, ';', '\n')
}

// nibbles holds the value of each hexadecimal digit, 0xFF for other bytes.
var nibbles = func() (t [256]byte) {
	for c := range t {
		t[c] = 0xFF
	}
	for i := range byte(16) {
		t[upper[i]] = i
		t[upper[i]|0x20] = i // of digits the same
	}
	return
}()

func nibble(c byte) byte { return nibbles[c] }

// Parse reads one line that ends in a semicolon, without regard to space around
// it, into f, and keeps nothing of line. It returns [ErrLine] and leaves f alone
// when the line is nothing known. Mode A/C replies of four digits are not frames
// and return [ErrLine] too.
func Parse(line []byte, f *modes.Frame) error {
	for len(line) > 0 && line[0] <= ' ' {
		line = line[1:]
	}
	for len(line) > 0 && line[len(line)-1] <= ' ' {
		line = line[:len(line)-1]
	}
	if len(line) < 2 || line[len(line)-1] != ';' {
		return ErrLine
	}
	return parse(line[0], line[1:len(line)-1], f)
}

// parse reads what stands between the start and the semicolon.
func parse(start byte, digits []byte, f *modes.Frame) error {
	prefix := 0
	switch start {
	case '*', ':':
	case '@', '%':
		prefix = 12
	case '<':
		prefix = 14
	default:
		return ErrLine
	}
	n := len(digits) - prefix
	if n != 14 && n != 28 {
		return ErrLine
	}
	g := modes.Frame{Bits: uint8(n * 4)}
	for i, c := range digits[:prefix] {
		v := nibble(c)
		if v > 15 {
			return ErrLine
		}
		if i < 12 {
			g.Time12 = g.Time12<<4 | uint64(v)
		}
	}
	if prefix == 14 {
		setSignal(&g, nibble(digits[12])<<4|nibble(digits[13]))
	}
	g.HasTime = g.Time12 != 0 && g.Time12 != mlatMagic
	if !g.HasTime {
		g.Time12 = 0
	}
	bad := byte(0)
	for i := range n / 2 {
		hi, lo := nibble(digits[prefix+2*i]), nibble(digits[prefix+2*i+1])
		bad |= hi | lo
		g.Data[i] = hi<<4 | lo
	}
	if bad > 15 {
		return ErrLine
	}
	*f = g
	return nil
}

// mlatMagic in place of a time marks a position that multilateration made up.
// It is no time.
const mlatMagic = 0xFF004D4C4154

func setSignal(f *modes.Frame, v byte) {
	if f.HasSignal = v != 0; f.HasSignal {
		f.Signal = float32(20 * math.Log10(float64(v)/255))
	}
}

// A Decoder finds frames in a stream of bytes. The zero value is ready.
type Decoder struct {
	// Bare also accepts lines of nothing but 14 or 28 hexadecimal digits.
	Bare bool

	stats Stats
	n     int // bytes of the line so far, 0 between lines
	lost  bool
	line  [maxLine]byte
	frame modes.Frame // handed to emit; here so that it is not allocated anew
}

// Stats counts what a Decoder saw.
type Stats struct {
	// Frames is the number of frames that were found.
	Frames uint64
	// Bad is the number of lines that were begun and were no frame: too long,
	// of a wrong length (Mode A/C replies among them), or with a wrong
	// character.
	Bad uint64
}

// Stats returns the counters.
func (d *Decoder) Stats() Stats { return d.stats }

// Feed takes the next bytes, any number of them, and calls emit for each frame
// that is complete. The frame is valid during the call. Feed keeps nothing of
// data and allocates nothing.
func (d *Decoder) Feed(data []byte, emit func(*modes.Frame)) {
	for _, c := range data {
		switch {
		case c == '*' || c == '@' || c == '<' || c == ':' || c == '%':
			if d.n > 0 {
				d.stats.Bad++
			}
			d.line[0], d.n, d.lost = c, 1, false
		case c == ';' && d.n > 0 && nibble(d.line[0]) > 15:
			d.finish(d.line[0], d.line[1:d.n], emit)
		case c == '\n' || c == '\r':
			if d.n > 0 {
				if d.Bare && nibble(d.line[0]) < 16 {
					d.finish('*', d.line[:d.n], emit)
				} else {
					d.stats.Bad++
				}
			}
			d.n, d.lost = 0, false
		case c == ' ' || c == '\t':
		case d.lost:
		case d.n == 0 && !(d.Bare && nibble(c) < 16), d.n == len(d.line):
			if d.n > 0 || d.Bare {
				d.stats.Bad++
			}
			d.n, d.lost = 0, true // until the next line or start
		default:
			d.line[d.n] = c
			d.n++
		}
	}
}

func (d *Decoder) finish(start byte, digits []byte, emit func(*modes.Frame)) {
	d.n = 0
	if parse(start, digits, &d.frame) != nil {
		d.stats.Bad++
		return
	}
	d.stats.Frames++
	emit(&d.frame)
}

// Flush ends the last line as if a line feed followed: only a Decoder that is
// Bare may still hold a frame.
func (d *Decoder) Flush(emit func(*modes.Frame)) { d.Feed([]byte{'\n'}, emit) }

// Frames reads r to its end and yields each frame, valid until the next one.
// An error of r other than io.EOF, or io.ErrNoProgress after a hundred reads of
// nothing, is yielded last, with a nil frame.
func (d *Decoder) Frames(r io.Reader) iter.Seq2[*modes.Frame, error] {
	return func(yield func(*modes.Frame, error) bool) {
		buf := make([]byte, 4096)
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
			d.Flush(emit)
			if more && err != io.EOF {
				yield(nil, err)
			}
			return
		}
	}
}
