package sbs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"time"

	"signalbox.example/modes"
)

// ErrLine is returned for a line that is not a BaseStation message.
var ErrLine = errors.New("sbs: not a BaseStation message")

// Type is the kind of a message, 1 to 8, "MSG,n".
type Type uint8

// Types of messages, and the formats that they come from where more than one
// would do.
const (
	Identification   Type = 1 // extended squitter identification
	SurfacePosition  Type = 2
	AirbornePosition Type = 3
	AirborneVelocity Type = 4
	SurveillanceAlt  Type = 5 // DF4, 20
	SurveillanceID   Type = 6 // DF5, 21
	AirToAir         Type = 7 // DF0, 16
	AllCallReply     Type = 8 // DF11
)

const (
	numFields  = 22
	dateLayout = "2006/01/02"
	timeWrite  = "15:04:05.000"
	timeRead   = "15:04:05" // any fraction, or none
)

// A Message is one line.
type Message struct {
	// Type is 1 to 8.
	Type Type
	// Session, AircraftID and FlightID are numbers of the sending program's
	// database; dump1090 writes 1 for all of them.
	Session, AircraftID, FlightID int
	// Address is the aircraft. Addresses outside ICAO's space are written with
	// a tilde, as dump1090 does, and read as modes.AddressNonICAO.
	Address modes.Address
	// Generated and Logged are the times of the message. The zero time is an
	// empty field.
	Generated, Logged time.Time
	// Callsign is the identification.
	Callsign modes.Opt[modes.Callsign]
	// Altitude is in feet, GroundSpeed in knots, Track in degrees.
	Altitude           modes.Opt[int32]
	GroundSpeed, Track modes.Opt[float64]
	// Position is where it is.
	Position modes.Opt[modes.LatLon]
	// VerticalRate is in feet a minute.
	VerticalRate modes.Opt[int32]
	// Squawk is written with four digits.
	Squawk modes.Opt[modes.Squawk]
	// Alert is a changed squawk, Emergency one of 7500, 7600 and 7700, SPI a
	// pressed ident button.
	Alert, Emergency, SPI, OnGround modes.Opt[bool]
}

// Fill sets s from a decoded message at the time now, with the position that
// was found from it, if any ([modes.CPRGlobal], or package track). It reports
// whether there is a line to write: other squitters than identification,
// position and velocity have none.
func (s *Message) Fill(m *modes.Message, position modes.Opt[modes.LatLon], now time.Time) bool {
	*s = Message{Session: 1, AircraftID: 1, FlightID: 1, Address: m.Address, Generated: now, Logged: now}
	switch m.DF {
	case 0, 16:
		s.Type = AirToAir
	case 4, 20:
		s.Type = SurveillanceAlt
	case 5, 21:
		s.Type = SurveillanceID
	case 11:
		s.Type = AllCallReply
	case 17, 18:
		tc := m.TypeCode.V
		switch {
		case m.DF == 18 && m.Control.V == 3:
			s.Type = AirbornePosition
		case !m.TypeCode.OK || tc == 0:
			return false
		case tc <= 4:
			s.Type = Identification
		case tc <= 8:
			s.Type = SurfacePosition
		case tc == 19:
			s.Type = AirborneVelocity
		case tc <= 22:
			s.Type = AirbornePosition
		default:
			return false
		}
	default:
		return false
	}
	s.Callsign = m.Callsign
	if m.Altitude.OK {
		s.Altitude = modes.Some(m.Altitude.V.Feet)
	}
	s.GroundSpeed, s.Track, s.VerticalRate = m.Velocity.GroundSpeed, m.Velocity.Track, m.Velocity.VerticalRate
	s.Position = position
	s.Squawk = m.Squawk
	s.Alert, s.SPI, s.OnGround = m.Alert, m.SPI, m.OnGround
	if m.Squawk.OK {
		s.Emergency = modes.Some(m.Squawk.V.Emergency().OK)
	}
	return true
}

// Append appends the line, with carriage return and line feed, to b. Speed and
// track are rounded to whole numbers, positions to five decimals, times to
// milliseconds.
func (s *Message) Append(b []byte) []byte {
	b = append(b, "MSG,"...)
	b = strconv.AppendUint(b, uint64(s.Type), 10)
	for _, n := range [...]int{s.Session, s.AircraftID} {
		b = strconv.AppendInt(append(b, ','), int64(n), 10)
	}
	b = append(b, ',')
	if !s.Address.Kind.ICAO() {
		b = append(b, '~')
	}
	for sh := 20; sh >= 0; sh -= 4 {
		b = append(b, "0123456789ABCDEF"[s.Address.Value>>sh&15])
	}
	b = strconv.AppendInt(append(b, ','), int64(s.FlightID), 10)
	for _, t := range [...]time.Time{s.Generated, s.Logged} {
		b = append(b, ',')
		if t.IsZero() {
			b = append(b, ',')
			continue
		}
		b = t.AppendFormat(append(t.AppendFormat(b, dateLayout), ','), timeWrite)
	}
	b = append(b, ',')
	if s.Callsign.OK {
		b = append(b, bytes.TrimRight(s.Callsign.V[:], " ")...)
	}
	b = append(b, ',')
	if s.Altitude.OK {
		b = strconv.AppendInt(b, int64(s.Altitude.V), 10)
	}
	for _, v := range [...]modes.Opt[float64]{s.GroundSpeed, s.Track} {
		b = append(b, ',')
		if v.OK {
			b = strconv.AppendFloat(b, v.V, 'f', 0, 64)
		}
	}
	b = append(b, ',')
	if s.Position.OK {
		b = append(strconv.AppendFloat(b, s.Position.V.Lat, 'f', 5, 64), ',')
		b = strconv.AppendFloat(b, s.Position.V.Lon, 'f', 5, 64)
	} else {
		b = append(b, ',')
	}
	b = append(b, ',')
	if s.VerticalRate.OK {
		b = strconv.AppendInt(b, int64(s.VerticalRate.V), 10)
	}
	b = append(b, ',')
	if s.Squawk.OK {
		b = append(b, s.Squawk.V.String()...)
	}
	for _, f := range [...]modes.Opt[bool]{s.Alert, s.Emergency, s.SPI, s.OnGround} {
		b = append(b, ',')
		switch {
		case f.OK && f.V:
			b = append(b, "-1"...)
		case f.OK:
			b = append(b, '0')
		}
	}
	return append(b, '\r', '\n')
}

// Parse reads one line, with or without its end, into s. It returns [ErrLine]
// and leaves s alone when something in it is wrong. Lines of other kinds than
// MSG (SEL, ID, AIR, STA, CLK) are [ErrLine] too.
func Parse(line []byte, s *Message) error {
	line = bytes.TrimRight(line, "\r\n ")
	var fields [numFields][]byte
	n, more := 0, true
	for ; more && n < numFields; n++ {
		fields[n], line, more = bytes.Cut(line, []byte{','})
		fields[n] = bytes.TrimSpace(fields[n])
	}
	if n != numFields || more || string(fields[0]) != "MSG" {
		return ErrLine
	}
	var m Message
	bad := 0
	fail := func(field int) {
		if bad == 0 {
			bad = field
		}
	}
	number := func(field int, lo, hi int64) (v int64, ok bool) {
		f := fields[field-1]
		if len(f) == 0 {
			return 0, false
		}
		v, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil || v < lo || v > hi {
			fail(field)
			return 0, false
		}
		return v, true
	}
	decimal := func(field int, limit float64) (o modes.Opt[float64]) {
		f := fields[field-1]
		if len(f) == 0 {
			return
		}
		v, err := strconv.ParseFloat(string(f), 64)
		if err != nil || math.IsNaN(v) || math.Abs(v) > limit {
			fail(field)
			return
		}
		return modes.Some(v)
	}
	flag := func(field int) (o modes.Opt[bool]) {
		switch f := fields[field-1]; string(f) {
		case "":
		case "0":
			o = modes.Some(false)
		case "-1", "1":
			o = modes.Some(true)
		default:
			fail(field)
		}
		return
	}
	stamp := func(field int) (t time.Time) {
		d, c := fields[field-1], fields[field]
		if len(d) == 0 && len(c) == 0 {
			return
		}
		t, err := time.Parse(dateLayout+" "+timeRead, string(d)+" "+string(c))
		if err != nil {
			fail(field)
			return time.Time{}
		}
		return t
	}
	kind, ok := number(2, 1, 8)
	if !ok {
		fail(2)
	}
	m.Type = Type(kind)
	for i, p := range []*int{&m.Session, &m.AircraftID, nil, &m.FlightID} {
		if p == nil {
			continue
		}
		v, _ := number(3+i, math.MinInt32, math.MaxInt32)
		*p = int(v)
	}
	hex := fields[4]
	if len(hex) == 7 && hex[0] == '~' {
		m.Address.Kind = modes.AddressNonICAO
		hex = hex[1:]
	}
	v, err := strconv.ParseUint(string(hex), 16, 24)
	if err != nil || len(hex) != 6 {
		fail(5)
	}
	m.Address.Value = uint32(v)
	m.Generated, m.Logged = stamp(7), stamp(9)
	if c := fields[10]; len(c) > 0 {
		if !callsign(c, &m.Callsign) {
			fail(11)
		}
	}
	if v, ok := number(12, -100000, 1000000); ok {
		m.Altitude = modes.Some(int32(v))
	}
	m.GroundSpeed, m.Track = decimal(13, 1e5), decimal(14, 360)
	lat, lon := decimal(15, 90), decimal(16, 180)
	if lat.OK != lon.OK {
		fail(15)
	}
	if lat.OK && lon.OK {
		m.Position = modes.Some(modes.LatLon{Lat: lat.V, Lon: lon.V})
	}
	if v, ok := number(17, -1000000, 1000000); ok {
		m.VerticalRate = modes.Some(int32(v))
	}
	if q := fields[17]; len(q) > 0 {
		v, err := strconv.ParseUint(string(q), 8, 12)
		if err != nil || len(q) > 4 {
			fail(18)
		}
		m.Squawk = modes.Some(modes.Squawk(v>>9&7<<12 | v>>6&7<<8 | v>>3&7<<4 | v&7))
	}
	m.Alert, m.Emergency, m.SPI, m.OnGround = flag(19), flag(20), flag(21), flag(22)
	if bad != 0 {
		return fmt.Errorf("%w: field %d is %.40q", ErrLine, bad, fields[bad-1])
	}
	*s = m
	return nil
}

// callsign reads up to eight letters, digits and spaces.
func callsign(c []byte, o *modes.Opt[modes.Callsign]) bool {
	if len(c) > 8 {
		return false
	}
	v := modes.Callsign{' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '}
	for i, ch := range c {
		switch {
		case ch >= 'a' && ch <= 'z':
			ch -= 'a' - 'A'
		case ch >= 'A' && ch <= 'Z', ch >= '0' && ch <= '9', ch == ' ':
		default:
			return false
		}
		v[i] = ch
	}
	*o = modes.Some(v)
	return true
}

// maxLine bounds a line; longer ones are skipped.
const maxLine = 512

// Messages reads r to its end and yields each message, valid until the next
// one; with [ErrLine] and a nil message for each line that is none or is longer
// than 512 bytes, after which it goes on. Empty lines are passed over. An error of
// r other than io.EOF, or io.ErrNoProgress after a hundred reads of nothing, is
// yielded last.
func Messages(r io.Reader) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		var m Message
		buf := make([]byte, 4096)
		line := make([]byte, 0, maxLine)
		long := false
		finish := func() bool {
			defer func() { line, long = line[:0], false }()
			if long {
				return yield(nil, ErrLine)
			}
			if len(bytes.TrimSpace(line)) == 0 {
				return true
			}
			if err := Parse(line, &m); err != nil {
				return yield(nil, err)
			}
			return yield(&m, nil)
		}
		for idle := 0; ; {
			n, err := r.Read(buf)
			for _, c := range buf[:n] {
				switch {
				case c == '\n':
					if !finish() {
						return
					}
				case len(line) == maxLine:
					long = true
				default:
					line = append(line, c)
				}
			}
			if n > 0 {
				idle = 0
			} else if idle++; idle == 100 && err == nil {
				err = io.ErrNoProgress
			}
			if err == nil {
				continue
			}
			if finish() && err != io.EOF {
				yield(nil, err)
			}
			return
		}
	}
}
