package nat64

import (
	"math/rand/v2"
	"testing"

	"signalbox.example/nat64/internal/checksum"
)

// slowSum is RFC 1071 word by word.
func slowSum(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i++ {
		if i%2 == 0 {
			s += uint32(b[i]) << 8
		} else {
			s += uint32(b[i])
		}
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func TestSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 700 {
		b := make([]byte, n)
		for range 3 {
			if got, want := checksum.Sum(b), slowSum(b); got != want {
				t.Fatalf("%d octets: %04x, want %04x", n, got, want)
			}
			for i := range b {
				b[i] = byte(r.Uint32()) | byte(-(r.Uint32() & 1)) // many 0xff
			}
		}
		for i := range b {
			b[i] = 0xff
		}
		if got, want := checksum.Sum(b), slowSum(b); got != want {
			t.Fatalf("%d octets of ff: %04x, want %04x", n, got, want)
		}
	}
	for _, x := range []uint64{0, 1, 0xffff, 0x10000, 0xffffffff, 1 << 32, 1<<64 - 1, 1<<63 | 1, 0xffff0000ffff0000} {
		want := uint16(x % 0xffff)
		if want == 0 && x != 0 {
			want = 0xffff
		}
		if got := checksum.Fold(x); got != want {
			t.Errorf("%x: %04x, want %04x", x, got, want)
		}
	}
	ones := addr6{1<<64 - 1, 1<<64 - 1}
	if checksum.Fold(sumPair(ones, ones)) != 0xffff || checksum.Fold(ones.sum()) != 0xffff {
		t.Error("addresses of ones")
	}
}

// Changing a word through adjust gives the checksum of the changed data, and
// keeps a wrong one wrong by the same amount.
func TestAdjust(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		b := make([]byte, 2+2*r.IntN(20))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		fault := uint16(r.Uint32() * (r.Uint32() & 1))
		old := ^checksum.Fold(uint64(slowSum(b)) + uint64(fault))
		was := be16(b)
		put16(b, uint16(r.Uint32()))
		got := adjust(old, uint64(was), uint64(be16(b)))
		want := ^checksum.Fold(uint64(slowSum(b)) + uint64(fault))
		if got != want && !(got == 0xffff && want == 0 || got == 0 && want == 0xffff) {
			t.Fatalf("%04x, want %04x", got, want)
		}
	}
}

// An error's checksum is made from that of the error that came, without a sum
// over the end of the quote: for every length, odd ones included, it must be
// the one that a sum over all of it gives.
func TestErrorChecksumOfEveryQuote(t *testing.T) {
	prefix, err := ParsePrefix("2001:db8:64::/96")
	if err != nil {
		t.Fatal(err)
	}
	tr, err := New(Config{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	m := testMaker()
	var s Scratch
	for quote := 28; quote < 1300; quote++ {
		for _, udp := range []bool{true, false} {
			h4 := uint32(11<<24 | quote*7919)
			q := m.v4sized(addr4(h4), benchFar, udp, quote-28, true)
			p := m.icmp4(benchFar, addr4(h4), 11, 0, append(make([]byte, 4), q...))
			buf := append(make([]byte, Headroom), p...)
			r := tr.Translate(&s, buf, Headroom, len(p))
			if r.Verdict != Forward {
				t.Fatalf("quote of %d: %v", quote, r.Reason)
			}
			o := r.Packet
			if got := checksum.Fold(pseudo(sumPair(load6(o[8:]), load6(o[24:])), len(o)-header6, protoICMPv6) + uint64(checksum.Sum(o[header6:]))); got != 0xffff {
				t.Fatalf("quote of %d: sum %04x in %x", quote, got, o)
			}
		}
	}
}
