package openpgpdns

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// Address is a mail address as OpenPGP clients look it up. It is comparable;
// two addresses that differ only in the case of ASCII letters are equal. The
// zero value is no address.
type Address struct {
	// Local part: octets as in the user ID, A-Z mapped to a-z and nothing
	// else (no Unicode case mapping, no normalisation). Usually UTF-8.
	Local string
	// Domain in lower case, internationalised names as A-labels, no final dot.
	Domain string
}

// String returns local@domain.
func (a Address) String() string { return a.Local + "@" + a.Domain }

// IsZero reports whether a is the zero value.
func (a Address) IsZero() bool { return a == Address{} }

// ParseAddress reads an address as a user types it: local@domain, or a whole
// user ID with the address between < and >. The rules are those of
// [AddressFromUserID]. The error wraps [ErrAddress].
func ParseAddress(s string) (Address, error) {
	a, ok := AddressFromUserID([]byte(s))
	if !ok {
		return Address{}, inputError(ErrAddress, s, "")
	}
	return a, nil
}

// AddressFromUserID extracts the mail address of a user ID the way GnuPG does:
// the text between the first '<' and the next '>', or else the whole user ID
// if it is an address by stricter rules. Display names are free text; they
// need not follow RFC 5322. The domain must be one that DNS can hold; an
// internationalised domain is converted to A-labels (RFC 5891).
func AddressFromUserID(uid []byte) (Address, bool) {
	local, domain, ok := mailbox(uid)
	if !ok {
		return Address{}, false
	}
	d, err := DomainToASCII(string(domain))
	if err != nil {
		return Address{}, false
	}
	return Address{Local: lowerASCII(local), Domain: d}, true
}

// mailbox finds the raw local part and domain of a user ID.
func mailbox(uid []byte) (local, domain []byte, ok bool) {
	box, bare := uid, true
	if i := bytes.IndexByte(uid, '<'); i >= 0 {
		box, bare = uid[i+1:], false
		j := bytes.IndexByte(box, '>')
		if j < 0 {
			return nil, nil, false
		}
		box = box[:j]
	}
	// One '@', neither first nor last; no control character or space; behind the
	// '@' no two dots in a row, and none at the end.
	at, dot := -1, false
	for i, c := range box {
		switch {
		case c <= ' ' || c == 0x7f:
			return nil, nil, false
		case c == '@':
			if at >= 0 || i == 0 {
				return nil, nil, false
			}
			at, dot = i, false
		case c == '.':
			if dot && at >= 0 {
				return nil, nil, false
			}
			dot = true
		default:
			dot = false
		}
	}
	if at < 0 || at == len(box)-1 || dot {
		return nil, nil, false
	}
	local, domain = box[:at], box[at+1:]
	if bare {
		if bytes.Contains(local, dotdot) {
			return nil, nil, false
		}
		for _, c := range local {
			if c < 0x80 && !atext(c) && c != '.' {
				return nil, nil, false
			}
		}
		for _, c := range domain {
			if c < 0x80 && !ldh(c) && c != '.' && c != '_' {
				return nil, nil, false
			}
		}
	}
	return local, domain, true
}

var dotdot = []byte("..")

// atext reports whether c is an atom character of RFC 5322 section 3.2.3.
func atext(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.IndexByte("!#$%&'*+-/=?^_`{|}~", c) >= 0
}

// ldh reports whether c is a letter, digit or hyphen.
func ldh(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}

func lowerASCII(s []byte) string {
	for i, c := range s {
		if 'A' <= c && c <= 'Z' {
			b := bytes.Clone(s)
			for ; i < len(b); i++ {
				b[i] = lower(b[i])
			}
			return string(b)
		}
	}
	return string(s)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// DomainToASCII returns a domain in the form used in names and URLs: lower
// case, internationalised labels as A-labels, no final dot. It checks the
// limits of RFC 1035 section 2.3.4 (63 octets a label, 255 a name) and that
// ASCII labels consist of letters, digits, hyphens and underscores. The error
// wraps [ErrName].
func DomainToASCII(domain string) (string, error) {
	d := strings.TrimSuffix(domain, ".")
	if isASCII(d) {
		d = strings.ToLower(d) // returns d itself if there is nothing to do
	} else {
		a, err := idna.Lookup.ToASCII(d)
		if err != nil {
			return "", inputError(ErrName, domain, err.Error())
		}
		d = a
	}
	if d == "" {
		return "", inputError(ErrName, domain, "empty")
	}
	if len(d) > maxName-2 {
		return "", inputError(ErrName, domain, "longer than 255 octets")
	}
	start := 0
	for i := 0; i <= len(d); i++ {
		if i < len(d) && d[i] != '.' {
			if !ldh(d[i]) && d[i] != '_' {
				return "", inputError(ErrName, domain, "a label may hold letters, digits and hyphens")
			}
			continue
		}
		if n := i - start; n == 0 || n > maxLabel {
			return "", inputError(ErrName, domain, "a label has 1 to 63 octets")
		}
		start = i + 1
	}
	return d, nil
}

func isASCII[S string | []byte](s S) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

const zBase32Alphabet = "ybndrfg8ejkmcpqxot1uwisza345h769"

// zBase32 is the encoding of RFC 6189 section 5.1.6. 160 bits make exactly 32
// characters.
var zBase32 = base32.NewEncoding(zBase32Alphabet).WithPadding(base32.NoPadding)

// AppendWKDHash appends the 32 characters under which WKD files a local part:
// z-base-32 of the SHA-1 of its octets with A-Z mapped to a-z
// (draft-koch-openpgp-webkey-service section 3.1). It does not allocate if
// dst has room and local has no more than 64 octets (the limit of RFC 5321).
func AppendWKDHash(dst, local []byte) []byte {
	var room [64]byte
	sum := sha1.Sum(appendLower(room[:0], local))
	var out [32]byte
	zBase32.Encode(out[:], sum[:])
	return append(dst, out[:]...)
}

// AppendDANELabel appends the 56 hexadecimal digits under which GnuPG looks
// up OPENPGPKEY records: the first 28 octets of the SHA2-256 of the local part
// with A-Z mapped to a-z (RFC 7929 section 3, with GnuPG's mapping). It does
// not allocate under the conditions of [AppendWKDHash].
func AppendDANELabel(dst, local []byte) []byte {
	var room [64]byte
	sum := sha256.Sum256(appendLower(room[:0], local))
	return hex.AppendEncode(dst, sum[:28])
}

func appendLower(dst, s []byte) []byte {
	for _, c := range s {
		dst = append(dst, lower(c))
	}
	return dst
}

// WKDHash returns the name of a's file in a WKD; see [AppendWKDHash].
func (a Address) WKDHash() string { return string(AppendWKDHash(nil, []byte(a.Local))) }

// DANELabel returns the first label of a's OPENPGPKEY owner name as GnuPG asks
// for it; see [AppendDANELabel] and [StrictDANELabel].
func (a Address) DANELabel() string { return string(AppendDANELabel(nil, []byte(a.Local))) }

// StrictDANELabel returns the label for a local part in the form in which it
// was written, by the letter of RFC 7929 section 3: comments and white space
// around dots removed, quotes and quoting removed, Unicode normalisation form
// C, case kept. GnuPG maps A-Z to lower case instead and does not normalise;
// for a local part in lower-case ASCII both labels are the same. The error
// wraps [ErrAddress].
func StrictDANELabel(local string) (string, error) {
	if !utf8.ValidString(local) {
		return "", inputError(ErrAddress, local, "not UTF-8")
	}
	plain, ok := unquoteLocal(local)
	if !ok {
		return "", inputError(ErrAddress, local, "bad quoting")
	}
	sum := sha256.Sum256([]byte(norm.NFC.String(plain)))
	return hex.EncodeToString(sum[:28]), nil
}

// unquoteLocal removes CFWS, quotes and backslashes of a local part (RFC 5322
// section 3.4.1 with the obsolete forms of section 4.4).
func unquoteLocal(s string) (string, bool) {
	var b strings.Builder
	quoted, comment := false, 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && (quoted || comment > 0):
			if i++; i == len(s) {
				return "", false
			}
			if quoted {
				b.WriteByte(s[i])
			}
		case comment > 0:
			switch c {
			case '(':
				comment++
			case ')':
				comment--
			}
		case c == '"':
			quoted = !quoted
		case quoted:
			b.WriteByte(c)
		case c == '(':
			comment++
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			// Folding white space: not part of the local part.
		case c < 0x80 && c != '.' && !atext(c):
			return "", false
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), !quoted && comment == 0 && b.Len() > 0
}
