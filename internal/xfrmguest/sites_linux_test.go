package xfrmguest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/guest"
	"signalbox.example/internal/netns"
	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

// site is one end: a namespace, its XFRM connection and its addresses.
type site struct {
	t  testing.TB
	ns *netns.Namespace
	c  *conn.Conn
}

// Outer addresses stand on the wire between the sites, inner ones on lo.
const (
	outA4, outB4 = "192.0.2.1", "192.0.2.2"
	outA6, outB6 = "2001:db8::1", "2001:db8::2"
	inA4, inB4   = "172.16.1.1", "172.16.2.1"
	inA6, inB6   = "2001:db8:a::1", "2001:db8:b::1"
)

// pair is the one pair of sites that the scenarios of a guest share: making
// namespaces takes seconds there. It lives as long as the guest.
var pair [2]*site

// twoSites returns two namespaces joined by a wire, without states, policies
// and defaults of earlier scenarios.
func twoSites(t testing.TB) (a, b *site) {
	t.Helper()
	if pair[0] == nil {
		pair = makeSites(t)
	}
	a, b = under(t, pair[0], pair[1])
	clean(a, b)
	return a, b
}

func makeSites(t testing.TB) [2]*site {
	t.Helper()
	made := [2]*site{}
	for i, label := range []string{"a", "b"} {
		ns, err := netns.Create(label)
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open("/run/netns/" + ns.Name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		c, err := conn.Dial(&conn.Options{NetNS: int(f.Fd()), Kernel: kernel()})
		if err != nil {
			t.Fatal(err)
		}
		made[i] = &site{t, ns, c}
	}
	a, b := made[0], made[1]
	if err := netns.Veth(a.ns, "wire", b.ns, "wire"); err != nil {
		t.Fatal(err)
	}
	for _, s := range []struct {
		s                                *site
		out4, out6, in4, in6, via4, via6 string
	}{{a, outA4, outA6, inA4, inA6, outB4, outB6}, {b, outB4, outB6, inB4, inB6, outA4, outA6}} {
		s.s.sh("ip addr add " + s.out4 + "/24 dev wire")
		s.s.sh("ip addr add " + s.out6 + "/64 dev wire nodad")
		s.s.sh("ip addr add " + s.in4 + "/32 dev lo")
		s.s.sh("ip addr add " + s.in6 + "/128 dev lo nodad")
		s.s.sh("ip route add default via " + s.via4 + " src " + s.in4)
		s.s.sh("ip -6 route add default via " + s.via6 + " src " + s.in6)
	}
	return made
}

// kernel is the running one, for Check.
func kernel() xfrm.Kernel {
	major, rest, _ := strings.Cut(guest.Release(), ".")
	minor, _, _ := strings.Cut(strings.ReplaceAll(rest, "-", "."), ".")
	x, _ := strconv.Atoi(major)
	y, _ := strconv.Atoi(minor)
	return xfrm.Kernel{Major: x, Minor: y, NoESPInTCP: true}
}

func (s *site) sh(line string) string {
	s.t.Helper()
	f := strings.Fields(line)
	if f[0] == "ip" { // enters the namespace itself: one program less to start
		out, err := exec.Command("ip", append([]string{"-n", s.ns.Name}, f[1:]...)...).CombinedOutput()
		if err != nil {
			s.t.Fatalf("%s: %v: %s", line, err, out)
		}
		return string(out)
	}
	out, err := s.ns.Run(f[0], f[1:]...)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// try carries out commands of iproute2's language, one a line, each built by
// package xfrm. It stops at the first that fails.
func (s *site) try(lines string) error {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		cmd, err := xfrm.ParseCommand("ip xfrm "+line, nil)
		if err == nil {
			err = s.c.Do(context.Background(), cmd)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return nil
}

func (s *site) do(lines string) {
	s.t.Helper()
	if err := s.try(lines); err != nil {
		s.t.Fatal(err)
	}
}

// both carries out the same commands at both sites.
func both(a, b *site, lines string) {
	a.t.Helper()
	a.do(lines)
	b.do(lines)
}

// clean removes all states and policies.
func clean(a, b *site) {
	a.t.Helper()
	for _, s := range []*site{a, b} {
		if err := errors.Join(s.c.FlushPolicies(context.Background()), s.c.FlushStates(context.Background(), 0)); err != nil {
			a.t.Fatal(err)
		}
	}
}

// missing tells that a kernel was built without what a scenario needs.
func missing(err error) bool {
	if err == nil {
		return false
	}
	s := err.Error()
	for _, w := range []string{"not found", "Unsupported mode", "unable to initialize cryptographic", "ot supported", "no such algorithm"} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.ENOPROTOOPT)
}

// doOrSkip skips the test where the kernel lacks what the commands need.
func (s *site) doOrSkip(lines string) {
	s.t.Helper()
	if err := s.try(lines); missing(err) {
		s.t.Skip(err)
	} else if err != nil {
		s.t.Fatal(err)
	}
}

func family(addr string) string {
	if strings.Contains(addr, ":") {
		return "6"
	}
	return "4"
}

// exchange sends n datagrams of a size from one site to the other and waits
// for each echo.
func exchange(from, to *site, src, dst string, n, size int, opts ...func(fd int) error) error {
	// The first one may wait for neighbour discovery.
	return echoes(from, to, src, dst, n, size, 5, opts...)
}

// blocked reports whether a datagram gets no echo.
func blocked(from, to *site, src, dst string, opts ...func(fd int) error) bool {
	return echoes(from, to, src, dst, 1, 10, 1, opts...) != nil
}

func echoes(from, to *site, src, dst string, n, size, tries int, opts ...func(fd int) error) error {
	var l *net.UDPConn
	if err := to.ns.Do(func() (err error) {
		l, err = net.ListenUDP("udp"+family(dst), &net.UDPAddr{IP: net.ParseIP(dst)})
		return
	}); err != nil {
		return err
	}
	defer l.Close()
	go func() {
		buf := make([]byte, 65536)
		for {
			n, a, err := l.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			l.WriteToUDPAddrPort(buf[:n], a)
		}
	}()
	var c *net.UDPConn
	if err := from.ns.Do(func() (err error) {
		c, err = net.DialUDP("udp"+family(dst), &net.UDPAddr{IP: net.ParseIP(src)}, l.LocalAddr().(*net.UDPAddr))
		return
	}); err != nil {
		return err
	}
	defer c.Close()
	if len(opts) > 0 {
		raw, err := c.SyscallConn()
		if err != nil {
			return err
		}
		for _, o := range opts {
			var inner error
			if err := errors.Join(raw.Control(func(fd uintptr) { inner = o(int(fd)) }), inner); err != nil {
				return err
			}
		}
	}
	msg, buf := bytes.Repeat([]byte{0x5b}, size), make([]byte, size+1)
	for i := range n {
		ok := false
		for range tries {
			if _, err := c.Write(msg); err != nil {
				if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ECONNREFUSED) {
					return fmt.Errorf("datagram %d: %w", i, err)
				}
			}
			c.SetReadDeadline(time.Now().Add(700 * time.Millisecond))
			m, err := c.Read(buf)
			if err == nil && bytes.Equal(buf[:m], msg) {
				ok = true
				break
			}
		}
		if !ok {
			return fmt.Errorf("datagram %d: no echo", i)
		}
	}
	return nil
}

// stream sends n octets over TCP.
func stream(from, to *site, src, dst string, n int) error {
	var l net.Listener
	if err := to.ns.Do(func() (err error) {
		l, err = net.Listen("tcp"+family(dst), net.JoinHostPort(dst, "0"))
		return
	}); err != nil {
		return err
	}
	defer l.Close()
	got := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- err
			return
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		m, err := io.Copy(io.Discard, c)
		if err == nil && m != int64(n) {
			err = fmt.Errorf("%d of %d octets arrived", m, n)
		}
		got <- err
	}()
	if err := from.ns.Do(func() error {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(src)}, Timeout: 10 * time.Second}
		c, err := d.Dial("tcp", l.Addr().String())
		if err != nil {
			return err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		_, err = c.Write(make([]byte, n))
		return err
	}); err != nil {
		return err
	}
	return <-got
}

// flow is a protected flow between the sites.
type flow struct {
	src, dst       string // the ends of the traffic
	outSrc, outDst string // the ends of the states
	proto, mode    string
	algs           string // of the states, in iproute2's words
	state          string // further words of each state
	policy         string // further words of each policy
	tmpl           string // further words of each template
}

// spis of the two directions.
const (
	spiAB = 0x1001
	spiBA = 0x2002
)

func full(addr string) string {
	if strings.Contains(addr, ":") {
		return addr + "/128"
	}
	return addr + "/32"
}

// states are the commands for the states of the flow, the same at both ends.
func (f flow) states() string {
	sel := ""
	if f.mode == "beet" {
		// BEET packets carry no inner header: the selector names its ends.
		sel = " sel src %s dst %s"
	}
	line := func(src, dst string, spi int, a, b string) string {
		s := fmt.Sprintf("state add src %s dst %s proto %s spi %#x reqid 1 mode %s %s %s", src, dst, f.proto, spi, f.mode, f.algs, f.state)
		if sel != "" {
			s += fmt.Sprintf(sel, full(a), full(b))
		}
		return s + "\n"
	}
	return line(f.outSrc, f.outDst, spiAB, f.src, f.dst) + line(f.outDst, f.outSrc, spiBA, f.dst, f.src)
}

// policies are the commands for the side at the source, or the other.
func (f flow) policies(atSource bool) string {
	src, dst, oSrc, oDst := f.src, f.dst, f.outSrc, f.outDst
	if !atSource {
		src, dst, oSrc, oDst = dst, src, oDst, oSrc
	}
	tmpl := func(a, b string) string {
		if f.mode == "transport" {
			return fmt.Sprintf("tmpl proto %s reqid 1 mode transport %s", f.proto, f.tmpl)
		}
		return fmt.Sprintf("tmpl src %s dst %s proto %s reqid 1 mode %s %s", a, b, f.proto, f.mode, f.tmpl)
	}
	return fmt.Sprintf("policy add src %s dst %s dir out %s %s\npolicy add src %s dst %s dir in %s %s\n",
		full(src), full(dst), f.policy, tmpl(oSrc, oDst), full(dst), full(src), f.policy, tmpl(oDst, oSrc))
}

// install sets the flow up at both sites, or skips.
func (f flow) install(a, b *site) {
	a.t.Helper()
	clean(a, b)
	a.doOrSkip(f.states())
	b.doOrSkip(f.states())
	a.doOrSkip(f.policies(true))
	b.doOrSkip(f.policies(false))
}

// counters returns how many packets a state has carried.
func (s *site) counters(dst string, spi uint32) (xfrm.Counters, error) {
	for st, err := range s.c.States(context.Background(), xfrm.SAFilter{}) {
		if err != nil {
			return xfrm.Counters{}, err
		}
		if st.SPI == spi && st.Dst.String() == dst {
			return st.Cur, nil
		}
	}
	return xfrm.Counters{}, fmt.Errorf("no state %#x to %s", spi, dst)
}

// carried checks that both states of a flow have carried n packets or more at
// both sites.
func (f flow) carried(a, b *site, n uint64) {
	a.t.Helper()
	for _, d := range []struct {
		dst string
		spi uint32
	}{{f.outDst, spiAB}, {f.outSrc, spiBA}} {
		for _, s := range []*site{a, b} {
			c, err := s.counters(d.dst, d.spi)
			if err != nil {
				a.t.Error(err)
			} else if c.Packets < n {
				a.t.Errorf("%s: state %#x carried %d packets, want %d", s.ns.Name, d.spi, c.Packets, n)
			}
		}
	}
}

// run sets a flow up and uses it.
func (f flow) run(t *testing.T, a, b *site) {
	t.Helper()
	a, b = &site{t, a.ns, a.c}, &site{t, b.ns, b.c}
	f.install(a, b)
	if err := exchange(a, b, f.src, f.dst, 3, 40); err != nil {
		t.Fatal(err)
	}
	f.carried(a, b, 3)
}

// under makes copies of the sites that report to a subtest.
func under(t testing.TB, a, b *site) (*site, *site) { return &site{t, a.ns, a.c}, &site{t, b.ns, b.c} }

// sendRoute sends an rtnetlink request in a site's namespace and reads the
// acknowledgement.
func (s *site) sendRoute(msg []byte) error {
	var fd int
	if err := s.ns.Do(func() (err error) {
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		return
	}); err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 8192)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return err
	}
	m, _, err := xfrm.FirstMessage(buf[:n])
	if err != nil {
		return err
	}
	return xfrm.ParseAck(m)
}

// listen collects events of a site until the test ends.
type listener struct {
	mu     sync.Mutex
	events []xfrm.Event
	errs   []error
}

func (s *site) listen(groups ...xfrm.Group) *listener {
	s.t.Helper()
	f, err := os.Open("/run/netns/" + s.ns.Name)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	ctx, cancel := context.WithCancel(context.Background())
	seq, err := conn.Listen(ctx, &conn.Options{NetNS: int(f.Fd())}, groups...)
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	l := &listener{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e, err := range seq {
			l.mu.Lock()
			if err != nil {
				l.errs = append(l.errs, err)
			} else {
				l.events = append(l.events, e)
			}
			l.mu.Unlock()
		}
	}()
	s.t.Cleanup(func() { cancel(); <-done })
	return l
}

// await waits for an event that a function accepts.
func await[E xfrm.Event](t testing.TB, l *listener, what string, ok func(E) bool) (e E) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		l.mu.Lock()
		list := l.events
		l.mu.Unlock()
		for _, x := range list {
			if y, is := x.(E); is && ok(y) {
				return y
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	t.Fatalf("no event: %s; there were %d others, errors %v", what, len(l.events), l.errs)
	return e
}
