package keycard

import (
	"context"
	"fmt"
	"time"
)

// Limits of one logical answer. A card that keeps promising more data is cut
// off at maxResponse octets, at maxRounds continuations (cards send 255 or 256
// octets in each), or at maxEmpty of them in a row without any data.
const (
	maxResponse = 64 << 10
	maxRounds   = 512
	maxEmpty    = 4
	maxData     = 1<<16 - 1 // octets of command data, chained or not: what extended length can say
)

// Command is one ISO 7816-4 command.
//
// Le is the number of octets expected at most: 0 means that no response data
// is expected, 256 is the short form's maximum, 65536 the extended form's.
type Command struct {
	CLA, INS, P1, P2 byte
	Data             []byte
	Le               int
}

// Append appends the encoded command to dst and returns the result. The
// extended form is used when extended is true and the data is longer than 255
// octets or Le is above 256; without extended, Le above 256 is sent as 256.
// Data longer than 255 octets cannot be sent in short form: the caller splits
// it (ISO 7816-4 section 5.3.3, command chaining), and data longer than 65535
// octets in neither.
func (c Command) Append(dst []byte, extended bool) []byte {
	dst = append(dst, c.CLA, c.INS, c.P1, c.P2)
	n := len(c.Data)
	if !extended || n <= 255 && c.Le <= 256 {
		if n > 0 {
			dst = append(dst, byte(n))
			dst = append(dst, c.Data...)
		}
		if c.Le > 0 {
			dst = append(dst, byte(min(c.Le, 256))) // 256 is sent as 00
		}
		return dst
	}
	dst = append(dst, 0)
	if n > 0 {
		dst = append(dst, byte(n>>8), byte(n))
		dst = append(dst, c.Data...)
	}
	if c.Le > 0 {
		le := min(c.Le, 65536) // 65536 is sent as 0000
		dst = append(dst, byte(le>>8), byte(le))
	}
	return dst
}

// ParseCommand decodes one encoded command, short or extended (ISO 7816-4
// section 5.1). The Data of the result points into b. It reports whether the
// extended form was used. The error wraps [ErrMalformed].
func ParseCommand(b []byte) (c Command, extended bool, err error) {
	if len(b) < 4 {
		return c, false, fmt.Errorf("keycard: command of %d octets: %w", len(b), ErrMalformed)
	}
	c = Command{CLA: b[0], INS: b[1], P1: b[2], P2: b[3]}
	bad := func() (Command, bool, error) {
		return c, extended, fmt.Errorf("keycard: lengths in a command of %d octets disagree: %w", len(b), ErrMalformed)
	}
	rest := b[4:]
	if len(rest) == 0 {
		return c, false, nil
	}
	if rest[0] != 0 || len(rest) == 1 { // short form
		n := int(rest[0])
		rest = rest[1:]
		if len(rest) == 0 { // only Le
			c.Le = n
			if n == 0 {
				c.Le = 256
			}
			return c, false, nil
		}
		if len(rest) < n || len(rest) > n+1 {
			return bad()
		}
		c.Data = rest[:n:n]
		if len(rest) == n+1 {
			if c.Le = int(rest[n]); c.Le == 0 {
				c.Le = 256
			}
		}
		return c, false, nil
	}
	extended = true
	if len(rest) < 3 {
		return bad()
	}
	n := int(rest[1])<<8 | int(rest[2])
	rest = rest[3:]
	if len(rest) == 0 { // only Le
		if c.Le = n; n == 0 {
			c.Le = 65536
		}
		return c, true, nil
	}
	if n == 0 || len(rest) < n || len(rest) != n && len(rest) != n+2 {
		return bad()
	}
	c.Data = rest[:n:n]
	if len(rest) == n+2 {
		if c.Le = int(rest[n])<<8 | int(rest[n+1]); c.Le == 0 {
			c.Le = 65536
		}
	}
	return c, true, nil
}

// split cuts a response into data and status word.
func split(r []byte) ([]byte, uint16, error) {
	if len(r) < 2 {
		return nil, 0, fmt.Errorf("keycard: response of %d octets: %w", len(r), ErrMalformed)
	}
	n := len(r) - 2
	return r[:n:n], uint16(r[n])<<8 | uint16(r[n+1]), nil
}

// chunk is the number of data octets in one part of a chained command. Cards
// exist that refuse 255.
const chunk = 254

// send carries out one logical command: it picks the form, chains the data
// where it must, follows 61xx and repeats once on 6Cxx. The session's lock
// must be held. The returned data is the caller's.
//
// The command buffer is cleared afterwards when the command may have carried
// a secret.
func (s *session) send(ctx context.Context, c Command) ([]byte, uint16, error) {
	if len(c.Data) > maxData {
		return nil, 0, fmt.Errorf("keycard: %d octets of command data: %w", len(c.Data), ErrTooLong)
	}
	s.commands++
	secret := sensitive(c.INS)
	ext := s.extended && (len(c.Data) > 255 || c.Le > 256)
	if ext && c.Le > 256 && s.maxResp > 256 {
		c.Le = min(c.Le, s.maxResp)
	}
	if len(c.Data) > 255 && ext && s.chaining &&
		(s.maxCmd > 0 && len(c.Data)+9 > s.maxCmd || s.limit > 0 && len(c.Data) > s.limit) {
		ext = false // too long for one extended command
	}
	if len(c.Data) > 255 && !ext {
		part := c
		part.CLA |= 0x10
		part.Le = 0 // only the last part asks for an answer
		for len(c.Data) > chunk {
			part.Data = c.Data[:chunk]
			s.buf = part.Append(s.buf[:0], false)
			data, sw, err := s.transmit(ctx, s.buf, secret)
			if err != nil {
				return nil, 0, err
			}
			if sw != swOK {
				return data, sw, nil
			}
			c.Data = c.Data[chunk:]
		}
	}
	s.buf = c.Append(s.buf[:0], ext)
	data, sw, err := s.transmit(ctx, s.buf, secret)
	if err != nil {
		return nil, 0, err
	}
	if sw>>8 == 0x6c && c.Le > 0 { // wrong Le: once more with the right one
		le := int(sw & 0xff)
		if le == 0 {
			le = 256
		}
		c.Le = le
		s.buf = c.Append(s.buf[:0], ext && len(c.Data) > 255)
		if data, sw, err = s.transmit(ctx, s.buf, secret); err != nil {
			return nil, 0, err
		}
	}
	if sw>>8 != 0x61 {
		return data, sw, nil
	}
	return s.more(ctx, data, sw)
}

// more follows a 61xx status with GET RESPONSE until the card is done.
func (s *session) more(ctx context.Context, data []byte, sw uint16) ([]byte, uint16, error) {
	all := make([]byte, 0, len(data)+256+int(sw&0xff))
	all = append(all, data...)
	clear(data)
	for rounds, empty := 0, 0; sw>>8 == 0x61; rounds++ {
		le := int(sw & 0xff)
		if le == 0 {
			le = 256
		}
		s.buf = Command{INS: insGetResponse, Le: le}.Append(s.buf[:0], false)
		d, next, err := s.transmit(ctx, s.buf, false)
		if err == nil && next>>8 == 0x6c { // told xx octets, has fewer
			if le = int(next & 0xff); le == 0 {
				le = 256
			}
			s.buf = Command{INS: insGetResponse, Le: le}.Append(s.buf[:0], false)
			d, next, err = s.transmit(ctx, s.buf, false)
		}
		if err != nil {
			clear(all)
			return nil, 0, err
		}
		if empty++; len(d) > 0 {
			empty = 0
		}
		if len(all)+len(d) > maxResponse || empty >= maxEmpty || rounds >= maxRounds {
			clear(all)
			return nil, 0, fmt.Errorf("keycard: the card does not end its answer after %d octets: %w", len(all)+len(d), ErrMalformed)
		}
		all = append(all, d...)
		clear(d)
		sw = next
	}
	return all, sw, nil
}

// transmit sends one encoded command.
func (s *session) transmit(ctx context.Context, cmd []byte, secret bool) ([]byte, uint16, error) {
	s.apdus++
	if s.opt.log != nil {
		return s.transmitLogged(ctx, cmd, secret)
	}
	r, err := s.t.Transmit(ctx, cmd)
	if secret {
		clear(cmd)
	}
	if err != nil {
		s.lost(err)
		return nil, 0, err
	}
	return split(r)
}

func (s *session) transmitLogged(ctx context.Context, cmd []byte, secret bool) ([]byte, uint16, error) {
	e := LogEntry{Command: MaskCommand(cmd)}
	if len(cmd) >= 4 && cmd[1] != insGetResponse {
		s.hideAnswer = SecretResponse(cmd)
	}
	begin := time.Now()
	r, err := s.t.Transmit(ctx, cmd)
	e.Duration = time.Since(begin)
	if secret {
		clear(cmd)
	}
	if err != nil {
		e.Err = err
		s.opt.log(e)
		s.lost(err)
		return nil, 0, err
	}
	e.Response = maskResponse(r, s.hideAnswer)
	s.opt.log(e)
	return split(r)
}
