package lpctrie

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// Layout chooses between size and speed of a [Snapshot].
type Layout uint8

const (
	// Compact takes a few bytes per route. A lookup reads two bitmap cells,
	// the first of which the processor keeps in its nearest caches, and an
	// entry.
	Compact Layout = iota
	// Fast has one entry for each of the 2^24 /24s, one to four bytes wide
	// according to the values: 16 to 64 MiB. A lookup reads one entry.
	Fast
)

// CompileOptions says what a snapshot is to be like. The zero value is a
// compact one without prefixes.
type CompileOptions struct {
	Layout Layout
	// Prefixes keeps the length of each match, for [Snapshot.LookupPrefix]: a
	// byte per entry, and neighbours with equal values merge only if their
	// lengths are equal too. Other lookups do not become slower.
	Prefixes bool
}

// A Snapshot is a routing table in a form for lookups alone. It never changes,
// has no pointers but those in V, and may be used by any number of goroutines.
//
// It answers like [Table.Lookup] of the table it was compiled from. Routes
// with a TOS are not part of it.
//
// The compact layout is a list of entries, one for each stretch of addresses
// with the same answer, and the way to it:
//
//	address   aaaaaaaaaaaabbbbbbccccccdddddddd
//
//	top       4096 cells, chosen by a; bit b of a cell's bitmap says whether
//	          that /18 has a cell of its own; if not, all of it shares the
//	          last entry of the nearest cell before
//	cells     bit c says whether that /24 begins an entry of its own or shares
//	          that of the one before
//	entries   a code of 1 to 4 bytes, chosen by the largest: 0 for no route,
//	          otherwise a value; all ones if routes longer than /24 are inside
//
// so that equal neighbours are stored once. A cell is 12 bytes: 64 bits and the
// number of the entry before its first. What is below a /24 is found by a hash
// of its 24 bits: a sorted list of last octets at which entries begin.
type Snapshot[V any] struct {
	index
	inline bool  // codes are values plus one
	shift  uint8 // see inlineValue
	values []V   // by code minus one, unless inline
}

// An index is the part of a snapshot that does not depend on V: from an address
// to a code.
type index struct {
	top       *[topCells]cell // nil if fast
	cells     []cell
	entries   []byte // width bytes each, three spare ones behind
	mask      uint32 // the code of all ones, width bytes
	width     uint32
	deepShift uint8 // of the hash
	deep      []slot
	deepFirst uint32 // number of the first entry below a /24
	starts    []byte // last octet at which each of those begins
	lengths   []byte // suffix length of each entry, or nil
	header    header
}

const topCells = 1 << 12

// A cell is 64 bits in two halves, so that it takes 12 bytes and not 16, and
// the number of the entry (or cell) before its first; that is all ones before
// the very first.
type cell struct{ lo, hi, base uint32 }

func (c *cell) bits() uint64 { return uint64(c.lo) | uint64(c.hi)<<32 }

// position returns the number that the position p & 63 has, and whether it is
// that of the position's own bit (1) or of one before (0).
func (c *cell) position(p uint32) (n, own uint32) {
	b := c.bits() << (^p & 63)
	return c.base + uint32(bits.OnesCount64(b)), uint32(b >> 63)
}

// entry returns the number of the entry for the position p & 63 if own is 1,
// the last one if own is 0.
func (c *cell) entry(p, own uint32) uint32 {
	return c.base + uint32(bits.OnesCount64(c.bits()<<(^p&-own&63)))
}

// A slot of the hash: a /24 and the number of its entries minus one in the
// lowest 8 bits, and its first entry, 0 for an empty slot.
type slot struct{ id, first uint32 }

// entry returns the code at a position.
func (s *index) entry(at uint32) uint32 {
	return load(s.entries, uint(at)*uint(s.width)) & s.mask
}

// load reads four bytes. With three bounds the compiler need not care for a
// slice without capacity.
func load(b []byte, at uint) uint32 { return binary.LittleEndian.Uint32(b[at : at+4 : at+4]) }

// find returns the number of the entry of an address, above /24.
func (s *index) find(key uint32) uint32 {
	if s.top == nil {
		return key >> 8
	}
	n, own := s.top[key>>20].position(key >> 14)
	return s.cells[n].entry(key>>8, own)
}

// code returns the code of an address.
func (s *index) code(key uint32) uint32 {
	at := key >> 8
	if s.top != nil { // find, without a call
		n, own := s.top[key>>20].position(key >> 14)
		at = s.cells[n].entry(at, own)
	}
	c := s.entry(at)
	if c == s.mask {
		return s.entry(s.findDeep(key))
	}
	return c
}

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

// Lookup returns the value of the longest match. It does not allocate.
// Anything but an IPv4 address finds nothing.
func (s *Snapshot[V]) Lookup(a netip.Addr) (v V, ok bool) {
	if a.Is4() {
		if c := s.code(key4(a.As4())); s.inline && c != 0 {
			return inlineValue[V](c-1, s.shift), true
		} else {
			return s.Value(c)
		}
	}
	return v, false
}

// LookupKey is Lookup for an address in host order (see [KeyOf]).
func (s *Snapshot[V]) LookupKey(key uint32) (v V, ok bool) {
	if c := s.code(key); s.inline && c != 0 {
		return inlineValue[V](c-1, s.shift), true
	} else {
		return s.Value(c)
	}
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
	v, ok = s.Value(c)
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
	if s.inline {
		if code == 0 {
			return v, false
		}
		return inlineValue[V](code-1, s.shift), true
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

// Len returns the number of routes that were compiled.
func (s *Snapshot[V]) Len() int { return int(s.header.routes) }

// Entries returns the number of different stretches of addresses, which is what
// the size depends on.
func (s *Snapshot[V]) Entries() int { return int(s.header.entries) }

// Bytes returns the size in memory, values in a list not counted.
func (s *Snapshot[V]) Bytes() int { return s.header.bytes() }

// Width returns the size of an entry in bytes, 1 to 4.
func (s *Snapshot[V]) Width() int { return int(s.width) }

// Layout returns the layout.
func (s *Snapshot[V]) Layout() Layout {
	return s.header.layout
}

// batch is how many lookups go through the stages together. Each stage is a
// loop of loads that do not depend on each other, so that the processor waits
// for all of them at once.
const batch = 32

// LookupCodes looks up addresses in host order and stores their codes, for
// [Snapshot.Value]. It works on as many as the shorter slice holds and returns
// how many found a route. It does not allocate. Large numbers of addresses take
// a fraction of the time of as many single lookups.
func (s *Snapshot[V]) LookupCodes(keys, codes []uint32) int {
	n := min(len(keys), len(codes))
	keys, codes = keys[:n], codes[:n]
	found := 0
	for len(keys) >= batch && len(codes) >= batch {
		found += s.codes32((*[batch]uint32)(keys), (*[batch]uint32)(codes))
		keys, codes = keys[batch:], codes[batch:]
	}
	for i, k := range keys {
		c := s.code(k)
		codes[i] = c
		if c != 0 {
			found++
		}
	}
	return found
}

func (s *index) codes32(keys, codes *[batch]uint32) int {
	entries, width, mask := s.entries, uint(s.width), s.mask
	missed, deep := uint64(0), uint64(0) // counted without branches
	if s.top == nil {
		for i, k := range keys {
			c := load(entries, uint(k>>8)*width) & mask
			codes[i] = c
			missed += (uint64(c) - 1) >> 63
			deep += (uint64(c^mask) - 1) >> 63
		}
	} else {
		top, cells := s.top, s.cells
		for i, k := range keys {
			n, own := top[k>>20].position(k >> 14)
			codes[i] = cells[n].entry(k>>8, own)
		}
		for i, at := range codes {
			c := load(entries, uint(at)*width) & mask
			codes[i] = c
			missed += (uint64(c) - 1) >> 63
			deep += (uint64(c^mask) - 1) >> 63
		}
	}
	if deep != 0 {
		for i, c := range codes {
			if c == mask {
				c = s.entry(s.findDeep(keys[i]))
				codes[i] = c
				missed += (uint64(c) - 1) >> 63
			}
		}
	}
	return batch - int(missed)
}

// LookupBatch looks up addresses and stores the values of their longest matches
// and whether there are any; where there is none the value is the zero one. It
// works on as many as the shortest slice holds and returns how many found a
// route. It does not allocate.
func (s *Snapshot[V]) LookupBatch(as []netip.Addr, vs []V, oks []bool) int {
	n := min(len(as), len(vs), len(oks))
	found := 0
	var keys, codes [batch]uint32
	for at := 0; at < n; at += batch {
		part := as[at:min(at+batch, n)]
		other := uint32(0) // bit i: not IPv4
		for i, a := range part {
			keys[i&(batch-1)] = 0
			if a.Is4() {
				keys[i&(batch-1)] = key4(a.As4())
			} else {
				other |= 1 << i
			}
		}
		if len(part) == batch {
			s.codes32(&keys, &codes)
		} else {
			for i := range part {
				codes[i&(batch-1)] = s.code(keys[i&(batch-1)])
			}
		}
		for i := range part {
			c := codes[i&(batch-1)]
			if other>>i&1 != 0 {
				c = 0
			}
			v, ok := s.Value(c)
			vs[at+i], oks[at+i] = v, ok
			if ok {
				found++
			}
		}
	}
	return found
}
