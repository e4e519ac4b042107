package xfrm

import (
	"net/netip"
	"slices"
)

// Template is what a policy requires of the states that transform its
// packets. The zero value of Family takes that of the addresses, or the
// selector's where they are not valid.
type Template struct {
	Src    netip.Addr `json:"src,omitzero"`
	Dst    netip.Addr `json:"dst,omitzero"`
	SPI    uint32     `json:"spi,omitzero"` // 0 for any
	Family Family     `json:"family,omitzero"`
	Proto  Proto      `json:"proto"`
	Mode   Mode       `json:"mode"`
	ReqID  uint32     `json:"reqid,omitzero"`
	Share  Share      `json:"share,omitzero"`
	Level  Level      `json:"level,omitzero"`
	// Algorithms, by the kernel's numbers, that a state may not use. On the
	// wire these masks say the opposite, so the zero value permits all.
	NoAuth uint32 `json:"no_auth,omitzero"`
	NoEnc  uint32 `json:"no_enc,omitzero"`
	NoComp uint32 `json:"no_comp,omitzero"`
}

// put writes struct xfrm_user_tmpl, every octet of it. fallback is the
// selector's family.
func (t *Template) put(p []byte, fallback Family) error {
	p = p[:sizeTmpl]
	f, err := pairFamily(t.Dst, t.Src)
	switch {
	case err != nil:
		return err
	case f == Unspec && t.Family == Unspec:
		f = fallback
	case f == Unspec:
		f = t.Family
	case t.Family != Unspec && t.Family != f:
		return ErrFamily
	}
	putWhole((*[16]byte)(p[0:]), &t.Dst)
	be.PutUint32(p[16:], t.SPI)
	ne.PutUint64(p[20:], 0)
	p[20] = byte(t.Proto)
	ne.PutUint16(p[24:], uint16(f))
	putWhole((*[16]byte)(p[28:]), &t.Src)
	ne.PutUint32(p[44:], t.ReqID)
	p[48], p[49], p[50], p[51] = byte(t.Mode), byte(t.Share), byte(t.Level), 0
	ne.PutUint32(p[52:], ^t.NoAuth)
	ne.PutUint32(p[56:], ^t.NoEnc)
	ne.PutUint32(p[60:], ^t.NoComp)
	return nil
}

func (t *Template) get(p *[sizeTmpl]byte) error {
	f := Family(ne.Uint16(p[24:]))
	switch f {
	case IPv4:
		t.Dst, t.Src = netip.AddrFrom4([4]byte(p[0:])), netip.AddrFrom4([4]byte(p[28:]))
	case IPv6:
		getWhole(&t.Dst, (*[16]byte)(p[0:]))
		getWhole(&t.Src, (*[16]byte)(p[28:]))
	case Unspec:
		t.Dst, t.Src = netip.Addr{}, netip.Addr{}
	default:
		return ErrFamily
	}
	t.SPI = be.Uint32(p[16:])
	t.Proto = Proto(p[20])
	t.Family = f
	t.ReqID = ne.Uint32(p[44:])
	t.Mode, t.Share, t.Level = Mode(p[48]), Share(p[49]), Level(p[50])
	t.NoAuth, t.NoEnc, t.NoComp = ^ne.Uint32(p[52:]), ^ne.Uint32(p[56:]), ^ne.Uint32(p[60:])
	return nil
}

// MaxTemplates is the largest number of templates of one policy.
const MaxTemplates = 6

// Policy says what happens to the packets of a selector. The zero value is
// an inbound policy that allows everything of an unspecified family. Slices
// belong to the policy: [Policy.Parse] copies into them and reuses their
// memory.
type Policy struct {
	Sel       Selector     `json:"sel"`
	Dir       Dir          `json:"dir"`
	Type      PolicyType   `json:"ptype"`
	Index     uint32       `json:"index,omitzero"` // the kernel's number, 0 to let it choose; its low 3 bits are Dir
	Priority  uint32       `json:"priority"`       // the lowest wins
	Action    Action       `json:"action"`
	Flags     PolicyFlags  `json:"flags,omitzero"`
	Share     Share        `json:"share,omitzero"`
	Lifetime  Lifetime     `json:"lifetime,omitzero"`
	Mark      Mark         `json:"mark,omitzero"`
	IfID      uint32       `json:"if_id,omitzero"` // xfrm interface, 0 for none
	SecCtx    SecCtx       `json:"sec_ctx,omitzero"`
	Offload   Opt[Offload] `json:"offload,omitzero"`
	Templates []Template   `json:"templates,omitempty"` // at most 6, applied in this order

	Cur   Counters `json:"cur,omitzero"`    // read only, from the kernel
	Other []Attr   `json:"other,omitempty"` // attributes without a field above, sent again at the end
}

// AppendNewPolicy appends a request to create a policy. The kernel refuses an
// existing one (EEXIST). The error is a [*FormatError], and b is then
// returned as it was.
func AppendNewPolicy(b []byte, h Header, p *Policy) ([]byte, error) {
	return appendPolicy(b, NewPolicy, h, p, p.Type != PolicyMain, nil)
}

// AppendUpdPolicy appends a request to create a policy or to replace it.
func AppendUpdPolicy(b []byte, h Header, p *Policy) ([]byte, error) {
	return appendPolicy(b, UpdPolicy, h, p, p.Type != PolicyMain, nil)
}

// put writes struct xfrm_userpolicy_info, every octet of it.
func (p *Policy) put(b []byte) error {
	b = b[:sizePolicy]
	if err := p.Sel.put(b); err != nil {
		return fieldError("selector", err)
	}
	p.Lifetime.put((*[sizeLftCfg]byte)(b[polLft:]))
	p.Cur.put(b[polCur:])
	ne.PutUint32(b[polPriority:], p.Priority)
	ne.PutUint32(b[polIndex:], p.Index)
	b[polDir], b[polAction], b[polFlags], b[polShare] = byte(p.Dir), byte(p.Action), byte(p.Flags), byte(p.Share)
	for i := polShare + 1; i < sizePolicy; i++ { // 4 octets of padding, or none
		b[i] = 0
	}
	return nil
}

func (p *Policy) get(b *[sizePolicy]byte) error {
	if err := p.Sel.get((*[sizeSelector]byte)(b[:]), Unspec); err != nil {
		return fieldError("selector", err)
	}
	p.Lifetime.get((*[sizeLftCfg]byte)(b[polLft:]))
	p.Cur.get((*[sizeLftCur]byte)(b[polCur:]))
	p.Priority, p.Index = ne.Uint32(b[polPriority:]), ne.Uint32(b[polIndex:])
	p.Dir, p.Action, p.Flags, p.Share = Dir(b[polDir]), Action(b[polAction]), PolicyFlags(b[polFlags]), Share(b[polShare])
	return nil
}

func appendPolType(b []byte, t PolicyType) []byte {
	b, p := appendAttr(b, AttrPolicyType, sizePolType)
	p[0] = byte(t)
	return b
}

func appendTemplates(b []byte, ts []Template, f Family) ([]byte, error) {
	if len(ts) == 0 {
		return b, nil
	}
	if len(ts) > maxAttr/sizeTmpl {
		return b, &FormatError{Attr: AttrTemplate, Err: ErrRange}
	}
	b, d := rawAttr(b, AttrTemplate, sizeTmpl*len(ts))
	for i := range ts {
		if err := ts[i].put(d[sizeTmpl*i:], f); err != nil {
			return b, &FormatError{Attr: AttrTemplate, Field: "address", Err: err}
		}
	}
	return b, nil
}

// getTemplates reads templates into the memory of ts.
func getTemplates(d []byte, ts []Template) ([]Template, error) {
	if len(d)%sizeTmpl != 0 {
		return ts, &FormatError{Attr: AttrTemplate, Err: ErrLength}
	}
	n := len(d) / sizeTmpl
	if cap(ts) < n {
		ts = make([]Template, n)
	}
	ts = ts[:n]
	for i := range ts {
		if err := ts[i].get((*[sizeTmpl]byte)(d[sizeTmpl*i : sizeTmpl*(i+1)])); err != nil {
			return ts[:0], &FormatError{Attr: AttrTemplate, Field: "family", Err: err}
		}
	}
	return ts, nil
}

// appendPolicy appends a policy message, with XFRMA_POLICY_TYPE if withType
// is set. tail is the order of the attributes after it where a command gives
// one.
func appendPolicy(b []byte, t MsgType, h Header, p *Policy, withType bool, tail []AttrType) ([]byte, error) {
	start, n := len(b), sizeHeader+fixed[t-NewSA]
	b = slices.Grow(b, n+100+sizeTmpl*min(len(p.Templates), MaxTemplates))[:start+n]
	d := b[start:]
	putHeader((*[sizeHeader]byte)(d), t, h)
	if d = d[sizeHeader:]; len(d) > sizePolicy {
		clear(d[sizePolicy:])
	}
	err := p.put(d)
	if err == nil && tail == nil {
		tail = policyOrder
	}
	if err == nil && withType {
		b = appendPolType(b, p.Type)
	}
	for _, a := range tail {
		if err != nil {
			break
		}
		switch a {
		case AttrTemplate:
			b, err = appendTemplates(b, p.Templates, p.Sel.EffectiveFamily())
		case AttrSecCtx:
			if p.SecCtx != (SecCtx{}) {
				b, err = appendSecCtx(b, &p.SecCtx)
			}
		case AttrMark:
			if p.Mark != (Mark{}) {
				b = appendMark(b, p.Mark)
			}
		case AttrIfID:
			if p.IfID != 0 {
				b = appendU32(b, AttrIfID, p.IfID)
			}
		case AttrOffload:
			if p.Offload.Set {
				b = appendOffload(b, p.Offload.Value)
			}
		}
	}
	if err == nil {
		b, err = appendOther(b, p.Other)
	}
	if err != nil {
		return b[:start], typed(err, t)
	}
	return finish(b, start), nil
}

var policyOrder = []AttrType{AttrTemplate, AttrMark, AttrSecCtx, AttrIfID, AttrOffload}

// Parse reads a NEWPOLICY or UPDPOLICY message, or the DELPOLICY notification
// of the kernel, into the policy. Everything is overwritten. It allocates
// only where the memory of the policy's slices does not suffice. The error is
// a [*FormatError]; the policy's content is then undefined.
func (p *Policy) Parse(m Message) error {
	switch m.Type {
	case NewPolicy, UpdPolicy:
		if len(m.Body) < sizePolicy {
			return typed(fieldError("fixed part", ErrShort), m.Type)
		}
		if err := p.parse((*[sizePolicy]byte)(m.Body), m.Body[sizePolicy:]); err != nil {
			return typed(err, m.Type)
		}
		return nil
	case DelPolicy:
		rest, err := m.attrs(DelPolicy)
		if err != nil {
			return err
		}
		for b := rest; len(b) >= 4; {
			t, d, n := nextAttr(b)
			if n == 0 {
				return &FormatError{Type: DelPolicy, Attr: t, Err: ErrLength}
			}
			if t == AttrPolicy {
				if len(d) < sizePolicy {
					return &FormatError{Type: DelPolicy, Attr: t, Err: ErrShort}
				}
				return typed(p.parse((*[sizePolicy]byte)(d), rest), DelPolicy)
			}
			b = b[n:]
		}
		return &FormatError{Type: DelPolicy, Attr: AttrPolicy, Err: ErrMissing}
	}
	return &FormatError{Type: m.Type, Err: ErrType}
}

func (p *Policy) parse(fixedPart *[sizePolicy]byte, b []byte) error {
	if err := p.get(fixedPart); err != nil {
		return err
	}
	p.Type, p.Mark, p.IfID, p.Offload = 0, Mark{}, 0, Opt[Offload]{}
	p.SecCtx.DOI, p.SecCtx.Alg = 0, 0
	p.Templates, p.Other = p.Templates[:0], p.Other[:0]
	ctx := false
	for i := 0; i <= len(b)-4; {
		h := b[i : i+4 : i+4]
		l, t := int(ne.Uint16(h)), AttrType(ne.Uint16(h[2:])&attrTypeMask)
		if l < 4 || l > len(b)-i {
			return attrError(t, ErrLength)
		}
		d := b[i+4 : i+l]
		i += align(l)
		var err error
		if t == AttrTemplate { // the most frequent
			if p.Templates, err = getTemplates(d, p.Templates); err != nil {
				return err
			}
			continue
		}
		if len(d) < int(minAttr(t)) {
			return attrError(t, ErrShort)
		}
		switch t {
		case AttrPolicyType:
			p.Type = PolicyType(d[0])
		case AttrMark:
			p.Mark = Mark{ne.Uint32(d), ne.Uint32(d[4:])}
		case AttrIfID:
			p.IfID = ne.Uint32(d)
		case AttrSecCtx:
			err, ctx = getSecCtx(d, &p.SecCtx), true
		case AttrOffload:
			p.Offload = Some(Offload{int32(ne.Uint32(d)), OffloadFlags(d[4])})
		case AttrPad, AttrPolicy:
		default:
			p.Other = keep(p.Other, t, d)
		}
		if err != nil {
			return err
		}
	}
	if !ctx && p.SecCtx.Text != "" { // pointers cost more to write than to look at
		p.SecCtx.Text = ""
	}
	return nil
}

// PolicyID names a policy: the key of GETPOLICY and DELPOLICY, either by
// selector and SecCtx or, if Index is not 0, by index. Direction, type, mark
// and interface id are part of the key in both cases: a policy that has an
// if_id is not found without it.
type PolicyID struct {
	Sel    Selector   `json:"sel,omitzero"`
	Index  uint32     `json:"index,omitzero"`
	Dir    Dir        `json:"dir"`
	Type   PolicyType `json:"ptype,omitzero"`
	Mark   Mark       `json:"mark,omitzero"`
	IfID   uint32     `json:"if_id,omitzero"`
	SecCtx SecCtx     `json:"sec_ctx,omitzero"`
	Other  []Attr     `json:"other,omitempty"`
}

// ID returns the policy's name by its selector, with everything that is part
// of the key.
func (p *Policy) ID() PolicyID {
	return PolicyID{Sel: p.Sel, Dir: p.Dir, Type: p.Type, Mark: p.Mark, IfID: p.IfID, SecCtx: p.SecCtx}
}

// AppendDelPolicy appends a request to delete a policy.
func AppendDelPolicy(b []byte, h Header, id *PolicyID) ([]byte, error) {
	return appendPolicyID(b, DelPolicy, h, id, id.Type != PolicyMain)
}

// AppendGetPolicy appends a request for one policy.
func AppendGetPolicy(b []byte, h Header, id *PolicyID) ([]byte, error) {
	return appendPolicyID(b, GetPolicy, h, id, id.Type != PolicyMain)
}

func (id *PolicyID) put(d []byte) error {
	d = d[:sizePolicyID]
	if err := id.Sel.put(d); err != nil {
		return &FormatError{Field: "selector", Err: err}
	}
	ne.PutUint32(d[56:], id.Index)
	d[60] = byte(id.Dir)
	return nil
}

// get reads struct xfrm_userpolicy_id.
func (id *PolicyID) get(d []byte) error {
	d = d[:sizePolicyID]
	if err := id.Sel.get((*[sizeSelector]byte)(d), Unspec); err != nil {
		return &FormatError{Field: "selector", Err: err}
	}
	id.Index, id.Dir = ne.Uint32(d[56:]), Dir(d[60])
	return nil
}

func appendPolicyID(b []byte, t MsgType, h Header, id *PolicyID, withType bool) ([]byte, error) {
	start := len(b)
	b, d := begin(b, t, h, sizePolicyID)
	err := id.put(d)
	if err == nil && withType {
		b = appendPolType(b, id.Type)
	}
	if err == nil && id.Mark != (Mark{}) {
		b = appendMark(b, id.Mark)
	}
	if err == nil && id.SecCtx != (SecCtx{}) {
		b, err = appendSecCtx(b, &id.SecCtx)
	}
	if err == nil && id.IfID != 0 {
		b = appendU32(b, AttrIfID, id.IfID)
	}
	if err == nil {
		b, err = appendOther(b, id.Other)
	}
	if err != nil {
		return b[:start], typed(err, t)
	}
	return finish(b, start), nil
}

// Parse reads a GETPOLICY or DELPOLICY request, or the name in a DELPOLICY
// notification.
func (id *PolicyID) Parse(m Message) error {
	if m.Type != DelPolicy && m.Type != GetPolicy || m.isDump() {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	b, err := m.attrs(m.Type)
	if err != nil {
		return err
	}
	*id = PolicyID{Other: id.Other[:0]}
	if err := id.get(m.Body); err != nil {
		return typed(err, m.Type)
	}
	return eachAttr(m.Type, b, func(t AttrType, d []byte) error {
		switch t {
		case AttrPolicyType:
			id.Type = PolicyType(d[0])
		case AttrMark:
			id.Mark = Mark{ne.Uint32(d), ne.Uint32(d[4:])}
		case AttrIfID:
			id.IfID = ne.Uint32(d)
		case AttrSecCtx:
			return getSecCtx(d, &id.SecCtx)
		case AttrPad:
		default:
			id.Other = keep(id.Other, t, d)
		}
		return nil
	})
}

// AppendDumpPolicy appends a request for all policies, main and sub. It has
// neither fixed part nor filter: the kernel knows none. FlagRequest and
// FlagDump are added to the header's flags.
func AppendDumpPolicy(b []byte, h Header) []byte {
	start := len(b)
	h.Flags |= FlagRequest | FlagDump
	b, _ = begin(b, GetPolicy, h, 0)
	return finish(b, start)
}

// AppendFlushPolicy appends a request to delete all policies of one type.
// Main ones only is what the kernel does without an attribute: sub policies
// need a request of their own.
func AppendFlushPolicy(b []byte, h Header, t PolicyType) []byte {
	start := len(b)
	b, _ = begin(b, FlushPolicy, h, 0)
	if t != PolicyMain {
		b = appendPolType(b, t)
	}
	return finish(b, start)
}
