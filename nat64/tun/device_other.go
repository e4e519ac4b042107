//go:build !linux

package tun

import (
	"context"
	"errors"
	"fmt"

	"signalbox.example/nat64"
)

var errNotLinux = fmt.Errorf("tun: %w: TUN devices of this kind exist on Linux only", errors.ErrUnsupported)

// Device is a TUN device; on this system it cannot be opened.
type Device struct{}

// Open fails with an error that wraps [errors.ErrUnsupported].
func Open(name string, o Options) (*Device, error) { return nil, errNotLinux }

// Run fails as Open does.
func (d *Device) Run(ctx context.Context, t *nat64.Translator) error { return errNotLinux }

// Name returns "".
func (d *Device) Name() string { return "" }

// Queues returns 0.
func (d *Device) Queues() int { return 0 }

// Offloads returns 0.
func (d *Device) Offloads() Offload { return 0 }

// SetPersist fails as Open does.
func (d *Device) SetPersist(on bool) error { return errNotLinux }

// SetOwner fails as Open does.
func (d *Device) SetOwner(uid int) error { return errNotLinux }

// Stats returns zeros.
func (d *Device) Stats() Stats { return Stats{} }

// Close does nothing.
func (d *Device) Close() error { return nil }
