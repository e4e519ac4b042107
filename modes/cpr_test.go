package modes

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
)

// awb reads an angle in units of 2^-32 turns.
func awb(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	return signed(float64(v) * 360 / (1 << 32))
}

// toAWB is the inverse, rounded to the nearest.
func toAWB(deg float64) uint32 {
	return uint32(int64(math.Floor(deg*(1<<32)/360 + 0.5)))
}

func hexField(t *testing.T, s string) uint32 {
	t.Helper()
	v, err := strconv.ParseUint(s, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(v)
}

func rows(t *testing.T, file string) [][]string {
	var out [][]string
	for _, l := range vectors.Lines(t, "modes/cpr_nasa/"+file+".csv") {
		out = append(out, strings.Split(l, ","))
	}
	if len(out) == 0 {
		t.Fatal("no rows in " + file)
	}
	return out
}

func TestNASAEncoding(t *testing.T) {
	for file, kind := range map[string]CPRKind{
		"airborne_encoding_MOPS-table-2-139": CPRAirborne, "airborne_encoding_t6-3awb": CPRAirborne, "airborne_encoding_t6-4awb": CPRAirborne,
		"coarse_encoding_t6-5awb": CPRCoarse, "coarse_encoding_t6-6awb": CPRCoarse,
		"surface_encoding_MOPS-table-2-141": CPRSurface, "surface_encoding_t6-1awb": CPRSurface, "surface_encoding_t6-2awb": CPRSurface,
	} {
		for _, r := range rows(t, file) {
			odd := r[0] == "1"
			want := CPR{hexField(t, r[3]), hexField(t, r[4]), odd, kind}
			if got := CPREncode(LatLon{awb(t, r[1]), awb(t, r[2])}, kind, odd); got != want {
				t.Errorf("%s %v: %x %x", file, r, got.Lat, got.Lon)
			}
		}
	}
}

func TestNASASurfaceTransitions(t *testing.T) {
	// Pairs of latitudes on both sides of each transition, at 45 degrees east.
	for _, r := range rows(t, "surface_encoding_MOPS-table-2-140") {
		for i := range 2 {
			want := CPR{hexField(t, r[4+2*i]), hexField(t, r[5+2*i]), false, CPRSurface}
			if got := CPREncode(LatLon{awb(t, r[1+2*i]), 45}, CPRSurface, false); got != want {
				t.Errorf("%v: %x %x", r, got.Lat, got.Lon)
			}
		}
	}
}

// quarter brings an angle of the surface vectors, which leave the quarter of
// the globe open, into one quarter.
func quarter(v uint32, kind CPRKind) uint32 {
	if kind == CPRSurface {
		return v & (1<<30 - 1)
	}
	return v
}

func TestNASAGlobal(t *testing.T) {
	for file, kind := range map[string]CPRKind{
		"airborne_global-decoding_airborne_globally_decoded_gd_random_positions": CPRAirborne,
		"airborne_global-decoding_airborne_globally_decoded_positions_01":        CPRAirborne,
		"coarse_global-decoding_coarse_globally_decoded_gd_random_positions":     CPRCoarse,
		"coarse_global-decoding_coarse_globally_decoded_positions_01":            CPRCoarse,
		"surface_global-decoding_surface_globally_decoded_gd_random_positions":   CPRSurface,
		"surface_global-decoding_surface_globally_decoded_positions_01":          CPRSurface,
	} {
		for _, r := range rows(t, file) {
			even := CPR{hexField(t, r[2]), hexField(t, r[3]), false, kind}
			odd := CPR{hexField(t, r[6]), hexField(t, r[7]), true, kind}
			ref := LatLon{awb(t, r[0]), awb(t, r[1])}
			for i, newestOdd := range []bool{false, true} {
				p, err := CPRGlobal(even, odd, newestOdd, &ref)
				if r[8] == "0" {
					if !errors.Is(err, ErrCPRZone) && !errors.Is(err, ErrCPRRange) {
						t.Errorf("%s %v: %v %v", file, r, p, err)
					}
					continue
				}
				wantLat, wantLon := quarter(hexField(t, r[9+2*i]), kind), quarter(hexField(t, r[10+2*i]), kind)
				if lat, lon := quarter(toAWB(p.Lat), kind), quarter(toAWB(p.Lon), kind); err != nil || lat != wantLat || lon != wantLon {
					t.Errorf("%s %v, odd %v: %08X %08X %v, want %08X %08X", file, r, newestOdd, lat, lon, err, wantLat, wantLon)
				}
			}
		}
	}
}

func TestNASALocal(t *testing.T) {
	for file, kind := range map[string]CPRKind{
		"airborne_local-decoding_airborne_locally_decoded_ld_random_positions": CPRAirborne,
		"airborne_local-decoding_airborne_locally_decoded_positions_01":        CPRAirborne,
		"coarse_local-decoding_coarse_locally_decoded_ld_random_positions":     CPRCoarse,
		"coarse_local-decoding_coarse_locally_decoded_positions_01":            CPRCoarse,
		"surface_local-decoding_surface_locally_decoded_ld_random_positions":   CPRSurface,
		"surface_local-decoding_surface_locally_decoded_positions_01":          CPRSurface,
	} {
		for _, r := range rows(t, file) {
			ref := LatLon{awb(t, r[0]), awb(t, r[1])}
			c := CPR{hexField(t, r[5]), hexField(t, r[6]), r[4] == "1", kind}
			p, err := CPRLocal(c, ref)
			if lat, lon := toAWB(p.Lat), toAWB(p.Lon); err != nil || lat != hexField(t, r[7]) || lon != hexField(t, r[8]) {
				t.Errorf("%s %v: %08X %08X %v", file, r, lat, lon, err)
			}
		}
	}
}

// TestTransitionLatitudes recomputes the table with 200 bits: a latitude is
// the transition of NL zones when cos(2 pi/NL) = 1 - (1-cos(pi/30))/cos^2(lat),
// and the table must hold the nearest float64.
func TestTransitionLatitudes(t *testing.T) {
	const prec = 200
	num := func(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }
	pi, _, err := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211707", 10, prec, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	cos := func(x *big.Float) *big.Float {
		sum, term, x2 := num(1), num(1), new(big.Float).Mul(x, x)
		for n := 2; n < 120; n += 2 {
			term = new(big.Float).Quo(new(big.Float).Mul(term, x2), num(float64(n*(n-1))))
			term.Neg(term)
			sum = new(big.Float).Add(sum, term)
		}
		return sum
	}
	a := new(big.Float).Sub(num(1), cos(new(big.Float).Quo(pi, num(30))))
	// f is positive below the transition latitude of nl.
	f := func(deg float64, nl int) int {
		c := cos(new(big.Float).Quo(new(big.Float).Mul(num(deg), pi), num(180)))
		left := new(big.Float).Mul(new(big.Float).Sub(num(1), cos(new(big.Float).Quo(new(big.Float).Mul(num(2), pi), num(float64(nl))))), new(big.Float).Mul(c, c))
		return left.Cmp(a)
	}
	if len(transitions) != 57 {
		t.Fatalf("%d transitions", len(transitions))
	}
	for i, lat := range transitions {
		nl := 59 - i
		below, above := math.Nextafter(lat, 0), math.Nextafter(lat, 90)
		if f(below, nl) <= 0 || f(above, nl) >= 0 {
			t.Errorf("NL %d: %v is not the transition", nl, lat)
		}
		if NL(below) != nl || NL(above) != nl-1 {
			t.Errorf("NL around %v: %d %d", lat, NL(below), NL(above))
		}
	}
}

// TestCPRRoundTrip: what is encoded decodes to within half a step, by pair and
// by reference, for random positions of every kind.
func TestCPRRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	steps := map[CPRKind]float64{CPRAirborne: 360.0 / 59 / (1 << 17), CPRSurface: 90.0 / 59 / (1 << 17), CPRCoarse: 360.0 / 59 / (1 << 12)}
	rounds := 30000
	if testing.Short() {
		rounds = 3000
	}
	for range rounds {
		p := LatLon{math.Asin(2*r.Float64()-1) * 180 / math.Pi, 360*r.Float64() - 180}
		if r.IntN(10) == 0 { // near a transition
			p.Lat = transitions[r.IntN(len(transitions))] + (r.Float64()-0.5)*1e-4
		}
		if math.Abs(p.Lat) > 89.9 {
			continue
		}
		for kind, step := range steps {
			even, odd := CPREncode(p, kind, false), CPREncode(p, kind, true)
			near := func(what string, q LatLon) {
				// A step of longitude is 1/NL of the span, of which there are at
				// least cos(lat)*59 or so; allow 0.6 of a step each way.
				dlon := math.Abs(signed(q.Lon - p.Lon))
				if math.Abs(q.Lat-p.Lat) > 0.6*step || dlon > 0.6*kind.span()/float64(max(NL(q.Lat)-1, 1))/float64(uint32(1)<<kind.bits()) {
					t.Errorf("%v %s: %v became %v", kind, what, p, q)
				}
				if q.Lat < -90 || q.Lat > 90 || q.Lon < -180 || q.Lon >= 180 {
					t.Errorf("%v %s: %v is out of range", kind, what, q)
				}
			}
			for _, newest := range []bool{false, true} {
				ref := LatLon{max(-90, min(90, p.Lat+r.Float64()*60-30)), signed(p.Lon + r.Float64()*60 - 30)}
				q, err := CPRGlobal(even, odd, newest, &ref)
				if err != nil {
					// Only where the two roundings fall on both sides of a transition.
					if NL(p.Lat-step) == NL(p.Lat+step) {
						t.Errorf("%v global: %v: %v", kind, p, err)
					}
					continue
				}
				near("global", q)
			}
			for _, c := range []CPR{even, odd} {
				const reach = 0.3
				ref := LatLon{p.Lat + (r.Float64()-0.5)*reach, signed(p.Lon + (r.Float64()-0.5)*reach)}
				q, err := CPRLocal(c, ref)
				if err != nil && math.Abs(p.Lat) < 89 {
					t.Errorf("%v local: %v: %v", kind, p, err)
				} else if err == nil {
					near("local", q)
				}
			}
		}
	}
}

func TestCPREdges(t *testing.T) {
	for _, p := range []LatLon{{90, 0}, {-90, 0}, {0, 180}, {0, -180}, {0, 539}, {math.NaN(), 0}, {0, math.Inf(1)}, {1e300, -1e300}} {
		for kind := CPRAirborne; kind <= CPRCoarse; kind++ {
			for _, odd := range []bool{false, true} {
				c := CPREncode(p, kind, odd)
				if c.Lat >= 1<<kind.bits() || c.Lon >= 1<<kind.bits() {
					t.Errorf("%v: %+v", p, c)
				}
				CPRLocal(c, p)
			}
		}
	}
	if _, err := CPRLocal(CPR{}, LatLon{math.NaN(), 0}); !errors.Is(err, ErrCPRRange) {
		t.Errorf("NaN reference: %v", err)
	}
	if _, err := CPRLocal(CPR{}, LatLon{0, math.Inf(1)}); !errors.Is(err, ErrCPRRange) {
		t.Errorf("infinite reference: %v", err)
	}
	if _, err := CPRGlobal(CPR{Kind: CPRSurface}, CPR{Kind: CPRSurface, Odd: true}, true, nil); !errors.Is(err, ErrCPRReference) {
		t.Errorf("surface without reference: %v", err)
	}
	// The pair of the book "The 1090 MHz Riddle".
	even, odd := decode(t, "8d40621d58c382d690c8ac2863a7"), decode(t, "8d40621d58c386435cc412692ad6")
	p, err := CPRGlobal(even.Position.V, odd.Position.V, false, nil)
	if err != nil || math.Abs(p.Lat-52.25720) > 1e-5 || math.Abs(p.Lon-3.91937) > 1e-5 {
		t.Errorf("%v %v", p, err)
	}
}

func FuzzCPR(f *testing.F) {
	f.Add(uint32(0x18000), uint32(0), uint32(1), uint32(2), 52.0, 4.0, uint8(0))
	f.Fuzz(func(t *testing.T, a, b, c, d uint32, lat, lon float64, k uint8) {
		kind := CPRKind(k % 3)
		ref := LatLon{lat, lon}
		check := func(p LatLon, err error) {
			if err == nil && !(p.Lat >= -90 && p.Lat <= 90 && p.Lon >= -180 && p.Lon < 180) {
				t.Errorf("%v", p)
			}
		}
		check(CPRGlobal(CPR{a, b, false, kind}, CPR{c, d, true, kind}, k&4 != 0, &ref))
		check(CPRLocal(CPR{a, b, k&8 != 0, kind}, ref))
		CPREncode(ref, kind, k&4 != 0)
	})
}
