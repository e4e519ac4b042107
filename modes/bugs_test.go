package modes

import (
	"errors"
	"math"
	"testing"
)

func decode(t testing.TB, s string) Message {
	t.Helper()
	f := hexFrame(t, s)
	var m Message
	if err := Decode(&f, &m); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return m
}

func wantAltitude(t *testing.T, s string, m Message, feet int32, coding AltitudeCoding) {
	t.Helper()
	if want := Some(Altitude{feet, Barometric, coding}); m.Altitude != want {
		t.Errorf("%s: altitude %+v, want %+v", s, m.Altitude, want)
	}
}

// The numbers are those of the bug log: cases that users of other decoders
// reported, with the answer that the standard gives.

func TestBug01GillhamInAirbornePosition(t *testing.T) {
	// rsadsb/adsb_deku#13, read as 195,200 ft there.
	f := hexFrame(t, "8dab92a2593e0664204c69d8fe84")
	var m Message
	if err := Decode(&f, &m); err != nil {
		t.Fatal(err)
	}
	wantAltitude(t, f.String(), m, 10600, Coding100)
}

func TestBug02VerticalStatusOfDF0(t *testing.T) {
	m := decode(t, "020007a0d08ff4")
	if m.Address.Value != 0xab92a2 || m.OnGround != Some(false) {
		t.Errorf("address %v, on ground %+v", m.Address, m.OnGround)
	}
	wantAltitude(t, "DF0", m, 10600, Coding100)
}

func TestBug03GillhamEveryCode(t *testing.T) {
	// antirez/dump1090#53: every altitude of the 100 ft code, in every format,
	// and absence.
	const addr = 0x4b1a2c
	for feet := int32(-1200); feet <= 126700; feet += 100 {
		c := EncodeGillham(feet)
		if c == 0 {
			t.Fatalf("%d ft: no code", feet)
		}
		var mv [7]byte
		for _, f := range []Frame{EncodeAirAir(false, 0, c, addr), EncodeSurveillance(4, 0, c, addr),
			EncodeLongAirAir(false, 0, c, mv, addr), EncodeCommB(20, 0, c, mv, addr)} {
			var m Message
			if err := Decode(&f, &m); err != nil || m.Address.Value != addr {
				t.Fatalf("%v: %v", f, err)
			}
			if want := Some(Altitude{feet, Barometric, Coding100}); m.Altitude != want {
				t.Fatalf("%v: %+v, want %d ft", &f, m.Altitude, feet)
			}
		}
	}
	valid := 0
	for c := uint32(0); c < 1<<12; c++ {
		if c&0x10 == 0 && altitude12(c, Barometric).OK {
			valid++
		}
	}
	if valid != 1280 { // 256 steps of 500 ft, five of 100 in each
		t.Errorf("%d codes are altitudes, want 1280", valid)
	}
	for _, s := range []string{"20000000ffffff", "00000000ffffff"} {
		f := hexFrame(t, s)
		SetParity(f.Bytes(), addr)
		if m := decode(t, f.String()); m.Altitude.OK {
			t.Errorf("%v: altitude %+v, want none", &f, m.Altitude)
		}
	}
	var m Message
	f := EncodeSquitter(5, addr, EncodeAirbornePosition(11, Opt[int32]{}, CPR{}))
	if Decode(&f, &m); m.Altitude.OK || !m.Position.OK {
		t.Errorf("%v: altitude %+v, want none", &f, m.Altitude)
	}
}

func TestBug04NoVelocityInformation(t *testing.T) {
	m := decode(t, "8d4b1a2c99000000000000ccbea0")
	if m.Velocity != (Velocity{}) || m.TypeCode != Some(uint8(19)) || m.Subtype != Some(uint8(1)) {
		t.Errorf("%+v", m)
	}
	// The same for an airspeed.
	f := EncodeSquitter(5, 0x4b1a2c, EncodeAirspeed(Opt[float64]{}, Opt[float64]{}, true, Opt[int32]{}, Geometric, Opt[int32]{}))
	if m := decode(t, f.String()); m.Velocity != (Velocity{}) {
		t.Errorf("airspeed: %+v", m.Velocity)
	}
}

func TestBug05ZeroIsNotAbsent(t *testing.T) {
	v := decode(t, "8d4b1a2c990001002004014d0a4e").Velocity
	if v.GroundSpeed != Some(0.0) || v.VerticalRate != Some(int32(0)) || v.GeometricMinusBaro != Some(int32(0)) {
		t.Errorf("%+v", v)
	}
	if v.Track.OK {
		t.Errorf("a track of no motion: %+v", v.Track)
	}
}

func TestBug06ReservedTypeWithWrongParity(t *testing.T) {
	f := hexFrame(t, "95c639eefbffffedd5fefbff4f6f")
	if r := f.Remainder(); r != 0xa922f4 {
		t.Errorf("remainder %06x", r)
	}
	var m Message
	if err := Decode(&f, &m); !errors.Is(err, ErrParity) {
		t.Errorf("error %v", err)
	}
	if m.TypeCode != Some(uint8(31)) || m.Subtype != Some(uint8(3)) || m.Status.OK {
		t.Errorf("%+v", m)
	}
}

func TestBug07TISBAddressIsNoICAOAddress(t *testing.T) {
	m := decode(t, "95c60bf13b4db286b30fc180d20d")
	if m.Address.String() != "~c60bf1" || m.Address.Kind != AddressTISBNonICAO {
		t.Errorf("address %v, kind %v", m.Address, m.Address.Kind)
	}
	if m.Address.Key() == (Address{Value: 0xc60bf1}).Key() {
		t.Error("same key as the ICAO address")
	}
	v := m.Velocity
	if m.TypeCode != Some(uint8(7)) || m.OnGround != Some(true) || !v.Track.OK || math.Abs(v.Track.V-255.9) > 0.05 || v.GroundSpeed != Some(28.0) {
		t.Errorf("type %+v, velocity %+v", m.TypeCode, v)
	}
}

func TestBug08NonTransponderDevices(t *testing.T) {
	me := EncodeIdentification(0xC3, "OBST1")
	for cf, want := range []struct {
		kind AddressKind
		text string
	}{{AddressICAODevice, "4b1a2c"}, {AddressNonICAO, "~4b1a2c"}, {AddressTISB, "4b1a2c"}, {},
		{}, {AddressTISBNonICAO, "~4b1a2c"}, {AddressADSR, "4b1a2c"}} {
		if cf == 3 || cf == 4 {
			continue
		}
		f := EncodeNonTransponder(uint8(cf), 0x4b1a2c, me)
		m := decode(t, f.String())
		if m.Address.Kind != want.kind || m.Address.String() != want.text || m.Callsign.V.String() != "OBST1" {
			t.Errorf("CF %d: %v %v %+v", cf, m.Address, m.Address.Kind, m.Callsign)
		}
	}
}

func TestBug09ZonesAndKinds(t *testing.T) {
	for _, c := range []struct {
		lat float64
		nl  int
	}{{0, 59}, {-0.1, 59}, {10.4704713, 58}, {10.4704712, 59}, {-10.4704713, 58}, {52, 36}, {86.9, 2}, {87, 2}, {-87, 2},
		{87.0001, 1}, {90, 1}, {-90, 1}, {86.5353699, 3}, {86.5353701, 2}, {math.NaN(), 1}, {math.Inf(1), 1}} {
		if got := NL(c.lat); got != c.nl {
			t.Errorf("NL(%v) = %d, want %d", c.lat, got, c.nl)
		}
	}
	surface := decode(t, squitterHex(EncodeSurfacePosition(7, Some(10.0), Some(90.0), CPR{Lat: 1, Lon: 2, Kind: CPRSurface})))
	airborne := decode(t, squitterHex(EncodeAirbornePosition(11, Some(int32(3000)), CPR{Lat: 1, Lon: 2, Odd: true})))
	if surface.Position.V.Kind != CPRSurface || airborne.Position.V.Kind != CPRAirborne {
		t.Error("kinds of positions mixed up")
	}
	if _, err := CPRGlobal(surface.Position.V, airborne.Position.V, true, &LatLon{}); !errors.Is(err, ErrCPRKind) {
		t.Errorf("a surface and an airborne half: %v", err)
	}
}

// squitterHex wraps a message in a DF17.
func squitterHex(me [7]byte) string {
	f := EncodeSquitter(5, 0x4b1a2c, me)
	return f.String()
}

func TestBug10PairAcrossATransitionLatitude(t *testing.T) {
	// The age of a pair is checked in package track. Here: two positions on
	// both sides of the transition at 10.47 degrees.
	const tr = 10.47047130
	even := CPREncode(LatLon{tr - 0.01, 20}, CPRAirborne, false)
	odd := CPREncode(LatLon{tr + 0.01, 20}, CPRAirborne, true)
	for _, newest := range []bool{false, true} {
		if p, err := CPRGlobal(even, odd, newest, nil); !errors.Is(err, ErrCPRZone) {
			t.Errorf("%v, %v", p, err)
		}
	}
}

func TestBug11TwoBitGhosts(t *testing.T) {
	two := hexFrame(t, "8d406b902095a678d4d620aa4bda")
	if r := two.Remainder(); r != 0xa9f17f {
		t.Errorf("remainder %06x", r)
	}
	f := two
	if _, ok := Repair(f.Bytes(), 1); ok {
		t.Error("one-bit repair mended two bits")
	}
	n, ok := Repair(f.Bytes(), 2)
	if n != 2 || !ok || f.String() != "8d406b902015a678d4d220aa4bda" {
		t.Fatalf("%v %d %v", &f, n, ok)
	}
	f.Repaired = 2
	var a AddressFilter
	if r := a.Accept(&f, 0); r != RejectedRepair {
		t.Errorf("unknown address: %v", r)
	}
	a.Add(0x406b90, 0)
	if r := a.Accept(&f, 0); r != Accepted {
		t.Errorf("known address: %v", r)
	}
	one := hexFrame(t, "8d406b902095a678d4d220aa4bda")
	if r := one.Remainder(); r != 0x91c77f {
		t.Errorf("remainder %06x", r)
	}
	if n, ok := Repair(one.Bytes(), 1); n != 1 || !ok {
		t.Errorf("one bit: %d %v", n, ok)
	}
	if m := decode(t, one.String()); m.Callsign.V.String() != "EZY85MH" {
		t.Errorf("callsign %q", m.Callsign.V)
	}
}

func TestBug12FormatRepair(t *testing.T) {
	f := hexFrame(t, "9d406b902015a678d4d220aa4bda")
	if r := f.Remainder(); r != 0x78dbbf || f.DF() != 19 {
		t.Errorf("DF%d, remainder %06x", f.DF(), r)
	}
	g := f
	if _, ok := Repair(g.Bytes(), 2); ok || g != f {
		t.Error("Repair touched a format bit")
	}
	if !RepairFormat(f.Bytes()) || f.String() != "8d406b902015a678d4d220aa4bda" {
		t.Errorf("%v", &f)
	}
	if RepairFormat(f.Bytes()) {
		t.Error("a clean frame was repaired")
	}
	for i := range 5 { // only what becomes DF17 or DF18
		g := f
		g.Data[0] ^= 0x80 >> i
		if !RepairFormat(g.Bytes()) || g != f {
			t.Errorf("bit %d: %v", i, &g)
		}
	}
}

func TestBug13InterrogatorCodes(t *testing.T) {
	for s, want := range map[string]Interrogator{
		"5d4b1a2c1be761": {0, false}, "5d4b1a2c1be764": {5, false}, "5d4b1a2c1be76e": {15, false}, "5d4b1a2c1be772": {3, true},
	} {
		m := decode(t, s)
		if m.Interrogator != Some(want) || m.Address.String() != "4b1a2c" {
			t.Errorf("%s: %+v %v", s, m.Interrogator, m.Address)
		}
		if f := EncodeAllCall(5, 0x4b1a2c, want); f.String() != s {
			t.Errorf("encoded as %v, want %s", &f, s)
		}
	}
	for si := uint8(1); si < 64; si++ {
		f := EncodeAllCall(5, 0x4b1a2c, Interrogator{si, true})
		if m := decode(t, f.String()); m.Interrogator != Some(Interrogator{si, true}) {
			t.Errorf("SI %d: %+v", si, m.Interrogator)
		}
	}
}

func TestBug14AltitudeEnds(t *testing.T) {
	for s, feet := range map[string]int32{"20000010cb9cab": -1000, "20000098ccea07": 0, "200018385a9977": 38000, "20001fbf886f13": 50175} {
		m := decode(t, s)
		if m.Address.Value != 0x4b1a2c {
			t.Errorf("%s: address %v", s, m.Address)
		}
		wantAltitude(t, s, m, feet, Coding25)
		if f := EncodeSurveillance(4, 0, EncodeAltitude(feet), 0x4b1a2c); f.String() != s {
			t.Errorf("%d ft encoded as %v, want %s", feet, &f, s)
		}
	}
}

func TestBug15SquawkAndVerticalRate(t *testing.T) {
	m := decode(t, "28000aaa01bee5")
	if m.Squawk != Some(Squawk(0x7700)) || m.Squawk.V.String() != "7700" || m.Emergency != Some(EmergencyGeneral) {
		t.Errorf("squawk %v, emergency %+v", m.Squawk.V, m.Emergency)
	}
	for i := range uint16(4096) {
		s := Squawk(i>>9&7<<12 | i>>6&7<<8 | i>>3&7<<4 | i&7)
		if got := squawk13(uint32(EncodeSquawk(s))); got != s {
			t.Fatalf("%v becomes %v", s, got)
		}
	}
	f := EncodeSquitter(5, 1, EncodeVelocity(Some(100.0), Some(-50.0), Some(int32(-1280)), Barometric, Some(int32(-500))))
	v := decode(t, f.String()).Velocity
	if v.VerticalRate != Some(int32(-1280)) || v.VerticalRateSource != Some(Barometric) || v.GeometricMinusBaro != Some(int32(-500)) {
		t.Errorf("%+v", v)
	}
}

// Bug 16, a half-written aircraft.json, is in package track; bug 17, Beast
// framing, in package beast; bug 18 here and in track; bug 19, the lost end of a
// recording, in examples/adsb.

func TestBug18CommBNeedsAKnownAddress(t *testing.T) {
	f := hexFrame(t, "a0001910a3d9f532bfec007ae77d")
	var a AddressFilter
	if r := a.Accept(&f, 0); r != RejectedAddress {
		t.Errorf("unknown: %v", r)
	}
	if a.Seen(f.Remainder(), 0) {
		t.Error("a DF20 taught an address")
	}
}

func TestBug20AnyBytes(t *testing.T) {
	var m Message
	for b := range 256 {
		for _, fill := range []byte{0, 0xFF, 0x55} {
			for _, bits := range []uint8{0, 8, 56, 112, 255} {
				f := Frame{Bits: bits}
				for i := range f.Data {
					f.Data[i] = fill
				}
				f.Data[0] = byte(b)
				Decode(&f, &m)
				f.Data[4] = byte(b)
				f.Data[0] = 17 << 3
				Decode(&f, &m)
				_ = f.String()
			}
		}
	}
}
