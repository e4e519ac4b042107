package nat64

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// jsonConfig has the keys that ParseConfig knows.
type jsonConfig struct {
	Pool6             *string    `json:"pool6"`
	EAM               [][]string `json:"eam"`
	RFC6791v4         *string    `json:"rfc6791v4"`
	RFC6791v6         *string    `json:"rfc6791v6"`
	LowestIPv6MTU     int        `json:"lowest_ipv6_mtu"`
	AmendZero         bool       `json:"amend_udp_checksum_zero"`
	MTU6              int        `json:"mtu_v6"`
	MTU4              int        `json:"mtu_v4"`
	Own4              *string    `json:"own_v4"`
	Own6              *string    `json:"own_v6"`
	Hairpin           *string    `json:"hairpin"`
	AllowNonGlobalWKP bool       `json:"allow_non_global_wkp"`
}

// ParseConfig reads a configuration from a JSON object with these keys, all of
// which may be absent or null:
//
//	pool6                    Config.Prefix, such as "64:ff9b::/96"
//	eam                      Config.EAM, a list of [IPv6 prefix, IPv4 prefix]
//	rfc6791v4, rfc6791v6     an address or a prefix
//	lowest_ipv6_mtu          Config.LowestIPv6MTU
//	mtu_v6, mtu_v4           Config.MTU6, Config.MTU4
//	own_v4, own_v6           Config.Own4, Config.Own6
//	amend_udp_checksum_zero  true: ZeroCompute, false: ZeroDrop
//	hairpin                  "none", "simple" or "intrinsic" (the default)
//	allow_non_global_wkp     Config.AllowNonGlobalWKP
//
// Other keys are errors. It fails with a [*ConfigError]; what [New] checks is
// left to it.
func ParseConfig(text []byte) (Config, error) {
	var j jsonConfig
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&j); err != nil {
		return Config{}, configErr("JSON", excerpt(text), fmt.Errorf("%w: %w", ErrSyntax, err))
	}
	if _, err := d.Token(); err != io.EOF {
		return Config{}, configErr("JSON", excerpt(text[d.InputOffset():]), fmt.Errorf("%w: more than one object", ErrSyntax))
	}
	cfg := Config{
		LowestIPv6MTU:     j.LowestIPv6MTU,
		MTU4:              j.MTU4,
		MTU6:              j.MTU6,
		AllowNonGlobalWKP: j.AllowNonGlobalWKP,
	}
	if j.AmendZero {
		cfg.UDPZero = ZeroCompute
	}
	var err error
	if j.Pool6 != nil {
		if cfg.Prefix, err = ParsePrefix(*j.Pool6); err != nil {
			return Config{}, err
		}
	}
	for i, e := range j.EAM {
		field := "EAM[" + strconv.Itoa(i) + "]"
		if len(e) != 2 {
			return Config{}, configErr(field, strings.Join(e, " "), ErrSyntax)
		}
		a, err := parseSubnet(field, e[0])
		if err != nil {
			return Config{}, err
		}
		b, err := parseSubnet(field, e[1])
		if err != nil {
			return Config{}, err
		}
		cfg.EAM = append(cfg.EAM, EAM{V6: a, V4: b})
	}
	for _, f := range []struct {
		field string
		in    *string
		out   *netip.Prefix
	}{{"RFC6791v4", j.RFC6791v4, &cfg.RFC6791v4}, {"RFC6791v6", j.RFC6791v6, &cfg.RFC6791v6}} {
		if f.in != nil {
			if *f.out, err = parseSubnet(f.field, *f.in); err != nil {
				return Config{}, err
			}
		}
	}
	for _, f := range []struct {
		field string
		in    *string
		out   *netip.Addr
	}{{"Own4", j.Own4, &cfg.Own4}, {"Own6", j.Own6, &cfg.Own6}} {
		if f.in != nil {
			if *f.out, err = netip.ParseAddr(*f.in); err != nil {
				return Config{}, configErr(f.field, *f.in, ErrSyntax)
			}
		}
	}
	if j.Hairpin != nil {
		switch *j.Hairpin {
		case "intrinsic":
		case "simple":
			cfg.Hairpin = HairpinSimple
		case "none":
			cfg.Hairpin = HairpinNone
		default:
			return Config{}, configErr("hairpin", *j.Hairpin, ErrSyntax)
		}
	}
	return cfg, nil
}

// parseSubnet reads a prefix, or an address as the prefix of its full length.
func parseSubnet(field, s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, nil
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, configErr(field, s, ErrSyntax)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// excerpt shortens text for an error.
func excerpt(b []byte) string {
	if len(b) > 40 {
		return string(b[:40]) + "..."
	}
	return string(b)
}
