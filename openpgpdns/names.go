package openpgpdns

import (
	"strconv"
	"strings"
)

// Limits of RFC 1035 section 2.3.4, in octets.
const (
	maxLabel = 63
	maxName  = 255
)

// Method is one of the two places where a Web Key Directory may live
// (draft-koch-openpgp-webkey-service section 3.1).
type Method int

const (
	// Advanced serves https://openpgpkey.DOMAIN/.well-known/openpgpkey/DOMAIN/hu/HASH.
	// Clients ask here first.
	Advanced Method = iota
	// Direct serves https://DOMAIN/.well-known/openpgpkey/hu/HASH. Clients ask
	// here only if openpgpkey.DOMAIN has no address.
	Direct
)

// String returns "advanced" or "direct".
func (m Method) String() string {
	switch m {
	case Advanced:
		return "advanced"
	case Direct:
		return "direct"
	}
	return "Method(" + strconv.Itoa(int(m)) + ")"
}

// wkdHost returns the host that serves the directory of a domain.
func (m Method) wkdHost(domain string) string {
	if m == Direct {
		return domain
	}
	return "openpgpkey." + domain
}

// wkdPath returns the slash-separated path of a domain's directory on its
// host, without the leading slash.
func (m Method) wkdPath(domain string) string {
	if m == Direct {
		return wellKnown
	}
	return wellKnown + "/" + domain
}

const wellKnown = ".well-known/openpgpkey"

// WKDURL returns the URL under which clients look for a's keys, with the
// l parameter: the local part, percent-encoded. The host is the A-label form.
func (a Address) WKDURL(m Method) string {
	return "https://" + m.wkdHost(a.Domain) + "/" + m.wkdPath(a.Domain) + "/hu/" + a.WKDHash() + "?l=" + percentEncode(a.Local)
}

// percentEncode escapes all but the unreserved characters of RFC 3986 section
// 2.3, so that & # = + and % survive as part of the value.
func percentEncode(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if ldh(c) || c == '.' || c == '_' || c == '~' {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(digits[c>>4])
			b.WriteByte(digits[c&15])
		}
	}
	return b.String()
}

// DANEName returns the owner name of a's OPENPGPKEY record, absolute, with a
// final dot: the label of [Address.DANELabel], _openpgpkey, the domain
// (RFC 7929 section 3). The error wraps [ErrName] if the name would exceed
// 255 octets; the domain may take 186 of them on the wire.
func (a Address) DANEName() (string, error) {
	return ownerName(a, a.DANELabel()+"._openpgpkey.")
}

// PKAName returns the owner name of a's CERT IPGP (PKA) record: the WKD hash,
// _pka, the domain. The domain may take 217 octets on the wire.
func (a Address) PKAName() (string, error) {
	return ownerName(a, a.WKDHash()+"._pka.")
}

// CERTName returns the owner name of a's CERT PGP record: the address with
// '@' replaced by '.', each dot-part of the local part a label of its own, as
// GnuPG asks for it. The error wraps [ErrName] if a part is empty or longer
// than 63 octets, or the name exceeds 255 octets. Characters with a meaning in
// zone files are escaped, octets beyond ASCII too, as \DDD (RFC 1035 section
// 5.1); GnuPG asks for the latter as they are.
func (a Address) CERTName() (string, error) {
	var b strings.Builder
	for part := range strings.SplitSeq(a.Local, ".") {
		if len(part) == 0 || len(part) > maxLabel {
			return "", inputError(ErrName, a.String(), "a part of the local part is not 1 to 63 octets long, as a label must be")
		}
		for i := range len(part) {
			c := part[i]
			switch {
			case c <= ' ' || c >= 0x7f:
				b.WriteByte('\\')
				b.WriteByte('0' + c/100)
				b.WriteByte('0' + c/10%10)
				c = '0' + c%10
			case strings.IndexByte(`";\@()$`, c) >= 0:
				b.WriteByte('\\')
			}
			b.WriteByte(c)
		}
		b.WriteByte('.')
	}
	return ownerName(a, b.String())
}

func ownerName(a Address, prefix string) (string, error) {
	name := prefix + a.Domain + "."
	if a.Domain == "" || a.Local == "" {
		return "", inputError(ErrAddress, a.String(), "incomplete")
	}
	if _, err := packName(name); err != nil {
		return "", inputError(ErrName, a.String(), "owner name: "+err.Error())
	}
	return name, nil
}

type nameError string

func (e nameError) Error() string { return string(e) }

// packName converts an absolute name in presentation form to wire form,
// uncompressed (RFC 1035 sections 3.1 and 5.1).
func packName(name string) ([]byte, error) {
	if name == "." {
		return []byte{0}, nil
	}
	out := make([]byte, 1, len(name)+1)
	start := 0 // of the length octet of the label under way
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case c == '.':
			n := len(out) - start - 1
			if n == 0 {
				return nil, nameError("empty label")
			}
			out[start] = byte(n)
			start = len(out)
			out = append(out, 0)
			continue
		case c == '\\' && i+3 < len(name) && digit(name[i+1]) && digit(name[i+2]) && digit(name[i+3]):
			v := int(name[i+1]-'0')*100 + int(name[i+2]-'0')*10 + int(name[i+3]-'0')
			if v > 255 {
				return nil, nameError("bad escape")
			}
			c, i = byte(v), i+3
		case c == '\\' && i+1 < len(name):
			i++
			c = name[i]
		case c == '\\':
			return nil, nameError("bad escape")
		}
		out = append(out, c)
		if len(out)-start-1 > maxLabel {
			return nil, nameError("label longer than 63 octets")
		}
		if len(out) > maxName {
			return nil, nameError("longer than 255 octets")
		}
	}
	if start != len(out)-1 || len(out) == 1 {
		return nil, nameError("not absolute")
	}
	if len(out) > maxName {
		return nil, nameError("longer than 255 octets")
	}
	return out, nil
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
