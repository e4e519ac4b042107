package xfrm

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// The tests of this file are mistakes that others were reported to make, each
// with the right answer.

// message builds a message or fails.
func message(t testing.TB, b []byte, err error) Message {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	m, n, err := FirstMessage(b)
	if err != nil || n != align(len(b)) && n != len(b) {
		t.Fatalf("%d of %d octets, %v", n, len(b), err)
	}
	return m
}

func attrOf(m Message, t AttrType) []byte {
	for a, err := range m.Attributes() {
		if err == nil && a.Type == t {
			return a.Data
		}
	}
	return nil
}

func reparse(t testing.TB, s *SA) SA {
	t.Helper()
	b, err := AppendNewSA(nil, Header{}, s)
	var out SA
	if err := out.Parse(message(t, b, err)); err != nil {
		t.Fatal(err)
	}
	return out
}

// vishvananda/netlink#803: a window of 256 became uint8(256) = 0.
func TestBug01WindowAbove255IsNotTruncated(t *testing.T) {
	s := gcmSA()
	s.Replay.Window = 256
	b, err := AppendNewSA(nil, Header{}, &s)
	m := message(t, b, err)
	if m.Body[saWindow] != 0 || m.Body[saFlags]&byte(ESN) != 0 {
		t.Errorf("octet %d, flags %#x: want both 0", m.Body[saWindow], m.Body[saFlags])
	}
	d := attrOf(m, AttrReplayESN)
	if len(d) != sizeESN || ne.Uint32(d) != 8 || ne.Uint32(d[20:]) != 256 {
		t.Errorf("XFRMA_REPLAY_ESN_VAL %x: want bmp_len 8, window 256", d)
	}
	if got := reparse(t, &s); got.Replay.Window != 256 || got.Flags&ESN != 0 {
		t.Errorf("read back %+v", got.Replay)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// vishvananda/netlink#1213: window and ESN were not read back.
func TestBug02ESNIsReadBack(t *testing.T) {
	s := gcmSA()
	s.Flags, s.Replay.Window = ESN, 128
	got := reparse(t, &s)
	if got.Replay.Window != 128 || got.Flags&ESN == 0 {
		t.Errorf("window %d flags %v, want 128 esn", got.Replay.Window, got.Flags)
	}
}

// vishvananda/netlink: String of a state without pcpu dereferenced nil.
func TestBug03ZeroValuesPrint(t *testing.T) {
	for _, o := range []TextOptions{{}, {Stats: true}, Lossless()} {
		_ = (&SA{}).AppendText(nil, o)
		_ = (&Policy{}).AppendText(nil, o)
		_ = (&Policy{Templates: []Template{{}}}).AppendText(nil, o)
	}
	for _, v := range []any{&SA{}, &Policy{}, SAID{}, PolicyID{}, Acquire{}, Expire{}, Mapping{}, Migrate{}, MigrateState{},
		AsyncEvent{}, Report{}, Default{}, SADInfo{}, SPDInfo{}, Link{}, Flush{}, RuleError{}, &FormatError{Err: ErrShort},
		&AckError{}, &SyntaxError{}, Replay{}, Selector{}, Key(nil), MsgType(0), AttrType(99), Group(99), Mode(99), Dir(99)} {
		if s := fmt.Sprintf("%v %+v %s", v, v, v); s == "" {
			t.Errorf("%T prints nothing", v)
		}
	}
	if err := (&SA{}).Check(); err == nil {
		t.Error("a zero SA passes Check")
	}
	if err := (&Policy{}).Check(); err == nil {
		t.Error("a zero Policy passes Check")
	}
	if _, err := AppendNewSA(nil, Header{}, &SA{}); !errors.Is(err, ErrMissing) {
		t.Errorf("a zero SA is built: %v", err)
	}
}

// vishvananda/netlink#1213: a template without addresses got family IPv4 in an
// IPv6 policy.
func TestBug04TemplateTakesTheSelectorsFamily(t *testing.T) {
	p := Policy{Sel: Selector{Src: netip.MustParsePrefix("2001:db8:1::/48"), Dst: netip.MustParsePrefix("2001:db8:2::/48")},
		Dir: Out, Templates: []Template{{Proto: ESP, Mode: Transport}}}
	b, err := AppendNewPolicy(nil, Header{}, &p)
	d := attrOf(message(t, b, err), AttrTemplate)
	if f := Family(ne.Uint16(d[24:])); f != IPv6 {
		t.Errorf("family %v, want inet6", f)
	}
	if err := p.Check(); err != nil {
		t.Error(err)
	}
}

// vishvananda/netlink: the family of an address was guessed from zero octets.
func TestBug05FamilyNeverFromZeroOctets(t *testing.T) {
	for _, c := range []string{"2001:db8::/32", "::/0", "0.0.0.0/0", "::/128", "10.0.0.0/8"} {
		pre := netip.MustParsePrefix(c)
		p := Policy{Sel: Selector{Src: pre, Dst: pre}, Dir: Out,
			Templates: []Template{{Src: pre.Addr(), Dst: pre.Addr(), Proto: ESP, Mode: Tunnel}}}
		b, err := AppendNewPolicy(nil, Header{}, &p)
		var got Policy
		if err := got.Parse(message(t, b, err)); err != nil {
			t.Fatal(err)
		}
		if got.Sel.Dst != pre || got.Sel.Src != pre || got.Templates[0].Src != pre.Addr() || got.Templates[0].Dst != pre.Addr() {
			t.Errorf("%s: read %v %v, template %v", c, got.Sel.Src, got.Sel.Dst, got.Templates[0])
		}
		s := gcmSA()
		s.Src, s.Dst, s.CoA = pre.Addr(), pre.Addr(), pre.Addr()
		if got := reparse(t, &s); got.Src != pre.Addr() || got.Dst != pre.Addr() || got.CoA != pre.Addr() {
			t.Errorf("%s: state read %v %v %v", c, got.Src, got.Dst, got.CoA)
		}
	}
}

// vishvananda/netlink: an IPv4 source in XFRMA_SRCADDR was written in the
// mapped form.
func TestBug06SourceAddressInTheFirstOctets(t *testing.T) {
	s := gcmSA()
	id := s.ID()
	b, err := AppendGetSA(nil, Header{}, &id)
	want := append([]byte{192, 0, 2, 1}, make([]byte, 12)...)
	if d := attrOf(message(t, b, err), AttrSrcAddr); !bytes.Equal(d, want) {
		t.Errorf("%x, want %x", d, want)
	}
}

// libreswan#541, #618: a policy with an if_id was deleted without it.
func TestBug07DeleteHasTheWholeKey(t *testing.T) {
	p := Policy{Sel: Selector{Src: netip.MustParsePrefix("10.0.0.0/8"), Dst: netip.MustParsePrefix("10.1.0.0/16")},
		Dir: Out, IfID: 1, Mark: Mark{6, 0xff}, Type: PolicySub, SecCtx: SecCtx{1, 1, "label"}}
	id := p.ID()
	b, err := AppendDelPolicy(nil, Header{}, &id)
	m := message(t, b, err)
	if attrOf(m, AttrIfID) == nil || attrOf(m, AttrMark) == nil || attrOf(m, AttrPolicyType) == nil || attrOf(m, AttrSecCtx) == nil {
		t.Errorf("part of the key is missing: %x", b)
	}
	var back PolicyID
	if err := back.Parse(m); err != nil || back.IfID != 1 || back.Mark != p.Mark || back.Type != PolicySub || back.SecCtx != p.SecCtx {
		t.Errorf("%+v, %v", back, err)
	}
	s := gcmSA()
	s.Mark = Mark{6, 0xff}
	if id := s.ID(); id.Mark != s.Mark || id.Src != s.Src {
		t.Errorf("%+v", id)
	}
}

// libnl#233, vishvananda/netlink#88: a dump request carried a structure that
// the kernel read as attributes.
func TestBug08DumpRequestsHaveNoFixedPart(t *testing.T) {
	b, err := AppendDumpSA(nil, Header{}, SAFilter{})
	if err != nil || len(b) != 16 {
		t.Errorf("state dump of %d octets, %v", len(b), err)
	}
	if b := AppendDumpPolicy(nil, Header{}); len(b) != 16 {
		t.Errorf("policy dump of %d octets", len(b))
	}
	b, err = AppendDumpSA(nil, Header{}, SAFilter{Proto: AH, Addresses: Some(AddressFilter{Family: IPv4})})
	m := message(t, b, err)
	var types []AttrType
	for a, err := range m.Attributes() {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, a.Type)
	}
	if !slices.Equal(types, []AttrType{AttrProto, AttrAddressFilter}) {
		t.Errorf("attributes %v", types)
	}
	var f SAFilter
	if err := f.Parse(m); err != nil || f.Proto != AH || f.Addresses.Value.Family != IPv4 {
		t.Errorf("%+v, %v", f, err)
	}
}

// strongswan#2946: flags that the direction of a state forbids.
func TestBug09DirectionRules(t *testing.T) {
	esn := func(s *SA) { s.Flags |= ESN; s.Replay.Window = 32 }
	for _, c := range []struct {
		dir    SADir
		change func(*SA)
		rule   string // empty: accepted
	}{
		{SAIn, func(s *SA) { s.Flags = NoPMTUDisc }, "NOPMTUDISC"},
		{SAIn, func(s *SA) { s.ExtraFlags = DontEncapDSCP }, "DONT_ENCAP_DSCP"},
		{SAIn, func(s *SA) { s.ExtraFlags = OSeqMayWrap }, "OSEQ_MAY_WRAP"},
		{SAIn, func(s *SA) { s.NATKeepalive, s.Encap = 20, udp4500() }, "outbound"},
		{SAIn, func(s *SA) { s.Flags = NoECN }, ""},
		{SAIn, func(s *SA) { s.Replay = Replay{Window: 32, OSeq: 5} }, ""},
		{SAIn, func(s *SA) { s.SetMark.Value = 5 }, ""},
		{SAIn, func(s *SA) { s.Flags = DecapDSCP | ICMP | WildRecv }, ""},
		{SAOut, func(s *SA) { s.Replay.Window = 32 }, "Replay window should be 0"},
		{SAOut, esn, "Replay window should be 0"},
		{SAOut, func(s *SA) { s.Flags = DecapDSCP }, "DECAP_DSCP"},
		{SAOut, func(s *SA) { s.Flags = ICMP }, "ICMP"},
		{SAOut, func(s *SA) { s.Flags = WildRecv }, "WILDRECV"},
		{SAOut, func(s *SA) { s.MTimer, s.Encap = Some[uint32](1), udp4500() }, "MTIMER"},
		{SAOut, func(s *SA) { s.Flags = NoPMTUDisc; s.ExtraFlags = DontEncapDSCP | OSeqMayWrap }, ""},
		{0, func(s *SA) { s.Flags = NoPMTUDisc | DecapDSCP | ICMP | WildRecv }, ""},
	} {
		s := gcmSA()
		s.Dir = c.dir
		c.change(&s)
		err := s.Check()
		if (err == nil) != (c.rule == "") || err != nil && !strings.Contains(err.Error(), c.rule) {
			t.Errorf("dir %v flags %v extra %v: %v, want %q", c.dir, s.Flags, s.ExtraFlags, err, c.rule)
		}
	}
}

// strongswan#1967: the bitmap of a large window overflowed a fixed buffer.
func TestBug10LargestWindow(t *testing.T) {
	s := gcmSA()
	s.Flags = ESN
	s.Replay = Replay{Window: 4096, Bitmap: make([]uint32, 128), Seq: 9, SeqHi: 1}
	s.Replay.Bitmap[127] = 0x80000001
	b, err := AppendNewSA(nil, Header{}, &s)
	m := message(t, b, err)
	if d := attrOf(m, AttrReplayESN); len(d) != 24+512 {
		t.Errorf("attribute of %d octets, want 4+24+512", 4+len(d))
	}
	got := reparse(t, &s)
	if got.Replay.Window != 4096 || !slices.Equal(got.Replay.Bitmap, s.Replay.Bitmap) || got.Replay.SeqHi != 1 {
		t.Errorf("read back %+v", got.Replay)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if err := identitySA(&got); err != nil {
		t.Error(err)
	}
	s.Replay = Replay{Window: 4097}
	if s.Check() == nil {
		t.Error("a window of 4097 passes Check")
	}
}

// libreswan#529: ESN with window 0.
func TestBug11ESNNeedsAWindow(t *testing.T) {
	s := gcmSA()
	s.Flags = ESN
	var rule *RuleError
	if err := s.Check(); !errors.As(err, &rule) || rule.Field != "Replay.Window" || rule.Rule != "ESN replay window must be > 0" {
		t.Errorf("got %v", err)
	}
	s.Dir = SAOut
	if err := s.Check(); err != nil {
		t.Errorf("outbound: %v", err)
	}
	if _, err := NewReplay(0); err == nil {
		t.Error("NewReplay(0) succeeds")
	}
	if _, err := NewReplay(4097); err == nil {
		t.Error("NewReplay(4097) succeeds")
	}
}

// openiked-portable#97: SHA-256 was truncated to 96 bits.
func TestBug12SHA256TruncatesTo128(t *testing.T) {
	a, err := HMACSHA256(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	c, err := AESCBC(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}
	s := gcmSA()
	s.AEAD, s.Auth, s.Cipher = AEAD{}, a, c
	b, err := AppendNewSA(nil, Header{}, &s)
	m := message(t, b, err)
	if d := attrOf(m, AttrAuthTrunc); d == nil || ne.Uint32(d[68:]) != 128 {
		t.Errorf("XFRMA_ALG_AUTH_TRUNC %x, want 128 bits", d)
	}
	if attrOf(m, AttrAuth) != nil {
		t.Error("XFRMA_ALG_AUTH is sent too")
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	s.Auth.TruncBits, s.Auth.Legacy = 0, true
	var rule *RuleError
	if err := s.Check(); !errors.As(err, &rule) || !rule.OnPurpose || rule.Field != "Auth.TruncBits" {
		t.Errorf("the kernel's default of 96 passes: %v", err)
	}
}

// cilium#24773: marks were compared by pointer and never equal.
func TestBug13MarksAreValues(t *testing.T) {
	a, b := gcmSA(), gcmSA()
	a.Mark, b.Mark = Mark{6, 0xffffffff}, Mark{6, 0xffffffff}
	if a.Mark != b.Mark || a.Sel != b.Sel || a.Lifetime != b.Lifetime || a.Encap != b.Encap || a.PCPU != b.PCPU {
		t.Error("values that are equal compare unequal")
	}
}

// free5gc#992, n3iwf#61: nobody chose the replay window, so there was none.
func TestBug14NoWindowOnlyByName(t *testing.T) {
	r, err := NewReplay(64)
	if err != nil || r.Window != 64 {
		t.Errorf("%+v, %v", r, err)
	}
	if r := NoReplayWindow(); r.Window != 0 {
		t.Errorf("%+v", r)
	}
	in, err := NewInbound(gcmSA(), 0)
	if err == nil {
		t.Errorf("an inbound SA without a window: %+v", in.Replay)
	}
	if in, err = NewInbound(gcmSA(), 64); err != nil || in.Replay.Window != 64 || in.Dir != SAIn {
		t.Errorf("%+v, %v", in.Replay, err)
	}
}

// pyroute2#435, libnl#208: options of vti6.
func TestBug15VTI6Options(t *testing.T) {
	l := Link{Name: "vti6x", Kind: "vti6", Local: netip.MustParseAddr("2001:db8::1"), Remote: netip.MustParseAddr("2001:db8::2"),
		IKey: 6, OKey: 6, Fwmark: 0x10}
	b, err := AppendLink(nil, Header{Flags: FlagRequest | FlagAck}, &l)
	if err != nil {
		t.Fatal(err)
	}
	key := []byte{0, 0, 0, 6} // network order on every system
	if bytes.Count(b, key) < 2 {
		t.Errorf("keys are not in network byte order: %x", b)
	}
	m := message(t, b, nil)
	var got Link
	if err := got.Parse(m); err != nil || got != l {
		t.Errorf("%+v, %v", got, err)
	}
	if native && !bytes.Contains(b, append([]byte{0x14, 0, 4, 0}, l.Local.AsSlice()...)) {
		t.Errorf("LOCAL is not 16 octets of type 4: %x", b)
	}
	l.Local = netip.MustParseAddr("192.0.2.1")
	if _, err := AppendLink(nil, Header{}, &l); !errors.Is(err, ErrFamily) {
		t.Errorf("an IPv4 address in a vti6: %v", err)
	}
}

// openwrt#14360: only errno was shown, "No such file or directory".
func TestBug16ExtendedAckTextIsShown(t *testing.T) {
	text := "Requested CRYPT algorithm not found."
	b, body := begin(nil, MsgError, Header{Flags: FlagTLVs | FlagCapped}, 4+sizeHeader)
	code := int32(-38)
	ne.PutUint32(body, uint32(code))
	ne.PutUint16(body[8:], uint16(NewSA))
	ne.PutUint32(body[12:], 77)
	b = AppendAttr(b, extMsg, append([]byte(text), 0))
	b = appendU32(b, extOffset, 336)
	b = finish(b, 0)
	err := ParseAck(message(t, b, nil))
	var e *AckError
	if !errors.As(err, &e) || e.Text != text || e.Errno != 38 || e.Offset != 336 || e.Seq != 77 || e.Type != NewSA {
		t.Fatalf("%+v", err)
	}
	if !strings.Contains(err.Error(), text) || !errors.Is(err, Errno(38)) {
		t.Errorf("%q", err)
	}
	s := gcmSA()
	s.Dir = 3
	req, err := AppendNewSA(nil, Header{}, &s)
	if err != nil {
		t.Fatal(err)
	}
	if tailPad == 0 {
		e.Offset = uint32(len(req) - 8) // the last attribute
		if e.Locate(req); e.Attr != AttrSADir {
			t.Errorf("offset %d is attribute %v, want sa_dir", e.Offset, e.Attr)
		}
	}
}

// vishvananda/netlink: unsupported events were dropped without an error, and
// a flush left the sub policies.
func TestBug17NothingIsDroppedInSilence(t *testing.T) {
	if _, err := ParseEvent(Message{Type: 0x60}); !errors.Is(err, ErrType) {
		t.Errorf("an unknown message: %v", err)
	}
	b := AppendFlushPolicy(nil, Header{}, PolicySub)
	if d := attrOf(message(t, b, nil), AttrPolicyType); len(d) != 6 || d[0] != 1 {
		t.Errorf("flush of sub policies: %x", b)
	}
	if b := AppendFlushPolicy(nil, Header{}, PolicyMain); len(b) != 16 {
		t.Errorf("flush of main policies: %x", b)
	}
}

// Linux accepts SPI 0 and ciphers without authentication.
func TestBug18DangerousStatesAreRefused(t *testing.T) {
	s := gcmSA()
	s.SPI = 0
	var rule *RuleError
	if err := s.Check(); !errors.As(err, &rule) || rule.Field != "SPI" || !rule.OnPurpose {
		t.Errorf("SPI 0: %v", err)
	}
	for _, auth := range []Auth{{}, NullAuth()} {
		s = gcmSA()
		s.AEAD = AEAD{}
		s.Cipher = Algorithm{"cbc(aes)", make(Key, 16)}
		s.Auth = auth
		if err := s.Check(); !errors.As(err, &rule) || rule.Field != "Auth" || !rule.OnPurpose {
			t.Errorf("CBC with auth %q: %v", auth.Name, err)
		}
	}
	s.Cipher = NullCipher()
	if err := s.Check(); err != nil {
		t.Errorf("null and null, by name: %v", err)
	}
}

// libreswan#1769 and iproute2: names with and without a NUL.
func TestBug19NamesWithAndWithoutNUL(t *testing.T) {
	for _, nul := range []bool{false, true} {
		l := Link{Name: "xf0", Kind: "xfrm", IfID: Some[uint32](0x42), KindNUL: nul}
		b, err := AppendLink(nil, Header{}, &l)
		var got Link
		if err := got.Parse(message(t, b, err)); err != nil || got != l {
			t.Errorf("NUL %v: %+v, %v", nul, got, err)
		}
	}
	// An algorithm's name that fills its 64 octets has no NUL.
	s := gcmSA()
	b, err := AppendNewSA(nil, Header{}, &s)
	m := message(t, b, err)
	copy(attrOf(m, AttrAEAD), strings.Repeat("x", 64))
	var got SA
	if err := got.Parse(m); err != nil || got.AEAD.Name != strings.Repeat("x", 64) {
		t.Errorf("%q, %v", got.AEAD.Name, err)
	}
	if err := got.Check(); err == nil {
		t.Error("a name of 64 octets passes Check")
	}
	// An acknowledgement's text without a NUL.
	if s := cString([]byte("abc")); s != "abc" {
		t.Errorf("%q", s)
	}
}

// TestNoKeyInMemoryThatWasTooSmall: a state that does not fit into the buffer
// is written to a larger one from its beginning.
func TestNoKeyInMemoryThatWasTooSmall(t *testing.T) {
	s := plainSA(t)
	s.AEAD.Key = []byte("key material12345678")
	for n := range 3000 {
		s.Other = []Attr{{Type: 99, Data: make([]byte, n)}}
		small := make([]byte, 0, 1200)
		b, err := AppendNewSA(small, Header{}, s)
		if err != nil {
			t.Fatal(err)
		}
		if cap(b) != cap(small) && bytes.Contains(small[:cap(small)], []byte("key material")) {
			t.Fatalf("with an attribute of %d octets a key is left in the smaller one", n)
		}
	}
}
