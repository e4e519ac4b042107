// Command keycheck tells what mail and OpenPGP clients find when they look for
// the key of an address.
//
// From a key ring, before publication: what GnuPG, Sequoia sq and browser
// clients will ask for, what they would get and why they might refuse it.
//
//	keycheck -ring keys.pgp alice@example.org
//
// From a name server and the web, after it: what is found by each mechanism,
// under GnuPG's rules and limits.
//
//	keycheck -dns 9.9.9.9:53 alice@example.org
//
// With -json there is one JSON object a line for each question or mechanism.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"time"

	"signalbox.example/openpgpdns"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

type config struct {
	ring, dns, ca, methods string
	minimal, srv, json     bool
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("keycheck", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var c config
	fs.StringVar(&c.ring, "ring", "", "check the key ring `file`; - is standard input")
	fs.BoolVar(&c.minimal, "minimal", false, "with -ring: as keypublish -minimal publishes")
	fs.StringVar(&c.dns, "dns", "", "locate through the name server `address:port`")
	fs.StringVar(&c.methods, "methods", "wkd,dane,cert,pka", "with -dns: a `list` of mechanisms")
	fs.StringVar(&c.ca, "ca", "", "with -dns: trust the certificate authorities in `file`, not the system's")
	fs.BoolVar(&c.srv, "srv", true, "with -dns: honour _openpgpkey._tcp records as GnuPG does")
	fs.BoolVar(&c.json, "json", false, "print one JSON object a line for each question or mechanism")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: keycheck -ring FILE [-minimal] [-json] ADDRESS\n"+
			"       keycheck -dns SERVER [-methods LIST] [-ca FILE] [-json] ADDRESS\n\n"+
			"Tells what clients find for ADDRESS: in a key ring before it is published, or by\n"+
			"asking as GnuPG does. The status is 0 if a key is found, 1 if not, 2 after an error.\n\n")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "keycheck:", err)
		return 2
	}
	if fs.NArg() != 1 || (c.ring == "") == (c.dns == "") {
		fmt.Fprintln(stderr, "keycheck: one address, and either -ring or -dns; -h explains")
		return 2
	}
	if c.dns != "" {
		if _, _, err := net.SplitHostPort(c.dns); err != nil {
			fmt.Fprintln(stderr, "keycheck: -dns:", err)
			return 2
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	check := c.checkRing
	if c.dns != "" {
		check = c.locate
	}
	if err := check(ctx, fs.Arg(0), stdin, stdout); err != nil {
		fmt.Fprintf(stderr, "keycheck: %v\n", err)
		if errors.Is(err, errNotFound) {
			return 1
		}
		return 2
	}
	return 0
}

// line is what -json prints: about a question that a client asks of what a ring
// would publish, about a mechanism by which a key was looked for, or (with
// nothing but problems) about certificates of the ring that could not be used.
type line struct {
	Client       string   `json:"client,omitempty"`
	Mechanism    string   `json:"mechanism,omitempty"` // wkd, dane, cert, pka
	Asks         string   `json:"asks,omitempty"`      // URL, or owner name and type
	Found        bool     `json:"found"`
	Source       string   `json:"source,omitempty"`       // where the key was found
	Fingerprints []string `json:"fingerprints,omitempty"` // hexadecimal, upper case
	Octets       int      `json:"octets,omitempty"`       // of the answer
	Refused      []string `json:"refused,omitempty"`
	Notes        []string `json:"notes,omitempty"`
	Problems     []string `json:"problems,omitempty"`
	Error        string   `json:"error,omitempty"`
}

func (l *line) print(w io.Writer) error { return json.NewEncoder(w).Encode(l) }

func texts(errs []error) (s []string) {
	for _, err := range errs {
		s = append(s, err.Error())
	}
	return s
}

// interruptible reads from r until ctx is done: a terminal or pipe may wait for ever.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	if f, ok := r.(*os.File); ok {
		if fi, err := f.Stat(); err == nil && fi.Mode().IsRegular() {
			return r
		}
	}
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	return bufio.NewReaderSize(out, 1<<16)
}

var errNotFound = errors.New("no key is found")

func (c *config) checkRing(ctx context.Context, address string, stdin io.Reader, stdout io.Writer) error {
	in := stdin
	if c.ring != "-" {
		f, err := os.Open(c.ring)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	in = interruptible(ctx, in)
	var o openpgpdns.Options
	if c.minimal {
		o.Filter = openpgpdns.Minimal()
	}
	r, err := openpgpdns.Check(ctx, address, openpgpdns.NewReader(in).All(), o)
	if err != nil {
		return err
	}
	found := false
	for _, q := range r.Questions {
		found = found || q.Found()
		if c.json {
			l := line{Client: q.Client, Mechanism: q.Mechanism.String(), Asks: q.Asks, Found: q.Found(), Octets: q.Octets, Refused: q.Refused, Notes: q.Remarks}
			for _, f := range q.Fingerprints {
				l.Fingerprints = append(l.Fingerprints, fmt.Sprintf("%X", f))
			}
			if err := l.print(stdout); err != nil {
				return err
			}
			continue
		}
		verdict := "takes"
		if !q.Found() {
			verdict = "gets nothing"
		}
		fmt.Fprintf(stdout, "%s by %s %s\n  asks %s\n", q.Client, q.Mechanism, verdict, q.Asks)
		if len(q.Fingerprints) > 0 {
			fmt.Fprintf(stdout, "  gets %d octets:", q.Octets)
			for _, f := range q.Fingerprints {
				fmt.Fprintf(stdout, " %X", f)
			}
			fmt.Fprintln(stdout)
		}
		for _, s := range q.Refused {
			fmt.Fprintf(stdout, "  refused: %s\n", s)
		}
		for _, s := range q.Remarks {
			fmt.Fprintf(stdout, "  note: %s\n", s)
		}
	}
	if c.json && len(r.Problems) > 0 {
		if err := (&line{Found: found, Problems: texts(r.Problems)}).print(stdout); err != nil {
			return err
		}
	}
	for _, p := range r.Problems {
		if !c.json {
			fmt.Fprintf(stdout, "problem: %v\n", p)
		}
	}
	if !found {
		return fmt.Errorf("%s: %w", r.Address, errNotFound)
	}
	return nil
}

func (c *config) locate(ctx context.Context, address string, _ io.Reader, stdout io.Writer) error {
	a, err := openpgpdns.ParseAddress(address)
	if err != nil {
		return err
	}
	resolver := &openpgpdns.DNS{Server: c.dns}
	client := openpgpdns.Client{Resolver: resolver, SRV: c.srv}
	if c.ca != "" {
		pem, err := os.ReadFile(c.ca)
		if err != nil {
			return err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("%s: no certificates", c.ca)
		}
		client.HTTP = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
			DialContext: openpgpdns.DialContext(resolver), TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true,
		}}
	}
	mechanisms := map[string]openpgpdns.Mechanism{"wkd": openpgpdns.ByWKD, "dane": openpgpdns.ByDANE, "cert": openpgpdns.ByCERT, "pka": openpgpdns.ByPKA}
	found := false
	for word := range strings.SplitSeq(c.methods, ",") {
		m, ok := mechanisms[word]
		if !ok {
			return fmt.Errorf("-methods %q: there are wkd, dane, cert, pka", word)
		}
		l, err := client.Locate(ctx, a, m)
		if c.json {
			o := line{Mechanism: word, Found: err == nil}
			if err != nil {
				o.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
			} else {
				found = true
				o.Source, o.Problems = l.Source, texts(l.Problems)
				for _, cert := range l.Certs {
					o.Fingerprints = append(o.Fingerprints, fmt.Sprintf("%X", cert.Fingerprint()))
				}
			}
			if err := o.print(stdout); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			fmt.Fprintf(stdout, "%s: %s\n", word, strings.ReplaceAll(err.Error(), "\n", "; "))
			continue
		}
		found = true
		for _, cert := range l.Certs {
			fmt.Fprintf(stdout, "%s: %s from %s\n", word, strings.ToUpper(hex.EncodeToString(cert.Fingerprint())), l.Source)
		}
		for _, p := range l.Problems {
			fmt.Fprintf(stdout, "%s: problem: %v\n", word, p)
		}
	}
	if !found {
		return fmt.Errorf("%s: %w", a, errNotFound)
	}
	return nil
}
