package openpgpdns

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"strconv"
	"strings"
)

// maxEntry bounds the text of one entry of a zone file: the generic form of the
// largest record has 131 kB of digits.
const maxEntry = 512 << 10

// ParseRecord reads one OPENPGPKEY or CERT record in any of the forms of a
// zone file: numbers, mnemonics or generic, on one line or in parentheses, with
// comments. The owner must be absolute, or follow a $ORIGIN line. Unlike other
// parsers it accepts only complete base64 and no empty data. The error wraps
// [ErrRecord], [ErrName] or [ErrTooLarge].
func ParseRecord(s string) (Record, error) {
	var rec Record
	n := 0
	for r, err := range ParseZone(strings.NewReader(s), "") {
		if err != nil {
			return Record{}, err
		}
		if n++; n == 1 {
			rec = r
		}
	}
	if n != 1 {
		return Record{}, inputError(ErrRecord, s, "not one OPENPGPKEY or CERT record but "+strconv.Itoa(n))
	}
	return rec, nil
}

// ParseZone yields the OPENPGPKEY and CERT records of a zone file (RFC 1035
// section 5) and passes over all others. origin completes relative names until
// a $ORIGIN line; it may be empty. $INCLUDE and $GENERATE are errors. After an
// error, which names the line, parsing goes on with the next entry if that can
// be found. An entry may take 512 KiB of text.
func ParseZone(r io.Reader, origin string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		z := zoneReader{br: bufio.NewReaderSize(r, 32<<10), origin: origin, line: 1}
		if origin != "" && !strings.HasSuffix(origin, ".") {
			z.origin += "."
		}
		for {
			rec, ok, err := z.next()
			if err == io.EOF {
				return
			}
			if err != nil {
				if !yield(Record{}, err) || z.broken {
					return
				}
			} else if ok && !yield(rec, nil) {
				return
			}
		}
	}
}

type zoneReader struct {
	br      *bufio.Reader
	origin  string
	owner   string
	line    int
	ttl     uint32 // of $TTL
	hasTTL  bool
	broken  bool
	entryAt int // line where the entry began
	tokens  []string
	indent  bool // the entry began with white space: same owner as before
}

func (z *zoneReader) err(kind error, text, detail string) error {
	return &Error{Err: kind, Input: text, Detail: "line " + strconv.Itoa(z.entryAt) + ": " + detail}
}

// entry reads the tokens of one entry: a line, or several in parentheses.
// Escapes stay as they are written, and what would mean something else without
// its quotes is escaped.
func (z *zoneReader) entry() error {
	z.tokens, z.indent, z.entryAt = z.tokens[:0], false, z.line
	var tok strings.Builder
	depth, size := 0, 0
	inTok, quoted, comment, first := false, false, false, true
	flush := func() {
		if inTok {
			z.tokens = append(z.tokens, tok.String())
			tok.Reset()
			inTok = false
		}
	}
	for {
		c, err := z.br.ReadByte()
		if err == io.EOF {
			flush()
			if depth > 0 || quoted {
				z.broken = true
				return z.err(ErrRecord, "", "ends inside parentheses or quotes")
			}
			if len(z.tokens) == 0 {
				return io.EOF
			}
			return nil
		}
		if err != nil {
			z.broken = true
			return &Error{Err: err}
		}
		if size++; size > maxEntry {
			z.broken = true
			return z.err(ErrTooLarge, "", "entry of more than "+strconv.Itoa(maxEntry)+" octets")
		}
		if c == '\n' {
			z.line++
			comment = false
			if depth == 0 && !quoted {
				flush()
				return nil
			}
		}
		switch {
		case comment:
		case c == '\\':
			d, err := z.br.ReadByte()
			if err != nil || d == '\n' {
				z.broken = err != nil
				if d == '\n' {
					z.line++
				}
				return z.err(ErrRecord, "", "backslash at the end of a line")
			}
			size++
			tok.WriteByte(c)
			tok.WriteByte(d)
			inTok = true
		case c == '"':
			quoted = !quoted
			inTok = true
		case quoted && (c <= ' ' || c == 0x7f):
			tok.Write([]byte{'\\', '0' + c/100, '0' + c/10%10, '0' + c%10})
		case quoted:
			if c == ';' || c == '(' || c == ')' {
				tok.WriteByte('\\')
			}
			tok.WriteByte(c)
		case c == ';':
			flush()
			comment = true
		case c == '(':
			flush()
			depth++
		case c == ')':
			flush()
			if depth--; depth < 0 {
				return z.skipLine("closing parenthesis without an opening one")
			}
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			flush()
			if first {
				z.indent = true
			}
		default:
			tok.WriteByte(c)
			inTok = true
		}
		first = false
	}
}

func (z *zoneReader) skipLine(why string) error {
	for {
		c, err := z.br.ReadByte()
		if err != nil || c == '\n' {
			z.line++
			return z.err(ErrRecord, "", why)
		}
	}
}

// next reads an entry; ok says whether it is a record of our types.
func (z *zoneReader) next() (rec Record, ok bool, err error) {
	if err := z.entry(); err != nil {
		return Record{}, false, err
	}
	t := z.tokens
	if len(t) == 0 {
		return Record{}, false, nil
	}
	if !z.indent {
		switch strings.ToUpper(t[0]) {
		case "$ORIGIN":
			if len(t) != 2 {
				return Record{}, false, z.err(ErrRecord, "", "$ORIGIN takes one name")
			}
			z.origin, err = z.absolute(t[1])
			return Record{}, false, err
		case "$TTL":
			var good bool
			if len(t) == 2 {
				z.ttl, good = parseTTL(t[1])
			}
			if z.hasTTL = good; !good {
				return Record{}, false, z.err(ErrRecord, "", "$TTL takes one time")
			}
			return Record{}, false, nil
		}
		if t[0] != "" && t[0][0] == '$' {
			return Record{}, false, z.err(ErrRecord, t[0], "not followed")
		}
		z.owner, t = t[0], t[1:]
	}
	rec.TTL, rec.HasTTL = z.ttl, z.hasTTL
	// TTL and class, in either order.
	for range 2 {
		if len(t) == 0 {
			break
		}
		if ttl, is := parseTTL(t[0]); is {
			rec.TTL, rec.HasTTL = ttl, true
			t = t[1:]
		} else if strings.EqualFold(t[0], "IN") || strings.EqualFold(t[0], "CLASS1") {
			t = t[1:]
		}
	}
	if len(t) == 0 {
		return Record{}, false, z.err(ErrRecord, z.owner, "no type")
	}
	switch strings.ToUpper(t[0]) {
	case "OPENPGPKEY", "TYPE61":
		rec.Type = TypeOPENPGPKEY
	case "CERT", "TYPE37":
		rec.Type = TypeCERT
	default:
		return Record{}, false, nil
	}
	if rec.Name, err = z.absolute(z.owner); err != nil {
		return Record{}, false, err
	}
	if rec.Data, err = z.rdata(rec.Type, t[1:], strings.HasPrefix(strings.ToUpper(t[0]), "TYPE")); err != nil {
		return Record{}, false, err
	}
	if err := rec.Validate(); err != nil {
		var e *Error
		errors.As(err, &e)
		return Record{}, false, z.err(e.Err, e.Input, e.Detail)
	}
	return rec, true, nil
}

// absolute completes a name with the origin.
func (z *zoneReader) absolute(name string) (string, error) {
	full := name
	switch {
	case name == "":
		return "", z.err(ErrName, name, "no owner name")
	case name == "@":
		full = z.origin
	case name == "." || strings.HasSuffix(name, ".") && !endsEscaped(name):
	case z.origin == ".":
		full = name + "."
	case z.origin == "":
		return "", z.err(ErrName, name, "relative name without an origin")
	default:
		full = name + "." + z.origin
	}
	if _, err := packName(full); err != nil {
		return "", z.err(ErrName, full, err.Error())
	}
	return full, nil
}

// endsEscaped reports whether the final dot of a name is escaped.
func endsEscaped(name string) bool {
	n := 0
	for i := len(name) - 2; i >= 0 && name[i] == '\\'; i-- {
		n++
	}
	return n%2 == 1
}

func (z *zoneReader) rdata(typ uint16, t []string, unknown bool) ([]byte, error) {
	if len(t) > 0 && t[0] == `\#` {
		if len(t) < 2 {
			return nil, z.err(ErrRecord, z.owner, `\# without a length`)
		}
		n, err := strconv.ParseUint(t[1], 10, 16)
		if err != nil {
			return nil, z.err(ErrRecord, t[1], "not a length of RDATA")
		}
		data, err := hex.DecodeString(strings.Join(t[2:], ""))
		if err != nil {
			return nil, z.err(ErrRecord, z.owner, "not hexadecimal")
		}
		if len(data) != int(n) {
			return nil, z.err(ErrRecord, z.owner, "announces "+t[1]+" octets and has "+strconv.Itoa(len(data)))
		}
		return data, nil
	}
	if unknown {
		return nil, z.err(ErrRecord, z.owner, `a type by number needs the form \#`)
	}
	var data []byte
	if typ == TypeCERT {
		if len(t) < 4 {
			return nil, z.err(ErrRecord, z.owner, "CERT takes type, key tag, algorithm and data")
		}
		ct, ok1 := number(t[0], 16, certTypeNumber)
		tag, ok2 := number(t[1], 16, nil)
		alg, ok3 := number(t[2], 8, algorithmNumber)
		if !ok1 || !ok2 || !ok3 {
			return nil, z.err(ErrRecord, strings.Join(t[:3], " "), "not type, key tag and algorithm")
		}
		data = []byte{byte(ct >> 8), byte(ct), byte(tag >> 8), byte(tag), byte(alg)}
		t = t[3:]
	}
	data, err := base64.StdEncoding.Strict().AppendDecode(data, []byte(strings.Join(t, "")))
	if err != nil {
		return nil, z.err(ErrRecord, z.owner, "not complete base64")
	}
	return data, nil
}

func number(s string, bits int, mnemonic func(string) (uint64, bool)) (uint64, bool) {
	if n, err := strconv.ParseUint(s, 10, bits); err == nil {
		return n, true
	}
	if mnemonic == nil {
		return 0, false
	}
	return mnemonic(strings.ToUpper(s))
}

func certTypeNumber(s string) (uint64, bool) {
	for _, t := range certTypes {
		if t.name == s {
			return uint64(t.number), true
		}
	}
	return 0, false
}

// algorithmNumber knows the mnemonics of DNSSEC algorithms (RFC 4034 appendix
// A.1 and its successors).
func algorithmNumber(s string) (uint64, bool) {
	switch s {
	case "RSAMD5":
		return 1, true
	case "DH":
		return 2, true
	case "DSA":
		return 3, true
	case "RSASHA1":
		return 5, true
	case "DSA-NSEC3-SHA1":
		return 6, true
	case "RSASHA1-NSEC3-SHA1":
		return 7, true
	case "RSASHA256":
		return 8, true
	case "RSASHA512":
		return 10, true
	case "ECDSAP256SHA256":
		return 13, true
	case "ECDSAP384SHA384":
		return 14, true
	case "ED25519":
		return 15, true
	case "ED448":
		return 16, true
	case "INDIRECT":
		return 252, true
	case "PRIVATEDNS":
		return 253, true
	case "PRIVATEOID":
		return 254, true
	}
	return 0, false
}

// parseTTL reads seconds, or numbers with the units w, d, h, m, s.
func parseTTL(s string) (uint32, bool) {
	var total, n uint64
	digits := false
	for i := range len(s) {
		c := lower(s[i])
		if digit(c) {
			n, digits = n*10+uint64(c-'0'), true
			if n > 1<<32-1 {
				return 0, false
			}
			continue
		}
		unit := uint64(0)
		switch c {
		case 'w':
			unit = 7 * 24 * 3600
		case 'd':
			unit = 24 * 3600
		case 'h':
			unit = 3600
		case 'm':
			unit = 60
		case 's':
			unit = 1
		}
		if unit == 0 || !digits {
			return 0, false
		}
		total, n, digits = total+n*unit, 0, false
		if total > 1<<32-1 {
			return 0, false
		}
	}
	if s == "" || !digits && n != 0 || total+n > 1<<32-1 {
		return 0, false
	}
	return uint32(total + n), true
}
