// Package modes measures the Mode S library beside Debian's
// dump1090-mutability: the same samples and the same text into both, processor
// time and frames found out of each.
package modes

import (
	"math"
	"math/rand/v2"

	"signalbox.example/modes"
	"signalbox.example/modes/avr"
	"signalbox.example/modes/synth"
)

// Rate is that of all samples here; the peer knows no other.
const Rate = 2_400_000

// Noise returns n samples of noise alone, UC8.
func Noise(n int) []byte {
	air := synth.NewAir(Rate, n)
	air.Noise(rand.New(rand.NewPCG(1, 2)), synth.NoiseLSB/128.0)
	return synth.AppendUC8(nil, air.IQ)
}

// Squitters returns n squitters at an SNR in dB, about 2,800 a second, and
// what was sent.
func Squitters(n int, snr float64) (uc8 []byte, sent []modes.Frame) {
	rec := synth.Scenario{Messages: n, SNR: snr, Seed: 3}.Make()
	for _, s := range rec.Sent {
		f, err := modes.NewFrame(s.Frame)
		if err == nil {
			sent = append(sent, f)
		}
	}
	return synth.AppendUC8(nil, rec.IQ), sent
}

// Resample turns UC8 samples of 2.0 Msps into 2.4 Msps: six for five, by a
// windowed sinc of 8 samples to each side (Kaiser, beta 8).
func Resample(in []byte) []byte {
	const half, phases = 8, 6
	bessel := func(x float64) float64 {
		sum, term := 1.0, 1.0
		for k := 1.0; k < 40; k++ {
			term *= (x / 2 / k) * (x / 2 / k)
			sum += term
		}
		return sum
	}
	var taps [phases][2 * half]float64
	for p := range taps {
		sum := 0.0
		for k := range taps[p] {
			t := float64(k-half+1) - float64(p)/phases // distance to the output in input samples
			if r := t / half; math.Abs(r) < 1 {
				taps[p][k] = bessel(8*math.Sqrt(1-r*r)) / bessel(8)
				if t != 0 {
					taps[p][k] *= math.Sin(math.Pi*t) / (math.Pi * t)
				}
			}
			sum += taps[p][k]
		}
		for k := range taps[p] {
			taps[p][k] /= sum
		}
	}
	n := len(in) / 2
	out := make([]byte, 0, 2*(n*6/5))
	for j := range n * 6 / 5 {
		at, p := j*5/6, j*5%6
		for c := range 2 {
			v := 0.0
			for k, w := range taps[p] {
				i := min(max(at+k-half+1, 0), n-1)
				v += w * (float64(in[2*i+c]) - 127.4)
			}
			out = append(out, byte(max(0, min(255, math.Floor(v+127.4+0.5)))))
		}
	}
	return out
}

// Text returns AVR lines of n aircraft, each frame twice, as the peer wants
// it: identifications first, so that both know the addresses, then positions,
// velocities and replies in random order.
func Text(n int) (lines []byte, count int) {
	r := rand.New(rand.NewPCG(1, 1))
	var first, frames []modes.Frame
	for i := range uint32(n) {
		a := 0x400000 + i*7
		p := modes.LatLon{Lat: 45 + 10*r.Float64(), Lon: 10 * r.Float64()}
		position := func(odd bool) modes.Frame {
			return modes.EncodeSquitter(5, a, modes.EncodeAirbornePosition(11, modes.Some(int32(30000)), modes.CPREncode(p, modes.CPRAirborne, odd)))
		}
		velocity := modes.EncodeSquitter(5, a, modes.EncodeVelocity(modes.Some(300.0), modes.Some(-200.0), modes.Some(int32(640)), modes.Barometric, modes.Some(int32(100))))
		frames = append(frames, position(false), velocity, position(true), velocity, modes.EncodeAllCall(5, a, modes.Interrogator{}),
			modes.EncodeSurveillance(4, 0, modes.EncodeAltitude(30000), a))
		first = append(first, modes.EncodeSquitter(5, a, modes.EncodeIdentification(0xA3, "BENCH1")))
	}
	r.Shuffle(len(frames), func(i, j int) { frames[i], frames[j] = frames[j], frames[i] })
	frames = append(first, frames...)
	for i := range frames {
		for range 2 {
			lines = avr.Append(lines, &frames[i])
			count++
		}
	}
	return
}
