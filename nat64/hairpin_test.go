package nat64

import (
	"bytes"
	"net/netip"
	"testing"
)

// hairpinned returns a packet from one host of crossConfig's EAM table to the
// IPv4 address of another, behind the prefix.
func hairpinned(next uint8, payload []byte) []byte {
	p := make([]byte, header6, header6+len(payload))
	putHeader6(p, 0, len(payload), next, 64,
		from6(netip.MustParseAddr("2001:db8:c::2")), from6(netip.MustParseAddr("2001:db8:64::192.0.2.9")))
	return append(p, payload...)
}

// A packet of any protocol and any length, down to nothing behind its
// header, goes back or is too short; nothing is read beyond its end.
func TestHairpinOfAnyLength(t *testing.T) {
	tr := must(New(crossConfig()))
	var s Scratch
	for next := range 256 {
		for n := range 24 {
			payload := bytes.Repeat([]byte{255}, n)
			if extension(uint8(next)) {
				payload = make([]byte, n) // one that is hop-by-hop all the way, or ends it
			}
			_, r := run(t, tr, &s, hairpinned(uint8(next), payload))
			least := map[int]int{protoTCP: 20, protoUDP: 8, protoICMPv6: 4}[next]
			switch {
			case extension(uint8(next)):
			case n < least && r.Reason != ShortTransport, n >= least && r.Reason != Hairpinned:
				t.Errorf("protocol %d, %d octets: %v", next, n, r.Reason)
			}
		}
	}
}
