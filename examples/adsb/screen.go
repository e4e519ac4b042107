package main

import (
	"bytes"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// Control sequences of the terminal: the other screen without cursor, and
// back.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// screen shows the table on the terminal once a second until stop is called,
// which restores the terminal and leaves the last table on it.
func (rx *receiver) screen(stdout io.Writer) (stop func(), err error) {
	f, ok := stdout.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, usage("-interactive needs a terminal; use -table")
	}
	height := func() int {
		if _, h, err := term.GetSize(int(f.Fd())); err == nil && h > 0 {
			return h
		}
		return 24
	}
	return rx.draw(stdout, height, time.Second), nil
}

// draw does the work of screen on any writer.
func (rx *receiver) draw(w io.Writer, height func() int, interval time.Duration) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		io.WriteString(w, enterScreen)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			w.Write(frame(rx.snapshot(), height()))
			select {
			case <-done:
				io.WriteString(w, leaveScreen)
				w.Write(rx.snapshot())
				return
			case <-tick.C:
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func (rx *receiver) snapshot() []byte {
	var b bytes.Buffer
	rx.mu.Lock()
	defer rx.mu.Unlock()
	rx.tracker.WriteTable(&b, rx.now())
	return b.Bytes()
}

// frame overwrites the screen with the first lines of a table, without
// flicker.
func frame(table []byte, height int) []byte {
	out := []byte(home)
	for n := 1; len(table) > 0 && n < height; n++ {
		line, rest, _ := bytes.Cut(table, []byte{'\n'})
		out = append(append(append(out, line...), clearLine...), "\r\n"...)
		table = rest
	}
	return append(out, clearBelow...)
}
