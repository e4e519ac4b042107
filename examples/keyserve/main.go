// Command keyserve serves what keypublish wrote: the Web Key Directory over
// HTTPS and the records over DNS, on the loopback interface, from one folder.
// It is for trying a publication before it goes to real servers.
//
//	keypublish -ring keys.pgp -domain example.org -wkd pub -zone pub/keys.zone
//	keyserve -dir pub -ca ca.pem
//
// The folder is the web root; every *.zone file in it is served. The domains are
// those of the directory and of the records. Each gets a SOA and an address, and
// an address for openpgpkey.DOMAIN if the directory has the advanced layout. The
// certificate authority is made anew at each start.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"

	"signalbox.example/openpgpdns"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

type config struct{ dir, https, dns, ca, domains string }

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("keyserve", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var c config
	fs.StringVar(&c.dir, "dir", "", "`folder` with .well-known/openpgpkey and *.zone files")
	fs.StringVar(&c.https, "https", "127.0.0.1:8443", "loopback `address` for HTTPS")
	fs.StringVar(&c.dns, "dns", "127.0.0.1:8053", "loopback `address` for DNS, UDP and TCP")
	fs.StringVar(&c.ca, "ca", "", "write the certificate of the authority to `file`")
	fs.StringVar(&c.domains, "domain", "", "more domains, a `list`; needed for a directory in the direct layout without records")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: keyserve -dir FOLDER [-https ADDRESS] [-dns ADDRESS] [-ca FILE] [-domain D,...]\n\n"+
			"Serves until it gets an interrupt.\n")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "keyserve:", err)
		return 2
	}
	if c.dir == "" || fs.NArg() > 0 {
		fmt.Fprintln(stderr, "keyserve: -dir is needed, and no other arguments; -h explains")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, c, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "keyserve: %v\n", err)
		return 1
	}
	return 0
}

// serve runs both servers until ctx is done. It reports the addresses on
// stdout when they accept connections.
func serve(ctx context.Context, c config, stdout, stderr io.Writer) error {
	for _, a := range []string{c.https, c.dns} {
		host, _, err := net.SplitHostPort(a)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			return fmt.Errorf("%q: not a loopback address with a port", a)
		}
	}
	zone, domains, err := load(c)
	if err != nil {
		return err
	}
	cert, ca, err := authority(domains)
	if err != nil {
		return err
	}
	if c.ca != "" {
		if err := os.WriteFile(c.ca, ca, 0o644); err != nil {
			return err
		}
	}
	web, err := net.Listen("tcp", c.https)
	if err != nil {
		return err
	}
	defer web.Close()
	tcp, err := net.Listen("tcp", c.dns)
	if err != nil {
		return err
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp", tcp.Addr().String())
	if err != nil {
		return err
	}
	defer udp.Close()

	hs := &http.Server{
		Handler:           openpgpdns.Handler(os.DirFS(c.dir)),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{cert}},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          log.New(stderr, "keyserve: ", 0),
	}
	dnsTCP := &dns.Server{Listener: tcp, Handler: zone}
	dnsUDP := &dns.Server{PacketConn: udp, Handler: zone}
	var wg sync.WaitGroup
	errs := make(chan error, 3)
	start := func(f func() error) { wg.Go(func() { errs <- f() }) }
	var ready sync.WaitGroup
	ready.Add(2)
	dnsTCP.NotifyStartedFunc, dnsUDP.NotifyStartedFunc = ready.Done, ready.Done
	start(func() error { return hs.ServeTLS(web, "", "") })
	start(dnsTCP.ActivateAndServe)
	start(dnsUDP.ActivateAndServe)
	ready.Wait()
	fmt.Fprintf(stdout, "domains %s\nhttps %s\ndns %s\n", strings.Join(domains, " "), web.Addr(), tcp.Addr())
	select {
	case <-ctx.Done():
		err = nil
	case err = <-errs:
	}
	hs.Close()
	dnsTCP.Shutdown()
	dnsUDP.Shutdown()
	wg.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// zone answers from a table of records.
type zone struct {
	domains []string
	records map[string][]dns.RR // by lower-case name
	address net.IP              // of the web server
}

// load reads the zone files and finds the domains.
func load(c config) (*zone, []string, error) {
	z := &zone{records: map[string][]dns.RR{}}
	host, _, _ := net.SplitHostPort(c.https)
	z.address = net.ParseIP(host)
	advanced := map[string]bool{}
	seen := map[string]bool{}
	for d := range strings.SplitSeq(c.domains, ",") {
		if d == "" {
			continue
		}
		a, err := openpgpdns.DomainToASCII(d)
		if err != nil {
			return nil, nil, err
		}
		seen[a] = true
	}
	wkd := filepath.Join(c.dir, ".well-known", "openpgpkey")
	es, err := os.ReadDir(wkd)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, err
	}
	for _, e := range es {
		if _, err := os.Stat(filepath.Join(wkd, e.Name(), "hu")); err == nil && e.Name() != "hu" {
			seen[e.Name()], advanced[e.Name()] = true, true
		}
	}
	files, err := filepath.Glob(filepath.Join(c.dir, "*.zone"))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, nil, err
		}
		p := dns.NewZoneParser(f, ".", name)
		p.SetDefaultTTL(60)
		for rr, ok := p.Next(); ok; rr, ok = p.Next() {
			owner := strings.ToLower(rr.Header().Name)
			z.records[owner] = append(z.records[owner], rr)
			for _, mark := range []string{"._openpgpkey.", "._pka."} {
				if _, d, ok := strings.Cut(owner, mark); ok {
					seen[strings.TrimSuffix(d, ".")] = true
				}
			}
		}
		err = p.Err()
		f.Close()
		if err != nil {
			return nil, nil, err
		}
	}
	for d := range seen {
		z.domains = append(z.domains, d)
		fqdn := d + "."
		z.add(&dns.SOA{Hdr: header(fqdn, dns.TypeSOA), Ns: "ns." + fqdn, Mbox: "hostmaster." + fqdn, Serial: 1, Refresh: 3600, Retry: 600, Expire: 86400, Minttl: 60})
		z.add(&dns.NS{Hdr: header(fqdn, dns.TypeNS), Ns: "ns." + fqdn})
		names := []string{fqdn, "ns." + fqdn}
		if advanced[d] {
			names = append(names, "openpgpkey."+fqdn)
		}
		for _, n := range names {
			if ip4 := z.address.To4(); ip4 != nil {
				z.add(&dns.A{Hdr: header(n, dns.TypeA), A: ip4})
			} else {
				z.add(&dns.AAAA{Hdr: header(n, dns.TypeAAAA), AAAA: z.address})
			}
		}
	}
	slices.Sort(z.domains)
	if len(z.domains) == 0 {
		return nil, nil, fmt.Errorf("%s: neither a Web Key Directory nor *.zone files", c.dir)
	}
	return z, z.domains, nil
}

func header(name string, typ uint16) dns.RR_Header {
	return dns.RR_Header{Name: name, Rrtype: typ, Class: dns.ClassINET, Ttl: 60}
}

// add adds a record that is made up, unless the zone files have it.
func (z *zone) add(rr dns.RR) {
	owner := rr.Header().Name
	for _, have := range z.records[owner] {
		if have.Header().Rrtype == rr.Header().Rrtype {
			return
		}
	}
	z.records[owner] = append(z.records[owner], rr)
}

// ServeDNS answers one question.
func (z *zone) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	m := new(dns.Msg).SetReply(q)
	if len(q.Question) != 1 || q.Opcode != dns.OpcodeQuery {
		w.WriteMsg(m.SetRcode(q, dns.RcodeNotImplemented))
		return
	}
	name, typ := strings.ToLower(q.Question[0].Name), q.Question[0].Qtype
	domain := ""
	for _, d := range z.domains { // the longest that holds the name
		if dns.IsSubDomain(d+".", name) && len(d) > len(domain) {
			domain = d
		}
	}
	if domain == "" {
		w.WriteMsg(m.SetRcode(q, dns.RcodeRefused))
		return
	}
	m.Authoritative = true
	for _, rr := range z.records[name] {
		if t := rr.Header().Rrtype; t == typ || typ == dns.TypeANY {
			m.Answer = append(m.Answer, rr)
		}
	}
	if len(m.Answer) == 0 {
		if !z.exists(name) {
			m.Rcode = dns.RcodeNameError
		}
		for _, rr := range z.records[domain+"."] {
			if rr.Header().Rrtype == dns.TypeSOA {
				m.Ns = append(m.Ns, rr)
			}
		}
	}
	size := dns.MaxMsgSize - 1
	if o := q.IsEdns0(); o != nil {
		m.SetEdns0(1232, o.Do())
	}
	if w.RemoteAddr().Network() == "udp" {
		size = dns.MinMsgSize
		if o := q.IsEdns0(); o != nil {
			size = min(max(int(o.UDPSize()), dns.MinMsgSize), 1232)
		}
	}
	m.Truncate(size)
	w.WriteMsg(m)
}

// exists reports whether a name, or one below it, has records.
func (z *zone) exists(name string) bool {
	if _, ok := z.records[name]; ok {
		return true
	}
	for owner := range z.records {
		if strings.HasSuffix(owner, "."+name) {
			return true
		}
	}
	return false
}

// authority makes a certificate authority and, by it, a certificate for the
// hosts of the domains.
func authority(domains []string) (tls.Certificate, []byte, error) {
	now := time.Now()
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "keyserve " + now.UTC().Format(time.RFC3339)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 30),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "keyserve"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 0, 30),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, d := range domains {
		leaf.DNSNames = append(leaf.DNSNames, d, "openpgpkey."+d, "wkd."+d)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pemCA := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER})
	return tls.Certificate{Certificate: [][]byte{der, caDER}, PrivateKey: key}, pemCA, nil
}
