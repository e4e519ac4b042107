package nat64

import (
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"signalbox.example/nat64/internal/checksum"
)

// Protocol numbers (IANA).
const (
	protoHopByHop  = 0
	protoICMP      = 1
	protoIGMP      = 2
	protoTCP       = 6
	protoUDP       = 17
	protoDCCP      = 33
	protoRouting   = 43
	protoFragment  = 44
	protoAH        = 51
	protoICMPv6    = 58
	protoDstOpts   = 60
	protoUDPLite   = 136
	header4        = ipv4.HeaderLen
	header6        = ipv6.HeaderLen
	headerFragment = 8

	flagDF     = 0x4000
	flagMF     = 0x2000
	offsetMask = 0x1fff

	// IPv4 packets up to this size are sent without DF, so that an IPv6 host
	// that was told an MTU below 1280 gets through (RFC 7915 section 5.1).
	dfThreshold = 1260
	minMTU6     = 1280
	maxError4   = 576  // RFC 1812 section 4.3.2.3
	maxError6   = 1280 // RFC 4443 section 2.4 (c)
	ownTTL      = 64
)

// putHeader4 writes an IPv4 header without options. flags holds DF, MF and
// the offset.
func putHeader4(b []byte, tos uint8, length int, id, flags uint16, ttl, protocol uint8, src, dst uint32) {
	_ = b[19]
	w0 := 0x45000000 | uint32(tos)<<16 | uint32(uint16(length))
	w1 := uint32(id)<<16 | uint32(flags)
	w2 := uint32(ttl)<<24 | uint32(protocol)<<16
	sum := ^checksum.Fold(uint64(w0) + uint64(w1) + uint64(w2) + uint64(src) + uint64(dst))
	put64(b, uint64(w0)<<32|uint64(w1))
	put64(b[8:], uint64(w2|uint32(sum))<<32|uint64(src))
	put32(b[16:], dst)
}

// putHeader6 writes an IPv6 header with flow label 0. length is that of the
// payload.
func putHeader6(b []byte, class uint8, length int, next, limit uint8, src, dst addr6) {
	_ = b[39]
	put64(b, 6<<60|uint64(class)<<52|uint64(uint16(length))<<16|uint64(next)<<8|uint64(limit))
	src.store(b[8:])
	dst.store(b[24:])
}

// putFragment writes an IPv6 fragment header for the offset and MF of an
// IPv4 flags field. The identification has 16 bits in IPv4.
func putFragment(b []byte, next uint8, flags uint16, id uint32) {
	m := uint32(flags) & offsetMask << 3
	if flags&flagMF != 0 {
		m |= 1
	}
	put64(b, uint64(next)<<56|uint64(m)<<32|uint64(id))
}

// chain is what the headers of an IPv6 packet say up to its transport header.
type chain struct {
	l4       int    // where the transport header begins
	next     uint8  // its protocol
	fragment bool   // there is a fragment header
	after    bool   // an extension header follows the fragment header
	flags    uint16 // MF and offset as IPv4 has them
	id       uint16 // low half of the fragment identification
	segments int    // where "segments left" is not zero, 0: nowhere
}

// extension reports whether a protocol number is that of a header that a
// translator takes off.
func extension(next uint8) bool {
	return next < 64 && 1<<next&uint64(1<<protoHopByHop|1<<protoRouting|1<<protoFragment|1<<protoDstOpts) != 0
}

// walk follows the extension headers of an IPv6 packet (RFC 7915 section
// 5.1). It fails with Truncated or BadHeader.
func walk(p []byte) (c chain, failure Reason) {
	c.l4, c.next = header6, p[6]
	for extension(c.next) {
		if len(p) < c.l4+8 {
			return c, Truncated
		}
		h := p[c.l4:]
		if c.fragment {
			// Fragments but the first have only payload here, whatever the
			// number says: both cases are refused alike.
			c.after = true
			return c, 0
		}
		n := 8 + int(h[1])*8
		switch c.next {
		case protoFragment:
			n = headerFragment
			c.fragment = true
			o := be16(h[2:])
			c.flags = o >> 3
			if o&1 != 0 {
				c.flags |= flagMF
			}
			c.id = be16(h[6:])
		case protoRouting:
			if h[3] != 0 && c.segments == 0 {
				c.segments = c.l4 + 3
			}
		}
		if len(p) < c.l4+n {
			return c, Truncated
		}
		c.next = h[0]
		c.l4 += n
	}
	if c.fragment {
		c.after = c.next == protoAH
		if int(c.flags&offsetMask)*8+len(p)-c.l4 > 0xffff {
			return c, BadHeader
		}
	}
	return c, 0
}

// adjustable returns where the checksum is in a transport header whose
// pseudo-header the translation changes, and how long the header is.
func (c *snapshot) adjustable(protocol uint8) (field, header int) {
	switch protocol {
	case protoTCP:
		return 16, 20
	case protoUDP:
		return 6, 8
	case protoDCCP:
		if c.cfg.OtherChecksums {
			return 6, 12
		}
	case protoUDPLite:
		if c.cfg.OtherChecksums {
			return 6, 8
		}
	}
	return 0, 0
}

// sourceRouted reports whether the IPv4 options hold a source route that still
// has hops to go (RFC 7915 section 4.1). Options that cannot be read are
// ignored, like all others.
func sourceRouted(options []byte) bool {
	for i := 0; i < len(options); {
		switch t := options[i]; t {
		case 0:
			return false
		case 1:
			i++
		default:
			if i+2 > len(options) || options[i+1] < 2 || i+int(options[i+1]) > len(options) {
				return false
			}
			n := options[i+1]
			if (t == 131 || t == 137) && n >= 3 && options[i+2] <= n {
				return true
			}
			i += int(n)
		}
	}
	return false
}
