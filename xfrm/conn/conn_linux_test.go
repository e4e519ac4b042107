package conn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
	"signalbox.example/xfrm"
)

// namespace moves the test into a network namespace of its own, which ends
// with it: the thread is never given back.
func namespace(t *testing.T) {
	t.Helper()
	need.Asked(t, "netns")
	need.Root(t, "netns")
	runtime.LockOSThread()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		need.Missing(t, "netns", err.Error())
	}
}

func dial(t *testing.T, o *Options) *Conn {
	t.Helper()
	c, err := Dial(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func ip(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("ip %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

var ctx = context.Background()

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }

// variety returns policies with every field that a kernel without ESP takes.
func variety() []*xfrm.Policy {
	v4 := xfrm.Selector{Src: prefix("10.0.0.0/8"), Dst: prefix("10.1.0.0/16")}
	v6 := xfrm.Selector{Src: prefix("2001:db8::/32"), Dst: prefix("2001:db8:2::/48")}
	tun4 := xfrm.Template{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2"), Proto: xfrm.ESP, Mode: xfrm.Tunnel, ReqID: 6}
	tun6 := xfrm.Template{Src: addr("2001:db8:1::1"), Dst: addr("2001:db8:2::2"), Proto: xfrm.ESP, Mode: xfrm.Tunnel, ReqID: 7}
	out := []*xfrm.Policy{
		{Sel: v4, Dir: xfrm.Out, Priority: 5},
		{Sel: v4, Dir: xfrm.In, Priority: 5, Templates: []xfrm.Template{tun4}},
		{Sel: v4, Dir: xfrm.Fwd, Action: xfrm.Block},
		{Sel: v6, Dir: xfrm.Out, Templates: []xfrm.Template{tun6, {Proto: xfrm.AH, Mode: xfrm.Transport, SPI: 0x99}}},
		{Sel: v6, Dir: xfrm.Out, Type: xfrm.PolicySub, Templates: []xfrm.Template{{Proto: xfrm.HAO, Mode: xfrm.RouteOptimization}}},
		{Sel: v4, Dir: xfrm.Out, Mark: xfrm.Mark{Value: 6, Mask: 0xff}, Flags: xfrm.LocalOK | xfrm.PolicyICMP},
		{Sel: v4, Dir: xfrm.Out, IfID: 0x42, Templates: []xfrm.Template{tun6}},
		{Sel: v4, Dir: xfrm.In, Mark: xfrm.Mark{Value: 9, Mask: 9}, Templates: []xfrm.Template{
			{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2"), Proto: xfrm.Comp, Mode: xfrm.Tunnel, Level: xfrm.Use},
			{Proto: xfrm.ESP, Mode: xfrm.Transport, NoAuth: 1 << 7, NoEnc: 0xff, NoComp: 1}}},
		{Sel: v4, Dir: xfrm.In, Priority: 8, IfID: 9, Lifetime: xfrm.Lifetime{SoftBytes: 1000, HardBytes: 1 << 40, SoftPackets: 7, HardPackets: 8,
			SoftAddSeconds: 100000, HardAddSeconds: 200000, SoftUseSeconds: 300000, HardUseSeconds: 400000}},
	}
	tcp := v4
	tcp.Proto, tcp.SrcPort, tcp.DstPort = 6, xfrm.Port(80), xfrm.PortMatch{Value: 0x400, Mask: 0xfc00}
	icmp := v6
	icmp.Proto = 58
	icmp.SrcPort, icmp.DstPort = xfrm.ICMPMatch(128, 0)
	gre := v4
	gre.Proto = 47
	gre.SrcPort, gre.DstPort = xfrm.GREKey(0x01020304)
	dev := v4
	dev.IfIndex, dev.UID = 1, 1000
	all6 := xfrm.Selector{Family: xfrm.IPv6}
	for _, s := range []xfrm.Selector{tcp, icmp, gre, dev, all6} {
		out = append(out, &xfrm.Policy{Sel: s, Dir: xfrm.Out, Priority: 1})
	}
	return out
}

// TestIntegrationPoliciesOfEveryKind loads policies by a batch, dumps them,
// compares, and has iproute2 print the same text.
func TestIntegrationPoliciesOfEveryKind(t *testing.T) {
	namespace(t)
	need.Commands(t, "netns", "ip")
	c := dial(t, nil)
	want := variety()
	b := c.Batch()
	for _, p := range want {
		if err := b.AddPolicy(p); err != nil {
			t.Fatalf("%v\n%v", err, p)
		}
	}
	failed, err := b.Flush(ctx)
	if err != nil || len(failed) != 0 {
		t.Fatalf("%v, %v", failed, err)
	}
	got, err := c.AllPolicies(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d policies, want %d", len(got), len(want))
	}
	for _, p := range want {
		found := false
		for _, q := range got {
			found = found || xfrm.SamePolicy(p, q)
		}
		if !found {
			t.Errorf("not in the dump:\n%s", p.AppendText(nil, xfrm.Lossless()))
		}
	}
	for _, stats := range []bool{false, true} {
		o := xfrm.TextOptions{Stats: stats, IfName: func(i int) string { return map[int]string{1: "lo"}[i] }, Location: time.Local}
		var ours []byte
		for _, p := range got {
			ours = p.AppendText(ours, o)
		}
		args := []string{"xfrm", "policy"}
		if stats {
			args = append([]string{"-s"}, args...)
		}
		if theirs := ip(t, args...); string(ours) != theirs {
			t.Errorf("stats %v:\nours:\n%s\nip:\n%s", stats, ours, theirs)
		}
	}
	for _, p := range want { // by name, with everything that belongs to it
		id := p.ID()
		q, err := c.Policy(ctx, &id)
		if err != nil {
			t.Errorf("%v\n%v", err, p)
			continue
		}
		if !xfrm.SamePolicy(p, q) {
			t.Errorf("asked for\n%v got\n%v", p, q)
		}
		q.Priority = 77
		if err := c.UpdatePolicy(ctx, q); err != nil {
			t.Error(err)
		}
		byIndex := xfrm.PolicyID{Index: q.Index, Dir: q.Dir, Type: q.Type, Mark: q.Mark, IfID: q.IfID, Sel: xfrm.Selector{Family: xfrm.IPv4}}
		if q, err := c.Policy(ctx, &byIndex); err != nil || q.Priority != 77 {
			t.Errorf("%v, %v", q, err)
		}
		if err := c.DeletePolicy(ctx, &id); err != nil {
			t.Error(err)
		}
	}
	if text := ip(t, "xfrm", "policy"); text != "" {
		t.Errorf("left over:\n%s", text)
	}
}

// TestIntegrationSeed loads the three policies of a route-based VPN.
func TestIntegrationSeed(t *testing.T) {
	namespace(t)
	need.Commands(t, "netns", "ip")
	c := dial(t, nil)
	const want = `src ::/0 dst ::/0 
	dir fwd priority 399999 ptype main 
	mark 0x6/0xffffffff 
	tmpl src 2001:db8:2::2 dst 2001:db8:1::1
		proto esp reqid 6 mode tunnel
src ::/0 dst ::/0 
	dir in priority 399999 ptype main 
	mark 0x6/0xffffffff 
	tmpl src 2001:db8:2::2 dst 2001:db8:1::1
		proto esp reqid 6 mode tunnel
src ::/0 dst ::/0 
	dir out priority 399999 ptype main 
	mark 0x6/0xffffffff 
	tmpl src 2001:db8:1::1 dst 2001:db8:2::2
		proto esp reqid 6 mode tunnel
`
	local, remote := addr("2001:db8:1::1"), addr("2001:db8:2::2")
	for _, d := range []xfrm.Dir{xfrm.Out, xfrm.In, xfrm.Fwd} {
		src, dst := remote, local
		if d == xfrm.Out {
			src, dst = local, remote
		}
		if err := c.AddPolicy(ctx, &xfrm.Policy{Sel: xfrm.Selector{Family: xfrm.IPv6}, Dir: d, Priority: 399999,
			Mark:      xfrm.Mark{Value: 6, Mask: 0xffffffff},
			Templates: []xfrm.Template{{Src: src, Dst: dst, Proto: xfrm.ESP, ReqID: 6, Mode: xfrm.Tunnel}}}); err != nil {
			t.Fatal(err)
		}
	}
	var ours strings.Builder
	for p, err := range c.Policies(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		ours.WriteString(p.String())
	}
	if ours.String() != want {
		t.Errorf("ours:\n%s", ours.String())
	}
	if theirs := ip(t, "xfrm", "policy"); theirs != want {
		t.Errorf("ip:\n%s", theirs)
	}
}

// TestIntegrationErrorsPerMessage sends five messages of which two fail.
func TestIntegrationErrorsPerMessage(t *testing.T) {
	namespace(t)
	c := dial(t, &Options{Unchecked: true})
	p := func(n int) *xfrm.Policy {
		return &xfrm.Policy{Sel: xfrm.Selector{Src: prefix(fmt.Sprintf("10.%d.0.0/16", n)), Dst: prefix("10.0.0.0/8")}, Dir: xfrm.Out}
	}
	bad := p(3)
	bad.Templates = []xfrm.Template{{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2"), Proto: xfrm.ESP, Mode: xfrm.Tunnel, Level: xfrm.Use}}
	b := c.Batch()
	for _, x := range []*xfrm.Policy{p(1), p(2), p(1), bad, p(4)} {
		if err := b.AddPolicy(x); err != nil {
			t.Fatal(err)
		}
	}
	failed, err := b.Flush(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(failed) != 2 || failed[0].Index != 2 || !errors.Is(failed[0].Err, syscall.EEXIST) || failed[1].Index != 3 ||
		!errors.Is(failed[1].Err, syscall.EINVAL) || !strings.Contains(failed[1].Err.Error(), "Mode in optional template not allowed in outbound policy") {
		t.Errorf("failures %v", failed)
	}
	if i, err := c.SPDInfo(ctx); err != nil || i.Out != 3 {
		t.Errorf("%+v, %v", i, err)
	}
	// The batch is empty and of use again.
	if failed, err := b.Flush(ctx); err != nil || failed != nil {
		t.Errorf("%v, %v", failed, err)
	}
}

// TestIntegrationManyFailures lets every request of a large batch fail, with
// the default receive buffer that a plain user gets.
func TestIntegrationManyFailures(t *testing.T) {
	namespace(t)
	for _, room := range []int{0, 106496} {
		c := dial(t, &Options{ReadBuffer: room})
		const n = 3000
		b := c.Batch()
		for i := range n {
			id := xfrm.PolicyID{Sel: xfrm.Selector{Src: prefix("10.0.0.0/8"), Dst: prefix("10.0.0.0/8")}, Dir: xfrm.Out, IfID: uint32(i + 1)}
			if err := b.DeletePolicy(&id); err != nil {
				t.Fatal(err)
			}
		}
		failed, err := b.Flush(ctx)
		if err != nil || len(failed) != n {
			t.Fatalf("room %d: %d failures, %v", room, len(failed), err)
		}
		for i, f := range failed {
			if f.Index != i || !errors.Is(f.Err, syscall.ENOENT) {
				t.Fatalf("failure %d: %+v", i, f)
			}
		}
	}
}

// TestIntegrationSubPoliciesDefaultsThresholds covers what belongs to the
// whole database.
func TestIntegrationSubPoliciesDefaultsThresholds(t *testing.T) {
	namespace(t)
	need.Commands(t, "netns", "ip")
	c := dial(t, nil)
	sel := xfrm.Selector{Src: prefix("10.0.0.0/8"), Dst: prefix("10.1.0.0/16")}
	for _, typ := range []xfrm.PolicyType{xfrm.PolicyMain, xfrm.PolicySub} {
		if err := c.AddPolicy(ctx, &xfrm.Policy{Sel: sel, Dir: xfrm.Out, Type: typ}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.FlushPolicies(ctx, xfrm.PolicyMain); err != nil {
		t.Fatal(err)
	}
	left, err := c.AllPolicies(ctx)
	if err != nil || len(left) != 1 || left[0].Type != xfrm.PolicySub {
		t.Errorf("%v, %v", left, err)
	}
	if err := c.FlushPolicies(ctx); err != nil {
		t.Fatal(err)
	}
	if left, err := c.AllPolicies(ctx); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	if err := c.FlushStates(ctx, 0); err != nil {
		t.Fatal(err)
	}

	want := xfrm.Default{In: xfrm.DefaultBlock, Fwd: xfrm.DefaultBlock, Out: xfrm.DefaultAccept}
	if err := c.SetDefaults(ctx, xfrm.Default{In: xfrm.DefaultBlock, Fwd: xfrm.DefaultBlock}); err != nil {
		t.Fatal(err)
	}
	if d, err := c.Defaults(ctx); err != nil || d != want {
		t.Errorf("%+v, %v", d, err)
	}
	b := xfrm.AppendSetDefault(nil, xfrm.Header{}, want)
	m, _, err := xfrm.FirstMessage(b)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := xfrm.AppendMessageText(nil, m, xfrm.TextOptions{})
	if theirs := ip(t, "xfrm", "policy", "getdefault"); err != nil || string(ours) != theirs {
		t.Errorf("ours %q, ip %q, %v", ours, theirs, err)
	}

	if err := c.SetThresholds(ctx, xfrm.Some(xfrm.Thresholds{Local: 24, Remote: 25}), xfrm.Some(xfrm.Thresholds{Local: 64, Remote: 65})); err != nil {
		t.Fatal(err)
	}
	i, err := c.SPDInfo(ctx)
	if err != nil || i.Hash4.Value != (xfrm.Thresholds{Local: 24, Remote: 25}) || i.Hash6.Value != (xfrm.Thresholds{Local: 64, Remote: 65}) {
		t.Errorf("%+v, %v", i, err)
	}
	err = c.SetThresholds(ctx, xfrm.Some(xfrm.Thresholds{Local: 33}), xfrm.Opt[xfrm.Thresholds]{})
	if !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a threshold of 33 bits: %v", err)
	}
	if i, err := c.SADInfo(ctx); err != nil || i.Count != 0 || i.Buckets == 0 {
		t.Errorf("%+v, %v", i, err)
	}
}

// TestIntegrationLarvalStates makes states by ALLOCSPI, which need no ESP.
func TestIntegrationLarvalStates(t *testing.T) {
	namespace(t)
	need.Commands(t, "netns", "ip")
	c := dial(t, nil)
	spis := map[uint32]bool{}
	for i := range 20 {
		s, err := c.AllocSPI(ctx, &xfrm.SPIRequest{SA: xfrm.SA{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2"), Proto: xfrm.ESP,
			Mode: xfrm.Tunnel, ReqID: 9, Seq: uint32(i)}, Min: 0x100, Max: 0x200})
		if err != nil {
			t.Fatal(err)
		}
		if s.SPI < 0x100 || s.SPI > 0x200 || spis[s.SPI] || s.ReqID != 9 || s.Mode != xfrm.Tunnel {
			t.Errorf("%v", s)
		}
		spis[s.SPI] = true
	}
	s6, err := c.AllocSPI(ctx, &xfrm.SPIRequest{SA: xfrm.SA{Src: addr("2001:db8::1"), Dst: addr("2001:db8::2"), Proto: xfrm.AH}, Min: 5, Max: 5})
	if err != nil || s6.SPI != 5 {
		t.Fatalf("%v, %v", s6, err)
	}
	_, err = c.AllocSPI(ctx, &xfrm.SPIRequest{SA: xfrm.SA{Src: addr("2001:db8::1"), Dst: addr("2001:db8::2"), Proto: xfrm.AH}, Min: 5, Max: 5})
	if err == nil {
		t.Error("the same SPI twice")
	}
	all, err := c.AllStates(ctx, xfrm.SAFilter{})
	if err != nil || len(all) < 21 {
		t.Fatalf("%d states, %v", len(all), err)
	}
	var ours []byte
	for _, s := range all {
		ours = s.AppendText(ours, xfrm.TextOptions{Keys: true})
	}
	if theirs := ip(t, "xfrm", "state"); string(ours) != theirs {
		t.Errorf("ours:\n%s\nip:\n%s", ours, theirs)
	}
	n := 0
	for s, err := range c.States(ctx, xfrm.SAFilter{Proto: xfrm.AH}) { // filtered by the kernel
		if err != nil || s.Proto != xfrm.AH {
			t.Errorf("%v, %v", s, err)
		}
		n++
	}
	if n == 0 {
		t.Error("no AH states")
	}
	for s, err := range c.States(ctx, xfrm.SAFilter{Addresses: xfrm.Some(xfrm.AddressFilter{Src: prefix("192.0.2.0/24"), Dst: prefix("192.0.2.2/32")})}) {
		if err != nil || !s.Src.Is4() {
			t.Errorf("%v, %v", s, err)
		}
	}
	if all, err = c.AllStates(ctx, xfrm.SAFilter{Proto: xfrm.ESP}); err != nil || len(all) != 20 {
		t.Fatalf("%d ESP states, %v", len(all), err)
	}
	id := all[0].ID()
	if _, err := c.SA(ctx, &id); err != nil {
		t.Error(err)
	}
	if err := c.DeleteSA(ctx, &id); err != nil {
		t.Error(err)
	}
	if _, err := c.SA(ctx, &id); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a deleted state: %v", err)
	}
	if err := c.FlushStates(ctx, xfrm.AnyIPsec); err != nil {
		t.Error(err)
	}
	if left, err := c.AllStates(ctx, xfrm.SAFilter{}); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestIntegrationEvents receives what happens to policies and defaults.
func TestIntegrationEvents(t *testing.T) {
	namespace(t)
	c := dial(t, nil)
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	events, err := Listen(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &xfrm.Policy{Sel: xfrm.Selector{Src: prefix("10.0.0.0/8"), Dst: prefix("10.1.0.0/16")}, Dir: xfrm.Out, IfID: 5,
		Lifetime: xfrm.Lifetime{HardAddSeconds: 1000}}
	id := p.ID()
	s := xfrm.SPIRequest{SA: xfrm.SA{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2"), Proto: xfrm.ESP}, Min: 0x300, Max: 0x300}
	larval, err := c.AllocSPI(ctx, &s)
	if err != nil {
		t.Fatal(err)
	}
	sa := larval.ID()
	q := *p
	q.Priority = 9
	for _, err := range []error{
		c.AddPolicy(ctx, p), c.UpdatePolicy(ctx, &q),
		c.request(ctx, func(b []byte, h header) ([]byte, error) {
			return xfrm.AppendPolExpire(b, h, &xfrm.PolExpire{Policy: q, Hard: true})
		}, nil),
		c.AddPolicy(ctx, p), c.DeletePolicy(ctx, &id),
		c.SetDefaults(ctx, xfrm.Default{In: xfrm.DefaultBlock}), c.AddPolicy(ctx, p), c.FlushPolicies(ctx, xfrm.PolicyMain), c.DeleteSA(ctx, &sa),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"newpolicy", "updpolicy", "*xfrm.PolExpire", "newpolicy", "delpolicy", "*xfrm.Default", "newpolicy", "flushpolicy", "delsa"}
	var got []string
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *xfrm.PolicyChange:
			got = append(got, e.Type.String())
			if e.Policy.IfID != 5 {
				t.Errorf("%v", &e.Policy)
			}
		case *xfrm.Flush:
			got = append(got, e.Type.String())
		case *xfrm.SAChange:
			if e.Type != xfrm.DelSA || e.SA.SPI != 0x300 {
				t.Errorf("%v", &e.SA)
			}
			got = append(got, e.Type.String())
		default:
			got = append(got, fmt.Sprintf("%T", e))
		}
		if len(got) == len(want) {
			break
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestIntegrationDumpLosesNothing dumps more than one datagram and more than
// one buffer.
func TestIntegrationDumpLosesNothing(t *testing.T) {
	namespace(t)
	c := dial(t, nil)
	const n = 5000
	b := c.Batch()
	for i := range n {
		p := &xfrm.Policy{Sel: xfrm.Selector{Src: prefix("10.0.0.0/8"), Dst: netip.PrefixFrom(netip.AddrFrom4([4]byte{11, 0, byte(i >> 8), byte(i)}), 32)},
			Dir: xfrm.Out, Priority: uint32(i)}
		if err := b.AddPolicy(p); err != nil {
			t.Fatal(err)
		}
	}
	if failed, err := b.Flush(ctx); err != nil || len(failed) > 0 {
		t.Fatalf("%v, %v", failed, err)
	}
	for round := range 3 {
		seen := map[uint32]bool{}
		for p, err := range c.Policies(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			if seen[p.Priority] {
				t.Fatalf("%d twice", p.Priority)
			}
			seen[p.Priority] = true
		}
		if len(seen) != n {
			t.Errorf("round %d: %d of %d policies", round, len(seen), n)
		}
	}
	// A loop that is left early leaves nothing behind for the next request.
	for range c.Policies(ctx) {
		break
	}
	if i, err := c.SPDInfo(ctx); err != nil || i.Out != n {
		t.Errorf("%+v, %v", i, err)
	}
}

// TestIntegrationApply changes a set of policies by the least messages.
func TestIntegrationApply(t *testing.T) {
	namespace(t)
	c := dial(t, nil)
	want := xfrm.Set{Policies: variety()}
	changes, failed, err := c.Apply(ctx, want, ApplyOptions{}, false)
	if err != nil || len(failed) > 0 || len(changes) != len(want.Policies) {
		t.Fatalf("%d changes, %v, %v", len(changes), failed, err)
	}
	if changes, _, err = c.Apply(ctx, want, ApplyOptions{}, false); err != nil || len(changes) != 0 {
		t.Errorf("again: %d changes, %v", len(changes), err)
	}
	changed := *want.Policies[1]
	changed.Priority++
	added := &xfrm.Policy{Sel: xfrm.Selector{Src: prefix("10.7.0.0/16"), Dst: prefix("10.0.0.0/8")}, Dir: xfrm.Out}
	next := xfrm.Set{Policies: append([]*xfrm.Policy{&changed, added}, want.Policies[3:]...)}
	changes, _, err = c.Apply(ctx, next, ApplyOptions{}, true)
	var ops []string
	for _, ch := range changes {
		ops = append(ops, ch.Op.String())
	}
	if got := strings.Join(ops, " "); err != nil || got != "update add delete delete" {
		t.Errorf("%s, %v", got, err)
	}
	if i, err := c.SPDInfo(ctx); err != nil || int(i.In+i.Out+i.Fwd) != len(want.Policies) {
		t.Errorf("a dry run changed something: %+v, %v", i, err)
	}
	if _, failed, err = c.Apply(ctx, next, ApplyOptions{}, false); err != nil || len(failed) > 0 {
		t.Errorf("%v, %v", failed, err)
	}
	if changes, _, err = c.Apply(ctx, next, ApplyOptions{}, false); err != nil || len(changes) != 0 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	// A wanted policy that Check refuses changes nothing at all.
	_, _, err = c.Apply(ctx, xfrm.Set{Policies: []*xfrm.Policy{{Sel: added.Sel, Dir: 9}}}, ApplyOptions{}, false)
	var rule *xfrm.RuleError
	if !errors.As(err, &rule) {
		t.Errorf("got %v", err)
	}
	if changes, _, err = c.Apply(ctx, next, ApplyOptions{}, false); err != nil || len(changes) != 0 {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	// Only what is owned is deleted.
	changes, _, err = c.Apply(ctx, xfrm.Set{}, ApplyOptions{OwnPolicy: func(p *xfrm.Policy) bool { return p.IfID == 0x42 }}, false)
	if err != nil || len(changes) != 1 || changes[0].Op != xfrm.OpDelete || changes[0].Policy.IfID != 0x42 {
		t.Errorf("%v, %v", changes, err)
	}
}

// TestIntegrationOtherNamespace dials into a namespace by its descriptor.
func TestIntegrationOtherNamespace(t *testing.T) {
	namespace(t)
	first, err := currentNS()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Fatal(err)
	}
	here := dial(t, nil)
	there := dial(t, &Options{NetNS: int(first.Fd())})
	if err := there.AddPolicy(ctx, &xfrm.Policy{Sel: xfrm.Selector{Family: xfrm.IPv4}, Dir: xfrm.Out}); err != nil {
		t.Fatal(err)
	}
	a, err1 := here.SPDInfo(ctx)
	b, err2 := there.SPDInfo(ctx)
	if err1 != nil || err2 != nil || a.Out != 0 || b.Out != 1 {
		t.Errorf("here %+v %v, there %+v %v", a, err1, b, err2)
	}
	if _, err := Dial(&Options{NetNS: 1 << 20}); err == nil {
		t.Error("a descriptor that is not open")
	}
}

// TestIntegrationContext ends waiting.
func TestIntegrationContext(t *testing.T) {
	namespace(t)
	c := dial(t, nil)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := c.SPDInfo(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := c.SPDInfo(ctx); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	soon, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	events, err := Listen(soon, nil, xfrm.GroupSA)
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range events {
		t.Errorf("%v, %v", e, err)
	}
	c.Close()
	if _, err := c.SPDInfo(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// TestIntegrationCheckAgreesWithKernel asks the kernel about many policies,
// right and wrong, and compares its verdict with Check's.
func TestIntegrationCheckAgreesWithKernel(t *testing.T) {
	namespace(t)
	c := dial(t, &Options{Unchecked: true})
	base := func() *xfrm.Policy {
		return &xfrm.Policy{Sel: xfrm.Selector{Src: prefix("10.0.0.0/8"), Dst: prefix("10.1.0.0/16")}, Dir: xfrm.Out}
	}
	var cases []*xfrm.Policy
	add := func(f func(*xfrm.Policy)) {
		p := base()
		f(p)
		cases = append(cases, p)
	}
	for i := range 6 {
		add(func(p *xfrm.Policy) { p.Dir = xfrm.Dir(i) })
		add(func(p *xfrm.Policy) { p.Share = xfrm.Share(i) })
		add(func(p *xfrm.Policy) { p.Action = xfrm.Action(i) })
		add(func(p *xfrm.Policy) { p.Type = xfrm.PolicyType(i) })
		add(func(p *xfrm.Policy) { p.Index = uint32(8*100 + i) })
		add(func(p *xfrm.Policy) { p.Sel = xfrm.Selector{Family: []xfrm.Family{0, 2, 10, 1, 3, 17}[i]} })
	}
	v4, v6 := [2]netip.Addr{addr("192.0.2.1"), addr("192.0.2.2")}, [2]netip.Addr{addr("2001:db8::1"), addr("2001:db8::2")}
	for n := range 9 {
		add(func(p *xfrm.Policy) {
			for range n {
				p.Templates = append(p.Templates, xfrm.Template{Proto: xfrm.ESP})
			}
		})
	}
	for proto := range 256 {
		add(func(p *xfrm.Policy) { p.Templates = []xfrm.Template{{Proto: xfrm.Proto(proto)}} })
	}
	for mode := range 9 {
		for _, ends := range [][2]netip.Addr{v4, v6, {}} {
			for dir := range 3 {
				for level := range 2 {
					add(func(p *xfrm.Policy) {
						p.Dir = xfrm.Dir(dir)
						p.Templates = []xfrm.Template{{Src: ends[0], Dst: ends[1], Proto: xfrm.ESP, Mode: xfrm.Mode(mode), Level: xfrm.Level(level)},
							{Proto: xfrm.AH}}
					})
				}
			}
		}
	}
	agreed, refused := 0, 0
	for _, p := range cases {
		verdict := p.Check()
		var rule *xfrm.RuleError
		if errors.As(verdict, &rule) && rule.OnPurpose {
			continue
		}
		err := c.AddPolicy(ctx, p)
		var ack *xfrm.AckError
		switch {
		case (err == nil) != (verdict == nil):
			t.Errorf("Check says %v, the kernel %v:\n%s", verdict, err, p.AppendText(nil, xfrm.Lossless()))
		case errors.As(err, &ack) && ack.Text != "" && !strings.HasPrefix(ack.Text, rule.Rule):
			t.Errorf("Check says %v, the kernel %v:\n%s", verdict, err, p.AppendText(nil, xfrm.Lossless()))
		default:
			agreed++
		}
		if err == nil {
			if err := c.FlushPolicies(ctx); err != nil {
				t.Fatal(err)
			}
		} else {
			refused++
		}
	}
	if agreed < 400 || refused < 200 {
		t.Errorf("%d agreed, %d of them refusals", agreed, refused)
	}
}

// TestIntegrationBatchAndCommands refuses what is no request and carries out
// commands.
func TestIntegrationBatchAndCommands(t *testing.T) {
	namespace(t)
	c := dial(t, nil)
	b := c.Batch()
	if err := b.Append(func(buf []byte, h xfrm.Header) ([]byte, error) { return append(buf, 1, 2, 3), nil }); err == nil {
		t.Error("three octets are no message")
	}
	if err := b.AddSA(&xfrm.SA{}); err == nil {
		t.Error("a zero SA")
	}
	if b.Len() != 0 {
		t.Errorf("%d requests", b.Len())
	}
	cmd, err := xfrm.ParseCommand("ip xfrm policy add src 10.0.0.0/8 dst 10.1.0.0/16 dir out", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Do(ctx, cmd); err != nil {
		t.Error(err)
	}
	if err := c.Do(ctx, cmd); !errors.Is(err, syscall.EEXIST) {
		t.Errorf("again: %v", err)
	}
	if cmd, err = xfrm.ParseCommand("ip xfrm policy list", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Do(ctx, cmd); !errors.Is(err, xfrm.ErrType) {
		t.Errorf("a listing: %v", err)
	}
	if got := bytes.Count([]byte(ip(t, "xfrm", "policy")), []byte("dir out")); got != 1 {
		t.Errorf("%d policies", got)
	}
}
