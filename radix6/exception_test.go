package radix6

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// clock is a Now that tests move by hand.
type clock struct{ t time.Time }

func newClock() *clock                { return &clock{time.Date(2025, 10, 1, 0, 0, 0, 0, time.UTC)} }
func (c *clock) now() time.Time       { return c.t }
func (c *clock) step(d time.Duration) { c.t = c.t.Add(d) }
func (c *clock) config(k CacheConfig) CacheConfig {
	k.Now = c.now
	if k.Rand == nil {
		k.Rand = rand.New(rand.NewPCG(1, 1)).IntN
	}
	return k
}

var testGateway = netip.MustParseAddr("fe80::1")

// newCache makes a tree with a default route through a gateway (value 1), a
// link (value 2) and the source-specific forms of both (3, 4), MTU 1500.
func newCache(t *testing.T, c *clock, k CacheConfig) (*Tree[int], *Cache[int]) {
	t.Helper()
	tr := New[int](SourceLinux)
	add(t, tr, rt("::/0", "", 1), rt("2001:db8:1::/64", "", 2), rt("2001:db8:2::/48", "2001:db9::/32", 3), rt("2001:db8:3::/64", "2001:db9::/32", 4))
	return tr, NewCache(tr, c.config(k), func(v int) NextHop {
		if v == 1 || v == 3 {
			return NextHop{MTU: 1500, Gateway: testGateway}
		}
		return NextHop{MTU: 1500}
	})
}

func ptb(t *testing.T, c *Cache[int], dst, src string, mtu int, want bool) {
	t.Helper()
	if news, err := c.PacketTooBig(ip(dst), ip(src), mtu); err != nil || news != want {
		t.Errorf("too big %s from %q %d: %v %v, want %v", dst, src, mtu, news, err, want)
	}
}

func mtu(t *testing.T, c *Cache[int], dst, src string, want int) {
	t.Helper()
	if m, _, ok := c.MTU(ip(dst), ip(src)); !ok || m != want {
		t.Errorf("mtu of %s from %q: %d %v, want %d", dst, src, m, ok, want)
	}
}

func TestPathMTUOnlyFallsAndNeverLastsLonger(t *testing.T) {
	ck := newClock()
	_, c := newCache(t, ck, Linux6())
	const d = "2001:db8:ffff::1"
	mtu(t, c, d, "", 1500)
	ptb(t, c, d, "", 1500, false) // not below the route's
	ptb(t, c, d, "", 1279, false) // below what every link carries
	ptb(t, c, "10.0.0.1", "", 1400, false)
	ptb(t, c, d, "", 1400, true)
	ck.step(5 * time.Second)
	ptb(t, c, d, "", 1400, false)
	ptb(t, c, d, "", 1450, false)
	ptb(t, c, d, "", 1300, true)
	mtu(t, c, d, "", 1300)
	if _, until, _ := c.MTU(ip(d), netip.Addr{}); until.Sub(ck.t) != 595*time.Second {
		t.Errorf("expires in %v, want 595 s: a second message must not extend it", until.Sub(ck.t))
	}
	mtu(t, c, "2001:db8:ffff::2", "", 1500)
	if c.Len() != 1 {
		t.Errorf("%d exceptions", c.Len())
	}
	ck.step(595 * time.Second)
	mtu(t, c, d, "", 1300) // at the instant itself it holds
	ck.step(time.Millisecond)
	mtu(t, c, d, "", 1500)
	ptb(t, c, d, "", 1350, true) // a new life
	if c.Len() != 1 {
		t.Errorf("%d exceptions: the dead one was not replaced", c.Len())
	}
}

func TestExpiredHidesAtOnceAndIsCountedUntilCollection(t *testing.T) {
	ck := newClock()
	_, c := newCache(t, ck, CacheConfig{MTUExpires: 3 * time.Second, GCInterval: 2 * time.Second})
	ptb(t, c, "2001:db8:ffff::1", "", 1400, true)
	ck.step(3*time.Second + time.Millisecond)
	for e := range c.All() {
		t.Errorf("shows %v", e)
	}
	if c.Len() != 1 {
		t.Errorf("counter %d before the collection", c.Len())
	}
	if due, ok := c.NextGC(); !ok || due.Sub(ck.t) != time.Second-time.Millisecond {
		t.Errorf("next collection %v %v", due.Sub(ck.t), ok)
	}
	ck.step(time.Second)
	if c.Len() != 0 {
		t.Errorf("counter %d after it", c.Len())
	}
	if _, ok := c.NextGC(); ok {
		t.Error("the timer runs though nothing can die")
	}
}

func TestExceptionsDieWithTheirRoute(t *testing.T) {
	ck := newClock()
	tr, c := newCache(t, ck, Linux6())
	ptb(t, c, "2001:db8:ffff::1", "", 1400, true)
	ptb(t, c, "2001:db8:1::1", "", 1300, true)
	tr.Pack() // routes move; exceptions follow
	mtu(t, c, "2001:db8:ffff::1", "", 1400)
	mtu(t, c, "2001:db8:1::1", "", 1300)
	if _, ok := tr.Remove(pfx("::/0")); !ok || c.Len() != 1 {
		t.Errorf("%d exceptions after their route went", c.Len())
	}
	if err := tr.Add(rt("2001:db8:1::/64", "", 2), 2, ModeReplace); err != nil || c.Len() != 0 {
		t.Errorf("%d exceptions after the route was replaced (%v)", c.Len(), err)
	}
	ptb(t, c, "2001:db8:1::1", "", 1300, true)
	tr.Clear()
	if c.Len() != 0 {
		t.Errorf("%d exceptions after Clear", c.Len())
	}
	add(t, tr, rt("::/0", "", 1))
	c.Close()
	if len(tr.caches) != 0 {
		t.Error("the tree still knows the cache")
	}
}

func TestSourceSpecificExceptions(t *testing.T) {
	ck := newClock()
	_, c := newCache(t, ck, Linux6())
	// Through a gateway all sources of the route share one.
	ptb(t, c, "2001:db8:2::1", "2001:db9::1", 1400, true)
	mtu(t, c, "2001:db8:2::1", "2001:db9::2", 1400)
	mtu(t, c, "2001:db8:2::1", "2001:dba::2", 1500) // goes by the default route
	// On the link each has its own.
	ptb(t, c, "2001:db8:3::1", "2001:db9::1", 1400, true)
	mtu(t, c, "2001:db8:3::1", "2001:db9::1", 1400)
	mtu(t, c, "2001:db8:3::1", "2001:db9::2", 1500)
	// The default route's exception is none of the source-specific route's.
	ptb(t, c, "2001:db8:2::9", "2001:dba::2", 1400, true)
	mtu(t, c, "2001:db8:2::9", "2001:db9::2", 1500)
}

func TestRedirects(t *testing.T) {
	ck := newClock()
	routers := map[netip.Addr]bool{testGateway: true, ip("fe80::2"): true}
	_, c := newCache(t, ck, CacheConfig{IsRouter: func(a netip.Addr) bool { return routers[a] }})
	const d = "2001:db8:ffff::1"
	ptb(t, c, d, "", 1400, true)
	if ok, err := c.Redirect(ip(d), netip.Addr{}, ip("fe80::2")); !ok || err != nil {
		t.Fatal(ok, err)
	}
	mtu(t, c, d, "", 1500) // the redirect took the path MTU's place
	v, e, ok, err := c.Lookup(ip(d), netip.Addr{})
	if v != 1 || e == nil || !ok || err != nil || e.Gateway != ip("fe80::2") || !e.Redirected || !e.Expires.IsZero() {
		t.Fatalf("%d %v %v %v", v, e, ok, err)
	}
	ptb(t, c, d, "", 1400, true) // lowers in place and keeps the gateway
	if _, e, _, _ := c.Lookup(ip(d), netip.Addr{}); e == nil || e.Gateway != ip("fe80::2") || e.MTU != 1400 || e.Expires.IsZero() {
		t.Errorf("%v", e)
	}
	routers[ip("fe80::2")] = false
	ck.step(30 * time.Second)
	if c.Len() != 0 {
		t.Error("an exception through what is no router survives collection")
	}
	// To a destination on the link there is no gateway to ask about.
	c.Redirect(ip(d), netip.Addr{}, ip(d))
	ck.step(29 * time.Second)
	if _, e, _, _ := c.Lookup(ip(d), netip.Addr{}); e == nil || e.Gateway.IsValid() {
		t.Errorf("%v", e)
	}
	ck.step(29 * time.Second) // in use 29 s ago
	if c.Len() != 1 {
		t.Error("a used redirect was collected")
	}
	ck.step(31 * time.Second)
	if c.Len() != 0 {
		t.Error("an idle redirect was not collected")
	}
	if ok, _ := c.Redirect(ip(d), netip.Addr{}, ip("10.0.0.1")); ok {
		t.Error("an IPv4 gateway was taken")
	}
}

// A chain holds a random 5 to 9, and the oldest go.
func TestChainsAreShort(t *testing.T) {
	for r := range 5 {
		ck := newClock()
		_, c := newCache(t, ck, CacheConfig{Rand: func(n int) int {
			if n != 5 {
				t.Errorf("Rand(%d)", n)
			}
			return r
		}})
		// All destinations that fall into the chain of the first.
		var same []netip.Addr
		want := c.bucket(key{0x20010db8ffff0000, 0}, key{})
		for i := uint64(0); len(same) < 20; i++ {
			if k := (key{0x20010db8ffff0000, i}); c.bucket(k, key{}) == want {
				same = append(same, k.addr())
			}
		}
		for i, a := range same {
			ck.step(time.Millisecond)
			if ok, err := c.PacketTooBig(a, netip.Addr{}, 1400); !ok || err != nil {
				t.Fatal(ok, err)
			}
			if i == 3 { // the first becomes the youngest
				c.PacketTooBig(same[0], netip.Addr{}, 1300)
			}
		}
		if c.Len() != 5+r || c.Evicted() != uint64(20-5-r) {
			t.Errorf("random %d: %d left, %d evicted", r, c.Len(), c.Evicted())
		}
		for i, a := range same {
			m, _, _ := c.MTU(a, netip.Addr{})
			if (m == 1400) != (i >= 15-r) {
				t.Errorf("random %d: number %d has mtu %d", r, i, m)
			}
		}
	}
	// Number 0 outlives number 1 after its stamp was renewed.
	ck := newClock()
	_, c := newCache(t, ck, CacheConfig{Rand: func(int) int { return 0 }})
	var same []netip.Addr
	for i := uint64(0); len(same) < 6; i++ {
		if k := (key{0x20010db8ffff0000, i}); c.bucket(k, key{}) == 7 {
			same = append(same, k.addr())
		}
	}
	for i, a := range same {
		ck.step(time.Millisecond)
		if i == 5 {
			c.PacketTooBig(same[0], netip.Addr{}, 1300)
			ck.step(time.Millisecond)
		}
		c.PacketTooBig(a, netip.Addr{}, 1400)
	}
	mtu(t, c, same[0].String(), "", 1300)
	mtu(t, c, same[1].String(), "", 1500)
}

// The arithmetic of forced collections, by hand from its description.
func TestForcedCollection(t *testing.T) {
	ck := newClock()
	_, c := newCache(t, ck, CacheConfig{GCThresh: 10, GCElasticity: 1, GCMinInterval: time.Second, GCTimeout: 40 * time.Second, GCInterval: time.Hour, Tick: 4 * time.Millisecond})
	redirect := func(i uint64) {
		t.Helper()
		if ok, err := c.Redirect(key{0x20010db8ffff0000, i}.addr(), netip.Addr{}, testGateway); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	for i := range uint64(11) {
		redirect(i)
	}
	// Too soon after the cache was made: no run, but the time shrinks.
	r := c.GC(true)
	if r.Ran || r.Idle != 10*time.Second || r.Left != 11 {
		t.Errorf("%+v", r)
	}
	ck.step(time.Second) // 10 s + 4 ms, nothing is that old, then halved
	r = c.GC(true)
	if !r.Ran || r.Removed != 0 || r.Idle != (10*time.Second+4*time.Millisecond)/2 {
		t.Errorf("%+v", r)
	}
	ck.step(6 * time.Second) // now everything is older than 5.006 s
	r = c.GC(true)
	if !r.Ran || r.Removed != 11 || r.Left != 0 || r.Idle != 10*time.Second { // below the threshold: half of 40 s, halved
		t.Errorf("%+v", r)
	}
	// Insertions beyond the threshold collect by themselves.
	for i := range uint64(11) {
		redirect(i)
	}
	ck.step(time.Minute)
	redirect(100)
	if c.Len() != 1 {
		t.Errorf("%d left", c.Len())
	}
}

func TestOldKernelsRefuseAboveMaxSize(t *testing.T) {
	ck := newClock()
	k := Linux4()
	k.GCThresh, k.MaxSize = 4, 8
	_, c := newCache(t, ck, k)
	full := 0
	for i := range uint64(50) {
		if _, err := c.PacketTooBig(key{0x20010db8ffff0000, i}.addr(), netip.Addr{}, 1400); errors.Is(err, ErrCacheFull) {
			full++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if c.Len() != 9 || full != 41 { // the check comes before the insertion
		t.Errorf("%d exceptions, %d refused", c.Len(), full)
	}
	mtu(t, c, "2001:db8:ffff::31", "", 1500)

	// Before 4.2 every lookup made an entry.
	k = Linux3()
	k.GCThresh, k.MaxSize = 4, 8
	_, c = newCache(t, ck, k)
	for i := range uint64(9) {
		if _, _, ok, err := c.Lookup(key{0x20010db8ffff0000, i}.addr(), netip.Addr{}); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if _, _, _, err := c.Lookup(ip("2001:db8:ffff::99"), netip.Addr{}); !errors.Is(err, ErrCacheFull) {
		t.Errorf("lookup in a full cache: %v", err)
	}
	if _, _, ok, err := c.Lookup(ip("2001:db8:ffff::1"), netip.Addr{}); !ok || err != nil {
		t.Error("what is cached is not found", err)
	}
	ck.step(time.Minute)
	if _, _, _, err := c.Lookup(ip("2001:db8:ffff::99"), netip.Addr{}); err != nil {
		t.Errorf("after a quiet minute: %v", err)
	}
}

func TestAdvertisedSegmentSize(t *testing.T) {
	_, c := newCache(t, newClock(), Linux6())
	if m, ok := c.AdvMSS(ip("2001:db8:ffff::1"), netip.Addr{}); !ok || m != 1440 {
		t.Errorf("%d %v", m, ok)
	}
	ptb(t, c, "2001:db8:ffff::1", "", 1280, true)
	if m, _ := c.AdvMSS(ip("2001:db8:ffff::1"), netip.Addr{}); m != 1220 {
		t.Errorf("%d", m)
	}
	tr := New[int](SourceOff)
	add(t, tr, rt("::/0", "", 1))
	big := NewCache(tr, Linux6(), func(int) NextHop { return NextHop{MTU: 1 << 20} })
	if m, _ := big.AdvMSS(ip("::1"), netip.Addr{}); m != 65535 {
		t.Errorf("%d", m)
	}
	if _, ok := big.AdvMSS(ip("10.0.0.1"), netip.Addr{}); ok {
		t.Error("IPv4")
	}
}
