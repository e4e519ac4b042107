package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"signalbox.example/examples/adsb/recording"
	"signalbox.example/internal/vectors"
	"signalbox.example/modes"
	"signalbox.example/modes/avr"
	"signalbox.example/modes/beast"
)

// command runs the program on in and returns what it wrote.
func command(t *testing.T, in io.Reader, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	status = runContext(ctx, args, in, &out, &errs)
	return status, out.String(), errs.String()
}

func write(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	odd := write(t, "odd", append(bytes.Clone(recording.UC8), 1))
	text := write(t, "text", []byte("neither frames\nnor samples\n"))
	for _, c := range []struct {
		args   []string
		status int
		want   string // in the one line on stderr
	}{
		{[]string{"-bogus"}, 2, "bogus"},
		{[]string{"file"}, 2, "unexpected argument"},
		{[]string{"-raw", "-json"}, 2, "choose one"},
		{[]string{"-format", "wav"}, 2, "unknown -format"},
		{[]string{"-format", "sc16"}, 2, "needs an input"},
		{[]string{"-in", odd, "-raw"}, 1, "inside a sample"},
		{[]string{"-in", odd, "-format", "cf32"}, 1, "multiple of the 8 bytes"},
		{[]string{"-in", filepath.Join(dir, "none")}, 1, "no such file"},
		{[]string{"-in", dir}, 1, "is a folder"},
		{[]string{"-in", text, "-format", "avr"}, 1, "no frame of format avr"},
		{[]string{"-in", text, "-format", "hex"}, 1, "no frame of format hex"},
		{[]string{"-in", text, "-format", "beast"}, 1, "no frame of format beast"},
		{[]string{"-in", text, "-format", "avr", "-repair", "soft"}, 2, "needs samples"},
		{[]string{"-rate", "1000000"}, 2, "-rate"},
		{[]string{"-repair", "3"}, 2, "-repair"},
		{[]string{"-effort", "none"}, 2, "-effort"},
		{[]string{"-ref", "91,0"}, 2, "-ref"},
		{[]string{"-ref", "52"}, 2, "-ref"},
		{[]string{"-known", "xyz"}, 2, "-known"},
		{[]string{"-known", "4b1a2c,1234567"}, 2, "-known"},
		{[]string{"-in", "http://localhost"}, 2, "unknown source"},
		{[]string{"-in", "beast://localhost:1", "-format", "avr"}, 2, "does not go with"},
		{[]string{"-in", "rtltcp://localhost:1", "-format", "sc16"}, 2, "uc8"},
		{[]string{"-in", "-", "-loop"}, 2, "-loop"},
		{[]string{"-interactive"}, 2, "terminal"},
		{[]string{"-net", "-port-http", "70000"}, 2, "port"},
		{[]string{"-gain", "loud"}, 2, "-gain"},
		{[]string{"-max-range", "0"}, 2, "-max-range"},
	} {
		status, _, stderr := command(t, strings.NewReader(""), c.args...)
		if status != c.status || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "adsb: ") || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: status %d, %q", c.args, status, stderr)
		}
	}
	status, stdout, stderr := command(t, nil, "-h")
	if status != 0 || stderr != "" || !strings.Contains(stdout, "usage: adsb") || !strings.Contains(stdout, "-repair") {
		t.Errorf("-h: %d, %q", status, stderr)
	}
}

// built returns the distinct frames of the built-in recording.
func built(t *testing.T) map[string]bool {
	want := map[string]bool{}
	for l := range strings.Lines(recording.Frames) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			want[l] = true
		}
	}
	return want
}

func TestBuiltInRecording(t *testing.T) {
	status, stdout, stderr := command(t, nil)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s", status, stderr)
	}
	for _, want := range []string{"4d2023  AMC421    20275     372     36.971    13.851    158 ", "406b90  EZY85MH   35975     494     51.144    7.256     285 ", "~c60bf1           ground    28  "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	for _, args := range [][]string{{"-repair", "none"}, {"-repair", "1"}, {"-repair", "2"}, {"-repair", "soft"}, {"-effort", "fast"}, {"-effort", "max"}} {
		_, stdout, _ := command(t, nil, append(args, "-raw")...)
		want := built(t)
		found := map[string]bool{}
		for l := range strings.Lines(stdout) {
			hex := strings.ToLower(strings.Trim(l, "*;\n"))
			if !want[hex] {
				t.Errorf("%q: %s was not sent", args, hex)
			}
			found[hex] = true
		}
		if len(found) < len(want)-1 {
			t.Errorf("%q: %d of %d frames", args, len(found), len(want))
		}
	}
}

func TestJSONKeys(t *testing.T) {
	allowed := strings.Fields("hex df icao address_kind accepted reason tc subtype callsign category altitude_ft altitude_source " +
		"ground_speed_kt ias_kt tas_kt mach track_deg heading_deg vertical_rate_fpm vertical_rate_source geometric_minus_baro_ft " +
		"squawk emergency lat lon on_ground version nic nacp sil bds repaired_bits signal_dbfs time_12mhz")
	seen := map[string]bool{}
	status := modes.OperationalStatus{NACp: modes.Some(uint8(9)), SIL: modes.Some(uint8(3)), NICbaro: modes.Some(true)}
	fs := []modes.Frame{modes.EncodeSquitter(5, 0x4b1a2c, modes.EncodeStatus(status)),
		modes.EncodeSquitter(5, 0x4b1a2c, modes.EncodeIdentification(0xA3, "KEYS")),
		modes.EncodeSquitter(5, 0x4b1a2c, modes.EncodeEmergency(modes.EmergencyMedical, 0x1234)),
		modes.EncodeSurveillance(4, 0, 0, 0x999999)}
	var hexes []string
	for i := range fs {
		hexes = append(hexes, fs[i].String())
	}
	for range 2 {
		_, stdout, stderr := command(t, strings.NewReader(strings.Join(hexes, "\n")), "-in", "-", "-format", "hex", "-json", "-all")
		_, more, _ := command(t, nil, "-json")
		if stderr != "" {
			t.Error(stderr)
		}
		for l := range strings.Lines(stdout + more) {
			var m map[string]any
			if err := json.Unmarshal([]byte(l), &m); err != nil {
				t.Fatalf("%v in %s", err, l)
			}
			for k, v := range m {
				seen[k] = true
				if !slices.Contains(allowed, k) {
					t.Errorf("key %q in %s", k, l)
				}
				if v == nil || v == "" {
					t.Errorf("empty %q in %s", k, l)
				}
			}
			if b, ok := m["bds"]; ok {
				for _, e := range b.([]any) {
					for _, k := range []string{"code", "score", "fields"} {
						if _, ok := e.(map[string]any)[k]; !ok {
							t.Errorf("no %q in %s", k, l)
						}
					}
				}
			}
		}
	}
	for _, k := range allowed {
		if !seen[k] {
			t.Errorf("no message had %q", k)
		}
	}
}

func TestMessages(t *testing.T) {
	in := "8d4b1a2c990001002004014d0a4e\n8d4b1a2c99000000000000ccbea0\n95c60bf13b4db286b30fc180d20d\n20000098ccea07\n" +
		"8d406b902095a678d4d220aa4bda\n*020007a0d08ff4;\n"
	_, stdout, _ := command(t, strings.NewReader(in), "-in", "-", "-format", "hex", "-json", "-all", "-known", "ab92a2")
	want := []string{
		`{"hex":"8d4b1a2c990001002004014d0a4e","df":17,"icao":"4b1a2c","address_kind":"icao","accepted":true,"tc":19,"subtype":1,"ground_speed_kt":0,"vertical_rate_fpm":0,"vertical_rate_source":"gnss","geometric_minus_baro_ft":0,"on_ground":false,"repaired_bits":0}`,
		`{"hex":"8d4b1a2c99000000000000ccbea0","df":17,"icao":"4b1a2c","address_kind":"icao","accepted":true,"tc":19,"subtype":1,"on_ground":false,"repaired_bits":0}`,
		`{"hex":"95c60bf13b4db286b30fc180d20d","df":18,"icao":"~c60bf1","address_kind":"tisb_non_icao","accepted":true,"tc":7,"ground_speed_kt":28,"track_deg":255.938,"on_ground":true,"repaired_bits":0}`,
		`{"hex":"20000098ccea07","df":4,"icao":"4b1a2c","address_kind":"icao","accepted":true,"altitude_ft":0,"altitude_source":"baro","on_ground":false,"repaired_bits":0}`,
		`{"hex":"8d406b902095a678d4d220aa4bda","df":17,"accepted":false,"reason":"parity","repaired_bits":0}`,
		`{"hex":"020007a0d08ff4","df":0,"icao":"ab92a2","address_kind":"icao","accepted":true,"altitude_ft":10600,"altitude_source":"baro","on_ground":false,"repaired_bits":0}`,
	}
	if got := strings.Split(strings.TrimSpace(stdout), "\n"); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", stdout, strings.Join(want, "\n"))
	}
	_, stdout, _ = command(t, strings.NewReader(in), "-in", "-", "-format", "hex", "-raw", "-repair", "1")
	if !strings.Contains(stdout, "*8D406B902015A678D4D220AA4BDA;\n") || strings.Count(stdout, "\n") != 5 {
		t.Errorf("-repair 1: %s", stdout)
	}
}

// convert makes the built-in recording into another sample format.
func convert(format string) (out []byte) {
	for _, c := range recording.UC8 {
		v := (float64(c) - 127.4) / 128
		switch format {
		case "uc8":
			out = append(out, c)
		case "cs8":
			out = append(out, byte(int8(math.Round(v*128-0.1))))
		case "sc16":
			out = binary.LittleEndian.AppendUint16(out, uint16(int16(v*32000)))
		case "sc16q11":
			out = binary.LittleEndian.AppendUint16(out, uint16(int16(v*2040)))
		case "cf32":
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
		}
	}
	return
}

func TestFormats(t *testing.T) {
	_, want, _ := command(t, nil, "-raw")
	n := strings.Count(want, "\n")
	for _, format := range []string{"uc8", "cs8", "sc16", "sc16q11", "cf32"} {
		data := convert(format)
		for _, in := range []string{"-", write(t, format, data)} {
			status, stdout, stderr := command(t, bytes.NewReader(data), "-in", in, "-format", format, "-raw")
			if got := strings.Count(stdout, "\n"); status != 0 || got < n-1 || got > n+1 {
				t.Errorf("%s from %s: %d frames, want %d; %s", format, in, got, n, stderr)
			}
		}
	}
	var text, binaryStream []byte
	for hex := range built(t) {
		f, _ := modes.ParseHex(hex)
		if f.DF() == 17 {
			text, binaryStream = avr.Append(text, &f), beast.Append(binaryStream, &f)
		}
	}
	n = bytes.Count(text, []byte("\n"))
	for format, data := range map[string][]byte{"avr": text, "hex": text, "beast": binaryStream} {
		status, stdout, stderr := command(t, bytes.NewReader(data), "-in", "-", "-format", format, "-raw")
		if got := strings.Count(stdout, "\n"); status != 0 || got != n {
			t.Errorf("%s: %d frames, want %d; %s", format, got, n, stderr)
		}
	}
}

// TestModes1 is acceptance 2: the recording that came with the first dump1090.
func TestModes1(t *testing.T) {
	path := vectors.Path(t, "modes/modes1.bin")
	consensus := map[string]bool{}
	for _, l := range vectors.Lines(t, "modes/modes1.consensus2.hex") {
		consensus[l] = true
	}
	status, stdout, stderr := command(t, nil, "-in", path, "-format", "uc8", "-rate", "2000000", "-repair", "1", "-raw")
	if status != 0 || stderr != "" {
		t.Fatalf("%d %s", status, stderr)
	}
	found := map[string]bool{}
	lines := 0
	for l := range strings.Lines(stdout) {
		lines++
		hex := strings.ToLower(strings.Trim(l, "*;\n"))
		found[hex] = true
		rightParity(t, hex, 0x4d2023)
	}
	n := 0
	for hex := range found {
		if consensus[hex] {
			n++
		}
	}
	if n < 160 || lines < 300 {
		t.Errorf("%d of 193 frames, %d messages", n, lines)
	}
	t.Logf("%d of 193 frames, %d distinct, %d messages", n, len(found), lines)
}

// TestBug19LastBuffer: the first dump1090 forgot the buffer that the end of the
// file cut short, and found 217 messages where it finds 284 with silence after
// the file. Silence must change nothing, and pieces must not either.
func TestBug19LastBuffer(t *testing.T) {
	iq := vectors.Read(t, "modes/modes1.bin")
	args := []string{"-in", "-", "-rate", "2000000", "-repair", "1", "-raw"}
	_, want, _ := command(t, bytes.NewReader(iq), args...)
	padded := append(bytes.Clone(iq), bytes.Repeat([]byte{127}, 1<<20)...)
	if _, got, _ := command(t, bytes.NewReader(padded), args...); got != want {
		t.Errorf("%d messages, %d with silence after them", strings.Count(want, "\n"), strings.Count(got, "\n"))
	}
	if _, got, _ := command(t, iotest.HalfReader(bytes.NewReader(iq)), args...); got != want {
		t.Errorf("%d messages, %d in pieces", strings.Count(want, "\n"), strings.Count(got, "\n"))
	}
}

// rightParity checks a frame by the rule of its kind: DF17 and DF18 remainder
// 0, DF11 an interrogator code, others one of the known addresses.
func rightParity(t *testing.T, hex string, known ...uint32) {
	t.Helper()
	f, err := modes.ParseHex(hex)
	if err != nil {
		t.Error(err)
		return
	}
	r := f.Remainder()
	switch f.DF() {
	case 17, 18:
		if r != 0 {
			t.Errorf("%s: remainder %06x", hex, r)
		}
	case 11:
		if r > 0x4F {
			t.Errorf("%s: remainder %06x", hex, r)
		}
	default:
		if !slices.Contains(known, r) {
			t.Errorf("%s: remainder %06x is no known address", hex, r)
		}
	}
}

// TestRealCaptures is acceptance 3: three captures at 2.4 Msps and what three
// other receivers agree to be in them; what is found beyond is listed.
func TestRealCaptures(t *testing.T) {
	for name, c := range map[string]struct {
		want, more string
	}{
		"1641427457780": {"8dad929358b9c6273f002169c02e 8daa2bc4f82100020049b8db9449 02e1971ce17c84 8da0aaa058bf163fcf860013e840",
			"8dab1db2990ca52e1804acba05ad 8dabc329990c0e162070978021db 5dacf497096899 8dacf497582b76194ee8aef76714 8dacf497990cb790b098954cda65"},
		"1641428106243": {"8da8aac8990c30b51808aa24e573 02e19838bff1d9 8dada6b9990cf61e4848af2a8656 8da4ba025885462008fa0a4a6eb2 8da70bd158b99203f07f5b00f2ac 8da4ba0299115f301074a72db6ff",
			"8da6b87a58c3822188c513aa8ea1 02e192bed12058 8dad2ea4990c8629b844a0d5067f"},
		"1641428165033": {"8da79de99909932f780c9e2f2f8f 8dac04d358a7820a86ac3709e689 8dac04d3ea4288669b5c082751d4 8da79de958bdf59c85104874adad 5dad92936265f5",
			"8da4fd6f9909ea203804b01b9649 5da70bd17359a0 5daa88d233905b"},
	} {
		path := vectors.Path(t, "modes/test_"+name+".iq")
		want, more := strings.Fields(c.want), strings.Fields(c.more)
		// With one bit repaired by parity the only squitter of ad9293 counts as
		// repaired and does not vouch for its DF0. Soft repair finds it clean, and
		// more frames still.
		for _, flags := range [][]string{{"-repair", "1", "-known", "ad9293"}, {"-repair", "soft"}} {
			_, stdout, stderr := command(t, nil, append(flags, "-in", path, "-format", "sc16", "-raw")...)
			if stderr != "" {
				t.Error(stderr)
			}
			found, known := map[string]bool{}, []uint32{}
			for l := range strings.Lines(stdout) {
				hex := strings.ToLower(strings.Trim(l, "*;\n"))
				found[hex] = true
				if f, err := modes.ParseHex(hex); err == nil && (f.DF() == 17 || f.DF() == 11) {
					var m modes.Message
					modes.Decode(&f, &m)
					known = append(known, m.Address.Value)
				}
			}
			for _, hex := range want {
				if !found[hex] {
					t.Errorf("%s %v: %s not found", name, flags, hex)
				}
			}
			for hex := range found {
				rightParity(t, hex, known...)
				if slices.Contains(want, hex) || slices.Contains(more, hex) {
					continue
				}
				t.Errorf("%s %v: %s is not in the list", name, flags, hex)
			}
		}
	}
}

// safeBuffer is a buffer that a test may read while the program writes.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start runs the program until the test ends and returns its addresses.
func start(t *testing.T, args ...string) (addr map[string]string, out *safeBuffer) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr safeBuffer
	done := make(chan int, 1)
	args = append([]string{"-net", "-port-avr-in", "0", "-port-avr", "0", "-port-sbs", "0", "-port-beast", "0", "-port-http", "0"}, args...)
	go func() { done <- runContext(ctx, args, strings.NewReader(""), &stdout, &stderr) }()
	t.Cleanup(func() {
		cancel()
		select {
		case status := <-done:
			if status != 0 {
				t.Errorf("status %d: %s", status, stderr.String())
			}
		case <-time.After(30 * time.Second):
			t.Error("did not end")
		}
	})
	line := regexp.MustCompile(`adsb: (.+) on (127\.0\.0\.1:\d+)`)
	for range 1000 {
		addr = map[string]string{}
		for _, m := range line.FindAllStringSubmatch(stderr.String(), -1) {
			addr[m[1]] = m[2]
		}
		if len(addr) == 5 {
			return addr, &stdout
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("ports: %s", stderr.String())
	return
}

func connect(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	return conn
}

func TestNetwork(t *testing.T) {
	addr, _ := start(t, "-in", write(t, "empty", nil), "-format", "avr")
	in := connect(t, addr["AVR in"])
	avrOut, sbsOut, beastOut := connect(t, addr["AVR out"]), connect(t, addr["SBS"]), connect(t, addr["Beast"])
	// The outputs start when the server has accepted us: repeat until all came.
	go func() {
		for range 300 {
			if _, err := in.Write([]byte("*8D40621D58C382D690C8AC2863A7;\n*8D40621D58C386435CC412692AD6;\n*8D40621D58C386435CC412692AD7;\n")); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	line, err := bufio.NewReader(avrOut).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "*8D40621D58C38") || strings.Contains(line, "2AD7") {
		t.Errorf("AVR: %q %v", line, err)
	}
	for r := bufio.NewReader(sbsOut); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "MSG,3,1,1,40621D,1,") && strings.Contains(line, ",38000,,,52.2") {
			break
		}
	}
	for f, err := range new(beast.Decoder).Frames(beastOut) {
		if err != nil || !strings.HasPrefix(f.String(), "8d40621d58c38") {
			t.Errorf("Beast: %v %v", f, err)
		}
		break
	}
	var v struct {
		Aircraft []struct {
			Hex string
			Lat float64
		}
	}
	for range 100 {
		r, err := http.Get("http://" + addr["HTTP"] + "/data/aircraft.json")
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if err := json.Unmarshal(b, &v); err != nil {
			t.Fatalf("%v in %s", err, b)
		}
		if len(v.Aircraft) == 1 && v.Aircraft[0].Lat > 52 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if len(v.Aircraft) != 1 || v.Aircraft[0].Hex != "40621d" || math.Abs(v.Aircraft[0].Lat-52.26) > 0.01 {
		t.Errorf("%+v", v)
	}
}

// TestChain: one program's Beast output is another's input.
func TestChain(t *testing.T) {
	addr, _ := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var stdout, stderr safeBuffer
	go func() {
		for range 1000 {
			if strings.Contains(stdout.String(), `"lat":52.2`) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		cancel()
	}()
	if status := runContext(ctx, []string{"-in", "beast://" + addr["Beast"], "-json"}, nil, &stdout, &stderr); status != 0 {
		t.Errorf("%d %s", status, stderr.String())
	}
	if !strings.Contains(stdout.String(), `"lat":52.2`) || !strings.Contains(stdout.String(), "time_12mhz") {
		t.Errorf("%.500s", stdout.String())
	}
}

// TestSamplesAndFramesTogether: frames from a network client, by the clock of
// the wall, and samples, by their own, do not forget each other's addresses.
func TestSamplesAndFramesTogether(t *testing.T) {
	addr, _ := start(t)
	in, out := connect(t, addr["AVR in"]), connect(t, addr["AVR out"])
	go func() {
		for range 300 {
			// A squitter and a reply of an aircraft that is not in the recording,
			// and a squitter of one that is, whose replies are.
			if _, err := in.Write([]byte("*5D4B1A2C1BE761;*20000098CCEA07;*8D4D20232004D0F4CB1820B0EFD4;")); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	got := map[string]int{}
	for r := bufio.NewReader(out); got["*20000098CCEA07;"] < 3 || got["*20000D3375D886;"] < 3; {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %v", err, got)
		}
		got[strings.TrimSpace(line)]++
	}
}

// short is a listener that fails first, as one does without file descriptors.
type short struct {
	net.Listener
	failures int
}

func (s *short) Accept() (net.Conn, error) {
	if s.failures--; s.failures >= 0 {
		return nil, errors.New("too many open files")
	}
	return s.Listener.Accept()
}

// The clock of a recording does not go back for a receiver that was started
// again, wherever its ticks begin, but follows frames that come a little late.
func TestRecordingOfARestartedReceiver(t *testing.T) {
	rx := newReceiver(options{}, bufio.NewWriter(io.Discard))
	begin := rx.clock
	for _, c := range []struct {
		tick, want time.Duration // since the receiver's start, since the first frame
	}{
		{100 * time.Second, 0}, {5000 * time.Second, 4900 * time.Second}, {4999 * time.Second, 4899 * time.Second},
		{5001 * time.Second, 4901 * time.Second}, {1000 * time.Second, 4901 * time.Second}, {1002 * time.Second, 4903 * time.Second},
		{10 * time.Second, 4903 * time.Second}, {11 * time.Second, 4904 * time.Second},
	} {
		f := modes.Frame{HasTime: true, Time12: uint64(c.tick/time.Second) * modes.TicksPerSecond}
		if got := rx.at(&f).Sub(begin); got != c.want {
			t.Errorf("at %v: %v, want %v", c.tick, got, c.want)
		}
	}
}

// Where times are those of the wall, a file is played as fast as it was
// recorded: faster, aircraft would jump and every squitter be a duplicate.
func TestFilesAreLiveOnTheNetwork(t *testing.T) {
	const length = 300 * time.Millisecond
	path := write(t, "iq", bytes.Repeat([]byte{127}, int(2*2_400_000*length/time.Second)))
	o, _, err := parse([]string{"-in", path, "-net"})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := newReceiver(o, bufio.NewWriter(io.Discard)).input(t.Context(), nil, io.Discard); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took < length*8/10 {
		t.Errorf("%v of samples took %v", length, took)
	}
}

func TestTicksOfLongOutages(t *testing.T) {
	const rate = 2_400_000
	for _, days := range []uint64{0, 1, 8, 4000} { // 64 bits of samples times 12 million are a week
		if got, want := ticks(days*86400*rate+7, rate), days*86400*modes.TicksPerSecond+35; got != want {
			t.Errorf("%d days: %d ticks, want %d", days, got, want)
		}
	}
}

func TestPortOutlivesFailures(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan bool)
	go func() {
		accept(t.Context(), &short{l, 3}, func(_ context.Context, conn net.Conn) { io.WriteString(conn, "here") })
		close(ended)
	}()
	if b, err := io.ReadAll(connect(t, l.Addr().String())); string(b) != "here" {
		t.Errorf("%q %v", b, err)
	}
	l.Close()
	<-ended
}

func TestSlowClientIsDropped(t *testing.T) {
	var f fan
	slow, fast := f.join(), f.join()
	got := 0
	for i := range 3 * clientQueue {
		f.send(func(b []byte) []byte { return fmt.Append(b, i) })
		<-fast
		got++
	}
	if got != 3*clientQueue || f.clients[slow] || !f.clients[fast] {
		t.Errorf("%d messages, %d clients", got, len(f.clients))
	}
	f.leave(slow)
	f.leave(fast)
	for range maxClients {
		f.join()
	}
	if f.join() != nil {
		t.Error("one client too many")
	}
}

// TestScreenRestoresTheTerminal looks at what is sent to the terminal.
func TestScreenRestoresTheTerminal(t *testing.T) {
	rx := newReceiver(options{}, bufio.NewWriter(io.Discard))
	var b safeBuffer
	stop := rx.draw(&b, func() int { return 5 }, time.Millisecond)
	f, _ := modes.ParseHex("8d406b902015a678d4d220aa4bda")
	rx.framed(&f)
	for range 1000 {
		if strings.Count(b.String(), home) > 3 && strings.Contains(b.String(), "EZY85MH") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	s := b.String()
	if !strings.HasPrefix(s, enterScreen) || strings.Count(s, enterScreen) != 1 || strings.Count(s, leaveScreen) != 1 {
		t.Errorf("%q", s)
	}
	if after := s[strings.Index(s, leaveScreen):]; !strings.Contains(after, "406b90  EZY85MH") || strings.Contains(after, home) {
		t.Errorf("after leaving: %q", after)
	}
	if got := string(frame([]byte("a\nb\nc\nd\n"), 3)); strings.Contains(got, "c") || !strings.HasSuffix(got, clearBelow) {
		t.Errorf("%q", got)
	}
}
