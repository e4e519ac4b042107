package conn

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"signalbox.example/xfrm"
)

// impostor is a connection whose kernel is a function of the test: it is
// handed each request and returns the datagrams that answer it.
func impostor(t *testing.T, answer func(xfrm.Message) [][]byte) *Conn {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	raw, err := ours.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer theirs.Close()
		buf := make([]byte, 1<<18)
		for {
			n, err := theirs.Read(buf)
			if err != nil {
				return
			}
			m, _, err := xfrm.FirstMessage(buf[:n])
			if err != nil {
				t.Error(err)
				return
			}
			for _, d := range answer(m) {
				if _, err := theirs.Write(d); err != nil {
					return
				}
			}
		}
	}()
	c := &Conn{in: make([]byte, datagram), s: &socket{file: ours, raw: raw, room: 1 << 20}}
	t.Cleanup(func() { c.Close(); <-ended })
	return c
}

// entry is a policy of a dump, done the end of one.
func entry(t *testing.T, seq uint32, flags uint16, priority uint32) []byte {
	b, err := xfrm.AppendNewPolicy(nil, xfrm.Header{Flags: flags | 2, Seq: seq}, &xfrm.Policy{Sel: xfrm.Selector{Family: xfrm.IPv4}, Priority: priority})
	if err != nil {
		t.Error(err)
	}
	return b
}

func done(seq uint32, flags uint16, errno syscall.Errno) []byte {
	b := native.AppendUint32(nil, 20)
	b = native.AppendUint16(b, uint16(xfrm.MsgDone))
	b = native.AppendUint16(b, flags|2)
	b = native.AppendUint32(b, seq)
	b = native.AppendUint32(b, 0)
	return native.AppendUint32(b, -uint32(errno))
}

// TestInterruptedDumpIsRepeated: a dump that changes interrupt is taken anew,
// nothing of the spoiled one is returned, and that ends after a few tries. No
// kernel so far marks dumps of XFRM, so a test plays the kernel.
func TestInterruptedDumpIsRepeated(t *testing.T) {
	for _, c := range []struct {
		name     string
		spoiled  int // tries
		requests int
		err      error
	}{
		{"never", 0, 1, nil},
		{"twice", 2, 3, nil},
		{"as often as it is tried", 1000, dumpTries, ErrInterrupted},
	} {
		for _, mark := range []string{"an entry", "the end"} {
			t.Run(c.name+" by "+mark, func(t *testing.T) {
				var asked atomic.Int32
				k := impostor(t, func(m xfrm.Message) [][]byte {
					requests := int(asked.Add(1))
					var first, last uint16
					if requests <= c.spoiled {
						if mark == "an entry" {
							first = xfrm.FlagDumpIntr
						} else {
							last = xfrm.FlagDumpIntr
						}
					}
					n := uint32(100 * requests)
					return [][]byte{append(entry(t, m.Seq, first, n), entry(t, m.Seq, 0, n+1)...), append(entry(t, m.Seq, 0, n+2), done(m.Seq, last, 0)...)}
				})
				list, err := k.AllPolicies(ctx)
				requests := int(asked.Load())
				if !errors.Is(err, c.err) || requests != c.requests {
					t.Fatalf("%d requests, %v", requests, err)
				}
				if c.err != nil {
					if len(list) != 0 {
						t.Errorf("%d policies of a spoiled dump", len(list))
					}
					return
				}
				if len(list) != 3 || list[0].Priority != uint32(100*requests) || list[2].Priority != uint32(100*requests+2) {
					t.Errorf("policies %v", list)
				}
			})
		}
	}
}

// TestDumpThatFailsAtItsEnd: an errno in the end marker is the dump's, and
// answers to an earlier request are passed over.
func TestDumpThatFailsAtItsEnd(t *testing.T) {
	k := impostor(t, func(m xfrm.Message) [][]byte {
		return [][]byte{entry(t, m.Seq-1, 0, 5), done(m.Seq-1, 0, 0), entry(t, m.Seq, 0, 6), done(m.Seq, 0, syscall.ENOMEM)}
	})
	if list, err := k.AllPolicies(ctx); !errors.Is(err, syscall.ENOMEM) || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	k = impostor(t, func(m xfrm.Message) [][]byte {
		return [][]byte{entry(t, m.Seq-1, 0, 5), entry(t, m.Seq, 0, 6), done(m.Seq, 0, 0)}
	})
	if list, err := k.AllPolicies(ctx); err != nil || len(list) != 1 || list[0].Priority != 6 {
		t.Errorf("%v, %v", list, err)
	}
	k = impostor(t, func(m xfrm.Message) [][]byte { return [][]byte{entry(t, m.Seq, 0, 5)[:50]} })
	if _, err := k.AllPolicies(ctx); !errors.Is(err, xfrm.ErrLength) {
		t.Errorf("a message cut short: %v", err)
	}
}

// TestContextThatEndsWithTheRequest cancels contexts at the very end of
// requests: that is over when the request returns and does not end others.
func TestContextThatEndsWithTheRequest(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // what the context starts runs late
	k := impostor(t, func(m xfrm.Message) [][]byte { return [][]byte{done(m.Seq, 0, 0)} })
	for i := range 100 {
		soon, cancel := context.WithCancel(ctx)
		end, err := begin(soon, k.s)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := end(nil); err != nil {
			t.Fatal(err)
		}
		if _, err := k.AllPolicies(ctx); err != nil {
			t.Fatalf("request %d after one that was cancelled: %v", i, err)
		}
	}
}

// TestBuffersAreClearedOfKeys looks for keys in the memory of a connection
// after dumps and batches of all kinds.
func TestBuffersAreClearedOfKeys(t *testing.T) {
	const key = "key material"
	state := func(seq uint32, flags uint16, n int) (b []byte) {
		s := xfrm.SA{Src: addr("192.0.2.1"), Dst: addr("192.0.2.2"), SPI: 256, Proto: xfrm.ESP, AEAD: xfrm.AEAD{Name: "rfc4106(gcm(aes))", Key: []byte(key + "12345678")}}
		var err error
		for range n {
			if b, err = xfrm.AppendNewSA(b, xfrm.Header{Flags: flags, Seq: seq}, &s); err != nil {
				t.Error(err)
			}
		}
		return b
	}
	clean := func(t *testing.T, what string, b []byte) {
		t.Helper()
		if n := bytes.Count(b[:cap(b)], []byte(key)); n > 0 {
			t.Errorf("%d keys in %s", n, what)
		}
	}
	for _, c := range []struct {
		name    string
		memory  int // of the last dump
		answers func(seq uint32, try int) [][]byte
	}{
		{"more than there is room for", datagram, func(seq uint32, _ int) [][]byte {
			return [][]byte{state(seq, 0, 200), state(seq, 0, 300), state(seq, 0, 1), done(seq, 0, 0)}
		}},
		{"interrupted", 2 * datagram, func(seq uint32, try int) [][]byte {
			if try == 1 {
				return [][]byte{state(seq, 0, 200), append(state(seq, xfrm.FlagDumpIntr, 10), done(seq, 0, 0)...)}
			}
			return [][]byte{state(seq, 0, 1), done(seq, 0, 0)}
		}},
		{"of an earlier request", datagram, func(seq uint32, _ int) [][]byte {
			return [][]byte{state(seq-1, 0, 20), done(seq-1, 0, 0), state(seq, 0, 1), done(seq, 0, 0)}
		}},
		{"failed", datagram, func(seq uint32, _ int) [][]byte {
			return [][]byte{append(state(seq, 0, 20), done(seq, 0, syscall.ENOMEM)...)}
		}},
		{"malformed", datagram, func(seq uint32, _ int) [][]byte { return [][]byte{append(state(seq, 0, 20), 1, 2, 3)} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tries atomic.Int32
			k := impostor(t, func(m xfrm.Message) [][]byte { return c.answers(m.Seq, int(tries.Add(1))) })
			first := make([]byte, 0, c.memory)
			k.dump = first
			for range k.States(ctx, xfrm.SAFilter{}) {
			}
			clean(t, "the memory that there was", first)
			clean(t, "the memory of the dump", k.dump)
		})
	}
	t.Run("batch", func(t *testing.T) {
		k := impostor(t, func(m xfrm.Message) [][]byte {
			ack := native.AppendUint16(native.AppendUint32(nil, 36), uint16(xfrm.MsgError))
			ack = native.AppendUint16(ack, 0)
			ack = append(native.AppendUint32(ack, m.Seq+3), make([]byte, 24)...) // of the last one
			return [][]byte{state(m.Seq-1, 0, 20), ack}
		})
		k.o.Unchecked = true
		m, _, err := xfrm.FirstMessage(state(0, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		var s xfrm.SA
		if err := s.Parse(m); err != nil {
			t.Fatal(err)
		}
		b := k.Batch()
		if err := b.AddSA(&s); err != nil {
			t.Fatal(err)
		}
		s.Replay = xfrm.Replay{Window: 64, Bitmap: make([]uint32, 3)}
		if err := b.AddSA(&s); !errors.Is(err, xfrm.ErrLength) {
			t.Fatalf("a bitmap of a wrong length: %v", err)
		}
		before := b.parts[0].b
		s.Replay, s.Other = xfrm.Replay{}, []xfrm.Attr{{Type: 99, Data: make([]byte, 60000)}}
		for range 3 {
			if err := b.AddSA(&s); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		clean(t, "a part", before)
		clean(t, "the receive buffer", k.in)
		for _, p := range k.free {
			clean(t, "a part", p.b)
		}
	})
}

// TestIntegrationDumpUnderChanges changes policies in the middle of a dump.
// Those that stay are in it once.
func TestIntegrationDumpUnderChanges(t *testing.T) {
	namespace(t)
	c, other := dial(t, nil), dial(t, nil)
	const n = 1000
	policy := func(i int) *xfrm.Policy {
		return &xfrm.Policy{Sel: xfrm.Selector{Src: prefix("10.0.0.0/8"), Dst: prefix("10.0.0.0/8")}, Dir: xfrm.Out, Priority: uint32(i), IfID: uint32(i + 1)}
	}
	b := other.Batch()
	for i := range n {
		if err := b.AddPolicy(policy(i)); err != nil {
			t.Fatal(err)
		}
	}
	if failed, err := b.Flush(ctx); err != nil || len(failed) > 0 {
		t.Fatalf("%v, %v", failed, err)
	}
	seq, err := c.build(0, func(b []byte, h header) ([]byte, error) { return xfrm.AppendDumpPolicy(b, h), nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := c.s.send(c.out); err != nil {
		t.Fatal(err)
	}
	seen := map[uint32]int{}
	marked := false
	for datagrams, ended := 0, false; !ended; datagrams++ {
		got, err := c.s.receive(c.in)
		if err != nil {
			t.Fatal(err)
		}
		for m, err := range xfrm.Messages(c.in[:got]) {
			if err != nil || m.Seq != seq {
				t.Fatal(err, m.Seq)
			}
			marked = marked || m.Flags&xfrm.FlagDumpIntr != 0
			if m.Type == xfrm.MsgDone {
				ended = true
				break
			}
			var p xfrm.Policy
			if err := p.Parse(m); err != nil {
				t.Fatal(err)
			}
			seen[p.IfID]++
		}
		if datagrams == 1 { // every third is deleted, and as many are new
			for i := 0; i < n; i += 3 {
				id := policy(i).ID()
				if err := b.DeletePolicy(&id); err != nil {
					t.Fatal(err)
				}
				if err := b.AddPolicy(policy(n + i)); err != nil {
					t.Fatal(err)
				}
			}
			if failed, err := b.Flush(ctx); err != nil || len(failed) > 0 {
				t.Fatalf("%v, %v", failed, err)
			}
		}
	}
	for i := range n {
		if k := seen[uint32(i+1)]; k != 1 && (i%3 != 0 || k > 1) {
			t.Errorf("policy %d was there %d times", i, k)
		}
	}
	t.Logf("marked as interrupted: %v", marked)
}

// TestIntegrationLostEvents lets a receive buffer overflow: the loop says so
// and goes on.
func TestIntegrationLostEvents(t *testing.T) {
	namespace(t)
	c := dial(t, nil)
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	events, err := Listen(soon, &Options{ReadBuffer: 4096}, xfrm.GroupPolicy)
	if err != nil {
		t.Fatal(err)
	}
	add := func(i uint32) {
		t.Helper()
		if err := c.AddPolicy(ctx, &xfrm.Policy{Sel: xfrm.Selector{Family: xfrm.IPv4}, Dir: xfrm.Out, IfID: i}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range uint32(200) {
		add(i + 1)
	}
	lost, before, after := 0, 0, false
	for e, err := range events {
		if errors.Is(err, ErrLost) {
			lost++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := e.(*xfrm.PolicyChange); ok && p.Policy.IfID > 1000 {
			after = true
			break
		}
		before++
		// The kernel delivers again when the buffer is empty, which it is
		// after one of these.
		add(uint32(1000 + before))
	}
	if lost == 0 || before >= 200 || !after {
		t.Errorf("%d overflows, %d events, delivered afterwards: %v", lost, before, after)
	}
}
