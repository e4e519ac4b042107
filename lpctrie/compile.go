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

// CompileWith returns a snapshot of the table as it is, with options.
func (t *Table[V]) CompileWith(o CompileOptions) *Snapshot[V] {
	rs := make([]codedRoute, 0, t.routes)
	c := newCoder[V]()
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
// to prefixes[i], without a [Table] in between. Where the slices differ in
// length, the rest of the longer one is left out. Of equal prefixes the last one
// counts. It is fastest when the prefixes are sorted (by netip.Prefix.Compare).
// It keeps neither slice. It fails with [ErrPrefix].
func Compile[V any](prefixes []netip.Prefix, values []V, o CompileOptions) (*Snapshot[V], error) {
	n := min(len(prefixes), len(values))
	rs := make([]codedRoute, 0, n)
	c := newCoder[V]()
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
	max             uint32 // largest code
	limit           uint64 // largest number to be inline
	values          []V
	byNumber        map[uint64]uint32
	byValue         map[any]uint32
	last            V
	lastCode        uint32
	same            func(a, b V) bool // ==, or nil
}

func newCoder[V any]() *coder[V] {
	c := &coder[V]{integer: inlineKind[V]()}
	if c.integer {
		c.inline, c.limit = true, min(maxInline, maxOf[V]())
	}
	if plainComparable(reflect.TypeFor[V]()) {
		c.byValue = map[any]uint32{}
		c.same = equal[V]
	}
	return c
}

func (c *coder[V]) code(v V) uint32 {
	if c.inline {
		n := inlineNumber(v)
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
		n := inlineNumber(v)
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
					rs[i].code = c.list(inlineValue[V](r.code - 1))
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

// A filler turns runs into the arrays of a snapshot. It is told the code of
// each /24 that differs from the one before, in order, the first /24 included.
type filler struct {
	entries  []byte // with room behind the last
	lengths  []byte
	width    int
	prefixes bool   // lengths are wanted
	count    uint32 // entries so far
	code     uint32 // of the /24 that was told last
	slen     uint8
	fast     bool
	filled   uint32 // fast: /24s that have their entries
	top      *[1 << 16]uint16
	bits     []uint64
	ends     []uint32
	sizes    []uint16          // entries of each node
	alike    map[uint64]uint16 // nodes that have one answer all over, by code and length
	at       uint32            // /16 whose node is being made
	marks    [4]uint64         // its /24s that begin an entry
	first    uint32            // entries before its own
	current  uint32            // number of the last entry that was told
}

func (f *filler) append(code uint32, slen uint8) {
	at := int(f.count) * f.width
	if at+f.width+3 > len(f.entries) {
		f.entries = append(f.entries, make([]byte, len(f.entries)/4+64)...)
	}
	binary.LittleEndian.PutUint32(f.entries[at:], code) // the next covers what is too much
	if f.prefixes {
		f.lengths = append(f.lengths, slen)
	}
	f.count++
}

// begin says that from a /24 on the code is another.
func (f *filler) begin(slash24, code uint32, slen uint8) {
	if f.fast {
		f.fill(slash24)
		f.code, f.slen = code, slen
		return
	}
	if slash24>>8 != f.at {
		f.close(slash24 >> 8)
	}
	if f.marks == ([4]uint64{}) && slash24&255 != 0 && f.current != f.count-1 {
		// What the /16 begins with must be the entry before its own.
		f.mark(f.at<<8, f.code, f.slen)
	}
	f.mark(slash24, code, slen)
}

func (f *filler) mark(slash24, code uint32, slen uint8) {
	f.marks[slash24>>6&3] |= 1 << (slash24 & 63)
	f.append(code, slen)
	f.code, f.slen, f.current = code, slen, f.count-1
}

// close ends the /16 that is being made. From the next one after it that differs, the
// caller goes on; those in between are like its end.
func (f *filler) close(next uint32) {
	switch w := f.marks; w {
	case [4]uint64{}:
		f.top[f.at] = f.uniform()
	case [4]uint64{1}:
		// One answer all over. If there is a node for it, it needs no entry.
		if id, ok := f.alike[f.answer()]; ok {
			f.count--
			f.lengths = f.lengths[:max(len(f.lengths)-1, 0)]
			f.current = f.ends[4*int(id)]
		}
		f.top[f.at] = f.uniform()
	default:
		f.top[f.at] = uint16(len(f.sizes))
		end := f.first - 1
		for _, w := range w {
			end += uint32(bits.OnesCount64(w))
			f.bits, f.ends = append(f.bits, w>>1), append(f.ends, end)
		}
		f.sizes = append(f.sizes, uint16(f.count-f.first))
	}
	if f.at+1 < next {
		id := f.uniform()
		for i := f.at + 1; i < next; i++ {
			f.top[i] = id
		}
	}
	f.at, f.marks, f.first = next, [4]uint64{}, f.count
}

func (f *filler) answer() uint64 {
	if !f.prefixes {
		return uint64(f.code)
	}
	return uint64(f.code)<<8 | uint64(f.slen)
}

// uniform returns the node that has the current answer all over.
func (f *filler) uniform() uint16 {
	id, ok := f.alike[f.answer()]
	if !ok {
		id = uint16(len(f.sizes))
		f.alike[f.answer()] = id
		f.bits = append(f.bits, 0, 0, 0, 0)
		f.ends = append(f.ends, f.current, f.current, f.current, f.current)
		f.sizes = append(f.sizes, 0)
	}
	return id
}

// sorted returns bits and ends with the nodes in the order of size, the largest
// first, in slices that fit.
func (f *filler) sorted() ([]uint64, []uint32) {
	var at [258]uint32 // where the next node of a size belongs, by 256 - size
	for _, n := range f.sizes {
		at[257-n]++
	}
	for i := 1; i < len(at); i++ {
		at[i] += at[i-1]
	}
	words, ends := make([]uint64, len(f.bits)), make([]uint32, len(f.ends))
	to := make([]uint16, len(f.sizes))
	for i, n := range f.sizes {
		j := at[256-n]
		at[256-n]++
		to[i] = uint16(j)
		copy(words[4*j:4*j+4], f.bits[4*i:])
		copy(ends[4*j:4*j+4], f.ends[4*i:])
	}
	for i, n := range f.top {
		f.top[i] = to[n]
	}
	return words, ends
}

// makeHints makes the hints, of all the rest of the index. Where entries of a /16 lie
// beyond 64 MiB, which only forged data brings about, there is no room for the upper
// bits of where to begin: that is then further in front.
func (s *index) makeHints() {
	if len(s.entries) <= hintGap {
		s.entries = append(make([]byte, 0, hintGap+1), s.entries...)
	}
	limit := uint32(max(len(s.entries)-hintGap-1, 0))
	s.hints = new([1 << 16]hint)
	for i, n := range s.top {
		first, last := s.first(int(n))*s.width, s.ends[4*int(n)+3]*s.width
		start := min(first-min(first, hintGap/2), limit) &^ 15
		s.hints[i] = hint(start<<6 | min(last-first, limit-start))
	}
}

// first returns the number of the first entry of a node. The others follow, 255 at
// most.
func (s *index) first(node int) uint32 {
	return s.ends[4*node] - uint32(bits.OnesCount64(s.bits[4*node]))
}

// fill gives the /24s of the fast layout up to the one given the entry of the code
// that was told last.
func (f *filler) fill(to uint32) {
	from := f.filled
	if from == to {
		return
	}
	var code [4]byte
	binary.LittleEndian.PutUint32(code[:], f.code)
	dst := f.entries[int(from)*f.width : int(to)*f.width]
	copy(dst, code[:f.width])
	for done := f.width; done < len(dst); done *= 2 {
		copy(dst[done:], dst[:done])
	}
	if f.prefixes {
		for i := from; i < to; i++ {
			f.lengths[i] = f.slen
		}
	}
	f.filled = to
}

// build makes a snapshot of sorted routes.
func build[V any](rs []codedRoute, c *coder[V], o CompileOptions) *Snapshot[V] {
	c.recode(rs)
	runs := sweep(make([]run, 0, len(rs)+len(rs)/4+1), rs, o.Prefixes)
	width := max(1, (bits.Len32(c.max+1)+7)/8) // the code of all ones must not be a value's
	if o.Layout == Fast && width == 3 {
		width = 4 // so that no entry lies in two cache lines
	}
	mask := uint32(1<<(8*width) - 1)
	f := &filler{width: width, prefixes: o.Prefixes, fast: o.Layout == Fast}
	if f.fast {
		deep := 0 // starts below /24: with at most as many entries for what is before them
		for _, r := range runs {
			if r.start&255 != 0 {
				deep++
			}
		}
		f.entries = make([]byte, (1<<24+2*deep)*width+4)
		hugePages(f.entries, false)
		if o.Prefixes {
			f.lengths = make([]byte, 1<<24, 1<<24+2*deep)
		}
	} else {
		f.entries = make([]byte, len(runs)*width+64)
		f.top, f.alike = new([1 << 16]uint16), map[uint64]uint16{}
		if o.Prefixes {
			f.lengths = make([]byte, 0, len(runs))
		}
	}

	// One pass over the runs, /24 by /24. deepRuns are the stretches of runs
	// inside one /24, dealt with at the end so that the entries of a /16 are
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
				f.begin(after, runs[i-1].code, runs[i-1].slen)
			}
		}
		if pending = j-i > 1 || runs[i].start&255 != 0; pending {
			deepRuns = append(deepRuns, [2]int{i, j})
			f.begin(id, mask, 0)
		} else {
			f.begin(id, runs[i].code, runs[i].slen)
		}
		i = j
	}
	if last := runs[len(runs)-1]; pending && last.start>>8 != 1<<24-1 {
		f.begin(last.start>>8+1, last.code, last.slen)
	}

	s := &Snapshot[V]{inline: c.inline}
	s.asm = hasAsm()
	if f.fast {
		f.fill(1 << 24)
		hugePages(f.entries, true)
		f.count = 1 << 24
	} else {
		f.close(1 << 16)
		s.top = f.top
		s.bits, s.ends = f.sorted()
	}
	s.deepFirst = f.count

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
				f.append(before.code, before.slen)
				s.starts = append(s.starts, 0)
			}
			for _, r := range group {
				f.append(r.code, r.slen)
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
	if s.top != nil {
		s.makeHints()
	}
	if c.inline {
		s.special = mask
	} else {
		s.values = slices.Clip(c.values)
	}
	s.header = header{layout: o.Layout, width: uint8(width), inline: c.inline, lengths: o.Prefixes, routes: uint32(len(rs)),
		entries: f.count, maxCode: c.max, nodes: uint32(len(s.ends) / 4), deepFirst: s.deepFirst, slots: uint32(len(s.deep))}
	return s
}

// shiftOf is the shift of a hash with so many slots, a power of two.
func shiftOf(size int) uint8 { return uint8(32 - bits.Len(uint(size-1))) }
