// Package netns makes network namespaces for tests and measurements and runs
// functions and programs in them. It needs root and iproute2.
package netns

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
)

// Feature is the word that asks for tests in namespaces in SIGNALBOX_RUN and
// SIGNALBOX_REQUIRE.
const Feature = "netns"

// A Namespace is a named network namespace whose loopback is up.
type Namespace struct{ Name string }

var counter atomic.Uint32

// Create makes a namespace with a fresh name that starts with label. Close
// removes it.
func Create(label string) (*Namespace, error) {
	n := &Namespace{Name: fmt.Sprintf("sb-%s-%d-%d", label, os.Getpid(), counter.Add(1))}
	if out, err := exec.Command("ip", "netns", "add", n.Name).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("netns: ip netns add %s: %w: %s", n.Name, err, out)
	}
	if _, err := n.Run("ip", "link", "set", "lo", "up"); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// New makes a namespace for a test and removes it at the end. The test ends
// through [need.Missing] where namespaces cannot be made.
func New(t testing.TB, label string) *Namespace {
	t.Helper()
	need.Root(t, Feature)
	need.Commands(t, Feature, "ip")
	n, err := Create(label)
	if err != nil {
		need.Missing(t, Feature, err.Error())
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// Close removes the namespace. Devices and sockets in it vanish when the last
// process has left.
func (n *Namespace) Close() error {
	if out, err := exec.Command("ip", "netns", "del", n.Name).CombinedOutput(); err != nil {
		return fmt.Errorf("netns: ip netns del %s: %w: %s", n.Name, err, out)
	}
	return nil
}

// Command prepares a program to run in the namespace. The process that starts
// becomes the program, so killing it by pid ends the program itself.
func (n *Namespace) Command(name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.Name, name}, args...)...)
}

// Run runs a program in the namespace and returns all it printed.
func (n *Namespace) Run(name string, args ...string) (string, error) {
	out, err := n.Command(name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("netns: %s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return string(out), err
}

// Must runs commands, one a line with words between blanks, and fails the test
// at the first that fails.
func (n *Namespace) Must(t testing.TB, lines string) {
	t.Helper()
	for line := range strings.Lines(lines) {
		if f := strings.Fields(line); len(f) > 0 {
			if _, err := n.Run(f[0], f[1:]...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Do runs f on a thread that is in the namespace. What f opens (sockets,
// devices) belongs to the namespace, and stays usable elsewhere; goroutines
// that f starts are not in it.
func (n *Namespace) Do(f func() error) error {
	target, err := os.Open("/run/netns/" + n.Name)
	if err != nil {
		return fmt.Errorf("netns: %w", err)
	}
	defer target.Close()
	done := make(chan error, 1)
	go func() {
		// The thread is never unlocked, so it ends with the goroutine and no
		// other goroutine finds itself in the namespace.
		runtime.LockOSThread()
		if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("netns: setns %s: %w", n.Name, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// Veth connects two namespaces with a pair of devices, both up.
func Veth(a *Namespace, aDev string, b *Namespace, bDev string) error {
	if out, err := exec.Command("ip", "link", "add", aDev, "netns", a.Name, "type", "veth", "peer", "name", bDev, "netns", b.Name).CombinedOutput(); err != nil {
		return fmt.Errorf("netns: veth %s-%s: %w: %s", aDev, bDev, err, out)
	}
	if _, err := a.Run("ip", "link", "set", aDev, "up"); err != nil {
		return err
	}
	_, err := b.Run("ip", "link", "set", bDev, "up")
	return err
}
