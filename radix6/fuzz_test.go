package radix6

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// FuzzOperations runs a program of changes on a tree, on the slow table and on
// a cache, and compares. Each step is 8 bytes.
func FuzzOperations(f *testing.F) {
	f.Add(uint8(1), []byte("\x00\x20\x01\x0d\x00\x00\x00\x01\x01\x30\x01\x0d\x00\x10\x02\x02\x80\x20\x01\x0d\x00\x00\x00\x01"))
	f.Add(uint8(0), bytes.Repeat([]byte{0, 128, 0xff, 3, 9, 0, 0, 2}, 9))
	f.Add(uint8(2), bytes.Repeat([]byte{0x81, 64, 1, 2, 3, 4, 5, 6}, 9))
	f.Fuzz(func(t *testing.T, mode uint8, program []byte) {
		m := SourceMode(mode % 3)
		tr, s := New[int](m), &slow{mode: m}
		ck := newClock()
		c := NewCache(tr, ck.config(CacheConfig{GCThresh: 3, GCElasticity: 2}), nil)
		if len(program) > 8*60 {
			program = program[:8*60]
		}
		for step := 0; len(program) >= 8; step++ {
			p := program[:8]
			program = program[8:]
			k := key{uint64(p[2])<<56 | uint64(p[3])<<60 | uint64(p[2])<<8, uint64(p[3])<<62 | uint64(p[2]&3)}
			n := int(p[1]) % 129
			r := Route{Prefix: k.mask(n).prefix(n), Metric: uint32(p[6] & 3)}
			if p[7]&1 != 0 && m != SourceOff {
				n = int(p[5]) % 129
				r.From = key{uint64(p[4]) << 56, uint64(p[5])}.mask(n).prefix(n)
			}
			switch {
			case p[0]&0x80 != 0:
				v, ok := tr.Delete(r)
				wv, wok := s.delete(r)
				if v != wv || ok != wok {
					t.Fatalf("delete %v: %d %v, want %d %v", r, v, ok, wv, wok)
				}
			case p[0]&0x40 != 0:
				tr.Pack()
			case p[0]&0x20 != 0:
				ck.step(time.Duration(p[1]) * time.Second)
				c.PacketTooBig(k.addr(), key{0, uint64(p[4])}.addr(), 1280+int(p[5]))
				if got, _, ok := c.MTU(k.addr(), key{}.addr()); ok && (got < 1280 || got > 1500) {
					t.Fatalf("mtu %d", got)
				}
			default:
				mode := Mode(p[0] & 15)
				err, want := tr.Add(r, step, mode), s.add(r, step, mode)
				if (err == nil) != (want == nil) {
					t.Fatalf("add %v mode %d: %v, want %v", r, mode, err, want)
				}
			}
			n = 0
			for _, tb := range c.tables {
				for _, b := range tb.buckets {
					n += len(b)
				}
			}
			if n != c.size {
				t.Fatalf("the cache counts %d of %d exceptions", c.size, n)
			}
		}
		check(t, tr, s, rand.New(rand.NewPCG(uint64(mode), uint64(len(s.routes)))), 60)
	})
}

// FuzzText feeds every reader of text. What a reader takes, the writer writes,
// and the reader takes it again.
func FuzzText(f *testing.F) {
	f.Add("2001:db8::/32\n# comment\n\n::1\n")
	f.Add("route add table 100 blackhole 2001:db8::/32 from 2001:db9::/32 via inet6 fe80::1 dev eth0 metric 5 proto 3\n-6 r del default")
	f.Add("20010db8000000000000000000000000 20 20010db9000000000000000000000000 20 00000000000000000000000000000000 0000000b 00000003 00000000 00200200       lo\n")
	f.Add("2001:db8::1/32\n")
	f.Add("route add 10.0.0.0/8 dev lo")
	f.Fuzz(func(t *testing.T, text string) {
		tr := New[int](SourceOff)
		for p, err := range ReadPrefixes(strings.NewReader(text)) {
			if err == nil {
				if err := tr.Insert(p, 1); err != nil {
					t.Fatalf("%v: %v", p, err)
				}
			}
		}
		var b strings.Builder
		if err := tr.WritePrefixes(&b); err != nil {
			t.Fatal(err)
		}
		n := 0
		for p, err := range ReadPrefixes(strings.NewReader(b.String())) {
			if _, ok := tr.Get(p); err != nil || !ok {
				t.Fatalf("%v %v", p, err)
			}
			n++
		}
		if n != tr.Len() {
			t.Fatalf("%d of %d prefixes", n, tr.Len())
		}
		for c, err := range ReadBatch(strings.NewReader(text)) {
			if err != nil {
				break
			}
			again, err := one(ReadBatch(strings.NewReader(c.String())))
			if err != nil || again.Route != c.Route || again.Delete != c.Delete || again.Type != c.Type || again.Via != c.Via || again.Table != c.Table && c.Table != 0 {
				t.Fatalf("%q: %+v, again %+v %v", c, c, again, err)
			}
		}
		for p, err := range ReadProcRoute(strings.NewReader(text)) {
			if err != nil {
				break
			}
			again, err := one(ReadProcRoute(strings.NewReader(p.String())))
			if err != nil || again != p {
				t.Fatalf("%+v, again %+v %v", p, again, err)
			}
		}
	})
}

// one returns the first item of a reader.
func one[T any](seq func(func(T, error) bool)) (v T, err error) {
	seq(func(x T, e error) bool {
		v, err = x, e
		return false
	})
	return v, err
}
