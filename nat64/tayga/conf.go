package tayga

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"signalbox.example/nat64"
)

// Causes of an [Error], besides those of package nat64.
var (
	// ErrUnknown: a directive that Tayga does not have.
	ErrUnknown = errors.New("unknown directive")
	// ErrArguments: too few or too many words behind a directive.
	ErrArguments = errors.New("wrong number of arguments")
	// ErrDuplicate: a directive that may stand only once.
	ErrDuplicate = errors.New("directive given twice")
	// ErrValue: an argument that cannot be read.
	ErrValue = errors.New("invalid value")
	// ErrReserved: a map of addresses that are not routed.
	ErrReserved = errors.New("reserved addresses cannot be mapped")
	// ErrOwn: a map of the translator's own address.
	ErrOwn = errors.New("the translator's own address cannot be mapped")
	// ErrMissing: a directive that must be there.
	ErrMissing = errors.New("mandatory directive is missing")
)

// Error is what is wrong with one line of a file.
type Error struct {
	File      string // "" if not known
	Line      int    // counted from 1; 0: the file as a whole
	Directive string // as written; or the one that is missing
	Value     string // the offending argument, if it is one
	Err       error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("tayga: ")
	if e.File != "" {
		b.WriteString(e.File + ":")
	}
	if e.Line > 0 {
		b.WriteString(strconv.Itoa(e.Line) + ":")
	}
	if e.File != "" || e.Line > 0 {
		b.WriteByte(' ')
	}
	b.WriteString(e.Directive)
	if e.Value != "" {
		b.WriteString(" " + strconv.Quote(e.Value))
	}
	b.WriteString(": " + e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Map is a map directive: the addresses of two prefixes stand for each other, as
// in [nat64.EAM].
type Map struct {
	V4, V6 netip.Prefix // without host bits
	Line   int          // where it stands in its file
}

// Config is the content of a tayga.conf, one field for each directive. Absent
// directives leave the zero value unless a default is stated.
type Config struct {
	TunDevice     string
	IPv4Addr      netip.Addr
	IPv6Addr      netip.Addr // zero: the prefix embeds IPv4Addr
	Prefix        nat64.Prefix
	Maps          []Map
	MapFile       string // as written: see MapPath
	DynamicPool   netip.Prefix
	DataDir       string
	StrictFragHdr bool
	WKPFStrict    bool // default true
	UDPChecksum   nat64.ZeroChecksum
	OfflinkMTU    int      // in octets; 0: 1280
	Log           []string // of drop, reject, icmp, self, dyn
	TunUp         bool
	TunIPs        []netip.Prefix
	TunRoutes     []netip.Prefix
}

// Read reads the file of this name. See [Parse]. A file that cannot be opened is
// an error that wraps that of os.Open.
func Read(name string) (*Config, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("tayga: %w", err)
	}
	defer f.Close()
	return parse(f, name)
}

// Parse reads a configuration. Words stand between blanks; a word that begins
// with # begins a comment; directives are not case-sensitive. It checks what
// Tayga checks before it starts, among it that tun-device and ipv4-addr are
// there. The error joins an [*Error] for each fault, and the Config is then nil.
func Parse(r io.Reader) (*Config, error) { return parse(r, "") }

type parser struct {
	c    *Config
	file string
	line int
	seen map[string]bool
	maps map[netip.Prefix]int // to lines
	errs []error
}

func (p *parser) fail(directive, value string, err error) {
	p.errs = append(p.errs, &Error{File: p.file, Line: p.line, Directive: directive, Value: value, Err: err})
}

// lines calls each with the words of every line that has some.
func (p *parser) lines(r io.Reader, each func(words []string)) {
	s := bufio.NewScanner(r)
	for s.Scan() {
		p.line++
		words := strings.Fields(s.Text())
		for i, w := range words {
			if w[0] == '#' {
				words = words[:i]
				break
			}
		}
		if len(words) > 0 {
			each(words)
		}
	}
	if err := s.Err(); err != nil {
		p.line++
		p.fail("line", "", err)
	}
}

func parse(r io.Reader, file string) (*Config, error) {
	p := &parser{c: &Config{WKPFStrict: true}, file: file, seen: map[string]bool{}, maps: map[netip.Prefix]int{}}
	p.lines(r, p.directive)
	p.line = 0
	p.validate()
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.c, nil
}

// arguments returns how many arguments a directive has; -1: at least one.
func arguments(directive string) (n int, known bool) {
	switch directive {
	case "tun-device", "ipv4-addr", "ipv6-addr", "prefix", "map-file", "dynamic-pool", "data-dir",
		"strict-frag-hdr", "wkpf-strict", "udp-cksum-mode", "offlink-mtu", "tun-up", "tun-ip", "tun-route":
		return 1, true
	case "map":
		return 2, true
	case "log":
		return -1, true
	}
	return 0, false
}

func (p *parser) directive(words []string) {
	name := strings.ToLower(words[0])
	n, known := arguments(name)
	args := words[1:]
	switch {
	case !known:
		p.fail(words[0], "", ErrUnknown)
		return
	case n >= 0 && len(args) != n, n < 0 && len(args) == 0:
		p.fail(name, strings.Join(args, " "), ErrArguments)
		return
	case p.seen[name] && name != "map" && name != "tun-ip" && name != "tun-route" && name != "log":
		p.fail(name, args[0], ErrDuplicate)
		return
	}
	p.seen[name] = true
	c := p.c
	var err error
	switch arg := args[0]; name {
	case "tun-device":
		c.TunDevice = arg
		if len(arg) > 15 || strings.ContainsAny(arg, "/:") || arg == "." || arg == ".." {
			err = ErrValue
		}
	case "ipv4-addr":
		if c.IPv4Addr, err = netip.ParseAddr(arg); err == nil && !c.IPv4Addr.Is4() {
			err = nat64.ErrFamily
		}
	case "ipv6-addr":
		if c.IPv6Addr, err = netip.ParseAddr(arg); err == nil && (!c.IPv6Addr.Is6() || c.IPv6Addr.Is4In6() || c.IPv6Addr.Zone() != "") {
			err = nat64.ErrFamily
		}
	case "prefix":
		if c.Prefix, err = nat64.ParsePrefix(arg); err != nil {
			var e *nat64.ConfigError
			if errors.As(err, &e) {
				err = e.Err
			}
		}
	case "map":
		p.mapLine(args)
		return
	case "map-file":
		c.MapFile = arg
	case "dynamic-pool":
		if c.DynamicPool, err = netip.ParsePrefix(arg); err == nil {
			switch {
			case !c.DynamicPool.Addr().Is4():
				err = nat64.ErrFamily
			case c.DynamicPool != c.DynamicPool.Masked():
				err = nat64.ErrHostBits
			case c.DynamicPool.Bits() > 31 || c.DynamicPool.Bits() < 8:
				err = nat64.ErrRange
			}
		}
	case "data-dir":
		if c.DataDir = arg; !filepath.IsAbs(arg) && arg[0] != '/' {
			err = fmt.Errorf("%w: not an absolute path", ErrValue)
		}
	case "strict-frag-hdr":
		c.StrictFragHdr, err = boolean(arg)
	case "wkpf-strict":
		c.WKPFStrict, err = boolean(arg)
	case "tun-up":
		c.TunUp, err = boolean(arg)
	case "udp-cksum-mode":
		switch a := strings.ToLower(arg); {
		case strings.HasPrefix(a, "dr"):
			c.UDPChecksum = nat64.ZeroDrop
		case strings.HasPrefix(a, "calc"):
			c.UDPChecksum = nat64.ZeroCompute
		case strings.HasPrefix(a, "forw"), strings.HasPrefix(a, "fwd"):
			c.UDPChecksum = nat64.ZeroForward
		default:
			err = ErrValue
		}
	case "offlink-mtu":
		if c.OfflinkMTU, err = strconv.Atoi(arg); err == nil && (c.OfflinkMTU < 1280 || c.OfflinkMTU > 65535) {
			err = nat64.ErrRange
		}
	case "log":
		for _, a := range args {
			switch a = strings.ToLower(a); a {
			case "drop", "reject", "icmp", "self", "dyn":
				c.Log = append(c.Log, a)
			default:
				p.fail(name, a, ErrValue)
			}
		}
		return
	case "tun-ip", "tun-route":
		var n netip.Prefix
		if n, err = subnet(arg); err == nil {
			if name == "tun-ip" {
				c.TunIPs = append(c.TunIPs, n)
			} else {
				c.TunRoutes = append(c.TunRoutes, n.Masked())
			}
		}
	}
	if err != nil {
		if !errors.Is(err, ErrValue) && !errors.Is(err, nat64.ErrFamily) && !errors.Is(err, nat64.ErrRange) &&
			!errors.Is(err, nat64.ErrHostBits) && !errors.Is(err, nat64.ErrPrefixLength) && !errors.Is(err, nat64.ErrReservedByte) {
			err = ErrValue
		}
		p.fail(name, args[0], err)
	}
}

func boolean(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "true", "on", "yes", "1":
		return true, nil
	case "false", "off", "no", "0":
		return false, nil
	}
	return false, ErrValue
}

// subnet reads a prefix, or an address as the prefix of its full length.
func subnet(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Prefix{}, ErrValue
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

func (p *parser) mapLine(args []string) {
	v4, err := subnet(args[0])
	if err != nil {
		p.fail("map", args[0], err)
		return
	}
	v6, err := subnet(args[1])
	if err != nil {
		p.fail("map", args[1], err)
		return
	}
	switch {
	case !v4.Addr().Is4():
		p.fail("map", args[0], nat64.ErrFamily)
	case !v6.Addr().Is6() || v6.Addr().Is4In6():
		p.fail("map", args[1], nat64.ErrFamily)
	case v4 != v4.Masked():
		p.fail("map", args[0], nat64.ErrHostBits)
	case v6 != v6.Masked():
		p.fail("map", args[1], nat64.ErrHostBits)
	case 128-v6.Bits() < 32-v4.Bits():
		p.fail("map", args[0]+" "+args[1], nat64.ErrSuffix)
	case reserved(v4):
		p.fail("map", args[0], ErrReserved)
	case reserved(v6):
		p.fail("map", args[1], ErrReserved)
	default:
		for _, n := range []netip.Prefix{v4, v6} {
			if line, ok := p.maps[n]; ok {
				p.fail("map", args[0]+" "+args[1], fmt.Errorf("%w: the first is in line %d", nat64.ErrDuplicate, line))
				return
			}
		}
		p.maps[v4], p.maps[v6] = p.line, p.line
		p.c.Maps = append(p.c.Maps, Map{V4: v4, V6: v6, Line: p.line})
	}
}

// reserved reports whether a prefix has addresses that no packet comes from or
// goes to across a router: this network, loopback, link-local, multicast and
// beyond.
func reserved(n netip.Prefix) bool {
	for _, r := range []string{"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3", "::/127", "fe80::/10", "ff00::/8"} {
		if n.Overlaps(netip.MustParsePrefix(r)) {
			return true
		}
	}
	return false
}

// validate checks what only the whole file shows.
func (p *parser) validate() {
	c := p.c
	for _, m := range c.Maps {
		p.line = m.Line
		for _, own := range []netip.Addr{c.IPv4Addr, c.IPv6Addr} {
			if own.IsValid() && (m.V4 == netip.PrefixFrom(own, own.BitLen()) || m.V6 == netip.PrefixFrom(own, own.BitLen())) {
				p.fail("map", own.String(), ErrOwn)
			}
		}
	}
	p.line = 0
	if !p.seen["tun-device"] {
		p.fail("tun-device", "", ErrMissing)
	}
	if !p.seen["ipv4-addr"] {
		p.fail("ipv4-addr", "", ErrMissing)
	}
	if !p.seen["prefix"] && !p.seen["map"] && !p.seen["map-file"] {
		p.fail("prefix", "", fmt.Errorf("%w: nor is there a map", ErrMissing))
	}
	if p.seen["ipv6-addr"] || !p.seen["ipv4-addr"] {
		return
	}
	if !p.seen["prefix"] {
		p.fail("ipv6-addr", "", fmt.Errorf("%w: without a prefix it cannot be made from ipv4-addr", ErrMissing))
	} else if c.Prefix.IsValid() && c.WKPFStrict && !c.Prefix.Allowed(c.IPv4Addr) {
		p.fail("ipv6-addr", "", fmt.Errorf("%w: ipv4-addr is not global and must not go behind %v", ErrMissing, c.Prefix))
	}
}

// ReadMaps reads a map-file: map directives and comments only.
func ReadMaps(name string) ([]Map, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("tayga: %w", err)
	}
	defer f.Close()
	return parseMaps(f, name)
}

// ParseMaps is [ReadMaps] for an open file. The error joins an [*Error] for
// each fault.
func ParseMaps(r io.Reader) ([]Map, error) { return parseMaps(r, "") }

func parseMaps(r io.Reader, file string) ([]Map, error) {
	p := &parser{c: &Config{}, file: file, maps: map[netip.Prefix]int{}}
	p.lines(r, func(words []string) {
		switch {
		case !strings.EqualFold(words[0], "map"):
			p.fail(words[0], "", ErrUnknown)
		case len(words) != 3:
			p.fail("map", strings.Join(words[1:], " "), ErrArguments)
		default:
			p.mapLine(words[1:])
		}
	})
	if len(p.errs) > 0 {
		return nil, errors.Join(p.errs...)
	}
	return p.c.Maps, nil
}

// MapPath returns the path of the map-file: relative names count from
// data-dir. It is "" if there is none.
func (c *Config) MapPath() string {
	if c.MapFile == "" || filepath.IsAbs(c.MapFile) {
		return c.MapFile
	}
	return filepath.Join(c.DataDir, c.MapFile)
}

// DynamicMapPath returns the path of the file in which Tayga keeps the
// bindings of its dynamic pool, "" without data-dir.
func (c *Config) DynamicMapPath() string {
	if c.DataDir == "" {
		return ""
	}
	return filepath.Join(c.DataDir, "dynamic.map")
}

// Translator returns the configuration for a translator on links of this MTU
// (0: 1500): what tayga.conf says, and the maps of its map-file, which it
// reads. Maps of the map-file that contradict those of tayga.conf are errors.
// The dynamic pool is the caller's to add, because it outlives configurations:
// see [Config.Pool].
func (c *Config) Translator(mtu int) (nat64.Config, error) {
	cfg := nat64.Config{
		Prefix:               c.Prefix,
		Own4:                 c.IPv4Addr,
		Own6:                 c.IPv6Addr,
		MTU4:                 mtu,
		MTU6:                 mtu,
		LowestIPv6MTU:        c.OfflinkMTU,
		UDPZero:              c.UDPChecksum,
		AllowNonGlobalWKP:    !c.WKPFStrict,
		StrictFragmentHeader: c.StrictFragHdr,
		EchoReply:            true,
	}
	maps := c.Maps
	if path := c.MapPath(); path != "" {
		more, err := ReadMaps(path)
		if err != nil {
			return nat64.Config{}, err
		}
		maps = slices.Clone(maps)
		have := map[netip.Prefix]int{}
		for _, m := range maps {
			have[m.V4], have[m.V6] = m.Line, m.Line
		}
		var errs []error
		for _, m := range more {
			line, ok := have[m.V4]
			if !ok {
				line, ok = have[m.V6]
			}
			if ok {
				errs = append(errs, &Error{File: path, Line: m.Line, Directive: "map", Value: m.V4.String() + " " + m.V6.String(),
					Err: fmt.Errorf("%w: line %d of the configuration has it", nat64.ErrDuplicate, line)})
				continue // Tayga, too, lets a map-file change nothing of tayga.conf
			}
			maps = append(maps, m)
		}
		if len(errs) > 0 {
			return nat64.Config{}, errors.Join(errs...)
		}
	}
	for _, m := range maps {
		cfg.EAM = append(cfg.EAM, nat64.EAM{V6: m.V6, V4: m.V4})
	}
	return cfg, nil
}

// Pool makes the dynamic pool and loads dynamic.map into it, if there is
// one; o adds to what the file says (V4 is taken from it). It returns nil
// without dynamic-pool. If lines of dynamic.map had to be left out, both pool
// and error are returned: the error joins a [*nat64.LineError] for each.
func (c *Config) Pool(o nat64.PoolOptions) (*nat64.Pool, error) {
	if !c.DynamicPool.IsValid() {
		return nil, nil
	}
	o.V4 = c.DynamicPool
	p, err := nat64.NewPool(o)
	if err != nil {
		return nil, err
	}
	// Only until a translator says what it needs: maps may change.
	reserved := []netip.Prefix{netip.PrefixFrom(c.IPv4Addr, 32)}
	for _, m := range c.Maps {
		reserved = append(reserved, m.V4)
	}
	p.Reserve(reserved)
	if path := c.DynamicMapPath(); path != "" {
		_, err = p.LoadFile(path)
	}
	return p, err
}
