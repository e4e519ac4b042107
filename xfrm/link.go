package xfrm

import "net/netip"

// What the virtual devices of IPsec need of rtnetlink.
const (
	// RTMNewLink is the type of the message that [AppendLink] builds, of the
	// rtnetlink family.
	RTMNewLink MsgType = 16

	sizeIfInfo     = 16
	iflaIfName     = 3
	iflaMTU        = 4
	iflaLinkInfo   = 18
	iflaInfoKind   = 1
	iflaInfoData   = 2
	vtiLink        = 1
	vtiIKey        = 2
	vtiOKey        = 3
	vtiLocal       = 4
	vtiRemote      = 5
	vtiFwmark      = 6
	xfrmiLink      = 1
	xfrmiIfID      = 2
	xfrmiExternal  = 3
	maxInterface   = 15 // octets of an interface name
	flagCreateExcl = 0x600
)

// Link describes a virtual device that ties routing to IPsec: of kind "vti"
// (IPv4), "vti6" (IPv6) or "xfrm".
type Link struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	MTU  uint32 `json:"mtu,omitzero"` // 0: the kernel's choice

	// Index of the underlying device, 0 for none.
	Link uint32 `json:"link,omitzero"`

	// For vti and vti6. The keys are the marks of states and policies.
	Local  netip.Addr `json:"local,omitzero"`
	Remote netip.Addr `json:"remote,omitzero"`
	IKey   uint32     `json:"ikey,omitzero"`
	OKey   uint32     `json:"okey,omitzero"`
	Fwmark uint32     `json:"fwmark,omitzero"` // host order: mark of the outer packets

	// For xfrm: the interface id, of states and policies, or External for one
	// that takes it from each packet's metadata. The kernel refuses neither
	// and both.
	IfID     Opt[uint32] `json:"if_id,omitzero"`
	External bool        `json:"external,omitzero"`

	// KindNUL ends the kind with a NUL, as newer versions of iproute2 do. The
	// kernel takes both.
	KindNUL bool `json:"-"`
}

// AppendLink appends an RTM_NEWLINK message that creates the device, for a
// socket of NETLINK_ROUTE. h.Flags should be FlagRequest|FlagAck; NLM_F_CREATE
// and NLM_F_EXCL are added.
func AppendLink(b []byte, h Header, l *Link) ([]byte, error) {
	start := len(b)
	h.Flags |= flagCreateExcl
	b, _ = begin(b, RTMNewLink, h, sizeIfInfo)
	if l.Name == "" || len(l.Name) > maxInterface {
		return b[:start], &FormatError{Field: "interface name", Err: ErrRange}
	}
	if l.MTU != 0 {
		b = appendU32(b, iflaMTU, l.MTU)
	}
	b, p := appendAttr(b, iflaIfName, len(l.Name)+1)
	copy(p, l.Name)
	info := len(b)
	b, _ = appendAttr(b, iflaLinkInfo, 0)
	n := len(l.Kind)
	if l.KindNUL {
		n++
	}
	b, p = appendAttr(b, iflaInfoKind, n)
	copy(p, l.Kind)
	data := len(b)
	b, _ = appendAttr(b, iflaInfoData, 0)
	var err error
	switch l.Kind {
	case "vti":
		b, err = appendVTI(b, l, IPv4)
	case "vti6":
		b, err = appendVTI(b, l, IPv6)
	case "xfrm":
		b = appendXfrmi(b, l)
	default:
		err = &FormatError{Field: "kind", Err: ErrType}
	}
	if err != nil {
		return b[:start], err
	}
	if len(b) == data+4 { // no options at all
		b = b[:data]
	} else {
		ne.PutUint16(b[data:], uint16(len(b)-data))
	}
	ne.PutUint16(b[info:], uint16(len(b)-info))
	return finish(b, start), nil
}

// appendVTI appends the options of a vti, which come all or, if none is set,
// not at all. Keys and addresses are in network byte order.
func appendVTI(b []byte, l *Link, f Family) ([]byte, error) {
	if !l.Local.IsValid() && !l.Remote.IsValid() && l.IKey|l.OKey|l.Fwmark|l.Link == 0 {
		return b, nil
	}
	for _, k := range [...]struct {
		t AttrType
		v uint32
	}{{vtiIKey, l.IKey}, {vtiOKey, l.OKey}} {
		var p []byte
		b, p = appendAttr(b, k.t, 4)
		be.PutUint32(p, k.v)
	}
	n := 16
	if f == IPv4 {
		n = 4
	}
	for _, a := range [...]struct {
		t AttrType
		v netip.Addr
	}{{vtiLocal, l.Local}, {vtiRemote, l.Remote}} {
		if !a.v.IsValid() || a.v.IsUnspecified() {
			continue
		}
		if familyOf(a.v) != f {
			return b, &FormatError{Field: "tunnel address", Err: ErrFamily}
		}
		var p []byte
		b, p = appendAttr(b, a.t, n)
		putAddr(p, a.v)
	}
	b = appendU32(b, vtiFwmark, l.Fwmark)
	if l.Link != 0 {
		b = appendU32(b, vtiLink, l.Link)
	}
	return b, nil
}

func appendXfrmi(b []byte, l *Link) []byte {
	if l.External {
		b, _ = appendAttr(b, xfrmiExternal, 0)
	}
	if l.IfID.Set {
		b = appendU32(b, xfrmiIfID, l.IfID.Value)
	}
	if l.Link != 0 {
		b = appendU32(b, xfrmiLink, l.Link)
	}
	return b
}

// Parse reads an RTM_NEWLINK message about a device of one of the three
// kinds: a request or the kernel's notification or answer. A message about
// another kind of device is an error that wraps [ErrType]. Kinds with and
// without a final NUL are accepted.
func (l *Link) Parse(m Message) error {
	if m.Type != RTMNewLink {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	if len(m.Body) < sizeIfInfo {
		return &FormatError{Field: "link", Err: ErrShort}
	}
	*l = Link{}
	var index uint32
	var data []byte
	err := linkAttrs(m.Body[sizeIfInfo:], func(t AttrType, d []byte) {
		switch t {
		case iflaIfName:
			l.Name = cString(d)
		case iflaMTU:
			if len(d) >= 4 {
				l.MTU = ne.Uint32(d)
			}
		case 5: // IFLA_LINK
			if len(d) >= 4 {
				index = ne.Uint32(d)
			}
		case iflaLinkInfo:
			data = d
		}
	})
	if err != nil {
		return err
	}
	info := data
	data = nil
	if err := linkAttrs(info, func(t AttrType, d []byte) {
		switch t {
		case iflaInfoKind:
			l.Kind = cString(d)
			l.KindNUL = len(d) > len(l.Kind)
		case iflaInfoData:
			data = d
		}
	}); err != nil {
		return err
	}
	l.Link = index
	switch l.Kind {
	case "vti":
		return linkAttrs(data, func(t AttrType, d []byte) { l.vtiAttr(t, d, IPv4) })
	case "vti6":
		return linkAttrs(data, func(t AttrType, d []byte) { l.vtiAttr(t, d, IPv6) })
	case "xfrm":
		return linkAttrs(data, func(t AttrType, d []byte) {
			switch {
			case t == xfrmiExternal:
				l.External = true
			case t == xfrmiIfID && len(d) >= 4:
				l.IfID = Some(ne.Uint32(d))
			case t == xfrmiLink && len(d) >= 4:
				l.Link = ne.Uint32(d)
			}
		})
	}
	return &FormatError{Field: "kind", Err: ErrType}
}

func (l *Link) vtiAttr(t AttrType, d []byte, f Family) {
	if len(d) < 4 {
		return
	}
	n := 4
	if f == IPv6 {
		n = 16
	}
	switch t {
	case vtiLink:
		l.Link = ne.Uint32(d)
	case vtiIKey:
		l.IKey = be.Uint32(d)
	case vtiOKey:
		l.OKey = be.Uint32(d)
	case vtiLocal:
		if len(d) >= n {
			l.Local = getAddr(d, f)
		}
	case vtiRemote:
		if len(d) >= n {
			l.Remote = getAddr(d, f)
		}
	case vtiFwmark:
		l.Fwmark = ne.Uint32(d)
	}
}

func linkAttrs(b []byte, f func(AttrType, []byte)) error {
	for len(b) >= 4 {
		t, d, n := nextAttr(b)
		if n == 0 {
			return &FormatError{Field: "link attribute", Err: ErrLength}
		}
		f(t, d)
		b = b[n:]
	}
	return nil
}
