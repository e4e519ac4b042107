package openpgpdns

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
)

// Sentinels to branch on with errors.Is. Every error of this package that
// concerns a certificate, an address or a record wraps one of them.
var (
	// ErrTruncated: the input ends inside a packet or an armored block.
	ErrTruncated = errors.New("truncated")
	// ErrMalformed: octets that are no OpenPGP packets, or packets in an
	// order or form that a certificate cannot have.
	ErrMalformed = errors.New("malformed")
	// ErrSecretKey: secret key material where only public keys belong.
	ErrSecretKey = errors.New("secret key material, refused")
	// ErrArmor: an armored block that is not a public key block, or is not base64.
	ErrArmor = errors.New("bad armor")
	// ErrTooLarge: a certificate, file, record or answer above its limit.
	ErrTooLarge = errors.New("too large")
	// ErrVersion: a key of a version other than 4 or 6.
	ErrVersion = errors.New("unsupported key version")
	// ErrMixedVersions: certificates of different key versions for one name.
	ErrMixedVersions = errors.New("version 4 and version 6 keys do not go into one file or record")
	// ErrNoUserID: the certificate has no self-signed user ID with the address.
	ErrNoUserID = errors.New("no self-signed user ID with this address")
	// ErrBadSignature: a self-signature that does not verify.
	ErrBadSignature = errors.New("bad self-signature")
	// ErrAddress: not a mail address by the rules of [AddressFromUserID].
	ErrAddress = errors.New("not a mail address")
	// ErrName: a domain name, label or owner name that DNS cannot hold.
	ErrName = errors.New("bad domain name")
	// ErrRecord: text or RDATA that is not a valid OPENPGPKEY or CERT record.
	ErrRecord = errors.New("bad record")
	// ErrNotFound: the name, file or record does not exist.
	ErrNotFound = errors.New("not found")
	// ErrServer: a server that gave no usable answer.
	ErrServer = errors.New("no usable answer")
)

// Error says where something went wrong. The fields that do not apply are zero.
type Error struct {
	// Certificate is the number of the certificate in the ring, from 1; 0 if
	// the error is not about a ring or lies before its first certificate.
	Certificate int
	// Fingerprint of that certificate, 20 or 32 octets, or nil if unknown.
	Fingerprint []byte
	// Offset of the packet in the ring, in octets from its start (for an
	// armored ring: in the decoded octets). Meaningful if Certificate > 0 or
	// HasOffset.
	Offset    int64
	HasOffset bool
	// Input is the address, name, user ID or text at fault, or "".
	Input string
	// Detail says what was seen, or is "".
	Detail string
	// Err is one of the sentinels, or an error of the layer below.
	Err error
}

// Error names the place, the input and the reason on one line.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("openpgpdns: ")
	if e.Certificate > 0 {
		b.WriteString("certificate ")
		b.WriteString(strconv.Itoa(e.Certificate))
		if e.Fingerprint != nil {
			b.WriteString(" (")
			b.WriteString(strings.ToUpper(hex.EncodeToString(e.Fingerprint)))
			b.WriteByte(')')
		}
	}
	if e.HasOffset {
		if e.Certificate > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("at octet ")
		b.WriteString(strconv.FormatInt(e.Offset, 10))
	}
	if e.Certificate > 0 || e.HasOffset {
		b.WriteString(": ")
	}
	if e.Input != "" {
		in := e.Input
		if len(in) > 120 {
			in = in[:120] + "..."
		}
		b.WriteString(strconv.Quote(in))
		b.WriteString(": ")
	}
	b.WriteString(e.Err.Error())
	if e.Detail != "" {
		b.WriteString(": ")
		b.WriteString(e.Detail)
	}
	return b.String()
}

// Unwrap returns the sentinel or the error of the layer below.
func (e *Error) Unwrap() error { return e.Err }

func inputError(err error, input, detail string) error {
	return &Error{Err: err, Input: input, Detail: detail}
}
