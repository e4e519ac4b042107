package softcard_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

func ask(t testing.TB, c *softcard.Card, cmd string) string {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(cmd, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Transmit(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(r)
}

// Single commands and what the specification wants for an answer.
func TestStatusWords(t *testing.T) {
	const selectApp = "00a4040006d27600012401"
	for _, v := range []struct {
		what     string
		kind     softcard.Personality
		commands []string // the answer to the last counts
		want     string
	}{
		{"before SELECT", 0, []string{"00ca004f00"}, "6985"},
		{"another application", 0, []string{"00a4040008a000000308000010"}, "6a82"},
		{"SELECT by file identifier", 0, []string{"00a4000c023f00"}, "6a86"},
		{"part of the name", 0, []string{"00a4040005d276000124"}, "9000"},
		{"name with version", 0, []string{"00a4040007d276000124010000"}, "9000"},
		{"unknown instruction", 0, []string{selectApp, "00ff000000"}, "6d00"},
		{"unknown class", 0, []string{selectApp, "40ca004f00"}, "6e00"},
		{"unknown object", 0, []string{selectApp, "00ca123400"}, "6a88"},
		{"writing without PIN", 0, []string{selectApp, "00da005b0141"}, "6982"},
		{"query before a PIN", 0, []string{selectApp, "0020008200"}, "63c3"},
		{"query on 2.0", softcard.V20, []string{selectApp, "0020008200"}, "6a80"},
		{"wrong PIN", 0, []string{selectApp, "0020008206303030303030"}, "6982"},
		{"third wrong PIN", 0, []string{selectApp, "0020008206303030303030", "0020008106303030303030", "0020008206303030303030"}, "6983"},
		{"right PIN when blocked", 0, []string{selectApp, "0020008206303030303030", "0020008106303030303030", "0020008206303030303030", "0020008206313233343536"}, "6983"},
		{"unknown PIN", 0, []string{selectApp, "0020008406313233343536"}, "6a86"},
		{"logout", 0, []string{selectApp, "0020008206313233343536", "0020ff82", "0020008200"}, "63c3"},
		{"query after a PIN", 0, []string{selectApp, "0020008206313233343536", "0020008200"}, "9000"},
		{"82 is not 81", 0, []string{selectApp, "0020008206313233343536", "0020008100"}, "63c3"},
		{"extended length on a chaining card", softcard.V34Chaining, []string{selectApp, "00ca006e000000"}, "6700"},
		{"signature without key", 0, []string{selectApp, "0020008106313233343536", "002a9e9a0141"}, "6a88"},
		{"signature without PIN", 0, []string{selectApp, "002a9e9a0141"}, "6982"},
		{"public key of an empty slot", 0, []string{selectApp, "0047810002b60000"}, "6a88"},
		{"generation without PIN", 0, []string{selectApp, "0047800002b60000"}, "6982"},
		{"changed chain", 0, []string{selectApp, "10da005b0141", "00da005e0141"}, "6883"},
		{"terminate without PIN", 0, []string{selectApp, "00e60000"}, "6982"},
		{"terminate on 2.0", softcard.V20, []string{selectApp, "0020008308 3132333435363738", "00e60000"}, "6d00"},
		{"after terminate", 0, []string{selectApp, "00200083083132333435363738", "00e60000", "00ca004f00"}, "6285"},
		{"SELECT after terminate", 0, []string{selectApp, "00200083083132333435363738", "00e60000", selectApp}, "6285"},
		{"activate", 0, []string{selectApp, "00200083083132333435363738", "00e60000", "00440000", "00ca00c400"}, "007f7f7f0300039000"},
		{"short PIN", 0, []string{selectApp, "002400810b3132333435363132333435"}, "6a80"},
		{"long object", 0, []string{selectApp, "00200083083132333435363738", "00da5f35023939"}, "6700"},
		{"fingerprint of 19", 0, []string{selectApp, "00200083083132333435363738", "00da00c713" + strings.Repeat("11", 19)}, "6700"},
		{"unknown algorithm", 0, []string{selectApp, "00200083083132333435363738", "00da00c10213aa"}, "6a80"},
		{"Ed25519 for decryption", 0, []string{selectApp, "00200083083132333435363738", "00da00c20a162b06010401da470f01"}, "6a80"},
		{"GET RESPONSE without any", 0, []string{selectApp, "00c0000010"}, "9000"},
		{"import of nonsense", 0, []string{selectApp, "00200083083132333435363738", "00db3fff044d02b600"}, "6a80"},
		{"lengths disagree", 0, []string{selectApp, "00ca004f0502"}, "6700"},
	} {
		c := softcard.MustNew(softcard.Config{Personality: v.kind, Serial: 1})
		got := ""
		for _, cmd := range v.commands {
			got = ask(t, c, cmd)
		}
		if got != v.want {
			t.Errorf("%s: %s, want %s", v.what, got, v.want)
		}
	}
	if _, err := softcard.MustNew(softcard.Config{}).Transmit(t.Context(), []byte{4}); !errors.Is(err, keycard.ErrMalformed) {
		t.Errorf("one octet: %v", err)
	}
}

// An answer longer than asked for comes in pieces.
func TestPieces(t *testing.T) {
	c := softcard.MustNew(softcard.Config{Serial: 1})
	ask(t, c, "00a4040006d27600012401")
	whole := ask(t, c, "00ca006e000000")
	whole = whole[:len(whole)-4]
	got := ask(t, c, "00ca006e40")
	all := got[:128]
	for n := 0; strings.HasSuffix(got, "61"+got[len(got)-2:]) && got[len(got)-4:len(got)-2] == "61"; n++ {
		if n > 20 {
			t.Fatal("no end")
		}
		got = ask(t, c, "00c0000040")
		all += got[:len(got)-4]
	}
	if all != whole || got[len(got)-4:] != "9000" {
		t.Errorf("pieces\n%s\nwhole\n%s", all, whole)
	}
}

// TestAnswerGivenUp: who does not fetch the rest of a long answer does not take
// it from the card. Each answer is longer than one piece.
func TestAnswerGivenUp(t *testing.T) {
	const selectApp = "00a4040006d27600012401"
	for _, kind := range []softcard.Personality{softcard.V34, softcard.V34Chaining, softcard.V20} {
		c := softcard.MustNew(softcard.Config{Personality: kind, Serial: 1})
		ask(t, c, selectApp)
		ask(t, c, "00200083083132333435363738")
		ask(t, c, "10da7f21fe"+strings.Repeat("ab", 254))
		for _, put := range []string{"00da7f21fe" + strings.Repeat("cd", 254), "00da5f50fe" + strings.Repeat("68", 254)} {
			if got := ask(t, c, put); got != "9000" {
				t.Fatalf("%d: write: %s", kind, got)
			}
		}
		for _, object := range []string{"7f21", "5f50", "006e"} {
			read := func() (all string) {
				got := ask(t, c, "00ca"+object+"40")
				for n := 0; got[len(got)-4:len(got)-2] == "61"; n++ {
					if n > 20 {
						t.Fatal("no end")
					}
					all += got[:len(got)-4]
					got = ask(t, c, "00c0000040")
				}
				return all + got
			}
			want := read()
			for _, next := range []string{"00ca004f00", selectApp} {
				if got := ask(t, c, "00ca"+object+"40"); got[128:130] != "61" {
					t.Fatalf("%d: object %s in one piece", kind, object)
				}
				ask(t, c, "00c0000040")
				ask(t, c, next)
				if got := read(); got != want {
					t.Errorf("%d: object %s after %s:\n%s\nbefore\n%s", kind, object, next, got, want)
				}
			}
		}
	}
}

// TestManyTries: 63Cx has room for 15 tries; a card with more says 15 until there
// are fewer, and its PIN status has the number.
func TestManyTries(t *testing.T) {
	card := softcard.MustNew(softcard.Config{CountInStatus: true})
	c, err := keycard.Open(t.Context(), card)
	if err != nil {
		t.Fatal(err)
	}
	admin, wrong := keycard.PINString("12345678"), keycard.PINString("000000")
	if err := c.Verify(t.Context(), keycard.PINAdmin, admin); err != nil {
		t.Fatal(err)
	}
	if err := c.SetRetries(t.Context(), 99, 20, 17); err != nil {
		t.Fatal(err)
	}
	for left := 98; left >= 13; left-- {
		err := c.Verify(t.Context(), keycard.PINUser, wrong)
		var se *keycard.StatusError
		if !errors.As(err, &se) || !errors.Is(err, keycard.ErrPIN) || se.Retries != left || se.SW != 0x63c0|uint16(min(left, 15)) {
			t.Fatalf("%d tries left: %v", left, err)
		}
		if ok, n, err := c.Verified(t.Context(), keycard.PINUser); ok || n != left || err != nil {
			t.Fatalf("%d tries left: %v %d %v", left, ok, n, err)
		}
		if got, want := ask(t, card, "00200082"), fmt.Sprintf("63c%x", min(left, 15)); got != want {
			t.Fatalf("%d tries left: %s, want %s", left, got, want)
		}
	}
	if err := c.FactoryReset(t.Context(), keycard.ResetOptions{BlockPINs: true}); err != nil {
		t.Error(err)
	}
}

// Fixed keys against the standard library: the card's octets are what the
// specification says they are.
func TestVectors(t *testing.T) {
	c := softcard.MustNew(softcard.Config{})
	ask(t, c, "00a4040006d27600012401")
	ask(t, c, "00200083083132333435363738")
	// RFC 8032 section 7.1, test 2: secret key, public key, message 72.
	ask(t, c, "00da00c10a162b06010401da470f01")
	if r := ask(t, c, "00db3fff2c4d2ab6007f480292205f48204ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"); r != "9000" {
		t.Fatal(r)
	}
	if r := ask(t, c, "0047810002b60000"); r != "7f492286203d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c9000" {
		t.Errorf("public key %s", r)
	}
	ask(t, c, "0020008106313233343536")
	if r := ask(t, c, "002a9e9a017200"); r != "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c009000" {
		t.Errorf("signature %s", r)
	}
	if r := ask(t, c, "002a9e9a017200"); r != "6982" {
		t.Errorf("a second signature with one PIN: %s", r)
	}
	if r := ask(t, c, "00ca007a00"); r != "7a0593030000019000" {
		t.Errorf("counter %s", r)
	}
	// RFC 7748 section 6.1: Alice's secret (highest octet first here), Bob's
	// public key, the shared secret.
	ask(t, c, "00da00c20b122b060104019755010501")
	if r := ask(t, c, "00db3fff2c4d2ab8007f480292205f48202a2cb91da5fb77b12a99c0eb872f4cdf4566b25172c1163c7da518730a6d0777"); r != "9000" {
		t.Fatal(r)
	}
	if r := ask(t, c, "0047810002b80000"); r != "7f492286208520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a9000" {
		t.Errorf("public key %s", r)
	}
	ask(t, c, "0020008206313233343536")
	if r := ask(t, c, "002a808627a6257f49228620de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f00"); r != "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e1617429000" {
		t.Errorf("shared secret %s", r)
	}
	// A point of low order gives no secret away.
	if r := ask(t, c, "002a808627a6257f49228620"+strings.Repeat("00", 32)+"00"); r != "6a80" {
		t.Errorf("point zero: %s", r)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "card.json")
	pins := keycard.WithPINs(keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678")))
	c := softcard.MustNew(softcard.Config{File: file, Personality: softcard.V34Chaining})
	k, err := keycard.Open(t.Context(), c, pins)
	if err != nil {
		t.Fatal(err)
	}
	p, err := k.Generate(t.Context(), keycard.SlotDecrypt, keycard.EC(keycard.P256), keycard.KeyMeta{})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Verify(t.Context(), keycard.PINUser, keycard.PINString("000000")); !errors.Is(err, keycard.ErrPIN) {
		t.Fatal(err)
	}
	k.Close()
	again := softcard.MustNew(softcard.Config{File: file, Serial: 99})
	if again.SerialNumber() != c.SerialNumber() {
		t.Error("another card came out of the file")
	}
	if k, err = keycard.Open(t.Context(), again, pins); err != nil {
		t.Fatal(err)
	}
	q, err := k.PublicKey(t.Context(), keycard.SlotDecrypt)
	if err != nil || !q.Equal(p) || k.Info().PIN.PIN != 2 || k.Info().Capabilities.ExtendedLength {
		t.Errorf("%v, %+v, %v", q, k.Info().PIN, err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".softcard*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	for _, bad := range []string{"", "{}", "{\"Objects\":{},\"Slots\":[{\"Private\":\"AAAA\"}]}", "x"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := softcard.New(softcard.Config{File: file}); err == nil {
			t.Errorf("%q is a card", bad)
		}
	}
	if _, err := softcard.New(softcard.Config{File: filepath.Join(dir, "none", "x")}); err == nil {
		t.Error("no folder, no error")
	}
}

// The other end of vpcd's protocol.
func TestVPCD(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	c := softcard.MustNew(softcard.Config{Serial: 1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.ServeVPCD(ctx, l.Addr().String()) }()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	send := func(b ...byte) { conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)) }
	receive := func() []byte {
		var n [2]byte
		if _, err := io.ReadFull(conn, n[:]); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, binary.BigEndian.Uint16(n[:]))
		io.ReadFull(conn, b)
		return b
	}
	send(1)
	send(4)
	if b := receive(); !bytes.Equal(b, c.ATR()) {
		t.Errorf("answer to reset %x", b)
	}
	send(0, 0xa4, 4, 0, 6, 0xd2, 0x76, 0, 1, 0x24, 1)
	receive()
	send(0, 0x20, 0, 0x82, 6, '1', '2', '3', '4', '5', '6')
	if b := receive(); !bytes.Equal(b, []byte{0x90, 0}) {
		t.Errorf("VERIFY %x", b)
	}
	send(2) // reset: the PIN is forgotten, nothing is selected
	send(0, 0xca, 0, 0x4f, 0)
	if b := receive(); !bytes.Equal(b, []byte{0x69, 0x85}) {
		t.Errorf("after reset %x", b)
	}
	send(0, 1)
	if b := receive(); !bytes.Equal(b, []byte{0x67, 0}) {
		t.Errorf("two octets: %x", b)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("cancelled: %v", err)
	}
	go func() { done <- c.ServeVPCD(t.Context(), l.Addr().String()) }()
	if conn, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if err := <-done; !errors.Is(err, io.EOF) {
		t.Errorf("hung up: %v", err)
	}
}

func FuzzCommands(f *testing.F) {
	for _, s := range []string{"00a4040006d27600012401", "00200083083132333435363738", "00db3fff2c4d2ab6007f480292205f4820", "0047800002b60000", "00da00f96e", "00ca006e000000", "002a8086", "10da7f2101ff", "00a500040660045c027f21", "80fb0100", "00e60000", "00440000"} {
		b, _ := hex.DecodeString(s)
		f.Add(b, b)
	}
	sel, _ := hex.DecodeString("00a4040006d27600012401")
	pw3, _ := hex.DecodeString("00200083083132333435363738")
	pw1, _ := hex.DecodeString("0020008206313233343536")
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a) > 2 && a[1] == 0x47 || len(b) > 2 && b[1] == 0x47 {
			return // makes RSA keys
		}
		c := softcard.MustNew(softcard.Config{Serial: 1})
		for _, cmd := range [][]byte{sel, pw3, pw1, a, b} {
			if len(cmd) < 4 {
				continue
			}
			r, err := c.Transmit(t.Context(), cmd)
			if err != nil || len(r) < 2 {
				t.Fatalf("%x: %x, %v", cmd, r, err)
			}
		}
	})
}

func BenchmarkGetData(b *testing.B) {
	c := softcard.MustNew(softcard.Config{Serial: 1})
	ctx := context.Background()
	sel, _ := hex.DecodeString("00a4040006d27600012401")
	c.Transmit(ctx, sel)
	for name, cmd := range map[string][]byte{"C4": {0, 0xca, 0, 0xc4, 0}, "6E": {0, 0xca, 0, 0x6e, 0, 0, 0}} {
		b.Run("object="+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r, err := c.Transmit(ctx, cmd); err != nil || len(r) < 9 {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
		})
	}
}

// The card's RSA signature beside crypto/rsa's.
func BenchmarkRSA2048(b *testing.B) {
	c := softcard.MustNew(softcard.Config{Serial: 1})
	k, err := keycard.Open(context.Background(), c, keycard.WithPINs(keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678"))))
	if err != nil {
		b.Fatal(err)
	}
	key, err := rsa.GenerateKey(nil, 2048)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := k.Import(context.Background(), keycard.SlotSign, key, keycard.KeyMeta{Created: k.Info().Keys[0].Created.AddDate(2000, 0, 0)}); err != nil {
		b.Fatal(err)
	}
	s, err := k.Key(context.Background(), keycard.SlotSign, nil)
	if err != nil {
		b.Fatal(err)
	}
	d := sha256.Sum256(nil)
	b.Run("impl=softcard", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Sign(nil, d[:], crypto.SHA256); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("impl=crypto-rsa", func(b *testing.B) {
		for b.Loop() {
			if _, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, d[:]); err != nil {
				b.Fatal(err)
			}
		}
	})
}
