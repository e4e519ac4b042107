package tunbed

import (
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	var results []Result
	for i, mbps := range []float64{100, 300, 200} {
		results = append(results, Result{Work: "tcp1", Direction: "6to4", Translator: "tayga", Round: i, Mbps: mbps / 10, Bytes: 1e9, TranslatorCPU: 7 * time.Second},
			Result{Work: "tcp1", Direction: "6to4", Translator: "nat64d", Round: i, Mbps: mbps, Bytes: 1e9, TranslatorCPU: 500 * time.Millisecond},
			Result{Work: "tcp1", Direction: "6to4", Translator: "plain", Round: i, Mbps: 400, Bytes: 1e9})
	}
	cells := Table(results)
	if len(cells) != 3 {
		t.Fatalf("%d cells", len(cells))
	}
	c := Find(cells, "tcp1", "6to4", "nat64d")
	if c.Best(Speed) != 300 || c.Median(Speed) != 200 || c.Least(TranslatorCost) != 500 {
		t.Errorf("best %v, median %v, cost %v", c.Best(Speed), c.Median(Speed), c.Least(TranslatorCost))
	}
	var b strings.Builder
	WriteMarkdown(&b, cells, "plain", "tayga")
	if want := "| tcp1 | 6to4 | nat64d | 300 | 200 | Mbps | 75 % | 10.0 | 500 | 0 | ms/GB |"; !strings.Contains(b.String(), want) {
		t.Errorf("no line %q in\n%s", want, b.String())
	}
	b.Reset()
	if err := WriteCSV(&b, results); err != nil || strings.Count(b.String(), "\n") != 10 {
		t.Errorf("CSV: %v\n%s", err, b.String())
	}
}

func TestMean(t *testing.T) {
	four := Result{Work: "udp18", Kpps: 300, Mbps: 30, SentKpps: 310, Packets: 600e3, Bytes: 10e6, Seconds: 2, MachineCPU: 4 * time.Second}
	six := Result{Work: "udp18", Kpps: 100, Mbps: 10, SentKpps: 110, Packets: 200e3, Bytes: 30e6, Seconds: 2, MachineCPU: 2 * time.Second, Retransmits: 3}
	want := Result{Work: "udp18", Kpps: 200, Mbps: 20, SentKpps: 210, Packets: 800e3, Bytes: 40e6, Seconds: 4, MachineCPU: 6 * time.Second, Retransmits: 3}
	if m := Mean(four, six); m != want {
		t.Errorf("Mean = %+v", m)
	}
}
