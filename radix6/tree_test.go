package radix6

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

func pfx(s string) netip.Prefix {
	if s == "" {
		return netip.Prefix{}
	}
	return netip.MustParsePrefix(s)
}

func ip(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

// check compares everything a tree says with the slow table.
func check(t testing.TB, tr *Tree[int], s *slow, r *rand.Rand, queries int) {
	t.Helper()
	if tr.Len() != len(s.routes) {
		t.Fatalf("Len %d, want %d", tr.Len(), len(s.routes))
	}
	i := 0
	for rt, v := range tr.All() {
		if i >= len(s.routes) || rt != s.routes[i].Route || v != s.routes[i].v {
			t.Fatalf("walk: route %d is %v=%d, want %+v", i, rt, v, s.routes[i])
		}
		i++
	}
	invariants(t, tr)
	for range queries {
		var dst, src netip.Addr
		dst, src = randomAddr(r), randomAddr(r)
		if len(s.routes) > 0 {
			q := s.routes[r.IntN(len(s.routes))]
			if r.IntN(4) > 0 {
				dst = near(r, q.Prefix)
			}
			if q.From.IsValid() && r.IntN(2) > 0 {
				src = near(r, q.From)
			}
		}
		if r.IntN(8) == 0 {
			src = netip.Addr{}
		}
		var usable func(Route, int) bool
		if r.IntN(2) == 0 {
			bad := r.IntN(3)
			usable = func(_ Route, v int) bool { return v%3 != bad }
		}
		want, ok := s.lookup(dst, src, usable)
		v, rt, got := tr.LookupFunc(dst, src, usable)
		if got != ok || v != want.v || rt != want.Route {
			t.Fatalf("mode %d: %v from %v: %v=%d %v, want %v=%d %v (filter %v)\n%s", s.mode, dst, src, rt, v, got, want.Route, want.v, ok, usable != nil, dump(s))
		}
		if usable == nil {
			steps := tr.TraceFrom(dst, src)
			last := steps[len(steps)-1]
			if (last.Verdict == Matched) != ok || ok && last.Route != want.Route {
				t.Fatalf("trace of %v from %v ends with %v, want %v", dst, src, last, want.Route)
			}
		}
		want, ok = s.lookup(dst, netip.Addr{}, nil)
		v, p, got := tr.Lookup(dst)
		hi, lo, _ := addrKey(dst)
		kv, kok := tr.LookupKey(hi, lo)
		if got != ok || v != want.v || p != want.Prefix || kv != v || kok != ok {
			t.Fatalf("mode %d: %v: %v=%d %v (key %d %v), want %v=%d %v\n%s", s.mode, dst, p, v, got, kv, kok, want.Route, want.v, ok, dump(s))
		}
	}
}

func dump(s *slow) (out string) {
	for _, r := range s.routes {
		out += fmt.Sprintf("%v =%d\n", r.Route, r.v)
	}
	return out
}

// invariants checks the shape: each node below the root is a destination with
// routes, or a fork of two, its prefix inside its parent's; the counters are
// right; what is not in the tree is in a free list.
func invariants(t testing.TB, tr *Tree[int]) {
	t.Helper()
	if len(tr.nodes) == 0 {
		return
	}
	nodes, routes, routeNodes, subs := 0, 0, 0, 0
	list := func(r uint32) int {
		n := 0
		for m := uint32(0); r != 0; r = tr.routes[r].next {
			if tr.routes[r].metric < m {
				t.Fatal("routes of a node out of order")
			}
			m = tr.routes[r].metric
			n++
		}
		routes += n
		return n
	}
	var walk func(i uint32, depth int)
	walk = func(i uint32, depth int) {
		n, k := tr.nodes[i], tr.keys[i]
		if k.mask(n.bits()) != k {
			t.Fatalf("node %v/%d has host bits", k.addr(), n.bits())
		}
		has := list(*tr.head(i))
		if has > 0 && i != rootNode {
			routeNodes++
		}
		if n.info&hasSub != 0 {
			subs++
			nodes++
			root := tr.subs[n.leaf].root
			if tr.nodes[root].child == [2]uint32{} || tr.nodes[root].info&candidate != 0 {
				t.Fatal("an empty tree of sources stays")
			}
			for _, c := range tr.nodes[root].child {
				if c != 0 {
					walk(c, 1)
				}
			}
		}
		if cand := has > 0 || n.info&hasSub != 0; cand != (n.info&candidate != 0) {
			t.Fatalf("candidate flag of %v/%d is %v", k.addr(), n.bits(), !cand)
		} else if !cand && depth > 0 && (n.child[0] == 0 || n.child[1] == 0) {
			t.Fatalf("node %v/%d serves nobody", k.addr(), n.bits())
		}
		for d, c := range n.child {
			if c == 0 {
				continue
			}
			nodes++
			if tr.nodes[c].bits() <= n.bits() || common(k, tr.keys[c]) < n.bits() || tr.keys[c].bit(uint32(n.bits())) != uint32(d) {
				t.Fatalf("node %v/%d is in the wrong place", tr.keys[c].addr(), tr.nodes[c].bits())
			}
			walk(c, depth+1)
		}
	}
	walk(rootNode, 0)
	free := 0
	for i := tr.freeNode; i != 0; i = tr.nodes[i].child[0] {
		free++
	}
	// Source nodes were counted by walk as children; the roots by hand.
	nodes += sourceChildren(tr)
	if nodes != tr.nodeCount || routes != tr.routeCount || routeNodes != tr.routeNodes || subs != tr.subtrees {
		t.Fatalf("counters nodes %d routes %d route nodes %d subtrees %d, counted %d %d %d %d",
			tr.nodeCount, tr.routeCount, tr.routeNodes, tr.subtrees, nodes, routes, routeNodes, subs)
	}
	if nodes+free+2 != len(tr.nodes) {
		t.Fatalf("%d nodes, %d free, slab of %d: some are lost", nodes, free, len(tr.nodes))
	}
	free = 0
	for i := tr.freeRoute; i != 0; i = tr.routes[i].next {
		free++
	}
	if routes+free+1 != len(tr.routes) || len(tr.vals) != len(tr.routes) {
		t.Fatalf("%d routes, %d free, slab of %d: some are lost", routes, free, len(tr.routes))
	}
}

// sourceChildren counts the nodes directly below the roots of source trees.
func sourceChildren(tr *Tree[int]) (n int) {
	var walk func(i uint32)
	walk = func(i uint32) {
		nd := tr.nodes[i]
		if nd.info&hasSub != 0 {
			for _, c := range tr.nodes[tr.subs[nd.leaf].root].child {
				if c != 0 {
					n++
				}
			}
		}
		for _, c := range nd.child {
			if c != 0 {
				walk(c)
			}
		}
	}
	walk(rootNode)
	return n
}

func randomRoute(r *rand.Rand, mode SourceMode) Route {
	rt := Route{Prefix: randomPrefix(r), Metric: uint32(r.IntN(3))}
	if mode != SourceOff && r.IntN(2) == 0 {
		rt.From = randomPrefix(r)
	}
	return rt
}

func TestRandomOperationsAgainstSlowTable(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 40
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(1, uint64(round)))
		mode := SourceMode(round % 3)
		tr, s := New[int](mode), &slow{mode: mode}
		for op := range 120 {
			rt := randomRoute(r, mode)
			if len(s.routes) > 0 && r.IntN(2) == 0 {
				rt = s.routes[r.IntN(len(s.routes))].Route
			}
			if r.IntN(3) == 0 {
				v, ok := tr.Delete(rt)
				wv, wok := s.delete(rt)
				if v != wv || ok != wok {
					t.Fatalf("delete %v: %d %v, want %d %v", rt, v, ok, wv, wok)
				}
			} else {
				m := [...]Mode{ModeAdd, ModeChange, ModeReplace, ModeAppend, Create, 0, Excl}[r.IntN(7)]
				err, want := tr.Add(rt, op, m), s.add(rt, op, m)
				if !errors.Is(err, want) {
					t.Fatalf("add %v mode %d: %v, want %v", rt, m, err, want)
				}
			}
			if op%20 == 0 {
				check(t, tr, s, r, 40)
			}
			if op == 77 {
				tr.Pack()
			}
		}
		check(t, tr, s, r, 200)
		checkRanges(t, tr, s, r)
		for _, rt := range slices.Clone(s.routes) {
			if v, ok := tr.GetRoute(rt.Route); !ok {
				t.Fatalf("get %v: %d %v", rt.Route, v, ok)
			}
		}
		r.Shuffle(len(s.routes), func(i, j int) { s.routes[i], s.routes[j] = s.routes[j], s.routes[i] })
		for _, rt := range s.routes {
			if _, ok := tr.Delete(rt.Route); !ok {
				t.Fatalf("delete %v failed", rt.Route)
			}
		}
		s.routes = nil
		check(t, tr, s, r, 10)
		if st := tr.Stats(); st.Nodes != 0 || st.Routes != 0 || st.RouteNodes != 0 || st.Subtrees != 0 {
			t.Fatalf("after deleting all: %+v", st)
		}
	}
}

func checkRanges(t *testing.T, tr *Tree[int], s *slow, r *rand.Rand) {
	t.Helper()
	for range 30 {
		p := randomPrefix(r)
		var in, over []Route
		for _, o := range s.routes {
			if o.Prefix.Bits() >= p.Bits() && p.Contains(o.Prefix.Addr()) {
				in = append(in, o.Route)
			}
			if o.Prefix.Bits() <= p.Bits() && o.Prefix.Contains(p.Addr()) {
				over = append(over, o.Route)
			}
		}
		slices.SortStableFunc(over, func(a, b Route) int { return a.Prefix.Bits() - b.Prefix.Bits() })
		var gotIn, gotOver []Route
		for rt := range tr.Subnets(p) {
			gotIn = append(gotIn, rt)
		}
		for rt := range tr.Supernets(p) {
			gotOver = append(gotOver, rt)
		}
		if !slices.Equal(in, gotIn) || !slices.Equal(over, gotOver) {
			t.Fatalf("%v: inside %v want %v; over it %v want %v", p, gotIn, in, gotOver, over)
		}
		if got, want := tr.Overlaps(p), len(in)+len(over) > 0; got != want {
			t.Fatalf("overlaps %v: %v", p, got)
		}
		one := New[int](SourceOff)
		if err := one.Insert(p, 1); err != nil {
			t.Fatal(err)
		}
		if got, want := one.OverlapsTree(tr), len(in)+len(over) > 0; got != want {
			t.Fatalf("trees overlap at %v: %v", p, got)
		}
		if r.IntN(2) == 0 && len(in) > 0 { // an early stop
			for range tr.Subnets(p) {
				break
			}
		}
	}
}
