package nat64

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Headroom is how many octets Translate may use in front of a packet, at
// most. It needs 28, by which an IPv6 header and a fragment header are longer
// than an IPv4 header; the rest leaves room for a link header or a [VirtioHdr]
// in front of the result.
const Headroom = 64

// Verdict says what to do with a [Result].
type Verdict uint8

// Verdicts. The zero value is Drop.
const (
	// Drop: nothing is to be sent.
	Drop Verdict = iota
	// Forward: the packets are to be sent on.
	Forward
	// Reply: the packet was not translated; what is to be sent is an ICMP
	// message to its sender.
	Reply
)

// String returns "drop", "forward" or "reply".
func (v Verdict) String() string {
	switch v {
	case Forward:
		return "forward"
	case Reply:
		return "reply"
	}
	return "drop"
}

// Result is what became of a packet. Packet and More lie in the caller's buffer
// or in the Scratch, and are valid until either is used again.
type Result struct {
	Verdict Verdict
	Reason  Reason
	// Offset is where Packet begins in the caller's buffer, or -1 when it
	// lies in the Scratch. It is at most 28 less than the off that was given;
	// it is more where a header became shorter. It is 0 if Verdict is Drop.
	Offset int
	// Packet is the packet to send, from the first octet of its IP header, nil
	// if Verdict is Drop.
	Packet []byte
	// More are further packets to send behind Packet: the rest of a
	// fragmented packet. Usually nil.
	More [][]byte
}

// Scratch is working memory for one goroutine at a time. The zero value is
// ready for use. It grows to what the largest packet needed, and makes steady
// translation free of allocations: 256 KB are enough for super-packets as they
// are, 10 MB for one of 64 KB that must be cut to segments of a few octets. It
// must not be copied after its first use.
//
// A Scratch also has counters and a stock of IPv4 identifications of the
// translator that it was last used with. So a goroutine should keep one, for
// one translator: the first 48 that a translator sees count without locked
// instructions, further ones share counters and are slower, and a Scratch that
// changes translators counts as a new one each time. The counts stay with the
// translator when a Scratch is dropped.
type Scratch struct {
	_ noCopy

	dry   bool   // Explain: make no pool bindings, leave counters and rate limit alone
	arena []byte // memory for packets that are not made in place
	used  int
	more  [][]byte

	owner    *Translator // whose the following are
	counters *shard
	shared   bool // with other Scratches
	ids      [1 << idBits]idRange
}

// noCopy makes go vet complain of copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// alloc returns n octets that stay valid until the arena is reset.
func (s *Scratch) alloc(n int) []byte {
	if len(s.arena)-s.used < n {
		// Slices of the old arena stay valid: it is only let go.
		s.arena, s.used = make([]byte, max(2*len(s.arena), n, 4096)), 0
	}
	b := s.arena[s.used : s.used+n : s.used+n]
	s.used += n
	return b
}

// Translator translates packets by a configuration that may be replaced at
// any time. All its methods may be called by several goroutines at once, each
// with a Scratch and a buffer of its own.
type Translator struct {
	snap      atomic.Pointer[snapshot]
	updating  sync.Mutex
	scratches atomic.Uint64 // adopted so far
	counters  [ownShards + sharedShards]shard

	// IPv4 identifications: one counter for each hash of source, destination
	// and protocol (as RFC 6864 wants them unique), from a random start.
	idKey uint64
	ids   [1 << idBits]atomic.Uint32

	limit limiter
}

const idBits = 11

// New makes a translator. It fails with a [*ConfigError]. There is nothing to
// close.
func New(cfg Config) (*Translator, error) {
	c, err := compile(cfg)
	if err != nil {
		return nil, err
	}
	t := &Translator{idKey: rand.Uint64() | 1}
	for i := range t.ids {
		t.ids[i].Store(rand.Uint32())
	}
	c.reserve()
	t.snap.Store(c)
	return t, nil
}

// Update replaces the configuration. Packets in translation finish with the
// old one, all later ones see the new one, none waits. A configuration with
// an error changes nothing. Counters, identifications and the error rate
// limit go on.
func (t *Translator) Update(cfg Config) error {
	c, err := compile(cfg)
	if err != nil {
		return err
	}
	t.updating.Lock()
	defer t.updating.Unlock()
	c.reserve()
	t.snap.Store(c)
	return nil
}

// Config returns the configuration in use. Its slices must not be changed.
func (t *Translator) Config() Config { return t.snap.Load().cfg }

// Translate translates the packet in buf[off:off+n]: IPv4 to IPv6 or IPv6 to
// IPv4, by its version. It works in place and may write to the packet and to
// the Headroom octets in front of it, nowhere else; with less room in front,
// packets that need it are dropped with NoHeadroom. Octets behind the length
// the header states are link padding and ignored. The packet may be changed
// even if it is dropped. An empty packet, or an off and n outside buf, is
// Truncated.
func (t *Translator) Translate(s *Scratch, buf []byte, off, n int) Result {
	return t.offload(s, nil, buf, off, n)
}

// TranslateOffload is Translate for packets that pass a TUN device opened
// with IFF_VNET_HDR: h holds what the device said of the packet, and is
// changed to what the device is to be told of the result. If the Result holds
// several packets, h serves for all of them: it is then all zero. A nil h is a
// packet like any other.
//
// A super-packet, of which the device or kernel later makes segments of
// h.GSOSize octets each, is translated as a whole by changing its one header.
// Whether it fits the MTU, and whether DF is to be set, is decided by the
// size of its segments. If its segments must be fragmented or answered with
// an error, it is segmented first. Checksums that are left to the device
// (VirtioNeedsChecksum) stay so.
func (t *Translator) TranslateOffload(s *Scratch, h *VirtioHdr, buf []byte, off, n int) Result {
	return t.offload(s, h, buf, off, n)
}

func (t *Translator) offload(s *Scratch, h *VirtioHdr, buf []byte, off, n int) Result {
	var r outcome
	if s.owner != t {
		t.adopt(s)
	}
	s.used, s.more = 0, s.more[:0]
	c := t.snap.Load()
	switch {
	case off < 0 || n < 1 || off > len(buf) || n > len(buf)-off:
		r = drop(Truncated)
	case buf[off]>>4 == 6:
		ok := false
		if c.quick6 && (h == nil || h.Flags&VirtioNeedsChecksum == 0 && h.GSOType == 0) {
			if r, ok = t.quick6(c, s, buf, off, n); ok && h != nil {
				h.move(0, offload{})
			}
		}
		if !ok {
			r = t.from6(c, s, h, buf, off, n)
		}
	case buf[off]>>4 == 4:
		ok := false
		if c.quick4 && (h == nil || h.Flags&VirtioNeedsChecksum == 0 && h.GSOType == 0) {
			if r, ok = t.quick4(c, s, buf, off, n); ok && h != nil {
				h.move(0, offload{})
			}
		}
		if !ok {
			r = t.from4(c, s, h, buf, off, n)
		}
	default:
		r = drop(NotIP)
	}
	if !s.dry {
		s.count(&s.counters.reasons[r.reason])
	}
	switch {
	case r.verdict == Drop:
		return Result{Reason: r.reason}
	case r.begin >= 0:
		return Result{r.verdict, r.reason, r.begin, buf[r.begin:r.end:r.end], nil}
	}
	return Result{r.verdict, r.reason, -1, s.more[0], s.more[1:]}
}

// outcome is a Result that fits registers: the packet in the buffer that was
// handed in, or, if begin is negative, the packets in Scratch.more.
type outcome struct {
	verdict    Verdict
	reason     Reason
	begin, end int
}

func drop(r Reason) outcome { return outcome{reason: r} }

// made is the outcome for a packet in the Scratch.
func (s *Scratch) made(v Verdict, r Reason, b []byte) outcome {
	s.more = append(s.more, b)
	return outcome{v, r, -1, 0}
}

// adopt makes a Scratch ready for this translator: it gets a shard of the
// counters, its own as long as there are any, and no blocks of identifications
// that are another's.
func (t *Translator) adopt(s *Scratch) {
	s.owner, s.ids = t, [1 << idBits]idRange{}
	n := uint64(ownShards)
	if !s.dry { // which counts nothing
		n = t.scratches.Add(1) - 1
	}
	if s.shared = n >= ownShards; s.shared {
		n = ownShards + n%sharedShards
	}
	s.counters = &t.counters[n]
}

// idBlock is how many identifications a Scratch takes at a time, so that
// several goroutines seldom write to the same counter.
const idBlock = 32

// idRange is what a Scratch has left of a block.
type idRange struct{ next, left uint16 }

// nextID returns an IPv4 identification for the first of n packets.
func (t *Translator) nextID(s *Scratch, src, dst uint32, protocol uint8, n uint32) uint16 {
	h := (uint64(src)<<32 | uint64(dst)) ^ t.idKey
	h = (h ^ uint64(protocol)<<20) * 0x9fb21c651e98df25 >> (64 - idBits)
	r := &s.ids[h&(1<<idBits-1)]
	if uint32(r.left) < n {
		take := max(n, idBlock)
		r.next = uint16(t.ids[h&(1<<idBits-1)].Add(take) - take)
		r.left = uint16(take)
	}
	id := r.next
	r.next += uint16(n)
	r.left -= uint16(n)
	if id == 0 {
		return t.nextID(s, src, dst, protocol, n) // never 0: some take it for none
	}
	return id
}

// limiter is a token bucket for ICMP errors.
type limiter struct {
	mu     sync.Mutex
	tokens float64
	last   time.Time
}

func (l *limiter) allow(rate float64) bool {
	if rate < 0 {
		return true
	}
	if rate == 0 {
		rate = DefaultErrorRate
	}
	burst := max(rate, 10)
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last.IsZero() {
		l.tokens = burst
	} else if d := now.Sub(l.last); d > 0 {
		l.tokens = min(burst, l.tokens+d.Seconds()*rate)
	}
	l.last = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}
