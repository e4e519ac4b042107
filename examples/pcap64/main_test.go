package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

const config = `{"pool6":"2001:db8:64::/96","eam":[["2001:db8:c::/120","10.64.0.0/24"]],"own_v4":"198.51.100.1"}`

func packets(t *testing.T) [][]byte {
	t.Helper()
	var list [][]byte
	for _, s := range []string{
		"450000221234000040113420c63364020a4000020fa00035000e779268656c6c6f21",
		"60000000000e110220010db8000c0000000000000000000220010db80064000000000000c63364020fa00035000e25f068656c6c6f21",
		"450000221234400001113320c63364020a4000020fa00035000e779268656c6c6f21", // TTL 1
		"450000221234400040119f547f0000010a4000020fa00035000e22c768656c6c6f21", // loopback source
	} {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	return list
}

// capture writes frames of a link type, as pcap or pcapng.
func capture(t *testing.T, ng bool, link layers.LinkType, frames [][]byte) string {
	t.Helper()
	var b bytes.Buffer
	var write func(gopacket.CaptureInfo, []byte) error
	flush := func() error { return nil }
	if ng {
		w, err := pcapgo.NewNgWriter(&b, link)
		if err != nil {
			t.Fatal(err)
		}
		write, flush = w.WritePacket, w.Flush
	} else {
		w := pcapgo.NewWriter(&b)
		if err := w.WriteFileHeader(65536, link); err != nil {
			t.Fatal(err)
		}
		write = w.WritePacket
	}
	for i, f := range frames {
		if err := write(gopacket.CaptureInfo{Timestamp: time.Unix(1_700_000_000, int64(i)*1e6), CaptureLength: len(f), Length: len(f)}, f); err != nil {
			t.Fatal(err)
		}
	}
	if err := flush(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "in.pcap")
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestConvert(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(conf, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name string
		ng   bool
		link layers.LinkType
		head func(v6 bool) []byte
	}{
		{"raw", false, layers.LinkTypeRaw, func(bool) []byte { return nil }},
		{"ethernet", true, layers.LinkTypeEthernet, func(v6 bool) []byte { return append(make([]byte, 12), etherType(v6)...) }},
		{"vlan", false, layers.LinkTypeEthernet, func(v6 bool) []byte { return append(append(make([]byte, 12), 0x81, 0, 0, 5), etherType(v6)...) }},
		{"cooked", false, layers.LinkTypeLinuxSLL, func(v6 bool) []byte { return append(make([]byte, 14), etherType(v6)...) }},
		{"cooked v2", false, linkTypeSLL2, func(v6 bool) []byte { return append(etherType(v6), make([]byte, 18)...) }},
		{"cooked v2 ng", true, linkTypeSLL2, func(v6 bool) []byte { return append(etherType(v6), make([]byte, 18)...) }},
		{"loopback", false, layers.LinkTypeNull, func(bool) []byte { return []byte{2, 0, 0, 0} }},
	} {
		t.Run(x.name, func(t *testing.T) {
			var frames [][]byte
			for _, p := range packets(t) {
				frames = append(frames, append(x.head(p[0]>>4 == 6), p...))
			}
			frames = append(frames, []byte{1, 2, 3})
			in := capture(t, x.ng, x.link, frames)
			out := filepath.Join(filepath.Dir(in), "out.pcap")
			var stdout, stderr bytes.Buffer
			if code := run([]string{"-config", conf, "-explain", in, out}, nil, &stdout, &stderr); code != 0 {
				t.Fatal(code, stderr.String())
			}
			text := stdout.String()
			for _, w := range []string{
				"     1     0.000000  forward  translated-4to6, 34 -> 54 octets\n",
				"     2     0.001000  forward  translated-6to4, 54 -> 34 octets\n",
				"     3     0.002000  reply    hop-limit, 34 -> 62 octets\n",
				"     4     0.003000  drop     illegal-source: ",
				"     5     0.004000  skip     no IP packet\n",
				"destination 10.64.0.2 is 2001:db8:c::2 by the EAM table (RFC 7757 section 3.3)\n",
			} {
				if !strings.Contains(text, w) {
					t.Errorf("no %q in\n%s", w, text)
				}
			}
			stdout.Reset()
			if code := run([]string{"-config", conf, "-json", "-explain", in, out}, nil, &stdout, &stderr); code != 0 {
				t.Fatal(code, stderr.String())
			}
			var records []record
			for d := json.NewDecoder(&stdout); d.More(); {
				var r record
				if err := d.Decode(&r); err != nil {
					t.Fatal(err)
				}
				records = append(records, r)
			}
			if len(records) != 5 || records[0].Verdict != "forward" || records[0].Out[0] != 54 || len(records[0].Steps) == 0 ||
				records[3].Verdict != "drop" || records[3].Rule == "" || records[3].Out != nil || records[4].Verdict != "skip" {
				t.Errorf("%+v", records)
			}
			f, err := os.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := pcapgo.NewReader(f)
			if err != nil || r.LinkType() != layers.LinkTypeRaw {
				t.Fatal(err, r.LinkType())
			}
			n := 0
			for {
				p, info, err := r.ReadPacketData()
				if err == io.EOF {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if info.Timestamp.UnixNano() != 1_700_000_000_000_000_000+int64(n)*1e6 {
					t.Errorf("time %v", info.Timestamp)
				}
				first := layers.LayerTypeIPv4
				if p[0]>>4 == 6 {
					first = layers.LayerTypeIPv6
				}
				if ip := gopacket.NewPacket(p, first, gopacket.Default); ip.NetworkLayer() == nil {
					t.Errorf("packet %d: %x", n, p)
				}
				n++
			}
			if n != 3 {
				t.Errorf("%d packets written", n)
			}
		})
	}
}

// A pcapng file may hold frames of several link types, as of a capture on both
// sides of a TUN device. None is left out.
func TestMixedLinkTypes(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(conf, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := w.AddInterface(pcapgo.NgInterface{LinkType: layers.LinkTypeRaw})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range packets(t)[:2] {
		if i == 0 {
			p = append(append(make([]byte, 12), etherType(false)...), p...)
		}
		if err := w.WritePacket(gopacket.CaptureInfo{InterfaceIndex: i * raw, CaptureLength: len(p), Length: len(p)}, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(t.TempDir(), "in.pcapng")
	if err := os.WriteFile(in, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"-config", conf, in, in + ".out"}, nil, &stdout, &stderr); code != 0 {
		t.Fatal(code, stderr.String())
	}
	for _, want := range []string{"translated-4to6", "translated-6to4"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %s in\n%s", want, stdout.String())
		}
	}
}

func etherType(v6 bool) []byte {
	if v6 {
		return []byte{0x86, 0xdd}
	}
	return []byte{0x08, 0x00}
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	conf, text := filepath.Join(dir, "config.json"), filepath.Join(dir, "text")
	for name, s := range map[string]string{conf: config, text: "no capture"} {
		if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-h"}, 0, "usage: pcap64"},
		{nil, 2, "pcap64: -config FILE"},
		{[]string{"-config", conf, text}, 2, "two file names"},
		{[]string{"-config", dir + "/absent", text, text}, 1, "no such file"},
		{[]string{"-config", text, text, text}, 1, "cannot be read"},
		{[]string{"-config", conf, dir + "/absent", dir + "/out"}, 1, "no such file"},
		{[]string{"-config", conf, text, dir + "/out"}, 1, "pcap64: " + text + ": "},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(x.args, nil, &stdout, &stderr); code != x.code || !strings.Contains(stdout.String()+stderr.String(), x.want) {
			t.Errorf("%v: %d, %q", x.args, code, stderr.String())
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != 2 {
		t.Errorf("files left behind: %v", files)
	}
}

// Renaming over a link would replace it: /dev/stdout itself, for root.
func TestOutputIsNoLink(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "config.json")
	if err := os.WriteFile(conf, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	in := capture(t, false, layers.LinkTypeRaw, packets(t))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "file"), link); err != nil {
		t.Skip(err)
	}
	var out, errs bytes.Buffer
	if status := run([]string{"-config", conf, in, link}, nil, &out, &errs); status != 1 || !strings.Contains(errs.String(), "not a regular file") {
		t.Errorf("status %d, %s", status, errs.String())
	}
	if fi, err := os.Lstat(link); err != nil || fi.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is gone: %v", err)
	}
}
