package compare

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

var card = Section{
	Name: "keycard", Title: "keycard: commands and time", Needs: "root; pcscd, vsmartcard-vpcd, libpcsclite1, gnupg, scdaemon, iproute2",
	Takes: 90 * time.Second, Pieces: []string{"parts"},
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

// countCommands counts the commands of this library for a cold status, a cold
// and a warm signature with Ed25519, and a cold decryption with X25519. Cold
// means that nothing is known of the card.
func countCommands(ctx context.Context) (n [4]int, err error) {
	card := softcard.MustNew(softcard.Config{WithoutKDF: true})
	pins := keycard.WithPINs(keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678")))
	c, err := keycard.Open(ctx, card, pins)
	if err != nil {
		return n, err
	}
	meta := keycard.KeyMeta{Created: time.Unix(1767225600, 0)}
	signer, err := c.Generate(ctx, keycard.SlotSign, keycard.EC(keycard.Ed25519), meta)
	if err != nil {
		return n, err
	}
	decrypter, err := c.Generate(ctx, keycard.SlotDecrypt, keycard.EC(keycard.X25519), meta)
	if err != nil {
		return n, err
	}
	if err := c.SetForceSig(ctx, false); err != nil {
		return n, err
	}
	counted := func(work func() error) int {
		before := card.Commands()
		err = errors.Join(err, work())
		return card.Commands() - before
	}
	cold := func(work func(c *keycard.Card) error) int {
		return counted(func() error {
			c, err := keycard.Open(ctx, card, pins)
			if err != nil {
				return err
			}
			return work(c)
		})
	}
	n[0] = cold(func(c *keycard.Card) error { _, err := c.Status(ctx); return err })
	var key *keycard.Key
	sign := func() error { _, err := key.SignRaw(ctx, []byte("message")); return err }
	n[1] = cold(func(c *keycard.Card) (err error) {
		if key, err = c.KeyFor(keycard.SlotSign, signer.Key, nil); err != nil {
			return err
		}
		return sign()
	})
	if err != nil {
		return n, err
	}
	n[2] = counted(sign)
	other, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return n, err
	}
	n[3] = cold(func(c *keycard.Card) error {
		k, err := c.KeyFor(keycard.SlotDecrypt, decrypter.Key, nil)
		if err != nil {
			return err
		}
		_, err = k.ECDH(other.PublicKey())
		return err
	})
	return n, err
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

	ours, err := countCommands(r.ctx)
	if err != nil {
		return fmt.Errorf("counting commands: %w", err)
	}
	gpgs := map[string]int{}
	if r.Quick {
		r.NotRun("the commands that gpg sends", "this was a quick run")
	} else {
		out, err = r.Check("gpg and this library use the same card side by side, each sees what the other did", inRoot,
			"SIGNALBOX_REQUIRE=pcscd", "go", "test", "-count=1", "-v", "-run", "TestIntegrationStack", "./keycard")
		if err != nil {
			return err
		}
		for _, c := range parseCounts(out) {
			gpgs[c.what] = c.n
		}
		if len(gpgs) == 0 {
			return fmt.Errorf("no counts in the log of TestIntegrationStack\n%s", tail(out))
		}
	}
	rows = nil
	var bars []Bar
	for i, w := range []struct{ work, gpg string }{
		{"status, cold", "v3.4: gpg --card-status cold"},
		{"signature, cold", "25519: gpg sign cold"},
		{"signature, warm", "25519: gpg sign, scdaemon warm"},
		{"decryption, cold", "25519: gpg decrypt cold"},
	} {
		row := []string{w.work, strconv.Itoa(ours[i]), "-"}
		bars = append(bars, Bar{w.work, "signalbox", float64(ours[i]), row[1]})
		if n, ok := gpgs[w.gpg]; ok {
			row[2] = strconv.Itoa(n)
			bars = append(bars, Bar{w.work, "gpg", float64(n), row[2]})
		}
		rows = append(rows, row)
	}
	r.Printf("\nCommands (APDUs) that the card got for the same work, counted by the card, which has no KDF:\n")
	r.Table([]string{"work", "signalbox", "gpg"}, rows)
	own, err := r.Own(".", "./keycard", "./keycard/softcard")
	if err != nil {
		return err
	}
	r.Piece("parts", own)
	return r.Plot("commands", "Commands that the card gets", drawBars("Commands that the card gets", "APDUs", false, bars, nil))
}
