package nat64

import "signalbox.example/nat64/internal/checksum"

// from4 translates an IPv4 packet (RFC 7915 section 4). Nothing of the packet
// is changed before it is certain that it needs no answer.
func (t *Translator) from4(c *snapshot, s *Scratch, h *VirtioHdr, buf []byte, off, n int) outcome {
	p := buf[off : off+n]
	if n < header4 {
		return drop(Truncated)
	}
	ihl, total := int(p[0]&15)*4, int(be16(p[2:]))
	if ihl < header4 || total < ihl {
		return drop(BadHeader)
	}
	if total > n {
		return drop(Truncated)
	}
	p = p[:total] // what follows is link padding
	src4, dst4 := be32(p[12:]), be32(p[16:])
	if ihl == header4 {
		w := uint64(be32(p)) + uint64(be32(p[4:])) + uint64(be32(p[8:])) + uint64(src4) + uint64(dst4)
		if checksum.Fold(w) != 0xffff {
			return drop(BadHeaderChecksum)
		}
	} else if checksum.Sum(p[:ihl]) != 0xffff {
		return drop(BadHeaderChecksum)
	}

	flags := be16(p[6:]) & (flagMF | offsetMask)
	fragment := flags != 0
	first := flags&offsetMask == 0
	if int(flags&offsetMask)*8+total-ihl > 0xffff {
		return drop(BadHeader)
	}
	protocol := p[9]
	icmpError := protocol == protoICMP && first && total > ihl && isError4(p[ihl])

	if c.cfg.EchoReply && c.own4 != 0 && dst4 == c.own4 && !fragment {
		if r, ok := t.echo4(c, s, h, p, ihl); ok {
			return r
		}
	}

	// Addresses come first: packets that are not the translator's business
	// get no errors from it.
	if neverSource(dst4) {
		return drop(IllegalDestination)
	}
	if neverSource(src4) && !icmpError {
		return drop(IllegalSource)
	}
	dst6, by := c.map4(dst4)
	if !by.ok() {
		switch by {
		case byForbidden:
			return t.refuse4(c, s, h, p, ihl, icmpError, 3, 13, 0, NonGlobalWellKnown)
		case byUnassigned:
			return t.refuse4(c, s, h, p, ihl, icmpError, 3, 1, 0, UntranslatableDestination)
		}
		return drop(UntranslatableDestination)
	}
	if by == ByPrefix && c.own(dst4) {
		return t.refuse4(c, s, h, p, ihl, icmpError, 3, 2, 0, UntranslatableDestination)
	}
	var src6 addr6
	if c.cfg.Hairpin == HairpinSimple && !c.eamSource(p[ihl:], src4, icmpError) {
		src6, by = c.map4rest(src4)
	} else {
		src6, by = c.map4(src4)
	}
	if !by.ok() {
		switch {
		case icmpError && c.has6:
			src6 = c.router6(src4)
		case icmpError || by == Unmapped:
			return drop(UntranslatableSource)
		case by == byForbidden:
			return t.refuse4(c, s, h, p, ihl, false, 3, 13, 0, NonGlobalWellKnown)
		default:
			return t.refuse4(c, s, h, p, ihl, false, 3, 13, 0, UntranslatableSource)
		}
	}

	// Then what a router and the headers have to say.
	if p[8] <= 1 {
		return t.refuse4(c, s, h, p, ihl, icmpError, 11, 0, 0, HopLimit)
	}
	if ihl > header4 && sourceRouted(p[header4:ihl]) {
		return t.refuse4(c, s, h, p, ihl, icmpError, 3, 5, 0, SourceRoute)
	}

	switch protocol {
	case protoHopByHop, protoIGMP, protoRouting, protoFragment, protoICMPv6, protoDstOpts:
		return drop(UntranslatableProtocol)
	case protoICMP:
		if fragment {
			return drop(FragmentedICMP)
		}
		if icmpError {
			return t.error46(c, s, h, p, ihl, src6, dst6)
		}
	}

	var o offload
	o.segs, o.largest = 1, total-ihl
	if h != nil && (h.Flags&VirtioNeedsChecksum != 0 || h.GSOType != 0) {
		var ok bool
		if o, ok = h.check(p, ihl, protocol, false, fragment); !ok {
			return drop(BadOffload)
		}
	}

	// Too big, or to be fragmented, by what will be on the wire.
	extra, headed, df := header6, fragment, p[6]&(flagDF>>8) != 0
	if c.cfg.StrictFragmentHeader && !df {
		headed = true
	}
	if headed {
		extra += headerFragment
	}
	wire := extra + o.largest
	cut := false
	if !df {
		cut = wire > c.lowest
	} else if wire > c.mtu6 {
		mtu := c.mtu6 - header6 + header4
		if total <= mtu { // only the fragment header makes it too big
			mtu -= headerFragment
		}
		mtu = min(mtu, c.mtu4)
		return t.refuse4(c, s, h, p, ihl, false, 3, 4, uint32(mtu), PacketTooBig)
	}
	if (cut || headed) && o.gso {
		return t.split(c, s, h, p, ihl, o)
	}
	begin := ihl - extra
	if !cut && off+begin < 0 {
		return drop(NoHeadroom)
	}

	b := p[ihl:]
	if first {
		switch protocol {
		case protoTCP, protoUDP, protoDCCP, protoUDPLite:
			field, size := c.adjustable(protocol)
			if len(b) < size {
				return drop(ShortTransport)
			}
			if field == 0 {
				break
			}
			if (cut || headed) && o.partial {
				h.complete(p, protocol)
				o.partial = false
			}
			old := be16(b[field:])
			minus, plus := uint64(src4)+uint64(dst4), sumPair(src6, dst6)
			switch {
			case o.partial:
				old = adjustPartial(old, minus, plus)
			case old == 0 && protocol == protoUDP:
				switch c.cfg.UDPZero {
				case ZeroForward:
				case ZeroCompute:
					if n := int(be16(b[4:])); !fragment && n >= 8 && n <= len(b) {
						old = finishUDP(b[:n], plus)
						break
					}
					fallthrough
				default:
					return t.refuse4(c, s, h, p, ihl, false, 3, 13, 0, ZeroChecksumIPv4)
				}
			default:
				old = adjust(old, minus, plus)
				if old == 0 && protocol != protoTCP {
					old = 0xffff
				}
			}
			put16(b[field:], old)
		case protoICMP:
			if len(b) < 8 {
				return drop(ShortTransport)
			}
			kind, to := b[0], uint8(128)
			switch kind {
			case 8:
			case 0:
				to = 129
			default:
				return drop(UnknownICMPType)
			}
			plus := pseudo(sumPair(src6, dst6), len(b), protoICMPv6) + uint64(to)<<8
			put16(b[2:], adjust(be16(b[2:]), uint64(kind)<<8, plus))
			b[0] = to
		}
	}

	next := protocol
	if next == protoICMP {
		next = protoICMPv6
	}
	class := p[1]
	if c.cfg.ResetTOS {
		class = 0
	}
	id, limit := be16(p[4:]), p[8]-1
	if cut {
		if h != nil {
			*h = VirtioHdr{} // for each fragment
		}
		return s.fragment6(b, class, id, flags, limit, next, src6, dst6, c.lowest)
	}
	if h != nil {
		h.move(extra-ihl, o)
	}
	q := buf[off+begin : off+total : off+total]
	if headed {
		putFragment(q[header6:], next, flags, uint32(id))
		next = protoFragment
	}
	putHeader6(q, class, len(q)-header6, next, limit, src6, dst6)
	return outcome{Forward, Translated46, off + begin, off + total}
}

// own reports whether an IPv4 address is the translator's own, or one of those
// that stand for routers. A packet to it is no other host's: translated by the
// prefix it would come back, and go to and fro until its hops are used up.
func (c *snapshot) own(v uint32) bool { return v == c.own4 || v&^c.hosts4 == c.pool4 }

// finishUDP computes the checksum of a UDP datagram that has none; addresses
// is the sum of the addresses.
func finishUDP(b []byte, addresses uint64) uint16 {
	c := ^checksum.Fold(pseudo(addresses, len(b), protoUDP) + uint64(checksum.Sum(b)))
	if c == 0 {
		return 0xffff
	}
	return c
}

// eamSource reports whether the EAM table may map the source of an IPv4 packet
// under simple hairpinning (RFC 7757 section 4.2.1): only in errors, and not
// if the source is the host that the quoted packet was for.
func (c *snapshot) eamSource(icmp []byte, src4 uint32, icmpError bool) bool {
	return icmpError && !(len(icmp) >= 8+header4 && be32(icmp[8+16:]) == src4)
}

// router6 returns the address that stands for an IPv4 router that cannot be
// mapped (RFC 6791 section 3, the other way round).
func (c *snapshot) router6(v uint32) addr6 {
	a := c.pool6
	a.lo |= uint64(v & c.hosts6)
	return a
}

// fragment6 makes IPv6 fragments of a payload, to fit an MTU.
func (s *Scratch) fragment6(payload []byte, class uint8, id, flags uint16, limit, next uint8, src, dst addr6, mtu int) outcome {
	const headers = header6 + headerFragment
	room := (mtu - headers) &^ 7
	offset := flags & offsetMask
	for at := 0; at < len(payload); at += room {
		end := min(at+room, len(payload))
		f := offset + uint16(at/8) | flags&flagMF
		if end < len(payload) {
			f |= flagMF
		}
		b := s.alloc(headers + end - at)
		putHeader6(b, class, len(b)-header6, protoFragment, limit, src, dst)
		putFragment(b[header6:], next, f, uint32(id))
		copy(b[headers:], payload[at:end])
		s.more = append(s.more, b)
	}
	return s.several(FragmentedV6)
}
