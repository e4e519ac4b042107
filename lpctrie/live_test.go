package lpctrie

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"signalbox.example/internal/routegen"
)

// compareLive holds a view against the table at keys, one by one and in batches.
func compareLive(t *testing.T, tab *Table[uint32], v *View[uint32], keys []uint32) {
	t.Helper()
	as, vs, oks := make([]netip.Addr, len(keys)), make([]uint32, len(keys)), make([]bool, len(keys))
	found := 0
	for i, k := range keys {
		as[i] = AddrOf(k)
		wv, wp, wok := tab.Lookup(as[i])
		if wok {
			found++
		}
		if v1, ok := v.LookupKey(k); v1 != wv || ok != wok {
			t.Fatalf("%v: %d %v, want %d %v %v", as[i], v1, ok, wv, wp, wok)
		}
		if v1, p, ok := v.LookupPrefix(as[i]); v1 != wv || p != wp || ok != wok {
			t.Fatalf("%v: %d %v %v, want %d %v %v", as[i], v1, p, ok, wv, wp, wok)
		}
	}
	if n := v.LookupBatch(as, vs, oks); n != found {
		t.Fatalf("batch found %d, want %d", n, found)
	}
	for i, k := range keys {
		if wv, wok := tab.LookupKey(k); vs[i] != wv || oks[i] != wok {
			t.Fatalf("batch %v: %d %v, want %d %v", as[i], vs[i], oks[i], wv, wok)
		}
	}
}

// edgesOf returns the addresses at the edges of a prefix.
func edgesOf(p netip.Prefix, r *rand.Rand) []uint32 {
	key, slen, _ := keyOfPrefix(p)
	last := key | suffixMask(slen)
	return []uint32{key, key - 1, last, last + 1, key | r.Uint32()&suffixMask(slen)}
}

func TestLiveAgainstTable(t *testing.T) {
	updates := 15000
	if testing.Short() {
		updates = 2000
	}
	liveAgainstTable(t, updates)
}

// liveAgainstTable makes random updates of a live table and a plain one, and
// compares them after each at the addresses concerned, while two readers check
// that every answer contains its address.
func liveAgainstTable(t *testing.T, updates int) {
	r := rand.New(rand.NewPCG(8, 8))
	tab := New[uint32](Config{})
	l := NewLive[uint32](Config{})
	var stop atomic.Bool
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop.Store(true)
	for seed := range uint64(2) {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 5))
			for !stop.Load() {
				a := AddrOf(0x0a010000 + r.Uint32()&0x1ffff)
				if _, p, ok := l.LookupPrefix(a); ok && !p.Contains(a) {
					t.Errorf("%v: %v", a, p)
				}
				if r.IntN(64) == 0 {
					time.Sleep(50 * time.Microsecond) // leave room for the writer
				}
			}
		})
	}
	var present []Route
	fail := errors.New("changed my mind")
	for i := range updates {
		var touched []uint32
		step := func(tx interface {
			Add(Route, uint32, Mode) error
			Delete(Route) (uint32, bool)
		}, ref *Table[uint32]) {
			rt := Route{Prefix: corner(r)}
			if r.IntN(10) == 0 {
				rt.TOS, rt.Priority = 8, uint32(r.IntN(2))
			}
			if rt.Prefix.Bits() < 8 && r.IntN(3) > 0 {
				rt.Prefix = pfx("0.0.0.0/0") // large rebuilds are slow, default routes frequent
			}
			touched = append(touched, edgesOf(rt.Prefix, r)...)
			if len(present) > 60 || r.IntN(3) == 0 && len(present) > 0 {
				at := r.IntN(len(present))
				rt = present[at]
				touched = append(touched, edgesOf(rt.Prefix, r)...)
				v, ok := tx.Delete(rt)
				if ref != nil {
					present[at] = present[len(present)-1]
					present = present[:len(present)-1]
					if wv, wok := ref.Delete(rt); v != wv || ok != wok {
						t.Fatal(v, ok, wv, wok)
					}
				}
				return
			}
			v, mode := r.Uint32(), []Mode{ModeAdd, ModeReplace, ModeAppend}[r.IntN(3)]
			err := tx.Add(rt, v, mode)
			if ref != nil {
				if werr := ref.Add(rt, v, mode); werr != err {
					t.Fatal(err, werr)
				}
				if err == nil {
					present = append(present, rt)
				}
			}
		}
		before := l.View()
		switch r.IntN(5) {
		case 0: // a transaction
			if err := l.Update(func(tx *Table[uint32]) error {
				for range 1 + r.IntN(5) {
					step(tx, tab)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		case 1: // one that fails
			err := l.Update(func(tx *Table[uint32]) error {
				for range 1 + r.IntN(5) {
					step(tx, nil)
				}
				if r.IntN(8) == 0 {
					tx.Clear()
				}
				return fail
			})
			if err != fail || l.View() != before {
				t.Fatalf("%v, published: %v", err, l.View() != before)
			}
		default:
			step(l, tab)
		}
		touched = append(touched, r.Uint32(), 0, ^uint32(0))
		compareLive(t, tab, l.View(), touched)
		for _, key := range touched {
			compareChunk(t, l, key>>16)
		}
		if i%(updates/10) == 0 {
			l.Read(func(lt *Table[uint32]) {
				verify(t, lt)
				compareTables2(t, tab, lt)
			})
			var keys []uint32
			for k := uint32(0x0a010000 - 300); k < 0x0a030000+300; k++ {
				keys = append(keys, k)
			}
			compareLive(t, tab, l.View(), keys)
			if l.Len() != tab.Len() {
				t.Fatalf("Len %d, want %d", l.Len(), tab.Len())
			}
		}
	}
	if s := l.Compile(CompileOptions{}); s.Len() == 0 {
		t.Error("nothing compiled")
	}
}

// Addresses that are not IPv4 at every place of a batch, with a default route that
// they must not find.
func TestLiveBatchEdges(t *testing.T) {
	l := NewLive[uint32](Config{})
	table := routegen.IPv4(300, 4)
	for i, p := range table {
		l.Insert(p, uint32(i))
	}
	l.Insert(pfx("0.0.0.0/0"), 1000)
	others := []netip.Addr{adr("2001:db8::1"), adr("::ffff:1.2.3.4"), {}}
	for n := range 3*batch + 1 {
		as := make([]netip.Addr, n)
		for i := range as {
			if as[i] = table[i].Addr(); (i+n)%4 == 0 {
				as[i] = others[i%3]
			}
		}
		vs, oks := make([]uint32, n+1), make([]bool, n+1)
		for i := range vs {
			vs[i], oks[i] = 5555, true
		}
		found := l.LookupBatch(as, vs, oks)
		for i, a := range as {
			if want, ok := l.Lookup(a); vs[i] != want || oks[i] != ok || ok != a.Is4() {
				t.Fatalf("%d of %d, %v: %d %v, want %d %v", i, n, a, vs[i], oks[i], want, ok)
			}
			if oks[i] {
				found--
			}
		}
		if found != 0 {
			t.Fatalf("%d found too many", found)
		}
		if vs[n] != 5555 || !oks[n] {
			t.Fatal("written behind the end")
		}
	}
}

// compareChunk holds a /16, which updates have patched again and again, against
// one that is made anew.
func compareChunk(t *testing.T, l *Live[uint32], k uint32) {
	t.Helper()
	v := l.View()
	g := new(slash8[uint32])
	if n := v.by4[k>>12]; n != nil && n[k>>8&15] != nil {
		g = n[k>>8&15]
	}
	want, got := l.rebuild(k, nil, g), v.chunk(k<<16)
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("/16 %v:\n%+v, want\n%+v", AddrOf(k<<16), got, want)
	}
}

// compareTables2 holds the routes of two tables together.
func compareTables2(t *testing.T, want, got *Table[uint32]) {
	t.Helper()
	var a, b []slowRoute
	for r, v := range want.All() {
		a = append(a, slowRoute{r, v})
	}
	for r, v := range got.All() {
		b = append(b, slowRoute{r, v})
	}
	if len(a) != len(b) {
		t.Fatalf("%d routes, want %d", len(b), len(a))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Fatalf("route %d: %+v, want %+v", i, b[i], a[i])
		}
	}
}

func TestLiveOfRealisticTable(t *testing.T) {
	n := 50000
	if testing.Short() {
		n = 3000
	}
	table := routegen.IPv4(n, 12)
	r := rand.New(rand.NewPCG(1, 3))
	a, b := New[uint32](Config{}), New[uint32](Config{})
	var keys []uint32
	for i, p := range table {
		a.Insert(p, uint32(i))
		b.Insert(p, uint32(i))
		keys = append(keys, edgesOf(p, r)...)
	}
	l := LiveOf(b)
	compareLive(t, a, l.View(), keys)
	for i := range n / 10 { // each goes and comes back, longer ones around and within it stay
		p := table[r.IntN(n)]
		k, _, _ := keyOfPrefix(p)
		l.Remove(p)
		if i%8 == 0 { // two at once, near each other or not
			q := table[r.IntN(n)]
			if i%16 == 0 {
				q = netip.PrefixFrom(AddrOf(k^r.Uint32()&0xffff), 17+r.IntN(16)).Masked()
			}
			if err := l.Update(func(tx *Table[uint32]) error {
				tx.Remove(q)
				return tx.Insert(p, uint32(i))
			}); err != nil {
				t.Fatal(err)
			}
			j, _, _ := keyOfPrefix(q)
			compareChunk(t, l, j>>16)
		} else {
			compareChunk(t, l, k>>16)
			l.Insert(p, uint32(i))
		}
		compareChunk(t, l, k>>16)
	}
}

// Clear inside an update takes every route, those that share a leaf too, and comes
// undone with it.
func TestLiveClear(t *testing.T) {
	fill := func() *Live[int] {
		l := NewLive[int](Config{})
		for i, p := range []string{"0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/24", "10.0.0.0/32", "10.0.1.0/24", "192.0.2.0/24"} {
			for tos := range uint8(2) {
				for priority := range uint32(2) {
					r := Route{Prefix: pfx(p), TOS: 8 * tos, Priority: priority}
					if err := l.Add(r, i, ModeAdd); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		return l
	}
	keys := []uint32{0, 0x09ffffff, 0x0a000000, 0x0a000001, 0x0a000100, 0x0a010000, 0xc0000201, ^uint32(0)}
	l := fill()
	err := l.Update(func(tx *Table[int]) error {
		tx.Clear()
		if tx.Len() != 0 {
			t.Errorf("%d routes left by Clear", tx.Len())
		}
		for r := range tx.All() {
			t.Errorf("%v left by Clear", r)
		}
		return tx.Insert(pfx("10.0.0.0/24"), 77)
	})
	if err != nil || l.Len() != 1 {
		t.Fatal(err, l.Len())
	}
	for _, k := range keys {
		if v, ok := l.LookupKey(k); ok != (k>>8 == 0x0a0000) || ok && v != 77 {
			t.Errorf("%v: %d %v", AddrOf(k), v, ok)
		}
	}
	l, same := fill(), fill()
	fail := errors.New("no")
	if err := l.Update(func(tx *Table[int]) error { tx.Clear(); return fail }); err != fail {
		t.Fatal(err)
	}
	l.Read(func(a *Table[int]) {
		verify(t, a)
		same.Read(func(b *Table[int]) {
			next, stop := iter.Pull2(b.All())
			defer stop()
			for r, v := range a.All() {
				if wr, wv, _ := next(); r != wr || v != wv {
					t.Errorf("%v %d, want %v %d", r, v, wr, wv)
				}
			}
			if _, _, ok := next(); ok {
				t.Error("routes are missing")
			}
		})
	})
}

// A panic inside an update leaves everything as it was and usable.
func TestLivePanic(t *testing.T) {
	l := NewLive[int](Config{})
	l.Insert(pfx("10.0.0.0/8"), 1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		l.Update(func(tx *Table[int]) error {
			tx.Insert(pfx("10.0.0.0/8"), 2)
			panic("oops")
		})
	}()
	if v, ok := l.Lookup(adr("10.0.0.1")); v != 1 || !ok {
		t.Error(v, ok)
	}
	if err := l.Insert(pfx("10.1.0.0/16"), 3); err != nil {
		t.Fatal(err)
	}
	if v, p, ok := l.LookupPrefix(adr("10.1.0.1")); v != 3 || !ok || p != pfx("10.1.0.0/16") {
		t.Error(v, p, ok)
	}
	if v, ok := l.Remove(pfx("10.0.0.0/8")); v != 1 || !ok {
		t.Error(v, ok)
	}
	if _, ok := l.Lookup(adr("::1")); ok {
		t.Error("an IPv6 address is found")
	}
}

// Linearisable: the writer's k-th update sets every prefix of set k mod m to k,
// in one transaction. A view of version base+k must then show, at every prefix
// of set j, the largest number up to k that is j modulo m: no update half
// applied, none lost, none too early. Views never go backwards.
func TestLiveReadersSeeWholeUpdates(t *testing.T) {
	updates := 20000
	if testing.Short() {
		updates = 2000
	}
	const m = 7
	sets := make([][]netip.Prefix, m)
	for j := range sets {
		// Prefixes far apart, nested, longer than /24 and shorter than /16.
		for _, s := range []string{"%d.0.0.0/8", "%d.1.0.0/16", "%d.1.2.0/24", "%d.1.2.3/32", "%d.76.0.0/14", "%d.200.5.128/25"} {
			sets[j] = append(sets[j], pfx(fmt.Sprintf(s, 10+j)))
		}
	}
	l := NewLive[int](Config{})
	set := func(k int) error {
		return l.Update(func(tx *Table[int]) error {
			for _, p := range sets[k%m] {
				if err := tx.Insert(p, k); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for k := range m {
		if err := set(k); err != nil {
			t.Fatal(err)
		}
	}
	base := l.View().Version() - (m - 1) // the version of update 0
	var stop atomic.Bool
	var wg sync.WaitGroup
	var checks atomic.Int64
	for range 3 {
		wg.Go(func() {
			last := uint64(0)
			for !stop.Load() {
				v := l.View()
				if v.Version() < last {
					t.Error("a view from the past")
					return
				}
				last = v.Version()
				k := int(last - base)
				for j, ps := range sets {
					want := k - (k-j+m)%m
					for _, p := range ps {
						got, prefix, ok := v.LookupPrefix(p.Addr())
						if !ok || !prefix.Contains(p.Addr()) {
							t.Errorf("%v: %v %v", p, prefix, ok)
							return
						}
						// The address of a short prefix belongs to a longer one of
						// the same set with the same address.
						if got != want {
							t.Errorf("version %d, set %d: %d, want %d", k, j, got, want)
							return
						}
					}
				}
				checks.Add(1)
				runtime.Gosched()
			}
		})
	}
	for k := m; k < updates; k++ {
		if err := set(k); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	if checks.Load() == 0 && !t.Failed() {
		t.Log("the readers never ran")
	}
	t.Logf("%d views checked", checks.Load())
}

// Several writers and readers on a table like the Internet's: every answer
// contains its address and has a value that its prefix was given.
func TestLiveManyWriters(t *testing.T) {
	n, updates := 20000, 4000
	if testing.Short() {
		n, updates = 2000, 500
	}
	table := routegen.IPv4(n, 13)
	l := NewLive[*netip.Prefix](Config{})
	if err := l.Update(func(tx *Table[*netip.Prefix]) error {
		for i := range table {
			if err := tx.Insert(table[i], &table[i]); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var readers, writers sync.WaitGroup
	for seed := range uint64(2) {
		readers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			as, vs, oks := make([]netip.Addr, 100), make([]*netip.Prefix, 100), make([]bool, 100)
			for !stop.Load() {
				for i := range as {
					k, slen, _ := keyOfPrefix(table[r.IntN(n)])
					as[i] = AddrOf(k | r.Uint32()&suffixMask(slen))
				}
				l.LookupBatch(as, vs, oks)
				for i, a := range as {
					if oks[i] && !vs[i].Contains(a) {
						t.Errorf("%v: %v", a, vs[i])
					}
					if v, p, ok := l.LookupPrefix(a); ok && (*v != p || !p.Contains(a)) {
						t.Errorf("%v: %v %v", a, v, p)
					}
				}
				runtime.Gosched()
			}
		})
		writers.Go(func() {
			r := rand.New(rand.NewPCG(seed, 2))
			for range updates {
				p := &table[r.IntN(n)]
				if r.IntN(2) == 0 {
					l.Remove(*p)
				} else if err := l.Insert(*p, p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
	// Put all back: the same as a fresh one.
	fresh := New[*netip.Prefix](Config{})
	for i := range table {
		l.Insert(table[i], &table[i])
		fresh.Insert(table[i], &table[i])
	}
	if l.Len() != n {
		t.Errorf("%d routes, want %d", l.Len(), n)
	}
	for _, p := range table {
		v, got, ok := l.LookupPrefix(p.Addr())
		w, want, wok := fresh.Lookup(p.Addr())
		if v != w || got != want || ok != wok {
			t.Fatalf("%v: %v %v, want %v %v", p.Addr(), got, ok, want, wok)
		}
	}
}

func TestLiveLookupsDoNotAllocate(t *testing.T) {
	l := NewLive[uint32](Config{})
	for i, p := range routegen.IPv4(500, 1) {
		l.Insert(p, uint32(i))
	}
	as := []netip.Addr{adr("1.2.3.4"), adr("::1"), adr("200.1.2.3")}
	vs, oks := make([]uint32, 3), make([]bool, 3)
	for name, f := range map[string]func(){
		"Lookup":       func() { l.Lookup(as[0]) },
		"LookupKey":    func() { l.LookupKey(1 << 30) },
		"LookupPrefix": func() { l.LookupPrefix(as[2]) },
		"LookupBatch":  func() { l.LookupBatch(as, vs, oks) },
		"View":         func() { l.View().Lookup(as[0]) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A day of updates leaves memory as large as a fresh build's, within a tenth.
func TestLiveChurnMemory(t *testing.T) {
	n, updates := 20000, 60000
	if testing.Short() {
		n, updates = 3000, 10000
	}
	table := routegen.IPv4(n, 14)
	r := rand.New(rand.NewPCG(2, 2))
	start := heap()
	l := NewLive[uint32](Config{})
	for i, p := range table {
		l.Insert(p, uint32(i))
	}
	for range updates / 2 {
		i := r.IntN(n)
		l.Remove(table[i])
		l.Insert(table[i], uint32(i))
	}
	churned := heap() - start
	start = heap()
	tab := New[uint32](Config{})
	for i, p := range table {
		tab.Insert(p, uint32(i))
	}
	fresh := LiveOf(tab)
	size := heap() - start
	t.Logf("%d bytes after %d updates, %d fresh", churned, updates, size)
	if float64(churned) > 1.1*float64(size)+128<<10 { // of small tables the test's own garbage would count
		t.Errorf("%d bytes after %d updates, %d fresh", churned, updates, size)
	}
	runtime.KeepAlive(l)
	runtime.KeepAlive(fresh)
	runtime.KeepAlive(table)
}
