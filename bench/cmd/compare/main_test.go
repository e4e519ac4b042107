package main

import (
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"-h", 0, "usage: compare", ""},
		{"-h", 0, "  all ", ""},
		{"-list", 0, "40 s  nat64: one packet\n", ""},
		{"-only nat64,nothing", 2, "", `compare: no section "nothing"; see -list`},
		{"-nonsense", 2, "", "compare: flag provided but not defined: -nonsense"},
		{"nat64", 2, "", `compare: unexpected argument "nat64"`},
	} {
		var stdout, stderr strings.Builder
		if got := run(strings.Fields(c.args), strings.NewReader(""), &stdout, &stderr); got != c.status {
			t.Errorf("%s: status %d, want %d", c.args, got, c.status)
		}
		if !strings.Contains(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 {
			t.Errorf("%s: stdout %q", c.args, stdout.String())
		}
		if c.stderr != strings.TrimSpace(stderr.String()) {
			t.Errorf("%s: stderr %q", c.args, stderr.String())
		}
	}
}

func TestProgress(t *testing.T) {
	var b strings.Builder
	show, clear := progress(&b)
	show(strings.Repeat("é", 150))
	clear()
	if s := b.String(); !strings.Contains(s, "é… (0 s)") || !strings.HasSuffix(s, "\r\x1b[K") || strings.Contains(s, strings.Repeat("é", 100)) {
		t.Errorf("%q", s)
	}
}
