package openpgpdns

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeDNS is a resolver with a table: "NAME TYPE" to RDATA. A nil entry is a
// failure of the server.
type fakeDNS map[string][][]byte

func (f fakeDNS) LookupRecords(_ context.Context, name string, typ uint16) ([][]byte, error) {
	d, ok := f[fmt.Sprintf("%s %d", name, typ)]
	if ok && d == nil {
		return nil, ErrServer
	}
	if !ok {
		return nil, ErrNotFound
	}
	return d, nil
}

// web records the requests to a client and answers them from a table of URLs
// without query; "!" makes a status.
type web struct {
	mu    sync.Mutex
	pages map[string]string
	asked []string
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, r.URL.String())
	u := *r.URL
	u.RawQuery = ""
	page, ok := w.pages[u.String()]
	resp := &http.Response{StatusCode: 200, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r}
	switch {
	case !ok:
		resp.StatusCode, resp.Status = 404, "404 Not Found"
	case strings.HasPrefix(page, "!500"):
		resp.StatusCode, resp.Status = 500, "500 Internal Server Error"
	case strings.HasPrefix(page, "!302 "):
		resp.StatusCode = 302
		resp.Header.Set("Location", page[5:])
	case page == "!fail":
		return nil, errors.New("connection refused")
	}
	resp.Body = io.NopCloser(strings.NewReader(page))
	return resp, nil
}

const (
	aliceHash = "kei1q4tipxxu1yj79k9kfukdhfy631xe"
	advURL    = "https://openpgpkey.example.org/.well-known/openpgpkey/example.org/hu/" + aliceHash
	dirURL    = "https://example.org/.well-known/openpgpkey/hu/" + aliceHash
)

var (
	advHost = "openpgpkey.example.org. 1"
	local4  = [][]byte{{127, 0, 0, 1}}
)

// TestBug07AdvancedFirst (gentoo/gemato#42, #27, mailvelope#774): the direct
// method only if openpgpkey.DOMAIN has no address; any answer is final.
func TestBug07AdvancedFirst(t *testing.T) {
	alice := string(ring(t, "alice"))
	for _, tt := range []struct {
		name  string
		dns   fakeDNS
		pages map[string]string
		asked string // the only URL
		err   error
	}{
		{"advanced", fakeDNS{advHost: local4}, map[string]string{advURL: alice, dirURL: alice}, advURL, nil},
		{"advanced by IPv6", fakeDNS{"openpgpkey.example.org. 28": {net.IPv6loopback}}, map[string]string{advURL: alice}, advURL, nil},
		{"404 is final", fakeDNS{advHost: local4}, map[string]string{dirURL: alice}, advURL, ErrNotFound},
		{"so is 500", fakeDNS{advHost: local4}, map[string]string{advURL: "!500", dirURL: alice}, advURL, ErrServer},
		{"so is a refused connection", fakeDNS{advHost: local4}, map[string]string{advURL: "!fail", dirURL: alice}, advURL, nil},
		{"direct", fakeDNS{}, map[string]string{dirURL: alice}, dirURL, nil},
		{"an address is enough, whatever becomes of the question for IPv6", fakeDNS{advHost: local4, "openpgpkey.example.org. 28": nil}, map[string]string{advURL: alice}, advURL, nil},
		{"and for IPv4", fakeDNS{advHost: nil, "openpgpkey.example.org. 28": {net.IPv6loopback}}, map[string]string{advURL: alice}, advURL, nil},
		{"no address known for sure", fakeDNS{"openpgpkey.example.org. 28": nil}, map[string]string{dirURL: alice}, "", ErrServer},
		{"a failing name server is no reason for direct", fakeDNS{advHost: nil}, map[string]string{dirURL: alice}, "", ErrServer},
	} {
		w := &web{pages: tt.pages}
		c := Client{Resolver: tt.dns, HTTP: &http.Client{Transport: w}}
		l, err := c.WKD(t.Context(), address(t, "alice@example.org"))
		asked := ""
		if len(w.asked) > 0 {
			asked, _, _ = strings.Cut(w.asked[0], "?")
		}
		if asked != tt.asked || len(w.asked) > 1 {
			t.Errorf("%s: asked %v", tt.name, w.asked)
		}
		wantErr := tt.err != nil || tt.pages[advURL] == "!fail"
		if (err != nil) != wantErr || tt.err != nil && !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err == nil && (len(l.Certs) != 1 || !bytes.Equal(l.Certs[0].Bytes(), []byte(alice)) || l.Mechanism != ByWKD || !strings.HasPrefix(l.Source, tt.asked)) {
			t.Errorf("%s: %+v", tt.name, l)
		}
	}
}

func TestClientSRV(t *testing.T) {
	alice := string(ring(t, "alice"))
	srv := func(prio, port uint16, target string) []byte {
		w, err := packName(target)
		if err != nil {
			t.Fatal(err)
		}
		return append([]byte{byte(prio >> 8), byte(prio), 0, 0, byte(port >> 8), byte(port)}, w...)
	}
	const path = "/.well-known/openpgpkey/hu/" + aliceHash
	for _, tt := range []struct {
		name string
		srvs [][]byte
		url  string
	}{
		{"none", nil, dirURL},
		{"within", [][]byte{srv(0, 443, "WKD.example.org.")}, "https://wkd.example.org" + path},
		{"the domain itself, port", [][]byte{srv(0, 8443, "example.org.")}, "https://example.org:8443" + path},
		{"foreign first", [][]byte{srv(1, 4711, "wkd.example.org."), srv(0, 443, "wkd.example.net.")}, "https://wkd.example.org:4711" + path},
		{"only foreign", [][]byte{srv(0, 443, "evilexample.org."), srv(0, 443, "example.org.evil.example.")}, dirURL},
		{"rubbish", [][]byte{{1, 2, 3}, {0, 0, 0, 0, 0, 0, 200, 'x'}}, dirURL},
	} {
		w := &web{pages: map[string]string{tt.url: alice}}
		dns := fakeDNS{}
		if tt.srvs != nil {
			dns["_openpgpkey._tcp.example.org. 33"] = tt.srvs
		}
		c := Client{Resolver: dns, HTTP: &http.Client{Transport: w}, SRV: true}
		if _, err := c.WKD(t.Context(), address(t, "alice@example.org")); err != nil {
			t.Errorf("%s: %v, asked %v", tt.name, err, w.asked)
		}
	}
	if _, _, ok := SRVTarget("example.org", []*net.SRV{{Target: "."}, {Target: "a b.example.org."}, {Target: ""}}); ok {
		t.Error("an impossible target")
	}
}

func TestClientLimits(t *testing.T) {
	a := address(t, "alice@example.org")
	alice := string(ring(t, "alice"))
	fetch := func(pages map[string]string) (Located, *web, error) {
		w := &web{pages: pages}
		c := Client{Resolver: fakeDNS{advHost: local4}, HTTP: &http.Client{Transport: w}}
		l, err := c.WKD(t.Context(), a)
		return l, w, err
	}
	// Redirects: within the host, three of them.
	next := func(i int) string { return fmt.Sprintf("https://openpgpkey.example.org/%d", i) }
	pages := map[string]string{advURL: "!302 " + next(1), next(1): "!302 " + next(2), next(2): "!302 " + next(3), next(3): alice}
	if l, _, err := fetch(pages); err != nil || len(l.Certs) != 1 {
		t.Errorf("three redirects: %v", err)
	}
	pages[next(3)], pages[next(4)] = "!302 "+next(4), alice
	if _, _, err := fetch(pages); !errors.Is(err, ErrServer) {
		t.Errorf("four redirects: %v", err)
	}
	for _, to := range []string{"https://evil.example/key", "http://openpgpkey.example.org/key", "https://openpgpkey.example.org:444/key"} {
		if _, w, err := fetch(map[string]string{advURL: "!302 " + to, to: alice}); !errors.Is(err, ErrServer) || len(w.asked) != 1 {
			t.Errorf("redirect to %s: %v, asked %v", to, err, w.asked)
		}
	}
	// Size, number, other people's keys, armor.
	if _, _, err := fetch(map[string]string{advURL: strings.Repeat(alice, 1+MaxKeyFile/414)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if l, _, err := fetch(map[string]string{advURL: strings.Repeat(alice, 7)}); err != nil || len(l.Certs) != MaxKeysPerAddress || len(l.Problems) != 2 {
		t.Errorf("seven keys: %d, %v, %v", len(l.Certs), l.Problems, err)
	}
	if _, _, err := fetch(map[string]string{advURL: string(ring(t, "bob"))}); !errors.Is(err, ErrNotFound) || !errors.Is(err, ErrNoUserID) {
		t.Errorf("somebody else's key: %v", err)
	}
	if l, _, err := fetch(map[string]string{advURL: string(ring(t, "bob")) + alice}); err != nil || len(l.Certs) != 1 || len(l.Problems) != 1 {
		t.Errorf("hers among others: %v, %v", l.Problems, err)
	}
	if l, _, err := fetch(map[string]string{advURL: armored([]byte(alice))}); err != nil || len(l.Certs) != 1 || len(l.Problems) != 1 || !errors.Is(l.Problems[0], ErrArmor) {
		t.Errorf("armored: %v, %v", l.Problems, err)
	}
	if l, _, err := fetch(map[string]string{advURL: alice + alice[:100]}); err != nil || len(l.Certs) != 1 || len(l.Problems) != 1 {
		t.Errorf("second one truncated: %v, %v", l.Problems, err)
	}
	for _, body := range []string{"", "<html>no</html>", "\x94\x06\x04\x00\x00\x00\x00\x01"} {
		if _, _, err := fetch(map[string]string{advURL: body}); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestClientDNS(t *testing.T) {
	a := address(t, "alice@example.org")
	alice, bob := ring(t, "alice"), ring(t, "bob")
	dane, err1 := a.DANEName()
	cert, err2 := a.CERTName()
	pka, err3 := a.PKAName()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	pgp := func(b []byte) []byte { return append(certHeader(CertPGP), b...) }
	ipgp := func(name, url string) []byte {
		r, err := CERTIPGP(a, key(t, name).Fingerprint(), url)
		if err != nil {
			t.Fatal(err)
		}
		return r.Data
	}
	w := &web{pages: map[string]string{"http://keys.example/a": string(bob) + string(alice), "http://keys.example/b": string(bob)}}
	for _, tt := range []struct {
		name string
		m    Mechanism
		dns  fakeDNS
		ok   bool
	}{
		{"DANE", ByDANE, fakeDNS{dane + " 61": {alice}}, true},
		{"DANE, both keys in the first record", ByDANE, fakeDNS{dane + " 61": {append(bytes.Clone(bob), alice...)}}, true},
		{"DANE, only the first record counts", ByDANE, fakeDNS{dane + " 61": {bob, alice}}, false},
		{"DANE, none", ByDANE, fakeDNS{}, false},
		{"CERT", ByCERT, fakeDNS{cert + " 37": {pgp(alice)}}, true},
		{"CERT, first of type PGP", ByCERT, fakeDNS{cert + " 37": {{0, 1, 0, 0, 0, 9}, {0}, ipgp("alice", ""), pgp(alice)}}, true},
		{"CERT, none of type PGP", ByCERT, fakeDNS{cert + " 37": {ipgp("alice", "")}}, false},
		{"PKA", ByPKA, fakeDNS{pka + " 37": {ipgp("alice", "http://keys.example/a")}}, true},
		{"PKA, the fingerprint decides", ByPKA, fakeDNS{pka + " 37": {ipgp("bob", "http://keys.example/a")}}, false},
		{"PKA, her address is not in the key", ByPKA, fakeDNS{pka + " 37": {ipgp("bob", "http://keys.example/b")}}, false},
		{"PKA without a URL", ByPKA, fakeDNS{pka + " 37": {ipgp("alice", "")}}, false},
		{"PKA with a URL of another kind", ByPKA, fakeDNS{pka + " 37": {ipgp("alice", "file:///etc/passwd")}}, false},
		{"PKA, no file", ByPKA, fakeDNS{pka + " 37": {ipgp("alice", "http://keys.example/none")}}, false},
	} {
		c := Client{Resolver: tt.dns, HTTP: &http.Client{Transport: w}}
		l, err := c.Locate(t.Context(), a, tt.m)
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.ok && (len(l.Certs) != 1 || !bytes.Equal(l.Certs[0].Bytes(), alice) || l.Mechanism != tt.m) {
			t.Errorf("%s: %+v", tt.name, l)
		}
	}
	// In order, until one finds it.
	c := Client{Resolver: fakeDNS{cert + " 37": {pgp(alice)}}, HTTP: &http.Client{Transport: w}}
	if l, err := c.Locate(t.Context(), a); err != nil || l.Mechanism != ByCERT {
		t.Errorf("by default: %v, %v", l.Mechanism, err)
	}
	if _, err := c.Locate(t.Context(), a, ByDANE, ByPKA, Mechanism(9)); !errors.Is(err, ErrNotFound) {
		t.Errorf("nowhere: %v", err)
	}
}

// dnsServer answers queries over UDP and TCP with what f makes of them.
func dnsServer(t *testing.T, f func(q []byte, tcp bool) []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenPacket("udp", l.Addr().String())
	if err != nil {
		l.Close()
		t.Skip("the UDP port of the same number is taken")
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 4096)
		for {
			n, from, err := u.ReadFrom(b)
			if err != nil {
				return
			}
			if m := f(bytes.Clone(b[:n]), false); m != nil {
				u.WriteTo(m, from)
			}
		}
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			var n [2]byte
			if _, err := io.ReadFull(c, n[:]); err == nil {
				b := make([]byte, binary.BigEndian.Uint16(n[:]))
				if _, err := io.ReadFull(c, b); err == nil {
					if m := f(b, true); m != nil {
						c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...))
					}
				}
			}
			c.Close()
		}
	})
	t.Cleanup(func() { l.Close(); u.Close(); wg.Wait() })
	return l.Addr().String()
}

// response makes an answer to q with records of RDATA under the asked name.
func response(q []byte, flags byte, rcode byte, typ uint16, data ...[]byte) []byte {
	question := q[12 : len(q)-11]
	m := append([]byte{q[0], q[1], 0x84 | flags, rcode, 0, 1, 0, byte(len(data)), 0, 0, 0, 0}, question...)
	for _, d := range data {
		m = append(m, 0xc0, 12, byte(typ>>8), byte(typ), 0, 1, 0, 0, 0, 60)
		m = append(binary.BigEndian.AppendUint16(m, uint16(len(d))), d...)
	}
	return m
}

func TestDNS(t *testing.T) {
	big := bytes.Repeat([]byte{0x99}, 60000)
	asked := func(q []byte) string { return string(q[13 : 13+q[12]]) } // the first label
	var mu sync.Mutex
	var transports []string
	server := dnsServer(t, func(q []byte, tcp bool) []byte {
		mu.Lock()
		transports = append(transports, fmt.Sprint(asked(q), tcp))
		mu.Unlock()
		alias := func(target string) []byte { w, _ := packName(target); return response(q, 0, 0, typeCNAME, w) }
		switch asked(q) {
		case "small":
			return response(q, 0, 0, TypeCERT, []byte{0, 3, 0, 0, 0, 1}, []byte{0, 3, 0, 0, 0, 2})
		case "big":
			if !tcp {
				return response(q, 2, 0, TypeOPENPGPKEY)
			}
			return response(q, 0, 0, TypeOPENPGPKEY, big)
		case "alias":
			return alias("small.example.")
		case "loop":
			return alias("pool.example.")
		case "pool":
			return alias("loop.example.")
		case "self":
			return alias("self.example.")
		case "servfail":
			return response(q, 0, 2, TypeCERT)
		case "nodata":
			return response(q, 0, 0, TypeCERT)
		case "other":
			return response(q, 0, 0, typeA, []byte{1, 2, 3, 4})
		case "garbage":
			return append(response(q, 0, 0, TypeCERT)[:6], 0, 9, 0, 0, 0, 0, 1, 'x', 0, 0, 37, 0, 1, 0xff)
		case "silent":
			return nil
		case "wrongid":
			m := response(q, 0, 0, TypeCERT, []byte{0, 3, 0, 0, 0, 1})
			m[0] ^= 1
			return m
		case "wrongname":
			m := response(q, 0, 0, TypeCERT, []byte{0, 3, 0, 0, 0, 1})
			m[13]++
			return m
		}
		return response(q, 0, 3, TypeCERT)
	})
	d := &DNS{Server: server, Timeout: 300 * time.Millisecond}
	look := func(name string, typ uint16) ([][]byte, error) {
		slow := *d
		if name != "silent" && name != "wrongid" && name != "wrongname" && name != "garbage" {
			slow.Timeout = 30 * time.Second
		}
		return slow.LookupRecords(t.Context(), name+".example.", typ)
	}
	for name, n := range map[string]int{"small": 2, "alias": 2, "SMALL": 2} {
		if got, err := look(strings.ToLower(name), TypeCERT); err != nil || len(got) != n {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := look("big", TypeOPENPGPKEY); err != nil || len(got) != 1 || !bytes.Equal(got[0], big) {
		t.Errorf("big: %d, %v", len(got), err)
	}
	for name, want := range map[string]error{
		"nx": ErrNotFound, "nodata": ErrNotFound, "other": ErrNotFound, "self": ErrServer, "servfail": ErrServer, "loop": ErrServer, "silent": nil, "wrongid": nil, "wrongname": nil, "garbage": nil,
	} {
		got, err := look(name, TypeCERT)
		if err == nil || want != nil && !errors.Is(err, want) || want == nil && errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := d.LookupRecords(t.Context(), "relative", 1); !errors.Is(err, ErrName) {
		t.Errorf("relative name: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.LookupRecords(ctx, "silent.example.", 1); err == nil {
		t.Error("cancelled")
	}
	mu.Lock()
	defer mu.Unlock()
	if s := strings.Join(transports, " "); !strings.Contains(s, "bigfalse bigtrue") || strings.Contains(s, "smalltrue") {
		t.Errorf("transports: %s", s)
	}
}

// TestClientOverRealSockets runs the default HTTP client of a Client against
// the Handler, resolving through our DNS, apart from the port and the
// authority that the test needs.
func TestClientOverRealSockets(t *testing.T) {
	w := WKD{Root: t.TempDir(), Options: minimalOptions()}
	update(t, w, ring(t, "alice"))
	s := httptest.NewTLSServer(Handler(os.DirFS(w.Root)))
	defer s.Close()
	dns := fakeDNS{advHost: local4}
	transport := s.Client().Transport.(*http.Transport).Clone()
	dial := DialContext(dns)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(addr)
		return dial(ctx, network, net.JoinHostPort(host, port))
	}
	transport.TLSClientConfig.ServerName = "example.com" // of httptest's certificate
	c := Client{Resolver: dns, HTTP: &http.Client{Transport: transport}}
	l, err := c.WKD(t.Context(), address(t, "alice@example.org"))
	if err != nil || len(l.Certs) != 1 {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := c.WKD(t.Context(), address(t, "nobody@example.org")); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := dial(t.Context(), "tcp", "nowhere.example:443"); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if conn, err := dial(t.Context(), "tcp", plain.Addr().String()); err != nil {
		t.Error(err)
	} else {
		conn.Close()
	}
}

// nothing answers every question with no records and no error.
type nothing struct{}

func (nothing) LookupRecords(context.Context, string, uint16) ([][]byte, error) { return nil, nil }

// TestResolverThatFindsNothing: a resolver of somebody else's may say that by
// an empty answer.
func TestResolverThatFindsNothing(t *testing.T) {
	a, err := ParseAddress("a@example.org")
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{Resolver: nothing{}}
	for name, locate := range map[string]func(context.Context, Address) (Located, error){"DANE": c.DANE, "CERT": c.CERT, "PKA": c.PKA} {
		if _, err := locate(t.Context(), a); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
