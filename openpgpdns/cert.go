package openpgpdns

import (
	"bytes"
	"encoding/binary"
	"iter"
	"time"
)

// Cert is one OpenPGP certificate (a transferable public key, RFC 9580 section
// 10.1) as the octets in which it was read, with an index of its packets.
// Certs come from a [Reader], [ReadCerts] or [ParseCert]. All methods but
// [Cert.Verify] only read and may be called by several goroutines at once.
type Cert struct {
	data    []byte
	packets []packetRef
	version uint8
	fprLen  uint8
	fpr     [32]byte
	number  int
	offset  int64
}

// Version is the version of the primary key packet, 4 or 6.
func (c *Cert) Version() int { return int(c.version) }

// Fingerprint is that of the primary key: 20 octets for version 4, 32 for
// version 6. The slice belongs to c and must not be changed.
func (c *Cert) Fingerprint() []byte { return c.fpr[:c.fprLen:c.fprLen] }

// Bytes are the octets of the certificate as it was read, every packet
// included. The slice belongs to c and must not be changed.
func (c *Cert) Bytes() []byte { return c.data[:len(c.data):len(c.data)] }

// Number is the place of the certificate in its ring, from 1.
func (c *Cert) Number() int { return c.number }

// Offset is where the certificate starts in its ring, in octets (of an armored
// ring: decoded octets).
func (c *Cert) Offset() int64 { return c.offset }

// Clone returns a copy that shares no memory with c. It makes a certificate
// from [Reader.Next] last beyond the next call.
func (c *Cert) Clone() *Cert {
	d := *c
	d.data = bytes.Clone(c.data)
	d.packets = append([]packetRef(nil), c.packets...)
	return &d
}

// Created is the creation time of the primary key.
func (c *Cert) Created() time.Time { return timeOf(int64(c.keyCreated(&c.packets[0]))) }

func (c *Cert) body(p *packetRef) []byte { return c.data[p.body:p.end] }

// keyCreated reads the creation time of a key packet: the four octets after
// the version.
func (c *Cert) keyCreated(p *packetRef) uint32 {
	b := c.body(p)
	if len(b) < 5 {
		return 0
	}
	return binary.BigEndian.Uint32(b[1:])
}

// keyID is the 64-bit key ID: the last octets of a version 4 fingerprint, the
// first of a version 6 one (RFC 9580 section 5.5.4).
func (c *Cert) keyID() uint64 {
	if c.version == 6 {
		return binary.BigEndian.Uint64(c.fpr[:])
	}
	return binary.BigEndian.Uint64(c.fpr[12:])
}

// group returns the index after the last packet that belongs to the component
// at i: its signatures and the packets that may lie between them.
func (c *Cert) group(i int) int {
	for i++; i < len(c.packets); i++ {
		switch t := c.packets[i].tag; {
		case t == tagUserID, t == tagUserAttribute, t == tagPublicSubkey:
			return i
		}
	}
	return i
}

// state is what the self-signatures on a user ID or attribute, or on a
// subkey, add up to.
type state struct {
	sig     int  // index of the newest self-signature that decides, -1: none
	revoked bool // that one is a revocation
}

// certState finds the newest self-certification or revocation of a user ID
// whose packets are [i, end). Among equally old ones the last wins, as in GnuPG.
func (c *Cert) certState(i, end int) state {
	s := state{sig: -1}
	for j := i + 1; j < end; j++ {
		p := &c.packets[j]
		if !p.counts() || !p.isCert() && p.sigType != sigCertRevocation {
			continue
		}
		if s.sig < 0 || p.created >= c.packets[s.sig].created {
			s.sig, s.revoked = j, p.sigType == sigCertRevocation
		}
	}
	return s
}

// subkeyState finds the newest binding signature of a subkey and whether any
// revocation stands against it.
func (c *Cert) subkeyState(i, end int) state {
	s := state{sig: -1}
	for j := i + 1; j < end; j++ {
		p := &c.packets[j]
		if !p.counts() {
			continue
		}
		switch p.sigType {
		case sigSubkeyRevoked:
			s.revoked = true
		case sigSubkeyBinding:
			if s.sig < 0 || p.created >= c.packets[s.sig].created {
				s.sig = j
			}
		}
	}
	return s
}

// primaryExpiry returns when the primary key expires, in seconds since 1970,
// 0 for never. The newest direct-key signature with a key expiration time
// decides, or else the newest user ID in force that has one; so GnuPG does it.
func (c *Cert) primaryExpiry(now int64) int64 {
	var expires, best uint32
	found := false
	i := 1
	for ; i < len(c.packets); i++ {
		p := &c.packets[i]
		if p.tag != tagSignature {
			if p.tag == tagUserID || p.tag == tagUserAttribute || p.tag == tagPublicSubkey {
				break
			}
			continue
		}
		if p.sigType == sigDirectKey && p.counts() && p.flags&hasKeyExpires != 0 && !p.expired(now) && (!found || p.created >= best) {
			found, best, expires = true, p.created, p.keyExpires
		}
	}
	if !found {
		for i < len(c.packets) && c.packets[i].tag != tagPublicSubkey {
			end := c.group(i)
			if s := c.certState(i, end); s.sig >= 0 && !s.revoked {
				p := &c.packets[s.sig]
				if p.keyExpires != 0 && !p.expired(now) && p.created > best {
					best, expires = p.created, p.keyExpires
				}
			}
			i = end
		}
	}
	if expires == 0 {
		return 0
	}
	return int64(c.keyCreated(&c.packets[0])) + int64(expires)
}

// Expires returns the time at which the primary key expires, as its
// self-signatures say at the time now. ok is false if it never does.
func (c *Cert) Expires(now time.Time) (t time.Time, ok bool) {
	e := c.primaryExpiry(now.Unix())
	if e == 0 {
		return time.Time{}, false
	}
	return timeOf(e), true
}

// Revoked reports whether the certificate carries a revocation of its primary
// key issued by itself.
func (c *Cert) Revoked() bool {
	for i := 1; i < len(c.packets); i++ {
		p := &c.packets[i]
		if p.tag == tagUserID || p.tag == tagUserAttribute || p.tag == tagPublicSubkey {
			break
		}
		if p.sigType == sigKeyRevocation && p.counts() {
			return true
		}
	}
	return false
}

// UserID is one user ID packet of a certificate and what its newest
// self-signature says. Bytes belongs to the Cert.
type UserID struct {
	// Bytes of the user ID, normally UTF-8.
	Bytes []byte
	// Address in it, if HasAddress.
	Address    Address
	HasAddress bool
	// SelfSigned: the primary key certified or revoked it. A user ID without
	// a self-signature may have been added by anybody.
	SelfSigned bool
	// Revoked: the newest self-signature is a revocation.
	Revoked bool
	// Expired: the newest self-signature has a lifetime that is over.
	Expired bool
	offset  uint32
}

// StrictDANELabel returns the RFC 7929 label of the user ID's local part as
// written, if it differs from the label that GnuPG looks up; see the function
// of the same name.
func (u UserID) StrictDANELabel() (label string, differs bool) {
	local, _, ok := mailbox(u.Bytes)
	if !ok || !u.HasAddress {
		return "", false
	}
	return strictLabel(local, u.Address)
}

func strictLabel(local []byte, a Address) (label string, differs bool) {
	if plainLocal(local) {
		return "", false
	}
	s, err := StrictDANELabel(string(local))
	if err != nil || s == a.DANELabel() {
		return "", false
	}
	return s, true
}

// plainLocal reports whether a local part is of lower-case ASCII atoms: then
// nothing about it can be mapped, unquoted or normalised.
func plainLocal(local []byte) bool {
	for _, c := range local {
		if c >= 0x80 || c != '.' && !atext(c) || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// UserIDs yields the user IDs in their order, as they stand at the time now.
func (c *Cert) UserIDs(now time.Time) iter.Seq[UserID] {
	return func(yield func(UserID) bool) {
		for i := 1; i < len(c.packets); {
			end := c.group(i)
			if c.packets[i].tag == tagUserID && !yield(c.userID(i, end, now.Unix())) {
				return
			}
			i = end
		}
	}
}

func (c *Cert) userID(i, end int, now int64) UserID {
	p := &c.packets[i]
	u := UserID{Bytes: c.data[p.body:p.end:p.end], offset: p.start}
	u.Address, u.HasAddress = AddressFromUserID(u.Bytes)
	if s := c.certState(i, end); s.sig >= 0 {
		u.SelfSigned, u.Revoked = true, s.revoked
		u.Expired = !s.revoked && c.packets[s.sig].expired(now)
	}
	return u
}

// Addresses yields the addresses of the self-signed user IDs, each once, in
// their order; those of revoked and expired user IDs too, as their keys are
// published for the sake of the revocation.
func (c *Cert) Addresses() iter.Seq[Address] {
	return func(yield func(Address) bool) {
		var room [4]Address
		seen := room[:0]
		for i := 1; i < len(c.packets); {
			end := c.group(i)
			if c.packets[i].tag == tagUserID {
				u := c.userID(i, end, 0)
				if u.HasAddress && u.SelfSigned && !contains(seen, u.Address) {
					if !yield(u.Address) {
						return
					}
					seen = append(seen, u.Address)
				}
			}
			i = end
		}
	}
}

func contains(s []Address, a Address) bool {
	for _, x := range s {
		if x == a {
			return true
		}
	}
	return false
}

func timeOf(sec int64) time.Time { return time.Unix(sec, 0).UTC() }
