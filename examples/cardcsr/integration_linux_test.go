package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/internal/need"
)

// TestIntegrationOpenSSL lets openssl check requests and certificates.
func TestIntegrationOpenSSL(t *testing.T) {
	const feature = "cardpgp"
	need.Asked(t, feature)
	openssl := need.Commands(t, feature, "openssl")[0]
	dir := t.TempDir()
	check := func(want string, args ...string) {
		t.Helper()
		out, err := exec.Command(openssl, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("openssl %v: %v\n%s", args, err, out)
		}
	}
	for _, kind := range []string{"rsa2048", "nistp256", "nistp384", "nistp521", "ed25519"} {
		card := filepath.Join(dir, kind+".json")
		if _, err := opencard.MakeCard(card, filepath.Join(dir, kind+".asc"), kind, "gw"); err != nil {
			t.Fatal(err)
		}
		for _, slot := range []string{"auth", "sign"} {
			csr, crt := filepath.Join(dir, "gw.csr"), filepath.Join(dir, "gw.crt")
			var errs bytes.Buffer
			base := []string{"-reader", "soft:" + card, "-slot", slot, "-subject", "CN=gw.example.org,O=Example", "-dns", "gw.example.org", "-ip", "192.0.2.1"}
			if run(append(base, "-o", csr), nil, nil, &errs) != 0 {
				t.Fatal(errs.String())
			}
			check("verify OK", "req", "-in", csr, "-verify", "-noout")
			check("DNS:gw.example.org, IP Address:192.0.2.1", "req", "-in", csr, "-noout", "-text")
			if run(append(base, "-self-signed", "-o", crt), nil, nil, &errs) != 0 {
				t.Fatal(errs.String())
			}
			check(": OK", "verify", "-check_ss_sig", "-CAfile", crt, crt)
		}
	}
}
