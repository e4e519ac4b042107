package openpgpdns

import "encoding/binary"

// Packet tags of RFC 9580 section 5 that a certificate may hold.
const (
	tagSignature     = 2
	tagSecretKey     = 5
	tagPublicKey     = 6
	tagSecretSubkey  = 7
	tagMarker        = 10
	tagTrust         = 12
	tagUserID        = 13
	tagPublicSubkey  = 14
	tagUserAttribute = 17
	tagPadding       = 21

	firstNonCritical = 40 // tags from here on may be unknown (section 4.3)
)

// Signature types of RFC 9580 section 5.2.1.
const (
	sigGenericCert     = 0x10
	sigPositiveCert    = 0x13
	sigSubkeyBinding   = 0x18
	sigDirectKey       = 0x1f
	sigKeyRevocation   = 0x20
	sigSubkeyRevoked   = 0x28
	sigCertRevocation  = 0x30
	maxPacketHeaderLen = 6
)

// framing says how far a packet header could be read.
type framing int

const (
	frameOK            framing = iota
	frameShort                 // more octets are needed
	frameBad                   // not a packet
	framePartial               // new format, first of several partial bodies
	frameIndeterminate         // old format, runs to the end of the input
)

// header reads a packet header (RFC 9580 section 4.2). n is its length, body
// the length of the packet body or, for framePartial, of its first part.
func header(b []byte) (tag uint8, n int, body int64, f framing) {
	if len(b) == 0 {
		return 0, 0, 0, frameShort
	}
	c := b[0]
	if c < 0x80 {
		return 0, 0, 0, frameBad
	}
	if c&0x40 == 0 { // old format: the length type is in the low two bits
		tag = c >> 2 & 15
		if c&3 != 3 && len(b) < 2 {
			return tag, 0, 0, frameShort
		}
		switch c & 3 {
		case 0:
			return tag, 2, int64(b[1]), frameOK
		case 1:
			if len(b) < 3 {
				return tag, 0, 0, frameShort
			}
			return tag, 3, int64(binary.BigEndian.Uint16(b[1:])), frameOK
		case 2:
			if len(b) < 5 {
				return tag, 0, 0, frameShort
			}
			return tag, 5, int64(binary.BigEndian.Uint32(b[1:])), frameOK
		}
		return tag, 1, 0, frameIndeterminate
	}
	tag = c & 63
	n, body, f = newLength(b[1:])
	return tag, n + 1, body, f
}

// newLength reads a body length of the new format, or a part length.
func newLength(b []byte) (n int, body int64, f framing) {
	if len(b) == 0 {
		return 0, 0, frameShort
	}
	switch c := b[0]; {
	case c < 192:
		return 1, int64(c), frameOK
	case c < 224:
		if len(b) < 2 {
			return 0, 0, frameShort
		}
		return 2, int64(c-192)<<8 + int64(b[1]) + 192, frameOK
	case c == 255:
		if len(b) < 5 {
			return 0, 0, frameShort
		}
		return 5, int64(binary.BigEndian.Uint32(b[1:])), frameOK
	default:
		return 1, 1 << (c & 31), framePartial
	}
}

// packetRef is one packet of a certificate: where it lies, and what the
// signature says if it is one. Offsets are relative to the certificate.
type packetRef struct {
	start, body, end uint32
	created          uint32 // signature creation time, seconds since 1970
	sigExpires       uint32 // signature lifetime in seconds, 0: unlimited
	keyExpires       uint32 // key lifetime in seconds, if hasKeyExpires
	tag              uint8
	sigType          uint8
	flags            refFlags
}

type refFlags uint16

const (
	selfIssued    refFlags = 1 << iota // names the primary key as its issuer
	hasKeyExpires                      // carries a key expiration time
	signingKey                         // key flags allow signing
	unreadable                         // a signature of a version or form that is not known
	badSelfSig                         // Cert.Verify found that it does not verify
	hasIssuer                          // names some issuer
	namesRevoker                       // names another key that may revoke this one
	hasKeyFlags                        // carries key flags
	encryptionKey                      // key flags allow encryption
	weakHash                           // made with MD5 or SHA-1
)

// counts reports whether the packet is a self-signature that has not been
// found to be wrong.
func (p *packetRef) counts() bool {
	return p.tag == tagSignature && p.flags&(selfIssued|badSelfSig|unreadable) == selfIssued
}

func (p *packetRef) isCert() bool {
	return p.sigType >= sigGenericCert && p.sigType <= sigPositiveCert
}

// expired reports whether the signature's own lifetime has ended at the time
// now, in seconds since 1970.
func (p *packetRef) expired(now int64) bool {
	return p.sigExpires != 0 && int64(p.created)+int64(p.sigExpires) <= now
}

// Subpacket types of RFC 9580 section 5.2.3.7.
const (
	subCreated       = 2
	subSigExpires    = 3
	subKeyExpires    = 9
	subRevocationKey = 12
	subIssuerKeyID   = 16
	subKeyFlags      = 27
	subIssuerFpr     = 33
)

// readSignature fills p from the body of a signature packet (RFC 9580 section
// 5.2). fpr is the fingerprint of the primary key. Times and flags count only
// in the hashed area; an issuer may stand in either.
func (p *packetRef) readSignature(b, fpr []byte, keyID uint64) {
	p.flags |= unreadable
	if len(b) < 2 {
		return
	}
	var n int
	switch version := b[0]; version {
	case 3:
		// version, length 5, type, time, key ID
		if len(b) < 19 || b[1] != 5 {
			return
		}
		p.sigType = b[2]
		p.created = binary.BigEndian.Uint32(b[3:])
		p.flags |= hasIssuer
		if binary.BigEndian.Uint64(b[7:]) == keyID && len(fpr) == 20 {
			p.flags |= selfIssued
		}
		p.flags &^= unreadable
		return
	case 4:
		if len(b) < 8 {
			return
		}
		n = int(binary.BigEndian.Uint16(b[4:]))
		p.readAlgorithms(b)
		b = b[6:]
	case 6:
		if len(b) < 12 {
			return
		}
		n = int(binary.BigEndian.Uint32(b[4:]))
		p.readAlgorithms(b)
		b = b[8:]
		if n < 0 || n > len(b) || len(b)-n < 4 {
			return
		}
		m := int(binary.BigEndian.Uint32(b[n:]))
		if m < 0 || m > len(b)-n-4 {
			return
		}
		if p.readSubpackets(b[:n], true, fpr, keyID) && p.readSubpackets(b[n+4:n+4+m], false, fpr, keyID) {
			p.flags &^= unreadable
		}
		return
	default:
		return
	}
	if n > len(b)-2 {
		return
	}
	m := int(binary.BigEndian.Uint16(b[n:]))
	if m > len(b)-n-2 {
		return
	}
	if p.readSubpackets(b[:n], true, fpr, keyID) && p.readSubpackets(b[n+2:n+2+m], false, fpr, keyID) {
		p.flags &^= unreadable
	}
}

// readAlgorithms reads what versions 4 and 6 have in common: version, type,
// key algorithm, hash algorithm.
func (p *packetRef) readAlgorithms(b []byte) {
	p.sigType = b[1]
	if b[3] == 1 || b[3] == 2 {
		p.flags |= weakHash
	}
}

// subpacket splits the first subpacket off b: its type (bit 7, critical,
// removed), its data, and the rest.
func subpacket(b []byte) (typ uint8, data, rest []byte, ok bool) {
	if len(b) == 0 {
		return 0, nil, nil, false
	}
	n, h := int(b[0]), 1
	switch {
	case n < 192:
	case n < 255:
		if len(b) < 2 {
			return 0, nil, nil, false
		}
		n, h = (n-192)<<8+int(b[1])+192, 2
	default:
		if len(b) < 5 {
			return 0, nil, nil, false
		}
		l := binary.BigEndian.Uint32(b[1:])
		if uint64(l) > uint64(len(b)) {
			return 0, nil, nil, false
		}
		n, h = int(l), 5
	}
	if n == 0 || n > len(b)-h {
		return 0, nil, nil, false
	}
	return b[h] & 0x7f, b[h+1 : h+n], b[h+n:], true
}

func (p *packetRef) readSubpackets(b []byte, hashed bool, fpr []byte, keyID uint64) bool {
	for len(b) > 0 {
		typ, d, rest, ok := subpacket(b)
		if !ok {
			return false
		}
		b = rest
		switch typ {
		case subIssuerFpr:
			// A version octet, then the fingerprint. It outweighs a key ID.
			p.flags |= hasIssuer
			if len(d) == 1+len(fpr) && string(d[1:]) == string(fpr) {
				p.flags |= selfIssued
			} else {
				p.flags &^= selfIssued
			}
			keyID = 0
		case subIssuerKeyID:
			if len(d) == 8 && p.flags&hasIssuer == 0 {
				p.flags |= hasIssuer
				if keyID != 0 && binary.BigEndian.Uint64(d) == keyID {
					p.flags |= selfIssued
				}
			}
		case subCreated:
			if hashed && len(d) == 4 {
				p.created = binary.BigEndian.Uint32(d)
			}
		case subSigExpires:
			if hashed && len(d) == 4 {
				p.sigExpires = binary.BigEndian.Uint32(d)
			}
		case subKeyExpires:
			if hashed && len(d) == 4 {
				p.keyExpires = binary.BigEndian.Uint32(d)
				p.flags |= hasKeyExpires
			}
		case subRevocationKey:
			if hashed {
				p.flags |= namesRevoker
			}
		case subKeyFlags:
			if hashed {
				p.flags |= hasKeyFlags
			}
			if hashed && len(d) > 0 && d[0]&2 != 0 {
				p.flags |= signingKey
			}
			if hashed && len(d) > 0 && d[0]&12 != 0 {
				p.flags |= encryptionKey
			}
		}
	}
	return true
}
