package demod_test

import (
	"math/rand/v2"
	"testing"

	"signalbox.example/internal/vectors"
	"signalbox.example/modes"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/synth"
)

// Noise alone, a real recording of dense traffic (1,900 messages a second),
// and synthetic squitters at 14 dB (2,800 a second).
func BenchmarkDemod(b *testing.B) {
	air := synth.NewAir(2.4e6, 2_000_000)
	air.Noise(rand.New(rand.NewPCG(1, 2)), synth.NoiseLSB/128.0)
	inputs := []struct {
		name string
		rate int
		iq   func(b *testing.B) []byte
	}{
		{"noise", 2_400_000, func(*testing.B) []byte { return synth.AppendUC8(nil, air.IQ) }},
		{"dense", 2_000_000, func(b *testing.B) []byte { return vectors.Read(b, "modes/modes1.bin") }},
		{"mid", 2_400_000, func(*testing.B) []byte {
			return synth.AppendUC8(nil, synth.Scenario{Messages: 2000, SNR: 14, Seed: 3}.Make().IQ)
		}},
	}
	for _, in := range inputs {
		b.Run("in="+in.name, func(b *testing.B) {
			iq := in.iq(b)
			for _, effort := range []demod.Effort{demod.EffortFast, demod.EffortDefault, demod.EffortMax} {
				b.Run("effort="+effort.String(), func(b *testing.B) {
					d, err := demod.New(demod.Config{Rate: in.rate, Effort: effort})
					if err != nil {
						b.Fatal(err)
					}
					d.Process(iq, func(*modes.Frame) {})
					b.ReportAllocs()
					for b.Loop() {
						d.Process(iq, func(*modes.Frame) {})
					}
					perSecond := float64(len(iq)/2) * float64(b.N) / b.Elapsed().Seconds()
					b.ReportMetric(perSecond/1e6, "Msamples/s")
					b.ReportMetric(perSecond/2.4e6, "x-realtime")
				})
			}
		})
	}
}
