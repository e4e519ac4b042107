package openpgpdns

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/iotest"
	"time"
)

// seeds adds the small files of testdata.
func seeds(f *testing.F, patterns ...string) {
	f.Helper()
	for _, p := range patterns {
		files, err := filepath.Glob(filepath.Join("testdata", filepath.FromSlash(p)))
		if err != nil || len(files) == 0 {
			f.Fatalf("%s: %d files, %v", p, len(files), err)
		}
		for _, name := range files {
			b, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
}

// FuzzReader: no input panics or hangs; certificates are pieces of the input,
// in order; every error is typed; reading in other portions gives the same.
func FuzzReader(f *testing.F) {
	seeds(f, "keys/*.pgp", "mutations/*.pgp")
	f.Add([]byte("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEaVW5ABYJKwYBBAHaRw8BAQdA/JlfbTwzOGzDQ1XQGRm1by3duX0G+sPdG8Xo\n-----END PGP PUBLIC KEY BLOCK-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := NewReader(bytes.NewReader(b))
		r.SetMaxCertSize(1 << 16)
		var end int64
		results := 0
		for c, err := range r.All() {
			if results++; results > len(b)+1 {
				t.Fatal("more results than octets")
			}
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Err == nil {
					t.Fatalf("untyped error %v", err)
				}
				continue
			}
			if r.armor == nil {
				at := c.Offset()
				if at < end || int(at)+len(c.Bytes()) > len(b) || !bytes.Equal(c.Bytes(), b[at:int(at)+len(c.Bytes())]) {
					t.Fatalf("certificate at %d is not in the input", at)
				}
				end = at + int64(len(c.Bytes()))
			}
		}
		if one, other := summary(bytes.NewReader(b)), summary(iotest.OneByteReader(bytes.NewReader(b))); strings.Join(one, "|") != strings.Join(other, "|") {
			t.Fatalf("by octets %v, at once %v", other, one)
		}
	})
}

// FuzzFilter: what a filter lets through is a certificate again, which the same
// filter does not change; it holds the primary key and no packet twice.
func FuzzFilter(f *testing.F) {
	seeds(f, "keys/*.pgp", "mutations/*.pgp")
	f.Fuzz(func(t *testing.T, b []byte) {
		for c, err := range ReadCerts(bytes.NewReader(b)) {
			if err != nil {
				continue
			}
			filters := []Filter{{}, Minimal(), Everything()}
			for a := range c.Addresses() {
				filters = append(filters, Minimal().For(a), Everything().For(a), Filter{DropRevokedUserIDs: true}.For(a))
			}
			for _, f := range filters {
				f.Now = oracleTime
				out, err := f.Append(nil, c)
				if err != nil {
					if !errors.Is(err, ErrNoUserID) || out != nil {
						t.Fatal(err)
					}
					continue
				}
				if len(out) > len(c.Bytes()) {
					t.Fatalf("%d octets of %d", len(out), len(c.Bytes()))
				}
				d, err := ParseCert(out)
				if err != nil {
					t.Fatalf("the result does not parse: %v", err)
				}
				if !bytes.Equal(d.Fingerprint(), c.Fingerprint()) {
					t.Fatal("another key")
				}
				again, err := f.Append(nil, d)
				if err != nil || !bytes.Equal(again, out) {
					t.Fatalf("%+v not stable: %v\n%x\n%x", f, err, out, again)
				}
			}
			for range c.Verify() {
			}
			c.Expires(oracleTime)
			c.canEncrypt(oracleTime.Unix())
			c.weak()
			if out, err := (Filter{}).Append(nil, c); err == nil {
				d, err := ParseCert(out)
				if err != nil {
					t.Fatal(err)
				}
				if errs := d.Verify(); len(errs) > 0 {
					t.Fatalf("verified, filtered, and yet %v", errs)
				}
			}
		}
	})
}

// FuzzParseZone: what parses is valid, and comes back from every form.
func FuzzParseZone(f *testing.F) {
	seeds(f, "oracle/gpg-export-pka/*.zone", "oracle/gpg-export-dane/*.zone")
	f.Add([]byte("$ORIGIN example.\n$TTL 1h\na IN OPENPGPKEY ( AQID ; x\n +w== )\n 60 CERT PGP 0 RSASHA256 AQID\n"))
	f.Add([]byte("$ORIGIN .\n\"a b;\n\" CERT 3 0 0 \"AQID\"\n \"\" IN OPENPGPKEY AQID"))
	f.Add([]byte("a\\.b.\\195c.example. CERT 6 0 0 FGRrDwid1QIs9bop+fTfodZlwTXW"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		for r, err := range ParseZone(bytes.NewReader(b), "example.org") {
			if n++; n > len(b)+1 {
				t.Fatal("more results than octets")
			}
			if err != nil {
				continue
			}
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			for f := Portable; f <= GPG; f++ {
				text := r.AppendText(nil, f, 20)
				back, err := ParseRecord(string(text))
				if err != nil || back.Name != r.Name || back.Type != r.Type || !bytes.Equal(back.Data, r.Data) {
					t.Fatalf("%v: %q came back as %q, %v", f, text, back.Name, err)
				}
			}
			r.Warnings(Portable, 0)
			r.IPGP()
			r.Keys()
		}
	})
}

// FuzzAddress: what is taken from a user ID can be hashed, named and asked for,
// and the names survive a zone file; a second reading changes nothing.
func FuzzAddress(f *testing.F) {
	for _, s := range []string{"a@b.c", "A <A@B.C>", "\"x\" <a;b(c)\"d@bücher.example>", "j\xc3\xb6rg@x.example", "<a@\xe2\x84\xa6.example>", "<a..b@c>"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, uid []byte) {
		a, ok := AddressFromUserID(uid)
		StrictDANELabel(string(uid))
		if !ok {
			return
		}
		again, ok := AddressFromUserID([]byte("<" + a.String() + ">"))
		if !ok || again != a {
			t.Fatalf("%q becomes %q", a, again)
		}
		if len(a.WKDHash()) != 32 || len(a.DANELabel()) != 56 || !isWKDHash(a.WKDHash()) {
			t.Fatal("hashes")
		}
		if r := httptest.NewRequest("GET", a.WKDURL(Advanced), nil); r.URL.Query().Get("l") != a.Local {
			t.Fatalf("%q asks for %q", a.Local, r.URL.Query().Get("l"))
		}
		for _, f := range []func() (string, error){a.DANEName, a.PKAName, a.CERTName} {
			name, err := f()
			if err != nil {
				continue
			}
			r := Record{Name: name, Type: TypeCERT, Data: []byte{0, 3, 0, 0, 0, 1}}
			if back, err := ParseRecord(string(r.AppendText(nil, Portable, 0))); err != nil || back.Name != name {
				t.Fatalf("%q came back as %q, %v", name, back.Name, err)
			}
		}
	})
}

// FuzzDNSAnswer: no message of a server panics or hangs the resolver, and what
// it returns is in the message.
func FuzzDNSAnswer(f *testing.F) {
	q := query(7, []byte("\x01a\x07example\x00"), TypeCERT)
	f.Add(response(q, 0, 0, TypeCERT, []byte{0, 3, 0, 0, 0, 1}))
	f.Add(response(q, 0, 0, typeCNAME, []byte("\x01b\xc0\x0e")))
	f.Add(response(q, 0, 0, typeSRV, []byte("\x00\x00\x00\x00\x01\xbb\x01b\xc0\x0e")))
	f.Fuzz(func(t *testing.T, m []byte) {
		answerTo(m, q)
		for _, typ := range []uint16{typeA, typeAAAA, typeSRV, TypeCERT, TypeOPENPGPKEY} {
			data, _, err := answers(m, "a.example.", typ)
			if err != nil {
				continue
			}
			for _, d := range data {
				wireName(d)
				if typ != typeSRV && !bytes.Contains(m, d) {
					t.Fatalf("%s is not in the message", hex.EncodeToString(d))
				}
			}
		}
	})
}

// FuzzHandler: no path gives away a file that is not part of a directory.
func FuzzHandler(f *testing.F) {
	const hash = "kei1q4tipxxu1yj79k9kfukdhfy631xe"
	fsys := fstest.MapFS{}
	for name, text := range map[string]string{
		".well-known/openpgpkey/policy": "ok", ".well-known/openpgpkey/hu/" + hash: "ok", ".well-known/openpgpkey/example.org/hu/" + hash: "ok",
		"policy": "no", "hu/" + hash: "no", ".well-known/policy": "no", ".well-known/openpgpkey/hu/policy": "no", ".well-known/openpgpkey/hu/hu/" + hash: "no", ".well-known/openpgpkey/example.org/x": "no",
	} {
		fsys[name] = &fstest.MapFile{Data: []byte(text), ModTime: time.Unix(1e9, 0)}
	}
	h := Handler(fsys)
	for p := range fsys {
		f.Add("/" + p)
	}
	f.Add("/.well-known/openpgpkey/../../policy")
	f.Fuzz(func(t *testing.T, path string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		body, _ := io.ReadAll(w.Result().Body)
		if w.Code != 404 && string(body) != "ok" {
			t.Fatalf("%q: %d %q", path, w.Code, body)
		}
	})
}
