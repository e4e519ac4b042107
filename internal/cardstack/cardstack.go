//go:build linux

// Package cardstack runs what real programs need to see a software card: pcscd
// with vpcd's virtual readers, apart from the rest of the machine, and home
// directories for gpg whose pinentry is a script.
package cardstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"signalbox.example/internal/need"
	"signalbox.example/keycard/pcscd"
	"signalbox.example/keycard/softcard"
)

const inside = "SIGNALBOX_CARDSTACK_INSIDE"

// Inside runs the calling test again in a network and a mount namespace of its
// own, because vpcd listens on every interface and pcscd has one socket. It
// returns false in the process outside, where the test is over then.
func Inside(t *testing.T, feature string) bool {
	t.Helper()
	need.Root(t, feature)
	need.Commands(t, feature, "pcscd", "gpg", "gpg-agent", "gpgconf", "ip")
	if os.Getenv(inside) == t.Name() {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=150s")
	cmd.Env = append(os.Environ(), inside+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// Stack is a running pcscd with two virtual readers.
type Stack struct {
	t   *testing.T
	dir string
}

// Readers are the names of the two readers.
var Readers = [...]string{"Virtual PCD 00 00", "Virtual PCD 00 01"}

// Start starts pcscd; it needs to be Inside. It ends with the test.
func Start(t *testing.T) *Stack {
	t.Helper()
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(pcscd.DefaultSocket)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	s := &Stack{t, t.TempDir()}
	log, err := os.Create(filepath.Join(s.dir, "pcscd.log"))
	if err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("pcscd", "-f")
	daemon.Stdout, daemon.Stderr = log, log
	daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		daemon.Process.Signal(syscall.SIGTERM)
		daemon.Wait()
		log.Close()
		if b, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("pcscd: %s", b)
		}
	})
	until(t, "two readers", func() bool {
		r, err := pcscd.Readers(t.Context())
		return err == nil && len(r) == 2
	})
	return s
}

// until polls; it is a bound on hanging, not a measurement.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("no %s in time", what)
}

// Insert puts a card into reader n (0 or 1) and waits until pcscd sees it. It
// comes out at the end of the test or when the function is called.
func (s *Stack) Insert(t *testing.T, c *softcard.Card, n int) (remove func()) {
	t.Helper()
	present := func(want bool) func() bool {
		return func() bool {
			list, err := pcscd.Readers(t.Context())
			if err != nil {
				return false
			}
			for _, r := range list {
				if r.Name == Readers[n] {
					return r.Present == want && (!want || r.ATR != nil)
				}
			}
			return false
		}
	}
	until(t, "empty reader", present(false))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.ServeVPCD(ctx, fmt.Sprintf("127.0.0.1:%d", 35963+n)) }()
	until(t, "card in the reader", present(true))
	once := false
	remove = func() {
		if once {
			return
		}
		once = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("ServeVPCD: %v", err)
		}
	}
	t.Cleanup(remove)
	return remove
}

// Home is a home directory of gpg. Its scdaemon looks at the first reader.
type Home struct {
	Dir string
	t   *testing.T
}

const pinentry = `#!/bin/sh
echo OK
prompt= repeat=
while read -r cmd rest; do
  case $cmd in
    SETPROMPT) prompt=${rest%:}; echo OK ;;
    SETREPEAT) repeat=1; echo OK ;;
    GETPIN)
      [ -n "$repeat" ] && echo "S PIN_REPEATED"
      case $prompt in Admin*) echo "D 12345678" ;; *) echo "D 123456" ;; esac
      echo OK
      repeat= ;;
    BYE) echo OK; exit 0 ;;
    *) echo OK ;;
  esac
done
`

// NewHome makes a home directory. Its agent ends with the test.
func NewHome(t *testing.T, feature string) *Home {
	t.Helper()
	// Short, for the agent's socket, and removed when the agent is gone.
	dir, err := os.MkdirTemp("", "kc")
	if err != nil {
		t.Fatal(err)
	}
	h := &Home{dir, t}
	lib, err := filepath.Glob("/usr/lib/*/libpcsclite.so.1")
	if err != nil || len(lib) == 0 {
		need.Missing(t, feature, "needs libpcsclite.so.1")
	}
	for name, text := range map[string]string{
		"scdaemon.conf":  fmt.Sprintf("disable-ccid\npcsc-driver %s\nreader-port %s\n", lib[0], Readers[0]),
		"gpg-agent.conf": "pinentry-program " + filepath.Join(dir, "pinentry") + "\n",
		"gpg.conf":       "no-tty\nbatch\nno-auto-key-retrieve\n",
		"pinentry":       pinentry,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		h.Kill()
		os.RemoveAll(dir)
	})
	return h
}

// Kill ends agent and scdaemon, so that PINs and the reader are let go.
func (h *Home) Kill() {
	cmd := exec.Command("gpgconf", "--kill", "all")
	cmd.Env = append(os.Environ(), "GNUPGHOME="+h.Dir)
	cmd.Run()
}

// Run runs a program with this home and returns standard output and error,
// and whether it ended well.
func (h *Home) Run(stdin, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(h.t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "GNUPGHOME="+h.Dir, "LC_ALL=C", "LANG=C")
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// GPG runs gpg and fails the test if it fails.
func (h *Home) GPG(stdin string, args ...string) string {
	h.t.Helper()
	out, err := h.Run(stdin, "gpg", args...)
	if err != nil {
		h.t.Fatalf("gpg %v: %v\n%s", args, err, out)
	}
	return out
}

// File writes a file in the home directory and returns its path.
func (h *Home) File(name string, data []byte) string {
	h.t.Helper()
	p := filepath.Join(h.Dir, name)
	if err := os.WriteFile(p, data, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return p
}

// Read reads a file in the home directory.
func (h *Home) Read(name string) []byte {
	h.t.Helper()
	b, err := os.ReadFile(filepath.Join(h.Dir, name))
	if err != nil {
		h.t.Fatal(err)
	}
	return b
}
