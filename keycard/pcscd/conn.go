package pcscd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"signalbox.example/keycard"
)

// Share says whether others may use the card at the same time.
type Share uint8

// Shared lets other programs connect too; transactions keep them apart.
// Exclusive keeps them out as long as the connection lasts.
const (
	Shared Share = iota
	Exclusive
)

// Conn is a connection to the card in a reader. It is a [keycard.Transport],
// a [keycard.Locker] and, on readers that have one, a [keycard.Keypad].
type Conn struct {
	l        *link
	name     string
	share    Share
	card     uint32
	protocol atomic.Uint32 // 1 T=0, 2 T=1
	atr      []byte
	features map[byte]uint32 // control codes of PC/SC part 10
	maxData  int
	body     []byte
	recv     []byte
}

var (
	_ keycard.Transport = (*Conn)(nil)
	_ keycard.Locker    = (*Conn)(nil)
	_ keycard.Keypad    = (*Conn)(nil)
	_ keycard.ATRer     = (*Conn)(nil)
)

// Connect is [Service.Connect] with the system's pcscd.
func Connect(ctx context.Context, reader string, share Share) (*Conn, error) {
	return Service{}.Connect(ctx, reader, share)
}

// Connect connects to the card in the reader of this name. If there is none
// of exactly this name, the first whose name contains it, in any case, is
// taken; an empty name means the first reader with a card. Without a card the
// error wraps [keycard.ErrNoCard], with one that is held by another program
// [keycard.ErrBusy].
func (s Service) Connect(ctx context.Context, reader string, share Share) (*Conn, error) {
	l, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := &Conn{l: l, share: share, body: make([]byte, 32), recv: make([]byte, 32)}
	if err := c.connect(ctx, reader); err != nil {
		l.conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) connect(ctx context.Context, reader string) error {
	b := make([]byte, maxReaders*readerSize)
	if err := c.l.call(ctx, cmdReaders, nil, nil, b); err != nil {
		return err
	}
	r, err := choose(parseReaders(b), reader)
	if err != nil {
		return err
	}
	c.name, c.atr = r.Name, r.ATR
	if err := c.l.establish(ctx); err != nil {
		return err
	}
	b = b[:152]
	clear(b)
	order.PutUint32(b, c.l.ctx)
	copy(b[4:131], c.name)
	order.PutUint32(b[132:], c.mode())
	order.PutUint32(b[136:], 3) // T=0 or T=1
	if err := c.l.call(ctx, cmdConnect, b, nil, b); err != nil {
		return err
	}
	if err := result("connect to "+c.name, order.Uint32(b[148:])); err != nil {
		return err
	}
	c.card = order.Uint32(b[140:])
	c.protocol.Store(order.Uint32(b[144:]))
	return c.readFeatures(ctx)
}

// mode is PC/SC's number for the share mode.
func (c *Conn) mode() uint32 {
	if c.share == Exclusive {
		return 1
	}
	return 2
}

// choose picks a reader by name.
func choose(list []Reader, name string) (Reader, error) {
	if len(list) == 0 {
		return Reader{}, fmt.Errorf("pcscd: no card reader: %w", keycard.ErrNoCard)
	}
	for _, r := range list {
		if name == "" && r.Present || name != "" && r.Name == name {
			return r, nil
		}
	}
	if name == "" {
		return Reader{}, fmt.Errorf("pcscd: no card in any of %d readers: %w", len(list), keycard.ErrNoCard)
	}
	for _, r := range list {
		if strings.Contains(strings.ToLower(r.Name), strings.ToLower(name)) {
			return r, nil
		}
	}
	return Reader{}, fmt.Errorf("pcscd: no reader called %q: %w", name, keycard.ErrNoCard)
}

// Reader returns the reader's full name.
func (c *Conn) Reader() string { return c.name }

// ATR returns the card's answer to reset. The caller must not change it.
func (c *Conn) ATR() []byte { return c.atr }

// MaxData returns how many octets of command data the reader passes, 0 when
// it does not say.
func (c *Conn) MaxData() int { return c.maxData }

// maxResponse is the longest response that is read: 64 KiB and status word.
const maxResponse = 65536 + 2

// Transmit sends one encoded command to the card and returns its response, data
// and status word, which belongs to the caller. A command of fewer than four
// octets gives [keycard.ErrMalformed].
func (c *Conn) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	if len(cmd) < 4 {
		return nil, fmt.Errorf("pcscd: command of %d octets: %w", len(cmd), keycard.ErrMalformed)
	}
	if err := c.l.take(ctx); err != nil {
		return nil, err
	}
	defer c.l.give()
	var resp []byte
	b := c.body[:32]
	order.PutUint32(b, c.card)
	protocol := c.protocol.Load()
	order.PutUint32(b[4:], protocol)
	order.PutUint32(b[8:], 8) // size of the protocol structure, not looked at
	order.PutUint32(b[12:], uint32(len(cmd)))
	order.PutUint32(b[16:], protocol)
	order.PutUint32(b[20:], 8)
	order.PutUint32(b[24:], maxResponse)
	order.PutUint32(b[28:], 0)
	r := c.recv[:32]
	err := c.l.talk(ctx, func() error {
		if err := c.l.exchange(cmdTransmit, b, cmd, r); err != nil {
			return err
		}
		if order.Uint32(r[28:]) != 0 {
			return nil
		}
		n := order.Uint32(r[24:])
		if n > maxResponse {
			return fmt.Errorf("response of %d octets", n)
		}
		resp = make([]byte, n)
		_, err := io.ReadFull(c.l.conn, resp)
		return err
	})
	if err != nil {
		return nil, err
	}
	if rv := order.Uint32(r[28:]); rv != 0 {
		return nil, &Error{"transmit", rv}
	}
	return resp, nil
}

// small does a call with a structure of a few numbers, the last of which is
// the result.
func (c *Conn) small(ctx context.Context, op string, cmd uint32, v ...uint32) ([]byte, error) {
	b := make([]byte, 0, 24)
	for _, x := range v {
		b = order.AppendUint32(b, x)
	}
	b = order.AppendUint32(b, 0)
	if err := c.l.call(ctx, cmd, b, nil, b); err != nil {
		return nil, err
	}
	return b, result(op, order.Uint32(b[len(b)-4:]))
}

// Begin starts a transaction and waits until nobody else has one. After a
// reset by somebody else it connects anew and returns an error that wraps
// [keycard.ErrCardReset]; the transaction has begun then.
func (c *Conn) Begin(ctx context.Context) error {
	var reset error
	wait := 2 * time.Millisecond
	for {
		_, err := c.small(ctx, "begin a transaction", cmdBegin, c.card)
		switch {
		case err == nil:
			return reset
		case errors.Is(err, keycard.ErrCardReset) && reset == nil:
			if e := c.reconnect(ctx, 0); e != nil {
				return e
			}
			reset = err
		case errors.Is(err, keycard.ErrBusy):
			t := time.NewTimer(wait)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				return ctx.Err()
			}
			wait = min(2*wait, 50*time.Millisecond)
		default:
			return err
		}
	}
}

// reconnect takes the card up again; init 0 leaves it as it is, 1 resets it.
func (c *Conn) reconnect(ctx context.Context, init uint32) error {
	b, err := c.small(ctx, "connect again", cmdReconnect, c.card, c.mode(), 3, init, c.protocol.Load())
	if err == nil {
		c.protocol.Store(order.Uint32(b[16:]))
	}
	return err
}

// End ends a transaction; with reset the card is reset, which drops every
// verified PIN.
func (c *Conn) End(reset bool) error {
	d := uint32(0)
	if reset {
		d = 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := c.small(ctx, "end a transaction", cmdEnd, c.card, d)
	return err
}

// Close disconnects and leaves the card as it is.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	c.small(ctx, "disconnect", cmdDisconnect, c.card, 0)
	c.small(ctx, "release the context", cmdRelease, c.l.ctx)
	c.l.shut(fmt.Errorf("pcscd: %w", keycard.ErrClosed))
	return nil
}

// Features of PC/SC part 10.
const (
	featureVerify     = 0x06
	featureModify     = 0x07
	featureProperties = 0x12
	ctlGetFeatures    = 0x42000000 + 3400
)

// HasKeypad reports whether the reader has a keypad for PINs.
func (c *Conn) HasKeypad() bool { return c.features[featureVerify] != 0 }

// Control sends a control command to the reader's driver (PC/SC's SCardControl)
// and returns its answer, at most 264 octets.
func (c *Conn) Control(ctx context.Context, code uint32, data []byte) ([]byte, error) {
	if err := c.l.take(ctx); err != nil {
		return nil, err
	}
	defer c.l.give()
	const size = 264
	b := make([]byte, 24)
	order.PutUint32(b, c.card)
	order.PutUint32(b[4:], code)
	order.PutUint32(b[8:], uint32(len(data)))
	order.PutUint32(b[12:], size)
	var out []byte
	err := c.l.talk(ctx, func() error {
		if err := c.l.exchange(cmdControl, b, data, b); err != nil {
			return err
		}
		if order.Uint32(b[20:]) != 0 {
			return nil
		}
		n := order.Uint32(b[16:])
		if n > size {
			return fmt.Errorf("answer of %d octets", n)
		}
		out = make([]byte, n)
		_, err := io.ReadFull(c.l.conn, out)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, result("control the reader", order.Uint32(b[20:]))
}

// readFeatures asks the driver what the reader can do. Most drivers of
// simple readers refuse, which is no error.
func (c *Conn) readFeatures(ctx context.Context) error {
	var refused *Error
	b, err := c.Control(ctx, ctlGetFeatures, nil)
	if err != nil {
		if errors.As(err, &refused) {
			return nil
		}
		return err
	}
	c.features = parseFeatures(b)
	code := c.features[featureProperties]
	if code == 0 {
		return nil
	}
	if b, err = c.Control(ctx, code, nil); err != nil {
		if errors.As(err, &refused) {
			return nil
		}
		return err
	}
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		if v := b[2 : 2+int(b[1])]; b[0] == 0x0a && len(v) == 4 { // dwMaxAPDUDataSize, lowest octet first
			c.maxData = int(v[0]) | int(v[1])<<8 | int(v[2])<<16
		}
		b = b[2+int(b[1]):]
	}
	return nil
}

// parseFeatures reads the list of features: tag, length 4, control code with
// the highest octet first.
func parseFeatures(b []byte) map[byte]uint32 {
	out := map[byte]uint32{}
	for ; len(b) >= 6 && b[1] == 4; b = b[6:] {
		out[b[0]] = uint32(b[2])<<24 | uint32(b[3])<<16 | uint32(b[4])<<8 | uint32(b[5])
	}
	return out
}

// VerifyKeypad lets the reader ask for a PIN of min to max octets and send it
// with the command: see [keycard.Keypad]. A reader without a keypad gives
// [keycard.ErrUnsupported].
func (c *Conn) VerifyKeypad(ctx context.Context, cmd []byte, min, max int) ([]byte, error) {
	code := c.features[featureVerify]
	if code == 0 {
		return nil, fmt.Errorf("pcscd: %s has no keypad: %w", c.name, keycard.ErrUnsupported)
	}
	b := []byte{0, 0, 0x82, 0, 0} // reader's timeouts; octets, ASCII, left; no length
	b = order.AppendUint16(b, uint16(min)<<8|uint16(max))
	b = append(b, 2, 1) // ends with the OK key; one message
	b = order.AppendUint16(b, 0x0409)
	b = append(b, 0, 0, 0, 0)
	b = order.AppendUint32(b, uint32(len(cmd)))
	return c.Control(ctx, code, append(b, cmd...))
}

// ModifyKeypad lets the reader ask for the old PIN and twice for the new one,
// each of min to max octets, and send both with the command.
func (c *Conn) ModifyKeypad(ctx context.Context, cmd []byte, min, max int) ([]byte, error) {
	code := c.features[featureModify]
	if code == 0 {
		return nil, fmt.Errorf("pcscd: %s cannot change PINs: %w", c.name, keycard.ErrUnsupported)
	}
	b := []byte{0, 0, 0x82, 0, 0, 0, 0} // as above; offsets of old and new PIN
	b = order.AppendUint16(b, uint16(min)<<8|uint16(max))
	b = append(b, 3, 2, 3) // old PIN and confirmation; OK key; three messages
	b = order.AppendUint16(b, 0x0409)
	b = append(b, 0, 1, 2, 0, 0, 0)
	b = order.AppendUint32(b, uint32(len(cmd)))
	return c.Control(ctx, code, append(b, cmd...))
}
