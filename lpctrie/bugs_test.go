package lpctrie

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// Bugs that users of other routing tables reported, with the right answer.
// The ones about IPv6 alone are tested in radix6.

func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }
func adr(s string) netip.Addr   { return netip.MustParseAddr(s) }

func tableOf(t *testing.T, prefixes ...string) *Table[string] {
	t.Helper()
	tab := New[string](Config{})
	for _, s := range prefixes {
		if err := tab.Insert(pfx(s), s); err != nil {
			t.Fatal(err)
		}
	}
	return tab
}

func wantLookup(t *testing.T, tab *Table[string], addr, want string) {
	t.Helper()
	v, p, ok := tab.Lookup(adr(addr))
	if ok != (want != "") || v != want || ok && p.String() != want {
		t.Errorf("lookup %s: %q %v %v, want %q", addr, v, p, ok, want)
	}
	if s, ok := tab.Compile().Lookup(adr(addr)); s != want || ok != (want != "") {
		t.Errorf("snapshot lookup %s: %q %v, want %q", addr, s, ok, want)
	}
}

// critbitgo#16: families never mix.
func TestBug01MixedFamilies(t *testing.T) {
	tab := tableOf(t, "127.0.0.0/8", "0.0.0.0/0")
	for _, s := range []string{"::1/128", "::/0", "::ffff:10.0.0.0/104"} {
		if err := tab.Insert(pfx(s), s); !errors.Is(err, ErrPrefix) {
			t.Errorf("insert %s: %v", s, err)
		}
	}
	wantLookup(t, tab, "fe80::1", "")
	wantLookup(t, tab, "9.9.9.9", "0.0.0.0/0")
}

// vpp#2911: a covering prefix that comes later fills the holes below.
func TestBug02CoverAddedLater(t *testing.T) {
	wantLookup(t, tableOf(t, "10.1.2.0/24", "10.0.0.0/8"), "10.1.1.1", "10.0.0.0/8")
}

// ofp#116: deleting a more specific route uncovers the other.
func TestBug03DeleteRestoresCover(t *testing.T) {
	tab := tableOf(t, "10.10.0.0/16", "10.10.128.0/24")
	if v, ok := tab.Remove(pfx("10.10.128.0/24")); !ok || v != "10.10.128.0/24" {
		t.Errorf("remove: %q %v", v, ok)
	}
	wantLookup(t, tab, "10.10.128.1", "10.10.0.0/16")
	if v, ok := tab.Get(pfx("10.10.128.0/24")); ok {
		t.Errorf("get of the deleted: %q", v)
	}
}

// gobgp#1301: length 0 counts among the supernets.
func TestBug04SupernetsIncludeDefault(t *testing.T) {
	n := 0
	for r := range tableOf(t, "0.0.0.0/0").Supernets(pfx("1.2.3.4/32")) {
		if n++; r.Prefix != pfx("0.0.0.0/0") {
			t.Errorf("supernet %v", r.Prefix)
		}
	}
	if n != 1 {
		t.Errorf("%d supernets", n)
	}
}

// prefix-trie#8: the shortest match is the first of the supernets.
func TestBug05ShortestMatch(t *testing.T) {
	var got []netip.Prefix
	for r := range tableOf(t, "192.168.0.0/24", "0.0.0.0/0").Supernets(pfx("192.168.0.1/32")) {
		got = append(got, r.Prefix)
	}
	if want := []netip.Prefix{pfx("0.0.0.0/0"), pfx("192.168.0.0/24")}; !slices.Equal(got, want) {
		t.Errorf("supernets %v, want %v", got, want)
	}
}

// py-radix#9
func TestBug06DefaultBehindUnrelated(t *testing.T) {
	wantLookup(t, tableOf(t, "192.168.30.0/24", "1.1.1.0/24", "0.0.0.0/0"), "10.10.10.10", "0.0.0.0/0")
}

// poptrie#33, for IPv4: a host route matches itself alone, and shifts by the
// whole width do not wrap.
func TestBug07HostRoute(t *testing.T) {
	for _, h := range []string{"0.0.0.0", "255.255.255.255", "10.18.52.0", "128.0.0.0"} {
		tab := tableOf(t, h+"/32")
		wantLookup(t, tab, h, h+"/32")
		k, _ := KeyOf(adr(h))
		for _, other := range []uint32{k ^ 1, k ^ 1<<31, k ^ 256, k + 1, k - 1} {
			wantLookup(t, tab, AddrOf(other).String(), "")
		}
	}
}

// grout#620: deleting the parent first neither leaks nor underflows.
func TestBug08ParentDeletedFirst(t *testing.T) {
	tab := New[int](Config{})
	ps := []netip.Prefix{pfx("10.0.0.0/8"), pfx("10.1.0.0/16"), pfx("10.1.1.0/24"), pfx("10.1.1.1/32")}
	tab.Insert(pfx("192.0.2.0/24"), -1) // keeps the table from being empty
	tab.Insert(pfx("198.51.100.0/24"), -1)
	before := tab.Stats()
	for i := range 10000 {
		for j, p := range ps {
			if err := tab.Add(Route{Prefix: p}, j, ModeAdd); err != nil {
				t.Fatal(i, err)
			}
		}
		for _, p := range ps {
			if _, ok := tab.Remove(p); !ok {
				t.Fatal(i, p)
			}
		}
	}
	verify(t, tab)
	after := tab.Stats()
	if after.Live != before.Live || after.Bytes > 4096 {
		t.Errorf("memory before %+v, after %+v", before, after)
	}
	for j, p := range ps {
		if err := tab.Add(Route{Prefix: p}, j, ModeAdd); err != nil {
			t.Fatal(err)
		}
	}
}

// patricia#13, bun#33296: an IPv4-mapped IPv6 address is IPv6 unless unmapped.
func TestBug10MappedAddress(t *testing.T) {
	tab := tableOf(t, "10.0.0.0/8")
	wantLookup(t, tab, "::ffff:10.1.2.3", "")
	wantLookup(t, tab, adr("::ffff:10.1.2.3").Unmap().String(), "10.0.0.0/8")
	if tab.Contains(adr("::ffff:10.1.2.3")) || !tab.Contains(adr("10.1.2.3")) {
		t.Error("Contains disagrees")
	}
}

// tailscale#8611: a table is a set, except for aliases told apart.
func TestBug11InsertTwiceDeleteOnce(t *testing.T) {
	tab := tableOf(t, "10.0.0.0/8", "10.0.0.0/8")
	tab.Remove(pfx("10.0.0.0/8"))
	if tab.Len() != 0 {
		t.Error("still there")
	}
	one, two := Route{Prefix: pfx("10.0.0.0/8"), Priority: 1}, Route{Prefix: pfx("10.0.0.0/8"), Priority: 2}
	if err := tab.Add(one, "one", ModeAppend); err != nil {
		t.Fatal(err)
	}
	if err := tab.Add(two, "two", ModeAppend); err != nil {
		t.Fatal(err)
	}
	if v, ok := tab.Delete(one); !ok || v != "one" {
		t.Error(v, ok)
	}
	if v, ok := tab.Get(pfx("10.0.0.0/8")); !ok || v != "two" {
		t.Errorf("the second alias is gone: %q %v", v, ok)
	}
}

// ipmatcher#18: siblings of equal length.
func TestBug12Siblings(t *testing.T) {
	tab := tableOf(t, "10.0.7.0/24", "10.0.1.0/24")
	wantLookup(t, tab, "10.0.1.3", "10.0.1.0/24")
	wantLookup(t, tab, "10.0.7.3", "10.0.7.0/24")
	wantLookup(t, tab, "10.0.3.3", "")
}

// cilium#4611: two owners of one prefix.
func TestBug13TwoOwners(t *testing.T) {
	tab := New[string](Config{})
	r := Route{Prefix: pfx("8.8.8.8/32")}
	for _, owner := range []string{"a", "b"} {
		if err := tab.Add(r, owner, ModeAppend); err != nil {
			t.Fatal(err)
		}
	}
	if err := tab.Add(r, "b", ModeAppend); !errors.Is(err, ErrExist) {
		t.Errorf("the same owner again: %v", err)
	}
	if _, ok := tab.DeleteFunc(r, func(_ Route, v string) bool { return v == "a" }); !ok {
		t.Fatal("a is not there")
	}
	if v, _, ok := tab.Lookup(adr("8.8.8.8")); !ok || v != "b" {
		t.Errorf("lookup: %q %v", v, ok)
	}
}

// lpmtrie: the full table in another order gave wrong answers.
func TestBug14FullTableShuffled(t *testing.T) {
	table := fullTable(t)
	r := rand.New(rand.NewPCG(5, 5))
	tab := New[uint32](Config{})
	for _, i := range r.Perm(len(table)) {
		if err := tab.Insert(table[i], uint32(i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 20000 {
		p := table[r.IntN(len(table))]
		k, _ := KeyOf(p.Addr())
		a := AddrOf(k | uint32(uint64(r.Uint32())>>p.Bits()))
		if r.IntN(4) == 0 {
			a = AddrOf(r.Uint32())
		}
		want := -1
		for b := 32; b >= 0 && want < 0; b-- {
			q, _ := a.Prefix(b)
			if i, ok := slices.BinarySearchFunc(table, q, netip.Prefix.Compare); ok {
				want = i
			}
		}
		v, got, ok := tab.Lookup(a)
		if ok != (want >= 0) || ok && (int(v) != want || got != table[want]) {
			t.Fatalf("%v: %v %v, want number %d", a, got, ok, want)
		}
	}
}

// Trap 16: host bits are refused, never masked behind the caller's back.
func TestBug16HostBits(t *testing.T) {
	tab := New[int](Config{})
	for _, p := range []netip.Prefix{pfx("10.0.0.1/8"), netip.PrefixFrom(adr("0.0.0.1"), 0), {}, netip.PrefixFrom(adr("10.0.0.0"), 40)} {
		if err := tab.Insert(p, 1); !errors.Is(err, ErrPrefix) {
			t.Errorf("insert %v: %v", p, err)
		}
		if _, ok := tab.Remove(p); ok {
			t.Errorf("remove %v", p)
		}
		if _, ok := tab.Get(p); ok {
			t.Errorf("get %v", p)
		}
	}
}
