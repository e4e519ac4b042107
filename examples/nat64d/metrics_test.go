package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"signalbox.example/nat64"
	"signalbox.example/nat64/tun"
)

// A client that asks for the counters and does not read them holds up nobody:
// the daemon's lock is free while an answer is written.
func TestMetricsDoNotWaitForTheReader(t *testing.T) {
	prefix, err := nat64.ParsePrefix("64:ff9b::/96")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := nat64.New(nat64.Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: tr, dev: &tun.Device{}}
	w := &watcher{ResponseRecorder: httptest.NewRecorder(), d: d}
	d.serveMetrics(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.locked {
		t.Error("written under the lock")
	}
	if text := w.Body.String(); !strings.Contains(text, "nat64_packets_total{reason=\"translated-6to4\"} 0\n") {
		t.Error(text)
	}
}

// watcher notes whether the daemon is locked when something is written.
type watcher struct {
	*httptest.ResponseRecorder
	d      *daemon
	locked bool
}

func (w *watcher) Write(b []byte) (int, error) {
	if !w.d.mu.TryLock() {
		w.locked = true
	} else {
		w.d.mu.Unlock()
	}
	return w.ResponseRecorder.Write(b)
}
