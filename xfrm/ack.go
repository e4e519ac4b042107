package xfrm

import (
	"fmt"
)

// AckError is the kernel's refusal of one request.
type AckError struct {
	Seq    uint32  // the request's sequence number
	Type   MsgType // the request's type
	Errno  Errno   // as the kernel gave it
	Text   string  // extended acknowledgement, may be empty
	Offset uint32  // of the culprit in the request, 0 if not told
	// Attr is the attribute at Offset, 0 if not known: see [AckError.Locate].
	Attr AttrType
	// MissingAttr is an attribute that the kernel missed, 0 if not told.
	MissingAttr AttrType
}

func (e *AckError) Error() string {
	s := "xfrm: " + e.Type.String() + ": "
	switch {
	case e.Text != "":
		s += fmt.Sprintf("%s (errno %d)", e.Text, int(e.Errno))
	default:
		s += e.Errno.Error()
	}
	if e.Attr != 0 {
		s += ", at attribute " + e.Attr.String()
	} else if e.Offset != 0 {
		s += fmt.Sprintf(", at offset %d", e.Offset)
	}
	if e.MissingAttr != 0 {
		s += ", missing attribute " + e.MissingAttr.String()
	}
	return s
}

// Unwrap returns the errno, so that errors.Is(err, syscall.EEXIST) works.
func (e *AckError) Unwrap() error { return e.Errno }

// Locate sets Attr to the attribute of the request that Offset points into.
// request is the message that was refused, header included.
func (e *AckError) Locate(request []byte) {
	m, _, err := FirstMessage(request)
	if err != nil || e.Offset == 0 || m.Type < NewSA || m.Type > MsgMigrateState {
		return
	}
	b := m.Body
	if !m.isDump() {
		if b, err = m.attrs(m.Type); err != nil {
			return
		}
	}
	end := sizeHeader + len(m.Body)
	for len(b) >= 4 {
		t, _, n := nextAttr(b)
		at := end - len(b)
		if n == 0 || int64(e.Offset) < int64(at) {
			return
		}
		if int64(e.Offset) < int64(at+n) {
			e.Attr = t
			return
		}
		b = b[n:]
	}
}

// Extended acknowledgement attributes (NLMSGERR_ATTR_*).
const (
	extMsg     AttrType = 1
	extOffset  AttrType = 2
	extMissing AttrType = 5
)

// ParseAck reads an acknowledgement (MsgError) or the end of a dump (MsgDone,
// which may carry an error too). It returns nil for success and an
// [*AckError] for a refusal; a message that is neither gives a [*FormatError].
func ParseAck(m Message) error {
	if m.Type != MsgError && m.Type != MsgDone {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	if len(m.Body) < 4 {
		if m.Type == MsgDone {
			return nil
		}
		return &FormatError{Type: m.Type, Err: ErrShort}
	}
	n := int32(ne.Uint32(m.Body))
	if n == 0 {
		return nil
	}
	e := &AckError{Seq: m.Seq, Errno: Errno(uint32(-n))}
	tlvs := m.Body[4:]
	if m.Type == MsgError {
		if len(m.Body) < 4+sizeHeader {
			return &FormatError{Type: m.Type, Err: ErrShort}
		}
		echo := m.Body[4:]
		l := int(min(ne.Uint32(echo), uint32(len(m.Body))))
		e.Type = MsgType(ne.Uint16(echo[4:]))
		e.Seq = ne.Uint32(echo[8:])
		if m.Flags&FlagCapped != 0 {
			l = sizeHeader
		}
		tlvs = echo[min(max(align(l), sizeHeader), len(echo)):]
	}
	if m.Flags&FlagTLVs == 0 {
		return e
	}
	for a, err := range Attrs(tlvs) {
		switch {
		case err != nil:
			return e
		case a.Type == extMsg:
			e.Text = cString(a.Data)
		case a.Type == extOffset && len(a.Data) >= 4:
			e.Offset = ne.Uint32(a.Data)
		case a.Type == extMissing && len(a.Data) >= 4:
			e.MissingAttr = AttrType(ne.Uint32(a.Data))
		}
	}
	return e
}

// cString is the text before the first NUL.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
