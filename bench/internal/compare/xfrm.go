package compare

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var xfrmMessages = Section{
	Name: "xfrm", Title: "xfrm: messages and loading the kernel", Needs: "root, iproute2 for the kernel part",
	Takes: 2 * time.Minute, Pieces: []string{"parts"},
	Run: runXfrm,
}

// A timing is a line of a test's log: a name and durations in milliseconds.
type timing struct {
	name string
	ms   []float64
}

var (
	logPrefix = regexp.MustCompile(`^\s*\w+\.go:\d+: (.*)$`)
	duration  = regexp.MustCompile(`([0-9.]+) ?(ns|µs|us|ms|s)\b`)
	unitMs    = map[string]float64{"ns": 1e-6, "µs": 1e-3, "us": 1e-3, "ms": 1, "s": 1000}
)

// parseTimings reads lines "file.go:1: name: what   12.3 ms 14ms" of a log.
func parseTimings(out string) (all []timing) {
	for line := range strings.Lines(out) {
		m := logPrefix.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		at := duration.FindStringIndex(m[1])
		if at == nil || !strings.Contains(m[1][:at[0]], ": ") {
			continue
		}
		t := timing{name: strings.TrimSpace(m[1][:at[0]])}
		for _, d := range duration.FindAllStringSubmatch(m[1], -1) {
			if v, err := strconv.ParseFloat(d[1], 64); err == nil {
				t.ms = append(t.ms, v*unitMs[d[2]])
			}
		}
		all = append(all, t)
	}
	return all
}

func runXfrm(r *Report) error {
	if _, err := r.Check("the peer builds and reads the same state", inBench, "go", "test", "-count=1", "-v", "-run", "TestPeer", "./xfrm"); err != nil {
		return err
	}
	r.Modules("github.com/vishvananda/netlink")
	r.Packages("iproute2")
	r.NotRun("strongSwan's and libreswan's netlink code", "not callable from outside their daemons")
	count, length := "20", "20ms"
	if r.Quick {
		count, length = "2", "5ms"
	}
	all, err := r.Measure(inBench, "go", "test", "-run", "^$", "-bench", "SA$|Policy$", "-benchtime", length, "-count", count, "./xfrm")
	if err != nil {
		return err
	}
	var rows [][]string
	for _, w := range []struct{ bench, title string }{{"BuildSA", "build a state (AEAD, mark, interface id)"}, {"ParseSA", "read it"}, {"ParsePolicy", "read a policy"}} {
		ours, theirs := Pick(all, w.bench, "impl=signalbox"), Pick(all, w.bench, "impl=vishvananda")
		if ours == nil || theirs == nil {
			return fmt.Errorf("no figures of %s", w.bench)
		}
		a, _ := ours.Least("ns/op")
		b, _ := theirs.Least("ns/op")
		allocs := func(b *Benchmark) string { v, _ := b.Median("allocs/op"); return whole(v) }
		rows = append(rows, []string{w.title, short(a), allocs(ours), short(b), allocs(theirs), times(b, a) + "x"})
	}
	r.Printf("Messages in memory, the least of many short runs (which leaves out most of what the peer costs the garbage collector):\n")
	r.Table([]string{"", "signalbox, ns", "allocations", "vishvananda/netlink, ns", "allocations", "ratio"}, rows)
	own, err := r.Own(".", "./xfrm")
	if err != nil {
		return err
	}
	r.Piece("parts", own)

	if r.Quick {
		r.NotRun("loading the kernel", "this was a quick run")
		return nil
	}
	out, err := r.Command(inBench, "SIGNALBOX_RUN=codec", "go", "test", "-count=1", "-v", "-run", "TestCodecComparison", "./xfrm")
	if err != nil {
		return err
	}
	codec := map[string]float64{}
	for _, t := range parseTimings(out) {
		codec[t.name] = t.ms[0] * 1e6
	}
	rows = nil
	for _, job := range []string{"build", "parse"} {
		a, b := codec[job+": signalbox"], codec[job+": vishvananda"]
		if a == 0 || b == 0 {
			return fmt.Errorf("no figures in the log of TestCodecComparison\n%s", tail(out))
		}
		rows = append(rows, []string{job + " a state", short(a), short(b), times(b, a) + "x"})
	}
	r.Printf("\nThe same by the processor time of the whole process, garbage collection included, in blocks that take turns:\n")
	r.Table([]string{"", "signalbox, ns", "vishvananda/netlink, ns", "ratio"}, rows)
	if why := lacks(true, "ip"); why != "" {
		r.NotRun("loading the kernel", why)
		return nil
	}
	out, err = r.Check("every way leaves the same 10,000 policies in the kernel, in every round", inBench,
		"SIGNALBOX_REQUIRE=netns", "go", "test", "-count=1", "-v", "-run", "TestKernelComparison", "./xfrm")
	if err != nil {
		return err
	}
	timings := parseTimings(out)
	if len(timings) == 0 {
		return fmt.Errorf("no figures in the log of TestKernelComparison\n%s", tail(out))
	}
	rows = nil
	var bars []Bar
	base := map[string]float64{}
	for _, t := range timings {
		job, who, _ := strings.Cut(t.name, ": ")
		if strings.HasPrefix(who, "signalbox") {
			base[job] = t.ms[0]
		}
	}
	for _, t := range timings {
		job, who, _ := strings.Cut(t.name, ": ")
		row := []string{job, who, short(t.ms[0]), "", "", ""}
		for i, ms := range t.ms[1:min(len(t.ms), 4)] {
			row[3+i] = short(ms)
		}
		ratio := "-"
		if b := base[job]; b > 0 {
			ratio = times(t.ms[0], b) + "x"
		}
		if len(t.ms) < 4 {
			row = row[:2+len(t.ms)]
		}
		rows = append(rows, append(row, ratio))
		bars = append(bars, Bar{job, who, t.ms[0], short(t.ms[0]) + " ms"})
	}
	header := []string{"10,000 policies on the running kernel", "with", "best, ms", "median, ms", "CPU best, ms", "CPU median, ms"}
	header = append(header[:len(rows[0])-1], "best to signalbox")
	r.Printf("\nThe kernel's own work is in all of them:\n")
	r.Table(header, rows)
	return r.Plot("load", "10,000 policies into the kernel and out", drawBars("10,000 policies into the kernel and out, best of the rounds", "ms", false, byGroup(bars), nil))
}
