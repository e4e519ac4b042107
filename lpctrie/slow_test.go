package lpctrie

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// A slowTable is the obvious table: a sorted slice searched from end to end.
type slowTable struct{ routes []slowRoute }

type slowRoute struct {
	Route
	v uint32
}

// order is the kernel's order of aliases of one prefix.
func (a slowRoute) order(b slowRoute) int {
	return cmp.Or(a.Prefix.Compare(b.Prefix), cmp.Compare(b.Table, a.Table), cmp.Compare(b.TOS, a.TOS), cmp.Compare(a.Priority, b.Priority))
}

func (s *slowTable) add(r Route, v uint32, mode Mode) error {
	if r.Type == 0 {
		r.Type = Unicast
	}
	n := slowRoute{r, v}
	lo, _ := slices.BinarySearchFunc(s.routes, n, slowRoute.order)
	hi := lo
	match := -1
	for ; hi < len(s.routes) && s.routes[hi].order(n) == 0; hi++ {
		if s.routes[hi] == n && match < 0 {
			match = hi
		}
	}
	switch {
	case lo == hi && mode&Create == 0:
		return ErrNotExist
	case lo == hi:
	case mode&Excl != 0:
		return ErrExist
	case mode&Replace != 0:
		if match == lo {
			return nil
		}
		if match > lo {
			return ErrExist
		}
		s.routes[lo] = n
		return nil
	case match >= 0:
		return ErrExist
	case mode&Create == 0:
		return ErrNotExist
	case mode&Append != 0:
		lo = hi
	}
	s.routes = slices.Insert(s.routes, lo, n)
	return nil
}

func (s *slowTable) del(r Route) (uint32, bool) {
	for i, a := range s.routes {
		if a.Prefix == r.Prefix && a.Table == r.Table && a.TOS == r.TOS &&
			(r.Priority == 0 || r.Priority == a.Priority) && (r.Type == 0 || r.Type == a.Type) {
			s.routes = slices.Delete(s.routes, i, i+1)
			return a.v, true
		}
	}
	return 0, false
}

func (s *slowTable) lookup(f Flow, usable func(Route, uint32) bool) (slowRoute, bool) {
	for bits := 32; bits >= 0; bits-- {
		p, _ := f.Dst.Prefix(bits)
		for _, a := range s.routes {
			if a.Prefix == p && (a.TOS == 0 || a.TOS == f.TOS) && a.Scope >= f.Scope &&
				(usable == nil || a.Type.Err() != nil || usable(a.Route, a.v)) {
				return a, true
			}
		}
	}
	return slowRoute{}, false
}

func randomPrefix(r *rand.Rand) netip.Prefix {
	// Few distinct addresses, so that routes meet.
	key := r.Uint32()
	switch r.IntN(4) {
	case 0:
		key = 10<<24 | key&0xffff
	case 1:
		key = 10<<24 | key&3<<22 | key>>4&15
	case 2:
		key &= 0xc0000003
	}
	slen := uint8(r.IntN(33))
	return prefixOf(key&^suffixMask(slen), slen)
}

func randomRoute(r *rand.Rand) Route {
	rt := Route{Prefix: randomPrefix(r)}
	if r.IntN(2) == 0 {
		rt.TOS = uint8(r.IntN(3)) * 8
		rt.Priority = uint32(r.IntN(3))
		rt.Table = uint32(254 + r.IntN(2))
		rt.Type = []RouteType{0, Unicast, Blackhole, Throw, Local}[r.IntN(5)]
		rt.Scope = []Scope{ScopeUniverse, ScopeLink, ScopeHost}[r.IntN(3)]
	}
	return rt
}

// verify checks the invariants of the trie that no output shows.
func verify[V any](t *testing.T, tab *Table[V]) {
	t.Helper()
	routes, leaves, tnodes, words := 0, 0, 0, 0
	var visit func(ref, parent uint32) (slen uint32)
	visit = func(ref, parent uint32) uint32 {
		if ref&leafBit != 0 {
			leaves++
			for i := ref &^ leafBit; i != 0; i = tab.cold.at(i).next {
				routes++
				if tab.hot[i].key != tab.hot[ref&^leafBit].key || (tab.hot[i].info&moreBit != 0) != (tab.cold.at(i).next != 0) {
					t.Fatal("alias with another key than its leaf")
				}
			}
			return tab.slenOf(ref)
		}
		tnodes++
		pos, width := tab.shapeOf(ref)
		words += blockWords(width)
		if tab.nodes[ref-1] != parent {
			t.Fatalf("node %d: parent %d, want %d", ref, tab.nodes[ref-1], parent)
		}
		slen, empty, full := pos, uint32(0), uint32(0)
		for i := uint32(0); i < 1<<width; i++ {
			child := tab.nodes[ref+2+i]
			if child == 0 {
				empty++
				continue
			}
			if tab.full(pos, child) {
				full++
			}
			if tab.indexIn(ref, tab.keyOf(child)) != i {
				t.Fatal("child in the wrong place")
			}
			slen = max(slen, visit(child, ref))
		}
		if tab.nodes[ref-3] != empty || tab.nodes[ref-2] != full {
			t.Fatalf("counters %d empty %d full, want %d %d", tab.nodes[ref-3], tab.nodes[ref-2], empty, full)
		}
		if got := nodeSlen(tab.nodes[ref+1]); got != slen {
			t.Fatalf("slen %d, want %d", got, slen)
		}
		return slen
	}
	if tab.root != 0 {
		visit(tab.root, 0)
	}
	if routes != tab.routes || leaves != tab.leaves || tnodes != tab.tnodes || words != tab.liveWords {
		t.Fatalf("counted %d routes %d leaves %d tnodes %d words, the table says %d %d %d %d",
			routes, leaves, tnodes, words, tab.routes, tab.leaves, tab.tnodes, tab.liveWords)
	}
}

func compareTables(t *testing.T, tab *Table[uint32], slow *slowTable) {
	t.Helper()
	i := 0
	for r, v := range tab.All() {
		if i >= len(slow.routes) || slow.routes[i] != (slowRoute{r, v}) {
			t.Fatalf("walk, route %d: got %+v = %d of %d", i, r, v, len(slow.routes))
		}
		i++
	}
	if i != len(slow.routes) || tab.Len() != i {
		t.Fatalf("walk: %d routes, Len %d, want %d", i, tab.Len(), len(slow.routes))
	}
}

// probes returns addresses at and around the edges of every route.
func probes(slow *slowTable, r *rand.Rand, n int) []uint32 {
	var out []uint32
	for _, a := range slow.routes {
		key, slen, _ := keyOfPrefix(a.Prefix)
		last := key | suffixMask(slen)
		out = append(out, key, last, key-1, last+1, key|r.Uint32()&suffixMask(slen))
	}
	for range n {
		out = append(out, r.Uint32())
	}
	return out
}

func TestRandomOperationsAgainstSlowTable(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	for seed := range uint64(rounds) {
		r := rand.New(rand.NewPCG(seed, 1))
		cfg := Config{}
		if seed%4 == 3 {
			cfg = Config{Inflate: 10 + r.IntN(90), Halve: r.IntN(50), InflateRoot: r.IntN(90), HalveRoot: r.IntN(50), MaxWork: r.IntN(12), MaxBits: r.IntN(9)}
		}
		tab, slow := New[uint32](cfg), &slowTable{}
		size := 10 + r.IntN(150)
		for step := range 600 {
			rt, v := randomRoute(r), uint32(r.IntN(4))
			if len(slow.routes) > 0 && r.IntN(3) == 0 {
				rt = slow.routes[r.IntN(len(slow.routes))].Route
			}
			if len(slow.routes) > size || r.IntN(5) < 2 {
				if r.IntN(2) == 0 {
					rt.Priority, rt.Type = 0, 0
				}
				gv, gok := tab.Delete(rt)
				wv, wok := slow.del(rt)
				if gv != wv || gok != wok {
					t.Fatalf("seed %d step %d: delete %+v: %d %v, want %d %v", seed, step, rt, gv, gok, wv, wok)
				}
			} else {
				mode := []Mode{ModeAdd, ModeChange, ModeReplace, ModeAppend, ModePrepend, 0, Excl, Append, Replace | Append | Create}[r.IntN(9)]
				if got, want := tab.Add(rt, v, mode), slow.add(rt, v, mode); got != want {
					t.Fatalf("seed %d step %d: add %+v mode %d: %v, want %v", seed, step, rt, mode, got, want)
				}
			}
			if step%25 == 0 {
				verify(t, tab)
				compareTables(t, tab, slow)
				checkLookups(t, tab, slow, r)
			}
		}
		// Down to nothing: memory returns.
		for len(slow.routes) > 0 {
			rt := slow.routes[r.IntN(len(slow.routes))].Route
			tab.Delete(rt)
			slow.del(rt)
			verify(t, tab)
		}
		tab.Delete(Route{Prefix: prefixOf(0, 32)})
		if s := tab.Stats(); s.Bytes != 0 || s.Live != 0 || tab.root != 0 {
			t.Fatalf("seed %d: an empty table holds %+v", seed, s)
		}
	}
}

func checkLookups(t *testing.T, tab *Table[uint32], slow *slowTable, r *rand.Rand) {
	t.Helper()
	for _, key := range probes(slow, r, 20) {
		a := AddrOf(key)
		want, wok := slow.lookup(Flow{Dst: a}, nil)
		v, p, ok := tab.Lookup(a)
		if ok != wok || ok && (v != want.v || p != want.Prefix) {
			t.Fatalf("lookup %v: %d %v %v, want %+v %v", a, v, p, ok, want, wok)
		}
		tr := tab.Trace(a)
		last := tr[len(tr)-1]
		if (last.Verdict == Matched) != wok || wok && last.Node != want.Prefix {
			t.Fatalf("trace %v ends with %v, want %+v %v", a, last, want, wok)
		}
		f := Flow{Dst: a, TOS: uint8(r.IntN(3)) * 8, Scope: []Scope{0, ScopeLink, ScopeHost}[r.IntN(3)]}
		usable := func(_ Route, v uint32) bool { return v&1 == 0 }
		want, wok = slow.lookup(f, usable)
		fv, fr, ok := tab.LookupFlow(f, usable)
		if ok != wok || ok && (fv != want.v || fr != want.Route) {
			t.Fatalf("flow %+v: %d %+v %v, want %+v %v", f, fv, fr, ok, want, wok)
		}
	}
	for range 5 {
		p := randomPrefix(r)
		var got, want []slowRoute
		for rt, v := range tab.Subnets(p) {
			got = append(got, slowRoute{rt, v})
		}
		for _, a := range slow.routes {
			if p.Bits() <= a.Prefix.Bits() && p.Contains(a.Prefix.Addr()) {
				want = append(want, a)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("subnets of %v: %v, want %v", p, got, want)
		}
		overlaps := len(want) > 0
		got, want = nil, nil
		for rt, v := range tab.Supernets(p) {
			got = append(got, slowRoute{rt, v})
		}
		for _, a := range slow.routes {
			if a.Prefix.Bits() <= p.Bits() && a.Prefix.Contains(p.Addr()) {
				want = append(want, a)
			}
		}
		slices.SortStableFunc(want, func(a, b slowRoute) int { return cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()) })
		if !slices.Equal(got, want) {
			t.Fatalf("supernets of %v: %v, want %v", p, got, want)
		}
		if got := tab.Overlaps(p); got != (overlaps || len(want) > 0) {
			t.Fatalf("overlaps %v: %v", p, got)
		}
		gv, gok := tab.Get(p)
		i := slices.IndexFunc(slow.routes, func(a slowRoute) bool { return a.Prefix == p && a.TOS == 0 })
		if gok != (i >= 0) || gok && gv != slow.routes[i].v {
			t.Fatalf("get %v: %d %v", p, gv, gok)
		}
	}
}

// permutations calls f with every order of n items.
func permutations(n int, f func(order []int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	var rec func(k int)
	rec = func(k int) {
		if k == n {
			f(order)
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			rec(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	rec(0)
}

// Every order of insertion of every class of small tables (nested, siblings,
// disjoint, one key with several lengths, aliases) gives the same answers, and
// so does every order of deletion of half of them.
func TestInsertionOrderDoesNotMatter(t *testing.T) {
	classes := [][]string{
		{"0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/16", "10.0.0.0/24", "10.0.0.0/32"},
		{"10.0.0.0/9", "10.128.0.0/9", "10.0.0.0/8", "10.64.0.0/10", "10.192.0.0/10"},
		{"1.0.0.0/8", "2.0.0.0/8", "128.0.0.0/1", "255.255.255.255/32", "0.0.0.0/32"},
		{"10.0.0.0/30", "10.0.0.4/30", "10.0.0.8/29", "10.0.0.0/28", "10.0.0.15/32", "10.0.0.14/31"},
		{"0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/3", "224.0.0.0/4", "240.0.0.0/5", "0.0.0.0/0"},
	}
	for _, class := range classes {
		var ps []netip.Prefix
		slow, half := &slowTable{}, &slowTable{}
		for i, s := range class {
			p := netip.MustParsePrefix(s)
			ps = append(ps, p)
			if err := slow.add(Route{Prefix: p}, uint32(i), ModeAdd); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				half.add(Route{Prefix: p}, uint32(i), ModeAdd)
			}
		}
		keys := probes(slow, rand.New(rand.NewPCG(1, 1)), 0)
		check := func(tab *Table[uint32], slow *slowTable) {
			compareTables(t, tab, slow)
			for _, k := range keys {
				want, wok := slow.lookup(Flow{Dst: AddrOf(k)}, nil)
				if v, ok := tab.LookupKey(k); ok != wok || v != want.v {
					t.Fatalf("%v: lookup %v: %d %v, want %d %v", class, AddrOf(k), v, ok, want.v, wok)
				}
			}
		}
		permutations(len(ps), func(order []int) {
			tab := New[uint32](Config{})
			for _, i := range order {
				if err := tab.Insert(ps[i], uint32(i)); err != nil {
					t.Fatal(err)
				}
			}
			check(tab, slow)
			for _, i := range order {
				if i%2 == 1 {
					tab.Remove(ps[i])
				}
			}
			verify(t, tab)
			check(tab, half)
		})
	}
}

// Aliases that differ in priority, TOS or table come in the kernel's order
// whatever the order of insertion.
func TestAliasOrder(t *testing.T) {
	p := netip.MustParsePrefix("10.0.0.0/8")
	want := []slowRoute{
		{Route{p, 255, 0, Unicast, 0, 7}, 0},
		{Route{p, 254, 16, Unicast, 0, 0}, 1},
		{Route{p, 254, 0, Unicast, 0, 5}, 2},
		{Route{p, 254, 0, Unicast, 0, 6}, 3},
		{Route{p, 0, 0, Unicast, 0, 1}, 4},
	}
	permutations(len(want), func(order []int) {
		tab := New[uint32](Config{})
		for _, i := range order {
			if err := tab.Add(want[i].Route, want[i].v, ModeAdd); err != nil {
				t.Fatal(err)
			}
		}
		compareTables(t, tab, &slowTable{want})
		verify(t, tab)
	})
}

// Memory after churn stays within a third above what is in use.
func TestChurnDoesNotLeak(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	n, ops := 30000, 300000
	if testing.Short() {
		n, ops = 2000, 20000
	}
	tab := New[uint32](Config{})
	keys := make([]netip.Prefix, n)
	for i := range keys {
		keys[i] = prefixOf(r.Uint32()&^255, 8)
		tab.Insert(keys[i], uint32(i))
	}
	for range ops {
		i := r.IntN(n)
		tab.Remove(keys[i])
		keys[i] = prefixOf(r.Uint32()&^255, 8)
		tab.Insert(keys[i], uint32(i))
	}
	verify(t, tab)
	s := tab.Stats()
	if float64(s.Bytes) > 1.6*float64(s.Live) {
		t.Errorf("%d bytes for %d in use after churn", s.Bytes, s.Live)
	}
	// Shrinking gives memory back before the table is empty.
	for i := range n * 15 / 16 {
		tab.Remove(keys[i])
	}
	tab.tidy()
	verify(t, tab)
	if small := tab.Stats(); small.Bytes > s.Bytes/3 {
		t.Errorf("a sixteenth of the routes still takes %d of %d bytes", small.Bytes, s.Bytes)
	}
}
