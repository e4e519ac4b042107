package track

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"signalbox.example/modes"
)

// typeName returns readsb's name of the kind of message that an aircraft sends.
func (a *Aircraft) typeName() string {
	switch a.Address.Kind {
	case modes.AddressICAO:
		if a.kindAt == 0 {
			return "mode_s"
		}
		return "adsb_icao"
	case modes.AddressICAODevice:
		return "adsb_icao_nt"
	case modes.AddressNonICAO:
		return "adsb_other"
	case modes.AddressTISB:
		return "tisb_icao"
	case modes.AddressTISBNonICAO:
		return "tisb_other"
	case modes.AddressTISBTrackFile:
		return "tisb_trackfile"
	case modes.AddressADSR:
		return "adsr_icao"
	}
	return "adsr_other"
}

// object appends the members of one JSON object. Everything it writes is
// plain ASCII without quotes or control characters (hexadecimal digits,
// callsign letters, numbers, names from this package), so nothing needs
// escaping.
type object struct {
	b     []byte
	first bool
}

func (o *object) key(k string) {
	if !o.first {
		o.b = append(o.b, ',')
	}
	o.first = false
	o.b = append(append(append(o.b, '"'), k...), '"', ':')
}

func (o *object) text(k, v string) {
	o.key(k)
	o.b = append(append(append(o.b, '"'), v...), '"')
}

func (o *object) int(k string, v int64) {
	o.key(k)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) float(k string, v float64, digits int) {
	o.key(k)
	o.b = strconv.AppendFloat(o.b, v, 'f', digits, 64)
}

// AppendAircraftJSON appends the table in the form of aircraft.json, as readsb
// writes and tar1090 reads it: an object of now, messages and aircraft.
// Aircraft not heard within Config.Expire are left out.
func (t *Tracker) AppendAircraftJSON(b []byte, now time.Time) []byte {
	o := object{append(b, '{'), true}
	o.float("now", float64(now.UnixMilli())/1000, 3)
	o.int("messages", int64(t.stats.Messages))
	o.key("aircraft")
	o.b = append(o.b, '[')
	first := true
	for _, a := range t.list {
		if now.Sub(a.Last) > t.config.Expire {
			continue
		}
		if !first {
			o.b = append(o.b, ',')
		}
		first = false
		o.b = append(o.b, '\n')
		o.b = t.appendAircraft(o.b, a, now)
	}
	return append(o.b, "\n]}\n"...)
}

func (t *Tracker) appendAircraft(b []byte, a *Aircraft, now time.Time) []byte {
	n, limit := now.UnixNano(), int64(t.config.Expire)
	o := object{append(b, '{'), true}
	integer := func(k string, f *Field[int32]) {
		if v := f.fresh(n, limit); v.OK {
			o.int(k, int64(v.V))
		}
	}
	number := func(k string, f *Field[float64], digits int) {
		if v := f.fresh(n, limit); v.OK {
			o.float(k, v.V, digits)
		}
	}
	figure := func(k string, f *Field[uint8]) {
		if f.OK() {
			o.int(k, int64(f.V))
		}
	}
	bit := func(k string, f *Field[bool]) {
		if v := f.fresh(n, limit); v.OK {
			o.int(k, int64(bool8(v.V)))
		}
	}
	o.key("hex")
	o.b = append(a.Address.Append(append(o.b, '"')), '"')
	o.text("type", a.typeName())
	if a.Callsign.OK() {
		o.text("flight", string(a.Callsign.V[:]))
	}
	if g := a.OnGround.fresh(n, limit); g.OK && g.V {
		o.text("alt_baro", "ground")
	} else {
		integer("alt_baro", &a.BaroAltitude)
	}
	integer("alt_geom", &a.GeomAltitude)
	number("gs", &a.GroundSpeed, 1)
	number("ias", &a.IAS, 0)
	number("tas", &a.TAS, 0)
	number("mach", &a.Mach, 3)
	number("wd", &a.WindDirection, 0)
	number("ws", &a.WindSpeed, 0)
	number("oat", &a.Temperature, 0)
	number("track", &a.Track, 2)
	number("track_rate", &a.TrackRate, 2)
	number("roll", &a.Roll, 2)
	number("mag_heading", &a.MagHeading, 2)
	number("true_heading", &a.TrueHeading, 2)
	integer("baro_rate", &a.BaroRate)
	integer("geom_rate", &a.GeomRate)
	if v := a.Squawk.fresh(n, limit); v.OK {
		o.text("squawk", v.V.String())
	}
	if v := a.Emergency.fresh(n, limit); v.OK {
		o.text("emergency", v.V.String())
	}
	if a.Category.OK() {
		o.text("category", a.Category.V.String())
	}
	number("nav_qnh", &a.QNH, 1)
	integer("nav_altitude_mcp", &a.SelectedAltitude)
	integer("nav_altitude_fms", &a.FMSAltitude)
	number("nav_heading", &a.SelectedHeading, 2)
	if v := a.Modes.fresh(n, limit); v.OK {
		o.key("nav_modes")
		o.b = append(o.b, '[')
		start := len(o.b)
		for _, m := range [...]struct {
			on   bool
			name string
		}{{v.V.Autopilot, "autopilot"}, {v.V.VNAV, "vnav"}, {v.V.AltitudeHold, "althold"}, {v.V.Approach, "approach"}, {v.V.LNAV, "lnav"}, {v.V.TCAS, "tcas"}} {
			if m.on {
				if len(o.b) > start {
					o.b = append(o.b, ',')
				}
				o.b = append(append(append(o.b, '"'), m.name...), '"')
			}
		}
		o.b = append(o.b, ']')
	}
	if p := a.Position.fresh(n, limit); p.OK {
		o.float("lat", p.V.Lat, 6)
		o.float("lon", p.V.Lon, 6)
		figure("nic", &a.PositionNIC)
		rc := 0.0 // readsb writes 0 for unknown
		if a.PositionRadius.OK() {
			rc = a.PositionRadius.V
		}
		o.float("rc", rc, 0)
		o.float("seen_pos", max(0, float64(n-a.Position.at)/1e9), 1)
	}
	figure("version", &a.Version)
	if a.NICbaro.OK() {
		o.int("nic_baro", int64(bool8(a.NICbaro.V)))
	}
	figure("nac_p", &a.NACp)
	figure("nac_v", &a.NACv)
	if a.SIL.OK() {
		o.int("sil", int64(a.SIL.V))
		name := "unknown"
		if a.SILPerSample.OK() {
			name = "perhour"
			if a.SILPerSample.V {
				name = "persample"
			}
		}
		o.text("sil_type", name)
	}
	figure("gva", &a.GVA)
	figure("sda", &a.SDA)
	bit("alert", &a.Alert)
	bit("spi", &a.SPI)
	o.key("mlat")
	o.b = append(o.b, "[]"...)
	o.key("tisb")
	o.b = t.appendTISB(append(o.b, '['), a, n, limit)
	o.b = append(o.b, ']')
	o.int("messages", int64(a.Messages))
	o.float("seen", max(0, now.Sub(a.Last).Seconds()), 1)
	if s := a.Signal(); s.OK {
		o.float("rssi", s.V, 1)
	}
	return append(o.b, '}')
}

func bool8(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// appendTISB lists the members whose values came by TIS-B.
func (t *Tracker) appendTISB(b []byte, a *Aircraft, n, limit int64) []byte {
	start := len(b)
	for _, f := range [...]struct {
		name   string
		source Source
		at     int64
	}{
		{"altitude", a.BaroAltitude.Source, a.BaroAltitude.at}, {"gs", a.GroundSpeed.Source, a.GroundSpeed.at},
		{"track", a.Track.Source, a.Track.at}, {"geom_rate", a.GeomRate.Source, a.GeomRate.at},
		{"lat", a.Position.Source, a.Position.at}, {"lon", a.Position.Source, a.Position.at},
	} {
		if f.source == SourceTISB && n-f.at <= limit {
			if len(b) > start {
				b = append(b, ',')
			}
			b = append(append(append(b, '"'), f.name...), '"')
		}
	}
	return b
}

// WriteAircraftJSON writes [Tracker.AppendAircraftJSON] to a file, by way of a
// temporary file in the same folder that is then renamed, so that a reader
// never sees half of it.
func (t *Tracker) WriteAircraftJSON(path string, now time.Time) error {
	return writeFile(path, t.AppendAircraftJSON(nil, now))
}

func writeFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".aircraft-*.json")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
