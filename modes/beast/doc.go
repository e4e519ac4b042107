// Package beast reads and writes the binary format of the Mode-S Beast
// receiver, which most programs for Mode S understand.
//
//	1a '1' time[6] signal[1] reply[2]    Mode A/C
//	1a '2' time[6] signal[1] frame[7]    Mode S short
//	1a '3' time[6] signal[1] frame[14]   Mode S long
//
// Every byte 1a after the type is sent twice. A [Decoder] takes bytes in any
// pieces and finds the next message after garbage, unknown types and cut
// messages; [Append] is the other direction:
//
//	var d beast.Decoder
//	d.Feed(data, func(f *modes.Frame) { out = beast.Append(out, f) })
//
// # Units and byte order
//
// Times are six bytes, most significant first, in ticks of 12 MHz; with
// [Decoder.GPS] they are the GPS times of a Radarcape, 18 bits of seconds of
// the day and 30 of nanoseconds, and become ticks since midnight. Time 0 and
// the mark of multilateration results, ff004d4c4154, are no time. The signal
// byte is the amplitude, 255 at full scale; 0 is no signal level.
//
// # Errors
//
// [Decoder.Frames] yields the errors of its reader. Bad bytes are no error:
// they are counted in [Stats].
//
// # Concurrency
//
// A Decoder belongs to one goroutine at a time; functions may be called from
// several.
//
// # Specifications
//
//   - Mode-S Beast: data output formats (wiki.jetvision.de)
package beast
