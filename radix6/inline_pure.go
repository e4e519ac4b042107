//go:build purego

package radix6

// With the tag purego the package has no unsafe code; integer values then take
// a detour through reflect.

func inlineValue[V any](n uint32) V { return pureValue[V](n) }

func inlineNumber[V any](v V) uint64 { return pureNumber(v) }
