// Command rekey replaces the keys of a running ESP flow without losing a
// packet: make before break.
//
//  1. The receiver reserves a fresh SPI (ALLOCSPI) and fills it in (UPDSA): it
//     can read the new state before anybody writes with it.
//  2. The sender adds the new state. The kernel uses the youngest of those that
//     match, so packets change over between two of them.
//  3. When no packet can be on its way through the old state any more both ends
//     delete it, the sender first. Deleting it sooner would make the kernel
//     refuse the packet that is just being sent.
//
// Both ends live in namespaces that the program makes and removes. It needs
// root and iproute2.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/netns"
	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("rekey", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	packets := fs.Int("packets", 10000, "`number` of packets to send")
	rekeys := fs.Int("rekeys", 10, "`number` of times to change keys meanwhile")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: rekey [-packets N] [-rekeys N]\n\nChanges the keys of an ESP flow under traffic and counts what is lost. Needs root.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "rekey:", err)
		return 2
	}
	if fs.NArg() > 0 || *packets < 1 || *packets > 10_000_000 || *rekeys < 0 || *rekeys > 1000 {
		fmt.Fprintln(stderr, "rekey: want -packets 1 to 10000000, -rekeys 0 to 1000 and nothing else")
		return 2
	}
	lost, err := rekey(context.Background(), *packets, *rekeys, stdout)
	if err == nil && lost > 0 {
		err = fmt.Errorf("%d packets were lost", lost)
	}
	if err != nil {
		fmt.Fprintln(stderr, "rekey:", err)
		return 1
	}
	return 0
}

var (
	addrA = netip.MustParseAddr("2001:db8::1")
	addrB = netip.MustParseAddr("2001:db8::2")
)

// grace is longer than a packet is under way.
const grace = 100 * time.Millisecond

// end is one end of the flow.
type end struct {
	ns   *netns.Namespace
	c    *conn.Conn
	addr netip.Addr
}

func newEnd(addr netip.Addr) (e *end, err error) {
	e = &end{addr: addr}
	if e.ns, err = netns.Create("rekey"); err != nil {
		return nil, fmt.Errorf("%w (needs root and iproute2)", err)
	}
	if err := e.ns.Do(func() error { e.c, err = conn.Dial(nil); return err }); err != nil {
		e.ns.Close()
		return nil, err
	}
	return e, nil
}

func (e *end) close() { e.c.Close(); e.ns.Close() }

func rekey(ctx context.Context, packets, rekeys int, stdout io.Writer) (lost int64, err error) {
	a, err := newEnd(addrA)
	if err != nil {
		return 0, err
	}
	defer a.close()
	b, err := newEnd(addrB)
	if err != nil {
		return 0, err
	}
	defer b.close()
	if err := netns.Veth(a.ns, "wire", b.ns, "wire"); err != nil {
		return 0, err
	}
	for _, e := range []*end{a, b} {
		if _, err := e.ns.Run("ip", "addr", "add", e.addr.String()+"/64", "dev", "wire", "nodad"); err != nil {
			return 0, err
		}
	}
	// One direction is enough to show it; the other is the same.
	sel := xfrm.Selector{Src: netip.PrefixFrom(addrA, 128), Dst: netip.PrefixFrom(addrB, 128), Proto: unix.IPPROTO_UDP}
	tmpl := []xfrm.Template{{Proto: xfrm.ESP, Mode: xfrm.Transport, ReqID: 1, Family: xfrm.IPv6}}
	if err := a.c.AddPolicy(ctx, &xfrm.Policy{Sel: sel, Dir: xfrm.Out, Templates: tmpl}); err != nil {
		return 0, err
	}
	if err := b.c.AddPolicy(ctx, &xfrm.Policy{Sel: sel, Dir: xfrm.In, Templates: tmpl}); err != nil {
		return 0, err
	}
	old, err := change(ctx, a, b, nil)
	if err != nil {
		return 0, err
	}
	if err := settle(a, b); err != nil {
		return 0, err
	}
	// The first change comes before the traffic; the others spread over it.
	var sent, got atomic.Int64
	done := make(chan error, 1)
	due := make(chan struct{}, rekeys) // a token whenever it is time for a change
	go func() { done <- traffic(a, b, packets, rekeys, due, &sent, &got) }()
	for range rekeys {
		select {
		case <-due:
		case err := <-done:
			if len(due) == 0 {
				return 0, errors.Join(errors.New("the traffic ended early"), err)
			}
			done <- err
			<-due
		}
		if old, err = change(ctx, a, b, old); err != nil {
			return 0, err
		}
	}
	if err := <-done; err != nil {
		return 0, err
	}
	fmt.Fprintf(stdout, "%d packets sent, %d received, %d lost over %d changes of keys\n", sent.Load(), got.Load(), sent.Load()-got.Load(), rekeys)
	return sent.Load() - got.Load(), nil
}

// change puts a new state in place of the old one, if there is one.
func change(ctx context.Context, a, b *end, old *xfrm.SA) (*xfrm.SA, error) {
	sa := xfrm.SA{Src: addrA, Dst: addrB, Proto: xfrm.ESP, Mode: xfrm.Transport, ReqID: 1}
	larval, err := b.c.AllocSPI(ctx, &xfrm.SPIRequest{SA: sa, Min: 0x1000, Max: 0xffffffff})
	if err != nil {
		return nil, err
	}
	key := make([]byte, 36) // 32 octets of key, 4 of salt: never twice
	defer clear(key)
	rand.Read(key)
	if sa.AEAD, err = xfrm.AESGCM16(key); err != nil {
		return nil, err
	}
	sa.SPI = larval.SPI
	in := sa
	in.Replay.Window = 64
	if err := b.c.UpdateSA(ctx, &in); err != nil { // the receiver first
		return nil, err
	}
	if err := a.c.AddSA(ctx, &sa); err != nil {
		return nil, err
	}
	if old != nil {
		id := old.ID()
		for _, e := range []*end{a, b} {
			time.Sleep(grace)
			if err := e.c.DeleteSA(ctx, &id); err != nil {
				return nil, err
			}
		}
		old.ClearKeys()
	}
	return &sa, nil
}

// settle sends until one packet has arrived: the neighbours know each other.
func settle(a, b *end) error {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		var sent, got atomic.Int64
		if err := traffic(a, b, 1, 0, nil, &sent, &got); err != nil {
			return err
		}
		if got.Load() == 1 {
			return nil
		}
	}
	return errors.New("no packet arrives")
}

// traffic sends datagrams through the flow and counts those that arrive. It
// tells when it is time for each of the changes, which spread over it.
func traffic(a, b *end, packets, changes int, due chan<- struct{}, sent, got *atomic.Int64) error {
	var in *net.UDPConn
	if err := b.ns.Do(func() (err error) {
		in, err = net.ListenUDP("udp6", net.UDPAddrFromAddrPort(netip.AddrPortFrom(b.addr, 0)))
		return err
	}); err != nil {
		return err
	}
	defer in.Close()
	if raw, err := in.SyscallConn(); err == nil { // the receiver must not be what loses
		raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) })
	}
	var out *net.UDPConn
	if err := a.ns.Do(func() (err error) {
		out, err = net.DialUDP("udp6", nil, in.LocalAddr().(*net.UDPAddr))
		return err
	}); err != nil {
		return err
	}
	defer out.Close()
	received := make(chan struct{})
	go func() {
		defer close(received)
		buf := make([]byte, 64)
		for got.Load() < int64(packets) {
			if got.Load()%64 == 0 {
				in.SetReadDeadline(time.Now().Add(2 * time.Second))
			}
			if _, err := in.Read(buf); err != nil {
				return
			}
			got.Add(1)
		}
	}()
	told := 0
	for i := range packets {
		if _, err := out.Write([]byte("sixteen octets !")); err != nil {
			return fmt.Errorf("packet %d: %w", i, err)
		}
		sent.Add(1)
		for ; told < changes && i+1 >= packets*(told+1)/(changes+1); told++ {
			due <- struct{}{}
		}
		if i%64 == 63 {
			time.Sleep(time.Millisecond) // a flood, but one that a slow machine survives
		}
	}
	<-received
	return nil
}
