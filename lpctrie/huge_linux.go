package lpctrie

import "syscall"

const madvCollapse = 25 // since Linux 6.1

// hugePages asks for huge pages for a large slice, so that random access to it
// does not wait for page tables as well: before it is filled for those to come,
// afterwards for those that are there. It is a hint: a kernel that cannot
// follow it, or a slice that is not at the start of a page, changes nothing.
func hugePages(b []byte, filled bool) {
	advice := syscall.MADV_HUGEPAGE
	if filled {
		advice = madvCollapse
	}
	_ = syscall.Madvise(b, advice)
}
