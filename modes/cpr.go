package modes

import (
	"errors"
	"math"
)

// A LatLon is a position on the WGS-84 ellipsoid in degrees: Lat from -90
// (south) to 90, Lon from -180 (west) up to but not including 180.
type LatLon struct {
	Lat, Lon float64
}

// CPRKind is one of the three codings that share the Compact Position
// Reporting algorithm.
type CPRKind uint8

// Kinds of CPR.
const (
	// CPRAirborne has 17 bits and zones of 6 degrees.
	CPRAirborne CPRKind = iota
	// CPRSurface has 17 bits and zones of 1.5 degrees: four times finer, and
	// four times ambiguous in both directions.
	CPRSurface
	// CPRCoarse has 12 bits and zones of 6 degrees (coarse TIS-B).
	CPRCoarse
)

// String returns "airborne", "surface" or "coarse".
func (k CPRKind) String() string {
	switch k {
	case CPRAirborne:
		return "airborne"
	case CPRSurface:
		return "surface"
	case CPRCoarse:
		return "coarse"
	}
	return "unknown"
}

func (k CPRKind) bits() uint {
	if k == CPRCoarse {
		return 12
	}
	return 17
}

// span is the angle in degrees over which zone numbers repeat.
func (k CPRKind) span() float64 {
	if k == CPRSurface {
		return 90
	}
	return 360
}

// A CPR is one encoded position, the YZ and XZ of DO-260B appendix A.
type CPR struct {
	// Lat and Lon are the encoded fields, 17 bits (12 when Kind is CPRCoarse).
	Lat, Lon uint32
	// Odd is the format bit F.
	Odd bool
	// Kind says which coding it is.
	Kind CPRKind
}

// Errors of the CPR functions.
var (
	// ErrCPRKind: the two halves of a pair are not one even and one odd
	// position of the same kind.
	ErrCPRKind = errors.New("modes: not an even and an odd CPR position of one kind")
	// ErrCPRZone: the two halves lie in different longitude zones, so that the
	// aircraft crossed a transition latitude between them.
	ErrCPRZone = errors.New("modes: CPR pair straddles a transition latitude")
	// ErrCPRRange: the result is no latitude; the halves do not belong together.
	ErrCPRRange = errors.New("modes: CPR latitude out of range")
	// ErrCPRReference: a surface position needs a reference position.
	ErrCPRReference = errors.New("modes: CPR surface position needs a reference")
)

// transitions holds, in degrees, the latitudes at which the number of
// longitude zones changes from 59 to 58, 58 to 57 and so on to 3 to 2:
// acos(sqrt((1-cos(pi/30)) / (1-cos(2 pi/NL)))), DO-260B appendix A.1.7.2 d.
// A test recomputes them with 200 bits.
var transitions = [...]float64{
	10.470471299968775, 14.828174368687508, 18.186263570714182, 21.029394926029344, 23.545044865571402, 25.829247070588554,
	27.938987101219166, 29.91135685731838, 31.77209707681102, 33.539934362985456, 35.228995977964466, 36.85025107593547,
	38.412418924123045, 39.92256684333892, 41.386518322602825, 42.809140122435664, 44.19454951419314, 45.54626722660254,
	46.867332524987674, 48.160391280966536, 49.42776439255704, 50.67150165553846, 51.89342469168786, 53.09516152796016,
	54.27817472272919, 55.4437844449506, 56.59318756205935, 57.72747353866127, 58.84763776148471, 59.954592766940465,
	61.04917774246363, 62.132166592103424, 63.20427479381938, 64.2661652256745, 65.31845309682099, 66.36171008382628,
	67.39646774084676, 68.4232202208334, 69.44242631144031, 70.45451074987608, 71.4598647302899, 72.45884544728952,
	73.4517744166787, 74.43893415725142, 75.42056256653363, 76.39684390794473, 77.36789461328192, 78.33374082922752,
	79.29428225456931, 80.24923213280516, 81.19801349271951, 82.13956980510609, 83.07199444719816, 83.99173562980566,
	84.89166190702088, 85.75541620944419, 86.53536997512101,
}

// zoneIndex maps each whole degree to the number of transitions below it.
var zoneIndex = func() (t [88]uint8) {
	for i := range t {
		for int(t[i]) < len(transitions) && transitions[t[i]] <= float64(i) {
			t[i]++
		}
	}
	return
}()

// NL returns the number of longitude zones at a latitude in degrees, 1 to 59:
// 59 at the equator, 2 at 87 degrees north and south, 1 beyond. A NaN gives 1.
func NL(lat float64) int {
	lat = math.Abs(lat)
	if !(lat <= 87) {
		return 1
	}
	i := int(zoneIndex[int(lat)])
	for i < len(transitions) && lat >= transitions[i] {
		i++
	}
	return 59 - i
}

// CPREncode encodes a position. Latitudes beyond the poles and longitudes
// beyond 180 degrees wrap; a position that is not finite encodes as zeros.
// DO-260B appendix A.1.7.3 to A.1.7.5.
func CPREncode(p LatLon, kind CPRKind, odd bool) CPR {
	c := CPR{Odd: odd, Kind: kind}
	if math.IsNaN(p.Lat+p.Lon) || math.IsInf(p.Lat, 0) || math.IsInf(p.Lon, 0) {
		return c
	}
	i := 0
	if odd {
		i = 1
	}
	scale := float64(uint32(1) << kind.bits())
	mask := uint32(1)<<kind.bits() - 1
	span, zones := kind.span(), float64(60-i)
	// Multiply before dividing: p.Lat*zones is exact for angles of up to 47
	// bits, and the quotient by span is then rounded only once.
	lat := math.Floor(p.Lat*zones/span*scale + 0.5)
	c.Lat = uint32(int64(math.Mod(lat, 1<<40))) & mask
	// The zones are counted at the latitude that the receiver will see.
	n := float64(max(NL(signed(lat*span/(zones*scale)))-i, 1))
	lon := math.Floor(p.Lon*n/span*scale + 0.5)
	c.Lon = uint32(int64(math.Mod(lon, 1<<40))) & mask
	return c
}

// signed brings an angle into -180 up to but not including 180.
func signed(deg float64) float64 {
	if deg >= 180 || deg < -180 {
		deg -= 360 * math.Floor((deg+180)/360)
		if deg >= 180 { // rounding at the seam
			deg = -180
		}
	}
	return deg
}

// CPRGlobal decodes a pair of an even and an odd position that lie close in
// time (10 s airborne; 25 s on the surface, 50 s when slow) and returns the
// position of the newer one. Surface pairs fix the position only within a
// quarter of the globe, so they need ref, a position less than 45 degrees
// away (the receiver's); other kinds ignore it and it may be nil.
//
// It returns [ErrCPRKind], [ErrCPRZone], [ErrCPRRange] or [ErrCPRReference].
// DO-260B appendix A.1.7.7 and A.1.7.8.
func CPRGlobal(even, odd CPR, newestOdd bool, ref *LatLon) (LatLon, error) {
	if even.Odd || !odd.Odd || even.Kind != odd.Kind {
		return LatLon{}, ErrCPRKind
	}
	kind := even.Kind
	if kind == CPRSurface && ref == nil {
		return LatLon{}, ErrCPRReference
	}
	bits := kind.bits()
	scale, span := float64(uint32(1)<<bits), kind.span()
	y0, y1 := int(even.Lat&(1<<bits-1)), int(odd.Lat&(1<<bits-1))
	x0, x1 := int(even.Lon&(1<<bits-1)), int(odd.Lon&(1<<bits-1))
	round := 1 << (bits - 1)

	j := (59*y0 - 60*y1 + round) >> bits
	lat0 := span * (float64(floorMod(j, 60)) + float64(y0)/scale) / 60
	lat1 := span * (float64(floorMod(j, 59)) + float64(y1)/scale) / 59
	if kind == CPRSurface {
		lat0, lat1 = hemisphere(lat0, ref.Lat), hemisphere(lat1, ref.Lat)
	} else {
		lat0, lat1 = signed(lat0), signed(lat1)
	}
	if !(math.Abs(lat0) <= 90 && math.Abs(lat1) <= 90) {
		return LatLon{}, ErrCPRRange
	}
	nl := NL(lat0)
	if nl != NL(lat1) {
		return LatLon{}, ErrCPRZone
	}
	m := (x0*(nl-1) - x1*nl + round) >> bits
	lat, x, n := lat0, x0, nl
	if newestOdd {
		lat, x, n = lat1, x1, max(nl-1, 1)
	}
	lon := span * (float64(floorMod(m, n)) + float64(x)/scale) / float64(n)
	if kind == CPRSurface {
		lon += 90 * math.Round((ref.Lon-lon)/90)
	}
	return LatLon{lat, signed(lon)}, nil
}

// hemisphere chooses between a surface latitude of 0 to 90 degrees and the
// one a quarter turn further south, whichever is nearer to the reference.
func hemisphere(lat, ref float64) float64 {
	if math.Abs(lat-90-ref) < math.Abs(lat-ref) {
		return lat - 90
	}
	return lat
}

func floorMod(a, n int) int {
	if a %= n; a < 0 {
		a += n
	}
	return a
}

// CPRLocal decodes one position near ref: within half a zone, that is about
// 180 NM (45 NM for the surface kind). An aircraft farther away decodes to a
// wrong position that is near; the caller must know. It returns [ErrCPRRange]
// when the result is beyond a pole, which a wrong reference can cause, or when
// ref is not finite. DO-260B appendix A.1.7.5 and A.1.7.6.
func CPRLocal(c CPR, ref LatLon) (LatLon, error) {
	i := 0
	if c.Odd {
		i = 1
	}
	bits := c.Kind.bits()
	scale, span := float64(uint32(1)<<bits), c.Kind.span()
	y, x := float64(c.Lat&(1<<bits-1))/scale, float64(c.Lon&(1<<bits-1))/scale
	zones := float64(60 - i)
	// The zone number is the one that brings the result nearest to ref.
	lat := span * (math.Floor(0.5+ref.Lat*zones/span-y) + y) / zones
	if !(math.Abs(lat) <= 90) {
		return LatLon{}, ErrCPRRange
	}
	n := float64(max(NL(lat)-i, 1))
	lon := span * (math.Floor(0.5+ref.Lon*n/span-x) + x) / n
	if !(math.Abs(lon) <= 1e6) {
		return LatLon{}, ErrCPRRange
	}
	return LatLon{lat, signed(lon)}, nil
}
