package radix6

import (
	"fmt"
	"math/bits"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"signalbox.example/bench/routes"
	"signalbox.example/internal/routegen"
	"signalbox.example/radix6"
)

// The constants of the public measurement of Linux's IPv6 lookup.
const (
	warmup  = 100000  // lookups of the first address
	samples = 5000    // lookups that are timed
	tries   = 1000000 // of which these many at most, misses included
)

// A Scenario is one table of the measurement and the range of addresses that
// is scanned.
type Scenario struct {
	Name       string // "a: full view", "b: /48", "c: /128"
	Density    float64
	Routes     int
	Prefixes   []netip.Prefix
	Start, End netip.Addr
}

// Densities of scenario b.
var Densities = []float64{1, .5, .1, .05, .01, .001}

// FullViews are the table sizes of scenario a; 0 stands for a single route,
// 2000::/3, and the last is the whole table.
var FullViews = []int{0, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 40000, 160147}

// FullView returns scenario a with n prefixes: every (len/n)-th of the table.
func FullView(table []netip.Prefix, n int) Scenario {
	s := Scenario{Name: "a: full view", Routes: n, Start: netip.MustParseAddr("2400::"), End: netip.MustParseAddr("2a07::")}
	if n == 0 {
		s.Routes, s.Prefixes = 1, []netip.Prefix{netip.MustParsePrefix("2000::/3")}
	} else {
		s.Prefixes = routegen.Every(table, n)
		s.Routes = len(s.Prefixes)
	}
	return s
}

// Subnets returns scenario b: n /48s with gaps.
func Subnets(n int, density float64) Scenario {
	ps := routegen.Subnets48(n, density, 1)
	last := ps[0]
	for _, p := range ps {
		if p.Addr().Compare(last.Addr()) > 0 {
			last = p
		}
	}
	return Scenario{"b: /48", density, n, ps, ps[0].Addr(), last.Addr()}
}

// Hosts returns scenario c: n /128s, scanned over the 2^24 addresses among
// which they are drawn, as the harness does (the text that goes with it speaks
// of a /108).
func Hosts(n int) Scenario {
	return Scenario{"c: /128", 0, n, routegen.Hosts128(n),
		netip.MustParseAddr("2001:db8:b:0:5254:ff:fe00::"), netip.MustParseAddr("2001:db8:b:0:5254:ff:ff00::")}
}

// lcg is the harness's generator of pseudo-random words.
type lcg uint32

func (x *lcg) next() uint64 {
	*x = *x*1664525 + 1013904223
	return uint64(*x)
}

// Scan returns the addresses that the harness times: from start to end in
// steps of a 5,000th, then again from a pseudo-random place within the first
// step, until 5,000 have matched a route or 1,000,000 were tried. Misses are
// left out.
func (s Scenario) Scan(hit func(netip.Addr) bool) (as []netip.Addr) {
	startHi, startLo, _ := radix6.KeyOf(s.Start)
	endHi, endLo, _ := radix6.KeyOf(s.End)
	lo, borrow := bits.Sub64(endLo, startLo, 0)
	hi, _ := bits.Sub64(endHi, startHi, borrow)
	stepHi, rem := hi/samples, hi%samples
	stepLo, _ := bits.Div64(rem, lo, samples)
	var seed lcg
	hi, lo = startHi, startLo
	for i := 0; i < tries && len(as) < samples; i++ {
		if a := radix6.AddrOf(hi, lo); hit(a) {
			as = append(as, a)
		}
		var carry uint64
		lo, carry = bits.Add64(lo, stepLo, 0)
		hi, _ = bits.Add64(hi, stepHi, carry)
		if hi > endHi || hi == endHi && lo > endLo {
			r := [4]uint64{seed.next(), seed.next(), seed.next(), seed.next()}
			lo, carry = bits.Add64(startLo, stepLo&(r[2]<<32|r[3]), 0)
			hi, _ = bits.Add64(startHi, stepHi&(r[0]<<32|r[1]), carry)
		}
	}
	return as
}

// A Timing is what the harness reports of single lookups, in nanoseconds, the
// cost of reading the clock taken off.
type Timing struct {
	Lookups                               int
	Min, Max, Mean, Median, P90, P95, MAD float64
	// Histogram counts lookups in 15 steps of 20 ns (the harness: 50 cycles);
	// the last takes all above.
	Histogram [15]int
}

// Time looks each address up once, as the harness does: after 100,000 lookups
// of the first, with the clock read before and after each.
func Time(b Built, as []netip.Addr) (t Timing) {
	if len(as) == 0 {
		return t
	}
	for range warmup {
		b.Lookup(as[0])
	}
	ns := make([]float64, len(as))
	empty := make([]float64, len(as))
	routes.OnThread(func() {
		for i, a := range as {
			start := time.Now()
			b.Lookup(a)
			ns[i] = float64(time.Since(start).Nanoseconds())
		}
		for i := range as {
			start := time.Now()
			empty[i] = float64(time.Since(start).Nanoseconds())
		}
	})
	slices.Sort(empty)
	clock := empty[len(empty)/2]
	for i := range ns {
		ns[i] = max(0, ns[i]-clock)
		t.Mean += ns[i] / float64(len(ns))
		t.Histogram[min(int(ns[i]/20), len(t.Histogram)-1)]++
	}
	slices.Sort(ns)
	at := func(q float64) float64 { return ns[min(int(q*float64(len(ns))), len(ns)-1)] }
	t.Lookups, t.Min, t.Max, t.Median, t.P90, t.P95 = len(ns), ns[0], ns[len(ns)-1], at(.5), at(.9), at(.95)
	dev := make([]float64, len(ns))
	for i := range ns {
		dev[i] = max(ns[i]-t.Median, t.Median-ns[i])
	}
	slices.Sort(dev)
	t.MAD = dev[len(dev)/2]
	return t
}

// A Result is one line of the report on a scenario.
type Result struct {
	Scenario  string
	Density   float64
	Routes    int
	Structure string
	MaxDepth  int // of the radix tree, whatever the structure
	MeanDepth float64
	// Independent and Chained are the times of one lookup, in ns, of the
	// scan repeated as a loop: with and without overlap.
	Independent, Chained float64
	Single               Timing
	InsertNs             float64 // per route; for a snapshot the compilation
	BytesPerRoute        float64
}

// Header and String give a result as CSV.
const Header = "scenario,density,routes,structure,depth mean,depth max,lookup ns,lookup chained ns,single min,single median,single mean,single p90,single p95,single max,single mad,lookups,insert ns per route,bytes per route"

func (r Result) String() string {
	t := r.Single
	return fmt.Sprintf("%s,%g,%d,%q,%.2f,%d,%.1f,%.1f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%d,%.0f,%.1f",
		r.Scenario, r.Density, r.Routes, r.Structure, r.MeanDepth, r.MaxDepth, r.Independent, r.Chained,
		t.Min, t.Median, t.Mean, t.P90, t.P95, t.Max, t.MAD, t.Lookups, r.InsertNs, r.BytesPerRoute)
}

// Run measures a scenario with each of the structures, in turns.
func (s Scenario) Run(peers []Peer, rounds int) (out []Result) {
	tree := Tree(s.Prefixes)
	stats := tree.Stats()
	as := s.Scan(tree.Contains)
	var cs []routes.Contestant
	for _, p := range peers {
		r := Result{Scenario: s.Name, Density: s.Density, Routes: s.Routes, Structure: p.Name, MaxDepth: stats.MaxDepth, MeanDepth: stats.AverageDepth()}
		var b Built
		r.BytesPerRoute = heap(func() {
			r.InsertNs = float64(routes.CPU(func() { b = p.Build(s.Prefixes) })) / float64(len(s.Prefixes))
		}) / float64(len(s.Prefixes))
		r.Single = Time(b, as)
		cs = append(cs, routes.Contestant{Name: p.Name, Run: func(lo, hi int) { Sink += b.Sum(as[lo:hi]) }},
			routes.Contestant{Name: p.Name, Run: func(lo, hi int) { Sink += b.Chain(as[lo:hi]) }})
		out = append(out, r)
	}
	if len(as) > 0 {
		ns := routes.Measure(len(as), rounds, cs)
		for i := range out {
			out[i].Independent, out[i].Chained = ns[2*i], ns[2*i+1]
		}
	}
	return out
}

// heap returns how many bytes the heap is larger after f.
func heap(f func()) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}

// Sink takes results that must not be optimised away.
var Sink uint32
