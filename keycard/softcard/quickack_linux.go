package softcard

import (
	"net"
	"syscall"
)

// quickACK asks for immediate acknowledgement of what comes next. The setting
// does not stick, so it is made before each read.
func quickACK(c net.Conn) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := t.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) {
			syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
		})
	}
}
