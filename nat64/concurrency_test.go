package nat64

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

// Configurations are swapped under traffic: every packet is translated by one
// of them as a whole, none is lost, and the counters agree.
func TestUpdateUnderLoad(t *testing.T) {
	configs := make([]Config, 2)
	for i := range configs {
		configs[i] = Config{
			Prefix: must(ParsePrefix(fmt.Sprintf("2001:db8:%d::/96", 64+i))),
			EAM:    []EAM{{netip.MustParsePrefix(fmt.Sprintf("2001:db8:c:%d::/120", i)), netip.MustParsePrefix("10.64.0.0/24")}},
			Own4:   netip.MustParseAddr("198.51.100.1"),
		}
	}
	tr := must(New(configs[0]))
	m := testMaker()
	in := m.v4sized(netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("10.64.0.2"), true, 64, true)
	const senders, packets = 3, 4000
	var done atomic.Bool
	var wg, updates sync.WaitGroup
	for range senders {
		wg.Go(func() {
			var s Scratch
			buf := make([]byte, Headroom+len(in))
			for range packets {
				copy(buf[Headroom:], in)
				r := tr.Translate(&s, buf, Headroom, len(in))
				if r.Verdict != Forward {
					t.Errorf("%v %v", r.Verdict, r.Reason)
					return
				}
				src, dst := netip.AddrFrom16([16]byte(r.Packet[8:24])), netip.AddrFrom16([16]byte(r.Packet[24:40]))
				one := configs[0].Prefix.Contains(src) && configs[0].EAM[0].V6.Contains(dst)
				two := configs[1].Prefix.Contains(src) && configs[1].EAM[0].V6.Contains(dst)
				if one == two {
					t.Errorf("%v to %v: a mixture", src, dst)
					return
				}
				if err := judge(r.Packet); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	updates.Go(func() {
		for i := 0; !done.Load(); i++ {
			if err := tr.Update(configs[i&1]); err != nil {
				t.Error(err)
				return
			}
			if tr.Update(Config{}) == nil {
				t.Error("an empty configuration was accepted")
				return
			}
			tr.Stats()
		}
	})
	wg.Wait()
	done.Store(true)
	updates.Wait()
	if s := tr.Stats(); s.Count(Translated46) != senders*packets || s.Dropped() != 0 {
		t.Errorf("%d translated, %d dropped", s.Count(Translated46), s.Dropped())
	}
}

// Counters are exact however many Scratches there are, those that have
// counters of their own and those that share; what is read meanwhile never
// goes back.
func TestCountersOfManyScratches(t *testing.T) {
	tr := must(New(crossConfig()))
	const scratches, packets = ownShards + 2*sharedShards + 3, 300
	var wg, reader sync.WaitGroup
	var done atomic.Bool
	reader.Go(func() {
		var last uint64
		for !done.Load() {
			n := tr.Stats().Count(NotIP)
			if n < last || n > scratches*packets {
				t.Errorf("%d after %d", n, last)
				return
			}
			last = n
		}
	})
	for range scratches {
		wg.Go(func() {
			var s Scratch
			buf := make([]byte, Headroom+1)
			for range packets {
				tr.Translate(&s, buf, Headroom, 1)
			}
		})
	}
	wg.Wait()
	done.Store(true)
	reader.Wait()
	if n := tr.Stats().Count(NotIP); n != scratches*packets {
		t.Errorf("%d counted of %d", n, scratches*packets)
	}
	// Explain counts nothing and takes nobody's counters.
	tr = must(New(crossConfig()))
	for range ownShards + 1 {
		tr.Explain([]byte{0x45})
	}
	var s Scratch
	run(t, tr, &s, []byte{0})
	if s.shared || tr.Stats().Count(Truncated) != 0 || tr.Stats().Count(NotIP) != 1 {
		t.Errorf("shared %v, %+v", s.shared, tr.Stats())
	}
}

func TestStats(t *testing.T) {
	tr := must(New(crossConfig()))
	var s Scratch
	run(t, tr, &s, []byte{0x00})
	run(t, tr, &s, []byte{0x45})
	tr.Add(Translated64, 7)
	tr.Add(numReasons, 1)
	st := tr.Stats()
	if st.Count(NotIP) != 1 || st.Count(Truncated) != 1 || st.Count(Translated64) != 7 || st.Dropped() != 2 || st.Count(numReasons) != 0 {
		t.Errorf("%+v", st)
	}
	n := 0
	for r, c := range st.All() {
		if c != st.Count(r) {
			t.Error(r)
		}
		n++
	}
	for r := range Reasons() {
		if r.String() == "" || r.Rule() == "" || r.Section() == "" {
			t.Errorf("reason %d says nothing", r)
		}
		n--
	}
	if n != 0 {
		t.Errorf("%d reasons missed", n)
	}
}

// Identifications of one flow do not come again soon, and are never 0.
func TestIdentifications(t *testing.T) {
	tr := must(New(crossConfig()))
	seen := map[uint16]int{}
	var s [2]Scratch
	tr.adopt(&s[0])
	tr.adopt(&s[1])
	for i := range 65535 {
		id := tr.nextID(&s[i&1], 1, 2, 17, 1)
		if id == 0 {
			t.Fatal("identification 0")
		}
		if at, ok := seen[id]; ok && i-at < 60000 {
			t.Fatalf("%04x again after %d packets", id, i-at)
		}
		seen[id] = i
	}
}

// The packet path makes no garbage once the Scratch has grown.
func TestNoAllocations(t *testing.T) {
	cfg := crossConfig()
	pool := must(NewPool(PoolOptions{V4: netip.MustParsePrefix("10.65.0.0/24")}))
	cfg.Pools = []*Pool{pool}
	cfg.EAM = append(cfg.EAM, benchEAM(1000)...)
	tr := must(New(cfg))
	m := testMaker()
	host4, host6 := netip.MustParseAddr("10.64.0.2"), netip.MustParseAddr("2001:db8:c::2")
	far4 := netip.MustParseAddr("198.51.100.2")
	far6 := cfg.Prefix.Embed(far4)
	limit1 := m.v6sized(host6, far6, true, 8)
	limit1[7] = 1
	big := m.v6sized(host6, far6, false, 60000)
	h := partial(big, VirtioGSOTCPv6, 1428)
	bigDF0 := m.v4sized(far4, host4, true, 30000, false)
	hDF0 := partial(bigDF0, VirtioGSOUDPL4, 1428)
	for _, x := range []struct {
		name string
		in   []byte
		h    *VirtioHdr
	}{
		{"udp64", m.v6sized(host6, far6, true, 1200), nil},
		{"tcp46", m.v4sized(far4, host4, false, 1200, true), nil},
		{"pool64", m.v6sized(netip.MustParseAddr("2001:db8:77::1"), far6, true, 100), nil},
		{"fragments46", m.v4sized(far4, host4, true, 1400, false), nil},
		{"error46", m.icmp4(far4, host4, 3, 1, append(make([]byte, 4), m.v4sized(host4, far4, true, 100, true)...)), nil},
		{"error64", m.icmp6(host6, far6, 3, 0, append(make([]byte, 4), m.v6sized(far6, host6, true, 100)...)), nil},
		{"hop limit", limit1, nil},
		{"hairpin", m.v6sized(host6, cfg.Prefix.Embed(netip.MustParseAddr("192.0.2.9")), true, 8), nil},
		{"super-packet", big, h},
		{"super-packet in fragments", bigDF0, hDF0},
		{"no mapping", m.v6sized(host6, netip.MustParseAddr("2001:db8:ffff::1"), true, 8), nil},
	} {
		var s Scratch
		buf := make([]byte, Headroom+len(x.in))
		once := func() {
			copy(buf[Headroom:], x.in)
			if x.h != nil {
				g := *x.h
				tr.TranslateOffload(&s, &g, buf, Headroom, len(x.in))
				return
			}
			tr.Translate(&s, buf, Headroom, len(x.in))
		}
		for range 10 {
			once()
		}
		if n := testing.AllocsPerRun(50, once); n != 0 {
			t.Errorf("%s: %v allocations", x.name, n)
		}
	}
}
