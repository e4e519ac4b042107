package radix6

// Cache holds the exceptions of a tree's routes.
type Cache[V any] struct{}

func (c *Cache[V]) drop(uint32)            {}
func (c *Cache[V]) move(map[uint32]uint32) {}
func (c *Cache[V]) clear() {}
