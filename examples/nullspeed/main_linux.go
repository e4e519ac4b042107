// Command nullspeed measures what ESP costs without any cryptography: tiny
// datagrams in transport mode with null encryption and null authentication
// beside the same datagrams in the clear, over IPv4 and over IPv6. What is
// left is the work of XFRM itself.
//
// Both ends live in namespaces that the program makes and removes. It needs
// root and iproute2.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/netns"
	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("nullspeed", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	n := fs.Int("n", 200000, "`datagrams` a run")
	size := fs.Int("size", 16, "`octets` a datagram")
	rounds := fs.Int("rounds", 3, "interleaved rounds; the best counts")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: nullspeed [-n N] [-size N] [-rounds N]\n\nMeasures ESP with null encryption and null authentication. Needs root.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "nullspeed:", err)
		return 2
	}
	if fs.NArg() > 0 || *n < 100 || *n > 100_000_000 || *size < 1 || *size > 1400 || *rounds < 1 || *rounds > 100 {
		fmt.Fprintln(stderr, "nullspeed: want -n 100 to 100000000, -size 1 to 1400, -rounds 1 to 100 and nothing else")
		return 2
	}
	if err := measure(context.Background(), *n, *size, *rounds, stdout); err != nil {
		fmt.Fprintln(stderr, "nullspeed:", err)
		return 1
	}
	return 0
}

// kind is a row of the table.
type kind struct {
	family string
	esp    bool
	best   time.Duration // for n datagrams
	cpu    time.Duration // of all processors, in that run
	got    int
}

var addrs = map[string][2]netip.Addr{
	"IPv4": {netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")},
	"IPv6": {netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")},
}

func measure(ctx context.Context, n, size, rounds int, stdout io.Writer) error {
	var ends [2]*netns.Namespace
	var conns [2]*conn.Conn
	for i := range ends {
		var err error
		if ends[i], err = netns.Create("null"); err != nil {
			return fmt.Errorf("%w (needs root and iproute2)", err)
		}
		defer ends[i].Close()
		if err := ends[i].Do(func() (err error) { conns[i], err = conn.Dial(nil); return err }); err != nil {
			return err
		}
		defer conns[i].Close()
	}
	if err := netns.Veth(ends[0], "wire", ends[1], "wire"); err != nil {
		return err
	}
	for i, ns := range ends {
		if _, err := ns.Run("ip", "addr", "add", addrs["IPv4"][i].String()+"/24", "dev", "wire"); err != nil {
			return err
		}
		if _, err := ns.Run("ip", "addr", "add", addrs["IPv6"][i].String()+"/64", "dev", "wire", "nodad"); err != nil {
			return err
		}
	}
	kinds := []*kind{{family: "IPv4"}, {family: "IPv4", esp: true}, {family: "IPv6"}, {family: "IPv6", esp: true}}
	for range rounds {
		for _, k := range kinds {
			for _, c := range conns {
				if err := errors.Join(c.FlushPolicies(ctx), c.FlushStates(ctx, 0)); err != nil {
					return err
				}
			}
			if k.esp {
				if err := protect(ctx, conns, k.family); err != nil {
					return err
				}
			}
			if err := k.run(ends, n, size); err != nil {
				return fmt.Errorf("%s, ESP %v: %w", k.family, k.esp, err)
			}
			if k.esp {
				if err := used(ctx, conns[1], n); err != nil {
					return err
				}
			}
		}
	}
	fmt.Fprintf(stdout, "%d datagrams of %d octets, best of %d rounds\n\n", n, size, rounds)
	fmt.Fprintln(stdout, "| family | ESP | seconds | ns/packet | CPU ns/packet | received | cost of ESP |")
	fmt.Fprintln(stdout, "|---|---|---:|---:|---:|---:|---:|")
	for i, k := range kinds {
		esp, cost := "none", ""
		if k.esp {
			esp, cost = "null+null", fmt.Sprintf("%+.0f %%", 100*(k.best.Seconds()/kinds[i-1].best.Seconds()-1))
		}
		fmt.Fprintf(stdout, "| %s | %s | %.3f | %d | %d | %d | %s |\n", k.family, esp, k.best.Seconds(), k.best.Nanoseconds()/int64(n), k.cpu.Nanoseconds()/int64(n), k.got, cost)
	}
	fmt.Fprintf(stdout, "\nIPv6 with ESP takes %.3f times what IPv4 with ESP takes.\n", kinds[3].best.Seconds()/kinds[1].best.Seconds())
	return nil
}

// protect installs states and policies from the first end to the second.
func protect(ctx context.Context, conns [2]*conn.Conn, family string) error {
	src, dst := addrs[family][0], addrs[family][1]
	sa := xfrm.SA{Src: src, Dst: dst, SPI: 0x100, Proto: xfrm.ESP, Mode: xfrm.Transport, ReqID: 1, Cipher: xfrm.NullCipher(), Auth: xfrm.NullAuth()}
	p := xfrm.Policy{
		Sel:       xfrm.Selector{Src: netip.PrefixFrom(src, src.BitLen()), Dst: netip.PrefixFrom(dst, dst.BitLen()), Proto: unix.IPPROTO_UDP},
		Templates: []xfrm.Template{{Proto: xfrm.ESP, ReqID: 1, Mode: xfrm.Transport}},
	}
	for i, c := range conns {
		if err := c.AddSA(ctx, &sa); err != nil {
			return err
		}
		p.Dir = xfrm.Out
		if i == 1 {
			p.Dir = xfrm.In
		}
		if err := c.AddPolicy(ctx, &p); err != nil {
			return err
		}
	}
	return nil
}

// used checks that the packets went through ESP.
func used(ctx context.Context, c *conn.Conn, n int) error {
	for sa, err := range c.States(ctx, xfrm.SAFilter{}) {
		if err != nil {
			return err
		}
		if sa.Cur.Packets < uint64(n)/2 {
			return fmt.Errorf("the state carried %d packets only", sa.Cur.Packets)
		}
	}
	return nil
}

func (k *kind) run(ends [2]*netns.Namespace, n, size int) error {
	var in, out *net.UDPConn
	if err := ends[1].Do(func() (err error) {
		in, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(addrs[k.family][1], 0)))
		return err
	}); err != nil {
		return err
	}
	defer in.Close()
	if raw, err := in.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) })
	}
	if err := ends[0].Do(func() (err error) {
		out, err = net.DialUDP("udp", nil, in.LocalAddr().(*net.UDPAddr))
		return err
	}); err != nil {
		return err
	}
	defer out.Close()
	msg := make([]byte, size)
	// Neighbours first.
	for try := 0; ; try++ {
		out.Write(msg)
		in.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		if _, err := in.Read(make([]byte, size)); err == nil {
			break
		} else if try == 50 {
			return errors.New("nothing arrives")
		}
	}
	count := make(chan int, 1)
	go func() {
		buf := make([]byte, size)
		got := 0
		for ; got < n; got++ {
			if got%256 == 0 {
				in.SetReadDeadline(time.Now().Add(time.Second))
			}
			if _, err := in.Read(buf); err != nil {
				break
			}
		}
		count <- got
	}()
	cpu, begin := busy(), time.Now()
	for i := range n {
		if _, err := out.Write(msg); err != nil {
			return fmt.Errorf("datagram %d: %w", i, err)
		}
	}
	took := time.Since(begin) // the veth delivers within the sender's call
	got := <-count
	if k.best == 0 || took < k.best {
		k.best, k.cpu, k.got = took, busy()-cpu, got
	}
	return nil
}

// busy is the time that all processors have worked.
func busy() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var ticks int
	for i, f := range strings.Fields(line) {
		if i >= 1 && i <= 3 || i == 6 || i == 7 { // user, nice, system, irq, softirq
			v, _ := strconv.Atoi(f)
			ticks += v
		}
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
