package demod_test

import (
	"math/rand/v2"
	"testing"

	"signalbox.example/modes/demod"
	"signalbox.example/modes/synth"
)

// Least yields in per cent of 1,000 replies, on fixed seeds. The bounds leave
// the scatter of such a sample; bench/demod measures the curves themselves.
func TestYield(t *testing.T) {
	const centred, half, mega = 100e3, 500e3, 1e6
	for _, c := range []struct {
		effort             demod.Effort
		rate, offset, snr  float64
		atLeast            float64
		overlap, weakYield float64
	}{
		{demod.EffortFast, 2.4e6, centred, 8, 76, 0, 0},
		{demod.EffortFast, 2.4e6, centred, 9, 94.5, 0, 0},
		{demod.EffortFast, 2.4e6, centred, 10, 98, 0, 0},
		{demod.EffortDefault, 2.4e6, centred, 8, 86, 0, 0},
		{demod.EffortDefault, 2.4e6, centred, 9, 95.5, 0, 0},
		{demod.EffortDefault, 2.4e6, centred, 10, 98.5, 0, 0},
		{demod.EffortDefault, 2.4e6, centred, 12, 99.7, 0, 0},
		{demod.EffortMax, 2.4e6, centred, 8, 92, 0, 0},
		{demod.EffortMax, 2.4e6, centred, 9, 98, 0, 0},
		{demod.EffortDefault, 2.4e6, half, 12, 99, 0, 0},
		{demod.EffortDefault, 2.4e6, half, 14, 99.8, 0, 0},
		{demod.EffortDefault, 2.4e6, mega, 12, 95, 0, 0},
		{demod.EffortDefault, 2.4e6, mega, 20, 99.7, 0, 0},
		{demod.EffortDefault, 2.0e6, centred, 10, 93, 0, 0},
		{demod.EffortDefault, 2.0e6, centred, 12, 98, 0, 0},
		{demod.EffortDefault, 2.0e6, centred, 20, 99.7, 0, 0},
		{demod.EffortMax, 2.0e6, centred, 10, 95, 0, 0},
	} {
		if testing.Short() && c.effort != demod.EffortDefault {
			continue
		}
		rec := synth.Scenario{Rate: c.rate, Messages: 1000, SNR: c.snr, OffsetHz: c.offset, Seed: 1234}.Make()
		got := frames(t, demod.Config{Rate: int(c.rate), Effort: c.effort}, synth.AppendUC8(nil, rec.IQ), nil)
		right, wrong := score(rec, got)
		if p := float64(right) / 10; p < c.atLeast || wrong > 0 {
			t.Errorf("%v at %g Msps, %g dB, up to %g kHz off: %.1f %%, want %g; %d wrong", c.effort, c.rate/1e6, c.snr, c.offset/1e3, p, c.atLeast, wrong)
		}
		if testing.Short() {
			break
		}
	}
}

func TestNoFalseFramesInNoise(t *testing.T) {
	if testing.Short() {
		t.Skip("millions of samples")
	}
	const blocks = 20 // of a million samples
	rng := rand.New(rand.NewPCG(99, 99))
	var demods []*demod.Demodulator
	for _, e := range efforts {
		d, err := demod.New(demod.Config{Effort: e})
		if err != nil {
			t.Fatal(err)
		}
		demods = append(demods, d)
	}
	iq := make([]byte, 0, 2_000_000)
	for range blocks {
		air := synth.NewAir(2.4e6, 1_000_000)
		air.Noise(rng, synth.NoiseLSB/128.0)
		iq = synth.AppendUC8(iq[:0], air.IQ)
		for i, d := range demods {
			for f := range countFrames(d, iq) {
				t.Errorf("%v: false frame %s", efforts[i], f)
			}
		}
	}
}
