package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/keycard"
)

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	card := "soft:" + filepath.Join(dir, "card.json")
	if _, err := opencard.MakeCard(filepath.Join(dir, "card.json"), filepath.Join(dir, "key.asc"), "nistp256", "gw"); err != nil {
		t.Fatal(err)
	}
	blank := "soft:" + filepath.Join(dir, "blank.json")
	for _, tt := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"-h", 0, "usage: cardcsr", ""},
		{"", 2, "", "want CN=name"},
		{"-subject CN=x extra", 2, "", "no arguments"},
		{"-subject CN=x -slot decrypt", 2, "", "does not sign"},
		{"-subject CN=x -slot attic", 2, "", "attic"},
		{"-subject X=x", 2, "", "no attribute"},
		{"-subject CN=x -store", 2, "", "-self-signed"},
		{"-subject CN=x -days 0", 2, "", "-days 0"},
		{"-subject CN=x -ip 1.2.3 -reader " + card, 1, "", "no IP address"},
		{"-subject CN=x -reader " + blank, 1, "", "no usable key"},
		{"-subject CN=x,O=y -dns a.example.org,b.example.org -ip 192.0.2.1,2001:db8::1 -email a@example.org -reader " + card, 0, "-----BEGIN CERTIFICATE REQUEST-----", ""},
		{"-subject CN=x -slot sign -self-signed -store -reader " + card, 0, "-----BEGIN CERTIFICATE-----", ""},
	} {
		var out, errs bytes.Buffer
		got := run(strings.Fields(tt.args), strings.NewReader(""), &out, &errs)
		if got != tt.status || !strings.Contains(out.String(), tt.stdout) || !strings.Contains(errs.String(), tt.stderr) {
			t.Errorf("%s: %d\n%s\n%s", tt.args, got, out.String(), errs.String())
		}
		if got != 0 && (out.Len() > 0 || strings.Count(errs.String(), "\n") != 1) {
			t.Errorf("%s: not one line: %q", tt.args, errs.String())
		}
		if strings.Contains(tt.stdout, "REQUEST") {
			p, _ := pem.Decode(out.Bytes())
			r, err := x509.ParseCertificateRequest(p.Bytes)
			if err != nil || r.Subject.String() != "CN=x,O=y" || len(r.DNSNames) != 2 || len(r.IPAddresses) != 2 || len(r.EmailAddresses) != 1 {
				t.Errorf("%v, %+v", err, r)
			}
		}
		if strings.Contains(tt.args, "-store") && got == 0 {
			p, _ := pem.Decode(out.Bytes())
			var f opencard.Flags
			c, err := f.Open(t.Context(), card)
			if err != nil {
				t.Fatal(err)
			}
			if b, err := c.Certificate(t.Context(), keycard.SlotSign); err != nil || !bytes.Equal(b, p.Bytes) {
				t.Errorf("%d octets on the card, %v", len(b), err)
			}
			c.Close()
		}
	}
}

func TestParseName(t *testing.T) {
	n, err := parseName(`CN=a\, b, O=x,OU=y,C=DE,L=z,ST=w`)
	if err != nil || n.CommonName != "a, b" || n.Organization[0] != "x" || n.Country[0] != "DE" {
		t.Errorf("%+v, %v", n, err)
	}
}

// Renaming over a link would replace it: /dev/stdout itself, for root.
func TestOutputIsNoLink(t *testing.T) {
	dir := t.TempDir()
	card := filepath.Join(dir, "card.json")
	if _, err := opencard.MakeCard(card, filepath.Join(dir, "key.asc"), "nistp256", "gw"); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "file"), link); err != nil {
		t.Skip(err)
	}
	var out, errs bytes.Buffer
	if status := run([]string{"-subject", "CN=x", "-reader", "soft:" + card, "-o", link}, strings.NewReader(""), &out, &errs); status != 1 || !strings.Contains(errs.String(), "not a regular file") {
		t.Errorf("status %d, %s", status, errs.String())
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is gone: %v", err)
	}
}
