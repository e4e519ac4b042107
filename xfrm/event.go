package xfrm

import (
	"net/netip"
	"slices"
)

// Event is what the kernel tells the members of a multicast group: one of
// [*SAChange], [*PolicyChange], [*Acquire], [*Expire], [*PolExpire],
// [*AsyncEvent], [*Migrate], [*Mapping], [*Report], [*Default], [*Flush] and
// [*MigrateState].
type Event interface{ event() }

func (*SAChange) event()     {}
func (*PolicyChange) event() {}
func (*Acquire) event()      {}
func (*Expire) event()       {}
func (*PolExpire) event()    {}
func (*AsyncEvent) event()   {}
func (*Migrate) event()      {}
func (*Mapping) event()      {}
func (*Report) event()       {}
func (*Default) event()      {}
func (*Flush) event()        {}
func (*MigrateState) event() {}

// SAChange is a state that was added (NewSA), updated (UpdSA) or deleted
// (DelSA).
type SAChange struct {
	Type MsgType `json:"type"`
	SA   SA      `json:"sa"`
}

// PolicyChange is a policy that was added (NewPolicy), updated (UpdPolicy) or
// deleted (DelPolicy).
type PolicyChange struct {
	Type   MsgType `json:"type"`
	Policy Policy  `json:"policy"`
}

// Flush tells that all states of a protocol (FlushSA) or all policies of a
// type (FlushPolicy) were deleted.
type Flush struct {
	Type       MsgType    `json:"type"`
	Proto      Proto      `json:"proto,omitzero"`
	PolicyType PolicyType `json:"ptype,omitzero"`
}

// ParseEvent reads a notification into a new event, which shares no memory
// with the message. States in it may hold keys ([SA.ClearKeys]). A message of
// another kind is an error that wraps [ErrType].
func ParseEvent(m Message) (Event, error) {
	switch m.Type {
	case NewSA, UpdSA, DelSA:
		e := &SAChange{Type: m.Type}
		return e, e.SA.Parse(m)
	case NewPolicy, UpdPolicy, DelPolicy:
		e := &PolicyChange{Type: m.Type}
		return e, e.Policy.Parse(m)
	case MsgAcquire:
		e := new(Acquire)
		return e, e.Parse(m)
	case MsgExpire:
		e := new(Expire)
		return e, e.Parse(m)
	case MsgPolExpire:
		e := new(PolExpire)
		return e, e.Parse(m)
	case NewAE:
		e := new(AsyncEvent)
		return e, e.Parse(m)
	case MsgMigrate:
		e := new(Migrate)
		return e, e.Parse(m)
	case MsgMigrateState:
		e := new(MigrateState)
		return e, e.Parse(m)
	case MsgMapping:
		e := new(Mapping)
		return e, e.Parse(m)
	case MsgReport:
		e := new(Report)
		return e, e.Parse(m)
	case GetDefault, SetDefault:
		e := new(Default)
		return e, e.Parse(m)
	case FlushSA, FlushPolicy:
		e := new(Flush)
		return e, e.Parse(m)
	}
	return nil, &FormatError{Type: m.Type, Err: ErrType}
}

// Parse reads a FLUSHSA or FLUSHPOLICY message.
func (f *Flush) Parse(m Message) error {
	if m.Type != FlushSA && m.Type != FlushPolicy {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	b, err := m.attrs(m.Type)
	if err != nil {
		return err
	}
	*f = Flush{Type: m.Type}
	if m.Type == FlushSA {
		f.Proto = Proto(m.Body[0])
	}
	return eachAttr(m.Type, b, func(t AttrType, d []byte) error {
		if t == AttrPolicyType {
			f.PolicyType = PolicyType(d[0])
		}
		return nil
	})
}

// Acquire asks a key manager for a state: a packet met a policy whose
// template no state fulfils. The kernel has made a larval state. The answer is
// a state with the same Seq, which takes its place: NEWSA where the peer chose
// the SPI; where the kernel is to choose it, ALLOCSPI and then UPDSA.
type Acquire struct {
	Dst    netip.Addr `json:"dst"`
	Src    netip.Addr `json:"src"`
	SPI    uint32     `json:"spi,omitzero"` // 0 unless one was fixed
	Proto  Proto      `json:"proto"`
	Sel    Selector   `json:"sel"`    // the packet's flow
	Policy Policy     `json:"policy"` // the policy, with the templates, type, mark and interface id
	// Algorithms that the template excludes, as in [Template].
	NoAuth uint32      `json:"no_auth,omitzero"`
	NoEnc  uint32      `json:"no_enc,omitzero"`
	NoComp uint32      `json:"no_comp,omitzero"`
	Seq    uint32      `json:"seq"`
	Dir    SADir       `json:"dir,omitzero"`  // 0 if not told
	PCPU   Opt[uint32] `json:"pcpu,omitzero"` // the CPU to make a state for
}

// AppendAcquire appends an ACQUIRE message, which only tests and simulators
// send.
func AppendAcquire(b []byte, h Header, a *Acquire) ([]byte, error) {
	start := len(b)
	b, d := begin(b, MsgAcquire, h, sizeAcquire)
	f, err := pairFamily(a.Dst, a.Src)
	if sf := a.Sel.EffectiveFamily(); err == nil && f != sf {
		err = ErrFamily
	}
	if err != nil {
		return b[:start], &FormatError{Type: MsgAcquire, Field: "address", Err: err}
	}
	putAddr(d, a.Dst)
	be.PutUint32(d[16:], a.SPI)
	d[20] = byte(a.Proto)
	putAddr(d[24:], a.Src)
	if err = a.Sel.put(d[40:]); err != nil {
		return b[:start], &FormatError{Type: MsgAcquire, Field: "selector", Err: err}
	}
	if err = a.Policy.put(d[96:]); err != nil {
		return b[:start], typed(err, MsgAcquire)
	}
	d = d[96+sizePolicy:]
	ne.PutUint32(d, ^a.NoAuth)
	ne.PutUint32(d[4:], ^a.NoEnc)
	ne.PutUint32(d[8:], ^a.NoComp)
	ne.PutUint32(d[12:], a.Seq)
	p := &a.Policy
	if b, err = appendTemplates(b, p.Templates, p.Sel.EffectiveFamily()); err != nil {
		return b[:start], typed(err, MsgAcquire)
	}
	b = appendPolType(b, p.Type)
	if p.Mark != (Mark{}) {
		b = appendMark(b, p.Mark)
	}
	if p.IfID != 0 {
		b = appendU32(b, AttrIfID, p.IfID)
	}
	if a.Dir != 0 {
		b = appendU8(b, AttrSADir, byte(a.Dir))
	}
	if a.PCPU.Set {
		b = appendU32(b, AttrSAPCPU, a.PCPU.Value)
	}
	if b, err = appendOther(b, p.Other); err != nil {
		return b[:start], typed(err, MsgAcquire)
	}
	return finish(b, start), nil
}

// Parse reads an ACQUIRE message. The addresses are of the selector's family.
func (a *Acquire) Parse(m Message) error {
	if m.Type != MsgAcquire {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	rest, err := m.attrs(MsgAcquire)
	if err != nil {
		return err
	}
	d := m.Body
	if err := a.Sel.get((*[sizeSelector]byte)(d[40:]), Unspec); err != nil {
		return &FormatError{Type: m.Type, Field: "selector", Err: err}
	}
	if a.Sel.Family == Unspec {
		return &FormatError{Type: m.Type, Field: "selector", Err: ErrFamily}
	}
	if err := a.Policy.parse((*[sizePolicy]byte)(d[96:]), rest); err != nil {
		return typed(err, m.Type)
	}
	a.Dst, a.Src = getAddr(d, a.Sel.Family), getAddr(d[24:], a.Sel.Family)
	a.SPI, a.Proto = be.Uint32(d[16:]), Proto(d[20])
	d = d[96+sizePolicy:]
	a.NoAuth, a.NoEnc, a.NoComp = ^ne.Uint32(d), ^ne.Uint32(d[4:]), ^ne.Uint32(d[8:])
	a.Seq = ne.Uint32(d[12:])
	a.Dir, a.PCPU = 0, Opt[uint32]{}
	// Two attributes belong to the acquisition, not to the policy.
	a.Policy.Other = slices.DeleteFunc(a.Policy.Other, func(o Attr) bool {
		switch o.Type {
		case AttrSADir:
			a.Dir = SADir(o.Data[0])
		case AttrSAPCPU:
			a.PCPU = Some(ne.Uint32(o.Data))
		default:
			return false
		}
		return true
	})
	if len(a.Policy.Other) == 0 {
		a.Policy.Other = nil
	}
	return nil
}

// Expire tells that a limit of a state was reached: a soft one, so that it is
// time to replace it, or a hard one, and it is gone. A larval state that
// nobody filled expires hard.
type Expire struct {
	SA   SA   `json:"sa"`
	Hard bool `json:"hard"`
}

// AppendExpire appends an EXPIRE message. As a request it makes the kernel
// expire the state named by the addresses, SPI, protocol and mark: it notifies
// the EXPIRE group and, if e.Hard is set, deletes the state.
func AppendExpire(b []byte, h Header, e *Expire) ([]byte, error) {
	start := len(b)
	b, err := appendSA(b, MsgExpire, h, &e.SA, nil)
	if err == nil && e.Hard {
		b[start+sizeHeader+sizeSA] = 1
	}
	return b, err
}

// Parse reads an EXPIRE message.
func (e *Expire) Parse(m Message) error {
	if m.Type != MsgExpire {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	rest, err := m.attrs(MsgExpire)
	if err != nil {
		return err
	}
	e.Hard = m.Body[sizeSA] != 0
	return typed(e.SA.parse((*[sizeSA]byte)(m.Body), rest), MsgExpire)
}

// PolExpire tells that a limit of a policy was reached: a soft one, or a hard
// one, and it is gone.
type PolExpire struct {
	Policy Policy `json:"policy"`
	Hard   bool   `json:"hard"`
}

// AppendPolExpire appends a POLEXPIRE message. As a request it makes the
// kernel expire the policy: it notifies and, if e.Hard is set, deletes it.
func AppendPolExpire(b []byte, h Header, e *PolExpire) ([]byte, error) {
	start := len(b)
	b, err := appendPolicy(b, MsgPolExpire, h, &e.Policy, e.Policy.Type != PolicyMain, nil)
	if err == nil && e.Hard {
		b[start+sizeHeader+sizePolicy] = 1
	}
	return b, err
}

// Parse reads a POLEXPIRE message.
func (e *PolExpire) Parse(m Message) error {
	if m.Type != MsgPolExpire {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	rest, err := m.attrs(MsgPolExpire)
	if err != nil {
		return err
	}
	e.Hard = m.Body[sizePolicy] != 0
	return typed(e.Policy.parse((*[sizePolicy]byte)(m.Body), rest), MsgPolExpire)
}

// AsyncEvent is the replay state and current lifetime of a state, for a
// standby host that must take over: GETAE asks for it, NEWAE sets it or
// notifies.
type AsyncEvent struct {
	ID    SAID    `json:"id"` // Src and Mark included
	Flags AEFlags `json:"flags,omitzero"`
	ReqID uint32  `json:"reqid,omitzero"`

	Replay       Opt[ReplayState] `json:"replay,omitzero"`
	ReplayESN    Replay           `json:"replay_esn,omitzero"` // present if Reported or not zero
	Lifetime     Opt[Counters]    `json:"lifetime,omitzero"`
	ReplayThresh Opt[uint32]      `json:"replay_thresh,omitzero"`             // packets between events
	ETimerThresh Opt[uint32]      `json:"etimer_thresh_deciseconds,omitzero"` // 100 ms each between events
	IfID         uint32           `json:"if_id,omitzero"`
	Dir          SADir            `json:"dir,omitzero"`
	PCPU         Opt[uint32]      `json:"pcpu,omitzero"`
}

// ReplayState is the replay state without extended sequence numbers.
type ReplayState struct {
	OSeq   uint32 `json:"oseq"`   // last sent
	Seq    uint32 `json:"seq"`    // highest received
	Bitmap uint32 `json:"bitmap"` // of the 32 packets up to Seq, which is the lowest bit
}

// AppendGetAE appends a request for the values of the state e.ID that e.Flags
// select. The kernel answers with NEWAE.
func AppendGetAE(b []byte, h Header, e *AsyncEvent) ([]byte, error) { return appendAE(b, GetAE, h, e) }

// AppendNewAE appends a request to set the values that are present in e. The
// kernel demands FlagReplace in the header, which is added.
func AppendNewAE(b []byte, h Header, e *AsyncEvent) ([]byte, error) {
	h.Flags |= FlagReplace
	return appendAE(b, NewAE, h, e)
}

func appendAE(b []byte, t MsgType, h Header, e *AsyncEvent) ([]byte, error) {
	start := len(b)
	b, d := begin(b, t, h, sizeAE)
	if err := e.ID.put(d); err != nil {
		return b[:start], typed(err, t)
	}
	putAddr(d[24:], e.ID.Src)
	ne.PutUint32(d[40:], uint32(e.Flags))
	ne.PutUint32(d[44:], e.ReqID)
	if r := e.Replay; r.Set {
		b, d = appendAttr(b, AttrReplay, 12)
		ne.PutUint32(d, r.Value.OSeq)
		ne.PutUint32(d[4:], r.Value.Seq)
		ne.PutUint32(d[8:], r.Value.Bitmap)
	}
	if r := &e.ReplayESN; r.Reported || r.Window != 0 || r.Seq|r.OSeq|r.SeqHi|r.OSeqHi != 0 {
		var err error
		if b, err = appendReplay(b, r, ESN); err != nil {
			return b[:start], typed(err, t)
		}
	}
	if e.Lifetime.Set {
		b, d = appendAttr(b, AttrLifetime, sizeLftCur)
		e.Lifetime.Value.put(d)
	}
	if e.ReplayThresh.Set {
		b = appendU32(b, AttrReplayThresh, e.ReplayThresh.Value)
	}
	if e.ETimerThresh.Set {
		b = appendU32(b, AttrETimerThresh, e.ETimerThresh.Value)
	}
	if e.ID.Mark != (Mark{}) {
		b = appendMark(b, e.ID.Mark)
	}
	if e.IfID != 0 {
		b = appendU32(b, AttrIfID, e.IfID)
	}
	if e.PCPU.Set {
		b = appendU32(b, AttrSAPCPU, e.PCPU.Value)
	}
	if e.Dir != 0 {
		b = appendU8(b, AttrSADir, byte(e.Dir))
	}
	b, err := appendOther(b, e.ID.Other)
	if err != nil {
		return b[:start], typed(err, t)
	}
	return finish(b, start), nil
}

// Parse reads a NEWAE or GETAE message. Attributes without a field are kept
// in ID.Other.
func (e *AsyncEvent) Parse(m Message) error {
	if m.Type != NewAE && m.Type != GetAE {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	b, err := m.attrs(m.Type)
	if err != nil {
		return err
	}
	*e = AsyncEvent{ID: e.ID, ReplayESN: Replay{Bitmap: e.ReplayESN.Bitmap[:0]}}
	if err := e.ID.get(m.Body); err != nil {
		return typed(err, m.Type)
	}
	f := familyOf(e.ID.Dst)
	e.ID.Src = getAddr(m.Body[24:], f)
	e.Flags, e.ReqID = AEFlags(ne.Uint32(m.Body[40:])), ne.Uint32(m.Body[44:])
	return eachAttr(m.Type, b, func(t AttrType, d []byte) error {
		switch t {
		case AttrReplay:
			e.Replay = Some(ReplayState{ne.Uint32(d), ne.Uint32(d[4:]), ne.Uint32(d[8:])})
		case AttrReplayESN:
			return e.ReplayESN.getESN(d, ESN)
		case AttrLifetime:
			e.Lifetime.Set = true
			e.Lifetime.Value.get((*[sizeLftCur]byte)(d))
		case AttrReplayThresh:
			e.ReplayThresh = Some(ne.Uint32(d))
		case AttrETimerThresh:
			e.ETimerThresh = Some(ne.Uint32(d))
		case AttrMark:
			e.ID.Mark = Mark{ne.Uint32(d), ne.Uint32(d[4:])}
		case AttrIfID:
			e.IfID = ne.Uint32(d)
		case AttrSAPCPU:
			e.PCPU = Some(ne.Uint32(d))
		case AttrSADir:
			e.Dir = SADir(d[0])
		case AttrPad:
		default:
			e.ID.Other = keep(e.ID.Other, t, d)
		}
		return nil
	})
}

// Mapping tells that the peer of a state with UDP encapsulation now sends
// from another address or port: a NAT has changed its mind.
type Mapping struct {
	ID      SAID       `json:"id"`
	ReqID   uint32     `json:"reqid"`
	OldSrc  netip.Addr `json:"old_src,omitzero"`
	NewSrc  netip.Addr `json:"new_src,omitzero"`
	OldPort uint16     `json:"old_sport"`
	NewPort uint16     `json:"new_sport"`
}

// AppendMapping appends a MAPPING message, which only tests and simulators
// send.
func AppendMapping(b []byte, h Header, e *Mapping) ([]byte, error) {
	start := len(b)
	b, d := begin(b, MsgMapping, h, sizeMapping)
	if err := e.ID.put(d); err != nil {
		return b[:start], typed(err, MsgMapping)
	}
	ne.PutUint32(d[24:], e.ReqID)
	putAddr(d[28:], e.OldSrc)
	putAddr(d[44:], e.NewSrc)
	be.PutUint16(d[60:], e.OldPort)
	be.PutUint16(d[62:], e.NewPort)
	return finish(b, start), nil
}

// Parse reads a MAPPING message.
func (e *Mapping) Parse(m Message) error {
	if m.Type != MsgMapping {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	if _, err := m.attrs(MsgMapping); err != nil {
		return err
	}
	if err := e.ID.get(m.Body); err != nil {
		return typed(err, MsgMapping)
	}
	d, f := m.Body, familyOf(e.ID.Dst)
	e.ReqID = ne.Uint32(d[24:])
	e.OldSrc, e.NewSrc = getAddr(d[28:], f), getAddr(d[44:], f)
	e.OldPort, e.NewPort = be.Uint16(d[60:]), be.Uint16(d[62:])
	return nil
}

// Report tells of a packet that came with a Mobile IPv6 header (Route2 or HAO)
// for which there is no state.
type Report struct {
	Proto Proto      `json:"proto"`
	Sel   Selector   `json:"sel"`
	CoA   netip.Addr `json:"coa,omitzero"`
}

// AppendReport appends a REPORT message, which only tests and simulators send.
func AppendReport(b []byte, h Header, r *Report) ([]byte, error) {
	start := len(b)
	b, d := begin(b, MsgReport, h, sizeReport)
	d[0] = byte(r.Proto)
	if err := r.Sel.put(d[4:]); err != nil {
		return b[:start], &FormatError{Type: MsgReport, Field: "selector", Err: err}
	}
	if r.CoA.IsValid() {
		b = appendAddr(b, AttrCoAddr, r.CoA)
	}
	return finish(b, start), nil
}

// Parse reads a REPORT message.
func (r *Report) Parse(m Message) error {
	if m.Type != MsgReport {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	b, err := m.attrs(MsgReport)
	if err != nil {
		return err
	}
	*r = Report{Proto: Proto(m.Body[0])}
	if err := r.Sel.get((*[sizeSelector]byte)(m.Body[4:]), Unspec); err != nil {
		return &FormatError{Type: MsgReport, Field: "selector", Err: err}
	}
	return eachAttr(MsgReport, b, func(t AttrType, d []byte) error {
		if t == AttrCoAddr {
			r.CoA = getAddr(d, r.Sel.Family)
		}
		return nil
	})
}
