package radix6

import (
	"math/bits"
	"net/netip"
	"sync"
	"sync/atomic"
)

// A Live is a table that changes while others read it. Readers take no locks,
// make no garbage and are never held up; each update becomes visible to them
// at one instant and whole, however many routes it changes. Updates exclude
// each other. Make one with [NewLive] or [LiveOf]. It has no source-specific
// routes.
//
// It costs a [Tree], which the writers work on, and about as much again for
// what the readers see. An update of one route rebuilds a list of at most 64
// neighbours and the few nodes above it, and leaves some kilobytes of
// garbage. Old values live until the last reader that may see them is done:
// that is the garbage collector's work.
type Live[V any] struct {
	now atomic.Pointer[View[V]]

	mu  sync.Mutex
	t   *Tree[V]
	log journal[V]
	// Space for rebuilding.
	routes, coded []codedRoute
	runs          []run
	slots         [256]liveItem[V]
}

// A View is what a [Live] had at one moment. It never changes; lookups in it
// are as fast as in the Live. Keeping it keeps the values of that moment.
//
// It is a tree with a branching of 256 whose nodes are shared with earlier and
// later views. A route lies at the node in whose byte its prefix ends; a lookup
// goes down by the bytes of the address and keeps the last answer that it
// meets. Where there are few routes below, they are a list instead.
type View[V any] struct {
	root    *liveNode[V]
	version uint64
	routes  int
}

// A liveNode is an inner node, or a list if items is nil.
type liveNode[V any] struct {
	// Inner: runs of bytes with the same answer; where each begins is marked.
	// rank[i] is the number of runs before marks[i].
	marks [4]uint64
	rank  [4]uint8
	items []liveItem[V]
	// List: the runs of what is below, by the words of the address at which
	// each begins. lo is nil if it is always 0.
	hi, lo  []uint64
	answers []answer[V]
	// below counts the routes of a list, and those in lists below.
	below int
}

// A liveItem is one run of an inner node. Where there is more below, it is for
// one byte.
type liveItem[V any] struct {
	answer[V]
	kid *liveNode[V]
}

// An answer is a value and the length of its route's prefix, or noAnswer:
// what was found above counts.
type answer[V any] struct {
	v    V
	bits uint8
}

const (
	noAnswer = 255
	// A list of more routes than liveMax is split; a node with no more than
	// liveMin below becomes a list again.
	liveMax = 64
	liveMin = 32
)

// NewLive returns an empty live table.
func NewLive[V any]() *Live[V] {
	l, _ := LiveOf(New[V](SourceOff))
	return l
}

// LiveOf makes a live table of t, which it takes over: t must not be used any
// more. It fails with [ErrSources] for a tree that may hold source-specific
// routes.
func LiveOf[V any](t *Tree[V]) (*Live[V], error) {
	if t.mode != SourceOff {
		return nil, ErrSources
	}
	l := &Live[V]{t: t}
	l.now.Store(&View[V]{root: l.all(), routes: t.routeCount})
	return l, nil
}

// View returns what the table has now, for several lookups at one moment. It does
// not allocate, and there is nothing to give back.
func (l *Live[V]) View() *View[V] { return l.now.Load() }

// Lookup is [View.Lookup] of the present.
func (l *Live[V]) Lookup(dst netip.Addr) (V, bool) { return l.now.Load().Lookup(dst) }

// LookupKey is [View.LookupKey] of the present.
func (l *Live[V]) LookupKey(hi, lo uint64) (V, bool) { return l.now.Load().LookupKey(hi, lo) }

// LookupPrefix is [View.LookupPrefix] of the present.
func (l *Live[V]) LookupPrefix(dst netip.Addr) (V, netip.Prefix, bool) {
	return l.now.Load().LookupPrefix(dst)
}

// LookupBatch is [View.LookupBatch] of the present: all answers are of one
// moment.
func (l *Live[V]) LookupBatch(dst []netip.Addr, vs []V, oks []bool) int {
	return l.now.Load().LookupBatch(dst, vs, oks)
}

// Len returns the number of routes.
func (l *Live[V]) Len() int { return l.now.Load().routes }

// Insert is [Tree.Insert].
func (l *Live[V]) Insert(p netip.Prefix, v V) error { return l.Add(Route{Prefix: p}, v, ModeReplace) }

// Add is [Tree.Add].
func (l *Live[V]) Add(r Route, v V, mode Mode) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.log = &l.log
	err := l.t.Add(r, v, mode)
	l.commit()
	return err
}

// Remove is [Tree.Remove].
func (l *Live[V]) Remove(p netip.Prefix) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.log = &l.log
	v, ok := l.t.Remove(p)
	l.commit()
	return v, ok
}

// Delete is [Tree.Delete].
func (l *Live[V]) Delete(r Route) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.log = &l.log
	v, ok := l.t.Delete(r)
	l.commit()
	return v, ok
}

// Update lets change change the tree, by any number of calls of its methods,
// and then publishes all of it at once. If change returns an error, or panics,
// everything is put back and nothing is published. Change must not keep the
// tree. It may look up in the Live, which still has what was there before, but
// Add, Insert, Delete, Remove, Update, Read and Compile of the Live would wait
// for ever.
func (l *Live[V]) Update(change func(*Tree[V]) error) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.t.log = &l.log
	done := false
	defer func() {
		if !done || err != nil {
			l.t.undo(&l.log)
			l.forget()
		}
	}()
	if err = change(l.t); err == nil {
		l.commit()
	}
	done = true
	return err
}

// Read lets read read the tree that the writers work on, which waits for
// updates and holds them up: for what a [View] cannot do. Read must not change
// the tree nor keep it, and what was said of [Live.Update] about waiting holds
// here too.
func (l *Live[V]) Read(read func(*Tree[V])) {
	l.mu.Lock()
	defer l.mu.Unlock()
	read(l.t)
}

// Compile returns a snapshot of the present. Readers go on meanwhile, updates
// wait.
func (l *Live[V]) Compile(o CompileOptions) *Snapshot[V] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.t.CompileWith(o)
}

// forget ends a transaction.
func (l *Live[V]) forget() {
	l.t.log = nil
	clear(l.log.ops)
	if l.log.ops = l.log.ops[:0]; cap(l.log.ops) > 1<<12 {
		l.log.ops = nil
	}
}

// commit publishes the transaction's changes.
func (l *Live[V]) commit() {
	l.t.log = nil
	if len(l.log.ops) == 0 {
		return
	}
	old := l.now.Load()
	next := &View[V]{root: old.root, version: old.version + 1, routes: l.t.routeCount}
	if len(l.log.ops) > 1000 && len(l.log.ops) > l.t.routeCount/8 {
		next.root = l.all()
	} else {
		for i := range l.log.ops {
			p := &l.log.ops[i].p
			next.root = l.refresh(next.root, 0, p.dst, p.dstBits)
		}
		if next.root == nil {
			next.root = l.list(nil)
		}
	}
	l.now.Store(next)
	l.forget()
}

// all makes the nodes of the whole tree.
func (l *Live[V]) all() *liveNode[V] {
	if l.collect(key{}, 0, l.t.routeCount) && len(l.routes) > 0 {
		return l.build(l.routes, 0)
	}
	return l.list(nil)
}

// own reports whether a route of that many bits belongs to a node at depth d
// itself, not to one above or below.
func own(bits, d int) bool { return bits <= 8*d+8 && (bits > 8*d || d == 0) }

// collect gathers the routes that belong below depth d of an address, in
// order, the first of each prefix. It is false if there are more than limit.
// The code of a route is its number in the tree.
func (l *Live[V]) collect(k key, d, limit int) bool {
	l.routes = l.routes[:0]
	if len(l.t.nodes) == 0 {
		return true
	}
	i := uint32(rootNode)
	for l.t.nodes[i].bits() < 8*d {
		if i = l.t.nodes[i].child[k.bit(l.t.nodes[i].info&0xff)]; i == 0 {
			return true
		}
	}
	if common(k, l.t.keys[i]) < 8*d {
		return true
	}
	return l.gather(i, d, limit)
}

func (l *Live[V]) gather(i uint32, d, limit int) bool {
	n := l.t.nodes[i]
	if n.info&candidate != 0 && (n.bits() > 8*d || d == 0) {
		if len(l.routes) >= limit {
			return false
		}
		l.routes = append(l.routes, codedRoute{l.t.keys[i], n.leaf, uint8(n.bits())})
	}
	for _, c := range n.child {
		if c != 0 && !l.gather(c, d, limit) {
			return false
		}
	}
	return true
}

// answerOf returns the answer that a route of the tree gives.
func (l *Live[V]) answerOf(r codedRoute) answer[V] { return answer[V]{l.t.vals[r.code], r.bits} }

// build makes the node at depth d of sorted routes that belong there or below.
func (l *Live[V]) build(rs []codedRoute, d int) *liveNode[V] {
	if len(rs) == 0 {
		return nil
	}
	if len(rs) <= liveMax {
		return l.list(rs)
	}
	n := &liveNode[V]{}
	var kids [256]*liveNode[V]
	for i := 0; i < len(rs); {
		if own(int(rs[i].bits), d) {
			i++
			continue
		}
		b := rs[i].key.byte(d)
		j := i + 1
		for j < len(rs) && rs[j].key.byte(d) == b {
			j++ // all of the same byte are longer: it is sorted
		}
		kids[b] = l.build(rs[i:j], d+1)
		n.below += kids[b].below
		i = j
	}
	for i := range l.slots {
		l.slots[i] = liveItem[V]{answer[V]{bits: noAnswer}, kids[i]}
	}
	for _, r := range rs {
		if own(int(r.bits), d) {
			first := int(r.key.byte(d))
			for b := first; b < first+1<<(8*d+8-int(r.bits)); b++ {
				l.slots[b].answer = l.answerOf(r)
			}
		}
	}
	l.pack(n, d)
	return n
}

// byte returns number d, 0 to 15, of an address.
func (k key) byte(d int) uint8 {
	if d < 8 {
		return uint8(k.hi >> (56 - 8*d))
	}
	return uint8(k.lo >> (120 - 8*d))
}

// pack stores the slots in a node.
func (l *Live[V]) pack(n *liveNode[V], d int) {
	count := 0
	for b := range l.slots {
		if b&63 == 0 {
			n.rank[b>>6] = uint8(count)
		}
		if b > 0 && l.sameSlot(b, d) {
			continue
		}
		n.marks[b>>6] |= 1 << (b & 63)
		count++
	}
	n.items = make([]liveItem[V], 0, count)
	for b := range l.slots {
		if n.marks[b>>6]>>(b&63)&1 != 0 {
			n.items = append(n.items, l.slots[b])
		}
	}
	clear(l.slots[:])
}

// sameSlot reports whether a slot is covered by the same route as the one
// before, and neither has more below.
func (l *Live[V]) sameSlot(b, d int) bool {
	x, y := &l.slots[b-1], &l.slots[b]
	if x.kid != nil || y.kid != nil || x.bits != y.bits {
		return false
	}
	return x.bits == noAnswer || (b-1)>>(8*d+8-int(x.bits)) == b>>(8*d+8-int(x.bits))
}

// list makes a list of sorted routes.
func (l *Live[V]) list(rs []codedRoute) *liveNode[V] {
	n := &liveNode[V]{below: len(rs)}
	l.coded = l.coded[:0]
	for i, r := range rs {
		l.coded = append(l.coded, codedRoute{r.key, uint32(i + 1), r.bits})
	}
	l.runs = sweep(l.coded, l.runs)
	runs := l.runs
	n.hi = make([]uint64, len(runs))
	n.answers = make([]answer[V], len(runs))
	for i, r := range runs {
		n.hi[i] = r.start.hi
		if r.start.lo != 0 && n.lo == nil {
			n.lo = make([]uint64, len(runs))
		}
		if n.answers[i].bits = noAnswer; r.code != 0 {
			n.answers[i] = l.answerOf(rs[r.code-1])
		}
	}
	if n.lo != nil {
		for i, r := range runs {
			n.lo[i] = r.start.lo
		}
	}
	return n
}

// refresh returns a node at depth d in which what the tree now says of a
// prefix has taken the place of what it said before.
func (l *Live[V]) refresh(n *liveNode[V], d int, k key, bits int) *liveNode[V] {
	if n == nil || n.items == nil {
		l.collect(k, d, l.t.routeCount)
		return l.build(l.routes, d)
	}
	m := *n
	if own(bits, d) {
		if n.below <= liveMin && l.collect(k, d, liveMin) {
			return l.build(l.routes, d)
		}
		l.unpack(n)
		first := int(k.byte(d))
		for b := first; b < first+1<<(8*d+8-bits); b++ {
			l.slots[b].answer = l.cover(k, d, uint8(b))
		}
		m.marks, m.rank = [4]uint64{}, [4]uint8{}
		l.pack(&m, d)
		return &m
	}
	b := k.byte(d)
	at := n.at(b)
	old := n.items[at].kid
	kid := l.refresh(old, d+1, k, bits)
	if old != nil {
		m.below -= old.below
	}
	if kid != nil {
		m.below += kid.below
	}
	if m.below <= liveMin && l.collect(k, d, liveMin) {
		return l.build(l.routes, d)
	}
	if kid != nil && old != nil { // the item is this byte's alone
		m.items = append([]liveItem[V](nil), n.items...)
		m.items[at].kid = kid
		return &m
	}
	l.unpack(n)
	l.slots[b].kid = kid
	m.marks, m.rank = [4]uint64{}, [4]uint8{}
	l.pack(&m, d)
	return &m
}

// cover returns the answer of the longest route that belongs to depth d and
// covers a byte there.
func (l *Live[V]) cover(k key, d int, b uint8) answer[V] {
	k = k.mask(8 * d)
	if d < 8 {
		k.hi |= uint64(b) << (56 - 8*d)
	} else {
		k.lo |= uint64(b) << (120 - 8*d)
	}
	t := l.t
	i := deepestWithin(t.nodes, rootNode, k, min(uint32(8*d+8), t.agreement(rootNode, k)))
	if i == 0 || !own(t.nodes[i].bits(), d) {
		return answer[V]{bits: noAnswer}
	}
	return answer[V]{t.vals[t.nodes[i].leaf], uint8(t.nodes[i].bits())}
}

// unpack puts the items of a node into the slots.
func (l *Live[V]) unpack(n *liveNode[V]) {
	for b := range l.slots {
		l.slots[b] = n.items[n.at(uint8(b))]
	}
}

// at returns the number of the item of a byte.
func (n *liveNode[V]) at(b uint8) int {
	w := b >> 6
	return int(n.rank[w]) + bits.OnesCount64(n.marks[w]<<(^b&63)) - 1
}

// find returns the answer for an address, nil for none.
func (v *View[V]) find(hi, lo uint64) *answer[V] {
	var best *answer[V]
	n := v.root
	for w, d := hi, 0; n.items != nil; w, d = w<<8, d+1 {
		if d == 8 {
			w = lo
		}
		it := &n.items[n.at(uint8(w>>56))]
		if it.bits != noAnswer {
			best = &it.answer
		}
		if n = it.kid; n == nil {
			return best
		}
	}
	// The last run that does not start behind the address; the first starts
	// at ::.
	at, size := 0, len(n.hi)
	if n.lo == nil {
		for size > 1 {
			half := size / 2
			if n.hi[at+half] <= hi {
				at += half
			}
			size -= half
		}
	} else {
		k := key{hi, lo}
		for size > 1 {
			half := size / 2
			if !k.less(key{n.hi[at+half], n.lo[at+half]}) {
				at += half
			}
			size -= half
		}
	}
	if a := &n.answers[at]; a.bits != noAnswer {
		return a
	}
	return best
}

// Lookup returns the value of the longest match. It does not allocate. A zone
// is ignored; IPv4 addresses find nothing.
func (v *View[V]) Lookup(dst netip.Addr) (x V, ok bool) {
	hi, lo, ok := addrKey(dst)
	if !ok {
		return x, false
	}
	return v.LookupKey(hi, lo)
}

// LookupKey is Lookup for an address as two words (see [KeyOf]).
func (v *View[V]) LookupKey(hi, lo uint64) (x V, ok bool) {
	a := v.find(hi, lo)
	if a == nil {
		return x, false
	}
	return a.v, true
}

// LookupPrefix returns the prefix of the longest match as well.
func (v *View[V]) LookupPrefix(dst netip.Addr) (x V, p netip.Prefix, ok bool) {
	hi, lo, ok := addrKey(dst)
	if !ok {
		return x, p, false
	}
	a := v.find(hi, lo)
	if a == nil {
		return x, p, false
	}
	return a.v, key{hi, lo}.mask(int(a.bits)).prefix(int(a.bits)), true
}

// LookupBatch looks up addresses and stores the values of their longest matches
// and whether there are any; where there is none the value is the zero one. It
// works on as many as the shortest slice holds and returns how many found a
// route. It does not allocate.
func (v *View[V]) LookupBatch(dst []netip.Addr, vs []V, oks []bool) (found int) {
	for i := range min(len(dst), len(vs), len(oks)) {
		vs[i], oks[i] = v.Lookup(dst[i])
		if oks[i] {
			found++
		}
	}
	return found
}

// Len returns the number of routes.
func (v *View[V]) Len() int { return v.routes }

// Version counts the updates that had been published: a later view has a
// larger one.
func (v *View[V]) Version() uint64 { return v.version }
