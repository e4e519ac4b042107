package pgp

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
	"errors"
	"fmt"
	"io"

	pgpecdh "github.com/ProtonMail/go-crypto/openpgp/ecdh"
	pgpecdsa "github.com/ProtonMail/go-crypto/openpgp/ecdsa"
	pgped25519 "github.com/ProtonMail/go-crypto/openpgp/ed25519"
	"github.com/ProtonMail/go-crypto/openpgp/eddsa"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/x25519"

	"signalbox.example/keycard"
)

// hook stands where go-crypto expects private key material. RSA and ECDSA
// keys are interfaces there. EdDSA and ECDH keys are structs, but the curve in
// them is an interface, which edCurve and dhCurve take over.
//
// go-crypto loses errors of RSA and EdDSA signatures and of ECDH: it goes on
// with what it has got. So the hook keeps the first error, and never gives
// anything predictable back in its place.
type hook struct {
	ctx context.Context
	key *keycard.Key
	pub *packet.PublicKey

	err       error  // the first, or the last that the message may have caused
	fatal     bool   // no further commands after err
	left      int    // operations still allowed
	signature []byte // the last one as it came from the card
}

// maxOperations bounds how often one call uses the card: a hostile message can
// name a hidden recipient any number of times.
const maxOperations = 16

func (h *hook) begin() error {
	if h.fatal {
		return h.err
	}
	if h.left == 0 {
		h.fatal, h.err = true, fmt.Errorf("more than %d operations for one message: %w", maxOperations, ErrFormat)
		return h.err
	}
	h.left--
	return nil
}

// done notes an error. What a message can cause does not stand in the way of
// the next attempt, anything else does: no second wrong PIN.
func (h *hook) done(err error) error {
	if err != nil {
		h.err = err
		h.fatal = !errors.Is(err, keycard.ErrData) && !errors.Is(err, keycard.ErrMalformed)
	}
	return err
}

// sign lets the card sign and checks what comes back: a signature of another
// key, or of a faulty card, does not leave this package.
func (h *hook) sign(input []byte) ([]byte, error) {
	if err := h.begin(); err != nil {
		return nil, err
	}
	b, err := h.key.SignRaw(h.ctx, input)
	if err == nil && h.key.PublicKey().Key != nil {
		if h.key.PublicKey().Algorithm.ID == keycard.AlgoECDSA {
			input = input[:min(len(input), h.key.PublicKey().Algorithm.Curve.Size())]
		}
		err = h.key.PublicKey().Verify(input, b)
	}
	if h.done(err) != nil {
		return nil, err
	}
	h.signature = b
	return b, nil
}

// Public is part of crypto.Signer and crypto.Decrypter.
func (h *hook) Public() crypto.PublicKey { return h.pub.PublicKey }

// Sign is what go-crypto calls for RSA and ECDSA keys.
func (h *hook) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if _, ok := h.pub.PublicKey.(*rsa.PublicKey); ok {
		if err := h.begin(); err != nil {
			return nil, err
		}
		b, err := h.key.WithContext(h.ctx).Sign(nil, digest, opts)
		if err == nil {
			err = rsa.VerifyPKCS1v15(h.pub.PublicKey.(*rsa.PublicKey), opts.HashFunc(), digest, b)
			if err != nil {
				err = fmt.Errorf("the card's signature does not fit the key: %w", keycard.ErrMismatch)
			}
		}
		return b, h.done(err)
	}
	raw, err := h.sign(digest)
	if err != nil {
		return nil, err
	}
	return asn1Signature(raw), nil
}

// asn1Signature turns r and s of equal width into ASN.1.
func asn1Signature(raw []byte) []byte {
	var body []byte
	for _, v := range [...][]byte{raw[:len(raw)/2], raw[len(raw)/2:]} {
		b := append([]byte{0}, bytes.TrimLeft(v, "\x00")...)
		if len(b) > 1 && b[1] < 0x80 {
			b = b[1:]
		}
		body = append(append(body, 2, byte(len(b))), b...)
	}
	if len(body) < 0x80 {
		return append([]byte{0x30, byte(len(body))}, body...)
	}
	return append([]byte{0x30, 0x81, byte(len(body))}, body...)
}

// Decrypt is what go-crypto calls for RSA keys.
func (h *hook) Decrypt(_ io.Reader, msg []byte, opts crypto.DecrypterOpts) ([]byte, error) {
	if err := h.begin(); err != nil {
		return nil, err
	}
	b, err := h.key.DecryptRaw(h.ctx, msg)
	return b, h.done(err)
}

// derive is the card's half of ECDH. On an error the result is random, not
// empty: go-crypto goes on to derive a key from it, and nobody may know that.
func (h *hook) derive(point []byte) ([]byte, error) {
	err := h.begin()
	if err == nil {
		var b []byte
		b, err = h.key.ECDHRaw(h.ctx, point)
		if h.done(err) == nil {
			return b, nil
		}
	}
	b := make([]byte, 32)
	rand.Read(b)
	return b, err
}

// eddsaCurve and ecdhCurve are the methods that go-crypto's curves have; the
// interfaces there are internal, but interfaces are structural.
type eddsaCurve interface {
	GetCurveName() string
	MarshalBytePoint(x []byte) []byte
	UnmarshalBytePoint([]byte) (x []byte)
	MarshalByteSecret(d []byte) []byte
	UnmarshalByteSecret(d []byte) []byte
	MarshalSignature(sig []byte) (r, s []byte)
	UnmarshalSignature(r, s []byte) (sig []byte)
	GenerateEdDSA(rand io.Reader) (pub, priv []byte, err error)
	Sign(publicKey, privateKey, message []byte) (sig []byte, err error)
	Verify(publicKey, message, sig []byte) bool
	ValidateEdDSA(publicKey, privateKey []byte) (err error)
}

type ecdhCurve interface {
	GetCurveName() string
	MarshalBytePoint([]byte) (encoded []byte)
	UnmarshalBytePoint(encoded []byte) []byte
	MarshalByteSecret(d []byte) []byte
	UnmarshalByteSecret(d []byte) []byte
	GenerateECDH(rand io.Reader) (point []byte, secret []byte, err error)
	Encaps(rand io.Reader, point []byte) (ephemeral, sharedSecret []byte, err error)
	Decaps(ephemeral, secret []byte) (sharedSecret []byte, err error)
	ValidateECDH(public []byte, secret []byte) error
}

type edCurve struct {
	eddsaCurve
	h *hook
}

func (c edCurve) Sign(_, _, message []byte) ([]byte, error) { return c.h.sign(message) }

// MarshalSignature is called after a failed Sign too.
func (c edCurve) MarshalSignature(sig []byte) (r, s []byte) {
	if len(sig) != ed25519.SignatureSize {
		return nil, nil
	}
	return c.eddsaCurve.MarshalSignature(sig)
}

type dhCurve struct {
	ecdhCurve
	h *hook
}

func (c dhCurve) Decaps(ephemeral, _ []byte) ([]byte, error) { return c.h.derive(ephemeral) }

// PrivateKey returns a private key packet for go-crypto's own functions that
// uses k, a key on a card, for the public key pub: RSA, ECDSA, EdDSA and ECDH.
// The public keys are compared: another one gives [keycard.ErrMismatch]. The
// newer algorithms 25 and 27 (X25519, Ed25519) give [keycard.ErrUnsupported],
// since go-crypto has no place for them; the methods of [Binding] can use them.
//
// Card operations end with the context of k ([keycard.Key.WithContext]).
// go-crypto loses some errors: it reports a missing signature or a wrong key
// when the PIN was wrong. [CardError] has the card's own error. The packet
// stops working after an error that is not the message's fault; like go-crypto's
// own it must not be used from several goroutines at once.
func PrivateKey(ctx context.Context, pub *packet.PublicKey, k *keycard.Key) (*packet.PrivateKey, error) {
	if pub.PubKeyAlgo == packet.PubKeyAlgoX25519 || pub.PubKeyAlgo == packet.PubKeyAlgoEd25519 {
		return nil, &Error{"use a card key", fmt.Sprintf("%X", pub.Fingerprint), k.Card().Info().Ident(),
			fmt.Errorf("algorithm %d has no place for a card in go-crypto, use Bind: %w", pub.PubKeyAlgo, keycard.ErrUnsupported)}
	}
	if err := samePublicKey(pub, k.PublicKey()); err != nil {
		return nil, &Error{"use a card key", fmt.Sprintf("%X", pub.Fingerprint), k.Card().Info().Ident(), err}
	}
	p, h := privateKey(ctx, pub, k)
	h.left = -1 // as often as the caller likes
	return p, nil
}

// CardError returns the last error that the card gave in an operation with a
// packet of [PrivateKey], nil if there was none.
func CardError(p *packet.PrivateKey) error {
	if h := hookOf(p); h != nil {
		return h.err
	}
	return nil
}

func hookOf(p *packet.PrivateKey) *hook {
	switch k := p.PrivateKey.(type) {
	case *hook:
		return k
	case *eddsa.PrivateKey:
		if c, ok := k.GetCurve().(edCurve); ok {
			return c.h
		}
	case *pgpecdh.PrivateKey:
		if c, ok := k.GetCurve().(dhCurve); ok {
			return c.h
		}
	}
	return nil
}

// ed25519Curve finds go-crypto's curve object for the twin of an algorithm 27
// key.
func ed25519Curve() (eddsaCurve, error) {
	return packet.GetEdDSACurveFromAlgID(packet.PubKeyAlgoMldsa65Ed25519)
}

// privateKey builds the packet. For algorithm 27 it is a twin of the key that
// says EdDSA: good for computing a signature, not for naming the key; for 25
// there is none and only the hook is of use.
func privateKey(ctx context.Context, pub *packet.PublicKey, k *keycard.Key) (*packet.PrivateKey, *hook) {
	h := &hook{ctx: ctx, key: k, pub: pub, left: maxOperations}
	p := &packet.PrivateKey{PublicKey: *pub}
	eddsaKey := func(c eddsaCurve, x []byte) {
		e := eddsa.NewPublicKey(edCurve{c, h})
		e.X = x
		p.PublicKey.PublicKey = e
		p.PrivateKey = eddsa.NewPrivateKey(*e)
	}
	switch q := pub.PublicKey.(type) {
	case *eddsa.PublicKey:
		eddsaKey(q.GetCurve(), q.X)
	case *pgped25519.PublicKey:
		if c, err := ed25519Curve(); err == nil {
			eddsaKey(c, q.Point)
			p.PubKeyAlgo = packet.PubKeyAlgoEdDSA
		}
	case *pgpecdh.PublicKey:
		e := pgpecdh.NewPublicKey(dhCurve{q.GetCurve(), h}, q.KDF.Hash, q.KDF.Cipher)
		e.Point = q.Point
		p.PublicKey.PublicKey = e
		p.PrivateKey = pgpecdh.NewPrivateKey(*e)
	default:
		p.PrivateKey = h
	}
	return p, h
}

// point returns the public point as a card writes it, nil for RSA and others.
func point(pub *packet.PublicKey) []byte {
	switch q := pub.PublicKey.(type) {
	case *eddsa.PublicKey:
		return q.X
	case *pgped25519.PublicKey:
		return q.Point
	case *x25519.PublicKey:
		return q.Point
	case *pgpecdh.PublicKey:
		return q.Point
	case *pgpecdsa.PublicKey:
		return q.MarshalPoint()
	}
	return nil
}

func samePublicKey(pub *packet.PublicKey, k *keycard.PublicKey) error {
	same := false
	if q, ok := pub.PublicKey.(*rsa.PublicKey); ok {
		same = q.Equal(k.Key)
	} else if p := point(pub); p != nil {
		same = bytes.Equal(p, k.Point)
	}
	if !same {
		return fmt.Errorf("the %v slot holds another key: %w", k.Slot, keycard.ErrMismatch)
	}
	return nil
}

// standardKey returns the standard library's form of a public key, nil for
// curves that it does not have.
func standardKey(pub *packet.PublicKey, slot keycard.Slot) crypto.PublicKey {
	switch q := pub.PublicKey.(type) {
	case *rsa.PublicKey:
		return q
	case *eddsa.PublicKey:
		if len(q.X) == ed25519.PublicKeySize {
			return ed25519.PublicKey(q.X)
		}
	case *pgped25519.PublicKey:
		return ed25519.PublicKey(q.Point)
	}
	p := point(pub)
	curve, err := pub.Curve()
	if p == nil || err != nil && pub.PubKeyAlgo != packet.PubKeyAlgoX25519 {
		return nil
	}
	if pub.PubKeyAlgo == packet.PubKeyAlgoX25519 || curve == packet.Curve25519 {
		if k, err := ecdh.X25519().NewPublicKey(p); err == nil && slot == keycard.SlotDecrypt {
			return k
		}
		return nil
	}
	if c := standardCurve(curve); c != nil {
		k, err := ecdsa.ParseUncompressedPublicKey(c, p)
		if err != nil {
			return nil
		}
		if slot != keycard.SlotDecrypt {
			return k
		}
		if d, err := k.ECDH(); err == nil {
			return d
		}
	}
	return nil
}

func standardCurve(c packet.Curve) elliptic.Curve {
	switch c {
	case packet.CurveNistP256:
		return elliptic.P256()
	case packet.CurveNistP384:
		return elliptic.P384()
	case packet.CurveNistP521:
		return elliptic.P521()
	}
	return nil
}
