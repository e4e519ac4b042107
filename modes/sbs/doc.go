// Package sbs reads and writes the BaseStation text format (port 30003): one
// line of 22 fields separated by commas for each message.
//
//	MSG,3,1,1,40621D,1,2024/01/02,15:04:05.000,2024/01/02,15:04:05.000,,38000,,,52.26578,3.93891,,,0,0,0,0
//
// To write, fill a [Message] from what was decoded and append it:
//
//	var s sbs.Message
//	if s.Fill(&m, position, now) {
//		line = s.Append(line[:0])
//	}
//
// # Units and byte order
//
// Feet, knots, feet a minute, degrees. Times are written as the caller's
// time.Time says, without time zone; Parse reads them as UTC. Flags are -1 for
// set and 0 for not set; an empty field is absent.
//
// # Errors
//
// [Parse] returns [ErrLine], wrapped with the number of the field, counted
// from 1.
//
// # Concurrency
//
// Functions may be called from several goroutines; a [Message] is a plain value.
//
// # Specifications
//
//   - Kinetic Avionics, BaseStation socket data (woodair.net/sbs/Article/Barebones42_Socket_Data.htm)
package sbs
