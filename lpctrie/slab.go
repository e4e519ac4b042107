package lpctrie

// Memory of a table. Two slices and a list of chunks hold everything and contain
// no pointers of their own, so that the garbage collector has nothing to scan
// (unless V has pointers):
//
//	hot, cold  one record per route; the first alias of a leaf is the leaf
//	nodes      the internal nodes ("tnodes") as words:
//
//	        n-3    n-2    n-1     n     n+1    n+2 ... n+2+2^bits-1
//	       empty  full  parent  key   shape   children
//
// A lookup touches n, n+1 and one child, which for small nodes share a cache
// line. shape is pos | bits<<8 | slen<<16. A child is 0 (none), the word
// offset n of a tnode, or leafBit | index of a record. A parent is 0 for the
// root. Freed tnodes are kept in lists by size; when more than a quarter of
// the slice is free it is compacted instead of grown.

const (
	leafBit  = 1 << 31
	nodeHead = 3            // words in front of key
	nodeBody = nodeHead + 2 // words besides the children
	maxWords = 1<<31 - 1
)

// A hot is the part of a record that lookups touch, a cold the rest, kept
// apart so that lookups share cache lines. info has moreBit set if next is not
// 0. The records of one leaf all have its key.
type hot[V any] struct {
	key, info uint32
	val       V
}

type cold struct {
	next     uint32 // following alias of the leaf, 0 at the end
	priority uint32
	table    uint32
}

// A rec is one route.
type rec[V any] struct {
	hot[V]
	cold
}

// info packs the suffix length, TOS, type and scope of a route.
func packInfo(slen, tos uint8, typ RouteType, scope Scope) uint32 {
	return uint32(slen) | uint32(tos)<<8 | uint32(typ)<<16 | uint32(scope)<<24
}

const (
	slenMask = 63
	moreBit  = 1 << 6
	tosMask  = 0xff00
)

func (r *hot[V]) slen() uint8           { return uint8(r.info & slenMask) }
func (r *hot[V]) tos() uint8            { return uint8(r.info >> 8) }
func (r *hot[V]) scope() Scope          { return Scope(r.info >> 24) }
func (r *hot[V]) typ() RouteType        { return RouteType(r.info >> 16) }
func (t *Table[V]) rec(i uint32) rec[V] { return rec[V]{t.hot[i], *t.cold.at(i)} }

// setRec stores a record together with what follows it.
func (t *Table[V]) setRec(i uint32, r rec[V], next uint32) {
	t.hot[i], *t.cold.at(i) = r.hot, r.cold
	t.link(i, next)
}

// link sets what follows a record.
func (t *Table[V]) link(i, next uint32) {
	t.cold.at(i).next = next
	t.hot[i].info &^= moreBit
	if next != 0 {
		t.hot[i].info |= moreBit
	}
}

func (t *Table[V]) route(i uint32) Route {
	r, c := &t.hot[i], t.cold.at(i)
	return Route{
		Prefix: prefixOf(r.key, r.slen()), Table: c.table, TOS: r.tos(),
		Type: r.typ(), Scope: r.scope(), Priority: c.priority,
	}
}

func nodePos(shape uint32) uint32  { return shape & 31 }
func nodeBits(shape uint32) uint32 { return shape >> 8 & 31 }
func nodeSlen(shape uint32) uint32 { return shape >> 16 }

func blockWords(bits uint32) int { return nodeBody + 1<<bits }

// newRec returns the index of an unused record.
func (t *Table[V]) newRec() uint32 {
	if i := t.freeRecs; i != 0 {
		t.freeRecs = t.cold.at(i).next
		return i
	}
	if len(t.hot) == 0 {
		t.hot = make([]hot[V], 1, 16) // index 0 means none
		t.cold.add()
	}
	if len(t.hot) == cap(t.hot) {
		t.hot = grown(t.hot, 1)
	}
	t.hot = t.hot[:len(t.hot)+1]
	t.cold.add()
	return uint32(len(t.hot) - 1)
}

func (t *Table[V]) freeRec(i uint32) {
	t.hot[i] = hot[V]{} // drops what V points to
	*t.cold.at(i) = cold{next: t.freeRecs}
	t.freeRecs = i
}

// grown returns the slice with room for n more elements: when it is large a
// fifth more than now.
func grown[T any](s []T, n int) []T {
	more := cap(s) / 5
	if cap(s) < 1<<14 {
		more = cap(s)
	}
	// In this form, a copy behind a make, what is copied over is not cleared.
	out := make([]T, cap(s)+max(n, more, 64))
	copy(out, s)
	return out[:len(s)]
}

// A coldList is a list of cold records in chunks, so that it can grow without
// being copied: what lookups do not need may be one step further away.
type coldList struct {
	chunks [][]cold // all full but the last
}

const coldChunk = 1 << 12

// at returns the record with a number.
func (l *coldList) at(i uint32) *cold { return &l.chunks[i/coldChunk][i%coldChunk] }

// add returns a new record at the end.
func (l *coldList) add() *cold {
	n := len(l.chunks)
	if n == 0 || len(l.chunks[n-1]) == coldChunk {
		size := coldChunk
		if n == 0 {
			size = 16
		}
		l.chunks = append(l.chunks, make([]cold, 0, size))
		n++
	}
	last := &l.chunks[n-1]
	if len(*last) == cap(*last) { // the first
		*last = append(make([]cold, 0, min(2*cap(*last), coldChunk)), *last...)
	}
	*last = (*last)[:len(*last)+1]
	return &(*last)[len(*last)-1]
}

// room returns for how many records there is memory.
func (l *coldList) room() (n int) {
	for _, c := range l.chunks {
		n += cap(c)
	}
	return n
}

// newNode returns a tnode without children. Key is cut to the bits above it.
func (t *Table[V]) newNode(key, pos, bits uint32) uint32 {
	start := t.takeBlock(bits)
	w := t.nodes[start : start+blockWords(bits)]
	clear(w)
	w[0] = 1 << bits
	if pos+bits < 32 {
		w[nodeHead] = key &^ (1<<(pos+bits) - 1)
	}
	w[nodeHead+1] = pos | bits<<8 | pos<<16
	t.tnodes++
	return uint32(start + nodeHead)
}

func (t *Table[V]) takeBlock(bits uint32) int {
	words := blockWords(bits)
	t.liveWords += words
	if b := t.freeBlocks[bits]; b != 0 {
		t.freeBlocks[bits] = t.nodes[b]
		return int(b)
	}
	if len(t.nodes) == 0 {
		t.nodes = append(t.nodes, 0) // offset 0 means none
	}
	start := len(t.nodes)
	if start+words > cap(t.nodes) {
		t.nodes = grown(t.nodes, words)
		t.wantCompact = true
	}
	t.nodes = t.nodes[:start+words]
	return start
}

func (t *Table[V]) freeNode(n uint32) {
	bits := nodeBits(t.nodes[n+1])
	start := n - nodeHead
	t.nodes[start] = t.freeBlocks[bits]
	t.freeBlocks[bits] = start
	t.liveWords -= blockWords(bits)
	t.tnodes--
}

// tidy runs between operations, when no offset is held by anybody: it gives
// back what deletions left behind and packs the tnodes when more than a
// quarter of their slice is free.
func (t *Table[V]) tidy() {
	if t.routes == 0 {
		if len(t.hot) > 0 {
			t.hot, t.cold, t.freeRecs = nil, coldList{}, 0
			t.nodes, t.freeBlocks, t.liveWords = nil, [32]uint32{}, 0
			t.wantCompact = false
		}
		return
	}
	if used := len(t.hot) - 1; used > 256 && t.routes < used/4 {
		t.packRecs()
	}
	if len(t.nodes) > 1<<10 && t.liveWords < len(t.nodes)/4 {
		t.wantCompact = true
	}
	if t.wantCompact {
		t.wantCompact = false
		if free := len(t.nodes) - t.liveWords; free > len(t.nodes)/4 {
			t.packNodes()
		}
	}
}

// packNodes copies the live tnodes into a slice that fits, in the order of a
// walk, which also puts neighbours next to each other.
func (t *Table[V]) packNodes() {
	out := make([]uint32, 1, 1+t.liveWords+t.liveWords/8)
	old := t.nodes
	var move func(ref, parent uint32) uint32
	move = func(ref, parent uint32) uint32 {
		if ref == 0 || ref&leafBit != 0 {
			return ref
		}
		words := blockWords(nodeBits(old[ref+1]))
		start := len(out)
		out = append(out, old[ref-nodeHead:int(ref)-nodeHead+words]...)
		n := uint32(start + nodeHead)
		out[n-1] = parent
		for i := start + nodeBody; i < start+words; i++ {
			out[i] = move(out[i], n)
		}
		return n
	}
	t.root = move(t.root, 0)
	t.nodes, t.freeBlocks = out, [32]uint32{}
}

// packRecs moves the live records into a slice that fits.
func (t *Table[V]) packRecs() {
	size := 1 + t.routes + t.routes/8
	oldHot, oldCold := t.hot, t.cold
	t.hot, t.cold, t.freeRecs = make([]hot[V], 1, size), coldList{}, 0
	t.cold.add()
	moveChain := func(ref uint32) uint32 {
		at := uint32(len(t.hot))
		for i := ref &^ leafBit; i != 0; i = oldCold.at(i).next {
			c := *oldCold.at(i)
			if c.next != 0 {
				c.next = uint32(len(t.hot) + 1)
			}
			t.hot = append(t.hot, oldHot[i])
			*t.cold.add() = c
		}
		return at | leafBit
	}
	var visit func(ref uint32) uint32
	visit = func(ref uint32) uint32 {
		switch {
		case ref == 0:
		case ref&leafBit != 0:
			return moveChain(ref)
		default:
			for i := ref + 2; i < ref+2+1<<nodeBits(t.nodes[ref+1]); i++ {
				t.nodes[i] = visit(t.nodes[i])
			}
		}
		return ref
	}
	t.root = visit(t.root)
}

// Pack lays the table's memory out in the order of addresses and gives back
// what is free. It takes about as long as a walk and makes lookups over far
// more routes than fit the processor's caches somewhat faster, until later
// changes spoil the order again. Nothing else about the table changes.
func (t *Table[V]) Pack() {
	if t.routes > 0 {
		t.packNodes()
		t.packRecs()
	}
	t.tidy()
}
