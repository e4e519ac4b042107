package compare

import (
	"fmt"
	"html"
	"image/color"
	"io"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

var palette = []color.RGBA{
	{0x1c, 0x7e, 0xd6, 255}, {0x2f, 0x9e, 0x44, 255}, {0xe6, 0x77, 0x00, 255}, {0x9c, 0x36, 0xb5, 255},
	{0xc9, 0x2a, 0x2a, 255}, {0x0b, 0x72, 0x85, 255}, {0x5c, 0x5f, 0x66, 255},
}

// A Line is one curve. A recorded one, drawn with dashes, was not measured in
// this run.
type Line struct {
	Name     string
	XY       plotter.XYs
	Recorded bool
}

// Axes describe a plot of curves.
type Axes struct {
	Title, X, Y string
	LogX, LogY  bool
	YMax        float64 // 0: what the curves need and room for the legend above
	LegendLow   bool    // at the bottom right
}

// drawLines draws curves.
func drawLines(a Axes, lines []Line) func(io.Writer) error {
	return func(w io.Writer) error {
		p := plot.New()
		p.Title.Text, p.X.Label.Text, p.Y.Label.Text = a.Title, a.X, a.Y
		p.Y.Min = 0
		if a.LogX {
			p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, powers{}
		}
		// Text is set to the left: viewers have other fonts than the one by
		// which its width was computed.
		if p.Legend.Top, p.Legend.Left = !a.LegendLow, true; a.LegendLow {
			p.Legend.XOffs, p.Legend.YOffs = 9.5*vg.Centimeter, 0.4*vg.Centimeter
		}
		p.Legend.TextStyle.Font.Size = vg.Points(9)
		p.Add(plotter.NewGrid())
		top, low := 0.0, math.Inf(1)
		for i, s := range lines {
			l, points, err := plotter.NewLinePoints(s.XY)
			if err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
			c := palette[i%len(palette)]
			l.Color, points.Color = c, c
			l.Width, points.Shape, points.Radius = vg.Points(1.5), draw.CircleGlyph{}, vg.Points(2)
			if s.Recorded {
				l.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
				points.Shape = draw.CrossGlyph{}
			}
			p.Add(l, points)
			p.Legend.Add(s.Name, l, points)
			for _, xy := range s.XY {
				top, low = max(top, xy.Y), min(low, xy.Y)
			}
		}
		if p.Y.Max = top * 1.4; a.YMax > 0 { // room for the legend
			p.Y.Max = a.YMax
		}
		if a.LogY {
			p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, powers{}
			p.Y.Min, p.Y.Max = low/2, top*20
		}
		svg := vgsvg.New(18*vg.Centimeter, 11*vg.Centimeter)
		p.Draw(draw.Crop(draw.New(svg), 4, -20, 4, -4))
		_, err := svg.WriteTo(w)
		return err
	}
}

// powers labels the powers of ten: 100, 1k, 10k.
type powers struct{}

func (powers) Ticks(low, high float64) []plot.Tick {
	ticks := plot.LogTicks{Prec: -1}.Ticks(low, high)
	for i := range ticks {
		v := ticks[i].Value
		if ticks[i].Label == "" {
			continue
		}
		switch {
		case v >= 1e6:
			ticks[i].Label = fmt.Sprintf("%gM", v/1e6)
		case v >= 1e3:
			ticks[i].Label = fmt.Sprintf("%gk", v/1e3)
		default:
			ticks[i].Label = fmt.Sprintf("%g", v)
		}
	}
	return ticks
}

// A Bar is one figure; bars of one group stand together.
type Bar struct {
	Group, Name string
	Value       float64
	Text        string // written at its end
}

// A Band marks recorded figures on the axis of the bars, from one to another.
type Band struct {
	Name     string
	From, To float64
}

// drawBars draws horizontal bars; with log they grow with the logarithm.
func drawBars(title, unit string, log bool, bars []Bar, bands []Band) func(io.Writer) error {
	const left, width, right, step = 250.0, 480.0, 130.0, 19.0
	return func(w io.Writer) error {
		if len(bars) == 0 {
			return fmt.Errorf("no bars")
		}
		top, low := 0.0, math.Inf(1)
		for _, b := range bars {
			top = max(top, b.Value)
			if b.Value > 0 {
				low = min(low, b.Value)
			}
		}
		for _, b := range bands {
			top = max(top, b.To)
		}
		at := func(v float64) float64 { return width * v / top }
		if log {
			low /= 2
			at = func(v float64) float64 { return width * math.Log(max(v, low)/low) / math.Log(top/low) }
		}
		var names []string // in the order of their colours
		colour := func(name string) string {
			i := 0
			for i < len(names) && names[i] != name {
				i++
			}
			if i == len(names) {
				names = append(names, name)
			}
			c := palette[i%len(palette)]
			return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B)
		}
		head := 34 + 15*float64(len(bands))
		y := head
		var body strings.Builder
		for i, b := range bars {
			if i == 0 || bars[i-1].Group != b.Group {
				if b.Group != "" {
					y += 8
					fmt.Fprintf(&body, `<text x="8" y="%.0f" font-weight="bold">%s</text>`+"\n", y+13, html.EscapeString(b.Group))
					y += step
				}
			}
			fmt.Fprintf(&body, `<text x="%.0f" y="%.0f" text-anchor="end">%s</text>`, left-8, y+13, html.EscapeString(b.Name))
			fmt.Fprintf(&body, `<rect x="%.0f" y="%.0f" width="%.1f" height="14" fill="%s"/>`, left, y+2, max(1, at(b.Value)), colour(b.Name))
			fmt.Fprintf(&body, `<text x="%.1f" y="%.0f">%s</text>`+"\n", left+max(1, at(b.Value))+5, y+13, html.EscapeString(b.Text))
			y += step
		}
		height := y + 10
		scale := ""
		if log {
			scale = ", logarithmic"
		}
		fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" font-family="sans-serif" font-size="12">`+"\n", left+width+right, height, left+width+right, height)
		fmt.Fprintf(w, `<rect width="100%%" height="100%%" fill="white"/><text x="8" y="20" font-size="15">%s (%s%s)</text>`+"\n", html.EscapeString(title), html.EscapeString(unit), scale)
		for i, b := range bands {
			x, wide := left+at(b.From), max(1.5, at(b.To)-at(b.From))
			fmt.Fprintf(w, `<rect x="%.1f" y="%.0f" width="%.1f" height="%.0f" fill="#868e96" fill-opacity="0.25"/>`, x, 30+15*float64(i), wide, height-40-15*float64(i))
			anchor := "start"
			if x += wide + 4; x > left+width/2 {
				x, anchor = x-wide-8, "end"
			}
			fmt.Fprintf(w, `<text x="%.1f" y="%.0f" font-size="11" text-anchor="%s" fill="#495057">%s</text>`+"\n", x, 41+15*float64(i), anchor, html.EscapeString(b.Name))
		}
		_, err := fmt.Fprintf(w, "%s</svg>\n", body.String())
		return err
	}
}
