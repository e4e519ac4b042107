package rtltcp

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// server is rtl_tcp's side: header, commands, and samples that carry their
// number, so that a test sees which were lost.
type server struct {
	t        *testing.T
	l        net.Listener
	mu       sync.Mutex
	commands []command
}

func newServer(t *testing.T, serve func(s *server, conn net.Conn)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, l: l}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				serve(s, conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return s
}

func (s *server) header(conn net.Conn) {
	conn.Write(append([]byte("RTL0"), 0, 0, 0, 5, 0, 0, 0, 29))
}

// listen collects commands until the connection ends.
func (s *server) listen(conn net.Conn) {
	var b [5]byte
	for {
		if _, err := io.ReadFull(conn, b[:]); err != nil {
			return
		}
		s.mu.Lock()
		s.commands = append(s.commands, command{b[0], binary.BigEndian.Uint32(b[1:])})
		s.mu.Unlock()
	}
}

func (s *server) got() []command {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// samples returns n samples numbered from first.
func samples(first, n int) []byte {
	b := make([]byte, 0, 2*n)
	for i := range n {
		b = binary.LittleEndian.AppendUint16(b, uint16(first+i))
	}
	return b
}

func dial(t *testing.T, s *server, c Config) *Client {
	t.Helper()
	cl, err := Dial(t.Context(), s.l.Addr().String(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cl.Close() })
	return cl
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatal("did not happen in 10 s: " + what)
}

func TestTunesAndSettles(t *testing.T) {
	s := newServer(t, func(s *server, conn net.Conn) {
		s.header(conn)
		go func() {
			b := samples(0, 30000)
			for len(b) > 0 { // pieces of odd length
				n := min(len(b), 777)
				if _, err := conn.Write(b[:n]); err != nil {
					return
				}
				b = b[n:]
			}
		}()
		s.listen(conn)
	})
	c := dial(t, s, Config{ManualGain: true, Gain: 496, PPM: -3, BiasTee: true, Rate: 2_000_000, Settle: time.Millisecond * 5})
	if tuner, gains := c.Tuner(); tuner.String() != "R820T" || gains != 29 {
		t.Errorf("%v, %d gains", tuner, gains)
	}
	want := []command{{2, 2_000_000}, {1, 1_090_000_000}, {3, 1}, {4, 496}, {5, 0xFFFFFFFD}, {8, 0}, {14, 1}}
	eventually(t, "commands", func() bool { return len(s.got()) >= len(want) })
	if got := s.got(); !slices.Equal(got, want) {
		t.Errorf("commands %v, want %v", got, want)
	}
	// 5 ms at 2 Msps are 10,000 samples; they count as lost before the first.
	next := 0
	p := make([]byte, 3000)
	for next < 30000 {
		n, lost, err := c.ReadSamples(p)
		if err != nil || n == 0 || n%2 != 0 {
			t.Fatal(n, err)
		}
		if want := uint64(0); next == 0 {
			want = 10000
			if lost != want {
				t.Fatalf("lost %d at the start", lost)
			}
		} else if lost != want {
			t.Fatalf("lost %d at %d", lost, next)
		}
		next += int(lost)
		for i := 0; i < n; i += 2 {
			if got := binary.LittleEndian.Uint16(p[i:]); got != uint16(next) {
				t.Fatalf("sample %d is %d", next, got)
			}
			next++
		}
	}
	if st := c.Stats(); st.Received != 20000 || st.Dropped != 0 || st.Connections != 1 {
		t.Errorf("%+v", st)
	}
	s.mu.Lock()
	s.commands = nil
	s.mu.Unlock()
	for _, err := range []error{c.SetTunerGainMode(false), c.SetAGCMode(true), c.SetTunerGainIndex(7), c.SetFreqCorrection(2), c.SetBiasTee(false)} {
		if err != nil {
			t.Error(err)
		}
	}
	eventually(t, "commands", func() bool { return len(s.got()) == 5 })
	if got := s.got(); !slices.Equal(got, []command{{3, 0}, {8, 1}, {13, 7}, {5, 2}, {14, 0}}) {
		t.Errorf("commands %v", got)
	}
	if _, err := c.Read(make([]byte, 1)); err != io.ErrShortBuffer {
		t.Errorf("one byte: %v", err)
	}
}

// TestNeverBlocksTheServer: a program that does not read costs samples, not
// the connection, and every lost sample is counted at its place.
func TestNeverBlocksTheServer(t *testing.T) {
	const total = 1_000_000
	sent := make(chan struct{})
	s := newServer(t, func(s *server, conn net.Conn) {
		s.header(conn)
		for i := 0; i < total; i += 10000 {
			if _, err := conn.Write(samples(i, 10000)); err != nil {
				return
			}
		}
		close(sent)
		s.listen(conn)
	})
	c := dial(t, s, Config{Settle: -1, Buffer: 1 << 18})
	select {
	case <-sent:
	case <-time.After(30 * time.Second):
		t.Fatal("the server waits for a reader")
	}
	eventually(t, "all samples", func() bool { return c.Stats().Received == total })
	if d := c.Stats().Dropped; d < total-1<<17 || d >= total {
		t.Errorf("%d dropped", d)
	}
	// What was kept comes without a gap, and the lost ones before the next.
	next := uint64(0)
	p := make([]byte, 1<<16)
	for kept := total - c.Stats().Dropped; next < kept; {
		n, lost, err := c.ReadSamples(p)
		if err != nil {
			t.Fatal(err)
		}
		next += lost
		for i := 0; i < n; i += 2 {
			if got := binary.LittleEndian.Uint16(p[i:]); got != uint16(next) {
				t.Fatalf("sample %d is %d", next, got)
			}
			next++
		}
	}
}

func TestRingMarksGaps(t *testing.T) {
	r := newRing(100)
	next := 0
	put := func(n int) { r.write(samples(next, n)); next += n }
	put(40)
	put(20) // does not fit: lost
	put(1)  // would fit, but half of the buffer must be free first
	p := make([]byte, 60)
	at := 0
	take := func() {
		t.Helper()
		n, lost, err := r.read(p)
		if err != nil {
			t.Fatal(err)
		}
		at += int(lost)
		for i := 0; i < n; i += 2 {
			if got := binary.LittleEndian.Uint16(p[i:]); got != uint16(at) {
				t.Fatalf("sample %d is %d", at, got)
			}
			at++
		}
	}
	take()
	put(5) // after the gap of 21
	take() // the ten before it only
	if at != 40 {
		t.Errorf("read across a gap to %d", at)
	}
	take()
	if at != 66 || r.dropped != 21 {
		t.Errorf("at %d, dropped %d", at, r.dropped)
	}
	put(10)
	r.reset()
	put(3)
	take()
	if at != 79 {
		t.Errorf("after a reset at %d", at)
	}
	r = newRing(1 << 16)
	for range 3 * maxGaps { // many gaps: the list stays bounded
		r.skip(1)
		r.write(samples(0, 1))
	}
	if len(r.gaps) != maxGaps || r.w != 2*maxGaps {
		t.Errorf("%d gaps, %d bytes", len(r.gaps), r.w)
	}
}

// FuzzRing: whatever is written, lost, thrown away and read, the numbers of the
// samples that come out add up.
func FuzzRing(f *testing.F) {
	f.Add([]byte{10, 200, 60, 0, 130, 70, 255, 20}, uint8(40))
	f.Fuzz(func(t *testing.T, ops []byte, size uint8) {
		r := newRing(int(size) + 2)
		next, at := 0, uint64(0)
		take := func(n int) {
			p := make([]byte, n+2)
			got, lost, err := r.read(p)
			if err != nil {
				return
			}
			at += lost
			for i := 0; i < got; i += 2 {
				if v := binary.LittleEndian.Uint16(p[i:]); v != uint16(at) {
					t.Fatalf("sample %d is %d", at, v)
				}
				at++
			}
		}
		for _, op := range ops {
			switch n := int(op & 63); op >> 6 {
			case 0, 1:
				r.write(samples(next, n))
				next += n
			case 2:
				if r.r != r.w {
					take(n)
				}
			case 3:
				if n == 0 {
					r.reset()
				} else {
					r.skip(uint64(n))
					next += n
				}
			}
		}
		r.end(io.EOF)
		for r.r != r.w {
			take(50)
		}
		if at+r.lost != uint64(next) {
			t.Errorf("%d samples came out or were lost of %d", at+r.lost, next)
		}
	})
}

func TestReconnects(t *testing.T) {
	first := true
	s := newServer(t, func(s *server, conn net.Conn) {
		s.header(conn)
		s.mu.Lock()
		mine := first
		first = false
		s.mu.Unlock()
		if mine {
			conn.Write(samples(0, 100)) // and hang up
			return
		}
		conn.Write(samples(5000, 100))
		s.listen(conn)
	})
	c := dial(t, s, Config{Settle: -1, Rate: 2_400_000})
	c.SetTunerGainMode(true) // may fail, the server hangs up; it is sent again
	var got []uint16
	var gaps uint64
	p := make([]byte, 400)
	for len(got) < 200 {
		n, lost, err := c.ReadSamples(p)
		if err != nil {
			t.Fatal(err)
		}
		gaps += lost
		for i := 0; i < n; i += 2 {
			got = append(got, binary.LittleEndian.Uint16(p[i:]))
		}
	}
	if got[0] != 0 || got[199] != 5099 {
		t.Errorf("%d ... %d", got[0], got[199])
	}
	// Half a second of waiting at least, by the clock.
	if gaps < 1_000_000 {
		t.Errorf("gap of %d samples", gaps)
	}
	eventually(t, "manual gain again", func() bool { return slices.Contains(s.got(), command{3, 1}) })
	if c.Stats().Connections != 2 {
		t.Errorf("%+v", c.Stats())
	}
}

// What is set back to zero counts as set: a server keeps correction and supply
// from one connection to the next. What was never set is left to the server.
func TestZeroIsSentAgain(t *testing.T) {
	for _, set := range []bool{true, false} {
		first := true
		s := newServer(t, func(s *server, conn net.Conn) {
			s.mu.Lock()
			mine := first
			first = false
			s.mu.Unlock()
			s.header(conn)
			if mine {
				time.Sleep(20 * time.Millisecond)
				return
			}
			s.listen(conn)
		})
		c := dial(t, s, Config{Settle: -1, PPM: map[bool]int{true: 50}[set], BiasTee: set})
		eventually(t, "the connection's end", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.conn == nil })
		if set {
			if err := errors.Join(c.SetFreqCorrection(0), c.SetBiasTee(false)); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "commands again", func() bool { return slices.Contains(s.got(), command{cmdAGC, 0}) })
		time.Sleep(20 * time.Millisecond)
		got := s.got()
		if slices.Contains(got, command{cmdPPM, 0}) != set || slices.Contains(got, command{cmdBiasTee, 0}) != set {
			t.Errorf("set %v: %v", set, got)
		}
	}
}

func TestErrors(t *testing.T) {
	other := newServer(t, func(s *server, conn net.Conn) { conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n")) })
	if _, err := Dial(t.Context(), other.l.Addr().String(), Config{}); !errors.Is(err, ErrProtocol) {
		t.Errorf("not rtl_tcp: %v", err)
	}
	short := newServer(t, func(s *server, conn net.Conn) { conn.Write([]byte("RTL0")) })
	if _, err := Dial(t.Context(), short.l.Addr().String(), Config{}); !errors.Is(err, ErrProtocol) {
		t.Errorf("short header: %v", err)
	}
	silent := newServer(t, func(s *server, conn net.Conn) { s.listen(conn) })
	start := time.Now()
	if _, err := Dial(t.Context(), silent.l.Addr().String(), Config{Timeout: 100 * time.Millisecond}); err == nil {
		t.Error("a silent server")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Dial(ctx, silent.l.Addr().String(), Config{}); err == nil {
		t.Error("a cancelled context")
	}
	if time.Since(start) > 20*time.Second {
		t.Error("timeouts do not work")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := Dial(t.Context(), l.Addr().String(), Config{}); err == nil {
		t.Error("nobody listens")
	}
	ends := newServer(t, func(s *server, conn net.Conn) { s.header(conn); conn.Write(samples(0, 10)) })
	c := dial(t, ends, Config{Settle: -1, NoReconnect: true})
	b, err := io.ReadAll(c)
	// The server closes with our commands unread, which may look like a reset.
	if op := new(net.OpError); err != nil && !errors.As(err, &op) {
		t.Errorf("%v", err)
	}
	if len(b) > 20 {
		t.Errorf("%d bytes", len(b))
	}
}

func TestCloseEndsReading(t *testing.T) {
	s := newServer(t, func(s *server, conn net.Conn) { s.header(conn); s.listen(conn) })
	c := dial(t, s, Config{})
	got := make(chan error)
	go func() {
		_, err := c.Read(make([]byte, 100))
		got <- err
	}()
	time.Sleep(10 * time.Millisecond)
	c.Close()
	if err := <-got; !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	c.Close()
	if err := c.SetCenterFreq(1); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if err := c.ResetBuffer(); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

// After Close nothing is read, not even what had come, nor the end of the
// stream instead.
func TestReadAfterClose(t *testing.T) {
	for _, ends := range []bool{false, true} {
		s := newServer(t, func(s *server, conn net.Conn) {
			s.header(conn)
			conn.Write(samples(0, 1000))
			if !ends {
				s.listen(conn)
			}
		})
		c := dial(t, s, Config{Settle: -1, NoReconnect: true})
		eventually(t, "samples", func() bool { return c.Stats().Received > 0 })
		if ends {
			eventually(t, "the end", func() bool { c.ring.mu.Lock(); defer c.ring.mu.Unlock(); return c.ring.err != nil })
		}
		c.Close()
		if n, err := c.Read(make([]byte, 100)); n != 0 || !errors.Is(err, ErrClosed) {
			t.Errorf("connection ended %v: %d bytes, %v", ends, n, err)
		}
	}
}

// device has the method set of *rtl.Device of github.com/samuel/go-rtlsdr at
// v0.0.0-20240910171540-c9d8c8ee48fb, as far as it matters, with the same
// types: it is a Source without an adapter.
type device struct{ calls []string }

func (d *device) Close() error                       { return nil }
func (d *device) Read(p []byte) (int, error)         { return len(p), nil }
func (d *device) ResetBuffer() error                 { d.calls = append(d.calls, "reset"); return nil }
func (d *device) SetCenterFreq(freq uint) error      { d.calls = append(d.calls, "freq"); return nil }
func (d *device) CenterFreq() (uint, error)          { return 0, nil }
func (d *device) SetSampleRate(rate uint) error      { d.calls = append(d.calls, "rate"); return nil }
func (d *device) SampleRate() (int, error)           { return 0, nil }
func (d *device) SetTunerGainMode(manual bool) error { d.calls = append(d.calls, "mode"); return nil }
func (d *device) SetTunerGain(gain int) error        { d.calls = append(d.calls, "gain"); return nil }
func (d *device) TunerGains() ([]int, error)         { return nil, nil }
func (d *device) TunerGain() (int, error)            { return 0, nil }
func (d *device) SetAGCMode(enabled bool) error      { return nil }
func (d *device) SetBiasTee(enabled bool) error      { return nil }

func TestGoRTLSDRDeviceIsASource(t *testing.T) {
	var d device
	var s Source = &d
	if err := Tune(s, Frequency, DefaultRate, 496); err != nil || !slices.Equal(d.calls, []string{"rate", "freq", "mode", "gain", "reset"}) {
		t.Errorf("%v %v", d.calls, err)
	}
	d.calls = nil
	if err := Tune(s, Frequency, DefaultRate, AutoGain); err != nil || !slices.Equal(d.calls, []string{"rate", "freq", "mode", "reset"}) {
		t.Errorf("%v %v", d.calls, err)
	}
}
