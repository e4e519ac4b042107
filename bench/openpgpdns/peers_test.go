package openpgpdns

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	openpgpv1 "github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgpv2 "github.com/ProtonMail/go-crypto/openpgp/v2"

	"signalbox.example/openpgpdns"
)

// makeRing makes n certificates of Ed25519 and X25519 keys in the version 4
// format, as go-crypto generates them; every fourth has a second user ID in
// another domain. The addresses are u0@example.org, u1@example.org, ...
func makeRing(tb testing.TB, n int) []byte {
	tb.Helper()
	parts := make([][]byte, n)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for w := range 2 {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += 2 {
				parts[i], errs[w] = makeCert(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return slices.Concat(parts...)
}

func makeCert(i int) ([]byte, error) {
	cfg := &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA, Time: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }}
	e, err := openpgpv2.NewEntity("Test", "", fmt.Sprintf("u%d@example.org", i), cfg)
	if err != nil {
		return nil, err
	}
	if i%4 == 0 {
		if err := e.AddUserId("Test", "", fmt.Sprintf("u%d@example.net", i), cfg); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	err = e.Serialize(&b)
	return b.Bytes(), err
}

// An adapter reads a ring and writes, for each certificate with an address in
// the domain, what is published for that address.
type adapter struct {
	name   string
	filter func(ring []byte, domain string, publish func(address func() string, keys []byte)) error
}

var adapters = []adapter{{"signalbox", filterOurs}, {"go-crypto-v1", filterV1}, {"go-crypto-v2", filterV2}}

func filterOurs(ring []byte, domain string, publish func(func() string, []byte)) error {
	r := openpgpdns.NewReader(bytes.NewReader(ring))
	var out []byte
	for {
		c, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for a := range c.Addresses() {
			if a.Domain != domain {
				continue
			}
			if out, err = (openpgpdns.Filter{}).For(a).Append(out[:0], c); err != nil {
				return err
			}
			publish(a.String, out)
		}
	}
}

func filterV1(ring []byte, domain string, publish func(func() string, []byte)) error {
	es, err := openpgpv1.ReadKeyRing(bytes.NewReader(ring))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, e := range es {
		all := e.Identities
		for name, id := range all {
			if !strings.HasSuffix(id.UserId.Email, "@"+domain) {
				continue
			}
			one := *e
			one.Identities = map[string]*openpgpv1.Identity{name: id}
			out.Reset()
			if err := one.Serialize(&out); err != nil {
				return err
			}
			publish(func() string { return id.UserId.Email }, out.Bytes())
		}
	}
	return nil
}

func filterV2(ring []byte, domain string, publish func(func() string, []byte)) error {
	es, err := openpgpv2.ReadKeyRing(bytes.NewReader(ring))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	for _, e := range es {
		all := e.Identities
		for name, id := range all {
			if !strings.HasSuffix(id.UserId.Email, "@"+domain) {
				continue
			}
			one := *e
			one.Identities = map[string]*openpgpv2.Identity{name: id}
			out.Reset()
			if err := one.Serialize(&out); err != nil {
				return err
			}
			publish(func() string { return id.UserId.Email }, out.Bytes())
		}
	}
	return nil
}

// TestAdaptersAgree: on keys that go-crypto itself has made, whose headers it
// writes again as they were, all three publish the same octets.
func TestAdaptersAgree(t *testing.T) {
	ring := makeRing(t, 40)
	want := map[string]string{}
	for _, a := range adapters {
		got := map[string]string{}
		err := a.filter(ring, "example.org", func(address func() string, keys []byte) { got[address()] = string(keys) })
		if err != nil {
			t.Fatalf("%s: %v", a.name, err)
		}
		if len(got) != 40 {
			t.Errorf("%s: %d addresses", a.name, len(got))
		}
		if len(want) == 0 {
			want = got
		}
		for address := range want {
			if got[address] != want[address] {
				t.Errorf("%s: %s has %d octets, want %d", a.name, address, len(got[address]), len(want[address]))
			}
		}
	}
}

// cpuTime reports the processor time of this process per operation, which says
// more than wall time on a machine that others use too.
func cpuTime(b *testing.B) func() {
	used := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start := used()
	return func() { b.ReportMetric(float64(used()-start)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkFilter: parse a ring of 1,000 certificates and make the publication
// of each address.
func BenchmarkFilter(b *testing.B) {
	ring := makeRing(b, 1000)
	for _, a := range adapters {
		b.Run("impl="+a.name, func(b *testing.B) {
			b.SetBytes(int64(len(ring)))
			b.ReportAllocs()
			defer cpuTime(b)()
			for b.Loop() {
				n := 0
				if err := a.filter(ring, "example.org", func(func() string, []byte) { n++ }); err != nil || n != 1000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// BenchmarkVerify: check the self-signatures of 200 certificates; go-crypto v2
// does it when asked per user ID and subkey.
func BenchmarkVerify(b *testing.B) {
	ring := makeRing(b, 200)
	b.Run("impl=signalbox", func(b *testing.B) {
		defer cpuTime(b)()
		for b.Loop() {
			for c, err := range openpgpdns.NewReader(bytes.NewReader(ring)).All() {
				if err != nil {
					b.Fatal(err)
				}
				if errs := c.Verify(); len(errs) > 0 {
					b.Fatal(errs[0])
				}
			}
		}
	})
	b.Run("impl=go-crypto-v2", func(b *testing.B) {
		now := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
		defer cpuTime(b)()
		for b.Loop() {
			es, err := openpgpv2.ReadKeyRing(bytes.NewReader(ring))
			if err != nil {
				b.Fatal(err)
			}
			for _, e := range es {
				for _, id := range e.Identities {
					if _, err := id.Verify(now, nil); err != nil {
						b.Fatal(err)
					}
				}
				for i := range e.Subkeys {
					if _, err := e.Subkeys[i].Verify(now, nil); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
	})
}
