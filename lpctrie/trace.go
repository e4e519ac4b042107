package lpctrie

import (
	"fmt"
	"net/netip"
	"strings"
)

// A Verdict says what a lookup did at one step.
type Verdict uint8

// What a lookup does, in the order in which an explanation usually shows it.
const (
	Descend   Verdict = iota // the address's bits choose a child of the node
	Skipped                  // the address differs from the node in bits the node skips
	Shorter                  // no exact way is left; a shorter match may be below child 0
	Pruned                   // nothing below the node can match
	Empty                    // the child is empty
	Rejected                 // the leaf's route does not serve the address
	Matched                  // the leaf's route is the answer
	Backtrack                // up to the node, its child index with the lowest set bit cleared
	NoRoute                  // no more places to look
)

var verdictNames = [...]string{"descend", "skipped bits differ", "try shorter", "pruned", "empty child",
	"rejected", "match", "backtrack", "no route"}

// String returns a few words.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// A Step is one step of a lookup.
type Step struct {
	Verdict Verdict
	// Node is the prefix that the tnode stands for; for Rejected and Matched
	// it is the route's prefix.
	Node netip.Prefix
	// Bits is the width of a tnode with 2^Bits children, 0 at a leaf.
	Bits int
	// Skip is how many bits lie between the parent's and this node's.
	Skip int
	// Index is the child that was chosen, for Descend, Empty and Backtrack.
	Index uint32
}

// String returns the step as one line without a line end.
func (s Step) String() string {
	switch s.Verdict {
	case NoRoute:
		return s.Verdict.String()
	case Rejected, Matched:
		return fmt.Sprintf("%v %v", s.Verdict, s.Node)
	case Descend, Empty, Backtrack:
		return fmt.Sprintf("%v %v bits %d skip %d child %d", s.Verdict, s.Node, s.Bits, s.Skip, s.Index)
	}
	return fmt.Sprintf("%v %v bits %d skip %d", s.Verdict, s.Node, s.Bits, s.Skip)
}

// A Trace is the story of one lookup.
type Trace []Step

// String returns the steps, separated by "; ".
func (tr Trace) String() string {
	s := make([]string, len(tr))
	for i, st := range tr {
		s[i] = st.String()
	}
	return strings.Join(s, "; ")
}

// Counters sum up lookups, like the counters of a kernel that is built with
// CONFIG_IP_FIB_TRIE_STATS.
type Counters struct {
	Gets         uint64 // lookups
	Backtracks   uint64 // steps back
	Matched      uint64 // leaves that had the answer ("semantic match passed")
	Missed       uint64 // leaves that had not ("semantic match miss")
	NullNodes    uint64 // empty children hit
	SkippedBits  uint64 // nodes left because of skipped bits
	ShorterTried uint64 // nodes searched for a shorter match
}

// Add counts the steps of one lookup.
func (c *Counters) Add(tr Trace) {
	c.Gets++
	for _, s := range tr {
		switch s.Verdict {
		case Skipped:
			c.SkippedBits++
		case Shorter:
			c.ShorterTried++
		case Empty:
			c.NullNodes++
		case Rejected:
			c.Missed++
		case Matched:
			c.Matched++
		case Backtrack:
			c.Backtracks++
		}
	}
}

// Trace explains what [Table.Lookup] does with an address. The last step is
// Matched or NoRoute. An address that is not IPv4 has no trace.
func (t *Table[V]) Trace(a netip.Addr) Trace {
	key, ok := KeyOf(a)
	if !ok {
		return nil
	}
	var tr Trace
	t.walkSearch(key, func(i uint32) bool { return t.hot[i].tos() == 0 }, &tr)
	return tr
}

// step describes a tnode.
func (t *Table[V]) step(v Verdict, n, index uint32) Step {
	pos, width := t.shapeOf(n)
	top := uint32(32)
	if p := t.nodes[n-1]; p != 0 {
		top, _ = t.shapeOf(p)
	}
	key := t.nodes[n]
	return Step{v, prefixOf(key, uint8(pos+width)), int(width), int(top - pos - width), index}
}

// walkSearch is search with a condition and, if tr is not nil, a record of
// every step. It is written for clarity; a test holds it and search together.
func (t *Table[V]) walkSearch(key uint32, accept func(i uint32) bool, tr *Trace) uint32 {
	note := func(v Verdict, n, index uint32) {
		if tr != nil {
			*tr = append(*tr, t.step(v, n, index))
		}
	}
	// leaf returns the first alias that serves the address.
	leaf := func(ref uint32) uint32 {
		for i := ref &^ leafBit; i != 0; i = t.cold.at(i).next {
			r := &t.hot[i]
			ok := (key^r.key)>>r.slen() == 0 && accept(i)
			if tr != nil {
				v := Rejected
				if ok {
					v = Matched
				}
				*tr = append(*tr, Step{Verdict: v, Node: prefixOf(r.key, r.slen())})
			}
			if ok {
				return i
			}
		}
		return 0
	}

	back, index := uint32(0), uint32(0)
	ref, exact := t.root, true
	for {
		switch {
		case ref == 0:
			// Empty child, or nothing to be found below: go back.
		case ref&leafBit != 0:
			if i := leaf(ref); i != 0 {
				return i
			}
		case exact:
			pos, width := t.shapeOf(ref)
			i := (key ^ t.nodes[ref]) >> pos
			if i>>width != 0 {
				note(Skipped, ref, 0)
				exact = false
				continue
			}
			if t.slenOf(ref) > pos {
				back, index = ref, i
			}
			note(Descend, ref, i)
			n := ref
			if ref = t.nodes[ref+2+i]; ref == 0 {
				note(Empty, n, i)
			}
			continue
		default:
			pos, _ := t.shapeOf(ref)
			k := t.nodes[ref]
			if (key^k)&(k|-k) == 0 && t.slenOf(ref) > pos {
				note(Shorter, ref, 0)
				n := ref
				if ref = t.nodes[ref+2]; ref == 0 {
					note(Empty, n, 0)
				}
				continue
			}
			note(Pruned, ref, 0)
		}
		exact = false
		for index == 0 {
			if back == 0 || t.nodes[back-1] == 0 {
				if tr != nil {
					*tr = append(*tr, Step{Verdict: NoRoute})
				}
				return 0
			}
			k := t.nodes[back]
			back = t.nodes[back-1]
			index = t.indexIn(back, k)
		}
		index &= index - 1
		note(Backtrack, back, index)
		if ref = t.nodes[back+2+index]; ref == 0 {
			note(Empty, back, index)
		}
	}
}
