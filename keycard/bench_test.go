package keycard_test

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"testing"

	"signalbox.example/keycard"
	"signalbox.example/keycard/replay"
	"signalbox.example/keycard/softcard"
)

// fixed is a transport that does nothing: after the card is open every
// command gets the same answer.
type fixed struct {
	keycard.Transport
	answer []byte
	on     bool
}

func (f *fixed) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	if !f.on {
		return f.Transport.Transmit(ctx, cmd)
	}
	return f.answer, nil
}

func openFixed(t testing.TB) *keycard.Card {
	t.Helper()
	f := &fixed{Transport: softcard.MustNew(softcard.Config{Serial: 1}), answer: []byte{1, 2, 3, 4, 0x90, 0}}
	c, err := keycard.Open(context.Background(), f)
	if err != nil {
		t.Fatal(err)
	}
	f.on = true
	return c
}

func TestAllocationsPerCommand(t *testing.T) {
	c := openFixed(t)
	ctx := context.Background()
	cmd := keycard.Command{INS: 0xca, P2: 0xc4, Le: 256}
	if n := testing.AllocsPerRun(200, func() { c.Send(ctx, cmd) }); n > 2 {
		t.Errorf("%v allocations per command, at most 2 are allowed", n)
	}
	raw := unhex(t, seeds[2])
	if n := testing.AllocsPerRun(200, func() {
		if _, err := keycard.ParseInfo(raw); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("ParseInfo: %v allocations, only the result is allowed", n)
	}
}

// The library's own work for one command, above a transport that does nothing.
func BenchmarkCommandOverhead(b *testing.B) {
	c := openFixed(b)
	ctx := context.Background()
	cmd := keycard.Command{INS: 0xca, P2: 0xc4, Le: 256}
	b.ReportAllocs()
	for b.Loop() {
		c.Send(ctx, cmd)
	}
}

func BenchmarkParseInfo(b *testing.B) {
	for i, name := range []string{"canokey", "ykneo", "yubikey543"} {
		raw := unhex(b, seeds[i])
		b.Run("card="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := keycard.ParseInfo(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseCommand(b *testing.B) {
	raw := unhex(b, "00a4040006d27600012401")
	b.ReportAllocs()
	for b.Loop() {
		keycard.ParseCommand(raw)
	}
}

// Cold status of a recorded SmartPGP, with the number of APDUs.
func BenchmarkRecordedStatus(b *testing.B) {
	s := recorded(b, "smartpgp")["03-status-filled"]
	ctx := context.Background()
	n := 0
	for b.Loop() {
		c, err := keycard.Open(ctx, s.Play(replay.Loose))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.Status(ctx); err != nil {
			b.Fatal(err)
		}
		_, n = c.Count()
	}
	b.ReportMetric(float64(n), "apdus/op")
}

func benchmarkKey(b *testing.B, slot keycard.Slot, a keycard.Algorithm, use func(k *keycard.Key) error) {
	c, _ := open(b, softcard.Config{})
	ctx := context.Background()
	if _, err := c.Import(ctx, slot, software(b, a.For(slot)), keycard.KeyMeta{Created: created}); err != nil {
		b.Fatal(err)
	}
	k, err := c.Key(ctx, slot, nil)
	if err != nil {
		b.Fatal(err)
	}
	_, before := c.Count()
	n := 0
	for b.Loop() {
		if err := use(k); err != nil {
			b.Fatal(err)
		}
		n++
	}
	_, after := c.Count()
	b.ReportMetric(float64(after-before)/float64(n), "apdus/op")
}

// A signature on the software card with its default, the PIN each time.
func BenchmarkSign(b *testing.B) {
	for _, a := range []keycard.Algorithm{keycard.EC(keycard.Ed25519), keycard.EC(keycard.P256), keycard.RSA(2048)} {
		b.Run("key="+a.String(), func(b *testing.B) {
			in := make([]byte, 32)
			benchmarkKey(b, keycard.SlotSign, a, func(k *keycard.Key) error {
				_, err := k.SignRaw(context.Background(), in)
				return err
			})
		})
	}
}

func BenchmarkDecrypt(b *testing.B) {
	peer, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("key=cv25519", func(b *testing.B) {
		benchmarkKey(b, keycard.SlotDecrypt, keycard.EC(keycard.X25519), func(k *keycard.Key) error {
			_, err := k.ECDH(peer.PublicKey())
			return err
		})
	})
}
