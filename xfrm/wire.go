package xfrm

import (
	"encoding/binary"
	"iter"
	"net/netip"
	"slices"
)

// ne is the kernel's byte order for everything but ports, SPIs and addresses.
var (
	ne = binary.NativeEndian
	be = binary.BigEndian
)

// Header holds what a request's netlink header carries besides its type and
// length. The zero value is a plain message with sequence 0 to the kernel.
type Header struct {
	Flags  uint16 // Flag*
	Seq    uint32
	PortID uint32 // 0 in a request: the kernel knows the sender
}

// Message is one netlink message. Body refers to the bytes it was found in.
type Message struct {
	Type MsgType
	Header
	Body []byte // fixed part and attributes, without the netlink header
}

// align rounds up to the netlink alignment of 4 octets.
func align(n int) int { return (n + 3) &^ 3 }

// Messages iterates over the messages of one datagram. A message whose
// length does not fit ends the iteration with a [*FormatError]; so does a
// rest that is too short for a header.
func Messages(b []byte) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for len(b) > 0 {
			m, n, err := FirstMessage(b)
			if err != nil {
				yield(Message{}, err)
				return
			}
			if !yield(m, nil) {
				return
			}
			b = b[n:]
		}
	}
}

// FirstMessage returns the message at the start of a datagram and the number
// of octets it takes, padding included. It allocates nothing.
func FirstMessage(b []byte) (m Message, n int, err error) {
	if len(b) < sizeHeader {
		return m, 0, &FormatError{Field: "header", Err: ErrShort}
	}
	l := ne.Uint32(b)
	if l < sizeHeader || uint64(l) > uint64(len(b)) {
		return m, 0, &FormatError{Type: MsgType(ne.Uint16(b[4:])), Field: "length", Err: ErrLength}
	}
	m.Type = MsgType(ne.Uint16(b[4:]))
	m.Flags = ne.Uint16(b[6:])
	m.Seq = ne.Uint32(b[8:])
	m.PortID = ne.Uint32(b[12:])
	m.Body = b[sizeHeader:l:l]
	return m, min(align(int(l)), len(b)), nil
}

// Attr is an attribute. Data refers to the bytes it was found in.
type Attr struct {
	Type AttrType
	Data []byte
}

// Attrs iterates over attributes. Malformed ones end the iteration with a
// [*FormatError]; up to three octets of padding at the end are skipped.
func Attrs(b []byte) iter.Seq2[Attr, error] {
	return func(yield func(Attr, error) bool) {
		for len(b) >= 4 {
			t, data, n := nextAttr(b)
			if n == 0 {
				yield(Attr{}, &FormatError{Attr: t, Err: ErrLength})
				return
			}
			if !yield(Attr{t, data}, nil) {
				return
			}
			b = b[n:]
		}
	}
}

// Flags of an attribute's type: nested content, network byte order.
const attrTypeMask = 1<<14 - 1

// nextAttr returns the first attribute of b, which holds at least 4 octets,
// and how far to advance: 0 if its length is impossible.
func nextAttr(b []byte) (AttrType, []byte, int) {
	l := int(ne.Uint16(b))
	t := AttrType(ne.Uint16(b[2:]) & attrTypeMask)
	if l < 4 || l > len(b) {
		return t, nil, 0
	}
	return t, b[4:l:l], min(align(l), len(b))
}

// attrs returns the attribute part of a message of type t and checks the
// fixed part's length.
func (m *Message) attrs(t MsgType) ([]byte, error) {
	n := fixed[t-NewSA]
	if len(m.Body) < n {
		return nil, &FormatError{Type: m.Type, Field: "fixed part", Err: ErrShort}
	}
	if n = align(n); n > len(m.Body) { // flushes and defaults end unpadded
		n = len(m.Body)
	}
	return m.Body[n:], nil
}

// Attributes returns the attributes that follow the fixed part of the
// message, for the types that this package knows. A dump request has no
// fixed part.
func (m Message) Attributes() iter.Seq2[Attr, error] {
	if m.Type < NewSA || m.Type > MsgMigrateState {
		return func(yield func(Attr, error) bool) {
			yield(Attr{}, &FormatError{Type: m.Type, Err: ErrType})
		}
	}
	if m.isDump() {
		return Attrs(m.Body)
	}
	b, err := m.attrs(m.Type)
	if err != nil {
		return func(yield func(Attr, error) bool) { yield(Attr{}, err) }
	}
	return Attrs(b)
}

func (m *Message) isDump() bool {
	return (m.Type == GetSA || m.Type == GetPolicy) && m.Flags&FlagDump == FlagDump
}

// grow extends b by n zero octets and returns the whole and the new part.
func grow(b []byte, n int) (all, part []byte) {
	l := len(b)
	b = slices.Grow(b, n)[:l+n]
	part = b[l : l+n : l+n]
	clear(part)
	return b, part
}

// begin appends a netlink header and n zero octets of fixed part. The length
// is set by finish.
func begin(b []byte, t MsgType, h Header, n int) (all, body []byte) {
	b, p := grow(b, sizeHeader+n)
	putHeader((*[sizeHeader]byte)(p), t, h)
	return b, p[sizeHeader:]
}

// putHeader writes a netlink header but for its length, which finish sets.
func putHeader(p *[sizeHeader]byte, t MsgType, h Header) {
	ne.PutUint16(p[4:], uint16(t))
	ne.PutUint16(p[6:], h.Flags)
	ne.PutUint32(p[8:], h.Seq)
	ne.PutUint32(p[12:], h.PortID)
}

// finish writes the length of the message that starts at offset start.
func finish(b []byte, start int) []byte {
	ne.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// appendAttr appends the header of an attribute and n zero octets for its
// content, plus padding, and returns the content's place.
func appendAttr(b []byte, t AttrType, n int) (all, data []byte) {
	b, p := grow(b, align(4+n))
	ne.PutUint16(p, uint16(4+n))
	ne.PutUint16(p[2:], uint16(t))
	return b, p[4 : 4+n]
}

// rawAttr is appendAttr for callers that write all of the content: only the
// padding is cleared.
func rawAttr(b []byte, t AttrType, n int) (all, data []byte) {
	l, size := len(b), align(4+n)
	if cap(b)-l < size {
		b = slices.Grow(b, size)
	}
	b = b[:l+size]
	p := b[l:]
	ne.PutUint32(p[size-4:], 0)
	ne.PutUint16(p, uint16(4+n))
	ne.PutUint16(p[2:], uint16(t))
	return b, p[4 : 4+n : 4+n]
}

// putAttrHeader writes the length of an attribute, header included, and its
// type.
func putAttrHeader(p *[4]byte, t AttrType, n int) {
	ne.PutUint16(p[:], uint16(n))
	ne.PutUint16(p[2:], uint16(t))
}

func appendU32(b []byte, t AttrType, v uint32) []byte {
	n := len(b)
	if cap(b)-n < 8 {
		b = slices.Grow(b, 8)
	}
	b = b[:n+8]
	p := (*[8]byte)(b[n:])
	putAttrHeader((*[4]byte)(p[:]), t, 8)
	ne.PutUint32(p[4:], v)
	return b
}

func appendU8(b []byte, t AttrType, v uint8) []byte {
	b, p := appendAttr(b, t, 1)
	p[0] = v
	return b
}

// AppendAttr appends an attribute with padding to the message that ends b.
// The caller corrects the message's length with [SetLength] afterwards.
func AppendAttr(b []byte, t AttrType, data []byte) []byte {
	b, p := rawAttr(b, t, len(data))
	copy(p, data)
	return b
}

// SetLength writes the length of the message that begins at offset start of
// b and extends to its end.
func SetLength(b []byte, start int) { finish(b, start) }

// Pad appends zero octets until the next message of a batch is aligned.
func Pad(b []byte) []byte {
	b, _ = grow(b, align(len(b))-len(b))
	return b
}

// putAddr writes an address in the kernel's form: IPv4 in the first 4 of 16
// octets. An invalid address stays zero.
func putAddr(p []byte, a netip.Addr) {
	// AppendBinary is the way without a detour through an array, which costs a
	// stall. The capacity keeps a zone out.
	_, _ = a.AppendBinary(p[:0:min(len(p), 16)])
}

// getAddr reads an address of a known family. The family alone decides,
// never the octets.
func getAddr(p []byte, f Family) netip.Addr {
	switch f {
	case IPv4:
		return netip.AddrFrom4([4]byte(p[:4]))
	case IPv6:
		return netip.AddrFrom16([16]byte(p[:16]))
	}
	return netip.Addr{}
}

// familyOf is the family of an address, Unspec if it is not valid.
func familyOf(a netip.Addr) Family {
	switch {
	case a.Is4():
		return IPv4
	case a.IsValid():
		return IPv6
	}
	return Unspec
}

// pairFamily is the family of two addresses of which one may be missing.
func pairFamily(a, b netip.Addr) (Family, error) {
	fa, fb := familyOf(a), familyOf(b)
	switch {
	case fa == fb || fb == Unspec:
		return fa, nil
	case fa == Unspec:
		return fb, nil
	}
	return 0, ErrFamily
}

// zeroAddr is the unspecified address of a family.
func zeroAddr(f Family) netip.Addr {
	switch f {
	case IPv4:
		return netip.IPv4Unspecified()
	case IPv6:
		return netip.IPv6Unspecified()
	}
	return netip.Addr{}
}

// knownNames are the names that need no allocation when they are parsed.
var knownNames = [...]string{
	"rfc4106(gcm(aes))", "cbc(aes)", "hmac(sha256)", "hmac(sha1)", "hmac(sha512)", "hmac(sha384)",
	"rfc7539esp(chacha20,poly1305)", "rfc4543(gcm(aes))", "rfc4309(ccm(aes))", "rfc3686(ctr(aes))", "xcbc(aes)",
	"cmac(aes)", "hmac(md5)", "hmac(rmd160)", "hmac(sm3)", "digest_null", "ecb(cipher_null)", "cipher_null",
	"cbc(des3_ede)", "cbc(des)", "cbc(cast5)", "cbc(blowfish)", "cbc(serpent)", "cbc(twofish)", "cbc(camellia)",
	"cbc(sm4)", "deflate", "lzs", "lzjh", "aes", "sha1", "sha256", "md5",
}

// setName stores a name of at most 64 octets, which ends at the first NUL,
// without allocating if it is the old one or well known.
func setName(s *string, p *[64]byte) {
	if n := len(*s); uint(n-1) >= uint(len(p)-1) || p[n] != 0 || string(p[:n]) != *s {
		newName(s, p[:])
	}
}

func newName(s *string, b []byte) {
	n := 0
	for n < len(b) && b[n] != 0 {
		n++
	}
	b = b[:n]
	for _, k := range &knownNames {
		if k == string(b) {
			*s = k
			return
		}
	}
	*s = string(b)
}

// Opt is a value that may be absent, for numbers whose zero means something.
// The zero value is absent.
type Opt[T comparable] struct {
	Value T
	Set   bool
}

// Some returns a present value.
func Some[T comparable](v T) Opt[T] { return Opt[T]{v, true} }

// Key is key material. It prints as a placeholder in every format; convert
// it to []byte to see it.
type Key []byte

const hidden = "<<Keys hidden>>"

// String returns a placeholder.
func (Key) String() string { return hidden }

// GoString returns a placeholder.
func (Key) GoString() string { return hidden }

// set stores a copy of b in the memory the key already has and clears what
// is left of the old one.
func (k *Key) set(b []byte) {
	if len(b) == len(*k) {
		copy(*k, b) // what is behind it was cleared when it became so long
		return
	}
	old := (*k)[:cap(*k)]
	if len(b) > len(old) {
		clear(old)
		*k = append(Key(nil), b...)
		return
	}
	clear(old[copy(old, b):])
	*k = old[:len(b)]
}

// Clear overwrites the key, with all the memory behind it, and empties it.
func (k *Key) Clear() {
	clear((*k)[:cap(*k)])
	*k = (*k)[:0]
}

// SetRequest writes the sequence number of the message at the start of b and
// adds flags to those it has. Batches use it.
func SetRequest(b []byte, seq uint32, flags uint16) {
	ne.PutUint16(b[6:], ne.Uint16(b[6:])|flags)
	ne.PutUint32(b[8:], seq)
}
