package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestCommandLine(t *testing.T) {
	for _, x := range []struct {
		args string
		code int
		out  string
		err  string
	}{
		{"-h", 0, usage, ""},
		{"", 2, "", "prefix64: a command is needed"},
		{"embed 64:ff9b::/96", 2, "", "prefix64: embed needs a prefix"},
		{"turn 64:ff9b::/96", 2, "", `prefix64: unknown command "turn"`},
		{"embed 2001:db8:122::/48 192.0.2.33 198.51.100.1", 0, "2001:db8:122:c000:2:2100::\n2001:db8:122:c633:64:100::\n", ""},
		{"embed 64:ff9b::/96 8.8.8.8", 0, "64:ff9b::808:808\n", ""},
		{"embed 64:ff9b::/96 10.0.0.1", 0, "64:ff9b::a00:1\n", "not global"},
		// RFC 6052 section 2.4, table 1 and 2.
		{"embed 64:ff9b::/96 192.0.2.33", 0, "64:ff9b::c000:221\n", "not global"},
		{"embed 2001:db8::/32 192.0.2.33", 0, "2001:db8:c000:221::\n", ""},
		{"embed 2001:db8:100::/40 192.0.2.33", 0, "2001:db8:1c0:2:21::\n", ""},
		{"embed 2001:db8:122:300::/56 192.0.2.33", 0, "2001:db8:122:3c0:0:221::\n", ""},
		{"embed 2001:db8:122:344::/64 192.0.2.33", 0, "2001:db8:122:344:c0:2:2100:0\n", ""},
		{"embed 2001:db8:122:344::/96 192.0.2.33", 0, "2001:db8:122:344::c000:221\n", ""},
		{"extract 2001:db8:122:344::/96 2001:db8:122:344::192.0.2.33", 0, "192.0.2.33\n", ""},
		{"extract 2001:db8:122:344::/96 2001:db8:122:344::192.0.2.33%eth0", 1, "", "no IPv6 address"},
		{"embed 64:ff9b::/95 8.8.8.8", 1, "", "prefix length"},
		{"embed 64:ff9b::/96 x", 1, "", "no IPv4 address"},
		{"extract 2001:db8:122::/48 2001:db8:122:c000:2:2100::", 0, "192.0.2.33\n", ""},
		{"extract 2001:db8:122::/48 2001:db8:123::", 1, "", "is not in"},
		{"extract 2001:db8:122::/48 1.2.3.4", 1, "", "no IPv6 address"},
		{"extract 2001:db8:122:: ::", 1, "", "cannot be read"},
		{"neutral 64:ff9b:1::/48 2001:db8::/32", 0, "64:ff9b:1:fffe::/96\n2001:db8:d246::/96\n", ""},
		{"neutral 2001:db8::/90", 1, "", "out of range"},
		{"neutral x", 1, "", "no prefix"},
		{"check 64:ff9b::/96 64:ff9b:1::/96 2001:db8::/32", 0, "64:ff9b::/96: valid, well-known: global IPv4 addresses only (RFC 6052 section 3.1), checksum-neutral (RFC 6052 section 4.1)\n64:ff9b:1::/96: valid, local use (RFC 8215)\n2001:db8::/32: valid\n", ""},
		{"check 10.0.0.0/8", 1, "", "family"},
	} {
		var out, stderr bytes.Buffer
		code := run(strings.Fields(x.args), nil, &out, &stderr)
		if code != x.code || out.String() != x.out || !strings.Contains(stderr.String(), x.err) || code != 0 && stderr.Len() == 0 {
			t.Errorf("%s: %d, %q, %q", x.args, code, out.String(), stderr.String())
		}
	}
}

// Output that cannot be written is an error.
func TestFullDisk(t *testing.T) {
	for _, args := range []string{"embed 64:ff9b::/96 8.8.8.8", "extract 64:ff9b::/96 64:ff9b::1", "neutral 64:ff9b:1::/48", "check 64:ff9b::/96"} {
		var stderr bytes.Buffer
		if status := run(strings.Fields(args), nil, full{}, &stderr); status != 1 || stderr.String() != "prefix64: no space\n" {
			t.Errorf("%s: status %d, %q", args, status, stderr.String())
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }
