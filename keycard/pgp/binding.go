package pgp

import (
	"bytes"
	"context"
	"crypto"
	"fmt"
	"hash"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"signalbox.example/keycard"
)

// Binding is a certificate together with a card that holds some of its secret
// keys. Its methods may be called from several goroutines as far as the
// certificate is not changed meanwhile; the card takes turns.
type Binding struct {
	card *keycard.Card
	cert *openpgp.Entity
	keys [3]*boundKey // by slot
}

// boundKey is a key of the certificate that is on the card.
type boundKey struct {
	pub *packet.PublicKey
	sub int // index of the subkey, -1 for the primary key
	key *keycard.Key
}

// Bind finds the keys of a certificate on a card, by fingerprint, as the card
// stores it beside each key. The certificate's public keys are taken for those
// of the card, so no command is sent (version 6 keys, whose fingerprints cards
// cannot store, are compared with the public keys that the card gives: one
// command for each slot). Every signature is checked before it is given out,
// which would show a fingerprint that stands beside another key.
//
// auth asks for PINs as in [keycard.Card.Key]; nil means what the card was
// opened with. If none of the keys is on the card the error wraps
// [ErrNotOnCard], and [keycard.ErrMismatch] or, when the card is empty,
// [keycard.ErrNoKey]. Both card and certificate stay the caller's; the
// certificate needs no private keys, and those that it has are not used.
func Bind(ctx context.Context, card *keycard.Card, cert *openpgp.Entity, auth keycard.PINFunc) (*Binding, error) {
	b := &Binding{card: card, cert: cert}
	info := card.Info()
	found := false
	for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
		st := info.Keys[slot]
		if st.Fingerprint.IsZero() && st.Origin == keycard.OriginNone {
			continue
		}
		var onCard *keycard.PublicKey
		for i := -1; i < len(cert.Subkeys); i++ {
			pub := cert.PrimaryKey
			if i >= 0 {
				pub = cert.Subkeys[i].PublicKey
			}
			k := &boundKey{pub: pub, sub: i}
			if pub.Version == 4 && !bytes.Equal(pub.Fingerprint, st.Fingerprint[:]) {
				continue
			}
			std := standardKey(pub, slot)
			if pub.Version != 4 || std == nil {
				if onCard == nil {
					var err error
					if onCard, err = card.PublicKey(ctx, slot); err != nil {
						return nil, b.fail("read the public key", k, err)
					}
				}
				if err := samePublicKey(pub, onCard); err != nil {
					if pub.Version != 4 {
						continue
					}
					return nil, b.fail("bind", k, err)
				}
			}
			var err error
			if std != nil {
				k.key, err = card.KeyFor(slot, std, auth)
			} else { // a curve that only the card has: its description is needed
				k.key, err = card.Key(ctx, slot, auth)
			}
			if err != nil {
				return nil, b.fail("bind", k, err)
			}
			b.keys[slot] = k
			found = true
			break
		}
	}
	if !found {
		var have []string
		for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
			if f := info.Keys[slot].Fingerprint; !f.IsZero() {
				have = append(have, f.String())
			}
		}
		err := fmt.Errorf("the card is empty: %w: %w", ErrNotOnCard, keycard.ErrNoKey)
		if have != nil {
			err = fmt.Errorf("the card holds %v: %w: %w", have, ErrNotOnCard, keycard.ErrMismatch)
		}
		return nil, &Error{"bind", fmt.Sprintf("%X", cert.PrimaryKey.Fingerprint), info.Ident(), err}
	}
	return b, nil
}

// Certificate returns the certificate that was bound.
func (b *Binding) Certificate() *openpgp.Entity { return b.cert }

// Card returns the card.
func (b *Binding) Card() *keycard.Card { return b.card }

// Key returns the certificate's key in a slot of the card and its private half;
// ok is false if the slot holds none of the certificate's keys.
func (b *Binding) Key(slot keycard.Slot) (pub *packet.PublicKey, key *keycard.Key, ok bool) {
	if slot > keycard.SlotAuth || b.keys[slot] == nil {
		return nil, nil, false
	}
	k := b.keys[slot]
	return k.pub, k.key, true
}

// Primary reports whether the certificate's primary key is the card's
// signature key: only then can the card certify, and change the certificate.
func (b *Binding) Primary() bool { return b.keys[0] != nil && b.keys[0].sub < 0 }

// Entity returns a copy of the certificate whose private keys are those on the
// card (see [PrivateKey] for how errors show), for go-crypto's own functions.
// Set [packet.Config.SigningKeyId] to the key ID in the signature slot if the
// certificate has signing keys elsewhere too. Keys of algorithms 25 and 27
// cannot be in it.
func (b *Binding) Entity(ctx context.Context) *openpgp.Entity {
	e := *b.cert
	e.PrivateKey = nil
	e.Subkeys = append([]openpgp.Subkey(nil), e.Subkeys...)
	for i := range e.Subkeys {
		e.Subkeys[i].PrivateKey = nil
	}
	for _, k := range b.keys {
		if k == nil || newFormat(k.pub) {
			continue
		}
		p, h := privateKey(ctx, k.pub, k.key)
		h.left = -1
		if k.sub < 0 {
			e.PrivateKey = p
		} else {
			e.Subkeys[k.sub].PrivateKey = p
		}
	}
	return &e
}

// newFormat reports whether go-crypto has no hook for keys of this algorithm.
func newFormat(pub *packet.PublicKey) bool {
	return pub.PubKeyAlgo == packet.PubKeyAlgoEd25519 || pub.PubKeyAlgo == packet.PubKeyAlgoX25519
}

// signer returns the signature key if the certificate allows it to sign data.
func (b *Binding) signer(op string, now time.Time) (*boundKey, error) {
	k := b.keys[keycard.SlotSign]
	if k == nil {
		id := b.cert.PrimaryKey.Fingerprint
		if want, ok := b.cert.SigningKey(now); ok {
			id = want.PublicKey.Fingerprint
		}
		return nil, &Error{op, fmt.Sprintf("%X", id), b.card.Info().Ident(), absent(b.card.Info(), keycard.SlotSign)}
	}
	if got, ok := b.cert.SigningKeyById(now, k.pub.KeyId); !ok || got.PublicKey != k.pub {
		return nil, b.fail(op, k, fmt.Errorf("expired, revoked, or not for signatures: %w", ErrUsage))
	}
	return k, nil
}

// primary returns the signature key if it is the certificate's primary key.
func (b *Binding) primary(op string) (*boundKey, error) {
	if !b.Primary() {
		return nil, &Error{op, fmt.Sprintf("%X", b.cert.PrimaryKey.Fingerprint), b.card.Info().Ident(),
			fmt.Errorf("needs the primary key: %w", absent(b.card.Info(), keycard.SlotSign))}
	}
	return b.keys[keycard.SlotSign], nil
}

// newSignature fills in what every signature by k has.
func newSignature(k *packet.PublicKey, t packet.SignatureType, cfg *packet.Config) (*packet.Signature, error) {
	h, err := hashFor(k, cfg)
	if err != nil {
		return nil, err
	}
	life := cfg.SigLifetime()
	return &packet.Signature{
		Version:           k.Version,
		SigType:           t,
		PubKeyAlgo:        k.PubKeyAlgo,
		Hash:              h,
		CreationTime:      cfg.Now(),
		IssuerKeyId:       &k.KeyId,
		IssuerKeyVersion:  uint8(k.Version),
		IssuerFingerprint: k.Fingerprint,
		Notations:         cfg.Notations(),
		SigLifetimeSecs:   &life,
	}, nil
}

// hashFor returns the configured hash, or the shortest that the curve wants.
func hashFor(k *packet.PublicKey, cfg *packet.Config) (crypto.Hash, error) {
	h := cfg.Hash()
	least := crypto.SHA256
	if c, err := k.Curve(); err == nil && k.PubKeyAlgo == packet.PubKeyAlgoECDSA {
		switch c {
		case packet.CurveNistP384, packet.CurveBrainpoolP384:
			least = crypto.SHA384
		case packet.CurveNistP521, packet.CurveBrainpoolP512:
			least = crypto.SHA512
		}
	}
	switch h {
	case crypto.SHA256, crypto.SHA384, crypto.SHA512:
	case crypto.SHA3_256, crypto.SHA3_512:
		if k.PubKeyAlgo == packet.PubKeyAlgoRSA {
			return 0, fmt.Errorf("%v with an RSA key on a card: %w", h, keycard.ErrUnsupported)
		}
	default:
		return 0, fmt.Errorf("signatures with %v: %w", h, keycard.ErrUnsupported)
	}
	if h.Size() < least.Size() {
		h = least
	}
	if !h.Available() {
		return 0, fmt.Errorf("%v is not linked into the program: %w", h, keycard.ErrUnsupported)
	}
	return h, nil
}

// complete lets the card make the signature that do asks go-crypto for.
func (b *Binding) complete(ctx context.Context, op string, k *boundKey, sig *packet.Signature, do func(*packet.PrivateKey) error) error {
	p, h := privateKey(ctx, k.pub, k.key)
	err := do(p)
	if h.err != nil {
		err = h.err
	}
	if err != nil {
		return b.fail(op, k, err)
	}
	if k.pub.PubKeyAlgo == packet.PubKeyAlgoEd25519 {
		sig.EdSig = h.signature
	}
	return nil
}

// sign finishes a signature over data that went through the hash.
func (b *Binding) sign(ctx context.Context, op string, k *boundKey, sig *packet.Signature, h hash.Hash, cfg *packet.Config) error {
	return b.complete(ctx, op, k, sig, func(p *packet.PrivateKey) error { return sig.Sign(h, p, cfg) })
}
