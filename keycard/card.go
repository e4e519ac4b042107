package keycard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// Transport carries encoded commands to a card. The packages keycard/pcscd,
// keycard/scd, keycard/softcard and keycard/replay have one each.
//
// Transmit sends one command of at least four octets and returns the response,
// data and status word, which then belongs to the caller. It must not keep cmd.
// When ctx ends it returns its error promptly, even if that means giving the
// connection up. A card that is gone is reported with an error that wraps
// [ErrRemoved], one that was reset by somebody else with [ErrCardReset].
//
// A Card calls its transport from one goroutine at a time.
type Transport interface {
	Transmit(ctx context.Context, cmd []byte) ([]byte, error)
	Close() error
}

// Locker is a [Transport] that can keep others away from the card for a
// while. Begin waits until the card is free. When the card was reset since the
// last time, Begin connects again and returns [ErrCardReset], with the lock
// held. End(true) resets the card, so that nobody finds it unlocked.
type Locker interface {
	Begin(ctx context.Context) error
	End(reset bool) error
}

// ATRer is a [Transport] that knows the card's answer to reset. It saves an APDU
// on cards whose historical octets announce extended length: the first long
// answer then comes in one piece.
type ATRer interface {
	ATR() []byte
}

// DataLimiter is a [Transport] whose reader limits command data to so many
// octets; 0 means that it does not say. With a limit of 256 or less extended
// length is not used, with a higher one it is up to there.
type DataLimiter interface {
	MaxData() int
}

// Option changes how [Open] and the Card work.
type Option func(*options)

type options struct {
	log        func(LogEntry)
	touch      func(slot Slot, waiting bool)
	touchDelay time.Duration
	lastTry    bool
	maxKDF     uint32
	kdf        *KDF
	short      bool
	pins       PINFunc
}

// WithLog calls f after every APDU with its masked octets, before the method
// that sent it returns. f must not call the Card.
func WithLog(f func(LogEntry)) Option { return func(o *options) { o.log = f } }

// WithTouch calls f when the card waits for a touch: with true once a command
// that uses a key with a touch policy has been under way for delay, with false
// when it is over. The first call comes from another goroutine; neither may
// call the Card. A delay of zero means 100 ms; a cached touch then mostly goes
// unnoticed.
func WithTouch(delay time.Duration, f func(slot Slot, waiting bool)) Option {
	if delay <= 0 {
		delay = 100 * time.Millisecond
	}
	return func(o *options) { o.touch, o.touchDelay = f, delay }
}

// WithLastTry allows a PIN to be tried when only one try is left. Without it
// such calls return [ErrLastTry] and send nothing.
func WithLastTry() Option { return func(o *options) { o.lastTry = true } }

// WithMaxKDFCount sets the most octets that the card's KDF object may ask to
// be hashed per PIN; more gives [ErrKDFCount]. The default is 1<<28, about a
// second of work.
func WithMaxKDFCount(n uint32) Option { return func(o *options) { o.maxKDF = n } }

// WithKDF names the card's KDF settings as an earlier session read them (see
// [Card.KDF]); it saves [Open] a command on cards that may have one. A zero KDF
// means that the card uses none. The caller vouches for them: with settings that
// are out of date the right PIN is a wrong one and costs a try.
func WithKDF(k KDF) Option { return func(o *options) { o.kdf = &k } }

// WithShortLength uses no extended length, whatever the card says, for readers
// that cannot pass long commands.
func WithShortLength() Option { return func(o *options) { o.short = true } }

// session is the state that all handles of one open card share.
type session struct {
	t    Transport
	opt  options
	lock chan struct{} // holds one token while nobody uses the card

	info       *Info
	published  atomic.Pointer[Info] // the same, for those who do not hold the lock
	extended   bool
	chaining   bool
	maxCmd     int
	maxResp    int
	limit      int     // of the reader, octets of command data; 0 none
	verified   [3]bool // by PINMode
	pins       bool    // some PIN was verified since the last reset
	kdf        *KDF
	buf        []byte
	hideAnswer bool
	closed     bool

	commands, apdus int
	infoAt          int // value of commands when info was read
}

// Card is an open OpenPGP card. Its methods may be called from several
// goroutines: they take turns. With a transport that is a [Locker] each call
// is one transaction; see [Card.Do] for longer ones.
type Card struct {
	s    *session
	held bool
}

// Open selects the OpenPGP application on the card behind t and reads its
// application related data: two commands, three APDUs on cards that answer in
// pieces. A card that may have a KDF is also asked for its settings, one command
// more, unless [WithKDF] tells them. The Card owns t from then on: use
// [Card.Close]. When Open fails it has closed t.
//
// [ErrTerminated] means that the card must be activated first, see [Reset];
// [ErrNoCard] that what is there is no OpenPGP card.
func Open(ctx context.Context, t Transport, opts ...Option) (*Card, error) {
	s := &session{t: t, lock: make(chan struct{}, 1), buf: make([]byte, 0, 300)}
	s.opt.maxKDF = 1 << 28
	for _, o := range opts {
		o(&s.opt)
	}
	s.kdf = s.opt.kdf
	if l, ok := t.(DataLimiter); ok && l.MaxData() > 0 {
		s.limit = l.MaxData()
		s.opt.short = s.opt.short || s.limit <= 256
	}
	s.lock <- struct{}{}
	c := &Card{s: s}
	unlock, err := c.acquire(ctx)
	if err == nil {
		if err = s.open(ctx); err == nil {
			unlock()
			return c, nil
		}
		unlock()
	}
	t.Close()
	return nil, err
}

// aid is the application identifier without version and serial number.
var aid = [...]byte{0xd2, 0x76, 0x00, 0x01, 0x24, 0x01}

func (s *session) open(ctx context.Context) error {
	s.info, s.extended, s.chaining = nil, false, false
	if a, ok := s.t.(ATRer); ok && !s.opt.short {
		s.extended = ParseHistorical(atrHistorical(a.ATR())).ExtendedLength
	}
	if err := s.selectApp(ctx); err != nil {
		return err
	}
	b, sw, err := s.send(ctx, Command{INS: insGetData, P2: doApplication, Le: s.le()})
	if err == nil && sw == swLength && s.extended {
		s.extended = false // the answer to reset promised too much
		b, sw, err = s.send(ctx, Command{INS: insGetData, P2: doApplication, Le: s.le()})
	}
	if err != nil {
		return err
	}
	if err := status("read application data", insGetData, sw); err != nil {
		return err
	}
	if err := s.adopt(b); err != nil {
		return err
	}
	if s.kdf == nil {
		// Before the first PIN, so that its use is two commands; a card that
		// gives nothing sensible here is asked again when a PIN is to go out.
		var refused *StatusError
		if _, err := s.readKDF(ctx); err != nil && !errors.As(err, &refused) && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnsupported) {
			return err
		}
		s.infoAt = s.commands // nothing changed meanwhile
	}
	return nil
}

// le is what to ask for when more than 256 octets may come.
func (s *session) le() int {
	if s.extended {
		return 65536
	}
	return 256
}

// adopt takes over what new application related data say.
func (s *session) adopt(b []byte) error {
	info, err := ParseInfo(b)
	if err != nil {
		return err
	}
	s.info, s.infoAt = info, s.commands
	s.published.Store(info)
	c := info.Capabilities
	s.extended = c.ExtendedLength && !s.opt.short
	s.chaining = c.Chaining
	s.maxCmd, s.maxResp = c.MaxCommand, c.MaxResponse
	if s.maxResp < 256 || info.Major < 3 {
		s.maxCmd, s.maxResp = 0, 0
	}
	if !c.KDF && s.kdf == nil {
		s.kdf = &KDF{}
	}
	return nil
}

func (s *session) selectApp(ctx context.Context) error {
	s.forget()
	_, sw, err := s.send(ctx, Command{INS: insSelect, P1: 4, Data: aid[:]})
	switch {
	case err != nil:
		return err
	case sw == swOK:
		return nil
	case sw == swTerminated:
		return status("select the OpenPGP application", insSelect, sw)
	}
	return &StatusError{Op: "select the OpenPGP application", INS: insSelect, SW: sw, Retries: -1, err: ErrNoCard}
}

// forget drops what was known of verified PINs.
func (s *session) forget() { s.verified = [3]bool{} }

// lost notes an error of the transport: whatever was verified may no longer be.
func (s *session) lost(error) { s.forget() }

// acquire takes the card for one operation. The returned function gives it
// back. Inside [Card.Do] it does nothing.
func (c *Card) acquire(ctx context.Context) (func(), error) {
	s := c.s
	if c.held {
		if s.closed {
			return nil, fmt.Errorf("keycard: %w", ErrClosed)
		}
		return func() {}, nil
	}
	select {
	case <-s.lock:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.closed {
		s.lock <- struct{}{}
		return nil, fmt.Errorf("keycard: %w", ErrClosed)
	}
	l, ok := s.t.(Locker)
	if !ok {
		return func() { s.lock <- struct{}{} }, nil
	}
	err := l.Begin(ctx)
	if errors.Is(err, ErrCardReset) {
		s.forget()
		s.pins = false
		err = nil
		if s.info != nil { // not while opening
			if err = s.selectApp(ctx); err != nil {
				l.End(false)
			}
		}
	}
	if err != nil {
		s.lost(err)
		s.lock <- struct{}{}
		return nil, err
	}
	return func() { l.End(false); s.lock <- struct{}{} }, nil
}

// Do calls f with a handle on the same card while it holds the transaction,
// so that no other program and no other goroutine comes between the calls. f
// must use only the handle it gets, and not after it returns.
func (c *Card) Do(ctx context.Context, f func(c *Card) error) error {
	release, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	return f(&Card{s: c.s, held: true})
}

// Close ends the session. If a PIN was verified the card is reset (over a
// [Locker]) or the PINs are logged out, so that the next program does not find
// it unlocked; the error says if the reset failed while the card is still there.
// The transport is closed too. Close waits for the operation that is under way;
// further calls do nothing.
func (c *Card) Close() error {
	s := c.s
	if c.held {
		return fmt.Errorf("keycard: Close inside Do")
	}
	<-s.lock
	defer func() { s.lock <- struct{}{} }()
	if s.closed {
		return nil
	}
	s.closed = true
	var open error
	if s.pins {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if l, ok := s.t.(Locker); ok {
			if open = l.Begin(ctx); open == nil {
				open = l.End(true)
			} else if errors.Is(open, ErrCardReset) {
				l.End(false)
			}
		} else if s.selectApp(ctx) != nil { // SELECT drops every PIN; otherwise say it
			for m := PINSign; m <= PINAdmin; m++ {
				s.transmit(ctx, []byte{0, insVerify, 0xff, m.reference()}, false)
			}
		}
	}
	clear(s.buf[:cap(s.buf)])
	err := s.t.Close()
	switch {
	case open == nil, errors.Is(open, ErrCardReset), errors.Is(open, ErrRemoved), errors.Is(open, ErrNoCard), errors.Is(open, ErrClosed):
		return err
	}
	return errors.Join(fmt.Errorf("keycard: the card was not reset, a PIN may still be verified: %w", open), err)
}

// Info returns what the card said about itself when it was last asked, at
// least by [Open]. It sends nothing and does not wait for operations under way.
func (c *Card) Info() *Info { return c.s.published.Load() }

// Transport returns the transport the card was opened on.
func (c *Card) Transport() Transport { return c.s.t }

// Count returns how many commands and how many APDUs were sent so far: a
// chained command, or one whose answer came in pieces, counts as several
// APDUs.
func (c *Card) Count() (commands, apdus int) {
	if !c.held {
		<-c.s.lock
		defer func() { c.s.lock <- struct{}{} }()
	}
	return c.s.commands, c.s.apdus
}

// Refresh reads the application related data again, one command, and returns
// what [Card.Info] returns from then on.
func (c *Card) Refresh(ctx context.Context) (*Info, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := c.s.refresh(ctx); err != nil {
		return nil, err
	}
	return c.s.info, nil
}

func (s *session) refresh(ctx context.Context) error {
	b, err := s.get(ctx, doApplication, "read application data")
	if err != nil {
		return err
	}
	return s.adopt(b)
}

// Send carries out one command of the caller's own, with chaining and
// 61xx/6Cxx as everywhere, and returns data and status word. Every status word
// is returned without an error. If the command changes PIN states or keys the
// Card does not notice; call [Card.Refresh] and, for PINs, [Card.Logout].
func (c *Card) Send(ctx context.Context, cmd Command) ([]byte, uint16, error) {
	release, err := c.acquire(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	return c.s.send(ctx, cmd)
}

// get reads one data object.
func (s *session) get(ctx context.Context, tag uint16, op string) ([]byte, error) {
	b, sw, err := s.send(ctx, Command{INS: insGetData, P1: byte(tag >> 8), P2: byte(tag), Le: s.le()})
	if err != nil {
		return nil, err
	}
	if err := status(op, insGetData, sw); err != nil {
		return nil, err
	}
	return b, nil
}

// getShort reads an object of at most 256 octets.
func (s *session) getShort(ctx context.Context, tag uint16, op string) ([]byte, error) {
	b, sw, err := s.send(ctx, Command{INS: insGetData, P1: byte(tag >> 8), P2: byte(tag), Le: 256})
	if err != nil {
		return nil, err
	}
	if err := status(op, insGetData, sw); err != nil {
		return nil, err
	}
	return b, nil
}

// put writes one data object.
func (s *session) put(ctx context.Context, tag uint16, v []byte, op string) error {
	_, sw, err := s.send(ctx, Command{INS: insPutData, P1: byte(tag >> 8), P2: byte(tag), Data: v})
	if err != nil {
		return err
	}
	return status(op, insPutData, sw)
}
