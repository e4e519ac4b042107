package lpctrie

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzOperations plays bytes as operations, four or more each, against the
// slow table.
func FuzzOperations(f *testing.F) {
	f.Add([]byte("\x00\x0a\x08\x00\x00\x01\x0a\x10\x01\x00\x02\x0a\x08\x00\x00\x03\x0a\x10\x01\x01"))
	f.Add(bytes.Repeat([]byte("\x00\x01\x20\x80\x07\x01\x80\x00\x11\x04"), 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		tab, slow := New[uint32](Config{}), &slowTable{}
		for steps := 0; len(b) >= 5 && steps < 200; steps++ {
			// verb and attributes, first octet, length, last octet, value
			key := uint32(b[1])<<24 | uint32(b[3])<<uint(b[2]>>6*8)
			slen := b[2] & 63 % 33
			rt := Route{Prefix: prefixOf(key&^suffixMask(slen), slen), TOS: b[0] >> 3 & 1, Priority: uint32(b[0] >> 4 & 3), Type: RouteType(b[0] >> 6)}
			v := uint32(b[4] & 3)
			if b[0]&7 < 3 {
				gv, gok := tab.Delete(rt)
				wv, wok := slow.del(rt)
				if gv != wv || gok != wok {
					t.Fatalf("delete %+v: %d %v, want %d %v", rt, gv, gok, wv, wok)
				}
			} else {
				mode := Mode(b[4] >> 2 & 15)
				if got, want := tab.Add(rt, v, mode), slow.add(rt, v, mode); got != want {
					t.Fatalf("add %+v %d: %v, want %v", rt, mode, got, want)
				}
			}
			for _, k := range []uint32{key, key ^ 1, key + suffixMask(slen) + 1, ^key} {
				v, p, ok := tab.Lookup(AddrOf(k))
				want, wok := slow.lookup(Flow{Dst: AddrOf(k)}, nil)
				if ok != wok || ok && (v != want.v || p != want.Prefix) {
					t.Fatalf("lookup %v: %d %v %v, want %+v %v", AddrOf(k), v, p, ok, want, wok)
				}
			}
			b = b[5:]
		}
		verify(t, tab)
		compareTables(t, tab, slow)
	})
}

// FuzzText gives text to every reader: what is read and written again reads
// the same.
func FuzzText(f *testing.F) {
	f.Add(script)
	f.Add(fibTrie)
	f.Add(TriestatHead + triestat)
	f.Add("10.0.0.0/8\n# x\n1.2.3.4\n")
	f.Fuzz(func(t *testing.T, s string) {
		for p, err := range ReadPrefixes(strings.NewReader(s)) {
			if err == nil && p != p.Masked() {
				t.Fatalf("prefix %v has host bits", p)
			}
		}
		for c, err := range ReadBatch(strings.NewReader(s)) {
			if err != nil || len(c.Other) > 0 || strings.ContainsFunc(c.Dev, func(r rune) bool { return r <= ' ' }) {
				continue
			}
			for again, err := range ReadBatch(strings.NewReader(c.String())) {
				if err != nil || again.Route != c.Route && !c.Delete || again.Mode != c.Mode || again.Via != c.Via || again.Dev != c.Dev {
					t.Fatalf("%+v was written as %q and read as %+v, %v", c, c, again, err)
				}
			}
		}
		for n, err := range ParseFibTrie(strings.NewReader(s)) {
			if err != nil {
				break
			}
			if n.Kind == AliasLine {
				continue
			}
			for again, err := range ParseFibTrie(strings.NewReader(n.Text())) {
				if n.Table = ""; err != nil || again != n {
					t.Fatalf("%+v was written as %q and read as %+v, %v", n, n.Text(), again, err)
				}
			}
		}
		ParseTriestat(strings.NewReader(s))
	})
}

// FuzzOpen gives altered snapshots with a right checksum: they are refused or
// do no harm.
func FuzzOpen(f *testing.F) {
	tab := New[string](Config{})
	for i, s := range []string{"0.0.0.0/0", "10.0.0.0/8", "10.1.2.0/25", "10.1.2.3/32"} {
		tab.Insert(pfx(s), strings.Repeat("x", i))
	}
	for _, o := range []CompileOptions{{}, {Prefixes: true}} {
		var b bytes.Buffer
		if err := tab.CompileWith(o).Encode(&b, nil); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) { survive(t, seal(b)) })
}
