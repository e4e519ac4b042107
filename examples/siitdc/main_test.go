package main

import (
	"bytes"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"signalbox.example/nat64"
)

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good := file("good", "# servers\n198.51.100.16/28 2001:db8:5::/124\n198.51.100.9 2001:db8:6::9 # one\n")
	for _, c := range []struct {
		args     string
		status   int
		out, err string
	}{
		{"-h", 0, "usage: siitdc", ""},
		{"-prefix 2001:db8:46::/96", 2, "", "siitdc: -table is missing"},
		{"-table " + good, 2, "", "siitdc: nat64: "},
		{"-table " + good + " -prefix 2001:db8:46::/96 -own4 x", 2, "", "siitdc: "},
		{"-table " + good + " -prefix 2001:db8:46::/96 -own4 198.51.100.1 -hairpin maybe", 2, "", "siitdc: -hairpin"},
		{"-table " + good + " -prefix 2001:db8:46::/96 -own4 198.51.100.1 -check", 0,
			"ip -6 route replace 2001:db8:46::/96 dev siit\nip route replace 198.51.100.16/28 dev siit\nip route replace 198.51.100.9/32 dev siit\n", ""},
		{"-table " + file("short", "\n198.51.100.9\n") + " -prefix 2001:db8:46::/96 -own4 198.51.100.1 -check", 1, "", "short:2: want an IPv4"},
		{"-table " + file("bad", "198.51.100.9 2001:db8:6::g\n") + " -prefix 2001:db8:46::/96 -own4 198.51.100.1 -check", 1, "", "bad:1: ParseAddr"},
		{"-table " + file("twice", "198.51.100.9 2001:db8::9\n198.51.100.9 2001:db8::8\n") + " -prefix 2001:db8:46::/96 -own4 198.51.100.1 -check", 1, "", "given twice"},
		{"-table " + filepath.Join(dir, "nowhere") + " -prefix 2001:db8:46::/96 -own4 198.51.100.1 -check", 1, "", "no such file"},
	} {
		var out, errs bytes.Buffer
		if status := run(strings.Fields(c.args), &out, &errs); status != c.status {
			t.Errorf("%s: status %d: %s", c.args, status, errs.String())
		}
		if !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.err) {
			t.Errorf("%s: wrote %q and %q", c.args, out.String(), errs.String())
		}
	}
}

// A new table's routes are added, and those of mappings that are gone go.
func TestChanges(t *testing.T) {
	table := func(s ...string) (o options) {
		for _, v4 := range s {
			o.cfg.EAM = append(o.cfg.EAM, nat64.EAM{V4: netip.MustParsePrefix(v4), V6: netip.MustParsePrefix("2001:db8::/64")})
		}
		return o
	}
	got := withdrawn(table("198.51.100.9/32", "198.51.100.16/28", "203.0.113.0/24"), table("198.51.100.16/28", "203.0.113.0/25"), "siit")
	if want := []string{"ip route del 198.51.100.9/32 dev siit", "ip route del 203.0.113.0/24 dev siit"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
