package lpctrie

import (
	"errors"
	"fmt"
)

// Errors that callers branch on with errors.Is.
var (
	// ErrPrefix: the prefix is invalid, not IPv4 (an IPv4-mapped IPv6 prefix is
	// IPv6), or has bits set behind its length, which the kernel refuses too.
	ErrPrefix = errors.New("lpctrie: not an IPv4 prefix without host bits")
	// ErrExist: the route is there already (the kernel's EEXIST).
	ErrExist = errors.New("lpctrie: route exists")
	// ErrNotExist: there is no such route and the mode has no Create (ENOENT).
	ErrNotExist = errors.New("lpctrie: no such route")
	// ErrFull: the table cannot grow further: it has about 2^31 routes or words
	// of nodes.
	ErrFull = errors.New("lpctrie: table is full")
	// ErrSnapshot: serialised data is not a snapshot, of an unknown version,
	// truncated or altered.
	ErrSnapshot = errors.New("lpctrie: not a valid snapshot")

	// ErrUnreachable, ErrBlackhole, ErrProhibit and ErrThrow are what a lookup
	// that ends at a route of that type means; see [RouteType.Err].
	ErrUnreachable = errors.New("lpctrie: destination is unreachable")
	ErrBlackhole   = errors.New("lpctrie: destination is a black hole")
	ErrProhibit    = errors.New("lpctrie: destination is prohibited")
	ErrThrow       = errors.New("lpctrie: lookup is to go on in the next table")
)

// A LineError is a line of text that a reader could not use.
type LineError struct {
	Line int    // number of the line, from 1
	Text string // the line, shortened to 80 bytes
	Why  string // what is wrong with it
}

func lineError(line int, text, format string, args ...any) *LineError {
	if len(text) > 80 {
		text = text[:80]
	}
	return &LineError{line, text, fmt.Sprintf(format, args...)}
}

func (e *LineError) Error() string {
	return fmt.Sprintf("lpctrie: line %d: %s: %q", e.Line, e.Why, e.Text)
}
