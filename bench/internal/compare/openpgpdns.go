package compare

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var publishing = Section{
	Name: "openpgpdns", Title: "openpgpdns: publishing keys", Needs: "sq, gpg, gpgconf (gpg-wks-client besides) for the programs",
	Takes: 150 * time.Second, Pieces: []string{"parts"},
	Run: runPublishing,
}

// A programCost is a line of the log of TestComparePrograms.
type programCost struct {
	name      string
	wall, cpu float64 // ms
	memory    string  // peak, or ""
}

var costLine = regexp.MustCompile(`^(.*?):? +wall +([0-9.]+) ms, cpu +([0-9.]+) ms(?:, (\d+ MiB))?`)

// parseCosts reads "name:  wall 9356.0 ms, cpu 5222.0 ms, 137 MiB".
func parseCosts(out string) (all []programCost) {
	for line := range strings.Lines(out) {
		if m := logPrefix.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			if c := costLine.FindStringSubmatch(m[1]); c != nil {
				wall, err1 := strconv.ParseFloat(c[2], 64)
				cpu, err2 := strconv.ParseFloat(c[3], 64)
				if err1 == nil && err2 == nil {
					all = append(all, programCost{strings.TrimSpace(c[1]), wall, cpu, c[4]})
				}
			}
		}
	}
	return all
}

func runPublishing(r *Report) error {
	if _, err := r.Check("all three publish the same octets for each address", inBench, "go", "test", "-count=1", "-v", "-run", "TestAdaptersAgree", "./openpgpdns"); err != nil {
		return err
	}
	r.Modules("github.com/ProtonMail/go-crypto")
	length, count := "10x", "3"
	if r.Quick {
		length, count = "1x", "1"
	}
	all, err := r.Measure(inBench, "go", "test", "-run", "^$", "-bench", ".", "-benchtime", length, "-count", count, "./openpgpdns")
	if err != nil {
		return err
	}
	r.Printf("Processor time in one process: 1,000 certificates parsed and filtered for each address of a domain; the self-signatures of\n" +
		"200 certificates checked.\n")
	var rows [][]string
	for _, who := range []struct{ impl, title string }{{"signalbox", "signalbox"}, {"go-crypto-v1", "go-crypto, openpgp (verifies)"}, {"go-crypto-v2", "go-crypto, openpgp/v2 (does not)"}} {
		row := []string{who.title}
		for _, bench := range []string{"Filter", "Verify"} {
			b, base := Pick(all, bench, "impl="+who.impl), Pick(all, bench, "impl=signalbox")
			if b == nil || base == nil {
				row = append(row, "-", "")
				continue
			}
			v, ok1 := b.Median("cpu-ns/op")
			w, ok2 := base.Median("cpu-ns/op")
			if !ok1 || !ok2 {
				return fmt.Errorf("no processor time of %s", bench)
			}
			row = append(row, short(v/1e6)+" ms", times(v, w)+"x")
		}
		rows = append(rows, row)
	}
	r.Table([]string{"", "parse and filter", "to signalbox", "verify", "to signalbox"}, rows)

	own, err := r.Own("Filter|Reader|Hash|Text|Verify|ExportDANE", "./openpgpdns")
	if err != nil {
		return err
	}
	r.Piece("parts", own)

	r.NotRun("Hagrid, Mailvelope's key server, gpg's own WKD server", "servers with a database or mail; their publishing step cannot be timed alone")
	if r.Quick {
		r.NotRun("sq, gpg, gpg-wks-client", "this was a quick run")
		return nil
	}
	if why := lacks(false, "sq", "gpg", "gpgconf"); why != "" {
		r.NotRun("sq, gpg, gpg-wks-client", why)
		return nil
	}
	r.Packages("sq", "gpg")
	out, err := r.Check("our tree has the same names as sq's and no more octets; the DANE text is gpg's to the octet", inBench,
		"TMPDIR=%T", "SIGNALBOX_REQUIRE=peers", "go", "test", "-count=1", "-v", "-run", "TestComparePrograms", "./openpgpdns")
	if err != nil {
		return err
	}
	if strings.Contains(out, "no gpg-wks-client") {
		r.NotRun("gpg-wks-client", "not installed")
	}
	costs := parseCosts(out)
	if len(costs) == 0 {
		return fmt.Errorf("no figures in the log of TestComparePrograms\n%s", tail(out))
	}
	r.Printf("\nJobs done by programs and by the library, 10,000 certificates unless it says otherwise, in memory; medians:\n")
	rows = nil
	var bars []Bar
	for _, c := range costs {
		if strings.HasPrefix(c.name, "gpg --import") {
			continue // a preparation
		}
		rows = append(rows, []string{c.name, short(c.wall), short(c.cpu), c.memory})
		if name, ok := strings.CutPrefix(c.name, "WKD tree, "); ok {
			bars = append(bars, Bar{"", name, c.wall, short(c.wall) + " ms"})
		}
	}
	r.Table([]string{"job", "wall, ms", "CPU, ms", "peak memory"}, rows)
	return r.Plot("wkd", "WKD tree of 10,000 certificates", drawBars("A WKD tree of 10,000 certificates", "ms, wall", true, bars, nil))
}
