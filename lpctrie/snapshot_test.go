package lpctrie

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"signalbox.example/internal/routegen"
)

// corner returns a random prefix that lies in, or covers, one of two /16s.
func corner(r *rand.Rand) netip.Prefix {
	key := 0x0a010000 + uint32(r.IntN(2))<<16 | r.Uint32()&0xffff
	if r.IntN(8) == 0 {
		key = r.Uint32()
	}
	slen := uint8(r.IntN(33))
	if r.IntN(2) == 0 {
		slen = uint8(r.IntN(17))
	}
	return prefixOf(key&^suffixMask(slen), slen)
}

// compareAt holds one snapshot against the table at an address, prefix included.
func compareAt[V comparable](t *testing.T, tab *Table[V], s *Snapshot[V], key uint32) {
	t.Helper()
	wv, wp, wok := tab.Lookup(AddrOf(key))
	if v, ok := s.LookupKey(key); v != wv || ok != wok {
		t.Fatalf("%v: snapshot %v %v, want %v %v", AddrOf(key), v, ok, wv, wok)
	}
	if s.lengths != nil {
		if v, p, ok := s.LookupPrefix(AddrOf(key)); v != wv || ok != wok || p != wp {
			t.Fatalf("%v: snapshot %v %v %v, want %v %v %v", AddrOf(key), v, p, ok, wv, wp, wok)
		}
	}
}

// compareAll looks up keys one by one and in batches.
func compareAll[V comparable](t *testing.T, tab *Table[V], s *Snapshot[V], keys []uint32) {
	t.Helper()
	as, vs, oks := make([]netip.Addr, len(keys)), make([]V, len(keys)), make([]bool, len(keys))
	for i, k := range keys {
		as[i] = AddrOf(k)
	}
	codes := make([]uint32, len(keys))
	n, m := s.LookupCodes(keys, codes), s.LookupBatch(as, vs, oks)
	found := 0
	for i, k := range keys {
		compareAt(t, tab, s, k)
		wv, wok := tab.LookupKey(k)
		if wok {
			found++
		}
		if v, ok := s.Value(codes[i]); v != wv || ok != wok || vs[i] != wv || oks[i] != wok {
			t.Fatalf("%v: codes give %v %v, batch %v %v, want %v %v", as[i], v, ok, vs[i], oks[i], wv, wok)
		}
	}
	if n != found || m != found {
		t.Fatalf("found %d and %d, want %d", n, m, found)
	}
	pure := s.index
	pure.asm = false
	again := make([]uint32, len(keys))
	if n := pure.lookup(keys, again); n != found || !slices.Equal(again, codes) {
		t.Fatalf("the stages in Go find %d, want %d, or other codes", n, found)
	}
}

func reopen[V comparable](t *testing.T, s *Snapshot[V]) *Snapshot[V] {
	t.Helper()
	var b bytes.Buffer
	if err := s.Encode(&b, nil); err != nil {
		t.Fatal(err)
	}
	again, err := Open[V](b.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

// Small tables with every length of prefix: every address of both /16s, their
// borders, and some elsewhere.
func TestSnapshotExhaustive(t *testing.T) {
	tables, fast := 20, 2
	if testing.Short() {
		tables, fast = 2, 0
	}
	for seed := range uint64(tables) {
		r := rand.New(rand.NewPCG(seed, 2))
		tab := New[uint32](Config{})
		for range 1 + r.IntN(80) {
			p := corner(r)
			if r.IntN(4) == 0 {
				tab.Remove(p)
			} else {
				// Few values, so that neighbours merge; sometimes some that
				// need three bytes or a list.
				v := uint32(r.IntN(6))
				if seed%5 == 3 {
					v = v*60000 + 1
				} else if seed%5 == 4 {
					v += 1 << 31
				}
				if err := tab.Insert(p, v); err != nil {
					t.Fatal(err)
				}
			}
		}
		options := []CompileOptions{{Prefixes: seed%2 == 1}}
		if seed < uint64(fast) {
			options = append(options, CompileOptions{Layout: Fast, Prefixes: seed%2 == 1})
		}
		var keys []uint32
		for k := uint32(0x0a010000 - 300); k < 0x0a030000+300; k++ {
			keys = append(keys, k)
		}
		for r := range tab.All() {
			key, slen, _ := keyOfPrefix(r.Prefix)
			last := key | suffixMask(slen)
			keys = append(keys, key, key-1, last, last+1)
		}
		for range 1000 {
			keys = append(keys, r.Uint32())
		}
		keys = append(keys, 0, ^uint32(0))
		for _, o := range options {
			s := tab.CompileWith(o)
			compareAll(t, tab, s, keys)
			if seed%4 == 0 {
				compareAll(t, tab, reopen(t, s), keys[:1000])
			}
			if s.Len() != tab.Len() {
				t.Errorf("Len %d of %d", s.Len(), tab.Len())
			}
		}
	}
}

// A table like the Internet's, in every layout and width of entry.
func TestSnapshotOfRealisticTable(t *testing.T) {
	n := 30000
	if testing.Short() {
		n = 3000
	}
	table := routegen.IPv4(n, 11)
	for _, c := range []struct {
		name    string
		value   func(i int) uint32
		width   int
		inline  bool
		options CompileOptions
	}{
		{"one byte", func(i int) uint32 { return uint32(i % 16) }, 1, true, CompileOptions{}},
		{"one byte, all of it", func(i int) uint32 { return uint32(i % 254) }, 1, true, CompileOptions{}},
		{"one too many for a byte", func(i int) uint32 { return uint32(i % 255) }, 2, true, CompileOptions{}},
		{"two bytes", func(i int) uint32 { return uint32(i%2000 + 254) }, 2, true, CompileOptions{Prefixes: true}},
		{"three bytes", func(i int) uint32 { return uint32(i)*7 + 65534 }, 3, true, CompileOptions{}},
		{"list", func(i int) uint32 { return 1<<31 + uint32(i%300) }, 2, false, CompileOptions{}},
		{"list after small ones", func(i int) uint32 {
			if i == n/2 {
				return maxInline + 1
			}
			return uint32(i % 9)
		}, 1, false, CompileOptions{Prefixes: true}},
		{"fast", func(i int) uint32 { return uint32(i % 16) }, 1, true, CompileOptions{Layout: Fast}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tab := New[uint32](Config{})
			r := rand.New(rand.NewPCG(1, 9))
			var keys []uint32
			for i, p := range table {
				if err := tab.Insert(p, c.value(i)); err != nil {
					t.Fatal(err)
				}
				key, slen, _ := keyOfPrefix(p)
				keys = append(keys, key, key|suffixMask(slen), key-1, key|r.Uint32()&suffixMask(slen))
			}
			for range n {
				keys = append(keys, r.Uint32())
			}
			s := tab.CompileWith(c.options)
			if s.Width() != c.width || s.Inline() != c.inline || s.Layout() != c.options.Layout {
				t.Errorf("width %d inline %v layout %d", s.Width(), s.Inline(), s.Layout())
			}
			compareAll(t, tab, s, keys)
			if c.options.Layout == Compact {
				t.Logf("%d routes, %d entries, %.1f bytes per route", s.Len(), s.Entries(), float64(s.Bytes())/float64(s.Len()))
			}
			if c.options.Layout == Compact || !testing.Short() {
				compareAll(t, tab, reopen(t, s), keys[:1000])
			}
		})
	}
}

// Values of any type.
func TestSnapshotValues(t *testing.T) {
	type named int16
	type pair struct{ a, b string }
	table := routegen.IPv4(500, 3)
	testValues(t, table, func(i int) string { return fmt.Sprint("v", i%7) }, true)
	testValues(t, table, func(i int) named { return named(i) }, true)
	testValues(t, table, func(i int) named { return named(-i) }, true)
	testValues(t, table, func(i int) int64 { return int64(i) - 250 }, true)
	testValues(t, table, func(i int) int { return i }, true)
	testValues(t, table, func(i int) uint8 { return uint8(i) }, true)
	testValues(t, table, func(i int) uint64 { return 1 << (i % 64) }, true)
	testValues(t, table, func(i int) pair { return pair{"a", fmt.Sprint(i % 3)} }, false)
	testValues(t, table, func(i int) *int { return new(int) }, false)
	testValues(t, table, func(i int) any { return i % 3 }, false)
	testValues(t, table, func(i int) struct{} { return struct{}{} }, false)
}

func testValues[V comparable](t *testing.T, table []netip.Prefix, value func(i int) V, plain bool) {
	t.Helper()
	tab := New[V](Config{})
	var vs []V
	var keys []uint32
	for i, p := range table {
		vs = append(vs, value(i))
		if err := tab.Insert(p, vs[i]); err != nil {
			t.Fatal(err)
		}
		key, _, _ := keyOfPrefix(p)
		keys = append(keys, key, key-1)
	}
	s := tab.Compile()
	compareAll(t, tab, s, keys)
	if plain {
		compareAll(t, tab, reopen(t, s), keys)
	} else if err := s.Encode(&bytes.Buffer{}, nil); err == nil {
		t.Errorf("%T was encoded without a function", vs[0])
	}
	direct, err := Compile(table, vs, CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	compareAll(t, tab, direct, keys)
	for _, code := range []uint32{0, s.header.maxCode + 1, s.mask, ^uint32(0)} {
		if v, ok := s.Value(code); ok {
			t.Errorf("%d, which is no code, has the value %v", code, v)
		}
	}
	if _, ok := s.Value(s.header.maxCode); !ok {
		t.Error("the largest code has no value")
	}
}

// What a table's routes are told apart by (SetSame) does not make one value of two.
func TestSnapshotKeepsValuesApart(t *testing.T) {
	type hop struct {
		gateway string
		asn     int
	}
	table := routegen.IPv4(500, 5)
	tab := New[hop](Config{})
	tab.SetSame(func(a, b hop) bool { return a.gateway == b.gateway })
	big := New[uint64](Config{})
	big.SetSame(func(a, b uint64) bool { return a>>32 == b>>32 })
	var keys []uint32
	for i, p := range table {
		tab.Insert(p, hop{"a", i})
		big.Insert(p, 1<<40|uint64(i))
		key, _, _ := keyOfPrefix(p)
		keys = append(keys, key, key-1)
	}
	compareAll(t, tab, tab.Compile(), keys)
	compareAll(t, big, big.Compile(), keys)
}

func TestSnapshotPointersSurvive(t *testing.T) {
	tab := New[[]byte](Config{}) // not comparable
	for i, p := range routegen.IPv4(200, 1) {
		tab.Insert(p, []byte{byte(i)})
	}
	s := tab.Compile()
	for r := range tab.All() {
		want, _, _ := tab.Lookup(r.Prefix.Addr())
		if got, ok := s.Lookup(r.Prefix.Addr()); !ok || !bytes.Equal(got, want) {
			t.Fatalf("%v: %v, want %v", r.Prefix, got, want)
		}
	}
	var b bytes.Buffer
	if err := s.Encode(&b, func(dst, v []byte) []byte { return append(dst, v...) }); err != nil {
		t.Fatal(err)
	}
	again, err := Open(b.Bytes(), func(b []byte) ([]byte, error) { return bytes.Clone(b), nil })
	if err != nil {
		t.Fatal(err)
	}
	for r := range tab.All() {
		v, _ := s.Lookup(r.Prefix.Addr())
		if got, ok := again.Lookup(r.Prefix.Addr()); !ok || !bytes.Equal(got, v) {
			t.Fatalf("%v: %v, want %v", r.Prefix, got, v)
		}
	}
}

// Routes with a TOS are left out, the first of several without is taken.
func TestSnapshotOfAliases(t *testing.T) {
	tab := New[string](Config{})
	p := pfx("10.0.0.0/8")
	tab.Add(Route{Prefix: p, TOS: 16}, "tos", ModeAdd)
	tab.Add(Route{Prefix: p, Priority: 7}, "seven", ModeAdd)
	tab.Add(Route{Prefix: p, Priority: 3}, "three", ModeAdd)
	tab.Add(Route{Prefix: pfx("10.1.0.0/16"), TOS: 16}, "tos", ModeAdd)
	s := tab.Compile()
	for _, a := range []string{"10.0.0.1", "10.1.0.1"} {
		if v, ok := s.Lookup(adr(a)); !ok || v != "three" {
			t.Errorf("%s: %q %v", a, v, ok)
		}
	}
}

func TestCompileFromAnyOrder(t *testing.T) {
	table := routegen.IPv4(5000, 5)
	values := make([]uint32, len(table))
	for i := range values {
		values[i] = uint32(i)
	}
	want, err := Compile(table, values, CompileOptions{Prefixes: true})
	if err != nil {
		t.Fatal(err)
	}
	tab := New[uint32](Config{})
	for i, p := range table {
		tab.Insert(p, values[i])
	}
	if got := tab.CompileWith(CompileOptions{Prefixes: true}); !sameBytes(t, got, want) {
		t.Error("a table's snapshot differs from one of its prefixes")
	}
	order := rand.Perm(len(table))
	var ps []netip.Prefix
	var vs []uint32
	for _, i := range order { // every prefix twice, the right value last
		ps, vs = append(ps, table[i]), append(vs, 1234)
	}
	for _, i := range order {
		ps, vs = append(ps, table[i]), append(vs, values[i])
	}
	got, err := Compile(ps, vs, CompileOptions{Prefixes: true})
	if err != nil {
		t.Fatal(err)
	}
	if !sameBytes(t, got, want) {
		t.Error("the order of prefixes makes a difference")
	}
	if _, err := Compile([]netip.Prefix{pfx("2001:db8::/32")}, []int{1}, CompileOptions{}); !errors.Is(err, ErrPrefix) {
		t.Error(err)
	}
}

func sameBytes[V any](t *testing.T, a, b *Snapshot[V]) bool {
	t.Helper()
	var x, y bytes.Buffer
	if err := errors.Join(a.Encode(&x, nil), b.Encode(&y, nil)); err != nil {
		t.Fatal(err)
	}
	hints := 4 << 16
	if a.Layout() == Fast {
		hints = 0
	}
	if n := a.Bytes() - hints; x.Len() != n && a.inline {
		t.Errorf("Bytes %d without hints, encoded %d", n, x.Len())
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

func TestEmptySnapshot(t *testing.T) {
	tab := New[string](Config{})
	for _, o := range []CompileOptions{{}, {Layout: Fast}, {Prefixes: true}} {
		s := tab.CompileWith(o)
		compareAll(t, tab, s, []uint32{0, 1, 1 << 31, ^uint32(0)})
		if s.LookupCodes(nil, nil) != 0 || s.LookupBatch(nil, nil, nil) != 0 {
			t.Error("something found in nothing")
		}
	}
	full := tableOf(t, "0.0.0.0/0")
	compareAll(t, full, full.Compile(), []uint32{0, 1, 1 << 31, ^uint32(0)})
}

// hintsInside holds what is read ahead against the bounds.
func hintsInside(t *testing.T, s *index) {
	t.Helper()
	if s.hints == nil {
		return
	}
	for i, h := range s.hints {
		for _, octet := range []uint32{0, 1, 128, 255} {
			if at := h.near(uint32(i)<<16 | octet<<8); at+hintGap >= uint(cap(s.entries)) || len(s.entries) > hintGap && at+hintGap >= uint(len(s.entries)) {
				t.Fatalf("hint %d, octet %d: %d of %d", i, octet, at, len(s.entries))
			}
		}
	}
}

// Forged snapshots of one node whose entries are where no table has them: more of
// them than a hint's way can hold are refused, what is opened reads inside.
func TestHintsOfForgery(t *testing.T) {
	le := binary.LittleEndian
	forged := func(width uint8, entries, first, way uint32) []byte {
		h := header{width: width, inline: true, nodes: 1, entries: entries, deepFirst: entries}
		b := make([]byte, h.bytes())
		copy(b, h.encode(len(b)))
		words := b[headerBytes+topBytes:]
		le.PutUint64(words, 1) // the first /24 has the entry before the node's last
		for i := range 4 {
			le.PutUint32(words[bitsBytes+4*i:], min(first+1+uint32(i)*64, first+way))
		}
		le.PutUint32(words[bitsBytes+12:], first+way)
		return seal(b)
	}
	for width := range uint8(4) {
		width++
		for _, entries := range []uint32{2, 16, 21, 32, 62, 63, 66, 256, 257, 300, 5000} {
			for _, first := range []uint32{0, entries / 2, max(entries, 256) - 256, entries - 2} {
				for _, way := range []uint32{1, 255, 256, 1024, entries - 1 - first} {
					s, err := Open[uint32](forged(width, entries, first, way), nil)
					if want := first+way < entries && way <= 255; want != (err == nil) {
						t.Fatalf("%d entries of %d bytes, %d behind the first at %d: %v", entries, width, way, first, err)
					}
					if err == nil {
						hintsInside(t, &s.index)
						s.Lookup(adr("255.255.255.255"))
					}
				}
			}
		}
	}
	if testing.Short() {
		return
	}
	const many = 1<<26 + 5000 // beyond what a hint's start can hold
	for _, first := range []uint32{1 << 26, 1<<26 + 1000, many - 256} {
		s, err := Open[uint32](forged(1, many, first, 255), nil)
		if err != nil {
			t.Fatal(err)
		}
		hintsInside(t, &s.index)
	}
}

// TestHints holds what is read ahead against the bounds, and counts how often it is
// in the cache line of the entry.
func TestHints(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for n := range 40 {
		ps, vs := make([]netip.Prefix, n), make([]uint32, n)
		for i := range ps {
			ps[i], vs[i] = corner(r), r.Uint32()>>r.IntN(32)
		}
		s, err := Compile(ps, vs, CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hintsInside(t, &s.index)
		hintsInside(t, &reopen(t, s).index)
	}
	for _, width := range []int{1, 2, 3} {
		table := routegen.IPv4(100000, 1)
		vs := make([]uint32, len(table))
		for i := range vs {
			vs[i] = uint32(i) & (1<<(8*width) - 8)
		}
		s, err := Compile(table, vs, CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		hintsInside(t, &s.index)
		right := 0
		for _, p := range table {
			key := key4(p.Addr().As4())
			entry, at := uint(s.find(key))*uint(s.width), s.hints[key>>16].near(key)
			if entry/hintGap == at/hintGap || entry/hintGap == at/hintGap+1 {
				right++
			}
		}
		t.Logf("width %d: %d of %d", s.width, right, len(table))
		if 10*right < 9*len(table) {
			t.Errorf("width %d: the line read ahead was right for %d of %d", s.width, right, len(table))
		}
	}
}

// Addresses that are not IPv4, slices of different lengths, every batch size.
func TestBatchEdges(t *testing.T) {
	tab := New[uint32](Config{})
	table := routegen.IPv4(300, 4)
	for i, p := range table {
		tab.Insert(p, uint32(i))
	}
	tab.Insert(pfx("0.0.0.0/0"), 1000)
	s := tab.Compile()
	var as []netip.Addr
	for i, p := range table {
		as = append(as, p.Addr())
		if i%7 == 0 {
			as = append(as, adr("2001:db8::1"), adr("::ffff:1.2.3.4"), netip.Addr{})
		}
	}
	for n := range 300 {
		vs, oks := make([]uint32, n+1), make([]bool, n+3)
		found := s.LookupBatch(as[:n], vs, oks)
		for i, a := range as[:n] {
			if want, ok := s.Lookup(a); vs[i] != want || oks[i] != ok {
				t.Fatalf("%d of %d, %v: %d %v, want %d %v", i, n, a, vs[i], oks[i], want, ok)
			}
			if oks[i] {
				found--
			}
		}
		if found != 0 {
			t.Fatalf("%d found too many", found)
		}
		if vs[n] != 0 || oks[n] {
			t.Fatal("written behind the end")
		}
		if s.LookupBatch(as, vs[:n], oks) > n || s.LookupCodes(make([]uint32, 50), vs[:n]) > n {
			t.Fatal("more found than there is room for")
		}
	}
}

func TestSnapshotDoesNotAllocate(t *testing.T) {
	tab := New[uint32](Config{})
	table := routegen.IPv4(2000, 1)
	var keys []uint32
	var as []netip.Addr
	for i, p := range table {
		tab.Insert(p, uint32(i))
		as = append(as, p.Addr())
		k, _ := KeyOf(p.Addr())
		keys = append(keys, k)
	}
	codes, vs, oks := make([]uint32, len(keys)), make([]uint32, len(keys)), make([]bool, len(keys))
	s := tab.CompileWith(CompileOptions{Prefixes: true})
	for name, f := range map[string]func(){
		"Lookup":       func() { s.Lookup(as[3]) },
		"LookupKey":    func() { s.LookupKey(keys[3]) },
		"LookupPrefix": func() { s.LookupPrefix(as[3]) },
		"LookupCodes":  func() { s.LookupCodes(keys, codes) },
		"LookupBatch":  func() { s.LookupBatch(as, vs, oks) },
	} {
		if n := testing.AllocsPerRun(10, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func TestInlineTwins(t *testing.T) {
	twins[int](t)
	twins[int8](t)
	twins[int16](t)
	twins[int32](t)
	twins[int64](t)
	twins[uint](t)
	twins[uint8](t)
	twins[uint16](t)
	twins[uint32](t)
	twins[uint64](t)
	twins[uintptr](t)
	type named uint16
	twins[named](t)
	if inlineKind[string]() || inlineKind[float64]() || inlineKind[bool]() || inlineKind[*int]() || inlineKind[struct{ a int }]() {
		t.Error("a type that is no integer is taken for one")
	}
}

func twins[V comparable](t *testing.T) {
	t.Helper()
	if !inlineKind[V]() {
		t.Fatalf("%T is no integer", *new(V))
	}
	for n := uint64(0); n <= min(maxOf[V](), maxInline); n = n*2 + 1 {
		got, want := inlineValue[V](uint32(n)), pureValue[V](uint32(n))
		if got != want || inlineNumber(got) != n || pureNumber(want) != n {
			t.Errorf("%T: %d becomes %v, without unsafe %v", got, n, got, want)
		}
	}
	// Negative numbers are above maxOf.
	if v, ok := any(new(V)).(*int8); ok {
		*v = -1
		if n := inlineNumber(*v); n != 255 || pureNumber(*v) != 255 {
			t.Errorf("-1 becomes %d", n)
		}
	}
}

func encoded(t *testing.T, o CompileOptions) []byte {
	t.Helper()
	tab := New[string](Config{})
	for i, p := range append(routegen.IPv4(200, 2), pfx("10.0.0.1/32"), pfx("10.0.0.8/30")) {
		tab.Insert(p, strings.Repeat("x", i%9))
	}
	var b bytes.Buffer
	if err := tab.CompileWith(o).Encode(&b, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Every truncation and every altered byte is noticed.
func TestOpenRefusesDamage(t *testing.T) {
	good := encoded(t, CompileOptions{Prefixes: true})
	if _, err := Open[string](good, nil); err != nil {
		t.Fatal(err)
	}
	step := 1 + len(good)/3000
	if testing.Short() {
		step *= 10
	}
	for n := 0; n < len(good); n += step {
		if _, err := Open[string](good[:n], nil); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("cut to %d bytes: %v", n, err)
		}
		bad := slices.Clone(good)
		bad[n] ^= 1 << (n % 8)
		if _, err := Open[string](bad, nil); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("byte %d altered: %v", n, err)
		}
	}
	if _, err := Open[string](append(slices.Clone(good), 0), nil); !errors.Is(err, ErrSnapshot) {
		t.Fatalf("a byte more: %v", err)
	}
}

// seal makes the checksum and the length right.
func seal(b []byte) []byte {
	if len(b) >= headerBytes {
		binary.LittleEndian.PutUint64(b[16:], uint64(len(b)))
		binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[16:], crc32.MakeTable(crc32.Castagnoli)))
	}
	return b
}

// Forged data with a right checksum is refused or does no harm.
func TestOpenSurvivesForgery(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	good := encoded(t, CompileOptions{Prefixes: true})
	opened := 0
	rounds := 3000
	if testing.Short() {
		rounds = 100
	}
	for i := range rounds {
		bad := slices.Clone(good)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(bad))
			if i%2 == 0 {
				at = 24 + r.IntN(40)
			}
			bad[at] = byte(r.Uint32())
		}
		if survive(t, seal(bad)) {
			opened++
		}
	}
	t.Logf("%d of %d forgeries were opened", opened, rounds)
}

// References just outside an array are refused.
func TestOpenChecksBounds(t *testing.T) {
	good := encoded(t, CompileOptions{})
	h := decodeHeader(good)
	top, words := headerBytes, headerBytes+topBytes
	ends := words + int(h.nodes)*bitsBytes
	slots := ends + int(h.nodes)*endsBytes
	le := binary.LittleEndian
	for name, spoil := range map[string]func(b []byte){
		"top":           func(b []byte) { le.PutUint16(b[top+2*4711:], uint16(h.nodes)) },
		"node":          func(b []byte) { le.PutUint32(b[ends+4:], h.deepFirst) },
		"before a node": func(b []byte) { le.PutUint32(b[ends:], 0); le.PutUint64(b[words:], 1) },
		"slot": func(b []byte) {
			for i := slots; ; i += slotBytes {
				if le.Uint32(b[i+4:]) != 0 {
					le.PutUint32(b[i+4:], h.entries-le.Uint32(b[i:])&255)
					return
				}
			}
		},
		"slot before the first": func(b []byte) {
			for i := slots; ; i += slotBytes {
				if le.Uint32(b[i+4:]) != 0 {
					le.PutUint32(b[i+4:], h.deepFirst-1)
					return
				}
			}
		},
		"entry": func(b []byte) { b[slots+int(h.slots)*slotBytes] = byte(h.maxCode + 1) },
		"full hash": func(b []byte) {
			for i := slots; i < slots+int(h.slots)*slotBytes; i += slotBytes {
				le.PutUint32(b[i:], 0)
				le.PutUint32(b[i+4:], h.deepFirst)
			}
		},
	} {
		bad := slices.Clone(good)
		spoil(bad)
		if _, err := Open[string](seal(bad), nil); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// survive looks up in whatever can be opened.
func survive(t *testing.T, b []byte) bool {
	s, err := Open[string](b, nil)
	if err != nil {
		if !errors.Is(err, ErrSnapshot) {
			t.Fatal(err)
		}
		return false
	}
	hintsInside(t, &s.index)
	codes := make([]uint32, 64)
	keys := make([]uint32, 64)
	for k := uint32(0); k < 1<<16; k += 97 {
		s.Lookup(AddrOf(k << 16))
		s.LookupPrefix(AddrOf(k << 16))
		s.LookupKey(k<<16 + k)
		s.LookupKey(0x0a000000 + k)
		keys[k%64] = k << 14
	}
	s.LookupCodes(keys, codes)
	return true
}

func TestOpenChecksTypes(t *testing.T) {
	tab := New[uint32](Config{})
	tab.Insert(pfx("10.0.0.0/8"), 300)
	var b bytes.Buffer
	if err := tab.Compile().Encode(&b, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := Open[uint8](b.Bytes(), nil); !errors.Is(err, ErrSnapshot) {
		t.Errorf("300 as uint8: %v", err)
	}
	if _, err := Open[string](b.Bytes(), nil); !errors.Is(err, ErrSnapshot) {
		t.Errorf("integers as strings: %v", err)
	}
	s, err := Open[int](b.Bytes(), nil)
	if v, ok := s.LookupKey(10 << 24); err != nil || !ok || v != 300 {
		t.Error(v, ok, err)
	}
}
