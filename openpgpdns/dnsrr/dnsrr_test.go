package dnsrr_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"signalbox.example/openpgpdns"
	"signalbox.example/openpgpdns/dnsrr"
)

func ExampleNew() {
	a, _ := openpgpdns.ParseAddress("hugh@example.com")
	r, _ := openpgpdns.CERTIPGP(a, []byte("twenty octets, right"), "https://example.com/hugh.pgp")
	rr, err := dnsrr.New(r)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.ReplaceAll(rr.String(), "\t", " "))
	// Output: w5n1gnooatcyfd9tzicamzk8aqkyfdk8._pka.example.com. 3600 IN CERT IPGP 0 0 FHR3ZW50eSBvY3RldHMsIHJpZ2h0aHR0cHM6Ly9leGFtcGxlLmNvbS9odWdoLnBncA==
}

// TestRoundTrip packs every record with miekg/dns, unpacks it, and reads the
// text of every form with its parser: all are the same record.
func TestRoundTrip(t *testing.T) {
	for _, r := range []openpgpdns.Record{
		{Name: "a._openpgpkey.example.org.", Type: openpgpdns.TypeOPENPGPKEY, Data: []byte{1, 2, 3, 0xfb}},
		{Name: `b\@x.example.org.`, Type: openpgpdns.TypeOPENPGPKEY, Data: bytes.Repeat([]byte{0xff, 0xef, 0xbe}, 20000), TTL: 0, HasTTL: true},
		{Name: "c.example.org.", Type: openpgpdns.TypeCERT, Data: []byte{0, 3, 0, 0, 0, 0x99}, TTL: 60, HasTTL: true},
		{Name: "d.example.org.", Type: openpgpdns.TypeCERT, Data: []byte{0, 253, 1, 2, 8, 0x99, 0x98}},
	} {
		rr, err := dnsrr.New(r)
		if err != nil {
			t.Fatal(err)
		}
		want := r
		if !r.HasTTL {
			want.TTL, want.HasTTL = dnsrr.DefaultTTL, true
		}
		wire := make([]byte, 70000)
		n, err := dns.PackRR(rr, wire, 0, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		back, _, err := dns.UnpackRR(wire[:n], 0)
		if err != nil {
			t.Fatal(err)
		}
		check(t, "wire", back, want)
		if !bytes.HasSuffix(wire[:n], r.Data) {
			t.Errorf("%s: the RDATA on the wire is not that of the record", r.Name)
		}
		for _, f := range []openpgpdns.Form{openpgpdns.Portable, openpgpdns.Mnemonic, openpgpdns.Generic, openpgpdns.GPG} {
			for _, width := range []int{0, -1, 10} {
				z := dns.NewZoneParser(strings.NewReader(string(r.AppendText(nil, f, width))), ".", "")
				z.SetDefaultTTL(want.TTL)
				rr, ok := z.Next()
				if !ok {
					t.Errorf("%s %v: %v", r.Name, f, z.Err())
					continue
				}
				check(t, f.String(), rr, want)
			}
		}
	}
}

func check(t *testing.T, what string, rr dns.RR, want openpgpdns.Record) {
	t.Helper()
	got, err := dnsrr.Record(rr)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	} else if got.Name != want.Name || got.TTL != want.TTL || got.Type != want.Type || !bytes.Equal(got.Data, want.Data) {
		t.Errorf("%s: got %.100v, want %.100v", what, got, want)
	}
}

// TestBug17MiekgAcceptsRubbish (miekg/dns v1.1.73): records that its parser
// takes and that cannot be packed, or hold nothing, are refused here.
func TestBug17MiekgAcceptsRubbish(t *testing.T) {
	for _, s := range []string{
		"a.example. IN OPENPGPKEY AQI",
		"a.example. IN OPENPGPKEY zzzz$",
		"a.example. IN OPENPGPKEY",
		"a.example. IN CERT 3 0 0",
	} {
		if rr, err := dns.NewRR(s); err == nil && rr != nil {
			if _, err := dnsrr.Record(rr); err == nil {
				t.Errorf("%q: accepted", s)
			}
		}
		if r, err := openpgpdns.ParseRecord(s); err == nil {
			t.Errorf("%q: parsed as %v", s, r)
		}
	}
	if _, err := dnsrr.New(openpgpdns.Record{Name: "a.", Type: openpgpdns.TypeOPENPGPKEY}); !errors.Is(err, openpgpdns.ErrRecord) {
		t.Errorf("empty record: %v", err)
	}
	rr, _ := dns.NewRR("a.example. IN A 192.0.2.1")
	if _, err := dnsrr.Record(rr); !errors.Is(err, openpgpdns.ErrRecord) {
		t.Errorf("A record: %v", err)
	}
}
