package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var nat64Packets = Section{
	Name: "nat64", Title: "nat64: one packet", Takes: 40 * time.Second, Pieces: []string{"parts"}, Run: runNat64,
}

// An exchange is a line of the log of TestInterleaved: one size in one
// direction, and the nanoseconds of each way to translate it.
type exchange struct {
	size int
	way  string
	ns   map[string]float64
}

var (
	exchangeLine = regexp.MustCompile(`^ *(\d+) B 6->4=(true|false) +(.*)$`)
	exchangeWay  = regexp.MustCompile(`(\S+) ([0-9.]+) ns`)
)

// parseExchanges reads "66 B 6->4=true  eam=0 41.3 ns (6.3x)  gopacket 260 ns (1.0x)".
func parseExchanges(out string) (all []exchange) {
	for line := range strings.Lines(out) {
		m := logPrefix.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		if m = exchangeLine.FindStringSubmatch(m[1]); m == nil {
			continue
		}
		e := exchange{way: "6 to 4", ns: map[string]float64{}}
		if e.size, _ = strconv.Atoi(m[1]); m[2] == "false" {
			e.way = "4 to 6"
		}
		for _, w := range exchangeWay.FindAllStringSubmatch(m[3], -1) {
			if v, err := strconv.ParseFloat(w[2], 64); err == nil {
				e.ns[w[1]] = v
			}
		}
		all = append(all, e)
	}
	return all
}

func runNat64(r *Report) error {
	if _, err := r.Check("both make the same packets, identification aside", inBench, "go", "test", "-count=1", "-v", "-run", "TestSameAnswer", "./nat64"); err != nil {
		return err
	}
	r.Modules("github.com/google/gopacket")
	r.NotRun("Jool's, Tayga's and other C translators' inner loops", "not callable from Go; Tayga as a whole is in the section on the network bed")
	out, err := r.Command(inBench, "SIGNALBOX_RUN=nat64", "go", "test", "-count=1", "-v", "-run", "TestInterleaved", "./nat64")
	if err != nil {
		return err
	}
	all := parseExchanges(out)
	if len(all) == 0 {
		return fmt.Errorf("no figures in the log of TestInterleaved\n%s", tail(out))
	}
	var rows [][]string
	var bars []Bar
	ways := []struct{ key, title string }{
		{"gopacket", "gopacket, prefix only"}, {"eam=0", "signalbox, prefix only"}, {"eam=10000", "signalbox, 10,000 mappings"}, {"eam=1000000", "signalbox, 1,000,000 mappings"},
	}
	header := []string{"ns for one UDP packet"}
	for _, w := range ways {
		header = append(header, w.title)
	}
	for _, e := range all {
		row := []string{fmt.Sprintf("%s octets, %s", group(strconv.Itoa(e.size)), e.way)}
		for _, w := range ways {
			ns, ok := e.ns[w.key]
			if !ok {
				return fmt.Errorf("no figure of %s in the log of TestInterleaved\n%s", w.key, tail(out))
			}
			cell := short(ns)
			if w.key != "gopacket" {
				cell += " (" + times(e.ns["gopacket"], ns) + "x)"
			}
			row = append(row, cell)
			if e.way == "6 to 4" {
				bars = append(bars, Bar{row[0], w.title, ns, short(ns)})
			}
		}
		rows = append(rows, row)
	}
	r.Printf("The least of many blocks of a millisecond in which the ways take turns, 64 hosts; each figure of signalbox includes putting the\n" +
		"headers back. gopacket decodes, builds the other header and serialises; it knows the prefix alone. In brackets: how much faster.\n")
	r.Table(header, rows)
	if err := r.Plot("packet", "Nanoseconds for one packet", drawBars("One UDP packet, 6 to 4", "ns", false, byGroup(bars), nil)); err != nil {
		return err
	}
	all4, err := r.Measure(inBench, "go", "test", "-run", "^$", "-bench", "Translate/.*/eam=0$/size=66", "-benchtime", "2ms", "-cpu", "1", "./nat64")
	if err != nil {
		return err
	}
	var allocs []string
	for _, impl := range []string{"signalbox", "gopacket"} {
		if b := Pick(all4, "Translate", "impl="+impl, "way=4to6"); b != nil {
			v, _ := b.Least("allocs/op")
			allocs = append(allocs, impl+" "+whole(v))
		}
	}
	r.Printf("\nAllocations for a packet: %s.\n", strings.Join(slices.Compact(allocs), ", "))
	own, err := r.Own("ICMPError|Super|Zero", "./nat64")
	if err != nil {
		return err
	}
	r.Piece("parts", own)
	return nil
}
