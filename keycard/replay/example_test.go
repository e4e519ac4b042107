package replay_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"signalbox.example/keycard/replay"
)

func ExampleParse() {
	s, err := replay.Parse(strings.NewReader(`
# GET DATA: who made the card
> 00ca004f00
< d276000124010304f1d00000000000009000
`))
	if err != nil {
		log.Fatal(err)
	}
	r, err := s.Play(replay.Strict).Transmit(context.Background(), []byte{0x00, 0xca, 0x00, 0x4f, 0x00})
	fmt.Printf("%x %v\n", r, err)
	// Output: d276000124010304f1d00000000000009000 <nil>
}
