package track

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox.example/internal/vectors"
	"signalbox.example/modes"
)

var epoch = time.Unix(1_700_000_000, 0)

func hexFrame(t testing.TB, s string) modes.Frame {
	t.Helper()
	f, err := modes.ParseHex(s)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// at returns the time so many seconds after the epoch.
func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

// send puts a frame into the table and fails when it is not accepted.
func send(t *testing.T, tr *Tracker, f modes.Frame, seconds float64) (*Aircraft, Changes) {
	t.Helper()
	a, c, r := tr.Update(&f, at(seconds))
	if r != modes.Accepted {
		t.Fatalf("%v: %v", &f, r)
	}
	return a, c
}

const addr = 0x4b1a2c

func airborne(p modes.LatLon, odd bool) modes.Frame {
	return modes.EncodeSquitter(5, addr, modes.EncodeAirbornePosition(11, modes.Some(int32(30000)), modes.CPREncode(p, modes.CPRAirborne, odd)))
}

func surface(p modes.LatLon, odd bool, kt float64) modes.Frame {
	return modes.EncodeSquitter(4, addr, modes.EncodeSurfacePosition(7, modes.Some(kt), modes.Some(90.0), modes.CPREncode(p, modes.CPRSurface, odd)))
}

func near(t *testing.T, what string, a *Aircraft, p modes.LatLon, nm float64) {
	t.Helper()
	if !a.Position.OK() || Distance(a.Position.V, p) > nm {
		t.Errorf("%s: position %+v, want %v", what, a.Position, p)
	}
}

func TestGlobalThenLocal(t *testing.T) {
	tr := New(Config{})
	p := modes.LatLon{Lat: 52.2572, Lon: 3.9194}
	a, c := send(t, tr, airborne(p, false), 0)
	if c.Has(Position) || a.Position.OK() || !c.Has(First|Altitude) {
		t.Errorf("one half: %b", c)
	}
	if _, c = send(t, tr, airborne(p, true), 1); !c.Has(Position) {
		t.Errorf("pair: %b", c)
	}
	near(t, "pair", a, p, 0.01)
	p.Lat += 0.05
	if _, c = send(t, tr, airborne(p, true), 40); !c.Has(Position) {
		t.Errorf("alone: %b", c)
	}
	near(t, "alone", a, p, 0.01)
	if s := tr.Stats(); s.Global != 1 || s.Local != 1 {
		t.Errorf("%+v", s)
	}
	if a.PositionNIC.V != 8 || math.Abs(a.PositionRadius.V-185.2) > 0.1 {
		t.Errorf("NIC %v, radius %v", a.PositionNIC, a.PositionRadius)
	}
}

// TestBug10AgeOfPairs: adsbee#28, jet1090#434.
func TestBug10AgeOfPairs(t *testing.T) {
	p := modes.LatLon{Lat: 52.2572, Lon: 3.9194}
	for _, c := range []struct {
		name    string
		a, b    modes.Frame
		seconds float64
		want    bool
	}{
		{"airborne 9.9 s", airborne(p, false), airborne(p, true), 9.9, true},
		{"airborne 10.1 s", airborne(p, false), airborne(p, true), 10.1, false},
		{"surface fast 24 s", surface(p, false, 60), surface(p, true, 60), 24, true},
		{"surface fast 26 s", surface(p, false, 60), surface(p, true, 60), 26, false},
		{"surface slow 49 s", surface(p, false, 10), surface(p, true, 10), 49, true},
		{"surface slow 51 s", surface(p, false, 10), surface(p, true, 10), 51, false},
		{"kinds mixed", airborne(p, false), surface(p, true, 10), 1, false},
		{"twice even", airborne(p, false), airborne(p, false), 1, false},
	} {
		tr := New(Config{Reference: modes.Some(modes.LatLon{Lat: 52, Lon: 4})})
		send(t, tr, c.a, 0)
		if a, ch := send(t, tr, c.b, c.seconds); ch.Has(Position) != c.want || a.Position.OK() != c.want {
			t.Errorf("%s: position %+v", c.name, a.Position)
		}
	}
	// Halves on both sides of a transition latitude.
	tr := New(Config{})
	send(t, tr, airborne(modes.LatLon{Lat: 10.46, Lon: 20}, false), 0)
	if a, _ := send(t, tr, airborne(modes.LatLon{Lat: 10.48, Lon: 20}, true), 1); a.Position.OK() || tr.Stats().BadPair != 1 {
		t.Errorf("straddling pair: %+v", a.Position)
	}
}

func TestSurfaceReference(t *testing.T) {
	for _, p := range []modes.LatLon{{Lat: 47.4582, Lon: 8.5555}, {Lat: -33.9461, Lon: 151.1772}, {Lat: 40.6413, Lon: -73.7781}, {Lat: -34.5592, Lon: -58.4156}} {
		tr := New(Config{})
		send(t, tr, surface(p, false, 10), 0)
		if a, _ := send(t, tr, surface(p, true, 10), 1); a.Position.OK() {
			t.Errorf("%v: a surface position without reference: %v", p, a.Position.V)
		}
		tr = New(Config{Reference: modes.Some(modes.LatLon{Lat: p.Lat + 0.4, Lon: p.Lon - 0.4})})
		send(t, tr, surface(p, false, 10), 0)
		a, _ := send(t, tr, surface(p, true, 10), 1)
		near(t, "by the receiver", a, p, 0.01)
		if !a.OnGround.V {
			t.Error("not on the ground")
		}
		// By the last airborne position: a landing.
		tr = New(Config{})
		send(t, tr, airborne(p, false), 0)
		send(t, tr, airborne(p, true), 1)
		send(t, tr, surface(p, false, 10), 20)
		a, c := send(t, tr, surface(p, true, 10), 21)
		if !c.Has(Position) {
			t.Errorf("%v after landing: %b", p, c)
		}
		near(t, "after landing", a, p, 0.01)
	}
}

func TestRangeAndSpeed(t *testing.T) {
	here, far := modes.LatLon{Lat: 50, Lon: 8}, modes.LatLon{Lat: 50, Lon: 9}
	tr := New(Config{Reference: modes.Some(here), MaxRange: 100})
	gone := modes.LatLon{Lat: 52, Lon: 8}
	send(t, tr, airborne(gone, false), 0)
	if a, c := send(t, tr, airborne(gone, true), 1); a.Position.OK() || !c.Has(Refused) || tr.Stats().BadRange != 1 {
		t.Errorf("120 NM away: %+v %b", a.Position, c)
	}
	tr = New(Config{})
	send(t, tr, airborne(here, false), 0)
	send(t, tr, airborne(here, true), 1)
	// A jump of 38 NM in a second: refused twice, believed the third time.
	for i, want := range []bool{false, false, false, true} {
		a, c := send(t, tr, airborne(far, i%2 == 0), 2+float64(i)/2)
		if c.Has(Position) != want {
			t.Errorf("jump, message %d: %b", i, c)
		}
		if !want && Distance(a.Position.V, here) > 1 {
			t.Errorf("jump, message %d: moved to %v", i, a.Position.V)
		}
	}
}

// TestBug16HalfWrittenFile: mutability/dump1090#240, Mictronics/readsb#23. A
// reader that looks all the time sees only whole files.
func TestBug16HalfWrittenFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "aircraft.json")
	tr := New(Config{})
	for i := range uint32(300) {
		f := modes.EncodeSquitter(5, 0x400000+i, modes.EncodeIdentification(0xA3, "TEST123"))
		send(t, tr, f, 0)
	}
	if err := tr.WriteAircraftJSON(path, at(1)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	stop := make(chan struct{})
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			b, err := os.ReadFile(path)
			if err != nil || !json.Valid(b) {
				t.Errorf("%d bytes, %v", len(b), err)
				return
			}
		}
	})
	for i := range 100 {
		if err := tr.WriteAircraftJSON(path, at(1+float64(i)/10)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("left behind: %v %v", files, err)
	}
	if err := tr.WriteAircraftJSON(filepath.Join(dir, "none", "aircraft.json"), at(0)); err == nil {
		t.Error("no error for a folder that is not there")
	}
}

// TestBug18JumpsInReplies: stream1090#2. What a reply says must be plausible
// or come twice.
func TestBug18JumpsInReplies(t *testing.T) {
	tr := New(Config{})
	alt := func(feet int32) modes.Frame {
		return modes.EncodeSurveillance(4, 0, modes.EncodeAltitude(feet), addr)
	}
	id := func(s modes.Squawk) modes.Frame {
		return modes.EncodeSurveillance(5, 0, modes.EncodeSquawk(s), addr)
	}
	f := alt(30000)
	if _, _, r := tr.Update(&f, at(0)); r != modes.RejectedAddress {
		t.Errorf("unknown address: %v", r)
	}
	send(t, tr, modes.EncodeAllCall(5, addr, modes.Interrogator{}), 0)
	a, _ := send(t, tr, f, 1)
	if a.BaroAltitude.V != 30000 {
		t.Errorf("%+v", a.BaroAltitude)
	}
	if _, c := send(t, tr, alt(12000), 2); !c.Has(Refused) || a.BaroAltitude.V != 30000 {
		t.Errorf("a jump: %b %+v", c, a.BaroAltitude)
	}
	if send(t, tr, alt(30100), 3); a.BaroAltitude.V != 30100 {
		t.Errorf("a climb: %+v", a.BaroAltitude)
	}
	send(t, tr, alt(12000), 4)
	if send(t, tr, alt(12025), 5); a.BaroAltitude.V != 12025 {
		t.Errorf("a jump that came twice: %+v", a.BaroAltitude)
	}
	send(t, tr, id(0x1000), 6)
	if send(t, tr, id(0x7700), 7); a.Squawk.V != 0x1000 || a.Emergency.V != modes.EmergencyNone {
		t.Errorf("one reply changed the squawk: %v", a.Squawk.V)
	}
	if send(t, tr, id(0x7700), 8); a.Squawk.V != 0x7700 || a.Emergency.V != modes.EmergencyGeneral {
		t.Errorf("squawk %v, emergency %v", a.Squawk.V, a.Emergency.V)
	}
	send(t, tr, id(0x1000), 9)
	if send(t, tr, id(0x1000), 10); a.Squawk.V != 0x1000 || a.Emergency.V != modes.EmergencyNone {
		t.Errorf("squawk %v, emergency %v", a.Squawk.V, a.Emergency.V)
	}
}

func TestNamespacesStayApart(t *testing.T) {
	tr := New(Config{})
	send(t, tr, hexFrame(t, "95c60bf13b4db286b30fc180d20d"), 0)
	send(t, tr, modes.EncodeSquitter(5, 0xc60bf1, modes.EncodeIdentification(0xA3, "REAL")), 1)
	if tr.Len() != 2 {
		t.Fatalf("%d aircraft", tr.Len())
	}
	js := string(tr.AppendAircraftJSON(nil, at(2)))
	for _, want := range []string{`"hex":"~c60bf1","type":"tisb_other"`, `"hex":"c60bf1","type":"adsb_icao","flight":"REAL    "`, `"alt_baro":"ground"`} {
		if !strings.Contains(js, want) {
			t.Errorf("no %s in %s", want, js)
		}
	}
}

func TestSourcePriority(t *testing.T) {
	tr := New(Config{})
	north := modes.EncodeVelocity(modes.Some(0.0), modes.Some(300.0), modes.Opt[int32]{}, modes.Barometric, modes.Opt[int32]{})
	east := modes.EncodeVelocity(modes.Some(300.0), modes.Some(0.0), modes.Opt[int32]{}, modes.Barometric, modes.Opt[int32]{})
	a, _ := send(t, tr, modes.EncodeNonTransponder(2, addr, east), 0)
	if a.Source() != SourceTISB || a.Track.V != 90 {
		t.Errorf("TIS-B: %v %v", a.Source(), a.Track.V)
	}
	send(t, tr, modes.EncodeSquitter(5, addr, north), 1)
	if a.Source() != SourceADSB || a.Track.V != 0 {
		t.Errorf("ADS-B: %v %v", a.Source(), a.Track.V)
	}
	send(t, tr, modes.EncodeNonTransponder(2, addr, east), 2)
	if a.Track.V != 0 {
		t.Error("radar displaced what the aircraft says")
	}
	send(t, tr, modes.EncodeNonTransponder(2, addr, east), 20)
	if a.Track.V != 90 {
		t.Error("radar did not replace what is old")
	}
}

func TestDuplicates(t *testing.T) {
	tr := New(Config{})
	f := modes.EncodeSquitter(5, addr, modes.EncodeIdentification(0xA3, "DUP"))
	send(t, tr, f, 0)
	if a, c := send(t, tr, f, 0.001); !c.Has(Duplicate) || a.Messages != 2 || a.Duplicates != 1 {
		t.Errorf("%b %d %d", c, a.Messages, a.Duplicates)
	}
	if _, c := send(t, tr, f, 0.5); c.Has(Duplicate) {
		t.Error("the next squitter is no duplicate")
	}
	reply := modes.EncodeSurveillance(4, 0, modes.EncodeAltitude(10000), addr)
	send(t, tr, reply, 1)
	reply.Data[13] = 1 // does not count in a short frame
	if _, c := send(t, tr, reply, 1.001); !c.Has(Duplicate) {
		t.Error("a short frame's bits are its first 56")
	}
	tr = New(Config{DuplicateWindow: -1})
	send(t, tr, f, 0)
	if _, c := send(t, tr, f, 0); c.Has(Duplicate) {
		t.Error("a duplicate without window")
	}
}

// A clock may stand still, at zero too: nothing takes the time 0 for "never".
func TestClockAtZero(t *testing.T) {
	for _, now := range []time.Time{time.Unix(0, 0), {}} {
		tr := New(Config{})
		var a *Aircraft
		var changes []Changes
		for _, s := range []string{"8d40621d58c382d690c8ac2863a7", "8d40621d58c386435cc412692ad6", "8d40621d58c386435cc412692ad6"} {
			f := hexFrame(t, s)
			got, c, _ := tr.Update(&f, now)
			a, changes = got, append(changes, c)
		}
		if !changes[1].Has(Position) || !changes[2].Has(Duplicate) || a.Source() != SourceADSB {
			t.Errorf("%v: %b, %v", now, changes, a.Source())
		}
	}
}

func TestAgeing(t *testing.T) {
	tr := New(Config{Timeout: 2 * time.Minute})
	p := modes.LatLon{Lat: 50, Lon: 8}
	send(t, tr, airborne(p, false), 0)
	send(t, tr, airborne(p, true), 1)
	send(t, tr, modes.EncodeSquitter(5, addr, modes.EncodeIdentification(0xA3, "AGE1")), 59)
	js := string(tr.AppendAircraftJSON(nil, at(60)))
	if !strings.Contains(js, `"lat":49.99999`) {
		t.Errorf("at 60 s: %s", js)
	}
	js = string(tr.AppendAircraftJSON(nil, at(80)))
	if strings.Contains(js, `"lat"`) || strings.Contains(js, "alt_baro") || !strings.Contains(js, "AGE1") {
		t.Errorf("at 80 s: %s", js)
	}
	if js = string(tr.AppendAircraftJSON(nil, at(130))); strings.Contains(js, "AGE1") {
		t.Errorf("at 130 s: %s", js)
	}
	send(t, tr, modes.EncodeSquitter(5, addr+1, modes.EncodeIdentification(0xA3, "AGE2")), 200)
	if tr.Len() != 1 || tr.Stats().Forgotten != 1 || tr.Get(addr) != nil || tr.Get(addr+1) == nil {
		t.Errorf("%d aircraft, %+v", tr.Len(), tr.Stats())
	}
}

// An aircraft that comes back between two sweeps is a new one, at the end of the
// list, and the row that somebody holds of its first visit stays as it was.
func TestForgottenBeforeTheSweep(t *testing.T) {
	tr := New(Config{})
	f := modes.EncodeSquitter(5, addr, modes.EncodeIdentification(0xA3, "FIRST"))
	other := modes.EncodeSquitter(5, 0x406b90, modes.EncodeIdentification(0xA3, "OTHER"))
	old, _ := send(t, tr, f, 10)
	send(t, tr, other, 300) // sweeps
	a, c := send(t, tr, f, 310.5)
	if !c.Has(First) || a == old || old.Messages != 1 || a.Messages != 1 {
		t.Errorf("%b, %d and %d messages", c, old.Messages, a.Messages)
	}
	var last *Aircraft
	for last = range tr.All() {
	}
	if s := tr.Stats(); s.Forgotten != 1 || tr.Len() != 2 || last != a || tr.Get(addr) != a {
		t.Errorf("%d forgotten of %d, last %v", s.Forgotten, tr.Len(), last.Address)
	}
}

func TestTableIsBounded(t *testing.T) {
	tr := New(Config{MaxAircraft: 100})
	for i := range uint32(5000) {
		f := modes.EncodeSquitter(5, 1+i, modes.EncodeIdentification(0xA3, "FLOOD"))
		send(t, tr, f, float64(i)/1000)
	}
	if tr.Len() > 100 || tr.Len() != len(tr.byKey) || tr.Get(5000) == nil {
		t.Errorf("%d aircraft, %d keys", tr.Len(), len(tr.byKey))
	}
	if s := tr.Stats(); int(s.Displaced)+tr.Len() != 5000 {
		t.Errorf("%+v", s)
	}
}

func TestQualityByVersion(t *testing.T) {
	tr := New(Config{})
	s := modes.OperationalStatus{NACp: modes.Some(uint8(9)), SIL: modes.Some(uint8(3)), SDA: modes.Some(uint8(2)), GVA: modes.Some(uint8(2)),
		NICbaro: modes.Some(true), NICa: modes.Some(true), SILPerSample: modes.Some(false)}
	send(t, tr, modes.EncodeSquitter(5, addr, modes.EncodeStatus(s)), 0)
	p := modes.LatLon{Lat: 50, Lon: 8}
	me := func(odd bool) modes.Frame {
		v := modes.EncodeAirbornePosition(11, modes.Some(int32(30000)), modes.CPREncode(p, modes.CPRAirborne, odd))
		v[0] |= 1 // NIC supplement B
		return modes.EncodeSquitter(5, addr, v)
	}
	send(t, tr, me(false), 1)
	send(t, tr, me(true), 2)
	js := string(tr.AppendAircraftJSON(nil, at(3)))
	for _, want := range []string{`"nic":9,"rc":75`, `"version":2,"nic_baro":1,"nac_p":9,"sil":3,"sil_type":"perhour","gva":2,"sda":2`} {
		if !strings.Contains(js, want) {
			t.Errorf("no %s in %s", want, js)
		}
	}
}

func TestCommBFillsTheRow(t *testing.T) {
	tr := New(Config{})
	f := hexFrame(t, "a0001910a3d9f532bfec007ae77d")
	tr.filter.Add(f.Remainder(), ticks(at(0)))
	a, c := send(t, tr, f, 0)
	if !c.Has(Motion) || a.IAS.V != 250 || math.Abs(a.Mach.V-0.808) > 1e-9 || !a.MagHeading.OK() {
		t.Errorf("%b %+v %+v", c, a.IAS, a.Mach)
	}
}

func TestAircraftJSONIsValid(t *testing.T) {
	tr := New(Config{})
	r := rand.New(rand.NewPCG(9, 9))
	for i := range 3000 {
		var me [7]byte
		for j := range me {
			me[j] = byte(r.Uint32())
		}
		f := modes.EncodeSquitter(uint8(r.IntN(8)), r.Uint32()&0xFF, me)
		if i%3 == 0 {
			f = modes.EncodeNonTransponder(uint8(r.IntN(8)), r.Uint32()&0xFF, me)
		}
		tr.Update(&f, at(float64(i)/100))
	}
	b := tr.AppendAircraftJSON(nil, at(31))
	var v struct {
		Now      float64
		Messages float64
		Aircraft []map[string]any
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	if len(v.Aircraft) < 200 || v.Messages == 0 || v.Now != 1_700_000_031 {
		t.Errorf("%d aircraft, %v messages, now %v", len(v.Aircraft), v.Messages, v.Now)
	}
	var table bytes.Buffer
	if err := tr.WriteTable(&table, at(31)); err != nil || strings.Count(table.String(), "\n") != 2+len(v.Aircraft) {
		t.Errorf("table of %d lines, %v", strings.Count(table.String(), "\n"), err)
	}
}

// TestRealTraffic follows the aircraft of the peer's 2,000 frames.
func TestRealTraffic(t *testing.T) {
	tr := New(Config{Reference: modes.Some(modes.LatLon{Lat: 52, Lon: 4})})
	for i, l := range vectors.Lines(t, "modes/sample_data_adsb.csv.gz") {
		c := strings.Split(strings.ReplaceAll(l, `"`, ""), ",")
		f := hexFrame(t, c[1])
		second, err := strconv.ParseInt(c[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		tr.Update(&f, time.Unix(second, int64(i)*1e5)) // times are whole seconds
	}
	s := tr.Stats()
	if s.Messages != 2000 || s.Global+s.Local < 900 || s.BadSpeed > 0 || s.BadRange > 0 {
		t.Errorf("%+v", s)
	}
	for a := range tr.All() {
		if !a.Callsign.OK() || !a.Position.OK() || !a.GroundSpeed.OK() {
			t.Errorf("%v: %+v %+v %+v", a.Address, a.Callsign, a.Position, a.GroundSpeed)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add([]byte("\x8d\x40\x6b\x90\x20\x15\xa6\x78\xd4\xd2\x20\xaa\x4b\xda"), int64(1))
	f.Fuzz(func(t *testing.T, data []byte, step int64) {
		tr := New(Config{MaxAircraft: 8})
		now := epoch
		for len(data) >= 7 {
			n := min(len(data), 14)
			if data[0]&0x80 == 0 {
				n = 7
			}
			fr, err := modes.NewFrame(data[:n])
			data = data[n:]
			if err != nil {
				break
			}
			switch fr.DF() { // make the parity fit, so that the content counts
			case 11, 17, 18:
				modes.SetParity(fr.Bytes(), 0)
			default:
				modes.SetParity(fr.Bytes(), 0x4b1a2c)
				tr.filter.AddKnown(0x4b1a2c)
			}
			now = now.Add(time.Duration(step))
			if step > 1e15 || step < -1e15 {
				step = 1
			}
			tr.Update(&fr, now)
		}
		if tr.Len() > 8 {
			t.Errorf("%d aircraft", tr.Len())
		}
		if b := tr.AppendAircraftJSON(nil, now); !json.Valid(b) {
			t.Errorf("%s", b)
		}
	})
}

// traffic returns frames of n aircraft as they mix on the air.
func traffic(n int) (out []modes.Frame) {
	r := rand.New(rand.NewPCG(1, 1))
	for i := range n {
		a := 0x400000 + uint32(i)
		p := modes.LatLon{Lat: 45 + 10*r.Float64(), Lon: 10 * r.Float64()}
		pos := func(odd bool) modes.Frame {
			return modes.EncodeSquitter(5, a, modes.EncodeAirbornePosition(11, modes.Some(int32(30000)), modes.CPREncode(p, modes.CPRAirborne, odd)))
		}
		vel := modes.EncodeSquitter(5, a, modes.EncodeVelocity(modes.Some(300.0), modes.Some(-200.0), modes.Some(int32(640)), modes.Barometric, modes.Some(int32(100))))
		out = append(out, pos(false), vel, pos(true), vel, modes.EncodeAllCall(5, a, modes.Interrogator{}),
			modes.EncodeSurveillance(4, 0, modes.EncodeAltitude(30000), a), modes.EncodeSquitter(5, a, modes.EncodeIdentification(0xA3, "BENCH1")))
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return
}

func BenchmarkUpdate(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
	}{{"1k", 1000}, {"20k", 20000}} {
		b.Run("aircraft="+c.name, func(b *testing.B) {
			frames := traffic(c.n)
			tr := New(Config{})
			now := epoch
			i := 0
			for range 2 * len(frames) {
				tr.Update(&frames[i%len(frames)], now)
				i++
			}
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(100 * time.Microsecond)
				tr.Update(&frames[i%len(frames)], now)
				i++
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mmsg/s")
		})
	}
}

func BenchmarkUpdateCommB(b *testing.B) {
	f := hexFrame(b, "a0001910a3d9f532bfec007ae77d")
	tr := New(Config{})
	tr.filter.AddKnown(f.Remainder())
	now := epoch
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		tr.Update(&f, now)
	}
}

func TestUpdateAllocatesNothing(t *testing.T) {
	frames := traffic(10)
	commb := hexFrame(t, "a0001910a3d9f532bfec007ae77d")
	tr := New(Config{})
	tr.filter.AddKnown(commb.Remainder())
	frames = append(frames, commb)
	now := epoch
	all := func() {
		for i := range frames {
			now = now.Add(time.Second)
			tr.Update(&frames[i], now)
		}
	}
	all()
	if n := testing.AllocsPerRun(20, all); n != 0 {
		t.Errorf("%v allocations in %d frames", n, len(frames))
	}
}

// TestUpdateForgetsAddresses: by the time of day too, a reply whose parity is its
// address is believed only soon after a clean frame.
func TestUpdateForgetsAddresses(t *testing.T) {
	tr := New(Config{})
	now := time.Unix(1_796_100_000, 0)
	clean := modes.EncodeAllCall(5, 0x4b1a2c, modes.Interrogator{})
	reply := modes.EncodeSurveillance(4, 0, modes.EncodeAltitude(38000), 0x4b1a2c)
	if _, _, r := tr.Update(&clean, now); r != modes.Accepted {
		t.Fatal(r)
	}
	for after, want := range map[time.Duration]modes.Reason{time.Second: modes.Accepted, 48 * time.Hour: modes.RejectedAddress} {
		if _, _, r := tr.Update(&reply, now.Add(after)); r != want {
			t.Errorf("%v later: %v", after, r)
		}
	}
}
