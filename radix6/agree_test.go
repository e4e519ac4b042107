package radix6

import (
	"math/rand/v2"
	"testing"

	"signalbox.example/internal/need"
)

// Tree, snapshots of both layouts, batches and live table agree on the full
// table: on 3 million addresses inside prefixes, at their edges, anywhere.
func TestIntegrationFullTableAgreement(t *testing.T) {
	need.Asked(t, "long")
	ps := fullTable(t)
	r := rand.New(rand.NewPCG(9, 9))
	tr := New[uint32](SourceOff)
	for i, p := range ps {
		if err := tr.Insert(p, uint32(i)); err != nil {
			t.Fatal(err)
		}
	}
	var snapshots []*Snapshot[uint32]
	for _, o := range allOptions {
		snapshots = append(snapshots, tr.CompileWith(o))
	}
	again := New[uint32](SourceOff)
	for i, p := range ps {
		again.Insert(p, uint32(i))
	}
	live, err := LiveOf(again)
	if err != nil {
		t.Fatal(err)
	}
	as := borders(ps)
	for len(as) < 3000000 {
		as = append(as, inside(r, ps[r.IntN(len(ps))]).addr())
		if len(as)%3 == 0 {
			as = append(as, key{r.Uint64(), r.Uint64()}.addr(), key{0x2000<<48 | r.Uint64()>>3, r.Uint64()}.addr())
		}
	}
	r.Shuffle(len(as), func(i, j int) { as[i], as[j] = as[j], as[i] })
	hits := 0
	for len(as) > 0 {
		n := min(1<<16, len(as))
		for i, s := range snapshots {
			sameAsTree(t, s, tr, as[:n/(1+3*(i&1))], nil)
		}
		sameAsView(t, live.View(), tr, as[:n])
		for _, a := range as[:n] {
			if tr.Contains(a) {
				hits++
			}
		}
		as = as[n:]
	}
	if hits < 1000000 {
		t.Errorf("only %d addresses had routes", hits)
	}
}
