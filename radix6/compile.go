package radix6

import (
	"net/netip"
	"reflect"
	"slices"
)

// Compile returns a compact snapshot of the tree as it is.
func (t *Tree[V]) Compile() *Snapshot[V] { return t.CompileWith(CompileOptions{}) }

// CompileWith returns a snapshot of the tree as it is, with options. It panics
// for trees of more than about 25 million routes, which the form cannot hold, as
// do the other ways to compile one.
func (t *Tree[V]) CompileWith(o CompileOptions) *Snapshot[V] {
	w := compiler[V]{tree: t}
	if len(t.nodes) > 0 {
		w.routes = make([]codedRoute, 0, t.routeNodes+1)
		w.walk(rootNode, 0)
	}
	return w.build(func(i uint32) V { return t.vals[i] }, o)
}

// Compile returns a snapshot of prefixes and their values, values[i] belonging
// to prefixes[i], without a [Tree] in between. Where the slices differ in length,
// the rest of the longer one is left out. Of equal prefixes the last one counts.
// It is fastest when the prefixes are sorted (by netip.Prefix.Compare). It keeps
// neither slice. It fails with a [*RouteError] that wraps [ErrPrefix] or
// [ErrFamily].
func Compile[V any](prefixes []netip.Prefix, values []V, o CompileOptions) (*Snapshot[V], error) {
	n := min(len(prefixes), len(values))
	w := compiler[V]{routes: make([]codedRoute, 0, n)}
	sorted := true
	for i, p := range prefixes[:n] {
		k, bits, err := prefixKey(p)
		if err != nil {
			return nil, &RouteError{"compile", Route{Prefix: p}, err}
		}
		r := codedRoute{k, uint32(i), uint8(bits)}
		sorted = sorted && (i == 0 || compareRoutes(w.routes[i-1], r) < 0)
		w.routes = append(w.routes, r)
	}
	if !sorted {
		slices.SortFunc(w.routes, func(a, b codedRoute) int {
			if c := compareRoutes(a, b); c != 0 {
				return c
			}
			return int(b.code) - int(a.code)
		})
		w.routes = slices.CompactFunc(w.routes, func(a, b codedRoute) bool { return compareRoutes(a, b) == 0 })
	}
	return w.build(func(i uint32) V { return values[i] }, o), nil
}

// compareRoutes orders by address, then by length.
func compareRoutes(a, b codedRoute) int {
	switch {
	case a.key.less(b.key):
		return -1
	case b.key.less(a.key):
		return 1
	}
	return int(a.bits) - int(b.bits)
}

// sourceCode marks the code of a source list, before the number of values is
// known.
const sourceCode = 1 << 31

// A compiler collects the routes of a snapshot. Their codes are numbers of
// values at first, of routes in a tree.
type compiler[V any] struct {
	tree    *Tree[V]
	routes  []codedRoute
	sources []compiledSource
}

// compiledSource is the source list of a destination on its way.
type compiledSource struct {
	routes []codedRoute // the sources
	// beyond is the code of what is around, if any: a number of a value or a
	// sourceCode.
	beyond   uint32
	isBeyond bool
	// The prefix lengths of the destination, and of what is around.
	bits, beyondBits uint8
}

// walk collects a node and what is below. Outer is the position plus one in
// routes of the node around, 0 for none.
func (w *compiler[V]) walk(i uint32, outer int) {
	t := w.tree
	n := t.nodes[i]
	if n.info&candidate != 0 {
		r := codedRoute{t.keys[i], n.leaf, uint8(n.bits())}
		if n.info&hasSub != 0 {
			s := compiledSource{bits: r.bits}
			if generic := t.subs[n.leaf].routes; generic != 0 && (t.mode == SourceDraft || i == rootNode) {
				s.isBeyond, s.beyond, s.beyondBits = true, generic, r.bits
			} else if outer > 0 {
				o := w.routes[outer-1]
				s.isBeyond, s.beyond, s.beyondBits = true, o.code, o.bits
			}
			w.walkSources(&s, t.subs[n.leaf].root)
			r.code = sourceCode | uint32(len(w.sources))
			w.sources = append(w.sources, s)
		}
		w.routes = append(w.routes, r)
		outer = len(w.routes)
	}
	for _, c := range n.child {
		if c != 0 {
			w.walk(c, outer)
		}
	}
}

func (w *compiler[V]) walkSources(s *compiledSource, i uint32) {
	n := w.tree.nodes[i]
	if n.info&candidate != 0 {
		s.routes = append(s.routes, codedRoute{w.tree.keys[i], n.leaf, uint8(n.bits())})
	}
	for _, c := range n.child {
		if c != 0 {
			w.walkSources(s, c)
		}
	}
}

// build makes the snapshot.
func (w *compiler[V]) build(value func(uint32) V, o CompileOptions) *Snapshot[V] {
	c := newCoder[V]()
	for _, r := range w.routes {
		if r.code&sourceCode == 0 {
			c.see(value(r.code))
		}
	}
	for i := range w.sources {
		for _, r := range w.sources[i].routes {
			c.see(value(r.code))
		}
		if s := &w.sources[i]; s.isBeyond && s.beyond&sourceCode == 0 {
			c.see(value(s.beyond))
		}
	}
	s := &Snapshot[V]{inline: c.inline, routes: len(w.routes), layout: o.Layout, words: plainWords()}
	runs := w.part(&s.part, o.Layout == Fast, c.max, func(r codedRoute) uint32 { return c.code(value(r.code)) })
	s.entries, s.values = runs, slices.Clip(c.values)
	if c.inline {
		s.direct = s.answers
	}
	if o.Prefixes {
		s.lengths = new(part)
		w.part(s.lengths, false, nil, nil)
	}
	return s
}

// part makes an index of the routes; with code nil one of prefix lengths, plus
// one. It returns the number of runs. The largest code is known when all were
// asked for.
func (w *compiler[V]) part(p *part, dense bool, largest func() uint32, code func(codedRoute) uint32) int {
	lengths := code == nil
	rs := make([]codedRoute, len(w.routes))
	p.sources = make([]sourceList, len(w.sources))
	for i, s := range w.sources {
		sub := make([]codedRoute, len(s.routes))
		for j, r := range s.routes {
			if lengths {
				r.code = uint32(s.bits) + 1
			} else {
				r.code = code(r)
			}
			sub[j] = r
		}
		runs := sweep(sub, nil)
		l := sourceList{first: uint32(len(p.runs)), n: uint32(len(runs))}
		switch {
		case s.isBeyond && s.beyond&sourceCode != 0:
			l.beyond = s.beyond // settled below
		case s.isBeyond && lengths:
			l.beyond = uint32(s.beyondBits) + 1
		case s.isBeyond:
			l.beyond = code(codedRoute{code: s.beyond})
		}
		p.sources[i] = l
		p.runs = append(p.runs, runs...)
	}
	for i, r := range w.routes {
		switch {
		case r.code&sourceCode != 0:
		case lengths:
			r.code = uint32(r.bits) + 1
		default:
			r.code = code(r)
		}
		rs[i] = r
	}
	p.answers = 129
	if !lengths {
		p.answers = largest()
	}
	settle := func(c uint32) uint32 {
		if c&sourceCode != 0 {
			return p.answers + 1 + c&^sourceCode
		}
		return c
	}
	for i := range rs {
		rs[i].code = settle(rs[i].code)
	}
	for i := range p.sources {
		p.sources[i].beyond = settle(p.sources[i].beyond)
	}
	runs := sweep(rs, make([]run, 0, len(rs)+len(rs)/2+1))
	x := buildIndex(runs, p.answers+uint32(len(p.sources)), dense)
	if x == nil {
		panic("radix6: too many routes for a snapshot")
	}
	p.index = *x
	return len(runs)
}

// A coder gives values their codes: while all are small integers, the value
// plus one; otherwise places in a list.
type coder[V any] struct {
	inline, integer bool
	largest         uint64 // number seen
	values          []V
	byNumber        map[uint64]uint32
	byValue         map[any]uint32
}

func newCoder[V any]() *coder[V] {
	c := &coder[V]{integer: inlineKind[V]()}
	if c.integer {
		c.inline = true
		c.byNumber = map[uint64]uint32{}
	} else if plainComparable(reflect.TypeFor[V]()) {
		c.byValue = map[any]uint32{}
	}
	return c
}

// see must be called with all values before the first call of code.
func (c *coder[V]) see(v V) {
	if c.integer {
		n := inlineNumber(v)
		c.largest = max(c.largest, n)
		c.inline = c.inline && n <= maxInline && n <= maxOf[V]()
	}
}

func (c *coder[V]) code(v V) uint32 {
	next := uint32(len(c.values) + 1)
	switch {
	case c.inline:
		return uint32(inlineNumber(v)) + 1
	case c.integer:
		n := inlineNumber(v)
		if known, ok := c.byNumber[n]; ok {
			return known
		}
		c.byNumber[n] = next
	case c.byValue != nil:
		if known, ok := c.byValue[v]; ok {
			return known
		}
		c.byValue[v] = next
	}
	c.values = append(c.values, v)
	return next
}

// max returns the largest code.
func (c *coder[V]) max() uint32 {
	if c.inline {
		return uint32(c.largest) + 1
	}
	return uint32(len(c.values))
}

// plainComparable reports whether values of a type that are equal are the
// same: not so for floats (zero has two signs), nor safely for interfaces.
func plainComparable(t reflect.Type) bool {
	switch k := t.Kind(); k {
	case reflect.Bool, reflect.String, reflect.Pointer, reflect.Chan, reflect.UnsafePointer:
		return true
	case reflect.Array:
		return plainComparable(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Name == "_" || !plainComparable(f.Type) {
				return false
			}
		}
		return true
	default:
		return k >= reflect.Int && k <= reflect.Uintptr
	}
}
