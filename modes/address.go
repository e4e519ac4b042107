package modes

// AddressKind says who assigned a 24-bit address and by which path it
// arrived. Addresses of different namespaces never denote the same aircraft
// even when their 24 bits are equal. The zero value is an ICAO address of a
// transponder.
type AddressKind uint8

// Address kinds. The names given are what [AddressKind.String] returns.
const (
	// AddressICAO is a transponder's ICAO address ("icao").
	AddressICAO AddressKind = iota
	// AddressICAODevice is an ICAO address sent by a device that is not a
	// transponder, DF18 CF 0 ("icao_nt").
	AddressICAODevice
	// AddressNonICAO is DF18 CF 1: an anonymous or self-assigned address, a
	// ground vehicle or an obstacle ("non_icao").
	AddressNonICAO
	// AddressTISB is a TIS-B target with an ICAO address ("tisb_icao").
	AddressTISB
	// AddressTISBNonICAO is a TIS-B target with another address, DF18 CF 5
	// ("tisb_non_icao").
	AddressTISBNonICAO
	// AddressTISBTrackFile is a TIS-B target named by Mode A code and track
	// file number in place of an address ("tisb_trackfile").
	AddressTISBTrackFile
	// AddressADSR is an ICAO address rebroadcast by a ground station
	// ("adsr_icao").
	AddressADSR
	// AddressADSRAnonymous is an anonymous or other non-ICAO address
	// rebroadcast by a ground station ("adsr_anonymous").
	AddressADSRAnonymous
)

// String returns the short name that is given with each constant.
func (k AddressKind) String() string {
	switch k {
	case AddressICAO:
		return "icao"
	case AddressICAODevice:
		return "icao_nt"
	case AddressNonICAO:
		return "non_icao"
	case AddressTISB:
		return "tisb_icao"
	case AddressTISBNonICAO:
		return "tisb_non_icao"
	case AddressTISBTrackFile:
		return "tisb_trackfile"
	case AddressADSR:
		return "adsr_icao"
	case AddressADSRAnonymous:
		return "adsr_anonymous"
	}
	return "unknown"
}

// ICAO reports whether the address is one that ICAO assigned to an aircraft.
func (k AddressKind) ICAO() bool {
	switch k {
	case AddressICAO, AddressICAODevice, AddressTISB, AddressADSR:
		return true
	}
	return false
}

// An Address is a 24-bit address together with its kind. It is comparable,
// but two addresses of the same aircraft may differ in kind (a transponder
// and its rebroadcast): compare [Address.Key] to tell aircraft apart.
type Address struct {
	// Value is the 24-bit address.
	Value uint32
	// Kind says in whose namespace Value is.
	Kind AddressKind
}

// NonICAOKey is the bit that [Address.Key] sets beside the 24 bits of an
// address that is not an ICAO address.
const NonICAOKey = 1 << 24

// Key returns what identifies the aircraft: the 24 bits, with [NonICAOKey]
// set for an address that is not an ICAO address.
func (a Address) Key() uint32 {
	if a.Kind.ICAO() {
		return a.Value & 0xFFFFFF
	}
	return a.Value&0xFFFFFF | NonICAOKey
}

// String returns six lower-case hexadecimal digits, after a tilde when the
// address is not an ICAO address: "4b1a2c", "~c60bf1".
func (a Address) String() string { return string(a.Append(make([]byte, 0, 7))) }

// Append appends what String returns to b.
func (a Address) Append(b []byte) []byte {
	if !a.Kind.ICAO() {
		b = append(b, '~')
	}
	for s := 20; s >= 0; s -= 4 {
		b = append(b, "0123456789abcdef"[a.Value>>s&15])
	}
	return b
}
