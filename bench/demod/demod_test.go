package demod

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"signalbox.example/internal/vectors"
	"signalbox.example/modes"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/synth"
)

func peer(t testing.TB) string {
	t.Helper()
	p, err := exec.LookPath("dump1090-mutability")
	if err != nil {
		t.Skip("dump1090-mutability is not installed")
	}
	return p
}

func ours(t testing.TB, c demod.Config, iq []byte) (out [][]byte) {
	t.Helper()
	d, err := demod.New(c)
	if err != nil {
		t.Fatal(err)
	}
	emit := func(f *modes.Frame) { out = append(out, slices.Clone(f.Bytes())) }
	d.Process(iq, emit)
	d.Flush(emit)
	return out
}

// The adapter gets right answers: on strong signals both find every frame.
func TestPeer(t *testing.T) {
	program := peer(t)
	rec := synth.Scenario{Messages: 100, SNR: 26, Seed: 1}.Make()
	iq := synth.AppendUC8(nil, rec.IQ)
	file := filepath.Join(t.TempDir(), "iq")
	if err := os.WriteFile(file, iq, 0o600); err != nil {
		t.Fatal(err)
	}
	theirs, _, err := dump1090(program, file)
	if err != nil {
		t.Fatal(err)
	}
	mine := ours(t, demod.Config{}, iq)
	for _, s := range rec.Sent {
		in := func(list [][]byte) bool {
			return slices.ContainsFunc(list, func(f []byte) bool { return string(f) == string(s.Frame) })
		}
		if !in(mine) {
			t.Errorf("%x: not found by us", s.Frame)
		}
		if !in(theirs) && len(theirs) < 97 {
			t.Errorf("%x: not found by dump1090", s.Frame)
		}
	}
}

// input returns UC8 samples at 2.4 Msps of the benchmark's three kinds.
func input(b *testing.B, kind string) []byte {
	b.Helper()
	switch kind {
	case "noise":
		air := synth.NewAir(2.4e6, 12_000_000)
		air.Noise(rand.New(rand.NewPCG(1, 2)), synth.NoiseLSB/128.0)
		return synth.AppendUC8(nil, air.IQ)
	case "mid": // 14 dB, 2,800 messages a second
		return synth.AppendUC8(nil, synth.Scenario{Messages: 12_000, SNR: 14, Seed: 3}.Make().IQ)
	}
	// dense: a real recording of 2,000 messages a second over and over,
	// brought from 2.0 to 2.4 Msps.
	return upsample(slices.Repeat(vectors.Read(b, "modes/modes1.bin"), 30))
}

// upsample makes six samples of five, by cubic interpolation.
func upsample(src []byte) []byte {
	n := len(src) / 2
	at := func(i, c int) float64 { return float64(src[2*min(max(i, 0), n-1)+c]) }
	dst := make([]byte, 0, len(src)*6/5)
	for k := range n * 6 / 5 {
		i, f := k*5/6, float64(k*5%6)/6
		for c := range 2 {
			a, b, d, e := at(i-1, c), at(i, c), at(i+1, c), at(i+2, c)
			v := b + f*(d-a)/2 + f*f*(a-2.5*b+2*d-e/2) + f*f*f*(1.5*(b-d)+(e-a)/2)
			dst = append(dst, byte(min(max(v+0.5, 0), 255)))
		}
	}
	return dst
}

// BenchmarkDemod runs each effort and the peer on the same samples. The
// metric is how many times faster than real time (2.4 Msps) one core is.
func BenchmarkDemod(b *testing.B) {
	for _, kind := range []string{"noise", "dense", "mid"} {
		iq := input(b, kind)
		seconds := float64(len(iq)/2) / 2.4e6
		for _, effort := range []demod.Effort{demod.EffortFast, demod.EffortDefault, demod.EffortMax} {
			b.Run("in="+kind+"/impl=signalbox/effort="+effort.String(), func(b *testing.B) {
				d, err := demod.New(demod.Config{Effort: effort})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				before := cpuTime()
				for b.Loop() {
					d.Process(iq, func(*modes.Frame) {})
				}
				used := (cpuTime() - before).Seconds() / float64(b.N)
				b.ReportMetric(seconds/used, "x-realtime")
				b.ReportMetric(float64(len(iq)/2)/used/1e6, "Msamples/s")
			})
		}
		b.Run("in="+kind+"/impl=dump1090-mutability", func(b *testing.B) {
			program := peer(b)
			file := filepath.Join(b.TempDir(), "iq")
			if err := os.WriteFile(file, iq, 0o600); err != nil {
				b.Fatal(err)
			}
			used := 0.0
			for b.Loop() {
				_, cpu, err := dump1090(program, file)
				if err != nil {
					b.Fatal(err)
				}
				used += cpu.Seconds()
			}
			used /= float64(b.N)
			b.ReportMetric(seconds/used, "x-realtime")
			b.ReportMetric(float64(len(iq)/2)/used/1e6, "Msamples/s")
		})
	}
}

// BenchmarkWorkers: the same samples by one and by two goroutines, wall time.
func BenchmarkWorkers(b *testing.B) {
	iq := input(b, "mid")
	for _, workers := range []int{1, 2} {
		b.Run("workers="+strconv.Itoa(workers), func(b *testing.B) {
			d, err := demod.New(demod.Config{Effort: demod.EffortMax, Workers: workers})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				d.Process(iq, func(*modes.Frame) {})
			}
			b.ReportMetric(float64(len(iq)/2)/2.4e6/(b.Elapsed().Seconds()/float64(b.N)), "x-realtime")
		})
	}
}
