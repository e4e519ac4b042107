package lpctrie

import (
	"iter"
	"net/netip"
)

// Walks run in the order of addresses, at one address from the shortest prefix
// to the longest, routes of one prefix in the order of lookup. The table must
// not change while a walk is on.

// each yields the leaves with keys from lo to hi in ascending order.
func (t *Table[V]) each(lo, hi uint32) iter.Seq[uint32] {
	return func(yield func(leaf uint32) bool) { t.visit(t.root, lo, hi, yield) }
}

func (t *Table[V]) visit(ref, lo, hi uint32, yield func(uint32) bool) bool {
	if ref == 0 {
		return true
	}
	if ref&leafBit != 0 {
		i := ref &^ leafBit
		if key := t.hot[i].key; key < lo || key > hi {
			return true
		}
		return yield(i)
	}
	pos, width := t.shapeOf(ref)
	key := t.nodes[ref]
	last := key | suffixMask(uint8(pos+width))
	if hi < key || lo > last {
		return true
	}
	from, to := uint32(0), uint32(1)<<width-1
	if lo > key {
		from = (lo - key) >> pos
	}
	if hi < last {
		to = (hi - key) >> pos
	}
	for _, child := range t.nodes[ref+2+from : ref+2+to+1] {
		if child != 0 && !t.visit(child, lo, hi, yield) {
			return false
		}
	}
	return true
}

// chain calls yield for the records of a leaf with suffix lengths up to limit,
// the shortest prefix first.
func (t *Table[V]) chain(leaf uint32, limit uint8, yield func(i uint32) bool) bool {
	if t.cold.at(leaf).next == 0 {
		return t.hot[leaf].slen() > limit || yield(leaf)
	}
	// The list has the longest prefix first: find the groups from the back.
	for hi := int(limit); hi >= 0; {
		// The largest suffix length not above hi, and where it starts.
		start, slen := uint32(0), -1
		for i := leaf; i != 0; i = t.cold.at(i).next {
			if s := int(t.hot[i].slen()); s <= hi && s > slen {
				start, slen = i, s
			}
		}
		if start == 0 {
			return true
		}
		for i := start; i != 0 && int(t.hot[i].slen()) == slen; i = t.cold.at(i).next {
			if !yield(i) {
				return false
			}
		}
		hi = slen - 1
	}
	return true
}

// All iterates over all routes in the order of addresses, at one address from the
// shortest prefix to the longest, routes of one prefix in the order of lookup. The
// table must not be changed meanwhile, in this walk or the others.
func (t *Table[V]) All() iter.Seq2[Route, V] { return t.within(0, 32) }

// within iterates over the routes inside a prefix.
func (t *Table[V]) within(key uint32, slen uint8) iter.Seq2[Route, V] {
	return func(yield func(Route, V) bool) {
		for leaf := range t.each(key, key|suffixMask(slen)) {
			more := t.chain(leaf, slen, func(i uint32) bool {
				return yield(t.route(i), t.hot[i].val)
			})
			if !more {
				return
			}
		}
	}
}

// Subnets iterates over the routes whose prefix is p or lies inside it, in the
// order of [Table.All]. Host bits of p are ignored; an invalid or IPv6 prefix has
// no routes.
func (t *Table[V]) Subnets(p netip.Prefix) iter.Seq2[Route, V] {
	key, slen, err := keyOfPrefix(p.Masked())
	if err != nil {
		return func(func(Route, V) bool) {}
	}
	return t.within(key, slen)
}

// Supernets iterates over the routes whose prefix is p or covers it, the
// shortest first. Host bits of p are ignored; an invalid or IPv6 prefix has no
// routes.
func (t *Table[V]) Supernets(p netip.Prefix) iter.Seq2[Route, V] {
	return func(yield func(Route, V) bool) {
		key, least, err := keyOfPrefix(p.Masked())
		if err != nil {
			return
		}
		for slen := uint8(32); slen <= 32 && slen >= least; slen-- {
			leaf, _ := t.findLeaf(key &^ suffixMask(slen))
			for i := leaf; i != 0; i = t.cold.at(i).next {
				if r := &t.hot[i]; r.slen() == slen && !yield(t.route(i), r.val) {
					return
				}
			}
		}
	}
}

// Overlaps reports whether any route's prefix shares an address with p, whose
// host bits are ignored.
func (t *Table[V]) Overlaps(p netip.Prefix) bool {
	for range t.Supernets(p) {
		return true
	}
	for range t.Subnets(p) {
		return true
	}
	return false
}

// OverlapsTable reports whether any prefix of one table shares an address with
// any of the other.
func (t *Table[V]) OverlapsTable(o *Table[V]) bool {
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
