// Package tun runs a [nat64.Translator] on a Linux TUN device, with whole
// super-packets passing through.
//
//	d, err := tun.Open("nat64", tun.Options{})
//	if err != nil {
//		return err
//	}
//	defer d.Close()
//	// Bring the device up and route the prefix and the pool to it, then:
//	return d.Run(ctx, translator)
//
// # Why it is fast
//
// The device is opened with IFF_VNET_HDR and the TSO and USO offloads: the
// kernel then hands over what its TCP stack, UDP_SEGMENT senders or GRO have
// gathered, up to 64 KB in one read, with a small header that says how it is
// to be cut. The translator changes the one IP header and the kind of cutting,
// and one write gives the whole back. Nothing is split, no payload is summed.
// On the devices where packets arrive, generic receive offload should be on,
// for UDP with "ethtool -K DEV rx-udp-gro-forwarding on".
//
// Where receive offload is off, packets come one by one. Those that are in the
// queue already and continue each other, as segments of a TCP stream and UDP
// datagrams of one size do, are then gathered, up to 64 of them, and written as
// one super-packet, of which the kernel makes the same packets again. Their
// checksums are verified first, and those with a wrong one pass alone. It is
// done for TCP with [OffloadTSO] and for UDP with [OffloadUSO]. No packet waits
// for another that has not arrived.
//
// [Open] tries the offloads from the richest set down, since a kernel refuses
// a set with one bit it does not know (USO before Linux 6.2);
// [Device.Offloads] tells what was had. Without a vnet header
// ([Options.NoVnetHeader]) it is one packet a read, as in other daemons.
//
// # Units and byte order
//
// Sizes are octets of IP packets, as the kernel hands them over: without a
// link-layer header, and without the vnet header, whose fields are in the
// machine's own byte order. Everything in a packet is in network order. A
// super-packet counts as one packet.
//
// # Errors
//
// Errors begin with "tun: " and wrap what the kernel said. On other systems
// [Open] fails with an error that wraps [errors.ErrUnsupported]. Packets that
// cannot be written are counted, not reported.
//
// # Concurrency
//
// Every queue has a goroutine and a thread of its own inside [Device.Run]: it
// waits for packets in poll(2), not in the runtime's poller. The methods of a
// [Device] may be called from any goroutine, but one Run at a time. Counters may
// be read, and the translator's configuration changed, at any time.
//
// # Specifications
//
//  1. Linux, Documentation/networking/tuntap.rst
//  2. Virtual I/O Device (VIRTIO) Version 1.2, section 5.1.6
package tun
