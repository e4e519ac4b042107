package main

import (
	"bytes"
	"strings"
	"testing"
)

// What it does on a kernel is tested in internal/xfrmguest.
func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		err    string
	}{
		{"-h", 0, "usage: vpn"},
		{"more", 2, "vpn: "},
		{"-nonsense", 2, "flag provided but not defined"},
	} {
		var out, errs bytes.Buffer
		if status := run(strings.Fields(c.args), &out, &errs); status != c.status || !strings.Contains(out.String()+errs.String(), c.err) {
			t.Errorf("%q: status %d, %q %q", c.args, status, out.String(), errs.String())
		}
	}
}
