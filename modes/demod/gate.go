package demod

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

// scan looks at every half sample from lo to hi (indices of b.e) for the
// energy of four preamble pulses and hands each local maximum to candidate.
func (b *block) scan(lo, hi int) {
	t := b.t
	threshold := b.lim.gate * b.noise
	if threshold <= 0 {
		return
	}
	p1, p2, p3 := t.preambleHalves()
	const patience = 8 // half samples below the threshold that end a loud stretch
	for m := max(lo, 2); m < hi; m++ {
		// Inside a frame that is certain only what is clearly stronger can be
		// another.
		limit, until := threshold, hi
		if m < b.busyUntil {
			limit, until = max(threshold, 2*b.busyGate), min(hi, b.busyUntil)
		}
		if m += loud(b.e[m:], until-m, p1, p2, p3, limit); m >= until {
			m = until - 1
			continue
		}
		n := until - m + 2
		e := b.e[m-1:]
		e0, e1, e2, e3 := e[:n], e[p1:][:n], e[p2:][:n], e[p3:][:n]
		before, here := e0[0]+e1[0]+e2[0]+e3[0], e0[1]+e1[1]+e2[1]+e3[1]
		below, i := 0, 2
		for ; i < n && below < patience; i++ {
			after := e0[i] + e1[i] + e2[i] + e3[i]
			if here < limit {
				below++
			} else {
				below = 0
				if here > before && here >= after {
					b.stats.Preambles++
					at := m + i - 2
					if b.rescan && b.taken(at) {
						b.stats.Covered++
					} else if b.candidate(at, here); at < b.busyUntil {
						i++
						break
					}
				}
			}
			before, here = here, after
		}
		m += i - 3 // the last half sample that was here
	}
}

// candidate tests the preamble whose first pulse is at half sample m and has
// the energy g in its four pulses: cheap tests first.
func (b *block) candidate(m int, g float32) {
	t, lim := b.t, b.lim
	e := b.e[m : m+int(t.chip[maxChips-1])+3]
	c := &t.chip
	n := b.noise
	on := g/4 - n
	gap := e[c[12]] + e[c[13]] + e[c[14]] + e[c[15]] + e[c[4]] + e[c[5]]
	if gap > 6*(1.3*on/lim.quiet+1.6*n) {
		b.stats.Shape++
		return
	}
	weak := 0
	for _, i := range [4]int{0, 2, 7, 9} {
		if e[c[i]] < g/16 {
			weak++
		}
	}
	if weak > 1 {
		b.stats.Shape++
		return
	}
	quiet := gap + e[c[1]] + e[c[3]] + e[c[6]] + e[c[8]] + e[c[10]] + e[c[11]]
	if quiet > 12*(on/lim.quiet+1.3*n) {
		b.stats.Shape++
		return
	}
	// The first bits: one of the two halves must hold a pulse, the other not.
	const first = 24
	var sum, diff float32
	for i := range first {
		x, y := e[t.one[i]], e[t.zero[i]]
		sum += x + y
		if x < y {
			x, y = y, x
		}
		diff += x - y
	}
	level := (sum + diff) / 2 // the larger halves
	if level < first*3*n || level < first*g/8 || diff < lim.contrast*sum {
		b.stats.Data++
		return
	}
	b.decode(m, g)
}
