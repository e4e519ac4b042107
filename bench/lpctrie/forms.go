package lpctrie

import (
	"fmt"
	"net/netip"
	"runtime"

	"signalbox.example/bench/routes"
	"signalbox.example/lpctrie"
)

// Sink takes sums so that nothing is optimised away.
var Sink uint32

// heap returns by how many bytes the heap is larger after f.
func heap(f func()) float64 {
	before := live()
	f()
	return live() - before
}

// live is the size of the heap without garbage. With all tables of a
// comparison in memory a collection takes a second or more.
func live() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// numbers returns the values that go with n prefixes: all different, or taken
// from so many next hops in a random-looking order.
func numbers(n, hops int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
		if hops > 0 {
			out[i] = uint32(i) * 0x9e3779b1 >> 8 % uint32(hops)
		}
	}
	return out
}

// Compile makes a snapshot of prefixes with the values 0, 1, 2 ...
func Compile(ps []netip.Prefix, layout lpctrie.Layout) *lpctrie.Snapshot[uint32] {
	s, err := lpctrie.Compile(ps, numbers(len(ps), 0), lpctrie.CompileOptions{Layout: layout})
	if err != nil {
		panic(err)
	}
	return s
}

func builtSnapshot(s *lpctrie.Snapshot[uint32]) Built {
	return Built{
		Lookup: s.Lookup,
		Sum: func(as []netip.Addr) (n uint32) {
			for _, a := range as {
				v, _ := s.Lookup(a)
				n += v
			}
			return n
		},
		Chain: func(as []netip.Addr) (n uint32) {
			for i := 0; i < len(as); {
				v, _ := s.Lookup(as[i])
				n += v
				i = next(i, v)
			}
			return n
		},
		Keep: s,
	}
}

// SnapshotCompact and SnapshotFast are the compiled forms, SnapshotBatch the
// compact one asked in batches of netip.Addr.
var (
	SnapshotCompact = Peer{Name: "lpctrie.Snapshot", Build: func(ps []netip.Prefix) Built {
		return builtSnapshot(Compile(ps, lpctrie.Compact))
	}}
	SnapshotFast = Peer{Name: "lpctrie.Snapshot, fast", Build: func(ps []netip.Prefix) Built {
		return builtSnapshot(Compile(ps, lpctrie.Fast))
	}}
	SnapshotBatch = Peer{Name: "lpctrie.Snapshot, batch", Build: func(ps []netip.Prefix) Built {
		s := Compile(ps, lpctrie.Compact)
		b := builtSnapshot(s)
		vs, oks := make([]uint32, 4096), make([]bool, 4096)
		b.Sum = func(as []netip.Addr) (n uint32) {
			for len(as) > 0 {
				k := min(len(as), len(vs))
				s.LookupBatch(as[:k], vs, oks)
				for _, v := range vs[:k] {
					n += v
				}
				as = as[k:]
			}
			return n
		}
		return b
	}}
	// LiveReader is a live table that nobody changes.
	LiveReader = Peer{Name: "lpctrie.Live", Build: func(ps []netip.Prefix) Built {
		l := lpctrie.LiveOf(Table(ps))
		return Built{
			Lookup: l.Lookup,
			Sum: func(as []netip.Addr) (n uint32) {
				for _, a := range as {
					v, _ := l.Lookup(a)
					n += v
				}
				return n
			},
			Chain: func(as []netip.Addr) (n uint32) {
				for i := 0; i < len(as); {
					v, _ := l.Lookup(as[i])
					n += v
					i = next(i, v)
				}
				return n
			},
			Delete: func(p netip.Prefix) { l.Remove(p) },
			Keep:   l,
		}
	}}
)

// All is every table: what changes in place, then the compiled forms.
var All = append(append([]Peer{}, Peers...), SnapshotCompact, SnapshotBatch, SnapshotFast, LiveReader)

// A Row is what a table takes and how fast it answers: nanoseconds of CPU time
// per route or lookup.
type Row struct {
	Name                               string
	Insert, Bytes, Delete              float64 // Delete is -1 where there is none
	Hot, HotChain, ColdLookups, Chains float64
}

// Compare measures peers on prefixes in their order. The times of lookups are
// taken in turns, rounds times.
func Compare(ps []netip.Prefix, peers []Peer, rounds int) []Row {
	as := Addresses(ps, Cold, 1)
	rows := make([]Row, len(peers))
	builts := make([]Built, len(peers))
	for i, before := 0, live(); i < len(peers); i++ {
		rows[i].Name = peers[i].Name
		rows[i].Insert = float64(routes.CPU(func() { builts[i] = peers[i].Build(ps) })) / float64(len(ps))
		after := live()
		rows[i].Bytes, before = (after-before)/float64(len(ps)), after
	}
	measure := func(n int, chain bool) []float64 {
		cs := make([]routes.Contestant, len(peers))
		for i, b := range builts {
			run := b.Sum
			if chain {
				run = b.Chain
			}
			cs[i] = routes.Contestant{Name: peers[i].Name, Run: func(lo, hi int) { Sink += run(as[lo:hi]) }}
		}
		return routes.Measure(n, rounds, cs)
	}
	hot, hotChain, cold, chain := measure(Hot, false), measure(Hot, true), measure(Cold, false), measure(Cold, true)
	for i := range rows {
		r := &rows[i]
		r.Hot, r.HotChain, r.ColdLookups, r.Chains, r.Delete = hot[i], hotChain[i], cold[i], chain[i], -1
		if del := builts[i].Delete; del != nil {
			r.Delete = float64(routes.CPU(func() {
				for _, p := range ps {
					del(p)
				}
			})) / float64(len(ps))
		}
		builts[i] = Built{}
	}
	return rows
}

// Markdown returns rows as a table. Ratios are to the row called base.
func Markdown(rows []Row, base string) string {
	b := Row{}
	for _, r := range rows {
		if r.Name == base {
			b = r
		}
	}
	out := "| | insert ns | bytes/route | delete ns | hot | hot, chained | cold | cold, chained |\n|---|---|---|---|---|---|---|---|\n"
	for _, r := range rows {
		del := "-"
		if r.Delete >= 0 {
			del = fmt.Sprintf("%.0f", r.Delete)
		}
		out += fmt.Sprintf("| %s | %.0f | %.1f | %s", r.Name, r.Insert, r.Bytes, del)
		for _, p := range [][2]float64{{r.Hot, b.Hot}, {r.HotChain, b.HotChain}, {r.ColdLookups, b.ColdLookups}, {r.Chains, b.Chains}} {
			out += fmt.Sprintf(" | %.1f (%.2f)", p[0], p[0]/p[1])
		}
		out += " |\n"
	}
	return out
}
