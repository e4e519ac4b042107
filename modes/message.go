package modes

import "math"

// A Message is what a frame says. Altitudes are in feet, speeds in knots,
// vertical rates in feet a minute, angles in degrees. Fields that are said to
// be a field of the standard (CA, FS, DR, ...) hold its number as it was sent.
// [Decode] fills it; a caller keeps one and decodes into it again and again.
// Every field but DF and Address is absent unless the frame carries it.
type Message struct {
	// DF is the downlink format, as [Frame.DF].
	DF uint8
	// Address is the transponder's address. For formats with address parity
	// (DF0, 4, 5, 16, 20, 21, 24) it is the remainder, of the kind AddressICAO:
	// right only when an [AddressFilter] knows it.
	Address Address
	// Interrogator is the code to which a DF11 replies.
	Interrogator Opt[Interrogator]
	// Capability is CA of DF11 and DF17; Control is CF of DF18.
	Capability, Control Opt[uint8]
	// FlightStatus is FS of DF4, 5, 20 and 21.
	FlightStatus Opt[uint8]
	// DownlinkRequest (DR) and UtilityMessage (UM) are those of DF4, 5, 20
	// and 21.
	DownlinkRequest, UtilityMessage Opt[uint8]
	// CrossLink (DF0), SensitivityLevel and ReplyInformation (DF0, DF16) are
	// the ACAS fields CC, SL and RI.
	CrossLink                          Opt[bool]
	SensitivityLevel, ReplyInformation Opt[uint8]
	// Alert is a changed squawk, SPI a pressed ident button.
	Alert, SPI Opt[bool]
	// OnGround is the vertical status, from VS, FS, CA, or the kind of
	// position.
	OnGround Opt[bool]
	// Altitude is the altitude with its source.
	Altitude Opt[Altitude]
	// Squawk is the Mode A code.
	Squawk Opt[Squawk]
	// Emergency is a declared status, or that of a squawk 7500, 7600, 7700.
	Emergency Opt[Emergency]
	// TypeCode and Subtype are those of extended squitter. Types without
	// subtypes have none.
	TypeCode, Subtype Opt[uint8]
	// Callsign and Category are the identification. A category of 0 (A0, B0,
	// ...: no information) is absent.
	Callsign Opt[Callsign]
	Category Opt[Category]
	// Position is an encoded position; see [CPRGlobal] and [CPRLocal].
	Position Opt[CPR]
	// NICb is the NIC supplement B of an airborne position (single antenna
	// flag in versions 0 and 1). TimeSync is its T bit.
	NICb, TimeSync Opt[bool]
	// Velocity is set by airborne velocity, surface position and coarse TIS-B.
	Velocity Velocity
	// NACv is the navigation accuracy category for velocity.
	NACv Opt[uint8]
	// RA is an ACAS resolution advisory (DF16, TC 28 subtype 2).
	RA Opt[ResolutionAdvisory]
	// Status is an operational status (TC 31).
	Status Opt[OperationalStatus]
	// Target is a target state and status (TC 29).
	Target Opt[TargetState]
	// MB is the Comm-B message of DF20 and 21; see [InferCommB].
	MB Opt[[7]byte]
	// MD is one segment of an extended length message (DF24), KE tells
	// whether it is an acknowledgement, ND (0 to 15) is its number. KE and ND
	// mean something only with MD.
	MD Opt[[10]byte]
	KE bool
	ND uint8
}

// A Velocity holds speeds in knots and angles in degrees clockwise from north,
// 0 up to but not including 360.
type Velocity struct {
	// GroundSpeed and Track are the motion over ground; a track without
	// motion is absent.
	GroundSpeed, Track Opt[float64]
	// Heading is where the nose points. Whether it is from magnetic or true
	// north is told by another message, [OperationalStatus.HeadingMagnetic].
	Heading Opt[float64]
	// IAS and TAS are the airspeeds.
	IAS, TAS Opt[float64]
	// VerticalRate is in feet a minute, positive up.
	VerticalRate Opt[int32]
	// VerticalRateSource says what VerticalRate comes from; TIS-B does not say.
	VerticalRateSource Opt[AltitudeSource]
	// GeometricMinusBaro is the geometric height less the pressure altitude,
	// in feet. A difference above 3,137 ft, which the message can only say to
	// be larger, is absent.
	GeometricMinusBaro Opt[int32]
	// Saturated tells that a speed or rate is at the end of its scale and
	// may be larger.
	Saturated bool
}

// An Interrogator is the code of the ground station that a DF11 replies to.
type Interrogator struct {
	// Code is an II code, 0 to 15, or an SI code, 1 to 63. II 0 also stands
	// for an acquisition squitter, which answers nobody.
	Code uint8
	// SI is set for an SI code.
	SI bool
}

// Decode reads a frame into m, which it clears first. It returns [ErrLength]
// when the number of bits is not the format's, and m is then empty; and
// [ErrParity] when the remainder of a DF11, 17 or 18 shows a wrong bit, or
// [ErrFormat] for a format that is not in use; m then holds what the bits say
// all the same. Frames with address parity have no parity to check without
// the address: see [AddressFilter.Match].
//
// Decode allocates nothing and keeps no reference to f.
func Decode(f *Frame, m *Message) error {
	*m = Message{}
	df := f.DF()
	if f.Bits != 56 && f.Bits != 112 || (df >= 16) != (f.Bits == 112) {
		return ErrLength
	}
	m.DF = df
	d := &f.Data
	head := uint32(d[0])<<24 | uint32(d[1])<<16 | uint32(d[2])<<8 | uint32(d[3])
	rem := f.Remainder()
	switch df {
	case 0, 16:
		m.Address.Value = rem
		m.OnGround = Some(head>>26&1 != 0)
		if df == 0 {
			m.CrossLink = Some(head>>25&1 != 0)
		}
		m.SensitivityLevel = Some(uint8(head >> 21 & 7))
		m.ReplyInformation = Some(uint8(head >> 15 & 15))
		m.Altitude = altitude13(head & 0x1FFF)
		if df == 16 && d[4] == 0x30 { // VDS 3,0
			m.RA = resolutionAdvisory(load56(d[4:11]), false)
		}
	case 4, 5, 20, 21:
		m.Address.Value = rem
		m.flightStatus(uint8(head >> 24 & 7))
		m.DownlinkRequest = Some(uint8(head >> 19 & 31))
		m.UtilityMessage = Some(uint8(head >> 13 & 63))
		if df&1 == 0 {
			m.Altitude = altitude13(head & 0x1FFF)
		} else {
			m.Squawk = Some(squawk13(head & 0x1FFF))
			m.Emergency = m.Squawk.V.Emergency()
		}
		if df >= 20 {
			m.MB.OK = true
			copy(m.MB.V[:], d[4:11])
		}
	case 11:
		m.Address = f.claimedAddress()
		m.capability(d[0] & 7)
		if rem&^0x7F != 0 || !validCode(rem) {
			return ErrParity
		}
		m.Interrogator = Some(interrogator(rem))
	case 17, 18:
		m.Address = f.claimedAddress()
		me := load56(d[4:11])
		switch control := d[0] & 7; {
		case df == 17:
			m.capability(control)
			m.squitter(me, false)
		default:
			m.Control = Some(control)
			switch control {
			case 0, 1:
				m.squitter(me, false)
			case 6: // IMF is where the aircraft sent supplement B, or T on the surface
				m.squitter(me, false)
				m.NICb = Opt[bool]{}
				if m.Position.V.Kind == CPRSurface {
					m.TimeSync = Opt[bool]{}
				}
			case 2, 5:
				m.squitter(me, true)
			case 3:
				m.coarse(me)
			}
		}
		if rem != 0 {
			return ErrParity
		}
	case 24:
		m.Address.Value = rem
		m.KE, m.ND = d[0]&0x10 != 0, d[0]&0x0F
		m.MD.OK = true
		copy(m.MD.V[:], d[1:11])
	default:
		return ErrFormat
	}
	return nil
}

// flightStatus reads FS: Annex 10 volume IV section 3.1.2.6.5.1. Values 4 and
// 5 do not say whether the aircraft is airborne.
func (m *Message) flightStatus(fs uint8) {
	m.FlightStatus = Some(fs)
	if fs < 4 {
		m.OnGround = Some(fs&1 != 0)
	}
	if fs < 6 {
		m.Alert = Some(fs >= 2 && fs <= 4)
		m.SPI = Some(fs >= 4)
	}
}

// capability reads CA: section 3.1.2.5.2.2.1.
func (m *Message) capability(ca uint8) {
	m.Capability = Some(ca)
	if ca == 4 || ca == 5 {
		m.OnGround = Some(ca == 4)
	}
}

func interrogator(rem uint32) Interrogator {
	if cl := rem >> 4; cl > 0 {
		return Interrogator{uint8((cl-1)<<4 | rem&15), true}
	}
	return Interrogator{uint8(rem & 15), false}
}

// squitter reads the ME field of an extended squitter, or of a fine TIS-B
// message, whose layout differs in places.
func (m *Message) squitter(me uint64, tisb bool) {
	tc := field(me, 1, 5)
	m.TypeCode = Some(uint8(tc))
	switch {
	case tc == 0: // no position; perhaps an altitude
		m.Altitude = altitude12(field(me, 9, 20), Barometric)
	case tc <= 4:
		if set := field(me, 6, 8); set != 0 {
			m.Category = Some(Category((0xE-tc)<<4 | set))
		}
		m.Callsign = callsign48(me & (1<<48 - 1))
	case tc <= 8:
		m.surface(me, tisb)
	case tc <= 18, tc >= 20 && tc <= 22:
		m.airborne(me, tc, tisb)
	case tc == 19:
		m.velocity(me, tisb)
	case tc == 23:
		m.Subtype = Some(uint8(field(me, 6, 8)))
		if m.Subtype.V == 7 { // test message of version 1: Mode A code
			m.squawk(field(me, 9, 21))
		}
	case tc == 28:
		m.Subtype = Some(uint8(field(me, 6, 8)))
		switch m.Subtype.V {
		case 1:
			m.squawk(field(me, 12, 24))
			if e := Emergency(field(me, 9, 11)); e != EmergencyNone || !m.Emergency.OK {
				m.Emergency = Some(e)
			}
		case 2:
			m.RA = resolutionAdvisory(me, true)
		}
	case tc == 29:
		m.Subtype = Some(uint8(field(me, 6, 7)))
		m.target(me)
	case tc == 31:
		m.Subtype = Some(uint8(field(me, 6, 8)))
		if !tisb && m.Subtype.V <= 1 {
			m.status(me, m.Subtype.V == 1)
		}
	default:
		m.Subtype = Some(uint8(field(me, 6, 8)))
	}
}

// squawk sets the Mode A code of an extended squitter, where all zero is
// absent (versions below 2 leave the field empty).
func (m *Message) squawk(c uint32) {
	if c != 0 {
		m.Squawk = Some(squawk13(c))
		m.Emergency = m.Squawk.V.Emergency()
	}
}

// airborne reads types 9-18 and 20-22 (DO-260B section 2.2.3.2.3).
func (m *Message) airborne(me uint64, tc uint32, tisb bool) {
	source := Barometric
	if tc >= 20 {
		source = Geometric
	}
	m.Altitude = altitude12(field(me, 9, 20), source)
	m.OnGround = Some(false)
	if !tisb {
		m.surveillanceStatus(field(me, 6, 7))
		m.NICb = Some(flag(me, 8))
	}
	m.TimeSync = Some(flag(me, 21))
	m.Position = Some(CPR{Lat: field(me, 23, 39), Lon: field(me, 40, 56), Odd: flag(me, 22), Kind: CPRAirborne})
}

// surveillanceStatus reads the SS field (DO-260B section 2.2.3.2.3.2). An alert,
// 1 or 2, hides whether the ident button is pressed, 3.
func (m *Message) surveillanceStatus(ss uint32) {
	m.Alert = Some(ss == 1 || ss == 2)
	if ss == 0 || ss == 3 {
		m.SPI = Some(ss == 3)
	}
}

// surface reads types 5-8 (DO-260B section 2.2.3.2.4).
func (m *Message) surface(me uint64, tisb bool) {
	m.OnGround = Some(true)
	m.Velocity.GroundSpeed, m.Velocity.Saturated = movement(field(me, 6, 12))
	if flag(me, 13) {
		m.Velocity.Track = Some(float64(field(me, 14, 20)) * 360 / 128)
	}
	if !tisb {
		m.TimeSync = Some(flag(me, 21))
	}
	m.Position = Some(CPR{Lat: field(me, 23, 39), Lon: field(me, 40, 56), Odd: flag(me, 22), Kind: CPRSurface})
}

// movement decodes the movement field into knots, the lower end of each step
// (DO-260B table 2-13).
func movement(v uint32) (speed Opt[float64], saturated bool) {
	n := float64(v)
	switch {
	case v == 0 || v > 124:
		return
	case v == 1:
		return Some(0.0), false
	case v <= 8:
		return Some(0.125 + (n-2)*0.125), false
	case v <= 12:
		return Some(1 + (n-9)*0.25), false
	case v <= 38:
		return Some(2 + (n-13)*0.5), false
	case v <= 93:
		return Some(15 + (n - 39)), false
	case v <= 108:
		return Some(70 + (n-94)*2), false
	case v <= 123:
		return Some(100 + (n-109)*5), false
	}
	return Some(175.0), true
}

// encodeMovement is the inverse of movement: the step that holds the speed.
func encodeMovement(kt float64) uint32 {
	best := uint32(0)
	for v := uint32(1); v <= 124; v++ {
		if s, _ := movement(v); s.V <= kt+1e-9 {
			best = v
		}
	}
	return best
}

// velocity reads type 19 (DO-260B section 2.2.3.2.6). In every field 0 means
// no information and n means n-1 steps.
func (m *Message) velocity(me uint64, tisb bool) {
	sub := field(me, 6, 8)
	m.Subtype = Some(uint8(sub))
	if sub == 0 || sub > 4 {
		return
	}
	v := &m.Velocity
	unit := int32(1)
	if sub == 2 || sub == 4 { // supersonic
		unit = 4
	}
	if sub <= 2 {
		ew, ns := int32(field(me, 15, 24)), int32(field(me, 26, 35))
		if ew != 0 && ns != 0 {
			v.Saturated = ew == 1023 || ns == 1023
			ew, ns = (ew-1)*unit, (ns-1)*unit
			if flag(me, 14) {
				ew = -ew
			}
			if flag(me, 25) {
				ns = -ns
			}
			v.GroundSpeed = Some(math.Sqrt(float64(ew*ew + ns*ns)))
			if ew != 0 || ns != 0 {
				v.Track = Some(angle(float64(ew), float64(ns)))
			}
		}
	} else {
		if flag(me, 14) {
			v.Heading = Some(float64(field(me, 15, 24)) * 360 / 1024)
		}
		if speed := field(me, 26, 35); speed != 0 {
			v.Saturated = speed == 1023
			kt := Some(float64(int32(speed-1) * unit))
			if flag(me, 25) {
				v.TAS = kt
			} else {
				v.IAS = kt
			}
		}
	}
	if rate := int32(field(me, 38, 46)); rate != 0 {
		v.Saturated = v.Saturated || rate == 511
		rate = (rate - 1) * 64
		if flag(me, 37) {
			rate = -rate
		}
		v.VerticalRate = Some(rate)
		if !tisb {
			v.VerticalRateSource = Some(Geometric)
			if flag(me, 36) {
				v.VerticalRateSource.V = Barometric
			}
		}
	}
	if tisb {
		return // its last bits mean other things
	}
	m.NACv = Some(uint8(field(me, 11, 13)))
	if diff := int32(field(me, 50, 56)); diff != 0 && diff != 127 {
		diff = (diff - 1) * 25
		if flag(me, 49) {
			diff = -diff
		}
		v.GeometricMinusBaro = Some(diff)
	}
}

// angle returns the direction of a vector in degrees clockwise from north, 0
// up to but not including 360.
func angle(east, north float64) float64 {
	a := math.Atan2(east, north) * (180 / math.Pi)
	if a < 0 {
		a += 360
	}
	if a >= 360 {
		a = 0
	}
	return a
}

// coarse reads a coarse TIS-B message, DF18 CF 3 (DO-260B section 2.2.17.3.5).
func (m *Message) coarse(me uint64) {
	m.surveillanceStatus(field(me, 2, 3))
	m.Altitude = altitude12(field(me, 8, 19), Barometric)
	if flag(me, 20) {
		m.Velocity.Track = Some(float64(field(me, 21, 25)) * 360 / 32)
	}
	if s := field(me, 26, 31); s != 0 {
		m.Velocity.GroundSpeed = Some(float64(s-1) * 32)
		m.Velocity.Saturated = s == 63
	}
	m.Position = Some(CPR{Lat: field(me, 33, 44), Lon: field(me, 45, 56), Odd: flag(me, 32), Kind: CPRCoarse})
}
