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

// shards spread the counters so that goroutines on several processors do not
// write to the same cache lines. A power of two.
const shards = 16

// shard is padded to whole pairs of cache lines.
type shard struct {
	reasons    [numReasons]atomic.Uint64
	replies    atomic.Uint64
	suppressed atomic.Uint64
	_          [128]byte
}

// Stats returns the counters. It may be called at any time.
func (t *Translator) Stats() Stats {
	var s Stats
	for i := range t.counters {
		c := &t.counters[i]
		for r := range c.reasons {
			s.reasons[r] += c.reasons[r].Load()
		}
		s.Replies += c.replies.Load()
		s.Suppressed += c.suppressed.Load()
	}
	return s
}

// Add adds n packets to a counter: for a fast path that translates on behalf
// of the translator and counts by itself. Unknown reasons are ignored.
func (t *Translator) Add(r Reason, n uint64) {
	if r < numReasons {
		t.counters[0].reasons[r].Add(n)
	}
}
