package demod

import (
	"math"
	"math/bits"
	"slices"
)

// addressErrors is how many bits of an address may be wrong for it to be taken
// for one that was heard.
const addressErrors = 4

// bare looks for squitters and all-call replies whose preamble is damaged, by
// their first bits alone, at half samples from lo to hi: format and address
// must be near to those of an aircraft that was heard some blocks before.
func (b *block) bare(lo, hi int) {
	const (
		group = 8  // half samples that share one test of the level
		span  = 24 // half samples whose mean level is tested, behind the last start of the group
	)
	if len(b.known) == 0 {
		return
	}
	t := b.t
	data := int(t.one[0]) // from the start of the preamble
	lo, hi = max(lo, 2), min(hi, len(b.e)-int(t.chip[maxChips-1])-4)
	// Half of the air of a frame has pulses on it.
	threshold := 1.9 * span * b.noise
	for m := lo; m < hi; m += group {
		if to := b.inside(m); to > m {
			m = to - group
			continue
		}
		var sum float32
		for _, v := range b.e[m+data+group : m+data+group+span] {
			sum += v
		}
		if sum < threshold {
			continue
		}
		for k := m; k < min(m+group, hi); k++ {
			if bits := b.starts(b.e[k:]); bits != 0 {
				b.bareCandidate(k, bits)
			}
		}
	}
}

// inside returns the end of a frame that is certain and holds half sample m,
// or 0.
func (b *block) inside(m int) int {
	for i := range b.certain {
		if s := &b.certain[i]; s.from <= m && m < s.to {
			return s.to
		}
	}
	return 0
}

// starts returns the length of the frame whose first five bits these are: a
// DF17 or a DF11, one bit of which may be wrong. Otherwise it is 0.
func (b *block) starts(e []float32) int {
	t := b.t
	df := 0
	for i := range 5 {
		d := int32(math.Float32bits(e[t.zero[i]])) - int32(math.Float32bits(e[t.one[i]]))
		df = df<<1 | int(uint32(d)>>31)
	}
	const (
		long  = 1<<17 | 1<<(17^1) | 1<<(17^2) | 1<<(17^4) | 1<<(17^8) | 1<<(17^16)
		short = 1<<11 | 1<<(11^1) | 1<<(11^2) | 1<<(11^4) | 1<<(11^8) | 1<<(11^16)
	)
	switch bit := 1 << df; {
	case long&bit != 0:
		return longBits
	case short&bit != 0:
		return shortBits
	}
	return 0
}

// bareCandidate tests the first bits of a frame of the given length whose preamble would be at m.
func (b *block) bareCandidate(m, length int) {
	t := b.t
	e := b.e[m:]
	var address uint32
	for i := 8; i < 32; i++ {
		d := int32(math.Float32bits(e[t.zero[i]])) - int32(math.Float32bits(e[t.one[i]]))
		address = address<<1 | uint32(d)>>31
	}
	if !slices.ContainsFunc(b.known, func(k uint32) bool { return bits.OnesCount32(k^address) <= addressErrors }) {
		return
	}
	// Of neighbouring positions take the one with the most contrast.
	const first = 32
	contrast := func(e []float32) (diff, sum float32) {
		for i := range first {
			x, y := e[t.one[i]], e[t.zero[i]]
			sum += x + y
			diff += abs32(x - y)
		}
		return
	}
	diff, sum := contrast(e)
	if (sum+diff)/2 < first*3*b.noise || diff < 0.40*sum {
		return
	}
	for _, k := range [2]int{-1, 1} {
		if d, _ := contrast(b.e[m+k:]); d > diff {
			return
		}
	}
	b.stats.Scanned++
	hard := gather(e, t.one[:], t.zero[:])
	k := 2 / b.noise
	var errors float32
	for i := range shortBits {
		errors += wrong(abs32(e[t.one[i]]-e[t.zero[i]]) * k)
	}
	if b.tail(e, length) < 0.35*(sum+diff)/(2*first) {
		b.stats.Short++
		return
	}
	b.bareStart, b.quiet = true, false
	b.attempt(m, (sum+diff)/2/first*4, length, errors, hard)
	b.bareStart = false
}
