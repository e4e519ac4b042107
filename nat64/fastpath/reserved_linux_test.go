package fastpath

import (
	"net/netip"
	"testing"

	"signalbox.example/internal/need"
	"signalbox.example/nat64"
)

// Entries that hold addresses which are never routed do not carry them past
// the translator's rules: one for all of IPv4, some for parts of such blocks.
func TestIntegrationNeverRouted(t *testing.T) {
	need.Asked(t, feature)
	p := netip.MustParsePrefix
	for _, x := range []struct {
		name string
		eam  []nat64.EAM
	}{
		{"all", []nat64.EAM{{V6: p("2001:db8:60::/96"), V4: p("0.0.0.0/0")}}},
		{"all and within", []nat64.EAM{
			{V6: p("2001:db8:60::/96"), V4: p("0.0.0.0/0")},
			{V6: p("2001:db8:60::7f01:0/112"), V4: p("9.1.0.0/16")}, // takes the place of 127.1.0.0/16
			{V6: p("2001:db8:60::8000:0/97"), V4: p("128.0.0.0/1")},
		}},
		{"high half", []nat64.EAM{{V6: p("2001:db8::/32"), V4: p("0.0.0.0/0")}}},
		{"both halves", []nat64.EAM{{V6: p("2001:db8:60::/48"), V4: p("0.0.0.0/0")}}},
		{"block", []nat64.EAM{{V6: p("2001:db8:60::7f00:0/104"), V4: p("127.0.0.0/8")}, {V6: p("2001:db8:60::f000:0/100"), V4: p("240.0.0.0/4")}}},
		{"within", []nat64.EAM{{V6: p("2001:db8:60::7f01:0/112"), V4: p("127.1.0.0/16")}, {V6: p("2001:db8:60::1:203/128"), V4: p("0.1.2.3/32")},
			{V6: p("2001:db8:60::808:808/128"), V4: p("8.8.8.8/32")}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			prefix, err := nat64.ParsePrefix("3fff:64::/96")
			if err != nil {
				t.Fatal(err)
			}
			cfg := nat64.Config{Prefix: prefix, EAM: x.eam, Own4: netip.MustParseAddr("198.51.100.1"), ErrorRate: -1, Hairpin: nat64.HairpinNone}
			f := newFlow(11)
			f.in6, f.out6, f.in4, f.out4 = nil, nil, nil, nil
			for _, s := range []string{"8.8.8.8", "127.1.1.1", "127.2.1.1", "0.1.2.3", "240.0.0.1", "224.1.1.1", "9.1.1.1", "255.255.255.255", "192.0.2.1"} {
				a := netip.MustParseAddr(s)
				b := a.As4()
				low := netip.MustParseAddr("2001:db8:60::").As16()
				copy(low[12:], b[:])
				high := netip.MustParseAddr("2001:db8::").As16()
				copy(high[4:], b[:])
				across := netip.MustParseAddr("2001:db8:60::").As16()
				copy(across[6:], b[:])
				for _, m := range [][16]byte{low, high, across} {
					f.in6, f.out6 = append(f.in6, netip.AddrFrom16(m)), append(f.out6, netip.AddrFrom16(m), prefix.Embed(a))
				}
				f.in4, f.out4 = append(f.in4, a), append(f.out4, a)
			}
			differential(t, cfg, f, nil, 60_000)
		})
	}
}
