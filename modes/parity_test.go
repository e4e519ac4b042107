package modes

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// slowParity divides bit by bit, as the standard draws it.
func slowParity(data []byte) uint32 {
	var r uint32
	for _, b := range append(slices.Clone(data), 0, 0, 0) {
		for i := 7; i >= 0; i-- {
			r = r<<1 | uint32(b>>i&1)
			if r&0x1000000 != 0 {
				r ^= generator
			}
		}
	}
	return r
}

func TestParityAgainstLongDivision(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 70 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		if got, want := Parity(b), slowParity(b); got != want {
			t.Errorf("%d bytes: %06x, want %06x", n, got, want)
		}
		if n >= 3 {
			if got, want := Remainder(b), slowParity(b[:n-3])^(uint32(b[n-3])<<16|uint32(b[n-2])<<8|uint32(b[n-1])); got != want {
				t.Errorf("remainder of %d bytes: %06x, want %06x", n, got, want)
			}
			SetParity(b, 0xabcdef)
			if got := Remainder(b); got != 0xabcdef {
				t.Errorf("SetParity of %d bytes leaves %06x", n, got)
			}
		}
	}
	SetParity([]byte{1, 2}, 3)
}

func TestRepairEveryPattern(t *testing.T) {
	clean := hexFrame(t, "8d406b902015a678d4d220aa4bda")
	for a := range 112 {
		for b := range a + 1 {
			f := clean
			want := 2
			f.Data[a/8] ^= 0x80 >> (a % 8)
			if b != a {
				f.Data[b/8] ^= 0x80 >> (b % 8)
			} else {
				want = 1
			}
			bad := f
			n, ok := Repair(f.Data[:], 2)
			if b < 5 {
				if ok && f == clean {
					t.Fatalf("bits %d %d: a format bit was repaired", a, b)
				}
				if !ok && f != bad {
					t.Fatalf("bits %d %d: a frame that was not repaired was changed", a, b)
				}
				continue
			}
			if !ok || n != want || f != clean {
				t.Fatalf("bits %d %d: %d %v", a, b, n, ok)
			}
			if want == 2 {
				if n, ok := Repair(bad.Data[:], 1); ok {
					t.Fatalf("bits %d %d: two bits repaired as %d", a, b, n)
				}
			}
		}
	}
	short := hexFrame(t, "5d4b1a2c1be761")
	for a := 5; a < 56; a++ {
		f := short
		f.Data[a/8] ^= 0x80 >> (a % 8)
		n, ok := Repair(f.Bytes(), 2)
		if a >= 49 { // the flipped bit reads as an interrogator code
			if n != 0 {
				t.Errorf("DF11 bit %d: an interrogator code was repaired away", a)
			}
			continue
		}
		if n != 1 || !ok || f != short {
			t.Errorf("DF11 bit %d: %d %v", a, n, ok)
		}
		f.Data[a/8] ^= 0x80 >> (a % 8)
		f.Data[1] ^= 0x80 >> (a % 7)
		if n, ok := Repair(f.Bytes(), 2); n > 1 || ok && f == short {
			t.Errorf("DF11 bit %d and another: %d %v", a, n, ok)
		}
	}
}

func TestRepairLeavesAddressParityAlone(t *testing.T) {
	for _, s := range []string{"20000010cb9cab", "28000aaa01bee5", "020007a0d08ff4",
		"a0000638fa81c10000000081a92f", "a8000d9fa55a032dbffc000d8123", "c00015b7c26e1370aa00005dd34a"} {
		f := hexFrame(t, s)
		g := f
		if n, ok := Repair(f.Bytes(), 2); n != 0 || ok || f != g {
			t.Errorf("%s: repaired (%d, %v)", s, n, ok)
		}
	}
	if _, ok := Repair(nil, 2); ok {
		t.Error("no bytes: repaired")
	}
}
