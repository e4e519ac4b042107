// Package scd reaches a card through a running gpg-agent and its scdaemon, so
// that a program can use the card that gpg is using.
//
//	conn, err := scd.Dial(ctx, "")
//	card, err := keycard.Open(ctx, conn)
//
// scdaemon by default holds a card exclusively: while it runs, other programs
// cannot reach the card through pcscd, and this is the way round. Commands are
// passed as they are (SCD APDU), so the card works as over any other
// transport; scdaemon does not see PINs that are verified this way, and forgets
// its own when it is reset, which [Conn.Close] does. It has no transactions:
// a gpg that uses the card between two commands may select anew and drop the
// PIN, which then is asked for again.
//
// # Units and byte order
//
// Everything is octets, in the order they go to the card.
//
// # Errors
//
// A refusal by the agent is an [*Error] with libgpg-error's number. It unwraps
// to [keycard.ErrNoCard], [keycard.ErrRemoved] or [keycard.ErrBusy] where one
// of them fits. [ErrNoAgent] means that nothing listens on the socket. A
// context that ends in the middle of a command gives its error at once and the
// connection up.
//
// # Concurrency
//
// A [Conn] may be used from several goroutines, which take turns.
//
// # Specifications
//
//   - Assuan protocol (libassuan manual, "Server responses")
//   - GnuPG manual, "Scdaemon Commands": SERIALNO, APDU, RESET
package scd
