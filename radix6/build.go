package radix6

import (
	"encoding/binary"
	"math/bits"
)

// A codedRoute is a route with the code of its value.
type codedRoute struct {
	key  key
	code uint32
	bits uint8
}

// A run is a stretch of addresses with one answer, up to the next run.
type run struct {
	start key
	code  uint32
}

func (k key) less(o key) bool { return k.hi < o.hi || k.hi == o.hi && k.lo < o.lo }

// last returns the last address of a prefix.
func (k key) last(n uint8) key {
	if n <= 64 {
		return key{k.hi | ^uint64(0)>>n, ^uint64(0)}
	}
	return key{k.hi, k.lo | ^uint64(0)>>(n-64)}
}

// next returns the address behind k; it is false behind the last.
func (k key) next() (key, bool) {
	lo, carry := bits.Add64(k.lo, 1, 0)
	hi, carry := bits.Add64(k.hi, 0, carry)
	return key{hi, lo}, carry == 0
}

// sweep turns routes, sorted by address and then by length, into runs. The
// first starts at ::, and no two neighbours have the same code. It uses the room
// of buf.
func sweep(rs []codedRoute, buf []run) []run {
	type open struct {
		last key
		code uint32
	}
	runs := append(buf[:0], run{})
	var stack [130]open // stack[0] stands for no route
	stack[0].last = key{^uint64(0), ^uint64(0)}
	depth := 0
	emit := func(start key, code uint32) {
		n := len(runs) - 1
		if runs[n].start == start {
			if n > 0 && runs[n-1].code == code {
				runs = runs[:n]
			} else {
				runs[n].code = code
			}
		} else if runs[n].code != code {
			runs = append(runs, run{start, code})
		}
	}
	closeOne := func() {
		depth--
		if next, ok := stack[depth+1].last.next(); ok {
			emit(next, stack[depth].code)
		}
	}
	for i := range rs {
		r := &rs[i]
		for depth > 0 && stack[depth].last.less(r.key) {
			closeOne()
		}
		emit(r.key, r.code)
		depth++
		stack[depth] = open{r.key.last(r.bits), r.code}
	}
	for depth > 0 {
		closeOne()
	}
	return runs
}

// An item is an entry of a node and the place where it begins.
type item struct {
	place uint32
	code  uint32 // or a reference, in tables of the second digit
}

// A builder turns runs into an index.
type builder struct {
	index
	full bool // a number outgrew its field: width is too small, or the table too large
}

// buildIndex makes an index of runs whose codes are at most maxCode. It is nil
// when the table is too large for the form, beyond about 25 million runs.
func buildIndex(runs []run, maxCode uint32, dense bool) *index {
	width := uint32(max(1, (bits.Len32(maxCode)+7)/8))
	used := 0 // /16s with more than one answer
	for i, last := 0, uint64(1<<16); i < len(runs); i++ {
		if r := runs[i].start; r.hi>>48 != last && (r.hi<<16 != 0 || r.lo != 0) {
			last = r.hi >> 48
			used++
		}
	}
	dense = dense && used <= denseMax
	if dense {
		width = 4
	}
	for ; width <= 4; width++ {
		b := builder{index: index{width: width, mask: uint32(1<<(8*width) - 1), maxCode: maxCode, dense: dense, asm: hasAsm(), wide: hasWide(), top: new([1 << 16]uint32)}}
		// A rough guess of the sizes, so that little is copied.
		refs := len(runs) / 4
		if dense {
			refs = used<<16 + 2*used + 1
		}
		b.refs = make([]uint32, 0, refs)
		b.lists = make([]byte, 0, len(runs)*int(width+3))
		b.fill(runs)
		if !b.full {
			b.finish()
			return &b.index
		}
	}
	return nil
}

// finish trims the arrays and adds the bytes that a search may touch behind
// the last list and a load of 4 bytes behind the last code.
func (b *builder) finish() {
	b.upper, b.lower, b.refs = trim(b.upper), trim(b.lower), trim(b.refs)
	b.skips, b.links = trim(b.skips), trim(b.links)
	b.lists = trim(append(b.lists, make([]byte, listSpare)...))
	b.codes = trim(append(b.codes, make([]byte, 4)...))
}

// trim gives back room for growth, where there is much.
func trim[T any](s []T) []T {
	if cap(s)-len(s) <= len(s)/64 {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

// fill makes the tables of the second digit and all below.
func (b *builder) fill(runs []run) {
	var items []item
	before := uint32(0)
	table := uint32(0)
	filled := -1 // last /16 that is done
	same := func(to int) {
		for ; filled < to; filled++ {
			b.top[filled+1] = table
		}
	}
	for i := 0; i < len(runs); {
		group := runs[i].start.hi >> 48
		j := i + 1
		for j < len(runs) && runs[j].start.hi>>48 == group {
			j++
		}
		// Everything between the last /16 with runs and this one has one answer.
		if filled+1 < int(group) {
			table = b.table([]item{{0, before}}, true)
			same(int(group) - 1)
		}
		sub := runs[i:j]
		if sub[0].start.hi<<16 == 0 && sub[0].start.lo == 0 {
			before, sub = sub[0].code, sub[1:]
		}
		items = b.items(items[:0], 1, sub, before)
		if !b.dense && (j-i)*int(b.width)*flatBytes >= 1024*12 {
			table = flatBit | b.number(b.flatTable(items, true))
		} else {
			table = b.table(items, true)
		}
		same(int(group))
		before = runs[j-1].code
		i = j
	}
	if filled < 1<<16-1 {
		table = b.table([]item{{0, before}}, true)
		same(1<<16 - 1)
	}
}

// items lists the entries of the region whose runs differ first at digit d,
// the first of which begins at 0. The runs start inside the region, not at its
// beginning, where the code is before.
func (b *builder) items(items []item, d uint, runs []run, before uint32) []item {
	items = append(items, item{0, before})
	put := func(place, code uint32) {
		if n := len(items) - 1; items[n].place == place {
			items[n].code = code
		} else {
			items = append(items, item{place, code})
		}
	}
	restore := uint32(1 << 16) // place behind a node, which needs an entry of its own
	for i := 0; i < len(runs); {
		place := digit(runs[i].start.hi, runs[i].start.lo, d)
		j := i + 1
		for j < len(runs) && digit(runs[j].start.hi, runs[j].start.lo, d) == place {
			j++
		}
		if restore < place {
			put(restore, before)
		}
		sub, first := runs[i:j], before
		if sub[0].start.endsAt(d) {
			first, sub = sub[0].code, sub[1:]
		}
		before = runs[j-1].code
		restore = 1 << 16
		switch {
		case len(sub) == 0:
			put(place, first)
		case d == 1:
			put(place, b.node(d+1, sub, first))
			restore = place + 1
		default:
			put(place, b.link(b.node(d+1, sub, first)))
			restore = place + 1
		}
		i = j
	}
	if restore < 1<<16 {
		put(restore, before)
	}
	return items
}

// endsAt reports whether all digits behind number d are zero.
func (k key) endsAt(d uint) bool {
	if d < 4 {
		return k.hi<<(16*(d+1)) == 0 && k.lo == 0
	}
	return k.lo<<(16*(d-3)) == 0
}

// link returns a code that leads to a reference.
func (b *builder) link(ref uint32) uint32 {
	if ref>>kindShift == kindCode {
		return ref
	}
	b.links = append(b.links, ref)
	c := uint64(b.maxCode) + uint64(len(b.links))
	if c > uint64(b.mask) {
		b.full = true
	}
	return uint32(c)
}

// number checks a number that goes into a reference.
func (b *builder) number(n int) uint32 {
	if n > numberMax {
		b.full = true
	}
	return uint32(n) & numberMax
}

// node makes the node of a region, and returns a reference to it: of the runs
// inside, and the code before the first of them. Its depth is at most 8.
func (b *builder) node(d uint, runs []run, before uint32) uint32 {
	first, last := runs[0].start, runs[len(runs)-1].start
	agree := uint(common(first, last) / 16) // digits; the last one is never skipped
	if k := min(agree, 7) - d; agree >= d && k > 0 && !(len(runs) == 1 && first.endsAt(d)) {
		mask := key{^uint64(0), ^uint64(0)}.mask(int(16 * (d + k)))
		mask.hi &^= key{^uint64(0), ^uint64(0)}.mask(int(16 * d)).hi
		mask.lo &^= key{^uint64(0), ^uint64(0)}.mask(int(16 * d)).lo
		s := skip{
			path: key{first.hi & mask.hi, first.lo & mask.lo}, mask: mask, digits: uint8(k),
			below: before, above: runs[len(runs)-1].code,
		}
		if first.endsAt(d + k - 1) {
			before, runs = runs[0].code, runs[1:]
		}
		if len(runs) == 0 {
			s.child = before
		} else {
			s.child = b.node(d+k, runs, before)
		}
		b.skips = append(b.skips, s)
		return kindOther<<kindShift | isSkip | b.number(len(b.skips)-1)
	}
	items := b.items(nil, d, runs, before)
	n := len(items)
	if n > listMax && d == 2 && b.dense {
		return kindTable<<kindShift | b.number(b.flatTable(items, false))
	}
	if n > longMax || n > listMax && d == 2 { // most searches end at digit 2: no long lists there
		return kindTable<<kindShift | b.table(items, false)
	}
	for len(b.lists)%listAlign != 0 {
		b.lists = append(b.lists, 0)
	}
	at := b.number(len(b.lists) / listAlign)
	ref := at | kindOther<<kindShift
	if n <= listMax {
		if at > offsetMax {
			b.full = true
		}
		ref = kindList<<kindShift | uint32(n-1)<<placesShift | at&offsetMax
	} else {
		b.lists = append(b.lists, byte(n-1), 0)
	}
	for _, it := range items[1:] {
		b.lists = binary.LittleEndian.AppendUint16(b.lists, uint16(it.place))
	}
	b.values(items)
	return ref
}

func (b *builder) values(items []item) {
	for _, it := range items {
		b.lists = b.appendCode(b.lists, it.code)
	}
}

func (b *builder) appendCode(to []byte, code uint32) []byte {
	for range b.width {
		to = append(to, byte(code))
		code >>= 8
	}
	return to
}

// table makes a table, of references for the second digit and of codes below,
// and returns its number.
func (b *builder) table(items []item, second bool) uint32 {
	count := len(b.codes) / int(b.width)
	if second {
		count = len(b.refs)
	}
	if second && b.dense {
		return b.denseRefs(items)
	}
	number := len(b.upper) / 16
	for range 16 {
		b.upper = append(b.upper, cell{})
	}
	upper := b.upper[number*16:]
	at := uint32(0) // upper cells below this have their base
	for i := 0; i < len(items); {
		block := items[i].place >> 6
		var marks uint64
		first := count
		for ; i < len(items) && items[i].place>>6 == block; i++ {
			marks |= 1 << (items[i].place & 63)
			if second {
				b.refs = append(b.refs, items[i].code)
			} else {
				b.codes = b.appendCode(b.codes, items[i].code)
			}
			count++
		}
		for ; at <= block>>6; at++ {
			upper[at].base = uint32(len(b.lower)) - 1
		}
		u := &upper[block>>6]
		m := u.bits() | 1<<(block&63)
		u.lo, u.hi = uint32(m), uint32(m>>32)
		b.lower = append(b.lower, cell{uint32(marks), uint32(marks >> 32), uint32(first) - 1})
	}
	for ; at < 16; at++ {
		upper[at].base = uint32(len(b.lower)) - 1
	}
	return b.number(number)
}

// denseRefs stores the entries of the second digit at every place.
func (b *builder) denseRefs(items []item) uint32 {
	number := uint32(len(b.refs))
	if len(items) == 1 {
		b.refs = append(b.refs, items[0].code)
		return number
	}
	for i, it := range items {
		end := uint32(1 << 16)
		if i+1 < len(items) {
			end = items[i+1].place
		}
		for range end - it.place {
			b.refs = append(b.refs, it.code)
		}
	}
	return number | flatBit
}

// flatTable makes a table with a lower cell for every block and returns the
// number of the first.
func (b *builder) flatTable(items []item, second bool) int {
	number := len(b.lower)
	i := 0
	for block := range uint32(1024) {
		var marks uint64
		first := len(b.codes) / int(b.width)
		if second {
			first = len(b.refs)
		}
		for ; i < len(items) && items[i].place>>6 == block; i++ {
			marks |= 1 << (items[i].place & 63)
			if second {
				b.refs = append(b.refs, items[i].code)
			} else {
				b.codes = b.appendCode(b.codes, items[i].code)
			}
		}
		b.lower = append(b.lower, cell{uint32(marks), uint32(marks >> 32), uint32(first) - 1})
	}
	return number
}
