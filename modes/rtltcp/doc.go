// Package rtltcp receives samples from rtl_tcp, the server of the rtl-sdr
// tools, over the network: a live source in pure Go.
//
//	c, err := rtltcp.Dial(ctx, "radio:1234", rtltcp.Config{})
//	if err != nil { ... }
//	defer c.Close()
//	for f, err := range demodulator.Frames(c) { ... }
//
// rtl_tcp sends without end and stops serving when nobody reads. A [Client]
// reads all the time into a ring buffer; when the program is too slow it loses
// whole samples and counts them, so that times stay right: see
// [Client.ReadSamples]. It sets frequency and rate (the server starts at other
// ones), throws away the samples that were on their way meanwhile, and
// connects again when the connection ends.
//
// [Source] is what a local receiver offers too: the *rtl.Device of
// github.com/samuel/go-rtlsdr satisfies it as it is.
//
// # Units and byte order
//
// Samples are pairs of unsigned bytes, I before Q, zero at 127.4. Frequencies
// and rates are hertz, gains tenths of a decibel. The protocol is big-endian.
//
// # Errors
//
// [ErrProtocol] says that the other side is not rtl_tcp, [ErrClosed] that the
// Client was closed. Others are those of package net, wrapped.
//
// # Concurrency
//
// One goroutine may read while others set and close. A Client has one
// goroutine of its own, which Close ends.
//
// # Specifications
//
// There is none but rtl_tcp.c of osmocom's rtl-sdr: a header of 12 bytes
// (RTL0, tuner, number of gains), then samples; commands of 5 bytes (number,
// value) in the other direction.
package rtltcp
