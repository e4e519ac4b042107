package pgp

import (
	"errors"
	"fmt"

	"signalbox.example/keycard"
)

// Errors to branch on with [errors.Is], beside those of package keycard.
var (
	// ErrNotOnCard: the card does not hold the key that is needed. It goes
	// with [keycard.ErrMismatch] when the card holds other keys and with
	// [keycard.ErrNoKey] when the slot is empty.
	ErrNotOnCard = errors.New("key not on this card")
	// ErrUsage: the certificate does not allow what was asked with this key:
	// it is expired, revoked, or made for something else.
	ErrUsage = errors.New("key not usable for this")
	// ErrNotRecipient: the message is encrypted, but to none of the keys.
	ErrNotRecipient = errors.New("message not encrypted to these keys")
	// ErrFormat: octets are not what they should be in OpenPGP's format.
	ErrFormat = errors.New("malformed")
)

// Error is a failure of one operation with one key.
type Error struct {
	Op   string // what was tried, in words
	Key  string // fingerprint or key ID in hexadecimal, empty if there is none
	Card string // [keycard.Info.Ident] of the card, empty if there is none
	Err  error  // the cause
}

func (e *Error) Error() string {
	s := "pgp: " + e.Op
	if e.Key != "" {
		s += ": key " + e.Key
	}
	if e.Card != "" {
		s += ", card " + e.Card
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func fail(op string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Op: op, Err: err}
}

func (b *Binding) fail(op string, k *boundKey, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	e = &Error{Op: op, Card: b.card.Info().Ident(), Err: err}
	if k != nil {
		e.Key = fmt.Sprintf("%X", k.pub.Fingerprint)
	}
	return e
}

// absent says what the card has in a slot instead of the key.
func absent(info *keycard.Info, slot keycard.Slot) error {
	s := info.Keys[slot]
	if s.Fingerprint.IsZero() {
		return fmt.Errorf("%w: its %v slot is empty: %w", ErrNotOnCard, slot, keycard.ErrNoKey)
	}
	return fmt.Errorf("%w: its %v slot holds %v: %w", ErrNotOnCard, slot, s.Fingerprint, keycard.ErrMismatch)
}
