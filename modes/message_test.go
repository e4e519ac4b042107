package modes

import (
	"math"
	"testing"
)

func almost(o Opt[float64], want float64) bool { return o.OK && math.Abs(o.V-want) < 0.005 }

// Real frames with the values that the literature gives for them.
func TestKnownExtendedSquitters(t *testing.T) {
	m := decode(t, "8d485020994409940838175b284f")
	v := m.Velocity
	if !almost(v.GroundSpeed, 159.20) || !almost(v.Track, 182.88) || v.VerticalRate != Some(int32(-832)) || v.VerticalRateSource != Some(Geometric) || v.GeometricMinusBaro != Some(int32(550)) {
		t.Errorf("ground velocity: %+v", v)
	}
	m = decode(t, "8da05f219b06b6af189400cbc33f")
	v = m.Velocity
	if m.Subtype != Some(uint8(3)) || !almost(v.Heading, 243.98) || v.TAS != Some(375.0) || v.IAS.OK || v.VerticalRate != Some(int32(-2304)) || v.VerticalRateSource != Some(Barometric) {
		t.Errorf("airspeed: %+v", v)
	}
	m = decode(t, "8d4840d6202cc371c32ce0576098")
	if m.Callsign.V.String() != "KLM1023" || m.Category.OK {
		t.Errorf("identification: %+v %+v", m.Callsign, m.Category)
	}
	m = decode(t, "8da2c1b6e112b600000000760759")
	if m.Emergency != Some(EmergencyNone) || m.Squawk != Some(Squawk(0x6513)) {
		t.Errorf("emergency status: %+v %v", m.Emergency, m.Squawk.V)
	}
	m = decode(t, "8da05629ea21485cbf3f8cadaeeb")
	s := m.Target.V
	if !m.Target.OK || s.Version != 2 || s.Altitude != Some(int32(16992)) || s.AltitudeSource != TargetMCP || !almost(s.QNH, 1012.8) || !almost(s.Heading, 66.797) {
		t.Errorf("target state: %+v", s)
	}
	if s.Autopilot != Some(true) || s.VNAV != Some(true) || s.AltitudeHold != Some(false) || s.Approach != Some(false) || s.LNAV != Some(true) || s.TCAS != Some(true) {
		t.Errorf("target state: %+v", s)
	}
	m = decode(t, "8daa2bc4f82100020049b8db9449")
	o := m.Status.V
	if !m.Status.OK || o.Version != 2 || o.NACp != Some(uint8(9)) || o.SIL != Some(uint8(3)) || o.NICbaro != Some(true) || o.SDA != Some(uint8(2)) || o.TCAS != Some(true) {
		t.Errorf("operational status: %+v", o)
	}
	f := EncodeNonTransponder(0, 0x484175, EncodeSurfacePosition(7, Some(17.2), Some(92.8), CPR{Lat: 39195, Lon: 110320, Odd: true, Kind: CPRSurface}))
	m = decode(t, f.String())
	if m.OnGround != Some(true) || m.Velocity.GroundSpeed != Some(17.0) || !almost(m.Velocity.Track, 92.81) {
		t.Errorf("surface: %+v", m.Velocity)
	}
}

func TestVersion1TargetState(t *testing.T) {
	// Source MCP, altitude 12,300 ft, heading 271 as a track, NACp 8, NICbaro, SIL 2.
	v := uint64(29)<<51 | 1<<47 | uint64((12300+1000)/100)<<31 | 1<<29 | 271<<20 | 1<<19 | 8<<13 | 1<<12 | 2<<10 | 1<<3 | 3
	m := decode(t, squitterHex(store56(v)))
	s := m.Target.V
	if s.Version != 1 || s.Altitude != Some(int32(12300)) || s.AltitudeSource != TargetMCP || s.Heading != Some(271.0) || !s.HeadingIsTrack ||
		s.NACp != Some(uint8(8)) || s.NICbaro != Some(true) || s.SIL != Some(uint8(2)) || s.TCAS != Some(true) || s.RAActive != Some(true) || m.Emergency != Some(EmergencyMinFuel) {
		t.Errorf("%+v %+v", s, m.Emergency)
	}
	m = decode(t, squitterHex(store56(uint64(29)<<51)))
	if s := m.Target.V; !m.Target.OK || s.Altitude.OK || s.Heading.OK {
		t.Errorf("nothing selected: %+v", s)
	}
}

func TestOperationalStatusByVersion(t *testing.T) {
	me := func(sub, version uint64, bits ...int) Message {
		v := uint64(31)<<51 | sub<<48 | version<<13
		for _, b := range bits {
			v |= 1 << (56 - b)
		}
		return decode(t, squitterHex(store56(v)))
	}
	if s := me(0, 0, 45, 51).Status.V; s.NACp.OK || s.SIL.OK || s.NICa.OK {
		t.Errorf("version 0: %+v", s)
	}
	s := me(0, 1, 11, 49, 53, 55).Status.V
	if s.TCAS != Some(false) || s.BAQ != Some(uint8(2)) || s.GVA.OK || s.NICbaro != Some(true) || s.SILPerSample.OK || s.SDA.OK {
		t.Errorf("version 1 airborne: %+v", s)
	}
	s = me(0, 2, 11, 12, 19, 30, 31, 49, 50, 54, 55).Status.V
	if s.TCAS != Some(true) || s.ReceivesES != Some(true) || s.ReceivesUAT != Some(true) || s.SingleAntenna != Some(true) || s.SDA != Some(uint8(2)) ||
		s.GVA != Some(uint8(3)) || s.BAQ.OK || s.HeadingMagnetic != Some(true) || s.SILPerSample != Some(true) {
		t.Errorf("version 2 airborne: %+v", s)
	}
	m := me(1, 2, 12, 15, 16, 19, 20, 22, 32, 35, 36, 40, 44, 53)
	s = m.Status.V
	if !s.Surface || s.LowPower != Some(true) || s.ReceivesES != Some(true) || s.ReceivesUAT != Some(true) || m.NACv != Some(uint8(1)) || s.NICc != Some(true) ||
		s.NICa != Some(true) || s.Length != Some(35.0) || s.Width != Some(33.0) || s.SurfaceHeading != Some(true) || s.NICbaro.OK || s.SDA != Some(uint8(1)) {
		t.Errorf("version 2 surface: %+v", s)
	}
	// Bits 33-40 are 001 10001: 2 m to the left, 32 m aft.
	if s.AntennaLateral != Some(-2.0) || s.AntennaLongitudinal != Some(32.0) {
		t.Errorf("antenna: %+v %+v", s.AntennaLateral, s.AntennaLongitudinal)
	}
}

func TestNIC(t *testing.T) {
	for _, c := range []struct {
		tc, version uint8
		a, b, c     bool
		nic         uint8
		rc          float64 // 0: unknown
	}{
		{9, 2, false, false, false, 11, 7.5}, {20, 0, false, false, false, 11, 7.5}, {5, 1, false, false, false, 11, 7.5},
		{10, 2, false, false, false, 10, 25}, {6, 2, false, false, false, 10, 25},
		{11, 2, true, true, false, 9, 75}, {11, 2, true, false, false, 8, 185.2}, {11, 1, true, false, false, 9, 75}, {11, 0, true, true, false, 8, 185.2},
		{7, 2, true, false, false, 9, 75}, {7, 2, false, false, true, 8, 185.2}, {7, 1, true, false, false, 9, 75},
		{8, 2, true, false, true, 7, 370.4}, {8, 2, true, false, false, 6, 555.6}, {8, 2, false, false, true, 6, 1111.2}, {8, 2, false, false, false, 0, 0}, {8, 1, true, false, true, 0, 0},
		{12, 2, false, false, false, 7, 370.4},
		{13, 2, false, true, false, 6, 555.6}, {13, 2, false, false, false, 6, 926}, {13, 2, true, true, false, 6, 1111.2}, {13, 1, true, false, false, 6, 1111.2}, {13, 0, true, true, false, 6, 926},
		{14, 2, false, false, false, 5, 1852}, {15, 2, false, false, false, 4, 3704},
		{16, 2, true, true, false, 3, 7408}, {16, 2, false, false, false, 2, 14816}, {16, 1, true, false, false, 3, 7408}, {16, 0, false, false, false, 1, 18520},
		{17, 2, false, false, false, 1, 37040}, {18, 2, false, false, false, 0, 0}, {22, 2, false, false, false, 0, 0},
	} {
		nic, rc, ok := NIC(c.tc, c.version, c.a, c.b, c.c)
		if !ok || nic != c.nic || rc.OK != (c.rc != 0) || math.Abs(rc.V-c.rc) > 0.05 {
			t.Errorf("%+v: %d %+v %v", c, nic, rc, ok)
		}
	}
	if _, _, ok := NIC(19, 2, false, false, false); ok {
		t.Error("a velocity has a NIC")
	}
}

func TestMovement(t *testing.T) {
	for v, want := range map[uint32]float64{1: 0, 2: 0.125, 8: 0.875, 9: 1, 12: 1.75, 13: 2, 38: 14.5, 39: 15, 93: 69, 94: 70, 108: 98, 109: 100, 123: 170, 124: 175} {
		s, saturated := movement(v)
		if s != Some(want) || saturated != (v == 124) {
			t.Errorf("%d: %+v %v", v, s, saturated)
		}
		if got := encodeMovement(want); got != v {
			t.Errorf("%v kt: %d, want %d", want, got, v)
		}
	}
	for _, v := range []uint32{0, 125, 126, 127} {
		if s, _ := movement(v); s.OK {
			t.Errorf("%d: %+v", v, s)
		}
	}
}

func TestVelocityRoundTrip(t *testing.T) {
	for _, c := range []struct{ east, north float64 }{{0, 0}, {1, -1}, {-1021, 1021}, {1200, -4}, {-4084, 0}} {
		for rate := int32(-32640); rate <= 32640; rate += 6400 {
			m := decode(t, squitterHex(EncodeVelocity(Some(c.east), Some(c.north), Some(rate), Barometric, Some(int32(-3125)))))
			v := m.Velocity
			if want := math.Hypot(c.east, c.north); !v.GroundSpeed.OK || math.Abs(v.GroundSpeed.V-want) > 1e-9 {
				t.Errorf("%+v: %+v", c, v.GroundSpeed)
			}
			if v.VerticalRate != Some(rate) || v.GeometricMinusBaro != Some(int32(-3125)) {
				t.Errorf("%d: %+v", rate, v)
			}
			if v.Track.OK != (c.east != 0 || c.north != 0) {
				t.Errorf("%+v: track %+v", c, v.Track)
			}
		}
	}
	// Out of range is "more than", which has no value.
	v := decode(t, squitterHex(store56(19<<51|1<<48|127))).Velocity
	if v.GeometricMinusBaro.OK {
		t.Errorf("%+v", v.GeometricMinusBaro)
	}
	v = decode(t, squitterHex(store56(19<<51|1<<48|1023<<32|1023<<21))).Velocity
	if !v.Saturated || !almost(v.GroundSpeed, 1022*math.Sqrt2) {
		t.Errorf("%+v", v)
	}
	m := decode(t, squitterHex(EncodeAirspeed(Some(359.9), Some(1500.0), true, Opt[int32]{}, Geometric, Opt[int32]{})))
	if m.Subtype != Some(uint8(4)) || m.Velocity.TAS != Some(1500.0) || m.Velocity.Heading != Some(0.0) {
		t.Errorf("%+v", m.Velocity)
	}
}

func TestTISBAndADSR(t *testing.T) {
	position := EncodeAirbornePosition(11, Some(int32(5000)), CPR{Lat: 7, Lon: 8, Odd: true})
	imfPosition := position
	imfPosition[0] |= 1 // ME bit 8
	velocity := EncodeVelocity(Some(10.0), Some(20.0), Some(int32(64)), Barometric, Opt[int32]{})
	imfVelocity := velocity
	imfVelocity[1] |= 0x80 // ME bit 9
	for _, c := range []struct {
		cf   uint8
		me   [7]byte
		kind AddressKind
	}{
		{2, position, AddressTISB}, {2, imfPosition, AddressTISBTrackFile}, {2, velocity, AddressTISB}, {2, imfVelocity, AddressTISBTrackFile},
		{6, position, AddressADSR}, {6, imfPosition, AddressADSRAnonymous}, {5, position, AddressTISBNonICAO}, {0, imfPosition, AddressICAODevice}, {1, position, AddressNonICAO},
	} {
		f := EncodeNonTransponder(c.cf, 0x4b1a2c, c.me)
		m := decode(t, f.String())
		if m.Address.Kind != c.kind {
			t.Errorf("CF %d: %v, want %v", c.cf, m.Address.Kind, c.kind)
		}
		if !m.Position.OK && !m.Velocity.GroundSpeed.OK {
			t.Errorf("CF %d: nothing decoded", c.cf)
		}
		// Radar does not send what only the aircraft knows.
		if tisb := c.cf == 2 || c.cf == 5; tisb && (m.NICb.OK || m.Alert.OK || m.NACv.OK || m.Velocity.VerticalRateSource.OK) {
			t.Errorf("CF %d: %+v", c.cf, m)
		}
	}
	// What is sent again has the IMF bit in the place of NIC supplement B, and
	// of T on the surface; among aircraft statuses only the emergency has it.
	imfSurface := EncodeSurfacePosition(7, Some(10.0), Some(90.0), CPR{Lat: 7, Lon: 8, Kind: CPRSurface})
	imfSurface[2] |= 8 // ME bit 21
	imfEmergency := EncodeEmergency(EmergencyMedical, 0x1234)
	imfEmergency[6] |= 1                                           // ME bit 56
	advisory := store56(28<<51 | 2<<48 | 1<<47 | 2<<26 | 1<<6 | 5) // a threat without Mode S, bearing step 5
	for _, c := range []struct {
		cf       uint8
		me       [7]byte
		kind     AddressKind
		nicB, ts bool
	}{
		{0, imfPosition, AddressICAODevice, true, true}, {1, imfSurface, AddressNonICAO, false, true},
		{6, position, AddressADSR, false, true}, {6, imfPosition, AddressADSRAnonymous, false, true}, {6, imfSurface, AddressADSRAnonymous, false, false},
		{6, imfEmergency, AddressADSRAnonymous, false, false}, {6, advisory, AddressADSR, false, false},
	} {
		f := EncodeNonTransponder(c.cf, 0x4b1a2c, c.me)
		m := decode(t, f.String())
		if m.Address.Kind != c.kind || m.NICb.OK != c.nicB || m.TimeSync.OK != c.ts {
			t.Errorf("CF %d, TC %d: %v, NICb %v, T %v", c.cf, m.TypeCode.V, m.Address.Kind, m.NICb, m.TimeSync)
		}
	}
	// Coarse TIS-B: surveillance status 1, 10,000 ft, track 90, 160 kt.
	v := uint64(1)<<53 | uint64(encode12(10000))<<37 | 1<<36 | 8<<31 | 6<<25 | 1<<24 | 0x123<<12 | 0x456
	f := EncodeNonTransponder(3, 0x4b1a2c, store56(v))
	m := decode(t, f.String())
	if m.Altitude.V.Feet != 10000 || m.Velocity.Track != Some(90.0) || m.Velocity.GroundSpeed != Some(160.0) || m.Alert != Some(true) ||
		m.Position != Some(CPR{Lat: 0x123, Lon: 0x456, Odd: true, Kind: CPRCoarse}) || m.Address.Kind != AddressTISB {
		t.Errorf("coarse: %+v", m)
	}
}

// An alert takes precedence over the ident button: with one, nothing is known
// of the other.
func TestSurveillanceStatus(t *testing.T) {
	for ss, want := range []struct{ alert, spi Opt[bool] }{
		{Some(false), Some(false)}, {Some(true), Opt[bool]{}}, {Some(true), Opt[bool]{}}, {Some(false), Some(true)},
	} {
		fine := EncodeAirbornePosition(11, Some(int32(5000)), CPR{Lat: 7, Lon: 8})
		fine[0] |= byte(ss) << 1
		for _, f := range []Frame{EncodeSquitter(5, 0x4b1a2c, fine), EncodeNonTransponder(3, 0x4b1a2c, store56(uint64(ss)<<53))} {
			if m := decode(t, f.String()); m.Alert != want.alert || m.SPI != want.spi {
				t.Errorf("DF%d, status %d: alert %v, SPI %v", m.DF, ss, m.Alert, m.SPI)
			}
		}
	}
}

func TestResolutionAdvisories(t *testing.T) {
	// One sense, corrective, down, positive; ended; several threats.
	mv := [7]byte{0x30, 0x80 | 0x40 | 0x20 | 0x02, 0, 0x30}
	f := EncodeLongAirAir(false, 3, EncodeAltitude(20000), mv, 0x4b1a2c)
	m := decode(t, f.String())
	r := m.RA.V
	if !m.RA.OK || !r.Active || !r.SingleSense || !r.Corrective || !r.Down || r.Increased || !r.Positive || r.UpCorrection || r.Threat.OK || m.ReplyInformation != Some(uint8(3)) {
		t.Errorf("DF16: %+v", r)
	}
	if !r.Terminated || !r.MultipleThreats {
		t.Errorf("DF16: %+v", r)
	}
	// TC 28 subtype 2 with the address of the threat.
	v := uint64(28)<<51 | 2<<48 | 1<<47 | 1<<46 | 1<<33 | 1<<26 | uint64(0xABCDEF)<<2
	m = decode(t, squitterHex(store56(v)))
	r = m.RA.V
	if !r.Active || !r.DoNotPassBelow || r.Threat != Some(uint32(0xABCDEF)) || r.Terminated {
		t.Errorf("TC 28: %+v", r)
	}
	// With altitude, range and bearing in its place.
	v = uint64(28)<<51 | 2<<48 | 1<<28 | 1<<44 | 2<<26 | uint64(EncodeAltitude(12000))<<13 | 31<<6 | 16
	m = decode(t, squitterHex(store56(v)))
	r = m.RA.V
	if r.SingleSense || !r.MultipleThreats || r.ThreatAltitude != Some(int32(12000)) || !almost(r.ThreatRange, 3) || r.ThreatBearing != Some(93.0) {
		t.Errorf("TC 28: %+v", r)
	}
	if !r.DownCorrection && !r.ClimbRequired && !r.UpCorrection && !r.DescentRequired {
		t.Errorf("TC 28: %+v", r)
	}
	if m := decode(t, squitterHex(store56(28<<51|2<<48))); m.RA.OK {
		t.Errorf("nothing: %+v", m.RA.V)
	}
	f = EncodeLongAirAir(false, 0, EncodeAltitude(20000), [7]byte{0x30}, 1)
	if m := decode(t, f.String()); m.RA.OK {
		t.Errorf("nothing in DF16: %+v", m.RA.V)
	}
}

func TestSurveillanceFields(t *testing.T) {
	for fs, want := range []struct{ ground, alert, spi Opt[bool] }{
		{Some(false), Some(false), Some(false)}, {Some(true), Some(false), Some(false)},
		{Some(false), Some(true), Some(false)}, {Some(true), Some(true), Some(false)},
		{Opt[bool]{}, Some(true), Some(true)}, {Opt[bool]{}, Some(false), Some(true)}, {}, {},
	} {
		f := EncodeSurveillance(4, uint8(fs), EncodeAltitude(1000), 0x4b1a2c)
		m := decode(t, f.String())
		if m.OnGround != want.ground || m.Alert != want.alert || m.SPI != want.spi {
			t.Errorf("FS %d: %+v %+v %+v", fs, m.OnGround, m.Alert, m.SPI)
		}
	}
	// Metres, which nobody sends: M set, 1,000 m.
	f := EncodeSurveillance(4, 0, uint16(1000>>6<<7|0x40|1000&0x3F), 1)
	if m := decode(t, f.String()); m.Altitude != Some(Altitude{3281, Barometric, CodingMetric}) {
		t.Errorf("metric: %+v", m.Altitude)
	}
	// DF24: a segment of an extended length message.
	f = hexFrame(t, "d50102030405060708090a000000")
	SetParity(f.Bytes(), 0x4b1a2c)
	m := decode(t, f.String())
	if m.DF != 24 || !m.KE || m.ND != 5 || m.MD.V != [10]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10} || m.Address.Value != 0x4b1a2c {
		t.Errorf("DF24: %+v", m)
	}
}

// Real Comm-B replies with the values that the literature gives for them.
func TestKnownRegisters(t *testing.T) {
	infer := func(s string) Candidate {
		m := decode(t, s)
		hint := State{}
		if m.Altitude.OK {
			hint.Altitude = Some(m.Altitude.V.Feet)
		}
		c := InferCommB(nil, m.MB.V, &hint)
		if len(c) == 0 {
			t.Errorf("%s: no register", s)
			return Candidate{}
		}
		return c[0]
	}
	if c := infer("a000083e202cc371c31de0aa1ccf"); c.Code != 0x20 || c.Register.Callsign.V.String() != "KLM1017" {
		t.Errorf("%+v", c)
	}
	if c := infer("a000029c85e42f313000007047d3"); c.Code != 0x40 || c.Register.SelectedAltitude != Some(int32(3008)) || c.Register.FMSAltitude != Some(int32(3008)) || !almost(c.Register.QNH, 1020) {
		t.Errorf("%+v", c)
	}
	if c := infer("a000139381951536e024d4ccf6b5"); c.Code != 0x50 || !almost(c.Register.Roll, 2.11) || !almost(c.Register.Track, 114.258) || c.Register.GroundSpeed != Some(438.0) || !almost(c.Register.TrackRate, 0.125) || c.Register.TAS != Some(424.0) {
		t.Errorf("%+v", c)
	}
	if c := infer("a00004128f39f91a7e27c46adc21"); c.Code != 0x60 || !almost(c.Register.Heading, 42.715) || c.Register.IAS != Some(252.0) || !almost(c.Register.Mach, 0.42) || c.Register.BaroRate != Some(int32(-1920)) || c.Register.InertialRate != Some(int32(-1920)) {
		t.Errorf("%+v", c)
	}
	if c := infer("a800178d10010080f50000d5893c"); c.Code != 0x10 || !c.Register.DataLink.OK {
		t.Errorf("%+v", c)
	}
	if c := infer("a0000638fa81c10000000081a92f"); c.Code != 0x17 {
		t.Errorf("%+v", c)
	} else if got := GICBRegisters(nil, c.Register.GICB.V); len(got) != 11 || got[5] != 0x20 {
		t.Errorf("registers %v", got)
	}
	if c := infer("a0001692185bd5cf400000dfc696"); c.Code != 0x44 || c.Register.WindSpeed != Some(22.0) || !almost(c.Register.WindDirection, 344.53) || c.Register.Temperature != Some(-48.75) {
		t.Errorf("%+v", c)
	}
	for _, hex := range []string{"a0001910000000000000000000aa", "a0001910ffffffffffffffffffff"} {
		f := hexFrame(t, hex)
		if c := InferCommB(nil, [7]byte(f.Data[4:11]), nil); len(c) > 0 {
			t.Errorf("%s: %+v", hex, c[0])
		}
	}
}

// TestHintsDecide: a message that fits 5,0 and 6,0 is told apart by what is
// known of the aircraft.
func TestHintsDecide(t *testing.T) {
	m := decode(t, "a0001118901a2f2b21b800efa89c")
	five, _ := DecodeRegister(0x50, m.MB.V)
	six, _ := DecodeRegister(0x60, m.MB.V)
	alt := Some(m.Altitude.V.Feet)
	c := InferCommB(nil, m.MB.V, &State{Altitude: alt, Track: five.Track, GroundSpeed: five.GroundSpeed, TAS: five.TAS})
	if len(c) == 0 || c[0].Code != 0x50 || c[0].For&ReasonTrack == 0 {
		t.Errorf("with the track: %+v", c)
	}
	c = InferCommB(nil, m.MB.V, &State{Altitude: alt, Heading: six.Heading, IAS: six.IAS})
	if len(c) == 0 || c[0].Code != 0x60 || c[0].For&ReasonHeading == 0 || c[0].For.String() == "" {
		t.Errorf("with the heading: %+v", c)
	}
	none := InferCommB(nil, m.MB.V, nil)
	var gicb uint32 // only 2,0 and 5,0
	for i, r := range gicbRegisters {
		if r == 0x20 || r == 0x50 {
			gicb |= 1 << (23 - i)
		}
	}
	c = InferCommB(nil, m.MB.V, &State{GICB: Some(gicb)})
	if len(c) == 0 || len(none) == 0 || c[0].Code != 0x50 {
		t.Errorf("by the capability report: %+v, without %+v", c, none)
	}
}

func TestMeteorologicalRegisters(t *testing.T) {
	v := uint64(1)<<55 | 2<<53 | 1<<52 | 1<<50 | 1<<40 | uint64(0x3FF&^3)<<30 | 1<<29 | 800<<18 | 1<<17 | 100<<5
	r, ok := decodeRegister(0x45, v)
	if !ok || r.Turbulence != Some(uint8(2)) || r.WindShear != Some(uint8(1)) || r.Microburst.OK || r.Temperature != Some(-1.0) || r.Pressure != Some(800.0) || r.RadioHeight != Some(int32(1600)) {
		t.Errorf("4,5: %+v", r)
	}
	v = uint64(1)<<55 | uint64(0x600)<<44 | 1<<43 | 280<<33 | 1<<32 | 100<<23 | 1<<22 | 900<<10 | 1<<9 | uint64(0x1FF&^0)
	r, ok = decodeRegister(0x53, v)
	if !ok || !almost(r.Heading, 270) || r.IAS != Some(280.0) || !almost(r.Mach, 0.8) || r.TAS != Some(450.0) || r.BaroRate != Some(int32(-64)) {
		t.Errorf("5,3: %+v", r)
	}
	if _, ok := DecodeRegister(0x99, [7]byte{}); ok {
		t.Error("an unknown register")
	}
	if BDS(0x4A).String() != "4,A" {
		t.Error(BDS(0x4A))
	}
}
