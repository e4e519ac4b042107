package demod

// energies filters I and Q with the pulse's shape and squares: e[2i] is the
// energy of a pulse whose middle is on sample i, e[2i+1] of one half a sample
// later. Both have the mean of the noise power a sample where there is only
// noise. The first sample and the last two get nothing.
func energies(e, re, im []float32, t *template) {
	n := len(re) - 3
	if n <= 0 {
		return
	}
	done := 0
	if haveKernels {
		done = n &^ 3
		if done > 0 {
			_, _, _ = im[done+2], e[2*done+1], re[done+2]
			energies4(&e[2], &re[0], &im[0], done, &[4]float32{t.onMid, t.onSide, t.halfIn, t.halfOut})
		}
	}
	energiesGeneric(e[2*done:], re[done:], im[done:], t)
}

func energiesGeneric(e, re, im []float32, t *template) {
	n := len(re) - 3
	if n <= 0 {
		return
	}
	r, m, d := re[3:3+n], im[3:3+n], e[2:2+2*n]
	m = m[:len(r)]
	a0, a1, a2 := re[0], re[1], re[2]
	b0, b1, b2 := im[0], im[1], im[2]
	mid, side, in, out := t.onMid, t.onSide, t.halfIn, t.halfOut
	for i, a3 := range r {
		b3 := m[i]
		x := float32(mid*a1) + float32(side*(a0+a2))
		y := float32(mid*b1) + float32(side*(b0+b2))
		u := float32(in*(a1+a2)) + float32(out*(a0+a3))
		v := float32(in*(b1+b2)) + float32(out*(b0+b3))
		p := d[2*i : 2*i+2 : 2*i+2]
		p[0] = float32(x*x) + float32(y*y)
		p[1] = float32(u*u) + float32(v*v)
		a0, a1, a2 = a1, a2, a3
		b0, b1, b2 = b1, b2, b3
	}
}

const (
	noiseWindow = 40  // samples a window
	noiseStep   = 120 // samples from window to window
	// noiseQuantile of the windows are quieter than the level; the factor
	// takes its bias away (measured on noise alone).
	noiseQuantile = 0.20
	noiseFactor   = 1.10
)

// noiseLevel estimates the noise power from the quiet windows of e. Windows
// of digital silence, in which nothing moves, do not count; with nothing else
// the level is 0.
func noiseLevel(e []float32, scratch []float32) float32 {
	s := scratch[:0]
	for i := 4; i+2*noiseWindow <= len(e)-8; i += 2 * noiseStep {
		w := e[i : i+2*noiseWindow]
		if w[0] == w[22] && w[22] == w[44] && w[44] == w[66] {
			continue
		}
		var s0, s1, s2, s3 float32 // four sums do not wait for each other
		for k := 0; k+3 < len(w); k += 4 {
			s0 += w[k]
			s1 += w[k+1]
			s2 += w[k+2]
			s3 += w[k+3]
		}
		s = append(s, (s0+s1)+(s2+s3))
	}
	if len(s) == 0 {
		return 0
	}
	return ranked(s, int(noiseQuantile*float32(len(s)))) / (2 * noiseWindow) * noiseFactor
}

// ranked returns the number that would be at index k if s were sorted, and
// reorders s.
func ranked(s []float32, k int) float32 {
	// The middle one of three as pivot, so that sorted input is no worse.
	for lo, hi := 0, len(s)-1; lo < hi; {
		a, b, c := s[lo], s[(lo+hi)/2], s[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for s[i] < pivot {
				i++
			}
			for s[j] > pivot {
				j--
			}
			if i <= j {
				s[i], s[j] = s[j], s[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			hi = j
		case k >= i:
			lo = i
		default:
			return s[k]
		}
	}
	return s[k]
}
