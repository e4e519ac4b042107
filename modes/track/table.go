package track

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// tableHeader is that of the first dump1090.
const tableHeader = "Hex     Flight    Altitude  Speed   Lat       Lon       Track  Messages  Seen\n" +
	"-----------------------------------------------------------------------------\n"

// WriteTable writes the table for people: one line an aircraft heard within
// Config.Expire, in order of its first message. Values that are absent are
// blank; Seen is in seconds.
func (t *Tracker) WriteTable(w io.Writer, now time.Time) error {
	if _, err := io.WriteString(w, tableHeader); err != nil {
		return err
	}
	for _, a := range t.list {
		if now.Sub(a.Last) > t.config.Expire {
			continue
		}
		if err := t.writeRow(w, a, now); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tracker) writeRow(w io.Writer, a *Aircraft, now time.Time) error {
	limit := t.config.Expire
	flight, altitude, speed, lat, lon, track := "", "", "", "", "", ""
	if a.Callsign.OK() {
		flight = a.Callsign.V.String()
	}
	if v := a.BaroAltitude.Fresh(now, limit); v.OK {
		altitude = strconv.Itoa(int(v.V))
	} else if v := a.GeomAltitude.Fresh(now, limit); v.OK {
		altitude = strconv.Itoa(int(v.V))
	}
	if v := a.OnGround.Fresh(now, limit); v.OK && v.V {
		altitude = "ground"
	}
	if v := a.GroundSpeed.Fresh(now, limit); v.OK {
		speed = strconv.FormatFloat(v.V, 'f', 0, 64)
	}
	if v := a.Position.Fresh(now, limit); v.OK {
		lat = strconv.FormatFloat(v.V.Lat, 'f', 3, 64)
		lon = strconv.FormatFloat(v.V.Lon, 'f', 3, 64)
	}
	if v := a.Track.Fresh(now, limit); v.OK {
		track = strconv.FormatFloat(v.V, 'f', 0, 64)
	}
	_, err := fmt.Fprintf(w, "%-7s %-9s %-9s %-7s %-9s %-9s %-6s %-9d %d\n",
		a.Address, flight, altitude, speed, lat, lon, track, a.Messages, int(max(0, now.Sub(a.Last)).Seconds()))
	return err
}
