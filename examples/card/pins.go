package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"signalbox.example/keycard"
)

// pins answers requests for PINs from a file or the terminal.
type pins struct {
	file   string
	in     io.Reader
	prompt io.Writer
	text   []byte
}

// key is the word before "=" in the file.
func key(m keycard.PINMode) string {
	switch m {
	case keycard.PINAdmin:
		return "admin"
	case keycard.ResetCode:
		return "reset-code"
	}
	return "user"
}

// ask is the keycard.PINFunc.
func (p *pins) ask(_ context.Context, r keycard.PINRequest) (*keycard.PIN, error) {
	label := fmt.Sprintf("%v of card %s (%d tries left)", r.Mode, r.Card, r.Retries)
	return p.get(key(r.Mode), label)
}

// get returns the line "key=..." of the file, or asks with the label.
func (p *pins) get(key, label string) (*keycard.PIN, error) {
	if p.file == "" {
		return p.terminal(label)
	}
	if p.text == nil {
		b, err := os.ReadFile(p.file)
		if err != nil {
			return nil, err
		}
		p.text = b
	}
	for line := range bytes.Lines(p.text) {
		if v, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte(key+"=")); ok {
			return keycard.NewPIN(bytes.Clone(v)), nil
		}
	}
	return nil, fmt.Errorf("no line %s= in %s", key, p.file)
}

// getNew asks for a new PIN, twice on a terminal.
func (p *pins) getNew(label string) (*keycard.PIN, error) {
	a, err := p.get("new", "new "+label)
	if err != nil || p.file != "" {
		return a, err
	}
	b, err := p.terminal("new " + label + " again")
	if err != nil {
		return nil, err
	}
	defer b.Clear()
	if !a.Equal(b) {
		a.Clear()
		return nil, errors.New("the two differ")
	}
	return a, nil
}

func (p *pins) terminal(label string) (*keycard.PIN, error) {
	f, ok := p.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err != nil {
			return nil, errors.New("no terminal to ask for a PIN: use -pin-file")
		}
		defer tty.Close()
		f = tty
	}
	fmt.Fprintf(p.prompt, "%s: ", label)
	b, err := term.ReadPassword(int(f.Fd()))
	fmt.Fprintln(p.prompt)
	if err != nil {
		return nil, err
	}
	return keycard.NewPIN(b), nil
}

func (p *pins) clear() { clear(p.text) }
