package radix6

// A journal remembers the changes of a transaction so that they can be undone,
// and which prefixes they touched.
type journal[V any] struct {
	ops []op[V]
}

type opKind uint8

const (
	opInsert  opKind = iota // behind the routes of the same metric
	opRemove                // the first of the same metric
	opReplace               // the value of the first of the same metric
)

// An op is one change: of the route p, which had or got the value v; for
// opReplace it had it before.
type op[V any] struct {
	p    parsed
	v    V
	kind opKind
}

func (j *journal[V]) add(k opKind, p parsed, v V) {
	if j != nil {
		j.ops = append(j.ops, op[V]{p, v, k})
	}
}

// undo takes back every change of the journal, the last one first.
func (t *Tree[V]) undo(j *journal[V]) {
	t.log = nil
	for i := len(j.ops) - 1; i >= 0; i-- {
		switch o := &j.ops[i]; o.kind {
		case opInsert:
			t.remove(o.p, true)
		case opRemove:
			t.insert(o.p, o.v, true)
		case opReplace:
			t.vals[t.getRoute(o.p)] = o.v
		}
	}
}
