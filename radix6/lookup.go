package radix6

import (
	"fmt"
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
// does without "from". An address with a zone matches nothing, like in
// [netip.Prefix.Contains]; nor does an IPv4 address. It allocates nothing.
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

// A StepKind says what a lookup did at a node.
type StepKind uint8

// What [Tree.Trace] reports of a node.
const (
	// Down: a bit of the address chose a child; nothing was compared.
	Down StepKind = iota
	// Bottom: there was no child; the prefix was compared for the first time.
	Bottom
	// Mismatch: on the way back up, the prefix does not contain the address.
	Mismatch
	// NoRoute: it does, but the node is only a fork of the tree.
	NoRoute
	// NoSource: the node has source-specific routes and none for this source;
	// its generic routes, if any, are hidden.
	NoSource
	// Source: the walk goes into the tree over the sources of the node.
	Source
	// Match: a route of this node is the answer.
	Match
	// Miss: the walk reached the root and there is no route.
	Miss
)

func (k StepKind) String() string {
	names := [...]string{"down", "bottom", "mismatch", "no route", "no source", "source", "match", "miss"}
	if int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("StepKind(%d)", uint8(k))
}

// Step is one thing that a lookup did.
type Step struct {
	Kind StepKind
	// Prefix is that of the node. In the tree over the sources of a node it
	// is a source prefix and InSource is set.
	Prefix   netip.Prefix
	InSource bool
	// Bit is the bit of the address that was looked at, 0 to 127, and Side
	// its value; only for Down.
	Bit, Side int
	// Skipped is the number of bits between the parent's decision and this
	// node's prefix end that the way down did not look at.
	Skipped int
	// Route is the answer; only for Match.
	Route Route
}

func (s Step) String() string {
	p := s.Prefix.String()
	if s.InSource {
		p = "from " + p
	}
	switch s.Kind {
	case Down:
		p += fmt.Sprintf(" bit %d is %d", s.Bit, s.Side)
	case Match:
		p += fmt.Sprintf(" metric %d", s.Route.Metric)
	}
	if s.Skipped > 0 {
		p += fmt.Sprintf(" (%d bits skipped)", s.Skipped)
	}
	return s.Kind.String() + " " + p
}

// Trace returns what a lookup does, node by node: the way down, the way back
// up, and the answer. The zero source is the unspecified address. The last
// step is a Match or a Miss; the list is empty only when an address is IPv4
// or has a zone.
func (t *Tree[V]) Trace(dst, src netip.Addr) []Step {
	d, s, ok := queryKeys(dst, src)
	if !ok {
		return nil
	}
	zero := key{}.prefix(0)
	if len(t.nodes) == 0 {
		return []Step{{Kind: Miss, Prefix: zero}}
	}
	var steps []Step
	i, agree := t.descend(&steps, rootNode, d, false)
	for up := len(i) - 1; up >= 0; up-- {
		n := t.nodes[i[up]]
		p := t.keys[i[up]].prefix(n.bits())
		switch {
		case n.bits() > agree:
			steps = append(steps, Step{Kind: Mismatch, Prefix: p})
			continue
		case n.info&candidate == 0:
			steps = append(steps, Step{Kind: NoRoute, Prefix: p})
			continue
		}
		rt := n.leaf
		if n.info&hasSub != 0 {
			steps = append(steps, Step{Kind: Source, Prefix: p})
			rt = t.subs[n.leaf].routes
			j, sagree := t.descend(&steps, t.subs[n.leaf].root, s, true)
			for sup := len(j) - 1; sup >= 0; sup-- {
				sn := t.nodes[j[sup]]
				st := Step{Kind: NoRoute, Prefix: t.keys[j[sup]].prefix(sn.bits()), InSource: true}
				if sn.bits() > sagree {
					st.Kind = Mismatch
				} else if sn.info&candidate != 0 {
					st.Kind = Match
					st.Route = t.route(i[up], j[sup], sn.leaf)
					return append(steps, st)
				}
				steps = append(steps, st)
			}
			if rt == 0 || t.mode == SourceLinux && i[up] != rootNode {
				steps = append(steps, Step{Kind: NoSource, Prefix: p})
				continue
			}
		}
		return append(steps, Step{Kind: Match, Prefix: p, Route: t.route(i[up], 0, rt)})
	}
	return append(steps, Step{Kind: Miss, Prefix: zero})
}

// descend records step one and returns the path and how many bits agree.
func (t *Tree[V]) descend(steps *[]Step, i uint32, k key, inSource bool) (path []uint32, agree int) {
	decided := 0
	for {
		n := t.nodes[i]
		path = append(path, i)
		st := Step{Kind: Bottom, Prefix: t.keys[i].prefix(n.bits()), InSource: inSource, Skipped: n.bits() - decided}
		side := k.bit(n.info & 0xff)
		if next := n.child[side]; next != 0 {
			st.Kind, st.Bit, st.Side = Down, n.bits(), int(side)
			*steps = append(*steps, st)
			i, decided = next, n.bits()+1
			continue
		}
		*steps = append(*steps, st)
		return path, common(k, t.keys[i])
	}
}
