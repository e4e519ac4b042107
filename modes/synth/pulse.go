package synth

import "math"

// fine is the rate at which pulses are shaped before they are sampled.
const fine = 48e6

// DefaultBandwidth is the cut-off of the receiver's low-pass filter, in Hz to
// each side of the carrier, where a Signal names none.
const DefaultBandwidth = 1.1e6

const lowpassTaps = 401

// lowpass returns the taps of a linear-phase low-pass at the fine rate: a
// sinc under a Kaiser window (beta 6), gain 1 at its middle.
func lowpass(cutoff float64) []float64 {
	bessel := func(x float64) float64 { // I0 by its series
		sum, term := 1.0, 1.0
		for k := 1.0; term > 1e-12*sum; k++ {
			term *= (x / (2 * k)) * (x / (2 * k))
			sum += term
		}
		return sum
	}
	const beta, half = 6.0, (lowpassTaps - 1) / 2
	taps := make([]float64, lowpassTaps)
	total := 0.0
	for i := range taps {
		x := float64(i - half)
		s := 2 * cutoff / fine
		if x != 0 {
			s = math.Sin(2*math.Pi*cutoff/fine*x) / (math.Pi * x)
		}
		r := x / half
		taps[i] = s * bessel(beta*math.Sqrt(math.Max(0, 1-r*r))) / bessel(beta)
		total += taps[i]
	}
	for i := range taps {
		taps[i] /= total
	}
	return taps
}

// A shape is one pulse as the receiver's filter leaves it, at the fine rate.
type shape struct {
	v      []complex128
	centre float64 // index of the pulse's middle in v
}

// edge is the rise time of pulses, a moving average in fine samples (0.1 us).
const edge = 5

// makeShape returns a pulse of the given width (seconds between its half
// amplitude points) on a carrier offset hertz away, through the filter taps.
// The carrier's phase is zero at the middle of the pulse.
func makeShape(width, offset float64, taps []float64) shape {
	w := width * fine
	half := int(w/2+edge/2.0) + 1
	env := make([]complex128, 2*half+1)
	for i := range env {
		// Overlap of the averaging window around x with the ideal pulse.
		x := float64(i - half)
		lo, hi := math.Max(x-edge/2.0, -w/2), math.Min(x+edge/2.0, w/2)
		if hi > lo {
			s, c := math.Sincos(2 * math.Pi * offset / fine * x)
			env[i] = complex((hi-lo)/edge, 0) * complex(c, s)
		}
	}
	out := make([]complex128, len(env)+len(taps)-1)
	for i, e := range env {
		if e == 0 {
			continue
		}
		for j, t := range taps {
			out[i+j] += e * complex(t, 0)
		}
	}
	return shape{out, float64(half + (len(taps)-1)/2)}
}

// at returns the pulse x fine samples after its middle, by cubic
// interpolation.
func (s *shape) at(x float64) complex128 {
	x += s.centre
	i := int(math.Floor(x))
	if i < 1 || i+2 >= len(s.v) {
		return 0
	}
	f := x - float64(i)
	a, b, c, d := s.v[i-1], s.v[i], s.v[i+1], s.v[i+2]
	k := func(v float64) complex128 { return complex(v, 0) }
	return a*k(f*(f*(-f/2+1)-0.5)) + b*k(f*f*(1.5*f-2.5)+1) + c*k(f*(f*(2-1.5*f)+0.5)) + d*k(f*f*(f-1)/2)
}
