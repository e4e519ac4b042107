package pcscd_test

import (
	"context"
	"fmt"
	"log"

	"signalbox.example/keycard"
	"signalbox.example/keycard/pcscd"
)

// Open the card in the first reader that has one.
func ExampleConnect() {
	ctx := context.Background()
	conn, err := pcscd.Connect(ctx, "", pcscd.Shared)
	if err != nil {
		log.Fatal(err)
	}
	card, err := keycard.Open(ctx, conn)
	if err != nil {
		log.Fatal(err)
	}
	defer card.Close()
	fmt.Println(conn.Reader(), card.Info().Ident())
}

// Print what is put into the readers.
func ExampleWatch() {
	for e, err := range pcscd.Watch(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Kind, e.Reader.Name)
	}
}
