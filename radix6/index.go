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
//	list   up to 33 entries: the places where they begin, 8 words of 4 at most,
//	       then the codes, so that a cache line or two have it all. All
//	       places are compared at once, four in a word.
//	pair   up to 1,024 entries: a list of every 32nd place, then lists of 32
//	table  more: a bitmap of 65,536 places in two levels
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

// A reference is a code, or a kind and where the node is.
const (
	kindShift = 30
	kindCode  = 0
	kindList  = 1 // words of places minus 1 in 3 bits, offset/4 in lists in 27
	kindPair  = 2 // the same
	kindOther = 3 // table, or skip
	isSkip    = 1 << 29
	numberMax = 1<<27 - 1 // of everything that a reference counts
	codeMax   = 1<<kindShift - 1

	listMax  = 33 // entries: 32 places behind the first, which is always 0
	groupMax = 32 // entries of a list of a pair, the first place is known
	pairMax  = 32 * groupMax
	// groupPlaces is the room for the places of a group in bytes.
	groupPlaces = 64
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

// denseAt is tableAt for the second digit in the fast layout. Where all of a
// /16 has one answer, the top bit of the table's number is clear and there is
// a single cell.
func (x *index) denseAt(table, place uint32) uint32 {
	low := &x.lower[table&(1<<31-1)+place>>6&uint32(int32(table)>>31)]
	return low.base + uint32(bits.OnesCount64(low.bits()<<(^place&63)))
}

const (
	each16 = 0x0001_0001_0001_0001
	tops16 = 0x8000_8000_8000_8000
)

// below counts the 16-bit lanes of y that are less than those of x.
func below(y, x uint64) uint32 {
	// The top bit of a lane of z: the lower 15 bits of y are not less.
	z := (y | tops16) - (x &^ tops16)
	ge := y&^x | ^(y^x)&z
	return uint32(bits.OnesCount64(^ge & tops16))
}

// listAt returns how many of the places in words at an offset are not behind
// the digit. Places are stored minus one; unused ones are 0xffff, which nothing
// is above.
func listAt(lists []byte, at, words uint32, place uint32) (n uint32) {
	x := uint64(place) * each16
	b := lists[at:][:words*8]
	for len(b) >= 8 {
		n += below(binary.LittleEndian.Uint64(b), x)
		b = b[8:]
	}
	return n
}

// groupAt is listAt for exactly 8 words.
func groupAt(lists []byte, at uint32, place uint32) uint32 {
	x := uint64(place) * each16
	b := (*[groupPlaces]byte)(lists[at:])
	n := below(binary.LittleEndian.Uint64(b[0:8]), x) + below(binary.LittleEndian.Uint64(b[8:16]), x)
	n += below(binary.LittleEndian.Uint64(b[16:24]), x) + below(binary.LittleEndian.Uint64(b[24:32]), x)
	n += below(binary.LittleEndian.Uint64(b[32:40]), x) + below(binary.LittleEndian.Uint64(b[40:48]), x)
	return n + below(binary.LittleEndian.Uint64(b[48:56]), x) + below(binary.LittleEndian.Uint64(b[56:64]), x)
}

func (x *index) load(b []byte, at uint32) uint32 {
	return binary.LittleEndian.Uint32(b[at:]) & x.mask
}

// code returns the code of an address.
func (x *index) code(hi, lo uint64) uint32 {
	table, place := x.top[hi>>48], uint32(hi>>32)&0xffff
	var at uint32
	if x.dense {
		at = x.denseAt(table, place)
	} else {
		at = x.tableAt(table, place)
	}
	ref := x.refs[at]
	if ref>>kindShift == kindList {
		words := ref>>27&7 + 1
		at := ref & numberMax * 4
		n := listAt(x.lists, at, words, uint32(hi>>16)&0xffff)
		if c := x.load(x.lists, at+words*8+n*x.width); c <= x.maxCode {
			return c
		} else {
			return x.deep(x.links[c-x.maxCode-1], hi, lo, 3)
		}
	}
	if ref>>kindShift == kindCode {
		return ref
	}
	return x.deep(ref, hi, lo, 2)
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
			words := ref>>27&7 + 1
			at := ref & numberMax * 4
			c = x.load(x.lists, at+words*8+listAt(x.lists, at, words, place)*x.width)
		case kindPair:
			words := ref>>27&7 + 1
			at := ref & numberMax * 4
			at += words*8 + listAt(x.lists, at, words, place)*(groupPlaces+groupMax*x.width)
			c = x.load(x.lists, at+groupPlaces+groupAt(x.lists, at, place)*x.width)
		default:
			if ref&isSkip == 0 {
				c = x.load(x.codes, x.tableAt(ref&numberMax, place)*x.width)
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
		ref = x.links[c-x.maxCode-1]
		d++
	}
	return ref & codeMax
}
