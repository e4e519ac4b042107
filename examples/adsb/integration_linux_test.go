package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"signalbox.example/examples/adsb/recording"
	"signalbox.example/internal/need"
	"signalbox.example/internal/vectors"
	"signalbox.example/modes"
	"signalbox.example/modes/avr"
	"signalbox.example/modes/beast"
	"signalbox.example/modes/sbs"
)

// daemon starts a program that the test kills, by its process, at its end.
func daemon(t *testing.T, cmd *exec.Cmd) (output string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL) // rtl_tcp does not end otherwise
		cmd.Wait()
		if b, _ := os.ReadFile(out.Name()); t.Failed() {
			t.Logf("%s:\n%.3000s", cmd.Args[0], b)
		}
		out.Close()
	})
	return out.Name()
}

// freePorts returns n ports that nobody listens on at the moment.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, port, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, port)
	}
	return
}

func dialWhenReady(t *testing.T, addr string) net.Conn {
	t.Helper()
	for range 500 {
		if conn, err := net.Dial("tcp", addr); err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("nobody listens on " + addr)
	return nil
}

// stream returns frames of real aircraft and of sixty made ones, such that two
// decoders should see the same.
func stream(t *testing.T) (out []modes.Frame) {
	for l := range strings.Lines(recording.Frames) {
		if l = strings.TrimSpace(l); l != "" && l[0] != '#' {
			f, err := modes.ParseHex(l)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, f)
		}
	}
	r := rand.New(rand.NewPCG(11, 12))
	var even, rest, odd []modes.Frame
	for i := range uint32(60) {
		a := 0x3c0000 + i*0x101
		p := modes.LatLon{Lat: 51 + 2*r.Float64(), Lon: 3 + 2*r.Float64()}
		alt := int32(r.IntN(1600))*25 + 1000
		rate := modes.Some(int32(r.IntN(60)-30) * 64)
		source := modes.AltitudeSource(r.IntN(2))
		callsign := modes.EncodeIdentification(modes.Category(0xA1+i%7), fmt.Sprintf("TST%d", 100+i))
		squawk := modes.Squawk(r.IntN(8)<<12 | r.IntN(8)<<8 | r.IntN(8)<<4 | r.IntN(8))
		if i%6 == 5 { // on the ground
			me := func(odd bool) modes.Frame {
				return modes.EncodeSquitter(4, a, modes.EncodeSurfacePosition(7, modes.Some(float64(r.IntN(60))), modes.Some(float64(r.IntN(128))*360/128), modes.CPREncode(p, modes.CPRSurface, odd)))
			}
			even, odd = append(even, me(false)), append(odd, me(true))
		} else {
			me := func(odd bool) modes.Frame {
				return modes.EncodeSquitter(5, a, modes.EncodeAirbornePosition(uint8(9+i%10), modes.Some(alt), modes.CPREncode(p, modes.CPRAirborne, odd)))
			}
			even, odd = append(even, me(false)), append(odd, me(true))
			scale := 400.0
			if i%6 == 1 {
				scale = 1500 // supersonic
			}
			rest = append(rest, modes.EncodeSquitter(5, a, modes.EncodeVelocity(modes.Some(math.Round(scale*(2*r.Float64()-1))), modes.Some(math.Round(scale*(2*r.Float64()-1))), rate, source, modes.Opt[int32]{})))
			ac := modes.EncodeAltitude(alt)
			if i%3 == 0 {
				ac = modes.EncodeGillham(alt)
			}
			rest = append(rest, modes.EncodeSurveillance(4, 0, ac, a), modes.EncodeAirAir(false, 0, ac, a))
		}
		rest = append(rest, modes.EncodeSquitter(5, a, callsign), modes.EncodeSurveillance(5, 0, modes.EncodeSquawk(squawk), a))
	}
	out = append(out, even...)
	out = append(out, rest...)
	return append(out, odd...)
}

type aircraftFile struct {
	Now      float64
	Aircraft []map[string]any
}

func (f *aircraftFile) find(hex string) map[string]any {
	for _, a := range f.Aircraft {
		if a["hex"] == hex {
			return a
		}
	}
	return nil
}

// TestIntegrationDump1090 is acceptance 6: the same AVR stream, every frame
// twice, into this program and into Debian's dump1090-mutability; what both
// write as aircraft.json is compared field by field.
func TestIntegrationDump1090(t *testing.T) {
	need.Asked(t, "dump1090")
	program := need.Commands(t, "dump1090", "dump1090-mutability")[0]
	addr, _ := start(t, "-in", write(t, "empty", nil), "-format", "avr", "-ref", "52,4")
	dir := t.TempDir()
	p := freePorts(t, 5)
	daemon(t, exec.Command(program, "--net-only", "--net-bind-address", "127.0.0.1", "--net-ri-port", p[0], "--net-ro-port", p[1],
		"--net-sbs-port", p[2], "--net-bi-port", p[3], "--net-bo-port", p[4], "--write-json", dir, "--write-json-every", "1",
		"--lat", "52", "--lon", "4", "--quiet"))
	theirs, ours := dialWhenReady(t, "127.0.0.1:"+p[0]), dialWhenReady(t, addr["AVR in"])
	frames := stream(t)
	for i := range frames {
		line := fmt.Appendf(nil, "*%s;\n*%s;\n", frames[i].String(), frames[i].String())
		for _, conn := range []net.Conn{theirs, ours} {
			if _, err := conn.Write(line); err != nil {
				t.Fatal(err)
			}
		}
		// dump1090 pairs halves by milliseconds.
		time.Sleep(4 * time.Millisecond)
	}
	want := map[string]bool{}
	var m modes.Message
	for i := range frames {
		modes.Decode(&frames[i], &m)
		want[m.Address.String()] = true
	}
	var they, we aircraftFile
	for range 40 {
		time.Sleep(250 * time.Millisecond)
		b, err := os.ReadFile(filepath.Join(dir, "aircraft.json"))
		if err != nil || json.Unmarshal(b, &they) != nil || len(they.Aircraft) < len(want) {
			continue
		}
		if last := they.find("3c3b3b"); last != nil && last["lat"] != nil { // the last frame's
			break
		}
	}
	r, err := http.Get("http://" + addr["HTTP"] + "/data/aircraft.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&we); err != nil {
		t.Fatal(err)
	}
	if len(they.Aircraft) != len(want) || len(we.Aircraft) != len(want) {
		t.Errorf("%d aircraft were sent, they have %d, we %d", len(want), len(they.Aircraft), len(we.Aircraft))
	}
	compared := map[string]int{}
	for hex := range want {
		a, b := they.find(hex), we.find(hex)
		if a == nil || b == nil {
			t.Errorf("%s: they %v, we %v", hex, a, b)
			continue
		}
		check := func(field, other string, within float64) {
			x, y := a[field], b[other]
			if field == "category" && x == "A0" && y == nil {
				return // "no information": absent here
			}
			if x == nil && y == nil {
				return
			}
			compared[field]++
			nx, okx := x.(float64)
			ny, oky := y.(float64)
			if okx && oky {
				d := math.Abs(nx - ny)
				if field == "track" {
					d = min(d, 360-d)
				}
				if d <= within {
					return
				}
			} else if x == y {
				return
			}
			t.Errorf("%s: they %s %v, we %s %v", hex, field, x, other, y)
		}
		check("squawk", "squawk", 0)
		check("flight", "flight", 0)
		check("category", "category", 0)
		check("altitude", "alt_baro", 0)
		if hex == "ad9293" || hex == "a4ba02" {
			// One position each, of aircraft over America: they decode it near the
			// receiver, which is wrong; here a pair comes first.
			if b["lat"] != nil {
				t.Errorf("%s: a position from one message: %v", hex, b["lat"])
			}
		} else {
			check("lat", "lat", 1.01e-6)
			check("lon", "lon", 1.01e-6)
		}
		// They truncate speeds and tracks, and tracks of negative angle upwards.
		check("speed", "gs", 1)
		check("track", "track", 2)
		// They have one rate, of squitters only; here a Comm-B register may have
		// given the other.
		rate := "baro_rate"
		if b[rate] != a["vert_rate"] {
			rate = "geom_rate"
		}
		check("vert_rate", rate, 0)
		check("messages", "messages", 0)
	}
	t.Logf("%d aircraft, fields compared: %v", len(want), compared)
}

// TestIntegrationDump1090Ports speaks each wire format with the same peer: our
// Beast in, its Beast, AVR and SBS out, read by our readers.
func TestIntegrationDump1090Ports(t *testing.T) {
	need.Asked(t, "dump1090")
	program := need.Commands(t, "dump1090", "dump1090-mutability")[0]
	p := freePorts(t, 5)
	daemon(t, exec.Command(program, "--net-only", "--net-bind-address", "127.0.0.1", "--net-ri-port", p[0], "--net-ro-port", p[1],
		"--net-sbs-port", p[2], "--net-bi-port", p[3], "--net-bo-port", p[4], "--lat", "52", "--lon", "4", "--quiet"))
	avrOut, sbsOut := dialWhenReady(t, "127.0.0.1:"+p[1]), dialWhenReady(t, "127.0.0.1:"+p[2])
	beastIn, beastOut := dialWhenReady(t, "127.0.0.1:"+p[3]), dialWhenReady(t, "127.0.0.1:"+p[4])
	time.Sleep(300 * time.Millisecond) // it looks for new clients now and then
	frames := stream(t)
	sent := map[string]bool{}
	times := map[uint64]string{}
	for i := range frames {
		for k := range 2 {
			f := &frames[i]
			f.Time12, f.HasTime = uint64(i*2+k+1)*0x1a1b+0x1a0000000000, true
			f.Signal, f.HasSignal = -12, true
			sent[f.String()] = true
			times[f.Time12] = f.String()
			if _, err := beastIn.Write(beast.Append(nil, f)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(4 * time.Millisecond)
	}
	// It sends full buffers, and the rest after a while or never: read what
	// comes within a second and expect most of it.
	read := func(conn net.Conn) []byte {
		conn.SetReadDeadline(time.Now().Add(time.Second))
		b, _ := io.ReadAll(conn)
		return b
	}
	n := 0
	d := beast.Decoder{}
	d.Feed(read(beastOut), func(f *modes.Frame) {
		n++
		if times[f.Time12] != f.String() || math.Abs(float64(f.Signal+12)) > 0.1 {
			t.Errorf("Beast: %v at %x, signal %v", f, f.Time12, f.Signal)
		}
	})
	if s := d.Stats(); n < len(frames) || s.Skipped > 0 || s.Cut > 0 {
		t.Errorf("Beast: %d frames of %d, %+v", n, 2*len(frames), s)
	}
	text := 0
	a := avr.Decoder{}
	a.Feed(read(avrOut), func(f *modes.Frame) {
		text++
		if !sent[f.String()] {
			t.Errorf("AVR: %v was not sent", f)
		}
	})
	if s := a.Stats(); text < len(frames) || s.Bad > 0 {
		t.Errorf("AVR: %d frames, %+v", text, s)
	}
	lines, positions := 0, 0
	for m, err := range sbs.Messages(bytes.NewReader(read(sbsOut))) {
		if err != nil {
			t.Errorf("SBS: %v", err)
			continue
		}
		lines++
		if m.Address.String() == "40621d" && m.Position.OK {
			positions++
			if math.Abs(m.Position.V.Lat-52.26) > 0.01 || m.Altitude != modes.Some(int32(38000)) {
				t.Errorf("SBS: %+v", m)
			}
		}
	}
	if lines < len(frames) || positions == 0 {
		t.Errorf("SBS: %d lines, %d positions", lines, positions)
	}
	t.Logf("Beast %d, AVR %d, SBS %d of %d messages", n, text, lines, 2*len(frames))
}

// TestIntegrationDump1090Decode: every real frame of the peers' corpora, 2,000
// DF17 and 10,000 DF20 and DF21, decoded by dump1090-mutability too and
// compared field by field. Addresses of the replies are made known first.
func TestIntegrationDump1090Decode(t *testing.T) {
	need.Asked(t, "dump1090")
	program := need.Commands(t, "dump1090", "dump1090-mutability")[0]
	var frames []modes.Frame
	known := map[string]bool{}
	for file, column := range map[string]int{"adsb": 1, "commb_df20": 2, "commb_df21": 2} {
		for _, l := range vectors.Lines(t, "modes/sample_data_"+file+".csv.gz") {
			c := strings.Split(strings.ReplaceAll(l, `"`, ""), ",")
			f, err := modes.ParseHex(strings.TrimSpace(c[column]))
			if err != nil {
				t.Fatal(err)
			}
			frames = append(frames, f)
			if column == 2 {
				known[c[1]] = true
			}
		}
	}
	p := freePorts(t, 5)
	output := daemon(t, exec.Command(program, "--net-only", "--net-bind-address", "127.0.0.1", "--net-ri-port", p[0], "--net-ro-port", p[1],
		"--net-sbs-port", p[2], "--net-bi-port", p[3], "--net-bo-port", p[4]))
	conn := dialWhenReady(t, "127.0.0.1:"+p[0])
	var text []byte
	for a := range known {
		v, err := strconv.ParseUint(a, 16, 24)
		if err != nil {
			t.Fatal(err)
		}
		f := modes.EncodeAllCall(5, uint32(v), modes.Interrogator{})
		text = avr.Append(avr.Append(text, &f), &f)
	}
	for i := range frames {
		text = avr.Append(text, &frames[i])
	}
	end, _ := modes.ParseHex("8d4840d6202cc371c32ce0576098")
	for range 2000 { // more than its output buffer holds
		text = avr.Append(text, &end)
	}
	if _, err := conn.Write(text); err != nil {
		t.Fatal(err)
	}
	var blocks map[string]map[string]string
	for range 100 {
		time.Sleep(200 * time.Millisecond)
		b, err := os.ReadFile(output)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(b, []byte("*"+end.String())) > 10 {
			blocks = parseText(string(b))
			break
		}
	}
	if blocks == nil {
		t.Fatal("the last frame was not decoded in 20 s")
	}
	compared := map[string]int{}
	missing := 0
	var m modes.Message
	for i := range frames {
		f := &frames[i]
		theirs, ok := blocks[f.String()]
		if !ok {
			missing++ // three frames of the corpus have wrong bits
			continue
		}
		if err := modes.Decode(f, &m); err != nil {
			t.Errorf("%v: %v", f, err)
			continue
		}
		sign := m.Callsign
		if m.MB.OK {
			if c := modes.InferCommB(nil, m.MB.V, nil); len(c) > 0 && c[0].Code == 0x20 {
				sign = c[0].Register.Callsign
			}
		}
		check := func(field string, ok bool, ours string) {
			if !ok {
				ours = ""
			}
			if theirs[field] != "" || ours != "" {
				compared[field]++
				if theirs[field] != ours {
					t.Errorf("%v: %s: they %q, we %q", f, field, theirs[field], ours)
				}
			}
		}
		check("ICAO Address", true, strings.ToUpper(m.Address.String()))
		check("Altitude", m.Altitude.OK, strconv.Itoa(int(m.Altitude.V.Feet)))
		check("Squawk", m.Squawk.OK, m.Squawk.V.String())
		check("Ident", sign.OK, sign.V.String())
		check("Vertical rate", m.Velocity.VerticalRate.OK, strconv.Itoa(int(m.Velocity.VerticalRate.V)))
		check("GNSS delta", m.Velocity.GeometricMinusBaro.OK, strconv.Itoa(int(m.Velocity.GeometricMinusBaro.V)))
		check("Speed", m.Velocity.GroundSpeed.OK, strconv.Itoa(int(m.Velocity.GroundSpeed.V))) // they truncate
		check("CPR latitude", m.Position.OK, strconv.Itoa(int(m.Position.V.Lat)))
		check("CPR longitude", m.Position.OK, strconv.Itoa(int(m.Position.V.Lon)))
	}
	if missing > 3 {
		t.Errorf("%d frames of %d were not decoded by them", missing, len(frames))
	}
	t.Logf("%d frames, %d not decoded by them, fields compared: %v", len(frames), missing, compared)
}

// parseText reads dump1090's description of each frame.
func parseText(s string) map[string]map[string]string {
	blocks := map[string]map[string]string{}
	var block map[string]string
	for l := range strings.Lines(s) {
		l = strings.TrimRight(l, "\r\n")
		if strings.HasPrefix(l, "*") {
			block = map[string]string{}
			blocks[strings.Trim(l, "*;")] = block
			continue
		}
		key, value, ok := strings.Cut(strings.TrimSpace(l), ":")
		if !ok || block == nil || !strings.HasPrefix(l, "  ") {
			continue
		}
		value = strings.TrimSpace(value)
		if i := strings.LastIndexByte(value, '('); strings.HasPrefix(key, "CPR l") {
			value = strings.Trim(value[i:], "()")
		}
		value, _, _ = strings.Cut(value, " ")
		block[key] = value
	}
	return blocks
}

// TestIntegrationRTLTCP is acceptance 7: Debian's rtl_tcp, its librtlsdr
// replaced by the stand-in of modes/rtltcp, and this program as its client.
func TestIntegrationRTLTCP(t *testing.T) {
	need.Asked(t, "rtltcp")
	tools := need.Commands(t, "rtltcp", "rtl_tcp", "gcc")
	dir := t.TempDir()
	lib := filepath.Join(dir, "fakertl.so")
	if out, err := exec.Command(tools[1], "-shared", "-fPIC", "-O1", "-o", lib, "../../modes/rtltcp/testdata/fakertl.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	calls := filepath.Join(dir, "calls")
	iq := write(t, "iq", recording.UC8)
	port := freePorts(t, 1)[0]
	cmd := exec.Command(tools[0], "-a", "127.0.0.1", "-p", port)
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+lib, "FAKERTL_IQ="+iq, "FAKERTL_LOG="+calls)
	daemon(t, cmd)
	// A connection that asks for nothing would use up the server's only place;
	// the program itself is tried until it is let in.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdout, stderr safeBuffer
	done := make(chan int, 1)
	go func() {
		for {
			status := runContext(ctx, []string{"-in", "rtltcp://127.0.0.1:" + port, "-json", "-gain", "49.6", "-ppm", "2"}, nil, &stdout, &stderr)
			if status == 0 || ctx.Err() != nil {
				done <- status
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	complete := func() bool {
		s := stdout.String()
		for hex := range built(t) {
			if !strings.Contains(s, hex) {
				return false
			}
		}
		return true
	}
	for range 600 {
		if complete() {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	if status := <-done; status != 0 {
		t.Errorf("status %d: %s", status, stderr.String())
	}
	out := stdout.String()
	if !complete() || !strings.Contains(out, `"lat":52.2`) {
		t.Errorf("not every frame was decoded: %.2000s\n%s", out, stderr.String())
	}
	want := built(t)
	for l := range strings.Lines(out) {
		var m struct{ Hex string }
		if err := json.Unmarshal([]byte(l), &m); err != nil || !want[m.Hex] {
			t.Errorf("%v in %s", err, l)
		}
	}
	log, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"rate 2400000", "freq 1090000000", "mode 1", "gain 496", "ppm 2", "agc 0"} {
		if !strings.Contains(string(log), call+"\n") {
			t.Errorf("rtl_tcp was not told: %s", call)
		}
	}
	t.Logf("%d messages", strings.Count(out, "\n"))
}
