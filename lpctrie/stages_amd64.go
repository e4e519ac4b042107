//go:build !purego

package lpctrie

// The stages of a batch in assembly: without the question for POPCNT that the
// compiler puts before each step, and with the request for what the next stage
// needs in the same loop. Numbers are in bounds for the reasons that
// entry_unsafe.go gives; keys and codes are as many. snapshot.go has the same
// in Go; the tests of batches hold both together.

//go:noescape
func wordStage(x *index, keys, codes []uint32)

//go:noescape
func positionStage(x *index, keys, codes []uint32)

//go:noescape
func directStage(x *index, keys, codes []uint32)

// entryStage counts the codes that are 0 and those that are all ones.
//
//go:noescape
func entryStage(x *index, codes []uint32) (missed, deep int)

// cpuid returns EAX, EBX and ECX of a leaf of CPUID.
func cpuid(leaf uint32) (a, b, c uint32)

// hasAsm reports whether the processor has POPCNT and BMI2. It is asked when a
// snapshot is made, because it takes long in virtual machines.
func hasAsm() bool {
	if a, _, _ := cpuid(0); a < 7 { // the last leaf
		return false
	}
	_, _, c := cpuid(1)
	_, b, _ := cpuid(7)
	return c>>23&1 != 0 && b>>8&1 != 0
}
