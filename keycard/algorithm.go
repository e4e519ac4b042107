package keycard

import (
	"bytes"
	"crypto/ecdh"
	"crypto/elliptic"
	"fmt"
	"strconv"
	"strings"
)

// Curve names an elliptic curve. The zero value is "none or unknown".
type Curve uint8

// Curves a card may offer. This package computes with the NIST curves and the
// two 25519 curves; the others are only named.
const (
	CurveNone Curve = iota
	P256
	P384
	P521
	Ed25519
	X25519
	Secp256k1
	BrainpoolP256r1
	BrainpoolP384r1
	BrainpoolP512r1
	Ed448
	X448
)

// curveInfo holds what the packages needs to know of each curve: gpg's name,
// the object identifiers (first the one that OpenPGP version 4 keys use), the
// bits of the field and the octets 03 01 hash cipher that gpg puts into an
// ECDH key, which its fingerprint covers (RFC 6637 section 9).
type curveInfo struct {
	name string
	oids [2]string
	bits int
	kdf  [2]byte
}

func (c Curve) info() curveInfo {
	switch c {
	case P256:
		return curveInfo{"nistp256", [2]string{"\x2a\x86\x48\xce\x3d\x03\x01\x07"}, 256, [2]byte{8, 7}}
	case P384:
		return curveInfo{"nistp384", [2]string{"\x2b\x81\x04\x00\x22"}, 384, [2]byte{9, 8}}
	case P521:
		return curveInfo{"nistp521", [2]string{"\x2b\x81\x04\x00\x23"}, 521, [2]byte{10, 9}}
	case Ed25519:
		return curveInfo{"ed25519", [2]string{"\x2b\x06\x01\x04\x01\xda\x47\x0f\x01", "\x2b\x65\x70"}, 255, [2]byte{}}
	case X25519:
		return curveInfo{"cv25519", [2]string{"\x2b\x06\x01\x04\x01\x97\x55\x01\x05\x01", "\x2b\x65\x6e"}, 255, [2]byte{8, 7}}
	case Secp256k1:
		return curveInfo{"secp256k1", [2]string{"\x2b\x81\x04\x00\x0a"}, 256, [2]byte{8, 7}}
	case BrainpoolP256r1:
		return curveInfo{"brainpoolP256r1", [2]string{"\x2b\x24\x03\x03\x02\x08\x01\x01\x07"}, 256, [2]byte{8, 7}}
	case BrainpoolP384r1:
		return curveInfo{"brainpoolP384r1", [2]string{"\x2b\x24\x03\x03\x02\x08\x01\x01\x0b"}, 384, [2]byte{9, 8}}
	case BrainpoolP512r1:
		return curveInfo{"brainpoolP512r1", [2]string{"\x2b\x24\x03\x03\x02\x08\x01\x01\x0d"}, 512, [2]byte{10, 9}}
	case Ed448:
		return curveInfo{"ed448", [2]string{"\x2b\x65\x71"}, 448, [2]byte{}}
	case X448:
		return curveInfo{"cv448", [2]string{"\x2b\x65\x6f"}, 448, [2]byte{10, 9}}
	}
	return curveInfo{name: "unknown curve"}
}

// String returns the name that gpg uses, such as "nistp256".
func (c Curve) String() string { return c.info().name }

// OID returns the object identifier's content octets as OpenPGP version 4 keys
// carry them, nil for [CurveNone].
func (c Curve) OID() []byte {
	if c == CurveNone {
		return nil
	}
	return []byte(c.info().oids[0])
}

// Size returns the octets of a coordinate or scalar, 0 for [CurveNone].
func (c Curve) Size() int {
	switch c {
	case Ed448:
		return 57
	case X448:
		return 56
	}
	return (c.info().bits + 7) / 8
}

// elliptic returns the standard library's curve, nil if it has none.
func (c Curve) elliptic() elliptic.Curve {
	switch c {
	case P256:
		return elliptic.P256()
	case P384:
		return elliptic.P384()
	case P521:
		return elliptic.P521()
	}
	return nil
}

// ecdh returns the standard library's curve, nil if it has none.
func (c Curve) ecdh() ecdh.Curve {
	switch c {
	case P256:
		return ecdh.P256()
	case P384:
		return ecdh.P384()
	case P521:
		return ecdh.P521()
	case X25519:
		return ecdh.X25519()
	}
	return nil
}

// CurveFromOID finds a curve by its object identifier's content octets.
func CurveFromOID(oid []byte) (Curve, bool) {
	for c := P256; c <= X448; c++ {
		for _, o := range c.info().oids {
			if o != "" && o == string(oid) {
				return c, true
			}
		}
	}
	return CurveNone, false
}

// Algorithm numbers as they stand in algorithm attributes (specification
// section 4.4.3.9; the numbers are OpenPGP's).
const (
	AlgoRSA   = 1
	AlgoECDH  = 18
	AlgoECDSA = 19
	AlgoEdDSA = 22
)

// Algorithm says what kind of key a slot holds or shall hold. It is
// comparable. The zero value means "unknown".
type Algorithm struct {
	ID    byte  // AlgoRSA, AlgoECDH, AlgoECDSA or AlgoEdDSA
	Curve Curve // elliptic curves only

	Bits         int  // RSA: length of the modulus in bits
	ExponentBits int  // RSA: length of the public exponent's field in bits, usually 17 or 32
	Format       byte // RSA: key import format, 0 e p q, 1 with modulus, 2 with CRT values, 3 with both

	WithPublic bool // elliptic curves: the public key must be imported too
	NewOID     bool // 25519: the attribute carries the RFC 8410 object identifier
}

// RSA returns the algorithm of an RSA key with a modulus of so many bits.
// The exponent's length and the import format stay open (zero): on use they
// are taken from the card.
func RSA(bits int) Algorithm { return Algorithm{ID: AlgoRSA, Bits: bits} }

// EC returns the algorithm of a key on this curve, for a signature or
// authentication slot; [Algorithm.For] turns it into the one for decryption.
func EC(c Curve) Algorithm {
	switch c {
	case Ed25519, Ed448:
		return Algorithm{ID: AlgoEdDSA, Curve: c}
	case X25519, X448:
		return Algorithm{ID: AlgoECDH, Curve: c}
	}
	return Algorithm{ID: AlgoECDSA, Curve: c}
}

// For returns the variant of a that belongs into the slot: ECDH instead of
// ECDSA, X25519 instead of Ed25519 in the decryption slot, the reverse in the
// others.
func (a Algorithm) For(slot Slot) Algorithm {
	dec := slot == SlotDecrypt
	switch {
	case dec && a.Curve == Ed25519:
		a.Curve = X25519
	case dec && a.Curve == Ed448:
		a.Curve = X448
	case !dec && a.Curve == X25519:
		a.Curve = Ed25519
	case !dec && a.Curve == X448:
		a.Curve = Ed448
	}
	if a.ID != AlgoRSA && a.Curve != CurveNone {
		switch {
		case dec:
			a.ID = AlgoECDH
		case a.Curve == Ed25519 || a.Curve == Ed448:
			a.ID = AlgoEdDSA
		default:
			a.ID = AlgoECDSA
		}
	}
	return a
}

// Same reports whether both name the same kind of key; details of the import
// format do not count.
func (a Algorithm) Same(b Algorithm) bool {
	return a.ID == b.ID && a.Curve == b.Curve && a.Bits == b.Bits
}

// String returns gpg's name, such as "rsa2048" or "nistp256".
func (a Algorithm) String() string {
	switch {
	case a.ID == AlgoRSA:
		return "rsa" + strconv.Itoa(a.Bits)
	case a.ID == 0:
		return "unknown"
	}
	return a.Curve.String()
}

// ParseAlgorithm reads a name as [Algorithm.String] writes it, in any case.
// The names "p256", "p384", "p521", "x25519" and "25519" are understood too.
func ParseAlgorithm(name string) (Algorithm, error) {
	n := strings.ToLower(name)
	if bits, ok := strings.CutPrefix(n, "rsa"); ok {
		if b, err := strconv.Atoi(bits); err == nil && b >= 1024 && b <= 8192 && b%8 == 0 {
			return RSA(b), nil
		}
	}
	switch n {
	case "p256", "p384", "p521":
		n = "nist" + n
	case "x25519":
		n = "cv25519"
	case "25519":
		n = "ed25519"
	}
	for c := P256; c <= X448; c++ {
		if strings.ToLower(c.String()) == n {
			return EC(c), nil
		}
	}
	return Algorithm{}, fmt.Errorf("keycard: algorithm %q: %w", name, ErrUnsupported)
}

// ParseAttributes reads algorithm attributes (specification section 4.4.3.9).
// The curve is found by the longest known object identifier at the front: an
// FF or 00 after it says whether imports carry the public key, any other
// octets there, which some cards leave behind, are ignored.
func ParseAttributes(b []byte) (Algorithm, error) {
	if len(b) == 0 {
		return Algorithm{}, fmt.Errorf("keycard: empty algorithm attributes: %w", ErrMalformed)
	}
	switch b[0] {
	case AlgoRSA, 2, 3:
		if len(b) < 5 {
			return Algorithm{}, fmt.Errorf("keycard: algorithm attributes %x: %w", b, ErrMalformed)
		}
		a := Algorithm{ID: AlgoRSA, Bits: int(b[1])<<8 | int(b[2]), ExponentBits: int(b[3])<<8 | int(b[4])}
		if len(b) > 5 {
			a.Format = b[5] & 3
		}
		return a, nil
	case AlgoECDH, AlgoECDSA, AlgoEdDSA:
		a := Algorithm{ID: b[0]}
		best := 0
		for c := P256; c <= X448; c++ {
			for i, oid := range c.info().oids {
				if len(oid) > best && bytes.HasPrefix(b[1:], []byte(oid)) {
					a.Curve, a.NewOID, best = c, i == 1, len(oid)
				}
			}
		}
		if best == 0 {
			return a, fmt.Errorf("keycard: algorithm attributes %x: curve: %w", b, ErrUnsupported)
		}
		a.WithPublic = len(b) > 1+best && b[1+best] == 0xff
		return a, nil
	}
	return Algorithm{ID: b[0]}, fmt.Errorf("keycard: algorithm attributes %x: %w", b, ErrUnsupported)
}

// Attributes encodes the algorithm as a card stores it. Open exponent bits
// become 17.
func (a Algorithm) Attributes() []byte {
	if a.ID == AlgoRSA {
		e := a.ExponentBits
		if e == 0 {
			e = 17
		}
		return []byte{AlgoRSA, byte(a.Bits >> 8), byte(a.Bits), byte(e >> 8), byte(e), a.Format}
	}
	oid := a.Curve.info().oids[0]
	if o := a.Curve.info().oids[1]; a.NewOID && o != "" {
		oid = o
	}
	b := append([]byte{a.ID}, oid...)
	if a.WithPublic {
		b = append(b, 0xff)
	}
	return b
}

// plausible reports whether an algorithm can be meant for the slot. YubiKeys
// list X25519 as an EdDSA curve, for instance.
func (a Algorithm) plausible(slot Slot) bool {
	switch a.ID {
	case AlgoRSA:
		return a.Bits > 0
	case AlgoECDSA:
		return slot != SlotDecrypt && a.Curve != X25519 && a.Curve != Ed25519 && a.Curve != X448 && a.Curve != Ed448
	case AlgoEdDSA:
		return slot != SlotDecrypt && (a.Curve == Ed25519 || a.Curve == Ed448)
	case AlgoECDH:
		return slot == SlotDecrypt && a.Curve != Ed25519 && a.Curve != Ed448
	}
	return false
}

// ParseAlgorithmInformation reads the algorithm information object FA
// (specification section 4.4.3.11), wrapped or bare. A length that promises
// more than there is is cut to what is there; pairs of algorithm and slot that
// cannot be, and unknown curves, are left out. The lists keep the card's order.
func ParseAlgorithmInformation(b []byte) (map[Slot][]Algorithm, error) {
	if len(b) > 0 && b[0] == 0xfa {
		_, w, ok := tlvLength(b[1:])
		if !ok {
			return nil, fmt.Errorf("keycard: algorithm information: %w", ErrMalformed)
		}
		b = b[1+w:]
	}
	out := map[Slot][]Algorithm{}
	for len(b) > 0 {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		tag, v, rest, ok := nextTLV(b)
		if !ok {
			if len(out) > 0 {
				break // cut short: what was read stands
			}
			return nil, fmt.Errorf("keycard: algorithm information: %w", ErrMalformed)
		}
		b = rest
		for slot := SlotSign; slot <= SlotAttest; slot++ {
			if tag != slot.object(doAlgorithm) {
				continue
			}
			a, err := ParseAttributes(v)
			if slot == SlotDecrypt && a.ID == AlgoEdDSA && a.Curve == X25519 {
				a.ID = AlgoECDH // YubiKeys list it under this number
			}
			if err == nil && a.plausible(slot) {
				out[slot] = append(out[slot], a)
			}
		}
	}
	return out, nil
}
