package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.example/internal/need"
	"signalbox.example/internal/routegen"
)

const dump = `Main:
  +-- 10.0.0.0/15 2 0 2
     |-- 10.0.0.0
        /24 link UNICAST
        /8 universe UNICAST tos=16
        /8 universe UNICAST
        /8 universe UNICAST
     |-- 10.1.0.0
        /16 universe BLACKHOLE
Id 100:
  |-- 0.0.0.0
     /0 universe PROHIBIT
`

// addressFirst is Linux's after "ip link set lo up" and routes to 10.0.0.0/8,
// 10.1.0.0/16 and 10.2.0.0/24.
const addressFirst = `Main:
  +-- 0.0.0.0/1 2 0 2
     +-- 10.0.0.0/14 2 0 1
        |-- 10.0.0.0
           /8 link UNICAST
        |-- 10.1.0.0
           /16 link UNICAST tos=4
        |-- 10.2.0.0
           /24 universe UNREACHABLE
     +-- 127.0.0.0/8 2 0 2
        +-- 127.0.0.0/31 1 0 0
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
        |-- 127.255.255.255
           /32 link BROADCAST
`

func TestRun(t *testing.T) {
	history := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(history, []byte("route add prohibit default\nroute add 10.0.0.0/8 dev lo\nroute del 10.0.0.0/8\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, in, out, err string
		status             int
	}{
		{"-", dump, "Main: 5 routes, 8 lines, the same\nId 100: 1 routes, 2 lines, the same\n", "", 0},
		{"-table Main -", dump, "Main: 5 routes, 8 lines, the same\n", "", 0},
		{"-", addressFirst, "Main: 6 routes, 16 lines, the same\n", "", 0},
		{"-table Local -", dump, "", "fibdiff: the dump has no table \"Local\"\n", 2},
		{"-", strings.Replace(dump, "10.0.0.0/15 2 0 2", "10.0.0.0/15 2 0 1", 1),
			"-  +-- 10.0.0.0/15 2 0 1\n+  +-- 10.0.0.0/15 2 0 2\nMain: 5 routes, 8 lines, 2 differ\nId 100: 1 routes, 2 lines, the same\n", "", 1},
		{"-", "Main:\n  what\n", "", "fibdiff: lpctrie: line 2: neither tnode, leaf nor alias: \"  what\"\n", 2},
		{"/nonexistent", "", "", "fibdiff: open /nonexistent: no such file or directory\n", 2},
	} {
		var stdout, stderr strings.Builder
		args := strings.Fields(c.args)
		if status := run(args, strings.NewReader(c.in), &stdout, &stderr); status != c.status || stdout.String() != c.out || stderr.String() != c.err {
			t.Errorf("%s: status %d, stdout\n%s\nstderr %s", c.args, status, stdout.String(), stderr.String())
		}
	}
	var stdout, stderr strings.Builder
	if status := run([]string{"-table", "Id 100", "-history", history, "-"}, strings.NewReader(dump), &stdout, &stderr); status != 0 {
		t.Errorf("history: status %d, %s%s", status, stdout.String(), stderr.String())
	}
	if run([]string{"-h"}, nil, &stdout, &stderr) != 0 || run([]string{"-history", "x"}, nil, &stdout, &stderr) != 2 || run([]string{"-x"}, nil, &stdout, &stderr) != 2 {
		t.Error("wrong status for help or misuse")
	}
}

// A namespace of the running kernel: its own main and local tables, and ten
// thousand routes with a history of deletions.
func TestIntegrationFibdiff(t *testing.T) {
	need.Asked(t, "netns")
	need.Root(t, "netns")
	need.Commands(t, "netns", "ip")
	ns := fmt.Sprintf("fibdiff-%d", os.Getpid())
	ip := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("ip", args...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("ip %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	ip("", "netns", "add", ns)
	defer ip("", "netns", "del", ns)
	ip("", "-n", ns, "link", "set", "lo", "up")
	var batch strings.Builder
	table := routegen.IPv4(10000, 99)
	for _, p := range table {
		fmt.Fprintf(&batch, "route add table 100 %v dev lo\n", p)
	}
	for _, p := range table[:3000] {
		fmt.Fprintf(&batch, "route del table 100 %v\n", p)
	}
	ip(batch.String(), "-n", ns, "-batch", "-")
	history := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(history, []byte(batch.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	dump := ip("", "netns", "exec", ns, "cat", "/proc/net/fib_trie")
	for _, args := range [][]string{{"-table", "Main", "-"}, {"-table", "Id 100", "-history", history, "-"}} {
		var stdout, stderr strings.Builder
		if status := run(args, strings.NewReader(dump), &stdout, &stderr); status != 0 {
			t.Errorf("%v: status %d\n%s%s", args, status, stdout.String(), stderr.String())
		} else {
			t.Log(strings.TrimSpace(stdout.String()))
		}
	}
}
