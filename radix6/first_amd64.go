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

// cpuidFeatures returns ECX of leaf 1 of CPUID.
func cpuidFeatures() uint32

// hasAsm reports whether the processor has POPCNT. (SSE2 every amd64 has.) It
// is asked when an index is made, because it takes long in virtual machines.
func hasAsm() bool { return cpuidFeatures()>>23&1 != 0 }

func (x *index) first(hi uint64) uint64 {
	if !x.asm {
		return x.pureFirst(hi)
	}
	return asmFirst(x, hi)
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
