package openpgpdns

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// verdicts runs Check and shortens the result: for each question client/by,
// + (takes), or - and the start of the first reason.
func verdicts(t *testing.T, addr string, o Options, ring []byte) map[string]string {
	t.Helper()
	r, err := Check(t.Context(), addr, ReadCerts(bytes.NewReader(ring)), o)
	if err != nil {
		t.Fatalf("%s: %v", addr, err)
	}
	out := map[string]string{}
	for _, q := range r.Questions {
		v := "+"
		if !q.Found() {
			v = "-" + strings.Join(q.Refused, "; ")
		}
		out[q.Client+"/"+q.Mechanism.String()] = v + " | " + strings.Join(q.Remarks, "; ")
	}
	return out
}

func TestCheck(t *testing.T) {
	all := ring(t, "alice", "bob", "carol.upper", "aerger-upper", "joerg", "joerg-nfd", "dora", "erin", "rita", "ursula", "gocrypto-v6-ed25519")
	for _, tt := range []struct{ addr, question, want string }{
		{"alice@example.org", "GnuPG/wkd", "+"},
		{"alice@example.org", "Sequoia sq/wkd", "+"},
		{"alice@example.org", "browsers/wkd", "+"},
		{"alice@example.org", "GnuPG/dane", "+"},
		{"alice@example.org", "GnuPG/cert", "+"},
		{"alice@example.org", "GnuPG/pka", "+ | only GnuPG before 2.3"},
		{"ALICE@Example.org", "GnuPG/wkd", "+"},
		{"ALICE@Example.org", "Sequoia sq/wkd", "-no user ID spells"},
		{"nobody@example.org", "GnuPG/wkd", "-nothing is published"},
		{"nobody@example.org", "GnuPG/cert", "-nothing is published"},
		{"ÄRGER@example.org", "GnuPG/wkd", "+"},
		{"ÄRGER@example.org", "Sequoia sq/wkd", "-nothing is published there; the key is published under ewd7piirpeasam9iz8or84x4be3xhxqw"},
		{"ÄRGER@example.org", "browsers/wkd", "-nothing is published there; the key is published under ewd7"},
		{"jörg@example.org", "Sequoia sq/wkd", "-sq 0.27 cannot ask"},
		{"carol.upper@example.org", "Sequoia sq/wkd", "-no user ID spells"},
		{"CAROL.Upper@EXAMPLE.ORG", "Sequoia sq/wkd", "+"},
		{"CAROL.Upper@EXAMPLE.ORG", "RFC 7929/dane", "+"},
		{"Alice@example.org", "RFC 7929/dane", "-nothing is published there"},
		{"dora@xn--bcher-kva.example", "GnuPG/dane", "-the user ID spells the domain otherwise"},
		{"dora@xn--bcher-kva.example", "GnuPG/cert", "+"},
		{"dora@bücher.example", "GnuPG/wkd", "-the user ID spells the domain otherwise"},
		{"v6-ed25519@example.org", "GnuPG/wkd", "-gpg 2.2 reads no version 6"},
		{"v6-ed25519@example.org", "browsers/wkd", "+"},
	} {
		got := verdicts(t, tt.addr, minimalOptions(), all)[tt.question]
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s, %s: %q, want %q", tt.addr, tt.question, got, tt.want)
		}
	}
	for addr, remark := range map[string]string{
		"erin@example.org": "expired on 2024-12-31", "rita@example.org": ": revoked", "ursula.old@example.org": "the user ID is revoked", "bob@example.org": "over TCP",
	} {
		if got := verdicts(t, addr, minimalOptions(), all)["GnuPG/dane"]; !strings.Contains(got, remark) {
			t.Errorf("%s: %q lacks %q", addr, got, remark)
		}
	}
	if got := verdicts(t, "alice@example.org", minimalOptions(), all)["GnuPG/dane"]; got != "+ | " {
		t.Errorf("alice: %q", got)
	}
	// The key for encryption is missing when the subkey is gone.
	c, err := ParseCert(ring(t, "alice"))
	if err != nil {
		t.Fatal(err)
	}
	sign := c.data[:c.packets[3].start]
	if got := verdicts(t, "alice@example.org", minimalOptions(), sign)["GnuPG/wkd"]; !strings.Contains(got, "no valid encryption key") {
		t.Errorf("without subkey: %q", got)
	}
	// Both versions, on demand.
	mixed := append(ring(t, "alice"), bytes.Replace(ring(t, "gocrypto-v6-ed25519"), []byte("<v6-ed25519@example.org>"), []byte("<alice@example.org>     "), 1)...)
	o := minimalOptions()
	o.AllowMixedVersions = true
	r, err := Check(t.Context(), "alice@example.org", ReadCerts(bytes.NewReader(mixed)), o)
	if err != nil {
		t.Fatal(err)
	}
	// Check verifies: the version 6 user ID is forged and therefore left out.
	if q := r.Questions[0]; !q.Found() || len(q.Fingerprints) != 1 || r.ProblemCount != 1 || !errors.Is(r.Problems[0], ErrBadSignature) {
		t.Errorf("forged: %+v, %v", q, r.Problems)
	}
	if _, err := Check(t.Context(), "not an address", ReadCerts(bytes.NewReader(all)), o); !errors.Is(err, ErrAddress) {
		t.Error(err)
	}
	if _, err := Check(t.Context(), "a@b.example", ReadCerts(bytes.NewReader([]byte{0x94, 6, 4, 0, 0, 0, 0, 1})), o); !errors.Is(err, ErrSecretKey) {
		t.Error(err)
	}
	// An address that no CERT record can have.
	long := strings.Repeat("l", 64) + "@example.org"
	if got := verdicts(t, long, o, all)["GnuPG/cert"]; !strings.HasPrefix(got, "-openpgpdns: ") || !strings.Contains(got, "63 octets") {
		t.Errorf("long local part: %q", got)
	}
}

// TestFilterOptions: what each option keeps and drops, by packet.
func TestFilterOptions(t *testing.T) {
	packets := func(f Filter, c *Cert) string {
		out, err := f.Append(nil, c)
		if err != nil {
			return err.Error()
		}
		d, err := ParseCert(out)
		if err != nil {
			return err.Error()
		}
		var s []string
		for _, p := range d.packets {
			if p.tag == tagSignature {
				s = append(s, fmt.Sprintf("%02x", p.sigType))
			} else {
				s = append(s, fmt.Sprintf("[%d]", p.tag))
			}
		}
		return strings.Join(s, " ")
	}
	unknown, err := ParseCert(data(t, "mutations/private60_mid.pgp"))
	if err != nil {
		t.Fatal(err)
	}
	now := oracleTime
	for _, tt := range []struct {
		c    *Cert
		f    Filter
		want string
	}{
		{key(t, "thea"), Filter{}, "[6] [13] 13 [14] 18"},
		{key(t, "thea"), Filter{ThirdParty: true}, "[6] [13] 13 10 10 [14] 18"},
		{key(t, "phil"), Filter{UserAttributes: true}, "[6] [13] 13 [17] 13 [14] 18"},
		{key(t, "phil"), Filter{}, "[6] [13] 13 [14] 18"},
		{key(t, "ursula"), Filter{}, "[6] [13] 13 [13] 30 13 [14] 18"},
		{key(t, "ursula"), Filter{LatestSelfSigOnly: true}, "[6] [13] 13 [13] 30 [14] 18"},
		{key(t, "ursula"), Filter{DropRevokedUserIDs: true}, "[6] [13] 13 [14] 18"},
		{key(t, "ursula"), Filter{DropRevokedUserIDs: true, Address: address(t, "ursula.old@example.org")}, "openpgpdns: certificate 1 (EAE2BEC6FCCC243BC49F4C0F1DC1385B58269669): \"ursula.old@example.org\": no self-signed user ID with this address"},
		{key(t, "rita"), Filter{}, "[6] 20 [13] 13 [14] 18"},
		{key(t, "subexp"), Filter{}, "[6] [13] 13 [14] 18 [14] 18"},
		{key(t, "subexp"), Filter{DropExpiredSubkeys: true, Now: now}, "[6] [13] 13 [14] 18"},
		{key(t, "subexp"), Filter{DropExpiredSubkeys: true, Now: now.AddDate(-2, 0, 0)}, "[6] [13] 13 [14] 18 [14] 18"},
		{unknown, Filter{}, "[6] [13] 13 [14] 18"},
		{unknown, Filter{UnknownPackets: true}, "[6] [13] 13 [60] [14] 18"},
		{key(t, "gocrypto-v6-ed25519"), Minimal(), "[6] 1f [13] 13 [14] 18"}, // the direct-key signature stays
	} {
		if got := packets(tt.f, tt.c); got != tt.want {
			t.Errorf("%+v:\n got %s\nwant %s", tt.f, got, tt.want)
		}
	}
}

// TestUserIDs: what is said about each.
func TestUserIDs(t *testing.T) {
	var got []string
	for u := range key(t, "ursula").UserIDs(oracleTime) {
		got = append(got, fmt.Sprintf("%s %v %v %v", u.Address, u.SelfSigned, u.Revoked, u.Expired))
	}
	if strings.Join(got, ",") != "ursula@example.org true false false,ursula.old@example.org true true false" {
		t.Error(got)
	}
	n := 0
	for range key(t, "bob").UserIDs(oracleTime) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Error("the loop does not end")
	}
	for range key(t, "bob").Addresses() {
		break
	}
	if !key(t, "rita").Revoked() || key(t, "alice").Revoked() {
		t.Error("Revoked")
	}
}
