package modes

// generator is the 25-bit generator polynomial of the Mode S parity (ICAO
// Annex 10 volume IV section 3.1.2.3.3), the leading bit included.
const generator = 0x1FFF409

// parityTable holds the remainder of each byte followed by 24 zero bits.
var parityTable = func() (t [256]uint32) {
	for i := range t {
		r := uint32(i) << 16
		for range 8 {
			r <<= 1
			if r&0x1000000 != 0 {
				r ^= generator
			}
		}
		t[i] = r & 0xFFFFFF
	}
	return
}()

// Parity returns the 24-bit Mode S parity of data, the bytes of a message
// before its parity field (4 for a short frame, 11 for a long one).
func Parity(data []byte) uint32 {
	var r uint32
	for _, b := range data {
		r = (r<<8 ^ parityTable[byte(r>>16)^b]) & 0xFFFFFF
	}
	return r
}

// Remainder returns the parity of a whole frame of 7 or 14 bytes exclusive-or
// its last 24 bits: zero for a clean DF17 or DF18, the interrogator code for
// DF11, the transponder's address for formats with address parity.
func Remainder(frame []byte) uint32 {
	n := len(frame) - 3
	if n < 0 {
		return 0
	}
	return Parity(frame[:n]) ^ (uint32(frame[n])<<16 | uint32(frame[n+1])<<8 | uint32(frame[n+2]))
}
