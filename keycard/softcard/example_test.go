package softcard_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// A card that goes away in the middle, to see what a program makes of it.
func ExampleConfig() {
	c := softcard.MustNew(softcard.Config{
		Fault: func(ctx context.Context, n int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
			if n == 3 {
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

// A card that keeps its state in a file. Commands go in as they come from a
// reader; keycard.Open makes more of it.
func ExampleCard() {
	dir, err := os.MkdirTemp("", "softcard")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	for range 2 {
		c, err := softcard.New(softcard.Config{File: filepath.Join(dir, "card.json"), Serial: 7})
		if err != nil {
			log.Fatal(err)
		}
		var answers [][]byte
		for _, cmd := range []string{
			"00a4040006d27600012401",     // SELECT
			"00ca005e00",                 // GET DATA: login
			"00200083083132333435363738", // VERIFY the Admin PIN
			"00da005e04616e6e61",         // PUT DATA: login
		} {
			b, err := hex.DecodeString(cmd)
			if err != nil {
				log.Fatal(err)
			}
			r, err := c.Transmit(ctx, b)
			if err != nil {
				log.Fatal(err)
			}
			answers = append(answers, r)
		}
		fmt.Printf("%x, %d commands\n", answers, c.Commands())
		if err := c.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// [9000 9000 9000 9000], 4 commands
	// [9000 616e6e619000 9000 9000], 4 commands
}
