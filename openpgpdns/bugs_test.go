package openpgpdns

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The numbers are those of the list of peers' bugs that this package was
// designed against. 1, 3, 4, 12 and 14 are in record_test.go, 7 in
// locate_test.go, 9 in verify_test.go, 17 in dnsrr.

// TestBug02RightPerson (letoams/hash-slinger#5): bob's key carries alice's
// signature and thea's carries both; the record for alice holds alice's key.
func TestBug02RightPerson(t *testing.T) {
	c, err := Collect(t.Context(), "example.org", ReadCerts(bytes.NewReader(ring(t, "bob", "thea", "alice"))), minimalOptions())
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range c.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		if e.Address.Local != "alice" {
			continue
		}
		if len(e.Fingerprints) != 1 || !bytes.Equal(e.Fingerprints[0], key(t, "alice").Fingerprint()) {
			t.Errorf("alice: %X", e.Fingerprints)
		}
	}
	// A user ID with her address that somebody else's key carries without a
	// self-signature does not count.
	mallory := bytes.Join([][]byte{ring(t, "dup")[:53], ring(t, "alice")[53:234]}, nil)
	m, err := ParseCert(mallory)
	if err != nil {
		t.Fatal(err)
	}
	for a := range m.Addresses() {
		t.Errorf("claims %s", a)
	}
	if _, err := (Filter{}).For(address(t, "alice@example.org")).Append(nil, m); !errors.Is(err, ErrNoUserID) {
		t.Errorf("published: %v", err)
	}
	if _, err := OPENPGPKEY(address(t, "alice@example.org"), Filter{}, key(t, "bob")); !errors.Is(err, ErrNoUserID) {
		t.Errorf("bob's key for alice: %v", err)
	}
}

// TestBug05NeverArmored (ProtonMail/WebClients#245): files and records are
// binary, also from an armored ring.
func TestBug05NeverArmored(t *testing.T) {
	w := WKD{Root: t.TempDir(), Options: minimalOptions()}
	update(t, w, []byte(armored(ring(t, "alice", "bob"))))
	n := 0
	for name, content := range tree(t, w.Root) {
		if strings.Contains(name, "/hu/") {
			n++
			if content[0]&0x80 == 0 || strings.Contains(content, "-----BEGIN") {
				t.Errorf("%s is armored", name)
			}
		}
	}
	if n != 3 {
		t.Errorf("%d files", n)
	}
}

// TestBug06NotRFC5322 (FlowCrypt/flowcrypt-android#1953): a display name with
// an unquoted dot is no obstacle.
func TestBug06NotRFC5322(t *testing.T) {
	for _, uid := range []string{"Bob D. <bob@test.test>", "Bob, D <bob@test.test>", "Bob (D.) [x]: <bob@test.test>", "Böb <bob@test.test>"} {
		if a, ok := AddressFromUserID([]byte(uid)); !ok || a.String() != "bob@test.test" {
			t.Errorf("%q: %v", uid, a)
		}
	}
}

// TestBug08NoOtherUserIDs (rnpgp/rnp#1285, privacytools.io#1718): the file of
// one address tells nobody the others.
func TestBug08NoOtherUserIDs(t *testing.T) {
	f := Minimal().For(address(t, "bob@example.net"))
	f.Now = oracleTime
	got, err := f.Append(nil, key(t, "bob"))
	if err != nil || len(got) != 1815 || !bytes.Equal(got, data(t, "oracle/gpg-wks-client/example.net/hu/jycbiujnsxs47xrkethgtj69xuunurok")) {
		t.Errorf("%d octets, %v", len(got), err)
	}
	for _, other := range []string{"bob@example.org", "Multi@", "No Mail", "sub.example.org"} {
		if bytes.Contains(got, []byte(other)) {
			t.Errorf("contains %q", other)
		}
	}
	// Nor does any default: the zero Filter with an address behaves the same.
	for a := range key(t, "bob").Addresses() {
		got, err := Filter{}.For(a).Append(nil, key(t, "bob"))
		if err != nil {
			t.Fatal(err)
		}
		for b := range key(t, "bob").Addresses() {
			if has := bytes.Contains(bytes.ToLower(got), []byte(b.String())); has != (a == b) {
				t.Errorf("%s: contains %s: %v", a, b, has)
			}
		}
	}
}

// TestBug10ExpiredSubkeys (golang/go#15353): minimal leaves them out, and all
// of them if the primary key has expired.
func TestBug10ExpiredSubkeys(t *testing.T) {
	for name, sizes := range map[string][2]int{"subexp": {595, 409}, "erin": {418, 238}} {
		f := Minimal()
		for i, now := range []string{"2024-06-01", "2026-06-01"} {
			f.Now = oracleTime
			if i == 0 {
				f.Now = oracleTime.AddDate(-2, 0, 0)
			}
			if out, err := f.Append(nil, key(t, name)); err != nil || len(out) != sizes[i] {
				t.Errorf("%s in %s: %d octets, %v; want %d", name, now, len(out), err, sizes[i])
			}
		}
	}
	e, ok := key(t, "erin").Expires(oracleTime)
	if !ok || e.Format("2006-01-02") != "2024-12-31" {
		t.Errorf("erin expires %v, %v", e, ok)
	}
	if _, ok := key(t, "alice").Expires(oracleTime); ok {
		t.Error("alice expires")
	}
}

// TestBug11PhotoKept (ProtonMail/go-crypto#133): the photo is kept or dropped
// because somebody said so.
func TestBug11PhotoKept(t *testing.T) {
	phil := key(t, "phil")
	for _, tt := range []struct {
		f    Filter
		want int
	}{{Everything(), 998}, {Minimal(), 998}, {Filter{}, 410}, {Minimal().For(address(t, "phil@example.org")), 410}, {Everything().For(address(t, "phil@example.org")), 410}} {
		if out, err := tt.f.Append(nil, phil); err != nil || len(out) != tt.want {
			t.Errorf("%+v: %d octets, %v; want %d", tt.f, len(out), err, tt.want)
		}
	}
}

// TestBug13NoListing (Uberspace/lab#473): the folder of hashes is not listed,
// and browsers of other origins may fetch keys.
func TestBug13NoListing(t *testing.T) {
	w := WKD{Root: t.TempDir(), Method: Direct}
	update(t, w, ring(t, "alice"))
	h := Handler(os.DirFS(w.Root))
	for _, path := range []string{"/.well-known/openpgpkey/hu/", "/.well-known/openpgpkey/hu", "/.well-known/openpgpkey/", "/"} {
		if r := get(t, h, "GET", path); r.StatusCode != 404 || r.ContentLength > 20 {
			t.Errorf("GET %s: %v", path, r.Status)
		}
	}
	if r := get(t, h, "GET", "/.well-known/openpgpkey/hu/kei1q4tipxxu1yj79k9kfukdhfy631xe"); r.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Error("no CORS header")
	}
}

// TestBug15SubDomain (mailvelope/keyserver#151): openpgpkey, not openpgpkeys.
func TestBug15SubDomain(t *testing.T) {
	if u := address(t, "a@example.org").WKDURL(Advanced); !strings.HasPrefix(u, "https://openpgpkey.example.org/.well-known/openpgpkey/example.org/hu/") {
		t.Error(u)
	}
}

// TestBug16PolicyAndL (mailvelope/mailvelope#868): the keyword has a colon, and
// the server answers without ?l=.
func TestBug16PolicyAndL(t *testing.T) {
	w := WKD{Root: t.TempDir(), Method: Direct, Policy: Policy{ProtocolVersion: 5}}
	update(t, w, ring(t, "alice"))
	b, err := os.ReadFile(filepath.Join(w.Root, ".well-known/openpgpkey/policy"))
	if err != nil || string(b) != "protocol-version: 5\n" {
		t.Errorf("policy %q, %v", b, err)
	}
	if r := get(t, Handler(os.DirFS(w.Root)), "GET", "/.well-known/openpgpkey/hu/kei1q4tipxxu1yj79k9kfukdhfy631xe"); r.StatusCode != 200 {
		t.Error(r.Status)
	}
}

// TestBug18VersionsApart: gpg 2.2 imports nothing from a file with keys of
// versions 4 and 6, in either order. The version 4 key is published alone, with
// a word about the other; a version 6 key alone is published.
func TestBug18VersionsApart(t *testing.T) {
	v4 := ring(t, "alice")
	v6 := bytes.Replace(ring(t, "gocrypto-v6-ed25519"), []byte("<v6-ed25519@example.org>"), []byte("<alice@example.org>     "), 1)
	for _, tt := range []struct {
		name     string
		ring     []byte
		mixed    bool
		octets   int
		problems int
	}{
		{"4, 6", append(bytes.Clone(v4), v6...), false, 414, 1},
		{"6, 4", append(bytes.Clone(v6), v4...), false, 414, 1},
		{"6, 4, 6", bytes.Join([][]byte{v6, v4, v6}, nil), false, 414, 1},
		{"6", v6, false, 565, 0},
		{"4, 6 on demand", append(bytes.Clone(v4), v6...), true, 979, 0},
	} {
		o := Options{AllowMixedVersions: tt.mixed}
		c, err := Collect(t.Context(), "example.org", ReadCerts(bytes.NewReader(tt.ring)), o)
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range c.Entries() {
			if err != nil || len(e.Keys) != tt.octets || e.Address.Local != "alice" {
				t.Errorf("%s: %s has %d octets, %v; want %d", tt.name, e.Address, len(e.Keys), err, tt.octets)
			}
		}
		list, n := c.Problems()
		if n != tt.problems || n > 0 && !errors.Is(list[0], ErrMixedVersions) {
			t.Errorf("%s: %v", tt.name, list)
		}
	}
	c6, err := ParseCert(v6)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OPENPGPKEY(address(t, "alice@example.org"), Filter{}, key(t, "alice"), c6); !errors.Is(err, ErrMixedVersions) {
		t.Errorf("record of both: %v", err)
	}
	// The same key twice is one key.
	r, err := OPENPGPKEY(address(t, "alice@example.org"), Filter{}, key(t, "alice"), key(t, "alice"))
	if err != nil || len(r.Data) != 414 {
		t.Errorf("twice the same: %d octets, %v", len(r.Data), err)
	}
	r, err = OPENPGPKEY(address(t, "dup@example.org"), Filter{}, key(t, "dup"), key(t, "dup-2"))
	if err != nil || len(r.Data) != 406+636 {
		t.Errorf("two keys: %d octets, %v", len(r.Data), err)
	}
}
