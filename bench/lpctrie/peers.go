// Package lpctrie compares signalbox.example/lpctrie with other Go routing
// tables. Each peer has a small adapter here, beside which a test checks that
// it answers right. See README.md for the figures and the commands.
package lpctrie

import (
	"net/netip"

	"github.com/gaissmai/bart"

	"signalbox.example/lpctrie"
)

// A Peer is a table under comparison, made from prefixes with the values 0, 1,
// 2 ... in the order of the slice.
type Peer struct {
	Name string
	// Build inserts the prefixes one by one.
	Build func(ps []netip.Prefix) Built
}

// Built is a table ready for lookups.
type Built struct {
	Lookup func(a netip.Addr) (uint32, bool)
	// Sum looks up all addresses independently of each other, Chain each
	// after the answer of the one before is known. Both return a sum of the
	// values so that nothing is optimised away.
	Sum, Chain func(as []netip.Addr) uint32
	Delete     func(p netip.Prefix)
	// Keep is the structure, for measuring its memory; the functions refer to
	// it as well.
	Keep any
}

// next makes the following index depend on a value that is always below 2^31.
func next(i int, v uint32) int { return i + 1 + int(v>>31) }

// Ours is the faithful trie.
var Ours = Peer{"lpctrie.Table", func(ps []netip.Prefix) Built {
	t := lpctrie.New[uint32](lpctrie.Config{})
	for i, p := range ps {
		if err := t.Insert(p, uint32(i)); err != nil {
			panic(err)
		}
	}
	if PACK {
		t.Pack()
	}
	return Built{
		Lookup: func(a netip.Addr) (uint32, bool) { v, _, ok := t.Lookup(a); return v, ok },
		Sum: func(as []netip.Addr) (s uint32) {
			for _, a := range as {
				v, _ := t.LookupAddr(a)
				s += v
			}
			return s
		},
		Chain: func(as []netip.Addr) (s uint32) {
			for i := 0; i < len(as); {
				v, _ := t.LookupAddr(as[i])
				s += v
				i = next(i, v)
			}
			return s
		},
		Delete: func(p netip.Prefix) { t.Remove(p) },
		Keep:   t,
	}
}}

// BartFast is bart's fastest table.
var BartFast = Peer{"bart.Fast", func(ps []netip.Prefix) Built {
	t := new(bart.Fast[uint32])
	for i, p := range ps {
		t.Insert(p, uint32(i))
	}
	return Built{
		Lookup: t.Lookup,
		Sum: func(as []netip.Addr) (s uint32) {
			for _, a := range as {
				v, _ := t.Lookup(a)
				s += v
			}
			return s
		},
		Chain: func(as []netip.Addr) (s uint32) {
			for i := 0; i < len(as); {
				v, _ := t.Lookup(as[i])
				s += v
				i = next(i, v)
			}
			return s
		},
		Delete: func(p netip.Prefix) { t.Delete(p) },
		Keep:   t,
	}
}}

// BartTable is bart's balanced table.
var BartTable = Peer{"bart.Table", func(ps []netip.Prefix) Built {
	t := new(bart.Table[uint32])
	for i, p := range ps {
		t.Insert(p, uint32(i))
	}
	return Built{
		Lookup: t.Lookup,
		Sum: func(as []netip.Addr) (s uint32) {
			for _, a := range as {
				v, _ := t.Lookup(a)
				s += v
			}
			return s
		},
		Chain: func(as []netip.Addr) (s uint32) {
			for i := 0; i < len(as); {
				v, _ := t.Lookup(as[i])
				s += v
				i = next(i, v)
			}
			return s
		},
		Delete: func(p netip.Prefix) { t.Delete(p) },
		Keep:   t,
	}
}}

// BartLite has no values: its lookup says whether anything matches.
var BartLite = Peer{"bart.Lite", func(ps []netip.Prefix) Built {
	t := new(bart.Lite)
	for _, p := range ps {
		t.Insert(p)
	}
	return Built{
		Lookup: func(a netip.Addr) (uint32, bool) { return 0, t.Contains(a) },
		Sum: func(as []netip.Addr) (s uint32) {
			for _, a := range as {
				if t.Contains(a) {
					s++
				}
			}
			return s
		},
		Chain: func(as []netip.Addr) (s uint32) {
			for i := 0; i < len(as); {
				v := uint32(0)
				if t.Contains(as[i]) {
					v = 1
				}
				s += v
				i = next(i, v)
			}
			return s
		},
		Delete: func(p netip.Prefix) { t.Delete(p) },
		Keep:   t,
	}
}}

var PACK = false
