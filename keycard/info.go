package keycard

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Slot is one of a card's keys. The zero value is the signature key.
type Slot uint8

// The three keys of the specification and the attestation key that YubiKeys
// have beside them.
const (
	SlotSign Slot = iota
	SlotDecrypt
	SlotAuth
	SlotAttest
)

// String returns "sign", "decrypt", "auth" or "attest".
func (s Slot) String() string {
	switch s {
	case SlotSign:
		return "sign"
	case SlotDecrypt:
		return "decrypt"
	case SlotAuth:
		return "auth"
	case SlotAttest:
		return "attest"
	}
	return fmt.Sprintf("slot(%d)", uint8(s))
}

// ParseSlot reads what [Slot.String] writes, and gpg's numbers "1" to "3".
func ParseSlot(s string) (Slot, error) {
	for i := SlotSign; i <= SlotAttest; i++ {
		if s == i.String() || i < SlotAttest && s == string('1'+rune(i)) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("keycard: no slot %q (sign, decrypt, auth)", s)
}

// crt is the control reference template that names the slot in GENERATE and
// in key import: B6, B8 or A4.
func (s Slot) crt() byte { return [...]byte{0xb6, 0xb8, 0xa4, 0}[s&3] }

// mode is the PIN that unlocks the slot's private key.
func (s Slot) mode() PINMode {
	if s == SlotSign {
		return PINSign
	}
	return PINUser
}

type slotObject uint8

const (
	doAlgorithm slotObject = iota
	doFingerprint
	doCreated
	doUIF
)

// object returns the tag of one of the slot's own data objects.
func (s Slot) object(o slotObject) uint16 {
	return [4][4]uint16{
		{0xc1, 0xc2, 0xc3, 0xda},
		{0xc7, 0xc8, 0xc9, 0xdb},
		{0xce, 0xcf, 0xd0, 0xdd},
		{0xd6, 0xd7, 0xd8, 0xd9},
	}[o&3][s&3]
}

// Instructions (specification section 7.2).
const (
	insVerify       = 0x20
	insChange       = 0x24
	insPSO          = 0x2a
	insReset        = 0x2c
	insActivate     = 0x44
	insGenerate     = 0x47
	insChallenge    = 0x84
	insAuth         = 0x88
	insSelect       = 0xa4
	insSelectData   = 0xa5
	insGetResponse  = 0xc0
	insGetData      = 0xca
	insGetNext      = 0xcc
	insPutData      = 0xda
	insPutDataOdd   = 0xdb
	insTerminate    = 0xe6
	insAttest       = 0xfb // YubiKey, class 80
	insSetRetries   = 0xf2 // YubiKey
	insVendorStatus = 0xf1 // YubiKey: firmware version
)

// Data objects.
const (
	doAID         = 0x4f
	doName        = 0x5b
	doLogin       = 0x5e
	doLanguage    = 0x5f2d
	doSex         = 0x5f35
	doURL         = 0x5f50
	doHistorical  = 0x5f52
	doHolder      = 0x65
	doApplication = 0x6e
	doSecurity    = 0x7a
	doCertificate = 0x7f21
	doLengths     = 0x7f66
	doFeatures    = 0x7f74
	doCapability  = 0xc0
	doPWStatus    = 0xc4
	doAllFPR      = 0xc5
	doAllCAFPR    = 0xc6
	doAllTimes    = 0xcd
	doKeyInfo     = 0xde
	doResetCode   = 0xd3
	doKDF         = 0xf9
	doAlgorithms  = 0xfa
	doAttestCert  = 0xfc
)

// Fingerprint is an OpenPGP version 4 fingerprint. The zero value means that
// none is stored.
type Fingerprint [20]byte

// IsZero reports whether no fingerprint is stored.
func (f Fingerprint) IsZero() bool { return f == Fingerprint{} }

// String returns 40 upper-case hexadecimal digits.
func (f Fingerprint) String() string { return fmt.Sprintf("%X", f[:]) }

// PINStatus is the PW status object C4 (specification section 4.4.2).
type PINStatus struct {
	// Multiple: one verification of the PIN for signing (mode 81) is good
	// for many signatures. When false every signature asks ("forcesig").
	Multiple bool
	// Longest PIN, resetting code and Admin PIN the card takes, in octets.
	MaxPIN, MaxResetCode, MaxAdmin int
	// Tries left. ResetCode is 0 when no resetting code is set.
	PIN, ResetCode, Admin int
}

// ParsePINStatus reads a C4 object's value. More than seven octets are
// allowed, fewer are not.
func ParsePINStatus(b []byte) (PINStatus, error) {
	if len(b) < 7 {
		return PINStatus{}, fmt.Errorf("keycard: PIN status %x: %w", b, ErrMalformed)
	}
	return PINStatus{
		Multiple: b[0] != 0,
		MaxPIN:   int(b[1] & 0x7f), MaxResetCode: int(b[2] & 0x7f), MaxAdmin: int(b[3] & 0x7f),
		PIN: int(b[4]), ResetCode: int(b[5]), Admin: int(b[6]),
	}, nil
}

// Retries returns the tries left for the PIN of this mode.
func (p PINStatus) Retries(m PINMode) int {
	switch m {
	case PINAdmin:
		return p.Admin
	case ResetCode:
		return p.ResetCode
	}
	return p.PIN
}

// Capabilities are the extended capabilities C0 (specification section
// 4.4.3.7) and what else says how to talk to the card.
type Capabilities struct {
	SecureMessaging bool
	GetChallenge    bool // GET CHALLENGE: [Card.Challenge]
	KeyImport       bool // [Card.Import]
	ForceSig        bool // the PW status can be changed: [Card.SetForceSig]
	PrivateObjects  bool // the private use objects: [Card.PrivateObject]
	ChangeAlgorithm bool // [Card.SetAlgorithm]
	AES             bool // PSO: DECIPHER and ENCIPHER with AES
	KDF             bool // the card may have a KDF: [Card.KDF]

	MaxChallenge   int  // octets of one GET CHALLENGE, 0 unknown
	MaxCertificate int  // octets of one certificate
	MaxSpecial     int  // octets of cardholder and private objects; 0 on version 2 cards
	MSE            bool // MANAGE SECURITY ENVIRONMENT

	// From the historical octets and 7F66. Lengths are whole APDUs in octets,
	// 0 when the card does not say.
	ExtendedLength, Chaining bool
	MaxCommand, MaxResponse  int

	Button bool // 7F74: the card has a button or sensor to touch
}

// Origin says how a key came onto the card.
type Origin uint8

// Values of the key information object DE (specification section 4.4.3.8).
// OriginUnknown means that the card does not have the object.
const (
	OriginUnknown Origin = iota
	OriginNone           // no key in the slot
	OriginGenerated
	OriginImported
)

// String returns "unknown", "none", "generated" or "imported".
func (o Origin) String() string {
	return [...]string{"unknown", "none", "generated", "imported"}[o&3]
}

// UIF is a key's touch policy (user interaction flag).
type UIF uint8

// Touch policies. UIFFixed and UIFCachedFixed can be undone only by a factory
// reset (or, on some cards, a new key in the slot). UIFAbsent means that the
// card has no such object.
const (
	UIFOff UIF = iota
	UIFOn
	UIFFixed
	UIFCached          // a touch is good for a few seconds (YubiKey: 15)
	UIFCachedFixed     // both
	UIFAbsent      UIF = 0xff
)

// String returns "off", "on", "fixed", "cached", "cached-fixed" or "absent".
func (u UIF) String() string {
	if int(u) < 5 {
		return [...]string{"off", "on", "fixed", "cached", "cached-fixed"}[u]
	}
	if u == UIFAbsent {
		return "absent"
	}
	return fmt.Sprintf("uif(%d)", uint8(u))
}

// ParseUIF reads what [UIF.String] writes.
func ParseUIF(s string) (UIF, error) {
	for u := UIFOff; u <= UIFCachedFixed; u++ {
		if s == u.String() {
			return u, nil
		}
	}
	return 0, fmt.Errorf("keycard: no touch policy %q (off, on, fixed, cached, cached-fixed)", s)
}

// KeyStatus is what the card stores beside one key.
type KeyStatus struct {
	Algorithm   Algorithm // zero when absent or unknown; see [Info.Find] for the octets
	Fingerprint Fingerprint
	CA          Fingerprint // the slot's CA fingerprint, free for any use
	Created     time.Time   // UTC, zero time when not stored
	Origin      Origin
	UIF         UIF
	Present     bool // the card has this slot (only [SlotAttest] may be absent)
}

// Info is the application related data (6E) of a card, parsed. It does not
// change: [Card.Info] returns a new one after something was written.
type Info struct {
	AID          [16]byte
	Major, Minor byte // version of the specification the card follows
	Manufacturer uint16
	Serial       uint32

	// LifeCycle is the status indicator of the historical octets: 3
	// initialisation, 5 operational, 0 no information. Only with 3 or 5 can
	// the card be terminated and activated again.
	LifeCycle byte

	Capabilities Capabilities
	PIN          PINStatus
	Keys         [4]KeyStatus // by Slot

	raw []byte
}

// Raw returns the octets that were parsed. The caller must not change them.
func (i *Info) Raw() []byte { return i.raw }

// Find returns the value of any object in the application related data, also
// of those this package does not know.
func (i *Info) Find(tag uint16) ([]byte, bool) { return FindTLV(i.raw, tag) }

// Number returns the serial number as gpg writes it: 32 hexadecimal digits of
// the whole AID.
func (i *Info) Number() string { return fmt.Sprintf("%X", i.AID[:]) }

// Ident returns manufacturer and serial number as other tools write them,
// such as "0006:12345678".
func (i *Info) Ident() string { return fmt.Sprintf("%04X:%08X", i.Manufacturer, i.Serial) }

// CanReset reports whether the card announces life cycle management.
func (i *Info) CanReset() bool { return i.LifeCycle == 3 || i.LifeCycle == 5 }

// ParseInfo reads the application related data, with or without the outer 6E
// (cards of version 2 leave it out). It keeps b.
//
// It takes what real cards send: fingerprints, CA fingerprints and times of
// three keys or four (YubiKey), discretionary data inside 73 or beside it, a
// certificate, unknown objects, duplicates (the first counts), zeros between
// objects. AID, C0, C4 and the C1 of a signature key must be there; the error
// wraps [ErrMalformed].
func ParseInfo(b []byte) (*Info, error) {
	i := &Info{raw: b}
	for k := range i.Keys {
		i.Keys[k].UIF = UIFAbsent
	}
	i.Keys[SlotSign].Present, i.Keys[SlotDecrypt].Present, i.Keys[SlotAuth].Present = true, true, true
	var seen uint64
	if err := i.parse(b, &seen, 0); err != nil {
		return nil, err
	}
	for _, need := range [...]uint16{doAID, doCapability, doPWStatus} {
		if seen&tagBit(need) == 0 {
			return nil, fmt.Errorf("keycard: application related data without %02X: %w", need, ErrMalformed)
		}
	}
	if i.Major < 3 { // these octets had other meanings before version 3
		if v, ok := i.Find(doCapability); ok && len(v) >= 10 {
			i.Capabilities.MaxCommand = int(v[6])<<8 | int(v[7])
			i.Capabilities.MaxResponse = int(v[8])<<8 | int(v[9])
			i.Capabilities.MaxSpecial, i.Capabilities.MSE = 0, false
		}
	}
	return i, nil
}

// tagBit gives each tag that ParseInfo knows a bit of its own; the low five
// bits of the tags C0 to DE differ from each other.
func tagBit(tag uint16) uint64 {
	switch tag {
	case doAID:
		return 1 << 40
	case doHistorical:
		return 1 << 41
	case doLengths:
		return 1 << 42
	case doFeatures:
		return 1 << 43
	}
	if tag >= 0xc0 && tag <= 0xde {
		return 1 << (tag & 0x1f)
	}
	return 0
}

func (i *Info) parse(b []byte, seen *uint64, depth int) error {
	for len(b) > 0 {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		tag, v, rest, ok := nextTLV(b)
		if !ok {
			return fmt.Errorf("keycard: application related data at offset %d: %w", len(i.raw)-len(b), ErrMalformed)
		}
		b = rest
		if tag == doApplication || tag == 0x73 {
			if depth >= 2 {
				return fmt.Errorf("keycard: application related data nested too deep: %w", ErrMalformed)
			}
			if err := i.parse(v, seen, depth+1); err != nil {
				return err
			}
			continue
		}
		bit := tagBit(tag)
		if *seen&bit != 0 {
			continue // the first of several counts
		}
		*seen |= bit
		if err := i.object(tag, v); err != nil {
			return err
		}
	}
	return nil
}

func (i *Info) object(tag uint16, v []byte) error {
	bad := func() error {
		return fmt.Errorf("keycard: object %02X with %d octets: %w", tag, len(v), ErrMalformed)
	}
	switch tag {
	case doAID:
		if len(v) < 14 {
			return bad()
		}
		copy(i.AID[:], v)
		i.Major, i.Minor = v[6], v[7]
		i.Manufacturer = binary.BigEndian.Uint16(v[8:])
		i.Serial = binary.BigEndian.Uint32(v[10:])
	case doHistorical:
		h := ParseHistorical(v)
		i.LifeCycle = h.LifeCycle
		i.Capabilities.ExtendedLength = h.ExtendedLength
		i.Capabilities.Chaining = h.Chaining
	case doLengths:
		t1, c, rest, ok1 := nextTLV(v)
		t2, r, _, ok2 := nextTLV(rest)
		if ok1 && ok2 && t1 == 2 && t2 == 2 {
			i.Capabilities.MaxCommand, i.Capabilities.MaxResponse = bigEndian(c), bigEndian(r)
		}
	case doFeatures:
		if f, ok := findTLV(v, 0x81, maxDepth); ok && len(f) > 0 {
			i.Capabilities.Button = f[0]&0x20 != 0
		}
	case doCapability:
		if len(v) < 6 {
			return bad()
		}
		c := &i.Capabilities
		c.SecureMessaging, c.GetChallenge, c.KeyImport, c.ForceSig = v[0]&0x80 != 0, v[0]&0x40 != 0, v[0]&0x20 != 0, v[0]&0x10 != 0
		c.PrivateObjects, c.ChangeAlgorithm, c.AES, c.KDF = v[0]&8 != 0, v[0]&4 != 0, v[0]&2 != 0, v[0]&1 != 0
		c.MaxChallenge = int(v[2])<<8 | int(v[3])
		c.MaxCertificate = int(v[4])<<8 | int(v[5])
		if len(v) >= 8 {
			c.MaxSpecial = int(v[6])<<8 | int(v[7])
		}
		c.MSE = len(v) >= 10 && v[9] == 1
	case doPWStatus:
		p, err := ParsePINStatus(v)
		if err != nil {
			return err
		}
		i.PIN = p
	case 0xc1, 0xc2, 0xc3, 0xda:
		n := SlotAttest
		if tag != 0xda {
			n = Slot(tag - 0xc1)
		}
		k := &i.Keys[n]
		k.Present = true
		k.Algorithm, _ = ParseAttributes(v) // unknown stays zero or has only its number
		if k.Algorithm.ID == AlgoEdDSA && k.Algorithm.Curve == X25519 {
			k.Algorithm.ID = AlgoECDH // YubiKeys take X25519 under EdDSA's number
		}
	case doAllFPR, doAllCAFPR:
		if len(v)%20 != 0 || len(v) == 0 {
			return bad()
		}
		for n := 0; n < len(i.Keys) && len(v) >= 20; n++ {
			if tag == doAllFPR {
				copy(i.Keys[n].Fingerprint[:], v)
			} else {
				copy(i.Keys[n].CA[:], v)
			}
			v = v[20:]
		}
	case doAllTimes:
		if len(v)%4 != 0 || len(v) == 0 {
			return bad()
		}
		for n := 0; n < len(i.Keys) && len(v) >= 4; n++ {
			if t := binary.BigEndian.Uint32(v); t != 0 {
				i.Keys[n].Created = time.Unix(int64(t), 0).UTC()
			}
			v = v[4:]
		}
	case doKeyInfo:
		for ; len(v) >= 2; v = v[2:] {
			n := int(v[0]) - 1
			if v[0] == 0x81 {
				n = int(SlotAttest)
			}
			if n >= 0 && n < len(i.Keys) && v[1] <= 2 {
				i.Keys[n].Origin = Origin(v[1]) + OriginNone
			}
		}
	case 0xd6, 0xd7, 0xd8, 0xd9:
		if len(v) > 0 {
			i.Keys[tag-0xd6].UIF = UIF(v[0])
		}
	}
	return nil
}

func bigEndian(b []byte) (n int) {
	if len(b) > 3 {
		return 0
	}
	for _, c := range b {
		n = n<<8 | int(c)
	}
	return n
}

// Historical holds what the historical octets of an answer to reset, or of
// object 5F52, say (ISO 7816-4 section 8.1.1, specification section 6).
type Historical struct {
	ExtendedLength, Chaining bool
	LifeCycle                byte // 0 when not given
}

// ParseHistorical reads historical octets of category 00 (three status octets
// at the end) or 80 (status among the objects). Anything else, or malformed
// objects, leave the rest of the result zero.
func ParseHistorical(b []byte) (h Historical) {
	if len(b) == 0 {
		return h
	}
	category, b := b[0], b[1:]
	if category == 0 && len(b) >= 3 {
		h.LifeCycle = b[len(b)-3]
		b = b[:len(b)-3]
	} else if category != 0x80 {
		return h
	}
	for len(b) > 0 {
		tag, n := b[0]>>4, int(b[0]&15)
		if b = b[1:]; n > len(b) {
			return h
		}
		switch {
		case tag == 7 && n >= 3:
			h.Chaining, h.ExtendedLength = b[2]&0x80 != 0, b[2]&0x40 != 0
		case tag == 8 && category == 0x80 && (n == 1 || n == 3):
			h.LifeCycle = b[0]
		}
		b = b[n:]
	}
	return h
}

// atrHistorical cuts the historical octets out of an answer to reset (ISO
// 7816-3 section 8.2).
func atrHistorical(atr []byte) []byte {
	if len(atr) < 2 {
		return nil
	}
	k := int(atr[1] & 15)
	i, td := 2, atr[1]
	for {
		for bit := byte(0x10); bit <= 0x40; bit <<= 1 {
			if td&bit != 0 {
				i++
			}
		}
		if td&0x80 == 0 {
			break
		}
		if i >= len(atr) {
			return nil
		}
		td = atr[i]
		i++
	}
	if i+k > len(atr) {
		return nil
	}
	return atr[i : i+k]
}
