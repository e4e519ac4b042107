package keycard_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// Make a key on a card and sign with it. With a real reader the first line is
// pcscd.Connect(ctx, "", pcscd.Shared).
func Example() {
	ctx := context.Background()
	conn := softcard.MustNew(softcard.Config{})
	pins := keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678"))
	card, err := keycard.Open(ctx, conn, keycard.WithPINs(pins))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()

	if _, err := card.Generate(ctx, keycard.SlotSign, keycard.EC(keycard.P256), keycard.KeyMeta{}); err != nil {
		log.Fatal(err)
	}
	key, err := card.Key(ctx, keycard.SlotSign, nil)
	if err != nil {
		log.Fatal(err)
	}
	digest := sha256.Sum256([]byte("hello"))
	sig, err := key.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(ecdsa.VerifyASN1(key.Public().(*ecdsa.PublicKey), digest[:], sig))
	// Output: true
}

func ExampleCard_Status() {
	ctx := context.Background()
	card, err := keycard.Open(ctx, softcard.MustNew(softcard.Config{Serial: 0x1234}))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	s, err := card.Status(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Info.Ident(), s.Info.PIN.PIN, s.Info.Keys[keycard.SlotSign].Algorithm)
	// Output: FFFE:00001234 3 rsa2048
}

// Ask the user for a PIN and show the touch on a real card.
func ExampleOpen() {
	ask := func(ctx context.Context, r keycard.PINRequest) (*keycard.PIN, error) {
		fmt.Printf("%v of card %s, %d tries left\n", r.Mode, r.Card, r.Retries)
		return keycard.NewPIN([]byte("123456")), nil // from the terminal, without echo
	}
	touch := func(slot keycard.Slot, waiting bool) {
		if waiting {
			fmt.Println("touch the card")
		}
	}
	ctx := context.Background()
	card, err := keycard.Open(ctx, softcard.MustNew(softcard.Config{Serial: 0x1234}),
		keycard.WithPINs(ask), keycard.WithTouch(time.Second, touch))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	if _, err := card.PrivateObject(ctx, 3); err != nil {
		log.Fatal(err)
	}
	// Output: PIN of card FFFE:00001234, 3 tries left
}

// Cold, four commands make a signature when the public key is known: SELECT,
// the card's data, the PIN, the signature. Each further one takes two. A card
// that may have a KDF is asked for it once, when it is opened.
func ExampleKey() {
	ctx := context.Background()
	conn := softcard.MustNew(softcard.Config{WithoutKDF: true})
	pins := keycard.WithPINs(keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678")))
	card, err := keycard.Open(ctx, conn, pins)
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	made, err := card.Generate(ctx, keycard.SlotSign, keycard.EC(keycard.Ed25519), keycard.KeyMeta{})
	if err != nil {
		log.Fatal(err)
	}

	again, err := keycard.Open(ctx, conn, pins) // another day
	if err != nil {
		log.Fatal(err)
	}
	defer again.Close()
	key, err := again.KeyFor(keycard.SlotSign, made.Key, nil)
	if err != nil {
		log.Fatal(err)
	}
	sig, err := key.Sign(nil, []byte("hello"), crypto.Hash(0))
	if err != nil {
		log.Fatal(err)
	}
	commands, _ := again.Count()
	fmt.Println(ed25519.Verify(key.Public().(ed25519.PublicKey), []byte("hello"), sig), commands)
	// Output: true 4
}

// Switch a card to hashed PINs. Its owner notices nothing.
func ExampleKDF() {
	ctx := context.Background()
	user, admin := keycard.PINString("123456"), keycard.PINString("12345678")
	card, err := keycard.Open(ctx, softcard.MustNew(softcard.Config{}))
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	kdf := keycard.NewKDF()
	kdf.Count = 100_000 // NewKDF's own takes longer than an example should
	if err := card.SetKDF(ctx, kdf, user, admin); err != nil {
		log.Fatal(err)
	}
	now, err := card.KDF(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.Active(), now.Count, len(now.Derive(keycard.PINUser, []byte("123456"))), "octets go to the card")
	fmt.Println(card.Verify(ctx, keycard.PINUser, user))
	// Output:
	// true 100000 32 octets go to the card
	// <nil>
}

// A key in software, put onto two cards as each other's backup.
func ExampleImportCopies() {
	ctx := context.Background()
	pins := keycard.WithPINs(keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678")))
	var cards []*keycard.Card
	for range 2 {
		c, err := keycard.Open(ctx, softcard.MustNew(softcard.Config{}), pins)
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		cards = append(cards, c)
	}
	key, err := keycardExampleKey()
	if err != nil {
		log.Fatal(err)
	}
	meta := keycard.KeyMeta{Created: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)}
	if _, err := keycard.ImportCopies(ctx, cards, keycard.SlotAuth, key, meta); err != nil {
		log.Fatal(err)
	}
	fmt.Println(keycard.CompareCopies(ctx, cards, keycard.SlotAuth))
	// Output: <nil>
}

func keycardExampleKey() (crypto.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}
