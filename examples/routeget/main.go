// Command routeget plays a script of route changes and questions, for IPv4
// with lpctrie and for IPv6 with radix6, and answers on standard output.
//
//	$ routeget <<.
//	add 10.0.0.0/8 v=1
//	add 10.1.0.0/16 v=2
//	lookup 10.1.2.3
//	.
//	10.1.0.0/16 v=2
//
// See usage below for the language. A command that changes something prints
// nothing, a question one line (walk and stat a block and a blank line), and a
// command that fails "error: WHY"; the script then goes on, and the exit status
// is 1.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

const usage = `usage: routeget [FILE]

Plays the script in FILE, or on standard input. Commands, one a line:

  family ipv4|ipv6      the table that the following commands are about (ipv4)
  mode linux|draft      how IPv6 source-specific routes are chosen (linux)
  add PREFIX [from PREFIX] [metric N] [tos N] v=N
  del PREFIX [from PREFIX] [metric N]
  load FILE             a plain list of prefixes, with the values 1, 2, 3 ...
  lookup ADDR [from ADDR]   PREFIX v=N, or miss
  get PREFIX            v=N, or absent
  walk                  all routes in order, then a blank line
  stat                  shape of the table, then a blank line
  trace ADDR            the steps of a lookup on one line

  at SECONDS            sets the clock of what follows (0)
  ptb ADDR mtu N        a Packet Too Big message about a packet to ADDR
  mtu ADDR              mtu=N, with expires=SECONDS if learned; or miss

"from" and the last three are for IPv6, "tos" is for IPv4. The metric is 0 for
IPv4 and 1024 for IPv6 where none is given; del without one takes the lowest.
# begins a comment.
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("routeget", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() { fmt.Fprint(fs.Output(), usage) }
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "routeget:", err)
		return 2
	}
	in := stdin
	switch {
	case fs.NArg() > 1:
		fmt.Fprintf(stderr, "routeget: one script at a time, not %d\n", fs.NArg())
		return 2
	case fs.NArg() == 1 && fs.Arg(0) != "-":
		f, err := os.Open(fs.Arg(0))
		if err != nil {
			fmt.Fprintf(stderr, "routeget: %v\n", err)
			return 1
		}
		defer f.Close()
		in = f
	}
	out := bufio.NewWriter(stdout)
	ok, err := play(in, out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintf(stderr, "routeget: %v\n", err)
		return 1
	}
	if !ok {
		return 1
	}
	return 0
}

// A route is what add and del name.
type route struct {
	prefix, from netip.Prefix
	metric       uint32
	hasMetric    bool
	tos          uint8
	v            uint64
}

// A family is one address family's table under the script's commands.
type family interface {
	setMode(draft bool) error
	add(r route) error
	del(r route) error
	// load adds the prefixes of a plain list, all or none.
	load(r io.Reader) error
	lookup(dst, src netip.Addr) (netip.Prefix, uint64, bool)
	get(p, from netip.Prefix) (uint64, bool)
	walk(yield func(r route))
	stat() string
	trace(dst, src netip.Addr) string
	at(seconds float64) error
	packetTooBig(dst netip.Addr, mtu int) error
	mtu(dst netip.Addr) (string, error)
}

// maxLine is more than any command needs.
const maxLine = 1 << 16

// play runs a script. It reports false if a command failed; the error is one
// of reading or writing.
func play(in io.Reader, out *bufio.Writer) (ok bool, err error) {
	v4, v6 := newIPv4(), newIPv6()
	var now family = v4
	ok = true
	r := bufio.NewReaderSize(in, maxLine)
	for {
		if r.Buffered() == 0 { // somebody may be waiting for the answers
			if err := out.Flush(); err != nil {
				return ok, err
			}
		}
		line, cut, err := r.ReadLine()
		if err == io.EOF {
			return ok, nil
		} else if err != nil {
			return ok, err
		}
		text, _, comment := strings.Cut(string(line), "#")
		for more := cut; more && err == nil; {
			_, more, err = r.ReadLine()
		}
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		var answer string
		var failed error
		switch {
		case cut && !comment:
			failed = fmt.Errorf("line is longer than %d characters", maxLine)
		case words[0] == "family":
			switch strings.Join(words[1:], " ") {
			case "ipv4":
				now = v4
			case "ipv6":
				now = v6
			default:
				failed = errors.New("family is ipv4 or ipv6")
			}
		case words[0] == "mode":
			switch strings.Join(words[1:], " ") {
			case "linux":
				failed = v6.setMode(false)
			case "draft":
				failed = v6.setMode(true)
			default:
				failed = errors.New("mode is linux or draft")
			}
		default:
			answer, failed = command(now, words[0], words[1:])
		}
		if failed != nil {
			ok = false
			answer = "error: " + strings.Join(strings.Fields(failed.Error()), " ") + "\n"
		}
		if _, err := out.WriteString(answer); err != nil {
			return ok, err
		}
	}
}

// options are the words that may follow a command's own argument.
type options struct {
	from      string
	metric    uint32
	hasMetric bool
	tos       uint8
	v         uint64
	mtu       int
}

// parse reads words as options out of those allowed, each at most once;
// names that end in ! must be there.
func parse(words []string, allowed ...string) (o options, err error) {
	must := map[string]bool{}
	may := map[string]bool{}
	for _, a := range allowed {
		name, required := strings.CutSuffix(a, "!")
		may[name], must[name] = true, required
	}
	for len(words) > 0 {
		name, arg, joined := strings.Cut(words[0], "=")
		words = words[1:]
		if joined != (name == "v") || !may[name] {
			return o, fmt.Errorf("unexpected word %q", name)
		}
		may[name], must[name] = false, false
		if !joined {
			if len(words) == 0 {
				return o, fmt.Errorf("%s without a value", name)
			}
			arg, words = words[0], words[1:]
		}
		var n uint64
		switch name {
		case "from":
			o.from = arg
		case "metric":
			n, err = strconv.ParseUint(arg, 0, 32)
			o.metric, o.hasMetric = uint32(n), true
		case "tos":
			n, err = strconv.ParseUint(arg, 0, 8)
			o.tos = uint8(n)
		case "v":
			o.v, err = strconv.ParseUint(arg, 10, 64)
		case "mtu":
			n, err = strconv.ParseUint(arg, 10, 31)
			o.mtu = int(n)
		}
		if err != nil {
			return o, fmt.Errorf("%s does not take %q", name, arg)
		}
	}
	for name, missing := range must {
		if missing {
			return o, fmt.Errorf("no %s", name)
		}
	}
	return o, nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return p, fmt.Errorf("no prefix: %q", s)
	}
	if p != p.Masked() {
		return p, fmt.Errorf("host bits are set in %v", p)
	}
	return p, nil
}

func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, fmt.Errorf("no address: %q", s)
	}
	return a, nil
}

// command runs one command and returns what it answers, line end included.
func command(f family, verb string, args []string) (answer string, err error) {
	arg := ""
	switch verb {
	case "walk", "stat":
		if len(args) > 0 {
			return "", fmt.Errorf("%s takes no argument", verb)
		}
	case "add", "del", "load", "lookup", "get", "trace", "at", "ptb", "mtu":
		if len(args) == 0 {
			return "", fmt.Errorf("%s what?", verb)
		}
		arg, args = args[0], args[1:]
	default:
		return "", fmt.Errorf("unknown command %q", verb)
	}

	switch verb {
	case "add", "del":
		allowed := []string{"from", "metric", "tos"}
		if verb == "add" {
			allowed = append(allowed, "v!")
		}
		var r route
		if r.prefix, err = parsePrefix(arg); err != nil {
			return "", err
		}
		o, err := parse(args, allowed...)
		if err != nil {
			return "", err
		}
		if o.from != "" {
			if r.from, err = parsePrefix(o.from); err != nil {
				return "", err
			}
		}
		r.metric, r.hasMetric, r.tos, r.v = o.metric, o.hasMetric, o.tos, o.v
		if verb == "add" {
			return "", f.add(r)
		}
		return "", f.del(r)
	case "load":
		if len(args) > 0 {
			return "", errors.New("load takes one file")
		}
		file, err := os.Open(arg)
		if err != nil {
			return "", err
		}
		defer file.Close()
		return "", f.load(file)
	case "lookup", "trace":
		dst, err := parseAddr(arg)
		if err != nil {
			return "", err
		}
		o, err := parse(args, "from")
		if err != nil {
			return "", err
		}
		var src netip.Addr
		if o.from != "" {
			if src, err = parseAddr(o.from); err != nil {
				return "", err
			}
		}
		if verb == "trace" {
			return f.trace(dst, src) + "\n", nil
		}
		if p, v, ok := f.lookup(dst, src); ok {
			return fmt.Sprintf("%v v=%d\n", p, v), nil
		}
		return "miss\n", nil
	case "get":
		p, err := parsePrefix(arg)
		if err != nil {
			return "", err
		}
		o, err := parse(args, "from")
		if err != nil {
			return "", err
		}
		var from netip.Prefix
		if o.from != "" {
			if from, err = parsePrefix(o.from); err != nil {
				return "", err
			}
		}
		if v, ok := f.get(p, from); ok {
			return fmt.Sprintf("v=%d\n", v), nil
		}
		return "absent\n", nil
	case "walk":
		var b strings.Builder
		f.walk(func(r route) {
			fmt.Fprintf(&b, "%v", r.prefix)
			if r.from.IsValid() {
				fmt.Fprintf(&b, " from %v", r.from)
			}
			if r.hasMetric {
				fmt.Fprintf(&b, " metric %d", r.metric)
			}
			if r.tos != 0 {
				fmt.Fprintf(&b, " tos %d", r.tos)
			}
			fmt.Fprintf(&b, " v=%d\n", r.v)
		})
		return b.String() + "\n", nil
	case "stat":
		return f.stat() + "\n", nil
	case "at":
		s, err := strconv.ParseFloat(arg, 64)
		if err != nil || len(args) > 0 || !(s >= 0 && s < 1e9) {
			return "", errors.New("at takes seconds, from 0 to a thousand million")
		}
		return "", f.at(s)
	case "ptb":
		dst, err := parseAddr(arg)
		if err != nil {
			return "", err
		}
		o, err := parse(args, "mtu!")
		if err != nil {
			return "", err
		}
		return "", f.packetTooBig(dst, o.mtu)
	default: // mtu
		dst, err := parseAddr(arg)
		if err != nil || len(args) > 0 {
			return "", fmt.Errorf("mtu takes one address")
		}
		line, err := f.mtu(dst)
		return line + "\n", err
	}
}
