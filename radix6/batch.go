package radix6

import "math/bits"

// batch is how many lookups go through the stages together. Each stage is a
// loop of loads that do not depend on each other, so that the processor waits
// for all of them at once. No stage branches on what the one before has loaded,
// because a wrong guess there would stop the loads that follow.
const batch = 32

// wide is how many lookups at most go through the stages together where
// vectors help.
const wide = 128

// codesOf looks up addresses and returns how many have a code that is not 0.
func (p *part) codesOf(keys []Key, codes []uint32) int {
	found, at := 0, 0
	if p.wide {
		for len(keys)-at >= 16 {
			to := at + min(len(keys)-at, wide)&^15
			found += p.codesWide(keys[at:to], codes[at:to])
			at = to
		}
		keys, codes, at = keys[at:], codes[at:], 0
	}
	for ; at+batch <= len(keys); at += batch {
		p.codesBatch((*[batch]Key)(keys[at:]), (*[batch]uint32)(codes[at:]))
	}
	for ; at < len(keys); at++ {
		codes[at] = p.code(keys[at].Hi, keys[at].Lo)
	}
	return found + p.settle(codes)
}

// settle replaces codes that are not answers by those that they lead to from the
// unspecified source, and returns how many are not 0.
func (p *part) settle(codes []uint32) (found int) {
	for i, c := range codes {
		if c > p.answers {
			c = p.resolve(c, key{})
			codes[i] = c
		}
		if c != 0 {
			found++
		}
	}
	return found
}

// codesWide is codesOf for a multiple of 16 addresses, at most wide.
func (p *part) codesWide(keys []Key, codes []uint32) int {
	var deep [wide / 64]uint64
	var zeros, odd int
	if p.dense {
		zeros, odd = wideDense(&p.index, &keys[0], &codes[0], len(keys), p.answers, &deep)
	} else {
		zeros, odd = wideCompact(&p.index, &keys[0], &codes[0], len(keys), p.answers, &deep)
	}
	if odd == 0 {
		return len(keys) - zeros
	}
	for i, c := range codes {
		if deep[i/64]>>(i%64)&1 != 0 {
			codes[i] = p.deep(c, keys[i].Hi, keys[i].Lo, 2)
		} else if c > p.maxCode {
			codes[i] = p.deep(p.linkOf(c), keys[i].Hi, keys[i].Lo, 3)
		}
	}
	return p.settle(codes)
}

func (x *index) codesBatch(keys *[batch]Key, codes *[batch]uint32) {
	x.refsBatch(keys, codes)
	// What the second digit leads to: codes stay, the rest is sorted by kind.
	var lists, tables, others [batch]uint8
	nl, nt, no := 0, 0, 0
	for i, ref := range codes {
		kind := ref >> kindShift
		lists[nl&(batch-1)] = uint8(i)
		nl += int(kind & ^(kind >> 1) & 1)
		tables[nt&(batch-1)] = uint8(i)
		nt += int(kind >> 1 & ^kind)
		others[no&(batch-1)] = uint8(i)
		no += int(kind >> 1 & kind)
	}
	x.listsBatch(keys, codes, &lists, nl)
	x.tablesBatch(keys, codes, &tables, nt)
	for _, i := range others[:no] {
		i &= batch - 1
		codes[i] = x.deep(codes[i], keys[i].Hi, keys[i].Lo, 2)
	}
	for i, c := range codes {
		if c > x.maxCode {
			codes[i] = x.deep(x.linkOf(c), keys[i].Hi, keys[i].Lo, 3)
		}
	}
}

// pureRefs finds the entries of the second digit.
func (x *index) pureRefs(keys *[batch]Key, refs *[batch]uint32) {
	if x.dense {
		for i := range keys {
			at := x.top[keys[i].Hi>>48]
			refs[i] = x.refs[at&^flatBit+uint32(keys[i].Hi>>32)&0xffff&uint32(int32(at)>>31)]
		}
		return
	}
	upper, lower := x.upper, x.lower
	var shift [batch]uint8
	for i := range keys {
		hi := keys[i].Hi
		place := uint32(hi>>32) & 0xffff
		table := x.top[hi>>48]
		if table&flatBit != 0 {
			refs[i], shift[i] = table&^flatBit+place>>6, uint8(^place&63)
			continue
		}
		up := &upper[table<<4|place>>12]
		b := up.bits()
		block := place >> 6 & 63
		refs[i] = up.base + uint32(bits.OnesCount64(b<<(63-block)))
		shift[i] = uint8(^place & 63 & -uint32(b>>block&1))
	}
	for i := range refs {
		low := &lower[refs[i]]
		refs[i] = low.base + uint32(bits.OnesCount64(low.bits()<<(shift[i]&63)))
	}
	for i := range refs {
		refs[i] = x.refs[refs[i]]
	}
}

// pureLists replaces references to lists, those at the first n numbers of
// which, by what is found there.
func (x *index) pureLists(keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int) {
	for _, i := range which[:n] {
		i &= batch - 1
		refs[i] = shortAt(x.lists, refs[i], uint32(keys[i].Hi>>16)&0xffff, x.width)
	}
	for _, i := range which[:n] {
		i &= batch - 1
		refs[i] = x.load(x.lists, refs[i])
	}
}

// pureTables does so with references to tables.
func (x *index) pureTables(keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int) {
	upper, lower := x.upper, x.lower
	if x.dense {
		for _, i := range which[:n] {
			i &= batch - 1
			refs[i] = x.flatAt(refs[i]&numberMax, uint32(keys[i].Hi>>16)&0xffff) * 4
		}
		for _, i := range which[:n] {
			i &= batch - 1
			refs[i] = x.load(x.codes, refs[i])
		}
		return
	}
	var shift [batch]uint8
	for _, i := range which[:n] {
		i &= batch - 1
		place := uint32(keys[i].Hi>>16) & 0xffff
		up := &upper[refs[i]&numberMax<<4|place>>12]
		b := up.bits()
		block := place >> 6 & 63
		refs[i] = up.base + uint32(bits.OnesCount64(b<<(63-block)))
		shift[i] = uint8(^place & 63 & -uint32(b>>block&1))
	}
	for _, i := range which[:n] {
		i &= batch - 1
		low := &lower[refs[i]]
		refs[i] = (low.base + uint32(bits.OnesCount64(low.bits()<<(shift[i]&63)))) * x.width
	}
	for _, i := range which[:n] {
		i &= batch - 1
		refs[i] = x.load(x.codes, refs[i])
	}
}
