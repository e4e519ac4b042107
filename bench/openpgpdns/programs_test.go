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
	err := cmd.Wait()
	wall := time.Since(start)
	if err != nil {
		t.Fatalf("%s: %v\n%.500s", name, err, out.Bytes())
	}
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{wall, time.Duration(u.Utime.Nano() + u.Stime.Nano()), 0}
}

// memory is the peak of a program's resident memory in KiB, as it has it itself:
// the one in its resource usage begins with that of this process. Looking takes
// time, so this is a run of its own.
func memory(t *testing.T, name string, args ...string) (kib int64) {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	comm := []byte("Name:\t" + filepath.Base(name)[:min(len(filepath.Base(name)), 15)] + "\n")
	for {
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)); err == nil && bytes.Contains(b, comm) {
			if _, rest, ok := bytes.Cut(b, []byte("VmHWM:")); ok {
				fmt.Sscan(string(rest), &kib)
			}
		}
		select {
		case err := <-done:
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return kib
		case <-time.After(time.Millisecond):
		}
	}
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
	note := filepath.Join(dir, "state")
	var sq, first, again, noted []cost
	for range 3 {
		os.RemoveAll(ours)
		first = append(first, program(t, publish, "-ring", file, "-domain", "example.org", "-wkd", ours))
		again = append(again, program(t, publish, "-ring", file, "-domain", "example.org", "-wkd", ours))
		program(t, publish, "-ring", file, "-domain", "example.org", "-wkd", ours, "-state", note)
		noted = append(noted, program(t, publish, "-ring", file, "-domain", "example.org", "-wkd", ours, "-state", note))
		os.RemoveAll(theirs)
		sq = append(sq, program(t, "sq", "wkd", "generate", "-s", theirs, "example.org", file))
	}
	os.RemoveAll(ours)
	first[0].rss = memory(t, publish, "-ring", file, "-domain", "example.org", "-wkd", ours)
	os.RemoveAll(theirs)
	sq[0].rss = memory(t, "sq", "wkd", "generate", "-s", theirs, "example.org", file)
	compareTrees(t, filepath.Join(ours, hu), filepath.Join(theirs, hu), n)
	s, f, a, w := median(sq), median(first), median(again), median(noted)
	t.Logf("WKD tree, sq wkd generate:     %v", s)
	t.Logf("WKD tree, keypublish:          %v: sq takes %.0f times the wall, %.0f times the CPU", f, ratio(s.wall, f.wall), ratio(s.cpu, f.cpu))
	t.Logf("WKD tree, keypublish again:    %v", a)
	t.Logf("WKD tree, keypublish -state again: %v", w)

	// Trees, in this process, one after the other in each round.
	ways := []struct {
		name string
		run  func()
		cost []cost
	}{{name: "WKD.Update"}, {name: "WKD.Update again"}, {name: "WKD.Update with State"}, {name: "WKD.Update with State again"}, {name: "bare loop"}}
	update := func(w openpgpdns.WKD, written int) {
		if r, err := w.Update(t.Context(), "example.org", openpgpdns.NewReader(bytes.NewReader(ring)).All()); err != nil || r.Addresses != n || r.Written != written {
			t.Fatal(r, err)
		}
	}
	other := filepath.Join(dir, "other")
	plain, state := openpgpdns.WKD{Root: ours}, openpgpdns.WKD{Root: other, State: note}
	ways[0].run = func() { update(plain, n) }
	ways[1].run = func() { update(plain, 0) }
	ways[2].run = func() { update(state, n) }
	ways[3].run = func() { update(state, 0) }
	ways[4].run = bareLoop(t, filepath.Join(dir, "bare"), filepath.Join(ours, hu))
	for range 15 {
		for _, d := range []string{ours, other, filepath.Join(dir, "bare", hu), note} {
			if err := os.RemoveAll(d); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, "bare", hu), 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range ways {
			ways[i].cost = append(ways[i].cost, function(ways[i].run))
		}
	}
	to := func(a, b int) string {
		x, y := median(ways[a].cost), median(ways[b].cost)
		return fmt.Sprintf("%.2f times the wall, %.2f times the CPU", ratio(x.wall, y.wall), ratio(x.cpu, y.cpu))
	}
	for i := range ways {
		t.Logf("WKD tree, %s:  %v", ways[i].name, median(ways[i].cost))
	}
	t.Logf("Update takes of the bare loop:           %s, with State %s", to(0, 4), to(2, 4))
	t.Logf("the first Update takes of the second:    %s", to(0, 1))
	t.Logf("the same, both with State:               %s", to(2, 3))
	for _, d := range []string{filepath.Join(dir, "bare"), other} {
		os.RemoveAll(d)
	}

	// A hundred thousand certificates. They repeat the keys under more addresses.
	big := filepath.Join(dir, "big.pgp")
	out, err := os.Create(big)
	if err != nil {
		t.Fatal(err)
	}
	for k := range 10 {
		b := bytes.ReplaceAll(ring, []byte("Test <u"), []byte("Test <"+string(rune('a'+k))))
		if _, err := out.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	out.Close()
	args := []string{"-ring", big, "-domain", "example.org", "-wkd", filepath.Join(dir, "big")}
	c := program(t, publish, args...)
	args = append(args, "-state", note)
	os.Remove(note)
	cs := program(t, publish, args...)
	ca := program(t, publish, args...)
	ca.rss = memory(t, publish, args...)
	os.RemoveAll(filepath.Join(dir, "big"))
	c.rss = memory(t, publish, args[:len(args)-2]...)
	es, err := os.ReadDir(filepath.Join(dir, "big", hu))
	if err != nil || len(es) != 10*n {
		t.Errorf("%d files, %v", len(es), err)
	}
	t.Logf("100,000 certificates, keypublish -wkd: %v", c)
	t.Logf("100,000 certificates, keypublish -wkd -state, nothing changed, no state yet: %v", cs)
	t.Logf("100,000 certificates, keypublish -wkd -state, nothing changed: %v", ca)
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
	const passes = 10 // of ours: one is too short for the clock of CPU time
	for range 5 {
		gpg = append(gpg, program(t, "gpg", "--homedir", home, "--batch", "--yes", "--output", want, "--export-options", "export-minimal,export-dane", "--export"))
		c := function(func() {
			for range passes {
				text = text[:0]
				for c, err := range openpgpdns.NewReader(bytes.NewReader(exported)).All() {
					if err != nil {
						t.Fatal(err)
					}
					if text, err = openpgpdns.AppendExportDANE(text, openpgpdns.Minimal(), c); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
		us = append(us, cost{wall: c.wall / passes, cpu: c.cpu / passes})
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

// bareLoop returns a function that writes the files of the tree src again, from
// two goroutines, with nothing but os.WriteFile. It has read them already. The
// folder is there then.
func bareLoop(t *testing.T, dst, src string) func() {
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
	deep := filepath.Join(dst, ".well-known", "openpgpkey", "example.org", "hu")
	return func() {
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
	}
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
