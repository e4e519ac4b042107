package nat64

import (
	"errors"
	"strconv"
)

// Errors to branch on, found with [errors.Is] inside a [*ConfigError], a
// [*LineError] or alone.
var (
	// ErrPrefixLength: an RFC 6052 prefix is /32, /40, /48, /56, /64 or /96.
	ErrPrefixLength = errors.New("prefix length is not one of 32, 40, 48, 56, 64, 96")
	// ErrReservedByte: bits 64 to 71 of a translation prefix must be zero
	// (RFC 6052 section 2.2).
	ErrReservedByte = errors.New("bits 64 to 71 of the prefix are not zero")
	// ErrHostBits: a prefix has bits set beyond its length.
	ErrHostBits = errors.New("bits are set beyond the prefix length")
	// ErrFamily: an address or prefix of the wrong family, or none.
	ErrFamily = errors.New("wrong address family")
	// ErrSuffix: an EAM's IPv6 suffix is shorter than its IPv4 suffix (RFC
	// 7757 section 3.2).
	ErrSuffix = errors.New("IPv6 suffix is shorter than the IPv4 suffix")
	// ErrDuplicate: the same prefix or address is given twice.
	ErrDuplicate = errors.New("given twice")
	// ErrRange: a number is outside its limits.
	ErrRange = errors.New("out of range")
	// ErrSyntax: text that cannot be read.
	ErrSyntax = errors.New("cannot be read")
	// ErrNoMapping: nothing in the configuration maps any address.
	ErrNoMapping = errors.New("neither prefix, EAM, mapper nor pool")
	// ErrOutsidePool: a pool file names an address that the pool does not
	// hand out.
	ErrOutsidePool = errors.New("address is not one of the pool's")
)

// ConfigError says which part of a configuration is wrong. It unwraps to one
// of the errors of this package or to what the standard library said.
type ConfigError struct {
	Field string // such as "Prefix" or "EAM[3]"
	Input string // the offending value, as text
	Err   error
}

func (e *ConfigError) Error() string {
	return "nat64: " + e.Field + " " + strconv.Quote(e.Input) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

func configErr(field, input string, err error) error {
	return &ConfigError{Field: field, Input: input, Err: err}
}

// LineError is a line of a pool file that was left out.
type LineError struct {
	Line int // counted from 1
	Text string
	Err  error
}

func (e *LineError) Error() string {
	return "nat64: line " + strconv.Itoa(e.Line) + " " + strconv.Quote(e.Text) + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }
