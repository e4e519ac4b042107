package fastpath

import (
	"net/netip"
	"strings"
	"testing"

	"signalbox.example/nat64"
)

func testConfig(t testing.TB, prefix string) nat64.Config {
	t.Helper()
	p, err := nat64.ParsePrefix(prefix)
	if err != nil {
		t.Fatal(err)
	}
	return nat64.Config{Prefix: p}
}

// The program needs no kernel to be assembled, and every jump finds its place.
func TestProgramAssembles(t *testing.T) {
	for _, prefix := range []string{"2001:db8::/32", "2001:db8:100::/40", "2001:db8:122::/48", "2001:db8:122:300::/56", "2001:db8:122:344::/64", "64:ff9b::/96"} {
		for _, change := range []func(*Config){
			func(*Config) {},
			func(c *Config) { c.NoLinkHeader = true },
			func(c *Config) { c.EAMDestinations = true },
			func(c *Config) { c.ResetTOS, c.HairpinSimple = true, true },
			func(c *Config) { c.Neighbour4, c.Neighbour6 = 3, 4 },
			func(c *Config) { c.Prefix = nat64.Prefix{} },
		} {
			c := FromTranslator(testConfig(t, prefix))
			change(&c)
			ins, err := Program(c)
			if err != nil {
				t.Fatal(err)
			}
			symbols := map[string]bool{}
			for _, i := range ins {
				if s := i.Symbol(); s != "" {
					if symbols[s] {
						t.Errorf("two places named %s", s)
					}
					symbols[s] = true
				}
			}
			for _, i := range ins {
				if r := i.Reference(); r != "" && !symbols[r] && r != map64 && r != map46 && r != mapIDs && r != mapHits && r != mapUsed {
					t.Errorf("%v: no place named %s", i, r)
				}
			}
			if len(ins) > 900 {
				t.Errorf("%d instructions", len(ins))
			}
		}
	}
}

func TestProgramRefusesBadNumbers(t *testing.T) {
	for _, c := range []Config{{}, {MTU4: 1500, MTU6: 1279, LowestIPv6MTU: 1280}, {MTU4: 1500, MTU6: 1500, LowestIPv6MTU: 1501}, {MTU4: 70000, MTU6: 1500, LowestIPv6MTU: 1280}} {
		if _, err := Program(c); err == nil || !strings.HasPrefix(err.Error(), "fastpath: ") {
			t.Errorf("Program(%+v) = %v", c, err)
		}
	}
}

func TestReleases(t *testing.T) {
	for release, ok := range map[string]bool{
		"5.14.0": true, "5.14": true, "6.1.0-57-cloud-amd64": true, "6.18.44-x": true, "10.0": true,
		"5.13.19": false, "4.19.0": false, "5.10.0-44-amd64": false, "junk": false, "": false, "5.": false,
	} {
		if err := checkRelease(release); (err == nil) != ok {
			t.Errorf("release %q: %v", release, err)
		}
	}
}

// What the library calls not global is in the table of a strict translator,
// octet by octet.
func TestNotGlobalBlocks(t *testing.T) {
	cfg := testConfig(t, "64:ff9b::/96")
	e := fromConfig(cfg)
	lookup := func(a netip.Addr) bool {
		for bits := 32; bits >= 0; bits-- {
			p, err := a.Prefix(bits)
			if err != nil {
				t.Fatal(err)
			}
			if v, ok := e.v4[p]; ok {
				return v.kind == kindPunt
			}
		}
		return false
	}
	for x := range 256 {
		for y := range 256 {
			for _, tail := range [][2]byte{{0, 0}, {0, 9}, {2, 1}, {64, 3}, {99, 1}, {100, 1}, {113, 8}, {168, 1}, {255, 255}} {
				a := netip.AddrFrom4([4]byte{byte(x), byte(y), tail[0], tail[1]})
				if !cfg.Prefix.Allowed(a) && !lookup(a) {
					t.Fatalf("%v is not allowed, but would go fast", a)
				}
			}
		}
	}
}
