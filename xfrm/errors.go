package xfrm

import (
	"errors"
	"fmt"
)

// Sentinel errors of the parsers and builders. They arrive wrapped in a
// [*FormatError].
var (
	// ErrShort means that a message or attribute ends before its content does.
	ErrShort = errors.New("too short")
	// ErrLength means that a length field contradicts the space it is in.
	ErrLength = errors.New("impossible length")
	// ErrFamily means an address family that is neither IPv4 nor IPv6, or
	// addresses of different families where one is required.
	ErrFamily = errors.New("wrong address family")
	// ErrPrefix means a prefix length beyond the address.
	ErrPrefix = errors.New("prefix too long for its family")
	// ErrType means a message of another type than the method reads.
	ErrType = errors.New("wrong message type")
	// ErrMissing means that something the message cannot do without is absent.
	ErrMissing = errors.New("missing")
	// ErrRange means a value that its field in the message cannot hold.
	ErrRange = errors.New("out of range")
)

// FormatError says that bytes are not the message they should be, or that a
// value cannot be put into a message. It never holds key material.
type FormatError struct {
	Type  MsgType  // the message, 0 if not known
	Attr  AttrType // the attribute, 0 for the fixed part
	Field string   // the field, may be empty
	Err   error    // one of the sentinels above
}

func (e *FormatError) Error() string {
	s := "xfrm: "
	if e.Type != 0 {
		s += e.Type.String() + ": "
	}
	if e.Attr != 0 {
		s += e.Attr.String() + ": "
	}
	if e.Field != "" {
		s += e.Field + ": "
	}
	return s + e.Err.Error()
}

func (e *FormatError) Unwrap() error { return e.Err }

// RuleError is the verdict of a Check method: the field that breaks a rule
// and the rule. Where the kernel has the same rule, Rule is the text of its
// extended acknowledgement (Linux 6.12); OnPurpose marks the rules of this
// package alone, for requests that a kernel takes and that then protect less
// than they seem to.
type RuleError struct {
	Field     string // Go path of the field, such as "Replay.Window"
	Rule      string // what it breaks
	OnPurpose bool   // the kernel would accept it
}

func (e *RuleError) Error() string { return "xfrm: " + e.Field + ": " + e.Rule }

// SyntaxError says where a text or command could not be read. It quotes the
// offending word unless that word is key material.
type SyntaxError struct {
	Line int    // line number from 1; 0 for a single command
	Word string // the word, empty at the end of the text or for a key
	What string // what is wrong
}

func (e *SyntaxError) Error() string {
	s := "xfrm: "
	if e.Line > 0 {
		s += fmt.Sprintf("line %d: ", e.Line)
	}
	if e.Word != "" {
		s += fmt.Sprintf("%q: ", clip(e.Word))
	}
	return s + e.What
}

// clip shortens a word of somebody else's text for an error message.
func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
