package track

import (
	"iter"
	"math"
	"slices"
	"time"

	"signalbox.example/modes"
)

// Config says how a Tracker judges. The zero value is ready.
type Config struct {
	// Reference is the receiver's position. With it, positions beyond MaxRange
	// are refused and surface positions are found without an airborne one.
	Reference modes.Opt[modes.LatLon]
	// MaxRange is the greatest distance from Reference in nautical miles; 0
	// means 300.
	MaxRange float64
	// Timeout forgets an aircraft that was not heard for so long; 0 means five
	// minutes. The table may hold it a sixteenth longer.
	Timeout time.Duration
	// Expire is the age at which values leave the table and aircraft.json; 0
	// means one minute. Callsign, category and quality figures stay as long as
	// the aircraft.
	Expire time.Duration
	// MaxAircraft bounds the table; 0 means 20,000. A new aircraft beyond it
	// displaces a sixteenth of the table, those that were silent longest among
	// the first to come.
	MaxAircraft int
	// DuplicateWindow is the time within which the same bits of the same
	// aircraft are a duplicate; 0 means 20 ms, less than zero none.
	DuplicateWindow time.Duration
	// Filter judges frames in Update; nil means one of the Tracker's own. Its
	// clock is the now of Update, as Unix time in ticks of 12 MHz, not the
	// Time12 of the frames: do not share it with a demodulator.
	Filter *modes.AddressFilter
}

// Changes is a set of what a message changed.
type Changes uint16

// What a message may change.
const (
	First     Changes = 1 << iota // first message of the aircraft
	Duplicate                     // the same bits again: nothing else was changed
	Position                      // a position that passed the checks
	Altitude                      // barometric or geometric
	Motion                        // speed, track, heading or rate
	Identity                      // callsign, category, squawk or emergency
	Ground                        // vertical status
	Status                        // quality figures, autopilot, advisory
	Refused                       // something in it was not plausible
)

// Has reports whether all of c are in the set.
func (s Changes) Has(c Changes) bool { return s&c == c }

// Stats counts what a Tracker did.
type Stats struct {
	// Messages of accepted frames, duplicates included; Rejected frames by
	// reason, of Update only.
	Messages uint64
	Rejected [modes.NumReasons]uint64
	// Duplicates of messages.
	Duplicates uint64
	// Global and Local positions were found.
	Global, Local uint64
	// BadRange, BadSpeed and BadPair positions were refused: too far from the
	// receiver, out of reach of the last one, or halves that do not fit.
	BadRange, BadSpeed, BadPair uint64
	// BadAltitude and BadSquawk came in replies and were not plausible.
	BadAltitude, BadSquawk uint64
	// Forgotten aircraft were silent too long, Displaced ones made room.
	Forgotten, Displaced uint64
}

// A Tracker keeps the table. Make one with [New]; there is nothing to close.
type Tracker struct {
	config  Config
	filter  *modes.AddressFilter
	byKey   map[uint32]*Aircraft
	list    []*Aircraft // in order of arrival
	stats   Stats
	swept   int64
	message modes.Message
	buf     []modes.Candidate
}

// New returns an empty table.
func New(c Config) *Tracker {
	if c.MaxRange == 0 {
		c.MaxRange = 300
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Minute
	}
	if c.Expire <= 0 {
		c.Expire = time.Minute
	}
	if c.MaxAircraft <= 0 {
		c.MaxAircraft = 20000
	}
	if c.DuplicateWindow == 0 {
		c.DuplicateWindow = 20 * time.Millisecond
	}
	t := &Tracker{config: c, filter: c.Filter, byKey: map[uint32]*Aircraft{}, buf: make([]modes.Candidate, 0, 12)}
	if t.filter == nil {
		t.filter = new(modes.AddressFilter)
	}
	return t
}

// Stats returns the counters.
func (t *Tracker) Stats() Stats { return t.stats }

// Len returns the number of aircraft in the table.
func (t *Tracker) Len() int { return len(t.list) }

// All yields the aircraft in order of their first message, those that have been
// silent for up to Config.Timeout included. The table must not be updated
// meanwhile.
func (t *Tracker) All() iter.Seq[*Aircraft] {
	return func(yield func(*Aircraft) bool) {
		for _, a := range t.list {
			if !yield(a) {
				return
			}
		}
	}
}

// Get returns the aircraft of a key ([modes.Address.Key]), nil when there is
// none. It goes on to change with each update; see [Aircraft].
func (t *Tracker) Get(key uint32) *Aircraft { return t.byKey[key] }

// Update judges a frame by Config.Filter, decodes it and puts it into the table
// as heard at now. For a frame that is not accepted the aircraft is nil. It keeps
// nothing of f.
func (t *Tracker) Update(f *modes.Frame, now time.Time) (*Aircraft, Changes, modes.Reason) {
	reason := t.filter.Accept(f, ticks(now))
	if reason == modes.Accepted && modes.Decode(f, &t.message) != nil {
		reason = modes.RejectedFormat
	}
	if reason != modes.Accepted {
		t.stats.Rejected[reason]++
		return nil, 0, reason
	}
	a, c := t.Apply(f, &t.message, now)
	return a, c, reason
}

// ticks returns a time in ticks of 12 MHz.
func ticks(now time.Time) uint64 {
	n := uint64(max(now.UnixNano(), 0))
	return n/1000*12 + n%1000*12/1000
}

// Apply puts a frame into the table that the caller has judged and decoded into
// m, as heard at now. now should not go back; it may stand still. Apply keeps
// nothing of f and m.
func (t *Tracker) Apply(f *modes.Frame, m *modes.Message, now time.Time) (*Aircraft, Changes) {
	n := now.UnixNano()
	if n == 0 {
		n = 1 // 0 stands for never
	}
	if every := int64(t.config.Timeout) / 16; n-t.swept > every || n < t.swept-every {
		t.sweep(n)
	}
	var changes Changes
	key := m.Address.Key()
	a := t.byKey[key]
	if a != nil && n-a.Last.UnixNano() > int64(t.config.Timeout) { // not swept yet
		t.forget(a)
		a = nil
	}
	if a == nil {
		if len(t.list) >= t.config.MaxAircraft {
			t.displace()
		}
		a = &Aircraft{Address: m.Address, key: key, First: now}
		t.byKey[key] = a
		t.list = append(t.list, a)
		changes = First
	}
	t.stats.Messages++
	a.Messages++
	a.Last = now
	if f.HasSignal {
		p := math.Exp2(float64(f.Signal) * (math.Log2(10) / 10))
		if a.signal == 0 {
			a.signal = p
		}
		a.signal += (p - a.signal) / 8
	}
	if t.duplicate(a, f, n) {
		a.Duplicates++
		t.stats.Duplicates++
		return a, changes | Duplicate
	}
	source := messageSource(m)
	if source >= kindSource(a.Address.Kind, a.kindAt != 0) || n-a.kindAt > int64(time.Minute) {
		a.Address.Kind, a.kindAt = m.Address.Kind, 0
		if source > SourceModeS {
			a.kindAt = n
		}
	}
	changes |= t.apply(a, m, source, n, now)
	return a, changes
}

// kindSource tells the source of messages by the kind of their address.
// squitter tells ADS-B from plain replies, which have the same kind.
func kindSource(k modes.AddressKind, squitter bool) Source {
	switch k {
	case modes.AddressADSR, modes.AddressADSRAnonymous:
		return SourceADSR
	case modes.AddressTISB, modes.AddressTISBNonICAO, modes.AddressTISBTrackFile:
		return SourceTISB
	}
	if squitter {
		return SourceADSB
	}
	return SourceModeS
}

func messageSource(m *modes.Message) Source {
	return kindSource(m.Address.Kind, m.DF == 17 || m.DF == 18)
}

// duplicate tells whether the frame came within the window before.
func (t *Tracker) duplicate(a *Aircraft, f *modes.Frame, now int64) bool {
	window := int64(t.config.DuplicateWindow)
	if window < 0 {
		return false
	}
	for i := range a.last {
		l := &a.last[i]
		if age := now - l.at; l.at != 0 && age >= 0 && age <= window &&
			(l.data == f.Data || f.Bits == 56 && [7]byte(l.data[:7]) == [7]byte(f.Data[:7])) {
			return true
		}
	}
	a.last[a.nLast%uint8(len(a.last))] = arrival{f.Data, now}
	a.nLast++
	return false
}

// forget removes one aircraft.
func (t *Tracker) forget(a *Aircraft) {
	delete(t.byKey, a.key)
	i := slices.Index(t.list, a)
	t.list = slices.Delete(t.list, i, i+1)
	t.stats.Forgotten++
}

// sweep forgets the aircraft that are silent too long.
func (t *Tracker) sweep(now int64) {
	t.swept = now
	kept := t.list[:0]
	for _, a := range t.list {
		if now-a.Last.UnixNano() > int64(t.config.Timeout) {
			delete(t.byKey, a.key)
			t.stats.Forgotten++
			continue
		}
		kept = append(kept, a)
	}
	clear(t.list[len(kept):])
	t.list = kept
}

// displace removes the aircraft that is silent longest, and with it a
// sixteenth of the table so that the search is not made for each newcomer.
func (t *Tracker) displace() {
	for range len(t.list)/16 + 1 {
		oldest := 0
		// The longest silent ones are among the first to come as a rule; a full
		// search of each would be quadratic.
		for i, a := range t.list[:min(len(t.list), 512)] {
			if a.Last.Before(t.list[oldest].Last) {
				oldest = i
			}
		}
		delete(t.byKey, t.list[oldest].key)
		t.list = append(t.list[:oldest], t.list[oldest+1:]...)
		t.stats.Displaced++
	}
}

// apply puts the content of a message into the aircraft.
func (t *Tracker) apply(a *Aircraft, m *modes.Message, source Source, n int64, now time.Time) (c Changes) {
	set := func(done bool, what Changes) {
		if done {
			c |= what
		}
	}
	if m.OnGround.OK {
		set(put(&a.OnGround, m.OnGround.V, source, n), Ground)
	}
	if m.Altitude.OK {
		c |= t.altitude(a, m, source, n)
	}
	if m.Squawk.OK {
		c |= t.squawk(a, m, source, n)
	} else {
		set(putOpt(&a.Emergency, m.Emergency, source, n), Identity)
	}
	set(putOpt(&a.Callsign, m.Callsign, source, n), Identity)
	set(putOpt(&a.Category, m.Category, source, n), Identity)
	putOpt(&a.Alert, m.Alert, source, n)
	putOpt(&a.SPI, m.SPI, source, n)
	if m.Status.OK {
		t.status(a, &m.Status.V, source, n)
		c |= Status
	}
	if m.TypeCode.OK || m.Velocity.GroundSpeed.OK {
		t.velocity(a, m, source, n, &c)
	}
	if m.Target.OK {
		t.target(a, &m.Target.V, source, n)
		c |= Status
	}
	set(putOpt(&a.NACv, m.NACv, source, n), Status)
	set(putOpt(&a.RA, m.RA, source, n), Status)
	if m.Position.OK {
		c |= t.position(a, m, source, n)
	}
	if m.MB.OK {
		c |= t.commB(a, m, n, now)
	}
	return c
}

func (t *Tracker) altitude(a *Aircraft, m *modes.Message, source Source, n int64) Changes {
	feet := m.Altitude.V.Feet
	if m.Altitude.V.Source == modes.Geometric {
		if put(&a.GeomAltitude, feet, source, n) {
			return Altitude
		}
		return 0
	}
	if source == SourceModeS && a.BaroAltitude.OK() {
		// The address is all that protects a reply: a jump must come twice.
		if !reachable(feet, &a.BaroAltitude, n) {
			agrees := a.pendAlt.OK() && n-a.pendAlt.at <= hold && reachable(feet, &a.pendAlt, n)
			a.pendAlt = Field[int32]{feet, n, source}
			if !agrees {
				t.stats.BadAltitude++
				return Refused
			}
		}
	}
	if put(&a.BaroAltitude, feet, source, n) {
		return Altitude
	}
	return 0
}

// reachable tells whether an altitude can follow another: 500 ft and 12,000
// ft a minute, or any after half a minute.
func reachable(feet int32, f *Field[int32], now int64) bool {
	dt := float64(now-f.at) / 1e9
	return dt > 30 || math.Abs(float64(feet-f.V)) <= 500+200*max(dt, 0)
}

func (t *Tracker) squawk(a *Aircraft, m *modes.Message, source Source, n int64) (c Changes) {
	id := m.Squawk.V
	if source == SourceModeS && a.Squawk.OK() && a.Squawk.V != id {
		agrees := a.pendID.OK() && n-a.pendID.at <= hold && a.pendID.V == id
		a.pendID = Field[modes.Squawk]{id, n, source}
		if !agrees {
			t.stats.BadSquawk++
			return Refused
		}
	}
	if !put(&a.Squawk, id, source, n) {
		return 0
	}
	switch {
	case m.Emergency.OK:
		put(&a.Emergency, m.Emergency.V, source, n)
	case a.Emergency.Source <= source: // a normal squawk ends what a squawk declared
		put(&a.Emergency, modes.EmergencyNone, source, n)
	}
	return Identity
}

func (t *Tracker) velocity(a *Aircraft, m *modes.Message, source Source, n int64, c *Changes) {
	v := &m.Velocity
	moved := putOpt(&a.GroundSpeed, v.GroundSpeed, source, n)
	surface := m.Position.OK && m.Position.V.Kind == modes.CPRSurface
	switch {
	case surface && a.surfHead.V:
		moved = putOpt(a.heading(), v.Track, source, n) || moved
	default:
		moved = putOpt(&a.Track, v.Track, source, n) || moved
	}
	moved = putOpt(a.heading(), v.Heading, source, n) || moved
	moved = putOpt(&a.IAS, v.IAS, source, n) || moved
	moved = putOpt(&a.TAS, v.TAS, source, n) || moved
	if v.VerticalRate.OK {
		rate := &a.GeomRate
		if v.VerticalRateSource.OK && v.VerticalRateSource.V == modes.Barometric {
			rate = &a.BaroRate
		}
		moved = put(rate, v.VerticalRate.V, source, n) || moved
	}
	if moved {
		*c |= Motion
	}
	if d := v.GeometricMinusBaro; d.OK {
		if alt := a.BaroAltitude.fresh(n, int64(5*time.Second)); alt.OK && put(&a.GeomAltitude, alt.V+d.V, source, n) {
			*c |= Altitude
		}
	}
}

// heading returns the field that a heading belongs to, by the aircraft's
// horizontal reference direction; magnetic when it never said.
func (a *Aircraft) heading() *Field[float64] {
	if a.magHead.OK() && !a.magHead.V {
		return &a.TrueHeading
	}
	return &a.MagHeading
}

func (t *Tracker) status(a *Aircraft, s *modes.OperationalStatus, source Source, n int64) {
	put(&a.Version, s.Version, source, n)
	putOpt(&a.NACp, s.NACp, source, n)
	putOpt(&a.SIL, s.SIL, source, n)
	putOpt(&a.SILPerSample, s.SILPerSample, source, n)
	putOpt(&a.SDA, s.SDA, source, n)
	putOpt(&a.GVA, s.GVA, source, n)
	putOpt(&a.NICbaro, s.NICbaro, source, n)
	putOpt(&a.nicA, s.NICa, source, n)
	putOpt(&a.nicC, s.NICc, source, n)
	putOpt(&a.magHead, s.HeadingMagnetic, source, n)
	putOpt(&a.surfHead, s.SurfaceHeading, source, n)
}

func (t *Tracker) target(a *Aircraft, s *modes.TargetState, source Source, n int64) {
	altitude := &a.SelectedAltitude
	if s.AltitudeSource == modes.TargetFMS {
		altitude = &a.FMSAltitude
	}
	putOpt(altitude, s.Altitude, source, n)
	putOpt(&a.QNH, s.QNH, source, n)
	putOpt(&a.SelectedHeading, s.Heading, source, n)
	putOpt(&a.NACp, s.NACp, source, n)
	putOpt(&a.SIL, s.SIL, source, n)
	putOpt(&a.SILPerSample, s.SILPerSample, source, n)
	putOpt(&a.NICbaro, s.NICbaro, source, n)
	if s.Autopilot.OK {
		put(&a.Modes, NavModes{s.Autopilot.V, s.VNAV.V, s.AltitudeHold.V, s.Approach.V, s.LNAV.V, s.TCAS.V}, source, n)
	}
}

// sureScore is the score from which on a Comm-B register is used.
const sureScore = 0.95

func (t *Tracker) commB(a *Aircraft, m *modes.Message, n int64, now time.Time) (c Changes) {
	hint := a.State(now)
	if m.Altitude.OK { // the frame's own is better than the last one
		hint.Altitude = modes.Some(m.Altitude.V.Feet)
	}
	t.buf = modes.InferCommB(t.buf[:0], m.MB.V, &hint)
	if len(t.buf) == 0 || t.buf[0].Score < sureScore {
		return 0
	}
	r := &t.buf[0].Register
	const s = SourceModeS
	if putOpt(&a.Callsign, r.Callsign, s, n) {
		c |= Identity
	}
	moved := putOpt(&a.GroundSpeed, r.GroundSpeed, s, n)
	if r.Code == 0x50 {
		moved = putOpt(&a.Track, r.Track, s, n) || moved
	}
	moved = putOpt(&a.Roll, r.Roll, s, n) || moved
	moved = putOpt(&a.TrackRate, r.TrackRate, s, n) || moved
	moved = putOpt(&a.TAS, r.TAS, s, n) || moved
	moved = putOpt(&a.IAS, r.IAS, s, n) || moved
	moved = putOpt(&a.Mach, r.Mach, s, n) || moved
	moved = putOpt(&a.MagHeading, r.Heading, s, n) || moved
	moved = putOpt(&a.BaroRate, r.BaroRate, s, n) || moved
	moved = putOpt(&a.GeomRate, r.InertialRate, s, n) || moved
	if moved {
		c |= Motion
	}
	status := putOpt(&a.SelectedAltitude, r.SelectedAltitude, s, n)
	status = putOpt(&a.FMSAltitude, r.FMSAltitude, s, n) || status
	status = putOpt(&a.QNH, r.QNH, s, n) || status
	status = putOpt(&a.GICB, r.GICB, s, n) || status
	status = putOpt(&a.RA, r.RA, s, n) || status
	status = putOpt(&a.WindSpeed, r.WindSpeed, s, n) || status
	status = putOpt(&a.WindDirection, r.WindDirection, s, n) || status
	status = putOpt(&a.Temperature, r.Temperature, s, n) || status
	if status {
		c |= Status
	}
	return c
}

func decibel(power float64) float64 { return 10 * math.Log10(power) }
