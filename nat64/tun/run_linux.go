package tun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
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
	gathered                 atomic.Uint64
	_                        [64]byte // keep the next queue's counters off this cache line
}

// Run reads packets from every queue, translates them and writes the results,
// until the context ends or a queue fails. It returns nil when the context
// ended it: by then every packet that was read has been written. The device
// stays open, and Run may be called again. After [Device.Close] it returns an
// error, as it does at once while another Run is on.
//
// One goroutine, and the thread that it waits in, serves each queue. It takes
// 64 KB, 320 KB where it gathers packets, when it begins, and allocates nothing
// for a packet.
func (d *Device) Run(ctx context.Context, t *nat64.Translator) error {
	if !d.running.CompareAndSwap(false, true) {
		return errors.New("tun: Run is running already")
	}
	defer d.running.Store(false)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		d.alarm.ring()
		close(woken)
	})
	var wg sync.WaitGroup
	failures := make([]error, len(d.queues))
	for i := range d.queues {
		wg.Go(func() {
			c, err := d.queues[i].SyscallConn()
			if err == nil {
				// The descriptors stay valid as long as Control runs.
				err = control(c, func(fd int) error {
					return d.alarm.control(func(bell int) error { return d.serve(fd, bell, &d.stats[i], t) })
				})
			}
			if err != nil {
				failures[i] = fmt.Errorf("tun: %s queue %d: %w", d.name, i, err)
				cancel(failures[i])
			}
		})
	}
	wg.Wait()
	if !stop() {
		<-woken
	}
	if !d.closed.Load() {
		d.alarm.reset()
	}
	// A queue's own failure was the cause, unless the caller ended it.
	if err := context.Cause(ctx); slices.Contains(failures, err) {
		return err
	}
	return nil
}

// alarm wakes goroutines that wait in poll for their queues, all of them and
// until it is reset.
type alarm struct {
	on atomic.Bool
	f  *os.File // an eventfd
}

func (a *alarm) ring() {
	if !a.on.Swap(true) {
		a.f.Write([]byte{1, 1, 1, 1, 1, 1, 1, 1})
	}
}

func (a *alarm) reset() {
	if a.on.Swap(false) {
		a.f.Read(make([]byte, 8))
	}
}

func (a *alarm) control(f func(fd int) error) error {
	c, err := a.f.SyscallConn()
	if err != nil {
		return err
	}
	return control(c, f)
}

// control runs f with a descriptor.
func control(c syscall.RawConn, f func(fd int) error) error {
	var inner error
	if err := c.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// queue is what the goroutine of one queue works with.
type queue struct {
	fd      int
	vnet    bool
	tcp     bool // gather TCP segments
	udp     bool // gather UDP datagrams
	s       *queueStats
	scratch nat64.Scratch
	out     []byte // for packets that do not lie in a buffer with room in front
	flows   [maxFlows]gathered
	used    int // flows[:used] hold packets, the oldest first
	spare   [][]byte
}

// serve is the loop of one queue. It waits in poll and not in the runtime's
// poller: a goroutine that parks leaves its processor idle, which costs a
// search for work, and the wake-up of the runtime's monitor thread when a
// packet comes some microseconds later.
func (d *Device) serve(fd, bell int, s *queueStats, t *nat64.Translator) error {
	q := &queue{fd: fd, vnet: d.vnet, tcp: d.offloads&OffloadTSO != 0, udp: d.offloads&OffloadUSO != 0, s: s}
	header := 0
	if d.vnet {
		header = vnetHeaderLen
	}
	buf := make([]byte, bufLen)
	if q.tcp || q.udp {
		for range maxFlows {
			q.spare = append(q.spare, make([]byte, bufLen))
		}
	}
	var h nat64.VirtioHdr
	wait := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(bell), Events: unix.POLLIN}}
	yielded := time.Now()
	burst, lingered := 0, 0 // packets since the last sleep, empty reads since the last packet
	for since, turn := 0, 1; ; since, turn = since+1, turn+1 {
		if since == maxWaiting {
			q.flush()
			since = 0
		}
		if turn == yieldTurns {
			turn = 0
			if d.alarm.on.Load() {
				q.flush()
				return d.ended()
			}
			if time.Since(yielded) > yieldAfter {
				runtime.Gosched()
				yielded = time.Now()
			}
		}
		n, err := unix.Read(fd, buf[front-header:])
		if err != nil {
			switch err {
			case unix.EAGAIN:
				q.flush()
				since = -1
				// Once it sleeps it takes longer to wake than the next packet
				// of a stream needs to come: so let others run first.
				if burst > 1 && lingered < linger {
					lingered++
					unix.Syscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
					continue
				}
				burst = 0
				if _, err := unix.Poll(wait, -1); err != nil && err != unix.EINTR {
					return os.NewSyscallError("poll", err)
				}
				if d.alarm.on.Load() {
					return d.ended()
				}
				continue
			case unix.EINTR, unix.ENOBUFS:
				continue
			}
			q.flush()
			return os.NewSyscallError("read", err)
		}
		burst, lingered = burst+1, 0
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
			r = t.TranslateOffload(&q.scratch, &h, buf, front, n-header)
		} else {
			r = t.Translate(&q.scratch, buf, front, n)
		}
		if r.Packet == nil {
			continue
		}
		if r.Offset >= vnetHeaderLen && (q.tcp || q.udp) {
			buf = q.gather(&h, buf, r.Offset, len(r.Packet))
			continue
		}
		q.flush()
		q.write(&h, buf, r.Offset, r.Packet)
		for _, p := range r.More {
			q.write(&h, buf, -1, p)
		}
	}
}

// linger is how often an empty queue is looked at before its goroutine sleeps,
// if there was more than one packet since it last slept. With nobody else to
// run that is about 20 µs.
const linger = 24

// A goroutine that has been running for 10 ms is taken for one that does not
// yield, although it is in system calls nearly all the time: the runtime's
// monitor then takes its processor away in each of them, and looks every 20 µs
// whether it may. So it yields in time, which is looked at from time to time.
const (
	yieldTurns = 64
	yieldAfter = 4 * time.Millisecond
)

// ended is the error of a loop that the alarm ended.
func (d *Device) ended() error {
	if d.closed.Load() {
		return os.ErrClosed
	}
	return nil
}

// gather writes the packet at that place of buf, or keeps it to be written
// with others. It returns a buffer for the next packet. Packets of one flow
// keep their order.
func (q *queue) gather(h *nat64.VirtioHdr, buf []byte, at, n int) []byte {
	p := buf[at : at+n]
	x := parse(p, h)
	if !x.flow {
		q.flush()
		q.write(h, buf, at, p)
		return buf
	}
	for i := range q.used {
		if g := &q.flows[i]; g.sameFlow(p, x) {
			if g.join(p, h, x) {
				q.s.gathered.Add(1)
				return buf
			}
			q.send(i)
			break
		}
	}
	if !x.ok || x.tcp && !q.tcp || !x.tcp && !q.udp {
		q.write(h, buf, at, p)
		return buf
	}
	if q.used == maxFlows {
		q.send(0)
	}
	q.flows[q.used].start(buf, at, n, h, x)
	q.used++
	buf = q.spare[len(q.spare)-1]
	q.spare = q.spare[:len(q.spare)-1]
	return buf
}

// send writes one gathered packet.
func (q *queue) send(i int) {
	g := &q.flows[i]
	g.finish()
	q.write(&g.h, g.buf, g.at, g.buf[g.at:g.at+g.n])
	q.spare = append(q.spare, g.buf)
	copy(q.flows[i:q.used], q.flows[i+1:q.used])
	q.used--
}

// flush writes all that was gathered.
func (q *queue) flush() {
	for q.used > 0 {
		q.send(0)
	}
}

// write sends one packet, which begins at that place of buf or, if it is
// negative, lies elsewhere.
func (q *queue) write(h *nat64.VirtioHdr, buf []byte, at int, p []byte) {
	w := p
	if q.vnet {
		if at >= vnetHeaderLen {
			w = buf[at-vnetHeaderLen : at+len(p)]
		} else {
			q.out = append(q.out[:0], make([]byte, vnetHeaderLen)...)
			q.out = append(q.out, p...)
			w = q.out
			q.s.copied.Add(1)
		}
		h.Encode(w[:vnetHeaderLen])
	}
	var err error
	for range 100 { // signals of the runtime's own
		if _, err = unix.Write(q.fd, w); err != unix.EINTR {
			break
		}
	}
	if err != nil {
		// A device that is down, or a header it does not take: the packet is
		// lost, as on any wire.
		q.s.writeErrors.Add(1)
		return
	}
	q.s.written.Add(1)
	q.s.writtenBytes.Add(uint64(len(p)))
}

// Stats returns the counters of all queues together.
func (d *Device) Stats() Stats {
	var t Stats
	for i := range d.stats {
		s := &d.stats[i]
		t.Read += s.read.Load()
		t.ReadBytes += s.readBytes.Load()
		t.Super += s.super.Load()
		t.Gathered += s.gathered.Load()
		t.Written += s.written.Load()
		t.WrittenBytes += s.writtenBytes.Load()
		t.Copied += s.copied.Load()
		t.WriteErrors += s.writeErrors.Load()
		t.Malformed += s.bad.Load()
	}
	return t
}
