// Package pcscd talks to pcscd, the PC/SC daemon of pcsc-lite, over its socket,
// without cgo and without libpcsclite.
//
//	conn, err := pcscd.Connect(ctx, "", pcscd.Shared) // the reader with a card
//	card, err := keycard.Open(ctx, conn)
//
// It speaks the daemon's protocol of versions 4:4 and later: it asks for 4:4
// and, when the daemon insists on its own version, comes back with that.
// pcsc-lite runs on Linux and the BSDs; the package builds everywhere, but
// where there is no such socket every call fails with [ErrNoDaemon].
//
// # Units and byte order
//
// The daemon's structures are in the machine's own byte order, since both
// ends are on the same machine. Reader names are plain strings without padding.
//
// # Errors
//
// What the daemon refuses is an [*Error] with PC/SC's number. It unwraps to
// [keycard.ErrRemoved], [keycard.ErrCardReset], [keycard.ErrBusy] or
// [keycard.ErrNoCard] where one of them fits. A context that ends in the
// middle of a command gives the context's error within moments, and the
// connection up: the daemon has no way to stop a command that is under way.
//
// # Concurrency
//
// A [Conn] may be used from several goroutines, which take turns. Each [Conn]
// and each [Watch] has a connection of its own to the daemon.
//
// # Specifications
//
//   - PC/SC part 5 (resource manager), part 10 (readers with a keypad)
//   - the structures of pcsc-lite's winscard_msg.h, protocol 4:4
package pcscd
