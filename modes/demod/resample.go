package demod

import (
	"math"
)

// Streams of other rates are brought to 2.4 Msps by a polyphase filter: for
// each output sample the taps of the nearest of resamplePhases positions
// between two input samples.
const (
	resamplePhases = 128
	resampleLobes  = 6 // zero crossings to each side at the output's rate
	resampleBuffer = 8192
	resampleOut    = DefaultRate
)

type resampler struct {
	rate int64
	half int // taps to each side of the position, a multiple of two
	taps [resamplePhases + 1][]float32

	re, im []float32
	n      int   // samples in re
	pos    int   // index in re of the input sample at or before the next output
	frac   int64 // of an input sample, in units of 1/resampleOut
}

func newResampler(rate int) *resampler {
	r := &resampler{rate: int64(rate)}
	// The pass band is what pulses need, the rest is noise; below 2.4 Msps
	// what the input holds.
	cut := math.Min(1.15e6, 0.48*float64(rate))
	wide := float64(rate) / math.Min(float64(rate), resampleOut)
	r.half = (int(math.Ceil(resampleLobes*wide)) + 1) &^ 1
	for p := range r.taps {
		r.taps[p] = make([]float32, 2*r.half)
		sum := 0.0
		v := make([]float64, 2*r.half)
		for k := range v {
			// Tap k is on input sample pos-half+1+k.
			x := float64(k-r.half+1) - float64(p)/resamplePhases
			s := 2 * cut / float64(rate)
			if x != 0 {
				s = math.Sin(2*math.Pi*cut/float64(rate)*x) / (math.Pi * x)
			}
			w := x / float64(r.half)
			if w *= w; w < 1 {
				s *= 0.5 + 0.5*math.Cos(math.Pi*math.Sqrt(w))
			} else {
				s = 0
			}
			v[k] = s
			sum += s
		}
		for k := range v {
			r.taps[p][k] = float32(v[k] / sum)
		}
	}
	n := resampleBuffer + 4*r.half
	r.re, r.im = make([]float32, n), make([]float32, n)
	r.restart()
	return r
}

// restart begins anew behind silence: the next input sample is at the time of
// the next output.
func (r *resampler) restart() {
	clear(r.re[:r.half])
	clear(r.im[:r.half])
	r.n, r.pos, r.frac = r.half, r.half, 0
}

// room returns how many input samples fit.
func (r *resampler) room() int { return len(r.re) - r.n }

// push appends input samples, not more than there is room.
func (r *resampler) push(f Format, src []byte) {
	n := len(src) / f.SampleBytes()
	convert(f, r.re[r.n:r.n+n], r.im[r.n:r.n+n], src)
	r.n += n
}

// pull writes output samples as long as there is input for them, and returns
// how many.
func (r *resampler) pull(re, im []float32) int {
	whole, part := int(r.rate/resampleOut), r.rate%resampleOut
	done := 0
	for done < len(re) && r.pos+r.half < r.n {
		t := r.taps[(r.frac*resamplePhases+resampleOut/2)/resampleOut]
		from := r.pos - r.half + 1
		re[done], im[done] = dot(r.re[from:], r.im[from:], t)
		done++
		r.pos += whole
		if r.frac += part; r.frac >= resampleOut {
			r.frac -= resampleOut
			r.pos++
		}
	}
	if keep := r.pos - r.half; keep > 0 && (r.room() == 0 || keep > resampleBuffer/2) {
		keep = min(keep, r.n)
		copy(r.re, r.re[keep:r.n])
		copy(r.im, r.im[keep:r.n])
		r.n -= keep
		r.pos -= keep
	}
	return done
}

// dot returns the inner products of two planes with taps, whose number is a
// multiple of four, in four sums.
func dot(re, im, taps []float32) (x, y float32) {
	re, im = re[:len(taps)], im[:len(taps)]
	if haveKernels {
		return dot4(&re[0], &im[0], &taps[0], len(taps))
	}
	return dotGeneric(re, im, taps)
}

func dotGeneric(re, im, taps []float32) (x, y float32) {
	re, im = re[:len(taps)], im[:len(taps)]
	var a, b [4]float32
	for i := 0; i+3 < len(taps); i += 4 {
		for k := range 4 {
			a[k] += float32(re[i+k] * taps[i+k])
			b[k] += float32(im[i+k] * taps[i+k])
		}
	}
	return (a[0] + a[2]) + (a[1] + a[3]), (b[0] + b[2]) + (b[1] + b[3])
}
