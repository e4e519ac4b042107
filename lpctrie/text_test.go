package lpctrie

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// As a kernel 6.18 printed it after
//
//	ip route add table 100 10.0.0.0/24 dev lo
//	ip route add table 100 10.0.0.0/8 dev lo tos 0x10
//	ip route add table 100 10.0.0.0/8 dev lo metric 5
//	ip route add table 100 blackhole 10.1.0.0/16
//	ip route append table 100 10.1.0.0/16 dev lo
//	ip route append table 100 unreachable 10.1.0.0/16
//	ip route add table 100 throw 11.0.0.0/8
const (
	script = `# as above
route add table 100 10.0.0.0/24 dev lo
route add table 100 10.0.0.0/8 dev lo tos 0x10
route add table 100 10.0.0.0/8 dev lo metric 5

route add blackhole 10.1.0.0/16 table 100 # words in any order
route append 10.1.0.0/16 table 100 dev lo
route append unreachable 10.1.0.0/16 table 100
route add table 100 throw 11.0.0.0/8
`
	fibTrie = `Id 100:
  +-- 10.0.0.0/7 2 0 2
     +-- 10.0.0.0/15 2 0 2
        |-- 10.0.0.0
           /24 link UNICAST
           /8 link UNICAST tos=16
           /8 link UNICAST
        |-- 10.1.0.0
           /16 universe BLACKHOLE
           /16 link UNICAST
           /16 universe UNREACHABLE
     |-- 11.0.0.0
        /8 universe THROW
`
	triestat = "Id 100:\n\tAver depth:     1.66\n\tMax depth:      2\n\tLeaves:         3\n\tPrefixes:       7\n" +
		"\tInternal nodes: 2\n\t  2: 2\n\tPointers: 8\nNull ptrs: 4\nTotal size: 1  kB\n"
)

func scripted(t *testing.T) *Table[string] {
	t.Helper()
	tab := New[string](Config{})
	for c, err := range ReadBatch(strings.NewReader(script)) {
		if err != nil {
			t.Fatal(err)
		}
		if err := tab.Add(c.Route, c.Dev, c.Mode); err != nil {
			t.Fatal(c, err)
		}
	}
	return tab
}

func TestFibTrieText(t *testing.T) {
	tab := scripted(t)
	var b bytes.Buffer
	if err := tab.WriteFibTrie(&b, "Id 100"); err != nil || b.String() != fibTrie {
		t.Errorf("%v\n%s\nwant\n%s", err, b.String(), fibTrie)
	}
	var got []Node
	for n, err := range ParseFibTrie(strings.NewReader(fibTrie)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	if want := slices.Collect(tab.Nodes("Id 100")); !slices.Equal(got, want) {
		t.Errorf("parsed\n%v\nwant\n%v", got, want)
	}
	b.Reset()
	if err := tab.WriteTriestat(&b, "Id 100:"); err != nil || b.String() != triestat {
		t.Errorf("%v\n%q\nwant\n%q", err, b.String(), triestat)
	}
	stats, err := ParseTriestat(strings.NewReader(TriestatHead + triestat))
	if err != nil || len(stats) != 1 {
		t.Fatal(stats, err)
	}
	s, want := stats[0], tab.Stats()
	want.TotalDepth, want.Bytes, want.Live = 0, 0, 0
	if s.Name != "Id 100" || s.AverageDepth != 166 || s.KB != 1 || s.Stats != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	b.Reset()
	New[int](Config{}).WriteFibTrie(&b, "Main")
	if b.Len() > 0 {
		t.Errorf("an empty table shows %q", b.String())
	}
	// A trie of one leaf, and none: as the kernel prints them.
	one := New[int](Config{})
	for range 2 {
		if s := one.Stats().Triestat(); !strings.HasPrefix(s, "\tAver depth:     0.00\n\tMax depth:      0\n") || !strings.Contains(s, "Internal nodes: 0\n\t\n\tPointers: 0\nNull ptrs: 0\n") {
			t.Errorf("%q", s)
		}
		one.Insert(pfx("10.0.0.0/24"), 1)
	}
}

func TestBatchRoundTrip(t *testing.T) {
	tab := scripted(t)
	tab.Add(Route{Prefix: pfx("12.0.0.0/8"), Table: 254, Priority: 7, Scope: ScopeSite, Type: Local}, "", ModeAdd)
	var b bytes.Buffer
	if err := tab.WriteBatch(&b, func(c *Command, v string) { c.Dev = v }); err != nil {
		t.Fatal(err)
	}
	again := New[string](Config{})
	for c, err := range ReadBatch(&b) {
		if err != nil {
			t.Fatal(err)
		}
		if err := again.Add(c.Route, c.Dev, c.Mode); err != nil {
			t.Fatal(c, err)
		}
	}
	var got, want []Route
	for r := range again.All() {
		got = append(got, r)
	}
	for r := range tab.All() {
		want = append(want, r)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

func TestReadBatch(t *testing.T) {
	cases := []struct {
		line, want string // want is the command's own text, or an error
	}{
		{"route add default via 192.0.2.1 dev eth0 proto static", "route add 0.0.0.0/0 via 192.0.2.1 dev eth0 table 254 proto static"},
		{"route add 10.0.0.0/8 via inet6 fe80::1 dev eth0", "route add 10.0.0.0/8 via inet6 fe80::1 dev eth0 table 254"},
		{"route add 10.0.0.0/8 via inet 192.0.2.1", "route add 10.0.0.0/8 via 192.0.2.1 table 254"},
		{"route add 10.0.0.0/8 via inet6", `via does not take "inet6"`},
		{"route add 10.1.2.3", "route add 10.1.2.3/32 table 254"},
		{"route add 10.1.2.3/8 table local", "route add 10.0.0.0/8 table 255"},
		{"ro del to 10.0.0.0/8 tos 10 metric 0x10", "route del 10.0.0.0/8 table 254 tos 0x10 metric 16"},
		{"-4 route prepend blackhole 10.0.0.0/8 table 7", "route prepend blackhole 10.0.0.0/8 table 7"},
		{"route change 10.0.0.0/8 scope host", "route change 10.0.0.0/8 table 254 scope host"},
		{"route add 10.0.0.0/8 scope 77", "route add 10.0.0.0/8 table 254 scope 77"},
		{"route add 10.0.0.0/8 metric", "metric without a value"},
		{"route add 10.0.0.0/8 metric x", `metric does not take "x"`},
		{"route add 10.0.0.0/33", `no IPv4 prefix: "10.0.0.0/33"`},
		{"route add 2001:db8::/32 dev lo", `no IPv4 prefix: "2001:db8::/32"`},
		{"route frob 10.0.0.0/8", `unknown verb "frob"`},
		{"route add table 5", "no prefix"},
		{"link set lo up", "not a route command"},
	}
	for _, c := range cases {
		var got string
		for cmd, err := range ReadBatch(strings.NewReader("\n# comment\n" + c.line + "\n")) {
			got = cmd.String()
			if err != nil {
				var le *LineError
				if !errors.As(err, &le) || le.Line != 3 || le.Text != c.line {
					t.Errorf("%q: error %v", c.line, err)
					continue
				}
				got = le.Why
			}
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
}

func TestReadPrefixes(t *testing.T) {
	var got []netip.Prefix
	var last error
	for p, err := range ReadPrefixes(strings.NewReader("10.0.0.0/8\n\n 1.2.3.4 # host\n0.0.0.0/0\r\n10.0.0.1/8\n11.0.0.0/8\n")) {
		if err != nil {
			last = err
			continue
		}
		got = append(got, p)
	}
	if want := []netip.Prefix{pfx("10.0.0.0/8"), pfx("1.2.3.4/32"), pfx("0.0.0.0/0")}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if last == nil || last.Error() != `lpctrie: line 5: host bits are set: "10.0.0.1/8"` {
		t.Error(last)
	}
	for _, bad := range []string{"2001:db8::/32", "10.0.0.0/33", "x", "10.0.0.0/8 11.0.0.0/8", "::1"} {
		for _, err := range ReadPrefixes(strings.NewReader(bad)) {
			if err == nil {
				t.Errorf("%q was read", bad)
			}
		}
	}
	tab := tableOf(t, "10.0.0.0/8", "0.0.0.0/0", "10.0.0.0/16")
	tab.Add(Route{Prefix: pfx("10.0.0.0/8"), Priority: 3}, "", ModeAdd)
	var b bytes.Buffer
	if err := tab.WritePrefixes(&b); err != nil || b.String() != "0.0.0.0/0\n10.0.0.0/8\n10.0.0.0/16\n" {
		t.Errorf("%q %v", b.String(), err)
	}
}

func TestParseFibTrieErrors(t *testing.T) {
	for _, bad := range []string{
		"Main:\n +-- 0.0.0.0/0 2 0 2", "Main:\n  +-- 0.0.0.0/0 2 0", "Main:\n  +-- 0.0.0.0/0 33 0 2", "Main:\n  +-- ::/0 2 0 2",
		"Main:\n  |-- 10.0.0.0.0", "Main:\n     /8 link UNICAST", "Main:\n  |-- 10.0.0.0\n        /8 link UNICAST",
		"Main:\n  |-- 10.0.0.1\n     /8 link UNICAST", "Main:\n  |-- 10.0.0.0\n     /33 link UNICAST",
		"Main:\n  |-- 10.0.0.0\n     /8 near UNICAST", "Main:\n  |-- 10.0.0.0\n     /8 link FOO", "Main:\n  |-- 10.0.0.0\n     /8 link UNICAST tos=256",
		"Main:\n  |-- 10.0.0.0\nLocal:\n     /8 link UNICAST", "  what",
	} {
		var err error
		for _, err = range ParseFibTrie(strings.NewReader(bad)) {
		}
		var le *LineError
		if !errors.As(err, &le) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{"\tLeaves: 3", "Main:\n\tLeaves: x", "Main:\n\tAver depth: 1.5", "Main:\n\t  1: 2  77: 3"} {
		if s, err := ParseTriestat(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %v", bad, s)
		}
	}
}

func TestTraceText(t *testing.T) {
	tab := tableOf(t, "10.0.0.0/8", "10.128.0.0/16", "10.129.0.0/16")
	for addr, want := range map[string]string{
		"10.130.0.1": "descend 10.0.0.0/8 bits 2 skip 8 child 2; skipped bits differ 10.128.0.0/15 bits 2 skip 5; try shorter 10.128.0.0/15 bits 2 skip 5; " +
			"rejected 10.128.0.0/16; backtrack 10.0.0.0/8 bits 2 skip 8 child 0; match 10.0.0.0/8",
		"10.129.0.1": "descend 10.0.0.0/8 bits 2 skip 8 child 2; descend 10.128.0.0/15 bits 2 skip 5 child 2; match 10.129.0.0/16",
		"11.129.0.1": "skipped bits differ 10.0.0.0/8 bits 2 skip 8; try shorter 10.0.0.0/8 bits 2 skip 8; rejected 10.0.0.0/8; no route",
	} {
		if got := tab.Trace(adr(addr)).String(); got != want {
			t.Errorf("trace %s:\n%s\nwant\n%s", addr, got, want)
		}
	}
	var c Counters
	c.Add(tab.Trace(adr("10.130.0.1")))
	c.Add(tab.Trace(adr("11.0.0.1")))
	if c.Gets != 2 || c.Matched != 1 || c.Backtracks == 0 {
		t.Errorf("%+v", c)
	}
	if tab.Trace(adr("::1")) != nil {
		t.Error("an IPv6 address has a trace")
	}
	if got := New[int](Config{}).Trace(adr("1.1.1.1")).String(); got != "no route" {
		t.Errorf("trace in an empty table: %q", got)
	}
}

// TestLineTooLong: every reader says which line it is.
func TestLineTooLong(t *testing.T) {
	long := strings.Repeat("x", 1<<17)
	prefixes := func(r io.Reader) (err error) {
		for _, err = range ReadPrefixes(r) {
		}
		return err
	}
	batch := func(r io.Reader) (err error) {
		for _, err = range ReadBatch(r) {
		}
		return err
	}
	trie := func(r io.Reader) (err error) {
		for _, err = range ParseFibTrie(r) {
		}
		return err
	}
	stat := func(r io.Reader) error { _, err := ParseTriestat(r); return err }
	for name, c := range map[string]struct {
		read  func(io.Reader) error
		first string
	}{
		"ReadPrefixes":  {prefixes, "10.0.0.0/8\n"},
		"ReadBatch":     {batch, "route add 10.0.0.0/8 dev lo\n"},
		"ParseFibTrie":  {trie, "Main:\n"},
		"ParseTriestat": {stat, "Main:\n"},
	} {
		if err := c.read(strings.NewReader(c.first)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		err := c.read(strings.NewReader(c.first + long))
		var le *LineError
		if !errors.As(err, &le) || le.Line != 2 || !strings.Contains(le.Why, "too long") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
