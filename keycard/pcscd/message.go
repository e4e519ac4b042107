package pcscd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"signalbox.example/keycard"
)

// DefaultSocket is where pcscd listens.
const DefaultSocket = "/run/pcscd/pcscd.comm"

// ErrNoDaemon: nothing listens on pcscd's socket.
var ErrNoDaemon = errors.New("pcscd is not running")

// Commands of the protocol.
const (
	cmdEstablish  = 0x01
	cmdRelease    = 0x02
	cmdConnect    = 0x04
	cmdReconnect  = 0x05
	cmdDisconnect = 0x06
	cmdBegin      = 0x07
	cmdEnd        = 0x08
	cmdTransmit   = 0x09
	cmdControl    = 0x0a
	cmdVersion    = 0x11
	cmdReaders    = 0x12
	cmdWait       = 0x13
)

// Error is a refusal by the daemon.
type Error struct {
	Op   string
	Code uint32 // PC/SC's number, such as 0x8010000B
}

func (e *Error) Error() string {
	if s := codeText(e.Code); s != "" {
		return fmt.Sprintf("pcscd: %s: %s (%08X)", e.Op, s, e.Code)
	}
	return fmt.Sprintf("pcscd: %s: error %08X", e.Op, e.Code)
}

// Unwrap returns keycard's error for the number, or nil.
func (e *Error) Unwrap() error {
	switch e.Code {
	case codeBusy:
		return keycard.ErrBusy
	case codeReset:
		return keycard.ErrCardReset
	case codeRemoved, codeUnknownReader, codeReaderGone, 0x8010002f, codeInvalidHandle:
		return keycard.ErrRemoved
	case codeNoCard, 0x80100066, 0x80100067:
		return keycard.ErrNoCard
	}
	return nil
}

const (
	codeInvalidHandle = 0x80100003
	codeUnknownReader = 0x80100009
	codeBusy          = 0x8010000b
	codeNoCard        = 0x8010000c
	codeReaderGone    = 0x80100017
	codeVersion       = 0x8010001e
	codeReset         = 0x80100068
	codeRemoved       = 0x80100069
)

func codeText(code uint32) string {
	switch code {
	case 0x80100001:
		return "internal error"
	case 0x80100002:
		return "cancelled"
	case codeInvalidHandle:
		return "invalid handle"
	case 0x80100004:
		return "invalid parameter"
	case 0x80100008:
		return "buffer too small"
	case codeUnknownReader:
		return "unknown reader"
	case 0x8010000a:
		return "timeout"
	case codeBusy:
		return "the reader is in use by another program"
	case codeNoCard:
		return "no card in the reader"
	case 0x8010000f:
		return "protocol mismatch"
	case 0x80100016:
		return "the card did not answer"
	case codeReaderGone:
		return "reader unavailable"
	case 0x8010001d:
		return "service not available"
	case codeVersion:
		return "service stopped or of another version"
	case 0x8010001f:
		return "unsupported feature"
	case 0x8010002e:
		return "no readers"
	case 0x80100066:
		return "the card does not respond"
	case 0x80100067:
		return "the card has no power"
	case codeReset:
		return "the card was reset"
	case codeRemoved:
		return "the card was removed"
	}
	return ""
}

var order = binary.NativeEndian

// Service is a pcscd. The zero value is the system's.
type Service struct {
	// Socket is the path of the daemon's socket; empty means the environment
	// variable PCSCLITE_CSOCK_NAME or else [DefaultSocket].
	Socket string
}

func (s Service) path() string {
	if s.Socket != "" {
		return s.Socket
	}
	if p := os.Getenv("PCSCLITE_CSOCK_NAME"); p != "" {
		return p
	}
	return DefaultSocket
}

// link is one connection to the daemon. Calls take turns.
type link struct {
	turn   chan struct{}
	conn   net.Conn
	ctx    uint32 // PC/SC context
	buf    []byte
	mu     sync.Mutex // guards broken
	broken error
}

// dial connects and agrees on a version.
func (s Service) dial(ctx context.Context) (*link, error) {
	major, minor := int32(4), int32(4)
	for try := 0; ; try++ {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", s.path())
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("pcscd: %s: %w (%v)", s.path(), ErrNoDaemon, err)
		}
		l := &link{conn: conn, turn: make(chan struct{}, 1)}
		l.turn <- struct{}{}
		b := make([]byte, 12)
		order.PutUint32(b, uint32(major))
		order.PutUint32(b[4:], uint32(minor))
		if err := l.call(ctx, cmdVersion, b, nil, b); err != nil {
			conn.Close()
			return nil, err
		}
		rv := order.Uint32(b[8:])
		if rv == 0 {
			return l, nil
		}
		conn.Close()
		m, n := int32(order.Uint32(b)), int32(order.Uint32(b[4:]))
		if try > 0 || m != 4 || n < 4 || m == major && n == minor {
			return nil, fmt.Errorf("pcscd: the daemon speaks protocol %d:%d: %w", m, n, &Error{"agree on a version", rv})
		}
		major, minor = m, n
	}
}

// establish makes the PC/SC context that other calls need.
func (l *link) establish(ctx context.Context) error {
	b := make([]byte, 12)
	order.PutUint32(b, 2) // system scope
	if err := l.call(ctx, cmdEstablish, b, nil, b); err != nil {
		return err
	}
	l.ctx = order.Uint32(b[4:])
	return result("establish a context", order.Uint32(b[8:]))
}

func result(op string, rv uint32) error {
	if rv == 0 {
		return nil
	}
	return &Error{op, rv}
}

// take waits for the turn.
func (l *link) take(ctx context.Context) error {
	select {
	case <-l.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) give() { l.turn <- struct{}{} }

// call sends one message and reads a reply of exactly len(reply) octets.
func (l *link) call(ctx context.Context, cmd uint32, body, extra, reply []byte) error {
	if err := l.take(ctx); err != nil {
		return err
	}
	defer l.give()
	return l.talk(ctx, func() error { return l.exchange(cmd, body, extra, reply) })
}

// exchange writes header, body and extra octets in one go and reads the reply.
func (l *link) exchange(cmd uint32, body, extra, reply []byte) error {
	b := order.AppendUint32(l.buf[:0], uint32(len(body)))
	b = order.AppendUint32(b, cmd)
	b = append(append(b, body...), extra...)
	l.buf = b
	_, err := l.conn.Write(b)
	if len(extra) > 0 {
		clear(b) // may hold a PIN
	}
	if err != nil {
		return err
	}
	_, err = io.ReadFull(l.conn, reply)
	return err
}

// talk runs f, which reads and writes the socket, and makes it end when ctx
// does. After an error the connection cannot be used any more: nobody knows
// what of a message has passed.
func (l *link) talk(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	broken := l.broken
	l.mu.Unlock()
	if broken != nil {
		return broken
	}
	var stop func() bool
	var fired chan struct{}
	if ctx.Done() != nil {
		fired = make(chan struct{})
		stop = context.AfterFunc(ctx, func() {
			l.conn.SetDeadline(time.Unix(1, 0))
			close(fired)
		})
	}
	err := f()
	if stop != nil && !stop() && err == nil {
		// The context ended just after the last octet came: its deadline
		// must not hit the next call.
		<-fired
		l.conn.SetDeadline(time.Time{})
	}
	if err == nil {
		return nil
	}
	l.shut(fmt.Errorf("pcscd: %w", keycard.ErrClosed))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("pcscd: the daemon went away: %w (%v)", keycard.ErrClosed, err)
}

// shut closes the socket; later calls return err.
func (l *link) shut(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = err
		l.conn.Close()
	}
}

// readerSize is the size of one reader's state.
const (
	readerSize = 184
	maxReaders = 16
)

// Reader is a card reader and what is in it.
type Reader struct {
	Name    string
	Present bool   // a card is in it
	ATR     []byte // the card's answer to reset, nil without one
	// Mute: a card is in it but does not answer.
	Mute bool
	// Users is how many programs are connected to the card; -1 means one,
	// exclusively.
	Users int
	// Events counts insertions and removals since the daemon started.
	Events uint32
}

func parseReaders(b []byte) []Reader {
	var out []Reader
	for ; len(b) >= readerSize; b = b[readerSize:] {
		name, _, _ := bytes.Cut(b[:128], []byte{0})
		if len(name) == 0 {
			continue
		}
		state := order.Uint32(b[132:])
		r := Reader{
			Name: string(name), Events: order.Uint32(b[128:]), Users: int(int32(order.Uint32(b[136:]))),
			Present: state&0x04 != 0,
		}
		n := order.Uint32(b[176:])
		if r.Present && n > 0 && n <= 33 {
			r.ATR = bytes.Clone(b[140 : 140+n])
		}
		r.Mute = r.Present && state&0x10 == 0 && r.ATR == nil
		out = append(out, r)
	}
	return out
}

// Readers is [Service.Readers] with the system's pcscd.
func Readers(ctx context.Context) ([]Reader, error) { return Service{}.Readers(ctx) }

// Readers lists the daemon's readers, those without a card too.
func (s Service) Readers(ctx context.Context) ([]Reader, error) {
	l, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer l.conn.Close()
	b := make([]byte, maxReaders*readerSize)
	if err := l.call(ctx, cmdReaders, nil, nil, b); err != nil {
		return nil, err
	}
	return parseReaders(b), nil
}
