package main

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"signalbox.example/nat64"
)

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		err    string
	}{
		{"-h", 0, "usage: clat"},
		{"", 2, "clat: -v6 \"\": want an IPv6 address"},
		{"-v6 2001:db8::1", 2, "clat: -uplink is missing"},
		{"-v6 2001:db8::1 -v4 ::1 -uplink x", 2, "clat: -v4"},
		{"-v6 2001:db8::1 -uplink x -plat 10.0.0.0/8", 1, "clat: nat64: "},
		{"more", 2, "clat: unexpected argument"},
	} {
		var out, errs bytes.Buffer
		if status := run(strings.Fields(c.args), &out, &errs); status != c.status || !strings.Contains(out.String()+errs.String(), c.err) {
			t.Errorf("%q: status %d, %q %q", c.args, status, out.String(), errs.String())
		}
	}
}

func TestFindPrefix(t *testing.T) {
	for _, want := range []string{"64:ff9b::/96", "2001:db8:122:344::/64", "2001:db8:122:300::/56", "2001:db8:122::/48", "2001:db8:100::/40", "2001:db8::/32"} {
		p, err := nat64.ParsePrefix(want)
		if err != nil {
			t.Fatal(err)
		}
		lookup := func(ctx context.Context, network, host string) ([]netip.Addr, error) {
			if network != "ip6" || host != "ipv4only.arpa" {
				t.Errorf("asked for %s %s", network, host)
			}
			return []netip.Addr{p.Embed(netip.MustParseAddr("192.0.0.171"))}, nil
		}
		if got, err := findPrefix(t.Context(), "auto", lookup); err != nil || got != p {
			t.Errorf("found %v, %v, want %v", got, err, p)
		}
	}
	nothing := func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("2001:db8::1")}, nil
	}
	if _, err := findPrefix(t.Context(), "auto", nothing); err == nil {
		t.Error("a prefix out of nowhere")
	}
	broken := func(context.Context, string, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
	if _, err := findPrefix(t.Context(), "auto", broken); err == nil || !strings.Contains(err.Error(), "-plat") {
		t.Errorf("error %v", err)
	}
}

// The configuration maps the host's address to one and all others to the
// prefix, both ways.
func TestConfig(t *testing.T) {
	tr, err := nat64.New(config(netip.MustParseAddr("192.0.0.4"), netip.MustParseAddr("2001:db8:1::c1a7"), nat64.WellKnownPrefix()))
	if err != nil {
		t.Fatal(err)
	}
	for v4, v6 := range map[string]string{"192.0.0.4": "2001:db8:1::c1a7", "8.8.8.8": "64:ff9b::808:808", "10.1.2.3": "64:ff9b::a01:203"} {
		if got, _ := tr.To6(netip.MustParseAddr(v4)); got != netip.MustParseAddr(v6) {
			t.Errorf("%s -> %v, want %s", v4, got, v6)
		}
		if got, _ := tr.To4(netip.MustParseAddr(v6)); got != netip.MustParseAddr(v4) {
			t.Errorf("%s -> %v, want %s", v6, got, v4)
		}
	}
}
