package radix6

import (
	"fmt"
	"net/netip"
	"strings"
)

// A Verdict says what a lookup did at one step.
type Verdict uint8

// What a lookup does, in the order in which an explanation usually shows it.
const (
	Descend  Verdict = iota // a bit of the address chooses a child; nothing is compared
	Bottom                  // no child there: the prefix is compared for the first time
	Mismatch                // on the way up: the prefix does not contain the address
	Fork                    // it does, but the node has no routes
	Sources                 // the walk goes into the tree over the node's sources
	NoSource                // none matches; the node's generic routes, if any, are hidden
	Matched                 // the node's first route is the answer
	NoRoute                 // the walk came up to the root and there is no route
)

var verdictNames = [...]string{"descend", "bottom", "mismatch", "fork", "sources", "no source", "match", "no route"}

// String returns a word or two.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return fmt.Sprintf("verdict %d", uint8(v))
}

// A Step is one step of a lookup.
type Step struct {
	Verdict Verdict
	// Node is the prefix of the node, in the tree over a node's sources
	// (InSource) a source prefix.
	Node     netip.Prefix
	InSource bool
	// Bit is the value, 0 or 1, of the address's bit number Node.Bits() that
	// chooses a child; only for Descend.
	Bit int
	// Skip is how many bits lie between the bit that the parent looked at
	// and the end of this node's prefix; for Descend and Bottom.
	Skip int
	// Route is the answer; only for Matched.
	Route Route
}

// String returns the step as one line without a line end.
func (s Step) String() string {
	from := ""
	if s.InSource {
		from = "from "
	}
	switch s.Verdict {
	case NoRoute:
		return s.Verdict.String()
	case Matched:
		return fmt.Sprintf("%v %v", s.Verdict, s.Route)
	case Descend:
		return fmt.Sprintf("%v %s%v skip %d bit %d", s.Verdict, from, s.Node, s.Skip, s.Bit)
	case Bottom:
		return fmt.Sprintf("%v %s%v skip %d", s.Verdict, from, s.Node, s.Skip)
	}
	return fmt.Sprintf("%v %s%v", s.Verdict, from, s.Node)
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

// Trace explains what [Tree.Lookup] does with an address, node by node: the
// way down, the way back up, the answer. The last step is Matched or NoRoute.
// An IPv4 address has no trace.
func (t *Tree[V]) Trace(dst netip.Addr) Trace { return t.TraceFrom(dst, netip.Addr{}) }

// TraceFrom explains what [Tree.LookupFrom] does. The zero source is the
// unspecified address.
func (t *Tree[V]) TraceFrom(dst, src netip.Addr) Trace {
	d, s, ok := queryKeys(dst, src)
	if !ok {
		return nil
	}
	if len(t.nodes) == 0 {
		return Trace{{Verdict: NoRoute}}
	}
	var tr Trace
	path, agree := t.descend(&tr, rootNode, d, false)
	for up := len(path) - 1; up >= 0; up-- {
		i := path[up]
		n := t.nodes[i]
		st := Step{Verdict: Matched, Node: t.keys[i].prefix(n.bits())}
		if n.bits() > agree {
			st.Verdict = Mismatch
			tr = append(tr, st)
			continue
		}
		rt := n.leaf
		if n.info&hasSub != 0 {
			st.Verdict = Sources
			tr = append(tr, st)
			rt = t.subs[n.leaf].routes
			if t.traceSources(&tr, i, s) {
				return tr
			}
			if rt == 0 || t.mode == SourceLinux && i != rootNode {
				st.Verdict = NoSource
				tr = append(tr, st)
				continue
			}
			st.Verdict = Matched
		}
		if rt != 0 {
			st.Route = t.route(i, 0, rt)
			return append(tr, st)
		}
		st.Verdict = Fork
		tr = append(tr, st)
	}
	return append(tr, Step{Verdict: NoRoute})
}

// traceSources is the part of a trace in the sources of a node. It reports
// whether it ends the trace.
func (t *Tree[V]) traceSources(tr *Trace, dst uint32, s key) bool {
	path, agree := t.descend(tr, t.subs[t.nodes[dst].leaf].root, s, true)
	for up := len(path) - 1; up >= 0; up-- {
		n := t.nodes[path[up]]
		st := Step{Verdict: Fork, Node: t.keys[path[up]].prefix(n.bits()), InSource: true}
		if n.bits() > agree {
			st.Verdict = Mismatch
		} else if n.info&candidate != 0 {
			st.Verdict, st.Route = Matched, t.route(dst, path[up], n.leaf)
		}
		*tr = append(*tr, st)
		if st.Verdict == Matched {
			return true
		}
	}
	return false
}

// descend records the way down and returns it, and how many bits of the
// address agree with the prefix at the bottom.
func (t *Tree[V]) descend(tr *Trace, i uint32, k key, inSource bool) (path []uint32, agree int) {
	for looked := 0; ; {
		n := t.nodes[i]
		path = append(path, i)
		st := Step{Verdict: Bottom, Node: t.keys[i].prefix(n.bits()), InSource: inSource, Skip: n.bits() - looked}
		bit := k.bit(n.info & 0xff)
		next := n.child[bit]
		if next == 0 {
			*tr = append(*tr, st)
			return path, common(k, t.keys[i])
		}
		st.Verdict, st.Bit = Descend, int(bit)
		*tr = append(*tr, st)
		i, looked = next, n.bits()+1
	}
}
