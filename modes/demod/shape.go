package demod

// Real pulses are not the template's: the transmitter, the antenna and the
// receiver smear them, and reflections come a little later. A frame that the
// template does not decide teaches its own response instead: how much a pulse
// adds to the matched filter's output at each chip from echo chips before it
// to echo chips behind it.
const (
	echo = 7
	lags = 2*echo + 1
	// shapeSpread is how far responses stray from the template's, in pulse
	// amplitudes.
	shapeSpread = 0.15
)

// learn fits the response by least squares to the decisions of the trellis and
// decides again. What comes too late for the trellis is taken away by the
// decisions.
func (b *block) learn(bits int) {
	const pad = 2 * echo
	var s, e [2*longBits + 2*pad + 1]float32 // pulses, and what the template leaves
	chips := 2 * bits
	on := b.onChips[:bits]
	for i := range bits {
		c := 2*i + 1 - int(b.word[i>>6]>>(63-i&63)&1)
		on[i] = int16(c + pad)
		s[c+pad] = 1
		e[2*i+pad], e[2*i+1+pad] = b.xa[i], b.xb[i]
	}
	for _, c := range [...]int{7, 9} { // of the preamble
		s[pad-firstDataChip+c] = 1
	}
	h := &b.response
	for c := pad; c < pad+chips; c++ {
		e[c] -= h[0]*s[c] + h[1]*(s[c-1]+s[c+1]) + h[2]*(s[c-2]+s[c+2]) + h[3]*(s[c-3]+s[c+3])
	}
	// Normal equations; the matrix depends on the difference of lags only.
	var auto, r [lags + 1]float32 // one more than counts
	correlate(&auto, &r, s[:], e[:], on)
	var noise float32
	for _, v := range b.inv[:bits] {
		noise += 1 / v
	}
	noise /= float32(2 * bits)
	spread := shapeSpread * h[0]
	ridge := noise / (spread * spread)
	var a [lags][lags]float32
	for i := range lags {
		for j := range i + 1 {
			a[i][j] = auto[i-j]
		}
		a[i][i] += ridge
	}
	if !solve(&a, (*[lags]float32)(r[:])) {
		return
	}
	// The response before the pulse is the smear, for which the trellis is;
	// what is more behind it is echo.
	var near [4]float32
	near[0] = h[0] + r[echo]
	if near[0] < h[0]/2 {
		return
	}
	var late, early [echo + 1]float32
	for k := 1; k <= echo; k++ {
		before, behind := r[echo-k], r[echo+k]
		if k < len(near) {
			near[k] = h[k] + before
			late[k] = behind - before
		} else {
			early[k], late[k] = before, behind
		}
	}
	x := e[:chips]
	echoes(x, s[:], &late, &early)
	for i := range bits {
		inv := b.inv[i] * near[0]
		b.own[i] = inv * 2 * (b.xa[i] - x[2*i] - b.xb[i] + x[2*i+1])
		if i+1 < bits {
			b.pair[1][1][i+1] = -2 * inv * near[2]
			b.pair[1][0][i+1] = -2 * inv * near[3]
			b.pair[0][1][i+1] = -2 * inv * near[1]
			b.pair[0][0][i+1] = -2 * inv * near[2]
		}
	}
	b.recurse(bits)
}

// correlate adds up, over the pulses at the places on, e from echo places
// before to echo behind it and s from there to 2*echo behind; both and one
// place more.
func correlate(auto, r *[lags + 1]float32, s, e []float32, on []int16) {
	if haveKernels && len(on) > 0 {
		last := int(on[len(on)-1]) // they rise
		_, _, _ = s[last+lags], e[last+lags-echo], e[int(on[0])-echo]
		correlate16(auto, r, &s[0], &e[0], &on[0], len(on))
		return
	}
	correlateGeneric(auto, r, s, e, on)
}

func correlateGeneric(auto, r *[lags + 1]float32, s, e []float32, on []int16) {
	for _, c := range on {
		v, w := s[c:][:lags+1], e[int(c)-echo:][:lags+1]
		for k := range v {
			r[k] += w[k]
			auto[k] += v[k]
		}
	}
}

// echoes fills x, whose length is even, with what the pulses s, from 2*echo on,
// leave at each chip: late[k] of the pulse k chips before and early[k] of the one
// k chips behind. early is 0 up to 3.
func echoes(x, s []float32, late, early *[echo + 1]float32) {
	n := len(x)
	done := 0
	if haveKernels && n >= 4 {
		done = n &^ 3
		_ = s[2*echo+done+echo-1]
		echoes4(&x[0], &s[2*echo], done, late, early)
	}
	echoesGeneric(x[done:], s[done:], late, early)
}

func echoesGeneric(x, s []float32, late, early *[echo + 1]float32) {
	for c := range x {
		at := c + 2*echo
		var v float32
		for k := 1; k <= echo; k++ {
			v += float32(late[k]*s[at-k]) + float32(early[k]*s[at+k])
		}
		x[c] = v
	}
}

// solve solves a*x = r for a positive definite matrix of which the lower half
// is given, x replacing r.
func solve(a *[lags][lags]float32, r *[lags]float32) bool {
	// a = l*d*l', in place.
	var d [lags]float32
	for j := range lags {
		v := a[j][j]
		for k := range j {
			v -= a[j][k] * a[j][k] * d[k]
		}
		if !(v > 1e-12) {
			return false
		}
		d[j] = v
		for i := j + 1; i < lags; i++ {
			w := a[i][j]
			for k := range j {
				w -= a[i][k] * a[j][k] * d[k]
			}
			a[i][j] = w / v
		}
	}
	for i := range lags {
		for k := range i {
			r[i] -= a[i][k] * r[k]
		}
	}
	for i := lags - 1; i >= 0; i-- {
		r[i] /= d[i]
		for k := i + 1; k < lags; k++ {
			r[i] -= a[k][i] * r[k]
		}
	}
	return true
}
