package xfrmguest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/guest"
	"signalbox.example/xfrm"
)

// key is a key of n octets in iproute2's form.
func key(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return fmt.Sprintf("0x%x", b)
}

const gcm = "aead rfc4106(gcm(aes)) 0x0102030405060708090a0b0c0d0e0f1011121314 128"

// espAlgs are the algorithms of ESP, by name.
func espAlgs() (names, words []string) {
	add := func(name, w string) { names, words = append(names, name), append(words, w) }
	for _, bits := range []int{128, 192, 256} {
		add(fmt.Sprintf("gcm-%d", bits), fmt.Sprintf("aead rfc4106(gcm(aes)) %s 128", key(bits/8+4)))
		add(fmt.Sprintf("ccm-%d", bits), fmt.Sprintf("aead rfc4309(ccm(aes)) %s 128", key(bits/8+3)))
	}
	for _, icv := range []int{64, 96} {
		add(fmt.Sprintf("gcm-128-icv%d", icv), fmt.Sprintf("aead rfc4106(gcm(aes)) %s %d", key(20), icv))
	}
	add("gmac-128", "aead rfc4543(gcm(aes)) "+key(20)+" 128")
	add("chacha20poly1305", "aead rfc7539esp(chacha20,poly1305) "+key(36)+" 128")
	for _, c := range []struct {
		name, alg string
		n         int
	}{{"aes128", "cbc(aes)", 16}, {"aes256", "cbc(aes)", 32}, {"ctr", "rfc3686(ctr(aes))", 20}, {"camellia", "cbc(camellia)", 16}, {"3des", "cbc(des3_ede)", 24}, {"null", "ecb(cipher_null)", 0}} {
		k := key(c.n)
		if c.n == 0 {
			k = `""`
		}
		add(c.name+"-sha256", fmt.Sprintf("enc %s %s auth-trunc hmac(sha256) %s 128", c.alg, k, key(32)))
	}
	for _, h := range authAlgs() {
		add("aes128-"+h[0], fmt.Sprintf("enc cbc(aes) %s auth-trunc %s", key(16), h[1]))
	}
	return names, words
}

// authAlgs are the hashes of ESP and AH: name, and words behind auth-trunc.
func authAlgs() [][2]string {
	return [][2]string{
		{"sha1", "hmac(sha1) " + key(20) + " 96"}, {"sha384", "hmac(sha384) " + key(48) + " 192"}, {"sha512", "hmac(sha512) " + key(64) + " 256"},
		{"xcbc", "xcbc(aes) " + key(16) + " 96"}, {"cmac", "cmac(aes) " + key(16) + " 96"}, {"rmd160", "hmac(rmd160) " + key(20) + " 96"}, {"md5", "hmac(md5) " + key(16) + " 96"},
	}
}

// ends are the kinds of flows: outer family, inner family and mode.
func ends() map[string]flow {
	return map[string]flow{
		"v4-transport": {src: outA4, dst: outB4, outSrc: outA4, outDst: outB4, mode: "transport"},
		"v6-transport": {src: outA6, dst: outB6, outSrc: outA6, outDst: outB6, mode: "transport"},
		"v4-tunnel":    {src: inA4, dst: inB4, outSrc: outA4, outDst: outB4, mode: "tunnel"},
		"v6-tunnel":    {src: inA6, dst: inB6, outSrc: outA6, outDst: outB6, mode: "tunnel"},
		"v6in4-tunnel": {src: inA6, dst: inB6, outSrc: outA4, outDst: outB4, mode: "tunnel"},
		"v4in6-tunnel": {src: inA4, dst: inB4, outSrc: outA6, outDst: outB6, mode: "tunnel"},
		"v4-beet":      {src: inA4, dst: inB4, outSrc: outA4, outDst: outB4, mode: "beet"},
		"v6-beet":      {src: inA6, dst: inB6, outSrc: outA6, outDst: outB6, mode: "beet"},
	}
}

var endNames = []string{"v4-transport", "v6-transport", "v4-tunnel", "v6-tunnel", "v6in4-tunnel", "v4in6-tunnel", "v4-beet", "v6-beet"}

func TestInGuestESP(t *testing.T) {
	guest.Inside(t)
	a, b := twoSites(t)
	names, words := espAlgs()
	for _, end := range endNames {
		for i, name := range names {
			if i > 0 && (end == "v6in4-tunnel" || end == "v4in6-tunnel") {
				continue // the family of what is inside does not concern ciphers
			}
			t.Run(end+"/"+name, func(t *testing.T) {
				f := ends()[end]
				f.proto, f.algs = "esp", words[i]
				if strings.HasPrefix(end, "v6in4") || strings.HasPrefix(end, "v4in6") {
					f.state = "flag af-unspec"
				}
				f.run(t, a, b)
			})
		}
	}
}

func TestInGuestESPOverTCP(t *testing.T) {
	guest.Inside(t)
	a, b := twoSites(t)
	for _, end := range endNames {
		t.Run(end, func(t *testing.T) {
			a, b := under(t, a, b)
			f := ends()[end]
			f.proto, f.algs = "esp", gcm
			if strings.Contains(end, "in") {
				f.state = "flag af-unspec"
			}
			f.install(a, b)
			if err := stream(a, b, f.src, f.dst, 200_000); err != nil {
				t.Fatal(err)
			}
			f.carried(a, b, 3)
			c, err := b.counters(f.outDst, spiAB)
			if err != nil || c.Bytes < 200_000 {
				t.Errorf("counted %d octets, %v", c.Bytes, err)
			}
		})
	}
}

// Without the states the policies let nothing through: what the other tests
// see go by was protected.
func TestInGuestPoliciesBlock(t *testing.T) {
	guest.Inside(t)
	a, b := twoSites(t)
	f := ends()["v4-transport"]
	f.proto, f.algs = "esp", gcm
	f.install(a, b)
	if err := exchange(a, b, f.src, f.dst, 1, 10); err != nil {
		t.Fatal(err)
	}
	if err := b.c.FlushStates(context.Background(), 0); err != nil {
		t.Fatal(err)
	}
	if !blocked(a, b, f.src, f.dst) {
		t.Error("packets pass without states")
	}
}

func TestInGuestAH(t *testing.T) {
	guest.Inside(t)
	a, b := twoSites(t)
	for _, end := range []string{"v4-transport", "v6-transport", "v4-tunnel", "v6-tunnel"} {
		for _, h := range append(authAlgs(), [2]string{"sha256", "hmac(sha256) " + key(32) + " 128"}) {
			t.Run(end+"/"+h[0], func(t *testing.T) {
				f := ends()[end]
				f.proto, f.algs = "ah", "auth-trunc "+h[1]
				f.run(t, a, b)
			})
		}
	}
}

func TestInGuestIPComp(t *testing.T) {
	guest.Inside(t)
	a, b := twoSites(t)
	for _, end := range []string{"v4-transport", "v6-transport"} {
		t.Run(end, func(t *testing.T) {
			a, b := under(t, a, b)
			f := ends()[end]
			// A CPI has 16 bits. What compression would make longer goes as
			// it is, so the data is long and regular.
			f.proto, f.algs, f.tmpl = "comp", "comp deflate", "level use"
			f.install(a, b)
			if err := exchange(a, b, f.src, f.dst, 3, 1000); err != nil {
				t.Fatal(err)
			}
			f.carried(a, b, 3)
			c, err := a.counters(f.outDst, spiAB)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("3000 octets of payload, %d counted", c.Bytes)
		})
	}
}

func TestInGuestReplayWindows(t *testing.T) {
	guest.Inside(t)
	a, b := twoSites(t)
	for name, words := range map[string]string{
		"32": "replay-window 32", "256": "replay-window 256", "esn-64": "replay-window 64 flag esn", "esn-1024": "replay-window 1024 flag esn", "esn-4096": "replay-window 4096 flag esn",
	} {
		t.Run(name, func(t *testing.T) {
			a, b := under(t, a, b)
			f := ends()["v4-transport"]
			f.proto, f.algs, f.state = "esp", gcm, words
			f.install(a, b)
			if err := exchange(a, b, f.src, f.dst, 5, 40); err != nil {
				t.Fatal(err)
			}
			s := find(t, b, f.outDst, spiAB)
			want := name[strings.Index(name, "-")+1:]
			if fmt.Sprint(s.Replay.Window) != want {
				t.Errorf("window %d, want %s", s.Replay.Window, want)
			}
			if s.Replay.Seq < 5 {
				t.Errorf("sequence %d after 5 packets", s.Replay.Seq)
			}
			if len(s.Replay.Bitmap) == 0 || s.Replay.Bitmap[0]&0x1f != 0x1f {
				t.Errorf("bitmap %x", s.Replay.Bitmap)
			}
		})
	}
}

// find returns a copy of a state.
func find(t testing.TB, s *site, dst string, spi uint32) *xfrm.SA {
	t.Helper()
	list, err := s.c.AllStates(context.Background(), xfrm.SAFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range list {
		if st.SPI == spi && st.Dst.String() == dst {
			return st
		}
	}
	t.Fatalf("no state %#x to %s among %d", spi, dst, len(list))
	return nil
}

// udpEncap makes a socket of a site take ESP in UDP, as an IKE daemon's does.
func udpEncap(t *testing.T, s *site, addr string, port int) {
	t.Helper()
	var fd int
	if err := s.ns.Do(func() (err error) {
		domain, sa := unix.AF_INET, unix.Sockaddr(nil)
		if strings.Contains(addr, ":") {
			domain = unix.AF_INET6
			sa = &unix.SockaddrInet6{Port: port, Addr: parse(addr).As16()}
		} else {
			sa = &unix.SockaddrInet4{Port: port, Addr: parse(addr).As4()}
		}
		if fd, err = unix.Socket(domain, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		const udpEncapOption, espInUDP = 100, 2
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, udpEncapOption, espInUDP); err != nil {
			return os.NewSyscallError("UDP_ENCAP", err)
		}
		return unix.Bind(fd, sa)
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
}

func TestInGuestESPInUDP(t *testing.T) {
	guest.Inside(t)
	for _, end := range []string{"v4-transport", "v4-tunnel", "v6-transport", "v6-tunnel"} {
		t.Run(end, func(t *testing.T) {
			a, b := twoSites(t)
			f := ends()[end]
			udpEncap(t, a, f.outSrc, 4500)
			udpEncap(t, b, f.outDst, 4500)
			any := "0.0.0.0"
			if strings.Contains(f.outSrc, ":") {
				any = "::"
			}
			f.proto, f.algs, f.state = "esp", gcm, "encap espinudp 4500 4500 "+any
			f.policy = "priority 100"
			f.install(a, b)
			if strings.HasSuffix(end, "transport") {
				// The packets in UDP match the flow's selector themselves: they
				// need policies of their own, as IKE daemons make.
				for _, l := range []string{
					"policy add src %[1]s dst %[2]s proto udp sport 4500 dport 4500 dir in priority 1",
					"policy add src %[2]s dst %[1]s proto udp sport 4500 dport 4500 dir in priority 1",
				} {
					both(a, b, fmt.Sprintf(l, full(f.src), full(f.dst)))
				}
			}
			if err := exchange(a, b, f.src, f.dst, 3, 40); err != nil {
				t.Fatal(err)
			}
			f.carried(a, b, 3)
		})
	}
}

func TestInGuestMarks(t *testing.T) {
	guest.Inside(t)
	a, b := twoSites(t)
	f := ends()["v4-transport"]
	f.proto, f.algs = "esp", gcm
	clean(a, b)
	f.policy = ""
	b.doOrSkip(f.states())
	b.doOrSkip(f.policies(false))
	f.policy, f.state = "mark 6 mask 0xffffffff", "mark 6 mask 0xffffffff"
	// A marked state of the sender; the receiver's side of it has no mark.
	a.doOrSkip(strings.SplitAfter(f.states(), "\n")[0] + strings.ReplaceAll(strings.SplitAfter(f.states(), "\n")[1], "mark 6 mask 0xffffffff", ""))
	a.doOrSkip(strings.SplitAfter(f.policies(true), "\n")[0])
	setMark := func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_MARK, 6) }
	if err := exchange(a, b, f.src, f.dst, 3, 40, setMark); err != nil {
		t.Fatal(err)
	}
	c, err := a.counters(f.outDst, spiAB)
	if err != nil || c.Packets < 3 {
		t.Errorf("the marked state carried %d packets, %v", c.Packets, err)
	}
	if !blocked(a, b, f.src, f.dst) {
		t.Error("packets without mark pass the other end's policy")
	}
	// A state that marks its packets with an output mark, for routing.
	clean(a, b)
	f.policy, f.state = "", "output-mark 0x9 mask 0xff"
	f.run(t, a, b)
	if s := find(t, a, f.outDst, spiAB); s.SetMark.Value != 9 || s.SetMark.Mask != 0xff {
		t.Errorf("output mark %+v", s.SetMark)
	}
}

func TestInGuestTFCPadding(t *testing.T) {
	guest.Inside(t)
	a, b := twoSites(t)
	f := ends()["v4-tunnel"]
	f.proto, f.algs = "esp", gcm
	size := func(pad uint32) uint64 {
		t.Helper()
		clean(a, b)
		for _, s := range []*site{a, b} {
			for line := range strings.Lines(f.states()) {
				cmd, err := xfrm.ParseCommand("ip xfrm "+strings.TrimSpace(line), nil)
				if err != nil {
					t.Fatal(err)
				}
				sa := *cmd.Request.(*xfrm.SA)
				sa.TFCPad = pad
				if err := s.c.AddVerifiedSA(context.Background(), &sa); err != nil {
					t.Fatal(err)
				}
			}
		}
		a.do(f.policies(true))
		b.do(f.policies(false))
		if err := exchange(a, b, f.src, f.dst, 1, 10); err != nil { // neighbours are known then
			t.Fatal(err)
		}
		before := wireOctets(t, a)
		if err := exchange(a, b, f.src, f.dst, 4, 10); err != nil {
			t.Fatal(err)
		}
		return (wireOctets(t, a) - before) / 4
	}
	plain, padded := size(0), size(600)
	t.Logf("a datagram of 10 octets takes %d octets on the wire, %d with padding to 600", plain, padded)
	if padded < 600 || plain >= 300 {
		t.Error("no padding on the wire")
	}
}

func wireOctets(t *testing.T, s *site) uint64 {
	t.Helper()
	var n uint64
	out := s.sh("ip -s -o link show wire")
	i := strings.Index(out, "TX:")
	if i < 0 {
		t.Fatalf("no counters in %q", out)
	}
	for _, w := range strings.Fields(out[i:]) {
		if _, err := fmt.Sscan(w, &n); err == nil {
			return n
		}
	}
	t.Fatalf("no number in %q", out[i:])
	return 0
}
