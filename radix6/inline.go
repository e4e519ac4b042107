package radix6

import "reflect"

// maxInline is the largest value that is stored in entries instead of a list:
// its code and the one of all ones fit three bytes.
const maxInline = 1<<24 - 3

// inlineKind reports whether V is an integer type.
func inlineKind[V any]() bool {
	k := reflect.TypeFor[V]().Kind()
	return k >= reflect.Int && k <= reflect.Uintptr
}

// pureValue is inlineValue without unsafe.
func pureValue[V any](n uint32) (v V) {
	p := reflect.ValueOf(&v).Elem()
	if p.CanInt() {
		p.SetInt(int64(n))
	} else {
		p.SetUint(uint64(n))
	}
	return v
}

// pureNumber is inlineNumber without unsafe.
func pureNumber[V any](v V) uint64 {
	p := reflect.ValueOf(&v).Elem()
	if !p.CanInt() {
		return p.Uint()
	}
	width := p.Type().Bits()
	return uint64(p.Int()) << (64 - width) >> (64 - width)
}

// maxOf returns the largest number an integer type holds, at most 2^63-1.
func maxOf[V any]() uint64 {
	t := reflect.TypeFor[V]()
	width := t.Bits()
	if reflect.Zero(t).CanInt() || width == 64 {
		width--
	}
	return 1<<width - 1
}
