package radix6

import "unsafe"

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
	// MaxDepth is the greatest such depth, MeanDepth the mean of all.
	MaxDepth  int
	MeanDepth float64
	// Bytes is the memory that the tree holds, including room for growth but
	// not what values refer to.
	Bytes int
	// LiveBytes is the part of it in use.
	LiveBytes int
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
	s.LiveBytes = (t.nodeCount+2)*perNode + (t.routeCount+1)*perRoute + (t.subtrees+1)*perSub
	sum, n := 0, 0
	var walk func(i uint32, depth int)
	walk = func(i uint32, depth int) {
		if t.nodes[i].info&candidate != 0 {
			for len(s.Depths) <= depth {
				s.Depths = append(s.Depths, 0)
			}
			s.Depths[depth]++
			s.MaxDepth = max(s.MaxDepth, depth)
			sum, n = sum+depth, n+1
		}
		for _, c := range t.nodes[i].child {
			if c != 0 {
				walk(c, depth+1)
			}
		}
	}
	walk(rootNode, 0)
	if n > 0 {
		s.MeanDepth = float64(sum) / float64(n)
	}
	return s
}
