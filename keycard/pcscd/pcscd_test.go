package pcscd

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"signalbox.example/keycard"
	"signalbox.example/keycard/softcard"
)

// daemon is a stand-in for pcscd: it answers the protocol's messages as
// pcsc-lite 1.9.9 was seen to, around a software card.
type daemon struct {
	t           *testing.T
	s           Service
	card        *softcard.Card
	version     [2]int32
	mu          sync.Mutex
	readers     []Reader
	log         []uint32 // commands
	begins      []uint32 // results of the next Begins
	keypad      bool
	maxData     uint32
	controls    [][]byte
	transmit    func(cmd []byte) ([]byte, uint32)
	changed     chan struct{} // closed when readers change
	disposition []uint32
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	if runtime.GOOS == "windows" || runtime.GOOS == "js" {
		t.Skip("no unix sockets")
	}
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	d := &daemon{t: t, s: Service{path}, card: softcard.MustNew(softcard.Config{Serial: 1}), version: [2]int32{4, 4}, changed: make(chan struct{})}
	d.readers = []Reader{{Name: "Test Reader 00 00"}, {Name: "Other Reader 00 00", Present: true, ATR: d.card.ATR()}}
	d.transmit = func(cmd []byte) ([]byte, uint32) {
		r, err := d.card.Transmit(context.Background(), cmd)
		if err != nil {
			return nil, 0x80100016
		}
		return r, 0
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go d.serve(c)
		}
	}()
	return d
}

// states encodes the readers.
func (d *daemon) states() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]byte, maxReaders*readerSize)
	for i, r := range d.readers {
		b := out[i*readerSize:]
		copy(b, r.Name)
		b[len(r.Name)+1] = 'x' // garbage after the end of the string
		order.PutUint32(b[128:], r.Events)
		state := uint32(2)
		if r.Present {
			state = 0x34
		}
		order.PutUint32(b[132:], state)
		copy(b[140:], r.ATR)
		order.PutUint32(b[176:], uint32(len(r.ATR)))
	}
	return out
}

func (d *daemon) serve(c net.Conn) {
	defer c.Close()
	for {
		var h [8]byte
		if _, err := io.ReadFull(c, h[:]); err != nil {
			return
		}
		cmd := order.Uint32(h[4:])
		body := make([]byte, order.Uint32(h[:]))
		if _, err := io.ReadFull(c, body); err != nil {
			return
		}
		d.mu.Lock()
		d.log = append(d.log, cmd)
		d.mu.Unlock()
		last := func(rv uint32) { order.PutUint32(body[len(body)-4:], rv) }
		switch cmd {
		case cmdVersion:
			if int32(order.Uint32(body)) != d.version[0] || int32(order.Uint32(body[4:])) != d.version[1] {
				last(codeVersion)
			}
			order.PutUint32(body, uint32(d.version[0]))
			order.PutUint32(body[4:], uint32(d.version[1]))
		case cmdEstablish:
			order.PutUint32(body[4:], 77)
		case cmdReaders, cmdWait:
			c.Write(d.states())
			if cmd == cmdWait {
				d.mu.Lock()
				ch := d.changed
				d.mu.Unlock()
				<-ch
				c.Write(make([]byte, 8))
			}
			continue
		case cmdConnect:
			order.PutUint32(body[140:], 99)
			order.PutUint32(body[144:], 2)
			if order.Uint32(body[132:]) == 1 {
				last(codeBusy)
			}
		case cmdReconnect:
			order.PutUint32(body[16:], 2)
		case cmdBegin:
			d.mu.Lock()
			if len(d.begins) > 0 {
				last(d.begins[0])
				d.begins = d.begins[1:]
			}
			d.mu.Unlock()
		case cmdEnd, cmdDisconnect, cmdRelease:
			d.mu.Lock()
			d.disposition = append(d.disposition, order.Uint32(body[4:]))
			if cmd == cmdEnd && order.Uint32(body[4:]) == 1 {
				d.card.Reset()
			}
			d.mu.Unlock()
		case cmdTransmit:
			apdu := make([]byte, order.Uint32(body[12:]))
			if _, err := io.ReadFull(c, apdu); err != nil {
				return
			}
			r, rv := d.transmit(apdu)
			order.PutUint32(body[24:], uint32(len(r)))
			last(rv)
			c.Write(append(body, r...))
			continue
		case cmdControl:
			in := make([]byte, order.Uint32(body[8:]))
			if _, err := io.ReadFull(c, in); err != nil {
				return
			}
			r, rv := d.control(order.Uint32(body[4:]), in)
			order.PutUint32(body[16:], uint32(len(r)))
			last(rv)
			c.Write(append(body, r...))
			continue
		}
		c.Write(body)
	}
}

// control plays a reader with a keypad at which 123456 is typed.
func (d *daemon) control(code uint32, in []byte) ([]byte, uint32) {
	d.mu.Lock()
	d.controls = append(d.controls, bytes.Clone(in))
	d.mu.Unlock()
	switch {
	case code == ctlGetFeatures && (d.keypad || d.maxData > 0):
		return []byte{6, 4, 0x42, 0, 0, 1, 7, 4, 0x42, 0, 0, 2, 0x12, 4, 0x42, 0, 0, 3}, 0
	case code == 0x42000001 && d.keypad:
		r, _ := d.card.Transmit(context.Background(), append(append(in[19:23:23], 6), "123456"...))
		return r, 0
	case code == 0x42000002 && d.keypad:
		r, _ := d.card.Transmit(context.Background(), append(append(in[24:28:28], 12), "123456654321"...))
		return r, 0
	case code == 0x42000003 && d.maxData > 0:
		return binary.LittleEndian.AppendUint32([]byte{9, 1, 0, 0x0a, 4}, d.maxData), 0
	}
	return nil, 0x8010001f
}

func TestReadersAndConnect(t *testing.T) {
	d := newDaemon(t)
	list, err := d.s.Readers(t.Context())
	if err != nil || len(list) != 2 || list[0].Name != "Test Reader 00 00" || list[0].Present || !list[1].Present || !bytes.Equal(list[1].ATR, d.card.ATR()) {
		t.Fatalf("%+v, %v", list, err)
	}
	for name, want := range map[string]string{"": "Other Reader 00 00", "test": "Test Reader 00 00", "Other Reader 00 00": "Other Reader 00 00"} {
		c, err := d.s.Connect(t.Context(), name, Shared)
		if err != nil {
			t.Fatal(err)
		}
		if c.Reader() != want {
			t.Errorf("%q is %q", name, c.Reader())
		}
		c.Close()
	}
	if _, err := d.s.Connect(t.Context(), "none", Shared); !errors.Is(err, keycard.ErrNoCard) {
		t.Errorf("unknown name: %v", err)
	}
	var pe *Error
	if _, err := d.s.Connect(t.Context(), "", Exclusive); !errors.Is(err, keycard.ErrBusy) || !errors.As(err, &pe) || pe.Code != codeBusy {
		t.Errorf("busy: %v", err)
	}
	if _, err := (Service{filepath.Join(t.TempDir(), "none")}).Readers(t.Context()); !errors.Is(err, ErrNoDaemon) {
		t.Errorf("no daemon: %v", err)
	}
}

func TestCardOverDaemon(t *testing.T) {
	d := newDaemon(t)
	conn, err := d.s.Connect(t.Context(), "", Shared)
	if err != nil {
		t.Fatal(err)
	}
	c, err := keycard.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, n := c.Count(); n != 3 { // SELECT, 6E, F9: the answer to reset announces extended length
		t.Errorf("open took %d APDUs", n)
	}
	if err := c.Verify(t.Context(), keycard.PINUser, keycard.PINString("123456")); err != nil {
		t.Fatal(err)
	}
	// Others hold the card for a while; then somebody resets it.
	d.mu.Lock()
	d.begins = []uint32{codeBusy, codeBusy, codeBusy}
	d.mu.Unlock()
	if _, err := c.URL(t.Context()); err != nil {
		t.Error(err)
	}
	d.card.Reset()
	d.mu.Lock()
	d.begins = []uint32{codeReset}
	d.log = nil
	d.mu.Unlock()
	if _, err := c.URL(t.Context()); err != nil {
		t.Errorf("after a reset: %v", err)
	}
	d.mu.Lock()
	if want := []uint32{cmdBegin, cmdReconnect, cmdBegin, cmdTransmit, cmdTransmit, cmdEnd}; !slices.Equal(d.log, want) {
		t.Errorf("messages %v, want %v", d.log, want)
	}
	d.begins = []uint32{codeRemoved}
	d.mu.Unlock()
	if _, err := c.URL(t.Context()); !errors.Is(err, keycard.ErrRemoved) {
		t.Errorf("removed: %v", err)
	}
	// A context that ends while waiting for others.
	d.mu.Lock()
	d.begins = slices.Repeat([]uint32{codeBusy}, 1000)
	d.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.URL(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("busy for ever: %v", err)
	}
	d.mu.Lock()
	d.begins, d.disposition = nil, nil
	d.mu.Unlock()
	if err := c.Verify(t.Context(), keycard.PINUser, keycard.PINString("123456")); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if !slices.Contains(d.disposition, 1) {
		t.Errorf("closing did not reset the card: %v", d.disposition)
	}
	if _, err := conn.Transmit(t.Context(), []byte{0, 0xca, 0, 0x4f, 0}); !errors.Is(err, keycard.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestConnShared: commands of one goroutine go on while another takes up a card
// that was reset. The race detector looks on.
func TestConnShared(t *testing.T) {
	d := newDaemon(t)
	conn, err := d.s.Connect(t.Context(), "", Shared)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	d.mu.Lock()
	d.begins = slices.Repeat([]uint32{codeReset, 0}, 50)
	d.mu.Unlock()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 50 {
			if err := conn.Begin(t.Context()); !errors.Is(err, keycard.ErrCardReset) {
				t.Errorf("begin: %v", err)
			}
			if err := conn.End(false); err != nil {
				t.Error(err)
			}
		}
	})
	for range 100 {
		if r, err := conn.Transmit(t.Context(), []byte{0, 0xa4, 4, 0, 6, 0xd2, 0x76, 0, 1, 0x24, 1}); err != nil || !bytes.Equal(r, []byte{0x90, 0}) {
			t.Errorf("transmit: %x, %v", r, err)
		}
	}
	wg.Wait()
}

func TestVersions(t *testing.T) {
	for _, v := range []struct {
		version [2]int32
		ok      bool
	}{{[2]int32{4, 4}, true}, {[2]int32{4, 5}, true}, {[2]int32{4, 6}, true}, {[2]int32{4, 3}, false}, {[2]int32{5, 0}, false}} {
		d := newDaemon(t)
		d.version = v.version
		_, err := d.s.Readers(t.Context())
		if (err == nil) != v.ok {
			t.Errorf("%v: %v", v.version, err)
		}
		if !v.ok && !strings.Contains(err.Error(), fmt.Sprintf("%d:%d", v.version[0], v.version[1])) {
			t.Errorf("%v: %v", v.version, err)
		}
	}
}

func TestCancelDuringCommand(t *testing.T) {
	d := newDaemon(t)
	release := make(chan struct{})
	defer close(release)
	conn, err := d.s.Connect(t.Context(), "", Shared)
	if err != nil {
		t.Fatal(err)
	}
	d.transmit = func([]byte) ([]byte, uint32) { <-release; return []byte{0x90, 0}, 0 }
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	begin := time.Now()
	if _, err := conn.Transmit(ctx, []byte{0, 0x84, 0, 0, 8}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("took %v", d)
	}
	if _, err := conn.Transmit(t.Context(), []byte{0, 0x84, 0, 0, 8}); !errors.Is(err, keycard.ErrClosed) {
		t.Errorf("afterwards: %v", err)
	}
	// A context that has ended already touches nothing.
	other, err := d.s.Connect(t.Context(), "", Shared)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Transmit(ctx, []byte{0, 0x84, 0, 0, 8}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := other.Begin(t.Context()); err != nil {
		t.Errorf("the connection suffered: %v", err)
	}
	other.Close()
}

func TestHostileDaemon(t *testing.T) {
	for _, v := range []struct {
		what string
		f    func([]byte) ([]byte, uint32)
		n    uint32
	}{
		{"error", func([]byte) ([]byte, uint32) { return nil, 0x80100016 }, 0},
		{"reset", func([]byte) ([]byte, uint32) { return nil, codeReset }, 0},
		{"long", func([]byte) ([]byte, uint32) { return make([]byte, 200000), 0 }, 0},
		{"empty", func([]byte) ([]byte, uint32) { return nil, 0 }, 0},
	} {
		d := newDaemon(t)
		conn, err := d.s.Connect(t.Context(), "", Shared)
		if err != nil {
			t.Fatal(err)
		}
		d.transmit = v.f
		if _, err := keycard.Open(t.Context(), conn); err == nil {
			t.Errorf("%s: no error", v.what)
		}
	}
	if _, err := (&Conn{}).Transmit(t.Context(), []byte{1}); !errors.Is(err, keycard.ErrMalformed) {
		t.Errorf("one octet, which vpcd takes for a control message: %v", err)
	}
}

func TestWatch(t *testing.T) {
	d := newDaemon(t)
	change := func(f func()) {
		d.mu.Lock()
		f()
		close(d.changed)
		d.changed = make(chan struct{})
		d.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var got []string
	for e, err := range d.s.Watch(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Kind.String()+" "+e.Reader.Name[:4])
		switch len(got) {
		case 3:
			time.AfterFunc(5*time.Millisecond, func() {
				change(func() { d.readers[0].Present, d.readers[0].Events, d.readers[0].ATR = true, 1, []byte{0x3b, 0} })
			})
		case 4:
			time.AfterFunc(5*time.Millisecond, func() { change(func() { d.readers[0].Events += 2 }) })
		case 6:
			time.AfterFunc(5*time.Millisecond, func() { change(func() { d.readers = d.readers[:1] }) })
		}
		if len(got) == 8 {
			break
		}
	}
	want := "reader added Test,reader added Othe,card inserted Othe,card inserted Test,card removed Test,card inserted Test,card removed Othe,reader removed Othe"
	if strings.Join(got, ",") != want {
		t.Errorf("events %v\nwant %s", got, want)
	}
	short, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer stop()
	var last error
	for _, err := range d.s.Watch(short) {
		last = err
	}
	if !errors.Is(last, context.DeadlineExceeded) {
		t.Errorf("a watch ended with %v", last)
	}
}

func TestKeypad(t *testing.T) {
	d := newDaemon(t)
	d.keypad = true
	conn, err := d.s.Connect(t.Context(), "", Shared)
	if err != nil {
		t.Fatal(err)
	}
	if !conn.HasKeypad() {
		t.Fatal("no keypad")
	}
	c, err := keycard.Open(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Verify(t.Context(), keycard.PINUser, keycard.KeypadPIN()); err != nil {
		t.Fatal(err)
	}
	b := d.controls[len(d.controls)-1]
	if len(b) != 24 || b[2] != 0x82 || order.Uint16(b[5:]) != 6<<8|127 || order.Uint32(b[15:]) != 5 || !bytes.Equal(b[19:], []byte{0, 0x20, 0, 0x82, 0}) {
		t.Errorf("verification block %x", b)
	}
	if err := c.ChangePIN(t.Context(), keycard.PINUser, keycard.KeypadPIN(), keycard.KeypadPIN()); err != nil {
		t.Fatal(err)
	}
	b = d.controls[len(d.controls)-1]
	if len(b) != 29 || b[9] != 3 || order.Uint16(b[7:]) != 6<<8|127 || order.Uint32(b[20:]) != 5 || !bytes.Equal(b[24:], []byte{0, 0x24, 0, 0x81, 0}) {
		t.Errorf("modification block %x", b)
	}
	if err := c.Verify(t.Context(), keycard.PINUser, keycard.PINString("654321")); err != nil {
		t.Errorf("PIN from the keypad: %v", err)
	}
	if err := c.Verify(t.Context(), keycard.PINUser, keycard.KeypadPIN()); !errors.Is(err, keycard.ErrPIN) {
		t.Errorf("old PIN at the keypad: %v", err)
	}
	c.Close()
	// Without a keypad.
	d = newDaemon(t)
	if conn, err = d.s.Connect(t.Context(), "", Shared); err != nil {
		t.Fatal(err)
	}
	if c, err = keycard.Open(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Verify(t.Context(), keycard.PINUser, keycard.KeypadPIN()); !errors.Is(err, keycard.ErrUnsupported) || conn.HasKeypad() {
		t.Errorf("no keypad: %v", err)
	}
}

// A reader that passes short commands only: no extended length, whatever the
// card says.
func TestReaderLimit(t *testing.T) {
	d := newDaemon(t)
	d.maxData = 254
	var longest int
	inner := d.transmit
	d.transmit = func(cmd []byte) ([]byte, uint32) { longest = max(longest, len(cmd)); return inner(cmd) }
	conn, err := d.s.Connect(t.Context(), "", Shared)
	if err != nil {
		t.Fatal(err)
	}
	if conn.MaxData() != 254 {
		t.Errorf("limit %d", conn.MaxData())
	}
	c, err := keycard.Open(t.Context(), conn, keycard.WithPINs(keycard.StaticPIN(nil, keycard.PINString("12345678"))))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetCertificate(t.Context(), keycard.SlotAuth, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if b, err := c.Certificate(t.Context(), keycard.SlotAuth); err != nil || len(b) != 1000 {
		t.Errorf("%d octets, %v", len(b), err)
	}
	if longest > 261 {
		t.Errorf("a command of %d octets", longest)
	}
	c.Close()
}

func FuzzReaderStates(f *testing.F) {
	f.Add(make([]byte, readerSize), []byte{6, 4, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b, features []byte) {
		for _, r := range parseReaders(b) {
			if len(r.Name) > 128 || len(r.ATR) > 33 || strings.ContainsRune(r.Name, 0) {
				t.Errorf("%+v", r)
			}
		}
		parseFeatures(features)
		changes(parseReaders(b), parseReaders(features))
	})
}
