package main

import (
	"bytes"
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox.example/internal/need"
	"signalbox.example/internal/netns"
	"signalbox.example/nat64"
	"signalbox.example/nat64/tun"
)

// A host that has IPv6 only reaches an IPv4 server by its IPv4 address: clat
// on the host, a NAT64 with a pool on the way.
func TestIntegrationThroughPLAT(t *testing.T) {
	need.Asked(t, netns.Feature)
	need.Commands(t, netns.Feature, "ping", "sysctl")
	host, plat, server := netns.New(t, "h"), netns.New(t, "p"), netns.New(t, "s")
	for _, p := range [][2]any{{host, "h0"}, {server, "s0"}} {
		dev := p[1].(string)
		if err := netns.Veth(p[0].(*netns.Namespace), dev, plat, "r"+dev); err != nil {
			t.Fatal(err)
		}
	}
	host.Must(t, "ip addr add 2001:db8:1::2/64 dev h0 nodad\nip -6 route add default via 2001:db8:1::1")
	server.Must(t, "ip addr add 192.0.2.2/24 dev s0\nip route add default via 192.0.2.1")
	plat.Must(t, `ip addr add 2001:db8:1::1/64 dev rh0 nodad
		ip addr add 192.0.2.1/24 dev rs0
		sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0`)

	prefix, err := nat64.ParsePrefix("2001:db8:64::/96")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := nat64.NewPool(nat64.PoolOptions{V4: netip.MustParsePrefix("10.64.0.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	tr, err := nat64.New(nat64.Config{Prefix: prefix, Pools: []*nat64.Pool{pool}, Own4: netip.MustParseAddr("10.64.0.1")})
	if err != nil {
		t.Fatal(err)
	}
	var d *tun.Device
	if err := plat.Do(func() (err error) { d, err = tun.Open("plat", tun.Options{}); return }); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	plat.Must(t, "ip link set plat up\nip route add 10.64.0.0/24 dev plat\nip -6 route add 2001:db8:64::/96 dev plat")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { d.Run(ctx, tr) })

	var out, errs bytes.Buffer
	wg.Go(func() {
		if err := host.Do(func() error {
			return serve(ctx, netip.MustParseAddr("192.0.0.4"), netip.MustParseAddr("2001:db8:1::c1a7"), "2001:db8:64::/96", "h0", "clat", true, &out, &errs)
		}); err != nil {
			t.Error(err)
		}
	})
	var last string
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var err error
		if last, err = host.Run("ping", "-4", "-c", "2", "-i", "0.2", "-W", "2", "192.0.2.2"); err == nil {
			if !strings.Contains(last, "2 received") {
				t.Error(last)
			}
			return
		}
	}
	t.Errorf("no answer: %s", last)
}
