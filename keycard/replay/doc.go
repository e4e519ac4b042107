// Package replay records conversations with a card and plays them back as a
// card, so that programs can be tested in milliseconds against what real cards
// said.
//
// A [Recorder] stands between a program and any transport and writes what
// passes, with PINs and keys masked:
//
//	rec := replay.NewRecorder(conn, file)
//	card, err := keycard.Open(ctx, rec.Transport())
//
// and [Parse] reads it back:
//
//	s, err := replay.Parse(file)
//	card, err := keycard.Open(ctx, s.Play(replay.Loose))
//
// # Units and byte order
//
// The format is text, one exchange in two lines: "> " and the command, "< "
// and the response with its status word, both as hexadecimal octets in the
// order they go over the wire. "xx" stands for a masked octet; it matches any
// octet in a command and is played back as zero in a response. Lines that
// begin with "#" are comments, empty lines are skipped.
//
// # Errors
//
// A command that was not recorded gives an error that wraps [ErrNoMatch] and
// shows the command, masked. Malformed files give a [*ParseError] with the
// line.
//
// # Concurrency
//
// A [Session] does not change once it is parsed and may be played by several
// players at once. [Player] and [Recorder] may be used from several
// goroutines; their exchanges do not mix.
//
// # Specifications
//
//   - ISO/IEC 7816-4, sections 5.1 (commands) and 5.3 (chaining)
package replay
