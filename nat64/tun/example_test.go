package tun_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"signalbox.example/nat64"
	"signalbox.example/nat64/tun"
)

// A whole translator: one address of each family for a host, all others
// behind the prefix.
func Example() {
	prefix, err := nat64.ParsePrefix("64:ff9b::/96")
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := nat64.New(nat64.Config{
		Prefix: prefix,
		EAM:    []nat64.EAM{{V4: netip.MustParsePrefix("203.0.113.10/32"), V6: netip.MustParsePrefix("2001:db8::10/128")}},
		Own4:   netip.MustParseAddr("192.0.0.8"), // without it no ICMP errors are made
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	serve := func(ctx context.Context) error {
		d, err := tun.Open("nat64", tun.Options{Queues: 2})
		if errors.Is(err, errors.ErrUnsupported) {
			return err // this is not Linux
		} else if err != nil {
			return err // no privilege, or the name is taken
		}
		defer d.Close()
		return d.Run(ctx, t) // until the context ends
	}
	_ = serve
	fmt.Println(tun.OffloadChecksum | tun.OffloadTSO | tun.OffloadUSO)
	// Output: csum,tso,uso
}
