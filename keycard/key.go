package keycard

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"math/big"
	"sync/atomic"
	"time"
)

// Key uses a private key on a card. It is a [crypto.Signer] in the signature
// and authentication slots and for RSA a [crypto.Decrypter] in the decryption
// slot; [Key.ECDH] is the elliptic curve counterpart.
//
// Each operation is two commands, the PIN and then the key, or one while the PIN
// is verified and the card allows it. Methods may be called from several
// goroutines; they take turns on the card.
type Key struct {
	card *Card
	pub  *PublicKey
	auth PINFunc
	ctx  context.Context
}

// Key reads the public key in a slot, one command, and returns the private
// key's handle. auth is asked for the PIN when it is needed; nil means the
// function of [WithPINs] or, without that, that the caller verifies.
func (c *Card) Key(ctx context.Context, slot Slot, auth PINFunc) (*Key, error) {
	p, err := c.PublicKey(ctx, slot)
	if err != nil {
		return nil, err
	}
	return &Key{card: c, pub: p, auth: auth, ctx: context.Background()}, nil
}

// KeyFor returns the handle of a private key whose public key is known
// already. No command is sent. If the slot's attributes say another algorithm
// the error wraps [ErrMismatch]; whether it is the same key shows only when
// results are checked.
func (c *Card) KeyFor(slot Slot, pub crypto.PublicKey, auth PINFunc) (*Key, error) {
	p, err := NewPublicKey(slot, pub)
	if err != nil {
		return nil, err
	}
	if slot > SlotAuth {
		return nil, fmt.Errorf("keycard: %v slot: %w", slot, ErrUnsupported)
	}
	k := c.Info().Keys[slot]
	if !k.Algorithm.Same(p.Algorithm) {
		return nil, fmt.Errorf("keycard: the %v slot holds %v, not %v: %w", slot, k.Algorithm, p.Algorithm, ErrMismatch)
	}
	p.Algorithm, p.Created, p.Fingerprint = k.Algorithm, k.Created, k.Fingerprint
	return &Key{card: c, pub: p, auth: auth, ctx: context.Background()}, nil
}

// WithContext returns a copy of k whose Sign, Decrypt and ECDH end with ctx.
func (k *Key) WithContext(ctx context.Context) *Key {
	c := *k
	c.ctx = ctx
	return &c
}

// On returns a copy of k that uses this handle of the same card, for use
// inside [Card.Do].
func (k *Key) On(c *Card) *Key {
	d := *k
	d.card = c
	return &d
}

// PublicKey describes the key as the card stores it.
func (k *Key) PublicKey() *PublicKey { return k.pub }

// Slot returns the key's slot.
func (k *Key) Slot() Slot { return k.pub.Slot }

// Card returns the card handle.
func (k *Key) Card() *Card { return k.card }

// Public returns the *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey or
// *ecdh.PublicKey; nil for a curve that the standard library does not have.
func (k *Key) Public() crypto.PublicKey { return k.pub.Key }

var (
	_ crypto.Signer    = (*Key)(nil)
	_ crypto.Decrypter = (*Key)(nil)
)

// Sign signs as the standard library's private keys do: RSA gives a PKCS #1
// version 1.5 signature of the digest (with opts.HashFunc() zero, of the octets
// as they are), ECDSA an ASN.1 signature, Ed25519 the 64 octets for the whole
// message, for which opts.HashFunc() must be zero. The first argument is not
// used and may be nil; opts may be nil too, which means a hash of zero. The card
// pads, so RSA-PSS gives [ErrUnsupported]. A digest that is not as long as its
// hash gives [ErrData].
func (k *Key) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	var h crypto.Hash
	if opts != nil {
		h = opts.HashFunc()
	}
	if h != 0 && len(digest) != h.Size() {
		return nil, fmt.Errorf("keycard: digest of %d octets for %v: %w", len(digest), h, ErrData)
	}
	switch k.pub.Algorithm.ID {
	case AlgoRSA:
		if _, pss := opts.(*rsa.PSSOptions); pss {
			return nil, fmt.Errorf("keycard: RSA-PSS: %w", ErrUnsupported)
		}
		if h != 0 {
			var err error
			if digest, err = digestInfo(h, digest); err != nil {
				return nil, err
			}
		}
		return k.SignRaw(k.ctx, digest)
	case AlgoECDSA:
		raw, err := k.SignRaw(k.ctx, digest)
		if err != nil {
			return nil, err
		}
		return derSignature(raw), nil
	case AlgoEdDSA:
		if h != 0 {
			return nil, fmt.Errorf("keycard: Ed25519 over a digest of %v: %w", h, ErrUnsupported)
		}
		return k.SignRaw(k.ctx, digest)
	}
	return nil, fmt.Errorf("keycard: signature with %v: %w", k.pub.Algorithm, ErrUnsupported)
}

// SignRaw gives the card exactly this input and returns exactly its answer:
// for RSA a DigestInfo in and a signature of the modulus' length out; for
// ECDSA a digest in (cut to the field's length) and r and s of fixed width
// out; for EdDSA the message in and 64 octets out. RSA input may take two fifths
// of the modulus' length, else it is [ErrTooLong]. The signature slot signs with
// PSO: COMPUTE DIGITAL SIGNATURE (section 7.2.10), the authentication slot with
// INTERNAL AUTHENTICATE (7.2.13); the decryption slot gives [ErrUnsupported].
func (k *Key) SignRaw(ctx context.Context, input []byte) ([]byte, error) {
	c := Command{INS: insPSO, P1: 0x9e, P2: 0x9a, Data: input, Le: 256}
	op := "sign"
	switch k.pub.Slot {
	case SlotAuth:
		c.INS, c.P1, c.P2 = insAuth, 0, 0
		op = "authenticate"
	case SlotSign:
	default:
		return nil, fmt.Errorf("keycard: signature with the %v slot: %w", k.pub.Slot, ErrUnsupported)
	}
	if len(input) == 0 {
		return nil, fmt.Errorf("keycard: %s: nothing to sign: %w", op, ErrData)
	}
	size := 0
	switch a := k.pub.Algorithm; a.ID {
	case AlgoRSA:
		size = (a.Bits + 7) / 8
		if len(input) > size*2/5 {
			return nil, fmt.Errorf("keycard: %s: %d octets for a modulus of %d: %w", op, len(input), size, ErrTooLong)
		}
	case AlgoECDSA:
		size = 2 * a.Curve.Size()
		c.Data = input[:min(len(input), a.Curve.Size())]
	case AlgoEdDSA:
		size = 2 * a.Curve.Size()
	}
	b, err := k.use(ctx, op, c, size)
	if err != nil {
		return nil, err
	}
	if k.pub.Algorithm.ID == AlgoECDSA && len(b) != size {
		b = fixedWidth(b, size)
	}
	if len(b) != size {
		return nil, fmt.Errorf("keycard: %s: %d octets instead of %d: %w", op, len(b), size, ErrMalformed)
	}
	return b, nil
}

// fixedWidth brings r and s of another width, with zeros in front or without
// them, to half of size each. SmartPGP was seen to answer with 33 octets each
// on P-256. It returns b when that cannot be.
func fixedWidth(b []byte, size int) []byte {
	half, want := len(b)/2, size/2
	if len(b)%2 != 0 || half == 0 {
		return b
	}
	out := make([]byte, size)
	for i, v := range [...][]byte{b[:half], b[half:]} {
		for len(v) > want {
			if v[0] != 0 {
				return b
			}
			v = v[1:]
		}
		copy(out[(i+1)*want-len(v):], v)
	}
	return out
}

// Decrypt decrypts an RSA cryptogram with PKCS #1 version 1.5 padding, which
// the card removes. opts is nil or *rsa.PKCS1v15DecryptOptions; with a
// SessionKeyLen a result of another length is replaced by random octets, as in
// the standard library. OAEP gives [ErrUnsupported]. The result is the
// caller's to clear.
func (k *Key) Decrypt(_ io.Reader, msg []byte, opts crypto.DecrypterOpts) ([]byte, error) {
	keyLen := 0
	switch o := opts.(type) {
	case nil:
	case *rsa.PKCS1v15DecryptOptions:
		keyLen = o.SessionKeyLen
	default:
		return nil, fmt.Errorf("keycard: decryption with %T: %w", opts, ErrUnsupported)
	}
	b, err := k.DecryptRaw(k.ctx, msg)
	if keyLen > 0 {
		var se *StatusError
		switch {
		case errors.As(err, &se) && se.INS == insPSO && errors.Is(err, ErrData):
			b = nil // the card found bad padding
		case err != nil:
			return nil, err
		}
		if len(b) != keyLen {
			clear(b)
			b = make([]byte, keyLen)
			rand.Read(b)
		}
		return b, nil
	}
	return b, err
}

// DecryptRaw sends an RSA cryptogram, at most as long as the modulus, and
// returns what PSO: DECIPHER answers: the message without padding.
func (k *Key) DecryptRaw(ctx context.Context, cryptogram []byte) ([]byte, error) {
	if k.pub.Slot != SlotDecrypt || k.pub.Algorithm.ID != AlgoRSA {
		return nil, fmt.Errorf("keycard: decryption with %v in the %v slot: %w", k.pub.Algorithm, k.pub.Slot, ErrUnsupported)
	}
	size := (k.pub.Algorithm.Bits + 7) / 8
	if len(cryptogram) > size || len(cryptogram) == 0 {
		return nil, fmt.Errorf("keycard: cryptogram of %d octets for a modulus of %d: %w", len(cryptogram), size, ErrData)
	}
	data := make([]byte, 1+size) // padding indicator 00, then full length
	copy(data[1+size-len(cryptogram):], cryptogram)
	return k.use(ctx, "decrypt", Command{INS: insPSO, P1: 0x80, P2: 0x86, Data: data, Le: 256}, size)
}

// ECDH computes the shared secret with a peer's public key on the same
// curve, in the decryption slot: the x coordinate, or for X25519 the 32 octets
// of RFC 7748. The result is the caller's to clear.
func (k *Key) ECDH(peer *ecdh.PublicKey) ([]byte, error) {
	own, ok := k.pub.Key.(*ecdh.PublicKey)
	if !ok || own.Curve() != peer.Curve() {
		return nil, fmt.Errorf("keycard: ECDH between %v and %v: %w", k.pub.Algorithm, peer.Curve(), ErrMismatch)
	}
	return k.ECDHRaw(k.ctx, peer.Bytes())
}

// ECDHRaw is ECDH with a point as octets: 32 for X25519, 04 X Y for other
// curves, also for curves that the standard library does not have. The card
// must check that the point is on the curve.
func (k *Key) ECDHRaw(ctx context.Context, point []byte) ([]byte, error) {
	a := k.pub.Algorithm
	if k.pub.Slot != SlotDecrypt || a.ID != AlgoECDH {
		return nil, fmt.Errorf("keycard: ECDH with %v in the %v slot: %w", a, k.pub.Slot, ErrUnsupported)
	}
	size := a.Curve.Size()
	if len(point) != len(k.pub.Point) {
		return nil, fmt.Errorf("keycard: point of %d octets for %v: %w", len(point), a, ErrData)
	}
	data := AppendTLV(nil, 0xa6, AppendTLV(nil, 0x7f49, AppendTLV(nil, 0x86, point)))
	b, err := k.use(ctx, "derive", Command{INS: insPSO, P1: 0x80, P2: 0x86, Data: data, Le: 256}, size)
	if err != nil {
		return nil, err
	}
	if len(b) == 2*size+1 && b[0] == 4 { // some cards answer with the whole point
		b = b[1 : 1+size]
	}
	if len(b) > size || len(b) == 0 {
		clear(b)
		return nil, fmt.Errorf("keycard: shared secret of %d octets: %w", len(b), ErrMalformed)
	}
	if len(b) < size { // leading zeros were left out
		full := make([]byte, size)
		copy(full[size-len(b):], b)
		clear(b)
		b = full
	}
	zero := byte(0)
	for _, x := range b {
		zero |= x
	}
	if zero == 0 {
		return nil, fmt.Errorf("keycard: shared secret is zero: %w", ErrData)
	}
	return b, nil
}

// use carries out one private key operation: the PIN if needed, then the
// command.
func (k *Key) use(ctx context.Context, op string, c Command, size int) ([]byte, error) {
	release, err := k.card.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s := k.card.s
	slot, mode := k.pub.Slot, k.pub.Slot.mode()
	if size > 256 {
		c.Le = s.le()
	}
	asked, err := s.need(ctx, mode, slot, k.auth)
	if err != nil {
		return nil, err
	}
	b, sw, err := s.touched(ctx, slot, c)
	if err == nil && sw == swNotVerified {
		// What this session believed was wrong: another program, or a card
		// that forgets. Ask again, unless the user was asked just now.
		s.verified[mode] = false
		if !asked && (k.auth != nil || s.opt.pins != nil) {
			if _, err := s.need(ctx, mode, slot, k.auth); err != nil {
				return nil, err
			}
			b, sw, err = s.touched(ctx, slot, c)
		}
	}
	if err != nil {
		return nil, err
	}
	if slot == SlotSign && !s.info.PIN.Multiple {
		s.verified[PINSign] = false // good for one signature
	}
	if sw == swOK {
		return b, nil
	}
	err = status(op, c.INS, sw)
	var se *StatusError
	errors.As(err, &se)
	u := s.info.Keys[slot].UIF
	switch {
	case u != UIFOff && u != UIFAbsent && (sw == swConditions || sw == 0x6600 || sw == 0x6f00):
		se.err = ErrTouch
	case sw == swNotFound || sw == swConditions && s.info.Keys[slot].Origin <= OriginNone:
		se.err = ErrNoKey
	}
	return nil, err
}

// touched sends a command and tells the callback if the card waits for a
// touch.
func (s *session) touched(ctx context.Context, slot Slot, c Command) ([]byte, uint16, error) {
	if u := s.info.Keys[slot].UIF; s.opt.touch == nil || u == UIFOff || u == UIFAbsent {
		return s.send(ctx, c)
	}
	var state atomic.Int32 // 0 waiting for the timer, 1 callback called, 2 over
	called := make(chan struct{})
	t := time.AfterFunc(s.opt.touchDelay, func() {
		if state.CompareAndSwap(0, 1) {
			s.opt.touch(slot, true)
			close(called)
		}
	})
	b, sw, err := s.send(ctx, c)
	t.Stop()
	if !state.CompareAndSwap(0, 2) {
		<-called
		s.opt.touch(slot, false)
	}
	return b, sw, err
}

// digestInfo wraps a digest for RSA (RFC 8017 section 9.2).
func digestInfo(h crypto.Hash, digest []byte) ([]byte, error) {
	var oid string
	switch h {
	case crypto.SHA1:
		oid = "\x2b\x0e\x03\x02\x1a"
	case crypto.SHA224:
		oid = "\x60\x86\x48\x01\x65\x03\x04\x02\x04"
	case crypto.SHA256:
		oid = "\x60\x86\x48\x01\x65\x03\x04\x02\x01"
	case crypto.SHA384:
		oid = "\x60\x86\x48\x01\x65\x03\x04\x02\x02"
	case crypto.SHA512:
		oid = "\x60\x86\x48\x01\x65\x03\x04\x02\x03"
	default:
		return nil, fmt.Errorf("keycard: RSA signature of a %v digest: %w", h, ErrUnsupported)
	}
	b := []byte{0x30, byte(8 + len(oid) + len(digest)), 0x30, byte(4 + len(oid)), 6, byte(len(oid))}
	b = append(append(b, oid...), 5, 0, 4, byte(len(digest)))
	return append(b, digest...), nil
}

// derSignature turns r and s of fixed width into ASN.1.
func derSignature(raw []byte) []byte {
	half := len(raw) / 2
	var body []byte
	for _, part := range [...][]byte{raw[:half], raw[half:]} {
		b := new(big.Int).SetBytes(part).Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		body = append(append(body, 2, byte(len(b))), b...)
	}
	return append(appendLength([]byte{0x30}, len(body)), body...)
}

// Verify checks a signature that [Key.SignRaw] made over this input, in
// software, against the key's public key.
func (p *PublicKey) Verify(input, signature []byte) error {
	ok := false
	switch k := p.Key.(type) {
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(k, 0, input, signature) == nil
	case *ecdsa.PublicKey:
		if n := p.Algorithm.Curve.Size(); len(signature) == 2*n {
			ok = ecdsa.VerifyASN1(k, input, derSignature(signature))
		}
	case ed25519.PublicKey:
		ok = ed25519.Verify(k, input, signature)
	default:
		return fmt.Errorf("keycard: check a signature with %v: %w", p.Algorithm, ErrUnsupported)
	}
	if !ok {
		return fmt.Errorf("keycard: bad signature of %v: %w", p.Algorithm, ErrMismatch)
	}
	return nil
}
