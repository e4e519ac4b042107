package pcscd

import (
	"context"
	"io"
	"iter"
	"slices"
)

// EventKind says what happened to a reader.
type EventKind uint8

// Kinds of events. A watch begins with one ReaderAdded for each reader that is
// there, followed by CardInserted if it holds a card.
const (
	ReaderAdded EventKind = iota
	ReaderRemoved
	CardInserted
	CardRemoved
)

// String returns "reader added" and so on.
func (k EventKind) String() string {
	return [...]string{"reader added", "reader removed", "card inserted", "card removed"}[k&3]
}

// Event is one change. Reader is the state after it; for removals of a reader
// the state before.
type Event struct {
	Kind   EventKind
	Reader Reader
}

// Watch is [Service.Watch] with the system's pcscd.
func Watch(ctx context.Context) iter.Seq2[Event, error] { return Service{}.Watch(ctx) }

// Watch yields an event for each reader and card that comes or goes, until
// ctx ends or the daemon goes away; the last pair then has the error. A card
// that was taken out and put back between two looks gives both events.
func (s Service) Watch(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		l, err := s.dial(ctx)
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer l.conn.Close()
		if err := l.establish(ctx); err != nil {
			yield(Event{}, err)
			return
		}
		var before []Reader
		states := make([]byte, maxReaders*readerSize)
		wait := make([]byte, 8)
		for {
			// The daemon answers with the present states and sends a wait
			// structure once something has changed.
			if err := l.call(ctx, cmdWait, nil, nil, states); err != nil {
				yield(Event{}, err)
				return
			}
			now := parseReaders(states)
			for _, e := range changes(before, now) {
				if !yield(e, nil) {
					return
				}
			}
			before = now
			err := l.talk(ctx, func() error {
				_, err := io.ReadFull(l.conn, wait)
				return err
			})
			if err == nil {
				err = result("watch the readers", order.Uint32(wait[4:]))
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// changes lists what led from one list of readers to the next.
func changes(before, now []Reader) []Event {
	var out []Event
	find := func(list []Reader, name string) *Reader {
		if i := slices.IndexFunc(list, func(r Reader) bool { return r.Name == name }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	for _, b := range before {
		if find(now, b.Name) == nil {
			if b.Present {
				out = append(out, Event{CardRemoved, b})
			}
			out = append(out, Event{ReaderRemoved, b})
		}
	}
	for _, n := range now {
		b := find(before, n.Name)
		if b == nil {
			out = append(out, Event{ReaderAdded, n})
			b = &Reader{}
		}
		// Another card, or the same one put back, raises the counter by two.
		again := b.Present && n.Present && n.Events-b.Events >= 2
		if b.Present && (!n.Present || again) {
			out = append(out, Event{CardRemoved, n})
		}
		if n.Present && (!b.Present || again) {
			out = append(out, Event{CardInserted, n})
		}
	}
	return out
}
