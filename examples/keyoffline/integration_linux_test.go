package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/internal/cardstack"
	"signalbox.example/internal/need"
	"signalbox.example/keycard/softcard"
)

// TestIntegrationGPG gives gpg the public key and one of the three cards, in a
// virtual reader: it signs and decrypts.
func TestIntegrationGPG(t *testing.T) {
	const feature = "cardpgp"
	need.Asked(t, feature)
	if !cardstack.Inside(t, feature) {
		return
	}
	s := cardstack.Start(t)
	for _, algorithm := range []string{"ed25519", "nistp256", "rsa2048"} {
		dir := filepath.Join(t.TempDir(), "keys")
		var out, errs bytes.Buffer
		if run([]string{"-out", dir, "-algorithm", algorithm}, strings.NewReader(""), &out, &errs) != 0 {
			t.Fatal(errs.String())
		}
		list, err := opencard.ReadCertificates(filepath.Join(dir, "public.asc"))
		if err != nil {
			t.Fatal(err)
		}
		cert := list[0]
		fpr := fmt.Sprintf("%X", cert.PrimaryKey.Fingerprint)
		card, err := softcard.New(softcard.Config{File: filepath.Join(dir, "card-2.json")})
		if err != nil {
			t.Fatal(err)
		}
		remove := s.Insert(t, card, 0)
		g := cardstack.NewHome(t, feature)
		g.GPG("", "--import", filepath.Join(dir, "public.asc"))
		status := g.GPG("", "--card-status")
		for _, want := range []string{"Olivia Offline", "http://127.0.0.1:"} {
			if !strings.Contains(status, want) {
				t.Errorf("no %q in\n%s", want, status)
			}
		}
		if keys := g.GPG("", "--list-secret-keys", fpr); !strings.Contains(keys, "sec#") || strings.Count(keys, "ssb>") != 3 {
			t.Errorf("gpg lists\n%s", keys)
		}
		// gpg reads the stubs that were written here.
		stubs := g.GPG("", "--list-packets", filepath.Join(dir, "stubs.pgp"))
		if strings.Count(stubs, "gnu-divert-to-card") != 3 || strings.Count(stubs, "gnu-dummy") != 1 {
			t.Errorf("gpg sees\n%s", stubs)
		}
		text := g.File("text", []byte("by gpg\n"))
		sig := filepath.Join(g.Dir, "sig")
		g.GPG("", "--yes", "-u", fpr, "-o", sig, "-b", text)
		f, err := os.Open(sig)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := openpgp.CheckDetachedSignature(list, strings.NewReader("by gpg\n"), f, nil); err != nil {
			t.Errorf("%s: %v", algorithm, err)
		}
		f.Close()
		enc := filepath.Join(g.Dir, "enc")
		g.GPG("", "--trust-model", "always", "--yes", "-r", fpr, "-o", enc, "-e", text)
		if got := g.GPG("", "-q", "-d", enc); got != "by gpg\n" {
			t.Errorf("%s: gpg decrypted %q", algorithm, got)
		}
		// The revocation certificate and the secret key are good ones.
		g.Kill()
		h := cardstack.NewHome(t, feature)
		h.GPG("", "--import", filepath.Join(dir, "secret.asc"))
		h.GPG("", "--import", filepath.Join(dir, "revocation.asc"))
		if out := h.GPG("", "--with-colons", "--list-secret-keys", fpr); !strings.Contains(out, "sec:r:") {
			t.Errorf("not revoked:\n%s", out)
		}
		remove()
	}
}
