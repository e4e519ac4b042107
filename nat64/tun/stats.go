package tun

// Stats are the counters of a device since it was opened. Super-packets count
// once, with all their octets. Bytes are octets of IP packets. Packets that the
// translator drops are read and not written; its own [nat64.Stats] say why.
type Stats struct {
	Read, ReadBytes       uint64 // packets from the kernel
	Super                 uint64 // of them, super-packets
	Gathered              uint64 // packets that were written as part of another
	Written, WrittenBytes uint64 // packets to the kernel
	Copied                uint64 // of them, those that did not fit in place
	WriteErrors           uint64 // packets that the kernel did not take
	Malformed             uint64 // packets without a usable vnet header
}
