package main

import (
	"fmt"
	"io"
	"net/netip"
	"strings"

	"signalbox.example/lpctrie"
)

// lpctrieSection builds a small table as "ip -batch" would, shows it as the
// kernel does, explains a lookup, and compiles it.
func lpctrieSection(w io.Writer) error {
	const script = `route add default via 192.0.2.1 dev eth0
route add 10.0.0.0/8 dev eth1
route add 10.128.0.0/16 dev eth2
route add 10.129.0.0/16 dev eth2
route add blackhole 10.129.7.0/24`
	t := lpctrie.New[string](lpctrie.Config{})
	for c, err := range lpctrie.ReadBatch(strings.NewReader(script)) {
		if err != nil {
			return err
		}
		c.Route.Table = 0 // one trie for one table
		if err := t.Add(c.Route, c.Dev, c.Mode); err != nil {
			return err
		}
	}
	if err := t.WriteFibTrie(w, "Main"); err != nil {
		return err
	}
	for _, s := range []string{"10.130.0.1", "10.129.7.9", "198.51.100.1"} {
		dst := netip.MustParseAddr(s)
		dev, r, _ := t.LookupFlow(lpctrie.Flow{Dst: dst}, nil)
		if err := r.Type.Err(); err != nil {
			dev = err.Error()
		}
		fmt.Fprintf(w, "\n%v -> %v %s\n", dst, r.Prefix, dev)
		for _, step := range t.Trace(dst) {
			fmt.Fprintf(w, "  %v\n", step)
		}
	}
	s := t.CompileWith(lpctrie.CompileOptions{Prefixes: true})
	dev, prefix, _ := s.LookupPrefix(netip.MustParseAddr("10.128.1.1"))
	fmt.Fprintf(w, "\ncompiled: %d routes, %d stretches of addresses; 10.128.1.1 -> %v %s\n", s.Len(), s.Entries(), prefix, dev)
	return nil
}
