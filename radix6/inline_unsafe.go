//go:build !purego

package radix6

import "unsafe"

// inlineValue returns the integer n as a V.
//
// It is called only when inlineKind has found that V is an integer type of 1,
// 2, 4 or 8 bytes, and inlineShift has computed shift for it. Then x is 8 bytes
// long and 8 bytes aligned, so that a V fits at its address; every bit pattern
// is a valid integer; V has no pointers that the collector could miss; and x
// lives until the value is copied. On a little-endian machine the V at the
// address of x is its lowest bytes and shift is 0; on a big-endian one it is
// the highest, to which shift moves them. inline_pure.go is the same without
// unsafe; a test holds both together.
func inlineValue[V any](n uint32, shift uint8) V {
	x := uint64(n) << (shift & 63)
	return *(*V)(unsafe.Pointer(&x))
}

// inlineNumber is the inverse: the bits of an integer as a number. The same
// conditions hold.
func inlineNumber[V any](v V, shift uint8) uint64 {
	var x uint64
	*(*V)(unsafe.Pointer(&x)) = v
	return x >> (shift & 63)
}
