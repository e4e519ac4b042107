package modes

import "math"

// The encoders make frames as a transponder would, for tests, simulators and
// [signalbox.example/modes/synth]. Values out of range become "no
// information", as the standard asks of a transponder without them, unless
// said otherwise.

func newFrame(b []byte) (f Frame) {
	f.Bits = uint8(copy(f.Data[:], b) * 8)
	return
}

// EncodeAllCall returns a DF11 reply with capability ca (0 to 7), or an
// acquisition squitter when code is II 0. The frames that this and the other
// encoders return have no time and no signal level.
func EncodeAllCall(ca uint8, addr uint32, code Interrogator) Frame {
	f := newFrame([]byte{11<<3 | ca&7, byte(addr >> 16), byte(addr >> 8), byte(addr), 0, 0, 0})
	overlay := uint32(code.Code & 15)
	if code.SI {
		overlay = uint32(code.Code&63) + 0x10
	}
	SetParity(f.Bytes(), overlay)
	return f
}

// EncodeSurveillance returns a DF4 or DF5 reply: flight status fs (0 to 7), and
// the 13-bit field ac, for DF4 from [EncodeAltitude] or [EncodeGillham], for DF5
// from [EncodeSquawk]. Any other df is taken as 4. DR and UM are 0.
func EncodeSurveillance(df, fs uint8, ac uint16, addr uint32) Frame {
	if df != 5 {
		df = 4
	}
	f := newFrame([]byte{df<<3 | fs&7, 0, byte(ac >> 8 & 0x1F), byte(ac), 0, 0, 0})
	SetParity(f.Bytes(), addr)
	return f
}

// EncodeCommB returns a DF20 or DF21 reply: as [EncodeSurveillance], of DF4 and
// DF5, with the register mb. Any other df is taken as 20.
func EncodeCommB(df, fs uint8, ac uint16, mb [7]byte, addr uint32) Frame {
	if df != 21 {
		df = 20
	}
	f := newFrame(append(append([]byte{df<<3 | fs&7, 0, byte(ac >> 8 & 0x1F), byte(ac)}, mb[:]...), 0, 0, 0))
	SetParity(f.Bytes(), addr)
	return f
}

// EncodeAirAir returns a DF0 reply with the altitude code ac from
// [EncodeAltitude] or [EncodeGillham]; onGround sets the vertical status, ri (0
// to 15) is the reply information.
func EncodeAirAir(onGround bool, ri uint8, ac uint16, addr uint32) Frame {
	f := newFrame([]byte{0, ri >> 1 & 7, ri&1<<7 | byte(ac>>8&0x1F), byte(ac), 0, 0, 0})
	if onGround {
		f.Data[0] |= 4
	}
	SetParity(f.Bytes(), addr)
	return f
}

// EncodeLongAirAir returns a DF16 reply: as [EncodeAirAir] with the message MV,
// ACAS coordination.
func EncodeLongAirAir(onGround bool, ri uint8, ac uint16, mv [7]byte, addr uint32) Frame {
	f := newFrame(append(append([]byte{16 << 3, ri >> 1 & 7, ri&1<<7 | byte(ac>>8&0x1F), byte(ac)}, mv[:]...), 0, 0, 0))
	if onGround {
		f.Data[0] |= 4
	}
	SetParity(f.Bytes(), addr)
	return f
}

// EncodeSquitter returns a DF17 with capability ca (5 is airborne, 4 on the
// ground) and the message me, an ME field from [EncodeIdentification],
// [EncodeAirbornePosition] and the like.
func EncodeSquitter(ca uint8, addr uint32, me [7]byte) Frame { return encodeES(17<<3|ca&7, addr, me) }

// EncodeNonTransponder returns a DF18 with control field cf (0 to 7), which
// says whose address addr is, and the message me.
func EncodeNonTransponder(cf uint8, addr uint32, me [7]byte) Frame {
	return encodeES(18<<3|cf&7, addr, me)
}

func encodeES(head byte, addr uint32, me [7]byte) Frame {
	f := newFrame(append(append([]byte{head, byte(addr >> 16), byte(addr >> 8), byte(addr)}, me[:]...), 0, 0, 0))
	SetParity(f.Bytes(), 0)
	return f
}

// EncodeIdentification returns the ME field of an identification, type codes 1
// to 4. A category outside A0 to D7 is taken as A0. A callsign has eight
// characters: a shorter one is padded with spaces, a longer one is cut, lower
// case is raised, and characters that a callsign cannot have become spaces.
func EncodeIdentification(c Category, callsign string) [7]byte {
	tc := 0xE - uint64(c>>4)
	if tc < 1 || tc > 4 {
		tc, c = 4, 0
	}
	return store56(tc<<51 | uint64(c&7)<<48 | encodeCallsign(callsign))
}

// EncodeAirbornePosition returns the ME field of an airborne position of type
// code 9 to 18 or 20 to 22; others are taken as 11. alt is in feet, and is sent
// in steps of 25 ft as [EncodeAltitude] has them; p must be of the kind
// CPRAirborne. Surveillance status, NIC supplement B and the T bit are 0.
func EncodeAirbornePosition(typeCode uint8, alt Opt[int32], p CPR) [7]byte {
	if typeCode < 9 || typeCode == 19 || typeCode > 22 {
		typeCode = 11
	}
	v := uint64(typeCode) << 51
	if alt.OK {
		v |= uint64(encode12(alt.V)) << 36
	}
	return store56(v | encodeCPR(p))
}

func encodeCPR(p CPR) uint64 {
	v := uint64(p.Lat&0x1FFFF)<<17 | uint64(p.Lon&0x1FFFF)
	if p.Odd {
		v |= 1 << 34
	}
	return v
}

// EncodeSurfacePosition returns the ME field of a surface position of type
// code 5 to 8; others are taken as 7. speed is in knots, track in degrees; p
// must be of the kind CPRSurface.
func EncodeSurfacePosition(typeCode uint8, speed, track Opt[float64], p CPR) [7]byte {
	if typeCode < 5 || typeCode > 8 {
		typeCode = 7
	}
	v := uint64(typeCode) << 51
	if speed.OK && speed.V >= 0 {
		v |= uint64(encodeMovement(speed.V)) << 44
	}
	if track.OK {
		v |= 1<<43 | uint64(int64(math.Round(track.V*128/360))&127)<<36
	}
	return store56(v | encodeCPR(p))
}

// EncodeVelocity returns the ME field of a velocity over ground, type code 19
// subtype 1, or 2 when a component is above 1,021 kt: east and north in knots,
// rate, the vertical rate in feet a minute, positive up, with its source, and
// diff, the geometric height less the pressure altitude in feet. They are
// rounded to steps of 1 kt (4 kt in subtype 2), 64 ft/min and 25 ft. What is
// absent, or beyond the field, is sent as no information.
func EncodeVelocity(east, north Opt[float64], rate Opt[int32], source AltitudeSource, diff Opt[int32]) [7]byte {
	v := uint64(19)<<51 | 1<<48
	unit := 1.0
	if math.Abs(east.V) > 1021 || math.Abs(north.V) > 1021 {
		v, unit = uint64(19)<<51|2<<48, 4
	}
	component := func(o Opt[float64], shift int) {
		n := math.Round(math.Abs(o.V)/unit) + 1
		if !o.OK || !(n <= 1023) {
			return
		}
		v |= uint64(n) << shift
		if o.V < 0 {
			v |= 1 << (shift + 10)
		}
	}
	component(east, 32)
	component(north, 21)
	return store56(v | encodeRates(rate, source, diff))
}

// EncodeAirspeed returns the ME field of an airspeed, type code 19 subtype 3,
// or 4 above 1,021 kt: the heading in degrees and the speed in knots, true
// when tas is set, indicated otherwise. rate, source and diff are as in
// [EncodeVelocity].
func EncodeAirspeed(heading, speed Opt[float64], tas bool, rate Opt[int32], source AltitudeSource, diff Opt[int32]) [7]byte {
	v, unit := uint64(19)<<51|3<<48, 1.0
	if speed.V > 1021 {
		v, unit = uint64(19)<<51|4<<48, 4
	}
	if heading.OK {
		v |= 1<<42 | uint64(int64(math.Round(heading.V*1024/360))&1023)<<32
	}
	if n := math.Round(speed.V/unit) + 1; speed.OK && n >= 1 && n <= 1023 {
		v |= uint64(n) << 21
	}
	if tas {
		v |= 1 << 31
	}
	return store56(v | encodeRates(rate, source, diff))
}

func encodeRates(rate Opt[int32], source AltitudeSource, diff Opt[int32]) (v uint64) {
	if source == Barometric {
		v |= 1 << 20
	}
	if n := (abs(rate.V)+32)/64 + 1; rate.OK && n <= 511 {
		v |= uint64(n) << 10
		if rate.V < 0 {
			v |= 1 << 19
		}
	}
	if n := (abs(diff.V)+12)/25 + 1; diff.OK && n <= 126 {
		v |= uint64(n)
		if diff.V < 0 {
			v |= 1 << 7
		}
	}
	return
}

func abs(n int32) int64 {
	if n < 0 {
		return -int64(n)
	}
	return int64(n)
}

// EncodeEmergency returns the ME field of type code 28 subtype 1: an emergency
// or priority status and the Mode A code.
func EncodeEmergency(e Emergency, s Squawk) [7]byte {
	return store56(28<<51 | 1<<48 | uint64(e&7)<<45 | uint64(EncodeSquawk(s))<<32)
}

// EncodeStatus returns the ME field of an airborne operational status of
// version 2, whatever s.Version and s.Surface say. From s it takes NICa, NACp,
// SIL, SILPerSample, SDA, GVA, NICbaro, TCAS, RAActive, Ident, SingleAntenna,
// ReceivesES and HeadingMagnetic; what is absent there is sent as 0.
func EncodeStatus(s OperationalStatus) [7]byte {
	bit := func(o Opt[bool], n int) uint64 {
		if o.OK && o.V {
			return 1 << (56 - n)
		}
		return 0
	}
	v := uint64(31)<<51 | 2<<13
	v |= bit(s.TCAS, 11) | bit(s.ReceivesES, 12) | bit(s.RAActive, 27) | bit(s.Ident, 28) | bit(s.SingleAntenna, 30)
	v |= bit(s.NICa, 44) | bit(s.NICbaro, 53) | bit(s.HeadingMagnetic, 54) | bit(s.SILPerSample, 55)
	v |= uint64(s.SDA.V&3)<<24 | uint64(s.NACp.V&15)<<8 | uint64(s.GVA.V&3)<<6 | uint64(s.SIL.V&3)<<4
	return store56(v)
}
