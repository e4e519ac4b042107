package fastpath

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
	"signalbox.example/internal/vectors"
	"signalbox.example/nat64"
)

// feature is the word for tests that load programs into the kernel.
const feature = "bpf"

// crossConfig is the configuration of crosscheck-siit.jsonl.
func crossConfig(t testing.TB) nat64.Config {
	t.Helper()
	prefix, err := nat64.ParsePrefix("2001:db8:64::/96")
	if err != nil {
		t.Fatal(err)
	}
	return nat64.Config{
		Prefix: prefix,
		EAM: []nat64.EAM{
			{V6: netip.MustParsePrefix("2001:db8:c::/120"), V4: netip.MustParsePrefix("10.64.0.0/24")},
			{V6: netip.MustParsePrefix("2001:db8:aaaa::/120"), V4: netip.MustParsePrefix("192.0.2.0/24")},
		},
		RFC6791v4: netip.MustParsePrefix("203.0.113.8/32"),
		Own4:      netip.MustParseAddr("198.51.100.1"), Own6: netip.MustParseAddr("2001:db8:1c0:2:1::"),
		ErrorRate: -1,
	}
}

// runner runs packets through the kernel's copy of the program.
type runner struct {
	t      testing.TB
	tables *tableSet
	prog   *ebpf.Program
	hits   *ebpf.Map
	out    []byte
}

func newRunner(t testing.TB, cfg nat64.Config, change func(*Config)) *runner {
	t.Helper()
	need.Root(t, feature)
	if err := Supported(); err != nil {
		need.Missing(t, feature, err.Error())
	}
	r := &runner{t: t, out: make([]byte, 1<<16)}
	var err error
	if r.tables, err = newTables(cfg, 4096); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.tables.close)
	if err := r.tables.syncPools(); err != nil {
		t.Fatal(err)
	}
	ids, err := newMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: idCounters})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ids.Close() })
	if r.hits, err = newMap(&ebpf.MapSpec{Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: uint32(numSlots)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.hits.Close() })
	c := FromTranslator(cfg)
	c.EAMDestinations = true
	if change != nil {
		change(&c)
	}
	if r.prog, err = loadProgram(c, r.tables, ids, r.hits); err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() { r.prog.Close() })
	return r
}

// run sends an IP packet through the program as an Ethernet frame. It returns
// nil when the program left the packet to the stack, after checking that it
// is unmodified.
func (r *runner) run(p []byte) []byte {
	r.t.Helper()
	frame := make([]byte, ethernetLen, ethernetLen+len(p))
	copy(frame, "\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02")
	binary.BigEndian.PutUint16(frame[12:], 0x0800)
	if p[0]>>4 == 6 {
		binary.BigEndian.PutUint16(frame[12:], 0x86dd)
	}
	frame = append(frame, p...)
	o := ebpf.RunOptions{Data: frame, DataOut: r.out, Repeat: 1}
	var verdict uint32
	for {
		var err error
		if verdict, err = r.prog.Run(&o); err == nil {
			break
		} else if !errors.Is(err, unix.EINTR) {
			r.t.Fatalf("run %.160x: %v", p, err)
		}
		o.DataOut = r.out
	}
	switch int32(verdict) {
	case actUnspec:
		if !bytes.Equal(o.DataOut, frame) {
			r.t.Fatalf("a packet was handed back modified:\n in %.160x\nout %.160x", frame, o.DataOut)
		}
		return nil
	case actOK:
		if want := binary.BigEndian.Uint16(o.DataOut[12:]); (want == 0x86dd) != (o.DataOut[14]>>4 == 6) {
			r.t.Fatalf("type %#x on %.160x", want, o.DataOut)
		}
		return bytes.Clone(o.DataOut[ethernetLen:])
	}
	r.t.Fatalf("verdict %d for %.160x", int32(verdict), p)
	return nil
}

// reference translates with the library and undoes its decrement of the hop
// limit, which the stack does for the program.
func reference(t testing.TB, tr *nat64.Translator, s *nat64.Scratch, p []byte, decrement bool) (out []byte, res nat64.Result) {
	buf := make([]byte, nat64.Headroom+len(p))
	copy(buf[nat64.Headroom:], p)
	res = tr.Translate(s, buf, nat64.Headroom, len(p))
	if res.Verdict != nat64.Forward || len(res.More) > 0 {
		return nil, res
	}
	out = bytes.Clone(res.Packet)
	if !decrement {
		if out[0]>>4 == 4 {
			out[8]++
			fixHeader(out)
		} else {
			out[7]++
		}
	}
	return out, res
}

// fixHeader computes an IPv4 header checksum.
func fixHeader(p []byte) {
	p[10], p[11] = 0, 0
	binary.BigEndian.PutUint16(p[10:], ^sum(p[:20], 0))
}

// sum is the Internet checksum's sum, folded.
func sum(b []byte, start uint32) uint16 {
	s := start
	for i, x := range b {
		if i&1 == 0 {
			s += uint32(x) << 8
		} else {
			s += uint32(x)
		}
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// same compares what the program made with what the library made, but for the
// IPv4 identification (which means something only without DF, and must not be
// zero then) and the header checksum, which must fit. Link padding, which the
// stack cuts off behind the program, does not count.
func same(a, b []byte) bool {
	if len(b) == 0 || len(a) < len(b) {
		return false
	}
	a = a[:len(b)]
	a, b = bytes.Clone(a), bytes.Clone(b)
	if a[0]>>4 == 4 && b[0]>>4 == 4 {
		if sum(a[:20], 0) != 0xffff || sum(b[:20], 0) != 0xffff || a[6]&0x40 == 0 && a[4]|a[5] == 0 {
			return false
		}
		for _, p := range [][]byte{a, b} {
			p[4], p[5], p[10], p[11] = 0, 0, 0, 0
		}
	}
	return bytes.Equal(a, b)
}

func TestIntegrationCrossCheck(t *testing.T) {
	need.Asked(t, feature)
	cfg := crossConfig(t)
	tr, err := nat64.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, cfg, nil)
	var s nat64.Scratch
	fast, slow := 0, 0
	for _, line := range vectors.Lines(t, "nat64/crosscheck-siit.jsonl") {
		var row struct{ Name, In string }
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		p, err := hex.DecodeString(row.In)
		if err != nil {
			t.Fatal(err)
		}
		got := r.run(p)
		if got == nil {
			slow++
			continue
		}
		fast++
		if want, res := reference(t, tr, &s, p, false); !same(got, want) {
			t.Errorf("%s: %v\n in %.160x\ngot %.160x\nwant %.160x", row.Name, res.Reason, p, got, want)
		}
	}
	t.Logf("%d translated, %d handed back unmodified", fast, slow)
	if fast < 10 {
		t.Errorf("only %d packets went fast", fast)
	}
}

// flow makes random packets, most of them simple and valid.
type flow struct {
	r          *rand.Rand
	in6, out6  []netip.Addr // sources and destinations of IPv6
	in4, out4  []netip.Addr
	maxPayload int
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// packet makes a packet and says whether it is IPv6.
func (f *flow) packet() []byte {
	r := f.r
	n := r.IntN(f.maxPayload)
	if r.IntN(4) == 0 {
		n = r.IntN(64)
	}
	six := r.IntN(2) == 0
	var l4 []byte
	proto := pick(r, []byte{6, 17, 17, 1})
	if six && proto == 1 {
		proto = 58
	}
	switch proto {
	case 6:
		l4 = make([]byte, 20+n)
		l4[12] = 5 << 4
	case 17:
		l4 = make([]byte, 8+n)
		binary.BigEndian.PutUint16(l4[4:], uint16(len(l4)))
	default:
		l4 = make([]byte, 8+n)
	}
	for i := range l4 {
		if proto == 17 && (i == 4 || i == 5) || proto == 6 && i == 12 {
			continue
		}
		l4[i] = byte(r.Uint32())
	}
	var p []byte
	var pseudo uint32
	var field int
	if six {
		src, dst := pick(r, f.in6).As16(), pick(r, f.out6).As16()
		p = make([]byte, 40, 40+len(l4))
		binary.BigEndian.PutUint32(p, 6<<28|r.Uint32()>>4)
		binary.BigEndian.PutUint16(p[4:], uint16(len(l4)))
		p[6], p[7] = proto, byte(1+r.IntN(255))
		copy(p[8:], src[:])
		copy(p[24:], dst[:])
		pseudo = uint32(sum(p[8:40], 0)) + uint32(len(l4)) + uint32(proto)
		if proto == 58 {
			l4[0], l4[1] = 128+byte(r.IntN(2)), 0
		}
	} else {
		src, dst := pick(r, f.in4).As4(), pick(r, f.out4).As4()
		p = make([]byte, 20, 20+len(l4))
		p[0], p[1] = 0x45, byte(r.Uint32())
		binary.BigEndian.PutUint16(p[2:], uint16(20+len(l4)))
		binary.BigEndian.PutUint16(p[4:], uint16(r.Uint32()))
		p[6] = byte(r.IntN(2)) << 6 // DF or not
		p[8], p[9] = byte(1+r.IntN(255)), proto
		copy(p[12:], src[:])
		copy(p[16:], dst[:])
		fixHeader(p)
		pseudo = uint32(sum(p[12:20], 0)) + uint32(len(l4)) + uint32(proto)
		if proto == 1 {
			l4[0], l4[1], pseudo = 8*byte(r.IntN(2)), 0, 0
		}
	}
	switch proto {
	case 6:
		field = 16
	case 17:
		field = 6
	default:
		field = 2
	}
	l4[field], l4[field+1] = 0, 0
	c := ^sum(l4, pseudo)
	if proto == 17 && c == 0 {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(l4[field:], c)
	return append(p, l4...)
}

// spoil breaks a packet in one of the ways that make it special.
func (f *flow) spoil(p []byte) []byte {
	r := f.r
	p = bytes.Clone(p)
	switch r.IntN(8) {
	case 0: // any octet of the headers
		p[r.IntN(min(len(p), 60))] = byte(r.Uint32())
	case 1:
		p[r.IntN(min(len(p), 60))] ^= 1 << r.IntN(8)
	case 2:
		p = p[:1+r.IntN(len(p))]
	case 3: // trailing octets
		p = append(p, make([]byte, r.IntN(20))...)
	case 4: // no UDP checksum
		if p[0]>>4 == 6 && len(p) > 47 {
			p[46], p[47] = 0, 0
		} else if len(p) > 27 {
			p[26], p[27] = 0, 0
		}
	case 5: // a wrong transport checksum stays as wrong
		p[len(p)-1] ^= 0x55
	case 6: // fragment flags and offsets, with a header sum that fits
		if p[0]>>4 == 4 && len(p) >= 20 {
			binary.BigEndian.PutUint16(p[6:], uint16(r.Uint32()))
			fixHeader(p)
		} else if len(p) > 6 {
			p[6] = pick(r, []byte{0, 43, 44, 60, 51, 50, 135, 1, 132})
		}
	case 7: // an own address, a forbidden one, an EAM's from the other side
		if p[0]>>4 == 4 && len(p) >= 20 {
			a := netip.MustParseAddr(pick(r, []string{"198.51.100.1", "203.0.113.8", "127.0.0.1", "0.1.2.3", "224.0.0.1", "255.255.255.255", "10.64.0.9", "192.0.2.77"})).As4()
			copy(p[12+4*r.IntN(2):], a[:])
			fixHeader(p)
		} else if len(p) >= 40 {
			a := netip.MustParseAddr(pick(r, []string{"2001:db8:1c0:2:1::", "fe80::1", "ff02::1", "::", "2001:db8:64::c633:6401", "2001:db8:64::a40:9", "2001:db8:64::7f00:1"})).As16()
			copy(p[8+16*r.IntN(2):], a[:])
		}
	}
	return p
}

func addrs(s ...string) (list []netip.Addr) {
	for _, a := range s {
		list = append(list, netip.MustParseAddr(a))
	}
	return list
}

func newFlow(seed uint64) *flow {
	return &flow{
		r:          rand.New(rand.NewPCG(seed, 64)),
		in6:        addrs("2001:db8:c::2", "2001:db8:c::ff", "2001:db8:aaaa::1", "2001:db8:64::505:505"),
		out6:       addrs("2001:db8:64::c633:6402", "2001:db8:64::808:808", "2001:db8:aaaa::9", "2001:db8:64::101:101"),
		in4:        addrs("198.51.100.2", "8.8.8.8", "192.0.2.1", "10.64.0.3"),
		out4:       addrs("10.64.0.2", "10.64.0.255", "192.0.2.9", "10.64.0.0"),
		maxPayload: 1500,
	}
}

// differential runs n random packets through program and library.
func differential(t *testing.T, cfg nat64.Config, f *flow, change func(*Config), n int) (fast int) {
	t.Helper()
	tr, err := nat64.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, cfg, change)
	var s nat64.Scratch
	for i := range n {
		p := f.packet()
		simple := true
		for f.r.IntN(3) == 0 {
			p, simple = f.spoil(p), false
		}
		// The kernel's test run refuses frames without a whole IP header.
		if len(p) < 20 || p[0]>>4 != 4 && (p[0]>>4 != 6 || len(p) < 40) {
			continue
		}
		got := r.run(p)
		if got == nil {
			continue
		}
		fast++
		if want, res := reference(t, tr, &s, p, false); !same(got, want) {
			t.Fatalf("packet %d (simple %v): the library says %v, %v\n  in %.160x\n got %.160x\nwant %.160x", i, simple, res.Verdict, res.Reason, p, got, want)
		}
	}
	return fast
}

// The number of packets is a million at least; FASTPATH_PACKETS raises it.
func TestIntegrationDifferential(t *testing.T) {
	need.Asked(t, feature)
	n := 1_000_000
	if s := os.Getenv("FASTPATH_PACKETS"); s != "" {
		v, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		n = v
	}
	fast := differential(t, crossConfig(t), newFlow(1), nil, n)
	t.Logf("%d packets, %d translated by the program, 0 differences", n, fast)
	if fast < n/4 {
		t.Errorf("only %d of %d went fast", fast, n)
	}
}

// Every length of prefix, unequal suffixes, other MTUs and policies.
func TestIntegrationDifferentialConfigurations(t *testing.T) {
	need.Asked(t, feature)
	for i, prefix := range []string{"2001:db8::/32", "2001:db8:100::/40", "2001:db8:122::/48", "2001:db8:122:300::/56", "2001:db8:122:344::/64", "2001:db8:122:344::/96", "64:ff9b::/96"} {
		t.Run(prefix, func(t *testing.T) {
			p, err := nat64.ParsePrefix(prefix)
			if err != nil {
				t.Fatal(err)
			}
			pfx := func(s string) netip.Prefix { return netip.MustParsePrefix(s) }
			cfg := nat64.Config{
				Prefix: p, ErrorRate: -1, ResetTOS: i%2 == 1, MTU4: 1400, MTU6: 1420, StrictFragmentHeader: i%4 == 2, LowestIPv6MTU: 1300, Own4: netip.MustParseAddr("203.0.113.1"),
				Hairpin: []nat64.Hairpin{nat64.HairpinIntrinsic, nat64.HairpinSimple, nat64.HairpinNone}[i%3],
				EAM: []nat64.EAM{
					{V6: pfx("3fff:c::/120"), V4: pfx("5.64.0.0/24")},
					{V6: pfx("3fff:c::40/124"), V4: pfx("5.65.0.0/28")}, // inside the first
					{V6: pfx("3fff:d::/64"), V4: pfx("5.66.0.0/20")},    // longer suffix than IPv4's
					{V6: pfx("3fff:e000::/40"), V4: pfx("5.67.0.0/24")}, // suffix in the high half
					{V6: pfx("3fff:f:0:f000::/60"), V4: pfx("5.68.0.0/24")},
					{V6: pfx("3fff:a::1/128"), V4: pfx("5.69.0.1/32")},
				},
			}
			if i%2 == 1 { // an entry inside the prefix comes first
				cfg.EAM = append(cfg.EAM, nat64.EAM{V6: netip.PrefixFrom(p.Embed(netip.MustParseAddr("9.8.7.6")), 128), V4: pfx("5.70.0.1/32")})
			}
			f := newFlow(uint64(100 + i))
			f.in6 = addrs("3fff:c::1", "3fff:c::44", "3fff:d:0:0:1230::", "3fff:d:0:0:1230::77", "3fff:e045::", "3fff:e045::9", "3fff:f:0:f7f0::", "3fff:a::1", "3fff:a::2", p.Embed(netip.MustParseAddr("9.9.9.9")).String())
			f.out6 = nil
			for _, a := range []string{"8.8.8.8", "9.8.7.6", "10.1.2.3", "203.0.113.1", "5.64.0.7", "127.1.1.1", "240.0.0.1", "100.64.0.1"} {
				f.out6 = append(f.out6, p.Embed(netip.MustParseAddr(a)))
			}
			f.out6 = append(f.out6, addrs("3fff:c::9", "3fff:d:0:0:1230::")...)
			f.in4 = addrs("8.8.8.8", "9.9.9.9", "10.1.2.3", "192.0.2.4", "5.64.0.9", "5.66.1.2", "203.0.113.1", "100.64.0.1")
			f.out4 = addrs("5.64.0.1", "5.65.0.4", "5.66.1.35", "5.67.0.9", "5.68.0.1", "5.69.0.1", "8.8.8.8", "203.0.113.1")
			if fast := differential(t, cfg, f, nil, 60_000); fast < 3000 {
				t.Errorf("only %d packets went fast", fast)
			}
		})
	}
}

// Every value of a word of payload, both ways: the checksum never becomes one
// that means "none".
func TestIntegrationEveryPayloadWord(t *testing.T) {
	need.Asked(t, feature)
	cfg := crossConfig(t)
	r := newRunner(t, cfg, nil)
	f := newFlow(7)
	f.maxPayload = 2
	for _, six := range []bool{true, false} {
		var p []byte
		for p == nil || p[0]>>4 == 6 != six || six && p[6] != 17 || !six && p[9] != 17 || len(p) > 60 || six && p[7] < 2 || !six && p[8] < 2 ||
			six && (p[23] != 2 || p[39] != 2) || !six && (p[15] != 2 || p[19] != 2) {
			p = f.packet()
		}
		at, src := 20, 12
		if six {
			at, src = 40, 8
		}
		p = append(p[:at+8], 0, 0)
		binary.BigEndian.PutUint16(p[at+4:], 10)
		if six {
			binary.BigEndian.PutUint16(p[4:], 10)
		} else {
			binary.BigEndian.PutUint16(p[2:], 30)
			fixHeader(p)
		}
		full := 0
		for w := range 1 << 16 {
			binary.BigEndian.PutUint16(p[at+8:], uint16(w))
			p[at+6], p[at+7] = 0, 0
			c := ^sum(p[at:], uint32(sum(p[src:at], 0))+10+17)
			if c == 0 {
				c = 0xffff
			}
			binary.BigEndian.PutUint16(p[at+6:], c)
			got := r.run(p)
			if got == nil {
				t.Fatalf("word %#x was not translated: %x", w, p)
			}
			at2, src2 := 40, 8
			if six {
				at2, src2 = 20, 12
			}
			field := binary.BigEndian.Uint16(got[at2+6:])
			if field == 0xffff {
				full++
			}
			if field == 0 || sum(got[at2:], uint32(sum(got[src2:at2], 0))+10+17) != 0xffff {
				t.Fatalf("word %#x: checksum %#x in %x", w, field, got)
			}
		}
		if full == 0 {
			t.Error("0xffff never came up")
		}
	}
}

func TestIntegrationPoolBindings(t *testing.T) {
	need.Asked(t, feature)
	pool, err := nat64.NewPool(nat64.PoolOptions{V4: netip.MustParsePrefix("10.64.0.0/24")})
	if err != nil {
		t.Fatal(err)
	}
	cfg := nat64.Config{Prefix: crossConfig(t).Prefix, Pools: []*nat64.Pool{pool}, Own4: netip.MustParseAddr("10.64.0.1")}
	tr, err := nat64.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, cfg, nil)
	f := newFlow(3)
	f.in6, f.out6 = addrs("2001:db8:1::2"), addrs("2001:db8:64::808:808")
	var p []byte
	for p == nil || p[0]>>4 != 6 || p[7] < 2 || len(p) > 1200 {
		p = f.packet()
	}
	if r.run(p) != nil {
		t.Fatal("a host without binding was translated by the program")
	}
	var s nat64.Scratch
	want, res := reference(t, tr, &s, p, false) // makes the binding
	if want == nil {
		t.Fatal(res.Reason)
	}
	if err := r.tables.syncPools(); err != nil {
		t.Fatal(err)
	}
	if got := r.run(p); !same(got, want) {
		t.Fatalf("got %.160x, want %.160x", got, want)
	}
	var used uint32
	v4, _ := pool.Lookup4(f.in6[0])
	slot := r.tables.bound[v4].slot
	if err := r.tables.used.Lookup(slot, &used); err != nil || used != 1 {
		t.Errorf("use of slot %d: %d, %v", slot, used, err)
	}
	r.tables.takeUses()
	if err := r.tables.used.Lookup(slot, &used); err != nil || used != 0 {
		t.Errorf("after taking: %d, %v", used, err)
	}
	// A reservation ends the binding; the program must forget it.
	pool.Reserve([]netip.Prefix{netip.PrefixFrom(v4, 32)})
	if err := r.tables.syncPools(); err != nil {
		t.Fatal(err)
	}
	if got := r.run(p); got != nil {
		t.Errorf("a binding that ended still translates: %x", got)
	}
	if len(r.tables.bound) != 0 || len(r.tables.free) != 4096 {
		t.Errorf("%d bound, %d free", len(r.tables.bound), len(r.tables.free))
	}
}

// A host that two pools know, as it moved or their files say so, does not stop
// the tables from following the pools when it is gone.
func TestIntegrationHostOfTwoPools(t *testing.T) {
	need.Asked(t, feature)
	host := "2001:db8:1::2"
	cfg := nat64.Config{Prefix: crossConfig(t).Prefix, Own4: netip.MustParseAddr("198.51.100.1")}
	for _, v4 := range []string{"10.64.0", "10.65.0"} {
		pool, err := nat64.NewPool(nat64.PoolOptions{V4: netip.MustParsePrefix(v4 + ".0/24"), Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := pool.LoadFrom(strings.NewReader(v4 + ".7 " + host + " 1799999000\n")); n != 1 {
			t.Fatal(n, err)
		}
		cfg.Pools = append(cfg.Pools, pool)
	}
	r := newRunner(t, cfg, nil)
	if len(r.tables.bound) != 2 {
		t.Fatalf("%d bound", len(r.tables.bound))
	}
	for i, left := range []int{1, 0} {
		cfg.Pools[i].Reserve([]netip.Prefix{cfg.Pools[i].V4()})
		if err := r.tables.syncPools(); err != nil || len(r.tables.bound) != left {
			t.Errorf("pool %d: %d bound, %v", i, len(r.tables.bound), err)
		}
	}
	if len(r.tables.free) != 4096 {
		t.Errorf("%d slots free", len(r.tables.free))
	}
}

// What the translator asks before its pools comes first here, too, for hosts
// that have an address of a pool since before, or from a file: the EAM table,
// also by entries for many hosts, and the prefix. It stays when the binding ends.
func TestIntegrationMappedHostOfPool(t *testing.T) {
	need.Asked(t, feature)
	pfx := netip.MustParsePrefix
	for i, prefix := range []string{"2001:db8:64::/96", "64:ff9b::/96", "2001:db8:100::/40"} {
		p, err := nat64.ParsePrefix(prefix)
		if err != nil {
			t.Fatal(err)
		}
		pool, err := nat64.NewPool(nat64.PoolOptions{V4: pfx("5.64.0.0/24")})
		if err != nil {
			t.Fatal(err)
		}
		embedded := p.Embed(netip.MustParseAddr("9.9.9.1")).String()
		hosts := []string{"3fff:1::1", "3fff:1::2", "3fff:1::3", "3fff:e::5", embedded}
		for n, h := range hosts {
			if taken, err := pool.LoadFrom(strings.NewReader(fmt.Sprintf("5.64.0.%d %s %d\n", n+10, h, time.Now().Unix()))); taken != 1 {
				t.Fatal(err)
			}
		}
		cfg := nat64.Config{Prefix: p, Pools: []*nat64.Pool{pool}, Own4: netip.MustParseAddr("5.64.0.1"), ErrorRate: -1, EchoReply: true,
			RFC6791v4: pfx("5.64.0.128/28"), Hairpin: nat64.Hairpin(i), UDPZero: nat64.ZeroChecksum(i),
			EAM: []nat64.EAM{{V6: pfx("3fff:e::/120"), V4: pfx("5.65.0.0/24")}, {V6: pfx("3fff:1::2/128"), V4: pfx("5.66.0.1/32")},
				{V6: pfx("3fff:f::/112"), V4: pfx("5.64.0.32/28")}}}
		f := newFlow(uint64(50 + i))
		f.in6 = addrs(append(hosts, "3fff:f::1", "3fff:1::9")...)
		f.out6, f.in4 = addrs("3fff:1::1", "3fff:e::7", "3fff:f::9"), nil
		for _, s := range []string{"8.8.8.8", "5.64.0.10", "5.64.0.11", "5.64.0.13", "5.64.0.1", "5.64.0.129", "5.64.0.33", "5.65.0.9", "5.66.0.1", "10.0.0.1", "5.64.0.200"} {
			a := netip.MustParseAddr(s)
			f.in4, f.out6 = append(f.in4, a), append(f.out6, p.Embed(a))
		}
		f.out4 = f.in4
		if fast := differential(t, cfg, f, nil, 60_000); fast < 4_000 {
			t.Errorf("%s: only %d packets went fast", prefix, fast)
		}
		r := newRunner(t, cfg, nil)
		pool.Reserve([]netip.Prefix{pool.V4()})
		if err := r.tables.syncPools(); err != nil || len(r.tables.bound) != 0 {
			t.Errorf("%d bound, %v", len(r.tables.bound), err)
		}
		var v [valueLen64]byte
		if err := r.tables.six.Lookup(appendKey(nil, pfx("3fff:1::2/128")), &v); err != nil {
			t.Errorf("the mapping of a host went with its binding: %v", err)
		}
	}
}

// A super-packet is judged by its segments, and its identification advances
// by their number.
func TestIntegrationSuperPackets(t *testing.T) {
	need.Asked(t, feature)
	r := newRunner(t, crossConfig(t), nil)
	f := newFlow(9)
	f.maxPayload = 3400
	f.in6, f.out6 = addrs("2001:db8:c::2"), addrs("2001:db8:64::808:808")
	var p []byte
	for p == nil || p[0]>>4 != 6 || p[6] != 6 || p[7] < 2 || len(p) < 3000 {
		p = f.packet()
	}
	if got := r.run(p); got != nil {
		t.Error("a jumbo packet was not left to the slow path")
	}
	for _, c := range []struct {
		size uint32
		fast bool
		df   byte
	}{{1428, true, 0x40}, {1460, true, 0x40}, {1461, false, 0}, {1220, true, 0}, {1221, true, 0x40}} {
		frame := append([]byte("\x02\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x02\x86\xdd"), p...)
		ctx := make([]byte, 192)
		binary.NativeEndian.PutUint32(ctx[ctxGSOSize:], c.size)
		binary.NativeEndian.PutUint32(ctx[ctxGSOSegs:], uint32(len(p)/int(c.size)+1))
		o := ebpf.RunOptions{Data: frame, DataOut: make([]byte, len(frame)+64), Context: ctx, Repeat: 1}
		verdict, err := r.prog.Run(&o)
		if err != nil {
			t.Fatal(err)
		}
		if (int32(verdict) == actOK) != c.fast {
			t.Errorf("segments of %d: verdict %d", c.size, int32(verdict))
		} else if c.fast && o.DataOut[ethernetLen+6]&0x40 != c.df {
			t.Errorf("segments of %d: flags %#x", c.size, o.DataOut[ethernetLen+6])
		}
	}
}

func TestIntegrationNoLinkHeader(t *testing.T) {
	need.Asked(t, feature)
	// The test run always has an Ethernet header; loading proves the verifier
	// takes the variants.
	newRunner(t, crossConfig(t), func(c *Config) { c.NoLinkHeader = true })
	newRunner(t, crossConfig(t), func(c *Config) { c.Neighbour4, c.Neighbour6 = 1, 1 })
}

// BenchmarkProgram reports the kernel's own time for a run of the program.
func BenchmarkProgram(b *testing.B) {
	need.Asked(b, feature)
	for _, n := range []int{1, 10_000, 1_000_000} {
		cfg := crossConfig(b)
		for i := range n {
			v4 := netip.AddrFrom4([4]byte{20 + byte(i>>24), byte(i >> 16), byte(i >> 8), byte(i)})
			v6 := [16]byte{0x20, 1, 0xd, 0xb8, 0xe, 0xa}
			binary.BigEndian.PutUint32(v6[12:], uint32(i))
			cfg.EAM = append(cfg.EAM, nat64.EAM{V4: netip.PrefixFrom(v4, 32), V6: netip.PrefixFrom(netip.AddrFrom16(v6), 128)})
		}
		r := newRunner(b, cfg, nil)
		f := newFlow(5)
		f.in6, f.out6 = addrs("2001:db8:ea::"), addrs("2001:db8:64::808:808")
		f.in4, f.out4 = addrs("8.8.8.8"), addrs("20.0.0.0")
		for _, six := range []bool{true, false} {
			var p []byte
			for p == nil || p[0]>>4 == 6 != six || len(p) > 100 || six && (p[6] != 17 || p[7] < 2) || !six && (p[9] != 17 || p[8] < 2) {
				p = f.packet()
			}
			// With a hop limit of 1 the program does both look-ups and hands
			// the packet back, so that it can run again.
			if six {
				p[7] = 1
			} else {
				p[8] = 1
				fixHeader(p)
			}
			frame := append(make([]byte, 12, 200), 0x86, 0xdd)
			if !six {
				frame = append(make([]byte, 12, 200), 0x08, 0x00)
			}
			frame = append(frame, p...)
			b.Run(fmt.Sprintf("eam=%d/six=%v", n, six), func(b *testing.B) {
				_, d, err := r.prog.Benchmark(frame, b.N, func() {})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(d.Nanoseconds()), "ns/run")
			})
		}
	}
}
