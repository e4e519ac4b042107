package nat64

import (
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
)

// EAM is an explicit address mapping (RFC 7757 section 3.1): the addresses of
// two prefixes stand for each other, suffix by suffix. The IPv6 suffix must be
// at least as long as the IPv4 suffix; surplus bits at its end are written as
// zero and ignored when read (section 3.2).
type EAM struct {
	V6 netip.Prefix // host bits must be zero
	V4 netip.Prefix // host bits must be zero
}

// String returns "V6 <-> V4".
func (e EAM) String() string { return e.V6.String() + " <-> " + e.V4.String() }

// lens packs the two prefix lengths of an entry, and what a table slot needs
// to know besides, into a word: IPv6 length in bits 0 to 7, IPv4 length in bits
// 8 to 13.
type lens uint32

const (
	matches  lens = 1 << 29 // the slot holds a match
	occupied lens = 1 << 30 // the slot is not empty
	deeper   lens = 1 << 31 // there are longer prefixes within the slot's
)

func lensOf(e EAM) lens {
	return lens(e.V6.Bits()) | lens(e.V4.Bits())<<8 | matches | occupied
}

// shift is how far the IPv4 suffix sits above the end of the IPv6 address.
func (l lens) shift() uint { return uint(96-int(l&0xff)+int(l>>8&0x3f)) & 0xff }

// suffix is the mask of the IPv4 suffix.
func (l lens) suffix() uint32 { return uint32(uint64(1)<<(32-l>>8&0x3f) - 1) }

// to6 puts the suffix of an IPv4 address behind an entry's IPv6 prefix.
func (l lens) to6(v6 addr6, v4 uint32) addr6 {
	s := uint64(v4 & l.suffix())
	if n := l.shift(); n < 64 {
		v6.lo |= s << n
		v6.hi |= s >> (64 - n)
	} else {
		v6.hi |= s << (n - 64)
	}
	return v6
}

// to4 puts the suffix of an IPv6 address behind an entry's IPv4 prefix.
func (l lens) to4(v4 uint32, v6 addr6) uint32 {
	var s uint64
	if n := l.shift(); n < 64 {
		s = v6.lo>>n | v6.hi<<(64-n)
	} else {
		s = v6.hi >> (n - 64)
	}
	return v4 | uint32(s)&l.suffix()
}

func checkEAM(i int, e EAM) error {
	var err error
	switch {
	case !e.V6.IsValid() || !e.V4.IsValid() || !e.V6.Addr().Is6() || e.V6.Addr().Is4In6() || !e.V4.Addr().Is4():
		err = ErrFamily
	case e.V6 != e.V6.Masked() || e.V4 != e.V4.Masked():
		err = ErrHostBits
	case 128-e.V6.Bits() < 32-e.V4.Bits():
		err = ErrSuffix
	default:
		return nil
	}
	return configErr("EAM["+strconv.Itoa(i)+"]", e.String(), err)
}

// eamTable answers longest matches in both directions. Each side is a binary
// search over the prefix lengths in use (Waldvogel et al. 1997): a hash table
// per length holds the prefixes of that length and markers that say "a longer
// one may match"; every slot carries the best match so far. So a look-up
// costs log2(lengths)+1 probes, one for the usual table with one length, and
// mostly one cache line, as slots hold all that is needed to map.
type eamTable struct {
	by4    []table4 // ascending length
	by6    []table6
	mid4   table4 // the one that is asked first, here to save loads
	mid6   table6
	cover4 *[1024]uint64 // a bit for each /16 that an entry lies in or covers
}

type slot4 struct {
	key  uint32
	lens lens  // 0: empty slot
	v6   addr6 // of the match
}

type slot6 struct {
	key  addr6
	v4   uint32 // of the match
	lens lens   // 0: empty slot
}

type table4 struct {
	mask  uint32 // network mask of the length
	shift uint8  // 64 - log2(len(slots))
	slots []slot4
}

type table6 struct {
	mask  addr6
	shift uint8 // 64 - log2(len(slots))
	slots []slot6
}

func hash4(k uint32) uint64 {
	x := uint64(k) * 0x9fb21c651e98df25
	return (x ^ x>>35) * 0x9e3779b97f4a7c15
}

// hash6 is good in its upper bits.
func hash6(k addr6) uint64 {
	x := k.hi*0x9fb21c651e98df25 + k.lo*0x9e3779b97f4a7c15
	return (x ^ x>>32) * 0xd6e8feb86659fd93
}

// at returns the slot of a key: the one that holds it or an empty one.
func (t *table4) at(k uint32) *slot4 {
	m := uint64(len(t.slots) - 1)
	for i := hash4(k) >> (t.shift & 63); ; i++ {
		s := &t.slots[i&m]
		if s.lens == 0 || s.key == k {
			return s
		}
	}
}

func (t *table6) at(k addr6) *slot6 {
	m := uint64(len(t.slots) - 1)
	for i := hash6(k) >> (t.shift & 63); ; i++ {
		s := &t.slots[i&m]
		if s.lens == 0 || s.key == k {
			return s
		}
	}
}

// to6 maps an IPv4 address by the longest entry that holds it. Most addresses
// of the Internet are in none: the bitmap says so at once.
func (t *eamTable) to6(v uint32) (addr6, bool) {
	if !t.covers(v) {
		return addr6{}, false
	}
	if s := t.mid4.at(v & t.mid4.mask); s.lens&(matches|deeper) == matches {
		return s.lens.to6(s.v6, v), true
	}
	return t.search4(v)
}

// covers reports whether there are entries in the /16 of an IPv4 address.
func (t *eamTable) covers(v uint32) bool {
	return t.cover4 != nil && t.cover4[v>>22]>>(v>>16&63)&1 != 0
}

func (t *eamTable) search4(v uint32) (addr6, bool) {
	var best *slot4
	lo, hi := 0, len(t.by4)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		tab := &t.by4[mid]
		s := tab.at(v & tab.mask)
		if s.lens&matches != 0 {
			best = s
		}
		if s.lens == 0 {
			hi = mid
		} else if s.lens&deeper == 0 {
			break
		} else {
			lo = mid + 1
		}
	}
	if best == nil {
		return addr6{}, false
	}
	return best.lens.to6(best.v6, v), true
}

// to4 maps an IPv6 address by the longest entry that holds it.
func (t *eamTable) to4(a addr6) (uint32, bool) {
	if s := t.mid6.at(a.and(t.mid6.mask)); s.lens&(matches|deeper) == matches {
		return s.lens.to4(s.v4, a), true
	}
	return t.search6(a)
}

func (t *eamTable) search6(a addr6) (uint32, bool) {
	var best *slot6
	lo, hi := 0, len(t.by6)
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		tab := &t.by6[mid]
		s := tab.at(a.and(tab.mask))
		if s.lens&matches != 0 {
			best = s
		}
		if s.lens == 0 {
			hi = mid
		} else if s.lens&deeper == 0 {
			break
		} else {
			lo = mid + 1
		}
	}
	if best == nil {
		return 0, false
	}
	return best.lens.to4(best.v4, a), true
}

// path calls visit with the indices of the tables that a binary search for
// index target looks at before it gets there, when each says "longer".
func path(n, target int, visit func(i int)) {
	lo, hi := 0, n
	for lo < hi {
		mid := lo + (hi-lo)/2
		if mid == target {
			return
		}
		if mid < target {
			visit(mid)
			lo = mid + 1
		} else {
			hi = mid
		}
	}
}

func newEAMTable(list []EAM) (t eamTable, err error) {
	if len(list) == 0 {
		return t, nil
	}
	var count4 [33]int
	var count6 [129]int
	for i, e := range list {
		if err := checkEAM(i, e); err != nil {
			return t, err
		}
		count4[e.V4.Bits()]++
		count6[e.V6.Bits()]++
	}
	if err := t.build4(list, count4[:]); err != nil {
		return t, err
	}
	err = t.build6(list, count6[:])
	t.mid4, t.mid6 = t.by4[len(t.by4)/2], t.by6[len(t.by6)/2]
	return t, err
}

// slotsFor returns a power of two that keeps a table at most half full.
func slotsFor(n int) (size int, log uint8) {
	log = uint8(bits.Len(uint(max(2*n, 2) - 1)))
	return 1 << log, log
}

// sizes returns for every length in use its place among the tables, and how
// many slots each table needs: for its entries and, at most, for the markers
// of longer ones.
func sizes(count []int, at []int) (need []int) {
	for l, n := range count {
		if n > 0 {
			at[l] = len(need)
			need = append(need, n)
		}
	}
	for i, n := range slices.Clone(need) {
		path(len(need), i, func(j int) { need[j] += n })
	}
	return need
}

func (t *eamTable) build4(list []EAM, count []int) error {
	var at [33]int
	need := sizes(count, at[:])
	t.by4 = make([]table4, len(need))
	for l, n := range count {
		if n > 0 {
			size, log := slotsFor(need[at[l]])
			t.by4[at[l]] = table4{mask4(l), 64 - log, make([]slot4, size)}
		}
	}
	t.cover4 = new([1024]uint64)
	for i, e := range list {
		k := from4(e.V4.Addr())
		s := t.by4[at[e.V4.Bits()]].at(k)
		if s.lens != 0 {
			return configErr("EAM["+strconv.Itoa(i)+"]", e.V4.String(), ErrDuplicate)
		}
		*s = slot4{k, lensOf(e), from6(e.V6.Addr())}
		for i := k >> 16; i <= (k|s.lens.suffix())>>16; i++ {
			t.cover4[i>>6] |= 1 << (i & 63)
		}
	}
	// Markers last: they ask the tables of shorter prefixes for their match.
	for _, e := range list {
		path(len(need), at[e.V4.Bits()], func(j int) {
			k := from4(e.V4.Addr()) & t.by4[j].mask
			s := t.by4[j].at(k)
			if s.lens == 0 {
				*s = slot4{k, occupied, addr6{}}
				for n := j - 1; n >= 0; n-- {
					if b := t.by4[n].at(k & t.by4[n].mask); b.lens&matches != 0 {
						s.lens, s.v6 = b.lens&^deeper, b.v6
						break
					}
				}
			}
			s.lens |= deeper
		})
	}
	return nil
}

func (t *eamTable) build6(list []EAM, count []int) error {
	var at [129]int
	need := sizes(count, at[:])
	t.by6 = make([]table6, len(need))
	for l, n := range count {
		if n > 0 {
			size, log := slotsFor(need[at[l]])
			t.by6[at[l]] = table6{mask6(l), 64 - log, make([]slot6, size)}
		}
	}
	for i, e := range list {
		k := from6(e.V6.Addr())
		s := t.by6[at[e.V6.Bits()]].at(k)
		if s.lens != 0 {
			return configErr("EAM["+strconv.Itoa(i)+"]", e.V6.String(), ErrDuplicate)
		}
		*s = slot6{k, from4(e.V4.Addr()), lensOf(e)}
	}
	for _, e := range list {
		path(len(need), at[e.V6.Bits()], func(j int) {
			k := from6(e.V6.Addr()).and(t.by6[j].mask)
			s := t.by6[j].at(k)
			if s.lens == 0 {
				*s = slot6{k, 0, occupied}
				for n := j - 1; n >= 0; n-- {
					if b := t.by6[n].at(k.and(t.by6[n].mask)); b.lens&matches != 0 {
						s.lens, s.v4 = b.lens&^deeper, b.v4
						break
					}
				}
			}
			s.lens |= deeper
		})
	}
	return nil
}
