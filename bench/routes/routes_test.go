package routes

import (
	"net/netip"
	"slices"
	"testing"
)

func TestFull(t *testing.T) {
	v4, v6, err := Full()
	if err != nil {
		t.Fatal(err)
	}
	if len(v4) != 901899 || len(v6) != 160147 {
		t.Errorf("%d and %d prefixes", len(v4), len(v6))
	}
	if !slices.IsSortedFunc(v4, netip.Prefix.Compare) || !slices.IsSortedFunc(v6, netip.Prefix.Compare) {
		t.Error("not sorted")
	}
}

func TestMeasureGivesEachItsOwnAddresses(t *testing.T) {
	var seen [2][]int
	run := func(i int) func(lo, hi int) {
		return func(lo, hi int) {
			if hi-lo != Slice {
				t.Errorf("slice of %d", hi-lo)
			}
			seen[i] = append(seen[i], lo)
		}
	}
	got := Measure(16*Slice+5, 4, []Contestant{{"a", run(0)}, {"b", run(1)}})
	if len(got) != 2 {
		t.Fatal(got)
	}
	for _, lo := range seen[0] {
		if slices.Contains(seen[1], lo) {
			t.Errorf("both had the addresses at %d", lo)
		}
	}
}
