// Command tour runs a small piece of every library on input that is built
// into the program. It needs no network, device, card or privilege.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

// sections run in this order; each has a file of its own.
var sections = []struct {
	name, title string
	run         func(w io.Writer) error
}{
	{"modes", "radio samples in, aircraft out", modesSection},
	{"nat64", "one packet between IPv4 and IPv6, in place", nat64Section},
	{"lpctrie", "the kernel's IPv4 routes, node by node", lpctrieSection},
	{"radix6", "routes by destination and source", radix6Section},
	{"xfrm", "a route-based VPN, as `ip xfrm` prints it", xfrmSection},
	{"openpgpdns", "keys that every client finds", openpgpdnsSection},
	{"keycard", "a card signs, and the signature verifies", keycardSection},
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("tour", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	only := fs.String("only", "", "run only the section of this `package`")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: tour [-only package]\n\nShows each library at work on built-in input.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "tour:", err)
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "tour: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	found := false
	for i, s := range sections {
		if *only != "" && *only != s.name {
			continue
		}
		if found {
			fmt.Fprintln(stdout)
		}
		found = true
		fmt.Fprintf(stdout, "[%d/%d] %s: %s\n\n", i+1, len(sections), s.name, s.title)
		if err := s.run(stdout); err != nil {
			fmt.Fprintf(stderr, "tour: %s: %v\n", s.name, err)
			return 1
		}
	}
	if !found {
		fmt.Fprintf(stderr, "tour: no section %q\n", *only)
		return 2
	}
	return 0
}
