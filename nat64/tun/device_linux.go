package tun

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const devNetTun = "/dev/net/tun"

// offloadSets are tried in this order: what a kernel does not know it refuses
// as a whole with EINVAL (USO before Linux 6.2).
var offloadSets = []struct {
	kernel uint
	means  Offload
}{
	{unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN | unix.TUN_F_USO4 | unix.TUN_F_USO6, OffloadChecksum | OffloadTSO | OffloadUSO},
	{unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN, OffloadChecksum | OffloadTSO},
	{unix.TUN_F_CSUM, OffloadChecksum},
	{0, 0},
}

// Device is an open TUN device. Its methods may be called from several
// goroutines; each queue is served by one goroutine of [Device.Run].
type Device struct {
	name     string
	vnet     bool
	offloads Offload
	queues   []*os.File
	stats    []queueStats
	alarm    alarm
	running  atomic.Bool
	closed   atomic.Bool
	closing  sync.Once
	closeErr error
}

// Open creates the TUN device of that name, or attaches to it when it exists
// and is persistent; one that exists must have as many queues (one or several)
// and the same kind of header. An empty name, or one with %d in it, lets the
// kernel choose. It needs CAP_NET_ADMIN, or the rights that [Device.SetOwner]
// gave. A new device is down and without addresses: that is the business of
// whoever configures the host.
func Open(name string, o Options) (*Device, error) {
	if err := o.check(name); err != nil {
		return nil, err
	}
	d := &Device{name: name, vnet: !o.NoVnetHeader}
	if d.name == "" {
		d.name = "tun%d"
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("tun: eventfd: %w", err)
	}
	d.alarm.f = os.NewFile(uintptr(bell), "eventfd")
	n := max(o.Queues, 1)
	for range n {
		f, err := d.openQueue(n > 1)
		if err != nil {
			d.Close()
			return nil, err
		}
		d.queues = append(d.queues, f)
	}
	d.stats = make([]queueStats, n)
	if d.vnet {
		if err := d.setOffloads(o); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// openQueue opens one queue and, with the first one, learns the name.
func (d *Device) openQueue(multi bool) (*os.File, error) {
	fd, err := unix.Open(devNetTun, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("tun: open %s: %w", devNetTun, err)
	}
	fail := func(what string, err error) (*os.File, error) {
		unix.Close(fd)
		if errors.Is(err, unix.EINVAL) && what == "TUNSETIFF" {
			err = fmt.Errorf("%w (it exists with other queue or header settings)", err)
		}
		return nil, fmt.Errorf("tun: %s %s: %w", what, d.name, err)
	}
	ifr, err := unix.NewIfreq(d.name)
	if err != nil {
		return fail("name", err)
	}
	flags := uint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if d.vnet {
		flags |= unix.IFF_VNET_HDR
	}
	if multi {
		flags |= unix.IFF_MULTI_QUEUE
	}
	ifr.SetUint16(flags)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, ifr); err != nil {
		return fail("TUNSETIFF", err)
	}
	d.name = ifr.Name()
	if d.vnet {
		// The size is per device and may be left over from an earlier owner.
		if err := unix.IoctlSetPointerInt(fd, unix.TUNSETVNETHDRSZ, vnetHeaderLen); err != nil {
			return fail("TUNSETVNETHDRSZ", err)
		}
	}
	// Only after NewFile it must not block: the runtime's poller, which would
	// be woken for every packet, is not to know of it.
	f := os.NewFile(uintptr(fd), devNetTun)
	if err := unix.SetNonblock(fd, true); err != nil {
		f.Close()
		return nil, fmt.Errorf("tun: O_NONBLOCK %s: %w", d.name, err)
	}
	return f, nil
}

// control runs f with the descriptor of the first queue.
func (d *Device) control(f func(fd int) error) error {
	if len(d.queues) == 0 {
		return os.ErrClosed
	}
	c, err := d.queues[0].SyscallConn()
	if err != nil {
		return err
	}
	return control(c, f)
}

// setOffloads takes the richest set that the options allow and the kernel
// knows.
func (d *Device) setOffloads(o Options) error {
	var last error
	for _, s := range offloadSets {
		if s.means&^o.allowed() != 0 {
			continue
		}
		last = d.control(func(fd int) error { return unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, int(s.kernel)) })
		if last == nil {
			d.offloads = s.means
			return nil
		}
		if !errors.Is(last, unix.EINVAL) {
			break
		}
	}
	return fmt.Errorf("tun: TUNSETOFFLOAD %s: %w", d.name, last)
}

// Name returns the name of the interface.
func (d *Device) Name() string { return d.name }

// Queues returns the number of queues.
func (d *Device) Queues() int { return len(d.queues) }

// Offloads tells which kinds of packets the kernel hands over unfinished.
func (d *Device) Offloads() Offload { return d.offloads }

// SetPersist makes the interface outlive this process, or no longer.
func (d *Device) SetPersist(on bool) error {
	v := 0
	if on {
		v = 1
	}
	if err := d.control(func(fd int) error { return unix.IoctlSetInt(fd, unix.TUNSETPERSIST, v) }); err != nil {
		return fmt.Errorf("tun: TUNSETPERSIST %s: %w", d.name, err)
	}
	return nil
}

// SetOwner lets a user without privileges attach to the (persistent)
// interface later.
func (d *Device) SetOwner(uid int) error {
	if err := d.control(func(fd int) error { return unix.IoctlSetInt(fd, unix.TUNSETOWNER, uid) }); err != nil {
		return fmt.Errorf("tun: TUNSETOWNER %s: %w", d.name, err)
	}
	return nil
}

// Close closes all queues; the interface goes away unless it is persistent. A
// running [Device.Run] returns an error. It is safe to call twice.
func (d *Device) Close() error {
	d.closing.Do(func() {
		d.closed.Store(true)
		d.alarm.ring()
		var errs []error
		for _, q := range d.queues {
			errs = append(errs, q.Close())
		}
		errs = append(errs, d.alarm.f.Close())
		d.closeErr = errors.Join(errs...)
	})
	return d.closeErr
}

func (o Options) check(name string) error {
	if o.Queues < 0 || o.Queues > MaxQueues {
		return fmt.Errorf("tun: %d queues: want 0 to %d", o.Queues, MaxQueues)
	}
	if len(name) >= unix.IFNAMSIZ || strings.ContainsAny(name, "/ \t\n:") || name == "." || name == ".." {
		return fmt.Errorf("tun: %q is no interface name", name)
	}
	return nil
}
