package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A program is the command running with its standard output and error caught.
type program struct {
	url    string
	stop   func() int
	stderr *lockedBuilder
}

type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, stdin io.Reader, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, w := io.Pipe()
	p := &program{stderr: &lockedBuilder{}}
	done := make(chan int, 1)
	go func() {
		done <- runUntil(ctx, append([]string{"-listen", "127.0.0.1:0"}, args...), stdin, w, p.stderr)
		w.Close()
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, p.stderr)
	}
	p.url = strings.TrimSpace(line)
	p.stop = func() int {
		cancel()
		return <-done
	}
	return p
}

func (p *program) get(t *testing.T, path string) (int, string) {
	t.Helper()
	r, err := http.Get(p.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, strings.TrimSpace(string(b))
}

// until asks until the answer is want.
func (p *program) until(t *testing.T, path, want string) {
	t.Helper()
	var got string
	for range 1000 {
		if _, got = p.get(t, path); got == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: %s, want %s; stderr %s", path, got, want, p.stderr)
}

func TestLookupsWhileFed(t *testing.T) {
	routes := filepath.Join(t.TempDir(), "routes")
	if err := os.WriteFile(routes, []byte("# first\n0.0.0.0/0 default\n192.0.2.0/24 office\n2001:db8::/32 doc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	feed, w := io.Pipe()
	p := start(t, feed, "-routes", routes, "-feed", "-")
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/lookup?addr=192.0.2.9", 200, `{"addr":"192.0.2.9","prefix":"192.0.2.0/24","value":"office"}`},
		{"/lookup?addr=9.9.9.9", 200, `{"addr":"9.9.9.9","prefix":"0.0.0.0/0","value":"default"}`},
		{"/lookup?addr=2001:db8::1", 200, `{"addr":"2001:db8::1","prefix":"2001:db8::/32","value":"doc"}`},
		{"/lookup?addr=::1", 404, `{"addr":"::1","error":"no route"}`},
		{"/lookup?addr=x", 400, `{"error":"addr: ParseAddr(\"x\"): unable to parse IP"}`},
		{"/stats", 200, `{"ipv4_routes":2,"ipv6_routes":1,"updates":3,"lookups":5}`},
		{"/", 404, "404 page not found"},
	} {
		if status, got := p.get(t, c.path); status != c.status || got != c.want {
			t.Errorf("%s: %d %s, want %d %s", c.path, status, got, c.status, c.want)
		}
	}
	io.WriteString(w, "add 192.0.2.128/25 lab\n")
	p.until(t, "/lookup?addr=192.0.2.129", `{"addr":"192.0.2.129","prefix":"192.0.2.128/25","value":"lab"}`)
	io.WriteString(w, "begin\ndel 192.0.2.128/25\nadd 192.0.2.129/32 printer\nadd ::/0 six\ncommit\n")
	p.until(t, "/lookup?addr=::1", `{"addr":"::1","prefix":"::/0","value":"six"}`)
	p.until(t, "/lookup?addr=192.0.2.129", `{"addr":"192.0.2.129","prefix":"192.0.2.129/32","value":"printer"}`)
	p.until(t, "/lookup?addr=192.0.2.130", `{"addr":"192.0.2.130","prefix":"192.0.2.0/24","value":"office"}`)
	// A wrong line ends the feed, not the service.
	io.WriteString(w, "del 10.0.0.0/8\n")
	for range 1000 {
		if strings.Contains(p.stderr.String(), "feed") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.Close()
	if _, got := p.get(t, "/lookup?addr=9.9.9.9"); !strings.Contains(got, "default") {
		t.Error(got)
	}
	if status := p.stop(); status != 0 {
		t.Errorf("status %d", status)
	}
	if want := "livetable: feed: line 7: 10.0.0.0/8: lpctrie: no such route\n"; p.stderr.String() != want {
		t.Errorf("stderr %q, want %q", p.stderr.String(), want)
	}
}

func TestChurn(t *testing.T) {
	routes := filepath.Join(t.TempDir(), "routes")
	if err := os.WriteFile(routes, []byte("0.0.0.0/0 a\n0.0.0.0/1 b\n128.0.0.0/1 c\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "-routes", routes, "-churn", "2000")
	for range 1000 {
		if _, got := p.get(t, "/stats"); !strings.Contains(got, `"updates":3,`) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if status := p.stop(); status != 0 || p.stderr.String() != "" {
		t.Errorf("status %d, %s", status, p.stderr)
	}
}

func TestCommandLine(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("10.0.0.0/8 x\n10.0.0.1/8 y\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"-h"}, 0, "usage"},
		{[]string{"-x"}, 2, "livetable: flag provided but not defined: -x\n"},
		{[]string{"x"}, 2, "livetable: unexpected argument \"x\"\n"},
		{[]string{"-churn", "-1"}, 2, "livetable: -churn must not be negative\n"},
		{[]string{"-routes", bad}, 1, "livetable: " + bad + ": line 2: host bits are set in 10.0.0.1/8\n"},
		{[]string{"-routes", "/nonexistent"}, 1, "livetable: open /nonexistent: no such file or directory\n"},
		{[]string{"-feed", "/nonexistent"}, 1, "livetable: open /nonexistent: no such file or directory\n"},
		{[]string{"-listen", "127.0.0.1:99999"}, 1, "livetable: listen tcp"},
	} {
		var stdout, stderr strings.Builder
		if status := run(c.args, nil, &stdout, &stderr); status != c.status || !strings.Contains(stdout.String()+stderr.String(), c.stderr) {
			t.Errorf("%v: status %d, stderr %q", c.args, status, stderr.String())
		}
	}
}
