package modes

// An OperationalStatus is an aircraft operational status, type code 31, of
// version 0, 1 or 2 (DO-260B section 2.2.3.2.7.2). Fields that the version or
// the subtype does not have are absent.
type OperationalStatus struct {
	// Version is the ADS-B version: 0 DO-260, 1 DO-260A, 2 DO-260B; later
	// ones are read as 2.
	Version uint8
	// Surface tells subtype 1 (on the surface) from 0.
	Surface bool
	// NICa and NICc are the NIC supplements; see [NIC].
	NICa, NICc Opt[bool]
	// NACp and NACv are the accuracy categories of position and velocity (NACv
	// on the surface only).
	NACp, NACv Opt[uint8]
	// SIL is the source integrity level, SILPerSample whether its probability
	// is per sample (else per flight hour; version 2 only).
	SIL          Opt[uint8]
	SILPerSample Opt[bool]
	// SDA is the system design assurance, GVA the geometric vertical accuracy
	// (version 2), BAQ the barometric altitude quality (version 1).
	SDA, GVA, BAQ Opt[uint8]
	// NICbaro tells that the pressure altitude was cross-checked.
	NICbaro Opt[bool]
	// TCAS tells that it is operational, RAActive that an advisory is.
	TCAS, RAActive Opt[bool]
	// Ident is the ident switch, SingleAntenna that there is only one.
	Ident, SingleAntenna Opt[bool]
	// ReceivesES and ReceivesUAT tell what the aircraft receives.
	ReceivesES, ReceivesUAT Opt[bool]
	// LowPower tells of a class B2 ground vehicle below 70 W.
	LowPower Opt[bool]
	// HeadingMagnetic tells that headings are from magnetic north.
	HeadingMagnetic Opt[bool]
	// SurfaceHeading tells that the track of surface positions is a heading.
	SurfaceHeading Opt[bool]
	// Length and Width in metres bound the size of the aircraft (surface).
	Length, Width Opt[float64]
	// AntennaLateral and AntennaLongitudinal are the GNSS antenna's offsets in
	// metres: lateral positive right of the axis, longitudinal aft of the nose.
	AntennaLateral, AntennaLongitudinal Opt[float64]
}

// status reads ME of type 31.
func (m *Message) status(me uint64, surface bool) {
	s := OperationalStatus{Version: uint8(field(me, 41, 43)), Surface: surface}
	if s.Version == 0 {
		m.Status = Some(s)
		return
	}
	v2 := s.Version >= 2
	s.NICa = Some(flag(me, 44))
	s.NACp = Some(uint8(field(me, 45, 48)))
	s.SIL = Some(uint8(field(me, 51, 52)))
	s.HeadingMagnetic = Some(flag(me, 54))
	cc := field(me, 9, 10) == 0 // other values have another layout
	if !surface {
		if cc {
			s.TCAS = Some(flag(me, 11) == v2) // version 1 says "not TCAS"
			s.ReceivesES = Some(flag(me, 12) && v2)
			if v2 {
				s.ReceivesUAT = Some(flag(me, 19))
			} else {
				s.ReceivesES = Opt[bool]{} // there it is a traffic display
			}
		}
		if v2 {
			s.GVA = Some(uint8(field(me, 49, 50)))
		} else {
			s.BAQ = Some(uint8(field(me, 49, 50)))
		}
		s.NICbaro = Some(flag(me, 53))
	} else {
		if cc {
			s.LowPower = Some(flag(me, 15))
			if v2 {
				s.ReceivesES = Some(flag(me, 12))
				s.ReceivesUAT = Some(flag(me, 16))
				s.NACv = Some(uint8(field(me, 17, 19)))
				s.NICc = Some(flag(me, 20))
			}
		}
		s.Length, s.Width = dimensions(field(me, 21, 24))
		s.SurfaceHeading = Some(flag(me, 53))
	}
	if field(me, 25, 26) == 0 {
		s.RAActive = Some(flag(me, 27))
		s.Ident = Some(flag(me, 28))
		if v2 {
			s.SingleAntenna = Some(flag(me, 30))
			s.SDA = Some(uint8(field(me, 31, 32)))
			if surface {
				s.antenna(field(me, 33, 40))
			}
		}
	}
	if v2 {
		s.SILPerSample = Some(flag(me, 55))
	}
	if s.NACv.OK {
		m.NACv = s.NACv
	}
	m.Status = Some(s)
}

// dimensions returns the upper bounds of length and width in metres (DO-260B
// table 2-74).
func dimensions(code uint32) (length, width Opt[float64]) {
	if code == 0 {
		return
	}
	l := [...]float64{0, 15, 25, 25, 35, 35, 45, 45, 55, 55, 65, 65, 75, 75, 85, 85}
	w := [...]float64{0, 23, 28.5, 34, 33, 38, 39.5, 45, 45, 52, 59.5, 67, 72.5, 80, 80, 90}
	return Some(l[code]), Some(w[code])
}

// antenna reads the GNSS antenna offset (DO-260B tables 2-75 and 2-76).
func (s *OperationalStatus) antenna(v uint32) {
	if lat := v >> 5; lat != 0 {
		off := float64(lat&3) * 2
		if lat&4 == 0 {
			off = -off
		}
		s.AntennaLateral = Some(off)
	}
	if long := v & 31; long > 1 { // 1: corrected to the reference point by the sensor
		s.AntennaLongitudinal = Some(float64(long-1) * 2)
	}
}

// A TargetState is a target state and status message, type code 29: what the
// autopilot was told. Subtype 0 is of version 1, subtype 1 of version 2
// (DO-260B section 2.2.3.2.7.1).
type TargetState struct {
	// Version is 1 or 2.
	Version uint8
	// Altitude is the selected altitude in feet, AltitudeSource the system that
	// it was selected on.
	Altitude       Opt[int32]
	AltitudeSource TargetSource
	// QNH is the barometric setting in hPa (version 2).
	QNH Opt[float64]
	// Heading is the selected heading in degrees, HeadingIsTrack tells that it
	// is a track (version 1).
	Heading        Opt[float64]
	HeadingIsTrack bool
	// NACp, SIL and NICbaro are as in [OperationalStatus]. SILPerSample is of
	// version 2 only.
	NACp, SIL    Opt[uint8]
	SILPerSample Opt[bool]
	NICbaro      Opt[bool]
	// Autopilot, VNAV, AltitudeHold, Approach and LNAV are the engaged modes
	// (version 2).
	Autopilot, VNAV, AltitudeHold, Approach, LNAV Opt[bool]
	// TCAS tells that it is operational; RAActive is of version 1.
	TCAS, RAActive Opt[bool]
}

// TargetSource says which system a selected altitude comes from.
type TargetSource uint8

// Sources of a selected altitude.
const (
	TargetUnknown  TargetSource = iota // not said
	TargetAircraft                     // the aircraft's own altitude
	TargetMCP                          // mode or flight control panel
	TargetFMS                          // flight management system
)

// String returns "unknown", "aircraft", "mcp" or "fms".
func (s TargetSource) String() string {
	switch s {
	case TargetAircraft:
		return "aircraft"
	case TargetMCP:
		return "mcp"
	case TargetFMS:
		return "fms"
	}
	return "unknown"
}

func (m *Message) target(me uint64) {
	switch {
	case m.Subtype.V == 0 && !flag(me, 11): // version 1 (DO-260A section 2.2.3.2.7.1)
		t := TargetState{Version: 1}
		if src := field(me, 8, 9); src != 0 {
			t.AltitudeSource = [...]TargetSource{0, TargetMCP, TargetAircraft, TargetFMS}[src]
			if v := field(me, 16, 25); v <= 1010 {
				t.Altitude = Some(int32(v)*100 - 1000)
			}
		}
		if field(me, 26, 27) != 0 {
			if v := field(me, 28, 36); v < 360 {
				t.Heading = Some(float64(v))
				t.HeadingIsTrack = flag(me, 37)
			}
		}
		t.NACp = Some(uint8(field(me, 40, 43)))
		t.NICbaro = Some(flag(me, 44))
		t.SIL = Some(uint8(field(me, 45, 46)))
		t.TCAS = Some(!flag(me, 52))
		t.RAActive = Some(flag(me, 53))
		m.Emergency = Some(Emergency(field(me, 54, 56)))
		m.Target = Some(t)
	case m.Subtype.V == 1: // version 2
		t := TargetState{Version: 2}
		t.SILPerSample = Some(flag(me, 8))
		if v := field(me, 10, 20); v != 0 {
			t.Altitude = Some(int32(v-1) * 32)
			t.AltitudeSource = TargetMCP
			if flag(me, 9) {
				t.AltitudeSource = TargetFMS
			}
		}
		if v := field(me, 21, 29); v != 0 {
			t.QNH = Some(800 + float64(v-1)*0.8)
		}
		if flag(me, 30) {
			t.Heading = Some(float64(field(me, 31, 39)) * 180 / 256)
		}
		t.NACp = Some(uint8(field(me, 40, 43)))
		t.NICbaro = Some(flag(me, 44))
		t.SIL = Some(uint8(field(me, 45, 46)))
		if flag(me, 47) {
			t.Autopilot, t.VNAV = Some(flag(me, 48)), Some(flag(me, 49))
			t.AltitudeHold, t.Approach = Some(flag(me, 50)), Some(flag(me, 52))
			t.LNAV = Some(flag(me, 54))
		}
		t.TCAS = Some(flag(me, 53))
		m.Target = Some(t)
	}
}

// NIC returns the navigation integrity category of a position of a type code
// and the radius of containment in metres, from the version of the aircraft
// and the NIC supplements a (type 31), b (the position itself) and c (type 31
// on the surface). Version 0 has NUCp in place of NIC; the NIC given is the
// one of like containment. rc is absent where it is unknown, ok false for
// types that are no position. Supplements that the version does not have are
// ignored. DO-260B table 2-14 and section 2.2.8.1.16.
func NIC(typeCode, version uint8, a, b, c bool) (nic uint8, rc Opt[float64], ok bool) {
	known := func(nic uint8, metres float64) (uint8, Opt[float64], bool) { return nic, Some(metres), true }
	const nm = 1852
	switch typeCode {
	case 5, 9, 20:
		return known(11, 7.5)
	case 6, 10, 21:
		return known(10, 25)
	case 7:
		if version == 1 && a || version >= 2 && a && !c {
			return known(9, 75)
		}
		return known(8, 0.1*nm)
	case 8:
		if version >= 2 {
			switch {
			case a && c:
				return known(7, 0.2*nm)
			case a:
				return known(6, 0.3*nm)
			case c:
				return known(6, 0.6*nm)
			}
		}
		return 0, Opt[float64]{}, true
	case 11:
		if version == 1 && a || version >= 2 && a && b {
			return known(9, 75)
		}
		return known(8, 0.1*nm)
	case 12:
		return known(7, 0.2*nm)
	case 13:
		switch {
		case version >= 2 && !a && b:
			return known(6, 0.3*nm)
		case version == 1 && a, version >= 2 && a && b:
			return known(6, 0.6*nm)
		}
		return known(6, 0.5*nm)
	case 14:
		return known(5, 1*nm)
	case 15:
		return known(4, 2*nm)
	case 16:
		switch {
		case version == 1 && a, version >= 2 && a && b:
			return known(3, 4*nm)
		case version == 0:
			return known(1, 10*nm)
		}
		return known(2, 8*nm)
	case 17:
		return known(1, 20*nm)
	case 0, 18, 22:
		return 0, Opt[float64]{}, true
	}
	return 0, Opt[float64]{}, false
}
