package nat64

import (
	"bytes"
	"net/netip"
	"testing"

	"signalbox.example/nat64/internal/checksum"
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

// The checksum of an error that is left to the device is finished before the
// quoted packet is changed.
func TestHairpinOfPartialError(t *testing.T) {
	tr := must(New(crossConfig()))
	m := testMaker()
	host, other := netip.MustParseAddr("2001:db8:c::2"), netip.MustParseAddr("2001:db8:aaaa::9")
	behind := func(a string) netip.Addr { return netip.MustParseAddr("2001:db8:64::" + a) }
	// Nothing in the quoted packet makes up for its new addresses.
	quoted := make([]byte, header6+40)
	putHeader6(quoted, 0, 40, 50, 64, from6(behind("192.0.2.9")), from6(host))
	in := m.icmp6(host, behind("192.0.2.9"), 1, 4, append(make([]byte, 4), quoted...))
	h := VirtioHdr{Flags: VirtioNeedsChecksum, ChecksumStart: header6, ChecksumOffset: 2}
	put16(in[header6+2:], checksum.Fold(pseudo(sumPair(load6(in[8:]), load6(in[24:])), len(in)-header6, protoICMPv6)))
	var s Scratch
	out, r := runOffload(t, tr, &s, &h, in)
	if r.Reason != Hairpinned || load6(out[0][24:]) != from6(other) {
		t.Fatalf("%v: %x", r.Reason, out)
	}
	if h.Flags != 0 {
		t.Errorf("header %+v", h)
	}
	if err := judge(out[0]); err != nil {
		t.Error(err)
	}
}
