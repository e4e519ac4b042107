// Command mip6 shows what Mobile IPv6 asks of XFRM, with a mobile node and a
// correspondent in network namespaces:
//
//   - route optimisation: states of the home address option and of the type 2
//     routing header carry the care-of address, sub policies use them, and
//     packets between home address and correspondent travel by the care-of
//     address;
//   - movement: the states learn the new care-of address (UPDSA), and MIGRATE
//     moves the ESP tunnel to the home network, policy and state, with the
//     addresses of the key manager (KMADDRESS).
//
// It needs root, iproute2, ping and a kernel with Mobile IPv6, and removes
// what it makes.
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
	"time"

	"signalbox.example/internal/netns"
	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("mip6", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: mip6\n\nRoute optimisation and movement of Mobile IPv6 in two namespaces. Needs root.")
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "mip6:", err)
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "mip6: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	if err := show(context.Background(), stdout); err != nil {
		fmt.Fprintln(stderr, "mip6:", err)
		return 1
	}
	return 0
}

var (
	home          = netip.MustParseAddr("2001:db8:a::1")   // of the mobile node
	careOf        = netip.MustParseAddr("2001:db8:1::1")   // where it is
	careOfNext    = netip.MustParseAddr("2001:db8:1::11")  // where it goes
	correspondent = netip.MustParseAddr("2001:db8:1::2")   // whom it talks to; also its home agent here
	homeNetwork   = netip.MustParseAddr("2001:db8:a::100") // behind the home agent
)

type node struct {
	name string
	ns   *netns.Namespace
	c    *conn.Conn
}

func newNode(name string) (n *node, err error) {
	n = &node{name: name}
	if n.ns, err = netns.Create("mip6"); err != nil {
		return nil, fmt.Errorf("%w (needs root and iproute2)", err)
	}
	if err := n.ns.Do(func() error { n.c, err = conn.Dial(nil); return err }); err != nil {
		n.ns.Close()
		return nil, err
	}
	return n, nil
}

func (n *node) sh(text string) error {
	for l := range strings.Lines(text) {
		if f := strings.Fields(l); len(f) > 0 {
			if out, err := exec.Command("ip", append([]string{"-n", n.ns.Name}, f[1:]...)...).CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", strings.TrimSpace(l), err, out)
			}
		}
	}
	return nil
}

func show(ctx context.Context, stdout io.Writer) error {
	mobile, err := newNode("mobile node")
	if err != nil {
		return err
	}
	defer func() { mobile.c.Close(); mobile.ns.Close() }()
	peer, err := newNode("correspondent")
	if err != nil {
		return err
	}
	defer func() { peer.c.Close(); peer.ns.Close() }()
	if err := netns.Veth(mobile.ns, "wire", peer.ns, "wire"); err != nil {
		return err
	}
	// "home" marks a home address: the kernel takes a type 2 routing header
	// for no other.
	if err := mobile.sh(fmt.Sprintf(`ip addr add %s/64 dev wire nodad
		ip addr add %s/64 dev wire nodad
		ip addr add %s/128 dev lo nodad home
		ip -6 route add %s/128 via %s src %s
		ip -6 route replace %s/128 dev wire src %s`, careOf, careOfNext, home, homeNetwork, correspondent, home, correspondent, home)); err != nil {
		return err
	}
	if err := peer.sh(fmt.Sprintf(`ip addr add %s/64 dev wire nodad
		ip addr add %s/128 dev lo nodad
		ip -6 route add %s/128 via %s`, correspondent, homeNetwork, home, careOf)); err != nil {
		return err
	}
	for _, n := range []*node{mobile, peer} {
		if err := n.optimise(ctx); err != nil {
			return fmt.Errorf("%s: route optimisation: %w", n.name, err)
		}
		if err := n.tunnel(ctx); err != nil {
			return fmt.Errorf("%s: tunnel: %w", n.name, err)
		}
	}
	if err := ping(ctx, mobile, stdout, "at the first place"); err != nil {
		return err
	}
	for _, n := range []*node{mobile, peer} {
		if err := n.move(ctx); err != nil {
			return fmt.Errorf("%s: movement: %w", n.name, err)
		}
	}
	// The first place is gone for good.
	if err := mobile.sh("ip addr del " + careOf.String() + "/64 dev wire"); err != nil {
		return err
	}
	if err := ping(ctx, mobile, stdout, "after the movement"); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "\n# states of the mobile node")
	for sa, err := range mobile.c.States(ctx, xfrm.SAFilter{}) {
		if err != nil {
			return err
		}
		fmt.Fprint(stdout, sa)
	}
	return nil
}

// roStates are the two states of route optimisation, the same at both nodes.
func roStates(at netip.Addr) []xfrm.SA {
	return []xfrm.SA{
		{Src: home, Dst: correspondent, Proto: xfrm.HAO, Mode: xfrm.RouteOptimization, CoA: at},
		{Src: correspondent, Dst: home, Proto: xfrm.Route2, Mode: xfrm.RouteOptimization, CoA: at},
	}
}

func (n *node) optimise(ctx context.Context) error {
	for _, sa := range roStates(careOf) {
		if err := n.c.AddSA(ctx, &sa); err != nil {
			return err
		}
	}
	hao := xfrm.Policy{Type: xfrm.PolicySub, Sel: between(home, correspondent), Templates: []xfrm.Template{{Src: home, Dst: correspondent, Proto: xfrm.HAO, Mode: xfrm.RouteOptimization}}}
	route2 := xfrm.Policy{Type: xfrm.PolicySub, Sel: between(correspondent, home), Templates: []xfrm.Template{{Src: correspondent, Dst: home, Proto: xfrm.Route2, Mode: xfrm.RouteOptimization}}}
	hao.Dir, route2.Dir = xfrm.Out, xfrm.In
	if n.name == "correspondent" {
		hao.Dir, route2.Dir = xfrm.In, xfrm.Out
	}
	for _, p := range []*xfrm.Policy{&hao, &route2} {
		if err := n.c.AddPolicy(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func between(src, dst netip.Addr) xfrm.Selector {
	return xfrm.Selector{Src: netip.PrefixFrom(src, 128), Dst: netip.PrefixFrom(dst, 128)}
}

// tunnel protects what goes between home address and home network.
func (n *node) tunnel(ctx context.Context) error {
	aead, err := xfrm.AESGCM16([]byte("0123456789abcdefSALT")) // a demonstration's key
	if err != nil {
		return err
	}
	out := xfrm.SA{Src: careOf, Dst: correspondent, SPI: 0xa, Proto: xfrm.ESP, Mode: xfrm.Tunnel, ReqID: 7, AEAD: aead, Replay: xfrm.Replay{Window: 32}}
	back := out
	back.Src, back.Dst, back.SPI = correspondent, careOf, 0xb
	for _, sa := range []*xfrm.SA{&out, &back} {
		if err := n.c.AddSA(ctx, sa); err != nil {
			return err
		}
	}
	for _, p := range n.tunnelPolicies() {
		if err := n.c.AddPolicy(ctx, &p); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) tunnelPolicies() []xfrm.Policy {
	there := xfrm.Policy{Sel: between(home, homeNetwork), Dir: xfrm.Out, Templates: []xfrm.Template{{Src: careOf, Dst: correspondent, Proto: xfrm.ESP, ReqID: 7, Mode: xfrm.Tunnel}}}
	back := xfrm.Policy{Sel: between(homeNetwork, home), Dir: xfrm.In, Templates: []xfrm.Template{{Src: correspondent, Dst: careOf, Proto: xfrm.ESP, ReqID: 7, Mode: xfrm.Tunnel}}}
	if n.name == "correspondent" {
		there.Dir, back.Dir = xfrm.In, xfrm.Out
	}
	return []xfrm.Policy{there, back}
}

// move tells a node of the new care-of address.
func (n *node) move(ctx context.Context) error {
	for _, sa := range roStates(careOfNext) {
		if err := n.c.UpdateSA(ctx, &sa); err != nil {
			return err
		}
	}
	for _, p := range n.tunnelPolicies() {
		t := p.Templates[0]
		m := xfrm.Migration{OldSrc: t.Src, OldDst: t.Dst, NewSrc: t.Src, NewDst: t.Dst, Proto: xfrm.ESP, Mode: xfrm.Tunnel, ReqID: 7}
		if m.NewSrc == careOf {
			m.NewSrc = careOfNext
		} else {
			m.NewDst = careOfNext
		}
		km := xfrm.KMAddress{Local: careOfNext, Remote: correspondent}
		if n.name == "correspondent" {
			km.Local, km.Remote = km.Remote, km.Local
		}
		if err := n.c.Migrate(ctx, &xfrm.Migrate{Policy: p.ID(), Migrations: []xfrm.Migration{m}, KMAddress: xfrm.Some(km)}); err != nil {
			return err
		}
	}
	if n.name == "correspondent" {
		return n.sh(fmt.Sprintf("ip -6 route replace %s/128 via %s", home, careOfNext))
	}
	return nil
}

// ping uses both ways and checks that the states carried it.
func ping(ctx context.Context, n *node, stdout io.Writer, when string) error {
	for _, to := range []netip.Addr{correspondent, homeNetwork} {
		var out string
		var err error
		for range 5 { // the first ones may wait for neighbours
			if out, err = n.ns.Run("ping", "-6", "-c", "3", "-i", "0.2", "-W", "2", "-I", home.String(), to.String()); err == nil {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
		fmt.Fprintf(stdout, "# from %v to %v, %s\n%s\n", home, to, when, summary(out))
		if err != nil {
			return fmt.Errorf("no answer from %v %s", to, when)
		}
	}
	for sa, err := range n.c.States(ctx, xfrm.SAFilter{}) {
		if err != nil {
			return err
		}
		by := ""
		if sa.CoA.IsValid() {
			by = ", care-of " + sa.CoA.String()
		}
		fmt.Fprintf(stdout, "  %s %v -> %v%s: %d packets\n", sa.Proto, sa.Src, sa.Dst, by, sa.Cur.Packets)
		if sa.Cur.Packets < 3 {
			return errors.New("a state was not used")
		}
	}
	return nil
}

// summary is the line of ping's output that counts.
func summary(out string) string {
	for l := range strings.Lines(out) {
		if strings.Contains(l, "transmitted") {
			return "  " + strings.TrimSpace(l)
		}
	}
	return strings.TrimSpace(out)
}
