package conn

import (
	"context"
	"encoding/binary"
	"errors"
	"iter"
	"os"
	"slices"
	"sync"
	"time"

	"signalbox.example/xfrm"
)

var (
	// ErrLost means that the receive buffer overflowed and messages are gone:
	// events, or the answers to requests, whose outcome is then not known.
	ErrLost = errors.New("conn: receive buffer overflowed, messages were lost")
	// ErrInterrupted means that what was dumped changed under way in each of
	// five tries.
	ErrInterrupted = errors.New("conn: dump interrupted by changes")
	// ErrClosed means that the connection was closed. It is [os.ErrClosed].
	ErrClosed = os.ErrClosed
)

// Options of a connection. The zero value, and nil, work.
type Options struct {
	// NetNS is a file descriptor of the network namespace to work in, which
	// may be closed afterwards; 0 is the namespace of the calling thread.
	NetNS int
	// ReadBuffer and WriteBuffer are the socket's buffers in octets; 0 means 4
	// MiB and 1 MiB. Without CAP_NET_ADMIN in the first user namespace the
	// system's limits apply, and batches are sent in parts that fit.
	ReadBuffer, WriteBuffer int
	// Unchecked sends requests without xfrm's Check.
	Unchecked bool
	// Kernel, unless zero, makes the checks those for this kernel, as
	// [xfrm.SA.CheckOn] does.
	Kernel xfrm.Kernel
}

const (
	defaultRead  = 4 << 20
	defaultWrite = 1 << 20
	// chunk is the most that is sent at once. The kernel refuses more than
	// the send buffer holds; beyond a few messages a larger one gains nothing.
	chunk = 128 << 10
	// datagram is the room for one datagram: the kernel fills dumps up to 32
	// KiB, single messages may be larger.
	datagram = 128 << 10
	// ackRoom is what one unread acknowledgement takes in the receive buffer,
	// as the kernel counts, with a text of usual length.
	ackRoom = 2048
)

// Conn is a connection to the kernel of one network namespace.
type Conn struct {
	o Options

	mu   sync.Mutex
	s    *socket
	seq  uint32
	in   []byte // receive buffer
	out  []byte // send buffer
	dump []byte // of the last dump, for reuse

	freeMu sync.Mutex
	free   []*part // of batches, for reuse
}

// Dial opens a connection to the kernel. o may be nil. The error wraps
// [errors.ErrUnsupported] where there is no XFRM.
func Dial(o *Options) (*Conn, error) {
	c := &Conn{in: make([]byte, datagram)}
	if o != nil {
		c.o = *o
	}
	if c.o.ReadBuffer == 0 {
		c.o.ReadBuffer = defaultRead
	}
	if c.o.WriteBuffer == 0 {
		c.o.WriteBuffer = defaultWrite
	}
	ns := -1
	if c.o.NetNS > 0 {
		ns = c.o.NetNS
	}
	var err error
	if c.s, err = openSocket(ns, c.o.ReadBuffer, c.o.WriteBuffer); err != nil {
		return nil, err
	}
	return c, nil
}

// Close closes the connection. Calls that wait fail with [ErrClosed].
func (c *Conn) Close() error { return c.s.close() }

// past is a deadline that has always expired.
var past = time.Unix(1, 0)

// begin makes the context's end the end of waiting on the socket. The
// function it returns ends that.
func begin(ctx context.Context, s *socket) (end func(error) error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { _ = s.deadline(past); close(late) })
	return func(err error) error {
		if !stop() {
			<-late // or the deadline might be set after it was taken away, for all requests to come
			_ = s.deadline(time.Time{})
			if err != nil && ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
				return ctx.Err()
			}
		}
		return err
	}, nil
}

// build makes a message with the next sequence number in c.out.
func (c *Conn) build(flags uint16, f func(b []byte, h xfrm.Header) ([]byte, error)) (seq uint32, err error) {
	seq = c.seq + 1
	if c.out, err = f(c.out[:0], xfrm.Header{Flags: flags | xfrm.FlagRequest, Seq: seq}); err != nil {
		return 0, err
	}
	c.seq = seq
	return seq, nil
}

// wipe clears the send buffer, which may have held keys.
func (c *Conn) wipe() { clear(c.out[:cap(c.out)]) }

// request sends one message and waits for its acknowledgement. Messages that
// answer it are handed to got, if that is not nil.
func (c *Conn) request(ctx context.Context, f func(b []byte, h xfrm.Header) ([]byte, error), got func(xfrm.Message) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	end, err := begin(ctx, c.s)
	if err != nil {
		return err
	}
	return end(c.exchange(f, got))
}

func (c *Conn) exchange(f func(b []byte, h xfrm.Header) ([]byte, error), got func(xfrm.Message) error) error {
	used := 0
	defer func() {
		c.wipe()
		clear(c.in[:used])
	}()
	seq, err := c.build(xfrm.FlagAck, f)
	if err != nil {
		return err
	}
	if err := c.s.send(c.out); err != nil {
		return err
	}
	var failed error
	for {
		n, err := c.s.receive(c.in)
		if err != nil {
			return err
		}
		used = max(used, n)
		for m, err := range xfrm.Messages(c.in[:n]) {
			switch {
			case err != nil:
				return err
			case m.Seq != seq: // of a request that was given up
			case m.Type == xfrm.MsgError:
				return errors.Join(failed, locate(xfrm.ParseAck(m), c.out))
			case got != nil && failed == nil:
				failed = got(m)
			}
		}
	}
}

// locate finds the attribute that a refusal points at.
func locate(err error, request []byte) error {
	if e, ok := err.(*xfrm.AckError); ok {
		e.Locate(request)
	}
	return err
}

func (c *Conn) checkSA(s *xfrm.SA) error {
	if c.o.Unchecked {
		return nil
	}
	return s.CheckOn(c.o.Kernel)
}

func (c *Conn) checkPolicy(p *xfrm.Policy) error {
	if c.o.Unchecked {
		return nil
	}
	return p.CheckOn(c.o.Kernel)
}

type header = xfrm.Header

// AddSA creates a state. If there is one of this name the error wraps EEXIST.
func (c *Conn) AddSA(ctx context.Context, s *xfrm.SA) error {
	if err := c.checkSA(s); err != nil {
		return err
	}
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendNewSA(b, h, s) }, nil)
}

// IgnoredError means that the kernel took a state but silently left out some
// of it: it is too old for these fields.
type IgnoredError struct{ Fields []string }

func (e *IgnoredError) Error() string {
	s := "conn: the kernel ignored"
	for i, f := range e.Fields {
		if i > 0 {
			s += ","
		}
		s += " " + f
	}
	return s
}

// AddVerifiedSA creates a state, reads it back and compares. If the kernel
// left something out the state is deleted again and an [*IgnoredError] tells
// what. After any other error the state may exist.
func (c *Conn) AddVerifiedSA(ctx context.Context, s *xfrm.SA) error {
	if err := c.AddSA(ctx, s); err != nil {
		return err
	}
	id := s.ID()
	got, err := c.SA(ctx, &id)
	if err != nil {
		return err
	}
	defer got.ClearKeys()
	if fields := xfrm.Ignored(s, got); len(fields) > 0 {
		return errors.Join(&IgnoredError{fields}, c.DeleteSA(ctx, &id))
	}
	return nil
}

// UpdateSA fills a larval state or changes what can be changed in place:
// limits, encapsulation, care-of address, selector, output mark, interface id.
// The kernel keeps keys and mode as they are and does not say so.
func (c *Conn) UpdateSA(ctx context.Context, s *xfrm.SA) error {
	if err := c.checkSA(s); err != nil {
		return err
	}
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendUpdSA(b, h, s) }, nil)
}

// DeleteSA deletes a state. If there is none the error wraps ESRCH.
func (c *Conn) DeleteSA(ctx context.Context, id *xfrm.SAID) error {
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendDelSA(b, h, id) }, nil)
}

// SA returns one state. The caller clears its keys. If there is none the error
// wraps ESRCH.
func (c *Conn) SA(ctx context.Context, id *xfrm.SAID) (*xfrm.SA, error) {
	s := new(xfrm.SA)
	err := c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendGetSA(b, h, id) }, s.Parse)
	if err != nil {
		s.ClearKeys()
		return nil, err
	}
	return s, nil
}

// AllocSPI makes the kernel choose a free SPI and returns the larval state
// that reserves it. UpdateSA fills it; without that it expires after
// /proc/sys/net/core/xfrm_acq_expires seconds.
func (c *Conn) AllocSPI(ctx context.Context, r *xfrm.SPIRequest) (*xfrm.SA, error) {
	if !c.o.Unchecked {
		if err := r.Check(); err != nil {
			return nil, err
		}
	}
	s := new(xfrm.SA)
	err := c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendAllocSPI(b, h, r) }, s.Parse)
	if err != nil {
		s.ClearKeys()
		return nil, err
	}
	return s, nil
}

// FlushStates deletes all states of a protocol, or all of them (0). That there
// are none is no error.
func (c *Conn) FlushStates(ctx context.Context, p xfrm.Proto) error {
	err := c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendFlushSA(b, h, p), nil }, nil)
	return emptyFlush(err)
}

// emptyFlush takes away the ESRCH with which the kernel tells that there was
// nothing to flush.
func emptyFlush(err error) error {
	var e *xfrm.AckError
	if errors.As(err, &e) && e.Errno == 3 {
		return nil
	}
	return err
}

// AddPolicy creates a policy. If there is one of this name the error wraps
// EEXIST.
func (c *Conn) AddPolicy(ctx context.Context, p *xfrm.Policy) error {
	if err := c.checkPolicy(p); err != nil {
		return err
	}
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendNewPolicy(b, h, p) }, nil)
}

// UpdatePolicy creates a policy or replaces it without a gap.
func (c *Conn) UpdatePolicy(ctx context.Context, p *xfrm.Policy) error {
	if err := c.checkPolicy(p); err != nil {
		return err
	}
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendUpdPolicy(b, h, p) }, nil)
}

// DeletePolicy deletes a policy. Use [xfrm.Policy.ID]: mark, interface id and
// type are part of the name. If there is none the error wraps ENOENT.
func (c *Conn) DeletePolicy(ctx context.Context, id *xfrm.PolicyID) error {
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendDelPolicy(b, h, id) }, nil)
}

// Policy returns one policy. If there is none the error wraps ENOENT.
func (c *Conn) Policy(ctx context.Context, id *xfrm.PolicyID) (*xfrm.Policy, error) {
	p := new(xfrm.Policy)
	err := c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendGetPolicy(b, h, id) }, p.Parse)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// FlushPolicies deletes all policies of the types, main and sub if none is
// named, one type after the other. That there are none is no error.
func (c *Conn) FlushPolicies(ctx context.Context, types ...xfrm.PolicyType) error {
	if len(types) == 0 {
		types = []xfrm.PolicyType{xfrm.PolicyMain, xfrm.PolicySub}
	}
	for _, t := range types {
		err := c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendFlushPolicy(b, h, t), nil }, nil)
		if err := emptyFlush(err); err != nil {
			return err
		}
	}
	return nil
}

// SADInfo counts the states.
func (c *Conn) SADInfo(ctx context.Context) (xfrm.SADInfo, error) {
	var i xfrm.SADInfo
	err := c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendGetSADInfo(b, h), nil }, i.Parse)
	return i, err
}

// SPDInfo counts the policies.
func (c *Conn) SPDInfo(ctx context.Context) (xfrm.SPDInfo, error) {
	var i xfrm.SPDInfo
	err := c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendGetSPDInfo(b, h), nil }, i.Parse)
	return i, err
}

// SetThresholds sets the prefix lengths in bits from which on policies are
// hashed, each if present.
func (c *Conn) SetThresholds(ctx context.Context, hash4, hash6 xfrm.Opt[xfrm.Thresholds]) error {
	return c.request(ctx, func(b []byte, h header) ([]byte, error) {
		return xfrm.AppendSetSPDInfo(b, h, hash4, hash6), nil
	}, nil)
}

// Defaults returns what happens to packets without a policy.
func (c *Conn) Defaults(ctx context.Context) (xfrm.Default, error) {
	var d xfrm.Default
	err := c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendGetDefault(b, h), nil }, d.Parse)
	return d, err
}

// SetDefaults sets what happens to packets without a policy.
func (c *Conn) SetDefaults(ctx context.Context, d xfrm.Default) error {
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendSetDefault(b, h, d), nil }, nil)
}

// AsyncEvent returns the values of the state q.ID that q.Flags select.
func (c *Conn) AsyncEvent(ctx context.Context, q *xfrm.AsyncEvent) (*xfrm.AsyncEvent, error) {
	e := new(xfrm.AsyncEvent)
	err := c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendGetAE(b, h, q) }, e.Parse)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// SetAsyncEvent sets those of replay state, lifetime and thresholds of a state
// that are present in e.
func (c *Conn) SetAsyncEvent(ctx context.Context, e *xfrm.AsyncEvent) error {
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendNewAE(b, h, e) }, nil)
}

// Migrate moves a policy's templates and states to other endpoints.
func (c *Conn) Migrate(ctx context.Context, g *xfrm.Migrate) error {
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendMigrate(b, h, g) }, nil)
}

// MigrateState moves one state to other endpoints (Linux 7.2).
func (c *Conn) MigrateState(ctx context.Context, g *xfrm.MigrateState) error {
	return c.request(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendMigrateState(b, h, g) }, nil)
}

// Do carries out a command of iproute2's that sends one request and expects
// no more than an acknowledgement: add, update, delete, flush and the like.
// Listings, requests with an answer and link commands give an error that wraps
// [xfrm.ErrType].
func (c *Conn) Do(ctx context.Context, cmd *xfrm.Command) error {
	switch cmd.Type {
	case xfrm.NewSA, xfrm.UpdSA, xfrm.DelSA, xfrm.NewPolicy, xfrm.UpdPolicy, xfrm.DelPolicy, xfrm.FlushSA, xfrm.FlushPolicy,
		xfrm.SetDefault, xfrm.NewSPDInfo:
	default:
		return &xfrm.FormatError{Type: cmd.Type, Err: xfrm.ErrType}
	}
	if cmd.Object == "link" {
		return &xfrm.FormatError{Field: "link", Err: xfrm.ErrType}
	}
	switch r := cmd.Request.(type) {
	case *xfrm.SA:
		if err := c.checkSA(r); err != nil {
			return err
		}
	case *xfrm.Policy:
		if err := c.checkPolicy(r); err != nil {
			return err
		}
	}
	return c.request(ctx, cmd.Append, nil)
}

// dumpTries is how often a dump is tried that changes interrupt.
const dumpTries = 5

// rawDump returns all messages of a dump, or, with an error, what there was
// of it, to be cleared of keys. The memory is the caller's until it gives it
// back with recycle.
func (c *Conn) rawDump(ctx context.Context, f func(b []byte, h header) ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end, err := begin(ctx, c.s)
	if err != nil {
		return nil, err
	}
	all := c.dump[:0]
	c.dump = nil
	for range dumpTries {
		clear(all) // keys of an interrupted one
		if all, err = c.dumpOnce(all[:0], f); !errors.Is(err, ErrInterrupted) {
			break
		}
	}
	return all, end(err)
}

func (c *Conn) recycle(b []byte) {
	c.mu.Lock()
	if cap(b) > cap(c.dump) && cap(b) < 64<<20 {
		c.dump = b[:0]
	}
	c.mu.Unlock()
}

func (c *Conn) dumpOnce(all []byte, f func(b []byte, h header) ([]byte, error)) ([]byte, error) {
	seq, err := c.build(0, f)
	if err != nil {
		return all, err
	}
	if err := c.s.send(c.out); err != nil {
		return all, err
	}
	interrupted := false
	for {
		// Received in place: a datagram's messages are contiguous anyway.
		if cap(all)-len(all) < datagram {
			more := slices.Grow(all, datagram)
			clear(all) // keys
			all = more
		}
		n, err := c.s.receive(all[len(all) : len(all)+datagram])
		if err != nil {
			return all, err
		}
		d := all[len(all) : len(all)+n]
		for at := 0; at < len(d); {
			m, size := next(d[at:])
			if size == 0 {
				_, _, err := xfrm.FirstMessage(d[at:])
				return all[:len(all)+n], err
			}
			if m.Seq != seq {
				clear(d) // keys
				d = nil  // of a request that was given up
				break
			}
			interrupted = interrupted || m.Flags&xfrm.FlagDumpIntr != 0
			if m.Type == xfrm.MsgDone || m.Type == xfrm.MsgError {
				if err := xfrm.ParseAck(m); err != nil {
					return all[:len(all)+n], locate(err, c.out)
				}
				if interrupted {
					return all[:len(all)+n], ErrInterrupted
				}
				return all[:len(all)+at], nil // the end marker is no entry
			}
			at += size
		}
		all = all[:len(all)+len(d)]
	}
}

// next returns the message at the start of b and how many octets it takes with
// its padding, 0 if there is none; [xfrm.FirstMessage] says why. This one's results
// fit into registers.
func next(b []byte) (m xfrm.Message, n int) {
	const header = 16
	if len(b) < header {
		return m, 0
	}
	l := uint(native.Uint32(b))
	if l < header || l > uint(len(b)) {
		return m, 0
	}
	m.Type, m.Flags = xfrm.MsgType(native.Uint16(b[4:])), native.Uint16(b[6:])
	m.Seq, m.PortID = native.Uint32(b[8:]), native.Uint32(b[12:])
	m.Body = b[header:l]
	return m, min(int(l+3)&^3, len(b))
}

var native = binary.NativeEndian

// States returns the states that the filter passes, which the kernel tests.
// The SA is valid until the next step of the loop: copy what is to stay, or
// use [Conn.AllStates]. Its keys are cleared at the end. An error ends the
// loop. The dump is in memory before the first state is returned, so that an
// interrupted one can be repeated and the loop may use the connection.
func (c *Conn) States(ctx context.Context, f xfrm.SAFilter) iter.Seq2[*xfrm.SA, error] {
	return func(yield func(*xfrm.SA, error) bool) {
		all, err := c.rawDump(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendDumpSA(b, h, f) })
		defer func() { clear(all); c.recycle(all) }() // keys
		if err != nil {
			yield(nil, err)
			return
		}
		var s xfrm.SA
		defer s.ClearKeys()
		for rest := all; len(rest) > 0; {
			m, size := next(rest)
			rest = rest[size:]
			err := s.Parse(m)
			if !yield(&s, err) || err != nil {
				return
			}
		}
	}
}

// Policies returns all policies, main and sub, sockets' own included. The
// Policy is valid until the next step of the loop: copy what is to stay, or
// use [Conn.AllPolicies]. An error ends the loop. As with [Conn.States] the
// loop may use the connection.
func (c *Conn) Policies(ctx context.Context) iter.Seq2[*xfrm.Policy, error] {
	return func(yield func(*xfrm.Policy, error) bool) {
		all, err := c.rawDump(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendDumpPolicy(b, h), nil })
		defer func() { c.recycle(all) }()
		if err != nil {
			yield(nil, err)
			return
		}
		var p xfrm.Policy
		for rest := all; len(rest) > 0; {
			m, size := next(rest)
			rest = rest[size:]
			err := p.Parse(m)
			if !yield(&p, err) || err != nil {
				return
			}
		}
	}
}

// AllStates returns the states that the filter passes. The caller owns them
// and clears their keys.
func (c *Conn) AllStates(ctx context.Context, f xfrm.SAFilter) ([]*xfrm.SA, error) {
	all, err := c.rawDump(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendDumpSA(b, h, f) })
	defer func() { clear(all); c.recycle(all) }() // keys
	if err != nil {
		return nil, err
	}
	var out []*xfrm.SA
	for m, err := range xfrm.Messages(all) {
		s := new(xfrm.SA)
		if err == nil {
			err = s.Parse(m)
		}
		out = append(out, s)
		if err != nil {
			for _, s := range out {
				s.ClearKeys()
			}
			return nil, err
		}
	}
	return out, nil
}

// AllPolicies returns all policies, which the caller owns.
func (c *Conn) AllPolicies(ctx context.Context) ([]*xfrm.Policy, error) {
	all, err := c.rawDump(ctx, func(b []byte, h header) ([]byte, error) { return xfrm.AppendDumpPolicy(b, h), nil })
	defer func() { c.recycle(all) }()
	if err != nil {
		return nil, err
	}
	var out []*xfrm.Policy
	for m, err := range xfrm.Messages(all) {
		p := new(xfrm.Policy)
		if err == nil {
			err = p.Parse(m)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}
