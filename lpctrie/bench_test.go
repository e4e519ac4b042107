package lpctrie

import (
	"testing"

	"signalbox.example/internal/routegen"
)

func benchTable(b *testing.B) (*Table[uint32], []uint32) {
	tab := New[uint32](Config{})
	table := routegen.IPv4(100000, 1)
	var keys []uint32
	for i, p := range table {
		if err := tab.Insert(p, uint32(i)); err != nil {
			b.Fatal(err)
		}
		if k, _ := KeyOf(p.Addr()); len(keys) < 1024 {
			keys = append(keys, k|uint32(i)*0x9e3779b1>>p.Bits())
		}
	}
	return tab, keys
}

var sink uint32

func BenchmarkTable(b *testing.B) {
	tab, keys := benchTable(b)
	for i := 0; b.Loop(); i++ {
		v, _ := tab.LookupKey(keys[i&1023])
		sink += v
	}
}

func BenchmarkSnapshot(b *testing.B) {
	tab, keys := benchTable(b)
	for _, l := range []struct {
		name   string
		layout Layout
	}{{"compact", Compact}, {"fast", Fast}} {
		s := tab.CompileWith(CompileOptions{Layout: l.layout})
		b.Run("layout="+l.name+"/op=lookup", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				v, _ := s.LookupKey(keys[i&1023])
				sink += v
			}
		})
		b.Run("layout="+l.name+"/op=batch", func(b *testing.B) {
			codes := make([]uint32, 1024)
			for b.Loop() {
				s.LookupCodes(keys, codes)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/lookup")
		})
	}
}

func BenchmarkInsert(b *testing.B) {
	table := routegen.IPv4(100000, 1)
	for b.Loop() {
		tab := New[uint32](Config{})
		for i, p := range table {
			tab.Insert(p, uint32(i))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(table)), "ns/route")
}

// BenchmarkInsertMillion is the second that a million insertions may take.
func BenchmarkInsertMillion(b *testing.B) {
	table := routegen.IPv4(1000000, 1)
	for b.Loop() {
		tab := New[uint32](Config{})
		for i, p := range table {
			tab.Insert(p, uint32(i))
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	tab, _ := benchTable(b)
	for b.Loop() {
		sink += uint32(tab.Compile().Len())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100000, "ns/route")
}

func BenchmarkLive(b *testing.B) {
	tab, keys := benchTable(b)
	l := LiveOf(tab)
	b.Run("op=lookup", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			v, _ := l.LookupKey(keys[i&1023])
			sink += v
		}
	})
	table := routegen.IPv4(100000, 1)
	b.Run("op=update", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			p := table[i*7919%len(table)]
			v, _ := l.Remove(p)
			l.Insert(p, v)
		}
	})
}
