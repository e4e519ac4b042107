package conn

import (
	"context"
	"errors"
	"fmt"

	"signalbox.example/xfrm"
)

// Batch collects requests and sends many of them with one system call. Only
// the last one of each send asks for an acknowledgement; the others are
// acknowledged if they fail, and the kernel goes on with the next.
type Batch struct {
	c     *Conn
	b     []byte
	start []int // where each request begins in b
}

// Failure is one request of a batch that was refused.
type Failure struct {
	Index int // of the request in the batch, from 0
	Err   error
}

// Batch returns an empty batch.
func (c *Conn) Batch() *Batch { return &Batch{c: c} }

// Len is the number of requests that wait.
func (b *Batch) Len() int { return len(b.start) }

// Append adds a request that f appends to a buffer, such as one of the
// package xfrm's Append functions with a value bound. f is given the header
// to use. If it fails, or appends something else than one message, the batch
// is as before.
func (b *Batch) Append(f func(buf []byte, h xfrm.Header) ([]byte, error)) error {
	buf := xfrm.Pad(b.b)
	start := len(buf)
	// The sequence numbers are set when the batch is sent.
	out, err := f(buf, xfrm.Header{Flags: xfrm.FlagRequest})
	if err != nil {
		return err
	}
	if m, n, err := xfrm.FirstMessage(out[start:]); err != nil || n != len(out)-start || m.Type < xfrm.NewSA {
		return errors.Join(errors.New("conn: not one message"), err)
	}
	b.b, b.start = out, append(b.start, start)
	return nil
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
// about the transport: it means that it is not known what became of the rest
// of the batch.
func (b *Batch) Flush(ctx context.Context) ([]Failure, error) {
	c := b.c
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		clear(b.b)
		b.b, b.start = b.b[:0], b.start[:0]
	}()
	if len(b.start) == 0 {
		return nil, nil
	}
	end, err := begin(ctx, c.s)
	if err != nil {
		return nil, err
	}
	failures, err := b.flush()
	return failures, end(err)
}

func (b *Batch) flush() ([]Failure, error) {
	var failures []Failure
	most := max(1, b.c.s.room/ackRoom)
	for first := 0; first < len(b.start); {
		// As many as fit a send and whose refusals fit the receive buffer.
		last := first + 1
		for last < len(b.start) && last-first < most && b.end(last)-b.start[first] <= chunk {
			last++
		}
		f, err := b.send(first, last)
		failures = append(failures, f...)
		if err != nil {
			return failures, err
		}
		first = last
	}
	return failures, nil
}

// end is where request i ends.
func (b *Batch) end(i int) int {
	if i+1 < len(b.start) {
		return b.start[i+1]
	}
	return len(b.b)
}

// send sends the requests from first to last, that one excluded, and collects
// the refusals.
func (b *Batch) send(first, last int) ([]Failure, error) {
	c := b.c
	base := c.seq + 1
	for i := first; i < last; i++ {
		var flags uint16
		if i == last-1 {
			flags = xfrm.FlagAck
		}
		xfrm.SetRequest(b.b[b.start[i]:], c.seq+1, flags)
		c.seq++
	}
	if err := c.s.send(b.b[b.start[first]:b.end(last-1)]); err != nil {
		return nil, err
	}
	var failures []Failure
	for {
		n, err := c.s.receive(c.in)
		if err != nil {
			return failures, err
		}
		for m, err := range xfrm.Messages(c.in[:n]) {
			if err != nil {
				return failures, err
			}
			i := int(m.Seq - base)
			if m.Type != xfrm.MsgError || m.Seq-base >= uint32(last-first) {
				continue // of a request that was given up, or no acknowledgement
			}
			if err := xfrm.ParseAck(m); err != nil {
				failures = append(failures, Failure{first + i, locate(err, b.b[b.start[first+i]:b.end(first+i)])})
			}
			if first+i == last-1 {
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
// indexes into them, those that failed. With dry set nothing is sent.
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
