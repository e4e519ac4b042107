package web

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"signalbox.example/internal/need"
)

// browser speaks the WebDriver protocol (W3C) to chromedriver.
type browser struct {
	t    *testing.T
	base string
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	paths := need.Commands(t, "chromium", "chromedriver", "chromium")
	cmd := exec.Command(paths[0], "--port=0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	port := ""
	for in := bufio.NewScanner(out); port == "" && in.Scan(); {
		if m := regexp.MustCompile(`successfully on port (\d+)`).FindStringSubmatch(in.Text()); m != nil {
			port = m[1]
		}
	}
	if port == "" {
		t.Fatal("chromedriver named no port")
	}
	go io.Copy(io.Discard, out)
	b := &browser{t: t, base: "http://127.0.0.1:" + port}
	var session struct{ SessionID string }
	b.call("POST", "/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"browserName": "chrome", "goog:loggingPrefs": map[string]string{"browser": "ALL"},
		"goog:chromeOptions": map[string]any{"binary": paths[1], "args": []string{
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir=" + t.TempDir(),
		}},
	}}}, &session)
	b.base += "/session/" + session.SessionID
	t.Cleanup(func() { b.call("DELETE", "", nil, nil) })
	return b
}

func (b *browser) call(method, path string, in, out any) {
	b.t.Helper()
	var body io.Reader
	if in != nil {
		j, err := json.Marshal(in)
		if err != nil {
			b.t.Fatal(err)
		}
		body = bytes.NewReader(j)
	}
	req, err := http.NewRequest(method, b.base+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	client := http.Client{Timeout: 60 * time.Second}
	r, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Body.Close()
	all, err := io.ReadAll(r.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	if r.StatusCode != 200 {
		b.t.Fatalf("webdriver %s %s: %s", method, path, all)
	}
	reply := struct{ Value any }{out}
	if out != nil {
		if err := json.Unmarshal(all, &reply); err != nil {
			b.t.Fatalf("webdriver %s: %v in %s", path, err, all)
		}
	}
}

func (b *browser) open(url string, width, height int) {
	b.t.Helper()
	b.call("POST", "/window/rect", map[string]int{"width": width, "height": height}, nil)
	b.call("POST", "/url", map[string]string{"url": url}, nil)
}

// eval runs the body of a function in the page.
func (b *browser) eval(script string) any {
	b.t.Helper()
	var v any
	b.call("POST", "/execute/sync", map[string]any{"script": script, "args": []any{}}, &v)
	return v
}

// wait polls until the expression is true, for at most 20 seconds.
func (b *browser) wait(expression string) {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if b.eval("return Boolean("+expression+")") == true {
			return
		}
	}
	b.t.Fatalf("never true: %s", expression)
}

func (b *browser) is(expression string, want any) {
	b.t.Helper()
	if got := b.eval("return " + expression); got != want {
		b.t.Errorf("%s = %v, want %v", expression, got, want)
	}
}

// screenshot writes a picture into the folder named by SIGNALBOX_SCREENSHOTS.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	dir := os.Getenv("SIGNALBOX_SCREENSHOTS")
	if dir == "" {
		return
	}
	var s string
	b.call("GET", "/screenshot", nil, &s)
	png, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// sky is an aircraft.json whose first aircraft flies north, one step an event.
func sky(step int64) []byte {
	type m = map[string]any
	list := []m{
		{"hex": "45ac52", "type": "adsb_icao", "flight": "SAS1716 ", "alt_baro": 2650, "gs": 177.4, "track": 0.0, "lat": 60.252 + 0.01*float64(step), "lon": 24.77, "messages": 26 + step, "seen": 0.2, "squawk": "2044", "rssi": -12.5, "baro_rate": 640, "category": "A3"},
		{"hex": "4ca123", "flight": `<img src=x onerror="window.owned=1">`, "r": "<script>window.owned=1</script>", "alt_baro": 36000, "gs": 451, "track": 217.5, "lat": 60.9, "lon": 26.1, "messages": 900, "seen": 1.1},
		{"hex": "~c60bf1", "alt_baro": "ground", "gs": 12, "track": 90, "lat": 60.317, "lon": 24.963, "messages": 4, "seen": 41.0},
		{"hex": "3c6444", "messages": 1, "seen": 2.0},
	}
	b, err := json.Marshal(m{"now": 1.7e9 + float64(step), "messages": 1000 + step, "aircraft": list})
	if err != nil {
		panic(err)
	}
	return b
}

// TestIntegrationBrowser looks at the page as a person would, in headless
// Chromium. Screenshots of it are made with
//
//	SIGNALBOX_RUN=chromium SIGNALBOX_SCREENSHOTS=. go test -run Browser ./examples/adsb/web
func TestIntegrationBrowser(t *testing.T) {
	need.Asked(t, "chromium")
	var step atomic.Int64
	s := serve(t, Config{
		Aircraft: func() []byte { return sky(step.Add(1)) }, Interval: 200 * time.Millisecond,
		Lat: 60.3, Lon: 24.96, HasPosition: true, Version: "test",
	})
	b := openBrowser(t)
	b.open(s.URL, 1280, 800)
	b.wait("document.querySelectorAll('#rows tr').length === 4")

	// The table: sorted by address, absent values empty.
	b.is("document.querySelector('#rows tr').dataset.hex", "3c6444")
	b.is("document.querySelector('[data-hex=\"3c6444\"]').children[2].textContent", "")
	b.is("document.querySelector('#rows [data-hex=\"45ac52\"]').children[1].textContent", "SAS1716")
	b.is("document.querySelector('#rows [data-hex=\"~c60bf1\"]').children[2].textContent", "ground")
	b.is("document.querySelector('#rows [data-hex=\"~c60bf1\"]').classList.contains('stale')", true)
	b.is("document.querySelectorAll('.plane').length", 3.0)
	b.wait("document.getElementById('link').dataset.state === 'live'")

	// Sorting: numbers as numbers, absent values last both ways.
	b.eval("document.querySelector('[data-key=altitude]').click()")
	b.is("[...document.querySelectorAll('#rows tr')].map(r => r.dataset.hex).join()", "~c60bf1,45ac52,4ca123,3c6444")
	b.eval("document.querySelector('[data-key=altitude]').click()")
	b.is("[...document.querySelectorAll('#rows tr')].map(r => r.dataset.hex).join()", "4ca123,45ac52,~c60bf1,3c6444")

	// Selection, by hand and by key.
	b.is("document.getElementById('details').hidden", true)
	b.eval("document.querySelector('#rows [data-hex=\"45ac52\"]').click()")
	b.is("document.getElementById('details').hidden", false)
	b.is("document.getElementById('details-title').textContent", "SAS1716  45ac52")
	b.is("document.querySelector('.plane.chosen').dataset.hex", "45ac52")
	b.eval("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown'}))")
	b.is("document.querySelector('#rows [aria-selected=true]').dataset.hex", "~c60bf1")
	b.eval("document.dispatchEvent(new KeyboardEvent('keydown', {key: 'k'}))")
	b.is("document.querySelector('#rows [aria-selected=true]').dataset.hex", "45ac52")

	// The aircraft moves north: its latitude grows, its trail has points.
	lat := "Number(document.querySelector('#rows [data-hex=\"45ac52\"]').children[4].textContent)"
	first, ok := b.eval("return " + lat).(float64)
	if !ok || first < 60 {
		t.Fatalf("latitude %v", first)
	}
	b.wait(fmt.Sprintf("%s > %f", lat, first+0.015))
	b.wait("document.querySelector('#trails [data-hex=\"45ac52\"]').points.numberOfItems >= 3")
	b.is("(() => { const p = document.querySelector('#trails [data-hex=\"45ac52\"]').points; return p[p.numberOfItems - 1].y < p[0].y })()", true)

	// The map: zoom and pan keep the aircraft where it belongs.
	b.eval("document.getElementById('zoom-in').click()")
	b.eval("document.getElementById('map').focus(); document.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))")
	b.eval("document.dispatchEvent(new KeyboardEvent('keydown', {key: '0'}))")
	b.is("(() => { const m = document.getElementById('map').getBoundingClientRect(); return [...document.querySelectorAll('.plane')].every(p => { const r = p.firstChild.getBoundingClientRect(); return r.left > m.left && r.right < m.right && r.top > m.top && r.bottom < m.bottom }) })()", true)
	b.is("document.querySelectorAll('#rings circle').length > 1", true)

	// Markup that came over the radio is text and changes nothing.
	b.eval("document.querySelector('#rows [data-hex=\"4ca123\"]').click()")
	b.is("document.querySelector('#rows [data-hex=\"4ca123\"]').children[1].textContent", `<img src=x onerror="window.owned=1">`)
	b.is("document.getElementById('details-list').textContent.includes('<script>window.owned=1</script>')", true)
	b.is("document.querySelectorAll('img, #rows script, #details script, #map script').length", 0.0)
	b.is("window.owned === undefined", true)
	b.screenshot("wide")

	// A narrow screen: no sideways scrolling, the table below the map.
	b.call("POST", "/window/rect", map[string]int{"width": 500, "height": 800}, nil)
	b.wait("window.innerWidth <= 760")
	b.is("document.documentElement.scrollWidth <= window.innerWidth", true)
	b.is("document.getElementById('table').getBoundingClientRect().top > document.getElementById('map').getBoundingClientRect().top + 100", true)
	b.is("getComputedStyle(document.querySelector('.wide')).display", "none")
	b.screenshot("narrow")

	var logs []struct{ Level, Message string }
	b.call("POST", "/se/log", map[string]string{"type": "browser"}, &logs)
	for _, l := range logs {
		t.Errorf("the console says: %s: %s", l.Level, l.Message)
	}
}
