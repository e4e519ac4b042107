package rtltcp

import "io"

// A Source is a tuner with a stream of samples: a [Client], or the *rtl.Device
// of github.com/samuel/go-rtlsdr.
type Source interface {
	io.ReadCloser
	// SetCenterFreq tunes, in hertz.
	SetCenterFreq(hz uint) error
	// SetSampleRate sets the rate in samples a second.
	SetSampleRate(hz uint) error
	// SetTunerGainMode chooses manual gain or, with false, the tuner's own.
	SetTunerGainMode(manual bool) error
	// SetTunerGain sets the manual gain in tenths of a decibel.
	SetTunerGain(tenthDB int) error
	// ResetBuffer throws away the samples that wait to be read.
	ResetBuffer() error
}

// Frequency is that of Mode S replies, in hertz.
const Frequency = 1_090_000_000

// DefaultRate is the sample rate that is set when none is given.
const DefaultRate = 2_400_000

// AutoGain, as the gain of [Tune], leaves the gain to the tuner.
const AutoGain = -1000

// Tune prepares a source: rate, frequency and gain (tenths of a decibel, or
// [AutoGain]), then an empty buffer.
func Tune(s Source, frequency, rate uint, gain int) error {
	if err := s.SetSampleRate(rate); err != nil {
		return err
	}
	if err := s.SetCenterFreq(frequency); err != nil {
		return err
	}
	if err := s.SetTunerGainMode(gain != AutoGain); err != nil {
		return err
	}
	if gain != AutoGain {
		if err := s.SetTunerGain(gain); err != nil {
			return err
		}
	}
	return s.ResetBuffer()
}
