package compare

import (
	"strings"
	"time"
)

var modesSpeed = Section{
	Name: "modes", Title: "modes: speed", Needs: "dump1090-mutability, the vectors (modes1.bin)",
	Takes: 90 * time.Second, Pieces: []string{"parts"},
	Run: runModes,
}

func runModes(r *Report) error {
	if _, err := r.Check("both receivers find strong squitters, both count every message", inBench,
		"go", "test", "-count=1", "-v", "-run", "Adapters", "./modes"); err != nil {
		return err
	}
	if has("dump1090-mutability") {
		r.Packages("dump1090-mutability")
	} else {
		r.NotRun("dump1090-mutability", "not installed")
	}
	r.NotRun("readsb, stream1090, dump1090-fa", "no package here")
	count := "3"
	if r.Quick {
		count = "1"
	}
	all, err := r.Measure(inBench, "go", "test", "-run", "^$", "-bench", ".", "-benchtime", "1x", "-count", count, "./modes")
	if err != nil {
		return err
	}
	r.Printf("12 million samples of 8 bits at 2.4 Msps: noise alone, real dense air (1,900 messages a second), squitters at 14 dB (2,800 a second).\n" +
		"Millions of samples in a second of processor time on one core, times realtime, frames found; the best of the runs.\n")
	var rows [][]string
	var bars []Bar
	inputs := []string{"noise", "dense", "mid"}
	for _, who := range []struct{ name, parts string }{
		{"signalbox, fast", "impl=signalbox effort=fast"}, {"signalbox, default", "impl=signalbox effort=default"},
		{"signalbox, max", "impl=signalbox effort=max"}, {"dump1090-mutability --fix", "impl=dump1090-mutability"},
	} {
		row := []string{who.name}
		for _, in := range inputs {
			b := Pick(all, "IQ", append(strings.Fields(who.parts), "in="+in)...)
			if b == nil {
				row = append(row, "-")
				continue
			}
			speed, _ := b.Most("Msamples/s")
			realtime, _ := b.Most("x-realtime")
			frames, _ := b.Median("frames")
			row = append(row, short(speed)+" ("+short(realtime)+"x) "+group(whole(frames)))
			bars = append(bars, Bar{map[string]string{"noise": "noise alone", "dense": "dense air", "mid": "squitters at 14 dB"}[in], who.name, realtime, short(realtime)})
		}
		if strings.Trim(strings.Join(row[1:], ""), "-") != "" {
			rows = append(rows, row)
		}
	}
	r.Table([]string{"samples to frames", "noise", "dense", "mid"}, rows)
	if err := r.Plot("speed", "Samples to frames, times realtime", drawBars("Samples to frames on one core", "times realtime", false, byGroup(bars), nil)); err != nil {
		return err
	}
	rows = nil
	for _, who := range []struct{ name, impl string }{{"signalbox (avr, filter, decode, track)", "signalbox"}, {"dump1090-mutability --net-only", "dump1090-mutability"}} {
		if b := Pick(all, "Text", "impl="+who.impl); b != nil {
			v, _ := b.Most("Mmessages/s")
			rows = append(rows, []string{who.name, short(v)})
		}
	}
	r.Printf("\nAVR text of 1,000 aircraft into the aircraft table:\n")
	r.Table([]string{"text to aircraft", "million messages/s"}, rows)
	own, err := r.Own(".", "./modes", "./modes/track", "./modes/avr", "./modes/beast", "./modes/sbs")
	if err != nil {
		return err
	}
	r.Piece("parts", own)
	return nil
}

// byGroup sorts bars so that those of a group stand together, in the order
// in which the groups first appear.
func byGroup(bars []Bar) (out []Bar) {
	done := map[string]bool{}
	for _, b := range bars {
		if done[b.Group] {
			continue
		}
		done[b.Group] = true
		for _, c := range bars {
			if c.Group == b.Group {
				out = append(out, c)
			}
		}
	}
	return out
}
