package modes

// An Opt is a value that may be absent. Absent is not zero: V means something
// only when OK is set. The zero Opt is absent.
type Opt[T any] struct {
	// V is the value, the zero value of T when OK is false.
	V T
	// OK tells whether there is a value.
	OK bool
}

// Some returns a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }

// Or returns the value, or alternative when it is absent.
func (o Opt[T]) Or(alternative T) T {
	if o.OK {
		return o.V
	}
	return alternative
}

// field returns bits first to last of the 56-bit field v, counted from 1 as
// the standards do.
func field(v uint64, first, last int) uint32 {
	return uint32(v >> (56 - last) & (1<<(last-first+1) - 1))
}

// flag returns one bit of the 56-bit field v, counted from 1.
func flag(v uint64, bit int) bool { return v>>(56-bit)&1 != 0 }

// load56 returns seven bytes as a 56-bit number.
func load56(b []byte) uint64 {
	b = b[:7]
	return uint64(b[0])<<48 | uint64(b[1])<<40 | uint64(b[2])<<32 | uint64(b[3])<<24 |
		uint64(b[4])<<16 | uint64(b[5])<<8 | uint64(b[6])
}

// store56 is the inverse of load56.
func store56(v uint64) (b [7]byte) {
	for i := range b {
		b[i] = byte(v >> (48 - 8*i))
	}
	return
}
