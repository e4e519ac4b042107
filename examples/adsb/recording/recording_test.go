package recording

import (
	"bytes"
	"encoding/hex"
	"flag"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"

	"signalbox.example/modes"
	"signalbox.example/modes/synth"
)

var update = flag.Bool("update", false, "write recording.uc8")

// frames returns the frames of frames.txt.
func frames(t *testing.T) (out []modes.Frame) {
	for l := range strings.Lines(Frames) {
		if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
			continue
		}
		f, err := modes.ParseHex(l)
		if err != nil {
			t.Fatal(l, err)
		}
		out = append(out, f)
	}
	return
}

// generate puts every frame on the air twice.
func generate(t *testing.T) []byte {
	rng := rand.New(rand.NewPCG(1090, 2))
	list := frames(t)
	strength := map[uint32]float64{} // dB of full scale, one for each aircraft
	offset := map[uint32]float64{}
	var signals []synth.Signal
	now := 100e-6
	for range 2 {
		for i := range list {
			var m modes.Message
			if err := modes.Decode(&list[i], &m); err != nil {
				t.Fatal(&list[i], err)
			}
			a := m.Address.Value
			if _, ok := strength[a]; !ok {
				strength[a] = -14 + 10*rng.Float64()
				offset[a] = 200e3 * (rng.Float64() - 0.5)
			}
			signals = append(signals, synth.Signal{Frame: list[i].Bytes(), Start: now, Amplitude: math.Pow(10, strength[a]/20),
				Phase: 2 * math.Pi * rng.Float64(), OffsetHz: offset[a]})
			now += 250e-6 + 350e-6*rng.Float64()
		}
	}
	air := synth.NewAir(Rate, int(now*Rate))
	for _, s := range signals {
		air.Add(s)
	}
	air.Noise(rng, 3.0/128)
	return synth.AppendUC8(nil, air.IQ)
}

func TestRecordingIsReproducible(t *testing.T) {
	got := generate(t)
	if *update {
		if err := os.WriteFile("recording.uc8", got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors round otherwise")
	}
	if !bytes.Equal(got, UC8) {
		t.Error("recording.uc8 is not what the generator makes; see the package comment")
	}
	if len(UC8) >= 300_000 {
		t.Errorf("%d bytes", len(UC8))
	}
}

func TestFramesAreGood(t *testing.T) {
	var filter modes.AddressFilter
	list := frames(t)
	for i := range list {
		filter.Learn(&list[i], 0)
	}
	for i := range list {
		if r := filter.Match(&list[i], 0); r != modes.Accepted {
			t.Errorf("%s: %v", hex.EncodeToString(list[i].Bytes()), r)
		}
	}
}
