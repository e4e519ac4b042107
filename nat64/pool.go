package nat64

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Life times of the bindings of a [Pool] unless its options say otherwise.
const (
	DefaultMinLease = 7440 * time.Second  // 2 h 4 min: longer than TCP's keep-alive
	DefaultMaxLease = 14 * 24 * time.Hour // then an address that is not used is free
	checkInterval   = 45 * time.Second    // how often a pool looks through its bindings
	minPoolBits     = 8                   // largest pool: a /8
	maxPoolBits     = 31                  // smallest pool: a /31
	indexTombstone  = uint32(0xffffffff)  // an index cell whose binding went away
	indexLoad       = 4                   // index cells for each binding, at least
	indexMinimum    = 64                  // smallest index
	reservedLowest  = 1                   // the lowest address of a pool is not handed out
)

// PoolOptions describe a [Pool]. Only V4 has no default.
type PoolOptions struct {
	// V4 is the range of IPv4 addresses to hand out, /8 to /31. Its lowest
	// address is never handed out.
	V4 netip.Prefix
	// Allow lists the IPv6 sources that may have an address; nil: all. The
	// unspecified, loopback, IPv4-mapped, link-local and multicast addresses,
	// which no packet across a router comes from, never have one.
	Allow []netip.Prefix
	// Reserved lists IPv4 addresses of the range that are not handed out. A
	// translator adds what its other settings need: see [Pool.Reserve].
	Reserved []netip.Prefix
	// MinLease is how long an address stays with its host after the last
	// packet. 0: DefaultMinLease.
	MinLease time.Duration
	// MaxLease is how long the address then stays reserved for the host as
	// long as no other host needs it. 0: DefaultMaxLease.
	MaxLease time.Duration
	// Now tells the time. nil: time.Now.
	Now func() time.Time
	// OnChange, if set, is called for each binding that is made (gone false)
	// or ends (gone true), in order, while the pool is locked: it must not
	// call methods of the pool and should only take note. Packets that use an
	// existing binding do not call it.
	OnChange func(b Binding, gone bool)
}

// Binding is an IPv4 address of a pool in use by an IPv6 host.
type Binding struct {
	V4   netip.Addr
	V6   netip.Addr
	Last time.Time // when it was last seen in use, within 45 seconds
}

// Pool hands out IPv4 addresses one to one to IPv6 hosts as their first
// packets arrive (Tayga's dynamic pool). A host keeps its address as long as
// it sends or receives, MinLease longer, and up to MaxLease if nobody else
// needs the address; when the pool is full, the address that has been dormant
// longest changes hands. The first choice depends on the IPv6 address alone,
// so a host tends to get the same address again.
//
// All methods may be called at the same time as packets are translated. A
// pool may serve successive configurations, but not two translators.
type Pool struct {
	base  uint32
	size  uint32 // a power of two
	allow []netip.Prefix

	// The packet path reads slots and index without the lock.
	slots []atomic.Pointer[binding] // by IPv4 address - base
	index atomic.Pointer[poolIndex] // by IPv6 address

	min, max time.Duration
	now      func() time.Time
	onChange func(Binding, bool)

	mu       sync.Mutex
	own      []netip.Prefix // Reserved of the options
	reserved []span         // sorted, apart
	usable   int            // addresses that may be handed out
	count    int            // bindings
	next     time.Time      // when to look through the bindings again
	dormant  []*binding     // those past MinLease, longest dormant first
	version  uint64
}

// binding is shared with the packet path: v4, hi and lo never change.
type binding struct {
	v6   addr6
	v4   uint32
	used atomic.Bool // set by packets, taken by sweep
	last time.Time   // under Pool.mu
}

// poolIndex is an open-addressing hash table from IPv6 addresses to slots. A
// cell holds the high half of the hash and, below, the slot's number plus
// one. Cells are written under Pool.mu, in place; a larger copy replaces the
// whole index.
type poolIndex struct {
	shift uint8
	cells []atomic.Uint64
	taken int // cells not zero, under Pool.mu
}

// NewPool makes an empty pool. It fails with a [*ConfigError].
func NewPool(o PoolOptions) (*Pool, error) {
	if !o.V4.IsValid() || !o.V4.Addr().Is4() {
		return nil, configErr("pool", o.V4.String(), ErrFamily)
	}
	if o.V4 != o.V4.Masked() {
		return nil, configErr("pool", o.V4.String(), ErrHostBits)
	}
	if b := o.V4.Bits(); b < minPoolBits || b > maxPoolBits {
		return nil, configErr("pool", o.V4.String(), ErrRange)
	}
	for _, a := range o.Allow {
		if !a.IsValid() || !a.Addr().Is6() {
			return nil, configErr("pool filter", a.String(), ErrFamily)
		}
	}
	for _, r := range o.Reserved {
		if !r.IsValid() || !r.Addr().Is4() {
			return nil, configErr("pool reservation", r.String(), ErrFamily)
		}
	}
	p := &Pool{
		base:     from4(o.V4.Addr()),
		size:     1 << (32 - o.V4.Bits()),
		allow:    slices.Clone(o.Allow),
		min:      o.MinLease,
		max:      o.MaxLease,
		now:      o.Now,
		onChange: o.OnChange,
		own:      slices.Clone(o.Reserved),
	}
	if p.min == 0 {
		p.min = DefaultMinLease
	}
	if p.max == 0 {
		p.max = max(DefaultMaxLease, p.min)
	}
	if p.min < 0 || p.max < p.min {
		return nil, configErr("pool lease", p.min.String()+" to "+p.max.String(), ErrRange)
	}
	if p.now == nil {
		p.now = time.Now
	}
	p.setReserved(nil)
	p.slots = make([]atomic.Pointer[binding], p.size)
	p.index.Store(newPoolIndex(indexMinimum))
	return p, nil
}

// V4 returns the range of the pool.
func (p *Pool) V4() netip.Prefix {
	n := 0
	for p.size>>n > 1 {
		n++
	}
	return netip.PrefixFrom(addr4(p.base), 32-n)
}

// Reserve sets, in addition to [PoolOptions.Reserved], the IPv4 prefixes that
// are not to be handed out, and ends bindings within them. Prefixes that are
// not IPv4 or lie outside the range are ignored. A [Translator]
// calls it with its EAM table's, own and RFC 6791 addresses.
func (p *Pool) Reserve(list []netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setReserved(list)
	for b := range p.all() {
		if p.isReserved(b.v4) {
			p.end(b)
		}
	}
}

// span is a range of IPv4 addresses, both ends in it.
type span struct{ first, last uint32 }

// setReserved replaces the reserved spans, sorted and merged, by the options'
// own and those of list, and counts the addresses that are left.
func (p *Pool) setReserved(list []netip.Prefix) {
	end := p.base + (p.size - 1)
	spans := []span{{p.base, p.base + reservedLowest - 1}}
	for _, r := range slices.Concat(p.own, list) {
		if !r.IsValid() || !r.Addr().Is4() {
			continue
		}
		first := from4(r.Masked().Addr())
		last := first | ^mask4(r.Bits())
		if last >= p.base && first <= end {
			spans = append(spans, span{max(first, p.base), min(last, end)})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	merged := spans[:1]
	for _, s := range spans[1:] {
		if t := &merged[len(merged)-1]; s.first <= t.last {
			t.last = max(t.last, s.last)
		} else {
			merged = append(merged, s)
		}
	}
	p.reserved, p.usable = merged, int(p.size)
	for _, s := range merged {
		p.usable -= int(s.last-s.first) + 1
	}
}

func (p *Pool) isReserved(v uint32) bool {
	i, found := slices.BinarySearchFunc(p.reserved, v, func(s span, v uint32) int { return cmp.Compare(s.first, v) })
	return found || i > 0 && v <= p.reserved[i-1].last
}

// all visits the bindings, through the index, which is small when the range is
// large and little used. The pool is locked; visiting may end a binding.
func (p *Pool) all() iter.Seq[*binding] {
	return func(yield func(*binding) bool) {
		x := p.index.Load()
		for i := range x.cells {
			v := uint32(x.cells[i].Load())
			if v == 0 || v == indexTombstone {
				continue
			}
			if b := p.slots[v-1].Load(); b != nil && !yield(b) {
				return
			}
		}
	}
}

func newPoolIndex(n int) *poolIndex {
	size, log := slotsFor(n)
	return &poolIndex{shift: 64 - log, cells: make([]atomic.Uint64, size)}
}

func (x *poolIndex) put(h uint64, slot uint32) {
	m := uint64(len(x.cells) - 1)
	for i := h >> (x.shift & 63); ; i++ {
		c := &x.cells[i&m]
		switch v := c.Load(); {
		case v == 0:
			x.taken++
			fallthrough
		case uint32(v) == indexTombstone:
			c.Store(h<<32 | uint64(slot+1))
			return
		}
	}
}

func (p *Pool) contains4(v uint32) bool { return v-p.base < p.size }

// find4 returns the binding of an IPv4 address within the range, or nil.
func (p *Pool) find4(v uint32) *binding {
	return p.slots[v-p.base].Load()
}

// find6 returns the binding of an IPv6 host, or nil.
func (p *Pool) find6(a addr6) *binding {
	x := p.index.Load()
	h := hash6(a)
	m := uint64(len(x.cells) - 1)
	for i := h >> (x.shift & 63); ; i++ {
		v := x.cells[i&m].Load()
		if v == 0 {
			return nil
		}
		if v>>32 != h&0xffffffff || uint32(v) == indexTombstone {
			continue
		}
		if b := p.slots[uint32(v)-1].Load(); b != nil && b.v6 == a {
			return b
		}
	}
}

// touch notes that a packet used the binding.
func (b *binding) touch() {
	if !b.used.Load() {
		b.used.Store(true)
	}
}

func (p *Pool) allows(a addr6) bool {
	if a.neverSource() {
		return false
	}
	if len(p.allow) == 0 {
		return true
	}
	ip := a.netip()
	return slices.ContainsFunc(p.allow, func(f netip.Prefix) bool { return f.Contains(ip) })
}

// assign returns the binding of a host, which it makes if need be; nil when
// the pool is exhausted.
func (p *Pool) assign(a addr6) *binding {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.find6(a); b != nil {
		return b
	}
	now := p.now()
	if !now.Before(p.next) {
		p.sweep(now)
	}
	v4, ok := p.free(a)
	if !ok {
		b := p.longestDormant()
		if b == nil {
			return nil
		}
		v4 = b.v4
		p.end(b)
	}
	return p.bind(a, v4, now)
}

// free finds an address that is not in use, starting at the host's own.
func (p *Pool) free(a addr6) (v4 uint32, ok bool) {
	if p.count >= p.usable {
		return 0, false
	}
	s := uint32(a.hi>>32) + uint32(a.hi) + uint32(a.lo>>32) + uint32(a.lo)
	first := s
	for n := 32 - p.V4().Bits(); n < 32; n += n { // fold into the host bits
		first ^= s >> n
	}
	first &= p.size - 1
	for i := uint32(0); i < p.size; i++ {
		o := (first + i) & (p.size - 1)
		if p.slots[o].Load() != nil || p.isReserved(p.base+o) {
			continue
		}
		return p.base + o, true
	}
	return 0, false
}

func (p *Pool) bind(a addr6, v4 uint32, last time.Time) *binding {
	x := p.index.Load()
	if (x.taken+1)*2 > len(x.cells) { // full, or full of tombstones: copy
		x = newPoolIndex(max(indexMinimum, (p.count+1)*indexLoad/2))
		for b := range p.all() {
			x.put(hash6(b.v6), b.v4-p.base)
		}
		p.index.Store(x)
	}
	b := &binding{v6: a, v4: v4, last: last}
	p.slots[v4-p.base].Store(b)
	x.put(hash6(a), v4-p.base)
	p.count++
	p.version++
	if p.onChange != nil {
		p.onChange(b.export(), false)
	}
	return b
}

// end frees a binding's address.
func (p *Pool) end(b *binding) {
	x := p.index.Load()
	h := hash6(b.v6)
	m := uint64(len(x.cells) - 1)
	for i := h >> (x.shift & 63); ; i++ {
		c := &x.cells[i&m]
		if c.Load() == h<<32|uint64(b.v4-p.base+1) {
			c.Store(uint64(indexTombstone))
			break
		}
		if c.Load() == 0 {
			break // not indexed: cannot happen
		}
	}
	p.slots[b.v4-p.base].Store(nil)
	p.count--
	p.version++
	if p.onChange != nil {
		p.onChange(b.export(), true)
	}
}

func (b *binding) export() Binding {
	return Binding{V4: addr4(b.v4), V6: b.v6.netip(), Last: b.last}
}

// sweep takes the packets' marks, frees what is past its maximal lease and
// lists what is dormant.
func (p *Pool) sweep(now time.Time) {
	p.next = now.Add(checkInterval)
	p.dormant = p.dormant[:0]
	for b := range p.all() {
		if b.used.Swap(false) {
			b.last = now
		}
		switch idle := now.Sub(b.last); {
		case idle > p.max:
			p.end(b)
		case idle > p.min:
			p.dormant = append(p.dormant, b)
		}
	}
	slices.SortFunc(p.dormant, func(a, b *binding) int { return a.last.Compare(b.last) })
}

// longestDormant takes the first of the list that is still bound and unused.
func (p *Pool) longestDormant() *binding {
	for len(p.dormant) > 0 {
		b := p.dormant[0]
		p.dormant = p.dormant[1:]
		if !b.used.Load() && p.slots[b.v4-p.base].Load() == b {
			return b
		}
	}
	return nil
}

// Sweep looks through the bindings: it notes which were in use since the last
// time and ends those past their maximal lease. The pool does so by itself
// when it makes a binding, at most every 45 seconds; call it at about that
// interval for exact life times.
func (p *Pool) Sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweep(p.now())
}

// Touch notes that the binding of an IPv6 host is in use although its packets
// do not pass the translator, as when a fast path carries them. It reports
// whether there is such a binding.
func (p *Pool) Touch(v6 netip.Addr) bool {
	if !v6.Is6() {
		return false
	}
	b := p.find6(from6(v6))
	if b == nil {
		return false
	}
	b.touch()
	return true
}

// Lookup6 returns the IPv6 host that has an IPv4 address.
func (p *Pool) Lookup6(v4 netip.Addr) (v6 netip.Addr, ok bool) {
	if !v4.Is4() || !p.contains4(from4(v4)) {
		return netip.Addr{}, false
	}
	b := p.find4(from4(v4))
	if b == nil {
		return netip.Addr{}, false
	}
	return b.v6.netip(), true
}

// Lookup4 returns the IPv4 address that an IPv6 host has. It does not count as
// use.
func (p *Pool) Lookup4(v6 netip.Addr) (v4 netip.Addr, ok bool) {
	if !v6.Is6() {
		return netip.Addr{}, false
	}
	b := p.find6(from6(v6))
	if b == nil {
		return netip.Addr{}, false
	}
	return addr4(b.v4), true
}

// Len returns the number of bindings.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Version returns a number that changes whenever a binding is made or ends.
func (p *Pool) Version() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// Bindings returns a snapshot of the bindings in the order of their IPv4
// addresses.
func (p *Pool) Bindings() iter.Seq[Binding] {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	list := make([]Binding, 0, p.count)
	for b := range p.all() {
		e := b.export()
		if b.used.Load() {
			e.Last = now
		}
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Binding) int { return a.V4.Compare(b.V4) })
	return slices.Values(list)
}
