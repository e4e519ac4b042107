package demod

import (
	"math"
	"math/bits"
)

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
func (b *block) phase(bits int, omega float32, passes int) {
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
	b.omega = omega + float32(residue)
	for range passes {
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
		b.refR[i], b.refI[i] = r, q
		u, v := b.zi[2*i]*r-b.zr[2*i]*q, b.zi[2*i+1]*r-b.zr[2*i+1]*q
		b.quad[i] = u*u + v*v
		w[i>>6] |= uint64(math.Float32bits(y-x)>>31) << (63 - i&63)
	}
	b.word = w
}

// trellis decides the frame as a whole. Pulses are as long as a sample or
// little longer and band-limited, so neighbouring bits leak into each other;
// the leak depends only on the two bits, which makes a trellis of two states
// (max-log-MAP). llr gets the log likelihood ratio of each bit.
//
// The log likelihood of a frame is, but for a constant, the sum over its
// pulses of (2*A*g*x - A*A*g*g)/N less 2*A*A*h/N for each pair of pulses with
// the inner product h.
func (b *block) trellis(start, bits, bin int) {
	t := b.t
	gain, cross := &t.gain[bin], &t.cross[bin]
	p := (start + firstDataChip*t.chipStep) % subPhases
	// The chips' phases repeat after five bits at 2.4 Msps, at once at 2.0.
	var sum float32
	var phases [2][longBits]uint8
	for i := range bits {
		phases[0][i] = uint8(p)
		p += t.chipStep
		q := p % subPhases
		phases[1][i] = uint8(q)
		p = (q + t.chipStep) % subPhases
		sum += max(b.xa[i]/gain[phases[0][i]], b.xb[i]/gain[phases[1][i]])
	}
	h := &cross[phases[0][0]]
	// A pulse has a neighbour of each distance by chance.
	amp := max(sum/float32(bits)/(1+(h[1]+2*h[2]+h[3])/(2*h[0])), 1e-20)
	b.amp = amp
	b.trust(bits)
	a2 := amp * amp
	b.response[0] = amp * gain[phases[0][0]]
	for k := 1; k < len(h); k++ {
		b.response[k] = amp * h[k] / gain[phases[0][0]]
	}
	own, pair := &b.own, &b.pair
	for i := range bits {
		pa, pb := phases[0][i], phases[1][i]
		inv := b.inv[i]
		own[i] = inv * (2*amp*(gain[pa]*b.xa[i]-gain[pb]*b.xb[i]) - a2*(cross[pa][0]-cross[pb][0]))
		if i+1 < bits {
			k := -2 * a2 * inv
			pair[1][1][i+1] = k * cross[pa][2]
			pair[1][0][i+1] = k * cross[pa][3]
			pair[0][1][i+1] = k * cross[pb][1]
			pair[0][0][i+1] = k * cross[pb][2]
		}
	}
	b.recurse(bits)
}

// recurse runs the trellis over own, what each bit's pulse says, and pair,
// what each pair of neighbours does: for the bit before zero or one (first
// index) and this bit zero or one.
func (b *block) recurse(n int) {
	if haveKernels {
		low, high := recurse4(&b.llr, &b.fwd, &b.own, &b.pair, n)
		b.word = [2]uint64{bits.Reverse64(low), bits.Reverse64(high)}
		return
	}
	b.word = recurseGeneric(&b.llr, &b.fwd, &b.own, &b.pair, n)
}

func recurseGeneric(llr, fwd, own *[longBits]float32, pair *[2][2][longBits]float32, bits int) (word [2]uint64) {
	// Only the difference of the two states counts. f is how much likelier a
	// one is than a zero from all up to bit i, g from all behind bit j. Both
	// recursions run in one loop, they do not wait for each other.
	f, g := own[0], float32(0)
	fwd[0], llr[bits-1] = f, g
	for i, j := 1, bits-1; i < bits; i, j = i+1, j-1 {
		one := larger(f+pair[1][1][i], pair[0][1][i])
		zero := larger(f+pair[1][0][i], pair[0][0][i])
		f = own[i] + one - zero
		fwd[i] = f
		g += own[j]
		one = larger(g+pair[1][1][j], pair[1][0][j])
		zero = larger(g+pair[0][1][j], pair[0][0][j])
		g = one - zero
		llr[j-1] = g
	}
	for i := range bits {
		l := llr[i] + fwd[i]
		llr[i] = l
		word[i>>6] |= uint64(^math.Float32bits(l)>>31) << (63 - i&63)
	}
	return word
}

// trust fills inv with one over the noise at each bit. Out of phase with the
// carrier there is only noise, so what is there shows where another signal
// makes it more.
func (b *block) trust(bits int) {
	const (
		sure   = 0.92 // the trellis is that much too sure of itself
		window = 8    // bits to each side
		excess = 0.7  // of the measured noise, so that its scatter costs nothing
	)
	var sum float32
	for i := range min(window, bits) {
		sum += b.quad[i]
	}
	n := float32(min(window, bits))
	for i := range bits {
		if j := i + window; j < bits {
			sum += b.quad[j]
			n++
		}
		if j := i - window - 1; j >= 0 {
			sum -= b.quad[j]
			n--
		}
		b.inv[i] = sure / larger(b.noise, excess*sum/n)
	}
}

// steady reports whether the pulses that the trellis chose keep up their
// amplitude through the frame. Where a frame was found at the wrong place,
// some of its bits are noise; those look reliable, but have no pulse.
func (b *block) steady(bits int) bool {
	const segment = 14
	var parts [longBits / segment]float32
	var total float32
	for i := range bits {
		x := b.xb[i]
		if b.word[i>>6]>>(63-i&63)&1 != 0 {
			x = b.xa[i]
		}
		parts[i/segment] += x
		total += x
	}
	for _, p := range parts[:bits/segment] {
		if p < 0.45*total*segment/float32(bits) {
			return false
		}
	}
	return true
}

// larger is max without its care for NaN.
func larger(x, y float32) float32 {
	if x > y {
		return x
	}
	return y
}

// retime returns how many sub-phases later than start the frame fits best,
// given the decisions of the trellis: the maximum of the log likelihood near
// start. Unlike fineTime it is not biased by the data.
func (b *block) retime(start, bits, bin int) int {
	const step = 5 // sub-phases
	var s [3]float32
	for k := range s {
		s[k] = b.fit(start+(k-1)*step, bits, bin)
	}
	bend := s[0] - 2*s[1] + s[2]
	if bend >= 0 {
		return 0
	}
	return int(math.Round(float64(max(-2*step, min(2*step, step*(s[0]-s[2])/(2*bend))))))
}

// fit returns the log likelihood of the decisions, but for factors, if the
// frame started at start.
func (b *block) fit(start, bits, bin int) float32 {
	t := b.t
	gain, cross := &t.gain[bin], &t.cross[bin]
	s1, c1 := math.Sincos(float64(b.omega))
	s2, c2 := math.Sincos(2 * float64(b.omega))
	lateR, lateI := float32(c1), float32(-s1)
	stepR, stepI := float32(c2), float32(-s2)
	turnR, turnI := float32(1), float32(0)
	var sum, leak float32
	before := -1
	u := start + firstDataChip*t.chipStep
	for i := range bits {
		one := int(b.word[i>>6] >> (63 - i&63) & 1)
		at, r, q := u, turnR, turnI
		if one == 0 {
			at += t.chipStep
			r, q = turnR*lateR-turnI*lateI, turnR*lateI+turnI*lateR
		}
		n, p := at/subPhases, at%subPhases
		h := &t.taps[bin][p]
		re := b.re[n-mfBefore:][:mfTaps]
		im := b.im[n-mfBefore:][:mfTaps]
		var x, y float32
		for k, v := range h {
			x += real(v)*re[k] + imag(v)*im[k]
			y += real(v)*im[k] - imag(v)*re[k]
		}
		x, y = x*r-y*q, x*q+y*r
		sum += gain[p] * (x*b.refR[i] + y*b.refI[i])
		leak += cross[p][0] / 2
		if before >= 0 {
			leak += cross[before/2][2+(before&1)-one]
		}
		before = 2*p + one
		turnR, turnI = turnR*stepR-turnI*stepI, turnR*stepI+turnI*stepR
		u += 2 * t.chipStep
	}
	return sum - b.amp*leak
}
