package fastpath

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
	"signalbox.example/internal/netns"
	"signalbox.example/nat64"
)

// A packet of which the kernel has only the Ethernet header in one piece, as
// a sender through a memory-mapped ring makes them, is translated like any.
func TestIntegrationPacketInPieces(t *testing.T) {
	need.Asked(t, feature)
	need.Root(t, feature)
	tr, err := nat64.New(crossConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	ns := netns.New(t, "pieces")
	ns.Must(t, `ip link add in0 type veth peer name out0
		ip link set lo up
		ip link set in0 up
		ip link set out0 up
		ip addr add 198.51.100.77/32 dev lo`)
	err = ns.Do(func() error {
		for _, f := range []string{"all", "in0"} {
			if err := writeFile("/proc/sys/net/ipv4/conf/"+f+"/rp_filter", "0"); err != nil {
				return err
			}
		}
		conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(198, 51, 100, 77), Port: 4000})
		if err != nil {
			return err
		}
		defer conn.Close()
		l, err := Attach(tr, Options{Interfaces: []string{"in0"}})
		if err != nil {
			return err
		}
		defer l.Close()
		in, err := netlink.LinkByName("in0")
		if err != nil {
			return err
		}
		out, err := netlink.LinkByName("out0")
		if err != nil {
			return err
		}

		payload := bytes.Repeat([]byte("pieces"), 100)
		frame := append(append(bytes.Clone(in.Attrs().HardwareAddr), out.Attrs().HardwareAddr...), 0x86, 0xdd)
		udp := uint16(8 + len(payload))
		ip := binary.BigEndian.AppendUint16([]byte{0x60, 0, 0, 0}, udp)
		ip = append(ip, 17, 64)
		ip = append(ip, netip.MustParseAddr("2001:db8:c::2").AsSlice()...)
		ip = append(ip, netip.MustParseAddr("2001:db8:64::c633:644d").AsSlice()...)
		ip = append(ip, 0x10, 0, 0x0f, 0xa0) // ports 4096 and 4000
		ip = append(binary.BigEndian.AppendUint16(ip, udp), 0, 0)
		ip = append(ip, payload...)
		binary.BigEndian.PutUint16(ip[46:], ^sum(ip[40:], uint32(sum(ip[8:40], 0))+uint32(udp)+17))
		if err := sendRing(out.Attrs().Index, append(frame, ip...)); err != nil {
			return err
		}

		got := make([]byte, 2000)
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		n, from, err := conn.ReadFromUDPAddrPort(got)
		if err != nil {
			t.Errorf("%v; %+v", err, l.Stats())
			return nil
		}
		if want := netip.MustParseAddrPort("10.64.0.2:4096"); from != want || !bytes.Equal(got[:n], payload) {
			t.Errorf("from %v, %d octets: %q", from, n, got[:n])
		}
		if s := l.Stats(); s.Packets64 != 1 {
			t.Errorf("%+v", s)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// sendRing sends one frame from a PACKET_TX_RING, of which the kernel copies
// the link header alone and takes the rest as it lies.
func sendRing(ifindex int, frame []byte) error {
	protocol := int(binary.NativeEndian.Uint16([]byte{0x86, 0xdd}))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return err
	}
	size := unix.Getpagesize()
	ring := unix.TpacketReq{Block_size: uint32(size), Block_nr: 1, Frame_size: uint32(size), Frame_nr: 1}
	if err := unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, unix.PACKET_TX_RING, &ring); err != nil {
		return err
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	defer unix.Munmap(mem)
	// A frame begins behind struct tpacket2_hdr, padded to a multiple of 16.
	var head unix.Tpacket2Hdr
	const align = unix.TPACKET_ALIGNMENT - 1
	copy(mem[(int(unsafe.Sizeof(head))+align)&^align:], frame)
	binary.NativeEndian.PutUint32(mem[4:], uint32(len(frame)))
	binary.NativeEndian.PutUint32(mem, unix.TP_STATUS_SEND_REQUEST)
	return unix.Sendto(fd, nil, 0, &unix.SockaddrLinklayer{Protocol: uint16(protocol), Ifindex: ifindex})
}
