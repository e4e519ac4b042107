package xfrm

import (
	"bytes"
	"net/netip"
	"slices"
)

// Op is what a [Change] does.
type Op uint8

// Operations.
const (
	OpAdd Op = iota
	OpUpdate
	OpReplace // of a state: delete and add, as the kernel cannot change keys and mode in place
	OpDelete
)

func (o Op) String() string {
	switch o {
	case OpAdd:
		return "add"
	case OpUpdate:
		return "update"
	case OpReplace:
		return "replace"
	}
	return "delete"
}

// Change is one step from a set of states and policies to another. Exactly
// one of SA and Policy is set: for OpDelete the present entry, else the wanted
// one.
type Change struct {
	Op     Op
	SA     *SA
	Policy *Policy
}

// Set is what a kernel holds or should hold.
type Set struct {
	States   []*SA
	Policies []*Policy
}

// DiffOptions restrict what Diff may delete.
type DiffOptions struct {
	// OwnSA and OwnPolicy tell which present entries belong to the caller. An
	// entry that is not wanted is deleted only if they say so; nil owns all.
	// Larval states and the policies of sockets are never deleted.
	OwnSA     func(*SA) bool
	OwnPolicy func(*Policy) bool
	// IgnoreStates and IgnorePolicies leave one kind alone.
	IgnoreStates, IgnorePolicies bool
}

// saKey identifies a state in the kernel.
type saKey struct {
	dst   netip.Addr
	spi   uint32
	proto Proto
	mark  Mark
	src   netip.Addr // for Mobile IPv6, which has no SPI
}

func keyOfSA(s *SA) saKey {
	k := saKey{s.Dst, s.SPI, s.Proto, s.Mark, netip.Addr{}}
	if !s.Proto.ipsec() {
		k.src = s.Src
	}
	return k
}

// policyKey identifies a policy in the kernel.
type policyKey struct {
	sel  Selector
	dir  Dir
	typ  PolicyType
	mark Mark
	ifid uint32
	ctx  SecCtx
}

func keyOfPolicy(p *Policy) policyKey {
	return policyKey{normalSelector(p.Sel, Unspec), p.Dir, p.Type, p.Mark, p.IfID, p.SecCtx}
}

// normalSelector is the selector as the kernel reports it.
func normalSelector(s Selector, f Family) Selector {
	if s.EffectiveFamily() != Unspec {
		f = s.EffectiveFamily()
	}
	s.Family = f
	zero := zeroAddr(f)
	if !s.Src.IsValid() && zero.IsValid() {
		s.Src = netip.PrefixFrom(zero, 0)
	}
	if !s.Dst.IsValid() && zero.IsValid() {
		s.Dst = netip.PrefixFrom(zero, 0)
	}
	return s
}

// larval reports whether a state waits for its keys: the kernel made it for
// an ACQUIRE or an ALLOCSPI.
func larval(s *SA) bool {
	return s.Proto.ipsec() && s.AEAD.Name == "" && s.Cipher.Name == "" && s.Auth.Name == "" && s.Comp.Name == ""
}

// Diff returns the fewest changes that make have into want, in an order that
// leaves no gap: states are added and updated first, then policies are added
// and replaced in place, then policies are deleted, and states at last. A
// state whose keys or mode change under the same name is the one exception: it
// is deleted and added, in two messages that follow each other. If an entry is
// wanted twice the last one counts. The changes point to the entries of have
// and want.
func Diff(have, want Set, o DiffOptions) []Change {
	var adds, policies, delPolicies, delStates []Change
	if !o.IgnoreStates {
		present := map[saKey]*SA{}
		for _, s := range have.States {
			present[keyOfSA(s)] = s
		}
		wanted := map[saKey]*SA{}
		for _, s := range want.States {
			wanted[keyOfSA(s)] = s
		}
		for _, s := range want.States {
			k := keyOfSA(s)
			if wanted[k] != s {
				continue
			}
			switch old := present[k]; {
			case old == nil:
				adds = append(adds, Change{OpAdd, s, nil})
			case SameSA(s, old):
			case larval(old) || updatable(s, old):
				adds = append(adds, Change{OpUpdate, s, nil})
			default:
				adds = append(adds, Change{OpReplace, s, nil})
			}
		}
		for _, s := range have.States {
			if wanted[keyOfSA(s)] == nil && !larval(s) && (o.OwnSA == nil || o.OwnSA(s)) {
				delStates = append(delStates, Change{OpDelete, s, nil})
			}
		}
	}
	if !o.IgnorePolicies {
		present := map[policyKey]*Policy{}
		for _, p := range have.Policies {
			if p.Dir <= Fwd {
				present[keyOfPolicy(p)] = p
			}
		}
		wanted := map[policyKey]*Policy{}
		for _, p := range want.Policies {
			wanted[keyOfPolicy(p)] = p
		}
		for _, p := range want.Policies {
			k := keyOfPolicy(p)
			if wanted[k] != p {
				continue
			}
			switch old := present[k]; {
			case old == nil:
				policies = append(policies, Change{OpAdd, nil, p})
			case !SamePolicy(p, old):
				policies = append(policies, Change{OpUpdate, nil, p})
			}
		}
		for _, p := range have.Policies {
			if p.Dir <= Fwd && wanted[keyOfPolicy(p)] == nil && (o.OwnPolicy == nil || o.OwnPolicy(p)) {
				delPolicies = append(delPolicies, Change{OpDelete, nil, p})
			}
		}
	}
	return slices.Concat(adds, policies, delPolicies, delStates)
}

// normalSA is a state without what only the kernel knows, as the kernel
// would report it. Slices are shared with the original.
func normalSA(s *SA) SA {
	n := *s
	if n.Flags&AFUnspec == 0 || n.Sel.EffectiveFamily() != Unspec {
		n.Sel = normalSelector(n.Sel, n.Family())
	}
	n.Replay = Replay{Window: n.Replay.Window}
	if !s.Replay.extended(s.Flags) {
		n.Replay.Window = min(n.Replay.Window, 32)
	}
	n.Cur, n.Stats, n.LastUsed, n.Seq, n.Other = Counters{}, Stats{}, 0, 0, nil
	if i, ok := findAuth(n.Auth.Name); ok {
		n.Auth.Name, n.Auth.Legacy = i.name, false
		if n.Auth.TruncBits == 0 {
			n.Auth.TruncBits = i.trunc
		}
	}
	for _, i := range ciphers {
		if i.alias != "" && n.Cipher.Name == i.alias {
			n.Cipher.Name = i.name
		}
	}
	if n.SetMark.Value != 0 && n.SetMark.Mask == 0 {
		n.SetMark.Mask = 0xffffffff
	}
	if n.Encap.Type != 0 && !n.Encap.Addr.IsValid() {
		n.Encap.Addr = zeroAddr(n.Family())
	}
	// Events that are on by default are not reported.
	n.ReplayThresh, n.ETimerThresh = Opt[uint32]{}, Opt[uint32]{}
	return n
}

func sameKeys(a, b *SA) bool {
	return bytes.Equal(a.AEAD.Key, b.AEAD.Key) && bytes.Equal(a.Cipher.Key, b.Cipher.Key) &&
		bytes.Equal(a.Auth.Key, b.Auth.Key) && bytes.Equal(a.Comp.Key, b.Comp.Key)
}

// SameSA reports whether a wanted state and one that the kernel reports are
// the same: everything that the wanted one says holds, defaults filled in as
// the kernel does. Counters, sequence numbers and event thresholds do not
// matter.
func SameSA(want, have *SA) bool {
	if !sameKeys(want, have) {
		return false
	}
	a, b := comparableOf(normalSA(want)), comparableOf(normalSA(have))
	a.iptfs.fill(&b.iptfs)
	return a == b
}

// fill takes over what the kernel chose where nothing was wanted.
func (o *IPTFSOptions) fill(have *IPTFSOptions) {
	fillOpt(&o.DropMicros, have.DropMicros)
	fillOpt(&o.ReorderWin, have.ReorderWin)
	fillOpt(&o.InitMicros, have.InitMicros)
	fillOpt(&o.MaxQueue, have.MaxQueue)
	fillOpt(&o.PacketSize, have.PacketSize)
}

func fillOpt[T comparable](o *Opt[T], have Opt[T]) {
	if !o.Set {
		*o = have
	}
}

// comparableSA is an SA without its slices.
type comparableSA struct {
	src, dst          netip.Addr
	spi               uint32
	proto             Proto
	mode              Mode
	reqid             uint32
	flags             SAFlags
	extra             ExtraFlags
	sel               Selector
	lifetime          Lifetime
	window            uint32
	names             [4]string
	bits              [2]uint32
	encap             Encap
	coa               netip.Addr
	mark, setMark     Mark
	ifid              uint32
	dir               SADir
	pcpu, mtimer      Opt[uint32]
	offload           Opt[Offload]
	tfcpad, keepalive uint32
	ctx               SecCtx
	iptfs             IPTFSOptions
}

func comparableOf(s SA) comparableSA {
	return comparableSA{s.Src, s.Dst, s.SPI, s.Proto, s.Mode, s.ReqID, s.Flags, s.ExtraFlags, s.Sel, s.Lifetime, s.Replay.Window,
		[4]string{s.AEAD.Name, s.Cipher.Name, s.Auth.Name, s.Comp.Name}, [2]uint32{s.AEAD.ICVBits, s.Auth.TruncBits},
		s.Encap, s.CoA, s.Mark, s.SetMark, s.IfID, s.Dir, s.PCPU, s.MTimer, s.Offload, s.TFCPad, s.NATKeepalive, s.SecCtx, s.IPTFS}
}

// updatable reports whether UPDSA can make have into want: the kernel then
// takes over encapsulation, care-of address, selector, limits, output mark
// and interface id, and nothing else.
func updatable(want, have *SA) bool {
	if !sameKeys(want, have) {
		return false
	}
	a, b := comparableOf(normalSA(want)), comparableOf(normalSA(have))
	a.iptfs.fill(&b.iptfs)
	b.encap, b.coa, b.sel, b.lifetime, b.setMark, b.ifid = a.encap, a.coa, a.sel, a.lifetime, a.setMark, a.ifid
	// An encapsulation can be changed, not added or taken away; the same
	// holds for marks and the interface id, which zero leaves as they are.
	return a == b && (want.Encap.Type == have.Encap.Type) && (want.IfID != 0 || have.IfID == 0) &&
		(want.SetMark != Mark{} || have.SetMark == Mark{})
}

// SamePolicy reports whether a wanted policy and one that the kernel reports
// are the same. Index 0 in the wanted one stands for any; counters do not
// matter.
func SamePolicy(want, have *Policy) bool {
	if want.Index != 0 && want.Index != have.Index || keyOfPolicy(want) != keyOfPolicy(have) || want.Priority != have.Priority ||
		want.Action != have.Action || want.Flags != have.Flags || want.Share != have.Share || want.Lifetime != have.Lifetime ||
		want.Offload != have.Offload {
		return false
	}
	if want.Action == Block && len(have.Templates) == 0 {
		return true // the kernel keeps no templates of a policy that blocks
	}
	f := want.Sel.EffectiveFamily()
	return slices.EqualFunc(want.Templates, have.Templates, func(a, b Template) bool {
		return normalTemplate(a, f) == normalTemplate(b, f)
	})
}

func normalTemplate(t Template, f Family) Template {
	if tf, _ := pairFamily(t.Dst, t.Src); tf != Unspec {
		f = tf
	} else if t.Family != Unspec {
		f = t.Family
	}
	t.Family = f
	if !t.Src.IsValid() {
		t.Src = zeroAddr(f)
	}
	if !t.Dst.IsValid() {
		t.Dst = zeroAddr(f)
	}
	return t
}

// Ignored compares a state that was sent with what the kernel reports and
// returns the fields that it left out in silence, as kernels do with
// attributes that are too new for them. It is empty if all is well.
func Ignored(sent, reported *SA) []string {
	a, b := comparableOf(normalSA(sent)), comparableOf(normalSA(reported))
	a.iptfs.fill(&b.iptfs)
	var out []string
	for _, c := range []struct {
		name string
		lost bool
	}{
		{"Dir", a.dir != b.dir}, {"PCPU", a.pcpu != b.pcpu}, {"NATKeepalive", a.keepalive != b.keepalive},
		{"MTimer", a.mtimer != b.mtimer}, {"IfID", a.ifid != b.ifid}, {"SetMark", a.setMark != b.setMark},
		{"IPTFS", a.iptfs != b.iptfs},
		{"ExtraFlags", a.extra != b.extra}, {"TFCPad", a.tfcpad != b.tfcpad}, {"Mark", a.mark != b.mark},
		{"Offload", a.offload != b.offload}, {"Replay.Window", a.window != b.window}, {"Encap", a.encap != b.encap},
		{"Flags", a.flags != b.flags}, {"Lifetime", a.lifetime != b.lifetime}, {"Auth.TruncBits", a.bits != b.bits},
		{"SecCtx", a.ctx != b.ctx}, {"CoA", a.coa != b.coa}, {"ReqID", a.reqid != b.reqid}, {"Mode", a.mode != b.mode},
	} {
		if c.lost {
			out = append(out, c.name)
		}
	}
	return out
}

// AppendChange appends the messages of a change: one or, for OpReplace, two
// with padding in between. h.Seq is the sequence number of the first; next is
// the first that is free afterwards. After an error out is b as it was.
func AppendChange(b []byte, h Header, c Change) (out []byte, next uint32, err error) {
	before, first := b, h.Seq
	switch {
	case c.SA != nil && (c.Op == OpDelete || c.Op == OpReplace):
		id := c.SA.ID()
		if b, err = AppendDelSA(b, h, &id); err != nil || c.Op == OpDelete {
			break
		}
		h.Seq++
		b, err = AppendNewSA(Pad(b), h, c.SA)
	case c.SA != nil && c.Op == OpUpdate:
		b, err = AppendUpdSA(b, h, c.SA)
	case c.SA != nil:
		b, err = AppendNewSA(b, h, c.SA)
	case c.Policy == nil:
		err = &FormatError{Field: "change", Err: ErrMissing}
	case c.Op == OpDelete:
		id := c.Policy.ID()
		b, err = AppendDelPolicy(b, h, &id)
	case c.Op == OpUpdate:
		b, err = AppendUpdPolicy(b, h, c.Policy)
	default:
		b, err = AppendNewPolicy(b, h, c.Policy)
	}
	if err != nil {
		return before, first, err
	}
	return b, h.Seq + 1, nil
}
