package openpgpdns

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// benchRing is a ring of n certificates of 414 octets.
func benchRing(b *testing.B, n int) []byte {
	b.Helper()
	ring, err := io.ReadAll(&patched{alice: data(b, "keys/alice.pgp"), n: n, again: n})
	if err != nil {
		b.Fatal(err)
	}
	return ring
}

// BenchmarkFilter reads a ring of 2,000 certificates out of memory and filters
// each for one address: framing, fingerprint, signatures, packets copied.
func BenchmarkFilter(b *testing.B) {
	ring := benchRing(b, 2000)
	for name, f := range map[string]Filter{"address": {}, "minimal": Minimal()} {
		f.Now = oracleTime
		b.Run("filter="+name, func(b *testing.B) {
			b.SetBytes(int64(len(ring)))
			b.ReportAllocs()
			src := bytes.NewReader(ring)
			r := NewReader(src)
			out := make([]byte, 0, 4096)
			addresses := make([]Address, 0, 2000)
			for i := range 2000 {
				addresses = append(addresses, Address{fmt.Sprintf("u%06d", i), "example.org"})
			}
			for b.Loop() {
				src.Reset(ring)
				r.Reset(src)
				for i := 0; ; i++ {
					c, err := r.Next()
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					if out, err = f.For(addresses[i]).Append(out[:0], c); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/cert")
		})
	}
}

func BenchmarkReader(b *testing.B) {
	ring := benchRing(b, 2000)
	b.SetBytes(int64(len(ring)))
	b.ReportAllocs()
	src := bytes.NewReader(ring)
	r := NewReader(src)
	for b.Loop() {
		src.Reset(ring)
		r.Reset(src)
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkHash(b *testing.B) {
	local := []byte("Joe.Doe")
	out := make([]byte, 0, 64)
	b.Run("name=WKD", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out = AppendWKDHash(out[:0], local)
		}
	})
	b.Run("name=DANE", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out = AppendDANELabel(out[:0], local)
		}
	})
}

func BenchmarkText(b *testing.B) {
	for _, n := range []int{400, 3000, 25000, 60000} {
		r := Record{Name: "x._openpgpkey.example.org.", Type: TypeOPENPGPKEY, Data: make([]byte, n)}
		for f := Portable; f <= GPG; f++ {
			if f == Mnemonic {
				continue
			}
			text := r.AppendText(nil, f, 0)
			b.Run(fmt.Sprintf("op=append/form=%v/size=%d", f, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					text = r.AppendText(text[:0], f, 0)
				}
			})
			b.Run(fmt.Sprintf("op=parse/form=%v/size=%d", f, n), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					if _, err := ParseRecord(string(text)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkVerify(b *testing.B) {
	c := key(b, "alice")
	for b.Loop() {
		if errs := c.Verify(); len(errs) > 0 {
			b.Fatal(errs[0])
		}
	}
}

// BenchmarkWKD writes 10,000 files: anew, unchanged, with one in a hundred
// changed, and in a bare loop that writes the same files.
func BenchmarkWKD(b *testing.B) {
	const n = 10_000
	ring := benchRing(b, n)
	ctx := context.Background()
	run := func(b *testing.B, root string, state bool) Report {
		w := WKD{Root: root}
		if state {
			w.State = root + ".state"
		}
		r, err := w.Update(ctx, "example.org", NewReader(bytes.NewReader(ring)).All())
		if err != nil || r.Addresses != n {
			b.Fatal(r, err)
		}
		return r
	}
	dirs := func(b *testing.B) func() string {
		base := b.TempDir()
		i := 0
		return func() string {
			os.RemoveAll(filepath.Join(base, fmt.Sprint(i)))
			i++
			return filepath.Join(base, fmt.Sprint(i))
		}
	}
	for _, state := range []bool{false, true} {
		b.Run(fmt.Sprintf("run=first/state=%v", state), func(b *testing.B) {
			next := dirs(b)
			for b.Loop() {
				b.StopTimer()
				dir := next()
				os.Remove(dir + ".state")
				b.StartTimer()
				run(b, dir, state)
			}
		})
		b.Run(fmt.Sprintf("run=unchanged/state=%v", state), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "tree")
			run(b, dir, state)
			for b.Loop() {
				if r := run(b, dir, state); r.Written > 0 {
					b.Fatal(r)
				}
			}
		})
		b.Run(fmt.Sprintf("run=percent/state=%v", state), func(b *testing.B) {
			dir := filepath.Join(b.TempDir(), "tree")
			run(b, dir, state)
			files, _ := filepath.Glob(filepath.Join(dir, ".well-known/openpgpkey/example.org/hu/*"))
			for b.Loop() {
				b.StopTimer()
				for i := 0; i < len(files); i += 100 {
					if err := os.WriteFile(files[i], []byte("old"), 0o644); err != nil {
						b.Fatal(err)
					}
				}
				b.StartTimer()
				if r := run(b, dir, state); r.Written != n/100 {
					b.Fatal(r)
				}
			}
		})
	}
	for _, how := range []string{"create", "rename"} {
		b.Run("run=bare/how="+how, func(b *testing.B) {
			c, err := Collect(ctx, "example.org", NewReader(bytes.NewReader(ring)).All(), Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			var keys [][]byte
			var hashes []string
			for e := range c.Entries() {
				keys, hashes = append(keys, e.Keys), append(hashes, e.Address.WKDHash())
			}
			next := dirs(b)
			for b.Loop() {
				b.StopTimer()
				dir := next()
				if err := os.MkdirAll(dir, 0o755); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				bareLoop(b, dir, hashes, keys, how == "rename")
			}
		})
	}
}

// bareLoop writes the files from as many goroutines as WKD has workers.
func bareLoop(b *testing.B, dir string, names []string, content [][]byte, rename bool) {
	o := Options{}
	done := make(chan error)
	for w := range o.workers() {
		go func() {
			var err error
			for i := w; i < len(names) && err == nil; i += o.workers() {
				path := filepath.Join(dir, names[i])
				if !rename {
					err = os.WriteFile(path, content[i], 0o644)
					continue
				}
				if err = os.WriteFile(path+".tmp", content[i], 0o644); err == nil {
					err = os.Rename(path+".tmp", path)
				}
			}
			done <- err
		}()
	}
	for range o.workers() {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCollect(b *testing.B) {
	ring := benchRing(b, 10_000)
	b.SetBytes(int64(len(ring)))
	b.ReportAllocs()
	for b.Loop() {
		c, err := Collect(context.Background(), "example.org", NewReader(bytes.NewReader(ring)).All(), Options{})
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}

func BenchmarkExportDANE(b *testing.B) {
	ring := benchRing(b, 2000)
	f := Minimal()
	f.Now = oracleTime
	var text []byte
	b.ReportAllocs()
	for b.Loop() {
		text = text[:0]
		for c, err := range NewReader(bytes.NewReader(ring)).All() {
			if err != nil {
				b.Fatal(err)
			}
			if text, err = AppendExportDANE(text, f, c); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/2000, "ns/cert")
}
