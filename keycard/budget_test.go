package keycard_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"

	"signalbox.example/keycard"
	"signalbox.example/keycard/replay"
)

// acting is a recorded card as far as reading goes: what it was asked in the
// recording it answers as it did then. It takes every PIN and pretends to use
// its keys.
type acting struct {
	t        *testing.T
	here     *replay.Player
	answer   int // octets of a signature or shared secret
	pins     [][]byte
	commands []string
}

func (a *acting) Close() error { return nil }

func (a *acting) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	c, _, err := keycard.ParseCommand(cmd)
	if err != nil {
		a.t.Error(err)
		return nil, err
	}
	switch c.INS {
	case 0x20:
		a.commands = append(a.commands, "VERIFY")
		a.pins = append(a.pins, bytes.Clone(c.Data))
		return []byte{0x90, 0}, nil
	case 0x2a:
		if c.CLA&0x10 == 0 {
			a.commands = append(a.commands, "PSO")
			return append(bytes.Repeat([]byte{1}, a.answer), 0x90, 0), nil
		}
		return []byte{0x90, 0}, nil
	case 0xa4:
		a.commands = append(a.commands, "SELECT")
		return []byte{0x90, 0}, nil
	case 0xc0:
		return a.here.Transmit(ctx, cmd)
	}
	a.commands = append(a.commands, "GET DATA "+fmt.Sprintf("%02X", c.P2))
	r, err := a.here.Transmit(ctx, cmd)
	if errors.Is(err, replay.ErrNoMatch) {
		return []byte{0x6a, 0x88}, nil // not asked then
	}
	// The recording with a KDF is of a card whose PIN was blocked: three tries.
	return bytes.Replace(r, []byte{0xc4, 7, 0, 0x20, 0x20, 0x20, 0}, []byte{0xc4, 7, 0, 0x20, 0x20, 0x20, 3}, 1), err
}

// TestCommandBudgetOfRecordedCards: what a cold session costs on each recorded
// card, nothing known of it but the public key. On a card that may have a KDF
// one more command asks for it before the first PIN goes out: no PIN may reach
// such a card in clear, and none may be tried before the tries that are left
// are known. Neither can be read together with the other or without SELECT.
func TestCommandBudgetOfRecordedCards(t *testing.T) {
	const select6E = "SELECT, GET DATA 6E, "
	for _, v := range []struct {
		card, step string
		mayKDF     bool
		kdf        bool
		status     int
	}{
		{"canokey", "21-c25519-status", false, false, 6},
		{"canokey", "21-rsa2048-status", false, false, 6},
		{"canokey", "21-p256-status", false, false, 6},
		{"ykneo", "21-rsa2048-status", false, false, 6},
		{"smartpgp", "21-rsa2048-status", true, false, 7},
		{"smartpgp", "21-p256-status", true, false, 7},
		{"smartpgp", "61-status-kdf", true, true, 7},
		{"yubikey543", "TestApplicationRelated", true, false, 7},
	} {
		t.Run(v.card+"/"+v.step, func(t *testing.T) {
			s := recorded(t, v.card)[v.step]
			if s == nil {
				t.Fatal("no such recording")
			}
			start := func(opts ...keycard.Option) (*keycard.Card, *acting) {
				a := &acting{t: t, here: s.Play(replay.Loose)}
				c, err := keycard.Open(t.Context(), a, append(opts, keycard.WithPINs(keycard.StaticPIN(user, adminPW)))...)
				if err != nil {
					t.Fatal(err)
				}
				return c, a
			}
			c, a := start()
			if _, err := c.Status(t.Context()); err != nil {
				t.Fatal(err)
			}
			if n, _ := c.Count(); n != v.status || n > 8 {
				t.Errorf("cold status: %d commands (%s), want %d", n, strings.Join(a.commands, ", "), v.status)
			}
			if c.Info().Capabilities.KDF != v.mayKDF {
				t.Errorf("the card says KDF %v", c.Info().Capabilities.KDF)
			}
			pin := "123456"
			for _, known := range []bool{false, true} {
				for _, slot := range []keycard.Slot{keycard.SlotSign, keycard.SlotDecrypt} {
					var opts []keycard.Option
					if known {
						k, err := c.KDF(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						opts = append(opts, keycard.WithKDF(k))
					}
					c, a := start(opts...)
					alg := c.Info().Keys[slot].Algorithm
					private := software(t, alg)
					k, err := c.KeyFor(slot, private.(interface{ Public() crypto.PublicKey }).Public(), nil)
					if err != nil {
						t.Fatal(err)
					}
					a.answer = alg.Curve.Size() * 2
					switch {
					case alg.ID == keycard.AlgoRSA && slot == keycard.SlotSign:
						a.answer = alg.Bits / 8
					case slot == keycard.SlotDecrypt && alg.ID != keycard.AlgoRSA:
						a.answer = alg.Curve.Size()
					}
					want := select6E
					if v.mayKDF && !known {
						want += "GET DATA F9, "
					}
					want += "VERIFY, PSO"
					again := "VERIFY, PSO"
					use := func() {
						t.Helper()
						if slot == keycard.SlotSign {
							_, err = k.SignRaw(t.Context(), make([]byte, 32))
						} else if alg.ID == keycard.AlgoRSA {
							// Nothing is encrypted here, so what comes back is no
							// message: it is the commands that count.
							_, err = k.Decrypt(nil, make([]byte, alg.Bits/8), nil)
							err = nil
						} else {
							_, err = k.ECDH(peerOf(t, private))
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					use()
					n, apdus := c.Count()
					t.Logf("cold %v, KDF settings known beforehand %v: %d commands, %d APDUs", slot, known, n, apdus)
					if got := strings.Join(a.commands, ", "); got != want || n != len(a.commands) {
						t.Errorf("cold %v: %s (%d), want %s", slot, got, n, want)
					}
					if n > 4 && (known || !v.mayKDF) || n > 5 {
						t.Errorf("cold %v: %d commands", slot, n)
					}
					if v.kdf != !bytes.Equal(a.pins[0], []byte(pin)) || v.kdf && len(a.pins[0]) != 32 {
						t.Errorf("cold %v: the PIN went out as %d octets", slot, len(a.pins[0]))
					}
					a.commands = nil
					use()
					if slot == keycard.SlotDecrypt || c.Info().PIN.Multiple {
						again = "PSO"
					}
					if got := strings.Join(a.commands, ", "); got != again {
						t.Errorf("warm %v: %s, want %s", slot, got, again)
					}
				}
			}
		})
	}
}

func peerOf(t *testing.T, private crypto.PrivateKey) *ecdh.PublicKey {
	t.Helper()
	if k, ok := private.(*ecdsa.PrivateKey); ok {
		var err error
		if private, err = k.ECDH(); err != nil {
			t.Fatal(err)
		}
	}
	e, err := private.(*ecdh.PrivateKey).Curve().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return e.PublicKey()
}
