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

// sameBits fails where two slices are not equal, but for the sign of zero.
func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: number %d is %v, plainly %v", what, i, got[i], want[i])
		}
	}
}

// The work on one frame, against the plain loops.
func TestFrameKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	fill := func(x []float32) {
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
	}
	for _, tm := range []*template{template20(), template24()} {
		c := Config{Effort: EffortMax}
		x, y := newBlock(tm, &efforts[EffortMax], &c), newBlock(tm, &efforts[EffortMax], &c)
		fill(x.re)
		fill(x.im)
		copy(y.re, x.re)
		copy(y.im, x.im)
		for bin := range 2*offsetBins + 1 {
			for _, n := range []int{shortBits, longBits} {
				start := (50+rng.IntN(8000))*subPhases + rng.IntN(subPhases)
				x.matched(start, n, bin)
				y.matchedGeneric(start+firstDataChip*tm.chipStep, n, bin)
				sameBits(t, "I behind the matched filter", x.zr[:2*n], y.zr[:2*n])
				sameBits(t, "Q behind the matched filter", x.zi[:2*n], y.zi[:2*n])
			}
		}
		e := make([]float32, 700)
		for range 20 {
			for i := range e {
				e[i] = float32(rng.ExpFloat64())
			}
			got := [5]float32{1, 2, 3, 4, 5}
			want := got
			n := []int{shortBits, longBits, 1}[rng.IntN(3)]
			pulses(&got, e, tm.one[:n], tm.zero[:n])
			pulsesGeneric(&want, e, tm.one[:n], tm.zero[:n])
			sameBits(t, "pulses", got[:], want[:])

			var words, plain [bareGroup]uint32
			tm.heads(&words, e[n:])
			headsGeneric(&plain, e[n:], tm)
			for k, w := range words {
				if w>>27 != plain[k]>>27 || frameLength(w) != 0 && w != plain[k] {
					t.Fatalf("head %d is %08x, plainly %08x", k, w, plain[k])
				}
			}
		}
	}

	for range 50 {
		var own, llr, fwd, llr2, fwd2 [longBits]float32
		var pair [2][2][longBits]float32
		fill(own[:])
		for i := range pair {
			for j := range pair[i] {
				fill(pair[i][j][:])
			}
		}
		for _, n := range []int{shortBits, longBits} {
			x := block{llr: llr, fwd: fwd, own: own, pair: pair}
			x.recurse(n)
			word := recurseGeneric(&llr2, &fwd2, &own, &pair, n)
			sameBits(t, "trellis forward", x.fwd[:n], fwd2[:n])
			sameBits(t, "trellis", x.llr[:n], llr2[:n])
			if x.word != word {
				t.Fatalf("trellis decides %x, plainly %x", x.word, word)
			}
		}

		var s, e [2*longBits + 4*echo + 1]float32
		var on []int16
		fill(e[:])
		for i := range s {
			s[i] = float32(rng.IntN(2))
			if s[i] == 1 && i >= 2*echo && i < 2*echo+2*longBits {
				on = append(on, int16(i))
			}
		}
		var a, b, a2, b2 [lags + 1]float32
		correlate(&a, &b, s[:], e[:], on)
		correlateGeneric(&a2, &b2, s[:], e[:], on)
		sameBits(t, "autocorrelation", a[:], a2[:])
		sameBits(t, "correlation", b[:], b2[:])
		var late, early [echo + 1]float32
		fill(late[:])
		fill(early[4:])
		for _, n := range []int{0, 2, 2 * shortBits, 2 * longBits} {
			var got, want [2 * longBits]float32
			echoes(got[:n], s[:], &late, &early)
			echoesGeneric(want[:n], s[:], &late, &early)
			sameBits(t, "echoes", got[:], want[:])
		}
	}
}

// Subtraction, against the plain loops.
func TestSubtractKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	plane := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		return x
	}
	for _, n := range []int{1, 3, 4, 11, 12, 13, 100, 303} {
		mr, mi, re, im := plane(n+2), plane(n+2), plane(n), plane(n)
		for from := -subTaps; from <= n; from++ {
			v := [2][subTaps]float32{[subTaps]float32(plane(subTaps)), [subTaps]float32(plane(subTaps))}
			r, i := slices.Clone(mr[1:n+1]), slices.Clone(mi[1:n+1])
			addPulse(mr[1:n+1], mi[1:n+1], from, &v, 0.3, -0.7)
			addPulseGeneric(r, i, from, &v, 0.3, -0.7)
			sameBits(t, "I of a pulse", mr[1:n+1], r)
			sameBits(t, "Q of a pulse", mi[1:n+1], i)
		}
		var got, want fitSums
		got.add(mr, mi, re, im)
		want.addGeneric(mr, mi, re, im)
		if got != want {
			t.Fatalf("sums of %d samples: %v, plainly %v", n, got, want)
		}
		w := [shapeTaps]complex64{0.2 - 0.1i, 0.9 + 0.3i, -0.1 + 0.2i}
		x, y := slices.Clone(re), slices.Clone(im)
		takeAway(mr, mi, re, im, &w)
		takeAwayGeneric(mr, mi, x, y, &w)
		sameBits(t, "I of what is left", re, x)
		sameBits(t, "Q of what is left", im, y)
	}
}

func TestRanked(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for n := 1; n < 150; n++ {
		s := make([]float32, n)
		for i := range s {
			s[i] = float32(rng.IntN(1 + n*(n%3)))
		}
		sorted := slices.Sorted(slices.Values(s))
		for k := range n {
			if got := ranked(s, k); got != sorted[k] {
				t.Fatalf("number %d of %v is %v", k, sorted, got)
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
