package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"

	"signalbox.example/examples/internal/opencard"
)

func encrypt(t *testing.T, text string, signer *openpgp.Entity, to ...*openpgp.Entity) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := openpgp.Encrypt(&b, to, signer, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	card, cert := "soft:"+filepath.Join(dir, "card.json"), filepath.Join(dir, "key.asc")
	alice, err := opencard.MakeCard(filepath.Join(dir, "card.json"), cert, "ed25519", "Alice <alice@example.org>")
	if err != nil {
		t.Fatal(err)
	}
	bob, err := openpgp.NewEntity("Bob", "", "bob@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	var pub bytes.Buffer
	if err := bob.Serialize(&pub); err != nil {
		t.Fatal(err)
	}
	friends := file("bob.pgp", pub.Bytes())
	plain := file("plain.pgp", encrypt(t, "hello", nil, alice))
	signed := file("signed.pgp", encrypt(t, "hello", bob, bob, alice))
	toBob := file("bob.msg", encrypt(t, "hello", nil, bob))
	broken := encrypt(t, strings.Repeat("hello", 100), nil, alice)
	broken[len(broken)-30] ^= 1
	damaged := file("damaged.pgp", broken)
	base := "-reader " + card + " -cert " + cert + " "
	for _, tt := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"-h", 0, "usage: carddecrypt", ""},
		{"", 2, "", "-cert is needed"},
		{base + "a b", 2, "", "more than one"},
		{base + plain, 0, "hello", "not signed"},
		{base + signed, 0, "hello", "unknown key"},
		{base + "-from " + friends + " " + signed, 0, "hello", "good signature by"},
		{base + "-from " + friends + " " + plain, 1, "", "not signed, not by one of"},
		{base + toBob, 1, "", "not encrypted to these keys"},
		{base + damaged, 1, "", "carddecrypt: "},
		{base + friends, 1, "", "carddecrypt: "},
		{"-reader " + card + " -cert " + os.DevNull + " " + plain, 1, "", "no certificates in it"},
		{base + "-from " + os.DevNull + " " + plain, 1, "", "no certificates in it"},
		{"-reader " + card + " -cert " + friends + " " + plain, 1, "", "key not on this card"},
	} {
		var out, errs bytes.Buffer
		got := run(strings.Fields(tt.args), strings.NewReader(""), &out, &errs)
		if got != tt.status || !strings.Contains(out.String(), tt.stdout) || !strings.Contains(errs.String(), tt.stderr) {
			t.Errorf("%s: %d\n%s\n%s", tt.args, got, out.String(), errs.String())
		}
		if got != 0 && (out.Len() > 0 || strings.Count(errs.String(), "\n") != 1) {
			t.Errorf("%s: not one line: %q, output %q", tt.args, errs.String(), out.String())
		}
	}
}
