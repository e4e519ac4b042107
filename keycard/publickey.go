package keycard

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"time"
)

// PublicKey is the public half of a key on a card.
type PublicKey struct {
	Slot      Slot
	Algorithm Algorithm

	// Key is an *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey or, in
	// the decryption slot, *ecdh.PublicKey. It is nil for curves that the
	// standard library does not have; Point is there then.
	Key crypto.PublicKey

	// Point is the point as the card gave it, nil for RSA: 32 octets for
	// 25519, 04 X Y for other curves.
	Point []byte

	// As stored on the card beside the key; zero if nothing is stored.
	Created     time.Time
	Fingerprint Fingerprint
}

// ParsePublicKey reads the answer to GENERATE ASYMMETRIC KEY PAIR, a 7F49
// template, for a key of algorithm a. An answer that is not such a key, as
// when the slot still holds an older key than its attributes say, gives an
// error that wraps [ErrMismatch].
func ParsePublicKey(slot Slot, a Algorithm, b []byte) (*PublicKey, error) {
	t := unwrap(b, 0x7f49)
	p := &PublicKey{Slot: slot, Algorithm: a}
	mismatch := func(what string) (*PublicKey, error) {
		return nil, fmt.Errorf("keycard: the %v slot holds %s, its attributes say %v: %w", slot, what, a, ErrMismatch)
	}
	if a.ID == AlgoRSA {
		n, ok1 := FindTLV(t, 0x81)
		e, ok2 := FindTLV(t, 0x82)
		if !ok1 || !ok2 {
			if _, ok := FindTLV(t, 0x86); ok {
				return mismatch("a point")
			}
			return nil, fmt.Errorf("keycard: public key of %d octets: %w", len(b), ErrMalformed)
		}
		k := &rsa.PublicKey{N: new(big.Int).SetBytes(n)}
		exp := new(big.Int).SetBytes(e)
		if !exp.IsInt64() || exp.Int64() < 3 || exp.Int64() > 1<<31-1 || exp.Bit(0) == 0 || k.N.BitLen() < 512 || k.N.Bit(0) == 0 {
			return nil, fmt.Errorf("keycard: RSA public key: %w", ErrMalformed)
		}
		k.E = int(exp.Int64())
		if d := k.N.BitLen() - a.Bits; d > 0 || d < -7 {
			return mismatch(fmt.Sprintf("an RSA key of %d bits", k.N.BitLen()))
		}
		p.Key = k
		return p, nil
	}
	pt, ok := FindTLV(t, 0x86)
	if !ok {
		if _, ok := FindTLV(t, 0x81); ok {
			return mismatch("an RSA key")
		}
		return nil, fmt.Errorf("keycard: public key of %d octets: %w", len(b), ErrMalformed)
	}
	size := a.Curve.Size()
	montgomery := a.Curve == Ed25519 || a.Curve == X25519 || a.Curve == Ed448 || a.Curve == X448
	if montgomery && len(pt) == size+1 && pt[0] == 0x40 {
		pt = pt[1:] // some cards keep OpenPGP's prefix
	}
	if montgomery && len(pt) != size || !montgomery && size > 0 && len(pt) != 2*size+1 {
		return mismatch(fmt.Sprintf("a point of %d octets", len(pt)))
	}
	p.Point = bytes.Clone(pt)
	if err := p.fromPoint(); err != nil {
		return nil, err
	}
	return p, nil
}

// fromPoint sets Key from Point.
func (p *PublicKey) fromPoint() error {
	fail := func(err error) error {
		return fmt.Errorf("keycard: %v public key: %w (%v)", p.Algorithm, ErrMalformed, err)
	}
	c := p.Algorithm.Curve
	switch {
	case p.Algorithm.ID == AlgoECDH && c.ecdh() != nil:
		k, err := c.ecdh().NewPublicKey(p.Point)
		if err != nil {
			return fail(err)
		}
		p.Key = k
	case c == Ed25519:
		p.Key = ed25519.PublicKey(p.Point)
	case c.elliptic() != nil:
		k, err := ecdsa.ParseUncompressedPublicKey(c.elliptic(), p.Point)
		if err != nil {
			return fail(err)
		}
		p.Key = k
	}
	return nil
}

// NewPublicKey describes a public key as the slot of a card would hold it, to
// compute its fingerprint. pub is an *rsa.PublicKey, *ecdsa.PublicKey,
// ed25519.PublicKey or *ecdh.PublicKey; in the decryption slot an ECDSA key is
// taken as ECDH key.
func NewPublicKey(slot Slot, pub crypto.PublicKey) (*PublicKey, error) {
	p := &PublicKey{Slot: slot, Key: pub}
	switch k := pub.(type) {
	case *rsa.PublicKey:
		p.Algorithm = RSA((k.N.BitLen() + 7) &^ 7)
		return p, nil
	case ed25519.PublicKey:
		if slot == SlotDecrypt {
			return nil, fmt.Errorf("keycard: Ed25519 key for decryption: %w", ErrUnsupported)
		}
		p.Algorithm, p.Point = EC(Ed25519), bytes.Clone(k)
		return p, nil
	case *ecdsa.PublicKey:
		b, err := k.Bytes()
		if err != nil {
			return nil, fmt.Errorf("keycard: public key: %w", err)
		}
		p.Point = b
		for c := P256; c <= P521; c++ {
			if c.elliptic() == k.Curve {
				p.Algorithm = EC(c).For(slot)
				return p, p.fromPoint()
			}
		}
	case *ecdh.PublicKey:
		p.Point = k.Bytes()
		for _, c := range [...]Curve{P256, P384, P521, X25519} {
			if c.ecdh() == k.Curve() && slot == SlotDecrypt {
				p.Algorithm = EC(c).For(slot)
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("keycard: %T in the %v slot: %w", pub, slot, ErrUnsupported)
}

// Equal reports whether both are the same public key.
func (p *PublicKey) Equal(q *PublicKey) bool {
	if p == nil || q == nil || !p.Algorithm.Same(q.Algorithm) {
		return false
	}
	if k, ok := p.Key.(*rsa.PublicKey); ok {
		return k.Equal(q.Key)
	}
	return bytes.Equal(p.Point, q.Point)
}

// KDFParams are the hash and the cipher in an OpenPGP ECDH key (RFC 6637
// section 9). A fingerprint covers them. The zero value means gpg's choice for
// the curve.
type KDFParams struct{ Hash, Cipher byte }

// Body returns the body of an OpenPGP version 4 public key packet for this
// key (RFC 4880 section 5.5.2, RFC 6637 section 9), nil if it cannot be
// written.
func (p *PublicKey) Body(created time.Time, kdf KDFParams) []byte {
	b := binary.BigEndian.AppendUint32([]byte{4}, uint32(created.Unix()))
	b = append(b, p.Algorithm.ID)
	if k, ok := p.Key.(*rsa.PublicKey); ok {
		b = appendMPI(b, k.N.Bytes())
		return appendMPI(b, big.NewInt(int64(k.E)).Bytes())
	}
	oid := p.Algorithm.Curve.OID()
	if oid == nil {
		return nil
	}
	b = append(append(b, byte(len(oid))), oid...)
	pt := p.Point
	switch p.Algorithm.Curve {
	case Ed25519, X25519, Ed448, X448:
		pt = append([]byte{0x40}, pt...)
	}
	b = appendMPI(b, pt)
	if p.Algorithm.ID == AlgoECDH {
		if kdf == (KDFParams{}) {
			d := p.Algorithm.Curve.info().kdf
			kdf = KDFParams{d[0], d[1]}
		}
		b = append(b, 3, 1, kdf.Hash, kdf.Cipher)
	}
	return b
}

func appendMPI(dst, v []byte) []byte {
	v = bytes.TrimLeft(v, "\x00")
	n := 0
	if len(v) > 0 {
		n = 8*(len(v)-1) + bits.Len8(v[0])
	}
	return append(append(dst, byte(n>>8), byte(n)), v...)
}

// FingerprintAt computes the OpenPGP version 4 fingerprint of the key with
// this creation time (seconds count) and these ECDH parameters. It is zero if
// there is no such key format.
func (p *PublicKey) FingerprintAt(created time.Time, kdf KDFParams) (f Fingerprint) {
	body := p.Body(created, kdf)
	if body == nil {
		return f
	}
	h := sha1.New()
	h.Write([]byte{0x99, byte(len(body) >> 8), byte(len(body))})
	h.Write(body)
	copy(f[:], h.Sum(nil))
	return f
}

// Params finds the ECDH parameters with which the key's stored fingerprint
// comes out, gpg's choice first. ok is false if none fits, which means that
// the fingerprint belongs to another key or another format. For other kinds of
// keys it tells whether the fingerprint fits.
func (p *PublicKey) Params() (kdf KDFParams, ok bool) {
	if p.Fingerprint.IsZero() {
		return kdf, false
	}
	if p.FingerprintAt(p.Created, KDFParams{}) == p.Fingerprint {
		d := p.Algorithm.Curve.info().kdf
		return KDFParams{d[0], d[1]}, true
	}
	if p.Algorithm.ID != AlgoECDH {
		return kdf, false
	}
	for h := byte(8); h <= 10; h++ {
		for c := byte(7); c <= 9; c++ {
			if p.FingerprintAt(p.Created, KDFParams{h, c}) == p.Fingerprint {
				return KDFParams{h, c}, true
			}
		}
	}
	return kdf, false
}

// PublicKey reads the public key in a slot. An empty slot gives [ErrNoKey], a
// key of another kind than the attributes say [ErrMismatch].
func (c *Card) PublicKey(ctx context.Context, slot Slot) (*PublicKey, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	return c.s.publicKey(ctx, slot)
}

func (s *session) publicKey(ctx context.Context, slot Slot) (*PublicKey, error) {
	if slot > SlotAuth {
		return nil, fmt.Errorf("keycard: public key of the %v slot: %w", slot, ErrUnsupported)
	}
	b, err := s.generate(ctx, slot, 0x81, "read the public key")
	if err != nil {
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrConditions) {
			return nil, fmt.Errorf("keycard: %v: %w", slot, errors.Join(ErrNoKey, err))
		}
		return nil, err
	}
	k := s.info.Keys[slot]
	p, err := ParsePublicKey(slot, k.Algorithm, b)
	if errors.Is(err, ErrMismatch) && s.infoAt != s.commands-1 {
		// Perhaps another program put a new key there meanwhile.
		if err := s.refresh(ctx); err != nil {
			return nil, err
		}
		k = s.info.Keys[slot]
		p, err = ParsePublicKey(slot, k.Algorithm, b)
	}
	if err != nil {
		return nil, err
	}
	p.Created, p.Fingerprint = k.Created, k.Fingerprint
	return p, nil
}

// generate sends GENERATE ASYMMETRIC KEY PAIR: p1 80 makes a key, 81 reads.
func (s *session) generate(ctx context.Context, slot Slot, p1 byte, op string) ([]byte, error) {
	c := Command{INS: insGenerate, P1: p1, Data: []byte{slot.crt(), 0}, Le: 256}
	if a := s.info.Keys[slot].Algorithm; a.ID == AlgoRSA || a.ID == 0 {
		c.Le = s.le()
	}
	b, sw, err := s.send(ctx, c)
	if err != nil {
		return nil, err
	}
	return b, status(op, insGenerate, sw)
}

// Problem is one inconsistency that [Card.Check] found.
type Problem struct {
	Slot Slot
	Err  error // wraps ErrMismatch or ErrNoKey, or tells why the key cannot be read
}

func (p Problem) Error() string { return p.Err.Error() }

// Check reads the public keys of all slots that seem to hold one and compares
// them with the attributes and the stored fingerprints. A failed import can
// leave a slot whose attributes say one thing and whose key is another; such a
// card locks some programs out. [Card.SetAlgorithm] or a new key puts it right,
// as does [Reset]. One command per slot; the error is only about the
// conversation with the card.
func (c *Card) Check(ctx context.Context) ([]Problem, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s := c.s
	var out []Problem
	for slot := SlotSign; slot <= SlotAuth; slot++ {
		k := s.info.Keys[slot]
		add := func(err error) { out = append(out, Problem{slot, err}) }
		if k.Algorithm.ID == 0 || k.Algorithm.ID != AlgoRSA && k.Algorithm.Curve == CurveNone {
			v, _ := s.info.Find(slot.object(doAlgorithm))
			add(fmt.Errorf("keycard: %v slot: attributes %x name no known algorithm: %w", slot, v, ErrMismatch))
			continue
		}
		if k.Origin == OriginNone {
			if !k.Fingerprint.IsZero() {
				add(fmt.Errorf("keycard: %v slot: a fingerprint but no key: %w", slot, ErrNoKey))
			}
			continue
		}
		p, err := s.publicKey(ctx, slot)
		var se *StatusError
		switch {
		case errors.Is(err, ErrNoKey):
			if !k.Fingerprint.IsZero() {
				add(fmt.Errorf("keycard: %v slot: a fingerprint but no key: %w", slot, ErrNoKey))
			}
		case errors.Is(err, ErrMismatch), errors.Is(err, ErrMalformed), errors.As(err, &se):
			add(err)
		case err != nil:
			return out, err
		case k.Fingerprint.IsZero():
			add(fmt.Errorf("keycard: %v slot: a key without fingerprint: %w", slot, ErrMismatch))
		default:
			if _, ok := p.Params(); !ok {
				add(fmt.Errorf("keycard: %v slot: fingerprint %v is not that of the key and its time: %w", slot, k.Fingerprint, ErrMismatch))
			}
		}
	}
	return out, nil
}
