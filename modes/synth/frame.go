package synth

import "signalbox.example/modes"

// seal writes the parity of a frame over its last three bytes, exclusive-or
// overlay (an address or an interrogator code, zero for none).
func seal(f []byte, overlay uint32) {
	n := len(f) - 3
	p := modes.Parity(f[:n]) ^ overlay
	f[n], f[n+1], f[n+2] = byte(p>>16), byte(p>>8), byte(p)
}

// Squitter returns the DF17 extended squitter of an ICAO address with
// capability ca (0 to 7) and message field me.
func Squitter(address uint32, ca uint8, me [7]byte) [14]byte {
	f := [14]byte{17<<3 | ca&7, byte(address >> 16), byte(address >> 8), byte(address)}
	copy(f[4:], me[:])
	seal(f[:], 0)
	return f
}

// AllCall returns the DF11 all-call reply of an ICAO address with capability
// ca. Interrogator is the 7-bit code laid over the parity, 0 for an
// acquisition squitter.
func AllCall(address uint32, ca, interrogator uint8) [7]byte {
	f := [7]byte{11<<3 | ca&7, byte(address >> 16), byte(address >> 8), byte(address)}
	seal(f[:], uint32(interrogator&0x7f))
	return f
}

// ShortReply returns a 56-bit reply with address parity: df is 0, 4 or 5 and
// payload holds the 27 bits after it, the last in bit 0. The modes.Encode
// functions fill them in by name.
func ShortReply(address uint32, df uint8, payload uint32) [7]byte {
	f := [7]byte{df<<3 | byte(payload>>24)&7, byte(payload >> 16), byte(payload >> 8), byte(payload)}
	seal(f[:], address&0xffffff)
	return f
}

// LongReply returns a 112-bit reply with address parity: df is 16, 20, 21 or
// 24, payload holds the 27 bits after it and mb the 56 bits after those.
func LongReply(address uint32, df uint8, payload uint32, mb [7]byte) [14]byte {
	f := [14]byte{df<<3 | byte(payload>>24)&7, byte(payload >> 16), byte(payload >> 8), byte(payload)}
	copy(f[4:], mb[:])
	seal(f[:], address&0xffffff)
	return f
}
