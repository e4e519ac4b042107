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
//	list   up to 13 entries: the places where they begin, three in a word,
//	       then the codes, so that a cache line or two have it all. Or up to
//	       4 such groups, behind a word of the places where they begin. All
//	       places are compared, three at once and without a branch.
//	pair   up to 13 groups, behind 4 words; not at the third digit, where
//	       most searches end
//	table  a bitmap of 65,536 places in two levels
//	skip   all runs have the next digits in common: these digits, a code for
//	       addresses below them, one for those above, and the node behind
type index struct {
	top *[1 << 16]uint32
	// upper and lower are the cells of tables: 16 upper ones each, one bit for
	// a block of 64 places in which an entry begins; and a lower one for each
	// such block, one bit for a place. Tables of the second digit in the fast
	// layout have no upper cells but 1,024 lower ones each.
	upper, lower []cell
	refs         []uint32 // entries of tables of the second digit
	codes        []byte   // entries of other tables, width bytes each
	lists        []byte   // lists and pairs
	skips        []skip
	links        []uint32 // where codes above maxCode lead
	width        uint32   // bytes of a code
	mask         uint32   // width bytes of ones
	maxCode      uint32   // the largest that is an answer
	dense        bool     // the fast layout
}

// A cell is 64 bits in two halves, so that it takes 12 bytes and not 16, and
// the number of the entry (or cell) before its first, which is all ones before
// the very first.
type cell struct{ lo, hi, base uint32 }

func (c *cell) bits() uint64 { return uint64(c.lo) | uint64(c.hi)<<32 }

// A reference is a code, or a kind and where the node is: its number, or its
// offset in lists divided by 4.
const (
	kindShift = 30
	kindCode  = 0
	kindList  = 1
	kindTable = 2
	kindOther = 3       // pair, or skip
	isSkip    = 1 << 29 // of kindOther
	headed    = 1 << 29 // of kindList: there is more than one group
	wordShift = 27      // of kindList: words of places minus 1 in 2 bits
	numberMax = 1<<27 - 1
	codeMax   = 1<<kindShift - 1

	groupPlaces = 32 // bytes: 4 words of three places
	groupMax    = 13 // entries; the place of the first is known
	listMax     = 4 * groupMax
	pairMax     = groupMax * groupMax
	// listSpare is more than any search reads from the beginning of a list or
	// pair on, whatever it finds there: 13 groups of codes of 4 bytes.
	listSpare = 1200
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

// Three places of 16 bits lie in a word in lanes of 21 bits. Each is stored
// minus one, so that "not behind" becomes "less", and with the bit above it
// set, so that a subtraction does not borrow from the next lane. Lanes that
// are not used hold 0xffff, which is not less than anything.
const (
	laneBits = 21
	lanes    = 1 | 1<<laneBits | 1<<(2*laneBits)
	laneTop  = 16
)

func lanesOf(a, b, c uint32) uint64 {
	return uint64(a) | uint64(b)<<laneBits | uint64(c)<<(2*laneBits) | lanes<<laneTop
}

// above has the lowest bit of each lane set whose place is not less than that
// of x, which has the same in all lanes.
func above(word, x uint64) uint64 { return (word - x) >> laneTop & lanes }

// sumLanes adds up lanes.
func sumLanes(w uint64) uint32 { return uint32(w*lanes>>(2*laneBits)) & (1<<laneBits - 1) }

// groupAt returns how many of the places of a full group at an offset are not
// behind the digit.
func groupAt(lists []byte, at, place uint32) uint32 {
	x := uint64(place) * lanes
	b := (*[groupPlaces]byte)(lists[at:])
	not := above(binary.LittleEndian.Uint64(b[0:8]), x) + above(binary.LittleEndian.Uint64(b[8:16]), x) +
		above(binary.LittleEndian.Uint64(b[16:24]), x) + above(binary.LittleEndian.Uint64(b[24:32]), x)
	return groupMax - 1 - sumLanes(not)
}

// listAt returns the offset of the code of a place in a list. It compares 4
// words of the group even if there are fewer: with all bits set, a word is
// above everything, and what follows a list is never out of bounds.
func listAt(lists []byte, ref, place, width uint32) uint32 {
	x := uint64(place) * lanes
	at := ref & numberMax * 4
	head := -(ref >> 29 & 1) // all ones if headed
	group := (3 - sumLanes(above(binary.LittleEndian.Uint64(lists[at:]), x))) & head
	at += 8&head + group*(groupPlaces+groupMax*width)
	more := int64(ref >> wordShift & 3) // words behind the first
	b := (*[groupPlaces]byte)(lists[at:])
	not := above(binary.LittleEndian.Uint64(b[0:8]), x) +
		above(binary.LittleEndian.Uint64(b[8:16])|uint64((more-1)>>63), x) +
		above(binary.LittleEndian.Uint64(b[16:24])|uint64((more-2)>>63), x) +
		above(binary.LittleEndian.Uint64(b[24:32])|uint64((more-3)>>63), x)
	return at + 8 + 8*uint32(more) + (groupMax-1-sumLanes(not))*width
}

// code returns the code of an address. It is one function on purpose: what it
// would call is too large for the compiler to inline. A test holds it and deep
// together.
func (x *index) code(hi, lo uint64) uint32 {
	place := uint32(hi>>32) & 0xffff
	table := x.top[hi>>48]
	var low *cell
	var shift uint32
	if x.dense {
		// 1,024 lower cells, or a single one where all of the /16 has one
		// answer; then the top bit of the table's number is clear.
		low = &x.lower[table&(1<<31-1)+place>>6&uint32(int32(table)>>31)]
		shift = ^place & 63
	} else {
		up := &x.upper[table<<4|place>>12]
		b := up.bits()
		block := place >> 6 & 63
		low = &x.lower[up.base+uint32(bits.OnesCount64(b<<(63-block)))]
		shift = ^place & 63 & -uint32(b>>block&1)
	}
	ref := x.refs[low.base+uint32(bits.OnesCount64(low.bits()<<(shift&63)))]
	place = uint32(hi>>16) & 0xffff
	var c uint32
	switch ref >> kindShift {
	case kindCode:
		return ref
	case kindList:
		// listAt
		x3 := uint64(place) * lanes
		at := uint64(ref & numberMax * 4)
		lists := x.lists
		if ref&headed != 0 {
			at += 8 + uint64(3-sumLanes(above(binary.LittleEndian.Uint64(lists[at:]), x3)))*uint64(groupPlaces+groupMax*x.width)
		}
		more := int64(ref >> wordShift & 3)
		b := (*[groupPlaces]byte)(lists[at:])
		not := above(binary.LittleEndian.Uint64(b[0:8]), x3) +
			above(binary.LittleEndian.Uint64(b[8:16])|uint64((more-1)>>63), x3) +
			above(binary.LittleEndian.Uint64(b[16:24])|uint64((more-2)>>63), x3) +
			above(binary.LittleEndian.Uint64(b[24:32])|uint64((more-3)>>63), x3)
		at += 8 + 8*uint64(more) + uint64((groupMax-1-sumLanes(not))*x.width)
		c = binary.LittleEndian.Uint32(lists[at:]) & x.mask
	case kindTable:
		up := &x.upper[ref&numberMax<<4|place>>12]
		b := up.bits()
		block := place >> 6 & 63
		low = &x.lower[up.base+uint32(bits.OnesCount64(b<<(63-block)))]
		shift = ^place & 63 & -uint32(b>>block&1)
		c = binary.LittleEndian.Uint32(x.codes[(low.base+uint32(bits.OnesCount64(low.bits()<<(shift&63))))*x.width:]) & x.mask
	default:
		return x.deep(ref, hi, lo, 2)
	}
	if c <= x.maxCode {
		return c
	}
	return x.deep(x.linkOf(c), hi, lo, 3)
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
			c = x.load(x.lists, listAt(x.lists, ref, place, x.width))
		case kindTable:
			c = x.load(x.codes, x.tableAt(ref&numberMax, place)*x.width)
		default:
			if ref&isSkip == 0 {
				at := ref & numberMax * 4
				at += groupPlaces + groupAt(x.lists, at, place)*(groupPlaces+groupMax*x.width)
				c = x.load(x.lists, at+groupPlaces+groupAt(x.lists, at, place)*x.width)
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
