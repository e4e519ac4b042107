package lpctrie

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"strconv"
	"strings"
)

// NodeKind tells the three kinds of lines of /proc/net/fib_trie apart.
type NodeKind uint8

// The kinds of [Node].
const (
	TnodeLine NodeKind = iota // +-- prefix bits full empty
	LeafLine                  // |-- address
	AliasLine                 // /length scope TYPE tos=n
)

// A Node is one line of /proc/net/fib_trie. Nodes are comparable: two dumps
// are the same trie if their sequences of Nodes are equal.
type Node struct {
	Table string // the name of the table, "Main" or "Id 100"
	Kind  NodeKind
	Depth int // tnodes above
	// Prefix is what a tnode stands for, a leaf's address with length 32, or
	// an alias's prefix.
	Prefix            netip.Prefix
	Bits, Full, Empty int // of a tnode: 2^Bits children, full and empty ones
	// Type is 0 where an alias line names neither type nor scope.
	Type  RouteType
	Scope Scope
	TOS   uint8
}

// Text returns the line, without a line end, as the kernel prints it.
func (n Node) Text() string { return string(n.appendText(nil)) }

func (n Node) appendText(b []byte) []byte {
	depth := n.Depth
	if n.Kind == AliasLine {
		depth++
	}
	for range depth {
		b = append(b, "   "...)
	}
	b = append(b, "  "...)
	switch n.Kind {
	case TnodeLine:
		b = append(b, "+-- "...)
		b = n.Prefix.AppendTo(b)
		for _, v := range []int{n.Bits, n.Full, n.Empty} {
			b = strconv.AppendInt(append(b, ' '), int64(v), 10)
		}
	case LeafLine:
		b = append(b, "|-- "...)
		b = n.Prefix.Addr().AppendTo(b)
	default:
		b = append(b, '/')
		b = strconv.AppendInt(b, int64(n.Prefix.Bits()), 10)
		if n.Type != 0 {
			b = append(b, ' ')
			b = append(b, n.Scope.String()...)
			b = append(b, ' ')
			b = append(b, n.Type.String()...)
		}
		if n.TOS != 0 {
			b = fmt.Appendf(b, " tos=%d", n.TOS)
		}
	}
	return b
}

// Nodes iterates over the trie as /proc/net/fib_trie shows it: each tnode
// before its children, each leaf before its aliases. Table names the table in
// every Node.
func (t *Table[V]) Nodes(table string) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if t.root != 0 {
			t.showNode(t.root, 0, table, yield)
		}
	}
}

func (t *Table[V]) showNode(ref uint32, depth int, table string, yield func(Node) bool) bool {
	if ref&leafBit != 0 {
		i := ref &^ leafBit
		if !yield(Node{Table: table, Kind: LeafLine, Depth: depth, Prefix: prefixOf(t.hot[i].key, 0)}) {
			return false
		}
		for ; i != 0; i = t.cold.at(i).next {
			r := t.route(i)
			if !yield(Node{Table: table, Kind: AliasLine, Depth: depth, Prefix: r.Prefix, Type: r.Type, Scope: r.Scope, TOS: r.TOS}) {
				return false
			}
		}
		return true
	}
	pos, width := t.shapeOf(ref)
	n := Node{Table: table, Depth: depth, Prefix: prefixOf(t.nodes[ref], uint8(pos+width)),
		Bits: int(width), Full: int(t.nodes[ref-2]), Empty: int(t.nodes[ref-3])}
	if !yield(n) {
		return false
	}
	for _, child := range t.nodes[ref+2 : ref+2+1<<width] {
		if child != 0 && !t.showNode(child, depth+1, table, yield) {
			return false
		}
	}
	return true
}

// WriteFibTrie writes the table as the text of /proc/net/fib_trie: its name
// ("Main", "Id 100") with a colon and one line per [Node]. Like the kernel it
// writes nothing for an empty table.
func (t *Table[V]) WriteFibTrie(w io.Writer, name string) error {
	if t.root == 0 {
		return nil
	}
	bw := bufio.NewWriterSize(w, 1<<16)
	fmt.Fprintf(bw, "%s:\n", name)
	var line []byte
	for n := range t.Nodes(name) {
		line = append(n.appendText(line[:0]), '\n')
		if _, err := bw.Write(line); err != nil {
			return err
		}
	}
	return bw.Flush()
}

// ParseFibTrie reads the text of /proc/net/fib_trie. Lines before the first
// table name have an empty Table; alias lines without scope and type are
// accepted. It stops behind the first error, which is of type *[LineError] or
// the reader's own.
func ParseFibTrie(r io.Reader) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		sc := bufio.NewScanner(r)
		table, leaf := "", Node{Depth: -1}
		line := 1
		for ; sc.Scan(); line++ {
			text := sc.Text()
			if text == "" {
				continue
			}
			if name, ok := strings.CutSuffix(text, ":"); ok && text[0] != ' ' {
				table, leaf = name, Node{Depth: -1}
				continue
			}
			n, why := parseNode(text, leaf)
			if why != "" {
				yield(Node{}, lineError(line, text, "%s", why))
				return
			}
			n.Table = table
			switch n.Kind {
			case LeafLine:
				leaf = n
			case TnodeLine:
				leaf = Node{Depth: -1}
			}
			if !yield(n, nil) {
				return
			}
		}
		if err := scanError(sc, line); err != nil {
			yield(Node{}, err)
		}
	}
}

// maxDepth is deeper than any trie: every tnode takes a bit of the address.
const maxDepth = 33

func parseNode(text string, leaf Node) (n Node, why string) {
	body := strings.TrimLeft(text, " ")
	indent := len(text) - len(body)
	if indent < 2 || (indent-2)%3 != 0 || indent/3 > maxDepth {
		return n, "the indentation is not of fib_trie"
	}
	n.Depth = (indent - 2) / 3
	f := strings.Fields(body)
	if len(f) == 0 {
		return n, "a blank line"
	}
	switch {
	case f[0] == "+--":
		n.Kind = TnodeLine
		if len(f) != 5 {
			return n, "a tnode line has prefix, bits, full and empty"
		}
		p, err := netip.ParsePrefix(f[1])
		if err != nil || !p.Addr().Is4() {
			return n, "no IPv4 prefix"
		}
		n.Prefix = p
		for i, v := range []*int{&n.Bits, &n.Full, &n.Empty} {
			u, err := strconv.ParseUint(f[2+i], 10, 32)
			if err != nil || int(u) < 0 {
				return n, "not a number"
			}
			*v = int(u)
		}
		if n.Bits < 1 || n.Bits > 32-p.Bits() {
			return n, "a tnode of no possible width"
		}
	case f[0] == "|--":
		n.Kind = LeafLine
		if len(f) != 2 {
			return n, "a leaf line has an address"
		}
		a, err := netip.ParseAddr(f[1])
		if err != nil || !a.Is4() {
			return n, "no IPv4 address"
		}
		n.Prefix = netip.PrefixFrom(a, 32)
	case strings.HasPrefix(f[0], "/"):
		n.Kind = AliasLine
		n.Depth--
		if leaf.Depth < 0 || n.Depth != leaf.Depth {
			return n, "an alias line without its leaf"
		}
		length, err := strconv.ParseUint(f[0][1:], 10, 8)
		if err != nil || length > 32 {
			return n, "no prefix length"
		}
		n.Prefix = netip.PrefixFrom(leaf.Prefix.Addr(), int(length))
		if n.Prefix.Masked() != n.Prefix {
			return n, "the leaf's address has host bits"
		}
		f = f[1:]
		if len(f) > 0 {
			if tos, ok := strings.CutPrefix(f[len(f)-1], "tos="); ok {
				v, err := strconv.ParseUint(tos, 10, 8)
				if err != nil {
					return n, "no TOS"
				}
				n.TOS, f = uint8(v), f[:len(f)-1]
			}
		}
		if len(f) == 0 {
			return n, ""
		}
		return n, parseScopeType(&n, f)
	default:
		return n, "neither tnode, leaf nor alias"
	}
	return n, ""
}

func parseScopeType(n *Node, f []string) (why string) {
	var ok bool
	if n.Scope, ok = parseScope(f[0]); !ok {
		v, found := strings.CutPrefix(f[0], "scope=")
		u, err := strconv.ParseUint(v, 10, 8)
		if !found || err != nil {
			return "unknown scope"
		}
		n.Scope = Scope(u)
	}
	name := strings.Join(f[1:], " ")
	for i, s := range typeNames {
		if i > 0 && s == name {
			n.Type = RouteType(i)
			return ""
		}
	}
	u, err := strconv.ParseUint(strings.TrimPrefix(name, "type "), 10, 8)
	if err != nil || int(u) < len(typeNames) {
		return "unknown type"
	}
	n.Type = RouteType(u)
	return ""
}

func parseScope(s string) (Scope, bool) {
	switch s {
	case "universe", "global":
		return ScopeUniverse, true
	case "site":
		return ScopeSite, true
	case "link":
		return ScopeLink, true
	case "host":
		return ScopeHost, true
	case "nowhere":
		return ScopeNowhere, true
	}
	return 0, false
}
