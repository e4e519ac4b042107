package nat64

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"testing"

	"signalbox.example/internal/vectors"

	"signalbox.example/nat64/internal/checksum"
)

// fuzzTranslators are configurations that together reach all branches.
func fuzzTranslators(t testing.TB) []*Translator {
	base := hexConfig()
	p := netip.MustParsePrefix
	pooled := base
	pooled.Pools = []*Pool{must(NewPool(PoolOptions{V4: p("10.200.0.0/28")}))}
	pooled.UDPZero, pooled.EchoReply, pooled.OtherChecksums = ZeroCompute, true, true
	known := base
	known.Prefix, known.Hairpin, known.UDPZero = WellKnownPrefix(), HairpinSimple, ZeroForward
	known.MTU4, known.MTU6, known.LowestIPv6MTU = 68, 1280, 1280
	odd := base
	odd.Prefix, odd.StrictFragmentHeader, odd.ResetTOS = must(ParsePrefix("2001:db8::/40")), true, true
	odd.RFC6791v4, odd.RFC6791v6 = p("203.0.113.64/27"), p("2001:db8:6791::/96")
	odd.EAM = []EAM{{p("2001:db8:64::/104"), p("192.0.0.0/8")}}
	none := Config{EAM: base.EAM}
	sorah := base // the prefixes of the seeds
	sorah.Prefix = must(ParsePrefix("2001:db8:64::/96"))
	sorah.EAM, sorah.Hairpin = []EAM{{p("2001:db8:60::/96"), p("0.0.0.0/0")}}, HairpinNone
	var list []*Translator
	for _, c := range []Config{base, pooled, known, odd, none, sorah} {
		list = append(list, must(New(c)))
	}
	return list
}

// claim runs a packet through a translator and checks what must hold of any
// answer to any input.
func claim(t *testing.T, tr *Translator, s *Scratch, h *VirtioHdr, in []byte) {
	t.Helper()
	whole := h == nil
	if h == nil {
		h = &VirtioHdr{}
	}
	out, r := runOffload(t, tr, s, h, in)
	if (r.Verdict == Forward) != (r.Reason.Success() && r.Verdict != Reply && r.Verdict != Drop) {
		t.Fatalf("%v with %v", r.Verdict, r.Reason)
	}
	for _, o := range out {
		if len(o) < 20 || len(o) > 65535+40 {
			t.Fatalf("%d octets", len(o))
		}
		switch o[0] >> 4 {
		case 4:
			ihl := int(o[0]&15) * 4
			if ihl != 20 || int(be16(o[2:])) != len(o) || checksum.Sum(o[:20]) != 0xffff {
				t.Fatalf("%v: bad IPv4 header %x", r.Reason, o[:20])
			}
			if r.Verdict == Forward && len(o) > tr.snap.Load().mtu4 && h.GSOType == 0 {
				t.Fatalf("%v: %d octets", r.Reason, len(o))
			}
		case 6:
			if len(o) < 40 || int(be16(o[4:])) != len(o)-40 {
				t.Fatalf("%v: bad IPv6 header %x", r.Reason, o[:20])
			}
			if r.Verdict == Forward && r.Reason != Hairpinned && len(o) > tr.snap.Load().mtu6 && h.GSOType == 0 {
				t.Fatalf("%v: %d octets", r.Reason, len(o))
			}
		default:
			t.Fatalf("version %d", o[0]>>4)
		}
	}
	if !whole {
		return
	}
	// Explain tells the same and changes nothing.
	e := tr.Explain(in)
	if e.Reason != r.Reason && e.Reason != Translated64 && r.Reason != PoolExhausted {
		t.Fatalf("Explain says %v, Translate %v", e.Reason, r.Reason)
	}
	_ = e.String()
}

func seeds(t testing.TB) (list [][]byte) {
	for _, x := range hexCases {
		list = append(list, unhex(x.in))
	}
	m := testMaker()
	a, b := netip.MustParseAddr("10.64.0.2"), netip.MustParseAddr("198.51.100.2")
	for range 8 {
		list = append(list, m.v4(b, a, m.IntN(3)), m.icmpError(b, a, m.v4(a, b, m.IntN(3))))
	}
	return list
}

// The 359 seeds of another translator's fuzzing, broken and whole, through
// every configuration, each cut at every length too.
func TestFuzzSeeds(t *testing.T) {
	lines := vectors.Lines(t, "nat64/sorah-xlat-fuzz-corpus.txt")
	if len(lines) != 359 {
		t.Fatalf("%d seeds", len(lines))
	}
	trs := fuzzTranslators(t)
	var s Scratch
	translated := 0
	for _, l := range lines {
		in := unhex(l)
		for _, tr := range trs {
			claim(t, tr, &s, nil, in)
			step := 1
			if testing.Short() || len(in) > 200 {
				step = 7
			}
			for n := 0; n < len(in); n += step {
				runOffload(t, tr, &s, &VirtioHdr{}, in[:n])
			}
		}
		if _, r := run(t, trs[5], &s, in); r.Verdict == Forward {
			translated++
		}
	}
	if translated < 30 { // most are broken on purpose
		t.Errorf("%d of 359 seeds translated", translated)
	}
}

func FuzzTranslate(f *testing.F) {
	for _, p := range seeds(f) {
		f.Add(p)
	}
	for _, l := range []string{
		"6000000000272c4020010db80060000000000000c00002076e0130b80064000045000031efdeadbeffffffffffffff24efdeadbeefdeadbeefef6badbeefde9800004027c0200200300089fcdfafde",
		"6000000000003b4020010db8000c0000000000000000000220010db80064000000000000c0000209", // a hairpin of nothing
		"45000038c39800004001331cc0000207c00002080300f4ff000000004500001dc398000040013b38c0000208c0000208008afd1234abcdaf",
	} {
		f.Add(unhex(l))
	}
	trs := fuzzTranslators(f)
	var s Scratch
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 70000 {
			return
		}
		for _, tr := range trs {
			claim(t, tr, &s, nil, in)
		}
		// The same with checksums made right, which lets more through.
		for _, tr := range trs {
			claim(t, tr, &s, nil, repair(bytes.Clone(in)))
		}
	})
}

// repair makes lengths and checksums of a packet right as far as it can.
func repair(p []byte) []byte {
	switch {
	case len(p) >= 20 && p[0]>>4 == 4:
		put16(p[2:], uint16(min(len(p), 65535)))
		ihl := int(p[0]&15) * 4
		if ihl < 20 || ihl > len(p) {
			p[0], ihl = 0x45, 20
		}
		put16(p[10:], 0)
		put16(p[10:], ^checksum.Sum(p[:ihl]))
		if b := p[ihl:]; p[9] == 1 && len(b) >= 8 && len(p) <= 65535 {
			put16(b[2:], 0)
			put16(b[2:], ^checksum.Sum(b))
		}
	case len(p) >= 40 && p[0]>>4 == 6:
		put16(p[4:], uint16(min(len(p)-40, 65535)))
		if x, failure := walk(p); failure == 0 && x.next == 58 && len(p)-x.l4 >= 8 && len(p) <= 65575 {
			b := p[x.l4:]
			put16(b[2:], 0)
			put16(b[2:], ^checksum.Fold(pseudo(sumPair(load6(p[8:]), load6(p[24:])), len(b), 58)+uint64(checksum.Sum(b))))
		}
	}
	return p
}

func FuzzOffload(f *testing.F) {
	m := testMaker()
	a6 := netip.MustParseAddr("2001:db8:c::2")
	far4 := netip.MustParseAddr("198.51.100.2")
	far6 := must(ParsePrefix("2001:db8:64::/96")).Embed(far4)
	for _, udp := range []bool{false, true} {
		in := m.v6sized(a6, far6, udp, 100)
		gso := uint8(VirtioGSOTCPv6)
		if udp {
			gso = VirtioGSOUDPL4
		}
		b := make([]byte, VirtioHdrLen)
		partial(in, gso, 40).Encode(b)
		f.Add(b, in)
		in = m.v4sized(far4, netip.MustParseAddr("10.64.0.2"), udp, 100, udp)
		if !udp {
			gso = VirtioGSOTCPv4
		}
		partial(in, gso, 40).Encode(b)
		f.Add(bytes.Clone(b), in)
	}
	trs := fuzzTranslators(f)
	var s Scratch
	f.Fuzz(func(t *testing.T, header, in []byte) {
		var h VirtioHdr
		if len(in) > 66000 || h.Decode(header) != nil || len(in) > 2000 && h.GSOSize < 200 {
			return
		}
		for _, tr := range trs {
			g := h
			claim(t, tr, &s, &g, in)
		}
	})
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(`{"pool6":"2001:db8:100::/40","eam":[["2001:db8:3::/120","1.0.0.0/24"]],"rfc6791v4":"203.0.113.8","rfc6791v6":null,"lowest_ipv6_mtu":1280,"amend_udp_checksum_zero":false,"mtu_v6":1500,"mtu_v4":1500,"own_v4":"198.51.100.1","own_v6":"2001:db8:1c0:2:1::","hairpin":"simple","allow_non_global_wkp":true}`))
	f.Add([]byte(`{"eam":[["::/0"]]}`))
	packet, _ := hex.DecodeString("450000221234000040113420c63364020a4000020fa00035000e779268656c6c6f21")
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg, err := ParseConfig(text)
		if err != nil {
			return
		}
		tr, err := New(cfg)
		if err != nil {
			return
		}
		var s Scratch
		run(t, tr, &s, packet)
	})
}

func FuzzPoolFile(f *testing.F) {
	f.Add([]byte("# x\n192.168.255.9\t2001:db8::9\t1799999000\n192.168.255.9 2001:db8::9 -1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, _ := testPool(t, PoolOptions{V4: netip.MustParsePrefix("192.168.255.0/24")})
		n, _ := p.LoadFrom(bytes.NewReader(text))
		if n != p.Len() {
			t.Fatalf("%d taken, %d bindings", n, p.Len())
		}
		var b bytes.Buffer
		if _, err := p.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		q, _ := testPool(t, PoolOptions{V4: netip.MustParsePrefix("192.168.255.0/24")})
		if m, err := q.LoadFrom(&b); m != n || err != nil {
			t.Fatalf("%d of %d after a round trip: %v", m, n, err)
		}
	})
}
