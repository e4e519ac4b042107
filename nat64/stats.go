package nat64

import (
	"iter"
	"sync/atomic"
)

// Stats are the counters of a [Translator] since it was made. They survive
// [Translator.Update].
type Stats struct {
	reasons [numReasons]uint64
	// Replies counts ICMP errors and echo replies made by the translator.
	Replies uint64
	// Suppressed counts errors that were not sent because of the rate limit.
	Suppressed uint64
}

// Count returns how many packets (super-packets count once) met a reason.
func (s Stats) Count(r Reason) uint64 {
	if r >= numReasons {
		return 0
	}
	return s.reasons[r]
}

// All returns the counters in the order of the reasons, zeros included.
func (s Stats) All() iter.Seq2[Reason, uint64] {
	return func(yield func(Reason, uint64) bool) {
		for r, n := range s.reasons {
			if !yield(Reason(r), n) {
				return
			}
		}
	}
}

// Dropped returns the number of packets that were neither translated nor
// answered with an echo reply, whether or not an error was sent for them.
func (s Stats) Dropped() uint64 {
	var n uint64
	for r, c := range s.reasons {
		if !Reason(r).Success() {
			n += c
		}
	}
	return n
}

// The first Scratches that a translator sees get counters of their own, which
// nobody else writes: counting is then a plain addition (see counter.add). All
// further ones share those of the last shards, by locked additions.
const (
	ownShards    = 48
	sharedShards = 16
)

// shard is padded to whole pairs of cache lines.
type shard struct {
	reasons    [numReasons]counter
	replies    counter
	suppressed counter
	_          [128]byte
}

// counter is a number that only one goroutine changes, by add, or any number
// of goroutines by share, and that anybody may load at any time.
type counter struct {
	_ [0]atomic.Uint64 // aligns n on 32-bit machines
	n uint64
}

func (c *counter) share(n uint64) { atomic.AddUint64(&c.n, n) }
func (c *counter) load() uint64   { return atomic.LoadUint64(&c.n) }

// count adds one to a counter of this Scratch.
func (s *Scratch) count(c *counter) {
	if s.shared {
		c.share(1)
	} else {
		c.add(1)
	}
}

// Stats returns the counters. It may be called at any time; each counter is then
// right by itself, while packets in translation may be in one and not yet in
// another.
func (t *Translator) Stats() Stats {
	var s Stats
	for i := range t.counters {
		c := &t.counters[i]
		for r := range c.reasons {
			s.reasons[r] += c.reasons[r].load()
		}
		s.Replies += c.replies.load()
		s.Suppressed += c.suppressed.load()
	}
	return s
}

// Add adds n packets to a counter: for a fast path that translates on behalf
// of the translator and counts by itself. Unknown reasons are ignored.
func (t *Translator) Add(r Reason, n uint64) {
	if r < numReasons {
		t.counters[ownShards].reasons[r].share(n)
	}
}
