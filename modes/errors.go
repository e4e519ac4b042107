package modes

import "errors"

// Errors that functions of this package return, to be compared with
// [errors.Is].
var (
	// ErrLength: a frame is not 7 or 14 bytes, or its format asks for the
	// other of the two.
	ErrLength = errors.New("modes: frame is not 56 or 112 bits, or not as its format asks")
	// ErrHex: a character is not a hexadecimal digit.
	ErrHex = errors.New("modes: not a hexadecimal digit")
	// ErrParity: the parity of a frame that carries its address shows a wrong
	// bit.
	ErrParity = errors.New("modes: parity does not fit")
	// ErrFormat: a downlink format that is not in use.
	ErrFormat = errors.New("modes: downlink format is not in use")
)
