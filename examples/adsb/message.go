package main

import (
	"strconv"
	"time"

	"signalbox.example/modes"
	"signalbox.example/modes/track"
)

// A messageWriter writes messages as JSON objects, one a line. Absent values
// are left out.
type messageWriter struct {
	b     []byte
	first bool
	cands []modes.Candidate
}

func (w *messageWriter) key(k string) {
	if !w.first {
		w.b = append(w.b, ',')
	}
	w.first = false
	w.b = append(append(append(w.b, '"'), k...), '"', ':')
}

// text writes a string of letters, digits, spaces and "~,_": none of them
// needs escaping.
func (w *messageWriter) text(k, v string) {
	w.key(k)
	w.b = append(append(append(w.b, '"'), v...), '"')
}

func (w *messageWriter) int(k string, v int64) {
	w.key(k)
	w.b = strconv.AppendInt(w.b, v, 10)
}

func (w *messageWriter) bool(k string, v bool) {
	w.key(k)
	w.b = strconv.AppendBool(w.b, v)
}

// number writes v rounded to a number of digits, without trailing zeros.
func (w *messageWriter) number(k string, v float64, digits int) {
	w.key(k)
	start := len(w.b)
	w.b = strconv.AppendFloat(w.b, v, 'f', digits, 64)
	if digits > 0 {
		for w.b[len(w.b)-1] == '0' {
			w.b = w.b[:len(w.b)-1]
		}
		if w.b[len(w.b)-1] == '.' {
			w.b = w.b[:len(w.b)-1]
		}
	}
	if string(w.b[start:]) == "-0" {
		w.b = append(w.b[:start], '0')
	}
}

func (w *messageWriter) optNumber(k string, o modes.Opt[float64], digits int) {
	if o.OK {
		w.number(k, o.V, digits)
	}
}

func (w *messageWriter) optInt(k string, o modes.Opt[int32]) {
	if o.OK {
		w.int(k, int64(o.V))
	}
}

func (w *messageWriter) optByte(k string, o modes.Opt[uint8]) {
	if o.OK {
		w.int(k, int64(o.V))
	}
}

func (w *messageWriter) begin(b []byte, f *modes.Frame) {
	w.b, w.first = append(b, '{'), true
	w.text("hex", f.String())
	w.int("df", int64(f.DF()))
}

func (w *messageWriter) end(f *modes.Frame) []byte {
	w.int("repaired_bits", int64(f.Repaired))
	if f.HasSignal {
		w.number("signal_dbfs", float64(f.Signal), 1)
	}
	if f.HasTime {
		w.int("time_12mhz", int64(f.Time12))
	}
	return append(w.b, '}', '\n')
}

// rejected appends what there is to say about a frame that is not believed.
func (w *messageWriter) rejected(b []byte, f *modes.Frame, reason modes.Reason) []byte {
	w.begin(b, f)
	w.bool("accepted", false)
	w.text("reason", reason.String())
	return w.end(f)
}

// sureScore is the score from which on a Comm-B register's values count as
// the message's own.
const sureScore = 0.95

// accepted appends a message.
func (w *messageWriter) accepted(b []byte, f *modes.Frame, m *modes.Message, a *track.Aircraft, changes track.Changes, now time.Time) []byte {
	// The best register of a Comm-B message, when it is sure.
	var r modes.Register
	w.cands = w.cands[:0]
	if m.MB.OK {
		hint := a.State(now)
		if m.Altitude.OK {
			hint.Altitude = modes.Some(m.Altitude.V.Feet)
		}
		w.cands = modes.InferCommB(w.cands, m.MB.V, &hint)
		if len(w.cands) > 0 && w.cands[0].Score >= sureScore {
			r = w.cands[0].Register
		}
	}
	v := &m.Velocity

	w.begin(b, f)
	w.text("icao", m.Address.String())
	w.text("address_kind", m.Address.Kind.String())
	w.bool("accepted", true)
	w.optByte("tc", m.TypeCode)
	w.optByte("subtype", m.Subtype)
	if c := either(m.Callsign, r.Callsign); c.OK {
		w.text("callsign", c.V.String())
	}
	if m.Category.OK {
		w.text("category", m.Category.V.String())
	}
	if m.Altitude.OK {
		w.int("altitude_ft", int64(m.Altitude.V.Feet))
		w.text("altitude_source", m.Altitude.V.Source.String())
	}
	w.optNumber("ground_speed_kt", either(v.GroundSpeed, r.GroundSpeed), 2)
	w.optNumber("ias_kt", either(v.IAS, r.IAS), 0)
	w.optNumber("tas_kt", either(v.TAS, r.TAS), 1)
	w.optNumber("mach", r.Mach, 3)
	w.optNumber("track_deg", either(v.Track, r.Track), 3)
	w.optNumber("heading_deg", either(v.Heading, r.Heading), 3)
	switch {
	case v.VerticalRate.OK:
		w.int("vertical_rate_fpm", int64(v.VerticalRate.V))
		if v.VerticalRateSource.OK {
			w.text("vertical_rate_source", v.VerticalRateSource.V.String())
		}
	case r.BaroRate.OK:
		w.int("vertical_rate_fpm", int64(r.BaroRate.V))
		w.text("vertical_rate_source", modes.Barometric.String())
	}
	w.optInt("geometric_minus_baro_ft", v.GeometricMinusBaro)
	if m.Squawk.OK {
		w.text("squawk", m.Squawk.V.String())
	}
	if m.Emergency.OK {
		w.text("emergency", m.Emergency.V.String())
	}
	position := changes.Has(track.Position)
	if position {
		w.number("lat", a.Position.V.Lat, 6)
		w.number("lon", a.Position.V.Lon, 6)
	}
	if m.OnGround.OK {
		w.bool("on_ground", m.OnGround.V)
	}
	if m.Status.OK {
		w.int("version", int64(m.Status.V.Version))
	}
	if position && a.PositionNIC.OK() {
		w.int("nic", int64(a.PositionNIC.V))
	}
	switch {
	case m.Status.OK:
		w.optByte("nacp", m.Status.V.NACp)
		w.optByte("sil", m.Status.V.SIL)
	case m.Target.OK:
		w.optByte("nacp", m.Target.V.NACp)
		w.optByte("sil", m.Target.V.SIL)
	}
	if len(w.cands) > 0 {
		w.key("bds")
		for i := range w.cands {
			c := &w.cands[i]
			w.b = append(w.b, "[,"[min(i, 1)], '{')
			w.first = true
			w.text("code", c.Code.String())
			w.number("score", float64(c.Score), 4)
			w.key("fields")
			w.b, w.first = append(w.b, '{'), true
			w.register(&c.Register)
			w.b, w.first = append(w.b, '}', '}'), false
		}
		w.b = append(w.b, ']')
	}
	return w.end(f)
}

func either[T any](a, b modes.Opt[T]) modes.Opt[T] {
	if a.OK {
		return a
	}
	return b
}

func (w *messageWriter) optBool(k string, o modes.Opt[bool]) {
	if o.OK {
		w.bool(k, o.V)
	}
}

// register writes the members of a Comm-B register.
func (w *messageWriter) register(r *modes.Register) {
	w.optByte("tc", r.TypeCode)
	if r.Altitude.OK {
		w.int("altitude_ft", int64(r.Altitude.V.Feet))
	}
	if p := r.Position; p.OK {
		w.int("cpr_lat", int64(p.V.Lat))
		w.int("cpr_lon", int64(p.V.Lon))
		w.bool("cpr_odd", p.V.Odd)
	}
	if d := r.DataLink; d.OK {
		w.bool("acas", d.V.ACAS)
		w.bool("identification", d.V.Ident)
		w.bool("overlay", d.V.Overlay)
		w.int("subnetwork", int64(d.V.Subnetwork))
	}
	if r.GICB.OK {
		w.key("registers")
		w.b = append(w.b, '[')
		var list [24]modes.BDS
		for i, c := range modes.GICBRegisters(list[:0], r.GICB.V) {
			if i > 0 {
				w.b = append(w.b, ',')
			}
			w.b = append(append(append(w.b, '"'), c.String()...), '"')
		}
		w.b = append(w.b, ']')
	}
	if r.Callsign.OK {
		w.text("callsign", r.Callsign.V.String())
	}
	if ra := r.RA; ra.OK {
		w.int("ara", int64(ra.V.ARA))
		w.bool("active", ra.V.Active)
		w.bool("terminated", ra.V.Terminated)
		w.bool("multiple_threats", ra.V.MultipleThreats)
		if ra.V.Threat.OK {
			w.text("threat", modes.Address{Value: ra.V.Threat.V}.String())
		}
	}
	w.optInt("selected_altitude_mcp_ft", r.SelectedAltitude)
	w.optInt("selected_altitude_fms_ft", r.FMSAltitude)
	w.optNumber("qnh_hpa", r.QNH, 1)
	if r.TargetSource.OK {
		w.text("target_source", r.TargetSource.V.String())
	}
	w.optBool("vnav", r.VNAV)
	w.optBool("altitude_hold", r.AltitudeHold)
	w.optBool("approach", r.Approach)
	w.optNumber("wind_speed_kt", r.WindSpeed, 0)
	w.optNumber("wind_direction_deg", r.WindDirection, 2)
	w.optNumber("temperature_c", r.Temperature, 2)
	w.optNumber("pressure_hpa", r.Pressure, 0)
	w.optNumber("humidity_percent", r.Humidity, 1)
	w.optByte("turbulence", r.Turbulence)
	w.optByte("wind_shear", r.WindShear)
	w.optByte("microburst", r.Microburst)
	w.optByte("icing", r.Icing)
	w.optByte("wake_vortex", r.WakeVortex)
	w.optInt("radio_height_ft", r.RadioHeight)
	w.optNumber("roll_deg", r.Roll, 3)
	w.optNumber("track_deg", r.Track, 3)
	w.optNumber("ground_speed_kt", r.GroundSpeed, 0)
	w.optNumber("track_rate_deg_s", r.TrackRate, 4)
	w.optNumber("tas_kt", r.TAS, 1)
	w.optNumber("heading_deg", r.Heading, 3)
	w.optNumber("ias_kt", r.IAS, 0)
	w.optNumber("mach", r.Mach, 3)
	w.optInt("baro_rate_fpm", r.BaroRate)
	w.optInt("inertial_rate_fpm", r.InertialRate)
}
