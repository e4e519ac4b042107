package demod_test

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.example/internal/need"
	"signalbox.example/modes"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/synth"
)

// Debian's dump1090-mutability as a second receiver of the same samples: in
// every row it must find no more frames than any of our efforts.
func TestIntegrationDump1090(t *testing.T) {
	need.Asked(t, "dump1090")
	program := need.Commands(t, "dump1090", "dump1090-mutability")[0]
	seed := uint64(20)
	for _, offset := range []float64{100e3, 500e3} {
		for _, snr := range []float64{9, 10, 12, 14, 17, 20} {
			seed++
			rec := synth.Scenario{Messages: 1000, SNR: snr, OffsetHz: offset, Seed: seed}.Make()
			iq := synth.AppendUC8(nil, rec.IQ)
			peer, peerWrong := score(rec, dump1090(t, program, iq))
			for _, effort := range efforts {
				ours, wrong := score(rec, frames(t, demod.Config{Effort: effort}, iq, nil))
				t.Logf("%4.0f kHz %4.1f dB: %v %d (%d wrong), dump1090 %d (%d wrong)", offset/1e3, snr, effort, ours, wrong, peer, peerWrong)
				if ours < peer {
					t.Errorf("up to %g kHz, %g dB: %v finds %d, dump1090 %d", offset/1e3, snr, effort, ours, peer)
				}
			}
		}
	}
}

// dump1090 returns the frames that dump1090-mutability finds in UC8 samples.
func dump1090(t testing.TB, program string, iq []byte) (out []modes.Frame) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "iq")
	if err := os.WriteFile(file, iq, 0o644); err != nil {
		t.Fatal(err)
	}
	raw, err := exec.Command(program, "--ifile", file, "--iformat", "UC8", "--raw", "--fix").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		h := strings.TrimSuffix(strings.TrimPrefix(string(bytes.TrimSpace(line)), "*"), ";")
		b, err := hex.DecodeString(h)
		if err != nil || len(b) != 7 && len(b) != 14 {
			continue
		}
		f := modes.Frame{Bits: uint8(8 * len(b))}
		copy(f.Data[:], b)
		out = append(out, f)
	}
	return out
}

// Twenty-four million samples of noise with fifty known addresses. The run of
// a hundred million is SIGNALBOX_NOISE=100 in the environment.
func TestIntegrationNoise(t *testing.T) {
	need.Asked(t, "noise")
	blocks := envInt(t, "SIGNALBOX_NOISE", 24)
	rng := rand.New(rand.NewPCG(uint64(blocks), 7))
	var demods []*demod.Demodulator
	for _, e := range efforts {
		filter := modes.NewAddressFilter(0)
		for range 50 {
			filter.AddKnown(rng.Uint32N(1 << 24))
		}
		d, err := demod.New(demod.Config{Effort: e, Filter: filter, Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		demods = append(demods, d)
	}
	air := synth.NewAir(2.4e6, 1_000_000)
	var iq []byte
	for range blocks {
		clear(air.IQ)
		air.Noise(rng, synth.NoiseLSB/128.0)
		iq = synth.AppendUC8(iq[:0], air.IQ)
		for i, d := range demods {
			for f := range countFrames(d, iq) {
				t.Errorf("%v: false frame %s", efforts[i], f)
			}
		}
	}
	t.Logf("%d million samples", blocks)
}

// Frames that nobody sent, out of many accepted, from 7 to 20 dB, in three
// ranges of carrier offset, of every kind, and over each other: at most one in
// 50,000. The number of messages of each of 58 recordings is SIGNALBOX_SIGNALS
// in the environment.
func TestIntegrationFalseFrames(t *testing.T) {
	need.Asked(t, "falseframes")
	messages := envInt(t, "SIGNALBOX_SIGNALS", 300)
	var list []synth.Scenario
	for _, rate := range []float64{2.4e6, 2.0e6} {
		for _, offset := range []float64{100e3, 500e3, 1e6} {
			for _, snr := range []float64{7, 8, 9, 10, 12, 20} {
				list = append(list, synth.Scenario{Rate: rate, OffsetHz: offset, SNR: snr})
			}
		}
		for _, kind := range []synth.Kind{synth.AllCalls, synth.ShortReplies, synth.LongReplies} {
			for _, snr := range []float64{8, 10, 14} {
				list = append(list, synth.Scenario{Rate: rate, Kind: kind, SNR: snr})
			}
		}
		for _, snr := range []float64{14, 20} {
			list = append(list, synth.Scenario{Rate: rate, Overlap: true, OverlapDB: 6, SNR: snr})
		}
	}
	accepted, wrong := 0, 0
	for i, s := range list {
		s.Messages, s.Seed = messages, 500+uint64(i)
		rec := s.Make()
		iq := synth.AppendUC8(nil, rec.IQ)
		for _, effort := range []demod.Effort{demod.EffortDefault, demod.EffortMax} {
			got := frames(t, demod.Config{Rate: int(s.Rate), Effort: effort, Workers: 2}, iq, nil)
			_, w := score(rec, got)
			if w > 0 {
				t.Logf("%g Msps, %g kHz, %g dB, kind %d, overlap %v, %v: %d of %d wrong",
					s.Rate/1e6, s.OffsetHz/1e3, s.SNR, s.Kind, s.Overlap, effort, w, len(got))
			}
			accepted += len(got)
			wrong += w
		}
	}
	t.Logf("%d of %d accepted frames were not sent", wrong, accepted)
	if allowed := max(2, accepted/50_000); wrong > allowed {
		t.Errorf("%d of %d accepted frames were not sent, want %d at most", wrong, accepted, allowed)
	}
}
