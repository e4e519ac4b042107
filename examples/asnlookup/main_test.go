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

	"signalbox.example/internal/routegen"
)

func TestRun(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table")
	if err := os.WriteFile(table, []byte("# prefix,number\n0.0.0.0/0,4294967295\n10.0.0.0/8\tAS7\n2001:db8::/32 8\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad")
	if err := os.WriteFile(bad, []byte("10.0.0.0/8 7\n10.0.0.0 8\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, in, out, err string
		status             int
	}{
		{"", "192.0.2.1 GET /\n198.51.100.200\n2001:db8:1::1\tx\n9.9.9.9\nwhat\n\n::ffff:203.0.113.7\nfe80::1%eth0\n203.0.113.9",
			"192.0.2.1 GET /\tAS64496\t192.0.2.0/24\n198.51.100.200\tAS64498\t198.51.100.128/25\n2001:db8:1::1\tx\tAS64501\t2001:db8:1::/48\n" +
				"9.9.9.9\t-\t-\nwhat\t?\t?\n\t?\t?\n::ffff:203.0.113.7\tAS64499\t203.0.113.0/24\nfe80::1%eth0\t-\t-\n203.0.113.9\tAS64499\t203.0.113.0/24\n", "", 0},
		{"", "", "", "", 0},
		{"-fast", "192.0.2.1\r\n", "192.0.2.1\tAS64496\t192.0.2.0/24\n", "", 0},
		{"-table " + table, "10.1.1.1\n11.1.1.1\n2001:db8::1\n", "10.1.1.1\tAS7\t10.0.0.0/8\n11.1.1.1\tAS4294967295\t0.0.0.0/0\n2001:db8::1\tAS8\t2001:db8::/32\n", "", 0},
		{"-table " + bad, "", "", "asnlookup: " + bad + ": line 2: netip.ParsePrefix(\"10.0.0.0\"): no '/'\n", 1},
		{"-table /nonexistent", "", "", "asnlookup: open /nonexistent: no such file or directory\n", 1},
		{"x", "", "", "asnlookup: unexpected argument \"x\"\n", 2},
	} {
		var stdout, stderr strings.Builder
		if status := run(strings.Fields(c.args), strings.NewReader(c.in), &stdout, &stderr); status != c.status || stdout.String() != c.out || stderr.String() != c.err {
			t.Errorf("%s: status %d, stdout\n%s\nstderr %s", c.args, status, stdout.String(), stderr.String())
		}
	}
	var stdout, stderr strings.Builder
	if run([]string{"-h"}, nil, &stdout, &stderr) != 0 || run([]string{"-x"}, nil, &stdout, &stderr) != 2 {
		t.Error("wrong status")
	}
}

// What -save writes -snapshot reads: the same answers without the table.
func TestSaveAndOpen(t *testing.T) {
	dir := t.TempDir()
	table, file := filepath.Join(dir, "table"), filepath.Join(dir, "snapshot")
	if err := os.WriteFile(table, []byte("10.0.0.0/8 7\n10.1.2.128/25 4294967295\n2001:db8::/32 8\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const in, want = "10.1.1.1\n10.1.2.200\n11.1.1.1\n192.0.2.1\n2001:db8:1::1\n",
		"10.1.1.1\tAS7\t10.0.0.0/8\n10.1.2.200\tAS4294967295\t10.1.2.128/25\n11.1.1.1\t-\t-\n192.0.2.1\t-\t-\n"
	for _, c := range []struct {
		args   []string
		out    string
		status int
	}{
		{[]string{"-table", table, "-save", file}, want + "2001:db8:1::1\tAS8\t2001:db8::/32\n", 0},
		{[]string{"-snapshot", file}, want + "2001:db8:1::1\tAS64501\t2001:db8:1::/48\n", 0}, // IPv6: the built-in table
		{[]string{"-snapshot", file, "-table", table}, want + "2001:db8:1::1\tAS8\t2001:db8::/32\n", 0},
		{[]string{"-table", table, "-fast", "-save", file}, want + "2001:db8:1::1\tAS8\t2001:db8::/32\n", 0},
		{[]string{"-snapshot", file, "-table", table}, want + "2001:db8:1::1\tAS8\t2001:db8::/32\n", 0},
		{[]string{"-snapshot", table}, "", 1}, // not a snapshot
		{[]string{"-snapshot", file + "x"}, "", 1},
		{[]string{"-save", filepath.Join(dir, "none", "x")}, "", 1},
		{[]string{"-save", file, "-snapshot", file}, "", 2},
	} {
		var stdout, stderr strings.Builder
		if status := run(c.args, strings.NewReader(in), &stdout, &stderr); status != c.status || stdout.String() != c.out || (status != 0) != (stderr.Len() > 0) {
			t.Errorf("%v: status %d, stdout\n%s\nstderr %s", c.args, status, stdout.String(), stderr.String())
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".asnlookup-*")); err != nil || left != nil {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// More lines than a chunk has, in order, and progress.
func TestManyLines(t *testing.T) {
	db, err := load("", "", false)
	if err != nil {
		t.Fatal(err)
	}
	var in, want, out, progress strings.Builder
	for i := range 3*chunk + 17 {
		fmt.Fprintf(&in, "192.0.2.%d %d\n", i%256, i)
		fmt.Fprintf(&want, "192.0.2.%d %d\tAS64496\t192.0.2.0/24\n", i%256, i)
	}
	in.WriteString("192.0.2.1 " + strings.Repeat("x", 200000))
	want.WriteString("192.0.2.1 " + strings.Repeat("x", 200000) + "\tAS64496\t192.0.2.0/24\n")
	if err := db.enrich(strings.NewReader(in.String()), &out, &progress); err != nil || out.String() != want.String() {
		t.Errorf("%v, %d bytes, want %d", err, out.Len(), want.Len())
	}
	if !strings.Contains(progress.String(), fmt.Sprintf("asnlookup: %d lines", 3*chunk+18)) {
		t.Errorf("progress %q", progress.String())
	}
}

func BenchmarkEnrich(b *testing.B) {
	var table, in strings.Builder
	for i, p := range routegen.IPv4(100000, 1) {
		fmt.Fprintf(&table, "%v %d\n", p, i)
		fmt.Fprintf(&in, "%v\n", p.Addr())
	}
	path := filepath.Join(b.TempDir(), "table")
	if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	db, err := load(path, "", false)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := db.enrich(strings.NewReader(in.String()), &strings.Builder{}, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100000, "ns/line")
}

// Renaming over a link would replace it: /dev/stdout itself, for root.
func TestOutputIsNoLink(t *testing.T) {
	dir := t.TempDir()

	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "file"), link); err != nil {
		t.Skip(err)
	}
	var out, errs strings.Builder
	if status := run([]string{"-save", link}, strings.NewReader(""), &out, &errs); status != 1 || !strings.Contains(errs.String(), "not a regular file") {
		t.Errorf("status %d, %s", status, errs.String())
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is gone: %v", err)
	}
}

// Somebody at a terminal, or a program at the other end of two pipes, waits for
// an answer before the next line.
func TestAnswersAtOnce(t *testing.T) {
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	go func() {
		run(nil, in, out, io.Discard)
		out.Close()
	}()
	got := bufio.NewReader(answers)
	for range 2 {
		line := make(chan string, 1)
		go func() {
			s, _ := got.ReadString('\n')
			line <- s
		}()
		if _, err := io.WriteString(feed, "192.0.2.1 x\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-line:
			if !strings.HasPrefix(s, "192.0.2.1 x\tAS64496") {
				t.Errorf("%q", s)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("no answer while more input may come")
		}
	}
	feed.Close()
}
