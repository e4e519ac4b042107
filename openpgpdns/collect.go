package openpgpdns

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"iter"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
)

// What clients accept, and thus the defaults and warnings of this package.
const (
	// MaxKeyFile is the size in octets up to which GnuPG reads a WKD answer.
	MaxKeyFile = 256 << 10
	// MaxKeysPerAddress is the number of keys that GnuPG 2.3 and later take
	// from one answer.
	MaxKeysPerAddress = 5
)

// maxWaiting is about how many octets wait to be verified together.
const maxWaiting = 8 << 20

// maxProblems bounds the list of problems of one run.
const maxProblems = 1000

// Options steer [Collect] and [WKD.Update]. The zero value works.
type Options struct {
	// Filter selects the packets; its Address is set per address. Its zero
	// Now is replaced by the start of the run, so that one run has one time.
	Filter Filter
	// Verify checks all self-signatures first; see [Cert.Verify].
	Verify bool
	// AllowMixedVersions publishes keys of version 6 behind those of version 4
	// for the same address. By default the version 6 keys are left out there,
	// because GnuPG 2.2 would import none of them.
	AllowMixedVersions bool
	// MaxKeyFile is the largest set of keys for one address in octets; 0 means
	// the constant [MaxKeyFile]. Larger ones are a problem and not published.
	MaxKeyFile int
	// Workers is the number of goroutines that verify and write; 0 means
	// GOMAXPROCS.
	Workers int
}

func (o *Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// Collection holds the keys of one domain, grouped by address and filtered. It
// keeps an index in memory and key octets beyond the first few megabytes in a
// temporary file, so a ring of any size can be collected. Its methods but Close
// may be called by several goroutines.
type Collection struct {
	domain   string
	index    map[[20]byte]int32 // by SHA-1 of the local part
	slots    list[slot]
	parts    list[part]
	spool    spool
	maxFile  int
	mixed    bool
	certs    int
	problems problems
	broken   int                          // certificates that could not be read
	isNew    func(slot int, sum [20]byte) // or nil
}

// slot is one address, in the order in which addresses came up.
type slot struct {
	sum         [20]byte // SHA-1 of the local part
	first, last int32    // parts, -1: none
}

// part is what one certificate adds to an address. Its place in the spool holds
// the fingerprint, the strict label if it differs, the local part, the octets.
type part struct {
	off     int64
	size    uint32 // of all of it
	next    int32  // -1: none
	meta    uint16 // octets before those of the key
	version uint8
}

type problems struct {
	list  []error
	count int
}

func (p *problems) add(err error) {
	p.count++
	if len(p.list) < maxProblems {
		p.list = append(p.list, err)
	}
}

// Collect reads certs and keeps, for every address in the domain, the octets
// to publish. What cannot be used is a problem (see [Collection.Problems]) and
// does not stop the run: certificates with errors, bad self-signatures, keys
// left out. Secret keys (the error wraps [ErrSecretKey]), errors of the context
// and of the temporary file do: then the result is nil. Call Close in the end.
func Collect(ctx context.Context, domain string, certs iter.Seq2[*Cert, error], o Options) (*Collection, error) {
	return collect(ctx, domain, certs, o, nil)
}

// collect calls isNew, unless nil, for each new address.
func collect(ctx context.Context, domain string, certs iter.Seq2[*Cert, error], o Options, isNew func(slot int, sum [20]byte)) (*Collection, error) {
	d, err := DomainToASCII(domain)
	if err != nil {
		return nil, err
	}
	o.Filter.Now = timeOf(o.Filter.now())
	c := &Collection{domain: d, index: map[[20]byte]int32{}, maxFile: o.MaxKeyFile, mixed: o.AllowMixedVersions, isNew: isNew}
	if c.maxFile <= 0 {
		c.maxFile = MaxKeyFile
	}
	var batch []*Cert
	var waiting int // octets of the batch
	var buf []byte
	flush := func() error {
		verifyAll(batch, o.workers(), &c.problems)
		for _, cert := range batch {
			if buf, err = c.add(cert, o.Filter, buf); err != nil {
				return err
			}
		}
		clear(batch)
		batch, waiting = batch[:0], 0
		return nil
	}
	err = func() error {
		for cert, err := range certs {
			if e := ctx.Err(); e != nil {
				return e
			}
			if errors.Is(err, ErrSecretKey) {
				return err
			}
			if err != nil {
				c.broken++
				c.problems.add(err)
				continue
			}
			c.certs++
			if !o.Verify {
				if buf, err = c.add(cert, o.Filter, buf); err != nil {
					return err
				}
				continue
			}
			batch = append(batch, cert.Clone())
			if waiting += len(cert.data); len(batch) == 64*o.workers() || waiting >= maxWaiting {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		if err := flush(); err != nil {
			return err
		}
		return c.spool.flush()
	}()
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// verifyAll verifies certificates in parallel and reports in their order.
func verifyAll(certs []*Cert, workers int, p *problems) {
	if len(certs) == 0 {
		return
	}
	errs := make([][]error, len(certs))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(certs); i += workers {
				errs[i] = certs[i].Verify()
			}
		})
	}
	wg.Wait()
	for _, es := range errs {
		for _, err := range es {
			p.add(err)
		}
	}
}

// add files a certificate under its addresses in the domain. buf is scratch.
func (c *Collection) add(cert *Cert, f Filter, buf []byte) ([]byte, error) {
	var room [8]Address
	seen := room[:0]
	for i := 1; i < len(cert.packets); {
		end := cert.group(i)
		at := i
		i = end
		if cert.packets[at].tag != tagUserID {
			continue
		}
		local, ok := cert.localIn(at, c.domain)
		if !ok || cert.certState(at, end).sig < 0 {
			continue
		}
		a := Address{Local: lowerASCII(local), Domain: c.domain}
		if contains(seen, a) {
			continue
		}
		seen = append(seen, a)
		if len(a.Local) > 255 {
			c.problems.add(&Error{Certificate: cert.number, Fingerprint: bytes.Clone(cert.Fingerprint()), Err: ErrTooLarge, Input: a.Local, Detail: "local part of more than 255 octets"})
			continue
		}
		buf = append(append(buf[:0], cert.fprLen), cert.Fingerprint()...)
		if label, differs := strictLabel(local, a); differs {
			buf = append(buf, 28)
			buf, _ = hex.AppendDecode(buf, []byte(label))
		} else {
			buf = append(buf, 0)
		}
		buf = append(append(buf, byte(len(a.Local))), a.Local...)
		meta := len(buf)
		var err error
		if buf, err = f.For(a).Append(buf, cert); errors.Is(err, ErrNoUserID) {
			continue // revoked, and revoked user IDs are not wanted
		} else if err != nil {
			return buf, err
		}
		if len(buf)-meta > c.maxFile {
			c.problems.add(&Error{Certificate: cert.number, Fingerprint: bytes.Clone(cert.Fingerprint()), Err: ErrTooLarge, Input: a.String(),
				Detail: strconv.Itoa(len(buf)-meta) + " octets, clients read " + strconv.Itoa(c.maxFile)})
			continue
		}
		off, err := c.spool.add(buf)
		if err != nil {
			return buf, err
		}
		c.file(a, part{off: off, size: uint32(len(buf)), next: -1, meta: uint16(meta), version: cert.version})
	}
	return buf, nil
}

// localIn returns the raw local part of a user ID with an address in the domain.
func (c *Cert) localIn(i int, domain string) (local []byte, ok bool) {
	local, d, ok := mailbox(c.body(&c.packets[i]))
	if !ok {
		return nil, false
	}
	if isASCII(d) {
		return local, equalLower(d, domain)
	}
	a, err := DomainToASCII(string(d))
	return local, err == nil && a == domain
}

// file adds a part to its address.
func (c *Collection) file(a Address, p part) {
	sum := sha1.Sum([]byte(a.Local))
	i, known := c.index[sum]
	if !known {
		i = c.slots.add(slot{sum: sum, first: -1, last: -1})
		c.index[sum] = i
		if c.isNew != nil {
			c.isNew(int(i), sum)
		}
	}
	s := c.slots.at(int(i))
	// What is there that would be published together with p.
	octets, keys := int(p.size)-int(p.meta), 1
	for n := s.first; n >= 0; n = c.parts.at(int(n)).next {
		if q := c.parts.at(int(n)); c.mixed || q.version == p.version {
			octets += int(q.size) - int(q.meta)
			keys++
		}
	}
	if octets > c.maxFile {
		c.problems.add(inputError(ErrTooLarge, a.String(), "one more key makes "+strconv.Itoa(octets)+" octets, clients read "+strconv.Itoa(c.maxFile)))
		return
	}
	if keys == MaxKeysPerAddress+1 {
		c.problems.add(inputError(ErrTooLarge, a.String(), "GnuPG takes no more than 5 keys; more are published"))
	}
	wasMixed := c.isMixed(s)
	n := c.parts.add(p)
	if s.last < 0 {
		s.first = n
	} else {
		c.parts.at(int(s.last)).next = n
	}
	s.last = n
	if !c.mixed && !wasMixed && c.isMixed(s) {
		c.problems.add(inputError(ErrMixedVersions, a.String(), "those of version 6 are left out"))
	}
}

// isMixed reports whether an address has keys of both versions.
func (c *Collection) isMixed(s *slot) bool {
	var v4, v6 bool
	for n := s.first; n >= 0; n = c.parts.at(int(n)).next {
		v4, v6 = v4 || c.parts.at(int(n)).version == 4, v6 || c.parts.at(int(n)).version == 6
	}
	return v4 && v6
}

// Domain is the domain of the collection, in A-label form.
func (c *Collection) Domain() string { return c.domain }

// Len is the number of addresses.
func (c *Collection) Len() int { return c.slots.n }

// Certificates is the number of certificates that were read without an error,
// whether or not they have an address in the domain.
func (c *Collection) Certificates() int { return c.certs }

// Problems lists what was left out and why, the first 1000 of count.
func (c *Collection) Problems() (list []error, count int) {
	return c.problems.list, c.problems.count
}

// Close removes the temporary file. Entries stay valid.
func (c *Collection) Close() error { return c.spool.close() }

// Entry is what is published for one address. Its slices must not be changed;
// the records that its methods make share Keys.
type Entry struct {
	Address Address
	// Keys are the filtered octets of all keys, one after the other.
	Keys []byte
	// Fingerprints of these keys.
	Fingerprints [][]byte
	// StrictLabel is the label of the address by the letter of RFC 7929, as
	// [StrictDANELabel] makes it, if it differs from Address.DANELabel(), or "".
	StrictLabel string
}

// Entries yields the addresses in the order in which they came up in the ring,
// with their keys in the order of the ring, copies of the same octets once. An
// error comes from the temporary file.
func (c *Collection) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for i := range c.slots.n {
			e, _, err := c.entry(i, nil, false)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// entry reads the i-th address. buf is scratch that e may share, as it may
// share the memory of the spool; the grown scratch is returned. e has only its
// Keys if they are all that is wanted.
func (c *Collection) entry(i int, buf []byte, onlyKeys bool) (e Entry, scratch []byte, err error) {
	s := c.slots.at(int(i))
	e.Address.Domain = c.domain
	buf = buf[:0]
	var room [4][2]int
	spans := room[:0] // of the keys in buf
	without6 := !c.mixed && s.first != s.last && c.isMixed(s)
	for n := s.first; n >= 0; n = c.parts.at(int(n)).next {
		p := c.parts.at(int(n))
		if p.version == 6 && without6 {
			continue
		}
		var d []byte
		if d, buf, err = c.spool.view(p.off, int(p.size), buf); err != nil {
			return Entry{}, buf, err
		}
		var fpr, strict, local []byte
		fpr, d = d[1:1+d[0]], d[1+d[0]:]
		strict, d = d[1:1+d[0]], d[1+d[0]:]
		local, d = d[1:1+d[0]], d[1+d[0]:]
		if !onlyKeys {
			if len(strict) > 0 && e.StrictLabel == "" {
				e.StrictLabel = hex.EncodeToString(strict)
			}
			if e.Address.Local == "" {
				e.Address.Local = string(local)
			}
		}
		if n == s.first && p.next < 0 {
			// One key, the usual case: its octets are fine where they are.
			e.Keys = d[:len(d):len(d)]
			if !onlyKeys {
				e.Fingerprints = [][]byte{fpr}
			}
			return e, buf, nil
		}
		double := false
		for _, s := range spans {
			double = double || bytes.Equal(buf[s[0]:s[1]], d)
		}
		if double {
			continue
		}
		if !onlyKeys {
			e.Fingerprints = append(e.Fingerprints, bytes.Clone(fpr))
		}
		from := len(buf)
		buf = append(buf, d...) // d lies in the spool, or behind len(buf)
		spans = append(spans, [2]int{from, len(buf)})
	}
	e.Keys = buf[:len(buf):len(buf)]
	return e, buf, nil
}

// OPENPGPKEY returns the DANE record of the entry.
func (e Entry) OPENPGPKEY() (Record, error) {
	name, err := e.Address.DANEName()
	if err != nil {
		return Record{}, err
	}
	return checked(Record{Name: name, Type: TypeOPENPGPKEY, Data: e.Keys})
}

// StrictOPENPGPKEY returns the same record under the strict RFC 7929 label. ok
// is false if that is the label of [Entry.OPENPGPKEY] anyway.
func (e Entry) StrictOPENPGPKEY() (r Record, ok bool, err error) {
	if e.StrictLabel == "" {
		return Record{}, false, nil
	}
	name, err := ownerName(e.Address, e.StrictLabel+"._openpgpkey.")
	if err != nil {
		return Record{}, true, err
	}
	r, err = checked(Record{Name: name, Type: TypeOPENPGPKEY, Data: e.Keys})
	return r, true, err
}

// CERTPGP returns the CERT PGP record of the entry.
func (e Entry) CERTPGP() (Record, error) {
	name, err := e.Address.CERTName()
	if err != nil {
		return Record{}, err
	}
	return checked(Record{Name: name, Type: TypeCERT, Data: append(certHeader(CertPGP), e.Keys...)})
}

// CERTIPGP returns the CERT IPGP (PKA) record for the first key of the entry:
// the record holds one fingerprint, and GnuPG looks at one record.
func (e Entry) CERTIPGP(url string) (Record, error) {
	return CERTIPGP(e.Address, e.Fingerprints[0], url)
}

// list is a slice that grows without being copied.
type list[T any] struct {
	chunks [][]T
	n      int
}

const listChunk = 1 << 12

func (l *list[T]) add(v T) int32 {
	if l.n%listChunk == 0 {
		l.chunks = append(l.chunks, make([]T, listChunk))
	}
	l.n++
	*l.at(l.n - 1) = v
	return int32(l.n - 1)
}

func (l *list[T]) at(i int) *T { return &l.chunks[i/listChunk][i%listChunk] }

// spool holds octets in memory and, beyond spoolMemory, in a temporary file.
type spool struct {
	chunks [][]byte // their capacity does not change
	used   int      // octets of chunks
	file   *os.File
	w      *bufio.Writer
	size   int64 // of the file
}

const (
	spoolMemory = 4 << 20
	spoolChunk  = 256 << 10
	inFile      = 1 << 62 // in an offset; else it is chunk<<32 | place
)

func (s *spool) add(b []byte) (off int64, err error) {
	if s.file == nil {
		n := len(s.chunks) - 1
		if n < 0 || len(s.chunks[n])+len(b) > cap(s.chunks[n]) {
			size := max(spoolChunk, len(b))
			if s.used+size <= spoolMemory {
				s.chunks = append(s.chunks, make([]byte, 0, size))
				s.used += size
				n++
			} else {
				n = -1
			}
		}
		if n >= 0 {
			off = int64(n)<<32 | int64(len(s.chunks[n]))
			s.chunks[n] = append(s.chunks[n], b...)
			return off, nil
		}
		if s.file, err = os.CreateTemp("", "openpgpdns-*"); err != nil {
			return 0, &Error{Err: err}
		}
		s.w = bufio.NewWriterSize(s.file, 64<<10)
	}
	off = s.size
	if _, err := s.w.Write(b); err != nil {
		return 0, &Error{Err: err}
	}
	s.size += int64(len(b))
	return off | inFile, nil
}

func (s *spool) flush() error {
	if s.w == nil {
		return nil
	}
	if err := s.w.Flush(); err != nil {
		return &Error{Err: err}
	}
	return nil
}

// view returns size octets at off: a piece of memory that must not be changed,
// or of buf behind len(buf), which grows if need be.
func (s *spool) view(off int64, size int, buf []byte) (b, grown []byte, err error) {
	if off&inFile == 0 {
		at := off & (1<<32 - 1)
		return s.chunks[off>>32][at : at+int64(size)], buf, nil
	}
	buf = slices.Grow(buf, size)
	b = buf[len(buf) : len(buf)+size]
	if _, err := s.file.ReadAt(b, off&^inFile); err != nil {
		return nil, buf, &Error{Err: err}
	}
	return b, buf, nil
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(s.file.Close(), os.Remove(s.file.Name()))
	s.file = nil
	if err != nil {
		return &Error{Err: err}
	}
	return nil
}
