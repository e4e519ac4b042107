package lpctrie

import "net/netip"

// Lookup returns the value and the prefix of the longest match among the
// routes without TOS, whatever their type: the kernel's answer for a packet
// with TOS 0 while every next hop is alive. It does not allocate. Anything but
// an IPv4 address finds nothing, IPv4-mapped IPv6 addresses included.
func (t *Table[V]) Lookup(a netip.Addr) (v V, p netip.Prefix, ok bool) {
	if !a.Is4() {
		return v, p, false
	}
	i := t.search(key4(a.As4()))
	if i == 0 {
		return v, p, false
	}
	r := &t.hot[i]
	return r.val, prefixOf(r.key, r.slen()), true
}

// LookupKey is Lookup for an address in host order (see [KeyOf]), without the
// prefix.
func (t *Table[V]) LookupKey(key uint32) (v V, ok bool) {
	if i := t.search(key); i != 0 {
		return t.hot[i].val, true
	}
	return v, false
}

// Contains reports whether any route without TOS matches the address.
func (t *Table[V]) Contains(a netip.Addr) bool {
	key, ok := KeyOf(a)
	return ok && t.search(key) != 0
}

// search returns the record that serves an address, or 0.
//
// First it follows the address's own bits down. It stops at a leaf, an empty
// child, or a node whose skipped bits differ from the address. From then on it
// looks for shorter matches: those are at keys that equal the address with its
// lowest set bits cleared, so it clears the lowest bit of the child index,
// goes down along child 0, and back up where the index has no bits left.
func (t *Table[V]) search(key uint32) uint32 {
	nodes, hot := t.nodes, t.hot
	ref := t.root
	back, index := uint32(0), uint32(0) // the last node, and the child taken there
	for int32(ref) > 0 {
		n := uint(ref)
		shape := nodes[n+1]
		pos := shape & 31
		i := (key ^ nodes[n]) >> pos
		if i>>(shape>>8&31) != 0 {
			goto shorter // skipped bits differ
		}
		back, index = ref, i
		ref = nodes[n+2+uint(i)]
	}
	goto leaf

shorter:
	for int32(ref) > 0 {
		n := uint(ref)
		k, shape := nodes[n], nodes[n+1]
		// Bits of the address that differ from the key at or above the key's
		// lowest set bit rule out everything below; so does a node without
		// routes shorter than its own children.
		if (key^k)&(k|-k) != 0 || shape>>16 == shape&31 {
			ref = 0
			break
		}
		ref = nodes[n+2]
	}

leaf:
	if ref != 0 {
		i := ref &^ leafBit
		r := &hot[i]
		differs, info := key^r.key, r.info
		for {
			if differs>>(info&slenMask) == 0 && info&tosMask == 0 {
				return i
			}
			if info&moreBit == 0 {
				break
			}
			i = t.cold.at(i).next
			info = hot[i].info
		}
	}
	if back == 0 {
		return 0
	}
	for {
		// Nothing shorter hangs at a node without routes shorter than its
		// children, nor where the index has no bits left to clear.
		if shape := nodes[back+1]; index != 0 && shape>>16 > shape&31 {
			break
		}
		k := nodes[back]
		if back = nodes[back-1]; back == 0 {
			return 0
		}
		shape := nodes[back+1]
		index = k >> (shape & 31) & (1<<(shape>>8&31) - 1)
	}
	index &= index - 1
	ref = nodes[back+2+index]
	goto shorter
}

// A Flow is what a packet brings to a lookup.
type Flow struct {
	Dst   netip.Addr
	TOS   uint8 // matches routes of this TOS and those without
	Scope Scope // routes of a farther scope (a lower number) are passed over
}

// LookupFlow is the lookup of the kernel with all its conditions: it passes
// over routes of another TOS, of a farther scope and, among those that deliver
// packets, over those for which usable (if not nil) returns false, as the
// kernel does for dead next hops, and goes on to the next alias or a shorter
// prefix. Ask the Route's Type.Err what the answer means. It reports false
// when nothing is left.
func (t *Table[V]) LookupFlow(f Flow, usable func(Route, V) bool) (v V, r Route, ok bool) {
	key, is4 := KeyOf(f.Dst)
	if !is4 {
		return v, r, false
	}
	i := t.walkSearch(key, func(i uint32) bool {
		a := &t.hot[i]
		if a.tos() != 0 && a.tos() != f.TOS || a.scope() < f.Scope {
			return false
		}
		return usable == nil || a.typ().Err() != nil || usable(t.route(i), a.val)
	}, nil)
	if i == 0 {
		return v, r, false
	}
	return t.hot[i].val, t.route(i), true
}

// LookupAddr is Lookup without the prefix.
func (t *Table[V]) LookupAddr(a netip.Addr) (v V, ok bool) {
	if a.Is4() {
		if i := t.search(key4(a.As4())); i != 0 {
			return t.hot[i].val, true
		}
	}
	return v, false
}
