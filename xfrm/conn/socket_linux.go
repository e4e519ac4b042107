package conn

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socket is a netlink socket of the XFRM family.
type socket struct {
	file   *os.File
	raw    syscall.RawConn
	room   int // receive buffer in octets, as the kernel counts
	closed atomic.Bool
}

// currentNS opens the network namespace of the calling thread.
func currentNS() (*os.File, error) { return os.Open("/proc/thread-self/ns/net") }

// openSocket opens a socket in a namespace, or in the current one if ns is
// negative.
func openSocket(ns int, readBuffer, writeBuffer int) (*socket, error) {
	if ns < 0 {
		return newSocket(readBuffer, writeBuffer)
	}
	type result struct {
		s   *socket
		err error
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread()
		home, err := currentNS()
		if err != nil {
			runtime.UnlockOSThread()
			done <- result{nil, err}
			return
		}
		defer home.Close()
		if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			runtime.UnlockOSThread()
			done <- result{nil, fmt.Errorf("conn: enter network namespace: %w", err)}
			return
		}
		s, err := newSocket(readBuffer, writeBuffer)
		// A thread that cannot go home dies with this goroutine: it stays
		// locked.
		if unix.Setns(int(home.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
		done <- result{s, err}
	}()
	r := <-done
	return r.s, r.err
}

func newSocket(readBuffer, writeBuffer int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_XFRM)
	if err != nil {
		return nil, fmt.Errorf("conn: netlink socket: %w", err)
	}
	fail := func(what string, err error) (*socket, error) {
		unix.Close(fd)
		return nil, fmt.Errorf("conn: %s: %w", what, err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return fail("bind", err)
	}
	for _, o := range [...]int{unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK} {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, o, 1); err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
			return fail("extended acknowledgements", err)
		}
	}
	// Beyond the system's limit this needs CAP_NET_ADMIN in the first user
	// namespace; without it the limit applies.
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, readBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, readBuffer); err != nil {
			return fail("receive buffer", err)
		}
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, writeBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, writeBuffer); err != nil {
			return fail("send buffer", err)
		}
	}
	room, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil {
		return fail("receive buffer", err)
	}
	s := &socket{file: os.NewFile(uintptr(fd), "netlink"), room: room}
	if s.raw, err = s.file.SyscallConn(); err != nil {
		s.file.Close()
		return nil, err
	}
	return s, nil
}

func (s *socket) close() error {
	s.closed.Store(true)
	return s.file.Close()
}

// broken explains why the file failed; raw connections do not say that they
// are closed in a way that can be tested.
func (s *socket) broken(err error) error {
	if s.closed.Load() {
		return ErrClosed
	}
	return err
}

func (s *socket) deadline(t time.Time) error { return s.file.SetDeadline(t) }

func (s *socket) join(group int) error {
	var err error
	if e := s.raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group)
	}); e != nil {
		return e
	}
	return err
}

// send hands messages to the kernel, which has carried them out when it
// returns.
func (s *socket) send(b []byte) error {
	var err error
	if e := s.raw.Write(func(fd uintptr) bool {
		_, err = unix.Write(int(fd), b) // without an address it goes to the kernel
		return !errors.Is(err, unix.EAGAIN)
	}); e != nil {
		return s.broken(e)
	}
	if err != nil {
		return fmt.Errorf("conn: send: %w", err)
	}
	return nil
}

// receive reads one datagram into b. It returns errLost after an overflow and
// skips what does not come from the kernel.
func (s *socket) receive(b []byte) (int, error) {
	for {
		var n, flags int
		var from unix.Sockaddr
		var err error
		if e := s.raw.Read(func(fd uintptr) bool {
			n, _, flags, from, err = unix.Recvmsg(int(fd), b, nil, 0)
			return !errors.Is(err, unix.EAGAIN)
		}); e != nil {
			return 0, s.broken(e)
		}
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			return 0, ErrLost
		case err != nil:
			return 0, fmt.Errorf("conn: receive: %w", err)
		case flags&unix.MSG_TRUNC != 0:
			return 0, fmt.Errorf("conn: a datagram of more than %d octets", len(b))
		}
		if a, ok := from.(*unix.SockaddrNetlink); ok && a.Pid != 0 {
			continue
		}
		return n, nil
	}
}
