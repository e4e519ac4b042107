package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"signalbox.example/examples/internal/opencard"
)

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	card := filepath.Join(dir, "card.json")
	if _, err := opencard.MakeCard(card, filepath.Join(dir, "key.asc"), "ed25519", "Alice"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args           string
		status         int
		stdout, stderr string
	}{
		{"-h", 0, "usage: cardssh", ""},
		{"", 2, "", "either -socket or -print"},
		{"-print -socket x", 2, "", "either -socket or -print"},
		{"-print x", 2, "", "either -socket or -print"},
		{"-print -reader soft:" + filepath.Join(dir, "blank.json"), 1, "", "no usable key"},
		{"-print -reader soft:" + card, 0, "ssh-ed25519 AAAA", ""},
		{"-socket " + card + " -reader soft:" + card, 1, "", "exists"},
	} {
		var out, errs bytes.Buffer
		got := run(t.Context(), strings.Fields(tt.args), strings.NewReader(""), &out, &errs)
		if got != tt.status || !strings.Contains(out.String(), tt.stdout) || !strings.Contains(errs.String(), tt.stderr) {
			t.Errorf("%s: %d\n%s\n%s", tt.args, got, out.String(), errs.String())
		}
		if tt.status == 0 && tt.args != "-h" {
			if _, comment, _, _, err := ssh.ParseAuthorizedKey(out.Bytes()); err != nil || !strings.HasPrefix(comment, "cardno:D276") {
				t.Errorf("%v, %q", err, out.String())
			}
		}
	}
}

// start runs the agent for a card and returns its socket. It ends with the
// test.
func start(t *testing.T, card string, flags ...string) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	var errs bytes.Buffer
	go func() {
		done <- run(ctx, append([]string{"-socket", socket, "-reader", "soft:" + card}, flags...), strings.NewReader(""), nil, &errs)
	}()
	t.Cleanup(func() {
		cancel()
		if status := <-done; status != 0 {
			t.Errorf("status %d: %s", status, errs.String())
		}
	})
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return socket
		}
		if time.Now().After(end) {
			t.Fatal("no agent: ", errs.String())
		}
	}
}

func TestAgent(t *testing.T) {
	for _, kind := range []string{"rsa2048", "nistp256", "nistp384", "nistp521", "ed25519"} {
		for _, keep := range []string{"-keep=false", "-keep"} {
			card := filepath.Join(t.TempDir(), "card.json")
			if _, err := opencard.MakeCard(card, card+".asc", kind, "Alice"); err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("unix", start(t, card, keep))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			c := agent.NewClient(conn)
			keys, err := c.List()
			if err != nil || len(keys) != 1 {
				t.Fatal(err)
			}
			data := make([]byte, 300)
			rand.Read(data)
			pub, err := ssh.ParsePublicKey(keys[0].Blob)
			if err != nil {
				t.Fatal(err)
			}
			flags := []agent.SignatureFlags{0}
			if kind == "rsa2048" {
				flags = []agent.SignatureFlags{0, agent.SignatureFlagRsaSha256, agent.SignatureFlagRsaSha512}
			}
			formats := ""
			for _, f := range flags {
				sig, err := c.SignWithFlags(keys[0], data, f)
				if err != nil {
					t.Fatal(err)
				}
				if err := pub.Verify(data, sig); err != nil {
					t.Error(err)
				}
				formats += sig.Format + " "
			}
			if kind == "rsa2048" && formats != "ssh-rsa rsa-sha2-256 rsa-sha2-512 " {
				t.Error(formats)
			}
			// What an agent with a card does not do.
			if c.RemoveAll() == nil || c.Lock([]byte("x")) == nil {
				t.Error("changed what is on the card")
			}
		}
	}
}
