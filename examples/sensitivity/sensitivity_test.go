package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFullDisk(t *testing.T) {
	for _, args := range []string{"-n 1 -snr 20 -effort fast -peer=false", "-n 1 -snr 20 -effort fast -peer=false -json", "-h"} {
		var stderr bytes.Buffer
		if status := run(strings.Fields(args), nil, fullDisk{}, &stderr); status != 1 || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s: status %d, errors %q", args, status, stderr.String())
		}
	}
}

func TestRun(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "curve.svg")
	for _, c := range []struct {
		args   string
		status int
		out    string // must be in the output
		err    string
	}{
		{"-h", 0, "overlap", ""},
		{"-n 20 -snr 30 -seed 1 -peer=false", 0, "30           100.0        100.0        100.0", ""},
		{"-n 20 -snr 0,20 -seed 1 -effort fast -rate 2000000 -format sc16 -series droop,dc -peer=false", 0, "half       10.0 dB", ""},
		{"-n 5 -snr 2:20:18 -seed 1 -offset 0 -series overlap -peer=false -svg " + svg, 0, "dB", ""},
		{"-n 20 -snr 20,30 -seed 1 -effort fast -peer=false -json", 0,
			`,"offset_hz":100000,"seed":1,"snr_db":30,"receiver":"fast","sent":20,"found":20,"wrong":0}` + "\n", ""},
		{"-n 0", 2, "", "sensitivity: -n must be"},
		{"-snr x", 2, "", `sensitivity: -snr x: "x" is not a number`},
		{"-snr 1:2:0", 2, "", "FROM:TO:STEP"},
		{"-snr 1e9", 2, "", "not from -100 to 100"},
		{"-snr 1e17:1e17:1", 2, "", "not from -100 to 100"}, // a step changes nothing there
		{"-snr -1e300:1:1e299", 2, "", "not from -100 to 100"},
		{"-n 1 -snr 20:20:1e-300 -peer=false -effort fast", 2, "", "1000 steps"},
		{"-snr NaN", 2, "", "not from -100 to 100"},
		{"-rate 1000", 2, "", "sensitivity: -rate 1000"},
		{"-offset 5000", 2, "", "sensitivity: -offset"},
		{"-series nothing", 2, "", `-series "nothing" is not known`},
		{"-effort much", 2, "", "sensitivity: -effort"},
		{"-format mp3", 2, "", "sensitivity: -format mp3"},
		{"-unknown", 2, "", "sensitivity: flag provided but not defined: -unknown"},
		{"extra", 2, "", `unexpected argument "extra"`},
		{"-n 1 -snr 20 -peer=false -svg /nonexistent/x.svg", 1, "", "no such file"},
	} {
		var stdout, stderr bytes.Buffer
		if got := run(strings.Fields(c.args), nil, &stdout, &stderr); got != c.status {
			t.Errorf("%s: status %d, want %d; %s", c.args, got, c.status, stderr.String())
		}
		if !strings.Contains(stdout.String(), c.out) || !strings.Contains(stderr.String(), c.err) {
			t.Errorf("%s: output %q, errors %q", c.args, stdout.String(), stderr.String())
		}
		if n := strings.Count(stderr.String(), "\n"); c.status != 0 && n != 1 {
			t.Errorf("%s: %d lines of errors", c.args, n)
		}
	}
	b, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(bytes.NewReader(b)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the SVG is not well-formed: %v", err)
		}
	}
}

// Renaming over a link would replace it: /dev/stdout itself, for root.
func TestOutputIsNoLink(t *testing.T) {
	dir := t.TempDir()

	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "file"), link); err != nil {
		t.Skip(err)
	}
	var out, errs bytes.Buffer
	if status := run([]string{"-n", "1", "-snr", "20", "-peer=false", "-svg", link}, nil, &out, &errs); status != 1 || !strings.Contains(errs.String(), "not a regular file") {
		t.Errorf("status %d, %s", status, errs.String())
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is gone: %v", err)
	}
}
