package rtltcp

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Errors of this package.
var (
	// ErrProtocol: what answers is not rtl_tcp.
	ErrProtocol = errors.New("rtltcp: the server did not send an rtl_tcp header")
	// ErrClosed: the Client was closed.
	ErrClosed = errors.New("rtltcp: client is closed")
)

// Config says how a Client tunes and what it does about failures. The zero
// value receives Mode S at 2.4 Msps with the tuner's own gain.
type Config struct {
	// Frequency is in hertz; 0 means [Frequency].
	Frequency uint
	// Rate is in samples a second; 0 means [DefaultRate].
	Rate uint
	// ManualGain sets Gain, in tenths of a decibel; otherwise the tuner's own
	// gain control works.
	ManualGain bool
	Gain       int
	// PPM corrects the tuner's clock, in parts per million; 0 leaves it as the
	// server has it.
	PPM int
	// AGC turns on the automatic gain control of the demodulator chip, BiasTee
	// the supply of an antenna amplifier, which false leaves as the server has it.
	AGC, BiasTee bool
	// Settle is the time worth of samples that are thrown away after tuning: those
	// that were on their way, and those of a tuner that still settles. 0 means
	// a quarter of a second, less than zero nothing.
	Settle time.Duration
	// Buffer is the size of the ring in bytes; 0 means 16 MiB, three and a half
	// seconds at 2.4 Msps, and the least is 128 KiB. When it is full, what comes
	// is lost until half of it is free.
	Buffer int
	// Timeout ends a connection on which nothing comes; 0 means 5 s. It also
	// bounds connecting and sending a command.
	Timeout time.Duration
	// NoReconnect ends the stream with the first connection instead of
	// connecting again, after half a second at first and ten at most.
	NoReconnect bool
}

// Tuner is the kind of tuner that the server has.
type Tuner uint32

// String returns the tuner's name, or "unknown".
func (t Tuner) String() string {
	names := [...]string{"unknown", "E4000", "FC0012", "FC0013", "FC2580", "R820T", "R828D"}
	if int64(t) < int64(len(names)) {
		return names[t]
	}
	return "unknown"
}

// Stats counts what a Client did.
type Stats struct {
	// Received samples came after settling; Dropped of them were lost because
	// the program read too slowly.
	Received, Dropped uint64
	// Connections that were made.
	Connections uint64
}

// A Client receives from one server. It is a [Source].
type Client struct {
	addr   string
	ring   *ring
	cancel context.CancelFunc
	done   chan struct{}

	mu          sync.Mutex // of what follows
	config      Config
	said        uint32 // a bit for each command that was given by a method
	conn        net.Conn
	tuner       Tuner
	gains       int
	connections uint64
	settle      uint64 // bytes still to throw away
	closed      bool
}

var _ Source = (*Client)(nil)

// Dial connects to a server at host:port, tunes, and starts to receive. ctx
// bounds only the first connection, besides Config.Timeout. A server that sends
// no rtl_tcp header in that time is an error that wraps [ErrProtocol]. The caller
// must Close the Client.
func Dial(ctx context.Context, addr string, c Config) (*Client, error) {
	if c.Frequency == 0 {
		c.Frequency = Frequency
	}
	if c.Rate == 0 {
		c.Rate = DefaultRate
	}
	if c.Settle == 0 {
		c.Settle = 250 * time.Millisecond
	}
	if c.Buffer <= 0 {
		c.Buffer = 16 << 20
	}
	if c.Timeout <= 0 {
		c.Timeout = 5 * time.Second
	}
	cl := &Client{addr: addr, config: c, ring: newRing(max(c.Buffer, 2*chunk)), done: make(chan struct{})}
	if err := cl.connect(ctx); err != nil {
		return nil, err
	}
	ctx, cl.cancel = context.WithCancel(context.Background())
	go cl.receive(ctx)
	return cl, nil
}

// chunk is the largest piece that is read from the connection at once.
const chunk = 1 << 16

// connect makes a connection, reads the header and tunes.
func (c *Client) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Timeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return fmt.Errorf("rtltcp: %w", err)
	}
	// A header that does not come must not outlast the context.
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	var header [12]byte
	_, err = io.ReadFull(conn, header[:])
	if err == nil && string(header[:4]) != "RTL0" {
		err = ErrProtocol
	} else if err != nil {
		err = fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	if err == nil && !stop() {
		err = fmt.Errorf("rtltcp: %w", context.Cause(ctx))
	}
	if err != nil {
		stop()
		conn.Close()
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		conn.Close()
		return ErrClosed
	}
	c.conn = conn
	c.tuner = Tuner(binary.BigEndian.Uint32(header[4:]))
	c.gains = int(binary.BigEndian.Uint32(header[8:]))
	c.connections++
	if err := c.tune(); err != nil {
		conn.Close()
		return err
	}
	return nil
}

// tune sends the whole configuration. Rate before frequency, as rtl_sdr does.
// Correction and supply are left to the server unless they are, or were, set.
func (c *Client) tune() error {
	k := &c.config
	commands := []command{{cmdRate, uint32(k.Rate)}, {cmdFrequency, uint32(k.Frequency)}, {cmdGainMode, bit(k.ManualGain)}}
	if k.ManualGain {
		commands = append(commands, command{cmdGain, uint32(int32(k.Gain))})
	}
	if k.PPM != 0 || c.said&(1<<cmdPPM) != 0 {
		commands = append(commands, command{cmdPPM, uint32(int32(k.PPM))})
	}
	commands = append(commands, command{cmdAGC, bit(k.AGC)})
	if k.BiasTee || c.said&(1<<cmdBiasTee) != 0 {
		commands = append(commands, command{cmdBiasTee, bit(k.BiasTee)})
	}
	return c.send(commands...)
}

// Commands of rtl_tcp.
const (
	cmdFrequency   = 1
	cmdRate        = 2
	cmdGainMode    = 3
	cmdGain        = 4
	cmdPPM         = 5
	cmdAGC         = 8
	cmdGainByIndex = 13
	cmdBiasTee     = 14
)

type command struct {
	number byte
	value  uint32
}

func bit(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// send writes commands and starts to settle. The caller holds mu.
func (c *Client) send(commands ...command) error {
	if c.closed {
		return ErrClosed
	}
	if c.conn == nil {
		return nil // sent when the connection is there again
	}
	var b []byte
	for _, k := range commands {
		b = binary.BigEndian.AppendUint32(append(b, k.number), k.value)
	}
	c.conn.SetWriteDeadline(time.Now().Add(c.config.Timeout))
	if _, err := c.conn.Write(b); err != nil {
		return fmt.Errorf("rtltcp: %w", err)
	}
	c.settleNow()
	return nil
}

func (c *Client) settleNow() {
	if c.config.Settle > 0 {
		c.settle = uint64(c.config.Settle.Seconds()*float64(c.config.Rate)) * 2
	}
}

// receive moves samples from the connection to the ring until the Client is
// closed.
func (c *Client) receive(ctx context.Context) {
	defer close(c.done)
	buf := make([]byte, chunk)
	for {
		last, err := c.stream(buf)
		c.mu.Lock()
		c.conn.Close()
		c.conn = nil
		stop, rate := c.closed || c.config.NoReconnect, float64(c.config.Rate)
		if c.closed {
			err = ErrClosed
		}
		c.mu.Unlock()
		if stop {
			c.ring.end(err)
			return
		}
		for wait := 500 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
			select {
			case <-ctx.Done():
				c.ring.end(ErrClosed)
				return
			case <-time.After(wait):
			}
			if err := c.connect(ctx); err == nil {
				break
			} else if ctx.Err() != nil || errors.Is(err, ErrClosed) {
				c.ring.end(ErrClosed)
				return
			}
		}
		// How many samples the silence was can only be told by the clock.
		c.ring.skip(uint64(time.Since(last).Seconds() * rate))
	}
}

// stream reads one connection to its end and returns when the last sample
// came.
func (c *Client) stream(buf []byte) (last time.Time, err error) {
	c.mu.Lock()
	conn, timeout := c.conn, c.config.Timeout
	c.mu.Unlock()
	last = time.Now()
	odd := 0 // bytes of a sample cut in two, at the start of buf
	for {
		conn.SetReadDeadline(time.Now().Add(timeout))
		n, err := conn.Read(buf[odd:])
		n += odd
		odd = n & 1
		whole := buf[:n-odd]
		if n > 0 {
			last = time.Now()
		}
		c.mu.Lock()
		skip := min(uint64(len(whole)), c.settle)
		c.settle -= skip
		c.mu.Unlock()
		if skip > 0 {
			c.ring.skip(skip / 2)
			whole = whole[skip:]
		}
		if len(whole) > 0 {
			c.ring.write(whole)
		}
		if odd == 1 {
			buf[0] = buf[n-1]
		}
		if err == io.EOF {
			return last, io.EOF
		} else if err != nil {
			return last, fmt.Errorf("rtltcp: %w", err)
		}
	}
}

// Read reads samples, an even number of bytes, into p, waiting for at least
// one. Lost samples are passed over silently: see [Client.ReadSamples]. p must
// have room for one sample, two bytes. After Close it returns [ErrClosed];
// without reconnecting io.EOF or the error of the connection.
func (c *Client) Read(p []byte) (int, error) {
	n, _, err := c.ReadSamples(p)
	return n, err
}

// ReadSamples is [Client.Read] that also says how many samples were lost
// immediately before those in p, for want of reading, in settling, or while
// there was no connection (the last by the clock, so not exactly). Add them
// to the time of the stream. n counts bytes, lost counts samples of two bytes.
func (c *Client) ReadSamples(p []byte) (n int, lost uint64, err error) {
	if len(p) == 1 {
		return 0, 0, io.ErrShortBuffer
	}
	return c.ring.read(p)
}

// Stats returns the counters.
func (c *Client) Stats() Stats {
	c.ring.mu.Lock()
	s := Stats{Received: c.ring.received, Dropped: c.ring.dropped}
	c.ring.mu.Unlock()
	c.mu.Lock()
	s.Connections = c.connections
	c.mu.Unlock()
	return s
}

// Tuner returns the kind of tuner and the number of gains it has.
func (c *Client) Tuner() (Tuner, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tuner, c.gains
}

// set changes the configuration, which is sent again with each connection,
// and sends the command.
func (c *Client) set(change func(*Config), number byte, value uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.config)
	c.said |= 1 << number
	return c.send(command{number, value})
}

// SetCenterFreq tunes, in hertz. This and the other methods that set something
// begin to settle (Config.Settle), so samples are lost. Without a connection they
// return nil, and what they set is sent with the next one. After Close they return
// [ErrClosed].
func (c *Client) SetCenterFreq(hz uint) error {
	return c.set(func(k *Config) { k.Frequency = hz }, cmdFrequency, uint32(hz))
}

// SetSampleRate sets the rate in samples a second.
func (c *Client) SetSampleRate(hz uint) error {
	return c.set(func(k *Config) { k.Rate = hz }, cmdRate, uint32(hz))
}

// SetTunerGainMode chooses manual gain, or with false the tuner's own.
func (c *Client) SetTunerGainMode(manual bool) error {
	return c.set(func(k *Config) { k.ManualGain = manual }, cmdGainMode, bit(manual))
}

// SetTunerGain sets the manual gain in tenths of a decibel.
func (c *Client) SetTunerGain(tenthDB int) error {
	return c.set(func(k *Config) { k.Gain = tenthDB }, cmdGain, uint32(int32(tenthDB)))
}

// SetTunerGainIndex sets the manual gain by its number in the tuner's table, from
// 0 to one less than the number that [Client.Tuner] returns. It is not repeated
// with the next connection, and lost where there is none.
func (c *Client) SetTunerGainIndex(i int) error {
	return c.set(func(*Config) {}, cmdGainByIndex, uint32(i))
}

// SetFreqCorrection corrects the tuner's clock, in parts per million.
func (c *Client) SetFreqCorrection(ppm int) error {
	return c.set(func(k *Config) { k.PPM = ppm }, cmdPPM, uint32(int32(ppm)))
}

// SetAGCMode turns the automatic gain control of the demodulator chip on or off.
func (c *Client) SetAGCMode(on bool) error {
	return c.set(func(k *Config) { k.AGC = on }, cmdAGC, bit(on))
}

// SetBiasTee turns the supply of an antenna amplifier on or off.
func (c *Client) SetBiasTee(on bool) error {
	return c.set(func(k *Config) { k.BiasTee = on }, cmdBiasTee, bit(on))
}

// ResetBuffer throws away the samples that wait to be read, and those on
// their way. They count as lost.
func (c *Client) ResetBuffer() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.settleNow()
	c.ring.reset()
	return nil
}

// Close ends the connection and waits for the Client's goroutine. It may be
// called more than once.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	if c.conn != nil {
		c.conn.Close()
	}
	c.mu.Unlock()
	c.cancel()
	c.ring.end(ErrClosed)
	<-c.done
	c.ring.shut()
	return nil
}
