package main

import (
	"fmt"
	"net/netip"

	"signalbox.example/lpctrie"
)

type ipv4 struct{ l *lpctrie.Live[string] }

func newIPv4() ipv4 { return ipv4{lpctrie.NewLive[string](lpctrie.Config{})} }

func (f ipv4) apply(cs []change) error {
	return f.l.Update(func(t *lpctrie.Table[string]) error {
		for _, c := range cs {
			if c.del {
				if _, ok := t.Remove(c.prefix); !ok {
					return fmt.Errorf("%v: %w", c.prefix, lpctrie.ErrNotExist)
				}
			} else if err := t.Insert(c.prefix, c.value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f ipv4) lookup(a netip.Addr) (string, netip.Prefix, bool) { return f.l.LookupPrefix(a) }

func (f ipv4) count() int { return f.l.Len() }
