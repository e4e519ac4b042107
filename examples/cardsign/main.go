// Command cardsign signs a file with the signature key on an OpenPGP card, in
// the forms that gpg has:
//
//	cardsign -cert key.asc letter.txt                 # detached, to letter.txt.sig
//	cardsign -cert key.asc -clear <letter >letter.asc
//	cardsign -cert key.asc -inline <data >signed.pgp
//	cardsign -reader soft:card.json -cert key.asc -armor -o sig.asc letter.txt
//
// The certificate says which key is meant. Without -cert it is fetched from
// the URL that the card names.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/keycard"
	"signalbox.example/keycard/pgp"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	fs := flag.NewFlagSet("cardsign", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.reader, "reader", "", opencard.ReaderUsage)
	fs.StringVar(&o.cert, "cert", "", "`file` with the certificate; default what the card's URL gives")
	fs.StringVar(&o.out, "o", "", "write to this `file`; default FILE.sig, or standard output")
	fs.BoolVar(&o.clear, "clear", false, "sign text in the clear")
	fs.BoolVar(&o.inline, "inline", false, "make a signed message")
	fs.BoolVar(&o.text, "text", false, "detached: any line ends count as CR LF")
	fs.BoolVar(&o.armor, "armor", false, "write ASCII armor")
	var f opencard.Flags
	f.Add(fs, stdin, stderr)
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "usage: cardsign [flags] [FILE]\n\nSigns FILE or standard input with the signature key on a card.\n\nflags:")
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return 0
	}
	if err == nil && (fs.NArg() > 1 || o.clear && o.inline || (o.clear || o.inline) && o.text) {
		err = errors.New("too many arguments, or -clear, -inline and -text together")
	}
	if err != nil {
		fmt.Fprintln(stderr, "cardsign:", opencard.Line(err))
		return 2
	}
	if fs.NArg() == 1 {
		in, err := os.Open(fs.Arg(0))
		if err != nil {
			fmt.Fprintln(stderr, "cardsign:", opencard.Line(err))
			return 1
		}
		defer in.Close()
		stdin = in
		if o.out == "" {
			o.out = fs.Arg(0) + ".sig"
			if o.armor || o.clear {
				o.out = fs.Arg(0) + ".asc"
			} else if o.inline {
				o.out = fs.Arg(0) + ".pgp"
			}
		}
	}
	if err := sign(ctx, &f, o, stdin, stdout); err != nil {
		fmt.Fprintln(stderr, "cardsign:", opencard.Line(err))
		return 1
	}
	return 0
}

type options struct {
	reader, cert, out          string
	clear, inline, text, armor bool
}

func sign(ctx context.Context, f *opencard.Flags, o options, in io.Reader, stdout io.Writer) (err error) {
	card, err := f.Open(ctx, o.reader)
	if err != nil {
		return err
	}
	defer card.Close()
	b, err := bind(ctx, card, o.cert)
	if err != nil {
		return err
	}
	out, err := opencard.Create(o.out, stdout)
	if err != nil {
		return err
	}
	defer func() { err = out.Finish(err) }()
	if o.clear {
		return b.ClearSign(ctx, out, in, nil)
	}
	if o.inline {
		return armored(out, "PGP MESSAGE", o.armor, func(to io.Writer) error {
			w, err := b.Sign(ctx, to, nil, nil)
			if err != nil {
				return err
			}
			if _, err := io.Copy(w, in); err != nil {
				return err
			}
			return w.Close()
		})
	}
	var sig bytes.Buffer // no armor around a signature that fails
	if o.text {
		err = b.DetachSignText(ctx, &sig, in, nil)
	} else {
		err = b.DetachSign(ctx, &sig, in, nil)
	}
	if err != nil {
		return err
	}
	return armored(out, "PGP SIGNATURE", o.armor, func(to io.Writer) error {
		_, err := to.Write(sig.Bytes())
		return err
	})
}

// armored lets f write to out, with an armor around it if on is set. After an
// error the armor has no end.
func armored(out io.Writer, kind string, on bool, f func(io.Writer) error) error {
	if !on {
		return f(out)
	}
	a, err := armor.Encode(out, kind, nil)
	if err == nil {
		err = f(a)
	}
	if err == nil {
		err = a.Close()
	}
	if err == nil {
		_, err = io.WriteString(out, "\n")
	}
	return err
}

// bind finds the certificate, in a file or by the card's URL, that belongs to
// the card's signature key.
func bind(ctx context.Context, card *keycard.Card, name string) (*pgp.Binding, error) {
	var list openpgp.EntityList
	var err error
	if name != "" {
		list, err = opencard.ReadCertificates(name)
	} else {
		var b []byte
		if b, err = card.FetchKey(ctx, nil, 1<<20); err == nil {
			list, err = opencard.ParseCertificates(bytes.NewReader(b))
		}
	}
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		var b *pgp.Binding
		if b, err = pgp.Bind(ctx, card, e, nil); err == nil {
			return b, nil
		}
	}
	return nil, err
}
