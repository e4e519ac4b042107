package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"signalbox.example/examples/internal/opencard"
)

func TestCommandLine(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	blank := filepath.Join(t.TempDir(), "blank")
	if err := os.WriteFile(blank, []byte("\nsecond line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"-h", 0, "usage: keyoffline", ""},
		{"", 2, "", "-out is needed"},
		{"x", 2, "", "no arguments"},
		{"-out x -cards 0", 2, "", "-cards 0"},
		{"-out x -reader a", 2, "", "say -yes"},
		{"-out x -fetch", 2, "", "needs -url"},
		{"-out " + full, 1, "", "keyoffline: " + full + " is not empty\n"},
		{"-out " + filepath.Join(t.TempDir(), "new") + " -cards 1 -passphrase-file " + blank, 1, "", "no passphrase"},
		{"-algorithm rot13 -out " + filepath.Join(t.TempDir(), "new"), 2, "", "rot13"},
		{"-algorithm brainpoolP256r1 -out " + filepath.Join(t.TempDir(), "new"), 2, "", "brainpool"},
	} {
		var out, errs bytes.Buffer
		got := run(strings.Fields(tt.args), strings.NewReader(""), &out, &errs)
		if got != tt.status || !strings.Contains(out.String(), tt.stdout) || !strings.Contains(errs.String(), tt.stderr) {
			t.Errorf("%s: %d\n%s\n%s", tt.args, got, out.String(), errs.String())
		}
		if got != 0 && strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: not one line: %q", tt.args, errs.String())
		}
	}
}

func TestWorkflow(t *testing.T) {
	pass := filepath.Join(t.TempDir(), "pass")
	if err := os.WriteFile(pass, []byte("open sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"", "-algorithm nistp256 -cards 2", "-algorithm nistp384 -cards 1", "-algorithm rsa2048 -cards 2 -passphrase-file " + pass} {
		if testing.Short() && strings.Contains(args, "rsa") {
			continue
		}
		dir := filepath.Join(t.TempDir(), "keys")
		var out, errs bytes.Buffer
		if run(append(strings.Fields(args), "-out", dir), strings.NewReader(""), &out, &errs) != 0 {
			t.Fatal(errs.String())
		}
		want := 3
		if strings.Contains(args, "-cards") {
			want = int(args[strings.Index(args, "-cards ")+7] - '0')
		}
		for _, re := range []string{
			`(?m)^made key [0-9A-F]{40}, Olivia Offline <olivia@example.org>$`,
			`(?m)^sec#  [0-9A-F]{40}  off line$`,
			`(?m)^ssb>  [0-9A-F]{40}  decrypt slot of FFFE:`, `(?m)^ssb>  [0-9A-F]{40}  sign slot of FFFE:`, `(?m)^ssb>  [0-9A-F]{40}  auth slot of FFFE:`,
		} {
			if !regexp.MustCompile(re).MatchString(out.String()) {
				t.Errorf("no %s in\n%s", re, out.String())
			}
		}
		if n := strings.Count(out.String(), "signs and decrypts with the key from http://127.0.0.1:"); n != want {
			t.Errorf("%d cards:\n%s", n, out.String())
		}
		list, err := opencard.ReadCertificates(filepath.Join(dir, "secret.asc"))
		if err != nil || list[0].PrivateKey == nil {
			t.Fatal(err)
		}
		if protected := strings.Contains(args, "passphrase"); list[0].PrivateKey.Encrypted != protected {
			t.Errorf("protected: %v", !protected)
		} else if protected {
			if err := list[0].DecryptPrivateKeys([]byte("open sesame")); err != nil {
				t.Error(err)
			}
		}
		if st, err := os.Stat(filepath.Join(dir, "secret.asc")); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", st.Mode(), err)
		}
		pub, err := opencard.ReadCertificates(filepath.Join(dir, "public.asc"))
		if err != nil {
			t.Fatal(err)
		}
		if k, ok := pub[0].SigningKey(list[0].PrimaryKey.CreationTime); !ok || k.PublicKey.KeyId == pub[0].PrimaryKey.KeyId {
			t.Error("the primary key is for signatures")
		}
		f, err := os.Open(filepath.Join(dir, "revocation.asc"))
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}
