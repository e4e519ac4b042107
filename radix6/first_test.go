package radix6

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

// randomPrefixes returns prefixes of which many share their first digits, so
// that there are nodes of all kinds and sizes.
func randomPrefixes(r *rand.Rand, n int) (ps []netip.Prefix) {
	for len(ps) < n {
		hi := uint64(0x2000+r.IntN(3)) << 48
		switch r.IntN(8) {
		case 0: // anywhere
			hi |= r.Uint64() >> 16
		case 1: // anywhere below some /32s
			hi |= uint64(r.IntN(9))<<32 | uint64(r.Uint32())
		default: // dense below others
			hi |= uint64(r.IntN(400))<<32 | uint64(r.IntN(8<<r.IntN(14))&0xffff)<<16 | uint64(r.IntN(2)*r.IntN(1<<16))
		}
		bits := []int{16, 20, 28, 32, 36, 40, 44, 48, 48, 48, 48, 48, 48, 56, 64, 128}[r.IntN(16)]
		k := key{hi, r.Uint64()}.mask(bits)
		ps = append(ps, k.prefix(bits))
	}
	return ps
}

// variants returns the part as every code there is for this processor sees it,
// the Go code first.
func (p *part) variants() (all []*part) {
	for _, has := range [][2]bool{{false, false}, {true, false}, {true, true}} {
		if has[0] && !hasAsm() || has[1] && !hasWide() {
			break
		}
		v := *p
		v.asm, v.wide = has[0], has[1]
		all = append(all, &v)
	}
	return all
}

// The assembly and the Go code answer alike: one by one and in batches of any
// length, in both layouts, with codes of all widths and all numbers of places
// in a list.
func TestFirstTwins(t *testing.T) {
	if !hasAsm() {
		t.Skip("no assembly here")
	}
	if !hasWide() {
		t.Log("no vectors here")
	}
	r := rand.New(rand.NewPCG(3, 11))
	for _, size := range []int{0, 1, 5, 100, 3000, 40000} {
		ps := randomPrefixes(r, size)
		for width := 1; width <= 4; width++ {
			vs := make([]uint64, size)
			for i := range vs {
				vs[i] = r.Uint64N(min(uint64(1)<<(8*width), maxInline))
			}
			for _, l := range []Layout{Compact, Fast} {
				s, err := Compile(ps, vs, CompileOptions{Layout: l})
				if err != nil {
					t.Fatal(err)
				}
				if s.asm != hasAsm() || s.wide != hasWide() || l == Fast && !s.dense {
					t.Fatal("no assembly, or another layout")
				}
				variants := s.variants()
				further := 0
				var keys []Key
				length := 0
				for range 40000 {
					k := key{r.Uint64(), r.Uint64()}
					if size > 0 {
						p := ps[r.IntN(size)]
						k, _, _ = prefixKey(p)
						switch r.IntN(4) {
						case 0:
							k = key{k.hi - 1, ^uint64(0)}
						case 1:
							k = k.last(uint8(p.Bits()))
						case 2:
							k.hi ^= r.Uint64() >> (16 + r.IntN(48))
						}
					}
					if variants[0].first(k.hi)&deeper != 0 {
						further++
					}
					keys = append(keys, Key{k.hi, k.lo})
					if len(keys) < length {
						continue
					}
					want, found := make([]uint32, len(keys)), 0
					for i, k := range keys {
						want[i] = variants[0].code(k.Hi, k.Lo)
						if want[i] != 0 {
							found++
						}
					}
					got := make([]uint32, len(keys)+1)
					for n, v := range variants {
						for i, k := range keys {
							if a, b := v.first(k.Hi), variants[0].first(k.Hi); a != b {
								t.Fatalf("%d routes, width %d, layout %d, variant %d: %x: %x and %x", size, s.width, l, n, k, a, b)
							}
							if c := v.code(k.Hi, k.Lo); c != want[i] {
								t.Fatalf("%d routes, width %d, layout %d, variant %d: %x: %x and %x", size, s.width, l, n, k, c, want[i])
							}
						}
						clear(got)
						if n := v.codesOf(keys, got[:len(keys)]); n != found || got[len(keys)] != 0 {
							t.Fatalf("%d of %d found, want %d; behind them is %x", n, len(keys), found, got[len(keys)])
						}
						for i, k := range keys {
							if got[i] != want[i] {
								t.Fatalf("%d routes, width %d, layout %d, variant %d: %x: %x in a batch of %d, %x alone", size, s.width, l, n, k, got[i], len(keys), want[i])
							}
						}
					}
					keys, length = keys[:0], r.IntN(200)
				}
				if size == 40000 && further == 0 {
					t.Error("no addresses that go deeper")
				}
			}
		}
	}
}

// A list of any length and any places, the last one too.
func TestListLengths(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 12))
	for n := 1; n <= 300; n++ {
		places := map[uint32]bool{}
		if n > 1 {
			places[0xffff] = true
		}
		for len(places) < n {
			places[uint32(r.IntN(1<<min(16, 9+r.IntN(9))))] = true
		}
		var ps []netip.Prefix
		var vs []uint32
		for p := range places {
			ps = append(ps, key{0x20010db8<<32 | uint64(p)<<16, 0}.prefix(48))
			vs = append(vs, p+1)
		}
		for _, l := range []Layout{Compact, Fast} {
			s, err := Compile(ps, vs, CompileOptions{Layout: l})
			if err != nil {
				t.Fatal(err)
			}
			for p := range uint32(1 << 16) {
				want := uint32(0)
				if places[p] {
					want = p + 1
				}
				if v, _ := s.LookupKey(0x20010db8<<32|uint64(p)<<16|5, 7); v != want {
					t.Fatalf("%d prefixes, layout %d: place %x has %d, want %d", n, l, p, v, want)
				}
			}
		}
	}
}

// The words of an address as they lie in memory are those of its bytes.
func TestWords(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 13))
	for range 1000 {
		a := key{r.Uint64(), r.Uint64()}.addr()
		if hi, lo := addrWords(a); plainWords() && (key{hi, lo}).addr() != a {
			t.Fatalf("%v: %x %x", a, hi, lo)
		}
	}
	s, err := Compile([]netip.Prefix{netip.MustParsePrefix("::/0")}, []int{5}, CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []bool{s.words, false} {
		s.words = words
		for a, want := range map[string]bool{"::": true, "fe80::1%eth0": true, "::ffff:1.2.3.4": true, "1.2.3.4": false} {
			addr := netip.MustParseAddr(a)
			var vs [1]int
			var oks [1]bool
			s.LookupBatch([]netip.Addr{addr}, vs[:], oks[:])
			if _, ok := s.Lookup(addr); ok != want || oks[0] != want {
				t.Errorf("words %v: %s: %v and %v", words, a, ok, oks[0])
			}
		}
	}
	if _, ok := s.Lookup(netip.Addr{}); ok {
		t.Error("the zero address has a route")
	}
}
