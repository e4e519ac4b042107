//go:build gc && go1.26 && !go1.27 && !purego && (amd64 || arm64)

package xfrm

import (
	mathbits "math/bits"
	"net/netip"
	"unsafe"
)

// The fields of an SA that parseMessage clears or copies together. None of them
// is or has a pointer, but for the selector; TestUsualFields looks.
const (
	selAt      = unsafe.Offsetof(SA{}.Sel)
	prefixSize = unsafe.Sizeof(netip.Prefix{})
	lengthAt   = unsafe.Sizeof(netip.Addr{}) // where a prefix has its length plus one
	portsAt    = selAt + 2*prefixSize        // family, protocol, ports, interface, user
	limitsAt   = unsafe.Offsetof(SA{}.Lifetime)
	replayAt   = unsafe.Offsetof(SA{}.Replay)
	replaySize = unsafe.Offsetof(Replay{}.Bitmap)
	truncAt    = unsafe.Offsetof(SA{}.Auth) + unsafe.Offsetof(Auth{}.TruncBits)
	truncSize  = unsafe.Sizeof(Auth{}) - unsafe.Offsetof(Auth{}.TruncBits)
	encapAt    = unsafe.Offsetof(SA{}.Encap)
	encapSize  = unsafe.Offsetof(Encap{}.Addr)
	marksAt    = unsafe.Offsetof(SA{}.Mark) // to the numbers of SecCtx
	marksSize  = unsafe.Offsetof(SA{}.SecCtx) + unsafe.Offsetof(SecCtx{}.Text) - marksAt
	timersAt   = unsafe.Offsetof(SA{}.IPTFS) // to ETimerThresh
	timersSize = unsafe.Offsetof(SA{}.Cur) - timersAt
	curAt      = unsafe.Offsetof(SA{}.Cur)

	mapped = 0xffff << 32 // above an IPv4 address in a netip.Addr
)

// parseMessage is Parse. It has the whole way of a usual state in one function
// without calls, which clears and copies neighbouring fields together: a state
// with an AEAD algorithm and no others, of the same name and key length as
// what is there, no selector, no limits in octets or packets, and, as requests
// and dumps have it, a mark, an interface, a direction, a replay state of one
// word and the time of its last use. Whatever is else is for parseAny, which
// overwrites everything, so that it does not matter what was written before.
//
// All reads are inside of body: an attribute is looked at if it ends there, and
// read as far as its length was seen to reach. All writes are to s's own fields,
// and to the bytes of its key and the word of its bitmap, which are as long as
// what they get. No pointer is written: those that stay have the right values
// already. Memory need not be aligned on these processors, and the least
// significant octet comes first.
func (s *SA) parseMessage(t MsgType, body []byte) error {
	if t != NewSA && t != UpdSA || len(body) < sizeSA {
		return s.parseAny(t, body)
	}
	p := (*[sizeSA]byte)(body)
	var form uintptr
	switch Family(ne.Uint16(p[saFamily:])) {
	case IPv4:
		form = *formOf(&unspecified4)
	case IPv6:
		form = *formOf(&unspecified6)
	default:
		return s.parseAny(t, body)
	}
	var selForm uintptr
	selLow, selLength, selFamily := uint64(0), uint64(1), ne.Uint64(p[40:])
	switch selFamily {
	case uint64(Unspec):
		selLength = 0
	case uint64(IPv4):
		selForm, selLow = *formOf(&unspecified4), mapped
	case uint64(IPv6):
		selForm = *formOf(&unspecified6)
	default:
		return s.parseAny(t, body)
	}
	odd := ne.Uint64(p[0:]) | ne.Uint64(p[8:]) | ne.Uint64(p[16:]) | ne.Uint64(p[24:]) | ne.Uint64(p[32:]) | ne.Uint64(p[48:]) |
		^(ne.Uint64(p[saLft:]) & ne.Uint64(p[saLft+8:]) & ne.Uint64(p[saLft+16:]) & ne.Uint64(p[saLft+24:])) |
		uint64(len(s.Cipher.Name)|cap(s.Cipher.Key)|len(s.Auth.Name)|cap(s.Auth.Key)|len(s.Comp.Name)|cap(s.Comp.Key)|len(s.SecCtx.Text)) |
		uint64((*formOf(&s.Dst)^form)|(*formOf(&s.Src)^form)|(*formIn(&s.Sel.Dst)^selForm)|(*formIn(&s.Sel.Src)^selForm)|*formOf(&s.Encap.Addr)|*formOf(&s.CoA)) |
		uint64(p[saFlags])&uint64(ESN)
	if odd != 0 || p[saWindow] > 32 {
		return s.parseAny(t, body)
	}

	at := unsafe.Pointer(s)
	*(*[marksSize]byte)(unsafe.Add(at, marksAt)) = [marksSize]byte{}
	*(*[replaySize]byte)(unsafe.Add(at, replayAt)) = [replaySize]byte{}
	r := &s.Replay
	r.Window = uint32(p[saWindow])
	r.Bitmap, r.Reported, r.LegacyWindow = r.Bitmap[:0], false, 0
	s.LastUsed = 0
	w := (*[2]uint64)(unsafe.Pointer(&s.Dst))
	v := (*[2]uint64)(unsafe.Pointer(&s.Src))
	if form == *formOf(&unspecified4) {
		w[0], w[1] = 0, mapped|uint64(be.Uint32(p[saID:]))
		v[0], v[1] = 0, mapped|uint64(be.Uint32(p[saSrc:]))
	} else {
		w[0], w[1] = be.Uint64(p[saID:]), be.Uint64(p[saID+8:])
		v[0], v[1] = be.Uint64(p[saSrc:]), be.Uint64(p[saSrc+8:])
	}
	// The prefixes keep their form; behind it is their length plus one, or 0 for none.
	sel := unsafe.Add(at, selAt)
	*(*[2]uint64)(sel), *(*uint64)(unsafe.Add(sel, lengthAt)) = [2]uint64{0, selLow}, selLength
	sel = unsafe.Add(sel, prefixSize)
	*(*[2]uint64)(sel), *(*uint64)(unsafe.Add(sel, lengthAt)) = [2]uint64{0, selLow}, selLength
	*(*uint64)(unsafe.Add(at, portsAt)) = selFamily
	*(*[16]byte)(unsafe.Add(at, portsAt+8)) = [16]byte{}
	*(*uint64)(unsafe.Pointer(&s.SPI)) = uint64(be.Uint32(p[saID+16:])) | uint64(p[saID+20])<<32 | uint64(p[saMode])<<40
	*(*uint64)(unsafe.Pointer(&s.ReqID)) = mathbits.RotateLeft64(ne.Uint64(p[saSeq:]), 32)
	*(*uint64)(unsafe.Pointer(&s.Flags)) = uint64(p[saFlags])
	*(*[32]byte)(unsafe.Add(at, limitsAt)) = [32]byte{}
	to := unsafe.Add(at, limitsAt)
	copy16(to, unsafe.Pointer(&p[saLft]), 32)
	copy16(to, unsafe.Pointer(&p[saLft]), 48)
	*(*[truncSize]byte)(unsafe.Add(at, truncAt)) = [truncSize]byte{}
	*(*[encapSize]byte)(unsafe.Add(at, encapAt)) = [encapSize]byte{}
	*(*[timersSize]byte)(unsafe.Add(at, timersAt)) = [timersSize]byte{}
	to = unsafe.Add(at, curAt)
	copy16(to, unsafe.Pointer(&p[saCur]), 0)
	copy16(to, unsafe.Pointer(&p[saCur]), 16)
	*(*uint64)(unsafe.Pointer(&s.Stats)) = ne.Uint64(p[saStats:])
	s.Stats.IntegrityFailed = ne.Uint32(p[saStats+8:])
	s.Other = s.Other[:0]
	seen := false
	for i, end := uint(sizeSA), uint(len(body)); i+4 <= end; {
		a := unsafe.Add(unsafe.Pointer(p), i)
		h := *(*uint32)(a)
		l := uint(h & 0xffff)
		i += (l + 3) &^ 3
		if l < 4 || i > end { // a last one without its padding is not usual
			return s.parseAny(t, body)
		}
		switch k := AttrType(h >> 16 & attrTypeMask); {
		case k == AttrAEAD && l >= 4+sizeAlgoAuth:
			n := uint(keyLen(*(*uint32)(unsafe.Add(a, 4+64))))
			if n > l-(4+sizeAlgoAuth) || n-16 > 48-16 || n != uint(len(s.AEAD.Key)) || !sameName(s.AEAD.Name, (*[64]byte)(unsafe.Add(a, 4))) {
				return s.parseAny(t, body)
			}
			to, from := unsafe.Pointer(unsafe.SliceData(s.AEAD.Key)), unsafe.Add(a, 4+sizeAlgoAuth)
			copy16(to, from, 0) // the last overlaps what is before it
			if n > 32 {
				copy16(to, from, 16)
			}
			copy16(to, from, uintptr(n-16))
			s.AEAD.ICVBits = *(*uint32)(unsafe.Add(a, 4+68))
			seen = true
		case k == AttrMark && l >= 4+8:
			s.Mark = *(*Mark)(unsafe.Add(a, 4))
		case k == AttrIfID && l >= 4+4:
			s.IfID = *(*uint32)(unsafe.Add(a, 4))
		case k == AttrReplay && l >= 4+12 && cap(r.Bitmap) > 0:
			r.Reported = true
			r.OSeq, r.Seq = *(*uint32)(unsafe.Add(a, 4)), *(*uint32)(unsafe.Add(a, 8))
			r.Bitmap = r.Bitmap[:1]
			r.Bitmap[0] = *(*uint32)(unsafe.Add(a, 12))
		case k == AttrSADir && l >= 4+1:
			s.Dir = *(*SADir)(unsafe.Add(a, 4))
		case k == AttrLastUsed && l >= 4+8:
			s.LastUsed = *(*uint64)(unsafe.Add(a, 4))
		default:
			return s.parseAny(t, body)
		}
	}
	if !seen {
		return s.parseAny(t, body)
	}
	return nil
}

// copy16 copies 16 octets. More than that at once would be a call.
func copy16(to, from unsafe.Pointer, at uintptr) {
	*(*[16]byte)(unsafe.Add(to, at)) = *(*[16]byte)(unsafe.Add(from, at))
}

// sameName reports whether a name of 8 to 63 octets is the one that is stored,
// with the NUL behind it.
func sameName(s string, p *[64]byte) bool {
	n := uint(len(s)) - 8
	if n > 63-8 {
		return false
	}
	q, w := unsafe.Pointer(unsafe.StringData(s)), unsafe.Pointer(p)
	other := differ8(q, w, 0) | differ8(q, w, n) | uint64(p[n+8])
	if n > 8 {
		other |= differ8(q, w, 8)
		for i := uint(16); i < n; i += 8 {
			other |= differ8(q, w, i)
		}
	}
	return other == 0
}

// differ8 is 0 if 8 octets are the same.
func differ8(p, q unsafe.Pointer, at uint) uint64 {
	return *(*uint64)(unsafe.Add(p, at)) ^ *(*uint64)(unsafe.Add(q, at))
}

// formIn is formOf for the address of a prefix, which comes first.
func formIn(p *netip.Prefix) *uintptr { return formOf((*netip.Addr)(unsafe.Pointer(p))) }
