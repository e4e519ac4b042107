package openpgpdns

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// Policy is the content of a WKD policy file
// (draft-koch-openpgp-webkey-service section 4.5). The zero value is an empty
// file, which is what most directories need.
type Policy struct {
	// MailboxOnly: the service accepts only user IDs that are a bare address.
	MailboxOnly bool
	// DaneOnly: keys are in DNS only, the directory is not used.
	DaneOnly bool
	// AuthSubmit: submissions are authenticated by the mail system, no
	// confirmation mail is sent.
	AuthSubmit bool
	// ProtocolVersion is the draft's version that the service follows, 0 if
	// the file does not say.
	ProtocolVersion int
	// SubmissionAddress replaces the submission-address file, or is "".
	SubmissionAddress string
	// Other holds lines with keywords that are not known here.
	Other []string
}

// text returns the file. It refuses values that would break a line.
func (p Policy) text() ([]byte, error) {
	var b []byte
	flag := func(on bool, name string) {
		if on {
			b = append(append(b, name...), '\n')
		}
	}
	flag(p.MailboxOnly, "mailbox-only")
	flag(p.DaneOnly, "dane-only")
	flag(p.AuthSubmit, "auth-submit")
	flag(p.ProtocolVersion > 0, "protocol-version: "+strconv.Itoa(p.ProtocolVersion))
	if p.SubmissionAddress != "" {
		a, err := ParseAddress(p.SubmissionAddress)
		if err != nil {
			return nil, err
		}
		flag(true, "submission-address: "+a.String())
	}
	for _, l := range p.Other {
		if strings.ContainsAny(l, "\r\n") {
			return nil, inputError(ErrMalformed, l, "a policy line holds no line end")
		}
		flag(true, l)
	}
	return b, nil
}

// ParsePolicy reads a policy file of at most 64 KiB. Comments and empty lines
// are passed over, lines with unknown keywords are kept in Other. A keyword
// with a value needs a colon: "protocol-version: 5". The error wraps
// [ErrMalformed] or [ErrTooLarge].
func ParsePolicy(r io.Reader) (Policy, error) {
	const limit = 64 << 10
	var p Policy
	lr := &io.LimitedReader{R: r, N: limit + 1}
	s := bufio.NewScanner(lr)
	s.Buffer(nil, limit+2)
	for s.Scan() {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		key, value, colon := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch {
		case strings.ContainsAny(key, " \t"):
			return Policy{}, inputError(ErrMalformed, line, "a keyword with a value needs a colon")
		case key == "mailbox-only" && !colon:
			p.MailboxOnly = true
		case key == "dane-only" && !colon:
			p.DaneOnly = true
		case key == "auth-submit" && !colon:
			p.AuthSubmit = true
		case key == "protocol-version":
			n, err := strconv.Atoi(value)
			if err != nil || n < 1 {
				return Policy{}, inputError(ErrMalformed, line, "not a version number")
			}
			p.ProtocolVersion = n
		case key == "submission-address":
			a, err := ParseAddress(value)
			if err != nil {
				return Policy{}, err
			}
			p.SubmissionAddress = a.String()
		default:
			p.Other = append(p.Other, line)
		}
	}
	if err := s.Err(); err != nil {
		return Policy{}, &Error{Err: err}
	}
	if lr.N == 0 {
		return Policy{}, inputError(ErrTooLarge, "", "policy file of more than 64 KiB")
	}
	return p, nil
}

// AppendText appends the policy file. It fails for an address or a line that
// does not fit on one line of the file; the error wraps [ErrAddress] or
// [ErrMalformed].
func (p Policy) AppendText(dst []byte) ([]byte, error) {
	b, err := p.text()
	return append(dst, b...), err
}
