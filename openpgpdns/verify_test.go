package openpgpdns

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// TestVerifyGoodKeys: nothing is reported about any of the valid keys,
// whatever made them, and the filter's result is the same after the check.
func TestVerifyGoodKeys(t *testing.T) {
	f := Minimal()
	f.Now = oracleTime
	for _, n := range names(t, "keys", 27) {
		if testing.Short() && (strings.HasPrefix(n, "huge") || strings.Contains(n, "slhdsa")) {
			continue
		}
		c := key(t, n)
		before, err := f.Append(nil, c)
		if err != nil {
			t.Errorf("%s: %v", n, err)
		}
		for _, err := range c.Verify() {
			t.Errorf("%s: %v", n, err)
		}
		if after, err := f.Append(nil, c); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the result changed: %v", n, err)
		}
	}
}

// TestBug09BadSelfSignature (golang/go#11809): one bad self-signature is
// reported and not published; other keys of the ring are.
func TestBug09BadSelfSignature(t *testing.T) {
	ring := append(data(t, "mutations/bad_selfsig.pgp"), data(t, "keys/bob.pgp")...)
	var published []string
	for c, err := range ReadCerts(bytes.NewReader(ring)) {
		if err != nil {
			t.Fatal(err)
		}
		errs := c.Verify()
		for a := range c.Addresses() {
			published = append(published, a.String())
		}
		if c.Number() == 2 {
			if len(errs) != 0 {
				t.Errorf("bob: %v", errs)
			}
			continue
		}
		if len(errs) != 1 || !errors.Is(errs[0], ErrBadSignature) || !strings.Contains(errs[0].Error(), "alice@example.org") {
			t.Errorf("alice: %v", errs)
		}
		if out, err := (Filter{}).Append(nil, c); !errors.Is(err, ErrNoUserID) || len(out) != 0 {
			t.Errorf("alice: %d octets, %v", len(out), err)
		}
	}
	if got := strings.Join(published, " "); got != "bob@example.org bob.multi@example.org bob@example.net bob+tag@sub.example.org" {
		t.Errorf("published %s", got)
	}
}

// TestVerifyEveryOctet: a change of any octet of a primary key, user ID,
// subkey or hashed signature area is noticed.
func TestVerifyEveryOctet(t *testing.T) {
	for _, n := range []string{"alice", "sam", "gocrypto-v6-ed25519"} {
		good := data(t, "keys/"+n+".pgp")
		c, _ := ParseCert(good)
		missed := 0
		step := uint32(1)
		if testing.Short() {
			step = 9
		}
		for _, p := range c.packets {
			if p.tag == tagSignature {
				continue
			}
			for i := p.body; i < p.end; i += step {
				bad := bytes.Clone(good)
				bad[i] ^= 1
				d, err := ParseCert(bad)
				if err != nil {
					continue
				}
				whole, _ := Everything().Append(nil, d)
				d.Verify()
				if rest, err := Everything().Append(nil, d); err == nil && len(rest) == len(whole) {
					missed++
				}
			}
		}
		if missed > 0 {
			t.Errorf("%s: %d changed octets went unnoticed", n, missed)
		}
	}
}

// TestVerifyMemory: certificates wait to be verified together, but large ones
// not without bound.
func TestVerifyMemory(t *testing.T) {
	// A key with a megabyte of a packet that nobody knows.
	big := append(bytes.Clone(ring(t, "alice")), 0xc0|60, 0xff, 0, 0x10, 0, 0)
	c, err := ParseCert(append(big, make([]byte, 1<<20)...))
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, most := heap(), uint64(0)
	ring := func(yield func(*Cert, error) bool) {
		for i := range 64 {
			if !yield(c, nil) {
				return
			}
			if i%16 == 15 {
				most = max(most, heap())
			}
		}
	}
	k, err := Collect(t.Context(), "example.org", ring, Options{Verify: true, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if k.Certificates() != 64 || k.Len() != 1 {
		t.Errorf("%d certificates, %d addresses", k.Certificates(), k.Len())
	}
	if most > before+24<<20 {
		t.Errorf("%d MiB for certificates of one", (most-before)>>20)
	}
}
