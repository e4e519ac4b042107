package xfrm

import "math"

// Kernel says what the kernel at the other end knows. The zero value stands
// for one that knows everything this package does.
type Kernel struct {
	Major, Minor int  // version, such as 6 and 12; 0 and 0 for the newest
	NoESPInTCP   bool // built without INET_ESPINTCP, as Debian's cloud kernels are
}

// before reports whether the kernel is older than a version.
func (k Kernel) before(major, minor int) bool {
	return (k.Major != 0 || k.Minor != 0) && (k.Major < major || k.Major == major && k.Minor < minor)
}

// Check applies the rules of the newest kernel and of this package to a state
// that is to be added. It returns nil or a [*RuleError] with the first rule
// that is broken: the kernel's own rules come first and have the kernel's
// words. See the package comment for what is refused on purpose.
func (s *SA) Check() error { return s.CheckOn(Kernel{}) }

// CheckOn is Check for one kernel: it also refuses what that kernel is too
// old for and would refuse or, worse, silently leave out.
func (s *SA) CheckOn(k Kernel) error {
	for _, rules := range [...]func(Kernel) (string, string){
		s.saProtocol, s.saAlgorithms, s.saReplay, s.saMode, s.saDirection,
	} {
		if field, rule := rules(k); rule != "" {
			return &RuleError{Field: field, Rule: rule}
		}
	}
	if err := s.algorithmError(); err != nil {
		return err
	}
	if field, rule := s.saInit(k); rule != "" {
		return &RuleError{Field: field, Rule: rule}
	}
	if field, rule := s.saAge(k); rule != "" {
		return &RuleError{Field: field, Rule: rule, OnPurpose: true}
	}
	if field, rule := s.saOnPurpose(); rule != "" {
		return &RuleError{Field: field, Rule: rule, OnPurpose: true}
	}
	return nil
}

func checkSelector(s *Selector, family string) (string, string) {
	f := s.EffectiveFamily()
	for _, p := range [...]struct {
		f    Family
		bits int
		ok   bool
	}{{familyOf(s.Src.Addr()), s.Src.Bits(), s.Src.IsValid()}, {familyOf(s.Dst.Addr()), s.Dst.Bits(), s.Dst.IsValid()}} {
		switch {
		case p.f == Unspec:
		case !p.ok && f == IPv4:
			return "Sel", "Invalid prefix length in selector (must be <= 32 for IPv4)"
		case !p.ok:
			return "Sel", "Invalid prefix length in selector (must be <= 128 for IPv6)"
		case p.f != f:
			return "Sel.Family", family
		}
	}
	if f != IPv4 && f != IPv6 && f != Unspec {
		return "Sel.Family", family
	}
	return "", ""
}

// saProtocol holds the rules about addresses and which attributes a protocol
// needs.
func (s *SA) saProtocol(Kernel) (string, string) {
	if f, err := pairFamily(s.Dst, s.Src); err != nil || f == Unspec {
		return "Dst", "Invalid address family"
	}
	if f, r := checkSelector(&s.Sel, "Invalid address family in selector"); r != "" {
		return f, r
	}
	aead, enc, auth, comp := s.AEAD.Name != "", s.Cipher.Name != "", s.Auth.Name != "", s.Comp.Name != ""
	switch s.Proto {
	case AH:
		switch {
		case !auth:
			return "Auth", "Missing required attribute for AH: AUTH_TRUNC or AUTH"
		case aead || enc || comp || s.TFCPad != 0:
			return "Proto", "Invalid attributes for AH: AEAD, CRYPT, COMP, TFCPAD"
		}
	case ESP:
		switch {
		case comp:
			return "Comp", "Invalid attribute for ESP: COMP"
		case !aead && !enc && !auth:
			return "AEAD", "Missing required attribute for ESP: at least one of AUTH, AUTH_TRUNC, CRYPT, AEAD"
		case aead && (enc || auth):
			return "AEAD", "Invalid attribute combination for ESP: AEAD can't be used with AUTH, AUTH_TRUNC, CRYPT"
		case s.TFCPad != 0 && s.Mode != Tunnel:
			return "TFCPad", "TFC padding can only be used in tunnel mode"
		case s.IPTFS != (IPTFSOptions{}) && s.Mode != IPTFS:
			return "IPTFS", "IP-TFS options can only be used in IP-TFS mode"
		}
	case Comp:
		switch {
		case !comp:
			return "Comp", "Missing required attribute for COMP: COMP"
		case aead || enc || auth || s.TFCPad != 0:
			return "Proto", "Invalid attributes for COMP: AEAD, AUTH, AUTH_TRUNC, CRYPT, TFCPAD"
		case s.SPI >= 0x10000:
			return "SPI", "SPI is too large for COMP (must be < 0x10000)"
		}
	case Route2, HAO:
		switch {
		case aead || enc || auth || comp || s.Encap.Type != 0 || s.SecCtx != (SecCtx{}) || s.TFCPad != 0:
			return "Proto", "Invalid attributes for DSTOPTS/ROUTING"
		case !s.CoA.IsValid():
			return "CoA", "Missing required COADDR attribute for DSTOPTS/ROUTING"
		}
	default:
		return "Proto", "Unsupported protocol"
	}
	return "", ""
}

// saAlgorithms holds the rules about names that cannot travel.
func (s *SA) saAlgorithms(Kernel) (string, string) {
	for _, a := range [...]struct {
		field, name string
		key         Key
	}{{"AEAD", s.AEAD.Name, s.AEAD.Key}, {"Cipher", s.Cipher.Name, s.Cipher.Key},
		{"Auth", s.Auth.Name, s.Auth.Key}, {"Comp", s.Comp.Name, s.Comp.Key}} {
		if len(a.name) > 63 || len(a.key) > maxKey {
			return a.field, "name or key too long for its attribute"
		}
		if a.name == "" && len(a.key) > 0 {
			return a.field, "a key without an algorithm"
		}
	}
	if s.Auth.Legacy && s.Auth.TruncBits != 0 {
		return "Auth.TruncBits", "AUTH carries no truncation: use AUTH_TRUNC"
	}
	return "", ""
}

// saReplay holds the rules about replay windows and ESN.
func (s *SA) saReplay(Kernel) (string, string) {
	r := &s.Replay
	esn := s.Flags&ESN != 0
	if !r.extended(s.Flags) {
		if esn {
			return "Replay.Form", "Missing required attribute for ESN"
		}
		if r.Window > 255 {
			return "Replay.Window", "a window above 255 needs XFRMA_REPLAY_ESN_VAL"
		}
		return "", ""
	}
	n := uint32(len(r.Bitmap))
	switch {
	case r.words() > MaxReplayWindow/32:
		return "Replay.Words", "ESN bitmap length must be <= 128"
	case n != 0 && n != r.words():
		return "Replay.Bitmap", "ESN attribute is too short to fit the full bitmap length"
	case s.Proto != ESP && s.Proto != AH:
		return "Proto", "ESN only supported for ESP and AH"
	case r.LegacyWindow != 0:
		return "Replay.LegacyWindow", "ESN not compatible with legacy replay_window"
	}
	switch s.Dir {
	case SAOut:
		switch {
		case r.Window != 0:
			return "Replay.Window", "Replay window should be 0 for output SA"
		case r.Seq != 0 || r.SeqHi != 0:
			return "Replay.Seq", "Replay seq and seq_hi should be 0 for output SA"
		case r.OSeqHi != 0 && !esn:
			return "Replay.OSeqHi", "Replay oseq_hi should be 0 in non-ESN mode for output SA"
		case r.words() != 0:
			return "Replay.Words", "Replay bmp_len should 0 for output SA"
		}
	case SAIn:
		switch {
		case r.OSeq != 0 || r.OSeqHi != 0:
			return "Replay.OSeq", "Replay oseq and oseq_hi should be 0 for input SA"
		case r.SeqHi != 0 && !esn:
			return "Replay.SeqHi", "Replay seq_hi should be 0 in non-ESN mode for input SA"
		}
	}
	switch {
	case uint64(r.Window) > 32*uint64(r.words()):
		return "Replay.Window", "ESN replay window is too large for the chosen bitmap size"
	case esn && r.Window == 0 && s.Dir != SAOut:
		return "Replay.Window", "ESN replay window must be > 0"
	}
	return "", ""
}

// saMode holds the rules about modes.
func (s *SA) saMode(k Kernel) (string, string) {
	switch s.Mode {
	case Transport, Tunnel, RouteOptimization, BEET:
	case IPTFS:
		switch {
		case k.before(6, 14):
			return "Mode", "Unsupported mode"
		case s.Proto != ESP:
			return "Mode", "IP-TFS mode only supported with ESP"
		case s.Dir == 0:
			return "Dir", "IP-TFS mode requires in or out direction attribute"
		}
	default:
		return "Mode", "Unsupported mode"
	}
	return "", ""
}

// saDirection holds the rules that SA_DIR brings.
func (s *SA) saDirection(Kernel) (string, string) {
	encap := s.Encap.Type != 0
	if s.Dir > SAOut {
		return "Dir", "integer out of range"
	}
	if s.MTimer.Set {
		switch {
		case !encap:
			return "MTimer", "MTIMER_THRESH attribute can only be set on ENCAP states"
		case s.Dir == SAOut:
			return "MTimer", "MTIMER_THRESH attribute should not be set on output SA"
		}
	}
	switch s.Dir {
	case SAOut:
		switch {
		case s.Flags&DecapDSCP != 0:
			return "Flags", "Flag DECAP_DSCP should not be set for output SA"
		case s.Flags&ICMP != 0:
			return "Flags", "Flag ICMP should not be set for output SA"
		case s.Flags&WildRecv != 0:
			return "Flags", "Flag WILDRECV should not be set for output SA"
		case s.Replay.Window != 0:
			return "Replay.Window", "Replay window should be 0 for output SA"
		case s.IPTFS.DropMicros.Set:
			return "IPTFS.DropMicros", "IP-TFS drop time should not be set for output SA"
		case s.IPTFS.ReorderWin.Set:
			return "IPTFS.ReorderWin", "IP-TFS reorder window should not be set for output SA"
		case s.Replay.Seq != 0 || len(s.Replay.Bitmap) > 0 && s.Replay.Bitmap[0] != 0:
			return "Replay.Seq", "Replay seq and bitmap should be 0 for output SA"
		}
	case SAIn:
		switch {
		case s.Flags&NoPMTUDisc != 0:
			return "Flags", "Flag NOPMTUDISC should not be set for input SA"
		case s.ExtraFlags&DontEncapDSCP != 0:
			return "ExtraFlags", "Flag DONT_ENCAP_DSCP should not be set for input SA"
		case s.ExtraFlags&OSeqMayWrap != 0:
			return "ExtraFlags", "Flag OSEQ_MAY_WRAP should not be set for input SA"
		case s.IPTFS.DontFragment:
			return "IPTFS.DontFragment", "IP-TFS don't fragment should not be set for input SA"
		case s.IPTFS.InitMicros.Set:
			return "IPTFS.InitMicros", "IP-TFS initial delay should not be set for input SA"
		case s.IPTFS.MaxQueue.Set:
			return "IPTFS.MaxQueue", "IP-TFS max queue size should not be set for input SA"
		case s.IPTFS.PacketSize.Set:
			return "IPTFS.PacketSize", "IP-TFS packet size should not be set for input SA"
		}
	}
	if s.PCPU.Set && s.Dir == 0 {
		return "PCPU", "SA_PCPU only supported with SA_DIR"
	}
	if s.NATKeepalive != 0 {
		switch {
		case s.Dir != SAOut:
			return "NATKeepalive", "NAT keepalive is only supported for outbound SAs"
		case !encap:
			return "NATKeepalive", "NAT keepalive is only supported for UDP encapsulation"
		}
	}
	if o := s.Offload; o.Set {
		switch in := o.Value.Flags&OffloadInbound != 0; {
		case s.Dir == SAIn && !in || s.Dir == SAOut && in:
			return "Offload", "Mismatched SA and offload direction"
		case o.Value.Flags&^(OffloadIPv6|OffloadInbound|OffloadPacket) != 0:
			return "Offload", "Unrecognized flags in offload request"
		}
	}
	return "", ""
}

// algorithmError holds the rules about algorithms and key lengths, which are
// the kernel's crypto layer's.
func (s *SA) algorithmError() error {
	if s.AEAD.Name != "" {
		if err := checkAEAD(&s.AEAD); err != nil {
			return err
		}
	}
	if s.Auth.Name != "" {
		if err := checkAuth(&s.Auth); err != nil {
			return err
		}
	}
	if s.Cipher.Name != "" {
		if err := checkCipher(&s.Cipher); err != nil {
			return err
		}
	}
	switch s.Comp.Name {
	case "", "deflate":
		return nil
	}
	return &RuleError{Field: "Comp.Name", Rule: "Requested COMP algorithm not found"}
}

// loopback is the index of lo in every network namespace.
const loopback = 1

// saInit holds the rules of the protocols' own initialisation.
func (s *SA) saInit(k Kernel) (string, string) {
	encap := s.Encap.Type
	switch s.Proto {
	case AH:
		if encap != 0 {
			return "Encap", "AH is not compatible with encapsulation"
		}
	case ESP:
		if s.AEAD.Name == "" && s.Cipher.Name == "" {
			return "Cipher", "ESP: AEAD or CRYPT must be provided"
		}
		switch encap {
		case 0, ESPInUDP:
		case ESPInUDPNonIKE:
			if !k.before(6, 10) { // proven on 6.1 and 6.12
				return "Encap.Type", "Unsupported encapsulation type for ESP"
			}
		case ESPInTCP:
			if k.NoESPInTCP || k.before(5, 6) {
				return "Encap.Type", "Unsupported encapsulation type for ESP"
			}
		default:
			return "Encap.Type", "Unsupported encapsulation type for ESP"
		}
	case Comp:
		switch {
		case encap != 0:
			return "Encap", "IPComp is not compatible with encapsulation"
		case s.Mode != Transport && s.Mode != Tunnel:
			return "Mode", "Unsupported XFRM mode for IPcomp"
		}
	case Route2, HAO:
		switch {
		case s.SPI != 0:
			return "SPI", "SPI must be 0"
		case s.Mode != RouteOptimization:
			return "Mode", "XFRM mode must be XFRM_MODE_ROUTEOPTIMIZATION"
		case s.Family() != IPv6:
			return "Dst", "Requested type not found"
		}
	}
	if s.Offload.Set && s.Offload.Value.IfIndex == loopback {
		return "Offload", "Type doesn't support offload"
	}
	return "", ""
}

// saAge holds what an older kernel leaves out without a word.
func (s *SA) saAge(k Kernel) (string, string) {
	const ignored = ": older ones silently ignore it"
	switch {
	case s.Dir != 0 && k.before(6, 10):
		return "Dir", "needs Linux 6.10" + ignored
	case s.NATKeepalive != 0 && k.before(6, 11):
		return "NATKeepalive", "needs Linux 6.11" + ignored
	case s.PCPU.Set && k.before(6, 12):
		return "PCPU", "needs Linux 6.12" + ignored
	case s.MTimer.Set && k.before(5, 19):
		return "MTimer", "needs Linux 5.19" + ignored
	case s.IfID != 0 && k.before(4, 19):
		return "IfID", "needs Linux 4.19" + ignored
	case s.SetMark != (Mark{}) && k.before(4, 19):
		return "SetMark", "needs Linux 4.19" + ignored
	case s.Offload.Set && s.Offload.Value.Flags&OffloadPacket != 0 && k.before(6, 2):
		return "Offload", "whole-packet offload needs Linux 6.2" + ignored
	}
	return "", ""
}

func neverMatches(m Mark) bool { return m.Value&^m.Mask != 0 }

func zeroLimited(l *Lifetime) bool {
	return l.SoftBytes == ZeroLimit || l.HardBytes == ZeroLimit || l.SoftPackets == ZeroLimit || l.HardPackets == ZeroLimit
}

// saOnPurpose holds the rules of this package: the kernel accepts what they
// refuse.
func (s *SA) saOnPurpose() (string, string) {
	sha256, _ := findAuth("hmac(sha256)")
	auth, authKnown := findAuth(s.Auth.Name)
	null := !authKnown || auth.full == 0
	switch {
	case s.Proto.ipsec() && s.SPI == 0:
		return "SPI", "SPI 0 is reserved and the state could not be deleted by its name"
	case s.Proto == ESP && s.Cipher.Name != "" && !nullCipher(s.Cipher.Name) && null:
		return "Auth", "a cipher without authentication: packets could be forged"
	case auth.name == sha256.name && s.Auth.TruncBits == 0:
		return "Auth.TruncBits", "the kernel would truncate SHA-256 to 96 bits, RFC 4868 demands 128"
	case authKnown && auth.key == nil && len(s.Auth.Key) == 0:
		return "Auth.Key", "an empty key authenticates nobody"
	case s.Auth.Name != "" && auth.full != 0 && s.Auth.TruncBits != 0 && (s.Auth.TruncBits < 64 || s.Auth.TruncBits%8 != 0):
		return "Auth.TruncBits", "too short to authenticate, or not whole octets"
	case !s.Replay.extended(s.Flags) && s.Replay.Window > 32:
		return "Replay.Window", "the kernel would silently cap the window to 32"
	case neverMatches(s.Mark):
		return "Mark", "a value outside of the mask can never match"
	case s.SetMark.Value == 0 && s.SetMark.Mask != 0:
		return "SetMark", "a mask alone has no effect"
	case s.SetMark.Mask != 0 && neverMatches(s.SetMark):
		return "SetMark", "bits outside of the mask are not set"
	case zeroLimited(&s.Lifetime):
		return "Lifetime", "a limit of zero kills the state at its first packet"
	case s.Proto.ipsec() && s.Mode == RouteOptimization:
		return "Mode", "route optimization is for Mobile IPv6 protocols only"
	case s.CoA.IsValid() && s.Proto.ipsec():
		return "CoA", "a care-of address is for Mobile IPv6 protocols only"
	}
	return "", ""
}

// Check applies the rules of the newest kernel and of this package to a
// policy that is to be added. It returns nil or a [*RuleError].
func (p *Policy) Check() error { return p.CheckOn(Kernel{}) }

// CheckOn is Check for one kernel.
func (p *Policy) CheckOn(k Kernel) error {
	if field, rule := p.policyRules(k); rule != "" {
		return &RuleError{Field: field, Rule: rule}
	}
	if field, rule := p.policyOnPurpose(k); rule != "" {
		return &RuleError{Field: field, Rule: rule, OnPurpose: true}
	}
	return nil
}

func (p *Policy) policyRules(k Kernel) (string, string) {
	f := p.Sel.EffectiveFamily()
	switch {
	case p.Share > ShareUnique:
		return "Share", "Invalid policy share"
	case p.Action > Block:
		return "Action", "Invalid policy action"
	}
	if field, r := checkSelector(&p.Sel, "Invalid selector family"); r != "" {
		return field, r
	}
	switch {
	case f == Unspec:
		return "Sel.Family", "Invalid selector family"
	case p.Dir > Fwd:
		return "Dir", "Invalid policy direction"
	case p.Index != 0 && p.Index&7 != uint32(p.Dir):
		return "Index", "Policy index doesn't match direction"
	case p.Type != PolicyMain && p.Type != PolicySub:
		return "Type", "Invalid policy type"
	case len(p.Templates) > MaxTemplates:
		return "Templates", "Template count must be <= XFRM_MAX_DEPTH (6)"
	}
	for i := range p.Templates {
		t := &p.Templates[i]
		tf, err := pairFamily(t.Dst, t.Src)
		if err != nil {
			return "Templates", "Invalid family in template"
		}
		if tf == Unspec {
			if tf = t.Family; tf == Unspec {
				tf = p.Sel.EffectiveFamily()
			}
		}
		switch {
		case t.Mode == Tunnel || t.Mode == BEET || t.Mode == IPTFS:
			if t.Level != Required && p.Dir == Out {
				return "Templates.Level", "Mode in optional template not allowed in outbound policy"
			}
		case tf != f:
			return "Templates.Mode", "Mode in template doesn't support a family change"
		}
		switch {
		case t.Mode > IPTFS || t.Mode == IPTFS && k.before(6, 14):
			return "Templates.Mode", "Mode in template must be < XFRM_MODE_MAX"
		case tf != IPv4 && tf != IPv6:
			return "Templates.Family", "Invalid family in template"
		}
		switch t.Proto {
		case ESP, AH, Comp, Route2, HAO:
		default:
			return "Templates.Proto", "Invalid XFRM protocol in template"
		}
		f = tf
	}
	if p.Offload.Set && p.Offload.Value.IfIndex == loopback {
		return "Offload", "Policy offload is not supported"
	}
	return "", ""
}

func (p *Policy) policyOnPurpose(k Kernel) (string, string) {
	switch {
	case neverMatches(p.Mark):
		return "Mark", "a value outside of the mask can never match"
	case zeroLimited(&p.Lifetime):
		return "Lifetime", "a limit of zero ends the policy at its first packet"
	case p.Offload.Set && k.before(6, 2):
		return "Offload", "policy offload needs Linux 6.2: older ones silently ignore it"
	case p.IfID != 0 && k.before(4, 19):
		return "IfID", "needs Linux 4.19: older ones silently ignore it"
	}
	for _, t := range p.Templates {
		if t.NoAuth == math.MaxUint32 && (t.Proto == ESP || t.Proto == AH) {
			return "Templates.NoAuth", "a template that permits no algorithm can never be met"
		}
	}
	return "", ""
}

// Check applies the rules of the kernel to a request for an SPI.
func (r *SPIRequest) Check() error {
	switch {
	case r.SA.Proto == Comp && r.Max > math.MaxUint16:
		return &RuleError{Field: "Max", Rule: "IPCOMP SPI must be <= 65535"}
	case !r.SA.Proto.ipsec():
		return &RuleError{Field: "SA.Proto", Rule: "Invalid protocol, must be one of AH, ESP, IPCOMP"}
	case r.Min > r.Max:
		return &RuleError{Field: "Min", Rule: "Invalid SPI range: min > max"}
	case neverMatches(r.SA.Mark):
		return &RuleError{Field: "SA.Mark", Rule: "a value outside of the mask can never match", OnPurpose: true}
	}
	return nil
}

// CheckMessage parses a request and applies the rules of Check on one kernel
// to it. Requests without rules of their own, such as those that delete,
// only have to be well-formed. The error is a [*RuleError] or a
// [*FormatError].
func CheckMessage(m Message, k Kernel) error {
	switch m.Type {
	case NewSA, UpdSA:
		var s SA
		defer s.ClearKeys()
		if err := s.Parse(m); err != nil {
			return err
		}
		return s.CheckOn(k)
	case NewPolicy, UpdPolicy:
		var p Policy
		if err := p.Parse(m); err != nil {
			return err
		}
		return p.CheckOn(k)
	case AllocSPI:
		var r SPIRequest
		if err := r.Parse(m); err != nil {
			return err
		}
		return r.Check()
	case DelSA, GetSA:
		if m.isDump() {
			var f SAFilter
			return f.Parse(m)
		}
		var id SAID
		return id.Parse(m)
	case DelPolicy, GetPolicy:
		if m.isDump() {
			return nil
		}
		var id PolicyID
		return id.Parse(m)
	case NewAE, GetAE:
		var e AsyncEvent
		if err := e.Parse(m); err != nil {
			return err
		}
		if m.Type == NewAE && m.Flags&FlagReplace == 0 {
			return &RuleError{Field: "Flags", Rule: "NLM_F_REPLACE flag is required"}
		}
		return nil
	case MsgMigrateState:
		if k.before(7, 2) {
			return &RuleError{Field: "Type", Rule: "MIGRATE_STATE needs Linux 7.2"}
		}
		var g MigrateState
		return g.Parse(m)
	case MsgMigrate:
		var g Migrate
		if err := g.Parse(m); err != nil {
			return err
		}
		if len(g.Migrations) == 0 || len(g.Migrations) > MaxTemplates {
			return &RuleError{Field: "Migrations", Rule: "Invalid number of SAs to migrate, must be 0 < num <= XFRM_MAX_DEPTH (6)"}
		}
		return nil
	case SetDefault, GetDefault, FlushSA, FlushPolicy, MsgExpire, MsgPolExpire, MsgReport, MsgAcquire, MsgMapping:
		_, err := ParseEvent(m)
		return err
	case NewSADInfo, GetSADInfo, NewSPDInfo, GetSPDInfo:
		_, err := m.attrs(m.Type)
		return err
	}
	return &FormatError{Type: m.Type, Err: ErrType}
}
