package radix6

import (
	"iter"
	"net/netip"
)

// All walks the routes: by prefix (address, then length), generic routes
// before source-specific ones, these by source, then by metric. The tree must
// not be changed during the walk.
func (t *Tree[V]) All() iter.Seq2[Route, V] {
	return func(yield func(Route, V) bool) {
		if len(t.nodes) > 0 {
			t.walk(rootNode, yield)
		}
	}
}

// walk visits a node and all below it; at most 129 levels deep.
func (t *Tree[V]) walk(i uint32, yield func(Route, V) bool) bool {
	if !t.walkNode(i, yield) {
		return false
	}
	for _, c := range t.nodes[i].child {
		if c != 0 && !t.walk(c, yield) {
			return false
		}
	}
	return true
}

// walkNode visits the routes of one destination.
func (t *Tree[V]) walkNode(i uint32, yield func(Route, V) bool) bool {
	if !t.walkRoutes(i, 0, *t.head(i), yield) {
		return false
	}
	if n := t.nodes[i]; n.info&hasSub != 0 {
		return t.walkSources(i, t.subs[n.leaf].root, yield)
	}
	return true
}

func (t *Tree[V]) walkSources(i, si uint32, yield func(Route, V) bool) bool {
	if !t.walkRoutes(i, si, t.nodes[si].leaf, yield) {
		return false
	}
	for _, c := range t.nodes[si].child {
		if c != 0 && !t.walkSources(i, c, yield) {
			return false
		}
	}
	return true
}

func (t *Tree[V]) walkRoutes(i, si, rt uint32, yield func(Route, V) bool) bool {
	for ; rt != 0; rt = t.routes[rt].next {
		if !yield(t.route(i, si, rt), t.vals[rt]) {
			return false
		}
	}
	return true
}

// KernelOrder walks the routes in the order in which Linux dumps a table:
// the sources of a node first, then what is below it, then its own routes, so
// that more specific routes come before those that cover them.
func (t *Tree[V]) KernelOrder() iter.Seq2[Route, V] {
	return func(yield func(Route, V) bool) {
		if len(t.nodes) > 0 {
			t.walkKernel(rootNode, 0, yield)
		}
	}
}

// walkKernel visits the tree below a destination's node, or, with dst set,
// the tree of that destination's sources.
func (t *Tree[V]) walkKernel(i, dst uint32, yield func(Route, V) bool) bool {
	n := t.nodes[i]
	if n.info&hasSub != 0 && !t.walkKernel(t.subs[n.leaf].root, i, yield) {
		return false
	}
	for _, c := range n.child {
		if c != 0 && !t.walkKernel(c, dst, yield) {
			return false
		}
	}
	if dst != 0 {
		return t.walkRoutes(dst, i, n.leaf, yield)
	}
	return t.walkRoutes(i, 0, *t.head(i), yield)
}

// Subnets walks the routes whose prefix is p or lies inside it, in the order
// of [Tree.All]. Nothing lies inside an IPv4 or invalid prefix; bits of p
// behind its length are ignored.
func (t *Tree[V]) Subnets(p netip.Prefix) iter.Seq2[Route, V] {
	return func(yield func(Route, V) bool) {
		if i := t.below(p); i != 0 {
			t.walk(i, yield)
		}
	}
}

// below returns the node that holds everything inside a prefix, or 0.
func (t *Tree[V]) below(p netip.Prefix) uint32 {
	k, n, err := prefixKey(p.Masked())
	if err != nil || len(t.nodes) == 0 {
		return 0
	}
	i := uint32(rootNode)
	for t.nodes[i].bits() < n {
		if i = t.nodes[i].child[k.bit(t.nodes[i].info&0xff)]; i == 0 {
			return 0
		}
	}
	if common(k, t.keys[i]) < n {
		return 0
	}
	return i
}

// Supernets walks the routes whose prefix is p or contains it, shortest
// first.
func (t *Tree[V]) Supernets(p netip.Prefix) iter.Seq2[Route, V] {
	return func(yield func(Route, V) bool) {
		k, n, err := prefixKey(p.Masked())
		if err != nil || len(t.nodes) == 0 {
			return
		}
		for i := uint32(rootNode); i != 0; {
			b := t.nodes[i].bits()
			if b > n || common(k, t.keys[i]) < b || !t.walkNode(i, yield) || b == n {
				return
			}
			i = t.nodes[i].child[k.bit(uint32(b))]
		}
	}
}

// Overlaps reports whether some route's prefix contains p or lies
// inside it.
func (t *Tree[V]) Overlaps(p netip.Prefix) bool {
	for range t.Supernets(p) {
		return true
	}
	for range t.Subnets(p) {
		return true
	}
	return false
}

// OverlapsTree reports whether some prefix of one tree contains, equals or lies
// inside some prefix of the other.
func (t *Tree[V]) OverlapsTree(o *Tree[V]) bool {
	if t.Len() > o.Len() {
		t, o = o, t
	}
	for r := range t.All() {
		if o.Overlaps(r.Prefix) {
			return true
		}
	}
	return false
}
