package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"signalbox.example/examples/adsb/web"
	"signalbox.example/modes"
	"signalbox.example/modes/avr"
)

// ports are those of -net: 0 for any, -1 for none.
type ports struct {
	avrIn, avrOut, sbs, beast, http int
}

func (p ports) check() error {
	for _, n := range []int{p.avrIn, p.avrOut, p.sbs, p.beast, p.http} {
		if n < -1 || n > 65535 {
			return usage("port %d: want -1 to 65535", n)
		}
	}
	return nil
}

// outputs are the fans that send to network clients.
type outputs struct {
	avr, sbs, beast fan
}

// A fan sends the same bytes to every client. A client that does not read
// loses its connection rather than hold up the others.
type fan struct {
	mu      sync.Mutex
	clients map[chan []byte]bool
}

// Bounds of the network side.
const (
	maxClients  = 64  // of each port
	clientQueue = 256 // messages that wait for one client
)

// send calls write only when somebody listens.
func (f *fan) send(write func([]byte) []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.clients) == 0 {
		return
	}
	b := write(nil)
	if len(b) == 0 {
		return
	}
	for c := range f.clients {
		select {
		case c <- b:
		default:
			delete(f.clients, c)
			close(c)
		}
	}
}

func (f *fan) join() chan []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.clients) >= maxClients {
		return nil
	}
	if f.clients == nil {
		f.clients = map[chan []byte]bool{}
	}
	c := make(chan []byte, clientQueue)
	f.clients[c] = true
	return c
}

func (f *fan) leave(c chan []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.clients[c] {
		delete(f.clients, c)
		close(c)
	}
}

// serve opens the ports and returns what closes them.
func (rx *receiver) serve(ctx context.Context, stderr io.Writer) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var closers []io.Closer
	stop = func() {
		cancel()
		for _, c := range closers {
			c.Close()
		}
		wg.Wait()
	}
	listen := func(name string, port int, handle func(net.Listener)) {
		if err != nil || port < 0 {
			return
		}
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(rx.o.bind, strconv.Itoa(port))); err != nil {
			return
		}
		closers = append(closers, l)
		fmt.Fprintf(stderr, "adsb: %s on %s\n", name, l.Addr())
		wg.Go(func() { handle(l) })
	}
	rx.outputs = new(outputs)
	listen("AVR in", rx.o.ports.avrIn, func(l net.Listener) { accept(ctx, l, rx.avrClient) })
	for _, out := range []struct {
		name string
		port int
		fan  *fan
	}{{"AVR out", rx.o.ports.avrOut, &rx.outputs.avr}, {"SBS", rx.o.ports.sbs, &rx.outputs.sbs}, {"Beast", rx.o.ports.beast, &rx.outputs.beast}} {
		listen(out.name, out.port, func(l net.Listener) {
			accept(ctx, l, func(ctx context.Context, conn net.Conn) { out.fan.client(ctx, conn) })
		})
	}
	listen("HTTP", rx.o.ports.http, func(l net.Listener) {
		server := &http.Server{Handler: rx.page(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
		wg.Go(func() { <-ctx.Done(); server.Close() })
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) && ctx.Err() == nil {
			fmt.Fprintf(stderr, "adsb: HTTP: %v\n", err)
		}
	})
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// page is the live page with aircraft.json.
func (rx *receiver) page() http.Handler {
	return web.Handler(web.Config{
		Aircraft: func() []byte {
			rx.mu.Lock()
			defer rx.mu.Unlock()
			return rx.tracker.AppendAircraftJSON(nil, time.Now())
		},
		Lat: rx.o.ref.V.Lat, Lon: rx.o.ref.V.Lon, HasPosition: rx.o.ref.OK,
		Version: "signalbox",
	})
}

// accept serves connections until the listener is closed, then ends them. Other
// failures pass, that of too many open files for one.
func accept(ctx context.Context, l net.Listener, serve func(context.Context, net.Conn)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxClients)
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		} else if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		wg.Go(func() {
			defer func() { <-slots }()
			defer conn.Close()
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			serve(ctx, conn)
		})
	}
}

// avrClient takes frames from a client.
func (rx *receiver) avrClient(ctx context.Context, conn net.Conn) {
	var d avr.Decoder
	for f, err := range d.Frames(conn) {
		if err != nil || ctx.Err() != nil {
			return
		}
		// Other receivers' clocks are not ours.
		g := modes.Frame{Bits: f.Bits, Data: f.Data, Signal: f.Signal, HasSignal: f.HasSignal}
		rx.framed(&g)
	}
}

// client sends to one connection until it or the fan ends.
func (f *fan) client(ctx context.Context, conn net.Conn) {
	c := f.join()
	if c == nil {
		return
	}
	defer f.leave(c)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		io.Copy(io.Discard, conn) // what it says does not matter, its end does
	}()
	defer func() { conn.Close(); <-gone }()
	for {
		select {
		case b, ok := <-c:
			if !ok {
				return
			}
			conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
			if _, err := conn.Write(b); err != nil {
				return
			}
		case <-gone:
			return
		case <-ctx.Done():
			return
		}
	}
}
