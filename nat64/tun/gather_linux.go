package tun

import (
	"bytes"
	"encoding/binary"

	"signalbox.example/nat64"
	"signalbox.example/nat64/internal/checksum"
)

// Where the devices in front do no receive offload, packets of one flow come
// one by one, and each would cost a write and a walk through the kernel. So
// those that are waiting in the queue anyway are gathered first: segments of a
// TCP stream that continue each other, and UDP datagrams of one size, become
// one super-packet, of which the kernel makes the same packets again where
// they leave. Nothing waits: as soon as the queue is empty, all goes out.
//
// The rules are those of the kernel's receive offload. Two packets are joined
// only if their headers differ in nothing but what segmentation puts back:
// lengths, checksums, the TCP sequence number, PSH on the last and, with DF, the
// IPv4 identification. Only a checksum that is right is given up.

// gathering limits. A super-packet is at most 64 KB and maxSegments long, and
// packets of different flows wait for each other no longer than it takes to
// read maxWaiting packets.
const (
	maxFlows    = 4
	maxSegments = 64 // UDP_MAX_SEGMENTS of older kernels
	maxWaiting  = 64
)

// gathered is one super-packet in the making, or a single packet that others
// may join. Its headers are those of the first packet until it is finished.
type gathered struct {
	buf      []byte
	at, n    int // the packet is buf[at:at+n]; n is 0 if there is none
	h        nat64.VirtioHdr
	l4, data int    // where transport header and payload begin, from at
	tcp      bool   // or UDP
	size     int    // of a segment's payload in octets
	segments int    // so far
	next     uint32 // TCP: the sequence number that continues it
	id       uint16 // IPv4: the identification that continues it
	verified bool   // the checksums of all segments are right or partial
	closed   bool   // nothing may follow: the last segment was short or had PSH
}

// parsed is what a packet is to gathering.
type parsed struct {
	l4, data int  // where transport header and payload begin
	flow     bool // it is a whole TCP or UDP packet, and so of a flow
	tcp      bool
	ok       bool // it may be joined with others of its flow
}

const (
	protocolTCP = 6
	protocolUDP = 17
	flagPSH     = 0x08
	flagACK     = 0x10
)

// parse looks at a packet as the translator made it.
func parse(p []byte, h *nat64.VirtioHdr) (x parsed) {
	var protocol byte
	switch {
	case len(p) >= 28 && p[0] == 0x45:
		if binary.BigEndian.Uint16(p[6:])&0x3fff != 0 { // a fragment
			return x
		}
		protocol, x.l4 = p[9], 20
	case len(p) >= 48 && p[0]>>4 == 6:
		protocol, x.l4 = p[6], 40
	default:
		return x
	}
	t := p[x.l4:]
	switch protocol {
	case protocolTCP:
		if len(t) < 20 {
			return x
		}
		x.flow, x.tcp = true, true
		x.data = x.l4 + int(t[12]>>4)*4
		x.ok = x.data >= x.l4+20 && x.data < len(p) && t[13]&^flagPSH == flagACK && t[12]&15 == 0
	case protocolUDP:
		x.flow = true
		x.data = x.l4 + 8
		x.ok = x.data < len(p) && int(binary.BigEndian.Uint16(t[4:])) == len(t) && t[6]|t[7] != 0
	}
	x.ok = x.ok && h.GSOType == 0
	return x
}

// sameFlow reports whether a packet of a flow has the addresses, ports and
// protocol of this one.
func (g *gathered) sameFlow(p []byte, x parsed) bool {
	q := g.buf[g.at : g.at+g.n]
	if g.l4 != x.l4 || g.tcp != x.tcp || binary.NativeEndian.Uint32(q[g.l4:]) != binary.NativeEndian.Uint32(p[x.l4:]) {
		return false
	}
	if g.l4 == 20 {
		return binary.NativeEndian.Uint64(q[12:]) == binary.NativeEndian.Uint64(p[12:])
	}
	return bytes.Equal(q[8:40], p[8:40])
}

// start makes a packet, which lies in buf, the first of a super-packet. What
// was there must have been finished.
func (g *gathered) start(buf []byte, at, n int, h *nat64.VirtioHdr, x parsed) {
	p := buf[at : at+n]
	*g = gathered{buf: buf, at: at, n: n, h: *h, l4: x.l4, data: x.data, tcp: x.tcp, size: n - x.data, segments: 1}
	if x.l4 == 20 {
		g.id = binary.BigEndian.Uint16(p[4:]) + 1
	}
	if g.tcp {
		g.next = binary.BigEndian.Uint32(p[g.l4+4:]) + uint32(g.size)
		g.closed = p[g.l4+13]&flagPSH != 0
	}
}

// join appends a packet of the same flow, if it may. g is not changed else.
func (g *gathered) join(p []byte, h *nat64.VirtioHdr, x parsed) bool {
	q := g.buf[g.at : g.at+g.n]
	size := len(p) - x.data
	if !x.ok || g.closed || x.data != g.data || size > g.size || g.segments == maxSegments ||
		g.n+size > maxPacket || g.at+g.n+size > len(g.buf) {
		return false
	}
	if g.l4 == 20 {
		// TOS, DF, TTL; the identification must go on unless nobody needs it.
		if q[1] != p[1] || q[6] != p[6] || q[8] != p[8] || q[6]&0x40 == 0 && binary.BigEndian.Uint16(p[4:]) != g.id {
			return false
		}
	} else if binary.NativeEndian.Uint32(q) != binary.NativeEndian.Uint32(p) || q[7] != p[7] {
		return false
	}
	a, b := q[g.l4:g.data], p[x.l4:x.data]
	push := false
	if g.tcp {
		// All but sequence number, PSH and checksum.
		push = b[13]&flagPSH != 0
		if binary.BigEndian.Uint32(b[4:]) != g.next ||
			binary.NativeEndian.Uint32(a[8:]) != binary.NativeEndian.Uint32(b[8:]) ||
			a[12] != b[12] || binary.NativeEndian.Uint16(a[14:]) != binary.NativeEndian.Uint16(b[14:]) ||
			!bytes.Equal(a[18:], b[18:]) {
			return false
		}
	}
	if !g.verified {
		if !checked(q, &g.h, g.l4) {
			g.closed = true // as it is, and alone
			return false
		}
		g.verified = true
	}
	if !checked(p, h, x.l4) {
		return false
	}
	copy(g.buf[g.at+g.n:], p[x.data:])
	g.n += size
	g.segments++
	g.next += uint32(size)
	g.id++
	if g.closed = push || size < g.size; push {
		a[13] |= flagPSH
	}
	return true
}

// finish gives the super-packet its headers.
func (g *gathered) finish() {
	if g.segments < 2 {
		return
	}
	p := g.buf[g.at : g.at+g.n]
	o := binary.BigEndian
	var sum uint64
	kind := uint8(nat64.VirtioGSOTCPv6)
	if g.l4 == 20 {
		kind = nat64.VirtioGSOTCPv4
		o.PutUint16(p[2:], uint16(len(p)))
		o.PutUint16(p[10:], 0)
		o.PutUint16(p[10:], ^checksum.Sum(p[:20]))
		sum = uint64(checksum.Sum(p[12:20]))
	} else {
		o.PutUint16(p[4:], uint16(len(p)-40))
		sum = uint64(checksum.Sum(p[8:40]))
	}
	t := p[g.l4:]
	protocol, field := protocolTCP, 16
	if !g.tcp {
		kind, protocol, field = nat64.VirtioGSOUDPL4, protocolUDP, 6
		o.PutUint16(t[4:], uint16(len(t)))
	}
	o.PutUint16(t[field:], checksum.Fold(sum+uint64(protocol)+uint64(len(t))))
	g.h = nat64.VirtioHdr{Flags: nat64.VirtioNeedsChecksum, GSOType: kind, HdrLen: uint16(g.data), GSOSize: uint16(g.size),
		ChecksumStart: uint16(g.l4), ChecksumOffset: uint16(field)}
}

// checked reports whether the transport checksum is right, or left to the
// device and so as right as the data.
func checked(p []byte, h *nat64.VirtioHdr, l4 int) bool {
	if h.Flags&(nat64.VirtioNeedsChecksum|nat64.VirtioDataValid) != 0 {
		return true
	}
	addresses, protocol := p[12:20], p[9]
	if l4 == 40 {
		addresses, protocol = p[8:40], p[6]
	}
	return checksum.Fold(uint64(checksum.Sum(addresses))+uint64(checksum.Sum(p[l4:]))+uint64(protocol)+uint64(len(p)-l4)) == 0xffff
}
