package synth_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"signalbox.example/modes/demod"
	"signalbox.example/modes/synth"
)

// Two transmitters on the air, noise, and what a receiver hears.
func ExampleAir() {
	air := synth.NewAir(2.4e6, 4800) // two milliseconds
	squitter := synth.Squitter(0x4840d6, 5, [7]byte{0x20, 0x2c, 0xc3, 0x71, 0xc3, 0x2c, 0xe0})
	reply := synth.AllCall(0x4b1a2c, 5, 0)
	air.Add(synth.Signal{Frame: squitter[:], Start: 200e-6, Amplitude: 0.5})
	air.Add(synth.Signal{Frame: reply[:], Start: 900e-6, Amplitude: 0.25, OffsetHz: 50e3})
	air.Noise(rand.New(rand.NewPCG(1, 2)), 2.0/128)

	d, err := demod.New(demod.Config{Format: demod.UC8, Rate: 2_400_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	for f, err := range d.Frames(bytes.NewReader(synth.AppendUC8(nil, air.IQ))) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("DF%d %x\n", f.DF(), f.Bytes())
	}
	// Output:
	// DF17 8d4840d6202cc371c32ce0576098
	// DF11 5d4b1a2c1be761
}
