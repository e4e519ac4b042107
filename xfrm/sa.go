package xfrm

import (
	"math"
	"net/netip"
	"slices"
)

// SA is a state: one direction of a security association. The zero value is
// not valid; Src, Dst, SPI, Proto and an algorithm make a minimal one. All
// slices belong to the SA: [SA.Parse] copies into them and reuses their
// memory.
type SA struct {
	Src   netip.Addr `json:"src,omitzero"`
	Dst   netip.Addr `json:"dst,omitzero"` // its family is the state's family
	SPI   uint32     `json:"spi"`
	Proto Proto      `json:"proto"`
	Mode  Mode       `json:"mode"`
	ReqID uint32     `json:"reqid,omitzero"` // links templates to states
	Seq   uint32     `json:"seq,omitzero"`   // of the ACQUIRE that this state answers

	Flags      SAFlags    `json:"flags,omitzero"`
	ExtraFlags ExtraFlags `json:"extra_flags,omitzero"`
	Sel        Selector   `json:"sel,omitzero"` // family 0: the kernel takes the state's, unless AFUnspec is set
	Lifetime   Lifetime   `json:"lifetime,omitzero"`
	Replay     Replay     `json:"replay,omitzero"`

	AEAD   AEAD      `json:"aead,omitzero"`
	Cipher Algorithm `json:"enc,omitzero"`
	Auth   Auth      `json:"auth,omitzero"`
	Comp   Algorithm `json:"comp,omitzero"`

	Encap   Encap        `json:"encap,omitzero"`
	CoA     netip.Addr   `json:"coa,omitzero"` // care-of address of Route2 and HAO
	Mark    Mark         `json:"mark,omitzero"`
	SetMark Mark         `json:"output_mark,omitzero"` // put on packets after the transform; mask 0 means all bits
	IfID    uint32       `json:"if_id,omitzero"`       // xfrm interface, 0 for none
	Dir     SADir        `json:"dir,omitzero"`
	PCPU    Opt[uint32]  `json:"pcpu,omitzero"` // CPU the state belongs to
	Offload Opt[Offload] `json:"offload,omitzero"`
	TFCPad  uint32       `json:"tfcpad,omitzero"` // pad tunnelled packets to so many octets, 0 for none
	SecCtx  SecCtx       `json:"sec_ctx,omitzero"`
	IPTFS   IPTFSOptions `json:"iptfs,omitzero"`

	NATKeepalive uint32      `json:"nat_keepalive_seconds,omitzero"`     // 0: none
	MTimer       Opt[uint32] `json:"mtimer_thresh_seconds,omitzero"`     // least time between MAPPING notifications
	ReplayThresh Opt[uint32] `json:"replay_thresh,omitzero"`             // packets between replay events
	ETimerThresh Opt[uint32] `json:"etimer_thresh_deciseconds,omitzero"` // 100 ms each between timer events

	Cur      Counters `json:"cur,omitzero"`      // read only, from the kernel
	Stats    Stats    `json:"stats,omitzero"`    // read only, from the kernel
	LastUsed uint64   `json:"lastused,omitzero"` // read only: Unix seconds, 0 if not reported

	// Other holds every attribute that has no field above, in the order of
	// the message, and is sent again at the end.
	Other []Attr `json:"other,omitempty"`
}

// Family is the address family of the state.
func (s *SA) Family() Family {
	f, _ := pairFamily(s.Dst, s.Src)
	return f
}

// ClearKeys overwrites all key material of the SA, also in memory behind the
// slices that Parse left over, and empties the keys.
func (s *SA) ClearKeys() {
	s.AEAD.Key.Clear()
	s.Cipher.Key.Clear()
	s.Auth.Key.Clear()
	s.Comp.Key.Clear()
}

// AppendNewSA appends a request to create the state. It is the kernel that
// refuses an existing one (EEXIST); the netlink flags do not matter. The
// error is a [*FormatError], and b is then returned as it was.
func AppendNewSA(b []byte, h Header, s *SA) ([]byte, error) { return appendSA(b, NewSA, h, s, nil) }

// AppendUpdSA appends a request to replace the state or to fill a larval one.
func AppendUpdSA(b []byte, h Header, s *SA) ([]byte, error) { return appendSA(b, UpdSA, h, s, nil) }

// appendSA appends a message whose fixed part is a state. order is that of
// the algorithms, encapsulation, care-of address and label, which iproute2
// writes in the order in which a command names them; nil is this package's
// own.
func appendSA(b []byte, t MsgType, h Header, s *SA, order []AttrType) ([]byte, error) {
	start, n, end := len(b), sizeHeader+fixed[t-NewSA], 0
	w := b[start:cap(b)]
	if order == nil {
		end = s.putUsual(w, n)
	}
	if end == 0 {
		b = slices.Grow(b, n+s.bound())
		w = b[start : start+n]
	}
	p := (*[sizeHeader + sizeSA]byte)(w)
	ne.PutUint32(p[:], uint32(end))
	putHeader((*[sizeHeader]byte)(p[:]), t, h)
	if n > len(p) {
		clear(w[len(p):n])
	}
	if err := s.put((*[sizeSA]byte)(p[sizeHeader:])); err != nil {
		return b, typed(err, t)
	}
	if end != 0 {
		return b[:start+end], nil
	}
	b, err := appendSAAttrs(b[:start+n], s, order)
	if err != nil {
		return b[:start], typed(err, t)
	}
	return finish(b, start), nil
}

// bit is 1 for true, without a branch.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// putUsual writes the attributes of a state that has no others than AEAD, Mark
// and IfID, as most have, to offset i of w and returns where they end. It
// returns 0 if the state may have others, if there is no room, and for what is
// to be refused. It reads all before it writes: a processor takes a read for
// one of what was just written if both are at the same place of a page.
func (s *SA) putUsual(w []byte, i int) int {
	r, o := &s.Replay, &s.IPTFS
	some := len(s.Auth.Name) | len(s.Cipher.Name) | len(s.Comp.Name) | len(s.SecCtx.Text) | len(r.Bitmap) | len(s.Other) |
		int(s.Encap.Type) | int(s.SecCtx.DOI) | int(s.SecCtx.Alg) | int(s.Dir) |
		bit(s.Offload.Set) | bit(s.PCPU.Set) | bit(s.MTimer.Set) | bit(s.ReplayThresh.Set) | bit(s.ETimerThresh.Set) |
		bit(o.DropMicros.Set) | bit(o.ReorderWin.Set) | bit(o.DontFragment) | bit(o.InitMicros.Set) | bit(o.MaxQueue.Set) | bit(o.PacketSize.Set)
	more := r.Seq | r.OSeq | uint32(s.ExtraFlags) | s.SetMark.Value | s.SetMark.Mask | s.TFCPad | s.NATKeepalive
	if some != 0 || more != 0 || s.CoA.IsValid() || r.extended(s.Flags) {
		return 0
	}
	name, key, icv, mark, ifID := s.AEAD.Name, s.AEAD.Key, s.AEAD.ICVBits, s.Mark, s.IfID
	if uint(len(name)-1) > 62 || uint(len(key)-1) > maxKey-1 || len(w) < i+4+sizeAlgoAuth+align(len(key))+12+8 {
		return 0
	}
	p := w[i : i+4+sizeAlgoAuth : i+4+sizeAlgoAuth]
	putAttrHeader((*[4]byte)(p), AttrAEAD, len(p)+len(key))
	*(*[64]byte)(p[4:]) = [64]byte{}
	copy(p[4:68], name)
	ne.PutUint32(p[68:], uint32(len(key))*8)
	ne.PutUint32(p[72:], icv)
	i += len(p)
	k := w[i : i+align(len(key))]
	ne.PutUint32(k[len(k)-4:], 0) // padding
	copy(k, key)
	i += len(k)
	if mark.Value|mark.Mask != 0 {
		p := w[i : i+12 : i+12]
		putAttrHeader((*[4]byte)(p), AttrMark, 12)
		ne.PutUint32(p[4:], mark.Value)
		ne.PutUint32(p[8:], mark.Mask)
		i += 12
	}
	if ifID != 0 {
		p := w[i : i+8 : i+8]
		putAttrHeader((*[4]byte)(p), AttrIfID, 8)
		ne.PutUint32(p[4:], ifID)
		i += 8
	}
	return i
}

// put writes struct xfrm_usersa_info, every octet of it once. What most
// requests leave at zero has a short way.
func (s *SA) put(p *[sizeSA]byte) error {
	f := familyOf(s.Dst)
	if c := familyOf(s.Src); c != f || f == Unspec {
		switch {
		case c == Unspec && f == Unspec:
			return fieldError("address", ErrMissing)
		case f == Unspec:
			f = c
		case c != Unspec:
			return fieldError("address", ErrFamily)
		}
	}
	e := &s.Sel
	ports := uint64(e.SrcPort.Value) | uint64(e.SrcPort.Mask) | uint64(e.DstPort.Value) | uint64(e.DstPort.Mask)
	if ports|uint64(e.Proto)|uint64(uint32(e.IfIndex))|uint64(e.UID) == 0 && !e.Dst.Addr().IsValid() && !e.Src.Addr().IsValid() {
		*(*[sizeSelector]byte)(p[:]) = [sizeSelector]byte{}
		ne.PutUint16(p[40:], uint16(e.Family))
	} else if err := e.put(p[:]); err != nil {
		return fieldError("selector", err)
	}
	putWhole((*[16]byte)(p[saID:]), &s.Dst)
	be.PutUint32(p[saID+16:], s.SPI)
	ne.PutUint32(p[saID+20:], 0)
	p[saID+20] = byte(s.Proto)
	putWhole((*[16]byte)(p[saSrc:]), &s.Src)
	t := &s.Lifetime
	if t.SoftBytes|t.HardBytes|t.SoftPackets|t.HardPackets == NoLimit {
		ne.PutUint64(p[saLft:], math.MaxUint64)
		ne.PutUint64(p[saLft+8:], math.MaxUint64)
		ne.PutUint64(p[saLft+16:], math.MaxUint64)
		ne.PutUint64(p[saLft+24:], math.MaxUint64)
	} else {
		t.putLimits((*[32]byte)(p[saLft:]))
	}
	ne.PutUint64(p[saLft+32:], t.SoftAddSeconds)
	ne.PutUint64(p[saLft+40:], t.HardAddSeconds)
	ne.PutUint64(p[saLft+48:], t.SoftUseSeconds)
	ne.PutUint64(p[saLft+56:], t.HardUseSeconds)
	ne.PutUint64(p[saCur:], s.Cur.Bytes)
	ne.PutUint64(p[saCur+8:], s.Cur.Packets)
	ne.PutUint64(p[saCur+16:], s.Cur.AddTime)
	ne.PutUint64(p[saCur+24:], s.Cur.UseTime)
	ne.PutUint32(p[saStats:], s.Stats.ReplayWindow)
	ne.PutUint32(p[saStats+4:], s.Stats.Replay)
	ne.PutUint32(p[saStats+8:], s.Stats.IntegrityFailed)
	ne.PutUint32(p[saSeq:], s.Seq)
	ne.PutUint32(p[saReqID:], s.ReqID)
	ne.PutUint16(p[saFamily:], uint16(f))
	w := uint32(s.Replay.LegacyWindow)
	if !s.Replay.extended(s.Flags) {
		w = s.Replay.Window
	}
	if w > 255 {
		return fieldError("replay window", ErrRange)
	}
	p[saMode], p[saWindow] = byte(s.Mode), byte(w)
	clear(p[saFlags:]) // 4 octets or 8
	p[saFlags] = byte(s.Flags)
	return nil
}

// bound is at least what the attributes take. With less a key could be left in
// memory that was too small for what follows it.
func (s *SA) bound() int {
	n := 600
	for _, a := range s.Other {
		n += 4 + align(len(a.Data))
	}
	return n + len(s.AEAD.Key) + len(s.Cipher.Key) + len(s.Auth.Key) + len(s.Comp.Key) + 4*len(s.Replay.Bitmap) + len(s.SecCtx.Text)
}

// typed adds the message's type to a [*FormatError].
func typed(err error, t MsgType) error {
	if e, ok := err.(*FormatError); ok && e.Type == 0 {
		e.Type = t
	}
	return err
}

func appendSAAttrs(b []byte, s *SA, order []AttrType) ([]byte, error) {
	var err error
	if order == nil {
		if s.Auth.Name != "" {
			if b, err = appendAuth(b, &s.Auth); err != nil {
				return b, err
			}
		}
		if s.Cipher.Name != "" {
			if b, err = appendAlgo(b, AttrCrypt, &s.Cipher); err != nil {
				return b, err
			}
		}
		if s.AEAD.Name != "" {
			if b, err = appendAlgo2(b, AttrAEAD, s.AEAD.Name, s.AEAD.Key, s.AEAD.ICVBits); err != nil {
				return b, err
			}
		}
		if s.Comp.Name != "" {
			if b, err = appendAlgo(b, AttrComp, &s.Comp); err != nil {
				return b, err
			}
		}
		if s.Encap.Type != 0 {
			b = appendEncap(b, &s.Encap)
		}
		if s.CoA.IsValid() {
			b = appendAddr(b, AttrCoAddr, s.CoA)
		}
		if s.SecCtx != (SecCtx{}) {
			if b, err = appendSecCtx(b, &s.SecCtx); err != nil {
				return b, err
			}
		}
	} else if b, err = appendOrdered(b, s, order); err != nil {
		return b, err
	}
	if s.Offload.Set {
		b = appendOffload(b, s.Offload.Value)
	}
	if b, err = appendReplay(b, &s.Replay, s.Flags); err != nil {
		return b, err
	}
	if s.ExtraFlags != 0 {
		b = appendU32(b, AttrExtraFlags, uint32(s.ExtraFlags))
	}
	if s.Mark != (Mark{}) {
		b = appendMark(b, s.Mark)
	}
	if s.IfID != 0 {
		b = appendU32(b, AttrIfID, s.IfID)
	}
	if s.TFCPad != 0 {
		b = appendU32(b, AttrTFCPad, s.TFCPad)
	}
	if s.SetMark.Value != 0 {
		b = appendU32(b, AttrSetMark, s.SetMark.Value)
	}
	if s.SetMark.Mask != 0 {
		b = appendU32(b, AttrSetMarkMask, s.SetMark.Mask)
	}
	if s.Dir != 0 {
		b = appendU8(b, AttrSADir, byte(s.Dir))
	}
	if s.PCPU.Set {
		b = appendU32(b, AttrSAPCPU, s.PCPU.Value)
	}
	if s.NATKeepalive != 0 {
		b = appendU32(b, AttrNATKeepalive, s.NATKeepalive)
	}
	if s.MTimer.Set {
		b = appendU32(b, AttrMTimerThresh, s.MTimer.Value)
	}
	if s.ReplayThresh.Set {
		b = appendU32(b, AttrReplayThresh, s.ReplayThresh.Value)
	}
	if s.ETimerThresh.Set {
		b = appendU32(b, AttrETimerThresh, s.ETimerThresh.Value)
	}
	if s.IPTFS.any() {
		b = appendIPTFS(b, &s.IPTFS)
	}
	if len(s.Other) > 0 {
		b, err = appendOther(b, s.Other)
	}
	return b, err
}

// appendOrdered appends the attributes that a command may name in any order.
func appendOrdered(b []byte, s *SA, order []AttrType) ([]byte, error) {
	var err error
	for _, t := range order {
		switch t {
		case AttrAuthTrunc, AttrAuth:
			if s.Auth.Name != "" {
				b, err = appendAuth(b, &s.Auth)
			}
		case AttrCrypt:
			if s.Cipher.Name != "" {
				b, err = appendAlgo(b, AttrCrypt, &s.Cipher)
			}
		case AttrAEAD:
			if s.AEAD.Name != "" {
				b, err = appendAlgo2(b, AttrAEAD, s.AEAD.Name, s.AEAD.Key, s.AEAD.ICVBits)
			}
		case AttrComp:
			if s.Comp.Name != "" {
				b, err = appendAlgo(b, AttrComp, &s.Comp)
			}
		case AttrEncap:
			if s.Encap.Type != 0 {
				b = appendEncap(b, &s.Encap)
			}
		case AttrCoAddr:
			if s.CoA.IsValid() {
				b = appendAddr(b, AttrCoAddr, s.CoA)
			}
		case AttrSecCtx:
			if s.SecCtx != (SecCtx{}) {
				b, err = appendSecCtx(b, &s.SecCtx)
			}
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

func appendOther(b []byte, other []Attr) ([]byte, error) {
	for _, a := range other {
		if len(a.Data) > maxAttr {
			return b, &FormatError{Attr: a.Type, Err: ErrRange}
		}
		b = AppendAttr(b, a.Type, a.Data)
	}
	return b, nil
}

// maxAttr is the largest content of an attribute: its length field has 16
// bits.
const maxAttr = 1<<16 - 1 - 4

const maxKey = 4096 // octets; the longest key of any algorithm is far below

// appendAlgo appends an algorithm without a second length.
func appendAlgo(b []byte, t AttrType, a *Algorithm) ([]byte, error) {
	if len(a.Key) > maxKey || len(a.Name) > 63 {
		return b, algoError(t, a.Key)
	}
	b, p := rawAttr(b, t, sizeAlgo+len(a.Key))
	*(*[64]byte)(p) = [64]byte{}
	copy(p[:64], a.Name)
	ne.PutUint32(p[64:], uint32(len(a.Key))*8)
	copy(p[sizeAlgo:], a.Key)
	return b, nil
}

// appendAlgo2 appends an algorithm with a second length, of ICV or
// truncation.
func appendAlgo2(b []byte, t AttrType, name string, key []byte, bits uint32) ([]byte, error) {
	if len(key) > maxKey || len(name) > 63 {
		return b, algoError(t, key)
	}
	n, size := len(b), 4+sizeAlgoAuth+align(len(key))
	if cap(b)-n < size {
		b = slices.Grow(b, size)
	}
	b = b[:n+size]
	ne.PutUint32(b[len(b)-4:], 0) // padding
	p := (*[4 + sizeAlgoAuth]byte)(b[n:])
	putAttrHeader((*[4]byte)(p[:]), t, 4+sizeAlgoAuth+len(key))
	*(*[64]byte)(p[4:]) = [64]byte{}
	copy(p[4:68], name)
	ne.PutUint32(p[68:], uint32(len(key))*8)
	ne.PutUint32(p[72:], bits)
	copy(b[n+4+sizeAlgoAuth:], key)
	return b, nil
}

func algoError(t AttrType, key []byte) error {
	if len(key) > maxKey {
		return &FormatError{Attr: t, Field: "key", Err: ErrRange}
	}
	return &FormatError{Attr: t, Field: "name", Err: ErrRange}
}

func appendAuth(b []byte, a *Auth) ([]byte, error) {
	if !a.Legacy {
		return appendAlgo2(b, AttrAuthTrunc, a.Name, a.Key, a.TruncBits)
	}
	if a.TruncBits != 0 {
		return b, &FormatError{Attr: AttrAuth, Field: "truncation", Err: ErrRange}
	}
	return appendAlgo(b, AttrAuth, &Algorithm{a.Name, a.Key})
}

func appendEncap(b []byte, e *Encap) []byte {
	b, p := rawAttr(b, AttrEncap, sizeEncap)
	*(*[sizeEncap]byte)(p) = [sizeEncap]byte{}
	ne.PutUint16(p[0:], uint16(e.Type))
	be.PutUint16(p[2:], e.Src)
	be.PutUint16(p[4:], e.Dst)
	putAddr(p[8:], e.Addr)
	return b
}

func appendAddr(b []byte, t AttrType, a netip.Addr) []byte {
	b, p := appendAttr(b, t, 16)
	putAddr(p, a)
	return b
}

func appendOffload(b []byte, o Offload) []byte {
	b, p := appendAttr(b, AttrOffload, sizeOffload)
	ne.PutUint32(p, uint32(o.IfIndex))
	p[4] = byte(o.Flags)
	return b
}

func appendMark(b []byte, m Mark) []byte {
	n := len(b)
	if cap(b)-n < 12 {
		b = slices.Grow(b, 12)
	}
	b = b[:n+12]
	p := (*[12]byte)(b[n:])
	putAttrHeader((*[4]byte)(p[:]), AttrMark, 12)
	ne.PutUint32(p[4:], m.Value)
	ne.PutUint32(p[8:], m.Mask)
	return b
}

// maxCtx bounds a security label by what its length field and the message
// can hold.
const maxCtx = 4096

// appendSecCtx sends the label with a final NUL, as iproute2 does.
func appendSecCtx(b []byte, c *SecCtx) ([]byte, error) {
	if len(c.Text) > maxCtx {
		return b, &FormatError{Attr: AttrSecCtx, Err: ErrRange}
	}
	n := len(c.Text) + 1
	b, p := appendAttr(b, AttrSecCtx, sizeSecCtx+n)
	ne.PutUint16(p[0:], uint16(sizeSecCtx+n))
	ne.PutUint16(p[2:], uint16(AttrSecCtx))
	p[4], p[5] = c.Alg, c.DOI
	ne.PutUint16(p[6:], uint16(n))
	copy(p[sizeSecCtx:], c.Text)
	return b, nil
}

func getSecCtx(d []byte, c *SecCtx) error {
	if len(d) < sizeSecCtx {
		return &FormatError{Attr: AttrSecCtx, Err: ErrShort}
	}
	n := int(ne.Uint16(d[6:]))
	if n > len(d)-sizeSecCtx {
		return &FormatError{Attr: AttrSecCtx, Err: ErrLength}
	}
	c.Alg, c.DOI = d[4], d[5]
	text := d[sizeSecCtx : sizeSecCtx+n]
	for len(text) > 0 && text[len(text)-1] == 0 {
		text = text[:len(text)-1]
	}
	if c.Text != string(text) {
		c.Text = string(text)
	}
	return nil
}

// appendReplay appends the replay state in its form: nothing for a plain one
// that starts at zero.
func appendReplay(b []byte, r *Replay, f SAFlags) ([]byte, error) {
	if !r.extended(f) {
		if r.Seq|r.OSeq == 0 && (len(r.Bitmap) == 0 || r.Bitmap[0] == 0) {
			return b, nil
		}
		b, p := rawAttr(b, AttrReplay, 12)
		ne.PutUint32(p, r.OSeq)
		ne.PutUint32(p[4:], r.Seq)
		ne.PutUint32(p[8:], 0)
		if len(r.Bitmap) > 0 {
			ne.PutUint32(p[8:], r.Bitmap[0])
		}
		return b, nil
	}
	words := r.words()
	n := len(r.Bitmap)
	if n != 0 && uint32(n) != words {
		return b, &FormatError{Attr: AttrReplayESN, Field: "bitmap", Err: ErrLength}
	}
	if n > maxAttr/4-sizeESN {
		return b, &FormatError{Attr: AttrReplayESN, Field: "bitmap", Err: ErrRange}
	}
	b, p := rawAttr(b, AttrReplayESN, sizeESN+4*n)
	ne.PutUint32(p[0:], words)
	ne.PutUint32(p[4:], r.OSeq)
	ne.PutUint32(p[8:], r.Seq)
	ne.PutUint32(p[12:], r.OSeqHi)
	ne.PutUint32(p[16:], r.SeqHi)
	ne.PutUint32(p[20:], r.Window)
	for i, w := range r.Bitmap {
		ne.PutUint32(p[sizeESN+4*i:], w)
	}
	return b, nil
}

// any reports whether an option is set.
func (o *IPTFSOptions) any() bool {
	return o.DropMicros.Set || o.ReorderWin.Set || o.DontFragment || o.InitMicros.Set || o.MaxQueue.Set || o.PacketSize.Set
}

func appendIPTFS(b []byte, o *IPTFSOptions) []byte {
	if o.DropMicros.Set {
		b = appendU32(b, AttrIPTFSDropTime, o.DropMicros.Value)
	}
	if o.ReorderWin.Set {
		var p []byte
		b, p = appendAttr(b, AttrIPTFSReorderWin, 2)
		ne.PutUint16(p, o.ReorderWin.Value)
	}
	if o.DontFragment {
		b, _ = appendAttr(b, AttrIPTFSDontFrag, 0)
	}
	if o.InitMicros.Set {
		b = appendU32(b, AttrIPTFSInitDelay, o.InitMicros.Value)
	}
	if o.MaxQueue.Set {
		b = appendU32(b, AttrIPTFSMaxQueue, o.MaxQueue.Value)
	}
	if o.PacketSize.Set {
		b = appendU32(b, AttrIPTFSPktSize, o.PacketSize.Value)
	}
	return b
}

// Attributes seen while an SA is parsed.
const (
	seenAuth = 1 << iota
	seenTrunc
	seenCrypt
	seenAEAD
	seenComp
	seenESN
	seenCtx
	seenSetMark
	seenMask
)

// Parse reads a NEWSA or UPDSA message, or the DELSA notification of the
// kernel, into the SA. Everything is overwritten. It copies what it keeps and
// allocates only where the memory of the SA's slices does not suffice or a
// name is not among the well-known ones. The error is a [*FormatError]; the
// SA's content is then undefined, but no key material of the message stays
// unaccounted for: [SA.ClearKeys] finds it.
func (s *SA) Parse(m Message) error { return s.parseMessage(m.Type, m.Body) }

// parseAny is Parse for any message.
func (s *SA) parseAny(t MsgType, body []byte) error {
	switch t {
	case NewSA, UpdSA:
		if len(body) < sizeSA {
			return typed(fieldError("fixed part", ErrShort), t)
		}
		if err := s.parse((*[sizeSA]byte)(body), body[sizeSA:]); err != nil {
			return typed(err, t)
		}
		return nil
	case DelSA:
		return s.parseDeleted(&Message{Type: t, Body: body})
	}
	return typed(fieldError("", ErrType), t)
}

// parseDeleted reads a DELSA notification.
func (s *SA) parseDeleted(m *Message) error {
	rest, err := m.attrs(DelSA)
	if err != nil {
		return err
	}
	// The state itself is the first attribute; its own follow.
	for b := rest; len(b) >= 4; {
		t, d, n := nextAttr(b)
		if n == 0 {
			return &FormatError{Type: DelSA, Attr: t, Err: ErrLength}
		}
		if t == AttrSA {
			if len(d) < sizeSA {
				return &FormatError{Type: DelSA, Attr: t, Err: ErrShort}
			}
			return typed(s.parse((*[sizeSA]byte)(d), rest), DelSA)
		}
		b = b[n:]
	}
	return &FormatError{Type: DelSA, Attr: AttrSA, Err: ErrMissing}
}

// parse reads a state's fixed part and attributes, and empties what they do
// not hold, but for the memory of slices, keys and names: see [SA.settle]. The
// window is the octet's until an attribute corrects it. It is long because
// calls would cost more than what they do; those that are left are for what is
// rare or takes longer.
func (s *SA) parse(p *[sizeSA]byte, b []byte) error {
	f := Family(ne.Uint16(p[saFamily:]))
	switch f {
	case IPv6:
		getWhole(&s.Dst, (*[16]byte)(p[saID:]))
		getWhole(&s.Src, (*[16]byte)(p[saSrc:]))
	case IPv4:
		s.Dst, s.Src = netip.AddrFrom4([4]byte(p[saID:])), netip.AddrFrom4([4]byte(p[saSrc:]))
	default:
		return fieldError("family", ErrFamily)
	}
	// The selector and the limits of most requests need no reading.
	if ne.Uint64(p[0:])|ne.Uint64(p[8:])|ne.Uint64(p[16:])|ne.Uint64(p[24:])|ne.Uint64(p[32:])|ne.Uint64(p[40:])|ne.Uint64(p[48:]) == 0 {
		s.Sel = Selector{}
	} else if err := s.Sel.get((*[sizeSelector]byte)(p[:]), f); err != nil {
		return fieldError("selector", err)
	}
	s.SPI = be.Uint32(p[saID+16:])
	s.Proto = Proto(p[saID+20])
	s.Mode = Mode(p[saMode])
	s.ReqID = ne.Uint32(p[saReqID:])
	s.Seq = ne.Uint32(p[saSeq:])
	s.Flags = SAFlags(p[saFlags])
	s.ExtraFlags = 0
	t := &s.Lifetime
	if ne.Uint64(p[saLft:])&ne.Uint64(p[saLft+8:])&ne.Uint64(p[saLft+16:])&ne.Uint64(p[saLft+24:]) == ZeroLimit {
		t.SoftBytes, t.HardBytes, t.SoftPackets, t.HardPackets = 0, 0, 0, 0
	} else {
		t.getLimits((*[32]byte)(p[saLft:]))
	}
	t.SoftAddSeconds = ne.Uint64(p[saLft+32:])
	t.HardAddSeconds = ne.Uint64(p[saLft+40:])
	t.SoftUseSeconds = ne.Uint64(p[saLft+48:])
	t.HardUseSeconds = ne.Uint64(p[saLft+56:])
	r := &s.Replay
	r.Window = uint32(p[saWindow])
	r.Form, r.Words, r.Seq, r.OSeq, r.SeqHi, r.OSeqHi = 0, 0, 0, 0, 0, 0
	r.Bitmap, r.Reported, r.LegacyWindow = r.Bitmap[:0], false, 0

	s.AEAD.ICVBits, s.Auth.TruncBits, s.Auth.Legacy = 0, 0, false
	s.Encap.Type, s.Encap.Src, s.Encap.Dst = 0, 0, 0
	if s.Encap.Addr.IsValid() || s.CoA.IsValid() { // pointers cost more to write than to look at
		s.Encap.Addr, s.CoA = netip.Addr{}, netip.Addr{}
	}
	s.Mark, s.SetMark, s.IfID = Mark{}, Mark{}, 0
	s.Dir, s.PCPU, s.Offload, s.TFCPad = 0, Opt[uint32]{}, Opt[Offload]{}, 0
	s.SecCtx.DOI, s.SecCtx.Alg = 0, 0
	s.IPTFS = IPTFSOptions{}
	s.NATKeepalive, s.MTimer = 0, Opt[uint32]{}
	s.ReplayThresh, s.ETimerThresh = Opt[uint32]{}, Opt[uint32]{}
	s.Cur.get((*[sizeLftCur]byte)(p[saCur:]))
	s.Stats = Stats{ne.Uint32(p[saStats:]), ne.Uint32(p[saStats+4:]), ne.Uint32(p[saStats+8:])}
	s.LastUsed = 0
	s.Other = s.Other[:0]

	seen := 0
	for i := 0; i <= len(b)-4; {
		h := b[i : i+4 : i+4]
		l, t := int(ne.Uint16(h)), AttrType(ne.Uint16(h[2:])&attrTypeMask)
		if l < 4 || l > len(b)-i {
			return attrError(t, ErrLength)
		}
		switch { // the most frequent ones; parseAttr has the rest and what is wrong with these
		case t == AttrMark && l >= 4+8:
			d := b[i+4 : i+12 : i+12]
			s.Mark = Mark{ne.Uint32(d), ne.Uint32(d[4:])}
		case t == AttrIfID && l >= 4+4:
			s.IfID = ne.Uint32(b[i+4 : i+8 : i+8])
		case t == AttrLastUsed && l >= 4+8:
			s.LastUsed = ne.Uint64(b[i+4 : i+12 : i+12])
		case t == AttrAEAD && l >= 4+sizeAlgoAuth && keyLen(ne.Uint32(b[i+68:i+72:i+72])) <= uint64(l-4-sizeAlgoAuth):
			k := i + 4 + sizeAlgoAuth
			d := b[i+4 : k : k]
			setName(&s.AEAD.Name, (*[64]byte)(d))
			s.AEAD.ICVBits = ne.Uint32(d[68:])
			s.AEAD.Key.set(b[k : k+int(keyLen(ne.Uint32(d[64:])))])
			seen |= seenAEAD
		default:
			var err error
			if seen, err = s.parseAttr(t, b[i+4:i+l], f, seen); err != nil {
				return err
			}
		}
		i += align(l)
	}
	// Nothing to settle for a state that has an AEAD algorithm, as has what was
	// there before.
	left := len(s.Cipher.Name) | cap(s.Cipher.Key) | len(s.Auth.Name) | cap(s.Auth.Key) | len(s.Comp.Name) | cap(s.Comp.Key) | len(s.SecCtx.Text)
	if seen != seenAEAD || left != 0 || s.Flags&ESN != 0 || s.Replay.Window > 32 {
		s.settle(seen)
	}
	return nil
}

// fieldError and attrError are kept out of line, where they cost nothing.
//
//go:noinline
func fieldError(field string, err error) error { return &FormatError{Field: field, Err: err} }

//go:noinline
func attrError(t AttrType, err error) error { return &FormatError{Attr: t, Err: err} }

// parseAttr reads one attribute. AttrSA is skipped: it is the fixed part of a
// notification.
func (s *SA) parseAttr(t AttrType, d []byte, f Family, seen int) (int, error) {
	if int(t) < len(attrMin) && len(d) < int(attrMin[t]) {
		return 0, &FormatError{Attr: t, Err: ErrShort}
	}
	switch t {
	case AttrAEAD:
		if err := getAlgo2(d, t, &s.AEAD.Name, &s.AEAD.Key, &s.AEAD.ICVBits); err != nil {
			return 0, err
		}
		seen |= seenAEAD
	case AttrCrypt:
		if err := getAlgo(d, t, &s.Cipher.Name, &s.Cipher.Key); err != nil {
			return 0, err
		}
		seen |= seenCrypt
	case AttrComp:
		if err := getAlgo(d, t, &s.Comp.Name, &s.Comp.Key); err != nil {
			return 0, err
		}
		seen |= seenComp
	case AttrAuthTrunc:
		if err := getAlgo2(d, t, &s.Auth.Name, &s.Auth.Key, &s.Auth.TruncBits); err != nil {
			return 0, err
		}
		s.Auth.Legacy = false
		seen |= seenTrunc
	case AttrAuth:
		// The kernel reports the algorithm twice; the one with the
		// truncation says more.
		if seen&seenTrunc != 0 {
			return seen, nil
		}
		if err := getAlgo(d, t, &s.Auth.Name, &s.Auth.Key); err != nil {
			return 0, err
		}
		s.Auth.Legacy = true
		seen |= seenAuth
	case AttrEncap:
		s.Encap = Encap{EncapType(ne.Uint16(d)), be.Uint16(d[2:]), be.Uint16(d[4:]), getAddr(d[8:], f)}
	case AttrCoAddr:
		s.CoA = getAddr(d, f)
	case AttrSecCtx:
		if err := getSecCtx(d, &s.SecCtx); err != nil {
			return 0, err
		}
		seen |= seenCtx
	case AttrOffload:
		s.Offload = Some(Offload{int32(ne.Uint32(d)), OffloadFlags(d[4])})
	case AttrReplay:
		if seen&seenESN != 0 {
			s.Other = keep(s.Other, t, d)
			return seen, nil
		}
		s.Replay.Reported = true
		s.Replay.OSeq, s.Replay.Seq = ne.Uint32(d), ne.Uint32(d[4:])
		s.Replay.Bitmap = append(s.Replay.Bitmap[:0], ne.Uint32(d[8:]))
	case AttrReplayESN:
		if err := s.Replay.getESN(d, s.Flags); err != nil {
			return 0, err
		}
		seen |= seenESN
	case AttrExtraFlags:
		s.ExtraFlags = ExtraFlags(ne.Uint32(d))
	case AttrMark:
		s.Mark = Mark{ne.Uint32(d), ne.Uint32(d[4:])}
	case AttrIfID:
		s.IfID = ne.Uint32(d)
	case AttrSetMark:
		s.SetMark.Value = ne.Uint32(d)
		seen |= seenSetMark
	case AttrSetMarkMask:
		s.SetMark.Mask = ne.Uint32(d)
		seen |= seenMask
	case AttrSADir:
		s.Dir = SADir(d[0])
	case AttrSAPCPU:
		s.PCPU = Some(ne.Uint32(d))
	case AttrNATKeepalive:
		s.NATKeepalive = ne.Uint32(d)
	case AttrMTimerThresh:
		s.MTimer = Some(ne.Uint32(d))
	case AttrTFCPad:
		s.TFCPad = ne.Uint32(d)
	case AttrReplayThresh:
		s.ReplayThresh = Some(ne.Uint32(d))
	case AttrETimerThresh:
		s.ETimerThresh = Some(ne.Uint32(d))
	case AttrLastUsed:
		s.LastUsed = ne.Uint64(d)
	case AttrIPTFSDropTime:
		s.IPTFS.DropMicros = Some(ne.Uint32(d))
	case AttrIPTFSReorderWin:
		s.IPTFS.ReorderWin = Some(ne.Uint16(d))
	case AttrIPTFSDontFrag:
		s.IPTFS.DontFragment = true
	case AttrIPTFSInitDelay:
		s.IPTFS.InitMicros = Some(ne.Uint32(d))
	case AttrIPTFSMaxQueue:
		s.IPTFS.MaxQueue = Some(ne.Uint32(d))
	case AttrIPTFSPktSize:
		s.IPTFS.PacketSize = Some(ne.Uint32(d))
	case AttrPad, AttrSA:
	default:
		s.Other = keep(s.Other, t, d)
	}
	return seen, nil
}

// settle drops what parse kept for reuse and the message did not hold, and
// brings the replay state into its usual form.
func (s *SA) settle(seen int) {
	if seen&seenAEAD == 0 && (s.AEAD.Name != "" || cap(s.AEAD.Key) > 0) {
		s.AEAD.Name = ""
		s.AEAD.Key.Clear()
	}
	if seen&seenCrypt == 0 && (s.Cipher.Name != "" || cap(s.Cipher.Key) > 0) {
		s.Cipher.Name = ""
		s.Cipher.Key.Clear()
	}
	if seen&seenComp == 0 && (s.Comp.Name != "" || cap(s.Comp.Key) > 0) {
		s.Comp.Name = ""
		s.Comp.Key.Clear()
	}
	if seen&(seenAuth|seenTrunc) == 0 && (s.Auth.Name != "" || cap(s.Auth.Key) > 0) {
		s.Auth.Name = ""
		s.Auth.Key.Clear()
	}
	if seen&seenCtx == 0 && s.SecCtx.Text != "" {
		s.SecCtx.Text = ""
	}
	if seen&seenESN == 0 && (s.Flags&ESN != 0 || s.Replay.Window > 32) {
		s.Replay.Form = ReplayLegacy
	}
	// A mask of 0 that was sent differs from none, which means all bits.
	if seen&(seenSetMark|seenMask) == seenSetMark|seenMask && s.SetMark.Mask == 0 {
		s.Other = keep(s.Other, AttrSetMarkMask, []byte{0, 0, 0, 0})
	}
}

// getESN reads XFRMA_REPLAY_ESN_VAL, which overrides the octet of the fixed
// part. A bitmap that is not all there counts as none.
func (r *Replay) getESN(d []byte, f SAFlags) error {
	words := ne.Uint32(d)
	legacy := r.Window
	*r = Replay{Bitmap: r.Bitmap[:0], Reported: true, LegacyWindow: uint8(legacy)}
	r.OSeq, r.Seq = ne.Uint32(d[4:]), ne.Uint32(d[8:])
	r.OSeqHi, r.SeqHi = ne.Uint32(d[12:]), ne.Uint32(d[16:])
	r.Window = ne.Uint32(d[20:])
	if uint64(words) != (uint64(r.Window)+31)/32 {
		r.Words = words
	}
	if f&ESN == 0 && r.Window <= 32 {
		r.Form = ReplayExtended
	}
	if d = d[sizeESN:]; uint64(len(d)) >= 4*uint64(words) {
		for i := range words {
			r.Bitmap = append(r.Bitmap, ne.Uint32(d[4*i:]))
		}
	}
	return nil
}

// keep copies an attribute to the end of a list, reusing the memory that the
// list has.
func keep(list []Attr, t AttrType, d []byte) []Attr {
	if len(list) < cap(list) {
		list = list[:len(list)+1]
	} else {
		list = append(list, Attr{})
	}
	a := &list[len(list)-1]
	a.Type, a.Data = t, append(a.Data[:0], d...)
	return list
}

// minAttr is the least length of the content of the attributes that parsers
// read at fixed offsets.
func minAttr(t AttrType) uint8 {
	if int(t) < len(attrMin) {
		return attrMin[t]
	}
	return 0
}

var attrMin = [...]uint8{
	AttrAuth: sizeAlgo, AttrCrypt: sizeAlgo, AttrComp: sizeAlgo, AttrEncap: sizeEncap,
	AttrSecCtx: sizeSecCtx, AttrLifetime: sizeLftCur, AttrReplay: 12, AttrReplayThresh: 4, AttrETimerThresh: 4,
	AttrSrcAddr: 16, AttrCoAddr: 16, AttrLastUsed: 8, AttrPolicyType: 1, AttrAEAD: sizeAlgoAuth,
	AttrKMAddress: sizeKMAddress, AttrAuthTrunc: sizeAlgoAuth, AttrMark: 8, AttrTFCPad: 4, AttrReplayESN: sizeESN,
	AttrExtraFlags: 4, AttrProto: 1, AttrAddressFilter: sizeFilter, AttrOffload: 5, AttrSetMark: 4, AttrSetMarkMask: 4,
	AttrIfID: 4, AttrMTimerThresh: 4, AttrSADir: 1, AttrNATKeepalive: 4, AttrSAPCPU: 4, AttrIPTFSDropTime: 4,
	AttrIPTFSReorderWin: 2, AttrIPTFSInitDelay: 4, AttrIPTFSMaxQueue: 4, AttrIPTFSPktSize: 4,
}

// keyLen is the length in octets of a key of so many bits.
func keyLen(bits uint32) uint64 { return (uint64(bits) + 7) / 8 }

func getAlgo(d []byte, t AttrType, name *string, key *Key) error {
	p, k := (*[sizeAlgo]byte)(d), d[sizeAlgo:]
	n := keyLen(ne.Uint32(p[64:]))
	if n > uint64(len(k)) {
		return &FormatError{Attr: t, Field: "key", Err: ErrLength}
	}
	setName(name, (*[64]byte)(p[:]))
	key.set(k[:n])
	return nil
}

func getAlgo2(d []byte, t AttrType, name *string, key *Key, bits *uint32) error {
	p, k := (*[sizeAlgoAuth]byte)(d), d[sizeAlgoAuth:]
	n := keyLen(ne.Uint32(p[64:]))
	if n > uint64(len(k)) {
		return &FormatError{Attr: t, Field: "key", Err: ErrLength}
	}
	setName(name, (*[64]byte)(p[:]))
	*bits = ne.Uint32(p[68:])
	key.set(k[:n])
	return nil
}

// SAID names a state: the key of GETSA and DELSA. Mark is part of the key.
type SAID struct {
	Dst   netip.Addr `json:"dst,omitzero"`
	SPI   uint32     `json:"spi"`
	Proto Proto      `json:"proto"`
	// Src is needed for Route2 and HAO, which have no SPI. If it is not valid
	// no attribute is sent.
	Src   netip.Addr `json:"src,omitzero"`
	Mark  Mark       `json:"mark,omitzero"`
	Other []Attr     `json:"other,omitempty"`
}

// ID returns the state's name.
func (s *SA) ID() SAID {
	return SAID{Dst: s.Dst, SPI: s.SPI, Proto: s.Proto, Src: s.Src, Mark: s.Mark}
}

// AppendDelSA appends a request to delete a state.
func AppendDelSA(b []byte, h Header, id *SAID) ([]byte, error) { return appendSAID(b, DelSA, h, id) }

// AppendGetSA appends a request for one state.
func AppendGetSA(b []byte, h Header, id *SAID) ([]byte, error) { return appendSAID(b, GetSA, h, id) }

func (id *SAID) put(p []byte) error {
	p = p[:sizeSAID]
	f, err := pairFamily(id.Dst, id.Src)
	if err == nil && f == Unspec {
		err = ErrMissing
	}
	if err != nil {
		return &FormatError{Field: "address", Err: err}
	}
	putAddr(p, id.Dst)
	be.PutUint32(p[16:], id.SPI)
	ne.PutUint16(p[20:], uint16(f))
	p[22] = byte(id.Proto)
	return nil
}

// get reads struct xfrm_usersa_id.
func (id *SAID) get(p []byte) error {
	p = p[:sizeSAID]
	f := Family(ne.Uint16(p[20:]))
	if f != IPv4 && f != IPv6 {
		return &FormatError{Field: "family", Err: ErrFamily}
	}
	*id = SAID{Dst: getAddr(p, f), SPI: be.Uint32(p[16:]), Proto: Proto(p[22]), Other: id.Other[:0]}
	return nil
}

func appendSAID(b []byte, t MsgType, h Header, id *SAID) ([]byte, error) {
	start := len(b)
	b, p := begin(b, t, h, sizeSAID)
	if err := id.put(p); err != nil {
		return b[:start], typed(err, t)
	}
	if id.Src.IsValid() {
		b = appendAddr(b, AttrSrcAddr, id.Src)
	}
	if id.Mark != (Mark{}) {
		b = appendMark(b, id.Mark)
	}
	b, err := appendOther(b, id.Other)
	if err != nil {
		return b[:start], typed(err, t)
	}
	return finish(b, start), nil
}

// Parse reads a GETSA or DELSA request, or the name in a DELSA notification.
func (id *SAID) Parse(m Message) error {
	if m.Type != DelSA && m.Type != GetSA || m.isDump() {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	b, err := m.attrs(m.Type)
	if err != nil {
		return err
	}
	if err := id.get(m.Body); err != nil {
		return typed(err, m.Type)
	}
	f := familyOf(id.Dst)
	return eachAttr(m.Type, b, func(t AttrType, d []byte) error {
		switch t {
		case AttrSrcAddr:
			id.Src = getAddr(d, f)
		case AttrMark:
			id.Mark = Mark{ne.Uint32(d), ne.Uint32(d[4:])}
		case AttrPad:
		default:
			id.Other = keep(id.Other, t, d)
		}
		return nil
	})
}

// eachAttr calls f for every attribute, after it has checked the least
// length of those that are read at fixed offsets.
func eachAttr(m MsgType, b []byte, f func(AttrType, []byte) error) error {
	for len(b) >= 4 {
		t, d, n := nextAttr(b)
		if n == 0 {
			return &FormatError{Type: m, Attr: t, Err: ErrLength}
		}
		if len(d) < int(minAttr(t)) {
			return &FormatError{Type: m, Attr: t, Err: ErrShort}
		}
		if err := f(t, d); err != nil {
			return typed(err, m)
		}
		b = b[n:]
	}
	return nil
}

// SPIRequest asks the kernel to choose an SPI from Min to Max, both included,
// and to make a larval state with it, which UPDSA later fills. With 0 for both
// the kernel chooses the range, for IPComp only.
type SPIRequest struct {
	SA  SA     `json:"sa"`
	Min uint32 `json:"min"`
	Max uint32 `json:"max"`
}

// AppendAllocSPI appends a request for an SPI, which the kernel answers with a
// NEWSA message. Of the state, only addresses, protocol, mode, request id,
// sequence, mark and interface id matter.
func AppendAllocSPI(b []byte, h Header, r *SPIRequest) ([]byte, error) {
	start := len(b)
	b, err := appendSA(b, AllocSPI, h, &r.SA, nil)
	if err != nil {
		return b, err
	}
	p := b[start+sizeHeader:]
	ne.PutUint32(p[sizeSA:], r.Min)
	ne.PutUint32(p[sizeSA+4:], r.Max)
	return b, nil
}

// Parse reads an ALLOCSPI request. The kernel answers with a NEWSA message.
func (r *SPIRequest) Parse(m Message) error {
	if m.Type != AllocSPI {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	rest, err := m.attrs(AllocSPI)
	if err != nil {
		return err
	}
	r.Min, r.Max = ne.Uint32(m.Body[sizeSA:]), ne.Uint32(m.Body[sizeSA+4:])
	return typed(r.SA.parse((*[sizeSA]byte)(m.Body), rest), AllocSPI)
}

// SAFilter restricts a dump of states inside the kernel. The zero value
// dumps all.
type SAFilter struct {
	Proto Proto `json:"proto,omitzero"` // 0: no XFRMA_PROTO is sent
	// Addresses sends XFRMA_ADDRESS_FILTER. Prefixes that are not valid match
	// all.
	Addresses Opt[AddressFilter] `json:"addresses,omitzero"`
}

// AddressFilter matches the addresses of states.
type AddressFilter struct {
	Src    netip.Prefix `json:"src,omitzero"`
	Dst    netip.Prefix `json:"dst,omitzero"`
	Family Family       `json:"family,omitzero"` // 0: that of the prefixes, or all
}

// AppendDumpSA appends a request for all states that the filter passes. A
// dump request has no fixed part: older programs that send one make the
// kernel read it as attributes. FlagRequest and FlagDump are added to the
// header's flags.
func AppendDumpSA(b []byte, h Header, f SAFilter) ([]byte, error) {
	start := len(b)
	h.Flags |= FlagRequest | FlagDump
	b, _ = begin(b, GetSA, h, 0)
	if f.Proto != 0 {
		b = appendU8(b, AttrProto, byte(f.Proto))
	}
	if f.Addresses.Set {
		a := f.Addresses.Value
		sel := Selector{Src: a.Src, Dst: a.Dst, Family: a.Family}
		var s [sizeSelector]byte
		if err := sel.put(s[:]); err != nil {
			return b[:start], &FormatError{Type: GetSA, Attr: AttrAddressFilter, Err: err}
		}
		var p []byte
		b, p = appendAttr(b, AttrAddressFilter, sizeFilter)
		copy(p[0:16], s[16:32])
		copy(p[16:32], s[0:16])
		copy(p[32:34], s[40:42])
		p[34], p[35] = s[43], s[42]
	}
	return finish(b, start), nil
}

// Parse reads the filter of a dump request.
func (f *SAFilter) Parse(m Message) error {
	*f = SAFilter{}
	if m.Type != GetSA || !m.isDump() {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	return eachAttr(GetSA, m.Body, func(t AttrType, d []byte) error {
		switch t {
		case AttrProto:
			f.Proto = Proto(d[0])
		case AttrAddressFilter:
			var s [sizeSelector]byte
			copy(s[0:16], d[16:32])
			copy(s[16:32], d[0:16])
			copy(s[40:42], d[32:34])
			s[42], s[43] = d[35], d[34]
			var sel Selector
			if err := sel.get(&s, Unspec); err != nil {
				return &FormatError{Attr: t, Err: err}
			}
			f.Addresses = Some(AddressFilter{sel.Src, sel.Dst, sel.Family})
		}
		return nil
	})
}

// AppendFlushSA appends a request to delete all states of a protocol, or all
// of them (0).
func AppendFlushSA(b []byte, h Header, p Proto) []byte {
	start := len(b)
	b, body := begin(b, FlushSA, h, 1)
	body[0] = byte(p)
	return finish(b, start)
}
