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
		effort            demod.Effort
		rate, offset, snr float64
		atLeast           float64
	}{
		{demod.EffortFast, 2.4e6, centred, 8, 76},
		{demod.EffortFast, 2.4e6, centred, 9, 94.5},
		{demod.EffortFast, 2.4e6, centred, 10, 98},
		{demod.EffortDefault, 2.4e6, centred, 8, 86},
		{demod.EffortDefault, 2.4e6, centred, 9, 95.5},
		{demod.EffortDefault, 2.4e6, centred, 10, 98.5},
		{demod.EffortDefault, 2.4e6, centred, 12, 99.7},
		{demod.EffortMax, 2.4e6, centred, 8, 92},
		{demod.EffortMax, 2.4e6, centred, 9, 98},
		{demod.EffortDefault, 2.4e6, half, 12, 99},
		{demod.EffortDefault, 2.4e6, half, 14, 99.8},
		{demod.EffortDefault, 2.4e6, mega, 12, 95},
		{demod.EffortDefault, 2.4e6, mega, 20, 99.7},
		{demod.EffortDefault, 2.0e6, centred, 10, 93},
		{demod.EffortDefault, 2.0e6, centred, 12, 98},
		{demod.EffortDefault, 2.0e6, centred, 20, 99.7},
		{demod.EffortMax, 2.0e6, centred, 10, 95},
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

// Two replies over each other, 20 and 14 dB: the strong one and, with the
// strong one taken away, the weak one.
func TestYieldOverlap(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand pairs")
	}
	rec := synth.Scenario{Messages: 1000, SNR: 20, Overlap: true, OverlapDB: 6, Seed: 77}.Make()
	iq := synth.AppendUC8(nil, rec.IQ)
	found := map[string]bool{}
	for _, f := range frames(t, demod.Config{Effort: demod.EffortMax}, iq, nil) {
		found[string(f.Bytes())] = true
	}
	var n [2]int
	for _, s := range rec.Sent {
		if found[string(s.Frame)] {
			if s.Weak {
				n[1]++
			} else {
				n[0]++
			}
		}
	}
	if n[0] < 990 || n[1] < 940 {
		t.Errorf("%d of 1000 strong and %d weak ones found", n[0], n[1])
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
