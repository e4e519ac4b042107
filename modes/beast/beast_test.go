package beast

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"signalbox.example/modes"
)

func feed(d *Decoder, data []byte) (out []modes.Frame) {
	d.Feed(data, func(f *modes.Frame) { out = append(out, *f) })
	return
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBug17Framing: flightaware/piaware#29. Times are big-endian, a lost byte
// costs one message, and the mark of multilateration is no time.
func TestBug17Framing(t *testing.T) {
	const long = "8d406b902015a678d4d220aa4bda"
	var d Decoder
	got := feed(&d, unhex(t, "1a33"+"010203040506"+"ff"+long))
	if len(got) != 1 || got[0].Time12 != 0x010203040506 || !got[0].HasTime || got[0].Signal != 0 || !got[0].HasSignal || got[0].String() != long {
		t.Fatalf("%+v", got)
	}
	got = feed(&d, unhex(t, "1a33"+"ff004d4c4154"+"00"+long))
	if len(got) != 1 || got[0].HasTime || got[0].Time12 != 0 || got[0].HasSignal {
		t.Errorf("multilateration: %+v", got)
	}
	// Doubled escapes in time, signal and frame.
	got = feed(&d, unhex(t, "1a32"+"1a1a00000000001a1a"+"5d1a1a1a2c1be71a1a"))
	if len(got) != 0 {
		t.Errorf("an undoubled escape: %+v", got)
	}
	d = Decoder{}
	got = feed(&d, unhex(t, "1a32"+"1a1a0000000000"+"1a1a"+"5d1a1a002c1be71a1a"))
	if len(got) != 1 || got[0].Time12 != 0x1a0000000000 || got[0].String() != "5d1a002c1be71a" {
		t.Errorf("doubled escapes: %+v %+v", got, d.Stats())
	}
	// A message that lost its middle, one of an unknown type, Mode A/C, and a
	// good one after each.
	good := "1a33" + "010203040506" + "80" + long
	d = Decoder{}
	codes := []uint16{}
	d.OnModeAC = func(_ uint64, code uint16) { codes = append(codes, code) }
	got = feed(&d, unhex(t, "00ff"+"1a330102030405"+good+"1ae301020304051a1a0607"+good+"1a34aabbcc"+good+"1a31"+"000000000001"+"00"+"7700"+good))
	want := Stats{Frames: 4, ModeAC: 1, Other: 2, Cut: 1, Skipped: 2 + 8 + 3}
	if len(got) != 4 || d.Stats() != want || !slices.Equal(codes, []uint16{0x7700}) {
		t.Errorf("%d frames, %+v, want %+v; %x", len(got), d.Stats(), want, codes)
	}
}

func TestGPSTime(t *testing.T) {
	d := Decoder{GPS: true}
	stamp := uint64(3600)<<30 | 500_000_000
	b := []byte{escape, typeShort}
	for s := 40; s >= 0; s -= 8 {
		b = append(b, byte(stamp>>s)) // holds no escape
	}
	b = append(b, 1)
	b = append(b, unhex(t, "5d4b002c1be761")...)
	got := feed(&d, b)
	if len(got) != 1 || got[0].Time12 != 3600*modes.TicksPerSecond+modes.TicksPerSecond/2 {
		t.Errorf("%+v", got)
	}
}

func randomFrames(n int) (out []modes.Frame) {
	r := rand.New(rand.NewPCG(7, 8))
	for i := range n {
		f := modes.Frame{Bits: 56, HasTime: i%3 != 0, HasSignal: i%5 != 0}
		if i%2 == 0 {
			f.Bits = 112
		}
		if f.HasTime {
			f.Time12 = 1 + r.Uint64N(1<<48-2)
		}
		if f.HasSignal {
			f.Signal = float32(20 * math.Log10(float64(1+r.IntN(255))/255))
		}
		for j := range f.Bits / 8 {
			f.Data[j] = byte(r.Uint32())
			if r.IntN(4) == 0 {
				f.Data[j] = escape
			}
		}
		out = append(out, f)
	}
	return
}

func TestRoundTrip(t *testing.T) {
	want := randomFrames(2000)
	var b []byte
	for i := range want {
		b = Append(b, &want[i])
	}
	var d Decoder
	if got := feed(&d, b); !slices.Equal(got, want) {
		t.Error("frames changed on the way")
	}
	i := 0
	for f, err := range new(Decoder).Frames(iotest.OneByteReader(bytes.NewReader(b))) {
		if err != nil || *f != want[i] {
			t.Fatalf("frame %d: %v %v", i, f, err)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("%d frames", i)
	}
	if got := Append(nil, &modes.Frame{Bits: 8}); got != nil {
		t.Errorf("a frame of 8 bits: %x", got)
	}
	var codes []uint16
	d.OnModeAC = func(tm uint64, code uint16) {
		if tm == 0x1a1a1a {
			codes = append(codes, code)
		}
	}
	d.Feed(AppendModeAC(nil, 0x1a1a1a, 0x1a00), nil)
	if !slices.Equal(codes, []uint16{0x1a00}) {
		t.Errorf("Mode A/C %x", codes)
	}
	f := want[1]
	if n := testing.AllocsPerRun(100, func() { b = Append(b[:0], &f); d.Feed(b, func(*modes.Frame) {}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFramesYieldsTheError(t *testing.T) {
	broken := errors.New("broken")
	f, _ := modes.ParseHex("5d4b1a2c1be761")
	var last error
	n := 0
	for _, err := range new(Decoder).Frames(io.MultiReader(bytes.NewReader(Append(nil, &f)), iotest.ErrReader(broken))) {
		n, last = n+1, err
	}
	if n != 2 || last != broken {
		t.Errorf("%d, %v", n, last)
	}
}

func FuzzDecoder(f *testing.F) {
	fr := randomFrames(3)
	f.Add(Append(Append(nil, &fr[0]), &fr[1]), false)
	f.Add([]byte("\x1a3\x1a1\x1a\x1a\x1a4xx\x1a"), true)
	f.Fuzz(func(t *testing.T, data []byte, gps bool) {
		a, b := Decoder{GPS: gps}, Decoder{GPS: gps}
		got := feed(&a, data)
		var single []modes.Frame
		for i := range data {
			single = append(single, feed(&b, data[i:i+1])...)
		}
		if !slices.Equal(got, single) || a.Stats() != b.Stats() {
			t.Errorf("%x: %d frames whole, %d byte by byte", data, len(got), len(single))
		}
		for i := range got {
			var c Decoder
			if again := feed(&c, Append(nil, &got[i])); len(again) != 1 || again[0].Data != got[i].Data || !gps && again[0] != got[i] {
				t.Errorf("%+v became %+v", got[i], again)
			}
		}
	})
}

func BenchmarkDecoder(b *testing.B) {
	fr := randomFrames(1000)
	for i := range fr { // as on the air: escapes are rare
		for j := range fr[i].Data {
			fr[i].Data[j] ^= byte(i)
		}
	}
	var data []byte
	for i := range fr {
		data = Append(data, &fr[i])
	}
	b.Run("op=read", func(b *testing.B) {
		var d Decoder
		n := 0
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			d.Feed(data, func(*modes.Frame) { n++ })
		}
	})
	b.Run("op=write", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			data = data[:0]
			for i := range fr {
				data = Append(data, &fr[i])
			}
		}
	})
}
