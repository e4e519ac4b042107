package lpctrie

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
)

// dumpWithoutWords returns the lines of fib_trie without name, scope and type,
// which the recorded dumps leave out.
func dumpWithoutWords[V any](t *Table[V]) []string {
	var out []string
	for n := range t.Nodes("") {
		n.Type, n.Scope = 0, 0
		out = append(out, n.Text())
	}
	return out
}

func compareLines(t *testing.T, got, want []string) {
	t.Helper()
	diff := 0
	for i := range max(len(got), len(want)) {
		var g, w string
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			if diff++; diff <= 5 {
				t.Errorf("line %d: got %q, the kernel has %q", i+1, g, w)
			}
		}
	}
	if diff > 0 {
		t.Errorf("%d lines differ of %d", diff, len(want))
	}
}

// stats of a table in the words of the recorded file.
func kernelStats(t *testing.T, section string) map[string]string {
	out := map[string]string{}
	in := ""
	for _, l := range vectors.Lines(t, "tries/triestat-full-table.txt") {
		if l[0] == '[' {
			in = strings.Trim(l, "[]")
			continue
		}
		if in == section {
			k, v, _ := strings.Cut(l, " ")
			out[k] = v
		}
	}
	return out
}

func compareStats(t *testing.T, s Stats, section string) {
	t.Helper()
	want := kernelStats(t, section)
	text := s.Triestat()
	for key, label := range map[string]string{"avg_depth": "Aver depth:     ", "max_depth": "Max depth:      ", "leaves": "Leaves:         ",
		"prefixes": "Prefixes:       ", "tnodes": "Internal nodes: ", "pointers": "Pointers: ", "null_pointers": "Null ptrs: ", "total_kB": "Total size: "} {
		if want[key] == "" {
			t.Fatalf("no %s in section %s", key, section)
		}
		line := label + want[key]
		if key == "total_kB" {
			line += "  kB"
		}
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s: want %q in\n%s", section, line, text)
		}
	}
	if bits := "\t  " + strings.ReplaceAll(strings.ReplaceAll(want["tnode_bits"], ":", ": "), " ", "  "); !strings.Contains(text, strings.ReplaceAll(bits, ":  ", ": ")+"\n") {
		t.Errorf("%s: want bits %q in\n%s", section, bits, text)
	}
}

func TestKernelDumpOfTenThousand(t *testing.T) {
	order := vectors.Lines(t, "tries/fib_trie-10k-order.txt.gz")
	tab := New[int](Config{})
	for i, l := range order {
		if err := tab.Insert(netip.MustParsePrefix(l), i); err != nil {
			t.Fatal(err)
		}
	}
	compareLines(t, dumpWithoutWords(tab), vectors.Lines(t, "tries/fib_trie-10k-after-add.txt.gz"))
	compareStats(t, tab.Stats(), "10k-after-add")
	for _, l := range vectors.Lines(t, "tries/fib_trie-10k-deletes.txt.gz") {
		if _, ok := tab.Remove(netip.MustParsePrefix(l)); !ok {
			t.Fatalf("%s is not there", l)
		}
	}
	compareLines(t, dumpWithoutWords(tab), vectors.Lines(t, "tries/fib_trie-10k-after-del.txt.gz"))
	compareStats(t, tab.Stats(), "10k-after-del")
}

// fullTable returns the IPv4 part of the recorded Internet table, sorted.
func fullTable(t testing.TB) []netip.Prefix {
	if testing.Short() {
		t.Skip("loads the full table")
	}
	var out []netip.Prefix
	for _, l := range vectors.Lines(t, "tries/bgp-2025-10.prefixes.txt.gz") {
		if p := netip.MustParsePrefix(l); p.Addr().Is4() {
			out = append(out, p)
		}
	}
	return out
}

func TestKernelFiguresOfFullTable(t *testing.T) {
	table := fullTable(t)
	tab := New[uint32](Config{})
	for i, p := range table {
		if err := tab.Insert(p, uint32(i)); err != nil {
			t.Fatal(err)
		}
	}
	s := tab.Stats()
	compareStats(t, s, "sorted")
	if perRoute := float64(s.Bytes) / float64(len(table)); perRoute > 45 {
		t.Errorf("%.1f bytes per route, want at most 45", perRoute)
	} else {
		t.Logf("%.1f bytes per route reserved, %.1f in use", perRoute, float64(s.Live)/float64(len(table)))
	}
	i := 0
	for r, v := range tab.All() {
		if r.Prefix != table[v] || int(v) != i {
			t.Fatalf("walk: %v with value %d at place %d", r.Prefix, v, i)
		}
		i++
	}
	if !slices.IsSortedFunc(table, netip.Prefix.Compare) || i != len(table) {
		t.Errorf("walk saw %d of %d routes", i, len(table))
	}
}
