package radix6

import (
	"encoding/binary"
	"math/bits"
)

// batch is how many lookups go through the stages together. Each stage is a
// loop of loads that do not depend on each other, so that the processor waits
// for all of them at once. No stage branches on what the one before has loaded,
// because a wrong guess there would stop the loads that follow.
const batch = 32

func (x *index) codesBatch(keys *[batch]Key, codes *[batch]uint32) {
	var at [batch]uint32
	if x.dense {
		lower := x.lower
		for i := range keys {
			hi := keys[i].Hi
			table, place := x.top[hi>>48], uint32(hi>>32)&0xffff
			low := &lower[table&(1<<31-1)+place>>6&uint32(int32(table)>>31)]
			at[i] = low.base + uint32(bits.OnesCount64(low.bits()<<(^place&63)))
		}
	} else {
		upper, lower := x.upper, x.lower
		var shift [batch]uint8
		for i := range keys {
			hi := keys[i].Hi
			place := uint32(hi>>32) & 0xffff
			up := &upper[x.top[hi>>48]<<4|place>>12]
			b := up.bits()
			block := place >> 6 & 63
			at[i] = up.base + uint32(bits.OnesCount64(b<<(63-block)))
			shift[i] = uint8(^place & 63 & -uint32(b>>block&1))
		}
		for i := range at {
			low := &lower[at[i]]
			at[i] = low.base + uint32(bits.OnesCount64(low.bits()<<(shift[i]&63)))
		}
	}
	// What the second digit leads to: codes stay, the rest is sorted by kind.
	var lists, tables, others [batch]uint8
	nl, nt, no := 0, 0, 0
	refs := x.refs
	for i := range at {
		ref := refs[at[i]]
		codes[i] = ref
		kind := ref >> kindShift
		lists[nl&(batch-1)] = uint8(i)
		nl += int(kind & ^(kind >> 1) & 1)
		tables[nt&(batch-1)] = uint8(i)
		nt += int(kind >> 1 & ^kind)
		others[no&(batch-1)] = uint8(i)
		no += int(kind >> 1 & kind)
	}
	width, mask := x.width, x.mask
	deeper := false

	l := x.lists
	for _, i := range lists[:nl] {
		i &= batch - 1
		at[i] = listAt(l, codes[i], uint32(keys[i].Hi>>16)&0xffff, width)
	}
	for _, i := range lists[:nl] {
		i &= batch - 1
		c := binary.LittleEndian.Uint32(l[at[i]:]) & mask
		codes[i] = c
		deeper = deeper || c > x.maxCode
	}

	upper, lower := x.upper, x.lower
	for _, i := range tables[:nt] {
		i &= batch - 1
		place := uint32(keys[i].Hi>>16) & 0xffff
		up := &upper[codes[i]&numberMax<<4|place>>12]
		b := up.bits()
		block := place >> 6 & 63
		at[i] = up.base + uint32(bits.OnesCount64(b<<(63-block)))
		codes[i] = ^place & 63 & -uint32(b>>block&1)
	}
	for _, i := range tables[:nt] {
		i &= batch - 1
		low := &lower[at[i]]
		at[i] = (low.base + uint32(bits.OnesCount64(low.bits()<<(codes[i]&63)))) * width
	}
	for _, i := range tables[:nt] {
		i &= batch - 1
		c := binary.LittleEndian.Uint32(x.codes[at[i]:]) & mask
		codes[i] = c
		deeper = deeper || c > x.maxCode
	}

	if deeper {
		for _, some := range [...][]uint8{lists[:nl], tables[:nt]} {
			for _, i := range some {
				i &= batch - 1
				if c := codes[i]; c > x.maxCode {
					codes[i] = x.deep(x.linkOf(c), keys[i].Hi, keys[i].Lo, 3)
				}
			}
		}
	}
	for _, i := range others[:no] {
		i &= batch - 1
		codes[i] = x.deep(codes[i], keys[i].Hi, keys[i].Lo, 2)
	}
}
