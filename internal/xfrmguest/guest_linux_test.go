package xfrmguest

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"signalbox.example/internal/guest"
	"signalbox.example/internal/need"
)

func TestMain(m *testing.M) { guest.Main(m) }

func parse(s string) netip.Addr { return netip.MustParseAddr(s) }

// modules are what the scenarios need; a kernel may have some built in or not
// at all.
var modules = []string{
	"crypto/*", "arch/x86/crypto/*", "ipv6", "veth", "dummy", "xfrm_user", "xfrm_algo", "xfrm_ipcomp", "xfrm_interface",
	"esp4", "esp6", "ah4", "ah6", "ipcomp", "ipcomp6", "tunnel4", "tunnel6", "xfrm4_tunnel", "xfrm6_tunnel",
	"ip_vti", "ip6_vti", "ip_tunnel", "ip6_tunnel", "mip6", "af_key",
}

// long names the scenarios of the first of two guests, which run at the same
// time: it starts many programs, the second sends many packets.
const long = "^TestInGuest(Programs|Iproute2)$"

func config() guest.Config {
	return guest.Config{
		Tests: "^TestInGuest", Shards: []guest.Shard{{Run: long}, {Skip: long}}, Modules: modules, AllModules: true,
		Programs: []string{"ip", "ping"}, MemoryMB: 768, Timeout: 5 * time.Minute,
		Commands: []string{"signalbox.example/examples/vpn", "signalbox.example/examples/rekey", "signalbox.example/examples/mip6", "signalbox.example/examples/nullspeed"},
	}
}

// matrixFile is the table of what is proven where, in the package's docs.
const matrixFile = "../../xfrm/matrix.md"

// TestIntegrationKernels runs every scenario in user-mode Linux 6.1 and in
// Debian's 6.12 and holds the results against the table in the documentation,
// which it writes anew when SIGNALBOX_UPDATE is set.
func TestIntegrationKernels(t *testing.T) {
	need.Asked(t, guest.Feature)
	kernels := []guest.Kernel{guest.UML, guest.Debian612}
	results := map[guest.Kernel]map[string]string{}
	for _, k := range kernels {
		t.Run(k.String(), func(t *testing.T) {
			r := guest.Run(t, k, config())
			results[k] = r.Tests
			for _, line := range strings.Split(r.Output, "\n") {
				if strings.Contains(line, "scenario:") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
	if t.Failed() {
		return
	}
	text := matrix(kernels, results)
	if os.Getenv("SIGNALBOX_UPDATE") != "" {
		if err := os.WriteFile(matrixFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(filepath.FromSlash(matrixFile))
	if err != nil || string(have) != text {
		t.Errorf("xfrm/matrix.md does not say what was seen (SIGNALBOX_UPDATE=1 writes it anew): %v\n%s", err, text)
	}
}

// matrix makes the table: a row for each scenario, with how many of its
// variants passed in each kernel. Variants that a kernel was built without
// are not counted.
func matrix(kernels []guest.Kernel, results map[guest.Kernel]map[string]string) string {
	var rows []string
	counts := map[string]map[guest.Kernel][2]int{} // passed, skipped
	for _, k := range kernels {
		for name, verdict := range results[k] {
			if slices.ContainsFunc(keys(results[k]), func(o string) bool { return strings.HasPrefix(o, name+"/") }) {
				continue // not a leaf
			}
			row := strings.TrimPrefix(name, "TestInGuest")
			if parts := strings.Split(row, "/"); len(parts) > 2 {
				row = parts[0] + "/" + parts[1]
			} else {
				row = parts[0]
			}
			if counts[row] == nil {
				counts[row] = map[guest.Kernel][2]int{}
				rows = append(rows, row)
			}
			c := counts[row][k]
			switch verdict {
			case "PASS":
				c[0]++
			case "SKIP":
				c[1]++
			}
			counts[row][k] = c
		}
	}
	slices.Sort(rows)
	var b strings.Builder
	b.WriteString("# What is proven on which kernel\n\nWritten by the tests in internal/xfrmguest, which run these scenarios with packets in guest kernels\n" +
		"(`SIGNALBOX_UPDATE=1 SIGNALBOX_REQUIRE=guest go test -run Kernels ./internal/xfrmguest`). A figure is the number of variants\n" +
		"that passed; \"absent\" counts those that the kernel was built without. Policies, events, batches and larval states are proven\n" +
		"on the running kernel as well, by the tests of package conn.\n\n| scenario |")
	for _, k := range kernels {
		b.WriteString(" " + k.String() + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(kernels)) + "\n")
	for _, r := range rows {
		b.WriteString("| " + r + " |")
		for _, k := range kernels {
			c := counts[r][k]
			switch {
			case c[1] == 0:
				fmt.Fprintf(&b, " %d |", c[0])
			case c[0] == 0:
				b.WriteString(" absent |")
			default:
				fmt.Fprintf(&b, " %d, %d absent |", c[0], c[1])
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func keys(m map[string]string) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	return list
}
