// Command nat64d is a NAT64 / SIIT daemon on a TUN device for Linux. It reads
// Tayga's configuration as it is:
//
//	nat64d -config /etc/tayga.conf -setup
//
// Without -setup it prints the commands that configure the device, the routes
// and the offloads, and the lines for Unbound's DNS64, and leaves running them
// to the administrator. Super-packets pass the device whole; simple packets do
// not leave the kernel at all where it takes the fast path (-fastpath).
//
// Signals: SIGHUP reads the configuration again (a broken one changes
// nothing), SIGUSR1 prints the counters, SIGTERM saves the dynamic pool and
// ends. The pool is also saved, within a second, whenever it changes.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"signalbox.example/nat64/tun"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// options are the command line.
type options struct {
	config     string
	check      bool
	setup      bool
	interfaces []string
	queues     int
	tun        tun.Options
	mtu        int
	fastpath   string
	eamDest    bool
	user       string
	metrics    string
	rfc6791    netip.Prefix
}

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	fs := flag.NewFlagSet("nat64d", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.config, "config", "/etc/tayga.conf", "configuration `file` in Tayga's form")
	fs.BoolVar(&o.check, "check", false, "read the configuration, print the commands for it, and end")
	fs.BoolVar(&o.setup, "setup", false, "run the ip, sysctl and ethtool commands instead of printing them")
	interfaces := fs.String("interfaces", "", "comma-separated `names` of the real interfaces of both sides; default: all Ethernet and IP devices that are up")
	fs.IntVar(&o.queues, "queues", 1, "queues of the TUN device, 1 to 64")
	offload := fs.String("offload", "auto", "offloads of the TUN device: auto, tso (no UDP segmentation, as before Linux 6.2), csum, none (no vnet header)")
	fs.IntVar(&o.mtu, "mtu", 1500, "MTU of the TUN device and of both sides, 1280 to 65535")
	fs.StringVar(&o.fastpath, "fastpath", "auto", "translate simple packets in the kernel: auto, off, require")
	fs.BoolVar(&o.eamDest, "fastpath-eam", false, "with the fast path, take IPv6 packets to mapped addresses, too (no native traffic between mapped hosts)")
	fs.StringVar(&o.user, "user", "", "run as this `user` once the device is open")
	fs.StringVar(&o.metrics, "metrics", "", "serve counters for Prometheus at this `address`, such as 127.0.0.1:9640")
	rfc6791 := fs.String("rfc6791", "", "IPv4 `prefix` for ICMP errors from IPv6 routers that have no IPv4 address; default: ipv4-addr")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: nat64d [flags]\n\nTranslates between IPv6 and IPv4 on a TUN device, by a tayga.conf.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "nat64d:", err)
		return 2
	}
	usage := func(format string, a ...any) int {
		fmt.Fprintf(stderr, "nat64d: "+format+"\n", a...)
		return 2
	}
	if fs.NArg() > 0 {
		return usage("unexpected argument %q", fs.Arg(0))
	}
	switch *offload {
	case "auto":
	case "tso":
		o.tun.NoUSO = true
	case "csum":
		o.tun.NoTSO = true
	case "none":
		o.tun.NoVnetHeader = true
	default:
		return usage("-offload %q: want auto, tso, csum or none", *offload)
	}
	if o.fastpath != "auto" && o.fastpath != "off" && o.fastpath != "require" {
		return usage("-fastpath %q: want auto, off or require", o.fastpath)
	}
	if o.queues < 1 || o.queues > tun.MaxQueues {
		return usage("-queues %d: want 1 to %d", o.queues, tun.MaxQueues)
	}
	if o.mtu < 1280 || o.mtu > 65535 {
		return usage("-mtu %d: want 1280 to 65535", o.mtu)
	}
	if *rfc6791 != "" {
		var err error
		if o.rfc6791, err = netip.ParsePrefix(*rfc6791); err != nil || !o.rfc6791.Addr().Is4() {
			return usage("-rfc6791 %q: want an IPv4 prefix", *rfc6791)
		}
	}
	o.tun.Queues = o.queues
	if *interfaces != "" {
		o.interfaces = strings.Split(*interfaces, ",")
	}

	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := serve(ctx, o, stdout, stderr); err != nil {
		report(stderr, err)
		return 1
	}
	return 0
}

// report prints an error, each part of a joined one on a line of its own.
func report(w io.Writer, err error) {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(w, "nat64d:", line)
	}
}
