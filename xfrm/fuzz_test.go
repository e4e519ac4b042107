package xfrm

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// seeds are messages of every kind, built by this package so that they fit
// the architecture.
func seeds(t testing.TB) [][]byte {
	var out [][]byte
	for _, c := range []string{
		"ip xfrm state add src 2001:db8:1::1 dst 2001:db8:2::2 proto esp spi 0xc0000001 reqid 6 mode tunnel replay-window 32 flag af-unspec mark 6 mask 0xff auth-trunc 'hmac(sha256)' 0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f 128 enc 'cbc(aes)' 0x000102030405060708090a0b0c0d0e0f",
		"ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x104 mode tunnel flag esn replay-window 128 aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f10111213 128 encap espinudp 4500 4500 0.0.0.0 if_id 7 output-mark 5 mask 7 tfcpad 9 dir in pcpu-num 0 mtimer-thresh 5",
		"ip xfrm state update src 192.0.2.1 dst 192.0.2.2 proto comp spi 9 comp deflate limit byte-hard 9 limit time-soft 8 sel src 10.0.0.0/8 dst 10.0.0.0/8 proto gre key 7 dev if3",
		"ip xfrm state add src 2001:db8::1 dst 2001:db8::2 proto hao mode ro coa 2001:db8::3",
		"ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x205 mode iptfs dir out iptfs-opts pkt-size 1000 max-queue-size 10000 init-delay 5 dont-frag aead 'rfc4106(gcm(aes))' 0x00 128 ctx label",
		"ip xfrm state delete src 192.0.2.1 dst 192.0.2.2 proto ah spi 0x101 mark 5",
		"ip xfrm state allocspi src 192.0.2.1 dst 192.0.2.2 proto esp min 1 max 9",
		"ip xfrm state list src 192.0.2.0/24 proto esp", "ip xfrm state flush proto esp", "ip xfrm state count",
		"ip xfrm policy add src ::/0 dst ::/0 dir out priority 399999 ptype sub mark 6 tmpl src 2001:db8:1::1 dst 2001:db8:2::2 proto esp reqid 6 mode tunnel tmpl proto ah mode transport level use",
		"ip xfrm policy update src 10.0.0.0/8 dst 10.1.0.0/16 proto icmp type 8 code 0 dir fwd action block flag localok ctx label if_id 9 index 10",
		"ip xfrm policy get index 9 dir out ptype main", "ip xfrm policy flush ptype sub", "ip xfrm policy count",
		"ip xfrm policy set hthresh4 24 24 hthresh6 64 64", "ip xfrm policy setdefault in block out accept", "ip xfrm policy getdefault",
		"ip link add v type vti6 local 2001:db8::1 key 6", "ip link add x type xfrm if_id 5 dev if2",
	} {
		p, err := ParseCommand(c, nil)
		if err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		b, err := p.Append(nil, Header{})
		if err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		out = append(out, b)
	}
	for _, e := range sampleEvents() {
		b, err := appendEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func fuzzOptions() []TextOptions { return []TextOptions{{}, {Stats: true}, Lossless()} }

// FuzzMessages parses any octets as messages of every type. What can be
// parsed can be built again, and the second parse sees what the first saw.
func FuzzMessages(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b)
	}
	f.Add([]byte{16, 0, 0, 0, 2, 0})
	usual, err := AppendNewSA(nil, Header{}, plainSA(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(usual)
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= sizeHeader && data[0]&1 == 0 { // mostly one message, whatever its length field says
			data = bytes.Clone(data)
			SetLength(data, 0)
		}
		for m, err := range Messages(data) {
			if err != nil {
				break
			}
			for range m.Attributes() {
			}
			for _, o := range fuzzOptions() {
				_, _ = AppendMessageText(nil, m, o)
			}
			_ = CheckMessage(m, Kernel{})
			_ = ParseAck(m)
			var short, long SA // the first parse makes the second a usual one, if the message is
			for range 2 {
				if got, want := short.parseMessage(m.Type, m.Body), long.parseAny(m.Type, m.Body); fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("%v, want %v", got, want)
				} else if got == nil && !reflect.DeepEqual(&short, &long) {
					t.Fatalf("got %+v\nwant %+v", short, long)
				}
			}
			var l Link
			if l.Parse(m) == nil {
				_, _ = AppendLink(nil, Header{}, &l)
			}
			if e, err := ParseEvent(m); err == nil {
				if _, err := AppendJSON(nil, e, TextOptions{}); err != nil {
					t.Errorf("%T has no JSON: %v", e, err)
				}
				if b, err := appendEvent(e); err == nil {
					m2, _, err := FirstMessage(b)
					if err != nil {
						t.Fatal(err)
					}
					e2, err := ParseEvent(m2)
					if err != nil {
						t.Fatalf("%T %+v cannot be parsed again: %v", e, e, err)
					}
					b2, err := appendEvent(e2)
					if err != nil || !bytes.Equal(b, b2) {
						t.Fatalf("%T differs:\n%x\n%x %v", e, b, b2, err)
					}
				}
			}
			switch m.Type {
			case NewSA, UpdSA, DelSA:
				var s SA
				if s.Parse(m) == nil {
					if _, err := AppendNewSA(nil, Header{}, &s); err == nil {
						if err := identitySA(&s); err != nil {
							t.Error(err)
						}
					}
				}
			case NewPolicy, UpdPolicy, DelPolicy:
				var p Policy
				if p.Parse(m) == nil {
					if _, err := AppendNewPolicy(nil, Header{}, &p); err == nil {
						if err := identityPolicy(&p); err != nil {
							t.Error(err)
						}
					}
				}
			}
		}
	})
}

// FuzzText reads any text. What is read can be printed and read again.
func FuzzText(f *testing.F) {
	for _, b := range seeds(f) {
		m, _, _ := FirstMessage(b)
		for _, o := range []TextOptions{{Keys: true}, {Stats: true, Keys: true}, Lossless()} {
			if text, err := AppendMessageText(nil, m, o); err == nil {
				f.Add(string(text))
			}
		}
	}
	f.Add("src 10.0.0.0/8 dst 10.1.0.0/16 \n\tdir out priority 0 ptype main \n")
	f.Fuzz(func(t *testing.T, text string) {
		for e, err := range ParseText(strings.NewReader(text), &ReadOptions{HiddenKeys: true}) {
			if err != nil {
				_ = err.Error()
				break
			}
			if e.SA != nil {
				if _, err := AppendNewSA(nil, Header{}, e.SA); err == nil {
					if err := identitySA(e.SA); err != nil {
						t.Error(err)
					}
				}
				_ = e.SA.Check()
			} else {
				if _, err := AppendNewPolicy(nil, Header{}, e.Policy); err == nil {
					if err := identityPolicy(e.Policy); err != nil {
						t.Error(err)
					}
				}
				_ = e.Policy.Check()
			}
		}
	})
}

// FuzzCommand reads any command. What it builds is well-formed.
func FuzzCommand(f *testing.F) {
	for _, c := range []string{
		"ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x100 reqid 1 mode transport auth 'hmac(sha1)' 0x00 enc 'cbc(aes)' 0x0001",
		"ip -s xfrm state list", "ip xfrm policy add src any dir out", "ip xfrm p d index 1 dir in", "ip link add v type vti key 1.2.3.4",
		"ip xfrm policy add dir out tmpl proto esp tmpl proto ah level use limit packet-hard 5", "ip xfrm state allocspi src ::1 proto comp min 1 max 2",
	} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, err := ParseCommand(line, nil)
		if err != nil {
			_ = err.Error()
			return
		}
		b, err := c.Append(nil, Header{})
		if err != nil {
			_ = err.Error()
			return
		}
		m, n, err := FirstMessage(b)
		if err != nil || n < len(b) || c.Type != m.Type {
			t.Fatalf("%q: %d of %d octets, type %v, %v", line, n, len(b), m.Type, err)
		}
		if c.Object == "link" {
			var l Link
			if err := l.Parse(m); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			return
		}
		if err := CheckMessage(m, Kernel{}); err != nil {
			if _, ok := err.(*RuleError); !ok {
				t.Fatalf("%q is not well-formed: %v", line, err)
			}
		}
	})
}
