package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"
	"unsafe"

	"signalbox.example/internal/vectors"
	"signalbox.example/xfrm"
)

// native: the expected octets are little endian with 64-bit alignment.
func native() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1 && unsafe.Alignof(struct{ v uint64 }{}) == 8
}

func call(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestCommandLine(t *testing.T) {
	const add = "ip xfrm policy add src 10.0.0.0/8 dst 10.1.0.0/16 dir out\n"
	for _, c := range []struct {
		name, stdin string
		args        []string
		code        int
		out, err    string // what they begin with; "-" for nothing
	}{
		{"help", "", []string{"-h"}, 0, "usage: xfrmhex", "-"},
		{"bad flag", "", []string{"-frob"}, 2, "-", "xfrmhex: flag provided"},
		{"two modes", "", []string{"-text", "-check"}, 2, "-", "xfrmhex: -text, -json and -check exclude each other"},
		{"no such file", "", []string{"/nonexistent"}, 1, "-", "xfrmhex: open /nonexistent"},
		{"bad kernel", "", []string{"-kernel", "six"}, 2, "-", "xfrmhex: -kernel"},
		{"bad dev", "", []string{"-dev", "lo"}, 2, "-", "xfrmhex: -dev"},
		{"nothing", "\n# comment\n", nil, 0, "-", "-"},
		{"unknown", "ip route add\n" + "ip xfrm policy add\n", nil, 0, "error: \"route\": is neither xfrm nor link\nerror: not enough information: DIR is required\n", "-"},
		{"key not told", "ip xfrm state add src ::1 dst ::2 proto esp spi 1 enc x 0xfeedfacez\n", nil, 0, "error: enc has a key", "-"},
		{"check", add, []string{"-check"}, 0, "ok\n", "-"},
		{"check spi", "ip xfrm state add src ::1 dst ::2 proto esp spi 0 aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f10111213 128\n",
			[]string{"-check"}, 0, "refused: SPI: SPI 0 is reserved and the state could not be deleted by its name (Linux accepts it)\n", "-"},
		{"not hex", "zz\n", []string{"-text"}, 0, "error: not hexadecimal\n", "-"},
		{"short", "00\n", []string{"-text"}, 0, "error: header: too short\n", "-"},
		{"standard input by name", add, []string{"-check", "-"}, 0, "ok\n", "-"},
		{"long line", strings.Repeat("0", 5<<20) + "\r\n" + add + "# " + strings.Repeat("x", 5<<20), []string{"-check"}, 0, "error: line is longer than 4194304 characters\nok\n", "-"},
		{"acknowledgement", ack(0), []string{"-text"}, 0, "-", "-"},
		{"refusal", ack(-17), []string{"-text"}, 0, "xfrm: newsa: file exists\n", "-"},
		{"refusal in JSON", extAck(t, "a\x01\xff\"b"), []string{"-json"}, 0, `{"errno":17,"error":"xfrm: newsa: a\u0001\ufffd\"b`, "-"},
		{"acknowledgement in JSON", ack(0), []string{"-json"}, 0, "{\"ack\":\"ok\"}\n", "-"},
		{"dev by flag", "ip link add x type xfrm dev d0 if_id 5\nip link add x type xfrm dev d1 if_id 5\n", []string{"-dev", "d0=7"}, 0, "", "-"},
	} {
		code, out, errs := call(t, c.stdin, c.args...)
		if code != c.code || c.out == "-" && out != "" || c.out != "-" && !strings.HasPrefix(out, c.out) ||
			c.err == "-" && errs != "" || c.err != "-" && !strings.HasPrefix(errs, c.err) {
			t.Errorf("%s: code %d, out %q, err %q", c.name, code, out, errs)
		}
		if strings.Contains(out+errs, "feedface") {
			t.Errorf("%s: a key in %q %q", c.name, out, errs)
		}
	}
}

// ack is the kernel's answer to a request for a new SA.
func ack(errno int32) string {
	b := make([]byte, 36)
	binary.NativeEndian.PutUint32(b, 36)
	binary.NativeEndian.PutUint16(b[4:], uint16(xfrm.MsgError))
	binary.NativeEndian.PutUint32(b[16:], uint32(errno))
	binary.NativeEndian.PutUint32(b[20:], 36)
	binary.NativeEndian.PutUint16(b[24:], uint16(xfrm.NewSA))
	return hex.EncodeToString(b) + "\n"
}

// extAck is a refusal with words of the kernel's.
func extAck(t *testing.T, words string) string {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimSpace(ack(-17)))
	if err != nil {
		t.Fatal(err)
	}
	a := binary.NativeEndian.AppendUint16(nil, uint16(4+len(words)+1))
	a = append(binary.NativeEndian.AppendUint16(a, 1), words+"\x00"...) // NLMSGERR_ATTR_MSG
	for len(a)%4 != 0 {
		a = append(a, 0)
	}
	b = append(b, a...)
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint16(b[6:], 0x300) // NLM_F_CAPPED | NLM_F_ACK_TLVS
	return hex.EncodeToString(b) + "\n"
}

func TestThereAndBack(t *testing.T) {
	const add = "ip xfrm state add src 2001:db8::1 dst 2001:db8::2 proto esp spi 0x100 reqid 6 mode tunnel aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f10111213 128\n"
	_, built, _ := call(t, add)
	_, text, _ := call(t, built, "-text")
	const want = `src 2001:db8::1 dst 2001:db8::2
	proto esp spi 0x00000100 reqid 6 mode tunnel
	replay-window 0 
	aead rfc4106(gcm(aes)) 0x000102030405060708090a0b0c0d0e0f10111213 128
`
	if text != want {
		t.Errorf("got\n%s", text)
	}
	if _, text, _ = call(t, built, "-text", "-nokeys"); strings.Contains(text, "0102") || !strings.Contains(text, "<<Keys hidden>>") {
		t.Errorf("got\n%s", text)
	}
	if _, text, _ = call(t, built, "-text", "-s"); !strings.Contains(text, "lifetime config:") {
		t.Errorf("got\n%s", text)
	}
	_, js, _ := call(t, built, "-json")
	var v struct{ SA struct{ Proto string } }
	if err := json.Unmarshal([]byte(js), &v); err != nil || v.SA.Proto != "esp" {
		t.Errorf("%s, %v", js, err)
	}
	if _, verdict, _ := call(t, built, "-check"); verdict != "ok\n" {
		t.Errorf("got %q", verdict)
	}
	// Each message of a datagram counts, and so does what is behind them.
	_, bad, _ := call(t, "ip xfrm policy add dir in mark 7 mask 1\n")
	one, other := strings.TrimSpace(built), strings.TrimSpace(bad)
	for line, want := range map[string]string{one + one: "ok", one + other: "refused: Mark: ", other + one: "refused: Mark: ", one + "00ff": "error: header: too short"} {
		if _, verdict, _ := call(t, line+"\n", "-check"); !strings.HasPrefix(verdict, want) || strings.Count(verdict, "\n") != 1 {
			t.Errorf("got %q, want %q", verdict, want)
		}
	}
}

// TestCatalogue feeds every command of the catalogue in and compares with
// what iproute2 sent.
func TestCatalogue(t *testing.T) {
	if !native() {
		t.Skip("the catalogue is little endian with 64-bit alignment")
	}
	for _, l := range vectors.Lines(t, "xfrm/catalogue.jsonl") {
		var r struct {
			N    int
			Cmd  string
			Sent []string
		}
		if err := json.Unmarshal([]byte(l), &r); err != nil {
			t.Fatal(err)
		}
		cmd, _, _ := strings.Cut(r.Cmd, ";")
		if !strings.HasPrefix(cmd, "ip ") || len(r.Sent) == 0 || strings.Contains(cmd, " link ") && !strings.Contains(cmd, "link add") {
			continue
		}
		want := r.Sent[0]
		if strings.Contains(cmd, "link add") {
			want = r.Sent[len(r.Sent)-1]
		}
		want = want[:16] + strings.Repeat("0", 16) + want[32:]
		want = strings.Replace(want, "11941194ffff", "119411940000", 1) // padding that iproute2 left uninitialised
		if _, got, _ := call(t, cmd+"\n", "-dev", "d0=7,lo=1"); got != want+"\n" {
			t.Errorf("row %d: %s\n got %swant %s", r.N, cmd, got, want)
		}
	}
}

// Somebody at a terminal, or a program at the other end of two pipes, waits for
// an answer before the next line.
func TestAnswersAtOnce(t *testing.T) {
	in, feed := io.Pipe()
	answers, out := io.Pipe()
	go func() {
		run(nil, in, out, io.Discard)
		out.Close()
	}()
	got := bufio.NewReader(answers)
	for range 2 {
		line := make(chan string, 1)
		go func() {
			s, _ := got.ReadString('\n')
			line <- s
		}()
		if _, err := io.WriteString(feed, "ip xfrm policy add dir out\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case s := <-line:
			if !strings.HasPrefix(s, "b") {
				t.Errorf("%q", s)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("no answer while more input may come")
		}
	}
	feed.Close()
}
