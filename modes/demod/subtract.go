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
	mr, mi := b.modelR[:to-from], b.modelI[:to-from]
	clear(mr)
	clear(mi)
	pulse := func(chip int, ar, ai float32) {
		sin, cos := math.Sincos(float64(b.omega) * float64(chip-firstDataChip))
		c, d := float32(cos), float32(sin)
		ar, ai = ar*c-ai*d, ar*d+ai*c
		u := s.start + chip*t.chipStep
		n := u/subPhases - subBefore - from
		for k, v := range t.long[bin][u%subPhases] {
			if i := n + k; i >= 0 && i < len(mr) {
				mr[i] += ar*real(v) - ai*imag(v)
				mi[i] += ar*imag(v) + ai*real(v)
			}
		}
	}
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
				pulse(c, ar, ai)
			}
		}
		pulse(firstDataChip+2*i+1-int(s.word[i>>6]>>(63-i&63)&1), ar, ai)
	}
	b.fitShape(from, to)
	energies(b.e[2*from-4:], b.re[from-2:to+3], b.im[from-2:to+3], t)
}

// fitShape finds the short filter that turns the model into what was received
// (timing, smear, the transmitter's own pulse shape) by least squares, and
// takes the result away from the samples from from to to.
func (b *block) fitShape(from, to int) {
	re, im := b.re[from:to], b.im[from:to]
	mr, mi := b.modelR[:len(re)], b.modelI[:len(re)]
	const half = shapeTaps / 2
	// Normal equations a*w = r, with w the taps.
	var a [shapeTaps][shapeTaps]complex128
	var r [shapeTaps]complex128
	model := func(i int) (float32, float32) {
		if i < 0 || i >= len(mr) {
			return 0, 0
		}
		return mr[i], mi[i]
	}
	var auto [shapeTaps]complex128 // of the model at lags 0, 1, 2
	for n := range re {
		var cr, ci [shapeTaps]float32
		for k := range shapeTaps {
			cr[k], ci[k] = model(n - k + half)
		}
		for k := range shapeTaps {
			// conj(s[n-k]) * x[n]
			r[k] += complex(float64(cr[k]*re[n]+ci[k]*im[n]), float64(cr[k]*im[n]-ci[k]*re[n]))
			// conj(s[n+1]) * s[n+1-k]
			auto[k] += complex(float64(cr[0]*cr[k]+ci[0]*ci[k]), float64(cr[0]*ci[k]-ci[0]*cr[k]))
		}
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
	for i := shapeTaps - 1; i >= 0; i-- {
		v := r[i]
		for k := i + 1; k < shapeTaps; k++ {
			v -= a[i][k] * w[k]
		}
		w[i] = v / a[i][i]
	}
	for n := range re {
		for k, v := range w {
			x, y := model(n - k + half)
			c, d := float32(real(v)), float32(imag(v))
			re[n] -= c*x - d*y
			im[n] -= c*y + d*x
		}
	}
}
