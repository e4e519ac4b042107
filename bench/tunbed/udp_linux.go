package tunbed

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	roleSend    = "-role-udp-send"
	roleReceive = "-role-udp-receive"
)

// Role runs this program as one end of a UDP measurement when its arguments
// say so.
func Role(args []string, stdout io.Writer) (ran bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	switch {
	case args[0] == roleSend && len(args) == 6:
		return true, udpSend(args[1:], stdout)
	case args[0] == roleReceive && len(args) == 4:
		return true, udpReceive(args[1:], stdout)
	}
	return false, nil
}

// udpSend sends as fast as it can for a time and prints how many datagrams it
// sent and for how many seconds.
func udpSend(args []string, stdout io.Writer) error {
	addr, err := netip.ParseAddr(args[0])
	if err != nil {
		return err
	}
	var n [3]int
	for i := range n {
		if n[i], err = strconv.Atoi(args[i+1]); err != nil {
			return err
		}
	}
	length, err := time.ParseDuration(args[4])
	if err != nil {
		return err
	}
	payload, segments := n[1], n[2]
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(addr, uint16(n[0]))))
	if err != nil {
		return err
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if segments > 1 {
		var inner error
		if err := raw.Control(func(fd uintptr) { inner = unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, payload) }); err != nil {
			return err
		} else if inner != nil {
			return os.NewSyscallError("UDP_SEGMENT", inner)
		}
	}
	buf := make([]byte, payload*segments)
	sent, begin := 0, time.Now()
	for i := 0; ; i++ {
		if i&63 == 0 && time.Since(begin) >= length {
			break
		}
		binary.BigEndian.PutUint32(buf, uint32(i))
		// ENOBUFS and refused ports are part of a flood.
		if _, err := conn.Write(buf); err == nil {
			sent += segments
		}
	}
	took := time.Since(begin)
	time.Sleep(200 * time.Millisecond)
	if segments > 1 {
		raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_UDP, unix.UDP_SEGMENT, 0) })
	}
	for range 10 { // one byte means: the end
		conn.Write(buf[:1])
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Fprintln(stdout, sent, took.Seconds())
	return nil
}

// pause is how long a receiver that polls sleeps between looks at its socket,
// whose buffer holds what comes in between many times over.
const pause = 500 * time.Microsecond

// udpReceive counts datagrams until one of one byte arrives, or none for two
// seconds, and prints the count.
func udpReceive(args []string, stdout io.Writer) error {
	port, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	payload, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	polled, err := strconv.ParseBool(args[2])
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	for _, o := range []struct {
		name              string
		level, opt, value int
	}{
		{"IPV6_V6ONLY", unix.SOL_IPV6, unix.IPV6_V6ONLY, 0},
		{"SO_RCVBUFFORCE", unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32 << 20},
		{"UDP_GRO", unix.SOL_UDP, unix.UDP_GRO, 1},
	} {
		if err := unix.SetsockoptInt(fd, o.level, o.opt, o.value); err != nil {
			return os.NewSyscallError(o.name, err)
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrInet6{Port: port}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	fmt.Fprintln(stdout, "ready")
	buf := make([]byte, 1<<16)
	got, last, patience := 0, time.Now(), 10*time.Second
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EAGAIN:
			if time.Since(last) > patience {
				fmt.Fprintln(stdout, got)
				return nil
			}
			if polled {
				time.Sleep(pause)
			} else {
				unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
			}
		case err == unix.EINTR:
		case err != nil:
			return os.NewSyscallError("read", err)
		case n == 1:
			fmt.Fprintln(stdout, got)
			return nil
		default:
			got += (n + payload - 1) / payload
			last, patience = time.Now(), 2*time.Second
		}
	}
}
