package radix6

import (
	"fmt"
	"unsafe"
)

// Stats describes the shape and the size of a tree. The counters named after
// Linux's are those of /proc/net/rt6_stats.
type Stats struct {
	// Nodes counts the nodes of the tree and of all trees over sources, their
	// roots included, the root of the tree itself not: Linux's fib_nodes.
	Nodes int
	// RouteNodes counts those that have routes of their own: Linux's
	// fib_route_nodes. The root never counts.
	RouteNodes int
	// BranchNodes counts the rest.
	BranchNodes int
	// Routes counts the routes: Linux's rt_entries.
	Routes int
	// Subtrees counts the prefixes with source-specific routes.
	Subtrees int
	// Depths counts, by the number of edges between it and the root, the
	// nodes of the tree of destinations that end a lookup.
	Depths []int
	// MaxDepth is the greatest such depth, TotalDepth the sum of all.
	MaxDepth, TotalDepth int
	// Bytes is what the tree's slices take, Live the part that is in use;
	// memory that values point to is not counted.
	Bytes, Live int
}

// AverageDepth returns the mean of the depths, 0 for an empty tree.
func (s Stats) AverageDepth() float64 {
	n := 0
	for _, d := range s.Depths {
		n += d
	}
	if n == 0 {
		return 0
	}
	return float64(s.TotalDepth) / float64(n)
}

// String returns three lines: nodes, routes, depth.
func (s Stats) String() string {
	return fmt.Sprintf("nodes %d (%d with routes, %d branches, %d source trees)\nroutes %d\ndepth average %.2f, max %d\n",
		s.Nodes, s.RouteNodes, s.BranchNodes, s.Subtrees, s.Routes, s.AverageDepth(), s.MaxDepth)
}

// Stats walks the tree and describes it.
func (t *Tree[V]) Stats() Stats {
	s := Stats{
		Nodes:       t.nodeCount,
		RouteNodes:  t.routeNodes,
		BranchNodes: t.nodeCount - t.routeNodes,
		Routes:      t.routeCount,
		Subtrees:    t.subtrees,
	}
	var v V
	const perNode = int(unsafe.Sizeof(node{}) + unsafe.Sizeof(key{}))
	perRoute := int(unsafe.Sizeof(routeRec{}) + unsafe.Sizeof(v))
	const perSub = int(unsafe.Sizeof(sub{}))
	s.Bytes = cap(t.nodes)*perNode + cap(t.routes)*perRoute + cap(t.subs)*perSub
	if len(t.nodes) == 0 {
		return s
	}
	s.Live = (t.nodeCount+2)*perNode + (t.routeCount+1)*perRoute + (t.subtrees+1)*perSub
	var walk func(i uint32, depth int)
	walk = func(i uint32, depth int) {
		if t.nodes[i].info&candidate != 0 {
			for len(s.Depths) <= depth {
				s.Depths = append(s.Depths, 0)
			}
			s.Depths[depth]++
			s.MaxDepth = max(s.MaxDepth, depth)
			s.TotalDepth += depth
		}
		for _, c := range t.nodes[i].child {
			if c != 0 {
				walk(c, depth+1)
			}
		}
	}
	walk(rootNode, 0)
	return s
}
