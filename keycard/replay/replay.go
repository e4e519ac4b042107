package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"signalbox.example/keycard"
)

// ErrNoMatch: the command was not recorded.
var ErrNoMatch = errors.New("command not in the recording")

// ParseError is a malformed line of a recording.
type ParseError struct {
	Line int // counted from 1
	What string
}

func (e *ParseError) Error() string { return fmt.Sprintf("replay: line %d: %s", e.Line, e.What) }

// Exchange is one command and its response as they were recorded.
type Exchange struct {
	Command  []byte
	Mask     []bool // octets of Command that match anything; nil for none
	Response []byte // data and status word; masked octets are zero
	Line     int    // of the command in the file
}

// Session is a recording.
type Session struct {
	Comments  []string // without "#" and the space after it
	Exchanges []Exchange
}

// maxLine is the longest line accepted: a command or response of 64 KiB.
const maxLine = 4 * (64 << 10)

// Parse reads a recording.
func Parse(r io.Reader) (*Session, error) {
	s := &Session{}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	line, open := 0, false
	for sc.Scan() {
		line++
		fail := func(what string) error { return &ParseError{line, what} }
		text := strings.TrimSpace(sc.Text())
		switch {
		case text == "":
		case text[0] == '#':
			s.Comments = append(s.Comments, strings.TrimSpace(text[1:]))
		case text[0] == '>':
			if open {
				return nil, fail("a command where a response should be")
			}
			b, mask, err := parseHex(text[1:])
			if err != nil {
				return nil, fail(err.Error())
			}
			if len(b) < 4 {
				return nil, fail("a command of fewer than four octets")
			}
			s.Exchanges = append(s.Exchanges, Exchange{Command: b, Mask: mask, Line: line})
			open = true
		case text[0] == '<':
			if !open {
				return nil, fail("a response without a command")
			}
			b, _, err := parseHex(text[1:])
			if err != nil {
				return nil, fail(err.Error())
			}
			if len(b) < 2 {
				return nil, fail("a response without status word")
			}
			s.Exchanges[len(s.Exchanges)-1].Response = b
			open = false
		default:
			return nil, fail("neither command, response nor comment")
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("replay: line %d: %w", line+1, err)
	}
	if open {
		return nil, &ParseError{line, "the last command has no response"}
	}
	return s, nil
}

func parseHex(s string) (b []byte, mask []bool, err error) {
	s = strings.TrimSpace(s)
	if len(s)%2 != 0 {
		return nil, nil, errors.New("half an octet")
	}
	b = make([]byte, 0, len(s)/2)
	for i := 0; i < len(s); i += 2 {
		if s[i:i+2] == "xx" {
			if mask == nil {
				mask = make([]bool, len(s)/2)
			}
			mask[i/2] = true
			b = append(b, 0)
			continue
		}
		if b, err = hex.AppendDecode(b, []byte(s[i:i+2])); err != nil {
			return nil, nil, err
		}
	}
	return b, mask, nil
}

// Mode says how strictly a player compares.
type Mode uint8

// Strict wants exactly the recorded commands in their order. Loose compares
// what commands mean: class, instruction, parameters and data, however they
// are cut into parts and whatever length of answer they ask for. It looks for
// the next such command after the one played last, then from the beginning,
// and cuts the answer as the command asks.
const (
	Strict Mode = iota
	Loose
)

// logical is one command with its parts joined and its whole answer.
type logical struct {
	head [4]byte
	data []byte
	mask []bool
	resp []byte // without status word
	sw   [2]byte
}

// Player plays a recording as a card. It is a [keycard.Transport].
type Player struct {
	mu      sync.Mutex
	mode    Mode
	list    []Exchange
	logical []logical
	next    int
	chain   []byte
	pending []byte
	sw      [2]byte
}

// Play returns a new player at the beginning of the recording.
func (s *Session) Play(m Mode) *Player {
	p := &Player{mode: m, list: s.Exchanges, sw: [2]byte{0x69, 0x85}}
	if m == Loose {
		p.logical = join(s.Exchanges)
	}
	return p
}

// join puts chained commands and continued answers together.
func join(list []Exchange) []logical {
	var out []logical
	var data []byte
	var mask []bool
	for _, e := range list {
		c, _, err := keycard.ParseCommand(e.Command)
		if err != nil {
			continue // recorded on purpose by somebody; it cannot be asked for
		}
		n := len(e.Response) - 2
		if c.INS == 0xc0 && len(out) > 0 {
			l := &out[len(out)-1]
			l.resp = append(l.resp, e.Response[:n]...)
			l.sw = [2]byte(e.Response[n:])
			continue
		}
		data = append(data, c.Data...)
		part := make([]bool, len(c.Data))
		if e.Mask != nil {
			at := 5
			if len(e.Command) > 5 && e.Command[4] == 0 {
				at = 7
			}
			copy(part, e.Mask[min(at, len(e.Mask)):])
		}
		mask = append(mask, part...)
		if c.CLA&0x10 != 0 && e.Response[n] == 0x90 {
			continue
		}
		l := logical{head: [4]byte{c.CLA &^ 0x10, c.INS, c.P1, c.P2}, data: data, mask: mask}
		l.resp = append(l.resp, e.Response[:n]...)
		l.sw = [2]byte(e.Response[n:])
		out = append(out, l)
		data, mask = nil, nil
	}
	return out
}

func matches(want []byte, mask []bool, got []byte) bool {
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if want[i] != got[i] && (mask == nil || !mask[i]) {
			return false
		}
	}
	return true
}

// Transmit answers one command from the recording.
func (p *Player) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == Strict {
		if p.next >= len(p.list) {
			return nil, fmt.Errorf("replay: %s after the end: %w", keycard.MaskCommand(cmd), ErrNoMatch)
		}
		e := p.list[p.next]
		if !matches(e.Command, e.Mask, cmd) {
			return nil, fmt.Errorf("replay: %s where line %d has %s: %w", keycard.MaskCommand(cmd), e.Line, keycard.MaskCommand(e.Command), ErrNoMatch)
		}
		p.next++
		return bytes.Clone(e.Response), nil
	}
	c, ext, err := keycard.ParseCommand(cmd)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	le := c.Le
	if le == 0 || !ext && le > 256 {
		le = 256
	}
	if c.INS == 0xc0 {
		return p.deliver(le), nil
	}
	if p.chain = append(p.chain, c.Data...); len(p.chain) > 64<<10 {
		p.chain = nil
		return nil, fmt.Errorf("replay: %s: chained without end: %w", keycard.MaskCommand(cmd), ErrNoMatch)
	}
	if c.CLA&0x10 != 0 {
		return []byte{0x90, 0}, nil
	}
	data := p.chain
	p.chain = nil
	head := [4]byte{c.CLA, c.INS, c.P1, c.P2}
	for i := range p.logical {
		at := (p.next + i) % len(p.logical)
		if l := p.logical[at]; l.head == head && matches(l.data, l.mask, data) {
			p.next = at + 1
			p.pending, p.sw = bytes.Clone(l.resp), l.sw
			return p.deliver(le), nil
		}
	}
	return nil, fmt.Errorf("replay: %s: %w", keycard.MaskCommand(cmd), ErrNoMatch)
}

func (p *Player) deliver(le int) []byte {
	n := min(le, len(p.pending))
	out := append(make([]byte, 0, n+2), p.pending[:n]...)
	p.pending = p.pending[n:]
	if left := len(p.pending); left > 0 {
		return append(out, 0x61, byte(min(left, 256)))
	}
	return append(out, p.sw[:]...)
}

// Rest returns how many exchanges of the recording lie behind the one that was
// played last: with Strict those that nobody has asked for yet. With Loose a
// command in several parts counts as one.
func (p *Player) Rest() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == Loose {
		return len(p.logical) - p.next
	}
	return len(p.list) - p.next
}

// Close does nothing.
func (p *Player) Close() error { return nil }

// Recorder writes down what passes between a card and its user.
type Recorder struct {
	t      keycard.Transport
	mu     sync.Mutex
	w      io.Writer
	secret bool // the answer that is coming in pieces
	err    error
}

// NewRecorder makes a recorder that passes everything on to t and writes it
// to w, with what [keycard.SecretData] and [keycard.SecretResponse] name
// masked.
func NewRecorder(t keycard.Transport, w io.Writer) *Recorder { return &Recorder{t: t, w: w} }

// Transport returns the recorder as a transport. If the transport below is a
// [keycard.Locker] or [keycard.Keypad], so is the result.
func (r *Recorder) Transport() keycard.Transport {
	l, isLocker := r.t.(keycard.Locker)
	k, isKeypad := r.t.(keycard.Keypad)
	switch {
	case isLocker && isKeypad:
		return struct {
			*Recorder
			keycard.Locker
			keycard.Keypad
		}{r, l, k}
	case isLocker:
		return struct {
			*Recorder
			keycard.Locker
		}{r, l}
	case isKeypad:
		return struct {
			*Recorder
			keycard.Keypad
		}{r, k}
	}
	return r
}

// Comment writes a comment line.
func (r *Recorder) Comment(s string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.write("# " + strings.ReplaceAll(s, "\n", " ") + "\n")
}

func (r *Recorder) write(s string) {
	if _, err := io.WriteString(r.w, s); err != nil && r.err == nil {
		r.err = fmt.Errorf("replay: %w", err)
	}
}

// Transmit passes a command on.
func (r *Recorder) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	line := "> " + keycard.MaskCommand(cmd) + "\n"
	if len(cmd) >= 4 && cmd[1] != 0xc0 {
		r.secret = keycard.SecretResponse(cmd)
	}
	resp, err := r.t.Transmit(ctx, cmd)
	if err != nil {
		r.write("# " + strings.TrimSpace(line) + " failed: " + strings.ReplaceAll(err.Error(), "\n", " ") + "\n")
		return nil, err
	}
	shown := hex.EncodeToString(resp)
	if n := 2 * (len(resp) - 2); r.secret && n > 0 {
		shown = strings.Repeat("x", n) + shown[n:]
	}
	r.write(line + "< " + shown + "\n")
	return resp, nil
}

// ATR returns the card's answer to reset if the transport below knows it.
func (r *Recorder) ATR() []byte {
	if a, ok := r.t.(keycard.ATRer); ok {
		return a.ATR()
	}
	return nil
}

// MaxData returns the limit of the transport below, 0 if it has none: see
// [keycard.DataLimiter].
func (r *Recorder) MaxData() int {
	if l, ok := r.t.(keycard.DataLimiter); ok {
		return l.MaxData()
	}
	return 0
}

// Err returns the first error of writing.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close closes the transport below, not the writer.
func (r *Recorder) Close() error { return r.t.Close() }
