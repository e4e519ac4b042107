package keycard_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// everything is one call of each thing a client does.
var everything = []struct {
	name string
	f    func(ctx context.Context, c *keycard.Card) error
}{
	{"status", func(ctx context.Context, c *keycard.Card) error { _, err := c.Status(ctx); return err }},
	{"check", func(ctx context.Context, c *keycard.Card) error { _, err := c.Check(ctx); return err }},
	{"algorithms", func(ctx context.Context, c *keycard.Card) error { _, err := c.Algorithms(ctx); return err }},
	{"verify", func(ctx context.Context, c *keycard.Card) error { return c.Verify(ctx, keycard.PINUser, user) }},
	{"verified", func(ctx context.Context, c *keycard.Card) error {
		_, _, err := c.Verified(ctx, keycard.PINUser)
		return err
	}},
	{"change", func(ctx context.Context, c *keycard.Card) error {
		return c.ChangePIN(ctx, keycard.PINUser, user, user)
	}},
	{"unblock", func(ctx context.Context, c *keycard.Card) error { return c.Unblock(ctx, nil, user) }},
	{"kdf", func(ctx context.Context, c *keycard.Card) error {
		k := keycard.NewKDF()
		k.Count = 100
		return c.SetKDF(ctx, k, user, adminPW)
	}},
	{"sign", func(ctx context.Context, c *keycard.Card) error {
		k, err := c.Key(ctx, keycard.SlotSign, nil)
		if err == nil {
			_, err = k.SignRaw(ctx, []byte("x"))
		}
		return err
	}},
	{"decrypt", func(ctx context.Context, c *keycard.Card) error {
		k, err := c.Key(ctx, keycard.SlotDecrypt, nil)
		if err == nil {
			_, err = k.ECDHRaw(ctx, append([]byte{9}, make([]byte, 31)...))
		}
		return err
	}},
	{"generate", func(ctx context.Context, c *keycard.Card) error {
		_, err := c.Generate(ctx, keycard.SlotAuth, keycard.EC(keycard.P256), keycard.KeyMeta{Created: created})
		return err
	}},
	{"certificate", func(ctx context.Context, c *keycard.Card) error {
		_, err := c.Certificate(ctx, keycard.SlotSign)
		return err
	}},
	{"attest", func(ctx context.Context, c *keycard.Card) error {
		_, err := c.Attest(ctx, keycard.SlotSign, true)
		return err
	}},
	{"challenge", func(ctx context.Context, c *keycard.Card) error { _, err := c.Challenge(ctx, 300); return err }},
	{"holder", func(ctx context.Context, c *keycard.Card) error {
		return c.SetHolder(ctx, keycard.Holder{Surname: "x"})
	}},
	{"reset", func(ctx context.Context, c *keycard.Card) error {
		return c.FactoryReset(ctx, keycard.ResetOptions{Admin: adminPW, BlockPINs: true})
	}},
}

// TestHostileCard lets the card misbehave in every way it can, from its n-th
// command on. Nothing may panic, wait beyond its context, or show a PIN.
func TestHostileCard(t *testing.T) {
	key := software(t, keycard.EC(keycard.Ed25519))
	dec := software(t, keycard.EC(keycard.X25519))
	rng := rand.New(rand.NewPCG(1, 2))
	garbage := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	faults := map[string]func(ctx context.Context, r []byte) ([]byte, error){
		"nothing":         func(context.Context, []byte) ([]byte, error) { return nil, nil },
		"one octet":       func(context.Context, []byte) ([]byte, error) { return []byte{0x90}, nil },
		"no data":         func(context.Context, []byte) ([]byte, error) { return []byte{0x90, 0}, nil },
		"cut short":       func(_ context.Context, r []byte) ([]byte, error) { return append(r[:len(r)/2:len(r)/2], 0x90, 0), nil },
		"61 without data": func(context.Context, []byte) ([]byte, error) { return []byte{0x61, 0}, nil },
		"61 for ever":     func(context.Context, []byte) ([]byte, error) { return append(make([]byte, 256), 0x61, 0), nil },
		"61 slowly":       func(context.Context, []byte) ([]byte, error) { return []byte{1, 0x61, 1}, nil },
		"6C for ever":     func(context.Context, []byte) ([]byte, error) { return []byte{0x6c, 0x10}, nil },
		"huge length":     func(context.Context, []byte) ([]byte, error) { return hex.DecodeString("6e82fffe4f10d2769000") },
		"huge answer":     func(context.Context, []byte) ([]byte, error) { return append(make([]byte, 1<<20), 0x90, 0), nil },
		"deep nesting": func(context.Context, []byte) ([]byte, error) {
			b := []byte{}
			for range 200 {
				b = keycard.AppendTLV(nil, 0x73, b)
			}
			return append(keycard.AppendTLV(nil, 0x6e, b), 0x90, 0), nil
		},
		"garbage": func(context.Context, []byte) ([]byte, error) { return garbage(1 + rng.IntN(300)), nil },
		"garbage 9": func(context.Context, []byte) ([]byte, error) {
			return append(garbage(rng.IntN(300)), 0x90, 0), nil
		},
		"refusal": func(context.Context, []byte) ([]byte, error) { return []byte{0x6f, 0}, nil },
		"locked":  func(context.Context, []byte) ([]byte, error) { return []byte{0x69, 0x82}, nil },
		"removed": func(context.Context, []byte) ([]byte, error) { return nil, keycard.ErrRemoved },
		"silence": func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() },
		"one bit": func(_ context.Context, r []byte) ([]byte, error) {
			r = bytes.Clone(r)
			r[rng.IntN(len(r))] ^= 1 << rng.IntN(8)
			return r, nil
		},
	}
	secrets := []string{"123456", "12345678", hex.EncodeToString([]byte("123456"))}
	depth := 4
	if testing.Short() {
		depth = 1
	}
	for name, fault := range faults {
		for from := range depth {
			for _, lasting := range []bool{true, false} {
				if name == "silence" && from > 1 || testing.Short() && !lasting {
					continue // silence waits for its context each time
				}
				for _, e := range everything {
					armed, n := false, 0
					sc := softcard.MustNew(softcard.Config{Attestation: e.name == "attest", Fault: func(ctx context.Context, _ int, cmd []byte, process func([]byte) []byte) ([]byte, error) {
						if !armed {
							return process(cmd), nil
						}
						n++
						if n-1 < from || n-1 > from && !lasting {
							return process(cmd), nil
						}
						return fault(ctx, process(cmd))
					}})
					var log strings.Builder
					opts := []keycard.Option{keycard.WithPINs(keycard.StaticPIN(user, adminPW)), keycard.WithLastTry(),
						keycard.WithLog(func(e keycard.LogEntry) { fmt.Fprintln(&log, e.Command, e.Err) })}
					c, err := keycard.Open(t.Context(), sc, opts...)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := c.Import(t.Context(), keycard.SlotSign, key, keycard.KeyMeta{Created: created}); err != nil {
						t.Fatal(err)
					}
					if _, err := c.Import(t.Context(), keycard.SlotDecrypt, dec, keycard.KeyMeta{Created: created}); err != nil {
						t.Fatal(err)
					}
					armed = true
					wait := 20 * time.Second
					if name == "silence" {
						wait = 2 * time.Millisecond
					}
					ctx, cancel := context.WithTimeout(t.Context(), wait)
					err = e.f(ctx, c)
					cancel()
					if errors.Is(err, context.DeadlineExceeded) && name != "silence" {
						t.Errorf("%s, %s from %d: %v", e.name, name, from, err)
					}
					text := log.String()
					if err != nil {
						text += err.Error()
					}
					for _, s := range secrets {
						if strings.Contains(text, s) {
							t.Errorf("%s, %s from %d: %q in\n%s", e.name, name, from, s, text)
						}
					}
					if n > 3000 {
						t.Errorf("%s, %s from %d: %d commands", e.name, name, from, n)
					}
				}
			}
		}
	}
}

// An opening card that misbehaves.
func TestHostileCardAtOpen(t *testing.T) {
	for _, r := range []string{"", "90", "9000", "6e009000", "6e819000", "6a82", "6285", "6100", "6c00", "6f00", strings.Repeat("00", 300) + "9000", strings.Repeat("6e82ffff", 50) + "9000"} {
		b := unhex(t, r)
		sc := softcard.MustNew(softcard.Config{Fault: func(context.Context, int, []byte, func([]byte) []byte) ([]byte, error) { return bytes.Clone(b), nil }})
		if _, err := keycard.Open(t.Context(), sc); err == nil {
			t.Errorf("%.20s opens", r)
		}
		if err := keycard.Reset(t.Context(), sc, keycard.ResetOptions{BlockPINs: true}); err == nil && r != "6285" {
			if r == "9000" {
				continue // says yes to everything, so it was reset
			}
			t.Errorf("%.20s resets", r)
		}
	}
	silent := softcard.MustNew(softcard.Config{Fault: func(ctx context.Context, _ int, _ []byte, _ func([]byte) []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := keycard.Open(ctx, silent); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
