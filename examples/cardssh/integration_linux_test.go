package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/internal/need"
)

// TestIntegrationLogin: real ssh logs in to a real sshd on loopback with a key
// on a card.
func TestIntegrationLogin(t *testing.T) {
	const feature = "cardpgp"
	need.Asked(t, feature)
	need.Root(t, feature) // sshd wants its separation folder
	need.Commands(t, feature, "ssh", "ssh-keygen", "ssh-add")
	sshd := "/usr/sbin/sshd" // wants to be called by its full path
	if _, err := os.Stat(sshd); err != nil {
		need.Missing(t, feature, "needs "+sshd)
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, "host")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	kinds := []string{"rsa2048", "nistp256", "nistp384", "nistp521", "ed25519"}
	var authorized bytes.Buffer
	for _, kind := range kinds {
		card := filepath.Join(dir, kind+".json")
		if _, err := opencard.MakeCard(card, filepath.Join(dir, kind+".asc"), kind, "Alice"); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&authorized, "environment=\"KIND=%s\" ", kind)
		if run(t.Context(), []string{"-print", "-reader", "soft:" + card}, nil, &authorized, os.Stderr) != 0 {
			t.Fatal("no public key")
		}
	}
	keys := filepath.Join(dir, "authorized_keys")
	if err := os.WriteFile(keys, authorized.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	var log bytes.Buffer
	server := exec.Command(sshd, "-D", "-e", "-f", "/dev/null", "-p", port, "-h", filepath.Join(dir, "host"),
		"-o", "ListenAddress=127.0.0.1", "-o", "AuthorizedKeysFile="+keys, "-o", "StrictModes=no", "-o", "PidFile=none",
		"-o", "PermitRootLogin=prohibit-password", "-o", "PasswordAuthentication=no", "-o", "KbdInteractiveAuthentication=no",
		"-o", "PermitUserEnvironment=yes", "-o", "UsePAM=no", "-o", "LogLevel=VERBOSE")
	server.Stderr = &log
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.Process.Signal(syscall.SIGTERM)
		server.Wait()
		if t.Failed() {
			t.Logf("sshd: %s", log.String())
		}
	}()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal("sshd does not listen")
		}
	}
	login := func(socket string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "ssh", "-F", "/dev/null", "-p", port, "-o", "IdentityAgent="+socket, "-o", "IdentityFile=none",
			"-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=20",
			"root@127.0.0.1", "echo logged in with $KIND")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, kind := range kinds {
		socket := start(t, filepath.Join(dir, kind+".json"))
		if out, err := login(socket); err != nil || !strings.Contains(out, "logged in with "+kind) {
			t.Errorf("%s: %v\n%s", kind, err, out)
		}
		add := exec.Command("ssh-add", "-l")
		add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		if out, err := add.CombinedOutput(); err != nil || !strings.Contains(string(out), "cardno:") {
			t.Errorf("ssh-add: %v\n%s", err, out)
		}
	}
	// A card whose key the server does not know.
	stranger := filepath.Join(dir, "stranger.json")
	if _, err := opencard.MakeCard(stranger, stranger+".asc", "ed25519", "Eve"); err != nil {
		t.Fatal(err)
	}
	if out, err := login(start(t, stranger)); err == nil || !strings.Contains(out, "Permission denied") {
		t.Errorf("a stranger: %v\n%s", err, out)
	}
}
