package radix6

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"signalbox.example/internal/routegen"
	"signalbox.example/internal/vectors"
)

// add stores routes written as in String, with the metric as the value.
func add(t *testing.T, tr *Tree[int], routes ...Route) {
	t.Helper()
	for _, r := range routes {
		if err := tr.Add(r, int(r.Metric), ModeAdd); err != nil {
			t.Fatal(err)
		}
	}
}

func rt(prefix, from string, metric uint32) Route {
	return Route{Prefix: pfx(prefix), From: pfx(from), Metric: metric}
}

// wants looks an address up and compares the metric, -1 for a miss.
func wants(t *testing.T, tr *Tree[int], dst, src string, want int) {
	t.Helper()
	v, r, ok := tr.LookupFrom(ip(dst), ip(src))
	if !ok {
		v = -1
	}
	if v != want {
		t.Errorf("%s from %q: %v, want metric %d", dst, src, r, want)
	}
}

// Each case is a bug that some routing table had.

func TestFamiliesAreApart(t *testing.T) { // k-sone/critbitgo#16
	tr := New[int](SourceOff)
	for _, p := range []string{"127.0.0.0/8", "0.0.0.0/0"} {
		if err := tr.Insert(pfx(p), 1); !errors.Is(err, ErrFamily) {
			t.Errorf("insert %s: %v", p, err)
		}
	}
	add(t, tr, rt("::1/128", "", 1), rt("::/0", "", 2))
	wants(t, tr, "fe80::1", "", 2)
	wants(t, tr, "127.0.0.1", "", -1)
}

func TestCoverAddedAfterSpecific(t *testing.T) { // FDio/vpp#2911
	tr := New[int](SourceOff)
	add(t, tr, rt("2001:db8:1:2::/64", "", 1), rt("2001:db8::/32", "", 2))
	wants(t, tr, "2001:db8:1:1::1", "", 2)
}

func TestDeleteRestoresCover(t *testing.T) { // OpenFastPath/ofp#116
	tr := New[int](SourceOff)
	add(t, tr, rt("2001:db8::/32", "", 1), rt("2001:db8:8000::/48", "", 2))
	if _, ok := tr.Remove(pfx("2001:db8:8000::/48")); !ok {
		t.Fatal("not removed")
	}
	wants(t, tr, "2001:db8:8000::1", "", 1)
	if _, ok := tr.Get(pfx("2001:db8:8000::/48")); ok {
		t.Error("deleted route is still there")
	}
}

func TestSupernetsIncludeLengthZero(t *testing.T) { // osrg/gobgp#1301, tiborschneider/prefix-trie#8
	tr := New[int](SourceOff)
	add(t, tr, rt("::/0", "", 1), rt("2001:db8::/32", "", 2))
	var got []int
	for _, v := range tr.Supernets(pfx("2001:db8::1/128")) {
		got = append(got, v)
	}
	if !slices.Equal(got, []int{1, 2}) {
		t.Errorf("supernets %v", got)
	}
}

func TestDefaultAmongOthers(t *testing.T) { // mjschultz/py-radix#9
	tr := New[int](SourceOff)
	add(t, tr, rt("2001:db8:30::/48", "", 1), rt("2001:db8:1::/48", "", 2), rt("::/0", "", 3))
	wants(t, tr, "2001:db8:10::10", "", 3)
	wants(t, tr, "fe80::1", "", 3)
}

func TestHostRouteMatchesOneAddress(t *testing.T) { // pixos/poptrie#33
	tr := New[int](SourceOff)
	add(t, tr, rt("fe80::1234/128", "", 1))
	wants(t, tr, "fe80::1234", "", 1)
	wants(t, tr, "fe80::1235", "", -1)
	wants(t, tr, "fe80::1233", "", -1)
	add(t, tr, rt("::/128", "", 2), rt("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128", "", 3))
	wants(t, tr, "::", "", 2)
	wants(t, tr, "::1", "", -1)
	wants(t, tr, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", 3)
}

func TestParentDeletedFirstLeaksNothing(t *testing.T) { // DPDK/grout#620
	tr := New[int](SourceLinux)
	routes := []Route{
		rt("2001:db8::/32", "", 1), rt("2001:db8:1::/48", "", 2), rt("2001:db8:1:1::/64", "", 3),
		rt("2001:db8:1::/48", "2001:db9::/32", 4), rt("2001:db8:1::/48", "2001:db9:1::/48", 5), rt("2001:db8:1::/48", "", 6),
	}
	size := 0
	for i := range 10000 {
		add(t, tr, routes...)
		if i == 0 {
			size = tr.Stats().Bytes
		}
		for _, r := range routes {
			if _, ok := tr.Delete(r); !ok {
				t.Fatalf("round %d: %v is not there", i, r)
			}
		}
	}
	if s := tr.Stats(); s.Bytes != size || s.Nodes != 0 {
		t.Errorf("%d bytes, %d nodes left, %d bytes after the first round", s.Bytes, s.Nodes, size)
	}
	add(t, tr, routes...)
	wants(t, tr, "2001:db8:1:1::1", "", 3)
}

func TestZoneIsIgnored(t *testing.T) { // gaissmai/bart#418
	for _, extra := range []bool{false, true} { // whatever shape the tree has
		tr := New[int](SourceOff)
		add(t, tr, rt("fe80::/10", "", 1))
		want := 1
		if extra {
			add(t, tr, rt("fe80::1/128", "", 2))
			want = 2
		}
		wants(t, tr, "fe80::1%eth0", "", want)
		wants(t, tr, "fe80::2%eth0", "::1%eth0", 1)
		if v, ok := tr.Compile().Lookup(ip("fe80::1%eth0")); !ok || v != want {
			t.Errorf("snapshot: %d %v", v, ok)
		}
	}
}

func TestMappedAddressesAreIPv6(t *testing.T) { // kentik/patricia#13, oven-sh/bun#33296
	tr := New[int](SourceOff)
	add(t, tr, rt("::ffff:10.0.0.0/104", "", 1))
	wants(t, tr, "::ffff:10.1.2.3", "", 1)
	wants(t, tr, "10.1.2.3", "", -1)
}

func TestInsertTwiceDeleteOnce(t *testing.T) { // tailscale/tailscale#8611, cilium/cilium#4611
	tr := New[int](SourceOff)
	p := pfx("2001:db8::/32")
	for range 2 {
		if err := tr.Insert(p, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := tr.Add(Route{Prefix: p}, 2, ModeAdd); !errors.Is(err, ErrExist) {
		t.Errorf("add of what is there: %v", err)
	}
	tr.Remove(p)
	wants(t, tr, "2001:db8::1", "", -1)
	// Two owners that append have a route each.
	for v := range 2 {
		if err := tr.Add(Route{Prefix: p}, v, ModeAppend); err != nil {
			t.Fatal(err)
		}
	}
	if v, ok := tr.Remove(p); !ok || v != 0 {
		t.Errorf("removed %d", v)
	}
	wants(t, tr, "2001:db8::1", "", 1)
}

func TestSiblingsOfEqualLength(t *testing.T) { // api7/lua-resty-ipmatcher#18
	tr := New[int](SourceOff)
	add(t, tr, rt("2001:db8:0:7::/64", "", 7), rt("2001:db8:0:1::/64", "", 1))
	wants(t, tr, "2001:db8:0:1:2::3", "", 1)
}

func TestOrderOfInsertionDoesNotMatter(t *testing.T) { // Asphaltt/lpmtrie
	routes := []Route{
		rt("::/0", "", 1), rt("::/0", "2001:db9::/32", 2), rt("2001:db8::/32", "", 3),
		rt("2001:db8:8000::/33", "2001:db9:1::/48", 4), rt("2001:db8::/48", "2001:db9::/33", 5), rt("2001:db8::/48", "", 6),
	}
	r := rand.New(rand.NewPCG(1, 1))
	var first *Tree[int]
	permute(len(routes), func(order []int) {
		tr := New[int](SourceLinux)
		for _, i := range order {
			add(t, tr, routes[i])
		}
		if first == nil {
			first = tr
			return
		}
		if a, b := tr.Stats(), first.Stats(); a.Nodes != b.Nodes || a.TotalDepth != b.TotalDepth {
			t.Fatalf("order %v: %+v, want %+v", order, a, b)
		}
		for range 20 {
			q, p := routes[r.IntN(len(routes))], routes[r.IntN(len(routes))]
			dst, src := near(r, q.Prefix), ip("2001:db9::1")
			if p.From.IsValid() {
				src = near(r, p.From)
			}
			v, _, ok := tr.LookupFrom(dst, src)
			wv, _, wok := first.LookupFrom(dst, src)
			if v != wv || ok != wok {
				t.Fatalf("order %v: %v from %v: %d, want %d", order, dst, src, v, wv)
			}
		}
	})
}

// permute calls f with every order of n numbers.
func permute(n int, f func([]int)) {
	order := make([]int, 0, n)
	var rec func()
	rec = func() {
		if len(order) == n {
			f(order)
			return
		}
		for i := range n {
			if !slices.Contains(order, i) {
				order = append(order, i)
				rec()
				order = order[:len(order)-1]
			}
		}
	}
	rec()
}

func TestLinuxHidesGenericRoutes(t *testing.T) { // Linux 6.18
	routes := []Route{
		rt("2001:db8::/32", "", 10), rt("2001:db8:2::/48", "", 14), rt("2001:db8:2::/48", "2001:db8:a::/48", 15),
	}
	linux, draft := New[int](SourceLinux), New[int](SourceDraft)
	add(t, linux, routes...)
	add(t, draft, routes...)
	for _, src := range []string{"2001:db8:b::1", ""} {
		wants(t, linux, "2001:db8:2::1", src, 10)
		wants(t, draft, "2001:db8:2::1", src, 14)
	}
	for _, tr := range []*Tree[int]{linux, draft} {
		wants(t, tr, "2001:db8:2::1", "2001:db8:a::1", 15)
		tr.Delete(routes[0])
	}
	wants(t, linux, "2001:db8:2::1", "2001:db8:b::1", -1)
	wants(t, draft, "2001:db8:2::1", "2001:db8:b::1", 14)
}

func TestLinuxDefaultIsNotHidden(t *testing.T) { // Linux 6.18
	for _, mode := range []SourceMode{SourceLinux, SourceDraft} {
		tr := New[int](mode)
		add(t, tr, rt("::/0", "", 30), rt("::/0", "2001:db8:b::/48", 13))
		wants(t, tr, "2001:db9::1", "2001:db8:a::1", 30)
		wants(t, tr, "2001:db9::1", "2001:db8:b::1", 13)
	}
}

func TestLongestSourceWins(t *testing.T) { // Linux 6.18
	for _, mode := range []SourceMode{SourceLinux, SourceDraft} {
		tr := New[int](mode)
		add(t, tr, rt("2001:db8:1::/48", "2001:db8:a::/48", 11), rt("2001:db8:1::/48", "2001:db8:a:1::/64", 12))
		wants(t, tr, "2001:db8:1::1", "2001:db8:a:1::1", 12)
		wants(t, tr, "2001:db8:1::1", "2001:db8:a:2::1", 11)
	}
}

func TestSourceIsRefusedNotDropped(t *testing.T) { // FRRouting/frr#14247, raspberrypi/linux#1370
	var tr Tree[int]
	err := tr.Add(rt("2001:db8::/32", "2001:db9::/32", 1), 1, ModeAdd)
	var re *RouteError
	if !errors.Is(err, ErrNoSources) || !errors.As(err, &re) || tr.Len() != 0 {
		t.Errorf("%v, %d routes", err, tr.Len())
	}
	if err := tr.Add(rt("2001:db8::/32", "::/0", 1), 1, ModeAdd); err != nil {
		t.Errorf("from ::/0 is generic: %v", err)
	}
}

func TestHostBitsAreRefused(t *testing.T) {
	tr := New[int](SourceDraft)
	if err := tr.Insert(pfx("2001:db8::1/64"), 1); !errors.Is(err, ErrPrefix) {
		t.Errorf("destination: %v", err)
	}
	if err := tr.Add(rt("2001:db8::/32", "2001:db9::1/32", 0), 1, ModeAdd); !errors.Is(err, ErrPrefix) {
		t.Errorf("source: %v", err)
	}
	if err := tr.Insert(netip.Prefix{}, 1); !errors.Is(err, ErrPrefix) {
		t.Errorf("zero prefix: %v", err)
	}
	if tr.Len() != 0 {
		t.Error("something was stored")
	}
}

func TestManyRejectedAncestors(t *testing.T) {
	// More candidates above the match than the lookup remembers on its way.
	tr := New[int](SourceOff)
	for n := 0; n <= 128; n++ {
		p, _ := ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").Prefix(n)
		if err := tr.Insert(p, n); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 128 {
		k := key{^uint64(0), ^uint64(0)}.mask(n) // n ones, then zeros
		if v, p, ok := tr.Lookup(k.addr()); !ok || v != n || p.Bits() != n {
			t.Errorf("%v: %d %v", k.addr(), v, p)
		}
	}
	tries := 0
	_, _, ok := tr.LookupFunc(ip("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), netip.Addr{}, func(r Route, v int) bool {
		if v != 128-tries {
			t.Errorf("try %d is %v", tries, r)
		}
		tries++
		return false
	})
	if ok || tries != 129 {
		t.Errorf("%d tries, %v", tries, ok)
	}
}

func TestZeroTree(t *testing.T) {
	var tr Tree[string]
	if _, _, ok := tr.Lookup(ip("::1")); ok || tr.Len() != 0 || tr.Contains(ip("::")) {
		t.Error("the zero tree has routes")
	}
	if _, ok := tr.Remove(pfx("::/0")); ok {
		t.Error("removed from nothing")
	}
	for range tr.All() {
		t.Error("walks")
	}
	tr.Pack()
	tr.Clear()
	if s := tr.Stats(); s.Nodes != 0 || s.AverageDepth() != 0 {
		t.Errorf("%+v", s)
	}
	if got := tr.Trace(ip("::1")).String(); got != "no route" {
		t.Errorf("trace %q", got)
	}
	if err := tr.Insert(pfx("::/0"), "x"); err != nil {
		t.Fatal(err)
	}
	if v, _, ok := tr.Lookup(ip("::1")); !ok || v != "x" {
		t.Error("default route not found")
	}
}

func TestMemoryReturnsAfterDeletes(t *testing.T) {
	tr := New[int](SourceOff)
	ps := routegen.IPv6(20000, 1)
	for i, p := range ps {
		if err := tr.Insert(p, i); err != nil {
			t.Fatal(err)
		}
	}
	full := tr.Stats().Bytes
	for _, p := range ps[:len(ps)-100] {
		if _, ok := tr.Remove(p); !ok {
			t.Fatal(p)
		}
	}
	if b := tr.Stats().Bytes; b > full/10 {
		t.Errorf("%d of %d bytes stay for 100 of 20,000 routes", b, full)
	}
	for i, p := range ps[len(ps)-100:] {
		if v, ok := tr.Get(p); !ok || v != len(ps)-100+i {
			t.Fatalf("%v: %d %v", p, v, ok)
		}
	}
}

func TestLookupsAllocateNothing(t *testing.T) {
	tr := New[int](SourceLinux)
	for i, p := range routegen.IPv6(2000, 1) {
		if err := tr.Insert(p, i); err != nil {
			t.Fatal(err)
		}
	}
	add(t, tr, rt("2001:db8::/32", "2001:db9::/32", 1))
	dst, src := ip("2001:db8::1"), ip("2001:db9::1")
	if n := testing.AllocsPerRun(100, func() {
		tr.Lookup(dst)
		tr.LookupAddr(src)
		tr.LookupKey(0x20010db800000000, 1)
		tr.LookupFrom(dst, src)
		tr.Contains(dst)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The real table has the shape that the kernel's own has: nodes as in
// /proc/net/rt6_stats, depth as measured in public.
func TestFullTableShape(t *testing.T) {
	if testing.Short() {
		t.Skip("loads a full table")
	}
	tr := New[uint32](SourceOff)
	for i, l := range vectors.Lines(t, "tries/bgp-2025-10.prefixes.txt.gz") {
		if p := netip.MustParsePrefix(l); p.Addr().Is6() {
			if err := tr.Insert(p, uint32(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := tr.Stats()
	if s.Routes != 160147 || s.Nodes != 304302 || s.RouteNodes != 160147 || s.MaxDepth != 40 || s.AverageDepth() < 24.935 || s.AverageDepth() >= 24.945 {
		t.Errorf("%+v", s)
	}
	if per := float64(s.Bytes) / float64(s.Routes); per > 90 {
		t.Errorf("%.1f bytes a route, more than 90", per)
	}
}
