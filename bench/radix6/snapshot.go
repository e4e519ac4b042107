package radix6

import (
	"net/netip"

	"signalbox.example/radix6"
)

// A Contest is a way of looking up lists of addresses: keys are the same
// addresses as words.
type Contest struct {
	Name string
	// Run looks up addresses lo to hi and returns a sum of the values.
	Run func(as []netip.Addr, keys []radix6.Key) uint32
}

// Lookups returns the ways to look up in a snapshot: one by one from
// netip.Addr and from words, each after the one before is known, and in
// batches of n.
func Lookups(name string, s *radix6.Snapshot[uint32], n int) []Contest {
	codes := make([]uint32, n)
	vs, oks := make([]uint32, n), make([]bool, n)
	return []Contest{
		{name + " Addr", func(as []netip.Addr, _ []radix6.Key) (sum uint32) {
			for _, a := range as {
				v, _ := s.Lookup(a)
				sum += v
			}
			return sum
		}},
		{name + " key", func(_ []netip.Addr, keys []radix6.Key) (sum uint32) {
			for _, k := range keys {
				v, _ := s.LookupKey(k.Hi, k.Lo)
				sum += v
			}
			return sum
		}},
		{name + " Addr chained", func(as []netip.Addr, _ []radix6.Key) (sum uint32) {
			for i := 0; i < len(as); {
				v, _ := s.Lookup(as[i])
				sum += v
				i = next(i, v)
			}
			return sum
		}},
		{name + " batch of keys", func(_ []netip.Addr, keys []radix6.Key) (sum uint32) {
			for len(keys) > 0 {
				m := min(n, len(keys))
				s.LookupCodes(keys[:m], codes)
				for _, c := range codes[:m] {
					v, _ := s.Value(c)
					sum += v
				}
				keys = keys[m:]
			}
			return sum
		}},
		{name + " batch of Addr", func(as []netip.Addr, _ []radix6.Key) (sum uint32) {
			for len(as) > 0 {
				m := min(n, len(as))
				s.LookupBatch(as[:m], vs, oks)
				for _, v := range vs[:m] {
					sum += v
				}
				as = as[m:]
			}
			return sum
		}},
	}
}
