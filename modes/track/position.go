package track

import (
	"math"
	"time"

	"signalbox.example/modes"
)

// pairAge returns how far apart the halves of a pair may lie (DO-260B section
// 2.2.10.2): 10 s in the air; on the surface 50 s for those slower than 25 kt
// and 25 s for others.
func pairAge(a *Aircraft, kind modes.CPRKind, now int64) int64 {
	if kind != modes.CPRSurface {
		return int64(10 * time.Second)
	}
	if gs := a.GroundSpeed.fresh(now, int64(50*time.Second)); gs.OK && gs.V <= 25 {
		return int64(50 * time.Second)
	}
	return int64(25 * time.Second)
}

// localAge is the age up to which the last position is a reference for one
// message alone.
const localAge = int64(5 * time.Minute)

// position finds the position of a message and checks it.
func (t *Tracker) position(a *Aircraft, m *modes.Message, source Source, n int64) Changes {
	c := m.Position.V
	odd := 0
	if c.Odd {
		odd = 1
	}
	a.cpr[c.Kind][odd] = half{c, n, source}
	if source < a.Position.Source && n-a.Position.at <= hold {
		return 0
	}
	other := &a.cpr[c.Kind][1-odd]
	if other.at != 0 && other.source == source && n-other.at <= pairAge(a, c.Kind, n) && n >= other.at {
		ref := t.surfaceReference(a, n)
		even, odd := &a.cpr[c.Kind][0].cpr, &a.cpr[c.Kind][1].cpr
		p, err := modes.CPRGlobal(*even, *odd, c.Odd, ref)
		if err == nil {
			return t.check(a, m, p, source, n, true)
		}
		if err != modes.ErrCPRReference {
			t.stats.BadPair++
		}
	}
	// One message alone, near the last position.
	if a.Position.OK() && n-a.Position.at <= localAge && t.reach(a, c.Kind, n) <= localReach(c.Kind) {
		if p, err := modes.CPRLocal(c, a.Position.V); err == nil {
			return t.check(a, m, p, source, n, false)
		}
	}
	return 0
}

// surfaceReference returns a position in the same part of the world: the
// aircraft's last one, or the receiver's.
func (t *Tracker) surfaceReference(a *Aircraft, n int64) *modes.LatLon {
	if a.Position.OK() && n-a.Position.at <= int64(time.Hour) {
		return &a.Position.V
	}
	if t.config.Reference.OK {
		return &t.config.Reference.V
	}
	return nil
}

// localReach is how far from the reference a single message is trusted, in
// NM: about half of what the coding allows.
func localReach(k modes.CPRKind) float64 {
	if k == modes.CPRSurface {
		return 20
	}
	return 90
}

// reach returns how far from its last position the aircraft can be, in NM.
func (t *Tracker) reach(a *Aircraft, kind modes.CPRKind, n int64) float64 {
	speed := 1000.0
	if kind == modes.CPRSurface {
		speed = 200
	}
	if gs := a.GroundSpeed.fresh(n, int64(30*time.Second)); gs.OK && a.GroundSpeed.Source >= a.Position.Source {
		speed = gs.V*1.3 + 60
	}
	slack := 0.3
	if kind == modes.CPRCoarse {
		slack = 1.5
	}
	return speed*math.Abs(float64(n-a.Position.at))/3600e9 + slack
}

// check refuses a position that is too far from the receiver or from the last
// one. When three global positions in a row agree with each other and not with
// the last one, it was the last one that was wrong.
func (t *Tracker) check(a *Aircraft, m *modes.Message, p modes.LatLon, source Source, n int64, global bool) Changes {
	if ref := t.config.Reference; ref.OK && Distance(ref.V, p) > t.config.MaxRange {
		t.stats.BadRange++
		return Refused
	}
	kind := m.Position.V.Kind
	if a.Position.OK() && n-a.Position.at <= localAge && Distance(a.Position.V, p) > t.reach(a, kind, n) {
		t.stats.BadSpeed++
		if !global {
			return Refused
		}
		r := &a.rival
		dt := math.Abs(float64(n - r.at))
		if r.n > 0 && Distance(r.pos, p) <= 1000*dt/3600e9+0.3 {
			r.n++
		} else {
			r.n = 1
		}
		r.pos, r.at = p, n
		if r.n < 3 {
			return Refused
		}
	}
	a.rival.n = 0
	a.Position = Field[modes.LatLon]{p, n, source}
	if global {
		t.stats.Global++
	} else {
		t.stats.Local++
	}
	nic, radius, ok := modes.NIC(m.TypeCode.V, a.Version.V, a.nicA.V, m.NICb.V, a.nicC.V)
	a.PositionNIC, a.PositionRadius = Field[uint8]{}, Field[float64]{}
	if ok && m.TypeCode.OK {
		a.PositionNIC = Field[uint8]{nic, n, source}
		if radius.OK {
			a.PositionRadius = Field[float64]{radius.V, n, source}
		}
	}
	return Position
}

// Distance returns the great-circle distance between two positions in
// nautical miles, on a sphere of 3,440.065 NM.
func Distance(a, b modes.LatLon) float64 {
	const rad = math.Pi / 180
	s := math.Sin((b.Lat - a.Lat) * rad / 2)
	u := math.Sin((b.Lon - a.Lon) * rad / 2)
	return 2 * 3440.065 * math.Asin(min(1, math.Sqrt(s*s+math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*u*u)))
}
