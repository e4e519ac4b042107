package openpgpdns

import "time"

// Filter selects the packets of a certificate that are published. Packets are
// copied octet by octet, headers included, in their order; nothing is encoded
// anew. The zero value is a sensible publication: all self-signed user IDs
// with all their self-signatures, all subkeys; no certifications by others, no
// photos, no packets of unknown kind.
//
// Always kept: the primary key, its own direct-key signatures and revocations
// (of a version 6 key these hold its preferences and expiry), revocations by
// others if the key names a revoker. Never kept: trust, marker and padding
// packets, user IDs without a self-signature (anybody can add those), subkeys
// without a binding signature. A signature counts as issued by the primary key
// if it says so; [Cert.Verify] makes sure.
type Filter struct {
	// Address, unless zero, keeps only the user IDs that contain it, and no
	// user attributes, as those contain none.
	Address Address
	// ThirdParty keeps signatures by other keys.
	ThirdParty bool
	// UserAttributes keeps photos (user attribute packets).
	UserAttributes bool
	// UnknownPackets keeps packets with the non-critical tags 40 to 63.
	UnknownPackets bool
	// LatestSelfSigOnly keeps of the self-signatures on a user ID or
	// attribute only the newest; if that is a revocation, only the revocation.
	LatestSelfSigOnly bool
	// DropExpiredSubkeys drops subkeys that have expired, and all subkeys if
	// the primary key has, except those that are revoked.
	DropExpiredSubkeys bool
	// DropRevokedUserIDs drops user IDs and attributes whose newest
	// self-signature is a revocation.
	DropRevokedUserIDs bool
	// Now decides what has expired. The zero value means the time of the call.
	Now time.Time
}

// Minimal is the filter of gpg --export-options export-minimal: the newest
// self-signatures only, no expired subkeys, photos kept. With an Address set
// it is what gpg-wks-client publishes.
func Minimal() Filter {
	return Filter{UserAttributes: true, LatestSelfSigOnly: true, DropExpiredSubkeys: true}
}

// Everything is the filter that drops only what is never kept.
func Everything() Filter {
	return Filter{ThirdParty: true, UserAttributes: true, UnknownPackets: true}
}

// For returns f with the address a.
func (f Filter) For(a Address) Filter {
	f.Address = a
	return f
}

func (f *Filter) now() int64 {
	if f.Now.IsZero() {
		return time.Now().Unix()
	}
	return f.Now.Unix()
}

// Append appends the selected packets of c to dst. The error wraps
// [ErrNoUserID] if no user ID is left, in which case dst is returned as it
// was. Append does not allocate if dst has room for the result; no more than
// len(c.Bytes()) octets are added.
func (f Filter) Append(dst []byte, c *Cert) ([]byte, error) {
	w := copier{c: c, dst: dst}
	var now int64
	if f.LatestSelfSigOnly || f.DropExpiredSubkeys {
		now = f.now()
	}
	w.keep(0)
	end := c.group(0)
	thirdRevoker := f.ThirdParty
	for j := 1; j < end && !thirdRevoker; j++ {
		thirdRevoker = c.packets[j].counts() && c.packets[j].flags&namesRevoker != 0
	}
	for j := 1; j < end; j++ {
		p := &c.packets[j]
		if p.tag != tagSignature {
			if f.UnknownPackets && p.tag >= firstNonCritical {
				w.keep(j)
			}
		} else if f.keepSig(p) || thirdRevoker && p.sigType == sigKeyRevocation {
			w.keep(j)
		}
	}
	users := 0
	expired := false // the primary key, and subkeys with it
	if f.DropExpiredSubkeys {
		if c.Revoked() {
			f.DropExpiredSubkeys = false // they are all revoked with it
		} else {
			e := c.primaryExpiry(now)
			expired = e != 0 && e <= now
		}
	}
	for i := end; i < len(c.packets); i = end {
		end = c.group(i)
		switch c.packets[i].tag {
		case tagUserID:
			if !f.Address.IsZero() && !c.hasAddress(i, f.Address) {
				continue
			}
			if f.user(&w, i, end, now) {
				users++
			}
		case tagUserAttribute:
			if f.UserAttributes && f.Address.IsZero() {
				f.user(&w, i, end, now)
			}
		default:
			f.subkey(&w, i, end, now, expired)
		}
	}
	if users == 0 {
		e := &Error{Certificate: c.number, Fingerprint: c.Fingerprint(), Err: ErrNoUserID}
		if !f.Address.IsZero() {
			e.Input = f.Address.String()
		}
		return dst, e
	}
	return w.flush(), nil
}

// hasAddress reports whether a user ID has the address a.
func (c *Cert) hasAddress(i int, a Address) bool {
	local, ok := c.localIn(i, a.Domain)
	return ok && equalLower(local, a.Local)
}

func equalLower(raw []byte, low string) bool {
	if len(raw) != len(low) {
		return false
	}
	for i, b := range raw {
		if lower(b) != low[i] {
			return false
		}
	}
	return true
}

// keepSig decides on a signature that no rule about its component drops.
func (f *Filter) keepSig(p *packetRef) bool {
	if p.flags&badSelfSig != 0 {
		return false
	}
	return f.ThirdParty || p.flags&(selfIssued|unreadable) == selfIssued
}

// user copies a user ID or attribute with the signatures that f wants, and
// reports whether it did.
func (f *Filter) user(w *copier, i, end int, now int64) bool {
	s := w.c.certState(i, end)
	if s.sig < 0 || s.revoked && f.DropRevokedUserIDs {
		return false
	}
	w.keep(i)
	for j := i + 1; j < end; j++ {
		p := &w.c.packets[j]
		switch {
		case p.tag != tagSignature:
			if f.UnknownPackets && p.tag >= firstNonCritical {
				w.keep(j)
			}
		case j == s.sig:
			w.keep(j)
		case f.LatestSelfSigOnly && p.flags&selfIssued != 0:
			// Superseded, or of a kind that gpg does not know on a user ID.
		case f.keepSig(p):
			w.keep(j)
		}
	}
	return true
}

func (f *Filter) subkey(w *copier, i, end int, now int64, expired bool) {
	c := w.c
	s := c.subkeyState(i, end)
	if s.sig < 0 {
		return
	}
	if f.DropExpiredSubkeys && !s.revoked { // a revocation is worth spreading
		p := &c.packets[s.sig]
		if expired || p.keyExpires != 0 && int64(c.keyCreated(&c.packets[i]))+int64(p.keyExpires) <= now {
			return
		}
	}
	w.keep(i)
	for j := i + 1; j < end; j++ {
		p := &c.packets[j]
		if p.tag != tagSignature {
			if f.UnknownPackets && p.tag >= firstNonCritical {
				w.keep(j)
			}
		} else if f.keepSig(p) {
			w.keep(j)
		}
	}
}

// copier joins neighbouring packets into one copy.
type copier struct {
	c        *Cert
	dst      []byte
	from, to uint32
}

func (w *copier) keep(i int) {
	p := &w.c.packets[i]
	if p.start != w.to {
		w.flush()
		w.from = p.start
	}
	w.to = p.end
}

func (w *copier) flush() []byte {
	w.dst = append(w.dst, w.c.data[w.from:w.to]...)
	w.from = w.to
	return w.dst
}
