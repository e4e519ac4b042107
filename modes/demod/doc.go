// Package demod finds Mode S replies in the IQ samples of a receiver tuned to
// 1090 MHz.
//
//	d, err := demod.New(demod.Config{Format: demod.UC8, Rate: 2_400_000})
//	if err != nil { ... }
//	for f, err := range d.Frames(os.Stdin) {
//		if err != nil { ... }
//		fmt.Printf("%x at %d\n", f.Bytes(), f.Time12)
//	}
package demod
