package demod_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"signalbox.example/modes"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/synth"
)

// frames demodulates iq in pieces of the lengths that next returns.
func frames(t testing.TB, c demod.Config, iq []byte, next func() int) []modes.Frame {
	t.Helper()
	d, err := demod.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var out []modes.Frame
	emit := func(f *modes.Frame) { out = append(out, *f) }
	for len(iq) > 0 {
		n := len(iq)
		if next != nil {
			n = min(n, next())
		}
		d.Process(iq[:n], emit)
		iq = iq[n:]
	}
	d.Flush(emit)
	return out
}

// score counts the distinct sent frames among those found, and the found
// frames that nobody sent.
func score(rec synth.Recording, found []modes.Frame) (right, wrong int) {
	sent := map[string]bool{}
	for _, s := range rec.Sent {
		sent[string(s.Frame)] = true
	}
	seen := map[string]bool{}
	for i := range found {
		b := string(found[i].Bytes())
		if !sent[b] {
			wrong++
		} else if !seen[b] {
			seen[b] = true
			right++
		}
	}
	return right, wrong
}

var efforts = []demod.Effort{demod.EffortFast, demod.EffortDefault, demod.EffortMax}

func TestChunksAndWorkersDoNotMatter(t *testing.T) {
	messages, rates := 120, []int{2_400_000, 2_000_000, 2_560_000}
	if testing.Short() {
		messages, rates = 20, rates[:1]
	}
	rec := synth.Scenario{Messages: messages, SNR: 11, Seed: 5, Overlap: true, OverlapDB: 6}.Make()
	iq := synth.AppendUC8(nil, rec.IQ)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, effort := range efforts {
		for _, rate := range rates {
			c := demod.Config{Effort: effort, Rate: rate, ModeAC: true}
			want := frames(t, c, iq, nil)
			if rate == 2_400_000 && len(want) < messages/2 {
				t.Errorf("%v: only %d frames", effort, len(want))
			}
			for name, next := range map[string]func() int{
				"single bytes": func() int { return 1 },
				"random":       func() int { return rng.IntN(100_000) },
			} {
				if got := frames(t, c, iq, next); !slices.Equal(got, want) {
					t.Errorf("%v at %d: %s: %d frames, in one piece %d", effort, rate, name, len(got), len(want))
				}
			}
			for _, w := range []int{2, 3} {
				c.Workers = w
				if got := frames(t, c, iq, func() int { return 50_000 }); !slices.Equal(got, want) {
					t.Errorf("%v at %d: %d workers: %d frames, with one %d", effort, rate, w, len(got), len(want))
				}
			}
		}
	}
}

func TestFormatsAgree(t *testing.T) {
	rec := synth.Scenario{Messages: 100, SNR: 16, Seed: 9}.Make()
	for format, write := range map[demod.Format]func([]byte, []complex64) []byte{
		demod.UC8: synth.AppendUC8, demod.CS8: synth.AppendCS8, demod.SC16: synth.AppendSC16,
		demod.SC16Q11: synth.AppendSC16Q11, demod.CF32: synth.AppendCF32,
	} {
		got := frames(t, demod.Config{Format: format}, write(nil, rec.IQ), nil)
		if right, wrong := score(rec, got); right != 100 || wrong != 0 {
			t.Errorf("%v: %d of 100 frames, %d wrong", format, right, wrong)
		}
		back, err := demod.ParseFormat(format.String())
		if back != format || err != nil {
			t.Errorf("ParseFormat(%v) = %v, %v", format, back, err)
		}
	}
}

// Time and level of every frame at good signal, against what was sent.
func TestTimeAndSignal(t *testing.T) {
	for _, rate := range []float64{2.0e6, 2.4e6} {
		rec := synth.Scenario{Rate: rate, Messages: 200, SNR: 20, Seed: 3, OffsetHz: 300e3}.Make()
		got := frames(t, demod.Config{Rate: int(rate)}, synth.AppendUC8(nil, rec.IQ), nil)
		level := 10*math.Log10(2*math.Pow(synth.NoiseLSB/128.0, 2)) + 20
		matched := 0
		var sum float64
		for _, f := range got {
			for _, s := range rec.Sent {
				if string(s.Frame) != string(f.Bytes()) {
					continue
				}
				matched++
				late := float64(f.Time12) - s.Start*12e6
				sum += late
				if math.Abs(late) > 3 { // a quarter of a microsecond
					t.Errorf("%g: frame at %.2f ticks reported %.2f late", rate, s.Start*12e6, late)
				}
				if math.Abs(float64(f.Signal)-level) > 1.2 {
					t.Errorf("%g: signal %.1f dBFS, sent %.1f", rate, f.Signal, level)
				}
			}
		}
		if matched < 199 {
			t.Errorf("%g: %d of 200 frames", rate, matched)
		}
		if mean := sum / float64(matched); math.Abs(mean) > 0.5 {
			t.Errorf("%g: frames are %.2f ticks late on average", rate, mean)
		}
	}
}

// Bug 19: receivers lose what is in the last partial buffer, and frames that
// lie across the end of one.
func TestTailAndBorders(t *testing.T) {
	me := [7]byte{0x58, 1, 2, 3, 4, 5, 6}
	f := synth.Squitter(0x4b1a2c, 5, me)
	rng := rand.New(rand.NewPCG(4, 4))
	for _, effort := range efforts {
		for _, at := range []int{0, 20, 16384 - 300, 16384 - 150, 16384 - 1, 16384, 16384 + 1, 2 * 16384, 40000 - 292} {
			air := synth.NewAir(2.4e6, 40000)
			air.Add(synth.Signal{Frame: f[:], Start: float64(at) / 2.4e6, Amplitude: 0.5})
			air.Noise(rng, 0.02)
			got := frames(t, demod.Config{Effort: effort}, synth.AppendUC8(nil, air.IQ), nil)
			if len(got) != 1 || [14]byte(got[0].Data) != f {
				t.Errorf("%v: a frame at sample %d of 40000: got %d frames", effort, at, len(got))
			}
		}
	}
}

// Bug 19 again: wherever the stream ends, also a little behind the border of a
// block, the last frame is found.
func TestTailOfAnyLength(t *testing.T) {
	long := synth.Squitter(0x4b1a2c, 5, [7]byte{0x58, 1, 2, 3, 4, 5, 6})
	short := synth.AllCall(0x4b1a2c, 5, 0)
	const border = 16384 // of blocks of all efforts
	for _, effort := range efforts {
		for _, rate := range []int{2_000_000, 2_400_000} {
			for _, f := range [][]byte{long[:], short[:]} {
				lost := 0
				for total := border - 100; total < border+900; total += 23 {
					length := (8+8*len(f))*rate/1_000_000 + 6
					air := synth.NewAir(float64(rate), total)
					air.Add(synth.Signal{Frame: f, Start: float64(total-length) / float64(rate), Amplitude: 0.5})
					air.Noise(rand.New(rand.NewPCG(uint64(total), 4)), 0.02)
					iq := synth.AppendUC8(nil, air.IQ)
					found := 0
					for _, g := range frames(t, demod.Config{Effort: effort, Rate: rate, Workers: 1 + total%3}, iq, nil) {
						if string(g.Bytes()) == string(f) {
							found++
						}
					}
					if found != 1 {
						lost++
					}
				}
				if lost > 0 {
					t.Errorf("%v, %d samples a second, %d bytes: lost at the end of %d streams of 44", effort, rate, len(f), lost)
				}
			}
		}
	}
}

func TestClockGoesOnAfterFlush(t *testing.T) {
	f := synth.Squitter(0x4b1a2c, 5, [7]byte{0x58, 1, 2, 3, 4, 5, 6})
	air := synth.NewAir(2.4e6, 10000)
	air.Add(synth.Signal{Frame: f[:], Start: 1e-3, Amplitude: 0.5})
	air.Noise(rand.New(rand.NewPCG(1, 2)), 0.02)
	iq := synth.AppendUC8(nil, air.IQ)
	d, err := demod.New(demod.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var times []uint64
	for range 3 {
		emit := func(f *modes.Frame) { times = append(times, f.Time12) }
		d.Process(iq, emit)
		d.Flush(emit)
	}
	if len(times) != 3 || times[1]-times[0] != 50000 || times[2]-times[1] != 50000 {
		t.Errorf("times %v, want steps of 50000 ticks", times)
	}
	if s := d.Stats(); s.Samples != 30000 || s.Frames != 3 {
		t.Errorf("stats %+v", s)
	}
}

func TestFrames(t *testing.T) {
	rec := synth.Scenario{Messages: 20, SNR: 20, Seed: 2}.Make()
	iq := synth.AppendSC16(nil, rec.IQ)
	boom := errors.New("boom")
	for _, c := range []struct {
		name string
		r    io.Reader
		err  error
	}{
		{"whole", bytes.NewReader(iq), nil},
		{"one byte at a time", iotest.OneByteReader(bytes.NewReader(iq)), nil},
		{"truncated", bytes.NewReader(iq[:len(iq)-1]), demod.ErrTruncated},
		{"read error", io.MultiReader(bytes.NewReader(iq), iotest.ErrReader(boom)), boom},
		{"no progress", io.MultiReader(bytes.NewReader(iq), stuck{}), io.ErrNoProgress},
	} {
		d, err := demod.New(demod.Config{Format: demod.SC16})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		var last error
		for f, err := range d.Frames(c.r) {
			if err != nil {
				last = err
				continue
			}
			if f.Remainder() == 0 {
				n++
			}
		}
		if n != 20 || !errors.Is(last, c.err) {
			t.Errorf("%s: %d frames and error %v, want 20 and %v", c.name, n, last, c.err)
		}
	}
	d, _ := demod.New(demod.Config{Format: demod.SC16})
	for range d.Frames(bytes.NewReader(iq)) {
		break // must not call the body again
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		c   demod.Config
		err error
	}{
		{demod.Config{Format: 9}, demod.ErrFormat},
		{demod.Config{Rate: 1_999_999}, demod.ErrRate},
		{demod.Config{Rate: -1}, demod.ErrRate},
		{demod.Config{Rate: 64_000_001}, demod.ErrRate},
		{demod.Config{Repair: 9}, demod.ErrConfig},
		{demod.Config{Effort: 9}, demod.ErrConfig},
		{demod.Config{Workers: -1}, demod.ErrConfig},
	} {
		if _, err := demod.New(c.c); !errors.Is(err, c.err) {
			t.Errorf("%+v: error %v, want %v", c.c, err, c.err)
		}
	}
}

// Replies with address parity are believed only for addresses heard lately;
// addresses may be given beforehand.
func TestAddressParityNeedsKnownAddress(t *testing.T) {
	air := synth.NewAir(2.4e6, 24000)
	f := synth.ShortReply(0x4b1a2c, 4, 0x0001838)
	air.Add(synth.Signal{Frame: f[:], Start: 2e-3, Amplitude: 0.5})
	air.Noise(rand.New(rand.NewPCG(1, 2)), 0.02)
	iq := synth.AppendUC8(nil, air.IQ)
	if got := frames(t, demod.Config{}, iq, nil); len(got) != 0 {
		t.Errorf("unknown address: %d frames", len(got))
	}
	filter := modes.NewAddressFilter(0)
	filter.AddKnown(0x4b1a2c)
	got := frames(t, demod.Config{Filter: filter}, iq, nil)
	if len(got) != 1 || string(got[0].Bytes()) != string(f[:]) {
		t.Errorf("known address: %v", got)
	}
}

// A bug of others: what follows a broken sample is lost, or worse.
func TestBrokenFloats(t *testing.T) {
	rec := synth.Scenario{Messages: 20, SNR: 20, Seed: 2}.Make()
	for i, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), -math.MaxFloat32} {
		rec.IQ[1000*i] = complex(v, 0)
		rec.IQ[1000*i+500] = complex(0, v)
	}
	got := frames(t, demod.Config{Format: demod.CF32}, synth.AppendCF32(nil, rec.IQ), nil)
	if right, _ := score(rec, got); right < 19 {
		t.Errorf("%d of 20 frames", right)
	}
}

func TestSilence(t *testing.T) {
	for _, effort := range efforts {
		for _, v := range []byte{0, 127, 255} {
			if got := frames(t, demod.Config{Effort: effort}, bytes.Repeat([]byte{v}, 100_000), nil); len(got) != 0 {
				t.Errorf("%v: %d frames in constant %d", effort, len(got), v)
			}
		}
	}
	// A recording in a long silence has no quieter air to measure.
	f := synth.Squitter(0x4b1a2c, 5, [7]byte{0x58, 1, 2, 3, 4, 5, 6})
	air := synth.NewAir(2.4e6, 4000)
	air.Add(synth.Signal{Frame: f[:], Start: 1e-3, Amplitude: 0.5})
	air.Noise(rand.New(rand.NewPCG(1, 2)), 0.02)
	iq := slices.Concat(bytes.Repeat([]byte{127}, 60_000), synth.AppendUC8(nil, air.IQ), bytes.Repeat([]byte{127}, 60_000))
	if got := frames(t, demod.Config{}, iq, nil); len(got) != 1 {
		t.Errorf("%d frames", len(got))
	}
}

func TestRepairModes(t *testing.T) {
	if testing.Short() {
		t.Skip("several hundred frames")
	}
	rec := synth.Scenario{Messages: 400, SNR: 9, Seed: 21}.Make()
	iq := synth.AppendUC8(nil, rec.IQ)
	var n [4]int
	for _, r := range []demod.Repair{demod.RepairNone, demod.RepairOne, demod.RepairTwo, demod.RepairSoft} {
		got := frames(t, demod.Config{Repair: r}, iq, nil)
		right, _ := score(rec, got)
		n[r] = right
		for _, f := range got {
			limit := map[demod.Repair]uint8{demod.RepairNone: 0, demod.RepairOne: 1, demod.RepairTwo: 2, demod.RepairSoft: 32}[r]
			if f.Repaired > limit {
				t.Errorf("repair mode %d changed %d bits", r, f.Repaired)
			}
			if (f.Repaired > 0) != (f.Margin < 0) {
				t.Errorf("%d bits repaired, margin %g", f.Repaired, f.Margin)
			}
		}
	}
	if !(n[demod.RepairNone] < n[demod.RepairOne] && n[demod.RepairOne] < n[demod.RepairTwo] && n[demod.RepairTwo] < n[demod.RepairSoft]) {
		t.Errorf("none, one, two, soft found %d, %d, %d, %d of 400", n[demod.RepairNone], n[demod.RepairOne], n[demod.RepairTwo], n[demod.RepairSoft])
	}
}

func TestNoAllocations(t *testing.T) {
	rec := synth.Scenario{Messages: 20, SNR: 10, Seed: 5, Overlap: true, OverlapDB: 5}.Make()
	iq := synth.AppendUC8(nil, rec.IQ)
	for _, effort := range efforts {
		d, err := demod.New(demod.Config{Effort: effort, ModeAC: true})
		if err != nil {
			t.Fatal(err)
		}
		emit := func(*modes.Frame) {}
		d.Process(iq, emit) // buffers grow to their size
		if n := testing.AllocsPerRun(3, func() { d.Process(iq, emit) }); n != 0 {
			t.Errorf("%v: %v allocations for %d samples", effort, n, len(iq)/2)
		}
	}
}

func TestStatsAddUp(t *testing.T) {
	rec := synth.Scenario{Messages: 100, SNR: 10, Seed: 8}.Make()
	iq := synth.AppendUC8(nil, rec.IQ)
	for _, effort := range efforts {
		d, _ := demod.New(demod.Config{Effort: effort})
		n := uint64(0)
		emit := func(*modes.Frame) { n++ }
		d.Process(iq, emit)
		d.Flush(emit)
		s := d.Stats()
		if s.Samples != uint64(len(iq)/2) || s.Frames != n {
			t.Errorf("%v: %d samples, %d frames in %+v", effort, len(iq)/2, n, s)
		}
		if s.Candidates+s.Covered+s.Shape+s.Data != s.Preambles {
			t.Errorf("%v: the gate's counters do not add up: %+v", effort, s)
		}
		readings := s.Frames + s.Duplicates + s.Elsewhere
		for _, r := range s.Reasons {
			readings += r
		}
		if got := s.Contrast + s.Format + s.Short + s.Again + s.Errors + readings; got != s.Candidates+s.Scanned+s.Twice {
			t.Errorf("%v: %d candidates, %d accounted for: %+v", effort, s.Candidates+s.Scanned+s.Twice, got, s)
		}
	}
}

func ExampleDemodulator() {
	// Twenty squitters at a signal to noise ratio of 20 dB.
	rec := synth.Scenario{Messages: 20, SNR: 20, Seed: 1}.Make()
	iq := synth.AppendUC8(nil, rec.IQ)

	d, err := demod.New(demod.Config{Format: demod.UC8, Rate: 2_400_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	n := 0
	for f, err := range d.Frames(bytes.NewReader(iq)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if f.DF() == 17 && f.Remainder() == 0 {
			n++
		}
	}
	fmt.Println(n, "squitters")
	// Output: 20 squitters
}
