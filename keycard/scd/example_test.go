package scd_test

import (
	"context"
	"fmt"
	"log"

	"signalbox.example/keycard"
	"signalbox.example/keycard/scd"
)

// Use the card that gpg is using.
func ExampleDial() {
	ctx := context.Background()
	conn, err := scd.Dial(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	card, err := keycard.Open(ctx, conn)
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	fmt.Println(card.Info().Ident())
}
