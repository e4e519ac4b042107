package demod

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The kernels of this machine against the plain loops, to the bit.
func TestKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{0, 1, 3, 4, 5, 7, 8, 100, 1023} {
		re, im := make([]float32, n), make([]float32, n)
		for i := range re {
			re[i], im[i] = float32(rng.NormFloat64()), float32(rng.NormFloat64())
		}
		got, want := make([]float32, 2*n), make([]float32, 2*n)
		energies(got, re, im, template24())
		energiesGeneric(want, re, im, template24())
		if !slices.Equal(got, want) {
			t.Errorf("energies of %d samples differ", n)
		}
		if n > 60 {
			for _, threshold := range []float32{0, 8, 15, 20, 40} {
				for from := range 40 {
					e, m := got[from:], 2*n-from-22
					a := loud(e, m, 5, 17, 22, threshold)
					b := loudGeneric(e, m, 5, 17, 22, threshold)
					if b < a || b-a > 3 || a == m && b != m {
						t.Errorf("loud found %d of %d, plainly %d", a, m, b)
					}
				}
			}
		}
		taps := re[:n&^3]
		if len(taps) > 0 {
			x, y := dot(re, im, taps)
			u, v := dotGeneric(re, im, taps)
			if x != u || y != v {
				t.Errorf("dot of %d: %v %v, plainly %v %v", len(taps), x, y, u, v)
			}
		}
		src := make([]byte, 2*n)
		for i := range src {
			src[i] = byte(rng.Uint32())
		}
		convert(UC8, re, im, src)
		for i := range re {
			if re[i] != float32(float32(src[2*i])/128)-127.4/128 || im[i] != float32(float32(src[2*i+1])/128)-127.4/128 {
				t.Fatalf("sample %d of %d: %v %v from %v", i, n, re[i], im[i], src[2*i:2*i+2])
			}
		}
	}
}

// A receiver that runs for months: the clock must not overflow.
func TestTicksOfLongStreams(t *testing.T) {
	for _, tm := range []*template{template20(), template24()} {
		j := judge{t: tm}
		for _, seconds := range []int64{0, 1, 8000, 86400, 365 * 86400} {
			start := seconds*int64(tm.rate)*subPhases + 2*subPhases
			want := uint64(seconds*12_000_000) + uint64(math.Round(2*12e6/tm.rate)) - 3
			if got := j.ticks(start); got != want {
				t.Errorf("%g Msps: %d s is tick %d, want %d", tm.rate/1e6, seconds, got, want)
			}
		}
	}
}
