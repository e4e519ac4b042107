package pgp_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"signalbox.example/keycard"
	"signalbox.example/keycard/pgp"
	"signalbox.example/keycard/softcard"
)

const userID = "Card Holder <holder@example.org>"

// created lies in the past, so that nothing depends on how fast tests run.
var created = time.Now().Add(-time.Hour).Truncate(time.Second)

func pins() keycard.PINFunc {
	return keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678"))
}

func open(t testing.TB, c keycard.Transport, opts ...keycard.Option) *keycard.Card {
	t.Helper()
	card, err := keycard.Open(context.Background(), c, append([]keycard.Option{keycard.WithPINs(pins())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { card.Close() })
	return card
}

func rsaKey(t testing.TB, bits int) *rsa.PrivateKey {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("../testdata/rsa%d.pem", bits))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := pem.Decode(b)
	k, err := x509.ParsePKCS8PrivateKey(p.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return k.(*rsa.PrivateKey)
}

// kinds are the algorithms of the cards that the tests make.
var kinds = []string{"rsa2048", "rsa4096", "nistp256", "nistp384", "nistp521", "ed25519"}

// personality of the card for a kind: each of them is used.
func personality(kind string) softcard.Personality {
	switch kind {
	case "rsa2048":
		return softcard.V20
	case "rsa4096", "nistp521":
		return softcard.V34Chaining
	}
	return softcard.V34
}

// makeCard makes a card with three keys of one kind and its certificate.
func makeCard(t testing.TB, kind string, cfg softcard.Config) (*softcard.Card, *openpgp.Entity, *packet.Signature) {
	t.Helper()
	ctx := context.Background()
	soft := softcard.MustNew(cfg)
	card, err := keycard.Open(ctx, soft, keycard.WithPINs(pins()))
	if err != nil {
		t.Fatal(err)
	}
	defer card.Close()
	for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
		meta := keycard.KeyMeta{Created: created}
		if bits, ok := strings.CutPrefix(kind, "rsa"); ok {
			var n int
			fmt.Sscan(bits, &n)
			// The same key three times, at different times: other fingerprints.
			meta.Created = created.Add(time.Duration(slot) * time.Second)
			if _, err := card.Import(ctx, slot, rsaKey(t, n), meta); err != nil {
				t.Fatal(err)
			}
			continue
		}
		a, err := keycard.ParseAlgorithm(kind)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := card.Generate(ctx, slot, a.For(slot), meta); err != nil {
			t.Fatal(err)
		}
	}
	b, rev, err := pgp.NewCertificate(ctx, card, nil, pgp.CertificateOptions{
		UserIDs: []string{userID},
		Config:  &packet.Config{Time: func() time.Time { return created.Add(10 * time.Second) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return soft, reread(t, b.Certificate()), rev
}

// reread takes a certificate through its serialised form.
func reread(t testing.TB, e *openpgp.Entity) *openpgp.Entity {
	t.Helper()
	var buf bytes.Buffer
	if err := pgp.WriteCertificate(&buf, e); err != nil {
		t.Fatal(err)
	}
	list, err := openpgp.ReadArmoredKeyRing(&buf)
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

func bind(t testing.TB, c *keycard.Card, e *openpgp.Entity) *pgp.Binding {
	t.Helper()
	b, err := pgp.Bind(context.Background(), c, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// signed makes a signed message.
func signed(t testing.TB, b *pgp.Binding, data string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w, err := b.Sign(context.Background(), &buf, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Texts for clear signatures: with and without a last line end, blank lines,
// dashes, trailing blanks, other line ends.
var texts = []string{"hello\n", "hello", "", "\n", "- a dash\n-----BEGIN\nFrom me\n", "trailing \t \nmore  \n\n\n", "windows\r\nlines\r\n", "ünï\n"}

func TestEveryKindEveryAlgorithm(t *testing.T) {
	ctx := t.Context()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			if testing.Short() && kind == "rsa4096" {
				t.Skip("slow under emulation")
			}
			soft, cert, rev := makeCard(t, kind, softcard.Config{Personality: personality(kind)})
			b := bind(t, open(t, soft), cert)
			ring := openpgp.EntityList{cert}
			if !b.Primary() {
				t.Error("the primary key is not on the card")
			}
			if err := cert.PrimaryKey.VerifyRevocationSignature(rev); err != nil {
				t.Errorf("revocation certificate: %v", err)
			}

			const data = "line one\nline two\r\n"
			for _, h := range []crypto.Hash{0, crypto.SHA384, crypto.SHA512} {
				var sig bytes.Buffer
				if err := b.DetachSign(ctx, &sig, strings.NewReader(data), &packet.Config{DefaultHash: h}); err != nil {
					t.Fatal(err)
				}
				if _, err := openpgp.CheckDetachedSignature(ring, strings.NewReader(data), &sig, nil); err != nil {
					t.Errorf("detached, %v: %v", h, err)
				}
			}
			var sig bytes.Buffer
			if err := b.DetachSignText(ctx, &sig, strings.NewReader(data), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := openpgp.CheckDetachedSignature(ring, strings.NewReader("line one\r\nline two\n"), &sig, nil); err != nil {
				t.Errorf("detached over text: %v", err)
			}
			var asc bytes.Buffer
			if err := b.ArmoredDetachSign(ctx, &asc, strings.NewReader(data), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := openpgp.CheckArmoredDetachedSignature(ring, strings.NewReader(data), &asc, nil); err != nil {
				t.Errorf("armored: %v", err)
			}
			for _, text := range texts {
				var out bytes.Buffer
				if err := b.ClearSign(ctx, &out, strings.NewReader(text), nil); err != nil {
					t.Fatal(err)
				}
				blk, _ := clearsign.Decode(out.Bytes())
				if blk == nil {
					t.Fatalf("clear text %q: not decoded:\n%s", text, out.Bytes())
				}
				if _, err := blk.VerifySignature(ring, nil); err != nil {
					t.Errorf("clear text %q: %v\n%s", text, err, out.Bytes())
				}
			}
			md, err := openpgp.ReadMessage(bytes.NewReader(signed(t, b, data)), ring, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(md.UnverifiedBody); string(got) != data || md.SignatureError != nil || md.SignedBy == nil {
				t.Errorf("inline: %q, %v", got, md.SignatureError)
			}

			// To itself and back, signed.
			var msg bytes.Buffer
			w, err := b.Encrypt(ctx, &msg, []*openpgp.Entity{cert}, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(w, data)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if md, err = b.Decrypt(ctx, &msg, nil, nil); err != nil {
				t.Fatal(err)
			}
			if got, _ := io.ReadAll(md.UnverifiedBody); string(got) != data || md.SignatureError != nil || !md.IsEncrypted || !md.IsSigned || md.Signature == nil {
				t.Errorf("encrypted: %q, %v", got, md.SignatureError)
			}
			if md.DecryptedWith.PublicKey.KeyId != cert.Subkeys[0].PublicKey.KeyId {
				t.Error("decrypted with another key")
			}
		})
	}
}

// TestCommandBudget: after Open, two commands for a signature and two for a
// decryption (the PIN and the operation), one while the PIN counts.
func TestCommandBudget(t *testing.T) {
	ctx := t.Context()
	for _, kind := range kinds {
		if testing.Short() && kind == "rsa4096" {
			continue
		}
		soft, cert, _ := makeCard(t, kind, softcard.Config{Personality: personality(kind)})
		card := open(t, soft, keycard.WithKDF(keycard.KDF{}))
		var msg bytes.Buffer
		w, err := openpgp.Encrypt(&msg, []*openpgp.Entity{cert}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "secret")
		w.Close()

		cost := func(want int, what string, f func() error) {
			t.Helper()
			before, _ := card.Count()
			if err := f(); err != nil {
				t.Fatalf("%s: %s: %v", kind, what, err)
			}
			if after, _ := card.Count(); after-before != want {
				t.Errorf("%s: %s took %d commands, want %d", kind, what, after-before, want)
			}
		}
		var b *pgp.Binding
		cost(0, "bind", func() error { b, err = pgp.Bind(ctx, card, cert, nil); return err })
		sign := func() error { return b.DetachSign(ctx, io.Discard, strings.NewReader("x"), nil) }
		decrypt := func() error {
			md, err := b.Decrypt(ctx, bytes.NewReader(msg.Bytes()), nil, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, md.UnverifiedBody)
			}
			return err
		}
		cost(2, "sign", sign)
		cost(2, "sign again, the PIN is for one signature", sign)
		cost(2, "decrypt", decrypt)
		cost(1, "decrypt again", decrypt)
		if err := card.SetForceSig(ctx, false); err != nil {
			t.Fatal(err)
		}
		cost(2, "sign with the PIN for many", sign)
		cost(1, "sign again with the PIN for many", sign)
	}
}

func TestPrivateKeyInGoCrypto(t *testing.T) {
	ctx := t.Context()
	for _, kind := range []string{"rsa2048", "nistp256", "ed25519"} {
		soft, cert, _ := makeCard(t, kind, softcard.Config{})
		card := open(t, soft)
		e := bind(t, card, cert).Entity(ctx)
		if cert.PrivateKey != nil || cert.Subkeys[0].PrivateKey != nil {
			t.Error("the certificate was changed")
		}
		var sig bytes.Buffer
		if err := openpgp.DetachSign(&sig, e, strings.NewReader("x"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := openpgp.CheckDetachedSignature(openpgp.EntityList{cert}, strings.NewReader("x"), &sig, nil); err != nil {
			t.Error(err)
		}
		var msg bytes.Buffer
		w, err := openpgp.Encrypt(&msg, []*openpgp.Entity{cert}, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		w.Close()
		if _, err := openpgp.ReadMessage(&msg, openpgp.EntityList{e}, nil, nil); err != nil {
			t.Error(err)
		}
		// What go-crypto makes of a card's error, and where the error is.
		wrong := keycard.StaticPIN(keycard.PINString("000000"), nil)
		k, err := card.Key(ctx, keycard.SlotSign, wrong)
		if err != nil {
			t.Fatal(err)
		}
		p, err := pgp.PrivateKey(ctx, cert.PrimaryKey, k)
		if err != nil {
			t.Fatal(err)
		}
		e.PrivateKey = p
		if err := openpgp.DetachSign(io.Discard, e, strings.NewReader("x"), nil); err == nil {
			t.Errorf("%s: signature with a wrong PIN", kind)
		}
		if err := pgp.CardError(p); !errors.Is(err, keycard.ErrPIN) {
			t.Errorf("%s: %v", kind, err)
		}
		if _, err := pgp.PrivateKey(ctx, cert.Subkeys[0].PublicKey, k); kind != "rsa2048" && !errors.Is(err, keycard.ErrMismatch) {
			t.Errorf("%s: another key's packet: %v", kind, err)
		}
	}
}
