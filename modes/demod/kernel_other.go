//go:build !amd64

package demod

const haveKernels = false

func energies4(e, re, im *float32, n int, taps *[4]float32) {}

func loud4(e *float32, n, p1, p2, p3 int, threshold float32) int { return 0 }

func bytes4(re, im *float32, src *byte, n int, scale, zero float32) {}

func dot4(re, im, taps *float32, n int) (x, y float32) { return 0, 0 }
