package main

import (
	"bytes"
	"strings"
	"testing"
)

func call(stdin string, args ...string) (int, string, string) {
	var out, errs bytes.Buffer
	code := run(args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

const rows = `src,dst,dir,priority,if_id,tmpl.src,tmpl.dst,tmpl.proto,tmpl.mode
10.0.0.0/8,10.1.0.0/16,out,5,,192.0.2.1,192.0.2.2,esp,tunnel
10.0.0.0/8,10.2.0.0/16,in,5,7,,,,
10.0.0.0/8,10.3.0.0/16,sideways,5,,,,,
`

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		name, stdin string
		args        []string
		code        int
		err         []string
	}{
		{"two files", "", []string{"a", "b"}, 2, []string{"bulkload: one file at most"}},
		{"no file", "", []string{"/nonexistent"}, 2, []string{"bulkload: open /nonexistent"}},
		{"dry", "xfrm policy add dir out\n\n# x\nip xfrm policy add dir in\n", []string{"-dry"}, 0, []string{"bulkload: 2 of 2 loaded"}},
		{"refused", "xfrm policy add dir out\nxfrm policy add\nxfrm policy flush\nxfrm policy add dir in mark 7 mask 1\n", []string{"-dry"}, 1,
			[]string{"line 2: xfrm: not enough", "line 3: not an add", "line 4: xfrm: Mark: a value outside", "bulkload: 1 of 4 loaded"}},
		{"unchecked", "xfrm policy add dir in mark 7 mask 1\n", []string{"-dry", "-unchecked"}, 0, []string{"1 of 1"}},
		{"few errors", strings.Repeat("frob\n", 9), []string{"-dry", "-errors", "2"}, 1, []string{"line 2:", "and 7 more", "0 of 9"}},
		{"csv", rows, []string{"-dry", "-csv"}, 1, []string{"line 4: xfrm: \"sideways\": DIR value is invalid", "2 of 3"}},
		{"csv header", "src,a b\n", []string{"-dry", "-csv"}, 2, []string{"column \"a b\""}},
		{"csv empty", "", []string{"-dry", "-csv"}, 2, []string{"bulkload: the CSV has no header"}},
		{"generate nothing", "frob\n", []string{"-dry", "-generate", "0"}, 2, []string{"bulkload: -generate 0"}},
		{"generate less", "frob\n", []string{"-dry", "-generate", "-3"}, 2, []string{"bulkload: -generate -3"}},
		{"generate and a file", "", []string{"-generate", "3", "x"}, 2, []string{"bulkload: -generate takes no file"}},
		{"errors", "frob\n", []string{"-dry", "-errors", "-1"}, 2, []string{"bulkload: -errors -1"}},
	} {
		code, out, errs := call(c.stdin, c.args...)
		if code != c.code || out != "" {
			t.Errorf("%s: %d %q %q", c.name, code, out, errs)
		}
		for _, e := range c.err {
			if !strings.Contains(errs, e) {
				t.Errorf("%s: no %q in %q", c.name, e, errs)
			}
		}
	}
	if code, out, errs := call("", "-h"); code != 0 || !strings.HasPrefix(out, "usage: bulkload") || errs != "" {
		t.Errorf("help: %d %q %q", code, out, errs)
	}
	if _, out, _ := call("", "-h"); !strings.Contains(out, "  -csv\n") {
		t.Errorf("help says that -csv takes an argument:\n%s", out)
	}
	_, batch, _ := call("", "-generate", "3000")
	if code, _, errs := call(batch, "-dry"); code != 0 || !strings.Contains(errs, "3000 of 3000") {
		t.Errorf("%d %q", code, errs)
	}
}
