package nat64

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"signalbox.example/nat64/internal/checksum"
)

// maker builds random valid packets with gopacket.
type maker struct{ *rand.Rand }

func (m maker) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.Uint32())
	}
	return b
}

func (m maker) size() int {
	switch m.IntN(4) {
	case 0:
		return m.IntN(20)
	case 1:
		return 1200 + m.IntN(100)
	}
	return m.IntN(1440)
}

func serialise(l ...gopacket.SerializableLayer) []byte {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...); err != nil {
		panic(err)
	}
	return bytes.Clone(b.Bytes())
}

// transport returns a random TCP segment, UDP datagram or echo message.
func (m maker) transport(kind int, ip gopacket.NetworkLayer) (b []byte, protocol layers.IPProtocol) {
	payload := gopacket.Payload(m.bytes(m.size()))
	_, v6 := ip.(*layers.IPv6)
	switch kind {
	case 0:
		u := &layers.UDP{SrcPort: layers.UDPPort(m.Uint32()), DstPort: layers.UDPPort(m.Uint32())}
		u.SetNetworkLayerForChecksum(ip)
		b = serialise(u, payload)
		if b[6] == 0 && b[7] == 0 {
			b[6], b[7] = 0xff, 0xff
		}
		return b, layers.IPProtocolUDP
	case 1:
		t := &layers.TCP{SrcPort: layers.TCPPort(m.Uint32()), DstPort: layers.TCPPort(m.Uint32()), Seq: m.Uint32(), Ack: m.Uint32(), ACK: true, PSH: m.IntN(2) == 0, Window: uint16(m.Uint32())}
		if m.IntN(2) == 0 {
			t.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindMSS, OptionLength: 4, OptionData: m.bytes(2)}}
		}
		t.SetNetworkLayerForChecksum(ip)
		return serialise(t, payload), layers.IPProtocolTCP
	}
	if v6 {
		c := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(uint8(128+m.IntN(2)), 0)}
		c.SetNetworkLayerForChecksum(ip)
		return serialise(c, gopacket.Payload(m.bytes(4)), payload), layers.IPProtocolICMPv6
	}
	c := &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(uint8(8*m.IntN(2)), 0), Id: uint16(m.Uint32()), Seq: uint16(m.Uint32())}
	return serialise(c, payload), layers.IPProtocolICMPv4
}

func (m maker) v4(src, dst netip.Addr, kind int) []byte {
	ip := &layers.IPv4{Version: 4, TTL: uint8(2 + m.IntN(250)), TOS: uint8(m.Uint32()), Id: uint16(m.Uint32()), SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
	if m.IntN(3) > 0 {
		ip.Flags = layers.IPv4DontFragment
	}
	b, p := m.transport(kind, ip)
	ip.Protocol = p
	if m.IntN(4) == 0 {
		ip.Options = []layers.IPv4Option{{OptionType: 148, OptionLength: 4, OptionData: []byte{0, 0}}}
	}
	return serialise(ip, gopacket.Payload(b))
}

func (m maker) v6(src, dst netip.Addr, kind int) []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: uint8(2 + m.IntN(250)), TrafficClass: uint8(m.Uint32()), SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
	b, p := m.transport(kind, ip)
	ip.NextHeader = p
	for range m.IntN(3) * m.IntN(2) { // extension headers
		h := make([]byte, 8+8*m.IntN(3))
		h[0], h[1] = byte(ip.NextHeader), byte(len(h)/8-1)
		h[2], h[3] = 1, byte(len(h)-4)
		b = append(h, b...)
		ip.NextHeader = 60
	}
	return serialise(ip, gopacket.Payload(b))
}

// fragment cuts a packet in two at a multiple of 8.
func (m maker) fragment(p []byte) [][]byte {
	if p[0]>>4 == 4 {
		h := int(p[0]&15) * 4
		n := len(p) - h
		if n < 32 {
			return [][]byte{p}
		}
		cut := (20 + m.IntN(n-24) + 7) &^ 7
		if cut >= n {
			return [][]byte{p}
		}
		var out [][]byte
		for i, part := range [][]byte{p[h : h+cut], p[h+cut:]} {
			q := append(bytes.Clone(p[:h]), part...)
			put16(q[2:], uint16(len(q)))
			put16(q[6:], []uint16{flagMF, uint16(cut / 8)}[i])
			put16(q[10:], 0)
			put16(q[10:], ^checksum.Sum(q[:h]))
			out = append(out, q)
		}
		return out
	}
	x, failure := walk(p)
	if n := len(p) - x.l4; failure != 0 || n < 32 || x.l4 != 40 {
		return [][]byte{p}
	} else if cut := (20 + m.IntN(n-24) + 7) &^ 7; cut < n {
		var out [][]byte
		id := m.Uint32() & 0xffff
		for i, part := range [][]byte{p[40 : 40+cut], p[40+cut:]} {
			q := append(bytes.Clone(p[:40]), make([]byte, 8)...)
			q = append(q, part...)
			putFragment(q[40:], p[6], []uint16{flagMF, uint16(cut / 8)}[i], id)
			q[6] = 44
			put16(q[4:], uint16(len(q)-40))
			out = append(out, q)
		}
		return out
	}
	return [][]byte{p}
}

// icmpError quotes a packet in a random error of its family from src to dst.
func (m maker) icmpError(src, dst netip.Addr, quoted []byte) []byte {
	quoted = quoted[:min(len(quoted), 28+20*m.IntN(2)+m.IntN(1200))]
	if quoted[0]>>4 == 4 {
		kinds := [][2]uint8{{3, 0}, {3, 1}, {3, 2}, {3, 3}, {3, 4}, {3, 13}, {11, 0}, {11, 1}, {12, 0}}
		k := kinds[m.IntN(len(kinds))]
		body := append(make([]byte, 4), quoted...)
		if k == [2]uint8{3, 4} {
			put16(body[2:], uint16(m.Uint32()))
		} else if m.IntN(3) == 0 {
			body = m.extend(body, 4, 1)
		}
		return m.icmp4(src, dst, k[0], k[1], body)
	}
	if len(quoted) < 48 {
		quoted = append(quoted, make([]byte, 48-len(quoted))...)
	}
	kinds := [][2]uint8{{1, 0}, {1, 1}, {1, 4}, {2, 0}, {3, 0}, {3, 1}, {4, 0}, {4, 1}}
	k := kinds[m.IntN(len(kinds))]
	body := append(make([]byte, 4), quoted...)
	if k[0] == 2 {
		binary.BigEndian.PutUint32(body, m.Uint32N(70000))
	} else if k[0]&1 == 1 && m.IntN(3) == 0 {
		body = m.extend(body, 8, 0)
	}
	return m.icmp6(src, dst, k[0], k[1], body)
}

// extend pads a quote (behind 4 octets of ICMP header) and adds an extension.
func (m maker) extend(body []byte, unit, at int) []byte {
	n := min(max(128, (len(body)-4)/unit*unit), 255*unit)
	out := make([]byte, 4+n)
	copy(out[:4+n], body)
	out[at] = byte(n / unit)
	ext := append([]byte{0x20, 0, 0, 0, 0, 8, 1, 1}, m.bytes(4)...)
	put16(ext[2:], ^checksum.Sum(ext))
	return append(out, ext...)
}

func TestEveryOutputIsValid(t *testing.T) {
	rounds := 30000
	if testing.Short() {
		rounds = 2000
	}
	cfg := crossConfig()
	m := maker{rand.New(rand.NewPCG(1, 2))}
	var s Scratch
	host6 := func() netip.Addr { return netip.MustParsePrefix("2001:db8:c::/120").Addr().Next() }
	host4, _ := netip.ParseAddr("10.64.0.1")
	seen := map[Reason]int{}
	prefixes := []string{"2001:db8:64::/96", "2001:db8:6464::/64", "2001:db8:64:ff00::/56", "2001:db8:64::/48", "2001:db8:4000::/40", "2001:db9::/32"}
	trs := make([]*Translator, len(prefixes))
	for i, p := range prefixes {
		cfg.Prefix = must(ParsePrefix(p))
		cfg.MTU4, cfg.MTU6 = 1500-100*(i&1), 1400+100*(i&1)
		trs[i] = must(New(cfg))
	}
	for range rounds {
		i := m.IntN(len(prefixes))
		tr := trs[i]
		far4 := addr4(198<<24 | 18<<16 | m.Uint32N(1<<16))
		far6 := tr.Config().Prefix.Embed(far4)
		var packets [][]byte
		kind := m.IntN(5)
		if m.IntN(2) == 0 {
			switch p := m.v4(far4, host4, m.IntN(3)); kind {
			case 0:
				packets = m.fragment(p)
			case 1:
				packets = [][]byte{m.icmpError(far4, host4, m.v4(host4, far4, m.IntN(3)))}
			default:
				packets = [][]byte{p}
			}
		} else {
			switch p := m.v6(host6(), far6, m.IntN(3)); kind {
			case 0:
				packets = m.fragment(p)
			case 1:
				packets = [][]byte{m.icmpError(host6(), far6, m.v6(far6, host6(), m.IntN(3)))}
			default:
				packets = [][]byte{p}
			}
		}
		for _, p := range packets {
			in := bytes.Clone(p)
			out, r := run(t, tr, &s, p)
			seen[r.Reason]++
			if r.Verdict == Forward && r.Reason != Hairpinned {
				for _, o := range out {
					if o[0]>>4 == in[0]>>4 {
						t.Fatalf("not translated: %x", in)
					}
					if lim := map[byte]int{4: 1500, 6: 1500}[o[0]>>4]; len(o) > lim {
						t.Fatalf("%d octets", len(o))
					}
				}
			}
			for _, o := range out {
				if err := judge(o); err != nil {
					t.Fatalf("%v %v: %v\n in %x\nout %x", r.Verdict, r.Reason, err, in, o)
				}
			}
			switch r.Reason {
			case Translated46, Translated64, FragmentedV6, PacketTooBig, FragmentedICMP:
			case QuotedPacket, ICMPPointer: // random cuts and pointers
			default:
				t.Fatalf("%v for a valid packet\n in %x", r.Reason, in)
			}
		}
	}
	for _, r := range []Reason{Translated46, Translated64, FragmentedV6, PacketTooBig, FragmentedICMP} {
		if seen[r] == 0 {
			t.Errorf("no packet met %v", r)
		}
	}
	t.Log(seen)
}

func TestRoundTrips(t *testing.T) {
	cfg := crossConfig()
	cfg.LowestIPv6MTU, cfg.Hairpin = 1500, HairpinNone
	tr := must(New(cfg))
	m := maker{rand.New(rand.NewPCG(3, 4))}
	var s Scratch
	host4, host6 := netip.MustParseAddr("10.64.0.77"), netip.MustParseAddr("2001:db8:c::4d")
	for range 5000 {
		far4 := addr4(198<<24 | 18<<16 | m.Uint32N(1<<16))
		far6 := cfg.Prefix.Embed(far4)

		// Without options and extension headers all but two hops comes back;
		// IPv4 loses its identification and gets DF by size.
		in := m.v4(far4, host4, m.IntN(3))
		if ihl := int(in[0]&15) * 4; ihl == 20 && len(in) <= 1480 && in[8] > 3 {
			for _, f := range m.fragment(in) {
				out, r := run(t, tr, &s, f)
				if r.Reason == FragmentedICMP {
					continue
				}
				back, r := run(t, tr, &s, out[0])
				if r.Reason != Translated64 {
					t.Fatalf("%v: %x", r.Reason, out[0])
				}
				want := bytes.Clone(f)
				want[8] -= 2
				if be16(want[6:])&(flagMF|offsetMask) == 0 {
					copy(want[4:6], back[0][4:6])
					put16(want[6:], 0)
					if len(want) > 1260 {
						put16(want[6:], flagDF)
					}
				}
				put16(want[10:], 0)
				put16(want[10:], ^checksum.Sum(want[:20]))
				if d := compare(back, [][]byte{want}, nil); d != "" {
					t.Fatal(d)
				}
			}
		}

		in = m.v6(host6, far6, m.IntN(3))
		if !extension(in[6]) && in[7] > 3 {
			for _, f := range m.fragment(in) {
				out, r := run(t, tr, &s, f)
				if r.Reason == FragmentedICMP {
					continue
				}
				back, r := run(t, tr, &s, out[0])
				if r.Reason != Translated46 {
					t.Fatalf("%v: %x", r.Reason, out[0])
				}
				want := bytes.Clone(f)
				want[7] -= 2
				if d := compare(back, [][]byte{want}, nil); d != "" {
					t.Fatal(d)
				}
			}
		}
	}
}

func (m maker) v4sized(src, dst netip.Addr, udp bool, payload int, df bool) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Id: uint16(m.Uint32()), SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
	if df {
		ip.Flags = layers.IPv4DontFragment
	}
	b, p := m.sized(udp, payload, ip)
	ip.Protocol = p
	return serialise(ip, gopacket.Payload(b))
}

func (m maker) v6sized(src, dst netip.Addr, udp bool, payload int) []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: 64, SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
	b, p := m.sized(udp, payload, ip)
	ip.NextHeader = p
	return serialise(ip, gopacket.Payload(b))
}

func (m maker) sized(udp bool, payload int, ip gopacket.NetworkLayer) ([]byte, layers.IPProtocol) {
	body := gopacket.Payload(m.bytes(payload))
	if udp {
		u := &layers.UDP{SrcPort: 4000, DstPort: 53}
		u.SetNetworkLayerForChecksum(ip)
		return serialise(u, body), layers.IPProtocolUDP
	}
	t := &layers.TCP{SrcPort: 4000, DstPort: 80, Seq: m.Uint32(), ACK: true, PSH: true, FIN: m.IntN(2) == 0, CWR: m.IntN(2) == 0, Window: 1000}
	t.SetNetworkLayerForChecksum(ip)
	return serialise(t, body), layers.IPProtocolTCP
}

func testMaker() maker { return maker{rand.New(rand.NewPCG(11, 12))} }

// icmp4 and icmp6 make ICMP messages; body begins behind the checksum.
func (m maker) icmp4(src, dst netip.Addr, kind, code uint8, body []byte) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolICMPv4, Flags: layers.IPv4DontFragment, SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
	return serialise(ip, &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(kind, code), Id: be16(body), Seq: be16(body[2:])}, gopacket.Payload(body[4:]))
}

func (m maker) icmp6(src, dst netip.Addr, kind, code uint8, body []byte) []byte {
	ip := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolICMPv6, SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
	c := &layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(kind, code)}
	c.SetNetworkLayerForChecksum(ip)
	return serialise(ip, c, gopacket.Payload(body))
}

// The straight line for usual packets gives what the long way gives, and
// leaves everything else to it, whatever is wrong with a packet.
func TestQuickIsRight(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(21, 22))}
	cfg := hexConfig()
	cfg.MTU4, cfg.MTU6, cfg.LowestIPv6MTU = 1400, 1420, 1300
	with := []*Translator{must(New(cfg))}
	cfg.Prefix, cfg.ResetTOS, cfg.StrictFragmentHeader = must(ParsePrefix("2001:db8:6400::/40")), true, true
	with = append(with, must(New(cfg)))
	cfg.UDPZero, cfg.StrictFragmentHeader = ZeroForward, false
	cfg.EAM = append(cfg.EAM, EAM{netip.MustParsePrefix("2001:db8:6400:1::/64"), netip.MustParsePrefix("198.18.0.0/16")})
	with = append(with, must(New(cfg)))
	var without []*Translator
	for _, w := range with {
		o := must(New(w.Config()))
		o.snap.Load().quick6, o.snap.Load().quick4 = false, false
		without = append(without, o)
	}
	var s, z Scratch
	rounds, quick := 40000, 0
	if testing.Short() {
		rounds = 3000
	}
	for range rounds {
		i := m.IntN(len(with))
		host4, host6 := netip.MustParseAddr("10.64.0.2"), netip.MustParseAddr("2001:db8:c::2")
		far4 := addr4(198<<24 | 18<<16 | m.Uint32N(1<<17))
		far6 := with[i].Config().Prefix.Embed(far4)
		var in []byte
		if m.IntN(2) == 0 {
			in = m.v4(far4, host4, m.IntN(2))
		} else {
			in = m.v6(host6, far6, m.IntN(2))
		}
		for range m.IntN(3) * m.IntN(2) { // something wrong with the header
			in[m.IntN(min(len(in), 64))] = byte(m.Uint32())
		}
		if in[0]>>4 == 4 && m.IntN(2) == 0 {
			put16(in[10:], 0)
			put16(in[10:], ^checksum.Sum(in[:20]))
		}
		if m.IntN(8) == 0 {
			in = in[:m.IntN(len(in))]
		}
		if len(in) > 0 {
			buf := append(make([]byte, Headroom), in...)
			var ok bool
			with[i].adopt(&s)
			switch c := with[i].snap.Load(); {
			case in[0]>>4 == 6 && c.quick6:
				_, ok = with[i].quick6(c, &s, buf, Headroom, len(in))
			case in[0]>>4 == 4 && c.quick4:
				_, ok = with[i].quick4(c, &s, buf, Headroom, len(in))
			}
			if ok {
				quick++
			} else if !bytes.Equal(buf[Headroom:], in) {
				t.Fatalf("changed what it does not translate: %x", in)
			}
		}
		got, r := run(t, with[i], &s, in)
		want, q := run(t, without[i], &z, in)
		var ignore []int
		if len(got) > 0 && got[0][0]>>4 == 4 {
			ignore = []int{4, 5, 10, 11}
		}
		if d := compare(got, want, ignore); d != "" || r.Reason != q.Reason || r.Offset != q.Offset {
			t.Fatalf("%v, %v: %s\n in %x", r.Reason, q.Reason, d, in)
		}
	}
	if quick < rounds/8 {
		t.Errorf("%d of %d packets took the straight line", quick, rounds)
	}
}
