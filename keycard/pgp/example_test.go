package pgp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"

	"signalbox.example/keycard"
	"signalbox.example/keycard/pgp"
	"signalbox.example/keycard/softcard"
)

// Make keys on a card, a certificate of them, and sign and decrypt. With a
// real reader the first line is pcscd.Connect(ctx, "", pcscd.Shared).
func Example() {
	ctx := context.Background()
	conn := softcard.MustNew(softcard.Config{})
	pins := keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678"))
	card, err := keycard.Open(ctx, conn, keycard.WithPINs(pins))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	for slot, a := range []keycard.Algorithm{keycard.EC(keycard.Ed25519), keycard.EC(keycard.X25519).For(keycard.SlotDecrypt)} {
		if _, err := card.Generate(ctx, keycard.Slot(slot), a, keycard.KeyMeta{}); err != nil {
			log.Fatal(err)
		}
	}
	b, _, err := pgp.NewCertificate(ctx, card, nil, pgp.CertificateOptions{UserIDs: []string{"Alice <alice@example.org>"}})
	if err != nil {
		log.Fatal(err)
	}

	var sig bytes.Buffer
	if err := b.DetachSign(ctx, &sig, strings.NewReader("hello"), nil); err != nil {
		log.Fatal(err)
	}
	cert := b.Certificate()
	_, err = openpgp.CheckDetachedSignature(openpgp.EntityList{cert}, strings.NewReader("hello"), &sig, nil)
	fmt.Println("good signature:", err == nil)

	var msg bytes.Buffer
	w, err := openpgp.Encrypt(&msg, []*openpgp.Entity{cert}, nil, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	io.WriteString(w, "a secret")
	w.Close()
	md, err := b.Decrypt(ctx, &msg, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	text, err := io.ReadAll(md.UnverifiedBody)
	fmt.Println(string(text), err)
	// Output:
	// good signature: true
	// a secret <nil>
}

// Find a certificate's keys on a card that somebody put in: no command is
// needed, as the card's fingerprints are known since Open.
func ExampleBinding() {
	ctx := context.Background()
	conn := softcard.MustNew(softcard.Config{Serial: 0x1234})
	pins := keycard.WithPINs(keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678")))
	card, err := keycard.Open(ctx, conn, pins)
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	if _, err := card.Generate(ctx, keycard.SlotSign, keycard.EC(keycard.Ed25519), keycard.KeyMeta{}); err != nil {
		log.Fatal(err)
	}
	made, _, err := pgp.NewCertificate(ctx, card, nil, pgp.CertificateOptions{UserIDs: []string{"Bob <bob@example.org>"}})
	if err != nil {
		log.Fatal(err)
	}
	cert := made.Certificate() // elsewhere it comes from a key ring

	again, err := keycard.Open(ctx, conn, pins) // another day
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	before, _ := again.Count()
	b, err := pgp.Bind(ctx, again, cert, nil)
	if err != nil {
		log.Fatal(err)
	}
	bound, _ := again.Count()
	_, _, decrypts := b.Key(keycard.SlotDecrypt)
	fmt.Println(b.Card().Info().Ident(), "primary:", b.Primary(), "decrypts:", decrypts)

	var sig bytes.Buffer
	if err := b.ArmoredDetachSign(ctx, &sig, strings.NewReader("hello"), nil); err != nil {
		log.Fatal(err)
	}
	signed, _ := again.Count()
	fmt.Println(bound-before, "commands to bind,", signed-bound, "to sign")
	fmt.Println(strings.SplitN(sig.String(), "\n", 2)[0])
	// Output:
	// FFFE:00001234 primary: true decrypts: false
	// 0 commands to bind, 2 to sign
	// -----BEGIN PGP SIGNATURE-----
}
