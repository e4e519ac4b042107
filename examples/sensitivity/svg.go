package main

import (
	"bytes"
	"fmt"
	"html"
)

// A panel is one diagram: per cent found over dB.
type panel struct {
	title, sub string
	curves     []curve
}

var colours = [...]string{"#4c78a8", "#54a24b", "#b279a2", "#e45756"}

// drawSVG draws panels below each other.
func drawSVG(snr []float64, panels []panel) []byte {
	const width, height, left, top, right, bottom = 640, 360, 56, 56, 110, 44
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		width, height*len(panels), width, height*len(panels))
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	lo, hi := snr[0], snr[len(snr)-1]
	if hi <= lo {
		hi = lo + 1
	}
	for i, p := range panels {
		y0 := float64(i * height)
		x := func(db float64) float64 { return left + (db-lo)/(hi-lo)*(width-left-right) }
		y := func(percent float64) float64 { return y0 + top + (100-percent)/100*(height-top-bottom) }
		fmt.Fprintf(&b, `<text x="%d" y="%.0f" font-size="14">%s</text>`+"\n", left, y0+20, html.EscapeString(p.title))
		fmt.Fprintf(&b, `<text x="%d" y="%.0f" fill="#555">%s</text>`+"\n", left, y0+38, html.EscapeString(p.sub))
		for v := 0.0; v <= 100; v += 25 {
			fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f %%</text>`+"\n", left, y(v), width-right, left-6, y(v)+4, v)
		}
		for _, db := range snr {
			fmt.Fprintf(&b, `<path d="M%.1f %.1fV%.1f" stroke="#eee"/><text x="%.1f" y="%.1f" text-anchor="middle">%g</text>`+"\n", x(db), y(100), y(0), x(db), y(0)+18, db)
		}
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">dB</text>`+"\n", x(hi)+24, y(0)+18)
		for c, k := range p.curves {
			colour := colours[c%len(colours)]
			fmt.Fprintf(&b, `<path fill="none" stroke="%s" stroke-width="2" d="`, colour)
			for j, t := range k.cells {
				fmt.Fprintf(&b, "%c%.1f %.1f", "ML"[min(j, 1)], x(snr[j]), y(t.percent()))
			}
			fmt.Fprintf(&b, `"/><text x="%d" y="%.1f" fill="%s">%s</text>`+"\n", width-right+8, y(95)+18*float64(c), colour, html.EscapeString(k.name))
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}
