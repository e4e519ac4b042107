package xfrm

// AppendMessageText appends a message as text: a state or policy, or the
// kernel's answer to `count` and `getdefault`, as `ip xfrm` prints it, and
// notifications as `ip xfrm monitor` does. Requests without a printed form of
// their own appear in the form of the nearest notification. Netlink's own
// messages print as one line.
func AppendMessageText(b []byte, m Message, o TextOptions) ([]byte, error) {
	p := printer{b: b, o: o}
	err := p.message(m)
	if err != nil {
		return b, err
	}
	return p.b, nil
}

func (p *printer) line(s ...string) {
	p.str(s...)
	p.nl()
}

func (p *printer) message(m Message) error {
	switch m.Type {
	case MsgError, MsgDone:
		err := ParseAck(m)
		switch e := err.(type) {
		case nil:
			p.line("ok")
		case *AckError:
			p.line(e.Error())
		default:
			return err
		}
		return nil
	case NewSA, UpdSA, DelSA:
		if m.Type == DelSA && !m.hasAttr(AttrSA) {
			return p.stateName("Delete ", m)
		}
		var s SA
		if err := s.Parse(m); err != nil {
			return err
		}
		p.change(m.Type)
		p.state(&s)
	case GetSA:
		if m.isDump() {
			return p.dumpSA(m)
		}
		return p.stateName("Get ", m)
	case NewPolicy, UpdPolicy, DelPolicy:
		if m.Type == DelPolicy && !m.hasAttr(AttrPolicy) {
			return p.policyName("Delete ", m)
		}
		var x Policy
		if err := x.Parse(m); err != nil {
			return err
		}
		p.change(m.Type)
		p.policy(&x)
	case GetPolicy:
		if m.isDump() {
			p.line("Dump policies")
			return nil
		}
		return p.policyName("Get ", m)
	case AllocSPI:
		var r SPIRequest
		if err := r.Parse(m); err != nil {
			return err
		}
		p.str("Allocate SPI min ")
		p.xhex(r.Min)
		p.str(" max ")
		p.xhex(r.Max)
		p.nl()
		p.state(&r.SA)
	case MsgExpire:
		var e Expire
		if err := e.Parse(m); err != nil {
			return err
		}
		p.str("Expired ")
		p.state(&e.SA)
		p.hard(e.Hard)
	case MsgPolExpire:
		var e PolExpire
		if err := e.Parse(m); err != nil {
			return err
		}
		p.str("Expired ")
		p.policy(&e.Policy)
		p.hard(e.Hard)
	case MsgAcquire:
		return p.acquire(m)
	case FlushSA, FlushPolicy:
		var f Flush
		if err := f.Parse(m); err != nil {
			return err
		}
		if f.Type == FlushSA {
			p.str("Flushed state proto ")
			p.name(f.Proto.String())
		} else {
			p.str("Flushed policy ")
			if m.hasAttr(AttrPolicyType) {
				p.str("ptype ")
				p.name(f.PolicyType.String())
				p.str(" ")
			}
		}
		p.nl()
	case NewAE, GetAE:
		return p.asyncEvent(m)
	case MsgMapping:
		return p.mapping(m)
	case MsgReport:
		var r Report
		if err := r.Parse(m); err != nil {
			return err
		}
		p.str("report proto ")
		p.name(r.Proto.String())
		p.line(" ")
		p.str("  sel ")
		p.selector(&r.Sel, IPv4)
		if r.CoA.IsValid() {
			p.str("  coa ")
			p.addr(r.CoA, Unspec)
			p.nl()
		}
	case MsgMigrate:
		return p.migrate(m)
	case MsgMigrateState:
		return p.migrateState(m)
	case NewSADInfo:
		var i SADInfo
		if err := i.Parse(m); err != nil {
			return err
		}
		p.str("\t SAD count ")
		p.dec(uint64(i.Count))
		if p.o.Stats {
			p.str(" (buckets count ")
			p.dec(uint64(i.Buckets))
			p.str(" Max ")
			p.dec(uint64(i.MaxBuckets))
			p.str(")")
		}
		p.nl()
	case GetSADInfo:
		p.line("Count states")
	case GetSPDInfo:
		p.line("Count policies")
	case NewSPDInfo:
		return p.spdInfo(m)
	case SetDefault, GetDefault:
		var d Default
		if err := d.Parse(m); err != nil {
			return err
		}
		p.line("Default policies:")
		p.line(" in:  ", d.In.String())
		p.line(" fwd: ", d.Fwd.String())
		p.line(" out: ", d.Out.String())
	default:
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	return nil
}

// hasAttr reports whether a well-formed attribute of the type follows the
// fixed part.
func (m *Message) hasAttr(t AttrType) bool {
	for a, err := range m.Attributes() {
		if err == nil && a.Type == t {
			return true
		}
	}
	return false
}

func (p *printer) change(t MsgType) {
	switch t {
	case UpdSA, UpdPolicy:
		p.str("Updated ")
	case DelSA, DelPolicy:
		p.str("Deleted ")
	}
}

func (p *printer) hard(h bool) {
	if h {
		p.line("\thard 1")
	} else {
		p.line("\thard 0")
	}
}

func (p *printer) stateName(verb string, m Message) error {
	var id SAID
	if err := id.Parse(m); err != nil {
		return err
	}
	p.str(verb, "src ")
	p.addr(id.Src, familyOf(id.Dst))
	p.str(" dst ")
	p.addr(id.Dst, Unspec)
	p.nl()
	p.str("\tproto ")
	p.name(id.Proto.String())
	p.str(" spi 0x")
	p.hex8(id.SPI)
	p.nl()
	p.mark(id.Mark)
	return nil
}

func (p *printer) dumpSA(m Message) error {
	var f SAFilter
	if err := f.Parse(m); err != nil {
		return err
	}
	p.str("Dump states")
	if f.Proto != 0 {
		p.str(" proto ")
		p.name(f.Proto.String())
	}
	if a := f.Addresses.Value; a.Family != 0 {
		p.str(" src ", a.Src.String(), " dst ", a.Dst.String())
	}
	p.nl()
	return nil
}

func (p *printer) policyName(verb string, m Message) error {
	var id PolicyID
	if err := id.Parse(m); err != nil {
		return err
	}
	p.str(verb)
	p.selector(&id.Sel, IPv4)
	p.secctx(&id.SecCtx)
	p.str("\tdir ")
	p.name(id.Dir.String())
	if id.Index != 0 {
		p.str(" index ")
		p.dec(uint64(id.Index))
	}
	p.line(" ptype ", id.Type.String(), " ")
	p.mark(id.Mark)
	if id.IfID != 0 {
		p.str("\tif_id ")
		p.hex(id.IfID)
		p.nl()
	}
	return nil
}

func (p *printer) acquire(m Message) error {
	var a Acquire
	if err := a.Parse(m); err != nil {
		return err
	}
	p.str("acquire proto ")
	p.name(a.Proto.String())
	p.str(" ")
	if p.o.Stats || a.SPI != 0 {
		p.str("spi 0x")
		p.hex8(a.SPI)
		if p.o.Stats {
			p.str("(")
			p.dec(uint64(a.SPI))
			p.str(")")
		}
		p.str(" ")
	}
	p.nl()
	p.str("  sel ")
	p.selector(&a.Sel, IPv4)
	// The policy is indented; its first line is not.
	p.str("  policy ")
	p.prefix = "    "
	p.policy(&a.Policy)
	p.b = p.b[:len(p.b)-len(p.prefix)]
	p.prefix = ""
	if p.o.Stats {
		p.str("  seq 0x")
		for d := uint64(10000000); d > uint64(a.Seq) && d > 1; d /= 10 {
			p.str("0")
		}
		p.dec(uint64(a.Seq))
		p.str(" enc-mask ")
		p.hex8(^a.NoEnc)
		p.str(" auth-mask ")
		p.hex8(^a.NoAuth)
		p.str(" comp-mask ")
		p.hex8(^a.NoComp)
	}
	p.nl()
	return nil
}

func (p *printer) aeFlags(f AEFlags) {
	p.str(" (")
	p.xhex(uint32(f))
	p.str(") ")
	for _, c := range [...]struct {
		f AEFlags
		s string
	}{{AECauseReplay, " replay update "}, {AECauseTimer, " timer expired "}, {AECausePolicy, " policy updated "}} {
		if f&c.f != 0 {
			p.str(c.s)
		}
	}
}

func (p *printer) asyncEvent(m Message) error {
	var e AsyncEvent
	if err := e.Parse(m); err != nil {
		return err
	}
	p.str("Async event ")
	p.aeFlags(e.Flags)
	p.nl()
	p.str("\tsrc ")
	p.addr(e.ID.Src, familyOf(e.ID.Dst))
	p.peer(&e.ID, e.ReqID)
	return nil
}

// peer prints the rest of the second line of async events and mappings.
func (p *printer) peer(id *SAID, reqid uint32) {
	p.str(" dst ")
	p.addr(id.Dst, Unspec)
	p.str("  reqid ")
	p.xhex(reqid)
	p.str(" protocol ")
	if n := protoNames[uint8(id.Proto)]; n != "" {
		p.str(n)
	} else {
		p.dec(uint64(id.Proto))
	}
	p.str("  SPI ")
	p.xhex(id.SPI)
	p.nl()
}

func (p *printer) mapping(m Message) error {
	var e Mapping
	if err := e.Parse(m); err != nil {
		return err
	}
	p.str("Mapping change ")
	p.addr(e.OldSrc, Unspec)
	p.str(":")
	p.dec(uint64(e.OldPort))
	p.str(" -> ")
	p.addr(e.NewSrc, Unspec)
	p.str(":")
	p.dec(uint64(e.NewPort))
	p.nl()
	p.str("\tdst ")
	p.addr(e.ID.Dst, Unspec)
	p.str("  reqid ")
	p.xhex(e.ReqID)
	p.str(" protocol ")
	if n := protoNames[uint8(e.ID.Proto)]; n != "" {
		p.str(n)
	} else {
		p.dec(uint64(e.ID.Proto))
	}
	p.str("  SPI ")
	p.xhex(e.ID.SPI)
	p.nl()
	return nil
}

func (p *printer) migrate(m Message) error {
	var g Migrate
	if err := g.Parse(m); err != nil {
		return err
	}
	p.str("Migrate ")
	p.selector(&g.Policy.Sel, IPv4)
	p.line("\tdir ", g.Policy.Dir.String(), " ptype ", g.Policy.Type.String(), " ")
	for i := range g.Migrations {
		x := &g.Migrations[i]
		p.str("\tmigrate src ")
		p.addr(x.OldSrc, familyOf(x.OldDst))
		p.str(" dst ")
		p.addr(x.OldDst, familyOf(x.OldSrc))
		p.str(" to src ")
		p.addr(x.NewSrc, familyOf(x.NewDst))
		p.str(" dst ")
		p.addr(x.NewDst, familyOf(x.NewSrc))
		p.nl()
		p.str("\t\tproto ", x.Proto.String(), " reqid ")
		p.dec(uint64(x.ReqID))
		p.line(" mode ", x.Mode.String())
	}
	if k := g.KMAddress; k.Set {
		p.str("\tkmaddress local ")
		p.addr(k.Value.Local, Unspec)
		p.str(" remote ")
		p.addr(k.Value.Remote, Unspec)
		p.nl()
	}
	p.mark(g.Policy.Mark)
	return nil
}

func (p *printer) migrateState(m Message) error {
	var g MigrateState
	if err := g.Parse(m); err != nil {
		return err
	}
	p.str("Migrate state dst ")
	p.addr(g.ID.Dst, Unspec)
	p.str(" proto ", g.ID.Proto.String(), " spi 0x")
	p.hex8(g.ID.SPI)
	p.nl()
	p.str("\tto src ")
	p.addr(g.NewSrc, Unspec)
	p.str(" dst ")
	p.addr(g.NewDst, Unspec)
	p.str(" reqid ")
	p.dec(uint64(g.NewReqID))
	p.nl()
	p.mark(g.ID.Mark)
	return nil
}

func (p *printer) spdInfo(m Message) error {
	var i SPDInfo
	if err := i.Parse(m); err != nil {
		return err
	}
	field := func(name string, v uint32) {
		p.str(name)
		p.dec(uint64(v))
	}
	field("\t SPD IN  ", i.In)
	field(" OUT ", i.Out)
	field(" FWD ", i.Fwd)
	if p.o.Stats {
		field(" (Sock: IN ", i.SocketIn)
		field(" OUT ", i.SocketOut)
		field(" FWD ", i.SocketFwd)
		p.str(")")
	}
	p.nl()
	return nil
}
