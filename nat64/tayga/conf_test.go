package tayga

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"signalbox.example/nat64"
)

const usual = `
# the directives of Debian's example
tun-device nat64
ipv4-addr 192.168.255.1   # ours
prefix 2001:db8:1:ffff::/96
dynamic-pool 192.168.255.0/24
DATA-DIR STORE
map 192.168.5.42 2001:db8:1:4444::1
map 192.168.6.0/24 2001:db8:1:5555::/64
strict-frag-hdr off
wkpf-strict no
udp-cksum-mode calc
offlink-mtu 1400
log drop reject
log icmp
tun-up yes
tun-ip 192.168.255.1/24
tun-route 2001:db8:1:ffff::/96
tun-route 192.168.5.42
`

func TestParse(t *testing.T) {
	dir := t.TempDir()
	conf, err := Parse(strings.NewReader(strings.Replace(usual, "STORE", dir, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if conf.TunDevice != "nat64" || conf.IPv4Addr.String() != "192.168.255.1" || conf.IPv6Addr.IsValid() ||
		conf.Prefix.String() != "2001:db8:1:ffff::/96" || conf.DynamicPool.String() != "192.168.255.0/24" ||
		conf.DataDir != dir || conf.StrictFragHdr || conf.WKPFStrict || conf.UDPChecksum != nat64.ZeroCompute ||
		conf.OfflinkMTU != 1400 || strings.Join(conf.Log, " ") != "drop reject icmp" || !conf.TunUp ||
		len(conf.TunIPs) != 1 || len(conf.TunRoutes) != 2 || len(conf.Maps) != 2 || conf.Maps[1].Line != 9 {
		t.Errorf("%+v", conf)
	}
	cfg, err := conf.Translator(9000)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := nat64.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for v4, v6 := range map[string]string{
		"192.168.5.42": "2001:db8:1:4444::1",
		"192.168.6.7":  "2001:db8:1:5555:700::",
		"198.51.100.1": "2001:db8:1:ffff::198.51.100.1",
	} {
		if got, _ := tr.To6(netip.MustParseAddr(v4)); got != netip.MustParseAddr(v6) {
			t.Errorf("%v is %v, want %v", v4, got, v6)
		}
	}
	if cfg.MTU6 != 9000 || cfg.LowestIPv6MTU != 1400 || !cfg.AllowNonGlobalWKP || !cfg.EchoReply {
		t.Errorf("%+v", cfg)
	}
}

func TestWrongLines(t *testing.T) {
	base := "tun-device nat64\nipv4-addr 192.0.2.1\nprefix 2001:db8::/96\n"
	for _, x := range []struct {
		text  string
		line  int
		cause error
	}{
		{base + "tun-devise nat64", 4, ErrUnknown},
		{base + "map 10.0.0.1", 4, ErrArguments},
		{base + "map 10.0.0.1 2001:db8:5::1 x", 4, ErrArguments},
		{base + "log", 4, ErrArguments},
		{base + "log everything", 4, ErrValue},
		{base + "prefix 2001:db8::/96", 4, ErrDuplicate},
		{base + "ipv6-addr 10.0.0.1", 4, nat64.ErrFamily},
		{base + "ipv6-addr fe80::1%eth0", 4, nat64.ErrFamily},
		{base + "wkpf-strict maybe", 4, ErrValue},
		{base + "udp-cksum-mode none", 4, ErrValue},
		{base + "offlink-mtu 1200", 4, nat64.ErrRange},
		{base + "offlink-mtu many", 4, ErrValue},
		{base + "dynamic-pool 10.0.0.0/32", 4, nat64.ErrRange},
		{base + "dynamic-pool 10.0.0.1/24", 4, nat64.ErrHostBits},
		{base + "dynamic-pool 2001:db8::/64", 4, nat64.ErrFamily},
		{base + "data-dir var/tayga", 4, ErrValue},
		{base + "map 10.0.0.0/24 2001:db8:5::/121", 4, nat64.ErrSuffix},
		{base + "map 10.0.0.1/24 2001:db8:5::/64", 4, nat64.ErrHostBits},
		{base + "map 2001:db8:5::1 10.0.0.1", 4, nat64.ErrFamily},
		{base + "map 10.0.0.1 2001:db8:5::1\nmap 10.0.0.1 2001:db8:5::2", 5, nat64.ErrDuplicate},
		{base + "map 10.0.0.1 2001:db8:5::1\nmap 10.0.0.2 2001:db8:5::1", 5, nat64.ErrDuplicate},
		{base + "tun-ip x", 4, ErrValue},
		{"ipv4-addr 192.0.2.1\nprefix 2001:db8::/96", 0, ErrMissing},
		{"tun-device nat64\nprefix 2001:db8::/96", 0, ErrMissing},
		{"tun-device nat64\nipv4-addr 192.0.2.1\nipv6-addr 2001:db8::1", 0, ErrMissing},
		{"tun-device nat64\nipv4-addr 192.0.2.1\nmap 10.0.0.1 2001:db8::1", 0, ErrMissing},
		{"tun-device nat64\nipv4-addr 192.0.2.1\nprefix 64:ff9b::/96", 0, ErrMissing},
		{"tun-device nat64\nipv4-addr 192.0.2.1\nprefix 2001:db8::/95", 3, nat64.ErrPrefixLength},
		{"tun-device interface-name-too-long\nipv4-addr 192.0.2.1\nprefix 2001:db8::/96", 1, ErrValue},
		{base + strings.Repeat("x", 1<<17), 4, nil},
	} {
		_, err := Parse(strings.NewReader(x.text))
		var e *Error
		if !errors.As(err, &e) || e.Line != x.line || x.cause != nil && !errors.Is(err, x.cause) {
			t.Errorf("%.200q: %v, want line %d, %v", x.text, err, x.line, x.cause)
		}
	}
	// All faults at once, with the file's name.
	name := filepath.Join(t.TempDir(), "tayga.conf")
	if err := os.WriteFile(name, []byte("nonsense\n"+base+"map a b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Read(name)
	want := "tayga: " + name + ":1: nonsense: unknown directive\ntayga: " + name + `:5: map "a": invalid value`
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %v", err, want)
	}
	if _, err := Read(name + ".absent"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestAddressInsidePrefix(t *testing.T) {
	// Tayga refuses an ipv6-addr inside the prefix, which is legal.
	if _, err := Parse(strings.NewReader("tun-device nat64\nipv4-addr 192.0.2.1\nprefix 2001:db8::/96\nipv6-addr 2001:db8::c000:201")); err != nil {
		t.Error(err)
	}
}

func TestMapFile(t *testing.T) {
	dir := t.TempDir()
	conf, err := Parse(strings.NewReader("tun-device nat64\nipv4-addr 192.0.2.1\nprefix 2001:db8::/96\nmap 10.0.0.1 2001:db8:5::1\nmap-file hosts.map\ndata-dir " + dir))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "hosts.map")
	if conf.MapPath() != path {
		t.Errorf("map-file at %s", conf.MapPath())
	}
	if _, err := conf.Translator(0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent map-file: %v", err)
	}
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# two hosts\nmap 10.0.0.2 2001:db8:5::2\nMAP 10.0.0.3 2001:db8:5::3 # c\n")
	if cfg, err := conf.Translator(0); err != nil || len(cfg.EAM) != 3 {
		t.Errorf("%v, %v", cfg.EAM, err)
	}
	write("map 10.0.0.1 2001:db8:5::9\n")
	if _, err := conf.Translator(0); !errors.Is(err, nat64.ErrDuplicate) {
		t.Errorf("contradiction: %v", err)
	}
	write("map 10.0.0.4 2001:db8:5::4\nprefix ::/96\n")
	var e *Error
	if _, err := conf.Translator(0); !errors.As(err, &e) || e.Line != 2 || e.File != path || !errors.Is(err, ErrUnknown) {
		t.Errorf("foreign directive: %v", err)
	}
	if m, err := ParseMaps(strings.NewReader("map 10.0.0.0/24 2001:db8:9::/120")); err != nil || len(m) != 1 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestPool(t *testing.T) {
	dir := t.TempDir()
	conf, err := Parse(strings.NewReader(strings.Replace(usual, "STORE", dir, 1)))
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_700_000_000, 0)
	if err := os.WriteFile(filepath.Join(dir, "dynamic.map"), []byte("###\n192.168.255.77\t2001:db8:2::1\t1699999000\nbroken\n192.168.255.1\t2001:db8:2::2\t1699999000\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pool, err := conf.Pool(nat64.PoolOptions{Now: func() time.Time { return now }})
	if pool == nil || pool.Len() != 1 {
		t.Fatalf("%v, %v", pool, err)
	}
	var e *nat64.LineError
	if !errors.As(err, &e) || e.Line != 3 || !errors.Is(err, nat64.ErrSyntax) || !errors.Is(err, nat64.ErrOutsidePool) {
		t.Errorf("broken lines: %v", err)
	}
	if v4, ok := pool.Lookup4(netip.MustParseAddr("2001:db8:2::1")); !ok || v4.String() != "192.168.255.77" {
		t.Errorf("%v, %v", v4, ok)
	}
	if err := pool.SaveFile(conf.DynamicMapPath()); err != nil {
		t.Fatal(err)
	}
	if again, err := conf.Pool(nat64.PoolOptions{Now: func() time.Time { return now }}); err != nil || again.Len() != 1 {
		t.Errorf("after saving: %v", err)
	}
	conf.DynamicPool = netip.Prefix{}
	if p, err := conf.Pool(nat64.PoolOptions{}); p != nil || err != nil {
		t.Errorf("no pool: %v, %v", p, err)
	}
}

// An address whose map is taken away while the translator runs is the pool's.
func TestPoolGetsAddressesOfMapsBack(t *testing.T) {
	c, err := Parse(strings.NewReader("tun-device nat64\nipv4-addr 10.64.0.1\nprefix 2001:db8:64::/96\ndynamic-pool 10.64.0.0/24\nmap 10.64.0.9 2001:db8::9\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Pool(nat64.PoolOptions{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	const line = "10.64.0.9 2001:db8::5 1799999000\n"
	if n, err := p.LoadFrom(strings.NewReader(line)); n != 0 || !errors.Is(err, nat64.ErrOutsidePool) {
		t.Errorf("mapped: %d, %v", n, err)
	}
	cfg, err := c.Translator(0)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Pools = []*nat64.Pool{p}
	tr, err := nat64.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := p.LoadFrom(strings.NewReader(line)); n != 0 {
		t.Error("mapped, in a translator: taken")
	}
	cfg.EAM = nil
	if err := tr.Update(cfg); err != nil {
		t.Fatal(err)
	}
	if n, err := p.LoadFrom(strings.NewReader(line)); n != 1 {
		t.Errorf("no longer mapped: %d, %v", n, err)
	}
	if n, _ := p.LoadFrom(strings.NewReader("10.64.0.1 2001:db8::6 1799999000\n")); n != 0 {
		t.Error("the translator's own address was taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(usual)
	f.Add("map a b\nmap 10.0.0.0/8 ::/0\nprefix ::/96\n#\n\t\x00")
	f.Fuzz(func(t *testing.T, text string) {
		conf, err := Parse(strings.NewReader(text))
		if (conf == nil) == (err == nil) {
			t.Fatal("neither or both")
		}
		ParseMaps(strings.NewReader(text))
		if conf == nil || conf.MapFile != "" || conf.DataDir != "" || conf.DynamicPool.IsValid() && conf.DynamicPool.Bits() < 16 {
			return
		}
		if _, err := conf.Pool(nat64.PoolOptions{}); err != nil {
			t.Fatal(err)
		}
		cfg, err := conf.Translator(0)
		if err != nil {
			t.Fatal(err)
		}
		nat64.New(cfg) // own addresses may be unfit: no panic is all that counts
	})
}

// Maps that Debian's Tayga refuses, and that would never work.
func TestMapsOfReservedAddresses(t *testing.T) {
	const head = "tun-device nat64\nipv4-addr 10.64.0.1\nipv6-addr 2001:db8:1::64\nprefix 2001:db8:64::/96\n"
	for _, c := range []struct {
		line string
		want error
	}{
		{"map 127.0.0.1 2001:db8::1", ErrReserved}, {"map 224.0.0.1 2001:db8::1", ErrReserved}, {"map 0.0.0.0/0 2001:db8::/96", ErrReserved},
		{"map 169.254.1.1 2001:db8::1", ErrReserved}, {"map 10.64.0.9 fe80::1", ErrReserved}, {"map 10.64.0.9 ::1", ErrReserved}, {"map 10.64.0.9 ff02::1", ErrReserved},
		{"map 10.64.0.1 2001:db8::1", ErrOwn}, {"map 10.64.0.9 2001:db8:1::64", ErrOwn},
		{"map 10.64.0.9 2001:db8::9", nil},
	} {
		_, err := Parse(strings.NewReader(head + c.line + "\n"))
		var e *Error
		if c.want == nil && err != nil || c.want != nil && (!errors.Is(err, c.want) || !errors.As(err, &e) || e.Line != 5) {
			t.Errorf("%s: %v, want %v", c.line, err, c.want)
		}
	}
}
