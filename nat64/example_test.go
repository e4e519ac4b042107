package nat64_test

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"signalbox.example/nat64"
)

func ExampleTranslator() {
	prefix, err := nat64.ParsePrefix("2001:db8:64::/96")
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := nat64.New(nat64.Config{
		Prefix: prefix,
		EAM: []nat64.EAM{{
			V6: netip.MustParsePrefix("2001:db8:c::/120"),
			V4: netip.MustParsePrefix("10.64.0.0/24"),
		}},
		Own4: netip.MustParseAddr("198.51.100.1"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	packet, _ := hex.DecodeString("450000221234000040113420c63364020a4000020fa00035000e779268656c6c6f21")
	buf := make([]byte, nat64.Headroom+len(packet))
	copy(buf[nat64.Headroom:], packet)

	var s nat64.Scratch // one for each goroutine
	r := t.Translate(&s, buf, nat64.Headroom, len(packet))
	fmt.Println(r.Verdict, r.Reason)
	fmt.Println(hex.EncodeToString(r.Packet))
	// Output:
	// forward translated-4to6
	// 60000000000e113f20010db80064000000000000c633640220010db8000c000000000000000000020fa00035000e25f068656c6c6f21
}

func ExampleTranslator_Explain() {
	t, err := nat64.New(nat64.Config{Prefix: nat64.WellKnownPrefix()})
	if err != nil {
		fmt.Println(err)
		return
	}
	packet, _ := hex.DecodeString("60000000000e11400064ff9b00000000000000000808080" + "80064ff9b000000000000000001010101" + "0fa00035000e25f068656c6c6f21")
	trace := t.Explain(packet)
	fmt.Println(trace.Verdict, trace.Reason)
	for _, s := range trace.Steps {
		fmt.Printf("%s: %s\n", s.Section, s.Text)
	}
	// Output:
	// forward translated-6to4
	// RFC 6052 section 2.3: destination 64:ff9b::101:101 is 1.1.1.1 by prefix 64:ff9b::/96
	// RFC 6052 section 2.3: source 64:ff9b::808:808 is 8.8.8.8 by prefix 64:ff9b::/96
	// RFC 7915 section 5.1: hop limit 64 becomes time to live 63
	// RFC 7915 section 5.1: DF is clear: at most 1260 octets
	// RFC 7915 section 5.5: checksum 25f0 becomes 25f0
}

func ExamplePrefix() {
	p, err := nat64.ParsePrefix("2001:db8:122::/48")
	if err != nil {
		fmt.Println(err)
		return
	}
	v6 := p.Embed(netip.MustParseAddr("192.0.2.33"))
	v4, ok := p.Extract(v6)
	fmt.Println(v6, v4, ok)
	n, err := nat64.Neutral(netip.MustParsePrefix("64:ff9b:1::/48"))
	fmt.Println(n, n.ChecksumNeutral(), err)
	// Output:
	// 2001:db8:122:c000:2:2100:: 192.0.2.33 true
	// 64:ff9b:1:fffe::/96 true <nil>
}

func ExamplePool() {
	pool, err := nat64.NewPool(nat64.PoolOptions{
		V4:  netip.MustParsePrefix("192.168.255.0/24"),
		Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	saved := "192.168.255.9\t2001:db8::1\t1799999000\nnot a binding\n"
	n, err := pool.LoadFrom(strings.NewReader(saved))
	fmt.Println(n, err)
	pool.WriteTo(os.Stdout)
	// Output:
	// 1 nat64: line 2 "not a binding": cannot be read
	// # IPv4 address, IPv6 address, last use (Unix time); pool 192.168.255.0/24
	// 192.168.255.9	2001:db8::1	1799999000
}

func ExampleStats() {
	t, err := nat64.New(nat64.Config{Prefix: nat64.WellKnownPrefix()})
	if err != nil {
		fmt.Println(err)
		return
	}
	var s nat64.Scratch
	t.Translate(&s, []byte("not a packet"), 0, 12)
	for r, n := range t.Stats().All() {
		if n > 0 {
			fmt.Printf("%d %v: %s (%s)\n", n, r, r.Rule(), r.Section())
		}
	}
	// Output:
	// 1 truncated: packet ends before its length field or one of its headers says (RFC 791 section 3.1, RFC 8200 section 3)
}

// A TCP stream of 3000 octets in one super-packet, as a TUN device with
// IFF_VNET_HDR hands it over: the kernel cuts it into segments afterwards.
func ExampleVirtioHdr() {
	prefix, err := nat64.ParsePrefix("2001:db8:64::/96")
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := nat64.New(nat64.Config{
		Prefix: prefix,
		EAM:    []nat64.EAM{{V6: netip.MustParsePrefix("2001:db8:c::/120"), V4: netip.MustParsePrefix("10.64.0.0/24")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	const room = nat64.Headroom
	buf := make([]byte, room+40+3000)
	// IPv4 and TCP headers; the checksum field holds the pseudo-header's sum.
	if _, err := hex.Decode(buf[room:], []byte("45000be0000140004006fa9fc63364020a400002"+"01bbc350000000010000000150100200404a0000")); err != nil {
		fmt.Println(err)
		return
	}
	h := nat64.VirtioHdr{ // from the device: h.Decode of what stands before the packet
		Flags: nat64.VirtioNeedsChecksum, GSOType: nat64.VirtioGSOTCPv4, HdrLen: 40, GSOSize: 1200,
		ChecksumStart: 20, ChecksumOffset: 16,
	}
	var s nat64.Scratch
	r := t.TranslateOffload(&s, &h, buf, room, 40+3000)
	fmt.Println(r.Verdict, r.Reason, len(r.Packet), "octets, more packets:", len(r.More))
	fmt.Println(h.GSOType == nat64.VirtioGSOTCPv6, h.HdrLen, h.GSOSize, h.ChecksumStart)
	// Output:
	// forward translated-4to6 3060 octets, more packets: 0
	// true 60 1200 40
}
