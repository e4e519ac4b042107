// Package routegen makes routing tables on purpose: tables that look like the
// Internet's, for tests, examples and benchmarks that must not carry a real
// one, and the two artificial families of IPv6 tables (nested /48s, random
// hosts) with which the Linux route lookup was measured in public.
//
// Everything is reproducible: the same arguments give the same prefixes on
// every machine.
package routegen

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/netip"
)

// lengths4 and lengths6 count the prefixes of a full table of 2025 by length.
var lengths4 = [33]int{8: 16, 9: 13, 10: 38, 11: 103, 12: 299, 13: 581, 14: 1203, 15: 2100, 16: 13490,
	17: 8235, 18: 13798, 19: 24870, 20: 42611, 21: 50750, 22: 108623, 23: 96510, 24: 537698,
	25: 20, 26: 3, 27: 11, 28: 18, 29: 17, 30: 3, 31: 3, 32: 886}

var lengths6 = [129]int{16: 1, 19: 1, 20: 16, 21: 3, 22: 7, 23: 8, 24: 30, 25: 8, 26: 15, 27: 20, 28: 193,
	29: 4371, 30: 650, 31: 284, 32: 22548, 33: 2926, 34: 2603, 35: 1043, 36: 5996, 37: 880, 38: 1617, 39: 1377,
	40: 13418, 41: 903, 42: 2301, 43: 1001, 44: 14365, 45: 1553, 46: 3039, 47: 3153, 48: 75488,
	49: 20, 52: 30, 56: 90, 60: 20, 62: 6, 64: 184, 96: 20, 112: 10, 120: 10, 124: 6, 126: 6, 127: 42, 128: 6}

// Full4 and Full6 are the sizes of the table behind the histograms.
const (
	Full4 = 901899
	Full6 = 160147
)

// scale returns how many of n prefixes get each length: the histogram's
// shares, rounded down, the rest given to the most frequent length.
func scale(hist []int, n int) []int {
	total, best := 0, 0
	for i, c := range hist {
		total += c
		if c > hist[best] {
			best = i
		}
	}
	out, left := make([]int, len(hist)), n
	for i, c := range hist {
		out[i] = int(int64(c) * int64(n) / int64(total))
		left -= out[i]
	}
	out[best] += left
	return out
}

// geometric returns a run length with the given mean, at least 1.
func geometric(r *rand.Rand, mean float64) int {
	return 1 + int(math.Log(1-r.Float64())/math.Log(1-1/mean))
}

// IPv4 returns n distinct prefixes in random order, with the lengths of a full
// table, 52 in 100 placed inside a shorter one and runs of neighbours
// (35 in 100 chance, mean 6) from /16 down, as real allocations have. It
// returns fewer where n exceeds what the space from 1.0.0.0 to 223.255.255.255
// can hold in reasonable time (about five million).
func IPv4(n int, seed uint64) []netip.Prefix {
	r := rand.New(rand.NewPCG(seed, 4))
	type p4 struct {
		key uint32
		len int
	}
	seen := make(map[uint64]struct{}, n)
	all := make([]p4, 0, n)
	for length, count := range scale(lengths4[:], n) {
		shorter := len(all)
		mask := ^uint32(0) << (32 - length)
		for tries := 0; count > 0 && tries < 50*n; tries++ {
			var key uint32
			if shorter > 0 && r.IntN(100) < 52 {
				p := all[r.IntN(shorter)]
				key = p.key | r.Uint32()>>p.len
			} else {
				key = uint32(1+r.IntN(223))<<24 | r.Uint32()>>8
			}
			run := 1
			if length >= 16 && r.IntN(100) < 35 {
				run = geometric(r, 6)
			}
			for key &= mask; run > 0 && count > 0; run-- {
				top := key >> 24
				id := uint64(key)<<6 | uint64(length)
				if _, dup := seen[id]; !dup && top != 0 && top != 10 && top != 127 && top < 224 {
					seen[id] = struct{}{}
					all = append(all, p4{key, length})
					count--
				}
				key += 1 << (32 - length)
			}
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	out := make([]netip.Prefix, len(all))
	for i, p := range all {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], p.key)
		out[i] = netip.PrefixFrom(netip.AddrFrom4(b), p.len)
	}
	return out
}

// blocks6 are the /16s from which the registries hand out addresses, repeated
// roughly in proportion to their use.
var blocks6 = []uint16{0x2001, 0x2001, 0x2001, 0x2400, 0x2401, 0x2402, 0x2403, 0x2404, 0x2405, 0x2406, 0x2407, 0x2408, 0x2409, 0x240e,
	0x2600, 0x2602, 0x2603, 0x2604, 0x2605, 0x2606, 0x2607, 0x2607, 0x2610, 0x2620, 0x2800, 0x2801, 0x2803, 0x2804, 0x2804, 0x2804, 0x2806,
	0x2a00, 0x2a01, 0x2a02, 0x2a02, 0x2a03, 0x2a03, 0x2a04, 0x2a05, 0x2a06, 0x2a07, 0x2a09, 0x2a0a, 0x2a0b, 0x2a0c, 0x2a0d, 0x2a0e, 0x2a0f, 0x2a10, 0x2a12, 0x2c0f}

type key6 struct{ hi, lo uint64 }

func (k key6) mask(n int) key6 {
	if n <= 64 {
		return key6{hi: k.hi & (^uint64(0) << (64 - n))}
	}
	return key6{k.hi, k.lo & (^uint64(0) << (128 - n))}
}

// next returns the neighbour of a prefix of n bits, n > 0.
func (k key6) next(n int) key6 {
	if n <= 64 {
		return key6{hi: k.hi + 1<<(64-n)}
	}
	lo := k.lo + 1<<(128-n)
	if lo < k.lo {
		k.hi++
	}
	return key6{k.hi, lo}
}

// or fills the bits of k behind the first n from r.
func (k key6) or(r key6, n int) key6 {
	if n < 64 {
		return key6{k.hi | r.hi>>n, r.lo}
	}
	return key6{k.hi, k.lo | r.lo>>(n-64)}
}

func (k key6) addr() netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], k.hi)
	binary.BigEndian.PutUint64(b[8:], k.lo)
	return netip.AddrFrom16(b)
}

// IPv6 returns n distinct prefixes in random order with the lengths of a full
// table. Longer prefixes crowd where there are some already, as in reality:
// half of a full table lives in few /32s. Like [IPv4] it may return fewer
// where n is far beyond a full table.
func IPv6(n int, seed uint64) []netip.Prefix {
	r := rand.New(rand.NewPCG(seed, 6))
	type p6 struct {
		key key6
		len int
	}
	seen := make(map[p6]struct{}, n)
	all := make([]p6, 0, n)
	var at32 [2]int // where in all the /32s are
	for length, count := range scale(lengths6[:], n) {
		if length == 32 || length == 33 {
			at32[length-32] = len(all)
		}
		for tries := 0; count > 0 && tries < 50*n; tries++ {
			random := key6{r.Uint64(), r.Uint64()}
			k := key6{hi: uint64(blocks6[r.IntN(len(blocks6))]) << 48}.or(random, 16)
			if length > 32 && len(all) > 0 && r.IntN(100) < 96 {
				// Inside an earlier prefix: half of the time one of the
				// /32s, few of which get most of them.
				p := all[r.IntN(len(all))]
				if first, end := at32[0], at32[1]; end > first && r.IntN(100) < 50 {
					p = all[first+int(float64(end-first)*math.Pow(r.Float64(), 6))]
				}
				at := p.len
				if at >= length {
					at = 32
				}
				k = p.key.mask(at).or(random, at)
			}
			run := 1
			if length >= 32 && r.IntN(100) < 35 {
				run = geometric(r, 6)
			}
			for k = k.mask(length); run > 0 && count > 0; run-- {
				p := p6{k, length}
				if _, dup := seen[p]; !dup && k.hi>>61 == 1 {
					seen[p] = struct{}{}
					all = append(all, p)
					count--
				}
				k = k.next(length)
			}
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	out := make([]netip.Prefix, len(all))
	for i, p := range all {
		out[i] = netip.PrefixFrom(p.key.addr(), p.len)
	}
	return out
}

// Every returns a partial view of a table: n of its prefixes, every
// (len/n)-th. It returns all where n is not smaller than their number.
func Every(table []netip.Prefix, n int) []netip.Prefix {
	if n >= len(table) {
		return table
	}
	out := make([]netip.Prefix, 0, n)
	for i := range n {
		out = append(out, table[i*len(table)/n])
	}
	return out
}

// Subnets48 returns n /48s from 2001:db8:a:: upwards. Density, above 0 and at
// most 1, steers the gaps: the
// distance to the next one is
// ceil(1/density * (1-U)), U uniform in [0, 1), so that 1 leaves none.
func Subnets48(n int, density float64, seed uint64) []netip.Prefix {
	r := rand.New(rand.NewPCG(seed, 48))
	out := make([]netip.Prefix, 0, n)
	for at := uint64(0x20010db8000a); len(out) < n && at < 1<<48; {
		out = append(out, netip.PrefixFrom(key6{hi: at << 16}.addr(), 48))
		at += max(1, uint64(math.Ceil(1/density*(1-r.Float64()))))
	}
	return out
}

// Hosts128 returns n distinct /128 hosts, n at most 2^24:
// 2001:db8:b:0:5254:ff:fe00:0 plus the values of a generator of full period
// (a 1140671485, c 12820163, m 2^24, seed 45742).
func Hosts128(n int) []netip.Prefix {
	out := make([]netip.Prefix, 0, n)
	for x := uint64(45742); len(out) < min(n, 1<<24); {
		x = (x*1140671485 + 12820163) & (1<<24 - 1)
		k := key6{0x20010db8000b0000, 0x525400fffe000000 | x}
		out = append(out, netip.PrefixFrom(k.addr(), 128))
	}
	return out
}
