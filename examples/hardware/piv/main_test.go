package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/internal/cardstack"
	"signalbox.example/internal/need"
	"signalbox.example/keycard/softcard"
)

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	card := filepath.Join(dir, "card.json")
	if _, err := opencard.MakeCard(card, card+".asc", "nistp256", "Alice"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args   string
		status int
		stderr string
	}{
		{"-h", 0, ""},
		{"", 2, "want piv:9a"},
		{"-key piv:ff", 2, "want piv:9a"},
		{"-key openpgp:decrypt", 2, "want openpgp:sign"},
		{"-key openpgp:sign a b", 2, "more than one"},
		{"-key openpgp:sign -reader soft:" + filepath.Join(dir, "blank.json"), 1, "no usable key"},
		{"-key openpgp:sign -reader soft:" + card, 0, ""},
		{"-key openpgp:auth -reader soft:" + card, 0, ""},
	} {
		var out, errs bytes.Buffer
		got := run(strings.Fields(tt.args), strings.NewReader("x"), &out, &errs)
		if got != tt.status || !strings.Contains(errs.String(), tt.stderr) || got == 0 && out.Len() == 0 {
			t.Errorf("%s: %d\n%s", tt.args, got, errs.String())
		}
	}
}

// openssl verifies a signature over the file.
func openssl(t *testing.T, pub, sig, file string) {
	t.Helper()
	if out, err := exec.Command("openssl", "dgst", "-sha256", "-verify", pub, "-signature", sig, file).CombinedOutput(); err != nil || !strings.Contains(string(out), "Verified OK") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestIntegrationReaders: piv-go and our client on the same pcscd.
func TestIntegrationReaders(t *testing.T) {
	const feature = "cardpgp"
	need.Asked(t, feature)
	need.Commands(t, feature, "openssl")
	if !cardstack.Inside(t, feature) {
		return
	}
	s := cardstack.Start(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("signed by some card"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, kind := range []string{"rsa2048", "nistp256"} {
		state := filepath.Join(dir, kind+".json")
		if _, err := opencard.MakeCard(state, state+".asc", kind, "Alice"); err != nil {
			t.Fatal(err)
		}
		card, err := softcard.New(softcard.Config{File: state})
		if err != nil {
			t.Fatal(err)
		}
		remove := s.Insert(t, card, 0)
		var out, errs bytes.Buffer
		if run([]string{"-list"}, nil, &out, &errs) != 0 || !strings.Contains(out.String(), cardstack.Readers[0]+"\n") {
			t.Errorf("readers %q, %s", out.String(), errs.String())
		}
		pins := filepath.Join(dir, "pins")
		if err := os.WriteFile(pins, []byte("user=123456\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		pub, sig := filepath.Join(dir, "pub"), filepath.Join(dir, "sig")
		for _, slot := range []string{"sign", "auth"} {
			if run([]string{"-key", "openpgp:" + slot, "-reader", cardstack.Readers[0], "-pin-file", pins, "-pub", pub, "-o", sig, file}, nil, nil, &errs) != 0 {
				t.Fatal(errs.String())
			}
			openssl(t, pub, sig, file)
		}
		// An OpenPGP card is no PIV card, and says so in one line. Last, since
		// piv-go keeps the reader for itself when it does not find one.
		errs.Reset()
		if i == 1 && (run([]string{"-key", "piv:9c", "-reader", cardstack.Readers[0], file}, nil, nil, &errs) != 1 ||
			!strings.Contains(errs.String(), "no PIV card") || strings.Count(errs.String(), "\n") != 1) {
			t.Errorf("%q", errs.String())
		}
		remove()
	}
}
