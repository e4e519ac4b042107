package demod

import (
	"math"
	"math/cmplx"
	"sync"

	"signalbox.example/modes/internal/pulse"
)

// Positions inside a frame are counted in chips of half a microsecond from
// the middle of the first preamble pulse. The preamble has pulses at chips 0,
// 2, 7 and 9, bit i occupies chips 16+2i (on for a one) and 17+2i.
const (
	firstDataChip = 16
	longBits      = 112
	shortBits     = 56
	maxChips      = firstDataChip + 2*longBits
)

// The matched filter has a set of taps for each of subPhases positions of the
// pulse between two samples and for each of the carrier offsets that are
// offsetStep apart, from -offsetBins to offsetBins.
const (
	subPhases  = 40
	mfTaps     = 6
	mfBefore   = 2 // taps before the sample at or before the pulse's middle
	offsetBins = 12
	offsetStep = 100e3 // Hz
)

// A template is everything that depends on the sample rate alone. It is
// shared and never changes.
type template struct {
	rate     float64
	chipStep int // sub-phases a chip: 48 at 2.4 Msps, 40 at 2.0

	chip [maxChips]int32 // position of each chip, rounded to half samples
	one  [longBits]int32 // of the early chip of each bit, half samples
	zero [longBits]int32 // of the late chip

	// Taps of the two energy filters, on a sample (middle, side) and half way
	// between two (inner, outer), scaled to unit energy.
	onMid, onSide, halfIn, halfOut float32

	// Matched filters of unit energy by carrier offset and phase, and the
	// output for a pulse of amplitude 1. Those of the middle bin are real.
	taps     [2*offsetBins + 1][subPhases][mfTaps]complex64
	realTaps [subPhases][mfTaps]float32
	gain     [2*offsetBins + 1][subPhases]float32
	// long is the pulse of amplitude 1 with more of its skirts, I and Q.
	long [2*offsetBins + 1][subPhases][2][subTaps]float32
	// cross is the real part of the inner product of a sampled pulse of
	// amplitude 1 at a phase with itself and with pulses one, two and three
	// chips later. Close to the band's edge it depends on the phase.
	cross [2*offsetBins + 1][subPhases][4]float32
}

var (
	template20 = sync.OnceValue(func() *template { return newTemplate(2.0e6) })
	template24 = sync.OnceValue(func() *template { return newTemplate(2.4e6) })
)

func newTemplate(rate float64) *template {
	t := &template{rate: rate, chipStep: int(math.Round(subPhases * rate * 0.5e-6))}
	for c := range t.chip {
		t.chip[c] = int32(math.Round(float64(c) * rate * 1e-6))
	}
	for i := range t.one {
		t.one[i], t.zero[i] = t.chip[firstDataChip+2*i], t.chip[firstDataChip+2*i+1]
	}
	low := pulse.Lowpass(pulse.Bandwidth)
	for b := range t.taps {
		shape := pulse.New(0.5e-6, float64(b-offsetBins)*offsetStep, low)
		if b == offsetBins {
			m, s := real(shape.At(0)), real(shape.At(1/rate))
			norm := math.Sqrt(m*m + 2*s*s)
			t.onMid, t.onSide = float32(m/norm), float32(s/norm)
			m, s = real(shape.At(0.5/rate)), real(shape.At(1.5/rate))
			norm = math.Sqrt(2*m*m + 2*s*s)
			t.halfIn, t.halfOut = float32(m/norm), float32(s/norm)
		}
		turn := 2 * math.Pi * float64(b-offsetBins) * offsetStep * 0.5e-6
		for p := range subPhases {
			var energy float64
			var v [mfTaps]complex128
			for k := range v {
				// The pulse's middle is p/subPhases after tap mfBefore.
				v[k] = shape.At((float64(k-mfBefore) - float64(p)/subPhases) / rate)
				energy += real(v[k])*real(v[k]) + imag(v[k])*imag(v[k])
			}
			norm := math.Sqrt(energy)
			t.gain[b][p] = float32(norm)
			for k := range v {
				t.taps[b][p][k] = complex64(v[k] / complex(norm, 0))
				if b == offsetBins {
					t.realTaps[p][k] = float32(real(v[k]) / norm)
				}
			}
			for k := range subTaps {
				v := shape.At((float64(k-subBefore) - float64(p)/subPhases) / rate)
				t.long[b][p][0][k], t.long[b][p][1][k] = float32(real(v)), float32(imag(v))
			}
			for lag := range t.cross[b][p] {
				var sum float64
				for k := -12; k <= 16; k++ {
					x := (float64(k) - float64(p)/subPhases) / rate
					later := shape.At(x-float64(lag)*0.5e-6) * cmplx.Rect(1, float64(lag)*turn)
					sum += real(cmplx.Conj(shape.At(x)) * later)
				}
				t.cross[b][p][lag] = float32(sum)
			}
		}
	}
	return t
}
