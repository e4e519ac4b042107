package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.conf")
	write(t, good, seedConfig(dir)+"map 198.51.100.7 2001:db8:2::7\n")
	bad := filepath.Join(dir, "bad.conf")
	write(t, bad, "tun-device nat64\nipv4-addr 10.64.0.1\nprefix 2001:db8:64::/95\nprefx 1\n")
	for _, c := range []struct {
		args     string
		status   int
		out, err string
	}{
		{"-h", 0, "usage: nat64d", ""},
		{"-offload fast", 2, "", "nat64d: -offload \"fast\": want auto"},
		{"-fastpath maybe", 2, "", "nat64d: -fastpath"},
		{"-queues 0", 2, "", "nat64d: -queues 0"},
		{"-mtu 1000", 2, "", "nat64d: -mtu 1000"},
		{"-rfc6791 2001:db8::/32", 2, "", "nat64d: -rfc6791"},
		{"extra", 2, "", "nat64d: unexpected argument \"extra\""},
		{"-config " + filepath.Join(dir, "nowhere"), 1, "", "nat64d: tayga: open"},
		{"-check -config " + bad, 1, "", "bad.conf:3: prefix \"2001:db8:64::/95\""},
		{"-check -config " + bad, 1, "", "bad.conf:4: prefx: unknown directive"},
		{"-check -config " + good, 0, "ip route replace 10.64.0.0/24 dev nat64\nip -6 route replace 2001:db8:64::/96 dev nat64\nip route replace 198.51.100.7/32 dev nat64\n", ""},
		{"-check -config " + good, 0, "dns64-prefix: 2001:db8:64::/96", ""},
		{"-check -interfaces lan0,wan0 -config " + good, 0, "ethtool -K wan0 gro on rx-udp-gro-forwarding on", ""},
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

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// seedConfig is a tayga.conf as its users have it.
func seedConfig(data string) string {
	return "tun-device nat64\nipv4-addr 10.64.0.1\nipv6-addr 2001:db8:1::64\nprefix 2001:db8:64::/96\n" +
		"dynamic-pool 10.64.0.0/24\ndata-dir " + data + "\nmap 10.64.0.10 2001:db8:1::2\n"
}

// A report says all that an error says, each part of a joined one on a line.
func TestReport(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("one"), "nat64d: one\n"},
		{errors.Join(errors.New("one"), errors.New("two")), "nat64d: one\nnat64d: two\n"},
		{fmt.Errorf("dynamic.map: %w", errors.Join(errors.New("one"), errors.New("two"))), "nat64d: dynamic.map: one\nnat64d: two\n"},
		{fmt.Errorf("%w: ip route add: %w File exists", errSetup, errors.New("exit status 2")), "nat64d: setting up failed: ip route add: exit status 2 File exists\n"},
	} {
		var b bytes.Buffer
		if report(&b, c.err); b.String() != c.want {
			t.Errorf("wrote %q, want %q", b.String(), c.want)
		}
	}
}

// A dynamic.map that cannot be read to its end is not taken for one without the
// rest, which the next binding would then make true.
func TestUnreadablePoolFile(t *testing.T) {
	dir := t.TempDir()
	conf, name := filepath.Join(dir, "tayga.conf"), filepath.Join(dir, "dynamic.map")
	write(t, conf, seedConfig(dir))
	check := func() (int, string) {
		var out, errs bytes.Buffer
		return run([]string{"-check", "-config", conf}, &out, &errs), errs.String()
	}
	binding := fmt.Sprintf("10.64.0.77\t2001:db8:1::77\t%d\n", time.Now().Unix())
	write(t, name, "# comment\nno binding\n"+binding)
	if status, errs := check(); status != 0 || !strings.Contains(errs, "line 2") {
		t.Errorf("one wrong line: status %d: %s", status, errs)
	}
	write(t, name, "# "+strings.Repeat("x", 1<<17)+"\n"+binding)
	if status, errs := check(); status != 1 || !strings.Contains(errs, "dynamic.map") {
		t.Errorf("a line that is too long: status %d: %s", status, errs)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if status, errs := check(); status != 0 {
		t.Errorf("no file: status %d: %s", status, errs)
	}
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	if status, errs := check(); status != 1 || !strings.Contains(errs, "dynamic.map") {
		t.Errorf("a folder: status %d: %s", status, errs)
	}
}
