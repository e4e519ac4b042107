package modes

import "encoding/binary"

// generator is the 25-bit generator polynomial of the Mode S parity (ICAO
// Annex 10 volume IV section 3.1.2.3.3), the leading bit included.
const generator = 0x1FFF409

// parityTables holds, for k = 0..15, the remainder of each byte followed by k
// more bytes and 24 zero bits. One byte of a message costs one load whose
// address depends on nothing but the byte, so the loads overlap.
var parityTables = makeParityTables()

func makeParityTables() (t [16][256]uint32) {
	for i := range t[0] {
		r := uint32(i) << 16
		for range 8 {
			r <<= 1
			if r&0x1000000 != 0 {
				r ^= generator
			}
		}
		t[0][i] = r & 0xFFFFFF
	}
	for k := 1; k < len(t); k++ {
		for i := range t[k] {
			r := t[k-1][i]
			t[k][i] = r<<8&0xFFFFFF ^ t[0][r>>16]
		}
	}
	return
}

// Parity returns the 24-bit Mode S parity of data, the bytes of a message
// before its parity field (4 for a short frame, 11 for a long one). Any other
// length is accepted too; of no bytes the parity is 0. Annex 10 volume IV
// section 3.1.2.3.3.
func Parity(data []byte) uint32 {
	t := &parityTables
	var r uint32
	for len(data) >= 16 {
		b := data[:16]
		r = t[15][b[0]^byte(r>>16)] ^ t[14][b[1]^byte(r>>8)] ^ t[13][b[2]^byte(r)] ^
			t[12][b[3]] ^ t[11][b[4]] ^ t[10][b[5]] ^ t[9][b[6]] ^ t[8][b[7]] ^
			t[7][b[8]] ^ t[6][b[9]] ^ t[5][b[10]] ^ t[4][b[11]] ^
			t[3][b[12]] ^ t[2][b[13]] ^ t[1][b[14]] ^ t[0][b[15]]
		data = data[16:]
	}
	for _, b := range data {
		r = r<<8&0xFFFFFF ^ t[0][byte(r>>16)^b]
	}
	return r
}

// Remainder returns the parity of a whole frame of 7 or 14 bytes exclusive-or
// its last 24 bits: zero for a clean DF17 or DF18, the interrogator code for
// DF11, the transponder's address for formats with address parity. A frame of
// fewer than 3 bytes has remainder 0. Annex 10 volume IV section 3.1.2.3.3.
func Remainder(frame []byte) uint32 {
	t := &parityTables
	switch len(frame) {
	case 14:
		b := frame[:14]
		return t[10][b[0]] ^ t[9][b[1]] ^ t[8][b[2]] ^ t[7][b[3]] ^ t[6][b[4]] ^ t[5][b[5]] ^
			t[4][b[6]] ^ t[3][b[7]] ^ t[2][b[8]] ^ t[1][b[9]] ^ t[0][b[10]] ^
			binary.BigEndian.Uint32(b[10:])&0xFFFFFF
	case 7:
		b := frame[:7]
		return t[3][b[0]] ^ t[2][b[1]] ^ t[1][b[2]] ^ t[0][b[3]] ^
			binary.BigEndian.Uint32(b[3:])&0xFFFFFF
	}
	n := len(frame) - 3
	if n < 0 {
		return 0
	}
	return Parity(frame[:n]) ^ (uint32(frame[n])<<16 | uint32(frame[n+1])<<8 | uint32(frame[n+2]))
}

// SetParity writes the parity field, the last three bytes, of a frame of 7 or
// 14 bytes: the parity of the bytes before it exclusive-or overlay. The
// overlay is 0 for DF17 and DF18, the interrogator code for DF11, and the
// transponder's address for formats with address parity; only its lower 24
// bits are used. Frames of fewer than 3 bytes are left alone.
func SetParity(frame []byte, overlay uint32) {
	n := len(frame) - 3
	if n < 0 {
		return
	}
	p := Parity(frame[:n]) ^ overlay
	frame[n], frame[n+1], frame[n+2] = byte(p>>16), byte(p>>8), byte(p)
}
