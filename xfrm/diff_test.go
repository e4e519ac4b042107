package xfrm

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func ops(cs []Change) string {
	var out []string
	for _, c := range cs {
		w := c.Op.String() + " "
		if c.SA != nil {
			w += "sa"
		} else {
			w += "policy"
		}
		out = append(out, w)
	}
	return strings.Join(out, ", ")
}

// reported is a state as the kernel reports it, by way of a message.
func reported(t *testing.T, s *SA) *SA {
	t.Helper()
	got := reparse(t, s)
	got.Sel = normalSelector(got.Sel, got.Family())
	got.Replay.Reported = true
	got.Cur = Counters{1, 2, 3, 4}
	got.Stats.Replay = 9
	got.LastUsed = 7
	got.Replay.Seq, got.Replay.OSeq = 100, 200
	if got.Auth.Legacy { // and with the kernel's truncation
		i, _ := findAuth(got.Auth.Name)
		got.Auth = Auth{Name: i.name, Key: got.Auth.Key, TruncBits: i.trunc}
	}
	return &got
}

func TestDiffStates(t *testing.T) {
	base := gcmSA()
	base.Lifetime.HardBytes = 1000
	base.SetMark.Value = 5
	base.Encap = udp4500()
	for _, c := range []struct {
		name   string
		change func(*SA)
		want   string
	}{
		{"the same", func(*SA) {}, ""},
		{"limit", func(s *SA) { s.Lifetime.HardBytes = 2000 }, "update sa"},
		{"selector", func(s *SA) { s.Sel.Proto, s.Sel.Family = 6, IPv4 }, "update sa"},
		{"encapsulation port", func(s *SA) { s.Encap.Src = 9 }, "update sa"},
		{"no encapsulation", func(s *SA) { s.Encap = Encap{} }, "replace sa"},
		{"output mark", func(s *SA) { s.SetMark.Value = 6 }, "update sa"},
		{"no output mark", func(s *SA) { s.SetMark = Mark{} }, "replace sa"},
		{"key", func(s *SA) { s.AEAD.Key = append(Key{1}, s.AEAD.Key[1:]...) }, "replace sa"},
		{"mode", func(s *SA) { s.Mode = Transport }, "replace sa"},
		{"window", func(s *SA) { s.Replay.Window = 32 }, "replace sa"},
		{"flags", func(s *SA) { s.Flags = NoECN }, "replace sa"},
		{"another spi", func(s *SA) { s.SPI++ }, "add sa, delete sa"},
		{"another mark", func(s *SA) { s.Mark = Mark{1, 1} }, "add sa, delete sa"},
	} {
		want := base
		c.change(&want)
		have := Set{States: []*SA{reported(t, &base)}}
		got := Diff(have, Set{States: []*SA{&want}}, DiffOptions{})
		if ops(got) != c.want {
			t.Errorf("%s: %q, want %q", c.name, ops(got), c.want)
		}
		// What is to be done can be built, and a replacement is two messages.
		for _, ch := range got {
			b, next, err := AppendChange(nil, Header{Seq: 5}, ch)
			n := 0
			for _, err := range Messages(b) {
				if err != nil {
					t.Error(err)
				}
				n++
			}
			if err != nil || next != 5+uint32(n) || (n == 2) != (ch.Op == OpReplace) {
				t.Errorf("%s: %d messages, next %d, %v", c.name, n, next, err)
			}
		}
	}
	// A legacy algorithm under its old name, as the kernel gives it back.
	legacy := base
	legacy.AEAD = AEAD{}
	legacy.Cipher = Algorithm{"aes", make(Key, 16)}
	legacy.Auth = Auth{Name: "sha1", Key: make(Key, 20), Legacy: true}
	have := reported(t, &legacy)
	have.Cipher.Name = "cbc(aes)"
	if got := Diff(Set{States: []*SA{have}}, Set{States: []*SA{&legacy}}, DiffOptions{}); len(got) != 0 {
		t.Errorf("old names: %s", ops(got))
	}
}

func TestDiffLeavesAloneWhatIsNotIts(t *testing.T) {
	larvalSA := SA{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), SPI: 7, Proto: ESP}
	mine, other := gcmSA(), gcmSA()
	other.SPI, other.ReqID = 9, 77
	socket, p := samplePolicy(), samplePolicy()
	socket.Dir = 3
	have := Set{States: []*SA{&larvalSA, &mine, &other}, Policies: []*Policy{&socket, &p}}
	if got := ops(Diff(have, Set{}, DiffOptions{})); got != "delete policy, delete sa, delete sa" {
		t.Error(got)
	}
	if got := ops(Diff(have, Set{}, DiffOptions{OwnSA: func(s *SA) bool { return s.ReqID == 77 }, IgnorePolicies: true})); got != "delete sa" {
		t.Error(got)
	}
	if got := ops(Diff(have, Set{}, DiffOptions{IgnoreStates: true, OwnPolicy: func(*Policy) bool { return false }})); got != "" {
		t.Error(got)
	}
	// A larval state is filled, not deleted and added.
	filled := gcmSA()
	filled.SPI = 7
	if got := ops(Diff(have, Set{States: []*SA{&filled}}, DiffOptions{IgnorePolicies: true, OwnSA: func(*SA) bool { return false }})); got != "update sa" {
		t.Error(got)
	}
	// Wanted twice: the last one counts.
	a, b := samplePolicy(), samplePolicy()
	b.Priority++
	got := Diff(Set{}, Set{Policies: []*Policy{&a, &b}}, DiffOptions{})
	if len(got) != 1 || got[0].Policy != &b {
		t.Error(ops(got))
	}
}

func TestIgnoredNamesWhatWasLost(t *testing.T) {
	s := gcmSA()
	s.Dir, s.PCPU, s.NATKeepalive, s.Encap = SAOut, Some[uint32](0), 20, udp4500()
	s.IPTFS.PacketSize = Some[uint32](1000)
	if got := Ignored(&s, reported(t, &s)); len(got) != 0 {
		t.Errorf("lost %v", got)
	}
	old := *reported(t, &s)
	old.Dir, old.PCPU, old.NATKeepalive, old.IPTFS = 0, Opt[uint32]{}, 0, IPTFSOptions{}
	if got := Ignored(&s, &old); !slices.Equal(got, []string{"Dir", "PCPU", "NATKeepalive", "IPTFS"}) {
		t.Errorf("lost %v", got)
	}
}

func TestKeysAreCleared(t *testing.T) {
	long := gcmSA()
	long.AEAD.Key = bytes.Repeat([]byte{0xaa}, 36)
	long.Comp = Algorithm{"deflate", Key{0xaa}}
	short := gcmSA()
	short.AEAD.Key = bytes.Repeat([]byte{0xbb}, 20)
	var s SA
	parse := func(x *SA) {
		b, err := AppendNewSA(nil, Header{}, x)
		if err := s.Parse(message(t, b, err)); err != nil {
			t.Fatal(err)
		}
	}
	parse(&long)
	memory, comp := s.AEAD.Key[:36:36], s.Comp.Key[:1:1]
	parse(&short)
	if bytes.IndexByte(memory, 0xaa) >= 0 || &memory[0] != &s.AEAD.Key[0] || comp[0] != 0 {
		t.Errorf("a piece of the old keys is left: %x %x", []byte(memory), []byte(comp))
	}
	s.ClearKeys()
	if bytes.IndexByte(memory, 0xbb) >= 0 || len(s.AEAD.Key) != 0 {
		t.Errorf("%x", []byte(memory))
	}
	// A key that outgrows its memory leaves that cleared too.
	parse(&short)
	small := s.AEAD.Key[:cap(s.AEAD.Key)]
	big := gcmSA()
	big.AEAD.Key = bytes.Repeat([]byte{0xcc}, 100)
	parse(&big)
	if bytes.IndexByte(small, 0xbb) >= 0 {
		t.Errorf("%x", []byte(small))
	}
}

// TestChangeThatCannotBeBuilt: nothing of it stays, not even the deletion that
// an OpReplace begins with.
func TestChangeThatCannotBeBuilt(t *testing.T) {
	s := &SA{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2"), SPI: 1, Proto: ESP, AEAD: AEAD{Name: strings.Repeat("x", 99)}}
	before := []byte{1, 2, 3, 4}
	b, next, err := AppendChange(before, Header{Seq: 5}, Change{Op: OpReplace, SA: s})
	if err == nil || len(b) != len(before) || next != 5 {
		t.Errorf("%d octets, next %d, %v", len(b), next, err)
	}
}
