package lpctrie

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"reflect"
)

// The serialised form of a snapshot is its memory: a header and the arrays one
// after the other. The entries, which are most of it, are used where they lie,
// so that many processes can share them in a file mapped into memory. All
// numbers are little-endian.
//
//	 0  8  "lpcsnap\n"
//	 8  4  version, 2
//	12  4  CRC-32C of all that follows, to the end of the file
//	16  8  length of the file
//	24  1  layout     25  1  width of an entry     26  1  flags: 1 values are
//	inline, 2 there are lengths     27  1  0
//	28  4  routes     32  4  entries     36  4  largest code
//	40  4  nodes      44  4  number of the first deep entry
//	48  4  hash slots (a power of two or 0)   52  4  values in the list
//	56  8  length of the list in bytes
//	64     top (65,536 numbers of nodes in 2 bytes each, compact only), bits (4
//	       words of 8 bytes for each node), ends (4 words of 4 bytes for each),
//	       hash slots, entries with three spare bytes, deep starts, lengths, list
//	       of values
//
// Each value of the list is its length as a varint and its bytes.
const (
	serialMagic   = "lpcsnap\n"
	serialVersion = 2
	headerBytes   = 64
	flagInline    = 1
	flagLengths   = 2
)

type header struct {
	layout      Layout
	width       uint8
	inline      bool
	lengths     bool
	routes      uint32
	entries     uint32
	maxCode     uint32
	nodes       uint32
	deepFirst   uint32
	slots       uint32
	values      uint32
	valuesBytes uint64
}

const (
	topBytes  = 2 << 16
	bitsBytes = 4 * 8 // of a node
	endsBytes = 4 * 4
	slotBytes = 8
)

// sizes returns how long the arrays are: top, bits, ends, slots, entries,
// starts, lengths. They fit an int64 whatever the header says.
func (h *header) sizes() (n [7]int64) {
	if h.layout == Compact {
		n[0] = topBytes
	}
	n[1] = int64(h.nodes) * bitsBytes
	n[2] = int64(h.nodes) * endsBytes
	n[3] = int64(h.slots) * slotBytes
	n[4] = int64(h.entries)*int64(h.width) + 3
	n[5] = int64(h.entries) - int64(h.deepFirst)
	if h.lengths {
		n[6] = int64(h.entries)
	}
	return n
}

// bytes returns the length of header and arrays without the list of values.
func (h *header) bytes() int {
	total := int64(headerBytes)
	for _, n := range h.sizes() {
		total += n
	}
	return int(total)
}

// use makes the index of the arrays in a serialised form. What is in
// front of the entries is copied, the rest is not.
func (s *index) use(h header, data []byte) {
	s.header = h
	s.width, s.mask, s.deepFirst = uint32(h.width), uint32(1<<(8*h.width)-1), h.deepFirst
	at := int64(headerBytes)
	sizes := h.sizes()
	next := func(i int) []byte {
		from := at
		at += sizes[i]
		return data[from:at:at]
	}
	le := binary.LittleEndian
	if top := next(0); h.layout == Compact {
		s.top = new([1 << 16]uint16)
		for i := range s.top {
			s.top[i] = le.Uint16(top[2*i:])
		}
	}
	words, ends := next(1), next(2)
	s.bits, s.ends = make([]uint64, 4*int(h.nodes)), make([]uint32, 4*int(h.nodes))
	for i := range s.bits {
		s.bits[i], s.ends[i] = le.Uint64(words[8*i:]), le.Uint32(ends[4*i:])
	}
	if deep := next(3); h.slots > 0 {
		s.deep, s.deepShift = make([]slot, h.slots), shiftOf(int(h.slots))
		for i := range s.deep {
			s.deep[i] = slot{le.Uint32(deep[i*slotBytes:]), le.Uint32(deep[i*slotBytes+4:])}
		}
	}
	s.entries, s.starts = next(4), next(5)
	if h.lengths {
		s.lengths = next(6)
	}
}

// Encode writes the snapshot, for [Open]: format version 2, a header, arrays in
// little-endian order, a list of the values that are not inline, and a CRC-32C.
// A value of the list is written as what appendValue appends to its first
// argument; nil will do for integers and strings. The error is the writer's, or
// says that V needs appendValue.
func (s *Snapshot[V]) Encode(w io.Writer, appendValue func([]byte, V) []byte) error {
	var list, one []byte
	if !s.inline {
		if appendValue == nil {
			if appendValue = plainAppend[V](); appendValue == nil {
				return fmt.Errorf("lpctrie: values of type %v need a function to encode them", reflect.TypeFor[V]())
			}
		}
		for _, v := range s.values {
			one = appendValue(one[:0], v)
			list = binary.AppendUvarint(list, uint64(len(one)))
			list = append(list, one...)
		}
	}
	le := binary.LittleEndian
	arrays := make([]byte, 0, topBytes+int(s.header.nodes)*(bitsBytes+endsBytes)+len(s.deep)*slotBytes)
	if s.top != nil {
		for _, n := range s.top {
			arrays = le.AppendUint16(arrays, n)
		}
	}
	for _, w := range s.bits {
		arrays = le.AppendUint64(arrays, w)
	}
	for _, n := range s.ends {
		arrays = le.AppendUint32(arrays, n)
	}
	for _, sl := range s.deep {
		arrays = le.AppendUint32(le.AppendUint32(arrays, sl.id), sl.first)
	}
	body := [][]byte{arrays, s.entries, s.starts, s.lengths, list}
	h := s.header
	h.values, h.valuesBytes = uint32(len(s.values)), uint64(len(list))
	head := h.encode(h.bytes() + len(list))
	sum := crc32.Checksum(head[16:], castagnoli())
	for _, b := range body {
		sum = crc32.Update(sum, castagnoli(), b)
	}
	le.PutUint32(head[12:], sum)
	for _, b := range append([][]byte{head}, body...) {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func (h *header) encode(total int) []byte {
	b := make([]byte, headerBytes)
	copy(b, serialMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], serialVersion)
	le.PutUint64(b[16:], uint64(total))
	b[24], b[25] = uint8(h.layout), h.width
	if h.inline {
		b[26] |= flagInline
	}
	if h.lengths {
		b[26] |= flagLengths
	}
	for i, v := range []uint32{h.routes, h.entries, h.maxCode, h.nodes, h.deepFirst, h.slots, h.values} {
		le.PutUint32(b[28+4*i:], v)
	}
	le.PutUint64(b[56:], h.valuesBytes)
	return b
}

func decodeHeader(b []byte) (h header) {
	le := binary.LittleEndian
	h.layout, h.width = Layout(b[24]), b[25]
	h.inline, h.lengths = b[26]&flagInline != 0, b[26]&flagLengths != 0
	for i, v := range []*uint32{&h.routes, &h.entries, &h.maxCode, &h.nodes, &h.deepFirst, &h.slots, &h.values} {
		*v = le.Uint32(b[28+4*i:])
	}
	h.valuesBytes = le.Uint64(b[56:])
	return h
}

// Open returns the snapshot that [Snapshot.Encode] wrote. It uses the entries,
// those below a /24 too, where they are, so data must not change as long as the
// snapshot is in use; mapped into memory it can be shared by many processes. What
// leads to them is copied: 384 KiB and 48 bytes for each /16 with more than one
// answer, in the compact layout. Values that are not inline are made by decode,
// which must not keep its argument; nil will do for integers and strings. V need
// not be the type that was encoded, as long as its values can be made: an
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
	if len(data) < headerBytes || string(data[:8]) != serialMagic {
		return nil, bad("no header")
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != serialVersion {
		return nil, bad("version %d, this is version %d", v, serialVersion)
	}
	if n := binary.LittleEndian.Uint64(data[16:]); n != uint64(len(data)) {
		return nil, bad("%d bytes of %d", len(data), n)
	}
	if crc32.Checksum(data[16:], castagnoli()) != binary.LittleEndian.Uint32(data[12:]) {
		return nil, bad("the checksum is wrong")
	}
	h := decodeHeader(data)
	if h.layout > Fast || h.width < 1 || h.width > 4 || data[26]&^(flagInline|flagLengths) != 0 || data[27] != 0 ||
		h.entries < h.deepFirst || h.deepFirst == 0 || h.layout == Fast && (h.deepFirst != 1<<24 || h.nodes != 0) || h.nodes > 1<<16 ||
		h.maxCode >= 1<<(8*h.width)-1 || h.slots&(h.slots-1) != 0 || h.valuesBytes > uint64(len(data)) || h.inline && h.values != 0 {
		return nil, bad("impossible header")
	}
	total := int64(headerBytes) + int64(h.valuesBytes)
	for _, n := range h.sizes() {
		total += n
	}
	if total != int64(len(data)) {
		return nil, bad("arrays of %d bytes in %d", total, len(data))
	}
	s := &Snapshot[V]{inline: h.inline}
	s.asm = hasAsm()
	s.use(h, data)
	if why := s.check(); why != "" {
		return nil, bad("%s", why)
	}
	if s.top != nil {
		s.makeHints()
	}
	if h.inline {
		if !inlineKind[V]() {
			return nil, bad("the values are integers, not %v", reflect.TypeFor[V]())
		}
		if h.maxCode > 0 && uint64(h.maxCode-1) > maxOf[V]() {
			return nil, bad("the value %d does not fit %v", h.maxCode-1, reflect.TypeFor[V]())
		}
		s.special = s.mask
		return s, nil
	}
	if h.maxCode != h.values {
		return nil, bad("%d values for %d codes", h.values, h.maxCode)
	}
	if decode == nil {
		if decode = plainDecode[V](); decode == nil {
			return nil, fmt.Errorf("lpctrie: values of type %v need a function to decode them", reflect.TypeFor[V]())
		}
	}
	list := data[int64(len(data))-int64(h.valuesBytes):]
	if uint64(h.values) > uint64(len(list)) {
		return nil, bad("the list of values is too short")
	}
	s.values = make([]V, 0, h.values)
	for range h.values {
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

// check looks at every reference inside the arrays.
func (s *index) check() (why string) {
	h := &s.header
	if s.top != nil {
		for _, n := range s.top {
			if uint32(n) >= h.nodes {
				return "there is no node for a /16"
			}
		}
	}
	for i, end := range s.ends {
		if end >= h.deepFirst || end < uint32(bits.OnesCount64(s.bits[i])) || end-s.first(i/4) > 255 {
			return "a node refers to nothing"
		}
	}
	// Entries: codes up to the largest, all ones only above /24.
	deep := false
	for i := range h.entries {
		if c := s.entry(i); c > h.maxCode {
			if c != s.mask || i >= h.deepFirst {
				return "an entry refers to nothing"
			}
			deep = true
		}
	}
	if deep && h.slots == 0 {
		return "an entry refers to a hash that is not there"
	}
	empty := uint32(0)
	for _, sl := range s.deep {
		if sl.first == 0 {
			empty++
		} else if sl.first < h.deepFirst || uint64(sl.first)+uint64(sl.id&255)+1 > uint64(h.entries) {
			return "a hash slot refers to nothing"
		}
	}
	if h.slots > 0 && empty == 0 {
		return "the hash is full"
	}
	for _, l := range s.lengths {
		if l > 32 {
			return "a length above 32"
		}
	}
	return ""
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
