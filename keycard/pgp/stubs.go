package pgp

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"signalbox.example/keycard"
)

// StubKind says what an exported secret key holds in the place of the secret.
type StubKind uint8

// SecretKey is a key that is there (perhaps encrypted), OnCard one that gpg
// diverts to a card, Absent one that is kept elsewhere ("offline").
const (
	SecretKey StubKind = iota
	OnCard
	Absent
)

// Mark returns the sign that gpg puts behind "sec" or "ssb" in its lists:
// nothing, ">" for a card, "#" for a key that is not there.
func (k StubKind) Mark() string { return [...]string{"", ">", "#"}[k%3] }

// Stub is one secret key or subkey of an export.
type Stub struct {
	Kind    StubKind
	Public  *packet.PublicKey
	Primary bool
	// Serial is what the stub says about the card: an application identifier
	// (16 octets) as gpg stores it; empty if it does not say.
	Serial []byte
}

// Card returns manufacturer and number of the stub's card as
// [keycard.Info.Ident] writes them; ok is false if the stub names none.
func (s *Stub) Card() (ident string, ok bool) { return cardIdent(s.Serial) }

func cardIdent(aid []byte) (string, bool) {
	if len(aid) < 14 || !bytes.HasPrefix(aid, []byte{0xd2, 0x76, 0x00, 0x01, 0x24, 0x01}) {
		return "", false
	}
	return fmt.Sprintf("%X:%X", aid[8:10], aid[10:14]), true
}

// Slot returns the slot of this card that holds the stub's key, by
// fingerprint. The stub itself does not know it.
func (s *Stub) Slot(info *keycard.Info) (keycard.Slot, bool) {
	for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
		if f := info.Keys[slot].Fingerprint; !f.IsZero() && bytes.Equal(f[:], s.Public.Fingerprint) {
			return slot, true
		}
	}
	return 0, false
}

// maxExport bounds what [ParseStubs] reads.
const maxExport = 16 << 20

// ParseStubs reads an export of secret keys (gpg --export-secret-keys),
// armored or not, up to 16 MiB, and returns what is in the place of each secret, and the
// certificates: go-crypto refuses keys that are on a card, so the public parts
// are taken. Secrets are not looked at. An export without secret keys gives no
// stubs.
func ParseStubs(r io.Reader) (openpgp.EntityList, []Stub, error) {
	const op = "read stubs"
	in := bufio.NewReader(r)
	if b, _ := in.Peek(1); len(b) == 1 && b[0]&0x80 == 0 {
		a, err := armor.Decode(in)
		if err != nil {
			return nil, nil, fail(op, fmt.Errorf("armor: %w (%v)", ErrFormat, err))
		}
		r = a.Body
	} else {
		r = in
	}
	all, err := io.ReadAll(io.LimitReader(r, maxExport+1))
	if err != nil {
		return nil, nil, fail(op, err)
	}
	if len(all) > maxExport {
		return nil, nil, fail(op, fmt.Errorf("more than %d octets: %w", maxExport, ErrFormat))
	}
	var stubs []Stub
	var public bytes.Buffer
	packets := packet.NewOpaqueReader(bytes.NewReader(all))
	for {
		p, err := packets.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, fail(op, fmt.Errorf("%w (%v)", ErrFormat, err))
		}
		const secretKey, publicKey, secretSubkey, publicSubkey = 5, 6, 7, 14
		tag, body := p.Tag, p.Contents
		if tag == secretKey || tag == secretSubkey {
			s := Stub{Primary: tag == secretKey}
			n := publicLength(body)
			if n < 0 {
				continue // of a kind nobody here can use: gpg's other versions, X.509
			}
			if s.Kind, s.Serial, err = secretKind(body[n:]); err != nil {
				return nil, nil, fail(op, err)
			}
			tag, body = publicKey, body[:n]
			if !s.Primary {
				tag = publicSubkey
			}
			q, err := packet.Read(bytes.NewReader(newPacket(tag, body)))
			if pub, ok := q.(*packet.PublicKey); ok && err == nil {
				s.Public = pub
				stubs = append(stubs, s)
			}
		}
		public.Write(newPacket(tag, body))
	}
	if public.Len() == 0 {
		return nil, nil, fail(op, fmt.Errorf("nothing there: %w", ErrFormat))
	}
	list, err := openpgp.ReadKeyRing(&public)
	if err != nil {
		return nil, nil, fail(op, fmt.Errorf("%w (%v)", ErrFormat, err))
	}
	return list, stubs, nil
}

// newPacket puts a header with a length of five octets before a body.
func newPacket(tag uint8, body []byte) []byte {
	n := len(body)
	return append([]byte{0xc0 | tag, 0xff, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...)
}

// publicLength returns how many octets of a secret key packet are the public
// key, -1 if they cannot be told.
func publicLength(b []byte) int {
	if len(b) < 6 {
		return -1
	}
	at := 6
	switch b[0] {
	case 4:
	case 6: // with a count of the octets that follow
		if len(b) < 10 {
			return -1
		}
		n := 10 + int(b[6])<<24 + int(b[7])<<16 + int(b[8])<<8 + int(b[9])
		if n < 10 || n > len(b) {
			return -1
		}
		return n
	default:
		return -1
	}
	mpis, oid, kdf := 0, false, false
	switch packet.PublicKeyAlgorithm(b[5]) {
	case packet.PubKeyAlgoRSA, packet.PubKeyAlgoRSAEncryptOnly, packet.PubKeyAlgoRSASignOnly:
		mpis = 2
	case packet.PubKeyAlgoDSA:
		mpis = 4
	case packet.PubKeyAlgoElGamal:
		mpis = 3
	case packet.PubKeyAlgoECDSA, packet.PubKeyAlgoEdDSA:
		mpis, oid = 1, true
	case packet.PubKeyAlgoECDH:
		mpis, oid, kdf = 1, true, true
	case packet.PubKeyAlgoX25519, packet.PubKeyAlgoEd25519:
		at += 32
	case packet.PubKeyAlgoX448:
		at += 56
	case packet.PubKeyAlgoEd448:
		at += 57
	default:
		return -1
	}
	short := func() bool { // a field with a length of one octet
		if at >= len(b) {
			return false
		}
		at += 1 + int(b[at])
		return true
	}
	if oid && !short() {
		return -1
	}
	for range mpis {
		if at+2 > len(b) {
			return -1
		}
		at += 2 + (int(b[at])<<8+int(b[at+1])+7)/8
	}
	if kdf && !short() || at > len(b) {
		return -1
	}
	return at
}

// secretKind reads the front of the secret part: GNU's extensions of the
// string-to-key specifier, mode 1 for "not there", 2 for a card and its
// serial number.
func secretKind(b []byte) (StubKind, []byte, error) {
	bad := fmt.Errorf("secret key packet: %w", ErrFormat)
	if len(b) == 0 {
		return 0, nil, bad
	}
	if b[0] < 253 || len(b) < 3 || b[2] != 101 {
		return SecretKey, nil, nil
	}
	// usage, cipher, 101, hash, "GNU", mode
	if len(b) < 8 || string(b[4:7]) != "GNU" {
		return 0, nil, bad
	}
	switch b[7] {
	case 1:
		return Absent, nil, nil
	case 2:
		if len(b) < 9 || b[8] > 16 || len(b) < 9+int(b[8]) {
			return 0, nil, bad
		}
		return OnCard, bytes.Clone(b[9 : 9+int(b[8])]), nil
	}
	return 0, nil, fmt.Errorf("secret key packet of GNU mode %d: %w", b[7], keycard.ErrUnsupported)
}

// KeyFile is a file of gpg-agent's private-keys-v1.d; its name is the keygrip.
type KeyFile struct {
	Kind StubKind // SecretKey or OnCard
	// Serial (the application identifier, 16 octets) and Slot of a key on a
	// card.
	Serial []byte
	Slot   keycard.Slot
}

// Card returns manufacturer and number of the card as [keycard.Info.Ident]
// writes them; ok is false if the file names none.
func (f *KeyFile) Card() (ident string, ok bool) { return cardIdent(f.Serial) }

// ParseKeyFile reads a key file of gpg-agent, in the canonical or the extended
// form, up to 64 KiB. Unlike an export it names the slot of a key on a card.
// Secrets are not looked at.
func ParseKeyFile(r io.Reader) (*KeyFile, error) {
	const op = "read a key file"
	bad := fail(op, fmt.Errorf("not a private key: %w", ErrFormat))
	b, err := io.ReadAll(io.LimitReader(r, 64<<10+1))
	if err != nil {
		return nil, fail(op, err)
	}
	if len(b) > 64<<10 {
		return nil, bad
	}
	if len(b) > 0 && b[0] != '(' {
		_, v, ok := bytes.Cut(append([]byte("\n"), b...), []byte("\nKey:"))
		if !ok {
			return nil, bad
		}
		// Long lines are cut anywhere, also in a word; what goes on after a
		// line end begins with a space of its own.
		b = bytes.ReplaceAll(bytes.ReplaceAll(v, []byte("\r\n"), []byte("\n")), []byte("\n "), nil)
	}
	tokens, ok := sexp(b)
	if !ok || len(tokens) < 2 || tokens[0] != "(" {
		return nil, bad
	}
	switch tokens[1] {
	case "'private-key", "'protected-private-key", "'openpgp-private-key":
		return &KeyFile{Kind: SecretKey}, nil
	case "'shadowed-private-key":
	default:
		return nil, bad
	}
	for i := 0; i+5 < len(tokens); i++ {
		if tokens[i] != "'shadowed" || tokens[i+1] != "'t1-v1" || tokens[i+2] != "(" {
			continue
		}
		f := &KeyFile{Kind: OnCard, Serial: []byte(strings.TrimPrefix(tokens[i+3], "'"))}
		// Some versions write the serial number as text.
		if h, err := hex.DecodeString(string(f.Serial)); err == nil && len(h) > 0 {
			f.Serial = h
		}
		n, ok := strings.CutPrefix(tokens[i+4], "'OPENPGP.")
		if !ok || len(n) != 1 || n[0] < '1' || n[0] > '3' {
			return nil, fail(op, fmt.Errorf("key reference %q: %w", strings.TrimPrefix(tokens[i+4], "'"), keycard.ErrUnsupported))
		}
		f.Slot = keycard.Slot(n[0] - '1')
		return f, nil
	}
	return nil, bad
}

// sexp cuts an S-expression into tokens: parentheses, and atoms with an
// apostrophe before them. It ends with the outermost parenthesis.
func sexp(b []byte) (tokens []string, ok bool) {
	depth := 0
	for len(b) > 0 {
		c := b[0]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			b = b[1:]
		case c == '(':
			depth++
			tokens = append(tokens, "(")
			b = b[1:]
		case c == ')':
			depth--
			tokens = append(tokens, ")")
			if depth <= 0 {
				return tokens, depth == 0
			}
			b = b[1:]
		case c == '#':
			end := bytes.IndexByte(b[1:], '#')
			if end < 0 {
				return nil, false
			}
			h, err := hex.DecodeString(strings.Join(strings.Fields(string(b[1:1+end])), ""))
			if err != nil {
				return nil, false
			}
			tokens = append(tokens, "'"+string(h))
			b = b[end+2:]
		case c == '"':
			end := 1
			for end < len(b) && b[end] != '"' {
				if b[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(b) {
				return nil, false
			}
			s, err := strconv.Unquote(string(b[:end+1]))
			if err != nil {
				s = string(b[1:end])
			}
			tokens = append(tokens, "'"+s)
			b = b[end+1:]
		default:
			end := 0
			for end < len(b) && !bytes.ContainsRune([]byte(" \t\r\n()#\""), rune(b[end])) && b[end] != ':' {
				end++
			}
			if end == 0 {
				return nil, false
			}
			if end < len(b) && b[end] == ':' {
				n, err := strconv.ParseUint(string(b[:end]), 10, 16)
				if err != nil || int(n) > len(b)-end-1 {
					return nil, false
				}
				tokens = append(tokens, "'"+string(b[end+1:end+1+int(n)]))
				b = b[end+1+int(n):]
				continue
			}
			tokens = append(tokens, "'"+string(b[:end]))
			b = b[end:]
		}
	}
	return nil, false
}

// WriteStubs writes a certificate as gpg exports secret keys that it does not
// have: with stubs in the place of the secrets, not armored. For each key, card
// tells the application identifier of the card that holds it
// ([keycard.Info.AID]); if ok is false the stub says that the key is elsewhere.
func WriteStubs(w io.Writer, cert *openpgp.Entity, card func(*packet.PublicKey) (aid [16]byte, ok bool)) error {
	const op = "write stubs"
	keys := []*packet.PublicKey{cert.PrimaryKey}
	for _, s := range cert.Subkeys {
		keys = append(keys, s.PublicKey)
	}
	var public bytes.Buffer
	if err := cert.Serialize(&public); err != nil {
		return fail(op, err)
	}
	packets := packet.NewOpaqueReader(&public)
	for n := 0; ; {
		p, err := packets.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fail(op, err)
		}
		if p.Tag == 6 || p.Tag == 14 {
			if n >= len(keys) || keys[n].Version != 4 {
				return fail(op, fmt.Errorf("stubs of keys that are not of version 4: %w", keycard.ErrUnsupported))
			}
			mode := byte(1)
			aid, ok := card(keys[n])
			if ok {
				mode = 2
			}
			p.Tag = map[uint8]uint8{6: 5, 14: 7}[p.Tag]
			p.Contents = append(p.Contents, 0xff, 0, 101, 0, 'G', 'N', 'U', mode)
			if ok {
				p.Contents = append(append(p.Contents, byte(len(aid))), aid[:]...)
			}
			n++
		}
		if _, err := w.Write(newPacket(p.Tag, p.Contents)); err != nil {
			return fail(op, err)
		}
	}
}
