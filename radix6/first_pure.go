//go:build !amd64 || purego

package radix6

func hasAsm() bool { return false }

func hasWide() bool { return false }

func asmFirst(x *index, hi uint64) uint64 { return x.pureFirst(hi) }

func wideFirst(x *index, hi uint64) uint64 { return x.pureFirst(hi) }

func (x *index) first(hi uint64) uint64 { return x.pureFirst(hi) }

func (x *index) refsBatch(keys *[batch]Key, refs *[batch]uint32) { x.pureRefs(keys, refs) }

func (x *index) listsBatch(keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int) {
	x.pureLists(keys, refs, which, n)
}

func (x *index) tablesBatch(keys *[batch]Key, refs *[batch]uint32, which *[batch]uint8, n int) {
	x.pureTables(keys, refs, which, n)
}

func wideCompact(*index, *Key, *uint32, int, uint32, *[wide / 64]uint64) (zeros, odd int) {
	return 0, 0
}

func wideDense(*index, *Key, *uint32, int, uint32, *[wide / 64]uint64) (zeros, odd int) { return 0, 0 }
