// Command dualhomed shows source-specific routing in a network with two
// providers. Each provider drops packets that come from the other's addresses,
// so the choice of the exit depends on the packet's source. It answers every
// query twice: as Linux routes, and as the Internet drafts on source-specific
// routing say. Where they differ, a network that runs on Linux needs an
// additional route.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"text/tabwriter"

	"signalbox.example/radix6"
)

// network is a site with an address block from each of two providers. The
// last two lines are a peering at provider B: a prefix that everybody reaches
// through it, and a shorter way for packets that come from B's block.
const network = `# provider A delegates 2001:db8:a::/48, provider B 2001:db8:b::/48
route add default from 2001:db8:a::/48 via fe80::a dev wan-a
route add default from 2001:db8:b::/48 via fe80::b dev wan-b
route add 2001:db8:a::/48 dev lan
route add 2001:db8:b::/48 dev lan
route add 2001:db8:cafe::/48 via fe80::b dev wan-b
route add 2001:db8:cafe::/48 from 2001:db8:b::/48 via fe80::bb dev ix-b
`

const queries = `2606:4700::1111 2001:db8:a::10
2606:4700::1111 2001:db8:b::10
2606:4700::1111 2001:db8:c::10
2001:db8:cafe::1 2001:db8:b::10
2001:db8:cafe::1 2001:db8:a::10
2001:db8:a::20 2001:db8:b::10
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("dualhomed", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	routes := fs.String("routes", "", "read routes from this `file` (lines of ip -6 -batch) instead of the built-in network")
	ask := fs.Bool("ask", false, "read queries from standard input: a destination and, optionally, a source per line")
	trace := fs.Bool("trace", false, "tell the way of each lookup")
	fs.Usage = func() {
		fmt.Fprint(fs.Output(), `usage: dualhomed [-routes file] [-ask] [-trace]

Routes packets of a network with two providers, as Linux does and as the
drafts on source-specific routing say, side by side. Without options it shows
a built-in network.

`)
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "dualhomed:", err)
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "dualhomed: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	if err := show(*routes, *ask, *trace, stdin, stdout); err != nil {
		fmt.Fprintf(stderr, "dualhomed: %v\n", err)
		return 1
	}
	return 0
}

func show(routes string, ask, trace bool, stdin io.Reader, stdout io.Writer) error {
	var table io.Reader = strings.NewReader(network)
	if routes != "" {
		f, err := os.Open(routes)
		if err != nil {
			return err
		}
		defer f.Close()
		table = f
	}
	linux, draft, err := load(table)
	if err != nil {
		return err
	}
	if routes == "" {
		fmt.Fprint(stdout, network, "\n")
	}
	var in io.Reader = strings.NewReader(queries)
	if ask {
		in = stdin
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "destination\tsource\tLinux\tdrafts")
	r := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, cut, err := r.ReadLine()
		if err == io.EOF {
			return w.Flush()
		}
		if err == nil && cut {
			err = bufio.ErrTooLong
		}
		if err != nil {
			return errors.Join(w.Flush(), fmt.Errorf("query %d: %w", n, err))
		}
		f := strings.Fields(string(line))
		if len(f) == 0 {
			continue
		}
		dst, src, err := parseQuery(f)
		if err != nil {
			return errors.Join(w.Flush(), fmt.Errorf("query %d: %w", n, err))
		}
		l, d := answer(linux, dst, src), answer(draft, dst, src)
		mark := ""
		if l != d {
			mark = "\t<- they differ"
		}
		from := "-"
		if src.IsValid() {
			from = src.String()
		}
		fmt.Fprintf(w, "%v\t%s\t%s\t%s%s\n", dst, from, l, d, mark)
		if trace {
			fmt.Fprintf(w, "  Linux: %v\n", linux.TraceFrom(dst, src))
			fmt.Fprintf(w, "  drafts: %v\n", draft.TraceFrom(dst, src))
		}
		if ask && (r.Buffered() == 0 || n%1000 == 0) { // somebody may be waiting; columns are even as far as here
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}

// load builds the same table in both modes.
func load(r io.Reader) (linux, draft *radix6.Tree[string], err error) {
	linux, draft = radix6.New[string](radix6.SourceLinux), radix6.New[string](radix6.SourceDraft)
	for c, err := range radix6.ReadBatch(r) {
		if err != nil {
			return nil, nil, err
		}
		for _, t := range []*radix6.Tree[string]{linux, draft} {
			if c.Delete {
				err = remove(t, c.Route)
			} else {
				err = t.Add(c.Route, exit(c), c.Mode)
			}
			if err != nil {
				return nil, nil, err
			}
		}
	}
	return linux, draft, nil
}

// remove deletes a route; without a metric the first one, as Linux does.
func remove(t *radix6.Tree[string], r radix6.Route) error {
	found := true
	if r.Metric == 0 {
		var first radix6.Route
		if first, _, found = t.First(r.Prefix, r.From); found {
			r = first
		}
	}
	if found {
		_, found = t.Delete(r)
	}
	if !found {
		return fmt.Errorf("%v: %w", radix6.Command{Delete: true, Route: r}, radix6.ErrNotExist)
	}
	return nil
}

// exit names where a route leads.
func exit(c radix6.Command) string {
	switch {
	case c.Type != "":
		return c.Type
	case c.Dev != "":
		return c.Dev
	}
	return c.Via.String()
}

func parseQuery(f []string) (dst, src netip.Addr, err error) {
	if len(f) == 3 && f[1] == "from" { // as ip route get says it
		f = []string{f[0], f[2]}
	}
	if len(f) > 2 {
		return dst, src, fmt.Errorf("want a destination and a source, got %d words", len(f))
	}
	for i, to := range []*netip.Addr{&dst, &src}[:len(f)] {
		if *to, err = netip.ParseAddr(f[i]); err != nil {
			return dst, src, err
		}
		if !to.Is6() || to.Zone() != "" {
			return dst, src, fmt.Errorf("%s is not a plain IPv6 address", f[i])
		}
	}
	return dst, src, nil
}

func answer(t *radix6.Tree[string], dst, src netip.Addr) string {
	v, r, ok := t.LookupFrom(dst, src)
	switch {
	case !ok:
		return "unreachable"
	case r.From.IsValid():
		return fmt.Sprintf("%s (%v from %v)", v, r.Prefix, r.From)
	}
	return fmt.Sprintf("%s (%v)", v, r.Prefix)
}
