package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/internal/cardstack"
	"signalbox.example/internal/need"
)

// TestIntegrationGPG opens what gpg encrypted and signed.
func TestIntegrationGPG(t *testing.T) {
	const feature = "cardpgp"
	need.Asked(t, feature)
	need.Commands(t, feature, "gpg", "gpg-agent", "gpgconf")
	g := cardstack.NewHome(t, feature)
	g.GPG("", "--passphrase", "", "--quick-gen-key", "Gina <gina@example.org>", "ed25519", "sign", "never")
	friends := g.File("gina.pgp", []byte(g.GPG("", "--armor", "--export", "gina@example.org")))
	for _, kind := range []string{"rsa2048", "nistp256", "nistp521", "ed25519"} {
		card, cert := filepath.Join(g.Dir, kind+".json"), filepath.Join(g.Dir, kind+".asc")
		if _, err := opencard.MakeCard(card, cert, kind, kind+" <"+kind+"@example.org>"); err != nil {
			t.Fatal(err)
		}
		g.GPG("", "--import", cert)
		in, enc := g.File("in", []byte("from gpg\n")), filepath.Join(g.Dir, "enc")
		for _, flags := range [][]string{{"-se"}, {"-se", "--armor"}, {"-s", "--hidden-recipient", kind + "@example.org", "-e"}} {
			args := []string{"--trust-model", "always", "--yes", "-o", enc}
			if len(flags) < 3 {
				args = append(args, "-r", kind+"@example.org")
			}
			g.GPG("", append(append(args, flags...), in)...)
			var out, errs bytes.Buffer
			if run([]string{"-reader", "soft:" + card, "-cert", cert, "-from", friends, enc}, nil, &out, &errs) != 0 || out.String() != "from gpg\n" {
				t.Errorf("%s %v: %q\n%s", kind, flags, out.String(), errs.String())
			}
		}
	}
}
