package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/internal/cardstack"
	"signalbox.example/internal/need"
)

// TestIntegrationGPG lets gpg verify what the command writes.
func TestIntegrationGPG(t *testing.T) {
	const feature = "cardpgp"
	need.Asked(t, feature)
	need.Commands(t, feature, "gpg", "gpg-agent", "gpgconf")
	for _, kind := range []string{"rsa2048", "nistp256", "nistp521", "ed25519"} {
		g := cardstack.NewHome(t, feature)
		card, cert := filepath.Join(g.Dir, "card.json"), filepath.Join(g.Dir, "key.asc")
		e, err := opencard.MakeCard(card, cert, kind, "Alice <alice@example.org>")
		if err != nil {
			t.Fatal(err)
		}
		g.GPG("", "--import", cert)
		file := g.File("file", []byte("line\nline\n"))
		valid := fmt.Sprintf("VALIDSIG %X", e.PrimaryKey.Fingerprint)
		for _, flags := range []string{"", "-armor", "-text -armor", "-clear", "-inline", "-inline -armor"} {
			out := filepath.Join(g.Dir, "out")
			args := append(strings.Fields(flags), "-reader", "soft:"+card, "-cert", cert, "-o", out, file)
			var errs bytes.Buffer
			if run(args, nil, nil, &errs) != 0 {
				t.Fatal(errs.String())
			}
			verify := []string{"--status-fd", "1", "--verify", out}
			if !strings.Contains(flags, "-clear") && !strings.Contains(flags, "-inline") {
				verify = append(verify, file)
			}
			if got := g.GPG("", verify...); !strings.Contains(got, valid) {
				t.Errorf("%s %s:\n%s", kind, flags, got)
			}
		}
	}
}
