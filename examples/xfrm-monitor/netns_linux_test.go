package main

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"signalbox.example/internal/need"
	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

func TestIntegrationMonitor(t *testing.T) {
	need.Asked(t, "netns")
	need.Root(t, "netns")
	runtime.LockOSThread() // and never unlocked: the namespace ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		need.Missing(t, "netns", err.Error())
	}
	c, err := conn.Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// The changes come from elsewhere while run listens here.
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		p := &xfrm.Policy{Sel: xfrm.Selector{Family: xfrm.IPv4}, Dir: xfrm.Out}
		for ctx.Err() == nil { // until it has seen enough
			if err := c.UpdatePolicy(ctx, p); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		done <- nil
	}()
	var out, errs bytes.Buffer
	if code := run([]string{"-n", "3", "-for", "20s", "policy"}, nil, &out, &errs); code != 0 || errs.Len() > 0 {
		t.Errorf("%d %s", code, errs.String())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	if len(lines) != 3 {
		t.Errorf("%d lines: %s", len(lines), out.Bytes())
	}
	for _, l := range lines {
		var v struct {
			Event string
			Data  struct{ Policy struct{ Dir string } }
		}
		if err := json.Unmarshal(l, &v); err != nil || v.Event != "updpolicy" || v.Data.Policy.Dir != "out" {
			t.Errorf("%s %v", l, err)
		}
	}
}
