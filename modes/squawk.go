package modes

// A Squawk is a Mode A identity code, one octal digit in each half byte:
// 0x7700 is 7700.
type Squawk uint16

// String returns the four digits.
func (s Squawk) String() string {
	return string([]byte{'0' + byte(s>>12&7), '0' + byte(s>>8&7), '0' + byte(s>>4&7), '0' + byte(s&7)})
}

// Emergency returns what a squawk declares: 7500, 7600 and 7700 an emergency,
// all others nothing.
func (s Squawk) Emergency() Opt[Emergency] {
	switch s {
	case 0x7500:
		return Some(EmergencyUnlawful)
	case 0x7600:
		return Some(EmergencyNoComm)
	case 0x7700:
		return Some(EmergencyGeneral)
	}
	return Opt[Emergency]{}
}

// squawk13 decodes C1 A1 C2 A2 C4 A4 X B1 D1 B2 D2 B4 D4, the first in the top
// bit. Annex 10 volume IV section 3.1.2.6.7.1.
func squawk13(c uint32) Squawk {
	bit := func(n uint) uint32 { return c >> (12 - n) & 1 }
	a := bit(5)<<2 | bit(3)<<1 | bit(1)
	b := bit(11)<<2 | bit(9)<<1 | bit(7)
	cc := bit(4)<<2 | bit(2)<<1 | bit(0)
	d := bit(12)<<2 | bit(10)<<1 | bit(8)
	return Squawk(a<<12 | b<<8 | cc<<4 | d)
}

// EncodeSquawk returns the 13-bit ID field of DF5 and 21.
func EncodeSquawk(s Squawk) uint16 {
	bit := func(n uint) uint16 { return uint16(s) >> n & 1 }
	return bit(4)<<12 | bit(12)<<11 | bit(5)<<10 | bit(13)<<9 | bit(6)<<8 | bit(14)<<7 |
		bit(8)<<5 | bit(0)<<4 | bit(9)<<3 | bit(1)<<2 | bit(10)<<1 | bit(2)
}

// Emergency is an emergency or priority status (DO-260B section 2.2.3.2.7.8.1).
type Emergency uint8

// Emergencies, with the text that [Emergency.String] returns.
const (
	EmergencyNone     Emergency = iota // "none"
	EmergencyGeneral                   // "general", squawk 7700
	EmergencyMedical                   // "lifeguard"
	EmergencyMinFuel                   // "minfuel"
	EmergencyNoComm                    // "nordo", squawk 7600
	EmergencyUnlawful                  // "unlawful", squawk 7500
	EmergencyDowned                    // "downed"
	EmergencyReserved                  // "reserved"
)

// String returns the text given with each constant.
func (e Emergency) String() string {
	switch e {
	case EmergencyNone:
		return "none"
	case EmergencyGeneral:
		return "general"
	case EmergencyMedical:
		return "lifeguard"
	case EmergencyMinFuel:
		return "minfuel"
	case EmergencyNoComm:
		return "nordo"
	case EmergencyUnlawful:
		return "unlawful"
	case EmergencyDowned:
		return "downed"
	}
	return "reserved"
}
