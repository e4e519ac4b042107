//go:build amd64 && !race && !purego

package nat64

// add adds to a counter that only the caller changes. It is a plain addition:
// a store by way of sync/atomic is an XCHG, which locks, on this processor,
// and would be most of the cost of counting. Nothing depends on the order in
// which others see it, and what they see with load is always a number that was
// there: the Go memory model promises it of a single word ("Implementation
// Restrictions for Programs Containing Data Races"), which the Go compiler
// keeps as one aligned 64-bit instruction. Readers that are synchronised with
// the goroutine that counted see all of it. The race detector, which would
// object to any reader meanwhile, gets the other file.
func (c *counter) add(n uint64) { c.n += n }
