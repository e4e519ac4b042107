package xfrm_test

import (
	"fmt"
	"net/netip"
	"strings"

	"signalbox.example/xfrm"
)

func ExampleSA() {
	aead, err := xfrm.AESGCM16(make([]byte, 20))
	if err != nil {
		panic(err)
	}
	sa, err := xfrm.NewInbound(xfrm.SA{
		Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"),
		SPI: 0x1000, Proto: xfrm.ESP, Mode: xfrm.Tunnel, ReqID: 6, AEAD: aead,
	}, 64)
	if err != nil {
		panic(err)
	}
	fmt.Println("check:", sa.Check())
	fmt.Print(strings.ReplaceAll(sa.String(), " \n", "\n")) // iproute2 ends some lines with a blank
	sa.Flags |= xfrm.NoPMTUDisc
	fmt.Println("check:", sa.Check())
	// Output:
	// check: <nil>
	// src 192.0.2.1 dst 192.0.2.2
	// 	proto esp spi 0x00001000 reqid 6 mode tunnel
	// 	replay-window 0
	// 	aead rfc4106(gcm(aes)) <<Keys hidden>> 128
	// 	dir in
	// check: xfrm: Flags: Flag NOPMTUDISC should not be set for input SA
}

func ExamplePolicy() {
	p := xfrm.Policy{
		Sel: xfrm.Selector{Family: xfrm.IPv6}, Dir: xfrm.Out, Priority: 399999,
		Mark: xfrm.Mark{Value: 6, Mask: 0xffffffff},
		Templates: []xfrm.Template{{
			Src: netip.MustParseAddr("2001:db8:1::1"), Dst: netip.MustParseAddr("2001:db8:2::2"),
			Proto: xfrm.ESP, ReqID: 6, Mode: xfrm.Tunnel,
		}},
	}
	fmt.Print(strings.ReplaceAll(p.String(), " \n", "\n")) // iproute2 ends some lines with a blank
	msg, err := xfrm.AppendNewPolicy(nil, xfrm.Header{Flags: xfrm.FlagRequest | xfrm.FlagAck}, &p)
	fmt.Println(len(msg) > 200, err)
	// Output:
	// src ::/0 dst ::/0
	// 	dir out priority 399999 ptype main
	// 	mark 0x6/0xffffffff
	// 	tmpl src 2001:db8:1::1 dst 2001:db8:2::2
	// 		proto esp reqid 6 mode tunnel
	// true <nil>
}

func ExampleParseCommand() {
	c, err := xfrm.ParseCommand("ip xfrm policy add src 10.0.0.0/8 dst 10.1.0.0/16 dir fwd action block", nil)
	if err != nil {
		panic(err)
	}
	p := c.Request.(*xfrm.Policy)
	fmt.Println(c.Type, p.Dir, p.Action, p.Sel.Dst)
	_, err = xfrm.ParseCommand("ip xfrm policy add src 10.0.0.0/8 dst 2001:db8::/32 dir out", nil)
	fmt.Println(err)
	// Output:
	// newpolicy fwd block 10.1.0.0/16
	// xfrm: "2001:db8::/32": src and dst must be of one address family
}

func ExampleDiff() {
	read := func(text string) (s xfrm.Set) {
		for e, err := range xfrm.ParseText(strings.NewReader(text), nil) {
			if err != nil {
				panic(err)
			}
			s.Policies = append(s.Policies, e.Policy)
		}
		return s
	}
	have := read("src 10.0.0.0/8 dst 10.1.0.0/16 \n\tdir out priority 0 ptype main \nsrc 10.0.0.0/8 dst 10.2.0.0/16 \n\tdir out priority 0 ptype main \n")
	want := read("src 10.0.0.0/8 dst 10.3.0.0/16 \n\tdir out priority 0 ptype main \nsrc 10.0.0.0/8 dst 10.1.0.0/16 \n\tdir out priority 7 ptype main \n")
	for _, c := range xfrm.Diff(have, want, xfrm.DiffOptions{}) {
		fmt.Println(c.Op, c.Policy.Sel.Dst)
	}
	// Output:
	// add 10.3.0.0/16
	// update 10.1.0.0/16
	// delete 10.2.0.0/16
}

// Answer the kernel's request for a state, as a key manager does.
func ExampleAcquire() {
	// What the kernel sends to the members of the ACQUIRE group.
	src, dst := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	sel := xfrm.Selector{Src: netip.MustParsePrefix("10.1.0.1/32"), Dst: netip.MustParsePrefix("10.2.0.1/32")}
	datagram, err := xfrm.AppendAcquire(nil, xfrm.Header{}, &xfrm.Acquire{
		Src: src, Dst: dst, Proto: xfrm.ESP, Sel: sel, Seq: 17,
		Policy: xfrm.Policy{Sel: sel, Dir: xfrm.Out, Templates: []xfrm.Template{{
			Src: src, Dst: dst, Proto: xfrm.ESP, Mode: xfrm.Tunnel, ReqID: 6,
		}}},
	})
	if err != nil {
		panic(err)
	}

	for m, err := range xfrm.Messages(datagram) {
		if err != nil {
			panic(err)
		}
		e, err := xfrm.ParseEvent(m)
		if err != nil {
			panic(err)
		}
		a, ok := e.(*xfrm.Acquire)
		if !ok {
			continue
		}
		// Here the key exchange with the peer would give SPI and keys.
		aead, err := xfrm.AESGCM16(make([]byte, 20))
		if err != nil {
			panic(err)
		}
		tmpl := a.Policy.Templates[0]
		sa := xfrm.NewOutbound(xfrm.SA{
			Src: a.Src, Dst: a.Dst, Proto: a.Proto, Mode: tmpl.Mode, ReqID: tmpl.ReqID,
			SPI: 0x2000, AEAD: aead, Seq: a.Seq, // takes the larval state's place
		})
		fmt.Println(a.Src, a.Dst, a.Proto, tmpl.Mode, sa.Seq, sa.Check())
	}
	// Output: 192.0.2.1 192.0.2.2 esp tunnel 17 <nil>
}

// Move a tunnel to a new address of its near end: the policy's template and
// the state that matches it.
func ExampleMigrate() {
	peer := netip.MustParseAddr("203.0.113.9")
	g := xfrm.Migrate{
		Policy: xfrm.PolicyID{
			Sel: xfrm.Selector{Src: netip.MustParsePrefix("10.1.0.0/16"), Dst: netip.MustParsePrefix("10.2.0.0/16")},
			Dir: xfrm.Out,
		},
		Migrations: []xfrm.Migration{{
			OldSrc: netip.MustParseAddr("192.0.2.1"), OldDst: peer,
			NewSrc: netip.MustParseAddr("198.51.100.1"), NewDst: peer,
			Proto: xfrm.ESP, Mode: xfrm.Tunnel, ReqID: 6,
		}},
	}
	// conn.Conn.Migrate sends this; the kernel tells the MIGRATE group the same.
	msg, err := xfrm.AppendMigrate(nil, xfrm.Header{Flags: xfrm.FlagRequest | xfrm.FlagAck, Seq: 1}, &g)
	if err != nil {
		panic(err)
	}
	m, _, err := xfrm.FirstMessage(msg)
	if err != nil {
		panic(err)
	}
	var back xfrm.Migrate
	if err := back.Parse(m); err != nil {
		panic(err)
	}
	for _, x := range back.Migrations {
		fmt.Println(m.Type, back.Policy.Dir, back.Policy.Sel.Dst, x.OldSrc, "->", x.NewSrc)
	}
	// Output: migrate out 10.2.0.0/16 192.0.2.1 -> 198.51.100.1
}
