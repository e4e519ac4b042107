package nat64

import (
	"fmt"
	"net/netip"
	"strings"
)

// Step is one decision in the translation of a packet.
type Step struct {
	Text    string // what was decided
	Section string // the section of the specification that says so
}

// Trace tells what the translator does with a packet and why. See
// [Translator.Explain].
type Trace struct {
	Verdict Verdict
	Reason  Reason
	Steps   []Step
	Out     [][]byte // the packets that would be sent
}

// String returns the trace in one line: verdict, reason, rule and section,
// then the steps.
func (t Trace) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v: %s (%s)", t.Verdict, t.Reason, t.Reason.Rule(), t.Reason.Section())
	for _, s := range t.Steps {
		fmt.Fprintf(&b, "; %s (%s)", s.Text, s.Section)
	}
	return b.String()
}

// Explain translates a copy of a packet and says by which rules. It makes no
// pool bindings, counts nothing and pays no heed to the rate limit. A binding
// that it meets counts as used. It is slow.
func (t *Translator) Explain(packet []byte) Trace {
	buf := make([]byte, Headroom+len(packet))
	copy(buf[Headroom:], packet)
	s := Scratch{dry: true}
	r := t.Translate(&s, buf, Headroom, len(packet))
	tr := Trace{Verdict: r.Verdict, Reason: r.Reason}
	if r.Verdict != Drop {
		tr.Out = append([][]byte{r.Packet}, r.More...)
	}
	e := explainer{c: t.snap.Load(), trace: &tr}
	switch {
	case len(packet) >= header6 && packet[0]>>4 == 6:
		e.from6(packet)
	case len(packet) >= header4 && packet[0]>>4 == 4 && int(packet[0]&15)*4 <= len(packet):
		e.from4(packet)
	}
	return tr
}

type explainer struct {
	c     *snapshot
	trace *Trace
}

func (e *explainer) say(section, format string, args ...any) {
	e.trace.Steps = append(e.trace.Steps, Step{fmt.Sprintf(format, args...), section})
}

// address tells how an address was mapped.
func (e *explainer) address(what string, from, to netip.Addr, by MappedBy) {
	switch by {
	case ByEAM:
		e.say("RFC 7757 section 3.3", "%s %v is %v by the EAM table", what, from, to)
	case ByPrefix:
		e.say("RFC 6052 section 2.3", "%s %v is %v by prefix %v", what, from, to, e.c.prefix)
	case byForbidden:
		e.say("RFC 6052 section 3.1", "%s %v would not be global", what, from)
	case ByRFC6791:
		e.say("RFC 6791 section 3", "%s %v has no mapping, %v stands for it in errors", what, from, to)
	case Unmapped:
		e.say("RFC 7915 section 6", "%s %v has no mapping", what, from)
	default:
		e.say("Config", "%s %v is %v by %v", what, from, to, by)
	}
}

func (e *explainer) from6(p []byte) {
	src, dst := load6(p[8:]), load6(p[24:])
	dst4, by := e.c.map6(dst)
	e.address("destination", dst.netip(), addr4(dst4), by)
	if !by.ok() {
		return
	}
	x, failure := walk(p)
	src4, by := e.c.map6(src)
	icmpError := failure == 0 && x.next == protoICMPv6 && x.l4 < len(p) && p[x.l4] < 128
	if _, _, wanted := e.c.assign6(src, true); !by.ok() && wanted && !icmpError {
		e.say("Config", "source %v gets an address of a pool", src.netip())
	} else {
		if !by.ok() && icmpError && e.c.has4 {
			src4, by = e.c.router4(src), ByRFC6791
		}
		e.address("source", src.netip(), addr4(src4), by)
	}
	if failure != 0 {
		return
	}
	if x.l4 > header6 {
		e.say("RFC 7915 section 5.1", "%d octets of extension headers are taken off", x.l4-header6)
	}
	e.outcome()
	if e.trace.Reason != Translated64 && e.trace.Reason != FragmentedV4 {
		return
	}
	out := e.trace.Out[0]
	e.say("RFC 7915 section 5.1", "hop limit %d becomes time to live %d", p[7], out[8])
	switch {
	case x.fragment:
		e.say("RFC 7915 section 5.1.1", "the fragment header sets identification, offset and MF, and clears DF")
	case be16(out[6:])&flagDF != 0:
		e.say("RFC 7915 section 5.1", "DF is set: longer than %d octets", dfThreshold)
	default:
		e.say("RFC 7915 section 5.1", "DF is clear: at most %d octets", dfThreshold)
	}
	if x.flags&offsetMask == 0 {
		e.transport(x.next, p[x.l4:], out[header4:])
	}
}

func (e *explainer) from4(p []byte) {
	ihl := int(p[0]&15) * 4
	src, dst := be32(p[12:]), be32(p[16:])
	dst6, by := e.c.map4(dst)
	e.address("destination", addr4(dst), dst6.netip(), by)
	if !by.ok() {
		return
	}
	flags := be16(p[6:])
	icmpError := p[9] == protoICMP && flags&offsetMask == 0 && ihl < len(p) && isError4(p[ihl])
	var src6 addr6
	if e.c.cfg.Hairpin == HairpinSimple && !e.c.eamSource(p[ihl:], src, icmpError) {
		e.say("RFC 7757 section 4.2.1", "simple hairpinning leaves the EAM table out for the source")
		src6, by = e.c.map4rest(src)
	} else {
		src6, by = e.c.map4(src)
	}
	if !by.ok() && icmpError && e.c.has6 {
		src6, by = e.c.router6(src), ByRFC6791
	}
	e.address("source", addr4(src), src6.netip(), by)
	if ihl > header4 {
		e.say("RFC 7915 section 4.1", "%d octets of options are taken off", ihl-header4)
	}
	e.outcome()
	if e.trace.Reason != Translated46 && e.trace.Reason != FragmentedV6 {
		return
	}
	out := e.trace.Out[0]
	e.say("RFC 7915 section 4.1", "time to live %d becomes hop limit %d", p[8], out[7])
	at := header6
	if out[6] == protoFragment {
		at += headerFragment
		e.say("RFC 7915 section 4.1", "a fragment header carries identification, offset and MF")
	}
	if flags&offsetMask == 0 {
		e.transport(p[9], p[ihl:], out[at:])
	}
}

// outcome tells what is special about what is sent.
func (e *explainer) outcome() {
	switch e.trace.Reason {
	case FragmentedV6:
		e.say("RFC 7915 section 4", "DF is clear and the result would be larger than %d octets: %d fragments", e.c.lowest, len(e.trace.Out))
	case FragmentedV4:
		e.say("RFC 791 section 3.2", "DF is clear and the result would be larger than %d octets: %d fragments", e.c.mtu4, len(e.trace.Out))
	case Hairpinned:
		e.say("RFC 7757 section 4.2.2", "the destination's IPv4 address is in the EAM table: straight back to IPv6, with the source behind the prefix")
	}
	if e.trace.Verdict == Reply && e.trace.Reason != EchoAnswered {
		o := e.trace.Out[0]
		if o[0]>>4 == 6 {
			e.say("RFC 4443 section 2.4", "answered with ICMPv6 type %d code %d from %v", o[40], o[41], e.c.own6.netip())
		} else {
			e.say("RFC 1812 section 4.3", "answered with ICMPv4 type %d code %d from %v", o[20], o[21], addr4(e.c.own4))
		}
	}
}

// transport tells what became of the transport header.
func (e *explainer) transport(protocol uint8, in, out []byte) {
	v6 := e.trace.Out[0][0]>>4 == 6
	section := "RFC 7915 section 5.5"
	if v6 {
		section = "RFC 7915 section 4.5"
	}
	if field, _ := e.c.adjustable(protocol); field != 0 && len(in) >= field+2 && len(out) >= field+2 {
		e.say(section, "checksum %04x becomes %04x", be16(in[field:]), be16(out[field:]))
		return
	}
	if len(in) < 8 || len(out) < 8 {
		return
	}
	switch {
	case protocol == protoICMP && v6:
		section = "RFC 7915 section 4.2"
	case protocol == protoICMPv6 && !v6:
		section = "RFC 7915 section 5.2"
	default:
		return
	}
	e.say(section, "ICMP type %d code %d becomes %d code %d", in[0], in[1], out[0], out[1])
	if quote := strings.TrimPrefix(section, "RFC 7915 section "); in[0] != 8 && in[0] != 0 && in[0] < 128 {
		if quote == "4.2" {
			quote = "4.3"
		} else {
			quote = "5.3"
		}
		e.say("RFC 7915 section "+quote, "the quoted packet is translated, %d octets of error become %d", len(in), len(out))
	}
}
