package main

import (
	"image/color"
	"io"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"signalbox.example/bench/tunbed"
)

// drawShares shows, for each work and direction, the share of plain forwarding that
// each translator reached in its best round.
func drawShares(w io.Writer, cells []*tunbed.Cell) error {
	var labels, names []string
	for _, c := range cells {
		if l := c.Work + " " + c.Direction; !slices.Contains(labels, l) {
			labels = append(labels, l)
		}
		if c.Translator != "plain" && !slices.Contains(names, c.Translator) {
			names = append(names, c.Translator)
		}
	}
	p := plot.New()
	p.Title.Text = "Share of plain kernel forwarding"
	p.Y.Label.Text = "per cent"
	p.Y.Min = 0
	p.Legend.Top = true
	p.NominalX(labels...)
	p.X.Tick.Label.Rotation = -0.5
	p.X.Tick.Label.XAlign = draw.XLeft
	colors := []color.Color{color.RGBA{0x86, 0x8e, 0x96, 255}, color.RGBA{0x1c, 0x7e, 0xd6, 255}, color.RGBA{0x2f, 0x9e, 0x44, 255}, color.RGBA{0xe6, 0x77, 0x00, 255}, color.RGBA{0x9c, 0x36, 0xb5, 255}}
	width := vg.Points(60 / float64(max(len(names), 1)) / 2)
	for i, n := range names {
		values := make(plotter.Values, len(labels))
		for _, c := range cells {
			plain := tunbed.Find(cells, c.Work, c.Direction, "plain")
			if c.Translator == n && plain != nil {
				values[slices.Index(labels, c.Work+" "+c.Direction)] = 100 * c.Best(tunbed.Speed) / plain.Best(tunbed.Speed)
			}
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return err
		}
		bars.Color = colors[i%len(colors)]
		bars.LineStyle.Width = 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(names)-1)/2)
		p.Add(bars)
		p.Legend.Add(n, bars)
	}
	writer, err := p.WriterTo(28*vg.Centimeter, 12*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	_, err = writer.WriteTo(w)
	return err
}
