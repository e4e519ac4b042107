package nat64

import (
	"encoding/binary"
	"math/bits"

	"signalbox.example/nat64/internal/checksum"
)

// sumPair is the checksum contribution of two IPv6 addresses, small enough to
// be added to others.
func sumPair(a, b addr6) uint64 {
	s, c := bits.Add64(a.hi, a.lo, 0)
	s, c = bits.Add64(s, b.hi, c)
	s, c = bits.Add64(s, b.lo, c)
	s += c // cannot carry again, see checksum.Sum
	return s>>32 + s&0xffffffff
}

// adjust is RFC 1624 equation 3: the checksum field old of a packet from
// which words summing to minus went and to which words summing to plus came.
// Both sums may be unfolded. A wrong checksum stays wrong by the same amount.
func adjust(old uint16, minus, plus uint64) uint16 {
	return ^checksum.Fold(uint64(^old) + uint64(^checksum.Fold(minus)) + plus)
}

// adjustPartial is adjust for a field that holds the plain sum of the
// pseudo-header, as VirtIO and Linux leave it for the device to finish.
func adjustPartial(old uint16, minus, plus uint64) uint16 {
	return checksum.Fold(uint64(old) + uint64(^checksum.Fold(minus)) + plus)
}

// pseudo is the sum of an IPv6 pseudo-header (RFC 8200 section 8.1), and,
// as the addresses are sums already, of an IPv4 one.
func pseudo(addresses uint64, length int, protocol uint8) uint64 {
	return addresses + uint64(length) + uint64(protocol)
}

func be16(b []byte) uint16 { return binary.BigEndian.Uint16(b) }
func be32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }
func be64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

func put16(b []byte, v uint16) { binary.BigEndian.PutUint16(b, v) }
func put32(b []byte, v uint32) { binary.BigEndian.PutUint32(b, v) }
func put64(b []byte, v uint64) { binary.BigEndian.PutUint64(b, v) }
