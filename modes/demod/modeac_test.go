package demod_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"signalbox.example/modes"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/synth"
)

// onAir returns the pulses of a Mode A/C code given as octal digits.
func onAir(code uint16) (pulses synth.ModeAC) {
	order := [13]uint16{0x10, 0x1000, 0x20, 0x2000, 0x40, 0x4000, 0, 0x100, 0x1, 0x200, 0x2, 0x400, 0x4}
	for i, d := range order {
		if code&d != 0 {
			pulses |= 1 << (12 - i)
		}
	}
	return pulses
}

func TestModeAC(t *testing.T) {
	type sent struct {
		code uint16
		spi  bool
		at   float64
	}
	for _, rate := range []float64{2.0e6, 2.4e6} {
		rng := rand.New(rand.NewPCG(8, 8))
		air := synth.NewAir(rate, int(0.1*rate))
		var list []sent
		noise := 6.0 / 128
		amplitude := noise * math.Sqrt2 * math.Pow(10, 20.0/20)
		for at := 100e-6; at < 0.099; at += 500e-6 {
			s := sent{uint16(rng.Uint32()) & 0x7777, rng.IntN(4) == 0, at + 100e-6*rng.Float64()}
			air.AddModeAC(synth.Signal{Start: s.at, Amplitude: amplitude, Phase: rng.Float64() * 6, OffsetHz: 600e3 * (rng.Float64() - 0.5)}, onAir(s.code), s.spi)
			list = append(list, s)
		}
		air.Noise(rng, noise)
		d, err := demod.New(demod.Config{Rate: int(rate), ModeAC: true})
		if err != nil {
			t.Fatal(err)
		}
		right, wrong := 0, 0
		d.OnModeAC(func(r *demod.ModeACReply) {
			i := slices.IndexFunc(list, func(s sent) bool { return math.Abs(s.at*12e6-float64(r.Time12)) < 4 })
			if i >= 0 && list[i].code == r.Code && list[i].spi == r.SPI {
				right++
			} else {
				wrong++
			}
		})
		emit := func(f *modes.Frame) { t.Errorf("Mode S frame %x", f.Bytes()) }
		iq := synth.AppendUC8(nil, air.IQ)
		d.Process(iq, emit)
		d.Flush(emit)
		if right < len(list)*95/100 || wrong > len(list)/100 {
			t.Errorf("%g Msps: %d of %d replies, %d wrong", rate/1e6, right, len(list), wrong)
		}
	}
}

// What is not a Mode A/C reply must not be taken for one.
func TestModeACFalse(t *testing.T) {
	rec := synth.Scenario{Messages: 300, SNR: 20, Seed: 4}.Make()
	air := synth.NewAir(2.4e6, 500_000)
	air.Noise(rand.New(rand.NewPCG(6, 6)), 6.0/128)
	for name, iq := range map[string][]complex64{"squitters": rec.IQ, "noise": air.IQ} {
		d, err := demod.New(demod.Config{ModeAC: true})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		d.OnModeAC(func(r *demod.ModeACReply) { n++ })
		d.Process(synth.AppendUC8(nil, iq), func(*modes.Frame) {})
		if n > 0 {
			t.Errorf("%d false replies in %s", n, name)
		}
	}
}
