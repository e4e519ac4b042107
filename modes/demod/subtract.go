package demod

import "math"

// Where two replies overlap, the stronger is found first. Its bits are then
// known, so it can be taken away, and the weaker one be found in what is left.

const (
	subTaps   = 12 // of the pulse that is taken away
	subBefore = 5
	// subWindow is how many pulses to each side give a pulse's amplitude.
	subWindow = 12
	shapeTaps = 3 // of the filter that makes the template this frame's pulse
	maxRegion = 320
)

// uncover takes the frames that are certain away and searches again where
// they were, at most twice.
func (b *block) uncover(lo, hi int) {
	done := 0
	for range 2 {
		n := len(b.certain)
		if done == n {
			return
		}
		for i := done; i < n; i++ {
			b.subtract(&b.certain[i])
		}
		b.busyUntil, b.rescan = 0, true
		for i := done; i < n; i++ {
			s := b.certain[i]
			b.triedBits = 0
			// A frame that starts up to a frame's length before this one may
			// have been hidden by it.
			b.scan(max(lo, s.from-int(b.t.chip[maxChips-1])), min(hi, s.to))
		}
		b.rescan = false
		done = n
	}
}

// taken reports whether a frame that starts at half sample m was taken away
// already: what is left of it is not another.
func (b *block) taken(m int) bool {
	for i := range b.certain {
		if d := m - b.certain[i].from; d >= 0 && d <= 4 {
			return true
		}
	}
	return false
}

// subtract takes a frame out of the samples and renews the energies there.
func (b *block) subtract(s *span) {
	t, bits := b.t, s.bits
	b.stats.Subtracted++
	omega := b.carrier(s.start, bits)
	bin := b.bin(omega)
	b.matched(s.start, bits, bin)
	b.word = s.word
	b.phase(bits, omega*float32(t.rate*0.5e-6), 0)
	b.choose(bits)

	// The matched filter's output for each pulse if its amplitude were 1, its
	// neighbours' leak included.
	gain, cross := &t.gain[bin], &t.cross[bin]
	var unit [longBits]float32
	p := (s.start + firstDataChip*t.chipStep) % subPhases
	before := -1
	for i := range bits {
		one := int(s.word[i>>6] >> (63 - i&63) & 1)
		q := p
		if one == 0 {
			q = (p + t.chipStep) % subPhases
		}
		unit[i] += gain[q]
		if before >= 0 {
			h := cross[before/2][2+(before&1)-one]
			unit[i] += h / gain[q]
			unit[i-1] += h / gain[before/2]
		}
		before = 2*q + one
		p = (p + 2*t.chipStep) % subPhases
	}

	// The model of the frame, s in ascending chips: amplitude and phase of
	// each pulse from the pulses around it.
	from := max(s.start/subPhases-subBefore, 1)
	to := min((s.start+(firstDataChip+2*bits)*t.chipStep)/subPhases+subTaps-subBefore, len(b.re)-3)
	if to-from > maxRegion || to <= from {
		return
	}
	mr, mi := b.modelR[:to-from+2], b.modelI[:to-from+2]
	clear(mr)
	clear(mi)
	mr, mi = mr[1:len(mr)-1], mi[1:len(mi)-1]
	// pulse adds the pulse of a chip, with the carrier turned by cos and sin.
	pulse := func(chip int, ar, ai float32, cos, sin float64) {
		c, d := float32(cos), float32(sin)
		ar, ai = ar*c-ai*d, ar*d+ai*c
		u := s.start + chip*t.chipStep
		addPulse(mr, mi, u/subPhases-subBefore-from, &t.long[bin][u%subPhases], ar, ai)
	}
	sin, cos := math.Sincos(float64(b.omega))
	step, turn := complex(cos, sin), complex(1, 0) // a chip, and all up to bit i
	var sr, si, su float32
	add := func(i int, sign float32) {
		sr += sign * b.wr[i] * unit[i]
		si += sign * b.wi[i] * unit[i]
		su += sign * unit[i] * unit[i]
	}
	for i := range min(subWindow, bits) {
		add(i, 1)
	}
	for i := range bits {
		if j := i + subWindow; j < bits {
			add(j, 1)
		}
		if j := i - subWindow - 1; j >= 0 {
			add(j, -1)
		}
		ar, ai := sr/su, si/su
		if i == 0 {
			for _, c := range [...]int{0, 2, 7, 9} {
				sin, cos := math.Sincos(float64(b.omega) * float64(c-firstDataChip))
				pulse(c, ar, ai, cos, sin)
			}
		}
		if s.word[i>>6]>>(63-i&63)&1 != 0 {
			pulse(firstDataChip+2*i, ar, ai, real(turn), imag(turn))
		} else {
			late := turn * step
			pulse(firstDataChip+2*i+1, ar, ai, real(late), imag(late))
		}
		turn *= step * step
	}
	b.fitShape(from, to)
	energies(b.e[2*from-4:], b.re[from-2:to+3], b.im[from-2:to+3], t)
}

// addPulse adds a times the pulse v to the model from index n on, where that is
// inside.
func addPulse(mr, mi []float32, n int, v *[2][subTaps]float32, ar, ai float32) {
	if haveKernels && n >= 0 && n+subTaps <= len(mr) {
		_ = mi[n+subTaps-1]
		addPulse12(&mr[n], &mi[n], v, ar, ai)
		return
	}
	addPulseGeneric(mr, mi, n, v, ar, ai)
}

func addPulseGeneric(mr, mi []float32, n int, v *[2][subTaps]float32, ar, ai float32) {
	for k := range subTaps {
		if i := n + k; i >= 0 && i < len(mr) {
			mr[i] += float32(ar*v[0][k]) - float32(ai*v[1][k])
			mi[i] += float32(ar*v[1][k]) + float32(ai*v[0][k])
		}
	}
}

// Sums over the samples n of a region for the fit: of conj(s[n-k]) * x[n], k
// from -1 to 1, x what was received and s the model, real and imaginary part
// in turn, and of conj(s[n+1]) * s[n+1-k], k from 0 to 2. Each is a sum over even
// and one over odd n.
type fitSums [2 * 2 * shapeTaps][2]float64

// add adds the samples of re and im; mr and mi begin one sample before and end
// one behind.
func (f *fitSums) add(mr, mi, re, im []float32) {
	n := len(re)
	mr, mi, im = mr[:n+2], mi[:n+2], im[:n]
	done := 0
	if haveKernels && n >= 4 {
		done = n &^ 3
		fit4(f, &mr[0], &mi[0], &re[0], &im[0], done)
	}
	f.addGeneric(mr[done:], mi[done:], re[done:], im[done:])
}

func (f *fitSums) addGeneric(mr, mi, re, im []float32) {
	for n, x := range re {
		y, lane := im[n], n&1
		c0, d0 := mr[n+2], mi[n+2]
		for k := range shapeTaps {
			c, d := mr[n+2-k], mi[n+2-k]
			f[2*k][lane] += float64(float32(c*x) + float32(d*y))
			f[2*k+1][lane] += float64(float32(c*y) - float32(d*x))
			f[6+2*k][lane] += float64(float32(c0*c) + float32(d0*d))
			f[6+2*k+1][lane] += float64(float32(c0*d) - float32(d0*c))
		}
	}
}

// takeAway subtracts the model, filtered by the taps w, from re and im.
func takeAway(mr, mi, re, im []float32, w *[shapeTaps]complex64) {
	n := len(re)
	mr, mi, im = mr[:n+2], mi[:n+2], im[:n]
	done := 0
	if haveKernels && n >= 4 {
		done = n &^ 3
		takeAway4(&mr[0], &mi[0], &re[0], &im[0], done, w)
	}
	takeAwayGeneric(mr[done:], mi[done:], re[done:], im[done:], w)
}

func takeAwayGeneric(mr, mi, re, im []float32, w *[shapeTaps]complex64) {
	for n := range re {
		for k, v := range w {
			x, y := mr[n+2-k], mi[n+2-k]
			re[n] -= float32(real(v)*x) - float32(imag(v)*y)
			im[n] -= float32(real(v)*y) + float32(imag(v)*x)
		}
	}
}

// fitShape finds the short filter that turns the model into what was received
// (timing, smear, the transmitter's own pulse shape) by least squares, and
// takes the result away from the samples from from to to.
func (b *block) fitShape(from, to int) {
	re, im := b.re[from:to], b.im[from:to]
	mr, mi := b.modelR[:len(re)+2], b.modelI[:len(re)+2]
	var sums fitSums
	sums.add(mr, mi, re, im)
	// Normal equations a*w = r, with w the taps.
	var a [shapeTaps][shapeTaps]complex128
	var r, auto [shapeTaps]complex128 // auto is of the model at lags 0, 1, 2
	total := func(i int) complex128 {
		return complex(sums[i][0]+sums[i][1], sums[i+1][0]+sums[i+1][1])
	}
	for k := range shapeTaps {
		r[k], auto[k] = total(2*k), total(2*shapeTaps+2*k)
	}
	for i := range shapeTaps {
		for j := range shapeTaps {
			if j >= i {
				a[i][j] = auto[j-i]
			} else {
				a[i][j] = complex(real(auto[i-j]), -imag(auto[i-j]))
			}
		}
		a[i][i] *= 1.001
	}
	// Elimination; the matrix is Hermitian and positive.
	for i := range shapeTaps {
		if real(a[i][i]) <= 0 {
			return
		}
		for j := i + 1; j < shapeTaps; j++ {
			f := a[j][i] / a[i][i]
			for k := i; k < shapeTaps; k++ {
				a[j][k] -= f * a[i][k]
			}
			r[j] -= f * r[i]
		}
	}
	var w [shapeTaps]complex128
	var taps [shapeTaps]complex64
	for i := shapeTaps - 1; i >= 0; i-- {
		v := r[i]
		for k := i + 1; k < shapeTaps; k++ {
			v -= a[i][k] * w[k]
		}
		w[i] = v / a[i][i]
		taps[i] = complex64(w[i])
	}
	takeAway(mr, mi, re, im, &taps)
}
