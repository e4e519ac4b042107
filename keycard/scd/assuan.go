package scd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"signalbox.example/keycard"
)

// ErrNoAgent: no gpg-agent listens on the socket.
var ErrNoAgent = errors.New("gpg-agent is not running")

// Error is a refusal by the agent or by scdaemon.
type Error struct {
	Code uint32 // libgpg-error's, with the source in the high octet
	Text string
}

func (e *Error) Error() string {
	return fmt.Sprintf("scd: %s (%d)", e.Text, e.Code)
}

// Unwrap returns keycard's error for the code, or nil.
func (e *Error) Unwrap() error {
	switch e.Code & 0xffff {
	case 108, 112, 123, 32848, 32872: // card error, no card, no device
		return keycard.ErrNoCard
	case 110:
		return keycard.ErrRemoved
	case 109:
		return keycard.ErrCardReset
	case 173, 32787: // locked, busy
		return keycard.ErrBusy
	}
	return nil
}

// Limits of the protocol: a line has 1000 octets and its end at most.
// maxData bounds what one command answers.
const (
	maxLine  = 1000
	maxLines = 4096
	maxData  = 70 << 10
)

// readLine reads one line without its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	b, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("scd: line of more than %d octets: %w", r.Size(), keycard.ErrMalformed)
	}
	if err != nil {
		if err == io.EOF && len(b) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return bytes.TrimSuffix(b[:len(b)-1], []byte("\r")), nil
}

// readResponse reads lines until OK or ERR and returns the data of the D
// lines. Status lines, comments and empty lines are passed over; an inquiry is
// refused, since nothing is asked for here.
func readResponse(r *bufio.Reader, cancel func() error) ([]byte, error) {
	var data []byte
	for range maxLines {
		line, err := readLine(r)
		if err != nil {
			return nil, err
		}
		word, rest, _ := bytes.Cut(line, []byte(" "))
		switch string(word) {
		case "OK":
			return data, nil
		case "ERR":
			num, text, _ := strings.Cut(string(rest), " ")
			code, err := strconv.ParseUint(num, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("scd: error line %q: %w", line, keycard.ErrMalformed)
			}
			return nil, &Error{uint32(code), text}
		case "D":
			if data, err = unescape(data, rest); err != nil {
				return nil, err
			}
			if len(data) > maxData {
				return nil, fmt.Errorf("scd: answer of more than %d octets: %w", maxData, keycard.ErrMalformed)
			}
		case "INQUIRE":
			if err := cancel(); err != nil {
				return nil, err
			}
		case "S", "":
		default:
			if len(word) > 0 && word[0] == '#' {
				continue
			}
			return nil, fmt.Errorf("scd: line %.40q: %w", line, keycard.ErrMalformed)
		}
	}
	return nil, fmt.Errorf("scd: more than %d lines: %w", maxLines, keycard.ErrMalformed)
}

// unescape appends the octets of a D line: %XX stands for one octet.
func unescape(dst, b []byte) ([]byte, error) {
	for i := 0; i < len(b); i++ {
		if b[i] != '%' {
			dst = append(dst, b[i])
			continue
		}
		if i+2 >= len(b) {
			return nil, fmt.Errorf("scd: escape cut short: %w", keycard.ErrMalformed)
		}
		n, err := strconv.ParseUint(string(b[i+1:i+3]), 16, 8)
		if err != nil {
			return nil, fmt.Errorf("scd: escape %q: %w", b[i:i+3], keycard.ErrMalformed)
		}
		dst = append(dst, byte(n))
		i += 2
	}
	return dst, nil
}
