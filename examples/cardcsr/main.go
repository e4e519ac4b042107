// Command cardcsr makes an X.509 certificate request, or a self-signed
// certificate, for a key on an OpenPGP card, such as an IPsec gateway's:
//
//	cardcsr -subject "CN=gw.example.org,O=Example" -dns gw.example.org >gw.csr
//	cardcsr -slot sign -subject CN=test -self-signed -days 30 -store >test.crt
//
// The key never leaves the card; it is only a crypto.Signer to crypto/x509.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/keycard"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

type options struct {
	reader, slot, out string
	subject           string
	dns, ip, email    string
	selfSigned, store bool
	days              int
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	fs := flag.NewFlagSet("cardcsr", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.reader, "reader", "", opencard.ReaderUsage)
	fs.StringVar(&o.slot, "slot", "auth", "`slot` of the key: auth or sign")
	fs.StringVar(&o.subject, "subject", "", "distinguished `name`, such as CN=gw.example.org,O=Example,C=DE")
	fs.StringVar(&o.dns, "dns", "", "comma-separated host `names`")
	fs.StringVar(&o.ip, "ip", "", "comma-separated IP `addresses`")
	fs.StringVar(&o.email, "email", "", "comma-separated mail `addresses`")
	fs.BoolVar(&o.selfSigned, "self-signed", false, "make a self-signed certificate instead of a request")
	fs.IntVar(&o.days, "days", 365, "validity of the certificate")
	fs.BoolVar(&o.store, "store", false, "put the certificate onto the card too (needs the Admin PIN)")
	fs.StringVar(&o.out, "o", "", "write to this `file`; default standard output")
	var f opencard.Flags
	f.Add(fs, stdin, stderr)
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "usage: cardcsr -subject NAME [flags]\n\nMakes a PEM certificate request or self-signed certificate with a key on a card.\n\nflags:")
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return 0
	}
	var slot keycard.Slot
	var name pkix.Name
	if err == nil {
		switch slot, err = keycard.ParseSlot(o.slot); {
		case err != nil:
		case slot != keycard.SlotAuth && slot != keycard.SlotSign:
			err = fmt.Errorf("the %v key does not sign", slot)
		case fs.NArg() > 0:
			err = errors.New("there are no arguments, only flags")
		case o.store && !o.selfSigned:
			err = errors.New("-store needs -self-signed")
		case o.days < 1 || o.days > 36500:
			err = fmt.Errorf("-days %d", o.days)
		default:
			name, err = parseName(o.subject)
		}
	}
	if err != nil {
		fmt.Fprintln(stderr, "cardcsr:", opencard.Line(err))
		return 2
	}
	if err := request(ctx, &f, o, slot, name, stdout); err != nil {
		fmt.Fprintln(stderr, "cardcsr:", opencard.Line(err))
		return 1
	}
	return 0
}

func request(ctx context.Context, f *opencard.Flags, o options, slot keycard.Slot, name pkix.Name, stdout io.Writer) error {
	var ips []net.IP
	for _, s := range list(o.ip) {
		ip := net.ParseIP(s)
		if ip == nil {
			return fmt.Errorf("%q is no IP address", s)
		}
		ips = append(ips, ip)
	}
	card, err := f.Open(ctx, o.reader)
	if err != nil {
		return err
	}
	defer card.Close()
	key, err := card.Key(ctx, slot, nil)
	if err != nil {
		return err
	}
	key = key.WithContext(ctx)
	kind, der := "CERTIFICATE REQUEST", []byte(nil)
	if o.selfSigned {
		kind = "CERTIFICATE"
		serial, e := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
		if e != nil {
			return e
		}
		pub, e := x509.MarshalPKIXPublicKey(key.Public())
		if e != nil {
			return e
		}
		id := sha1.Sum(pub)
		now := time.Now()
		t := &x509.Certificate{
			SerialNumber: serial, Subject: name, SubjectKeyId: id[:],
			NotBefore: now.Add(-time.Minute), NotAfter: now.AddDate(0, 0, o.days),
			DNSNames: list(o.dns), IPAddresses: ips, EmailAddresses: list(o.email),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
			BasicConstraintsValid: true,
		}
		der, err = x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	} else {
		t := &x509.CertificateRequest{Subject: name, DNSNames: list(o.dns), IPAddresses: ips, EmailAddresses: list(o.email)}
		if der, err = x509.CreateCertificateRequest(rand.Reader, t, key); err == nil {
			// CreateCertificate checks its signature, this one does not.
			var r *x509.CertificateRequest
			if r, err = x509.ParseCertificateRequest(der); err == nil {
				err = r.CheckSignature()
			}
		}
	}
	if err != nil {
		return err
	}
	if o.store {
		if err := card.SetCertificate(ctx, slot, der); err != nil {
			return err
		}
	}
	out, err := opencard.Create(o.out, stdout)
	if err != nil {
		return err
	}
	return out.Finish(pem.Encode(out, &pem.Block{Type: kind, Bytes: der}))
}

// list splits at commas; nothing gives nothing.
func list(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// parseName reads "CN=...,O=...". A backslash takes the meaning from a comma.
func parseName(s string) (pkix.Name, error) {
	var n pkix.Name
	for _, part := range strings.Split(strings.ReplaceAll(s, `\,`, "\x00"), ",") {
		k, v, ok := strings.Cut(part, "=")
		v = strings.TrimSpace(strings.ReplaceAll(v, "\x00", ","))
		if !ok || v == "" {
			return n, fmt.Errorf("-subject %q: want CN=name,O=organisation and so on", s)
		}
		switch strings.ToUpper(strings.TrimSpace(k)) {
		case "CN":
			n.CommonName = v
		case "O":
			n.Organization = append(n.Organization, v)
		case "OU":
			n.OrganizationalUnit = append(n.OrganizationalUnit, v)
		case "C":
			n.Country = append(n.Country, v)
		case "L":
			n.Locality = append(n.Locality, v)
		case "ST":
			n.Province = append(n.Province, v)
		default:
			return n, fmt.Errorf("-subject: no attribute %q (CN, O, OU, C, L, ST)", k)
		}
	}
	return n, nil
}
