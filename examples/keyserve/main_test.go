package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"signalbox.example/openpgpdns"
)

// ring is two certificates: bob@example.org and bob@example.net, and
// carol@example.org. Made for this project.
//
//go:embed testdata/ring.asc
var ring string

func TestCommandLine(t *testing.T) {
	empty := t.TempDir()
	for _, tt := range []struct {
		args   string
		status int
		stderr string
	}{
		{"-h", 0, "usage: keyserve"},
		{"", 2, "keyserve: -dir is needed"},
		{"-x", 2, "not defined"},
		{"-dir " + empty, 1, "neither a Web Key Directory nor *.zone files"},
		{"-dir " + empty + " -https 192.0.2.1:443", 1, "not a loopback address"},
		{"-dir " + empty + " -dns localhost:53", 1, "not a loopback address"},
	} {
		var out, errs bytes.Buffer
		if status := run(strings.Fields(tt.args), nil, &out, &errs); status != tt.status || !strings.Contains(out.String()+errs.String(), tt.stderr) {
			t.Errorf("%s: status %d, want %d: %s", tt.args, status, tt.status, errs.String())
		}
	}
}

// TestServe publishes the ring, serves it, and finds the keys by every
// mechanism through the servers.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	o := openpgpdns.Options{Filter: openpgpdns.Minimal()}
	keys, err := openpgpdns.Collect(t.Context(), "example.org", openpgpdns.ReadCerts(strings.NewReader(ring)), o)
	if err != nil {
		t.Fatal(err)
	}
	defer keys.Close()
	if _, err := (openpgpdns.WKD{Root: dir}).Write(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	var zone []byte
	for e, err := range keys.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		dane, err1 := e.OPENPGPKEY()
		cert, err2 := e.CERTPGP()
		pka, err3 := e.CERTIPGP(e.Address.WKDURL(openpgpdns.Advanced))
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		for i, r := range []openpgpdns.Record{dane, cert, pka} {
			zone = r.AppendText(zone, openpgpdns.Form(i), 0) // one form each
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "keys.zone"), zone, 0o644); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, "ca.pem")
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- serve(ctx, config{dir: dir, https: "127.0.0.1:0", dns: "127.0.0.1:0", ca: ca}, in, io.Discard)
		in.Close()
	}()
	b := make([]byte, 4096)
	n, err := io.ReadAtLeast(out, b, 1)
	if err != nil {
		t.Fatal(err, <-done)
	}
	lines := strings.Fields(string(b[:n])) // domains D https A dns A
	if len(lines) != 6 || lines[1] != "example.org" {
		t.Fatalf("%q", b[:n])
	}
	https, dns := lines[3], lines[5]
	pem, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	resolver := &openpgpdns.DNS{Server: dns, Timeout: 30 * time.Second}
	dial := openpgpdns.DialContext(resolver)
	_, port, _ := net.SplitHostPort(https)
	client := openpgpdns.Client{Resolver: resolver, HTTP: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(addr)
			return dial(ctx, network, net.JoinHostPort(host, port)) // the test has another port
		},
		DisableKeepAlives: true,
	}}}
	for _, address := range []string{"bob@example.org", "carol@example.org"} {
		a, err := openpgpdns.ParseAddress(address)
		if err != nil {
			t.Fatal(err)
		}
		var octets int
		for _, m := range []openpgpdns.Mechanism{openpgpdns.ByWKD, openpgpdns.ByDANE, openpgpdns.ByCERT, openpgpdns.ByPKA} {
			l, err := client.Locate(t.Context(), a, m)
			if err != nil || len(l.Certs) != 1 {
				t.Errorf("%s by %v: %d, %v", address, m, len(l.Certs), err)
				continue
			}
			if k := len(l.Certs[0].Bytes()); octets != 0 && k != octets {
				t.Errorf("%s by %v: %d octets, not %d", address, m, k, octets)
			} else {
				octets = k
			}
		}
	}
	const ns = 2
	if _, err := resolver.LookupRecords(t.Context(), "example.org.", ns); err != nil {
		t.Error(err)
	}
	if _, err := resolver.LookupRecords(t.Context(), "nobody.example.org.", openpgpdns.TypeCERT); !errors.Is(err, openpgpdns.ErrNotFound) {
		t.Error(err)
	}
	if _, err := resolver.LookupRecords(t.Context(), "example.com.", openpgpdns.TypeCERT); !errors.Is(err, openpgpdns.ErrServer) {
		t.Error(err)
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("does not stop")
	}
}
