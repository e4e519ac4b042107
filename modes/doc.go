// Package modes decodes Mode S and ADS-B, the replies and squitters that
// aircraft send at 1090 MHz: frames, their parity, and what they say.
//
// A frame of 56 or 112 bits comes from a receiver as text, in Beast format or
// from a demodulator; the sub-packages read all of these. An [AddressFilter]
// says whether to believe it, [Decode] reads it:
//
//	var filter modes.AddressFilter
//	var m modes.Message
//	f, err := modes.ParseHex("8d406b902015a678d4d220aa4bda")
//	if err != nil { ... }
//	if filter.Accept(&f, f.Time12) == modes.Accepted && modes.Decode(&f, &m) == nil {
//		fmt.Println(m.Address, m.Callsign.V) // 406b90 EZY85MH
//	}
//
// The second argument of Accept is a time, by which the filter forgets; a frame
// without one, as here, may be judged by any clock: see [AddressFilter].
//
// From samples to aircraft, package by package:
//
//	IQ samples  -> modes/demod                -> Frame
//	rtl_tcp     -> modes/rtltcp -> modes/demod -> Frame
//	AVR, Beast  -> modes/avr, modes/beast     -> Frame
//	Frame       -> Decode                     -> Message
//	Message     -> modes/track                -> aircraft, aircraft.json
//	Frame, aircraft -> modes/avr, modes/beast, modes/sbs -> the network
//	modes/synth -> IQ samples, frames           for tests
//
// A position needs two frames ([CPRGlobal]) or a reference ([CPRLocal]);
// package track keeps what that takes. A Comm-B message does not name its
// register: [InferCommB] gives the candidates with scores and reasons. The
// Encode functions make frames as a transponder would.
//
// # When to use it
//
// Use it to put reception into a program of your own: from a stick's samples, a
// recording or somebody's feed to messages and aircraft, without cgo and
// without a daemon beside it. If what you want is a receiving station rather
// than a program, take readsb, which drives many kinds of receivers and feeds
// networks, or FlightAware's dump1090. For analysis in notebooks take pyModeS,
// whose field names people know, or rs1090, which reads more Comm-B registers
// and has Python bindings. This package reads 1090 MHz only: no UAT (978 MHz)
// and no multilateration, and a receiver is reached through rtl_tcp or a driver
// that you bring.
//
// # Units and byte order
//
// Altitudes are feet, speeds knots, rates feet a minute, angles degrees
// clockwise from north, as the messages have them; other units are named.
// Time12 counts 12 MHz ticks. The first bit of a frame is the top bit of its
// first byte, and fields that are numbers of their own (the AC and ID of the
// encoders, parity) have their first bit on top. A value that a message does not
// carry is absent ([Opt]), never zero.
//
// # Errors
//
// [ErrLength], [ErrHex], [ErrParity], [ErrFormat] and the ErrCPR errors are
// compared with errors.Is; their text begins "modes: ". A frame that is
// rejected by a filter is no error but a [Reason]. No input panics.
//
// # Concurrency
//
// Functions may be called from several goroutines, and an [AddressFilter] may
// be shared by them. Frames, messages and registers are plain values. Nothing
// here keeps a reference to its arguments, and [Decode], [AddressFilter.Match],
// [Repair] and the CPR functions allocate nothing.
//
// # Specifications
//
//   - ICAO Annex 10 volume IV, chapters 3 and 4 (Mode S, ACAS)
//   - RTCA DO-260B / EUROCAE ED-102A (1090 MHz extended squitter, versions 0 to 2)
//   - ICAO Doc 9871 (Comm-B registers)
package modes
