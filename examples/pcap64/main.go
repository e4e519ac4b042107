// Command pcap64 translates a capture file between IPv4 and IPv6 offline:
//
//	pcap64 -config FILE in.pcap out.pcap
//
// It reads pcap and pcapng files with Ethernet (also VLANs), Linux cooked, BSD
// loopback or raw IP frames, prints a verdict for each packet, and writes the
// packets that a translator would have sent, with the times of those they came
// from, as a pcap file of raw IP packets. FILE is the JSON configuration of
// translate64. With -explain the rules that led to each verdict are printed, too,
// and with -json each packet is one JSON object a line.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"signalbox.example/nat64"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, _ io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("pcap64", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	config := fs.String("config", "", "JSON `file` with the translator's configuration")
	explain := fs.Bool("explain", false, "print the rules that led to each verdict")
	asJSON := fs.Bool("json", false, "print one JSON object a line for each packet")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), `usage: pcap64 -config FILE [-explain] [-json] IN.pcap OUT.pcap

Translates the packets of a capture file between IPv4 and IPv6, prints a
verdict for each and writes the results to another file, as raw IP packets.`)
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "pcap64:", err)
		return 2
	}
	if *config == "" || fs.NArg() != 2 {
		fmt.Fprintln(stderr, "pcap64: -config FILE and two file names are needed")
		return 2
	}
	t, err := load(*config)
	if err != nil {
		fmt.Fprintf(stderr, "pcap64: %s: %v\n", *config, err)
		return 1
	}
	if err := convert(t, fs.Arg(0), fs.Arg(1), *explain, *asJSON, stdout); err != nil {
		fmt.Fprintf(stderr, "pcap64: %v\n", err)
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
	cfg.ErrorRate = -1
	return nat64.New(cfg)
}

// source is what both readers of pcapgo have in common.
type source interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	LinkType() layers.LinkType
}

func open(r io.Reader) (source, error) {
	b := bufio.NewReader(r)
	magic, err := b.Peek(4)
	if err != nil {
		return nil, errors.New("not a capture file")
	}
	if binary.LittleEndian.Uint32(magic) == 0x0a0d0d0a {
		return pcapgo.NewNgReader(b, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	}
	return pcapgo.NewReader(b)
}

// convert writes to a temporary file and renames it at the end.
func convert(t *nat64.Translator, in, out string, explain, asJSON bool, stdout io.Writer) (err error) {
	f, err := os.Open(in)
	if err != nil {
		return err
	}
	defer f.Close()
	src, err := open(f)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	// Renaming over a device or link (/dev/stdout) would replace it.
	if fi, err := os.Lstat(out); err == nil && !fi.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file", out)
	}
	o, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+".*")
	if err != nil {
		return err
	}
	defer func() {
		o.Close()
		if err != nil {
			os.Remove(o.Name())
		}
	}()
	w := bufio.NewWriter(o)
	dst := pcapgo.NewWriter(w)
	if err := dst.WriteFileHeader(0x40000, layers.LinkTypeRaw); err != nil {
		return err
	}
	lines := bufio.NewWriter(stdout)
	if err := translate(t, src, dst, explain, asJSON, lines); err != nil {
		lines.Flush()
		return fmt.Errorf("%s: %w", in, err)
	}
	for _, err := range []error{lines.Flush(), w.Flush(), o.Chmod(0o644), o.Close()} {
		if err != nil {
			return err
		}
	}
	return os.Rename(o.Name(), out)
}

// A record is what became of a packet. Its JSON form is the command's.
type record struct {
	Packet  int     `json:"packet"`
	Seconds float64 `json:"seconds"` // since the first packet
	Verdict string  `json:"verdict"` // forward, reply, drop, or skip: no IP packet
	Reason  string  `json:"reason,omitempty"`
	Rule    string  `json:"rule,omitempty"`
	Section string  `json:"section,omitempty"`
	In      int     `json:"in,omitempty"`  // octets
	Out     []int   `json:"out,omitempty"` // of each packet written
	Steps   []step  `json:"steps,omitempty"`
}

// A step is a rule that led to the verdict.
type step struct {
	Text    string `json:"text"`
	Section string `json:"section"`
}

// text is the record as lines for a reader.
func (r *record) text(w io.Writer) error {
	fmt.Fprintf(w, "%6d %12.6f  %-8s ", r.Packet, r.Seconds, r.Verdict)
	switch {
	case r.Verdict == "skip":
		fmt.Fprint(w, "no IP packet")
	case r.Out == nil:
		fmt.Fprintf(w, "%s: %s (%s)", r.Reason, r.Rule, r.Section)
	default:
		fmt.Fprintf(w, "%s, %d -> %d", r.Reason, r.In, r.Out[0])
		for _, n := range r.Out[1:] {
			fmt.Fprintf(w, " + %d", n)
		}
		fmt.Fprint(w, " octets")
	}
	_, err := fmt.Fprintln(w)
	for _, s := range r.Steps {
		_, err = fmt.Fprintf(w, "%22s%s (%s)\n", "", s.Text, s.Section)
	}
	return err
}

func translate(t *nat64.Translator, src source, dst *pcapgo.Writer, explain, asJSON bool, out io.Writer) error {
	write := func(r *record) error { return r.text(out) }
	if to := json.NewEncoder(out); asJSON {
		to.SetEscapeHTML(false)
		write = func(r *record) error { return to.Encode(r) }
	}
	var s nat64.Scratch
	var buf []byte
	var begin time.Time
	for number := 1; ; number++ {
		frame, info, err := src.ReadPacketData()
		if err == io.EOF || err == io.ErrUnexpectedEOF && number > 1 {
			return nil // captures that were cut off end like that
		} else if err != nil {
			return fmt.Errorf("packet %d: %w", number, err)
		}
		if number == 1 {
			begin = info.Timestamp
		}
		line := record{Packet: number, Seconds: info.Timestamp.Sub(begin).Seconds(), Verdict: "skip"}
		link := src.LinkType()
		if len(info.AncillaryData) > 0 { // pcapng has one for each interface
			if l, ok := info.AncillaryData[0].(layers.LinkType); ok {
				link = l
			}
		}
		if packet := network(link, frame); packet != nil {
			buf = append(append(buf[:0], make([]byte, nat64.Headroom)...), packet...)
			r := t.Translate(&s, buf, nat64.Headroom, len(packet))
			line.Verdict, line.Reason, line.In = r.Verdict.String(), r.Reason.String(), len(packet)
			line.Rule, line.Section = r.Reason.Rule(), r.Reason.Section()
			if r.Verdict != nat64.Drop {
				for _, m := range append([][]byte{r.Packet}, r.More...) {
					if err := dst.WritePacket(gopacket.CaptureInfo{Timestamp: info.Timestamp, CaptureLength: len(m), Length: len(m)}, m); err != nil {
						return err
					}
					line.Out = append(line.Out, len(m))
				}
			}
			if explain {
				for _, x := range t.Explain(packet).Steps {
					line.Steps = append(line.Steps, step{x.Text, x.Section})
				}
			}
		}
		if err := write(&line); err != nil {
			return err
		}
	}
}

// linkTypeSLL2 is what tcpdump writes for all interfaces at once, 276, as far as
// pcapgo keeps a link type.
const linkTypeSLL2 = layers.LinkType(276 & 0xff)

// network returns the IP packet in a frame, or nil.
func network(link layers.LinkType, b []byte) []byte {
	ether := func(b []byte, at int) []byte { // at: where the EtherType is
		for range 3 {
			if len(b) < at+2 {
				return nil
			}
			switch binary.BigEndian.Uint16(b[at:]) {
			case 0x0800, 0x86dd:
				return b[at+2:]
			case 0x8100, 0x88a8:
				at += 4
			default:
				return nil
			}
		}
		return nil
	}
	switch link {
	case layers.LinkTypeEthernet:
		b = ether(b, 12)
	case layers.LinkTypeLinuxSLL:
		b = ether(b, 14)
	case linkTypeSLL2: // the EtherType comes first of 20 octets
		if len(b) < 20 || ether(b, 0) == nil {
			return nil
		}
		b = b[20:]
	case layers.LinkTypeNull, layers.LinkTypeLoop:
		if len(b) < 4 {
			return nil
		}
		b = b[4:]
	case layers.LinkTypeRaw, 12, 14, layers.LinkTypeIPv4, layers.LinkTypeIPv6:
	default:
		return nil
	}
	if len(b) == 0 || b[0]>>4 != 4 && b[0]>>4 != 6 {
		return nil
	}
	return b
}
