package keycard_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
	"signalbox.example/keycard"
	"signalbox.example/keycard/replay"
	"signalbox.example/keycard/softcard"
)

// spy is a fault that changes nothing and keeps what was said.
type spy struct {
	commands  []string
	responses []string
}

func (s *spy) fault(_ context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
	s.commands = append(s.commands, hex.EncodeToString(cmd))
	r := process(cmd)
	s.responses = append(s.responses, hex.EncodeToString(r))
	return r, nil
}

// find returns the commands that begin so.
func (s *spy) find(prefix string) []string {
	var out []string
	for _, c := range s.commands {
		if strings.HasPrefix(c, prefix) {
			out = append(out, c)
		}
	}
	return out
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// answer lets a software card answer some commands, by prefix, with fixed
// octets.
func answer(table map[string]string) softcard.Fault {
	return func(_ context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
		h := hex.EncodeToString(cmd)
		for prefix, r := range table {
			if strings.HasPrefix(h, prefix) {
				return hex.DecodeString(strings.ReplaceAll(r, " ", ""))
			}
		}
		return process(cmd), nil
	}
}

// E1, OpenSC#1850 and #1857: YubiKeys list four keys.
func TestBugFourthKeyInApplicationData(t *testing.T) {
	s, err := replay.Parse(bytes.NewReader(vectors.Read(t, "keycard/yubikey543/TestApplicationRelated.apdu")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := keycard.Open(t.Context(), s.Play(replay.Loose))
	if err != nil {
		t.Fatal(err)
	}
	k := c.Info().Keys[keycard.SlotAttest]
	if !k.Present || k.Algorithm != (keycard.Algorithm{ID: 1, Bits: 2048, ExponentBits: 17}) || k.UIF != keycard.UIFOff ||
		k.Fingerprint.String() != "E9F5079A2003E46930C0D9C24A4E3318FDCBCF67" || k.Created.Unix() != 0x624d7083 || k.Origin != keycard.OriginImported {
		t.Errorf("attestation key %+v", k)
	}
	for _, slot := range []keycard.Slot{keycard.SlotSign, keycard.SlotDecrypt, keycard.SlotAuth} {
		if k := c.Info().Keys[slot]; !k.Fingerprint.IsZero() || !k.Created.IsZero() || k.Origin != keycard.OriginNone {
			t.Errorf("%v: %+v", slot, k)
		}
	}
	raw := c.Info().Raw()
	for _, bad := range []struct{ from, to string }{
		{"c550", "c551"}, // not a multiple of 20: takes an octet from what follows
		{"cd10", "cd11"},
	} {
		b := unhex(t, strings.Replace(hex.EncodeToString(raw), bad.from, bad.to, 1))
		if _, err := keycard.ParseInfo(b); !errors.Is(err, keycard.ErrMalformed) {
			t.Errorf("%s: %v", bad.to, err)
		}
	}
}

// E2, SmartPGP#15, OpenSC#2286: an octet after the curve's identifier.
func TestBugOctetAfterCurveIdentifier(t *testing.T) {
	for _, v := range []struct {
		in     string
		public bool
	}{
		{"13 2a8648ce3d030107", false}, {"13 2a8648ce3d030107 ff", true}, {"13 2a8648ce3d030107 00", false}, {"13 2a8648ce3d030107 42", false},
	} {
		a, err := keycard.ParseAttributes(unhex(t, v.in))
		if err != nil || a.Curve != keycard.P256 || a.ID != keycard.AlgoECDSA || a.WithPublic != v.public {
			t.Errorf("%s: %+v, %v", v.in, a, err)
		}
	}
	// With FF the import carries the public key.
	var s spy
	c, _ := open(t, softcard.Config{PublicOnImport: true, Fault: s.fault})
	if _, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.P256)), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	if got := s.find("00db3fff"); len(got) != 1 || !strings.Contains(got[0], "7f4804922099415f4861") {
		t.Errorf("import %v", got)
	}
}

// E3, measured: a card that takes attributes of a curve it does not have,
// refuses the key and keeps the old one. gpg 2.2.40 then shows "Card error"
// for its status and for its factory reset.
func TestBugAttributesWithoutTheirCurve(t *testing.T) {
	c, _ := open(t, softcard.Config{LaxAttributes: true, Without25519: true})
	if _, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.P256)), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	_, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.Ed25519)), keycard.KeyMeta{Created: created})
	var ce *keycard.ChangeError
	if !errors.As(err, &ce) || ce.Stage != "key" || !ce.Restored || ce.Was.Curve != keycard.P256 || !errors.Is(err, keycard.ErrData) {
		t.Fatalf("import: %+v", err)
	}
	if p, err := c.Check(t.Context()); err != nil || p != nil {
		t.Fatalf("after the failed import: %v, %v", p, err)
	}
	check(t, c, keycard.SlotSign) // the old key still works

	// The state another program leaves.
	if err := c.SetObject(t.Context(), 0xc1, unhex(t, "16 2b06010401da470f01")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("status: %v", err)
	}
	p, err := c.Check(t.Context())
	if err != nil || len(p) != 1 || p[0].Slot != keycard.SlotSign || !errors.Is(p[0].Err, keycard.ErrMismatch) {
		t.Fatalf("check: %v, %v", p, err)
	}
	if err := c.SetAlgorithm(t.Context(), keycard.SlotSign, keycard.EC(keycard.P256)); err != nil {
		t.Fatal(err)
	}
	check(t, c, keycard.SlotSign)
	if err := c.SetObject(t.Context(), 0xc1, unhex(t, "16 2b06010401da470f01")); err != nil {
		t.Fatal(err)
	}
	if err := c.FactoryReset(t.Context(), keycard.ResetOptions{Admin: adminPW}); err != nil {
		t.Fatal(err)
	}
	if p, err := c.Check(t.Context()); err != nil || p != nil {
		t.Errorf("after the reset: %v, %v", p, err)
	}
}

// E4, OpenSC#1949: RSA attributes keep the card's exponent length and format.
func TestBugRSAAttributesKeepFormat(t *testing.T) {
	var s spy
	c, _ := open(t, softcard.Config{Fault: s.fault})
	for _, v := range []struct{ was, want string }{
		{"010800001103", "00da00c106010c00001103"},
		{"010800002002", "00da00c106010c00002002"},
	} {
		if err := c.SetObject(t.Context(), 0xc1, unhex(t, v.was)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.commands = nil
		if err := c.SetAlgorithm(t.Context(), keycard.SlotSign, keycard.RSA(3072)); err != nil {
			t.Fatal(err)
		}
		if got := s.find("00da00c1"); len(got) != 1 || got[0] != v.want {
			t.Errorf("%s: wrote %v, want %s", v.was, got, v.want)
		}
	}
	// From a curve: as the card's own list (FA) says.
	if err := c.SetAlgorithm(t.Context(), keycard.SlotSign, keycard.EC(keycard.P256)); err != nil {
		t.Fatal(err)
	}
	s.commands = nil
	if err := c.SetAlgorithm(t.Context(), keycard.SlotSign, keycard.RSA(4096)); err != nil {
		t.Fatal(err)
	}
	if got := s.find("00da00c1"); len(got) != 1 || got[0] != "00da00c106011000001100" {
		t.Errorf("from a curve: %v", got)
	}
}

// E5, pico-openpgp#3 and #12: BER lengths in the import template, chaining at
// 254 octets.
func TestBugLengthsInRSAImport(t *testing.T) {
	for _, p := range []softcard.Personality{softcard.V34, softcard.V34Chaining} {
		var s spy
		c, _ := open(t, softcard.Config{Personality: p, Fault: s.fault})
		if err := c.SetObject(t.Context(), 0xc1, unhex(t, "010800002000")); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Import(t.Context(), keycard.SlotSign, rsaKey(t, 2048), keycard.KeyMeta{Created: created}); err != nil {
			t.Fatal(err)
		}
		const template = "4d820116b6007f480891049281809381805f48820104"
		want := "00db3fff" + "00011a" + template
		if p == softcard.V34Chaining {
			want = "10db3ffffe" + template
		}
		got := append(s.find("10db"), s.find("00db")...)
		if !strings.HasPrefix(got[0], want) {
			t.Errorf("import begins %.60s, want %s", got[0], want)
		}
		if p == softcard.V34Chaining {
			if len(got) != 2 || len(got[0]) != 2*(5+254) || len(got[1]) != 2*(5+0x11a-254) {
				t.Errorf("parts of %d and %d octets", len(got[0])/2, len(got[1])/2)
			}
		}
		check(t, c, keycard.SlotSign)
	}
}

// E6, ykman#344 and measured: many ways to say "no KDF".
func TestBugNoKDFInManyForms(t *testing.T) {
	for _, r := range []string{"6a88", "6a83", "6a82", "6d00", "8101009000", "f9038101009000", "9000"} {
		c, _ := open(t, softcard.Config{Fault: answer(map[string]string{"00ca00f9": r})})
		k, err := c.KDF(t.Context())
		if err != nil || k.Active() {
			t.Errorf("%s: %+v, %v", r, k, err)
		}
		if err := c.Verify(t.Context(), keycard.PINUser, user); err != nil {
			t.Errorf("%s: %v", r, err)
		}
	}
}

// E7, RS-Key#104, opcard-rs#162, SmartPGP#47: two families of cards, and what
// was read before must not be used after a reset.
func TestBugKDFSetupAndStaleKDF(t *testing.T) {
	for _, client := range []bool{false, true} {
		for _, count := range []bool{false, true} {
			c, sc := open(t, softcard.Config{ClientKDF: client, CountInStatus: count})
			kdf := keycard.NewKDF()
			kdf.Count = 100000
			if count {
				kdf.Hash = 10
			}
			if err := c.SetKDF(t.Context(), kdf, user, adminPW); err != nil {
				t.Fatalf("client %v: %v", client, err)
			}
			if got, err := c.KDF(t.Context()); err != nil || got.Count != kdf.Count || got.Hash != kdf.Hash || !bytes.Equal(got.SaltAdmin, kdf.SaltAdmin) {
				t.Errorf("KDF %+v, %v", got, err)
			}
			// A new session finds it by itself, and the resetting code has
			// its own salt.
			c.Close()
			c, err := keycard.Open(t.Context(), sc, keycard.WithPINs(keycard.StaticPIN(user, adminPW)))
			if err != nil {
				t.Fatal(err)
			}
			rc := keycard.PINString("98765432")
			if err := c.SetResetCode(t.Context(), rc); err != nil {
				t.Fatal(err)
			}
			if err := c.Unblock(t.Context(), rc, keycard.PINString("newpin")); err != nil {
				t.Fatal(err)
			}
			if err := c.ChangePIN(t.Context(), keycard.PINUser, keycard.PINString("newpin"), user); err != nil {
				t.Fatal(err)
			}
			if err := c.Verify(t.Context(), keycard.PINSign, user); err != nil {
				t.Fatal(err)
			}
			if err := c.SetKDF(t.Context(), keycard.KDF{}, user, adminPW); err != nil {
				t.Fatal(err)
			}
			if err := c.SetKDF(t.Context(), kdf, user, adminPW); err != nil {
				t.Fatal(err)
			}
			if err := c.FactoryReset(t.Context(), keycard.ResetOptions{Admin: adminPW}); err != nil {
				t.Fatal(err)
			}
			if k, err := c.KDF(t.Context()); err != nil || k.Active() {
				t.Errorf("KDF after the reset %+v, %v", k, err)
			}
			if err := c.Verify(t.Context(), keycard.PINAdmin, adminPW); err != nil {
				t.Errorf("after the reset: %v", err)
			}
		}
	}
}

// E8, OpenSC#2565, #3397, measured on ykneo and CanoKey: VERIFY without data.
func TestBugVerifyQuery(t *testing.T) {
	// An error to some cards.
	old, _ := open(t, softcard.Config{Personality: softcard.V20})
	if ok, n, err := old.Verified(t.Context(), keycard.PINUser); ok || n != 3 || err != nil {
		t.Errorf("2.0: %v, %d, %v", ok, n, err)
	}
	// Always yes on others: not believed when the card then refuses.
	always := func(_ context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
		if len(cmd) <= 5 && cmd[1] == 0x20 {
			return []byte{0x90, 0}, nil
		}
		return process(cmd), nil
	}
	c, sc := open(t, softcard.Config{Fault: always})
	if _, err := c.Import(t.Context(), keycard.SlotAuth, software(t, keycard.EC(keycard.P256)), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	if ok, _, err := c.Verified(t.Context(), keycard.PINUser); !ok || err != nil {
		t.Errorf("query: %v, %v", ok, err)
	}
	check(t, c, keycard.SlotAuth)
	// The same when the card forgot a PIN that this session verified.
	key, err := c.Key(t.Context(), keycard.SlotAuth, nil)
	if err != nil {
		t.Fatal(err)
	}
	sc.Reset()
	if _, _, err := c.Send(t.Context(), keycard.Command{INS: 0xa4, P1: 4, Data: unhex(t, "d27600012401")}); err != nil {
		t.Fatal(err)
	}
	if _, err := key.SignRaw(t.Context(), []byte("x")); err != nil {
		t.Errorf("after the card forgot the PIN: %v", err)
	}
	// An empty PIN is the query: never sent as a PIN.
	if err := c.Verify(t.Context(), keycard.PINUser, keycard.NewPIN(nil)); !errors.Is(err, keycard.ErrNoPIN) {
		t.Errorf("empty PIN: %v", err)
	}
}

// E9, measured: 6982 means a wrong PIN after VERIFY and a missing one after
// anything else; the tries left come from C4.
func TestBugWrongPINStatus(t *testing.T) {
	for _, count := range []bool{false, true} {
		c, _ := open(t, softcard.Config{CountInStatus: count}, keycard.WithLastTry(), keycard.WithPINs(nil))
		wrong := keycard.PINString("999999")
		for left := 2; left >= 0; left-- {
			err := c.Verify(t.Context(), keycard.PINUser, wrong)
			var se *keycard.StatusError
			want := keycard.ErrPIN
			if left == 0 {
				want = keycard.ErrBlocked
			}
			if !errors.As(err, &se) || se.Retries != left || !errors.Is(err, want) || se.Mode != keycard.PINUser {
				t.Errorf("count %v, %d left: %v", count, left, err)
			}
		}
		if err := c.Verify(t.Context(), keycard.PINSign, user); !errors.Is(err, keycard.ErrBlocked) {
			t.Errorf("blocked: %v", err)
		}
		if err := c.SetURL(t.Context(), "x"); !errors.Is(err, keycard.ErrNotVerified) || errors.Is(err, keycard.ErrPIN) {
			t.Errorf("without Admin PIN: %v", err)
		}
	}
}

// E10, OpenKeychain#2435 and others: only the last part of a chained command
// asks for an answer, in short form.
func TestBugChainedDecipher(t *testing.T) {
	var s spy
	c, _ := open(t, softcard.Config{Personality: softcard.V34Chaining, Fault: s.fault})
	if _, err := c.Import(t.Context(), keycard.SlotDecrypt, rsaKey(t, 2048), keycard.KeyMeta{Created: created}); err != nil {
		t.Fatal(err)
	}
	check(t, c, keycard.SlotDecrypt)
	first, last := s.find("102a8086"), s.find("002a8086")
	if len(first) != 1 || len(first[0]) != 2*(5+254) || first[0][8:10] != "fe" {
		t.Errorf("first part %.20s of %d octets", first, len(first[0])/2)
	}
	if len(last) != 1 || len(last[0]) != 2*(5+3+1) || last[0][8:10] != "03" || last[0][16:] != "00" {
		t.Errorf("last part %s", last)
	}
}

// E11, YubiKey: FA declares 482 octets and has 480, and lists X25519 for
// signatures.
func TestBugAlgorithmInformationLength(t *testing.T) {
	s, err := replay.Parse(bytes.NewReader(vectors.Read(t, "keycard/yubikey543/TestSupportedAlgorithms.apdu")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := keycard.Open(t.Context(), s.Play(replay.Loose))
	if err != nil {
		t.Fatal(err)
	}
	m, err := c.Algorithms(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for slot, want := range map[keycard.Slot]string{
		keycard.SlotSign:    "rsa2048 rsa3072 rsa4096 nistp256 nistp384 nistp521 secp256k1 brainpoolP256r1 brainpoolP384r1 brainpoolP512r1 ed25519",
		keycard.SlotDecrypt: "rsa2048 rsa3072 rsa4096 nistp256 nistp384 nistp521 secp256k1 brainpoolP256r1 brainpoolP384r1 brainpoolP512r1 cv25519",
	} {
		var got []string
		for _, a := range m[slot] {
			got = append(got, a.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %s", slot, got)
		}
	}
	for _, a := range m[keycard.SlotSign] {
		if a.Curve == keycard.X25519 {
			t.Errorf("X25519 for signatures")
		}
	}
}

// E12, pico-openpgp#4, OpenKeychain#1914, measured on ykneo: a card without
// life cycle management is not touched.
func TestBugResetWithoutLifeCycle(t *testing.T) {
	c, sc := open(t, softcard.Config{Personality: softcard.V20})
	for _, o := range []keycard.ResetOptions{{Admin: adminPW}, {BlockPINs: true}, {Admin: keycard.PINString("00000000"), BlockPINs: true}} {
		if err := c.FactoryReset(t.Context(), o); !errors.Is(err, keycard.ErrNoLifeCycle) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := keycard.Reset(t.Context(), sc, keycard.ResetOptions{BlockPINs: true}); !errors.Is(err, keycard.ErrNoLifeCycle) {
		t.Errorf("Reset: %v", err)
	}
	if _, n, err := c.Verified(t.Context(), keycard.PINAdmin); n != 3 || err != nil {
		t.Errorf("%d tries, %v", n, err)
	}
	if _, n, err := c.Verified(t.Context(), keycard.PINUser); n != 3 || err != nil {
		t.Errorf("%d tries, %v", n, err)
	}
	// The real card's octets.
	for _, r := range vectors.Lines(t, "keycard/ykneo/21-rsa2048-status.apdu") {
		if b, ok := strings.CutPrefix(r, "< 0073000080"); ok {
			if h := keycard.ParseHistorical(unhex(t, "0073000080"+b[:len(b)-4])); h.LifeCycle != 0 || !h.Chaining || h.ExtendedLength {
				t.Errorf("%+v", h)
			}
		}
	}
}

// E13, ykman#693 and #424: a new key drops the touch policy; a fixed one
// cannot be changed.
func TestBugTouchPolicyWithNewKey(t *testing.T) {
	c, _ := open(t, softcard.Config{})
	put := func() {
		t.Helper()
		if _, err := c.Import(t.Context(), keycard.SlotSign, software(t, keycard.EC(keycard.P256)), keycard.KeyMeta{Created: created}); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if err := c.SetUIF(t.Context(), keycard.SlotSign, keycard.UIFOn); err != nil {
		t.Fatal(err)
	}
	put()
	if u := c.Info().Keys[keycard.SlotSign].UIF; u != keycard.UIFOn {
		t.Errorf("after import: %v", u)
	}
	if _, err := c.Generate(t.Context(), keycard.SlotSign, keycard.EC(keycard.P256), keycard.KeyMeta{}); err != nil {
		t.Fatal(err)
	}
	if u := c.Info().Keys[keycard.SlotSign].UIF; u != keycard.UIFOn {
		t.Errorf("after generation: %v", u)
	}
	if err := c.SetUIF(t.Context(), keycard.SlotSign, keycard.UIFFixed); err != nil {
		t.Fatal(err)
	}
	if err := c.SetUIF(t.Context(), keycard.SlotSign, keycard.UIFOff); !errors.Is(err, keycard.ErrTouch) {
		t.Errorf("fixed: %v", err)
	}
	// Also when only the card knows that it is fixed.
	c, _ = open(t, softcard.Config{Fault: answer(map[string]string{"00da00d6": "6600"})})
	if err := c.SetUIF(t.Context(), keycard.SlotSign, keycard.UIFOn); !errors.Is(err, keycard.ErrTouch) {
		t.Errorf("6600: %v", err)
	}
}

// E14, OpenKeychain#1852: the signature of RSA 4096 comes in pieces.
func TestBugLongSignature(t *testing.T) {
	for _, p := range []softcard.Personality{softcard.V34, softcard.V34Chaining, softcard.V20} {
		c, _ := open(t, softcard.Config{Personality: p})
		if p == softcard.V20 { // its attributes cannot be changed
			if _, err := c.Import(t.Context(), keycard.SlotSign, rsaKey(t, 4096), keycard.KeyMeta{Created: created}); !errors.Is(err, keycard.ErrUnsupported) {
				t.Errorf("2.0: %v", err)
			}
			continue
		}
		for _, bits := range []int{3072, 4096} {
			if _, err := c.Import(t.Context(), keycard.SlotSign, rsaKey(t, bits), keycard.KeyMeta{Created: created}); err != nil {
				t.Fatal(err)
			}
			k, err := c.Key(t.Context(), keycard.SlotSign, nil)
			if err != nil {
				t.Fatal(err)
			}
			d := sha256.Sum256([]byte("long"))
			sig, err := k.Sign(nil, d[:], crypto.SHA256)
			if err != nil || len(sig) != bits/8 {
				t.Fatalf("%d octets, %v", len(sig), err)
			}
			if err := rsa.VerifyPKCS1v15(k.Public().(*rsa.PublicKey), crypto.SHA256, d[:], sig); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Import(t.Context(), keycard.SlotDecrypt, rsaKey(t, 4096), keycard.KeyMeta{Created: created}); err != nil {
			t.Fatal(err)
		}
		check(t, c, keycard.SlotDecrypt)
	}
}

// Measured on SmartPGP: r and s of P-256 with 33 octets each.
func TestBugSignatureWiderThanCurve(t *testing.T) {
	r, s := bytes.Repeat([]byte{0x81}, 32), bytes.Repeat([]byte{0x42}, 32)
	want := slices.Concat(r, s)
	for _, b := range [][]byte{slices.Concat([]byte{0}, r, []byte{0}, s), slices.Concat([]byte{0, 0}, r, []byte{0, 0}, s)} {
		if got := keycard.FixedWidth(b, 64); !bytes.Equal(got, want) {
			t.Errorf("%x became %x", b, got)
		}
	}
	short := slices.Concat(r[1:], s[1:])
	if got := keycard.FixedWidth(short, 64); len(got) != 64 || got[0] != 0 || got[32] != 0 || got[1] != 0x81 || got[33] != 0x42 {
		t.Errorf("short halves became %x", got)
	}
	if b := slices.Concat([]byte{1}, r, []byte{0}, s); len(keycard.FixedWidth(b, 64)) != 66 {
		t.Error("an octet that is not zero was cut off")
	}
}
