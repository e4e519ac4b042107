package nat64

import (
	"bytes"
	"math"
	"net/netip"
	"slices"
	"testing"

	"signalbox.example/nat64/internal/checksum"
)

// What is not compared: identification and checksum of IPv4 headers made
// here, outer and quoted, and the TOS of errors of our own.
var (
	made4 = []int{4, 5, 10, 11, 32, 33, 38, 39}
	self4 = []int{1, 4, 5, 10, 11}
)

// hexCases were answered by a live translator of another make and checked
// against the RFCs. Configuration: crossConfig and one entry more.
var hexCases = []struct {
	name    string
	ignore  []int
	in, out string
}{
	{
		"tcp46-tos", nil,
		"45b9002c123440004006f367c63364020a4000020fa000500000000100000002501803e88eb3000064617461",
		"6b9000000018063f20010db80064000000000000c633640220010db8000c000000000000000000020fa000500000000100000002501803e83d11000064617461",
	},
	{
		"icmp46-te-inner-badipsum", nil,
		"4500003e123440004001f3c8c633644d0a4000020b003a86000000004500002212344000011122310a400002c63364020fa00035000e779268656c6c6f21",
		"60000000003e3a3f20010db80064000000000000c633644d20010db8000c00000000000000000002030005320000000060000000000e110120010db8000c0000000000000000000220010db80064000000000000c63364020fa00035000e25f068656c6c6f21",
	},
	{
		"icmp46-te-inner-truncated28", nil,
		"45000038123440004001f3cec633644d0a4000020b00d158000000004500003c12344000011133060a400002c63364020fa00035002813aa",
		"6000000000383a3f20010db80064000000000000c633644d20010db8000c000000000000000000020300acdf00000000600000000028110120010db8000c0000000000000000000220010db80064000000000000c63364020fa000350028c207",
	},
	{
		"icmp46-te-inner-echo", nil,
		"45000040123440004001f3c6c633644d0a4000020b00f4ff0000000045000024123440000101332e0a400002c63364020800665a000700096162636465666768",
		"6000000000403a3f20010db80064000000000000c633644d20010db8000c000000000000000000020300dc58000000006000000000103a0120010db8000c0000000000000000000220010db80064000000000000c6336402800067f5000700096162636465666768",
	},
	{
		"icmp46-fragneeded-mtu0-inner576", nil,
		"45000060123440004001f3a6c633644d0a4000020304ba2c0000000045000240123440000106310d0a400002c63364020fa000500000000100000002501803e83a37000079797979797979797979797979797979797979797979797979797979",
		"6000000000603a3f20010db80064000000000000c633644d20010db8000c000000000000000000020200928b0000050060000000022c060120010db8000c0000000000000000000220010db80064000000000000c63364020fa000500000000100000002501803e8e894000079797979797979797979797979797979797979797979797979797979",
	},
	{
		"icmp46-te-src-loopback", nil,
		"4500003e1234400040019f487f0000010a4000020b002997000000004500002212344000011133200a400002c63364020fa00035000e779268656c6c6f21",
		"60000000003e3a3f20010db800640000000000007f00000120010db8000c000000000000000000020300b0b10000000060000000000e110120010db8000c0000000000000000000220010db80064000000000000c63364020fa00035000e25f068656c6c6f21",
	},
	{
		"udp46-src-127.0.0.1", nil,
		"450000221234400040119f547f0000010a4000020fa00035000e22c768656c6c6f21",
		"",
	},
	{
		"icmp64-te-untranslatable-src", made4,
		"60000000003e3a4020010db8dead0000000000000000000120010db80064000000000000c6336402030026dc0000000060000000000e110120010db80064000000000000c633640220010db8000c000000000000000000020fa00035000e25f068656c6c6f21",
		"4500003ee24000003f013340cb007108c63364020b002997000000004500002269e0000001111b74c63364020a4000020fa00035000e779268656c6c6f21",
	},
	{
		"udp46-lsrr-unexpired", self4,
		"4700002a12344000401135e6c63364020a400002830704c6336401000fa00035000e779268656c6c6f21",
		"45c00046783b00004001ad51c6336401c633640203053192000000004700002a12344000401135e6c63364020a400002830704c6336401000fa00035000e779268656c6c6f21",
	},
	{
		"udp46-lsrr-expired", nil,
		"4700002a12344000401131e6c63364020a400002830708c6336401000fa00035000e779268656c6c6f21",
		"60000000000e113f20010db80064000000000000c633640220010db8000c000000000000000000020fa00035000e25f068656c6c6f21",
	},
	{
		"udp46-zero-csum-df", self4,
		"45000022123440004011f41fc63364020a4000020fa00035000e000068656c6c6f21",
		"45c0003e752900004001b06bc6336401c6336402030da91c0000000045000022123440004011f41fc63364020a4000020fa00035000e000068656c6c6f21",
	},
	{
		"udp46-frag-zerocsum", self4,
		"45000024123420004011141ec63364020a4000020fa00035001000006666666666666666",
		"45c0004077ba00004001add8c6336401c6336402030d53740000000045000024123420004011141ec63364020a4000020fa00035001000006666666666666666",
	},
	{
		"udp46-eamlong", nil,
		"45000022123440004011c1dbc6336402cb0071850fa00035000e454e68656c6c6f21",
		"60000000000e113f20010db80064000000000000c633640220010db800ee850000000000000000000fa00035000ea00f68656c6c6f21",
	},
	{
		"icmp64-ptb-70000", made4,
		"60000000003e3a4020010db8000c0000000000000000000220010db80064000000000000c63364020200f50b0001117060000000000e110120010db80064000000000000c633640220010db8000c000000000000000000020fa00035000e25f068656c6c6f21",
		"4500003ee11a00003f01662d0a400002c633640203042bcb000005c845000022695c000001111bf8c63364020a4000020fa00035000e779268656c6c6f21",
	},
	{
		"udp46-trailing-pad", nil,
		"4500001c123440004011f425c63364020a4000020fa000350008bb91000000000000000000000000000000000000",
		"600000000008113f20010db80064000000000000c633640220010db8000c000000000000000000020fa00035000869ef",
	},
}

func hexConfig() Config {
	cfg := crossConfig()
	cfg.EAM = append(cfg.EAM, EAM{netip.MustParsePrefix("2001:db8:ee:8000::/52"), netip.MustParsePrefix("203.0.113.128/28")})
	return cfg
}

func TestHexCases(t *testing.T) {
	tr := must(New(hexConfig()))
	var s Scratch
	for _, x := range hexCases {
		t.Run(x.name, func(t *testing.T) {
			var want [][]byte
			if x.out != "" {
				want = [][]byte{unhex(x.out)}
			}
			got, r := run(t, tr, &s, unhex(x.in))
			if d := compare(got, want, x.ignore); d != "" {
				t.Errorf("%v %v: %s", r.Verdict, r.Reason, d)
			}
		})
	}
}

func TestBugs(t *testing.T) {
	var s Scratch
	tr := must(New(hexConfig()))
	host4, host6 := netip.MustParseAddr("10.64.0.2"), netip.MustParseAddr("2001:db8:c::2")
	far4 := netip.MustParseAddr("198.51.100.2")
	far6 := tr.Config().Prefix.Embed(far4)
	m := testMaker()
	with := func(change func(*Config)) *Translator {
		cfg := hexConfig()
		change(&cfg)
		return must(New(cfg))
	}
	one := func(t *testing.T, tr *Translator, in []byte) []byte {
		t.Helper()
		out, r := run(t, tr, &s, in)
		if len(out) != 1 {
			t.Fatalf("%d packets, %v %v", len(out), r.Verdict, r.Reason)
		}
		if err := judge(out[0]); err != nil {
			t.Fatal(err)
		}
		return out[0]
	}
	none := func(t *testing.T, tr *Translator, in []byte, why Reason) {
		t.Helper()
		if out, r := run(t, tr, &s, in); len(out) != 0 || r.Reason != why {
			t.Fatalf("%d packets, %v %v, want none for %v", len(out), r.Verdict, r.Reason, why)
		}
	}
	hexCase := func(t *testing.T, name string) {
		t.Helper()
		for _, x := range hexCases {
			if x.name == name {
				if d := compare([][]byte{one(t, tr, unhex(x.in))}, [][]byte{unhex(x.out)}, x.ignore); d != "" {
					t.Error(d)
				}
				return
			}
		}
		t.Fatal("no case " + name)
	}

	t.Run("01-super-packet-taken-for-too-big", func(t *testing.T) { // NICMx/Jool#331 #366 #375
		in := m.v6sized(host6, far6, false, 59980)
		h := partial(in, VirtioGSOTCPv6, 1428)
		out, r := runOffload(t, tr, &s, h, in)
		if r.Verdict != Forward || len(out) != 1 || len(out[0]) != len(in)-20 || h.GSOType != VirtioGSOTCPv4 || h.GSOSize != 1428 || h.ChecksumStart != 20 || h.HdrLen != 40 {
			t.Errorf("%v %v %+v", r.Verdict, r.Reason, h)
		}
		// One octet more in each segment is too much for the other side.
		in = m.v6sized(host6, far6, false, 59980)
		h = partial(in, VirtioGSOTCPv6, 1461)
		if out, r = runOffload(t, tr, &s, h, in); r.Verdict != Reply || r.Reason != PacketTooBig || len(out[0]) != 1280 {
			t.Errorf("%v %v, %d octets", r.Verdict, r.Reason, len(out[0]))
		}
		if n := be16(out[0][40+8+4:]); n != 20+1461 { // the quote is one segment
			t.Errorf("quoted payload length %d", n)
		}
	})
	t.Run("02-mtu-of-own-error-not-adjusted", func(t *testing.T) { // NICMx/Jool#92 #170
		out := one(t, tr, m.v4sized(far4, host4, true, 1488-28, true))
		if out[20] != 3 || out[21] != 4 || be16(out[26:]) != 0x05c8 || len(out) != 576 {
			t.Errorf("%x", out[:40])
		}
		// A packet that only its fragment header makes too big must be told a
		// smaller MTU than the one it has, or it comes again.
		frag := m.v4sized(far4, host4, true, 1480-28, true)
		put16(frag[6:], flagDF|flagMF)
		put16(frag[10:], 0)
		put16(frag[10:], ^checksum.Sum(frag[:20]))
		if out = one(t, tr, frag); be16(out[26:]) != 1472 {
			t.Errorf("MTU %d", be16(out[26:]))
		}
	})
	t.Run("03-mtu-zero", func(t *testing.T) { hexCase(t, "icmp46-fragneeded-mtu0-inner576") })
	t.Run("04-quoted-icmp-type-as-the-outer", func(t *testing.T) { hexCase(t, "icmp46-te-inner-echo") })    // NICMx/Jool#370 #38, sorah/xlat#33
	t.Run("05-quoted-header-checksum-wrong", func(t *testing.T) { hexCase(t, "icmp46-te-inner-badipsum") }) // NICMx/Jool#126
	t.Run("06-quoted-packet-cut-short", func(t *testing.T) { hexCase(t, "icmp46-te-inner-truncated28") })
	t.Run("07-extension-behind-short-quote", func(t *testing.T) { // NICMx/Jool#396
		quote := m.v6sized(far6, host6, true, 0)
		ext := []byte{0x20, 0, 0, 0, 0, 8, 1, 1, 1, 2, 3, 4}
		put16(ext[2:], ^checksum.Sum(ext))
		body := slices.Concat([]byte{6, 0, 0, 0}, quote, ext)
		out := one(t, tr, m.icmp6(host6, far6, 3, 0, body))
		if out[25] != 32 || len(out) != 28+128+len(ext) || !bytes.Equal(out[28+128:], ext) || !bytes.Equal(out[28+28:28+128], make([]byte, 100)) {
			t.Errorf("%x", out)
		}
	})
	t.Run("08-error-cut-without-new-checksum", func(t *testing.T) { // NICMx/Jool#108
		if out := one(t, tr, m.icmp4(far4, host4, 3, 1, append(make([]byte, 4), m.v4sized(host4, far4, true, 1400, true)...))); len(out) != 1280 {
			t.Errorf("%d octets", len(out))
		}
		if out := one(t, tr, m.icmp6(host6, far6, 1, 0, append(make([]byte, 4), m.v6sized(far6, host6, true, 604)...))); len(out) != 576 {
			t.Errorf("%d octets", len(out))
		}
	})
	t.Run("09-atomic-fragment-with-error", func(t *testing.T) { // ayourtch/nat46#76
		for n := 8; n <= 60; n++ { // payload lengths, most too short for what they carry
			in := make([]byte, 40+n)
			putHeader6(in, 0, n, 44, 64, load6(host6.AsSlice()), load6(far6.AsSlice()))
			in[40] = 58
			if n >= 10 {
				in[48], in[49] = 1, 1
			}
			run(t, tr, &s, in)
		}
		full := m.icmp6(host6, far6, 1, 1, append(make([]byte, 4), m.v6sized(far6, host6, true, 20)...))
		in := slices.Concat(full[:40], []byte{58, 0, 0, 0, 0, 0, 0xab, 0xcd}, full[40:])
		in[6] = 44
		put16(in[4:], uint16(len(in)-40))
		if out := one(t, tr, in); out[21] != 10 || be16(out[4:]) != 0xabcd || len(out) != 28+48 {
			t.Errorf("%x", out)
		}
	})
	t.Run("10-traffic-class-cleared", func(t *testing.T) { // ayourtch/nat46#56, firezone/firezone#7479
		hexCase(t, "tcp46-tos")
		for tos := range 256 {
			in := m.v4sized(far4, host4, true, 10, true)
			in[1] = byte(tos)
			put16(in[10:], 0)
			put16(in[10:], ^checksum.Sum(in[:20]))
			out := one(t, tr, in)
			if got := out[0]<<4 | out[1]>>4; int(got) != tos {
				t.Fatalf("TOS %02x became %02x", tos, got)
			}
			back := m.v6sized(host6, far6, true, 10)
			back[0], back[1] = 0x60|byte(tos)>>4, byte(tos)<<4
			if out = one(t, tr, back); int(out[1]) != tos {
				t.Fatalf("class %02x became %02x", tos, out[1])
			}
		}
		reset := with(func(c *Config) { c.ResetTOS = true })
		in := m.v6sized(host6, far6, true, 10)
		in[0] = 0x6b
		if out := one(t, reset, in); out[1] != 0 {
			t.Errorf("not reset: %x", out[1])
		}
	})
	t.Run("11-udp-without-checksum", func(t *testing.T) { // apalrd/tayga#74, NICMx/Jool#446
		hexCase(t, "udp46-zero-csum-df")
		hexCase(t, "udp46-frag-zerocsum")
		in := unhex("45000022123440004011f41fc63364020a4000020fa00035000e000068656c6c6f21")
		frag := unhex("45000024123420004011141ec63364020a4000020fa00035001000006666666666666666")
		calc := with(func(c *Config) { c.UDPZero = ZeroCompute })
		if out := one(t, calc, in); be16(out[46:]) == 0 { // and judge has checked it
			t.Error("not computed")
		}
		if out, r := run(t, calc, &s, frag); r.Verdict != Reply || r.Reason != ZeroChecksumIPv4 || out[0][21] != 13 {
			t.Errorf("%v %v", r.Verdict, r.Reason)
		}
		forward := with(func(c *Config) { c.UDPZero = ZeroForward })
		for _, p := range [][]byte{in, frag} {
			out, r := run(t, forward, &s, p)
			if r.Verdict != Forward {
				t.Fatalf("%v %v", r.Verdict, r.Reason)
			}
			back, r := run(t, forward, &s, out[0])
			if r.Verdict != Forward || be16(back[0][26:]) != 0 {
				t.Errorf("%v %v", r.Verdict, r.Reason)
			}
		}
		out, _ := run(t, forward, &s, in)
		if _, r := run(t, tr, &s, out[0]); r.Verdict != Reply || r.Reason != ZeroChecksumIPv6 {
			t.Errorf("IPv6 without checksum: %v %v", r.Verdict, r.Reason)
		}
	})
	t.Run("12-well-known-prefix-by-32-bits", func(t *testing.T) { // opnsense/plugins#4088
		private := netip.MustParseAddr("10.0.0.8")
		for prefix, want := range map[string]Reason{"64:ff9b::/96": NonGlobalWellKnown, "64:ff9b:1::/96": Translated64} {
			x := with(func(c *Config) { c.Prefix = must(ParsePrefix(prefix)) })
			out, r := run(t, x, &s, m.v6sized(host6, x.Config().Prefix.Embed(private), true, 8))
			if r.Reason != want {
				t.Errorf("%s: %v", prefix, r.Reason)
			}
			if want == NonGlobalWellKnown && (r.Verdict != Reply || out[0][40] != 1 || out[0][41] != 1) {
				t.Errorf("%v", r.Verdict)
			}
			if _, r = run(t, x, &s, m.v4sized(private, host4, true, 8, true)); (r.Reason == NonGlobalWellKnown) != (want == NonGlobalWellKnown) {
				t.Errorf("%s back: %v", prefix, r.Reason)
			}
		}
		x := with(func(c *Config) { c.Prefix, c.AllowNonGlobalWKP = WellKnownPrefix(), true })
		one(t, x, m.v6sized(host6, x.Config().Prefix.Embed(private), true, 8))
	})
	t.Run("13-suffix-bits-looked-at", func(t *testing.T) { // apalrd/tayga#10
		x := with(func(c *Config) { c.Prefix = must(ParsePrefix("2001:db8:100::/40")) })
		out := one(t, x, m.v6sized(host6, netip.MustParseAddr("2001:db8:1c6:3364:ff02::dead"), true, 8))
		if dst := netip.AddrFrom4([4]byte(out[16:20])); dst != far4 {
			t.Errorf("to %v", dst)
		}
		out = one(t, x, m.v4sized(far4, host4, true, 8, true))
		if src := netip.AddrFrom16([16]byte(out[8:24])); src != netip.MustParseAddr("2001:db8:1c6:3364:2::") {
			t.Errorf("from %v", src)
		}
	})
	t.Run("14-own-address-inside-the-prefix", func(t *testing.T) { // apalrd/tayga#132
		x := with(func(c *Config) { c.Own6 = c.Prefix.Embed(c.Own4) })
		in := m.v6sized(host6, far6, true, 8)
		in[7] = 1
		if out := one(t, x, in); netip.AddrFrom16([16]byte(out[8:24])) != x.Config().Own6 {
			t.Errorf("%x", out[:40])
		}
	})
	t.Run("15-error-from-untranslatable-router", func(t *testing.T) { // apalrd/tayga#3, ayourtch/nat46#10, RFC 6791
		hexCase(t, "icmp64-te-untranslatable-src")
		in := m.v6sized(netip.MustParseAddr("2001:db8:dead::1"), far6, true, 8)
		if out, r := run(t, tr, &s, in); r.Verdict != Reply || r.Reason != UntranslatableSource || out[0][40] != 1 || out[0][41] != 5 {
			t.Errorf("%v %v", r.Verdict, r.Reason)
		}
		// Each router keeps one address of the pool.
		x := with(func(c *Config) { c.RFC6791v4 = netip.MustParsePrefix("203.0.113.64/27") })
		seen := map[netip.Addr]bool{}
		for i := range 64 {
			router := addr6{0x20010db8dead0000, uint64(i)}.netip()
			e := m.icmp6(router, far6, 3, 0, append(make([]byte, 4), m.v6sized(far6, host6, true, 8)...))
			a, b := one(t, x, e), one(t, x, e)
			if !bytes.Equal(a[12:16], b[12:16]) || !x.Config().RFC6791v4.Contains(netip.AddrFrom4([4]byte(a[12:16]))) {
				t.Fatalf("%v, %v", a[12:16], b[12:16])
			}
			seen[netip.AddrFrom4([4]byte(a[12:16]))] = true
		}
		if len(seen) < 16 {
			t.Errorf("64 routers share %d addresses of 32", len(seen))
		}
	})
	t.Run("16-illegal-source-only-in-errors", func(t *testing.T) {
		hexCase(t, "icmp46-te-src-loopback")
		none(t, tr, unhex("450000221234400040119f547f0000010a4000020fa00035000e22c768656c6c6f21"), IllegalSource)
	})
	t.Run("17-time-exceeded-for-foreign-packets", func(t *testing.T) { // NICMx/Jool#167
		in := m.v6sized(host6, netip.MustParseAddr("2001:db8:ffff::1"), true, 8)
		in[7] = 1
		none(t, tr, in, UntranslatableDestination)
		in = m.v4sized(far4, netip.MustParseAddr("10.99.0.1"), true, 8, true)
		in[8] = 1
		put16(in[10:], 0)
		put16(in[10:], ^checksum.Sum(in[:20]))
		none(t, with(func(c *Config) { c.Prefix = Prefix{} }), in, UntranslatableDestination)
	})
	t.Run("18-lowest-mtu-off-by-some", func(t *testing.T) { // NICMx/Jool#118
		out, _ := run(t, tr, &s, m.v4sized(far4, host4, true, 1308-28, false))
		if len(out) != 2 || len(out[0]) != 1280 || len(out[1]) != 1308-20-1232+48 {
			t.Fatalf("%d packets, %d octets", len(out), len(out[0]))
		}
		for n := 1200; n < 1500; n++ { // never larger, never an odd cut
			out, _ := run(t, tr, &s, m.v4sized(far4, host4, true, n-28, false))
			sum := 0
			for i, p := range out {
				if len(p) > 1280 || i < len(out)-1 && (len(p)-48)%8 != 0 {
					t.Fatalf("%d: fragment %d has %d octets", n, i, len(p))
				}
				sum += len(p) - 40
			}
			if len(out) > 1 {
				sum -= 8 * len(out)
			}
			if sum != n-20 {
				t.Fatalf("%d: payload %d", n, sum)
			}
		}
	})
	t.Run("19-hop-limit-not-decremented", func(t *testing.T) { // RyanW02/nat64
		for limit := range 256 {
			in := m.v6sized(host6, far6, true, 8)
			in[7] = byte(limit)
			out, r := run(t, tr, &s, in)
			if limit <= 1 {
				if r.Verdict != Reply || out[0][40] != 3 || out[0][41] != 0 {
					t.Fatalf("%d: %v %v", limit, r.Verdict, r.Reason)
				}
			} else if int(out[0][8]) != limit-1 {
				t.Fatalf("%d became %d", limit, out[0][8])
			}
		}
	})
	t.Run("20-source-route", func(t *testing.T) {
		hexCase(t, "udp46-lsrr-unexpired")
		hexCase(t, "udp46-lsrr-expired")
		for _, o := range []struct {
			option string
			routed bool
		}{
			{"01830704c6336401", true}, {"890704c6336401" + "00", true}, {"890708c6336401" + "00", false},
			{"830708c633640100", false}, {"00830704c6336401", false}, {"94040000" + "830300" + "00", true},
			{"8302" + "0000", false}, {"83", false}, {"8300", false}, {"83ff04", false}, {"83030400", false},
		} {
			if got := sourceRouted(unhex(o.option)); got != o.routed {
				t.Errorf("%s: %v", o.option, got)
			}
		}
	})
	t.Run("21-fragment-fields-misplaced", func(t *testing.T) { // yanet-platform/yanet2#1875
		for _, f := range []uint16{flagMF, flagMF | 1, 1, flagMF | 0x155, 0x1000, flagMF | 0x1000} {
			in := m.v4sized(far4, host4, true, 64, false)
			put16(in[4:], 0xbeef)
			put16(in[6:], f)
			put16(in[10:], 0)
			put16(in[10:], ^checksum.Sum(in[:20]))
			out, _ := run(t, tr, &s, in)
			offset, more, id := be16(out[0][42:])>>3, be16(out[0][42:])&7, be32(out[0][44:])
			if offset != f&offsetMask || more != f>>13 || id != 0xbeef || out[0][40] != 17 || out[0][41] != 0 {
				t.Errorf("%04x: offset %x, more %d, id %x", f, offset, more, id)
			}
			back := bytes.Clone(out[0]) // host to host the other way
			copy(back[8:24], host6.AsSlice())
			copy(back[24:40], far6.AsSlice())
			put32(back[44:], 0x1234beef)
			out, _ = run(t, tr, &s, back)
			if be16(out[0][4:]) != 0xbeef || be16(out[0][6:]) != f {
				t.Errorf("%04x back: %x", f, out[0][4:8])
			}
		}
	})
	t.Run("22-static-map-works-from-either-side", func(t *testing.T) { // apalrd/tayga#2
		pool := must(NewPool(PoolOptions{V4: netip.MustParsePrefix("10.64.0.0/24")}))
		x := must(New(Config{Prefix: must(ParsePrefix("2001:db8:64::/96")), Pools: []*Pool{pool},
			EAM: []EAM{{netip.MustParsePrefix("2001:db8:c::2/128"), netip.MustParsePrefix("10.64.0.2/32")}}}))
		one(t, x, m.v4sized(far4, host4, true, 8, true))
		if pool.Len() != 0 {
			t.Errorf("%d bindings", pool.Len())
		}
	})
	t.Run("untranslatable-quote", func(t *testing.T) {
		// Errors whose quoted packet cannot be ours are not passed on.
		quote := m.v4sized(host4, far4, true, 8, true)
		copy(quote[12:], []byte{1, 2, 3, 4})
		x := with(func(c *Config) {
			c.Prefix = Prefix{}
			c.EAM = append(c.EAM, EAM{netip.MustParsePrefix("2001:db8:9::/120"), netip.MustParsePrefix("198.51.100.0/24")})
		})
		none(t, x, m.icmp4(far4, host4, 3, 1, append(make([]byte, 4), quote...)), QuotedPacket)
	})
	t.Run("numbers-that-mean-something-else", func(t *testing.T) {
		// An IPv4 packet of protocol 0, 43, 44, 58 or 60 must not become IPv6
		// headers, nor one of IPv6's next header 1 an ICMPv4 message.
		for _, protocol := range []byte{0, 2, 43, 44, 58, 60} {
			in := m.v4sized(far4, host4, true, 64, true)
			in[9] = protocol
			put16(in[10:], 0)
			put16(in[10:], ^checksum.Sum(in[:20]))
			none(t, tr, in, UntranslatableProtocol)
		}
		for _, next := range []byte{1, 2} {
			in := m.v6sized(host6, far6, true, 64)
			in[6] = next
			none(t, tr, in, UntranslatableProtocol)
		}
	})
	t.Run("no-errors-about-errors", func(t *testing.T) { // RFC 4443 section 2.4 (e), RFC 1122 section 3.2.2
		e6 := m.icmp6(host6, far6, 1, 0, append(make([]byte, 4), m.v6sized(far6, host6, true, 8)...))
		e6[7] = 1
		none(t, tr, e6, HopLimit)
		later := m.v4sized(far4, host4, true, 64, false)
		put16(later[6:], 8)
		later[8] = 1
		put16(later[10:], 0)
		put16(later[10:], ^checksum.Sum(later[:20]))
		none(t, tr, later, HopLimit)
		silent := with(func(c *Config) { c.NoErrors = true })
		in := m.v6sized(host6, far6, true, 8)
		in[7] = 1
		none(t, silent, in, HopLimit)
	})
	t.Run("error-rate-limit", func(t *testing.T) {
		x := with(func(c *Config) { c.ErrorRate = 0.001 })
		in := m.v6sized(host6, far6, true, 8)
		in[7] = 1
		sent := 0
		for range 50 {
			if _, r := run(t, x, &s, in); r.Verdict == Reply {
				sent++
			}
		}
		if st := x.Stats(); sent != 10 || st.Replies != 10 || st.Suppressed != 40 || st.Count(HopLimit) != 50 {
			t.Errorf("%d sent, %+v", sent, st)
		}
	})
	t.Run("segments-left-pointer", func(t *testing.T) {
		udp := m.v6sized(host6, far6, true, 8)
		for _, pad := range []int{0, 8, 16} {
			in := slices.Clone(udp[:40])
			next := byte(43)
			if pad > 0 {
				in = append(in, append([]byte{43, byte(pad/8 - 1), 1, byte(pad - 4)}, make([]byte, pad-4)...)...)
				next = 60
			}
			in = append(in, 17, 0, 0, 1, 0, 0, 0, 0)
			in = append(in, udp[40:]...)
			in[6] = next
			put16(in[4:], uint16(len(in)-40))
			out := one(t, tr, in)
			if out[40] != 4 || out[41] != 0 || be32(out[44:]) != uint32(43+pad) {
				t.Errorf("%d octets before: %x", pad, out[40:48])
			}
		}
	})
	t.Run("echo-to-own-address", func(t *testing.T) {
		x := with(func(c *Config) { c.EchoReply = true })
		ping := m.icmp6(host6, x.Config().Own6, 128, 0, []byte{0, 1, 0, 2, 3, 4, 5})
		if out := one(t, x, ping); out[40] != 129 || !bytes.Equal(out[44:], ping[44:]) || !bytes.Equal(out[24:40], ping[8:24]) {
			t.Errorf("%x", out)
		}
		ping = m.icmp4(far4, x.Config().Own4, 8, 0, []byte{0, 1, 0, 2, 3, 4, 5})
		if out := one(t, x, ping); out[20] != 0 || !bytes.Equal(out[24:], ping[24:]) || !bytes.Equal(out[16:20], ping[12:16]) {
			t.Errorf("%x", out)
		}
		if _, r := run(t, x, &s, m.v4sized(far4, x.Config().Own4, true, 8, true)); r.Reason == EchoAnswered {
			t.Error("UDP answered as echo")
		}
	})
	// What is sent to the translator itself ends there: behind the prefix it
	// would come back, and go round until its hops are used up.
	t.Run("own-address-is-no-loop", func(t *testing.T) {
		for _, change := range []func(*Config){
			func(*Config) {},
			func(c *Config) { c.EchoReply = true },
			func(c *Config) { c.Own6 = netip.Addr{} },
			func(c *Config) { c.Prefix, c.AllowNonGlobalWKP = WellKnownPrefix(), true },
			func(c *Config) { c.Own4 = netip.Addr{} },
		} {
			x := with(change)
			for _, own := range []netip.Addr{tr.Config().Own4, tr.Config().RFC6791v4.Addr()} {
				if own == tr.Config().Own4 && !x.Config().Own4.IsValid() {
					continue
				}
				for kind := range 2 {
					out := one(t, x, m.v4(far4, own, kind))
					if out[0]>>4 != 4 || out[20] != 3 || out[21] != 2 {
						t.Errorf("to %v: %x", own, out)
					}
				}
				none(t, x, m.icmpError(far4, own, m.v4(own, far4, 1)), UntranslatableDestination)
				host := x.Config().Prefix.Embed(own)
				if out := one(t, x, m.v6sized(host6, host, true, 8)); out[0]>>4 != 4 {
					t.Errorf("from IPv6: %x", out) // to IPv4 and from there to the above
				}
			}
		}
		// An address with a mapping of its own is that host's.
		x := with(func(c *Config) { c.Own4 = netip.MustParseAddr("10.64.0.9") })
		if out := one(t, x, m.v4sized(far4, x.Config().Own4, true, 8, true)); out[0]>>4 != 6 {
			t.Errorf("%x", out)
		}
	})
	t.Run("simple-hairpinning", func(t *testing.T) { // RFC 7757 section 4.2.1
		x := with(func(c *Config) { c.Hairpin = HairpinSimple })
		other4, other6 := netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("2001:db8:aaaa::9")
		pre := func(a netip.Addr) netip.Addr { return x.Config().Prefix.Embed(a) }
		// host6 to other's IPv4 address: out to IPv4, and back in.
		out := one(t, x, m.v6sized(host6, pre(other4), true, 8))
		out = one(t, x, out)
		if src, dst := netip.AddrFrom16([16]byte(out[8:24])), netip.AddrFrom16([16]byte(out[24:40])); src != pre(host4) || dst != other6 {
			t.Errorf("%v to %v", src, dst)
		}
		// The error that other6 answers with takes the same way.
		e := m.icmp6(other6, pre(host4), 1, 4, append(make([]byte, 4), out...))
		out = one(t, x, one(t, x, e))
		if src, dst := netip.AddrFrom16([16]byte(out[8:24])), netip.AddrFrom16([16]byte(out[24:40])); src != pre(other4) || dst != host6 {
			t.Errorf("error %v to %v", src, dst)
		}
		if src, dst := netip.AddrFrom16([16]byte(out[56:72])), netip.AddrFrom16([16]byte(out[72:88])); src != host6 || dst != pre(other4) {
			t.Errorf("quoted %v to %v", src, dst)
		}
		// The same exchange at once with intrinsic hairpinning.
		out = one(t, tr, m.v6sized(host6, pre(other4), true, 8))
		if src, dst := netip.AddrFrom16([16]byte(out[8:24])), netip.AddrFrom16([16]byte(out[24:40])); src != pre(host4) || dst != other6 {
			t.Errorf("intrinsic %v to %v", src, dst)
		}
		out = one(t, tr, m.icmp6(other6, pre(host4), 1, 4, append(make([]byte, 4), out...)))
		if src, dst := netip.AddrFrom16([16]byte(out[56:72])), netip.AddrFrom16([16]byte(out[72:88])); src != host6 || dst != pre(other4) {
			t.Errorf("intrinsic quoted %v to %v", src, dst)
		}
	})
	t.Run("no-headroom", func(t *testing.T) {
		in := m.v4sized(far4, host4, true, 8, true)
		for off := range Headroom {
			buf := append(make([]byte, off), in...)
			r := tr.Translate(&s, buf, off, len(in))
			if (r.Reason == NoHeadroom) != (off < 20) {
				t.Errorf("%d: %v", off, r.Reason)
			}
		}
		for _, x := range [][2]int{{-1, 5}, {0, 0}, {0, -1}, {1, len(in)}, {len(in), 1}, {math.MaxInt, 1}, {1, math.MaxInt}} {
			if r := tr.Translate(&s, bytes.Clone(in), x[0], x[1]); r.Verdict != Drop {
				t.Errorf("%v: %v", x, r.Verdict)
			}
		}
	})
	t.Run("small-ipv4-mtu", func(t *testing.T) {
		x := with(func(c *Config) { c.MTU4 = 576 })
		in := m.v6sized(host6, far6, true, 1000)
		out, r := run(t, x, &s, in)
		if r.Reason != FragmentedV4 || len(out) != 2 || len(out[0]) > 576 || len(out[0])+len(out[1])-40 != 1008 {
			t.Errorf("%v, %d packets", r.Reason, len(out))
		}
		for _, p := range out {
			if err := judge(p); err != nil {
				t.Error(err)
			}
		}
		if out := one(t, x, m.v6sized(host6, far6, true, 1300)); out[40] != 2 || be32(out[44:]) != 596 {
			t.Errorf("%x", out[40:48])
		}
	})
	t.Run("error-on-small-ipv4-mtu", func(t *testing.T) {
		x := with(func(c *Config) { c.MTU4 = 296 })
		error64 := m.icmp6(host6, far6, 1, 4, append(make([]byte, 4), m.v6sized(far6, host6, true, 1000)...))
		expired := m.v4sized(far4, host4, true, 1000, true)
		expired[8] = 1
		fixHeader4(expired)
		for _, in := range [][]byte{error64, expired} {
			if out := one(t, x, in); len(out) != 296 {
				t.Errorf("%d octets", len(out))
			}
		}
	})
	t.Run("strict-fragment-header", func(t *testing.T) {
		x := with(func(c *Config) { c.StrictFragmentHeader = true })
		if out := one(t, x, m.v4sized(far4, host4, true, 8, false)); out[6] != 44 || be16(out[42:]) != 0 {
			t.Errorf("%x", out)
		}
		if out := one(t, x, m.v4sized(far4, host4, true, 8, true)); out[6] != 17 {
			t.Errorf("%x", out)
		}
	})
	t.Run("other-checksums", func(t *testing.T) {
		dccp := unhex("4500002c0000400040210000c63364020a400002" + "07d00fa005009ca30100555555555555aaaaaaaa01020304")
		put16(dccp[10:], ^checksum.Sum(dccp[:20]))
		out, _ := run(t, tr, &s, dccp)
		if !bytes.Equal(out[0][40:], dccp[20:]) {
			t.Error("changed although not asked to")
		}
		x := with(func(c *Config) { c.OtherChecksums = true })
		out, _ = run(t, x, &s, dccp)
		want := adjust(be16(dccp[26:]), sum4(dccp[12:20]), load6(out[0][8:]).sum()+load6(out[0][24:]).sum())
		if got := be16(out[0][46:]); got != want {
			t.Errorf("%04x, want %04x", got, want)
		}
	})
}

func sum4(b []byte) uint64 { return uint64(be32(b)) + uint64(be32(b[4:])) }

// Every value of a word, so that the checksum meets its edges: RFC 768 and
// RFC 8200 have 0xffff in place of 0.
func TestUDPChecksumEdges(t *testing.T) {
	tr := must(New(crossConfig()))
	var s Scratch
	m := testMaker()
	p6 := m.v6sized(netip.MustParseAddr("2001:db8:c::2"), tr.Config().Prefix.Embed(netip.MustParseAddr("198.51.100.2")), true, 2)
	p4 := m.v4sized(netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("10.64.0.2"), true, 2, true)
	step := 1
	if testing.Short() {
		step = 251
	}
	for _, p := range [][]byte{p4, p6} {
		l4 := len(p) - 10
		sum := load6(p[8:]).sum() + load6(p[min(24, len(p)-16):]).sum()
		if p[0]>>4 == 4 {
			sum = sum4(p[12:])
		}
		edges := 0
		for v := 0; v < 1<<16; v += step {
			put16(p[l4+8:], uint16(v))
			put16(p[l4+6:], 0)
			put16(p[l4+6:], finishUDP(p[l4:], sum))
			out, r := run(t, tr, &s, p)
			if r.Verdict != Forward {
				t.Fatalf("%v %v", r.Verdict, r.Reason)
			}
			o := out[0]
			at := len(o) - 10
			osum := load6(o[8:]).sum() + load6(o[min(24, len(o)-16):]).sum()
			if o[0]>>4 == 4 {
				osum = sum4(o[12:])
			}
			got := be16(o[at+6:])
			put16(o[at+6:], 0)
			if want := finishUDP(o[at:], osum); got != want {
				t.Fatalf("%04x: %04x, want %04x", v, got, want)
			}
			if got == 0xffff {
				edges++
			}
		}
		if step == 1 && edges != 1 {
			t.Errorf("%d results of 0xffff", edges)
		}
	}
}

func TestPointerTables(t *testing.T) {
	for p := range 256 {
		if v, ok := pointer46(uint8(p)); ok {
			switch {
			case p <= 1 && v != uint32(p), p == 2 && v != 4, p == 3 && v != 4, p == 8 && v != 7, p == 9 && v != 6,
				p >= 12 && p < 16 && v != 8, p >= 16 && v != 24:
				t.Errorf("IPv4 pointer %d is %d", p, v)
			}
		} else if p <= 3 || p == 8 || p == 9 || p >= 12 && p <= 19 {
			t.Errorf("IPv4 pointer %d is not translated", p)
		}
	}
	if _, ok := pointer64(1 << 31); ok {
		t.Error("a pointer far outside is translated")
	}
}

func fixHeader4(p []byte) {
	put16(p[10:], 0)
	put16(p[10:], ^checksum.Sum(p[:20]))
}
