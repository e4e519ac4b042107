package sbs_test

import (
	"fmt"
	"time"

	"signalbox.example/modes"
	"signalbox.example/modes/sbs"
)

func ExampleMessage() {
	f, _ := modes.ParseHex("8d406b902015a678d4d220aa4bda")
	var m modes.Message
	modes.Decode(&f, &m)
	var s sbs.Message
	if s.Fill(&m, modes.Opt[modes.LatLon]{}, time.Date(2024, 1, 2, 15, 4, 5, 0, time.UTC)) {
		fmt.Printf("%q\n", s.Append(nil))
	}
	// Output:
	// "MSG,1,1,1,406B90,1,2024/01/02,15:04:05.000,2024/01/02,15:04:05.000,EZY85MH,,,,,,,,,,,0\r\n"
}
