//go:build !linux

package lpctrie

func hugePages([]byte, bool) {}
