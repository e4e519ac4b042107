package beast_test

import (
	"fmt"

	"signalbox.example/modes"
	"signalbox.example/modes/beast"
)

func ExampleDecoder() {
	f, _ := modes.ParseHex("5d1a1a2c1be761")
	f.Time12, f.HasTime = 12_000_000, true
	b := beast.Append(nil, &f)
	fmt.Printf("%x\n", b)
	var d beast.Decoder
	for _, c := range b { // any chunking
		d.Feed([]byte{c}, func(f *modes.Frame) { fmt.Println(f, f.Since()) })
	}
	// Output:
	// 1a32000000b71b00005d1a1a1a1a2c1be761
	// 5d1a1a2c1be761 1s
}
