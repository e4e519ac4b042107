package main

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// keycardSection lets a card in software make a key and sign, and verifies the
// signature with the standard library.
func keycardSection(w io.Writer) error {
	ctx := context.Background()
	device, err := softcard.New(softcard.Config{Serial: 0x2bad1dea})
	if err != nil {
		return err
	}
	pins := keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678"))
	card, err := keycard.Open(ctx, device, keycard.WithPINs(pins))
	if err != nil {
		return err
	}
	defer card.Close()
	info := card.Info()
	fmt.Fprintf(w, "OpenPGP card %d.%d, number %s, %d tries for the PIN\n", info.Major, info.Minor, info.Ident(), info.PIN.PIN)

	created := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	pub, err := card.Generate(ctx, keycard.SlotSign, keycard.EC(keycard.Ed25519), keycard.KeyMeta{Created: created})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "made a key on the card: %v, fingerprint of 40 digits: %v\n", pub.Algorithm, len(pub.Fingerprint.String()) == 40)

	key, err := card.Key(ctx, keycard.SlotSign, nil)
	if err != nil {
		return err
	}
	before, _ := card.Count()
	message := []byte("The signalman pulls the lever.")
	sig, err := key.SignRaw(ctx, message)
	if err != nil {
		return err
	}
	after, _ := card.Count()
	fmt.Fprintf(w, "signed %d octets with %d commands\n", len(message), after-before)
	ok := ed25519.Verify(key.Public().(ed25519.PublicKey), message, sig)
	fmt.Fprintf(w, "the signature verifies: %v\n", ok)
	if !ok {
		return fmt.Errorf("bad signature")
	}
	err = card.Verify(ctx, keycard.PINUser, keycard.PINString("999999"))
	fmt.Fprintf(w, "a wrong PIN: %v\n", err)
	return nil
}
