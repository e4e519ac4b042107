// Package avr reads and writes Mode S frames as text, one line each: the AVR
// format of many receivers and programs.
//
//	*8D406B902015A678D4D220AA4BDA;
//	@0123456789AB8D406B902015A678D4D220AA4BDA;     with 12 MHz time
//	<0123456789AB7F8D406B902015A678D4D220AA4BDA;   with time and signal byte
//
// A colon is read as the star, and a per cent sign as the @.
//
// A [Decoder] takes bytes in any pieces, one at a time if need be, and finds
// its way again after garbage:
//
//	var d avr.Decoder
//	d.Feed(data, func(f *modes.Frame) { fmt.Println(f) })
//
// or, from a reader:
//
//	for f, err := range new(avr.Decoder).Frames(conn) { ... }
//
// # Units and byte order
//
// Times are 12 hexadecimal digits, most significant first, in ticks of 12 MHz.
// Time 0 and the mark of multilateration results, ff004d4c4154, are no time. The
// signal byte is the amplitude, 255 at full scale; 0 is no signal level.
//
// # Errors
//
// [Parse] returns [ErrLine]. A [Decoder] does not stop at a bad line but counts it
// in [Stats]; [Decoder.Frames] yields the errors of its reader only.
//
// # Concurrency
//
// A Decoder belongs to one goroutine at a time; functions may be called from
// several.
//
// # Specifications
//
// There is none; the format is that of the miniADSB receiver, as dump1090 and
// its descendants read and write it.
package avr
