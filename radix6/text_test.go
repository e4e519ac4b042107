package radix6

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWrongLinesAreNamed(t *testing.T) {
	prefixes := func(s string) (err error) {
		for _, err = range ReadPrefixes(strings.NewReader(s)) {
		}
		return err
	}
	commands := func(s string) (err error) {
		for _, err = range ReadBatch(strings.NewReader(s)) {
		}
		return err
	}
	proc := func(s string) (err error) {
		for _, err = range ReadProcRoute(strings.NewReader(s)) {
		}
		return err
	}
	const zeros = "00000000000000000000000000000000"
	for _, c := range []struct {
		read func(string) error
		text string
		line int
		why  string
	}{
		{prefixes, "2001:db8::/32\n\n# x\n10.0.0.0/8\n", 4, "not IPv6"},
		{prefixes, "2001:db8::1/32", 1, "host bits are set"},
		{prefixes, "2001:db8::/129", 1, "no IPv6 prefix or address"},
		{prefixes, "fe80::1%eth0", 1, "no IPv6 prefix or address"},
		{prefixes, "::1\n" + strings.Repeat("x", 70000), 2, "line is too long"},
		{commands, "route add ::1 dev lo\nlink add x", 2, "not a route command"},
		{commands, "route paint ::1", 1, `unknown verb "paint"`},
		{commands, "route add ::1 metric", 1, "metric without a value"},
		{commands, "route add ::1 metric -4", 1, `metric does not take "-4"`},
		{commands, "route add ::1 metric 4294967296", 1, `metric does not take "4294967296"`},
		{commands, "route add 10.0.0.0/8 dev lo", 1, `no IPv6 prefix: "10.0.0.0/8"`},
		{commands, "route add dev lo", 1, "no prefix"},
		{commands, "route add ::1 from 10.0.0.1", 1, `from does not take "10.0.0.1"`},
		{commands, "route add type odd ::1", 1, `type does not take "odd"`},
		{proc, "x y", 1, "2 fields, want 10"},
		{proc, zeros + " 81 " + zeros + " 00 " + zeros + " 00000000 00000000 00000000 00000000 lo", 1, "wrong destination"},
		{proc, zeros + " 80 0" + zeros + " 00 " + zeros + " 00000000 00000000 00000000 00000000 lo", 1, "wrong source"},
		{proc, zeros + " 80 " + zeros + " 00 +" + zeros[1:] + " 00000000 00000000 00000000 00000000 lo", 1, "wrong gateway"},
		{proc, zeros + " 80 " + zeros + " 00 " + zeros + " 0 00000000 00000000 00000000 lo", 1, `not 8 hexadecimal digits: "0"`},
		{proc, "80" + zeros[2:] + " 00 " + zeros + " 00 " + zeros + " 00000000 00000000 00000000 00000000 lo", 1, "wrong destination"},
	} {
		err := c.read(c.text)
		var le *LineError
		if !errors.As(err, &le) || le.Line != c.line || le.Why != c.why {
			t.Errorf("%.60q: %v, want line %d %s", c.text, err, c.line, c.why)
		} else if !strings.HasPrefix(err.Error(), "radix6: line ") {
			t.Errorf("text of the error: %q", err)
		}
	}
	broken := iotest.ErrReader(io.ErrUnexpectedEOF)
	for _, err := range ReadPrefixes(broken) {
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the reader's error became %v", err)
		}
	}
}

func TestReadBatch(t *testing.T) {
	for _, c := range []struct {
		in, out string
		want    Route
	}{
		{"route add 2001:db8::/32 dev lo", "route add 2001:db8::/32 dev lo metric 1024", rt("2001:db8::/32", "", 1024)},
		{"-6 ro replace 2001:db8::1/32 via inet6 fe80::1 dev eth0 # cut", "route replace 2001:db8::/32 via fe80::1 dev eth0 metric 1024", rt("2001:db8::/32", "", 1024)},
		{"route append default from 2001:db9::/48 via fe80::1 metric 0x10 proto bird", "route append ::/0 from 2001:db9::/48 via fe80::1 metric 16 proto bird", rt("::/0", "2001:db9::/48", 16)},
		{"r del to blackhole 2001:db8::7 table local", "route del blackhole 2001:db8::7/128 table 255", rt("2001:db8::7/128", "", 0)},
		{"route change unicast ::/0 from ::/0 table 7 preference 3", "route change ::/0 table 7 metric 3", rt("::/0", "", 3)},
		{"route prepend type unreachable 2001:db8::/32", "route append unreachable 2001:db8::/32 metric 1024", rt("2001:db8::/32", "", 1024)},
	} {
		cmd, err := one(ReadBatch(strings.NewReader(c.in)))
		if err != nil || cmd.Route != c.want || cmd.String() != c.out {
			t.Errorf("%q: %v %q %v", c.in, cmd.Route, cmd, err)
		}
	}
}

func TestWritersRoundTrip(t *testing.T) {
	tr := New[int](SourceLinux)
	add(t, tr, rt("::/0", "", 1), rt("2001:db8::/32", "", 2), rt("2001:db8::/32", "", 3), rt("2001:db8::/32", "2001:db9::/32", 4), rt("2001:db8:1::/48", "", 5))
	gw := netip.MustParseAddr("fe80::1")
	var b strings.Builder
	if err := tr.WriteBatch(&b, func(c *Command, v int) { c.Via, c.Dev, c.Table = gw, "eth0", 100 }); err != nil {
		t.Fatal(err)
	}
	const commands = `route append ::/0 via fe80::1 dev eth0 table 100 metric 1
route append 2001:db8::/32 via fe80::1 dev eth0 table 100 metric 2
route append 2001:db8::/32 via fe80::1 dev eth0 table 100 metric 3
route append 2001:db8::/32 from 2001:db9::/32 via fe80::1 dev eth0 table 100 metric 4
route append 2001:db8:1::/48 via fe80::1 dev eth0 table 100 metric 5
`
	if b.String() != commands {
		t.Errorf("batch:\n%s", b.String())
	}
	b.Reset()
	if err := tr.WritePrefixes(&b); err != nil || b.String() != "::/0\n2001:db8::/32\n2001:db8:1::/48\n" {
		t.Errorf("prefixes: %q %v", b.String(), err)
	}
	b.Reset()
	if err := tr.WriteProcRoute(&b, func(p *ProcRoute, v int) {
		if v == 1 {
			p.Gateway, p.Flags = gw, FlagUp|FlagGateway
		}
		p.Dev, p.Refs = "eth0", 1
	}); err != nil {
		t.Fatal(err)
	}
	// Linux: sources first, then what is below, then the node's own.
	const proc = `20010db8000000000000000000000000 20 20010db9000000000000000000000000 20 00000000000000000000000000000000 00000004 00000001 00000000 00000001     eth0
20010db8000100000000000000000000 30 00000000000000000000000000000000 00 00000000000000000000000000000000 00000005 00000001 00000000 00000001     eth0
20010db8000000000000000000000000 20 00000000000000000000000000000000 00 00000000000000000000000000000000 00000002 00000001 00000000 00000001     eth0
20010db8000000000000000000000000 20 00000000000000000000000000000000 00 00000000000000000000000000000000 00000003 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 00000001 00000001 00000000 00000003     eth0
`
	if b.String() != proc {
		t.Errorf("proc:\n%s", b.String())
	}
	n := 0
	for p, err := range ReadProcRoute(strings.NewReader(proc)) {
		if err != nil || p.Dev != "eth0" {
			t.Fatal(err)
		}
		if v, ok := tr.GetRoute(p.Route); !ok || v != int(p.Route.Metric) {
			t.Errorf("%v", p.Route)
		}
		n++
	}
	if n != tr.Len() {
		t.Errorf("%d lines", n)
	}
}

// A device's name may have # in it, where other texts have comments.
func TestProcRouteOfOddDevice(t *testing.T) {
	for _, dev := range []string{"br#1", "#", "a#b#"} {
		line := ProcRoute{Route: rt("2001:db8::/32", "", 1), Flags: FlagUp, Dev: dev}.String()
		for p, err := range ReadProcRoute(strings.NewReader(line + "\n")) {
			if err != nil || p.Dev != dev {
				t.Errorf("%q: %q %v", dev, p.Dev, err)
			}
		}
	}
}

func TestTraceTellsTheWay(t *testing.T) {
	tr := New[int](SourceLinux)
	add(t, tr, rt("2001:db8::/32", "", 1), rt("2001:db8:1::/48", "", 2), rt("2001:db8:1::/48", "2001:db9::/32", 3), rt("2001:db8:2::/48", "", 4))
	for _, c := range []struct{ dst, src, want string }{
		{"2001:db8:3::1", "", "descend ::/0 skip 0 bit 0; descend 2001:db8::/32 skip 31 bit 0; descend 2001:db8::/46 skip 13 bit 1; bottom 2001:db8:2::/48 skip 1; mismatch 2001:db8:2::/48; fork 2001:db8::/46; match 2001:db8::/32 metric 1"},
		{"2001:db8:1::1", "2001:db9::1", "descend ::/0 skip 0 bit 0; descend 2001:db8::/32 skip 31 bit 0; descend 2001:db8::/46 skip 13 bit 0; bottom 2001:db8:1::/48 skip 1; sources 2001:db8:1::/48; descend from ::/0 skip 0 bit 0; bottom from 2001:db9::/32 skip 31; match 2001:db8:1::/48 from 2001:db9::/32 metric 3"},
		{"3000::", "", "descend ::/0 skip 0 bit 0; descend 2001:db8::/32 skip 31 bit 0; descend 2001:db8::/46 skip 13 bit 0; bottom 2001:db8:1::/48 skip 1; mismatch 2001:db8:1::/48; mismatch 2001:db8::/46; mismatch 2001:db8::/32; fork ::/0; no route"},
	} {
		if got := tr.TraceFrom(ip(c.dst), ip(c.src)).String(); got != c.want {
			t.Errorf("%s from %q:\n got %s\nwant %s", c.dst, c.src, got, c.want)
		}
	}
}
