package demod

import "math"

// refWindow is how many bits to each side of a bit give its reference phase:
// enough to average the noise away, few enough to follow a transmitter whose
// phase drifts.
const refWindow = 16

// rotate turns chip c of z by -omega*(from+c).
func (b *block) rotate(chips int, omega float32) {
	s, c := math.Sincos(float64(omega))
	s2, c2 := math.Sincos(2 * float64(omega))
	// Two interleaved recurrences, each two chips a step.
	stepR, stepI := float32(c2), float32(-s2)
	ar, ai := float32(1), float32(0)
	br, bi := float32(c), float32(-s)
	zr, zi := b.zr[:chips], b.zi[:chips]
	zi = zi[:len(zr)]
	for i := 0; i+1 < len(zr); i += 2 {
		x, y := zr[i], zi[i]
		zr[i], zi[i] = x*ar-y*ai, x*ai+y*ar
		x, y = zr[i+1], zi[i+1]
		zr[i+1], zi[i+1] = x*br-y*bi, x*bi+y*br
		ar, ai = ar*stepR-ai*stepI, ar*stepI+ai*stepR
		br, bi = br*stepR-bi*stepI, br*stepI+bi*stepR
	}
}

// choose copies the chip that each decided bit has on to wr and wi.
func (b *block) choose(bits int) {
	for i := range bits {
		c := 2*i + 1 - int(b.word[i>>6]>>(63-i&63)&1)
		b.wr[i], b.wi[i] = b.zr[c], b.zi[c]
	}
}

// phase takes the carrier out of the chips, omega radians a chip as a first
// guess, and projects each chip on the phase of the pulses around it: xa and
// xb are the early and the late half of each bit as amplitudes.
func (b *block) phase(bits int, omega float32) {
	b.rotate(2*bits, omega)
	b.choose(bits)
	// What is left of the frequency, from pulses ever further apart: each
	// lag's ambiguity is resolved by the one before.
	var residue float64
	for _, lag := range [...]int{1, 4, 16} {
		var c, s float32
		for i := lag; i < bits; i++ {
			c += b.wr[i]*b.wr[i-lag] + b.wi[i]*b.wi[i-lag]
			s += b.wi[i]*b.wr[i-lag] - b.wr[i]*b.wi[i-lag]
		}
		span := float64(2 * lag)
		d := math.Atan2(float64(s), float64(c)) - residue*span
		d -= 2 * math.Pi * math.Round(d/(2*math.Pi))
		residue += d / span
	}
	b.rotate(2*bits, float32(residue))
	for range 2 {
		b.choose(bits)
		b.project(bits)
	}
}

// project fills xa and xb from the reference phase of the chosen pulses and
// decides each bit anew.
func (b *block) project(bits int) {
	var w [2]uint64
	var sr, si float32
	for i := range min(refWindow, bits) {
		sr += b.wr[i]
		si += b.wi[i]
	}
	for i := range bits {
		if j := i + refWindow; j < bits {
			sr += b.wr[j]
			si += b.wi[j]
		}
		if j := i - refWindow - 1; j >= 0 {
			sr -= b.wr[j]
			si -= b.wi[j]
		}
		r, q := sr-b.wr[i], si-b.wi[i]
		k := 1 / float32(math.Sqrt(float64(r*r+q*q+1e-30)))
		r *= k
		q *= k
		x := b.zr[2*i]*r + b.zi[2*i]*q
		y := b.zr[2*i+1]*r + b.zi[2*i+1]*q
		b.xa[i], b.xb[i] = x, y
		w[i>>6] |= uint64(math.Float32bits(y-x)>>31) << (63 - i&63)
	}
	b.word = w
}

// trellis decides the frame as a whole. Pulses are as long as a sample or
// little longer and band-limited, so neighbouring bits leak into each other;
// the leak depends only on the two bits, which makes a trellis of two states
// (max-log-MAP). llr gets the log likelihood ratio of each bit.
//
// The log likelihood of a whole frame is, but for a constant, the sum over
// the pulses of 2a*x/N less a*a*h/N for each pair of pulses that overlap.
func (b *block) trellis(bits, bin int) {
	t := b.t
	h1, h2 := t.lag1[bin], t.lag2[bin]
	var a float32
	for i := range bits {
		a += max(b.xa[i], b.xb[i])
	}
	a = max(a/float32(bits)/(1+h1/2), 1e-20)
	inv := 1 / b.noise
	k := 2 * a * inv
	// Transitions from the bit before: a late pulse followed by an early one
	// is one chip apart, equal bits are two apart, 1 then 0 is three.
	late1 := -2 * a * a * h1 * inv // 0 then 1
	same := -2 * a * a * h2 * inv
	// Forward.
	var f0, f1 float32
	for i := range bits {
		m1, m0 := k*b.xa[i], k*b.xb[i]
		if i > 0 {
			n1 := max(f1+same, f0+late1)
			n0 := max(f0+same, f1)
			f1, f0 = n1, n0
		}
		f1 += m1
		f0 += m0
		// Only the difference counts.
		f1 -= f0
		f0 = 0
		b.fwd[i] = f1
	}
	// Backward; b1, b0 exclude the bit's own metric.
	var b1, b0 float32
	for i := bits - 1; i >= 0; i-- {
		b.llr[i] = b.fwd[i] + b1 - b0
		m1, m0 := k*b.xa[i]+b1, k*b.xb[i]+b0
		b1 = max(m1+same, m0)
		b0 = max(m0+same, m1+late1)
		b1 -= b0
		b0 = 0
	}
}
