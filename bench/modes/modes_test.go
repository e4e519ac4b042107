package modes

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"signalbox.example/internal/vectors"
	"signalbox.example/modes"
	"signalbox.example/modes/demod"
)

func needPeer(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(Peer); err != nil {
		t.Skip(Peer + " is not installed")
	}
}

func file(t testing.TB, iq []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "iq")
	if err := os.WriteFile(path, iq, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func distinct(frames []modes.Frame, sent []modes.Frame) (found, other int) {
	want := map[[14]byte]bool{}
	for i := range sent {
		want[sent[i].Data] = true
	}
	seen := map[[14]byte]bool{}
	for i := range frames {
		if d := frames[i].Data; !seen[d] {
			seen[d] = true
			if want[d] {
				found++
			} else {
				other++
			}
		}
	}
	return
}

// TestAdapters: both find strong squitters, and nothing else.
func TestAdapters(t *testing.T) {
	iq, sent := Squitters(200, 20)
	ours, _, err := Ours(iq, demod.EffortDefault, demod.RepairOne)
	if err != nil {
		t.Fatal(err)
	}
	if found, other := distinct(ours, sent); found < 198 || other > 0 {
		t.Errorf("we found %d of 200 and %d others", found, other)
	}
	needPeer(t)
	theirs, _, err := Theirs(file(t, iq))
	if err != nil {
		t.Fatal(err)
	}
	if found, other := distinct(theirs, sent); found < 190 || other > 0 {
		t.Errorf("they found %d of 200 and %d others", found, other)
	}
}

// TestTextAdapters: both count every message.
func TestTextAdapters(t *testing.T) {
	text, n := Text(20)
	if got, _ := OursText(text); got != uint64(n) {
		t.Errorf("we count %d of %d", got, n)
	}
	needPeer(t)
	if got, _, err := TheirsText(text, uint64(n), t.TempDir()); err != nil || got != uint64(n) {
		t.Errorf("they count %d of %d, %v", got, n, err)
	}
}

func TestResample(t *testing.T) {
	flat := make([]byte, 2000)
	for i := range flat {
		flat[i] = byte(100 + i%2*50)
	}
	out := Resample(flat)
	if len(out) != 2400 {
		t.Fatalf("%d bytes", len(out))
	}
	for i, v := range out {
		if v != flat[i%2] {
			t.Fatalf("byte %d is %d", i, v)
		}
	}
}

// BenchmarkIQ reports millions of samples a second of processor time.
func BenchmarkIQ(b *testing.B) {
	const samples = 12_000_000
	repeat := func(iq []byte) (out []byte) {
		for len(out) < 2*samples {
			out = append(out, iq...)
		}
		return
	}
	for _, in := range []struct {
		name string
		iq   func(b *testing.B) []byte
	}{
		{"noise", func(*testing.B) []byte { return repeat(Noise(2_000_000)) }},
		{"dense", func(b *testing.B) []byte { return repeat(Resample(vectors.Read(b, "modes/modes1.bin"))) }},
		{"mid", func(*testing.B) []byte { iq, _ := Squitters(3000, 14); return repeat(iq) }},
	} {
		b.Run("in="+in.name, func(b *testing.B) {
			iq := in.iq(b)
			report := func(b *testing.B, frames int, cpu time.Duration) {
				speed := float64(len(iq)/2) * float64(b.N) / cpu.Seconds()
				b.ReportMetric(speed/1e6, "Msamples/s")
				b.ReportMetric(speed/Rate, "x-realtime")
				b.ReportMetric(float64(frames), "frames")
			}
			for _, effort := range []demod.Effort{demod.EffortFast, demod.EffortDefault, demod.EffortMax} {
				b.Run("impl=signalbox/effort="+effort.String(), func(b *testing.B) {
					var cpu time.Duration
					n := 0
					for b.Loop() {
						f, c, err := Ours(iq, effort, demod.RepairSoft)
						if err != nil {
							b.Fatal(err)
						}
						cpu, n = cpu+c, len(f)
					}
					report(b, n, cpu)
				})
			}
			b.Run("impl="+Peer, func(b *testing.B) {
				needPeer(b)
				path := file(b, iq)
				var cpu time.Duration
				n := 0
				for b.Loop() {
					f, c, err := Theirs(path)
					if err != nil {
						b.Fatal(err)
					}
					cpu, n = cpu+c, len(f)
				}
				report(b, n, cpu)
			})
		})
	}
}

// BenchmarkText reports millions of messages a second of processor time, from
// AVR text to the aircraft table.
func BenchmarkText(b *testing.B) {
	text, n := Text(1000)
	for range 4 { // 16 times the same: some 220,000 messages
		text, n = append(text, text...), 2*n
	}
	b.Run("impl=signalbox", func(b *testing.B) {
		var cpu time.Duration
		for b.Loop() {
			got, c := OursText(text)
			if got != uint64(n) {
				b.Fatalf("%d of %d", got, n)
			}
			cpu += c
		}
		b.ReportMetric(float64(n)*float64(b.N)/cpu.Seconds()/1e6, "Mmessages/s")
	})
	b.Run("impl="+Peer, func(b *testing.B) {
		needPeer(b)
		var cpu time.Duration
		for b.Loop() {
			got, c, err := TheirsText(text, uint64(n), b.TempDir())
			if err != nil || got != uint64(n) {
				b.Fatalf("%d of %d, %v", got, n, err)
			}
			cpu += c
		}
		b.ReportMetric(float64(n)*float64(b.N)/cpu.Seconds()/1e6, "Mmessages/s")
	})
}
