package routegen

import (
	"net/netip"
	"slices"
	"testing"
)

func check(t *testing.T, got []netip.Prefix, want int) {
	t.Helper()
	if len(got) != want {
		t.Fatalf("%d prefixes, want %d", len(got), want)
	}
	seen := map[netip.Prefix]bool{}
	for _, p := range got {
		if p != p.Masked() || !p.IsValid() || seen[p] {
			t.Fatalf("%v is repeated, invalid or has host bits", p)
		}
		seen[p] = true
	}
}

// nested counts the prefixes that lie inside another one.
func nested(ps []netip.Prefix) int {
	set := map[netip.Prefix]bool{}
	for _, p := range ps {
		set[p] = true
	}
	n := 0
	for _, p := range ps {
		for b := p.Bits() - 1; b >= 0; b-- {
			if q, _ := p.Addr().Prefix(b); set[q] {
				n++
				break
			}
		}
	}
	return n
}

func TestTables(t *testing.T) {
	for _, n := range []int{0, 1, 20, 20000} {
		check(t, IPv4(n, 1), n)
		check(t, IPv6(n, 1), n)
	}
	a, b := IPv4(20000, 7), IPv4(20000, 7)
	if !slices.Equal(a, b) {
		t.Error("the same seed gave two tables")
	}
	if slices.Equal(a, IPv4(20000, 8)) {
		t.Error("two seeds gave the same table")
	}
	if share := nested(a) * 100 / len(a); share < 40 || share > 80 {
		t.Errorf("%d %% of the IPv4 prefixes are nested, want about half", share)
	}
	if share := nested(IPv6(20000, 7)) * 100 / 20000; share < 30 || share > 90 {
		t.Errorf("%d %% of the IPv6 prefixes are nested", share)
	}
}

func TestArtificial(t *testing.T) {
	check(t, Subnets48(5000, 1, 1), 5000)
	check(t, Subnets48(5000, 0.001, 1), 5000)
	check(t, Hosts128(5000), 5000)
	dense := Subnets48(300, 1, 1)
	if got, want := dense[299].String(), "2001:db8:135::/48"; got != want {
		t.Errorf("300th of the dense /48s is %v, want %v", got, want)
	}
	first, last := Subnets48(5000, 0.1, 1)[0], Subnets48(5000, 0.1, 1)[4999]
	if first.String() != "2001:db8:a::/48" || last.Addr().String() < "2001:db8:6000::" {
		t.Errorf("from %v to %v: the mean distance should be 5.5", first, last)
	}
	table := Hosts128(1000)
	check(t, Every(table, 7), 7)
	check(t, Every(table, 5000), 1000)
	check(t, Every(table, 0), 0)
}
