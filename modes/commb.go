package modes

import (
	"math"
	"strings"
)

// A State is what is known of an aircraft when a Comm-B message arrives: hints
// that tell registers apart. The zero State knows nothing.
type State struct {
	// Altitude is the pressure altitude in feet; for a DF20 that of the frame.
	Altitude Opt[int32]
	// OnGround is the vertical status.
	OnGround Opt[bool]
	// GroundSpeed, IAS and TAS are in knots. Track is in degrees from true
	// north, Heading in degrees from magnetic north.
	GroundSpeed, Track, Heading, IAS, TAS, Mach Opt[float64]
	// VerticalRate is in feet a minute.
	VerticalRate Opt[int32]
	// Callsign is the identification from another message.
	Callsign Opt[Callsign]
	// GICB is the last report 1,7, [Register.GICB].
	GICB Opt[uint32]
}

// Reasons is a set of arguments for or against a candidate.
type Reasons uint32

// Reasons, with the text that [Reasons.String] gives.
const (
	ReasonIdentifier Reasons = 1 << iota // "identifier byte"
	ReasonReserved                       // "reserved bits"
	ReasonStatus                         // "status bits"
	ReasonRange                          // "usual values"
	ReasonAlphabet                       // "alphabet"
	ReasonRollRate                       // "track rate and roll"
	ReasonSpeeds                         // "ground speed and TAS"
	ReasonMach                           // "IAS and Mach"
	ReasonRates                          // "vertical rates"
	ReasonRound                          // "round altitudes"
	ReasonAltitude                       // "known altitude"
	ReasonTrack                          // "known track"
	ReasonHeading                        // "known heading"
	ReasonSpeed                          // "known speed"
	ReasonVertical                       // "known vertical rate"
	ReasonCallsign                       // "known callsign"
	ReasonDeclared                       // "capability report"
)

var reasonTexts = [...]string{"identifier byte", "reserved bits", "status bits", "usual values", "alphabet",
	"track rate and roll", "ground speed and TAS", "IAS and Mach", "vertical rates", "round altitudes",
	"known altitude", "known track", "known heading", "known speed", "known vertical rate", "known callsign",
	"capability report"}

// String returns the texts joined by ", ".
func (r Reasons) String() string {
	var parts []string
	for i, t := range reasonTexts {
		if r>>i&1 != 0 {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, ", ")
}

// A Candidate is one register that a Comm-B message may be.
type Candidate struct {
	// Code is the register.
	Code BDS
	// Score is the estimated probability, 0 to 1, that the message is this
	// register. The scores of all candidates add up to less than 1: the rest is
	// for registers not considered here.
	Score float32
	// For and Against are the arguments that weighed most.
	For, Against Reasons
	// Register is the message read as this register.
	Register Register
}

// InferCommB says which register a Comm-B message of DF20 or DF21 may be. The
// message does not carry the number, so the answer is a list, best first,
// appended to dst; it is empty for a message of zeros and for one that
// contradicts every register known here. hint may be nil.
//
// Each register rules messages out by its reserved bits, by fields that are
// not zero though their status bit is, and by values that do not occur. What
// remains is weighed: how much likelier is this message from this register
// than from one of random bits, given how often each register is asked for,
// how values usually lie, how they agree with each other (roll with track
// rate, Mach with airspeed, ground speed with airspeed, barometric with
// inertial rate) and with the hint. Registers considered: 0,5 0,6 1,0 1,7 2,0
// 3,0 4,0 4,4 4,5 5,0 5,3 6,0.
//
// It allocates only to grow dst, by at most 12.
func InferCommB(dst []Candidate, mb [7]byte, hint *State) []Candidate {
	v := load56(mb[:])
	if v == 0 {
		return dst
	}
	var none State
	if hint == nil {
		hint = &none
	}
	first := len(dst)
	sum := float32(unknownPrior)
	for _, k := range commbKinds {
		w := weigher{v: v, hint: hint, bits: k.prior}
		if !w.possible(k.code) {
			continue
		}
		w.declared(k.code)
		p := float32(math.Exp2(min(w.bits, 100)))
		sum += p
		if p < leastScore*unknownPrior {
			continue
		}
		// Insert by score; the list has twelve entries at most.
		dst = append(dst, Candidate{})
		i := len(dst) - 1
		for ; i > first && dst[i-1].Score < p; i-- {
			dst[i] = dst[i-1]
		}
		dst[i] = Candidate{Code: k.code, Score: p, For: w.pro, Against: w.con, Register: w.reg}
	}
	last := first
	for ; last < len(dst) && dst[last].Score >= leastScore*sum; last++ {
		dst[last].Score /= sum
	}
	return dst[:last]
}

// leastScore is the smallest score of a candidate that is returned.
const leastScore = 0.0005

// unknownPrior is the prior of "some other register", whose bits are taken as
// random.
const unknownPrior = 0.1

// commbKinds lists the registers with the logarithm to base 2 of how often
// each is asked for, roughly as radars do in Europe.
var commbKinds = [...]struct {
	code  BDS
	prior float64
}{
	{0x50, -2}, {0x60, -2}, {0x40, -2}, {0x10, -4}, {0x17, -4}, {0x20, -4},
	{0x30, -9}, {0x05, -8}, {0x44, -8}, {0x45, -9}, {0x53, -8}, {0x06, -11},
}

// A weigher adds up, in bits, the logarithm of how much likelier a message is
// from one register than from random bits.
type weigher struct {
	v        uint64
	hint     *State
	reg      Register
	bits     float64
	pro, con Reasons
}

// add weighs an argument.
func (w *weigher) add(why Reasons, bits float64) {
	w.bits += bits
	switch {
	case bits >= 1:
		w.pro |= why
	case bits <= -1:
		w.con |= why
	}
}

// zero demands that bits first to last are zero.
func (w *weigher) zero(first, last int) bool {
	if field(w.v, first, last) != 0 {
		return false
	}
	w.add(ReasonReserved, float64(last-first+1))
	return true
}

// percentBits holds log2(p / 50 %), the weight of a bit that has its value in p
// per cent of cases.
var percentBits = func() (t [101]float64) {
	for p := range t {
		t[p] = math.Log2(float64(p) / 50)
	}
	return
}()

// status demands that the field behind a status bit is zero when the bit is,
// and says whether all is well. usual is how often the bit is set, in per cent.
func (w *weigher) status(bit, last, usual int) bool {
	if flag(w.v, bit) {
		w.bits += percentBits[usual]
		return true
	}
	if field(w.v, bit+1, last) != 0 {
		return false
	}
	w.add(ReasonStatus, percentBits[100-usual]+float64(last-bit))
	return true
}

// A spread is how a difference lies that is usually within sigma, among values
// that random bits would spread over a width: top bits at 0, floor at worst.
type spread struct {
	scale, top, floor float64
}

func newSpread(sigma, width, floor float64) spread {
	// A normal distribution over a uniform one: log2(width / (sigma sqrt(2 pi))
	// e^(-(d/sigma)^2/2)).
	return spread{math.Log2E / 2 / (sigma * sigma), math.Log2(width / (sigma * math.Sqrt(2*math.Pi))), floor}
}

var (
	altitudeSpread    = newSpread(100, 51000, -14) // a position and the reply that carries it, ft
	temperatureSpread = newSpread(10, 256, -10)    // air and standard atmosphere, K
	pressureSpread    = newSpread(5, 2048, -14)    // static pressure and altitude, hPa
	windSpread        = newSpread(50, 520, -10)    // ground speed and TAS: the wind, kt
	turnSpread        = newSpread(0.25, 32, -8)    // track rate and what the roll makes, degrees a second
	directionSpread   = newSpread(8, 360, -8)      // a direction and the known one, degrees
	speedSpread       = newSpread(15, 520, -8)     // a speed and the known one, kt
	machSpread        = newSpread(10, 400, -12)    // IAS and what Mach makes at the altitude, kt
	soundSpread       = newSpread(40, 4000, -12)   // TAS over Mach and the speed of sound, kt
	ratesSpread       = newSpread(200, 32768, -6)  // barometric and inertial rate, ft/min
	driftSpread       = newSpread(15, 360, -6)     // heading and known track, degrees
	iasSpread         = newSpread(15, 400, -8)     // IAS and the known one, kt
	machHintSpread    = newSpread(0.03, 1, -8)     // Mach and the known one
	climbSpread       = newSpread(500, 12000, -4)  // a rate and the known one, ft/min
)

// near weighs a difference.
func (w *weigher) near(why Reasons, diff float64, s *spread) {
	w.add(why, max(s.top-s.scale*diff*diff, s.floor))
}

// steps weighs a value by the probability of the step it falls in: pairs of an
// upper limit and how many bits likelier than random that step is. Beyond the
// last the message is impossible.
func (w *weigher) steps(value float64, pairs ...float64) bool {
	for i := 0; i+1 < len(pairs); i += 2 {
		if value <= pairs[i] {
			w.add(ReasonRange, pairs[i+1])
			return true
		}
	}
	return false
}

func (w *weigher) speed(kt float64) bool {
	// Half the scale of 2,046 is already beyond airliners.
	return w.steps(kt, 0, -6, 79, -4, 600, 1.9, 700, -3, 1000, -7)
}

// turnDifference returns the angle between two directions, -180 to 180.
func turnDifference(a, b float64) float64 { return signed(a - b) }

// read decodes the message as the register. It comes after the tests of bits,
// which rule out most registers for less.
func (w *weigher) read(code BDS) *Register {
	w.reg, _ = decodeRegister(code, w.v)
	return &w.reg
}

// possible weighs the message as a register and says whether it can be that.
func (w *weigher) possible(code BDS) bool {
	v, h := w.v, w.hint
	switch code {
	case 0x05:
		if tc := field(v, 1, 5); tc < 9 || tc == 19 || tc > 22 {
			return false
		}
		r := w.read(code)
		w.bits += math.Log2(32.0 / 13)
		if !r.Altitude.OK || r.TypeCode.V >= 20 {
			w.bits -= 4
		} else if !h.Altitude.OK {
			w.steps(float64(r.Altitude.V.Feet), 45000, 0.3, 51000, -3, 130000, -8)
		} else {
			w.near(ReasonAltitude, float64(r.Altitude.V.Feet-h.Altitude.V), &altitudeSpread)
		}
		if h.OnGround.OK && h.OnGround.V {
			w.bits -= 8
		}
	case 0x06:
		if tc := field(v, 1, 5); tc < 5 || tc > 8 || !w.status(13, 20, 80) {
			return false
		}
		w.read(code)
		w.bits += 3 // 4 types of 32
		if !h.OnGround.OK || !h.OnGround.V {
			w.bits -= 8
		}
		if field(v, 6, 12) > 124 {
			return false
		}
	case 0x10:
		if field(v, 1, 8) != 0x10 || !w.zero(10, 14) {
			return false
		}
		w.add(ReasonIdentifier, 8)
		if w.read(code).DataLink.V.Subnetwork <= 5 {
			w.add(ReasonRange, 4)
		} else {
			w.add(ReasonRange, -3)
		}
	case 0x17:
		if !w.zero(29, 56) || !flag(v, 7) { // 2,0 is always served
			return false
		}
		w.read(code)
		w.bits++
		if field(v, 25, 28) == 0 {
			w.bits += 3
		} else {
			w.bits -= 3
		}
		// Enhanced surveillance serves 4,0 5,0 and 6,0 together.
		enhanced := []bool{flag(v, 9), flag(v, 16), flag(v, 24)}
		if enhanced[0] == enhanced[1] && enhanced[1] == enhanced[2] {
			w.add(ReasonRange, 1.5)
		} else {
			w.add(ReasonRange, -2)
		}
		// 0,5 0,6 0,8 are of extended squitter and come together.
		if flag(v, 1) == flag(v, 2) && flag(v, 2) == flag(v, 4) {
			w.add(ReasonRange, 1.5)
		} else {
			w.add(ReasonRange, -2)
		}
	case 0x20:
		if field(v, 1, 8) != 0x20 {
			return false
		}
		w.add(ReasonIdentifier, 8)
		r := w.read(code)
		if !r.Callsign.OK {
			if v&(1<<48-1) != 0x820820820820 { // eight spaces: none entered
				return false
			}
			w.bits += 8
			break
		}
		w.add(ReasonAlphabet, 8*math.Log2(64.0/37))
		if s := r.Callsign.V.String(); strings.Contains(s, " ") {
			w.add(ReasonAlphabet, -4)
		} else {
			w.bits += float64(8-len(s)) * 2
		}
		if h.Callsign.OK {
			if h.Callsign.V == r.Callsign.V {
				w.add(ReasonCallsign, 20)
			} else {
				w.add(ReasonCallsign, -3)
			}
		}
	case 0x30:
		if field(v, 1, 8) != 0x30 || field(v, 29, 30) == 3 {
			return false
		}
		w.add(ReasonIdentifier, 8)
		r := w.read(code)
		if !flag(v, 9) && !flag(v, 28) && field(v, 10, 15) != 0 {
			return false // advisory bits without an advisory
		}
		if !w.zero(16, 22) { // ACAS III
			return false
		}
		switch field(v, 29, 30) {
		case 0:
			if !w.zero(31, 56) {
				return false
			}
		case 1:
			if !w.zero(55, 56) || !possibleAddress(r.RA.V.Threat.V) {
				return false
			}
		}
	case 0x40:
		if !w.zero(40, 47) || !w.zero(52, 53) || !w.status(1, 13, 95) || !w.status(14, 26, 60) ||
			!w.status(27, 39, 90) || !w.status(48, 51, 40) || !w.status(54, 56, 50) {
			return false
		}
		r := w.read(code)
		for _, a := range [...]Opt[int32]{r.SelectedAltitude, r.FMSAltitude} {
			if !a.OK {
				continue
			}
			if !w.steps(float64(a.V), 45000, 0.5, 51000, -4) {
				return false
			}
			if off := (a.V+8)%100 - 8; off > -8 && off <= 8 {
				w.add(ReasonRound, 2.4)
			} else {
				w.add(ReasonRound, -2.5)
			}
		}
		if r.QNH.OK && !w.steps(math.Abs(r.QNH.V-1013.25), 0.1, 7, 40, 1.2, 75, -1, 130, -6) {
			return false
		}
		if !r.SelectedAltitude.OK && !r.FMSAltitude.OK && !r.QNH.OK {
			w.bits -= 6
		}
	case 0x44:
		if field(v, 1, 4) > 4 || !w.status(5, 23, 95) || !w.status(35, 46, 20) ||
			!w.status(47, 49, 20) || !w.status(50, 56, 20) {
			return false
		}
		r := w.read(code)
		w.add(ReasonReserved, math.Log2(16.0/5))
		if field(v, 1, 4) == 0 || !r.WindSpeed.OK {
			w.bits -= 5
		}
		if r.WindSpeed.OK && !w.steps(r.WindSpeed.V, 150, 1.5, 250, -2) {
			return false
		}
		if !w.atmosphere() {
			return false
		}
	case 0x45:
		if !w.zero(52, 56) || !w.status(1, 3, 20) || !w.status(4, 6, 20) || !w.status(7, 9, 20) ||
			!w.status(10, 12, 20) || !w.status(13, 15, 20) || !w.status(16, 26, 80) ||
			!w.status(27, 38, 40) || !w.status(39, 51, 20) {
			return false
		}
		r := w.read(code)
		if !w.atmosphere() {
			return false
		}
		if r.RadioHeight.OK {
			w.steps(float64(r.RadioHeight.V), 5000, 3, 66000, -3)
		}
		// Meteorological hazards are rare.
		for _, l := range [...]Opt[uint8]{r.Turbulence, r.WindShear, r.Microburst, r.Icing, r.WakeVortex} {
			if l.OK {
				w.steps(float64(l.V), 0, 1, 1, -1, 3, -3)
			}
		}
	case 0x50:
		return w.turnReport()
	case 0x53, 0x60:
		return w.speedReport(code)
	}
	return true
}

// atmosphere weighs temperature and pressure of 4,4 and 4,5.
func (w *weigher) atmosphere() bool {
	r, h := &w.reg, w.hint
	if r.Temperature.OK {
		if r.Temperature.V < -90 || r.Temperature.V > 60 {
			return false
		}
		if h.Altitude.OK {
			w.near(ReasonAltitude, r.Temperature.V+273.15-temperature(float64(h.Altitude.V)), &temperatureSpread)
		} else {
			w.add(ReasonRange, 0.7)
		}
	}
	if r.Pressure.OK {
		if r.Pressure.V < 50 || r.Pressure.V > 1100 {
			return false
		}
		if h.Altitude.OK {
			w.near(ReasonAltitude, r.Pressure.V-1013.25*pressureRatio(float64(h.Altitude.V)), &pressureSpread)
		}
	}
	return true
}

// turnReport weighs 5,0.
func (w *weigher) turnReport() bool {
	h := w.hint
	if !w.status(1, 11, 95) || !w.status(12, 23, 97) || !w.status(24, 34, 97) ||
		!w.status(35, 45, 85) || !w.status(46, 56, 95) {
		return false
	}
	r := w.read(0x50)
	if r.Roll.OK && !w.steps(math.Abs(r.Roll.V), 2, 4.5, 35, 0.1, 50, -4) {
		return false
	}
	if r.GroundSpeed.OK && !w.speed(r.GroundSpeed.V) || r.TAS.OK && !w.speed(r.TAS.V) {
		return false
	}
	if r.GroundSpeed.OK && r.TAS.OK {
		d := r.GroundSpeed.V - r.TAS.V
		if math.Abs(d) > 300 {
			return false
		}
		w.near(ReasonSpeeds, d, &windSpread)
	}
	if r.TrackRate.OK {
		if r.Roll.OK && r.TAS.OK && r.TAS.V >= 60 {
			want := 1091 * math.Tan(r.Roll.V*math.Pi/180) / r.TAS.V
			w.near(ReasonRollRate, r.TrackRate.V-want, &turnSpread)
		} else if !w.steps(math.Abs(r.TrackRate.V), 1, 3.5, 4, -1, 16, -6) {
			return false
		}
	}
	if r.Track.OK && h.Track.OK {
		w.near(ReasonTrack, turnDifference(r.Track.V, h.Track.V), &directionSpread)
	}
	if r.GroundSpeed.OK && h.GroundSpeed.OK {
		w.near(ReasonSpeed, r.GroundSpeed.V-h.GroundSpeed.V, &speedSpread)
	}
	if r.TAS.OK && h.TAS.OK {
		w.near(ReasonSpeed, r.TAS.V-h.TAS.V, &speedSpread)
	}
	return true
}

// speedReport weighs 5,3 and 6,0.
func (w *weigher) speedReport(code BDS) bool {
	h := w.hint
	if !w.status(1, 12, 97) || !w.status(13, 23, 97) {
		return false
	}
	if code == 0x60 {
		if !w.status(24, 34, 95) || !w.status(35, 45, 95) || !w.status(46, 56, 95) {
			return false
		}
	} else {
		if !w.status(24, 33, 95) || !w.status(34, 46, 95) || !w.status(47, 56, 95) {
			return false
		}
	}
	r := w.read(code)
	if code == 0x53 && r.TAS.OK && !w.speed(r.TAS.V) {
		return false
	}
	if r.IAS.OK && !w.steps(r.IAS.V, 0, -6, 79, -4, 380, 1.7, 500, -4) {
		return false
	}
	if r.Mach.OK && !w.steps(r.Mach.V, 0.1, -4, 0.92, 1, 1, -4) {
		return false
	}
	if r.IAS.OK && r.Mach.OK && r.Mach.V > 0 {
		if h.Altitude.OK {
			w.near(ReasonMach, r.IAS.V-machToCAS(r.Mach.V, float64(h.Altitude.V)), &machSpread)
		} else if r.IAS.V <= machToCAS(r.Mach.V, 0)+10 && r.IAS.V >= machToCAS(r.Mach.V, 50000)-10 {
			w.add(ReasonMach, 1)
		} else {
			w.add(ReasonMach, -10)
		}
	}
	if code == 0x53 && r.TAS.OK && r.Mach.OK && r.Mach.V > 0.1 {
		// TAS over Mach is the speed of sound, 560 to 680 kt in any air.
		w.near(ReasonMach, r.TAS.V/r.Mach.V-620, &soundSpread)
	}
	rate := func(o Opt[int32], scale float64) bool {
		return !o.OK || w.steps(math.Abs(float64(o.V)), 500, 4.3*scale, 3000, 1.3*scale, 6500, -3)
	}
	if !rate(r.BaroRate, 1) {
		return false
	}
	if code == 0x60 {
		if r.BaroRate.OK && r.InertialRate.OK {
			if math.Abs(float64(r.InertialRate.V)) > 6500 {
				return false
			}
			w.near(ReasonRates, float64(r.BaroRate.V-r.InertialRate.V), &ratesSpread)
		} else if !rate(r.InertialRate, 1) {
			return false
		}
	}
	if r.Heading.OK {
		if h.Heading.OK {
			w.near(ReasonHeading, turnDifference(r.Heading.V, h.Heading.V), &directionSpread)
		} else if h.Track.OK { // wind and magnetic variation lie between
			w.near(ReasonTrack, turnDifference(r.Heading.V, h.Track.V), &driftSpread)
		}
	}
	if r.IAS.OK && h.IAS.OK {
		w.near(ReasonSpeed, r.IAS.V-h.IAS.V, &iasSpread)
	}
	if r.Mach.OK && h.Mach.OK {
		w.near(ReasonSpeed, r.Mach.V-h.Mach.V, &machHintSpread)
	}
	for _, o := range [...]Opt[int32]{r.BaroRate, r.InertialRate} {
		if o.OK && h.VerticalRate.OK {
			w.near(ReasonVertical, float64(o.V-h.VerticalRate.V), &climbSpread)
		}
	}
	return true
}

// declared weighs whether the last capability report lists the register.
func (w *weigher) declared(code BDS) {
	if !w.hint.GICB.OK {
		return
	}
	for i, r := range gicbRegisters {
		if r == code {
			if w.hint.GICB.V>>(23-i)&1 != 0 {
				w.add(ReasonDeclared, 1)
			} else {
				w.add(ReasonDeclared, -6)
			}
		}
	}
}
