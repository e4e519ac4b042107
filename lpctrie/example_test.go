package lpctrie_test

import (
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
