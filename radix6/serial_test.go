package radix6

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox.example/internal/routegen"
)

// serialTables are trees that together have everything in their snapshots.
func serialTables(t testing.TB) (trees []*Tree[uint32], as [][]netip.Addr) {
	for i, ps := range [][]netip.Prefix{
		nil,
		{pfx("::/0")},
		routegen.IPv6(2000, 1),
		append(routegen.Hosts128(3000), routegen.Subnets48(2000, 1, 1)...),
		crowd(rand.New(rand.NewPCG(1, 1)), 500),
	} {
		tr := New[uint32](SourceLinux)
		for j, p := range ps {
			r := Route{Prefix: p}
			if i == 4 && j%3 == 0 {
				r.From = pfx("2001:db9::/32")
			}
			if err := tr.Add(r, uint32(j*i), ModeReplace); err != nil {
				t.Fatal(err)
			}
		}
		trees, as = append(trees, tr), append(as, append(borders(ps), ip("::"), ip("2001:db8::1")))
	}
	return trees, as
}

func encoded[V any](t testing.TB, s *Snapshot[V]) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Encode(&b, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSerialRoundTrip(t *testing.T) {
	trees, as := serialTables(t)
	for i, tr := range trees {
		for j, o := range allOptions {
			if testing.Short() && j != i%4 {
				continue
			}
			s := tr.CompileWith(o)
			data := encoded(t, s)
			again, err := Open[uint32](data, nil)
			if err != nil {
				t.Fatal(err)
			}
			sameAsTree(t, again, tr, as[i], as[i])
			if again.Len() != s.Len() || again.Entries() != s.Entries() || again.Layout() != s.Layout() || again.Bytes() != s.Bytes() {
				t.Error("numbers got lost")
			}
			if b := encoded(t, again); !bytes.Equal(b, data) {
				t.Error("a second writing differs")
			}
			if _, err := Open[uint64](data, nil); err != nil {
				t.Error("a larger type:", err)
			}
			if _, err := Open[string](data, nil); !errors.Is(err, ErrSnapshot) {
				t.Error("numbers as strings:", err)
			}
			if s.answers > 256 {
				if _, err := Open[uint8](data, nil); !errors.Is(err, ErrSnapshot) {
					t.Error("large numbers as uint8:", err)
				}
			}
		}
	}
}

func TestSerialValues(t *testing.T) {
	serialValues(t, func(i int) string { return strings.Repeat("x", i%300) })
	serialValues(t, func(i int) int64 { return int64(-i) })
	serialValues(t, func(i int) int8 { return int8(i) })
	serialValues(t, func(i int) uint64 { return 1<<63 + uint64(i) })
	tr := New[point](SourceOff)
	tr.Insert(pfx("2001:db8::/32"), point{1, 2, "a"})
	var b bytes.Buffer
	if err := tr.Compile().Encode(&b, nil); err == nil {
		t.Error("a struct needs a function")
	}
	appendPoint := func(b []byte, p point) []byte { return fmt.Appendf(b, "%d %d %s", p.X, p.Y, p.Name) }
	if err := tr.Compile().Encode(&b, appendPoint); err != nil {
		t.Fatal(err)
	}
	if _, err := Open[point](b.Bytes(), nil); err == nil {
		t.Error("a struct needs a function to be read")
	}
	s, err := Open(b.Bytes(), func(b []byte) (p point, err error) {
		_, err = fmt.Sscan(string(b), &p.X, &p.Y, &p.Name)
		return p, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := s.Lookup(ip("2001:db8::1")); !ok || p != (point{1, 2, "a"}) {
		t.Error(p, ok)
	}
	boom := errors.New("boom")
	if _, err := Open(b.Bytes(), func([]byte) (point, error) { return point{}, boom }); err != boom {
		t.Error(err)
	}
}

func serialValues[V comparable](t *testing.T, value func(int) V) {
	t.Helper()
	tr := New[V](SourceOff)
	ps := routegen.IPv6(700, 2)
	for i, p := range ps {
		tr.Insert(p, value(i))
	}
	s, err := Open[V](encoded(t, tr.CompileWith(CompileOptions{Prefixes: true})), nil)
	if err != nil {
		t.Fatal(err)
	}
	sameAsTree(t, s, tr, borders(ps), nil)
}

// Every cut and every flipped bit is noticed.
func TestSerialDamage(t *testing.T) {
	trees, _ := serialTables(t)
	data := encoded(t, trees[4].CompileWith(CompileOptions{Prefixes: true}))
	r := rand.New(rand.NewPCG(1, 1))
	n := 300
	if testing.Short() {
		n = 60
	}
	for i := range n {
		at := i
		if i > 100 {
			at = r.IntN(len(data))
		}
		if _, err := Open[uint32](data[:at], nil); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("cut at %d: %v", at, err)
		}
		bit := byte(1) << r.IntN(8)
		data[at] ^= bit
		if _, err := Open[uint32](data, nil); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("changed at %d: %v", at, err)
		}
		data[at] ^= bit
	}
	if _, err := Open[uint32](append(data, 0), nil); !errors.Is(err, ErrSnapshot) {
		t.Error("a byte too many:", err)
	}
}

// forge corrects the length and the checksum.
func forge(data []byte) {
	if len(data) >= headerBytes {
		binary.LittleEndian.PutUint64(data[16:], uint64(len(data)))
		binary.LittleEndian.PutUint32(data[12:], crc32.Checksum(data[16:], castagnoli()))
	}
}

// probe looks everything up that may lead astray.
func probe(s *Snapshot[uint32], r *rand.Rand) {
	var keys [64]Key
	var codes [64]uint32
	for range 4 {
		for i := range keys {
			keys[i] = Key{r.Uint64(), r.Uint64()}
			if r.IntN(2) == 0 {
				keys[i].Hi = 0x20010db8<<32 | keys[i].Hi&0xffffff
			}
			s.LookupKey(keys[i].Hi, keys[i].Lo)
			s.LookupPrefix(AddrOf(keys[i].Hi, keys[i].Lo))
			s.LookupFrom(AddrOf(keys[i].Hi, keys[i].Lo), AddrOf(keys[i].Lo, keys[i].Hi))
		}
		s.LookupCodes(keys[:], codes[:])
		for _, c := range codes {
			s.Value(c)
		}
	}
}

// Data forged with a right checksum may give wrong answers, never a panic.
func TestSerialForgery(t *testing.T) {
	trees, _ := serialTables(t)
	r := rand.New(rand.NewPCG(3, 3))
	rounds := 1000
	if testing.Short() {
		rounds = 150
	}
	var clean [][]byte
	for _, tr := range trees {
		for _, o := range allOptions {
			clean = append(clean, encoded(t, tr.CompileWith(o)))
		}
	}
	taken := 0
	for range rounds {
		data := append([]byte(nil), clean[r.IntN(len(clean))]...)
		for range 1 + r.IntN(4) {
			at := headerBytes + r.IntN(len(data)-headerBytes)
			switch r.IntN(4) {
			case 0: // the numbers of the part
				at = headerBytes + r.IntN(partNumbers*4)
			case 1: // what comes behind the 65,536 numbers of the top
				if behind := headerBytes + partNumbers*4 + 4<<16; behind < len(data) {
					at = behind + r.IntN(len(data)-behind)
				}
			}
			data[at] = byte(r.Uint32()) >> r.IntN(8)
		}
		forge(data)
		if s, err := Open[uint32](data, nil); err == nil {
			taken++
			probe(s, r)
		} else if !errors.Is(err, ErrSnapshot) {
			t.Fatal(err)
		}
	}
	if taken < rounds/20 {
		t.Errorf("only %d of %d forgeries were taken: the test tests little", taken, rounds)
	}
}

func FuzzOpen(f *testing.F) {
	trees, _ := serialTables(f)
	for _, tr := range trees[:3] {
		f.Add(encoded(f, tr.CompileWith(CompileOptions{})), []byte{1, 2, 3})
	}
	f.Add([]byte("rdx6snp\n"), []byte{})
	base := encoded(f, trees[4].CompileWith(CompileOptions{Prefixes: true}))
	f.Fuzz(func(t *testing.T, data, patch []byte) {
		if s, err := Open[uint32](data, nil); err == nil {
			probe(s, rand.New(rand.NewPCG(1, 1)))
		}
		// The same with a patched good one: three bytes of place, one of content.
		data = append([]byte(nil), base...)
		for ; len(patch) >= 4; patch = patch[4:] {
			at := headerBytes + (int(patch[0])<<16|int(patch[1])<<8|int(patch[2]))%(len(data)-headerBytes)
			data[at] = patch[3]
		}
		forge(data)
		if s, err := Open[uint32](data, nil); err == nil {
			probe(s, rand.New(rand.NewPCG(1, 1)))
		}
	})
}

// However often a forged snapshot refers to its tables, Open looks at each once.
func TestOpenLooksAtTablesOnce(t *testing.T) {
	var ps []netip.Prefix
	var vs []uint32
	for i := range uint64(4000) {
		ps = append(ps, key{(0x20010db8+i%2)<<32 | i<<16, 0}.prefix(48))
		vs = append(vs, uint32(i))
	}
	s, err := Compile(ps, vs, CompileOptions{Layout: Fast})
	if err != nil {
		t.Fatal(err)
	}
	var tables []uint32
	for _, r := range s.refs {
		if r>>kindShift == kindTable && !slices.Contains(tables, r) {
			tables = append(tables, r)
		}
	}
	if len(tables) != 2 {
		t.Fatalf("%d tables", len(tables))
	}
	for i := range 1 << 22 {
		s.refs = append(s.refs, tables[i&1])
	}
	start := time.Now()
	if why := s.check(); why != "" {
		t.Error(why)
	}
	if took := time.Since(start); took > 2*time.Second { // a table takes about a microsecond
		t.Errorf("it took %v", took)
	}
}

// References just outside an array are refused: assembly does not look again.
func TestOpenChecksBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 14))
	tr := New[uint32](SourceDraft)
	for i, p := range randomPrefixes(r, 40000) {
		rt := Route{Prefix: p}
		if i%100 == 0 {
			rt.From = p
		}
		if err := tr.Add(rt, uint32(i), ModeReplace); err != nil {
			t.Fatal(err)
		}
	}
	// A reference of a kind in refs, and the number of the first lower cell of a flat
	// table or of the upper cells of another.
	find := func(p *part, is func(ref uint32) bool) int { return slices.IndexFunc(p.refs, is) }
	kind := func(k uint32) func(uint32) bool { return func(ref uint32) bool { return ref>>kindShift == k } }
	topOf := func(p *part, flat bool) int {
		return slices.IndexFunc(p.top[:], func(n uint32) bool { return n&flatBit != 0 == flat })
	}
	// beyond makes the last entry of a cell be a number.
	beyond := func(c *cell, number int) { c.base = uint32(number - bits.OnesCount64(c.bits())) }
	entries := func(p *part) int { return (len(p.codes) - 4) / int(p.width) }
	// under is the first lower cell of a table with upper cells.
	under := func(p *part, table uint32) *cell {
		up := &p.upper[table*16]
		return &p.lower[up.base+up.lo&1]
	}
	both := map[string]func(p *part){
		"code": func(p *part) { p.refs[find(p, kind(kindCode))] = p.maxCode + 1 },
		"list": func(p *part) {
			p.refs[find(p, kind(kindList))] = kindList<<kindShift | uint32(len(p.lists)-listSpare)/listAlign + 1
		},
		"long":   func(p *part) { p.links[0] = kindOther<<kindShift | uint32(len(p.lists)-listSpare)/listAlign + 1 },
		"link":   func(p *part) { p.links[0] = kindTable<<kindShift | uint32(len(p.upper)/16) },
		"skip":   func(p *part) { p.refs[0] = kindOther<<kindShift | isSkip | uint32(len(p.skips)) },
		"below":  func(p *part) { p.skips[0].below = p.maxCode + 1 },
		"above":  func(p *part) { p.skips[0].above = p.maxCode + 1 },
		"child":  func(p *part) { p.skips[0].child = p.maxCode + 1 },
		"source": func(p *part) { p.sources[3].beyond = p.answers + 4 },
		"none":   func(p *part) { p.sources[3].n = 0 },
		"runs":   func(p *part) { p.sources[3].first = uint32(len(p.runs)) - p.sources[3].n + 1 },
		"run":    func(p *part) { p.runs[0].code = p.answers + 1 },
		"odd":    func(p *part) { p.refs[find(p, kind(kindTable))] |= isSkip },
	}
	compact := map[string]func(p *part){
		"top":       func(p *part) { p.top[9] = uint32(len(p.upper) / 16) },
		"flat top":  func(p *part) { p.top[9] = flatBit | uint32(len(p.lower)-1023) },
		"flat cell": func(p *part) { beyond(&p.lower[p.top[topOf(p, true)]&^flatBit+1023], len(p.refs)) },
		"upper":     func(p *part) { beyond(&p.upper[15], len(p.lower)) },
		"second":    func(p *part) { beyond(under(p, p.top[topOf(p, false)]), len(p.refs)) },
		"other":     func(p *part) { beyond(under(p, p.refs[find(p, kind(kindTable))]&numberMax), entries(p)) },
		"table":     func(p *part) { p.refs[find(p, kind(kindTable))] = kindTable<<kindShift | uint32(len(p.upper)/16) },
	}
	dense := map[string]func(p *part){
		"top":       func(p *part) { p.top[9] = uint32(len(p.refs)) },
		"all":       func(p *part) { p.top[9] = flatBit | uint32(len(p.refs)-1<<16+1) },
		"table":     func(p *part) { p.refs[find(p, kind(kindTable))] = kindTable<<kindShift | uint32(len(p.lower)-1023) },
		"flat cell": func(p *part) { beyond(&p.lower[p.refs[find(p, kind(kindTable))]&numberMax+1023], entries(p)) },
	}
	for l, own := range []map[string]func(p *part){Compact: compact, Fast: dense} {
		s := tr.CompileWith(CompileOptions{Layout: Layout(l)})
		if why := s.check(); why != "" {
			t.Fatal(why)
		}
		for _, spoils := range []map[string]func(p *part){both, own} {
			for name, spoil := range spoils {
				p, top := s.part, *s.top
				p.top, p.upper, p.lower, p.refs = &top, slices.Clone(p.upper), slices.Clone(p.lower), slices.Clone(p.refs)
				p.skips, p.links, p.sources, p.runs = slices.Clone(p.skips), slices.Clone(p.links), slices.Clone(p.sources), slices.Clone(p.runs)
				spoil(&p)
				if why := p.check(); why == "" {
					t.Errorf("layout %d: %s: not found", l, name)
				}
			}
		}
	}
}
