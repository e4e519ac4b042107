package lpctrie

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// Sizes that the kernel's arithmetic uses on 64-bit machines, in bytes.
const (
	kernelLeaf, kernelTnode, kernelAlias, kernelPointer = 48, 40, 56, 8
)

// Stats describes the shape of a trie, as /proc/net/fib_triestat does.
type Stats struct {
	// TotalDepth is the sum over all leaves of the number of tnodes above.
	TotalDepth int
	MaxDepth   int
	Leaves     int
	Prefixes   int     // routes, every alias counted
	Tnodes     int     // "internal nodes"
	NodeBits   [32]int // tnodes by width: NodeBits[b] have 2^b children
	Pointers   int     // children of all tnodes, empty ones included
	Null       int     // empty ones
	// Skipped counts the doublings that Config.MaxBits forbade.
	Skipped uint64
	// Bytes is what the table's slices take, Live the part that is in use;
	// memory that values point to is not counted.
	Bytes, Live int
}

// AverageDepth returns the mean number of tnodes above a leaf, 0 for no leaves.
func (s Stats) AverageDepth() float64 {
	if s.Leaves == 0 {
		return 0
	}
	return float64(s.TotalDepth) / float64(s.Leaves)
}

// KernelBytes returns what the kernel says the same trie takes there.
func (s Stats) KernelBytes() int {
	return kernelLeaf*s.Leaves + kernelTnode*s.Tnodes + kernelAlias*s.Prefixes + kernelPointer*s.Pointers
}

// Stats describes the trie, for which it walks all of it.
func (t *Table[V]) Stats() Stats {
	s := Stats{Leaves: t.leaves, Prefixes: t.routes, Tnodes: t.tnodes, Skipped: t.skipped}
	var visit func(ref uint32, depth int)
	visit = func(ref uint32, depth int) {
		if ref&leafBit != 0 {
			s.TotalDepth += depth
			s.MaxDepth = max(s.MaxDepth, depth)
			return
		}
		_, width := t.shapeOf(ref)
		s.NodeBits[width]++
		s.Pointers += 1 << width
		for _, child := range t.nodes[ref+2 : ref+2+1<<width] {
			if child == 0 {
				s.Null++
			} else {
				visit(child, depth+1)
			}
		}
	}
	if t.root != 0 {
		visit(t.root, 0)
	}
	one, two := int(reflect.TypeFor[hot[V]]().Size()), int(reflect.TypeFor[cold]().Size())
	s.Bytes = one*cap(t.hot) + two*t.cold.room() + 4*cap(t.nodes)
	s.Live = (one+two)*t.routes + 4*t.liveWords
	return s
}

// TriestatHead is the first line of /proc/net/fib_triestat on 64-bit machines.
const TriestatHead = "Basic info: size of leaf: 48 bytes, size of tnode: 40 bytes.\n"

// Triestat returns the block that the kernel prints in /proc/net/fib_triestat
// for this table below its name ("Main:"), which is not part of it.
func (s Stats) Triestat() string {
	var b strings.Builder
	average := 0
	if s.Leaves > 0 {
		average = s.TotalDepth * 100 / s.Leaves // cut off, not rounded
	}
	fmt.Fprintf(&b, "\tAver depth:     %d.%02d\n", average/100, average%100)
	fmt.Fprintf(&b, "\tMax depth:      %d\n", s.MaxDepth)
	fmt.Fprintf(&b, "\tLeaves:         %d\n", s.Leaves)
	fmt.Fprintf(&b, "\tPrefixes:       %d\n", s.Prefixes)
	fmt.Fprintf(&b, "\tInternal nodes: %d\n\t", s.Tnodes)
	for width, n := range s.NodeBits {
		if n > 0 {
			fmt.Fprintf(&b, "  %d: %d", width, n)
		}
	}
	fmt.Fprintf(&b, "\n\tPointers: %d\n", s.Pointers)
	fmt.Fprintf(&b, "Null ptrs: %d\n", s.Null)
	fmt.Fprintf(&b, "Total size: %d  kB\n", (s.KernelBytes()+1023)/1024)
	return b.String()
}

// WriteTriestat writes the table's name ("Main:", "Id 100:") and block as in
// /proc/net/fib_triestat.
func (t *Table[V]) WriteTriestat(w io.Writer, name string) error {
	_, err := fmt.Fprintf(w, "%s\n%s", name, t.Stats().Triestat())
	return err
}

// A NamedStats is one block of /proc/net/fib_triestat.
type NamedStats struct {
	Name string // as written, without the colon: "Main", "Id 100"
	// AverageDepth in hundredths; the file does not say TotalDepth.
	AverageDepth int
	KB           int // "Total size"
	Stats
}

// ParseTriestat reads /proc/net/fib_triestat. Bytes, Live, Skipped and
// TotalDepth of the results stay zero. Counters, which some kernels print, are
// passed over. Errors are of type *[LineError] or the reader's own.
func ParseTriestat(r io.Reader) ([]NamedStats, error) {
	var out []NamedStats
	sc := bufio.NewScanner(r)
	number := func(s string) (int, bool) {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		return n, err == nil && n >= 0
	}
	line := 1
	for ; sc.Scan(); line++ {
		text := sc.Text()
		trimmed := strings.TrimSpace(text)
		if strings.HasPrefix(text, "Basic info:") || trimmed == "" {
			continue
		}
		name, rest, colon := strings.Cut(trimmed, ":")
		if !colon {
			continue // a counter, or a ruler of dashes
		}
		if rest == "" && text[0] != '\t' {
			if name != "Counters" {
				out = append(out, NamedStats{Name: name})
			}
			continue
		}
		if len(out) == 0 {
			return out, lineError(line, text, "figures before the name of a table")
		}
		s := &out[len(out)-1]
		ok := true
		switch name {
		case "Aver depth":
			whole, part, _ := strings.Cut(strings.TrimSpace(rest), ".")
			var a, b int
			var okB bool
			a, ok = number(whole)
			b, okB = number(part)
			ok = ok && okB && len(part) == 2
			s.AverageDepth = 100*a + b
		case "Max depth":
			s.MaxDepth, ok = number(rest)
		case "Leaves":
			s.Leaves, ok = number(rest)
		case "Prefixes":
			s.Prefixes, ok = number(rest)
		case "Internal nodes":
			s.Tnodes, ok = number(rest)
		case "Pointers":
			s.Pointers, ok = number(rest)
		case "Null ptrs":
			s.Null, ok = number(rest)
		case "Total size":
			s.KB, ok = number(strings.TrimSuffix(strings.TrimSpace(rest), "kB"))
		default:
			fields := strings.Fields(trimmed)
			for i := 0; ok && i+1 < len(fields); i += 2 {
				var width, n int
				width, ok = number(strings.TrimSuffix(fields[i], ":"))
				if ok = ok && width < len(s.NodeBits); ok {
					n, ok = number(fields[i+1])
					s.NodeBits[width] = n
				}
			}
			ok = ok && len(fields)%2 == 0
		}
		if !ok {
			return out, lineError(line, text, "not a line of fib_triestat")
		}
	}
	return out, scanError(sc, line)
}
