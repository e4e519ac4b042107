package conn

import (
	"context"
	"errors"
	"fmt"

	"signalbox.example/xfrm"
)

// Batch collects requests and sends many of them with one system call. Only
// the last one of each send asks for an acknowledgement; the others are
// acknowledged if they fail, and the kernel goes on with the next. The batch
// keeps each request, keys included, as a message of its own until Flush or Discard: the
// values that were added may be changed meanwhile.
type Batch struct {
	c     *Conn
	parts []*part
	n     int
}

// part is what goes into one send.
type part struct {
	b     []byte
	start []int // where each request begins in b
}

// maxFree bounds the memory that a connection keeps for batches to come.
const maxFree = 64

// Failure is one request of a batch that was refused.
type Failure struct {
	Index int // of the request in the batch, from 0
	Err   error
}

// Batch returns an empty batch.
func (c *Conn) Batch() *Batch { return &Batch{c: c} }

// Len is the number of requests that wait.
func (b *Batch) Len() int { return b.n }

// part returns the part to append to: as much goes into one as fits a send
// and whose refusals fit the receive buffer.
func (b *Batch) part() *part {
	if n := len(b.parts); n > 0 {
		if p := b.parts[n-1]; len(p.b) < chunk && len(p.start) < max(1, b.c.s.room/ackRoom) {
			return p
		}
	}
	c := b.c
	c.freeMu.Lock()
	defer c.freeMu.Unlock()
	var p *part
	if n := len(c.free); n > 0 {
		p, c.free = c.free[n-1], c.free[:n-1]
	} else {
		p = &part{b: make([]byte, 0, chunk+4096)}
	}
	b.parts = append(b.parts, p)
	return p
}

// Append adds a request that f appends to a buffer, such as one of the
// package xfrm's Append functions with a value bound. f is given the header
// to use. If it fails, or appends something else than one message, the batch
// is as before.
func (b *Batch) Append(f func(buf []byte, h xfrm.Header) ([]byte, error)) error {
	p := b.part()
	buf := xfrm.Pad(p.b)
	start := len(buf)
	// The sequence numbers are set when the batch is sent.
	out, err := f(buf, xfrm.Header{Flags: xfrm.FlagRequest})
	if err == nil {
		err = oneMessage(out, start)
	}
	if err != nil {
		clear(p.b[len(p.b):cap(p.b)]) // keys
		return err
	}
	if cap(out) != cap(p.b) { // there was no room
		clear(p.b[:cap(p.b)])
	}
	p.b, p.start = out, append(p.start, start)
	b.n++
	return nil
}

// oneMessage checks that one message begins at start and ends b.
func oneMessage(b []byte, start int) error {
	if len(b) < start {
		return errors.New("conn: not one message")
	}
	if m, n, err := xfrm.FirstMessage(b[start:]); err != nil || n != len(b)-start || m.Type < xfrm.NewSA {
		return errors.Join(errors.New("conn: not one message"), err)
	}
	return nil
}

// Discard empties the batch without sending anything and clears the keys in
// it. After Flush there is nothing to discard.
func (b *Batch) Discard() {
	c := b.c
	c.freeMu.Lock()
	defer c.freeMu.Unlock()
	for _, p := range b.parts {
		clear(p.b)
		if len(c.free) < maxFree {
			p.b, p.start = p.b[:0], p.start[:0]
			c.free = append(c.free, p)
		}
	}
	b.parts, b.n = b.parts[:0], 0
}

// AddSA adds a request to create a state.
func (b *Batch) AddSA(s *xfrm.SA) error {
	if err := b.c.checkSA(s); err != nil {
		return err
	}
	return b.Append(func(buf []byte, h xfrm.Header) ([]byte, error) { return xfrm.AppendNewSA(buf, h, s) })
}

// UpdateSA adds a request to update a state.
func (b *Batch) UpdateSA(s *xfrm.SA) error {
	if err := b.c.checkSA(s); err != nil {
		return err
	}
	return b.Append(func(buf []byte, h xfrm.Header) ([]byte, error) { return xfrm.AppendUpdSA(buf, h, s) })
}

// DeleteSA adds a request to delete a state.
func (b *Batch) DeleteSA(id *xfrm.SAID) error {
	return b.Append(func(buf []byte, h xfrm.Header) ([]byte, error) { return xfrm.AppendDelSA(buf, h, id) })
}

// AddPolicy adds a request to create a policy.
func (b *Batch) AddPolicy(p *xfrm.Policy) error {
	if err := b.c.checkPolicy(p); err != nil {
		return err
	}
	return b.Append(func(buf []byte, h xfrm.Header) ([]byte, error) { return xfrm.AppendNewPolicy(buf, h, p) })
}

// UpdatePolicy adds a request to create or replace a policy.
func (b *Batch) UpdatePolicy(p *xfrm.Policy) error {
	if err := b.c.checkPolicy(p); err != nil {
		return err
	}
	return b.Append(func(buf []byte, h xfrm.Header) ([]byte, error) { return xfrm.AppendUpdPolicy(buf, h, p) })
}

// DeletePolicy adds a request to delete a policy.
func (b *Batch) DeletePolicy(id *xfrm.PolicyID) error {
	return b.Append(func(buf []byte, h xfrm.Header) ([]byte, error) { return xfrm.AppendDelPolicy(buf, h, id) })
}

// Flush sends all requests and empties the batch. It returns those that the
// kernel refused, in their order, each with an [*xfrm.AckError]. The error is
// about the transport or the context: it means that it is not known what
// became of the rest of the batch.
func (b *Batch) Flush(ctx context.Context) ([]Failure, error) {
	c := b.c
	c.mu.Lock()
	defer c.mu.Unlock()
	defer b.Discard()
	if b.n == 0 {
		return nil, nil
	}
	end, err := begin(ctx, c.s)
	if err != nil {
		return nil, err
	}
	var failures []Failure
	first := 0
	for _, p := range b.parts {
		if len(p.start) == 0 {
			continue
		}
		if failures, err = c.sendPart(p, first, failures); err != nil {
			break
		}
		first += len(p.start)
	}
	return failures, end(err)
}

// end is where request i ends.
func (p *part) end(i int) int {
	if i+1 < len(p.start) {
		return p.start[i+1]
	}
	return len(p.b)
}

// sendPart sends the requests of a part, the first of which is number first
// of its batch, and appends the refusals.
func (c *Conn) sendPart(p *part, first int, failures []Failure) ([]Failure, error) {
	base, n := c.seq+1, len(p.start)
	for i, start := range p.start {
		var flags uint16
		if i == n-1 {
			flags = xfrm.FlagAck
		}
		c.seq++
		xfrm.SetRequest(p.b[start:], c.seq, flags)
	}
	if err := c.s.send(p.b); err != nil {
		return failures, err
	}
	used := 0
	defer func() { clear(c.in[:used]) }() // a dump that was given up has keys
	for {
		got, err := c.s.receive(c.in)
		if err != nil {
			return failures, err
		}
		used = max(used, got)
		for m, err := range xfrm.Messages(c.in[:got]) {
			if err != nil {
				return failures, err
			}
			i := m.Seq - base
			if m.Type != xfrm.MsgError || i >= uint32(n) {
				continue // of a request that was given up, or no acknowledgement
			}
			if err := xfrm.ParseAck(m); err != nil {
				request := p.b[p.start[i]:p.end(int(i))]
				failures = append(failures, Failure{first + int(i), locate(err, request)})
			}
			if int(i) == n-1 {
				return failures, nil
			}
		}
	}
}

// ApplyOptions restrict what Apply may delete.
type ApplyOptions = xfrm.DiffOptions

// Apply makes the kernel hold the wanted states and policies: it dumps what
// there is, computes the least changes and sends them as one batch in an
// order that leaves no gap, see [xfrm.Diff]. It returns the changes and, as
// indexes into them, those that the kernel refused; of an [xfrm.OpReplace] the
// second half may be, and the state is then gone. If a change breaks a rule
// nothing is sent. With dry set nothing is sent either. The changes point to
// the wanted entries and to present ones, whose keys the caller clears.
func (c *Conn) Apply(ctx context.Context, want xfrm.Set, o ApplyOptions, dry bool) ([]xfrm.Change, []Failure, error) {
	var have xfrm.Set
	var err error
	if !o.IgnoreStates {
		if have.States, err = c.AllStates(ctx, xfrm.SAFilter{}); err != nil {
			return nil, nil, err
		}
	}
	if !o.IgnorePolicies {
		if have.Policies, err = c.AllPolicies(ctx); err != nil {
			return nil, nil, err
		}
	}
	changes := xfrm.Diff(have, want, o)
	if dry || len(changes) == 0 {
		return changes, nil, nil
	}
	for _, ch := range changes {
		if ch.Op == xfrm.OpDelete {
			continue
		}
		if ch.SA != nil {
			err = c.checkSA(ch.SA)
		} else {
			err = c.checkPolicy(ch.Policy)
		}
		if err != nil {
			return changes, nil, fmt.Errorf("conn: nothing was changed: %w", err)
		}
	}
	b := c.Batch()
	defer b.Discard()
	var owner []int // the change that each request belongs to
	for i, ch := range changes {
		if ch.Op == xfrm.OpReplace {
			id := ch.SA.ID()
			if err := b.DeleteSA(&id); err != nil {
				return changes, nil, err
			}
			owner = append(owner, i)
			ch.Op = xfrm.OpAdd
		}
		if err := b.Append(func(buf []byte, h xfrm.Header) ([]byte, error) {
			buf, _, err := xfrm.AppendChange(buf, h, ch)
			return buf, err
		}); err != nil {
			return changes, nil, err
		}
		owner = append(owner, i)
	}
	failures, err := b.Flush(ctx)
	for i := range failures {
		failures[i].Index = owner[failures[i].Index]
	}
	return changes, failures, err
}
