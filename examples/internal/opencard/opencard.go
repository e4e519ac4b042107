// Package opencard is what the examples about card keys have in common: flags
// that choose a card, PINs from a file or the terminal, certificates from
// files.
package opencard

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	"golang.org/x/term"

	"signalbox.example/keycard"
	"signalbox.example/keycard/pcscd"
	"signalbox.example/keycard/scd"
	"signalbox.example/keycard/softcard"
)

// Flags choose a card.
type Flags struct {
	PINFile string
	LastTry bool

	in     io.Reader
	prompt io.Writer
}

// Add defines -pin-file and -last-try. Questions go to prompt and their
// answers are read from in if that is a terminal.
func (f *Flags) Add(fs *flag.FlagSet, in io.Reader, prompt io.Writer) {
	f.in, f.prompt = in, prompt
	fs.StringVar(&f.PINFile, "pin-file", "", "take PINs from this `file`: lines user=... and admin=...; default the terminal, for soft cards 123456 and 12345678")
	fs.BoolVar(&f.LastTry, "last-try", false, "use a PIN's last try too")
}

// ReaderUsage describes what Open takes.
const ReaderUsage = "`NAME` of a reader (or a part of it), scd for the card that gpg is using, soft:FILE for a software card; default the first reader with a card"

// Open opens the card in a reader. Touches that the card waits for are
// announced.
func (f *Flags) Open(ctx context.Context, reader string) (*keycard.Card, error) {
	var t keycard.Transport
	var err error
	ask := f.ask
	switch file, soft := strings.CutPrefix(reader, "soft:"); {
	case soft:
		t, err = softcard.New(softcard.Config{File: file})
		if f.PINFile == "" {
			ask = keycard.StaticPIN(keycard.PINString("123456"), keycard.PINString("12345678"))
		}
	case reader == "scd":
		t, err = scd.Dial(ctx, "")
	default:
		t, err = pcscd.Connect(ctx, reader, pcscd.Shared)
	}
	if err != nil {
		return nil, err
	}
	opts := []keycard.Option{keycard.WithPINs(ask), keycard.WithTouch(0, func(slot keycard.Slot, waiting bool) {
		if waiting {
			fmt.Fprintf(f.prompt, "touch the card to use its %v key\n", slot)
		}
	})}
	if f.LastTry {
		opts = append(opts, keycard.WithLastTry())
	}
	return keycard.Open(ctx, t, opts...)
}

// ask is the keycard.PINFunc.
func (f *Flags) ask(_ context.Context, r keycard.PINRequest) (*keycard.PIN, error) {
	name := "user"
	if r.Mode == keycard.PINAdmin {
		name = "admin"
	}
	if f.PINFile != "" {
		b, err := os.ReadFile(f.PINFile)
		if err != nil {
			return nil, err
		}
		defer clear(b)
		for line := range bytes.Lines(b) {
			if v, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte(name+"=")); ok {
				return keycard.NewPIN(bytes.Clone(v)), nil
			}
		}
		return nil, fmt.Errorf("no line %s= in %s", name, f.PINFile)
	}
	b, err := f.terminal(fmt.Sprintf("%v of card %s (%d tries left): ", r.Mode, r.Card, r.Retries))
	if err != nil {
		return nil, err
	}
	return keycard.NewPIN(b), nil
}

// Ask asks for the PIN of a card of another kind, on the terminal.
func (f *Flags) Ask(_ context.Context, what string) (string, error) {
	b, err := f.terminal(what + ": ")
	return string(b), err
}

func (f *Flags) terminal(question string) ([]byte, error) {
	tty, ok := f.in.(*os.File)
	if !ok || !term.IsTerminal(int(tty.Fd())) {
		return nil, errors.New("no terminal to ask for the PIN on; use -pin-file")
	}
	fmt.Fprint(f.prompt, question)
	b, err := term.ReadPassword(int(tty.Fd()))
	fmt.Fprintln(f.prompt)
	return b, err
}

// ReadCertificates reads a file of certificates, armored or not.
func ReadCertificates(name string) (openpgp.EntityList, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := ParseCertificates(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return list, nil
}

// ParseCertificates reads certificates, armored or not, at least one.
func ParseCertificates(r io.Reader) (openpgp.EntityList, error) {
	read := openpgp.ReadKeyRing
	in := bufio.NewReader(r)
	if b, err := in.Peek(1); err == nil && b[0]&0x80 == 0 {
		read = openpgp.ReadArmoredKeyRing
	}
	list, err := read(in)
	if err == nil && len(list) == 0 { // an empty file is no error to go-crypto
		err = errors.New("no certificates in it")
	}
	return list, err
}

// Output is a file that gets its name only when it is complete, or a writer.
type Output struct {
	tmp  *os.File
	name string
	w    io.Writer
}

// Create starts the output: a temporary file beside name, or w if name is
// empty.
func Create(name string, w io.Writer) (*Output, error) {
	if name == "" {
		return &Output{w: w}, nil
	}
	// Renaming over a device or link (/dev/stdout) would replace it.
	if fi, err := os.Lstat(name); err == nil && !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), ".new*")
	if err != nil {
		return nil, err
	}
	return &Output{tmp, name, tmp}, nil
}

// Write is part of io.Writer.
func (o *Output) Write(p []byte) (int, error) { return o.w.Write(p) }

// Finish gives the file its name, or, if err is not nil, removes it; it
// returns err or what went wrong.
func (o *Output) Finish(err error) error {
	if o.tmp == nil {
		return err
	}
	if e := o.tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(o.tmp.Name(), o.name)
	}
	if err != nil {
		os.Remove(o.tmp.Name())
	}
	return err
}

// Line writes an error in one line.
func Line(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
