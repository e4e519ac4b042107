package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"signalbox.example/keycard/replay"
	"signalbox.example/keycard/softcard"
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

// Record what a program and a card say to each other. PINs are masked.
func ExampleRecorder() {
	ctx := context.Background()
	var text bytes.Buffer
	r := replay.NewRecorder(softcard.MustNew(softcard.Config{Serial: 7}), &text)
	r.Comment("the login data")
	for _, cmd := range [][]byte{
		{0x00, 0xa4, 0x04, 0x00, 0x06, 0xd2, 0x76, 0x00, 0x01, 0x24, 0x01},
		{0x00, 0x20, 0x00, 0x82, 0x06, '1', '2', '3', '4', '5', '6'},
		{0x00, 0xca, 0x00, 0x5e, 0x00},
	} {
		if _, err := r.Transmit(ctx, cmd); err != nil {
			log.Fatal(err)
		}
	}
	if err := r.Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Print(text.String())
	// Output:
	// # the login data
	// > 00a4040006d27600012401
	// < 9000
	// > 0020008206xxxxxxxxxxxx
	// < 9000
	// > 00ca005e00
	// < 9000
}

// A recorded card in a test: what was not recorded is an error, and Rest tells
// how much of the recording lies behind the last command that was.
func ExamplePlayer() {
	s, err := replay.Parse(strings.NewReader(`
> 00a4040006d27600012401
< 9000
> 00ca004f00
< d276000124010304f1d00000000000009000
> 00ca005e00
< 616e6e619000
`))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	p := s.Play(replay.Loose)
	aid, err := p.Transmit(ctx, []byte{0x00, 0xca, 0x00, 0x4f, 0x00})
	fmt.Printf("%x %v, %d left\n", aid, err, p.Rest())
	_, err = p.Transmit(ctx, []byte{0x00, 0xca, 0x00, 0xc4, 0x00})
	fmt.Println(errors.Is(err, replay.ErrNoMatch))
	// Output:
	// d276000124010304f1d00000000000009000 <nil>, 1 left
	// true
}
