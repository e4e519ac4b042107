package conn

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"signalbox.example/xfrm"
)

// AllGroups returns the multicast groups of XFRM.
func AllGroups() []xfrm.Group {
	return []xfrm.Group{xfrm.GroupAcquire, xfrm.GroupExpire, xfrm.GroupSA, xfrm.GroupPolicy, xfrm.GroupAEvents, xfrm.GroupReport,
		xfrm.GroupMigrate, xfrm.GroupMapping}
}

// Listen joins the groups, all of them if none is named, on a socket of its
// own in the namespace of the options, which may be nil, and returns the events
// from then on, for one loop. Each event is new and belongs to the caller;
// states in it may hold keys. The loop ends without an error when the context
// ends. An event that cannot be parsed and an overflow of the receive buffer
// ([ErrLost]) are errors after which the loop may go on; any other error ends
// it. The socket is closed at the end of the loop, or at the end of the context
// if the loop never began.
func Listen(ctx context.Context, o *Options, groups ...xfrm.Group) (iter.Seq2[xfrm.Event, error], error) {
	c, err := Dial(o)
	if err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		groups = AllGroups()
	}
	for _, g := range groups {
		if err := c.s.join(int(g)); err != nil {
			c.Close()
			return nil, fmt.Errorf("conn: join group %v: %w", g, err)
		}
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	return func(yield func(xfrm.Event, error) bool) {
		defer c.Close()
		defer stop()
		defer func() { clear(c.in) }() // keys
		for {
			n, err := c.s.receive(c.in)
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, ErrLost):
				if !yield(nil, err) {
					return
				}
				continue
			case err != nil:
				yield(nil, err)
				return
			}
			for m, err := range xfrm.Messages(c.in[:n]) {
				if err != nil {
					if !yield(nil, err) {
						return
					}
					break
				}
				e, err := xfrm.ParseEvent(m)
				if err != nil {
					e = nil
				}
				if !yield(e, err) {
					return
				}
			}
			clear(c.in[:n]) // keys
		}
	}, nil
}
