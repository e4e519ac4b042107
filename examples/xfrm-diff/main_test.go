package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// wanted mixes text as ip prints it and commands.
const wanted = `# a route-based VPN
src ::/0 dst ::/0 
	dir out priority 399999 ptype main 
	mark 0x6/0xffffffff 
	tmpl src 2001:db8:1::1 dst 2001:db8:2::2
		proto esp reqid 6 mode tunnel
ip xfrm policy add src 10.0.0.0/8 dst 10.1.0.0/16 dir in if_id 0x42
src 10.0.0.0/8 dst 10.1.0.0/16 proto tcp dport 80 
	dir out action block priority 1 ptype sub 
`

const wantedState = `ip xfrm state add src 2001:db8:1::1 dst 2001:db8:2::2 proto esp spi 0x100 reqid 6 mode tunnel mark 6 aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f10111213 128
`

func call(stdin string, args ...string) (int, string, string) {
	var out, errs bytes.Buffer
	code := run(args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		stdin    string
		args     []string
		code     int
		out, err string
	}{
		{"", nil, 2, "", "xfrm-diff: needs one file"},
		{"", []string{"-only", "keys", "-"}, 2, "", "xfrm-diff: -only"},
		{"", []string{"/nonexistent"}, 2, "", "xfrm-diff: open"},
		{"\nfrob\n", []string{"-parse", "-"}, 2, "", "xfrm-diff: xfrm: line 2: an entry begins with \"src\""},
		{wanted + "\tfrob\n", []string{"-parse", "-"}, 2, "", "xfrm-diff: xfrm: line 10: \"frob\": unknown line"},
		{"\nip xfrm policy add dir in\n\n" + wanted + "\nip xfrm policy add dir in\n# x\nfrob\n", []string{"-parse", "-"}, 2, "", "xfrm-diff: xfrm: line 16: an entry begins with \"src\""},
		{wanted + "\nip xfrm policy add dir in\nip xfrm frob\n", []string{"-parse", "-"}, 2, "", "xfrm-diff: line 12: "},
		{"ip xfrm policy list\n", []string{"-parse", "-"}, 2, "", "xfrm-diff: line 1: not an add"},
		{wantedState + wanted, []string{"-parse", "-"}, 0, `+ state src 2001:db8:1::1 dst 2001:db8:2::2 proto esp spi 0x00000100 mark 0x6/0xffffffff
+ policy src ::/0 dst ::/0 dir out mark 0x6/0xffffffff
+ policy src 10.0.0.0/8 dst 10.1.0.0/16 dir in if_id 0x42
+ policy src 10.0.0.0/8 dst 10.1.0.0/16 proto tcp dport 80 dir out ptype sub
`, ""},
		{wantedState, []string{"-parse", "-only", "policies", "-"}, 0, "", ""},
	} {
		code, out, errs := call(c.stdin, c.args...)
		if code != c.code || out != c.out || !strings.HasPrefix(errs, c.err) || c.err == "" && errs != "" {
			t.Errorf("%v: %d\n%s\n%s", c.args, code, out, errs)
		}
	}
	if code, out, errs := call("", "-h"); code != 0 || !strings.HasPrefix(out, "usage: xfrm-diff") || errs != "" {
		t.Errorf("help: %d %q %q", code, out, errs)
	}
	if _, out, _ := call(wantedState, "-parse", "-v", "-"); strings.Contains(out, "0x0001") || !strings.Contains(out, "<<Keys hidden>>") {
		t.Errorf("got\n%s", out)
	}
	name := filepath.Join(t.TempDir(), "wanted")
	if err := os.WriteFile(name, []byte(wanted), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := call("", "-parse", name); code != 0 || strings.Count(out, "+") != 3 {
		t.Errorf("%d %s %s", code, out, errs)
	}
}

// TestManyCommands: a command costs as much at the end of a long file as at the
// beginning, also where text alternates with commands.
func TestManyCommands(t *testing.T) {
	memory := func(n int) uint64 {
		file := strings.Repeat("ip xfrm policy add dir in\nsrc ::/0 dst ::/0 \n\tdir out priority 1 ptype main \n", n)
		var a, b runtime.MemStats
		runtime.ReadMemStats(&a)
		want, err := read(strings.NewReader(file))
		runtime.ReadMemStats(&b)
		if err != nil || len(want.Policies) != 2*n {
			t.Fatalf("%d policies, %v", len(want.Policies), err)
		}
		return (b.TotalAlloc - a.TotalAlloc) / uint64(n)
	}
	if few, many := memory(200), memory(5000); many > 2*few {
		t.Errorf("%d octets of memory a command of 200, %d of 5000", few, many)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestOutputThatCannotBeWritten: it is not success.
func TestOutputThatCannotBeWritten(t *testing.T) {
	var errs bytes.Buffer
	if code := run([]string{"-parse", "-"}, strings.NewReader(wanted), full{}, &errs); code != 2 || errs.String() != "xfrm-diff: no space left\n" {
		t.Errorf("status %d, %q", code, errs.String())
	}
}
