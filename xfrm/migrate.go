package xfrm

import "net/netip"

// Migration moves the states and templates of Proto, Mode and ReqID between
// two endpoints to new ones. The new family may differ from the old one.
type Migration struct {
	OldSrc netip.Addr `json:"old_src"`
	OldDst netip.Addr `json:"old_dst"`
	NewSrc netip.Addr `json:"new_src"`
	NewDst netip.Addr `json:"new_dst"`
	Proto  Proto      `json:"proto"`
	Mode   Mode       `json:"mode"`
	ReqID  uint32     `json:"reqid,omitzero"`
}

func (g *Migration) put(d []byte) error {
	d = d[:sizeMigrate]
	of, err := pairFamily(g.OldDst, g.OldSrc)
	if err != nil {
		return err
	}
	nf, err := pairFamily(g.NewDst, g.NewSrc)
	if err != nil {
		return err
	}
	putAddr(d[0:], g.OldDst)
	putAddr(d[16:], g.OldSrc)
	putAddr(d[32:], g.NewDst)
	putAddr(d[48:], g.NewSrc)
	d[64], d[65] = byte(g.Proto), byte(g.Mode)
	ne.PutUint32(d[68:], g.ReqID)
	ne.PutUint16(d[72:], uint16(of))
	ne.PutUint16(d[74:], uint16(nf))
	return nil
}

func (g *Migration) get(d []byte) error {
	d = d[:sizeMigrate]
	of, nf := Family(ne.Uint16(d[72:])), Family(ne.Uint16(d[74:]))
	for _, f := range [...]Family{of, nf} {
		if f != IPv4 && f != IPv6 {
			return ErrFamily
		}
	}
	*g = Migration{
		OldDst: getAddr(d, of), OldSrc: getAddr(d[16:], of),
		NewDst: getAddr(d[32:], nf), NewSrc: getAddr(d[48:], nf),
		Proto: Proto(d[64]), Mode: Mode(d[65]), ReqID: ne.Uint32(d[68:]),
	}
	return nil
}

// KMAddress tells key managers which addresses to use between themselves after
// a migration. Both are of one family.
type KMAddress struct {
	Local  netip.Addr `json:"local"`
	Remote netip.Addr `json:"remote"`
}

// Migrate moves a policy's templates and the states that match them to other
// endpoints, such as those of a host that moved. The kernel takes 1 to
// [MaxTemplates] migrations at once. It is both request and notification.
type Migrate struct {
	Policy     PolicyID       `json:"policy"` // by selector; Index is not used
	Migrations []Migration    `json:"migrations"`
	KMAddress  Opt[KMAddress] `json:"kmaddress,omitzero"`
	Encap      Encap          `json:"encap,omitzero"`   // new encapsulation; Type 0: unchanged
	Offload    Opt[Offload]   `json:"offload,omitzero"` // new offload
}

// AppendMigrate appends a request to migrate.
func AppendMigrate(b []byte, h Header, g *Migrate) ([]byte, error) {
	start := len(b)
	b, d := begin(b, MsgMigrate, h, sizePolicyID)
	err := g.Policy.put(d)
	if err == nil && len(g.Migrations) > maxAttr/sizeMigrate {
		err = &FormatError{Attr: AttrMigrate, Err: ErrRange}
	}
	if err == nil && len(g.Migrations) > 0 {
		b, d = appendAttr(b, AttrMigrate, sizeMigrate*len(g.Migrations))
		for i := range g.Migrations {
			if e := g.Migrations[i].put(d[sizeMigrate*i:]); e != nil {
				err = &FormatError{Attr: AttrMigrate, Field: "address", Err: e}
			}
		}
	}
	if err == nil && g.KMAddress.Set {
		k := g.KMAddress.Value
		f, e := pairFamily(k.Local, k.Remote)
		if e != nil {
			err = &FormatError{Attr: AttrKMAddress, Err: e}
		}
		b, d = appendAttr(b, AttrKMAddress, sizeKMAddress)
		putAddr(d[0:], k.Local)
		putAddr(d[16:], k.Remote)
		ne.PutUint16(d[36:], uint16(f))
	}
	if err == nil && g.Policy.Type != PolicyMain {
		b = appendPolType(b, g.Policy.Type)
	}
	if err == nil && g.Encap.Type != 0 {
		b = appendEncap(b, &g.Encap)
	}
	if err == nil && g.Policy.Mark != (Mark{}) {
		b = appendMark(b, g.Policy.Mark)
	}
	if err == nil && g.Policy.IfID != 0 {
		b = appendU32(b, AttrIfID, g.Policy.IfID)
	}
	if err == nil && g.Offload.Set {
		b = appendOffload(b, g.Offload.Value)
	}
	if err == nil {
		b, err = appendOther(b, g.Policy.Other)
	}
	if err != nil {
		return b[:start], typed(err, MsgMigrate)
	}
	return finish(b, start), nil
}

// Parse reads a MIGRATE message. Attributes without a field are kept in
// Policy.Other.
func (g *Migrate) Parse(m Message) error {
	if m.Type != MsgMigrate {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	b, err := m.attrs(MsgMigrate)
	if err != nil {
		return err
	}
	*g = Migrate{Policy: PolicyID{Other: g.Policy.Other[:0]}, Migrations: g.Migrations[:0]}
	if err := g.Policy.get(m.Body); err != nil {
		return typed(err, MsgMigrate)
	}
	return eachAttr(MsgMigrate, b, func(t AttrType, d []byte) error {
		switch t {
		case AttrMigrate:
			if len(d)%sizeMigrate != 0 {
				return &FormatError{Attr: t, Err: ErrLength}
			}
			for ; len(d) > 0; d = d[sizeMigrate:] {
				var x Migration
				if err := x.get(d); err != nil {
					return &FormatError{Attr: t, Field: "family", Err: err}
				}
				g.Migrations = append(g.Migrations, x)
			}
		case AttrKMAddress:
			f := Family(ne.Uint16(d[36:]))
			if f != IPv4 && f != IPv6 {
				return &FormatError{Attr: t, Field: "family", Err: ErrFamily}
			}
			g.KMAddress = Some(KMAddress{getAddr(d, f), getAddr(d[16:], f)})
		case AttrPolicyType:
			g.Policy.Type = PolicyType(d[0])
		case AttrEncap:
			g.Encap = Encap{EncapType(ne.Uint16(d)), be.Uint16(d[2:]), be.Uint16(d[4:]),
				getAddr(d[8:], g.Policy.Sel.Family)}
		case AttrMark:
			g.Policy.Mark = Mark{ne.Uint32(d), ne.Uint32(d[4:])}
		case AttrIfID:
			g.Policy.IfID = ne.Uint32(d)
		case AttrOffload:
			g.Offload = Some(Offload{int32(ne.Uint32(d)), OffloadFlags(d[4])})
		case AttrPad:
		default:
			g.Policy.Other = keep(g.Policy.Other, t, d)
		}
		return nil
	})
}

// MigrateStateFlags are the flags of a [MigrateState].
type MigrateStateFlags uint32

// Flags of a [MigrateState].
const (
	ClearOffload MigrateStateFlags = 1 << iota // do not inherit the offload
	UpdateSel                                  // derive a host-to-host selector from the new addresses
)

// MigrateState moves one state, found by its name and mark, without touching
// policies (Linux 7.2). NewSrc, NewDst, NewSel and NewReqID are taken as they
// are; what the fields after them leave out is inherited from the old state.
type MigrateState struct {
	ID        SAID              `json:"id"` // Dst, SPI, Proto and Mark; Src is not used
	NewSrc    netip.Addr        `json:"new_src"`
	NewDst    netip.Addr        `json:"new_dst"`
	NewSel    Selector          `json:"new_sel,omitzero"`
	NewReqID  uint32            `json:"new_reqid,omitzero"`
	Flags     MigrateStateFlags `json:"flags,omitzero"`
	Encap     Encap             `json:"encap,omitzero"`                 // Type 0: inherit
	Offload   Opt[Offload]      `json:"offload,omitzero"`               // absent: inherit
	NewMark   Opt[Mark]         `json:"mark,omitzero"`                  // absent: inherit
	SetMark   Mark              `json:"output_mark,omitzero"`           // zero: inherit
	Keepalive Opt[uint32]       `json:"nat_keepalive_seconds,omitzero"` // absent: inherit
	MTimer    Opt[uint32]       `json:"mtimer_thresh_seconds,omitzero"` // absent: inherit
}

// AppendMigrateState appends a request to move one state.
func AppendMigrateState(b []byte, h Header, g *MigrateState) ([]byte, error) {
	start := len(b)
	b, d := begin(b, MsgMigrateState, h, sizeMigState)
	err := g.ID.put(d)
	f, e := pairFamily(g.NewDst, g.NewSrc)
	if err == nil && e == nil && f == Unspec {
		e = ErrMissing
	}
	if err == nil && e != nil {
		err = &FormatError{Field: "new address", Err: e}
	}
	putAddr(d[24:], g.NewDst)
	putAddr(d[40:], g.NewSrc)
	ne.PutUint32(d[56:], g.ID.Mark.Value)
	ne.PutUint32(d[60:], g.ID.Mark.Mask)
	if e := g.NewSel.put(d[64:]); err == nil && e != nil {
		err = &FormatError{Field: "selector", Err: e}
	}
	ne.PutUint32(d[120:], g.NewReqID)
	ne.PutUint32(d[124:], uint32(g.Flags))
	ne.PutUint16(d[128:], uint16(f))
	if g.Encap.Type != 0 {
		b = appendEncap(b, &g.Encap)
	}
	if g.Offload.Set {
		b = appendOffload(b, g.Offload.Value)
	}
	if g.NewMark.Set {
		b = appendMark(b, g.NewMark.Value)
	}
	if g.SetMark.Value != 0 {
		b = appendU32(b, AttrSetMark, g.SetMark.Value)
	}
	if g.SetMark.Mask != 0 {
		b = appendU32(b, AttrSetMarkMask, g.SetMark.Mask)
	}
	if g.Keepalive.Set {
		b = appendU32(b, AttrNATKeepalive, g.Keepalive.Value)
	}
	if g.MTimer.Set {
		b = appendU32(b, AttrMTimerThresh, g.MTimer.Value)
	}
	if err == nil {
		b, err = appendOther(b, g.ID.Other)
	}
	if err != nil {
		return b[:start], typed(err, MsgMigrateState)
	}
	return finish(b, start), nil
}

// Parse reads a MIGRATE_STATE message. Attributes without a field are kept
// in ID.Other.
func (g *MigrateState) Parse(m Message) error {
	if m.Type != MsgMigrateState {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	b, err := m.attrs(MsgMigrateState)
	if err != nil {
		return err
	}
	d := m.Body
	*g = MigrateState{ID: g.ID}
	if err := g.ID.get(d); err != nil {
		return typed(err, m.Type)
	}
	f := Family(ne.Uint16(d[128:]))
	if f != IPv4 && f != IPv6 {
		return &FormatError{Type: m.Type, Field: "new family", Err: ErrFamily}
	}
	g.NewDst, g.NewSrc = getAddr(d[24:], f), getAddr(d[40:], f)
	g.ID.Mark = Mark{ne.Uint32(d[56:]), ne.Uint32(d[60:])}
	if err := g.NewSel.get((*[sizeSelector]byte)(d[64:]), Unspec); err != nil {
		return &FormatError{Type: m.Type, Field: "selector", Err: err}
	}
	g.NewReqID, g.Flags = ne.Uint32(d[120:]), MigrateStateFlags(ne.Uint32(d[124:]))
	return eachAttr(m.Type, b, func(t AttrType, d []byte) error {
		switch t {
		case AttrEncap:
			g.Encap = Encap{EncapType(ne.Uint16(d)), be.Uint16(d[2:]), be.Uint16(d[4:]), getAddr(d[8:], f)}
		case AttrOffload:
			g.Offload = Some(Offload{int32(ne.Uint32(d)), OffloadFlags(d[4])})
		case AttrMark:
			g.NewMark = Some(Mark{ne.Uint32(d), ne.Uint32(d[4:])})
		case AttrSetMark:
			g.SetMark.Value = ne.Uint32(d)
		case AttrSetMarkMask:
			g.SetMark.Mask = ne.Uint32(d)
		case AttrNATKeepalive:
			g.Keepalive = Some(ne.Uint32(d))
		case AttrMTimerThresh:
			g.MTimer = Some(ne.Uint32(d))
		case AttrPad:
		default:
			g.ID.Other = keep(g.ID.Other, t, d)
		}
		return nil
	})
}
