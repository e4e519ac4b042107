package radix6

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
)

// slow is a routing table that is obviously right: a list, searched whole.
type slow struct {
	mode   SourceMode
	routes []slowRoute
}

type slowRoute struct {
	Route
	v   int
	seq int
}

func anySource(p netip.Prefix) bool { return !p.IsValid() || p.Bits() == 0 }

func normal(r Route) Route {
	if anySource(r.From) {
		r.From = netip.Prefix{}
	}
	return r
}

// order is that of Tree.All: address, length, source, metric, age.
func order(a, b slowRoute) int {
	return cmp.Or(a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()),
		a.From.Addr().Compare(b.From.Addr()), cmp.Compare(a.From.Bits(), b.From.Bits()),
		cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.seq, b.seq))
}

func (s *slow) add(r Route, v int, mode Mode) error {
	r = normal(r)
	if r.From.IsValid() && s.mode == SourceOff {
		return ErrNoSources
	}
	i := slices.IndexFunc(s.routes, func(o slowRoute) bool { return o.Route == r })
	switch {
	case i < 0 && mode&Create == 0:
		return ErrNotExist
	case i >= 0 && mode&Excl != 0:
		return ErrExist
	case i >= 0 && mode&Replace != 0:
		s.routes[i].v = v
		return nil
	}
	seq := 0
	for _, o := range s.routes {
		seq = max(seq, o.seq+1)
	}
	s.routes = append(s.routes, slowRoute{r, v, seq})
	slices.SortFunc(s.routes, order)
	return nil
}

func (s *slow) delete(r Route) (int, bool) {
	r = normal(r)
	i := slices.IndexFunc(s.routes, func(o slowRoute) bool { return o.Route == r })
	if i < 0 {
		return 0, false
	}
	v := s.routes[i].v
	s.routes = slices.Delete(s.routes, i, i+1)
	return v, true
}

// lookup lists the candidates in the order in which they are to be tried and
// takes the first that is usable.
func (s *slow) lookup(dst, src netip.Addr, usable func(Route, int) bool) (slowRoute, bool) {
	if !src.IsValid() {
		src = netip.IPv6Unspecified()
	}
	var c []slowRoute
	sourced := map[netip.Prefix]bool{} // destinations with any source-specific route
	for _, r := range s.routes {
		if r.Prefix.Contains(dst) {
			if !anySource(r.From) {
				sourced[r.Prefix] = true
			}
			if anySource(r.From) || r.From.Contains(src) {
				c = append(c, r)
			}
		}
	}
	slices.SortFunc(c, func(a, b slowRoute) int {
		return cmp.Or(-cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()),
			-cmp.Compare(max(0, a.From.Bits()), max(0, b.From.Bits())),
			cmp.Compare(a.Metric, b.Metric), cmp.Compare(a.seq, b.seq))
	})
	if s.mode == SourceLinux {
		// Until the first visible candidate, generic routes beside
		// source-specific ones of the same destination are hidden.
		for len(c) > 0 && anySource(c[0].From) && sourced[c[0].Prefix] && c[0].Prefix.Bits() > 0 {
			c = c[1:]
		}
	}
	for _, r := range c {
		if usable == nil || usable(r.Route, r.v) {
			return r, true
		}
	}
	return slowRoute{}, false
}

// random things of a small world, so that they meet often.

func randomAddr(r *rand.Rand) netip.Addr {
	k := key{r.Uint64(), r.Uint64()}
	switch r.IntN(3) {
	case 0: // few bits, everywhere
		k.hi, k.lo = 1<<r.IntN(64)&k.hi, 1<<r.IntN(64)&k.lo
	case 1:
		k.hi, k.lo = 0x20010db8<<32|k.hi&0xf0f, k.lo&0xff
	case 2:
		k.hi, k.lo = k.hi&(3<<62), k.lo&3
	}
	return k.addr()
}

func randomPrefix(r *rand.Rand) netip.Prefix {
	lengths := [...]int{0, 1, 2, 3, 31, 32, 33, 48, 52, 56, 62, 63, 64, 65, 66, 96, 120, 126, 127, 128}
	n := lengths[r.IntN(len(lengths))]
	if r.IntN(4) == 0 {
		n = r.IntN(129)
	}
	p, _ := randomAddr(r).Prefix(n)
	return p
}

// near returns an address at an edge of a prefix or inside it.
func near(r *rand.Rand, p netip.Prefix) netip.Addr {
	hi, lo, _ := addrKey(p.Addr())
	first, n := key{hi, lo}, p.Bits()
	last := key{^first.hi, ^first.lo}.mask(n)
	last = key{^last.hi, ^last.lo}
	switch r.IntN(5) {
	case 0:
		return p.Addr()
	case 1:
		return last.addr()
	case 2:
		if a := p.Addr().Prev(); a.IsValid() {
			return a
		}
	case 3:
		if a := last.addr().Next(); a.IsValid() {
			return a
		}
	}
	tail := key{r.Uint64(), r.Uint64()}
	m := tail.mask(n)
	return key{first.hi | (tail.hi ^ m.hi), first.lo | (tail.lo ^ m.lo)}.addr()
}
