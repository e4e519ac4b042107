package xfrm

import (
	"io"
	"strings"
	"testing"
)

// fullSA is a state with a field of almost every kind.
func fullSA(t testing.TB) *SA {
	c, err := ParseCommand("ip xfrm state add src 2001:db8:1::1 dst 2001:db8:2::2 proto esp spi 0xc0000002 reqid 6 mode tunnel replay-window 128 flag esn mark 6 mask 0xffffffff "+
		"aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223 128 encap espinudp 4500 4500 :: if_id 0x42 "+
		"output-mark 5 mask 0xff extra-flag oseq-may-wrap limit byte-hard 1000000 limit time-soft 3600 sel src 2001:db8::/32 dst 2001:db8:9::/48 proto tcp dport 443", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Request.(*SA)
}

// plainSA is what the peers build and parse in the comparison.
func plainSA(t testing.TB) *SA {
	c, err := ParseCommand("ip xfrm state add src 2001:db8:1::1 dst 2001:db8:2::2 proto esp spi 0xc0000002 reqid 6 mode tunnel replay-window 32 mark 6 mask 0xffffffff "+
		"aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223 128", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Request.(*SA)
}

func benchPolicy(t testing.TB) *Policy {
	c, err := ParseCommand("ip xfrm policy add src 10.0.0.0/8 dst 10.1.0.0/16 dir out priority 399999 mark 6 tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 6 mode tunnel", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Request.(*Policy)
}

// TestHotPathsAllocateNothing covers what a daemon does all day: build, parse,
// check for the kernel's refusal, print.
func TestHotPathsAllocateNothing(t *testing.T) {
	s, p := fullSA(t), benchPolicy(t)
	buf := make([]byte, 0, 4096)
	sm, err := AppendNewSA(nil, Header{}, s)
	if err != nil {
		t.Fatal(err)
	}
	pm, err := AppendNewPolicy(nil, Header{}, p)
	if err != nil {
		t.Fatal(err)
	}
	sm = AppendAttr(sm, 60, []byte{1, 2, 3}) // an unknown attribute is kept
	SetLength(sm, 0)
	var ps SA
	var pp Policy
	id, pid := s.ID(), p.ID()
	o := Lossless()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range map[string]func(){
		"AppendNewSA":     func() { _, err := AppendNewSA(buf, Header{}, s); must(err) },
		"AppendDelSA":     func() { _, err := AppendDelSA(buf, Header{}, &id); must(err) },
		"AppendNewPolicy": func() { _, err := AppendNewPolicy(buf, Header{}, p); must(err) },
		"AppendDelPolicy": func() { _, err := AppendDelPolicy(buf, Header{}, &pid); must(err) },
		"SA.Parse": func() {
			m, _, err := FirstMessage(sm)
			must(err)
			must(ps.Parse(m))
		},
		"Policy.Parse": func() {
			m, _, err := FirstMessage(pm)
			must(err)
			must(pp.Parse(m))
		},
		"SA.AppendText":     func() { s.AppendText(buf, o) },
		"Policy.AppendText": func() { p.AppendText(buf, o) },
		"SA.Check":          func() { must(s.Check()) },
		"Policy.Check":      func() { must(p.Check()) },
	} {
		f() // the first call sizes the slices
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkBuildSA(b *testing.B) {
	for name, s := range map[string]*SA{"plain": plainSA(b), "full": fullSA(b)} {
		b.Run("sa="+name, func(b *testing.B) {
			buf := make([]byte, 0, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := AppendNewSA(buf, Header{}, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseSA(b *testing.B) {
	for name, s := range map[string]*SA{"plain": plainSA(b), "full": fullSA(b)} {
		b.Run("sa="+name, func(b *testing.B) {
			buf, err := AppendNewSA(nil, Header{}, s)
			if err != nil {
				b.Fatal(err)
			}
			m, _, _ := FirstMessage(buf)
			var out SA
			b.ReportAllocs()
			for b.Loop() {
				if err := out.Parse(m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkBuildPolicy(b *testing.B) {
	p := benchPolicy(b)
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := AppendNewPolicy(buf, Header{}, p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParsePolicy(b *testing.B) {
	buf, err := AppendNewPolicy(nil, Header{}, benchPolicy(b))
	if err != nil {
		b.Fatal(err)
	}
	m, _, _ := FirstMessage(buf)
	var out Policy
	b.ReportAllocs()
	for b.Loop() {
		if err := out.Parse(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheckSA(b *testing.B) {
	s := fullSA(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkTextSA(b *testing.B) {
	s := fullSA(b)
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		s.AppendText(buf, TextOptions{Keys: true})
	}
}

func BenchmarkTextPolicy(b *testing.B) {
	p := benchPolicy(b)
	buf := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		p.AppendText(buf, TextOptions{})
	}
}

func BenchmarkParseCommand(b *testing.B) {
	const line = "xfrm policy add src 10.0.0.0/8 dst 10.1.2.3/32 dir out priority 399999 tmpl src 192.0.2.1 dst 192.0.2.2 proto esp reqid 6 mode tunnel"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseCommand(line, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseText(b *testing.B) {
	text := strings.Repeat(benchPolicy(b).String(), 100)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for _, err := range ParsePolicies(strings.NewReader(text), nil) {
			if err != nil && err != io.EOF {
				b.Fatal(err)
			}
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/policy")
}
