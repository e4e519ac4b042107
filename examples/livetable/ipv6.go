package main

import (
	"fmt"
	"net/netip"

	"signalbox.example/radix6"
)

type ipv6 struct{ l *radix6.Live[string] }

func newIPv6() ipv6 { return ipv6{radix6.NewLive[string]()} }

func (f ipv6) apply(cs []change) error {
	return f.l.Update(func(t *radix6.Tree[string]) error {
		for _, c := range cs {
			if c.del {
				if _, ok := t.Remove(c.prefix); !ok {
					return fmt.Errorf("%v: %w", c.prefix, radix6.ErrNotExist)
				}
			} else if err := t.Insert(c.prefix, c.value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f ipv6) lookup(a netip.Addr) (string, netip.Prefix, bool) { return f.l.LookupPrefix(a) }

func (f ipv6) count() int { return f.l.Len() }
