package xfrm

import (
	"bytes"
	"net/netip"
	"reflect"
	"strings"
	"testing"
)

// fill sets every field to something that is not its zero value.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.MustParseAddr("fe80::9%zone")))
		return
	case netip.Prefix:
		v.Set(reflect.ValueOf(netip.MustParsePrefix("2001:db8:7::/99")))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 5))
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.String:
		v.SetString("left over")
	case reflect.Bool:
		v.SetBool(true)
	default:
		v.Set(reflect.ValueOf(77).Convert(v.Type()))
	}
}

// empty makes empty slices nil: Parse keeps their memory.
func empty(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				empty(f)
			}
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.SetZero()
		}
		for i := range v.Len() {
			empty(v.Index(i))
		}
	}
}

// TestParseOverwritesEverything parses messages of all kinds into values of
// which every field was set, or one, and into those that the message before
// left.
func TestParseOverwritesEverything(t *testing.T) {
	var msgs []Message
	for _, line := range commands {
		c, err := ParseCommand(line, &ReadOptions{IfIndex: guestIndex})
		if err != nil || c.Object == "link" {
			continue
		}
		b, err := c.Append(nil, Header{})
		if err != nil {
			t.Fatal(err)
		}
		msgs = append(msgs, message(t, b, nil))
	}
	for _, s := range []*SA{plainSA(t), fullSA(t)} {
		b, err := AppendNewSA(nil, Header{}, s)
		msgs = append(msgs, message(t, b, err))
	}
	sa, policies := 0, 0
	var usedSA SA
	var usedPolicy Policy
	check := func(m Message, fresh, full, used any) {
		t.Helper()
		for _, v := range []any{fresh, full} {
			empty(reflect.ValueOf(v).Elem())
		}
		if !reflect.DeepEqual(fresh, full) {
			t.Errorf("%v: over a full one\n got %+v\nwant %+v", m.Type, full, fresh)
		}
		copied := reflect.New(reflect.TypeOf(used).Elem())
		copied.Elem().Set(reflect.ValueOf(used).Elem())
		empty(copied.Elem())
		if !reflect.DeepEqual(fresh, copied.Interface()) {
			t.Errorf("%v: over the one before\n got %+v\nwant %+v", m.Type, copied, fresh)
		}
	}
	for _, m := range msgs {
		switch m.Type {
		case NewSA, UpdSA:
			var fresh, full SA
			fill(reflect.ValueOf(&full).Elem())
			if err := fresh.Parse(m); err != nil {
				t.Fatal(err)
			}
			if err := full.Parse(m); err != nil {
				t.Fatal(err)
			}
			if err := usedSA.Parse(m); err != nil {
				t.Fatal(err)
			}
			check(m, &fresh, &full, &usedSA)
			for i := range reflect.TypeFor[SA]().NumField() {
				var one SA
				fill(reflect.ValueOf(&one).Elem().Field(i))
				if err := one.Parse(m); err != nil {
					t.Fatal(err)
				}
				check(m, &fresh, &one, &usedSA)
			}
			sa++
		case NewPolicy, UpdPolicy:
			var fresh, full Policy
			fill(reflect.ValueOf(&full).Elem())
			if err := fresh.Parse(m); err != nil {
				t.Fatal(err)
			}
			if err := full.Parse(m); err != nil {
				t.Fatal(err)
			}
			if err := usedPolicy.Parse(m); err != nil {
				t.Fatal(err)
			}
			check(m, &fresh, &full, &usedPolicy)
			policies++
		}
	}
	if sa < 10 || policies < 10 {
		t.Errorf("%d states, %d policies of %d messages: too few to tell", sa, policies, len(msgs))
	}
}

// TestParseLengths cuts a message with many attributes at every length and
// shortens each attribute by every number of octets: an error, and no panic.
func TestParseLengths(t *testing.T) {
	b, err := AppendNewSA(nil, Header{}, fullSA(t))
	if err != nil {
		t.Fatal(err)
	}
	m := message(t, b, nil)
	var whole SA
	if err := whole.Parse(m); err != nil {
		t.Fatal(err)
	}
	ends := map[int]bool{sizeSA: true}
	for i := sizeSA; i < len(m.Body); {
		l := int(ne.Uint16(m.Body[i:]))
		at, typ := i, AttrType(ne.Uint16(m.Body[i+2:]))
		i += align(l)
		ends[i] = true
		least := 4 + int(minAttr(typ))
		if typ == AttrAEAD { // its key has a length of its own
			least = l
		}
		for n := range l {
			c := bytes.Clone(m.Body)
			ne.PutUint16(c[at:], uint16(n))
			if n >= least {
				c = c[: at+n : at+n]
			}
			var s SA
			if err := s.Parse(Message{Type: NewSA, Body: c}); (err == nil) != (n >= least) {
				t.Errorf("%v of %d octets, needs %d: %v", typ, n, least, err)
			}
		}
	}
	for n := range len(m.Body) {
		var s SA
		err := s.Parse(Message{Type: NewSA, Body: m.Body[:n:n]})
		near := false // up to three octets of padding may be missing or left over
		for k := range 4 {
			near = near || ends[n-k] || ends[n+k]
		}
		if err == nil && !near {
			t.Errorf("cut at %d: accepted", n)
		}
		if err != nil && ends[n] {
			t.Errorf("cut at %d: %v", n, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "xfrm: ") {
			t.Error(err)
		}
	}
}

// TestUsualStates builds states with each field alone set, beside those of a
// usual one, and compares the short way with the general one.
func TestUsualStates(t *testing.T) {
	usual := 0
	check := func(s *SA) {
		t.Helper()
		b, err := AppendNewSA(make([]byte, 3, 4096), Header{FlagRequest, 1, 2}, s)
		want, wantErr := appendSAAttrs(nil, s, nil)
		if err != nil || wantErr != nil {
			if err == nil { // while the fixed part may be refused when the attributes are not
				t.Errorf("accepted, want %v", wantErr)
			}
			return
		}
		b = b[3:]
		if got := b[sizeHeader+sizeSA:]; !bytes.Equal(got, want) || ne.Uint32(b) != uint32(len(b)) {
			t.Errorf("%+v:\n got %x\nwant %x", s, got, want)
		}
		n := sizeHeader + sizeSA
		if end := s.putUsual(make([]byte, 4096), n); end != 0 {
			usual++
			for room := range end {
				if e := s.putUsual(make([]byte, room), n); e != 0 {
					t.Errorf("%d octets in %d", e, room)
				}
			}
		}
		grown, err := AppendNewSA(nil, Header{FlagRequest, 1, 2}, s)
		if err != nil || !bytes.Equal(grown, b) {
			t.Errorf("without a buffer: %x, %v\nwant %x", grown, err, b)
		}
	}
	var fields func(v reflect.Value, s *SA)
	fields = func(v reflect.Value, s *SA) {
		for i := range v.NumField() {
			f := v.Field(i)
			old := reflect.New(f.Type()).Elem()
			old.Set(f)
			fill(f)
			if f.Type() == reflect.TypeFor[[]Attr]() {
				f.SetLen(1)
			}
			check(s)
			f.Set(old)
			if f.Kind() == reflect.Struct && f.Type().PkgPath() == v.Type().PkgPath() {
				fields(f, s)
			}
		}
	}
	for _, key := range []int{0, 1, 16, 19, 36, maxKey, maxKey + 1} {
		for _, name := range []string{"", "x", "rfc4106(gcm(aes))", strings.Repeat("n", 63), strings.Repeat("n", 64)} {
			s := plainSA(t)
			s.AEAD.Name, s.AEAD.Key, s.IfID = name, bytes.Repeat([]byte{0xa5}, key), 9
			if key <= 36 && len(name) <= 63 {
				fields(reflect.ValueOf(s).Elem(), s)
			}
			check(s)
			s.Mark = Mark{}
			check(s)
			s.IfID = 0
			check(s)
		}
	}
	if usual < 100 {
		t.Errorf("only %d states went the short way", usual)
	}
}

// TestPutAddr holds putWhole and getWhole against the methods of an address.
func TestPutAddr(t *testing.T) {
	for _, a := range []netip.Addr{{}, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("255.254.253.252"), netip.IPv4Unspecified(), netip.IPv6Unspecified(),
		netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("102:304:506:708:90a:b0c:d0e:f10"), netip.MustParseAddr("::ffff:1.2.3.4"),
		netip.MustParseAddr("8000::"), netip.MustParseAddr("::1")} {
		var want [16]byte
		copy(want[:], a.WithZone("").AsSlice())
		got := [16]byte(bytes.Repeat([]byte{0xa5}, 16))
		putWhole(&got, &a)
		if got != want {
			t.Errorf("%v: %x, want %x", a, got, want)
		}
		for _, old := range []netip.Addr{{}, netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("2001:db8::9"), netip.MustParseAddr("fe80::9%eth9")} {
			if getWhole(&old, &want); old != netip.AddrFrom16(want) {
				t.Errorf("%x: %v", want, old)
			}
		}
	}
}

// TestBuildIntoUsedMemory: what was in the buffer's memory does not show.
func TestBuildIntoUsedMemory(t *testing.T) {
	n := 0
	for _, line := range commands {
		c, err := ParseCommand(line, &ReadOptions{IfIndex: guestIndex})
		if err != nil {
			continue
		}
		want, err := c.Append(nil, Header{Seq: 1})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Append(bytes.Repeat([]byte{0xa5}, 4096)[:0], Header{Seq: 1})
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s:\n got %x, %v\nwant %x", line, got, err, want)
		}
		var again []byte
		switch r := c.Request.(type) { // without the command's order
		case *SA:
			want, _ = AppendNewSA(nil, Header{}, r)
			again, err = AppendNewSA(bytes.Repeat([]byte{0xa5}, 4096)[:0], Header{}, r)
		case *Policy:
			want, _ = AppendNewPolicy(nil, Header{}, r)
			again, err = AppendNewPolicy(bytes.Repeat([]byte{0xa5}, 4096)[:0], Header{}, r)
		case *SPIRequest:
			want, _ = AppendAllocSPI(nil, Header{}, r)
			again, err = AppendAllocSPI(bytes.Repeat([]byte{0xa5}, 4096)[:0], Header{}, r)
		default:
			continue
		}
		if n++; err != nil || !bytes.Equal(again, want) {
			t.Errorf("%s:\n got %x, %v\nwant %x", line, again, err, want)
		}
	}
	for _, e := range sampleEvents() {
		want, err := appendEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		switch e := e.(type) {
		case *Expire:
			got, err := AppendExpire(bytes.Repeat([]byte{0xa5}, 4096)[:0], Header{}, e)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%T:\n got %x, %v\nwant %x", e, got, err, want)
			}
		case *PolExpire:
			got, err := AppendPolExpire(bytes.Repeat([]byte{0xa5}, 4096)[:0], Header{}, e)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%T:\n got %x, %v\nwant %x", e, got, err, want)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d states and policies", n)
	}
}
