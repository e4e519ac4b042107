package nat64

import "signalbox.example/nat64/internal/checksum"

// The tables of RFC 7915 sections 4.2 and 5.2. ICMP types by their numbers:
// 3 and 1 destination unreachable, 3/4 and 2 packet too big, 11 and 3 time
// exceeded, 12 and 4 parameter problem, 8/0 and 128/129 echo.

// isError4 reports whether an ICMPv4 type is an error (RFC 1122 section 3.2.2).
func isError4(kind uint8) bool {
	return kind == 3 || kind == 4 || kind == 5 || kind == 11 || kind == 12
}

// icmp46 translates type and code of an ICMPv4 error. The rest of the header
// is the caller's, but for the pointer of 3/2, which is 6 (next header).
func icmp46(kind, code uint8) (kind6, code6 uint8, failure Reason) {
	switch kind {
	case 3:
		switch code {
		case 0, 1, 5, 6, 7, 8, 11, 12:
			return 1, 0, 0
		case 2:
			return 4, 1, 0
		case 3:
			return 1, 4, 0
		case 4:
			return 2, 0, 0
		case 9, 10, 13, 15:
			return 1, 1, 0
		}
		return 0, 0, UnknownICMPCode
	case 11:
		return 3, code, 0
	case 12:
		if code == 0 || code == 2 {
			return 4, 0, 0
		}
		return 0, 0, UnknownICMPCode
	}
	return 0, 0, UnknownICMPType
}

// icmp64 translates type and code of an ICMPv6 error.
func icmp64(kind, code uint8) (kind4, code4 uint8, failure Reason) {
	switch kind {
	case 1:
		switch code {
		case 0, 2, 3:
			return 3, 1, 0
		case 1:
			return 3, 10, 0
		case 4:
			return 3, 3, 0
		}
		return 0, 0, UnknownICMPCode
	case 2:
		return 3, 4, 0
	case 3:
		return 11, code, 0
	case 4:
		switch code {
		case 0:
			return 12, 0, 0
		case 1:
			return 3, 2, 0
		}
		return 0, 0, UnknownICMPCode
	}
	return 0, 0, UnknownICMPType
}

// pointer46 is figure 3 of RFC 7915.
func pointer46(p uint8) (uint32, bool) {
	switch {
	case p <= 1:
		return uint32(p), true
	case p == 2, p == 3:
		return 4, true
	case p == 8:
		return 7, true
	case p == 9:
		return 6, true
	case p >= 12 && p <= 15:
		return 8, true
	case p >= 16 && p <= 19:
		return 24, true
	}
	return 0, false
}

// pointer64 is figure 6 of RFC 7915.
func pointer64(p uint32) (uint8, bool) {
	switch {
	case p <= 1:
		return uint8(p), true
	case p == 4, p == 5:
		return 2, true
	case p == 6:
		return 9, true
	case p == 7:
		return 8, true
	case p >= 8 && p <= 23:
		return 12, true
	case p >= 24 && p <= 39:
		return 16, true
	}
	return 0, false
}

// mtu46 translates the MTU of a "fragmentation needed" message. inner is the
// total length of the quoted packet, from which the MTU is guessed if the
// router states none (RFC 1191 section 7).
func (c *snapshot) mtu46(mtu uint16, inner int) uint32 {
	if mtu == 0 {
		for _, p := range c.plateaus {
			if int(p) < inner {
				mtu = p
				break
			}
		}
	}
	return uint32(max(minMTU6, min(int(mtu)+20, c.mtu6, c.mtu4+20)))
}

// mtu64 translates the MTU of a "packet too big" message, a 32-bit number
// that anybody may have written. The result is no MTU that IPv4 forbids.
func (c *snapshot) mtu64(mtu uint32) uint16 {
	return uint16(max(68, min(int64(mtu)-20, int64(c.mtu4), int64(c.mtu6)-20)))
}

// split4884 divides what follows the ICMP header of an error into the quoted
// packet and an extension (RFC 4884 section 3), by the length field in units
// of unit octets.
func split4884(body []byte, words uint8, unit int) (quote, extension []byte, ok bool) {
	if words == 0 {
		return body, nil, true
	}
	n := int(words) * unit
	if n > len(body) {
		return nil, nil, false
	}
	return body[:n], body[n:], true
}

// layout decides how an error's body is cut: how much of the translated quote
// goes out, to what length it is padded, whether the extension goes with it,
// and the value of the length field (RFC 4884 sections 4 and 5). Room is what
// the error may hold behind its ICMP header.
func layout(quote, extension, room, unit int) (take, padded int, extended bool, words uint8) {
	const least = 128
	if extension > 0 {
		// A longer quote is cut to the unit rather than padded: what it loses
		// is payload far behind the transport header.
		padded = max(least, quote/unit*unit)
		if padded+extension > room {
			padded = (room - extension) / unit * unit
		}
		if padded >= least {
			return min(quote, padded), padded, true, uint8(padded / unit)
		}
	}
	take = min(quote, room)
	return take, take, false, 0
}

// quotedHead is more of a quoted transport header than translation changes.
const quotedHead = 24

// error46 translates an ICMPv4 error (RFC 7915 sections 4.2 and 4.3). The
// result is made in the Scratch.
func (t *Translator) error46(c *snapshot, s *Scratch, h *VirtioHdr, p []byte, ihl int, src6, dst6 addr6) outcome {
	m := p[ihl:]
	if len(m) < 8 {
		return drop(ShortTransport)
	}
	kind, code, failure := icmp46(m[0], m[1])
	if failure != 0 {
		return drop(failure)
	}
	if checksum.Sum(m) != 0xffff {
		return drop(BadICMPChecksum)
	}
	var words uint8
	if m[0] != 3 || m[1] != 4 {
		words = m[5]
	}
	quote, ext, ok := split4884(m[8:], words, 4)
	if !ok || len(quote) < header4 {
		return drop(QuotedPacket)
	}
	var rest uint32
	switch {
	case kind == 2:
		rest = c.mtu46(be16(m[6:]), int(be16(quote[2:])))
	case kind == 4 && code == 1:
		rest = 6
	case kind == 4:
		if rest, ok = pointer46(m[4]); !ok {
			return drop(ICMPPointer)
		}
	}

	if kind != 1 && kind != 3 && words != 0 {
		// The type has no length field in ICMPv6: the extension goes, and
		// with it the padding that was for its sake.
		ext, quote = nil, quote[:min(len(quote), max(header4, int(be16(quote[2:]))))]
	}

	const room = maxError6 - header6 - 8
	b := s.alloc(maxError6)
	whole, failure := c.quote46(b[header6+8:], quote)
	if failure != 0 {
		return drop(failure)
	}
	n, padded, extended, length := layout(whole, len(ext), room, 8)
	body := b[header6+8:]
	clear(body[n:padded])
	if extended {
		padded += copy(body[padded:], ext)
		rest |= uint32(length) << 24
	}
	b = b[:header6+8+padded]
	out := b[header6:]
	out[0], out[1], out[2], out[3] = kind, code, 0, 0
	put32(out[4:], rest)
	// What follows the quoted transport header goes out as it came in. The sum
	// of a message that was verified is nothing, so the sum of its end is the
	// complement of that of its beginning: the end need not be summed again.
	sum := uint64(0)
	ihl4 := int(quote[0]&15) * 4
	in, made := 8+ihl4+quotedHead, 8+n-(len(quote)-ihl4)+quotedHead
	if len(ext) == 0 && padded == n && n == whole && len(quote) == len(m)-8 && in < len(m) {
		sum = uint64(^checksum.Sum(m[:in])) + uint64(checksum.Sum(out[:made]))
	} else {
		sum = uint64(checksum.Sum(out))
	}
	put16(out[2:], ^checksum.Fold(pseudo(sumPair(src6, dst6), len(out), protoICMPv6)+sum))

	class := p[1]
	if c.cfg.ResetTOS {
		class = 0
	}
	putHeader6(b, class, len(out), protoICMPv6, p[8]-1, src6, dst6)
	if h != nil {
		*h = VirtioHdr{}
	}
	return s.made(Forward, Translated46, b)
}

// quote46 translates a quoted IPv4 packet into b and returns the length it
// would have; what does not fit b is left out. Lengths in its headers stay
// what they claim, whatever is left of the packet (RFC 7915 section 4.3).
func (c *snapshot) quote46(b, q []byte) (int, Reason) {
	ihl, total := int(q[0]&15)*4, int(be16(q[2:]))
	if q[0]>>4 != 4 || ihl < header4 || ihl > len(q) || total < ihl {
		return 0, QuotedPacket
	}
	src4, dst4 := be32(q[12:]), be32(q[16:])
	src6, by := c.map4(src4)
	if !by.ok() {
		return 0, QuotedPacket
	}
	var dst6 addr6
	if c.cfg.Hairpin == HairpinSimple {
		dst6, by = c.map4rest(dst4)
	} else {
		dst6, by = c.map4(dst4)
	}
	if !by.ok() {
		return 0, QuotedPacket
	}
	flags := be16(q[6:]) & (flagMF | offsetMask)
	next, at := q[9], header6
	if flags != 0 {
		at += headerFragment
	}
	claimed := total - ihl
	n := copy(b[at:], q[ihl:])
	if flags&offsetMask == 0 {
		if next == protoICMP {
			if failure := quotedEcho(b[at:at+n], sumPair(src6, dst6), claimed, true); failure != 0 {
				return 0, failure
			}
		} else {
			c.quotedChecksum(b[at:at+n], next, uint64(src4)+uint64(dst4), sumPair(src6, dst6))
		}
	}
	if next == protoICMP {
		next = protoICMPv6
	}
	class := q[1]
	if c.cfg.ResetTOS {
		class = 0
	}
	length := claimed
	if flags != 0 {
		putFragment(b[header6:], next, flags, uint32(be16(q[4:])))
		next = protoFragment
		length += headerFragment
	}
	putHeader6(b, class, length, next, q[8], src6, dst6)
	return at + len(q) - ihl, 0
}

// error64 translates an ICMPv6 error (RFC 7915 sections 5.2 and 5.3). The
// result is made in the Scratch.
func (t *Translator) error64(c *snapshot, s *Scratch, h *VirtioHdr, p []byte, x chain, src4, dst4 uint32) outcome {
	m := p[x.l4:]
	if len(m) < 8 {
		return drop(ShortTransport)
	}
	kind, code, failure := icmp64(m[0], m[1])
	if failure != 0 {
		return drop(failure)
	}
	if checksum.Fold(pseudo(sumPair(load6(p[8:]), load6(p[24:])), len(m), protoICMPv6)+uint64(checksum.Sum(m))) != 0xffff {
		return drop(BadICMPChecksum)
	}
	var words uint8
	if m[0] == 1 || m[0] == 3 {
		words = m[4]
	}
	quote, ext, ok := split4884(m[8:], words, 8)
	if !ok || len(quote) < header6 {
		return drop(QuotedPacket)
	}
	var rest uint32
	switch {
	case kind == 3 && code == 4:
		rest = uint32(c.mtu64(be32(m[4:])))
	case kind == 12:
		pointer, ok := pointer64(be32(m[4:]))
		if !ok {
			return drop(ICMPPointer)
		}
		rest = uint32(pointer) << 24
	}

	room := min(maxError4, c.mtu4) - header4 - 8
	b := s.alloc(maxError4)
	n, failure := c.quote64(b[header4+8:], quote)
	if failure != 0 {
		return drop(failure)
	}
	n, padded, extended, length := layout(n, len(ext), room, 4)
	body := b[header4+8:]
	clear(body[n:padded])
	if extended {
		padded += copy(body[padded:], ext)
		rest |= uint32(length) << 16
	}
	b = b[:header4+8+padded]
	out := b[header4:]
	out[0], out[1], out[2], out[3] = kind, code, 0, 0
	put32(out[4:], rest)
	put16(out[2:], ^checksum.Sum(out))

	tos := p[0]<<4 | p[1]>>4
	if c.cfg.ResetTOS {
		tos = 0
	}
	id := x.id // of an atomic fragment
	if !x.fragment {
		id = t.nextID(s, src4, dst4, protoICMP, 1)
	}
	putHeader4(b, tos, len(b), id, 0, p[7]-1, protoICMP, src4, dst4)
	if h != nil {
		*h = VirtioHdr{}
	}
	return s.made(Forward, Translated64, b)
}

// quote64 translates a quoted IPv6 packet into b, as quote46 does for the
// other direction.
func (c *snapshot) quote64(b, q []byte) (int, Reason) {
	if q[0]>>4 != 6 {
		return 0, QuotedPacket
	}
	x, failure := walk(q)
	if failure != 0 || x.after {
		return 0, QuotedPacket
	}
	src6, dst6 := load6(q[8:]), load6(q[24:])
	src4, by := c.map6(src6)
	if !by.ok() {
		return 0, QuotedPacket
	}
	dst4, by := c.map6(dst6)
	if !by.ok() {
		return 0, QuotedPacket
	}
	claimed := int(be16(q[4:])) - (x.l4 - header6)
	if claimed < 0 || header4+claimed > 0xffff {
		return 0, QuotedPacket
	}
	next := x.next
	n := copy(b[header4:], q[x.l4:])
	if x.flags&offsetMask == 0 {
		if next == protoICMPv6 {
			if failure := quotedEcho(b[header4:header4+n], sumPair(src6, dst6), claimed, false); failure != 0 {
				return 0, failure
			}
		} else {
			c.quotedChecksum(b[header4:header4+n], next, sumPair(src6, dst6), uint64(src4)+uint64(dst4))
		}
	}
	if next == protoICMPv6 {
		next = protoICMP
	}
	tos := q[0]<<4 | q[1]>>4
	if c.cfg.ResetTOS {
		tos = 0
	}
	// The identification that the IPv4 packet had is not known here.
	flags, id := x.flags, x.id
	if !x.fragment && header4+claimed > dfThreshold {
		flags = flagDF
	}
	putHeader4(b, tos, header4+claimed, id, flags, q[7], next, src4, dst4)
	return header4 + len(q) - x.l4, 0
}

// quotedChecksum adjusts the checksum in a quoted transport header as far as
// it is there.
func (c *snapshot) quotedChecksum(b []byte, protocol uint8, minus, plus uint64) {
	field, _ := c.adjustable(protocol)
	if field == 0 || len(b) < field+2 {
		return
	}
	old := be16(b[field:])
	if old == 0 && protocol == protoUDP {
		return
	}
	old = adjust(old, minus, plus)
	if old == 0 && protocol != protoTCP {
		old = 0xffff
	}
	put16(b[field:], old)
}

// quotedEcho translates a quoted ICMP message. Only echo can be quoted: errors
// get no errors, and nothing else crosses.
func quotedEcho(b []byte, addresses uint64, claimed int, to6 bool) Reason {
	if len(b) < 1 {
		return 0
	}
	kind, to := b[0], uint8(0)
	switch {
	case to6 && kind == 8:
		to = 128
	case to6 && kind == 0:
		to = 129
	case !to6 && kind == 128:
		to = 8
	case !to6 && kind == 129:
	default:
		return QuotedPacket
	}
	b[0] = to
	if len(b) < 4 {
		return 0
	}
	minus, plus := uint64(kind)<<8, uint64(to)<<8
	if p := pseudo(addresses, claimed, protoICMPv6); to6 {
		plus += p
	} else {
		minus += p
	}
	put16(b[2:], adjust(be16(b[2:]), minus, plus))
	return 0
}
