package xfrm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

func ourSA(t testing.TB) *xfrm.SA {
	c, err := xfrm.ParseCommand("ip xfrm state add src 2001:db8:1::1 dst 2001:db8:2::2 proto esp spi 0xc0000002 reqid 6 mode tunnel replay-window 32 "+
		"mark 6 mask 0xffffffff if_id 0x42 aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223 128", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Request.(*xfrm.SA)
}

func ourPolicy(i int) *xfrm.Policy {
	return &xfrm.Policy{
		Sel: xfrm.Selector{Src: netip.MustParsePrefix("10.0.0.0/8"),
			Dst: netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 32)},
		Dir: xfrm.Out, Priority: uint32(i),
		Templates: []xfrm.Template{{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), Proto: xfrm.ESP,
			Mode: xfrm.Tunnel, ReqID: uint32(i % 1000)}},
	}
}

func build(t testing.TB, s *xfrm.SA) (whole []byte, m xfrm.Message) {
	b, err := xfrm.AppendNewSA(nil, xfrm.Header{}, s)
	if err != nil {
		t.Fatal(err)
	}
	if m, _, err = xfrm.FirstMessage(b); err != nil {
		t.Fatal(err)
	}
	return b, m
}

// TestPeerBuildsTheSame: both ways of building describe the same state, so
// the comparison is fair.
func TestPeerBuildsTheSame(t *testing.T) {
	want := ourSA(t)
	m, _, err := xfrm.FirstMessage(peerBuildSA(peerSA()))
	if err != nil {
		t.Fatal(err)
	}
	var got xfrm.SA
	if err := got.Parse(m); err != nil {
		t.Fatal(err)
	}
	if !xfrm.SameSA(want, &got) {
		t.Errorf("the peer's message is\n%s\nwant\n%s", got.AppendText(nil, xfrm.Lossless()), want.AppendText(nil, xfrm.Lossless()))
	}
}

// TestPeerParsesTheSame: the peer reads our message as the same state.
func TestPeerParsesTheSame(t *testing.T) {
	_, m := build(t, ourSA(t))
	got, err := parseXfrmState(m.Body, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	want := peerSA()
	if !got.Dst.Equal(want.Dst) || !got.Src.Equal(want.Src) || uint32(got.Spi) != uint32(want.Spi) || got.Reqid != want.Reqid || got.Mode != want.Mode ||
		got.Aead == nil || !bytes.Equal(got.Aead.Key, want.Aead.Key) || got.Aead.ICVLen != 128 || got.Mark == nil || *got.Mark != *want.Mark || got.Ifid != want.Ifid {
		t.Errorf("the peer read %v", got)
	}
}

func BenchmarkBuildSA(b *testing.B) {
	b.Run("impl=signalbox", func(b *testing.B) {
		s := ourSA(b)
		buf := make([]byte, 0, 4096)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := xfrm.AppendNewSA(buf, xfrm.Header{}, s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("impl=vishvananda", func(b *testing.B) {
		s := peerSA()
		b.ReportAllocs()
		for b.Loop() {
			peerBuildSA(s)
		}
	})
}

func BenchmarkParseSA(b *testing.B) {
	_, m := build(b, ourSA(b))
	b.Run("impl=signalbox", func(b *testing.B) {
		var s xfrm.SA
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Parse(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("impl=vishvananda", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := parseXfrmState(m.Body, netlink.FAMILY_ALL); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkParsePolicy(b *testing.B) {
	buf, err := xfrm.AppendNewPolicy(nil, xfrm.Header{}, ourPolicy(7))
	if err != nil {
		b.Fatal(err)
	}
	m, _, _ := xfrm.FirstMessage(buf)
	b.Run("impl=signalbox", func(b *testing.B) {
		var p xfrm.Policy
		b.ReportAllocs()
		for b.Loop() {
			if err := p.Parse(m); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("impl=vishvananda", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := parseXfrmPolicy(m.Body, netlink.FAMILY_ALL); err != nil {
				b.Fatal(err)
			}
		}
	})
}

const (
	many   = 10000
	rounds = 15
)

// settle is how long the kernel is given before each measurement to free what
// was flushed and to end programs, which it does later and, if a measurement
// runs by then, at the cost of that.
const settle = 60 * time.Millisecond

// batchFile writes the policies as iproute2 commands.
func batchFile(t testing.TB) string {
	var b strings.Builder
	for i := range many {
		p := ourPolicy(i)
		fmt.Fprintf(&b, "xfrm policy add src %v dst %v dir out priority %d tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid %d mode tunnel\n",
			p.Sel.Src, p.Sel.Dst, i, i%1000)
	}
	name := filepath.Join(t.TempDir(), "batch")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// bulkload is the library's side of loading a text file: parse in one
// goroutine, send in the other.
func bulkload(c *conn.Conn, name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	type part struct {
		b   *conn.Batch
		err error
	}
	parts := make(chan part, 64)
	go func() {
		defer close(parts)
		b := c.Batch()
		for line := range strings.Lines(string(text)) {
			cmd, err := xfrm.ParseCommand(line, nil)
			if err == nil {
				err = cmd.Request.(*xfrm.Policy).Check()
			}
			if err == nil {
				cmd.Flags = xfrm.FlagRequest
				err = b.Append(cmd.Append)
			}
			if err != nil {
				parts <- part{nil, err}
				return
			}
			if b.Len() == 256 {
				parts <- part{b, nil}
				b = c.Batch()
			}
		}
		parts <- part{b, nil}
	}()
	var first error
	for p := range parts {
		err := p.err
		if p.b != nil && first == nil {
			var failed []conn.Failure
			if failed, err = p.b.Flush(context.Background()); err == nil && len(failed) > 0 {
				err = failed[0].Err
			}
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// bare is a socket that looks at nothing: what it takes is the kernel's share
// of the work, which nobody can do without.
type bare struct {
	fd  int
	buf []byte
}

func openBare(t testing.TB) *bare {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_XFRM)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 1<<20)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return &bare{fd, make([]byte, 128<<10)}
}

// chunks builds the messages of a load, as many together as one system call
// takes. The last of each chunk asks for an acknowledgement.
func chunks(t testing.TB, policies []*xfrm.Policy) (all [][]byte) {
	var b []byte
	for i, p := range policies {
		h := xfrm.Header{Flags: xfrm.FlagRequest}
		last := len(b) > 127<<10 || i == len(policies)-1
		if last {
			h.Flags |= xfrm.FlagAck
		}
		var err error
		if b, err = xfrm.AppendNewPolicy(b, h, p); err != nil {
			t.Fatal(err)
		}
		if last {
			all, b = append(all, b), nil
		}
	}
	return all
}

// send sends and receives until the acknowledgement or the end of the dump.
func (b *bare) send(chunks ...[]byte) error {
	for _, c := range chunks {
		if err := unix.Sendto(b.fd, c, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return err
		}
		for done := false; !done; {
			n, _, err := unix.Recvfrom(b.fd, b.buf, 0)
			if err != nil {
				return err
			}
			for rest := b.buf[:n]; len(rest) >= unix.NLMSG_HDRLEN; { // headers only
				t := binary.NativeEndian.Uint16(rest[4:])
				if done = t == unix.NLMSG_DONE || t == unix.NLMSG_ERROR; done {
					m, _, err := xfrm.FirstMessage(rest)
					if err := errors.Join(err, xfrm.ParseAck(m)); err != nil {
						return err
					}
					break
				}
				rest = rest[min(int(binary.NativeEndian.Uint32(rest)+3)&^3, len(rest)):]
			}
		}
	}
	return nil
}

// TestKernelComparison measures bulk work on the running kernel, in rounds
// that take turns, in a namespace of its own. It asserts only that every way
// does the same work; the figures are printed. Set SIGNALBOX_RUN=netns.
func TestKernelComparison(t *testing.T) {
	need.Asked(t, "netns")
	need.Root(t, "netns")
	runtime.LockOSThread() // and never unlocked: the namespace ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip(err)
	}
	ctx := context.Background()
	c, err := conn.Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h, err := netlink.NewHandle(unix.NETLINK_XFRM)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ours, theirs := make([]*xfrm.Policy, many), make([]*netlink.XfrmPolicy, many)
	for i := range many {
		ours[i], theirs[i] = ourPolicy(i), peerPolicy(i)
	}
	sock := openBare(t)
	built := chunks(t, ours)
	dump := xfrm.AppendDumpPolicy(nil, xfrm.Header{})
	file := batchFile(t)
	must := func(err error) { // no t.Helper, which would cost more than a policy
		if err != nil {
			t.Fatal(err)
		}
	}
	ip := func(args ...string) []byte {
		out, err := exec.Command("ip", args...).Output()
		must(err)
		return out
	}
	type way struct {
		name string
		load bool // starts from nothing and leaves 10,000 policies
		f    func()
	}
	ways := []way{
		{"load: signalbox batch", true, func() {
			b := c.Batch()
			for _, p := range ours {
				must(b.AddPolicy(p))
			}
			failed, err := b.Flush(ctx)
			must(err)
			if len(failed) > 0 {
				t.Fatal(failed[0])
			}
		}},
		{"load: the kernel alone", true, func() { must(sock.send(built...)) }},
		{"load: vishvananda Handle", true, func() {
			for _, p := range theirs {
				must(h.XfrmPolicyAdd(p))
			}
		}},
		{"load: vishvananda functions", true, func() {
			for _, p := range theirs {
				must(netlink.XfrmPolicyAdd(p))
			}
		}},
		{"file to kernel: signalbox", true, func() { must(bulkload(c, file)) }},
		{"file to kernel: ip -batch", true, func() { ip("-batch", file) }},
		{"dump and decode: signalbox", false, func() {
			n := 0
			for _, err := range c.Policies(ctx) {
				must(err)
				n++
			}
			if n != many {
				t.Fatal(n)
			}
		}},
		{"dump: the kernel alone", false, func() { must(sock.send(dump)) }},
		{"dump and decode: vishvananda", false, func() {
			l, err := h.XfrmPolicyList(netlink.FAMILY_V4)
			must(err)
			if len(l) != many {
				t.Fatal(len(l))
			}
		}},
		{"dump to text: signalbox", false, func() {
			b := make([]byte, 0, 1<<16)
			n := 0
			for p, err := range c.Policies(ctx) {
				must(err)
				if b = p.AppendText(b, xfrm.TextOptions{}); len(b) > 1<<15 {
					n += len(b)
					b = b[:0]
				}
			}
			if n == 0 {
				t.Fatal("no text")
			}
		}},
		{"dump to text: ip", false, func() { ip("xfrm", "policy") }},
	}
	took, cpu := map[string][]time.Duration{}, map[string][]time.Duration{}
	for range rounds {
		for _, w := range ways {
			repeat := 1
			if w.load {
				must(c.FlushPolicies(ctx))
			} else {
				repeat = 12 // so that none of them pays for cold caches
			}
			time.Sleep(settle)
			runtime.GC() // nor for the garbage of the one before
			for range repeat {
				begin, used := time.Now(), cpuTime()
				w.f()
				took[w.name] = append(took[w.name], time.Since(begin))
				cpu[w.name] = append(cpu[w.name], cpuTime()-used)
			}
			if i, err := c.SPDInfo(ctx); err != nil || i.Out != many {
				t.Fatalf("%s: %d policies, %v", w.name, i.Out, err)
			}
		}
	}
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
	t.Logf("%-30s %10s %10s %10s %10s", fmt.Sprintf("10,000 policies, %d rounds", rounds), "best", "median", "CPU best", "CPU median")
	for _, w := range ways {
		d, u := took[w.name], cpu[w.name]
		slices.Sort(d)
		slices.Sort(u)
		t.Logf("%-30s %10s %10s %10s %10s", w.name, ms(d[0]), ms(d[len(d)/2]), ms(u[0]), ms(u[len(u)/2]))
	}
	for _, r := range [][2]string{
		{"load: signalbox batch", "load: vishvananda Handle"}, {"load: signalbox batch", "load: vishvananda functions"},
		{"file to kernel: signalbox", "file to kernel: ip -batch"}, {"dump and decode: signalbox", "dump and decode: vishvananda"},
		{"dump to text: signalbox", "dump to text: ip"},
		{"load: the kernel alone", "load: signalbox batch"}, {"dump: the kernel alone", "dump and decode: signalbox"},
	} {
		ratio := func(m map[string][]time.Duration, at float64) float64 {
			a, b := m[r[0]], m[r[1]]
			return float64(b[int(at*float64(len(b)))]) / float64(a[int(at*float64(len(a)))])
		}
		t.Logf("%-30s best %.1fx, median %.1fx, CPU best %.1fx, CPU median %.1fx", r[1], ratio(took, 0), ratio(took, 0.5), ratio(cpu, 0), ratio(cpu, 0.5))
	}
}

// TestCodecComparison measures building and parsing one state in blocks that
// take turns, by the CPU time of the whole process: the peer's garbage
// collection is part of what it costs. Set SIGNALBOX_RUN=codec.
func TestCodecComparison(t *testing.T) {
	need.Asked(t, "codec")
	ours, theirs := ourSA(t), peerSA()
	whole, m := build(t, ours)
	buf := make([]byte, 0, 4096)
	var into xfrm.SA
	var failed error
	note := func(err error) {
		if err != nil {
			failed = err
		}
	}
	ways := []struct {
		name string
		n    int
		f    func(n int)
		best time.Duration
	}{
		{"build: signalbox", 200_000, func(n int) {
			for range n {
				if _, err := xfrm.AppendNewSA(buf, xfrm.Header{}, ours); err != nil {
					failed = err
				}
			}
		}, 1 << 62},
		{"build: vishvananda", 20_000, func(n int) {
			for range n {
				peerBuildSA(theirs)
			}
		}, 1 << 62},
		{"parse: signalbox", 200_000, func(n int) {
			for range n {
				if err := into.Parse(m); err != nil {
					failed = err
				}
			}
		}, 1 << 62},
		{"parse: vishvananda", 20_000, func(n int) {
			for range n {
				if _, err := parseXfrmState(m.Body, netlink.FAMILY_ALL); err != nil {
					failed = err
				}
			}
		}, 1 << 62},
		{"datagram: signalbox", 200_000, func(n int) {
			for range n {
				m, _, err := xfrm.FirstMessage(whole)
				note(err)
				note(into.Parse(m))
			}
		}, 1 << 62},
		{"datagram: vishvananda", 20_000, func(n int) {
			for range n {
				ms, err := syscall.ParseNetlinkMessage(whole)
				note(err)
				_, err = parseXfrmState(ms[0].Data, netlink.FAMILY_ALL)
				note(err)
			}
		}, 1 << 62},
	}
	for range 40 {
		for i := range ways {
			w := &ways[i]
			runtime.GC()
			used := cpuTime()
			w.f(w.n)
			w.best = min(w.best, cpuTime()-used)
		}
	}
	if failed != nil {
		t.Fatal(failed)
	}
	for _, w := range ways {
		t.Logf("%-20s %7.1f ns", w.name, float64(w.best.Nanoseconds())/float64(w.n))
	}
}

// cpuTime is what this process and its children have used, in user mode and
// in the kernel. On a busy machine it tells more than the clock.
func cpuTime() time.Duration {
	var sum time.Duration
	for _, who := range [...]int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var r unix.Rusage
		if unix.Getrusage(who, &r) == nil {
			sum += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
	}
	return sum
}
