package nat64

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/netip"
	"testing"

	"signalbox.example/nat64/internal/checksum"
)

// partial replaces a finished checksum by the pseudo-header's sum, as the
// kernel hands packets to a device, and returns the header to go with it.
func partial(p []byte, gso uint8, size int) *VirtioHdr {
	var l4 int
	var protocol uint8
	var sum uint64
	if p[0]>>4 == 4 {
		l4, protocol = int(p[0]&15)*4, p[9]
		sum = uint64(be32(p[12:])) + uint64(be32(p[16:]))
	} else {
		x, _ := walk(p)
		l4, protocol = x.l4, x.next
		sum = load6(p[8:]).sum() + load6(p[24:]).sum()
	}
	h := &VirtioHdr{Flags: VirtioNeedsChecksum, GSOType: gso, GSOSize: uint16(size), ChecksumStart: uint16(l4), ChecksumOffset: 6}
	h.HdrLen = uint16(l4 + 8)
	if protocol == 6 {
		h.ChecksumOffset = 16
		h.HdrLen = uint16(l4 + int(p[l4+12]>>4)*4)
	}
	put16(p[l4+int(h.ChecksumOffset):], checksum.Fold(pseudo(sum, len(p)-l4, protocol)))
	return h
}

// wire makes of a packet with an offload header what a device sends.
func wire(t *testing.T, h *VirtioHdr, p []byte) [][]byte {
	t.Helper()
	var l4 int
	var protocol uint8
	v6 := true
	if p[0]>>4 == 4 {
		l4, protocol, v6 = int(p[0]&15)*4, p[9], false
	} else {
		x, _ := walk(p)
		l4, protocol = x.l4, x.next
	}
	g := *h
	o, ok := g.check(p, l4, protocol, v6, false)
	if !ok {
		t.Fatalf("%+v does not fit %x", h, p[:min(len(p), 80)])
	}
	if !o.gso {
		p = bytes.Clone(p)
		if o.partial {
			g.complete(p, protocol)
		}
		return [][]byte{p}
	}
	if int(g.HdrLen) != l4+o.header {
		t.Errorf("HdrLen %d, headers are %d", g.HdrLen, l4+o.header)
	}
	var out [][]byte
	for i := range int(o.segs) {
		out = append(out, g.segment(nil, p, l4, o, i))
	}
	return out
}

// A super-packet translated as a whole must give, once segmented, the very
// packets that its segments give when translated one by one.
func TestSuperPackets(t *testing.T) {
	cfg := crossConfig()
	m := maker{rand.New(rand.NewPCG(5, 6))}
	host4, host6 := netip.MustParseAddr("10.64.0.77"), netip.MustParseAddr("2001:db8:c::4d")
	far4 := netip.MustParseAddr("198.18.1.2")
	far6 := cfg.Prefix.Embed(far4)
	var s Scratch
	rounds := 600
	if testing.Short() {
		rounds = 60
	}
	seen := map[Reason]int{}
	for i := range rounds {
		cfg.LowestIPv6MTU = 1280 + 110*(i&1)
		tr := must(New(cfg))
		size := []int{1428, 1200, 1398, 536, 1212}[m.IntN(5)]
		payload := m.IntN(65400)
		udp := m.IntN(2) == 0
		if udp {
			payload = min(payload, 60*size)
		}
		var in []byte
		v6 := m.IntN(2) == 0
		if v6 {
			in = m.v6sized(host6, far6, udp, payload)
		} else {
			in = m.v4sized(far4, host4, udp, payload, m.IntN(3) > 0)
		}
		gso := uint8(VirtioGSOTCPv4)
		switch {
		case udp:
			gso = VirtioGSOUDPL4
		case v6:
			gso = VirtioGSOTCPv6
		}
		if !udp && m.IntN(2) == 0 {
			gso |= VirtioGSOECN
		}
		h := partial(in, gso, size)
		var want [][]byte
		for _, w := range wire(t, h, in) {
			if err := judge(w); err != nil {
				t.Fatalf("segment of the input: %v", err)
			}
			out, _ := run(t, tr, &s, w)
			want = append(want, out...)
		}
		sent := len(wire(t, h, in))
		out, r := runOffload(t, tr, &s, h, in)
		seen[r.Reason]++
		if r.Verdict == Reply {
			if *h != (VirtioHdr{}) {
				t.Errorf("a reply with %+v", h)
			}
			out, want = out[:1], want[:1]
		} else if len(out) == 1 {
			out = wire(t, h, out[0])
		} else if *h != (VirtioHdr{}) {
			t.Errorf("%d packets with %+v", len(out), h)
		}
		// Identifications come from a counter; they must count up.
		for j := range out {
			if out[j][0]>>4 == 4 && r.Verdict == Forward {
				if r.Reason == Translated64 && j > 0 && be16(out[j][4:]) != be16(out[j-1][4:])+1 {
					t.Fatalf("identifications %x, %x", out[j-1][4:6], out[j][4:6])
				}
			}
			if err := judge(out[j]); err != nil {
				t.Fatalf("%v: %v", r.Reason, err)
			}
		}
		if len(out) != len(want) {
			t.Fatalf("%v, %d segments of %d: %d packets, want %d", r.Reason, sent, size, len(out), len(want))
		}
		for j := range out {
			var ignore []int
			if out[j][0]>>4 == 4 {
				ignore = []int{4, 5, 10, 11}
				if r.Reason == Translated64 && j == len(out)-1 {
					ignore = append(ignore, 6) // DF is that of the full segments
				}
			}
			if d := compare(out[j:j+1], want[j:j+1], ignore); d != "" {
				t.Fatalf("%v, %d of %d segments of %d: %.300s", r.Reason, j, sent, size, d)
			}
		}
	}
	for _, r := range []Reason{Translated46, Translated64, FragmentedV6} {
		if seen[r] == 0 {
			t.Errorf("no super-packet met %v", r)
		}
	}
	t.Log(seen)
}

func TestVirtioHdr(t *testing.T) {
	h := VirtioHdr{1, 2, 0x1234, 0x5678, 0x9abc, 0xdef0}
	b := make([]byte, VirtioHdrLen)
	h.Encode(b)
	var g VirtioHdr
	if err := g.Decode(b); err != nil || g != h {
		t.Errorf("%+v, %v", g, err)
	}
	if err := g.Decode(b[:9]); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

// Offload headers that do not fit their packets are refused, whatever they
// say, without touching anything.
func TestBadOffload(t *testing.T) {
	tr := must(New(crossConfig()))
	var s Scratch
	tcp := unhex("6b9000000018063f20010db8000c0000000000000000000220010db80064000000000000c6336402" + "0fa000500000000100000002501803e83d11000064617461")
	for _, h := range []VirtioHdr{
		{Flags: 1, ChecksumStart: 40, ChecksumOffset: 0xffff},
		{Flags: 1, ChecksumStart: 0xffff, ChecksumOffset: 16},
		{Flags: 1, ChecksumStart: 0, ChecksumOffset: 16},
		{Flags: 1, ChecksumStart: 40, ChecksumOffset: 16, GSOType: VirtioGSOTCPv6},               // size 0
		{Flags: 1, ChecksumStart: 40, ChecksumOffset: 16, GSOType: VirtioGSOTCPv4, GSOSize: 100}, // wrong family
		{Flags: 1, ChecksumStart: 40, ChecksumOffset: 16, GSOType: VirtioGSOUDPL4, GSOSize: 100}, // wrong protocol
		{Flags: 1, ChecksumStart: 40, ChecksumOffset: 16, GSOType: VirtioGSOUDP, GSOSize: 100},
		{Flags: 1, ChecksumStart: 40, ChecksumOffset: 16, GSOType: 77, GSOSize: 100},
		{GSOType: VirtioGSOTCPv6, GSOSize: 100}, // segments need their checksums made
	} {
		if _, r := runOffload(t, tr, &s, &h, bytes.Clone(tcp)); r.Reason != BadOffload {
			t.Errorf("%+v: %v", h, r.Reason)
		}
	}
}

// The ECN bit belongs to TCP. Beside UDP segmentation it is refused, and not
// taken for TCP when segments are made.
func TestBadOffloadOfUDP(t *testing.T) {
	tr := must(New(crossConfig()))
	var s Scratch
	in := testMaker().v6sized(netip.MustParseAddr("2001:db8:c::2"), netip.MustParseAddr("2001:db8:64::198.51.100.2"), true, 2)
	in[7] = 1 // an answer quotes one segment
	for _, gso := range []uint8{VirtioGSOUDPL4, VirtioGSOUDPL4 | VirtioGSOECN} {
		p := bytes.Clone(in)
		h := partial(p, gso, 1)
		out, r := runOffload(t, tr, &s, h, p)
		if r.Reason != HopLimit {
			t.Fatalf("%v", r.Reason)
		}
		// What does not fit its packet is quoted as it is.
		if want := map[uint8]int{VirtioGSOUDPL4: 49, VirtioGSOUDPL4 | VirtioGSOECN: 50}[gso]; len(out[0]) != 48+want {
			t.Errorf("GSO type %#x: %d octets quoted, want %d", gso, len(out[0])-48, want)
		}
		p = bytes.Clone(in)
		p[7] = 64
		if _, r := runOffload(t, tr, &s, partial(p, gso, 1), p); (r.Reason == BadOffload) != (gso&VirtioGSOECN != 0) {
			t.Errorf("GSO type %#x: %v", gso, r.Reason)
		}
	}
}

// A header that serves for several packets is all zero, whatever the device
// said of the one.
func TestHeaderOfFragments(t *testing.T) {
	cfg := crossConfig()
	cfg.MTU4 = 576
	tr := must(New(cfg))
	m := testMaker()
	host4, host6 := netip.MustParseAddr("10.64.0.2"), netip.MustParseAddr("2001:db8:c::2")
	far4 := netip.MustParseAddr("198.51.100.2")
	var s Scratch
	for _, in := range [][]byte{m.v4sized(far4, host4, true, 1400, false), m.v6sized(host6, cfg.Prefix.Embed(far4), true, 1000)} {
		for _, flags := range []uint8{0, VirtioDataValid, VirtioNeedsChecksum} {
			p, h := bytes.Clone(in), &VirtioHdr{}
			if flags == VirtioNeedsChecksum {
				h = partial(p, VirtioGSONone, 0)
			}
			h.Flags = flags
			if out, r := runOffload(t, tr, &s, h, p); len(out) != 2 || *h != (VirtioHdr{}) {
				t.Errorf("%v, flags %d: %d packets with %+v", r.Reason, flags, len(out), *h)
			}
		}
	}
}
