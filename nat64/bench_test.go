package nat64

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// benchEAM makes n host entries, and a subnet for every sixteenth, so that
// the table has two lengths on each side. Their addresses lie in 11.0.0.0/8
// and 2001:db8:e::/48.
func benchEAM(n int) []EAM {
	list := make([]EAM, 0, n)
	for i := range n {
		if i%16 == 15 {
			v4 := 12<<24 | uint32(i/16)<<8
			list = append(list, EAM{netip.PrefixFrom(addr6{0x20010db8000e0001, uint64(i) << 8}.netip(), 120), netip.PrefixFrom(addr4(v4), 24)})
			continue
		}
		list = append(list, EAM{netip.PrefixFrom(benchHost6(i).netip(), 128), netip.PrefixFrom(addr4(benchHost4(i)), 32)})
	}
	return list
}

// Hosts spread over the table as hashes would.
func benchHost6(i int) addr6 { return addr6{0x20010db8000e0000, uint64(i) * 0x9e3779b97f4a7c15} }
func benchHost4(i int) uint32 {
	return 11<<24 | uint32(i)*0x9e3779b1&0xffffff
}

var benchFar = netip.MustParseAddr("198.18.7.9")

type benchSet struct {
	name string
	tr   *Translator
	host func(i int) (addr6, uint32) // the IPv6 side's host i
	n    int                         // hosts
}

func benchSets(b *testing.B) []benchSet {
	prefix := must(ParsePrefix("2001:db8:64::/96"))
	base := Config{Prefix: prefix, Own4: netip.MustParseAddr("198.51.100.1"), ErrorRate: -1}
	sets := []benchSet{{"prefix", must(New(base)), func(i int) (addr6, uint32) {
		v := benchHost4(i)
		return prefix.embed(v), v
	}, 1 << 10}}
	for _, n := range []int{10_000, 1_000_000} {
		cfg := base
		cfg.EAM = benchEAM(n)
		sets = append(sets, benchSet{fmt.Sprintf("eam%dk", n/1000), must(New(cfg)), func(i int) (addr6, uint32) {
			if i%16 == 15 {
				i--
			}
			return benchHost6(i), benchHost4(i)
		}, n})
	}
	cfg := base
	pool := must(NewPool(PoolOptions{V4: netip.MustParsePrefix("11.0.0.0/16")}))
	cfg.Pools = []*Pool{pool}
	sets = append(sets, benchSet{"pool64k", must(New(cfg)), func(i int) (addr6, uint32) {
		b := pool.assign(poolHost(i))
		return b.v6, b.v4
	}, 60000})
	return sets
}

// packetsFor returns packets of a kind, size octets long in IPv4, each for
// another host; rest of the loop is one packet after the other.
func packetsFor(set benchSet, kind string, size int, v6 bool) [][]byte {
	const distinct = 64
	m := testMaker()
	var out [][]byte
	far6 := set.tr.Config().Prefix.Embed(benchFar)
	for i := range distinct {
		h6, h4 := set.host(i * (set.n / distinct) % set.n)
		var p []byte
		switch {
		case kind == "echo" && v6:
			p = m.icmp6(h6.netip(), far6, 128, 0, make([]byte, size-24))
		case kind == "echo":
			p = m.icmp4(benchFar, addr4(h4), 8, 0, make([]byte, size-24))
		case v6:
			p = m.v6sized(h6.netip(), far6, kind == "udp", size-28-12*btoi(kind == "tcp"))
		default:
			p = m.v4sized(benchFar, addr4(h4), kind == "udp", size-28-12*btoi(kind == "tcp"), true)
		}
		out = append(out, p)
	}
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// benchPackets measures translation. As it works in place, each round first
// puts the packet's start back, 100 octets of it.
func benchPackets(b *testing.B, tr *Translator, h *VirtioHdr, packets [][]byte) {
	bufs := make([][]byte, len(packets))
	for i, p := range packets {
		bufs[i] = append(make([]byte, Headroom), p...)
	}
	var s Scratch
	var g VirtioHdr
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		p, buf := packets[i], bufs[i]
		if i++; i == len(packets) {
			i = 0
		}
		copy(buf[Headroom:], p[:min(100, len(p))])
		var r Result
		if h != nil {
			g = *h
			r = tr.TranslateOffload(&s, &g, buf, Headroom, len(p))
		} else {
			r = tr.Translate(&s, buf, Headroom, len(p))
		}
		if r.Verdict != Forward {
			b.Fatalf("%v %v", r.Verdict, r.Reason)
		}
	}
}

func direction(v6 bool) string {
	if v6 {
		return "6to4"
	}
	return "4to6"
}

func BenchmarkTranslate(b *testing.B) {
	for _, set := range benchSets(b) {
		for _, kind := range []string{"udp", "tcp", "echo"} {
			for _, size := range []int{66, 576, 1480} {
				for _, v6 := range []bool{true, false} {
					b.Run(fmt.Sprintf("table=%s/kind=%s/size=%d/way=%s", set.name, kind, size, direction(v6)), func(b *testing.B) {
						benchPackets(b, set.tr, nil, packetsFor(set, kind, size, v6))
					})
				}
			}
		}
	}
}

func BenchmarkICMPError(b *testing.B) {
	set := benchSets(b)[1]
	m := testMaker()
	far6 := set.tr.Config().Prefix.Embed(benchFar)
	for _, quote := range []int{28, 128, 1200} {
		for _, v6 := range []bool{true, false} {
			b.Run(fmt.Sprintf("quote=%d/way=%s", quote, direction(v6)), func(b *testing.B) {
				var packets [][]byte
				for i := range 64 {
					h6, h4 := set.host(i * 100)
					if v6 {
						q := m.v6sized(far6, h6.netip(), true, max(0, quote-48))
						packets = append(packets, m.icmp6(h6.netip(), far6, 3, 0, append(make([]byte, 4), q...)))
					} else {
						q := m.v4sized(addr4(h4), benchFar, true, quote-28, true)
						packets = append(packets, m.icmp4(benchFar, addr4(h4), 11, 0, append(make([]byte, 4), q...)))
					}
				}
				benchPackets(b, set.tr, nil, packets)
			})
		}
	}
}

func BenchmarkSuperPacket(b *testing.B) {
	set := benchSets(b)[1]
	for _, kind := range []string{"udp", "tcp"} {
		for _, v6 := range []bool{true, false} {
			b.Run("kind="+kind+"/way="+direction(v6), func(b *testing.B) {
				packets := packetsFor(set, kind, 64000, v6)[:16]
				gso := uint8(VirtioGSOUDPL4)
				if kind == "tcp" {
					gso = VirtioGSOTCPv4 + 3*uint8(btoi(v6))
				}
				var h *VirtioHdr
				for _, p := range packets {
					h = partial(p, gso, 1400)
				}
				benchPackets(b, set.tr, h, packets)
			})
		}
	}
}

func BenchmarkZeroChecksumComputed(b *testing.B) {
	set := benchSets(b)[0]
	cfg := set.tr.Config()
	cfg.UDPZero = ZeroCompute
	set.tr = must(New(cfg))
	packets := packetsFor(set, "udp", 1480, false)
	for _, p := range packets {
		put16(p[26:], 0)
	}
	benchPackets(b, set.tr, nil, packets)
}

// BenchmarkParallel has a configuration swapped all the time.
func BenchmarkParallel(b *testing.B) {
	set := benchSets(b)[1]
	packets := packetsFor(set, "udp", 66, true)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				set.tr.Update(set.tr.Config())
			}
		}
	}()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		var s Scratch
		buf := make([]byte, Headroom+len(packets[0]))
		for i := 0; pb.Next(); i++ {
			copy(buf[Headroom:], packets[i%len(packets)])
			set.tr.Translate(&s, buf, Headroom, len(packets[0]))
		}
	})
	close(stop)
}

// BenchmarkGopacket translates UDP as one would with gopacket: decode, build
// the other header, serialise with new lengths and checksums.
func BenchmarkGopacket(b *testing.B) {
	set := benchSets(b)[0]
	for _, size := range []int{66, 1480} {
		for _, v6 := range []bool{true, false} {
			b.Run(fmt.Sprintf("size=%d/way=%s", size, direction(v6)), func(b *testing.B) {
				p := packetsFor(set, "udp", size, v6)[0]
				f := gopacketFunc(set.tr.Config().Prefix, p, v6)
				b.ReportAllocs()
				for b.Loop() {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// gopacketFunc returns a function that translates one packet so.
func gopacketFunc(prefix Prefix, p []byte, v6 bool) func() error {
	var ip4 layers.IPv4
	var ip6 layers.IPv6
	var udp layers.UDP
	first := gopacket.LayerType(layers.LayerTypeIPv4)
	if v6 {
		first = layers.LayerTypeIPv6
	}
	parser := gopacket.NewDecodingLayerParser(first, &ip4, &ip6, &udp)
	parser.IgnoreUnsupported = true // the payload
	decoded := make([]gopacket.LayerType, 0, 4)
	out := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	var src, dst [16]byte
	return func() error {
		if err := parser.DecodeLayers(p, &decoded); err != nil {
			return err
		}
		if v6 {
			put32(src[:], prefix.extract(load6(ip6.SrcIP)))
			put32(dst[:], prefix.extract(load6(ip6.DstIP)))
			o := layers.IPv4{Version: 4, TOS: ip6.TrafficClass, TTL: ip6.HopLimit - 1, Protocol: ip6.NextHeader, SrcIP: src[:4], DstIP: dst[:4]}
			udp.SetNetworkLayerForChecksum(&o)
			return gopacket.SerializeLayers(out, opts, &o, &udp, gopacket.Payload(udp.Payload))
		}
		prefix.embed(be32(ip4.SrcIP.To4())).store(src[:])
		prefix.embed(be32(ip4.DstIP.To4())).store(dst[:])
		o := layers.IPv6{Version: 6, TrafficClass: ip4.TOS, HopLimit: ip4.TTL - 1, NextHeader: ip4.Protocol, SrcIP: src[:], DstIP: dst[:]}
		udp.SetNetworkLayerForChecksum(&o)
		return gopacket.SerializeLayers(out, opts, &o, &udp, gopacket.Payload(udp.Payload))
	}
}
