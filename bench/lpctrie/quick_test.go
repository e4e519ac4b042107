package lpctrie

import (
	"fmt"
	"net/netip"
	"os"
	"testing"

	"signalbox.example/bench/routes"
	lpc "signalbox.example/lpctrie"
)

func TestQuick(t *testing.T) {
	if os.Getenv("QUICK") == "" { t.Skip() }
	v4, _, err := routes.Full()
	if err != nil { t.Fatal(err) }
	ps := Shuffled(v4, 1)
	cold := Addresses(ps, Cold, 1)
	hot := cold[:1024]
	ck := make([]uint32, len(cold))
	for i, a := range cold { ck[i], _ = lpc.KeyOf(a) }
	hk := ck[:1024]
	b := BartFast.Build(ps)
	vals := make([]uint32, len(v4))
	for i := range vals { vals[i] = uint32(i) }
	var s, s16, f *lpc.Snapshot[uint32]
	d := routes.CPU(func() { s, _ = lpc.Compile(v4, vals, lpc.CompileOptions{}) })
	fmt.Println("compile sorted", d, float64(s.Bytes())/901899)
	d = routes.CPU(func() { s, _ = lpc.Compile(ps, vals, lpc.CompileOptions{}) })
	fmt.Println("compile any", d, float64(s.Bytes())/901899)
	tab := Table(ps)
	d = routes.CPU(func() { s = tab.Compile() })
	fmt.Println("compile table", d, float64(s.Bytes())/901899, s.Width())
	for i := range vals { vals[i] = uint32(i*7919) % 16 }
	s16, _ = lpc.Compile(v4, vals, lpc.CompileOptions{})
	fmt.Println("16 nh", float64(s16.Bytes())/901899)
	f = tab.CompileWith(lpc.CompileOptions{Layout: lpc.Fast})
	codes := make([]uint32, routes.Slice)
	av, ao := make([]uint32, routes.Slice), make([]bool, routes.Slice)
	sumA := func(s *lpc.Snapshot[uint32], as []netip.Addr) (n uint32) { for _, a := range as { v, _ := s.Lookup(a); n += v }; return }
	chainA := func(s *lpc.Snapshot[uint32], as []netip.Addr) (n uint32) { for i := 0; i < len(as); { v, _ := s.Lookup(as[i]); n += v; i = next(i, v) }; return }
	sumK := func(s *lpc.Snapshot[uint32], as []uint32) (n uint32) { for _, a := range as { v, _ := s.LookupKey(a); n += v }; return }
	C := func(n string, f func(lo, hi int)) routes.Contestant { return routes.Contestant{n, f} }
	show := func(what string, n int, cs ...routes.Contestant) {
		m := routes.Measure(n, 64, cs)
		fmt.Print(what, ": ")
		for j, c := range cs { fmt.Printf("%s %.1f (%.3f)  ", c.Name, m[j], m[j]/m[0]) }
		fmt.Println()
	}
	show("hot", 1024, C("bart", func(lo, hi int) { b.Sum(hot) }), C("snap", func(lo, hi int) { sumA(s, hot) }), C("key", func(lo, hi int) { sumK(s, hk) }), C("fast", func(lo, hi int) { sumA(f, hot) }), C("fastkey", func(lo, hi int) { sumK(f, hk) }), C("batch", func(lo, hi int) { s.LookupCodes(hk, codes) }), C("batchA", func(lo, hi int) { s.LookupBatch(hot, av, ao) }),C("nh16", func(lo, hi int) { sumA(s16, hot) }))
	show("cold dep", Cold, C("bart", func(lo, hi int) { b.Chain(cold[lo:hi]) }), C("snap", func(lo, hi int) { chainA(s, cold[lo:hi]) }))
	show("cold dep", Cold, C("bart", func(lo, hi int) { b.Chain(cold[lo:hi]) }), C("fast", func(lo, hi int) { chainA(f, cold[lo:hi]) }))
	show("cold dep", Cold, C("bart", func(lo, hi int) { b.Chain(cold[lo:hi]) }), C("nh16", func(lo, hi int) { chainA(s16, cold[lo:hi]) }))
	show("cold", Cold, C("bart", func(lo, hi int) { b.Sum(cold[lo:hi]) }), C("snap", func(lo, hi int) { sumA(s, cold[lo:hi]) }))
	show("cold", Cold, C("bart", func(lo, hi int) { b.Sum(cold[lo:hi]) }), C("batch", func(lo, hi int) { s.LookupCodes(ck[lo:hi], codes) }))
	show("cold", Cold, C("bart", func(lo, hi int) { b.Sum(cold[lo:hi]) }), C("batchA", func(lo, hi int) { s.LookupBatch(cold[lo:hi], av, ao) }))
	show("cold", Cold, C("bart", func(lo, hi int) { b.Sum(cold[lo:hi]) }), C("batchfast", func(lo, hi int) { f.LookupCodes(ck[lo:hi], codes) }))
}
