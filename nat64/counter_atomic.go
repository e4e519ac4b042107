//go:build !amd64 || race || purego

package nat64

import "sync/atomic"

// add adds to a counter that only the caller changes.
func (c *counter) add(n uint64) { atomic.StoreUint64(&c.n, c.n+n) }
