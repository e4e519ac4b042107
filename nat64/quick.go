package nat64

import "signalbox.example/nat64/internal/checksum"

// Most packets are whole TCP segments and UDP datagrams with nothing odd about
// them. quick6 and quick4 translate those in one straight line; for anything
// else they return false and have changed nothing, and from6 and from4, which
// know all rules, take over. A test holds both ways against each other.

// quick6 is the straight line from IPv6. The snapshot must be direct.
func (t *Translator) quick6(c *snapshot, s *Scratch, buf []byte, off, n int) (outcome, bool) {
	p := buf[off : off+n]
	if n < header6+8 {
		return outcome{}, false
	}
	w := be64(p)
	total := header6 + int(w>>16&0xffff)
	protocol, limit := uint8(w>>8), uint8(w)
	field, least := header6+6, header6+8
	if protocol == protoTCP {
		field, least = header6+16, header6+20
	} else if protocol != protoUDP {
		return outcome{}, false
	}
	if total > n || total < least || total-header6+header4 > c.mtu4 || limit <= 1 {
		return outcome{}, false
	}
	dst6 := load6(p[24:])
	if !c.prefix.contains(dst6) {
		return outcome{}, false
	}
	dst4 := c.prefix.extract(dst6)
	if neverSource(dst4) || c.eam.covers(dst4) { // the latter may be a hairpin
		return outcome{}, false
	}
	src6 := load6(p[8:])
	src4, by := c.map6(src6)
	if !by.ok() || neverSource(src4) {
		return outcome{}, false
	}
	old := be16(p[field:])
	if old == 0 && protocol == protoUDP {
		return outcome{}, false
	}
	sum := adjust(old, sumPair(src6, dst6), uint64(src4)+uint64(dst4))
	if sum == 0 && protocol == protoUDP {
		sum = 0xffff
	}
	put16(p[field:], sum)
	length := total - header6 + header4
	var flags uint16
	if length > dfThreshold {
		flags = flagDF
	}
	tos := uint8(w >> 52)
	if c.cfg.ResetTOS {
		tos = 0
	}
	id := t.nextID(s, src4, dst4, protocol, 1)
	putHeader4(p[header6-header4:], tos, length, id, flags, limit-1, protocol, src4, dst4)
	return outcome{Forward, Translated64, off + header6 - header4, off + total}, true
}

// quick4 is the straight line from IPv4. Hairpinning must not be simple.
func (t *Translator) quick4(c *snapshot, s *Scratch, buf []byte, off, n int) (outcome, bool) {
	const longer = header6 - header4
	p := buf[off : off+n]
	if n < header4+8 || off < longer {
		return outcome{}, false
	}
	w0, w1, w2 := be32(p), be32(p[4:]), be32(p[8:])
	src4, dst4 := be32(p[12:]), be32(p[16:])
	total := int(w0 & 0xffff)
	protocol, limit := uint8(w2>>16), uint8(w2>>24)
	field, least := header4+6, header4+8
	if protocol == protoTCP {
		field, least = header4+16, header4+20
	} else if protocol != protoUDP {
		return outcome{}, false
	}
	most := c.lowest
	if w1&flagDF != 0 {
		most = c.mtu6
	} else if c.cfg.StrictFragmentHeader {
		return outcome{}, false
	}
	if w0>>24 != 0x45 || total > n || total < least || total+longer > most || limit <= 1 || w1&(flagMF|offsetMask) != 0 ||
		neverSource(src4) || neverSource(dst4) ||
		checksum.Fold(uint64(w0)+uint64(w1)+uint64(w2)+uint64(src4)+uint64(dst4)) != 0xffff {
		return outcome{}, false
	}
	old := be16(p[field:])
	if old == 0 && protocol == protoUDP {
		return outcome{}, false
	}
	dst6, by := c.map4(dst4)
	if !by.ok() || by == ByPrefix && c.own(dst4) {
		return outcome{}, false
	}
	src6, by := c.map4(src4)
	if !by.ok() {
		return outcome{}, false
	}
	sum := adjust(old, uint64(src4)+uint64(dst4), sumPair(src6, dst6))
	if sum == 0 && protocol == protoUDP {
		sum = 0xffff
	}
	put16(p[field:], sum)
	class := uint8(w0 >> 16)
	if c.cfg.ResetTOS {
		class = 0
	}
	putHeader6(buf[off-longer:], class, total-header4, protocol, limit-1, src6, dst6)
	return outcome{Forward, Translated46, off - longer, off + total}, true
}
