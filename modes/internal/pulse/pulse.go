// Package pulse holds the shape of a transponder's pulse behind a receiver's
// low-pass filter. The generator makes signals from it and the demodulator
// matches them.
package pulse

import "math"

// Rate is the rate in Hz at which shapes are tabulated.
const Rate = 48e6

// Bandwidth is the usual cut-off of a receiver's filter in Hz.
const Bandwidth = 1.1e6

const taps = 401

// Lowpass returns the taps of a linear-phase low-pass at Rate: a sinc under a
// Kaiser window (beta 6), half amplitude at cutoff hertz and gain 1 at 0.
func Lowpass(cutoff float64) []float64 {
	bessel := func(x float64) float64 { // I0 by its series
		sum, term := 1.0, 1.0
		for k := 1.0; term > 1e-12*sum; k++ {
			term *= (x / (2 * k)) * (x / (2 * k))
			sum += term
		}
		return sum
	}
	const beta, half = 6.0, (taps - 1) / 2
	h := make([]float64, taps)
	total := 0.0
	for i := range h {
		x := float64(i - half)
		s := 2 * cutoff / Rate
		if x != 0 {
			s = math.Sin(2*math.Pi*cutoff/Rate*x) / (math.Pi * x)
		}
		r := x / half
		h[i] = s * bessel(beta*math.Sqrt(math.Max(0, 1-r*r))) / bessel(beta)
		total += h[i]
	}
	for i := range h {
		h[i] /= total
	}
	return h
}

// A Shape is one pulse as the filter leaves it, amplitude 1 before it.
type Shape struct {
	v      []complex128
	centre float64 // index of the pulse's middle in v
}

// edge is the rise time of pulses, a moving average in samples (0.1 us).
const edge = 5

// New returns a pulse of the given width (seconds between its half amplitude
// points) on a carrier offset hertz away, through a low-pass. The carrier's
// phase is zero at the middle of the pulse.
func New(width, offset float64, lowpass []float64) *Shape {
	w := width * Rate
	half := int(w/2+edge/2.0) + 1
	env := make([]complex128, 2*half+1)
	for i := range env {
		// Overlap of the averaging window around x with the ideal pulse.
		x := float64(i - half)
		lo, hi := math.Max(x-edge/2.0, -w/2), math.Min(x+edge/2.0, w/2)
		if hi > lo {
			s, c := math.Sincos(2 * math.Pi * offset / Rate * x)
			env[i] = complex((hi-lo)/edge, 0) * complex(c, s)
		}
	}
	out := make([]complex128, len(env)+len(lowpass)-1)
	for i, e := range env {
		if e == 0 {
			continue
		}
		for j, t := range lowpass {
			out[i+j] += e * complex(t, 0)
		}
	}
	return &Shape{out, float64(half + (len(lowpass)-1)/2)}
}

// Reach is the time in seconds from a pulse's middle beyond which it is zero.
func (s *Shape) Reach() float64 { return float64(len(s.v)) / 2 / Rate }

// At returns the pulse t seconds after its middle, by cubic interpolation.
func (s *Shape) At(t float64) complex128 {
	x := t*Rate + s.centre
	i := int(math.Floor(x))
	if i < 1 || i+2 >= len(s.v) {
		return 0
	}
	f := x - float64(i)
	a, b, c, d := s.v[i-1], s.v[i], s.v[i+1], s.v[i+2]
	k := func(v float64) complex128 { return complex(v, 0) }
	return a*k(f*(f*(-f/2+1)-0.5)) + b*k(f*f*(1.5*f-2.5)+1) + c*k(f*(f*(2-1.5*f)+0.5)) + d*k(f*f*(f-1)/2)
}
