package openpgpdns

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"signalbox.example/internal/need"
	"signalbox.example/openpgpdns"
)

// cost of one run of a program or function.
type cost struct {
	wall, cpu time.Duration
	rss       int64 // KiB, of programs
}

func (c cost) String() string {
	s := fmt.Sprintf("wall %7.1f ms, cpu %7.1f ms", c.wall.Seconds()*1e3, c.cpu.Seconds()*1e3)
	if c.rss > 0 {
		s += fmt.Sprintf(", %d MiB", c.rss>>10)
	}
	return s
}

func program(t *testing.T, name string, args ...string) cost {
	t.Helper()
	cmd := exec.Command(name, args...)
	var out bytes.Buffer
	cmd.Stderr = &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The peak of the resident memory, as the program itself has it: the one in
	// its resource usage begins with that of this process.
	peak := make(chan int64)
	stop := make(chan struct{})
	go func() {
		var kib int64
		for {
			if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil && bytes.Contains(b, []byte("Name:\t"+filepath.Base(name)[:min(len(filepath.Base(name)), 15)]+"\n")) {
				if _, rest, ok := bytes.Cut(b, []byte("VmHWM:")); ok {
					fmt.Sscan(string(rest), &kib)
				}
			}
			select {
			case <-stop:
				peak <- kib
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	err := cmd.Wait()
	wall := time.Since(start)
	close(stop)
	kib := <-peak
	if err != nil {
		t.Fatalf("%s: %v\n%.500s", name, err, out.Bytes())
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{wall, time.Duration(u.Utime.Nano() + u.Stime.Nano()), kib}
}

func function(f func()) cost {
	used := func() time.Duration {
		var u syscall.Rusage
		syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	start, before := time.Now(), used()
	f()
	return cost{time.Since(start), used() - before, 0}
}

// median by wall time and by CPU time, separately.
func median(cs []cost) cost {
	var m cost
	by := func(f func(cost) time.Duration) time.Duration {
		s := slices.SortedFunc(slices.Values(cs), func(a, b cost) int { return int(f(a) - f(b)) })
		return f(s[len(s)/2])
	}
	m.wall, m.cpu = by(func(c cost) time.Duration { return c.wall }), by(func(c cost) time.Duration { return c.cpu })
	for _, c := range cs {
		m.rss = max(m.rss, c.rss)
	}
	return m
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func keypublish(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "keypublish")
	cmd := exec.Command("go", "build", "-o", path, "./examples/keypublish")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestComparePrograms prints what the same jobs cost in other programs. It
// asserts that the results are right, and nothing about time. Set TMPDIR to a
// memory file system, and SIGNALBOX_RUN=peers.
func TestComparePrograms(t *testing.T) {
	need.Asked(t, "peers")
	need.Commands(t, "peers", "sq", "gpg", "gpgconf", "go")
	dir, err := os.MkdirTemp("", "opd")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	publish := keypublish(t, dir)
	const n = 10_000
	ring := makeRing(t, n)
	file := filepath.Join(dir, "ring.pgp")
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(name, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(file, ring)
	t.Logf("%d certificates, %d octets", n, len(ring))

	// Trees, by programs. The contents are compared once: every file of ours is
	// there in sq's tree, and holds no more octets.
	ours, theirs := filepath.Join(dir, "ours"), filepath.Join(dir, "sq")
	const hu = ".well-known/openpgpkey/example.org/hu"
	var sq, first, again, bare []cost
	for range 3 {
		os.RemoveAll(ours)
		first = append(first, program(t, publish, "-ring", file, "-domain", "example.org", "-wkd", ours))
		again = append(again, program(t, publish, "-ring", file, "-domain", "example.org", "-wkd", ours))
		os.RemoveAll(theirs)
		sq = append(sq, program(t, "sq", "wkd", "generate", "-s", theirs, "example.org", file))
	}
	compareTrees(t, filepath.Join(ours, hu), filepath.Join(theirs, hu), n)
	s, f, a := median(sq), median(first), median(again)
	t.Logf("WKD tree, sq wkd generate:     %v", s)
	t.Logf("WKD tree, keypublish:          %v: sq takes %.0f times the wall, %.0f times the CPU", f, ratio(s.wall, f.wall), ratio(s.cpu, f.cpu))
	t.Logf("WKD tree, keypublish again:    %v", a)

	// Trees, in this process, one after the other in each round.
	first, again, bare = nil, nil, nil
	update := func() {
		w := openpgpdns.WKD{Root: ours}
		if r, err := w.Update(t.Context(), "example.org", openpgpdns.NewReader(bytes.NewReader(ring)).All()); err != nil || r.Addresses != n {
			t.Fatal(r, err)
		}
	}
	for range 15 {
		os.RemoveAll(ours)
		first = append(first, function(update))
		again = append(again, function(update))
		bare = append(bare, bareLoop(t, filepath.Join(dir, "bare"), filepath.Join(ours, hu)))
	}
	lf, la, lb := median(first), median(again), median(bare)
	t.Logf("WKD tree, WKD.Update:          %v", lf)
	t.Logf("WKD tree, bare loop:           %v: Update takes %.2f times the wall, %.2f times the CPU", lb, ratio(lf.wall, lb.wall), ratio(lf.cpu, lb.cpu))
	t.Logf("WKD tree, WKD.Update again:    %v: %.1f times faster than the first by wall, %.1f by CPU", la, ratio(lf.wall, la.wall), ratio(lf.cpu, la.cpu))
	os.RemoveAll(filepath.Join(dir, "bare"))

	// A hundred thousand certificates. They repeat the keys under more addresses.
	big := filepath.Join(dir, "big.pgp")
	w, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 10 {
		b := bytes.ReplaceAll(ring, []byte("Test <u"), []byte("Test <"+string(rune('a'+k))))
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	c := program(t, publish, "-ring", big, "-domain", "example.org", "-wkd", filepath.Join(dir, "big"))
	es, err := os.ReadDir(filepath.Join(dir, "big", hu))
	if err != nil || len(es) != 10*n {
		t.Errorf("%d files, %v", len(es), err)
	}
	t.Logf("100,000 certificates, keypublish -wkd: %v", c)
	os.RemoveAll(filepath.Join(dir, "big"))

	// gpg's DANE text, of fewer certificates, as gpg takes long to import.
	const m = 2000
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	defer exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
	small := filepath.Join(dir, "small.pgp")
	var part []byte
	count := 0
	for c, err := range openpgpdns.NewReader(bytes.NewReader(ring)).All() {
		if err != nil {
			t.Fatal(err)
		}
		if part = append(part, c.Bytes()...); count == m-1 {
			break
		}
		count++
	}
	write(small, part)
	imported := program(t, "gpg", "--homedir", home, "--batch", "--quiet", "--import-options", "fast-import", "--import", small)
	t.Logf("gpg --import of %d: %v", m, imported)
	exported, err := exec.Command("gpg", "--homedir", home, "--export").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(dir, "gpg.zone")
	var text []byte
	var gpg, us []cost
	for range 5 {
		gpg = append(gpg, program(t, "gpg", "--homedir", home, "--batch", "--yes", "--output", want, "--export-options", "export-minimal,export-dane", "--export"))
		us = append(us, function(func() {
			text = text[:0]
			for c, err := range openpgpdns.NewReader(bytes.NewReader(exported)).All() {
				if err != nil {
					t.Fatal(err)
				}
				if text, err = openpgpdns.AppendExportDANE(text, openpgpdns.Minimal(), c); err != nil {
					t.Fatal(err)
				}
			}
		}))
	}
	if b, err := os.ReadFile(want); err != nil || !bytes.Equal(b, text) {
		t.Errorf("gpg's DANE text has %d octets, ours %d, %v", len(b), len(text), err)
	}
	g, u := median(gpg), median(us)
	t.Logf("DANE text of %d, gpg:  %v", m, g)
	t.Logf("DANE text of %d, ours: %v, the same text: gpg takes %.1f times the CPU", m, u, ratio(g.cpu, u.cpu))

	// gpg-wks-client, one key at a time.
	wks, err := exec.LookPath("gpg-wks-client")
	if err != nil {
		wks = "/usr/lib/gnupg/gpg-wks-client"
	}
	if _, err := os.Stat(wks); err != nil {
		t.Log("no gpg-wks-client here")
		return
	}
	const k = 20
	tree := filepath.Join(dir, "wks")
	if err := os.MkdirAll(filepath.Join(tree, "example.org", "hu"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", home)
	var each []cost
	i := 0
	for c, err := range openpgpdns.NewReader(bytes.NewReader(exported)).All() {
		if err != nil || i == k {
			break
		}
		each = append(each, program(t, wks, "--directory", tree, "--install-key", strings.ToUpper(hex.EncodeToString(c.Fingerprint())), fmt.Sprintf("u%d@example.org", i)))
		i++
	}
	e := median(each)
	t.Logf("gpg-wks-client --install-key: %v a key: %.0f times keypublish's wall a key", e, ratio(e.wall, f.wall/n))
}

// bareLoop writes the files of a tree again, from two goroutines, with nothing
// but os.WriteFile. The files are read before the clock starts.
func bareLoop(t *testing.T, dst, src string) cost {
	t.Helper()
	es, err := os.ReadDir(src)
	if err != nil {
		t.Fatal(err)
	}
	content := make([][]byte, len(es))
	for i, e := range es {
		if content[i], err = os.ReadFile(filepath.Join(src, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	os.RemoveAll(dst)
	deep := filepath.Join(dst, ".well-known", "openpgpkey", "example.org", "hu")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	return function(func() {
		var wg sync.WaitGroup
		for w := range 2 {
			wg.Go(func() {
				for i := w; i < len(es); i += 2 {
					if err := os.WriteFile(filepath.Join(deep, es[i].Name()), content[i], 0o644); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	})
}

func compareTrees(t *testing.T, ours, sq string, n int) {
	t.Helper()
	a, err1 := os.ReadDir(ours)
	b, err2 := os.ReadDir(sq)
	if err1 != nil || err2 != nil || len(a) != n || len(b) != n {
		t.Fatalf("%d and %d files, %v, %v", len(a), len(b), err1, err2)
	}
	more := 0
	for i := range a {
		x, err1 := a[i].Info()
		y, err2 := b[i].Info()
		if err1 != nil || err2 != nil || a[i].Name() != b[i].Name() || x.Size() > y.Size() {
			t.Fatalf("%s and %s: %v, %v", a[i].Name(), b[i].Name(), err1, err2)
		}
		if x.Size() < y.Size() {
			more++
		}
	}
	t.Logf("%d of sq's files hold more than the address's own user ID", more)
}
