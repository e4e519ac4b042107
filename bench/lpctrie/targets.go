package lpctrie

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"signalbox.example/bench/routes"
	"signalbox.example/lpctrie"
)

// A Target is one figure of the compiled forms, its goal, and whether smaller
// than or equal to the goal is what was wanted: always.
type Target struct {
	Name, Unit string
	Got, Goal  float64 // Goal is 0 where there is none
}

// String is the target as a row of a table.
func (t Target) String() string {
	goal, held := "", ""
	if t.Goal > 0 {
		goal = fmt.Sprintf("%g", t.Goal)
		held = "yes"
		if t.Got > t.Goal {
			held = fmt.Sprintf("no, %.2f times", t.Got/t.Goal)
		}
	}
	return fmt.Sprintf("| %s | %.3g %s | %s | %s |", t.Name, t.Got, t.Unit, goal, held)
}

// TargetsHeader goes above the rows.
const TargetsHeader = "| | measured | goal | held |\n|---|---|---|---|\n"

// Targets measures the compiled forms against bart.Fast on a sorted table.
func Targets(sorted []netip.Prefix, rounds int) (out []Target) {
	add := func(name, unit string, got, goal float64) { out = append(out, Target{name, unit, got, goal}) }
	n := float64(len(sorted))
	ps := Shuffled(sorted, 1)
	as := Addresses(ps, Cold, 1)
	keys := make([]uint32, len(as))
	for i, a := range as {
		keys[i], _ = lpctrie.KeyOf(a)
	}
	fast := BartFast.Build(ps)
	compact, large := Compile(sorted, lpctrie.Compact), Compile(sorted, lpctrie.Fast)
	hops, err := lpctrie.Compile(sorted, numbers(len(sorted), 16), lpctrie.CompileOptions{})
	if err != nil {
		panic(err)
	}
	b := builtSnapshot(compact)
	bl := builtSnapshot(large)
	bh := builtSnapshot(hops)
	codes := make([]uint32, routes.Slice)
	byKey := func(s *lpctrie.Snapshot[uint32], keys []uint32) (n uint32) {
		for _, k := range keys {
			v, _ := s.LookupKey(k)
			n += v
		}
		return n
	}
	type run = func(lo, hi int)
	// ratio measures one contestant with bart, nobody else around.
	ratio := func(n int, base, ours run) (ns, r float64) {
		m := routes.Measure(n, rounds, []routes.Contestant{{Name: "bart.Fast", Run: base}, {Name: "ours", Run: ours}})
		return m[1], m[1] / m[0]
	}
	bartHot := func(lo, hi int) { Sink += fast.Sum(as[lo:hi]) }
	bartCold := bartHot
	bartChain := func(lo, hi int) { Sink += fast.Chain(as[lo:hi]) }
	for _, c := range []struct {
		name       string
		n          int
		base, ours run
		goal       float64
	}{
		{"hot, netip.Addr", Hot, bartHot, func(lo, hi int) { Sink += b.Sum(as[lo:hi]) }, .40},
		{"hot, integer key", Hot, bartHot, func(lo, hi int) { Sink += byKey(compact, keys[lo:hi]) }, .30},
		{"hot, batch", Hot, bartHot, func(lo, hi int) { compact.LookupCodes(keys[lo:hi], codes) }, 0},
		{"cold, independent", Cold, bartCold, func(lo, hi int) { Sink += b.Sum(as[lo:hi]) }, 0},
		{"cold, dependent", Cold, bartChain, func(lo, hi int) { Sink += b.Chain(as[lo:hi]) }, .32},
		{"cold, dependent, 16 next hops", Cold, bartChain, func(lo, hi int) { Sink += bh.Chain(as[lo:hi]) }, 0},
		{"cold, batch of keys, against bart one by one", Cold, bartCold, func(lo, hi int) { compact.LookupCodes(keys[lo:hi], codes) }, .09},
		{"cold, batch of keys, 16 next hops", Cold, bartCold, func(lo, hi int) { hops.LookupCodes(keys[lo:hi], codes) }, 0},
		{"fast: hot, netip.Addr", Hot, bartHot, func(lo, hi int) { Sink += bl.Sum(as[lo:hi]) }, .20},
		{"fast: cold, dependent", Cold, bartChain, func(lo, hi int) { Sink += bl.Chain(as[lo:hi]) }, 0},
		{"fast: cold, batch of keys, against bart one by one", Cold, bartCold, func(lo, hi int) { large.LookupCodes(keys[lo:hi], codes) }, .06},
	} {
		ns, r := ratio(c.n, c.base, c.ours)
		add(fmt.Sprintf("%s (%.1f ns)", c.name, ns), "x bart.Fast", r, c.goal)
	}
	// Alone, the caches are its own: what a program sees that does nothing else.
	alone := routes.Measure(Cold, rounds, []routes.Contestant{{Name: "ours", Run: func(lo, hi int) { compact.LookupCodes(keys[lo:hi], codes) }}})
	add("cold, batch of keys, without bart in between", "ns", alone[0], 0)
	alone = routes.Measure(Cold, rounds, []routes.Contestant{{Name: "ours", Run: func(lo, hi int) { Sink += b.Chain(as[lo:hi]) }}})
	add("cold, dependent, without bart in between", "ns", alone[0], 0)

	add("bytes per route, distinct values", "B", float64(compact.Bytes())/n, 6)
	add("bytes per route, 16 next hops", "B", float64(hops.Bytes())/n, 3)
	add("bytes per route, fast", "B", float64(large.Bytes())/n, 0)
	best := func(f func()) float64 {
		d := time.Duration(1 << 62)
		for range 5 {
			runtime.GC()
			d = min(d, routes.CPU(f))
		}
		return d.Seconds()
	}
	vs := numbers(len(sorted), 0)
	add("compile from sorted routes", "s", best(func() { lpctrie.Compile(sorted, vs, lpctrie.CompileOptions{}) }), .05)
	add("compile from shuffled routes", "s", best(func() { lpctrie.Compile(ps, vs, lpctrie.CompileOptions{}) }), .35)
	table := Table(ps)
	add("compile from a table that was filled in random order", "s", best(func() { table.Compile() }), .35)
	var file bytes.Buffer
	if err := compact.Encode(&file, nil); err != nil {
		panic(err)
	}
	add("load the serialised form", "s", best(func() {
		if _, err := lpctrie.Open[uint32](file.Bytes(), nil); err != nil {
			panic(err)
		}
	}), .01)

	within := func(s *lpctrie.Snapshot[uint32], as []netip.Addr) float64 {
		ns := singles(s, as)
		i, _ := slices.BinarySearch(ns, 50.5)
		return 100 * float64(i) / float64(len(ns))
	}
	hot := slices.Repeat(as[:Hot], 64)
	add("lookups within 50 ns, hot", "%", within(compact, hot), 0)
	add("lookups within 50 ns, cold", "%", within(compact, as[:1<<18]), 0)
	add("fast: lookups within 50 ns, cold", "%", within(large, as[:1<<18]), 0)

	l := lpctrie.LiveOf(table)
	p50, p99, garbage := Publish(l, ps, 20000)
	add("publish one change, median", "us", p50, 10)
	add("publish one change, 99th percentile", "us", p99, 50)
	add("garbage per change", "kB", garbage/1000, 0)
	add("one reader during 10,000 updates a second", "x quiet", Disturbed(l, ps, as, 10000, 5), 1.15)
	return out
}

// singles times each lookup alone, in CPU-independent wall nanoseconds, the
// clock's own time taken off, and returns them sorted.
func singles(s *lpctrie.Snapshot[uint32], as []netip.Addr) []float64 {
	ns, empty := make([]float64, len(as)), make([]float64, len(as))
	routes.OnThread(func() {
		for i, a := range as {
			start := time.Now()
			v, _ := s.Lookup(a)
			ns[i] = float64(time.Since(start))
			Sink += v
		}
		for i := range as {
			start := time.Now()
			empty[i] = float64(time.Since(start))
		}
	})
	slices.Sort(empty)
	for i := range ns {
		ns[i] -= empty[len(empty)/2]
	}
	slices.Sort(ns)
	return ns
}

// Publish removes and puts back n random routes of a live table, one update
// each, and returns median and 99th percentile of the CPU time of an update in
// microseconds, and the bytes allocated for each.
func Publish(l *lpctrie.Live[uint32], ps []netip.Prefix, n int) (p50, p99, garbage float64) {
	r := rand.New(rand.NewPCG(9, 9))
	us := make([]float64, 0, 2*n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	routes.OnThread(func() {
		for range n {
			p := ps[r.IntN(len(ps))]
			start := routes.ThreadTime()
			v, ok := l.Remove(p)
			us = append(us, float64(routes.ThreadTime()-start)/1000)
			if !ok {
				panic("a route is gone")
			}
			start = routes.ThreadTime()
			if err := l.Insert(p, v); err != nil {
				panic(err)
			}
			us = append(us, float64(routes.ThreadTime()-start)/1000)
		}
	})
	runtime.ReadMemStats(&after)
	slices.Sort(us)
	return us[len(us)/2], us[len(us)*99/100], float64(after.TotalAlloc-before.TotalAlloc) / float64(len(us))
}

// Disturbed compares a reader's median time for a lookup while somebody makes
// rate updates a second with the same when nobody does: the median of so many
// pairs of measurements of a second each.
func Disturbed(l *lpctrie.Live[uint32], ps []netip.Prefix, as []netip.Addr, rate, pairs int) float64 {
	read := func() float64 {
		var ns []float64
		routes.OnThread(func() {
			for begin, lo := time.Now(), 0; time.Since(begin) < time.Second; lo = (lo + 4096) % (len(as) - 4096) {
				start := routes.ThreadTime()
				for _, a := range as[lo : lo+4096] {
					v, _ := l.Lookup(a)
					Sink += v
				}
				ns = append(ns, float64(routes.ThreadTime()-start)/4096)
			}
		})
		slices.Sort(ns)
		return ns[len(ns)/2]
	}
	var ratios []float64
	for range pairs {
		quiet := read()
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			r := rand.New(rand.NewPCG(9, 10))
			begin := time.Now()
			for done := 0; !stop.Load(); {
				for due := int(time.Since(begin).Seconds() * float64(rate)); done < due; done += 2 {
					p := ps[r.IntN(len(ps))]
					if v, ok := l.Remove(p); ok {
						l.Insert(p, v)
					}
				}
				time.Sleep(time.Millisecond)
			}
		})
		busy := read()
		stop.Store(true)
		wg.Wait()
		ratios = append(ratios, busy/quiet)
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}
