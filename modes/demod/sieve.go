package demod

// The sieve looks at many neighbouring half samples at once: what it asks of
// one is the same sums at the same distances as of the next. Of dense traffic
// every fifteenth half sample is a maximum of the gate, and one in fifty of
// those passes.
const (
	sieveStep  = 16             // half samples that have one early exit
	sieveMax   = 64             // half samples whose results fit into a word
	gateWindow = sieveStep * 64 // half samples whose gates are computed ahead
)

// A sieve holds the thresholds.
type sieve struct {
	limit float32 // of the gate: energy of the four pulses
	noise float32
	quiet float32 // a chip without a pulse may have 1/quiet of a pulse's energy
	// What noise adds to the energy of such a chip, of few and of more.
	few, more float32
}

func newSieve(lim *limits, noise float32) sieve {
	return sieve{noise: noise, quiet: lim.quiet, few: 1.6 * noise, more: 1.3 * noise}
}

// gates fills dst with the energy in the four pulses of a preamble that starts
// at e[0], e[1] and so on, of which there must be 22 more. Bit i of loud is set
// where one of the sums from 16*i on reaches limit. The length of dst is a
// multiple of sieveStep and gateWindow at most.
func (t *template) gates(dst, e []float32, limit float32) (loud uint64) {
	p1, p2, p3 := t.preambleHalves()
	n := len(dst)
	if haveKernels {
		_ = e[n+p3-1]
		return gates16(&dst[0], &e[0], n, p1, p2, p3, limit)
	}
	return gatesGeneric(dst, e, p1, p2, p3, limit)
}

func gatesGeneric(dst, e []float32, p1, p2, p3 int, limit float32) (loud uint64) {
	n := len(dst)
	e0, e1, e2, e3 := e[:n], e[p1:][:n], e[p2:][:n], e[p3:][:n]
	for i, v := range e0 {
		v = v + e1[i] + e2[i] + e3[i]
		dst[i] = v
		if v >= limit {
			loud |= 1 << (i / sieveStep)
		}
	}
	return loud
}

// sift tests the preambles that start at the first n half samples of e, n a
// multiple of sieveStep and sieveMax at most. g holds the gates from the half
// sample before to the one behind. The bits of peaks are set where the gate
// reaches the limit and has a local maximum, those of good where besides the
// preamble has the right shape: empty where it has no pulses, and at most one
// of four pulses missing.
func (t *template) sift(g, e []float32, n int, s *sieve) (peaks, good uint64) {
	if haveKernels {
		_, _ = g[n+1], e[n-1+int(t.chip[firstDataChip-1])]
		if t.chipStep == 48 {
			return sift24(&g[0], &e[0], n, s)
		}
		return sift20(&g[0], &e[0], n, s)
	}
	return siftGeneric(g, e, n, s, &t.chip)
}

func siftGeneric(g, e []float32, n int, s *sieve, c *[maxChips]int32) (peaks, good uint64) {
	g = g[:n+2]
	for i := 1; i < len(g)-1; i++ {
		x := g[i]
		if !(x >= s.limit && g[i-1] < x && g[i+1] <= x) {
			continue
		}
		bit := uint64(1) << (i - 1)
		peaks |= bit
		if shape(e[i-1:], x, s, c) {
			good |= bit
		}
	}
	return peaks, good
}

// shape tests a preamble that has the energy g in its four pulses.
func shape(e []float32, g float32, s *sieve, c *[maxChips]int32) bool {
	on := g/4 - s.noise
	gap := e[c[12]] + e[c[13]] + e[c[14]] + e[c[15]] + e[c[4]] + e[c[5]]
	if gap > 6*(float32(1.3*on)/s.quiet+s.few) {
		return false
	}
	weak := 0
	for _, i := range [4]int{0, 2, 7, 9} {
		if e[c[i]] < g/16 {
			weak++
		}
	}
	if weak > 1 {
		return false
	}
	quiet := gap + e[c[1]] + e[c[3]] + e[c[6]] + e[c[8]] + e[c[10]] + e[c[11]]
	return !(quiet > 12*(on/s.quiet+s.more))
}
