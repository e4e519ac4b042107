package lpctrie

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"signalbox.example/bench/routes"
	"signalbox.example/internal/routegen"
	"signalbox.example/lpctrie"
)

// The constants of the public measurement of Linux's route lookup, here for
// IPv4: see bench/radix6 for IPv6, for which they were published.
const (
	warmup  = 100000  // lookups of the first address
	samples = 5000    // lookups that are timed
	tries   = 1000000 // of which these many at most, misses included
)

// A Scenario is one table of the measurement and the range of addresses that
// is scanned.
type Scenario struct {
	Name       string
	Density    float64
	Prefixes   []netip.Prefix
	Start, End uint32
}

// FullViews are the table sizes of scenario a; 0 stands for a default route
// alone.
var FullViews = []int{0, 100, 500, 1000, 2000, 5000, 10000, 20000, 30000, 40000, 100000, 300000, 901899}

// FullView returns scenario a: n of the full table's prefixes, every
// (len/n)-th, scanned from 1.0.0.0 to 223.255.255.255.
func FullView(table []netip.Prefix, n int) Scenario {
	s := Scenario{Name: "a: full view", Prefixes: routegen.Every(table, n), Start: 1 << 24, End: 224<<24 - 1}
	if n == 0 {
		s.Prefixes = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0")}
	}
	return s
}

// Subnets returns scenario b: n /24s from 1.0.0.0 on; the distance to the next
// is ceil(1/density * (1-U)), U uniform in [0, 1).
func Subnets(n int, density float64) Scenario {
	r := rand.New(rand.NewPCG(1, 24))
	s := Scenario{Name: "b: /24", Density: density, Start: 1 << 24}
	for at := uint32(1 << 16); len(s.Prefixes) < n && at < 1<<24; at += max(1, uint32(math.Ceil(1/density*(1-r.Float64())))) {
		s.Prefixes = append(s.Prefixes, netip.PrefixFrom(lpctrie.AddrOf(at<<8), 24))
		s.End = at << 8
	}
	return s
}

// Hosts returns scenario c: n /32s in 10.0.0.0/8, all of which is scanned; the
// last 24 bits come from the harness's generator of full period.
func Hosts(n int) Scenario {
	s := Scenario{Name: "c: /32", Start: 10 << 24, End: 11<<24 - 1}
	for x := uint64(45742); len(s.Prefixes) < n; {
		x = (x*1140671485 + 12820163) & (1<<24 - 1)
		s.Prefixes = append(s.Prefixes, netip.PrefixFrom(lpctrie.AddrOf(10<<24|uint32(x)), 32))
	}
	return s
}

// Scan returns the addresses that the harness times: from start to end in
// steps of a 5,000th, then again from a pseudo-random place within the first
// step, until 5,000 have matched a route or 1,000,000 were tried. Misses are
// left out.
func (s Scenario) Scan(hit func(netip.Addr) bool) (as []netip.Addr) {
	step := (s.End - s.Start) / samples
	lcg := uint32(0)
	at := uint64(s.Start)
	for i := 0; i < tries && len(as) < samples; i++ {
		if a := lpctrie.AddrOf(uint32(at)); hit(a) {
			as = append(as, a)
		}
		if at += uint64(max(step, 1)); at > uint64(s.End) {
			lcg = lcg*1664525 + 1013904223
			at = uint64(s.Start + step&lcg)
		}
	}
	return as
}

// A Result is one line of the report on a scenario.
type Result struct {
	Scenario    string
	Density     float64
	Routes      int
	Structure   string
	MeanDepth   float64 // of the trie, whatever the structure
	MaxDepth    int
	Independent float64 // ns of a lookup in a loop, with and without overlap
	Chained     float64
	// Single lookups with the clock read before and after, its own time
	// taken off, in ns. The histogram has 15 steps of 20 ns, the last for
	// all above.
	Min, Max, Mean, Median, P90, P95, MAD float64
	Histogram                             [15]int
	Lookups                               int
	InsertNs                              float64 // per route; compilation for a snapshot
	BytesPerRoute                         float64
}

// Header and String give a result as CSV.
const Header = "scenario,density,routes,structure,depth mean,depth max,lookup ns,lookup chained ns,single min,single median,single mean,single p90,single p95,single max,single mad,lookups,insert ns per route,bytes per route,histogram of 20 ns"

func (r Result) String() string {
	return fmt.Sprintf("%s,%g,%d,%q,%.2f,%d,%.1f,%.1f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%.0f,%d,%.0f,%.1f,%q",
		r.Scenario, r.Density, r.Routes, r.Structure, r.MeanDepth, r.MaxDepth, r.Independent, r.Chained,
		r.Min, r.Median, r.Mean, r.P90, r.P95, r.Max, r.MAD, r.Lookups, r.InsertNs, r.BytesPerRoute, fmt.Sprint(r.Histogram))
}

// single times each address once, as the harness does.
func (r *Result) single(b Built, as []netip.Addr) {
	if r.Lookups = len(as); r.Lookups == 0 {
		return
	}
	for range warmup {
		b.Lookup(as[0])
	}
	ns, empty := make([]float64, len(as)), make([]float64, len(as))
	routes.OnThread(func() {
		for i, a := range as {
			start := time.Now()
			b.Lookup(a)
			ns[i] = float64(time.Since(start))
		}
		for i := range as {
			start := time.Now()
			empty[i] = float64(time.Since(start))
		}
	})
	slices.Sort(empty)
	for i := range ns {
		ns[i] = max(0, ns[i]-empty[len(empty)/2])
		r.Mean += ns[i] / float64(len(ns))
		r.Histogram[min(int(ns[i]/20), len(r.Histogram)-1)]++
	}
	slices.Sort(ns)
	at := func(q float64) float64 { return ns[min(int(q*float64(len(ns))), len(ns)-1)] }
	r.Min, r.Max, r.Median, r.P90, r.P95 = ns[0], ns[len(ns)-1], at(.5), at(.9), at(.95)
	dev := make([]float64, len(ns))
	for i := range ns {
		dev[i] = math.Abs(ns[i] - r.Median)
	}
	slices.Sort(dev)
	r.MAD = dev[len(dev)/2]
}

// Run measures a scenario with each of the structures, in turns.
func (s Scenario) Run(peers []Peer, rounds int) (out []Result) {
	table := Table(s.Prefixes)
	stats := table.Stats()
	as := s.Scan(table.Contains)
	var cs []routes.Contestant
	for _, p := range peers {
		r := Result{Scenario: s.Name, Density: s.Density, Routes: len(s.Prefixes), Structure: p.Name, MeanDepth: stats.AverageDepth(), MaxDepth: stats.MaxDepth}
		var b Built
		r.BytesPerRoute = heap(func() {
			r.InsertNs = float64(routes.CPU(func() { b = p.Build(s.Prefixes) })) / float64(len(s.Prefixes))
		}) / float64(len(s.Prefixes))
		r.single(b, as)
		cs = append(cs, routes.Contestant{Name: p.Name, Run: func(lo, hi int) { Sink += b.Sum(as[lo:hi]) }},
			routes.Contestant{Name: p.Name, Run: func(lo, hi int) { Sink += b.Chain(as[lo:hi]) }})
		out = append(out, r)
	}
	if len(as) == 0 {
		return out
	}
	for i, ns := range routes.Measure(len(as), rounds, cs) {
		if i%2 == 0 {
			out[i/2].Independent = ns
		} else {
			out[i/2].Chained = ns
		}
	}
	return out
}

// Scenarios returns all of them, those of more than limit routes left out.
func Scenarios(table []netip.Prefix, limit int) (out []Scenario) {
	for _, n := range FullViews {
		if n <= limit {
			out = append(out, FullView(table, n))
		}
	}
	for _, d := range []float64{1, .1, .01} {
		for _, n := range []int{100, 1000, 10000, 100000, 1000000} {
			if s := Subnets(min(n, limit), d); n <= limit && len(s.Prefixes) == n {
				out = append(out, s)
			}
		}
	}
	for _, n := range []int{10000, 100000, 500000, 1000000} {
		if n <= limit {
			out = append(out, Hosts(n))
		}
	}
	return out
}

// ScenarioPeers are the structures of the scenarios.
var ScenarioPeers = []Peer{Ours, SnapshotCompact, SnapshotFast, BartFast}
