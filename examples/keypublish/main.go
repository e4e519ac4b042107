// Command keypublish makes the Web Key Directory and the DNS records of a
// domain from an OpenPGP key ring.
//
//	keypublish -ring keys.pgp -domain example.org -wkd /srv/www -zone keys.zone -records dane,cert
//
// The zone file holds records only, no SOA: include it in the domain's zone
// with $INCLUDE. A second run changes only what has changed. The report goes to
// standard output, progress (on a terminal) to standard error.
//
//	keypublish -hash bob@example.org
//
// prints the name of bob's file in the directory and the first label of his
// OPENPGPKEY record.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"signalbox.example/openpgpdns"
)

func main() {
	debug.SetGCPercent(25) // rings can be large: rather a little more work than memory
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

type config struct {
	ring, domain, wkd, zone, url string
	state                        string
	method                       openpgpdns.Method
	form                         openpgpdns.Form
	records                      []string
	minimal, prune               bool
	verify, mixed, strict        bool
	ttl                          int
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("keypublish", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	var c config
	hash := fs.String("hash", "", "print the WKD hash and the DANE label of `address`, and nothing else")
	fs.StringVar(&c.ring, "ring", "", "key ring, binary or armored `file`; - is standard input")
	fs.StringVar(&c.domain, "domain", "", "publish the addresses of this `domain`")
	fs.StringVar(&c.wkd, "wkd", "", "write a Web Key Directory below the web root `dir`")
	method := fs.String("method", "advanced", "layout of the directory: `advanced|direct`")
	fs.StringVar(&c.state, "state", "", "note what is in the directory in `file`, outside of it: the next run need not read what nobody touched")
	fs.StringVar(&c.zone, "zone", "", "write DNS records to `file`")
	form := fs.String("form", "portable", "form of the records: `portable|mnemonic|generic|gpg`")
	records := fs.String("records", "dane", "which records, a `list` of dane, cert, pka")
	fs.StringVar(&c.url, "url", "", "`URL` of the key in PKA records; {fingerprint} in it stands for the key's, {wkd} for its URL in the directory")
	fs.BoolVar(&c.minimal, "minimal", false, "newest self-signatures and unexpired subkeys only, as gpg's export-minimal")
	fs.BoolVar(&c.prune, "prune", false, "remove files of the directory whose address is no longer in the ring")
	fs.BoolVar(&c.verify, "verify", false, "check all self-signatures; what does not verify is not published")
	fs.BoolVar(&c.mixed, "mixed", false, "publish version 6 keys even beside version 4 keys of the same address")
	fs.BoolVar(&c.strict, "strict", false, "dane: also publish under the label that RFC 7929 asks for, where it differs from GnuPG's")
	fs.IntVar(&c.ttl, "ttl", -1, "TTL of the records in `seconds`; negative: none, the zone's applies")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), "usage: keypublish -ring FILE -domain D [-wkd DIR -method advanced|direct] [-zone FILE -form FORM]\n"+
			"                  [-records dane,cert,pka] [-url URL] [-minimal] [-prune] [-verify] [-state FILE]\n"+
			"       keypublish -hash ADDRESS\n\n")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "keypublish:", err)
		return 2
	}
	fail := func(status int, what any) int {
		fmt.Fprintf(stderr, "keypublish: %v\n", what)
		return status
	}
	if fs.NArg() > 0 {
		return fail(2, fmt.Sprintf("unexpected argument %q", fs.Arg(0)))
	}
	if *hash != "" {
		a, err := openpgpdns.ParseAddress(*hash)
		if err != nil {
			return fail(1, err)
		}
		fmt.Fprintln(stdout, a.WKDHash(), a.DANELabel())
		return 0
	}
	if err := c.complete(*method, *form, *records); err != nil {
		return fail(2, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := c.publish(ctx, stdin, stdout, stderr); err != nil {
		return fail(1, err)
	}
	return 0
}

func (c *config) complete(method, form, records string) (err error) {
	switch {
	case c.ring == "" || c.domain == "":
		return errors.New("-ring and -domain are needed; -h explains")
	case c.wkd == "" && c.zone == "":
		return errors.New("nothing to write: give -wkd or -zone")
	case c.state != "" && c.wkd == "":
		return errors.New("-state goes with -wkd")
	case c.ttl > math.MaxInt32: // RFC 2181 section 8
		return fmt.Errorf("-ttl %d: at most %d", c.ttl, math.MaxInt32)
	}
	switch method {
	case "advanced":
		c.method = openpgpdns.Advanced
	case "direct":
		c.method = openpgpdns.Direct
	default:
		return fmt.Errorf("-method %q: there are advanced and direct", method)
	}
	if c.form, err = openpgpdns.ParseForm(form); err != nil {
		return fmt.Errorf("-form %q: there are portable, mnemonic, generic, gpg", form)
	}
	for r := range strings.SplitSeq(records, ",") {
		if r != "dane" && r != "cert" && r != "pka" {
			return fmt.Errorf("-records %q: there are dane, cert, pka", r)
		}
		if !slices.Contains(c.records, r) {
			c.records = append(c.records, r)
		}
	}
	return nil
}

func (c *config) publish(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
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
	o := openpgpdns.Options{Verify: c.verify, AllowMixedVersions: c.mixed}
	if c.minimal {
		o.Filter = openpgpdns.Minimal()
	}
	unread := 0
	var readErr error
	ring := func(yield func(*openpgpdns.Cert, error) bool) {
		for cert, err := range openpgpdns.NewReader(in).All() {
			if err != nil {
				unread, readErr = unread+1, err
			}
			if !yield(cert, err) {
				return
			}
		}
	}
	keys, err := openpgpdns.Collect(ctx, c.domain, ring, o)
	if err != nil {
		return err
	}
	defer keys.Close()
	fmt.Fprintf(stdout, "domain %s: %d certificates read, %d addresses\n", keys.Domain(), keys.Certificates(), keys.Len())
	list, count := keys.Problems()
	for _, p := range list {
		fmt.Fprintf(stdout, "problem: %v\n", p)
	}
	if count > len(list) {
		fmt.Fprintf(stdout, "problem: and %d more\n", count-len(list))
	}
	if keys.Len() == 0 {
		if unread > 0 {
			return fmt.Errorf("nothing to publish: %w", readErr)
		}
		return fmt.Errorf("no key in the ring has an address in %s; nothing is changed", keys.Domain())
	}
	if c.wkd != "" {
		w := openpgpdns.WKD{Root: c.wkd, Method: c.method, Prune: c.prune, State: c.state, Progress: progress(stderr)}
		r, err := w.Write(ctx, keys)
		if err != nil {
			return err
		}
		fmt.Fprintf(stdout, "wkd %s: %d written, %d unchanged, %d removed\n", c.method, r.Written, r.Unchanged, r.Removed)
		if r.PruneSkipped {
			fmt.Fprintln(stdout, "wkd: nothing pruned, as the ring was not read in full")
		}
	}
	if c.zone != "" {
		if err := c.writeZone(keys, stdout); err != nil {
			return err
		}
	}
	if unread > 0 {
		return fmt.Errorf("%d certificates could not be read, the others are published; the last: %w", unread, readErr)
	}
	return nil
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

func (c *config) writeZone(keys *openpgpdns.Collection, stdout io.Writer) error {
	// Renaming over a device, pipe or link (/dev/stdout) would replace it, reading one may never end.
	if fi, err := os.Lstat(c.zone); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("-zone %s: not a regular file", c.zone)
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.zone), "."+filepath.Base(c.zone)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails when renamed
	defer tmp.Close()
	var buf []byte
	records := 0
	warned := map[openpgpdns.Warning]int{}
	first := map[openpgpdns.Warning]string{}
	names := map[string]bool{} // OPENPGPKEY owners, only with -strict
	if c.strict {
		for e, err := range keys.Entries() {
			if err != nil {
				return err
			}
			names[e.Address.DANELabel()] = true
		}
	}
	for e, err := range keys.Entries() {
		if err != nil {
			return err
		}
		if names[e.StrictLabel] {
			// The label belongs to another address: one record per name.
			e.StrictLabel = ""
		} else if e.StrictLabel != "" {
			names[e.StrictLabel] = true
		}
		buf = buf[:0]
		for _, r := range c.entry(e, stdout) {
			if c.ttl >= 0 {
				r.TTL, r.HasTTL = uint32(c.ttl), true
			}
			for _, w := range r.Warnings(c.form, 0) {
				if i := strings.Index(w.Text, " takes "); i > 0 { // the size differs, the matter does not
					w.Text = "the largest answers do not fit into UDP: clients must ask again over TCP"
				}
				if warned[w]++; warned[w] == 1 {
					first[w] = r.Name
				}
			}
			start := len(buf)
			buf = r.AppendText(buf, c.form, 0)
			if origin := bytes.IndexByte(buf[start:], '\n'); c.form == openpgpdns.GPG && origin >= 0 {
				buf = slices.Insert(buf, start+origin+1, comments(e)...)
			}
			records++
		}
		if _, err := tmp.Write(buf); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "zone %s: %d records\n", c.form, records)
	var lines []string
	for w, n := range warned {
		lines = append(lines, fmt.Sprintf("warning: %s: %s (%d records, such as %s)\n", w.Software, w.Text, n, first[w]))
	}
	slices.Sort(lines)
	for _, l := range lines {
		fmt.Fprint(stdout, l)
	}
	if err := tmp.Chmod(0o644); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if same, err := sameContent(tmp.Name(), c.zone); same || err != nil {
		return err
	}
	return os.Rename(tmp.Name(), c.zone)
}

// entry makes the records of one address. What DNS cannot hold is reported and
// left out.
func (c *config) entry(e openpgpdns.Entry, stdout io.Writer) []openpgpdns.Record {
	var rs []openpgpdns.Record
	add := func(r openpgpdns.Record, err error) {
		if err != nil {
			fmt.Fprintf(stdout, "problem: %v\n", err)
			return
		}
		rs = append(rs, r)
	}
	for _, kind := range c.records {
		switch kind {
		case "dane":
			add(e.OPENPGPKEY())
			if c.strict {
				if r, ok, err := e.StrictOPENPGPKEY(); ok {
					add(r, err)
				}
			}
		case "cert":
			add(e.CERTPGP())
		case "pka":
			add(e.CERTIPGP(strings.NewReplacer(
				"{fingerprint}", strings.ToUpper(hex.EncodeToString(e.Fingerprints[0])),
				"{wkd}", e.Address.WKDURL(c.method),
			).Replace(c.url)))
		}
	}
	return rs
}

// comments are the lines that gpg puts below $ORIGIN: the fingerprint and the
// user ID, of each key.
func comments(e openpgpdns.Entry) []byte {
	var b []byte
	for cert, err := range openpgpdns.ReadCerts(bytes.NewReader(e.Keys)) {
		if err != nil {
			break // it is a comment
		}
		for uid := range cert.UserIDs(time.Now()) {
			b = fmt.Appendf(b, "; %X\n; ", cert.Fingerprint())
			for _, c := range uid.Bytes {
				if c < ' ' || c == 0x7f { // must not end the comment
					b = fmt.Appendf(b, "\\x%02x", c)
				} else {
					b = append(b, c)
				}
			}
			b = append(b, '\n')
		}
	}
	return b
}

// sameContent reports whether both files exist and are equal.
func sameContent(a, b string) (bool, error) {
	x, err := os.ReadFile(a)
	if err != nil {
		return false, err
	}
	y, err := os.ReadFile(b)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && bytes.Equal(x, y), err
}

// progress returns nil unless w is a terminal.
func progress(w io.Writer) func(done, total int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func(done, total int) {
		fmt.Fprintf(f, "\r%d of %d files", done, total)
		if done == total {
			fmt.Fprintln(f)
		}
	}
}
