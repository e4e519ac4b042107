package demod

import (
	"math"
	"math/bits"

	"signalbox.example/modes"
)

// The flip search looks for the cheapest set of unreliable bits whose change
// makes the parity fit, by meeting in the middle: all subsets of one half of
// the bits go into a table by their remainder, those of the other half look
// for their complement.
const (
	wholeParity = 0xFFFFFF
	codeBits    = 7 // of an interrogator code, laid over the parity

	maxDepth  = 32
	maxSubset = 1024 // subsets of each half
	tableSize = 4096
)

type subset struct {
	remainder uint32
	cost      float32
	mask      uint32
}

type flipper struct {
	syndrome   [longBits]uint32 // by distance from the end of the frame
	left       []subset
	right      []subset
	table      [tableSize]uint16 // index+1 into left
	stamp      [tableSize]uint16
	generation uint16
	order      [maxDepth]int8
	weight     [maxDepth]float32
}

func newFlipper() *flipper {
	f := &flipper{left: make([]subset, 0, maxSubset), right: make([]subset, 0, maxSubset)}
	for d := range f.syndrome {
		var frame [14]byte
		frame[13-d/8] = 1 << (d % 8)
		f.syndrome[d] = modes.Remainder(frame[:])
	}
	return f
}

// weakest fills order and weight with the k bits of llr, from index from on,
// that are the least reliable, in rising order, and returns how many there are.
// Those dearer than limit are left out.
func (f *flipper) weakest(llr []float32, from, k int, limit float32) int {
	n := 0
	for i := from; i < len(llr); i++ {
		w := abs32(llr[i])
		if w > limit || n == k && w >= f.weight[n-1] {
			continue
		}
		if n < k {
			n++
		}
		j := n - 1
		for ; j > 0 && f.weight[j-1] > w; j-- {
			f.weight[j], f.order[j] = f.weight[j-1], f.order[j-1]
		}
		f.weight[j], f.order[j] = w, int8(i)
	}
	return n
}

// subsets lists the subsets of the bits first, first+2, ... of the first n,
// none dearer than limit.
func (f *flipper) subsets(dst []subset, first, n, frameBits int, limit float32, keep uint32) []subset {
	dst = append(dst[:0], subset{})
	for r := first; r < n; r += 2 {
		w := f.weight[r]
		if w > limit {
			break
		}
		syn := f.syndrome[frameBits-1-int(f.order[r])] & keep
		for _, s := range dst[:len(dst):len(dst)] {
			if len(dst) == maxSubset {
				return dst
			}
			if c := s.cost + w; c <= limit {
				dst = append(dst, subset{s.remainder ^ syn, c, s.mask | 1<<r})
			}
		}
	}
	return dst
}

// prepare lists the subsets of the first n ranks, none dearer than limit. Of
// the remainders only the bits in keep count.
func (f *flipper) prepare(n, frameBits int, limit float32, keep uint32) {
	f.left = f.subsets(f.left, 0, n, frameBits, limit, keep)
	f.right = f.subsets(f.right, 1, n, frameBits, limit, keep)
	if f.generation++; f.generation == 0 {
		clear(f.stamp[:])
		f.generation = 1
	}
	for i, s := range f.left {
		h := s.remainder * 0x9E3779B1 >> (32 - 12)
		for f.stamp[h] == f.generation {
			h = (h + 1) % tableSize
		}
		f.stamp[h], f.table[h] = f.generation, uint16(i)
	}
}

// search returns the cheapest of the prepared flips, as a mask of ranks, that
// turn the remainder target to zero and cost limit at most.
func (f *flipper) search(target uint32, limit float32) (mask uint32, cost float32, ok bool) {
	cost = limit
	for _, s := range f.right {
		if s.cost > cost {
			continue
		}
		want := s.remainder ^ target
		for h := want * 0x9E3779B1 >> (32 - 12); f.stamp[h] == f.generation; h = (h + 1) % tableSize {
			l := &f.left[f.table[h]]
			if l.remainder == want && l.cost+s.cost <= cost {
				mask, cost, ok = l.mask|s.mask, l.cost+s.cost, true
			}
		}
	}
	return mask, cost, ok
}

// apply flips the bits of a mask of ranks.
func (f *flipper) apply(frame *[14]byte, mask uint32) {
	for ; mask != 0; mask &= mask - 1 {
		i := f.order[bits.TrailingZeros32(mask)]
		frame[i/8] ^= 0x80 >> (i % 8)
	}
}

// A repaired frame is believed by its score: the logarithm of the odds that
// the flips are the truth and not a set that fits the parity by chance. The
// truth is the flips with probability Q*exp(-cost), where Q is the probability
// that every bit was decided rightly; by chance a set fits one parity of
// 2^24. A frame of score 7 is wrong once in 1,000 times, but few have so little:
// of all that pass about one in 100,000 is.
const (
	parityScore = 16.6 // ln(2^24)
	codeScore   = 11.8 // ln(2^17), the parity beside an interrogator code
	// rareScore is asked in addition of a DF18, which is rare.
	rareScore = 3
	// teachScore is asked of a repaired frame that makes its address known,
	// for which no bit of the address may be flipped.
	teachScore = 10
	// replyScore is asked of a reply with address parity, repaired or not. It
	// is as sure as its score only if it is a reply at all.
	replyScore = 7
)

// lnRight returns ln(Q) of bits with these log likelihood ratios.
func lnRight(llr []float32) float32 {
	var sum float32
	for _, l := range llr {
		sum -= softplus(abs32(l))
	}
	return sum
}

// softplus returns ln(1+e^-x) for x >= 0, to about 0.002.
func softplus(x float32) float32 {
	i := x * (softplusSteps / softplusReach)
	if i >= softplusSteps {
		return 0
	}
	n := int(i)
	f := i - float32(n)
	return softplusTable[n] + f*(softplusTable[n+1]-softplusTable[n])
}

const (
	softplusReach = 12
	softplusSteps = 96
)

var softplusTable = func() (t [softplusSteps + 1]float32) {
	for i := range t {
		t[i] = float32(math.Log1p(math.Exp(-softplusReach * float64(i) / softplusSteps)))
	}
	return
}()

// certify looks for the cheapest flips among the depth weakest bits that make
// r a DF17, a DF18 or a DF11 with interrogator code 0, and notes them in r.
func (f *flipper) certify(r *reading, depth int, score float32) {
	limit := parityScore + r.lnQ - score
	if limit <= 0 {
		return
	}
	h := &r.hard[0]
	llr := r.llr[:r.bits]
	if r.bits == shortBits {
		// The last bits may hold another interrogator code than 0, which is
		// for the judge.
		llr = llr[:shortBits-codeBits]
	}
	f.prepare(f.weakest(llr, 0, depth, limit), r.bits, limit, wholeParity)
	mask, cost, ok := f.search(modes.Remainder(h[:r.bits/8]), limit)
	if !ok || mask == 0 {
		return
	}
	g := *h
	f.apply(&g, mask)
	if df := g[0] >> 3; r.bits == longBits && (df == 17 || df == 18) || r.bits == shortBits && df == 11 {
		if df == 18 && parityScore+r.lnQ-cost < score+rareScore {
			return
		}
		r.flipped, r.flips, r.cost = g, bits.OnesCount32(mask), cost
		// The first 32 bits hold format and address.
		r.teaches = df != 18 && g[0] == h[0] && [3]byte(g[1:4]) == [3]byte(h[1:4]) &&
			parityScore+r.lnQ-cost >= teachScore
	}
}
