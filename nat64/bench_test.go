package nat64

import "testing"

func BenchmarkQuick(b *testing.B) {
	tr := must(New(crossConfig()))
	for _, x := range []struct{ name, in string }{
		{"udp64", "60000000000e114020010db8000c0000000000000000000220010db80064000000000000c63364020fa00035000e25f068656c6c6f21"},
		{"udp46", "450000221234000040113420c63364020a4000020fa00035000e779268656c6c6f21"},
	} {
		b.Run(x.name, func(b *testing.B) {
			in := unhex(x.in)
			buf := make([]byte, Headroom+len(in))
			var s Scratch
			b.ReportAllocs()
			for b.Loop() {
				copy(buf[Headroom:], in)
				tr.Translate(&s, buf, Headroom, len(in))
			}
		})
	}
}
