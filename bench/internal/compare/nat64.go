package compare

import (
	"fmt"
	"strconv"
)

var nat64Packets = Section{
	Name: "nat64", Title: "nat64: one packet", Run: runNat64,
}

func runNat64(r *Report) error {
	if _, err := r.Check("both make the same packets, identification aside", inBench, "go", "test", "-count=1", "-v", "-run", "TestSameAnswer", "./nat64"); err != nil {
		return err
	}
	r.Modules("github.com/google/gopacket")
	r.NotRun("Jool's, Tayga's and other C translators' inner loops", "not callable from Go; Tayga as a whole is in the section on the network bed")
	// Many runs shorter than a turn of the scheduler: the least of them is
	// what the code takes. A table of a million takes a second to make for
	// each run.
	runs := [][3]string{{"Translate/.*/eam=(0|10000)$", "2ms", "40"}, {"Translate/.*/eam=1000000$", "2ms", "8"}}
	if r.Quick {
		runs = [][3]string{{"Translate/.*/eam=0$", "1ms", "2"}}
	}
	var all []*Benchmark
	for _, run := range runs {
		some, err := r.Measure(inBench, "go", "test", "-run", "^$", "-bench", run[0], "-benchtime", run[1], "-cpu", "1", "-count", run[2], "./nat64")
		if err != nil {
			return err
		}
		all = append(all, some...)
	}
	r.Printf("UDP, nanoseconds for one packet, the least of the runs (6 to 4 / 4 to 6), allocations. gopacket knows the prefix alone;\n" +
		"there its ratio to the same of signalbox follows.\n")
	sizes := []string{"66", "576", "1480"}
	var rows [][]string
	var bars []Bar
	least := func(impl, eam, size, way string) (ns, allocs float64, ok bool) {
		b := Pick(all, "Translate", "impl="+impl, "eam="+eam, "size="+size, "way="+way)
		if b == nil {
			return 0, 0, false
		}
		ns, ok = b.Least("ns/op")
		allocs, _ = b.Least("allocs/op")
		return ns, allocs, ok
	}
	for _, who := range []struct{ impl, eam string }{{"signalbox", "0"}, {"signalbox", "10000"}, {"signalbox", "1000000"}, {"gopacket", "0"}} {
		name := who.impl + ", prefix only"
		if who.eam != "0" {
			name = who.impl + ", " + group(who.eam) + " mappings"
		}
		row := []string{name}
		for _, size := range sizes {
			to4, allocs, ok1 := least(who.impl, who.eam, size, "6to4")
			to6, _, ok2 := least(who.impl, who.eam, size, "4to6")
			if !ok1 || !ok2 {
				continue
			}
			cell := short(to4) + " / " + short(to6) + ", " + strconv.Itoa(int(allocs))
			if who.impl != "signalbox" {
				our4, _, _ := least("signalbox", "0", size, "6to4")
				our6, _, _ := least("signalbox", "0", size, "4to6")
				cell += fmt.Sprintf(" (%sx / %sx)", times(to4, our4), times(to6, our6))
			}
			row = append(row, cell)
			bars = append(bars, Bar{size + " bytes, 6 to 4", name, to4, short(to4)})
		}
		if len(row) == len(sizes)+1 {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return fmt.Errorf("the benchmarks' names are not the expected ones")
	}
	r.Table([]string{"ns per packet", "66 bytes", "576 bytes", "1480 bytes"}, rows)
	return r.Plot("packet", "Nanoseconds for one packet", drawBars("One UDP packet, 6 to 4", "ns", false, byGroup(bars), nil))
}
