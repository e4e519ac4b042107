package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
)

const config = `{"pool6":"2001:db8:64::/96","eam":[["2001:db8:c::/120","10.64.0.0/24"],["2001:db8:aaaa::/120","192.0.2.0/24"]],
"rfc6791v4":"203.0.113.8","lowest_ipv6_mtu":1280,"amend_udp_checksum_zero":false,"mtu_v6":1500,"mtu_v4":1500,
"own_v4":"198.51.100.1","own_v6":"2001:db8:1c0:2:1::"}`

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestCommandLine(t *testing.T) {
	good := write(t, config)
	const udp46 = "450000221234000040113420c63364020a4000020fa00035000e779268656c6c6f21"
	const udp64 = "60000000000e113f20010db80064000000000000c633640220010db8000c000000000000000000020fa00035000e25f068656c6c6f21"
	for _, x := range []struct {
		name   string
		args   []string
		in     string
		code   int
		out    string
		stderr string // part of it
	}{
		{"no config", nil, "", 2, "", "translate64: -config is needed\n"},
		{"bad flag", []string{"-x"}, "", 2, "", "not defined"},
		{"argument", []string{"-config", good, "x"}, "", 2, "", `translate64: unexpected argument "x"`},
		{"absent config", []string{"-config", good + ".absent"}, "", 1, "", "no such file"},
		{"bad JSON", []string{"-config", write(t, `{"pool6":`)}, "", 1, "", "cannot be read"},
		{"unknown key", []string{"-config", write(t, `{"pool8":"::/96"}`)}, "", 1, "", "pool8"},
		{"bad prefix", []string{"-config", write(t, `{"pool6":"2001:db8::/95"}`)}, "", 1, "", "prefix length"},
		{"no mapping", []string{"-config", write(t, `{}`)}, "", 1, "", "neither prefix"},
		{"bad hairpin", []string{"-config", write(t, `{"pool6":"2001:db8::/96","hairpin":"maybe"}`)}, "", 1, "", "hairpin"},
		{"empty", []string{"-config", good}, "", 0, "", ""},
		{"packets", []string{"-config", good}, udp46 + "\r\n" + strings.ToUpper(udp46) + "\n45\nzz\n123\n\n77\n" + udp46, 0,
			udp64 + "\n" + udp64 + "\n-\nerror: 'z' is no hex digit\nerror: odd number of hex digits\nerror: empty line\nerror: IP version 7\n" + udp64 + "\n", ""},
		{"too long", []string{"-config", good}, strings.Repeat("45", 200000) + "\n" + udp46 + "\n", 0, "error: line is longer than the longest packet\n" + udp64 + "\n", ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			code := run(x.args, strings.NewReader(x.in), &out, &stderr)
			if code != x.code || out.String() != x.out || !strings.Contains(stderr.String(), x.stderr) || code != 0 && stderr.Len() == 0 {
				t.Errorf("%d, %q, %q", code, out.String(), stderr.String())
			}
		})
	}
	var out, stderr bytes.Buffer
	if code := run([]string{"-h"}, nil, &out, &stderr); code != 0 || !strings.HasPrefix(out.String(), "usage: translate64") || stderr.Len() > 0 {
		t.Errorf("help: %d, %q, %q", code, out.String(), stderr.String())
	}
	out.Reset()
	if code := run([]string{"-config", good, "-explain"}, strings.NewReader(udp46+"\n45\n"), &out, &stderr); code != 0 {
		t.Fatal(code, stderr.String())
	}
	lines := strings.Split(out.String(), "\n")
	if !strings.HasPrefix(lines[0], udp64+"\tforward translated-4to6: ") || !strings.Contains(lines[0], "RFC 7757 section 3.3") || !strings.HasPrefix(lines[1], "-\tdrop truncated: ") {
		t.Errorf("%q", lines)
	}
}

// The recorded exchanges through the command line, all configurations.
func TestVectors(t *testing.T) {
	type exchange struct {
		Name   string   `json:"name"`
		In     string   `json:"in"`
		Out    []string `json:"out"`
		Ignore []int    `json:"ignore_bytes"`
		Config int      `json:"config"`
	}
	read := func(file string) (list []exchange) {
		for _, l := range vectors.Lines(t, file) {
			var x exchange
			if err := json.Unmarshal([]byte(l), &x); err != nil {
				t.Fatal(err)
			}
			list = append(list, x)
		}
		return list
	}
	check := func(config string, list []exchange) {
		t.Helper()
		var in, out, stderr bytes.Buffer
		for _, x := range list {
			in.WriteString(x.In + "\n")
		}
		if code := run([]string{"-config", config}, &in, &out, &stderr); code != 0 {
			t.Fatal(code, stderr.String())
		}
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(lines) != len(list) {
			t.Fatalf("%d lines for %d", len(lines), len(list))
		}
		for i, x := range list {
			got := strings.Fields(lines[i])
			if lines[i] == "-" {
				got = nil
			}
			if len(got) != len(x.Out) {
				t.Errorf("%s: %.100s", x.Name, lines[i])
				continue
			}
			for j := range got {
				g, err := hex.DecodeString(got[j])
				if err != nil {
					t.Fatal(err)
				}
				w, _ := hex.DecodeString(x.Out[j])
				same := len(g) == len(w)
				for k := 0; same && k < len(g); k++ {
					same = g[k] == w[k] || slices.Contains(x.Ignore, k)
				}
				if !same {
					t.Errorf("%s: %x, want %x", x.Name, g, w)
				}
			}
		}
	}
	check(write(t, config), read("nat64/crosscheck-siit.jsonl"))
	var configs []json.RawMessage
	if err := json.Unmarshal(vectors.Read(t, "nat64/jool-graybox-siit-configs.json"), &configs); err != nil {
		t.Fatal(err)
	}
	all := read("nat64/jool-graybox-siit.jsonl")
	for i, c := range configs {
		var mine []exchange
		for _, x := range all {
			if x.Config == i {
				mine = append(mine, x)
			}
		}
		check(write(t, string(c)), mine)
	}
}
