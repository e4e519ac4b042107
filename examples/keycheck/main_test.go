package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"testing"
)

// ring is two certificates: bob@example.org and bob@example.net, and
// carol@example.org. Made for this project.
//
//go:embed testdata/ring.asc
var ring string

func TestCommandLine(t *testing.T) {
	for _, tt := range []struct {
		name, args     string
		status         int
		stdout, stderr string
	}{
		{"help", "-h", 0, "usage: keycheck", ""},
		{"nothing", "", 2, "", "keycheck: one address, and either -ring or -dns"},
		{"both", "-ring - -dns 127.0.0.1:1 a@b.example", 2, "", "keycheck: one address"},
		{"no file", "-ring /nonexistent/ring a@b.example", 2, "", "keycheck: open"},
		{"no address", "-ring - bob", 2, "", "not a mail address"},
		{"found", "-ring - -minimal Bob@example.org", 0, "GnuPG by wkd takes\n  asks https://openpgpkey.example.org/.well-known/openpgpkey/example.org/hu/jycbiujnsxs47xrkethgtj69xuunurok?l=bob\n  gets 407 octets: 118437ACA5191848C7D07B6873330C6CFE2E9068\n", ""},
		{"spelling", "-ring - Bob@example.org", 0, "Sequoia sq by wkd gets nothing\n", ""},
		{"not found", "-ring - alice@example.org", 1, "refused: nothing is published there", "keycheck: alice@example.org: no key is found\n"},
		{"nobody answers", "-dns 127.0.0.1:1 -methods dane bob@example.org", 1, "dane: openpgpdns: ", "no key is found"},
		{"no port", "-dns 127.0.0.1 bob@example.org", 2, "", "keycheck: -dns: address 127.0.0.1: missing port in address\n"},
		{"method", "-dns 127.0.0.1:1 -methods x bob@example.org", 2, "", "-methods"},
		{"JSON", "-json -ring - -minimal Bob@example.org", 0, `{"client":"GnuPG","mechanism":"wkd","asks":"https://openpgpkey.example.org/.well-known/openpgpkey/example.org/hu/jycbiujnsxs47xrkethgtj69xuunurok?l=bob","found":true,"fingerprints":["118437ACA5191848C7D07B6873330C6CFE2E9068"],"octets":407`, ""},
		{"JSON, not found", "-json -ring - alice@example.org", 1, `"found":false,"refused":["nothing is published there"`, "keycheck: alice@example.org: no key is found\n"},
		{"JSON, nobody answers", "-json -dns 127.0.0.1:1 -methods dane bob@example.org", 1, `{"mechanism":"dane","found":false,"error":"openpgpdns: `, "no key is found"},
		{"no authorities", "-dns 127.0.0.1:1 -ca /nonexistent/ca bob@example.org", 2, "", "keycheck: open"},
	} {
		var out, errs bytes.Buffer
		status := run(strings.Fields(tt.args), strings.NewReader(ring), &out, &errs)
		if status != tt.status || !strings.Contains(out.String(), tt.stdout) || !strings.Contains(errs.String(), tt.stderr) {
			t.Errorf("%s: status %d, want %d\nstdout: %s\nstderr: %s", tt.name, status, tt.status, out.String(), errs.String())
		}
		if strings.HasPrefix(tt.name, "JSON") {
			for l := range strings.Lines(out.String()) {
				if !json.Valid([]byte(l)) {
					t.Errorf("%s: no JSON: %s", tt.name, l)
				}
			}
		}
	}
}
