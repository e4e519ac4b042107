package openpgpdns

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// seedFingerprint and the strings are those of the article that gave this
// package its subject.
const seedFingerprint = "646B0F089DD5022CF5BA29F9F4DFA1D665C135D6"

func TestSeedRecords(t *testing.T) {
	fpr := unhex(t, seedFingerprint)
	a := address(t, "asdf@slxh.eu")
	const name = "8s1wnic3dnwyto1yfq7fyrzsaaf1q3oh._pka.slxh.eu. IN "
	for _, tt := range []struct {
		url  string
		form Form
		want string
	}{
		{"", Portable, name + "CERT 6 0 0 FGRrDwid1QIs9bop+fTfodZlwTXW\n"},
		{"", Mnemonic, name + "CERT IPGP 0 0 FGRrDwid1QIs9bop+fTfodZlwTXW\n"},
		{"", Generic, name + "TYPE37 \\# 26 000600000014" + strings.ToLower(seedFingerprint) + "\n"},
		{"", GPG, "$ORIGIN _pka.slxh.eu.\n8s1wnic3dnwyto1yfq7fyrzsaaf1q3oh TYPE37 \\# 26 0006 0000 00 14 " + seedFingerprint + "\n\n"},
		{"https://slxh.eu/keys/pgp/65C135D6", Portable, name + "CERT 6 0 0 FGRrDwid1QIs9bop+fTfodZlwTXWaHR0cHM6Ly9zbHhoLmV1L2tleXMvcGdwLzY1QzEzNUQ2\n"},
	} {
		r, err := CERTIPGP(a, fpr, tt.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.AppendText(nil, tt.form, -1)); got != tt.want {
			t.Errorf("%v:\n got %s\nwant %s", tt.form, got, tt.want)
		}
		f, url, ok := r.IPGP()
		if !ok || !bytes.Equal(f, fpr) || url != tt.url {
			t.Errorf("IPGP() = %X, %q, %v", f, url, ok)
		}
	}
	// The label of the article's OPENPGPKEY example, of the same address.
	if got := a.DANELabel(); got != "f0e4c2f76c58916ec258f246851bea091d14d4247a2fc3e18694461b" {
		t.Error(got)
	}
}

func TestIPGPVersion6(t *testing.T) {
	c := key(t, "gocrypto-v6-ed25519")
	r, err := CERTIPGP(address(t, "v6-ed25519@example.org"), c.Fingerprint(), "")
	if err != nil {
		t.Fatal(err)
	}
	// 5 + 1 + 32 octets, and the length octet is 32.
	want := "TYPE37 \\# 38 0006 0000 00 20 " + strings.ToUpper(hex.EncodeToString(c.Fingerprint()))
	if got := string(r.AppendText(nil, GPG, 0)); !strings.Contains(got, want) {
		t.Errorf("got %s", got)
	}
	for _, n := range []int{0, 16, 21, 33} {
		if _, err := CERTIPGP(address(t, "a@b.example"), make([]byte, n), ""); !errors.Is(err, ErrRecord) {
			t.Errorf("fingerprint of %d octets: %v", n, err)
		}
	}
	for _, url := range []string{"https://a/\n", "https://a/ b", "https://ä/"} {
		if _, err := CERTIPGP(address(t, "a@b.example"), make([]byte, 20), url); !errors.Is(err, ErrRecord) {
			t.Errorf("URL %q: %v", url, err)
		}
	}
}

// TestNames: the limits of labels and names, to the octet.
func TestNames(t *testing.T) {
	// domain makes a domain that takes n octets on the wire.
	domain := func(n int) string {
		var labels []string
		for n--; n > 0; { // the root
			k := min(n-1, 63)
			if n-1-k == 1 { // no label may be left with nothing but its length
				k--
			}
			labels = append(labels, strings.Repeat("d", k))
			n -= k + 1
		}
		return strings.Join(labels, ".")
	}
	for _, tt := range []struct {
		name  string
		limit int // of the domain on the wire
		f     func(Address) (string, error)
		local string
	}{
		{"DANE", 186, Address.DANEName, "a"},
		{"PKA", 217, Address.PKAName, "a"},
		{"CERT", 253, Address.CERTName, "a"},
		{"CERT, long local part", 191, Address.CERTName, strings.Repeat("l", 63)},
		{"CERT, two labels", 251, Address.CERTName, "a.b"},
	} {
		for n := tt.limit - 1; n <= tt.limit+1; n++ {
			a := Address{tt.local, domain(n)}
			if w, err := packName(a.Domain + "."); err != nil || len(w) != n {
				t.Fatalf("domain of %d octets has %d: %v", n, len(w), err)
			}
			name, err := tt.f(a)
			if (err == nil) != (n <= tt.limit) {
				t.Errorf("%s: domain of %d octets: %v", tt.name, n, err)
			}
			if err != nil && !errors.Is(err, ErrName) {
				t.Errorf("%s: %v", tt.name, err)
			}
			if err == nil && n == tt.limit {
				if w, _ := packName(name); len(w) != 255 {
					t.Errorf("%s: the longest name has %d octets", tt.name, len(w))
				}
			}
		}
	}
	for local, want := range map[string]string{
		"bob.multi": "bob.multi.x.example.", "bob+tag": "bob+tag.x.example.", `a"b`: `a\"b.x.example.`, "a;b": `a\;b.x.example.`,
		`a\b`: `a\\b.x.example.`, "a(b)": `a\(b\).x.example.`, "$a": `\$a.x.example.`, "jörg": `j\195\182rg.x.example.`,
		strings.Repeat("l", 64): "", "a..b": "", ".a": "", "a.": "",
	} {
		got, err := Address{local, "x.example"}.CERTName()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("CERTName of %q: %q, %v; want %q", local, got, err, want)
		}
		if err != nil {
			continue
		}
		// The name survives a zone file.
		r := Record{Name: got, Type: TypeCERT, Data: []byte{0, 3, 0, 0, 0, 0x98}}
		back, err := ParseRecord(string(r.AppendText(nil, Portable, 0)))
		if err != nil || back.Name != got {
			t.Errorf("%q: parsed back as %q, %v", local, back.Name, err)
		}
	}
	for _, name := range []string{"", "a", "a..", ".a.", "a.b", `a\`, `a\9`, `\300.`, strings.Repeat("x", 64) + "."} {
		if _, err := packName(name); err == nil {
			t.Errorf("packName(%q) succeeded", name)
		}
	}
}

func TestDomainToASCII(t *testing.T) {
	for in, want := range map[string]string{
		"Example.ORG": "example.org", "example.org.": "example.org", "bücher.example": "xn--bcher-kva.example", "BÜCHER.example": "xn--bcher-kva.example",
		"a_b.example": "a_b.example", strings.Repeat("a", 63) + ".x": strings.Repeat("a", 63) + ".x",
		"": "", ".": "", "a..b": "", "a b": "", "a;b": "", "a\nb": "", strings.Repeat("a", 64): "", "ü;.example": "",
		strings.Repeat("abcdefg.", 32): "", strings.Repeat("abcdefg.", 31) + "abcde": strings.Repeat("abcdefg.", 31) + "abcde",
	} {
		got, err := DomainToASCII(in)
		if got != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrName) {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
}

// TestAddressFromUserID: gpg's rule for the mailbox of a user ID.
func TestAddressFromUserID(t *testing.T) {
	for uid, want := range map[string]string{
		"alice@example.org":                       "alice@example.org",
		"Alice <Alice@Example.ORG>":               "alice@example.org",
		"<alice@example.org>":                     "alice@example.org",
		"Alice (work) <alice@example.org> extra":  "alice@example.org",
		"Bob D. <bob@test.test>":                  "bob@test.test", // not RFC 5322
		"\"B, C\" [x] <bc@example.org>":           "bc@example.org",
		"x <a@example.org> <b@example.org>":       "a@example.org",
		"\xff\xfe <latin\xe9@example.org>":        "latin\xe9@example.org",
		"Ä <ÄRGER@example.org>":                   "Ärger@example.org", // ASCII letters only
		"Dora <dora@bücher.example>":              "dora@xn--bcher-kva.example",
		"a..b <a..b@example.org>":                 "a..b@example.org", // in brackets anything goes before @
		"a;b <a;b@example.org>":                   "a;b@example.org",
		"a;b@example.org":                         "",
		"a_b@exam_ple.org":                        "a_b@exam_ple.org", // as gpg 2.2.40
		"a@_":                                     "a@_",
		"a..b@example.org":                        "",
		"Alice alice@example.org":                 "",
		"Alice <alice@example.org":                "",
		"Alice <>":                                "",
		"Alice <@example.org>":                    "",
		"Alice <alice@>":                          "",
		"Alice <alice>":                           "",
		"Alice <a@b@example.org>":                 "",
		"Alice <alice@example.org.>":              "",
		"Alice <alice@example..org>":              "",
		"Alice <al ice@example.org>":              "",
		"Alice <al\x00ice@example.org>":           "",
		"Alice <al\x7fice@example.org>":           "",
		"Alice < alice@example.org>":              "",
		"alice@exa_mple!org":                      "",
		"Alice <alice@" + strings.Repeat("a", 64): "",
		"": "",
	} {
		a, ok := AddressFromUserID([]byte(uid))
		got := ""
		if ok {
			got = a.String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", uid, got, want)
		}
	}
}

func TestStrictDANELabel(t *testing.T) {
	plain := func(s string) string { l, _ := StrictDANELabel(s); return l }
	for in, same := range map[string]string{
		`"Joe.Doe"`: "Joe.Doe", `"Joe\.Doe"`: "Joe.Doe", "Joe . Doe": "Joe.Doe", "Joe(his (nested\\) name)).Doe": "Joe.Doe",
		"jo\u0308rg": "j\u00f6rg", "\r\n Joe.Doe ": "Joe.Doe",
	} {
		if plain(in) == "" || plain(in) != plain(same) {
			t.Errorf("%q and %q: %s, %s", in, same, plain(in), plain(same))
		}
	}
	if plain(`"a b"`) == plain("ab") {
		t.Error("white space in quotes was dropped")
	}
	for _, in := range []string{"", `"a`, `a\`, "(a", "a)", "a@b", "\xff", `""`, "a;b"} {
		if l, err := StrictDANELabel(in); err == nil || !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %s, %v", in, l, err)
		}
	}
}

func TestWKDURL(t *testing.T) {
	a := address(t, "Joe.Doe@Example.ORG")
	for m, want := range map[Method]string{
		Advanced: "https://openpgpkey.example.org/.well-known/openpgpkey/example.org/hu/iy9q119eutrkn8s1mk4r39qejnbu3n5q?l=joe.doe",
		Direct:   "https://example.org/.well-known/openpgpkey/hu/iy9q119eutrkn8s1mk4r39qejnbu3n5q?l=joe.doe",
	} {
		if got := a.WKDURL(m); got != want {
			t.Errorf("%v: %s", m, got)
		}
	}
	for in, want := range map[string]string{
		"x <a&b=c#d@x.example>": "a%26b%3Dc%23d", "x <a%20b@x.example>": "a%2520b", "x <a+b@x.example>": "a%2Bb", "x <jörg@x.example>": "j%C3%B6rg",
	} {
		if got := address(t, in).WKDURL(Direct); !strings.HasSuffix(got, "?l="+want) {
			t.Errorf("%s: %s", in, got)
		}
	}
	if got := address(t, "a@bücher.example").WKDURL(Advanced); !strings.HasPrefix(got, "https://openpgpkey.xn--bcher-kva.example/.well-known/openpgpkey/xn--bcher-kva.example/hu/") {
		t.Error(got)
	}
}

// TestTextRoundTrip: every form and width reads back as the same record.
func TestTextRoundTrip(t *testing.T) {
	sizes := []int{1, 2, 3, 47, 48, 49, 400, 3000, 65000}
	for _, n := range sizes {
		d := make([]byte, n)
		for i := range d {
			d[i] = byte(i*7 + n)
		}
		for _, r := range []Record{
			{Name: "x._openpgpkey.example.org.", Type: TypeOPENPGPKEY, Data: d},
			{Name: `a\"b.example.org.`, Type: TypeCERT, Data: append([]byte{0, 3, 0, 0, 0}, d...), TTL: 0, HasTTL: true},
			{Name: "x._pka.example.org.", Type: TypeCERT, Data: append([]byte{0, 6, 0, 0, 0, 0}, d...), TTL: 86400, HasTTL: true},
			{Name: "other.example.org.", Type: TypeCERT, Data: append([]byte{1, 2, 3, 4, 5}, d...)},
		} {
			for f := Portable; f <= GPG; f++ {
				for _, width := range []int{0, -1, 1, 4, 7, 76} {
					text := string(r.AppendText(nil, f, width))
					got, err := ParseRecord(text)
					want := r
					if f == GPG {
						want.TTL, want.HasTTL = 0, false
					}
					if err != nil || got.Name != want.Name || got.Type != want.Type || got.TTL != want.TTL || got.HasTTL != want.HasTTL || !bytes.Equal(got.Data, want.Data) {
						t.Fatalf("%v, width %d, %d octets: %v\n%.300s", f, width, n, err, text)
					}
					if f != GPG && width > 0 {
						for l := range strings.Lines(text) {
							if l = strings.TrimSuffix(strings.TrimSpace(l), " )"); strings.HasPrefix(l, r.Name) {
								continue
							} else if len(l) > max(width, 4) {
								t.Fatalf("%v: line of %d digits, width %d", f, len(l), width)
							}
						}
					}
				}
			}
		}
	}
}

// TestGPGWholeLines: after a full line gpg begins the next one at once, so that
// data of a multiple of 32 octets end with an empty one (gpg 2.2.40, a key of 800
// octets).
func TestGPGWholeLines(t *testing.T) {
	for n, want := range map[int]string{
		31: "\t" + strings.Repeat("ab", 31) + "\n\t)\n\n",
		32: "\t" + strings.Repeat("ab", 32) + "\n\t\n\t)\n\n",
		33: "\t" + strings.Repeat("ab", 32) + "\n\tab\n\t)\n\n",
		64: strings.Repeat("\t"+strings.Repeat("ab", 32)+"\n", 2) + "\t\n\t)\n\n",
	} {
		r := Record{Name: "a._openpgpkey.example.org.", Type: TypeOPENPGPKEY, Data: bytes.Repeat([]byte{0xab}, n)}
		text := string(r.AppendText(nil, GPG, 0))
		if want = "$ORIGIN _openpgpkey.example.org.\na TYPE61 \\# " + strconv.Itoa(n) + " (\n" + want; text != want {
			t.Errorf("%d octets:\n%s\nwant\n%s", n, text, want)
		}
		if back, err := ParseRecord(text); err != nil || !bytes.Equal(back.Data, r.Data) {
			t.Errorf("%d octets: %x, %v", n, back.Data, err)
		}
	}
}

func TestParseRecord(t *testing.T) {
	for text, want := range map[string]string{
		"a.example. OPENPGPKEY AQID+w==":                                  "a.example. 61 010203fb",
		"a.example. 60 IN OPENPGPKEY AQID +w==":                           "a.example. 61 010203fb",
		"a.example. in 1h openpgpkey ( AQ ; comment )\n ID\n\t+w== )":     "a.example. 61 010203fb",
		"a.example. TYPE61 \\# 4 01 02 03 FB":                             "a.example. 61 010203fb",
		"a.example. OPENPGPKEY \\# 4 010203fb":                            "a.example. 61 010203fb",
		"a.example. TYPE61 \\# 4 ( 010 2\n\t03fb )":                       "a.example. 61 010203fb",
		"a.example. CLASS1 CERT PGP 0 0 AQID":                             "a.example. 37 0003000000010203",
		"a.example. CERT pgp 65535 RSASHA256 AQID":                        "a.example. 37 0003ffff08010203",
		"a.example. CERT URI 0 ED25519 AQID":                              "a.example. 37 00fd00000f010203",
		"a.example. CERT 65535 0 255 AQID":                                "a.example. 37 ffff0000ff010203",
		"a.example. TYPE37 \\# 26 0006 0000 00 14 " + seedFingerprint:     "a.example. 37 000600000014" + strings.ToLower(seedFingerprint),
		"$ORIGIN example.\na 1w2d3h4m5s CERT 3 0 0 AQID":                  "a.example. 37 0003000000010203",
		"$ORIGIN example.\n$TTL 5\n@ CERT 3 0 0 AQID":                     "example. 37 0003000000010203",
		"$ORIGIN example.\nb A 192.0.2.1\n  CERT 3 0 0 AQID":              "b.example. 37 0003000000010203",
		"$ORIGIN .\na.example CERT 3 0 0 AQID":                            "a.example. 37 0003000000010203",
		"\"a.example.\" CERT \"3\" 0 0 \"AQID\"":                          "a.example. 37 0003000000010203",
		"a.example. CERT 3 0 0 AQID\r\n":                                  "a.example. 37 0003000000010203",
		"a.example. TXT \"CERT 3 0 0 ; (\"\na.example. CERT 3 0 0 AQID\n": "a.example. 37 0003000000010203",

		"":                                          "",
		"a.example. A 192.0.2.1":                    "",
		"a CERT 3 0 0 AQID":                         "", // relative
		"a.example. CERT 3 0 0":                     "",
		"a.example. CERT 3 0 0 AQI":                 "", // incomplete base64
		"a.example. CERT 3 0 0 AQI*":                "",
		"a.example. CERT 3 0 0 AQJ=":                "", // stray bits
		"a.example. CERT 65536 0 0 AQID":            "",
		"a.example. CERT 3 65536 0 AQID":            "",
		"a.example. CERT 3 0 256 AQID":              "",
		"a.example. CERT FOO 0 0 AQID":              "",
		"a.example. CERT 6 0 0 //8=":                "", // IPGP: 255 octets announced
		"a.example. OPENPGPKEY":                     "",
		"a.example. OPENPGPKEY AQI":                 "",
		"a.example. OPENPGPKEY zzzz$":               "",
		"a.example. OPENPGPKEY \"\"":                "",
		"a.example. TYPE61 AQID":                    "",
		"a.example. TYPE61 \\# 3 010203fb":          "",
		"a.example. TYPE61 \\# 5 010203fb":          "",
		"a.example. TYPE61 \\# 4 010203f":           "",
		"a.example. TYPE61 \\# x 010203fb":          "",
		"a.example. TYPE61 \\# 65536 00":            "",
		"a.example. TYPE61 \\#":                     "",
		"a.example. TYPE61 \\# 0":                   "",
		"a.example. CH CERT 3 0 0 AQID":             "",
		"a.example. CERT ( 3 0 0 AQID":              "",
		"a.example. CERT 3 0 0 AQID )":              "",
		"a.example. CERT 3 0 0 \"AQID":              "",
		"a.example. CERT 3 0 0 AQID\\":              "",
		"a..example. CERT 3 0 0 AQID":               "",
		"$INCLUDE /etc/passwd\na. CERT 3 0 0 AQID":  "",
		"$GENERATE 1-9 a$ CERT 3 0 0 AQID":          "",
		"$ORIGIN\na. CERT 3 0 0 AQID":               "",
		"$TTL x\na. CERT 3 0 0 AQID":                "",
		"a. CERT 3 0 0 AQID\nb. CERT 3 0 0 AQID":    "", // two
		"a.example. 99999999999 CERT 3 0 0 AQID":    "",
		strings.Repeat("x", 64) + ". CERT 3 0 0 AA": "",
	} {
		r, err := ParseRecord(text)
		got := ""
		if err == nil {
			got = r.Name + " " + map[uint16]string{37: "37", 61: "61"}[r.Type] + " " + hex.EncodeToString(r.Data)
		}
		if got != want {
			t.Errorf("%q:\n got %q, %v\nwant %q", text, got, err, want)
		}
		if err != nil && !errors.Is(err, ErrRecord) && !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", text, err)
		}
	}
	r, err := ParseRecord("$TTL 1h\na. 0 CERT 3 0 0 AQID")
	if err != nil || r.TTL != 0 || !r.HasTTL {
		t.Errorf("explicit TTL 0: %v %v %v", r.TTL, r.HasTTL, err)
	}
	if r, _ = ParseRecord("$TTL 1h30\na. CERT 3 0 0 AQID"); r.TTL != 3630 || !r.HasTTL {
		t.Errorf("$TTL: %v %v", r.TTL, r.HasTTL)
	}
	if r, _ = ParseRecord("a. CERT 3 0 0 AQID"); r.HasTTL {
		t.Error("a TTL from nowhere")
	}
}

// TestQuotedOwner: what quotes keep together is escaped in the name, so that the
// record's own text has the same name, and nothing that was quoted ends a line
// or begins a comment there. A record needs an owner.
func TestQuotedOwner(t *testing.T) {
	for text, want := range map[string]string{
		`"a b"`:                 `a\032b.example.`,
		`"a;b"`:                 `a\;b.example.`,
		`"a(b)c"`:               `a\(b\)c.example.`,
		"\"a\nb\tc\x7f\"":       `a\010b\009c\127.example.`,
		`"a\"b\\c\065.d"`:       `a\"b\\c\065.d.example.`,
		`"a.other."`:            "a.other.",
		`a"b c"d`:               `ab\032cd.example.`,
		"\"b\xc3\xbccher\"":     "b\xc3\xbccher.example.",
		`""`:                    "",
		" ":                     "",
		"$ORIGIN .\n":           "",
		"$ORIGIN .\n\"\"":       "",
		"$ORIGIN .\n\t60 IN   ": "",
	} {
		var got Record
		for r, err := range ParseZone(strings.NewReader(text+" CERT 3 0 0 AQID\n"), "example") {
			if got = r; err == nil && want == "" || err != nil && (want != "" || !errors.Is(err, ErrName)) {
				t.Errorf("%q: %q, %v", text, r.Name, err)
			}
		}
		if got.Name != want {
			t.Errorf("%q: %q, want %q", text, got.Name, want)
		}
		if want == "" {
			continue
		}
		for _, f := range []Form{Portable, Generic, GPG} {
			if r, err := ParseRecord(string(got.AppendText(nil, f, 0))); err != nil || r.Name != want {
				t.Errorf("%q: %v: %q, %v", text, f, r.Name, err)
			}
		}
	}
}

// TestParseZoneGoesOn: an error names its line and does not end the zone.
func TestParseZoneGoesOn(t *testing.T) {
	zone := "$ORIGIN example.org.\n@ SOA ns host 1 2 3 4 5\na OPENPGPKEY AQID\nb OPENPGPKEY !\n\nc ) x\nd CERT 3 0 0 (\n AQID )\n"
	var got []string
	for r, err := range ParseZone(strings.NewReader(zone), "") {
		if err != nil {
			got = append(got, err.Error())
		} else {
			got = append(got, r.Name)
		}
	}
	want := []string{"a.example.org.", `openpgpdns: "b": bad record: line 4: not complete base64`, "openpgpdns: bad record: line 6: closing parenthesis without an opening one", "d.example.org."}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	n := 0
	for _, err := range ParseZone(strings.NewReader("a. CERT 3 0 0 ("+strings.Repeat("A", maxEntry)), "") {
		if n++; !errors.Is(err, ErrTooLarge) {
			t.Errorf("endless entry: %v", err)
		}
	}
	if n != 1 {
		t.Errorf("endless entry: %d results", n)
	}
}

// TestParseOracleZones reads what gpg printed and finds the same octets there.
func TestParseOracleZones(t *testing.T) {
	f := Minimal()
	f.Now = oracleTime
	for _, n := range names(t, "oracle/gpg-export-dane", 20) {
		want, err := f.Append(nil, key(t, n))
		if err != nil {
			t.Fatal(err)
		}
		zone := data(t, "oracle/gpg-export-dane/"+n+".zone")
		for r, err := range ParseZone(bytes.NewReader(zone), "") {
			if err != nil {
				t.Errorf("%s: %v", n, err)
			} else if !bytes.Equal(r.Data, want) {
				t.Errorf("%s: %s has other octets", n, r.Name)
			}
		}
	}
}

func TestMessageSize(t *testing.T) {
	r := Record{Name: "a.example.", Type: TypeOPENPGPKEY, Data: make([]byte, 100)}
	// Header, question (11 + 4), compressed answer, EDNS.
	if got, want := r.MessageSize(false), 12+15+12+100+11; got != want {
		t.Errorf("%d, want %d", got, want)
	}
	if r.MessageSize(true) <= r.MessageSize(false)+256 {
		t.Error("no room for a signature")
	}
	max := MaxMessage - (12 + 15 + 12 + 11)
	for n := max - 1; n <= max+1; n++ {
		r.Data = make([]byte, n)
		if err := r.Validate(); (err == nil) != (n <= max) || err != nil && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%d octets: %v", n, err)
		}
	}
}

func TestWarnings(t *testing.T) {
	has := func(r Record, f Form, software string) bool {
		for _, w := range r.Warnings(f, 0) {
			if w.Software == software {
				return true
			}
		}
		return false
	}
	small := Record{Name: "a.example.", Type: TypeCERT, Data: []byte{0, 3, 0, 0, 0, 1}}
	if ws := small.Warnings(Portable, 0); len(ws) != 0 {
		t.Errorf("a small portable record: %v", ws)
	}
	if !has(small, Mnemonic, "PowerDNS") || !has(small, Generic, "PowerDNS") || !has(small, GPG, "PowerDNS") {
		t.Error("PowerDNS takes only the portable form")
	}
	big := Record{Name: "a.example.", Type: TypeOPENPGPKEY, Data: make([]byte, 48000)}
	if !has(big, Portable, "ldns") || !has(big, Portable, "DNS") {
		t.Error("48,000 octets")
	}
	ipgp := Record{Name: "a.example.", Type: TypeCERT, Data: append([]byte{0, 6, 0, 0, 0, 20}, make([]byte, 1021)...)}
	if has(ipgp, Portable, "GnuPG") {
		t.Error("1,022 octets of IPGP are fine")
	}
	ipgp.Data = append(ipgp.Data, 0)
	if !has(ipgp, Portable, "GnuPG") {
		t.Error("1,023 octets of IPGP are too many")
	}
	small.Name = `j\195\182rg.example.`
	if !has(small, Portable, "PowerDNS") {
		t.Error("owner beyond ASCII")
	}
	small.Name = `a\\195b.example.`
	if has(small, Portable, "PowerDNS") {
		t.Error("an escaped backslash before digits is ASCII")
	}
}

// TestBug01NotHexadecimal (DNSControl/dnscontrol#4139): the text is base64 with
// its case kept, and is read as such.
func TestBug01NotHexadecimal(t *testing.T) {
	r := Record{Name: "a.example.", Type: TypeOPENPGPKEY, Data: []byte{1, 2, 3, 0xfb}}
	if got := string(r.AppendText(nil, Portable, 0)); got != "a.example. IN OPENPGPKEY AQID+w==\n" {
		t.Error(got)
	}
	lowered, err := ParseRecord("a.example. OPENPGPKEY aqid+w==")
	if err != nil || bytes.Equal(lowered.Data, r.Data) {
		t.Error("the case of base64 must matter")
	}
	// Hexadecimal digits are base64 digits: they parse, as other octets.
	digits, err := ParseRecord("a.example. OPENPGPKEY 010203fb")
	if want, _ := base64.StdEncoding.DecodeString("010203fb"); err != nil || !bytes.Equal(digits.Data, want) {
		t.Error("taken as hexadecimal")
	}
}

// TestBug03LongRecord (NLnetLabs/ldns#119): a key of 60,937 octets is a record,
// with a warning that ldns cannot read it; what no answer can hold is refused.
func TestBug03LongRecord(t *testing.T) {
	huge := data(t, "keys/huge97uid-60937.pgp")
	r := Record{Name: "a._openpgpkey.example.org.", Type: TypeOPENPGPKEY, Data: huge}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	found := false
	for _, w := range r.Warnings(Portable, 0) {
		found = found || w.Software == "ldns"
	}
	if !found {
		t.Error("no warning about ldns")
	}
	back, err := ParseRecord(string(r.AppendText(nil, Generic, 0)))
	if err != nil || !bytes.Equal(back.Data, huge) {
		t.Errorf("does not survive its own text: %v", err)
	}
	c, err := ParseCert(huge)
	if err != nil {
		t.Fatal(err)
	}
	var a Address
	for a = range c.Addresses() {
		break
	}
	if _, err := checked(Record{Name: r.Name, Type: TypeOPENPGPKEY, Data: append(bytes.Clone(huge), huge[:5000]...)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("65,937 octets: %v", err)
	}
	small, err := OPENPGPKEY(a, Minimal(), c)
	if err != nil || len(small.Data) > 2500 {
		t.Errorf("one user ID of 97: %d octets, %v", len(small.Data), err)
	}
}

// TestBug04PortableForm: PowerDNS answers SERVFAIL for mnemonics and for the
// generic form of types it knows, so the default form has neither.
func TestBug04PortableForm(t *testing.T) {
	alice := key(t, "alice")
	a := address(t, "alice@example.org")
	dane, err1 := OPENPGPKEY(a, Filter{}, alice)
	cert, err2 := CERTPGP(a, Filter{}, alice)
	pka, err3 := CERTIPGP(a, alice.Fingerprint(), "")
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]Record{"OPENPGPKEY (": dane, "CERT 3 0 0 (": cert, "CERT 6 0 0 FH62yB3pt4z1/CGCSvB2+JslDSvK": pka} {
		var f Form // the zero value
		text := string(r.AppendText(nil, f, 0))
		if !strings.Contains(text, " IN "+want) || strings.Contains(text, "TYPE") || strings.Contains(text, `\#`) || strings.Contains(text, "PGP 0") {
			t.Errorf("%.120s", text)
		}
	}
}

// TestBug12PKAIsCERT (keybase/keybase-issues#1594): the record is CERT under
// the hash, not TXT "v=pka1" under the local part.
func TestBug12PKAIsCERT(t *testing.T) {
	alice := key(t, "alice")
	r, err := CERTIPGP(address(t, "alice@example.org"), alice.Fingerprint(), "")
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != "kei1q4tipxxu1yj79k9kfukdhfy631xe._pka.example.org." || r.Type != TypeCERT {
		t.Errorf("%s type %d", r.Name, r.Type)
	}
}

// TestBug14PlusAndSlash (dnsimple/dns_erlang#94): + and / are digits.
func TestBug14PlusAndSlash(t *testing.T) {
	const text = "FGRrDwid1QIs9bop+fTfodZlwTXW"
	for _, s := range []string{text, "FGRr/wid1QIs9bop+fTfodZlwT//"} {
		r, err := ParseRecord("a. CERT 6 0 0 " + s)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(r.AppendText(nil, Portable, 0)); got != "a. IN CERT 6 0 0 "+s+"\n" {
			t.Error(got)
		}
	}
}

// TestHex: the digits are those of the standard library, for all octets in all
// places and lengths.
func TestHex(t *testing.T) {
	for n := range 20 {
		for c := range 256 {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(c + 37*i)
			}
			if got, want := string(appendHex([]byte("x"), b)), "x"+hex.EncodeToString(b); got != want {
				t.Fatalf("%x: %s", b, got)
			}
		}
	}
}
