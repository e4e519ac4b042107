// Package tunbed measures IPv4/IPv6 translators side by side in three network
// namespaces:
//
//	client (IPv6 side) --veth-- router --veth-- server (IPv4 side)
//
// The router forwards plainly (both hosts have both families), or translates
// with Debian's Tayga, or with nat64d. Each combination of work and
// translator is one run; the runs of a round follow each other, so that a
// noisy machine harms all alike.
package tunbed

import "time"

// A Work is one kind of traffic.
type Work struct {
	Name string
	// Streams of TCP; 0 means UDP.
	Streams int
	// Payload and Segments describe UDP: bytes of a datagram, and how many
	// datagrams the sender hands over as one (UDP_SEGMENT).
	Payload, Segments int
	// Polled has the receiver look at its socket from time to time instead of
	// being woken by datagrams. Where every datagram is a packet of its own a
	// wake-up costs the sender's processor, which carries the packets here,
	// more than to forward one, and the less the receiver has to do the more
	// of them there are: slower translators would be charged twice.
	Polled bool
	// MTUSize turns segmentation off on the hosts, as on a real wire.
	MTUSize bool
	// GRO turns receive offload on at the router's devices.
	GRO bool
	// To4 is the direction of the data: to the IPv4 side, or from it.
	To4 bool
}

// Works lists the kinds of traffic of the table, each in both directions.
func Works() []Work {
	var list []Work
	for _, w := range []Work{
		{Name: "tcp1", Streams: 1, GRO: true},
		{Name: "tcp8", Streams: 8, GRO: true},
		{Name: "mtu-gro", Streams: 1, MTUSize: true, GRO: true},
		{Name: "mtu", Streams: 1, MTUSize: true},
		{Name: "udp18-gro", Payload: 18, Segments: 1, GRO: true},
		{Name: "udp18", Payload: 18, Segments: 1, Polled: true},
		{Name: "udpgso", Payload: 1200, Segments: 40, GRO: true},
	} {
		for _, to4 := range []bool{true, false} {
			w.To4 = to4
			list = append(list, w)
		}
	}
	return list
}

// Direction names the direction of the data.
func (w Work) Direction() string {
	if w.To4 {
		return "6to4"
	}
	return "4to6"
}

// A Result is what one run measured.
type Result struct {
	Work, Direction, Translator string
	Round                       int
	Mbps                        float64 // delivered payload
	Kpps                        float64 // delivered datagrams; UDP only
	SentKpps                    float64
	TranslatorCPU               time.Duration // of the translator's process
	MachineCPU                  time.Duration // of all processors
	Seconds                     float64
	Bytes, Packets              float64
	Retransmits                 int
}

// PerGB returns the processor time per 10^9 bytes delivered.
func PerGB(d time.Duration, bytes float64) float64 {
	if bytes == 0 {
		return 0
	}
	return d.Seconds() * 1000 / (bytes / 1e9)
}
