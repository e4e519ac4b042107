package modes

import (
	"math"
	"testing"
)

// FuzzDecode: no byte string panics, every angle and altitude is in range, and
// the register inference keeps its promises.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"8d406b902015a678d4d220aa4bda", "95c639eefbffffedd5fefbff4f6f", "020007a0d08ff4", "8d4b1a2c990001002004014d0a4e",
		"a0001910a3d9f532bfec007ae77d", "5d4b1a2c1be772", "c0001910a3d9f532bfec007ae77d"} {
		fr := hexFrame(f, s)
		f.Add(fr.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fr, err := NewFrame(b)
		if err != nil {
			fr.Bits = uint8(len(b))
			copy(fr.Data[:], b)
		}
		var m Message
		err = Decode(&fr, &m)
		for _, a := range []Opt[float64]{m.Velocity.Track, m.Velocity.Heading} {
			if a.OK && !(a.V >= 0 && a.V < 360) {
				t.Errorf("angle %v", a.V)
			}
		}
		if m.Altitude.OK && (m.Altitude.V.Feet < -1300 || m.Altitude.V.Feet > 126700) {
			t.Errorf("altitude %v", m.Altitude)
		}
		if m.Address.Value > 0xFFFFFF {
			t.Errorf("address %x", m.Address.Value)
		}
		var a AddressFilter
		if r := a.Match(&fr, 0); r == Accepted && err != nil {
			t.Errorf("accepted %v, which decodes with %v", &fr, err)
		}
		if m.MB.OK {
			hint := State{OnGround: m.OnGround}
			if m.Altitude.OK {
				hint.Altitude = Some(m.Altitude.V.Feet)
			}
			var sum float64
			for _, c := range InferCommB(nil, m.MB.V, &hint) {
				if sum += float64(c.Score); math.IsNaN(sum) || sum > 1.0001 {
					t.Errorf("scores add up to %v", sum)
				}
				_ = c.For.String()
			}
		}
		g := fr
		if n, ok := Repair(g.Bytes(), 2); ok && g.DF() != 11 && g.Remainder() != 0 || n > 2 || !ok && g != fr {
			t.Errorf("repaired %v to %v (%d, %v)", &fr, &g, n, ok)
		}
	})
}

// FuzzParseHex: what parses prints as itself.
func FuzzParseHex(f *testing.F) {
	f.Add("8D406b902015a678d4d220aa4bda")
	f.Add("5d4b1a2c1be7xx")
	f.Fuzz(func(t *testing.T, s string) {
		fr, err := ParseHex(s)
		if err == nil && (len(s) != len(fr.String()) || fr.Bits != uint8(len(s)*4)) {
			t.Errorf("%q became %v", s, &fr)
		}
	})
}
