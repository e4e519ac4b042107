package modes

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
)

// golden is one answer of a peer, pyModeS 2.21.1.
type golden struct {
	DF         uint8
	ICAO       string
	BDS        string
	TypeCode   *float64
	Altitude   *float64
	Callsign   *string
	Category   *float64
	Squawk     *string
	CPRFormat  *float64 `json:"cpr_format"`
	Speed      *float64 `json:"groundspeed"`
	Track      *float64
	Rate       *float64 `json:"vertical_rate"`
	Roll       *float64
	TrueTrack  *float64 `json:"true_track"`
	TrackRate  *float64 `json:"track_rate"`
	TAS        *float64 `json:"true_airspeed"`
	IAS        *float64 `json:"indicated_airspeed"`
	Mach       *float64
	Heading    *float64 `json:"magnetic_heading"`
	BaroRate   *float64 `json:"baro_vertical_rate"`
	Inertial   *float64 `json:"inertial_vertical_rate"`
	SelectedMC *float64 `json:"selected_altitude_mcp"`
	SelectedFM *float64 `json:"selected_altitude_fms"`
	QNH        *float64 `json:"baro_pressure_setting"`
}

// disagreements lists, by frame and field, where the peer is wrong or a
// choice differs, each with the reason.
func disagreements(t *testing.T) map[string]string {
	b, err := os.ReadFile("testdata/disagreements.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for l := range strings.Lines(string(b)) {
		if l = strings.TrimSpace(l); l == "" || l[0] == '#' {
			continue
		}
		key, why, ok := strings.Cut(l, ": ")
		if !ok {
			t.Fatalf("testdata/disagreements.txt: %q has no reason", l)
		}
		out[key] = why
	}
	return out
}

// corpus returns the frames of a file with the address that is known to be
// right, from columns named by position.
func corpus(t *testing.T, file string, hexColumn, icaoColumn int) (frames []Frame, icao []string) {
	for _, l := range vectors.Lines(t, "modes/"+file) {
		c := strings.Split(strings.ReplaceAll(l, `"`, ""), ",")
		frames = append(frames, hexFrame(t, c[hexColumn]))
		icao = append(icao, strings.ToLower(c[icaoColumn]))
	}
	return
}

func TestGoldenAnswers(t *testing.T) {
	var answers map[string]golden
	if err := json.Unmarshal(vectors.Read(t, "modes/golden_v2.json.gz"), &answers); err != nil {
		t.Fatal(err)
	}
	known, used := disagreements(t), map[string]bool{}
	agree, total := map[string]int{}, map[string]int{} // by the peer's register
	for hex, g := range answers {
		f := hexFrame(t, hex)
		var m Message
		if err := Decode(&f, &m); err != nil {
			t.Errorf("%s: %v", hex, err)
			continue
		}
		differ := func(name string, got, want any) {
			key := hex + " " + name
			if known[key] == "" {
				t.Errorf("%s: %v, the peer says %v", key, got, want)
			}
			used[key] = true
		}
		number := func(name string, got Opt[float64], want *float64, within float64) {
			switch {
			case want == nil:
			case !got.OK:
				differ(name, "absent", *want)
			case math.Abs(got.V-*want) > within:
				differ(name, got.V, *want)
			}
		}
		if m.Address.String() != strings.ToLower(g.ICAO) {
			differ("icao", m.Address, g.ICAO)
		}
		number("typecode", Opt[float64]{float64(m.TypeCode.V), m.TypeCode.OK}, g.TypeCode, 0)
		number("altitude", Opt[float64]{float64(m.Altitude.V.Feet), m.Altitude.OK}, g.Altitude, 0)
		if g.Squawk != nil && (!m.Squawk.OK || m.Squawk.V.String() != *g.Squawk) {
			differ("squawk", m.Squawk.V, *g.Squawk)
		}
		if g.CPRFormat != nil && (!m.Position.OK || m.Position.V.Odd != (*g.CPRFormat == 1)) {
			differ("cpr_format", m.Position, *g.CPRFormat)
		}
		number("groundspeed", m.Velocity.GroundSpeed, choose(g.DF == 17, g.Speed), 1)
		number("track", m.Velocity.Track, g.Track, 1e-6)
		number("vertical_rate", Opt[float64]{float64(m.Velocity.VerticalRate.V), m.Velocity.VerticalRate.OK}, g.Rate, 0)
		sign := m.Callsign
		if g.BDS != "" {
			hint := State{}
			if m.Altitude.OK {
				hint.Altitude = Some(m.Altitude.V.Feet)
			}
			best := InferCommB(nil, m.MB.V, &hint)
			if len(best) == 0 {
				differ("bds", "none", g.BDS)
				continue
			}
			name := "BDS" + strings.ReplaceAll(best[0].Code.String(), ",", "")
			total[g.BDS]++
			if !strings.Contains(","+g.BDS+",", ","+name+",") {
				differ("bds", name, g.BDS)
				continue
			}
			agree[g.BDS]++
			if strings.Contains(g.BDS, ",") {
				continue // the peer gives no fields of ambiguous messages
			}
			r := &best[0].Register
			sign = r.Callsign
			number("groundspeed", r.GroundSpeed, g.Speed, 1e-6)
			number("roll", r.Roll, g.Roll, 1e-6)
			number("true_track", r.Track, g.TrueTrack, 1e-6)
			number("track_rate", r.TrackRate, g.TrackRate, 1e-6)
			number("true_airspeed", r.TAS, g.TAS, 1e-6)
			number("indicated_airspeed", r.IAS, g.IAS, 1e-6)
			number("mach", r.Mach, g.Mach, 0.0006)
			number("magnetic_heading", r.Heading, g.Heading, 1e-6)
			number("baro_vertical_rate", Opt[float64]{float64(r.BaroRate.V), r.BaroRate.OK}, g.BaroRate, 0)
			number("inertial_vertical_rate", Opt[float64]{float64(r.InertialRate.V), r.InertialRate.OK}, g.Inertial, 0)
			number("selected_altitude_mcp", Opt[float64]{float64(r.SelectedAltitude.V), r.SelectedAltitude.OK}, g.SelectedMC, 0)
			number("selected_altitude_fms", Opt[float64]{float64(r.FMSAltitude.V), r.FMSAltitude.OK}, g.SelectedFM, 0)
			number("baro_pressure_setting", r.QNH, g.QNH, 0.051)
		}
		if g.Callsign != nil && (!sign.OK || sign.V.String() != strings.TrimRight(*g.Callsign, "_")) {
			differ("callsign", sign, *g.Callsign)
		}
	}
	for k := range known {
		if !strings.HasSuffix(k, " address") && !used[k] {
			t.Errorf("testdata/disagreements.txt: %s agrees, or is no frame of the corpus", k)
		}
	}
	for _, bds := range slices.Sorted(maps.Keys(total)) {
		t.Logf("%s: %d of %d agree", bds, agree[bds], total[bds])
	}
	t.Logf("%d answers, %d disagreements", len(answers), len(used))
}

func choose(ok bool, v *float64) *float64 {
	if ok {
		return v
	}
	return nil
}

// TestADSBCorpus decodes the peer's 2,000 real DF17 frames.
func TestADSBCorpus(t *testing.T) {
	frames, icao := corpus(t, "sample_data_adsb.csv.gz", 1, 2)
	var a AddressFilter
	var m Message
	types := map[uint8]int{}
	var last [2]Opt[CPR]
	positions := 0
	for i := range frames {
		f := &frames[i]
		if r := a.Accept(f, uint64(i)*TicksPerSecond/10); r != Accepted {
			t.Errorf("%v: %v", f, r)
		}
		if err := Decode(f, &m); err != nil || m.Address.String() != icao[i] {
			t.Errorf("%v: %v %v", f, m.Address, err)
		}
		types[m.TypeCode.V]++
		if m.Position.OK {
			p := m.Position.V
			n := 0
			if p.Odd {
				n = 1
			}
			last[n] = m.Position
			if last[1-n].OK {
				q, err := CPRGlobal(last[0].V, last[1].V, p.Odd, nil)
				if err == nil && (q.Lat < 48 || q.Lat > 56 || q.Lon < -6 || q.Lon > 10) {
					t.Errorf("%v: %v is nowhere near", f, q)
				}
				if err == nil {
					positions++
				}
			}
		}
	}
	if len(frames) != 2000 {
		t.Errorf("%d frames", len(frames))
	}
	t.Logf("types %v, %d positions", types, positions)
}

// TestCommBCorpus recovers the address of the peer's 10,000 real DF20 and
// DF21 frames from their parity, and infers the register of each.
func TestCommBCorpus(t *testing.T) {
	found, doubtful, none := map[BDS]int{}, 0, 0
	total, wrong := 0, 0
	known := disagreements(t)
	for _, file := range []string{"sample_data_commb_df20.csv.gz", "sample_data_commb_df21.csv.gz"} {
		frames, icao := corpus(t, file, 2, 1)
		total += len(frames)
		var buf []Candidate
		for i := range frames {
			f := &frames[i]
			var m Message
			if err := Decode(f, &m); err != nil {
				t.Errorf("%v: %v", f, err)
			}
			if m.Address.String() != icao[i] {
				if known[f.String()+" address"] == "" {
					t.Errorf("%v: address %v, want %s", f, m.Address, icao[i])
				}
				wrong++
			}
			hint := State{OnGround: m.OnGround}
			if m.Altitude.OK {
				hint.Altitude = Some(m.Altitude.V.Feet)
			}
			buf = InferCommB(buf[:0], m.MB.V, &hint)
			sum := float32(0)
			for j, c := range buf {
				sum += c.Score
				if j > 0 && c.Score > buf[j-1].Score {
					t.Errorf("%v: candidates out of order", f)
				}
				if c.Register.Code != c.Code {
					t.Errorf("%v: register %v in candidate %v", f, c.Register.Code, c.Code)
				}
			}
			if sum > 1.0001 {
				t.Errorf("%v: scores add up to %v", f, sum)
			}
			switch {
			case m.MB.V == [7]byte{}:
			case len(buf) == 0:
				none++
			case buf[0].Score < 0.9:
				doubtful++
			default:
				found[buf[0].Code]++
			}
		}
	}
	if total != 10000 {
		t.Errorf("%d frames", total)
	}
	t.Logf("%d of %d addresses differ", wrong, total)
	t.Logf("score 0.9 and up: %v; below: %d; no register: %d", found, doubtful, none)
	if doubtful+none > total/50 {
		t.Errorf("%d messages of %d are doubtful or of no register", doubtful+none, total)
	}
}

// TestCommBIsConsistent judges the inference without a peer: what one aircraft
// says in the same register within 20 seconds must agree with itself. A message
// read as a wrong register gives numbers that jump.
func TestCommBIsConsistent(t *testing.T) {
	type report struct {
		second int64
		reg    Register
	}
	pairs := map[BDS]int{}
	for _, file := range []string{"sample_data_commb_df20.csv.gz", "sample_data_commb_df21.csv.gz"} {
		last := map[string]report{}
		for _, l := range vectors.Lines(t, "modes/"+file) {
			c := strings.Split(l, ",")
			f := hexFrame(t, c[2])
			second, err := strconv.ParseInt(c[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			var m Message
			Decode(&f, &m)
			hint := State{}
			if m.Altitude.OK {
				hint.Altitude = Some(m.Altitude.V.Feet)
			}
			best := InferCommB(nil, m.MB.V, &hint)
			if len(best) == 0 || best[0].Score < 0.95 {
				continue
			}
			r, key := best[0].Register, c[1]+best[0].Code.String()
			before, ok := last[key]
			last[key] = report{second, r}
			if dt := float64(second - before.second); ok && dt <= 20 {
				pairs[r.Code]++
				near := func(what string, a, b Opt[float64], limit float64) {
					d := a.V - b.V
					if what == "track" || what == "heading" {
						d = signed(d)
					}
					if a.OK && b.OK && math.Abs(d) > limit {
						t.Errorf("%s, BDS %v: %s %v, %v s before %v", c[2], r.Code, what, a.V, dt, b.V)
					}
				}
				p := &before.reg
				near("track", r.Track, p.Track, 15+4*dt)
				near("heading", r.Heading, p.Heading, 15+4*dt)
				near("ground speed", r.GroundSpeed, p.GroundSpeed, 40)
				near("IAS", r.IAS, p.IAS, 40)
				near("Mach", r.Mach, p.Mach, 0.08)
				near("QNH", r.QNH, p.QNH, 25)
			}
		}
	}
	t.Logf("pairs of messages: %v", pairs)
	if pairs[0x40] < 2000 || pairs[0x50] < 2000 || pairs[0x60] < 3000 {
		t.Error("too few pairs to judge by")
	}
}
