package keycard_test

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
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

var (
	user    = keycard.PINString("123456")
	adminPW = keycard.PINString("12345678")
)

// rsaKey reads one of the test keys: making them takes seconds.
func rsaKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("testdata/rsa%d.pem", bits))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*rsa.PrivateKey)
}

// open opens a fresh software card that knows its PINs.
func open(t testing.TB, cfg softcard.Config, opts ...keycard.Option) (*keycard.Card, *softcard.Card) {
	t.Helper()
	sc, err := softcard.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keycard.Open(context.Background(), sc, append([]keycard.Option{keycard.WithPINs(keycard.StaticPIN(user, adminPW))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, sc
}

var created = time.Unix(1700000000, 0).UTC()

var personalities = map[string]softcard.Config{
	"v3.4":          {Personality: softcard.V34},
	"v3.4 chaining": {Personality: softcard.V34Chaining},
	"v2.0":          {Personality: softcard.V20},
	"public wanted": {Personality: softcard.V34, PublicOnImport: true},
	"63Cx":          {Personality: softcard.V34, CountInStatus: true},
}

func algorithms(cfg softcard.Config) []keycard.Algorithm {
	a := []keycard.Algorithm{keycard.RSA(2048)}
	if cfg.Personality != softcard.V20 {
		a = append(a, keycard.EC(keycard.P256), keycard.EC(keycard.P384), keycard.EC(keycard.P521), keycard.EC(keycard.Ed25519))
	}
	return a
}

// check uses the key in a slot and verifies the result by the standard library.
func check(t *testing.T, c *keycard.Card, slot keycard.Slot) {
	t.Helper()
	k, err := c.Key(t.Context(), slot, nil)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte("hello card"))
	if slot != keycard.SlotDecrypt {
		switch p := k.Public().(type) {
		case *rsa.PublicKey:
			s, err := k.Sign(nil, digest[:], crypto.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			if err := rsa.VerifyPKCS1v15(p, crypto.SHA256, digest[:], s); err != nil {
				t.Fatal(err)
			}
		case *ecdsa.PublicKey:
			s, err := k.Sign(nil, digest[:], crypto.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			if !ecdsa.VerifyASN1(p, digest[:], s) {
				t.Fatal("bad signature")
			}
		case ed25519.PublicKey:
			s, err := k.Sign(nil, []byte("message"), crypto.Hash(0))
			if err != nil {
				t.Fatal(err)
			}
			if !ed25519.Verify(p, []byte("message"), s) {
				t.Fatal("bad signature")
			}
		default:
			t.Fatalf("public key %T", p)
		}
		return
	}
	switch p := k.Public().(type) {
	case *rsa.PublicKey:
		ct, err := rsa.EncryptPKCS1v15(rand.Reader, p, []byte("secret"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Decrypt(nil, ct, nil)
		if err != nil || string(got) != "secret" {
			t.Fatalf("%q, %v", got, err)
		}
	case *ecdh.PublicKey:
		e, err := p.Curve().GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		want, err := e.ECDH(p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.ECDH(e.PublicKey())
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%x, want %x, %v", got, want, err)
		}
	default:
		t.Fatalf("public key %T", p)
	}
}

func TestGenerateAndUse(t *testing.T) {
	for name, cfg := range personalities {
		t.Run(name, func(t *testing.T) {
			c, _ := open(t, cfg)
			for _, a := range algorithms(cfg) {
				if a.ID == keycard.AlgoRSA && (testing.Short() || name == "63Cx") {
					continue
				}
				for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
					if a.ID == keycard.AlgoRSA && slot != keycard.SlotDecrypt && name != "v3.4" {
						continue // slow
					}
					p, err := c.Generate(t.Context(), slot, a, keycard.KeyMeta{Created: created})
					if err != nil {
						t.Fatalf("%v in %v: %v", a, slot, err)
					}
					if _, ok := p.Params(); !ok || !p.Created.Equal(created) {
						t.Errorf("%v in %v: fingerprint %v, time %v", a, slot, p.Fingerprint, p.Created)
					}
					if cfg.Personality != softcard.V20 && c.Info().Keys[slot].Origin != keycard.OriginGenerated {
						t.Errorf("origin %v", c.Info().Keys[slot].Origin)
					}
					check(t, c, slot)
				}
			}
			if p, err := c.Check(t.Context()); err != nil || p != nil && name != "63Cx" {
				for _, p := range p {
					if !errors.Is(p.Err, keycard.ErrNoKey) {
						t.Error(p, err)
					}
				}
			}
		})
	}
}

// software makes a key of the algorithm outside of any card.
func software(t testing.TB, a keycard.Algorithm) crypto.PrivateKey {
	t.Helper()
	var k crypto.PrivateKey
	var err error
	switch {
	case a.ID == keycard.AlgoRSA:
		return rsaKey(t, a.Bits)
	case a.Curve == keycard.Ed25519:
		_, k, err = ed25519.GenerateKey(rand.Reader)
	case a.Curve == keycard.X25519:
		k, err = ecdh.X25519().GenerateKey(rand.Reader)
	default:
		k, err = ecdsa.GenerateKey(map[keycard.Curve]elliptic.Curve{
			keycard.P256: elliptic.P256(), keycard.P384: elliptic.P384(), keycard.P521: elliptic.P521()}[a.Curve], rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestImportAndUse(t *testing.T) {
	for name, cfg := range personalities {
		t.Run(name, func(t *testing.T) {
			c, _ := open(t, cfg)
			for _, a := range algorithms(cfg) {
				for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
					key := software(t, a.For(slot))
					p, err := c.Import(t.Context(), slot, key, keycard.KeyMeta{Created: created})
					if err != nil {
						t.Fatalf("%v in %v: %v", a, slot, err)
					}
					q, err := c.PublicKey(t.Context(), slot)
					if err != nil || !q.Equal(p) || q.Fingerprint != p.Fingerprint || p.Fingerprint.IsZero() {
						t.Fatalf("%v in %v: read back %+v, want %+v, %v", a, slot, q, p, err)
					}
					check(t, c, slot)
				}
			}
			if p, err := c.Check(t.Context()); err != nil || p != nil {
				t.Error(p, err)
			}
		})
	}
}
