// Package fastpath translates simple packets inside the Linux kernel: a tc
// program of a few hundred eBPF instructions, assembled in Go, on the ingress
// of the real interfaces. There is no C, no object file and no kernel module;
// the program that imports this package carries everything.
//
//	if err := fastpath.Supported(); err != nil {
//		log.Print(err) // all goes through the TUN device then
//	}
//	link, err := fastpath.Attach(translator, fastpath.Options{Interfaces: []string{"lan0", "wan0"}})
//	if err != nil {
//		return err
//	}
//	defer link.Close()
//
// # What goes fast and what does not
//
// TCP, UDP and ICMP echo with plain headers are rewritten in place, also as
// super-packets of GSO and GRO, and handed to the stack, which routes,
// filters and counts them like any other packet of the other family. Every
// packet that is not simple (fragments, options, extension headers, ICMP
// errors, UDP without checksum, hop limit 1, packets that are too big,
// addresses that nothing maps yet) goes back to the stack unmodified, which
// routes it into the TUN device of package tun: the translator there knows
// all the rules. So the routes stay as they are without this package. If the
// process dies, Linux 6.6 and later remove the program (tcx), and everything
// takes the TUN device's way. Before 6.6 the program is a clsact filter, which
// outlives the process, with the pool bindings of that time, until the next
// [Attach] replaces it or "tc filter del" removes it. [Link.Close] removes
// either.
//
// An IPv6 packet is taken when its destination lies in the translation
// prefix; destinations that only the EAM table maps are left to routing unless
// [Options.EAMDestinations] says that no such packet is native. An IPv4 packet
// is taken when an EAM or a pool binding maps its destination.
//
// # Units and byte order
//
// MTUs are octets of IP packets, without link-layer headers. A super-packet
// counts as one packet, and its bytes are those of the whole of it.
// Callers see addresses as netip values; what the program and its
// tables hold in the machine's own byte order stays inside.
//
// # Errors
//
// Errors begin with "fastpath: ". [Supported] says why the running kernel or
// the process's privileges do not suffice: CAP_BPF and CAP_NET_ADMIN, and
// Linux 5.14.
//
// # Concurrency
//
// All methods of [Link] may be called at any time, from any goroutine.
//
// # Specifications
//
//  1. RFC 7915, IP/ICMP Translation Algorithm
//  2. RFC 7757, Explicit Address Mappings
//  3. Linux, bpf-helpers(7): bpf_skb_change_proto, bpf_l4_csum_replace
package fastpath
