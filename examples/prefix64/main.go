// Command prefix64 calculates with the translation prefixes of RFC 6052:
//
//	prefix64 embed PREFIX IPV4...      the IPv6 addresses for IPv4 addresses
//	prefix64 extract PREFIX IPV6...    the IPv4 addresses in IPv6 addresses
//	prefix64 neutral PREFIX...         checksum-neutral /96 prefixes inside others
//	prefix64 check PREFIX...           what there is to say about prefixes
//
// Each result stands on a line of its own.
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

	"signalbox.example/nat64"
)

const usage = `usage: prefix64 embed PREFIX IPV4...     the IPv6 address for each IPv4 address
       prefix64 extract PREFIX IPV6...   the IPv4 address in each IPv6 address
       prefix64 neutral PREFIX...        a checksum-neutral /96 inside each prefix
       prefix64 check PREFIX...          what each prefix is

Prefixes are IPv6 translation prefixes of RFC 6052: /32, /40, /48, /56, /64 or /96.
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("prefix64", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() { fmt.Fprint(fs.Output(), usage) }
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "prefix64:", err)
		return 2
	}
	words := fs.Args()
	if len(words) == 0 {
		fmt.Fprintln(stderr, "prefix64: a command is needed: embed, extract, neutral or check (prefix64 -h explains)")
		return 2
	}
	var f func([]string, io.Writer) error
	switch words[0] {
	case "embed":
		f = func(args []string, w io.Writer) error { return embed(args, w, stderr) }
	case "extract":
		f = extract
	case "neutral":
		f = neutral
	case "check":
		f = check
	default:
		fmt.Fprintf(stderr, "prefix64: unknown command %q\n", words[0])
		return 2
	}
	if len(words) < 2 || (words[0] == "embed" || words[0] == "extract") && len(words) < 3 {
		fmt.Fprintf(stderr, "prefix64: %s needs a prefix, and embed and extract an address too\n", words[0])
		return 2
	}
	w := bufio.NewWriter(stdout)
	err := f(words[1:], w)
	if full := w.Flush(); err == nil {
		err = full
	}
	if err != nil {
		fmt.Fprintf(stderr, "prefix64: %v\n", err)
		return 1
	}
	return 0
}

// embed calculates also what must not be used, as RFC 6052 does in its own
// table, but says so in notes.
func embed(args []string, w, notes io.Writer) error {
	p, err := nat64.ParsePrefix(args[0])
	if err != nil {
		return err
	}
	for _, s := range args[1:] {
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is4() {
			return fmt.Errorf("%q is no IPv4 address", s)
		}
		if !p.Allowed(a) {
			fmt.Fprintf(notes, "prefix64: note: %v is not global and must not be used behind %v (RFC 6052 section 3.1)\n", a, p)
		}
		fmt.Fprintln(w, p.Embed(a))
	}
	return nil
}

func extract(args []string, w io.Writer) error {
	p, err := nat64.ParsePrefix(args[0])
	if err != nil {
		return err
	}
	for _, s := range args[1:] {
		a, err := netip.ParseAddr(s)
		if err != nil || !a.Is6() || a.Zone() != "" {
			return fmt.Errorf("%q is no IPv6 address", s)
		}
		v4, ok := p.Extract(a)
		if !ok {
			return fmt.Errorf("%v is not in %v", a, p)
		}
		fmt.Fprintln(w, v4)
	}
	return nil
}

func neutral(args []string, w io.Writer) error {
	for _, s := range args {
		within, err := netip.ParsePrefix(s)
		if err != nil {
			return fmt.Errorf("%q is no prefix", s)
		}
		p, err := nat64.Neutral(within)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, p)
	}
	return nil
}

func check(args []string, w io.Writer) error {
	for _, s := range args {
		p, err := nat64.ParsePrefix(s)
		if err != nil {
			return err
		}
		is := []string{"valid"}
		if p.IsWellKnown() {
			is = append(is, "well-known: global IPv4 addresses only (RFC 6052 section 3.1)")
		}
		if netip.MustParsePrefix("64:ff9b:1::/48").Overlaps(p.Netip()) {
			is = append(is, "local use (RFC 8215)")
		}
		if p.ChecksumNeutral() {
			is = append(is, "checksum-neutral (RFC 6052 section 4.1)")
		}
		fmt.Fprintf(w, "%v: %s\n", p, strings.Join(is, ", "))
	}
	return nil
}
