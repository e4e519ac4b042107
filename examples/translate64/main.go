// Command translate64 translates IP packets between IPv4 and IPv6, one
// packet in hex on each line of standard input, one line of output for each:
//
//	translate64 -config FILE < packets.hex
//
// A line of output holds the packets to be sent, in hex, with blanks between
// them, or "-" if nothing is to be sent. For a line that is no packet in hex it
// is "error: " and the reason. With -explain the verdict and the rules that led
// to it follow behind a tab.
//
// FILE holds one JSON object with the keys pool6, eam, rfc6791v4, rfc6791v6,
// lowest_ipv6_mtu, amend_udp_checksum_zero, mtu_v6, mtu_v4, own_v4, own_v6,
// hairpin (none, simple or intrinsic) and allow_non_global_wkp.
package main

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"signalbox.example/nat64"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("translate64", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	config := fs.String("config", "", "JSON `file` with the translator's configuration")
	explain := fs.Bool("explain", false, "add the verdict and its reasons behind a tab")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), `usage: translate64 -config FILE [-explain] < hex lines

Translates one IP packet in hex a line between IPv4 and IPv6. Each line of
output holds the resulting packets, "-" for none, or "error: WHY" for a line
that is no packet in hex.`)
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "translate64:", err)
		return 2
	}
	if fs.NArg() > 0 {
		fmt.Fprintf(stderr, "translate64: unexpected argument %q\n", fs.Arg(0))
		return 2
	}
	if *config == "" {
		fmt.Fprintln(stderr, "translate64: -config is needed")
		return 2
	}
	t, err := load(*config)
	if err != nil {
		fmt.Fprintf(stderr, "translate64: %s: %v\n", *config, err)
		return 1
	}
	if err := translate(t, *explain, stdin, stdout); err != nil {
		fmt.Fprintf(stderr, "translate64: %v\n", err)
		return 1
	}
	return 0
}

func load(name string) (*nat64.Translator, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		var p *os.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return nil, err
	}
	cfg, err := nat64.ParseConfig(text)
	if err != nil {
		return nil, err
	}
	cfg.ErrorRate = -1 // a list of packets is no traffic
	return nat64.New(cfg)
}

// maxLine is more than the largest packet in hex.
const maxLine = 2*(65535+40) + 64

func translate(t *nat64.Translator, explain bool, in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, maxLine)
	w := bufio.NewWriter(out)
	var s nat64.Scratch
	var buf []byte
	for {
		line, tooLong, err := readLine(r)
		if err == io.EOF {
			return w.Flush()
		} else if err != nil {
			w.Flush()
			return err
		}
		packet, why := decode(line, tooLong, buf)
		switch {
		case why != "":
			fmt.Fprintf(w, "error: %s", why)
			if explain {
				w.WriteString("\terror")
			}
		default:
			n := len(packet) - nat64.Headroom
			var note string
			if explain {
				note = "\t" + t.Explain(packet[nat64.Headroom:]).String()
			}
			result := t.Translate(&s, packet, nat64.Headroom, n)
			if result.Verdict == nat64.Drop {
				w.WriteByte('-')
			} else {
				w.WriteString(hex.EncodeToString(result.Packet))
				for _, m := range result.More {
					w.WriteByte(' ')
					w.WriteString(hex.EncodeToString(m))
				}
			}
			w.WriteString(note)
			buf = packet
		}
		w.WriteByte('\n')
		if r.Buffered() == 0 { // somebody may be waiting for the answer
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}

// readLine returns the next line without its end. Of a line that is longer
// than any packet it returns the beginning and skips the rest.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	line, tooLong, err = r.ReadLine()
	if err != nil || !tooLong {
		return line, false, err
	}
	line = bytes.Clone(line)
	for more := true; more && err == nil; {
		_, more, err = r.ReadLine()
	}
	if err == io.EOF {
		err = nil
	}
	return line, true, err
}

// decode returns the packet behind nat64.Headroom octets, in buf if it is
// large enough, or says why there is none.
func decode(line []byte, tooLong bool, buf []byte) (packet []byte, why string) {
	line = bytes.TrimSpace(line)
	switch {
	case tooLong:
		return nil, "line is longer than the longest packet"
	case len(line) == 0:
		return nil, "empty line"
	}
	n := hex.DecodedLen(len(line))
	if cap(buf) < nat64.Headroom+n {
		buf = make([]byte, nat64.Headroom+n)
	}
	buf = buf[:nat64.Headroom+n]
	if _, err := hex.Decode(buf[nat64.Headroom:], line); errors.Is(err, hex.ErrLength) {
		return nil, "odd number of hex digits"
	} else if err != nil {
		var b hex.InvalidByteError
		if errors.As(err, &b) {
			return nil, fmt.Sprintf("%q is no hex digit", rune(b))
		}
		return nil, err.Error()
	}
	if v := buf[nat64.Headroom] >> 4; v != 4 && v != 6 {
		return nil, fmt.Sprintf("IP version %d", v)
	}
	return buf, ""
}
