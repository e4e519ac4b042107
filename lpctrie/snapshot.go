package lpctrie

import (
	"net/netip"
)

// Layout chooses between size and speed of a [Snapshot].
type Layout uint8

// Layouts. The zero value is Compact.
const (
	// Compact takes a few bytes per route. A lookup reads the number of a /16's
	// node, a word of that node's bitmap, where its entries are, and an entry.
	Compact Layout = iota
	// Fast has one entry for each of the 2^24 /24s, of one, two or four bytes
	// according to the values: 16 to 64 MiB. A lookup reads one entry.
	Fast
)

// CompileOptions says what a snapshot is to be like. The zero value is a
// compact one without prefixes.
type CompileOptions struct {
	Layout Layout
	// Prefixes keeps the length of each match, for [Snapshot.LookupPrefix]: a
	// byte per entry (16 MiB with Fast), and neighbours with equal values merge
	// only if their lengths are equal too. Other lookups do not become slower.
	Prefixes bool
}

// A Snapshot is a routing table in a form for lookups alone. It never changes,
// has no pointers but those in V, and may be used by any number of goroutines.
//
// It answers like [Table.Lookup] of the table it was compiled from: of the
// aliases of a prefix only the first one without a TOS is part of it.
//
// The compact layout is a list of entries, one for each stretch of addresses
// with the same answer, and the way to it:
//
//	address   aaaaaaaaaaaaaaaa bb cccccc dddddddd
//
//	top       the number of the node of the /16 a; neighbours of which each has
//	          one answer all over, the same, share a node
//	bits      four words for each node, chosen by b: bit c says that the /24
//	          after c begins an entry of its own, and does not share that of c
//	ends      for each of the words the entry of its last /24; the number of
//	          entries that begin behind c, as the word says, is taken off
//	entries   a code of 1 to 4 bytes, chosen by the largest: 0 for no route,
//	          otherwise a value; all ones if routes longer than /24 are inside
//	hints     of the /16 a: where its first entry is and how far away its last, to
//	          read near the entry of an address before it is known
//
// so that equal neighbours are stored once. The nodes stand in the order of how
// many entries they have, which keeps those that most routes are in together,
// in as few cache lines as possible. What is below a /24 is found by a hash
// of its 24 bits: a sorted list of last octets at which entries begin.
type Snapshot[V any] struct {
	index
	inline bool // codes are values plus one
	values []V  // by code minus one, unless inline
}

// An index is the part of a snapshot that does not depend on V: from an address
// to a code.
type index struct {
	top       *[1 << 16]uint16 // nil if fast
	hints     *[1 << 16]hint   // nil if fast
	bits      []uint64         // four for each node
	ends      []uint32         // as many
	entries   []byte           // width bytes each, three spare ones behind
	zero      uint32           // 0, which the compiler does not know
	mask      uint32           // the code of all ones, width bytes
	width     uint32
	special   uint32 // codes from here on are not a value plus one: mask if inline, otherwise 0
	deepShift uint8  // of the hash
	asm       bool   // the processor has what the stages in assembly need
	deep      []slot
	deepFirst uint32 // number of the first entry below a /24
	starts    []byte // last octet at which each of those begins
	lengths   []byte // suffix length of each entry, or nil
	header    header
}

// A slot of the hash: a /24 and the number of its entries minus one in the
// lowest 8 bits, and its first entry, 0 for an empty slot.
type slot struct{ id, first uint32 }

// find returns the number of the entry of an address, above /24.
func (s *index) find(key uint32) uint32 {
	if s.top == nil {
		return key >> 8
	}
	return s.entryOf(wordOf(s.top, key), key)
}

// wordOf returns the number of an address's word of bits. It takes top, which
// lookups have in a register and know not to be nil.
func wordOf(top *[1 << 16]uint16, key uint32) uint { return uint(top[key>>16])*4 + uint(key>>14&3) }

// A hint says where in entries a /16 has its own, its first one being that of a
// /16 before it if its first /24 begins none: in the lowest 10 bits the way from
// the first to the last in bytes, above them where to begin in units of 16 bytes.
type hint uint32

// hintGap is the size of a cache line and the distance between the two bytes that
// a lookup reads ahead. It begins half a line in front of where it
// would expect the entry.
const hintGap = 64

// near returns where in entries an address has its entry, minus half a line, if
// those of its /16 are spread evenly.
func (h hint) near(key uint32) uint { return uint(h>>6)&^15 + uint(key>>8&255)*uint(h&1023)>>8 }

// findDeep returns the number of the entry of an address in a /24 with longer
// routes. The first entry, which says nothing about any address, stands for an
// address that is not there, which only a forged snapshot can bring about.
func (s *index) findDeep(key uint32) uint32 {
	size := uint32(len(s.deep))
	for i := hash24(key>>8, s.deepShift); ; i++ {
		sl := s.deep[i&(size-1)]
		if sl.first == 0 {
			return 0
		}
		if sl.id>>8 != key>>8 {
			continue
		}
		// The last start that is not above the last octet; the first is 0.
		starts := s.starts[sl.first-s.deepFirst:][:sl.id&255+1]
		lo, n := 0, len(starts)
		for n > 1 {
			half := n / 2
			if starts[lo+half] <= byte(key) {
				lo += half
			}
			n -= half
		}
		return sl.first + uint32(lo)
	}
}

func hash24(k uint32, shift uint8) uint32 { return k * 0x9e3779b1 >> (shift & 31) }

// The lookups are written out: a call inside would take a fifth of their time.
// Code 0 and the others take the same way, since whether there is a route is
// hard to foresee for a processor.

// Lookup returns the value of the longest match. It does not allocate.
// Anything but an IPv4 address finds nothing.
func (s *Snapshot[V]) Lookup(a netip.Addr) (v V, ok bool) {
	if !a.Is4() {
		return v, false
	}
	key := key4(a.As4())
	top := s.top
	if top == nil {
		c := s.entry(key >> 8)
		if c >= s.special {
			return s.lookupSpecial(key, c)
		}
		one := uint32(0)
		if c != 0 {
			one = 1
		}
		return inlineValue[V](c - one), c != 0
	}
	c := s.entry(s.entryOf(wordOf(top, key), key)) | s.ahead(s.hints[key>>16], key)
	if c >= s.special {
		return s.lookupSpecial(key, c)
	}
	one := uint32(0)
	if c != 0 {
		one = 1
	}
	return inlineValue[V](c - one), c != 0
}

// LookupKey is Lookup for an address in host order (see [KeyOf]). It reads nothing
// ahead: it is faster where the table is in a near cache, and slower where it
// is far away.
func (s *Snapshot[V]) LookupKey(key uint32) (v V, ok bool) {
	top := s.top
	if top == nil {
		c := s.entry(key >> 8)
		if c >= s.special {
			return s.lookupSpecial(key, c)
		}
		one := uint32(0)
		if c != 0 {
			one = 1
		}
		return inlineValue[V](c - one), c != 0
	}
	c := s.entry(s.entryOf(wordOf(top, key), key))
	if c >= s.special {
		return s.lookupSpecial(key, c)
	}
	one := uint32(0)
	if c != 0 {
		one = 1
	}
	return inlineValue[V](c - one), c != 0
}

// lookupSpecial ends a lookup that found a code which says that there are longer
// routes, or values in a list.
//
//go:noinline
func (s *Snapshot[V]) lookupSpecial(key, c uint32) (V, bool) {
	if c == s.mask {
		c = s.entry(s.findDeep(key))
	}
	return s.value(c)
}

// LookupPrefix returns the prefix of the longest match as well, if the
// snapshot was compiled with Prefixes; otherwise the prefix is the zero one.
func (s *Snapshot[V]) LookupPrefix(a netip.Addr) (v V, p netip.Prefix, ok bool) {
	key, is4 := KeyOf(a)
	if !is4 {
		return v, p, false
	}
	at := s.find(key)
	c := s.entry(at)
	if c == s.mask {
		at = s.findDeep(key)
		c = s.entry(at)
	}
	v, ok = s.value(c)
	if ok && s.lengths != nil {
		slen := s.lengths[at]
		p = prefixOf(key&^suffixMask(slen), slen)
	}
	return v, p, ok
}

// Value returns the value that a code of [Snapshot.LookupCodes] stands for, and
// false for code 0, no route, and for numbers that are no code of this
// snapshot's. If [Snapshot.Inline] is true the value is the code minus one.
func (s *Snapshot[V]) Value(code uint32) (v V, ok bool) {
	if code > s.header.maxCode {
		return v, false
	}
	return s.value(code)
}

// value is Value of a code that an entry has.
func (s *Snapshot[V]) value(code uint32) (v V, ok bool) {
	if s.inline {
		if code == 0 {
			return v, false
		}
		return inlineValue[V](code - 1), true
	}
	if i := int(code) - 1; uint(i) < uint(len(s.values)) {
		return s.values[i], true
	}
	return v, false
}

// Inline reports whether codes are values plus one: V is an integer type and no
// value is negative or above 16,777,213. Otherwise values are in a list, which
// costs a lookup one more access to memory.
func (s *Snapshot[V]) Inline() bool { return s.inline }

// Len returns the number of prefixes that were compiled.
func (s *Snapshot[V]) Len() int { return int(s.header.routes) }

// Entries returns the number of different stretches of addresses, which is what
// the size depends on.
func (s *Snapshot[V]) Entries() int { return int(s.header.entries) }

// Bytes returns the size in memory without the list of values. The serialised
// form has a quarter of a MiB less, the hints, in the compact layout.
func (s *Snapshot[V]) Bytes() int {
	n := s.header.bytes()
	if s.hints != nil {
		n += 4 * len(s.hints)
	}
	return n
}

// Width returns the size of an entry in bytes, 1 to 4 (1, 2 or 4 with Fast).
func (s *Snapshot[V]) Width() int { return int(s.width) }

// Layout returns the layout.
func (s *Snapshot[V]) Layout() Layout {
	return s.header.layout
}

// batch is how many lookups go through a stage together. Each stage is a
// loop of loads that do not depend on each other, so that the processor waits
// for all of them at once; where there is an instruction for that, they are
// asked for a stage ahead.
const (
	batch     = 64
	batchFast = 2 * batch // where there are but two short stages
)

// LookupCodes looks up addresses in host order and stores their codes, for
// [Snapshot.Value]. It works on as many as the shorter slice holds and returns
// how many found a route. It does not allocate. Large numbers of addresses take
// a fraction of the time of as many single lookups.
func (s *Snapshot[V]) LookupCodes(keys, codes []uint32) int {
	n := min(len(keys), len(codes))
	return s.lookup(keys[:n], codes[:n])
}

// lookup stores the codes of keys, as many, and returns how many are not 0.
// While one group of keys is at a stage the one after it is at the stage
// before. Between the stages codes hold the number of a word of bits and that
// of an entry.
func (s *index) lookup(keys, codes []uint32) (found int) {
	if s.top == nil {
		for from := 0; from < len(keys)+batchFast; from += batchFast {
			if from < len(keys) {
				to := min(from+batchFast, len(keys))
				s.direct(keys[from:to], codes[from:to])
			}
			if at := from - batchFast; at >= 0 {
				to := min(at+batchFast, len(keys))
				found += s.finish(keys[at:to], codes[at:to])
			}
		}
		return found
	}
	for from := 0; from < len(keys)+2*batch; from += batch {
		if from < len(keys) {
			to := min(from+batch, len(keys))
			s.words(keys[from:to], codes[from:to])
		}
		if at := from - batch; at >= 0 && at < len(keys) {
			to := min(at+batch, len(keys))
			s.positions(keys[at:to], codes[at:to])
		}
		if at := from - 2*batch; at >= 0 && at < len(keys) {
			to := min(at+batch, len(keys))
			found += s.finish(keys[at:to], codes[at:to])
		}
	}
	return found
}

// direct is the first stage of the fast layout.
func (s *index) direct(keys, codes []uint32) {
	codes = codes[:len(keys)]
	if s.asm {
		directStage(s, keys, codes)
		return
	}
	for i, k := range keys {
		codes[i] = k >> 8
	}
	s.prefetchEntries(codes)
}

// words is the first stage of the compact layout.
func (s *index) words(keys, codes []uint32) {
	codes = codes[:len(keys)]
	if s.asm {
		wordStage(s, keys, codes)
		return
	}
	for i, k := range keys {
		codes[i] = uint32(wordOf(s.top, k))
	}
	s.prefetchWords(codes)
}

// positions is its second stage.
func (s *index) positions(keys, codes []uint32) {
	codes = codes[:len(keys)]
	if s.asm {
		positionStage(s, keys, codes)
		return
	}
	for i, k := range keys {
		codes[i] = s.entryOf(uint(codes[i]), k)
	}
	s.prefetchEntries(codes)
}

// finish is the last stage.
func (s *index) finish(keys, codes []uint32) int {
	codes = codes[:len(keys)]
	mask := s.mask
	missed, deep := 0, 0 // counted without branches
	if s.asm {
		missed, deep = entryStage(s, codes)
	} else {
		for i, at := range codes {
			c := s.entry(at)
			codes[i] = c
			missed += int((uint64(c) - 1) >> 63)
			deep += int((uint64(c^mask) - 1) >> 63)
		}
	}
	if deep != 0 {
		for i, c := range codes {
			if c == mask {
				c = s.entry(s.findDeep(keys[i]))
				codes[i] = c
				missed += int((uint64(c) - 1) >> 63)
			}
		}
	}
	return len(codes) - missed
}

// LookupBatch looks up addresses and stores the values of their longest matches
// in vs and whether there are any in oks; where there is none, as for anything
// but IPv4, the value is the zero one. It works on as many as the shortest slice
// holds and returns how many found a route. It does not allocate.
func (s *Snapshot[V]) LookupBatch(as []netip.Addr, vs []V, oks []bool) int {
	n := min(len(as), len(vs), len(oks))
	found := 0
	const part = 4 * batch
	var keys, codes [part]uint32
	for len(as) > 0 && n > 0 {
		m := min(part, n)
		other := 0 // not IPv4
		for i, a := range as[:m] {
			keys[i&(part-1)] = 0
			if a.Is4() {
				keys[i&(part-1)] = key4(a.As4())
			} else {
				other++
			}
		}
		s.lookup(keys[:m], codes[:m])
		if other > 0 {
			for i, a := range as[:m] {
				if !a.Is4() {
					codes[i&(part-1)] = 0
				}
			}
		}
		for i := range as[:m] {
			v, ok := s.value(codes[i&(part-1)])
			vs[i], oks[i] = v, ok
			if ok {
				found++
			}
		}
		as, vs, oks, n = as[m:], vs[m:], oks[m:], n-m
	}
	return found
}
