package track_test

import (
	"os"
	"time"

	"signalbox.example/modes"
	"signalbox.example/modes/track"
)

func ExampleTracker() {
	t := track.New(track.Config{})
	now := time.Unix(1_700_000_000, 0)
	for _, hex := range []string{
		"8d40621d58c382d690c8ac2863a7", "8d40621d58c386435cc412692ad6", // even and odd
		"8d406b902015a678d4d220aa4bda", "8d406b909945de10000405999be4",
	} {
		f, _ := modes.ParseHex(hex)
		t.Update(&f, now)
		now = now.Add(time.Second)
	}
	t.WriteTable(os.Stdout, now)
	// Output:
	// Hex     Flight    Altitude  Speed   Lat       Lon       Track  Messages  Seen
	// -----------------------------------------------------------------------------
	// 40621d            38000             52.266    3.939            2         3
	// 406b90  EZY85MH             494                         285    2         1
}
