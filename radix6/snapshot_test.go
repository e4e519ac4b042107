package radix6

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"signalbox.example/internal/routegen"
)

// sameAsTree compares a snapshot with the tree it was made from.
func sameAsTree[V comparable](t testing.TB, s *Snapshot[V], tr *Tree[V], as []netip.Addr, srcs []netip.Addr) {
	t.Helper()
	vs, oks := make([]V, len(as)), make([]bool, len(as))
	keys, codes := make([]Key, len(as)), make([]uint32, len(as))
	for i, a := range as {
		keys[i].Hi, keys[i].Lo, _ = addrKey(a)
	}
	found, foundCodes := s.LookupBatch(as, vs, oks), s.LookupCodes(keys, codes)
	hits := 0
	for i, a := range as {
		want, p, ok := tr.Lookup(a)
		if ok {
			hits++
		}
		if v, got := s.Lookup(a); v != want || got != ok {
			t.Fatalf("%v: %v %v, want %v %v (%v)", a, v, got, want, ok, p)
		}
		if vs[i] != want || oks[i] != ok {
			t.Fatalf("batch: %v: %v %v, want %v %v", a, vs[i], oks[i], want, ok)
		}
		if v, got := s.Value(codes[i]); v != want || got != ok || (codes[i] == 0) == ok {
			t.Fatalf("codes: %v: %v %v, want %v %v", a, v, got, want, ok)
		}
		v, q, got := s.LookupPrefix(a)
		if s.lengths == nil {
			p = netip.Prefix{}
		}
		if v != want || got != ok || q != p {
			t.Fatalf("prefix: %v: %v %v %v, want %v %v %v", a, v, q, got, want, p, ok)
		}
	}
	if found != hits || foundCodes != hits {
		t.Fatalf("%d and %d found, want %d", found, foundCodes, hits)
	}
	for i, src := range srcs {
		want, _, ok := tr.LookupFrom(as[i], src)
		if v, got := s.LookupFrom(as[i], src); v != want || got != ok {
			t.Fatalf("%v from %v: %v %v, want %v %v", as[i], src, v, got, want, ok)
		}
	}
}

// borders returns the addresses at and around the ends of prefixes.
func borders(ps []netip.Prefix) (as []netip.Addr) {
	for _, p := range ps {
		hi, lo, _ := addrKey(p.Addr())
		k := key{hi, lo}
		last := k.last(uint8(p.Bits()))
		as = append(as, p.Addr(), last.addr())
		if prev := p.Addr().Prev(); prev.IsValid() {
			as = append(as, prev)
		}
		if next, ok := last.next(); ok {
			as = append(as, next.addr())
		}
	}
	return as
}

var allOptions = []CompileOptions{{}, {Prefixes: true}, {Layout: Fast}, {Layout: Fast, Prefixes: true}}

// crowd makes prefixes that crowd below a few stems, so that every kind of
// node is made and every edge is met.
func crowd(r *rand.Rand, n int) (ps []netip.Prefix) {
	stems := []key{{}, {0x20010db8 << 32, 0}, {r.Uint64(), r.Uint64()}, {^uint64(0), ^uint64(0)}}
	stem := stems[r.IntN(len(stems))]
	fixed := r.IntN(128)
	if r.IntN(2) == 0 {
		fixed = 16 * r.IntN(8)
	}
	step := 1 + r.IntN(3)
	for i := range n {
		k := key{r.Uint64(), r.Uint64()}
		if r.IntN(2) == 0 { // close neighbours
			k = key{uint64(i*step) << r.IntN(60), uint64(i*step) << r.IntN(60)}
		}
		m := stem.mask(fixed)
		tail := k.mask(fixed)
		k = key{m.hi | (k.hi ^ tail.hi), m.lo | (k.lo ^ tail.lo)}
		bits := min(128, fixed+r.IntN(40))
		if r.IntN(8) == 0 {
			bits = r.IntN(129)
		}
		ps = append(ps, k.mask(bits).prefix(bits))
	}
	return ps
}

func TestSnapshotOfRandomTables(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 24
	}
	for round := range rounds {
		r := rand.New(rand.NewPCG(2, uint64(round)))
		mode := SourceMode(round % 3)
		tr := New[uint32](mode)
		n := 1 + r.IntN(40)
		if round%10 == 0 {
			n = 200 + r.IntN(3000)
		}
		var ps, srcs []netip.Prefix
		values := 1 + r.IntN(1<<r.IntN(20))
		for i, p := range crowd(r, n) {
			rt := Route{Prefix: p, Metric: uint32(r.IntN(2))}
			if mode != SourceOff && r.IntN(3) == 0 {
				rt.From = randomPrefix(r)
				srcs = append(srcs, rt.From)
			}
			if err := tr.Add(rt, uint32((i+r.IntN(3))%values), ModeReplace); err != nil {
				t.Fatal(err)
			}
			ps = append(ps, p)
		}
		for range n / 4 {
			tr.Remove(ps[r.IntN(n)])
		}
		as := borders(ps)
		for range 300 {
			as = append(as, near(r, ps[r.IntN(n)]), randomAddr(r))
		}
		r.Shuffle(len(as), func(i, j int) { as[i], as[j] = as[j], as[i] })
		var from []netip.Addr
		if len(srcs) > 0 {
			for range as {
				from = append(from, near(r, srcs[r.IntN(len(srcs))]))
			}
		}
		for _, o := range allOptions[:1+round%4] {
			s := tr.CompileWith(o)
			sameAsTree(t, s, tr, as, from)
		}
		sameAsTree(t, tr.CompileWith(allOptions[round%4]), tr, as, from)
	}
}

// Every address of small tables: all lengths, at every depth.
func TestSnapshotOnEveryAddress(t *testing.T) {
	for depth := range 8 {
		for round := range 6 {
			if testing.Short() && (round > 0 || depth%3 != 1) {
				break
			}
			r := rand.New(rand.NewPCG(3, uint64(depth*10+round)))
			tr := New[uint8](SourceOff)
			stem := key{r.Uint64(), r.Uint64()}.mask(16 * depth)
			at := func(n uint32) key { // number n of the places of this digit
				if depth < 4 {
					return key{stem.hi | uint64(n)<<(48-16*depth), stem.lo}
				}
				return key{stem.hi, stem.lo | uint64(n)<<(112-16*depth)}
			}
			for range 1 << r.IntN(12) {
				bits := 16*depth + r.IntN(17)
				if err := tr.Insert(at(uint32(r.IntN(1<<16))).mask(bits).prefix(bits), uint8(r.IntN(5))); err != nil {
					t.Fatal(err)
				}
			}
			as := make([]netip.Addr, 1<<16)
			for n := range as {
				as[n] = at(uint32(n)).addr()
			}
			sameAsTree(t, tr.CompileWith(allOptions[round%4]), tr, as, nil)
		}
	}
}

// Nodes of every kind and of every size around the limits of a kind.
func TestSnapshotNodeSizes(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 34, 35, 63, 64, 65, 66, 511, 512, 513, 1023, 1024, 1025, 1026, 5000} {
		for _, depth := range []int{2, 3, 5, 7} {
			if testing.Short() && (n > 100 && depth != 7 || depth == 3) {
				continue
			}
			var ps []netip.Prefix
			for i := range n {
				place := uint64(i * 13)
				k := key{0x20010db8 << 32, 0}
				if depth < 4 {
					k.hi |= place << (48 - 16*depth)
				} else {
					k.lo |= place << (112 - 16*depth)
				}
				ps = append(ps, k.prefix(16*depth+16))
			}
			tr := New[int](SourceOff)
			for i, p := range ps {
				if err := tr.Insert(p, i); err != nil {
					t.Fatal(err)
				}
			}
			as := borders(ps)
			for _, o := range allOptions {
				sameAsTree(t, tr.CompileWith(o), tr, as, nil)
			}
		}
	}
}

type point struct {
	X, Y int16
	Name string
}

func TestSnapshotValueTypes(t *testing.T) {
	ps := append(routegen.IPv6(500, 3), routegen.Hosts128(300)...)
	as := borders(ps)
	snapshotType(t, ps, as, true, func(i int) uint8 { return uint8(i) })
	snapshotType(t, ps, as, true, func(i int) int8 { return int8(i & 127) })
	snapshotType(t, ps, as, false, func(i int) int8 { return int8(i) })
	snapshotType(t, ps, as, true, func(i int) uint32 { return uint32(i * 20000) })
	snapshotType(t, ps, as, false, func(i int) uint32 { return uint32(i * 40000) })
	snapshotType(t, ps, as, true, func(i int) uint64 { return uint64(i) })
	snapshotType(t, ps, as, false, func(i int) uint64 { return math.MaxUint64 - uint64(i) })
	snapshotType(t, ps, as, false, func(i int) int64 { return int64(-i) })
	snapshotType(t, ps, as, true, func(i int) uintptr { return uintptr(i) })
	snapshotType(t, ps, as, false, func(i int) string { return fmt.Sprint(i % 16) })
	snapshotType(t, ps, as, false, func(i int) point { return point{int16(i), 2, fmt.Sprint(i)} })
	snapshotType(t, ps, as, false, func(i int) bool { return i%2 == 0 })
	snapshotType(t, ps, as, false, func(i int) any { return i })
	snapshotType(t, ps, as, false, func(i int) float64 { return float64(i) })
	snapshotType(t, ps, as, false, func(int) struct{} { return struct{}{} })
	p := new(int)
	snapshotType(t, ps, as, false, func(i int) *int { return p })
}

func snapshotType[V comparable](t *testing.T, ps []netip.Prefix, as []netip.Addr, inline bool, value func(int) V) {
	t.Helper()
	tr := New[V](SourceOff)
	vs := make([]V, len(ps))
	for i, p := range ps {
		vs[i] = value(i)
		if err := tr.Insert(p, vs[i]); err != nil {
			t.Fatal(err)
		}
	}
	s := tr.CompileWith(CompileOptions{Prefixes: true})
	if s.Inline() != inline {
		t.Errorf("%T: inline is %v", vs[0], !inline)
	}
	sameAsTree(t, s, tr, as, nil)
	other, err := Compile(ps, vs, CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sameAsTree(t, other, tr, as, nil)
}

func TestZeroSignsStayApart(t *testing.T) {
	tr := New[float64](SourceOff)
	negative := math.Copysign(0, -1)
	tr.Insert(pfx("2001:db8::/32"), 0)
	tr.Insert(pfx("2001:db9::/32"), negative)
	s := tr.Compile()
	if v, _ := s.Lookup(ip("2001:db9::1")); !math.Signbit(v) {
		t.Error("-0 became 0")
	}
	tr.Insert(pfx("2001:dba::/32"), math.NaN())
	if v, ok := tr.Compile().Lookup(ip("2001:dba::1")); !ok || !math.IsNaN(v) {
		t.Error(v, ok)
	}
}

func TestSnapshotKeepsValuesOfUncomparableTypes(t *testing.T) {
	tr := New[[]byte](SourceOff)
	tr.Insert(pfx("2001:db8::/32"), []byte("a"))
	if v, ok := tr.Compile().Lookup(ip("2001:db8::1")); !ok || string(v) != "a" {
		t.Error(v, ok)
	}
	if _, ok := tr.Compile().Lookup(ip("10.0.0.1")); ok {
		t.Error("IPv4 found a route")
	}
}

func TestCompileFromAnyOrder(t *testing.T) {
	ps := append(routegen.IPv6(3000, 4), pfx("::/0"))
	vs := make([]uint32, len(ps))
	for i := range vs {
		vs[i] = uint32(i)
	}
	again := append(slices.Clone(ps), ps[:50]...) // the last of equal ones counts
	av := append(slices.Clone(vs), vs[1000:1050]...)
	a, err := Compile(again, av, CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	copy(vs, vs[1000:1050])
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(ps[i].Addr().Compare(ps[j].Addr()), ps[i].Bits()-ps[j].Bits())
	})
	var sp []netip.Prefix
	var sv []uint32
	for _, i := range order {
		sp, sv = append(sp, ps[i]), append(sv, vs[i])
	}
	b, err := Compile(sp, sv, CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range borders(ps) {
		v, ok := a.Lookup(x)
		w, wok := b.Lookup(x)
		if v != w || ok != wok {
			t.Fatalf("%v: %d %v, %d %v", x, v, ok, w, wok)
		}
	}
	if a.Len() != len(ps) || b.Len() != len(ps) || a.Bytes() != b.Bytes() || a.Entries() != b.Entries() {
		t.Errorf("%d %d routes, %d %d bytes", a.Len(), b.Len(), a.Bytes(), b.Bytes())
	}
	if _, err := Compile([]netip.Prefix{pfx("10.0.0.0/8")}, []int{1}, CompileOptions{}); err == nil {
		t.Error("IPv4 was taken")
	}
}

func TestEmptySnapshot(t *testing.T) {
	var tr Tree[int]
	for _, o := range allOptions {
		s := tr.CompileWith(o)
		sameAsTree(t, s, &tr, []netip.Addr{ip("::"), ip("::1"), ip("2001:db8::1")}, nil)
		if s.Len() != 0 || s.Entries() != 1 {
			t.Error(s.Len(), s.Entries())
		}
	}
}

func TestSnapshotLookupsAllocateNothing(t *testing.T) {
	tr := New[uint32](SourceLinux)
	for i, p := range append(routegen.IPv6(3000, 1), routegen.Hosts128(2000)...) {
		if err := tr.Insert(p, uint32(i)); err != nil {
			t.Fatal(err)
		}
	}
	tr.Add(rt("2001:db8::/32", "2001:db9::/32", 1), 1, ModeAdd)
	as := make([]netip.Addr, 100)
	keys, codes := make([]Key, 100), make([]uint32, 100)
	for i := range as {
		as[i] = key{0x20010db8000b0000 + uint64(i)<<40, 0x525400fffe00000 + uint64(i)}.addr()
		keys[i].Hi, keys[i].Lo, _ = addrKey(as[i])
	}
	vs, oks := make([]uint32, 100), make([]bool, 100)
	for _, o := range allOptions {
		s := tr.CompileWith(o)
		if n := testing.AllocsPerRun(20, func() {
			for i, a := range as {
				s.Lookup(a)
				s.LookupPrefix(a)
				s.LookupFrom(a, as[0])
				s.LookupKey(keys[i].Hi, keys[i].Lo)
			}
			s.LookupBatch(as, vs, oks)
			s.LookupCodes(keys, codes)
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func TestInlineTwins(t *testing.T) {
	twins[uint8](t, 0, 255)
	twins[int8](t, 0, 127)
	twins[uint16](t, 0, 65535)
	twins[int32](t, 1, maxInline)
	twins[uint64](t, 1, maxInline)
	twins[int](t, 0, maxInline)
	twins[uintptr](t, 7, maxInline)
}

func twins[V comparable](t *testing.T, numbers ...uint32) {
	t.Helper()
	for _, n := range numbers {
		v := inlineValue[V](n)
		if w := pureValue[V](n); v != w {
			t.Errorf("%T: %v and %v", v, v, w)
		}
		if a, b := inlineNumber(v), pureNumber(v); a != uint64(n) || b != a {
			t.Errorf("%T: %d and %d, want %d", v, a, b, n)
		}
	}
}
