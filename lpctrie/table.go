package lpctrie

import (
	"fmt"
	"net/netip"
	"reflect"
)

// Config tunes the shape of the trie. The zero value is today's Linux; a
// field that is zero takes Linux's value.
type Config struct {
	// Inflate and InflateRoot double a node's children (the root's) when at
	// least that many percent of the doubled node would be in use. Linux has
	// 50 and 30; Linux 2.6 had 50 and 15. Taken as 10 if lower, 100 if higher.
	Inflate, InflateRoot int
	// Halve and HalveRoot halve a node's children when less than that many
	// percent are in use. Linux has 25 and 15; Linux 2.6 had 25 and 8. At most
	// half of the inflate value, so that the two never fight.
	Halve, HalveRoot int
	// MaxWork bounds how often one visit doubles or halves the same node.
	// Linux has 10.
	MaxWork int
	// MaxBits bounds a node to 2^MaxBits children, at most 26, the default.
	// A doubling that would exceed it is skipped and counted, as the kernel
	// does when it finds no memory.
	MaxBits int
}

func (c Config) normal() Config {
	def := func(v *int, linux, low, high int) {
		if *v == 0 {
			*v = linux
		}
		*v = min(max(*v, low), high)
	}
	def(&c.Inflate, 50, 10, 100)
	def(&c.InflateRoot, 30, 10, 100)
	def(&c.Halve, 25, 1, c.Inflate/2)
	def(&c.HalveRoot, 15, 1, c.InflateRoot/2)
	def(&c.MaxWork, 10, 1, 32)
	def(&c.MaxBits, 26, 1, 26)
	return c
}

// A Table is an IPv4 routing table: a level-compressed trie of the shape that
// Linux builds. Make one with [New]. Any number of goroutines may look up at
// the same time, but none while one changes the table; see [Live] for that.
type Table[V any] struct {
	cfg  Config
	same func(a, b V) bool

	root       uint32
	hot        []hot[V]
	cold       coldList
	freeRecs   uint32
	nodes      []uint32
	freeBlocks [32]uint32 // by bits
	liveWords  int        // of nodes, in blocks that are in use

	routes, leaves, tnodes int
	skipped                uint64 // resizes that MaxBits forbade
	wantCompact            bool
	log                    *journal[V] // set by Live
}

// New returns an empty table.
//
// Adding a route that differs from an existing one in nothing, value included,
// is [ErrExist] in every mode, as in the kernel, where the value is the next
// hop; only Replace of the first route of its prefix, table, TOS and priority by
// itself succeeds and changes nothing. Values are compared with == if V is a
// type for which that can neither panic nor mislead (no interfaces inside), else
// no two are the same; see [Table.SetSame].
func New[V any](cfg Config) *Table[V] {
	t := &Table[V]{cfg: cfg.normal()}
	if plainComparable(reflect.TypeFor[V]()) {
		t.same = equal[V]
	}
	return t
}

// equal is == for types that are plainComparable.
func equal[V any](a, b V) bool { return any(a) == any(b) }

// plainComparable reports whether == on the type never panics.
func plainComparable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return false
	case reflect.Array:
		return plainComparable(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !plainComparable(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return t.Comparable()
}

// SetSame sets how values are compared; nil means that no two are the same.
// Call it before the first route is added. Snapshots do not ask it: they answer
// with the very value of each route.
func (t *Table[V]) SetSame(same func(a, b V) bool) { t.same = same }

func (t *Table[V]) sameValue(a, b V) bool { return t.same != nil && t.same(a, b) }

// Len returns the number of routes, every alias counted.
func (t *Table[V]) Len() int { return t.routes }

// Insert adds a plain route, or gives the first plain route of that prefix a
// new value: Add(Route{Prefix: p}, v, ModeReplace).
func (t *Table[V]) Insert(p netip.Prefix, v V) error {
	return t.Add(Route{Prefix: p}, v, ModeReplace)
}

// Add adds a route with its value as the kernel does on RTM_NEWROUTE with the
// flags of mode. Routes of one prefix, table, TOS and priority (aliases) may
// coexist if they differ in type, scope or value and mode lets them: Append puts
// the new one behind those that are there, and without Excl, Replace and Append
// it comes first ("ip route prepend").
// It fails with [ErrPrefix], [ErrExist], [ErrNotExist] or [ErrFull]; a failed
// call changes nothing.
func (t *Table[V]) Add(r Route, v V, mode Mode) error {
	key, slen, err := keyOfPrefix(r.Prefix)
	if err != nil {
		return err
	}
	if r.Type == 0 {
		r.Type = Unicast
	}
	t.tidy()
	if len(t.hot) >= maxWords || len(t.nodes) >= maxWords-1<<(t.cfg.MaxBits+2) {
		return ErrFull
	}
	n := rec[V]{hot[V]{key, packInfo(slen, r.TOS, r.Type, r.Scope), v}, cold{priority: r.Priority, table: r.Table}}
	leaf, parent := t.findLeaf(key)
	if leaf == 0 {
		if mode&Create == 0 {
			return ErrNotExist
		}
		t.insertAt(0, parent, 0, n)
		return nil
	}

	// at is where the new alias goes, taken whether its key is there already.
	at, taken := t.place(leaf, &n)
	if !taken {
		if mode&Create == 0 {
			return ErrNotExist
		}
		t.insertAt(leaf, parent, at, n)
		return nil
	}
	if mode&Excl != 0 {
		return ErrExist
	}
	// The aliases with this key: look for one that is the same altogether.
	first, match := at, -1
	i, end := t.alias(leaf, at), at
	for ; i != 0; i = t.cold.at(i).next {
		a, c := &t.hot[i], t.cold.at(i)
		if a.slen() != slen || c.table != n.table || a.tos() != r.TOS || c.priority != n.priority {
			break
		}
		if a.info&^moreBit == n.info && t.sameValue(a.val, v) {
			match = end
			break
		}
		end++
	}
	switch {
	case mode&Replace != 0:
		if match == first {
			return nil
		}
		if match >= 0 {
			return ErrExist
		}
		t.replaceAt(leaf, first, n)
		return nil
	case match >= 0:
		return ErrExist
	case mode&Create == 0:
		return ErrNotExist
	case mode&Append != 0:
		at = end
	}
	t.insertAt(leaf, parent, at, n)
	return nil
}

// place returns the position in a leaf's list at which a new alias belongs:
// suffix length ascending, then table descending, TOS descending, priority
// ascending. Taken reports that the alias there has the same key.
func (t *Table[V]) place(leaf uint32, n *rec[V]) (at int, taken bool) {
	for i := leaf; i != 0; i = t.cold.at(i).next {
		a, c := &t.hot[i], t.cold.at(i)
		switch {
		case a.slen() != n.slen():
			if a.slen() > n.slen() {
				return at, false
			}
		case c.table != n.table:
			if c.table < n.table {
				return at, false
			}
		case a.tos() != n.tos():
			if a.tos() < n.tos() {
				return at, false
			}
		case c.priority >= n.priority:
			return at, c.priority == n.priority
		}
		at++
	}
	return at, false
}

// alias returns the record at a position of a leaf's list, 0 behind its end.
func (t *Table[V]) alias(leaf uint32, at int) uint32 {
	i := leaf
	for ; at > 0 && i != 0; at-- {
		i = t.cold.at(i).next
	}
	return i
}

// Remove deletes the first plain route of a prefix: Delete(Route{Prefix: p}).
func (t *Table[V]) Remove(p netip.Prefix) (V, bool) { return t.Delete(Route{Prefix: p}) }

// Delete deletes a route as the kernel does on RTM_DELROUTE: prefix, table and
// TOS must be equal, Priority and Type only where they are not zero, Scope is
// not compared. Of several that match, the first in the order of lookup goes.
// It returns the value, or false if there is no such route.
func (t *Table[V]) Delete(r Route) (V, bool) {
	return t.DeleteFunc(r, nil)
}

// DeleteFunc is Delete with a condition of the caller's, who can so tell
// aliases apart by scope or value. A nil condition is always true.
func (t *Table[V]) DeleteFunc(r Route, match func(Route, V) bool) (v V, ok bool) {
	key, slen, err := keyOfPrefix(r.Prefix)
	if err != nil {
		return v, false
	}
	t.tidy()
	leaf, parent := t.findLeaf(key)
	at := 0
	for i := leaf; i != 0; i = t.cold.at(i).next {
		a, c := &t.hot[i], t.cold.at(i)
		if a.slen() == slen && c.table == r.Table && a.tos() == r.TOS &&
			(r.Priority == 0 || r.Priority == c.priority) && (r.Type == 0 || r.Type == a.typ()) &&
			(match == nil || match(t.route(i), a.val)) {
			v = a.val
			t.removeAt(leaf, parent, at)
			return v, true
		}
		at++
	}
	return v, false
}

// Get returns the value of the first plain route of exactly this prefix: the
// one that [Table.Lookup] would find there.
func (t *Table[V]) Get(p netip.Prefix) (v V, ok bool) {
	key, slen, err := keyOfPrefix(p)
	if err != nil {
		return v, false
	}
	if i := t.exact(key, slen); i != 0 {
		return t.hot[i].val, true
	}
	return v, false
}

// exact returns the first record of a prefix that has no TOS.
func (t *Table[V]) exact(key uint32, slen uint8) uint32 {
	leaf, _ := t.findLeaf(key)
	for i := leaf; i != 0; i = t.cold.at(i).next {
		if a := &t.hot[i]; a.slen() == slen && a.tos() == 0 {
			return i
		}
	}
	return 0
}

// Clear removes all routes and gives their memory back.
func (t *Table[V]) Clear() {
	if t.log != nil {
		var keys []uint32
		for i := range t.each(0, ^uint32(0)) {
			keys = append(keys, t.hot[i].key)
		}
		for _, key := range keys {
			for leaf, parent := t.findLeaf(key); leaf != 0; leaf, parent = t.findLeaf(key) {
				t.removeAt(leaf, parent, 0)
			}
		}
		t.tidy()
		return
	}
	*t = Table[V]{cfg: t.cfg, same: t.same}
}

// String summarises the table for logs and debuggers.
func (t *Table[V]) String() string {
	return fmt.Sprintf("lpctrie.Table(%d routes, %d leaves, %d tnodes)", t.routes, t.leaves, t.tnodes)
}
