package demod

import "math/bits"

// limits are the thresholds that the efforts differ in.
type limits struct {
	gate     float32 // preamble energy over noise that makes a candidate
	quiet    float32 // a quiet chip may have 1/quiet of a pulse's energy
	contrast float32 // of the first 24 bits
	score    float32 // asked of a repaired frame, see parityScore
	depth    int     // least reliable bits that the flip search may change
	dfWeak   float32 // energy, in mean bits, by which the format may be wrong
	errors   float32 // expected wrong bits of a long frame, straight from the energies, beyond which it is given up
	block    int     // samples a block
	learn    bool    // each doubtful frame's own pulse shape
	deep     bool    // subtract strong frames, and scan without a preamble
}

var efforts = [...]limits{
	EffortDefault: {gate: 12, quiet: 3, contrast: 0.40, score: 8, depth: 16, dfWeak: 0.8, errors: 13, block: 16384, learn: true},
	EffortFast:    {gate: 15, quiet: 4, contrast: 0.40, score: 8, depth: 10, dfWeak: 0.8, errors: 13, block: 16384, learn: true},
	EffortMax:     {gate: 12, quiet: 3, contrast: 0.36, score: 7.2, depth: 18, dfWeak: 1.5, errors: 13, block: 8192, deep: true, learn: true},
}

// preambleHalves are the positions of the four pulses in half samples.
func (t *template) preambleHalves() (int, int, int) {
	return int(t.chip[2]), int(t.chip[7]), int(t.chip[9])
}

// scan takes every half sample from lo to hi (indices of b.e) at which the
// energy of four preamble pulses has a local maximum through the sieve and
// hands those that pass to candidate.
func (b *block) scan(lo, hi int) {
	threshold := b.lim.gate * b.noise
	if threshold <= 0 {
		return
	}
	s := newSieve(b.lim, b.noise)
	g := b.gates[:]
	var loud uint64   // of g, by sixteen
	from, end := 0, 0 // g[0] to g[end-from] are of the half samples from from to end
	for m := max(lo, 2); m < hi; {
		if m >= end {
			from = m - 1
			n := min(gateWindow, (hi-from+sieveStep)&^(sieveStep-1))
			end = from + n - 1
			loud = b.t.gates(g[:n], b.e[from:], threshold)
		}
		k := (m - from) / sieveStep
		quiet := bits.TrailingZeros64(loud >> k)
		if quiet == 64 {
			m = end
			continue
		}
		m = max(m, from+(k+quiet)*sieveStep)
		// Inside a frame that is certain only what is clearly stronger can be
		// another.
		limit, until := threshold, min(hi, end)
		if m < b.busyUntil {
			limit, until = max(threshold, 2*b.busyGate), min(until, b.busyUntil)
		}
		n := min(sieveMax, until-m)
		if n <= 0 {
			m = until // the end of the window or of the search
			continue
		}
		s.limit = limit
		peaks, good := b.t.sift(g[m-1-from:], b.e[m:], (n+sieveStep-1)&^(sieveStep-1), &s)
		peaks &= 1<<n - 1
		next, look, covered := m+n, good&peaks, uint64(0)
		if b.rescan {
			look = peaks
		}
		for ; look != 0; look &= look - 1 {
			i := bits.TrailingZeros64(look)
			at := m + i
			if b.rescan && b.taken(at) {
				covered |= 1 << i
				continue
			}
			if good>>i&1 == 0 {
				continue
			}
			was, gate := b.busyUntil, b.busyGate
			b.candidate(at, g[at-from])
			if b.busyUntil != was || b.busyGate != gate {
				next = at + 1
				peaks &= 1<<(i+1) - 1
				break
			}
		}
		b.stats.Preambles += uint64(bits.OnesCount64(peaks))
		b.stats.Covered += uint64(bits.OnesCount64(covered))
		b.stats.Shape += uint64(bits.OnesCount64(peaks &^ good &^ covered))
		m = next
	}
}

// candidate tests the first bits behind a preamble whose first pulse is at
// half sample m and has the energy g in its four pulses.
func (b *block) candidate(m int, g float32) {
	t, lim := b.t, b.lim
	e := b.e[m : m+int(t.chip[maxChips-1])+3]
	n := b.noise
	// The first bits: one of the two halves must hold a pulse, the other not.
	const first = 24
	var sum, diff float32
	for i := range first {
		x, y := e[t.one[i]], e[t.zero[i]]
		sum += x + y
		diff += abs32(x - y)
	}
	level := (sum + diff) / 2 // the larger halves
	if level < first*3*n || level < first*g/8 || diff < lim.contrast*sum {
		b.stats.Data++
		return
	}
	b.decode(m, g)
}
