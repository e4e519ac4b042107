package xfrm

import (
	"bufio"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReadOptions tell the readers of text and commands what only the system
// knows. The zero value, and nil, work.
type ReadOptions struct {
	// IfIndex finds the index of an interface; nil knows none. Names of the
	// form if7 stand for index 7 without it.
	IfIndex func(name string) (int, error)
	// Location of the times in a text; nil is UTC.
	Location *time.Location
	// HiddenKeys accepts a text in which key material was replaced by a
	// placeholder. The keys then are empty. Otherwise such a text is an error.
	HiddenKeys bool
}

// Entry is one state or one policy of a text; the other pointer is nil.
type Entry struct {
	SA     *SA
	Policy *Policy
	Line   int // of its first line, from 1
}

// maxLine bounds the lines of a text: the longest is a key of [maxKey]
// octets, or an unknown attribute.
const maxLine = 1 << 18

// ParseText reads what `ip xfrm state` and `ip xfrm policy` print, in any
// mixture, plain or with -s, or what [SA.AppendText] and [Policy.AppendText]
// write. Empty lines and lines that begin with # are skipped. An entry of
// plain text lacks what plain text does not say, limits above all. The first
// error, a [*SyntaxError] or the reader's own, ends the iteration.
func ParseText(r io.Reader, o *ReadOptions) iter.Seq2[Entry, error] {
	if o == nil {
		o = &ReadOptions{}
	}
	return func(yield func(Entry, error) bool) {
		t := &textReader{o: o}
		s := bufio.NewScanner(r)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			t.n++
			line := s.Text()
			trimmed := strings.TrimLeft(line, " \t")
			if trimmed == "" || trimmed[0] == '#' {
				continue
			}
			if trimmed == line && strings.HasPrefix(line, "src ") {
				if t.have {
					if !yield(t.take(), nil) {
						return
					}
				}
				t.start(line)
			} else if !t.have {
				t.fail("", "an entry begins with \"src\"")
			} else {
				t.more(trimmed)
			}
			if t.err != nil {
				t.clear()
				yield(Entry{}, t.err)
				return
			}
		}
		switch err := s.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(Entry{}, &SyntaxError{Line: t.n + 1, What: "line too long"})
		case err != nil:
			yield(Entry{}, err)
		case t.have:
			yield(t.take(), nil)
		}
	}
}

// ParseStates reads the states of a text; a policy among them is an error.
func ParseStates(r io.Reader, o *ReadOptions) iter.Seq2[*SA, error] {
	return func(yield func(*SA, error) bool) {
		for e, err := range ParseText(r, o) {
			if err == nil && e.SA == nil {
				err = &SyntaxError{Line: e.Line, What: "a policy among states"}
			}
			if !yield(e.SA, err) || err != nil {
				return
			}
		}
	}
}

// ParsePolicies reads the policies of a text; a state among them is an error.
func ParsePolicies(r io.Reader, o *ReadOptions) iter.Seq2[*Policy, error] {
	return func(yield func(*Policy, error) bool) {
		for e, err := range ParseText(r, o) {
			if err == nil && e.Policy == nil {
				err = &SyntaxError{Line: e.Line, What: "a state among policies"}
			}
			if !yield(e.Policy, err) || err != nil {
				return
			}
		}
	}
}

// textReader collects the lines of one entry.
type textReader struct {
	o    *ReadOptions
	n    int // line number
	err  error
	have bool
	e    Entry
	rest string // what is left of the line

	stats  bool // behind "stats:", whose line looks like another
	esn    bool // an extended replay state was read
	bitmap int  // words of it that must follow
	window uint32
}

func (t *textReader) fail(word, what string) {
	if t.err == nil {
		t.err = &SyntaxError{Line: t.n, Word: word, What: what}
	}
}

func (t *textReader) clear() {
	if t.e.SA != nil {
		t.e.SA.ClearKeys()
	}
}

// start begins an entry. A policy's first line has prefixes, a state's has
// addresses.
func (t *textReader) start(line string) {
	*t = textReader{o: t.o, n: t.n, have: true}
	t.rest = line
	if f := strings.IndexByte(line[4:], ' '); f < 0 {
		t.fail(line, "incomplete line")
	} else if strings.IndexByte(line[4:4+f], '/') < 0 {
		t.e = Entry{SA: new(SA), Line: t.n}
		t.e.SA.Src, t.e.SA.Dst = t.pair()
		if !t.e.SA.Dst.IsValid() { // a template may be without
			t.fail(noAddr, "not an address")
		}
		t.end()
	} else {
		t.e = Entry{Policy: new(Policy), Line: t.n}
		t.selector(&t.e.Policy.Sel)
	}
}

// take completes an entry.
func (t *textReader) take() Entry {
	if s := t.e.SA; s != nil && !t.esn {
		s.Replay.Window = t.window
		if s.Flags&ESN != 0 || t.window > 32 {
			s.Replay.Form = ReplayLegacy
		}
	} else if s != nil {
		s.Replay.LegacyWindow = uint8(t.window)
		if s.Flags&ESN == 0 && s.Replay.Window <= 32 {
			s.Replay.Form = ReplayExtended
		}
		if uint64(s.Replay.Words) == (uint64(s.Replay.Window)+31)/32 {
			s.Replay.Words = 0
		}
	}
	t.have = false
	return t.e
}

// next takes a word. Words are separated by blanks; a quoted one may hold
// anything.
func (t *textReader) next() string {
	s := strings.TrimLeft(t.rest, " \t")
	if s != "" && s[0] == '"' {
		q, err := strconv.QuotedPrefix(s)
		if err == nil {
			t.rest = s[len(q):]
			v, _ := strconv.Unquote(q)
			return v
		}
	}
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		i = len(s)
	}
	t.rest = s[i:]
	return s[:i]
}

func (t *textReader) peek() string {
	rest := t.rest
	w := t.next()
	t.rest = rest
	return w
}

// want takes a word that must be there.
func (t *textReader) want(words ...string) {
	for _, w := range words {
		if got := t.next(); got != w {
			t.fail(got, "expected \""+w+"\"")
		}
	}
}

// end checks that the line is used up.
func (t *textReader) end() {
	if w := t.next(); w != "" {
		t.fail(w, "unexpected word")
	}
}

// num reads a number, decimal or with 0x, which may be followed by a comma or
// by the same number in brackets.
func (t *textReader) num(bits int) uint64 {
	w := t.next()
	v, err := number(w, bits)
	if err != nil {
		t.fail(w, "not a number")
	}
	return v
}

func number(w string, bits int) (uint64, error) {
	w = strings.TrimSuffix(w, ",")
	if i := strings.IndexByte(w, '('); i > 0 {
		w = w[:i]
	}
	if h, ok := strings.CutPrefix(w, "0x"); ok {
		return strconv.ParseUint(h, 16, bits)
	}
	return strconv.ParseUint(w, 10, bits)
}

func (t *textReader) u32() uint32 { return uint32(t.num(32)) }

func (t *textReader) addr() netip.Addr {
	w := t.next()
	if w == noAddr {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(w)
	if err != nil || a.Zone() != "" {
		t.fail(w, "not an address")
	}
	return a
}

func (t *textReader) prefix() netip.Prefix {
	w := t.next()
	a, l, ok := strings.Cut(w, "/")
	addr, err := netip.ParseAddr(a)
	n, err2 := strconv.ParseUint(l, 10, 8)
	if !ok || err != nil || err2 != nil || int(n) > addr.BitLen() || addr.Zone() != "" {
		t.fail(w, "not a prefix")
		return netip.Prefix{}
	}
	return netip.PrefixFrom(addr, int(n))
}

// pair reads "src A dst B". An address without a family is written "???".
func (t *textReader) pair() (src, dst netip.Addr) {
	t.want("src")
	src = t.addr()
	t.want("dst")
	dst = t.addr()
	if familyOf(src) != familyOf(dst) {
		t.fail("", "addresses of two families")
	}
	return src, dst
}

// selector reads the rest of a selector's line.
func (t *textReader) selector(s *Selector) {
	t.want("src")
	s.Src = t.prefix()
	t.want("dst")
	s.Dst = t.prefix()
	if s.Family = familyOf(s.Dst.Addr()); s.Family != familyOf(s.Src.Addr()) {
		t.fail("", "addresses of two families")
	}
	for t.err == nil {
		switch w := t.next(); w {
		case "":
			return
		case "proto":
			v := t.next()
			n, ok := parseIPProto(v)
			if !ok {
				t.fail(v, "unknown protocol")
			}
			s.Proto = n
		case "sport", "type":
			s.SrcPort = Port(uint16(t.num(16)))
		case "dport", "code":
			s.DstPort = Port(uint16(t.num(16)))
		case "(dport)":
			t.next() // the extra line says it better
		case "key":
			s.SrcPort, s.DstPort = GREKey(t.u32())
		case "dev":
			s.IfIndex = t.ifindex()
		case "uid":
			s.UID = t.u32()
		default:
			t.fail(w, "unexpected word")
		}
	}
}

func (t *textReader) ifindex() int32 {
	w := t.next()
	i, err := resolve(w, t.o.IfIndex)
	if err != nil {
		t.fail(w, "no such device")
	}
	return i
}

// id reads "proto P [spi S] reqid R mode M".
func (t *textReader) id(proto *Proto, spi, reqid *uint32, mode *Mode) {
	w := t.next()
	p, ok := parseProto(w)
	if !ok {
		t.fail(w, "unknown protocol")
	}
	*proto = p
	for t.err == nil {
		switch w := t.next(); w {
		case "":
			return
		case "spi":
			*spi = t.u32()
		case "reqid":
			*reqid = t.u32()
		case "mode":
			v := t.next()
			if *mode, ok = parseMode(v); !ok {
				t.fail(v, "unknown mode")
			}
		default:
			t.fail(w, "unexpected word")
		}
	}
}

func parseProto(w string) (Proto, bool) {
	for _, x := range [...]Proto{ESP, AH, Comp, Route2, HAO, AnyIPsec} {
		if w == x.String() {
			return x, true
		}
	}
	v, err := strconv.ParseUint(w, 10, 8)
	return Proto(v), err == nil
}

// flags reads names of bits and a hexadecimal rest, up to a word that is
// neither.
func (t *textReader) flags(names []string) uint32 {
	var f uint32
	for {
		w := t.peek()
		if name, ok := strings.CutSuffix(w, "extra_flag"); ok && name != "" {
			// iproute2 leaves no blank between the two lists of flags.
			t.rest = name + " extra_flag" + strings.TrimLeft(t.rest, " \t")[len(w):]
			w = name
		}
		i := slices.Index(names, w)
		switch {
		case i >= 0:
			f |= 1 << i
		case w == "" || w[0] == '(' || w == "extra_flag":
			return f
		default:
			v, err := strconv.ParseUint(w, 16, 32)
			if err != nil {
				return f
			}
			f |= uint32(v)
		}
		t.next()
	}
}

// binary reads the final "(0x01010101)", which repeats the flags.
func (t *textReader) binary() {
	if w := t.peek(); strings.HasPrefix(w, "(0x") && strings.HasSuffix(w, ")") {
		t.next()
	}
	t.end()
}

// time reads a date and a time, "-" or "@SECONDS".
func (t *textReader) time() uint64 {
	w := t.next()
	if w == "-" {
		return 0
	}
	if s, ok := strings.CutPrefix(w, "@"); ok {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.fail(w, "not a time")
		}
		return v
	}
	loc := t.o.Location
	if loc == nil {
		loc = time.UTC
	}
	v, err := time.ParseInLocation(time.DateTime, w+" "+t.next(), loc)
	if err != nil || v.Unix() < 0 {
		t.fail(w, "not a time")
		return 0
	}
	return uint64(v.Unix())
}

// more reads a line that is not an entry's first.
func (t *textReader) more(line string) {
	t.rest = line
	var life *Lifetime
	var cur *Counters
	if s := t.e.SA; s != nil {
		if t.bitmap > 0 {
			t.bitmapLine(s)
			return
		}
		if t.stateLine(s) {
			return
		}
		life, cur = &s.Lifetime, &s.Cur
	} else {
		if t.policyLine(t.e.Policy) {
			return
		}
		life, cur = &t.e.Policy.Lifetime, &t.e.Policy.Cur
	}
	t.rest = line
	switch w := t.next(); {
	case w == "lifetime" && (t.peek() == "config:" || t.peek() == "current:"):
	case w == "limit:":
		t.limits(life)
	case w == "expire":
		t.expire(life)
	case w == "add":
		cur.AddTime = t.time()
		t.want("use")
		cur.UseTime = t.time()
		t.end()
	case strings.HasSuffix(w, "(bytes),"):
		cur.Bytes = t.unit(w, "(bytes),")
		cur.Packets = t.unit(t.next(), "(packets)")
		t.end()
	default:
		t.fail(w, "unknown line")
	}
}

// unit cuts a unit off a number.
func (t *textReader) unit(w, unit string) uint64 {
	n, ok := strings.CutSuffix(w, unit)
	v, err := strconv.ParseUint(n, 10, 64)
	if !ok || err != nil {
		t.fail(w, "not a number with unit "+unit)
	}
	return v
}

func (t *textReader) limits(l *Lifetime) {
	t.want("soft")
	soft := t.next()
	t.want("hard")
	hard := t.next()
	t.end()
	unit, ps, ph := "(bytes)", &l.SoftBytes, &l.HardBytes
	if strings.HasSuffix(hard, "(packets)") {
		unit, ps, ph = "(packets)", &l.SoftPackets, &l.HardPackets
	}
	read := func(w, unit string) uint64 {
		if w == "(INF)"+unit {
			return NoLimit
		}
		v := t.unit(w, unit)
		if v == 0 {
			return ZeroLimit
		}
		return v
	}
	*ps, *ph = read(soft, unit+","), read(hard, unit)
}

func (t *textReader) expire(l *Lifetime) {
	ps, ph := &l.SoftAddSeconds, &l.HardAddSeconds
	switch w := t.next(); w {
	case "add:":
	case "use:":
		ps, ph = &l.SoftUseSeconds, &l.HardUseSeconds
	default:
		t.fail(w, "unexpected word")
	}
	t.want("soft")
	*ps = t.unit(t.next(), "(sec),")
	t.want("hard")
	*ph = t.unit(t.next(), "(sec)")
	t.end()
}

// slash reads VALUE/MASK; absent is the mask where there is none.
func (t *textReader) slash(absent uint32) Mark {
	w := t.next()
	a, b, ok := strings.Cut(w, "/")
	v, err := number(a, 32)
	m := uint64(absent)
	var err2 error
	if ok {
		m, err2 = number(b, 32)
	}
	if err != nil || err2 != nil {
		t.fail(w, "not a mark")
	}
	return Mark{uint32(v), uint32(m)}
}

// stateLine reads a line that only states have and reports whether it was
// one.
func (t *textReader) stateLine(s *SA) bool {
	switch w := t.next(); w {
	case "proto":
		t.id(&s.Proto, &s.SPI, &s.ReqID, &s.Mode)
	case "replay-window":
		t.windowLine(s)
	case "mark":
		s.Mark = t.slash(0xffffffff)
		if t.peek() == "output-mark" {
			t.next()
			s.SetMark = t.slash(0)
		}
		t.end()
	case "output-mark":
		s.SetMark = t.slash(0)
		t.end()
	case "auth", "auth-trunc", "aead", "enc", "comp":
		t.algo(s, w)
	case "encap":
		t.encap(&s.Encap)
	case "coa":
		s.CoA = t.addr()
		t.end()
	case "lastused":
		s.LastUsed = t.time()
		t.end()
	case "anti-replay":
		t.replay(s)
	case "seq-hi":
		s.Replay.SeqHi = t.u32()
		t.want("seq")
		s.Replay.Seq = t.u32()
		t.want("oseq-hi")
		s.Replay.OSeqHi = t.u32()
		t.want("oseq")
		s.Replay.OSeq = t.u32()
		t.end()
	case "replay_window":
		s.Replay.Window = t.u32()
		t.want("bitmap-length")
		s.Replay.Words = t.u32()
		t.end()
		t.bitmap = int(min(s.Replay.Words, MaxReplayWindow/32*16))
	case "crypto":
		s.Offload = t.offload()
	case "if_id":
		s.IfID = t.u32()
		t.end()
	case "tfcpad":
		s.TFCPad = t.u32()
		t.end()
	case "dir":
		w := t.next()
		switch w {
		case "in":
			s.Dir = SAIn
		case "out":
			s.Dir = SAOut
		default:
			v, err := strconv.ParseUint(w, 10, 8)
			if err != nil {
				t.fail(w, "unknown direction")
			}
			s.Dir = SADir(v)
		}
		t.end()
	case "pcpu-num":
		s.PCPU = Some(t.u32())
		t.end()
	case "sel":
		t.selector(&s.Sel)
	case "stats:":
		t.stats = true
		t.end()
	case "security":
		t.secctx(&s.SecCtx)
	case "extra":
		t.stateExtra(s)
	default:
		return false
	}
	return true
}

func (t *textReader) windowLine(s *SA) {
	if t.stats {
		s.Stats.ReplayWindow = t.u32()
		t.want("replay")
		s.Stats.Replay = t.u32()
		t.want("failed")
		s.Stats.IntegrityFailed = t.u32()
		t.end()
		return
	}
	if t.window = uint32(t.num(8)); t.peek() == "seq" {
		t.next()
		w := t.next()
		d, ok := strings.CutPrefix(w, "0x") // but it is decimal
		v, err := strconv.ParseUint(d, 10, 32)
		if !ok || err != nil {
			t.fail(w, "not a sequence number")
		}
		s.Seq = uint32(v)
	}
	if t.peek() == "flag" {
		t.next()
		s.Flags = SAFlags(t.flags(saFlagNames))
	}
	if t.peek() == "extra_flag" {
		t.next()
		s.ExtraFlags = ExtraFlags(t.flags(extraFlagNames))
	}
	t.binary()
}

// algo reads "NAME [KEY [(N bits)]] [LENGTH]".
func (t *textReader) algo(s *SA, label string) {
	name := t.next()
	if name == "" {
		t.fail("", "no algorithm")
		return
	}
	var key Key
	switch w := t.peek(); {
	case w == "<<Keys":
		t.want("<<Keys", "hidden>>")
		if !t.o.HiddenKeys {
			t.fail("", "the key is hidden")
		}
	case strings.HasPrefix(w, "0x"):
		t.next()
		k, err := hex.DecodeString(w[2:])
		if err != nil || len(k) > maxKey {
			t.fail("", "a key that is not hexadecimal or too long")
		}
		key = k
	}
	if strings.HasPrefix(t.peek(), "(") {
		t.next()
		t.want("bits)")
	}
	switch label {
	case "auth":
		s.Auth = Auth{Name: name, Key: key, Legacy: true}
	case "auth-trunc":
		s.Auth = Auth{Name: name, Key: key, TruncBits: t.u32()}
	case "aead":
		s.AEAD = AEAD{Name: name, Key: key, ICVBits: t.u32()}
	case "enc":
		s.Cipher = Algorithm{name, key}
	case "comp":
		s.Comp = Algorithm{name, key}
	}
	if t.next() != "" { // not quoted: it may be a piece of a key
		t.fail("", "unexpected word behind an algorithm")
	}
}

func (t *textReader) encap(e *Encap) {
	t.want("type")
	switch w := t.next(); w {
	case "espinudp-nonike":
		e.Type = ESPInUDPNonIKE
	case "espinudp":
		e.Type = ESPInUDP
	case "espintcp":
		e.Type = ESPInTCP
	default:
		v, err := strconv.ParseUint(w, 10, 16)
		if err != nil {
			t.fail(w, "unknown encapsulation")
		}
		e.Type = EncapType(v)
	}
	t.want("sport")
	e.Src = uint16(t.num(16))
	t.want("dport")
	e.Dst = uint16(t.num(16))
	t.want("addr")
	e.Addr = t.addr()
	t.end()
}

func (t *textReader) replay(s *SA) {
	s.Replay.Reported = true
	w := t.next()
	if w == "esn" {
		t.want("context:")
		t.end()
		t.esn = true
		return
	}
	if w != "context:" {
		t.fail(w, "expected \"context:\"")
	}
	t.want("seq")
	s.Replay.Seq = t.u32()
	t.want("oseq")
	s.Replay.OSeq = t.u32()
	t.want("bitmap")
	s.Replay.Bitmap = []uint32{t.u32()}
	t.end()
}

// bitmapLine reads up to eight words of a bitmap. Another line means that
// there is none.
func (t *textReader) bitmapLine(s *SA) {
	rest := t.rest
	for n := 0; t.bitmap > 0; n++ {
		w := t.peek()
		v, err := strconv.ParseUint(w, 16, 32)
		if w == "" && n > 0 { // the rest is on the next line
			return
		}
		if err != nil || len(w) != 8 {
			if n == 0 && len(s.Replay.Bitmap) == 0 {
				t.bitmap = 0
				t.more(rest)
				return
			}
			t.fail(w, "not a word of a bitmap")
			return
		}
		s.Replay.Bitmap = append(s.Replay.Bitmap, uint32(v))
		t.bitmap--
		t.next()
	}
	slices.Reverse(s.Replay.Bitmap) // the last word comes first
	t.end()
}

func (t *textReader) offload() Opt[Offload] {
	var o Offload
	t.want("offload", "parameters:", "dev")
	if t.peek() == "*" {
		t.next()
	} else {
		o.IfIndex = t.ifindex()
	}
	t.want("dir")
	switch w := t.next(); w {
	case "in":
		o.Flags |= OffloadInbound
	case "out":
	default:
		t.fail(w, "unknown direction")
	}
	if t.peek() == "mode" {
		t.next()
		switch w := t.next(); w {
		case "packet":
			o.Flags |= OffloadPacket
		case "crypto":
		default:
			t.fail(w, "unknown mode")
		}
	}
	t.end()
	return Some(o)
}

func (t *textReader) secctx(c *SecCtx) {
	t.want("context")
	*c = SecCtx{DOI: 1, Alg: 1, Text: t.next()}
	t.end()
}

// extraAttr reads an attribute without a name.
func (t *textReader) extraAttr(list []Attr) []Attr {
	typ := AttrType(t.num(16))
	w := t.next()
	h, ok := strings.CutPrefix(w, "0x")
	d, err := hex.DecodeString(h)
	if !ok || err != nil || len(d) > maxAttr || typ > attrTypeMask {
		t.fail("", "not an attribute")
	}
	return append(list, Attr{typ, d})
}

// extraSel reads what a selector's line does not say.
func (t *textReader) extraSel(w string, s *Selector) bool {
	switch w {
	case "ports":
		a, b := t.slash(0), t.slash(0)
		if (a.Value|a.Mask|b.Value|b.Mask)>>16 != 0 {
			t.fail("", "a port of more than 16 bits")
		}
		s.SrcPort = PortMatch{uint16(a.Value), uint16(a.Mask)}
		s.DstPort = PortMatch{uint16(b.Value), uint16(b.Mask)}
	case "sel-family":
		t.num(0)
		s.Family, s.Src, s.Dst = Unspec, netip.Prefix{}, netip.Prefix{}
	default:
		return false
	}
	return true
}

func (t *textReader) extraOffload(o *Opt[Offload]) {
	o.Value.Flags |= OffloadFlags(t.num(8))
}

func (t *textReader) extraCtx(c *SecCtx) {
	c.DOI = uint8(t.num(8))
	c.Alg = uint8(t.num(8))
}

func (t *textReader) stateExtra(s *SA) {
	switch w := t.next(); w {
	case "output-mark-mask":
		s.SetMark.Mask = t.u32()
	case "nat-keepalive":
		s.NATKeepalive = t.u32()
	case "mtimer-thresh":
		s.MTimer = Some(t.u32())
	case "replay-thresh":
		s.ReplayThresh = Some(t.u32())
	case "etimer-thresh":
		s.ETimerThresh = Some(t.u32())
	case "iptfs-drop-time":
		s.IPTFS.DropMicros = Some(t.u32())
	case "iptfs-reorder-window":
		s.IPTFS.ReorderWin = Some(uint16(t.num(16)))
	case "iptfs-dont-frag":
		s.IPTFS.DontFragment = t.num(1) == 1
	case "iptfs-init-delay":
		s.IPTFS.InitMicros = Some(t.u32())
	case "iptfs-max-queue-size":
		s.IPTFS.MaxQueue = Some(t.u32())
	case "iptfs-pkt-size":
		s.IPTFS.PacketSize = Some(t.u32())
	case "offload-flags":
		t.extraOffload(&s.Offload)
	case "sec-ctx":
		t.extraCtx(&s.SecCtx)
	case "attr":
		s.Other = t.extraAttr(s.Other)
	default:
		if !t.extraSel(w, &s.Sel) {
			t.fail(w, "unknown line")
		}
	}
	t.end()
}

// policyLine reads a line that only policies have and reports whether it was
// one.
func (t *textReader) policyLine(p *Policy) bool {
	switch w := t.next(); w {
	case "dir", "socket":
		t.dirLine(p, w == "socket")
	case "security":
		t.secctx(&p.SecCtx)
	case "mark":
		p.Mark = t.slash(0xffffffff)
		t.end()
	case "if_id":
		p.IfID = t.u32()
		t.end()
	case "crypto":
		p.Offload = t.offload()
	case "tmpl":
		if len(p.Templates) >= maxAttr/sizeTmpl {
			t.fail(w, "too many templates")
			return true
		}
		var x Template
		x.Src, x.Dst = t.pair()
		x.Family = familyOf(x.Dst)
		p.Templates = append(p.Templates, x)
		t.end()
	case "proto", "level", "enc-mask":
		if len(p.Templates) == 0 {
			t.fail(w, "no template to describe")
			return true
		}
		t.tmplLine(w, &p.Templates[len(p.Templates)-1])
	case "extra":
		switch w := t.next(); w {
		case "offload-flags":
			t.extraOffload(&p.Offload)
		case "sec-ctx":
			t.extraCtx(&p.SecCtx)
		case "attr":
			p.Other = t.extraAttr(p.Other)
		default:
			if !t.extraSel(w, &p.Sel) {
				t.fail(w, "unknown line")
			}
		}
		t.end()
	default:
		return false
	}
	return true
}

func (t *textReader) dirLine(p *Policy, socket bool) {
	w := t.next()
	i := slices.Index([]string{"in", "out", "fwd"}, w)
	if i < 0 {
		v, err := strconv.ParseUint(w, 10, 8)
		if err != nil {
			t.fail(w, "unknown direction")
		}
		i = int(v)
	}
	if socket {
		i += 3
	}
	if i > 255 {
		t.fail(w, "unknown direction")
	}
	p.Dir = Dir(i)
	for t.err == nil {
		switch w := t.next(); w {
		case "":
			return
		case "action":
			p.Action = Action(t.enum("allow", "block"))
		case "index":
			p.Index = t.u32()
		case "priority":
			p.Priority = t.u32()
		case "ptype":
			p.Type = PolicyType(t.enum("main", "sub"))
		case "share":
			p.Share = Share(t.enum("any", "session", "user", "unique"))
		case "flag":
			p.Flags = PolicyFlags(t.flags(policyFlagNames))
			t.binary()
		default:
			t.fail(w, "unexpected word")
		}
	}
}

// enum reads a name, or the number of a value without one.
func (t *textReader) enum(names ...string) uint8 {
	w := t.next()
	if i := slices.Index(names, w); i >= 0 {
		return uint8(i)
	}
	v, err := strconv.ParseUint(w, 10, 8)
	if err != nil {
		t.fail(w, "unknown value")
	}
	return uint8(v)
}

func (t *textReader) tmplLine(w string, x *Template) {
	switch w {
	case "proto":
		t.id(&x.Proto, &x.SPI, &x.ReqID, &x.Mode)
	case "level":
		x.Level = Level(t.enum("required", "use"))
		if t.peek() == "share" {
			t.next()
			x.Share = Share(t.enum("any", "session", "user", "unique"))
		}
		t.end()
	case "enc-mask":
		x.NoEnc = ^t.mask()
		t.want("auth-mask")
		x.NoAuth = ^t.mask()
		t.want("comp-mask")
		x.NoComp = ^t.mask()
		t.end()
	}
}

// mask reads eight hexadecimal digits.
func (t *textReader) mask() uint32 {
	w := t.next()
	v, err := strconv.ParseUint(w, 16, 32)
	if err != nil {
		t.fail(w, "not a mask")
	}
	return uint32(v)
}
