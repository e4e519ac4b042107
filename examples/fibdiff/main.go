// Command fibdiff compares the IPv4 routing tables of the running kernel,
// as /proc/net/fib_trie shows them, with tries that it builds itself from the
// same routes, node by node.
//
//	$ fibdiff
//	Main: 3 routes, 8 lines, the same
//
// The shape of a trie depends on the order in which routes came and went. Of
// the likely orders, as shown, addresses of the system first, and backwards,
// the one that fits best is taken, but without the true history (-history) a
// table may differ in some tnodes; its routes never do.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"signalbox.example/lpctrie"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("fibdiff", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	table := fs.String("table", "", "compare only the table with this `name`, such as Main or 'Id 100'")
	history := fs.String("history", "", "build that table from the `file` of \"ip -batch\" commands that made it, rather than from the dump")
	show := fs.Int("n", 10, "print at most this many differing lines of a table")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: fibdiff [-table name [-history file]] [-n lines] [dump]\n\n"+
			"Compares /proc/net/fib_trie, or a dump of it (- is standard input), with\nrebuilt tries. The status is 0 if all are the same, 1 if any differs,\n2 after an error.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "fibdiff:", err)
		return 2
	}
	if fs.NArg() > 1 {
		fmt.Fprintln(stderr, "fibdiff: one dump at most")
		return 2
	}
	if *history != "" && *table == "" {
		fmt.Fprintln(stderr, "fibdiff: -history needs -table, the name of the table that the file made")
		return 2
	}
	same, err := compare(fs.Arg(0), stdin, *table, *history, *show, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "fibdiff: %v\n", err)
		return 2
	}
	if !same {
		return 1
	}
	return 0
}

func open(path string, stdin io.Reader) (io.ReadCloser, error) {
	switch path {
	case "":
		return os.Open("/proc/net/fib_trie")
	case "-":
		return io.NopCloser(stdin), nil
	}
	return os.Open(path)
}

func compare(dump string, stdin io.Reader, table, history string, show int, stdout io.Writer) (same bool, err error) {
	r, err := open(dump, stdin)
	if err != nil {
		return false, err
	}
	defer r.Close()
	var names []string
	nodes := map[string][]lpctrie.Node{}
	for n, err := range lpctrie.ParseFibTrie(r) {
		if err != nil {
			return false, err
		}
		if table != "" && n.Table != table {
			continue
		}
		if nodes[n.Table] == nil {
			names = append(names, n.Table)
		}
		nodes[n.Table] = append(nodes[n.Table], n)
	}
	if len(names) == 0 && table != "" {
		return false, fmt.Errorf("the dump has no table %q", table)
	}
	out := bufio.NewWriter(stdout)
	defer func() { err = errors.Join(err, out.Flush()) }()
	same = true
	for _, name := range names {
		kernel := nodes[name]
		var rebuilt *lpctrie.Table[int]
		if history == "" {
			rebuilt, err = likely(kernel, name)
		} else {
			rebuilt, err = fromHistory(history)
		}
		if err != nil {
			return false, err
		}
		ours := slices.Collect(rebuilt.Nodes(name))
		differ := diff(out, kernel, ours, show)
		verdict := "the same"
		if differ > 0 {
			same = false
			verdict = fmt.Sprintf("%d differ", differ)
		}
		fmt.Fprintf(out, "%s: %d routes, %d lines, %s\n", name, rebuilt.Len(), len(kernel), verdict)
	}
	return same, nil
}

// likely rebuilds a table in each of the likely orders and returns the one that
// is most like the kernel's.
func likely(kernel []lpctrie.Node, name string) (best *lpctrie.Table[int], err error) {
	own := func(n lpctrie.Node) int {
		if n.Type == lpctrie.Local || n.Type == lpctrie.Broadcast {
			return 0
		}
		return 1
	}
	ownFirst := slices.Clone(kernel)
	slices.SortStableFunc(ownFirst, func(a, b lpctrie.Node) int { return own(a) - own(b) })
	backwards := slices.Clone(kernel)
	slices.SortStableFunc(backwards, func(a, b lpctrie.Node) int { return b.Prefix.Addr().Compare(a.Prefix.Addr()) })
	least := -1
	for _, order := range [][]lpctrie.Node{kernel, ownFirst, backwards} {
		t, err := fromDump(order)
		if err != nil {
			return nil, err
		}
		if n := diff(io.Discard, kernel, slices.Collect(t.Nodes(name)), 0); least < 0 || n < least {
			best, least = t, n
		}
		if least == 0 {
			break
		}
	}
	return best, nil
}

// fromDump adds routes in the order given. What the dump does not tell
// (metrics, next hops) is made different by the value.
func fromDump(kernel []lpctrie.Node) (*lpctrie.Table[int], error) {
	t := lpctrie.New[int](lpctrie.Config{})
	for i, n := range kernel {
		if n.Kind != lpctrie.AliasLine {
			continue
		}
		r := lpctrie.Route{Prefix: n.Prefix, TOS: n.TOS, Type: n.Type, Scope: n.Scope}
		if err := t.Add(r, i, lpctrie.ModeAppend); err != nil {
			return nil, fmt.Errorf("%v: %w", n.Prefix, err)
		}
	}
	return t, nil
}

// fromHistory plays "ip -batch" commands.
func fromHistory(path string) (*lpctrie.Table[int], error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := lpctrie.New[int](lpctrie.Config{})
	for c, err := range lpctrie.ReadBatch(f) {
		if err != nil {
			return nil, err
		}
		if c.Delete {
			if _, ok := t.Delete(c.Route); !ok {
				err = lpctrie.ErrNotExist
			}
		} else {
			err = t.Add(c.Route, 0, c.Mode)
		}
		if err != nil {
			return nil, fmt.Errorf("%v: %w", c, err)
		}
	}
	return t, nil
}

// diff compares two dumps in step and prints the first differing lines. Both
// are in the order of addresses, so that the tnodes of a stretch where the
// shapes differ come out one by one and the rest stays in step.
func diff(out io.Writer, kernel, ours []lpctrie.Node, show int) (differ int) {
	report := func(sign string, n lpctrie.Node) {
		if differ++; differ <= show {
			fmt.Fprintf(out, "%s%s\n", sign, n.Text())
		}
	}
	for len(kernel) > 0 || len(ours) > 0 {
		switch {
		case len(kernel) > 0 && len(ours) > 0 && kernel[0] == ours[0]:
			kernel, ours = kernel[1:], ours[1:]
		case len(ours) == 0 || len(kernel) > 0 && before(kernel[0], ours[0]):
			report("-", kernel[0])
			kernel = kernel[1:]
		default:
			report("+", ours[0])
			ours = ours[1:]
		}
	}
	return differ
}

// before orders lines by address, shorter prefixes and tnodes first.
func before(a, b lpctrie.Node) bool {
	if c := a.Prefix.Addr().Compare(b.Prefix.Addr()); c != 0 {
		return c < 0
	}
	if a.Kind != b.Kind {
		return a.Kind < b.Kind
	}
	if a.Kind == lpctrie.AliasLine {
		return a.Prefix.Bits() >= b.Prefix.Bits()
	}
	return a.Prefix.Bits() <= b.Prefix.Bits()
}
