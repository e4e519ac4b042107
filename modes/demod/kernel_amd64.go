//go:build !purego

package demod

// haveKernels: the functions of kernel_amd64.s exist.
const haveKernels = true

// energies4 is energiesGeneric for n samples, a multiple of four; re and im
// point to one sample before the first, e to the first's energy.
//
//go:noescape
func energies4(e, re, im *float32, n int, taps *[4]float32)

// gates16 is gatesGeneric for n half samples.
//
//go:noescape
func gates16(dst, e *float32, n, p1, p2, p3 int, limit float32) (loud uint64)

// sift24 is siftGeneric for 2.4 Msps.
//
//go:noescape
func sift24(sum, e *float32, n int, s *sieve) (peaks, good uint64)

// sift20 is siftGeneric for 2.0 Msps.
//
//go:noescape
func sift20(sum, e *float32, n int, s *sieve) (peaks, good uint64)

// bytes4 converts n unsigned pairs, a multiple of four.
//
//go:noescape
func bytes4(re, im *float32, src *byte, n int, scale, zero float32)

// dot4 is dotGeneric.
//
//go:noescape
func dot4(re, im, taps *float32, n int) (x, y float32)

// interleave4 writes n samples, a multiple of four, as pairs of I and Q.
//
//go:noescape
func interleave4(z, re, im *float32, n int)

// matchReal applies taps to n places, an even number, stride samples apart, of
// the pairs at z, and writes to zr and zi at each period.
//
//go:noescape
func matchReal(zr, zi, z *float32, taps *[mfTaps]float32, n, stride, period int)

// matchComplex is matchReal with complex taps, conjugate.
//
//go:noescape
func matchComplex(zr, zi, z *float32, taps *[mfTaps]complex64, n, stride, period int)

// correlate16 is correlateGeneric.
//
//go:noescape
func correlate16(auto, r *[lags + 1]float32, s, e *float32, on *int16, n int)

// echoes4 is echoesGeneric for n chips, a multiple of four; s is at the first.
//
//go:noescape
func echoes4(x, s *float32, n int, late, early *[echo + 1]float32)

// pulses5 is pulsesGeneric.
//
//go:noescape
func pulses5(s *[5]float32, e *float32, one, zero *int32, n int)

// recurse4 is recurseGeneric for a number of bits that four divides. Bit i of
// the words is that of bit i of the frame.
//
//go:noescape
func recurse4(llr, fwd, own *[longBits]float32, pair *[2][2][longBits]float32, n int) (low, high uint64)

// heads8 is headsGeneric, always with all 32 bits.
//
//go:noescape
func heads8(words *[bareGroup]uint32, e *float32, one, zero *int32)

// addPulse12 is addPulseGeneric for a pulse that is inside.
//
//go:noescape
func addPulse12(mr, mi *float32, v *[2][subTaps]float32, ar, ai float32)

// fit4 is addGeneric for n samples, a multiple of four.
//
//go:noescape
func fit4(f *fitSums, mr, mi, re, im *float32, n int)

// takeAway4 is takeAwayGeneric for n samples, a multiple of four.
//
//go:noescape
func takeAway4(mr, mi, re, im *float32, n int, w *[shapeTaps]complex64)
