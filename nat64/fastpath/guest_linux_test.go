package fastpath

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"signalbox.example/internal/guest"
	"signalbox.example/nat64"
)

func TestMain(m *testing.M) { guest.Main(m) }

// The program on Debian's kernels: 6.1, which has clsact only, and 6.12.
func TestIntegrationGuest(t *testing.T) {
	for _, k := range []guest.Kernel{guest.Debian61, guest.Debian612} {
		t.Run(k.String(), func(t *testing.T) {
			guest.Run(t, k, guest.Config{
				Tests: "^TestInGuest", Programs: []string{"ip", "ping"},
				Modules: []string{"veth", "sch_ingress", "cls_bpf", "act_bpf", "ipv6"},
				Env:     []string{"SIGNALBOX_REQUIRE=bpf"},
			})
		})
	}
}

func TestInGuestDifferential(t *testing.T) {
	guest.Inside(t)
	const n = 5_000
	if fast := differential(t, crossConfig(t), newFlow(2), nil, n); fast < n/4 {
		t.Errorf("only %d of %d went fast", fast, n)
	}
}

// Real packets: a host of the EAM table pings a host behind the prefix, all of
// it in the kernel, for there is no slow path here.
func TestInGuestPing(t *testing.T) {
	guest.Inside(t)
	sh := func(line string) {
		t.Helper()
		f := strings.Fields(line)
		if out, err := exec.Command(f[0], f[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	for _, l := range []string{
		"ip netns add c", "ip netns add s",
		"ip link add rc type veth peer name c0 netns c", "ip link add rs type veth peer name s0 netns s",
		"ip link set rc up", "ip link set rs up", "ip -n c link set c0 up", "ip -n s link set s0 up",
		"ip addr add 2001:db8:1::1/64 dev rc nodad", "ip addr add 192.0.2.1/24 dev rs",
		"ip -n c addr add 2001:db8:1::2/64 dev c0 nodad", "ip -n c -6 route add default via 2001:db8:1::1",
		"ip -n s addr add 192.0.2.2/24 dev s0", "ip -n s route add default via 192.0.2.1",
		// Where the slow path would be.
		"ip -6 route add 2001:db8:64::/96 dev lo", "ip route add 10.64.0.0/24 dev rs",
	} {
		sh(l)
	}
	for _, f := range []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"} {
		if err := writeFile(f, "1"); err != nil {
			t.Fatal(err)
		}
	}
	prefix, err := nat64.ParsePrefix("2001:db8:64::/96")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := nat64.New(nat64.Config{Prefix: prefix, EAM: []nat64.EAM{{V6: netip.MustParsePrefix("2001:db8:1::2/128"), V4: netip.MustParsePrefix("10.64.0.10/32")}}})
	if err != nil {
		t.Fatal(err)
	}
	want := "clsact"
	if !strings.HasPrefix(guest.Release(), "6.1.") {
		want = "tcx"
	}
	for round := range 2 { // the second one finds nothing left behind
		l, err := Attach(tr, Options{Interfaces: []string{"rc", "rs"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(l.Interfaces()); !strings.Contains(got, "rc ("+want+")") {
			t.Errorf("attached to %s on %s, want %s", got, guest.Release(), want)
		}
		var out []byte
		for range 10 {
			if out, err = exec.Command("ip", "netns", "exec", "c", "ping", "-6", "-c", "3", "-i", "0.2", "-W", "2", "2001:db8:64::c000:202").CombinedOutput(); err == nil {
				break
			}
			time.Sleep(200 * time.Millisecond) // the link-local addresses settle
		}
		if err != nil {
			t.Fatalf("ping: %v: %s; %+v", err, out, l.Stats())
		}
		if err := l.Sync(); err != nil {
			t.Error(err)
		}
		s := l.Stats()
		ts := tr.Stats()
		if s.Packets64 < 3 || s.Packets46 < 3 || ts.Count(nat64.Translated64) < uint64(3*(round+1)) {
			t.Errorf("fast path %+v", s)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Errorf("closing twice: %v", err)
		}
		link, err := netlink.LinkByName("rc")
		if err != nil {
			t.Fatal(err)
		}
		qdiscs, err := netlink.QdiscList(link)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range qdiscs {
			if q.Type() == "clsact" {
				t.Error("a clsact qdisc was left behind")
			}
		}
		if exec.Command("ip", "netns", "exec", "c", "ping", "-6", "-c", "1", "-W", "1", "2001:db8:64::c000:202").Run() == nil {
			t.Error("the program still translates after Close")
		}
	}
}

func writeFile(name, text string) error { return os.WriteFile(name, []byte(text), 0o644) }
