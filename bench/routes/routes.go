// Package routes gives the benchmarks of lpctrie and radix6 their common
// ground: a real Internet table and a way of timing that a busy machine does
// not spoil.
package routes

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Full returns the full Internet table of 2025 that lies in the module zip of
// github.com/gaissmai/bart (MIT): 901,899 IPv4 and 160,147 IPv6 prefixes,
// sorted. Callers must not change the slices.
func Full() (v4, v6 []netip.Prefix, err error) {
	t := full()
	return t.v4, t.v6, t.err
}

type table struct {
	v4, v6 []netip.Prefix
	err    error
}

var full = sync.OnceValue(func() (t table) {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/gaissmai/bart")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.err = fmt.Errorf("where is bart's module: %w", err)
		return t
	}
	f, err := os.Open(filepath.Join(strings.TrimSpace(string(out)), "internal", "tests", "testdata", "prefixes.txt.gz"))
	if err != nil {
		t.err = err
		return t
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.err = err
		return t
	}
	sc := bufio.NewScanner(z)
	for sc.Scan() {
		p, err := netip.ParsePrefix(sc.Text())
		if err != nil {
			t.err = err
			return t
		}
		if p.Addr().Is4() {
			t.v4 = append(t.v4, p)
		} else {
			t.v6 = append(t.v6, p)
		}
	}
	t.err = sc.Err()
	return t
})

// A Contestant looks up addresses lo to hi of the caller's list, one after the
// other, reps times.
type Contestant struct {
	Name string
	Run  func(lo, hi int)
}

// Slice is the number of lookups that are timed together.
const Slice = 32768

// Measure returns each contestant's time for one lookup in nanoseconds of CPU
// time of the thread: the 10th percentile of rounds slices of [Slice] lookups.
// The contestants take turns, slice by slice, so that a noisy minute hits all,
// and each gets its own addresses in every round, so that none finds warm what
// another of the same structure has just used. n is the number of addresses;
// where it is less than Slice, a slice repeats all of them.
func Measure(n, rounds int, cs []Contestant) []float64 {
	times := make([][]float64, len(cs))
	turn := 0
	OnThread(func() {
		for range rounds {
			for i, c := range cs {
				count, start := 0, ThreadTime()
				if n < Slice {
					for ; count+n <= Slice; count += n {
						c.Run(0, n)
					}
				} else {
					lo := turn * Slice % (n - n%Slice)
					turn++
					c.Run(lo, lo+Slice)
					count = Slice
				}
				times[i] = append(times[i], float64(ThreadTime()-start)/float64(count))
			}
		}
	})
	out := make([]float64, len(cs))
	for i, t := range times {
		slices.Sort(t)
		out[i] = t[len(t)/10]
	}
	return out
}

// CPU returns the CPU time that f takes on one thread. Work that f leaves to
// other goroutines does not count.
func CPU(f func()) time.Duration {
	var d time.Duration
	OnThread(func() {
		start := ThreadTime()
		f()
		d = ThreadTime() - start
	})
	return d
}
