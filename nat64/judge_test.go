package nat64

import (
	"bytes"
	"errors"
	"fmt"
	"net"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"signalbox.example/nat64/internal/checksum"
)

// judge lets gopacket decode a whole packet and serialise it again with
// lengths and checksums of its own: the octets must be the same. Quoted
// packets are judged as far as they are there.
func judge(p []byte) error { return judgeIP(p, true, false) }

func reserialise(what string, got []byte, l ...gopacket.SerializableLayer) error {
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}, l...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if !bytes.Equal(b.Bytes(), got) {
		return fmt.Errorf("%s:\nhave %x\nwant %x", what, got, b.Bytes())
	}
	return nil
}

// judgeIP's padded says that zeros may stand for the end of the packet.
func judgeIP(p []byte, whole, padded bool) error {
	if len(p) == 0 {
		return errors.New("empty packet")
	}
	var df gopacket.DecodeFeedback = gopacket.NilDecodeFeedback
	switch p[0] >> 4 {
	case 4:
		var ip layers.IPv4
		if err := ip.DecodeFromBytes(p, df); err != nil {
			return err
		}
		claimed := ip.Length
		if whole && int(claimed) != len(p) {
			return fmt.Errorf("IPv4 length %d of %d", claimed, len(p))
		}
		header := p[:int(ip.IHL)*4]
		if whole {
			if err := reserialise("IPv4", p, &ip, gopacket.Payload(p[len(header):])); err != nil {
				return err
			}
		} else if checksum.Sum(header) != 0xffff {
			return fmt.Errorf("quoted IPv4 header checksum")
		}
		complete := len(p) == int(claimed) && !padded
		if ip.Flags&layers.IPv4MoreFragments != 0 || ip.FragOffset != 0 {
			return nil
		}
		return judgeTransport(p[len(header):], uint8(ip.Protocol), &ip, complete)
	case 6:
		var ip layers.IPv6
		ip.Version = 6
		if len(p) < 40 {
			return errors.New("short IPv6 header")
		}
		claimed := int(be16(p[4:]))
		if whole && claimed != len(p)-40 {
			return fmt.Errorf("IPv6 length %d of %d", claimed, len(p)-40)
		}
		if whole {
			if err := ip.DecodeFromBytes(p, df); err != nil {
				return err
			}
			if ip.FlowLabel != 0 {
				return errors.New("flow label")
			}
		}
		ip.SrcIP, ip.DstIP = net.IP(p[8:24]), net.IP(p[24:40])
		ip.NextHeader = layers.IPProtocol(p[6])
		rest := p[40:]
		next := p[6]
		if next == 44 {
			if len(rest) < 8 {
				return errors.New("short fragment header")
			}
			if be16(rest[2:])&^6 != 0 { // not atomic
				if rest[1] != 0 || rest[3]&6 != 0 {
					return errors.New("reserved bits of the fragment header")
				}
				return nil
			}
			next, rest, claimed = rest[0], rest[8:], claimed-8
		}
		return judgeTransport(rest, next, &ip, len(rest) == claimed && !padded)
	}
	return errors.New("no IP version")
}

func judgeTransport(b []byte, protocol uint8, ip gopacket.NetworkLayer, complete bool) error {
	df := gopacket.NilDecodeFeedback
	switch protocol {
	case 6:
		if !complete {
			return nil
		}
		var l layers.TCP
		if err := l.DecodeFromBytes(b, df); err != nil {
			return err
		}
		l.SetNetworkLayerForChecksum(ip)
		return reserialise("TCP", b, &l, gopacket.Payload(l.Payload))
	case 17:
		if !complete {
			return nil
		}
		var l layers.UDP
		if err := l.DecodeFromBytes(b, df); err != nil {
			return err
		}
		if int(l.Length) != len(b) {
			return fmt.Errorf("UDP length %d of %d", l.Length, len(b))
		}
		if _, v4 := ip.(*layers.IPv4); v4 && l.Checksum == 0 {
			return nil // none
		}
		l.SetNetworkLayerForChecksum(ip)
		if l.Checksum == 0xffff { // gopacket writes 0
			b = bytes.Clone(b)
			b[6], b[7] = 0, 0
		}
		return reserialise("UDP", b, &l, gopacket.Payload(l.Payload))
	case 1:
		if !complete && len(b) < 8 {
			return nil
		}
		var l layers.ICMPv4
		if err := l.DecodeFromBytes(b, df); err != nil {
			return err
		}
		if complete {
			if err := reserialise("ICMPv4", b, &l, gopacket.Payload(l.Payload)); err != nil {
				return err
			}
		}
		if t := l.TypeCode.Type(); t == 3 || t == 11 || t == 12 {
			return judgeQuote(l.Payload, int(b[5])*4, false)
		}
	case 58:
		if !complete && len(b) < 8 {
			return nil
		}
		var l layers.ICMPv6
		if err := l.DecodeFromBytes(b, df); err != nil {
			return err
		}
		if complete {
			l.SetNetworkLayerForChecksum(ip)
			if err := reserialise("ICMPv6", b, &l, gopacket.Payload(l.Payload)); err != nil {
				return err
			}
		}
		if t := l.TypeCode.Type(); t < 128 {
			n := 0
			if t == 1 || t == 3 {
				n = int(b[4]) * 8
			}
			return judgeQuote(b[8:], n, t == 4) // 3/2 may have had an extension
		}
	}
	return nil
}

// judgeQuote judges a quoted packet; n is where RFC 4884 says it ends.
func judgeQuote(b []byte, n int, padded bool) error {
	if n > len(b) || n > 0 && n < 128 {
		return fmt.Errorf("extension at %d of %d", n, len(b))
	}
	if n > 0 {
		if len(b)-n < 4 || b[n]>>4 != 2 {
			return errors.New("no extension where the length field says")
		}
		b = b[:n]
	}
	length := 0
	switch {
	case len(b) >= 20 && b[0]>>4 == 4:
		length = int(be16(b[2:]))
	case len(b) >= 40 && b[0]>>4 == 6:
		length = 40 + int(be16(b[4:]))
	default:
		return errors.New("no packet quoted")
	}
	if length < len(b) {
		for _, c := range b[length:] {
			if c != 0 {
				return errors.New("padding is not zero")
			}
		}
		b = b[:length]
	}
	if err := judgeIP(b, false, n > 0 || padded); err != nil {
		return fmt.Errorf("quoted: %w", err)
	}
	return nil
}
