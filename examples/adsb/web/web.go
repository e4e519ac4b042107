// Package web is the page of examples/adsb: a live table and a map of the
// aircraft, and the JSON files that readsb and tar1090 users know.
//
//	/                     the page; all of it is embedded in the program
//	/events               server-sent events: aircraft.json, once an interval
//	/data/aircraft.json   as readsb writes it
//	/data/receiver.json   version, refresh time and position of the receiver
//
// What aircraft send is shown as text only, and a content security policy
// keeps scripts and styles to the page's own files.
package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"sync"
	"time"
)

//go:embed static
var static embed.FS

// maxListeners bounds the event streams that one handler serves at a time.
const maxListeners = 64

// Config says what the page shows.
type Config struct {
	// Aircraft returns the present aircraft.json. It is called from several
	// goroutines at once and must not return a buffer that it changes later.
	Aircraft func() []byte
	// Lat and Lon are the receiver's position in degrees when HasPosition
	// is set: the centre of the range rings.
	Lat, Lon    float64
	HasPosition bool
	// Version is shown in receiver.json.
	Version string
	// Interval is the time between two events; default one second.
	Interval time.Duration
}

// Handler serves the page. Its event streams end when their requests' contexts
// do, so close connections before waiting for a server to shut down.
func Handler(c Config) http.Handler {
	if c.Interval <= 0 {
		c.Interval = time.Second
	}
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is embedded at build time
	}
	receiver := map[string]any{"version": c.Version, "refresh": c.Interval.Milliseconds(), "history": 0}
	if c.HasPosition {
		receiver["lat"], receiver["lon"] = c.Lat, c.Lon
	}
	receiverJSON, err := json.Marshal(receiver)
	if err != nil {
		panic(err) // numbers and strings only
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	mux.HandleFunc("GET /data/aircraft.json", func(w http.ResponseWriter, r *http.Request) { sendJSON(w, c.Aircraft()) })
	mux.HandleFunc("GET /data/receiver.json", func(w http.ResponseWriter, r *http.Request) { sendJSON(w, receiverJSON) })
	mux.Handle("GET /events", &events{aircraft: c.Aircraft, interval: c.Interval})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	})
}

func sendJSON(w http.ResponseWriter, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Access-Control-Allow-Origin", "*") // tar1090 on another port reads it
	w.Write(b)
}

// events is the handler of the event streams.
type events struct {
	aircraft func() []byte
	interval time.Duration

	mu        sync.Mutex
	listeners int
}

func (e *events) enter(by int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if by > 0 && e.listeners >= maxListeners {
		return false
	}
	e.listeners += by
	return true
}

func (e *events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !e.enter(1) {
		http.Error(w, "too many listeners", http.StatusServiceUnavailable)
		return
	}
	defer e.enter(-1)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	tick := time.NewTicker(e.interval)
	defer tick.Stop()
	for {
		// One event is one line, so line ends inside the JSON go.
		body := bytes.ReplaceAll(bytes.TrimSpace(e.aircraft()), []byte("\n"), []byte(" "))
		// A reader that stops reading must not hold the stream for ever. Not
		// every writer has deadlines; without one the write still works.
		_ = control.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, err := w.Write(append(append([]byte("data: "), body...), "\n\n"...)); err != nil {
			return
		}
		if control.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}
