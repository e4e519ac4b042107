package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
	"signalbox.example/internal/netns"
	"signalbox.example/internal/vectors"
)

// The bed: client (IPv6 only) -- router -- server (IPv4 only).
type bed struct {
	t                      *testing.T
	client, router, server *netns.Namespace
	dir, conf              string
	backlog                int64 // backlogDrops at the start
}

func newBed(t *testing.T) *bed {
	t.Helper()
	need.Asked(t, netns.Feature)
	need.Root(t, netns.Feature)
	need.Commands(t, netns.Feature, "ip", "ping", "sysctl", "ethtool", "go")
	b := &bed{t: t, client: netns.New(t, "c"), router: netns.New(t, "r"), server: netns.New(t, "s")}
	// Daemons that drop their privileges read and write here; the folders
	// above a test's own are closed to them.
	dir, err := os.MkdirTemp("", "nat64d-bed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	os.Chmod(dir, 0o777)
	b.dir = dir
	for _, p := range []struct {
		ns       *netns.Namespace
		dev, rdv string
	}{{b.client, "c0", "rc"}, {b.server, "s0", "rs"}} {
		if err := netns.Veth(p.ns, p.dev, b.router, p.rdv); err != nil {
			t.Fatal(err)
		}
	}
	b.client.Must(t, `ip addr add 2001:db8:1::2/64 dev c0 nodad
		ip addr add 2001:db8:1::3/64 dev c0 nodad
		ip -6 route add default via 2001:db8:1::1 src 2001:db8:1::2`)
	b.server.Must(t, `ip addr add 192.0.2.2/24 dev s0
		ip route add default via 192.0.2.1`)
	b.router.Must(t, `ip addr add 2001:db8:1::1/64 dev rc nodad
		ip addr add 192.0.2.1/24 dev rs
		sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 net.ipv4.conf.rc.rp_filter=0 net.ipv4.conf.rs.rp_filter=0`)
	b.conf = filepath.Join(b.dir, "tayga.conf")
	write(t, b.conf, seedConfig(b.dir))
	b.backlog = backlogDrops()
	return b
}

const (
	serverIn6 = "2001:db8:64::c000:202" // 192.0.2.2
	clientIn4 = "10.64.0.10"            // 2001:db8:1::2, by the static map
)

// daemonDir is where the daemon was built, if it was.
var daemonDir string

var daemonBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "nat64d-test")
	if err != nil {
		return "", err
	}
	daemonDir = dir
	name := filepath.Join(dir, "nat64d")
	cmd := exec.Command("go", "build", "-o", name, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	os.Chmod(dir, 0o755)
	return name, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if daemonDir != "" {
		os.RemoveAll(daemonDir)
	}
	os.Exit(code)
}

// process is a program in the router's namespace.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex
	text strings.Builder
	done chan struct{}
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// waitFor waits until the program has printed a text n times.
func (p *process) waitFor(text string, n int) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); strings.Count(p.output(), text) < n; time.Sleep(10 * time.Millisecond) {
		select {
		case <-p.done:
			if strings.Count(p.output(), text) < n {
				p.t.Fatalf("the program ended: %s", p.output())
			}
		default:
		}
		if time.Now().After(end) {
			p.t.Fatalf("never printed %q: %s", text, p.output())
		}
	}
}

func (p *process) signal(s syscall.Signal) {
	p.cmd.Process.Signal(s)
}

func (p *process) stop(s syscall.Signal) error {
	p.signal(s)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		p.cmd.Process.Kill()
		<-p.done
		p.t.Errorf("the program did not end on %v: %s", s, p.output())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 && s == syscall.SIGTERM {
		return fmt.Errorf("status %d: %s", code, p.output())
	}
	return nil
}

func (b *bed) start(name string, args ...string) *process {
	b.t.Helper()
	p := &process{t: b.t, cmd: b.router.Command(name, args...), done: make(chan struct{})}
	out, w, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	p.cmd.Stdout, p.cmd.Stderr = w, w
	if err := p.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	w.Close()
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.text.WriteString(s.Text() + "\n")
			p.mu.Unlock()
		}
		out.Close()
	}()
	go func() { p.cmd.Wait(); <-copied; close(p.done) }()
	b.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
		if b.t.Failed() {
			b.t.Logf("%s printed:\n%s", filepath.Base(name), p.output())
		}
	})
	return p
}

// daemon starts nat64d and waits until it translates.
func (b *bed) daemon(args ...string) *process {
	b.t.Helper()
	name, err := daemonBinary()
	if err != nil {
		b.t.Fatal(err)
	}
	p := b.start(name, append([]string{"-config", b.conf, "-setup", "-interfaces", "rc,rs"}, args...)...)
	p.waitFor("translating on", 1)
	return p
}

// ways are the paths that must all do the same.
var ways = map[string][]string{
	"tun":      {"-fastpath", "off"},
	"queues":   {"-fastpath", "off", "-queues", "2"},
	"no-uso":   {"-fastpath", "off", "-offload", "tso"},
	"csum":     {"-fastpath", "off", "-offload", "csum"},
	"no-vnet":  {"-fastpath", "off", "-offload", "none"},
	"fastpath": {"-fastpath", "require"},
}

func wayNames() []string { return []string{"tun", "queues", "no-uso", "csum", "no-vnet", "fastpath"} }

func needFastPath(t *testing.T, way string) {
	t.Helper()
	if way == "fastpath" {
		need.Root(t, "bpf")
	}
}

// ---- conversations

func ping(ns *netns.Namespace, addr string, args ...string) error {
	_, err := ns.Run("ping", append(append([]string{"-c", "1", "-W", "3"}, args...), addr)...)
	return err
}

// transfer sends n octets over TCP and checks that they arrive whole.
func transfer(from, to *netns.Namespace, listen, dial, source string, n int) error {
	var l net.Listener
	if err := to.Do(func() (err error) { l, err = net.Listen("tcp", listen+":0"); return }); err != nil {
		return err
	}
	defer l.Close()
	type result struct {
		sum [32]byte
		err error
	}
	got := make(chan result, 1)
	go func() {
		l.(*net.TCPListener).SetDeadline(time.Now().Add(20 * time.Second))
		c, err := l.Accept()
		if err != nil {
			got <- result{err: err}
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		h := sha256.New()
		_, err = io.Copy(h, c)
		got <- result{[32]byte(h.Sum(nil)), err}
	}()
	data := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	var c net.Conn
	if err := from.Do(func() (err error) {
		d := net.Dialer{Timeout: 10 * time.Second}
		if source != "" {
			d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(source)}
		}
		c, err = d.Dial("tcp", net.JoinHostPort(dial, port))
		return
	}); err != nil {
		return err
	}
	c.SetDeadline(time.Now().Add(30 * time.Second))
	_, err := c.Write(data)
	c.Close()
	if err != nil {
		return err
	}
	res := <-got
	if res.err != nil {
		return res.err
	}
	if res.sum != sha256.Sum256(data) {
		return errors.New("what arrived is not what was sent")
	}
	return nil
}

// echo sends a datagram of n octets and waits for its echo. It returns the
// address that the other end saw.
func echo(from, to *netns.Namespace, listen, dial, source string, n int) (seen netip.Addr, err error) {
	var l *net.UDPConn
	if err := to.Do(func() (err error) {
		l, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(strings.Trim(listen, "[]"))})
		return
	}); err != nil {
		return seen, err
	}
	defer l.Close()
	from6 := make(chan netip.Addr, 8)
	go func() {
		b := make([]byte, 65536)
		for {
			n, a, err := l.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			select {
			case from6 <- a.Addr().Unmap():
			default:
			}
			l.WriteToUDPAddrPort(b[:n], a)
		}
	}()
	var c net.Conn
	if err := from.Do(func() (err error) {
		var d net.Dialer
		if source != "" {
			d.LocalAddr = &net.UDPAddr{IP: net.ParseIP(source)}
		}
		c, err = d.Dial("udp", net.JoinHostPort(dial, fmt.Sprint(l.LocalAddr().(*net.UDPAddr).Port)))
		return
	}); err != nil {
		return seen, err
	}
	defer c.Close()
	msg := bytes.Repeat([]byte("signalbox "), n/10+1)[:n]
	back := make([]byte, n+1)
	for try := 0; ; try++ { // a first datagram may be what teaches the path MTU
		if _, err := c.Write(msg); err != nil && try > 3 {
			return seen, err
		}
		c.SetReadDeadline(time.Now().Add(2 * time.Second))
		m, err := c.Read(back)
		if err == nil {
			if !bytes.Equal(back[:m], msg) {
				return seen, errors.New("the echo differs")
			}
			return <-from6, nil
		}
		if try == 5 {
			return seen, err
		}
	}
}

// conversations are the things that people do across a translator.
func (b *bed) conversations() []struct {
	name string
	run  func() error
} {
	type conv = struct {
		name string
		run  func() error
	}
	udp := func(from, to *netns.Namespace, listen, dial, source string, n int) func() error {
		return func() error { _, err := echo(from, to, listen, dial, source, n); return err }
	}
	return []conv{
		{"ping from IPv4, the first packet of all", func() error { return ping(b.server, clientIn4) }},
		{"ping from IPv6", func() error { return ping(b.client, serverIn6) }},
		{"ping from a host of the pool", func() error { return ping(b.client, serverIn6, "-I", "2001:db8:1::3") }},
		{"TCP from IPv6", func() error { return transfer(b.client, b.server, "192.0.2.2", serverIn6, "", 4<<20) }},
		{"TCP from a host of the pool", func() error { return transfer(b.client, b.server, "192.0.2.2", serverIn6, "2001:db8:1::3", 1<<20) }},
		{"TCP from IPv4", func() error { return transfer(b.server, b.client, "[2001:db8:1::2]", clientIn4, "", 4<<20) }},
		{"UDP from IPv6", udp(b.client, b.server, "192.0.2.2", serverIn6, "", 18)},
		{"UDP from IPv6, 1400 octets", udp(b.client, b.server, "192.0.2.2", serverIn6, "", 1400)},
		{"UDP from IPv6, 4000 octets in fragments", udp(b.client, b.server, "192.0.2.2", serverIn6, "", 4000)},
		{"UDP from IPv4", udp(b.server, b.client, "2001:db8:1::2", clientIn4, "", 18)},
		{"UDP from IPv4, 4000 octets in fragments", udp(b.server, b.client, "2001:db8:1::2", clientIn4, "", 4000)},
		{"path MTU from IPv6", func() error {
			b.mtu("rs", b.server, "s0", 1300)
			defer b.mtu("rs", b.server, "s0", 1500)
			return transfer(b.client, b.server, "192.0.2.2", serverIn6, "", 1<<20)
		}},
		{"path MTU from IPv4", func() error {
			b.mtu("rc", b.client, "c0", 1400)
			defer b.mtu("rc", b.client, "c0", 1500)
			return transfer(b.server, b.client, "[2001:db8:1::2]", clientIn4, "", 1<<20)
		}},
		{"traceroute from IPv6", func() error { return traceroute(b.client, serverIn6) }},
		{"traceroute from IPv4", func() error { return traceroute(b.server, clientIn4) }},
		{"port unreachable towards IPv6", func() error { return refused(b.client, serverIn6) }},
		{"port unreachable towards IPv4", func() error { return refused(b.server, clientIn4) }},
	}
}

// mtu changes one link, both ends. The far end keeps sending what it likes:
// only the router knows the link.
func (b *bed) mtu(dev string, ns *netns.Namespace, peer string, n int) {
	b.router.Run("ip", "link", "set", dev, "mtu", fmt.Sprint(n))
	ns.Run("ip", "link", "set", peer, "mtu", fmt.Sprint(n))
}

// traceroute raises the hop limit until the other end answers; every hop
// before it, and there is one at least, must say that time was exceeded.
func traceroute(ns *netns.Namespace, addr string) error {
	for hops := 1; hops < 8; hops++ {
		out, err := ns.Run("ping", "-c", "1", "-W", "3", "-t", fmt.Sprint(hops), addr)
		switch {
		case err == nil && hops > 1:
			return nil
		case err == nil:
			return errors.New("no hop in between")
		case !strings.Contains(out, "exceeded"):
			return fmt.Errorf("hop %d is silent: %s", hops, out)
		}
	}
	return errors.New("never arrived")
}

func refused(ns *netns.Namespace, addr string) error {
	return ns.Do(func() error {
		c, err := net.Dial("udp", net.JoinHostPort(addr, "9"))
		if err != nil {
			return err
		}
		defer c.Close()
		for range 3 {
			c.Write([]byte("x"))
			c.SetReadDeadline(time.Now().Add(2 * time.Second))
			if _, err := c.Read(make([]byte, 1)); errors.Is(err, unix.ECONNREFUSED) {
				return nil
			}
		}
		return errors.New("no port unreachable arrived")
	})
}

func TestIntegrationConversations(t *testing.T) {
	need.Asked(t, netns.Feature)
	for _, way := range wayNames() {
		t.Run(way, func(t *testing.T) {
			needFastPath(t, way)
			b := newBed(t)
			p := b.daemon(ways[way]...)
			for _, c := range b.conversations() {
				if err := c.run(); err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
			}
			p.signal(syscall.SIGUSR1)
			p.waitFor("suppressed", 1)
			if way == "fastpath" && !regexp.MustCompile(`fast path: 6to4 [1-9]\d* packets .* 4to6 [1-9]`).MatchString(p.output()) {
				t.Errorf("the fast path carried nothing: %s", p.output())
			}
			if err := p.stop(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			// Nothing is left behind.
			if out, err := b.router.Run("ip", "link", "show", "nat64"); err == nil {
				t.Errorf("the device is still there: %s", out)
			}
			if out, err := os.ReadFile(filepath.Join(b.dir, "dynamic.map")); err != nil || !strings.Contains(string(out), "2001:db8:1::3") {
				t.Errorf("the pool was not saved: %v %s", err, out)
			}
		})
	}
}

// Every conversation that works through Debian's Tayga works through nat64d
// with the same file.
func TestIntegrationTaygaBesideIt(t *testing.T) {
	need.Asked(t, "tayga")
	need.Commands(t, "tayga", "tayga")
	worked := map[string]bool{}
	t.Run("tayga", func(t *testing.T) {
		b := newBed(t)
		b.router.Must(t, "tayga -c "+b.conf+" --mktun")
		b.router.Must(t, `sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
			ip link set nat64 up
			ip route add 10.64.0.0/24 dev nat64
			ip -6 route add 2001:db8:64::/96 dev nat64`)
		b.start("tayga", "-c", b.conf, "-d")
		for end := time.Now().Add(10 * time.Second); ping(b.client, serverIn6) != nil && time.Now().Before(end); {
		}
		for _, c := range b.conversations() {
			err := c.run()
			worked[c.name] = err == nil
			t.Logf("%-45s %v", c.name, err == nil)
		}
	})
	b := newBed(t)
	b.daemon("-fastpath", "off")
	for _, c := range b.conversations() {
		if err := c.run(); err != nil && worked[c.name] {
			t.Errorf("%s works through Tayga, not here: %v", c.name, err)
		}
	}
	if len(worked) == 0 {
		t.Error("Tayga was not tried")
	}
}

// kill -9 and a restart keep the pool's assignments.
func TestIntegrationPoolSurvivesKill(t *testing.T) {
	b := newBed(t)
	p := b.daemon("-fastpath", "off")
	first, err := echo(b.client, b.server, "192.0.2.2", serverIn6, "2001:db8:1::3", 10)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.dir, "dynamic.map")
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if text, _ := os.ReadFile(file); strings.Contains(string(text), first.String()) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the binding never reached the file")
		}
	}
	p.stop(syscall.SIGKILL)
	// Another host comes first after the restart; it must not get the address.
	b.client.Must(t, "ip addr add 2001:db8:1::4/64 dev c0 nodad")
	b.daemon("-fastpath", "off")
	other, err := echo(b.client, b.server, "192.0.2.2", serverIn6, "2001:db8:1::4", 10)
	if err != nil {
		t.Fatal(err)
	}
	again, err := echo(b.client, b.server, "192.0.2.2", serverIn6, "2001:db8:1::3", 10)
	if err != nil || again != first || other == first {
		t.Errorf("before %v, after %v, another host %v, %v", first, again, other, err)
	}
	// And the other side can speak first.
	if err := ping(b.server, first.String()); err != nil {
		t.Error(err)
	}
}

func TestIntegrationReload(t *testing.T) {
	for _, way := range []string{"tun", "fastpath"} {
		t.Run(way, func(t *testing.T) {
			b := newBed(t)
			needFastPath(t, way)
			p := b.daemon(ways[way]...)
			if err := ping(b.client, serverIn6); err != nil {
				t.Fatal(err)
			}
			// A broken file changes nothing and is reported by line.
			write(t, b.conf, seedConfig(b.dir)+"nonsense on\n")
			p.signal(syscall.SIGHUP)
			p.waitFor("stays as it was", 1)
			if !strings.Contains(p.output(), "tayga.conf:8: nonsense") {
				t.Errorf("the report: %s", p.output())
			}
			if err := ping(b.client, serverIn6); err != nil {
				t.Fatal(err)
			}
			// A device cannot change under a running daemon.
			write(t, b.conf, strings.Replace(seedConfig(b.dir), "nat64\n", "other\n", 1))
			p.signal(syscall.SIGHUP)
			p.waitFor("stays as it was", 2)
			// A new map, outside the pool, with its route; the old one goes.
			write(t, b.conf, strings.Replace(seedConfig(b.dir), "map 10.64.0.10", "map 198.51.100.7", 1))
			p.signal(syscall.SIGHUP)
			p.waitFor("read again", 1)
			if err := ping(b.server, "198.51.100.7"); err != nil {
				t.Error(err)
			}
			if seen, err := echo(b.client, b.server, "192.0.2.2", serverIn6, "", 10); err != nil || seen.String() != "198.51.100.7" {
				t.Errorf("the server saw %v, %v", seen, err)
			}
			write(t, b.conf, seedConfig(b.dir))
			p.signal(syscall.SIGHUP)
			p.waitFor("read again", 2)
			if out, _ := b.router.Run("ip", "route", "show", "198.51.100.7"); out != "" {
				t.Errorf("an old route is still there: %s", out)
			}
			if err := ping(b.server, clientIn4); err != nil {
				t.Error(err)
			}
		})
	}
}

// flow sends numbered datagrams at a bounded rate and counts what arrives.
type flow struct {
	sent, got atomic.Int64
	stop      atomic.Bool
	wg        sync.WaitGroup
	in, out   *net.UDPConn
}

func (b *bed) flow(perSecond int) *flow {
	b.t.Helper()
	f := &flow{}
	if err := b.server.Do(func() (err error) {
		f.in, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP("192.0.2.2")})
		return
	}); err != nil {
		b.t.Fatal(err)
	}
	f.in.SetReadBuffer(8 << 20)
	if c, err := f.in.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<20) })
	}
	if err := b.client.Do(func() (err error) {
		f.out, err = net.DialUDP("udp6", nil, &net.UDPAddr{IP: net.ParseIP(serverIn6), Port: f.in.LocalAddr().(*net.UDPAddr).Port})
		return
	}); err != nil {
		b.t.Fatal(err)
	}
	f.wg.Go(func() {
		buf := make([]byte, 64)
		for {
			if _, err := f.in.Read(buf); err != nil {
				return
			}
			f.got.Add(1)
		}
	})
	f.wg.Go(func() {
		const burst = 20
		tick := time.NewTicker(time.Second * burst / time.Duration(perSecond))
		defer tick.Stop()
		begin, n := time.Now(), 0
		for !f.stop.Load() {
			<-tick.C
			// Ticks get lost on a busy machine: what is due counts, within reason.
			due := int(time.Since(begin).Seconds() * float64(perSecond))
			n = max(n, due-5*burst)
			for ; n < due; n++ {
				if _, err := f.out.Write([]byte("sixteen octets !")); err == nil {
					f.sent.Add(1)
				}
			}
		}
	})
	return f
}

// finish stops sending, waits for stragglers and returns the loss.
func (f *flow) finish() (sent, lost int64) {
	f.stop.Store(true)
	for last := int64(-1); ; {
		time.Sleep(300 * time.Millisecond)
		if n := f.got.Load(); n == last {
			break
		} else {
			last = n
		}
	}
	f.in.Close()
	f.wg.Wait()
	f.out.Close()
	return f.sent.Load(), f.sent.Load() - f.got.Load()
}

// rate is packets a second for the flows under reloads; NAT64D_PPS raises it
// where a machine is free for it.
func rate(t *testing.T) int {
	t.Helper()
	s := os.Getenv("NAT64D_PPS")
	if s == "" {
		return 5000
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 100 {
		t.Fatalf("NAT64D_PPS=%q", s)
	}
	return n
}

// Memory stays flat over a long run with traffic, new hosts and a reload every
// second. NAT64D_MINUTES is its length, 10 by default.
func TestIntegrationLongRun(t *testing.T) {
	need.Asked(t, "long")
	minutes := 10
	if s := os.Getenv("NAT64D_MINUTES"); s != "" {
		var err error
		if minutes, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	b := newBed(t)
	p := b.daemon("-fastpath", "off")
	f := b.flow(2000)
	resident := func() (kb int) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		fmt.Sscan(rest, &kb)
		return kb
	}
	var samples []int
	begin := time.Now()
	for i := 0; time.Since(begin) < time.Duration(minutes)*time.Minute; i++ {
		write(t, b.conf, seedConfig(b.dir)+fmt.Sprintf("map 203.0.113.%d 2001:db8:3::1\n", i%200))
		p.signal(syscall.SIGHUP)
		if err := transfer(b.client, b.server, "192.0.2.2", serverIn6, "", 4<<20); err != nil {
			t.Errorf("transfer %d: %v", i, err)
		}
		time.Sleep(time.Second)
		if i%10 == 0 {
			samples = append(samples, resident())
		}
	}
	sent, lost := f.finish()
	// The first fifth warms up.
	warm := samples[len(samples)/5:]
	t.Logf("%d datagrams, %d lost; resident set in kB: at first %d, then %d to %d", sent, lost, samples[0], slices.Min(warm), slices.Max(warm))
	if slices.Max(warm)-slices.Min(warm) > 8000 {
		t.Errorf("memory grows: %v", samples)
	}
	if drops := b.queueDrops(); lost > drops {
		t.Errorf("%d datagrams lost, %d of them by full queues", lost, drops)
	}
}

// queueDrops counts the packets that full queues dropped since the bed was
// made: that of the TUN device, and the machine's backlogs of received
// packets. A busy machine fills them whatever the daemon does.
func (b *bed) queueDrops() int64 {
	b.t.Helper()
	var n int64
	if out, err := b.router.Run("cat", "/sys/class/net/nat64/statistics/tx_dropped"); err == nil {
		fmt.Sscan(out, &n)
	}
	return n + backlogDrops() - b.backlog
}

// backlogDrops is the second column of /proc/net/softnet_stat.
func backlogDrops() (sum int64) {
	text, err := os.ReadFile("/proc/net/softnet_stat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 {
			n, err := strconv.ParseInt(f[1], 16, 64)
			if err == nil {
				sum += n
			}
		}
	}
	return sum
}

// Reloads under traffic lose neither connection nor packet.
func TestIntegrationReloadUnderTraffic(t *testing.T) {
	for _, way := range []string{"tun", "fastpath"} {
		t.Run(way, func(t *testing.T) {
			b := newBed(t)
			needFastPath(t, way)
			p := b.daemon(ways[way]...)
			if err := ping(b.client, serverIn6); err != nil {
				t.Fatal(err)
			}
			f := b.flow(rate(t))
			tcp := make(chan error, 1)
			go func() {
				var err error
				for range 6 {
					err = errors.Join(err, transfer(b.client, b.server, "192.0.2.2", serverIn6, "", 8<<20))
				}
				tcp <- err
			}()
			for i := range 60 {
				conf := seedConfig(b.dir)
				for j := range 20 * (1 + i%3) {
					conf += fmt.Sprintf("map 203.0.113.%d 2001:db8:3::%x\n", j, j+1)
				}
				write(t, b.conf, conf)
				p.signal(syscall.SIGHUP)
				p.waitFor("read again", i+1)
			}
			if err := <-tcp; err != nil {
				t.Error(err)
			}
			sent, lost := f.finish()
			drops := b.queueDrops()
			if lost > drops || sent < 1000 {
				t.Errorf("%d of %d datagrams lost, %d of them by full queues", lost, sent, drops)
			}
			t.Logf("60 reloads, %d datagrams, %d lost, %d dropped by full queues", sent, lost, drops)
		})
	}
}

// When the process of a fast path is killed the kernel removes its program at
// once, and everything takes the slow path: here that of another daemon, whose
// device has the routes all along.
func TestIntegrationKillFailsOpen(t *testing.T) {
	b := newBed(t)
	needFastPath(t, "fastpath")
	b.daemon("-fastpath", "off")
	fast := filepath.Join(b.dir, "fast.conf")
	write(t, fast, strings.NewReplacer("nat64\n", "nat64b\n", "data-dir "+b.dir+"\n", "").Replace(seedConfig(b.dir)))
	name, err := daemonBinary()
	if err != nil {
		t.Fatal(err)
	}
	p := b.start(name, "-config", fast, "-interfaces", "rc,rs", "-fastpath", "require")
	p.waitFor("translating on", 1)
	out := make(chan string, 1)
	go func() {
		s, _ := b.client.Run("ping", "-6", "-q", "-i", "0.005", "-c", "300", "-W", "2", serverIn6)
		out <- s
	}()
	time.Sleep(500 * time.Millisecond)
	p.signal(syscall.SIGUSR1)
	p.waitFor("suppressed", 1)
	p.stop(syscall.SIGKILL)
	if s := <-out; !strings.Contains(s, "300 received") {
		t.Errorf("pings were lost: %s", s)
	}
	if !regexp.MustCompile(`fast path: 6to4 [1-9]\d* packets`).MatchString(p.output()) {
		t.Errorf("the fast path was not in use: %s", p.output())
	}
}

func TestIntegrationUser(t *testing.T) {
	for _, way := range []string{"tun", "fastpath"} {
		t.Run(way, func(t *testing.T) {
			b := newBed(t)
			needFastPath(t, way)
			p := b.daemon(append([]string{"-user", "nobody", "-metrics", "127.0.0.1:9640"}, ways[way]...)...)
			status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
			if err != nil || !regexp.MustCompile(`(?m)^Uid:\s+65534\s+65534`).Match(status) {
				t.Errorf("%v: %s", err, status)
			}
			if err := ping(b.client, serverIn6, "-I", "2001:db8:1::3"); err != nil {
				t.Error(err)
			}
			p.signal(syscall.SIGHUP)
			p.waitFor("read again", 1)
			if strings.Contains(p.output(), "does not follow") {
				t.Error(p.output())
			}
			if err := ping(b.client, serverIn6); err != nil {
				t.Error(err)
			}
			var body string
			if err := b.router.Do(func() error {
				c, err := net.Dial("tcp", "127.0.0.1:9640")
				if err != nil {
					return err
				}
				defer c.Close()
				c.SetDeadline(time.Now().Add(5 * time.Second))
				fmt.Fprint(c, "GET /metrics HTTP/1.0\r\n\r\n")
				all, err := io.ReadAll(c)
				body = string(all)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"nat64_packets_total{reason=\"translated-6to4\"} ", "nat64_pool_bindings 1", "nat64_reloads_total{result=\"taken\"} 1"} {
				if !strings.Contains(body, want) {
					t.Errorf("no %q in %s", want, body)
				}
			}
			if err := p.stop(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(filepath.Join(b.dir, "dynamic.map")); err != nil || !strings.Contains(string(text), "2001:db8:1::3") {
				t.Errorf("the pool was not saved as user: %v %s", err, text)
			}
		})
	}
}

// The cross-check packets through the running daemon, byte for byte: a packet
// socket on the device gives the daemon exactly these bytes to read and sees
// exactly what it writes.
func TestIntegrationCrossCheck(t *testing.T) {
	need.Asked(t, netns.Feature)
	for _, way := range []string{"tun", "no-uso", "no-vnet"} {
		t.Run(way, func(t *testing.T) {
			b := newBed(t)
			write(t, b.conf, "tun-device nat64\nipv4-addr 198.51.100.1\nipv6-addr 2001:db8:1c0:2:1::\nprefix 2001:db8:64::/96\n"+
				"map 10.64.0.0/24 2001:db8:c::/120\nmap 192.0.2.0/24 2001:db8:aaaa::/120\n")
			// Without -setup nothing is routed or forwarded: the kernel adds
			// no packets of its own.
			name, err := daemonBinary()
			if err != nil {
				t.Fatal(err)
			}
			p := b.start(name, append([]string{"-config", b.conf, "-rfc6791", "203.0.113.8/32"}, ways[way]...)...)
			p.waitFor("translating on", 1)
			b.router.Must(t, "sysctl -qw net.ipv6.conf.nat64.disable_ipv6=1\nip link set nat64 up")
			s := b.openPacketSocket("nat64")
			n := 0
			for _, line := range vectors.Lines(t, "nat64/crosscheck-siit.jsonl") {
				var row struct {
					Name, In string
					Out      []string
					Ignore   []int `json:"ignore_bytes"`
				}
				if err := json.Unmarshal([]byte(line), &row); err != nil {
					t.Fatal(err)
				}
				in, err := hex.DecodeString(row.In)
				if err != nil {
					t.Fatal(err)
				}
				if len(in) > 1500 {
					t.Logf("%s: longer than the device's MTU, cannot be put on it", row.Name)
					continue
				}
				n++
				got := s.exchange(in)
				if len(got) != len(row.Out) {
					t.Errorf("%s: %d answers, want %d", row.Name, len(got), len(row.Out))
					continue
				}
				for i, g := range got {
					want, err := hex.DecodeString(row.Out[i])
					if err != nil {
						t.Fatal(err)
					}
					ok := len(g) == len(want)
					for j := 0; ok && j < len(g); j++ {
						ok = g[j] == want[j] || slices.Contains(row.Ignore, j) || want[0]>>4 == 4 && (j == 4 || j == 5 || j == 10 || j == 11)
					}
					if !ok {
						t.Errorf("%s:\n got %x\nwant %x", row.Name, g, want)
					}
				}
			}
			t.Logf("%d packets", n)
			if n < 100 {
				t.Error("too few packets")
			}
		})
	}
}

// packetSocket is an AF_PACKET socket on the TUN device.
type packetSocket struct {
	t       *testing.T
	fd      int
	ifindex int
	serial  uint16
}

func (b *bed) openPacketSocket(dev string) *packetSocket {
	b.t.Helper()
	s := &packetSocket{t: b.t}
	if err := b.router.Do(func() error {
		i, err := net.InterfaceByName(dev)
		if err != nil {
			return err
		}
		s.ifindex = i.Index
		all := uint16(unix.ETH_P_ALL)<<8 | uint16(unix.ETH_P_ALL)>>8
		if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(all)); err != nil {
			return err
		}
		return unix.Bind(s.fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: i.Index})
	}); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { unix.Close(s.fd) })
	tv := unix.Timeval{Sec: 5}
	if err := unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (s *packetSocket) send(p []byte) {
	s.t.Helper()
	proto := uint16(0x0008) // 0x0800 in network byte order
	if p[0]>>4 == 6 {
		proto = 0xdd86
	}
	if err := unix.Sendto(s.fd, p, 0, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: s.ifindex, Halen: 0}); err != nil {
		s.t.Fatalf("send %x: %v", p, err)
	}
}

// exchange sends a packet, and behind it a marker that is always translated,
// and returns what came in between.
func (s *packetSocket) exchange(p []byte) (got [][]byte) {
	s.t.Helper()
	s.serial++
	// An IPv4 echo request from 198.51.100.99 to 10.64.0.99 with an
	// identification of its own.
	marker := []byte{0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 1, 0, 0, 198, 51, 100, 99, 10, 64, 0, 99, 8, 0, 0, 0, 0xee, 0xee, byte(s.serial >> 8), byte(s.serial)}
	put := func(at int, v uint16) { marker[at], marker[at+1] = byte(v>>8), byte(v) }
	put(10, ^onesSum(marker[:20]))
	put(22, ^onesSum(marker[20:]))
	s.send(p)
	s.send(marker)
	buf := make([]byte, 65536)
	for {
		n, from, err := unix.Recvfrom(s.fd, buf, 0)
		if err != nil {
			s.t.Fatalf("no answer to the marker: %v", err)
		}
		if ll, ok := from.(*unix.SockaddrLinklayer); !ok || ll.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		q := bytes.Clone(buf[:n])
		if n == 48 && q[6] == 58 && bytes.Equal(q[44:48], marker[24:28]) {
			return got
		}
		got = append(got, q)
	}
}

func onesSum(b []byte) uint16 {
	var v uint32
	for i := 0; i < len(b); i += 2 {
		v += uint32(b[i])<<8 | uint32(b[i+1])
	}
	for v>>16 != 0 {
		v = v&0xffff + v>>16
	}
	return uint16(v)
}
