package main

import (
	"fmt"
	"net/netip"
	"sync"

	"signalbox.example/radix6"
)

type ipv6 struct {
	mu sync.RWMutex
	t  *radix6.Tree[string]
}

func newIPv6() *ipv6 { return &ipv6{t: radix6.New[string](radix6.SourceOff)} }

func (f *ipv6) apply(cs []change) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range cs {
		if c.del {
			if _, ok := f.t.Remove(c.prefix); !ok {
				return fmt.Errorf("%v: %w", c.prefix, radix6.ErrNotExist)
			}
		} else if err := f.t.Insert(c.prefix, c.value); err != nil {
			return err
		}
	}
	return nil
}

func (f *ipv6) lookup(a netip.Addr) (string, netip.Prefix, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.t.Lookup(a)
}

func (f *ipv6) count() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.t.Len()
}
