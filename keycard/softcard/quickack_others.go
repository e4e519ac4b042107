//go:build !linux

package softcard

import "net"

func quickACK(net.Conn) {}
