package keycard_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"signalbox.example/internal/need"
	"signalbox.example/internal/vectors"
	"signalbox.example/keycard"
	"signalbox.example/keycard/pcscd"
	"signalbox.example/keycard/scd"
	"signalbox.example/keycard/softcard"
)

const feature = "pcscd"

// inside is set in the process that runs in its own namespaces.
const inside = "SIGNALBOX_KEYCARD_INSIDE"

// TestIntegrationStack runs real gpg, scdaemon and pcscd against the software
// card behind vpcd's virtual readers. pcscd's socket and vpcd's ports, which
// listen on every interface, are kept apart from the machine by a network and
// a mount namespace: the test runs itself again inside.
func TestIntegrationStack(t *testing.T) {
	need.Asked(t, feature)
	need.Root(t, feature)
	need.Commands(t, feature, "pcscd", "gpg", "gpg-agent", "gpgconf", "gpg-connect-agent", "ip")
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestIntegrationStack$", "-test.v", "-test.timeout=170s")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	s := newStack(t)
	t.Run("status", s.status)
	t.Run("pins", s.pins)
	t.Run("generate", s.generate)
	for _, kind := range []string{"c25519", "p256", "rsa2048"} {
		for _, p := range []string{"v3.4", "v3.4 chaining", "v2.0"} {
			if p == "v2.0" && kind != "rsa2048" {
				continue
			}
			t.Run("keytocard/"+kind+"/"+p, func(t *testing.T) { s.keyToCard(t, kind, personalities[p]) })
		}
	}
	t.Run("certificate", s.certificate)
	t.Run("kdf", s.kdf)
	t.Run("reset", s.reset)
	t.Run("client", s.client)
	t.Run("beside gpg", s.besideGPG)
	t.Run("watch", s.watch)
	t.Run("transactions", s.transactions)
	t.Run("cancel", s.cancel)
	t.Run("removed", s.removed)
	t.Run("budget", s.budget)
}

// stack is a running pcscd with two virtual readers.
type stack struct{ dir string }

const (
	reader0 = "Virtual PCD 00 00"
	port0   = "127.0.0.1:35963"
	reader1 = "Virtual PCD 00 01"
	port1   = "127.0.0.1:35964"
)

func newStack(t *testing.T) *stack {
	t.Helper()
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(pcscd.DefaultSocket)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	s := &stack{t.TempDir()}
	log, err := os.Create(filepath.Join(s.dir, "pcscd.log"))
	if err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("pcscd", "-f")
	daemon.Stdout, daemon.Stderr = log, log
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		daemon.Process.Signal(syscall.SIGTERM)
		daemon.Wait()
		log.Close()
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("pcscd: %s", b)
		}
	})
	until(t, 10*time.Second, "two readers", func() bool {
		r, err := pcscd.Readers(t.Context())
		return err == nil && len(r) == 2
	})
	return s
}

// until polls; it is a bound on hanging, not a measurement.
func until(t *testing.T, bound time.Duration, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("no %s within %v", what, bound)
}

// insert puts a card into a reader and waits until pcscd sees it. The card
// comes out at the end of the test or when the function is called.
func (s *stack) insert(t *testing.T, c *softcard.Card, reader, port string) (remove func()) {
	t.Helper()
	present := func(want bool) func() bool {
		return func() bool {
			list, err := pcscd.Readers(t.Context())
			if err != nil {
				return false
			}
			for _, r := range list {
				if r.Name == reader {
					return r.Present == want && (!want || r.ATR != nil)
				}
			}
			return false
		}
	}
	until(t, 20*time.Second, "empty reader", present(false))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.ServeVPCD(ctx, port) }()
	until(t, 20*time.Second, "card in the reader", present(true))
	once := false
	remove = func() {
		if once {
			return
		}
		once = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ServeVPCD: %v", err)
		}
	}
	t.Cleanup(remove)
	return remove
}

// gnupg is a home directory of gpg with a script for a pinentry.
type gnupg struct {
	dir string
	t   *testing.T
}

// pinentry answers each request by its prompt from the file pins, and notes
// the prompts in the file asked.
const pinentry = `#!/bin/sh
d=$(dirname "$0")
echo OK
prompt= repeat= desc=
while read -r cmd rest; do
  case $cmd in
    SETPROMPT) prompt=${rest%:}; echo OK ;;
    SETDESC) desc=$rest; echo OK ;;
    SETREPEAT) repeat=1; echo OK ;;
    GETPIN)
      echo "$prompt|$repeat|$desc" >>"$d/asked"
      [ -n "$repeat" ] && echo "S PIN_REPEATED"
      case $desc in New*|Repeat*) prompt="New $prompt" ;; *"the Reset Code"*) prompt="Reset Code" ;; esac
      echo "D $(sed -n "s/^$prompt=//p" "$d/pins" | head -n 1)"
      echo OK
      repeat= ;;
    BYE) echo OK; exit 0 ;;
    *) echo OK ;;
  esac
done
`

func (s *stack) gnupg(t *testing.T, shared bool) *gnupg {
	t.Helper()
	// Short, for the agent's socket, and removed when the agent is gone.
	dir, err := os.MkdirTemp("", "kc")
	if err != nil {
		t.Fatal(err)
	}
	g := &gnupg{dir, t}
	lib, err := filepath.Glob("/usr/lib/*/libpcsclite.so.1")
	if err != nil || len(lib) == 0 {
		need.Missing(t, feature, "needs libpcsclite.so.1")
	}
	conf := fmt.Sprintf("disable-ccid\npcsc-driver %s\nreader-port %s\n", lib[0], reader0)
	if shared {
		conf += "pcsc-shared\n"
	}
	for name, text := range map[string]string{
		"scdaemon.conf":  conf,
		"gpg-agent.conf": "pinentry-program " + filepath.Join(dir, "pinentry") + "\n",
		"gpg.conf":       "no-tty\nbatch\n",
		"pins":           "PIN=123456\nAdmin PIN=12345678\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "pinentry"), []byte(pinentry), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		g.kill()
		os.RemoveAll(dir)
	})
	return g
}

func (g *gnupg) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(g.t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+g.dir, "LC_ALL=C", "LANG=C")
	return cmd
}

// run runs a command and fails the test if it fails.
func (g *gnupg) run(stdin string, name string, args ...string) string {
	g.t.Helper()
	cmd := g.command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		asked, _ := os.ReadFile(filepath.Join(g.dir, "asked"))
		g.t.Fatalf("%s %v: %v\n%s\nasked: %s", name, args, err, out, asked)
	}
	return string(out)
}

// interactive runs one of gpg's menus with these lines.
func (g *gnupg) interactive(lines string, args ...string) string {
	g.t.Helper()
	return g.run(lines, "gpg", append([]string{"--no-batch", "--expert", "--status-fd", "2", "--command-fd", "0"}, args...)...)
}

// edit runs gpg --card-edit as admin.
func (g *gnupg) edit(lines string) string {
	g.t.Helper()
	return g.interactive("admin\n"+lines+"\nquit\n", "--card-edit")
}

// kill ends agent and scdaemon, so that PINs are forgotten, and waits until
// the readers are let go, which comes a moment later.
func (g *gnupg) kill() {
	g.t.Helper()
	cmd := exec.Command("gpgconf", "--kill", "all")
	cmd.Env = append(os.Environ(), "GNUPGHOME="+g.dir)
	cmd.Run()
	until(g.t, 20*time.Second, "free reader after gpgconf --kill", func() bool {
		list, err := pcscd.Readers(context.Background())
		if err != nil {
			return false
		}
		for _, r := range list {
			if r.Users != 0 {
				return false
			}
		}
		return true
	})
}

func (g *gnupg) pinFile(text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "pins"), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// card makes a software card and puts it into the first reader.
func (s *stack) card(t *testing.T, cfg softcard.Config) *softcard.Card {
	t.Helper()
	c := softcard.MustNew(cfg)
	s.insert(t, c, reader0, port0)
	return c
}

func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("no %q in\n%s", p, text)
		}
	}
}

func (s *stack) status(t *testing.T) {
	for name, cfg := range personalities {
		if name == "63Cx" || name == "public wanted" {
			continue
		}
		cfg.Serial = 0x1234abcd
		g := s.gnupg(t, false)
		c := softcard.MustNew(cfg)
		remove := s.insert(t, c, reader0, port0)
		out := g.run("", "gpg", "--card-status")
		version := "3.4"
		if cfg.Personality == softcard.V20 {
			version = "2.0"
		}
		wantText(t, out, "Version ..........: "+version, "Serial number ....: 1234ABCD", "PIN retry counter : 3 0 3", "Signature PIN ....: forced")
		before := c.Commands()
		g.kill()
		g.run("", "gpg", "--card-status")
		t.Logf("%s: gpg --card-status cold: %d APDUs", name, c.Commands()-before)
		g.edit("name\nHolder\nTest\nlang\nen\nsex\nf\nurl\nhttps://example.org/key.asc\nlogin\nholder\nforcesig")
		out = g.run("", "gpg", "--card-status")
		wantText(t, out, "Test Holder", "https://example.org/key.asc", "Language prefs ...: en", "Login data .......: holder", "not forced")
		g.kill()
		k := s.connect(t)
		st, err := k.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if st.Holder.Name() != "Test Holder" || st.URL != "https://example.org/key.asc" || st.Login != "holder" || st.Holder.Language != "en" || st.Holder.Salutation != '2' || !st.Info.PIN.Multiple {
			t.Errorf("%s: our status %+v", name, st)
		}
		k.Close()
		remove()
	}
}

// connect opens the card in the first reader with our client.
func (s *stack) connect(t *testing.T, opts ...keycard.Option) *keycard.Card {
	t.Helper()
	conn, err := pcscd.Connect(t.Context(), reader0, pcscd.Shared)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keycard.Open(t.Context(), conn, append([]keycard.Option{keycard.WithPINs(keycard.StaticPIN(user, adminPW))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (s *stack) pins(t *testing.T) {
	s.card(t, softcard.Config{})
	g := s.gnupg(t, false)
	verify := func(m keycard.PINMode, pin string) error {
		k := s.connect(t)
		defer k.Close()
		return k.Verify(t.Context(), m, keycard.PINString(pin))
	}
	g.pinFile("PIN=123456\nAdmin PIN=12345678\nNew PIN=654321\nNew Admin PIN=87654321\nNew Reset Code=98765432\nReset Code=98765432\n")
	g.edit("passwd\n1\n4\n3\nq")
	g.kill()
	asked, _ := os.ReadFile(filepath.Join(g.dir, "asked"))
	if err := verify(keycard.PINUser, "654321"); err != nil {
		t.Fatalf("PIN that gpg set: %v\n%s", err, asked)
	}
	if err := verify(keycard.PINAdmin, "87654321"); err != nil {
		t.Fatalf("Admin PIN that gpg set: %v\n%s", err, asked)
	}
	// Block the PIN, then unblock it with the resetting code by gpg.
	k := s.connect(t, keycard.WithLastTry())
	if n := k.Info().PIN.ResetCode; n != 3 {
		t.Fatalf("resetting code has %d tries\n%s", n, asked)
	}
	for range 3 {
		k.Verify(t.Context(), keycard.PINUser, keycard.PINString("000000"))
	}
	if err := k.Verify(t.Context(), keycard.PINUser, keycard.PINString("654321")); !errors.Is(err, keycard.ErrBlocked) {
		t.Fatalf("blocked PIN: %v", err)
	}
	k.Close()
	g.pinFile("Reset Code=98765432\nPIN=123456\nNew PIN=123456\n")
	g.interactive("unblock\nquit\n", "--card-edit")
	g.kill()
	if err := verify(keycard.PINUser, "123456"); err != nil {
		asked, _ := os.ReadFile(filepath.Join(g.dir, "asked"))
		t.Fatalf("after gpg's unblock: %v\n%s", err, asked)
	}
	// Unblock by the Admin PIN.
	g.pinFile("Admin PIN=87654321\nNew PIN=111111\n")
	g.edit("passwd\n2\nq")
	g.kill()
	if err := verify(keycard.PINUser, "111111"); err != nil {
		t.Fatal(err)
	}
}

// signatureVerifies lets gpg check a detached signature.
func (g *gnupg) signatureVerifies(data, sig []byte) {
	g.t.Helper()
	d, s := filepath.Join(g.dir, "data"), filepath.Join(g.dir, "data.sig")
	if err := os.WriteFile(d, data, 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(s, sig, 0o600); err != nil {
		g.t.Fatal(err)
	}
	wantText(g.t, g.run("", "gpg", "--status-fd", "1", "--verify", s, d), "[GNUPG:] VALIDSIG")
}

func (s *stack) generate(t *testing.T) {
	for _, v := range []struct{ name, attr string }{
		{"25519", "2\n1\n2\n1\n2\n1\n"},
		{"p256", "2\n3\n2\n3\n2\n3\n"},
	} {
		c := softcard.MustNew(softcard.Config{})
		remove := s.insert(t, c, reader0, port0)
		g := s.gnupg(t, false)
		g.edit("key-attr\n" + v.attr)
		out := g.run("", "gpg", "--card-status")
		wantText(t, out, map[string]string{"25519": "ed25519 cv25519 ed25519", "p256": "nistp256 nistp256 nistp256"}[v.name])
		g.edit("generate\nn\n0\nTest Holder\ntest@example.org\n\n")
		msg := []byte("made by gpg on the card\n")
		if err := os.WriteFile(filepath.Join(g.dir, "m"), msg, 0o600); err != nil {
			t.Fatal(err)
		}
		before := c.Commands()
		g.run("", "gpg", "--yes", "-o", filepath.Join(g.dir, "m.sig"), "--detach-sign", filepath.Join(g.dir, "m"))
		t.Logf("%s: gpg sign, scdaemon warm: %d APDUs", v.name, c.Commands()-before)
		g.kill()
		before = c.Commands()
		g.run("", "gpg", "--yes", "-o", filepath.Join(g.dir, "m.sig"), "--detach-sign", filepath.Join(g.dir, "m"))
		t.Logf("%s: gpg sign cold: %d APDUs", v.name, c.Commands()-before)
		sig, err := os.ReadFile(filepath.Join(g.dir, "m.sig"))
		if err != nil {
			t.Fatal(err)
		}
		g.signatureVerifies(msg, sig)
		g.run("", "gpg", "--yes", "-o", filepath.Join(g.dir, "m.gpg"), "--trust-model", "always", "-r", "test@example.org", "-e", filepath.Join(g.dir, "m"))
		g.kill()
		before = c.Commands()
		if got := g.run("", "gpg", "-q", "-d", filepath.Join(g.dir, "m.gpg")); got != string(msg) {
			t.Errorf("%s: decrypted %q", v.name, got)
		}
		t.Logf("%s: gpg decrypt cold: %d APDUs", v.name, c.Commands()-before)
		g.authenticates()
		g.kill()
		// What gpg made, our client finds in order.
		k := s.connect(t)
		problems, err := k.Check(t.Context())
		if err != nil || problems != nil {
			t.Errorf("%s: %v, %v", v.name, problems, err)
		}
		for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
			check(t, k, slot)
		}
		s.ourSignature(t, g, k)
		k.Close()
		remove()
	}
}

// authenticates lets scdaemon use the authentication key.
func (g *gnupg) authenticates() {
	g.t.Helper()
	// A DigestInfo of SHA-256, which scdaemon strips for other keys than RSA.
	hex := "3031300D060960864801650304020105000420" + strings.Repeat("AB", 32)
	out := g.run("SCD SERIALNO\nSCD SETDATA "+hex+"\nSCD PKAUTH OPENPGP.3\n/bye\n", "gpg-connect-agent")
	if strings.Contains(out, "ERR") || !strings.Contains(out, "D ") {
		g.t.Errorf("PKAUTH: %s", out)
	}
}

// ourSignature signs with our client, writes an OpenPGP signature packet
// around it and lets gpg verify it.
func (s *stack) ourSignature(t *testing.T, g *gnupg, c *keycard.Card) {
	t.Helper()
	k, err := c.Key(t.Context(), keycard.SlotSign, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("signed by keycard\n")
	p := k.PublicKey()
	g.signatureVerifies(data, signaturePacket(t, p.Algorithm.ID, p.Fingerprint, data, func(digest []byte) [][]byte {
		in := digest
		if p.Algorithm.ID == keycard.AlgoRSA {
			sig, err := k.Sign(nil, digest, crypto.SHA256)
			if err != nil {
				t.Fatal(err)
			}
			return [][]byte{sig}
		}
		raw, err := k.SignRaw(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return [][]byte{raw[:len(raw)/2], raw[len(raw)/2:]}
	}))
}

// signaturePacket builds a version 4 binary document signature (RFC 4880
// section 5.2.3) with SHA-256.
func signaturePacket(t *testing.T, algo byte, f keycard.Fingerprint, data []byte, sign func([]byte) [][]byte) []byte {
	t.Helper()
	hashed := []byte{5, 2}
	hashed = binary.BigEndian.AppendUint32(hashed, uint32(time.Now().Unix()))
	hashed = append(append(hashed, 22, 33, 4), f[:]...) // issuer fingerprint
	body := append([]byte{4, 0, algo, 8, 0, byte(len(hashed))}, hashed...)
	h := sha256.New()
	h.Write(data)
	h.Write(body)
	h.Write([]byte{4, 0xff})
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(body))))
	digest := h.Sum(nil)
	body = append(append(body, 0, 10, 9, 16), f[12:]...) // unhashed: issuer
	body = append(body, digest[:2]...)
	for _, m := range sign(digest) {
		n := new(big.Int).SetBytes(m)
		body = binary.BigEndian.AppendUint16(body, uint16(n.BitLen()))
		body = append(body, n.Bytes()...)
	}
	return append([]byte{0xc2, 0xff, 0, 0, byte(len(body) >> 8), byte(len(body))}, body...)
}

// keyToCard lets gpg move software keys to the card, use them, and then our
// client and gpg check each other.
func (s *stack) keyToCard(t *testing.T, kind string, cfg softcard.Config) {
	s.card(t, cfg)
	g := s.gnupg(t, false)
	g.run("", "gpg", "--import", vectors.Path(t, "keycard/keys/"+kind+".sec.pgp"))
	fpr := ""
	for line := range strings.Lines(g.run("", "gpg", "--with-colons", "--list-keys")) {
		if f := strings.Split(line, ":"); f[0] == "fpr" {
			fpr = f[9]
			break
		}
	}
	g.interactive("keytocard\ny\n1\nkey 1\nkeytocard\n2\nkey 1\nkey 2\nkeytocard\n3\nsave\n", "--edit-key", fpr)
	out := g.run("", "gpg", "--with-colons", "--list-secret-keys")
	if n := strings.Count(out, ":D276000124010"); n < 3 {
		t.Fatalf("%d of 3 keys are on the card:\n%s", n, out)
	}
	msg := filepath.Join(g.dir, "m")
	if err := os.WriteFile(msg, []byte("to be signed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.kill()
	g.run("", "gpg", "--yes", "-o", msg+".sig", "--detach-sign", msg)
	g.run("", "gpg", "--verify", msg+".sig", msg)
	if got := g.run("", "gpg", "-q", "-d", vectors.Path(t, "keycard/keys/"+kind+".msg.pgp")); got != "secret for card\n" {
		t.Errorf("decrypted %q", got)
	}
	g.authenticates()
	g.kill()
	k := s.connect(t)
	if problems, err := k.Check(t.Context()); err != nil || problems != nil {
		t.Errorf("%v, %v", problems, err)
	}
	for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
		check(t, k, slot)
	}
	s.ourSignature(t, g, k)
	// The key as gpg exports it has the fingerprint that is on the card.
	if f := k.Info().Keys[keycard.SlotSign].Fingerprint.String(); f != fpr {
		t.Errorf("fingerprint %s, gpg has %s", f, fpr)
	}
}

func (s *stack) certificate(t *testing.T) {
	s.card(t, softcard.Config{Personality: softcard.V34Chaining})
	g := s.gnupg(t, false)
	cert := make([]byte, 1500)
	rand.Read(cert)
	in, out := filepath.Join(g.dir, "cert"), filepath.Join(g.dir, "back")
	if err := os.WriteFile(in, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	g.edit("writecert 3 < " + in + "\nreadcert 3 > " + out)
	if back, err := os.ReadFile(out); err != nil || !bytes.Equal(back, cert) {
		t.Errorf("gpg read %d octets back, %v", len(back), err)
	}
	g.kill()
	k := s.connect(t)
	if b, err := k.Certificate(t.Context(), keycard.SlotAuth); err != nil || !bytes.Equal(b, cert) {
		t.Errorf("we read %d octets, %v", len(b), err)
	}
}

func (s *stack) kdf(t *testing.T) {
	s.card(t, softcard.Config{})
	g := s.gnupg(t, false)
	g.edit("kdf-setup")
	wantText(t, g.run("", "gpg", "--card-status"), "KDF setting ......: on")
	g.edit("key-attr\n2\n1\n2\n1\n2\n1\n")
	g.edit("generate\nn\n0\nTest Holder\ntest@example.org\n\n")
	msg := filepath.Join(g.dir, "m")
	if err := os.WriteFile(msg, []byte("kdf\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.run("", "gpg", "--yes", "-o", msg+".sig", "--detach-sign", msg)
	g.run("", "gpg", "--verify", msg+".sig", msg)
	g.kill()
	k := s.connect(t)
	check(t, k, keycard.SlotSign)
	check(t, k, keycard.SlotDecrypt)
	s.ourSignature(t, g, k)
	// Off, and on again by our client; gpg uses what we set up.
	if err := k.SetKDF(t.Context(), keycard.KDF{}, user, adminPW); err != nil {
		t.Fatal(err)
	}
	setup := keycard.NewKDF()
	setup.Count = 1 << 20
	if err := k.SetKDF(t.Context(), setup, user, adminPW); err != nil {
		t.Fatal(err)
	}
	k.Close()
	g.run("", "gpg", "--yes", "-o", msg+".sig", "--detach-sign", msg)
	g.run("", "gpg", "--verify", msg+".sig", msg)
}

func (s *stack) reset(t *testing.T) {
	s.card(t, softcard.Config{})
	g := s.gnupg(t, false)
	g.edit("key-attr\n2\n1\n2\n1\n2\n1\n")
	g.edit("generate\nn\n0\nTest Holder\ntest@example.org\n\n")
	g.edit("factory-reset\ny\nyes\n")
	out := g.run("", "gpg", "--card-status")
	wantText(t, out, "Signature key ....: [none]", "PIN retry counter : 3 0 3")
	g.kill()
	k := s.connect(t)
	if _, err := k.Generate(t.Context(), keycard.SlotSign, keycard.EC(keycard.P256), keycard.KeyMeta{}); err != nil {
		t.Fatal(err)
	}
	if err := k.FactoryReset(t.Context(), keycard.ResetOptions{Admin: adminPW}); err != nil {
		t.Fatal(err)
	}
	k.Close()
	wantText(t, g.run("", "gpg", "--card-status"), "Signature key ....: [none]")
}

// client runs our client over pcscd through everything that needs no gpg.
func (s *stack) client(t *testing.T) {
	for name, cfg := range personalities {
		c := softcard.MustNew(cfg)
		remove := s.insert(t, c, reader0, port0)
		k := s.connect(t)
		for _, a := range algorithms(cfg) {
			for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
				if _, err := k.Import(t.Context(), slot, software(t, a.For(slot)), keycard.KeyMeta{Created: created}); err != nil {
					t.Fatalf("%s: %v in %v: %v", name, a, slot, err)
				}
				check(t, k, slot)
			}
		}
		if problems, err := k.Check(t.Context()); err != nil || problems != nil {
			t.Errorf("%s: %v, %v", name, problems, err)
		}
		// Closing locks the card for the next program.
		k.Close()
		k = s.connect(t, keycard.WithPINs(nil))
		key, err := k.Key(t.Context(), keycard.SlotAuth, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := key.SignRaw(t.Context(), []byte("x")); !errors.Is(err, keycard.ErrNotVerified) {
			t.Errorf("%s: a card that was closed is open: %v", name, err)
		}
		k.Close()
		remove()
	}
}

// besideGPG uses the card through scdaemon while gpg holds it.
func (s *stack) besideGPG(t *testing.T) {
	for _, p := range []softcard.Personality{softcard.V34, softcard.V34Chaining} {
		c := softcard.MustNew(softcard.Config{Personality: p})
		remove := s.insert(t, c, reader0, port0)
		g := s.gnupg(t, false)
		g.edit("key-attr\n2\n1\n2\n1\n2\n1\n")
		g.edit("generate\nn\n0\nTest Holder\ntest@example.org\n\n")
		g.run("", "gpg", "--card-status")
		// scdaemon holds the reader exclusively.
		if _, err := pcscd.Connect(t.Context(), reader0, pcscd.Shared); !errors.Is(err, keycard.ErrBusy) {
			t.Errorf("Connect beside scdaemon: %v, want ErrBusy", err)
		}
		t.Setenv("GNUPGHOME", g.dir)
		conn, err := scd.Dial(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		k, err := keycard.Open(t.Context(), conn, keycard.WithPINs(keycard.StaticPIN(user, adminPW)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := k.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		check(t, k, keycard.SlotSign)
		check(t, k, keycard.SlotDecrypt)
		check(t, k, keycard.SlotAuth)
		s.ourSignature(t, g, k)
		// RSA keys are long: import and decryption go in pieces.
		if _, err := k.Import(t.Context(), keycard.SlotDecrypt, rsaKey(t, 2048), keycard.KeyMeta{Created: created}); err != nil {
			t.Fatal(err)
		}
		check(t, k, keycard.SlotDecrypt)
		if err := k.Close(); err != nil {
			t.Error(err)
		}
		// gpg goes on with the card.
		msg := filepath.Join(g.dir, "m")
		if err := os.WriteFile(msg, []byte("after\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		g.run("", "gpg", "--yes", "-o", msg+".sig", "--detach-sign", msg)
		g.run("", "gpg", "--verify", msg+".sig", msg)
		g.kill()
		remove()
	}
}

func (s *stack) watch(t *testing.T) {
	c := softcard.MustNew(softcard.Config{})
	until(t, 20*time.Second, "empty reader", func() bool {
		r, err := pcscd.Readers(t.Context())
		return err == nil && !r[0].Present && !r[1].Present
	})
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	var got []string
	var remove func()
	for e, err := range pcscd.Watch(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Kind.String()+" "+e.Reader.Name)
		switch len(got) {
		case 2:
			remove = s.insert(t, c, reader1, port1)
		case 3:
			remove()
		}
		if len(got) == 4 {
			break
		}
	}
	want := []string{"reader added " + reader0, "reader added " + reader1, "card inserted " + reader1, "card removed " + reader1}
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("events %q, want %q", got, want)
	}
	// A watch ends with its context.
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	for _, err := range pcscd.Watch(short) {
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
}

// transactions keep two clients of one card apart.
func (s *stack) transactions(t *testing.T) {
	s.card(t, softcard.Config{})
	a, b := s.connect(t), s.connect(t)
	if _, err := a.Import(t.Context(), keycard.SlotAuth, software(t, keycard.EC(keycard.Ed25519)), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	held, done := make(chan struct{}), make(chan error, 1)
	var order []string
	go func() {
		<-held
		_, err := b.URL(context.Background())
		order = append(order, "b")
		done <- err
	}()
	err := a.Do(t.Context(), func(a *keycard.Card) error {
		close(held)
		for range 20 {
			if _, err := a.URL(t.Context()); err != nil {
				return err
			}
		}
		order = append(order, "a")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if strings.Join(order, "") != "ab" {
		t.Errorf("order %v", order)
	}
	// Closing one resets the card; the other selects it anew and asks for
	// the PIN again.
	check(t, b, keycard.SlotAuth)
	b.Close()
	check(t, a, keycard.SlotAuth)
	a.Close()
	if _, err := pcscd.Connect(t.Context(), reader1, pcscd.Shared); !errors.Is(err, keycard.ErrNoCard) {
		t.Errorf("empty reader: %v", err)
	}
	ex, err := pcscd.Connect(t.Context(), reader0, pcscd.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pcscd.Connect(t.Context(), reader0, pcscd.Shared); !errors.Is(err, keycard.ErrBusy) {
		t.Errorf("beside an exclusive connection: %v", err)
	}
	ex.Close()
	ok, err := pcscd.Connect(t.Context(), reader0, pcscd.Shared)
	if err != nil {
		t.Fatal(err)
	}
	ok.Close()
}

// cancel ends a command that the card never answers.
func (s *stack) cancel(t *testing.T) {
	silent := make(chan struct{})
	s.card(t, softcard.Config{Fault: func(ctx context.Context, n int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
		if len(cmd) > 3 && cmd[1] == 0x84 {
			select {
			case <-silent:
			case <-ctx.Done():
			}
		}
		return process(cmd), nil
	}})
	k := s.connect(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := k.Challenge(ctx, 8)
	late := time.Since(deadline(ctx))
	close(silent)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if late > 2*time.Second { // the aim is 100 ms; busy machines get more
		t.Errorf("the context's end was noticed after %v", late)
	}
	t.Logf("cancelled %v after the context's end", late)
	if _, err := k.URL(t.Context()); !errors.Is(err, keycard.ErrClosed) {
		t.Errorf("after cancelling: %v", err)
	}
	// pcscd lets the card go, and a new connection works.
	until(t, 10*time.Second, "new connection", func() bool {
		conn, err := pcscd.Connect(t.Context(), reader0, pcscd.Shared)
		if err != nil {
			return false
		}
		k, err := keycard.Open(t.Context(), conn)
		if err != nil {
			return false
		}
		k.Close()
		return true
	})
}

// removed takes the card out while it is open, and puts it back.
func (s *stack) removed(t *testing.T) {
	c := softcard.MustNew(softcard.Config{})
	remove := s.insert(t, c, reader0, port0)
	k := s.connect(t)
	if err := k.Verify(t.Context(), keycard.PINUser, user); err != nil {
		t.Fatal(err)
	}
	remove()
	until(t, 20*time.Second, "error", func() bool {
		_, err := k.URL(t.Context())
		return errors.Is(err, keycard.ErrRemoved)
	})
	k.Close()
	s.insert(t, c, reader0, port0)
	k = s.connect(t)
	if _, err := k.Status(t.Context()); err != nil {
		t.Error(err)
	}
}

func deadline(ctx context.Context) time.Time {
	d, _ := ctx.Deadline()
	return d
}

// budget counts our commands on the same stack on which gpg's were counted.
func (s *stack) budget(t *testing.T) {
	c := s.card(t, softcard.Config{WithoutKDF: true})
	k := s.connect(t)
	p, err := k.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.Ed25519)), keycard.KeyMeta{Created: created})
	if err != nil {
		t.Fatal(err)
	}
	k.Close()
	before := c.Commands()
	k = s.connect(t)
	if _, err := k.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := c.Commands() - before; n > 8 {
		t.Errorf("cold status: %d APDUs", n)
	} else {
		t.Logf("cold status: %d APDUs", n)
	}
	k.Close()
	before = c.Commands()
	k = s.connect(t)
	key, err := k.KeyFor(keycard.SlotSign, p.Key, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := key.SignRaw(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if n := c.Commands() - before; n > 4 {
		t.Errorf("cold sign: %d APDUs", n)
	} else {
		t.Logf("cold sign: %d APDUs", n)
	}
}
