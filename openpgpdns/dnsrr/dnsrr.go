// Package dnsrr converts the records of openpgpdns to and from the resource
// records of github.com/miekg/dns, for programs that serve or edit zones with
// that library.
//
//	rr, err := dnsrr.New(record)   // *dns.OPENPGPKEY or *dns.CERT
//	record, err := dnsrr.Record(rr)
//
// # Units and byte order
//
// TTLs are in seconds. The octets of keys and RDATA are the same on both sides;
// only their container changes, base64 text in miekg/dns.
//
// # Errors
//
// Errors wrap the sentinels of openpgpdns.
//
// # Concurrency
//
// Functions only; they keep nothing.
//
// # Specifications
//
//   - RFC 4398, CERT: https://www.rfc-editor.org/rfc/rfc4398
//   - RFC 7929, OPENPGPKEY: https://www.rfc-editor.org/rfc/rfc7929
//   - RFC 3597, unknown types: https://www.rfc-editor.org/rfc/rfc3597
package dnsrr

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"

	"github.com/miekg/dns"

	"signalbox.example/openpgpdns"
)

// DefaultTTL, in seconds, is used for records that have none: miekg/dns knows
// no absent TTL.
const DefaultTTL = 3600

// New returns the record as *dns.OPENPGPKEY or *dns.CERT. Unlike the text
// parser of miekg/dns it refuses what could not be packed: see
// [openpgpdns.Record.Validate] for the errors.
func New(r openpgpdns.Record) (dns.RR, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	h := dns.RR_Header{Name: r.Name, Rrtype: r.Type, Class: dns.ClassINET, Ttl: DefaultTTL, Rdlength: uint16(len(r.Data))}
	if r.HasTTL {
		h.Ttl = r.TTL
	}
	if r.Type == openpgpdns.TypeOPENPGPKEY {
		return &dns.OPENPGPKEY{Hdr: h, PublicKey: base64.StdEncoding.EncodeToString(r.Data)}, nil
	}
	typ, tag, alg, data, _ := r.CERT()
	return &dns.CERT{Hdr: h, Type: typ, KeyTag: tag, Algorithm: alg, Certificate: base64.StdEncoding.EncodeToString(data)}, nil
}

// Record returns the record in rr: a *dns.OPENPGPKEY, *dns.CERT, or the generic
// *dns.RFC3597 of either type. The error wraps openpgpdns.ErrRecord for other
// records, other classes and bad base64, or is one of
// [openpgpdns.Record.Validate].
func Record(rr dns.RR) (openpgpdns.Record, error) {
	h := rr.Header()
	r := openpgpdns.Record{Name: dns.Fqdn(h.Name), TTL: h.Ttl, HasTTL: true, Type: h.Rrtype}
	var err error
	switch rr := rr.(type) {
	case *dns.OPENPGPKEY:
		r.Data, err = base64.StdEncoding.Strict().DecodeString(rr.PublicKey)
	case *dns.CERT:
		r.Data = []byte{byte(rr.Type >> 8), byte(rr.Type), byte(rr.KeyTag >> 8), byte(rr.KeyTag), rr.Algorithm}
		r.Data, err = base64.StdEncoding.Strict().AppendDecode(r.Data, []byte(rr.Certificate))
	case *dns.RFC3597:
		r.Data, err = hex.DecodeString(rr.Rdata)
	default:
		err = fmt.Errorf("a %T", rr)
	}
	if err == nil && h.Class != dns.ClassINET {
		err = fmt.Errorf("class %d", h.Class)
	}
	if err != nil {
		return openpgpdns.Record{}, &openpgpdns.Error{Err: openpgpdns.ErrRecord, Input: h.Name, Detail: err.Error()}
	}
	return r, r.Validate()
}
