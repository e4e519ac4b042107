// Package radix6 compares signalbox.example/radix6 with other Go routing
// tables and repeats, on all of them, the three scenarios with which Linux's
// IPv6 route lookup was measured in public. Each peer has a small adapter
// here, beside which a test checks that it answers right. See README.md for
// the figures and the commands.
package radix6

import (
	"net"
	"net/netip"

	"github.com/gaissmai/bart"
	"github.com/infobloxopen/go-trees/iptree"
	"github.com/k-sone/critbitgo"
	"github.com/kentik/patricia"
	"github.com/kentik/patricia/generics_tree"
	"github.com/phemmer/go-iptrie"
	"github.com/yl2chen/cidranger"

	"signalbox.example/radix6"
)

// A Peer is a table under comparison, made from prefixes with the values 0, 1,
// 2 ... in the order of the slice.
type Peer struct {
	Name  string
	Build func(ps []netip.Prefix) Built
	// Contains is set for a peer without values.
	Contains bool
	// Slow is set for a peer whose differences are large enough to show in a
	// few slices.
	Slow bool
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

// Tree inserts prefixes with the values 0, 1, 2 ...
func Tree(ps []netip.Prefix) *radix6.Tree[uint32] {
	t := new(radix6.Tree[uint32])
	for i, p := range ps {
		if err := t.Insert(p, uint32(i)); err != nil {
			panic(err)
		}
	}
	return t
}

func builtTree(t *radix6.Tree[uint32]) Built {
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

// Ours is the faithful tree, OursPacked the same after Pack.
var (
	Ours       = Peer{Name: "radix6.Tree", Build: func(ps []netip.Prefix) Built { return builtTree(Tree(ps)) }}
	OursPacked = Peer{Name: "radix6.Tree, packed", Build: func(ps []netip.Prefix) Built {
		t := Tree(ps)
		t.Pack()
		return builtTree(t)
	}}
)

// OursSnapshot and OursFast are what a table is compiled into, from the
// prefixes in any order.
var (
	OursSnapshot = Peer{Name: "radix6.Snapshot", Build: func(ps []netip.Prefix) Built {
		return builtSnapshot(ps, radix6.Compact)
	}}
	OursFast = Peer{Name: "radix6.Snapshot, fast", Build: func(ps []netip.Prefix) Built {
		return builtSnapshot(ps, radix6.Fast)
	}}
)

func builtSnapshot(ps []netip.Prefix, l radix6.Layout) Built {
	vs := make([]uint32, len(ps))
	for i := range vs {
		vs[i] = uint32(i)
	}
	s, err := radix6.Compile(ps, vs, radix6.CompileOptions{Layout: l})
	if err != nil {
		panic(err)
	}
	return Built{
		Lookup: s.Lookup,
		Sum: func(as []netip.Addr) (sum uint32) {
			for _, a := range as {
				v, _ := s.Lookup(a)
				sum += v
			}
			return sum
		},
		Chain: func(as []netip.Addr) (sum uint32) {
			for i := 0; i < len(as); {
				v, _ := s.Lookup(as[i])
				sum += v
				i = next(i, v)
			}
			return sum
		},
		Keep: s,
	}
}

// OursLive is a table that may change while it is read.
var OursLive = Peer{Name: "radix6.Live", Build: func(ps []netip.Prefix) Built {
	l, err := radix6.LiveOf(Tree(ps))
	if err != nil {
		panic(err)
	}
	return Built{
		Lookup: l.Lookup,
		Sum: func(as []netip.Addr) (sum uint32) {
			for _, a := range as {
				v, _ := l.Lookup(a)
				sum += v
			}
			return sum
		},
		Chain: func(as []netip.Addr) (sum uint32) {
			for i := 0; i < len(as); {
				v, _ := l.Lookup(as[i])
				sum += v
				i = next(i, v)
			}
			return sum
		},
		Delete: func(p netip.Prefix) { l.Remove(p) },
		Keep:   l,
	}
}}

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

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Kentik is a patricia trie that can hold several values per prefix.
var Kentik = Peer{Name: "kentik/patricia", Slow: true, Build: func(ps []netip.Prefix) Built {
	t := generics_tree.NewTreeV6[uint32]()
	address := func(a netip.Addr, bits int) patricia.IPv6Address {
		return patricia.NewIPv6Address(a.AsSlice(), uint(bits))
	}
	for i, p := range ps {
		t.Set(address(p.Addr(), p.Bits()), uint32(i))
	}
	return built(t, func(a netip.Addr) (uint32, bool) {
		ok, v := t.FindDeepestTag(address(a, 128))
		return v, ok
	}, func(p netip.Prefix) {
		t.Delete(address(p.Addr(), p.Bits()), func(uint32, uint32) bool { return true }, 0)
	})
}}

// CritBit is a crit-bit tree over net.IPNet.
var CritBit = Peer{Name: "k-sone/critbitgo", Slow: true, Build: func(ps []netip.Prefix) Built {
	t := critbitgo.NewNet()
	for i, p := range ps {
		if err := t.Add(ipNet(p), uint32(i)); err != nil {
			panic(err)
		}
	}
	return built(t, func(a netip.Addr) (uint32, bool) {
		_, v, err := t.MatchIP(a.AsSlice())
		if err != nil || v == nil {
			return 0, false
		}
		return v.(uint32), true
	}, func(p netip.Prefix) {
		if _, _, err := t.Delete(ipNet(p)); err != nil {
			panic(err)
		}
	})
}}

// IPTrie is a compressed trie over netip.
var IPTrie = Peer{Name: "phemmer/go-iptrie", Slow: true, Build: func(ps []netip.Prefix) Built {
	t := iptrie.NewTrie()
	for i, p := range ps {
		t.Insert(p, uint32(i))
	}
	return built(t, func(a netip.Addr) (uint32, bool) {
		v, ok := t.Find(a).(uint32)
		return v, ok
	}, func(p netip.Prefix) { t.Remove(p) })
}}

// GoTrees is a radix tree over net.IPNet.
var GoTrees = Peer{Name: "infobloxopen/go-trees", Slow: true, Build: func(ps []netip.Prefix) Built {
	t := iptree.NewTree()
	for i, p := range ps {
		t.InplaceInsertNet(ipNet(p), uint32(i))
	}
	return built(t, func(a netip.Addr) (uint32, bool) {
		v, ok := t.GetByIP(a.AsSlice())
		if !ok {
			return 0, false
		}
		return v.(uint32), true
	}, nil) // its deletion takes all that lies inside along
}}

type rangerEntry struct {
	n net.IPNet
	v uint32
}

// Network makes rangerEntry what cidranger wants.
func (e rangerEntry) Network() net.IPNet { return e.n }

// CIDRanger is a path-compressed trie that returns all containing networks.
var CIDRanger = Peer{Name: "yl2chen/cidranger", Slow: true, Build: func(ps []netip.Prefix) Built {
	t := cidranger.NewPCTrieRanger()
	for i, p := range ps {
		if err := t.Insert(rangerEntry{*ipNet(p), uint32(i)}); err != nil {
			panic(err)
		}
	}
	return built(t, func(a netip.Addr) (uint32, bool) {
		es, err := t.ContainingNetworks(a.AsSlice())
		if err != nil || len(es) == 0 {
			return 0, false
		}
		return es[len(es)-1].(rangerEntry).v, true
	}, func(p netip.Prefix) {
		if _, err := t.Remove(*ipNet(p)); err != nil {
			panic(err)
		}
	})
}}

// Peers are all tables, ours first.
var Peers = []Peer{Ours, OursPacked, OursSnapshot, OursFast, OursLive, BartFast, BartTable, BartLite, Kentik, CritBit, IPTrie, GoTrees, CIDRanger}
