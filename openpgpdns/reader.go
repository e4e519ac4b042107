package openpgpdns

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"io"
	"iter"
	"strconv"
)

// Limits of a [Reader] unless it is told otherwise.
const (
	// DefaultMaxCertSize is the largest certificate in octets.
	DefaultMaxCertSize = 16 << 20
	maxPackets         = 1 << 17
	maxUserIDs         = 1024
	readChunk          = 64 << 10
)

// Reader reads certificates from a key ring of any size, binary or armored
// (also several armored blocks with text between them), one at a time. It
// holds no more than one certificate and a buffer. It is for one goroutine.
//
//	ring -> [armor] -> packets -> grouped by primary key -> Cert
//
// A certificate that cannot be used (a version that is not supported, packets
// where none may be, too many octets) costs an error; reading goes on with the
// next. Reading ends after an error from which nobody could find the next
// packet again: octets that are no packet, a truncated packet; of an armored
// ring only that block ends. It also ends at secret keys.
//
// Limits: [DefaultMaxCertSize], 131,072 packets and 1,024 user IDs a
// certificate.
type Reader struct {
	src   io.Reader
	armor *armorReader

	buf     []byte
	r, w    int   // unread octets are buf[r:w]; a certificate under way starts at r
	base    int64 // offset in the ring of buf[0]
	srcErr  error // what ended the source, io.EOF included
	pending error // to be returned by the next call
	started bool
	armored bool // an armored block was found
	inBlock bool // reading one
	done    bool
	max     int
	number  int
	cert    Cert
	sha1    hash.Hash
	sha256  hash.Hash
}

// NewReader returns a Reader of the key ring in r. It reads ahead.
func NewReader(r io.Reader) *Reader {
	return &Reader{src: r, max: DefaultMaxCertSize, sha1: sha1.New(), sha256: sha256.New()}
}

// SetMaxCertSize changes the largest certificate that is accepted, in octets
// (default [DefaultMaxCertSize], at most 1 GiB). Call it before Next.
func (r *Reader) SetMaxCertSize(octets int) {
	r.max = min(max(octets, 64), 1<<30)
}

// Reset makes r read another ring and keeps its buffers and limits.
func (r *Reader) Reset(src io.Reader) {
	*r = Reader{src: src, max: r.max, buf: r.buf, sha1: r.sha1, sha256: r.sha256, cert: Cert{packets: r.cert.packets[:0]}}
}

// Next returns the next certificate. It is valid until the following call;
// see [Cert.Clone]. At the end of the ring the error is io.EOF. Any other error
// is an *[Error] that names the certificate and the offset; unless the next
// call returns io.EOF, the ring goes on behind it. In the steady state Next
// does not allocate.
func (r *Reader) Next() (*Cert, error) {
	if !r.started {
		r.started = true
		r.detectArmor()
	}
	for {
		if err := r.pending; err != nil {
			r.pending = nil
			return nil, err
		}
		if r.done {
			return nil, io.EOF
		}
		if r.armor != nil && !r.inBlock {
			if err := r.nextBlock(); err != nil {
				return nil, err
			}
			continue
		}
		c, err := r.next()
		if err != io.EOF {
			return c, err
		}
		r.inBlock = false
		r.done = r.armor == nil
	}
}

// ReadCerts yields the certificates of a ring, each with memory of its own,
// and the errors of those that cannot be used, as [Reader.Next] returns them.
func ReadCerts(src io.Reader) iter.Seq2[*Cert, error] {
	return func(yield func(*Cert, error) bool) {
		for c, err := range NewReader(src).All() {
			if err == nil {
				c = c.Clone()
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// All yields what [Reader.Next] returns, without io.EOF. A certificate is
// valid until the loop goes on.
func (r *Reader) All() iter.Seq2[*Cert, error] {
	return func(yield func(*Cert, error) bool) {
		for {
			c, err := r.Next()
			if err == io.EOF || !yield(c, err) {
				return
			}
		}
	}
}

// ParseCert reads exactly one certificate, binary or armored. The error wraps
// [ErrMalformed] if there is none or more than one.
func ParseCert(b []byte) (*Cert, error) {
	r := NewReader(bytes.NewReader(b))
	c, err := r.Next()
	if err == io.EOF {
		return nil, &Error{Err: ErrMalformed, Detail: "no certificate"}
	}
	if err != nil {
		return nil, err
	}
	c = c.Clone()
	if _, err := r.Next(); err == nil {
		return nil, &Error{Err: ErrMalformed, Detail: "more than one certificate"}
	} else if err != io.EOF {
		return nil, err
	}
	return c, nil
}

// fill makes at least n octets from position r.r on available, if the source
// has them, and reports whether it has. The buffer grows only as octets come,
// not because a header announces them.
func (r *Reader) fill(n int) bool {
	for r.w-r.r < n {
		if r.srcErr != nil {
			return false
		}
		if r.r > 0 && (r.r == r.w || r.w == len(r.buf)) {
			copy(r.buf, r.buf[r.r:r.w])
			r.base += int64(r.r)
			r.r, r.w = 0, r.w-r.r
		}
		if r.w == len(r.buf) {
			grown := make([]byte, max(2*len(r.buf), readChunk))
			copy(grown, r.buf[:r.w])
			r.buf = grown
		}
		in := r.src
		if r.armor != nil {
			in = r.armor
		}
		var m int
		for range 100 { // as many empty reads as bufio.Reader forgives
			m, r.srcErr = in.Read(r.buf[r.w:])
			if m != 0 || r.srcErr != nil {
				break
			}
		}
		r.w += m
		if m == 0 && r.srcErr == nil {
			r.srcErr = io.ErrNoProgress
		}
	}
	return true
}

// detectArmor looks at the first octets: a packet has bit 7 set, armor is text
// (perhaps after a byte order mark).
func (r *Reader) detectArmor() {
	if !r.fill(1) {
		return
	}
	const bom = "\xef\xbb\xbf"
	r.fill(len(bom) + 1)
	b := r.buf[r.r:r.w]
	if b[0] >= 0x80 {
		if len(b) <= len(bom) || string(b[:len(bom)]) != bom || b[len(bom)] >= 0x80 {
			return
		}
		b = b[len(bom):]
	}
	r.armor = newArmorReader(io.MultiReader(bytes.NewReader(bytes.Clone(b)), &restOf{r.src, r.srcErr}))
	r.r, r.w = 0, 0
}

// restOf goes on reading a source whose error, if any, is known already.
type restOf struct {
	src io.Reader
	err error
}

func (r *restOf) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	return r.src.Read(p)
}

// nextBlock moves to the next armored block; r.done says that there is none.
func (r *Reader) nextBlock() error {
	r.base += int64(r.w)
	r.r, r.w, r.srcErr = 0, 0, nil
	typ, err := r.armor.next()
	switch {
	case err == io.EOF:
		r.done = true
		if !r.armored {
			return r.fatal(0, ErrMalformed, "neither OpenPGP packets nor armor")
		}
		return nil
	case err != nil:
		return r.fatal(0, err, "")
	}
	r.armored = true
	switch typ {
	case armorPublic:
		r.inBlock = true
		return nil
	case armorPrivate:
		return r.fatal(0, ErrSecretKey, "")
	}
	return r.failed(0, ErrArmor, strconv.Quote(typ)+" is not a public key block")
}

func (r *Reader) at(pos int) int64 { return r.base + int64(pos) }

// fatal ends the ring with an error at the position pos of the buffer.
func (r *Reader) fatal(pos int, err error, detail string) error {
	r.done = true
	return r.failed(pos, err, detail)
}

// lost ends what can be read with this framing: the ring or, as each has a
// framing of its own, the armored block.
func (r *Reader) lost(pos int, err error, detail string) error {
	r.inBlock = false
	r.done = r.armor == nil
	return r.failed(pos, err, detail)
}

func (r *Reader) failed(pos int, err error, detail string) error {
	e := &Error{Certificate: r.number, Offset: r.at(pos), HasOffset: true, Err: err, Detail: detail}
	if r.cert.fprLen > 0 {
		e.Fingerprint = bytes.Clone(r.cert.Fingerprint())
	}
	return e
}

// sourceError is the error of a source that ended inside a packet.
func (r *Reader) sourceError() error {
	if r.srcErr == io.EOF {
		return ErrTruncated
	}
	return r.srcErr
}

// peek reads the packet header at offset n behind r.r.
func (r *Reader) peek(n int) (tag uint8, hdr int, body int64, f framing) {
	if r.w-r.r >= n+maxPacketHeaderLen {
		return header(r.buf[r.r+n : r.w])
	}
	for want := 2; ; want++ {
		r.fill(n + want)
		tag, hdr, body, f = header(r.buf[min(r.r+n, r.w):r.w])
		if f != frameShort || r.w-r.r < n+want {
			return tag, hdr, body, f
		}
	}
}

// next reads one certificate, or returns io.EOF at the end of the source.
func (r *Reader) next() (*Cert, error) {
	r.cert.fprLen = 0
	// Find the primary key.
	stray := int64(-1)
	var strayTag uint8
	for {
		if !r.fill(1) {
			if r.srcErr != io.EOF {
				return nil, r.lost(r.r, r.srcErr, "")
			}
			if stray >= 0 {
				return nil, r.strayError(stray, strayTag)
			}
			return nil, io.EOF
		}
		tag, hdr, body, f := r.peek(0)
		if tag == tagPublicKey && f == frameOK {
			break
		}
		switch {
		case f == frameBad:
			r.number++
			return nil, r.lost(r.r, ErrMalformed, "not an OpenPGP packet")
		case f == frameShort:
			r.number++
			return nil, r.lost(r.r, r.sourceError(), "inside a packet header")
		case tag == tagSecretKey || tag == tagSecretSubkey:
			r.number++
			return nil, r.fatal(r.r, ErrSecretKey, "")
		case f == frameIndeterminate:
			r.number++
			return nil, r.lost(r.r, ErrMalformed, "packet of indeterminate length")
		}
		if stray < 0 && (tag != tagMarker && tag != tagTrust && tag != tagPadding && tag < firstNonCritical || f == framePartial) {
			stray, strayTag = r.at(r.r), tag
		}
		if err := r.discard(hdr, body, f); err != nil {
			r.number++
			return nil, r.lost(r.r, err, "")
		}
	}
	if stray >= 0 {
		return nil, r.strayError(stray, strayTag)
	}
	return r.cert1()
}

func (r *Reader) strayError(offset int64, tag uint8) error {
	return &Error{Offset: offset, HasOffset: true, Err: ErrMalformed, Detail: "packet with tag " + strconv.Itoa(int(tag)) + " outside of a certificate"}
}

// cert1 reads the certificate whose primary key packet is at r.r.
func (r *Reader) cert1() (*Cert, error) {
	r.number++
	c := &r.cert
	*c = Cert{packets: c.packets[:0], number: r.number, offset: r.at(r.r)}
	n, users := 0, 0 // octets and user IDs of the certificate so far
	var keyID uint64
	for {
		if !r.fill(n + 1) {
			if r.srcErr != io.EOF {
				return nil, r.lost(r.r+n, r.srcErr, "")
			}
			break
		}
		tag, hdr, body, f := r.peek(n)
		if n > 0 && tag == tagPublicKey && (f == frameOK || f == frameShort) {
			break // the next certificate, if perhaps a truncated one
		}
		pos := r.r + n
		switch {
		case f == frameBad:
			return nil, r.lost(pos, ErrMalformed, "not an OpenPGP packet")
		case f == frameShort:
			return nil, r.lost(pos, r.sourceError(), "inside a packet header")
		case tag == tagSecretKey || tag == tagSecretSubkey:
			return nil, r.fatal(pos, ErrSecretKey, "")
		case f == frameIndeterminate:
			return nil, r.lost(pos, ErrMalformed, "packet of indeterminate length")
		case f == framePartial:
			return nil, r.giveUp(n, ErrMalformed, "partial body lengths in a key")
		case int64(n)+int64(hdr)+body > int64(r.max):
			return nil, r.giveUp(n, ErrTooLarge, "more than "+strconv.Itoa(r.max)+" octets")
		case len(c.packets) == maxPackets:
			return nil, r.giveUp(n, ErrTooLarge, "more than "+strconv.Itoa(maxPackets)+" packets")
		case tag == tagUserID && users == maxUserIDs:
			return nil, r.giveUp(n, ErrTooLarge, "more than "+strconv.Itoa(maxUserIDs)+" user IDs")
		case tag == 0:
			return nil, r.giveUp(n, ErrMalformed, "packet tag 0")
		case !belongs(tag):
			return nil, r.giveUp(n, ErrMalformed, "packet with tag "+strconv.Itoa(int(tag))+" in a key")
		}
		end := n + hdr + int(body)
		if !r.fill(end) {
			return nil, r.lost(r.r+n, r.sourceError(), "inside a packet")
		}
		p := packetRef{start: uint32(n), body: uint32(n + hdr), end: uint32(end), tag: tag}
		b := r.buf[r.r+n+hdr : r.r+end]
		switch {
		case n == 0:
			if err := r.fingerprint(b); err != nil {
				return nil, r.giveUp(n, err, primaryDetail(b))
			}
			keyID = c.keyID()
		case tag == tagSignature:
			p.readSignature(b, c.fpr[:c.fprLen], keyID)
		case tag == tagUserID:
			users++
		}
		c.packets = append(c.packets, p)
		n = end
	}
	c.data = r.buf[r.r : r.r+n : r.r+n]
	r.r += n
	return c, nil
}

// belongs reports whether a packet may be part of a certificate. Tags that are
// not critical may be, as nobody knows what they will mean.
func belongs(tag uint8) bool {
	switch tag {
	case tagSignature, tagPublicKey, tagMarker, tagTrust, tagUserID, tagPublicSubkey, tagUserAttribute, tagPadding:
		return true
	}
	return tag >= firstNonCritical
}

func primaryDetail(b []byte) string {
	if len(b) == 0 {
		return "empty primary key packet"
	}
	return "primary key of version " + strconv.Itoa(int(b[0]))
}

// fingerprint computes that of the primary key with the body b (RFC 9580
// section 5.5.4) into the certificate under way.
func (r *Reader) fingerprint(b []byte) error {
	if len(b) < 6 {
		return ErrMalformed
	}
	c := &r.cert
	c.version = b[0]
	switch c.version {
	case 4:
		if len(b) > 0xffff {
			return ErrMalformed
		}
		var room [512]byte
		if len(b) <= len(room)-3 {
			// Small keys, the most: on the stack.
			n := copy(room[3:], b) + 3
			room[0], room[1], room[2] = 0x99, byte(len(b)>>8), byte(len(b))
			sum := sha1.Sum(room[:n])
			copy(c.fpr[:], sum[:])
		} else {
			// The framing goes through fpr, which is on the heap already.
			c.fpr[0] = 0x99
			binary.BigEndian.PutUint16(c.fpr[1:], uint16(len(b)))
			r.sha1.Reset()
			r.sha1.Write(c.fpr[:3])
			r.sha1.Write(b)
			r.sha1.Sum(c.fpr[:0])
		}
		c.fprLen = 20
	case 6:
		c.fpr[0] = 0x9b
		binary.BigEndian.PutUint32(c.fpr[1:], uint32(len(b)))
		r.sha256.Reset()
		r.sha256.Write(c.fpr[:5])
		r.sha256.Write(b)
		r.sha256.Sum(c.fpr[:0])
		c.fprLen = 32
	default:
		return ErrVersion
	}
	return nil
}

// giveUp drops the certificate under way because of the packet at its octet n
// and skips to the next primary key, or to what next will report.
func (r *Reader) giveUp(n int, reason error, detail string) error {
	err := r.failed(r.r+n, reason, detail)
	r.r += n
	for first := true; r.fill(1); first = false {
		tag, hdr, body, f := r.peek(0)
		if !first && tag == tagPublicKey && f == frameOK || tag == tagSecretKey || tag == tagSecretSubkey ||
			f == frameBad || f == frameShort || f == frameIndeterminate {
			break
		}
		pos := r.at(r.r)
		if e := r.discard(hdr, body, f); e != nil {
			r.pending = r.lost(r.r, e, "inside the packet at octet "+strconv.FormatInt(pos, 10))
			break
		}
	}
	return err
}

// discard skips the packet at r.r, whatever its size.
func (r *Reader) discard(hdr int, body int64, f framing) error {
	r.r += hdr
	for {
		for body > 0 {
			if !r.fill(1) {
				return r.sourceError()
			}
			k := int(min(body, int64(r.w-r.r)))
			r.r += k
			body -= int64(k)
		}
		if f != framePartial {
			return nil
		}
		var n int
		for want := 1; ; want++ {
			r.fill(want)
			n, body, f = newLength(r.buf[r.r:r.w])
			if f != frameShort {
				break
			}
			if r.w-r.r < want {
				return r.sourceError()
			}
		}
		r.r += n
	}
}
