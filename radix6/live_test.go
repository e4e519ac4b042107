package radix6

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"signalbox.example/internal/need"
	"signalbox.example/internal/routegen"
)

func sameAsView(t testing.TB, v *View[uint32], tr *Tree[uint32], as []netip.Addr) {
	t.Helper()
	vs, oks := make([]uint32, len(as)), make([]bool, len(as))
	v.LookupBatch(as, vs, oks)
	for i, a := range as {
		want, p, ok := tr.Lookup(a)
		x, q, got := v.LookupPrefix(a)
		if x != want || q != p || got != ok || vs[i] != want || oks[i] != ok {
			t.Fatalf("%v: %d %v %v (batch %d %v), want %d %v %v", a, x, q, got, vs[i], oks[i], want, p, ok)
		}
	}
	if v.Len() != tr.Len() {
		t.Fatalf("%d routes, want %d", v.Len(), tr.Len())
	}
}

// sound checks what lookups rely on, and returns the number of nodes.
func sound[V any](t testing.TB, n *liveNode[V], d int) int {
	t.Helper()
	if n.items == nil {
		if len(n.hi) == 0 || n.hi[0] != 0 || len(n.answers) != len(n.hi) || n.lo != nil && len(n.lo) != len(n.hi) {
			t.Fatalf("a broken list at depth %d", d)
		}
		return 1
	}
	nodes, below := 1, 0
	if n.marks[0]&1 == 0 || d > 15 {
		t.Fatalf("a broken node at depth %d", d)
	}
	for i := range n.items {
		if k := n.items[i].kid; k != nil {
			nodes += sound(t, k, d+1)
			below += k.below
		}
	}
	if below != n.below {
		t.Fatalf("a node at depth %d counts %d routes below, there are %d", d, n.below, below)
	}
	return nodes
}

func TestLiveAgainstTree(t *testing.T) {
	updates := 20000
	if testing.Short() {
		updates = 4000
	}
	liveAgainstTree(t, updates)
}

func TestIntegrationLiveAgainstTree(t *testing.T) {
	need.Asked(t, "long")
	liveAgainstTree(t, 100000)
}

func liveAgainstTree(t *testing.T, updates int) {
	r := rand.New(rand.NewPCG(7, 1))
	for round, world := range [][]netip.Prefix{
		routegen.IPv6(3000, 7),
		append(routegen.Hosts128(3000), routegen.Subnets48(1500, .5, 1)...),
		crowd(r, 400), crowd(r, 4000),
	} {
		for range 100 {
			world = append(world, randomPrefix(r))
		}
		mirror := New[uint32](SourceOff)
		start := New[uint32](SourceOff)
		for i, p := range world {
			if i%2 == round%2 {
				start.Insert(p, uint32(i))
				mirror.Insert(p, uint32(i))
			}
		}
		l, err := LiveOf(start)
		if err != nil {
			t.Fatal(err)
		}
		edges := borders(world)
		for u := range updates / 4 {
			p := world[r.IntN(len(world))]
			if u/(updates/16)%2 == 1 && r.IntN(3) > 0 { // shrinks in some stretches
				mirror.Remove(p)
				l.Remove(p)
			} else if r.IntN(2) == 0 {
				mirror.Insert(p, uint32(u))
				if err := l.Insert(p, uint32(u)); err != nil {
					t.Fatal(err)
				}
			} else {
				rt := Route{Prefix: p, Metric: uint32(r.IntN(3))}
				mode := [...]Mode{ModeAdd, ModeReplace, ModeAppend, ModeChange}[r.IntN(4)]
				if r.IntN(3) == 0 {
					v, ok := mirror.Delete(rt)
					if w, wok := l.Delete(rt); v != w || ok != wok {
						t.Fatal(v, ok, w, wok)
					}
				} else if a, b := mirror.Add(rt, uint32(u), mode), l.Add(rt, uint32(u), mode); (a == nil) != (b == nil) {
					t.Fatal(a, b)
				}
			}
			if u%97 == 0 {
				as := borders([]netip.Prefix{p})
				for range 20 {
					as = append(as, edges[r.IntN(len(edges))], near(r, world[r.IntN(len(world))]))
				}
				sameAsView(t, l.View(), mirror, as)
			}
		}
		sameAsView(t, l.View(), mirror, edges)
		sound(t, l.View().root, 0)
		l.Read(func(tr *Tree[uint32]) { sameAsTree(t, l.t.CompileWith(CompileOptions{}), tr, edges[:1000], nil) })
		sameAsTree(t, l.Compile(CompileOptions{Layout: Fast}), mirror, edges[:1000], nil)
	}
}

func TestLiveTransactions(t *testing.T) {
	l := NewLive[uint32]()
	for i, p := range routegen.IPv6(2000, 8) {
		if err := l.Insert(p, uint32(i)); err != nil {
			t.Fatal(err)
		}
	}
	list := func() (all []Route, vs []uint32) {
		l.Read(func(tr *Tree[uint32]) {
			for r, v := range tr.All() {
				all, vs = append(all, r), append(vs, v)
			}
		})
		return
	}
	routes, values := list()
	before := l.View()
	boom := errors.New("boom")
	change := func(tr *Tree[uint32]) {
		r := rand.New(rand.NewPCG(1, 1))
		for i := range 3000 {
			rt := routes[r.IntN(len(routes))]
			switch r.IntN(4) {
			case 0:
				tr.Delete(rt)
			case 1:
				tr.Add(rt, uint32(i), ModeAppend)
			case 2:
				tr.Add(rt, uint32(i), ModeReplace)
			case 3:
				rt.Metric = uint32(r.IntN(3))
				tr.Add(rt, uint32(i), ModeAdd)
			}
		}
	}
	if err := l.Update(func(tr *Tree[uint32]) error { change(tr); return boom }); err != boom {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come through")
			}
		}()
		l.Update(func(tr *Tree[uint32]) error { change(tr); tr.Clear(); panic("boom") })
	}()
	if a, b := list(); !slices.Equal(a, routes) || !slices.Equal(b, values) {
		t.Error("an undone transaction left traces")
	}
	if l.View() != before {
		t.Error("an undone transaction was published")
	}
	if err := l.Update(func(tr *Tree[uint32]) error { change(tr); return nil }); err != nil {
		t.Fatal(err)
	}
	var ps []netip.Prefix
	for _, r := range routes {
		ps = append(ps, r.Prefix)
	}
	l.Read(func(tr *Tree[uint32]) { sameAsView(t, l.View(), tr, borders(ps)) })
	if v := l.View().Version(); v != before.Version()+1 {
		t.Errorf("version %d after %d", v, before.Version())
	}
	if before.Len() != 2000 {
		t.Error("an old view changed")
	}
	if err := l.Update(func(tr *Tree[uint32]) error { tr.Clear(); return nil }); err != nil || l.Len() != 0 {
		t.Error(err, l.Len())
	}
	if _, ok := l.Lookup(ps[0].Addr()); ok {
		t.Error("found in a cleared table")
	}
	if err := l.Insert(pfx("10.0.0.0/8"), 1); !errors.Is(err, ErrFamily) {
		t.Error(err)
	}
	if _, err := LiveOf(New[int](SourceLinux)); !errors.Is(err, ErrSources) {
		t.Error(err)
	}
}

// Readers look while writers write. Each update sets all routes of a group to
// the same number, which only rises; a reader must never see two numbers in
// one view, nor a number below one it has seen. Run it with -race.
func TestLiveReadersSeeWholeUpdates(t *testing.T) {
	group := []netip.Prefix{
		pfx("2001:db8::/32"), pfx("2001:db8:1::/48"), pfx("2001:db8:1:2::/64"), pfx("2001:db8:1:2::3/128"),
		pfx("2000::/3"), pfx("2a00::/12"), pfx("2a01:4000::/22"), pfx("fe80::/10"), pfx("2001:db8:ffff::/48"),
	}
	inside := []netip.Addr{
		ip("2001:db8:2::1"), ip("2001:db8:1::1"), ip("2001:db8:1:2::1"), ip("2001:db8:1:2::3"),
		ip("3000::"), ip("2a0f::1"), ip("2a01:4000::"), ip("fe80::1"), ip("2001:db8:ffff:1::"),
	}
	noise := routegen.IPv6(2000, 9)
	l := NewLive[uint32]()
	set := func(n uint32) error {
		return l.Update(func(tr *Tree[uint32]) error {
			for _, p := range group {
				if err := tr.Insert(p, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := set(1); err != nil {
		t.Fatal(err)
	}
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	var done atomic.Bool
	var writers, readers, looking sync.WaitGroup
	looking.Add(2) // nobody writes before both readers have begun
	writers.Go(func() {
		looking.Wait()
		for n := range rounds {
			if err := set(uint32(n + 2)); err != nil {
				t.Error(err)
			}
		}
	})
	writers.Go(func() {
		r := rand.New(rand.NewPCG(1, 2))
		for range rounds {
			if p := noise[r.IntN(len(noise))]; p.Bits() < 20 || slices.Contains(group, p) {
				continue
			} else if r.IntN(2) == 0 {
				l.Insert(p, 0)
			} else {
				l.Remove(p)
			}
		}
	})
	looked := make([]int, 2)
	for who := range looked {
		readers.Go(func() {
			last := uint32(0)
			vs, oks := make([]uint32, len(inside)), make([]bool, len(inside))
			for !done.Load() {
				view := l.View()
				view.LookupBatch(inside, vs, oks)
				for i := range vs {
					if !oks[i] || vs[i] != vs[0] {
						t.Errorf("half of an update: %v %v", vs, oks)
						break
					}
				}
				v, ok := l.Lookup(inside[3])
				if vs[0] < last || !ok || v < vs[0] {
					t.Errorf("back from %d to %d to %d", last, vs[0], v)
				}
				last = v
				if looked[who]++; looked[who] == 1 {
					looking.Done()
				}
				runtime.Gosched()
			}
		})
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
	t.Logf("%d and %d looks during %d updates", looked[0], looked[1], rounds)
}

func TestLiveManyWriters(t *testing.T) {
	l := NewLive[uint32]()
	all := routegen.IPv6(4000, 10)
	var w sync.WaitGroup
	for who := range 4 {
		w.Go(func() {
			for i := who; i < len(all); i += 4 {
				l.Insert(all[i], uint32(i))
				if i%3 == 0 {
					l.Remove(all[i])
				}
			}
		})
	}
	w.Wait()
	mirror := New[uint32](SourceOff)
	for i, p := range all {
		if i%3 != 0 {
			mirror.Insert(p, uint32(i))
		}
	}
	sameAsView(t, l.View(), mirror, borders(all))
}

func TestLiveLookupsAllocateNothing(t *testing.T) {
	l := NewLive[uint32]()
	for i, p := range routegen.IPv6(3000, 11) {
		l.Insert(p, uint32(i))
	}
	as := []netip.Addr{ip("2001:db8::1"), ip("2a00::1"), ip("::1")}
	vs, oks := make([]uint32, 3), make([]bool, 3)
	if n := testing.AllocsPerRun(100, func() {
		for _, a := range as {
			l.Lookup(a)
			l.LookupPrefix(a)
			l.View().Lookup(a)
		}
		l.LookupKey(0x2a00<<48, 1)
		l.LookupBatch(as, vs, oks)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// After much churn the memory is that of a table made afresh.
func TestLiveChurnMemory(t *testing.T) { churnMemory(t, 20000, 3000) }

func TestIntegrationLiveMillionUpdates(t *testing.T) {
	need.Asked(t, "long")
	churnMemory(t, 1000000, 20000)
}

func churnMemory(t *testing.T, churn, n int) {
	world := routegen.IPv6(n, 12)
	r := rand.New(rand.NewPCG(12, 12))
	l := NewLive[uint32]()
	there := make([]bool, len(world))
	for i := range churn {
		at := r.IntN(len(world))
		if there[at] = !there[at]; there[at] {
			if err := l.Insert(world[at], uint32(i)); err != nil {
				t.Fatal(err)
			}
		} else if _, ok := l.Remove(world[at]); !ok {
			t.Fatal(world[at])
		}
	}
	fresh := New[uint32](SourceOff)
	for i, p := range world {
		if there[i] {
			fresh.Insert(p, 1)
		}
	}
	fresh.Pack()
	f, err := LiveOf(fresh)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := viewBytes(l.View().root), viewBytes(f.View().root); float64(a) > 1.1*float64(b) {
		t.Errorf("%d bytes of nodes after churn, %d afresh", a, b)
	}
	var bytes int
	l.Read(func(tr *Tree[uint32]) { bytes = tr.Stats().Bytes })
	if b := f.t.Stats().Bytes; float64(bytes) > 1.4*float64(b) { // room for growth
		t.Errorf("%d bytes of tree after churn, %d afresh", bytes, b)
	}
}

// viewBytes sums up what the slices of nodes hold.
func viewBytes(n *liveNode[uint32]) int {
	b := 168 + cap(n.items)*16 + cap(n.hi)*8 + cap(n.lo)*8 + cap(n.answers)*8
	for i := range n.items {
		if k := n.items[i].kid; k != nil {
			b += viewBytes(k)
		}
	}
	return b
}
