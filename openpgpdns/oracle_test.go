package openpgpdns

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"signalbox.example/internal/need"
	"signalbox.example/internal/vectors"
)

// oracleTime lies after the expiry of every expired key of the data and
// before that of every other.
var oracleTime = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// dataDir is the folder of all test data or, where that is absent, the part of
// it that lies in testdata.
func dataDir(t testing.TB) (dir string, whole bool) {
	t.Helper()
	dir = filepath.Join(vectors.Dir(), "openpgpdns")
	if _, err := os.Stat(dir); err != nil && !need.Required(vectors.Feature) {
		return "testdata", false
	}
	return vectors.Path(t, "openpgpdns"), true
}

func data(t testing.TB, name string) []byte {
	t.Helper()
	dir, whole := dataDir(t)
	b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		if !whole {
			t.Skipf("%s is only among the whole test data", name)
		}
		t.Fatal(err)
	}
	return b
}

func key(t testing.TB, name string) *Cert {
	t.Helper()
	c, err := ParseCert(data(t, "keys/"+name+".pgp"))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return c
}

func address(t testing.TB, s string) Address {
	t.Helper()
	a, err := ParseAddress(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// names lists the files of a folder of the test data, without extensions. Of
// the whole data there must be want.
func names(t testing.TB, folder string, want int) []string {
	t.Helper()
	dir, whole := dataDir(t)
	es, err := os.ReadDir(filepath.Join(dir, filepath.FromSlash(folder)))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())))
	}
	if whole && len(out) != want {
		t.Errorf("%s: %d files, not %d", folder, len(out), want)
	}
	return out
}

// TestOracleExportMinimal: the octets of gpg --export-options export-minimal.
func TestOracleExportMinimal(t *testing.T) {
	f := Minimal()
	f.Now = oracleTime
	for _, n := range names(t, "oracle/gpg-export-minimal", 20) {
		got, err := f.Append(nil, key(t, n))
		if err != nil {
			t.Errorf("%s: %v", n, err)
			continue
		}
		if want := data(t, "oracle/gpg-export-minimal/"+n+".pgp"); !bytes.Equal(got, want) {
			t.Errorf("%s: %d octets, gpg has %d", n, len(got), len(want))
		}
	}
}

// TestOracleExportText: the text of gpg --export-options export-dane and
// export-pka, character by character.
func TestOracleExportText(t *testing.T) {
	f := Minimal()
	f.Now = oracleTime
	for _, n := range names(t, "oracle/gpg-export-dane", 20) {
		got, err := AppendExportDANE(nil, f, key(t, n))
		if err != nil {
			t.Errorf("%s: %v", n, err)
		}
		if want := data(t, "oracle/gpg-export-dane/"+n+".zone"); !bytes.Equal(got, want) {
			t.Errorf("%s: got\n%s\ngpg has\n%s", n, got, want)
		}
	}
	for _, n := range names(t, "oracle/gpg-export-pka", 20) {
		got := AppendExportPKA(nil, key(t, n))
		if want := data(t, "oracle/gpg-export-pka/"+n+".zone"); !bytes.Equal(got, want) {
			t.Errorf("%s: got\n%s\ngpg has\n%s", n, got, want)
		}
	}
}

// wksAddresses are those for which gpg-wks-client wrote the oracle's files,
// with the key files that hold them.
var wksAddresses = map[string]string{
	"bob@example.net": "bob", "bob@example.org": "bob", "bob.multi@example.org": "bob",
	"phil@example.org": "phil", "carol.upper@example.org": "carol.upper", "erin@example.org": "erin",
	"jörg@example.org": "joerg", "alice@example.org": "alice", "ursula@example.org": "ursula",
	"rita@example.org": "rita", "dup@example.org": "dup", "ursula.old@example.org": "ursula",
	"thea@example.org": "thea",
}

// TestOracleWKSClient: the files of gpg-wks-client --install-key.
func TestOracleWKSClient(t *testing.T) {
	f := Minimal()
	f.Now = oracleTime
	seen := 0
	for addr, file := range wksAddresses {
		a := address(t, addr)
		want := data(t, "oracle/gpg-wks-client/"+a.Domain+"/hu/"+a.WKDHash())
		if got, err := f.For(a).Append(nil, key(t, file)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d octets, %v; gpg-wks-client has %d", addr, len(got), err, len(want))
		}
		seen++
	}
	if n := len(names(t, "oracle/gpg-wks-client/example.org/hu", 12)) + len(names(t, "oracle/gpg-wks-client/example.net/hu", 1)); n != seen {
		t.Errorf("%d oracle files, %d compared", n, seen)
	}
}

func TestOracleHashes(t *testing.T) {
	n := 0
	for l := range strings.Lines(string(data(t, "hash-vectors.tsv"))) {
		if l[0] == '#' {
			continue
		}
		f := strings.Split(strings.TrimSpace(l), "\t")
		addr, wkd, dane, strict := f[0], f[1], f[3], f[4]
		a, err := ParseAddress(addr)
		if wkd == "REJECT" {
			if err == nil {
				t.Errorf("%q: gpg refuses it, got %v", addr, a)
			}
			continue
		}
		n++
		if err != nil {
			t.Errorf("%q: %v", addr, err)
			continue
		}
		if got := a.WKDHash(); got != wkd {
			t.Errorf("%q: WKD hash %s, want %s", addr, got, wkd)
		}
		if got := a.DANELabel(); got != dane {
			t.Errorf("%q: DANE label %s, want %s", addr, got, dane)
		}
		local, _, _ := strings.Cut(addr, "@")
		got, err := StrictDANELabel(local)
		if err != nil {
			t.Errorf("%q: %v", addr, err)
		}
		// The decomposed spelling is the one for which NFC, which RFC 7929 asks
		// for, gives another label than the table, which did not normalise.
		if strings.Contains(addr, "o\u0308") {
			strict = "12c433a0914cf916178d99b922892cd3280438b675c139c3807325e8"
		}
		if got != strict {
			t.Errorf("%q: strict label %s, want %s", addr, got, strict)
		}
	}
	if n < 15 {
		t.Errorf("only %d addresses compared", n)
	}
}
