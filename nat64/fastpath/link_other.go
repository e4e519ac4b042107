//go:build !linux

package fastpath

import (
	"errors"
	"fmt"

	"signalbox.example/nat64"
)

var errNotLinux = fmt.Errorf("fastpath: %w: tc programs exist on Linux only", errors.ErrUnsupported)

// Supported returns an error that wraps [errors.ErrUnsupported].
func Supported() error { return errNotLinux }

// Link is the fast path; on this system it cannot be attached.
type Link struct{}

// Attach fails as Supported does.
func Attach(t *nat64.Translator, o Options) (*Link, error) { return nil, errNotLinux }

// Sync fails as Supported does.
func (l *Link) Sync() error { return errNotLinux }

// Stats returns zeros.
func (l *Link) Stats() Stats { return Stats{} }

// Interfaces returns nil.
func (l *Link) Interfaces() []string { return nil }

// Close does nothing.
func (l *Link) Close() error { return nil }
