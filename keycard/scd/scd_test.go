package scd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// agent is a stand-in for gpg-agent around a software card.
type agent struct {
	socket string
	card   *softcard.Card
	mu     sync.Mutex
	lines  []string
	answer func(line string) (string, bool) // instead of the usual
}

func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{socket: filepath.Join(t.TempDir(), "S.gpg-agent"), card: softcard.MustNew(softcard.Config{Serial: 1})}
	l, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go a.serve(c)
		}
	}()
	return a
}

// dline escapes as scdaemon does, and cuts long data.
func dline(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		out.WriteString("D ")
		for _, c := range b[:min(len(b), 300)] {
			if c == '%' || c == '\r' || c == '\n' {
				fmt.Fprintf(&out, "%%%02X", c)
			} else {
				out.WriteByte(c)
			}
		}
		out.WriteByte('\n')
		b = b[min(len(b), 300):]
	}
	return out.String()
}

func (a *agent) serve(c net.Conn) {
	defer c.Close()
	fmt.Fprintf(c, "OK Pleased to meet you, process %d\n", 1)
	sc := bufio.NewScanner(c)
	for sc.Scan() {
		line := sc.Text()
		a.mu.Lock()
		a.lines = append(a.lines, line)
		f := a.answer
		a.mu.Unlock()
		if f != nil {
			if r, ok := f(line); ok {
				if r != "" {
					c.Write([]byte(r))
				}
				continue
			}
		}
		switch {
		case line == "SCD SERIALNO":
			fmt.Fprintf(c, "# a comment\nS SERIALNO D276000124010304FFFE000000010000\nOK\n")
		case strings.HasPrefix(line, "SCD APDU "):
			f := strings.Fields(line)
			cmd, err := hex.DecodeString(f[len(f)-1])
			if err != nil || len(line) > maxLine {
				fmt.Fprintf(c, "ERR 100663571 bad line <SCD>\n")
				continue
			}
			r, err := a.card.Transmit(context.Background(), cmd)
			if err != nil {
				fmt.Fprintf(c, "ERR 100663404 Card error <SCD>\n")
				continue
			}
			fmt.Fprintf(c, "%sOK\n", dline(r))
		case line == "SCD RESET":
			a.card.Reset()
			fmt.Fprintf(c, "OK\n")
		default:
			fmt.Fprintf(c, "ERR 67109139 Unknown IPC command <GPG Agent>\n")
		}
	}
}

func TestCardThroughAgent(t *testing.T) {
	a := newAgent(t)
	conn, err := Dial(t.Context(), a.socket)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keycard.Open(t.Context(), conn, keycard.WithPINs(keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678"))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Octets that are escaped, and data longer than a line.
	cert := bytes.Repeat([]byte("%\r\n\x00+ %25"), 150)
	if err := c.SetCertificate(t.Context(), keycard.SlotAuth, cert); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Certificate(t.Context(), keycard.SlotAuth); err != nil || !bytes.Equal(b, cert) {
		t.Errorf("certificate of %d octets, %v", len(b), err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lines[len(a.lines)-1] != "SCD RESET" {
		t.Errorf("closing sent %q", a.lines[len(a.lines)-1])
	}
	for _, l := range a.lines {
		if len(l) > maxLine {
			t.Errorf("line of %d octets", len(l))
		}
	}
}

// TestAgentShared: goroutines take turns on one connection, also when one of
// them closes it. The race detector looks on.
func TestAgentShared(t *testing.T) {
	a := newAgent(t)
	c, err := Dial(t.Context(), a.socket)
	if err != nil {
		t.Fatal(err)
	}
	read, err := hex.DecodeString("00a4040006d27600012401")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 20 {
				r, err := c.Transmit(t.Context(), read)
				if err == nil && !bytes.Equal(r, []byte{0x90, 0}) || err != nil && !errors.Is(err, keycard.ErrClosed) {
					t.Errorf("%x, %v", r, err)
				}
			}
			if i < 2 {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	resets := 0
	for _, l := range a.lines {
		if l == "SCD RESET" {
			resets++
		}
	}
	if resets == 0 {
		t.Error("Close did not reset the card")
	}
}

func TestAgentErrors(t *testing.T) {
	a := newAgent(t)
	conn, err := Dial(t.Context(), a.socket)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		answer string
		want   error
	}{
		{"ERR 100663404 Card error <SCD>\n", keycard.ErrNoCard},
		{"ERR 100663408 Card not present <SCD>\n", keycard.ErrNoCard},
		{"ERR 100696144 No such device <SCD>\n", keycard.ErrNoCard},
		{"ERR 100663406 Card removed <SCD>\n", keycard.ErrRemoved},
		{"ERR 100663405 Card reset required <SCD>\n", keycard.ErrCardReset},
		{"ERR 100663469 Locked <SCD>\n", keycard.ErrBusy},
	} {
		a.mu.Lock()
		a.answer = func(string) (string, bool) { return v.answer, true }
		a.mu.Unlock()
		var se *Error
		if _, err := conn.Transmit(t.Context(), []byte{0, 0xca, 0, 0x4f, 0}); !errors.Is(err, v.want) || !errors.As(err, &se) {
			t.Errorf("%s: %v", strings.TrimSpace(v.answer), err)
		}
	}
	// An inquiry is refused, and the command ends.
	a.mu.Lock()
	a.answer = func(l string) (string, bool) {
		if l == "CAN" {
			return "ERR 99 cancelled\n", true
		}
		return "S PROGRESS x\nINQUIRE NEEDPIN\n", true
	}
	a.mu.Unlock()
	if _, err := conn.Transmit(t.Context(), []byte{0, 0xca, 0, 0x4f, 0}); err == nil || !strings.Contains(err.Error(), "cancelled") {
		t.Errorf("inquiry: %v", err)
	}
	// What breaks the protocol ends the connection.
	a.mu.Lock()
	a.answer = func(string) (string, bool) { return "HELLO\n", true }
	a.mu.Unlock()
	if _, err := conn.Transmit(t.Context(), []byte{0, 0xca, 0, 0x4f, 0}); !errors.Is(err, keycard.ErrClosed) {
		t.Errorf("nonsense: %v", err)
	}
	if _, err := conn.Transmit(t.Context(), []byte{0, 0xca, 0, 0x4f, 0}); !errors.Is(err, keycard.ErrClosed) {
		t.Errorf("afterwards: %v", err)
	}
	for _, cmd := range [][]byte{{1}, make([]byte, 600)} {
		if _, err := conn.Transmit(t.Context(), cmd); !errors.Is(err, keycard.ErrMalformed) {
			t.Errorf("%d octets: %v", len(cmd), err)
		}
	}
	if _, err := Dial(t.Context(), filepath.Join(t.TempDir(), "none")); !errors.Is(err, ErrNoAgent) {
		t.Errorf("no agent: %v", err)
	}
}

func TestAgentCancel(t *testing.T) {
	a := newAgent(t)
	conn, err := Dial(t.Context(), a.socket)
	if err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	a.answer = func(string) (string, bool) { return "", true } // silence
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := conn.Transmit(ctx, []byte{0, 0xca, 0, 0x4f, 0}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	if err := conn.Close(); err != nil {
		t.Errorf("closing a broken connection: %v", err)
	}
}

func TestSocketPlaces(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GNUPGHOME", dir)
	if s := Socket(); s != filepath.Join(dir, "S.gpg-agent") {
		t.Errorf("%s", s)
	}
	// The name that gpgconf gives for this folder.
	if z := zbase32([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}); z != "yyyoryarywdyqnyjbefoadeq" {
		t.Errorf("zbase32 %s", z)
	}
	a := newAgent(t)
	file := filepath.Join(dir, "S.gpg-agent")
	if err := os.WriteFile(file, []byte("%Assuan%\nsocket="+a.socket+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Dial(t.Context(), "")
	if err != nil {
		t.Fatalf("redirected socket: %v", err)
	}
	c.Close()
	if err := os.WriteFile(file, []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(t.Context(), ""); !errors.Is(err, ErrNoAgent) {
		t.Errorf("not a socket: %v", err)
	}
}

func FuzzResponse(f *testing.F) {
	for _, s := range []string{"OK\n", "D 123%0D%25\nD abc\nOK done\n", "ERR 1 x\n", "S x\n# y\n\nOK\n", "D %\nOK\n", "D %0\nOK\n", "INQUIRE x\nOK\n", "ERR x\n", "D x", strings.Repeat("D 0123456789\n", 200) + "OK\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		data, err := readResponse(bufio.NewReaderSize(bytes.NewReader(b), 2*maxLine), func() error { return nil })
		if err != nil {
			return
		}
		if len(data) > maxData {
			t.Errorf("%d octets", len(data))
		}
		again, err := readResponse(bufio.NewReaderSize(strings.NewReader(dline(data)+"OK\n"), 2*maxLine), nil)
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("%q became %q, %v", data, again, err)
		}
	})
}
