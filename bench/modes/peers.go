package modes

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"signalbox.example/modes"
	"signalbox.example/modes/avr"
	"signalbox.example/modes/demod"
	"signalbox.example/modes/track"
)

// Peer is the program that is measured beside this library.
const Peer = "dump1090-mutability"

// Ours demodulates UC8 samples.
func Ours(iq []byte, effort demod.Effort, repair demod.Repair) (frames []modes.Frame, cpu time.Duration, err error) {
	d, err := demod.New(demod.Config{Rate: Rate, Effort: effort, Repair: repair})
	if err != nil {
		return nil, 0, err
	}
	before := self()
	emit := func(f *modes.Frame) { frames = append(frames, *f) }
	d.Process(iq, emit)
	d.Flush(emit)
	return frames, self() - before, nil
}

// self returns the processor time of this process.
func self() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Theirs demodulates a file of UC8 samples with the peer.
func Theirs(path string) (frames []modes.Frame, cpu time.Duration, err error) {
	cmd := exec.Command(Peer, "--ifile", path, "--iformat", "UC8", "--raw", "--fix")
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, err
	}
	for line := range bytes.Lines(out) {
		var f modes.Frame
		if avr.Parse(line, &f) == nil {
			frames = append(frames, f)
		}
	}
	return frames, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// OursText reads AVR text into the aircraft table and returns the number of
// messages in it.
func OursText(text []byte) (messages uint64, cpu time.Duration) {
	before := self()
	t := track.New(track.Config{DuplicateWindow: -1})
	now := time.Now()
	var d avr.Decoder
	d.Feed(text, func(f *modes.Frame) { t.Update(f, now) })
	return t.Stats().Messages, self() - before
}

// TheirsText sends AVR text to the peer and returns the number of messages it
// says it has, and its processor time for them.
func TheirsText(text []byte, want uint64, dir string) (messages uint64, cpu time.Duration, err error) {
	var ports []string
	for range 5 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return 0, 0, err
		}
		defer l.Close()
		_, p, _ := net.SplitHostPort(l.Addr().String())
		ports = append(ports, p)
		l.Close()
	}
	cmd := exec.Command(Peer, "--net-only", "--net-bind-address", "127.0.0.1", "--net-ri-port", ports[0], "--net-ro-port", ports[1],
		"--net-sbs-port", ports[2], "--net-bi-port", ports[3], "--net-bo-port", ports[4], "--write-json", dir, "--write-json-every", "1", "--quiet")
	if err := cmd.Start(); err != nil {
		return 0, 0, err
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	var conn net.Conn
	for range 250 {
		if conn, err = net.Dial("tcp", "127.0.0.1:"+ports[0]); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close()
	before, err := processTime(cmd.Process.Pid)
	if err != nil {
		return 0, 0, err
	}
	if _, err := conn.Write(text); err != nil {
		return 0, 0, err
	}
	for range 300 {
		time.Sleep(100 * time.Millisecond)
		messages, _ = jsonMessages(filepath.Join(dir, "aircraft.json"))
		if messages >= want {
			break
		}
	}
	after, err := processTime(cmd.Process.Pid)
	return messages, after - before, err
}

// processTime returns the processor time of a process.
func processTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 13 {
		return 0, fmt.Errorf("bench: /proc/%d/stat is short", pid)
	}
	user, err1 := strconv.ParseInt(f[11], 10, 64)
	system, err2 := strconv.ParseInt(f[12], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("bench: /proc/%d/stat is odd", pid)
	}
	const tick = 10 * time.Millisecond // USER_HZ is 100
	return time.Duration(user+system) * tick, nil
}

// jsonMessages reads the peer's count of messages from its aircraft.json.
func jsonMessages(path string) (uint64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(b), `"messages" : `)
	if !ok {
		return 0, fmt.Errorf("bench: no messages in %s", path)
	}
	n, _, _ := strings.Cut(rest, ",")
	return strconv.ParseUint(n, 10, 64)
}
