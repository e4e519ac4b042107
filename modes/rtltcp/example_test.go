package rtltcp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"signalbox.example/modes/rtltcp"
)

// serveOnce is a server with a tuner and a thousand samples.
func serveOnce(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	conn.Write([]byte("RTL0\x00\x00\x00\x05\x00\x00\x00\x1d"))
	conn.Write(make([]byte, 2000))
	conn.SetReadDeadline(time.Now().Add(time.Second))
	io.Copy(io.Discard, conn) // the client's commands
}

func ExampleDial() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer l.Close()
	go serveOnce(l)

	c, err := rtltcp.Dial(context.Background(), l.Addr().String(), rtltcp.Config{Settle: -1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	tuner, gains := c.Tuner()
	samples := make([]byte, 2000)
	n, err := io.ReadFull(c, samples) // or hand c to a demodulator
	fmt.Println(tuner, gains, "gains,", n/2, "samples", err)
	// Output: R820T 29 gains, 1000 samples <nil>
}
