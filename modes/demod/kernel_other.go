//go:build !amd64 || purego

package demod

const haveKernels = false

func energies4(e, re, im *float32, n int, taps *[4]float32) {}

func gates16(dst, e *float32, n, p1, p2, p3 int, limit float32) (loud uint64) { return 0 }

func sift24(sum, e *float32, n int, s *sieve) (peaks, good uint64) { return 0, 0 }

func sift20(sum, e *float32, n int, s *sieve) (peaks, good uint64) { return 0, 0 }

func bytes4(re, im *float32, src *byte, n int, scale, zero float32) {}

func dot4(re, im, taps *float32, n int) (x, y float32) { return 0, 0 }

func interleave4(z, re, im *float32, n int) {}

func matchReal(zr, zi, z *float32, taps *[mfTaps]float32, n, stride, period int) {}

func matchComplex(zr, zi, z *float32, taps *[mfTaps]complex64, n, stride, period int) {}

func correlate16(auto, r *[lags + 1]float32, s, e *float32, on *int16, n int) {}

func echoes4(x, s *float32, n int, late, early *[echo + 1]float32) {}

func pulses5(s *[5]float32, e *float32, one, zero *int32, n int) {}

func recurse4(llr, fwd, own *[longBits]float32, pair *[2][2][longBits]float32, n int) (low, high uint64) {
	return 0, 0
}

func heads8(words *[bareGroup]uint32, e *float32, one, zero *int32) {}

func addPulse12(mr, mi *float32, v *[2][subTaps]float32, ar, ai float32) {}

func fit4(f *fitSums, mr, mi, re, im *float32, n int) {}

func takeAway4(mr, mi, re, im *float32, n int, w *[shapeTaps]complex64) {}
