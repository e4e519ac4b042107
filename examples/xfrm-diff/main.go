// Command xfrm-diff compares the kernel's IPsec states and policies with a
// file of wanted ones, and makes the kernel hold them if asked to:
//
//	$ xfrm-diff wanted.txt
//	+ policy src 10.0.0.0/8 dst 10.1.0.0/16 dir out
//	- policy src 10.0.0.0/8 dst 10.2.0.0/16 dir out
//	$ xfrm-diff -apply wanted.txt
//
// The file holds what `ip xfrm state` and `ip xfrm policy` print, plain or
// with -s, or `ip xfrm state|policy add` commands, one a line, or a mixture:
// a line that begins with "ip" or "xfrm" is a command. Lines that begin with #
// are skipped. Changes are the least that will do, in an order that leaves no
// gap. Larval states and sockets' policies are left alone.
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("xfrm-diff", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	apply := fs.Bool("apply", false, "make the changes")
	only := fs.String("only", "", "compare only `states` or only policies")
	unchecked := fs.Bool("unchecked", false, "also send what xfrm's Check refuses")
	parse := fs.Bool("parse", false, "only read the file and print what it wants, without a kernel")
	verbose := fs.Bool("v", false, "print each entry whole, keys hidden")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: xfrm-diff [-apply] [-only states|policies] [-unchecked] [-v] [-parse] file\n\n"+
			"Prints what has to be added (+), changed (~) and deleted (-) so that the kernel\n"+
			"holds what the file (- is standard input) wants. The status is 0 if there is\nnothing to do or all was done, 1 if there are differences, 2 after an error.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "xfrm-diff:", err)
		return 2
	}
	fail := func(err error) int {
		fmt.Fprintf(stderr, "xfrm-diff: %v\n", err)
		return 2
	}
	if fs.NArg() != 1 {
		return fail(errors.New("needs one file"))
	}
	o := conn.ApplyOptions{IgnoreStates: *only == "policies", IgnorePolicies: *only == "states"}
	if *only != "" && !o.IgnoreStates && !o.IgnorePolicies {
		return fail(fmt.Errorf("-only %q is neither states nor policies", *only))
	}
	in := stdin
	if name := fs.Arg(0); name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return fail(err)
		}
		defer f.Close()
		in = f
	}
	want, err := read(in)
	if err != nil {
		return fail(err)
	}
	defer func() {
		for _, s := range want.States {
			s.ClearKeys()
		}
	}()
	out := bufio.NewWriter(stdout)
	if *parse {
		for _, c := range xfrm.Diff(xfrm.Set{}, want, o) {
			show(out, c, *verbose)
		}
		if err := out.Flush(); err != nil {
			return fail(err)
		}
		return 0
	}
	ctx := context.Background()
	c, err := conn.Dial(&conn.Options{Unchecked: *unchecked})
	if err != nil {
		return fail(err)
	}
	defer c.Close()
	changes, failures, err := c.Apply(ctx, want, o, !*apply)
	for _, ch := range changes {
		show(out, ch, *verbose)
	}
	unwritten := out.Flush()
	for _, f := range failures {
		fmt.Fprintf(stderr, "xfrm-diff: %s: %v\n", title(changes[f.Index]), f.Err)
	}
	switch {
	case err != nil || unwritten != nil:
		return fail(cmp.Or(err, unwritten))
	case len(failures) > 0:
		return 2
	case len(changes) > 0 && !*apply:
		return 1
	}
	return 0
}

// read collects the entries of a file that mixes text and commands. Runs of
// lines that are not commands are read as text.
func read(r io.Reader) (want xfrm.Set, err error) {
	o := &xfrm.ReadOptions{IfIndex: func(name string) (int, error) {
		i, err := net.InterfaceByName(name)
		if err != nil {
			return 0, err
		}
		return i.Index, nil
	}}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	var text strings.Builder // of one run
	n, before := 0, 0        // lines, and those before the run
	flush := func() error {
		for e, err := range xfrm.ParseText(strings.NewReader(text.String()), o) {
			switch {
			case err != nil:
				if e, ok := err.(*xfrm.SyntaxError); ok {
					e.Line += before
				}
				return err
			case e.SA != nil:
				want.States = append(want.States, e.SA)
			default:
				want.Policies = append(want.Policies, e.Policy)
			}
		}
		text.Reset()
		return nil
	}
	for s.Scan() {
		line := s.Text()
		if !strings.HasPrefix(line, "ip ") && !strings.HasPrefix(line, "xfrm ") {
			n++
			text.WriteString(line + "\n")
			continue
		}
		if err := flush(); err != nil {
			return want, err
		}
		n++
		before = n
		c, err := xfrm.ParseCommand(line, o)
		if err != nil {
			return want, fmt.Errorf("line %d: %w", n, err)
		}
		switch v := c.Request.(type) {
		case *xfrm.SA:
			want.States = append(want.States, v)
		case *xfrm.Policy:
			want.Policies = append(want.Policies, v)
		default:
			return want, fmt.Errorf("line %d: not an add or update command", n)
		}
	}
	if err := s.Err(); err != nil {
		return want, err
	}
	return want, flush()
}

// title names a change in one line.
func title(c xfrm.Change) string {
	if s := c.SA; s != nil {
		t := fmt.Sprintf("state src %v dst %v proto %v spi 0x%08x", s.Src, s.Dst, s.Proto, s.SPI)
		return t + markText(s.Mark)
	}
	p := c.Policy
	first, _, _ := strings.Cut(p.String(), "\n")
	t := "policy " + strings.TrimSpace(first) + " dir " + p.Dir.String()
	if p.Type != xfrm.PolicyMain {
		t += " ptype " + p.Type.String()
	}
	t += markText(p.Mark)
	if p.IfID != 0 {
		t += fmt.Sprintf(" if_id %#x", p.IfID)
	}
	return t
}

func markText(m xfrm.Mark) string {
	if m == (xfrm.Mark{}) {
		return ""
	}
	return fmt.Sprintf(" mark %#x/%#x", m.Value, m.Mask)
}

func show(w io.Writer, c xfrm.Change, verbose bool) {
	sign := map[xfrm.Op]string{xfrm.OpAdd: "+", xfrm.OpUpdate: "~", xfrm.OpReplace: "~", xfrm.OpDelete: "-"}[c.Op]
	line := sign + " " + title(c)
	if c.Op == xfrm.OpReplace {
		line += " (deleted and added: its keys or mode change)"
	}
	fmt.Fprintln(w, line)
	if !verbose {
		return
	}
	text := ""
	if c.SA != nil {
		text = c.SA.String()
	} else {
		text = c.Policy.String()
	}
	for l := range strings.Lines(text) {
		fmt.Fprint(w, "    ", l)
	}
}
