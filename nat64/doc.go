// Package nat64 translates IP packets between IPv4 and IPv6 without keeping
// state about connections: the stateless IP/ICMP translation of RFC 7915 with
// explicit address mappings (RFC 7757), embedded addresses (RFC 6052), dynamic
// pools as the Tayga daemon has them, and everything that belongs to ICMP. One
// call translates one packet in the caller's buffer, in place, without
// allocations:
//
//	prefix, err := nat64.ParsePrefix("64:ff9b::/96")
//	...
//	t, err := nat64.New(nat64.Config{
//		Prefix: prefix,
//		EAM:    []nat64.EAM{{V6: serverV6, V4: serverV4}}, // of netip.Prefix
//		Own4:   netip.MustParseAddr("192.0.0.8"), // source of ICMP errors
//	})
//	...
//	var s nat64.Scratch // one for each goroutine
//	buf := make([]byte, nat64.Headroom+1500) // room for the longest packet
//	for {
//		n, err := device.Read(buf[nat64.Headroom:])
//		...
//		r := t.Translate(&s, buf, nat64.Headroom, n)
//		if r.Verdict != nat64.Drop {
//			device.Write(r.Packet)
//			for _, p := range r.More { // further fragments
//				device.Write(p)
//			}
//		}
//	}
//
// [Translator.Translate] looks at the version of a packet and translates it to
// the other one. The Result holds what to send, be it the translated packet,
// its fragments, or an ICMP error to its sender, and the [Reason], which names
// a rule and the section of the specification that states it. Each reason has
// a counter in [Stats]. [Translator.Explain] tells every step.
//
// [Translator.TranslateOffload] is for TUN devices that hand over super-packets
// of up to 64 KiB with a [VirtioHdr] in front: one header is translated for
// all segments. Package nat64/tun runs it on a device.
//
// [Translator.Update] replaces the whole configuration under traffic.
//
// # Addresses
//
// A destination or source is looked for in this order: the EAM table, longest
// match; the user's [Mapper]; the prefix (IPv6) or the pools (IPv4); the pools
// (IPv6) or the prefix (IPv4). A source without any of them gets an address of
// the first [Pool] that wants it. The EAM table takes a million entries at the
// cost of a few dozen nanoseconds; a Mapper may put any other table in.
//
// # What is decided where RFCs leave it open
//
//   - ICMP errors are cut to 1280 (IPv6) and 576 octets (IPv4), or MTU4 where
//     that is less; their checksum is verified first, as they are made anew.
//     Checksums of anything else are adjusted: a wrong one stays wrong by as
//     much.
//   - A quoted packet must be one that this configuration could have carried,
//     or the error is dropped. Quoted errors, options and extension headers are
//     not carried along.
//   - Protocol numbers 0, 43, 44, 58 and 60 in IPv4 and 1 in IPv6 are dropped:
//     in the other family they would be read as headers.
//   - A source without mapping is answered with ICMPv6 1/5, an unassigned pool
//     address with ICMPv4 3/1, and what is sent to the translator's own IPv4
//     address or an RFC 6791 one with 3/2, unless it is mapped otherwise than
//     by the prefix; a destination that is no business of the translator's is
//     dropped silently.
//   - A packet to IPv4 of up to 1260 octets is sent without DF, a longer one
//     with it (RFC 7915 section 5.1). Where MTU4 is too small for it, the
//     former is fragmented and the latter answered with "packet too big".
//   - RFC 6791 addresses are chosen by a hash of the router's address.
//
// # When to use it
//
// Use it inside a program that has packets and must turn them into the other
// family: a router, VPN, container network or test in Go, also one that needs to
// know why a packet was dropped. With examples/nat64d it takes the place of
// Tayga, by Tayga's files. Where a Linux router can load a kernel module and
// needs nothing else, Jool is the fuller product: it hooks into netfilter and,
// in its stateful mode, lets many IPv6 hosts share one IPv4 address. This
// package is stateless: each host that talks needs an IPv4 address of its own,
// by mapping, prefix or pool. For a stateful NAT64 take Jool, pf's af-to or VPP.
// For the CLAT of a telephone or laptop the one of the system (Android's,
// NetworkManager's) is there already. For dissecting packets rather than
// translating them take gopacket.
//
// # Units and byte order
//
// Lengths and MTUs are octets of IP packets, headers included, without link
// headers. Packets are in network byte order; [VirtioHdr] is in the machine's,
// as the kernel has it. Prefixes are netip.Prefix values with no bits beyond
// their length.
//
// # Errors
//
// Packets cause no errors, only verdicts. Configurations that make no sense
// are refused with a [*ConfigError], lines of a pool file with a [*LineError];
// both wrap one of the package's error values. No packet makes the package
// panic, loop, or write outside the packet and the [Headroom] in front of it.
//
// # Concurrency
//
// A [Translator] and a [Pool] serve any number of goroutines. A [Scratch] and
// a buffer serve one at a time; each goroutine should keep a Scratch of its own.
// The packet path takes no lock, but to make a pool binding or an ICMP error. A
// [Config] must not be changed once it has been handed over.
//
// # Specifications
//
//  1. RFC 7915, IP/ICMP Translation Algorithm: https://www.rfc-editor.org/rfc/rfc7915
//  2. RFC 6052, IPv6 Addressing of IPv4/IPv6 Translators: https://www.rfc-editor.org/rfc/rfc6052
//  3. RFC 7757, Explicit Address Mappings: https://www.rfc-editor.org/rfc/rfc7757
//  4. RFC 6791, Stateless Source Address Mapping for ICMPv6 Packets: https://www.rfc-editor.org/rfc/rfc6791
//  5. RFC 8215, Local-Use IPv4/IPv6 Translation Prefix: https://www.rfc-editor.org/rfc/rfc8215
//  6. RFC 4884, Extended ICMP to Support Multi-Part Messages: https://www.rfc-editor.org/rfc/rfc4884
//  7. RFC 1191, Path MTU Discovery: https://www.rfc-editor.org/rfc/rfc1191
//  8. RFC 8021, Generation of IPv6 Atomic Fragments Considered Harmful: https://www.rfc-editor.org/rfc/rfc8021
//  9. RFC 1624, Incremental Update of the Internet Checksum: https://www.rfc-editor.org/rfc/rfc1624
//  10. RFC 6890, Special-Purpose IP Address Registries: https://www.rfc-editor.org/rfc/rfc6890
//  11. VirtIO 1.2 section 5.1.6: https://docs.oasis-open.org/virtio/virtio/v1.2/virtio-v1.2.html
package nat64
