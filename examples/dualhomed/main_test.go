package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "routes")
	if err := os.WriteFile(file, []byte("route add 2001:db8::/32 via fe80::1\nroute add blackhole 2001:db8:1::/48\nroute add 2001:db8:2::/48 dev x\nroute del 2001:db8:2::/48 metric 1024\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("\nroute add 10.0.0.0/8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gone := filepath.Join(t.TempDir(), "gone")
	if err := os.WriteFile(gone, []byte("route add 2001:db8::/32 dev a\nroute add 2001:db8::/32 dev b metric 5\nroute add 2001:db8:1::/48 from 2001:db8::/32 dev c\n"+
		"route del 2001:db8::/32\nroute del 2001:db8:1::/48 from 2001:db8::/32\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if err := os.WriteFile(missing, []byte("route add 2001:db8::/32 dev a metric 7\nroute del 2001:db8::/32 metric 8\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, args, stdin string
		status            int
		out, err          []string
	}{
		{"built in", "", "", 0, []string{
			"2606:4700::1111   2001:db8:a::10  wan-a (::/0 from 2001:db8:a::/48)",
			"2606:4700::1111   2001:db8:c::10  unreachable",
			"2001:db8:cafe::1  2001:db8:a::10  wan-a (::/0 from 2001:db8:a::/48)               wan-b (2001:db8:cafe::/48)  <- they differ",
			"2001:db8:a::20    2001:db8:b::10  lan (2001:db8:a::/48)",
		}, nil},
		{"file and queries", "-routes " + file + " -ask", "2001:db8::1\n\n2001:db8:1::1 ::1\n2001:db8:2::\n", 0, []string{
			"2001:db8::1    -       fe80::1 (2001:db8::/32)",
			"2001:db8:1::1  ::1     blackhole (2001:db8:1::/48)",
			"2001:db8:2::   -       fe80::1 (2001:db8::/32)",
		}, nil},
		{"deleted without a metric, the lowest first", "-routes " + gone + " -ask", "2001:db8::1\n2001:db8:1::1 2001:db8::1\n", 0, []string{
			"2001:db8::1    -            a (2001:db8::/32)",
			"2001:db8:1::1  2001:db8::1  a (2001:db8::/32)",
		}, nil},
		{"nothing to delete", "-routes " + missing, "", 1, nil, []string{"dualhomed: route del 2001:db8::/32 metric 8: "}},
		{"answers before a bad query", "-ask", "2001:db8:a::1\nx\n", 1, []string{"2001:db8:a::1  -       lan"}, []string{"query 2: "}},
		{"trace", "-trace", "", 0, []string{"Linux: descend ::/0", "no source 2001:db8:cafe::/48"}, nil},
		{"help", "-h", "", 0, []string{"usage: dualhomed"}, nil},
		{"bad flag", "-x", "", 2, nil, []string{"not defined"}},
		{"bad argument", "x", "", 2, nil, []string{`unexpected argument "x"`}},
		{"bad route", "-routes " + bad, "", 1, nil, []string{"dualhomed: radix6: line 2: no IPv6 prefix"}},
		{"no file", "-routes /nonexistent", "", 1, nil, []string{"dualhomed: open /nonexistent"}},
		{"query as ip route get", "-ask", "2606:4700::1 from 2001:db8:b::10\r\n", 0, []string{"2606:4700::1  2001:db8:b::10  wan-b"}, nil},
		{"bad query", "-ask", "::1 ::2 ::3", 1, nil, []string{"dualhomed: query 1: want"}},
		{"IPv4 query", "-ask", "10.0.0.1", 1, nil, []string{"query 1: 10.0.0.1 is not a plain IPv6 address"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, errs strings.Builder
			if got := run(strings.Fields(c.args), strings.NewReader(c.stdin), &out, &errs); got != c.status {
				t.Errorf("status %d, want %d: %s", got, c.status, errs.String())
			}
			for _, w := range c.out {
				if !strings.Contains(out.String(), w) {
					t.Errorf("no %q in\n%s", w, out.String())
				}
			}
			for _, w := range c.err {
				if !strings.Contains(errs.String(), w) {
					t.Errorf("no %q in %q", w, errs.String())
				}
			}
		})
	}
}

// TestAnswersAtOnce: who waits for an answer before the next question gets it.
func TestAnswersAtOnce(t *testing.T) {
	in, questions := io.Pipe()
	answers, out := io.Pipe()
	lines := make(chan string, 100)
	go func() {
		for sc := bufio.NewScanner(answers); sc.Scan(); {
			lines <- sc.Text()
		}
		close(lines)
	}()
	done := make(chan int, 1)
	go func() { done <- run([]string{"-ask"}, in, out, io.Discard); out.Close() }()
	for _, q := range []string{"2001:db8:a::1", "2001:db8:b::1", "2001:db8::1"} {
		fmt.Fprintln(questions, q)
		late := time.After(10 * time.Second)
		for line := ""; !strings.HasPrefix(line, q+" "); {
			select {
			case line = <-lines:
			case <-late:
				t.Fatalf("no answer to %s", q)
			}
		}
	}
	questions.Close()
	if status := <-done; status != 0 {
		t.Error("status", status)
	}
}
