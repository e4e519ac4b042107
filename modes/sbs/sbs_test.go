package sbs

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"signalbox.example/modes"
)

var now = time.Date(2024, 1, 2, 15, 4, 5, 6e6, time.UTC)

func decode(t testing.TB, s string) *modes.Message {
	t.Helper()
	f, err := modes.ParseHex(s)
	if err != nil {
		t.Fatal(err)
	}
	var m modes.Message
	if err := modes.Decode(&f, &m); err != nil {
		t.Fatal(err)
	}
	return &m
}

const stamp = "2024/01/02,15:04:05.006,2024/01/02,15:04:05.006"

func TestLines(t *testing.T) {
	pos := modes.Some(modes.LatLon{Lat: 52.26578, Lon: 3.93891})
	for _, c := range []struct {
		hex  string
		pos  modes.Opt[modes.LatLon]
		want string
	}{
		{"8d406b902015a678d4d220aa4bda", modes.Opt[modes.LatLon]{}, "MSG,1,1,1,406B90,1," + stamp + ",EZY85MH,,,,,,,,,,,0"},
		{"8d40621d58c386435cc412692ad6", pos, "MSG,3,1,1,40621D,1," + stamp + ",,38000,,,52.26578,3.93891,,,0,,0,0"},
		{"95c60bf13b4db286b30fc180d20d", modes.Opt[modes.LatLon]{}, "MSG,2,1,1,~C60BF1,1," + stamp + ",,,28,256,,,,,,,,-1"},
		{"8d485020994409940838175b284f", modes.Opt[modes.LatLon]{}, "MSG,4,1,1,485020,1," + stamp + ",,,159,183,,,-832,,,,,0"},
		{"20000098ccea07", modes.Opt[modes.LatLon]{}, "MSG,5,1,1,4B1A2C,1," + stamp + ",,0,,,,,,,0,,0,0"},
		{"28000aaa01bee5", modes.Opt[modes.LatLon]{}, "MSG,6,1,1,4B1A2C,1," + stamp + ",,,,,,,,7700,0,-1,0,0"},
		{"020007a0d08ff4", modes.Opt[modes.LatLon]{}, "MSG,7,1,1,AB92A2,1," + stamp + ",,10600,,,,,,,,,,0"},
		{"5d4b1a2c1be761", modes.Opt[modes.LatLon]{}, "MSG,8,1,1,4B1A2C,1," + stamp + ",,,,,,,,,,,,0"},
	} {
		var s Message
		if !s.Fill(decode(t, c.hex), c.pos, now) {
			t.Errorf("%s: no line", c.hex)
			continue
		}
		got := string(s.Append(nil))
		if got != c.want+"\r\n" {
			t.Errorf("%s:\n%s, want\n%s", c.hex, got, c.want)
		}
		if n := strings.Count(got, ","); n != numFields-1 {
			t.Errorf("%s: %d fields", c.hex, n+1)
		}
		var again Message
		if err := Parse([]byte(got), &again); err != nil {
			t.Errorf("%s: %v", got, err)
		} else if b := string(again.Append(nil)); b != got {
			t.Errorf("%s read and written is %s", got, b)
		}
	}
	var s Message
	if s.Fill(decode(t, statusFrame()), modes.Opt[modes.LatLon]{}, now) {
		t.Error("an operational status has no line")
	}
}

func statusFrame() string {
	f := modes.EncodeSquitter(5, 0x406b90, modes.EncodeStatus(modes.OperationalStatus{}))
	return f.String()
}

func TestSquawkHasFourDigits(t *testing.T) {
	s := Message{Type: SurveillanceID, Squawk: modes.Some(modes.Squawk(0x0021))}
	if got := string(s.Append(nil)); !strings.Contains(got, ",0021,") {
		t.Error(got)
	}
}

func TestParse(t *testing.T) {
	var m Message
	line := "MSG,3,5,276,4010E9,10057,2008/11/28,14:53:49.986,2008/11/28,14:58:51.153,,28000,,,53.02551,-2.91389,,0021,-1,0,0,0"
	if err := Parse([]byte(line), &m); err != nil {
		t.Fatal(err)
	}
	want := Message{Type: 3, Session: 5, AircraftID: 276, FlightID: 10057, Address: modes.Address{Value: 0x4010e9},
		Generated: time.Date(2008, 11, 28, 14, 53, 49, 986e6, time.UTC), Logged: time.Date(2008, 11, 28, 14, 58, 51, 153e6, time.UTC),
		Altitude: modes.Some(int32(28000)), Position: modes.Some(modes.LatLon{Lat: 53.02551, Lon: -2.91389}), Squawk: modes.Some(modes.Squawk(0x21)),
		Alert: modes.Some(true), Emergency: modes.Some(false), SPI: modes.Some(false), OnGround: modes.Some(false)}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v", m)
	}
	for field, bad := range map[int]string{2: "9", 3: "x", 5: "4010E", 7: "2008-11-28", 11: "TOO LONG SIGN", 12: "1e3", 13: "NaN", 15: "91", 16: "-181", 17: "fast", 18: "8000", 19: "2", 22: "yes"} {
		fields := strings.Split(line, ",")
		fields[field-1] = bad
		err := Parse([]byte(strings.Join(fields, ",")), &m)
		if !errors.Is(err, ErrLine) || !reflect.DeepEqual(m, want) {
			t.Errorf("field %d %q: %v", field, bad, err)
		}
	}
	for _, l := range []string{"", "MSG", line + ",", line[:len(line)-2], "AIR" + line[3:]} {
		if err := Parse([]byte(l), &m); !errors.Is(err, ErrLine) {
			t.Errorf("%q: %v", l, err)
		}
	}
}

func TestMessages(t *testing.T) {
	line := "MSG,8,1,1,4B1A2C,1," + stamp + ",,,,,,,,,,,,0\r\n"
	in := line + "\n" + "STA,junk\n" + strings.Repeat("x", 2000) + "\n" + line + strings.TrimSpace(line)
	good, bad := 0, 0
	for m, err := range Messages(iotest.OneByteReader(strings.NewReader(in))) {
		switch {
		case err == nil && m.Address.Value == 0x4b1a2c:
			good++
		case errors.Is(err, ErrLine):
			bad++
		default:
			t.Error(err)
		}
	}
	if good != 3 || bad != 2 {
		t.Errorf("%d good, %d bad", good, bad)
	}
	broken := errors.New("broken")
	var last error
	for _, err := range Messages(iotest.ErrReader(broken)) {
		last = err
	}
	if last != broken {
		t.Error(last)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("MSG,3,5,276,4010E9,10057,2008/11/28,14:53:49.986,2008/11/28,14:58:51.153,,28000,,,53.02551,-2.91389,,0000,0,0,0,0")
	f.Add("MSG,1,1,1,~C60BF1,1,,,,,AB C,,,,,,,,,,,")
	f.Fuzz(func(t *testing.T, line string) {
		var a, b Message
		if Parse([]byte(line), &a) != nil {
			return
		}
		out := a.Append(nil)
		if err := Parse(out, &b); err != nil {
			t.Fatalf("%q became %q: %v", line, out, err)
		}
		if again := b.Append(nil); string(again) != string(out) {
			t.Errorf("%q, then %q", out, again)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	var s Message
	s.Fill(decode(b, "8d40621d58c386435cc412692ad6"), modes.Some(modes.LatLon{Lat: 52.26578, Lon: 3.93891}), now)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = s.Append(buf[:0])
	}
}
