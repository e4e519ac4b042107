package track

import (
	"time"

	"signalbox.example/modes"
)

// Source says how a value came. A later one is better.
type Source uint8

// Sources, worst first.
const (
	SourceNone  Source = iota
	SourceModeS        // replies to interrogation, Comm-B registers
	SourceTISB         // radar, through a ground station
	SourceADSR         // rebroadcast by a ground station
	SourceADSB         // the aircraft itself
)

// A Field is one value of an aircraft with its age and source. A value from a
// better source keeps worse ones out for 15 s.
type Field[T any] struct {
	// V is the value, meaningful when Source is not SourceNone.
	V T
	// at is the time of the value in Unix nanoseconds.
	at int64
	// Source says how it came; SourceNone means that it never came.
	Source Source
}

// OK reports whether the value ever came.
func (f *Field[T]) OK() bool { return f.Source != SourceNone }

// Time returns when the value came; the zero time if never.
func (f *Field[T]) Time() time.Time {
	if f.Source == SourceNone {
		return time.Time{}
	}
	return time.Unix(0, f.at)
}

// Fresh returns the value when it is not older than limit at now.
func (f *Field[T]) Fresh(now time.Time, limit time.Duration) modes.Opt[T] {
	return f.fresh(now.UnixNano(), int64(limit))
}

func (f *Field[T]) fresh(now, limit int64) modes.Opt[T] {
	if f.Source == SourceNone || now-f.at > limit {
		return modes.Opt[T]{}
	}
	return modes.Some(f.V)
}

// hold is how long a better source keeps a worse one out.
const hold = int64(15 * time.Second)

// put sets a value unless a better source holds it; it reports whether it did.
func put[T any](f *Field[T], v T, source Source, now int64) bool {
	if source < f.Source && now-f.at <= hold {
		return false
	}
	*f = Field[T]{v, now, source}
	return true
}

// putOpt is put for a value that may be absent.
func putOpt[T any](f *Field[T], v modes.Opt[T], source Source, now int64) bool {
	return v.OK && put(f, v.V, source, now)
}

// An Aircraft is one row of the table. Fields may be read, not written. It
// belongs to the Tracker: updates change it, and once the Tracker has forgotten
// it nothing does.
//
// The order is that of use: what nearly every message touches comes first, so
// that a large table costs few cache lines a message.
type Aircraft struct {
	// Address is the address with the kind of the best message lately.
	Address modes.Address
	key     uint32
	nLast   uint8
	// Messages counts messages; Duplicates of them came twice, from a second
	// path or receiver, and are not used otherwise.
	Messages, Duplicates uint64
	// Last is the time of the last message.
	Last   time.Time
	signal float64 // mean power, linear; 0 is none
	kindAt int64
	last   [4]arrival
	// OnGround is the vertical status.
	OnGround Field[bool]
	// BaroAltitude and GeomAltitude are in feet.
	BaroAltitude, GeomAltitude Field[int32]
	// Position is the last position that passed the checks.
	Position Field[modes.LatLon]
	cpr      [3][2]half
	// PositionNIC is the NIC of Position, PositionRadius its radius of
	// containment in metres.
	PositionNIC    Field[uint8]
	PositionRadius Field[float64]
	// GroundSpeed in knots and Track in degrees are the motion over ground.
	GroundSpeed, Track Field[float64]
	// BaroRate and GeomRate are in feet a minute.
	BaroRate, GeomRate Field[int32]
	NACv               Field[uint8] // accuracy category of the velocity
	Alert, SPI         Field[bool]  // changed squawk, pressed ident button
	magHead            Field[bool]  // headings are magnetic
	surfHead           Field[bool]  // surface track is a heading
	// Squawk is the Mode A code, Emergency a declared status.
	Squawk    Field[modes.Squawk]
	Emergency Field[modes.Emergency]
	// Callsign and Category identify the aircraft.
	Callsign Field[modes.Callsign]
	Category Field[modes.Category]

	// First is the time of the first message.
	First time.Time
	// MagHeading and TrueHeading are degrees; IAS and TAS knots.
	MagHeading, TrueHeading, IAS, TAS, Mach Field[float64]
	// Roll is in degrees, TrackRate in degrees a second.
	Roll, TrackRate Field[float64]
	// QNH, SelectedAltitude (MCP), FMSAltitude and SelectedHeading are what the
	// autopilot was told.
	QNH, SelectedHeading          Field[float64]
	SelectedAltitude, FMSAltitude Field[int32]
	// Modes are its engaged modes.
	Modes Field[NavModes]
	// WindSpeed, WindDirection and Temperature (Celsius) are of BDS 4,4.
	WindSpeed, WindDirection, Temperature Field[float64]
	// Version is the ADS-B version; NACp to NICbaro are quality figures.
	Version               Field[uint8]
	NACp, SIL, GVA, SDA   Field[uint8]
	SILPerSample, NICbaro Field[bool]
	// RA is the last resolution advisory.
	RA Field[modes.ResolutionAdvisory]
	// GICB is the last capability report, BDS 1,7.
	GICB Field[uint32]

	nicA    Field[bool]
	nicC    Field[bool]
	rival   rival
	pendAlt Field[int32]
	pendID  Field[modes.Squawk]
}

// NavModes are the engaged modes of an autopilot.
type NavModes struct {
	Autopilot, VNAV, AltitudeHold, Approach, LNAV, TCAS bool
}

// half is one CPR position as it came.
type half struct {
	cpr    modes.CPR
	at     int64
	source Source
}

// rival is a position that contradicts the held one.
type rival struct {
	pos modes.LatLon
	at  int64
	n   int
}

// arrival remembers a frame for the search of duplicates.
type arrival struct {
	data [14]byte
	at   int64
}

// Signal returns the signal level in dBFS, a running mean of the power over about
// eight messages, absent when no message had one.
func (a *Aircraft) Signal() (o modes.Opt[float64]) {
	if a.signal > 0 {
		o = modes.Some(decibel(a.signal))
	}
	return
}

// Source returns the best source of a message within the last minute before
// the aircraft's last message.
func (a *Aircraft) Source() Source { return kindSource(a.Address.Kind, a.kindAt != 0) }

// State returns what is known of the aircraft at now, as a hint for
// [modes.InferCommB]. Values older than 10 s are left out, but for Callsign and
// GICB.
func (a *Aircraft) State(now time.Time) modes.State {
	n, limit := now.UnixNano(), int64(10*time.Second)
	rate := a.BaroRate.fresh(n, limit)
	if !rate.OK {
		rate = a.GeomRate.fresh(n, limit)
	}
	s := modes.State{
		Altitude: a.BaroAltitude.fresh(n, limit), OnGround: a.OnGround.fresh(n, limit),
		GroundSpeed: a.GroundSpeed.fresh(n, limit), Track: a.Track.fresh(n, limit), Heading: a.MagHeading.fresh(n, limit),
		IAS: a.IAS.fresh(n, limit), TAS: a.TAS.fresh(n, limit), Mach: a.Mach.fresh(n, limit),
		VerticalRate: rate,
	}
	if a.Callsign.OK() {
		s.Callsign = modes.Some(a.Callsign.V)
	}
	if a.GICB.OK() {
		s.GICB = modes.Some(a.GICB.V)
	}
	return s
}
