//go:build gc && go1.26 && !go1.27 && !purego && (amd64 || arm64)

package xfrm

import (
	"bytes"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"unsafe"
)

// TestUsualFields looks for pointers among what parseMessage clears or copies,
// and for fields that it takes for something else.
func TestUsualFields(t *testing.T) {
	type span struct{ from, to uintptr }
	addr, prefix := reflect.TypeFor[netip.Addr](), reflect.TypeFor[netip.Prefix]()
	if f := addr.Field(0); f.Offset != 0 || f.Type.Size() != 16 || addr.Field(1).Offset != 16 || addr.NumField() != 2 || addr.Size() != 24 {
		t.Errorf("netip.Addr is %v, %v", addr.Field(0), addr.Field(1))
	}
	if f := prefix.Field(1); prefix.Field(0).Type != addr || prefix.Field(0).Offset != 0 || f.Type.Kind() != reflect.Uint8 || f.Offset != lengthAt || prefix.Size() != prefixSize {
		t.Errorf("netip.Prefix is %v, %v", prefix.Field(0), prefix.Field(1))
	}
	spans := []span{{selAt, selAt + 16}, {selAt + lengthAt, selAt + prefixSize}, {selAt + prefixSize, selAt + prefixSize + 16}, {selAt + prefixSize + lengthAt, portsAt},
		{portsAt, portsAt + 24}, {limitsAt, limitsAt + 64}, {replayAt, replayAt + replaySize}, {truncAt, truncAt + truncSize}, {encapAt, encapAt + encapSize},
		{marksAt, marksAt + marksSize}, {timersAt, timersAt + timersSize}, {curAt, curAt + 40}}
	covered := map[string]bool{}
	var walk func(name string, typ reflect.Type, at uintptr)
	walk = func(name string, typ reflect.Type, at uintptr) {
		switch typ.Kind() {
		case reflect.Struct:
			for i := range typ.NumField() {
				f := typ.Field(i)
				walk(name+"."+f.Name, f.Type, at+f.Offset)
			}
		case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			for _, s := range spans {
				if at >= s.from && at < s.to {
					covered[name] = true
					if at+typ.Size() > s.to {
						t.Errorf("%s is cleared in part", name)
					}
				}
			}
		default:
			for _, s := range spans {
				if at < s.to && at+typ.Size() > s.from {
					t.Errorf("%s, a %v, is written over", name, typ)
				}
			}
		}
	}
	walk("", reflect.TypeFor[SA](), 0)
	for _, name := range []string{".Sel.Src.ip.addr.lo", ".Sel.Dst.bitsPlusOne", ".Sel.Family", ".Sel.UID", ".Lifetime.SoftBytes", ".Lifetime.HardUseSeconds", ".Replay.Window",
		".Replay.OSeqHi", ".Auth.Legacy", ".Encap.Dst", ".Mark.Value", ".TFCPad", ".SecCtx.Alg", ".IPTFS.DropMicros.Value", ".ETimerThresh.Set", ".Cur.UseTime", ".Stats.Replay"} {
		if !covered[name] {
			t.Errorf("%s is not among what is cleared or copied", name)
		}
	}
	for _, name := range []string{".AEAD.ICVBits", ".Src.addr.hi", ".SPI", ".LastUsed", ".Replay.Reported"} {
		if covered[name] {
			t.Errorf("%s is", name)
		}
	}
	var s SA
	if unsafe.Offsetof(s.Proto) != unsafe.Offsetof(s.SPI)+4 || unsafe.Offsetof(s.Mode) != unsafe.Offsetof(s.SPI)+5 ||
		unsafe.Offsetof(s.Seq) != unsafe.Offsetof(s.ReqID)+4 || saReqID != saSeq+4 || unsafe.Offsetof(s.ExtraFlags) != unsafe.Offsetof(s.Flags)+4 ||
		unsafe.Offsetof(s.Mark.Mask) != 4 || unsafe.Offsetof(s.Stats.Replay) != 4 {
		t.Error("two fields that are copied as one are no neighbours")
	}
}

// usualVariants are messages of which parseMessage has its own opinion: usual
// ones, and such as differ from them in one thing.
func usualVariants(t *testing.T) (out []Message) {
	add := func(s *SA, typ MsgType, extra ...[]byte) {
		t.Helper()
		b, err := appendSA(nil, typ, Header{}, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range extra {
			b = append(b, e...)
		}
		SetLength(b, 0)
		out = append(out, message(t, b, nil))
	}
	attr := func(k AttrType, n int) []byte {
		d := make([]byte, n)
		for i := range d {
			d[i] = byte(3*i + int(k))
		}
		return AppendAttr(nil, k, d)
	}
	for _, addrs := range [][2]string{{"2001:db8:1::1", "2001:db8:2::2"}, {"192.0.2.1", "192.0.2.2"}, {"::ffff:192.0.2.1", "::"}} {
		for _, family := range []Family{0, IPv4, IPv6} {
			for _, name := range []string{"rfc4106(gcm(aes))", "rfc7539esp(chacha20,poly1305)", "gcm", "12345678", "123456789"} {
				for _, n := range []int{0, 1, 15, 16, 17, 20, 32, 33, 36, 47, 48, 49, 64} {
					s := plainSA(t)
					s.Src, s.Dst = netip.MustParseAddr(addrs[0]), netip.MustParseAddr(addrs[1])
					s.AEAD.Name, s.AEAD.Key = name, bytes.Repeat([]byte{byte(n)}, n)
					s.Sel = Selector{Family: family}
					typ := NewSA
					if n%2 == 1 {
						typ = UpdSA
					}
					add(s, typ)
				}
			}
		}
	}
	s := plainSA(t)
	all := [][]byte{attr(AttrReplay, 12), attr(AttrSADir, 1), attr(AttrLastUsed, 8), attr(AttrIfID, 4), attr(AttrMark, 8)}
	add(s, NewSA, all...)
	slices.Reverse(all)
	add(s, NewSA, all...)
	for _, a := range all {
		add(s, NewSA, a)
		add(s, NewSA, a, a)
		add(s, NewSA, a[:len(a)-1])
		add(s, NewSA, a[:5])
		add(s, NewSA, append(slices.Clone(a), 0, 0, 0, 0))
		short := slices.Clone(a)
		short[0] = 5
		add(s, NewSA, short)
		short[0] = 3
		add(s, NewSA, short)
		short[0] = 0xff
		add(s, NewSA, short)
	}
	for _, k := range []AttrType{AttrCrypt, AttrAuth, AttrAuthTrunc, AttrComp, AttrAEAD, AttrEncap, AttrCoAddr, AttrReplayESN, AttrSecCtx, AttrOffload, AttrSetMark, 77} {
		add(s, NewSA, attr(k, 80))
		add(s, NewSA, attr(k, 4))
	}
	b, err := AppendNewSA(nil, Header{}, s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sizeSA {
		c := slices.Clone(b)
		c[sizeHeader+i] ^= 0x81
		out = append(out, message(t, c, nil))
	}
	for i := range 76 { // the algorithm's attribute
		c := slices.Clone(b)
		c[sizeHeader+sizeSA+i] ^= 0x81
		m, _, err := FirstMessage(c)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	if native {
		for _, row := range catalogue(t) {
			for _, m := range xfrmMessages(t, append(row.sent(t), row.recv(t)...)) {
				if m.Type == NewSA || m.Type == UpdSA {
					out = append(out, m)
				}
			}
		}
	}
	return out
}

// parts calls f with every field of v that has no fields itself.
func parts(name string, v reflect.Value, f func(name string, v reflect.Value)) {
	switch v.Interface().(type) {
	case netip.Addr, netip.Prefix:
	default:
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				parts(name+"."+v.Type().Field(i).Name, v.Field(i), f)
			}
			return
		}
	}
	f(name, v)
}

// others are values that a field may have before.
func others(v reflect.Value) (out []reflect.Value) {
	switch v.Interface().(type) {
	case netip.Addr:
		for _, a := range []string{"192.0.2.9", "2001:db8::9", "fe80::9%zone"} {
			out = append(out, reflect.ValueOf(netip.MustParseAddr(a)))
		}
		return append(out, reflect.Zero(v.Type()))
	case netip.Prefix:
		for _, p := range []string{"192.0.2.9/7", "2001:db8::9/99"} {
			out = append(out, reflect.ValueOf(netip.MustParsePrefix(p)))
		}
		return append(out, reflect.Zero(v.Type()))
	}
	x := reflect.New(v.Type()).Elem()
	fill(x)
	out = append(out, x, reflect.Zero(v.Type()))
	if v.Kind() == reflect.Slice {
		y := reflect.New(v.Type()).Elem()
		fill(y)
		out = append(out, y.Slice(0, 0))
	}
	return out
}

// keysOf is all memory of the keys.
func keysOf(s *SA) (out [][]byte) {
	for _, k := range []Key{s.AEAD.Key, s.Cipher.Key, s.Auth.Key, s.Comp.Key} {
		out = append(out, slices.Clone([]byte(k[:cap(k)])))
	}
	return out
}

// TestUsualParseAfterAnything compares the short way with the general one after
// states that differ from a usual one in one field. It looks at the memory of
// keys, too.
func TestUsualParseAfterAnything(t *testing.T) {
	n := 0
	for _, family := range []Family{0, IPv4, IPv6} {
		for _, ip := range []string{"192.0.2.1", "2001:db8::1"} {
			s := plainSA(t)
			s.Src, s.Dst, s.Sel, s.Replay.Window = netip.MustParseAddr(ip), netip.MustParseAddr(ip), Selector{Family: family}, 32
			s.Lifetime, s.Cur, s.Stats = Lifetime{SoftAddSeconds: 1, HardAddSeconds: 2, SoftUseSeconds: 3, HardUseSeconds: 4}, Counters{5, 6, 7, 8}, Stats{9, 10, 11}
			s.Dir, s.Replay.Seq, s.Replay.OSeq, s.Replay.Bitmap, s.ReqID, s.Seq, s.Mode = SAOut, 12, 13, []uint32{14}, 15, 16, Tunnel
			b, err := AppendNewSA(nil, Header{}, s)
			m := message(t, b, err)
			var first SA
			if err := first.parseAny(m.Type, m.Body); err != nil {
				t.Fatal(err)
			}
			check := func(name string, set func(*SA)) {
				t.Helper()
				var a, b SA
				for _, s := range []*SA{&a, &b} {
					if err := s.parseAny(m.Type, m.Body); err != nil {
						t.Fatal(err)
					}
					set(s)
				}
				got, want := a.parseMessage(m.Type, m.Body), b.parseAny(m.Type, m.Body)
				if got != nil || want != nil {
					t.Fatal(got, want)
				}
				if !reflect.DeepEqual(&a, &b) || !reflect.DeepEqual(keysOf(&a), keysOf(&b)) {
					t.Fatalf("%s:\n got %+v %x\nwant %+v %x", name, a, keysOf(&a), b, keysOf(&b))
				}
				n++
			}
			parts("", reflect.ValueOf(&first).Elem(), func(name string, v reflect.Value) {
				for _, x := range others(v) {
					check(name, func(s *SA) {
						parts("", reflect.ValueOf(s).Elem(), func(other string, v reflect.Value) {
							if other == name {
								fresh := reflect.New(x.Type()).Elem()
								fresh.Set(x)
								if x.Kind() == reflect.Slice && x.Cap() > 0 {
									fresh.Set(reflect.MakeSlice(x.Type(), x.Cap(), x.Cap()))
									reflect.Copy(fresh, x.Slice(0, x.Cap()))
									fresh.SetLen(x.Len())
								}
								v.Set(fresh)
							}
						})
					})
				}
			})
		}
	}
	if n < 6*100 {
		t.Errorf("%d states: too few to tell", n)
	}
}

// goesShort reports whether a message goes the short way to its end after one
// of the same name and key length. The key is copied over the lengths before it,
// of which the short way reads that of the ICV afterwards and the general one
// before, or cannot read the message any more.
func goesShort(t *testing.T, m Message) bool {
	t.Helper()
	var s SA
	if err := s.parseAny(m.Type, m.Body); err != nil {
		t.Fatal(err)
	}
	s.Replay.Bitmap = make([]uint32, 0, 1)
	body, key := slices.Clone(m.Body), slices.Clone(s.AEAD.Key)
	i := bytes.Index(body, key)
	s.AEAD.Key = Key(body[i-len(key) : i : i])
	return s.parseMessage(m.Type, body) == nil && s.AEAD.ICVBits == ne.Uint32(key[len(key)-4:])
}

// TestUsualWay says which messages go the short way.
func TestUsualWay(t *testing.T) {
	type change = func(*SA)
	for _, c := range []struct {
		name  string
		short bool
		set   change
	}{
		{"plain", true, func(*SA) {}},
		{"a window of 32", true, func(s *SA) { s.Replay.Window = 32 }},
		{"a window of 33", false, func(s *SA) { s.Replay = Replay{Window: 33, Form: ReplayLegacy} }},
		{"IPv4", true, func(s *SA) { s.Src, s.Dst = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2") }},
		{"all of IPv4", true, func(s *SA) { s.Sel = Selector{Family: IPv4} }},
		{"all of IPv6", true, func(s *SA) { s.Sel = Selector{Family: IPv6} }},
		{"a prefix", false, func(s *SA) { s.Sel = Selector{Src: netip.MustParsePrefix("2001:db8::/32"), Family: IPv6} }},
		{"a port", false, func(s *SA) { s.Sel = Selector{Family: IPv6, Proto: 6, SrcPort: Port(9)} }},
		{"a user", false, func(s *SA) { s.Sel = Selector{Family: IPv6, UID: 9} }},
		{"a limit", false, func(s *SA) { s.Lifetime.HardPackets = 1 }},
		{"seconds", true, func(s *SA) { s.Lifetime.HardUseSeconds = 1 }},
		{"ESN", false, func(s *SA) { s.Flags |= ESN }},
		{"other flags", true, func(s *SA) { s.Flags = ^ESN }},
		{"a replay state", true, func(s *SA) { s.Replay.Seq, s.Replay.Bitmap = 5, []uint32{6} }},
		{"a direction", true, func(s *SA) { s.Dir = SAOut }},
		{"a mark and an interface", true, func(s *SA) { s.Mark, s.IfID = Mark{1, 2}, 3 }},
		{"padding", false, func(s *SA) { s.TFCPad = 1 }},
		{"an attribute that is not known", false, func(s *SA) { s.Other = []Attr{{77, nil}} }},
		{"the last use", true, func(s *SA) { s.Other = []Attr{{AttrLastUsed, make([]byte, 8)}} }},
		{"a name of 7", false, func(s *SA) { s.AEAD.Name = "1234567" }},
		{"a name of 8", true, func(s *SA) { s.AEAD.Name = "12345678" }},
		{"a name of 9", true, func(s *SA) { s.AEAD.Name = "123456789" }},
		{"a name of 25", true, func(s *SA) { s.AEAD.Name = "1234567890123456789012345" }},
		{"a key of 15", false, func(s *SA) { s.AEAD.Key = s.AEAD.Key[:15] }},
		{"a key of 16", true, func(s *SA) { s.AEAD.Key = s.AEAD.Key[:16] }},
		{"a key of 17", true, func(s *SA) { s.AEAD.Key = s.AEAD.Key[:17] }}, // and padding
		{"a key of 32", true, func(s *SA) { s.AEAD.Key = s.AEAD.Key[:32] }},
		{"a key of 36", true, func(s *SA) { s.AEAD.Key = s.AEAD.Key[:36] }},
		{"a key of 37", true, func(s *SA) { s.AEAD.Key = s.AEAD.Key[:37] }},
		{"a key of 41", true, func(s *SA) { s.AEAD.Key, s.AEAD.Name = s.AEAD.Key[:41], "12345678" }},
		{"a key of 48", true, func(s *SA) { s.AEAD.Key = s.AEAD.Key[:48]; s.AEAD.Name = "12345678" }},
		{"a key of 49", false, func(s *SA) { s.AEAD.Key = s.AEAD.Key[:49]; s.AEAD.Name = "12345678" }},
	} {
		s := plainSA(t)
		s.AEAD.Key = make(Key, 64)
		for i := range s.AEAD.Key {
			s.AEAD.Key[i] = byte(i + 1)
		}
		key := s.AEAD.Key
		s.AEAD.Key = key[:20]
		c.set(s)
		b, err := AppendNewSA(nil, Header{}, s)
		m := message(t, b, err)
		if got := goesShort(t, m); got != c.short {
			t.Errorf("%s: the short way: %v", c.name, got)
		}
		m.Type = UpdSA
		if got := goesShort(t, m); got != c.short {
			t.Errorf("%s, updated: the short way: %v", c.name, got)
		}
	}
}

// TestUsualKeysAndNames replaces keys of every length and names by such as
// differ in one octet.
func TestUsualKeysAndNames(t *testing.T) {
	s := plainSA(t)
	parsed := func(into *SA) {
		t.Helper()
		b, err := AppendNewSA(nil, Header{}, s)
		m := message(t, b, err)
		if err := into.parseMessage(m.Type, m.Body); err != nil {
			t.Fatal(err)
		}
		if into.AEAD.Name != s.AEAD.Name || !bytes.Equal(into.AEAD.Key, s.AEAD.Key) {
			t.Fatalf("got %q with %x, want %q with %x", into.AEAD.Name, []byte(into.AEAD.Key), s.AEAD.Name, []byte(s.AEAD.Key))
		}
	}
	for n := 1; n <= 64; n++ {
		var used SA
		for _, octet := range []byte{1, 2, 2, 3} {
			s.AEAD.Key = bytes.Repeat([]byte{octet}, n)
			parsed(&used)
		}
	}
	s.AEAD.Key = make(Key, 20) // usual
	for n := 1; n <= 63; n++ {
		var used SA
		for i := range n {
			name := bytes.Repeat([]byte{'x'}, n)
			s.AEAD.Name = string(name)
			parsed(&used)
			name[i]++
			s.AEAD.Name = string(name)
			parsed(&used)
		}
	}
}

// TestUsualParse compares the short way with the general one for each message
// after each of others.
func TestUsualParse(t *testing.T) {
	msgs := usualVariants(t)
	before := []Message{{}}
	for i := 0; i < len(msgs); i += 41 {
		before = append(before, msgs[i])
	}
	short := 0
	padding := func(s *SA) *byte { return (*byte)(unsafe.Add(unsafe.Pointer(&s.Flags), 1)) }
	for _, x := range before {
		for _, y := range msgs {
			for _, z := range []Message{x, y} { // y after y is what is usual
				var a, b SA
				if z.Body != nil {
					_, _ = a.parseAny(z.Type, z.Body), b.parseAny(z.Type, z.Body)
				}
				*padding(&a) = 1 // which only the short way clears
				got, want := a.parseMessage(y.Type, y.Body), b.parseAny(y.Type, y.Body)
				if *padding(&a) == 0 {
					short++
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%x\nafter %x:\n%v, want %v", y.Body, z.Body, got, want)
				}
				if got == nil && !reflect.DeepEqual(&a, &b) {
					t.Fatalf("%x\nafter %x:\n got %+v\nwant %+v", y.Body, z.Body, a, b)
				}
			}
		}
	}
	t.Logf("%d messages, %d short ways", len(msgs), short)
	if short < len(msgs) {
		t.Errorf("%d short ways of %d messages after %d others: too few to tell", short, len(msgs), len(before))
	}
}
