package opencard

import (
	"context"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"signalbox.example/keycard"
	"signalbox.example/keycard/pgp"
	"signalbox.example/keycard/softcard"
)

// MakeCard makes a software card in a file, with three keys of an algorithm
// that are generated on it, and writes its certificate: what the tests of
// these examples start from.
func MakeCard(cardFile, certFile, algorithm, userID string) (*openpgp.Entity, error) {
	ctx := context.Background()
	a, err := keycard.ParseAlgorithm(algorithm)
	if err != nil {
		return nil, err
	}
	soft, err := softcard.New(softcard.Config{File: cardFile})
	if err != nil {
		return nil, err
	}
	card, err := keycard.Open(ctx, soft, keycard.WithPINs(keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678"))))
	if err != nil {
		return nil, err
	}
	defer card.Close()
	// In the past, so that nothing is newer than now.
	meta := keycard.KeyMeta{Created: time.Now().Add(-time.Minute)}
	for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
		if _, err := card.Generate(ctx, slot, a.For(slot), meta); err != nil {
			return nil, err
		}
	}
	b, _, err := pgp.NewCertificate(ctx, card, nil, pgp.CertificateOptions{UserIDs: []string{userID}})
	if err != nil {
		return nil, err
	}
	out, err := Create(certFile, nil)
	if err != nil {
		return nil, err
	}
	return b.Certificate(), out.Finish(pgp.WriteCertificate(out, b.Certificate()))
}
