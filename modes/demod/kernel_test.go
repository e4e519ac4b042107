package demod

import (
	"math"
	"math/bits"
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

// The sieve of this machine against the plain loops, and against what its
// words mean.
func TestSieve(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const n = gateWindow
	e := make([]float32, n+100)
	passed := 0
	for round := range 60 {
		tm := template24()
		if round%2 == 1 {
			tm = template20()
		}
		for i := range e {
			e[i] = float32(rng.ExpFloat64())
			if round%5 == 0 { // plateaus
				e[i] = float32(int(e[i]))
			}
		}
		for range round { // preambles among the noise, some damaged
			at := rng.IntN(n)
			for _, c := range []int{0, 2, 7, 9}[rng.IntN(2):] {
				e[at+int(tm.chip[c])] += 4 + 20*rng.Float32()
			}
		}
		p1, p2, p3 := tm.preambleHalves()
		for _, limit := range []float32{0, 8, 15, 40} {
			got, want := make([]float32, n), make([]float32, n)
			size := n >> (round % 3)
			a := tm.gates(got[:size], e, limit)
			b := gatesGeneric(want[:size], e, p1, p2, p3, limit)
			if a != b || !slices.Equal(got, want) {
				t.Fatalf("gates differ, loud %x, plainly %x", a, b)
			}
			s := newSieve(&efforts[round%3], 1)
			s.limit = limit
			for m := 1; m+sieveMax < size; m += 7 {
				length := sieveStep * (1 + m%4)
				peaks, good := tm.sift(got[m-1:], e[m:], length, &s)
				plain, fine := siftGeneric(got[m-1:], e[m:], length, &s, &tm.chip)
				if peaks != plain || good != fine {
					t.Fatalf("sieve at %d: %x %x, plainly %x %x", m, peaks, good, plain, fine)
				}
				passed += bits.OnesCount64(good)
			}
		}
	}
	if passed < 100 {
		t.Errorf("only %d preambles passed", passed)
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
