package lpctrie

import (
	"math/bits"
	"net/netip"
	"sync"
	"sync/atomic"
)

// A Live is a table that changes while others read it. Readers take no locks,
// make no garbage and are never held up; each update becomes visible to them
// at one instant and whole, however many routes it changes. Updates exclude
// each other. Make one with [NewLive] or [LiveOf].
//
// It costs a [Table], which the writers work on, and about 14 bytes per route
// for what the readers see (with values of 4 bytes: 54 in all, for an Internet
// table). An update of a route longer than /16 works out the answers for what
// it covers and publishes a copy of that /16 with them, and of the three small
// nodes above, leaving the old ones as garbage. Shorter routes cost a whole /16
// for each that they cover, the default route nothing extra. Old values live
// until the last reader that may see them is done: that is the garbage
// collector's work.
type Live[V any] struct {
	now atomic.Pointer[View[V]]

	mu     sync.Mutex
	t      *Table[V]
	log    journal[V]
	dirty  [1 << 16 / 64]uint64 // /16s that the update has changed
	blocks []block              // what of them has changed, unless all of it may have
	// Space for rebuilding a /16.
	routes []codedRoute
	runs   []run
}

// A block is the part of a /16 that an update has changed: the addresses of a
// prefix of 17 to 24 bits. Of any more than a few blocks nobody keeps count.
type block struct {
	first uint32
	slen  uint8
}

const maxBlocks = 8

// add notes that a prefix of that suffix length has changed, and reports
// whether it lies in a part of a /16 that can be noted.
func (l *Live[V]) add(key uint32, slen uint8) bool {
	n := block{key &^ 0xff, max(slen, 8)}
	for i, b := range l.blocks {
		if b.first>>16 == key>>16 {
			// The least block around both.
			n.slen = max(n.slen, b.slen, uint8(bits.Len32(n.first^b.first)))
			n.first &^= suffixMask(n.slen)
			l.blocks[i] = n
			return n.slen < 16
		}
	}
	if len(l.blocks) == maxBlocks {
		return false
	}
	l.blocks = append(l.blocks, n)
	return n.slen < 16
}

// changed returns what of a /16 has changed, false for all of it.
func (l *Live[V]) changed(k uint32) (block, bool) {
	for _, b := range l.blocks {
		if b.first>>16 == k {
			return b, true
		}
	}
	return block{}, false
}

// A View is what a [Live] had at one moment. It never changes; lookups in it
// are as fast as in the Live. Keeping it keeps the values of that moment.
type View[V any] struct {
	by4      [16]*slash4[V] // by four bits, nil for no routes but the default
	fallback run1[V]        // the default route
	version  uint64
	routes   int
}

// Between a View and the /16s are three steps of four bits, so that little has
// to be copied for a change.
type (
	slash4[V any]  [16]*slash8[V]  // a /4
	slash8[V any]  [16]*slash12[V] // a /8
	slash12[V any] [16]*chunk[V]   // a /12
)

// A chunk is a /16 as the answers for its 256 /24s: runs of equal ones, where
// each begins marked in bits. rank[i] is the number of runs before bits[i],
// minus one.
type chunk[V any] struct {
	bits [4]uint64
	rank [4]uint16
	runs []run1[V]
	deep []deepRuns[V] // by third octet
}

// A run1 is one answer: a route's value and suffix length, or nothing, or a
// hint that the /24 has longer routes inside.
type run1[V any] struct {
	v    V
	slen uint8
}

const (
	slenNone = 64
	slenDeep = 65
)

// deepRuns are the answers within a /24: runs[i] from the last octet starts[i].
type deepRuns[V any] struct {
	at     uint8 // third octet
	starts []uint8
	runs   []run1[V]
}

// NewLive returns an empty live table.
func NewLive[V any](cfg Config) *Live[V] { return LiveOf(New[V](cfg)) }

// LiveOf makes a live table of t, which it takes over and packs: t must not be
// used any more.
func LiveOf[V any](t *Table[V]) *Live[V] {
	t.Pack()
	l := &Live[V]{t: t}
	for i := range l.dirty {
		l.dirty[i] = ^uint64(0)
	}
	l.publish(&View[V]{})
	return l
}

// View returns what the table has now, for several lookups at one moment. It does
// not allocate, and there is nothing to give back.
func (l *Live[V]) View() *View[V] { return l.now.Load() }

// Lookup is [View.Lookup] of the present.
func (l *Live[V]) Lookup(a netip.Addr) (V, bool) { return l.now.Load().Lookup(a) }

// LookupKey is [View.LookupKey] of the present.
func (l *Live[V]) LookupKey(key uint32) (V, bool) { return l.now.Load().LookupKey(key) }

// LookupPrefix is [View.LookupPrefix] of the present.
func (l *Live[V]) LookupPrefix(a netip.Addr) (V, netip.Prefix, bool) {
	return l.now.Load().LookupPrefix(a)
}

// LookupBatch is [View.LookupBatch] of the present: all answers are of one
// moment.
func (l *Live[V]) LookupBatch(as []netip.Addr, vs []V, oks []bool) int {
	return l.now.Load().LookupBatch(as, vs, oks)
}

// Len returns the number of routes, every alias counted.
func (l *Live[V]) Len() int { return l.now.Load().routes }

// Insert is [Table.Insert].
func (l *Live[V]) Insert(p netip.Prefix, v V) error {
	return l.Add(Route{Prefix: p}, v, ModeReplace)
}

// Add is [Table.Add].
func (l *Live[V]) Add(r Route, v V, mode Mode) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
	err := l.t.Add(r, v, mode)
	l.commit()
	return err
}

// Remove is [Table.Remove].
func (l *Live[V]) Remove(p netip.Prefix) (V, bool) { return l.Delete(Route{Prefix: p}) }

// Delete is [Table.Delete].
func (l *Live[V]) Delete(r Route) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
	v, ok := l.t.Delete(r)
	l.commit()
	return v, ok
}

// Update lets change change the table, by any number of calls of its methods,
// and then publishes all of it at once. If change returns an error, or panics,
// everything is put back and nothing is published. Change must not keep the
// table. It may look up in the Live, which still has what was there before, but
// Add, Insert, Delete, Remove, Update, Read and Compile of the Live would wait
// for ever.
func (l *Live[V]) Update(change func(*Table[V]) error) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begin()
	done := false
	defer func() {
		if !done || err != nil {
			l.t.undo(&l.log)
			l.end()
		}
	}()
	if err = change(l.t); err == nil {
		l.commit()
	}
	done = true
	return err
}

// Read lets read read the table that the writers work on, which waits for
// updates and holds them up: for what a [View] cannot do. Read must not change
// the table nor keep it, and what was said of [Live.Update] about waiting holds
// here too.
func (l *Live[V]) Read(read func(*Table[V])) {
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

func (l *Live[V]) begin() { l.t.log = &l.log }

// end forgets the transaction.
func (l *Live[V]) end() {
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
	parts := true
	for i := range l.log.ops {
		r := &l.log.ops[i].r
		if slen := r.slen(); parts && r.tos() == 0 && slen != 32 {
			parts = slen < 16 && l.add(r.key, slen)
		}
		switch slen := r.slen(); {
		case r.tos() != 0 || slen == 32: // not seen; read by publish in any case
		case slen <= 16:
			l.dirty[r.key>>22] |= 1 << (r.key >> 16 & 63)
		default:
			first := r.key >> 16
			for k := first; k < first+1<<(slen-16); k++ {
				l.dirty[k>>6] |= 1 << (k & 63)
			}
		}
	}
	if !parts {
		l.blocks = l.blocks[:0]
	}
	next := *l.now.Load()
	l.publish(&next)
	l.blocks = l.blocks[:0]
	l.end()
}

// publish rebuilds the /16s that are dirty in a copy of the view and makes it
// the present.
func (l *Live[V]) publish(next *View[V]) {
	next.version++
	next.routes = l.t.routes
	next.fallback = run1[V]{slen: slenNone}
	if i := l.t.exact(0, 32); i != 0 {
		next.fallback = run1[V]{l.t.hot[i].val, 32}
	}
	for i := range l.dirty {
		if l.dirty[i] != 0 { // the first of a /4: everything of it at once
			n := i >> 6
			next.by4[n] = l.refresh(next.by4[n], l.dirty[n<<6:][:64], uint32(n)<<12)
		}
	}
	l.now.Store(next)
}

// refresh returns a copy of a /4 with everything new that is dirty, and marks
// it clean. The /4's first /16 is base.
func (l *Live[V]) refresh(old *slash4[V], dirty []uint64, base uint32) *slash4[V] {
	o := cloned(old)
	for i := 0; i < len(dirty); i += 4 {
		words := dirty[i:][:4]
		if words[0]|words[1]|words[2]|words[3] == 0 {
			continue
		}
		g := cloned(o[i>>2])
		for n := range g {
			now := words[n>>2] >> (n & 3 * 16) & 0xffff
			if now == 0 {
				continue
			}
			d := cloned(g[n])
			g[n] = d // rebuild looks at neighbours
			for ; now != 0; now &= now - 1 {
				at := bits.TrailingZeros64(now)
				second := n<<4 | at
				d[at] = l.rebuild(base|uint32(i<<6|second), d[at], g)
				words[second>>6] &^= 1 << (second & 63)
			}
			g[n] = unlessEmpty(d)
		}
		o[i>>2] = unlessEmpty(g)
	}
	return unlessEmpty(o)
}

// cloned returns a copy, an empty one of nothing.
func cloned[T any](p *T) *T {
	c := new(T)
	if p != nil {
		*c = *p
	}
	return c
}

// unlessEmpty returns nil for something that is all zero.
func unlessEmpty[T comparable](p *T) *T {
	var zero T
	if *p == zero {
		return nil
	}
	return p
}

// uniform returns a chunk that says r everywhere, for use in the /16 k: if
// possible one from the neighbourhood.
func (l *Live[V]) uniform(k uint32, r run1[V], g *slash8[V]) *chunk[V] {
	const reach = 16
	for other := max(int(k&255)-reach, 0); other < min(int(k&255)+reach, 256); other++ {
		at := k&^255 | uint32(other)
		d := g[other>>4]
		if d == nil {
			continue
		}
		c := d[other&15]
		if c == nil || len(c.runs) != 1 || c.runs[0].slen != r.slen || (at^k)<<16>>r.slen != 0 || l.dirty[at>>6]>>(at&63)&1 != 0 {
			continue
		}
		// It is up to date, and all of it is served by the route of this very
		// prefix.
		return c
	}
	only := [4]uint64{1}
	return &chunk[V]{bits: only, rank: ranks(only), runs: []run1[V]{r}}
}

// rebuild makes the chunk of a /16 in a /8, nil if it has no routes but the
// default. Of the old chunk it takes what has not changed.
func (l *Live[V]) rebuild(k uint32, old *chunk[V], g *slash8[V]) *chunk[V] {
	t := l.t
	// What has changed, its last address, and the longest suffix of a route
	// within; what is around it are routes with longer ones.
	first, last, within := k<<16, k<<16|0xffff, uint8(15)
	b, part := l.changed(k)
	if part = part && old != nil; part {
		first, last, within = b.first, b.first|suffixMask(b.slen), b.slen
	}
	cover := t.walkSearch(first, func(i uint32) bool {
		h := &t.hot[i]
		return h.tos() == 0 && h.slen() > within && h.slen() < 32
	}, nil)
	rs := l.routes[:0]
	if cover != 0 {
		rs = append(rs, codedRoute{first, cover, within + 1})
	}
	for leaf := range t.each(first, last) {
		t.chain(leaf, within, func(i uint32) bool {
			h := &t.hot[i]
			if n := len(rs); h.tos() == 0 && (n == 0 || rs[n-1].key != h.key || rs[n-1].slen != h.slen()) {
				rs = append(rs, codedRoute{h.key, i, h.slen()})
			}
			return true
		})
	}
	l.routes = rs
	answer := func(code uint32) run1[V] {
		if code == 0 {
			return run1[V]{slen: slenNone}
		}
		return run1[V]{t.hot[code].val, t.hot[code].slen()}
	}
	if !part {
		switch {
		case len(rs) == 0:
			return nil
		case len(rs) == 1 && cover != 0:
			return l.uniform(k, answer(cover), g)
		}
	}

	// The runs: the sweep is about all addresses, with 0 outside.
	runs := sweep(l.runs[:0], rs, false)
	l.runs = runs
	m := chunkMaker[V]{c: &chunk[V]{}}
	if part {
		m.take(old, 0, int(first>>8&255))
	}
	before := uint32(0) // code that a /24 begins with unless a run begins there
	i := 0
	for i < len(runs) && runs[i].start < first {
		i++
	}
	pending := true // the next /24 needs a run of its own even if nothing begins
	for at := first; ; {
		j := i
		for j < len(runs) && runs[j].start <= at|255 {
			j++
		}
		switch {
		case j == i:
			if pending {
				m.mark(at, answer(before))
			}
			pending = false
			// On to the /24 with the next run.
			if i == len(runs) || runs[i].start > last {
				at = last
			} else {
				at = runs[i].start &^ 255
				continue
			}
		case j == i+1 && runs[i].start == at:
			m.mark(at, answer(runs[i].code))
			pending = false
		default:
			d := deepRuns[V]{at: uint8(at >> 8), starts: make([]uint8, 0, j-i+1), runs: make([]run1[V], 0, j-i+1)}
			if runs[i].start != at {
				d.starts, d.runs = append(d.starts, 0), append(d.runs, answer(before))
			}
			for _, r := range runs[i:j] {
				d.starts, d.runs = append(d.starts, uint8(r.start)), append(d.runs, answer(r.code))
			}
			m.markDeep(d)
			pending = true
		}
		if j > i {
			before = runs[j-1].code
		}
		i = j
		if at|255 == last {
			break
		}
		at += 256
	}
	if part {
		m.take(old, int(last>>8&255)+1, 256)
		if m.n == 1 && m.present {
			if m.list[0].slen == slenNone {
				return nil
			}
			return l.uniform(k, m.list[0], g)
		}
	}
	return m.done()
}

// A chunkMaker puts a chunk together from its first /24 to its last. Equal
// answers become one run.
type chunkMaker[V any] struct {
	c       *chunk[V]
	list    [256]run1[V]
	n       int
	present bool   // the next /24 may go on with the answer before it
	at      uint32 // an address that has that answer
}

// mark says what the /24s from an address on answer.
func (m *chunkMaker[V]) mark(at uint32, r run1[V]) {
	// A route is known by its length, and by its addresses.
	if m.present && m.list[m.n-1].slen == r.slen && (r.slen == slenNone || (at^m.at)&0xffff>>r.slen == 0) {
		return
	}
	m.c.bits[at>>14&3] |= 1 << (at >> 8 & 63)
	m.list[m.n] = r
	m.n++
	m.present, m.at = true, at
}

// markDeep says that a /24 has longer routes inside. Whatever follows it is a
// run of its own.
func (m *chunkMaker[V]) markDeep(d deepRuns[V]) {
	m.c.bits[d.at>>6] |= 1 << (d.at & 63)
	m.list[m.n] = run1[V]{slen: slenDeep}
	m.n++
	m.c.deep = append(m.c.deep, d)
	m.present = false
}

// take takes the answers of the /24s from one up to before another out of an
// older chunk.
func (m *chunkMaker[V]) take(old *chunk[V], from, to int) {
	if from >= to {
		return
	}
	n := int(old.rank[from>>6] + uint16(bits.OnesCount64(old.bits[from>>6]<<(63-from&63))))
	deep := 0
	for deep < len(old.deep) && int(old.deep[deep].at) < from {
		deep++
	}
	for third := from; third < to; {
		if r := &old.runs[n]; r.slen != slenDeep {
			m.mark(uint32(third)<<8, *r)
		} else {
			m.markDeep(old.deep[deep])
			deep++
		}
		// On to the next run.
		third++
		for third < to {
			if w := old.bits[third>>6] >> (third & 63); w != 0 {
				third += bits.TrailingZeros64(w)
				break
			}
			third = (third | 63) + 1
		}
		n++
	}
}

// done returns the chunk.
func (m *chunkMaker[V]) done() *chunk[V] {
	m.c.runs = append(make([]run1[V], 0, m.n), m.list[:m.n]...)
	m.c.rank = ranks(m.c.bits)
	return m.c
}

func ranks(b [4]uint64) (r [4]uint16) {
	n := ^uint16(0)
	for i, w := range b {
		r[i] = n
		n += uint16(bits.OnesCount64(w))
	}
	return r
}

// find returns the answer for an address.
func (v *View[V]) find(key uint32) *run1[V] {
	if c := v.chunk(key); c != nil {
		return v.in(c, key)
	}
	return &v.fallback
}

func (v *View[V]) chunk(key uint32) *chunk[V] {
	if o := v.by4[key>>28]; o != nil {
		if g := o[key>>24&15]; g != nil {
			if d := g[key>>20&15]; d != nil {
				return d[key>>16&15]
			}
		}
	}
	return nil
}

func (v *View[V]) in(c *chunk[V], key uint32) *run1[V] {
	w := key >> 14 & 3
	r := &c.runs[c.rank[w]+uint16(bits.OnesCount64(c.bits[w]<<(^(key>>8)&63)))]
	if r.slen > 32 {
		return v.special(c, r, key)
	}
	return r
}

// special follows a run that is not a route's.
func (v *View[V]) special(c *chunk[V], r *run1[V], key uint32) *run1[V] {
	if r.slen == slenDeep {
		third := uint8(key >> 8)
		lo, hi := 0, len(c.deep)-1
		for lo < hi {
			mid := (lo + hi + 1) / 2
			if c.deep[mid].at <= third {
				lo = mid
			} else {
				hi = mid - 1
			}
		}
		d := &c.deep[lo]
		lo, n := 0, len(d.starts)
		for n > 1 {
			half := n / 2
			if d.starts[lo+half] <= uint8(key) {
				lo += half
			}
			n -= half
		}
		r = &d.runs[lo]
	}
	if r.slen == slenNone {
		return &v.fallback
	}
	return r
}

// Lookup returns the value of the longest match among the routes without TOS.
// It does not allocate. Anything but an IPv4 address finds nothing.
func (v *View[V]) Lookup(a netip.Addr) (val V, ok bool) {
	if a.Is4() {
		r := v.find(key4(a.As4()))
		return r.v, r.slen <= 32
	}
	return val, false
}

// LookupKey is Lookup for an address in host order (see [KeyOf]).
func (v *View[V]) LookupKey(key uint32) (val V, ok bool) {
	r := v.find(key)
	return r.v, r.slen <= 32
}

// LookupPrefix returns the prefix of the longest match as well.
func (v *View[V]) LookupPrefix(a netip.Addr) (val V, p netip.Prefix, ok bool) {
	key, is4 := KeyOf(a)
	if !is4 {
		return val, p, false
	}
	r := v.find(key)
	if r.slen > 32 {
		return val, p, false
	}
	return r.v, prefixOf(key&^suffixMask(r.slen), r.slen), true
}

// LookupBatch looks up addresses and stores the values of their longest matches
// and whether there are any; where there is none the value is the zero one. It
// works on as many as the shortest slice holds and returns how many found a
// route. It does not allocate.
func (v *View[V]) LookupBatch(as []netip.Addr, vs []V, oks []bool) int {
	n := min(len(as), len(vs), len(oks))
	found := 0
	var keys [batch]uint32
	var chunks [batch]*chunk[V]
	none := run1[V]{slen: slenNone}
	const _ = uint(64 - batch) // the bits of other below
	for at := 0; at < n; at += batch {
		part := as[at:min(at+batch, n)]
		other := uint64(0) // a bit for each that is not IPv4
		// Stages of loads that do not depend on each other.
		for i, a := range part {
			k := uint32(0)
			if a.Is4() {
				k = key4(a.As4())
			} else {
				other |= 1 << i
			}
			keys[i&(batch-1)] = k
			chunks[i&(batch-1)] = v.chunk(k)
		}
		var answers [batch]*run1[V]
		for i := range part {
			i &= batch - 1
			answers[i] = &v.fallback
			if c := chunks[i]; c != nil {
				k := keys[i]
				w := k >> 14 & 3
				answers[i] = &c.runs[c.rank[w]+uint16(bits.OnesCount64(c.bits[w]<<(^(k>>8)&63)))]
			}
		}
		for i := range part {
			r := answers[i&(batch-1)]
			if r.slen > 32 {
				r = &v.fallback
				if c := chunks[i&(batch-1)]; c != nil {
					r = v.in(c, keys[i&(batch-1)])
				}
			}
			if other>>i&1 != 0 {
				r = &none
			}
			vs[at+i], oks[at+i] = r.v, r.slen <= 32
			if oks[at+i] {
				found++
			}
		}
	}
	return found
}

// Len returns the number of routes, every alias counted.
func (v *View[V]) Len() int { return v.routes }

// Version counts the updates that had been published: a later view has a
// larger one.
func (v *View[V]) Version() uint64 { return v.version }
