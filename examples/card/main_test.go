package main

import (
	"bytes"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// card runs the program on a software card kept in dir.
func card(t *testing.T, dir, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	args = append([]string{"-reader", "soft:" + filepath.Join(dir, "card.json"), "-pin-file", filepath.Join(dir, "pins")}, args...)
	code = run(args, strings.NewReader(stdin), &out, &err)
	return code, out.String(), err.String()
}

func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pins"), []byte("user=123456\nadmin=12345678\nreset-code=98765432\nnew=65432100\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func must(t *testing.T, code int, stdout, stderr string) string {
	t.Helper()
	if code != 0 {
		t.Fatalf("status %d: %s", code, stderr)
	}
	return stdout
}

func public(t *testing.T, out string) any {
	t.Helper()
	block, _ := pem.Decode([]byte(out[strings.Index(out, "-----"):]))
	p, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestKeyLife(t *testing.T) {
	dir := home(t)
	do := func(stdin string, args ...string) string {
		t.Helper()
		code, out, err := card(t, dir, stdin, args...)
		return must(t, code, out, err)
	}
	p := public(t, do("", "generate", "sign", "ed25519")).(ed25519.PublicKey)
	if sig := do("message", "sign"); !ed25519.Verify(p, []byte("message"), []byte(sig)) {
		t.Error("bad signature")
	}
	d := public(t, do("", "generate", "decrypt", "cv25519")).(*ecdh.PublicKey)
	e, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	want, err := e.ECDH(d)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(e.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	peer := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	if got := do(peer, "decrypt"); got != string(want) {
		t.Errorf("shared secret %x, want %x", got, want)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if der, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	do("", "import", "-created", "2023-11-14T22:13:20Z", "auth", file)
	log := filepath.Join(dir, "log.apdu")
	if sig := do("challenge", "log", log, "auth"); !ed25519.Verify(key.Public().(ed25519.PublicKey), []byte("challenge"), []byte(sig)) {
		t.Error("bad signature of the imported key")
	}
	if b, err := os.ReadFile(log); err != nil || !strings.Contains(string(b), "0020008206xxxxxxxxxxxx") || strings.Contains(string(b), "313233343536") {
		t.Errorf("log %v:\n%s", err, b)
	}
	do("", "holder", "-surname", "Berg", "-given", "Anna", "-url", "https://example.org/key")
	do("", "log", log, "status")
	for _, args := range [][]string{{"-reader", "replay:" + log, "status"}} {
		var out, errs bytes.Buffer
		if code := run(args, nil, &out, &errs); code != 0 {
			t.Fatal(errs.String())
		}
		for _, w := range []string{"Anna Berg", "https://example.org/key", "ed25519, generated", "ed25519, imported, created 2023-11-14 22:13:20", "tries left"} {
			if !strings.Contains(out.String(), w) {
				t.Errorf("no %q in\n%s", w, out.String())
			}
		}
		if strings.Contains(out.String(), "problem") {
			t.Error(out.String())
		}
	}
	var st statusJSON
	if err := json.Unmarshal([]byte(do("", "status", "-json")), &st); err != nil {
		t.Fatal(err)
	}
	if st.Cardholder != "Anna Berg" || st.Tries.PIN != 3 || st.Tries.Admin != 3 || !st.ForcedPIN || st.Signatures == nil || *st.Signatures != 1 || len(st.Problems) != 0 || len(st.Keys) < 3 ||
		len(st.Keys[0].Fingerprint) != 40 || st.Keys[0].Algorithm != "ed25519" || st.Keys[0].Origin != "generated" || st.Keys[2].Created != "2023-11-14T22:13:20Z" {
		t.Errorf("status -json: %+v", st)
	}
	do("", "cert", "sign", "write", file)
	if got := do("", "cert", "sign"); got != string(der) {
		t.Errorf("certificate %x", got)
	}
	do("", "pin", "-reset-code")
	do("", "pin")
	if code, _, err := card(t, dir, "x", "sign"); code != 1 || !strings.Contains(err, "wrong PIN (2 tries left)") || strings.Count(err, "\n") != 1 {
		t.Errorf("old PIN: %d %s", code, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pins"), []byte("user=65432100\nadmin=12345678\nreset-code=65432100\nnew=123456\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	do("x", "sign")
	do("", "unblock")
	do("", "reset", "-yes")
	if out := do("", "status"); !strings.Contains(out, "sign key ...........: [none]") {
		t.Error(out)
	}
}

func TestCommandLine(t *testing.T) {
	dir := home(t)
	for _, v := range []struct {
		args string
		code int
		want string // in stdout or stderr
	}{
		{"-h", 0, "usage: card"},
		{"sign -h", 0, "-hash"},
		{"status -json", 0, `"keys":[{"slot":"sign","algorithm":"rsa2048","origin":"none"`},
		{"", 2, "usage: card"},
		{"nothing", 2, `no command "nothing"`},
		{"-nothing", 2, "flag provided but not defined"},
		{"generate sign", 2, "generate: 1 arguments"},
		{"generate other ed25519", 2, `no slot "other"`},
		{"generate sign ed1", 2, `algorithm "ed1"`},
		{"sign -hash md5", 2, "sha256, sha384 or sha512"},
		{"reset", 2, "say -yes"},
		{"cert sign burn", 2, "cert: SLOT"},
		{"pin -admin -reset-code", 2, "not both"},
		{"log file", 2, "log: FILE COMMAND"},
		{"log file watch", 2, "cannot be recorded"},
		{"import sign /nonexistent", 1, "no such file"},
		{"decrypt", 1, "no usable key"},
	} {
		code, out, err := card(t, dir, "", strings.Fields(v.args)...)
		if code != v.code || !strings.Contains(out+err, v.want) {
			t.Errorf("card %s: %d, %q %q", v.args, code, out, err)
		}
		if code == 1 && (strings.Count(err, "\n") != 1 || !strings.HasPrefix(err, "card: ")) {
			t.Errorf("card %s: error %q", v.args, err)
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"-reader", "soft", "-pin-file", "/nonexistent", "pin"}, nil, &out, &errs); code != 1 {
		t.Errorf("%d %s", code, errs.String())
	}
}
