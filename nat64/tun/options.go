package tun

import (
	"strings"

	"signalbox.example/nat64"
)

// MaxQueues is the most queues that a device may have.
const MaxQueues = 64

// vnetHeaderLen is the length of the virtio_net_hdr in front of each packet.
const vnetHeaderLen = nat64.VirtioHdrLen

// maxPacket is the longest packet that the kernel hands over: a super-packet
// of 64 KB.
const maxPacket = 65535

// Options says how a device is opened. The zero value asks for one queue and
// all the offloads that the kernel knows.
type Options struct {
	// Queues is the number of queues, 0 to MaxQueues, each served by a
	// goroutine; 0 means 1. The kernel keeps the packets of a flow on one
	// queue, so more queues help several flows, not one.
	Queues int
	// NoVnetHeader asks for a plain device: one finished packet a read, as
	// on a kernel without IFF_VNET_HDR. It is much slower.
	NoVnetHeader bool
	// NoUSO leaves UDP segmentation off, as Linux before 6.2 does.
	NoUSO bool
	// NoTSO leaves TCP segmentation off, and UDP segmentation with it.
	NoTSO bool
}

func (o Options) allowed() Offload {
	all := OffloadChecksum | OffloadTSO | OffloadUSO
	if o.NoUSO || o.NoTSO {
		all &^= OffloadUSO
	}
	if o.NoTSO {
		all &^= OffloadTSO
	}
	return all
}

// Offload is a set of jobs that the kernel leaves undone on the packets it
// hands over, and takes on for those it is given.
type Offload uint8

// The offloads of a TUN device.
const (
	OffloadChecksum Offload = 1 << iota // transport checksums are partial
	OffloadTSO                          // TCP super-packets (TSO4 and TSO6)
	OffloadUSO                          // UDP super-packets (USO4 and USO6, Linux 6.2)
)

// String lists the offloads, such as "csum,tso,uso", or says "none".
func (o Offload) String() string {
	var s []string
	for i, n := range []string{"csum", "tso", "uso"} {
		if o&(1<<i) != 0 {
			s = append(s, n)
		}
	}
	if s == nil {
		return "none"
	}
	return strings.Join(s, ",")
}
