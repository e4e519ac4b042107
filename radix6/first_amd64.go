//go:build amd64 && !purego

package radix6

// The first three digits of a lookup in assembly, for two reasons: it compares
// all places of a list at once, and it does without the bounds checks and the
// questions for POPCNT that the compiler puts before each step. That no load
// leaves its array holds for every address once [builder] or part.check has
// made sure of it for each reference and cell; what that is based on lies in
// memory of the index's own, even where lists and codes are the caller's (see
// [Open]). index.go and batch.go have the same in Go; a test holds both
// together.

// asmFirst is pureFirst.
//
//go:noescape
func asmFirst(x *index, hi uint64) uint64

// wideFirst is pureFirst with vectors.
//
//go:noescape
func wideFirst(x *index, hi uint64) uint64

// The frames of what follows have four words for each lookup.
const _ = uint(2048 - 4*4*wide)

// wideCompact and wideDense look up n addresses, a multiple of 16 and at most
// [wide]: pureFirst of all. They count the codes that are 0 and those above the
// limit; bits in deep tell which are none but references.
//
//go:noescape
func wideCompact(x *index, keys *Key, codes *uint32, n int, limit uint32, deep *[wide / 64]uint64) (zeros, odd int)

//go:noescape
func wideDense(x *index, keys *Key, codes *uint32, n int, limit uint32, deep *[wide / 64]uint64) (zeros, odd int)

// The stages of a batch; see batch.go.
//
//go:noescape
func compactRefs(x *index, keys *[batch]Key, refs *[batch]uint32)

//go:noescape
func denseRefs(x *index, keys *[batch]Key, refs *[batch]uint32)

//go:noescape
func listCodes(x *index, keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int)

//go:noescape
func tableCodes(x *index, keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int)

//go:noescape
func denseCodes(x *index, keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int)

// cpuid returns EBX and ECX of a leaf of CPUID, xcr0 what state the system
// saves; it may be asked only where CPUID says that there is such a register.
func cpuid(leaf uint32) (b, c uint32)
func xcr0() uint32

// hasAsm reports whether the processor has POPCNT. (SSE2 every amd64 has.) It
// is asked when an index is made, because it takes long in virtual machines.
func hasAsm() bool {
	_, c := cpuid(1)
	return c>>23&1 != 0
}

// hasWide reports whether the processor has what wide_amd64.s needs, and the
// system saves its registers: BMI1 and 2, AVX-512 F, DQ and BW.
func hasWide() bool {
	const (
		popcnt, osxsave = 1 << 23, 1 << 27
		vectors         = 7<<5 | 3<<1 // those of AVX-512, AVX and SSE
		features        = 1<<3 | 1<<8 | 1<<16 | 1<<17 | 1<<30
	)
	if _, c := cpuid(1); c&popcnt == 0 || c&osxsave == 0 || xcr0()&vectors != vectors {
		return false
	}
	b, _ := cpuid(7)
	return b&features == features
}

func (x *index) first(hi uint64) uint64 {
	switch {
	case x.wide:
		return wideFirst(x, hi)
	case x.asm:
		return asmFirst(x, hi)
	}
	return x.pureFirst(hi)
}

func (x *index) refsBatch(keys *[batch]Key, refs *[batch]uint32) {
	switch {
	case !x.asm:
		x.pureRefs(keys, refs)
	case x.dense:
		denseRefs(x, keys, refs)
	default:
		compactRefs(x, keys, refs)
	}
}

func (x *index) listsBatch(keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int) {
	if x.asm {
		listCodes(x, keys, refs, which, n)
	} else {
		x.pureLists(keys, refs, which, n)
	}
}

func (x *index) tablesBatch(keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int) {
	switch {
	case !x.asm:
		x.pureTables(keys, refs, which, n)
	case x.dense:
		denseCodes(x, keys, refs, which, n)
	default:
		tableCodes(x, keys, refs, which, n)
	}
}
