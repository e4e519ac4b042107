package demod

// haveKernels: the functions of kernel_amd64.s exist.
const haveKernels = true

// energies4 is energiesGeneric for n samples, a multiple of four; re and im
// point to one sample before the first, e to the first's energy.
//
//go:noescape
func energies4(e, re, im *float32, n int, taps *[4]float32)

// loud4 is loudGeneric for n half samples, a multiple of four, in steps of
// four.
//
//go:noescape
func loud4(e *float32, n, p1, p2, p3 int, threshold float32) int

// bytes4 converts n unsigned pairs, a multiple of four.
//
//go:noescape
func bytes4(re, im *float32, src *byte, n int, scale, zero float32)

// dot4 is dotGeneric.
//
//go:noescape
func dot4(re, im, taps *float32, n int) (x, y float32)
