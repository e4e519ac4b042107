package radix6

import (
	"math"
	"net/netip"
)

// Tree is Linux's IPv6 routing table: a binary radix tree with path
// compression, in which a node stands for every prefix that has routes and
// for every point where two prefixes part. Each node may hold several routes,
// ordered by metric, and a second tree of the same shape over the sources of
// its source-specific routes.
//
// The zero Tree is empty, ready to use and refuses source-specific routes;
// [New] makes one that takes them. A Tree must not be copied after first use.
// Any number of goroutines may read a tree while nobody changes it; [Live] is
// for the other case.
type Tree[V any] struct {
	// The slab. Nodes refer to each other by index, so a million routes are
	// a handful of objects without pointers to the garbage collector. What
	// a descent reads of a node (16 bytes) lies apart from the prefix
	// (16 bytes), which is read once, at the bottom.
	nodes []node
	keys  []key
	// The routes of a node are a list, lowest metric first, of indices into
	// these two. Index 0 is no route.
	routes []routeRec
	vals   []V
	subs   []sub

	freeNode, freeRoute, freeSub uint32
	mode                         SourceMode

	nodeCount, routeCount, routeNodes, subtrees int

	caches []*Cache[V] // told when a route goes or moves
	log    *journal[V] // of a transaction, or nil
}

// node is what a descent reads. An index of 0 means none.
type node struct {
	child [2]uint32
	// leaf is the first route, or the index in subs if the node hasSub.
	leaf uint32
	// info holds the length of the prefix, 0 to 128, in its low byte; the
	// bit of that number decides between the children. Flags are above.
	info uint32
}

const (
	// candidate nodes can end a lookup: they have routes or a sub.
	candidateShift = 8
	candidate      = 1 << candidateShift
	// hasSub nodes have source-specific routes; leaf refers to subs.
	hasSub = 1 << 9
	// sourceRoot is the root of the tree of sources of another node.
	sourceRoot = 1 << 10

	rootNode = 1
	maxSlab  = math.MaxInt32 // entries of a slab
)

func (n *node) bits() int { return int(n.info & 0xff) }

// routeRec is one route; its value has the same index in vals.
type routeRec struct {
	metric uint32
	next   uint32
}

// sub belongs to a node with source-specific routes.
type sub struct {
	routes uint32 // first generic route
	root   uint32 // root of the tree over the sources
}

// New returns an empty tree. The mode cannot be changed later.
func New[V any](mode SourceMode) *Tree[V] { return &Tree[V]{mode: mode} }

// Mode returns what the tree does about source-specific routes.
func (t *Tree[V]) Mode() SourceMode { return t.mode }

// Len returns the number of routes.
func (t *Tree[V]) Len() int { return t.routeCount }

// Clear removes all routes and gives the memory back.
func (t *Tree[V]) Clear() {
	if t.log != nil { // so that it can be undone
		all := make([]Route, 0, t.routeCount)
		for r := range t.All() {
			all = append(all, r)
		}
		for _, r := range all {
			t.Delete(r)
		}
		return
	}
	for _, c := range t.caches {
		c.clear()
	}
	*t = Tree[V]{mode: t.mode, caches: t.caches}
}

func (t *Tree[V]) init() {
	if len(t.nodes) == 0 {
		t.nodes = make([]node, 2, 16)
		t.keys = make([]key, 2, 16)
		t.routes = make([]routeRec, 1, 8)
		t.vals = make([]V, 1, 8)
		t.subs = make([]sub, 1)
	}
}

func (t *Tree[V]) newNode(k key, n int, flags uint32) uint32 {
	t.nodeCount++
	v := node{info: uint32(n) | flags}
	if i := t.freeNode; i != 0 {
		t.freeNode = t.nodes[i].child[0]
		t.nodes[i], t.keys[i] = v, k
		return i
	}
	t.nodes, t.keys = append(t.nodes, v), append(t.keys, k)
	return uint32(len(t.nodes) - 1)
}

func (t *Tree[V]) dropNode(i uint32) {
	t.nodeCount--
	t.nodes[i] = node{child: [2]uint32{t.freeNode}}
	t.freeNode = i
}

func (t *Tree[V]) newRoute(metric, next uint32, v V) uint32 {
	t.routeCount++
	r := routeRec{metric, next}
	if i := t.freeRoute; i != 0 {
		t.freeRoute = t.routes[i].next
		t.routes[i], t.vals[i] = r, v
		return i
	}
	t.routes, t.vals = append(t.routes, r), append(t.vals, v)
	return uint32(len(t.routes) - 1)
}

func (t *Tree[V]) dropRoute(i uint32) {
	t.routeCount--
	for _, c := range t.caches {
		c.drop(i)
	}
	var zero V
	t.vals[i] = zero // lets the collector have what it refers to
	t.routes[i] = routeRec{next: t.freeRoute}
	t.freeRoute = i
}

func (t *Tree[V]) newSub(s sub) uint32 {
	t.subtrees++
	if i := t.freeSub; i != 0 {
		t.freeSub = t.subs[i].root
		t.subs[i] = s
		return i
	}
	t.subs = append(t.subs, s)
	return uint32(len(t.subs) - 1)
}

// head returns where the index of the node's first generic route is kept.
func (t *Tree[V]) head(i uint32) *uint32 {
	n := &t.nodes[i]
	if n.info&hasSub != 0 {
		return &t.subs[n.leaf].routes
	}
	return &n.leaf
}

// place finds the node of a prefix below root or makes it.
//
// The descent looks only at bits; the one prefix at the bottom then tells how
// far the whole path agrees with the new prefix, because every node above has
// a prefix of that prefix. A second descent, through lines that are now in
// the cache, stops at that depth.
func (t *Tree[V]) place(root uint32, k key, n int) uint32 {
	i := root
	for t.nodes[i].bits() < n {
		c := t.nodes[i].child[k.bit(t.nodes[i].info&0xff)]
		if c == 0 {
			break
		}
		i = c
	}
	agree := min(common(k, t.keys[i]), n, t.nodes[i].bits())

	parent, next, dir := root, uint32(0), uint32(0)
	for t.nodes[parent].bits() < n {
		dir = k.bit(t.nodes[parent].info & 0xff)
		next = t.nodes[parent].child[dir]
		if next == 0 || t.nodes[next].bits() > agree {
			break
		}
		parent = next
	}
	if t.nodes[parent].bits() == n {
		return parent
	}
	if next == 0 {
		leaf := t.newNode(k, n, 0)
		t.nodes[parent].child[dir] = leaf
		return leaf
	}
	if agree == n { // the new node belongs between the two
		mid := t.newNode(k, n, 0)
		t.nodes[mid].child[t.keys[next].bit(uint32(n))] = next
		t.nodes[parent].child[dir] = mid
		return mid
	}
	fork := t.newNode(k.mask(agree), agree, 0)
	leaf := t.newNode(k, n, 0)
	side := k.bit(uint32(agree))
	t.nodes[fork].child[side] = leaf
	t.nodes[fork].child[1-side] = next
	t.nodes[parent].child[dir] = fork
	return leaf
}

// exact returns the node of a prefix below root and its two ancestors, or 0.
func (t *Tree[V]) exact(root uint32, k key, n int) (i, parent, grand uint32) {
	i = root
	for t.nodes[i].bits() < n {
		c := t.nodes[i].child[k.bit(t.nodes[i].info&0xff)]
		if c == 0 {
			return 0, 0, 0
		}
		i, parent, grand = c, i, parent
	}
	if t.nodes[i].bits() != n || t.keys[i] != k {
		return 0, 0, 0
	}
	return i, parent, grand
}

// Add stores a route with a value. What happens when one with the same
// prefix, source and metric exists is up to the mode. The error is a
// [*RouteError] that wraps [ErrPrefix], [ErrFamily], [ErrNoSources], [ErrExist],
// [ErrNotExist] or [ErrFull]; nothing has then changed.
func (t *Tree[V]) Add(r Route, v V, mode Mode) error {
	p, err := t.mode.parse(r)
	if err == nil {
		err = t.add(p, v, mode)
	}
	if err != nil {
		return &RouteError{"add", r, err}
	}
	return nil
}

func (t *Tree[V]) add(p parsed, v V, mode Mode) error {
	t.init()
	if len(t.nodes) > maxSlab-4 || len(t.routes) > maxSlab-1 {
		return ErrFull
	}
	if mode&(Excl|Replace) != 0 || mode&Create == 0 {
		i := t.getRoute(p)
		switch {
		case i == 0 && mode&Create == 0:
			return ErrNotExist
		case i != 0 && mode&Excl != 0:
			return ErrExist
		case i != 0 && mode&Replace != 0:
			for _, c := range t.caches {
				c.drop(i) // it is another route now
			}
			t.log.add(opReplace, p, t.vals[i])
			t.vals[i] = v
			return nil
		}
	}
	t.insert(p, v, false)
	t.log.add(opInsert, p, v)
	return nil
}

// insert adds a route, behind or in front of those of the same metric.
func (t *Tree[V]) insert(p parsed, v V, front bool) {
	i := t.place(rootNode, p.dst, p.dstBits)
	if p.srcBits > 0 {
		n := t.nodes[i]
		if n.info&hasSub == 0 {
			s := sub{routes: n.leaf, root: t.newNode(key{}, 0, sourceRoot)}
			t.nodes[i].leaf = t.newSub(s)
			t.nodes[i].info |= hasSub | candidate
		}
		i = t.place(t.subs[t.nodes[i].leaf].root, p.src, p.srcBits)
	}
	prev, next := uint32(0), *t.head(i)
	if next == 0 && i != rootNode {
		t.routeNodes++
	}
	t.nodes[i].info |= candidate
	for next != 0 && (t.routes[next].metric < p.metric || t.routes[next].metric == p.metric && !front) {
		prev, next = next, t.routes[next].next
	}
	made := t.newRoute(p.metric, next, v)
	if prev == 0 {
		*t.head(i) = made
	} else {
		t.routes[prev].next = made
	}
}

// getRoute returns the index of the first route with the metric, or 0.
func (t *Tree[V]) getRoute(p parsed) uint32 {
	i := t.getNode(p)
	if i == 0 {
		return 0
	}
	for r := *t.head(i); r != 0; r = t.routes[r].next {
		if t.routes[r].metric == p.metric {
			return r
		}
	}
	return 0
}

// getNode returns the node whose routes have this prefix and source, or 0.
func (t *Tree[V]) getNode(p parsed) uint32 {
	if len(t.nodes) == 0 {
		return 0
	}
	i, _, _ := t.exact(rootNode, p.dst, p.dstBits)
	if i != 0 && p.srcBits > 0 {
		if t.nodes[i].info&hasSub == 0 {
			return 0
		}
		i, _, _ = t.exact(t.subs[t.nodes[i].leaf].root, p.src, p.srcBits)
	}
	return i
}

// Insert stores a generic route of metric 0 for a prefix, or gives the one
// that is there a new value: Add with [ModeReplace].
func (t *Tree[V]) Insert(p netip.Prefix, v V) error {
	return t.Add(Route{Prefix: p}, v, ModeReplace)
}

// Remove removes the generic route of lowest metric of a prefix and returns
// its value. It is false when there is none.
func (t *Tree[V]) Remove(p netip.Prefix) (v V, ok bool) {
	r, _, ok := t.First(p, netip.Prefix{})
	if !ok {
		return v, false
	}
	return t.Delete(r)
}

// Get returns the value of the generic route of lowest metric with exactly
// this prefix. A prefix that cannot be there (host bits, IPv4) is not found.
func (t *Tree[V]) Get(p netip.Prefix) (v V, ok bool) {
	_, v, ok = t.First(p, netip.Prefix{})
	return v, ok
}

// GetRoute returns the value of the first route with exactly this prefix,
// source and metric.
func (t *Tree[V]) GetRoute(r Route) (v V, ok bool) {
	p, err := t.mode.parse(r)
	if err != nil {
		return v, false
	}
	i := t.getRoute(p)
	if i == 0 {
		return v, false
	}
	return t.vals[i], true
}

// First returns the route of lowest metric that has exactly this prefix and
// source, and its value.
func (t *Tree[V]) First(prefix, from netip.Prefix) (r Route, v V, ok bool) {
	p, err := t.mode.parse(Route{Prefix: prefix, From: from})
	if err != nil {
		return r, v, false
	}
	i := t.getNode(p)
	if i == 0 || *t.head(i) == 0 {
		return r, v, false
	}
	first := *t.head(i)
	r = Route{Prefix: prefix, Metric: t.routes[first].metric}
	if p.srcBits > 0 {
		r.From = from
	}
	return r, t.vals[first], true
}

// Delete removes the first route with exactly this prefix, source and metric
// and returns its value. It is false when there is none.
func (t *Tree[V]) Delete(r Route) (v V, ok bool) {
	p, err := t.mode.parse(r)
	if err != nil || len(t.nodes) == 0 {
		return v, false
	}
	v, ok = t.remove(p, false)
	if ok {
		t.log.add(opRemove, p, v)
	}
	return v, ok
}

// remove removes the first or the last route of the metric.
func (t *Tree[V]) remove(p parsed, last bool) (v V, ok bool) {
	i, parent, grand := t.exact(rootNode, p.dst, p.dstBits)
	if i == 0 {
		return v, false
	}
	owner := i
	si, sparent, sgrand := uint32(0), uint32(0), uint32(0)
	if p.srcBits > 0 {
		if t.nodes[i].info&hasSub == 0 {
			return v, false
		}
		si, sparent, sgrand = t.exact(t.subs[t.nodes[i].leaf].root, p.src, p.srcBits)
		if si == 0 {
			return v, false
		}
		owner = si
	}
	at := t.head(owner)
	for *at != 0 && t.routes[*at].metric != p.metric {
		at = &t.routes[*at].next
	}
	for last && *at != 0 {
		next := t.routes[*at].next
		if next == 0 || t.routes[next].metric != p.metric {
			break
		}
		at = &t.routes[*at].next
	}
	gone := *at
	if gone == 0 {
		return v, false
	}
	v = t.vals[gone]
	*at = t.routes[gone].next
	t.dropRoute(gone)
	if *t.head(owner) != 0 {
		return v, true
	}
	if owner != rootNode {
		t.routeNodes--
	}
	if p.srcBits > 0 {
		t.nodes[si].info &^= candidate
		t.repair(si, sparent, sgrand)
		if s := &t.subs[t.nodes[i].leaf]; t.nodes[s.root].child == [2]uint32{} {
			t.dropNode(s.root)
			at, routes := t.nodes[i].leaf, s.routes
			*s = sub{root: t.freeSub}
			t.freeSub = at
			t.subtrees--
			t.nodes[i].leaf = routes
			t.nodes[i].info &^= hasSub
			if routes == 0 {
				t.nodes[i].info &^= candidate
			}
		}
	} else if t.nodes[i].info&hasSub == 0 {
		t.nodes[i].info &^= candidate
	}
	t.repair(i, parent, grand)
	t.shrink()
	return v, true
}

// repair removes a node that no longer serves as route or fork, and then its
// parent if that was a fork.
func (t *Tree[V]) repair(i, parent, grand uint32) {
	for range 2 {
		n := t.nodes[i]
		if parent == 0 || n.info&candidate != 0 || n.child[0] != 0 && n.child[1] != 0 {
			return // parent 0: a root stays
		}
		only := n.child[0] | n.child[1]
		c := &t.nodes[parent].child
		if c[0] == i {
			c[0] = only
		} else {
			c[1] = only
		}
		t.dropNode(i)
		i, parent = parent, grand
	}
}

// shrink gives memory back after many deletions. A tree is rebuilt when three
// quarters of its slab are free, so the cost per deletion is constant.
func (t *Tree[V]) shrink() {
	if n := len(t.nodes); n > 1024 && t.nodeCount < n/4 {
		t.Pack()
	}
}

// Pack rebuilds the tree's memory: nodes in the order of a walk, which
// lookups like better than the order of insertion, and no room for growth.
// It takes about 50 ns a node. Nothing else changes.
func (t *Tree[V]) Pack() {
	if len(t.nodes) == 0 {
		return
	}
	o := Tree[V]{
		mode:   t.mode,
		nodes:  make([]node, 1, t.nodeCount+2),
		keys:   make([]key, 1, t.nodeCount+2),
		routes: make([]routeRec, 1, t.routeCount+1),
		vals:   make([]V, 1, t.routeCount+1),
		subs:   make([]sub, 1, t.subtrees+1),
	}
	var moved map[uint32]uint32
	if len(t.caches) > 0 {
		moved = make(map[uint32]uint32)
	}
	list := func(r uint32) (first uint32) {
		at := &first
		for ; r != 0; r = t.routes[r].next {
			*at = uint32(len(o.routes))
			if moved != nil {
				moved[r] = *at
			}
			o.routes = append(o.routes, routeRec{metric: t.routes[r].metric})
			o.vals = append(o.vals, t.vals[r])
			at = &o.routes[*at].next // within capacity: does not move
		}
		return first
	}
	var copyNode func(i uint32) uint32
	copyNode = func(i uint32) uint32 {
		n := t.nodes[i]
		at := uint32(len(o.nodes))
		o.nodes, o.keys = append(o.nodes, n), append(o.keys, t.keys[i])
		if n.info&hasSub != 0 {
			s := t.subs[n.leaf]
			leaf := uint32(len(o.subs))
			o.nodes[at].leaf = leaf
			o.subs = append(o.subs, sub{routes: list(s.routes)})
			o.subs[leaf].root = copyNode(s.root)
		} else {
			o.nodes[at].leaf = list(n.leaf)
		}
		for d, c := range n.child {
			if c != 0 {
				o.nodes[at].child[d] = copyNode(c)
			}
		}
		return at
	}
	copyNode(rootNode)
	t.nodes, t.keys, t.routes, t.vals, t.subs = o.nodes, o.keys, o.routes, o.vals, o.subs
	t.freeNode, t.freeRoute, t.freeSub = 0, 0, 0
	for _, c := range t.caches {
		c.move(moved)
	}
}
