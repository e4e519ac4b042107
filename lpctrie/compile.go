package lpctrie

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
	"reflect"
	"slices"
)

// Compile returns a compact snapshot of the table as it is.
func (t *Table[V]) Compile() *Snapshot[V] { return t.CompileWith(CompileOptions{}) }

// CompileWith returns a snapshot of the table as it is.
func (t *Table[V]) CompileWith(o CompileOptions) *Snapshot[V] {
	rs := make([]codedRoute, 0, t.routes)
	c := newCoder[V](t.same)
	for leaf := range t.each(0, ^uint32(0)) {
		t.chain(leaf, 32, func(i uint32) bool {
			h := &t.hot[i]
			if n := len(rs); h.tos() == 0 && (n == 0 || rs[n-1].key != h.key || rs[n-1].slen != h.slen()) {
				rs = append(rs, codedRoute{h.key, c.code(h.val), h.slen()})
			}
			return true
		})
	}
	return build(rs, c, o)
}

// Compile returns a snapshot of prefixes and their values, values[i] belonging
// to prefixes[i], without a [Table] in between. Of equal prefixes the last one
// counts. It is fastest when the prefixes are sorted (by netip.Prefix.Compare).
// It fails with [ErrPrefix].
func Compile[V any](prefixes []netip.Prefix, values []V, o CompileOptions) (*Snapshot[V], error) {
	n := min(len(prefixes), len(values))
	rs := make([]codedRoute, 0, n)
	t := New[V](Config{})
	c := newCoder[V](t.same)
	sorted := true
	for i, p := range prefixes[:n] {
		key, slen, err := keyOfPrefix(p)
		if err != nil {
			return nil, err
		}
		r := codedRoute{key, c.code(values[i]), slen}
		sorted = sorted && (i == 0 || rs[i-1].order() < r.order())
		rs = append(rs, r)
	}
	if !sorted {
		rs = sortRoutes(rs)
	}
	return build(rs, c, o), nil
}

// A codedRoute is a route with the code of its value.
type codedRoute struct {
	key, code uint32
	slen      uint8
}

// order sorts by address, then from the shortest prefix to the longest.
func (r codedRoute) order() uint64 { return uint64(r.key)<<8 | uint64(32-r.slen) }

// sortRoutes sorts by order and keeps the last of equal ones: a radix sort,
// which is stable, 13 bits at a time over the 38 that matter.
func sortRoutes(rs []codedRoute) []codedRoute {
	const digit = 13
	from, to := rs, make([]codedRoute, len(rs))
	for shift := 0; shift < 38; shift += digit {
		var count [1 << digit]int
		// The 8 bits of the length in order have 2 idle ones: leave them out.
		value := func(r codedRoute) uint64 { return (uint64(r.key)<<6 | uint64(32-r.slen)) >> shift & (1<<digit - 1) }
		for _, r := range from {
			count[value(r)]++
		}
		at := 0
		for i, n := range count {
			count[i] = at
			at += n
		}
		for _, r := range from {
			v := value(r)
			to[count[v]] = r
			count[v]++
		}
		from, to = to, from
	}
	out := from[:0]
	for i, r := range from {
		if i+1 == len(from) || from[i+1].order() != r.order() {
			out = append(out, r)
		}
	}
	return out
}

// A coder numbers values from 1. While all are small integers the number is
// the value plus one.
type coder[V any] struct {
	inline, integer bool
	shift           uint8
	max             uint32 // largest code
	limit           uint64 // largest number to be inline
	values          []V
	byNumber        map[uint64]uint32
	byValue         map[any]uint32
	last            V
	lastCode        uint32
	same            func(a, b V) bool
}

func newCoder[V any](same func(a, b V) bool) *coder[V] {
	c := &coder[V]{integer: inlineKind[V](), same: same}
	if c.integer {
		c.inline, c.shift, c.limit = true, inlineShift[V](), min(maxInline, maxOf[V]())
	}
	if plainComparable(reflect.TypeFor[V]()) {
		c.byValue = map[any]uint32{}
	}
	return c
}

func (c *coder[V]) code(v V) uint32 {
	if c.inline {
		n := inlineNumber(v, c.shift)
		if n <= c.limit {
			c.max = max(c.max, uint32(n)+1)
			return uint32(n) + 1
		}
		// Negative, or too large for entries: give the numbers so far a place in the list.
		// The codes handed out are changed by recode.
		c.inline = false
		c.byNumber = map[uint64]uint32{}
		return maxInline + 2 + c.list(v)
	}
	if c.integer {
		return maxInline + 2 + c.list(v)
	}
	return c.list(v)
}

// list returns the code of a value that is kept in the list.
func (c *coder[V]) list(v V) uint32 {
	if c.lastCode == 0 || c.same == nil || !c.same(c.last, v) {
		c.last, c.lastCode = v, c.place(v)
	}
	return c.lastCode
}

// place finds a value in the list, or puts it there.
func (c *coder[V]) place(v V) uint32 {
	next := uint32(len(c.values) + 1)
	switch {
	case c.integer:
		n := inlineNumber(v, c.shift)
		if code, ok := c.byNumber[n]; ok {
			return code
		}
		c.byNumber[n] = next
	case c.byValue != nil:
		if code, ok := c.byValue[v]; ok {
			return code
		}
		c.byValue[v] = next
	}
	c.values = append(c.values, v)
	return next
}

// recode gives the routes their final codes: where an integer was too large for
// entries, those before it have been coded as if there were no list.
func (c *coder[V]) recode(rs []codedRoute) {
	if !c.inline {
		if c.integer {
			for i, r := range rs {
				if r.code >= maxInline+2 {
					rs[i].code = r.code - (maxInline + 2)
				} else {
					rs[i].code = c.list(inlineValue[V](r.code-1, c.shift))
				}
			}
		}
		c.max = uint32(len(c.values))
	}
}

// A run is a stretch of addresses with one answer, up to the next run.
type run struct {
	start, code uint32
	slen        uint8
}

// sweep appends to runs, which must be empty, what sorted routes say about all
// addresses. With lengths, runs of one code but of routes of different lengths
// stay apart.
func sweep(runs []run, rs []codedRoute, lengths bool) []run {
	type open struct {
		last, code uint32
		slen       uint8
	}
	runs = append(runs, run{})
	var stack [34]open // stack[0] stands for no route
	stack[0] = open{last: ^uint32(0)}
	depth := 0
	emit := func(start, code uint32, slen uint8) {
		if !lengths {
			slen = 0
		}
		n := len(runs) - 1
		if runs[n].start == start {
			if n > 0 && runs[n-1].code == code && runs[n-1].slen == slen {
				runs = runs[:n]
				return
			}
			runs[n].code, runs[n].slen = code, slen
			return
		}
		if runs[n].code != code || runs[n].slen != slen {
			runs = append(runs, run{start, code, slen})
		}
	}
	for _, r := range rs {
		for depth > 0 && stack[depth].last < r.key {
			depth--
			emit(stack[depth+1].last+1, stack[depth].code, stack[depth].slen)
		}
		emit(r.key, r.code, r.slen)
		depth++
		stack[depth] = open{r.key | suffixMask(r.slen), r.code, r.slen}
	}
	for ; depth > 0; depth-- {
		if last := stack[depth].last; last != ^uint32(0) {
			emit(last+1, stack[depth-1].code, stack[depth-1].slen)
		}
	}
	return runs
}

// A filler turns runs into the arrays of a snapshot. It is told the entry of
// each /24 that differs from the one before, in order.
type filler struct {
	entries, lengths []byte // entries has room behind the last
	width            int
	count            uint32 // entries so far
	cells            []cell
	topBits          [topCells]uint64
	at               uint32 // /18 whose cell is being filled
	marks            uint64 // its bits
	base             uint32
}

func (f *filler) append(code uint32, slen uint8, lengths bool) {
	at := int(f.count) * f.width
	if at+4 > len(f.entries) {
		f.entries = append(f.entries, make([]byte, len(f.entries)/4+64)...)
	}
	binary.LittleEndian.PutUint32(f.entries[at:], code) // the next covers what is too much
	if lengths {
		f.lengths = append(f.lengths, slen)
	}
	f.count++
}

// flush stores the cell that is being filled.
func (f *filler) flush() {
	f.cells = append(f.cells, cell{uint32(f.marks), uint32(f.marks >> 32), f.base})
	f.topBits[f.at>>6] |= 1 << (f.at & 63)
	f.marks, f.base = 0, f.count-1
}

func (f *filler) mark(slash24 uint32) {
	if at := slash24 >> 6; at != f.at {
		f.flush()
		f.at = at
	}
	f.marks |= 1 << (slash24 & 63)
}

// build makes a snapshot of sorted routes.
func build[V any](rs []codedRoute, c *coder[V], o CompileOptions) *Snapshot[V] {
	c.recode(rs)
	runs := sweep(make([]run, 0, len(rs)+len(rs)/4+1), rs, o.Prefixes)
	width := max(1, (bits.Len32(c.max+1)+7)/8) // the code of all ones must not be a value's
	mask := uint32(1<<(8*width) - 1)
	f := &filler{width: width, base: ^uint32(0)}
	f.entries = make([]byte, len(runs)*width+64)
	if o.Prefixes {
		f.lengths = make([]byte, 0, len(runs))
	}

	// One pass over the runs, /24 by /24. deepRuns are the stretches of runs
	// inside one /24, dealt with at the end so that the entries of an /18 are
	// next to each other.
	var deepRuns [][2]int
	pending := false // the /24 behind the last needs an entry of its own
	for i := 0; i < len(runs); {
		id := runs[i].start >> 8
		j := i + 1
		for j < len(runs) && runs[j].start>>8 == id {
			j++
		}
		if pending {
			if after := runs[i-1].start>>8 + 1; after < id {
				f.mark(after)
				f.append(runs[i-1].code, runs[i-1].slen, o.Prefixes)
			}
		}
		f.mark(id)
		if pending = j-i > 1 || runs[i].start&255 != 0; pending {
			deepRuns = append(deepRuns, [2]int{i, j})
			f.append(mask, 0, o.Prefixes)
		} else {
			f.append(runs[i].code, runs[i].slen, o.Prefixes)
		}
		i = j
	}
	if last := runs[len(runs)-1]; pending && last.start>>8 != 1<<24-1 {
		f.mark(last.start>>8 + 1)
		f.append(last.code, last.slen, o.Prefixes)
	}
	f.flush()

	s := &Snapshot[V]{inline: c.inline}
	s.deepFirst = f.count
	if o.Layout == Fast {
		spare := 0
		for _, d := range deepRuns {
			spare += d[1] - d[0] + 1
		}
		f.spread(spare, o.Prefixes)
		s.deepFirst = f.count
	} else {
		s.top, s.cells = f.topTable(), append(make([]cell, 0, len(f.cells)), f.cells...) // no room to grow
	}

	// The /24s with longer routes inside.
	if n := len(deepRuns); n > 0 {
		size := 1 << bits.Len(uint(2*n-1))
		s.deep = make([]slot, size)
		s.deepShift = shiftOf(size)
		for _, d := range deepRuns {
			first := f.count
			group := runs[d[0]:d[1]]
			id := group[0].start >> 8
			if group[0].start&255 != 0 {
				before := runs[d[0]-1]
				f.append(before.code, before.slen, o.Prefixes)
				s.starts = append(s.starts, 0)
			}
			for _, r := range group {
				f.append(r.code, r.slen, o.Prefixes)
				s.starts = append(s.starts, byte(r.start))
			}
			i := hash24(id, s.deepShift)
			for s.deep[i].first != 0 {
				i = (i + 1) & uint32(size-1)
			}
			s.deep[i] = slot{id<<8 | (f.count - first - 1), first}
		}
	}
	s.entries = f.entries[: int(f.count)*width+3 : int(f.count)*width+3]
	s.lengths, s.width, s.mask = f.lengths, uint32(width), mask
	if c.inline {
		s.shift = inlineShift[V]()
	} else {
		s.values = slices.Clip(c.values)
	}
	s.header = header{layout: o.Layout, width: uint8(width), inline: c.inline, lengths: o.Prefixes, routes: uint32(len(rs)),
		entries: f.count, maxCode: c.max, cells: uint32(len(s.cells)), deepFirst: s.deepFirst, slots: uint32(len(s.deep))}
	return s
}

// shiftOf is the shift of a hash with so many slots, a power of two.
func shiftOf(size int) uint8 { return uint8(32 - bits.Len(uint(size-1))) }

// topTable returns the cells of the top.
func (f *filler) topTable() *[topCells]cell {
	top := new([topCells]cell)
	base := ^uint32(0)
	for i, b := range f.topBits {
		top[i] = cell{uint32(b), uint32(b >> 32), base}
		base += uint32(bits.OnesCount64(b))
	}
	return top
}

// spread replaces the entries and cells by one entry for each /24, and leaves
// room for spare more.
func (f *filler) spread(spare int, lengths bool) {
	top, w := f.topTable(), f.width
	entries := make([]byte, (1<<24+spare)*w+4)
	hugePages(entries, false)
	var lens []byte
	if lengths {
		lens = make([]byte, 1<<24, 1<<24+spare)
	}
	// Entry by entry: from where its bit is set to where the next one's is.
	from := uint32(0)
	fill := func(to, e uint32) {
		if to == from {
			return
		}
		src := f.entries[int(e)*w:][:w]
		dst := entries[int(from)*w : int(to)*w]
		copy(dst, src)
		for done := w; done < len(dst); done *= 2 {
			copy(dst[done:], dst[:done])
		}
		if lengths {
			for i := from; i < to; i++ {
				lens[i] = f.lengths[e]
			}
		}
		from = to
	}
	e := ^uint32(0)
	for at := uint32(0); at < 1<<18; at++ {
		if f.topBits[at>>6]>>(at&63)&1 == 0 {
			continue
		}
		n, _ := top[at>>6].position(at)
		for b := f.cells[n].bits(); b != 0; b &= b - 1 {
			p := at<<6 | uint32(bits.TrailingZeros64(b))
			if e != ^uint32(0) {
				fill(p, e)
			}
			from = p
			e++
		}
	}
	fill(1<<24, e)
	hugePages(entries, true)
	f.entries, f.lengths, f.count = entries, lens, 1<<24
}
