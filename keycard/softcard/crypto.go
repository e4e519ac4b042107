package softcard

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"math/big"
	"slices"

	"signalbox.example/keycard"
)

// key returns a slot's private key, nil if there is none.
func (c *Card) key(i int) crypto.PrivateKey {
	if c.keys[i] == nil && len(c.st.Slots[i].Private) > 0 {
		if k, err := x509.ParsePKCS8PrivateKey(c.st.Slots[i].Private); err == nil {
			// ParsePKCS8PrivateKey gives an ecdsa key for a NIST curve.
			if e, ok := k.(*ecdsa.PrivateKey); ok && keycard.Slot(i) == keycard.SlotDecrypt {
				if d, err := e.ECDH(); err == nil {
					k = d
				}
			}
			c.keys[i] = k
		}
	}
	return c.keys[i]
}

func (c *Card) setKey(i int, k crypto.PrivateKey, origin byte) uint16 {
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		return swData
	}
	s := &c.st.Slots[i]
	clear(s.Private)
	s.Private, s.Origin = der, origin
	c.keys[i] = nil
	if s.UIF == 1 || s.UIF == 3 {
		s.UIF = 0
	}
	if i == 0 {
		c.st.Signatures = 0
	}
	c.dirty = true
	return swOK
}

// touched waits for a touch where the slot's policy wants one.
func (c *Card) touched(ctx context.Context, i int) bool {
	if c.st.Slots[i].UIF == 0 || c.cfg.Touch == nil {
		return true
	}
	return c.cfg.Touch(ctx, keycard.Slot(i))
}

func (c *Card) sign(ctx context.Context, data []byte) ([]byte, uint16) {
	if !c.verified[0] {
		return nil, swSecurity
	}
	if c.key(0) == nil {
		return nil, swNotFound
	}
	if !c.touched(ctx, 0) {
		return nil, swTouch
	}
	sig, sw := c.signWith(0, data)
	if sw == swOK {
		if c.st.Signatures < 0xffffff {
			c.st.Signatures++
		}
		c.dirty = true
		if !c.st.Multiple {
			c.verified[0] = false
		}
	}
	return sig, sw
}

func (c *Card) authenticate(ctx context.Context, data []byte) ([]byte, uint16) {
	if !c.verified[1] {
		return nil, swSecurity
	}
	if c.key(2) == nil {
		return nil, swNotFound
	}
	if !c.touched(ctx, 2) {
		return nil, swTouch
	}
	return c.signWith(2, data)
}

func (c *Card) signWith(i int, data []byte) ([]byte, uint16) {
	if len(data) == 0 {
		return nil, swLength
	}
	switch k := c.key(i).(type) {
	case *rsa.PrivateKey:
		if len(data) > k.Size()*2/5 {
			return nil, swLength
		}
		sig, err := rsa.SignPKCS1v15(nil, k, 0, data)
		if err != nil {
			return nil, swInternal
		}
		return sig, swOK
	case *ecdsa.PrivateKey:
		if size := (k.Curve.Params().BitSize + 7) / 8; len(data) > size {
			return nil, swLength
		}
		der, err := ecdsa.SignASN1(rand.Reader, k, data)
		if err != nil {
			return nil, swInternal
		}
		var rs struct{ R, S *big.Int }
		if _, err := asn1.Unmarshal(der, &rs); err != nil {
			return nil, swInternal
		}
		size := (k.Curve.Params().BitSize + 7) / 8
		out := make([]byte, 2*size)
		rs.R.FillBytes(out[:size])
		rs.S.FillBytes(out[size:])
		return out, swOK
	case ed25519.PrivateKey:
		return ed25519.Sign(k, data), swOK
	}
	return nil, swConditions
}

func (c *Card) decipher(ctx context.Context, data []byte) ([]byte, uint16) {
	if !c.verified[1] {
		return nil, swSecurity
	}
	k := c.key(1)
	if k == nil {
		return nil, swNotFound
	}
	if len(data) < 2 {
		return nil, swLength
	}
	if !c.touched(ctx, 1) {
		return nil, swTouch
	}
	switch k := k.(type) {
	case *rsa.PrivateKey:
		if data[0] != 0 || len(data) != 1+k.Size() {
			return nil, swData
		}
		out, err := rsa.DecryptPKCS1v15(nil, k, data[1:])
		if err != nil {
			return nil, swData
		}
		return out, swOK
	case *ecdh.PrivateKey:
		a6, _, err := keycard.NextTLV(data)
		if err != nil || a6.Tag != 0xa6 {
			return nil, swData
		}
		pk, _, err := keycard.NextTLV(a6.Value)
		if err != nil || pk.Tag != 0x7f49 {
			return nil, swData
		}
		pt, _, err := keycard.NextTLV(pk.Value)
		if err != nil || pt.Tag != 0x86 {
			return nil, swData
		}
		point := pt.Value
		if k.Curve() == ecdh.X25519() && len(point) == 33 && point[0] == 0x40 {
			point = point[1:]
		}
		peer, err := k.Curve().NewPublicKey(point)
		if err != nil {
			return nil, swData
		}
		out, err := k.ECDH(peer)
		if err != nil {
			return nil, swData
		}
		return out, swOK
	}
	return nil, swConditions
}

// slotOf finds the slot of a control reference template: B6, B8 or A4.
func slotOf(tag uint16) (int, bool) {
	switch tag {
	case 0xb6:
		return 0, true
	case 0xb8:
		return 1, true
	case 0xa4:
		return 2, true
	}
	return 0, false
}

func (c *Card) generate(cmd keycard.Command) ([]byte, uint16) {
	crt, rest, err := keycard.NextTLV(cmd.Data)
	i, ok := slotOf(crt.Tag)
	if err != nil || !ok || len(rest) > 0 || cmd.P2 != 0 {
		return nil, swData
	}
	switch cmd.P1 {
	case 0x81:
		if c.key(i) == nil {
			return nil, swNotFound
		}
		return c.public(i)
	case 0x80:
	default:
		return nil, swWrongP1P2
	}
	if !c.verified[2] {
		return nil, swSecurity
	}
	a, err := keycard.ParseAttributes(c.st.Slots[i].Attributes)
	if err != nil {
		return nil, swConditions
	}
	k, err := makeKey(a)
	if err != nil {
		return nil, swConditions
	}
	if sw := c.setKey(i, k, 1); sw != swOK {
		return nil, sw
	}
	return c.public(i)
}

// supports reports whether the card has the curve; it may have been told to be
// without 25519.
func (c *Card) supports(a keycard.Algorithm) bool {
	return !c.cfg.Without25519 || a.Curve != keycard.Ed25519 && a.Curve != keycard.X25519
}

func makeKey(a keycard.Algorithm) (crypto.PrivateKey, error) {
	switch {
	case a.ID == keycard.AlgoRSA:
		return rsa.GenerateKey(rand.Reader, a.Bits)
	case a.Curve == keycard.Ed25519:
		_, k, err := ed25519.GenerateKey(rand.Reader)
		return k, err
	case a.ID == keycard.AlgoECDH:
		if cv := ecdhCurve(a.Curve); cv != nil {
			return cv.GenerateKey(rand.Reader)
		}
	default:
		if cv := ecCurve(a.Curve); cv != nil {
			return ecdsa.GenerateKey(cv, rand.Reader)
		}
	}
	return nil, keycard.ErrUnsupported
}

func ecdhCurve(c keycard.Curve) ecdh.Curve {
	switch c {
	case keycard.P256:
		return ecdh.P256()
	case keycard.P384:
		return ecdh.P384()
	case keycard.P521:
		return ecdh.P521()
	case keycard.X25519:
		return ecdh.X25519()
	}
	return nil
}

func ecCurve(c keycard.Curve) elliptic.Curve {
	switch c {
	case keycard.P256:
		return elliptic.P256()
	case keycard.P384:
		return elliptic.P384()
	case keycard.P521:
		return elliptic.P521()
	}
	return nil
}

// public is the template that GENERATE answers with.
func (c *Card) public(i int) ([]byte, uint16) {
	var b []byte
	switch k := c.key(i).(type) {
	case *rsa.PrivateKey:
		b = keycard.AppendTLV(nil, 0x81, k.N.FillBytes(make([]byte, k.Size())))
		b = keycard.AppendTLV(b, 0x82, big.NewInt(int64(k.E)).Bytes())
	case *ecdsa.PrivateKey:
		p, err := k.PublicKey.Bytes()
		if err != nil {
			return nil, swInternal
		}
		b = keycard.AppendTLV(nil, 0x86, p)
	case *ecdh.PrivateKey:
		b = keycard.AppendTLV(nil, 0x86, k.PublicKey().Bytes())
	case ed25519.PrivateKey:
		b = keycard.AppendTLV(nil, 0x86, k.Public().(ed25519.PublicKey))
	default:
		return nil, swInternal
	}
	return keycard.AppendTLV(nil, 0x7f49, b), swOK
}

// importKey takes an extended header list (specification section 4.4.3.12):
// 4D { slot, 7F48 { tags and lengths }, 5F48 { the parts } }.
func (c *Card) importKey(data []byte) uint16 {
	if !c.verified[2] {
		return swSecurity
	}
	outer, _, err := keycard.NextTLV(data)
	if err != nil || outer.Tag != 0x4d {
		return swData
	}
	crt, rest, err := keycard.NextTLV(outer.Value)
	i, ok := slotOf(crt.Tag)
	if err != nil || !ok {
		return swData
	}
	lengths, rest, err := keycard.NextTLV(rest)
	if err != nil || lengths.Tag != 0x7f48 {
		return swData
	}
	values, _, err := keycard.NextTLV(rest)
	if err != nil || values.Tag != 0x5f48 {
		return swData
	}
	parts := map[byte][]byte{}
	l, v := lengths.Value, values.Value
	for len(l) > 0 {
		tag, n, w := l[0], 0, 0
		switch l = l[1:]; {
		case len(l) >= 1 && l[0] < 0x80:
			n, w = int(l[0]), 1
		case len(l) >= 2 && l[0] == 0x81:
			n, w = int(l[1]), 2
		case len(l) >= 3 && l[0] == 0x82:
			n, w = int(l[1])<<8|int(l[2]), 3
		default:
			return swData
		}
		if l = l[w:]; n > len(v) {
			return swData
		}
		parts[tag], v = v[:n], v[n:]
	}
	a, err := keycard.ParseAttributes(c.st.Slots[i].Attributes)
	if err != nil || !c.supports(a) {
		return swData
	}
	if a.WithPublic && a.ID != keycard.AlgoRSA && len(parts[0x99]) == 0 {
		return swData
	}
	k, err := privateKey(a, parts)
	if err != nil {
		return swData
	}
	return c.setKey(i, k, 2)
}

func privateKey(a keycard.Algorithm, parts map[byte][]byte) (crypto.PrivateKey, error) {
	d := parts[0x92]
	switch {
	case a.ID == keycard.AlgoRSA:
		return rsaKey(a.Bits, parts)
	case a.Curve == keycard.Ed25519:
		if len(d) != ed25519.SeedSize {
			return nil, keycard.ErrData
		}
		return ed25519.NewKeyFromSeed(d), nil
	case a.Curve == keycard.X25519:
		if len(d) != 32 {
			return nil, keycard.ErrData
		}
		le := bytes.Clone(d)
		slices.Reverse(le) // the card takes the highest octet first
		return ecdh.X25519().NewPrivateKey(le)
	}
	size := a.Curve.Size()
	if len(d) > size || len(d) == 0 {
		return nil, keycard.ErrData
	}
	full := make([]byte, size)
	copy(full[size-len(d):], d)
	if a.ID == keycard.AlgoECDH {
		if cv := ecdhCurve(a.Curve); cv != nil {
			return cv.NewPrivateKey(full)
		}
	} else if cv := ecCurve(a.Curve); cv != nil {
		return ecdsa.ParseRawPrivateKey(cv, full)
	}
	return nil, keycard.ErrUnsupported
}

// rsaKey builds a key from exponent and primes.
func rsaKey(bits int, parts map[byte][]byte) (*rsa.PrivateKey, error) {
	e := new(big.Int).SetBytes(parts[0x91])
	p := new(big.Int).SetBytes(parts[0x92])
	q := new(big.Int).SetBytes(parts[0x93])
	one := big.NewInt(1)
	if !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 || p.Cmp(one) <= 0 || q.Cmp(one) <= 0 {
		return nil, keycard.ErrData
	}
	n := new(big.Int).Mul(p, q)
	if n.BitLen() != bits {
		return nil, keycard.ErrData
	}
	p1, q1 := new(big.Int).Sub(p, one), new(big.Int).Sub(q, one)
	d := new(big.Int).ModInverse(e, new(big.Int).Mul(p1, q1))
	if d == nil {
		return nil, keycard.ErrData
	}
	k := &rsa.PrivateKey{
		PublicKey: rsa.PublicKey{N: n, E: int(e.Int64())},
		D:         d, Primes: []*big.Int{p, q},
	}
	if err := k.Validate(); err != nil {
		return nil, keycard.ErrData
	}
	k.Precompute()
	return k, nil
}
