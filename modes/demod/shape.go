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
	var s, e [2*longBits + 2*pad]float32 // pulses, and what the template leaves
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
	var auto [lags]float32
	var r [lags]float32
	for _, c := range on {
		for k := range lags {
			r[k] += e[int(c)+k-echo] // where a pulse is k-echo chips before
			auto[k] += s[int(c)+min(k, pad)]
		}
	}
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
	if !solve(&a, &r) {
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
	for i := range bits {
		var x [2]float32
		for c := range x {
			at := 2*i + c + pad
			for k := 1; k <= echo; k++ {
				x[c] += late[k]*s[at-k] + early[k]*s[at+k]
			}
		}
		inv := b.inv[i] * near[0]
		b.own[i] = inv * 2 * (b.xa[i] - x[0] - b.xb[i] + x[1])
		if i+1 < bits {
			b.pair[1][1][i+1] = -2 * inv * near[2]
			b.pair[1][0][i+1] = -2 * inv * near[3]
			b.pair[0][1][i+1] = -2 * inv * near[1]
			b.pair[0][0][i+1] = -2 * inv * near[2]
		}
	}
	b.recurse(bits)
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
