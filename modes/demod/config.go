package demod

import (
	"errors"
	"fmt"

	"signalbox.example/modes"
)

// Format is how a receiver writes its samples, I before Q without anything
// between. Sixteen-bit and longer values are little endian.
type Format uint8

// Sample formats. The zero value is UC8.
const (
	UC8     Format = iota // unsigned bytes, zero at 127.4, full scale 128 (RTL-SDR)
	CS8                   // signed bytes, full scale 128 (HackRF)
	SC16                  // signed 16 bits, full scale 32768
	SC16Q11               // signed 16 bits, full scale 2048 (bladeRF)
	CF32                  // 32-bit floating point, full scale 1.0
	formats
)

// String returns uc8, cs8, sc16, sc16q11 or cf32.
func (f Format) String() string {
	if f >= formats {
		return fmt.Sprintf("format %d", uint8(f))
	}
	return [...]string{"uc8", "cs8", "sc16", "sc16q11", "cf32"}[f]
}

// SampleBytes returns the number of bytes of one complex sample.
func (f Format) SampleBytes() int {
	switch f {
	case SC16, SC16Q11:
		return 4
	case CF32:
		return 8
	}
	return 2
}

// ParseFormat is the inverse of [Format.String]. Any other text is an error that
// wraps [ErrFormat] and lists the formats.
func ParseFormat(s string) (Format, error) {
	for f := range formats {
		if f.String() == s {
			return f, nil
		}
	}
	return 0, fmt.Errorf("%w %q: want uc8, cs8, sc16, sc16q11 or cf32", ErrFormat, s)
}

// Repair says which frames with wrong bits are repaired.
type Repair uint8

// Repair modes. The zero value is RepairSoft.
const (
	RepairSoft Repair = iota // by the least reliable bits, see the package comment
	RepairNone               // none
	RepairOne                // up to one bit by parity alone, see [modes.Repair]
	RepairTwo                // up to two bits by parity alone
	repairs
)

// Effort trades processor time for yield.
type Effort uint8

// Efforts. The zero value is EffortDefault; the package comment says what
// each costs and finds.
const (
	EffortDefault Effort = iota
	EffortFast
	EffortMax
	numEfforts
)

// String returns fast, default or max.
func (e Effort) String() string {
	if e >= numEfforts {
		return fmt.Sprintf("effort %d", uint8(e))
	}
	return [...]string{"default", "fast", "max"}[e]
}

// ParseEffort is the inverse of [Effort.String]. Any other text is an error that
// lists the efforts.
func ParseEffort(s string) (Effort, error) {
	for e := range numEfforts {
		if e.String() == s {
			return e, nil
		}
	}
	return 0, fmt.Errorf("demod: unknown effort %q: want fast, default or max", s)
}

// Rates in samples per second.
const (
	DefaultRate = 2_400_000
	MinRate     = 2_000_000
	MaxRate     = 64_000_000
)

// Errors of [New], wrapped with the value that was wrong.
var (
	ErrFormat = errors.New("demod: unknown sample format")
	ErrRate   = errors.New("demod: rate is not from 2 to 64 million samples per second")
	ErrConfig = errors.New("demod: unknown repair mode or effort, or a negative number of workers")
)

// ErrTruncated is yielded by [Demodulator.Frames] when the input ends in the
// middle of a sample.
var ErrTruncated = errors.New("demod: input ends inside a sample")

// Config is what a Demodulator needs to know. The zero value is an RTL-SDR's
// UC8 at 2.4 Msps, repaired softly, default effort.
type Config struct {
	// Format is the sample format.
	Format Format
	// Rate is in samples per second, from MinRate to MaxRate; 0 means
	// DefaultRate. 2.0 and 2.4 Msps are worked on as they are, other rates
	// are resampled to 2.4 Msps first.
	Rate int
	// Repair says which frames with wrong bits are repaired.
	Repair Repair
	// Effort trades processor time for yield.
	Effort Effort
	// ModeAC looks for Mode A/C replies too and hands them to the function of
	// [Demodulator.OnModeAC].
	ModeAC bool
	// Workers is the number of goroutines that search blocks of samples at
	// the same time; 0 and 1 use the caller's only. The results are the same
	// for any number, but with more than one they come up to four blocks late
	// instead of one: a block is 16,384 samples (8,192 with EffortMax), 7 ms at
	// 2.4 Msps. More than four count as four; a negative number is an error.
	Workers int
	// Filter holds the addresses that are known, by the clock of Time12.
	// Receivers on one clock may share it. Nil means a filter of the
	// Demodulator's own, with a window of 60 s.
	Filter *modes.AddressFilter
}
