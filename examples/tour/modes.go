package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"signalbox.example/examples/adsb/recording"
	"signalbox.example/modes"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/track"
)

// modesSection demodulates built-in samples and shows the aircraft in them.
func modesSection(w io.Writer) error {
	var filter modes.AddressFilter
	d, err := demod.New(demod.Config{Format: demod.UC8, Rate: recording.Rate, Repair: demod.RepairOne, Filter: &filter})
	if err != nil {
		return err
	}
	table := track.New(track.Config{Filter: &filter})
	start := time.Unix(0, 0)
	var m modes.Message
	frames := 0
	for f, err := range d.Frames(bytes.NewReader(recording.UC8)) {
		if err != nil {
			return err
		}
		if modes.Decode(f, &m) == nil {
			table.Apply(f, &m, start.Add(f.Since()))
			frames++
		}
	}
	length := time.Duration(len(recording.UC8)/2) * time.Second / recording.Rate
	fmt.Fprintf(w, "%d frames in %d ms of samples\n\n", frames, length.Milliseconds())
	return table.WriteTable(w, start.Add(length))
}
