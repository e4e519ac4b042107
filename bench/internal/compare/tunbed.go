package compare

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

var translators = Section{
	Name: "tunbed", Title: "nat64: a whole translator on the network", Needs: "root; iproute2, iperf3, ethtool, procps, tayga",
	Takes: 8 * time.Minute,
	Run:   runTunbed,
}

// The public measurement that this collection grew from: share of line rate
// of one TCP stream on real Ethernet.
var seedShares = []Band{
	{"recorded: Tayga, small box and desktop, 21 to 31 % of line rate", 21, 31},
	{"recorded: OpenBSD's PF, 25 to 58 %", 25, 58},
	{"recorded: Jool, 85 to 88 %", 85, 88},
}

// A bedCell is all rounds of one translator under one kind of traffic.
type bedCell struct {
	work, data, translator string
	speed, own, all        []float64 // Mbps or kpps; CPU in ms of the translator and of the machine per GB or million packets
	udp                    bool
}

// parseBed reads the CSV file of cmd/tunbed.
func parseBed(text string) (cells []*bedCell, err error) {
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(records) < 2 {
		return nil, fmt.Errorf("no runs")
	}
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	for _, name := range []string{"work", "data", "translator", "mbps", "kpps", "bytes", "packets", "translator_cpu_ms", "machine_cpu_ms"} {
		if _, ok := column[name]; !ok {
			return nil, fmt.Errorf("no column %s", name)
		}
	}
	for _, rec := range records[1:] {
		text := func(name string) string { return rec[column[name]] }
		num := func(name string) float64 {
			v, nerr := strconv.ParseFloat(text(name), 64)
			if nerr != nil {
				err = nerr
			}
			return v
		}
		i := slices.IndexFunc(cells, func(c *bedCell) bool {
			return c.work == text("work") && c.data == text("data") && c.translator == text("translator")
		})
		if i < 0 {
			i, cells = len(cells), append(cells, &bedCell{work: text("work"), data: text("data"), translator: text("translator")})
		}
		c := cells[i]
		speed, amount := num("mbps"), num("bytes")/1e9
		if c.udp = num("kpps") > 0; c.udp {
			speed, amount = num("kpps"), num("packets")/1e6
		}
		c.speed = append(c.speed, speed)
		c.own, c.all = append(c.own, num("translator_cpu_ms")/amount), append(c.all, num("machine_cpu_ms")/amount)
		if err != nil {
			return nil, err
		}
	}
	return cells, nil
}

var workTitles = map[string]string{
	"tcp1": "one TCP stream", "tcp8": "eight TCP streams", "mtu": "TCP in MTU-sized packets", "mtu-gro": "TCP in MTU-sized packets, GRO",
	"udp18": "UDP of 18 bytes", "udp18-gro": "UDP of 18 bytes, GRO", "udpgso": "UDP of 1200 bytes, GSO",
}

var translatorTitles = map[string]string{
	"plain": "plain forwarding", "tayga": "Debian's Tayga", "nat64d": "nat64d, TUN", "fastpath": "nat64d, TUN and fast path",
}

func runTunbed(r *Report) error {
	r.NotRun("Jool", "a kernel module, and this kernel loads none; it passes the same vectors in a guest, whose speed says nothing")
	r.NotRun("OpenBSD's PF", "another operating system")
	r.NotRun("tayga 0.9.5 and later, tundra, map646", "no package here")
	if why := lacks(true, "ip", "iperf3", "ethtool", "sysctl", "tayga"); why != "" {
		r.NotRun("the whole bed", why)
		return nil
	}
	check := []string{"SIGNALBOX_REQUIRE=netns,bpf,tayga", "go", "test", "-count=1", "-v", "-run", "TestIntegrationConversations|TestIntegrationTaygaBesideIt", "./examples/nat64d"}
	if r.Quick {
		check[6] = "TestIntegrationTaygaBesideIt"
	}
	if _, err := r.Check("ping, TCP, UDP, fragments, path MTU and errors through nat64d and Tayga in namespaces", inRoot, check...); err != nil {
		return err
	}
	r.Packages("tayga", "iperf3")
	args := []string{"go", "run", "./cmd/tunbed", "-csv", "%T/tunbed.csv", "-translators", "plain,tayga,nat64d,fastpath"}
	if r.Quick {
		args = append(args, "-rounds", "1", "-seconds", "1", "-works", "tcp1")
	} else {
		args = append(args, "-rounds", "5", "-seconds", "1", "-works", "tcp1,mtu-gro,mtu,udp18-gro,udp18,udpgso")
	}
	if _, err := r.Command(inBench, args...); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.temp, "tunbed.csv"))
	if err != nil {
		return err
	}
	cells, err := parseBed(string(text))
	if err != nil {
		return fmt.Errorf("tunbed.csv: %w", err)
	}
	find := func(c *bedCell, translator string) *bedCell {
		for _, d := range cells {
			if d.work == c.work && d.data == c.data && d.translator == translator {
				return d
			}
		}
		return nil
	}
	order := []string{"tcp1", "tcp8", "mtu", "mtu-gro", "udp18", "udp18-gro", "udpgso"}
	slices.SortStableFunc(cells, func(a, b *bedCell) int {
		if a.work != b.work {
			return slices.Index(order, a.work) - slices.Index(order, b.work)
		}
		return -strings.Compare(a.data, b.data) // 6to4 first
	})
	var rows [][]string
	var bars []Bar
	for _, c := range cells {
		best, unit := slices.Max(c.speed), "Mbps"
		if c.udp {
			unit = "kpps"
		}
		sorted := slices.Sorted(slices.Values(c.speed))
		row := []string{workTitles[c.work] + ", " + strings.Replace(c.data, "to", " to ", 1), translatorTitles[c.translator], short(best) + " " + unit, short(sorted[len(sorted)/2]), "", "", "", short(slices.Min(c.all))}
		if p := find(c, "plain"); p != nil && p != c {
			share := 100 * best / slices.Max(p.speed)
			row[4] = whole(share) + " %"
			bars = append(bars, Bar{row[0], row[1], share, whole(share) + " %"})
		}
		if t := find(c, "tayga"); t != nil && c.translator != "plain" && t != c {
			row[5] = times(best, slices.Max(t.speed)) + "x"
		}
		if v := slices.Min(c.own); v > 0 {
			row[6] = short(v)
		}
		rows = append(rows, row)
	}
	for _, b := range seedShares {
		name := strings.TrimPrefix(strings.SplitN(b.Name, ",", 2)[0], "recorded: ")
		rows = append(rows, []string{"one TCP stream, recorded on Ethernet", name, "", "", fmt.Sprintf("%.0f to %.0f %% of line rate", b.From, b.To), "", "", ""})
	}
	r.Printf("Three network namespaces joined by veth pairs: client, router, server. Plain forwarding, the mean of both families,\n" +
		"is the line here. Best and median of the rounds, which take turns; processor time, the least of the rounds, in ms for\n" +
		"each 10^9 bytes delivered (TCP) or ns for each packet delivered (UDP): the translator's own, and all of the machine's.\n")
	r.Table([]string{"traffic", "translator", "best", "median", "of plain", "to Tayga", "own CPU", "all CPU"}, rows)
	return r.Plot("share", "Share of plain forwarding", drawBars("Share of the line: plain kernel forwarding here, line rate where recorded", "per cent", false, bars, seedShares))
}
