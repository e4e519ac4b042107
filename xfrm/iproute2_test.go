package xfrm

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"signalbox.example/internal/need"
)

// The tests of this file ask the installed iproute2. Its `ip xfrm monitor
// file` prints messages from a file and its system calls can be traced, so
// that no kernel with ESP is needed.

// random draws states and policies.
type random struct{ *rand.Rand }

func (r random) oneIn(n int) bool { return r.IntN(n) == 0 }

func (r random) addr(f Family) netip.Addr {
	var b [16]byte
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	if f == IPv4 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	b[0], b[1] = 0x20, 1
	if r.oneIn(2) {
		clear(b[4:12])
	}
	return netip.AddrFrom16(b)
}

func (r random) family() Family {
	if r.oneIn(2) {
		return IPv4
	}
	return IPv6
}

func (r random) selector(f Family) Selector {
	s := Selector{Family: f, Src: netip.PrefixFrom(r.addr(f), r.IntN(33)), Dst: netip.PrefixFrom(r.addr(f), r.IntN(33))}
	s.Proto = []uint8{0, 0, 6, 17, 1, 58, 47, 132, 33, 135, 89, 250, 136}[r.IntN(13)]
	port := func() PortMatch {
		if r.oneIn(2) {
			return PortMatch{}
		}
		return PortMatch{uint16(r.Uint32()), 0xffff}
	}
	s.SrcPort, s.DstPort = port(), port()
	if r.oneIn(3) {
		s.IfIndex = 1
	}
	if r.oneIn(4) {
		s.UID = r.Uint32() >> 1
	}
	return s
}

func (r random) lifetime() (l Lifetime) {
	for _, p := range []*uint64{&l.SoftBytes, &l.HardBytes, &l.SoftPackets, &l.HardPackets, &l.SoftAddSeconds, &l.HardAddSeconds,
		&l.SoftUseSeconds, &l.HardUseSeconds} {
		switch r.IntN(4) {
		case 0:
			*p = uint64(r.Uint32())
		case 1:
			*p = r.Uint64()
		}
	}
	for _, p := range []*uint64{&l.SoftBytes, &l.HardBytes, &l.SoftPackets, &l.HardPackets} {
		if r.oneIn(9) {
			*p = ZeroLimit
		}
	}
	return l
}

func (r random) counters() Counters {
	c := Counters{Bytes: r.Uint64(), Packets: uint64(r.Uint32())}
	if r.oneIn(2) {
		c.AddTime, c.UseTime = uint64(r.Uint32()), uint64(r.Uint32())
	}
	return c
}

func (r random) key(n int) Key {
	k := make(Key, n)
	for i := range k {
		k[i] = byte(r.Uint32())
	}
	return k
}

func (r random) mark() Mark {
	if r.oneIn(2) {
		return Mark{}
	}
	return Mark{r.Uint32() >> r.IntN(33), 1 | r.Uint32()>>r.IntN(33)}
}

// sa draws a state with the attributes that iproute2 6.1 knows.
func (r random) sa() *SA {
	f := r.family()
	s := &SA{Src: r.addr(f), Dst: r.addr(f), SPI: r.Uint32() >> r.IntN(33), Proto: []Proto{ESP, AH, Comp, Route2, HAO, 4, AnyIPsec}[r.IntN(7)],
		Mode: Mode(r.IntN(8)), ReqID: r.Uint32() >> r.IntN(33), Seq: r.Uint32() >> r.IntN(33), Flags: SAFlags(r.Uint32()), Lifetime: r.lifetime(),
		Mark: r.mark(), Cur: r.counters(), Stats: Stats{r.Uint32(), r.Uint32(), r.Uint32()}}
	if s.Mode == IPTFS { // 6.1 prints the number
		s.Mode = 9
	}
	if r.oneIn(2) {
		s.Flags = 0
	}
	if r.oneIn(3) {
		s.ExtraFlags = ExtraFlags(r.IntN(9))
	}
	if !r.oneIn(3) {
		s.Sel = r.selector(f)
	}
	s.Replay.Reported = true
	switch {
	case s.Flags&ESN != 0:
		s.Replay.Window = uint32(1 + r.IntN(4096))
		s.Replay.Bitmap = make([]uint32, s.Replay.words())
		for i := range s.Replay.Bitmap {
			s.Replay.Bitmap[i] = r.Uint32()
		}
		s.Replay.Seq, s.Replay.SeqHi, s.Replay.OSeq, s.Replay.OSeqHi = r.Uint32(), r.Uint32(), r.Uint32(), r.Uint32()
	default:
		s.Replay.Window = uint32(r.IntN(33))
		s.Replay.Seq, s.Replay.OSeq, s.Replay.Bitmap = 1+r.Uint32()>>1, r.Uint32(), []uint32{r.Uint32()}
	}
	if r.oneIn(2) {
		s.AEAD = AEAD{"rfc4106(gcm(aes))", r.key(r.IntN(40)), uint32(r.IntN(129))}
	}
	if r.oneIn(2) {
		s.Auth = Auth{Name: "hmac(sha256)", Key: r.key(r.IntN(40)), TruncBits: uint32(r.IntN(257))}
		if r.oneIn(3) {
			s.Auth.Legacy, s.Auth.TruncBits = true, 0
		}
	}
	if r.oneIn(2) {
		s.Cipher = Algorithm{"cbc(aes)", r.key(r.IntN(40))}
	}
	if r.oneIn(3) {
		s.Comp = Algorithm{"deflate", r.key(r.IntN(2))}
	}
	if r.oneIn(3) {
		s.Encap = Encap{[]EncapType{1, 2, 7, 9}[r.IntN(4)], uint16(r.Uint32()), uint16(r.Uint32()), r.addr(f)}
	}
	if r.oneIn(3) {
		s.CoA = r.addr(f)
	}
	if r.oneIn(3) {
		s.SetMark = r.mark()
		if s.SetMark.Value == 0 {
			s.SetMark = Mark{}
		}
		if r.oneIn(3) {
			s.SetMark.Mask = 0
		}
	}
	if r.oneIn(3) {
		s.IfID = r.Uint32()
	}
	if r.oneIn(3) {
		s.TFCPad = r.Uint32()
	}
	if r.oneIn(3) {
		s.Offload = Some(Offload{int32(r.IntN(2)), OffloadFlags(r.IntN(4))})
	}
	if r.oneIn(4) {
		s.SecCtx = SecCtx{1, 1, "system_u:object_r:ipsec_t:s0"}
	}
	return s
}

// policy draws a policy with the attributes that iproute2 6.1 knows.
func (r random) policy() *Policy {
	f := r.family()
	p := &Policy{Sel: r.selector(f), Dir: Dir(r.IntN(7)), Type: PolicyType(r.IntN(3)), Index: r.Uint32() >> r.IntN(33), Priority: r.Uint32() >> r.IntN(33),
		Action: Action(r.IntN(3)), Flags: PolicyFlags([]uint32{0, 1, 2, 3, 8}[r.IntN(5)]), Share: Share(r.IntN(5)), Lifetime: r.lifetime(), Mark: r.mark(), Cur: r.counters()}
	if r.oneIn(3) {
		p.IfID = 1 + r.Uint32()>>1
	}
	if r.oneIn(3) {
		p.SecCtx = SecCtx{1, 1, "label"}
	}
	if r.oneIn(4) {
		p.Offload = Some(Offload{int32(r.IntN(2)), OffloadFlags(r.IntN(3))})
	}
	for range r.IntN(7) {
		tf := r.family()
		p.Templates = append(p.Templates, Template{Src: r.addr(tf), Dst: r.addr(tf), Family: tf, SPI: r.Uint32() >> r.IntN(33), Mode: Mode(r.IntN(5)),
			Proto: []Proto{ESP, AH, Comp, Route2, HAO, AnyIPsec, 4}[r.IntN(7)], ReqID: r.Uint32() >> r.IntN(33), Share: Share(r.IntN(5)), Level: Level(r.IntN(3)),
			NoAuth: r.Uint32() >> r.IntN(33), NoEnc: r.Uint32() >> r.IntN(33), NoComp: r.Uint32() >> r.IntN(33)})
	}
	return p
}

// TestIntegrationTextAgainstIP prints random states, policies and events and
// compares with what ip prints of the same messages.
func TestIntegrationTextAgainstIP(t *testing.T) {
	need.Asked(t, "iproute2")
	need.Commands(t, "iproute2", "ip")
	if !native {
		t.Skip("ip is a program of another architecture")
	}
	r := random{rand.New(rand.NewPCG(1, 2))}
	var messages [][]byte
	for range 1500 {
		b, err := AppendNewSA(nil, Header{}, r.sa())
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, b)
		p := r.policy()
		if b, err = appendPolicy(nil, []MsgType{NewPolicy, UpdPolicy}[r.IntN(2)], Header{}, p, true, nil); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, b)
	}
	for _, e := range sampleEvents() {
		switch x := e.(type) {
		case *Migrate, *MigrateState: // not printed by ip
			continue
		case *Default: // a short message of 19 octets ends its reading
			continue
		case *Flush:
			if x.Type == FlushSA { // 17 octets, likewise
				continue
			}
		case *Report:
			x.CoA = netip.Addr{}
		}
		b, err := appendEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, b)
	}
	file := filepath.Join(t.TempDir(), "messages")
	var all []byte
	for _, m := range messages {
		all = append(Pad(all), m...)
	}
	if err := os.WriteFile(file, Pad(all), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		o    TextOptions
		args []string
	}{
		{TextOptions{Keys: true}, []string{"xfrm", "monitor", "file", file}},
		{TextOptions{Stats: true, Keys: true}, []string{"-s", "xfrm", "monitor", "file", file}},
	} {
		cmd := exec.Command("ip", c.args...)
		cmd.Env = append(os.Environ(), "TZ=UTC")
		theirs, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, theirs)
		}
		c.o.IfName = func(i int) string { return map[int]string{1: "lo"}[i] }
		at := 0
		bad := 0
		for i, b := range messages {
			m, _, err := FirstMessage(b)
			if err != nil {
				t.Fatal(err)
			}
			ours, err := AppendMessageText(nil, m, c.o)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.HasPrefix(theirs[at:], ours) {
				end := min(len(theirs), at+len(ours)+200)
				t.Errorf("%v: message %d\nours:\n%s\nip:\n%s", c.args, i, ours, theirs[at:end])
				if bad++; bad > 2 {
					break
				}
				// Find the next message again.
				if i+1 < len(messages) {
					m, _, _ := FirstMessage(messages[i+1])
					next, _ := AppendMessageText(nil, m, c.o)
					line, _, _ := bytes.Cut(next, []byte("\n"))
					if j := bytes.Index(theirs[at+1:], line); j >= 0 {
						at += 1 + j
					}
				}
				continue
			}
			at += len(ours)
		}
	}
}

// sentBy returns the netlink messages that ip sends, as strace sees them.
func sentBy(t *testing.T, line string) (sent [][]byte, output string) {
	t.Helper()
	words, err := splitWords(nil, line)
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("unshare", append([]string{"-n", "strace", "-e", "trace=sendmsg,sendto", "-e", "write=all", "-o", trace, "ip"}, words[1:]...)...)
	out, _ := cmd.CombinedOutput()
	b, err := os.ReadFile(trace)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	dump := regexp.MustCompile(`(?m)^ \| ([0-9a-f]{5})  (.{49})`)
	var cur []byte
	for _, m := range dump.FindAllSubmatch(b, -1) {
		if string(m[1]) == "00000" && cur != nil {
			sent, cur = append(sent, cur), nil
		}
		d, err := hex.DecodeString(strings.ReplaceAll(string(m[2]), " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		cur = append(cur, d...)
	}
	if cur != nil {
		sent = append(sent, cur)
	}
	return sent, string(out)
}

// commands are lines beyond the catalogue's: abbreviations, odd keys, orders
// of words, what iproute2 refuses.
var commands = strings.Split(strings.TrimSpace(`
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x105 mode tunnel aead x 0xabc 128 tfcpad 5 if_id 7 output-mark 5 mask 7 mark 6
ip x s a src 192.0.2.1 dst 192.0.2.2 proto esp spi 0x105 ctx hello encap espinudp 1 2 1.2.3.4 enc aes 0x00 mark 6 auth-trunc sha1 0x01 96
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 mode tunnel aead x key 128 replay-window 33
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 mode tunnel enc x 0x auth y '' offload dev lo dir out replay-window 32 replay-seq 5
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 enc x abcd replay-seq 5 replay-seq-hi 4 flag 0x30 extra-flag 0x30 seq 4
ip xfrm state add dst 192.0.2.2 proto esp spi 5 enc x 0x00 flag noecn flag icmp sel dst 10.1 sel proto tcp sport 5
ip xfrm state add src 2001:db8::1 proto ah spi 5 auth x 0x00 sel proto 132 dport 99 dev lo output-mark 0 mask 7 mark 0
ip xfrm state add proto esp spi 5 enc x 0x00 encap espinudp-nonike 1 2 0.0.0.0 if_id 0
ip xfrm state add proto esp spi 5 enc x 0x00 output-mark 5 mask 0
ip -6 xfrm state add proto esp spi 5 enc x 0x00 encap espintcp 1 2 :: limit time-use-hard 5 limit byte-soft 7
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto comp spi 0x5 comp lzs flag esn replay-window 64 replay-oseq-hi 7 mark 0 mask 0
ip xfrm state update src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 enc x 0x00 sel src 10.0.0.0/8 proto icmp type 5 code 6
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 auth sha1 0x00
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto ah spi 5 enc x 0x00
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto 50 spi 5x enc x 0x00
ip xfrm state add src 192.0.2.1 dst 2001:db8::1 proto esp spi 5 enc x 0x00
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 enc x 0x00 coa 1.2.3.4
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 enc x 0x00 flag esn
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 enc x 0x00 sel proto icmp sport 5
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 enc x 0x00 sel src any
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 enc x 0x00 frob
ip xfrm state add src 192.0.2.1 dst 192.0.2.2 proto esp spi 5 enc x 0xzz
ip xfrm state get dst 192.0.2.2 proto esp spi 5
ip xfrm state get dst 192.0.2.2 proto esp spi 5 mark 6 mask 7
ip xfrm state del dst 2001:db8::1 src 2001:db8::2 proto esp spi 5 mark 6
ip xfrm state list
ip xfrm state
ip xfrm policy
ip -4 xfrm state list
ip -6 xfrm state list proto esp
ip xfrm state list src 10.0.0.0/8 reqid 5 mode tunnel flag esn
ip xfrm state deleteall
ip xfrm state flush
ip xfrm state flush proto esp
ip xfrm state count
ip xfrm state allocspi src 192.0.2.1 dst 192.0.2.2 proto esp
ip xfrm state allocspi src 192.0.2.1 dst 192.0.2.2 proto comp reqid 4
ip xfrm state allocspi src 192.0.2.1 dst 192.0.2.2 proto esp min 0x100 max 0x200 mark 6 seq 9
ip xfrm state allocspi src 192.0.2.1 dst 192.0.2.2 proto esp min 0x100
ip xfrm policy add dir out
ip -6 xfrm policy add dir out
ip xfrm policy add src default dir out
ip xfrm policy add src 10.0.0.1/8 dir out
ip xfrm policy add src 10.0.0.1 dir out
ip xfrm policy add proto 6 sport 5 dir out
ip xfrm policy add proto 50 sport 5 dir out
ip xfrm policy add proto gre key 1.2.3.4 dir out
ip xfrm policy add proto gre dir out
ip xfrm policy add proto 135 type 5 code 4 dir out
ip xfrm policy add src 10.0.0.0/8 dir out ctx hello mark 6 if_id 7 ptype sub tmpl proto esp mode tunnel index 9
ip xfrm policy add src 10.0.0.0/8 dir out tmpl src 1.2.3.4 proto esp spi 5 mode beet reqid 9 level use tmpl dst ::1 proto ah
ip xfrm policy add src 2001:db8::/32 dir out tmpl proto esp
ip xfrm policy add src 10.0.0.0/8 dir 1
ip xfrm policy add src 10.0.0.0/8
ip xfrm policy add src 10.0.0.0/8 dir out priority 0x10 flag 3
ip xfrm policy add src 10.0.0.0/8 dir out priority 0x10 flag 0x3 limit packet-soft 9
ip xfrm policy add src 10.0.0.0/8 dir out action drop
ip xfrm policy add src 10.0.0.0/8 dir out tmpl
ip xfrm policy add src 10.0.0.0/8 dir out dir in
ip xfrm policy update dev lo src 10.0.0.0/8 dir fwd action block if_id 0
ip xfrm policy get dir out
ip xfrm policy get src 10.0.0.0/8 dir out ctx hello mark 6 if_id 7 ptype main
ip xfrm policy get index 9 dir out ptype main
ip xfrm policy get src 10.0.0.0/8 index 9 dir out
ip xfrm policy delete src 10.0.0.0/8 dir out ctx hello mark 6 mask 0xff if_id 7
ip xfrm policy list dir out ptype sub
ip xfrm policy flush ptype main
ip xfrm policy flush ptype any
ip xfrm policy deleteall
ip xfrm policy setdefault in block
ip xfrm policy setdefault in block out foo
ip xfrm policy setdefault
ip xfrm policy set hthresh4 33 24
ip xfrm policy set hthresh6 12 24
ip xfrm policy count
ip xfrm policy getdefault
ip link add v type vti
ip link add v type vti local 192.0.2.1
ip link add v type vti6 remote 2001:db8::2 ikey 1.2.3.4
ip link add v type vti6 local 2001:db8::1 remote 2001:db8::2 dev lo okey 5
ip link add name v type vti fwmark 5
ip link add v mtu 1400 type xfrm dev lo if_id 5
ip link add v type xfrm
ip link add v type xfrm dev lo
ip link add v type vti local any remote any key 1
ip link add v type vti key x
ip link add v type vti local ::1
`), "\n")

// TestIntegrationCommandsAgainstIP builds commands and compares with what ip
// sends.
func TestIntegrationCommandsAgainstIP(t *testing.T) {
	need.Asked(t, "iproute2")
	need.Root(t, "iproute2")
	need.Commands(t, "iproute2", "ip", "strace", "unshare")
	if !native {
		t.Skip("ip is a program of another architecture")
	}
	begin := time.Now()
	for _, line := range commands {
		sent, output := sentBy(t, line)
		var theirs []byte
		for _, b := range sent {
			m, _, err := FirstMessage(b)
			if err != nil {
				t.Fatal(err)
			}
			link := strings.HasPrefix(line, "ip link")
			if !link && m.Type == 0x12 && m.Flags == FlagRequest && len(b) > 40 && attrOf(Message{Type: GetSA, Header: Header{Flags: FlagDump}, Body: m.Body[16:]}, 29) != nil {
				continue // RTM_GETLINK for the name of a device
			}
			if link && (m.Type != RTMNewLink || len(b) == 32) {
				continue // a probe, or the same
			}
			theirs = b
			break
		}
		c, err := ParseCommand(line, &ReadOptions{IfIndex: guestIndex})
		var ours []byte
		if err == nil {
			ours, err = c.Append(nil, Header{})
		}
		switch {
		case err != nil && theirs == nil:
		case err != nil:
			t.Errorf("%s\nours: %v\nip sends %x", line, err, theirs)
		case theirs == nil:
			t.Errorf("%s\nours %x\nip: %s", line, ours, output)
		case !bytes.Equal(mask(ours), mask(theirs)):
			t.Errorf("%s\nours %x\nip   %x", line, ours, theirs)
		}
	}
	t.Logf("%d commands in %v", len(commands), time.Since(begin).Round(time.Second))
}
