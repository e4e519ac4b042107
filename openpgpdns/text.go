package openpgpdns

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
)

// Form is a way to write a record in a zone file.
type Form int

const (
	// Portable is the form that BIND, Knot, NSD, PowerDNS and ldns all read:
	// OPENPGPKEY with base64 data, CERT with numbers and base64 data.
	Portable Form = iota
	// Mnemonic names the certificate type: CERT PGP, CERT IPGP (RFC 4398
	// section 2.2). PowerDNS's BIND back end refuses it.
	Mnemonic
	// Generic is the form for servers that do not know the type: TYPE61 \#
	// (RFC 3597 section 5). Servers that know the type may refuse it.
	Generic
	// GPG is the generic form laid out as gpg 2.2 --export-options export-dane
	// and export-pka print it, with a $ORIGIN line before each record.
	GPG
)

// String returns the name that [ParseForm] reads.
func (f Form) String() string {
	switch f {
	case Portable:
		return "portable"
	case Mnemonic:
		return "mnemonic"
	case Generic:
		return "generic"
	case GPG:
		return "gpg"
	}
	return "Form(" + strconv.Itoa(int(f)) + ")"
}

// ParseForm reads portable, mnemonic, generic or gpg. The error wraps [ErrRecord].
func ParseForm(s string) (Form, error) {
	for f := Portable; f <= GPG; f++ {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, inputError(ErrRecord, s, "no form; there are portable, mnemonic, generic, gpg")
}

func lineWidth(width int) int {
	if width == 0 {
		return 64
	}
	return width
}

// AppendText appends the record as text of a zone file, with a final newline.
// Data longer than width digits is wrapped in lines of that many digits, in
// parentheses; width 0 means 64, a negative width one line without them. The
// GPG form has a fixed layout and, like gpg, no TTL.
func (r Record) AppendText(dst []byte, f Form, width int) []byte {
	if f == GPG {
		label, origin := cutLabel(r.Name)
		return appendGPG(dst, label, origin, r.Type, r.Data)
	}
	dst = append(dst, r.Name...)
	if r.HasTTL {
		dst = append(dst, ' ')
		dst = strconv.AppendUint(dst, uint64(r.TTL), 10)
	}
	dst = append(dst, " IN "...)
	data := r.Data
	typ, keyTag, alg, rest, isCERT := r.CERT()
	switch {
	case f == Generic || !isCERT && r.Type != TypeOPENPGPKEY:
		dst = append(dst, "TYPE"...)
		dst = strconv.AppendUint(dst, uint64(r.Type), 10)
		dst = append(dst, ` \# `...)
		dst = strconv.AppendInt(dst, int64(len(data)), 10)
		return appendWrapped(dst, data, lineWidth(width), true)
	case isCERT:
		dst = append(dst, "CERT "...)
		name := ""
		if f == Mnemonic {
			name = certTypeName(typ)
		}
		if name != "" {
			dst = append(dst, name...)
		} else {
			dst = strconv.AppendUint(dst, uint64(typ), 10)
		}
		dst = append(dst, ' ')
		dst = strconv.AppendUint(dst, uint64(keyTag), 10)
		dst = append(dst, ' ')
		dst = strconv.AppendUint(dst, uint64(alg), 10)
		data = rest
	default:
		dst = append(dst, "OPENPGPKEY"...)
	}
	return appendWrapped(dst, data, lineWidth(width), false)
}

// appendWrapped writes data in hexadecimal or base64, and the newline.
func appendWrapped(dst, data []byte, width int, hexadecimal bool) []byte {
	digits := base64.StdEncoding.EncodedLen(len(data))
	if hexadecimal {
		digits = hex.EncodedLen(len(data))
	}
	if width <= 0 || digits <= width {
		dst = append(dst, ' ')
		if hexadecimal {
			dst = appendHex(dst, data)
		} else {
			dst = base64.StdEncoding.AppendEncode(dst, data)
		}
		return append(dst, '\n')
	}
	dst = append(dst, " ("...)
	// Lines hold whole groups of digits.
	step := max(width/4*3, 3)
	if hexadecimal {
		step = max(width/2, 1)
	}
	for len(data) > 0 {
		n := min(step, len(data))
		dst = append(dst, "\n\t"...)
		if hexadecimal {
			dst = appendHex(dst, data[:n])
		} else {
			dst = base64.StdEncoding.AppendEncode(dst, data[:n])
		}
		data = data[n:]
	}
	return append(dst, " )\n"...)
}

// appendGPG writes a record in gpg's layout.
func appendGPG(dst []byte, label, origin string, typ uint16, data []byte) []byte {
	dst = append(dst, "$ORIGIN "...)
	dst = append(dst, origin...)
	dst = append(dst, '\n')
	dst = append(dst, label...)
	return appendGPGData(dst, typ, data)
}

// appendGPGData writes what follows the label.
func appendGPGData(dst []byte, typ uint16, data []byte) []byte {
	dst = append(dst, " TYPE"...)
	dst = strconv.AppendUint(dst, uint64(typ), 10)
	dst = append(dst, ` \# `...)
	dst = strconv.AppendInt(dst, int64(len(data)), 10)
	if typ == TypeCERT && len(data) > 6 && data[0] == 0 && data[1] == byte(CertIPGP) {
		// 0006 0000 00 14 FINGERPRINT
		for _, cut := range [][2]int{{0, 2}, {2, 4}, {4, 5}, {5, 6}, {6, len(data)}} {
			dst = append(dst, ' ')
			dst = appendHEX(dst, data[cut[0]:cut[1]])
		}
		return append(dst, "\n\n"...)
	}
	dst = append(dst, " (\n"...)
	dst = slices.Grow(dst, len(data)*2+len(data)/16+16)
	for more := len(data) > 0; more; {
		n := min(32, len(data))
		dst = append(dst, '\t')
		dst = appendHex(dst, data[:n])
		dst = append(dst, '\n')
		data = data[n:]
		more = n == 32 // gpg begins a line after each full one, be it empty
	}
	return append(dst, "\t)\n\n"...)
}

// appendHex writes hexadecimal digits in lower case, like hex.AppendEncode, but
// eight digits at a time: records in generic form are little else.
func appendHex(dst, b []byte) []byte {
	for len(b) >= 4 {
		// One nibble to each octet of v, in order.
		v := uint64(binary.BigEndian.Uint32(b))
		v = (v | v<<16) & 0x0000ffff0000ffff
		v = (v | v<<8) & 0x00ff00ff00ff00ff
		v = (v | v<<4) & 0x0f0f0f0f0f0f0f0f
		// Those of ten and more become 16 and more by adding 6: their letters
		// lie 39 behind where the digits would go on.
		letters := (v + 0x0606060606060606) >> 4 & 0x0101010101010101
		dst = binary.BigEndian.AppendUint64(dst, v+0x3030303030303030+letters*('a'-'0'-10))
		b = b[4:]
	}
	return hex.AppendEncode(dst, b)
}

// appendHEX writes hexadecimal digits in upper case.
func appendHEX(dst, b []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range b {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

// cutLabel splits the first label off an absolute name, for a line relative to
// the rest.
func cutLabel(name string) (label, rest string) {
	for i := 0; i < len(name)-1; i++ {
		if name[i] == '\\' {
			i++
		} else if name[i] == '.' {
			return name[:i], name[i+1:]
		}
	}
	return name, "."
}

// AppendExportDANE appends what gpg 2.2 --export-options
// export-minimal,export-dane prints for a certificate: for each user ID with an
// address that is neither revoked nor expired, the whole certificate under f
// (all user IDs; gpg's own is [Minimal]) under the name of that address, with
// the domain as the user ID has it. An internationalised domain therefore comes
// out in UTF-8, which DNS servers take for other names; [OPENPGPKEY] makes
// records that work.
func AppendExportDANE(dst []byte, f Filter, c *Cert) ([]byte, error) {
	f.Now = timeOf(f.now())
	data, err := f.Append(make([]byte, 0, len(c.data)), c)
	if err != nil {
		return dst, err
	}
	return appendExport(dst, c, "_openpgpkey.", f.Now.Unix(), TypeOPENPGPKEY, data), nil
}

// AppendExportPKA appends what gpg 2.2 --export-options export-pka prints for a
// certificate: the fingerprint under the name of each user ID with an address.
func AppendExportPKA(dst []byte, c *Cert) []byte {
	data := append(certHeader(CertIPGP), c.fprLen)
	data = append(data, c.Fingerprint()...)
	return appendExport(dst, c, "_pka.", 0, TypeCERT, data)
}

// appendExport writes data under the name of each user ID of c that gpg
// exports: for OPENPGPKEY not the revoked and expired ones.
func appendExport(dst []byte, c *Cert, prefix string, now int64, typ uint16, data []byte) []byte {
	for i := 1; i < len(c.packets); {
		end := c.group(i)
		at := i
		i = end
		if c.packets[at].tag != tagUserID {
			continue
		}
		uid := c.body(&c.packets[at])
		local, domain, ok := mailbox(uid)
		s := c.certState(at, end)
		if !ok || s.sig < 0 || typ == TypeOPENPGPKEY && (s.revoked || c.packets[s.sig].expired(now)) {
			continue
		}
		if _, err := DomainToASCII(string(domain)); err != nil {
			continue
		}
		dst = append(dst, "$ORIGIN "...)
		dst = append(dst, prefix...)
		dst = appendLower(dst, domain)
		dst = append(dst, ".\n; "...)
		dst = appendHEX(dst, c.Fingerprint())
		dst = append(dst, "\n; "...)
		dst = appendComment(dst, uid)
		dst = append(dst, '\n')
		if typ == TypeOPENPGPKEY {
			dst = AppendDANELabel(dst, local)
		} else {
			dst = AppendWKDHash(dst, local)
		}
		dst = appendGPGData(dst, typ, data)
	}
	return dst
}

// appendComment makes a user ID fit for a comment of a zone file: a control
// character must not end the line.
func appendComment(dst, uid []byte) []byte {
	for _, c := range uid {
		switch {
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c < ' ' || c == 0x7f:
			dst = append(dst, `\x`...)
			dst = hex.AppendEncode(dst, []byte{c})
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// certTypeName returns the mnemonic of a certificate type, or "".
func certTypeName(typ uint16) string {
	for i := range certTypes {
		if certTypes[i].number == typ {
			return certTypes[i].name
		}
	}
	return ""
}

// certTypes are the mnemonics of RFC 4398 section 2.1.
var certTypes = [...]struct {
	name   string
	number uint16
}{
	{"PKIX", 1}, {"SPKI", 2}, {"PGP", CertPGP}, {"IPKIX", 4}, {"ISPKI", 5},
	{"IPGP", CertIPGP}, {"ACPKIX", 7}, {"IACPKIX", 8}, {"URI", 253}, {"OID", 254},
}
