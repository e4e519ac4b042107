//go:build unix

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestInterruptedPipe: neither opening a named pipe that nobody writes to nor
// reading an idle one holds up an interrupt.
func TestInterruptedPipe(t *testing.T) {
	for _, written := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		// Reading and writing does not wait for the other side.
		if written {
			w, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Skip(err)
			}
			defer w.Close()
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan int)
		go func() {
			var out, errs bytes.Buffer
			done <- runContext(ctx, []string{"-in", path, "-format", "avr"}, nil, &out, &errs)
		}()
		time.Sleep(50 * time.Millisecond)
		cancel()
		select {
		case status := <-done:
			if status != 0 {
				t.Errorf("status %d", status)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("an interrupt is ignored, pipe written: %v", written)
		}
		if !written { // let go whoever waits in open
			if w, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0); err == nil {
				w.Close()
			}
		}
	}
}
