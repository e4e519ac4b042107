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
