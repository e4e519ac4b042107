package openpgpdns

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Mechanism is a way to find a key.
type Mechanism int

const (
	ByWKD  Mechanism = iota // Web Key Directory
	ByDANE                  // OPENPGPKEY
	ByCERT                  // CERT PGP
	ByPKA                   // CERT IPGP with a URL
)

// String returns wkd, dane, cert or pka, GnuPG's words for --auto-key-locate.
func (m Mechanism) String() string {
	switch m {
	case ByWKD:
		return "wkd"
	case ByDANE:
		return "dane"
	case ByCERT:
		return "cert"
	case ByPKA:
		return "pka"
	}
	return "Mechanism(" + strconv.Itoa(int(m)) + ")"
}

// Client locates keys by mail address, with GnuPG's rules and limits. It may
// be used by several goroutines. It checks no signatures: see [Cert.Verify].
type Client struct {
	// Resolver is needed by every mechanism.
	Resolver Resolver
	// HTTP fetches from Web Key Directories and PKA URLs. nil means a client
	// that resolves through Resolver, with a timeout of 30 seconds. At most
	// three redirects are followed, within one host and scheme, whatever
	// CheckRedirect says. Answers of more than [MaxKeyFile] octets are refused.
	HTTP *http.Client
	// SRV honours _openpgpkey._tcp records as GnuPG does; see [SRVTarget].
	SRV bool
}

// Located is what a [Client] found.
type Located struct {
	Mechanism Mechanism
	// Source is the URL or the owner name that was asked.
	Source string
	// Certs that have a self-signed user ID with the address, no more than
	// [MaxKeysPerAddress].
	Certs []*Cert
	// Problems say what else was in the answer and why it was left out.
	Problems []error
}

// Locate tries the mechanisms in order and returns what the first one that
// finds a key found. Without mechanisms it tries WKD, DANE and CERT. The error
// joins those of all mechanisms. It wraps [ErrNotFound] if at least one of them
// got an answer without a usable key, and [ErrServer] or an error of the network
// if one got no answer: both may be so.
func (c *Client) Locate(ctx context.Context, a Address, mechanisms ...Mechanism) (Located, error) {
	if len(mechanisms) == 0 {
		mechanisms = []Mechanism{ByWKD, ByDANE, ByCERT}
	}
	var errs []error
	for _, m := range mechanisms {
		var l Located
		var err error
		switch m {
		case ByWKD:
			l, err = c.WKD(ctx, a)
		case ByDANE:
			l, err = c.DANE(ctx, a)
		case ByCERT:
			l, err = c.CERT(ctx, a)
		case ByPKA:
			l, err = c.PKA(ctx, a)
		default:
			err = inputError(ErrNotFound, m.String(), "no such mechanism")
		}
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return Located{}, errors.Join(errs...)
}

// WKD asks the Web Key Directory of the address's domain: the advanced method
// if openpgpkey.DOMAIN has an address, and only otherwise the direct one. An
// answer of either is final.
func (c *Client) WKD(ctx context.Context, a Address) (Located, error) {
	url := a.WKDURL(Advanced)
	if _, err := lookupHost(ctx, c.Resolver, Advanced.wkdHost(a.Domain)); errors.Is(err, ErrNotFound) {
		url = a.WKDURL(Direct)
		if c.SRV {
			if url, err = c.srvURL(ctx, a); err != nil {
				return Located{}, err
			}
		}
	} else if err != nil {
		return Located{}, err
	}
	b, err := c.fetch(ctx, url)
	if err != nil {
		return Located{}, err
	}
	return located(ByWKD, url, a, b)
}

func (c *Client) srvURL(ctx context.Context, a Address) (string, error) {
	data, err := c.Resolver.LookupRecords(ctx, "_openpgpkey._tcp."+a.Domain+".", typeSRV)
	if errors.Is(err, ErrNotFound) {
		return a.WKDURL(Direct), nil
	}
	if err != nil {
		return "", err
	}
	var srvs []*net.SRV
	for _, d := range data {
		if len(d) < 7 {
			continue
		}
		srvs = append(srvs, &net.SRV{
			Priority: binary.BigEndian.Uint16(d), Weight: binary.BigEndian.Uint16(d[2:]), Port: binary.BigEndian.Uint16(d[4:]),
			Target: wireName(d[6:]),
		})
	}
	// By priority; among equals at random (RFC 2782, without its weights).
	rand.Shuffle(len(srvs), func(i, j int) { srvs[i], srvs[j] = srvs[j], srvs[i] })
	slices.SortStableFunc(srvs, func(x, y *net.SRV) int { return int(x.Priority) - int(y.Priority) })
	host, port, ok := SRVTarget(a.Domain, srvs)
	if !ok {
		return a.WKDURL(Direct), nil
	}
	if port != 0 && port != 443 {
		host = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	return strings.Replace(a.WKDURL(Direct), "https://"+a.Domain+"/", "https://"+host+"/", 1), nil
}

// wireName writes a wire-form name in presentation form, as far as it is sound.
func wireName(w []byte) string {
	var b strings.Builder
	for len(w) > 0 && w[0] > 0 && int(w[0]) < len(w) {
		b.Write(w[1 : 1+w[0]])
		b.WriteByte('.')
		w = w[1+w[0]:]
	}
	return b.String()
}

// SRVTarget applies GnuPG's rule for the SRV records _openpgpkey._tcp.DOMAIN,
// which drafts of WKD had until 2018 and which GnuPG 2.1.18 and later still
// follow when openpgpkey.DOMAIN does not resolve: the first target that is the
// domain itself or lies within it serves the directory in the direct layout, on
// its port. Targets elsewhere are passed over. srvs must be in the order of
// their priority, as net.LookupSRV returns them.
func SRVTarget(domain string, srvs []*net.SRV) (host string, port uint16, ok bool) {
	for _, s := range srvs {
		t := strings.ToLower(strings.TrimSuffix(s.Target, "."))
		if d, err := DomainToASCII(t); err != nil || d != t {
			continue
		}
		if t == domain || strings.HasSuffix(t, "."+domain) {
			return t, s.Port, true
		}
	}
	return "", 0, false
}

// DANE asks for the OPENPGPKEY record. Of several records only the first is
// looked at, as GnuPG does.
func (c *Client) DANE(ctx context.Context, a Address) (Located, error) {
	name, err := a.DANEName()
	if err != nil {
		return Located{}, err
	}
	data, err := c.Resolver.LookupRecords(ctx, name, TypeOPENPGPKEY)
	if err != nil {
		return Located{}, err
	}
	if len(data) == 0 {
		return Located{}, inputError(ErrNotFound, name, "no OPENPGPKEY record")
	}
	return located(ByDANE, name, a, data[0])
}

// CERT asks for CERT records and takes the first of certificate type PGP.
func (c *Client) CERT(ctx context.Context, a Address) (Located, error) {
	name, err := a.CERTName()
	if err != nil {
		return Located{}, err
	}
	data, err := c.Resolver.LookupRecords(ctx, name, TypeCERT)
	if err != nil {
		return Located{}, err
	}
	for _, d := range data {
		r := Record{Name: name, Type: TypeCERT, Data: d}
		if keys, ok := r.Keys(); ok {
			return located(ByCERT, name, a, keys)
		}
	}
	return Located{}, inputError(ErrNotFound, name, "no CERT record of type PGP")
}

// PKA asks for the CERT IPGP record under _pka and fetches the key from its
// URL, by HTTPS or HTTP. Only a key with the fingerprint of the record is
// returned.
func (c *Client) PKA(ctx context.Context, a Address) (Located, error) {
	name, err := a.PKAName()
	if err != nil {
		return Located{}, err
	}
	data, err := c.Resolver.LookupRecords(ctx, name, TypeCERT)
	if err != nil {
		return Located{}, err
	}
	for _, d := range data {
		fpr, url, ok := Record{Name: name, Type: TypeCERT, Data: d}.IPGP()
		if !ok || url == "" || len(fpr) == 0 {
			continue
		}
		b, err := c.fetch(ctx, url)
		if err != nil {
			return Located{}, err
		}
		l, err := located(ByPKA, url, a, b)
		if err != nil {
			return Located{}, err
		}
		l.Certs = slices.DeleteFunc(l.Certs, func(c *Cert) bool { return !bytes.Equal(c.Fingerprint(), fpr) })
		if len(l.Certs) == 0 {
			return Located{}, inputError(ErrNotFound, url, "no key with the fingerprint of the record")
		}
		return l, nil
	}
	return Located{}, inputError(ErrNotFound, name, "no CERT record of type IPGP with a URL")
}

// located reads the keys of an answer and keeps those of the address.
func located(m Mechanism, source string, a Address, b []byte) (Located, error) {
	l := Located{Mechanism: m, Source: source}
	if len(b) > MaxKeyFile {
		return Located{}, inputError(ErrTooLarge, source, "answer of more than "+strconv.Itoa(MaxKeyFile)+" octets")
	}
	if bytes.HasPrefix(bytes.TrimSpace(b), armorBegin) {
		l.Problems = append(l.Problems, inputError(ErrArmor, source, "armored keys where binary ones belong"))
	}
	for c, err := range NewReader(bytes.NewReader(b)).All() {
		if err == nil && !slices.Contains(slices.Collect(c.Addresses()), a) {
			err = &Error{Certificate: c.Number(), Fingerprint: bytes.Clone(c.Fingerprint()), Err: ErrNoUserID, Input: a.String()}
		}
		if err == nil && len(l.Certs) == MaxKeysPerAddress {
			err = &Error{Certificate: c.Number(), Fingerprint: bytes.Clone(c.Fingerprint()), Err: ErrTooLarge, Input: a.String(), Detail: "more than " + strconv.Itoa(MaxKeysPerAddress) + " keys"}
		}
		if err != nil {
			if len(l.Problems) < maxProblems {
				l.Problems = append(l.Problems, err)
			}
			continue
		}
		l.Certs = append(l.Certs, c.Clone())
	}
	if len(l.Certs) == 0 {
		return Located{}, errors.Join(append([]error{inputError(ErrNotFound, source, "no key for "+a.String())}, l.Problems...)...)
	}
	return l, nil
}

const maxRedirects = 3

// fetch gets a URL of at most MaxKeyFile octets. The error wraps ErrNotFound
// for status 404 and 410, ErrServer for others.
func (c *Client) fetch(ctx context.Context, url string) ([]byte, error) {
	h := http.Client{Timeout: 30 * time.Second}
	if c.HTTP != nil {
		h = *c.HTTP
	} else {
		t := &http.Transport{DialContext: DialContext(c.Resolver), ForceAttemptHTTP2: true, DisableKeepAlives: true}
		h.Transport = t
	}
	h.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects || r.URL.Host != via[0].URL.Host || r.URL.Scheme != via[0].URL.Scheme {
			return inputError(ErrServer, url, "redirect to "+r.URL.Host)
		}
		return nil
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, inputError(ErrServer, url, err.Error())
	}
	if r.URL.Scheme != "https" && r.URL.Scheme != "http" {
		return nil, inputError(ErrServer, url, "not an HTTP URL")
	}
	resp, err := h.Do(r)
	if err != nil {
		return nil, &Error{Input: url, Err: err}
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusGone:
		return nil, inputError(ErrNotFound, url, resp.Status)
	default:
		return nil, inputError(ErrServer, url, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxKeyFile+1))
	if err != nil {
		return nil, &Error{Input: url, Err: err}
	}
	if len(b) > MaxKeyFile {
		return nil, inputError(ErrTooLarge, url, "answer of more than "+strconv.Itoa(MaxKeyFile)+" octets")
	}
	return b, nil
}
