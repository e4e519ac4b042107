package radix6

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"signalbox.example/internal/need"
	"signalbox.example/internal/netns"
)

// bed is host - router - net: the router's right-hand link has an MTU of 1400
// and the host finds out.
type bed struct {
	host, router *netns.Namespace
	conn         net.PacketConn // a UDP socket on the host
	tree         *Tree[int]
	cache        *Cache[int]
}

func newBed(t *testing.T, cfg CacheConfig) *bed {
	t.Helper()
	need.Asked(t, netns.Feature)
	need.Root(t, netns.Feature)
	need.Commands(t, netns.Feature, "ip")
	b := &bed{host: netns.New(t, "pmtuhost"), router: netns.New(t, "pmturouter")}
	far := netns.New(t, "pmtufar")
	for _, v := range []struct {
		a    *netns.Namespace
		aDev string
		b    *netns.Namespace
		bDev string
	}{{b.host, "right", b.router, "left"}, {b.router, "right", far, "left"}} {
		if err := netns.Veth(v.a, v.aDev, v.b, v.bDev); err != nil {
			t.Fatal(err)
		}
	}
	b.router.Must(t, `sysctl -q -w net.ipv6.conf.all.forwarding=1 net.ipv6.icmp.ratelimit=0
		ip -6 addr add 2001:db8:1::1/64 dev left nodad
		ip link set right mtu 1400
		ip -6 addr add 2001:db8:2::ffff/64 dev right nodad
		ip -6 route add 2001:db8:3::/64 dev right`)
	b.host.Must(t, fmt.Sprintf(`ip -6 addr add 2001:db8:1::2/64 dev right nodad
		ip -6 route add default via 2001:db8:1::1 metric 1024
		ip -6 route add 2001:db8:3::/64 via 2001:db8:1::1 metric 77
		sysctl -q -w net.ipv6.route.mtu_expires=%d net.ipv6.route.gc_interval=%d`,
		cfg.MTUExpires/time.Second, cfg.GCInterval/time.Second))
	if err := b.host.Do(func() (err error) {
		b.conn, err = net.ListenPacket("udp6", "[2001:db8:1::2]:0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.conn.Close() })
	b.tree = New[int](SourceLinux)
	add(t, b.tree, rt("2001:db8:1::/64", "", 256), rt("::/0", "", 1024), rt("2001:db8:3::/64", "", 77))
	gw := ip("2001:db8:1::1")
	b.cache = NewCache(b.tree, cfg, func(m int) NextHop {
		if m == 256 {
			return NextHop{MTU: 1500}
		}
		return NextHop{MTU: 1500, Gateway: gw}
	})
	b.warm(t)
	return b
}

// warm waits until the host reaches its router: until a first message about a
// too big packet has come back for an address that no test uses.
func (b *bed) warm(t *testing.T) {
	t.Helper()
	for range 100 {
		b.send(t, "2001:db8:2::dead", 1450)
		time.Sleep(30 * time.Millisecond)
		if b.kernelMTU(t, "2001:db8:2::dead") == 1400 {
			b.host.Must(t, "ip -6 route flush cache")
			for range 50 {
				if b.counter(t) == 0 {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Fatal("the kernel does not flush its exceptions")
		}
	}
	t.Fatal("no message about too big packets arrives")
}

// send sends a packet of size bytes, headers included.
func (b *bed) send(t *testing.T, dst string, size int) {
	t.Helper()
	to := net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip(dst), 9))
	if _, err := b.conn.WriteTo(make([]byte, size-48), to); err != nil && !strings.Contains(err.Error(), "too long") {
		t.Logf("send: %v", err) // an earlier packet's ICMP error may come back here
	}
}

var mtuWord = regexp.MustCompile(` mtu (\d+)`)

// kernelMTU returns the path MTU that the kernel knows of, 1500 for none.
func (b *bed) kernelMTU(t *testing.T, dst string) int {
	t.Helper()
	out, err := b.host.Run("ip", "-6", "route", "get", dst)
	if err != nil {
		t.Fatal(out, err)
	}
	if m := mtuWord.FindStringSubmatch(out); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 1500
}

var expiresWord = regexp.MustCompile(` expires (\d+)sec`)

// shown lists the exceptions that the kernel shows, and the least number of
// seconds that any of them has to live.
func (b *bed) shown(t *testing.T) (n, least int) {
	t.Helper()
	out, err := b.host.Run("ip", "-6", "route", "show", "cache")
	if err != nil {
		t.Fatal(out, err)
	}
	least = -1
	for _, m := range expiresWord.FindAllStringSubmatch(out, -1) {
		n++
		if s, _ := strconv.Atoi(m[1]); least < 0 || s < least {
			least = s
		}
	}
	return n, least
}

func (b *bed) counter(t *testing.T) int {
	_, _, _, cache := rt6Stats(t, b.host)
	return cache
}

// same compares kernel and cache: path MTU, exceptions shown, seconds left,
// exceptions counted (unless a collection may be under way).
func (b *bed) same(t *testing.T, when, dst string, counted bool) {
	t.Helper()
	m, until, _ := b.cache.MTU(ip(dst), netip.Addr{})
	if k := b.kernelMTU(t, dst); k != m {
		t.Errorf("%s: path MTU of the kernel %d, of the cache %d", when, k, m)
	}
	n := 0
	for range b.cache.All() {
		n++
	}
	shown, least := b.shown(t)
	if shown != n {
		t.Errorf("%s: kernel shows %d exceptions, the cache %d", when, shown, n)
	}
	if n > 0 && !until.IsZero() {
		if left := time.Until(until).Seconds(); float64(least) < left-1.5 || float64(least) > left+1.5 {
			t.Errorf("%s: kernel's has %d s to live, the cache's %.1f", when, least, left)
		}
	}
	if k := b.counter(t); counted && k != b.cache.Len() {
		t.Errorf("%s: kernel counts %d exceptions, the cache %d", when, k, b.cache.Len())
	}
}

func TestIntegrationPathMTULikeTheKernel(t *testing.T) {
	b := newBed(t, CacheConfig{MTUExpires: 4 * time.Second, GCInterval: 2 * time.Second})
	const d = "2001:db8:2::1"
	start := time.Now()
	at := func(d time.Duration) { time.Sleep(time.Until(start.Add(d))) }
	toobig := func(dst string, size, reported int) {
		t.Helper()
		b.send(t, dst, size)
		for range 100 { // the message is on its way
			if b.kernelMTU(t, dst) == reported {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if ok, err := b.cache.PacketTooBig(ip(dst), netip.Addr{}, reported); !ok || err != nil {
			t.Fatalf("%d is no news: %v", reported, err)
		}
	}
	b.same(t, "at first", d, true)
	toobig(d, 1450, 1400)
	b.same(t, "after 1400", d, true)
	at(1500 * time.Millisecond)
	b.router.Must(t, "ip link set right mtu 1300")
	toobig(d, 1390, 1300)
	b.same(t, "after 1300", d, true) // lower, and it does not live longer
	at(3200 * time.Millisecond)
	b.same(t, "before the end", d, true)
	at(5200 * time.Millisecond) // 4 s after the first message, not the second
	b.same(t, "after the end", d, false)
	at(8500 * time.Millisecond)
	b.same(t, "after collection", d, true)

	// An exception goes with its route.
	toobig("2001:db8:3::1", 1450, 1300)
	toobig(d, 1450, 1300)
	b.same(t, "two routes", "2001:db8:3::1", true)
	b.host.Must(t, "ip -6 route del 2001:db8:3::/64 via 2001:db8:1::1 metric 77")
	b.tree.Delete(rt("2001:db8:3::/64", "", 77))
	b.same(t, "route deleted", d, true)
}

// Chains of 5 to 9: many destinations leave as many exceptions in the kernel
// as in the cache, but for chance.
func TestIntegrationChainsLikeTheKernel(t *testing.T) {
	b := newBed(t, CacheConfig{MTUExpires: 600 * time.Second, GCInterval: 30 * time.Second})
	const n = 12000
	for i := range n {
		dst := key{0x20010db800020000, 0x10000 + uint64(i)}.addr()
		b.send(t, dst.String(), 1450)
		if _, err := b.cache.PacketTooBig(dst, netip.Addr{}, 1400); err != nil {
			t.Fatal(err)
		}
	}
	kernel := b.counter(t)
	for range 50 {
		time.Sleep(50 * time.Millisecond)
		if k := b.counter(t); k == kernel {
			break
		} else {
			kernel = k
		}
	}
	ours := b.cache.Len()
	t.Logf("%d destinations: the kernel keeps %d, the cache %d", n, kernel, ours)
	if ours < 1024*5 || ours > 1024*9 || kernel < ours*9/10 || kernel > ours*11/10 {
		t.Errorf("%d destinations: the kernel keeps %d, the cache %d", n, kernel, ours)
	}
}
