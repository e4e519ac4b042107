package modes

import (
	"encoding/hex"
	"time"
)

// A Frame is one Mode S reply as it was received: 56 or 112 bits and what the
// receiver knows about them. It is a plain value; copying it is cheap and
// shares nothing. The zero value is an empty frame of no bits.
type Frame struct {
	// Time12 is the time of the first preamble pulse in ticks of 12 MHz since
	// the start of the stream (the Beast convention). Frames of a feed have
	// the clock of the receiver that made them. It is 0 without HasTime.
	Time12 uint64
	// Signal is the mean pulse power in dB relative to full scale; zero or
	// below. It is meaningful only when HasSignal is set.
	Signal float32
	// Margin says how safely the bits were decided: the smallest decision
	// margin relative to the mean one, from 0 (a coin toss) to about 1. It is
	// negative for a frame that was repaired, so that one threshold serves
	// for both: see package demod. Frames from a text or Beast feed leave it
	// 0.
	Margin float32
	// Bits is 56 or 112.
	Bits uint8
	// Repaired counts the bits that the demodulator changed to make the
	// parity fit.
	Repaired uint8
	// HasTime and HasSignal tell whether Time12 and Signal were received.
	HasTime, HasSignal bool
	// Data holds the bits, the first in the top bit of Data[0]. Of a short
	// frame only the first 7 bytes count.
	Data [14]byte
}

// NewFrame returns a frame of the 7 or 14 bytes of data, which it copies. It
// returns [ErrLength] for any other number.
func NewFrame(data []byte) (Frame, error) {
	var f Frame
	if len(data) != 7 && len(data) != 14 {
		return f, ErrLength
	}
	f.Bits = uint8(copy(f.Data[:], data) * 8)
	return f, nil
}

// ParseHex reads a frame from 14 or 28 hexadecimal digits of either case. It
// returns [ErrLength] for another number of digits and [ErrHex] for another
// character.
func ParseHex(s string) (Frame, error) {
	var f Frame
	if len(s) != 14 && len(s) != 28 {
		return f, ErrLength
	}
	if _, err := hex.Decode(f.Data[:], []byte(s)); err != nil {
		return Frame{}, ErrHex
	}
	f.Bits = uint8(len(s) * 4)
	return f, nil
}

// DF returns the downlink format, 0 to 24: the first five bits, where all from
// 24 up are 24, whose number has two bits only (Annex 10 volume IV section
// 3.1.2.3.2.1).
func (f *Frame) DF() uint8 {
	df := f.Data[0] >> 3
	if df >= 24 {
		return 24
	}
	return df
}

// Bytes returns the 7 or 14 bytes of the frame. They are those of f.Data:
// what is written to them changes the frame.
func (f *Frame) Bytes() []byte { return f.Data[:min(f.Bits/8, 14)] }

// Remainder returns [Remainder] of the frame's bytes.
func (f *Frame) Remainder() uint32 { return Remainder(f.Bytes()) }

// String returns the frame's lower-case hexadecimal digits.
func (f *Frame) String() string { return hex.EncodeToString(f.Bytes()) }

// Since returns Time12 as a duration, the time since the start of the stream,
// rounded down to a nanosecond. It wraps after 292 years.
func (f *Frame) Since() time.Duration {
	s, t := f.Time12/TicksPerSecond, f.Time12%TicksPerSecond
	return time.Duration(s)*time.Second + time.Duration(t*250/3)
}

// claimedAddress returns the address in the AA field of a DF11, 17 or 18
// frame, bits 9-32, with its kind.
func (f *Frame) claimedAddress() Address {
	d := &f.Data
	a := Address{Value: uint32(d[1])<<16 | uint32(d[2])<<8 | uint32(d[3])}
	if d[0]>>3 == 18 {
		a.Kind = df18Kind(d)
	}
	return a
}

// df18Kind returns the kind of address of a DF18 frame, from the control
// field (Annex 10 volume IV section 3.1.2.8.7.2) and, for TIS-B and ADS-R,
// the IMF bit, whose place depends on the type code (DO-260B sections 2.2.17
// and 2.2.18).
func df18Kind(d *[14]byte) AddressKind {
	switch d[0] & 7 {
	case 0:
		return AddressICAODevice
	case 1:
		return AddressNonICAO
	case 2:
		if imf(d) {
			return AddressTISBTrackFile
		}
		return AddressTISB
	case 3: // coarse TIS-B: IMF is the first bit
		if d[4]&0x80 != 0 {
			return AddressTISBTrackFile
		}
		return AddressTISB
	case 6:
		if imf(d) {
			return AddressADSRAnonymous
		}
		return AddressADSR
	}
	return AddressTISBNonICAO // 5, and the management and reserved values 4 and 7
}

// imf returns the ICAO/Mode A flag of a fine TIS-B or ADS-R message.
func imf(d *[14]byte) bool {
	switch tc := d[4] >> 3; {
	case tc >= 5 && tc <= 8:
		return d[6]&0x08 != 0 // ME bit 21
	case tc >= 9 && tc <= 18, tc >= 20 && tc <= 22:
		return d[4]&0x01 != 0 // ME bit 8
	case tc == 19:
		return d[5]&0x80 != 0 // ME bit 9
	case tc == 29:
		return d[10]&0x20 != 0 // ME bit 51
	case tc == 28 && d[4]&7 == 1, tc == 31: // an advisory of subtype 2 ends with the threat
		return d[10]&0x01 != 0 // ME bit 56
	}
	return false
}
