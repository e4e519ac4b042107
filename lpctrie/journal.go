package lpctrie

// A journal remembers the changes of a transaction so that they can be undone,
// and which prefixes they touched.
type journal[V any] struct {
	ops []op[V]
}

type opKind uint8

const (
	opInsert opKind = iota
	opRemove
	opReplace
)

// An op is one change of a leaf's list: r is the route that was added or the
// one that went away, at its position in the list.
type op[V any] struct {
	r    rec[V]
	at   int
	kind opKind
}

func (j *journal[V]) add(k opKind, at int, r rec[V]) {
	j.ops = append(j.ops, op[V]{r, at, k})
}

// undo takes back every change of the journal, the last one first. The routes
// are then as before; the shape of the trie may differ, since it depends on
// history.
func (t *Table[V]) undo(j *journal[V]) {
	t.log = nil
	for i := len(j.ops) - 1; i >= 0; i-- {
		o := &j.ops[i]
		leaf, parent := t.findLeaf(o.r.key)
		switch o.kind {
		case opInsert:
			t.removeAt(leaf, parent, o.at)
		case opRemove:
			t.insertAt(leaf, parent, o.at, o.r)
		case opReplace:
			t.replaceAt(leaf, o.at, o.r)
		}
	}
}
