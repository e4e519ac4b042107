package radix6

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"signalbox.example/bench/routes"
	"signalbox.example/radix6"
)

// BenchmarkCompile prints how long it takes to make snapshots of the full
// table: from sorted prefixes, from shuffled ones, from a tree, and out of the
// serialised form. Best of 10, CPU time.
func BenchmarkCompile(b *testing.B) {
	_, table, err := routes.Full()
	if err != nil {
		b.Fatal(err)
	}
	vs := make([]uint32, len(table))
	for i := range vs {
		vs[i] = uint32(i)
	}
	mixed := shuffled(table)
	tree := Tree(table)
	s := tree.Compile()
	var file bytes.Buffer
	if err := s.Encode(&file, nil); err != nil {
		b.Fatal(err)
	}
	best := func(f func()) time.Duration {
		d := time.Duration(1 << 62)
		for range 10 {
			runtime.GC()
			d = min(d, routes.CPU(f))
		}
		return d
	}
	must := func(_ *radix6.Snapshot[uint32], err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	for range b.N {
		for _, l := range []radix6.Layout{radix6.Compact, radix6.Fast} {
			o := radix6.CompileOptions{Layout: l}
			fmt.Printf("\nlayout %d: from sorted prefixes %v, from shuffled %v, from a tree %v\n", l,
				best(func() { must(radix6.Compile(table, vs, o)) }), best(func() { must(radix6.Compile(mixed, vs, o)) }), best(func() { tree.CompileWith(o) }))
		}
		fmt.Printf("open %d bytes: %v\n", file.Len(), best(func() { must(radix6.Open[uint32](file.Bytes(), nil)) }))
	}
}

// BenchmarkLive prints how long a change of the full table takes until it is
// published, and what readers notice of 10,000 changes a second.
func BenchmarkLive(b *testing.B) {
	_, table, err := routes.Full()
	if err != nil {
		b.Fatal(err)
	}
	as := addresses(table, cold)
	for range b.N {
		var live *radix6.Live[uint32]
		size := heap(func() {
			if live, err = radix6.LiveOf(Tree(table)); err != nil {
				b.Fatal(err)
			}
		})
		fmt.Printf("\n%.1f B/route with the writers' tree\n", size/float64(len(table)))
		r := rand.New(rand.NewPCG(5, 5))
		change := func() {
			p := table[r.IntN(len(table))]
			if r.IntN(2) == 0 {
				live.Remove(p)
			} else if err := live.Insert(p, r.Uint32()>>8); err != nil {
				b.Fatal(err)
			}
		}
		for range 20000 {
			change()
		}
		const n = 50000
		times := make([]time.Duration, n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		routes.OnThread(func() {
			for i := range times {
				start := routes.ThreadTime()
				change()
				times[i] = routes.ThreadTime() - start
			}
		})
		runtime.ReadMemStats(&after)
		slices.Sort(times)
		fmt.Printf("publish: median %v, 90th %v, 99th %v, max %v; %d B and %.1f allocations each\n",
			times[n/2], times[n*9/10], times[n*99/100], times[n-1], (after.TotalAlloc-before.TotalAlloc)/n, float64(after.Mallocs-before.Mallocs)/n)

		// Pairs of a quiet stretch and one with updates.
		var sum uint32
		read := func(d time.Duration) float64 {
			var ns []float64
			routes.OnThread(func() {
				for stop, at := time.Now().Add(d), 0; time.Now().Before(stop); at = (at + 8192) % (cold - 8192) {
					start := routes.ThreadTime()
					for _, a := range as[at : at+8192] {
						v, _ := live.Lookup(a)
						sum += v
					}
					ns = append(ns, float64(routes.ThreadTime()-start)/8192)
				}
			})
			slices.Sort(ns)
			return ns[len(ns)/2]
		}
		ratios := make([]float64, 5)
		for i := range ratios {
			quiet := read(600 * time.Millisecond)
			var stop atomic.Bool
			count := make(chan float64)
			go func() {
				begin, n := time.Now(), 0
				for !stop.Load() {
					for float64(n) < time.Since(begin).Seconds()*10000 {
						change()
						n++
					}
					time.Sleep(time.Millisecond)
				}
				count <- float64(n) / time.Since(begin).Seconds()
			}()
			busy := read(600 * time.Millisecond)
			stop.Store(true)
			ratios[i] = busy / quiet
			fmt.Printf("reader: quiet %.1f ns, with %.0f updates a second %.1f ns: %.2f\n", quiet, <-count, busy, ratios[i])
		}
		slices.Sort(ratios)
		fmt.Printf("median of 5 pairs: %.2f\n", ratios[2])
		Sink += sum
		runtime.KeepAlive([]netip.Addr(as))
	}
}
