// Command vpn builds a route-based VPN between two sites, each in a network
// namespace of its own, and shows it at work: tunnel states, the three
// policies with mark 6 on each side, and a vti6 interface that is made outside
// and moved into the namespace "private" behind it, so that what is private
// has no other way out.
//
//	private --vti6--  site A  ==== 2001:db8:1::1 - 2001:db8:3::2 ====  site B  --vti6-- private
//
// It needs root, iproute2 and ping, changes nothing outside the namespaces it
// makes, and removes them. With -if xfrm an xfrm interface takes the place of
// vti6: interface ids instead of marks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/netns"
	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("vpn", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	kind := fs.String("if", "vti6", "interface `kind`: vti6 or xfrm")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: vpn [-if vti6|xfrm]\n\nBuilds a route-based VPN between two namespaces and pings through it. Needs root.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "vpn:", err)
		return 2
	}
	if fs.NArg() > 0 || *kind != "vti6" && *kind != "xfrm" {
		fmt.Fprintln(stderr, "vpn: want -if vti6 or -if xfrm and nothing else")
		return 2
	}
	if err := build(context.Background(), *kind, stdout); err != nil {
		fmt.Fprintln(stderr, "vpn:", err)
		return 1
	}
	return 0
}

// site is one end of the tunnel.
type site struct {
	outside, private *netns.Namespace
	addr, peer       netip.Addr // of the tunnel
	inside           string     // of the private side
	network          string     // of the other private side
	in, out          uint32     // SPIs
}

const (
	mark  = 6
	reqid = 1
)

func build(ctx context.Context, kind string, stdout io.Writer) (err error) {
	a := &site{addr: netip.MustParseAddr("2001:db8:1::1"), peer: netip.MustParseAddr("2001:db8:3::2"), inside: "fd00:a::1", network: "fd00:b::/64", out: 0xa1, in: 0xb1}
	b := &site{addr: a.peer, peer: a.addr, inside: "fd00:b::1", network: "fd00:a::/64", out: 0xb1, in: 0xa1}
	for _, s := range []*site{a, b} {
		for _, ns := range []**netns.Namespace{&s.outside, &s.private} {
			if *ns, err = netns.Create("vpn"); err != nil {
				return fmt.Errorf("%w (needs root and iproute2)", err)
			}
			defer (*ns).Close()
		}
	}
	if err := netns.Veth(a.outside, "wan", b.outside, "wan"); err != nil {
		return err
	}
	for _, s := range []*site{a, b} {
		if err := s.setUp(ctx, kind); err != nil {
			return err
		}
	}
	if err := show(ctx, a, stdout); err != nil {
		return err
	}
	out, err := a.private.Run("ping", "-6", "-c", "3", "-i", "0.2", "-W", "3", b.inside)
	fmt.Fprintf(stdout, "\n# ping from one private namespace to the other\n%s", out)
	if err != nil {
		return errors.New("the ping through the tunnel failed")
	}
	return counted(ctx, a, stdout)
}

// dial opens a connection in a namespace.
func dial(ns *netns.Namespace) (c *conn.Conn, err error) {
	err = ns.Do(func() error { c, err = conn.Dial(nil); return err })
	return c, err
}

func (s *site) setUp(ctx context.Context, kind string) error {
	if err := lines(s.outside, fmt.Sprintf("ip addr add %s/128 dev wan nodad\nip -6 route add %s/128 dev wan", s.addr, s.peer)); err != nil {
		return err
	}
	c, err := dial(s.outside)
	if err != nil {
		return err
	}
	defer c.Close()
	batch := c.Batch()
	for _, sa := range s.states(kind) {
		if err := batch.AddSA(&sa); err != nil {
			return err
		}
	}
	for _, p := range s.policies(kind) {
		if err := batch.AddPolicy(&p); err != nil {
			return err
		}
	}
	failures, err := batch.Flush(ctx)
	if err != nil {
		return err
	}
	for _, f := range failures {
		return fmt.Errorf("request %d: %w", f.Index, f.Err)
	}
	return s.link(kind)
}

// states are the two of a tunnel. One state carries both families: af-unspec.
func (s *site) states(kind string) []xfrm.SA {
	// A key for a demonstration. Real ones come from IKE.
	aead, err := xfrm.AESGCM16([]byte("0123456789abcdefSALT"))
	if err != nil {
		panic(err) // the length is right
	}
	sa := xfrm.SA{Proto: xfrm.ESP, Mode: xfrm.Tunnel, ReqID: reqid, Flags: xfrm.AFUnspec, AEAD: aead, Replay: xfrm.Replay{Window: 32}}
	if kind == "xfrm" {
		sa.IfID = mark
	} else {
		sa.Mark = xfrm.Mark{Value: mark, Mask: 0xffffffff}
	}
	out, in := sa, sa
	out.Src, out.Dst, out.SPI = s.addr, s.peer, s.out
	in.Src, in.Dst, in.SPI = s.peer, s.addr, s.in
	return []xfrm.SA{out, in}
}

// policies send everything of the interface through the tunnel, and let in
// what came out of it.
func (s *site) policies(kind string) []xfrm.Policy {
	all := netip.MustParsePrefix("::/0")
	var list []xfrm.Policy
	for _, dir := range []xfrm.Dir{xfrm.Out, xfrm.Fwd, xfrm.In} {
		t := xfrm.Template{Src: s.addr, Dst: s.peer, Proto: xfrm.ESP, ReqID: reqid, Mode: xfrm.Tunnel}
		if dir != xfrm.Out {
			t.Src, t.Dst = t.Dst, t.Src
		}
		p := xfrm.Policy{Sel: xfrm.Selector{Src: all, Dst: all}, Dir: dir, Priority: 399999, Templates: []xfrm.Template{t}}
		if kind == "xfrm" {
			p.IfID = mark
		} else {
			p.Mark = xfrm.Mark{Value: mark, Mask: 0xffffffff}
		}
		list = append(list, p)
	}
	return list
}

// link makes the interface outside, where its packets are to travel, and moves
// it into the private namespace.
func (s *site) link(kind string) error {
	l := &xfrm.Link{Name: "tun6", Kind: kind, MTU: 1500}
	if kind == "xfrm" {
		l.IfID = xfrm.Some(uint32(mark))
	} else {
		l.Local, l.Remote, l.IKey, l.OKey = s.addr, s.peer, mark, mark
	}
	if err := s.outside.Do(func() error { return makeLink(l) }); err != nil {
		return err
	}
	if err := lines(s.outside, "ip link set tun6 netns "+s.private.Name); err != nil {
		return err
	}
	if err := s.private.Do(func() error {
		// Policies are looked up outside; inside, everything may pass.
		for _, name := range []string{"disable_policy", "disable_xfrm"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/conf/tun6/"+name, []byte("1"), 0o644); err != nil {
				return err
			}
		}
		return os.WriteFile("/proc/sys/net/ipv6/conf/tun6/disable_policy", []byte("1"), 0o644)
	}); err != nil {
		return err
	}
	return lines(s.private, fmt.Sprintf("ip addr add %s/64 dev tun6 nodad\nip link set tun6 up\nip -6 route add %s dev tun6", s.inside, s.network))
}

// makeLink sends one rtnetlink request in the present namespace.
func makeLink(l *xfrm.Link) error {
	const createExcl = unix.NLM_F_CREATE | unix.NLM_F_EXCL
	msg, err := xfrm.AppendLink(nil, xfrm.Header{Flags: xfrm.FlagRequest | xfrm.FlagAck | createExcl, Seq: 1}, l)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 8192)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return err
	}
	m, _, err := xfrm.FirstMessage(buf[:n])
	if err != nil {
		return err
	}
	if err := xfrm.ParseAck(m); err != nil {
		return fmt.Errorf("interface %s: %w", l.Kind, err)
	}
	return nil
}

// lines runs commands of iproute2 in a namespace.
func lines(ns *netns.Namespace, text string) error {
	for l := range strings.Lines(text) {
		f := strings.Fields(l)
		if out, err := exec.Command("ip", append([]string{"-n", ns.Name}, f[1:]...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", strings.TrimSpace(l), err, out)
		}
	}
	return nil
}

// show prints what the kernel holds as `ip xfrm policy` and `ip xfrm state`
// would; keys stay hidden.
func show(ctx context.Context, s *site, stdout io.Writer) error {
	c, err := dial(s.outside)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Fprintln(stdout, "# ip xfrm policy")
	for p, err := range c.Policies(ctx) {
		if err != nil {
			return err
		}
		fmt.Fprint(stdout, p)
	}
	fmt.Fprintln(stdout, "\n# ip xfrm state")
	for sa, err := range c.States(ctx, xfrm.SAFilter{}) {
		if err != nil {
			return err
		}
		fmt.Fprint(stdout, sa)
	}
	return nil
}

// counted checks that the pings went through the states.
func counted(ctx context.Context, s *site, stdout io.Writer) error {
	c, err := dial(s.outside)
	if err != nil {
		return err
	}
	defer c.Close()
	for sa, err := range c.States(ctx, xfrm.SAFilter{}) {
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "state %#x to %v: %d packets, %d octets\n", sa.SPI, sa.Dst, sa.Cur.Packets, sa.Cur.Bytes)
		if sa.Cur.Packets < 3 {
			return fmt.Errorf("state %#x carried %d packets only", sa.SPI, sa.Cur.Packets)
		}
	}
	return nil
}
