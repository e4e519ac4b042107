// Command softcard puts a software OpenPGP card into the virtual reader of
// vsmartcard's vpcd, so that gpg and every other PC/SC program sees a card:
//
//	pcscd                                   # with the vpcd driver installed
//	softcard -vpcd 127.0.0.1:35963 -file card.json
//	gpg --card-status
//
// The card keeps keys and PINs readable in memory and in its file. It is a
// test double, not a vault.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"time"

	"signalbox.example/keycard/softcard"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("softcard", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	vpcd := fs.String("vpcd", "127.0.0.1:35963", "connect to the vpcd reader at this `address`")
	file := fs.String("file", "", "keep the card's state in this `file` (keys and PINs readable)")
	kind := fs.String("kind", "3.4", "card to play: `3.4`, 3.4-chaining or 2.0")
	serial := fs.String("serial", "", "serial `number`, eight hexadecimal digits (default random)")
	attest := fs.Bool("attest", false, "give the card an attestation key")
	again := fs.Bool("again", false, "connect again when pcscd hangs up")
	fs.Usage = func() {
		fmt.Fprintln(fs.Output(), "usage: softcard [flags]\n\nPuts a software OpenPGP card into vpcd's virtual reader. PINs are 123456 and 12345678.\nA test double, not a vault.")
		fs.PrintDefaults()
	}
	if err := fs.Parse(args); err == flag.ErrHelp {
		fs.SetOutput(stdout)
		fs.Usage()
		return 0
	} else if err != nil {
		fmt.Fprintln(stderr, "softcard:", err)
		return 2
	}
	usage := func(what string) int {
		fmt.Fprintf(stderr, "softcard: %s\n", what)
		return 2
	}
	if fs.NArg() > 0 {
		return usage(fmt.Sprintf("unexpected argument %q", fs.Arg(0)))
	}
	cfg := softcard.Config{File: *file, Attestation: *attest}
	switch *kind {
	case "3.4":
	case "3.4-chaining":
		cfg.Personality = softcard.V34Chaining
	case "2.0":
		cfg.Personality = softcard.V20
	default:
		return usage(fmt.Sprintf("no kind %q", *kind))
	}
	if *serial != "" {
		n, err := strconv.ParseUint(*serial, 16, 32)
		if err != nil {
			return usage(fmt.Sprintf("serial number %q", *serial))
		}
		cfg.Serial = uint32(n)
	}
	c, err := softcard.New(cfg)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	fmt.Fprintf(stdout, "card %08X, reader %s\n", c.SerialNumber(), *vpcd)
	for {
		err := c.ServeVPCD(ctx, *vpcd)
		switch {
		case err == nil || ctx.Err() != nil:
			return 0
		case errors.Is(err, io.EOF) && !*again:
			return 0
		case !*again:
			fmt.Fprintln(stderr, err)
			return 1
		}
		select {
		case <-ctx.Done():
			return 0
		case <-time.After(200 * time.Millisecond):
		}
	}
}
