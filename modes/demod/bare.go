package demod

import (
	"math"
	"math/bits"
)

// addressErrors is how many bits of an address may be wrong for it to be taken
// for one that was heard.
const addressErrors = 4

// bare looks for squitters and all-call replies whose preamble is damaged, by
// their first bits alone, at half samples from lo to hi: format and address
// must be near to those of an aircraft that was heard some blocks before.
func (b *block) bare(lo, hi int) {
	const span = 24 // half samples whose mean level is tested, behind the last start of a group
	if len(b.known) == 0 {
		return
	}
	t := b.t
	data := int(t.one[0]) // from the start of the preamble
	lo, hi = max(lo, 2), min(hi, len(b.e)-int(t.chip[maxChips-1])-4-bareGroup)
	// Half of the air of a frame has pulses on it.
	threshold := 1.9 * span * b.noise
	for m := lo; m < hi; m += bareGroup {
		if to := b.inside(m); to > m {
			m = to - bareGroup
			continue
		}
		w := b.e[m+data+bareGroup:][:span]
		var s0, s1, s2, s3 float32 // four sums do not wait for each other
		for i := 0; i+3 < len(w); i += 4 {
			s0 += w[i]
			s1 += w[i+1]
			s2 += w[i+2]
			s3 += w[i+3]
		}
		if (s0+s1)+(s2+s3) < threshold {
			continue
		}
		var words [bareGroup]uint32
		t.heads(&words, b.e[m:])
		for k, word := range words[:min(bareGroup, hi-m)] {
			if bits := frameLength(word); bits != 0 && b.near(word&0xFFFFFF) {
				b.bareCandidate(m+k, bits)
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

// bareGroup is how many half samples share one test of the level.
const bareGroup = 8

// heads fills words with the first 32 hard bits of frames that start at e[0],
// e[1] and so on. Those whose first five are no reason to go on may lack the
// others.
func (t *template) heads(words *[bareGroup]uint32, e []float32) {
	if haveKernels {
		_ = e[t.zero[31]+bareGroup-1]
		heads8(words, &e[0], &t.one[0], &t.zero[0])
		return
	}
	headsGeneric(words, e, t)
}

func headsGeneric(words *[bareGroup]uint32, e []float32, t *template) {
	for k := range words {
		words[k] = head(e[k:], 0, 0, 5, t) << 27
		if frameLength(words[k]) != 0 {
			words[k] = head(e[k:], words[k]>>27, 5, 32, t)
		}
	}
}

// head appends the hard bits from first up to last to word.
func head(e []float32, word uint32, first, last int, t *template) uint32 {
	for i := first; i < last; i++ {
		d := int32(math.Float32bits(e[t.zero[i]])) - int32(math.Float32bits(e[t.one[i]]))
		word = word<<1 | uint32(d)>>31
	}
	return word
}

// frameLength returns the length of the frame that begins with word if that is
// a DF17 or a DF11, one bit of which may be wrong. Otherwise it is 0.
func frameLength(word uint32) int {
	const (
		long  = 1<<17 | 1<<(17^1) | 1<<(17^2) | 1<<(17^4) | 1<<(17^8) | 1<<(17^16)
		short = 1<<11 | 1<<(11^1) | 1<<(11^2) | 1<<(11^4) | 1<<(11^8) | 1<<(11^16)
	)
	switch bit := uint32(1) << (word >> 27); {
	case long&bit != 0:
		return longBits
	case short&bit != 0:
		return shortBits
	}
	return 0
}

// near reports whether an address is that of an aircraft that was heard but for
// a few bits.
func (b *block) near(address uint32) bool {
	for _, k := range b.known {
		if bits.OnesCount32(k^address) <= addressErrors {
			return true
		}
	}
	return false
}

// bareCandidate tests the first bits of a frame of the given length whose preamble would be at m.
func (b *block) bareCandidate(m, length int) {
	t := b.t
	e := b.e[m:]
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
