package radix6

import (
	"math/bits"
	"net/netip"
)

// Layout chooses between size and speed of a [Snapshot].
type Layout uint8

// Layouts. The zero value is Compact.
const (
	// Compact takes some 14 bytes per route of an Internet table, 11 where there
	// are few values.
	Compact Layout = iota
	// Fast takes some 160 bytes per route of an Internet table to save steps of
	// the search: 256 KiB for each /16 in use, as long as there are no more than
	// 256 of them; a table with more is like Compact. It pays where lookups go
	// to few destinations. Where they are spread it does not.
	Fast
)

// CompileOptions says what a snapshot is to be like. The zero value is a
// compact one without prefixes.
type CompileOptions struct {
	Layout Layout
	// Prefixes keeps the length of each match, for [Snapshot.LookupPrefix], in
	// a second index, which takes some 10 bytes per route. Other lookups do
	// not become slower.
	Prefixes bool
}

// A Snapshot is a routing table in a form for lookups alone. It never changes,
// has no pointers but those in V, and may be used by any number of goroutines.
// It answers like the tree it was compiled from, with its [SourceMode], with two
// exceptions: of the routes of one prefix and source only the one of lowest
// metric is part of it, and it says of a match the prefix only, and only if
// compiled for that ([CompileOptions]).
type Snapshot[V any] struct {
	part
	lengths *part  // codes are lengths plus one; nil without prefixes
	inline  bool   // codes are values plus one
	direct  uint32 // answers if inline, otherwise 0
	words   bool   // see addrWords
	values  []V    // by code minus one, unless inline
	routes  int
	entries int
	layout  Layout
}

// A part is an index and what it takes to choose by source.
type part struct {
	index
	// Codes up to answers are values. Those above, up to maxCode, stand for
	// source lists: what to do with addresses whose longest prefix has
	// source-specific routes.
	answers uint32
	sources []sourceList
	runs    []run // of all lists
}

// A sourceList is a search among the sources of one destination: n runs. Where
// they say 0, that destination has no route for the source, and the code
// beyond stands for the destinations around it.
type sourceList struct {
	first, n, beyond uint32
}

// resolve turns the code of a destination into that of an answer.
func (p *part) resolve(c uint32, src key) uint32 {
	for c > p.answers {
		l := p.sources[c-p.answers-1]
		runs := p.runs[l.first : l.first+l.n]
		lo, n := 0, len(runs)
		for n > 1 {
			half := n / 2
			if !src.less(runs[lo+half].start) {
				lo += half
			}
			n -= half
		}
		if c = runs[lo].code; c == 0 {
			c = l.beyond
		}
	}
	return c
}

// Lookup returns the value of the best route to an address, from the
// unspecified source. It does not allocate. A zone is ignored; IPv4 addresses
// find nothing.
func (s *Snapshot[V]) Lookup(dst netip.Addr) (v V, ok bool) {
	if !s.words || !dst.Is6() {
		return s.lookupSlow(dst)
	}
	hi, lo := addrWords(dst)
	var c uint64
	if s.wide {
		c = wideFirst(&s.index, hi)
	} else if s.asm {
		c = asmFirst(&s.index, hi)
	} else {
		c = s.pureFirst(hi)
	}
	if c-1 < uint64(s.direct) {
		return inlineValue[V](uint32(c) - 1), true
	}
	return s.other(c, hi, lo)
}

// lookupSlow is Lookup where the words of an address have to be asked for.
//
//go:noinline
func (s *Snapshot[V]) lookupSlow(dst netip.Addr) (v V, ok bool) {
	hi, lo, ok := addrKey(dst)
	if !ok {
		return v, false
	}
	return s.LookupKey(hi, lo)
}

// LookupKey is Lookup for an address as two words (see [KeyOf]).
func (s *Snapshot[V]) LookupKey(hi, lo uint64) (v V, ok bool) {
	var c uint64
	if s.wide {
		c = wideFirst(&s.index, hi)
	} else if s.asm {
		c = asmFirst(&s.index, hi)
	} else {
		c = s.pureFirst(hi)
	}
	if c-1 < uint64(s.direct) {
		return inlineValue[V](uint32(c) - 1), true
	}
	return s.other(c, hi, lo)
}

// other goes on where first has stopped short of a value.
//
//go:noinline
func (s *Snapshot[V]) other(first, hi, lo uint64) (v V, ok bool) {
	c := uint32(first)
	if first > uint64(s.maxCode) {
		c = s.rest(first, hi, lo)
	}
	if c > s.answers {
		c = s.resolve(c, key{})
	}
	return s.Value(c)
}

// Contains reports whether there is a route to an address.
func (s *Snapshot[V]) Contains(dst netip.Addr) bool {
	_, ok := s.Lookup(dst)
	return ok
}

// LookupFrom returns the value of the best route from a source to a
// destination. The zero source is the unspecified address; a source that is
// IPv4 finds nothing. It does not allocate.
func (s *Snapshot[V]) LookupFrom(dst, src netip.Addr) (v V, ok bool) {
	d, sk, ok := queryKeys(dst, src)
	if !ok {
		return v, false
	}
	return s.Value(s.resolve(s.code(d.hi, d.lo), sk))
}

// LookupPrefix returns the prefix of the best route as well, if the snapshot
// was compiled with Prefixes; otherwise the prefix is the zero one.
func (s *Snapshot[V]) LookupPrefix(dst netip.Addr) (v V, p netip.Prefix, ok bool) {
	hi, lo, ok := addrKey(dst)
	if !ok {
		return v, p, false
	}
	v, ok = s.LookupKey(hi, lo)
	if ok && s.lengths != nil {
		if c := s.lengths.resolve(s.lengths.code(hi, lo), key{}); c != 0 { // 0 only in forged data
			p = key{hi, lo}.mask(int(c - 1)).prefix(int(c - 1))
		}
	}
	return v, p, ok
}

// Value returns the value that a code of [Snapshot.LookupCodes] stands for, and
// false for code 0, no route, and for numbers that are no code of this
// snapshot's. If [Snapshot.Inline] is true the value is the code minus one.
func (s *Snapshot[V]) Value(code uint32) (v V, ok bool) {
	if code-1 < s.direct {
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

// Len returns the number of prefixes that were compiled; those of one
// destination with several sources count once.
func (s *Snapshot[V]) Len() int { return s.routes }

// Entries returns the number of different stretches of addresses, which is what
// the size depends on.
func (s *Snapshot[V]) Entries() int { return s.entries }

// Layout returns the layout.
func (s *Snapshot[V]) Layout() Layout { return s.layout }

// Width returns the size of a code in bytes, 1 to 4.
func (s *Snapshot[V]) Width() int { return int(s.width) }

// Bytes returns the size in memory, values in a list not counted.
func (s *Snapshot[V]) Bytes() int {
	n := s.bytes()
	if s.lengths != nil {
		n += s.lengths.bytes()
	}
	return n
}

func (p *part) bytes() int {
	return 4<<16 + (len(p.upper)+len(p.lower))*12 + (len(p.refs)+len(p.links))*4 + len(p.codes) + len(p.lists) +
		len(p.skips)*48 + len(p.sources)*12 + len(p.runs)*24
}

// Key is an address as two words, most significant first.
type Key struct{ Hi, Lo uint64 }

// LookupCodes looks up addresses, from the unspecified source, and stores
// their codes, for [Snapshot.Value]. It works on as many as the shorter slice
// holds and returns how many found a route. It does not allocate. Large
// numbers of addresses take a fraction of the time of as many single lookups.
func (s *Snapshot[V]) LookupCodes(keys []Key, codes []uint32) int {
	n := min(len(keys), len(codes))
	return s.codesOf(keys[:n], codes[:n])
}

// LookupBatch looks up addresses, from the unspecified source, and stores the
// values of their routes in vs and whether there are any in oks; where there is
// none, as for IPv4, the value is the zero one. It works on as many as the
// shortest slice holds and returns how many found a route. It does not allocate.
func (s *Snapshot[V]) LookupBatch(dst []netip.Addr, vs []V, oks []bool) int {
	n := min(len(dst), len(vs), len(oks))
	found := 0
	const some = 64 // at a time
	var (
		keys  [some]Key
		codes [some]uint32
	)
	for at := 0; at < n; at += some {
		m := min(some, n-at)
		other := s.keysOf(dst[at:at+m], &keys)
		found += s.codesOf(keys[:m], codes[:m])
		for ; other != 0; other &= other - 1 {
			if i := bits.TrailingZeros64(other); codes[i] != 0 {
				codes[i] = 0
				found--
			}
		}
		vs, oks := vs[at:at+m], oks[at:at+m]
		for i, c := range codes[:m] {
			vs[i], oks[i] = s.Value(c)
		}
	}
	return found
}

// keysOf returns addresses as words, and a bit for each that is not IPv6.
func (s *Snapshot[V]) keysOf(dst []netip.Addr, keys *[64]Key) (other uint64) {
	if s.words {
		return wordsOf(dst, keys)
	}
	for i, a := range dst {
		hi, lo, ok := addrKey(a)
		keys[i&63] = Key{hi, lo}
		if !ok {
			other |= 1 << i
		}
	}
	return other
}

// wordsOf is keysOf where addrWords may be asked.
func wordsOf(dst []netip.Addr, keys *[64]Key) (other uint64) {
	for i := range dst {
		hi, lo := addrWords(dst[i])
		keys[i&63] = Key{hi, lo}
		if !dst[i].Is6() {
			other |= 1 << i
		}
	}
	return other
}
