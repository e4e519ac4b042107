package compare

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var card = Section{
	Name: "keycard", Title: "keycard: commands and time", Needs: "root; pcscd, vsmartcard-vpcd, libpcsclite1, gnupg, scdaemon, iproute2",
	Run: runCard,
}

// A count is the number of commands that a card got for one piece of work.
type count struct {
	what string
	n    int
}

var apduLine = regexp.MustCompile(`^(.*): (\d+) APDUs$`)

// parseCounts reads "25519: gpg sign cold: 26 APDUs".
func parseCounts(out string) (all []count) {
	for line := range strings.Lines(out) {
		if m := logPrefix.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			if c := apduLine.FindStringSubmatch(m[1]); c != nil {
				n, err := strconv.Atoi(c[2])
				if err == nil {
					all = append(all, count{c[1], n})
				}
			}
		}
	}
	return all
}

func runCard(r *Report) error {
	r.NotRun("yubico-piv-tool, go-piv", "another card application")
	r.NotRun("openpgp-card (Rust)", "not available as a package here")
	r.NotRun("real cards", "no reader here")
	if why := lacks(true, "pcscd", "gpg", "gpgconf", "ip"); why != "" {
		r.NotRun("all of it", why)
		return nil
	}
	r.Modules("github.com/gballet/go-libpcsclite")
	r.Packages("pcscd", "vsmartcard-vpcd", "gnupg", "scdaemon")
	out, err := r.Check("go-libpcsclite reads the same answers", inBench, "SIGNALBOX_REQUIRE=pcscd", "go", "test", "-count=1", "-v", "-run", "TestIntegrationCompare", "./keycard")
	if err != nil {
		return err
	}
	if !strings.Contains(out, "--- PASS: TestInsidePeerAgrees") {
		return fmt.Errorf("the check against go-libpcsclite did not run\n%s", tail(out))
	}
	var lines strings.Builder // the inner run's output is indented
	for line := range strings.Lines(out) {
		lines.WriteString(strings.TrimLeft(line, " "))
	}
	all := ParseBench(lines.String())
	metric := func(bench, unit string) (float64, error) {
		if b := Pick(all, bench); b != nil {
			if v, ok := b.Median(unit); ok {
				return v, nil
			}
		}
		return 0, fmt.Errorf("no %s of %s", unit, bench)
	}
	var rows [][]string
	for _, w := range []struct{ title, bench, ours, peer, theirs string }{
		{"one GET DATA through pcscd", "InsideRoundTrip", "signalbox-µs", "go-libpcsclite", "libpcsclite-µs"},
		{"status, warm", "InsideStatusAndSign", "status-µs", "gpg --card-status", "gpg-status-µs"},
		{"status, cold", "InsideStatusAndSign", "cold-status-µs", "gpg --card-status", "gpg-status-µs"},
		{"signature Ed25519, warm", "InsideStatusAndSign", "sign-µs", "gpg --detach-sign", "gpg-sign-µs"},
	} {
		a, err := metric(w.bench, w.ours)
		if err != nil {
			return err
		}
		b, err := metric(w.bench, w.theirs)
		if err != nil {
			return err
		}
		rows = append(rows, []string{w.title, short(a), w.peer, short(b), times(b, a) + "x"})
	}
	if v, err := metric("InsideSCD", "scd-µs"); err == nil {
		rows = append(rows, []string{"one GET DATA through gpg-agent and scdaemon", short(v), "-", "", ""})
	}
	start, err := metric("InsideStatusAndSign", "gpg-nothing-µs")
	if err != nil {
		return err
	}
	r.Printf("The software card behind vpcd and pcscd, medians in microseconds. gpg is measured with agent and scdaemon running; %s µs of\n"+
		"each of its figures are the start of the program (`gpg --version`).\n", short(start))
	r.Table([]string{"work", "signalbox, µs", "peer", "µs", "ratio"}, rows)

	if r.Quick {
		r.NotRun("the count of commands", "this was a quick run")
		return nil
	}
	out, err = r.Check("gpg and this library use the same card side by side, each sees what the other did", inRoot,
		"SIGNALBOX_REQUIRE=pcscd", "go", "test", "-count=1", "-v", "-run", "TestIntegrationStack", "./keycard")
	if err != nil {
		return err
	}
	counts := parseCounts(out)
	rows = nil
	var bars []Bar
	for _, w := range []struct{ work, ours, peers string }{
		{"status, cold", "cold status", "v3.4: gpg --card-status cold"},
		{"signature, cold", "cold sign", "25519: gpg sign cold"},
		{"signature, warm", "warm sign", "25519: gpg sign, scdaemon warm"},
		{"decryption, cold", "cold decrypt", "25519: gpg decrypt cold"},
	} {
		row := []string{w.work, "-", "-"}
		for i, name := range []string{w.ours, w.peers} {
			for _, c := range counts {
				if c.what == name {
					row[1+i] = strconv.Itoa(c.n)
					bars = append(bars, Bar{w.work, []string{"signalbox", "gpg"}[i], float64(c.n), row[1+i]})
				}
			}
		}
		rows = append(rows, row)
	}
	if len(bars) == 0 {
		return fmt.Errorf("no counts in the log of TestIntegrationStack\n%s", tail(out))
	}
	r.Printf("\nCommands (APDUs) that the card got for the same work, counted by the card:\n")
	r.Table([]string{"work", "signalbox", "gpg"}, rows)
	return r.Plot("commands", "Commands that the card gets", drawBars("Commands that the card gets", "APDUs", false, bars, nil))
}
