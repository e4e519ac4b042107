package avr

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"

	"signalbox.example/modes"
)

func feed(d *Decoder, chunks ...[]byte) (out []modes.Frame) {
	for _, c := range chunks {
		d.Feed(c, func(f *modes.Frame) { out = append(out, *f) })
	}
	return
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line string
		want string
		time uint64
		ok   bool
	}{
		{"*8D406B902015A678D4D220AA4BDA;", "8d406b902015a678d4d220aa4bda", 0, true},
		{" *8d406b902015a678d4d220aa4bda; \r\n", "8d406b902015a678d4d220aa4bda", 0, true},
		{"*5d4b1a2c1be761;", "5d4b1a2c1be761", 0, true},
		{"@0000000000FF5d4b1a2c1be761;", "5d4b1a2c1be761", 255, true},
		{"<0000000000FF805d4b1a2c1be761;", "5d4b1a2c1be761", 255, true},
		{"@FF004D4C41545d4b1a2c1be761;", "5d4b1a2c1be761", 0, true}, // multilateration: no time
		{"@0000000000005d4b1a2c1be761;", "5d4b1a2c1be761", 0, true},
		{"*7700;", "", 0, false},
		{"*5d4b1a2c1be76;", "", 0, false},
		{"*5d4b1a2c1be7xx;", "", 0, false},
		{"@00000000x0FF5d4b1a2c1be761;", "", 0, false},
		{"5d4b1a2c1be761", "", 0, false},
		{"*5d4b1a2c1be761", "", 0, false},
		{"", "", 0, false},
		{";", "", 0, false},
	} {
		var f modes.Frame
		err := Parse([]byte(c.line), &f)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrLine) {
			t.Errorf("%q: %v", c.line, err)
			continue
		}
		if c.ok && (f.String() != c.want || f.Time12 != c.time || f.HasTime != (c.time != 0)) {
			t.Errorf("%q: %v %d %v", c.line, &f, f.Time12, f.HasTime)
		}
		if !c.ok && f != (modes.Frame{}) {
			t.Errorf("%q changed the frame", c.line)
		}
	}
}

func TestDecoderFindsItsWay(t *testing.T) {
	const stream = "garbage*8D406B902015A678D4D220AA4BDA;*5d4b1a2c1be761;\n" +
		"*5d4b1a*5d4b1a2c1be761;*7700;\r\n*12345\n@0000000000015d4b1a2c1be761;\r\n" +
		"*5d4b1a2c1be761000000000000000000000000000000000000000000000000000000000;*5d4b1a2c1be7zz;*5d4b1a2c1be764;"
	want := []string{"8d406b902015a678d4d220aa4bda", "5d4b1a2c1be761", "5d4b1a2c1be761", "5d4b1a2c1be761", "5d4b1a2c1be764"}
	check := func(what string, d *Decoder, got []modes.Frame) {
		t.Helper()
		var hex []string
		for i := range got {
			hex = append(hex, got[i].String())
		}
		if !slices.Equal(hex, want) || d.Stats() != (Stats{Frames: 5, Bad: 5}) {
			t.Errorf("%s: %v %+v", what, hex, d.Stats())
		}
	}
	var whole Decoder
	check("whole", &whole, feed(&whole, []byte(stream)))
	var single Decoder
	var got []modes.Frame
	for i := range stream {
		got = append(got, feed(&single, []byte{stream[i]})...)
	}
	check("single bytes", &single, got)
}

func TestBareLines(t *testing.T) {
	d := Decoder{Bare: true}
	got := feed(&d, []byte("8D406B902015A678D4D220AA4BDA\r\nhello\n5d4b1a2c1be761\n5d4b\n*5d4b1a2c1be764;\n5d4b1a2c1be76e"))
	if len(got) != 3 {
		t.Errorf("%d frames", len(got))
	}
	d.Flush(func(f *modes.Frame) { got = append(got, *f) })
	if len(got) != 4 || got[3].String() != "5d4b1a2c1be76e" || d.Stats().Bad != 2 {
		t.Errorf("%d frames, %+v", len(got), d.Stats())
	}
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var b []byte
	var want []modes.Frame
	for i := range 500 {
		f := modes.Frame{Bits: 56, HasTime: i%3 != 0}
		if i%2 == 0 {
			f.Bits = 112
		}
		if f.HasTime {
			f.Time12 = 1 + r.Uint64N(1<<48-2)
		}
		for j := range f.Bits / 8 {
			f.Data[j] = byte(r.Uint32())
		}
		if f.HasTime {
			b = AppendTimed(b, &f)
		} else {
			b = Append(b, &f)
		}
		want = append(want, f)
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
	f := want[0]
	if n := testing.AllocsPerRun(100, func() { b = AppendTimed(b[:0], &f); d.Feed(b, func(*modes.Frame) {}) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestFramesYieldsTheError(t *testing.T) {
	broken := errors.New("broken")
	var last error
	n := 0
	for _, err := range new(Decoder).Frames(io.MultiReader(bytes.NewReader([]byte("*5d4b1a2c1be761;")), iotest.ErrReader(broken))) {
		n, last = n+1, err
	}
	if n != 2 || last != broken {
		t.Errorf("%d, %v", n, last)
	}
	for range new(Decoder).Frames(bytes.NewReader([]byte("*5d4b1a2c1be761;*5d4b1a2c1be761;"))) {
		break // must not call yield again
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add([]byte("*8D406B902015A678D4D220AA4BDA;\n@0000000000015d4b1a2c1be761;"), true)
	f.Add([]byte("5d4b1a2c1be761\n<0000000000FF805d4b1a2c1be761;"), true)
	f.Fuzz(func(t *testing.T, data []byte, bare bool) {
		a, b := Decoder{Bare: bare}, Decoder{Bare: bare}
		got := feed(&a, data)
		var single []modes.Frame
		for i := range data {
			single = append(single, feed(&b, data[i:i+1])...)
		}
		if !slices.Equal(got, single) || a.Stats() != b.Stats() {
			t.Errorf("%q: %d frames whole, %d byte by byte", data, len(got), len(single))
		}
		for i := range got {
			var c Decoder
			if again := feed(&c, AppendTimed(nil, &got[i])); len(again) != 1 || again[0].String() != got[i].String() || again[0].Time12 != got[i].Time12 {
				t.Errorf("%v became %v", got[i], again)
			}
		}
	})
}

func BenchmarkDecoder(b *testing.B) {
	var line []byte
	f, _ := modes.ParseHex("8d406b902015a678d4d220aa4bda")
	for range 1000 {
		line = Append(line, &f)
	}
	var d Decoder
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		d.Feed(line, func(*modes.Frame) {})
	}
}
