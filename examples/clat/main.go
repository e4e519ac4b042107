// Command clat is the host side of 464XLAT (RFC 6877): it gives IPv4 programs
// on a host with an IPv6-only uplink a private IPv4 address, and translates
// their packets to IPv6 for the network's NAT64 (the PLAT) to undo.
//
//	clat -v6 2001:db8:1::c1a7 -uplink eth0 -setup
//
// The IPv6 address must be one that the uplink's router sends to this host and
// that the host itself does not use; with -setup it is announced by proxy
// neighbour discovery. The PLAT's prefix is discovered as RFC 7050 says unless
// it is given.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"signalbox.example/nat64"
	"signalbox.example/nat64/tun"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("clat", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	v6 := fs.String("v6", "", "IPv6 `address` that stands for this host's IPv4 traffic")
	v4 := fs.String("v4", "192.0.0.4", "IPv4 `address` for this host's programs (RFC 7335)")
	plat := fs.String("plat", "auto", "the PLAT's `prefix`, or auto")
	uplink := fs.String("uplink", "", "`interface` of the IPv6 uplink")
	device := fs.String("device", "clat", "`name` of the TUN device")
	setup := fs.Bool("setup", false, "run the ip and sysctl commands instead of printing them")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: clat -v6 ADDRESS -uplink INTERFACE [flags]\n\nIPv4 for programs on an IPv6-only network (464XLAT).")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "clat:", err)
		return 2
	}
	a6, err6 := netip.ParseAddr(*v6)
	a4, err4 := netip.ParseAddr(*v4)
	switch {
	case fs.NArg() > 0:
		err6 = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case err6 != nil || !a6.Is6():
		err6 = fmt.Errorf("-v6 %q: want an IPv6 address", *v6)
	case err4 != nil || !a4.Is4():
		err6 = fmt.Errorf("-v4 %q: want an IPv4 address", *v4)
	case *uplink == "":
		err6 = errors.New("-uplink is missing")
	}
	if err6 != nil {
		fmt.Fprintln(stderr, "clat:", err6)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := serve(ctx, a4, a6, *plat, *uplink, *device, *setup, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "clat:", err)
		return 1
	}
	return 0
}

// config maps the one address and leaves all others to the PLAT's prefix.
func config(v4, v6 netip.Addr, prefix nat64.Prefix) nat64.Config {
	return nat64.Config{
		Prefix: prefix,
		EAM:    []nat64.EAM{{V4: netip.PrefixFrom(v4, 32), V6: netip.PrefixFrom(v6, 128)}},
		Own4:   netip.AddrFrom4([4]byte{192, 0, 0, 1}), Own6: v6,
		// The PLAT judges which IPv4 addresses may go behind its prefix.
		AllowNonGlobalWKP: true,
	}
}

func commands(device, uplink string, v4, v6 netip.Addr) []string {
	return []string{
		"sysctl -qw net.ipv6.conf.all.forwarding=1",
		"sysctl -qw net.ipv6.conf." + uplink + ".proxy_ndp=1",
		"ip link set dev " + device + " mtu 1480 up", // the uplink's less the longer header
		"ip addr replace " + v4.String() + "/32 dev " + device,
		"ip route replace default dev " + device + " src " + v4.String(),
		"ip -6 route replace " + v6.String() + "/128 dev " + device,
		"ip -6 neigh replace proxy " + v6.String() + " dev " + uplink,
	}
}

func serve(ctx context.Context, v4, v6 netip.Addr, plat, uplink, device string, setup bool, stdout, stderr io.Writer) error {
	prefix, err := findPrefix(ctx, plat, net.DefaultResolver.LookupNetIP)
	if err != nil {
		return err
	}
	t, err := nat64.New(config(v4, v6, prefix))
	if err != nil {
		return err
	}
	d, err := tun.Open(device, tun.Options{})
	if err != nil {
		return err
	}
	defer d.Close()
	for _, l := range commands(d.Name(), uplink, v4, v6) {
		if !setup {
			fmt.Fprintln(stdout, l)
			continue
		}
		f := strings.Fields(l)
		if out, err := exec.CommandContext(ctx, f[0], f[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w %s", l, err, out)
		}
	}
	fmt.Fprintf(stderr, "clat: translating %v as %v behind %v on %s\n", v4, v6, prefix, d.Name())
	return d.Run(ctx, t)
}

// findPrefix reads the prefix, or learns it from the addresses that DNS64
// makes for ipv4only.arpa, which has 192.0.0.170 and 192.0.0.171 (RFC 7050).
func findPrefix(ctx context.Context, plat string, lookup func(context.Context, string, string) ([]netip.Addr, error)) (nat64.Prefix, error) {
	if plat != "auto" {
		return nat64.ParsePrefix(plat)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	addrs, err := lookup(ctx, "ip6", "ipv4only.arpa")
	if err != nil {
		return nat64.Prefix{}, fmt.Errorf("no DNS64 found (give -plat): %w", err)
	}
	for _, a := range addrs {
		for _, bits := range []int{96, 64, 56, 48, 40, 32} {
			n, err := a.Prefix(bits)
			if err != nil {
				continue
			}
			p, err := nat64.PrefixFrom(n)
			if err != nil {
				continue
			}
			if v4, ok := p.Extract(a); ok && (v4 == netip.AddrFrom4([4]byte{192, 0, 0, 170}) || v4 == netip.AddrFrom4([4]byte{192, 0, 0, 171})) {
				return p, nil
			}
		}
	}
	return nat64.Prefix{}, errors.New("DNS answers for ipv4only.arpa hold no prefix (give -plat)")
}
