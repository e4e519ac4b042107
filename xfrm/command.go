package xfrm

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Command is an `ip xfrm` or `ip link add` command as the message it sends.
type Command struct {
	Object string // "state", "policy" or "link"
	// Verb in full: "add", "update", "delete", "get", "allocspi", "list",
	// "deleteall", "flush", "count", "set", "setdefault" or "getdefault".
	Verb string
	// Type and Flags are what iproute2 puts into the netlink header.
	Type  MsgType
	Flags uint16
	// Request is what to send: [*SA], [*SAID], [*SPIRequest], [*StateMatch],
	// [*Policy], [*PolicyID], [*PolicyMatch], [*Flush], [*Default],
	// [*SPDInfo] (thresholds), [*Link], or nil for a request without content.
	Request any
	// Text options of a command that prints: -s and nokeys.
	Text TextOptions

	family   Family // -4, -6
	order    []AttrType
	withType bool
}

// StateMatch restricts a dump of states: SAFilter in the kernel, the rest
// afterwards with Match. The zero value passes all.
type StateMatch struct {
	SAFilter
	SPI   uint32 // 0: any
	Mode  Opt[Mode]
	ReqID uint32  // 0: any
	Flags SAFlags // the state has all of these
}

// Match reports whether the state passes the filter, what the kernel tests
// included.
func (f *StateMatch) Match(s *SA) bool {
	a := f.Addresses.Value
	return (f.Proto == 0 || f.Proto == s.Proto) && (f.SPI == 0 || f.SPI == s.SPI) &&
		(!f.Mode.Set || f.Mode.Value == s.Mode) && (f.ReqID == 0 || f.ReqID == s.ReqID) &&
		s.Flags&f.Flags == f.Flags && (a.Family == 0 || a.Family == s.Family()) &&
		within(a.Src, s.Src) && within(a.Dst, s.Dst)
}

func within(p netip.Prefix, a netip.Addr) bool { return !p.IsValid() || p.Contains(a) }

// PolicyMatch restricts a dump of policies, for which the kernel has no
// filter: Match does it all. The zero value passes all.
type PolicyMatch struct {
	Sel      Selector // the prefixes contain those of the policy
	Dir      Opt[Dir]
	Index    uint32 // 0: any
	Type     Opt[PolicyType]
	Action   Opt[Action]
	Priority Opt[uint32]
	Flags    PolicyFlags // the policy has all of these
	NoSocket bool        // leave out the policies of sockets
}

// Match reports whether the policy passes the filter.
func (f *PolicyMatch) Match(p *Policy) bool {
	sel := &f.Sel
	return (!f.Dir.Set || f.Dir.Value == p.Dir) && (f.Index == 0 || f.Index == p.Index) &&
		(!f.Type.Set || f.Type.Value == p.Type) && (!f.Action.Set || f.Action.Value == p.Action) &&
		(!f.Priority.Set || f.Priority.Value == p.Priority) && p.Flags&f.Flags == f.Flags &&
		(!f.NoSocket || p.Dir < 3) && (sel.Family == 0 || sel.Family == p.Sel.Family) &&
		contains(sel.Src, p.Sel.Src) && contains(sel.Dst, p.Sel.Dst) &&
		(sel.Proto == 0 || sel.Proto == p.Sel.Proto) && (sel.IfIndex == 0 || sel.IfIndex == p.Sel.IfIndex) &&
		(sel.SrcPort.Mask == 0 || sel.SrcPort == p.Sel.SrcPort) && (sel.DstPort.Mask == 0 || sel.DstPort == p.Sel.DstPort)
}

func contains(outer, inner netip.Prefix) bool {
	return !outer.IsValid() || inner.IsValid() && outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// Append appends the message that the command sends first, byte for byte
// what iproute2 sends where it knows the command. That of a listing or of
// deleteall is the dump request; the caller then applies [StateMatch.Match] or
// [PolicyMatch.Match] to the answers and, for deleteall, deletes what passes.
// FlagRequest and the other flags of iproute2 are added to h.Flags.
func (c *Command) Append(b []byte, h Header) ([]byte, error) {
	h.Flags |= c.Flags
	switch r := c.Request.(type) {
	case *SA:
		return appendSA(b, c.Type, h, r, c.order)
	case *SAID:
		return appendSAID(b, c.Type, h, r)
	case *SPIRequest:
		return AppendAllocSPI(b, h, r)
	case *StateMatch:
		if c.Verb == "deleteall" { // iproute2 sends no filter then
			return AppendDumpSA(b, h, SAFilter{})
		}
		return AppendDumpSA(b, h, r.SAFilter)
	case *Policy:
		return appendPolicy(b, c.Type, h, r, c.withType, nil)
	case *PolicyID:
		return appendPolicyID(b, c.Type, h, r, c.withType)
	case *PolicyMatch:
		return AppendDumpPolicy(b, h), nil
	case *Flush:
		if c.Type == FlushSA {
			return AppendFlushSA(b, h, r.Proto), nil
		}
		start := len(b)
		b, _ = begin(b, FlushPolicy, h, 0)
		if c.withType {
			b = appendPolType(b, r.PolicyType)
		}
		return finish(b, start), nil
	case *Default:
		return appendDefault(b, c.Type, h, *r), nil
	case *SPDInfo:
		return AppendSetSPDInfo(b, h, r.Hash4, r.Hash6), nil
	case *Link:
		return AppendLink(b, h, r)
	case nil:
		if c.Type == GetSADInfo {
			return AppendGetSADInfo(b, h), nil
		}
		return AppendGetSPDInfo(b, h), nil
	}
	return b, &FormatError{Type: c.Type, Err: ErrType}
}

// ParseCommand reads one command line of iproute2, with or without the
// leading "ip": `ip xfrm state|policy ...` or `ip link add ... type
// vti|vti6|xfrm ...`. Words are separated and quoted as in a shell;
// subcommands may be shortened. What iproute2 refuses to send is an error
// too, a [*SyntaxError] that never quotes key material.
func ParseCommand(line string, o *ReadOptions) (*Command, error) {
	if o == nil {
		o = noOptions
	}
	p := commandParser{o: o}
	if quoted(line) {
		var err error
		if p.list, err = splitWords(nil, line); err != nil {
			return nil, err
		}
	} else {
		p.rest = line
	}
	p.advance()
	p.parse()
	if p.err != nil {
		return nil, p.err
	}
	if p.out == nil {
		p.out = new(Command)
	}
	*p.out = p.c
	return p.out, nil
}

// policyCommand and stateCommand are what the bulk of commands needs, as one
// piece of memory.
type policyCommand struct {
	Command
	policy   Policy
	template [1]Template
}

type stateCommand struct {
	Command
	sa SA
}

// noOptions is never changed.
var noOptions = &ReadOptions{}

// quoted reports whether a line has characters that need more than a cut at
// blanks.
func quoted(line string) bool {
	return strings.IndexByte(line, '\'') >= 0 || strings.IndexByte(line, '"') >= 0 ||
		strings.IndexByte(line, '\\') >= 0 || strings.IndexByte(line, '#') >= 0
}

// splitWords appends the words of a line, split like a shell does, without
// expansions.
func splitWords(out []string, line string) ([]string, error) {
	var cur []byte
	in, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == '\'':
			if c == '\'' {
				quote = 0
			} else {
				cur = append(cur, c)
			}
		case c == '\\':
			i++
			if i == len(line) {
				return nil, &SyntaxError{What: "backslash at the end of the line"}
			}
			if quote == '"' && line[i] != '"' && line[i] != '\\' {
				cur = append(cur, '\\')
			}
			cur, in = append(cur, line[i]), true
		case quote == '"':
			if c == '"' {
				quote = 0
			} else {
				cur = append(cur, c)
			}
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if in {
				out, cur, in = append(out, string(cur)), cur[:0], false
			}
		case c == '#' && !in:
			i = len(line)
		default:
			cur, in = append(cur, c), true
		}
	}
	if quote != 0 {
		return nil, &SyntaxError{What: "quote without an end"}
	}
	if in {
		out = append(out, string(cur))
	}
	return out, nil
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// commandParser consumes words; the first error sticks and ends all loops,
// because then there are no more words. A plain line is cut as its words are
// asked for: a list of them would not outlive the parser, but the compiler
// cannot know and puts it on the heap.
type commandParser struct {
	word string   // the next word
	any  bool     // there is one
	rest string   // of a plain line, behind word
	list []string // of a line with quotes, behind word

	o    *ReadOptions
	c    Command
	out  *Command // where c goes in the end, nil for a place of its own
	err  error
	seen wordSet // words that may come once
	// What a selector has named, for the rules that tie it to the protocol.
	ports, icmp, greKey bool
}

// advance makes the word after the next one the next.
func (p *commandParser) advance() {
	if len(p.list) > 0 {
		p.word, p.any, p.list = p.list[0], true, p.list[1:]
		return
	}
	s := p.rest
	i := 0
	for i < len(s) && blank(s[i]) {
		i++
	}
	j := i
	for j < len(s) && !blank(s[j]) {
		j++
	}
	p.word, p.any, p.rest = s[i:j], j > i, s[j:]
}

// wordSet is a set of those words that a command may hold once.
type wordSet uint16

func wordBit(w string) wordSet {
	switch w {
	case "src":
		return 1 << 0
	case "dst":
		return 1 << 1
	case "proto":
		return 1 << 2
	case "spi":
		return 1 << 3
	case "ptype":
		return 1 << 4
	case "dir":
		return 1 << 5
	case "index":
		return 1 << 6
	case "auth":
		return 1 << 7
	case "enc":
		return 1 << 8
	case "aead":
		return 1 << 9
	case "comp":
		return 1 << 10
	}
	panic("xfrm: no word of those that come once: " + w)
}

func (s *wordSet) has(w string) bool { return *s&wordBit(w) != 0 }

func (s *wordSet) add(w string) { *s |= wordBit(w) }

func (p *commandParser) fail(word, format string, args ...any) {
	if p.err == nil {
		p.err = &SyntaxError{Word: word, What: fmt.Sprintf(format, args...)}
	}
	p.word, p.any, p.rest, p.list = "", false, "", nil
}

func (p *commandParser) more() bool { return p.any }

// peek returns the next word, "" if there is none.
func (p *commandParser) peek() string { return p.word }

// next takes the value after the named word.
func (p *commandParser) next(after string) string {
	if !p.any {
		p.fail("", "%s needs a value", after)
		return ""
	}
	w := p.word
	p.advance()
	return w
}

// once refuses the second use of a word.
func (p *commandParser) once(name string) {
	if p.seen.has(name) {
		p.fail(name, "given twice")
	}
	p.seen.add(name)
}

func (p *commandParser) uint(after string, bits int) uint64 {
	w := p.next(after)
	v, err := strconv.ParseUint(w, 0, bits)
	if err != nil || strings.ContainsRune(w, '_') {
		p.fail(w, "%s needs a number of %d bits", after, bits)
	}
	return v
}

func (p *commandParser) u32(after string) uint32 { return uint32(p.uint(after, 32)) }
func (p *commandParser) u8(after string) uint8   { return uint8(p.uint(after, 8)) }

// verb finds the subcommand, which may be shortened, in order of preference.
func (p *commandParser) verb(table ...string) string {
	if !p.more() && p.c.Object != "link" {
		return "list"
	}
	w := p.next("link")
	if p.err != nil {
		return ""
	}
	for _, t := range table {
		name, alias, _ := strings.Cut(t, "=")
		if strings.HasPrefix(name, w) && w != "" {
			if alias != "" {
				return alias
			}
			return name
		}
	}
	p.fail(w, "unknown command")
	return ""
}

func (p *commandParser) parse() {
	if p.peek() == "ip" {
		p.next("")
	}
	for strings.HasPrefix(p.peek(), "-") {
		switch w := p.next(""); w {
		case "-4":
			p.c.family = IPv4
		case "-6":
			p.c.family = IPv6
		case "-s", "-stats", "-statistics":
			p.c.Text.Stats = true
		case "-d", "-details", "-o", "-oneline", "-n0":
		case "-f", "-family":
			switch v := p.next(w); v {
			case "inet":
				p.c.family = IPv4
			case "inet6":
				p.c.family = IPv6
			default:
				p.fail(v, "unknown family")
			}
		default:
			p.fail(w, "unknown option")
		}
	}
	p.c.Text.Keys = true
	switch obj := p.next("ip"); {
	case p.err != nil:
	case obj != "" && strings.HasPrefix("xfrm", obj):
		switch sub := p.next("xfrm"); {
		case p.err != nil:
		case sub != "" && strings.HasPrefix("state", sub) || sub == "sa":
			p.c.Object = "state"
			p.state()
		case sub != "" && strings.HasPrefix("policy", sub):
			p.c.Object = "policy"
			p.policy()
		default:
			p.fail(sub, "is neither state nor policy")
		}
	case strings.HasPrefix("link", obj):
		p.c.Object = "link"
		p.link()
	default:
		p.fail(obj, "is neither xfrm nor link")
	}
}

// set fills in the header that iproute2 uses.
func (p *commandParser) set(t MsgType, flags uint16, request any) {
	p.c.Type, p.c.Flags, p.c.Request = t, flags, request
}

func (p *commandParser) state() {
	p.c.Verb = p.verb("add", "update", "allocspi", "delete", "deleteall", "delall=deleteall", "list", "show=list", "lst=list", "get", "flush", "count")
	switch p.c.Verb {
	case "add", "update":
		t := NewSA
		if p.c.Verb == "update" {
			t = UpdSA
		}
		x := new(stateCommand)
		p.out = &x.Command
		p.set(t, FlagRequest|FlagAck, &x.sa)
		p.stateModify(&x.sa)
	case "allocspi":
		p.allocSPI()
	case "delete":
		p.stateID(DelSA, FlagRequest|FlagAck)
	case "get":
		p.stateID(GetSA, FlagRequest)
	case "list", "deleteall":
		p.stateList()
	case "flush":
		f := &Flush{Type: FlushSA}
		p.set(FlushSA, FlagRequest|FlagAck, f)
		for p.more() {
			if w := p.next(""); w == "proto" {
				f.Proto = p.proto()
			} else {
				p.fail(w, "unknown word")
			}
		}
	case "count":
		p.set(GetSADInfo, FlagRequest, nil)
		if p.more() {
			p.fail(p.peek(), "unknown word")
		}
	}
}

// saName collects an ID of the grammar.
type saName struct {
	src, dst         netip.Addr
	srcBits, dstBits int
	spi              uint32
	proto            Proto
	family           Family
	given            bool
}

// idWord reads one part of an ID if there is one.
func (p *commandParser) idWord(id *saName) bool {
	switch p.peek() {
	case "src":
		p.next("")
		p.once("src")
		id.src, id.srcBits = p.idAddr("src", id)
	case "dst":
		p.next("")
		p.once("dst")
		id.dst, id.dstBits = p.idAddr("dst", id)
	case "proto":
		p.next("")
		p.once("proto")
		id.proto = p.proto()
	case "spi":
		p.next("")
		p.once("spi")
		id.spi = p.u32("spi")
	default:
		return false
	}
	id.given = true
	return true
}

// idAddr reads an address and keeps the families equal.
func (p *commandParser) idAddr(after string, id *saName) (netip.Addr, int) {
	pre := p.prefix(after, p.c.family)
	if f := familyOf(pre.Addr()); p.err == nil {
		if id.family != 0 && id.family != f {
			p.fail(pre.String(), "src and dst must be of one address family")
		}
		id.family = f
	}
	return pre.Addr(), pre.Bits()
}

// finishID fills in the addresses that were left out.
func (p *commandParser) finishID(id *saName) {
	if id.family == 0 {
		id.family = p.c.family
	}
	if id.family == 0 {
		id.family = IPv4
	}
	if !id.src.IsValid() {
		id.src = zeroAddr(id.family)
	}
	if !id.dst.IsValid() {
		id.dst = zeroAddr(id.family)
	}
	if id.proto == Comp && id.spi > 0xffff {
		p.fail("", "SPI value is too large with XFRM-PROTO value \"comp\"")
	}
}

// seq reads the sequence number of an ACQUIRE. iproute2 puts it into the
// message in network byte order, although the kernel's is in host order.
func (p *commandParser) seq() uint32 {
	var b [4]byte
	be.PutUint32(b[:], p.u32("seq"))
	return ne.Uint32(b[:])
}

func (p *commandParser) proto() Proto {
	w := p.next("proto")
	x, ok := parseProto(w) // numbers too, as they are printed
	if !ok {
		p.fail(w, "XFRM-PROTO value is invalid")
	}
	return x
}

// prefix reads ADDR[/PLEN]. IPv4 addresses may be short: 10.1 is 10.1.0.0.
func (p *commandParser) prefix(after string, want Family) netip.Prefix {
	w := p.next(after)
	if p.err != nil {
		return netip.Prefix{}
	}
	a, plen, slash := strings.Cut(w, "/")
	addr, ok := parseAddr(a)
	if !ok {
		p.fail(w, "%s needs an address", after)
		return netip.Prefix{}
	}
	n := addr.BitLen()
	if slash {
		v, err := strconv.ParseUint(plen, 10, 8)
		if err != nil || int(v) > n {
			p.fail(w, "impossible prefix length")
			return netip.Prefix{}
		}
		n = int(v)
	}
	if want != 0 && familyOf(addr) != want {
		p.fail(w, "is not an address of family %v", want)
	}
	return netip.PrefixFrom(addr, n)
}

func parseAddr(s string) (netip.Addr, bool) {
	if a, err := netip.ParseAddr(s); err == nil {
		return a, a.Zone() == ""
	}
	parts := strings.Split(s, ".")
	if len(parts) > 3 {
		return netip.Addr{}, false
	}
	var b [4]byte
	for i, x := range parts {
		v, err := strconv.ParseUint(x, 10, 8)
		if err != nil {
			return netip.Addr{}, false
		}
		b[i] = byte(v)
	}
	return netip.AddrFrom4(b), true
}

func (p *commandParser) mode() Mode {
	w := p.next("mode")
	if m, ok := parseMode(w); ok {
		return m
	}
	p.fail(w, "MODE value is invalid")
	return 0
}

func parseMode(w string) (Mode, bool) {
	if i := slices.Index(modeNames[:], w); i >= 0 {
		return Mode(i), true
	}
	v, err := strconv.ParseUint(w, 10, 8)
	return Mode(v), err == nil
}

// mark reads MARK [mask MASK]; without a mask it is all ones.
func (p *commandParser) mark(after string, all uint32) Mark {
	m := Mark{p.u32(after), all}
	if p.peek() == "mask" {
		p.next("")
		m.Mask = p.u32("mask")
	}
	return m
}

// flags reads names of bits, or one hexadecimal number.
func (p *commandParser) flags(after string, names []string, bits int) uint32 {
	if w := p.peek(); len(w) > 2 && strings.HasPrefix(w, "0x") {
		return uint32(p.uint(after, bits))
	}
	var f uint32
	n := 0
	for ; p.more(); n++ {
		i := slices.Index(names, p.peek())
		if i < 0 {
			break
		}
		f |= 1 << i
		p.next("")
	}
	if n == 0 {
		p.fail(p.peek(), "%s needs the name of a flag", after)
	}
	return f
}

// key reads key material: 0x and hexadecimal digits, or text. It never gets
// into an error.
func (p *commandParser) key(after string) Key {
	if !p.more() {
		p.fail("", "%s needs a key", after)
		return nil
	}
	w := p.next(after)
	k, ok := parseKey(w)
	if !ok || len(k) > maxKey {
		p.fail("", "%s has a key that is not hexadecimal or too long", after)
	}
	return k
}

// parseKey accepts an odd number of digits, which begins with half an octet.
func parseKey(w string) (Key, bool) {
	d, ok := strings.CutPrefix(w, "0x")
	if !ok || d == "" {
		return Key(w), true
	}
	if len(d)%2 == 1 {
		d = "0" + d
	}
	k, err := hex.DecodeString(d)
	return k, err == nil
}

func (p *commandParser) limit(l *Lifetime) {
	name := p.next("limit")
	var field *uint64
	switch name {
	case "time-soft":
		field = &l.SoftAddSeconds
	case "time-hard":
		field = &l.HardAddSeconds
	case "time-use-soft":
		field = &l.SoftUseSeconds
	case "time-use-hard":
		field = &l.HardUseSeconds
	case "byte-soft":
		field = &l.SoftBytes
	case "byte-hard":
		field = &l.HardBytes
	case "packet-soft":
		field = &l.SoftPackets
	case "packet-hard":
		field = &l.HardPackets
	}
	if field == nil {
		p.fail(name, "LIMIT value is invalid")
		return
	}
	v := p.uint(name, 64)
	if !strings.HasPrefix(name, "time") {
		v = limit(v)
	}
	*field = v
}

func (p *commandParser) ifindex(after string) int32 {
	w := p.next(after)
	if p.err != nil {
		return 0
	}
	i, err := resolve(w, p.o.IfIndex)
	if err != nil {
		p.fail(w, "no such device")
	}
	return i
}

func resolve(name string, f func(string) (int, error)) (int32, error) {
	if f != nil {
		if i, err := f(name); err == nil {
			return int32(i), nil
		}
	}
	if d, ok := strings.CutPrefix(name, "if"); ok {
		if v, err := strconv.ParseUint(d, 10, 32); err == nil {
			return int32(v), nil
		}
	}
	return 0, ErrMissing
}

// selector reads SELECTOR as far as it goes.
func (p *commandParser) selector(s *Selector) (found bool) {
	for p.err == nil && p.selectorWord(s) {
		found = true
	}
	p.upspecDone(s)
	return found
}

func (p *commandParser) selectorWord(s *Selector) bool {
	switch w := p.peek(); w {
	case "src", "dst":
		p.next("")
		pre := p.prefix(w, p.c.family)
		if p.err != nil {
			return false
		}
		if f := familyOf(pre.Addr()); s.Family != 0 && s.Family != f {
			p.fail(pre.String(), "src and dst must be of one address family")
		} else {
			s.Family = f
		}
		if w == "src" {
			s.Src = pre
		} else {
			s.Dst = pre
		}
	case "dev":
		p.next("")
		s.IfIndex = p.ifindex(w)
	case "proto":
		p.next("")
		v := p.next(w)
		n, ok := parseIPProto(v)
		if !ok {
			p.fail(v, "PROTO value is invalid")
		}
		s.Proto = n
	case "sport":
		p.next("")
		s.SrcPort = Port(uint16(p.uint(w, 16)))
		p.ports = true
	case "dport":
		p.next("")
		s.DstPort = Port(uint16(p.uint(w, 16)))
		p.ports = true
	case "type":
		p.next("")
		s.SrcPort = Port(uint16(p.uint(w, 8)))
		p.icmp = true
	case "code":
		p.next("")
		s.DstPort = Port(uint16(p.uint(w, 8)))
		p.icmp = true
	case "key":
		p.next("")
		s.SrcPort, s.DstPort = GREKey(p.dottedOrNumber(w))
		p.greKey = true
	default:
		return false
	}
	return true
}

func (p *commandParser) dottedOrNumber(after string) uint32 {
	w := p.next(after)
	if strings.Contains(w, ".") {
		a, err := netip.ParseAddr(w)
		if err != nil || !a.Is4() {
			p.fail(w, "%s is neither a dotted quad nor a number", after)
			return 0
		}
		v := a.As4()
		return be.Uint32(v[:])
	}
	v, err := strconv.ParseUint(w, 0, 32)
	if err != nil {
		p.fail(w, "%s is neither a dotted quad nor a number", after)
	}
	return uint32(v)
}

func parseIPProto(w string) (uint8, bool) {
	for n := range protoNames {
		if w != "" && protoNames[n] == w {
			return uint8(n), true
		}
	}
	if w == "icmpv6" {
		return protoICMPv6, true
	}
	v, err := strconv.ParseUint(w, 0, 8)
	return uint8(v), err == nil
}

// upspecDone checks that ports, types and keys fit the protocol.
func (p *commandParser) upspecDone(s *Selector) {
	bad := func(what string) { p.fail("", "%s are invalid with PROTO value %q", what, protoText(s.Proto)) }
	switch s.Proto {
	case 6, 17, 132, 33:
		if p.icmp {
			bad("\"type\" and \"code\"")
		}
		if p.greKey {
			p.fail("", "\"key\" is invalid with PROTO value %q", protoText(s.Proto))
		}
	case protoICMP, protoICMPv6, protoMH:
		if p.ports {
			bad("\"sport\" and \"dport\"")
		}
		if p.greKey {
			p.fail("", "\"key\" is invalid with PROTO value %q", protoText(s.Proto))
		}
	case protoGRE:
		if p.ports {
			bad("\"sport\" and \"dport\"")
		}
		if p.icmp {
			bad("\"type\" and \"code\"")
		}
	default:
		switch {
		case p.ports:
			bad("\"sport\" and \"dport\"")
		case p.icmp:
			bad("\"type\" and \"code\"")
		case p.greKey:
			p.fail("", "\"key\" is invalid with PROTO value %q", protoText(s.Proto))
		}
	}
}

func protoText(n uint8) string {
	if s := protoNames[n]; s != "" {
		return s
	}
	return strconv.Itoa(int(n))
}

// stateModify reads `state add` and `state update`.
func (p *commandParser) stateModify(s *SA) {
	var id saName
	window := uint32(0)
	note := func(t AttrType) {
		if !slices.Contains(p.c.order, t) {
			p.c.order = append(p.c.order, t)
		}
	}
	algo := func(w string, t AttrType) string {
		p.once(w)
		note(t)
		return p.next(w)
	}
	for p.more() {
		if p.idWord(&id) {
			continue
		}
		switch w := p.next(""); w {
		case "mode":
			s.Mode = p.mode()
		case "mark":
			s.Mark = p.lookupMark()
		case "reqid":
			s.ReqID = p.u32(w)
		case "seq":
			s.Seq = p.seq()
		case "replay-window":
			window = p.u32(w)
		case "replay-seq":
			s.Replay.Seq = p.u32(w)
		case "replay-seq-hi":
			s.Replay.SeqHi = p.u32(w)
		case "replay-oseq":
			s.Replay.OSeq = p.u32(w)
		case "replay-oseq-hi":
			s.Replay.OSeqHi = p.u32(w)
		case "flag":
			s.Flags |= SAFlags(p.flags(w, saFlagNames, 8))
		case "extra-flag":
			s.ExtraFlags |= ExtraFlags(p.flags(w, extraFlagNames, 32))
		case "sel":
			if !p.selector(&s.Sel) {
				p.fail(p.peek(), "sel needs a selector")
			}
		case "limit":
			p.limit(&s.Lifetime)
		case "encap":
			note(AttrEncap)
			p.encap(&s.Encap)
		case "coa":
			note(AttrCoAddr)
			s.CoA = p.prefix(w, 0).Addr()
		case "ctx":
			note(AttrSecCtx)
			s.SecCtx = SecCtx{DOI: 1, Alg: 1, Text: p.next(w)}
		case "offload":
			p.offload(&s.Offload)
		case "output-mark":
			s.SetMark = p.mark(w, 0)
		case "if_id":
			s.IfID = p.u32(w)
			if s.IfID == 0 {
				s.Other = []Attr{{AttrIfID, make([]byte, 4)}}
			}
		case "tfcpad":
			s.TFCPad = p.u32(w)
		case "dir":
			s.Dir = p.saDir(w)
		case "pcpu-num":
			s.PCPU = Some(p.u32(w))
		case "nat-keepalive", "nat_keepalive_interval":
			s.NATKeepalive = p.u32(w)
		case "mtimer-thresh":
			s.MTimer = Some(p.u32(w))
		case "iptfs-opts":
			p.iptfs(&s.IPTFS)
		case "enc":
			s.Cipher.Name = algo(w, AttrCrypt)
			s.Cipher.Key = p.key(w)
		case "auth", "auth-trunc":
			s.Auth.Name = algo("auth", AttrAuthTrunc)
			s.Auth.Key = p.key(w)
			if s.Auth.Legacy = w == "auth"; !s.Auth.Legacy {
				s.Auth.TruncBits = p.u32(w)
			}
		case "aead":
			s.AEAD.Name = algo(w, AttrAEAD)
			s.AEAD.Key = p.key(w)
			s.AEAD.ICVBits = p.u32(w)
		case "comp":
			s.Comp.Name = algo(w, AttrComp)
		default:
			p.fail(w, "unknown word")
		}
	}
	p.finishID(&id)
	s.Src, s.Dst, s.SPI, s.Proto = id.src, id.dst, id.spi, id.proto
	s.Replay.Window = window
	if p.err == nil {
		p.stateRules(s, &id)
	}
	if p.err == nil && len(p.c.order) == 0 {
		p.c.order = nil
	}
}

// stateRules are the checks that iproute2 makes before it sends.
func (p *commandParser) stateRules(s *SA, id *saName) {
	algs := s.AEAD.Name != "" || s.Cipher.Name != "" || s.Auth.Name != "" || s.Comp.Name != ""
	switch {
	case !id.given:
		p.fail("", "not enough information: ID is required")
	case s.Replay.Window > MaxReplayWindow:
		p.fail("", "replay-window (%d) > XFRMA_REPLAY_ESN_MAX (%d)", s.Replay.Window, MaxReplayWindow)
	case s.Flags&ESN != 0 && s.Replay.Window == 0 && s.Dir != SAOut:
		p.fail("", "esn flag set without replay-window")
	case s.CoA.IsValid() && s.Proto != Route2 && s.Proto != HAO:
		p.fail("", "\"coa\" is invalid with XFRM-PROTO value %q", s.Proto)
	}
	switch s.Proto {
	case Route2, HAO:
		switch {
		case algs:
			p.fail("", "ALGO is invalid with XFRM-PROTO value %q", s.Proto)
		case s.Mode != RouteOptimization:
			p.fail("", "MODE value is invalid with XFRM-PROTO value %q", s.Proto)
		case !s.CoA.IsValid():
			p.fail("", "\"coa\" is required with XFRM-PROTO value %q", s.Proto)
		}
	case ESP, AH, Comp:
		if s.Mode == RouteOptimization || s.Mode == InTrigger || s.Proto == Comp && s.Mode == BEET {
			p.fail("", "MODE value is invalid with XFRM-PROTO value %q", s.Proto)
		}
		if s.Cipher.Name != "" && s.AEAD.Name != "" {
			p.fail("", "duplicate ALGO-TYPE: both enc and aead")
		}
		enc := s.Cipher.Name != "" || s.AEAD.Name != ""
		switch s.Proto {
		case ESP:
			if s.Comp.Name != "" {
				p.fail("", "ALGO-TYPE value \"comp\" is invalid with XFRM-PROTO value \"esp\"")
			} else if !enc {
				p.fail("", "ALGO-TYPE value \"enc\" or \"aead\" is required with XFRM-PROTO value \"esp\"")
			}
		case AH:
			if enc || s.Comp.Name != "" {
				p.fail("", "ALGO-TYPE value is invalid with XFRM-PROTO value \"ah\"")
			} else if s.Auth.Name == "" {
				p.fail("", "ALGO-TYPE value \"auth\" or \"auth-trunc\" is required with XFRM-PROTO value \"ah\"")
			}
		case Comp:
			if enc || s.Auth.Name != "" {
				p.fail("", "ALGO-TYPE value is invalid with XFRM-PROTO value \"comp\"")
			} else if s.Comp.Name == "" {
				p.fail("", "ALGO-TYPE value \"comp\" is required with XFRM-PROTO value \"comp\"")
			}
		}
	default:
		if algs {
			p.fail("", "ALGO is invalid with XFRM-PROTO value %q", s.Proto)
		}
	}
}

// lookupMark reads a mark that is part of a key. iproute2 drops one with
// mask 0 in silence, which would match every packet instead of none.
func (p *commandParser) lookupMark() Mark {
	m := p.mark("mark", 0xffffffff)
	if m.Mask == 0 && m.Value != 0 {
		p.fail("", "mark %#x with mask 0 can never match", m.Value)
	}
	return m
}

func (p *commandParser) saDir(after string) SADir {
	switch w := p.next(after); w {
	case "in":
		return SAIn
	case "out":
		return SAOut
	default:
		p.fail(w, "DIR value is invalid")
	}
	return 0
}

func (p *commandParser) encap(e *Encap) {
	w := p.next("encap")
	switch w {
	case "espinudp-nonike":
		e.Type = ESPInUDPNonIKE
	case "espinudp":
		e.Type = ESPInUDP
	case "espintcp":
		e.Type = ESPInTCP
	default:
		p.fail(w, "ENCAP-TYPE value is invalid")
	}
	e.Src, e.Dst = uint16(p.uint("encap", 16)), uint16(p.uint("encap", 16))
	e.Addr = p.prefix("encap", 0).Addr()
}

// offload reads [crypto|packet] dev DEV dir DIR.
func (p *commandParser) offload(o *Opt[Offload]) {
	o.Set = true
	for p.more() {
		switch p.peek() {
		case "crypto":
			p.next("")
		case "packet":
			p.next("")
			o.Value.Flags |= OffloadPacket
		case "dev":
			p.next("")
			o.Value.IfIndex = p.ifindex("dev")
		case "dir":
			p.next("")
			d := p.saDir("dir")
			if d == SAIn {
				o.Value.Flags |= OffloadInbound
			}
			// Newer iproute2 takes the offload's direction for the state's.
			if o.Value.Flags&OffloadPacket != 0 {
				if s, ok := p.c.Request.(*SA); ok && s.Dir == 0 {
					s.Dir = d
				}
			}
		default:
			return
		}
	}
}

func (p *commandParser) iptfs(o *IPTFSOptions) {
	for p.more() {
		switch w := p.peek(); w {
		case "drop-time":
			p.next("")
			o.DropMicros = Some(p.u32(w))
		case "reorder-window":
			p.next("")
			o.ReorderWin = Some(uint16(p.uint(w, 16)))
		case "dont-frag":
			p.next("")
			o.DontFragment = true
		case "init-delay":
			p.next("")
			o.InitMicros = Some(p.u32(w))
		case "max-queue-size":
			p.next("")
			o.MaxQueue = Some(p.u32(w))
		case "pkt-size":
			p.next("")
			o.PacketSize = Some(p.u32(w))
		default:
			return
		}
	}
}

func (p *commandParser) allocSPI() {
	r := new(SPIRequest)
	p.set(AllocSPI, FlagRequest, r)
	var id saName
	minSet, maxSet := false, false
	for p.more() {
		if p.idWord(&id) {
			continue
		}
		switch w := p.next(""); w {
		case "mode":
			r.SA.Mode = p.mode()
		case "mark":
			r.SA.Mark = p.lookupMark()
		case "reqid":
			r.SA.ReqID = p.u32(w)
		case "seq":
			r.SA.Seq = p.seq()
		case "min":
			r.Min, minSet = p.u32(w), true
		case "max":
			r.Max, maxSet = p.u32(w), true
		default:
			p.fail(w, "unknown word")
		}
	}
	switch {
	case !id.given:
		p.fail("", "not enough information: ID is required")
	case minSet != maxSet:
		p.fail("", "min and max need each other")
	case r.Min > r.Max:
		p.fail("", "value after \"min\" is larger than value after \"max\"")
	case !minSet && id.proto == Comp:
		r.Min, r.Max = 0x100, 0xffff
	case !minSet:
		r.Min, r.Max = 0x100, 0x0fffffff
	}
	// iproute2 leaves the limits of the larval state at zero.
	r.SA.Lifetime = Lifetime{SoftBytes: ZeroLimit, HardBytes: ZeroLimit, SoftPackets: ZeroLimit, HardPackets: ZeroLimit}
	p.finishID(&id)
	r.SA.Src, r.SA.Dst, r.SA.SPI, r.SA.Proto = id.src, id.dst, id.spi, id.proto
}

func (p *commandParser) stateID(t MsgType, flags uint16) {
	r := new(SAID)
	p.set(t, flags, r)
	var id saName
	for p.more() {
		if p.idWord(&id) {
			continue
		}
		switch w := p.next(""); w {
		case "mark":
			r.Mark = p.lookupMark()
		case "nokeys":
			p.c.Text.Keys = false
		default:
			p.fail(w, "unknown word")
		}
	}
	p.finishID(&id)
	r.Src, r.Dst, r.SPI, r.Proto = id.src, id.dst, id.spi, id.proto
}

func (p *commandParser) stateList() {
	f := new(StateMatch)
	p.set(GetSA, FlagRequest|FlagDump, f)
	var id saName
	for p.more() {
		if p.idWord(&id) {
			continue
		}
		switch w := p.next(""); w {
		case "mode":
			f.Mode = Some(p.mode())
		case "reqid":
			f.ReqID = p.u32(w)
		case "flag":
			f.Flags |= SAFlags(p.flags(w, saFlagNames, 8))
		case "nokeys":
			p.c.Text.Keys = false
		default:
			p.fail(w, "unknown word")
		}
	}
	a := AddressFilter{Family: id.family}
	if a.Family == 0 {
		a.Family = p.c.family
	}
	if id.src.IsValid() {
		a.Src = netip.PrefixFrom(id.src, id.srcBits)
	}
	if id.dst.IsValid() {
		a.Dst = netip.PrefixFrom(id.dst, id.dstBits)
	}
	f.SPI = id.spi
	f.Proto = id.proto
	f.Addresses = Some(a)
}

func (p *commandParser) policy() {
	p.c.Verb = p.verb("add", "update", "delete", "deleteall", "delall=deleteall", "list", "show=list", "lst=list", "get", "flush", "count", "set", "setdefault", "getdefault")
	switch p.c.Verb {
	case "add", "update":
		t := NewPolicy
		if p.c.Verb == "update" {
			t = UpdPolicy
		}
		x := new(policyCommand)
		p.out = &x.Command
		p.set(t, FlagRequest|FlagAck, &x.policy)
		p.policyModify(&x.policy, x.template[:0])
	case "delete":
		p.policyID(DelPolicy, FlagRequest|FlagAck)
	case "get":
		p.policyID(GetPolicy, FlagRequest)
	case "list", "deleteall":
		p.policyList()
	case "flush":
		f := &Flush{Type: FlushPolicy}
		p.set(FlushPolicy, FlagRequest|FlagAck, f)
		for p.more() {
			if w := p.next(""); w == "ptype" {
				f.PolicyType = p.ptype()
			} else {
				p.fail(w, "unknown word")
			}
		}
	case "count":
		p.set(GetSPDInfo, FlagRequest, nil)
		if p.more() {
			p.fail(p.peek(), "unknown word")
		}
	case "set":
		p.thresholds()
	case "setdefault":
		d := new(Default)
		p.set(SetDefault, FlagRequest|FlagAck, d)
		for p.more() {
			w := p.next("")
			field := map[string]*DefaultAction{"in": &d.In, "fwd": &d.Fwd, "out": &d.Out}[w]
			if field == nil {
				p.fail(w, "unknown direction")
				return
			}
			switch v := p.next(w); v {
			case "accept":
				*field = DefaultAccept
			case "block":
				*field = DefaultBlock
			default:
				p.fail(v, "%s policy value is invalid", w)
			}
		}
	case "getdefault":
		p.set(GetDefault, FlagRequest, new(Default))
		if p.more() {
			p.fail(p.peek(), "unknown word")
		}
	}
}

func (p *commandParser) thresholds() {
	r := new(SPDInfo)
	p.set(NewSPDInfo, FlagRequest|FlagAck, r)
	if !p.more() {
		p.fail("", "set needs hthresh4 or hthresh6")
	}
	for p.more() {
		w := p.next("")
		most := uint8(32)
		field := &r.Hash4
		switch w {
		case "hthresh4":
		case "hthresh6":
			most, field = 128, &r.Hash6
		default:
			p.fail(w, "unknown word")
			return
		}
		t := Thresholds{p.u8(w), p.u8(w)}
		if t.Local > most || t.Remote > most {
			p.fail("", "%s value is invalid", w)
		}
		*field = Some(t)
	}
}

func (p *commandParser) ptype() PolicyType {
	p.once("ptype")
	p.c.withType = true
	switch w := p.next("ptype"); w {
	case "main":
		return PolicyMain
	case "sub":
		return PolicySub
	default:
		p.fail(w, "PTYPE value is invalid")
	}
	return 0
}

func (p *commandParser) dir() Dir {
	p.once("dir")
	switch w := p.next("dir"); w {
	case "in":
		return In
	case "out":
		return Out
	case "fwd":
		return Fwd
	default:
		p.fail(w, "DIR value is invalid")
	}
	return 0
}

func (p *commandParser) action() Action {
	switch w := p.next("action"); w {
	case "allow":
		return Allow
	case "block":
		return Block
	default:
		p.fail(w, "ACTION value is invalid")
	}
	return 0
}

// defaultFamily gives a selector without addresses the family that iproute2
// gives it.
func (p *commandParser) defaultFamily(s *Selector) {
	if s.Family == 0 {
		s.Family = p.c.family
	}
	if s.Family == 0 {
		s.Family = IPv4
	}
}

// policyModify reads the rest of a command into x, with its templates in the
// memory given as long as that suffices.
func (p *commandParser) policyModify(x *Policy, templates []Template) {
	selected := false
	for p.more() {
		switch w := p.peek(); w {
		case "src", "dst", "dev", "proto":
			if selected {
				p.fail(w, "a second SELECTOR")
				return
			}
			selected = true
			p.selector(&x.Sel)
			continue
		}
		switch w := p.next(""); w {
		case "dir":
			x.Dir = p.dir()
		case "ctx":
			x.SecCtx = SecCtx{DOI: 1, Alg: 1, Text: p.next(w)}
		case "mark":
			x.Mark = p.lookupMark()
		case "index":
			x.Index = p.u32(w)
		case "ptype":
			x.Type = p.ptype()
		case "action":
			x.Action = p.action()
		case "priority":
			x.Priority = p.u32(w)
		case "flag":
			x.Flags |= PolicyFlags(p.flags(w, policyFlagNames, 8))
		case "limit":
			p.limit(&x.Lifetime)
		case "if_id":
			x.IfID = p.u32(w)
			if x.IfID == 0 {
				x.Other = []Attr{{AttrIfID, make([]byte, 4)}}
			}
		case "offload":
			p.offload(&x.Offload)
		case "tmpl":
			if len(templates) > maxAttr/sizeTmpl {
				p.fail(w, "too many templates")
				return
			}
			templates = append(templates, p.template())
			x.Templates = templates
		default:
			p.fail(w, "unknown word")
		}
	}
	if !p.seen.has("dir") {
		p.fail("", "not enough information: DIR is required")
	}
	p.defaultFamily(&x.Sel)
	for i := range x.Templates {
		if t := &x.Templates[i]; t.Family == 0 {
			t.Family = x.Sel.Family
		}
	}
}

func (p *commandParser) template() Template {
	var t Template
	var id saName
	any := false
	outer := p.seen
	p.seen = 0
	defer func() { p.seen = outer }()
	for ; p.more(); any = true {
		if p.idWord(&id) {
			continue
		}
		switch w := p.peek(); w {
		case "mode":
			p.next("")
			t.Mode = p.mode()
		case "reqid":
			p.next("")
			t.ReqID = p.u32(w)
		case "level":
			p.next("")
			switch v := p.next(w); v {
			case "required":
				t.Level = Required
			case "use":
				t.Level = Use
			default:
				p.fail(v, "LEVEL value is invalid")
			}
		default:
			if !any {
				p.fail(w, "tmpl needs an ID")
			}
			t.Src, t.Dst, t.SPI, t.Proto, t.Family = id.src, id.dst, id.spi, id.proto, id.family
			return t
		}
	}
	if !any {
		p.fail("", "tmpl needs an ID")
	}
	t.Src, t.Dst, t.SPI, t.Proto, t.Family = id.src, id.dst, id.spi, id.proto, id.family
	return t
}

func (p *commandParser) policyID(t MsgType, flags uint16) {
	r := new(PolicyID)
	p.set(t, flags, r)
	selected := false
	for p.more() {
		switch w := p.peek(); w {
		case "src", "dst", "dev", "proto":
			if selected {
				p.fail(w, "a second SELECTOR")
				return
			}
			selected = true
			p.selector(&r.Sel)
			continue
		}
		switch w := p.next(""); w {
		case "dir":
			r.Dir = p.dir()
		case "ctx":
			r.SecCtx = SecCtx{DOI: 1, Alg: 1, Text: p.next(w)}
		case "mark":
			r.Mark = p.lookupMark()
		case "index":
			p.once(w)
			r.Index = p.u32(w)
		case "ptype":
			r.Type = p.ptype()
		case "if_id":
			r.IfID = p.u32(w)
			if r.IfID == 0 {
				r.Other = []Attr{{AttrIfID, make([]byte, 4)}}
			}
		default:
			p.fail(w, "unknown word")
		}
	}
	switch {
	case !p.seen.has("dir"):
		p.fail("", "not enough information: DIR is required")
	case !selected && !p.seen.has("index"):
		p.fail("", "not enough information: either SELECTOR or INDEX is required")
	case selected && p.seen.has("index"):
		p.fail("", "SELECTOR and INDEX exclude each other")
	}
	p.defaultFamily(&r.Sel)
}

func (p *commandParser) policyList() {
	f := new(PolicyMatch)
	p.set(GetPolicy, FlagRequest|FlagDump, f)
	for p.more() {
		switch p.peek() {
		case "src", "dst", "dev", "proto":
			p.selector(&f.Sel)
			continue
		}
		switch w := p.next(""); w {
		case "dir":
			f.Dir = Some(p.dir())
		case "index":
			f.Index = p.u32(w)
		case "ptype":
			f.Type = Some(p.ptype())
		case "action":
			f.Action = Some(p.action())
		case "priority":
			f.Priority = Some(p.u32(w))
		case "flag":
			f.Flags |= PolicyFlags(p.flags(w, policyFlagNames, 8))
		case "nosock":
			f.NoSocket = true
		default:
			p.fail(w, "unknown word")
		}
	}
	if f.Sel.Family == 0 {
		f.Sel.Family = p.c.family
	}
}

// link reads `link add`.
func (p *commandParser) link() {
	p.c.Verb = p.verb("add")
	l := new(Link)
	p.set(RTMNewLink, FlagRequest|FlagAck|flagCreateExcl, l)
	for p.more() && l.Kind == "" {
		switch w := p.next(""); w {
		case "name", "dev":
			l.Name = p.next(w)
		case "mtu":
			l.MTU = p.u32(w)
		case "type":
			l.Kind = p.next(w)
			if p.err == nil && l.Kind != "vti" && l.Kind != "vti6" && l.Kind != "xfrm" {
				p.fail(l.Kind, "only types vti, vti6 and xfrm are known")
			}
		default:
			if l.Name != "" {
				p.fail(w, "unknown word")
			}
			l.Name = w
		}
	}
	switch {
	case p.err != nil:
	case l.Name == "" || len(l.Name) > maxInterface || strings.ContainsAny(l.Name, "/ \t\n"):
		p.fail(l.Name, "not a name for an interface")
	case l.Kind == "":
		p.fail("", "\"type\" is missing")
	case l.Kind == "xfrm":
		p.linkXfrm(l)
	default:
		p.linkVTI(l)
	}
}

func (p *commandParser) linkXfrm(l *Link) {
	for p.more() {
		switch w := p.next(""); w {
		case "dev":
			l.Link = uint32(p.ifindex(w))
		case "if_id":
			l.IfID = Some(p.u32(w))
			if l.IfID.Value == 0 {
				p.fail("0", "if_id value is invalid")
			}
		case "external":
			// The versions of iproute2 that know this word end the kind with
			// a NUL.
			l.External, l.KindNUL = true, true
		default:
			p.fail(w, "unknown word")
		}
	}
	switch {
	case l.External && l.IfID.Set:
		p.fail("", "if_id and external exclude each other")
	case l.Link != 0 && !l.IfID.Set && !l.External:
		p.fail("", "argument \"IF_ID\" is required")
	}
}

func (p *commandParser) linkVTI(l *Link) {
	f := IPv4
	if l.Kind == "vti6" {
		f = IPv6
	}
	addr := func(w string) netip.Addr {
		if v := p.peek(); v == "any" {
			p.next("")
			return zeroAddr(f)
		}
		return p.prefix(w, f).Addr()
	}
	for p.more() {
		switch w := p.next(""); w {
		case "local":
			l.Local = addr(w)
		case "remote":
			l.Remote = addr(w)
		case "key":
			l.IKey = p.dottedOrNumber(w)
			l.OKey = l.IKey
		case "ikey":
			l.IKey = p.dottedOrNumber(w)
		case "okey":
			l.OKey = p.dottedOrNumber(w)
		case "dev":
			l.Link = uint32(p.ifindex(w))
		case "fwmark":
			l.Fwmark = p.u32(w)
		default:
			p.fail(w, "unknown word")
		}
	}
}
