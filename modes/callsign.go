package modes

import "strings"

// A Callsign is the eight characters of an aircraft identification, padded
// with spaces: letters, digits and spaces only.
type Callsign [8]byte

// String returns the callsign without the spaces at its end.
func (c Callsign) String() string { return strings.TrimRight(string(c[:]), " ") }

// callsign48 decodes eight 6-bit characters (Annex 10 volume IV section
// 3.1.2.9.1.2). A character outside the alphabet, or eight spaces, make it
// absent.
func callsign48(v uint64) (o Opt[Callsign]) {
	blank := true
	for i := range o.V {
		c := byte(v >> (42 - 6*i) & 63)
		switch {
		case c >= 1 && c <= 26:
			c += 'A' - 1
		case c == ' ', c >= '0' && c <= '9':
		default:
			return Opt[Callsign]{}
		}
		blank = blank && c == ' '
		o.V[i] = c
	}
	if blank {
		return Opt[Callsign]{}
	}
	o.OK = true
	return
}

// encodeCallsign is the inverse of callsign48; a shorter string is padded
// with spaces and lower case is raised. Characters outside the alphabet become
// spaces.
func encodeCallsign(s string) (v uint64) {
	for i := range 8 {
		c := byte(' ')
		if i < len(s) {
			c = s[i]
		}
		switch {
		case c >= 'a' && c <= 'z':
			c -= 'a' - 1
		case c >= 'A' && c <= 'Z':
			c -= 'A' - 1
		case c >= '0' && c <= '9':
		default:
			c = ' '
		}
		v = v<<6 | uint64(c)
	}
	return
}

// A Category is an emitter category, set letter and number in two half bytes:
// 0xA3 is A3, a large aircraft (DO-260B section 2.2.3.2.5.2).
type Category uint8

// String returns the letter and the digit, "A3".
func (c Category) String() string {
	return string([]byte{"0123456789ABCDEF"[c>>4], '0' + byte(c&7)})
}
