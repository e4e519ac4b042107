package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func play1(t *testing.T, script string) (out string, status int) {
	t.Helper()
	var stdout, stderr strings.Builder
	status = run(nil, strings.NewReader(script), &stdout, &stderr)
	if stderr.Len() > 0 {
		t.Errorf("stderr: %s", stderr.String())
	}
	return stdout.String(), status
}

func TestScripts(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	list := file("list", "10.0.0.0/8\n# comment\n10.1.0.0/16\n\n192.0.2.1/32\n")
	bad := file("bad", "11.0.0.0/8\n12.0.0.1/8\n")
	twice := file("twice", "11.0.0.0/8\n12.0.0.0/8\n11.0.0.0/8\n")
	list6 := file("list6", "2001:db8::/32\n2001:db8:1::/48\n")

	cases := []struct {
		name, script, want string
		status             int
	}{
		{"empty", "\n# nothing\n", "", 0},
		{"longest prefix", "add 10.0.0.0/8 v=1\nadd 10.1.0.0/16 v=2\nlookup 10.1.2.3\nlookup 10.2.2.3\nlookup 11.0.0.1\n",
			"10.1.0.0/16 v=2\n10.0.0.0/8 v=1\nmiss\n", 0},
		{"failure goes on", "add 10.0.0.0/8 v=1\nadd 10.0.0.0/8 v=2\nlookup 10.0.0.1\n",
			"error: lpctrie: route exists\n10.0.0.0/8 v=1\n", 1},
		{"get and del", "add 10.0.0.0/8 v=1\nget 10.0.0.0/8\nget 10.0.0.0/9\ndel 10.0.0.0/8\nget 10.0.0.0/8\ndel 10.0.0.0/8\n",
			"v=1\nabsent\nabsent\nerror: lpctrie: no such route\n", 1},
		{"metrics", "add 10.0.0.0/8 metric 20 v=20\nadd 10.0.0.0/8 metric 10 v=10\nlookup 10.0.0.1\nwalk\ndel 10.0.0.0/8\nlookup 10.0.0.1\ndel 10.0.0.0/8 metric 20\nlookup 10.0.0.1\n",
			"10.0.0.0/8 v=10\n10.0.0.0/8 metric 10 v=10\n10.0.0.0/8 metric 20 v=20\n\n10.0.0.0/8 v=20\nmiss\n", 0},
		{"walk", "walk\nadd 10.1.0.0/16 v=2\nadd 10.0.0.0/8 tos 16 v=1\nadd 0.0.0.0/0 v=3\nwalk\n",
			"\n0.0.0.0/0 v=3\n10.0.0.0/8 tos 16 v=1\n10.1.0.0/16 v=2\n\n", 0},
		{"stat", "add 10.0.0.0/24 v=1\nstat\n",
			"\tAver depth:     0.00\n\tMax depth:      0\n\tLeaves:         1\n\tPrefixes:       1\n\tInternal nodes: 0\n\t\n\tPointers: 0\nNull ptrs: 0\nTotal size: 1  kB\n\n", 0},
		{"trace", "trace 10.0.0.1\nadd 10.0.0.0/8 v=1\ntrace 10.0.0.1\n", "no route\nmatch 10.0.0.0/8\n", 0},
		{"load", "load " + list + "\nlookup 10.1.0.1\nlookup 192.0.2.1\nwalk\n",
			"10.1.0.0/16 v=2\n192.0.2.1/32 v=3\n10.0.0.0/8 v=1\n10.1.0.0/16 v=2\n192.0.2.1/32 v=3\n\n", 0},
		{"load all or none", "add 12.0.0.0/8 v=9\nload " + bad + "\nload " + twice + "\nload /nonexistent\nwalk\n",
			"error: lpctrie: line 2: host bits are set: \"12.0.0.1/8\"\nerror: prefix 2, 12.0.0.0/8: lpctrie: route exists\n" +
				"error: open /nonexistent: no such file or directory\n12.0.0.0/8 v=9\n\n", 1},
		{"bad commands", "frob\nadd\nadd 10.0.0.0/8\nadd 10.0.0.1/8 v=1\nadd x v=1\nadd 10.0.0.0/8 v=x\nadd 10.0.0.0/8 v=1 v=2\nadd 10.0.0.0/8 metric v=1\n" +
			"add ::/0 v=1\nadd 10.0.0.0/8 from 11.0.0.0/8 v=1\nlookup 10.0.0\nwalk now\nfamily ipx\nmode quick\nmtu 10.0.0.1\ndel 10.0.0.0/8 v=1\n",
			`error: unknown command "frob"
error: add what?
error: no v
error: host bits are set in 10.0.0.1/8
error: no prefix: "x"
error: v does not take "x"
error: unexpected word "v"
error: metric does not take "v=1"
error: lpctrie: not an IPv4 prefix without host bits: ::/0
error: from is only for family ipv6
error: no address: "10.0.0"
error: walk takes no argument
error: family is ipv4 or ipv6
error: mode is linux or draft
error: only for family ipv6
error: unexpected word "v"
`, 1},
		{"families are apart", "add 0.0.0.0/0 v=4\nfamily ipv6\nadd ::/0 v=6\nadd ::ffff:10.0.0.0/104 v=7\nlookup fe80::1\nlookup ::ffff:10.1.2.3\nlookup 10.1.2.3\nfamily ipv4\nlookup 10.1.2.3\nlookup ::ffff:10.1.2.3\n",
			"::/0 v=6\n::ffff:10.0.0.0/104 v=7\nmiss\n0.0.0.0/0 v=4\nmiss\n", 0},
		{"source-specific", "family ipv6\nadd 2001:db8::/32 metric 10 v=10\nadd 2001:db8:2::/48 metric 14 v=14\nadd 2001:db8:2::/48 from 2001:db8:a::/48 metric 15 v=15\n" +
			"lookup 2001:db8:2::1 from 2001:db8:b::1\nlookup 2001:db8:2::1\nlookup 2001:db8:2::1 from 2001:db8:a::1\nget 2001:db8:2::/48\n" +
			"mode draft\nlookup 2001:db8:2::1 from 2001:db8:b::1\nlookup 2001:db8:2::1 from 2001:db8:a::1\ndel 2001:db8:2::/48 from 2001:db8:a::/48\nwalk\n",
			"2001:db8::/32 v=10\n2001:db8::/32 v=10\n2001:db8:2::/48 v=15\nv=14\n2001:db8:2::/48 v=14\n2001:db8:2::/48 v=15\n" +
				"2001:db8::/32 metric 10 v=10\n2001:db8:2::/48 metric 14 v=14\n\n", 0},
		{"default metric of IPv6", "family ipv6\nadd 2001:db8::/32 metric 2000 v=1\nadd 2001:db8::/32 v=2\nlookup 2001:db8::1\nwalk\n",
			"2001:db8::/32 v=2\n2001:db8::/32 v=2\n2001:db8::/32 metric 2000 v=1\n\n", 0},
		{"load IPv6", "family ipv6\nload " + list6 + "\nlookup 2001:db8:1::1\nload " + list + "\nstat\n",
			"2001:db8:1::/48 v=2\nerror: radix6: line 1: not IPv6: \"10.0.0.0/8\"\nnodes 2 (2 with routes, 0 branches, 0 source trees)\nroutes 2\ndepth average 1.50, max 2\n\n", 1},
		{"exceptions", "family ipv6\nadd 2001:db8::/32 v=1\nmtu 2001:db8::1\nptb 2001:db8::1 mtu 1400\nmtu 2001:db8::1\nat 5\nptb 2001:db8::1 mtu 1300\nmtu 2001:db8::1\n" +
			"ptb 2001:db8::1 mtu 1450\nptb 2001:db8::1 mtu 1000\nmtu 2001:db8::1\nmtu 2001:db8::2\nmtu ::1\nat 601\nmtu 2001:db8::1\nat 600\n",
			"mtu=1500\nmtu=1400 expires=600\nmtu=1300 expires=595\nmtu=1300 expires=595\nmtu=1500\nmiss\nmtu=1500\nerror: time does not run backwards\n", 1},
		{"long lines", "add 10.0.0.0/8 v=1\n" + strings.Repeat("x", 3<<20) + "\nlookup 10.0.0.1\n# " + strings.Repeat("x", 3<<20) + "\r\nlookup 10.0.0.2 #" + strings.Repeat("x", 1<<18),
			"error: line is longer than 65536 characters\n10.0.0.0/8 v=1\n10.0.0.0/8 v=1\n", 1},
		{"line ends of Windows, no last one", "add 10.0.0.0/8 v=1\r\nlookup 10.0.0.1\r\n\r\nget 10.0.0.0/8", "10.0.0.0/8 v=1\nv=1\n", 0},
		{"metric 0 is the default's name for IPv6", "family ipv6\nadd 2001:db8::/32 metric 0 v=1\nadd 2001:db8::/32 v=2\nwalk\nadd 2001:db8::/32 metric 1 v=3\ndel 2001:db8::/32 metric 0\nwalk\n",
			"error: radix6: route exists: add 2001:db8::/32 metric 1024\n2001:db8::/32 v=1\n\n2001:db8::/32 v=1\n\n", 1},
		{"zones are ignored", "family ipv6\nadd fe80::/64 v=1\nlookup fe80::1%eth0\ntrace fe80::1%eth0\ntrace fe80::1\n",
			"fe80::/64 v=1\n" + strings.Repeat("descend ::/0 skip 0 bit 1; bottom fe80::/64 skip 63; match fe80::/64 metric 1024\n", 2), 0},
		{"exceptions are IPv6", "family ipv6\nadd ::/0 v=1\nptb 192.0.2.1 mtu 1400\nmtu 192.0.2.1\n", "error: radix6: not an IPv6 prefix\nmiss\n", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, status := play1(t, c.script)
			if got != c.want || status != c.status {
				t.Errorf("status %d, want %d; output\n%s\nwant\n%s", status, c.status, got, c.want)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(path, []byte("add 10.0.0.0/8 v=1\nlookup 10.0.0.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args           []string
		status         int
		stdout, stderr string
	}{
		{[]string{path}, 0, "10.0.0.0/8 v=1\n", ""},
		{[]string{"-"}, 0, "miss\n", ""},
		{[]string{"-h"}, 0, usage, ""},
		{[]string{path, path}, 2, "", "routeget: one script at a time, not 2\n"},
		{[]string{path + "x"}, 1, "", "routeget: open " + path + "x: no such file or directory\n"},
	} {
		var stdout, stderr strings.Builder
		status := run(c.args, strings.NewReader("lookup 10.0.0.1"), &stdout, &stderr)
		if status != c.status || stdout.String() != c.stdout || stderr.String() != c.stderr {
			t.Errorf("%v: status %d, stdout %q, stderr %q", c.args, status, stdout.String(), stderr.String())
		}
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
		if _, err := io.WriteString(feed, "lookup 10.0.0.1\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-line:
			if !strings.HasPrefix(s, "miss") {
				t.Errorf("%q", s)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("no answer while more input may come")
		}
	}
	feed.Close()
}
