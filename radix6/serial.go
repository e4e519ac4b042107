package radix6

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"reflect"
)

// The serialised form of a snapshot is its memory: a header and the arrays one
// after the other. Codes and lists, which are most of it, are used where they
// lie, so that processes can share them in a file mapped into memory. All
// numbers are little-endian.
//
//	 0  8  "rdx6snp\n"
//	 8  4  version, 2
//	12  4  CRC-32C of all that follows, to the end of the file
//	16  8  length of the file
//	24  1  layout     25  1  flags: 1 values are inline, 2 there are lengths
//	26  2  0
//	28  4  routes     32  4  entries     36  4  values in the list
//	40  8  length of the list in bytes
//	48     the index of the values; that of the lengths, if any; the list of
//	       values, each its length as a varint and its bytes
//
// An index is the length of each of its arrays, its numbers and the arrays:
//
//	 0  4  upper cells  4  4  lower cells  8  4  references  12  4  bytes of codes
//	16  4  bytes of lists  20  4  skips  24  4  links  28  4  source lists
//	32  4  runs of sources  36  4  width  40  4  largest code  44  4  largest
//	answer  48  4  1 if dense
//	52     top (65,536 numbers), upper, lower, references, skips, links, source
//	       lists, runs, codes, lists
//
// The references of a dense one, of which most are like those before them, are
// the number of pairs and the pairs: a reference and how often it stands there.
const (
	serialMagic   = "rdx6snp\n"
	serialVersion = 2
	headerBytes   = 48
	partNumbers   = 13
	flagInline    = 1
	flagLengths   = 2

	cellBytes   = 12
	skipBytes   = 48
	sourceBytes = 12
	runBytes    = 20
)

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func appendCells(b []byte, cells []cell) []byte {
	for _, c := range cells {
		b = binary.LittleEndian.AppendUint32(b, c.lo)
		b = binary.LittleEndian.AppendUint32(b, c.hi)
		b = binary.LittleEndian.AppendUint32(b, c.base)
	}
	return b
}

func appendWords(b []byte, words []uint32) []byte {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func appendKey(b []byte, k key) []byte {
	b = binary.LittleEndian.AppendUint64(b, k.hi)
	return binary.LittleEndian.AppendUint64(b, k.lo)
}

// encode appends the part.
func (p *part) encode(b []byte) []byte {
	dense := 0
	if p.dense {
		dense = 1
	}
	for _, n := range [partNumbers]int{len(p.upper), len(p.lower), len(p.refs), len(p.codes), len(p.lists), len(p.skips), len(p.links),
		len(p.sources), len(p.runs), int(p.width), int(p.maxCode), int(p.answers), dense} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = appendWords(b, p.top[:])
	b = appendCells(appendCells(b, p.upper), p.lower)
	if p.dense {
		at := len(b)
		b = appendWords(b, []uint32{0})
		for i, n := 0, 0; i < len(p.refs); i += n {
			for n = 1; i+n < len(p.refs) && p.refs[i+n] == p.refs[i]; n++ {
			}
			b = appendWords(b, []uint32{p.refs[i], uint32(n)})
		}
		binary.LittleEndian.PutUint32(b[at:], uint32((len(b)-at)/8))
	} else {
		b = appendWords(b, p.refs)
	}
	for _, s := range p.skips {
		b = appendKey(appendKey(b, s.path), s.mask)
		b = appendWords(b, []uint32{uint32(s.digits), s.below, s.above, s.child})
	}
	b = appendWords(b, p.links)
	for _, s := range p.sources {
		b = appendWords(b, []uint32{s.first, s.n, s.beyond})
	}
	for _, r := range p.runs {
		b = binary.LittleEndian.AppendUint32(appendKey(b, r.start), r.code)
	}
	b = append(b, p.codes...)
	return append(b, p.lists...)
}

// A cutter takes a serialised form apart; what is not there reads as zero and
// is remembered.
type cutter struct {
	data  []byte
	short bool
}

func (c *cutter) bytes(n int64) []byte {
	if n < 0 || n > int64(len(c.data)) {
		c.short, c.data = true, nil
		return nil
	}
	b := c.data[:n:n]
	c.data = c.data[n:]
	return b
}

func (c *cutter) word() uint32 {
	if b := c.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (c *cutter) long() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cutter) words(n uint32) []uint32 {
	b := c.bytes(int64(n) * 4)
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// pairs reads n words of a dense index's references. It is nil if they are not
// as many, or more than there can be.
func (c *cutter) pairs(n uint32) []uint32 {
	b := c.bytes(int64(c.word()) * 8)
	if n > (denseMax+1)<<16 {
		return nil
	}
	w := make([]uint32, 0, n)
	for ; len(b) > 0; b = b[8:] {
		ref, times := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		if uint64(len(w))+uint64(times) > uint64(n) {
			return nil
		}
		for range times {
			w = append(w, ref)
		}
	}
	if uint32(len(w)) != n {
		return nil
	}
	return w
}

func (c *cutter) cells(n uint32) []cell {
	b := c.bytes(int64(n) * cellBytes)
	s := make([]cell, len(b)/cellBytes)
	for i := range s {
		e := b[i*cellBytes:][:cellBytes]
		s[i] = cell{binary.LittleEndian.Uint32(e), binary.LittleEndian.Uint32(e[4:]), binary.LittleEndian.Uint32(e[8:])}
	}
	return s
}

// decode reads a part.
func (c *cutter) decode(p *part) (why string) {
	var n [partNumbers]uint32
	for i := range n {
		n[i] = c.word()
	}
	p.width, p.maxCode, p.answers, p.dense = n[9], n[10], n[11], n[12] == 1
	if p.dense && p.width != 4 || p.width < 1 || p.width > 4 || n[12] > 1 || p.maxCode > codeMax || uint64(p.answers)+uint64(n[7]) != uint64(p.maxCode) {
		return "impossible header"
	}
	p.mask = uint32(1<<(8*p.width) - 1)
	top := c.words(1 << 16)
	if c.short {
		return "it is too short"
	}
	p.top = (*[1 << 16]uint32)(top)
	p.asm, p.wide = hasAsm(), hasWide()
	p.upper, p.lower = c.cells(n[0]), c.cells(n[1])
	if p.dense {
		if p.refs = c.pairs(n[2]); p.refs == nil {
			return "references are missing"
		}
	} else {
		p.refs = c.words(n[2])
	}
	sk := cutter{data: c.bytes(int64(n[5]) * skipBytes)}
	p.skips = make([]skip, len(sk.data)/skipBytes)
	for i := range p.skips {
		s := &p.skips[i]
		s.path, s.mask = key{sk.long(), sk.long()}, key{sk.long(), sk.long()}
		digits := sk.word()
		if digits > 7 {
			return "a skip is too long"
		}
		s.digits = uint8(digits)
		s.below, s.above, s.child = sk.word(), sk.word(), sk.word()
	}
	p.links = c.words(n[6])
	so := cutter{data: c.bytes(int64(n[7]) * sourceBytes)}
	p.sources = make([]sourceList, len(so.data)/sourceBytes)
	for i := range p.sources {
		p.sources[i] = sourceList{so.word(), so.word(), so.word()}
	}
	ru := cutter{data: c.bytes(int64(n[8]) * runBytes)}
	p.runs = make([]run, len(ru.data)/runBytes)
	for i := range p.runs {
		p.runs[i] = run{key{ru.long(), ru.long()}, ru.word()}
	}
	p.codes, p.lists = c.bytes(int64(n[3])), c.bytes(int64(n[4]))
	if c.short {
		return "it is too short"
	}
	return p.check()
}

// check looks at every reference inside the arrays, so that no lookup can
// leave them. What lists and codes say is not looked at: no content makes a
// search of a list leave it and what may follow it, and codes are looked at
// when they lead further.
func (p *part) check() (why string) {
	entries := (len(p.codes) - 4) / int(p.width)
	if len(p.codes) < 4 || len(p.lists) < listSpare {
		return "spare bytes are missing"
	}
	if max(len(p.lower), len(p.upper)) > 1<<30 { // a batch has their offsets in words
		return "too many cells"
	}
	// Whether tables lead to references (of the second digit) or to codes.
	second, other := make([]bool, len(p.upper)/16), make([]bool, len(p.upper)/16)
	within := func(c *cell, limit int) bool {
		lo, hi := c.base+uint32(c.lo&1), c.base+uint32(bits.OnesCount64(c.bits()))
		return lo <= hi && uint64(hi) < uint64(limit)
	}
	refersTo := func(cells []cell, limit int) bool {
		for i := range cells {
			if !within(&cells[i], limit) {
				return false
			}
		}
		return true
	}
	// flats looks at tables with a lower cell for every block, of which many may
	// begin at the same cells: it counts once for each how many from there on
	// lead somewhere.
	flats := func(limit int) func(n uint32) bool {
		var good []uint32
		return func(n uint32) bool {
			if good == nil {
				good = make([]uint32, len(p.lower)+1)
				for i := len(p.lower) - 1; i >= 0; i-- {
					if within(&p.lower[i], limit) {
						good[i] = good[i+1] + 1
					}
				}
			}
			return int64(n) < int64(len(good)) && good[n] >= 1024
		}
	}
	flatRefs, flatCodes := flats(len(p.refs)), flats(entries)
	last := ^p.top[0]
	for _, t := range p.top {
		if t == last {
			continue
		}
		last = t
		switch n := t &^ flatBit; {
		case p.dense && t == n:
			if int64(n) >= int64(len(p.refs)) {
				return "a reference is not there"
			}
		case p.dense:
			if int64(n)+1<<16 > int64(len(p.refs)) {
				return "a reference is not there"
			}
		case t == n:
			if int64(n) >= int64(len(second)) {
				return "a table is not there"
			}
			second[n] = true
		default:
			if !flatRefs(n) {
				return "a cell leads nowhere"
			}
		}
	}
	ref := func(r uint32) bool {
		list := func(number uint32) bool { return int64(number)*listAlign+listSpare <= int64(len(p.lists)) }
		switch r >> kindShift {
		case kindCode:
			return r <= p.maxCode
		case kindList:
			return list(r & offsetMax)
		case kindTable:
			if n := r & numberMax; r&isSkip == 0 && int(n) < len(other) {
				other[n] = true
				return true
			}
			return false
		}
		if r&isSkip != 0 {
			return int(r&numberMax) < len(p.skips)
		}
		return list(r & numberMax)
	}
	last = 0
	for _, r := range p.refs {
		if r == last {
			continue
		}
		if last = r; p.dense && r>>kindShift == kindTable {
			if r&isSkip != 0 || !flatCodes(r&numberMax) {
				return "a cell leads nowhere"
			}
		} else if !ref(r) {
			return "a reference leads nowhere"
		}
	}
	for _, r := range p.links {
		if !ref(r) {
			return "a reference leads nowhere"
		}
	}
	for i := range p.skips {
		if s := &p.skips[i]; s.digits == 0 || s.below > p.maxCode || s.above > p.maxCode || !ref(s.child) {
			return "a skip leads nowhere"
		}
	}
	for t := range second {
		if !second[t] && !other[t] {
			continue
		}
		for i := range p.upper[t*16 : t*16+16] {
			up := &p.upper[t*16+i]
			if !within(up, len(p.lower)) {
				return "a cell leads nowhere"
			}
			low := p.lower[up.base+uint32(up.lo&1) : up.base+uint32(bits.OnesCount64(up.bits()))+1]
			if second[t] && !refersTo(low, len(p.refs)) || other[t] && !refersTo(low, entries) {
				return "a cell leads nowhere"
			}
		}
	}
	for i, s := range p.sources {
		if s.n == 0 || uint64(s.first)+uint64(s.n) > uint64(len(p.runs)) || s.beyond > p.answers+uint32(i) {
			return "a source list leads nowhere"
		}
	}
	for _, r := range p.runs {
		if r.code > p.answers {
			return "a source has no answer"
		}
	}
	return ""
}

// Encode writes the snapshot, for [Open]: format version 2, a header, arrays in
// little-endian order, a list of the values that are not inline, and a CRC-32C. It
// is put together in memory and written at once. A value of the list is written
// as what appendValue appends to its first argument; nil will do for integers and
// strings. The error is the writer's, or says that V needs appendValue.
func (s *Snapshot[V]) Encode(w io.Writer, appendValue func([]byte, V) []byte) error {
	var list, one []byte
	if !s.inline {
		if appendValue == nil {
			if appendValue = plainAppend[V](); appendValue == nil {
				return fmt.Errorf("radix6: values of type %v need a function to encode them", reflect.TypeFor[V]())
			}
		}
		for _, v := range s.values {
			one = appendValue(one[:0], v)
			list = binary.AppendUvarint(list, uint64(len(one)))
			list = append(list, one...)
		}
	}
	b := make([]byte, headerBytes, headerBytes+2*(partNumbers*4)+s.Bytes()+len(list))
	copy(b, serialMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], serialVersion)
	b[24] = uint8(s.layout)
	if s.inline {
		b[25] |= flagInline
	}
	if s.lengths != nil {
		b[25] |= flagLengths
	}
	le.PutUint32(b[28:], uint32(s.routes))
	le.PutUint32(b[32:], uint32(s.entries))
	le.PutUint32(b[36:], uint32(len(s.values)))
	le.PutUint64(b[40:], uint64(len(list)))
	b = s.encode(b)
	if s.lengths != nil {
		b = s.lengths.encode(b)
	}
	b = append(b, list...)
	le.PutUint64(b[16:], uint64(len(b)))
	le.PutUint32(b[12:], crc32.Checksum(b[16:], castagnoli()))
	_, err := w.Write(b)
	return err
}

// Open returns the snapshot that [Snapshot.Encode] wrote. It uses the codes and
// the lists, which hold most routes, where they are, so data must not change as
// long as the snapshot is in use; mapped into memory it can be shared by many
// processes. What leads to them is copied. Values that are not inline are made by
// decode, which must not keep its argument; nil will do for integers and strings.
// V need not be the type that was encoded, as long as its values can be made: an
// integer type must hold the largest value.
//
// It fails with [ErrSnapshot] if the data is not a snapshot, of another
// version, cut off or altered, or if its values do not fit V; it checks every
// reference inside, so that even data forged with a right checksum cannot make a
// lookup panic. An error of decode is returned as it is, and a V that needs
// decode is an error too.
func Open[V any](data []byte, decode func([]byte) (V, error)) (*Snapshot[V], error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrSnapshot, fmt.Sprintf(format, args...))
	}
	le := binary.LittleEndian
	if len(data) < headerBytes || string(data[:8]) != serialMagic {
		return nil, bad("no header")
	}
	if v := le.Uint32(data[8:]); v != serialVersion {
		return nil, bad("version %d, this is version %d", v, serialVersion)
	}
	if n := le.Uint64(data[16:]); n != uint64(len(data)) {
		return nil, bad("%d bytes of %d", len(data), n)
	}
	if crc32.Checksum(data[16:], castagnoli()) != le.Uint32(data[12:]) {
		return nil, bad("the checksum is wrong")
	}
	flags, count := data[25], le.Uint32(data[36:])
	listBytes := le.Uint64(data[40:])
	if data[24] > uint8(Fast) || flags&^(flagInline|flagLengths) != 0 || data[26]|data[27] != 0 || listBytes > uint64(len(data)-headerBytes) ||
		le.Uint32(data[28:])|le.Uint32(data[32:]) > 1<<31-1 {
		return nil, bad("impossible header")
	}
	s := &Snapshot[V]{words: plainWords(), inline: flags&flagInline != 0, layout: Layout(data[24]), routes: int(le.Uint32(data[28:])), entries: int(le.Uint32(data[32:]))}
	list := data[uint64(len(data))-listBytes:]
	c := cutter{data: data[headerBytes : uint64(len(data))-listBytes]}
	if why := c.decode(&s.part); why != "" {
		return nil, bad("%s", why)
	}
	if s.dense && s.layout != Fast {
		return nil, bad("impossible layout")
	}
	if flags&flagLengths != 0 {
		s.lengths = new(part)
		if why := c.decode(s.lengths); why != "" {
			return nil, bad("lengths: %s", why)
		}
		if s.lengths.answers != 129 {
			return nil, bad("lengths: %d of them", s.lengths.answers)
		}
	}
	if len(c.data) > 0 {
		return nil, bad("%d bytes too many", len(c.data))
	}
	if s.inline {
		if !inlineKind[V]() {
			return nil, bad("the values are integers, not %v", reflect.TypeFor[V]())
		}
		if s.answers == 0 || uint64(s.answers-1) > min(maxInline, maxOf[V]()) || count != 0 || listBytes != 0 {
			return nil, bad("the value %d does not fit %v", int64(s.answers)-1, reflect.TypeFor[V]())
		}
		s.direct = s.answers
		return s, nil
	}
	if s.answers != count || uint64(count) > listBytes {
		return nil, bad("%d values in %d bytes for %d codes", count, listBytes, s.answers)
	}
	if decode == nil {
		if decode = plainDecode[V](); decode == nil {
			return nil, fmt.Errorf("radix6: values of type %v need a function to decode them", reflect.TypeFor[V]())
		}
	}
	s.values = make([]V, 0, count)
	for range count {
		n, k := binary.Uvarint(list)
		if k <= 0 || n > uint64(len(list)-k) {
			return nil, bad("the list of values is cut off")
		}
		v, err := decode(list[k : k+int(n) : k+int(n)])
		if err != nil {
			return nil, err
		}
		s.values = append(s.values, v)
		list = list[k+int(n):]
	}
	if len(list) > 0 {
		return nil, bad("%d bytes behind the list of values", len(list))
	}
	return s, nil
}

// plainAppend and plainDecode encode integers and strings.
func plainAppend[V any]() func([]byte, V) []byte {
	switch {
	case inlineKind[V]():
		return func(b []byte, v V) []byte { return binary.LittleEndian.AppendUint64(b, inlineNumber(v)) }
	case reflect.TypeFor[V]().Kind() == reflect.String:
		return func(b []byte, v V) []byte { return append(b, reflect.ValueOf(v).String()...) }
	}
	return nil
}

func plainDecode[V any]() func([]byte) (V, error) {
	t := reflect.TypeFor[V]()
	switch {
	case inlineKind[V]():
		width := t.Bits()
		signed := reflect.Zero(t).CanInt()
		return func(b []byte) (v V, err error) {
			if len(b) != 8 {
				return v, fmt.Errorf("%w: an integer of %d bytes", ErrSnapshot, len(b))
			}
			n := binary.LittleEndian.Uint64(b)
			if n>>(width-1)>>1 != 0 {
				return v, fmt.Errorf("%w: the value %d does not fit %v", ErrSnapshot, n, t)
			}
			p := reflect.ValueOf(&v).Elem()
			if signed {
				p.SetInt(int64(n<<(64-width)) >> (64 - width))
			} else {
				p.SetUint(n)
			}
			return v, nil
		}
	case t.Kind() == reflect.String:
		return func(b []byte) (v V, err error) {
			reflect.ValueOf(&v).Elem().SetString(string(b))
			return v, nil
		}
	}
	return nil
}
