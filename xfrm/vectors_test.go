package xfrm

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
)

// native reports whether this system lays messages out like the x86-64
// machine that recorded the catalogue.
var native = ne.Uint16([]byte{1, 0}) == 1 && tailPad == 0

type catRow struct {
	N    int      `json:"n"`
	Tool string   `json:"tool"`
	Cmd  string   `json:"cmd"`
	RC   int      `json:"rc"`
	Text []string `json:"text"`
	Sent []string `json:"sent"`
	Recv []string `json:"recv"`
}

func catalogue(t testing.TB) []catRow {
	t.Helper()
	var rows []catRow
	for _, l := range vectors.Lines(t, "xfrm/catalogue.jsonl") {
		var r catRow
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, r)
	}
	if len(rows) != 132 {
		t.Fatalf("%d rows, want 132", len(rows))
	}
	return rows
}

func (r *catRow) sent(t testing.TB) [][]byte { return unhex(t, r.Sent) }
func (r *catRow) recv(t testing.TB) [][]byte { return unhex(t, r.Recv) }
func (r *catRow) isLink() bool {
	return strings.HasPrefix(r.Cmd, "ip ") && strings.Contains(r.Cmd, " link ")
}

func unhex(t testing.TB, in []string) (out [][]byte) {
	t.Helper()
	for _, s := range in {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

// messages returns the XFRM messages of datagrams, acknowledgements and ends
// of dumps left out.
func xfrmMessages(t testing.TB, datagrams [][]byte) (out []Message) {
	t.Helper()
	for _, d := range datagrams {
		for m, err := range Messages(d) {
			if err != nil {
				t.Fatal(err)
			}
			if m.Type >= NewSA {
				out = append(out, m)
			}
		}
	}
	return out
}

// mask clears what differs from run to run: sequence and port id, and the
// padding of struct xfrm_encap_tmpl, which iproute2 leaves uninitialised.
func mask(b []byte) []byte {
	b = bytes.Clone(b)
	if len(b) < sizeHeader {
		return b
	}
	clear(b[8:16])
	m, _, err := FirstMessage(b)
	if err == nil && m.Type == NewSA || m.Type == UpdSA {
		for a, err := range m.Attributes() {
			if err == nil && a.Type == AttrEncap && len(a.Data) == sizeEncap {
				clear(a.Data[6:8])
			}
		}
	}
	return b
}

// commandOf cuts off what is not the command: "; sleep 4".
func (r *catRow) command() string {
	c, _, _ := strings.Cut(r.Cmd, ";")
	return c
}

// guestLinks are the devices of the machine that recorded the catalogue.
func guestIndex(name string) (int, error) {
	switch name {
	case "lo":
		return 1, nil
	case "d0":
		return 7, nil
	}
	return 0, fmt.Errorf("no device %q", name)
}

func guestName(i int) string { return map[int]string{1: "lo", 7: "d0"}[i] }

// TestCatalogueSent builds what iproute2 sent from its command lines, byte
// for byte.
func TestCatalogueSent(t *testing.T) {
	if !native {
		t.Skip("the catalogue is little endian with 64-bit alignment")
	}
	built := 0
	for _, r := range catalogue(t) {
		if !strings.HasPrefix(r.Cmd, "ip ") || strings.HasPrefix(r.Cmd, "ip netns") {
			continue
		}
		sent := r.sent(t)
		if r.isLink() {
			if !strings.Contains(r.Cmd, "link add") {
				continue // show, set and del are no business of XFRM
			}
			sent = sent[len(sent)-1:] // after a probe
		}
		c, err := ParseCommand(r.command(), &ReadOptions{IfIndex: guestIndex})
		if len(sent) == 0 {
			// What iproute2 refused to send; rows 47, 48 and 83 are modes and
			// flags that it does not know and this package does.
			if err == nil && !slices.Contains([]int{47, 48, 83}, r.N) {
				t.Errorf("row %d: %s: built, iproute2 refused: %s", r.N, r.Cmd, r.Text)
			}
			continue
		}
		if err != nil {
			t.Errorf("row %d: %s: %v", r.N, r.Cmd, err)
			continue
		}
		got, err := c.Append(nil, Header{})
		if err != nil {
			t.Errorf("row %d: %s: %v", r.N, r.Cmd, err)
			continue
		}
		if want := mask(sent[0]); !bytes.Equal(mask(got), want) {
			t.Errorf("row %d: %s\n got %x\nwant %x", r.N, r.Cmd, got, want)
		}
		built++
	}
	if built < 90 {
		t.Errorf("only %d rows built", built)
	}
}

// TestCatalogueText prints what the kernel answered as iproute2 printed it.
func TestCatalogueText(t *testing.T) {
	if !native {
		t.Skip("the catalogue is little endian with 64-bit alignment")
	}
	printed := 0
	for _, r := range catalogue(t) {
		if !strings.HasPrefix(r.Cmd, "ip ") || r.isLink() || len(r.Text) == 0 || r.RC != 0 {
			continue
		}
		c, err := ParseCommand(r.command(), nil)
		if err != nil {
			continue // ip netns exec
		}
		o := c.Text
		o.IfName = guestName
		var got []byte
		for _, m := range xfrmMessages(t, r.recv(t)) {
			switch m.Type {
			case NewSA:
				var s SA
				if err := s.Parse(m); err != nil {
					t.Fatal(err)
				}
				if f, ok := c.Request.(*StateMatch); ok && !f.Match(&s) {
					continue
				}
				if r.Tool == "iproute2-6.1" { // does not know these yet
					s.Dir, s.PCPU = 0, Opt[uint32]{}
				}
				got = s.AppendText(got, o)
			case NewPolicy:
				var p Policy
				if err := p.Parse(m); err != nil {
					t.Fatal(err)
				}
				if f, ok := c.Request.(*PolicyMatch); ok && !f.Match(&p) {
					continue
				}
				got = p.AppendText(got, o)
			case NewSADInfo, NewSPDInfo, GetDefault:
				if got, err = AppendMessageText(got, m, o); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := strings.Join(r.Text, "\n")
		if g := strings.TrimRight(string(got), "\n "); g != strings.TrimRight(want, "\n ") {
			t.Errorf("row %d: %s\n got:\n%s\nwant:\n%s", r.N, r.Cmd, g, want)
		}
		printed++
	}
	if printed < 15 {
		t.Errorf("only %d rows printed", printed)
	}
}

// identityText writes a state or policy as lossless text, reads it back and
// compares the messages that both make.
func identitySA(s *SA) error {
	a, err := AppendNewSA(nil, Header{}, s)
	if err != nil {
		return err
	}
	text := s.AppendText(nil, Lossless())
	n := 0
	for back, err := range ParseStates(bytes.NewReader(text), nil) {
		if err != nil {
			return fmt.Errorf("%w in\n%s", err, text)
		}
		b, err := AppendNewSA(nil, Header{}, back)
		if err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return fmt.Errorf("bytes differ\n%x\n%x\n%s", a, b, text)
		}
		if n++; n > 1 {
			return fmt.Errorf("two entries from\n%s", text)
		}
		if again := back.AppendText(nil, Lossless()); !bytes.Equal(again, text) {
			return fmt.Errorf("texts differ\n%s\n%s", text, again)
		}
	}
	if n != 1 {
		return fmt.Errorf("no entry")
	}
	return nil
}

func identityPolicy(p *Policy) error {
	a, err := AppendNewPolicy(nil, Header{}, p)
	if err != nil {
		return err
	}
	text := p.AppendText(nil, Lossless())
	n := 0
	for back, err := range ParsePolicies(bytes.NewReader(text), nil) {
		if err != nil {
			return fmt.Errorf("%w in\n%s", err, text)
		}
		b, err := AppendNewPolicy(nil, Header{}, back)
		if err != nil {
			return err
		}
		if !bytes.Equal(a, b) {
			return fmt.Errorf("bytes differ\n%x\n%x\n%s", a, b, text)
		}
		if n++; n > 1 {
			return fmt.Errorf("two entries from\n%s", text)
		}
	}
	if n != 1 {
		return fmt.Errorf("no entry")
	}
	return nil
}

// TestCatalogueIdentity goes from message to struct to text to struct to
// message for every state and policy of the catalogue, sent and received,
// and for events.
func TestCatalogueIdentity(t *testing.T) {
	if !native {
		t.Skip("the catalogue is little endian with 64-bit alignment")
	}
	states, policies := 0, 0
	for _, r := range catalogue(t) {
		if r.isLink() {
			continue
		}
		for _, m := range xfrmMessages(t, append(r.sent(t), r.recv(t)...)) {
			var err error
			switch m.Type {
			case NewSA, UpdSA, DelSA:
				var s SA
				if m.Type == DelSA && !m.hasAttr(AttrSA) {
					continue
				}
				if err = s.Parse(m); r.N == 100 && errors.Is(err, ErrShort) {
					continue // 10 octets of body on purpose
				}
				if err == nil {
					states++
					err = identitySA(&s)
				}
			case NewPolicy, UpdPolicy, DelPolicy:
				var p Policy
				if m.Type == DelPolicy && !m.hasAttr(AttrPolicy) {
					continue
				}
				if err = p.Parse(m); err == nil {
					policies++
					err = identityPolicy(&p)
				} else if r.N == 128 || r.N == 129 {
					err = nil // prefixes of 112 bits in an IPv4 selector
				}
			}
			if err != nil {
				t.Errorf("row %d: %s: %v", r.N, r.Cmd, err)
			}
		}
	}
	if states < 150 || policies < 50 {
		t.Errorf("only %d states and %d policies", states, policies)
	}
}
