package tun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"signalbox.example/nat64"
)

// A queue's buffer, with a packet of n octets that the kernel handed over:
//
//	0            front-10   front        front+n                          end
//	| room for a longer header | vnet header | packet        | room to spare |
//
// Translation moves the start of the packet by at most nat64.Headroom octets;
// the vnet header is then written right in front of the new start, so that
// header and packet leave in one write, without a copy.
const (
	front  = nat64.Headroom + vnetHeaderLen
	bufLen = front + maxPacket + 1
)

// queueStats are the counters of one queue; only its goroutine writes them.
type queueStats struct {
	read, readBytes, super   atomic.Uint64
	written, writtenBytes    atomic.Uint64
	copied, writeErrors, bad atomic.Uint64
	_                        [64]byte // keep the next queue's counters off this cache line
}

// Run reads packets from every queue, translates them and writes the results,
// until the context ends or a queue fails. It returns nil when the context
// ended it: by then every packet that was read has been written. The device
// stays open, and Run may be called again.
//
// One goroutine serves each queue. The work of a queue allocates nothing.
func (d *Device) Run(ctx context.Context, t *nat64.Translator) error {
	if !d.running.CompareAndSwap(false, true) {
		return errors.New("tun: Run is running already")
	}
	defer d.running.Store(false)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A deadline in the past wakes the readers without closing the queues.
	stop := context.AfterFunc(ctx, func() {
		for _, q := range d.queues {
			q.SetReadDeadline(time.Unix(1, 0))
		}
	})
	var wg sync.WaitGroup
	for i := range d.queues {
		wg.Go(func() {
			if err := d.serve(d.queues[i], &d.stats[i], t); err != nil {
				cancel(fmt.Errorf("tun: %s queue %d: %w", d.name, i, err))
			}
		})
	}
	wg.Wait()
	stop()
	for _, q := range d.queues {
		q.SetReadDeadline(time.Time{})
	}
	// A queue's own failure was the cause, unless the caller ended it.
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// serve is the loop of one queue.
func (d *Device) serve(q *os.File, s *queueStats, t *nat64.Translator) error {
	var (
		scratch nat64.Scratch
		h       nat64.VirtioHdr
		buf     = make([]byte, bufLen)
		out     []byte // for packets that do not lie in buf
		header  = 0
	)
	if d.vnet {
		header = vnetHeaderLen
	}
	for {
		n, err := q.Read(buf[front-header:])
		if err != nil {
			switch {
			case errors.Is(err, os.ErrDeadlineExceeded):
				return nil
			case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOBUFS):
				continue
			}
			return err
		}
		s.read.Add(1)
		s.readBytes.Add(uint64(max(n-header, 0)))
		if n <= header {
			s.bad.Add(1)
			continue
		}
		var r nat64.Result
		if d.vnet {
			if err := h.Decode(buf[front-header : front]); err != nil {
				s.bad.Add(1)
				continue
			}
			if h.GSOType != 0 {
				s.super.Add(1)
			}
			r = t.TranslateOffload(&scratch, &h, buf, front, n-header)
		} else {
			r = t.Translate(&scratch, buf, front, n)
		}
		if r.Packet == nil {
			continue
		}
		out = d.write(q, s, &h, buf, r.Offset, r.Packet, out)
		for _, p := range r.More {
			out = d.write(q, s, &h, buf, -1, p, out)
		}
	}
}

// write sends one packet, which begins at that place of buf or, if it is
// negative, lies elsewhere. It returns out, which it may have grown.
func (d *Device) write(q *os.File, s *queueStats, h *nat64.VirtioHdr, buf []byte, at int, p, out []byte) []byte {
	w := p
	if d.vnet {
		if at >= vnetHeaderLen {
			w = buf[at-vnetHeaderLen : at+len(p)]
		} else {
			out = append(out[:0], make([]byte, vnetHeaderLen)...)
			out = append(out, p...)
			w = out
			s.copied.Add(1)
		}
		h.Encode(w[:vnetHeaderLen])
	}
	if _, err := q.Write(w); err != nil {
		// A device that is down, or a header it does not take: the packet is
		// lost, as on any wire.
		s.writeErrors.Add(1)
		return out
	}
	s.written.Add(1)
	s.writtenBytes.Add(uint64(len(p)))
	return out
}

// Stats returns the counters of all queues together.
func (d *Device) Stats() Stats {
	var t Stats
	for i := range d.stats {
		s := &d.stats[i]
		t.Read += s.read.Load()
		t.ReadBytes += s.readBytes.Load()
		t.Super += s.super.Load()
		t.Written += s.written.Load()
		t.WrittenBytes += s.writtenBytes.Load()
		t.Copied += s.copied.Load()
		t.WriteErrors += s.writeErrors.Load()
		t.Malformed += s.bad.Load()
	}
	return t
}
