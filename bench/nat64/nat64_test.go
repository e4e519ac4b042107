// Package nat64 compares the translator with the usual way to rewrite packets
// in Go: decode with gopacket, build the other header, serialise with new
// lengths and checksums.
package nat64

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"signalbox.example/internal/need"
	"signalbox.example/nat64"
)

const prefixText = "2001:db8:64::/96"

// translator has one /96 and n host mappings besides.
func translator(tb testing.TB, n int) *nat64.Translator {
	p, err := nat64.ParsePrefix(prefixText)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := nat64.Config{Prefix: p}
	for i := range n {
		cfg.EAM = append(cfg.EAM, nat64.EAM{V6: netip.PrefixFrom(host6(i), 128), V4: netip.PrefixFrom(host4(i), 32)})
	}
	t, err := nat64.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// Hosts of the table, spread as if by chance.
func host6(i int) netip.Addr {
	var b [16]byte
	copy(b[:], []byte{0x20, 1, 0x0d, 0xb8, 0, 0x0e})
	binary.BigEndian.PutUint64(b[8:], uint64(i)*0x9e3779b97f4a7c15)
	return netip.AddrFrom16(b)
}

func host4(i int) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 11<<24|uint32(i)*0x9e3779b1&0xffffff)
	return netip.AddrFrom4(b)
}

var far = netip.AddrFrom4([4]byte{198, 18, 7, 9})

// udp makes a datagram that is size octets long in IPv4.
func udp(tb testing.TB, src, dst netip.Addr, size int) []byte {
	u := &layers.UDP{SrcPort: 4000, DstPort: 5000}
	var ip gopacket.SerializableLayer
	if src.Is4() {
		l := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, Flags: layers.IPv4DontFragment, SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
		u.SetNetworkLayerForChecksum(l)
		ip = l
	} else {
		l := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: net.IP(src.AsSlice()), DstIP: net.IP(dst.AsSlice())}
		u.SetNetworkLayerForChecksum(l)
		ip = l
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, ip, u, gopacket.Payload(bytes.Repeat([]byte{0x5a}, size-28))); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// rewriter translates UDP packets with gopacket, addresses by the prefix.
type rewriter struct {
	prefix  nat64.Prefix
	ip4     layers.IPv4
	ip6     layers.IPv6
	udp     layers.UDP
	from4   *gopacket.DecodingLayerParser
	from6   *gopacket.DecodingLayerParser
	decoded []gopacket.LayerType
	out     gopacket.SerializeBuffer
}

func newRewriter(p nat64.Prefix) *rewriter {
	r := &rewriter{prefix: p, out: gopacket.NewSerializeBuffer()}
	r.from4 = gopacket.NewDecodingLayerParser(layers.LayerTypeIPv4, &r.ip4, &r.udp)
	r.from6 = gopacket.NewDecodingLayerParser(layers.LayerTypeIPv6, &r.ip6, &r.udp)
	r.from4.IgnoreUnsupported, r.from6.IgnoreUnsupported = true, true
	return r
}

func (r *rewriter) translate(p []byte) ([]byte, error) {
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if p[0]>>4 == 6 {
		if err := r.from6.DecodeLayers(p, &r.decoded); err != nil {
			return nil, err
		}
		src, ok := r.prefix.Extract(netip.AddrFrom16([16]byte(r.ip6.SrcIP)))
		dst, ok2 := r.prefix.Extract(netip.AddrFrom16([16]byte(r.ip6.DstIP)))
		if !ok || !ok2 {
			return nil, fmt.Errorf("address outside the prefix")
		}
		a, b := src.As4(), dst.As4()
		ip := layers.IPv4{Version: 4, TOS: r.ip6.TrafficClass, TTL: r.ip6.HopLimit - 1, Protocol: r.ip6.NextHeader, SrcIP: a[:], DstIP: b[:]}
		if len(p)-20 > 1260 {
			ip.Flags = layers.IPv4DontFragment
		}
		r.udp.SetNetworkLayerForChecksum(&ip)
		err := gopacket.SerializeLayers(r.out, opts, &ip, &r.udp, gopacket.Payload(r.udp.Payload))
		return r.out.Bytes(), err
	}
	if err := r.from4.DecodeLayers(p, &r.decoded); err != nil {
		return nil, err
	}
	a := r.prefix.Embed(netip.AddrFrom4([4]byte(r.ip4.SrcIP.To4()))).As16()
	b := r.prefix.Embed(netip.AddrFrom4([4]byte(r.ip4.DstIP.To4()))).As16()
	ip := layers.IPv6{Version: 6, TrafficClass: r.ip4.TOS, HopLimit: r.ip4.TTL - 1, NextHeader: r.ip4.Protocol, SrcIP: a[:], DstIP: b[:]}
	r.udp.SetNetworkLayerForChecksum(&ip)
	err := gopacket.SerializeLayers(r.out, opts, &ip, &r.udp, gopacket.Payload(r.udp.Payload))
	return r.out.Bytes(), err
}

// Both ways give the same packets, identification and header checksum aside.
func TestSameAnswer(t *testing.T) {
	tr := translator(t, 0)
	prefix := tr.Config().Prefix
	r := newRewriter(prefix)
	var s nat64.Scratch
	for _, size := range []int{28, 29, 66, 576, 1260, 1261, 1480} {
		for i := range 50 {
			for _, p := range [][]byte{udp(t, far, host4(i), size), udp(t, prefix.Embed(host4(i)), prefix.Embed(far), size)} {
				want, err := r.translate(p)
				if err != nil {
					t.Fatal(err)
				}
				got := tr.Translate(&s, append(make([]byte, nat64.Headroom), p...), nat64.Headroom, len(p)).Packet
				if len(got) > 0 && got[0]>>4 == 4 && len(want) == len(got) {
					copy(want[4:6], got[4:6])
					copy(want[10:12], got[10:12])
				}
				if !bytes.Equal(got, want) {
					t.Fatalf("%d octets:\nours %x\ntheir %x", size, got, want)
				}
			}
		}
	}
}

func each(b *testing.B, f func(b *testing.B, size int, v6 bool)) {
	for _, size := range []int{66, 576, 1480} {
		for _, v6 := range []bool{true, false} {
			name := fmt.Sprintf("size=%d/way=4to6", size)
			if v6 {
				name = fmt.Sprintf("size=%d/way=6to4", size)
			}
			b.Run(name, func(b *testing.B) { f(b, size, v6) })
		}
	}
}

// BenchmarkTranslate: the library with the prefix alone and with tables of
// mappings, gopacket with the prefix alone.
func BenchmarkTranslate(b *testing.B) {
	for _, n := range []int{0, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("impl=signalbox/eam=%d", n), func(b *testing.B) {
			tr := translator(b, n)
			prefix := tr.Config().Prefix
			each(b, func(b *testing.B, size int, v6 bool) {
				const hosts = 64
				var in, bufs [hosts][]byte
				for i := range hosts {
					h4, h6 := host4(i*max(1, n/hosts)), host6(i*max(1, n/hosts))
					if n == 0 {
						h6 = prefix.Embed(h4)
					}
					if in[i] = udp(b, far, h4, size); v6 {
						in[i] = udp(b, h6, prefix.Embed(far), size)
					}
					bufs[i] = append(make([]byte, nat64.Headroom), in[i]...)
				}
				var s nat64.Scratch
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					p, buf := in[i&(hosts-1)], bufs[i&(hosts-1)]
					i++
					copy(buf[nat64.Headroom:], p[:48]) // translation is in place: put the headers back
					if tr.Translate(&s, buf, nat64.Headroom, len(p)).Verdict != nat64.Forward {
						b.Fatal("not translated")
					}
				}
			})
		})
	}
	b.Run("impl=gopacket/eam=0", translateWithGopacket)
}

func translateWithGopacket(b *testing.B) {
	prefix := translator(b, 0).Config().Prefix
	each(b, func(b *testing.B, size int, v6 bool) {
		p := udp(b, far, host4(1), size)
		if v6 {
			p = udp(b, prefix.Embed(host4(1)), prefix.Embed(far), size)
		}
		r := newRewriter(prefix)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.translate(p); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestInterleaved measures the translator and gopacket in blocks of about a
// millisecond that take turns, so that whatever else the machine does meets
// both, and prints the least of each. Set SIGNALBOX_RUN=nat64.
func TestInterleaved(t *testing.T) {
	need.Asked(t, "nat64")
	const hosts = 64
	var s nat64.Scratch
	tables := []int{0, 10_000, 1_000_000}
	var trs []*nat64.Translator
	for _, n := range tables {
		trs = append(trs, translator(t, n))
	}
	prefix := trs[0].Config().Prefix
	r := newRewriter(prefix)
	for _, size := range []int{66, 576, 1480} {
		for _, v6 := range []bool{true, false} {
			type way struct {
				name string
				n    int
				f    func(i int) bool
				best time.Duration
			}
			var ways []way
			for k, n := range tables {
				in, bufs := make([][]byte, hosts), make([][]byte, hosts)
				for i := range hosts {
					h4, h6 := host4(i*max(1, n/hosts)), host6(i*max(1, n/hosts))
					if n == 0 {
						h6 = prefix.Embed(h4)
					}
					if in[i] = udp(t, far, h4, size); v6 {
						in[i] = udp(t, h6, prefix.Embed(far), size)
					}
					bufs[i] = append(make([]byte, nat64.Headroom), in[i]...)
				}
				tr := trs[k]
				ways = append(ways, way{fmt.Sprintf("eam=%d", n), 10_000, func(i int) bool {
					p, buf := in[i&(hosts-1)], bufs[i&(hosts-1)]
					copy(buf[nat64.Headroom:], p[:48])
					return tr.Translate(&s, buf, nat64.Headroom, len(p)).Verdict == nat64.Forward
				}, 1 << 62})
				if n == 0 {
					ways = append(ways, way{"gopacket", 2000, func(i int) bool {
						_, err := r.translate(in[i&(hosts-1)])
						return err == nil
					}, 1 << 62})
				}
			}
			for range 300 {
				for k := range ways {
					w, ok := &ways[k], true
					begin := time.Now()
					for i := range w.n {
						ok = w.f(i) && ok
					}
					if w.best = min(w.best, time.Since(begin)); !ok {
						t.Fatal("not translated")
					}
				}
			}
			line := fmt.Sprintf("%4d B 6->4=%-5v", size, v6)
			peer := float64(ways[1].best.Nanoseconds()) / float64(ways[1].n)
			for _, w := range ways {
				ns := float64(w.best.Nanoseconds()) / float64(w.n)
				line += fmt.Sprintf("  %s %.1f ns (%.1fx)", w.name, ns, peer/ns)
			}
			t.Log(line)
		}
	}
}
