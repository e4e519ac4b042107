package lpctrie_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"signalbox.example/lpctrie"
)

func ExampleTable() {
	t := lpctrie.New[string](lpctrie.Config{})
	for _, s := range []string{"0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16"} {
		if err := t.Insert(netip.MustParsePrefix(s), "via "+s); err != nil {
			fmt.Println(err)
		}
	}
	v, prefix, ok := t.Lookup(netip.MustParseAddr("10.1.2.3"))
	fmt.Println(v, prefix, ok)
	t.Remove(netip.MustParsePrefix("10.1.0.0/16"))
	v, prefix, ok = t.Lookup(netip.MustParseAddr("10.1.2.3"))
	fmt.Println(v, prefix, ok)
	// Output:
	// via 10.1.0.0/16 10.1.0.0/16 true
	// via 10.0.0.0/8 10.0.0.0/8 true
}

func ExampleTable_Add() {
	t := lpctrie.New[string](lpctrie.Config{})
	office := netip.MustParsePrefix("192.0.2.0/24")
	fmt.Println(t.Add(lpctrie.Route{Prefix: office, Priority: 100}, "cable", lpctrie.ModeAdd))
	fmt.Println(t.Add(lpctrie.Route{Prefix: office, Priority: 50}, "fibre", lpctrie.ModeAdd))
	fmt.Println(t.Add(lpctrie.Route{Prefix: office, Priority: 50}, "radio", lpctrie.ModeAdd))
	dead := "fibre"
	v, _, _ := t.LookupFlow(lpctrie.Flow{Dst: office.Addr()}, func(_ lpctrie.Route, v string) bool { return v != dead })
	fmt.Println(v)
	// Output:
	// <nil>
	// <nil>
	// lpctrie: route exists
	// cable
}

func ExampleTable_Trace() {
	t := lpctrie.New[int](lpctrie.Config{})
	for _, s := range []string{"10.0.0.0/8", "10.128.0.0/16", "10.129.0.0/16"} {
		if err := t.Insert(netip.MustParsePrefix(s), 0); err != nil {
			fmt.Println(err)
		}
	}
	for _, step := range t.Trace(netip.MustParseAddr("10.130.0.1")) {
		fmt.Println(step)
	}
	// Output:
	// descend 10.0.0.0/8 bits 2 skip 8 child 2
	// skipped bits differ 10.128.0.0/15 bits 2 skip 5
	// try shorter 10.128.0.0/15 bits 2 skip 5
	// rejected 10.128.0.0/16
	// backtrack 10.0.0.0/8 bits 2 skip 8 child 0
	// match 10.0.0.0/8
}

func ExampleReadBatch() {
	t := lpctrie.New[string](lpctrie.Config{})
	text := "route add 192.0.2.0/24 dev eth0\nroute add blackhole 192.0.2.128/25\n"
	for c, err := range lpctrie.ReadBatch(strings.NewReader(text)) {
		if err == nil {
			err = t.Add(c.Route, c.Dev, c.Mode)
		}
		if err != nil {
			fmt.Println(err)
		}
	}
	if err := t.WriteFibTrie(os.Stdout, "Main"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// Main:
	//   +-- 192.0.2.0/24 2 0 2
	//      |-- 192.0.2.0
	//         /24 link UNICAST
	//      |-- 192.0.2.128
	//         /25 universe BLACKHOLE
}

func ExampleSnapshot() {
	prefixes := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24")}
	s, err := lpctrie.Compile(prefixes, []uint32{64496, 64497}, lpctrie.CompileOptions{})
	if err != nil {
		fmt.Println(err)
	}
	addrs := []netip.Addr{netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("203.0.113.1"), netip.MustParseAddr("192.0.2.1")}
	asns, found := make([]uint32, 3), make([]bool, 3)
	fmt.Println(s.LookupBatch(addrs, asns, found), asns, found)
	// Output:
	// 2 [64497 0 64496] [true false true]
}

func ExampleOpen() {
	prefixes := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	s, err := lpctrie.Compile(prefixes, []string{"office"}, lpctrie.CompileOptions{})
	if err != nil {
		fmt.Println(err)
	}
	var file bytes.Buffer
	if err := s.Encode(&file, nil); err != nil {
		fmt.Println(err)
	}
	again, err := lpctrie.Open[string](file.Bytes(), nil)
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(again.Lookup(netip.MustParseAddr("192.0.2.1")))
	_, err = lpctrie.Open[string](file.Bytes()[:100], nil)
	fmt.Println(errors.Is(err, lpctrie.ErrSnapshot))
	// Output:
	// office true
	// true
}

func ExampleLive() {
	l := lpctrie.NewLive[string](lpctrie.Config{})
	a := netip.MustParseAddr("192.0.2.130")
	err := l.Update(func(t *lpctrie.Table[string]) error {
		if err := t.Insert(netip.MustParsePrefix("192.0.2.0/24"), "office"); err != nil {
			return err
		}
		return t.Insert(netip.MustParsePrefix("192.0.2.128/25"), "lab")
	})
	then := l.View()
	l.Remove(netip.MustParsePrefix("192.0.2.128/25"))
	now, prefix, _ := l.LookupPrefix(a)
	before, _ := then.Lookup(a)
	fmt.Println(err, before, now, prefix)
	// Output:
	// <nil> lab office 192.0.2.0/24
}
