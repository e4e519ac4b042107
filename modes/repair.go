package modes

import "sync"

// The parity's code has a minimum distance of at least 5 over 112 bits (a
// test counts it), so every pattern of one or two wrong bits has a remainder
// of its own and the table below is exact.

// repairSlots is the size of the open-addressed repair table: 6,328 patterns
// (112 of one bit and 6,216 of two) in 16,384 slots.
const repairSlots = 1 << 14

// A repair entry packs the remainder (bits 0-23), the number of wrong bits
// (24-25) and their distances from the end of the frame (26-32 and 33-39).
// Distances from the end make one table serve short frames too. Zero is empty.
var repairTable = sync.OnceValue(func() *[repairSlots]uint64 {
	var t [repairSlots]uint64
	put := func(syndrome uint32, rest uint64) {
		i := repairHash(syndrome)
		for t[i] != 0 {
			i = (i + 1) % repairSlots
		}
		t[i] = uint64(syndrome) | rest
	}
	var one [112]uint32
	for d := range one {
		var f [14]byte
		f[13-d/8] = 1 << (d % 8)
		one[d] = Remainder(f[:])
		put(one[d], 1<<24|uint64(d)<<26)
	}
	for a := range one {
		for b := range a {
			put(one[a]^one[b], 2<<24|uint64(a)<<26|uint64(b)<<33)
		}
	}
	return &t
})

func repairHash(syndrome uint32) uint32 {
	return syndrome * 0x9E3779B1 >> (32 - 14)
}

// wrongBits finds the pattern of at most two wrong bits, counted from 0 at
// the start of a frame of bits bits, whose remainder is syndrome. n is 0 when
// there is none.
func wrongBits(syndrome uint32, bits int) (n, a, b int) {
	t := repairTable()
	for i := repairHash(syndrome); t[i] != 0; i = (i + 1) % repairSlots {
		e := t[i]
		if uint32(e)&0xFFFFFF != syndrome {
			continue
		}
		n = int(e >> 24 & 3)
		a, b = bits-1-int(e>>26&0x7F), bits-1
		if n == 2 {
			b = bits - 1 - int(e>>33&0x7F)
		}
		if a < 0 || b < 0 { // before the first bit of a short frame
			return 0, 0, 0
		}
		return n, a, b
	}
	return 0, 0, 0
}

// Repair changes at most maxBits bits of frame, in place, so that its parity
// fits, and reports how many it changed. maxBits is 1 or 2; less changes
// nothing, more counts as 2. Repair works only where the parity says something
// without knowing the address: DF17 and DF18 of 14 bytes, and DF11 of 7 bytes,
// of which it changes one bit at most and only to reach interrogator code 0.
// Formats with address parity (DF0, 4, 5, 16, 20, 21, 24) are never repaired.
// The five bits of the format stay as they are; see [RepairFormat].
//
// ok is true when the frame is clean on return, for a DF11 with any
// interrogator code that exists: bits is 0 for one that was clean before.
// Otherwise the frame is unchanged and bits is 0. The first call makes a table
// of 128 KiB, which all calls share.
//
// A repaired frame is weaker evidence than a clean one: of random frames
// about one in 2,900 passes with two bits. See [AddressFilter.Match].
func Repair(frame []byte, maxBits int) (bits int, ok bool) {
	if len(frame) != 7 && len(frame) != 14 {
		return 0, false
	}
	r := Remainder(frame)
	switch df := frame[0] >> 3; {
	case len(frame) == 14 && (df == 17 || df == 18):
		if r == 0 {
			return 0, true
		}
	case len(frame) == 7 && df == 11:
		if r&^0x7F == 0 { // clean, perhaps with an interrogator code
			return 0, validCode(r)
		}
		maxBits = min(maxBits, 1)
	default:
		return 0, false
	}
	n, a, b := wrongBits(r, len(frame)*8)
	if n == 0 || n > maxBits || a < 5 || b < 5 {
		return 0, false
	}
	frame[a/8] ^= 0x80 >> (a % 8)
	if n == 2 {
		frame[b/8] ^= 0x80 >> (b % 8)
	}
	return n, true
}

// RepairFormat changes one bit among the five format bits of a 14-byte frame
// when that alone gives a DF17 or DF18 with a fitting parity, for instance a
// DF19 that was sent as DF17. It reports whether it did. Real DF19 frames
// with parity of their own are left alone, their remainder is 0.
func RepairFormat(frame []byte) bool {
	if len(frame) != 14 {
		return false
	}
	n, a, _ := wrongBits(Remainder(frame), 112)
	if n != 1 || a >= 5 {
		return false
	}
	flip := byte(0x80) >> a
	if df := (frame[0] ^ flip) >> 3; df != 17 && df != 18 {
		return false
	}
	frame[0] ^= flip
	return true
}
