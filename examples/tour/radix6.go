package main

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"signalbox.example/radix6"
)

// radix6Section routes a dual-homed site's packets by source, tells why, and
// learns a path MTU.
func radix6Section(w io.Writer) error {
	tree := radix6.New[string](radix6.SourceLinux)
	for _, r := range []struct{ prefix, from, exit string }{
		{"::/0", "2001:db8:a::/48", "provider A"},
		{"::/0", "2001:db8:b::/48", "provider B"},
		{"2001:db8:cafe::/48", "", "peering"},
		{"2001:db8:cafe:1::/64", "", "lab"},
	} {
		route := radix6.Route{Prefix: netip.MustParsePrefix(r.prefix)}
		if r.from != "" {
			route.From = netip.MustParsePrefix(r.from)
		}
		if err := tree.Add(route, r.exit, radix6.ModeAdd); err != nil {
			return err
		}
	}
	src := netip.MustParseAddr("2001:db8:b::10")
	for _, s := range []string{"2001:db8:cafe:1::7", "2001:db8:cafe:2::7", "2001:db8:ffff::1"} {
		dst := netip.MustParseAddr(s)
		exit, route, _ := tree.LookupFrom(dst, src)
		fmt.Fprintf(w, "%-19v -> %-10s (%v)\n", dst, exit, route)
	}
	fmt.Fprintln(w, "\nwhy 2001:db8:cafe:2::7 goes to the peering:")
	for _, step := range tree.TraceFrom(netip.MustParseAddr("2001:db8:cafe:2::7"), src) {
		fmt.Fprintln(w, "  "+step.String())
	}

	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	cache := radix6.NewCache(tree, radix6.CacheConfig{Now: func() time.Time { return now }}, nil)
	dst := netip.MustParseAddr("2001:db8:ffff::1")
	if _, err := cache.PacketTooBig(dst, src, 1400); err != nil {
		return err
	}
	mtu, expires, _ := cache.MTU(dst, src)
	fmt.Fprintf(w, "\nafter \"packet too big\": mtu %d for %v", mtu, expires.Sub(now))
	now = now.Add(601 * time.Second)
	mtu, _, _ = cache.MTU(dst, src)
	fmt.Fprintf(w, ", then %d again\n", mtu)
	return nil
}
