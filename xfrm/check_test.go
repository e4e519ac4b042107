package xfrm

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
)

// debian612 is the kernel that answered refusals.tsv.
var debian612 = Kernel{Major: 6, Minor: 12, NoESPInTCP: true}

func gcmSA() SA {
	a, err := AESGCM16(make([]byte, 20))
	if err != nil {
		panic(err)
	}
	return SA{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), SPI: 0x600, Proto: ESP, Mode: Tunnel, AEAD: a}
}

// rawRefusals are the requests of refusals.tsv that no command can make.
var rawRefusals = map[string]func(s *SA){
	"natka-no-encap":                func(s *SA) { s.Dir, s.NATKeepalive = SAOut, 20 },
	"natka-dir-in":                  func(s *SA) { s.Dir, s.NATKeepalive, s.Encap = SAIn, 20, udp4500() },
	"natka-no-dir":                  func(s *SA) { s.NATKeepalive, s.Encap = 20, udp4500() },
	"mtimer-dir-out":                func(s *SA) { s.Dir, s.MTimer, s.Encap = SAOut, Some[uint32](30), udp4500() },
	"mtimer-no-encap":               func(s *SA) { s.MTimer = Some[uint32](30) },
	"setmarkmask-alone":             func(s *SA) { s.SetMark.Mask = 0xff },
	"setmark-alone":                 func(s *SA) { s.SetMark.Value = 6 },
	"esn-window0-nodir":             func(s *SA) { s.Flags = ESN },
	"esn-window0-out":               func(s *SA) { s.Flags, s.Dir = ESN, SAOut },
	"esn-flag-without-attr":         func(s *SA) { s.Flags, s.Replay.Form = ESN, ReplayLegacy },
	"esn-attr-and-legacy-window":    func(s *SA) { s.Flags, s.Replay = ESN, Replay{Window: 32, LegacyWindow: 32} },
	"esn-window-bigger-than-bitmap": func(s *SA) { s.Flags, s.Replay = ESN, Replay{Window: 64, Words: 1} },
	"esn-bmp-len-too-large":         func(s *SA) { s.Flags, s.Replay = ESN, Replay{Window: 64, Words: 129} },
	"window33-legacy":               func(s *SA) { s.Replay = Replay{Window: 33, Form: ReplayLegacy} },
	"window255-legacy":              func(s *SA) { s.Replay = Replay{Window: 255, Form: ReplayLegacy} },
	"noesn-with-esn-attr-window64":  func(s *SA) { s.Replay.Window = 64 },
	"lifetime-zero": func(s *SA) {
		s.Lifetime = Lifetime{SoftBytes: ZeroLimit, HardBytes: ZeroLimit, SoftPackets: ZeroLimit, HardPackets: ZeroLimit}
	},
	"dir-3":           func(s *SA) { s.Dir = 3 },
	"unknown-attr-60": func(s *SA) { s.Other = []Attr{{60, []byte{1, 2, 3, 4}}} },
	"iptfs-mode5":     func(s *SA) { s.Mode = IPTFS },
	"mark-mask0":      func(s *SA) { s.Mark = Mark{6, 0} },
}

func udp4500() Encap {
	return Encap{Type: ESPInUDP, Src: 4500, Dst: 4500, Addr: netip.IPv4Unspecified()}
}

// onPurpose are the requests of refusals.tsv that Linux accepts and this
// package refuses, as the package comment lists them.
var onPurpose = map[string]string{
	"enc 'cbc(aes)' 0x000102030405060708090a0b0c0d0e0f$": "Auth",
	"raw setmarkmask-alone":                              "SetMark",
	"raw window33-legacy":                                "Replay.Window",
	"raw window255-legacy":                               "Replay.Window",
	"raw lifetime-zero":                                  "Lifetime",
	"raw mark-mask0":                                     "Mark",
}

// needState are answers that depend on what the kernel holds, not on the
// request.
func needState(c string) bool {
	return strings.HasPrefix(c, "ip xfrm state get") || strings.HasPrefix(c, "ip xfrm policy delete")
}

// verdict checks one case of refusals.tsv.
func verdict(t *testing.T, name string) error {
	if raw, ok := strings.CutPrefix(name, "raw "); ok {
		if raw == "migrate-state-41" {
			return CheckMessage(Message{Type: MsgMigrateState, Body: make([]byte, sizeMigState)}, debian612)
		}
		change := rawRefusals[raw]
		if change == nil {
			t.Fatalf("no way to build %q", raw)
		}
		s := gcmSA()
		change(&s)
		direct := s.CheckOn(debian612)
		// The verdict on the message is the same.
		b, err := AppendNewSA(nil, Header{}, &s)
		if err != nil {
			t.Fatal(err)
		}
		m, _, _ := FirstMessage(b)
		if viaMessage := CheckMessage(m, debian612); (viaMessage == nil) != (direct == nil) ||
			direct != nil && viaMessage.Error() != direct.Error() {
			t.Errorf("%s: %v on the struct, %v on the message", name, direct, viaMessage)
		}
		return direct
	}
	c, err := ParseCommand(name, &ReadOptions{IfIndex: guestIndex})
	if err != nil {
		return err
	}
	b, err := c.Append(nil, Header{})
	if err != nil {
		return err
	}
	m, _, _ := FirstMessage(b)
	return CheckMessage(m, debian612)
}

// TestRefusals compares the verdicts with those of Linux 6.12.
func TestRefusals(t *testing.T) {
	lines := vectors.Lines(t, "xfrm/refusals.tsv")
	if len(lines) != 51 {
		t.Errorf("%d cases, want 51", len(lines))
	}
	for _, l := range lines {
		f := strings.Split(l, "\t")
		name, errno, text := f[0], f[1], strings.TrimSuffix(f[2], ".")
		err := verdict(t, name)
		var rule *RuleError
		errors.As(err, &rule)
		purpose := ""
		for k, v := range onPurpose {
			if name == k || strings.HasSuffix(k, "$") && strings.HasSuffix(name, strings.TrimSuffix(k, "$")) && !strings.Contains(name, "aead") {
				purpose = v
			}
		}
		switch {
		case needState(name):
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case purpose != "":
			if errno != "0" || rule == nil || !rule.OnPurpose || rule.Field != purpose {
				t.Errorf("%s: errno %s, verdict %v, want a refusal of %s on purpose", name, errno, err, purpose)
			}
		case errno == "0":
			if err != nil {
				t.Errorf("%s: accepted by Linux, verdict %v", name, err)
			}
		case err == nil:
			t.Errorf("%s: Linux says %s %q, verdict accepts", name, errno, text)
		case errno == "no ack": // iproute2's own refusal, in its words or ours
		case rule != nil && rule.OnPurpose:
			t.Errorf("%s: %v is marked as on purpose, Linux says %q", name, err, text)
		case text != "" && !strings.Contains(err.Error(), text):
			t.Errorf("%s: verdict %q, Linux says %q", name, err, text)
		}
	}
}

// TestCheckCatalogue: what the kernel accepted in the catalogue is accepted,
// except on purpose; what it refused is refused.
func TestCheckCatalogue(t *testing.T) {
	if !native {
		t.Skip("the catalogue is little endian with 64-bit alignment")
	}
	for _, r := range catalogue(t) {
		if r.isLink() || len(r.Sent) == 0 {
			continue
		}
		m := xfrmMessages(t, r.sent(t)[:1])[0]
		err := CheckMessage(m, debian612)
		var refused error
		for _, d := range r.recv(t) {
			for a := range Messages(d) {
				if a.Type == MsgError {
					if e := ParseAck(a); e != nil && refused == nil {
						refused = e
					}
				}
			}
		}
		var rule *RuleError
		errors.As(err, &rule)
		var ack *AckError
		errors.As(refused, &ack)
		switch {
		case ack != nil && (ack.Errno == 2 && ack.Text == "" || ack.Errno == 3 || ack.Errno == 17): // exists, or does not
		case refused != nil && err == nil:
			t.Errorf("row %d: %s: Linux says %v, verdict accepts", r.N, r.Cmd, refused)
		case refused == nil && err != nil && (rule == nil || !rule.OnPurpose):
			t.Errorf("row %d: %s: accepted by Linux, verdict %v", r.N, r.Cmd, err)
		case refused != nil && ack.Text != "" && ack.Errno != 22 && rule != nil && !strings.Contains(rule.Rule, strings.TrimSuffix(ack.Text, ".")):
			t.Errorf("row %d: %s: Linux says %v, verdict %v", r.N, r.Cmd, refused, err)
		}
	}
}

func TestCheckNamesNoKey(t *testing.T) {
	s := gcmSA()
	s.AEAD.Key = Key("sixteen octets!!")
	err := s.Check()
	if err == nil || strings.Contains(err.Error(), "sixteen") {
		t.Errorf("got %v", err)
	}
	if _, err := AESGCM16([]byte("not twenty")); err == nil || strings.Contains(err.Error(), "twenty") {
		t.Errorf("got %v", err)
	}
}

func TestConstructors(t *testing.T) {
	k := bytes.Repeat([]byte{7}, 64)
	for _, c := range []struct {
		name  string
		sizes []int
		make  func([]byte) error
	}{
		{"AESGCM16", []int{20, 28, 36}, func(k []byte) error { _, err := AESGCM16(k); return err }},
		{"AESCCM16", []int{19, 27, 35}, func(k []byte) error { _, err := AESCCM16(k); return err }},
		{"AESGMAC", []int{20, 28, 36}, func(k []byte) error { _, err := AESGMAC(k); return err }},
		{"ChaCha20Poly1305", []int{36}, func(k []byte) error { _, err := ChaCha20Poly1305(k); return err }},
		{"AESCBC", []int{16, 24, 32}, func(k []byte) error { _, err := AESCBC(k); return err }},
		{"AESCTR", []int{20, 28, 36}, func(k []byte) error { _, err := AESCTR(k); return err }},
		{"HMACSHA256", []int{32}, func(k []byte) error { _, err := HMACSHA256(k); return err }},
		{"HMACSHA384", []int{48}, func(k []byte) error { _, err := HMACSHA384(k); return err }},
		{"HMACSHA512", []int{64}, func(k []byte) error { _, err := HMACSHA512(k); return err }},
		{"HMACSHA1", []int{20}, func(k []byte) error { _, err := HMACSHA1(k); return err }},
		{"AESXCBC", []int{16}, func(k []byte) error { _, err := AESXCBC(k); return err }},
		{"AESCMAC", []int{16}, func(k []byte) error { _, err := AESCMAC(k); return err }},
	} {
		for n := range 65 {
			want := false
			for _, s := range c.sizes {
				want = want || s == n
			}
			if err := c.make(k[:n]); (err == nil) != want {
				t.Errorf("%s with %d octets: %v", c.name, n, err)
			}
		}
	}
}
