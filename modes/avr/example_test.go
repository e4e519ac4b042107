package avr_test

import (
	"fmt"
	"strings"

	"signalbox.example/modes/avr"
)

func ExampleDecoder() {
	var d avr.Decoder
	for f, err := range d.Frames(strings.NewReader("*8D406B902015A678D4D220AA4BDA;\n*7700;\n*5D4B1A2C1BE761;\n")) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(f.DF(), f)
	}
	fmt.Printf("%+v\n", d.Stats())
	// Output:
	// 17 8d406b902015a678d4d220aa4bda
	// 11 5d4b1a2c1be761
	// {Frames:2 Bad:1}
}
