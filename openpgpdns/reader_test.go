package openpgpdns

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// summary reads a ring and describes what came: number:fingerprint:octets of
// certificates, and for errors their sentinel with number and offset.
func summary(r io.Reader) []string {
	var out []string
	for c, err := range NewReader(r).All() {
		if err == nil {
			out = append(out, fmt.Sprintf("%d:%X:%d", c.Number(), c.Fingerprint()[:2], len(c.Bytes())))
			continue
		}
		var e *Error
		if !errors.As(err, &e) {
			out = append(out, "untyped "+err.Error())
			continue
		}
		out = append(out, fmt.Sprintf("%v cert %d at %d", e.Err, e.Certificate, e.Offset))
	}
	return out
}

func expect(t *testing.T, what string, r io.Reader, want ...string) {
	t.Helper()
	if got := summary(r); strings.Join(got, " | ") != strings.Join(want, " | ") {
		t.Errorf("%s:\n got %s\nwant %s", what, strings.Join(got, " | "), strings.Join(want, " | "))
	}
}

// armored makes an armored block.
func armored(b []byte) string {
	var s strings.Builder
	s.WriteString("-----BEGIN PGP PUBLIC KEY BLOCK-----\nComment: made here\n\n")
	for e := base64.StdEncoding.EncodeToString(b); e != ""; {
		n := min(64, len(e))
		s.WriteString(e[:n] + "\n")
		e = e[n:]
	}
	return s.String() + "=AAAA\n-----END PGP PUBLIC KEY BLOCK-----\n"
}

// TestMutations: each change to alice's key at the level of octets has the
// outcome that the design asks for. published is what the zero Filter gives
// for her address: its length, or the reason for none.
func TestMutations(t *testing.T) {
	alice := data(t, "keys/alice.pgp")
	for _, tt := range []struct {
		name      string
		certs     int
		published any
	}{
		{"marker_first", 1, 414},    // marker before the key: ignored
		{"trust_after_uid", 1, 414}, // trust packets never leave
		{"private60_mid", 1, 414},   // unknown, not critical: dropped by default
		{"newfmt5", 1, 434},         // every header kept as it is
		{"old4len", 1, 429},         // likewise
		{"subkey_alg99", 1, 598},    // a subkey that nobody knows is not our business
		{"v3sig", 1, 414},           // by another key: dropped
		{"dup_uid", 1, 595},         // both copies are self-signed
		{"bad_selfsig", 1, 414},     // only Verify notices
		{"uidless", 1, ErrNoUserID}, // nothing to publish it under
		{"uid_no_sig", 1, ErrNoUserID},
		{"two_certs_same_uid", 2, 414},
		{"v4_then_v6", 2, 414},
		{"v6_then_v4", 2, ErrNoUserID}, // the first one is not alice's
	} {
		var certs []*Cert
		for c, err := range ReadCerts(bytes.NewReader(data(t, "mutations/"+tt.name+".pgp"))) {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				continue
			}
			certs = append(certs, c)
		}
		if len(certs) != tt.certs {
			t.Errorf("%s: %d certificates, want %d", tt.name, len(certs), tt.certs)
			continue
		}
		out, err := Filter{}.For(address(t, "alice@example.org")).Append(nil, certs[0])
		switch want := tt.published.(type) {
		case int:
			if err != nil || len(out) != want {
				t.Errorf("%s: %d octets, %v; want %d", tt.name, len(out), err, want)
			}
			if want == 414 && tt.name != "bad_selfsig" && !bytes.Equal(out, alice) {
				t.Errorf("%s: not alice's octets", tt.name)
			}
		case error:
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", tt.name, err, want)
			}
		}
	}
	// Kept packets of unknown kind stay in their place.
	mid := data(t, "mutations/private60_mid.pgp")
	c, err := ParseCert(mid)
	if err != nil {
		t.Fatal(err)
	}
	if out, err := Everything().Append(nil, c); err != nil || !bytes.Equal(out, mid) {
		t.Errorf("private60_mid with everything: %d octets, %v", len(out), err)
	}
	expect(t, "trunc", bytes.NewReader(data(t, "mutations/trunc.pgp")), "truncated cert 1 at 292")
}

// TestTruncatedEverywhere cuts a ring of three at every octet: the certificates
// before the cut are read, and the error names the one that is cut.
func TestTruncatedEverywhere(t *testing.T) {
	a, b, c := data(t, "keys/alice.pgp"), data(t, "keys/bob.pgp"), data(t, "keys/gocrypto-v6-ed25519.pgp")
	ring := bytes.Join([][]byte{a, b, c}, nil)
	// Where packets end, so that a cut leaves a shorter but whole certificate.
	ends := map[int]bool{}
	for cert, err := range ReadCerts(bytes.NewReader(ring)) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range cert.packets {
			ends[int(cert.offset)+int(p.end)] = true
		}
	}
	step := 1
	if testing.Short() {
		step = 17
	}
	for n := 1; n < len(ring); n += step {
		got := summary(bytes.NewReader(ring[:n]))
		number := 1
		if n > len(a) {
			number++
		}
		if n > len(a)+len(b) {
			number++
		}
		last := got[len(got)-1]
		if ends[n] {
			if len(got) != number || strings.Contains(last, "truncated") {
				t.Errorf("cut at %d: %v", n, got)
			}
		} else if len(got) != number || !strings.HasPrefix(last, fmt.Sprintf("truncated cert %d ", number)) {
			t.Errorf("cut at %d: %v", n, got)
		}
	}
}

// TestChunking: the size of reads makes no difference, nor does a reader that
// returns an error together with the last octets.
func TestChunking(t *testing.T) {
	var ring []byte
	for _, n := range []string{"alice", "bob", "sam", "gocrypto-v6-ed25519", "phil"} {
		ring = append(ring, data(t, "keys/"+n+".pgp")...)
	}
	want := summary(bytes.NewReader(ring))
	if len(want) != 5 {
		t.Fatal(want)
	}
	for _, in := range []string{string(ring), armored(ring)} {
		expect(t, "one octet", iotest.OneByteReader(strings.NewReader(in)), want...)
		expect(t, "half", iotest.HalfReader(strings.NewReader(in)), want...)
		expect(t, "error with data", iotest.DataErrReader(strings.NewReader(in)), want...)
	}
	if got := summary(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(ring)))); len(got) != 1 || !strings.Contains(got[0], "timeout") {
		t.Errorf("source that fails: %v", got)
	}
	if got := summary(zeroReader{}); len(got) != 1 && len(got) != 0 {
		t.Errorf("source without progress: %v", got)
	}
}

type zeroReader struct{}

func (zeroReader) Read([]byte) (int, error) { return 0, nil }

func TestArmor(t *testing.T) {
	alice, bob := data(t, "keys/alice.pgp"), data(t, "keys/bob.pgp")
	a, b := "1:7EB6:414", "2:537B:3265"
	both := armored(append(bytes.Clone(alice), bob...))
	expect(t, "one block", strings.NewReader(both), a, b)
	expect(t, "two blocks", strings.NewReader("From: x\n\n"+armored(alice)+"\ntext between\n"+armored(bob)+"more text"), a, b)
	expect(t, "CRLF", strings.NewReader(strings.ReplaceAll(both, "\n", "\r\n")), a, b)
	expect(t, "byte order mark", strings.NewReader("\xef\xbb\xbf"+both), a, b)
	expect(t, "no checksum", strings.NewReader(strings.Replace(both, "=AAAA\n", "", 1)), a, b)
	expect(t, "odd line lengths", strings.NewReader("\n"+reflow(both, 61)), a, b)
	expect(t, "no last line", strings.NewReader(strings.Replace(armored(alice), "-----END PGP PUBLIC KEY BLOCK-----\n", "", 1)), "truncated cert 1 at 414")
	expect(t, "no last line, another block", strings.NewReader(strings.Replace(armored(alice), "=AAAA\n-----END PGP PUBLIC KEY BLOCK-----\n", "", 1)+armored(bob)),
		"bad armor cert 1 at 414")
	bad := strings.Replace(armored(alice), "\nmDM", "\nm!M", 1)
	expect(t, "bad digit", strings.NewReader(bad+armored(bob)), "bad armor cert 0 at 0", "1:537B:3265")
	expect(t, "secret block", strings.NewReader(armored(alice)+strings.ReplaceAll(armored(bob), "PUBLIC", "PRIVATE")), a, "secret key material, refused cert 1 at 414")
	expect(t, "other block first", strings.NewReader("-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n"+armored(bob)), "bad armor cert 0 at 0", "1:537B:3265")
	expect(t, "no armor", strings.NewReader("Dear Bob,\nno key here.\n"), "malformed cert 0 at 0")
	expect(t, "empty", strings.NewReader(""))
	expect(t, "blank", strings.NewReader("\n"), "malformed cert 0 at 0")
	expect(t, "long line", strings.NewReader("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n"+strings.Repeat("A", 1<<16)+"\n"), "bad armor cert 0 at 0")
	expect(t, "endless headers", io.MultiReader(strings.NewReader("-----BEGIN PGP PUBLIC KEY BLOCK-----\n"), strings.NewReader(strings.Repeat("A: b\n", 1<<17))), "bad armor cert 0 at 0")
}

// reflow breaks the base64 lines of an armored block anew.
func reflow(s string, n int) string {
	head, rest, _ := strings.Cut(s, "\n\n")
	body, tail, _ := strings.Cut(rest, "\n=")
	body = strings.ReplaceAll(body, "\n", "")
	var out strings.Builder
	for body != "" {
		k := min(n, len(body))
		out.WriteString(body[:k] + "\n")
		body = body[k:]
	}
	return head + "\n\n" + out.String() + "=" + tail
}

// TestHostileRings: what is wrong with one certificate does not cost the
// others, as long as the next packet can be found.
func TestHostileRings(t *testing.T) {
	alice, bob := data(t, "keys/alice.pgp"), data(t, "keys/bob.pgp")
	join := func(parts ...[]byte) io.Reader { return bytes.NewReader(bytes.Join(parts, nil)) }
	insert := func(b []byte) []byte { // behind alice's user ID and its signature
		return bytes.Join([][]byte{alice[:234], b, alice[234:]}, nil)
	}
	a1, b2 := "1:7EB6:414", "2:537B:3265"
	v3 := []byte{0x98, 8, 3, 0, 0, 0, 0, 0, 0, 1}
	for _, tt := range []struct {
		name string
		ring io.Reader
		want []string
	}{
		{"old version", join(v3, bob), []string{"unsupported key version cert 1 at 0", b2}},
		{"LibrePGP version", join([]byte{0xc6, 10, 5, 0, 0, 0, 0, 22, 0, 0, 0, 0}, bob), []string{"unsupported key version cert 1 at 0", b2}},
		{"empty primary", join([]byte{0xc6, 0}, bob), []string{"malformed cert 1 at 0", b2}},
		{"partial lengths", join(insert([]byte{0xcd, 0xe1, 'a', 'b', 0xe0, 'c', 1, 'd'}), bob), []string{"malformed cert 1 at 234", b2}},
		{"critical unknown tag", join(insert([]byte{0xd6, 1, 0}), bob), []string{"malformed cert 1 at 234", b2}},
		{"compressed data", join(insert([]byte{0xc8, 1, 0}), bob), []string{"malformed cert 1 at 234", b2}},
		{"tag 0", join(insert([]byte{0xc0, 1, 0}), bob), []string{"malformed cert 1 at 234", b2}},
		{"non-critical unknown tag", join(insert([]byte{0xff, 1, 0}), bob), []string{"1:7EB6:417", b2}},
		{"padding", join(insert([]byte{0xd5, 2, 9, 9}), bob), []string{"1:7EB6:418", b2}},
		{"indeterminate length", join(insert([]byte{0xb7, 1, 0}), bob), []string{"malformed cert 1 at 234"}},
		{"rubbish behind", join(alice, []byte("hello")), []string{"malformed cert 1 at 414"}},
		{"secret key first", join([]byte{0x94, 6, 4, 0, 0, 0, 0, 1}, alice), []string{"secret key material, refused cert 1 at 0"}},
		{"secret subkey within", join(insert([]byte{0x9c, 6, 4, 0, 0, 0, 0, 1}), bob), []string{"secret key material, refused cert 1 at 234"}},
		{"secret key after a bad one", join(v3, []byte{0x94, 6, 4, 0, 0, 0, 0, 1}, bob), []string{"unsupported key version cert 1 at 0", "secret key material, refused cert 2 at 10"}},
		{"starts with a user ID", join([]byte{0xcd, 1, 'x'}, alice, bob), []string{"malformed cert 0 at 0", a1, b2}},
		{"only a signature", join([]byte{0xc2, 1, 'x'}), []string{"malformed cert 0 at 0"}},
		{"giant announced", join([]byte{0x99, 0, 51}, alice[2:53], []byte{0xcd, 0xff, 0xff, 0xff, 0xff, 0xff, 'x'}), []string{"too large cert 1 at 54", "truncated cert 1 at 61"}},
		{"header cut", join(alice, []byte{0xc6}), []string{a1, "truncated cert 2 at 414"}},
		{"header cut in the length", join(alice, []byte{0xc6, 0xff, 0, 0}), []string{a1, "truncated cert 2 at 414"}},
		{"header of a signature cut", join(alice, []byte{0xc2, 0xff, 0, 0}), []string{"truncated cert 1 at 414"}},
	} {
		expect(t, tt.name, tt.ring, tt.want...)
	}
}

// TestLimits: a certificate beyond the limits costs an error, not memory, and
// the ring goes on.
func TestLimits(t *testing.T) {
	alice, bob := data(t, "keys/alice.pgp"), data(t, "keys/bob.pgp")
	many := append(bytes.Clone(alice), bytes.Repeat([]byte{0xff, 0}, maxPackets)...)
	expect(t, "packets", bytes.NewReader(append(many, bob...)), fmt.Sprintf("too large cert 1 at %d", 414+2*(maxPackets-5)), "2:537B:3265")
	ids := append(bytes.Clone(alice), bytes.Repeat([]byte{0xcd, 1, 'x'}, maxUserIDs)...)
	expect(t, "user IDs", bytes.NewReader(append(ids, bob...)), fmt.Sprintf("too large cert 1 at %d", 414+3*(maxUserIDs-1)), "2:537B:3265")
	r := NewReader(bytes.NewReader(append(bytes.Clone(bob), alice...)))
	r.SetMaxCertSize(3000)
	if _, err := r.Next(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("bob with 3000 octets: %v", err)
	}
	if c, err := r.Next(); err != nil || len(c.Bytes()) != 414 {
		t.Errorf("alice behind him: %v", err)
	}
	// 200 MB of a packet that is skipped pass through a small buffer.
	big := io.MultiReader(bytes.NewReader(alice), bytes.NewReader([]byte{0xff, 0xff, 0x0b, 0xeb, 0xc2, 0x00}), io.LimitReader(zeros{}, 200_000_000), bytes.NewReader(bob))
	if !testing.Short() {
		r := NewReader(big)
		if _, err := r.Next(); !errors.Is(err, ErrTooLarge) {
			t.Errorf("giant packet: %v", err)
		}
		if c, err := r.Next(); err != nil || len(c.Bytes()) != 3265 {
			t.Errorf("bob behind it: %v", err)
		}
		if len(r.buf) > 1<<20 {
			t.Errorf("the buffer has grown to %d octets", len(r.buf))
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestParseCert(t *testing.T) {
	alice := data(t, "keys/alice.pgp")
	for _, in := range [][]byte{nil, append(bytes.Clone(alice), alice...)} {
		if _, err := ParseCert(in); !errors.Is(err, ErrMalformed) {
			t.Errorf("%d octets: %v", len(in), err)
		}
	}
	c, err := ParseCert([]byte(armored(alice)))
	if err != nil || !bytes.Equal(c.Bytes(), alice) {
		t.Errorf("armored: %v", err)
	}
	if c.Version() != 4 || c.Number() != 1 || c.Offset() != 0 || c.Created().Format("2006-01-02") != "2026-01-01" {
		t.Errorf("version %d, number %d, offset %d, created %v", c.Version(), c.Number(), c.Offset(), c.Created())
	}
}

// TestFingerprints: those that gpg and go-crypto compute.
func TestFingerprints(t *testing.T) {
	for name, want := range map[string]string{
		"alice": "7EB6C81DE9B78CF5FC21824AF076F89B250D2BCA",
		"bob":   "537BB0BD887B895D5B7AE0CB6DD152BE93D3F983",
	} {
		if got := fmt.Sprintf("%X", key(t, name).Fingerprint()); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, n := range names(t, "keys", 27) {
		c := key(t, n)
		e, err := c.Entity()
		if err != nil {
			t.Errorf("%s: %v", n, err)
			continue
		}
		if !bytes.Equal(e.PrimaryKey.Fingerprint, c.Fingerprint()) {
			t.Errorf("%s: %X, go-crypto has %X", n, c.Fingerprint(), e.PrimaryKey.Fingerprint)
		}
		if e.PrimaryKey.KeyId != c.keyID() {
			t.Errorf("%s: key ID %X, go-crypto has %X", n, c.keyID(), e.PrimaryKey.KeyId)
		}
	}
}

// TestReaderDoesNotAllocate: in the steady state.
func TestReaderDoesNotAllocate(t *testing.T) {
	var ring []byte
	for _, n := range []string{"alice", "bob", "gocrypto-v6-ed25519", "phil"} {
		ring = append(ring, data(t, "keys/"+n+".pgp")...)
	}
	src := bytes.NewReader(ring)
	r := NewReader(src)
	out := make([]byte, 0, 8192)
	f := Minimal().For(address(t, "bob@example.org"))
	f.Now = oracleTime
	var hash []byte
	n := testing.AllocsPerRun(100, func() {
		src.Reset(ring)
		r.Reset(src)
		for {
			c, err := r.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Number() == 2 {
				if out, err = f.Append(out[:0], c); err != nil {
					t.Fatal(err)
				}
				if len(out) != 1808 {
					t.Fatal(len(out))
				}
			}
			hash = AppendWKDHash(hash[:0], []byte("bob"))
			hash = AppendDANELabel(hash[:0], []byte("bob"))
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a ring", n)
	}
}

// TestLongArmorHeader: a header line of any length is one line; what is left of
// it behind a full buffer is neither the empty line nor the last one.
func TestLongArmorHeader(t *testing.T) {
	alice := armored(ring(t, "alice"))
	first, rest, _ := strings.Cut(alice, "\n")
	for _, n := range []int{100, armorLineReading - 1, armorLineReading, armorLineReading + 1, 2 * armorLineReading, 3 * armorLineReading} {
		for _, end := range []string{"", "  ", "-----END x"} {
			line := "Comment: "
			line += strings.Repeat("x", n-len(line)) + end
			c, err := ParseCert([]byte(first + "\n" + line + "\n" + rest)) // there is another header in rest
			if err != nil || !bytes.Equal(c.Bytes(), ring(t, "alice")) {
				t.Errorf("%d octets and %q: %v", n, end, err)
			}
		}
	}
}
