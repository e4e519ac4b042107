package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"

	"signalbox.example/examples/internal/opencard"
)

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	card, cert := "soft:"+filepath.Join(dir, "card.json"), filepath.Join(dir, "key.asc")
	if _, err := opencard.MakeCard(filepath.Join(dir, "card.json"), cert, "ed25519", "Alice <alice@example.org>"); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.asc")
	if _, err := opencard.MakeCard(filepath.Join(dir, "other.json"), other, "ed25519", "Bob <bob@example.org>"); err != nil {
		t.Fatal(err)
	}
	pins := filepath.Join(dir, "pins")
	if err := os.WriteFile(pins, []byte("user=999999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	noPIN := filepath.Join(dir, "no-pin")
	if err := os.WriteFile(noPIN, []byte("admin=12345678\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"-h", 0, "usage: cardsign", ""},
		{"-x", 2, "", "not defined"},
		{"a b", 2, "", "too many arguments"},
		{"-clear -inline", 2, "", "together"},
		{"-reader " + card + " -cert " + cert + " -clear", 0, "-----BEGIN PGP SIGNED MESSAGE-----", ""},
		{"-reader " + card + " -cert " + cert + " -armor", 0, "-----BEGIN PGP SIGNATURE-----", ""},
		{"-reader " + card + " -cert " + cert + " -armor -text", 0, "-----END PGP SIGNATURE-----\n", ""},
		{"-reader " + card + " -cert " + cert + " -inline -armor", 0, "-----BEGIN PGP MESSAGE-----", ""},
		{"-reader " + card + " -cert " + other, 1, "", "key not on this card"},
		{"-reader " + card + " -cert " + cert + " -pin-file " + pins, 1, "", "wrong PIN"},
		{"-reader " + card + " -cert " + cert + " -armor -pin-file " + noPIN, 1, "", "no line user="},
		{"-reader " + card + " -cert " + cert + " -armor -text -pin-file " + noPIN, 1, "", "no line user="},
		{"-reader " + card + " -cert " + filepath.Join(dir, "none"), 1, "", "no such file"},
		{"-reader " + card + " -cert " + os.DevNull, 1, "", "no certificates in it"},
		{"-reader " + card, 1, "", "cardsign: keycard: "}, // no URL on the card
	} {
		var out, errs bytes.Buffer
		got := run(strings.Fields(tt.args), strings.NewReader("hello\n"), &out, &errs)
		if got != tt.status || !strings.Contains(out.String(), tt.stdout) || !strings.Contains(errs.String(), tt.stderr) {
			t.Errorf("%s: %d\n%s\n%s", tt.args, got, out.String(), errs.String())
		}
		if got != 0 && (out.Len() > 0 || strings.Count(errs.String(), "\n") != 1 || !strings.HasPrefix(errs.String(), "cardsign: ")) {
			t.Errorf("%s: not one line: %q, output %q", tt.args, errs.String(), out.String())
		}
	}
	// A message that could not be signed does not look complete.
	var cut, why bytes.Buffer
	if got := run(strings.Fields("-reader "+card+" -cert "+cert+" -inline -armor -pin-file "+noPIN), strings.NewReader("hello\n"), &cut, &why); got != 1 || strings.Contains(cut.String(), "-----END") {
		t.Errorf("inline: %d\n%s%s", got, cut.String(), why.String())
	}
	// A file, with the certificate from the card's URL.
	key, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(key) }))
	defer srv.Close()
	f := opencard.Flags{}
	c, err := f.Open(t.Context(), card)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetURL(t.Context(), srv.URL); err != nil {
		t.Fatal(err)
	}
	c.Close()
	letter := filepath.Join(dir, "letter")
	if err := os.WriteFile(letter, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	if run([]string{"-reader", card, letter}, nil, nil, &errs) != 0 {
		t.Fatal(errs.String())
	}
	sig, err := os.Open(letter + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	defer sig.Close()
	list, err := opencard.ReadCertificates(cert)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openpgp.CheckDetachedSignature(list, strings.NewReader("text"), sig, nil); err != nil {
		t.Error(err)
	}
}
