package replay_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"signalbox.example/keycard"
	"signalbox.example/keycard/replay"
	"signalbox.example/keycard/softcard"
)

var (
	pins    = keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678"))
	fixture = `# a comment
> 00a4040006d27600012401
< 9000
> 00ca006e00
< 0102036102
> 00c0000002
< 04059000

> 10da5f5002aabb
< 9000
> 00da5f5001cc
< 9000
> 0020008206xxxxxxxxxxxx
< 9000
`
)

func TestModes(t *testing.T) {
	s, err := replay.Parse(strings.NewReader(fixture))
	if err != nil || len(s.Comments) != 1 || s.Comments[0] != "a comment" || len(s.Exchanges) != 6 || s.Exchanges[1].Line != 4 {
		t.Fatalf("%+v, %v", s, err)
	}
	ask := func(p *replay.Player, cmd ...byte) string {
		r, err := p.Transmit(t.Context(), cmd)
		if err != nil {
			return err.Error()
		}
		return string(r)
	}
	p := s.Play(replay.Strict)
	if r := ask(p, 0, 0xa4, 4, 0, 6, 0xd2, 0x76, 0, 1, 0x24, 1); r != "\x90\x00" {
		t.Errorf("%q", r)
	}
	if _, err := p.Transmit(t.Context(), []byte{0, 0xca, 0, 0x6e, 0, 0, 0}); !errors.Is(err, replay.ErrNoMatch) || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("another form: %v", err)
	}
	if r := ask(p, 0, 0xca, 0, 0x6e, 0); r != "\x01\x02\x03\x61\x02" || p.Rest() != 4 {
		t.Errorf("%q, %d left", r, p.Rest())
	}
	p = s.Play(replay.Loose)
	if r := ask(p, 0, 0xca, 0, 0x6e, 0, 0, 0); r != "\x01\x02\x03\x04\x05\x90\x00" {
		t.Errorf("%q", r)
	}
	if r := ask(p, 0, 0xca, 0, 0x6e, 4); r != "\x01\x02\x03\x04\x61\x01" {
		t.Errorf("%q", r)
	}
	if r := ask(p, 0, 0xc0, 0, 0, 1); r != "\x05\x90\x00" {
		t.Errorf("%q", r)
	}
	if r := ask(p, 0, 0xda, 0x5f, 0x50, 3, 0xaa, 0xbb, 0xcc); r != "\x90\x00" {
		t.Errorf("whole instead of parts: %q", r)
	}
	if r := ask(p, 0x10, 0xda, 0x5f, 0x50, 1, 0xaa) + ask(p, 0, 0xda, 0x5f, 0x50, 2, 0xbb, 0xcc); r != "\x90\x00\x90\x00" {
		t.Errorf("other parts: %q", r)
	}
	if r := ask(p, 0, 0x20, 0, 0x82, 6, 1, 2, 3, 4, 5, 6); r != "\x90\x00" {
		t.Errorf("masked: %q", r)
	}
	_, err = p.Transmit(t.Context(), []byte{0, 0x20, 0, 0x82, 5, 0x31, 0x32, 0x33, 0x34, 0x35})
	if !errors.Is(err, replay.ErrNoMatch) || strings.Contains(err.Error(), "31323334") {
		t.Errorf("unknown, with a PIN: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Transmit(ctx, []byte{0, 0xca, 0, 0x6e, 0}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMalformed(t *testing.T) {
	for _, v := range []struct {
		in   string
		line int
	}{
		{"> 00ca006e00\n> 00ca006e00\n", 2}, {"< 9000\n", 1}, {"> 00\n< 9000\n", 1}, {"> 00ca006e00\n< 90\n", 2},
		{"> 00ca006e0\n", 1}, {"# x\n> zz\n", 2}, {"x\n", 1}, {"> 00ca006e00\n", 1}, {"> 00ca006e00\n< 9g00\n", 2}, {"> xXxx\n", 1},
	} {
		var pe *replay.ParseError
		if _, err := replay.Parse(strings.NewReader(v.in)); !errors.As(err, &pe) || pe.Line != v.line {
			t.Errorf("%q: %v", v.in, err)
		}
	}
}

// What a recorder writes is read back, and the same session runs on it.
func TestRecordAndReplay(t *testing.T) {
	for _, p := range []softcard.Personality{softcard.V34, softcard.V34Chaining} {
		var file bytes.Buffer
		rec := replay.NewRecorder(softcard.MustNew(softcard.Config{Personality: p}), &file)
		session := func(t *testing.T, tr keycard.Transport) []byte {
			t.Helper()
			c, err := keycard.Open(t.Context(), tr, keycard.WithPINs(pins))
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SetURL(t.Context(), "https://example.org/key"); err != nil {
				t.Fatal(err)
			}
			if err := c.SetCertificate(t.Context(), keycard.SlotSign, make([]byte, 700)); err != nil {
				t.Fatal(err)
			}
			if b, err := c.Certificate(t.Context(), keycard.SlotSign); err != nil || len(b) != 700 {
				t.Fatal(err)
			}
			k, err := c.Key(t.Context(), keycard.SlotAuth, nil)
			if errors.Is(err, keycard.ErrNoKey) {
				if _, err = c.Generate(t.Context(), keycard.SlotAuth, keycard.EC(keycard.Ed25519), keycard.KeyMeta{}); err != nil {
					t.Fatal(err)
				}
				k, err = c.Key(t.Context(), keycard.SlotAuth, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			sig, err := k.SignRaw(t.Context(), []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			return sig
		}
		rec.Comment("a session\nof two lines")
		session(t, rec.Transport()) // makes the key
		file.Reset()
		want := session(t, rec.Transport())
		if err := rec.Err(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(file.String(), "313233343536") {
			t.Error("a PIN in the recording")
		}
		s, err := replay.Parse(bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		strict := s.Play(replay.Strict)
		atr := struct {
			*replay.Player
			keycard.ATRer
		}{strict, rec}
		if got := session(t, atr); !bytes.Equal(got, want) || strict.Rest() != 0 {
			t.Errorf("strict: %x, want %x, %d left", got, want, strict.Rest())
		}
		if got := session(t, s.Play(replay.Loose)); !bytes.Equal(got, want) {
			t.Errorf("loose: %x, want %x", got, want)
		}
	}
}

// A recorder is as able as what is below it.
func TestRecorderInterfaces(t *testing.T) {
	plain := replay.NewRecorder(softcard.MustNew(softcard.Config{}), &bytes.Buffer{}).Transport()
	if _, ok := plain.(keycard.Locker); ok {
		t.Error("a Locker out of nothing")
	}
	if a, ok := plain.(keycard.ATRer); !ok || len(a.ATR()) == 0 {
		t.Error("no answer to reset")
	}
	l := locker{Transport: softcard.MustNew(softcard.Config{})}
	c, err := keycard.Open(t.Context(), replay.NewRecorder(&l, &bytes.Buffer{}).Transport())
	if err != nil || l.begins != 1 {
		t.Errorf("%d transactions, %v", l.begins, err)
	}
	c.Close()
	// A reader's limit holds behind a recorder too: longer data is chained.
	for _, n := range []int{0, 200, 470} {
		lim := limited{softcard.MustNew(softcard.Config{}), n}
		admin := keycard.WithPINs(keycard.StaticPIN(nil, keycard.PINString("12345678")))
		c, err := keycard.Open(t.Context(), replay.NewRecorder(lim, &bytes.Buffer{}).Transport(), admin)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetCertificate(t.Context(), keycard.SlotAuth, make([]byte, 1000)); err != nil {
			t.Errorf("limit %d: %v", n, err)
		}
		if got := replay.NewRecorder(lim, &bytes.Buffer{}).MaxData(); got != n {
			t.Errorf("limit %d: the recorder says %d", n, got)
		}
	}
	if n := replay.NewRecorder(softcard.MustNew(softcard.Config{}), &bytes.Buffer{}).MaxData(); n != 0 {
		t.Errorf("no limit: %d", n)
	}
}

// limited is a transport that refuses commands with more data than it says.
type limited struct {
	*softcard.Card
	n int
}

func (l limited) MaxData() int { return l.n }

func (l limited) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	if c, _, err := keycard.ParseCommand(cmd); err != nil || l.n > 0 && len(c.Data) > max(l.n, 255) {
		return nil, keycard.ErrMalformed
	}
	return l.Card.Transmit(ctx, cmd)
}

type locker struct {
	keycard.Transport
	begins int
}

func (l *locker) Begin(context.Context) error { l.begins++; return nil }
func (l *locker) End(bool) error              { return nil }

func FuzzParse(f *testing.F) {
	f.Add(fixture)
	f.Add("> xxxxxxxx\n< xx9000\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := replay.Parse(strings.NewReader(in))
		if err != nil {
			return
		}
		for _, m := range []replay.Mode{replay.Strict, replay.Loose} {
			p := s.Play(m)
			for _, e := range s.Exchanges {
				r, err := p.Transmit(t.Context(), e.Command)
				if m == replay.Strict && (err != nil || !bytes.Equal(r, e.Response)) {
					t.Fatalf("line %d: %x, %v", e.Line, r, err)
				}
			}
		}
	})
}
