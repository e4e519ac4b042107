package tun

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"golang.org/x/sys/unix"

	"signalbox.example/nat64"
)

// slowSum is RFC 1071, word by word.
func slowSum(b []byte, s uint64) uint16 {
	for i := 0; i < len(b); i += 2 {
		if s += uint64(b[i]) << 8; i+1 < len(b) {
			s += uint64(b[i+1])
		}
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

// geometry returns where transport header and payload of a test's packet
// begin, where its checksum is, and the sum of the pseudo-header.
func geometry(p []byte) (l4, data, field int, pseudo uint64) {
	var protocol byte
	var addresses []byte
	if p[0] == 0x45 {
		l4, protocol, addresses = 20, p[9], p[12:20]
	} else {
		l4, protocol, addresses = 40, p[6], p[8:40]
	}
	data, field = l4+8, l4+6
	if protocol == protocolTCP {
		data, field = l4+int(p[l4+12]>>4)*4, l4+16
	}
	return l4, data, field, uint64(slowSum(addresses, uint64(protocol)+uint64(len(p)-l4)))
}

// complete writes the checksums of a test's packet.
func complete(p []byte) {
	l4, _, field, pseudo := geometry(p)
	if l4 == 20 {
		p[10], p[11] = 0, 0
		binary.BigEndian.PutUint16(p[10:], ^slowSum(p[:20], 0))
	}
	p[field], p[field+1] = 0, 0
	c := ^slowSum(p[l4:], pseudo)
	if c == 0 && field == l4+6 {
		c = 0xffff
	}
	binary.BigEndian.PutUint16(p[field:], c)
}

// segments does what a device does with a packet that carries this header.
func segments(t *testing.T, h nat64.VirtioHdr, p []byte) (list [][]byte) {
	t.Helper()
	o := binary.BigEndian
	if h.Flags&nat64.VirtioNeedsChecksum == 0 {
		if h.GSOType != 0 {
			t.Fatalf("super-packet without partial checksum: %+v", h)
		}
		return append(list, p)
	}
	l4, data, field, pseudo := geometry(p)
	if int(h.ChecksumStart) != l4 || int(h.ChecksumStart+h.ChecksumOffset) != field || o.Uint16(p[field:]) != uint16(slowSum(nil, pseudo)) {
		t.Fatalf("%+v, pseudo-header %04x: %x", h, pseudo, p[:data])
	}
	if h.GSOType == 0 {
		complete(p)
		return append(list, p)
	}
	tcp := field == l4+16
	want := uint8(nat64.VirtioGSOUDPL4)
	if tcp {
		want = map[int]uint8{20: nat64.VirtioGSOTCPv4, 40: nat64.VirtioGSOTCPv6}[l4]
	}
	if h.GSOType != want || int(h.HdrLen) != data || h.GSOSize == 0 {
		t.Fatalf("%+v for %x", h, p[:data])
	}
	if l4 == 20 && (int(o.Uint16(p[2:])) != len(p) || slowSum(p[:20], 0) != 0xffff) || l4 == 40 && int(o.Uint16(p[4:])) != len(p)-40 || !tcp && int(o.Uint16(p[l4+4:])) != len(p)-l4 {
		t.Fatalf("header of the super-packet: %x", p[:data])
	}
	for i, at := 0, data; at < len(p); i++ {
		end := min(at+int(h.GSOSize), len(p))
		s := append(bytes.Clone(p[:data]), p[at:end]...)
		if l4 == 20 {
			o.PutUint16(s[2:], uint16(len(s)))
			o.PutUint16(s[4:], o.Uint16(s[4:])+uint16(i))
		} else {
			o.PutUint16(s[4:], uint16(len(s)-40))
		}
		if tcp {
			o.PutUint32(s[l4+4:], o.Uint32(s[l4+4:])+uint32(at-data))
			if end < len(p) {
				s[l4+13] &^= flagPSH | 1
			}
		} else {
			o.PutUint16(s[l4+4:], uint16(len(s)-l4))
		}
		complete(s)
		list = append(list, s)
		at = end
	}
	return list
}

// maker makes packets of some flows, mostly such that continue each other.
type maker struct {
	r   *rand.Rand
	seq [8]uint32
	id  [8]uint16
}

func (m *maker) next() (h nat64.VirtioHdr, p []byte, flow int) {
	flow = m.r.IntN(6)
	v4, tcp := flow&1 == 0, flow < 4
	seldom := func() bool { return m.r.IntN(12) == 0 }
	n := 100
	switch m.r.IntN(10) {
	case 0:
		n = m.r.IntN(101)
	case 1:
		n = 1400
	}
	head := []byte{0x60, 0, 0, 0, 0, 0, protocolTCP, 63, 39: byte(flow)}
	if v4 {
		head = []byte{0x45, 0, 0, 0, byte(m.id[flow] >> 8), byte(m.id[flow]), byte(m.r.IntN(3)) / 2 * 0x40, 0, 63, protocolTCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, byte(flow)}
		if m.id[flow]++; seldom() {
			m.id[flow] += 7
		}
		if seldom() {
			head[8] = 9
		}
		if seldom() {
			head[7] = 1 // a fragment
		}
	} else if seldom() {
		head[1+m.r.IntN(2)*6] ^= 1 // flow label, hop limit
	}
	if !tcp {
		head[map[bool]int{true: 9, false: 6}[v4]] = protocolUDP
	}
	p = append(head, 0x12, 0x34, 0, byte(flow))
	if tcp {
		p = binary.BigEndian.AppendUint32(p, m.seq[flow])
		flags := byte(flagACK)
		if seldom() {
			flags |= flagPSH
		}
		if seldom() {
			flags |= 1 << m.r.IntN(8)
		}
		p = append(p, 1, 2, 3, 4, 5<<4, flags, 0x10, 0, 0, 0, 0, 0)
		if m.r.IntN(4) == 0 {
			p[len(head)+12] = 8 << 4
			p = append(p, 1, 1, 8, 10, 0, 0, 0, byte(m.r.IntN(20)/19), 0, 0, 0, 1)
		}
		if m.seq[flow] += uint32(n); seldom() {
			m.seq[flow]++
		}
	} else {
		p = binary.BigEndian.AppendUint16(p, uint16(8+n))
		p = append(p, 0, 0)
	}
	for range n {
		p = append(p, byte(m.r.Uint32()))
	}
	if v4 {
		binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	} else {
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
	}
	complete(p)
	l4, _, field, pseudo := geometry(p)
	switch {
	case m.r.IntN(2) == 0 && !(v4 && p[7] != 0):
		h = nat64.VirtioHdr{Flags: nat64.VirtioNeedsChecksum, ChecksumStart: uint16(l4), ChecksumOffset: uint16(field - l4)}
		binary.BigEndian.PutUint16(p[field:], slowSum(nil, pseudo))
	case seldom():
		p[field] ^= 0x40 // wrong, and so it must arrive
	case !tcp && seldom():
		p[field], p[field+1] = 0, 0
	}
	return h, p, flow
}

// What is gathered comes out of segmentation as it was: no packet is changed,
// lost or overtaken by another of its flow.
func TestGather(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[1])
	unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<18)
	const packets = 40000
	type message struct {
		h nat64.VirtioHdr
		p []byte
	}
	got := make(chan message, packets)
	go func() {
		defer close(got)
		for b := make([]byte, 1<<17); ; {
			n, err := unix.Read(pair[1], b)
			if err != nil || n == 0 {
				return
			}
			var m message
			m.h.Decode(b)
			m.p = bytes.Clone(b[vnetHeaderLen:n])
			got <- m
		}
	}()
	m := &maker{r: rand.New(rand.NewPCG(1, 2))}
	q := &queue{fd: pair[0], vnet: true, tcp: true, udp: true, s: new(queueStats)}
	for range maxFlows {
		q.spare = append(q.spare, make([]byte, bufLen))
	}
	buf := make([]byte, bufLen)
	var want [8][][]byte
	for range packets {
		h, p, flow := m.next()
		at := front - 20*m.r.IntN(2)
		copy(buf[at:], p)
		buf = q.gather(&h, buf, at, len(p))
		if h.Flags != 0 {
			complete(p)
		}
		want[flow] = append(want[flow], p)
		if m.r.IntN(60) == 0 {
			q.flush()
		}
		if len(q.spare)+q.used != maxFlows {
			t.Fatalf("%d flows, %d buffers", q.used, len(q.spare))
		}
	}
	q.flush()
	unix.Close(pair[0])
	gathered, largest := 0, 0
	for m := range got {
		list := segments(t, m.h, m.p)
		gathered += len(list) - 1
		largest = max(largest, len(m.p))
		for _, p := range list {
			flow := p[19]
			if p[0] != 0x45 {
				flow = p[39]
			}
			if len(want[flow]) == 0 {
				t.Fatalf("flow %d: one too many: %x", flow, p)
			}
			w := want[flow][0]
			want[flow] = want[flow][1:]
			if p[0] == 0x45 && p[6]&0x40 != 0 && p[7] == 0 && w[0] == 0x45 { // nobody needs the identification
				copy(p[4:6], w[4:6])
				copy(p[10:12], w[10:12])
			}
			if !bytes.Equal(p, w) {
				t.Fatalf("flow %d, of %d, %d left:\n got %x\nwant %x", flow, len(list), len(want[flow]), p, w)
			}
		}
	}
	for flow, w := range want {
		if len(w) != 0 {
			t.Errorf("flow %d: %d lost", flow, len(w))
		}
	}
	if q.s.gathered.Load() != uint64(gathered) || gathered < packets/8 || q.s.writeErrors.Load() != 0 {
		t.Errorf("%d gathered, counted %d; %d write errors", gathered, q.s.gathered.Load(), q.s.writeErrors.Load())
	}
}

// A super-packet stays within 64 KB and the buffer, wherever it begins.
func TestGatherLimits(t *testing.T) {
	for _, c := range []struct{ at, n, segments int }{{front, 1400, 46}, {front + 40000, 1400, 18}, {front, 100, maxSegments}} {
		m := &maker{r: rand.New(rand.NewPCG(3, 4))}
		var g gathered
		buf := make([]byte, bufLen)
		p := append([]byte{0x60, 0, 0, 0, 0, 0, protocolTCP, 63, 39: 1}, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 5<<4, flagACK, 1, 1, 0, 0, 0, 0)
		for range c.n {
			p = append(p, byte(m.r.Uint32()))
		}
		binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
		h := nat64.VirtioHdr{Flags: nat64.VirtioDataValid}
		copy(buf[c.at:], p)
		g.start(buf, c.at, len(p), &h, parse(p, &h))
		for {
			binary.BigEndian.PutUint32(p[44:], binary.BigEndian.Uint32(p[44:])+uint32(c.n))
			if !g.join(p, &h, parse(p, &h)) {
				break
			}
		}
		if g.segments != c.segments || g.n != 60+c.n*c.segments {
			t.Errorf("%+v: %d segments, %d octets", c, g.segments, g.n)
		}
	}
}

func BenchmarkGather(b *testing.B) {
	for _, n := range []int{18, 1440} {
		b.Run(fmt.Sprintf("payload=%d", n), func(b *testing.B) {
			p := append([]byte{0x60, 0, 0, 0, 0, 0, protocolUDP, 63, 39: 1}, 1, 2, 3, 4, byte((n+8)>>8), byte(n+8), 1, 1)
			p = append(p, make([]byte, n)...)
			binary.BigEndian.PutUint16(p[4:], uint16(len(p)-40))
			var g gathered
			buf := make([]byte, bufLen)
			h := nat64.VirtioHdr{Flags: nat64.VirtioDataValid}
			b.ReportAllocs()
			for b.Loop() {
				x := parse(p, &h)
				if g.n == 0 || !g.sameFlow(p, x) || !g.join(p, &h, x) {
					copy(buf[front:], p)
					g.start(buf, front, len(p), &h, x)
				}
			}
		})
	}
}
