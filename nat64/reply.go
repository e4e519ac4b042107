package nat64

import "signalbox.example/nat64/internal/checksum"

// quotable returns the packet to quote in an error: for a super-packet its
// first segment, and always with a finished checksum, as the sender's or a
// later device's packet would have been.
func (s *Scratch) quotable(h *VirtioHdr, p []byte, l4 int, protocol uint8, v6, fragment bool) []byte {
	if h == nil {
		return p
	}
	if h.Flags&VirtioNeedsChecksum != 0 || h.GSOType != 0 {
		if o, ok := h.check(p, l4, protocol, v6, fragment); ok {
			if o.gso {
				p = h.segment(s.alloc(l4 + o.largest)[:0], p, l4, o, 0)
			} else if o.partial {
				h.complete(p, protocol)
			}
		}
	}
	*h = VirtioHdr{}
	return p
}

// mayReply applies the rate limit and counts.
func (t *Translator) mayReply(c *snapshot, s *Scratch) bool {
	if s.dry {
		return true
	}
	n := s.counters
	if !t.limit.allow(c.cfg.ErrorRate) {
		s.count(&n.suppressed)
		return false
	}
	s.count(&n.replies)
	return true
}

// refuse6 drops an IPv6 packet and answers with an ICMPv6 error, if errors
// are wanted and the packet may be answered with one (RFC 4443 section 2.4
// (e)). rest is the second word of the error's header.
func (t *Translator) refuse6(c *snapshot, s *Scratch, h *VirtioHdr, p []byte, x chain, icmpError bool, kind, code uint8, rest uint32, why Reason) outcome {
	src, dst := load6(p[8:]), load6(p[24:])
	later := x.flags&offsetMask != 0
	if icmpError || later && x.next == protoICMPv6 || c.cfg.NoErrors || !c.hasOwn6 ||
		src == (addr6{}) || src.multicast() || dst.multicast() || !t.mayReply(c, s) {
		return drop(why)
	}
	p = s.quotable(h, p, x.l4, x.next, true, x.fragment)
	p = p[:min(len(p), maxError6-header6-8)]
	b := s.alloc(header6 + 8 + len(p))
	m := b[header6:]
	m[0], m[1], m[2], m[3] = kind, code, 0, 0
	put32(m[4:], rest)
	copy(m[8:], p)
	put16(m[2:], ^checksum.Fold(pseudo(sumPair(c.own6, src), len(m), protoICMPv6)+uint64(checksum.Sum(m))))
	putHeader6(b, 0, len(m), protoICMPv6, ownTTL, c.own6, src)
	return s.made(Reply, why, b)
}

// refuse4 is the same for an IPv4 packet (RFC 1812 section 4.3.2).
func (t *Translator) refuse4(c *snapshot, s *Scratch, h *VirtioHdr, p []byte, ihl int, icmpError bool, kind, code uint8, rest uint32, why Reason) outcome {
	src, dst := be32(p[12:]), be32(p[16:])
	frag := be16(p[6:]) & (flagMF | offsetMask)
	if icmpError || frag&offsetMask != 0 || c.cfg.NoErrors || c.own4 == 0 ||
		neverSource(src) || neverSource(dst) || !t.mayReply(c, s) {
		return drop(why)
	}
	p = s.quotable(h, p, ihl, p[9], false, frag != 0)
	p = p[:min(len(p), min(maxError4, c.mtu4)-header4-8)]
	b := s.alloc(header4 + 8 + len(p))
	m := b[header4:]
	m[0], m[1], m[2], m[3] = kind, code, 0, 0
	put32(m[4:], rest)
	copy(m[8:], p)
	put16(m[2:], ^checksum.Sum(m))
	// TOS: internetwork control, as RFC 1812 section 4.3.2.5 has it.
	putHeader4(b, 0xc0, len(b), t.nextID(s, c.own4, src, protoICMP, 1), 0, ownTTL, protoICMP, c.own4, src)
	return s.made(Reply, why, b)
}

// echo6 answers an echo request to the translator's own address.
func (t *Translator) echo6(c *snapshot, s *Scratch, h *VirtioHdr, p []byte, x chain, src addr6) (outcome, bool) {
	m := p[x.l4:]
	if x.next != protoICMPv6 || len(m) < 8 || m[0] != 128 || x.segments != 0 || x.l4 != header6 ||
		src == (addr6{}) || src.multicast() ||
		checksum.Fold(pseudo(sumPair(src, c.own6), len(m), protoICMPv6)+uint64(checksum.Sum(m))) != 0xffff {
		return outcome{}, false
	}
	if !t.mayReply(c, s) {
		return drop(EchoAnswered), true
	}
	b := s.alloc(len(p))
	copy(b, p)
	b[7] = ownTTL
	c.own6.store(b[8:])
	src.store(b[24:])
	b[header6] = 129
	put16(b[header6+2:], adjust(be16(b[header6+2:]), 128<<8, 129<<8))
	if h != nil {
		*h = VirtioHdr{}
	}
	return s.made(Reply, EchoAnswered, b), true
}

// echo4 is the same for IPv4. Options are not sent back.
func (t *Translator) echo4(c *snapshot, s *Scratch, h *VirtioHdr, p []byte, ihl int) (outcome, bool) {
	m := p[ihl:]
	src := be32(p[12:])
	if p[9] != protoICMP || len(m) < 8 || m[0] != 8 || neverSource(src) || checksum.Sum(m) != 0xffff {
		return outcome{}, false
	}
	if !t.mayReply(c, s) {
		return drop(EchoAnswered), true
	}
	b := s.alloc(header4 + len(m))
	copy(b[header4:], m)
	b[header4] = 0
	put16(b[header4+2:], adjust(be16(m[2:]), 8<<8, 0))
	putHeader4(b, p[1], len(b), t.nextID(s, c.own4, src, protoICMP, 1), be16(p[6:])&flagDF, ownTTL, protoICMP, c.own4, src)
	if h != nil {
		*h = VirtioHdr{}
	}
	return s.made(Reply, EchoAnswered, b), true
}
