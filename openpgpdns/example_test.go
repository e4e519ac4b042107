package openpgpdns_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"signalbox.example/openpgpdns"
)

func open(name string) *os.File {
	f, err := os.Open("testdata/keys/" + name + ".pgp")
	if err != nil {
		panic(err)
	}
	return f
}

func ExampleParseAddress() {
	a, err := openpgpdns.ParseAddress("Joe.Doe@Example.ORG")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.WKDHash())
	fmt.Println(a.WKDURL(openpgpdns.Advanced))
	name, err := a.DANEName()
	fmt.Println(name, err)
	// Output:
	// iy9q119eutrkn8s1mk4r39qejnbu3n5q
	// https://openpgpkey.example.org/.well-known/openpgpkey/example.org/hu/iy9q119eutrkn8s1mk4r39qejnbu3n5q?l=joe.doe
	// a418287638a9d71c1a563a47d37aa26207daeb183f6cf720caaa44df._openpgpkey.example.org. <nil>
}

// Read a ring certificate by certificate; one that cannot be used does not
// end the reading.
func ExampleReader() {
	ring := open("bob")
	defer ring.Close()
	r := openpgpdns.NewReader(ring)
	for {
		cert, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Println(err)
			continue
		}
		addresses := 0
		for range cert.Addresses() {
			addresses++
		}
		fmt.Println(cert.Number(), cert.Offset(), addresses)
	}
	// Output: 1 0 4
}

func ExampleCert() {
	octets, err := os.ReadFile("testdata/keys/bob.pgp")
	if err != nil {
		fmt.Println(err)
		return
	}
	cert, err := openpgpdns.ParseCert(octets)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("version %d, %X, made in %d\n", cert.Version(), cert.Fingerprint(), cert.Created().Year())
	for a := range cert.Addresses() {
		fmt.Println(a, a.WKDHash())
	}
	fmt.Println(len(cert.Verify()), "bad self-signatures")
	// Output:
	// version 4, 537BB0BD887B895D5B7AE0CB6DD152BE93D3F983, made in 2026
	// bob@example.org jycbiujnsxs47xrkethgtj69xuunurok
	// bob.multi@example.org 673ce5xscgktuh963zi473pytdbcmc4z
	// bob@example.net jycbiujnsxs47xrkethgtj69xuunurok
	// bob+tag@sub.example.org 3f4m1zubdt93wwrp3xagb1xknzu9a91x
	// 0 bad self-signatures
}

// Group a ring by the addresses of a domain, then write what is wanted of it.
func ExampleCollection() {
	ring := open("bob")
	defer ring.Close()
	keys, err := openpgpdns.Collect(context.Background(), "example.org", openpgpdns.ReadCerts(ring), openpgpdns.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer keys.Close()
	list, count := keys.Problems()
	fmt.Println(keys.Domain(), keys.Certificates(), keys.Len(), list, count)
	for e, err := range keys.Entries() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d octets, key %.4X...\n", e.Address, len(e.Keys), e.Fingerprints[0])
	}
	// Output:
	// example.org 1 2 [] 0
	// bob@example.org: 1808 octets, key 537BB0BD...
	// bob.multi@example.org: 1814 octets, key 537BB0BD...
}

// The records of one address.
func ExampleEntry() {
	ring := open("alice")
	defer ring.Close()
	keys, err := openpgpdns.Collect(context.Background(), "example.org", openpgpdns.ReadCerts(ring), openpgpdns.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer keys.Close()
	for e, err := range keys.Entries() {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, record := range []func() (openpgpdns.Record, error){
			e.OPENPGPKEY, e.CERTPGP, func() (openpgpdns.Record, error) { return e.CERTIPGP(e.Address.WKDURL(openpgpdns.Direct)) },
		} {
			r, err := record()
			fmt.Println(r.Name, r.Type, len(r.Data), err)
		}
	}
	// Output:
	// 2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db._openpgpkey.example.org. 61 414 <nil>
	// alice.example.org. 37 419 <nil>
	// kei1q4tipxxu1yj79k9kfukdhfy631xe._pka.example.org. 37 112 <nil>
}

func ExampleFilter() {
	ring := open("bob")
	defer ring.Close()
	for cert, err := range openpgpdns.ReadCerts(ring) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		for a := range cert.Addresses() {
			keys, err := openpgpdns.Minimal().For(a).Append(nil, cert)
			fmt.Println(a, len(keys), err)
		}
	}
	// Output:
	// bob@example.org 1808 <nil>
	// bob.multi@example.org 1814 <nil>
	// bob@example.net 1815 <nil>
	// bob+tag@sub.example.org 1804 <nil>
}

func ExampleCERTIPGP() {
	fingerprint, _ := hex.DecodeString("646B0F089DD5022CF5BA29F9F4DFA1D665C135D6")
	a, _ := openpgpdns.ParseAddress("hugh@example.com")
	r, err := openpgpdns.CERTIPGP(a, fingerprint, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s", r.AppendText(nil, openpgpdns.Portable, 0))
	fmt.Printf("%s", r.AppendText(nil, openpgpdns.Generic, 0))
	// Output:
	// w5n1gnooatcyfd9tzicamzk8aqkyfdk8._pka.example.com. IN CERT 6 0 0 FGRrDwid1QIs9bop+fTfodZlwTXW
	// w5n1gnooatcyfd9tzicamzk8aqkyfdk8._pka.example.com. IN TYPE37 \# 26 000600000014646b0f089dd5022cf5ba29f9f4dfa1d665c135d6
}

func ExampleParseRecord() {
	r, err := openpgpdns.ParseRecord("a._openpgpkey.example.org. 3600 IN OPENPGPKEY ( AQID\n\t+w== ) ; four octets")
	fmt.Printf("%s %d %x %v\n", r.Name, r.TTL, r.Data, err)
	_, err = openpgpdns.ParseRecord("a._openpgpkey.example.org. OPENPGPKEY AQID+w=")
	fmt.Println(err)
	// Output:
	// a._openpgpkey.example.org. 3600 010203fb <nil>
	// openpgpdns: "a._openpgpkey.example.org.": bad record: line 1: not complete base64
}

// Publish a ring twice. With a state the second run need not read the files.
func ExampleWKD_Update() {
	dir, err := os.MkdirTemp("", "wkd")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root := filepath.Join(dir, "www") // what the web server serves as /
	w := openpgpdns.WKD{Root: root, Method: openpgpdns.Direct, State: filepath.Join(dir, "state")}
	for range 2 {
		ring := open("alice")
		report, err := w.Update(context.Background(), "example.org", openpgpdns.ReadCerts(ring))
		ring.Close()
		fmt.Println(report.Written, "written,", report.Unchanged, "unchanged,", err)
	}
	server := httptest.NewServer(openpgpdns.Handler(os.DirFS(root)))
	defer server.Close()
	resp, err := http.Get(server.URL + "/.well-known/openpgpkey/hu/kei1q4tipxxu1yj79k9kfukdhfy631xe?l=alice")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.Status, resp.ContentLength, resp.Header.Get("Content-Type"))
	// Output:
	// 1 written, 0 unchanged, <nil>
	// 0 written, 1 unchanged, <nil>
	// 200 OK 414 application/octet-stream
}

// The policy file of a directory whose service takes user IDs that are bare
// addresses only and sends no confirmation mail.
func ExamplePolicy() {
	p := openpgpdns.Policy{MailboxOnly: true, AuthSubmit: true, ProtocolVersion: 5}
	text, err := p.AppendText(nil)
	fmt.Printf("%s%v\n", text, err)
	back, err := openpgpdns.ParsePolicy(strings.NewReader("# ours\nmailbox-only\nx-new: 1\n"))
	fmt.Println(back.MailboxOnly, back.Other, err)
	// Output:
	// mailbox-only
	// auth-submit
	// protocol-version: 5
	// <nil>
	// true [x-new: 1] <nil>
}

func ExampleCheck() {
	ring := open("aerger-upper") // the user ID is Upper Uml <ÄRGER@example.org>
	defer ring.Close()
	result, err := openpgpdns.Check(context.Background(), "ÄRGER@example.org", openpgpdns.ReadCerts(ring), openpgpdns.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, q := range result.Questions {
		if q.Mechanism == openpgpdns.ByWKD {
			fmt.Printf("%s %v %q\n", q.Client, q.Found(), strings.Join(q.Refused, ", "))
		}
	}
	// Output:
	// GnuPG true ""
	// Sequoia sq false "nothing is published there, the key is published under ewd7piirpeasam9iz8or84x4be3xhxqw, where GnuPG asks"
	// browsers false "nothing is published there, the key is published under ewd7piirpeasam9iz8or84x4be3xhxqw, where GnuPG asks"
}

func ExampleClient() {
	// The name server must be one that validates DNSSEC, if that matters.
	client := openpgpdns.Client{Resolver: &openpgpdns.DNS{Server: "127.0.0.1:53"}, SRV: true}
	a, _ := openpgpdns.ParseAddress("alice@example.org")
	found, err := client.Locate(context.Background(), a, openpgpdns.ByWKD, openpgpdns.ByDANE)
	if err != nil {
		return
	}
	for _, cert := range found.Certs {
		fmt.Printf("%X from %s\n", cert.Fingerprint(), found.Source)
	}
}
