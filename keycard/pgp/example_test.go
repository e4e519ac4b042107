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
