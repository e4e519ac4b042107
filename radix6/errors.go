package radix6

import (
	"errors"
	"fmt"
)

// Reasons for which a change or a query is refused. Test with [errors.Is];
// the methods of [Tree] wrap them in a [*RouteError], the readers of text in
// a [*LineError].
var (
	// ErrExist: a route with this prefix, source and metric is there already
	// and the mode has [Excl] (the kernel's EEXIST).
	ErrExist = errors.New("radix6: route exists")
	// ErrNotExist: no route with this prefix, source and metric, and the mode
	// has no [Create] (ENOENT).
	ErrNotExist = errors.New("radix6: no such route")
	// ErrPrefix: the prefix is invalid, or it has bits set behind its length.
	// Linux answers EINVAL for such a prefix.
	ErrPrefix = errors.New("radix6: invalid prefix")
	// ErrFamily: an IPv4 prefix. ::ffff:10.0.0.0/104 is an IPv6 prefix.
	ErrFamily = errors.New("radix6: not an IPv6 prefix")
	// ErrNoSources: the route has a source prefix, but the tree was made with
	// [SourceOff]. Dropping the source silently would route packets of other
	// sources.
	ErrNoSources = errors.New("radix6: tree has no source-specific routes")
	// ErrSources: a [Live] cannot be made of a tree that may hold
	// source-specific routes.
	ErrSources = errors.New("radix6: live tables have no source-specific routes")
	// ErrSnapshot: serialised data is not a snapshot, of an unknown version,
	// truncated or altered.
	ErrSnapshot = errors.New("radix6: not a valid snapshot")
	// ErrFull: the tree holds as many nodes or routes as 32 bits can count.
	ErrFull = errors.New("radix6: tree is full")
)

// RouteError says which route was refused and why.
type RouteError struct {
	Op    string // "add" or "compile"
	Route Route
	Err   error // one of the sentinels of this package
}

func (e *RouteError) Error() string {
	return fmt.Sprintf("%v: %s %s", e.Err, e.Op, e.Route)
}

// Unwrap returns the reason.
func (e *RouteError) Unwrap() error { return e.Err }

// A LineError is a line of text that a reader could not use.
type LineError struct {
	Line int    // number of the line, from 1
	Text string // the line, shortened to 80 bytes
	Why  string // what is wrong with it
}

func lineError(line int, text, why string) *LineError {
	if len(text) > 80 {
		text = text[:80]
	}
	return &LineError{line, text, why}
}

func (e *LineError) Error() string {
	return fmt.Sprintf("radix6: line %d: %s: %q", e.Line, e.Why, e.Text)
}
