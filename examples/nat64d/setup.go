package main

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"signalbox.example/nat64/tayga"
)

// A command is one line of the set-up.
type command struct {
	line     string
	optional bool // a failure is reported and passed over
}

// routes lists what has to be routed to the device.
func routes(c *tayga.Config) []netip.Prefix {
	var list []netip.Prefix
	add := func(p netip.Prefix) {
		if !slices.ContainsFunc(list, func(q netip.Prefix) bool { return q.Bits() <= p.Bits() && q.Contains(p.Addr()) }) {
			list = append(list, p.Masked())
		}
	}
	if c.DynamicPool.IsValid() {
		add(c.DynamicPool)
	}
	if c.Prefix.IsValid() {
		add(c.Prefix.Netip())
	}
	for _, m := range c.Maps {
		add(m.V4)
	}
	if path := c.MapPath(); path != "" {
		if maps, err := tayga.ReadMaps(path); err == nil { // checked when the translator was made
			for _, m := range maps {
				add(m.V4)
			}
		}
	}
	for _, p := range c.TunRoutes {
		add(p)
	}
	for _, a := range []netip.Addr{c.IPv4Addr, c.IPv6Addr} {
		if a.IsValid() {
			add(netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return list
}

func ip(p netip.Prefix) string {
	if p.Addr().Is6() {
		return "ip -6"
	}
	return "ip"
}

// commands are the whole set-up.
func commands(c *tayga.Config, dev string, o options) []command {
	list := []command{
		{line: "sysctl -qw net.ipv4.ip_forward=1"},
		{line: "sysctl -qw net.ipv6.conf.all.forwarding=1"},
		{line: fmt.Sprintf("ip link set dev %s mtu %d up", dev, o.mtu)},
	}
	for _, p := range c.TunIPs {
		list = append(list, command{line: fmt.Sprintf("%s addr replace %s dev %s", ip(p), p, dev)})
	}
	for _, p := range routes(c) {
		list = append(list, command{line: fmt.Sprintf("%s route replace %s dev %s", ip(p), p, dev)})
	}
	for _, i := range o.interfaces {
		list = append(list, command{line: "ethtool -K " + i + " gro on rx-udp-gro-forwarding on", optional: true})
		if o.fastpath != "off" && reversePath(i) == 1 {
			list = append(list, command{line: "sysctl -qw net.ipv4.conf." + strings.ReplaceAll(i, ".", "/") + ".rp_filter=2", optional: true})
		}
	}
	return list
}

// changes are the routes that a new configuration adds and removes.
func changes(old, new *tayga.Config, dev string, o options) []command {
	var list []command
	before, after := routes(old), routes(new)
	for _, p := range after {
		if !slices.Contains(before, p) {
			list = append(list, command{line: fmt.Sprintf("%s route replace %s dev %s", ip(p), p, dev)})
		}
	}
	for _, p := range before {
		if !slices.Contains(after, p) {
			list = append(list, command{line: fmt.Sprintf("%s route del %s dev %s", ip(p), p, dev), optional: true})
		}
	}
	return list
}

// runSetup runs commands in order. It stops at the first that must not fail.
func (d *daemon) runSetup(list []command) error {
	for _, c := range list {
		f := strings.Fields(c.line)
		out, err := exec.Command(f[0], f[1:]...).CombinedOutput()
		switch {
		case err == nil:
		case c.optional:
			d.log("passed over: %s: %v %s", c.line, err, strings.TrimSpace(string(out)))
		default:
			return fmt.Errorf("%w: %s: %w %s", errSetup, c.line, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// print shows the commands and the resolver's configuration.
func (d *daemon) print(c *tayga.Config) error {
	var b strings.Builder
	b.WriteString("# Run these (or start with -setup):\n")
	dev := c.TunDevice
	if d.dev != nil {
		dev = d.dev.Name()
	}
	for _, l := range commands(c, dev, d.o) {
		b.WriteString(l.line + "\n")
	}
	if c.Prefix.IsValid() {
		fmt.Fprintf(&b, "\n# Unbound as DNS64 for this prefix (unbound.conf):\nserver:\n    module-config: \"dns64 validator iterator\"\n    dns64-prefix: %s\n", c.Prefix)
	}
	_, err := d.stdout.Write([]byte(b.String()))
	return err
}

// realInterfaces lists the devices that are up, other than loopback and the
// translator's own.
func realInterfaces(own string) ([]string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, i := range all {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 && i.Name != own {
			list = append(list, i.Name)
		}
	}
	return list, nil
}

// reversePath returns the reverse path filter in force on an interface: the
// larger of its own setting and the one for all.
func reversePath(name string) int {
	v := 0
	for _, n := range []string{"all", name} {
		b, err := os.ReadFile(filepath.Join("/proc/sys/net/ipv4/conf", n, "rp_filter"))
		if err != nil {
			continue
		}
		if x, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil {
			v = max(v, x)
		}
	}
	return v
}

// checkReversePath refuses the fast path where the strict filter would drop
// what it translates: the sources are routed to the TUN device, not to the
// interface that the packets came by.
func (d *daemon) checkReversePath() error {
	for _, i := range d.o.interfaces {
		if reversePath(i) == 1 {
			return fmt.Errorf("net.ipv4.conf.%s.rp_filter is 1 (strict), which drops translated packets: set it to 2", i)
		}
	}
	return nil
}
