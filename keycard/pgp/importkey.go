package pgp

import (
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"

	pgpecdh "github.com/ProtonMail/go-crypto/openpgp/ecdh"
	pgpecdsa "github.com/ProtonMail/go-crypto/openpgp/ecdsa"
	pgped25519 "github.com/ProtonMail/go-crypto/openpgp/ed25519"
	"github.com/ProtonMail/go-crypto/openpgp/eddsa"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/x25519"

	"signalbox.example/keycard"
)

// Import puts a secret key, decrypted and version 4, into a slot of one or more
// cards, as gpg's keytocard does, with its fingerprint and creation time. The
// public keys are read back and compared, so that afterwards the cards are
// copies of each other. It needs the Admin PIN of each. What was in the slot is
// lost. It stops at the first failure; the error says at which card, counted
// from 0.
func Import(ctx context.Context, cards []*keycard.Card, slot keycard.Slot, p *packet.PrivateKey) (*keycard.PublicKey, error) {
	const op = "import"
	id := fmt.Sprintf("%X", p.Fingerprint)
	key, meta, err := Secret(p, slot)
	if err != nil {
		return nil, &Error{op, id, "", err}
	}
	pub, err := keycard.ImportCopies(ctx, cards, slot, key, meta)
	if err != nil {
		return nil, &Error{op, id, "", err}
	}
	return pub, nil
}

// Secret returns the standard library's form of a secret key for a slot, and
// what a card stores beside it. The key is not cleared and may share memory
// with p. Keys that are encrypted or not there at all (stubs), curves that the
// standard library does not have and other versions than 4 give
// [keycard.ErrUnsupported].
func Secret(p *packet.PrivateKey, slot keycard.Slot) (crypto.PrivateKey, keycard.KeyMeta, error) {
	meta := keycard.KeyMeta{Created: p.CreationTime}
	no := func(why string) (crypto.PrivateKey, keycard.KeyMeta, error) {
		return nil, keycard.KeyMeta{}, fmt.Errorf("%s: %w", why, keycard.ErrUnsupported)
	}
	switch {
	case p.Version != 4:
		return no(fmt.Sprintf("version %d key, whose fingerprint a card cannot store", p.Version))
	case p.Dummy() || p.PrivateKey == nil && !p.Encrypted:
		return no("the secret key is not there")
	case p.Encrypted:
		return no("the secret key is encrypted")
	}
	copy(meta.Fingerprint[:], p.Fingerprint)
	fits := slot == keycard.SlotDecrypt
	curve, _ := p.Curve()
	switch k := p.PrivateKey.(type) {
	case *rsa.PrivateKey:
		return k, meta, nil
	case *pgpecdsa.PrivateKey:
		if c := standardCurve(curve); c != nil && !fits {
			size := (c.Params().BitSize + 7) / 8
			if k.D.BitLen() > 8*size {
				return nil, meta, fmt.Errorf("secret key: %w", ErrFormat)
			}
			std, err := ecdsa.ParseRawPrivateKey(c, k.D.FillBytes(make([]byte, size)))
			return std, meta, err
		}
	case *eddsa.PrivateKey:
		if curve == packet.Curve25519 && !fits {
			return ed25519.NewKeyFromSeed(k.D), meta, nil
		}
	case *pgped25519.PrivateKey:
		if !fits {
			return ed25519.PrivateKey(k.Key), meta, nil
		}
	case *x25519.PrivateKey:
		if fits {
			std, err := ecdh.X25519().NewPrivateKey(k.Secret)
			return std, meta, err
		}
	case *pgpecdh.PrivateKey:
		meta.KDF = keycard.KDFParams{Hash: k.KDF.Hash.Id(), Cipher: k.KDF.Cipher.Id()}
		if !fits {
			break
		}
		if curve == packet.Curve25519 {
			std, err := ecdh.X25519().NewPrivateKey(k.D)
			return std, meta, err
		}
		for _, c := range [...]struct {
			name packet.Curve
			std  ecdh.Curve
			size int
		}{{packet.CurveNistP256, ecdh.P256(), 32}, {packet.CurveNistP384, ecdh.P384(), 48}, {packet.CurveNistP521, ecdh.P521(), 66}} {
			if c.name == curve {
				d := make([]byte, c.size) // leading zeros may be missing
				copy(d[c.size-min(c.size, len(k.D)):], k.D)
				std, err := c.std.NewPrivateKey(d)
				return std, meta, err
			}
		}
	}
	return no(fmt.Sprintf("algorithm %d, curve %q, in the %v slot", p.PubKeyAlgo, curve, slot))
}
