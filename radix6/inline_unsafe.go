//go:build !purego

package radix6

import "unsafe"

// inlineValue returns the integer n as a V.
//
// It is called only when inlineKind has found that V is an integer type, which
// has 1, 2, 4 or 8 bytes (for other types, of other sizes too, it is compiled but not
// called). An unsigned integer of V's own size is read as a V: it is as
// large and aligned, every bit pattern is a valid integer, V has no pointers that
// the collector could miss, and the variable lives until the value is copied.
// inline_pure.go is the same without unsafe; a test holds both together.
func inlineValue[V any](n uint32) (v V) {
	switch unsafe.Sizeof(v) {
	case 1:
		x := uint8(n)
		return *(*V)(unsafe.Pointer(&x))
	case 2:
		x := uint16(n)
		return *(*V)(unsafe.Pointer(&x))
	case 4:
		return *(*V)(unsafe.Pointer(&n))
	case 8:
		x := uint64(n)
		return *(*V)(unsafe.Pointer(&x))
	}
	return v
}

// inlineNumber is the inverse: the bits of an integer as a number. The same
// conditions hold.
func inlineNumber[V any](v V) uint64 {
	switch unsafe.Sizeof(v) {
	case 1:
		return uint64(*(*uint8)(unsafe.Pointer(&v)))
	case 2:
		return uint64(*(*uint16)(unsafe.Pointer(&v)))
	case 4:
		return uint64(*(*uint32)(unsafe.Pointer(&v)))
	case 8:
		return *(*uint64)(unsafe.Pointer(&v))
	}
	return 0
}
