package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"signalbox.example/nat64"
	"signalbox.example/nat64/tayga"
)

// taygaConf is a NAT64 beside a router, for servers that have only IPv6.
const taygaConf = `
tun-device nat64
ipv4-addr 10.64.0.1
prefix 2001:db8:64::/96
dynamic-pool 10.64.0.0/24
map 10.64.0.10 2001:db8::10
`

// nat64Section sends packets of an IPv6-only server and its visitors through
// the translator that this configuration describes.
func nat64Section(w io.Writer) error {
	conf, err := tayga.Parse(strings.NewReader(taygaConf))
	if err != nil {
		return err
	}
	pool, err := conf.Pool(nat64.PoolOptions{Now: func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }})
	if err != nil {
		return err
	}
	cfg, err := conf.Translator(1500)
	if err != nil {
		return err
	}
	cfg.Pools = []*nat64.Pool{pool}
	t, err := nat64.New(cfg)
	if err != nil {
		return err
	}
	var s nat64.Scratch
	for _, p := range []struct{ what, packet string }{
		{"a visitor's request to the server's address 10.64.0.10",
			"45000028123440004006f417" + "c6336407" + "0a40000a" + "c350005000000001000000005002faf0bccb0000"},
		{"the server's answer, to the visitor behind the prefix",
			"6000000000140640" + "20010db8000000000000000000000010" + "20010db80064000000000000c6336407" + "0050c35000000064000000025012000065ab0000"},
		{"an echo request of a host without a map: it gets an address of the pool",
			"6000000000103a40" + "20010db8000000000000000000000077" + "20010db80064000000000000c6336407" + "8000678f000700016162636465666768"},
		{"a packet whose hop limit ends here",
			"6000000000103a01" + "20010db8000000000000000000000077" + "20010db80064000000000000c6336407" + "8000678f000700016162636465666768"},
	} {
		packet, err := hex.DecodeString(p.packet)
		if err != nil {
			return err
		}
		trace := t.Explain(packet)
		buf := append(make([]byte, nat64.Headroom), packet...)
		r := t.Translate(&s, buf, nat64.Headroom, len(packet))
		fmt.Fprintf(w, "%s\n", p.what)
		if r.Verdict != nat64.Drop {
			fmt.Fprintf(w, "  %s\n  becomes %s\n", ends(packet), ends(r.Packet))
		}
		fmt.Fprintf(w, "  %v, %v: %s\n", r.Verdict, r.Reason, r.Reason.Section())
		for _, step := range trace.Steps[:min(2, len(trace.Steps))] {
			fmt.Fprintf(w, "  %s (%s)\n", step.Text, step.Section)
		}
	}
	for b := range pool.Bindings() {
		fmt.Fprintf(w, "dynamic.map would say: %v %v\n", b.V4, b.V6)
	}
	return nil
}

// ends returns source and destination of an IP packet.
func ends(p []byte) string {
	from, to := 12, 16
	if p[0]>>4 == 6 {
		from, to = 8, 24
	}
	src, _ := netip.AddrFromSlice(p[from:to])
	dst, _ := netip.AddrFromSlice(p[to : 2*to-from])
	return fmt.Sprintf("%v > %v", src, dst)
}
