package main

import (
	"bytes"
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
)

// ring is two certificates: bob@example.org and bob@example.net, and
// carol@example.org. Made for this project.
//
//go:embed testdata/ring.asc
var ring string

const bobHash = "jycbiujnsxs47xrkethgtj69xuunurok"

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "ring.asc")
	if err := os.WriteFile(file, []byte(ring), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		args   string
		status int
		stdout string // contained in it
		stderr string
	}{
		{"help", "-h", 0, "usage: keypublish", ""},
		{"hash", "-hash Joe.Doe@Example.ORG", 0, "iy9q119eutrkn8s1mk4r39qejnbu3n5q a418287638a9d71c1a563a47d37aa26207daeb183f6cf720caaa44df\n", ""},
		{"hash of nonsense", "-hash nonsense", 1, "", "keypublish: openpgpdns: \"nonsense\": not a mail address\n"},
		{"nothing", "", 2, "", "keypublish: -ring and -domain are needed"},
		{"no output", "-ring RING -domain example.org", 2, "", "keypublish: nothing to write"},
		{"unknown flag", "-x", 2, "", "not defined"},
		{"argument", "-hash a@b.c x", 2, "", "unexpected argument"},
		{"method", "-ring RING -domain example.org -wkd DIR/w -method other", 2, "", "-method"},
		{"form", "-ring RING -domain example.org -zone DIR/z -form other", 2, "", "-form"},
		{"records", "-ring RING -domain example.org -zone DIR/z -records dane,x", 2, "", "-records"},
		{"TTL", "-ring RING -domain example.org -zone DIR/z -ttl 2147483648", 2, "", "-ttl"},
		{"longest TTL", "-ring RING -domain example.org -zone DIR/t.zone -ttl 2147483647", 0, "2 records", ""},
		{"no ring", "-ring DIR/none -domain example.org -wkd DIR/w", 1, "", "keypublish: open"},
		{"zone is a folder", "-ring RING -domain example.org -zone DIR", 1, "", "not a regular file"},
		{"bad domain", "-ring RING -domain exa;mple -wkd DIR/w", 1, "", "bad domain name"},
		{"other domain", "-ring RING -domain example.com -wkd DIR/w -prune", 1, "0 addresses", "no key in the ring has an address in example.com"},
		{"tree", "-ring RING -domain example.org -wkd DIR/adv", 0, "domain example.org: 2 certificates read, 2 addresses\nwkd advanced: 2 written, 0 unchanged, 0 removed\n", ""},
		{"again", "-ring RING -domain Example.ORG -wkd DIR/adv -minimal -verify", 0, "wkd advanced: 0 written, 2 unchanged", ""},
		{"state", "-ring RING -domain example.org -wkd DIR/adv -state DIR/adv.state", 0, "wkd advanced: 0 written, 2 unchanged", ""},
		{"state again", "-ring RING -domain example.org -wkd DIR/adv -state DIR/adv.state", 0, "wkd advanced: 0 written, 2 unchanged", ""},
		{"state in the tree", "-ring RING -domain example.org -wkd DIR/adv -state DIR/adv/state", 1, "", "keep it outside of what is served"},
		{"state alone", "-ring RING -domain example.org -zone DIR/z -state DIR/z.state", 2, "", "-state goes with -wkd"},
		{"direct", "-ring RING -domain example.net -wkd DIR/dir -method direct", 0, "wkd direct: 1 written", ""},
		{"standard input", "-ring - -domain example.net -wkd DIR/in", 0, "wkd advanced: 1 written", ""},
		{"zone", "-ring RING -domain example.org -zone DIR/a.zone -records dane,cert,pka -url https://example.org/{fingerprint} -ttl 60", 0, "zone portable: 6 records", ""},
		{"gpg form", "-ring RING -domain example.org -zone DIR/g.zone -form gpg -records pka,pka", 0, "zone gpg: 2 records\nwarning: PowerDNS: ", ""},
	} {
		var out, errs bytes.Buffer
		args := strings.NewReplacer("RING", file, "DIR", dir).Replace(tt.args)
		status := run(strings.Fields(args), strings.NewReader(ring), &out, &errs)
		if status != tt.status || !strings.Contains(out.String(), tt.stdout) || !strings.Contains(errs.String(), tt.stderr) {
			t.Errorf("%s: status %d, want %d\nstdout: %s\nstderr: %s", tt.name, status, tt.status, out.String(), errs.String())
		}
		if status == 0 && errs.Len() > 0 || status == 1 && strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: stderr %q", tt.name, errs.String())
		}
	}
	for _, name := range []string{"adv/.well-known/openpgpkey/example.org/hu/" + bobHash, "dir/.well-known/openpgpkey/hu/" + bobHash, "adv/.well-known/openpgpkey/example.org/policy"} {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || strings.HasSuffix(name, bobHash) && (len(b) < 400 || bytes.Count(b, []byte("@example")) != 1) {
			t.Errorf("%s: %d octets, %v", name, len(b), err)
		}
	}
	zone, err := os.ReadFile(filepath.Join(dir, "a.zone"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd._openpgpkey.example.org. 60 IN OPENPGPKEY (\n",
		"\nbob.example.org. 60 IN CERT 3 0 0 (\n",
		"\n" + bobHash + "._pka.example.org. 60 IN CERT 6 0 0 (\n\tFBGEN6ylGRhIx9B7aHMzDGz+LpBo", // 0x14, the fingerprint
	} {
		if !bytes.Contains(zone, []byte(want)) {
			t.Errorf("the zone lacks %q", want)
		}
	}
	zone, _ = os.ReadFile(filepath.Join(dir, "g.zone"))
	if !bytes.Contains(zone, []byte("$ORIGIN _pka.example.org.\n; 118437ACA5191848C7D07B6873330C6CFE2E9068\n; Bob Tour <bob@example.org>\n"+bobHash+" TYPE37 \\# 26 0006 0000 00 14 118437ACA5191848C7D07B6873330C6CFE2E9068\n\n")) {
		t.Errorf("gpg's form:\n%s", zone)
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if len(left) > 0 {
		t.Errorf("temporary files stay: %v", left)
	}
}

// TestBrokenRing: what can be read is published, and the status says that
// something could not. Secret keys stop everything.
func TestBrokenRing(t *testing.T) {
	dir := t.TempDir()
	publish := func(ring string) (int, string, string) {
		var out, errs bytes.Buffer
		status := run([]string{"-ring", "-", "-domain", "example.org", "-wkd", dir, "-prune"}, strings.NewReader(ring), &out, &errs)
		return status, out.String(), errs.String()
	}
	cut := ring[:len(ring)*3/4]
	status, out, errs := publish(cut)
	if status != 1 || !strings.Contains(out, "1 written") || !strings.Contains(out, "nothing pruned") || !strings.Contains(errs, "the others are published") {
		t.Errorf("cut: %d\n%s%s", status, out, errs)
	}
	status, out, errs = publish(ring + strings.ReplaceAll(ring, "PUBLIC", "PRIVATE"))
	if status != 1 || out != "" || !strings.Contains(errs, "secret key material, refused") {
		t.Errorf("secret: %d\n%s%s", status, out, errs)
	}
}

// TestGPGForm: where gpg would write the same key, the same text comes out.
func TestGPGForm(t *testing.T) {
	zone := filepath.Join(t.TempDir(), "zone")
	for _, key := range []string{"alice", "sam", "nist", "dsa", "big", "dup", "thea", "subexp", "carol.upper", "joerg", "erin", "rita"} {
		for _, kind := range []string{"dane", "pka"} {
			var out, errs bytes.Buffer
			ring := vectors.Path(t, "openpgpdns/keys/"+key+".pgp")
			if status := run([]string{"-ring", ring, "-domain", "example.org", "-zone", zone, "-form", "gpg", "-minimal", "-records", kind}, nil, &out, &errs); status != 0 {
				t.Fatalf("%s: %d, %s", key, status, errs.String())
			}
			got, err := os.ReadFile(zone)
			if err != nil {
				t.Fatal(err)
			}
			want := vectors.Read(t, "openpgpdns/oracle/gpg-export-"+kind+"/"+key+".zone")
			if !bytes.Equal(got, want) {
				t.Errorf("%s %s: got\n%.200s\nwant\n%.200s", key, kind, got, want)
			}
		}
	}
}

// Renaming over a link would replace it: /dev/stdout itself, for root.
func TestOutputIsNoLink(t *testing.T) {
	dir := t.TempDir()

	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "file"), link); err != nil {
		t.Skip(err)
	}
	var out, errs bytes.Buffer
	if status := run([]string{"-ring", "-", "-domain", "example.org", "-zone", link}, strings.NewReader(ring), &out, &errs); status != 1 || !strings.Contains(errs.String(), "not a regular file") {
		t.Errorf("status %d, %s", status, errs.String())
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is gone: %v", err)
	}
}
