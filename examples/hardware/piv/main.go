// Command piv signs a file with a key on a card, either in a slot of a PIV card
// (a YubiKey, through piv-go) or in one of an OpenPGP card: what signs sees no
// more than a crypto.Signer.
//
//	piv -list
//	piv -key piv:9c -pub key.pem -o letter.sig letter
//	piv -key openpgp:sign -reader Nitrokey -pub key.pem -o letter.sig letter
//	openssl dgst -sha256 -verify key.pem -signature letter.sig letter
//
// It is a module of its own because piv-go needs C and libpcsclite; the OpenPGP
// side needs neither.
package main

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/go-piv/piv-go/v2/piv"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/keycard"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fs := flag.NewFlagSet("piv", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	list := fs.Bool("list", false, "list the readers, and end")
	key := fs.String("key", "", "`key` to use: piv:9a, piv:9c, piv:9d, piv:9e, openpgp:sign or openpgp:auth")
	reader := fs.String("reader", "", opencard.ReaderUsage)
	pub := fs.String("pub", "", "write the public key (PEM) to this `file`")
	out := fs.String("o", "", "write the signature to this `file`; default standard output")
	var f opencard.Flags
	f.Add(fs, stdin, stderr)
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "usage: piv -key KEY [flags] [FILE]\n       piv -list\n\nSigns FILE or standard input with a key on a PIV or an OpenPGP card: RSA with\nPKCS #1 1.5 and ECDSA over SHA-256, or Ed25519.\n\nflags:")
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return 0
	}
	var open func(context.Context, *opencard.Flags, string) (crypto.Signer, func() error, error)
	if err == nil && !*list {
		open, err = parseKey(*key)
	}
	if err == nil && fs.NArg() > 1 {
		err = errors.New("more than one file")
	}
	if err != nil {
		fmt.Fprintln(stderr, "piv:", opencard.Line(err))
		return 2
	}
	if *list {
		err = listReaders(stdout)
	} else {
		err = func() error {
			if fs.NArg() == 1 {
				file, err := os.Open(fs.Arg(0))
				if err != nil {
					return err
				}
				defer file.Close()
				stdin = file
			}
			signer, closeCard, err := open(ctx, &f, *reader)
			if err != nil {
				return err
			}
			defer closeCard()
			return sign(signer, stdin, *pub, *out, stdout)
		}()
	}
	if err != nil {
		fmt.Fprintln(stderr, "piv:", opencard.Line(err))
		return 1
	}
	return 0
}

// sign is the whole program as far as it does not matter what the card is.
func sign(key crypto.Signer, in io.Reader, pub, outName string, stdout io.Writer) error {
	message, err := io.ReadAll(io.LimitReader(in, 64<<20))
	if err != nil {
		return err
	}
	digest := sha256.Sum256(message)
	var sig []byte
	ok := false
	switch p := key.Public().(type) {
	case ed25519.PublicKey:
		if sig, err = key.Sign(rand.Reader, message, crypto.Hash(0)); err == nil {
			ok = ed25519.Verify(p, message, sig)
		}
	case *ecdsa.PublicKey:
		if sig, err = key.Sign(rand.Reader, digest[:], crypto.SHA256); err == nil {
			ok = ecdsa.VerifyASN1(p, digest[:], sig)
		}
	case *rsa.PublicKey:
		if sig, err = key.Sign(rand.Reader, digest[:], crypto.SHA256); err == nil {
			ok = rsa.VerifyPKCS1v15(p, crypto.SHA256, digest[:], sig) == nil
		}
	default:
		err = fmt.Errorf("a %T does not sign", p)
	}
	if err == nil && !ok {
		err = errors.New("the card's signature does not fit its public key")
	}
	if err != nil {
		return err
	}
	if pub != "" {
		der, err := x509.MarshalPKIXPublicKey(key.Public())
		if err != nil {
			return err
		}
		p, err := opencard.Create(pub, nil)
		if err != nil {
			return err
		}
		if err := p.Finish(pem.Encode(p, &pem.Block{Type: "PUBLIC KEY", Bytes: der})); err != nil {
			return err
		}
	}
	out, err := opencard.Create(outName, stdout)
	if err != nil {
		return err
	}
	_, err = out.Write(sig)
	return out.Finish(err)
}

// parseKey returns the function that opens the key.
func parseKey(s string) (func(context.Context, *opencard.Flags, string) (crypto.Signer, func() error, error), error) {
	kind, name, _ := strings.Cut(s, ":")
	switch kind {
	case "openpgp":
		slot, err := keycard.ParseSlot(name)
		if err != nil || slot != keycard.SlotSign && slot != keycard.SlotAuth {
			return nil, fmt.Errorf("-key %q: want openpgp:sign or openpgp:auth", s)
		}
		return func(ctx context.Context, f *opencard.Flags, reader string) (crypto.Signer, func() error, error) {
			return openPGP(ctx, f, reader, slot)
		}, nil
	case "piv":
		for _, slot := range []piv.Slot{piv.SlotAuthentication, piv.SlotSignature, piv.SlotKeyManagement, piv.SlotCardAuthentication} {
			if slot.String() == name {
				return func(ctx context.Context, f *opencard.Flags, reader string) (crypto.Signer, func() error, error) {
					return openPIV(ctx, f, reader, slot)
				}, nil
			}
		}
	}
	return nil, fmt.Errorf("-key %q: want piv:9a, piv:9c, piv:9d, piv:9e, openpgp:sign or openpgp:auth", s)
}

func openPGP(ctx context.Context, f *opencard.Flags, reader string, slot keycard.Slot) (crypto.Signer, func() error, error) {
	card, err := f.Open(ctx, reader)
	if err != nil {
		return nil, nil, err
	}
	key, err := card.Key(ctx, slot, nil)
	if err != nil {
		card.Close()
		return nil, nil, err
	}
	return key.WithContext(ctx), card.Close, nil
}

func openPIV(ctx context.Context, f *opencard.Flags, reader string, slot piv.Slot) (crypto.Signer, func() error, error) {
	names, err := piv.Cards()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if !strings.Contains(strings.ToLower(name), strings.ToLower(reader)) {
			continue
		}
		yk, err := piv.Open(name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: no PIV card: %w", name, err)
		}
		key, err := pivKey(ctx, f, yk, slot)
		if err != nil {
			yk.Close()
			return nil, nil, fmt.Errorf("%s: slot %v: %w", name, slot, err)
		}
		return key, yk.Close, nil
	}
	return nil, nil, fmt.Errorf("no reader with a card is called %q", reader)
}

// pivKey takes the public key from the slot's certificate, or from what the
// card says about a key that it made itself.
func pivKey(ctx context.Context, f *opencard.Flags, yk *piv.YubiKey, slot piv.Slot) (crypto.Signer, error) {
	var pub crypto.PublicKey
	if cert, err := yk.Certificate(slot); err == nil {
		pub = cert.PublicKey
	} else if info, err := yk.KeyInfo(slot); err == nil {
		pub = info.PublicKey
	} else {
		return nil, err
	}
	auth := piv.KeyAuth{PINPrompt: func() (string, error) {
		return f.Ask(ctx, "PIV PIN")
	}}
	key, err := yk.PrivateKey(slot, pub, auth)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("a %T does not sign", key)
	}
	return signer, nil
}

// listReaders prints the readers that hold a card, one a line, as PC/SC calls
// them.
func listReaders(w io.Writer) error {
	names, err := piv.Cards()
	if err != nil {
		return err
	}
	for _, n := range names {
		fmt.Fprintln(w, n)
	}
	return nil
}
