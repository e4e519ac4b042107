package nat64

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func poolHost(i int) addr6 { return addr6{0x20010db800050000, uint64(i)*0x9e3779b97f4a7c15 | 1} }

type clock struct{ t time.Time }

func (c *clock) now() time.Time       { return c.t }
func (c *clock) pass(d time.Duration) { c.t = c.t.Add(d) }

func testPool(t testing.TB, o PoolOptions) (*Pool, *clock) {
	t.Helper()
	c := &clock{time.Unix(1_800_000_000, 0)}
	o.Now = c.now
	return must(NewPool(o)), c
}

func TestPoolLifeTimes(t *testing.T) {
	var log []string
	p, c := testPool(t, PoolOptions{
		V4:       netip.MustParsePrefix("192.168.255.0/29"),
		OnChange: func(b Binding, gone bool) { log = append(log, fmt.Sprint(b.V4, gone)) },
	})
	// Seven addresses: the lowest is not handed out.
	seen := map[uint32]bool{}
	for i := range 7 {
		b := p.assign(poolHost(i))
		if b == nil || b.v4 == p.base || seen[b.v4] {
			t.Fatalf("host %d: %v", i, b)
		}
		seen[b.v4] = true
		c.pass(time.Minute)
	}
	if p.assign(poolHost(7)) != nil {
		t.Fatal("an eighth host got an address")
	}
	if p.assign(poolHost(3)) == nil || p.Len() != 7 || len(log) != 7 {
		t.Fatalf("%d bindings, %v", p.Len(), log)
	}

	// Host 0 goes on; after two hours and four minutes the others are dormant,
	// and the one that was quiet longest, host 1, loses its address.
	for range 125 {
		p.find6(poolHost(0)).touch()
		p.Sweep()
		c.pass(time.Minute)
	}
	one := p.find6(poolHost(1)).v4
	if b := p.assign(poolHost(7)); b == nil || b.v4 != one || p.find6(poolHost(1)) != nil || p.find4(one).v6 != poolHost(7) {
		t.Fatalf("host 7: %v", b)
	}
	// A dormant host that comes back keeps its address.
	two := p.find6(poolHost(2))
	two.touch()
	three := p.find6(poolHost(3)).v4
	if b := p.assign(poolHost(8)); b == nil || b.v4 != three {
		t.Fatalf("host 8: %v", b)
	}
	// Fourteen days later all is free.
	c.pass(15 * 24 * time.Hour)
	p.Sweep() // takes the marks of hosts 0 and 2
	c.pass(15 * 24 * time.Hour)
	p.Sweep()
	if p.Len() != 0 || p.Version() != uint64(len(log)) {
		t.Errorf("%d bindings, version %d, %d changes", p.Len(), p.Version(), len(log))
	}
}

func TestPoolKeepsItsChoice(t *testing.T) {
	v4 := netip.MustParsePrefix("10.0.0.0/16")
	p, _ := testPool(t, PoolOptions{V4: v4})
	q, _ := testPool(t, PoolOptions{V4: v4})
	same := 0
	for i := range 1000 {
		a := p.assign(poolHost(i)).v4
		b := q.assign(poolHost(i * 7919 % 1000)) // another order
		_ = b
		_ = a
	}
	for i := range 1000 {
		if p.find6(poolHost(i)).v4 == q.find6(poolHost(i)).v4 {
			same++
		}
	}
	if same < 900 {
		t.Errorf("%d of 1000 hosts got the same address again", same)
	}
}

func TestPoolReservations(t *testing.T) {
	p, _ := testPool(t, PoolOptions{V4: netip.MustParsePrefix("10.0.0.0/28"), Reserved: []netip.Prefix{netip.MustParsePrefix("10.0.0.8/29")}})
	for i := range 7 {
		if b := p.assign(poolHost(i)); b == nil || b.v4 >= p.base+8 {
			t.Fatalf("%v", b)
		}
	}
	if p.assign(poolHost(7)) != nil {
		t.Fatal("a reserved address was handed out")
	}
	// A configuration that claims an address in use takes it back.
	mapped := addr4(p.find6(poolHost(4)).v4)
	own := addr4(p.find6(poolHost(5)).v4)
	tr := must(New(Config{Pools: []*Pool{p}, Prefix: must(ParsePrefix("2001:db8:64::/96")), Own4: own,
		EAM: []EAM{{netip.MustParsePrefix("2001:db8:c::1/128"), netip.PrefixFrom(mapped, 32)}}}))
	if p.Len() != 5 || p.find6(poolHost(4)) != nil || p.find6(poolHost(5)) != nil {
		t.Errorf("%d bindings", p.Len())
	}
	if v6, by := tr.To6(mapped); by != ByEAM || v6.String() != "2001:db8:c::1" {
		t.Errorf("%v by %v", v6, by)
	}
	// And the next one gives it back to the pool.
	if err := tr.Update(Config{Pools: []*Pool{p}, Prefix: must(ParsePrefix("2001:db8:64::/96"))}); err != nil {
		t.Fatal(err)
	}
	if b := p.assign(poolHost(9)); b == nil {
		t.Error("no address although two are free")
	}
}

func TestPoolErrors(t *testing.T) {
	p := netip.MustParsePrefix
	for _, x := range []struct {
		o    PoolOptions
		want error
	}{
		{PoolOptions{}, ErrFamily},
		{PoolOptions{V4: p("2001:db8::/112")}, ErrFamily},
		{PoolOptions{V4: p("10.0.0.1/24")}, ErrHostBits},
		{PoolOptions{V4: p("10.0.0.1/32")}, ErrRange},
		{PoolOptions{V4: p("0.0.0.0/7")}, ErrRange},
		{PoolOptions{V4: p("10.0.0.0/24"), Allow: []netip.Prefix{p("10.0.0.0/8")}}, ErrFamily},
		{PoolOptions{V4: p("10.0.0.0/24"), Reserved: []netip.Prefix{p("::/8")}}, ErrFamily},
		{PoolOptions{V4: p("10.0.0.0/24"), MinLease: -1}, ErrRange},
		{PoolOptions{V4: p("10.0.0.0/24"), MinLease: time.Hour, MaxLease: time.Minute}, ErrRange},
	} {
		if _, err := NewPool(x.o); !errors.Is(err, x.want) {
			t.Errorf("%+v: %v, want %v", x.o, err, x.want)
		}
	}
	a, b := must(NewPool(PoolOptions{V4: p("10.0.0.0/24")})), must(NewPool(PoolOptions{V4: p("10.0.0.128/25")}))
	for _, list := range [][]*Pool{{a, b}, {a, a}, {nil}} {
		if _, err := New(Config{Pools: list}); err == nil {
			t.Errorf("%v accepted", list)
		}
	}
}

// Several pools, each for its own sources, between packets that really flow.
func TestPoolTraffic(t *testing.T) {
	first, _ := testPool(t, PoolOptions{V4: netip.MustParsePrefix("10.1.0.0/24"), Allow: []netip.Prefix{netip.MustParsePrefix("2001:db8:a::/48")}})
	second, _ := testPool(t, PoolOptions{V4: netip.MustParsePrefix("10.2.0.0/30"), Allow: []netip.Prefix{netip.MustParsePrefix("2001:db8:b::/48")}})
	cfg := crossConfig()
	cfg.Pools = []*Pool{first, second}
	tr := must(New(cfg))
	m := testMaker()
	var s Scratch
	far4 := netip.MustParseAddr("198.51.100.2")
	far6 := cfg.Prefix.Embed(far4)
	send := func(host string) ([][]byte, Result) {
		return run(t, tr, &s, m.v6sized(netip.MustParseAddr(host), far6, true, 8))
	}
	for i, host := range []string{"2001:db8:a::1", "2001:db8:b::1", "2001:db8:b::2", "2001:db8:b::3"} {
		out, r := send(host)
		if r.Verdict != Forward {
			t.Fatalf("%s: %v", host, r.Reason)
		}
		v4 := netip.AddrFrom4([4]byte(out[0][12:16]))
		if pool := []*Pool{first, second, second, second}[i]; !pool.V4().Contains(v4) {
			t.Errorf("%s got %v", host, v4)
		}
		back, r := run(t, tr, &s, m.v4sized(far4, v4, true, 8, true))
		if r.Verdict != Forward || netip.AddrFrom16([16]byte(back[0][24:40])).String() != host {
			t.Errorf("back to %s: %v", host, r.Reason)
		}
	}
	if _, r := send("2001:db8:b::4"); r.Verdict != Reply || r.Reason != PoolExhausted {
		t.Errorf("fourth host of the small pool: %v %v", r.Verdict, r.Reason)
	}
	if _, r := send("2001:db8:c0::1"); r.Verdict != Reply || r.Reason != UntranslatableSource {
		t.Errorf("host of no pool: %v %v", r.Verdict, r.Reason)
	}
	// An address that nobody has is unreachable; asking makes no binding.
	out, r := run(t, tr, &s, m.v4sized(far4, netip.MustParseAddr("10.1.0.77"), true, 8, true))
	if r.Verdict != Reply || out[0][20] != 3 || out[0][21] != 1 {
		t.Errorf("%v %v", r.Verdict, r.Reason)
	}
	n := first.Len()
	if tr := tr.Explain(m.v6sized(netip.MustParseAddr("2001:db8:a::99"), far6, true, 8)); tr.Verdict != Forward || first.Len() != n {
		t.Errorf("Explain: %v, %d bindings", tr, first.Len())
	}
	// Packets that cannot be translated make no binding either.
	run(t, tr, &s, m.v6sized(netip.MustParseAddr("2001:db8:a::5"), netip.MustParseAddr("2001:db8:ffff::1"), true, 8))
	if first.Len() != n {
		t.Errorf("%d bindings", first.Len())
	}
	if !first.Touch(netip.MustParseAddr("2001:db8:a::1")) || first.Touch(netip.MustParseAddr("2001:db8:a::98")) {
		t.Error("Touch")
	}
}

// Addresses that no host across a router has get nothing from a pool, neither
// by a packet nor by a file: somebody could use them up, or have multicast made
// of what comes back.
func TestPoolRefusesAddressesOfNoHost(t *testing.T) {
	p, _ := testPool(t, PoolOptions{V4: netip.MustParsePrefix("10.1.0.0/24")})
	cfg := crossConfig()
	cfg.Pools = []*Pool{p}
	tr := must(New(cfg))
	m := testMaker()
	var s Scratch
	far6 := cfg.Prefix.Embed(netip.MustParseAddr("198.51.100.2"))
	for _, host := range []string{"::", "::1", "::ffff:192.0.2.1", "fe80::1", "febf:ffff::1", "ff02::1", "ff0e::1234"} {
		in := m.v6sized(netip.MustParseAddr("2001:db8:a::1"), far6, true, 8)
		a := from6(netip.MustParseAddr(host))
		a.store(in[8:])
		if _, r := run(t, tr, &s, in); r.Reason != UntranslatableSource || p.Len() != 0 {
			t.Errorf("%s: %v, %d bindings", host, r.Reason, p.Len())
		}
		if n, err := p.LoadFrom(strings.NewReader("10.1.0.9 " + host + " 1799999000\n")); n != 0 || err == nil {
			t.Errorf("%s in a file: %d, %v", host, n, err)
		}
	}
	for i, host := range []string{"::2", "100::1", "fd00::1", "fec0::1", "64:ff9b::1", "2001:db8:a::1"} {
		if _, r := run(t, tr, &s, m.v6sized(netip.MustParseAddr(host), far6, true, 8)); r.Reason != Translated64 || p.Len() != i+1 {
			t.Errorf("%s: %v, %d bindings", host, r.Reason, p.Len())
		}
	}
}

func TestPoolFile(t *testing.T) {
	o := PoolOptions{V4: netip.MustParsePrefix("192.168.255.0/24"), Reserved: []netip.Prefix{netip.MustParsePrefix("192.168.255.1/32")}}
	p, c := testPool(t, o)
	text := `###### a comment of the old daemon
192.168.255.9	2001:db8::9	1799999000
192.168.255.10 2001:db8::a 1900000000
192.168.255.11	2001:db8::b	1700000000

10.0.0.1	2001:db8::c	1799999000
192.168.255.0	2001:db8::c	1799999000
192.168.255.1	2001:db8::c	1799999000
192.168.255.9	2001:db8::c	1799999000
192.168.255.12	2001:db8::9	1799999000
192.168.255.13	2001:db8::d	soon
192.168.255.14	2001:db8::e
2001:db8::f	192.168.255.15	1799999000
192.168.255.16	::ffff:1.2.3.4	1799999000
192.168.255.17	fe80::1%eth0	1799999000
`
	n, err := p.LoadFrom(strings.NewReader(text))
	if n != 2 || p.Len() != 2 {
		t.Errorf("%d taken, %d bindings", n, p.Len())
	}
	var lines []string
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		var l *LineError
		if !errors.As(e, &l) {
			t.Fatal(e)
		}
		lines = append(lines, fmt.Sprint(l.Line))
	}
	if got := strings.Join(lines, " "); got != "6 7 8 9 10 11 12 13 14 15" {
		t.Errorf("lines %s reported", got)
	}
	for _, x := range []error{ErrOutsidePool, ErrDuplicate, ErrSyntax, ErrFamily} {
		if !errors.Is(err, x) {
			t.Errorf("no %v in %v", x, err)
		}
	}
	// The time in the future became one just past the minimal lease.
	for b := range p.Bindings() {
		if b.V6.String() == "2001:db8::a" && c.t.Sub(b.Last) != DefaultMinLease+time.Second {
			t.Errorf("%v", b)
		}
	}

	// Saved and loaded it is the same; the file appears at once and alone.
	dir := t.TempDir()
	name := filepath.Join(dir, "dynamic.map")
	if err := p.SaveFile(name); err != nil {
		t.Fatal(err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%v", files)
	}
	q, _ := testPool(t, o)
	if n, err := q.LoadFile(name); n != 2 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	var a, b bytes.Buffer
	na, _ := p.WriteTo(&a)
	q.WriteTo(&b)
	if a.String() != b.String() || int(na) != a.Len() {
		t.Errorf("%q\n%q", a.String(), b.String())
	}
	if n, err := q.LoadFile(name + ".absent"); n != 0 || err != nil {
		t.Errorf("absent file: %d, %v", n, err)
	}
	if err := p.SaveFile(filepath.Join(dir, "none", "dynamic.map")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	// What is reported is bounded, and so is a line.
	_, err = q.LoadFrom(strings.NewReader(strings.Repeat("x\n", 5000)))
	if got := len(err.(interface{ Unwrap() []error }).Unwrap()); got != maxLoadErrors {
		t.Errorf("%d errors", got)
	}
	if _, err = q.LoadFrom(strings.NewReader(strings.Repeat("x", 1<<20))); err == nil {
		t.Error("an endless line was accepted")
	}
}

// A long random life against maps of what must be.
func TestPoolRandomLife(t *testing.T) {
	p, c := testPool(t, PoolOptions{V4: netip.MustParsePrefix("10.0.0.0/22")})
	r := rand.New(rand.NewPCG(9, 9))
	byHost, byAddr := map[addr6]uint32{}, map[uint32]addr6{}
	p.onChange = func(b Binding, gone bool) {
		v4, v6 := from4(b.V4), from6(b.V6)
		if gone {
			if byHost[v6] != v4 {
				t.Fatalf("%v ends but is not there", b)
			}
			delete(byHost, v6)
			delete(byAddr, v4)
			return
		}
		if _, ok := byHost[v6]; ok {
			t.Fatalf("%v: second binding of the host", b)
		}
		if h, ok := byAddr[v4]; ok {
			t.Fatalf("%v: address is %v's", b, h.netip())
		}
		byHost[v6], byAddr[v4] = v4, v6
	}
	rounds := 20000
	if testing.Short() {
		rounds = 8000
	}
	for range rounds {
		h := poolHost(r.IntN(3000))
		if b := p.assign(h); b != nil {
			if byHost[h] != b.v4 {
				t.Fatal("assigned without notice")
			}
			if r.IntN(3) == 0 {
				b.touch()
			}
		}
		c.pass(time.Duration(r.IntN(12)) * time.Second)
	}
	if p.Len() != len(byHost) || p.Len() != len(byAddr) {
		t.Errorf("%d bindings, %d hosts, %d addresses", p.Len(), len(byHost), len(byAddr))
	}
	for h, v4 := range byHost {
		if b := p.find6(h); b == nil || b.v4 != v4 || p.find4(v4) != b {
			t.Fatalf("%v is not found", h.netip())
		}
	}
	for i := range 3000 {
		if _, ok := byHost[poolHost(i)]; !ok && p.find6(poolHost(i)) != nil {
			t.Fatal("found what is gone")
		}
	}
}

// Packets, sweeps, saves and reservations at the same time: for the race
// detector.
func TestPoolConcurrency(t *testing.T) {
	p := must(NewPool(PoolOptions{V4: netip.MustParsePrefix("10.0.0.0/24"), MinLease: time.Nanosecond}))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 2000 {
				h := poolHost(r.IntN(400))
				if b := p.assign(h); b != nil {
					if b.v6 != h {
						t.Error("another's binding")
						return
					}
					b.touch()
				}
				if b := p.find6(h); b != nil && b.v6 != h {
					t.Error("another's binding")
					return
				}
				if b := p.find4(p.base + r.Uint32N(256)); b != nil {
					b.touch()
				}
			}
		})
	}
	wg.Go(func() {
		for i := range 50 {
			p.Sweep()
			p.Reserve([]netip.Prefix{netip.PrefixFrom(addr4(p.base+uint32(i)), 32)})
			var b bytes.Buffer
			p.WriteTo(&b)
		}
	})
	wg.Wait()
}
