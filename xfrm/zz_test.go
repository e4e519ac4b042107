package xfrm

import "testing"

func BenchmarkZPut(b *testing.B) {
	s := plainSA(b)
	buf := make([]byte, 1024)
	for b.Loop() {
		s.put(buf)
	}
}
func BenchmarkZSel(b *testing.B) {
	s := plainSA(b)
	buf := make([]byte, 1024)
	for b.Loop() {
		s.Sel.put(buf)
	}
}
func BenchmarkZLft(b *testing.B) {
	s := plainSA(b)
	buf := make([]byte, 1024)
	for b.Loop() {
		s.Lifetime.put(buf)
	}
}
func BenchmarkZAttrs(b *testing.B) {
	s := plainSA(b)
	buf := make([]byte, 0, 1024)
	for b.Loop() {
		appendSAAttrs(buf, s, nil)
	}
}
func BenchmarkZAlgo(b *testing.B) {
	s := plainSA(b)
	buf := make([]byte, 0, 1024)
	for b.Loop() {
		appendAlgo2(buf, AttrAEAD, s.AEAD.Name, s.AEAD.Key, s.AEAD.ICVBits)
	}
}
func BenchmarkZBegin(b *testing.B) {
	buf := make([]byte, 0, 1024)
	for b.Loop() {
		beginRaw(buf, NewSA, Header{}, 224)
	}
}
func BenchmarkZGet(b *testing.B) {
	s := plainSA(b)
	buf := make([]byte, 1024)
	s.put(buf)
	for b.Loop() {
		s.get(buf)
	}
}
func BenchmarkZReset(b *testing.B) {
	s := plainSA(b)
	for b.Loop() {
		s.reset()
	}
}
