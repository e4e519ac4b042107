package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args     string
		status   int
		out, err string // what they begin with
	}{
		{"-h", 0, "usage: tour [-only package]\n", ""},
		{"-only radix6", 0, "[4/7] radix6: ", ""},
		{"-only radio", 2, "", "tour: no section \"radio\"\n"},
		{"-x", 2, "", "tour: flag provided but not defined: -x\n"},
		{"radix6", 2, "", "tour: unexpected argument \"radix6\"\n"},
	} {
		var out, errs bytes.Buffer
		status := run(strings.Fields(c.args), &out, &errs)
		if status != c.status || !strings.HasPrefix(out.String(), c.out) || c.out == "" && out.Len() > 0 ||
			!strings.HasPrefix(errs.String(), c.err) || c.err == "" && errs.Len() > 0 {
			t.Errorf("%q: status %d, %q, %q", c.args, status, out.String(), errs.String())
		}
	}
}

// Every section runs alone, and all of them in their order.
func TestSections(t *testing.T) {
	var all bytes.Buffer
	if status := run(nil, &all, &all); status != 0 {
		t.Fatalf("status %d:\n%s", status, all.String())
	}
	at := 0
	for _, s := range sections {
		i := strings.Index(all.String()[at:], "] "+s.name+": "+s.title+"\n\n")
		if i < 0 {
			t.Fatalf("section %s is missing or out of order:\n%s", s.name, all.String())
		}
		at += i + 1
	}
}
