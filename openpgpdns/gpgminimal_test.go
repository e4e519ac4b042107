package openpgpdns_test

import (
	"bytes"
	"crypto"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"

	"signalbox.example/internal/need"
	"signalbox.example/openpgpdns"
)

// keyMaker writes certificates with odd but valid self-signatures: several per
// user ID, lifetimes, revocations before and after, by chance.
type keyMaker struct {
	t     *testing.T
	r     *rand.Rand
	now   time.Time
	out   bytes.Buffer
	other *packet.PrivateKey
}

func newKey(t *testing.T, created time.Time) *packet.PrivateKey {
	t.Helper()
	cfg := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return created }}
	e, err := openpgp.NewEntity("x", "", "x@example.org", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e.PrivateKey
}

// days returns a time some days before now, and never before created.
func (m *keyMaker) days(created time.Time) time.Time {
	d := created.Add(time.Duration(1+m.r.IntN(20)) * 24 * time.Hour)
	if d.After(m.now) {
		d = m.now.Add(-time.Hour)
	}
	return d
}

// lifetime is nil (none), over, or far away.
func (m *keyMaker) lifetime(created time.Time) *uint32 {
	age := uint32(m.now.Sub(created) / time.Second)
	var s uint32
	switch m.r.IntN(4) {
	case 0:
		s = max(1, age-3600)
	case 1:
		s = age + 1e7
	default:
		return nil
	}
	return &s
}

func (m *keyMaker) sig(typ packet.SignatureType, by *packet.PrivateKey, created time.Time) *packet.Signature {
	id := by.KeyId
	return &packet.Signature{Version: 4, SigType: typ, PubKeyAlgo: by.PubKeyAlgo, Hash: crypto.SHA256, CreationTime: created,
		IssuerKeyId: &id, IssuerFingerprint: by.Fingerprint}
}

func (m *keyMaker) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *keyMaker) cert(n int) {
	created := m.now.Add(-time.Duration(30+m.r.IntN(300)) * 24 * time.Hour)
	key := newKey(m.t, created)
	pub := &key.PublicKey
	cfg := &packet.Config{}
	m.must(pub.Serialize(&m.out))
	flags := func(s *packet.Signature) {
		s.FlagsValid, s.FlagCertify, s.FlagSign = true, true, true
	}
	if m.r.IntN(6) == 0 {
		s := m.sig(packet.SigTypeKeyRevocation, key, m.days(created))
		m.must(s.RevokeKey(pub, key, cfg))
		m.must(s.Serialize(&m.out))
	}
	for range m.r.IntN(5) / 3 {
		s := m.sig(packet.SigTypeDirectSignature, key, m.days(created))
		flags(s)
		s.KeyLifetimeSecs = m.lifetime(created)
		m.must(s.SignDirectKeyBinding(pub, key, cfg))
		m.must(s.Serialize(&m.out))
	}
	for u := range 1 + m.r.IntN(3) {
		uid := packet.NewUserId("Test "+strconv.Itoa(n), "", "u"+strconv.Itoa(n)+"."+strconv.Itoa(u)+"@example.org")
		m.must(uid.Serialize(&m.out))
		keep := m.r.IntN(4) > 0 || u == 0 // mostly one that is simply good
		for i := range 1 + m.r.IntN(3) {
			at := m.days(created)
			s := m.sig(packet.SigTypePositiveCert, key, at)
			flags(s)
			s.KeyLifetimeSecs = m.lifetime(created)
			if !keep || i > 0 {
				s.SigLifetimeSecs = m.lifetime(at)
			}
			m.must(s.SignUserId(uid.Id, pub, key, cfg))
			m.must(s.Serialize(&m.out))
		}
		if m.r.IntN(3) == 0 {
			s := m.sig(packet.SigTypeCertificationRevocation, key, m.days(created))
			m.must(s.SignUserId(uid.Id, pub, key, cfg))
			m.must(s.Serialize(&m.out))
		}
		if m.r.IntN(2) == 0 {
			s := m.sig(packet.SigTypeGenericCert, m.other, m.days(created))
			m.must(s.SignUserId(uid.Id, pub, m.other, cfg))
			m.must(s.Serialize(&m.out))
		}
	}
	for range m.r.IntN(3) {
		at := m.days(created)
		sub := newKey(m.t, at)
		subPub := sub.PublicKey
		subPub.IsSubkey = true
		m.must(subPub.Serialize(&m.out))
		if m.r.IntN(5) == 0 {
			s := m.sig(packet.SigTypeSubkeyRevocation, key, m.days(at))
			m.must(s.RevokeSubkey(&subPub, key, cfg))
			m.must(s.Serialize(&m.out))
		}
		for range 1 + m.r.IntN(2) {
			s := m.sig(packet.SigTypeSubkeyBinding, key, m.days(at))
			s.FlagsValid, s.FlagAuthenticate = true, true
			s.KeyLifetimeSecs = m.lifetime(at)
			m.must(s.SignKey(&subPub, key, cfg))
			m.must(s.Serialize(&m.out))
		}
	}
}

// TestIntegrationExportMinimal makes certificates with many kinds of
// self-signatures and compares the filter with gpg's export-minimal, octet by
// octet, on what gpg itself exports of them.
func TestIntegrationExportMinimal(t *testing.T) {
	need.Asked(t, feature)
	need.Commands(t, feature, "gpg", "gpgconf")
	dir, err := os.MkdirTemp("", "opd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const seed, count = 1, 150
	now := time.Now()
	m := &keyMaker{t: t, r: rand.New(rand.NewPCG(seed, 0)), now: now, other: newKey(t, now.Add(-1000*24*time.Hour))}
	for n := range count {
		m.cert(n)
	}
	file := filepath.Join(dir, "ring")
	if err := os.WriteFile(file, m.out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	g := newGPG(t, dir, "home")
	if _, said, err := g.run("--import", file); err != nil {
		t.Logf("gpg --import: %v\n%.2000s", err, said)
	}
	whole, _, err := g.run("--export")
	if err != nil {
		t.Fatal(err)
	}
	minimal, _, err := g.run("--export-options", "export-minimal", "--export")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]byte{}
	for c, err := range openpgpdns.ReadCerts(bytes.NewReader(minimal)) {
		if err != nil {
			t.Fatal(err)
		}
		want[string(c.Fingerprint())] = c.Bytes()
	}
	compared, wrong := 0, 0
	for c, err := range openpgpdns.ReadCerts(bytes.NewReader(whole)) {
		if err != nil {
			t.Fatal(err)
		}
		compared++
		got, err := openpgpdns.Minimal().Append(nil, c)
		if w := want[string(c.Fingerprint())]; err != nil || !bytes.Equal(got, w) {
			if wrong++; wrong <= 3 {
				t.Errorf("%X: %v\nwhole\n%s\nwe have\n%s\ngpg has\n%s", c.Fingerprint(), err, packets(t, c.Bytes()), packets(t, got), packets(t, w))
			}
		}
	}
	t.Logf("%d of %d certificates made are in gpg's ring; %d differ", compared, count, wrong)
	if compared < count*3/4 {
		t.Errorf("only %d certificates compared", compared)
	}
	if wrong > 0 {
		t.Fail()
	}
}

// packets describes certificates as gpg lists them.
func packets(t *testing.T, b []byte) string {
	t.Helper()
	cmd := exec.Command("gpg", "--list-packets", "--verbose")
	cmd.Stdin = bytes.NewReader(b)
	out, _ := cmd.Output()
	var short []byte
	for l := range bytes.Lines(out) {
		if l[0] == ':' || bytes.Contains(l, []byte("created")) || bytes.Contains(l, []byte("expires")) || bytes.Contains(l, []byte("sigclass")) {
			short = append(short, l...)
		}
	}
	return string(short)
}
