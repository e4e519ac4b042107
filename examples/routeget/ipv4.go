package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"

	"signalbox.example/lpctrie"
)

type ipv4 struct{ t *lpctrie.Table[uint64] }

func newIPv4() *ipv4 {
	t := lpctrie.New[uint64](lpctrie.Config{})
	t.SetSame(func(a, b uint64) bool { return a == b })
	return &ipv4{t}
}

var errIPv6Only = errors.New("only for family ipv6")

func (f *ipv4) setMode(bool) error { return nil }

func (f *ipv4) route(r route) (lpctrie.Route, error) {
	if r.from.IsValid() {
		return lpctrie.Route{}, fmt.Errorf("from is %w", errIPv6Only)
	}
	return lpctrie.Route{Prefix: r.prefix, TOS: r.tos, Priority: r.metric}, nil
}

func (f *ipv4) add(r route) error {
	rt, err := f.route(r)
	if err != nil {
		return err
	}
	return f.t.Add(rt, r.v, lpctrie.ModeAdd)
}

func (f *ipv4) del(r route) error {
	rt, err := f.route(r)
	if err != nil {
		return err
	}
	if !r.prefix.Addr().Is4() {
		return lpctrie.ErrPrefix
	}
	if _, ok := f.t.Delete(rt); !ok {
		return lpctrie.ErrNotExist
	}
	return nil
}

func (f *ipv4) load(r io.Reader) error {
	var added []netip.Prefix
	var err error
	for p, e := range lpctrie.ReadPrefixes(r) {
		if err = e; err == nil {
			err = f.t.Add(lpctrie.Route{Prefix: p}, uint64(len(added)+1), lpctrie.ModeAdd)
			if err != nil {
				err = fmt.Errorf("prefix %d, %v: %w", len(added)+1, p, err)
			}
		}
		if err != nil {
			break
		}
		added = append(added, p)
	}
	if err != nil {
		for i, p := range added {
			f.t.DeleteFunc(lpctrie.Route{Prefix: p}, func(_ lpctrie.Route, v uint64) bool { return v == uint64(i+1) })
		}
	}
	return err
}

func (f *ipv4) lookup(dst, _ netip.Addr) (netip.Prefix, uint64, bool) {
	v, p, ok := f.t.Lookup(dst)
	return p, v, ok
}

func (f *ipv4) get(p, _ netip.Prefix) (uint64, bool) { return f.t.Get(p) }

func (f *ipv4) walk(yield func(route)) {
	for r, v := range f.t.All() {
		yield(route{prefix: r.Prefix, metric: r.Priority, hasMetric: r.Priority != 0, tos: r.TOS, v: v})
	}
}

func (f *ipv4) stat() string { return f.t.Stats().Triestat() }

func (f *ipv4) trace(dst, _ netip.Addr) string {
	if !dst.Is4() {
		return "no route"
	}
	return f.t.Trace(dst).String()
}

func (f *ipv4) at(float64) error                   { return errIPv6Only }
func (f *ipv4) packetTooBig(netip.Addr, int) error { return errIPv6Only }
func (f *ipv4) mtu(netip.Addr) (string, error)     { return "", errIPv6Only }
