package lpctrie

import (
	"testing"

	"signalbox.example/internal/routegen"
)

func TestTableLookupsDoNotAllocate(t *testing.T) {
	tab := New[uint32](Config{})
	table := routegen.IPv4(2000, 1)
	for i, p := range table {
		if err := tab.Insert(p, uint32(i)); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	for name, f := range map[string]func(){
		"Lookup":     func() { tab.Lookup(table[i].Addr()) },
		"LookupAddr": func() { tab.LookupAddr(table[i].Addr()) },
		"LookupKey":  func() { tab.LookupKey(uint32(i) << 16) },
		"LookupFlow": func() { tab.LookupFlow(Flow{Dst: table[i].Addr(), TOS: 8}, nil) },
		"Contains":   func() { tab.Contains(table[i].Addr()) },
		"Get":        func() { tab.Get(table[i]) },
	} {
		if n := testing.AllocsPerRun(100, func() { i = (i + 17) % len(table); f() }); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
