package lpctrie

import "math/bits"

// The shape of the trie: where leaves hang and when nodes double, halve and
// vanish. Every rule here decides what /proc/net/fib_trie shows, so the order
// of steps matters as much as the rules; the tests compare node by node with
// recorded and with running kernels.
//
// A tnode (key, pos, bits) has 2^bits children, chosen by bits pos .. pos+bits-1
// of an address. Between a child's pos+bits and its parent's pos there may be
// skipped bits, equal in all that is below. A tnode without skipped bits is a
// "full" child. slen is the largest suffix length of a route below (at least
// pos): a search need not come back to a node whose slen is its pos.

// shapeOf returns pos and bits of a tnode.
func (t *Table[V]) shapeOf(n uint32) (pos, width uint32) {
	s := t.nodes[n+1]
	return nodePos(s), nodeBits(s)
}

// indexIn returns which child of n an address belongs to.
func (t *Table[V]) indexIn(n, key uint32) uint32 {
	pos, width := t.shapeOf(n)
	return key >> pos & (1<<width - 1)
}

func (t *Table[V]) keyOf(ref uint32) uint32 {
	if ref&leafBit != 0 {
		return t.hot[ref&^leafBit].key
	}
	return t.nodes[ref]
}

// slenOf returns the largest suffix length at or below ref.
func (t *Table[V]) slenOf(ref uint32) uint32 {
	if ref&leafBit == 0 {
		return nodeSlen(t.nodes[ref+1])
	}
	i := ref &^ leafBit
	for t.hot[i].info&moreBit != 0 {
		i = t.cold.at(i).next
	}
	return uint32(t.hot[i].slen())
}

func (t *Table[V]) setSlen(n, slen uint32) {
	t.nodes[n+1] = t.nodes[n+1]&0xffff | slen<<16
}

// full reports whether ref is a tnode that takes up where a parent with the
// given pos leaves off.
func (t *Table[V]) full(parentPos, ref uint32) bool {
	if ref == 0 || ref&leafBit != 0 {
		return false
	}
	pos, width := t.shapeOf(ref)
	return pos+width == parentPos
}

// put makes ref the i-th child of n and keeps n's counters. It leaves the
// parent of ref alone.
func (t *Table[V]) put(n, i, ref uint32) {
	slot := n + 2 + i
	old, pos := t.nodes[slot], nodePos(t.nodes[n+1])
	if old == 0 && ref != 0 {
		t.nodes[n-3]--
	} else if old != 0 && ref == 0 {
		t.nodes[n-3]++
	}
	if t.full(pos, old) {
		t.nodes[n-2]--
	}
	if t.full(pos, ref) {
		t.nodes[n-2]++
	}
	if ref != 0 {
		if s := t.slenOf(ref); s > nodeSlen(t.nodes[n+1]) {
			t.setSlen(n, s)
		}
	}
	t.nodes[slot] = ref
}

// adopt is put that sets the parent as well.
func (t *Table[V]) adopt(n, i, ref uint32) {
	t.put(n, i, ref)
	t.setParent(ref, n)
}

// putRoot is put by address, where the parent may be the head of the trie.
func (t *Table[V]) putRoot(parent, key, ref uint32) {
	if parent == 0 {
		t.root = ref
		return
	}
	t.put(parent, t.indexIn(parent, key), ref)
}

func (t *Table[V]) setParent(ref, parent uint32) {
	if ref != 0 && ref&leafBit == 0 {
		t.nodes[ref-1] = parent
	}
}

// findLeaf returns the leaf with exactly this key, or 0, and the tnode at
// which it hangs or would hang, 0 for the head.
func (t *Table[V]) findLeaf(key uint32) (leaf, parent uint32) {
	ref := t.root
	for ref != 0 && ref&leafBit == 0 {
		pos, width := t.shapeOf(ref)
		i := (key ^ t.nodes[ref]) >> pos
		if i>>width != 0 {
			return 0, parent // differs in skipped bits
		}
		parent = ref
		ref = t.nodes[ref+2+i]
	}
	if ref != 0 && t.hot[ref&^leafBit].key == key {
		return ref &^ leafBit, parent
	}
	return 0, parent
}

// insertAt adds a route at a position of a leaf's list, or as a new leaf under
// parent where leaf is 0.
func (t *Table[V]) insertAt(leaf, parent uint32, at int, n rec[V]) {
	if t.log != nil {
		t.log.add(opInsert, at, n)
	}
	t.routes++
	i := t.newRec()
	if leaf == 0 {
		t.setRec(i, n, 0)
		t.leaves++
		t.insertLeaf(parent, i, n.key)
		return
	}
	if at == 0 {
		// The head record stays where the trie points to.
		t.hot[i], *t.cold.at(i) = t.hot[leaf], *t.cold.at(leaf)
		t.setRec(leaf, n, i)
	} else {
		before := t.alias(leaf, at-1)
		t.setRec(i, n, t.cold.at(before).next)
		t.link(before, i)
	}
	t.pushSlen(parent, uint32(n.slen()))
}

func (t *Table[V]) insertLeaf(parent, leaf, key uint32) {
	ref := leaf | leafBit
	var other uint32
	if parent == 0 {
		other = t.root
	} else {
		other = t.nodes[parent+2+t.indexIn(parent, key)]
	}
	if other != 0 {
		// Somebody is there with another key: a node of one bit parts them.
		pos := uint32(bits.Len32(key^t.keyOf(other))) - 1
		n := t.newNode(key, pos, 1)
		t.nodes[n-1] = parent
		t.put(n, t.indexIn(n, key)^1, other)
		t.putRoot(parent, key, n)
		t.setParent(other, n)
		parent = n
	}
	t.pushSlen(parent, uint32(t.hot[leaf].slen()))
	t.putRoot(parent, key, ref)
	t.rebalance(parent)
}

// removeAt removes the route at a position of a leaf's list.
func (t *Table[V]) removeAt(leaf, parent uint32, at int) {
	t.routes--
	last := t.slenOf(leaf | leafBit)
	if at > 0 {
		before := t.alias(leaf, at-1)
		i := t.cold.at(before).next
		if t.log != nil {
			t.log.add(opRemove, at, t.rec(i))
		}
		t.link(before, t.cold.at(i).next)
		t.freeRec(i)
	} else {
		if t.log != nil {
			t.log.add(opRemove, at, t.rec(leaf))
		}
		i := t.cold.at(leaf).next
		if i == 0 {
			key := t.hot[leaf].key
			t.freeRec(leaf)
			t.leaves--
			t.putRoot(parent, key, 0)
			if parent != 0 && nodeSlen(t.nodes[parent+1]) == last {
				t.pullSlen(parent, nodePos(t.nodes[parent+1]))
			}
			t.rebalance(parent)
			return
		}
		t.hot[leaf], *t.cold.at(leaf) = t.hot[i], *t.cold.at(i)
		t.freeRec(i)
	}
	if now := t.slenOf(leaf | leafBit); now < last {
		t.pullSlen(parent, now)
	}
}

// replaceAt puts another route in the place of one with the same key fields.
func (t *Table[V]) replaceAt(leaf uint32, at int, n rec[V]) {
	i := t.alias(leaf, at)
	if t.log != nil {
		t.log.add(opReplace, at, t.rec(i))
	}
	t.setRec(i, n, t.cold.at(i).next)
}

// pushSlen tells n and those above of a route with a longer suffix.
func (t *Table[V]) pushSlen(n, slen uint32) {
	for ; n != 0 && nodeSlen(t.nodes[n+1]) < slen; n = t.nodes[n-1] {
		t.setSlen(n, slen)
	}
}

// pullSlen recomputes the largest suffix of n and those above after a route
// has gone, as long as it shrinks and is above slen.
func (t *Table[V]) pullSlen(n, slen uint32) {
	for n != 0 {
		shape := t.nodes[n+1]
		had := nodeSlen(shape)
		if had <= nodePos(shape) || had <= slen {
			return
		}
		if slen = t.updateSlen(n); slen == had {
			return
		}
		n = t.nodes[n-1]
	}
}

// updateSlen computes the largest suffix length of a tnode from its children.
// A route with suffix length s > pos has a key that is a multiple of 2^s, so
// it can only be below a child whose number is a multiple of 2^(s-pos): once s
// is known, only every 2^(s-pos+1)-th child can have a longer one. Only
// child 0 can have s >= pos+bits, so nothing beyond pos+bits-1 is worth
// looking for in the others.
func (t *Table[V]) updateSlen(n uint32) uint32 {
	shape := t.nodes[n+1]
	pos, width := nodePos(shape), nodeBits(shape)
	slen, limit := pos, min(pos+width-1, nodeSlen(shape))
	for i, stride := uint32(0), uint32(2); i < 1<<width; i += stride {
		child := t.nodes[n+2+i]
		if child == 0 {
			continue
		}
		if s := t.slenOf(child); s > slen {
			stride <<= s - slen
			slen = s
			if slen >= limit {
				break
			}
			i &^= stride - 1
		}
	}
	t.setSlen(n, slen)
	return slen
}

// rebalance resizes a node and all above it.
func (t *Table[V]) rebalance(n uint32) {
	for n != 0 {
		n = t.resize(n)
	}
}

func (t *Table[V]) shouldInflate(parent, n uint32) bool {
	pos, width := t.shapeOf(n)
	children := uint64(1) << width
	used := children - uint64(t.nodes[n-3]) + uint64(t.nodes[n-2])
	limit := t.cfg.Inflate
	if parent == 0 {
		limit = t.cfg.InflateRoot
	}
	return used > 1 && pos > 0 && 50*used >= children*uint64(limit)
}

func (t *Table[V]) shouldHalve(parent, n uint32) bool {
	_, width := t.shapeOf(n)
	children := uint64(1) << width
	used := children - uint64(t.nodes[n-3])
	limit := t.cfg.Halve
	if parent == 0 {
		limit = t.cfg.HalveRoot
	}
	return used > 1 && width > 1 && 100*used < children*uint64(limit)
}

// resize brings a node to its proper width and returns its parent.
func (t *Table[V]) resize(n uint32) (parent uint32) {
	parent = t.nodes[n-1]
	key := t.nodes[n]
	child := func() uint32 {
		if parent == 0 {
			return t.root
		}
		return t.nodes[parent+2+t.indexIn(parent, key)]
	}
	work := t.cfg.MaxWork
	for work > 0 && t.shouldInflate(parent, n) {
		if int(nodeBits(t.nodes[n+1])) >= t.cfg.MaxBits {
			t.skipped++
			break
		}
		t.inflate(n)
		work--
		n = child()
	}
	if work < t.cfg.MaxWork {
		return parent
	}
	for work > 0 && t.shouldHalve(parent, n) {
		t.halve(n)
		work--
		n = child()
	}
	if _, width := t.shapeOf(n); uint32(1)<<width-t.nodes[n-3] < 2 {
		t.collapse(n)
	}
	return parent
}

// inflate doubles a node. Full children give up their topmost bit.
func (t *Table[V]) inflate(old uint32) {
	oldPos, oldBits := t.shapeOf(old)
	most := nodeSlen(t.nodes[old+1])
	n := t.newNode(t.nodes[old], oldPos-1, oldBits+1)
	for i := uint32(1) << oldBits; i > 0; {
		i--
		child := t.nodes[old+2+i]
		if child == 0 {
			continue
		}
		if child&leafBit != 0 {
			t.fill(n, t.indexIn(n, t.keyOf(child)), child, most)
			continue
		}
		shape := t.nodes[child+1]
		pos, width := nodePos(shape), nodeBits(shape)
		if pos+width != oldPos {
			t.fill(n, t.indexIn(n, t.keyOf(child)), child, nodeSlen(shape))
			continue
		}
		if width == 1 {
			t.fill(n, 2*i+1, t.nodes[child+3], nodeSlen(shape))
			t.fill(n, 2*i, t.nodes[child+2], nodeSlen(shape))
			t.freeNode(child)
			continue
		}
		half := uint32(1) << (width - 1)
		for side := uint32(2); side > 0; {
			side--
			part := t.newNode(t.nodes[child]|side<<(oldPos-1), pos, width-1)
			for k := half; k > 0; {
				k--
				t.fill(part, k, t.nodes[child+2+side*half+k], nodeSlen(shape))
			}
			t.fill(n, 2*i+side, part, nodeSlen(shape))
		}
		t.freeNode(child)
	}
	t.replace(old, n)
}

// fill makes ref the i-th child of a new node that has none there yet: adopt
// for less work. No route at or below ref has a suffix longer than most. As
// few of them are longer than what the node has already, most
// records of leaves, which are all over memory, need not be looked at.
func (t *Table[V]) fill(n, i, ref, most uint32) {
	if ref == 0 {
		return
	}
	t.nodes[n+2+i] = ref
	t.nodes[n-3]--
	shape := t.nodes[n+1]
	if ref&leafBit == 0 {
		t.nodes[ref-1] = n
		if t.full(nodePos(shape), ref) {
			t.nodes[n-2]++
		}
	}
	if most > nodeSlen(shape) {
		if s := t.slenOf(ref); s > nodeSlen(shape) {
			t.setSlen(n, s)
		}
	}
}

// halve gives a node half of its children; where both of a pair are in use
// they go below a new node of one bit.
func (t *Table[V]) halve(old uint32) {
	oldPos, oldBits := t.shapeOf(old)
	n := t.newNode(t.nodes[old], oldPos+1, oldBits-1)
	for i := uint32(1) << oldBits; i > 0; {
		i -= 2
		zero, one := t.nodes[old+2+i], t.nodes[old+3+i]
		switch {
		case zero == 0 && one == 0:
		case zero == 0:
			t.adopt(n, i/2, one)
		case one == 0:
			t.adopt(n, i/2, zero)
		default:
			pair := t.newNode(t.keyOf(zero), oldPos, 1)
			t.adopt(pair, 1, one)
			t.adopt(pair, 0, zero)
			t.adopt(n, i/2, pair)
		}
	}
	t.replace(old, n)
}

// replace hangs n into the place of old, which it frees, and then resizes those
// of n's children that are full.
func (t *Table[V]) replace(old, n uint32) {
	parent := t.nodes[old-1]
	t.nodes[n-1] = parent
	t.putRoot(parent, t.nodes[n], n)
	t.freeNode(old)
	if t.nodes[n-2] == 0 {
		return
	}
	pos, width := t.shapeOf(n)
	for i := uint32(1) << width; i > 0; {
		i--
		if child := t.nodes[n+2+i]; t.full(pos, child) {
			t.resize(child)
		}
	}
}

// collapse puts the only child of a node in its place.
func (t *Table[V]) collapse(n uint32) {
	parent, key := t.nodes[n-1], t.nodes[n]
	var child uint32
	for i := uint32(1) << nodeBits(t.nodes[n+1]); i > 0 && child == 0; {
		i--
		child = t.nodes[n+2+i]
	}
	t.putRoot(parent, key, child)
	t.setParent(child, parent)
	t.freeNode(n)
}
