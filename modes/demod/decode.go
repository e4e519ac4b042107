package demod

import (
	"encoding/binary"
	"math"
	"slices"

	"signalbox.example/modes"
)

// A reading is what the signal part of the demodulator makes of one
// candidate, without knowing any address. The judge turns it into a frame or
// drops it.
type reading struct {
	start  int64   // middle of the first pulse, in sub-phases since the start of the stream
	level  float32 // pulse power, 1.0 is full scale
	bits   int
	nHard  int         // different hard decisions, the best first:
	hard   [3][14]byte // from the trellis, the matched filter, the energies
	margin [3]float32
	// quiet: where a preamble has no pulses there are none, so that this is no
	// piece of another frame's data.
	quiet bool
	// bare: found without a preamble.
	bare bool
	// certified: hard[0] has a parity that vouches for itself.
	certified bool
	// flipped is the cheapest repaired squitter or all-call reply that can be
	// believed, when flips is not 0.
	flipped [14]byte
	flips   int
	cost    float32 // sum of the log likelihood ratios of the flipped bits
	teaches bool    // sure enough to make its address known
	lnQ     float32 // ln of the probability that no bit is wrong
	// llr holds the log likelihood ratio of each bit, positive for a one,
	// when soft is set.
	soft bool
	llr  [longBits]float32
}

// gather packs hard decisions: bit i is set when e[one[i]] > e[zero[i]].
// Energies are never negative, so their bits compare as integers, which
// needs no branch.
func gather(e []float32, one, zero []int32) (f [14]byte) {
	var w [2]uint64
	zero = zero[:len(one)]
	for i, p := range one {
		d := int32(math.Float32bits(e[zero[i]])) - int32(math.Float32bits(e[p]))
		w[i>>6] |= uint64(uint32(d)>>31) << (63 - i&63)
	}
	return pack(w)
}

func pack(w [2]uint64) (f [14]byte) {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], w[0])
	binary.BigEndian.PutUint64(b[8:], w[1])
	copy(f[:], b[:14])
	return f
}

func abs32(x float32) float32 {
	return math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
}

// formatCost returns how much energy, over the mean bit, contradicts that the
// first five bits are those of format df, given the bits' differences.
func formatCost(diff *[5]float32, mean float32, df int) float32 {
	var c float32
	for i, d := range diff {
		if d > 0 != (df>>(4-i)&1 != 0) {
			c += abs32(d)
		}
	}
	return c / mean
}

// vouched reports whether the parity vouches for a hard decision: it is zero
// for a squitter or an all-call reply, a possible interrogator code for an
// all-call reply of an aircraft that was heard, or the address of one for
// other replies. weight gives the log likelihood ratio of a bit.
func (b *block) vouched(f *[14]byte, bits int, weight func(i int) float32) bool {
	df := f[0] >> 3
	if bits == longBits {
		switch df {
		case 17, 18:
			return modes.Remainder(f[:14]) == 0
		case 16, 20, 21:
			return b.quiet && slices.Contains(b.known, modes.Remainder(f[:14]))
		}
		return false
	}
	switch df {
	case 11:
		r := modes.Remainder(f[:7])
		if r == 0 || r >= 0x50 {
			return r == 0
		}
		// Behind a code no parity stands: each of its bits must be sure.
		const sureBit = 12
		for i := shortBits - 7; i < shortBits; i++ {
			if weight(i) < sureBit {
				return false
			}
		}
		return slices.Contains(b.known, uint32(f[1])<<16|uint32(f[2])<<8|uint32(f[3]))
	case 0, 4, 5:
		return b.quiet && slices.Contains(b.known, modes.Remainder(f[:7]))
	}
	return false
}

// decode takes a candidate that passed the gate through the stages, cheapest
// first, and appends what it finds to b.out.
func (b *block) decode(m int, g float32) {
	t := b.t
	e := b.e[m:]
	b.stats.Candidates++

	b.quiet = b.gaps(e, g)

	// Hard decisions straight from the energies.
	hard := gather(e, t.one[:], t.zero[:])
	bits := shortBits
	if hard[0]&0x80 != 0 {
		bits = longBits
	}
	if b.vouched(&hard, bits, func(i int) float32 { return abs32(e[t.one[i]]-e[t.zero[i]]) * 2 / b.noise }) {
		b.stats.Energy++
		clear(hard[bits/8:])
		start, level := b.fineTime(m, bits)
		b.certify(m, g, bits, start, level, &hard, energyMargin(e, t, bits))
		return
	}

	// Give up before the dear work: on what has no contrast, and on formats
	// that do not exist.
	var sum, diff, errors float32
	k := 2 / b.noise
	for i := range shortBits {
		x, y := e[t.one[i]], e[t.zero[i]]
		sum += x + y
		d := abs32(x - y)
		diff += d
		errors += wrong(d * k)
	}
	if diff < min(b.lim.contrast, 0.42)*sum {
		b.stats.Contrast++
		return
	}
	var d5 [5]float32
	for i := range d5 {
		d5[i] = e[t.one[i]] - e[t.zero[i]]
	}
	mean := diff / shortBits
	long := min(formatCost(&d5, mean, 17), formatCost(&d5, mean, 18), replyCost(&d5, mean, longReplies))
	short := replyCost(&d5, mean, shortReplies)
	if long > b.lim.dfWeak && short > b.lim.dfWeak {
		b.stats.Format++
		return
	}
	// The signal must last to the end of the frame.
	level := 0.35 * (sum + diff) / (2 * shortBits)
	tryLong := long <= b.lim.dfWeak && b.tail(e, longBits) >= level
	tryShort := short <= b.lim.dfWeak && (short <= long || !tryLong) && b.tail(e, shortBits) >= level
	switch {
	case tryShort:
		b.attempt(m, g, shortBits, errors, hard)
		if tryLong && m >= b.busyUntil { // another signal may follow at once, or hide the format
			b.stats.Twice++
			b.attempt(m, g, longBits, errors, hard)
		}
	case tryLong:
		b.attempt(m, g, longBits, errors, hard)
	default:
		b.stats.Short++
	}
}

// gaps reports whether the four bit lengths of a preamble that hold no pulse
// are empty; each bit of data has one.
func (b *block) gaps(e []float32, g float32) bool {
	c := &b.t.chip
	var sum float32
	for _, i := range [...]int{4, 5, 10, 11, 12, 13, 14, 15} {
		sum += e[c[i]]
	}
	return sum < 8*(0.2*max(g/4-b.noise, 0)+1.1*b.noise)
}

// tail returns the mean energy of the pulses of the last bits of a frame.
func (b *block) tail(e []float32, bits int) float32 {
	const tail = 24
	var sum float32
	one, zero := b.t.one[bits-tail:bits], b.t.zero[bits-tail:bits]
	for i, p := range one {
		x, y := e[p], e[zero[i]]
		sum += x + y + abs32(x-y)
	}
	return sum / (2 * tail)
}

// attempt takes a candidate for a frame of the given length. errors is the
// expected number of wrong bits among its first 56.
func (b *block) attempt(m int, g float32, bits int, errors float32, hard [14]byte) {
	e, t := b.e[m:], b.t
	k := 2 / b.noise
	for i := shortBits; i < bits; i++ {
		errors += wrong(abs32(e[t.one[i]]-e[t.zero[i]]) * k)
	}
	if errors > b.lim.errors*float32(bits)/longBits {
		b.stats.Errors++
		return
	}
	b.refine(m, g, bits, hard)
}

// wrong returns the probability that a bit with log likelihood ratio l >= 0
// is wrong, 1/(1+e^l), near enough.
func wrong(l float32) float32 {
	return 1 / (2 + l*(1+l*(1.0/2+l*(1.0/6+l*(1.0/24+l*(1.0/120))))))
}

// The formats with address parity and the all-call reply, by their length.
// From 24 up only the first two bits count.
var (
	shortReplies = []int{0, 4, 5, 11}
	longReplies  = []int{16, 20, 21, 24}
)

// replyCost returns the smallest formatCost of some formats.
func replyCost(d *[5]float32, mean float32, formats []int) float32 {
	cost := float32(math.Inf(1))
	for _, df := range formats {
		if df == 24 {
			cost = min(cost, (max(0, -d[0])+max(0, -d[1]))/mean)
		} else {
			cost = min(cost, formatCost(d, mean, df))
		}
	}
	return cost
}

func energyMargin(e []float32, t *template, bits int) float32 {
	least, sum := float32(math.Inf(1)), float32(0)
	for i := range bits {
		d := abs32(e[t.one[i]] - e[t.zero[i]])
		least = min(least, d)
		sum += d
	}
	return least * float32(bits) / max(sum, 1e-30)
}

// fineTime finds where between the half samples the frame starts, by the
// energy of all its pulses. It returns the position in sub-phases and the
// pulse power.
func (b *block) fineTime(m, bits int) (int, float32) {
	const reach = 2
	t := b.t
	var s [2*reach + 1]float32
	p1, p2, p3 := t.preambleHalves()
	for k := range s {
		e := b.e[m+k-reach:]
		s[k] = 2 * (e[0] + e[p1] + e[p2] + e[p3])
	}
	pulses(&s, b.e[m-reach:], t.one[:bits], t.zero[:bits])
	best := 1
	for k := 2; k < len(s)-1; k++ {
		if s[k] > s[best] {
			best = k
		}
	}
	bend := s[best-1] - 2*s[best] + s[best+1]
	var delta float32
	if bend < 0 {
		delta = max(-1, min(1, (s[best-1]-s[best+1])/(2*bend)))
	}
	peak := s[best] - (s[best-1]-s[best+1])*delta/4
	level := peak/float32(2*(bits+4)) - b.noise
	pos := int(math.Round((float64(m+best-reach) + float64(delta)) * (subPhases / 2)))
	return pos, max(level, 0)
}

// pulses adds to s[k], for frames that start at e[k], twice the larger half of
// each bit.
func pulses(s *[5]float32, e []float32, one, zero []int32) {
	zero = zero[:len(one)]
	if last := len(one) - 1; haveKernels && last >= 0 {
		_ = e[max(one[last], zero[last])+4]
		pulses5(s, &e[0], &one[0], &zero[0], len(one))
		return
	}
	pulsesGeneric(s, e, one, zero)
}

func pulsesGeneric(s *[5]float32, e []float32, one, zero []int32) {
	for i, p := range one {
		x, y := e[p:][:len(s)], e[zero[i]:][:len(s)]
		for k := range s {
			s[k] += x[k] + y[k] + abs32(x[k]-y[k])
		}
	}
}

// certify appends a frame whose parity vouches for it and makes candidates
// inside it prove themselves.
func (b *block) certify(m int, g float32, bits, start int, level float32, f *[14]byte, margin float32) {
	r := b.newReading(start, bits, level)
	r.certified = true
	r.hard[0], r.margin[0], r.nHard = *f, margin, 1
	b.covered(m, g, bits, start, f)
}

// covered notes a frame that is certain.
func (b *block) covered(m int, g float32, bits, start int, f *[14]byte) {
	b.busyUntil, b.busyGate = m+int(b.t.chip[firstDataChip+2*bits-1]), g
	if b.lim.deep || b.ac {
		b.certain = append(b.certain, span{m - 2, b.busyUntil, start, bits,
			[2]uint64{binary.BigEndian.Uint64(f[:8]), uint64(binary.BigEndian.Uint32(f[8:]))<<32 | uint64(binary.BigEndian.Uint16(f[12:]))<<16}})
	}
}

func (b *block) newReading(start, bits int, level float32) *reading {
	at := b.first*subPhases + int64(start)
	if b.rescan { // better than what was read here before
		for i := range b.out {
			if o := &b.out[i]; o.bits == bits && !o.certified && max(o.start-at, at-o.start) < subPhases {
				o.bits = 0
			}
		}
	}
	b.out = append(b.out, reading{})
	r := &b.out[len(b.out)-1]
	r.start = at
	gain := b.t.gain[offsetBins][0]
	r.level = level / (gain * gain)
	r.bits = bits
	r.bare, r.quiet = b.bareStart, b.quiet
	return r
}

// matchedErrors is the expected number of wrong bits of a long frame, behind
// the matched filter, beyond which it is given up. True frames that can be
// repaired have fewer than five.
const matchedErrors = 7

// refine measures time and carrier, applies the matched filter, decides
// without and then with the carrier's phase, and repairs what is left.
func (b *block) refine(m int, g float32, bits int, energyBits [14]byte) {
	b.stats.Refined++
	start, level := b.fineTime(m, bits)
	if b.triedBits == bits && max(start-b.triedStart, b.triedStart-start) < subPhases/5 {
		b.stats.Again++
		return // a neighbouring candidate led to the same place
	}
	b.triedStart, b.triedBits = start, bits
	omega := b.carrier(start, bits) // radians a sample
	bin := b.bin(omega)
	b.matched(start, bits, bin)

	f, margin := b.incoherent(bits)
	if bits == shortBits && f[0]&0x80 != 0 {
		// At the right time it is a long frame.
		bits = longBits
		b.matched(start, bits, bin)
		f, margin = b.incoherent(bits)
	}
	if b.vouched(&f, bits, func(i int) float32 { return abs32(b.diff[i]) * 2 / b.noise }) {
		b.stats.Matched++
		b.certify(m, g, bits, start, level, &f, margin)
		return
	}
	if b.expectedErrors(bits) > matchedErrors*float32(bits)/longBits {
		b.stats.Errors++
		return
	}
	perSample := float32(b.t.rate * 0.5e-6) // samples a chip
	b.phase(bits, omega*perSample, 2)
	if better := b.bin(b.omega / perSample); better != bin {
		// The receiver's filter cuts one side of an off-frequency pulse, which
		// draws the first estimate of the carrier towards the middle.
		bin = better
		b.matched(start, bits, bin)
		b.phase(bits, b.omega, 1)
	}
	b.trellis(start, bits, bin)
	if b.decided(m, g, bits, start, level) {
		b.stats.Trellis++
		return
	}
	if b.t.rate < 2.2e6 && lnRight(b.llr[:bits]) > hopeless {
		// Here the band ends below the pulse's bandwidth, and how bits leak
		// into each other depends on the exact timing.
		if d := b.retime(start, bits, bin); d != 0 {
			start += d
			b.matched(start, bits, bin)
			b.phase(bits, b.omega, 1)
			b.trellis(start, bits, bin)
			if b.decided(m, g, bits, start, level) {
				b.stats.Trellis++
				return
			}
		}
	}
	if !b.steady(bits) {
		b.stats.Short++
		return
	}
	r := b.newReading(start, bits, level)
	r.soft = b.repair == RepairSoft
	r.take(pack(b.word), b.llr[:bits])
	r.addHard(f, margin)
	if bits == shortBits {
		clear(energyBits[7:])
	}
	r.addHard(energyBits, 0)
	b.flips(r)
	if r.flips == 0 && b.lim.learn && r.lnQ > hopeless {
		b.learn(bits)
		b.before = *r
		r.take(pack(b.word), b.llr[:bits])
		if b.vouched(&r.hard[0], bits, b.llrWeight) {
			r.certified, r.soft, r.nHard = true, false, 1
			b.stats.Learnt++
			b.covered(m, g, bits, start, &r.hard[0])
			return
		}
		if b.flips(r); r.flips == 0 && r.lnQ < b.before.lnQ {
			*r = b.before
		}
	}
	if r.flips > 0 {
		b.stats.Flipped++
		b.covered(m, g, bits, start, &r.flipped)
	}
}

// hopeless is the lnQ below which no more work is done for a frame.
const hopeless = -25

func (b *block) llrWeight(i int) float32 { return abs32(b.llr[i]) }

// decided certifies the trellis' decision if the parity vouches for it.
func (b *block) decided(m int, g float32, bits, start int, level float32) bool {
	h := pack(b.word)
	if !b.vouched(&h, bits, b.llrWeight) {
		return false
	}
	b.certify(m, g, bits, start, level, &h, leastMargin(b.llr[:bits]))
	return true
}

// flips repairs a reading by flips, if there are any.
func (b *block) flips(r *reading) {
	if r.soft {
		b.flip.certify(r, b.lim.depth, b.lim.score)
	}
}

// take makes a decision and its likelihoods the reading's best.
func (r *reading) take(h [14]byte, llr []float32) {
	r.hard[0], r.margin[0] = h, leastMargin(llr)
	r.nHard = max(r.nHard, 1)
	copy(r.llr[:], llr)
	r.lnQ = lnRight(llr)
}

// addHard adds another decision to try.
func (r *reading) addHard(f [14]byte, margin float32) {
	for i := range r.nHard {
		if r.hard[i] == f {
			return
		}
	}
	r.hard[r.nHard], r.margin[r.nHard] = f, margin
	r.nHard++
}

// leastMargin returns the smallest of some likelihood ratios over their mean.
func leastMargin(llr []float32) float32 {
	least, sum := float32(math.Inf(1)), float32(0)
	for _, l := range llr {
		least, sum = min(least, abs32(l)), sum+abs32(l)
	}
	return least * float32(len(llr)) / max(sum, 1e-30)
}
