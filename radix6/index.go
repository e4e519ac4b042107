package radix6

import (
	"encoding/binary"
	"math/bits"
)

// An index takes an address to a code. It is the part of a [Snapshot] that
// does not depend on the type of the values.
//
// It is made from runs: stretches of addresses with the same answer, neighbours
// with equal answers merged, so that a lookup is the search for the last run
// that does not start behind the address. The search goes by digits of 16 bits:
//
//	address   2001 : 0db8 : 000a : 0000 : ....
//	           |      |      |
//	           top    |      |    65,536 numbers of the tables of the next digit
//	                  table  |    a bitmap of the places where an entry begins
//	                         node a short sorted list, mostly
//
// and on, digit by digit, where there are longer prefixes. An entry is a code
// or leads to the node of the next digit. There are four kinds of nodes:
//
//	list   up to 32 entries: the places where they begin but the first, which
//	       is 0, in 2 bytes each; then the codes. A cache line or two have it
//	       all, and all places can be compared at once.
//	long   up to 256 entries: the number of places in 2 bytes, then a list.
//	       Not at the third digit, where most searches end.
//	table  a bitmap of 65,536 places in two levels
//	skip   all runs have the next digits in common: these digits, a code for
//	       addresses below them, one for those above, and the node behind
//
// The fast layout spends 256 KiB on each /16 in use, for the entries of all
// places of the second digit, and 12 KiB on each table of the third digit, for
// a lower cell for every block. Its codes take 4 bytes.
type index struct {
	top *[1 << 16]uint32
	// upper and lower are the cells of tables: 16 upper ones each, one bit for
	// a block of 64 places in which an entry begins; and a lower one for each
	// such block, one bit for a place. Tables of the second digit in the fast
	// layout have no upper cells but 1,024 lower ones each.
	upper, lower []cell
	refs         []uint32 // entries of tables of the second digit
	codes        []byte   // entries of other tables, width bytes each
	lists        []byte   // lists, long ones too
	skips        []skip
	links        []uint32 // where codes above maxCode lead
	width        uint32   // bytes of a code
	mask         uint32   // width bytes of ones
	maxCode      uint32   // the largest that is an answer
	dense        bool     // the fast layout
	asm          bool     // the processor has what the assembly needs
	wide         bool     // and what the vectors need
}

// A cell is 64 bits in two halves, so that it takes 12 bytes and not 16, and
// the number of the entry (or cell) before its first, which is all ones before
// the very first.
type cell struct{ lo, hi, base uint32 }

func (c *cell) bits() uint64 { return uint64(c.lo) | uint64(c.hi)<<32 }

// A reference is a code, or a kind and where the node is: its number, or its
// offset in lists divided by 8.
const (
	kindShift = 30
	kindCode  = 0
	kindList  = 1
	kindTable = 2
	kindOther = 3       // long, or skip
	isSkip    = 1 << 29 // of kindOther
	numberMax = 1<<27 - 1
	codeMax   = 1<<kindShift - 1

	placesShift = 25 // of kindList: the number of places in 5 bits
	offsetMax   = 1<<placesShift - 1
	listAlign   = 8

	listMax = 32  // entries
	longMax = 256 // entries
	// listSpare is more than any search reads from the beginning of a list or
	// long list on, whatever it finds there: 256 entries with codes of 4 bytes.
	listSpare = 2 + 2*255 + 4*256 + 4

	// A number in top with flatBit is, in the compact layout, that of the
	// first of 1,024 lower cells, one for each block; in the fast one that of
	// the first of 65,536 references, while one without is that of the only
	// reference.
	flatBit = 1 << 31
	// flatBytes is how much such cells of the compact layout may cost for
	// each run below them and byte of its code.
	flatBytes = 4
	// denseMax is how many /16s in use the fast layout spends memory on, 64
	// MiB at most; with more of them tables do.
	denseMax = 256

	// deeper marks a result of first that is a reference to a node of the
	// third digit.
	deeper = 1 << 32
)

// skip is a node that stands for digits which all runs below have in common.
type skip struct {
	path         key // bits of the digits, in place
	mask         key
	digits       uint8
	below, above uint32 // codes
	child        uint32 // a reference
}

// digit returns number d, 0 to 7, of an address.
func digit(hi, lo uint64, d uint) uint32 {
	if d < 4 {
		return uint32(hi>>(48-16*d)) & 0xffff
	}
	return uint32(lo>>(112-16*d)) & 0xffff
}

// tableAt returns the number of the entry of a place in a table.
func (x *index) tableAt(table, place uint32) uint32 {
	up := &x.upper[table<<4|place>>12]
	b := up.bits()
	block := place >> 6 & 63
	low := &x.lower[up.base+uint32(bits.OnesCount64(b<<(63-block)))]
	// In a block without a beginning it is the last entry of the block before.
	shift := ^place & 63 & -uint32(b>>block&1)
	return low.base + uint32(bits.OnesCount64(low.bits()<<shift))
}

// flatAt is tableAt for a table with a lower cell for every block.
func (x *index) flatAt(table, place uint32) uint32 {
	low := &x.lower[table+place>>6]
	return low.base + uint32(bits.OnesCount64(low.bits()<<(^place&63)))
}

// listAt returns the offset of the code of a place in a list of that many
// places.
func listAt(lists []byte, at, places, place, width uint32) uint32 {
	entry := uint32(0)
	for n := places + 1; n > 1; {
		half := n / 2
		if e := entry + half; uint32(binary.LittleEndian.Uint16(lists[at+2*e-2:])) <= place {
			entry = e
		}
		n -= half
	}
	return at + 2*places + entry*width
}

// shortAt is listAt for a reference.
func shortAt(lists []byte, ref, place, width uint32) uint32 {
	return listAt(lists, ref&offsetMax*listAlign, ref>>placesShift&31, place, width)
}

// code returns the code of an address.
func (x *index) code(hi, lo uint64) uint32 {
	c := x.first(hi)
	if c <= uint64(x.maxCode) {
		return uint32(c)
	}
	return x.rest(c, hi, lo)
}

// pureFirst looks at the first three digits. It returns a code, one that leads
// further, or deeper and a reference.
func (x *index) pureFirst(hi uint64) uint64 {
	place := uint32(hi>>32) & 0xffff
	at := x.top[hi>>48]
	switch {
	case x.dense:
		at = at&^flatBit + place&uint32(int32(at)>>31)
	case at&flatBit != 0:
		at = x.flatAt(at&^flatBit, place)
	default:
		at = x.tableAt(at, place)
	}
	ref := x.refs[at]
	place = uint32(hi>>16) & 0xffff
	switch ref >> kindShift {
	case kindCode:
		return uint64(ref)
	case kindList:
		return uint64(x.load(x.lists, shortAt(x.lists, ref, place, x.width)))
	case kindTable:
		if x.dense {
			return uint64(x.load(x.codes, x.flatAt(ref&numberMax, place)*4))
		}
		return uint64(x.load(x.codes, x.tableAt(ref&numberMax, place)*x.width))
	}
	return deeper | uint64(ref)
}

// rest goes on where first has stopped.
func (x *index) rest(c, hi, lo uint64) uint32 {
	if c&deeper != 0 {
		return x.deep(uint32(c), hi, lo, 2)
	}
	return x.deep(x.linkOf(uint32(c)), hi, lo, 3)
}

// linkOf returns where a code that is not an answer leads. In an index that we
// have made every such code leads somewhere; a forged one gets no answer.
func (x *index) linkOf(c uint32) uint32 {
	if i := c - x.maxCode - 1; i < uint32(len(x.links)) {
		return x.links[i]
	}
	return 0
}

// load returns the code at an offset.
func (x *index) load(b []byte, at uint32) uint32 {
	return binary.LittleEndian.Uint32(b[at:]) & x.mask
}

// deep follows a reference to a node of digit d. Each turn of the loop goes at
// least one digit on, so that it ends for any content of the arrays; the last
// digit's entries are codes.
func (x *index) deep(ref uint32, hi, lo uint64, d uint) uint32 {
	for d < 8 {
		var c uint32
		place := digit(hi, lo, d)
		switch ref >> kindShift {
		case kindCode:
			return ref
		case kindList:
			c = x.load(x.lists, shortAt(x.lists, ref, place, x.width))
		case kindTable:
			c = x.load(x.codes, x.tableAt(ref&numberMax, place)*x.width)
		default:
			if ref&isSkip == 0 {
				at := ref & numberMax * listAlign
				places := uint32(x.lists[at])
				c = x.load(x.lists, listAt(x.lists, at+2, places, place, x.width))
				break
			}
			s := &x.skips[ref&numberMax]
			switch h, l := hi&s.mask.hi, lo&s.mask.lo; {
			case h == s.path.hi && l == s.path.lo:
				ref = s.child
				d += uint(s.digits)
				continue
			case h < s.path.hi || h == s.path.hi && l < s.path.lo:
				return s.below
			default:
				return s.above
			}
		}
		if c <= x.maxCode {
			return c
		}
		ref = x.linkOf(c)
		d++
	}
	if ref>>kindShift == kindCode {
		return ref
	}
	return 0 // of a forged index
}
