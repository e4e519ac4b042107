// Package tayga reads the files of the Tayga NAT64 daemon, tayga.conf,
// map-file and dynamic.map, so that its users can move to package nat64 with
// the configuration they have:
//
//	conf, err := tayga.Read("/etc/tayga.conf")
//	...
//	cfg, err := conf.Translator(1500)
//	...
//	t, err := nat64.New(cfg)
//
// The directives are those of Debian's Tayga 0.9.2 and of its successor at
// github.com/apalrd/tayga: tun-device, ipv4-addr, ipv6-addr, prefix, map,
// map-file, dynamic-pool, data-dir, strict-frag-hdr, wkpf-strict,
// udp-cksum-mode, offlink-mtu, log, tun-up, tun-ip, tun-route.
//
// What Tayga refuses is refused here, with two exceptions that are useful and
// legal: ipv6-addr may lie within the prefix, and maps may lie within other
// maps and within the prefix (the longest match counts).
//
// # Units and byte order
//
// MTUs are octets of IP packets. The files are text, and times in dynamic.map
// are seconds since 1970.
//
// # Errors
//
// Reading goes on after a wrong line, so that all of them are reported at
// once: the error joins one [*Error] for each, with file, line and reason.
//
// # Concurrency
//
// A Config is a plain value. Functions keep no state.
//
// # Specifications
//
// The manual page tayga.conf(5) of both versions; RFC 7915, 6052 and 7757 as
// in package nat64.
package tayga
