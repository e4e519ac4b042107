package radix6

import (
	"errors"
	"fmt"
)

// Reasons for which a change or a query is refused. Test with [errors.Is];
// the methods of [Tree] wrap them in a [*RouteError], the readers of text in
// a [*SyntaxError].
var (
	// ErrExists: a route with this prefix, source and metric is there already
	// and the mode was [Excl].
	ErrExists = errors.New("route exists")
	// ErrNotFound: no route with this prefix, source and metric.
	ErrNotFound = errors.New("no such route")
	// ErrPrefix: the prefix is invalid, or it has bits set behind its length.
	// Linux answers EINVAL for such a prefix.
	ErrPrefix = errors.New("invalid prefix")
	// ErrFamily: an IPv4 prefix. ::ffff:10.0.0.0/104 is an IPv6 prefix.
	ErrFamily = errors.New("not an IPv6 prefix")
	// ErrNoSources: the route has a source prefix, but the tree was made with
	// [SourceOff]. Dropping the source silently would route packets of other
	// sources.
	ErrNoSources = errors.New("tree has no source-specific routes")
	// ErrFull: the tree holds as many nodes or routes as 32 bits can count.
	ErrFull = errors.New("tree is full")
)

// RouteError says which route was refused and why.
type RouteError struct {
	Op    string // "add" or "delete"
	Route Route
	Err   error // one of the sentinels of this package
}

func (e *RouteError) Error() string {
	return fmt.Sprintf("radix6: %s %s: %v", e.Op, e.Route, e.Err)
}

// Unwrap returns the reason.
func (e *RouteError) Unwrap() error { return e.Err }
