package tunbed

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// A Cell is all rounds of one work in one direction through one translator.
type Cell struct {
	Work, Direction, Translator string
	Rounds                      []Result
}

// Table groups results in the order in which they first appeared.
func Table(results []Result) []*Cell {
	var cells []*Cell
	for _, r := range results {
		i := slices.IndexFunc(cells, func(c *Cell) bool {
			return c.Work == r.Work && c.Direction == r.Direction && c.Translator == r.Translator
		})
		if i < 0 {
			cells = append(cells, &Cell{Work: r.Work, Direction: r.Direction, Translator: r.Translator})
			i = len(cells) - 1
		}
		cells[i].Rounds = append(cells[i].Rounds, r)
	}
	return cells
}

// Find returns the cell of a work, direction and translator, or nil.
func Find(cells []*Cell, work, direction, translator string) *Cell {
	for _, c := range cells {
		if c.Work == work && c.Direction == direction && c.Translator == translator {
			return c
		}
	}
	return nil
}

func (c *Cell) figures(f func(Result) float64) []float64 {
	v := make([]float64, len(c.Rounds))
	for i, r := range c.Rounds {
		v[i] = f(r)
	}
	slices.Sort(v)
	return v
}

// Best returns the largest figure of the rounds.
func (c *Cell) Best(f func(Result) float64) float64 {
	v := c.figures(f)
	return v[len(v)-1]
}

// Least returns the smallest figure of the rounds.
func (c *Cell) Least(f func(Result) float64) float64 { return c.figures(f)[0] }

// Median returns the middle figure of the rounds.
func (c *Cell) Median(f func(Result) float64) float64 {
	v := c.figures(f)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Speed is the figure by which a work is judged: Mbps for TCP, delivered
// kilopackets a second for UDP.
func Speed(r Result) float64 {
	if r.Kpps > 0 {
		return r.Kpps
	}
	return r.Mbps
}

// Mean makes one result of two runs of the same work: the mean of their
// speeds, the sum of what they carried and what it cost.
func Mean(a, b Result) Result {
	a.Mbps, a.Kpps, a.SentKpps = (a.Mbps+b.Mbps)/2, (a.Kpps+b.Kpps)/2, (a.SentKpps+b.SentKpps)/2
	a.TranslatorCPU += b.TranslatorCPU
	a.MachineCPU += b.MachineCPU
	a.Seconds += b.Seconds
	a.Bytes += b.Bytes
	a.Packets += b.Packets
	a.Retransmits += b.Retransmits
	return a
}

// TranslatorCost is the translator's own CPU: ms per GB for TCP, ns per
// delivered packet for UDP.
func TranslatorCost(r Result) float64 {
	if r.Packets > 0 {
		return float64(r.TranslatorCPU.Nanoseconds()) / r.Packets
	}
	return PerGB(r.TranslatorCPU, r.Bytes)
}

// MachineCost is the same for all processors and processes.
func MachineCost(r Result) float64 {
	if r.Packets > 0 {
		return float64(r.MachineCPU.Nanoseconds()) / r.Packets
	}
	return PerGB(r.MachineCPU, r.Bytes)
}

// WriteMarkdown writes the table: best and median speed, share of plain
// forwarding, ratio to Tayga (both of the best rounds), and what it cost.
func WriteMarkdown(w io.Writer, cells []*Cell, plain, peer string) {
	fmt.Fprintln(w, "| work | data | translator | best | median | unit | of plain | x "+peer+" | own CPU | all CPU | unit |")
	fmt.Fprintln(w, "|---|---|---|---:|---:|---|---:|---:|---:|---:|---|")
	for _, c := range cells {
		unit, cost := "Mbps", "ms/GB"
		if c.Rounds[0].Packets > 0 {
			unit, cost = "kpps", "ns/packet"
		}
		share, ratio := "", ""
		if p := Find(cells, c.Work, c.Direction, plain); p != nil && p != c {
			share = fmt.Sprintf("%.0f %%", 100*c.Best(Speed)/p.Best(Speed))
		}
		if p := Find(cells, c.Work, c.Direction, peer); p != nil && p != c && c.Translator != plain {
			ratio = fmt.Sprintf("%.1f", c.Best(Speed)/p.Best(Speed))
		}
		own := ""
		if v := c.Least(TranslatorCost); v > 0 {
			own = fmt.Sprintf("%.0f", v)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %.0f | %.0f | %s | %s | %s | %s | %.0f | %s |\n",
			c.Work, c.Direction, c.Translator, c.Best(Speed), c.Median(Speed), unit, share, ratio, own, c.Least(MachineCost), cost)
	}
}

// WriteCSV writes every run.
func WriteCSV(w io.Writer, results []Result) error {
	out := csv.NewWriter(w)
	out.Write([]string{"round", "work", "data", "translator", "mbps", "kpps", "sent_kpps", "seconds", "bytes", "packets", "translator_cpu_ms", "machine_cpu_ms", "retransmits"})
	num := func(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
	for _, r := range results {
		out.Write([]string{strconv.Itoa(r.Round), r.Work, r.Direction, r.Translator, num(r.Mbps), num(r.Kpps), num(r.SentKpps), num(r.Seconds), num(r.Bytes), num(r.Packets),
			strconv.FormatInt(r.TranslatorCPU.Milliseconds(), 10), strconv.FormatInt(r.MachineCPU.Milliseconds(), 10), strconv.Itoa(r.Retransmits)})
	}
	out.Flush()
	return out.Error()
}
