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

// eam is an entry ready for use. The IPv4 suffix sits shift bits above the
// end of the IPv6 address.
type eam struct {
	v6    addr6
	v4    uint32
	host  uint32 // mask of the IPv4 suffix
	shift uint8  // 0..128
	len6  uint8
	len4  uint8
}

func compileEAM(i int, e EAM) (eam, error) {
	fail := func(err error) (eam, error) {
		return eam{}, configErr("EAM["+strconv.Itoa(i)+"]", e.String(), err)
	}
	if !e.V6.IsValid() || !e.V4.IsValid() || !e.V6.Addr().Is6() || e.V6.Addr().Is4In6() || !e.V4.Addr().Is4() {
		return fail(ErrFamily)
	}
	if e.V6 != e.V6.Masked() || e.V4 != e.V4.Masked() {
		return fail(ErrHostBits)
	}
	suffix := 32 - e.V4.Bits()
	if 128-e.V6.Bits() < suffix {
		return fail(ErrSuffix)
	}
	return eam{
		v6:    from6(e.V6.Addr()),
		v4:    from4(e.V4.Addr()),
		host:  ^mask4(e.V4.Bits()),
		shift: uint8(128 - e.V6.Bits() - suffix),
		len6:  uint8(e.V6.Bits()),
		len4:  uint8(e.V4.Bits()),
	}, nil
}

func (e *eam) to6(v4 uint32) addr6 {
	s := uint64(v4 & e.host)
	a := e.v6
	if n := uint(e.shift); n < 64 {
		a.lo |= s << n
		a.hi |= s >> (64 - n)
	} else {
		a.hi |= s << (n - 64)
	}
	return a
}

func (e *eam) to4(a addr6) uint32 {
	var s uint64
	if n := uint(e.shift); n < 64 {
		s = a.lo>>n | a.hi<<(64-n)
	} else {
		s = a.hi >> (n - 64)
	}
	return e.v4 | uint32(s)&e.host
}

// eamTable answers longest matches in both directions. Each side is a binary
// search over the prefix lengths in use (Waldvogel et al. 1997): a hash table
// per length holds the prefixes of that length and markers that say "a longer
// one may match"; every slot carries the best match so far. So a look-up
// costs log2(lengths)+1 probes, one for the usual table with one length.
type eamTable struct {
	entries []eam
	by4     []table4 // ascending length
	by6     []table6
	cover4  *[1024]uint64 // a bit for each /16 that an entry lies in or covers
}

// The value in a slot: index of the best matching entry plus one, 0 for none.
// Bit 31 marks a slot that longer prefixes lie behind.
const deeper = 1 << 31

type slot4 struct {
	key uint32
	val uint32 // 0: empty slot
}

type slot6 struct {
	key addr6
	val uint32
}

// used marks a slot that holds a marker without any match.
const used = 1 << 30

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

func hash6(k addr6) uint64 {
	h, l := bits.Mul64(k.hi^0x9e3779b97f4a7c15, k.lo^0xd6e8feb86659fd93)
	return (h ^ l) * 0x9fb21c651e98df25
}

func (t *table4) find(k uint32) uint32 {
	m := uint64(len(t.slots) - 1)
	for i := hash4(k) >> (t.shift & 63); ; i++ {
		s := &t.slots[i&m]
		if s.val == 0 || s.key == k {
			return s.val
		}
	}
}

func (t *table4) put(k uint32) *slot4 {
	m := uint64(len(t.slots) - 1)
	for i := hash4(k) >> (t.shift & 63); ; i++ {
		s := &t.slots[i&m]
		if s.val == 0 || s.key == k {
			s.key = k
			return s
		}
	}
}

func (t *table6) find(k addr6) uint32 {
	m := uint64(len(t.slots) - 1)
	for i := hash6(k) >> (t.shift & 63); ; i++ {
		s := &t.slots[i&m]
		if s.val == 0 || s.key == k {
			return s.val
		}
	}
}

func (t *table6) put(k addr6) *slot6 {
	m := uint64(len(t.slots) - 1)
	for i := hash6(k) >> (t.shift & 63); ; i++ {
		s := &t.slots[i&m]
		if s.val == 0 || s.key == k {
			s.key = k
			return s
		}
	}
}

// match4 returns the longest entry that holds an IPv4 address, or nil. Most
// addresses of the Internet are in none: the bitmap says so at once.
func (t *eamTable) match4(v uint32) *eam {
	if t.cover4 == nil || t.cover4[v>>22]>>(v>>16&63)&1 == 0 {
		return nil
	}
	return t.search4(v)
}

func (t *eamTable) search4(v uint32) *eam {
	var best uint32
	ts := t.by4
	for len(ts) > 0 {
		mid := len(ts) / 2
		val := ts[mid].find(v & ts[mid].mask)
		if b := val &^ (deeper | used); b != 0 {
			best = b
		}
		if val == 0 {
			ts = ts[:mid]
		} else if val&deeper == 0 {
			break
		} else {
			ts = ts[mid+1:]
		}
	}
	if best == 0 {
		return nil
	}
	return &t.entries[best-1]
}

// match6 returns the longest entry that holds an IPv6 address, or nil.
func (t *eamTable) match6(a addr6) *eam {
	var best uint32
	ts := t.by6
	for len(ts) > 0 {
		mid := len(ts) / 2
		val := ts[mid].find(a.and(ts[mid].mask))
		if b := val &^ (deeper | used); b != 0 {
			best = b
		}
		if val == 0 {
			ts = ts[:mid]
		} else if val&deeper == 0 {
			break
		} else {
			ts = ts[mid+1:]
		}
	}
	if best == 0 {
		return nil
	}
	return &t.entries[best-1]
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

func newEAMTable(list []EAM) (*eamTable, error) {
	if len(list) == 0 {
		return &eamTable{}, nil
	}
	if len(list) >= used {
		return nil, configErr("EAM", strconv.Itoa(len(list))+" entries", ErrRange)
	}
	t := &eamTable{entries: make([]eam, len(list))}
	var count4 [33]int
	var count6 [129]int
	for i, e := range list {
		c, err := compileEAM(i, e)
		if err != nil {
			return nil, err
		}
		t.entries[i] = c
		count4[c.len4]++
		count6[c.len6]++
	}
	if err := t.build4(list, count4[:]); err != nil {
		return nil, err
	}
	return t, t.build6(list, count6[:])
}

// slotsFor returns a power of two that keeps a table at most half full.
func slotsFor(n int) (size int, log uint8) {
	log = uint8(bits.Len(uint(max(2*n, 2) - 1)))
	return 1 << log, log
}

func (t *eamTable) build4(list []EAM, count []int) error {
	var at [33]int // length to table index
	var need []int
	for l, n := range count {
		if n > 0 {
			at[l] = len(need)
			need = append(need, n)
			t.by4 = append(t.by4, table4{mask: mask4(l)})
		}
	}
	direct := slices.Clone(need)
	for i, n := range direct {
		path(len(need), i, func(j int) { need[j] += n }) // markers, at most
	}
	for i := range t.by4 {
		size, log := slotsFor(need[i])
		t.by4[i].slots, t.by4[i].shift = make([]slot4, size), 64-log
	}
	for i := range t.entries {
		e := &t.entries[i]
		s := t.by4[at[e.len4]].put(e.v4)
		if s.val != 0 {
			return configErr("EAM["+strconv.Itoa(i)+"]", list[i].V4.String(), ErrDuplicate)
		}
		s.val = uint32(i + 1)
	}
	t.cover4 = new([1024]uint64)
	for _, e := range t.entries {
		for i := e.v4 >> 16; i <= (e.v4|e.host)>>16; i++ {
			t.cover4[i>>6] |= 1 << (i & 63)
		}
	}
	// Markers last: they ask the tables of shorter prefixes for their match.
	for i := range t.entries {
		e := &t.entries[i]
		path(len(need), at[e.len4], func(j int) {
			tab := &t.by4[j]
			k := e.v4 & tab.mask
			s := tab.put(k)
			if s.val == 0 {
				s.val = used
				for n := j - 1; n >= 0; n-- {
					sh := &t.by4[n]
					if b := sh.find(k&sh.mask) &^ (deeper | used); b != 0 {
						s.val |= b
						break
					}
				}
			}
			s.val |= deeper
		})
	}
	return nil
}

func (t *eamTable) build6(list []EAM, count []int) error {
	var at [129]int
	var need []int
	for l, n := range count {
		if n > 0 {
			at[l] = len(need)
			need = append(need, n)
			t.by6 = append(t.by6, table6{mask: mask6(l)})
		}
	}
	direct := slices.Clone(need)
	for i, n := range direct {
		path(len(need), i, func(j int) { need[j] += n })
	}
	for i := range t.by6 {
		size, log := slotsFor(need[i])
		t.by6[i].slots, t.by6[i].shift = make([]slot6, size), 64-log
	}
	for i := range t.entries {
		e := &t.entries[i]
		s := t.by6[at[e.len6]].put(e.v6)
		if s.val != 0 {
			return configErr("EAM["+strconv.Itoa(i)+"]", list[i].V6.String(), ErrDuplicate)
		}
		s.val = uint32(i + 1)
	}
	for i := range t.entries {
		e := &t.entries[i]
		path(len(need), at[e.len6], func(j int) {
			tab := &t.by6[j]
			k := e.v6.and(tab.mask)
			s := tab.put(k)
			if s.val == 0 {
				s.val = used
				for n := j - 1; n >= 0; n-- {
					sh := &t.by6[n]
					if b := sh.find(k.and(sh.mask)) &^ (deeper | used); b != 0 {
						s.val |= b
						break
					}
				}
			}
			s.val |= deeper
		})
	}
	return nil
}
