package tunbed

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"signalbox.example/internal/need"
)

// TestPing measures the round trip of echo requests through the bed, plain
// forwarding, fast path, TUN and Tayga by turns, and prints the least average
// of each. Set SIGNALBOX_RUN=ping.
func TestPing(t *testing.T) {
	need.Asked(t, "ping")
	if m := Missing(); m != nil {
		t.Fatal("this machine lacks ", strings.Join(m, ", "))
	}
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "signalbox.example").Output()
	if err != nil {
		t.Fatal(err)
	}
	daemon := filepath.Join(t.TempDir(), "nat64d")
	build := exec.Command("go", "build", "-o", daemon, "./examples/nat64d")
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	bed, err := New()
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	if err := bed.offloads(Work{GRO: false}); err != nil {
		t.Fatal(err)
	}
	average := regexp.MustCompile(`= [\d.]+/([\d.]+)/`)
	ways := []Translator{{Name: "plain", Plain: true}, Nat64d("fastpath", daemon, "-fastpath", "require"), Nat64d("tun", daemon, "-fastpath", "off"), Tayga()}
	got := make([][]float64, len(ways))
	for range 3 {
		for i, w := range ways {
			if err := bed.Start(w); err != nil {
				t.Fatal(err)
			}
			addr := serverIn6
			if w.Plain {
				addr = serverV6
			}
			if _, err := bed.Client.Run("ping", "-6", "-q", "-i", "0.1", "-c", "20", addr); err != nil { // neighbours, routes
				t.Fatal(err)
			}
			out, err := bed.Client.Run("ping", "-6", "-q", "-i", "0.002", "-c", "400", addr)
			if err != nil {
				t.Fatal(err)
			}
			m := average.FindStringSubmatch(out)
			if m == nil || !strings.Contains(out, " 0% packet loss") {
				t.Fatalf("%s: %s", w.Name, out)
			}
			ms, _ := strconv.ParseFloat(m[1], 64)
			got[i] = append(got[i], ms*1000)
			if err := bed.Stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, w := range ways {
		t.Logf("%-8s %.0f µs, %.1f times plain forwarding", w.Name, slices.Min(got[i]), slices.Min(got[i])/slices.Min(got[0]))
	}
}
