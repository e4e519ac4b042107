package xfrm

import (
	"math"
	"net/netip"
)

// PortMatch selects a port: a packet's port matches if it equals Value in the
// bits of Mask. The zero value matches every port; Value 0 with Mask 0xffff
// matches port 0 only.
type PortMatch struct {
	Value uint16 `json:"value"`
	Mask  uint16 `json:"mask"`
}

// Port returns a match of exactly one port.
func Port(p uint16) PortMatch { return PortMatch{p, math.MaxUint16} }

// ICMPMatch returns the port matches that select one ICMP or ICMPv6 type and
// code (or Mobility Header type): the type is the source port, the code the
// destination port.
func ICMPMatch(typ, code uint8) (src, dst PortMatch) {
	return Port(uint16(typ)), Port(uint16(code))
}

// GREKey returns the port matches that select one GRE key: the upper half is
// the source port, the lower one the destination port.
func GREKey(key uint32) (src, dst PortMatch) {
	return Port(uint16(key >> 16)), Port(uint16(key))
}

// Selector says which packets a policy or state covers. The zero value covers
// everything of an unspecified family.
type Selector struct {
	Src     netip.Prefix `json:"src,omitzero"`     // host bits are kept
	Dst     netip.Prefix `json:"dst,omitzero"`     // host bits are kept
	Family  Family       `json:"family,omitzero"`  // 0: that of Src and Dst
	Proto   uint8        `json:"proto,omitzero"`   // IP protocol number, 0 for all
	SrcPort PortMatch    `json:"sport,omitzero"`   // or ICMP type, or upper half of a GRE key
	DstPort PortMatch    `json:"dport,omitzero"`   // or ICMP code, or lower half of a GRE key
	IfIndex int32        `json:"ifindex,omitzero"` // 0 for every interface
	UID     uint32       `json:"uid,omitzero"`     // the kernel stores it and ignores it
}

// EffectiveFamily is Family or, where that is 0, the family of the prefixes.
func (s *Selector) EffectiveFamily() Family {
	if s.Family != 0 {
		return s.Family
	}
	if f := familyOf(s.Dst.Addr()); f != 0 {
		return f
	}
	return familyOf(s.Src.Addr())
}

// put writes struct xfrm_selector, every octet of it.
func (s *Selector) put(p []byte) error {
	p = p[:sizeSelector]
	d, c := familyOf(s.Dst.Addr()), familyOf(s.Src.Addr())
	f := s.Family
	if f == Unspec {
		if f = d; d == Unspec {
			f = c
		}
	}
	if d != Unspec && d != f || c != Unspec && c != f {
		return ErrFamily
	}
	dst, src := s.Dst.Addr(), s.Src.Addr()
	putWhole((*[16]byte)(p[0:]), &dst)
	putWhole((*[16]byte)(p[16:]), &src)
	be.PutUint16(p[32:], s.DstPort.Value)
	be.PutUint16(p[34:], s.DstPort.Mask)
	be.PutUint16(p[36:], s.SrcPort.Value)
	be.PutUint16(p[38:], s.SrcPort.Mask)
	ne.PutUint16(p[40:], uint16(f))
	p[42], p[43] = 0, 0
	if d != Unspec {
		p[42] = bits(s.Dst)
	}
	if c != Unspec {
		p[43] = bits(s.Src)
	}
	ne.PutUint32(p[44:], 0)
	p[44] = s.Proto
	ne.PutUint32(p[48:], uint32(s.IfIndex))
	ne.PutUint32(p[52:], s.UID)
	return nil
}

// bits is the length of a prefix; one that is out of range counts as a host.
func bits(p netip.Prefix) byte {
	if b := p.Bits(); b >= 0 {
		return byte(b)
	}
	return byte(p.Addr().BitLen())
}

// get reads struct xfrm_selector. Addresses without a family are of the
// fallback's, as in the larval states that the kernel reports; without that
// they have no meaning and are left out.
func (s *Selector) get(p *[sizeSelector]byte, fallback Family) error {
	f := Family(ne.Uint16(p[40:]))
	d, c := int(p[42]), int(p[43])
	if f == Unspec && fallback != Unspec &&
		uint64(d|c)|ne.Uint64(p[0:])|ne.Uint64(p[8:])|ne.Uint64(p[16:])|ne.Uint64(p[24:]) != 0 {
		f = fallback
	}
	s.Family = f
	switch f {
	case IPv4:
		if d > 32 || c > 32 {
			return ErrPrefix
		}
		s.Dst = netip.PrefixFrom(netip.AddrFrom4([4]byte(p[0:])), d)
		s.Src = netip.PrefixFrom(netip.AddrFrom4([4]byte(p[16:])), c)
	case IPv6:
		if d > 128 || c > 128 {
			return ErrPrefix
		}
		s.Dst = netip.PrefixFrom(netip.AddrFrom16([16]byte(p[0:])), d)
		s.Src = netip.PrefixFrom(netip.AddrFrom16([16]byte(p[16:])), c)
	case Unspec:
		s.Dst, s.Src = netip.Prefix{}, netip.Prefix{}
	default:
		return ErrFamily
	}
	s.DstPort = PortMatch{be.Uint16(p[32:]), be.Uint16(p[34:])}
	s.SrcPort = PortMatch{be.Uint16(p[36:]), be.Uint16(p[38:])}
	s.Proto = p[44]
	s.IfIndex = int32(ne.Uint32(p[48:]))
	s.UID = ne.Uint32(p[52:])
	return nil
}

// Mark matches a packet's mark in the bits of Mask. The zero value means no
// mark; a Value outside of Mask never matches. It is part of the key of
// states and policies: GET, DEL and UPD need the same one.
type Mark struct {
	Value uint32 `json:"value"`
	Mask  uint32 `json:"mask"`
}

// NoLimit and ZeroLimit are the two special values of the byte and packet
// limits of a [Lifetime].
const (
	NoLimit   uint64 = 0              // the zero value: no limit
	ZeroLimit uint64 = math.MaxUint64 // a limit of 0, which the first packet exceeds
)

// Lifetime limits a state or policy. 0 means no limit in every field, so that
// the zero value lives for ever: on the wire the byte and packet limits then
// are all ones. A limit of zero octets or packets, which would kill at the
// first packet, is [ZeroLimit].
type Lifetime struct {
	SoftBytes      uint64 `json:"soft_bytes,omitzero"`
	HardBytes      uint64 `json:"hard_bytes,omitzero"`
	SoftPackets    uint64 `json:"soft_packets,omitzero"`
	HardPackets    uint64 `json:"hard_packets,omitzero"`
	SoftAddSeconds uint64 `json:"soft_add_seconds,omitzero"` // after creation
	HardAddSeconds uint64 `json:"hard_add_seconds,omitzero"`
	SoftUseSeconds uint64 `json:"soft_use_seconds,omitzero"` // after first use
	HardUseSeconds uint64 `json:"hard_use_seconds,omitzero"`
}

// limit swaps 0 and all ones, the two ways to say "no limit".
func limit(v uint64) uint64 {
	if v+1 <= 1 {
		return ^v
	}
	return v
}

func (l *Lifetime) put(p *[sizeLftCfg]byte) {
	l.putLimits((*[32]byte)(p[:]))
	ne.PutUint64(p[32:], l.SoftAddSeconds)
	ne.PutUint64(p[40:], l.HardAddSeconds)
	ne.PutUint64(p[48:], l.SoftUseSeconds)
	ne.PutUint64(p[56:], l.HardUseSeconds)
}

func (l *Lifetime) putLimits(p *[32]byte) {
	ne.PutUint64(p[0:], limit(l.SoftBytes))
	ne.PutUint64(p[8:], limit(l.HardBytes))
	ne.PutUint64(p[16:], limit(l.SoftPackets))
	ne.PutUint64(p[24:], limit(l.HardPackets))
}

func (l *Lifetime) get(p *[sizeLftCfg]byte) {
	if ne.Uint64(p[0:])&ne.Uint64(p[8:])&ne.Uint64(p[16:])&ne.Uint64(p[24:]) == ZeroLimit { // as most are
		l.SoftBytes, l.HardBytes, l.SoftPackets, l.HardPackets = 0, 0, 0, 0
	} else {
		l.getLimits((*[32]byte)(p[:]))
	}
	l.SoftAddSeconds = ne.Uint64(p[32:])
	l.HardAddSeconds = ne.Uint64(p[40:])
	l.SoftUseSeconds = ne.Uint64(p[48:])
	l.HardUseSeconds = ne.Uint64(p[56:])
}

func (l *Lifetime) getLimits(p *[32]byte) {
	l.SoftBytes = limit(ne.Uint64(p[0:]))
	l.HardBytes = limit(ne.Uint64(p[8:]))
	l.SoftPackets = limit(ne.Uint64(p[16:]))
	l.HardPackets = limit(ne.Uint64(p[24:]))
}

// Counters are the current lifetime of a state or policy, as the kernel
// reports it.
type Counters struct {
	Bytes   uint64 `json:"bytes"`
	Packets uint64 `json:"packets"`
	AddTime uint64 `json:"add_time"` // Unix seconds
	UseTime uint64 `json:"use_time"` // Unix seconds of the first use, 0 if never
}

func (c *Counters) put(p []byte) {
	p = p[:sizeLftCur]
	ne.PutUint64(p[0:], c.Bytes)
	ne.PutUint64(p[8:], c.Packets)
	ne.PutUint64(p[16:], c.AddTime)
	ne.PutUint64(p[24:], c.UseTime)
}

func (c *Counters) get(p *[sizeLftCur]byte) {
	c.Bytes, c.Packets = ne.Uint64(p[0:]), ne.Uint64(p[8:])
	c.AddTime, c.UseTime = ne.Uint64(p[16:]), ne.Uint64(p[24:])
}

// Stats count the packets that a state refused.
type Stats struct {
	ReplayWindow    uint32 `json:"replay_window"` // left of the window
	Replay          uint32 `json:"replay"`        // seen before
	IntegrityFailed uint32 `json:"integrity_failed"`
}

// AEAD is a combined algorithm. The zero value means none.
type AEAD struct {
	Name    string `json:"name"`
	Key     Key    `json:"key,omitempty"` // with the salt of 4 octets (GCM, ChaCha20) or 3 (CCM) at its end
	ICVBits uint32 `json:"icv_bits"`
}

// Auth is an authentication algorithm. The zero value means none.
type Auth struct {
	Name      string `json:"name"`
	Key       Key    `json:"key,omitempty"`
	TruncBits uint32 `json:"trunc_bits"` // 0: the kernel's default, which is 96 even for SHA-256
	// Legacy sends XFRMA_ALG_AUTH, which carries no truncation, instead of
	// XFRMA_ALG_AUTH_TRUNC. TruncBits must then be 0.
	Legacy bool `json:"legacy,omitzero"`
}

// Algorithm is a cipher or compression algorithm. The zero value means none.
type Algorithm struct {
	Name string `json:"name"`
	Key  Key    `json:"key,omitempty"`
}

// Encap wraps ESP into UDP or TCP. Type 0 means no encapsulation.
type Encap struct {
	Type EncapType  `json:"type"`
	Src  uint16     `json:"sport"`         // source port
	Dst  uint16     `json:"dport"`         // destination port
	Addr netip.Addr `json:"addr,omitzero"` // original address of the peer (RFC 3948 section 3.1.2), mostly unset
}

// Offload asks a network device to do the work. The device is 0 for none
// named, which only whole-packet offload allows.
type Offload struct {
	IfIndex int32        `json:"ifindex"`
	Flags   OffloadFlags `json:"flags"`
}

// SecCtx is the security label of a Linux Security Module. The zero value
// means none.
type SecCtx struct {
	DOI  uint8  `json:"doi"`
	Alg  uint8  `json:"alg"` // 1: SELinux
	Text string `json:"text"`
}

// IPTFSOptions tune aggregation and fragmentation (RFC 9347). Absent values
// take the kernel's sysctl defaults.
type IPTFSOptions struct {
	DropMicros   Opt[uint32] `json:"drop_micros,omitzero"`        // in: give up on a missing packet
	ReorderWin   Opt[uint16] `json:"reorder_window,omitzero"`     // in: packets
	DontFragment bool        `json:"dont_fragment,omitzero"`      // out
	InitMicros   Opt[uint32] `json:"init_delay_micros,omitzero"`  // out: wait to aggregate
	MaxQueue     Opt[uint32] `json:"max_queue_octets,omitzero"`   // out
	PacketSize   Opt[uint32] `json:"packet_size_octets,omitzero"` // out, 0: the path's MTU
}

// ReplayForm says how the replay state travels.
type ReplayForm uint8

// Replay forms. ReplayAuto takes the octet of the fixed part up to a window
// of 32 and XFRMA_REPLAY_ESN_VAL above and with [ESN]; the others describe
// messages that do it differently.
const (
	ReplayAuto ReplayForm = iota
	ReplayLegacy
	ReplayExtended
)

// Replay is the anti-replay state of an SA. The zero value has no window:
// use [NewReplay] or [NoReplayWindow] to choose.
type Replay struct {
	Window uint32     `json:"window"`         // packets, at most 4096
	Form   ReplayForm `json:"form,omitzero"`  // ReplayAuto in almost every case
	Words  uint32     `json:"words,omitzero"` // bitmap length in words of 32 bits; 0: the least that holds Window
	Seq    uint32     `json:"seq"`            // highest received
	OSeq   uint32     `json:"oseq"`           // last sent
	SeqHi  uint32     `json:"seq_hi"`         // upper half with ESN
	OSeqHi uint32     `json:"oseq_hi"`        // upper half with ESN
	// Bitmap marks what was received, from the kernel: one word without an
	// extended state, else Words words. It may be empty.
	Bitmap []uint32 `json:"bitmap,omitempty"`
	// Reported means that the message carried a replay state.
	Reported bool `json:"reported,omitzero"`
	// LegacyWindow is the octet of the fixed part of a message that carries
	// an extended state as well. The kernel refuses anything but 0.
	LegacyWindow uint8 `json:"legacy_window,omitzero"`
}

// MaxReplayWindow is the largest replay window in packets.
const MaxReplayWindow = 4096

// NewReplay returns a replay state with a window of so many packets, from 1
// to 4096.
func NewReplay(window uint32) (Replay, error) {
	if window == 0 || window > MaxReplayWindow {
		return Replay{}, &RuleError{Field: "Replay.Window", Rule: "must be from 1 to 4096 packets"}
	}
	return Replay{Window: window}, nil
}

// NoReplayWindow returns the state without protection against replay, which
// an outbound SA needs and an inbound one should not have.
func NoReplayWindow() Replay { return Replay{} }

// extended reports whether the state travels in XFRMA_REPLAY_ESN_VAL.
func (r *Replay) extended(f SAFlags) bool {
	switch r.Form {
	case ReplayLegacy:
		return false
	case ReplayExtended:
		return true
	}
	return f&ESN != 0 || r.Window > 32
}

// words is the length of the bitmap of an extended state.
func (r *Replay) words() uint32 {
	if r.Words != 0 {
		return r.Words
	}
	return (r.Window + 31) / 32
}
