package keycard

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// ChangeError reports that putting a key into a slot, or changing its
// attributes, did not come to its end, and in what state that left the slot.
// The card stays usable: [Card.Check] tells what does not fit together.
type ChangeError struct {
	Slot Slot
	// Stage that failed: "attributes", "key", "fingerprint" or "time".
	Stage string
	// Was is the algorithm before, Now the one that the slot has as far as
	// is known.
	Was, Now Algorithm
	// Restored: the attributes had been changed and were put back. A card
	// that drops a key when attributes change has lost the old key.
	Restored bool
	Err      error // the cause
}

func (e *ChangeError) Error() string {
	s := fmt.Sprintf("keycard: %v slot: %s not written", e.Slot, e.Stage)
	switch {
	case e.Stage == "fingerprint" || e.Stage == "time":
		s += ", the new key is in place"
	case e.Restored:
		s += ", attributes put back to " + e.Was.String()
	case !e.Was.Same(e.Now):
		s += fmt.Sprintf(", attributes left at %v (was %v)", e.Now, e.Was)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ChangeError) Unwrap() error { return e.Err }

// Algorithms asks the card which algorithms each slot may have. Cards without
// this object, older than version 3.4, give [ErrNotFound] or [ErrUnsupported].
func (c *Card) Algorithms(ctx context.Context) (map[Slot][]Algorithm, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	b, err := c.s.get(ctx, doAlgorithms, "read the algorithm information")
	if err != nil {
		return nil, err
	}
	return ParseAlgorithmInformation(b)
}

// SetAlgorithm writes a slot's algorithm attributes. Many cards drop the key
// in the slot. It needs the Admin PIN. It does nothing if the slot has the
// algorithm already. RSA keeps the card's own exponent length and import
// format.
func (c *Card) SetAlgorithm(ctx context.Context, slot Slot, a Algorithm) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	if slot > SlotAttest {
		return fmt.Errorf("keycard: attributes of the %v slot: %w", slot, ErrUnsupported)
	}
	_, err = c.s.setAlgorithm(ctx, slot, a.For(slot))
	return err
}

// setAlgorithm reports whether it wrote anything.
func (s *session) setAlgorithm(ctx context.Context, slot Slot, a Algorithm) (bool, error) {
	was := s.info.Keys[slot].Algorithm
	if was.Same(a) {
		return false, nil
	}
	if a.ID == 0 || !a.plausible(slot) {
		return false, fmt.Errorf("keycard: %v in the %v slot: %w", a, slot, ErrUnsupported)
	}
	if !s.info.Capabilities.ChangeAlgorithm {
		return false, fmt.Errorf("keycard: the card cannot change the %v slot from %v to %v: %w", slot, was, a, ErrUnsupported)
	}
	list := []Algorithm{a}
	if a.ID == AlgoRSA && a.ExponentBits == 0 {
		list = s.rsaVariants(ctx, slot, a)
	}
	var err error
	for _, a := range list {
		err = s.admin(ctx, func() error {
			return s.put(ctx, slot.object(doAlgorithm), a.Attributes(), "change the key attributes")
		})
		if err == nil || !errors.Is(err, ErrData) && !errors.Is(err, ErrConditions) {
			break
		}
	}
	if err != nil {
		return false, &ChangeError{Slot: slot, Stage: "attributes", Was: was, Now: was, Err: err}
	}
	// Read back: cards have stored attributes of curves they do not have.
	if err := s.refresh(ctx); err != nil {
		return true, err
	}
	return true, nil
}

// rsaVariants lists in which form to ask for RSA: as the slot has it now, as
// the card lists it, as another slot has it, then with exponents of 17 and of
// 32 bits.
func (s *session) rsaVariants(ctx context.Context, slot Slot, a Algorithm) []Algorithm {
	var out []Algorithm
	add := func(e int, format byte) {
		v := a
		v.ExponentBits, v.Format = e, format
		if e > 0 && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	if k := s.info.Keys[slot].Algorithm; k.ID == AlgoRSA {
		add(k.ExponentBits, k.Format)
		return out
	}
	if b, err := s.optional(ctx, doAlgorithms); err == nil && b != nil {
		if m, err := ParseAlgorithmInformation(b); err == nil {
			for _, k := range m[slot] {
				if k.ID == AlgoRSA && k.Bits == a.Bits {
					add(k.ExponentBits, k.Format)
				}
			}
		}
	}
	for _, k := range s.info.Keys[:SlotAttest] {
		if k.Algorithm.ID == AlgoRSA {
			add(k.Algorithm.ExponentBits, k.Algorithm.Format)
		}
	}
	add(17, 0)
	add(32, 0)
	return out
}

// maxTime is the last second that a key's creation time can be, in 2106.
const maxTime = 1<<32 - 1

// KeyMeta is what is written beside a key.
type KeyMeta struct {
	// Created is the key's creation time, in whole seconds. It is part of the
	// fingerprint, so an imported key must bring its own; for a generated
	// key the zero time means now.
	Created time.Time
	// KDF parameters of an ECDH key; zero means gpg's choice.
	KDF KDFParams
	// Fingerprint to write instead of the computed version 4 one.
	Fingerprint Fingerprint
	// NoWrite leaves fingerprint and time on the card as they are.
	NoWrite bool
}

// Generate makes a new key in the slot, on the card, replacing what is there,
// and writes fingerprint and time. It sets the attributes first if needed. It
// needs the Admin PIN. RSA keys can take minutes: give ctx time. A touch
// policy that the card dropped with the old key is set again. A creation time
// that a card cannot store gives [ErrData].
//
// If something fails on the way the error is a [*ChangeError].
func (c *Card) Generate(ctx context.Context, slot Slot, a Algorithm, meta KeyMeta) (*PublicKey, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s := c.s
	if slot > SlotAuth {
		return nil, fmt.Errorf("keycard: generate in the %v slot: %w", slot, ErrUnsupported)
	}
	if meta.Created.IsZero() {
		meta.Created = time.Now()
	}
	if sec := meta.Created.Unix(); !meta.NoWrite && (sec <= 0 || sec > maxTime) {
		return nil, fmt.Errorf("keycard: generate: creation time %v: %w", meta.Created, ErrData)
	}
	var p *PublicKey
	err = s.replace(ctx, slot, a.For(slot), meta, func(now Algorithm) (*PublicKey, error) {
		b, err := s.generate(ctx, slot, 0x80, "generate a key")
		if err != nil {
			return nil, err
		}
		p, err = ParsePublicKey(slot, now, b)
		return p, err
	})
	if err != nil {
		return nil, err
	}
	p.Created, p.Fingerprint = s.info.Keys[slot].Created, s.info.Keys[slot].Fingerprint
	return p, nil
}

// replace is the common course of generation and import.
func (s *session) replace(ctx context.Context, slot Slot, a Algorithm, meta KeyMeta, do func(now Algorithm) (*PublicKey, error)) error {
	was, before := s.info.Keys[slot], s.info.raw
	if _, err := s.need(ctx, PINAdmin, slot, nil); err != nil {
		return err
	}
	changed, err := s.setAlgorithm(ctx, slot, a)
	fail := func(stage string, cause error) error {
		e := &ChangeError{Slot: slot, Stage: stage, Was: was.Algorithm, Now: was.Algorithm, Err: cause}
		if changed {
			e.Now = a
			if stage == "key" { // put the old attributes back
				old, ok := FindTLV(before, slot.object(doAlgorithm))
				if ok && ctx.Err() == nil && s.admin(ctx, func() error {
					return s.put(ctx, slot.object(doAlgorithm), old, "put the key attributes back")
				}) == nil {
					e.Now, e.Restored = was.Algorithm, true
					s.refresh(ctx)
				}
			}
		}
		return e
	}
	if changed && err != nil {
		return fail("key", err)
	}
	if err != nil {
		return err
	}
	now := s.info.Keys[slot].Algorithm
	if changed && !now.Same(a) {
		return fail("key", fmt.Errorf("keycard: the card took the attributes of %v but shows %v: %w", a, now, ErrMismatch))
	}
	var p *PublicKey
	if err := s.admin(ctx, func() error { p, err = do(now); return err }); err != nil {
		return fail("key", err)
	}
	if !meta.NoWrite {
		f := meta.Fingerprint
		if f.IsZero() {
			f = p.FingerprintAt(meta.Created, meta.KDF)
		}
		if err := s.admin(ctx, func() error {
			return s.put(ctx, slot.object(doFingerprint), f[:], "write the fingerprint")
		}); err != nil {
			return fail("fingerprint", err)
		}
		t := binary.BigEndian.AppendUint32(nil, uint32(meta.Created.Unix()))
		if err := s.admin(ctx, func() error { return s.put(ctx, slot.object(doCreated), t, "write the creation time") }); err != nil {
			return fail("time", err)
		}
	}
	if err := s.refresh(ctx); err != nil {
		return err
	}
	if k := s.info.Keys[slot]; was.UIF != UIFAbsent && was.UIF != UIFOff && k.UIF == UIFOff {
		if err := s.setUIF(ctx, slot, was.UIF); err != nil {
			return err
		}
		return s.refresh(ctx)
	}
	return nil
}

// Import puts a private key into the slot, replacing what is there, sets the
// attributes first if needed, and writes fingerprint and time. It needs the
// Admin PIN. key is an *rsa.PrivateKey with two primes, *ecdsa.PrivateKey,
// ed25519.PrivateKey or *ecdh.PrivateKey; in the decryption slot an ECDSA key
// is taken as ECDH key. The key is not cleared; copies made here are. Without
// meta.Created the error wraps [ErrData], unless meta.NoWrite is set.
//
// If something fails on the way the error is a [*ChangeError]. Attributes
// that had been changed are put back when the key was refused.
func (c *Card) Import(ctx context.Context, slot Slot, key crypto.PrivateKey, meta KeyMeta) (*PublicKey, error) {
	if slot > SlotAuth {
		return nil, fmt.Errorf("keycard: import into the %v slot: %w", slot, ErrUnsupported)
	}
	if sec := meta.Created.Unix(); !meta.NoWrite && (sec <= 0 || sec > maxTime) {
		return nil, fmt.Errorf("keycard: import: creation time %v: %w", meta.Created, ErrData)
	}
	if k, ok := key.(*ed25519.PrivateKey); ok && k != nil {
		key = *k
	}
	pk, ok := key.(interface{ Public() crypto.PublicKey })
	if !ok {
		return nil, fmt.Errorf("keycard: import of %T: %w", key, ErrUnsupported)
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if len(k.Primes) != 2 || k.N.BitLen()%16 != 0 {
			return nil, fmt.Errorf("keycard: RSA key of %d primes and %d bits: %w", len(k.Primes), k.N.BitLen(), ErrUnsupported)
		}
		if err := k.Validate(); err != nil {
			return nil, fmt.Errorf("keycard: RSA key: %w (%v)", ErrData, err)
		}
	case ed25519.PrivateKey:
		if len(k) != ed25519.PrivateKeySize {
			return nil, fmt.Errorf("keycard: Ed25519 key of %d octets: %w", len(k), ErrData)
		}
	}
	p, err := NewPublicKey(slot, pk.Public())
	if err != nil {
		return nil, err
	}
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	s := c.s
	if !s.info.Capabilities.KeyImport {
		return nil, fmt.Errorf("keycard: the card imports no keys: %w", ErrUnsupported)
	}
	err = s.replace(ctx, slot, p.Algorithm, meta, func(now Algorithm) (*PublicKey, error) {
		return p, s.importKey(ctx, slot, now, key, p)
	})
	if err != nil {
		return nil, err
	}
	p.Algorithm = s.info.Keys[slot].Algorithm
	p.Created, p.Fingerprint = s.info.Keys[slot].Created, s.info.Keys[slot].Fingerprint
	return p, nil
}

func (s *session) importKey(ctx context.Context, slot Slot, now Algorithm, key crypto.PrivateKey, p *PublicKey) error {
	t, err := importTemplate(slot, now, key, p)
	if err != nil {
		return err
	}
	defer clear(t)
	_, sw, err := s.send(ctx, Command{INS: insPutDataOdd, P1: 0x3f, P2: 0xff, Data: t})
	if err == nil && sw == swData && now.ID != AlgoRSA && !now.WithPublic {
		// Some cards want the public key without saying so.
		now.WithPublic = true
		clear(t)
		if t, err = importTemplate(slot, now, key, p); err != nil {
			return err
		}
		_, sw, err = s.send(ctx, Command{INS: insPutDataOdd, P1: 0x3f, P2: 0xff, Data: t})
	}
	if err != nil {
		return err
	}
	return status("import the key", insPutDataOdd, sw)
}

// importTemplate builds the extended header list of a key import
// (specification section 4.4.3.12).
func importTemplate(slot Slot, a Algorithm, key crypto.PrivateKey, pub *PublicKey) ([]byte, error) {
	var lengths, data []byte
	defer func() { clear(data) }()
	data = make([]byte, 0, 2048) // never grows: no copies stay behind
	add := func(tag byte, v []byte) {
		lengths = appendLength(append(lengths, tag), len(v))
		data = append(data, v...)
	}
	number := func(tag byte, n *big.Int, size int) error {
		if n.BitLen() > 8*size {
			return fmt.Errorf("keycard: key part %02X: %w", tag, ErrTooLong)
		}
		b := n.FillBytes(make([]byte, size))
		add(tag, b)
		clear(b)
		return nil
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if k.N.BitLen() > 8192 {
			return nil, fmt.Errorf("keycard: RSA key of %d bits: %w", k.N.BitLen(), ErrTooLong)
		}
		// Computed here, not by Precompute, which would write to the
		// caller's key.
		p, q := k.Primes[0], k.Primes[1]
		one := big.NewInt(1)
		dp := new(big.Int).Mod(k.D, new(big.Int).Sub(p, one))
		dq := new(big.Int).Mod(k.D, new(big.Int).Sub(q, one))
		qinv := new(big.Int).ModInverse(q, p)
		defer func() { clear(dp.Bits()); clear(dq.Bits()); clear(qinv.Bits()) }()
		half := a.Bits / 16
		parts := []struct {
			tag  byte
			n    *big.Int
			size int
			use  bool
		}{
			{0x91, big.NewInt(int64(k.E)), (a.ExponentBits + 7) / 8, true},
			{0x92, p, half, true},
			{0x93, q, half, true},
			{0x94, qinv, half, a.Format >= 2},
			{0x95, dp, half, a.Format >= 2},
			{0x96, dq, half, a.Format >= 2},
			{0x97, k.N, a.Bits / 8, a.Format == 1 || a.Format == 3},
		}
		for _, x := range parts {
			if !x.use {
				continue
			}
			if err := number(x.tag, x.n, x.size); err != nil {
				return nil, err
			}
		}
	case *ecdsa.PrivateKey:
		b, err := k.Bytes()
		if err != nil {
			return nil, fmt.Errorf("keycard: import: %w", err)
		}
		add(0x92, b)
		clear(b)
	case *ecdh.PrivateKey:
		b := k.Bytes()
		if k.Curve() == ecdh.X25519() {
			// OpenPGP has the scalar with the highest octet first, and with
			// the bits set that the function forces anyway.
			slices.Reverse(b)
			b[0] = b[0]&0x7f | 0x40
			b[31] &= 0xf8
		}
		add(0x92, b)
		clear(b)
	case ed25519.PrivateKey:
		add(0x92, k[:32])
	default:
		return nil, fmt.Errorf("keycard: import of %T: %w", key, ErrUnsupported)
	}
	if a.WithPublic && a.ID != AlgoRSA {
		pt := pub.Point
		if a.Curve == Ed25519 || a.Curve == X25519 {
			pt = append([]byte{0x40}, pt...)
		}
		add(0x99, pt)
	}
	n := 2 + len(appendTagLength(nil, 0x7f48, len(lengths))) + len(lengths) + len(appendTagLength(nil, 0x5f48, len(data))) + len(data)
	out := make([]byte, 0, n+4)
	out = appendTagLength(out, 0x4d, n)
	out = append(out, slot.crt(), 0)
	out = append(appendTagLength(out, 0x7f48, len(lengths)), lengths...)
	return append(appendTagLength(out, 0x5f48, len(data)), data...), nil
}

// ImportCopies imports the same key into the same slot of several cards, as
// backups of each other, then reads the public keys back and compares them
// with the key. It stops at the first failure; the error says at which card,
// counted from 0.
func ImportCopies(ctx context.Context, cards []*Card, slot Slot, key crypto.PrivateKey, meta KeyMeta) (*PublicKey, error) {
	var want *PublicKey
	for i, c := range cards {
		p, err := c.Import(ctx, slot, key, meta)
		if err != nil {
			return nil, fmt.Errorf("keycard: card %d (%s): %w", i, c.Info().Ident(), err)
		}
		want = p
	}
	return want, compareCopies(ctx, cards, slot, want)
}

// CompareCopies checks that all cards hold the same public key, with the same
// fingerprint, in the slot. The error names the first card that differs.
func CompareCopies(ctx context.Context, cards []*Card, slot Slot) error {
	return compareCopies(ctx, cards, slot, nil)
}

func compareCopies(ctx context.Context, cards []*Card, slot Slot, want *PublicKey) error {
	for i, c := range cards {
		p, err := c.PublicKey(ctx, slot)
		if err != nil {
			return fmt.Errorf("keycard: card %d (%s): %w", i, c.Info().Ident(), err)
		}
		if want == nil {
			want = p
		}
		if !p.Equal(want) || p.Fingerprint != want.Fingerprint || !p.Created.Equal(want.Created) {
			return fmt.Errorf("keycard: card %d (%s), %v slot: %w", i, c.Info().Ident(), slot, ErrMismatch)
		}
	}
	return nil
}

// SetFingerprint writes the fingerprint and creation time of a slot, for
// keys that were put there by other means. It needs the Admin PIN.
func (c *Card) SetFingerprint(ctx context.Context, slot Slot, f Fingerprint, created time.Time) error {
	if slot > SlotAttest {
		return fmt.Errorf("keycard: fingerprint of the %v slot: %w", slot, ErrUnsupported)
	}
	if sec := created.Unix(); !created.IsZero() && (sec < 0 || sec > maxTime) {
		return fmt.Errorf("keycard: creation time %v: %w", created, ErrData)
	}
	return c.Do(ctx, func(c *Card) error {
		if err := c.write(ctx, slot.object(doFingerprint), f[:], "write the fingerprint"); err != nil {
			return err
		}
		var sec uint32
		if !created.IsZero() {
			sec = uint32(created.Unix())
		}
		if err := c.write(ctx, slot.object(doCreated), binary.BigEndian.AppendUint32(nil, sec), "write the creation time"); err != nil {
			return err
		}
		return c.s.refresh(ctx)
	})
}

// SetCAFingerprint writes one of the three CA fingerprints. It needs the
// Admin PIN.
func (c *Card) SetCAFingerprint(ctx context.Context, slot Slot, f Fingerprint) error {
	if slot > SlotAuth {
		return fmt.Errorf("keycard: CA fingerprint of the %v slot: %w", slot, ErrUnsupported)
	}
	return c.Do(ctx, func(c *Card) error {
		if err := c.write(ctx, 0xca+uint16(slot), f[:], "write the CA fingerprint"); err != nil {
			return err
		}
		return c.s.refresh(ctx)
	})
}

// SetUIF sets a slot's touch policy. Set it after the key is in place: cards
// drop it with a new key. It needs the Admin PIN. A policy that is fixed
// cannot be changed: [ErrTouch]; a card without the object gives
// [ErrUnsupported].
func (c *Card) SetUIF(ctx context.Context, slot Slot, u UIF) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	s := c.s
	if slot > SlotAttest {
		return fmt.Errorf("keycard: touch policy of the %v slot: %w", slot, ErrUnsupported)
	}
	was := s.info.Keys[slot].UIF
	if was == UIFAbsent || u > UIFCachedFixed {
		return fmt.Errorf("keycard: touch policy of the %v slot: %w", slot, ErrUnsupported)
	}
	if (was == UIFFixed || was == UIFCachedFixed) && was != u {
		return fmt.Errorf("keycard: touch policy of the %v slot is fixed: %w", slot, ErrTouch)
	}
	if err := s.setUIF(ctx, slot, u); err != nil {
		return err
	}
	return s.refresh(ctx)
}

func (s *session) setUIF(ctx context.Context, slot Slot, u UIF) error {
	v := []byte{byte(u), 0x20}
	if old, ok := s.info.Find(slot.object(doUIF)); ok && len(old) >= 2 && old[1] != 0 {
		v[1] = old[1]
	}
	err := s.admin(ctx, func() error { return s.put(ctx, slot.object(doUIF), v, "set the touch policy") })
	var se *StatusError
	if errors.As(err, &se) && (se.SW == 0x6600 || se.SW == swConditions) {
		se.err = ErrTouch
	}
	return err
}
