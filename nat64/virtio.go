package nat64

import (
	"encoding/binary"
	"io"

	"signalbox.example/nat64/internal/checksum"
)

// VirtioHdrLen is the length of a [VirtioHdr] in octets.
const VirtioHdrLen = 10

// Values of the fields of a [VirtioHdr].
const (
	VirtioNeedsChecksum = 1 // Flags: the receiver has to finish the checksum
	VirtioDataValid     = 2 // Flags: the checksum has been verified

	VirtioGSONone  = 0
	VirtioGSOTCPv4 = 1
	VirtioGSOUDP   = 3 // IP fragmentation by the device: not supported
	VirtioGSOTCPv6 = 4
	VirtioGSOUDPL4 = 5    // UDP segmentation
	VirtioGSOECN   = 0x80 // added to TCP: the CWR flag only on the first segment
)

// VirtioHdr is the header that a TUN device opened with IFF_VNET_HDR puts in
// front of packets: struct virtio_net_hdr, VirtIO 1.2 section 5.1.6, in the
// byte order of the machine, without num_buffers. The zero value is a packet
// like any other.
type VirtioHdr struct {
	// Flags is a set of VirtioNeedsChecksum and VirtioDataValid.
	Flags uint8
	// GSOType is one of the VirtioGSO values.
	GSOType uint8
	// HdrLen is the length of the IP and transport headers in octets: a hint.
	HdrLen uint16
	// GSOSize is how many octets of payload each segment has.
	GSOSize uint16
	// ChecksumStart and ChecksumOffset say, with VirtioNeedsChecksum, from
	// which octet of the packet to sum, and where from there the result goes.
	// The field holds the plain sum of the pseudo-header meanwhile.
	ChecksumStart, ChecksumOffset uint16
}

// Decode reads a header from the first VirtioHdrLen octets of b. It fails
// with io.ErrUnexpectedEOF if there are fewer.
func (h *VirtioHdr) Decode(b []byte) error {
	if len(b) < VirtioHdrLen {
		return io.ErrUnexpectedEOF
	}
	o := binary.NativeEndian
	*h = VirtioHdr{b[0], b[1], o.Uint16(b[2:]), o.Uint16(b[4:]), o.Uint16(b[6:]), o.Uint16(b[8:])}
	return nil
}

// Encode writes the header to the first VirtioHdrLen octets of b. It panics if
// there are fewer.
func (h *VirtioHdr) Encode(b []byte) {
	_ = b[VirtioHdrLen-1]
	o := binary.NativeEndian
	b[0], b[1] = h.Flags, h.GSOType
	o.PutUint16(b[2:], h.HdrLen)
	o.PutUint16(b[4:], h.GSOSize)
	o.PutUint16(b[6:], h.ChecksumStart)
	o.PutUint16(b[8:], h.ChecksumOffset)
}

// offload is what a VirtioHdr says of one packet, checked against it.
type offload struct {
	partial bool // the checksum field holds the pseudo-header's sum
	gso     bool
	header  int    // length of the transport header
	segs    uint32 // number of segments, 1 without gso
	largest int    // transport header and payload of the largest segment
}

// check compares h with a packet whose transport header begins at l4. It
// finishes a checksum that the packet cannot keep partial.
func (h *VirtioHdr) check(p []byte, l4 int, protocol uint8, v6, fragment bool) (o offload, ok bool) {
	o.segs, o.largest = 1, len(p)-l4
	if h == nil {
		return o, true
	}
	var field int
	switch protocol {
	case protoTCP:
		field = 16
	case protoUDP:
		field = 6
	}
	if h.Flags&VirtioNeedsChecksum != 0 {
		start, at := int(h.ChecksumStart), int(h.ChecksumStart)+int(h.ChecksumOffset)
		if at+2 > len(p) {
			return o, false
		}
		if start == l4 && field != 0 && int(h.ChecksumOffset) == field && !fragment {
			o.partial = true
		} else {
			if start < 20 { // would change the header
				return o, false
			}
			put16(p[at:], finish(p[start:], protocol))
			h.Flags &^= VirtioNeedsChecksum
		}
	}
	switch h.GSOType &^ VirtioGSOECN {
	case VirtioGSONone:
		return o, true
	case VirtioGSOTCPv4:
		ok = !v6 && protocol == protoTCP
	case VirtioGSOTCPv6:
		ok = v6 && protocol == protoTCP
	case VirtioGSOUDPL4:
		ok = protocol == protoUDP && h.GSOType == VirtioGSOUDPL4 // without ECN
	}
	if !ok || !o.partial || h.GSOSize == 0 || fragment {
		return o, false
	}
	o.gso, o.header = true, 8
	if protocol == protoTCP {
		if len(p) < l4+20 {
			return o, false
		}
		o.header = int(p[l4+12]>>4) * 4
	}
	payload := len(p) - l4 - o.header
	if o.header < 8 || protocol == protoTCP && o.header < 20 || payload < 0 {
		return o, false
	}
	size := int(h.GSOSize)
	o.segs = uint32(max(1, (payload+size-1)/size))
	o.largest = o.header + min(size, payload)
	return o, true
}

// finish returns the checksum of a packet part whose field holds the plain
// sum of the pseudo-header. Zero becomes 0xffff for UDP.
func finish(b []byte, protocol uint8) uint16 {
	c := ^checksum.Sum(b)
	if c == 0 && protocol == protoUDP {
		return 0xffff
	}
	return c
}

// complete finishes a partial checksum of the packet in place.
func (h *VirtioHdr) complete(p []byte, protocol uint8) {
	start := int(h.ChecksumStart)
	put16(p[start+int(h.ChecksumOffset):], finish(p[start:], protocol))
	h.Flags &^= VirtioNeedsChecksum
}

// segment appends segment i of a super-packet to dst, with headers corrected
// and its checksum finished.
func (h *VirtioHdr) segment(dst, p []byte, l4 int, o offload, i int) []byte {
	first := l4 + o.header
	from := first + i*int(h.GSOSize)
	to := min(from+int(h.GSOSize), len(p))
	base := len(dst)
	dst = append(append(dst, p[:first]...), p[from:to]...)
	b := dst[base:]
	length := len(b) - l4

	// The field holds the pseudo-header's sum with the whole length.
	protocol, field := uint8(protoTCP), l4+16
	if h.GSOType == VirtioGSOUDPL4 {
		protocol, field = protoUDP, l4+6
		put16(b[l4+4:], uint16(length))
	} else {
		put32(b[l4+4:], be32(b[l4+4:])+uint32(i)*uint32(h.GSOSize))
		if to < len(p) {
			b[l4+13] &^= 0x09 // FIN and PSH on the last segment only
		}
		if i > 0 && h.GSOType&VirtioGSOECN != 0 {
			b[l4+13] &^= 0x80 // CWR on the first only
		}
	}
	put16(b[field:], adjustPartial(be16(b[field:]), uint64(len(p)-l4), uint64(length)))
	put16(b[field:], finish(b[l4:], protocol))

	if b[0]>>4 == 6 {
		put16(b[4:], uint16(len(b)-40))
		return dst
	}
	put16(b[2:], uint16(len(b)))
	put16(b[4:], be16(b[4:])+uint16(i))
	put16(b[10:], 0)
	put16(b[10:], ^checksum.Sum(b[:int(b[0]&15)*4]))
	return dst
}
