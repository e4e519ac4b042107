package radix6_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"signalbox.example/radix6"
)

func ExampleTree() {
	var tree radix6.Tree[string]
	for prefix, v := range map[string]string{"::/0": "upstream", "2001:db8::/32": "site", "2001:db8:1::/48": "lab"} {
		if err := tree.Insert(netip.MustParsePrefix(prefix), v); err != nil {
			fmt.Println(err)
		}
	}
	v, prefix, ok := tree.Lookup(netip.MustParseAddr("2001:db8:2::1"))
	fmt.Println(v, prefix, ok)
	fmt.Print(tree.Stats())
	// Output:
	// site 2001:db8::/32 true
	// nodes 2 (2 with routes, 0 branches, 0 source trees)
	// routes 3
	// depth average 1.00, max 2
}

func ExampleTree_LookupFrom() {
	table := `
route add 2001:db8::/32 via fe80::1 dev wan
route add 2001:db8:2::/48 via fe80::2 dev peer
route add 2001:db8:2::/48 from 2001:db8:a::/48 via fe80::3 dev lab`
	for _, mode := range []radix6.SourceMode{radix6.SourceLinux, radix6.SourceDraft} {
		tree := radix6.New[string](mode)
		for c, err := range radix6.ReadBatch(strings.NewReader(table)) {
			if err == nil {
				err = tree.Add(c.Route, c.Dev, c.Mode)
			}
			if err != nil {
				fmt.Println(err)
			}
		}
		dev, route, _ := tree.LookupFrom(netip.MustParseAddr("2001:db8:2::1"), netip.MustParseAddr("2001:db8:b::1"))
		fmt.Println(dev, route)
	}
	// Output:
	// wan 2001:db8::/32 metric 1024
	// peer 2001:db8:2::/48 metric 1024
}

func ExampleTree_Trace() {
	var tree radix6.Tree[int]
	for i, p := range []string{"2001:db8::/32", "2001:db8:1::/48", "2001:db8:2::/48"} {
		if err := tree.Insert(netip.MustParsePrefix(p), i); err != nil {
			fmt.Println(err)
		}
	}
	for _, step := range tree.Trace(netip.MustParseAddr("2001:db8:3::1")) {
		fmt.Println(step)
	}
	// Output:
	// descend ::/0 skip 0 bit 0
	// descend 2001:db8::/32 skip 31 bit 0
	// descend 2001:db8::/46 skip 13 bit 1
	// bottom 2001:db8:2::/48 skip 1
	// mismatch 2001:db8:2::/48
	// fork 2001:db8::/46
	// match 2001:db8::/32 metric 0
}

func ExampleCache() {
	var tree radix6.Tree[string]
	if err := tree.Insert(netip.MustParsePrefix("::/0"), "wan"); err != nil {
		fmt.Println(err)
	}
	now := time.Unix(0, 0)
	cache := radix6.NewCache(&tree, radix6.CacheConfig{Now: func() time.Time { return now }}, nil)
	dst, src := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:a::1")
	if _, err := cache.PacketTooBig(dst, src, 1400); err != nil {
		fmt.Println(err)
	}
	for range 2 {
		mtu, expires, _ := cache.MTU(dst, src)
		fmt.Println(mtu, !expires.IsZero())
		now = now.Add(11 * time.Minute)
	}
	// Output:
	// 1400 true
	// 1500 false
}

func ExampleSnapshot() {
	prefixes := []netip.Prefix{netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2001:db8:1::/48")}
	s, err := radix6.Compile(prefixes, []uint32{64500, 64501}, radix6.CompileOptions{Prefixes: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	addrs := []netip.Addr{netip.MustParseAddr("2001:db8:1::1"), netip.MustParseAddr("2001:db8:2::1"), netip.MustParseAddr("::1")}
	asns, found := make([]uint32, 3), make([]bool, 3)
	fmt.Println(s.LookupBatch(addrs, asns, found), asns, found)
	fmt.Println(s.LookupPrefix(addrs[1]))

	var file bytes.Buffer
	if err := s.Encode(&file, nil); err != nil {
		fmt.Println(err)
	}
	again, err := radix6.Open[uint32](file.Bytes(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(again.Lookup(addrs[0]))
	// Output:
	// 2 [64501 64500 0] [true true false]
	// 64500 2001:db8::/32 true
	// 64501 true
}

func ExampleLive() {
	live := radix6.NewLive[string]()
	// Both routes appear to readers at the same instant.
	err := live.Update(func(t *radix6.Tree[string]) error {
		if err := t.Insert(netip.MustParsePrefix("::/0"), "upstream"); err != nil {
			return err
		}
		return t.Insert(netip.MustParsePrefix("2001:db8::/32"), "site")
	})
	fmt.Println(err)
	view := live.View() // this moment, whatever comes
	live.Remove(netip.MustParsePrefix("2001:db8::/32"))
	a := netip.MustParseAddr("2001:db8::1")
	fmt.Println(view.Lookup(a))
	fmt.Println(live.Lookup(a))
	// Output:
	// <nil>
	// site true
	// upstream true
}

func ExampleView() {
	live := radix6.NewLive[string]()
	if err := live.Insert(netip.MustParsePrefix("2001:db8::/32"), "old"); err != nil {
		fmt.Println(err)
	}
	// All lookups of a packet, or of a report, should be of one moment.
	view := live.View()
	if err := live.Insert(netip.MustParsePrefix("2001:db8::/32"), "new"); err != nil {
		fmt.Println(err)
	}
	if err := live.Insert(netip.MustParsePrefix("2001:db8:1::/48"), "lab"); err != nil {
		fmt.Println(err)
	}
	for _, v := range []*radix6.View[string]{view, live.View()} {
		value, prefix, _ := v.LookupPrefix(netip.MustParseAddr("2001:db8:1::1"))
		fmt.Println(v.Version(), v.Len(), value, prefix)
	}
	// Output:
	// 1 1 old 2001:db8::/32
	// 3 2 lab 2001:db8:1::/48
}
