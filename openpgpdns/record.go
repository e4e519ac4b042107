package openpgpdns

import (
	"encoding/binary"
	"strconv"
)

// DNS record types (RFC 4398, RFC 7929).
const (
	TypeCERT       uint16 = 37
	TypeOPENPGPKEY uint16 = 61
)

// Certificate types of CERT records (RFC 4398 section 2.1).
const (
	CertPGP  uint16 = 3
	CertIPGP uint16 = 6
)

// MaxMessage is the size of the largest DNS message, in octets, without the
// length prefix of TCP (RFC 1035 section 4.2.2).
const MaxMessage = 65535

// Record is a DNS resource record of class IN that carries an OpenPGP key or
// points to one.
type Record struct {
	// Name is the owner name: absolute, in presentation form, with final dot.
	Name string
	// TTL in seconds, if HasTTL. Without one the zone's $TTL applies.
	TTL    uint32
	HasTTL bool
	// Type is TypeOPENPGPKEY or TypeCERT.
	Type uint16
	// Data is the RDATA in wire form.
	Data []byte
}

// OPENPGPKEY makes the DANE record of an address (RFC 7929): the certificates
// with the user IDs of that address, filtered by f, one after the other in one
// record, because GnuPG looks only at the first record of a name.
//
// The error wraps [ErrNoUserID] if a certificate has no such user ID,
// [ErrMixedVersions] for keys of versions 4 and 6 together (GnuPG 2.2 imports
// neither of them then), [ErrName] if the owner name is too long, [ErrTooLarge]
// if no DNS answer could hold the record, [ErrNotFound] if certs is empty.
func OPENPGPKEY(a Address, f Filter, certs ...*Cert) (Record, error) {
	name, err := a.DANEName()
	if err != nil {
		return Record{}, err
	}
	data, err := appendKeys(nil, f.For(a), certs)
	if err != nil {
		return Record{}, err
	}
	return checked(Record{Name: name, Type: TypeOPENPGPKEY, Data: data})
}

// CERTPGP makes the CERT record with certificate type PGP of an address (RFC
// 4398 section 2.1): content and errors as for [OPENPGPKEY]. Unlike there,
// GnuPG does not filter what it finds here.
func CERTPGP(a Address, f Filter, certs ...*Cert) (Record, error) {
	name, err := a.CERTName()
	if err != nil {
		return Record{}, err
	}
	data, err := appendKeys(certHeader(CertPGP), f.For(a), certs)
	if err != nil {
		return Record{}, err
	}
	return checked(Record{Name: name, Type: TypeCERT, Data: data})
}

// CERTIPGP makes the CERT record with certificate type IPGP of an address,
// under the owner name that GnuPG's PKA used: the fingerprint, 20 or 32 octets,
// and the URL of the key or "" (RFC 4398 section 2.1). A fingerprint of another
// length, and a URL that is not printable ASCII, give [ErrRecord]. GnuPG 2.1 and
// 2.2 fetch the key from the URL; 2.3 and later know no PKA.
func CERTIPGP(a Address, fingerprint []byte, url string) (Record, error) {
	name, err := a.PKAName()
	if err != nil {
		return Record{}, err
	}
	if n := len(fingerprint); n != 20 && n != 32 {
		return Record{}, inputError(ErrRecord, a.String(), "a fingerprint has 20 or 32 octets, not "+strconv.Itoa(n))
	}
	for i := range len(url) {
		if url[i] <= ' ' || url[i] >= 0x7f {
			return Record{}, inputError(ErrRecord, url, "a URL is printable ASCII")
		}
	}
	data := append(certHeader(CertIPGP), byte(len(fingerprint)))
	data = append(append(data, fingerprint...), url...)
	return checked(Record{Name: name, Type: TypeCERT, Data: data})
}

// certHeader is the start of CERT RDATA; key tag and algorithm are 0, unused.
func certHeader(typ uint16) []byte { return []byte{byte(typ >> 8), byte(typ), 0, 0, 0} }

// appendKeys joins filtered certificates, each fingerprint and content once.
func appendKeys(dst []byte, f Filter, certs []*Cert) ([]byte, error) {
	if len(certs) == 0 {
		return nil, inputError(ErrNotFound, f.Address.String(), "no certificate given")
	}
	var parts []string
next:
	for _, c := range certs {
		if c.version != certs[0].version {
			return nil, inputError(ErrMixedVersions, f.Address.String(), "")
		}
		n := len(dst)
		var err error
		if dst, err = f.Append(dst, c); err != nil {
			return nil, err
		}
		for _, p := range parts {
			if p == string(dst[n:]) {
				dst = dst[:n]
				continue next
			}
		}
		parts = append(parts, string(dst[n:]))
	}
	return dst, nil
}

func checked(r Record) (Record, error) {
	if len(r.Data) > 0xffff || r.MessageSize(false) > MaxMessage {
		return Record{}, inputError(ErrTooLarge, r.Name, "an answer of "+strconv.Itoa(r.MessageSize(false))+" octets exceeds 65535")
	}
	return r, nil
}

// MessageSize is the size in octets of the smallest DNS answer with the record:
// header, question, the record under a compressed name, and EDNS. With dnssec
// an RSA-2048 signature of a zone at the shortest sensible cut is added, the
// largest that is common. Servers may add authority and additional records.
func (r Record) MessageSize(dnssec bool) int {
	qname := len(r.Name) + 1
	if w, err := packName(r.Name); err == nil {
		qname = len(w)
	}
	n := 12 + qname + 4 + 2 + 10 + len(r.Data) + 11
	if dnssec {
		// An RRSIG (RFC 4034 section 3.1) with an uncompressed signer's name.
		n += 2 + 10 + 18 + qname + 256
	}
	return n
}

// CERT splits the RDATA of a CERT record. ok is false for other types and for
// RDATA that is too short. data belongs to r.
func (r Record) CERT() (typ, keyTag uint16, algorithm uint8, data []byte, ok bool) {
	if r.Type != TypeCERT || len(r.Data) < 6 {
		return 0, 0, 0, nil, false
	}
	return binary.BigEndian.Uint16(r.Data), binary.BigEndian.Uint16(r.Data[2:]), r.Data[4], r.Data[5:], true
}

// IPGP returns the fingerprint and the URL of a CERT record of type IPGP;
// either may be empty. fingerprint belongs to r.
func (r Record) IPGP() (fingerprint []byte, url string, ok bool) {
	typ, _, _, d, ok := r.CERT()
	if !ok || typ != CertIPGP || int(d[0]) > len(d)-1 {
		return nil, "", false
	}
	return d[1 : 1+d[0]], string(d[1+d[0]:]), true
}

// Keys returns the octets of the OpenPGP keys in an OPENPGPKEY or CERT PGP
// record. They belong to r.
func (r Record) Keys() (keys []byte, ok bool) {
	if r.Type == TypeOPENPGPKEY {
		return r.Data, len(r.Data) > 0
	}
	typ, _, _, d, ok := r.CERT()
	return d, ok && typ == CertPGP
}

// Validate checks the name, the type and the form of the RDATA. It does not
// look into the keys. The error wraps [ErrName], [ErrRecord] or [ErrTooLarge].
func (r Record) Validate() error {
	if _, err := packName(r.Name); err != nil {
		return inputError(ErrName, r.Name, err.Error())
	}
	switch r.Type {
	case TypeOPENPGPKEY:
		if len(r.Data) == 0 {
			return inputError(ErrRecord, r.Name, "empty OPENPGPKEY")
		}
	case TypeCERT:
		typ, _, _, d, ok := r.CERT()
		if !ok {
			return inputError(ErrRecord, r.Name, "CERT without data")
		}
		if typ == CertIPGP && int(d[0]) > len(d)-1 {
			return inputError(ErrRecord, r.Name, "CERT IPGP: fingerprint length beyond the data")
		}
	default:
		return inputError(ErrRecord, r.Name, "type "+strconv.Itoa(int(r.Type)))
	}
	_, err := checked(r)
	return err
}

// Warning is a reason why some software may not handle a record.
type Warning struct {
	// Software that is concerned, such as "PowerDNS" or "ldns"; "DNS" for all.
	Software string
	// Text says what happens.
	Text string
}

// Limits found by experiment with the releases in Debian 12.
const (
	ednsSize     = 1232  // what resolvers ask for since DNS flag day 2020
	ldnsText     = 65520 // characters of RDATA text, white space included, that ldns 1.8 reads
	gpgIPGPLimit = 1023  // octets from which on gpg ignores an IPGP record
)

// Warnings lists what software will not accept or handle well about the record
// in the given text form and line width (see [Record.AppendText]). A record
// without warnings loads in BIND, Knot, NSD, PowerDNS and ldns.
func (r Record) Warnings(f Form, width int) []Warning {
	var ws []Warning
	warn := func(software, text string) { ws = append(ws, Warning{software, text}) }
	if n := r.MessageSize(false); n > ednsSize {
		warn("DNS", "an answer takes "+strconv.Itoa(n)+" octets: clients must ask again over TCP")
	}
	if n := r.MessageSize(true); n > MaxMessage {
		warn("DNS", "with a DNSSEC signature the answer may exceed 65535 octets")
	}
	digits := len(r.Data) * 2
	if f == Portable || f == Mnemonic {
		digits = (len(r.Data) + 2) / 3 * 4
	}
	if w := lineWidth(width); w > 0 {
		digits += digits / w * len("\n\t")
	}
	if digits > ldnsText {
		warn("ldns", "ldns 1.8 cannot read so much text in one record")
	}
	switch {
	case f == Generic || f == GPG:
		warn("PowerDNS", "the BIND back end of PowerDNS 4.7 answers SERVFAIL for the generic form of a type it knows")
	case f == Mnemonic && r.Type == TypeCERT:
		warn("PowerDNS", "the BIND back end of PowerDNS 4.7 answers SERVFAIL for certificate types by name")
	}
	if escapedOctets(r.Name) {
		warn("PowerDNS", "PowerDNS 4.7 answers SERVFAIL for owner names with octets beyond ASCII")
	}
	if typ, _, _, d, ok := r.CERT(); ok && typ == CertIPGP {
		if len(d) >= gpgIPGPLimit {
			warn("GnuPG", "gpg ignores an IPGP record of 1023 octets or more")
		}
		if d[0] == 32 {
			warn("GnuPG", "gpg 2.2 knows no version 6 fingerprints")
		}
	}
	return ws
}

// escapedOctets reports whether a name contains a \DDD escape.
func escapedOctets(name string) bool {
	for i := 0; i+1 < len(name); i++ {
		if name[i] == '\\' {
			if digit(name[i+1]) {
				return true
			}
			i++
		}
	}
	return false
}
