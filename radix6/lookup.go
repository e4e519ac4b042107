package radix6

import (
	"math/bits"
	"net/netip"
)

// The two steps of a lookup, as in Linux. Step one goes down by single bits
// and compares nothing, past skipped bits, until there is no child. Step two
// goes back up to the first node whose prefix contains the address and that
// has routes. As the prefix of every node on the path is a prefix of the
// bottom node's, one comparison at the bottom stands for all of step two: it
// tells how many bits agree, and nodes longer than that are passed over.

// recent is how many candidate nodes step one remembers for step two. Paths
// with more candidates than that below the match are rare; they take the
// descent a second time.
const recent = 8

// deepest returns the longest candidate node that contains the address, or 0.
func deepest(nodes []node, keys []key, hi, lo uint64) uint32 {
	if len(nodes) <= rootNode {
		return 0
	}
	var ring [recent]uint32
	n := uint(0)
	i := uint32(rootNode)
	var nd *node
	for {
		nd = &nodes[i]
		ring[n%recent] = i
		n += uint(nd.info>>candidateShift) & 1
		if nd.info&0xff >= 64 {
			break
		}
		next := nd.child[hi>>(^nd.info&63)&1]
		if next == 0 {
			break
		}
		i = next
	}
	if nd.info&0xff >= 64 {
		for {
			next := nd.child[lo>>(^nd.info&63)&1]
			if next == 0 {
				break
			}
			i = next
			nd = &nodes[i]
			ring[n%recent] = i
			n += uint(nd.info>>candidateShift) & 1
		}
	}
	k := keys[i]
	var agree uint32
	if x := hi ^ k.hi; x != 0 {
		agree = uint32(bits.LeadingZeros64(x))
	} else {
		agree = 64 + uint32(bits.LeadingZeros64(lo^k.lo))
	}
	for back := uint(1); back <= min(n, recent); back++ {
		if j := ring[(n-back)%recent]; nodes[j].info&0xff <= agree {
			return j
		}
	}
	if n <= recent {
		return 0
	}
	return deepestWithin(nodes, rootNode, key{hi, lo}, agree)
}

// deepestWithin returns the last candidate on the path of an address from a
// node down whose prefix is at most limit bits long, or 0.
func deepestWithin(nodes []node, i uint32, k key, limit uint32) (best uint32) {
	for i != 0 {
		nd := &nodes[i]
		if nd.info&0xff > limit {
			break
		}
		if nd.info&candidate != 0 {
			best = i
		}
		i = nd.child[k.bit(nd.info&0xff)] // of a /128: its children are 0
	}
	return best
}

// agreement returns how many bits of an address the path below root shares
// with it: nodes on the path that are longer do not contain it.
func (t *Tree[V]) agreement(root uint32, k key) uint32 {
	i := root
	for {
		nd := &t.nodes[i]
		next := nd.child[k.bit(nd.info&0xff)]
		if next == 0 {
			return uint32(common(k, t.keys[i]))
		}
		i = next
	}
}

// LookupKey returns the value of the best route for an address given as two
// words, most significant first, and the unspecified source. It allocates
// nothing.
func (t *Tree[V]) LookupKey(hi, lo uint64) (v V, ok bool) {
	i := deepest(t.nodes, t.keys, hi, lo)
	if i == 0 {
		return v, false
	}
	r := t.nodes[i].leaf
	if t.nodes[i].info&hasSub != 0 {
		if _, _, r = t.find(key{hi, lo}, key{}, nil); r == 0 {
			return v, false
		}
	}
	return t.vals[r], true
}

// Lookup returns the value and the prefix of the best route to an address.
// The source of the packet is taken as unspecified (::), as "ip route get"
// does without "from". A zone is ignored; an IPv4 address matches nothing. It
// allocates nothing.
func (t *Tree[V]) Lookup(dst netip.Addr) (v V, p netip.Prefix, ok bool) {
	hi, lo, ok := addrKey(dst)
	if !ok {
		return v, p, false
	}
	i := deepest(t.nodes, t.keys, hi, lo)
	if i == 0 {
		return v, p, false
	}
	r := t.nodes[i].leaf
	if t.nodes[i].info&hasSub != 0 {
		if i, _, r = t.find(key{hi, lo}, key{}, nil); r == 0 {
			return v, p, false
		}
	}
	return t.vals[r], t.keys[i].prefix(t.nodes[i].bits()), true
}

// LookupAddr is [Tree.Lookup] without the prefix, which takes a few
// nanoseconds to make.
func (t *Tree[V]) LookupAddr(dst netip.Addr) (v V, ok bool) {
	hi, lo, ok := addrKey(dst)
	if !ok {
		return v, false
	}
	return t.LookupKey(hi, lo)
}

// Contains reports whether there is a route to an address.
func (t *Tree[V]) Contains(dst netip.Addr) bool {
	_, ok := t.LookupAddr(dst)
	return ok
}

// LookupFrom returns the best route from a source to a destination and its
// value. The zero source is the unspecified address. It allocates nothing.
func (t *Tree[V]) LookupFrom(dst, src netip.Addr) (v V, r Route, ok bool) {
	return t.LookupFunc(dst, src, nil)
}

// LookupFunc is [Tree.LookupFrom] with a say of the caller: routes that usable
// rejects (their next hop is dead) are passed over, within a node in the
// order of their metrics, then by backtracking to sources and prefixes that
// are less specific. A nil usable accepts all.
//
// With [SourceLinux] the generic routes of a prefix hide from sources that
// match none of its source-specific ones only until the first rejection:
// Linux finds the first node with one rule and goes on from it with another.
func (t *Tree[V]) LookupFunc(dst, src netip.Addr, usable func(Route, V) bool) (v V, r Route, ok bool) {
	d, s, ok := queryKeys(dst, src)
	if !ok || len(t.nodes) == 0 {
		return v, r, false
	}
	i, si, rt := t.find(d, s, usable)
	if rt == 0 {
		return v, r, false
	}
	return t.vals[rt], t.route(i, si, rt), true
}

func queryKeys(dst, src netip.Addr) (d, s key, ok bool) {
	if d.hi, d.lo, ok = addrKey(dst); ok && src.IsValid() {
		s.hi, s.lo, ok = addrKey(src)
	}
	return d, s, ok
}

// route describes a route of a node i, or of the source node si below it.
func (t *Tree[V]) route(i, si, rt uint32) Route {
	r := Route{Prefix: t.keys[i].prefix(t.nodes[i].bits()), Metric: t.routes[rt].metric}
	if si != 0 {
		r.From = t.keys[si].prefix(t.nodes[si].bits())
	}
	return r
}

// find does the whole of a lookup: backtracking over destinations, over the
// sources below each, over the routes of each node. It returns the
// destination's node, the source's node or 0, and the route or 0.
func (t *Tree[V]) find(d, s key, usable func(Route, V) bool) (i, si, rt uint32) {
	// Linux hides generic routes until a first node with routes was found.
	hide := t.mode == SourceLinux
	for limit := t.agreement(rootNode, d); ; {
		i = deepestWithin(t.nodes, rootNode, d, limit)
		if i == 0 {
			return 0, 0, 0
		}
		n := t.nodes[i]
		generic := n.leaf
		if n.info&hasSub != 0 {
			root := t.subs[n.leaf].root
			generic = t.subs[n.leaf].routes
			for within := t.agreement(root, s); ; within = uint32(t.nodes[si].bits()) - 1 {
				si = deepestWithin(t.nodes, root, s, within)
				if si == 0 {
					break
				}
				hide = false
				if rt = t.pick(i, si, t.nodes[si].leaf, usable); rt != 0 {
					return i, si, rt
				}
				// A source of length 0 is a generic route, so si is longer.
			}
		}
		if generic != 0 && (!hide || n.info&hasSub == 0 || i == rootNode) {
			hide = false
			if rt = t.pick(i, 0, generic, usable); rt != 0 {
				return i, 0, rt
			}
		}
		if n.bits() == 0 {
			return 0, 0, 0
		}
		limit = uint32(n.bits()) - 1
	}
}

func (t *Tree[V]) pick(i, si, rt uint32, usable func(Route, V) bool) uint32 {
	for usable != nil && rt != 0 && !usable(t.route(i, si, rt), t.vals[rt]) {
		rt = t.routes[rt].next
	}
	return rt
}
