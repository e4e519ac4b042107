package scd

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"signalbox.example/keycard"
)

// Conn is a connection to gpg-agent. It is a [keycard.Transport].
type Conn struct {
	turn   chan struct{}
	conn   net.Conn
	r      *bufio.Reader
	line   []byte
	used   bool // a command went to the card
	broken error
}

// Dial connects to the agent's socket, [Socket] if it is empty, and lets
// scdaemon open its card. It does not start an agent: without one the error
// wraps [ErrNoAgent].
func Dial(ctx context.Context, socket string) (*Conn, error) {
	if socket == "" {
		socket = Socket()
	}
	path, err := redirect(socket)
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("scd: %s: %w (%v)", path, ErrNoAgent, err)
	}
	c := &Conn{turn: make(chan struct{}, 1), conn: nc, r: bufio.NewReaderSize(nc, 2*maxLine), line: make([]byte, 0, maxLine)}
	c.turn <- struct{}{}
	if _, err := c.command(ctx, nil); err != nil { // the greeting
		nc.Close()
		return nil, err
	}
	if _, err := c.command(ctx, []byte("SCD SERIALNO")); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// Socket returns where the agent of the present user listens: for GNUPGHOME
// or ~/.gnupg, below /run/user where that exists, else in the folder itself.
func Socket() string {
	home := os.Getenv("GNUPGHOME")
	standard := ""
	if h, err := os.UserHomeDir(); err == nil {
		standard = filepath.Join(h, ".gnupg")
	}
	if home == "" {
		home = standard
	}
	run := filepath.Join("/run/user", strconv.Itoa(os.Getuid()), "gnupg")
	if home != standard {
		sum := sha1.Sum([]byte(home))
		run = filepath.Join(run, "d."+zbase32(sum[:15]))
	}
	if p := filepath.Join(run, "S.gpg-agent"); exists(p) {
		return p
	}
	return filepath.Join(home, "S.gpg-agent")
}

func exists(p string) bool {
	_, err := os.Stat(p)
	return err == nil
}

// zbase32 is the encoding that GnuPG names folders with; len(b) is a multiple
// of five.
func zbase32(b []byte) string {
	const alphabet = "ybndrfg8ejkmcpqxot1uwisza345h769"
	var out []byte
	for ; len(b) >= 5; b = b[5:] {
		v := uint64(b[0])<<32 | uint64(b[1])<<24 | uint64(b[2])<<16 | uint64(b[3])<<8 | uint64(b[4])
		for shift := 35; shift >= 0; shift -= 5 {
			out = append(out, alphabet[v>>shift&31])
		}
	}
	return string(out)
}

// redirect follows a socket file that only names another one.
func redirect(path string) (string, error) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > 4096 {
		return path, nil // Dial will tell
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("scd: %w", err)
	}
	text, ok := strings.CutPrefix(string(b), "%Assuan%\nsocket=")
	if !ok {
		return "", fmt.Errorf("scd: %s is not a socket: %w", path, ErrNoAgent)
	}
	target, _, _ := strings.Cut(text, "\n")
	return os.ExpandEnv(target), nil
}

// command sends one line, or none to read the greeting, and returns the data
// of the response.
func (c *Conn) command(ctx context.Context, line []byte) ([]byte, error) {
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	defer c.give()
	return c.exchange(ctx, line)
}

// take waits for the turn.
func (c *Conn) take(ctx context.Context) error {
	select {
	case <-c.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Conn) give() { c.turn <- struct{}{} }

// exchange is command for who has the turn.
func (c *Conn) exchange(ctx context.Context, line []byte) ([]byte, error) {
	if c.broken != nil {
		return nil, c.broken
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var stop func() bool
	var fired chan struct{}
	if ctx.Done() != nil {
		fired = make(chan struct{})
		stop = context.AfterFunc(ctx, func() {
			c.conn.SetDeadline(time.Unix(1, 0))
			close(fired)
		})
	}
	var data []byte
	var err error
	if line != nil {
		_, err = c.conn.Write(append(line, '\n'))
	}
	if err == nil {
		data, err = readResponse(c.r, func() error {
			_, err := c.conn.Write([]byte("CAN\n"))
			return err
		})
	}
	if stop != nil && !stop() {
		<-fired
		c.conn.SetDeadline(time.Time{})
	}
	if err == nil {
		return data, nil
	}
	if _, refused := err.(*Error); refused {
		return nil, err
	}
	c.conn.Close()
	c.broken = fmt.Errorf("scd: %w", keycard.ErrClosed)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, fmt.Errorf("scd: the agent went away: %w (%v)", keycard.ErrClosed, err)
}

// MaxData returns the most octets of command data that fit into a line of the
// protocol, where they are hexadecimal. Longer data is chained.
func (c *Conn) MaxData() int { return 470 }

// Transmit sends one encoded command to the card and returns its response, data
// and status word, which belongs to the caller.
func (c *Conn) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	if len(cmd) < 4 || len(cmd) > c.MaxData()+9 {
		return nil, fmt.Errorf("scd: command of %d octets: %w", len(cmd), keycard.ErrMalformed)
	}
	line := append(make([]byte, 0, maxLine+1), "SCD APDU "...)
	if len(cmd) > 6 && cmd[4] == 0 {
		line = append(line, "--exlen=4096 "...) // room for a long answer
	}
	line = hex.AppendEncode(line, cmd)
	err := c.take(ctx)
	var data []byte
	if err == nil {
		c.used = true
		data, err = c.exchange(ctx, line)
		c.give()
	}
	clear(line[:cap(line)])
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Command sends any line to the agent, such as "SCD GETINFO version", and
// returns the data of the response.
func (c *Conn) Command(ctx context.Context, line string) ([]byte, error) {
	if len(line) > maxLine || bytes.ContainsAny([]byte(line), "\r\n") {
		return nil, fmt.Errorf("scd: command line of %d octets: %w", len(line), keycard.ErrMalformed)
	}
	return c.command(ctx, []byte(line))
}

// Close lets scdaemon reset the card, so that neither it nor the next program
// relies on what was done here, and hangs up.
func (c *Conn) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	if err := c.take(ctx); err != nil {
		c.conn.Close() // ends the command that is under way
		<-c.turn
		c.give()
		return err
	}
	defer c.give()
	if c.broken != nil {
		return nil
	}
	var err error
	if c.used {
		_, err = c.exchange(ctx, []byte("SCD RESET"))
	}
	c.conn.Close()
	if c.broken != nil {
		return nil
	}
	c.broken = fmt.Errorf("scd: %w", keycard.ErrClosed)
	return err
}
