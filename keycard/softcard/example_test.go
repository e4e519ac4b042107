package softcard_test

import (
	"context"
	"fmt"
	"log"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// A card that goes away in the middle, to see what a program makes of it.
func ExampleConfig() {
	c := softcard.MustNew(softcard.Config{
		Fault: func(ctx context.Context, n int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
			if n == 2 {
				return nil, keycard.ErrRemoved
			}
			return process(cmd), nil
		},
	})
	card, err := keycard.Open(context.Background(), c)
	if err != nil {
		log.Fatal(err)
	}
	_, err = card.URL(context.Background())
	fmt.Println(err)
	// Output: card removed
}
