package synth

import (
	"math"
	"math/rand/v2"

	"signalbox.example/modes/internal/pulse"
)

// DefaultBandwidth is the cut-off of the receiver's low-pass filter, in Hz to
// each side of the carrier, where a Signal names none.
const DefaultBandwidth = pulse.Bandwidth

// An Air is a stretch of the band as a receiver samples it: the sum of the
// signals and the noise added to it.
type Air struct {
	// Rate is in samples per second.
	Rate float64
	// IQ holds the samples; 1.0 is full scale.
	IQ []complex64

	taps map[float64][]float64 // low-pass filters by cut-off
}

// NewAir returns a silent stretch of samples at rate samples per second.
func NewAir(rate float64, samples int) *Air {
	return &Air{Rate: rate, IQ: make([]complex64, samples)}
}

// A Signal is one reply on the air. Only Frame and Amplitude must be set.
type Signal struct {
	// Frame is the 7 or 14 bytes of a Mode S reply, sent behind its preamble.
	Frame []byte
	// Start is the time of the leading edge of the first pulse, in seconds
	// from the first sample.
	Start float64
	// Amplitude is that of the pulses; 1.0 is full scale.
	Amplitude float64
	// Phase is the carrier's phase at Start in radians, OffsetHz its distance
	// from the frequency that the receiver is tuned to.
	Phase, OffsetHz float64
	// DroopDB is how much weaker a pulse 120 us after Start is than the first;
	// between them the loss grows evenly in dB.
	DroopDB float64
	// BandwidthHz is the cut-off of the low-pass in front of the sampler, 0
	// for DefaultBandwidth.
	BandwidthHz float64
}

// halfMicro is the length of a preamble pulse and of half a data bit.
const halfMicro = 0.5e-6

// Add adds a Mode S reply.
func (a *Air) Add(s Signal) {
	chips := make([]int, 0, 4+8*len(s.Frame))
	chips = append(chips, 0, 2, 7, 9)
	for i := range 8 * len(s.Frame) {
		late := 1 - int(s.Frame[i/8]>>(7-i%8)&1)
		chips = append(chips, 16+2*i+late)
	}
	times := make([]float64, len(chips))
	for i, c := range chips {
		times[i] = (float64(c) + 0.5) * halfMicro
	}
	a.pulses(s, times, halfMicro)
}

// ModeAC is the 13-bit code of a Mode A or Mode C reply, in the order of its
// pulses on the air: C1 A1 C2 A2 C4 A4 X B1 D1 B2 D2 B4 D4, C1 in bit 12.
type ModeAC uint16

// AddModeAC adds a Mode A/C reply: two framing pulses 20.3 us apart, those of
// the code between them every 1.45 us, and 4.35 us behind the last framing
// pulse the special position identification pulse if spi is set. The Frame of
// s is not used.
func (a *Air) AddModeAC(s Signal, code ModeAC, spi bool) {
	const width, step = 0.45e-6, 1.45e-6
	times := []float64{width / 2}
	for i := range 13 {
		if code>>(12-i)&1 != 0 {
			times = append(times, width/2+float64(i+1)*step)
		}
	}
	times = append(times, width/2+14*step)
	if spi {
		times = append(times, width/2+17*step)
	}
	a.pulses(s, times, width)
}

// pulses adds pulses of one width, given the times of their middles after the
// start of the signal.
func (a *Air) pulses(s Signal, times []float64, width float64) {
	cut := s.BandwidthHz
	if cut == 0 {
		cut = DefaultBandwidth
	}
	if a.taps == nil {
		a.taps = map[float64][]float64{}
	}
	taps, ok := a.taps[cut]
	if !ok {
		taps = pulse.Lowpass(cut)
		a.taps[cut] = taps
	}
	shape := pulse.New(width, s.OffsetHz, taps)
	reach := shape.Reach() * a.Rate
	for _, t := range times {
		amp := s.Amplitude * math.Pow(10, -s.DroopDB/20*t/120e-6)
		sin, cos := math.Sincos(s.Phase + 2*math.Pi*s.OffsetHz*t)
		carrier := complex(amp*cos, amp*sin)
		middle := (s.Start + t) * a.Rate // in samples
		for n := max(0, int(math.Ceil(middle-reach))); n < len(a.IQ) && float64(n) <= middle+reach; n++ {
			a.IQ[n] += complex64(carrier * shape.At((float64(n)-middle)/a.Rate))
		}
	}
}

// Noise adds white Gaussian noise with standard deviation rms in I and in Q.
func (a *Air) Noise(rng *rand.Rand, rms float64) {
	for i := range a.IQ {
		a.IQ[i] += complex(float32(rms*rng.NormFloat64()), float32(rms*rng.NormFloat64()))
	}
}

// Offset adds a constant, the DC offset of a receiver's converter.
func (a *Air) Offset(dc complex64) {
	for i := range a.IQ {
		a.IQ[i] += dc
	}
}

// Imbalance makes Q gainDB louder than I and turns it by skew radians, as a
// badly matched quadrature mixer does.
func (a *Air) Imbalance(gainDB, skew float64) {
	g := math.Pow(10, gainDB/20)
	sin, cos := math.Sincos(skew)
	for i, v := range a.IQ {
		re, im := float64(real(v)), float64(imag(v))
		a.IQ[i] = complex(float32(re), float32(g*(im*cos+re*sin)))
	}
}

// Cut removes the samples IQ[from:to], as a receiver does that drops a buffer.
// The indices are those of a slice; others panic.
func (a *Air) Cut(from, to int) { a.IQ = append(a.IQ[:from], a.IQ[to:]...) }
