package modes

// A ResolutionAdvisory is what ACAS tells the crew to do, from the ARA, RAC,
// RAT, MTE and TTI fields (Annex 10 volume IV sections 4.3.8.4.2.2 and
// 4.3.8.4.2.4).
type ResolutionAdvisory struct {
	// ARA holds the fourteen bits of the active advisory, the first in bit 13.
	// The named fields below are read from it.
	ARA uint16
	// Active tells that there is an advisory: otherwise only RAC speaks.
	Active bool
	// SingleSense: one threat, or all advisories of one sense. The fields from
	// Corrective to Positive then hold; otherwise those from UpCorrection on.
	SingleSense bool
	// Corrective (not merely preventive), Down (else up), Increased rate,
	// Reversed sense, Crossing altitude, Positive (else a vertical speed limit).
	Corrective, Down, Increased, Reversed, Crossing, Positive bool
	// For several threats with advisories of both senses: corrections up and
	// down, and whether a climb or a descent is required.
	UpCorrection, ClimbRequired, DownCorrection, DescentRequired bool
	// DoNotPassBelow, DoNotPassAbove, DoNotTurnLeft and DoNotTurnRight are the
	// complements RAC received from other aircraft.
	DoNotPassBelow, DoNotPassAbove, DoNotTurnLeft, DoNotTurnRight bool
	// Terminated: the advisory has ended (RAT).
	Terminated bool
	// MultipleThreats is MTE.
	MultipleThreats bool
	// Threat is the Mode S address of the threat (TTI 1).
	Threat Opt[uint32]
	// ThreatAltitude (feet), ThreatRange (NM) and ThreatBearing (degrees from
	// the nose, the middle of a step of 6) are those of a threat without Mode S
	// (TTI 2).
	ThreatAltitude             Opt[int32]
	ThreatRange, ThreatBearing Opt[float64]
	// ThreatRangeSaturated: the range is 12.55 NM or more.
	ThreatRangeSaturated bool
}

// resolutionAdvisory reads the fields of ME or MB bits 9 to 56, or of MV bits
// 41 to 60 of DF16 without the threat's identity. It is absent when nothing
// is said at all.
func resolutionAdvisory(v uint64, identity bool) Opt[ResolutionAdvisory] {
	if v&(1<<48-1) == 0 || !identity && field(v, 9, 28) == 0 {
		return Opt[ResolutionAdvisory]{}
	}
	r := ResolutionAdvisory{
		ARA:             uint16(field(v, 9, 22)),
		DoNotPassBelow:  flag(v, 23),
		DoNotPassAbove:  flag(v, 24),
		DoNotTurnLeft:   flag(v, 25),
		DoNotTurnRight:  flag(v, 26),
		Terminated:      flag(v, 27),
		MultipleThreats: flag(v, 28),
	}
	r.SingleSense = flag(v, 9)
	switch {
	case r.SingleSense:
		r.Active = true
		r.Corrective, r.Down, r.Increased = flag(v, 10), flag(v, 11), flag(v, 12)
		r.Reversed, r.Crossing, r.Positive = flag(v, 13), flag(v, 14), flag(v, 15)
	case r.MultipleThreats:
		r.Active = true
		r.UpCorrection, r.ClimbRequired, r.DownCorrection = flag(v, 10), flag(v, 11), flag(v, 12)
		r.DescentRequired, r.Crossing, r.Reversed = flag(v, 13), flag(v, 14), flag(v, 15)
	}
	if !identity {
		return Some(r)
	}
	switch field(v, 29, 30) {
	case 1:
		r.Threat = Some(field(v, 31, 54))
	case 2:
		if a := altitude13(field(v, 31, 43)); a.OK {
			r.ThreatAltitude = Some(a.V.Feet)
		}
		if n := field(v, 44, 50); n != 0 {
			r.ThreatRange = Some(float64(n-1) / 10)
			r.ThreatRangeSaturated = n == 127
		}
		if n := field(v, 51, 56); n >= 1 && n <= 60 {
			r.ThreatBearing = Some(float64(n-1)*6 + 3)
		}
	}
	return Some(r)
}
