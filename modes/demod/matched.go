package demod

import "math"

// carrier estimates the carrier's turn per sample in radians from the
// samples of a frame.
func (b *block) carrier(start, bits int) float32 {
	from := start / subPhases
	to := from + int(b.t.chip[firstDataChip+2*bits-1])/2
	re, im := b.re[from:to], b.im[from:to]
	im = im[:len(re)]
	var c, s float32
	x0, y0 := re[0], im[0]
	for i := 1; i < len(re); i++ {
		x, y := re[i], im[i]
		c += x*x0 + y*y0
		s += y*x0 - x*y0
		x0, y0 = x, y
	}
	return float32(math.Atan2(float64(s), float64(c)))
}

// bin returns the set of matched filters for a carrier that turns by omega
// radians a sample.
func (b *block) bin(omega float32) int {
	hz := float64(omega) / (2 * math.Pi) * b.t.rate
	return min(max(int(math.Round(hz/offsetStep)), -offsetBins), offsetBins) + offsetBins
}

// maxSpan is more than the samples of a frame's data at 2.4 Msps.
const maxSpan = 304

// matched fills zr and zi with the matched filter's output at each data chip.
func (b *block) matched(start, bits, bin int) {
	t := b.t
	u := start + firstDataChip*t.chipStep
	if !haveKernels {
		b.matchedGeneric(u, bits, bin)
		return
	}
	// Five chips are six samples at 2.4 Msps, so each fifth chip has the same
	// taps. At 2.0 Msps all have.
	period := 5
	if t.chipStep%subPhases == 0 {
		period = 1
	}
	stride := period * t.chipStep / subPhases // samples
	from := u/subPhases - mfBefore
	end := (u+(2*bits+2*period)*t.chipStep)/subPhases + mfTaps
	z := b.pairs[:2*((end-from+3)&^3)]
	re, im := b.re[from:from+len(z)/2], b.im[from:from+len(z)/2]
	interleave4(&z[0], &re[0], &im[0], len(re))
	for c := range period {
		n, p := u/subPhases-mfBefore-from, u%subPhases
		count := (2*bits - c + period - 1) / period
		count += count & 1 // in twos; zr and zi have room
		if bin == offsetBins {
			matchReal(&b.zr[c], &b.zi[c], &z[2*n], &t.realTaps[p], count, stride, period)
		} else {
			matchComplex(&b.zr[c], &b.zi[c], &z[2*n], &t.taps[bin][p], count, stride, period)
		}
		u += t.chipStep
	}
}

// matchedGeneric is matched in plain Go; u is the place of the first chip.
func (b *block) matchedGeneric(u, bits, bin int) {
	t := b.t
	zr, zi := b.zr[:2*bits], b.zi[:2*bits]
	zi = zi[:len(zr)]
	n, p := u/subPhases, u%subPhases
	stepN, stepP := t.chipStep/subPhases, t.chipStep%subPhases
	for c := range zr {
		re := b.re[n-mfBefore:][:mfTaps]
		im := b.im[n-mfBefore:][:mfTaps]
		if bin == offsetBins {
			h := &t.realTaps[p]
			zr[c] = float32(h[0]*re[0]) + float32(h[1]*re[1]) + float32(h[2]*re[2]) +
				float32(h[3]*re[3]) + float32(h[4]*re[4]) + float32(h[5]*re[5])
			zi[c] = float32(h[0]*im[0]) + float32(h[1]*im[1]) + float32(h[2]*im[2]) +
				float32(h[3]*im[3]) + float32(h[4]*im[4]) + float32(h[5]*im[5])
		} else {
			h := &t.taps[bin][p]
			var x, y float32
			for k, v := range h {
				x += float32(real(v)*re[k]) + float32(imag(v)*im[k])
				y += float32(real(v)*im[k]) - float32(imag(v)*re[k])
			}
			zr[c], zi[c] = x, y
		}
		n += stepN
		if p += stepP; p >= subPhases {
			p -= subPhases
			n++
		}
	}
}

// incoherent decides each bit by the energy of its halves.
func (b *block) incoherent(bits int) ([14]byte, float32) {
	var w [2]uint64
	least, sum := float32(math.Inf(1)), float32(0)
	for i := range bits {
		x := b.zr[2*i]*b.zr[2*i] + b.zi[2*i]*b.zi[2*i]
		y := b.zr[2*i+1]*b.zr[2*i+1] + b.zi[2*i+1]*b.zi[2*i+1]
		d := x - y
		w[i>>6] |= uint64(math.Float32bits(y-x)>>31) << (63 - i&63)
		b.diff[i] = d
		d = abs32(d)
		least, sum = min(least, d), sum+d
	}
	b.word = w
	return pack(w), least * float32(bits) / max(sum, 1e-30)
}

// expectedErrors returns the expected number of wrong bits among those of
// incoherent.
func (b *block) expectedErrors(bits int) float32 {
	// The log likelihood ratio of a bit is about 2a(|A|-|B|)/N, a the
	// amplitude, and |A|-|B| about (|A|^2-|B|^2)/a.
	k := 2 / b.noise
	var n float32
	for _, d := range b.diff[:bits] {
		n += wrong(abs32(d) * k)
	}
	return n
}
