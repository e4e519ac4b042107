//go:build purego || !amd64

package lpctrie

// Without an instruction for it nothing is asked for ahead: the loads of a
// stage do not wait for each other anyway.

func (s *index) prefetchWords([]uint32) {}

func (s *index) prefetchEntries([]uint32) {}
