package keycard_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"math/big"
	"testing"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// Arguments that make no sense give errors and send nothing but questions.
func TestOddArguments(t *testing.T) {
	var sent spy
	c, _ := open(t, softcard.Config{Fault: sent.fault})
	ctx := t.Context()
	broken := *rsaKey(t, 2048)
	broken.Primes = []*big.Int{broken.Primes[0], new(big.Int).Add(broken.Primes[1], big.NewInt(2))}
	broken.Precomputed = rsa.PrecomputedValues{}
	multi := *rsaKey(t, 2048)
	multi.Primes = append(multi.Primes, big.NewInt(3))
	meta := keycard.KeyMeta{Created: created}
	sent.commands = nil
	for name, f := range map[string]func() error{
		"slot 9: algorithm":   func() error { return c.SetAlgorithm(ctx, 9, keycard.RSA(2048)) },
		"slot 9: touch":       func() error { return c.SetUIF(ctx, 9, keycard.UIFOn) },
		"slot 9: fingerprint": func() error { return c.SetFingerprint(ctx, 9, keycard.Fingerprint{}, created) },
		"slot 9: CA":          func() error { return c.SetCAFingerprint(ctx, 9, keycard.Fingerprint{}) },
		"slot 9: certificate": func() error { _, err := c.Certificate(ctx, 9); return err },
		"slot 9: write":       func() error { return c.SetCertificate(ctx, 9, nil) },
		"slot 9: public key":  func() error { _, err := c.PublicKey(ctx, 9); return err },
		"slot 9: key":         func() error { _, err := c.Key(ctx, 9, nil); return err },
		"slot 9: key for":     func() error { _, err := c.KeyFor(9, &rsaKey(t, 2048).PublicKey, nil); return err },
		"slot 9: import":      func() error { _, err := c.Import(ctx, 9, rsaKey(t, 2048), meta); return err },
		"slot 9: generate":    func() error { _, err := c.Generate(ctx, 9, keycard.RSA(2048), meta); return err },
		"slot 9: attest":      func() error { _, err := c.Attest(ctx, 9, false); return err },
		"PIN mode 9":          func() error { return c.Verify(ctx, 9, user) },
		"change of a code":    func() error { return c.ChangePIN(ctx, keycard.ResetCode, user, user) },
		"no PIN":              func() error { return c.Verify(ctx, keycard.PINUser, nil) },
		"no old PIN":          func() error { return c.ChangePIN(ctx, keycard.PINUser, nil, user) },
		"no new PIN":          func() error { return c.ChangePIN(ctx, keycard.PINUser, user, nil) },
		"no resetting code":   func() error { return c.Unblock(ctx, keycard.NewPIN(nil), user) },
		"RSA primes":          func() error { _, err := c.Import(ctx, keycard.SlotSign, &broken, meta); return err },
		"three primes":        func() error { _, err := c.Import(ctx, keycard.SlotSign, &multi, meta); return err },
		"short Ed25519":       func() error { _, err := c.Import(ctx, keycard.SlotSign, ed25519.PrivateKey{1}, meta); return err },
		"a string as key":     func() error { _, err := c.Import(ctx, keycard.SlotSign, "key", meta); return err },
		"no time": func() error {
			_, err := c.Import(ctx, keycard.SlotSign, rsaKey(t, 2048), keycard.KeyMeta{})
			return err
		},
		"generated before 1970": func() error {
			_, err := c.Generate(ctx, keycard.SlotSign, keycard.RSA(2048), keycard.KeyMeta{Created: time.Unix(-1, 0)})
			return err
		},
		"generated after 2106": func() error {
			_, err := c.Generate(ctx, keycard.SlotSign, keycard.RSA(2048), keycard.KeyMeta{Created: time.Unix(1<<32, 0)})
			return err
		},
		"time before 1970": func() error {
			return c.SetFingerprint(ctx, keycard.SlotSign, keycard.Fingerprint{1}, time.Unix(-1, 0))
		},
		"time after 2106": func() error {
			return c.SetFingerprint(ctx, keycard.SlotSign, keycard.Fingerprint{1}, time.Unix(1<<32, 0))
		},
		"Ed25519 to decrypt": func() error {
			_, err := c.Import(ctx, keycard.SlotDecrypt, software(t, keycard.EC(keycard.Ed25519)), meta)
			return err
		},
		"X25519 to sign": func() error {
			_, err := c.Import(ctx, keycard.SlotSign, software(t, keycard.EC(keycard.X25519)), meta)
			return err
		},
		"touch policy 77":    func() error { return c.SetUIF(ctx, keycard.SlotSign, 77) },
		"private object 0":   func() error { _, err := c.PrivateObject(ctx, 0); return err },
		"private object 5":   func() error { return c.SetPrivateObject(ctx, 5, nil) },
		"negative challenge": func() error { _, err := c.Challenge(ctx, -1); return err },
		"endless challenge":  func() error { _, err := c.Challenge(ctx, 1<<30); return err },
		"no tries":           func() error { return c.SetRetries(ctx, 3, 0, 3) },
		"keypad without":     func() error { return c.Verify(ctx, keycard.PINUser, keycard.KeypadPIN()) },
		"half a keypad":      func() error { return c.ChangePIN(ctx, keycard.PINUser, keycard.KeypadPIN(), user) },
		"KDF with no PIN":    func() error { return c.SetKDF(ctx, keycard.NewKDF(), nil, nil) },
		"KDF with odd hash":  func() error { return c.SetKDF(ctx, keycard.KDF{Hash: 2, SaltUser: make([]byte, 8)}, user, adminPW) },
		"RSA 0":              func() error { return c.SetAlgorithm(ctx, keycard.SlotSign, keycard.RSA(0)) },
		"unknown algorithm":  func() error { return c.SetAlgorithm(ctx, keycard.SlotSign, keycard.Algorithm{}) },
	} {
		if err := f(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, cmd := range sent.commands {
		if cmd[:4] != "00ca" {
			t.Errorf("%.20s was sent", cmd)
		}
	}
	var m keycard.PINMode = 200
	if s := m.String() + keycard.Slot(200).String() + keycard.UIF(99).String() + keycard.Curve(99).String() + keycard.Origin(99).String(); s == "" {
		t.Error("no names")
	}
}

// Data that a command's length field cannot hold is refused, whatever the card
// promises: with its end cut off, or as another command, nothing is sent.
func TestDataBeyondTheLengthField(t *testing.T) {
	for name, historical := range map[string]string{"chaining": "0031c573c001c0059000", "no chaining": "0031c573c00140059000"} {
		longest := 0
		c, _ := open(t, softcard.Config{Fault: func(_ context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
			longest = max(longest, len(cmd))
			if len(cmd) > 2000 {
				if _, _, err := keycard.ParseCommand(cmd); err != nil {
					t.Error(name, err)
				}
				return []byte{0x90, 0}, nil
			}
			r := process(cmd)
			// Without 7F66 the card does not say how long a command may be.
			r = bytes.Replace(r, []byte{0x7f, 0x66}, []byte{0x7f, 0x67}, 1)
			return bytes.Replace(r, unhex(t, "0031c573c001c0059000"), unhex(t, historical), 1), nil
		}})
		for _, n := range []int{65535, 65536, 70000, 1 << 20} {
			longest = 0
			err := c.SetObject(t.Context(), 0x5e, make([]byte, n))
			if n <= 65535 && (err != nil || longest != 7+n) || n > 65535 && (!errors.Is(err, keycard.ErrTooLong) || longest > 300) {
				t.Errorf("%s: %d octets: %v, a command of %d", name, n, err, longest)
			}
		}
	}
}

// A KDF without salt is not what cards have, but may stand in a program.
func TestKDFWithoutSalt(t *testing.T) {
	for hash, size := range map[byte]int{8: 32, 10: 64} {
		for _, count := range []uint32{0, 1000} {
			if b := (keycard.KDF{Hash: hash, Count: count}).Derive(keycard.PINUser, nil); len(b) != size {
				t.Errorf("hash %d of nothing: %x", hash, b)
			}
		}
	}
	if b := (keycard.KDF{Hash: 8}).Derive(keycard.PINUser, []byte("123456")); hex.EncodeToString(b) != "8d969eef6ecad3c29a3a629280e686cf0c3f5d5a86aff3ca12020c923adc6c92" { // sha256sum
		t.Errorf("hash of the PIN alone: %x", b)
	}
}

// What cannot be parsed hides all that could be part of a secret.
func TestMaskOfMalformedCommands(t *testing.T) {
	for cmd, want := range map[string]string{
		"00200081313233343536":     "00200081xxxxxxxxxxxx",     // the length was forgotten
		"0020008106313233":         "00200081xxxxxxxx",         // or is wrong
		"00200081000006313233":     "00200081xxxxxxxxxxxx",     // in extended form too
		"0020008106313233343536":   "0020008106xxxxxxxxxxxx",   // a proper one
		"00da00d3313233343536":     "00da00d3xxxxxxxxxxxx",     //
		"00ca0081313233343536":     "00ca0081313233343536",     // not a secret
		"00200081":                 "00200081",                 //
		"0020008106313233343536ff": "0020008106xxxxxxxxxxxxff", // with Le
	} {
		if got := keycard.MaskCommand(unhex(t, cmd)); got != want {
			t.Errorf("%s: %s, want %s", cmd, got, want)
		}
	}
}

func TestSetRetries(t *testing.T) {
	c, _ := open(t, softcard.Config{})
	if err := c.SetRetries(t.Context(), 5, 6, 7); err != nil {
		t.Fatal(err)
	}
	if p := c.Info().PIN; p.PIN != 5 || p.Admin != 7 {
		t.Errorf("%+v", p)
	}
	old, _ := open(t, softcard.Config{Personality: softcard.V20})
	if err := old.SetRetries(t.Context(), 5, 6, 7); !errors.Is(err, keycard.ErrUnsupported) {
		t.Errorf("2.0: %v", err)
	}
}
