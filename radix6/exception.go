package radix6

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// MinMTU is the smallest MTU of an IPv6 link (RFC 8200 section 5). A Packet
// Too Big message that reports less changes nothing.
const MinMTU = 1280

// Constants of Linux's exception tables.
const (
	exceptionBuckets  = 1024
	exceptionMinDepth = 5 // a chain holds 5 to 9, drawn anew at each insertion
)

// ErrCacheFull is what a lookup or an event meets where [CacheConfig.MaxSize]
// exceptions are there and garbage collection has freed none.
var ErrCacheFull = errors.New("radix6: route cache is full")

// CacheConfig holds the knobs of net.ipv6.route and what the cache needs to
// know of the outside. Zero durations and counts mean the default of the
// kernel that [Linux6] describes; where 0 is a value of its own (GCMinInterval)
// use a negative one for "none".
type CacheConfig struct {
	// GCThresh is gc_thresh: with more exceptions than this, every insertion
	// tries to collect. Default 1024.
	GCThresh int
	// MaxSize is max_size: how many exceptions there may be. 0 means no limit.
	MaxSize int
	// GCElasticity is gc_elasticity: each attempt shortens the time after
	// which an idle exception dies by 1/2^GCElasticity of it. Default 9.
	GCElasticity int
	// GCInterval is gc_interval: the period of the timer that collects while
	// there is something that may die. Default 30 s.
	GCInterval time.Duration
	// GCMinInterval is gc_min_interval: attempts that come sooner after a
	// run do not run. Default 0 (but 500 ms where the kernel has it so, see
	// the presets).
	GCMinInterval time.Duration
	// GCTimeout is gc_timeout: half of it is the time after which an idle
	// exception dies when memory is not short. Default 60 s.
	GCTimeout time.Duration
	// MTUExpires is mtu_expires: how long a path MTU is believed. Default
	// 600 s.
	MTUExpires time.Duration
	// MinAdvMSS is min_adv_mss, the least segment size [Cache.AdvMSS]
	// advertises. Default 1220.
	MinAdvMSS int
	// CloneOnLookup makes every [Cache.Lookup] that finds no exception
	// create one, as kernels before 4.2 did.
	CloneOnLookup bool

	// Now tells the time. Default [time.Now].
	Now func() time.Time
	// Rand returns a random number below n, which is positive. Default: a
	// generator that cannot be predicted.
	Rand func(n int) int
	// Tick is the length of one jiffy, by which a forced collection
	// lengthens the idle time. Default 4 ms (CONFIG_HZ=250).
	Tick time.Duration
	// IsRouter reports whether the neighbour table knows a gateway as a
	// router. Exceptions through one that is not are dropped by the next
	// collection. The default answers true.
	IsRouter func(gateway netip.Addr) bool
}

// Linux6 returns the defaults of Linux 6.3 and later: no limit on the number
// of exceptions.
func Linux6() CacheConfig { return CacheConfig{} }

// Linux4 returns the defaults of Linux 4.2 to 6.2, which refuse routes beyond
// max_size, 4096.
func Linux4() CacheConfig { return CacheConfig{MaxSize: 4096} }

// Linux3 returns the defaults of kernels before 4.2, in which every lookup of
// a new destination made an entry, and gc_min_interval was half a second.
func Linux3() CacheConfig {
	return CacheConfig{MaxSize: 4096, GCMinInterval: 500 * time.Millisecond, CloneOnLookup: true}
}

// fill replaces zeros by defaults.
func (c *CacheConfig) fill() {
	number := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	duration := func(p *time.Duration, v time.Duration) {
		if *p == 0 {
			*p = v
		}
	}
	number(&c.GCThresh, 1024)
	number(&c.GCElasticity, 9)
	number(&c.MinAdvMSS, 1220)
	duration(&c.GCInterval, 30*time.Second)
	duration(&c.GCTimeout, 60*time.Second)
	duration(&c.MTUExpires, 600*time.Second)
	duration(&c.Tick, 4*time.Millisecond)
	c.GCMinInterval = max(0, c.GCMinInterval)
	c.GCElasticity = min(max(0, c.GCElasticity), 62)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.IntN
	}
	if c.IsRouter == nil {
		c.IsRouter = func(netip.Addr) bool { return true }
	}
}

// NextHop is what a [Cache] must know of a route's value.
type NextHop struct {
	// MTU of the route: that of its device, unless the route has one.
	MTU int
	// Gateway is zero for destinations on the link. Exceptions of
	// source-specific routes are kept per source only on the link; through a
	// gateway all sources of the route share one.
	Gateway netip.Addr
}

// Exception is what a route's next hop knows of one destination.
type Exception struct {
	Dst netip.Addr
	// Src is the source to which the exception is confined. The zero Addr
	// means any that the parent route serves.
	Src netip.Addr
	// MTU is the path MTU, or 0 where only the gateway is known.
	MTU int
	// Gateway is that of the route or, after a redirect, the better one. It
	// is zero where the destination is on the link.
	Gateway netip.Addr
	// Redirected is set when the gateway comes from a redirect.
	Redirected bool
	// Expires is when the exception ends. The zero Time means that it ends
	// when it has been idle too long.
	Expires time.Time
	// Parent is the route that the exception belongs to.
	Parent Route
}

// exception is one entry of a chain.
type exception struct {
	dst, src key
	Exception
	stamp    time.Time // of the last event: the oldest is evicted first
	lastUse  time.Time
	sequence uint64 // breaks ties of stamp
}

// table holds the exceptions of one route; buckets are made at need.
type table struct {
	buckets map[uint16][]exception // newest first, never empty
}

// Cache keeps exceptions to the routes of a tree: path MTUs (RFC 8201) and
// redirects (RFC 4861 section 8), as Linux has kept them since 4.15: not in
// the tree but at the route's next hop, in a hash table of 1,024 chains, each
// of them limited to a random 5 to 9 entries so that no flood of messages
// fills memory and nobody can tell by probing what is cached. When a route is
// deleted its exceptions go with it.
//
// A Cache has no goroutine: what is due is done when the next method is
// called. It must not be used by several goroutines at once, nor while the
// tree is changed.
type Cache[V any] struct {
	tree   *Tree[V]
	cfg    CacheConfig
	hop    func(V) NextHop
	seed   maphash.Seed
	tables map[uint32]*table
	size   int

	sequence uint64
	expire   time.Duration // ip6_rt_gc_expire: idle time that is tolerated now
	lastGC   time.Time
	timer    time.Time // zero: not armed
	evicted  uint64
}

// NewCache returns an empty cache for the routes of a tree. Hop describes the
// next hop of a route's value; nil stands for MTU 1500 and no gateway.
func NewCache[V any](t *Tree[V], cfg CacheConfig, hop func(V) NextHop) *Cache[V] {
	cfg.fill()
	if hop == nil {
		hop = func(V) NextHop { return NextHop{MTU: 1500} }
	}
	c := &Cache[V]{tree: t, cfg: cfg, hop: hop, seed: maphash.MakeSeed(), tables: map[uint32]*table{}}
	c.expire = cfg.GCTimeout / 2
	c.lastGC = cfg.Now()
	t.caches = append(t.caches, c)
	return c
}

// Close takes the cache off its tree and empties it.
func (c *Cache[V]) Close() {
	c.tree.caches = slices.DeleteFunc(c.tree.caches, func(o *Cache[V]) bool { return o == c })
	c.clear()
}

// drop forgets the exceptions of a route; the tree calls it.
func (c *Cache[V]) drop(rt uint32) {
	if tb := c.tables[rt]; tb != nil {
		for _, b := range tb.buckets {
			c.size -= len(b)
		}
		delete(c.tables, rt)
	}
}

// move follows the routes to new indices; the tree calls it.
func (c *Cache[V]) move(moved map[uint32]uint32) {
	tables := make(map[uint32]*table, len(c.tables))
	for rt, tb := range c.tables {
		tables[moved[rt]] = tb
	}
	c.tables = tables
}

func (c *Cache[V]) clear() {
	c.tables = map[uint32]*table{}
	c.size = 0
}

// Len returns the number of exceptions, expired ones that await collection
// included: the rt_cache column of /proc/net/rt6_stats.
func (c *Cache[V]) Len() int {
	c.poll()
	return c.size
}

// Evicted returns how many exceptions have been pushed out of full chains.
func (c *Cache[V]) Evicted() uint64 { return c.evicted }

// at is where a packet's exception is or would be.
type at[V any] struct {
	rt   uint32
	v    V
	r    Route
	hop  NextHop
	d, s key // s is the zero key unless the route keeps sources apart
}

// resolve finds the parent route of a packet.
func (c *Cache[V]) resolve(dst, src netip.Addr) (a at[V], ok bool) {
	d, s, ok := queryKeys(dst, src)
	if !ok || len(c.tree.nodes) == 0 {
		return a, false
	}
	i, si, rt := c.tree.find(d, s, nil)
	if rt == 0 {
		return a, false
	}
	a = at[V]{rt: rt, v: c.tree.vals[rt], r: c.tree.route(i, si, rt), d: d}
	a.hop = c.hop(a.v)
	if si != 0 {
		a.s = s
	}
	return a, true
}

// routeSource is the source under which a route keeps exceptions that are not
// confined to one: its own prefix's address.
func (a *at[V]) routeSource() (s key) {
	if a.r.From.IsValid() {
		s.hi, s.lo, _ = addrKey(a.r.From.Addr())
	}
	return s
}

func (c *Cache[V]) bucket(d, s key) uint16 {
	var b [32]byte
	for i, w := range [...]uint64{d.hi, d.lo, s.hi, s.lo} {
		binary.BigEndian.PutUint64(b[8*i:], w)
	}
	return uint16(maphash.Bytes(c.seed, b[:]) % exceptionBuckets)
}

// get returns the exception of exactly this destination and source, expired
// or not.
func (c *Cache[V]) get(rt uint32, d, s key) *exception {
	tb := c.tables[rt]
	if tb == nil {
		return nil
	}
	chain := tb.buckets[c.bucket(d, s)]
	for i := range chain {
		if chain[i].dst == d && chain[i].src == s {
			return &chain[i]
		}
	}
	return nil
}

// live returns the exception that serves a packet: that of its own source, or
// that of all sources of the route.
func (c *Cache[V]) live(a *at[V], now time.Time) *exception {
	e := c.get(a.rt, a.d, a.s)
	if e != nil && !e.expired(now) {
		return e
	}
	if s := a.routeSource(); s != a.s {
		if e = c.get(a.rt, a.d, s); e != nil && !e.expired(now) {
			return e
		}
	}
	return nil
}

// expired is strict as in Linux: at the very instant the exception still holds.
func (e *exception) expired(now time.Time) bool {
	return !e.Expires.IsZero() && now.After(e.Expires)
}

// insert adds an exception in front of its chain, in place of one with the
// same key, and cuts the chain to a random length.
func (c *Cache[V]) insert(a *at[V], e exception, now time.Time) error {
	// Where memory is short the allocation of the entry itself comes first.
	if c.size > c.cfg.GCThresh && c.collect(now) {
		return ErrCacheFull
	}
	tb := c.tables[a.rt]
	if tb == nil {
		tb = &table{buckets: map[uint16][]exception{}}
		c.tables[a.rt] = tb
	}
	b := c.bucket(e.dst, e.src)
	chain := tb.buckets[b]
	if i := slices.IndexFunc(chain, func(o exception) bool { return o.dst == e.dst && o.src == e.src }); i >= 0 {
		chain = slices.Delete(chain, i, i+1)
		c.size--
	}
	c.sequence++
	e.stamp, e.lastUse, e.sequence, e.Parent = now, now, c.sequence, a.r
	chain = slices.Insert(chain, 0, e)
	c.size++
	for depth := exceptionMinDepth + c.cfg.Rand(exceptionMinDepth); len(chain) > depth; {
		oldest := 0
		for i := range chain {
			o, x := &chain[oldest], &chain[i]
			if x.stamp.Before(o.stamp) || x.stamp.Equal(o.stamp) && x.sequence < o.sequence {
				oldest = i
			}
		}
		chain = slices.Delete(chain, oldest, oldest+1)
		c.size--
		c.evicted++
	}
	tb.buckets[b] = chain
	if c.timer.IsZero() {
		c.timer = now.Add(c.cfg.GCInterval)
	}
	return nil
}

// PacketTooBig takes note of an ICMPv6 Packet Too Big message about a packet
// from src to dst: the path carries at most mtu bytes (RFC 8201). It reports
// whether that is news. An MTU below 1280 or not below what is known already
// is not, nor is one for a destination without a route. News about a
// destination that has a live exception lowers its MTU; it never makes it last
// longer. The error is [ErrCacheFull] or nil.
func (c *Cache[V]) PacketTooBig(dst, src netip.Addr, mtu int) (bool, error) {
	now := c.poll()
	a, ok := c.resolve(dst, src)
	if !ok || mtu < MinMTU {
		return false, nil
	}
	until := now.Add(c.cfg.MTUExpires)
	if e := c.live(&a, now); e != nil {
		known := e.MTU
		if known == 0 {
			known = a.hop.MTU
		}
		if mtu >= known {
			return false, nil
		}
		e.MTU = mtu
		if e.Expires.IsZero() || until.Before(e.Expires) {
			e.Expires = until
		}
		e.stamp = now
		return true, nil
	}
	if mtu >= a.hop.MTU {
		return false, nil
	}
	e := exception{dst: a.d, src: a.routeSource()}
	e.Exception = Exception{Dst: dst, MTU: mtu, Gateway: a.hop.Gateway, Expires: until}
	if a.r.From.IsValid() && !a.hop.Gateway.IsValid() {
		e.src = a.s
		e.Src = src
	}
	if err := c.insert(&a, e, now); err != nil {
		return false, err
	}
	return true, nil
}

// Redirect takes note of a redirect: packets to dst had better go to gateway,
// which equals dst where that is on the link (RFC 4861 section 8). It takes
// the place of a path MTU that is known for dst, and reports whether there is
// a route to dst. The error is [ErrCacheFull] or nil.
func (c *Cache[V]) Redirect(dst, src, gateway netip.Addr) (bool, error) {
	now := c.poll()
	a, ok := c.resolve(dst, src)
	if _, _, six := addrKey(gateway); !ok || !six {
		return false, nil
	}
	e := exception{dst: a.d, src: a.routeSource()}
	e.Exception = Exception{Dst: dst, Gateway: gateway, Redirected: true}
	if gateway == dst {
		e.Gateway = netip.Addr{}
	}
	if err := c.insert(&a, e, now); err != nil {
		return false, err
	}
	return true, nil
}

// MTU returns the path MTU of packets from src to dst, and when it will be
// forgotten: the zero Time where it is that of the route. It is false where
// there is no route.
func (c *Cache[V]) MTU(dst, src netip.Addr) (mtu int, expires time.Time, ok bool) {
	now := c.poll()
	a, ok := c.resolve(dst, src)
	if !ok {
		return 0, expires, false
	}
	if e := c.live(&a, now); e != nil && e.MTU != 0 {
		return min(e.MTU, a.hop.MTU), e.Expires, true
	}
	return a.hop.MTU, expires, true
}

// AdvMSS returns the segment size to advertise to dst: the path MTU without
// the headers of IPv6 and TCP, at least MinAdvMSS, at most 65535 (where it
// means "any", RFC 2675).
func (c *Cache[V]) AdvMSS(dst, src netip.Addr) (mss int, ok bool) {
	mtu, _, ok := c.MTU(dst, src)
	if !ok {
		return 0, false
	}
	if mss = max(mtu-40-20, c.cfg.MinAdvMSS); mss > 65535-20 {
		mss = 65535
	}
	return mss, true
}

// Lookup returns the value of the best route from src to dst, and the live
// exception that modifies it, if any, as a copy that is the caller's; it counts as
// a use of that. As in all methods of a Cache the zero src is the unspecified
// address, and there is no route to an IPv4 address. The error is [ErrCacheFull],
// where lookups make entries ([CacheConfig.CloneOnLookup]), or nil; ok is false
// where there is no route.
func (c *Cache[V]) Lookup(dst, src netip.Addr) (v V, e *Exception, ok bool, err error) {
	now := c.poll()
	a, ok := c.resolve(dst, src)
	if !ok {
		return v, nil, false, nil
	}
	if x := c.live(&a, now); x != nil {
		x.lastUse = now
		out := x.Exception
		return a.v, &out, true, nil
	}
	if c.cfg.CloneOnLookup {
		x := exception{dst: a.d, src: a.routeSource()}
		x.Exception = Exception{Dst: dst, Gateway: a.hop.Gateway}
		if a.r.From.IsValid() && !a.hop.Gateway.IsValid() {
			x.src, x.Src = a.s, src
		}
		if err := c.insert(&a, x, now); err != nil {
			var zero V
			return zero, nil, false, err
		}
	}
	return a.v, nil, true, nil
}

// All walks the exceptions that have not expired, in no particular order: "ip
// -6 route show cache". The cache must not be used during the walk.
func (c *Cache[V]) All() iter.Seq[Exception] {
	return func(yield func(Exception) bool) {
		now := c.poll()
		for _, tb := range c.tables {
			for _, chain := range tb.buckets {
				for i := range chain {
					if !chain[i].expired(now) && !yield(chain[i].Exception) {
						return
					}
				}
			}
		}
	}
}

// GCResult says what a collection did.
type GCResult struct {
	Ran     bool // false: none was due
	Removed int
	Left    int
	// Idle is for how long an exception without an expiry may be idle now.
	Idle time.Duration
	// Full is set when more than MaxSize exceptions are left.
	Full bool
}

// GC runs what is due at the cache's clock: the timer and, if force is set,
// the collection that an insertion into a cache of more than GCThresh entries
// tries, which happens at most once in GCMinInterval.
func (c *Cache[V]) GC(force bool) GCResult {
	before := c.size
	last := c.lastGC
	now := c.poll()
	full := false
	if force {
		full = c.collect(now)
	}
	return GCResult{Ran: c.lastGC != last, Removed: before - c.size, Left: c.size, Idle: c.expire, Full: full}
}

// NextGC returns when the timer will run; it is false while nothing can die.
func (c *Cache[V]) NextGC() (time.Time, bool) { return c.timer, !c.timer.IsZero() }

// poll tells the time after doing what the timer would have done until now.
// Runs before the last due one would have removed nothing that this does not.
func (c *Cache[V]) poll() time.Time {
	now := c.cfg.Now()
	if !c.timer.IsZero() && !now.Before(c.timer) {
		due := c.timer.Add(now.Sub(c.timer).Truncate(c.cfg.GCInterval))
		c.run(c.cfg.GCInterval, due)
	}
	return now
}

// collect is a forced collection. Each lengthens the tolerated idle time by a
// tick; falling below the threshold sets it to half of GCTimeout; then it
// shrinks by its 2^GCElasticity-th part. It reports whether the cache is full.
func (c *Cache[V]) collect(now time.Time) (full bool) {
	limited := c.cfg.MaxSize > 0
	if now.Before(c.lastGC.Add(c.cfg.GCMinInterval)) && (!limited || c.size <= c.cfg.MaxSize) {
		c.expire -= c.expire >> c.cfg.GCElasticity
		return false
	}
	c.expire += c.cfg.Tick
	c.run(c.expire, now)
	if c.size < c.cfg.GCThresh {
		c.expire = c.cfg.GCTimeout / 2
	}
	c.expire -= c.expire >> c.cfg.GCElasticity
	return limited && c.size > c.cfg.MaxSize
}

// run removes what has expired, what has been idle for long, and what goes
// through a neighbour that is not a router, and arms the timer if anything is
// left.
func (c *Cache[V]) run(idle time.Duration, now time.Time) {
	for rt, tb := range c.tables {
		for b, chain := range tb.buckets {
			n := len(chain)
			chain = slices.DeleteFunc(chain, func(e exception) bool {
				if e.Expires.IsZero() {
					if now.Sub(e.lastUse) >= idle {
						return true
					}
				} else if e.expired(now) {
					return true
				}
				return e.Gateway.IsValid() && !c.cfg.IsRouter(e.Gateway)
			})
			c.size -= n - len(chain)
			if len(chain) == 0 {
				delete(tb.buckets, b)
			} else {
				tb.buckets[b] = chain
			}
		}
		if len(tb.buckets) == 0 {
			delete(c.tables, rt)
		}
	}
	c.lastGC = now
	c.timer = time.Time{}
	if c.size > 0 {
		c.timer = now.Add(c.cfg.GCInterval)
	}
}

// String describes the exception as ip does: "2001:db8::1 via fe80::1 expires
// ... mtu 1400", with the time at which it ends.
func (e Exception) String() string {
	s := e.Dst.String()
	if e.Src.IsValid() {
		s += " from " + e.Src.String()
	}
	if e.Gateway.IsValid() {
		s += " via " + e.Gateway.String()
	}
	if !e.Expires.IsZero() {
		s += " expires " + e.Expires.UTC().Format(time.RFC3339)
	}
	if e.MTU != 0 {
		s += fmt.Sprintf(" mtu %d", e.MTU)
	}
	return s
}
