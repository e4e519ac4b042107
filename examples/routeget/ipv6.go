package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"signalbox.example/radix6"
)

// ipv6 keeps the mode until the tree is remade, since a tree has one for life.
type ipv6 struct {
	t     *radix6.Tree[uint64]
	cache *radix6.Cache[uint64]
	clock time.Time
}

func newIPv6() *ipv6 {
	f := &ipv6{clock: time.Unix(0, 0)}
	f.use(radix6.New[uint64](radix6.SourceLinux))
	return f
}

// use takes a tree and gives it a cache of exceptions that obeys the script's
// clock and always takes the shortest chains, so that scripts repeat.
func (f *ipv6) use(t *radix6.Tree[uint64]) {
	if f.cache != nil {
		f.cache.Close()
	}
	cfg := radix6.Linux6()
	cfg.Now = func() time.Time { return f.clock }
	cfg.Rand = func(int) int { return 0 }
	f.t, f.cache = t, radix6.NewCache(t, cfg, nil)
}

func (f *ipv6) setMode(draft bool) error {
	mode := radix6.SourceLinux
	if draft {
		mode = radix6.SourceDraft
	}
	if mode == f.t.Mode() {
		return nil
	}
	if f.cache.Len() > 0 {
		return errors.New("the mode cannot change while there are exceptions")
	}
	t := radix6.New[uint64](mode)
	for r, v := range f.t.All() {
		if err := t.Add(r, v, radix6.ModeAppend); err != nil {
			return err
		}
	}
	f.use(t)
	return nil
}

func (f *ipv6) check(r route) error {
	if r.tos != 0 {
		return errors.New("tos is only for family ipv4")
	}
	return nil
}

func (f *ipv6) add(r route) error {
	if err := f.check(r); err != nil {
		return err
	}
	if r.metric == 0 { // as Linux takes it, given or not
		r.metric = radix6.DefaultMetric
	}
	return f.t.Add(radix6.Route{Prefix: r.prefix, From: r.from, Metric: r.metric}, r.v, radix6.ModeAdd)
}

func (f *ipv6) del(r route) error {
	if err := f.check(r); err != nil {
		return err
	}
	if r.prefix.Addr().Is4() {
		return radix6.ErrFamily
	}
	rt := radix6.Route{Prefix: r.prefix, From: r.from, Metric: r.metric}
	if r.metric == 0 { // any, for Linux
		var ok bool
		if rt, _, ok = f.t.First(r.prefix, r.from); !ok {
			return radix6.ErrNotExist
		}
	}
	if _, ok := f.t.Delete(rt); !ok {
		return radix6.ErrNotExist
	}
	return nil
}

func (f *ipv6) load(r io.Reader) error {
	var added []radix6.Route
	var err error
	for p, e := range radix6.ReadPrefixes(r) {
		rt := radix6.Route{Prefix: p, Metric: radix6.DefaultMetric}
		if err = e; err == nil {
			err = f.t.Add(rt, uint64(len(added)+1), radix6.ModeAdd)
			if err != nil {
				err = fmt.Errorf("prefix %d: %w", len(added)+1, err)
			}
		}
		if err != nil {
			break
		}
		added = append(added, rt)
	}
	if err != nil {
		for _, rt := range added {
			f.t.Delete(rt)
		}
	}
	return err
}

func (f *ipv6) lookup(dst, src netip.Addr) (netip.Prefix, uint64, bool) {
	v, r, ok := f.t.LookupFrom(dst, src)
	return r.Prefix, v, ok
}

func (f *ipv6) get(p, from netip.Prefix) (uint64, bool) {
	_, v, ok := f.t.First(p, from)
	return v, ok
}

func (f *ipv6) walk(yield func(route)) {
	for r, v := range f.t.All() {
		yield(route{prefix: r.Prefix, from: r.From, metric: r.Metric, hasMetric: r.Metric != radix6.DefaultMetric, v: v})
	}
}

func (f *ipv6) stat() string { return f.t.Stats().String() }

func (f *ipv6) trace(dst, src netip.Addr) string {
	if dst.Is4() {
		return "no route"
	}
	return f.t.TraceFrom(dst, src).String()
}

func (f *ipv6) at(seconds float64) error {
	t := time.Unix(0, 0).Add(time.Duration(seconds * float64(time.Second)))
	if t.Before(f.clock) {
		return errors.New("time does not run backwards")
	}
	f.clock = t
	return nil
}

func (f *ipv6) packetTooBig(dst netip.Addr, mtu int) error {
	if dst.Is4() {
		return radix6.ErrFamily
	}
	_, err := f.cache.PacketTooBig(dst, netip.Addr{}, mtu)
	return err
}

func (f *ipv6) mtu(dst netip.Addr) (string, error) {
	mtu, expires, ok := f.cache.MTU(dst, netip.Addr{})
	if !ok {
		return "miss", nil
	}
	if expires.IsZero() {
		return fmt.Sprintf("mtu=%d", mtu), nil
	}
	return fmt.Sprintf("mtu=%d expires=%d", mtu, int(expires.Sub(f.clock)/time.Second)), nil
}
