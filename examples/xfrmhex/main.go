// Command xfrmhex turns iproute2 commands into the netlink messages they send
// and messages into iproute2's text, one line at a time, without a kernel:
//
//	$ echo 'ip xfrm policy add src 10.0.0.0/8 dst 10.1.0.0/16 dir out' | xfrmhex
//	b8000000130005000000000000000000...
//	$ xfrmhex -text < messages.hex
//	src 10.0.0.0/8 dst 10.1.0.0/16
//		dir out priority 0 ptype main
//
// Messages have sequence number and port id 0 and the byte order and alignment
// of this system. A line that cannot be built or read gives a line "error:
// WHY" in its place. Empty lines and lines that begin with # give nothing, nor
// does -text for acknowledgements and the ends of dumps.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"signalbox.example/xfrm"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

const usage = `usage: xfrmhex [-dev NAME=INDEX,...] [file ...]
       xfrmhex -text [-s] [-nokeys] [-dev ...] [file ...]
       xfrmhex -json [-nokeys] [file ...]
       xfrmhex -check [-kernel VERSION] [-dev ...] [file ...]

Reads lines from the files or standard input. By default each is a command,
"ip xfrm state|policy ..." or "ip link add ... type vti|vti6|xfrm ...", and
the message that it sends first is printed in hexadecimal.

`

type tool struct {
	text, json, check, stats, nokeys bool
	kernel                           xfrm.Kernel
	devs                             map[string]int
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	t := tool{devs: map[string]int{}}
	fs := flag.NewFlagSet("xfrmhex", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() { fmt.Fprint(fs.Output(), usage); fs.PrintDefaults() }
	fs.BoolVar(&t.text, "text", false, "messages in hexadecimal in, ip xfrm text out")
	fs.BoolVar(&t.json, "json", false, "messages in hexadecimal in, JSON out, one line a message")
	fs.BoolVar(&t.check, "check", false, "commands or messages in, the verdict of xfrm's Check out: ok, or refused and why")
	fs.BoolVar(&t.stats, "s", false, "print counters, limits and masks too, as ip -s")
	fs.BoolVar(&t.nokeys, "nokeys", false, "hide key material")
	kernel := fs.String("kernel", "6.12", "`version` of the kernel for -check, without ESP in TCP as Debian builds it; or latest")
	devs := fs.String("dev", "", "indexes of interfaces: `name=index,...`; others are looked up on this system")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "xfrmhex:", err)
		return 2
	}
	fail := func(format string, a ...any) int {
		fmt.Fprintf(stderr, "xfrmhex: "+format+"\n", a...)
		return 2
	}
	modes := 0
	for _, m := range []bool{t.text, t.json, t.check} {
		if m {
			modes++
		}
	}
	if modes > 1 {
		return fail("-text, -json and -check exclude each other")
	}
	var err error
	if t.kernel, err = parseKernel(*kernel); err != nil {
		return fail("%v", err)
	}
	for _, d := range strings.FieldsFunc(*devs, func(r rune) bool { return r == ',' }) {
		name, index, _ := strings.Cut(d, "=")
		n, err := strconv.ParseInt(index, 10, 32)
		if err != nil || n < 1 || name == "" {
			return fail("-dev %q is not name=index", d)
		}
		t.devs[name] = int(n)
	}
	out := bufio.NewWriter(stdout)
	if fs.NArg() == 0 {
		err = t.lines(stdin, out)
	}
	for _, name := range fs.Args() {
		if name == "-" {
			if err = t.lines(stdin, out); err != nil {
				break
			}
			continue
		}
		var f *os.File
		if f, err = os.Open(name); err != nil {
			break
		}
		err = t.lines(f, out)
		f.Close()
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
			break
		}
	}
	if e := out.Flush(); err == nil {
		err = e
	}
	if err != nil {
		fmt.Fprintf(stderr, "xfrmhex: %v\n", err)
		return 1
	}
	return 0
}

func parseKernel(s string) (xfrm.Kernel, error) {
	if s == "latest" {
		return xfrm.Kernel{}, nil
	}
	k := xfrm.Kernel{NoESPInTCP: true}
	major, minor, _ := strings.Cut(s, ".")
	minor, _, _ = strings.Cut(minor, ".")
	var err1, err2 error
	k.Major, err1 = strconv.Atoi(major)
	k.Minor, err2 = strconv.Atoi(minor)
	if err1 != nil || err2 != nil || k.Major < 1 || k.Minor < 0 {
		return k, fmt.Errorf("-kernel %q is not a version", s)
	}
	return k, nil
}

// maxLine holds the largest datagrams in hexadecimal many times over.
const maxLine = 4 << 20

func (t *tool) lines(r io.Reader, out *bufio.Writer) error {
	br := bufio.NewReaderSize(r, maxLine)
	for {
		if br.Buffered() == 0 { // somebody may be waiting for the answers
			if err := out.Flush(); err != nil {
				return err
			}
		}
		text, cut, err := br.ReadLine()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		line := strings.TrimSpace(string(text))
		for more := cut; more && err == nil; {
			_, more, err = br.ReadLine()
		}
		if line == "" || line[0] == '#' {
			continue
		}
		var b []byte
		if cut {
			err = fmt.Errorf("line is longer than %d characters", maxLine)
		} else {
			b, err = t.line(line)
		}
		if err != nil {
			b = append([]byte("error: "), strings.TrimPrefix(err.Error(), "xfrm: ")...)
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		if len(b) > 0 && b[len(b)-1] != '\n' {
			if err := out.WriteByte('\n'); err != nil {
				return err
			}
		}
	}
}

func (t *tool) line(line string) ([]byte, error) {
	switch {
	case t.check:
		return t.verdict(line)
	case t.text || t.json:
		return t.show(line)
	}
	b, err := t.build(line)
	if err != nil {
		return nil, err
	}
	return hex.AppendEncode(nil, b), nil
}

func (t *tool) build(line string) ([]byte, error) {
	c, err := xfrm.ParseCommand(line, &xfrm.ReadOptions{IfIndex: t.index})
	if err != nil {
		return nil, err
	}
	return c.Append(nil, xfrm.Header{})
}

func (t *tool) index(name string) (int, error) {
	if i, ok := t.devs[name]; ok {
		return i, nil
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0, err
	}
	return i.Index, nil
}

func (t *tool) name(index int) string {
	for n, i := range t.devs {
		if i == index {
			return n
		}
	}
	if i, err := net.InterfaceByIndex(index); err == nil {
		return i.Name
	}
	return ""
}

func decode(line string) ([]byte, error) {
	b, err := hex.DecodeString(strings.ReplaceAll(line, " ", ""))
	if err != nil {
		return nil, errors.New("not hexadecimal")
	}
	if len(b) == 0 {
		return nil, errors.New("empty")
	}
	return b, nil
}

func (t *tool) show(line string) ([]byte, error) {
	b, err := decode(line)
	if err != nil {
		return nil, err
	}
	o := xfrm.TextOptions{Stats: t.stats, Keys: !t.nokeys, IfName: t.name}
	var out []byte
	for m, err := range xfrm.Messages(b) {
		if err != nil {
			return out, err
		}
		if t.json {
			out, err = appendJSON(out, m, o)
		} else if (m.Type == xfrm.MsgDone || m.Type == xfrm.MsgError) && xfrm.ParseAck(m) == nil {
			continue // ip prints nothing where all is well
		} else {
			out, err = xfrm.AppendMessageText(out, m, o)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func appendJSON(out []byte, m xfrm.Message, o xfrm.TextOptions) ([]byte, error) {
	var v any
	switch m.Type {
	case xfrm.MsgError, xfrm.MsgDone:
		err := xfrm.ParseAck(m)
		var ack *xfrm.AckError
		if err != nil && !errors.As(err, &ack) {
			return out, err
		}
		if ack == nil {
			return append(out, "{\"ack\":\"ok\"}\n"...), nil
		}
		text, err := json.Marshal(ack.Error()) // the kernel's words may hold anything
		return fmt.Appendf(out, "{\"errno\":%d,\"error\":%s}\n", int(ack.Errno), text), err
	case xfrm.NewSADInfo:
		i := new(xfrm.SADInfo)
		if err := i.Parse(m); err != nil {
			return out, err
		}
		v = i
	case xfrm.NewSPDInfo:
		i := new(xfrm.SPDInfo)
		if err := i.Parse(m); err != nil {
			return out, err
		}
		v = i
	default:
		e, err := xfrm.ParseEvent(m)
		if err != nil {
			return out, err
		}
		v = e
	}
	out, err := xfrm.AppendJSON(out, v, o)
	return append(out, '\n'), err
}

func (t *tool) verdict(line string) ([]byte, error) {
	b, err := decode(line)
	if err != nil {
		if b, err = t.build(line); err != nil {
			return nil, err
		}
	}
	// A datagram is as good as the first of its messages that is refused.
	for m, err := range xfrm.Messages(b) {
		if err != nil {
			return nil, err
		}
		if m.Type == xfrm.RTMNewLink && strings.Contains(line, "link") {
			continue // AppendLink has checked it
		}
		if err := xfrm.CheckMessage(m, t.kernel); err != nil {
			return refusal(err), nil
		}
	}
	return []byte("ok"), nil
}

func refusal(err error) []byte {
	var rule *xfrm.RuleError
	switch {
	case errors.As(err, &rule) && rule.OnPurpose:
		return fmt.Appendf(nil, "refused: %s: %s (Linux accepts it)", rule.Field, rule.Rule)
	case rule != nil:
		return fmt.Appendf(nil, "refused: %s: %s", rule.Field, rule.Rule)
	}
	return fmt.Appendf(nil, "refused: %s", strings.TrimPrefix(err.Error(), "xfrm: "))
}
