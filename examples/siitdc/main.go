// Command siitdc is the border relay of an IPv6-only data centre (SIIT-DC,
// RFC 7755): IPv4 clients reach servers by IPv4 addresses that an explicit
// address mapping table (RFC 7757) gives them, and appear to the servers
// behind a translation prefix.
//
//	siitdc -table FILE -prefix 2001:db8:46::/96 -own4 198.51.100.1 -setup
//
// The table has one mapping a line: an IPv4 address or prefix, blanks, an IPv6
// address or prefix; # begins a comment. SIGHUP reads it again; a broken table
// changes nothing.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"signalbox.example/nat64"
	"signalbox.example/nat64/tun"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

type options struct {
	table, device string
	cfg           nat64.Config
	check, setup  bool
}

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	fs := flag.NewFlagSet("siitdc", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.table, "table", "", "`file` of mappings")
	prefix := fs.String("prefix", "", "translation `prefix` for the IPv4 Internet")
	own4 := fs.String("own4", "", "the relay's own IPv4 `address`, source of its ICMP errors")
	hairpin := fs.String("hairpin", "intrinsic", "how mapped servers reach each other's IPv4 addresses: none, simple, intrinsic")
	fs.StringVar(&o.device, "device", "siit", "`name` of the TUN device")
	fs.BoolVar(&o.check, "check", false, "read the table, print the commands, and end")
	fs.BoolVar(&o.setup, "setup", false, "run the ip and sysctl commands instead of printing them")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: siitdc -table FILE -prefix PREFIX -own4 ADDRESS [flags]\n\nIPv4 clients for IPv6-only servers (SIIT-DC).")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "siitdc:", err)
		return 2
	}
	var err error
	switch h, ok := map[string]nat64.Hairpin{"none": nat64.HairpinNone, "simple": nat64.HairpinSimple, "intrinsic": nat64.HairpinIntrinsic}[*hairpin]; {
	case fs.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case o.table == "":
		err = errors.New("-table is missing")
	case !ok:
		err = fmt.Errorf("-hairpin %q: want none, simple or intrinsic", *hairpin)
	default:
		o.cfg.Hairpin = h
		if o.cfg.Prefix, err = nat64.ParsePrefix(*prefix); err == nil {
			o.cfg.Own4, err = netip.ParseAddr(*own4)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "siitdc:", err)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := serve(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "siitdc:", err)
		return 1
	}
	return 0
}

// readTable reads mappings. An error names the line.
func readTable(name string) ([]nat64.EAM, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var table []nat64.EAM
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		line, _, _ := strings.Cut(s.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) != 2 {
			return nil, fmt.Errorf("%s:%d: want an IPv4 and an IPv6 prefix", name, n)
		}
		v4, err4 := parse(words[0])
		v6, err6 := parse(words[1])
		if err := errors.Join(err4, err6); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		table = append(table, nat64.EAM{V4: v4, V6: v6})
	}
	return table, s.Err()
}

// parse reads a prefix, or an address as one of its full length.
func parse(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		return netip.ParsePrefix(s)
	}
	a, err := netip.ParseAddr(s)
	return netip.PrefixFrom(a, a.BitLen()), err
}

// commands route the mapped IPv4 addresses and the prefix to the device.
func commands(o options, device string) []string {
	list := []string{
		"sysctl -qw net.ipv4.ip_forward=1", "sysctl -qw net.ipv6.conf.all.forwarding=1",
		"ip link set dev " + device + " up",
		"ip -6 route replace " + o.cfg.Prefix.String() + " dev " + device,
	}
	for _, e := range o.cfg.EAM {
		list = append(list, "ip route replace "+e.V4.String()+" dev "+device)
	}
	return list
}

// withdrawn take back the routes of mappings that a new table does not have.
func withdrawn(old, next options, device string) (list []string) {
	for _, e := range old.cfg.EAM {
		if !slices.ContainsFunc(next.cfg.EAM, func(n nat64.EAM) bool { return n.V4 == e.V4 }) {
			list = append(list, "ip route del "+e.V4.String()+" dev "+device)
		}
	}
	return list
}

func serve(ctx context.Context, o options, stdout, stderr io.Writer) (err error) {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.Signal(1)) // SIGHUP, where there is one
	defer signal.Stop(hangup)
	if o.cfg.EAM, err = readTable(o.table); err != nil {
		return err
	}
	t, err := nat64.New(o.cfg)
	if err != nil {
		return err
	}
	device := o.device
	var d *tun.Device
	if !o.check {
		if d, err = tun.Open(device, tun.Options{}); err != nil {
			return err
		}
		defer d.Close()
		device = d.Name()
	}
	if err := configure(ctx, commands(o, device), o.setup && !o.check, stdout); err != nil || o.check {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx, t) }()
	fmt.Fprintf(stderr, "siitdc: translating %d mappings on %s\n", len(o.cfg.EAM), device)
	for {
		select {
		case err := <-done:
			return err
		case <-hangup:
			next := o
			if next.cfg.EAM, err = readTable(o.table); err == nil {
				err = t.Update(next.cfg)
			}
			if err == nil {
				list := append(commands(next, device), withdrawn(o, next, device)...)
				o = next
				err = configure(ctx, list, o.setup, stdout)
			}
			if err != nil {
				fmt.Fprintln(stderr, "siitdc:", err)
				continue
			}
			fmt.Fprintf(stderr, "siitdc: %d mappings\n", len(o.cfg.EAM))
		}
	}
}

// configure runs commands, or prints them.
func configure(ctx context.Context, list []string, setup bool, stdout io.Writer) error {
	for _, l := range list {
		if !setup {
			fmt.Fprintln(stdout, l)
			continue
		}
		f := strings.Fields(l)
		if out, err := exec.CommandContext(ctx, f[0], f[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w %s", l, err, out)
		}
	}
	return nil
}
