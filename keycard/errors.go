package keycard

import (
	"errors"
	"fmt"
)

// Errors to branch on with [errors.Is]. Most of them are found inside a
// [*StatusError].
var (
	// ErrPIN: the PIN, Admin PIN or resetting code was wrong.
	ErrPIN = errors.New("wrong PIN")
	// ErrBlocked: the PIN has no tries left.
	ErrBlocked = errors.New("PIN blocked")
	// ErrLastTry: one try is left and the caller did not say that it may be
	// spent. Nothing was sent to the card.
	ErrLastTry = errors.New("one try left for this PIN")
	// ErrNotVerified: the command needs a PIN that was not verified.
	ErrNotVerified = errors.New("PIN not verified")
	// ErrNoPIN: a PIN is needed and the caller gave no way to ask for it, or
	// the answer was empty.
	ErrNoPIN = errors.New("no PIN given")
	// ErrPINLength: the PIN is shorter or longer than the card allows.
	ErrPINLength = errors.New("PIN length not allowed by the card")
	// ErrNoKey: the slot holds no key, or none that can do this.
	ErrNoKey = errors.New("no usable key in this slot")
	// ErrNotFound: the card does not have the data object.
	ErrNotFound = errors.New("data object not found")
	// ErrTouch: nobody touched the card in time, or the touch setting is
	// fixed and cannot be changed.
	ErrTouch = errors.New("touch missing or touch setting fixed")
	// ErrTerminated: the card is terminated and waits for activation.
	ErrTerminated = errors.New("card terminated")
	// ErrUnsupported: the card or this package cannot do what was asked.
	ErrUnsupported = errors.New("not supported")
	// ErrConditions: the card says that conditions of use are not satisfied.
	ErrConditions = errors.New("conditions of use not satisfied")
	// ErrData: the card refused the data that was sent.
	ErrData = errors.New("data refused by the card")
	// ErrMalformed: octets from the card (or a file) break the format.
	ErrMalformed = errors.New("malformed")
	// ErrTooLong: the data does not fit into what the card accepts.
	ErrTooLong = errors.New("too long")
	// ErrNoCard: no OpenPGP card answered.
	ErrNoCard = errors.New("no OpenPGP card")
	// ErrRemoved: the card or the reader is gone.
	ErrRemoved = errors.New("card removed")
	// ErrCardReset: somebody reset the card since the last command; PIN and
	// selection are lost. A [Locker] returns it once from Begin, after it
	// has connected again.
	ErrCardReset = errors.New("card was reset")
	// ErrBusy: another program holds the card.
	ErrBusy = errors.New("card in use by another program")
	// ErrClosed: the connection was closed, or given up when a context ended
	// in the middle of a command.
	ErrClosed = errors.New("connection closed")
	// ErrKDFCount: the card's KDF object asks for more work than allowed.
	ErrKDFCount = errors.New("KDF iteration count above the limit")
	// ErrNoLifeCycle: the card does not announce that it can be reset.
	ErrNoLifeCycle = errors.New("card without life cycle management")
	// ErrMismatch: the key on the card is not the one that was expected.
	ErrMismatch = errors.New("key mismatch")
)

// StatusError is a card's refusal of a command.
type StatusError struct {
	Op      string // what was tried, in words
	INS     byte   // instruction octet of the command
	SW      uint16 // status word
	Mode    PINMode
	Retries int // tries left for Mode's PIN, -1 when unknown
	err     error
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("keycard: %s: status %04X", e.Op, e.SW)
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	if e.Retries >= 0 {
		s += fmt.Sprintf(" (%d tries left)", e.Retries)
	}
	return s
}

// Unwrap returns the sentinel that classifies the status word, or nil.
func (e *StatusError) Unwrap() error { return e.err }

// Status words (specification section 7.1).
const (
	swOK           = 0x9000
	swTerminated   = 0x6285
	swMemory       = 0x6581
	swLength       = 0x6700
	swNotVerified  = 0x6982
	swBlocked      = 0x6983
	swConditions   = 0x6985
	swData         = 0x6a80
	swNotSupported = 0x6a81
	swNoFile       = 0x6a82
	swNoRecord     = 0x6a83
	swNotFound     = 0x6a88
	swP1P2         = 0x6b00
	swINS          = 0x6d00
	swCLA          = 0x6e00
)

// status turns a status word into an error, nil for 9000.
func status(op string, ins byte, sw uint16) error {
	if sw == swOK {
		return nil
	}
	e := &StatusError{Op: op, INS: ins, SW: sw, Retries: -1}
	switch sw {
	case swTerminated:
		e.err = ErrTerminated
	case swNotVerified:
		e.err = ErrNotVerified
	case swBlocked:
		e.err = ErrBlocked
	case swConditions:
		e.err = ErrConditions
	case swData, swLength:
		e.err = ErrData
	case swNoFile, swNoRecord, swNotFound:
		e.err = ErrNotFound
	case swINS, swCLA, swNotSupported, swP1P2, 0x6a86:
		e.err = ErrUnsupported
	}
	return e
}
