// Command card looks after an OpenPGP card: status, cardholder, PINs, keys,
// signatures, certificates, reset. It works on readers through pcscd, on the
// card that gpg is using, on a software card and on recordings:
//
//	card status
//	card -reader scd status
//	card -reader soft:card.json generate sign ed25519
//	card -reader soft:card.json sign <message >signature
//	card -reader replay:session.apdu status
//
// PINs are asked for on the terminal, without echo, or read from a file of
// lines such as "user=123456", "admin=12345678", "reset-code=...",
// "new=..." with -pin-file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"signalbox.example/keycard"
	"signalbox.example/keycard/pcscd"
	"signalbox.example/keycard/replay"
	"signalbox.example/keycard/scd"
	"signalbox.example/keycard/softcard"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

const help = `usage: card [flags] COMMAND [arguments]

  status [-json]               what the card says about itself, and its keys
  holder [flags]               show or set name, language, salutation, URL, login
  pin [-admin|-reset-code]     change the PIN, the Admin PIN or the resetting code
  unblock [-reset-code]        set a new PIN, by the Admin PIN or the resetting code
  generate SLOT ALGORITHM      make a key on the card (rsa2048, nistp256, ed25519, ...)
  import SLOT FILE             put a private key (PKCS #8, PEM) onto the card
  sign [flags] [FILE]          sign a file or standard input with the signature key
  auth [flags] [FILE]          the same with the authentication key
  decrypt [FILE]               RSA: decrypt; elliptic curves: shared secret with a
                               public key (PEM)
  cert SLOT [read|write FILE|delete|attest]
  reset -yes [-block]          back to the factory state, all keys are lost
  watch                        print readers and cards that come and go
  log FILE COMMAND ...         run another command and record it, PINs masked

SLOT is sign, decrypt or auth.

flags:
`

// tool is one run of the program.
type tool struct {
	ctx    context.Context
	in     io.Reader
	out    io.Writer
	err    io.Writer
	reader string
	pins   *pins
	record *replay.Recorder
	logTo  string
	file   *os.File
	opts   []keycard.Option
}

// usageError is a mistake in the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fs := flag.NewFlagSet("card", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	reader := fs.String("reader", "", "`NAME` of a reader (or a part of it), scd, soft[:FILE] or replay:FILE; default the first reader with a card")
	pinFile := fs.String("pin-file", "", "take PINs from this `file` instead of the terminal")
	lastTry := fs.Bool("last-try", false, "use a PIN's last try too")
	usage := func(w io.Writer) {
		io.WriteString(w, help)
		fs.SetOutput(w)
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		usage(stdout)
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "card:", err)
		return 2
	}
	if fs.NArg() == 0 {
		usage(stderr)
		return 2
	}
	t := &tool{ctx: ctx, in: stdin, out: stdout, err: stderr, reader: *reader, pins: &pins{file: *pinFile, in: stdin, prompt: stderr}}
	defer t.pins.clear()
	if *lastTry {
		t.opts = append(t.opts, keycard.WithLastTry())
	}
	err := t.dispatch(fs.Arg(0), fs.Args()[1:])
	var wrong usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, &wrong):
		fmt.Fprintln(stderr, "card:", err)
		return 2
	}
	fmt.Fprintf(stderr, "card: %s: %s\n", fs.Arg(0), strings.ReplaceAll(err.Error(), "\n", "; "))
	return 1
}

func (t *tool) dispatch(name string, args []string) error {
	commands := map[string]func([]string) error{
		"status": t.status, "holder": t.holder, "pin": t.pin, "unblock": t.unblock,
		"generate": t.generate, "import": t.importKey, "decrypt": t.decrypt,
		"sign": func(a []string) error { return t.sign("sign", keycard.SlotSign, a) },
		"auth": func(a []string) error { return t.sign("auth", keycard.SlotAuth, a) },
		"cert": t.cert, "reset": t.reset, "watch": t.watch, "log": t.log,
	}
	f := commands[name]
	if f == nil {
		return usageError(fmt.Sprintf("no command %q (card -h lists them)", name))
	}
	return f(args)
}

// flags parses a command's own flags and wants so many arguments.
func (t *tool) flags(name string, args []string, least, most int, define func(*flag.FlagSet)) ([]string, error) {
	fs := flag.NewFlagSet("card "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if define != nil {
		define(fs)
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fs.SetOutput(t.out)
		fmt.Fprintf(t.out, "usage: card [flags] %s [flags] [arguments]\n", name)
		fs.PrintDefaults()
		return nil, err
	} else if err != nil {
		return nil, usageError(name + ": " + err.Error())
	}
	if n := fs.NArg(); n < least || n > most {
		return nil, usageError(fmt.Sprintf("%s: %d arguments (card -h tells which)", name, n))
	}
	return fs.Args(), nil
}

// transport reaches the card.
func (t *tool) transport() (keycard.Transport, error) {
	kind, file, _ := strings.Cut(t.reader, ":")
	var tr keycard.Transport
	var err error
	switch kind {
	case "scd":
		tr, err = scd.Dial(t.ctx, file)
	case "soft":
		tr, err = softcard.New(softcard.Config{File: file})
	case "replay":
		var f *os.File
		if f, err = os.Open(file); err == nil {
			var s *replay.Session
			if s, err = replay.Parse(f); err == nil {
				tr = s.Play(replay.Loose)
			}
			f.Close()
		}
	default:
		tr, err = pcscd.Connect(t.ctx, t.reader, pcscd.Shared)
	}
	if err != nil {
		return nil, err
	}
	if t.logTo != "" {
		if t.file, err = os.OpenFile(t.logTo, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			tr.Close()
			return nil, err
		}
		t.record = replay.NewRecorder(tr, t.file)
		tr = t.record.Transport()
	}
	return tr, nil
}

// finish closes the recording, if there is one.
func (t *tool) finish() error {
	if t.record == nil {
		return nil
	}
	return errors.Join(t.record.Err(), t.file.Close())
}

// open opens the card, runs f on it and closes it.
func (t *tool) open(f func(c *keycard.Card) error) error {
	tr, err := t.transport()
	if err != nil {
		return err
	}
	opts := append([]keycard.Option{
		keycard.WithPINs(t.pins.ask),
		keycard.WithTouch(0, func(s keycard.Slot, waiting bool) {
			if waiting {
				fmt.Fprintf(t.err, "touch the card (%v key)\n", s)
			}
		}),
	}, t.opts...)
	c, err := keycard.Open(t.ctx, tr, opts...)
	if err == nil {
		err = f(c)
		if e := c.Close(); err == nil {
			err = e
		}
	}
	if e := t.finish(); err == nil {
		err = e
	}
	return err
}
