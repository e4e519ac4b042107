package softcard

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// ServeVPCD puts the card into a virtual reader: it connects to the port on
// which the driver of vsmartcard's vpcd waits inside pcscd (by default 35963),
// and answers until ctx ends, which is no error, or the other side hangs up,
// which gives [io.EOF].
//
// The driver writes length and command separately, and Linux delays the
// acknowledgement of the first by 40 ms. Where the system allows it, quick
// acknowledgement is switched on for every read, which spares each command that
// delay.
func (c *Card) ServeVPCD(ctx context.Context, addr string) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("softcard: %w", err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	err = c.ServeVPCDConn(ctx, conn)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Control messages of the protocol. Only the last is answered.
const (
	vpcdOff   = 0
	vpcdOn    = 1
	vpcdReset = 2
	vpcdATR   = 4
)

// ServeVPCDConn is ServeVPCD on a connection that is there already. A message
// is two octets of length, highest first, and that many octets: one octet is a
// control message, anything of four or more a command.
func (c *Card) ServeVPCDConn(ctx context.Context, conn net.Conn) error {
	var head [2]byte
	buf := make([]byte, 0, 4096)
	for {
		quickACK(conn)
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return hangup(err)
		}
		n := int(binary.BigEndian.Uint16(head[:]))
		if cap(buf) < n {
			buf = make([]byte, n)
		}
		msg := buf[:n]
		quickACK(conn)
		if _, err := io.ReadFull(conn, msg); err != nil {
			return hangup(err)
		}
		var reply []byte
		switch {
		case n == 1 && (msg[0] == vpcdOff || msg[0] == vpcdOn || msg[0] == vpcdReset):
			c.Reset()
			continue
		case n == 1 && msg[0] == vpcdATR:
			reply = c.ATR()
		case n < 4:
			reply = answer(swLength)
		default:
			r, err := c.Transmit(ctx, msg)
			clear(msg)
			if err != nil {
				return err
			}
			reply = r
		}
		if len(reply) > 0xffff {
			return fmt.Errorf("softcard: answer of %d octets", len(reply))
		}
		out := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(reply)), uint16(len(reply)))
		if _, err := conn.Write(append(out, reply...)); err != nil {
			return hangup(err)
		}
	}
}

func hangup(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return io.EOF
	}
	return fmt.Errorf("softcard: %w", err)
}
