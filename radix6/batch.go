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
	var lists, others [batch]uint8
	nl, no := 0, 0
	refs := x.refs
	for i := range at {
		ref := refs[at[i]]
		codes[i] = ref
		lists[nl&(batch-1)] = uint8(i)
		kind := ref >> kindShift
		nl += int(kind & ^(kind >> 1) & 1) // kindList
		others[no&(batch-1)] = uint8(i)
		no += int(kind >> 1) // kindPair, kindOther
	}
	for _, i := range lists[:nl] {
		ref := codes[i&(batch-1)]
		words := ref>>wordShift&7 + 1
		o := ref & numberMax * 4
		n := listAt(x.lists, o, words, uint32(keys[i&(batch-1)].Hi>>16)&0xffff)
		at[i&(batch-1)] = o + words*8 + n*x.width
	}
	l, mask := x.lists, x.mask
	deeper := false
	for _, i := range lists[:nl] {
		c := binary.LittleEndian.Uint32(l[at[i&(batch-1)]:]) & mask
		codes[i&(batch-1)] = c
		deeper = deeper || c > x.maxCode
	}
	if deeper {
		for _, i := range lists[:nl] {
			if c := codes[i&(batch-1)]; c > x.maxCode {
				k := keys[i&(batch-1)]
				codes[i&(batch-1)] = x.deep(x.links[c-x.maxCode-1], k.Hi, k.Lo, 3)
			}
		}
	}
	for _, i := range others[:no] {
		k := keys[i&(batch-1)]
		codes[i&(batch-1)] = x.deep(codes[i&(batch-1)], k.Hi, k.Lo, 2)
	}
}
