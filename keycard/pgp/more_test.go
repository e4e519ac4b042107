package pgp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"signalbox.example/internal/vectors"
	"signalbox.example/keycard"
	"signalbox.example/keycard/pgp"
	"signalbox.example/keycard/softcard"
)

func softEntity(t testing.TB, cfg *packet.Config) *openpgp.Entity {
	t.Helper()
	if cfg == nil {
		cfg = &packet.Config{}
	}
	if cfg.Algorithm == 0 { // RSA keys take their time
		cfg.Algorithm, cfg.Curve = packet.PubKeyAlgoEdDSA, packet.Curve25519
	}
	e, err := openpgp.NewEntity("Soft", "", "soft@example.org", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func encryptTo(t testing.TB, data string, cfg *packet.Config, to ...*openpgp.Entity) []byte {
	t.Helper()
	var msg bytes.Buffer
	w, err := openpgp.Encrypt(&msg, to, nil, nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return msg.Bytes()
}

func body(t testing.TB, md *openpgp.MessageDetails, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(md.UnverifiedBody)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNewAlgorithms: keys of algorithms 27 (Ed25519) and 25 (X25519), for
// which go-crypto has no hook, work through Binding all the same.
func TestNewAlgorithms(t *testing.T) {
	ctx := t.Context()
	old := time.Now().Add(-time.Hour)
	for _, aead := range []bool{false, true} {
		cfg := &packet.Config{Algorithm: packet.PubKeyAlgoEd25519, Time: func() time.Time { return old }}
		if aead {
			cfg.AEADConfig = &packet.AEADConfig{}
		}
		e := softEntity(t, cfg)
		if e.PrimaryKey.PubKeyAlgo != 27 || e.Subkeys[0].PublicKey.PubKeyAlgo != 25 {
			t.Fatal("not the algorithms that are meant")
		}
		card := open(t, softcard.MustNew(softcard.Config{}))
		if _, err := pgp.Import(ctx, []*keycard.Card{card}, keycard.SlotSign, e.PrivateKey); err != nil {
			t.Fatal(err)
		}
		if _, err := pgp.Import(ctx, []*keycard.Card{card}, keycard.SlotDecrypt, e.Subkeys[0].PrivateKey); err != nil {
			t.Fatal(err)
		}
		cert := reread(t, e)
		b := bind(t, card, cert)
		ring := openpgp.EntityList{cert}
		var sig bytes.Buffer
		if err := b.DetachSign(ctx, &sig, strings.NewReader("x"), nil); err != nil {
			t.Fatal(err)
		}
		if s, err := openpgp.CheckDetachedSignature(ring, strings.NewReader("x"), &sig, nil); err != nil || s == nil {
			t.Error(err)
		}
		var clear bytes.Buffer
		if err := b.ClearSign(ctx, &clear, strings.NewReader("x\n"), nil); err != nil {
			t.Fatal(err)
		}
		blk, _ := clearsign.Decode(clear.Bytes())
		if _, err := blk.VerifySignature(ring, nil); err != nil {
			t.Error(err)
		}
		md, err := openpgp.ReadMessage(bytes.NewReader(signed(t, b, "inline")), ring, nil, nil)
		if body(t, md, err) != "inline" || md.SignatureError != nil {
			t.Error(md.SignatureError)
		}
		// Encrypted beside others, before and after; signed by another.
		other := softEntity(t, cfg)
		third := softEntity(t, &packet.Config{Time: cfg.Time})
		for _, to := range [][]*openpgp.Entity{{cert}, {other, cert}, {cert, third}} {
			var msg bytes.Buffer
			w, err := openpgp.Encrypt(&msg, to, other, nil, cfg)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(w, "secret")
			w.Close()
			before, _ := card.Count()
			md, err := b.Decrypt(ctx, &msg, openpgp.EntityList{reread(t, other)}, nil)
			if got := body(t, md, err); got != "secret" || md.SignatureError != nil || md.SignedBy == nil {
				t.Errorf("%q, %v", got, md.SignatureError)
			}
			if after, _ := card.Count(); after-before > 3 {
				t.Errorf("%d commands", after-before)
			}
			if md.DecryptedWith.PublicKey.KeyId != cert.Subkeys[0].PublicKey.KeyId {
				t.Error("decrypted with another key")
			}
			own := false
			for _, id := range md.EncryptedToKeyIds {
				own = own || id == cert.Subkeys[0].PublicKey.KeyId
			}
			if !own || len(md.EncryptedToKeyIds) != len(to) {
				t.Errorf("recipients %X", md.EncryptedToKeyIds)
			}
		}
		// Not for the card: another's message, and go-crypto's own way in.
		before, _ := card.Count()
		if _, err := b.Decrypt(ctx, bytes.NewReader(encryptTo(t, "x", cfg, other)), nil, nil); !errors.Is(err, pgp.ErrNotRecipient) {
			t.Error(err)
		}
		if after, _ := card.Count(); after != before {
			t.Error("the card was asked for another's message")
		}
		k, err := card.Key(ctx, keycard.SlotSign, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pgp.PrivateKey(ctx, cert.PrimaryKey, k); !errors.Is(err, keycard.ErrUnsupported) {
			t.Error(err)
		}
		if _, err := b.Encrypt(ctx, io.Discard, []*openpgp.Entity{cert}, nil, nil); !errors.Is(err, keycard.ErrUnsupported) {
			t.Error(err)
		}
		// A primary key of algorithm 27 changes its certificate.
		if err := b.AddUserID(ctx, "Second <second@example.org>", true, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.SetExpiry(ctx, time.Now().Add(time.Hour), true, &packet.Config{Time: func() time.Time { return time.Now().Add(2 * time.Second) }}); err != nil {
			t.Fatal(err)
		}
		if again := reread(t, b.Certificate()); len(again.Identities) != 2 || len(again.Subkeys) != 1 || *again.Subkeys[0].Sig.KeyLifetimeSecs == 0 {
			t.Errorf("%d user IDs, %d subkeys", len(again.Identities), len(again.Subkeys))
		}
		made, _, err := pgp.NewCertificate(ctx, card, nil, pgp.CertificateOptions{UserIDs: []string{userID}})
		if err != nil {
			t.Fatal(err)
		}
		if c := reread(t, made.Certificate()); !bytes.Equal(c.PrimaryKey.Fingerprint, e.PrimaryKey.Fingerprint) || len(c.Subkeys) != 1 {
			t.Error("another certificate from the card's keys")
		}
	}
}

func TestRecipients(t *testing.T) {
	ctx := t.Context()
	softA, certA, _ := makeCard(t, "ed25519", softcard.Config{})
	softB, certB, _ := makeCard(t, "nistp256", softcard.Config{})
	a, b := bind(t, open(t, softA), certA), bind(t, open(t, softB), certB)
	other := softEntity(t, nil)
	msg := encryptTo(t, "to all", nil, other, certB, certA)
	for _, cards := range [][]*pgp.Binding{{a}, {b}, {a, b}, {b, a}} {
		md, err := pgp.Decrypt(ctx, bytes.NewReader(msg), cards, nil, nil)
		if got := body(t, md, err); got != "to all" {
			t.Errorf("%q", got)
		}
	}
	// A software key needs no card.
	before := softA.Commands()
	md, err := a.Decrypt(ctx, bytes.NewReader(msg), openpgp.EntityList{other}, nil)
	if body(t, md, err) != "to all" || softA.Commands() != before {
		t.Error("the card was used although a software key was there")
	}
	_, err = a.Decrypt(ctx, bytes.NewReader(encryptTo(t, "x", nil, certB)), nil, nil)
	if !errors.Is(err, pgp.ErrNotRecipient) || softA.Commands() != before {
		t.Errorf("%v, %d commands", err, softA.Commands()-before)
	}
	// Hidden recipients: nobody is named.
	for _, to := range []*openpgp.Entity{certA, certB, other} {
		var m bytes.Buffer
		key := make([]byte, 32)
		sub, _ := to.EncryptionKey(time.Now())
		if err := packet.SerializeEncryptedKeyAEADwithHiddenOption(&m, sub.PublicKey, packet.CipherAES256, false, key, true, nil); err != nil {
			t.Fatal(err)
		}
		w, err := packet.SerializeSymmetricallyEncrypted(&m, packet.CipherAES256, false, packet.CipherSuite{}, key, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := packet.SerializeLiteral(w, true, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(l, "hidden")
		l.Close()
		md, err := pgp.Decrypt(ctx, &m, []*pgp.Binding{a, b}, nil, nil)
		if to == other {
			if err == nil {
				t.Error("decrypted what was for another")
			}
			continue
		}
		if got := body(t, md, err); got != "hidden" {
			t.Errorf("%q", got)
		}
	}
	// Signed only.
	md, err = b.Decrypt(ctx, bytes.NewReader(signed(t, a, "signed")), openpgp.EntityList{certA}, nil)
	if body(t, md, err) != "signed" || md.SignatureError != nil || md.IsEncrypted {
		t.Error(md.SignatureError)
	}
}

// TestHostileRecipients: a message that names a hidden recipient many times
// gets the card to work sixteen times, not more.
func TestHostileRecipients(t *testing.T) {
	soft, cert, _ := makeCard(t, "ed25519", softcard.Config{})
	b := bind(t, open(t, soft), cert)
	var m bytes.Buffer
	other := softEntity(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Curve: packet.Curve25519})
	for range 200 {
		if err := packet.SerializeEncryptedKeyAEADwithHiddenOption(&m, other.Subkeys[0].PublicKey, packet.CipherAES256, false, make([]byte, 32), true, nil); err != nil {
			t.Fatal(err)
		}
	}
	w, err := packet.SerializeSymmetricallyEncrypted(&m, packet.CipherAES256, false, packet.CipherSuite{}, make([]byte, 32), nil)
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	before := soft.Commands()
	if _, err := b.Decrypt(t.Context(), &m, nil, nil); err == nil {
		t.Error("no error")
	}
	if n := soft.Commands() - before; n > 20 {
		t.Errorf("%d commands", n)
	}
}

// TestFailedDerivation: go-crypto goes on after a failed ECDH. A message made
// for the empty shared secret must not decrypt when the card fails.
func TestFailedDerivation(t *testing.T) {
	soft, cert, _ := makeCard(t, "ed25519", softcard.Config{Fault: func(_ context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
		if cmd[1] == 0x2a && cmd[2] == 0x80 {
			return []byte{0x6a, 0x80}, nil
		}
		return process(cmd), nil
	}})
	b := bind(t, open(t, soft), cert)
	if _, err := b.Decrypt(t.Context(), bytes.NewReader(encryptTo(t, "x", nil, cert)), nil, nil); !errors.Is(err, keycard.ErrData) {
		t.Error(err)
	}
}

func TestCertify(t *testing.T) {
	ctx := t.Context()
	for _, kind := range []string{"rsa2048", "nistp384", "ed25519"} {
		soft, cert, _ := makeCard(t, kind, softcard.Config{})
		b := bind(t, open(t, soft), cert)
		friend := softEntity(t, nil)
		const friendID = "Soft <soft@example.org>"
		sig, err := b.Certify(ctx, friend, friendID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := cert.PrimaryKey.VerifyUserIdSignature(friendID, friend.PrimaryKey, sig); err != nil {
			t.Error(err)
		}
		if _, err := b.Certify(ctx, friend, "Nobody", nil); !errors.Is(err, pgp.ErrUsage) {
			t.Error(err)
		}
		const second = "Second <second@example.org>"
		if err := b.AddUserID(ctx, second, true, nil); err != nil {
			t.Fatal(err)
		}
		if err := b.AddUserID(ctx, second, true, nil); !errors.Is(err, pgp.ErrUsage) {
			t.Error(err)
		}
		again := reread(t, cert)
		if again.PrimaryIdentity().Name != second {
			t.Errorf("primary user ID %q", again.PrimaryIdentity().Name)
		}
		later := &packet.Config{Time: func() time.Time { return time.Now().Add(2 * time.Second) }}
		end := time.Now().Add(24 * time.Hour).Truncate(time.Second)
		if err := b.SetExpiry(ctx, end, true, later); err != nil {
			t.Fatal(err)
		}
		again = reread(t, cert)
		for _, when := range []time.Time{end.Add(-time.Minute), end.Add(time.Minute)} {
			_, sign := again.SigningKey(when)
			_, encrypt := again.EncryptionKey(when)
			if want := when.Before(end); sign != want || encrypt != want {
				t.Errorf("%v: signing %v, encryption %v", when, sign, encrypt)
			}
		}
		// An expired key does not sign, but can be extended.
		expired := &packet.Config{Time: func() time.Time { return end.Add(time.Hour) }}
		if err := b.DetachSign(ctx, io.Discard, strings.NewReader("x"), expired); !errors.Is(err, pgp.ErrUsage) {
			t.Error(err)
		}
		if err := b.SetExpiry(ctx, time.Time{}, true, expired); err != nil {
			t.Fatal(err)
		}
		if err := b.DetachSign(ctx, io.Discard, strings.NewReader("x"), expired); err != nil {
			t.Error(err)
		}
		if err := b.SetExpiry(ctx, created.Add(-time.Hour), true, expired); !errors.Is(err, pgp.ErrUsage) {
			t.Error(err)
		}
		if err := b.RevokeSubkey(ctx, 0, packet.KeySuperseded, "old", expired); err != nil {
			t.Fatal(err)
		}
		if _, ok := reread(t, cert).EncryptionKey(end.Add(2 * time.Hour)); ok {
			t.Error("the revoked subkey encrypts")
		}
		if err := b.RevokeSubkey(ctx, 9, packet.KeySuperseded, "", nil); !errors.Is(err, pgp.ErrUsage) {
			t.Error(err)
		}
		rev, err := b.Revocation(ctx, packet.KeyCompromised, "lost", nil)
		if err != nil {
			t.Fatal(err)
		}
		cert.Revocations = append(cert.Revocations, rev)
		if err := b.DetachSign(ctx, io.Discard, strings.NewReader("x"), nil); !errors.Is(err, pgp.ErrUsage) {
			t.Errorf("signature by a revoked key: %v", err)
		}
	}
}

// TestClearErrors: what stands in the way is named, once, in a line.
func TestClearErrors(t *testing.T) {
	ctx := t.Context()
	touched := true
	gone := false
	soft, cert, _ := makeCard(t, "ed25519", softcard.Config{
		Serial: 0x0badcafe,
		Touch:  func(context.Context, keycard.Slot) bool { return touched },
		Fault: func(_ context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
			if gone {
				return nil, fmt.Errorf("reader: %w", keycard.ErrRemoved)
			}
			return process(cmd), nil
		},
	})
	msg := encryptTo(t, "x", nil, cert)
	sign := func(b *pgp.Binding) error { return b.DetachSign(ctx, io.Discard, strings.NewReader("x"), nil) }
	decrypt := func(b *pgp.Binding) error {
		_, err := b.Decrypt(ctx, bytes.NewReader(msg), nil, nil)
		return err
	}
	check := func(what string, err error, want ...error) {
		t.Helper()
		var e *pgp.Error
		if !errors.As(err, &e) || e.Card != "FFFE:0BADCAFE" || e.Key == "" || !strings.HasPrefix(err.Error(), "pgp: ") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %q", what, err)
		}
		for _, w := range want {
			if !errors.Is(err, w) {
				t.Errorf("%s: %v is not %v", what, err, w)
			}
		}
		t.Logf("%s: %v", what, err)
	}

	_, stranger, _ := makeCard(t, "ed25519", softcard.Config{})
	_, err := pgp.Bind(ctx, open(t, soft), stranger, nil)
	check("wrong certificate", err, pgp.ErrNotOnCard, keycard.ErrMismatch)
	_, err = pgp.Bind(ctx, open(t, softcard.MustNew(softcard.Config{Serial: 0x0badcafe})), cert, nil)
	check("blank card", err, pgp.ErrNotOnCard, keycard.ErrNoKey)

	// A card with only the decryption key, and one with only the signature key.
	for _, slot := range []keycard.Slot{keycard.SlotSign, keycard.SlotDecrypt} {
		e := softEntity(t, &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
		c := open(t, softcard.MustNew(softcard.Config{Serial: 0x0badcafe}))
		p := e.PrivateKey
		if slot == keycard.SlotDecrypt {
			p = e.Subkeys[0].PrivateKey
		}
		if _, err := pgp.Import(ctx, []*keycard.Card{c}, slot, p); err != nil {
			t.Fatal(err)
		}
		b := bind(t, c, e)
		if slot == keycard.SlotDecrypt {
			check("no signature key", sign(b), pgp.ErrNotOnCard, keycard.ErrNoKey)
			_, err := b.Certify(ctx, stranger, userID, nil)
			check("no primary key", err, pgp.ErrNotOnCard, keycard.ErrNoKey)
			continue
		}
		_, err := b.Decrypt(ctx, bytes.NewReader(encryptTo(t, "x", nil, e)), nil, nil)
		check("no decryption key", err, pgp.ErrNotOnCard, keycard.ErrNoKey)
	}

	wrong := keycard.StaticPIN(keycard.PINString("000000"), nil)
	b, err := pgp.Bind(ctx, open(t, soft), cert, wrong)
	if err != nil {
		t.Fatal(err)
	}
	check("wrong PIN, signing", sign(b), keycard.ErrPIN)
	check("wrong PIN, decrypting", decrypt(b), keycard.ErrPIN)
	check("one try left", sign(b), keycard.ErrLastTry)
	check("one try left", decrypt(b), keycard.ErrLastTry)
	b, err = pgp.Bind(ctx, open(t, soft, keycard.WithLastTry()), cert, wrong)
	if err != nil {
		t.Fatal(err)
	}
	check("last try", sign(b), keycard.ErrBlocked)
	check("blocked, signing", sign(b), keycard.ErrBlocked)
	check("blocked, decrypting", decrypt(b), keycard.ErrBlocked)
	card := open(t, soft)
	if err := card.Unblock(ctx, nil, keycard.PINString("123456")); err != nil {
		t.Fatal(err)
	}
	none, err := pgp.Bind(ctx, card, cert, func(context.Context, keycard.PINRequest) (*keycard.PIN, error) {
		return nil, errors.New("the user went away")
	})
	if err != nil {
		t.Fatal(err)
	}
	check("no PIN", sign(none))

	for slot := keycard.SlotSign; slot <= keycard.SlotDecrypt; slot++ {
		if err := card.SetUIF(ctx, slot, keycard.UIFOn); err != nil {
			t.Fatal(err)
		}
	}
	b = bind(t, card, cert)
	if err := sign(b); err != nil {
		t.Fatal(err)
	}
	touched = false
	check("no touch, signing", sign(b), keycard.ErrTouch)
	check("no touch, decrypting", decrypt(b), keycard.ErrTouch)
	touched = true
	if err := decrypt(b); err != nil {
		t.Fatal(err)
	}
	gone = true
	check("removed, signing", sign(b), keycard.ErrRemoved)
	check("removed, decrypting", decrypt(b), keycard.ErrRemoved)
	gone = false
	ended, cancel := context.WithCancel(ctx)
	cancel()
	check("cancelled", b.DetachSign(ended, io.Discard, strings.NewReader("x"), nil), context.Canceled)
}

// TestForeignKeyUnderFingerprint: the fingerprint says one key, the slot holds
// another of the same kind. No signature leaves the package.
func TestForeignKeyUnderFingerprint(t *testing.T) {
	ctx := t.Context()
	for _, kind := range []string{"nistp256", "ed25519", "rsa2048"} {
		soft, cert, _ := makeCard(t, kind, softcard.Config{})
		card := open(t, soft)
		old := card.Info().Keys[keycard.SlotSign]
		a, _ := keycard.ParseAlgorithm(kind)
		if _, err := card.Generate(ctx, keycard.SlotSign, a, keycard.KeyMeta{}); err != nil {
			t.Fatal(err)
		}
		if err := card.SetFingerprint(ctx, keycard.SlotSign, old.Fingerprint, old.Created); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := bind(t, card, cert).DetachSign(ctx, &out, strings.NewReader("x"), nil); !errors.Is(err, keycard.ErrMismatch) || out.Len() > 0 {
			t.Errorf("%s: %v, %d octets", kind, err, out.Len())
		}
	}
}

// TestRecordedKeys imports gpg's own test keys into software cards and opens
// what gpg encrypted to them.
func TestRecordedKeys(t *testing.T) {
	ctx := t.Context()
	for _, name := range []string{"rsa2048", "p256", "c25519"} {
		list, err := openpgp.ReadKeyRing(bytes.NewReader(vectors.Read(t, "keycard/keys/"+name+".sec.pgp")))
		if err != nil {
			t.Fatal(err)
		}
		e := list[0]
		cards := []*keycard.Card{open(t, softcard.MustNew(softcard.Config{})), open(t, softcard.MustNew(softcard.Config{Personality: softcard.V34Chaining}))}
		if _, err := pgp.Import(ctx, cards, keycard.SlotSign, e.PrivateKey); err != nil {
			t.Fatal(err)
		}
		for _, s := range e.Subkeys {
			slot := keycard.SlotAuth
			if s.Sig.FlagEncryptCommunications {
				slot = keycard.SlotDecrypt
			}
			if _, err := pgp.Import(ctx, cards, slot, s.PrivateKey); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range cards {
			md, err := bind(t, c, e).Decrypt(ctx, bytes.NewReader(vectors.Read(t, "keycard/keys/"+name+".msg.pgp")), nil, nil)
			if got := body(t, md, err); got != "secret for card\n" {
				t.Errorf("%s: %q", name, got)
			}
		}
		// The signatures that the hardware-like cards made verify.
		sig := vectors.Read(t, "keycard/keys/"+name+".card.sig")
		if _, err := openpgp.CheckDetachedSignature(list, strings.NewReader("hello card\n"), bytes.NewReader(sig), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestVersion6 binds keys whose fingerprints a card cannot store, by comparing
// the public keys.
func TestVersion6(t *testing.T) {
	ctx := t.Context()
	for _, alg := range []packet.PublicKeyAlgorithm{packet.PubKeyAlgoEd25519, packet.PubKeyAlgoECDSA} {
		e := softEntity(t, &packet.Config{V6Keys: true, Algorithm: alg, Curve: packet.CurveNistP256, AEADConfig: &packet.AEADConfig{}})
		card := open(t, softcard.MustNew(softcard.Config{}))
		if _, err := pgp.Import(ctx, []*keycard.Card{card}, keycard.SlotSign, e.PrivateKey); !errors.Is(err, keycard.ErrUnsupported) {
			t.Errorf("%v", err)
		}
		for slot, p := range []*packet.PrivateKey{e.PrivateKey, e.Subkeys[0].PrivateKey} {
			q := *p
			q.Version, q.Fingerprint = 4, p.Fingerprint[:20] // what is on the card does not matter
			if _, err := pgp.Import(ctx, []*keycard.Card{card}, keycard.Slot(slot), &q); err != nil {
				t.Fatal(err)
			}
		}
		b := bind(t, card, reread(t, e))
		ring := openpgp.EntityList{b.Certificate()}
		var sig bytes.Buffer
		if err := b.DetachSign(ctx, &sig, strings.NewReader("x"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := openpgp.CheckDetachedSignature(ring, strings.NewReader("x"), &sig, nil); err != nil {
			t.Error(err)
		}
		md, err := openpgp.ReadMessage(bytes.NewReader(signed(t, b, "inline")), ring, nil, nil)
		if body(t, md, err) != "inline" || md.SignatureError != nil {
			t.Error(md.SignatureError)
		}
		var clear bytes.Buffer
		if err := b.ClearSign(ctx, &clear, strings.NewReader("x\n"), nil); !errors.Is(err, keycard.ErrUnsupported) || clear.Len() > 0 {
			t.Errorf("%v", err)
		}
		md, err = b.Decrypt(ctx, bytes.NewReader(encryptTo(t, "secret", &packet.Config{AEADConfig: &packet.AEADConfig{}}, e)), nil, nil)
		if body(t, md, err) != "secret" {
			t.Error("decrypted something else")
		}
	}
}

// TestTogether uses one binding from several goroutines.
func TestTogether(t *testing.T) {
	soft, cert, _ := makeCard(t, "ed25519", softcard.Config{})
	b := bind(t, open(t, soft), cert)
	msg := encryptTo(t, "secret", nil, cert)
	errs := make(chan error)
	for i := range 8 {
		go func() {
			if i%2 == 0 {
				md, err := b.Decrypt(context.Background(), bytes.NewReader(msg), nil, nil)
				if err == nil {
					_, err = io.Copy(io.Discard, md.UnverifiedBody)
				}
				errs <- err
				return
			}
			var sig bytes.Buffer
			err := b.DetachSign(context.Background(), &sig, strings.NewReader("x"), nil)
			if err == nil {
				_, err = openpgp.CheckDetachedSignature(openpgp.EntityList{cert}, strings.NewReader("x"), &sig, nil)
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// FuzzDecrypt: no message makes a panic, or the card work without end, whether
// its key is of the old or the new format.
func FuzzDecrypt(f *testing.F) {
	soft, cert, _ := makeCard(f, "ed25519", softcard.Config{})
	old, err := pgp.Bind(context.Background(), open(f, soft), cert, nil)
	if err != nil {
		f.Fatal(err)
	}
	e := softEntity(f, &packet.Config{Algorithm: packet.PubKeyAlgoEd25519})
	card := open(f, softcard.MustNew(softcard.Config{}))
	for slot, p := range []*packet.PrivateKey{e.PrivateKey, e.Subkeys[0].PrivateKey} {
		if _, err := pgp.Import(context.Background(), []*keycard.Card{card}, keycard.Slot(slot), p); err != nil {
			f.Fatal(err)
		}
	}
	b, err := pgp.Bind(context.Background(), card, e, nil)
	if err != nil {
		f.Fatal(err)
	}
	both := encryptTo(f, "to both", nil, cert, e)
	f.Add(both)
	f.Add(both[:100])
	f.Add(encryptTo(f, "to the new one", &packet.Config{AEADConfig: &packet.AEADConfig{}}, e))
	f.Add(signed(f, old, "signed"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		before, _ := card.Count()
		md, err := pgp.Decrypt(context.Background(), bytes.NewReader(msg), []*pgp.Binding{old, b}, nil, nil)
		if err == nil {
			io.Copy(io.Discard, io.LimitReader(md.UnverifiedBody, 1<<20))
		}
		if after, _ := card.Count(); after-before > 20 {
			t.Errorf("%d commands", after-before)
		}
	})
}
