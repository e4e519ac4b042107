//go:build purego

package radix6

// With the tag purego the package has no unsafe code; integer values then take
// a detour through reflect.

func inlineValue[V any](n uint32, shift uint8) V { return pureValue[V](n, shift) }

func inlineNumber[V any](v V, shift uint8) uint64 { return pureNumber(v, shift) }
