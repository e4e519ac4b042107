package modes

import "math"

// AltitudeSource says what an altitude is measured from.
type AltitudeSource uint8

// Altitude sources, with the text that [AltitudeSource.String] returns.
const (
	// Barometric: pressure altitude against 1013.25 hPa ("baro").
	Barometric AltitudeSource = iota
	// Geometric: height above the WGS-84 ellipsoid ("gnss").
	Geometric
)

// String returns the text given with each constant.
func (s AltitudeSource) String() string {
	if s == Geometric {
		return "gnss"
	}
	return "baro"
}

// AltitudeCoding says how an altitude was coded, and so how finely.
type AltitudeCoding uint8

// Altitude codings.
const (
	// Coding25 is a count of 25 ft steps.
	Coding25 AltitudeCoding = iota
	// Coding100 is the Gillham code of old transponders, in steps of 100 ft.
	Coding100
	// CodingMetric is a count of metres.
	CodingMetric
)

// An Altitude is a height in feet with its origin.
type Altitude struct {
	// Feet is the altitude, -1,300 to 126,700.
	Feet int32
	// Source says what it is measured from.
	Source AltitudeSource
	// Coding says how it was coded.
	Coding AltitudeCoding
}

// gillham decodes the twelve pulses C1 A1 C2 A2 C4 A4 B1 D1 B2 D2 B4 D4,
// first in the top bit (Annex 10 volume IV, appendix to chapter 3). D1 is not
// used below 62,000 ft by any aircraft and stands for Q in Mode S, so a code
// with D1 is no altitude.
func gillham(c uint32) (feet int32, ok bool) {
	bit := func(n uint) uint32 { return c >> (11 - n) & 1 }
	if bit(7) != 0 {
		return 0, false
	}
	// 500 ft steps: Gray code D2 D4 A1 A2 A4 B1 B2 B4.
	g := bit(9)<<7 | bit(11)<<6 | bit(1)<<5 | bit(3)<<4 | bit(5)<<3 | bit(6)<<2 | bit(8)<<1 | bit(10)
	g ^= g >> 4
	g ^= g >> 2
	g ^= g >> 1
	// 100 ft steps: Gray code C1 C2 C4 of 1 to 5, where 5 is sent as 7.
	h := bit(0)<<2 | bit(2)<<1 | bit(4)
	h ^= h >> 1
	h ^= h >> 2
	switch h {
	case 0, 5, 6:
		return 0, false
	case 7:
		h = 5
	}
	if g&1 != 0 {
		h = 6 - h
	}
	return int32(g)*500 + int32(h)*100 - 1300, true
}

// altitude12 decodes the AC field of extended squitter, ME bits 9 to 20. All
// zero is absent.
func altitude12(c uint32, source AltitudeSource) (o Opt[Altitude]) {
	if c == 0 {
		return
	}
	if c&0x10 != 0 { // Q
		n := int32(c>>5<<4 | c&15)
		return Some(Altitude{n*25 - 1000, source, Coding25})
	}
	if feet, ok := gillham(c); ok {
		return Some(Altitude{feet, source, Coding100})
	}
	return
}

// altitude13 decodes the AC field of DF0, 4, 16 and 20, message bits 20 to
// 32: as altitude12 with the M bit in the middle. Annex 10 volume IV section
// 3.1.2.6.5.4. All zero is absent.
func altitude13(c uint32) Opt[Altitude] {
	twelve := c>>7<<6 | c&0x3F
	if c&0x40 == 0 {
		return altitude12(twelve, Barometric)
	}
	// M: a count of metres. The standard reserves it; nobody is known to send it.
	return Some(Altitude{int32(math.Round(float64(twelve) / 0.3048)), Barometric, CodingMetric})
}

// encode12 is the inverse of altitude12 for 25 ft steps: the nearest code, or
// 0 (absent) outside -1,000 to 50,175 ft.
func encode12(feet int32) uint32 {
	if feet < -1000 || feet > 50187 {
		return 0
	}
	n := (feet + 1000 + 12) / 25
	return uint32(n)>>4<<5 | 0x10 | uint32(n)&15
}

// EncodeAltitude returns the 13-bit AC field of DF0, 4, 16 and 20 for an
// altitude in 25 ft steps, rounded to the nearest; 0, which means absent,
// outside -1,000 to 50,175 ft.
func EncodeAltitude(feet int32) uint16 {
	c := encode12(feet)
	return uint16(c>>6<<7 | c&0x3F)
}

// EncodeGillham returns the 13-bit AC field for an altitude in the 100 ft
// code, rounded to the nearest 100 ft; 0, which means absent, outside -1,200
// to 126,700 ft.
func EncodeGillham(feet int32) uint16 {
	if feet < -1250 || feet > 126750 {
		return 0
	}
	n := uint32(feet+1300+50) / 100 // hundreds above -1,300: 1 to 1,280
	g, h := n/5, n%5
	// Count 1..5 within each 500 ft, so n = 5g+h has h = 1..5.
	if h == 0 {
		g, h = g-1, 5
	}
	if g > 255 {
		return 0
	}
	if g&1 != 0 {
		h = 6 - h
	}
	if h == 5 {
		h = 7
	}
	g ^= g >> 1
	h ^= h >> 1
	bit := func(v uint32, n uint) uint16 { return uint16(v >> n & 1) }
	// C1 A1 C2 A2 C4 A4 M B1 D1 B2 D2 B4 D4
	return bit(h, 2)<<12 | bit(g, 5)<<11 | bit(h, 1)<<10 | bit(g, 4)<<9 | bit(h, 0)<<8 | bit(g, 3)<<7 |
		bit(g, 2)<<5 | bit(g, 1)<<3 | bit(g, 7)<<2 | bit(g, 0)<<1 | bit(g, 6)
}
