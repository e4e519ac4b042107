package lpctrie

import (
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"signalbox.example/internal/need"
)

// What takes longer than an ordinary test may: SIGNALBOX_RUN=long.

// sortedOracle looks prefixes up by binary search, longest first.
type sortedOracle []uint64

func (o sortedOracle) lookup(key uint32) (p netip.Prefix, ok bool) {
	for slen := uint8(0); slen <= 32; slen++ {
		want := codedRoute{key: key &^ suffixMask(slen), slen: slen}.order()
		if _, ok := slices.BinarySearch(o, want); ok {
			return prefixOf(key&^suffixMask(slen), slen), true
		}
	}
	return p, false
}

// Every form of the full table gives the right answer for three million
// addresses: uniform over prefixes, uniform over all, and at the edges.
func TestIntegrationFullTableThreeMillion(t *testing.T) {
	need.Asked(t, "long")
	table := fullTable(t)
	tab, o := New[netip.Prefix](Config{}), make(sortedOracle, len(table))
	for i, p := range table {
		if err := tab.Insert(p, p); err != nil {
			t.Fatal(err)
		}
		key, slen, _ := keyOfPrefix(p)
		o[i] = codedRoute{key: key, slen: slen}.order()
	}
	values := make([]uint32, len(table))
	for i := range values {
		values[i] = uint32(i)
	}
	compact, err := Compile(table, values, CompileOptions{Prefixes: true})
	if err != nil {
		t.Fatal(err)
	}
	fast, err := Compile(table, values, CompileOptions{Layout: Fast})
	if err != nil {
		t.Fatal(err)
	}
	again := reopen(t, compact)
	live := LiveOf(tab)

	r := rand.New(rand.NewPCG(33, 33))
	const n = 1000000
	for set, next := range []func(i int) uint32{
		func(int) uint32 {
			key, slen, _ := keyOfPrefix(table[r.IntN(len(table))])
			return key | r.Uint32()&suffixMask(slen)
		},
		func(int) uint32 { return r.Uint32() },
		func(i int) uint32 { return edgesOf(table[r.IntN(len(table))], r)[i%4] },
	} {
		keys, codes, fastCodes := make([]uint32, n), make([]uint32, n), make([]uint32, n)
		for i := range keys {
			keys[i] = next(i)
		}
		compact.LookupCodes(keys, codes)
		fast.LookupCodes(keys, fastCodes)
		hits := 0
		for i, k := range keys {
			want, wok := o.lookup(k)
			v, p, ok := compact.LookupPrefix(AddrOf(k))
			if ok != wok || p != want || ok && table[v] != want {
				t.Fatalf("set %d, %v: compact %d %v %v, want %v %v", set, AddrOf(k), v, p, ok, want, wok)
			}
			if b, bok := compact.Value(codes[i]); b != v || bok != ok {
				t.Fatalf("set %d, %v: batch %d %v, want %d %v", set, AddrOf(k), b, bok, v, ok)
			}
			if b, bok := fast.Value(fastCodes[i]); b != v || bok != ok {
				t.Fatalf("set %d, %v: fast batch %d %v, want %d %v", set, AddrOf(k), b, bok, v, ok)
			}
			if b, bok := fast.LookupKey(k); b != v || bok != ok {
				t.Fatalf("set %d, %v: fast %d %v, want %d %v", set, AddrOf(k), b, bok, v, ok)
			}
			if b, bok := again.LookupKey(k); b != v || bok != ok {
				t.Fatalf("set %d, %v: reopened %d %v, want %d %v", set, AddrOf(k), b, bok, v, ok)
			}
			if lv, lp, lok := live.LookupPrefix(AddrOf(k)); lok != ok || lp != want || lv != want {
				t.Fatalf("set %d, %v: live %v %v %v, want %v", set, AddrOf(k), lv, lp, lok, want)
			}
			if i%4 == 0 {
				tv, tp, tok := tab.Lookup(AddrOf(k)) // readers of the live's own table: nobody changes it
				if tok != ok || tp != want || tv != want {
					t.Fatalf("set %d, %v: table %v %v %v, want %v", set, AddrOf(k), tv, tp, tok, want)
				}
			}
			if ok {
				hits++
			}
		}
		t.Logf("set %d: %d addresses, %d hits", set, n, hits)
	}
}

// A hundred thousand random updates, each compared at the addresses concerned.
func TestIntegrationLiveHundredThousandUpdates(t *testing.T) {
	need.Asked(t, "long")
	liveAgainstTable(t, 100000)
}

// A day's updates, a million, on the full table: answers are right and memory
// is what a fresh build takes, within a tenth.
func TestIntegrationLiveMillionUpdates(t *testing.T) {
	need.Asked(t, "long")
	table := fullTable(t)
	fill := func() *Table[uint32] {
		tab := New[uint32](Config{})
		for i, p := range table {
			if err := tab.Insert(p, uint32(i)); err != nil {
				t.Fatal(err)
			}
		}
		return tab
	}
	start := heap()
	l := LiveOf(fill())
	fresh := heap() - start
	r := rand.New(rand.NewPCG(44, 44))
	for range 500000 {
		i := r.IntN(len(table))
		if v, ok := l.Remove(table[i]); !ok || v != uint32(i) {
			t.Fatal(table[i], v, ok)
		}
		if i&1 == 0 { // away for a while
			j := r.IntN(len(table))
			l.Insert(table[j], uint32(j))
		}
		if err := l.Insert(table[i], uint32(i)); err != nil {
			t.Fatal(err)
		}
	}
	churned := heap() - start
	t.Logf("%d bytes fresh, %d after a million updates", fresh, churned)
	if float64(churned) > 1.1*float64(fresh) {
		t.Errorf("%d bytes after a million updates, %d fresh", churned, fresh)
	}
	want := LiveOf(fill()).View()
	for range 300000 {
		k := r.Uint32()
		v, ok := l.LookupKey(k)
		if w, wok := want.LookupKey(k); v != w || ok != wok {
			t.Fatalf("%v: %d %v, want %d %v", AddrOf(k), v, ok, w, wok)
		}
	}
	l.Read(func(tab *Table[uint32]) { verify(t, tab) })
	runtime.KeepAlive(table)
}
