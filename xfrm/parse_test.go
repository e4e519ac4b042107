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
