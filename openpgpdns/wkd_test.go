package openpgpdns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func ring(t testing.TB, names ...string) []byte {
	t.Helper()
	var b []byte
	for _, n := range names {
		b = append(b, data(t, "keys/"+n+".pgp")...)
	}
	return b
}

func minimalOptions() Options {
	f := Minimal()
	f.Now = oracleTime
	return Options{Filter: f}
}

// tree returns the files below a folder.
func tree(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(root, path)
		out[filepath.ToSlash(rel)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func update(t testing.TB, w WKD, ring []byte) Report {
	t.Helper()
	r, err := w.Update(context.Background(), "example.org", ReadCerts(bytes.NewReader(ring)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWKDTree: both layouts, with the files that gpg-wks-client wrote.
func TestWKDTree(t *testing.T) {
	keys := ring(t, "alice", "bob", "phil", "carol.upper", "erin", "joerg", "ursula", "rita", "dup", "thea")
	const hu = "oracle/gpg-wks-client/example.org/hu"
	for m, prefix := range map[Method]string{Advanced: ".well-known/openpgpkey/example.org/", Direct: ".well-known/openpgpkey/"} {
		w := WKD{Root: t.TempDir(), Method: m, Submission: "Key-Submission@example.org", Options: minimalOptions()}
		r := update(t, w, keys)
		got := tree(t, w.Root)
		if r.Certificates != 10 || r.Addresses != 12 || r.Written != 12 || r.Unchanged != 0 || r.ProblemCount != 0 {
			t.Errorf("%v: %+v", m, r)
		}
		if got[prefix+"submission-address"] != "key-submission@example.org\n" {
			t.Errorf("%v: submission-address %q", m, got[prefix+"submission-address"])
		}
		if p, ok := got[prefix+"policy"]; !ok || p != "" {
			t.Errorf("%v: policy %q, %v", m, p, ok)
		}
		for _, n := range names(t, hu, 12) {
			if want := string(data(t, hu+"/"+n)); got[prefix+"hu/"+n] != want {
				t.Errorf("%v: %s has %d octets, gpg-wks-client's %d", m, n, len(got[prefix+"hu/"+n]), len(want))
			}
		}
		if len(got) != 14 {
			t.Errorf("%v: %d files: %v", m, len(got), got)
		}
	}
}

// TestWKDIncremental: unchanged files are not touched, changed ones are
// replaced, removed ones pruned on request only; no temporary file stays.
func TestWKDIncremental(t *testing.T) {
	w := WKD{Root: t.TempDir(), Options: minimalOptions()}
	update(t, w, ring(t, "alice", "bob", "phil"))
	hu := filepath.Join(w.Root, ".well-known/openpgpkey/example.org/hu")
	past := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	stamp := func() {
		es, _ := os.ReadDir(hu)
		for _, e := range es {
			if err := os.Chtimes(filepath.Join(hu, e.Name()), past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	touched := func() (n int) {
		es, _ := os.ReadDir(hu)
		for _, e := range es {
			if i, err := e.Info(); err == nil && !i.ModTime().Equal(past) {
				n++
			}
		}
		return n
	}
	count := func() int { es, _ := os.ReadDir(hu); return len(es) }

	stamp()
	if r := update(t, w, ring(t, "alice", "bob", "phil")); r.Written != 0 || r.Unchanged != 4 || touched() != 0 {
		t.Errorf("nothing changed: %+v, %d touched", r, touched())
	}
	// The same length, other octets; shorter; longer.
	alice := filepath.Join(hu, "kei1q4tipxxu1yj79k9kfukdhfy631xe")
	whole, err := os.ReadFile(alice)
	if err != nil {
		t.Fatal(err)
	}
	for _, old := range [][]byte{bytes.Replace(whole, []byte("Alice"), []byte("Alyce"), 1), whole[:400], append(bytes.Clone(whole), 0), {}} {
		if err := os.WriteFile(alice, old, 0o644); err != nil {
			t.Fatal(err)
		}
		stamp()
		r := update(t, w, ring(t, "alice", "bob", "phil"))
		now, _ := os.ReadFile(alice)
		if r.Written != 1 || r.Unchanged != 3 || touched() != 1 || !bytes.Equal(now, whole) {
			t.Errorf("one changed: %+v, %d touched", r, touched())
		}
	}
	stamp()
	if r := update(t, w, ring(t, "bob")); r.Removed != 0 || count() != 4 {
		t.Errorf("pruned unasked: %+v", r)
	}
	w.Prune = true
	foreign := []string{"README", "kei1q4tipxxu1yj79k9kfukdhfy631x", "kei1q4tipxxu1yj79k9kfukdhfy631xl", ".tmp-x"}
	for _, name := range append(foreign, ".tmp-kei1q4tipxxu1yj79k9kfukdhfy631xe") {
		if err := os.WriteFile(filepath.Join(hu, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A ring that cannot be read in full prunes nothing.
	if r := update(t, w, append(ring(t, "bob"), ring(t, "alice")[:300]...)); r.Removed != 0 || !r.PruneSkipped || r.ProblemCount != 1 {
		t.Errorf("pruned after an error: %+v", r)
	}
	if r := update(t, w, ring(t, "bob")); r.Removed != 2 || r.PruneSkipped || r.Unchanged != 2 || touched() != len(foreign) {
		t.Errorf("pruning: %+v", r)
	}
	es, _ := os.ReadDir(hu)
	var left []string
	for _, e := range es {
		left = append(left, e.Name())
	}
	want := append(slices.Clone(foreign), "673ce5xscgktuh963zi473pytdbcmc4z", "jycbiujnsxs47xrkethgtj69xuunurok")
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left: %v", left)
	}
}

// TestWKDDeterministic: the number of workers makes no difference, nor does
// verification of good keys, nor a collection that went through a file.
func TestWKDDeterministic(t *testing.T) {
	keys := ring(t, "alice", "bob", "phil", "dup", "dup-2", "sam", "thea", "carol.upper", "joerg", "nist")
	var want map[string]string
	for _, workers := range []int{1, 2, 7} {
		for _, verify := range []bool{false, true} {
			w := WKD{Root: t.TempDir(), Options: minimalOptions()}
			w.Options.Workers, w.Options.Verify = workers, verify
			update(t, w, keys)
			got := tree(t, w.Root)
			if want == nil {
				want = got
			}
			if len(got) != len(want) {
				t.Errorf("%d files", len(got))
			}
			for n := range want {
				if got[n] != want[n] {
					t.Errorf("%d workers, verify %v: %s differs", workers, verify, n)
				}
			}
		}
	}
}

// manyCerts yields n certificates with addresses u0, u1, ... made from alice's
// by writing over her user ID; their signatures are wrong, which only Verify
// would notice. An address comes up again every again certificates.
func manyCerts(t testing.TB, n, again int) func(yield func(*Cert, error) bool) {
	alice := data(t, "keys/alice.pgp")
	return func(yield func(*Cert, error) bool) {
		r := NewReader(&patched{alice: alice, n: n, again: again})
		for c, err := range r.All() {
			if !yield(c, err) {
				return
			}
		}
	}
}

// patched is an io.Reader of such a ring, made as it is read.
type patched struct {
	alice    []byte
	i, n     int
	again    int
	now, buf []byte
	old      []byte // alice's fingerprint
}

func (p *patched) Read(b []byte) (int, error) {
	if len(p.now) == 0 {
		if p.i == p.n {
			return 0, io.EOF
		}
		p.buf = append(p.buf[:0], p.alice...)
		at := bytes.Index(p.buf, []byte("Alice Example <alice@"))
		copy(p.buf[at:], fmt.Sprintf("Ex %08d <u%06d@", p.i, p.i%p.again)) // 21 octets
		copy(p.buf[20:], fmt.Sprintf("%08d", p.i))                         // another key
		// and its fingerprint in the issuer subpackets
		c, err := ParseCert(p.buf)
		if err != nil {
			return 0, err
		}
		if p.old == nil {
			old, _ := ParseCert(p.alice)
			p.old = old.Fingerprint()
		}
		p.buf = bytes.ReplaceAll(p.buf, p.old, c.Fingerprint())
		p.buf = bytes.ReplaceAll(p.buf, p.old[12:], c.Fingerprint()[12:])
		p.now = p.buf
		p.i++
	}
	n := copy(b, p.now)
	p.now = p.now[n:]
	return n, nil
}

// TestCollectSpills: more octets than are kept in memory come back in order,
// from a temporary file that is removed.
func TestCollectSpills(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 20,000 certificates")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	n := 2 * spoolMemory / 400
	c, err := Collect(t.Context(), "example.org", manyCerts(t, n, n-1000), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if es, _ := os.ReadDir(tmp); len(es) != 1 && os.TempDir() == tmp {
		t.Errorf("%d temporary files", len(es))
	}
	i := 0
	for e, err := range c.Entries() {
		if err != nil {
			t.Fatal(err)
		}
		keys := 1
		if i < 1000 {
			keys = 2
		}
		if want := fmt.Sprintf("u%06d", i); e.Address.Local != want || len(e.Fingerprints) != keys || len(e.Keys) != keys*414 || !bytes.Contains(e.Keys, []byte("<"+want+"@example.org>")) {
			t.Fatalf("entry %d: %s, %d keys, %d octets", i, e.Address, len(e.Fingerprints), len(e.Keys))
		}
		i++
	}
	if i != n-1000 || c.Len() != i || c.Certificates() != n {
		t.Errorf("%d entries of %d certificates", i, c.Certificates())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if es, _ := os.ReadDir(tmp); len(es) != 0 {
		t.Error("the temporary file stays")
	}
}

// TestCollectProblems: what is left out, and what ends a run.
func TestCollectProblems(t *testing.T) {
	collect := func(o Options, ring []byte) (*Collection, error) {
		return Collect(t.Context(), "Example.ORG.", ReadCerts(bytes.NewReader(ring)), o)
	}
	// Secret keys end it, and nothing is written.
	secret := append(ring(t, "alice"), 0x94, 6, 4, 0, 0, 0, 0, 1)
	if c, err := collect(Options{}, secret); c != nil || !errors.Is(err, ErrSecretKey) {
		t.Errorf("secret key: %v", err)
	}
	w := WKD{Root: filepath.Join(t.TempDir(), "none")}
	if _, err := w.Update(t.Context(), "example.org", ReadCerts(bytes.NewReader(secret))); !errors.Is(err, ErrSecretKey) {
		t.Errorf("secret key: %v", err)
	}
	if _, err := os.Stat(w.Root); !errors.Is(err, fs.ErrNotExist) {
		t.Error("something was written")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Update(ctx, "example.org", ReadCerts(bytes.NewReader(ring(t, "alice")))); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := w.Update(t.Context(), "exa mple", ReadCerts(bytes.NewReader(nil))); !errors.Is(err, ErrName) {
		t.Errorf("domain: %v", err)
	}
	// Too many octets for one address.
	c, err := collect(Options{MaxKeyFile: 413}, ring(t, "alice", "dup"))
	if err != nil {
		t.Fatal(err)
	}
	list, n := c.Problems()
	if n != 1 || !errors.Is(list[0], ErrTooLarge) || c.Len() != 1 {
		t.Errorf("413 octets: %v", list)
	}
	if c, err = collect(Options{MaxKeyFile: 700}, ring(t, "dup", "dup-2", "alice")); err != nil {
		t.Fatal(err)
	}
	if list, n := c.Problems(); n != 1 || !errors.Is(list[0], ErrTooLarge) || c.Len() != 2 {
		t.Errorf("700 octets: %v", list)
	}
	// The sixth key of an address is remarked on, and published.
	c, err = Collect(t.Context(), "example.org", manyCerts(t, 7, 1), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if list, n := c.Problems(); n != 1 || !errors.Is(list[0], ErrTooLarge) {
		t.Errorf("seven keys: %v", list)
	}
	for e, err := range c.Entries() {
		if err != nil || len(e.Fingerprints) != 7 {
			t.Errorf("%d keys, %v", len(e.Fingerprints), err)
		}
	}
	// Revoked user IDs, when they are not wanted.
	o := minimalOptions()
	o.Filter.DropRevokedUserIDs = true
	if c, err = collect(o, ring(t, "ursula")); err != nil || c.Len() != 1 {
		t.Errorf("ursula without the revoked one: %d, %v", c.Len(), err)
	}
	// The list of problems is bounded.
	bad := bytes.Repeat([]byte{0x98, 6, 3, 0, 0, 0, 0, 0}, 3000)
	if c, err = collect(Options{}, append(bad, ring(t, "alice")...)); err != nil {
		t.Fatal(err)
	}
	if list, n := c.Problems(); n != 3000 || len(list) != 1000 || c.Len() != 1 {
		t.Errorf("%d of %d problems, %d addresses", len(list), n, c.Len())
	}
}

// TestWKDRefuses: values that do not fit into the files, folders that cannot
// be written.
func TestWKDRefuses(t *testing.T) {
	certs := func() []byte { return ring(t, "alice") }
	for name, w := range map[string]WKD{
		"submission": {Submission: "nobody"}, "policy line": {Policy: Policy{Other: []string{"a\nb"}}}, "policy address": {Policy: Policy{SubmissionAddress: "x"}},
	} {
		w.Root = t.TempDir()
		if _, err := w.Update(t.Context(), "example.org", ReadCerts(bytes.NewReader(certs()))); !errors.Is(err, ErrAddress) && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := (WKD{Root: file}).Update(t.Context(), "example.org", ReadCerts(bytes.NewReader(certs()))); err == nil {
		t.Error("wrote below a file")
	}
	// A folder in the place of a key file.
	w := WKD{Root: t.TempDir()}
	path := filepath.Join(w.Root, ".well-known/openpgpkey/example.org/hu/kei1q4tipxxu1yj79k9kfukdhfy631xe")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Update(t.Context(), "example.org", ReadCerts(bytes.NewReader(certs()))); err == nil {
		t.Error("replaced a folder")
	}
	for n := range tree(t, w.Root) {
		if strings.Contains(n, ".tmp-") {
			t.Errorf("left %s", n)
		}
	}
}

func TestPolicy(t *testing.T) {
	p := Policy{MailboxOnly: true, DaneOnly: true, AuthSubmit: true, ProtocolVersion: 5, SubmissionAddress: "Submit@example.org", Other: []string{"x-y: z"}}
	text, err := p.AppendText(nil)
	if want := "mailbox-only\ndane-only\nauth-submit\nprotocol-version: 5\nsubmission-address: submit@example.org\nx-y: z\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v", text, err)
	}
	back, err := ParsePolicy(bytes.NewReader(text))
	p.SubmissionAddress = "submit@example.org"
	if err != nil || fmt.Sprint(back) != fmt.Sprint(p) {
		t.Errorf("%+v, %v", back, err)
	}
	if p, err := ParsePolicy(bytes.NewReader(data(t, "oracle/gpg-wks-client/example.org/policy"))); err != nil || fmt.Sprint(p) != fmt.Sprint(Policy{}) {
		t.Errorf("gpg-wks-client's: %+v, %v", p, err)
	}
	if p, err := ParsePolicy(strings.NewReader("# c\r\n\r\nmailbox-only\r\n")); err != nil || !p.MailboxOnly {
		t.Errorf("CRLF: %+v, %v", p, err)
	}
	for _, bad := range []string{"protocol-version 5", "protocol-version: x", "protocol-version: 0", "submission-address: x", strings.Repeat("a\n", 40000)} {
		if _, err := ParsePolicy(strings.NewReader(bad)); err == nil {
			t.Errorf("%.30q accepted", bad)
		}
	}
}

func get(t *testing.T, h http.Handler, method, path string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, "https://openpgpkey.example.org"+path, nil)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestHandler(t *testing.T) {
	w := WKD{Root: t.TempDir(), Submission: "s@example.org", Options: minimalOptions()}
	update(t, w, ring(t, "alice"))
	w.Method = Direct
	update(t, w, ring(t, "alice"))
	for name, text := range map[string]string{"secret": "s", ".well-known/openpgpkey/example.org/hu/notes": "n", ".well-known/openpgpkey/hu/.tmp-kei1q4tipxxu1yj79k9kfukdhfy631xe": "x"} {
		if err := os.WriteFile(filepath.Join(w.Root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const hash = "kei1q4tipxxu1yj79k9kfukdhfy631xe"
	const adv, dir = "/.well-known/openpgpkey/example.org", "/.well-known/openpgpkey"
	for _, h := range []http.Handler{Handler(os.DirFS(w.Root)), Handler(noSeek{os.DirFS(w.Root)})} {
		for path, typ := range map[string]string{
			adv + "/hu/" + hash: "application/octet-stream", dir + "/hu/" + hash: "application/octet-stream",
			adv + "/hu/" + hash + "?l=alice": "application/octet-stream", adv + "/hu/" + hash + "?l=wrong&x=%zz": "application/octet-stream",
			"/.well-known/openpgpkey/Example.ORG/hu/" + hash: "application/octet-stream",
			adv + "/policy": "text/plain; charset=utf-8", dir + "/policy": "text/plain; charset=utf-8",
			adv + "/submission-address": "text/plain; charset=utf-8",
		} {
			for _, m := range []string{"GET", "HEAD"} {
				r := get(t, h, m, path)
				body, _ := io.ReadAll(r.Body)
				if r.StatusCode != 200 || r.Header.Get("Content-Type") != typ || r.Header.Get("Access-Control-Allow-Origin") != "*" {
					t.Errorf("%s %s: %v %v", m, path, r.Status, r.Header)
				}
				want := 0
				if m == "GET" && strings.Contains(path, hash) {
					want = 414
				} else if m == "GET" && strings.Contains(path, "submission") {
					want = len("s@example.org\n")
				}
				if len(body) != want {
					t.Errorf("%s %s: %d octets", m, path, len(body))
				}
				if m == "HEAD" && strings.Contains(path, hash) && r.ContentLength != 414 && r.Header.Get("Content-Length") != "414" {
					t.Errorf("HEAD %s: length %v", path, r.Header)
				}
			}
		}
		for _, path := range []string{
			"/", "/secret", "/.well-known/", dir, dir + "/", adv, adv + "/", adv + "/hu", adv + "/hu/", dir + "/hu", dir + "/hu/",
			adv + "/hu/notes", adv + "/hu/" + hash + "/", adv + "/hu/" + hash[:31], adv + "/hu/" + strings.ToUpper(hash), adv + "//hu/" + hash,
			dir + "/hu/.tmp-" + hash, adv + "/../../secret", dir + "/hu/../../../secret", dir + "/../../secret", dir + "/..%2f..%2fsecret",
			dir + "/example.net/hu/" + hash, dir + "/example.org./hu/" + hash, dir + "/./hu/" + hash, dir + "/hu/hu/" + hash, "/x" + dir + "/hu/" + hash,
			adv + "/hu/ybndrfg8ejkmcpqxot1uwisza345h769",
		} {
			r := get(t, h, "GET", path)
			if r.StatusCode != 404 || r.Header.Get("Access-Control-Allow-Origin") != "*" {
				t.Errorf("GET %s: %v", path, r.Status)
			}
		}
		if r := get(t, h, "POST", adv+"/hu/"+hash); r.StatusCode != 405 || r.Header.Get("Allow") == "" {
			t.Errorf("POST: %v", r.Status)
		}
		if r := get(t, h, "OPTIONS", adv+"/hu/"+hash); r.StatusCode != 204 || r.Header.Get("Access-Control-Allow-Methods") == "" {
			t.Errorf("OPTIONS: %v", r.Status)
		}
	}
	// A file system that has no folders, and a folder in the place of a file.
	m := fstest.MapFS{".well-known/openpgpkey/hu/" + hash + "/x": {Data: []byte("x")}}
	if r := get(t, Handler(m), "GET", dir+"/hu/"+hash); r.StatusCode != 404 {
		t.Errorf("folder: %v", r.Status)
	}
}

// noSeek hides that files can seek.
type noSeek struct{ fs.FS }

type noSeekFile struct{ f fs.File }

func (f noSeekFile) Stat() (fs.FileInfo, error) { return f.f.Stat() }
func (f noSeekFile) Read(b []byte) (int, error) { return f.f.Read(b) }
func (f noSeekFile) Close() error               { return f.f.Close() }

func (n noSeek) Open(name string) (fs.File, error) {
	f, err := n.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return noSeekFile{f}, nil
}

// TestWKDNew: a directory of keys that was not there appears when it is
// complete, without what a run that was cut short has left, or not at all. One
// that is there is filled file by file, and stays the same directory.
func TestWKDNew(t *testing.T) {
	keys := ring(t, "alice", "bob")
	w := WKD{Root: t.TempDir(), Options: minimalOptions()}
	dir := filepath.Join(w.Root, ".well-known/openpgpkey/example.org")
	half := filepath.Join(dir, ".tmp-hu")
	if err := os.MkdirAll(half, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kei1q4tipxxu1yj79k9kfukdhfy631xe", "other"} {
		if err := os.WriteFile(filepath.Join(half, name), []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	w.Options.Workers = 1
	c, err := Collect(ctx, "example.org", manyCerts(t, 200, 200), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	w.Progress = func(done, _ int) {
		if es, err := os.ReadDir(half); err != nil || len(es) != done {
			t.Errorf("%d files are done, there are %d, %v", done, len(es), err)
		}
		if _, err := os.Stat(filepath.Join(dir, "hu")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("visible before its time: %v", err)
		}
		cancel()
	}
	if r, err := w.Write(ctx, c); !errors.Is(err, context.Canceled) || r.Written != 0 {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
	if es, err := os.ReadDir(dir); err != nil || len(es) != 1 || es[0].Name() != "policy" {
		t.Errorf("a cancelled run left %v, %v", es, err)
	}
	w.Progress = nil
	if r := update(t, w, keys); r.Written != 3 {
		t.Errorf("%+v", r)
	}
	if got := tree(t, w.Root); len(got) != 4 {
		t.Errorf("%d files", len(got))
	}

	hu := filepath.Join(dir, "hu")
	if err := os.RemoveAll(hu); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(hu, 0o750); err != nil {
		t.Fatal(err)
	}
	before, _ := os.Stat(hu)
	if r := update(t, w, keys); r.Written != 3 {
		t.Errorf("into an empty folder: %+v", r)
	}
	if after, err := os.Stat(hu); err != nil || !os.SameFile(before, after) || after.Mode() != before.Mode() {
		t.Error("another folder is there now")
	}
	// A run that adds to it and is cut short keeps what it has written.
	ctx, cancel = context.WithCancel(t.Context())
	w.Progress = func(int, int) { cancel() }
	if r, err := w.Write(ctx, c); !errors.Is(err, context.Canceled) || r.Written != 64 {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
	if es, _ := os.ReadDir(hu); len(es) != 67 {
		t.Errorf("%d files", len(es))
	}
}
