package keycard_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// TestCommandBudget counts what goes over the wire. gpg 2.2.40 on the same
// card (integration test, same software card): cold status 30, cold sign 26,
// cold decrypt 23 APDUs, sign with scdaemon warm 4.
func TestCommandBudget(t *testing.T) {
	type counts struct{ commands, apdus int }
	count := func(c *keycard.Card, f func()) counts {
		a1, b1 := c.Count()
		f()
		a2, b2 := c.Count()
		return counts{a2 - a1, b2 - b1}
	}
	ok := func(_ []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []struct {
		name             string
		cfg              softcard.Config
		status, coldSign counts
		decryptRSA       counts
	}{
		{"extended length", softcard.Config{WithoutKDF: true}, counts{6, 6}, counts{4, 4}, counts{2, 2}},
		{"KDF possible", softcard.Config{}, counts{7, 7}, counts{5, 5}, counts{2, 2}},
		{"chaining", softcard.Config{Personality: softcard.V34Chaining, WithoutKDF: true}, counts{6, 6}, counts{4, 4}, counts{2, 3}},
		{"2.0", softcard.Config{Personality: softcard.V20}, counts{6, 6}, counts{4, 4}, counts{2, 3}},
	} {
		t.Run(v.name, func(t *testing.T) {
			c, sc := open(t, v.cfg)
			algorithm := keycard.EC(keycard.Ed25519)
			if v.cfg.Personality == softcard.V20 {
				algorithm = keycard.RSA(2048)
			}
			p, err := c.Import(t.Context(), keycard.SlotSign, software(t, algorithm), keycard.KeyMeta{Created: created})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Import(t.Context(), keycard.SlotDecrypt, software(t, algorithm.For(keycard.SlotDecrypt)), keycard.KeyMeta{Created: created}); err != nil {
				t.Fatal(err)
			}
			c.Close()
			reopen := func() *keycard.Card {
				c, err := keycard.Open(t.Context(), sc, keycard.WithPINs(keycard.StaticPIN(user, adminPW)))
				if err != nil {
					t.Fatal(err)
				}
				return c
			}

			c = reopen()
			if _, err := c.Status(t.Context()); err != nil {
				t.Fatal(err)
			}
			if a, b := c.Count(); (counts{a, b}) != v.status || a > 8 || b > 8 {
				t.Errorf("cold status: %d commands, %d APDUs, want %+v", a, b, v.status)
			}
			c.Close()

			c = reopen()
			k, err := c.KeyFor(keycard.SlotSign, p.Key, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := count(c, func() { ok(k.SignRaw(t.Context(), []byte("x"))) }); n != (counts{2, 2}) {
				t.Errorf("first sign after open: %+v", n)
			}
			if a, b := c.Count(); (counts{a, b}) != v.coldSign {
				t.Errorf("cold sign: %d commands, %d APDUs, want %+v", a, b, v.coldSign)
			}
			if n := count(c, func() { ok(k.SignRaw(t.Context(), []byte("x"))) }); n != (counts{2, 2}) {
				t.Errorf("sign: %+v", n)
			}
			d, err := c.Key(t.Context(), keycard.SlotDecrypt, nil)
			if err != nil {
				t.Fatal(err)
			}
			use := func() {
				switch p := d.Public().(type) {
				case *rsa.PublicKey:
					ct, _ := rsa.EncryptPKCS1v15(rand.Reader, p, []byte("secret"))
					ok(d.Decrypt(nil, ct, nil))
				case *ecdh.PublicKey:
					e, _ := p.Curve().GenerateKey(rand.Reader)
					ok(d.ECDH(e.PublicKey()))
				}
			}
			first, again := counts{2, 2}, counts{1, 1}
			if algorithm.ID == keycard.AlgoRSA {
				first, again = v.decryptRSA, counts{1, v.decryptRSA.apdus - 1}
			}
			if n := count(c, use); n != first {
				t.Errorf("decrypt: %+v", n)
			}
			if n := count(c, use); n != again {
				t.Errorf("decrypt with the PIN verified: %+v", n)
			}
			if err := c.SetForceSig(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if n := count(c, func() { ok(k.SignRaw(t.Context(), []byte("x"))) }); n != (counts{2, 2}) {
				t.Errorf("first sign: %+v", n)
			}
			if n := count(c, func() { ok(k.SignRaw(t.Context(), []byte("x"))) }); n != (counts{1, 1}) {
				t.Errorf("sign with the PIN verified: %+v", n)
			}
			c.Close()
			c = reopen()
			if d, err = c.KeyFor(keycard.SlotDecrypt, d.Public(), nil); err != nil {
				t.Fatal(err)
			}
			use()
			if a, _ := c.Count(); a != v.coldSign.commands {
				t.Errorf("cold decrypt: %d commands, want %d", a, v.coldSign.commands)
			}
			c.Close()
			if !v.cfg.WithoutKDF && v.cfg.Personality == softcard.V34 {
				// Settings known from before save the question.
				c, err := keycard.Open(t.Context(), sc, keycard.WithPINs(keycard.StaticPIN(user, adminPW)), keycard.WithKDF(keycard.KDF{}))
				if err != nil {
					t.Fatal(err)
				}
				k, err := c.KeyFor(keycard.SlotSign, p.Key, nil)
				if err != nil {
					t.Fatal(err)
				}
				ok(k.SignRaw(t.Context(), []byte("x")))
				if a, b := c.Count(); a != 4 || b != 4 {
					t.Errorf("cold sign with known KDF: %d commands, %d APDUs", a, b)
				}
			}
		})
	}
}

func TestPINs(t *testing.T) {
	for name, cfg := range personalities {
		t.Run(name, func(t *testing.T) {
			c, sc := open(t, cfg)
			ctx := t.Context()
			newUser, newAdmin, rc := keycard.PINString("654321"), keycard.PINString("87654321"), keycard.PINString("98765432")
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			must(c.ChangePIN(ctx, keycard.PINUser, user, newUser))
			must(c.Verify(ctx, keycard.PINSign, newUser))
			must(c.SetResetCode(ctx, rc))
			must(c.ChangePIN(ctx, keycard.PINAdmin, adminPW, newAdmin))
			if err := c.ChangePIN(ctx, keycard.PINUser, user, newUser); !errors.Is(err, keycard.ErrPIN) {
				t.Errorf("change with a wrong PIN: %v", err)
			}
			if err := c.Unblock(ctx, keycard.PINString("00000000"), user); !errors.Is(err, keycard.ErrPIN) {
				t.Errorf("wrong resetting code: %v", err)
			}
			if n := c.Info().PIN; n.PIN != 2 || n.ResetCode != 2 {
				t.Errorf("tries %+v", n)
			}
			must(c.Unblock(ctx, rc, user))
			must(c.Verify(ctx, keycard.PINUser, user))
			must(c.Verify(ctx, keycard.PINAdmin, newAdmin))
			must(c.Unblock(ctx, nil, newUser))
			must(c.Verify(ctx, keycard.PINUser, newUser))
			for _, short := range []struct {
				m keycard.PINMode
				p string
			}{{keycard.PINUser, "12345"}, {keycard.PINAdmin, "1234567"}, {keycard.PINUser, strings.Repeat("1", 200)}} {
				old := newUser
				if short.m == keycard.PINAdmin {
					old = newAdmin
				}
				before := sc.Commands()
				if err := c.ChangePIN(ctx, short.m, old, keycard.PINString(short.p)); !errors.Is(err, keycard.ErrPINLength) || sc.Commands() != before {
					t.Errorf("new PIN of %d: %v", len(short.p), err)
				}
			}
			must(c.SetResetCode(ctx, nil))
			if c.Info().PIN.ResetCode != 0 {
				t.Error("resetting code still there")
			}
			must(c.Logout(ctx))
			if cfg.Personality != softcard.V20 {
				if ok, _, err := c.Verified(ctx, keycard.PINUser); ok || err != nil {
					t.Errorf("after logout: %v, %v", ok, err)
				}
			}
		})
	}
}

// A wrong PIN is presented once, the last try not at all.
func TestNoTryIsWasted(t *testing.T) {
	var s spy
	sc := softcard.MustNew(softcard.Config{Fault: s.fault, WithoutKDF: true})
	asked := 0
	ask := func(_ context.Context, r keycard.PINRequest) (*keycard.PIN, error) {
		asked++
		if r.Mode == keycard.PINAdmin {
			return adminPW.Clone(), nil
		}
		if r.Min != 6 || r.Max != 127 || r.Slot != keycard.SlotAuth || r.Card == "" {
			t.Errorf("request %+v", r)
		}
		return keycard.PINString("000000"), nil
	}
	c, err := keycard.Open(t.Context(), sc, keycard.WithPINs(ask))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Import(t.Context(), keycard.SlotAuth, software(t, keycard.EC(keycard.P256)), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	k, err := c.Key(t.Context(), keycard.SlotAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []error{keycard.ErrPIN, keycard.ErrPIN, keycard.ErrLastTry, keycard.ErrLastTry} {
		s.commands, asked = nil, 0
		_, err := k.SignRaw(t.Context(), []byte("x"))
		sent := len(s.find("00200082"))
		if !errors.Is(err, want) || sent > 1 || want == keycard.ErrLastTry && (sent != 0 || asked != 0) || len(s.find("0088")) != 0 {
			t.Errorf("%d: %v, PIN sent %d times, asked %d times", i, err, sent, asked)
		}
	}
	// Another program may have set the counter back: the card is asked.
	if err := c.Unblock(t.Context(), nil, user); err != nil {
		t.Fatal(err)
	}
	if err := c.Verify(t.Context(), keycard.PINUser, user); err != nil {
		t.Error(err)
	}
	if _, err := k.SignRaw(t.Context(), []byte("x")); err != nil {
		t.Error(err)
	}
	last, err := keycard.Open(t.Context(), sc, keycard.WithLastTry())
	if err != nil {
		t.Fatal(err)
	}
	for want := 2; want >= 0; want-- {
		var se *keycard.StatusError
		if err := last.Verify(t.Context(), keycard.PINUser, keycard.PINString("000000")); !errors.As(err, &se) || se.Retries != want {
			t.Errorf("%d left: %v", want, err)
		}
	}
}

// PINs are cleared where they were.
func TestPINMemory(t *testing.T) {
	p := []byte("123456")
	given := keycard.NewPIN(p)
	c, _ := open(t, softcard.Config{}, keycard.WithPINs(func(_ context.Context, r keycard.PINRequest) (*keycard.PIN, error) {
		if r.Mode == keycard.PINAdmin {
			return adminPW.Clone(), nil
		}
		return given, nil
	}))
	if _, err := c.Import(t.Context(), keycard.SlotAuth, rsaKey(t, 2048), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	key := rsaKey(t, 2048)
	for _, secret := range [][]byte{[]byte("12345678"), key.Primes[0].Bytes()[:16], key.Primes[1].Bytes()[:16]} {
		if bytes.Contains(c.Buffer(), secret) {
			t.Errorf("%x is still in the command buffer", secret)
		}
	}
	check(t, c, keycard.SlotAuth)
	if !bytes.Equal(p, make([]byte, 6)) {
		t.Errorf("the PIN given is still %q", p)
	}
	if bytes.Contains(c.Buffer(), []byte("123456")) {
		t.Error("the PIN is still in the command buffer")
	}
	q := keycard.PINString("123456")
	if s := fmt.Sprintf("%v %+v %#v %s", q, q, q, q); strings.Contains(s, "123456") || strings.Contains(s, "49, 50") || strings.Contains(s, "0x31") {
		t.Errorf("printed: %s", s)
	}
	(*keycard.PIN)(nil).Clear()
	q.Clear()
	if q.Len() != 0 {
		t.Error("Clear left something")
	}
}

// Logs show commands, but not what is secret in them.
func TestLogIsMasked(t *testing.T) {
	var log []keycard.LogEntry
	c, _ := open(t, softcard.Config{Personality: softcard.V34Chaining}, keycard.WithLog(func(e keycard.LogEntry) { log = append(log, e) }))
	key := rsaKey(t, 2048)
	if _, err := c.Import(t.Context(), keycard.SlotDecrypt, key, keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	k, err := c.Key(t.Context(), keycard.SlotDecrypt, nil)
	if err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("secret!!"), 30)[:240]
	ct, _ := rsa.EncryptPKCS1v15(rand.Reader, &key.PublicKey, long)
	if got, err := k.Decrypt(nil, ct, nil); err != nil || !bytes.Equal(got, long) {
		t.Fatal(err)
	}
	if err := c.SetResetCode(t.Context(), keycard.PINString("98765432")); err != nil {
		t.Fatal(err)
	}
	mine, myAdmin := keycard.PINString("mypin123"), keycard.PINString("myadmin12")
	if err := c.ChangePIN(t.Context(), keycard.PINUser, user, mine); err != nil {
		t.Fatal(err)
	}
	if err := c.ChangePIN(t.Context(), keycard.PINAdmin, adminPW, myAdmin); err != nil {
		t.Fatal(err)
	}
	kdf := keycard.NewKDF()
	kdf.Count = 1000
	if err := c.SetKDF(t.Context(), kdf, mine, myAdmin); err != nil {
		t.Fatal(err)
	}
	// Anyone can read the object: what unlocks the card must not be in it.
	object, err := c.Object(t.Context(), 0xf9)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range [][]byte{kdf.Derive(keycard.PINUser, []byte("mypin123")), kdf.Derive(keycard.PINAdmin, []byte("myadmin12"))} {
		if bytes.Contains(object, h) {
			t.Error("the KDF object gives a PIN's hash away")
		}
	}
	var all strings.Builder
	for _, e := range log {
		fmt.Fprintln(&all, e.Command, e.Response, e.Err)
	}
	text := all.String()
	for name, secret := range map[string][]byte{
		"PIN": []byte("123456"), "Admin PIN": []byte("12345678"), "own PIN": []byte("mypin123"), "own Admin PIN": []byte("myadmin12"), "resetting code": []byte("98765432"), "plaintext": []byte("secret!!"),
		"prime": key.Primes[0].Bytes()[100:108], "prime's begin": key.Primes[0].Bytes()[:8], "second prime": key.Primes[1].Bytes()[50:58],
		"hash": kdf.Derive(keycard.PINUser, []byte("mypin123"))[:8], "Admin hash": kdf.Derive(keycard.PINAdmin, []byte("myadmin12"))[:8],
	} {
		if strings.Contains(text, hex.EncodeToString(secret)) {
			t.Errorf("%s in the log", name)
		}
	}
	for _, want := range []string{"0020008308xxxxxxxxxxxxxxxx 9000", "00da00d308xxxxxxxxxxxxxxxx 9000", "00a4040006d27600012401 9000", "10db3ffffexx"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the log", want)
		}
	}
}

func TestSignatureInputs(t *testing.T) {
	c, _ := open(t, softcard.Config{})
	if _, err := c.Import(t.Context(), keycard.SlotSign, rsaKey(t, 2048), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	k, err := c.Key(t.Context(), keycard.SlotSign, nil)
	if err != nil {
		t.Fatal(err)
	}
	pub := k.Public().(*rsa.PublicKey)
	for _, h := range []crypto.Hash{crypto.SHA1, crypto.SHA224, crypto.SHA256, crypto.SHA384, crypto.SHA512} {
		digest := bytes.Repeat([]byte{0xd1}, h.Size())
		sig, err := k.Sign(nil, digest, h)
		if err != nil {
			t.Fatalf("%v: %v", h, err)
		}
		if err := rsa.VerifyPKCS1v15(pub, h, digest, sig); err != nil {
			t.Errorf("%v: %v", h, err)
		}
	}
	d := sha256.Sum256(nil)
	for what, f := range map[string]func() error{
		"PSS":                      func() error { _, err := k.Sign(nil, d[:], &rsa.PSSOptions{Hash: crypto.SHA256}); return err },
		"digest of another length": func() error { _, err := k.Sign(nil, d[:31], crypto.SHA256); return err },
		"unknown hash":             func() error { _, err := k.Sign(nil, d[:16], crypto.MD5); return err },
		"too long":                 func() error { _, err := k.Sign(nil, make([]byte, 200), crypto.Hash(0)); return err },
		"nothing":                  func() error { _, err := k.SignRaw(t.Context(), nil); return err },
		"decryption":               func() error { _, err := k.Decrypt(nil, make([]byte, 256), nil); return err },
		"ECDH": func() error {
			e, _ := ecdh.X25519().GenerateKey(rand.Reader)
			_, err := k.ECDH(e.PublicKey())
			return err
		},
	} {
		if err := f(); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	// ECDSA with digests of other lengths than the field.
	for _, a := range []keycard.Curve{keycard.P256, keycard.P384, keycard.P521} {
		p, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(a)), keycard.KeyMeta{Created: created})
		if err != nil {
			t.Fatal(err)
		}
		k, err := c.Key(t.Context(), keycard.SlotSign, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{20, 32, 48, 64} {
			digest := sha512.Sum512([]byte{byte(n)})
			sig, err := k.SignRaw(t.Context(), digest[:n])
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Verify(digest[:n], sig); err != nil {
				t.Errorf("%v, %d octets: %v", a, n, err)
			}
			sig[len(sig)-1] ^= 1
			if err := p.Verify(digest[:n], sig); err == nil {
				t.Errorf("%v: a changed signature verifies", a)
			}
		}
	}
	if _, err := c.KeyFor(keycard.SlotSign, &rsaKey(t, 2048).PublicKey, nil); !errors.Is(err, keycard.ErrMismatch) {
		t.Errorf("KeyFor with another kind of key: %v", err)
	}
}

func TestDecryptSessionKey(t *testing.T) {
	c, _ := open(t, softcard.Config{})
	key := rsaKey(t, 2048)
	if _, err := c.Import(t.Context(), keycard.SlotDecrypt, key, keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	k, err := c.Key(t.Context(), keycard.SlotDecrypt, nil)
	if err != nil {
		t.Fatal(err)
	}
	ct, _ := rsa.EncryptPKCS1v15(rand.Reader, &key.PublicKey, []byte("0123456789abcdef"))
	if b, err := k.Decrypt(nil, ct, &rsa.PKCS1v15DecryptOptions{SessionKeyLen: 16}); err != nil || string(b) != "0123456789abcdef" {
		t.Errorf("%q, %v", b, err)
	}
	if b, err := k.Decrypt(nil, ct, &rsa.PKCS1v15DecryptOptions{SessionKeyLen: 24}); err != nil || len(b) != 24 {
		t.Errorf("other length: %q, %v", b, err)
	}
	bad := bytes.Clone(ct)
	bad[100] ^= 1
	if b, err := k.Decrypt(nil, bad, &rsa.PKCS1v15DecryptOptions{SessionKeyLen: 16}); err != nil || len(b) != 16 {
		t.Errorf("bad padding: %q, %v", b, err)
	}
	if _, err := k.Decrypt(nil, bad, nil); !errors.Is(err, keycard.ErrData) {
		t.Errorf("bad padding without options: %v", err)
	}
	if _, err := k.Decrypt(nil, ct, &rsa.OAEPOptions{Hash: crypto.SHA256}); !errors.Is(err, keycard.ErrUnsupported) {
		t.Errorf("OAEP: %v", err)
	}
	if _, err := k.Decrypt(nil, make([]byte, 257), nil); !errors.Is(err, keycard.ErrData) {
		t.Errorf("too long: %v", err)
	}
	if b, err := k.Decrypt(nil, bytes.TrimLeft(append(make([]byte, 2), ct...), "\x00"), nil); err != nil || len(b) != 16 {
		t.Errorf("leading zeros: %v", err)
	}
}

// Some cards answer ECDH with the whole point or without leading zeros.
func TestECDHResultForms(t *testing.T) {
	x := bytes.Repeat([]byte{0x11}, 32)
	forms := map[string]string{
		"x":              hex.EncodeToString(x),
		"point":          "04" + hex.EncodeToString(x) + strings.Repeat("22", 32),
		"no zeros":       "11",
		"zero":           strings.Repeat("00", 32),
		"too long":       strings.Repeat("11", 33),
		"not compressed": "05" + strings.Repeat("11", 64),
		"nothing":        "",
	}
	for name, r := range forms {
		c, _ := open(t, softcard.Config{Fault: answer(map[string]string{"002a8086": r + "9000"})})
		if _, err := c.Import(t.Context(), keycard.SlotDecrypt, software(t, keycard.EC(keycard.P256)), keycard.KeyMeta{Created: created}); err != nil {
			t.Fatal(err)
		}
		k, err := c.Key(t.Context(), keycard.SlotDecrypt, nil)
		if err != nil {
			t.Fatal(err)
		}
		e, _ := ecdh.P256().GenerateKey(rand.Reader)
		got, err := k.ECDH(e.PublicKey())
		switch name {
		case "x", "point":
			if err != nil || !bytes.Equal(got, x) {
				t.Errorf("%s: %x, %v", name, got, err)
			}
		case "no zeros":
			if err != nil || len(got) != 32 || got[31] != 0x11 || got[0] != 0 {
				t.Errorf("%s: %x, %v", name, got, err)
			}
		default:
			if err == nil {
				t.Errorf("%s: %x without error", name, got)
			}
		}
	}
}

func TestTouch(t *testing.T) {
	var touched atomic.Bool
	release := make(chan struct{})
	var mu sync.Mutex
	var events []string
	c, _ := open(t, softcard.Config{Touch: func(ctx context.Context, s keycard.Slot) bool {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return touched.Load()
	}}, keycard.WithTouch(time.Millisecond, func(s keycard.Slot, waiting bool) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, fmt.Sprint(s, waiting))
		if waiting {
			close(release)
		}
	}))
	if _, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.Ed25519)), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	if err := c.SetUIF(t.Context(), keycard.SlotSign, keycard.UIFOn); err != nil {
		t.Fatal(err)
	}
	k, err := c.Key(t.Context(), keycard.SlotSign, nil)
	if err != nil {
		t.Fatal(err)
	}
	touched.Store(true)
	if _, err := k.SignRaw(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if strings.Join(events, ",") != "sign true,sign false" {
		t.Errorf("events %v", events)
	}
	events, release = nil, make(chan struct{})
	mu.Unlock()
	touched.Store(false)
	if _, err := k.SignRaw(t.Context(), []byte("x")); !errors.Is(err, keycard.ErrTouch) {
		t.Errorf("nobody touched: %v", err)
	}
	if err := c.SetUIF(t.Context(), keycard.SlotSign, keycard.UIFOff); err != nil {
		t.Fatal(err)
	}
	events = nil
	if _, err := k.SignRaw(t.Context(), []byte("x")); err != nil || events != nil {
		t.Errorf("without touch: %v, %v", err, events)
	}
}

func TestCertificates(t *testing.T) {
	for name, cfg := range personalities {
		c, _ := open(t, cfg)
		for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
			cert := bytes.Repeat([]byte{byte(slot), 0x30}, 600)
			err := c.SetCertificate(t.Context(), slot, cert)
			if cfg.Personality == softcard.V20 && slot != keycard.SlotAuth {
				if !errors.Is(err, keycard.ErrUnsupported) {
					t.Errorf("%s: %v: %v", name, slot, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("%s: %v: %v", name, slot, err)
			}
		}
		for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
			if cfg.Personality == softcard.V20 && slot != keycard.SlotAuth {
				continue
			}
			if b, err := c.Certificate(t.Context(), slot); err != nil || !bytes.Equal(b, bytes.Repeat([]byte{byte(slot), 0x30}, 600)) {
				t.Errorf("%s: %v: %d octets, %v", name, slot, len(b), err)
			}
			if err := c.SetCertificate(t.Context(), slot, nil); err != nil {
				t.Errorf("%s: %v: remove: %v", name, slot, err)
			}
			if b, err := c.Certificate(t.Context(), slot); err != nil || len(b) != 0 {
				t.Errorf("%s: %v: after removal %d octets, %v", name, slot, len(b), err)
			}
		}
		if err := c.SetCertificate(t.Context(), keycard.SlotAuth, make([]byte, 5000)); !errors.Is(err, keycard.ErrTooLong) {
			t.Errorf("%s: long certificate: %v", name, err)
		}
	}
	// YubiKeys before 5.4.4 want another form of SELECT DATA.
	var forms []string
	c, _ := open(t, softcard.Config{Fault: func(_ context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
		if cmd[1] == 0xa5 {
			forms = append(forms, hex.EncodeToString(cmd))
			if cmd[4] != 7 {
				return []byte{0x6a, 0x80}, nil
			}
			return []byte{0x90, 0}, nil
		}
		return process(cmd), nil
	}})
	if _, err := c.Certificate(t.Context(), keycard.SlotSign); err != nil || len(forms) != 2 || forms[1] != "00a50204070660045c027f21" {
		t.Errorf("%v, %v", forms, err)
	}
}

func TestAttestation(t *testing.T) {
	c, sc := open(t, softcard.Config{Attestation: true})
	if !c.Info().Keys[keycard.SlotAttest].Present {
		t.Fatal("no attestation slot")
	}
	p, err := c.Generate(t.Context(), keycard.SlotSign, keycard.EC(keycard.P256), keycard.KeyMeta{Created: created})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetCertificate(t.Context(), keycard.SlotSign, []byte("was here")); err != nil {
		t.Fatal(err)
	}
	a, err := c.Attest(t.Context(), keycard.SlotSign, true)
	if err != nil {
		t.Fatal(err)
	}
	if !a.Generated || a.Fingerprint != p.Fingerprint || !a.Created.Equal(created) || uint32(a.Serial) != sc.SerialNumber() || a.UIF != keycard.UIFOff || a.Firmware != [3]byte{3, 4, 0} {
		t.Errorf("%+v", a)
	}
	if b, err := c.Certificate(t.Context(), keycard.SlotSign); err != nil || string(b) != "was here" {
		t.Errorf("certificate afterwards %q, %v", b, err)
	}
	der, err := c.Certificate(t.Context(), keycard.SlotAttest)
	if err != nil {
		t.Fatal(err)
	}
	device, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(sc.AttestationRoot())
	if err := a.Verify(device, roots, p); err != nil {
		t.Error(err)
	}
	other, err := c.Generate(t.Context(), keycard.SlotAuth, keycard.EC(keycard.P256), keycard.KeyMeta{Created: created})
	if err != nil {
		t.Fatal(err)
	}
	other.Slot = keycard.SlotSign
	if err := a.Verify(device, roots, other); !errors.Is(err, keycard.ErrMismatch) {
		t.Errorf("another key: %v", err)
	}
	if err := a.Verify(device, x509.NewCertPool(), p); !errors.Is(err, keycard.ErrMismatch) {
		t.Errorf("another root: %v", err)
	}
	if err := a.Verify(sc.AttestationRoot(), roots, p); !errors.Is(err, keycard.ErrMismatch) {
		t.Errorf("another device: %v", err)
	}
	if _, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.P256)), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Attest(t.Context(), keycard.SlotSign, false); !errors.Is(err, keycard.ErrConditions) {
		t.Errorf("imported key: %v", err)
	}
	plain, _ := open(t, softcard.Config{})
	if _, err := plain.Attest(t.Context(), keycard.SlotSign, false); !errors.Is(err, keycard.ErrUnsupported) {
		t.Errorf("card without: %v", err)
	}
	if _, err := keycard.ParseAttestation(der); !errors.Is(err, keycard.ErrMalformed) {
		t.Errorf("a certificate that attests nothing: %v", err)
	}
}

// The same key on three cards.
func TestImportCopies(t *testing.T) {
	var cards []*keycard.Card
	for range 3 {
		c, _ := open(t, softcard.Config{})
		cards = append(cards, c)
	}
	key := software(t, keycard.EC(keycard.X25519))
	p, err := keycard.ImportCopies(t.Context(), cards, keycard.SlotDecrypt, key, keycard.KeyMeta{Created: created})
	if err != nil || p.Fingerprint.IsZero() {
		t.Fatal(err)
	}
	if err := keycard.CompareCopies(t.Context(), cards, keycard.SlotDecrypt); err != nil {
		t.Error(err)
	}
	if _, err := cards[1].Generate(t.Context(), keycard.SlotDecrypt, keycard.EC(keycard.X25519), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	if err := keycard.CompareCopies(t.Context(), cards, keycard.SlotDecrypt); !errors.Is(err, keycard.ErrMismatch) || !strings.Contains(err.Error(), "card 1") {
		t.Errorf("another key on card 1: %v", err)
	}
}

func TestReset(t *testing.T) {
	fresh := func(opts ...keycard.Option) (*keycard.Card, *softcard.Card) {
		c, sc := open(t, softcard.Config{}, opts...)
		if _, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.P256)), keycard.KeyMeta{Created: created}); err != nil {
			t.Fatal(err)
		}
		return c, sc
	}
	blank := func(c *keycard.Card) {
		t.Helper()
		i := c.Info()
		if !i.Keys[0].Fingerprint.IsZero() || i.Keys[0].Origin != keycard.OriginNone || i.PIN.PIN != 3 || i.PIN.Admin != 3 || i.Keys[0].Algorithm != (keycard.Algorithm{ID: 1, Bits: 2048, ExponentBits: 17}) {
			t.Errorf("after the reset: %+v", i)
		}
		if err := c.Verify(t.Context(), keycard.PINAdmin, adminPW); err != nil {
			t.Error(err)
		}
	}
	c, _ := fresh()
	if err := c.FactoryReset(t.Context(), keycard.ResetOptions{}); !errors.Is(err, keycard.ErrNoPIN) {
		t.Errorf("without authorisation: %v", err)
	}
	if err := c.FactoryReset(t.Context(), keycard.ResetOptions{Admin: keycard.PINString("00000000")}); !errors.Is(err, keycard.ErrPIN) {
		t.Errorf("wrong Admin PIN: %v", err)
	}
	if n := c.Info().PIN; n.PIN != 3 || n.Admin != 2 {
		t.Errorf("tries %+v", n)
	}
	if err := c.FactoryReset(t.Context(), keycard.ResetOptions{Admin: keycard.PINString("00000000"), BlockPINs: true}); err != nil {
		t.Fatal(err)
	}
	blank(c)

	c, _ = fresh()
	if err := c.FactoryReset(t.Context(), keycard.ResetOptions{Admin: adminPW}); err != nil {
		t.Fatal(err)
	}
	blank(c)

	// Blocked already: nothing more to spend.
	c, sc := fresh(keycard.WithLastTry())
	for range 3 {
		c.Verify(t.Context(), keycard.PINAdmin, keycard.PINString("00000000"))
	}
	before := sc.Commands()
	if err := c.FactoryReset(t.Context(), keycard.ResetOptions{}); err != nil || sc.Commands()-before > 8 {
		t.Fatalf("blocked: %v, %d commands", err, sc.Commands()-before)
	}
	blank(c)

	// With a KDF.
	c, _ = fresh()
	kdf := keycard.NewKDF()
	kdf.Count, kdf.Hash = 1000, 10
	if err := c.SetKDF(t.Context(), kdf, user, adminPW); err != nil {
		t.Fatal(err)
	}
	if err := c.FactoryReset(t.Context(), keycard.ResetOptions{Admin: adminPW}); err != nil {
		t.Fatal(err)
	}
	blank(c)

	// Terminated by somebody: activation brings it back.
	c, sc = fresh()
	if err := c.Verify(t.Context(), keycard.PINAdmin, adminPW); err != nil {
		t.Fatal(err)
	}
	if _, sw, err := c.Send(t.Context(), keycard.Command{INS: 0xe6}); sw != 0x9000 || err != nil {
		t.Fatalf("%04x %v", sw, err)
	}
	if _, err := keycard.Open(t.Context(), sc); !errors.Is(err, keycard.ErrTerminated) {
		t.Errorf("open: %v", err)
	}
	if err := keycard.Reset(t.Context(), sc, keycard.ResetOptions{}); err != nil {
		t.Fatal(err)
	}
	c, err := keycard.Open(t.Context(), sc)
	if err != nil {
		t.Fatal(err)
	}
	blank(c)
}

// What happens when the card goes away, or refuses, after n commands of an
// import or a change of attributes: it stays usable and the error says where
// it stopped.
func TestInterruptedChanges(t *testing.T) {
	old := software(t, keycard.EC(keycard.P256))
	for _, how := range []string{"gone", "refused"} {
		for stop := 0; ; stop++ {
			armed, n := false, 0
			fault := func(_ context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
				writes := cmd[1] == 0xda || cmd[1] == 0xdb || cmd[1] == 0x47
				if armed && writes {
					if n == stop {
						armed = how == "gone"
						if how == "gone" {
							return nil, keycard.ErrRemoved
						}
						return []byte{0x65, 0x81}, nil
					}
					n++
				}
				return process(cmd), nil
			}
			c, sc := open(t, softcard.Config{Fault: fault})
			if _, err := c.Import(t.Context(), keycard.SlotSign, old, keycard.KeyMeta{Created: created}); err != nil {
				t.Fatal(err)
			}
			armed = true
			_, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.Ed25519)), keycard.KeyMeta{Created: created.Add(time.Hour)})
			if err == nil {
				if stop < 4 {
					t.Fatalf("%s after %d: no error", how, stop)
				}
				break
			}
			armed = false
			var ce *keycard.ChangeError
			if !errors.As(err, &ce) {
				t.Fatalf("%s after %d: %v", how, stop, err)
			}
			stages := []string{"attributes", "key", "fingerprint", "time"}
			if ce.Stage != stages[stop] || how == "refused" && stop == 1 && !ce.Restored || how == "gone" && !errors.Is(err, keycard.ErrRemoved) {
				t.Errorf("%s after %d: %+v", how, stop, ce)
			}
			// The card opens, says what is wrong, and takes the key anew.
			c, err = keycard.Open(t.Context(), sc, keycard.WithPINs(keycard.StaticPIN(user, adminPW)))
			if err != nil {
				t.Fatalf("%s after %d: open: %v", how, stop, err)
			}
			problems, err := c.Check(t.Context())
			if err != nil {
				t.Fatalf("%s after %d: check: %v", how, stop, err)
			}
			if (stop == 2 || stop == 3) != (len(problems) > 0) {
				t.Errorf("%s after %d: problems %v", how, stop, problems)
			}
			if stop == 0 {
				check(t, c, keycard.SlotSign)
			}
			if _, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.Ed25519)), keycard.KeyMeta{Created: created}); err != nil {
				t.Fatalf("%s after %d: again: %v", how, stop, err)
			}
			check(t, c, keycard.SlotSign)
		}
	}
}

// A KDF that the card refuses leaves the PINs as they were.
func TestKDFRefused(t *testing.T) {
	refuse := true
	c, _ := open(t, softcard.Config{Fault: func(_ context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
		if refuse && cmd[1] == 0xda && cmd[3] == 0xf9 {
			return []byte{0x69, 0x85}, nil
		}
		return process(cmd), nil
	}})
	kdf := keycard.NewKDF()
	kdf.Count = 1000
	if err := c.SetKDF(t.Context(), kdf, user, adminPW); !errors.Is(err, keycard.ErrConditions) {
		t.Errorf("refused: %v", err)
	}
	if err := c.Verify(t.Context(), keycard.PINUser, user); err != nil {
		t.Error(err)
	}
	if err := c.Verify(t.Context(), keycard.PINAdmin, adminPW); err != nil {
		t.Error(err)
	}
	if err := c.SetKDF(t.Context(), kdf, keycard.PINString("000000"), adminPW); !errors.Is(err, keycard.ErrPIN) {
		t.Errorf("wrong PIN: %v", err)
	}
	if err := c.Verify(t.Context(), keycard.PINAdmin, adminPW); err != nil {
		t.Errorf("Admin PIN after a wrong PIN: %v", err)
	}
	// The count is the card's word, and capped.
	hostile := kdf
	hostile.Count = 0xffffffff
	c, _ = open(t, softcard.Config{Fault: answer(map[string]string{"00ca00f9": hex.EncodeToString(hostile.Append(nil)) + "9000"})})
	if err := c.Verify(t.Context(), keycard.PINUser, user); !errors.Is(err, keycard.ErrKDFCount) {
		t.Errorf("count FFFFFFFF: %v", err)
	}
	c, _ = open(t, softcard.Config{WithoutKDF: true})
	if err := c.SetKDF(t.Context(), kdf, user, adminPW); !errors.Is(err, keycard.ErrUnsupported) {
		t.Errorf("card without KDF: %v", err)
	}
}

func TestConcurrentUse(t *testing.T) {
	c, _ := open(t, softcard.Config{})
	if _, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.Ed25519)), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	k, err := c.Key(t.Context(), keycard.SlotSign, nil)
	if err != nil {
		t.Fatal(err)
	}
	pub := k.Public().(ed25519.PublicKey)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				msg := []byte(fmt.Sprint(i, j))
				sig, err := k.SignRaw(context.Background(), msg)
				if err != nil || !ed25519.Verify(pub, msg, sig) {
					t.Errorf("%d %d: %v", i, j, err)
				}
				if _, err := c.Status(context.Background()); err != nil {
					t.Error(err)
				}
				c.Info()
			}
		})
	}
	wg.Wait()
	if n, err := c.Signatures(t.Context()); n != 160 || err != nil {
		t.Errorf("%d signatures, %v", n, err)
	}
}

func TestDoAndClose(t *testing.T) {
	c, sc := open(t, softcard.Config{})
	err := c.Do(t.Context(), func(d *keycard.Card) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.URL(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the outer handle got in: %v", err)
		}
		if d.Info() == nil {
			t.Error("no Info inside Do")
		}
		if err := d.Close(); err == nil {
			t.Error("Close inside Do")
		}
		return d.Verify(t.Context(), keycard.PINUser, user)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := c.URL(t.Context()); !errors.Is(err, keycard.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	// The next one finds the PIN locked.
	d, err := keycard.Open(t.Context(), sc)
	if err != nil {
		t.Fatal(err)
	}
	if ok, _, err := d.Verified(t.Context(), keycard.PINUser); ok || err != nil {
		t.Errorf("verified %v, %v", ok, err)
	}
}

// busyCard is a card in a reader that other programs use too.
type busyCard struct {
	*softcard.Card
	begin, end error // what the next ones return
}

func (b *busyCard) Begin(context.Context) error { return b.begin }
func (b *busyCard) End(reset bool) error {
	if reset && b.end == nil {
		b.Reset()
	}
	return b.end
}

// TestCloseCannotLock: if the card cannot be reset, Close says that the PIN may
// still be verified; not if the card is gone, or nothing was verified.
func TestCloseCannotLock(t *testing.T) {
	for _, v := range []struct {
		name       string
		verify     bool
		begin, end error
		want       error
	}{
		{"free", true, nil, nil, nil},
		{"held by another", true, keycard.ErrBusy, nil, keycard.ErrBusy},
		{"held for long", true, context.DeadlineExceeded, nil, context.DeadlineExceeded},
		{"no reset", true, nil, keycard.ErrBusy, keycard.ErrBusy},
		{"reset by another", true, keycard.ErrCardReset, nil, nil},
		{"removed", true, keycard.ErrRemoved, nil, nil},
		{"removed at the end", true, nil, keycard.ErrRemoved, nil},
		{"no connection", true, keycard.ErrClosed, nil, nil},
		{"nothing verified", false, keycard.ErrBusy, nil, nil},
	} {
		b := &busyCard{Card: softcard.MustNew(softcard.Config{})}
		c, err := keycard.Open(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if v.verify {
			if err := c.Verify(t.Context(), keycard.PINUser, user); err != nil {
				t.Fatal(err)
			}
		}
		b.begin, b.end = v.begin, v.end
		if err := c.Close(); !errors.Is(err, v.want) || (err == nil) != (v.want == nil) {
			t.Errorf("%s: %v, want %v", v.name, err, v.want)
		}
		if _, err := c.URL(t.Context()); !errors.Is(err, keycard.ErrClosed) {
			t.Errorf("%s: after Close: %v", v.name, err)
		}
	}
}

func TestKeyHandles(t *testing.T) {
	c, sc := open(t, softcard.Config{})
	p, err := c.Import(t.Context(), keycard.SlotAuth, software(t, keycard.EC(keycard.Ed25519)), keycard.KeyMeta{Created: created})
	if err != nil {
		t.Fatal(err)
	}
	k, err := c.Key(t.Context(), keycard.SlotAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	if k.Slot() != keycard.SlotAuth || k.Card() != c || !k.PublicKey().Equal(p) || c.Transport() != keycard.Transport(sc) {
		t.Errorf("%+v", k)
	}
	// Inside Do the key works on the handle of the transaction.
	if err := c.Do(t.Context(), func(c *keycard.Card) error {
		_, err := k.On(c).Sign(nil, []byte("x"), crypto.Hash(0))
		return err
	}); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.WithContext(ctx).Sign(nil, []byte("x"), crypto.Hash(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	// A key that was put there by other means: its fingerprint is written
	// later.
	f := p.FingerprintAt(created.Add(time.Hour), keycard.KDFParams{})
	if err := c.SetFingerprint(t.Context(), keycard.SlotAuth, f, created.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := c.Info().Keys[keycard.SlotAuth]; got.Fingerprint != f || !got.Created.Equal(created.Add(time.Hour)) {
		t.Errorf("%+v", got)
	}
	if problems, err := c.Check(t.Context()); err != nil || problems != nil {
		t.Errorf("%v, %v", problems, err)
	}
	if err := c.SetFingerprint(t.Context(), keycard.SlotAuth, keycard.Fingerprint{1}, created); err != nil {
		t.Fatal(err)
	}
	if problems, err := c.Check(t.Context()); err != nil || len(problems) != 1 || !strings.Contains(problems[0].Error(), "auth slot: fingerprint 01") {
		t.Errorf("%v, %v", problems, err)
	}
}

// With short commands only, on a card that could do more.
func TestShortLength(t *testing.T) {
	var s spy
	c, _ := open(t, softcard.Config{Fault: s.fault}, keycard.WithShortLength())
	if _, err := c.Import(t.Context(), keycard.SlotDecrypt, rsaKey(t, 4096), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	check(t, c, keycard.SlotDecrypt)
	for _, cmd := range s.commands {
		if len(cmd) > 2*261 {
			t.Errorf("a command of %d octets", len(cmd)/2)
		}
	}
}

func TestPublicKeysOfAllKinds(t *testing.T) {
	// What a card might answer, and whether it is taken.
	x := strings.Repeat("11", 32)
	for _, v := range []struct {
		a    keycard.Algorithm
		in   string
		want error
	}{
		{keycard.EC(keycard.Ed25519), "7f49228620" + x, nil},
		{keycard.EC(keycard.Ed25519), "7f4923862140" + x, nil},
		{keycard.EC(keycard.Ed25519), "8620" + x, nil},
		{keycard.EC(keycard.Ed25519), "7f49218621" + x, keycard.ErrMalformed},
		{keycard.EC(keycard.Ed25519), "7f4922861f" + x, keycard.ErrMismatch},
		{keycard.EC(keycard.P256), "7f49228620" + x, keycard.ErrMismatch},
		{keycard.EC(keycard.P256), "7f4943864104" + x + x, keycard.ErrMalformed}, // not on the curve
		{keycard.RSA(2048), "7f49228620" + x, keycard.ErrMismatch},
		{keycard.RSA(2048), "7f4906810101820103", keycard.ErrMalformed},
		{keycard.RSA(2048), "7f4900", keycard.ErrMalformed},
		{keycard.EC(keycard.P256), "7f4906810101820103", keycard.ErrMismatch},
	} {
		_, err := keycard.ParsePublicKey(keycard.SlotSign, v.a, unhex(t, v.in))
		if !errors.Is(err, v.want) || (err == nil) != (v.want == nil) {
			t.Errorf("%v %s: %v, want %v", v.a, v.in, err, v.want)
		}
	}
	n := rsaKey(t, 3072).PublicKey
	b := keycard.AppendTLV(nil, 0x7f49, append(keycard.AppendTLV(nil, 0x81, n.N.Bytes()), 0x82, 3, 1, 0, 1))
	if _, err := keycard.ParsePublicKey(keycard.SlotSign, keycard.RSA(2048), b); !errors.Is(err, keycard.ErrMismatch) {
		t.Errorf("RSA 3072 for 2048: %v", err)
	}
	if p, err := keycard.ParsePublicKey(keycard.SlotSign, keycard.RSA(3072), b); err != nil || !n.Equal(p.Key) {
		t.Errorf("RSA 3072: %v", err)
	}
}

func TestNamesAreReadBack(t *testing.T) {
	for _, n := range []string{"rsa2048", "rsa4096", "nistp256", "nistp384", "nistp521", "ed25519", "cv25519", "secp256k1", "brainpoolP256r1", "ed448", "cv448"} {
		a, err := keycard.ParseAlgorithm(n)
		if err != nil || a.String() != n {
			t.Errorf("%s: %v, %v", n, a, err)
		}
		b, err := keycard.ParseAttributes(a.Attributes())
		if err != nil || !b.Same(a) {
			t.Errorf("%s: attributes %x became %v, %v", n, a.Attributes(), b, err)
		}
	}
	for _, n := range []string{"", "rsa", "rsa12", "rsa2049", "rsa99999", "p-256", "ed25519x"} {
		if a, err := keycard.ParseAlgorithm(n); err == nil {
			t.Errorf("%q became %v", n, a)
		}
	}
	for slot := keycard.SlotSign; slot <= keycard.SlotAttest; slot++ {
		if s, err := keycard.ParseSlot(slot.String()); err != nil || s != slot {
			t.Errorf("%v: %v, %v", slot, s, err)
		}
	}
	for u := keycard.UIFOff; u <= keycard.UIFCachedFixed; u++ {
		if v, err := keycard.ParseUIF(u.String()); err != nil || v != u {
			t.Errorf("%v: %v, %v", u, v, err)
		}
	}
	if a := keycard.EC(keycard.Ed25519).For(keycard.SlotDecrypt); a != keycard.EC(keycard.X25519) {
		t.Errorf("Ed25519 for decryption: %+v", a)
	}
	if a := keycard.EC(keycard.P384).For(keycard.SlotDecrypt); a.ID != keycard.AlgoECDH || a.For(keycard.SlotAuth).ID != keycard.AlgoECDSA {
		t.Errorf("P-384 for decryption: %+v", a)
	}
}
