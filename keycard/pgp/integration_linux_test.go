package pgp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"signalbox.example/internal/cardstack"
	"signalbox.example/internal/need"
	"signalbox.example/keycard"
	"signalbox.example/keycard/pcscd"
	"signalbox.example/keycard/pgp"
	"signalbox.example/keycard/softcard"
)

const feature = "cardpgp"

// wantStatus wants gpg's status lines to say this.
func wantStatus(t *testing.T, out string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(out, "[GNUPG:] "+p) {
			t.Errorf("gpg did not say %s:\n%s", p, out)
		}
	}
}

// checkWithGPG lets gpg verify every kind of signature by the binding's card,
// and the card open what gpg encrypted.
func checkWithGPG(t *testing.T, g *cardstack.Home, b *pgp.Binding) {
	t.Helper()
	ctx := t.Context()
	var key bytes.Buffer
	if err := pgp.WriteCertificate(&key, b.Certificate()); err != nil {
		t.Fatal(err)
	}
	fpr := fmt.Sprintf("%X", b.Certificate().PrimaryKey.Fingerprint)
	wantStatus(t, g.GPG(key.String(), "--status-fd", "1", "--import"), "IMPORT_OK 1 "+fpr)
	valid := "VALIDSIG " + fpr
	const data = "signed by a card\n"
	file := g.File("data", []byte(data))

	var sig bytes.Buffer
	if err := b.DetachSign(ctx, &sig, strings.NewReader(data), nil); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, g.GPG("", "--status-fd", "1", "--verify", g.File("sig", sig.Bytes()), file), valid)
	sig.Reset()
	if err := b.DetachSignText(ctx, &sig, strings.NewReader("signed by a card\r\n"), nil); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, g.GPG("", "--status-fd", "1", "--verify", g.File("sig", sig.Bytes()), file), valid)
	sig.Reset()
	if err := b.ArmoredDetachSign(ctx, &sig, strings.NewReader(data), nil); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, g.GPG("", "--status-fd", "1", "--verify", g.File("sig", sig.Bytes()), file), valid)
	if out, err := g.Run("", "gpg", "--status-fd", "1", "--verify", filepath.Join(g.Dir, "sig"), g.File("other", []byte("another text"))); err == nil || !strings.Contains(out, "BADSIG") {
		t.Errorf("gpg verified another text: %v\n%s", err, out)
	}
	for _, text := range texts {
		var clear bytes.Buffer
		if err := b.ClearSign(ctx, &clear, strings.NewReader(text), nil); err != nil {
			t.Fatal(err)
		}
		out, err := g.Run("", "gpg", "--status-fd", "1", "--verify", g.File("clear", clear.Bytes()))
		if err != nil {
			t.Errorf("clear text %q: %v\n%s", text, err, out)
		}
		wantStatus(t, out, valid)
	}
	wantStatus(t, g.GPG("", "--status-fd", "1", "--verify", g.File("inline", signed(t, b, data))), valid)

	// Signed by the card, encrypted by us and by gpg.
	var msg bytes.Buffer
	w, err := b.Encrypt(ctx, &msg, []*openpgp.Entity{b.Certificate()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	md, err := b.Decrypt(ctx, &msg, nil, nil)
	if got := body(t, md, err); got != data || md.SignatureError != nil {
		t.Errorf("%q, %v", got, md.SignatureError)
	}
	for _, more := range [][]string{nil, {"--hidden-recipient", fpr}, {"--compress-algo", "zlib"}, {"--cipher-algo", "AES192"}} {
		args := append([]string{"--trust-model", "always", "--yes", "-o", filepath.Join(g.Dir, "enc"), "-e"}, more...)
		if len(more) == 0 || more[0] != "--hidden-recipient" {
			args = append(args, "-r", fpr)
		}
		g.GPG("", append(args, file)...)
		md, err := b.Decrypt(ctx, bytes.NewReader(g.Read("enc")), nil, nil)
		if got := body(t, md, err); got != data {
			t.Errorf("gpg %v: %q", more, got)
		}
	}
}

// TestIntegrationGPG: real gpg and cards in this process.
func TestIntegrationGPG(t *testing.T) {
	need.Asked(t, feature)
	need.Commands(t, feature, "gpg", "gpg-agent", "gpgconf")
	ctx := t.Context()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			g := cardstack.NewHome(t, feature)
			soft, cert, rev := makeCard(t, kind, softcard.Config{Personality: personality(kind)})
			b := bind(t, open(t, soft), cert)
			checkWithGPG(t, g, b)
			fpr := fmt.Sprintf("%X", cert.PrimaryKey.Fingerprint)

			// What changes the certificate, as gpg sees it.
			friend := softEntity(t, nil)
			if _, err := b.Certify(ctx, friend, "Soft <soft@example.org>", nil); err != nil {
				t.Fatal(err)
			}
			end := time.Now().Add(1000 * time.Hour).Truncate(time.Second)
			if err := b.AddUserID(ctx, "Second <second@example.org>", true, nil); err != nil {
				t.Fatal(err)
			}
			if err := b.SetExpiry(ctx, end, true, nil); err != nil {
				t.Fatal(err)
			}
			for _, e := range []*openpgp.Entity{cert, friend} {
				var out bytes.Buffer
				if err := pgp.WriteCertificate(&out, e); err != nil {
					t.Fatal(err)
				}
				g.GPG(out.String(), "--import")
			}
			out := g.GPG("", "--with-colons", "--fixed-list-mode", "--check-sigs")
			if strings.Contains(out, "sig:-") || strings.Contains(out, "sig:?") || strings.Contains(out, "sig:%") {
				t.Errorf("gpg found a bad signature:\n%s", out)
			}
			certified := false
			for line := range strings.Lines(out) {
				f := strings.Split(line, ":")
				switch f[0] {
				case "sig":
					certified = certified || f[1] == "!" && strings.HasPrefix(f[10], "10") && f[4] == fpr[24:]
				case "pub", "sub":
					if f[6] != fmt.Sprint(end.Unix()) && strings.HasSuffix(fpr, f[4]) {
						t.Errorf("expiry %s, want %d: %s", f[6], end.Unix(), line)
					}
				}
			}
			if !certified {
				t.Errorf("gpg does not see the certification:\n%s", out)
			}
			if !strings.Contains(out, "Second <second@example.org>") {
				t.Errorf("gpg does not see the user ID:\n%s", out)
			}
			// The revocation certificate does its work.
			var r bytes.Buffer
			if err := pgp.WriteRevocation(&r, rev); err != nil {
				t.Fatal(err)
			}
			g.GPG(r.String(), "--import")
			if out := g.GPG("", "--with-colons", "--list-keys", fpr); !strings.Contains(out, "pub:r:") {
				t.Errorf("gpg does not see the revocation:\n%s", out)
			}
		})
	}
}

// TestIntegrationStack: real gpg, and cards behind real pcscd and vpcd.
func TestIntegrationStack(t *testing.T) {
	need.Asked(t, feature)
	if !cardstack.Inside(t, feature) {
		return
	}
	s := cardstack.Start(t)
	ctx := t.Context()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			soft, cert, _ := makeCard(t, kind, softcard.Config{Personality: personality(kind)})
			defer s.Insert(t, soft, 0)()
			g := cardstack.NewHome(t, feature)
			conn, err := pcscd.Connect(ctx, cardstack.Readers[0], pcscd.Shared)
			if err != nil {
				t.Fatal(err)
			}
			made := soft.Commands()
			card, err := keycard.Open(ctx, conn, keycard.WithPINs(pins()), keycard.WithKDF(keycard.KDF{}))
			if err != nil {
				t.Fatal(err)
			}
			defer card.Close()
			b := bind(t, card, cert)
			opening := soft.Commands() - made
			defer func() { t.Logf("ours: %d to open the card and 2 for the signature", opening) }()
			before, _ := card.Count()
			if err := b.DetachSign(ctx, io.Discard, strings.NewReader("x"), nil); err != nil {
				t.Fatal(err)
			}
			if after, _ := card.Count(); after-before != 2 {
				t.Errorf("a signature took %d commands", after-before)
			}
			checkWithGPG(t, g, b)
			if err := card.Close(); err != nil {
				t.Fatal(err)
			}

			// gpg itself with the card and our certificate.
			fpr := fmt.Sprintf("%X", cert.PrimaryKey.Fingerprint)
			g.GPG("", "--card-status")
			file := g.File("data", []byte("by gpg\n"))
			g.Kill()
			count := soft.Commands()
			g.GPG("", "--yes", "-u", fpr, "-o", filepath.Join(g.Dir, "sig"), "-b", file)
			t.Logf("gpg's first signature: %d commands", soft.Commands()-count)
			if _, err := openpgp.CheckDetachedSignature(openpgp.EntityList{cert}, strings.NewReader("by gpg\n"), bytes.NewReader(g.Read("sig")), nil); err != nil {
				t.Error(err)
			}
			enc := g.File("enc", encryptTo(t, "for gpg\n", nil, cert))
			if got := g.GPG("", "-q", "-d", enc); got != "for gpg\n" {
				t.Errorf("gpg decrypted %q", got)
			}

			// gpg's stubs: the card, the slot, the certificate.
			g.GPG("", "--yes", "-o", filepath.Join(g.Dir, "export"), "--export-secret-keys", fpr)
			list, stubs, err := pgp.ParseStubs(bytes.NewReader(g.Read("export")))
			if err != nil || len(list) != 1 || len(stubs) != 3 {
				t.Fatalf("%v, %d certificates, %d stubs", err, len(list), len(stubs))
			}
			if !bytes.Equal(list[0].PrimaryKey.Fingerprint, cert.PrimaryKey.Fingerprint) || len(list[0].Subkeys) != 2 {
				t.Error("another certificate in the export")
			}
			info := card.Info()
			for i, stub := range stubs {
				slot, ok := stub.Slot(info)
				ident, named := stub.Card()
				if stub.Kind != pgp.OnCard || stub.Primary != (i == 0) || !ok || int(slot) != i || !named || ident != info.Ident() {
					t.Errorf("stub %d: %+v, slot %v %v, card %s %v, want %s", i, stub, slot, ok, ident, named, info.Ident())
				}
			}
			files, err := filepath.Glob(filepath.Join(g.Dir, "private-keys-v1.d", "*.key"))
			seen := map[keycard.Slot]bool{}
			for _, name := range files {
				f, err := os.Open(name)
				if err != nil {
					t.Fatal(err)
				}
				k, err := pgp.ParseKeyFile(f)
				f.Close()
				if err != nil {
					raw, _ := os.ReadFile(name)
					t.Fatalf("%v\n%q", err, raw)
				}
				if ident, ok := k.Card(); k.Kind != pgp.OnCard || !ok || ident != info.Ident() {
					t.Errorf("%+v", k)
				}
				seen[k.Slot] = true
			}
			if err != nil || len(files) == 0 || !strings.HasPrefix(kind, "rsa") && len(seen) != 3 {
				t.Errorf("%v, %d files, slots %v", err, len(files), seen)
			}
			b, err = pgp.Bind(ctx, card, list[0], nil)
			if err != nil || !b.Primary() {
				t.Error("the export's certificate does not bind", err)
			}
		})
	}
	t.Run("made by gpg", func(t *testing.T) { madeByGPG(t, s) })
	t.Run("removed", func(t *testing.T) {
		soft, cert, _ := makeCard(t, "ed25519", softcard.Config{})
		remove := s.Insert(t, soft, 0)
		conn, err := pcscd.Connect(ctx, cardstack.Readers[0], pcscd.Shared)
		if err != nil {
			t.Fatal(err)
		}
		b := bind(t, open(t, conn), cert)
		remove()
		// Until pcscd notices, the card just does not answer.
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			err = b.DetachSign(ctx, io.Discard, strings.NewReader("x"), nil)
			if errors.Is(err, keycard.ErrRemoved) {
				break
			}
			if err == nil || time.Now().After(end) {
				t.Fatalf("%v", err)
			}
		}
	})
}

// madeByGPG: a key that gpg made and moved to the card, with its primary key
// kept elsewhere.
func madeByGPG(t *testing.T, s *cardstack.Stack) {
	ctx := t.Context()
	soft := softcard.MustNew(softcard.Config{})
	remove := s.Insert(t, soft, 0)
	g := cardstack.NewHome(t, feature)
	g.GPG("", "--passphrase", "", "--quick-gen-key", "Gina <gina@example.org>", "ed25519", "cert", "never")
	fpr := ""
	for line := range strings.Lines(g.GPG("", "--with-colons", "--list-keys")) {
		if f := strings.Split(line, ":"); f[0] == "fpr" {
			fpr = f[9]
			break
		}
	}
	g.GPG("", "--passphrase", "", "--quick-add-key", fpr, "ed25519", "sign", "never")
	g.GPG("", "--passphrase", "", "--quick-add-key", fpr, "cv25519", "encr", "never")
	g.GPG("key 1\nkeytocard\n1\nkey 1\nkey 2\nkeytocard\n2\nsave\n", "--no-batch", "--expert", "--status-fd", "2", "--command-fd", "0", "--edit-key", fpr)
	g.GPG("", "--yes", "-o", filepath.Join(g.Dir, "export"), "--export-secret-subkeys", fpr)
	list, stubs, err := pgp.ParseStubs(bytes.NewReader(g.Read("export")))
	if err != nil || len(stubs) != 3 {
		t.Fatalf("%v, %d stubs", err, len(stubs))
	}
	marks := ""
	for _, s := range stubs {
		marks += s.Kind.Mark()
	}
	if marks != "#>>" {
		t.Errorf("marks %q", marks)
	}
	g.Kill()
	conn, err := pcscd.Connect(ctx, cardstack.Readers[0], pcscd.Shared)
	if err != nil {
		t.Fatal(err)
	}
	card := open(t, conn)
	b := bind(t, card, list[0])
	if b.Primary() {
		t.Error("the primary key is not on the card")
	}
	var sig bytes.Buffer
	if err := b.DetachSign(ctx, &sig, strings.NewReader("x"), nil); err != nil {
		t.Fatal(err)
	}
	out := g.GPG("", "--status-fd", "1", "--verify", g.File("sig", sig.Bytes()), g.File("data", []byte("x")))
	wantStatus(t, out, fmt.Sprintf("VALIDSIG %X", b.Certificate().Subkeys[0].PublicKey.Fingerprint))
	g.GPG("", "--trust-model", "always", "--yes", "-o", filepath.Join(g.Dir, "enc"), "-r", fpr, "-e", filepath.Join(g.Dir, "data"))
	md, err := b.Decrypt(ctx, bytes.NewReader(g.Read("enc")), nil, nil)
	if body(t, md, err) != "x" {
		t.Error("decrypted something else")
	}
	if _, err := b.Revocation(ctx, packet.NoReason, "", nil); err == nil {
		t.Error("revoked without the primary key")
	}
	card.Close()
	remove()
}
