package web

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func serve(t *testing.T, c Config) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(Handler(c))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(b)
}

func TestFiles(t *testing.T) {
	s := serve(t, Config{Aircraft: func() []byte { return []byte(`{"aircraft":[]}`) }, Lat: 52, Lon: 4, HasPosition: true, Version: "v"})
	for path, want := range map[string]string{
		"/": "<title>signalbox", "/app.js": "EventSource", "/style.css": ":root", "/data/aircraft.json": `{"aircraft":[]}`,
		"/data/receiver.json": `{"history":0,"lat":52,"lon":4,"refresh":1000,"version":"v"}`,
	} {
		r, body := get(t, s.URL+path)
		if r.StatusCode != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %s, %.80q", path, r.Status, body)
		}
		if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
	if r, _ := get(t, s.URL+"/nothing"); r.StatusCode != 404 {
		t.Errorf("an unknown path gives %s", r.Status)
	}
	if r, err := http.Post(s.URL+"/data/aircraft.json", "text/plain", nil); err != nil || r.StatusCode != 405 {
		t.Errorf("POST: %v %v", r, err)
	}
}

func TestReceiverWithoutPosition(t *testing.T) {
	s := serve(t, Config{Aircraft: func() []byte { return nil }})
	_, body := get(t, s.URL+"/data/receiver.json")
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	if _, there := v["lat"]; there {
		t.Error("an absent position was sent as a number")
	}
}

func TestEvents(t *testing.T) {
	n := make(chan int, 100)
	s := serve(t, Config{Interval: 5 * time.Millisecond, Aircraft: func() []byte { n <- 1; return []byte("{\n\"now\":1}\n") }})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	in := bufio.NewScanner(r.Body)
	for range 3 {
		if !in.Scan() || in.Text() != `data: { "now":1}` {
			t.Fatalf("event %q, %v", in.Text(), in.Err())
		}
		if !in.Scan() || in.Text() != "" {
			t.Fatalf("no empty line after an event: %q", in.Text())
		}
	}
}

func TestListenersAreBounded(t *testing.T) {
	e := &events{}
	for range maxListeners {
		if !e.enter(1) {
			t.Fatal("refused too early")
		}
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest("GET", "/events", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
	e.enter(-1)
	if !e.enter(1) {
		t.Error("a place that became free was not given")
	}
}
