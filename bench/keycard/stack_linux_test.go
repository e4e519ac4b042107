package keycard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	pcsclite "github.com/gballet/go-libpcsclite"

	"signalbox.example/internal/need"
	"signalbox.example/keycard"
	"signalbox.example/keycard/pcscd"
	"signalbox.example/keycard/scd"
	"signalbox.example/keycard/softcard"
)

const (
	feature = "pcscd"
	inside  = "SIGNALBOX_KEYCARD_INSIDE"
	reader  = "Virtual PCD 00 00"
)

// TestIntegrationCompare runs the comparisons of this package in a network
// and a mount namespace of their own, where pcscd can be started without
// touching the machine's. With -bench it prints the figures.
func TestIntegrationCompare(t *testing.T) {
	need.Asked(t, feature)
	need.Root(t, feature)
	need.Commands(t, feature, "pcscd", "gpg", "gpgconf", "ip")
	args := []string{"-test.run=^TestInside", "-test.v", "-test.timeout=300s"}
	if testing.Verbose() {
		args = append(args, "-test.bench=^BenchmarkInside", "-test.benchtime=400x")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), inside+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

var (
	user  = keycard.PINString("123456")
	admin = keycard.PINString("12345678")
)

// stack starts pcscd and puts a software card with keys into its first reader.
func stack(t testing.TB) *softcard.Card {
	t.Helper()
	if os.Getenv(inside) == "" {
		t.Skip("runs inside the namespaces of TestIntegrationCompare")
	}
	fatal := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fatal(exec.Command("ip", "link", "set", "lo", "up").Run())
	fatal(syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""))
	dir := filepath.Dir(pcscd.DefaultSocket)
	fatal(os.MkdirAll(dir, 0o755))
	fatal(syscall.Mount("tmpfs", dir, "tmpfs", 0, ""))
	daemon := exec.Command("pcscd", "-f")
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	fatal(daemon.Start())
	card := softcard.MustNew(softcard.Config{Serial: 1, WithoutKDF: true})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
		daemon.Process.Signal(syscall.SIGTERM)
		daemon.Wait()
		syscall.Unmount(dir, 0)
	})
	wait := func(f func([]pcscd.Reader) bool) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if r, err := pcscd.Readers(ctx); err == nil && f(r) {
				return
			}
		}
		t.Fatal("no card in the reader")
	}
	wait(func(r []pcscd.Reader) bool { return len(r) == 2 })
	go func() { card.ServeVPCD(ctx, "127.0.0.1:35963"); close(done) }()
	wait(func(r []pcscd.Reader) bool { return r[0].ATR != nil })
	return card
}

func open(t testing.TB) (*keycard.Card, *pcscd.Conn) {
	t.Helper()
	conn, err := pcscd.Connect(context.Background(), reader, pcscd.Shared)
	// scdaemon lets go of the reader a moment after it was told to end.
	for end := time.Now().Add(20 * time.Second); errors.Is(err, keycard.ErrBusy) && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		conn, err = pcscd.Connect(context.Background(), reader, pcscd.Shared)
	}
	if err != nil {
		t.Fatal(err)
	}
	c, err := keycard.Open(context.Background(), conn, keycard.WithPINs(keycard.StaticPIN(user, admin)))
	if err != nil {
		t.Fatal(err)
	}
	return c, conn
}

// peer is the adapter for go-libpcsclite.
func peer(t testing.TB) (transmit func([]byte) []byte, finish func()) {
	t.Helper()
	client, err := pcsclite.EstablishContext(pcscd.DefaultSocket, pcsclite.ScopeSystem)
	if err != nil {
		t.Fatal(err)
	}
	readers, err := client.ListReaders()
	if err != nil || len(readers) == 0 {
		t.Fatalf("%q, %v", readers, err)
	}
	card, err := client.Connect(readers[0], pcsclite.ShareShared, pcsclite.ProtocolAny)
	if err != nil {
		t.Fatal(err)
	}
	transmit = func(cmd []byte) []byte {
		r, _, err := card.Transmit(cmd)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return transmit, func() { card.Disconnect(0); client.ReleaseContext() }
}

var (
	selectApp = []byte{0, 0xa4, 4, 0, 6, 0xd2, 0x76, 0, 1, 0x24, 1}
	getData   = []byte{0, 0xca, 0, 0xc4, 0}
)

// Both clients get the same answers.
func TestInsidePeerAgrees(t *testing.T) {
	stack(t)
	c, conn := open(t)
	want, err := conn.Transmit(t.Context(), getData)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	transmit, finish := peer(t)
	defer finish()
	transmit(selectApp)
	if got := transmit(getData); !bytes.Equal(got, want) {
		t.Errorf("go-libpcsclite read %x, we %x", got, want)
	}
}

func median(b *testing.B, times []time.Duration, name string) {
	for i := range times { // insertion sort: there are few
		for j := i; j > 0 && times[j] < times[j-1]; j-- {
			times[j], times[j-1] = times[j-1], times[j]
		}
	}
	b.ReportMetric(float64(times[len(times)/2].Microseconds()), name)
}

// One short GET DATA through pcscd and vpcd, the clients interleaved.
func BenchmarkInsideRoundTrip(b *testing.B) {
	stack(b)
	c, conn := open(b)
	transmit, finish := peer(b)
	transmit(selectApp)
	var ours, theirs []time.Duration
	ctx := context.Background()
	us := func() {
		t0 := time.Now()
		if _, err := conn.Transmit(ctx, getData); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(t0))
	}
	them := func() {
		t0 := time.Now()
		transmit(getData)
		theirs = append(theirs, time.Since(t0))
	}
	for i := 0; b.Loop(); i++ { // who is first changes: that one wakes the daemon
		if i%2 == 0 {
			us()
			them()
		} else {
			them()
			us()
		}
	}
	median(b, ours, "signalbox-µs")
	median(b, theirs, "libpcsclite-µs")
	finish()
	c.Close()
}

const pinentry = `#!/bin/sh
echo OK
while read -r cmd rest; do
  case $cmd in
    SETPROMPT) prompt=${rest%:}; echo OK ;;
    GETPIN) case $prompt in Admin*) echo "D 12345678" ;; *) echo "D 123456" ;; esac; echo OK ;;
    BYE) echo OK; exit 0 ;;
    *) echo OK ;;
  esac
done
`

// gpg makes a home directory whose scdaemon uses the reader.
func gpg(t testing.TB) (run func(stdin string, name string, args ...string) string, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "kc")
	if err != nil {
		t.Fatal(err)
	}
	lib, _ := filepath.Glob("/usr/lib/*/libpcsclite.so.1")
	if len(lib) == 0 {
		need.Missing(t, feature, "needs libpcsclite.so.1")
	}
	for name, text := range map[string]string{
		"scdaemon.conf":  fmt.Sprintf("disable-ccid\npcsc-driver %s\nreader-port %s\n", lib[0], reader),
		"gpg-agent.conf": "pinentry-program " + filepath.Join(dir, "pinentry") + "\n",
		"pinentry":       pinentry,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run = func(stdin, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "GNUPGHOME="+dir, "LC_ALL=C")
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	t.Cleanup(func() {
		run("", "gpgconf", "--kill", "all")
		os.RemoveAll(dir)
	})
	return run, dir
}

// Status and signature beside gpg, each with everything warm: gpg with agent
// and scdaemon running, our library with the card open.
func BenchmarkInsideStatusAndSign(b *testing.B) {
	stack(b)
	run, dir := gpg(b)
	lines := "admin\nforcesig\nkey-attr\n2\n1\n2\n1\n2\n1\ngenerate\nn\n0\nTest Holder\ntest@example.org\n\nquit\n"
	run(lines, "gpg", "--no-tty", "--no-batch", "--expert", "--status-fd", "2", "--command-fd", "0", "--card-edit")
	msg := filepath.Join(dir, "m")
	if err := os.WriteFile(msg, []byte("message"), 0o600); err != nil {
		b.Fatal(err)
	}
	sign := func() { run("", "gpg", "--batch", "--yes", "-o", msg+".sig", "--detach-sign", msg) }
	sign()
	var gs, gsign, gver []time.Duration
	for range 30 {
		t0 := time.Now()
		run("", "gpg", "--batch", "--card-status")
		t1 := time.Now()
		sign()
		t2 := time.Now()
		run("", "gpg", "--version")
		gs, gsign, gver = append(gs, t1.Sub(t0)), append(gsign, t2.Sub(t1)), append(gver, time.Since(t2))
	}
	run("", "gpgconf", "--kill", "all")

	c, _ := open(b)
	ctx := context.Background()
	key, err := c.Key(ctx, keycard.SlotSign, nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := key.SignRaw(ctx, []byte("x")); err != nil {
		b.Fatal(err)
	}
	var status, warm, cold []time.Duration
	for b.Loop() {
		t0 := time.Now()
		if _, err := c.Status(ctx); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		if _, err := key.SignRaw(ctx, []byte("message")); err != nil {
			b.Fatal(err)
		}
		status, warm = append(status, t1.Sub(t0)), append(warm, time.Since(t1))
	}
	c.Close()
	for range 30 {
		t0 := time.Now()
		c, _ := open(b)
		if _, err := c.Status(ctx); err != nil {
			b.Fatal(err)
		}
		cold = append(cold, time.Since(t0))
		c.Close()
	}
	median(b, gs, "gpg-status-µs")
	median(b, gsign, "gpg-sign-µs")
	median(b, gver, "gpg-nothing-µs")
	median(b, status, "status-µs")
	median(b, cold, "cold-status-µs")
	median(b, warm, "sign-µs")
}

// A GET DATA through gpg-agent and scdaemon.
func BenchmarkInsideSCD(b *testing.B) {
	stack(b)
	run, dir := gpg(b)
	run("", "gpg", "--batch", "--card-status")
	conn, err := scd.Dial(context.Background(), filepath.Join(dir, "S.gpg-agent"))
	if err != nil {
		b.Fatal(err)
	}
	var times []time.Duration
	for b.Loop() {
		t0 := time.Now()
		if _, err := conn.Transmit(context.Background(), getData); err != nil {
			b.Fatal(err)
		}
		times = append(times, time.Since(t0))
	}
	median(b, times, "scd-µs")
	conn.Close()
}
