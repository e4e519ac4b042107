package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The program dials a stand-in for vpcd, which asks for the answer to reset
// and selects the application.
func TestServes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan int, 1)
	var out, errs bytes.Buffer
	file := filepath.Join(t.TempDir(), "card.json")
	go func() {
		done <- run(context.Background(), []string{"-vpcd", l.Addr().String(), "-serial", "12345678", "-file", file, "-kind", "3.4-chaining"}, &out, &errs)
	}()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	ask := func(msg ...byte) []byte {
		conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...))
		var n [2]byte
		if _, err := io.ReadFull(conn, n[:]); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, binary.BigEndian.Uint16(n[:]))
		if _, err := io.ReadFull(conn, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	conn.Write([]byte{0, 1, 1}) // power on: no answer
	if b := ask(4); len(b) < 4 || b[0] != 0x3b {
		t.Errorf("answer to reset %x", b)
	}
	if b := ask(0, 0xa4, 4, 0, 6, 0xd2, 0x76, 0, 1, 0x24, 1); !bytes.Equal(b, []byte{0x90, 0}) {
		t.Errorf("SELECT: %x", b)
	}
	if b := ask(0, 0xca, 0, 0x4f, 0); len(b) != 18 || !bytes.Equal(b[10:14], []byte{0x12, 0x34, 0x56, 0x78}) {
		t.Errorf("AID: %x", b)
	}
	conn.Close()
	if code := <-done; code != 0 || !strings.Contains(out.String(), "card 12345678") {
		t.Errorf("status %d, %q, %q", code, out.String(), errs.String())
	}
}

func TestCommandLine(t *testing.T) {
	for _, v := range []struct {
		args string
		code int
		want string
	}{
		{"-h", 0, "usage: softcard"}, {"-kind 4", 2, `no kind "4"`}, {"-serial xyz", 2, "serial number"}, {"extra", 2, "unexpected argument"},
		{"-file /nonexistent/x", 1, "no such file"}, {"-vpcd 127.0.0.1:1", 1, "refused"},
	} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), strings.Fields(v.args), &out, &errs); code != v.code || !strings.Contains(out.String()+errs.String(), v.want) {
			t.Errorf("softcard %s: %d, %q", v.args, code, errs.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if code := run(ctx, []string{"-again", "-vpcd", "127.0.0.1:1"}, &out, io.Discard); code != 0 {
		t.Errorf("cancelled: %d", code)
	}
}
