package nat64

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"signalbox.example/internal/vectors"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func unhex(s string) []byte {
	return must(hex.DecodeString(strings.ReplaceAll(s, " ", "")))
}

// crossConfig is the configuration of crosscheck-siit.jsonl.
func crossConfig() Config {
	return Config{
		Prefix: must(ParsePrefix("2001:db8:64::/96")),
		EAM: []EAM{
			{netip.MustParsePrefix("2001:db8:c::/120"), netip.MustParsePrefix("10.64.0.0/24")},
			{netip.MustParsePrefix("2001:db8:aaaa::/120"), netip.MustParsePrefix("192.0.2.0/24")},
		},
		RFC6791v4: netip.MustParsePrefix("203.0.113.8/32"),
		Own4:      netip.MustParseAddr("198.51.100.1"),
		Own6:      netip.MustParseAddr("2001:db8:1c0:2:1::"),
		ErrorRate: -1,
	}
}

// run translates a copy of a packet that lies in the middle of a larger
// buffer, and fails the test if anything else in the buffer was written to.
func run(t testing.TB, tr *Translator, s *Scratch, packet []byte) (out [][]byte, r Result) {
	t.Helper()
	return runOffload(t, tr, s, nil, packet)
}

func runOffload(t testing.TB, tr *Translator, s *Scratch, h *VirtioHdr, packet []byte) (out [][]byte, r Result) {
	t.Helper()
	const guard = 32
	off := guard + Headroom
	buf := make([]byte, off+len(packet)+guard)
	for i := range buf {
		buf[i] = 0xa5
	}
	copy(buf[off:], packet)
	r = tr.TranslateOffload(s, h, buf, off, len(packet))
	for i, b := range buf {
		if b != 0xa5 && (i < guard || i >= off+len(packet)) {
			t.Fatalf("octet %d outside the packet was written to", i-off)
		}
	}
	if (r.Verdict == Drop) != (r.Packet == nil) {
		t.Fatalf("verdict %v with %d octets", r.Verdict, len(r.Packet))
	}
	if r.Verdict == Drop {
		return nil, r
	}
	if r.Offset >= 0 && &buf[r.Offset] != &r.Packet[0] {
		t.Fatalf("offset %d does not point at the packet", r.Offset)
	}
	out = append(out, slices.Clone(r.Packet))
	for _, m := range r.More {
		out = append(out, slices.Clone(m))
	}
	return out, r
}

// compare returns "" or what differs.
func compare(got, want [][]byte, ignore []int) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d packets, want %d", len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		bad := len(g) != len(w)
		for j := 0; !bad && j < len(g); j++ {
			bad = g[j] != w[j] && !slices.Contains(ignore, j)
		}
		if bad {
			return fmt.Sprintf("packet %d:\n got %x\nwant %x", i, g, w)
		}
	}
	return ""
}

type exchange struct {
	Name   string   `json:"name"`
	In     string   `json:"in"`
	Out    []string `json:"out"`
	Ignore []int    `json:"ignore_bytes"`
	Config int      `json:"config"`
}

func exchanges(t testing.TB, file string) []exchange {
	var list []exchange
	for _, line := range vectors.Lines(t, file) {
		var x exchange
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return list
}

func (x exchange) check(t *testing.T, tr *Translator, s *Scratch) {
	t.Helper()
	var want [][]byte
	for _, o := range x.Out {
		want = append(want, unhex(o))
	}
	got, r := run(t, tr, s, unhex(x.In))
	if d := compare(got, want, x.Ignore); d != "" {
		t.Errorf("%v (%v): %s\n  in %s", r.Verdict, r.Reason, d, x.In)
	}
}

func TestGraybox(t *testing.T) {
	var configs []json.RawMessage
	if err := json.Unmarshal(vectors.Read(t, "nat64/jool-graybox-siit-configs.json"), &configs); err != nil {
		t.Fatal(err)
	}
	list := exchanges(t, "nat64/jool-graybox-siit.jsonl")
	if len(list) != 124 || len(configs) != 10 {
		t.Fatalf("%d exchanges, %d configurations", len(list), len(configs))
	}
	var s Scratch
	for i, x := range list {
		t.Run(fmt.Sprintf("%d-%s", i, x.Name), func(t *testing.T) {
			cfg := must(ParseConfig(configs[x.Config]))
			cfg.ErrorRate = -1
			x.check(t, must(New(cfg)), &s)
		})
	}
}

func TestCrossCheck(t *testing.T) {
	list := exchanges(t, "nat64/crosscheck-siit.jsonl")
	if len(list) != 140 {
		t.Fatalf("%d packets", len(list))
	}
	tr := must(New(crossConfig()))
	var s Scratch
	for _, x := range list {
		t.Run(x.Name, func(t *testing.T) { x.check(t, tr, &s) })
	}
}
