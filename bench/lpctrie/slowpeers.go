package lpctrie

import (
	"net"
	"net/netip"

	"github.com/infobloxopen/go-trees/iptree"
	"github.com/k-sone/critbitgo"
	"github.com/kentik/patricia"
	"github.com/kentik/patricia/generics_tree"
	"github.com/phemmer/go-iptrie"
	"github.com/yl2chen/cidranger"

	"signalbox.example/lpctrie"
)

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// Kentik is a patricia trie that can hold several values per prefix.
var Kentik = Peer{Name: "kentik/patricia", Build: func(ps []netip.Prefix) Built {
	t := generics_tree.NewTreeV4[uint32]()
	address := func(a netip.Addr, bits int) patricia.IPv4Address {
		key, _ := lpctrie.KeyOf(a)
		return patricia.NewIPv4Address(key, uint(bits))
	}
	for i, p := range ps {
		t.Set(address(p.Addr(), p.Bits()), uint32(i))
	}
	return built(t, func(a netip.Addr) (uint32, bool) {
		ok, v := t.FindDeepestTag(address(a, 32))
		return v, ok
	}, func(p netip.Prefix) {
		t.Delete(address(p.Addr(), p.Bits()), func(uint32, uint32) bool { return true }, 0)
	})
}}

// CritBit is a crit-bit tree over net.IPNet.
var CritBit = Peer{Name: "k-sone/critbitgo", Build: func(ps []netip.Prefix) Built {
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
var IPTrie = Peer{Name: "phemmer/go-iptrie", Build: func(ps []netip.Prefix) Built {
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
var GoTrees = Peer{Name: "infobloxopen/go-trees", Build: func(ps []netip.Prefix) Built {
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
var CIDRanger = Peer{Name: "yl2chen/cidranger", Build: func(ps []netip.Prefix) Built {
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

// Peers are all tables that change in place, ours first.
var Peers = []Peer{Ours, OursPacked, BartFast, BartTable, BartLite, Kentik, CritBit, IPTrie, GoTrees, CIDRanger}
