package compare

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Benchmark is one name of the output of go test -bench with its figures,
// one of each unit for every run.
type Benchmark struct {
	Full   string            // without "Benchmark" and the number of processors
	Name   string            // and without key=value parts
	Keys   map[string]string // the parts key=value of its name
	Values map[string][]float64
}

var procs = regexp.MustCompile(`-\d+$`)

// ParseBench reads the output of go test -bench, in the format that benchstat
// reads. Lines of other kinds are skipped; those of one name are joined.
func ParseBench(out string) []*Benchmark {
	var all []*Benchmark
	byName := map[string]*Benchmark{}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") || len(f)%2 != 0 {
			continue
		}
		if _, err := strconv.Atoi(f[1]); err != nil {
			continue
		}
		b := byName[f[0]]
		if b == nil {
			b = &Benchmark{Keys: map[string]string{}, Values: map[string][]float64{}}
			b.Full = procs.ReplaceAllString(strings.TrimPrefix(f[0], "Benchmark"), "")
			var bare []string
			for _, part := range strings.Split(b.Full, "/") {
				if k, v, ok := strings.Cut(part, "="); ok {
					b.Keys[k] = v
				} else {
					bare = append(bare, part)
				}
			}
			b.Name = bare[0]
			if len(bare) > 1 && b.Keys["impl"] == "" {
				b.Keys["impl"] = bare[len(bare)-1]
			}
			byName[f[0]] = b
			all = append(all, b)
		}
		for i := 2; i < len(f); i += 2 {
			if v, err := strconv.ParseFloat(f[i], 64); err == nil {
				b.Values[f[i+1]] = append(b.Values[f[i+1]], v)
			}
		}
	}
	return all
}

// Median returns the middle figure of a unit; ok is false where there is none.
func (b *Benchmark) Median(unit string) (v float64, ok bool) {
	s := slices.Sorted(slices.Values(b.Values[unit]))
	if len(s) == 0 {
		return 0, false
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2, true
}

// Least and Most return the extreme figures of a unit.
func (b *Benchmark) Least(unit string) (v float64, ok bool) {
	if len(b.Values[unit]) == 0 {
		return 0, false
	}
	return slices.Min(b.Values[unit]), true
}

func (b *Benchmark) Most(unit string) (v float64, ok bool) {
	if len(b.Values[unit]) == 0 {
		return 0, false
	}
	return slices.Max(b.Values[unit]), true
}

// Pick returns the benchmark of a name with all the given "key=value" parts,
// or nil.
func Pick(all []*Benchmark, name string, parts ...string) *Benchmark {
	for _, b := range all {
		ok := b.Name == name
		for _, p := range parts {
			k, v, _ := strings.Cut(p, "=")
			ok = ok && b.Keys[k] == v
		}
		if ok {
			return b
		}
	}
	return nil
}

// Measure runs benchmarks and returns their figures. It fails if there are none.
func (r *Report) Measure(in place, words ...string) ([]*Benchmark, error) {
	out, err := r.Command(in, words...)
	if err != nil {
		return nil, err
	}
	all := ParseBench(out)
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no benchmark in its output\n%s", strings.Join(words, " "), tail(out))
	}
	return all, nil
}

// Own measures benchmarks of the libraries' packages, which have no peer, and
// returns a table of the best of some short runs.
func (r *Report) Own(pattern string, packages ...string) (string, error) {
	length, count := "20ms", "5"
	if r.Quick {
		length, count = "1ms", "1"
	}
	words := []string{"go", "test", "-run", "^$", "-bench", pattern, "-benchmem", "-benchtime", length, "-count", count, "-cpu", "1"}
	out, err := r.Command(inRoot, append(words, packages...)...)
	if err != nil {
		return "", err
	}
	t := ownTable(out)
	if t == "" {
		return "", fmt.Errorf("no benchmark of %s in %s", pattern, strings.Join(packages, ", "))
	}
	return t, nil
}

// ownTable makes a table of the output of benchmarks of one or more packages.
func ownTable(out string) string {
	var rows [][]string
	for i, part := range strings.Split(out, "\npkg: ") {
		name, _, _ := strings.Cut(part, "\n")
		if i == 0 {
			continue // goos, goarch
		}
		name = strings.TrimPrefix(name, "signalbox.example/")
		for _, b := range ParseBench(part) {
			ns, ok := b.Least("ns/op")
			if !ok {
				continue
			}
			rate := ""
			if v, ok := b.Most("MB/s"); ok {
				rate = short(v) + " MB/s"
			}
			allocs, _ := b.Least("allocs/op")
			rows = append(rows, []string{name, b.Full, inTime(ns), rate, whole(allocs)})
		}
	}
	if rows == nil {
		return ""
	}
	return table([]string{"package", "benchmark", "time", "rate", "allocations"}, rows)
}

// inTime formats nanoseconds.
func inTime(ns float64) string {
	switch {
	case ns >= 1e9:
		return short(ns/1e9) + " s"
	case ns >= 1e6:
		return short(ns/1e6) + " ms"
	case ns >= 1e3:
		return short(ns/1e3) + " µs"
	}
	return short(ns) + " ns"
}

// short formats a figure with three digits.
func short(v float64) string {
	switch {
	case v >= 1000:
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// group puts commas between thousands.
func group(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// times formats a ratio.
func times(a, b float64) string {
	if b == 0 {
		return "-"
	}
	return short(a / b)
}

// whole formats a figure without decimals.
func whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }
