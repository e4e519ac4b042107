package xfrm

import (
	"encoding/hex"
	"net/netip"
	"strconv"
	"time"
)

// TextOptions choose how much of a state or policy is printed. The zero
// value prints what `ip xfrm state nokeys` and `ip xfrm policy` print.
type TextOptions struct {
	Stats bool // also counters, limits and masks, as `ip -s`
	Keys  bool // key material instead of a placeholder
	// Full adds lines that begin with "extra" for what iproute2 does not
	// print. With Stats, Keys and Full nothing is lost.
	Full bool
	// IfName names an interface; nil or "" prints "if7" for index 7.
	IfName func(index int) string
	// Location of the times; nil is UTC. iproute2 prints local time.
	Location *time.Location
}

// Lossless are the options that print everything, key material included.
func Lossless() TextOptions { return TextOptions{Stats: true, Keys: true, Full: true} }

// protoNames are the names of /etc/protocols.
var protoNames = [256]string{
	1: "icmp", 2: "igmp", 3: "ggp", 4: "ipencap", 5: "st", 6: "tcp", 8: "egp", 9: "igp", 12: "pup", 17: "udp",
	20: "hmp", 22: "xns-idp", 27: "rdp", 29: "iso-tp4", 33: "dccp", 36: "xtp", 37: "ddp", 38: "idpr-cmtp", 41: "ipv6",
	43: "ipv6-route", 44: "ipv6-frag", 45: "idrp", 46: "rsvp", 47: "gre", 50: "esp", 51: "ah", 57: "skip",
	58: "ipv6-icmp", 59: "ipv6-nonxt", 60: "ipv6-opts", 73: "rspf", 81: "vmtp", 88: "eigrp", 89: "ospf", 93: "ax.25",
	94: "ipip", 97: "etherip", 98: "encap", 103: "pim", 108: "ipcomp", 112: "vrrp", 115: "l2tp", 124: "isis",
	132: "sctp", 133: "fc", 135: "mobility-header", 136: "udplite", 137: "mpls-in-ip", 139: "hip", 140: "shim6",
	141: "wesp", 142: "rohc", 138: "manet",
}

// IP protocols whose port fields mean something else.
const (
	protoICMP   = 1
	protoGRE    = 47
	protoICMPv6 = 58
	protoMH     = 135
)

// printer carries the options through the parts of one text.
type printer struct {
	b []byte
	o TextOptions
	// prefix stands before every line but the first, in notifications that
	// indent.
	prefix string
}

func (p *printer) str(s ...string) {
	for _, x := range s {
		p.b = append(p.b, x...)
	}
}

func (p *printer) dec(v uint64) { p.b = strconv.AppendUint(p.b, v, 10) }

// hex prints as C's %#x: zero has no 0x.
func (p *printer) hex(v uint32) {
	if v != 0 {
		p.str("0x")
	}
	p.b = strconv.AppendUint(p.b, uint64(v), 16)
}

// xhex prints with 0x whatever the value.
func (p *printer) xhex(v uint32) {
	p.b = strconv.AppendUint(append(p.b, "0x"...), uint64(v), 16)
}

const hexDigits = "0123456789abcdef"

// hex8 prints eight hexadecimal digits.
func (p *printer) hex8(v uint32) {
	for i := 28; i >= 0; i -= 4 {
		p.b = append(p.b, hexDigits[v>>i&15])
	}
}

// binary8 prints an octet as eight binary digits.
func (p *printer) binary8(v uint8) {
	for i := 7; i >= 0; i-- {
		p.b = append(p.b, '0'+v>>i&1)
	}
}

// noAddr stands for an address of no family, as templates may have.
const noAddr = "???"

func (p *printer) addr(a netip.Addr, f Family) {
	if !a.IsValid() {
		a = zeroAddr(f)
	}
	if !a.IsValid() {
		p.str(noAddr)
		return
	}
	if a.Is4In6() { // the C library prints ::ffff:192.0.2.1 like netip
		p.b = a.AppendTo(p.b)
		return
	}
	p.b = a.WithZone("").AppendTo(p.b)
}

// word prints a name from a message. One that could be mistaken for
// something else is quoted, so that no name can forge a line.
func (p *printer) word(s string) {
	plain := s != ""
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\'' || c == '\\' {
			plain = false
		}
	}
	if plain {
		p.str(s)
	} else {
		p.b = strconv.AppendQuoteToASCII(p.b, s)
	}
}

// flags prints the names of the bits that are set, separated by spaces, then
// the other bits as a hexadecimal number without 0x.
func (p *printer) flags(f uint32, names []string) {
	for i, n := range names {
		if f&(1<<i) != 0 {
			f &^= 1 << i
			p.str(n)
			if f != 0 {
				p.str(" ")
			}
		}
	}
	if f != 0 {
		p.b = strconv.AppendUint(p.b, uint64(f), 16)
	}
}

func (p *printer) ifname(index int32) {
	if p.o.IfName != nil {
		if n := p.o.IfName(int(index)); n != "" {
			p.word(n)
			return
		}
	}
	p.str("if")
	p.dec(uint64(uint32(index)))
}

// year10000 is the first second that the usual form of a time cannot show.
const year10000 = 253402300800

func (p *printer) time(sec uint64) {
	switch {
	case sec == 0:
		p.str("-")
	case sec >= year10000-86400:
		p.str("@")
		p.dec(sec)
	default:
		loc := p.o.Location
		if loc == nil {
			loc = time.UTC
		}
		p.b = time.Unix(int64(sec), 0).In(loc).AppendFormat(p.b, time.DateTime)
	}
}

// nl ends a line and begins the next.
func (p *printer) nl() { p.str("\n", p.prefix) }

// key prints key material behind an algorithm's name.
func (p *printer) key(k Key) {
	if len(k) == 0 {
		return
	}
	if !p.o.Keys {
		p.str(hidden)
	} else {
		p.str("0x")
		p.b = hex.AppendEncode(p.b, k)
	}
	if p.o.Stats {
		p.str(" (")
		p.dec(uint64(len(k)) * 8)
		p.str(" bits)")
	}
}

func (p *printer) selector(s *Selector, f Family) {
	if s.EffectiveFamily() != 0 {
		f = s.EffectiveFamily()
	}
	p.str("src ")
	p.addr(s.Src.Addr(), f)
	p.str("/")
	p.dec(uint64(prefixBits(s.Src)))
	p.str(" dst ")
	p.addr(s.Dst.Addr(), f)
	p.str("/")
	p.dec(uint64(prefixBits(s.Dst)))
	p.str(" ")
	if s.Proto != 0 {
		p.str("proto ")
		if n := protoNames[s.Proto]; n != "" {
			p.str(n)
		} else {
			p.dec(uint64(s.Proto))
		}
		p.str(" ")
	}
	field := func(name string, m PortMatch) {
		if m.Mask != 0 {
			p.str(name)
			p.dec(uint64(m.Value))
			p.str(" ")
		}
	}
	switch s.Proto {
	case protoICMP, protoICMPv6:
		field("type ", s.SrcPort)
		field("code ", s.DstPort)
	case protoMH:
		field("type ", s.SrcPort)
		if s.DstPort.Mask != 0 && p.o.Stats {
			p.str("(dport) 0x")
			v := be.Uint16(ne.AppendUint16(nil, s.DstPort.Value)) // as it lies in memory
			for i := 12; i >= 0; i -= 4 {
				p.b = append(p.b, hexDigits[v>>i&15])
			}
			p.str(" ")
		}
	case protoGRE:
		if s.SrcPort.Mask|s.DstPort.Mask != 0 {
			p.str("key ")
			p.dec(uint64(s.SrcPort.Value)<<16 | uint64(s.DstPort.Value))
			p.str(" ")
		}
	default:
		field("sport ", s.SrcPort)
		field("dport ", s.DstPort)
	}
	if s.IfIndex != 0 {
		p.str("dev ")
		p.ifname(s.IfIndex)
		p.str(" ")
	}
	if p.o.Stats {
		p.str("uid ")
		p.dec(uint64(s.UID))
	}
	p.nl()
}

func prefixBits(p netip.Prefix) int { return max(p.Bits(), 0) }

// selectorExtra prints what selector leaves out.
func (p *printer) selectorExtra(s *Selector) {
	odd := func(m PortMatch) bool { return m.Mask != 0xffff && m != PortMatch{} }
	half := s.Proto == protoGRE && s.SrcPort.Mask != s.DstPort.Mask
	if odd(s.SrcPort) || odd(s.DstPort) || half || s.Proto == protoMH && s.DstPort.Mask != 0 {
		p.str("\textra ports ")
		for i, m := range [...]PortMatch{s.SrcPort, s.DstPort} {
			if i > 0 {
				p.str(" ")
			}
			p.xhex(uint32(m.Value))
			p.str("/")
			p.xhex(uint32(m.Mask))
		}
		p.nl()
	}
}

// id prints the addresses and names of a state or template in two lines.
func (p *printer) id(src, dst netip.Addr, f Family, proto Proto, spi uint32, always bool, reqid uint32, mode Mode, indent string) {
	p.str("src ")
	p.addr(src, f)
	p.str(" dst ")
	p.addr(dst, f)
	p.nl()
	p.str(indent, "\tproto ")
	p.name(proto.String())
	p.str(" ")
	if p.o.Stats || always || spi != 0 {
		p.str("spi 0x")
		p.hex8(spi)
		if p.o.Stats {
			p.str("(")
			p.dec(uint64(spi))
			p.str(")")
		}
		p.str(" ")
	}
	p.str("reqid ")
	p.dec(uint64(reqid))
	if p.o.Stats {
		p.str("(0x")
		p.hex8(reqid)
		p.str(")")
	}
	p.str(" mode ")
	p.name(mode.String())
	p.nl()
}

func (p *printer) name(s string) { p.b = append(p.b, s...) }

func (p *printer) lifetime(l *Lifetime, c *Counters) {
	pair := func(label string, soft, hard uint64, unit string, inf bool) {
		p.str("\t  ", label, ": ")
		for i, v := range [...]uint64{soft, hard} {
			p.str([...]string{"soft ", ", hard "}[i])
			if inf && v == NoLimit {
				p.str("(INF)")
			} else if inf {
				p.dec(limit(v))
			} else {
				p.dec(v)
			}
			p.str(unit)
		}
		p.nl()
	}
	p.str("\tlifetime config:")
	p.nl()
	pair("limit", l.SoftBytes, l.HardBytes, "(bytes)", true)
	pair("limit", l.SoftPackets, l.HardPackets, "(packets)", true)
	pair("expire add", l.SoftAddSeconds, l.HardAddSeconds, "(sec)", false)
	pair("expire use", l.SoftUseSeconds, l.HardUseSeconds, "(sec)", false)
	p.str("\tlifetime current:")
	p.nl()
	p.str("\t  ")
	p.dec(c.Bytes)
	p.str("(bytes), ")
	p.dec(c.Packets)
	p.str("(packets)")
	p.nl()
	p.str("\t  add ")
	p.time(c.AddTime)
	p.str(" use ")
	p.time(c.UseTime)
	p.nl()
}

func (p *printer) mark(m Mark) {
	if m != (Mark{}) {
		// In an acquisition iproute2 indents every line but this one.
		p.b = p.b[:len(p.b)-len(p.prefix)]
		p.str("\tmark ")
		p.hex(m.Value)
		p.str("/")
		p.hex(m.Mask)
		p.str(" ")
		p.nl()
	}
}

// marks prints both marks of a state, which share a line.
func (p *printer) marks(m, out Mark) {
	if out.Value == 0 {
		p.mark(m)
		return
	}
	p.str("\t")
	if m != (Mark{}) {
		p.str("mark ")
		p.hex(m.Value)
		p.str("/")
		p.hex(m.Mask)
		p.str(" ")
	}
	p.str("output-mark ")
	p.hex(out.Value)
	if out.Mask != 0 {
		p.str("/")
		p.hex(out.Mask)
	}
	p.nl()
}

func (p *printer) algo(label string, name string, k Key, bits uint32, withBits bool) {
	p.str("\t", label, " ")
	p.word(name)
	p.str(" ")
	p.key(k)
	if withBits {
		p.str(" ")
		p.dec(uint64(bits))
	}
	p.nl()
}

func (p *printer) offload(o Opt[Offload]) {
	if !o.Set {
		return
	}
	p.str("\tcrypto offload parameters: dev ")
	if o.Value.IfIndex == 0 {
		p.str("*")
	} else {
		p.ifname(o.Value.IfIndex)
	}
	if o.Value.Flags&OffloadInbound != 0 {
		p.str(" dir in")
	} else {
		p.str(" dir out")
	}
	if o.Value.Flags&OffloadPacket != 0 {
		p.str(" mode packet")
	}
	p.nl()
	if rest := o.Value.Flags &^ (OffloadInbound | OffloadPacket); rest != 0 && p.o.Full {
		p.str("\textra offload-flags ")
		p.xhex(uint32(rest))
		p.nl()
	}
}

func (p *printer) secctx(c *SecCtx) {
	if *c == (SecCtx{}) {
		return
	}
	p.str("\tsecurity context ")
	p.word(c.Text)
	p.str(" ")
	p.nl()
	if (c.DOI != 1 || c.Alg != 1) && p.o.Full {
		p.str("\textra sec-ctx ")
		p.dec(uint64(c.DOI))
		p.str(" ")
		p.dec(uint64(c.Alg))
		p.nl()
	}
}

func (p *printer) other(list []Attr) {
	for _, a := range list {
		p.str("\textra attr ")
		p.dec(uint64(a.Type))
		p.str(" 0x")
		p.b = hex.AppendEncode(p.b, a.Data)
		p.nl()
	}
}

// state prints an SA.
func (p *printer) state(s *SA) {
	f := s.Family()
	p.id(s.Src, s.Dst, f, s.Proto, s.SPI, s.Proto.ipsec(), s.ReqID, s.Mode, "")
	ext := s.Replay.extended(s.Flags)
	p.str("\treplay-window ")
	if ext {
		p.dec(uint64(s.Replay.LegacyWindow))
	} else {
		p.dec(uint64(s.Replay.Window))
	}
	p.str(" ")
	if p.o.Stats {
		p.str("seq 0x")
		for d := uint64(10000000); d > uint64(s.Seq) && d > 1; d /= 10 { // %08u
			p.str("0")
		}
		p.dec(uint64(s.Seq))
		p.str(" ")
	}
	if p.o.Stats || s.Flags != 0 {
		p.str("flag ")
		p.flags(uint32(s.Flags), saFlagNames)
	}
	if p.o.Stats && s.ExtraFlags != 0 {
		p.str("extra_flag ") // iproute2 leaves no blank before it
		p.flags(uint32(s.ExtraFlags), extraFlagNames)
	}
	if p.o.Stats {
		p.str(" (0x")
		p.binary8(uint8(s.Flags))
		p.str(")")
	}
	p.nl()
	p.marks(s.Mark, s.SetMark)
	if s.Auth.Name != "" {
		if s.Auth.Legacy {
			p.algo("auth", s.Auth.Name, s.Auth.Key, 0, false)
		} else {
			p.algo("auth-trunc", s.Auth.Name, s.Auth.Key, s.Auth.TruncBits, true)
		}
	}
	if s.AEAD.Name != "" {
		p.algo("aead", s.AEAD.Name, s.AEAD.Key, s.AEAD.ICVBits, true)
	}
	if s.Cipher.Name != "" {
		p.algo("enc", s.Cipher.Name, s.Cipher.Key, 0, false)
	}
	if s.Comp.Name != "" {
		p.algo("comp", s.Comp.Name, s.Comp.Key, 0, false)
	}
	if e := &s.Encap; e.Type != 0 {
		p.str("\tencap type ")
		p.name(e.Type.String())
		p.str(" sport ")
		p.dec(uint64(e.Src))
		p.str(" dport ")
		p.dec(uint64(e.Dst))
		p.str(" addr ")
		p.addr(e.Addr, f)
		p.nl()
	}
	if s.CoA.IsValid() {
		p.str("\tcoa ")
		p.addr(s.CoA, f)
		p.nl()
	}
	if s.LastUsed != 0 {
		p.str("\tlastused ")
		p.time(s.LastUsed)
		p.nl()
	}
	p.replay(&s.Replay, ext)
	p.offload(s.Offload)
	if s.IfID != 0 {
		p.str("\tif_id ")
		p.hex(s.IfID)
		p.nl()
	}
	if s.TFCPad != 0 {
		p.str("\ttfcpad ")
		p.dec(uint64(s.TFCPad))
		p.nl()
	}
	if s.Dir != 0 {
		p.str("\tdir ")
		p.name(s.Dir.String())
		p.nl()
	}
	if s.PCPU.Set {
		p.str("\tpcpu-num ")
		p.dec(uint64(s.PCPU.Value))
		p.nl()
	}
	if s.Sel != (Selector{}) {
		p.str("\tsel ")
		p.selector(&s.Sel, f)
	}
	if p.o.Stats {
		p.lifetime(&s.Lifetime, &s.Cur)
		p.str("\tstats:")
		p.nl()
		p.str("\t  replay-window ")
		p.dec(uint64(s.Stats.ReplayWindow))
		p.str(" replay ")
		p.dec(uint64(s.Stats.Replay))
		p.str(" failed ")
		p.dec(uint64(s.Stats.IntegrityFailed))
		p.nl()
	}
	p.secctx(&s.SecCtx)
	if p.o.Full {
		p.stateExtra(s)
	}
}

func (p *printer) replay(r *Replay, ext bool) {
	if !r.Reported && !p.o.Full {
		return
	}
	if !ext {
		var bitmap uint32
		if len(r.Bitmap) > 0 {
			bitmap = r.Bitmap[0]
		}
		if !r.Reported && r.Seq|r.OSeq|bitmap == 0 {
			return
		}
		p.str("\tanti-replay context: seq ")
		p.xhex(r.Seq)
		p.str(", oseq ")
		p.xhex(r.OSeq)
		p.str(", bitmap 0x")
		p.hex8(bitmap)
		p.nl()
		return
	}
	p.str("\tanti-replay esn context:")
	p.nl()
	p.str("\t seq-hi ")
	p.xhex(r.SeqHi)
	p.str(", seq ")
	p.xhex(r.Seq)
	p.str(", oseq-hi ")
	p.xhex(r.OSeqHi)
	p.str(", oseq ")
	p.xhex(r.OSeq)
	p.nl()
	p.str("\t replay_window ")
	p.dec(uint64(r.Window))
	p.str(", bitmap-length ")
	p.dec(uint64(r.words()))
	p.nl()
	for i := range r.Bitmap { // the last word comes first
		if i%8 == 0 {
			p.str("\t ")
		}
		p.hex8(r.Bitmap[len(r.Bitmap)-1-i])
		p.str(" ")
		if i%8 == 7 || i == len(r.Bitmap)-1 {
			p.nl()
		}
	}
}

// stateExtra prints what iproute2 has no words for.
func (p *printer) stateExtra(s *SA) {
	num := func(name string, v uint32) {
		p.str("\textra ", name, " ")
		p.dec(uint64(v))
		p.nl()
	}
	opt := func(name string, v Opt[uint32]) {
		if v.Set {
			num(name, v.Value)
		}
	}
	if s.Sel != (Selector{}) {
		if s.Sel.EffectiveFamily() == 0 {
			num("sel-family", 0)
		}
		p.selectorExtra(&s.Sel)
	}
	if s.SetMark.Value == 0 && s.SetMark.Mask != 0 {
		p.str("\textra output-mark-mask ")
		p.xhex(s.SetMark.Mask)
		p.nl()
	}
	if s.NATKeepalive != 0 {
		num("nat-keepalive", s.NATKeepalive)
	}
	opt("mtimer-thresh", s.MTimer)
	opt("replay-thresh", s.ReplayThresh)
	opt("etimer-thresh", s.ETimerThresh)
	o := &s.IPTFS
	opt("iptfs-drop-time", o.DropMicros)
	if o.ReorderWin.Set {
		num("iptfs-reorder-window", uint32(o.ReorderWin.Value))
	}
	if o.DontFragment {
		num("iptfs-dont-frag", 1)
	}
	opt("iptfs-init-delay", o.InitMicros)
	opt("iptfs-max-queue-size", o.MaxQueue)
	opt("iptfs-pkt-size", o.PacketSize)
	p.other(s.Other)
}

// policy prints a policy.
func (p *printer) policy(x *Policy) {
	f := x.Sel.EffectiveFamily()
	p.selector(&x.Sel, IPv4)
	p.secctx(&x.SecCtx)
	p.str("\t")
	if x.Dir >= 3 {
		p.str("socket ")
		p.name((x.Dir - 3).text())
	} else {
		p.str("dir ")
		p.name(x.Dir.text())
	}
	p.str(" ")
	if p.o.Stats || x.Action != Allow {
		p.str("action ")
		p.name(x.Action.String())
		p.str(" ")
	}
	if p.o.Stats {
		p.str("index ")
		p.dec(uint64(x.Index))
		p.str(" ")
	}
	p.str("priority ")
	p.dec(uint64(x.Priority))
	p.str(" ptype ")
	p.name(x.Type.String())
	p.str(" ")
	if p.o.Stats {
		p.str("share ")
		p.name(x.Share.String())
		p.str(" ")
	}
	if p.o.Stats || x.Flags != 0 {
		p.str("flag ")
		p.flags(uint32(x.Flags), policyFlagNames)
	}
	if p.o.Stats {
		p.str(" (0x")
		p.binary8(uint8(x.Flags))
		p.str(")")
	}
	p.nl()
	if p.o.Stats {
		p.lifetime(&x.Lifetime, &x.Cur)
	}
	p.mark(x.Mark)
	for i := range x.Templates {
		t := &x.Templates[i]
		tf, _ := pairFamily(t.Dst, t.Src)
		if tf == 0 {
			if tf = t.Family; tf == 0 {
				tf = f
			}
		}
		p.str("\ttmpl ")
		p.id(t.Src, t.Dst, tf, t.Proto, t.SPI, false, t.ReqID, t.Mode, "\t")
		if p.o.Stats || t.Level != Required {
			p.str("\t\tlevel ")
			p.name(t.Level.String())
			p.str(" ")
			if p.o.Stats {
				p.str("share ")
				p.name(t.Share.String())
				p.str(" ")
			}
			p.nl()
		}
		if p.o.Stats {
			p.str("\t\tenc-mask ")
			p.hex8(^t.NoEnc)
			p.str(" auth-mask ")
			p.hex8(^t.NoAuth)
			p.str(" comp-mask ")
			p.hex8(^t.NoComp)
			p.nl()
		}
	}
	p.offload(x.Offload)
	if x.IfID != 0 {
		p.str("\tif_id ")
		p.hex(x.IfID)
		p.nl()
	}
	if p.o.Full {
		if f == 0 {
			p.str("\textra sel-family 0")
			p.nl()
		}
		p.selectorExtra(&x.Sel)
		p.other(x.Other)
	}
}

// text is the direction's name, of which those of sockets are relative.
func (d Dir) text() string {
	if d < 3 {
		return d.String()
	}
	return strconv.Itoa(int(d))
}

// AppendText appends the state as `ip xfrm state` prints it, several lines
// with a final newline. Key material is replaced by a placeholder unless
// o.Keys is set. Nothing is allocated if b is large enough and o.IfName does
// not.
func (s *SA) AppendText(b []byte, o TextOptions) []byte {
	p := printer{b: b, o: o}
	p.state(s)
	return p.b
}

// AppendText appends the policy as `ip xfrm policy` prints it, several lines
// with a final newline.
func (x *Policy) AppendText(b []byte, o TextOptions) []byte {
	p := printer{b: b, o: o}
	p.policy(x)
	return p.b
}

// String is the state in the form of `ip xfrm state`, without key material.
func (s *SA) String() string { return string(s.AppendText(nil, TextOptions{})) }

// String is the policy in the form of `ip xfrm policy`.
func (x *Policy) String() string { return string(x.AppendText(nil, TextOptions{})) }
