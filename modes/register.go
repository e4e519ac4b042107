package modes

import "math"

// A BDS is the number of a Comm-B register, both digits in one byte: 0x40 is
// BDS 4,0.
type BDS uint8

// String returns the two digits with a comma, "4,0".
func (b BDS) String() string {
	return string([]byte{"0123456789ABCDEF"[b>>4], ',', "0123456789ABCDEF"[b&15]})
}

// A Register is what a Comm-B register says. Fields that the register does not
// have, or that its status bits declare invalid, are absent. (ICAO Doc 9871
// appendix A; Annex 10 volume III tables A-2-16 and following.)
type Register struct {
	// Code is the register's number.
	Code BDS
	// Altitude and Position are of the extended squitter registers 0,5 and
	// 0,6, GroundSpeed and Track of 0,6 too. TypeCode is their type.
	TypeCode Opt[uint8]
	Altitude Opt[Altitude]
	Position Opt[CPR]
	// DataLink is the capability report 1,0.
	DataLink Opt[DataLinkCapability]
	// GICB is the report 1,7: which of 24 registers the transponder serves, one
	// bit each, 0,5 in bit 23. [GICBRegisters] lists them.
	GICB Opt[uint32]
	// Callsign is of 2,0.
	Callsign Opt[Callsign]
	// RA is of 3,0.
	RA Opt[ResolutionAdvisory]
	// SelectedAltitude (MCP or FCU) and FMSAltitude are in feet, QNH in hPa;
	// TargetSource, VNAV, AltitudeHold and Approach are the modes: 4,0.
	SelectedAltitude, FMSAltitude Opt[int32]
	QNH                           Opt[float64]
	TargetSource                  Opt[TargetSource]
	VNAV, AltitudeHold, Approach  Opt[bool]
	// WindSpeed (knots), WindDirection (degrees, from), Temperature (Celsius),
	// Pressure (hPa), Turbulence (0 none to 3 severe) and Humidity (per cent)
	// are of 4,4; Temperature, Pressure and Turbulence of 4,5 too.
	WindSpeed, WindDirection        Opt[float64]
	Temperature, Pressure, Humidity Opt[float64]
	Turbulence                      Opt[uint8]
	// WindSource is the figure of merit of 4,4: 1 INS, 2 GNSS, 3 DME/DME,
	// 4 VOR/DME.
	WindSource Opt[uint8]
	// WindShear, Microburst, Icing, WakeVortex (0 none to 3 severe) and
	// RadioHeight (feet) are of 4,5.
	WindShear, Microburst, Icing, WakeVortex Opt[uint8]
	RadioHeight                              Opt[int32]
	// Roll (degrees, right wing down positive), Track (true, degrees),
	// GroundSpeed (knots), TrackRate (degrees a second, clockwise positive)
	// and TAS (knots) are of 5,0; TAS of 5,3 too.
	Roll, Track, GroundSpeed, TrackRate, TAS Opt[float64]
	// Heading (magnetic, degrees), IAS (knots) and Mach are of 6,0 and 5,3.
	Heading, IAS, Mach Opt[float64]
	// BaroRate and InertialRate in feet a minute are of 6,0; BaroRate of 5,3.
	BaroRate, InertialRate Opt[int32]
}

// DataLinkCapability is register 1,0 (Annex 10 volume IV section
// 3.1.2.6.10.2.2).
type DataLinkCapability struct {
	// Continuation, Overlay and ACAS tell of more registers (1,1 up), the
	// overlay command and a working ACAS.
	Continuation, Overlay, ACAS bool
	// Subnetwork is the version of the Mode S subnetwork.
	Subnetwork uint8
	// Enhanced, Specific, SurveillanceIdentifier and Ident tell of the enhanced
	// protocol, Mode S specific services, SI codes and identification.
	Enhanced, Specific, SurveillanceIdentifier, Ident bool
	// SquitterSupport and GICBChanged are SCS and the change of common usage
	// GICB.
	SquitterSupport, GICBChanged bool
	// UplinkELM and DownlinkELM are the throughput classes.
	UplinkELM, DownlinkELM uint8
	// HybridSurveillance, ResolutionAdvisories and ACASVersion are of ACAS.
	HybridSurveillance, ResolutionAdvisories bool
	ACASVersion                              uint8
	// DTE holds the sixteen bits of the data terminals.
	DTE uint16
}

// gicbRegisters are the registers behind the bits of 1,7.
var gicbRegisters = [24]BDS{0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x20, 0x21, 0x40, 0x41, 0x42, 0x43,
	0x44, 0x45, 0x48, 0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x5F, 0x60}

// GICBRegisters appends to dst the registers that a report 1,7
// ([Register.GICB]) declares, at most 24, in ascending order.
func GICBRegisters(dst []BDS, gicb uint32) []BDS {
	for i, r := range gicbRegisters {
		if gicb>>(23-i)&1 != 0 {
			dst = append(dst, r)
		}
	}
	return dst
}

// signedField reads a sign bit followed by magnitude bits in two's complement.
func signedField(v uint64, first, last int) int32 {
	n := last - first + 1
	return int32(field(v, first, last)<<(32-n)) >> (32 - n)
}

// optU returns an unsigned field scaled, present when the status bit before it
// is set.
func optU(v uint64, status, last int, scale float64) Opt[float64] {
	if !flag(v, status) {
		return Opt[float64]{}
	}
	return Some(float64(field(v, status+1, last)) * scale)
}

// optS is optU for a signed field.
func optS(v uint64, status, last int, scale float64) Opt[float64] {
	if !flag(v, status) {
		return Opt[float64]{}
	}
	return Some(float64(signedField(v, status+1, last)) * scale)
}

func turn(o Opt[float64]) Opt[float64] {
	if o.OK && o.V < 0 {
		o.V += 360
	}
	return o
}

func whole(o Opt[float64]) Opt[int32] { return Opt[int32]{int32(o.V), o.OK} }

func level(v uint64, status int) Opt[uint8] {
	if !flag(v, status) {
		return Opt[uint8]{}
	}
	return Some(uint8(field(v, status+1, status+2)))
}

// DecodeRegister reads mb as the register code, without asking whether it is
// that register: see [InferCommB]. It knows 0,5 0,6 1,0 1,7 2,0 3,0 4,0 4,4 4,5
// 5,0 5,3 and 6,0; ok is false for any other.
func DecodeRegister(code BDS, mb [7]byte) (r Register, ok bool) {
	return decodeRegister(code, load56(mb[:]))
}

func decodeRegister(code BDS, v uint64) (r Register, ok bool) {
	r.Code = code
	switch code {
	case 0x05, 0x06:
		tc := field(v, 1, 5)
		r.TypeCode = Some(uint8(tc))
		var m Message
		switch {
		case code == 0x05 && (tc >= 9 && tc <= 18 || tc >= 20 && tc <= 22):
			m.airborne(v, tc, false)
		case code == 0x06 && tc >= 5 && tc <= 8:
			m.surface(v, false)
		}
		r.Altitude, r.Position = m.Altitude, m.Position
		r.GroundSpeed, r.Track = m.Velocity.GroundSpeed, m.Velocity.Track
	case 0x10:
		r.DataLink = Some(DataLinkCapability{
			Continuation: flag(v, 9), Overlay: flag(v, 15), ACAS: flag(v, 16),
			Subnetwork: uint8(field(v, 17, 23)), Enhanced: flag(v, 24), Specific: flag(v, 25),
			UplinkELM: uint8(field(v, 26, 28)), DownlinkELM: uint8(field(v, 29, 32)),
			Ident: flag(v, 33), SquitterSupport: flag(v, 34), SurveillanceIdentifier: flag(v, 35), GICBChanged: flag(v, 36),
			HybridSurveillance: flag(v, 37), ResolutionAdvisories: flag(v, 38), ACASVersion: uint8(field(v, 39, 40)),
			DTE: uint16(field(v, 41, 56)),
		})
	case 0x17:
		r.GICB = Some(field(v, 1, 24))
	case 0x20:
		r.Callsign = callsign48(v & (1<<48 - 1))
	case 0x30:
		r.RA = resolutionAdvisory(v, true)
	case 0x40:
		r.SelectedAltitude = whole(optU(v, 1, 13, 16))
		r.FMSAltitude = whole(optU(v, 14, 26, 16))
		if q := optU(v, 27, 39, 0.1); q.OK {
			r.QNH = Some(800 + q.V)
		}
		if flag(v, 48) {
			r.VNAV, r.AltitudeHold, r.Approach = Some(flag(v, 49)), Some(flag(v, 50)), Some(flag(v, 51))
		}
		if flag(v, 54) {
			r.TargetSource = Some(TargetSource(field(v, 55, 56)))
		}
	case 0x44:
		if fom := field(v, 1, 4); fom != 0 {
			r.WindSource = Some(uint8(fom))
		}
		if flag(v, 5) {
			r.WindSpeed = Some(float64(field(v, 6, 14)))
			r.WindDirection = Some(float64(field(v, 15, 23)) * 180 / 256)
		}
		r.Temperature = Some(float64(signedField(v, 24, 34)) * 0.25)
		r.Pressure = optU(v, 35, 46, 1)
		r.Turbulence = level(v, 47)
		r.Humidity = optU(v, 50, 56, 100.0/64)
	case 0x45:
		r.Turbulence, r.WindShear, r.Microburst = level(v, 1), level(v, 4), level(v, 7)
		r.Icing, r.WakeVortex = level(v, 10), level(v, 13)
		r.Temperature = optS(v, 16, 26, 0.25)
		r.Pressure = optU(v, 27, 38, 1)
		r.RadioHeight = whole(optU(v, 39, 51, 16))
	case 0x50:
		r.Roll = optS(v, 1, 11, 45.0/256)
		r.Track = turn(optS(v, 12, 23, 90.0/512))
		r.GroundSpeed = optU(v, 24, 34, 2)
		r.TrackRate = optS(v, 35, 45, 8.0/256)
		r.TAS = optU(v, 46, 56, 2)
	case 0x53:
		r.Heading = turn(optS(v, 1, 12, 90.0/512))
		r.IAS = optU(v, 13, 23, 1)
		r.Mach = optU(v, 24, 33, 0.008)
		r.TAS = optU(v, 34, 46, 0.5)
		r.BaroRate = whole(optS(v, 47, 56, 64))
	case 0x60:
		r.Heading = turn(optS(v, 1, 12, 90.0/512))
		r.IAS = optU(v, 13, 23, 1)
		r.Mach = optU(v, 24, 34, 2.048/512)
		r.BaroRate = whole(optS(v, 35, 45, 32))
		r.InertialRate = whole(optS(v, 46, 56, 32))
	default:
		return Register{}, false
	}
	return r, true
}

// Standard atmosphere (ICAO Doc 7488), used to compare speeds.

// temperature returns that of the standard atmosphere in kelvin.
func temperature(feet float64) float64 {
	return max(288.15-0.0019812*feet, 216.65)
}

// pressureRatio returns the static pressure over that at sea level.
func pressureRatio(feet float64) float64 {
	if feet <= 36089.24 {
		return math.Pow(1-6.875586e-6*feet, 5.255880)
	}
	return 0.2233609 * math.Exp(-(feet-36089.24)/20805.8)
}

// machToCAS returns the calibrated airspeed in knots at a Mach number and
// pressure altitude.
func machToCAS(mach, feet float64) float64 {
	q := pressureRatio(feet) * (math.Pow(1+0.2*mach*mach, 3.5) - 1)
	return 661.4786 * math.Sqrt(5*(math.Pow(q+1, 2.0/7)-1))
}
