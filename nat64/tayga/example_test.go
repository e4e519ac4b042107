package tayga_test

import (
	"fmt"
	"net/netip"
	"strings"

	"signalbox.example/nat64"
	"signalbox.example/nat64/tayga"
)

// From a tayga.conf to a translator.
func ExampleConfig_Translator() {
	conf, err := tayga.Parse(strings.NewReader(`
tun-device nat64
ipv4-addr 10.64.0.1
ipv6-addr 2001:db8:1::64
prefix 2001:db8:64::/96
map 10.64.0.10 2001:db8::10
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg, err := conf.Translator(1500)
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := nat64.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, a := range []string{"10.64.0.10", "192.0.2.1"} {
		v6, by := t.To6(netip.MustParseAddr(a))
		fmt.Println(a, v6, by)
	}
	// Output:
	// 10.64.0.10 2001:db8::10 EAM (RFC 7757 section 3.3)
	// 192.0.2.1 2001:db8:64::c000:201 prefix (RFC 6052 section 2.3)
}
