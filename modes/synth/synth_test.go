package synth_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"signalbox.example/modes"
	"signalbox.example/modes/synth"
)

// Frames that were really on the air or stand in the specification's
// examples, put together again from their parts.
func TestFrames(t *testing.T) {
	es := synth.Squitter(0x406b90, 5, [7]byte{0x20, 0x15, 0xa6, 0x78, 0xd4, 0xd2, 0x20})
	ac := synth.AllCall(0x4d2023, 5, 0)
	ic := synth.AllCall(0x4b1a2c, 5, 0x13) // SI 3
	sr := synth.ShortReply(0x4b1a2c, 4, 0x1838)
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{es[:], "8d406b902015a678d4d220aa4bda"},
		{ac[:], "5d4d20237a55a6"},
		{ic[:], "5d4b1a2c1be772"},
		{sr[:], "200018385a9977"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
	lr := synth.LongReply(0x4b1a2c, 20, 0x1838, [7]byte{1, 2, 3, 4, 5, 6, 7})
	if r := modes.Remainder(lr[:]); r != 0x4b1a2c || lr[0]>>3 != 20 || lr[4] != 1 || lr[10] != 7 {
		t.Errorf("long reply %x", lr)
	}
}

// The waveform of Annex 10 volume IV 3.1.2.2: pulses where they belong, at
// the amplitude asked for, and nothing between them.
func TestWaveform(t *testing.T) {
	const rate, amplitude = 20e6, 0.5
	f := synth.AllCall(0x4d2023, 5, 0)
	for _, offset := range []float64{0, 500e3} {
		air := synth.NewAir(rate, 1600)
		// A wide filter leaves the pulses their shape.
		air.Add(synth.Signal{Frame: f[:], Start: 3e-6, Amplitude: amplitude, Phase: 1, OffsetHz: offset, BandwidthHz: 8e6})
		on := map[int]bool{0: true, 2: true, 7: true, 9: true}
		for i := range 56 {
			on[16+2*i+1-int(f[i/8]>>(7-i%8)&1)] = true
		}
		for c := -4; c < 132; c++ {
			v := air.IQ[int(math.Round((3e-6+(float64(c)+0.5)*0.5e-6)*rate))]
			got := math.Hypot(float64(real(v)), float64(imag(v)))
			want := 0.0
			if on[c] {
				want = amplitude
			}
			if math.Abs(got-want) > 0.05 {
				t.Errorf("offset %g: chip %d has amplitude %.3f, want %.1f", offset, c, got, want)
			}
		}
	}
}

func TestModeAC(t *testing.T) {
	const rate = 20e6
	air := synth.NewAir(rate, 800)
	air.AddModeAC(synth.Signal{Start: 2e-6, Amplitude: 0.5, BandwidthHz: 8e6}, 0x0001|0x1000, true) // D4 and C1
	level := func(us float64) float64 {
		v := air.IQ[int(math.Round((2+us)*rate/1e6))]
		return math.Hypot(float64(real(v)), float64(imag(v)))
	}
	for slot := range 19 {
		want := 0.0
		if slot == 0 || slot == 1 || slot == 13 || slot == 14 || slot == 17 {
			want = 0.5
		}
		if got := level(0.225 + 1.45*float64(slot)); math.Abs(got-want) > 0.06 {
			t.Errorf("slot %d: %.2f, want %.1f", slot, got, want)
		}
	}
}

// Carrier offset, droop and echo as they were asked for.
func TestImpairments(t *testing.T) {
	f := synth.Squitter(0x4b1a2c, 5, [7]byte{})
	air := synth.NewAir(2.4e6, 400)
	air.Add(synth.Signal{Frame: f[:], Start: 10e-6, Amplitude: 0.5, OffsetHz: 200e3, DroopDB: 6})
	energy := func(from, to int) (e float64) {
		for _, v := range air.IQ[from:to] {
			e += float64(real(v))*float64(real(v)) + float64(imag(v))*float64(imag(v))
		}
		return
	}
	// The first message bits are 1000 1: their pulses are at 8, 9.5, 10.5, 11.5
	// and 12 us after the start.
	at := func(us float64) complex128 { return complex128(air.IQ[int(math.Round((10+us+0.25)*2.4))]) }
	turn := at(10.5) * complex(real(at(9.5)), -imag(at(9.5)))
	if turns := math.Atan2(imag(turn), real(turn)) / (2 * math.Pi); math.Abs(turns-0.2) > 0.03 {
		t.Errorf("the carrier turns by %.3f in a microsecond, want 0.2", turns)
	}
	// 6 dB over 120 us: 5 dB from the first 20 us of data to the last.
	if db := 10 * math.Log10(energy(44, 92)/energy(264, 312)); math.Abs(db-4.6) > 0.6 {
		t.Errorf("droop %.2f dB", db)
	}
	air = synth.NewAir(2.4e6, 1000)
	air.Noise(rand.New(rand.NewPCG(1, 1)), 0.1)
	air.Offset(complex(0.2, -0.1))
	air.Imbalance(6, 0)
	var mean complex128
	var i2, q2 float64
	for _, v := range air.IQ {
		mean += complex128(v) / 1000
		i2 += math.Pow(float64(real(v))-0.2, 2)
		q2 += math.Pow(float64(imag(v))+0.2, 2)
	}
	if math.Abs(real(mean)-0.2) > 0.02 || math.Abs(imag(mean)+0.2) > 0.03 || math.Abs(math.Sqrt(q2/i2)-2) > 0.2 {
		t.Errorf("mean %.3f, Q over I %.2f", mean, math.Sqrt(q2/i2))
	}
}

func TestQuantise(t *testing.T) {
	iq := []complex64{0, complex(0.5, -0.5), complex(2, -2)}
	for _, c := range []struct {
		got  []byte
		want string
	}{
		{synth.AppendUC8(nil, iq), "7f7fbf3fff00"},
		{synth.AppendCS8(nil, iq), "000040c07f80"},
		{synth.AppendSC16(nil, iq), "00000000004000c0ff7f0080"},
		{synth.AppendSC16Q11(nil, iq), "00000000000400fcff0700f8"},
		{synth.AppendCF32(nil, iq[1:2]), "0000003f000000bf"},
	} {
		if got := hex.EncodeToString(c.got); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

func TestScenario(t *testing.T) {
	s := synth.Scenario{Messages: 30, SNR: 15, Seed: 4, Overlap: true, OverlapDB: 3, MultipathDB: 10, Drop: 2000}
	a, b := s.Make(), s.Make()
	if !slices.Equal(a.IQ, b.IQ) {
		t.Error("the same seed gives other samples")
	}
	s.Seed++
	if c := s.Make(); slices.Equal(a.IQ[:100], c.IQ[:100]) {
		t.Error("another seed gives the same samples")
	}
	if len(a.Sent) != 60 {
		t.Errorf("%d replies sent", len(a.Sent))
	}
	damaged := 0
	for _, r := range a.Sent {
		if r.Damaged {
			damaged++
		}
	}
	if damaged < 3 || damaged > 40 {
		t.Errorf("%d of 60 replies damaged by lost buffers", damaged)
	}
	// Replies do not meet unless asked to, and noise is as strong as it says.
	plain := synth.Scenario{Messages: 50, SNR: 20, Seed: 1}.Make()
	for i := 1; i < len(plain.Sent); i++ {
		if d := plain.Sent[i].Start - plain.Sent[i-1].Start; d < 249e-6 || d > 451e-6 {
			t.Errorf("replies %g us apart", d*1e6)
		}
	}
	var p float64
	for _, v := range plain.IQ[:200] {
		p += float64(real(v))*float64(real(v)) + float64(imag(v))*float64(imag(v))
	}
	if rms := math.Sqrt(p/400) * 128; math.Abs(rms-synth.NoiseLSB) > 0.8 {
		t.Errorf("noise of %.2f steps", rms)
	}
	for _, kind := range []synth.Kind{synth.AllCalls, synth.KnownAllCalls, synth.ShortReplies, synth.LongReplies} {
		rec := synth.Scenario{Messages: 20, SNR: 20, Kind: kind, Seed: 1, Addresses: 3}.Make()
		n := 0
		for _, r := range rec.Sent {
			if !r.Seed {
				n++
			}
		}
		if n != 20 {
			t.Errorf("kind %d: %d replies", kind, n)
		}
	}
}

func ExampleScenario() {
	rec := synth.Scenario{Messages: 3, SNR: 12, Seed: 1}.Make()
	iq := synth.AppendUC8(nil, rec.IQ)
	fmt.Println(len(rec.Sent), "replies in", len(iq)/2, "samples; the first is a DF", rec.Sent[0].Frame[0]>>3)
	same := synth.AppendUC8(nil, synth.Scenario{Messages: 3, SNR: 12, Seed: 1}.Make().IQ)
	fmt.Println("reproducible:", bytes.Equal(iq, same))
	// Output:
	// 3 replies in 3206 samples; the first is a DF 17
	// reproducible: true
}
