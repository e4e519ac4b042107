package lpctrie

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"signalbox.example/internal/need"
	"signalbox.example/internal/routegen"
)

// A kernel is a network namespace of the running kernel.
type kernel struct {
	t  *testing.T
	ns string
}

func newKernel(t *testing.T) *kernel {
	t.Helper()
	need.Asked(t, "netns")
	need.Root(t, "netns")
	need.Commands(t, "netns", "ip")
	k := &kernel{t, fmt.Sprintf("lpctrie-%d-%d", os.Getpid(), rand.Uint32())}
	if out, err := exec.Command("ip", "netns", "add", k.ns).CombinedOutput(); err != nil {
		need.Missing(t, "netns", fmt.Sprintf("ip netns add: %v: %s", err, out))
	}
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "del", k.ns).CombinedOutput(); err != nil {
			t.Errorf("ip netns del: %v: %s", err, out)
		}
	})
	k.run("ip", "link", "set", "lo", "up")
	k.run("ip", "rule", "add", "pref", "5", "lookup", "100")
	return k
}

func (k *kernel) run(args ...string) string {
	k.t.Helper()
	out, err := exec.Command("ip", append([]string{"netns", "exec", k.ns}, args...)...).CombinedOutput()
	if err != nil {
		k.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

var failedLine = regexp.MustCompile(`(?m)^Command failed -:(\d+)$`)

// batch gives ip a batch and returns its output and the lines, from 0, that
// failed.
func (k *kernel) batch(lines []string) (stdout string, failed map[int]bool) {
	k.t.Helper()
	cmd := exec.Command("ip", "netns", "exec", k.ns, "ip", "-force", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	failed = map[int]bool{}
	for _, m := range failedLine.FindAllStringSubmatch(errs.String(), -1) {
		n, _ := strconv.Atoi(m[1])
		failed[n-1] = true
	}
	if err != nil && len(failed) == 0 {
		k.t.Fatalf("ip -batch: %v\n%s", err, errs.Bytes())
	}
	return out.String(), failed
}

// compare holds the table against the kernel's dump and figures of table 100.
func compareKernel[V any](k *kernel, tab *Table[V]) {
	k.t.Helper()
	var want, got []string
	for n, err := range ParseFibTrie(strings.NewReader(k.run("cat", "/proc/net/fib_trie"))) {
		if err != nil {
			k.t.Fatal(err)
		}
		if n.Table == "Id 100" {
			want = append(want, n.Text())
		}
	}
	for n := range tab.Nodes("Id 100") {
		got = append(got, n.Text())
	}
	compareLines(k.t, got, want)
	stats := k.run("cat", "/proc/net/fib_triestat")
	if block := "Id 100:\n" + tab.Stats().Triestat(); !strings.Contains(stats, block) {
		k.t.Errorf("fib_triestat:\n%s\nwant in it\n%s", stats, block)
	}
	k.t.Logf("%d lines of fib_trie compared", len(want))
}

// Ten thousand routes, added and deleted in random order, and what the kernel
// says about them, node by node and address by address.
func TestIntegrationKernelTenThousandRoutes(t *testing.T) {
	k := newKernel(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	table := routegen.IPv4(10000, seed)
	tab := New[int](Config{})
	var lines []string
	add := func(i int) {
		lines = append(lines, fmt.Sprintf("route add table 100 %v dev lo", table[i]))
		if err := tab.Add(Route{Prefix: table[i], Scope: ScopeLink}, i, ModeAdd); err != nil {
			t.Fatal(err)
		}
	}
	del := func(i int) {
		lines = append(lines, fmt.Sprintf("route del table 100 %v", table[i]))
		if _, ok := tab.Remove(table[i]); !ok {
			t.Fatal("not there")
		}
	}
	run := func() {
		if _, failed := k.batch(lines); len(failed) > 0 {
			t.Fatalf("%d commands failed", len(failed))
		}
		lines = nil
		compareKernel(k, tab)
	}
	for i := range table {
		add(i)
	}
	run()
	order := r.Perm(len(table))
	for _, i := range order[:4000] {
		del(i)
	}
	run()
	// Adds and deletes mixed.
	for j, i := range order[:3000] {
		add(i)
		del(order[4000+j])
	}
	run()

	var addrs []netip.Addr
	for len(addrs) < 20000 {
		key := r.Uint32()
		if r.IntN(3) > 0 {
			p := table[r.IntN(len(table))]
			first, slen, _ := keyOfPrefix(p)
			key = first | key&suffixMask(slen)
		}
		if top := key >> 24; top != 0 && top != 127 && top < 224 {
			addrs = append(addrs, AddrOf(key))
			lines = append(lines, fmt.Sprintf("route get fibmatch %v", AddrOf(key)))
		}
	}
	out, failed := k.batch(lines)
	answers := strings.Split(strings.TrimSpace(out), "\n")
	hits := 0
	for i, a := range addrs {
		_, p, ok := tab.Lookup(a)
		if ok == failed[i] {
			t.Fatalf("%v: lookup says %v, %v; the kernel failed: %v", a, p, ok, failed[i])
		}
		if !ok {
			continue
		}
		word, _, _ := strings.Cut(answers[hits], " ")
		hits++
		if want, is := parseDestination(word); !is || want != p {
			t.Fatalf("%v: %v, the kernel says %s", a, p, word)
		}
	}
	if hits != len(answers) || hits < 5000 {
		t.Errorf("%d hits, %d answers", hits, len(answers))
	}
	t.Logf("%d answers compared, %d of them hits", len(addrs), hits)
}

// Aliases, types, TOS, metrics and all verbs at random: the kernel accepts and
// refuses the same commands and ends with the same trie.
func TestIntegrationKernelAliases(t *testing.T) {
	k := newKernel(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var lines []string
	var cmds []Command
	for range 3000 {
		c := Command{Dev: "lo"}
		key := 10<<24 | r.Uint32()&0x3f<<uint(r.IntN(18))
		slen := uint8(r.IntN(25))
		c.Route = Route{Prefix: prefixOf(key&^suffixMask(slen), slen), Table: 100, TOS: uint8(r.IntN(3)) * 8, Priority: uint32(r.IntN(3)), Type: Unicast}
		if r.IntN(3) == 0 {
			c.Route.Type = []RouteType{Blackhole, Unreachable, Prohibit, Throw}[r.IntN(4)]
			c.Dev = ""
		}
		c.Route.Scope = defaultScope(c.Route.Type, false)
		switch r.IntN(7) {
		case 0, 1:
			c.Delete, c.Dev, c.Route.Scope = true, "", 0
			if r.IntN(2) == 0 {
				c.Route.Type = 0 // any
			}
		default:
			c.Mode = []Mode{ModeAdd, ModeChange, ModeReplace, ModeAppend, ModePrepend}[r.IntN(5)]
		}
		line := c.String()
		if c.Delete && c.Route.Type == Unicast {
			line = strings.Replace(line, "del ", "del unicast ", 1)
		}
		lines, cmds = append(lines, line), append(cmds, c)
	}
	_, failed := k.batch(lines)
	// The kernel's next hop is the device, the same for all here.
	tab := New[struct{}](Config{})
	refused := 0
	for i, c := range cmds {
		r := c.Route
		r.Table = 0 // the trie is table 100's alone
		var ok bool
		if c.Delete {
			_, ok = tab.Delete(r)
		} else {
			ok = tab.Add(r, struct{}{}, c.Mode) == nil
		}
		if ok == failed[i] {
			t.Fatalf("command %d %q: we say %v, the kernel failed: %v", i, lines[i], ok, failed[i])
		}
		if !ok {
			refused++
		}
	}
	compareKernel(k, tab)
	t.Logf("%d commands, %d refused by both", len(cmds), refused)
}
