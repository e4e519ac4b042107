package modes

// A Frame is one Mode S reply as it was received: 56 or 112 bits and what the
// receiver knows about them. It is a plain value; copying it is cheap and
// shares nothing. The zero value is an empty frame of no bits.
type Frame struct {
	// Time12 is the time of the first preamble pulse in ticks of 12 MHz
	// since the start of the stream (the Beast convention).
	Time12 uint64
	// Signal is the mean pulse power in dB relative to full scale; zero or
	// below. It is meaningful only when HasSignal is set.
	Signal float32
	// Margin says how safely the bits were decided: the smallest decision
	// margin relative to the mean one, from 0 (a coin toss) to about 1.
	// Demodulators set it; frames from a text or Beast feed leave it 0.
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

// DF returns the downlink format, 0 to 24: the first five bits, where all
// formats from 24 up (first two bits set) are 24.
func (f *Frame) DF() uint8 {
	df := f.Data[0] >> 3
	if df >= 24 {
		return 24
	}
	return df
}

// Bytes returns the 7 or 14 bytes of the frame, aliasing f.Data.
func (f *Frame) Bytes() []byte { return f.Data[:f.Bits/8] }

// Remainder returns [Remainder] of the frame's bytes.
func (f *Frame) Remainder() uint32 { return Remainder(f.Bytes()) }
