package modes

import (
	"strconv"
	"testing"
)

// benchFrames has one frame of each format.
var benchFrames = []struct{ name, hex string }{
	{"DF0", "020007a0d08ff4"},
	{"DF4", "200018385a9977"},
	{"DF5", "28000aaa01bee5"},
	{"DF11", "5d4b1a2c1be761"},
	{"DF16", "80e1953858d1d1e35d0a1f7d0b3b"},
	{"DF17identification", "8d406b902015a678d4d220aa4bda"},
	{"DF17position", "8d40621d58c382d690c8ac2863a7"},
	{"DF17velocity", "8d406b909945de10000405999be4"},
	{"DF18surface", "95c60bf13b4db286b30fc180d20d"},
	{"DF20", "a0001910a3d9f532bfec007ae77d"},
	{"DF21", "a8001ebcfe7b2d287fe4a749a8e7"},
}

func BenchmarkDecode(b *testing.B) {
	for _, c := range benchFrames {
		f := hexFrame(b, c.hex)
		b.Run("frame="+c.name, func(b *testing.B) {
			var m Message
			b.ReportAllocs()
			for b.Loop() {
				Decode(&f, &m)
			}
		})
	}
}

func BenchmarkParity(b *testing.B) {
	for _, n := range []int{7, 14, 1 << 16} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(i * 7)
		}
		b.Run("size="+strconv.Itoa(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				Remainder(data)
			}
		})
	}
}

func BenchmarkRepair(b *testing.B) {
	clean := hexFrame(b, "8d406b902015a678d4d220aa4bda")
	b.Run("damage=two-bits", func(b *testing.B) {
		for b.Loop() {
			f := clean
			f.Data[5] ^= 4
			f.Data[9] ^= 2
			if n, _ := Repair(f.Data[:], 2); n != 2 {
				b.Fatal(n)
			}
		}
	})
	b.Run("damage=hopeless", func(b *testing.B) {
		f := clean
		f.Data[5], f.Data[6], f.Data[7] = 1, 2, 3
		for b.Loop() {
			if n, _ := Repair(f.Data[:], 1); n != 0 {
				b.Fatal(n)
			}
		}
	})
}

func BenchmarkCPR(b *testing.B) {
	p := LatLon{52.2572, 3.91937}
	even, odd := CPREncode(p, CPRAirborne, false), CPREncode(p, CPRAirborne, true)
	b.Run("op=encode", func(b *testing.B) {
		for b.Loop() {
			CPREncode(p, CPRAirborne, true)
		}
	})
	b.Run("op=global", func(b *testing.B) {
		for b.Loop() {
			CPRGlobal(even, odd, true, nil)
		}
	})
	b.Run("op=local", func(b *testing.B) {
		for b.Loop() {
			CPRLocal(odd, p)
		}
	})
}

func BenchmarkFilter(b *testing.B) {
	f := hexFrame(b, "a0001910a3d9f532bfec007ae77d")
	a := NewAddressFilter(0)
	a.Add(f.Remainder(), 0)
	b.ReportAllocs()
	for b.Loop() {
		if a.Match(&f, 1) != Accepted {
			b.Fatal("rejected")
		}
	}
}

func BenchmarkInferCommB(b *testing.B) {
	f := hexFrame(b, "a0001910a3d9f532bfec007ae77d")
	var m Message
	Decode(&f, &m)
	hint := State{Altitude: Some(m.Altitude.V.Feet)}
	var buf []Candidate
	b.ReportAllocs()
	for b.Loop() {
		buf = InferCommB(buf[:0], m.MB.V, &hint)
	}
}

// TestHotPathsAllocateNothing holds what the comments promise.
func TestHotPathsAllocateNothing(t *testing.T) {
	var m Message
	a := NewAddressFilter(0)
	for _, c := range benchFrames {
		f := hexFrame(t, c.hex)
		if n := testing.AllocsPerRun(100, func() { Decode(&f, &m); a.Accept(&f, 1) }); n != 0 {
			t.Errorf("%s: %v allocations", c.name, n)
		}
	}
	f := hexFrame(t, "a0001910a3d9f532bfec007ae77d")
	hint := State{Altitude: Some(int32(30000))}
	buf := make([]Candidate, 0, 12)
	if n := testing.AllocsPerRun(100, func() { buf = InferCommB(buf[:0], [7]byte(f.Data[4:11]), &hint) }); n != 0 {
		t.Errorf("InferCommB: %v allocations", n)
	}
	p := LatLon{52.2572, 3.91937}
	even, odd := CPREncode(p, CPRAirborne, false), CPREncode(p, CPRAirborne, true)
	if n := testing.AllocsPerRun(100, func() { CPRGlobal(even, odd, true, &p); CPRLocal(odd, p) }); n != 0 {
		t.Errorf("CPR: %v allocations", n)
	}
	Repair(f.Bytes(), 2) // builds its table once
	if n := testing.AllocsPerRun(100, func() { Repair(f.Bytes(), 2) }); n != 0 {
		t.Errorf("Repair: %v allocations", n)
	}
}
