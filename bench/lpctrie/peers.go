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
	// Contains is set for a peer without values.
	Contains bool
}

// Built is a table ready for lookups.
type Built struct {
	Lookup func(a netip.Addr) (uint32, bool)
	// Sum looks up all addresses independently of each other, Chain each
	// after the answer of the one before is known. Both return a sum of the
	// values so that nothing is optimised away.
	Sum, Chain func(as []netip.Addr) uint32
	Delete     func(p netip.Prefix) // nil where the peer has nothing of the kind
	// Keep is the structure, for measuring its memory.
	Keep any
}

// built fills in what slow peers need no loops of their own for: a call
// through a function value costs them nothing that would show.
func built(keep any, lookup func(a netip.Addr) (uint32, bool), del func(p netip.Prefix)) Built {
	return Built{
		Lookup: lookup,
		Sum: func(as []netip.Addr) (s uint32) {
			for _, a := range as {
				v, _ := lookup(a)
				s += v
			}
			return s
		},
		Chain: func(as []netip.Addr) (s uint32) {
			for i := 0; i < len(as); {
				v, _ := lookup(as[i])
				s += v
				i = next(i, v)
			}
			return s
		},
		Delete: del,
		Keep:   keep,
	}
}

// next makes the following index depend on a value that is always below 2^31.
func next(i int, v uint32) int { return i + 1 + int(v>>31) }

// Ours is the faithful trie, OursPacked the same after Pack.
var (
	Ours = Peer{Name: "lpctrie.Table", Build: func(ps []netip.Prefix) Built {
		return builtTable(Table(ps))
	}}
	OursPacked = Peer{Name: "lpctrie.Table, packed", Build: func(ps []netip.Prefix) Built {
		t := Table(ps)
		t.Pack()
		return builtTable(t)
	}}
)

// Table inserts prefixes with the values 0, 1, 2 ...
func Table(ps []netip.Prefix) *lpctrie.Table[uint32] {
	t := lpctrie.New[uint32](lpctrie.Config{})
	for i, p := range ps {
		if err := t.Insert(p, uint32(i)); err != nil {
			panic(err)
		}
	}
	return t
}

func builtTable(t *lpctrie.Table[uint32]) Built {
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
}

// BartFast is bart's fastest table.
var BartFast = Peer{Name: "bart.Fast", Build: func(ps []netip.Prefix) Built {
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
var BartTable = Peer{Name: "bart.Table", Build: func(ps []netip.Prefix) Built {
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
var BartLite = Peer{Name: "bart.Lite", Contains: true, Build: func(ps []netip.Prefix) Built {
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
