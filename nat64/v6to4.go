package nat64

// from6 translates an IPv6 packet (RFC 7915 section 5). Nothing of the packet
// is changed before it is certain that it needs no answer.
func (t *Translator) from6(c *snapshot, s *Scratch, h *VirtioHdr, buf []byte, off, n int) outcome {
	p := buf[off : off+n]
	if n < header6 {
		return drop(Truncated)
	}
	total := header6 + int(be16(p[4:]))
	if total > n {
		return drop(Truncated)
	}
	p = p[:total] // what follows is link padding

	x := chain{l4: header6, next: p[6]}
	if extension(x.next) {
		var failure Reason
		if x, failure = walk(p); failure != 0 {
			return drop(failure)
		}
	}
	first := x.flags&offsetMask == 0
	icmpError := x.next == protoICMPv6 && first && total > x.l4 && p[x.l4] < 128

	src6, dst6 := load6(p[8:]), load6(p[24:])
	if c.cfg.EchoReply && c.hasOwn6 && dst6 == c.own6 && !x.fragment {
		if r, ok := t.echo6(c, s, h, p, x, src6); ok {
			return r
		}
	}

	// Addresses come first: packets that are not the translator's business
	// get no errors from it.
	dst4, by := c.map6(dst6)
	if !by.ok() {
		if by == byForbidden {
			return t.refuse6(c, s, h, p, x, icmpError, 1, 1, 0, NonGlobalWellKnown)
		}
		return drop(UntranslatableDestination)
	}
	if neverSource(dst4) {
		return drop(IllegalDestination)
	}
	src4, sby := c.map6(src6)
	if !sby.ok() {
		if icmpError {
			if !c.has4 {
				return drop(UntranslatableSource)
			}
			src4, sby = c.router4(src6), ByRFC6791
		} else if sby == byForbidden {
			return t.refuse6(c, s, h, p, x, false, 1, 1, 0, NonGlobalWellKnown)
		} else {
			var wanted bool
			if src4, sby, wanted = c.assign6(src6, s.dry); !sby.ok() {
				switch {
				case wanted && s.dry:
					src4 = c.own4 // Explain: some address of the pool
				case wanted:
					return t.refuse6(c, s, h, p, x, false, 1, 1, 0, PoolExhausted)
				default:
					return t.refuse6(c, s, h, p, x, false, 1, 5, 0, UntranslatableSource)
				}
			}
		}
	} else if !icmpError && neverSource(src4) {
		return drop(IllegalSource)
	}

	// Then what a router and the headers have to say.
	if p[7] <= 1 {
		return t.refuse6(c, s, h, p, x, icmpError, 3, 0, 0, HopLimit)
	}
	if x.after {
		return t.refuse6(c, s, h, p, x, icmpError, 1, 1, 0, ExtensionAfterFragment)
	}
	if x.segments != 0 {
		return t.refuse6(c, s, h, p, x, icmpError, 4, 0, uint32(x.segments), SegmentsLeft)
	}

	if by == ByPrefix && c.cfg.Hairpin == HairpinIntrinsic {
		if other, ok := c.eam.to6(dst4); ok {
			return t.hairpin(c, s, h, p, off, x, icmpError, src6, dst6, src4, other)
		}
	}

	switch x.next {
	case protoICMP, protoIGMP:
		return drop(UntranslatableProtocol)
	case protoICMPv6:
		if x.flags != 0 {
			return drop(FragmentedICMP)
		}
		if icmpError {
			return t.error64(c, s, h, p, x, src4, dst4)
		}
	}

	var o offload
	o.segs, o.largest = 1, total-x.l4
	if h != nil && (h.Flags&VirtioNeedsChecksum != 0 || h.GSOType != 0) {
		var ok bool
		if o, ok = h.check(p, x.l4, x.next, true, x.fragment); !ok {
			return drop(BadOffload)
		}
	}

	// DF by the 1260 rule, on what will be on the wire.
	wire := header4 + o.largest
	var flags, id uint16
	if x.fragment {
		flags, id = x.flags, x.id
	} else if wire > dfThreshold {
		flags = flagDF
	}
	cut := false
	if wire > c.mtu4 {
		if wire > dfThreshold {
			mtu := min(c.mtu4+20, c.mtu6)
			return t.refuse6(c, s, h, p, x, false, 2, 0, uint32(mtu), PacketTooBig)
		}
		cut = true // an MTU below 1260: IPv4 fragments, as RFC 791 has them
	}
	if o.gso && (cut || header4+total-x.l4 > 0xffff) {
		return t.split(c, s, h, p, x.l4, o)
	}

	b := p[x.l4:]
	if first {
		switch x.next {
		case protoTCP, protoUDP, protoDCCP, protoUDPLite:
			field, size := c.adjustable(x.next)
			if len(b) < size {
				return drop(ShortTransport)
			}
			if field == 0 {
				break
			}
			if cut && o.partial {
				h.complete(p, x.next)
				o.partial = false
			}
			old := be16(b[field:])
			minus, plus := sumPair(src6, dst6), uint64(src4)+uint64(dst4)
			switch {
			case o.partial:
				old = adjustPartial(old, minus, plus)
			case old == 0 && x.next == protoUDP:
				if c.cfg.UDPZero != ZeroForward {
					return t.refuse6(c, s, h, p, x, false, 1, 1, 0, ZeroChecksumIPv6)
				}
			default:
				old = adjust(old, minus, plus)
				if old == 0 && x.next != protoTCP {
					old = 0xffff
				}
			}
			put16(b[field:], old)
		case protoICMPv6:
			if len(b) < 8 {
				return drop(ShortTransport)
			}
			kind, to := b[0], uint8(8)
			switch kind {
			case 128:
			case 129:
				to = 0
			default:
				return drop(UnknownICMPType)
			}
			minus := pseudo(sumPair(src6, dst6), len(b), protoICMPv6) + uint64(kind)<<8
			put16(b[2:], adjust(be16(b[2:]), minus, uint64(to)<<8))
			b[0] = to
		}
	}

	if !x.fragment {
		id = t.nextID(s, src4, dst4, x.next, o.segs)
	}
	next := x.next
	if next == protoICMPv6 {
		next = protoICMP
	}
	tos := p[0]<<4 | p[1]>>4
	if c.cfg.ResetTOS {
		tos = 0
	}
	ttl := p[7] - 1
	if cut {
		if h != nil {
			*h = VirtioHdr{} // for each fragment
		}
		return s.fragment4(b, tos, id, flags, ttl, next, src4, dst4, c.mtu4)
	}
	if h != nil {
		h.move(header4-x.l4, o)
	}
	begin := x.l4 - header4
	putHeader4(p[begin:], tos, total-begin, id, flags, ttl, next, src4, dst4)
	return outcome{Forward, Translated64, off + begin, off + total}
}

// router4 returns the address that stands for an IPv6 router without one (RFC
// 6791 section 3): always the same, so that traceroute shows a steady path.
func (c *snapshot) router4(a addr6) uint32 {
	return c.pool4 | uint32(hash6(a)>>32)&c.hosts4
}

// fragment4 makes IPv4 fragments of a payload, to fit an MTU.
func (s *Scratch) fragment4(payload []byte, tos uint8, id, flags uint16, ttl, protocol uint8, src, dst uint32, mtu int) outcome {
	room := (mtu - header4) &^ 7
	offset := flags & offsetMask
	for at := 0; at < len(payload); at += room {
		end := min(at+room, len(payload))
		f := offset + uint16(at/8) | flags&flagMF
		if end < len(payload) {
			f |= flagMF
		}
		b := s.alloc(header4 + end - at)
		putHeader4(b, tos, len(b), id, f, ttl, protocol, src, dst)
		copy(b[header4:], payload[at:end])
		s.more = append(s.more, b)
	}
	return s.several(FragmentedV4)
}

// several is the outcome for the packets in s.more.
func (s *Scratch) several(r Reason) outcome { return outcome{Forward, r, -1, 0} }

// move corrects h for headers that became d octets longer.
func (h *VirtioHdr) move(d int, o offload) {
	if o.partial {
		h.ChecksumStart = uint16(int(h.ChecksumStart) + d)
	} else {
		h.ChecksumStart, h.ChecksumOffset = 0, 0
	}
	if !o.gso {
		h.HdrLen = 0
		h.GSOType, h.GSOSize = 0, 0
		return
	}
	if h.HdrLen != 0 {
		h.HdrLen = uint16(max(0, int(h.HdrLen)+d))
	}
	switch h.GSOType &^ VirtioGSOECN {
	case VirtioGSOTCPv4:
		h.GSOType ^= VirtioGSOTCPv4 ^ VirtioGSOTCPv6
	case VirtioGSOTCPv6:
		h.GSOType ^= VirtioGSOTCPv4 ^ VirtioGSOTCPv6
	}
}

// split makes the segments of a super-packet and translates each.
func (t *Translator) split(c *snapshot, s *Scratch, h *VirtioHdr, p []byte, l4 int, o offload) outcome {
	why := Translated64
	if p[0]>>4 == 4 {
		why = Translated46
	}
	for i := range int(o.segs) {
		b := s.alloc(Headroom + l4 + o.largest)
		b = h.segment(b[:Headroom], p, l4, o, i)
		done := len(s.more)
		var r outcome
		if p[0]>>4 == 6 {
			r = t.from6(c, s, nil, b, Headroom, len(b)-Headroom)
		} else {
			r = t.from4(c, s, nil, b, Headroom, len(b)-Headroom)
		}
		if r.verdict != Forward {
			*h = VirtioHdr{}
			return r // as for the first, so for all
		}
		if len(s.more) == done { // not fragmented
			s.more = append(s.more, b[r.begin:r.end:r.end])
		}
		if r.reason == FragmentedV6 || r.reason == FragmentedV4 {
			why = r.reason
		}
	}
	*h = VirtioHdr{}
	return s.several(why)
}

// hairpin sends a packet from one host of the EAM table back to another whose
// IPv4 address it was sent to (RFC 7757 section 4.2.2): the destination
// becomes the other's IPv6 address and the source the sender's IPv4 address
// behind the prefix. In errors it is the other way round for the quoted
// packet. All but addresses and hop limit stays as it is.
func (t *Translator) hairpin(c *snapshot, s *Scratch, h *VirtioHdr, p []byte, off int, x chain, icmpError bool, src6, dst6 addr6, src4 uint32, newDst addr6) outcome {
	newSrc, by := c.map4rest(src4)
	if !by.ok() {
		return t.refuse6(c, s, h, p, x, icmpError, 1, 5, 0, UntranslatableSource)
	}
	b := p[x.l4:]
	minus, plus := sumPair(src6, dst6), sumPair(newSrc, newDst)
	var o offload
	if h != nil && (h.Flags&VirtioNeedsChecksum != 0 || h.GSOType != 0) {
		var ok bool // before anything that the checksum covers is changed
		if o, ok = h.check(p, x.l4, x.next, true, x.fragment); !ok {
			return drop(BadOffload)
		}
	}
	if icmpError {
		if x.flags != 0 {
			return drop(FragmentedICMP)
		}
		if failure := c.hairpinQuote(b, &minus, &plus); failure != 0 {
			return drop(failure)
		}
	}
	if x.flags&offsetMask == 0 {
		field, size := c.adjustable(x.next)
		if x.next == protoICMPv6 {
			field, size = 2, 4
		}
		if len(b) < size {
			return drop(ShortTransport)
		}
		if field != 0 { // or there may be nothing behind the header
			switch old := be16(b[field:]); {
			case old == 0 && x.next == protoUDP:
			case o.partial:
				put16(b[field:], adjustPartial(old, minus, plus))
			default:
				old = adjust(old, minus, plus)
				if old == 0 && x.next == protoUDP {
					old = 0xffff
				}
				put16(b[field:], old)
			}
		}
	}
	newSrc.store(p[8:])
	newDst.store(p[24:])
	p[7]--
	return outcome{Forward, Hairpinned, off, off + len(p)}
}

// hairpinQuote does the same for the packet quoted in an error, whose source
// is the one that gets the error. It adds what it changes to the sums.
func (c *snapshot) hairpinQuote(icmp []byte, minus, plus *uint64) Reason {
	if len(icmp) < 8+header6 || icmp[8]>>4 != 6 {
		return QuotedPacket
	}
	q := icmp[8:]
	src6, dst6 := load6(q[8:]), load6(q[24:])
	src4, sby := c.map6(src6)
	dst4, dby := c.map6(dst6)
	if !sby.ok() || !dby.ok() {
		return QuotedPacket
	}
	newSrc, sby := c.map4(src4)
	newDst, dby := c.map4rest(dst4)
	if !sby.ok() || !dby.ok() {
		return QuotedPacket
	}
	x, failure := walk(q)
	if failure == Truncated {
		x.next = 59 // nothing of the transport header is there
	} else if failure != 0 {
		return QuotedPacket
	}
	m, n := sumPair(src6, dst6), sumPair(newSrc, newDst)
	if x.flags&offsetMask == 0 && !x.after {
		field, _ := c.adjustable(x.next)
		if x.next == protoICMPv6 {
			field = 2
		}
		if at := x.l4 + field; field != 0 && at+2 <= len(q) {
			old := be16(q[at:])
			if old != 0 || x.next != protoUDP {
				now := adjust(old, m, n)
				if now == 0 && x.next == protoUDP {
					now = 0xffff
				}
				put16(q[at:], now)
				if at&1 == 0 { // always: header lengths are multiples of 8
					*minus += uint64(old)
					*plus += uint64(now)
				}
			}
		}
	}
	*minus += m
	*plus += n
	newSrc.store(q[8:])
	newDst.store(q[24:])
	return 0
}
