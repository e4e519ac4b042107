package lpctrie_test

import (
	"fmt"
	"net/netip"

	"signalbox.example/lpctrie"
)

// A reader that needs several answers of one moment takes a view; what writers
// do meanwhile is in the next one.
func ExampleView() {
	l := lpctrie.NewLive[string](lpctrie.Config{})
	insert := func(prefix, via string) {
		if err := l.Insert(netip.MustParsePrefix(prefix), via); err != nil {
			fmt.Println(err)
		}
	}
	insert("0.0.0.0/0", "provider")
	v := l.View()
	insert("192.0.2.0/24", "office")

	vias, found := make([]string, 2), make([]bool, 2)
	as := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")}
	n := v.LookupBatch(as, vias, found)
	fmt.Println(n, vias, v.Len())
	n = l.View().LookupBatch(as, vias, found)
	fmt.Println(n, vias, l.Len())
	// Output:
	// 2 [provider provider] 1
	// 2 [office provider] 2
}
