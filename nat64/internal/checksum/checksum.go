// Package checksum sums packets for nat64 and its sub-packages.
package checksum

import (
	"encoding/binary"
	"math/bits"
)

// The Internet checksum (RFC 1071) is a sum modulo 65535, and 2^16, 2^32 and
// 2^64 are all 1 modulo 65535. So words of any of these sizes may be added
// up, and folded to 16 bits once at the end.

// Fold reduces a sum of big-endian words to 16 bits. It is 0 only for 0.
func Fold(x uint64) uint16 {
	// Adding a number to itself with its halves swapped leaves in the upper
	// half the sum of both, the carry of the lower half included.
	y := uint32((x + bits.RotateLeft64(x, 32)) >> 32)
	return uint16((y + bits.RotateLeft32(y, 16)) >> 16)
}

// Sum returns the folded ones' complement sum of b. An odd last byte
// counts as the high half of a word.
//
// The sum is made of little-endian words, which most machines read without
// turning them round: that swaps the octets of the sum and nothing else (RFC
// 1071 section 2 (B)).
func Sum(b []byte) uint16 {
	var s, r, c uint64
	for len(b) >= 128 { // two sums, which a processor adds up side by side
		p := (*[128]byte)(b)
		s, c = bits.Add64(s, le64(p[0:]), 0)
		s, c = bits.Add64(s, le64(p[8:]), c)
		s, c = bits.Add64(s, le64(p[16:]), c)
		s, c = bits.Add64(s, le64(p[24:]), c)
		s, c = bits.Add64(s, le64(p[32:]), c)
		s, c = bits.Add64(s, le64(p[40:]), c)
		s, c = bits.Add64(s, le64(p[48:]), c)
		s, c = bits.Add64(s, le64(p[56:]), c)
		s += c // cannot carry: a carry leaves s at most 2^64-2
		r, c = bits.Add64(r, le64(p[64:]), 0)
		r, c = bits.Add64(r, le64(p[72:]), c)
		r, c = bits.Add64(r, le64(p[80:]), c)
		r, c = bits.Add64(r, le64(p[88:]), c)
		r, c = bits.Add64(r, le64(p[96:]), c)
		r, c = bits.Add64(r, le64(p[104:]), c)
		r, c = bits.Add64(r, le64(p[112:]), c)
		r, c = bits.Add64(r, le64(p[120:]), c)
		r += c
		b = b[128:]
	}
	s, c = bits.Add64(s, r, 0)
	s += c
	for len(b) >= 32 {
		p := (*[32]byte)(b)
		s, c = bits.Add64(s, le64(p[0:]), 0)
		s, c = bits.Add64(s, le64(p[8:]), c)
		s, c = bits.Add64(s, le64(p[16:]), c)
		s, c = bits.Add64(s, le64(p[24:]), c)
		s += c
		b = b[32:]
	}
	for len(b) >= 8 {
		s, c = bits.Add64(s, le64(b), 0)
		s += c
		b = b[8:]
	}
	if len(b) > 0 {
		var last uint64
		for i := len(b) - 1; i >= 0; i-- {
			last = last<<8 | uint64(b[i])
		}
		s, c = bits.Add64(s, last, 0)
		s += c
	}
	return bits.ReverseBytes16(Fold(s))
}

func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
