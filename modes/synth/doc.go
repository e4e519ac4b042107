// Package synth makes Mode S replies on purpose: frames with the right
// parity, and the IQ samples that a receiver at 1090 MHz would hand over if
// they were on the air. Tests, sensitivity curves and demonstrations are made
// from it. Everything is a function of its arguments: the same seed gives the
// same samples again (on another processor architecture up to the rounding of
// fused multiplications).
//
// A signal alone, or many of them added up with noise and with what real
// receivers do to them:
//
//	air := synth.NewAir(2.4e6, 2400) // one millisecond
//	me := [7]byte{0x20, 0x2c, 0xc3, 0x71, 0xc3, 0x2c, 0xe0} // or of a modes.Encode function
//	frame := synth.Squitter(0x4b1a2c, 5, me)
//	air.Add(synth.Signal{Frame: frame[:], Start: 200e-6, Amplitude: 0.3})
//	air.Noise(rand.New(rand.NewPCG(1, 2)), 6.0/128) // of math/rand/v2
//	iq := synth.AppendUC8(nil, air.IQ)
//
// A whole test of a receiver, with the list of what was sent:
//
//	rec := synth.Scenario{Messages: 1000, SNR: 10, Seed: 1}.Make()
//	iq := synth.AppendUC8(nil, rec.IQ)
//
// # Units and byte order
//
// Samples are complex64, I in the real part, with 1.0 as full scale. Time is
// in seconds from the first sample, and the start of a signal is the leading
// edge of its first preamble pulse at half amplitude. Amplitudes are those of the
// pulses before the receiver's low-pass filter; an SNR is pulse power over
// noise power in the whole sampled band. 16-bit and 32-bit sample formats are
// little endian, I before Q.
//
// # Errors
//
// Nothing here returns an error. Signals that reach beyond the samples are
// cut, and values beyond full scale clip when they are quantised.
//
// # Concurrency
//
// The functions may be called from any goroutine. An [Air] belongs to one
// goroutine at a time.
//
// # Specifications
//
//  1. ICAO Annex 10 volume IV sections 3.1.1.6 (Mode A/C reply pulses) and
//     3.1.2.2 (Mode S reply waveform).
package synth
