// Command carddecrypt opens OpenPGP messages with the decryption key on a card:
//
//	carddecrypt -cert key.asc <message.asc
//	carddecrypt -reader soft:card.json -cert key.asc -from friends.asc -o plain message.pgp
//
// Signatures are checked with the certificates of -cert and -from. Nothing is
// written before the whole message has proved intact; a bad signature, or with
// -from one by somebody else, is an error too.
package main

import (
	"bufio"
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
	"signalbox.example/keycard/pgp"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	fs := flag.NewFlagSet("carddecrypt", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	reader := fs.String("reader", "", opencard.ReaderUsage)
	cert := fs.String("cert", "", "`file` with the certificate whose key is on the card")
	from := fs.String("from", "", "`file` with certificates of those who may have signed; the message must be signed then")
	out := fs.String("o", "", "write to this `file`; default standard output")
	var f opencard.Flags
	f.Add(fs, stdin, stderr)
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "usage: carddecrypt -cert FILE [flags] [MESSAGE]\n\nDecrypts MESSAGE or standard input, armored or not, with the key on a card.\n\nflags:")
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return 0
	}
	if err == nil && *cert == "" {
		err = errors.New("-cert is needed")
	}
	if err == nil && fs.NArg() > 1 {
		err = errors.New("more than one message")
	}
	if err != nil {
		fmt.Fprintln(stderr, "carddecrypt:", opencard.Line(err))
		return 2
	}
	if fs.NArg() == 1 {
		in, err := os.Open(fs.Arg(0))
		if err != nil {
			fmt.Fprintln(stderr, "carddecrypt:", opencard.Line(err))
			return 1
		}
		defer in.Close()
		stdin = in
	}
	by, err := decrypt(ctx, &f, *reader, *cert, *from, *out, stdin, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "carddecrypt:", opencard.Line(err))
		return 1
	}
	fmt.Fprintln(stderr, "carddecrypt:", by)
	return 0
}

// decrypt returns a line about the signature.
func decrypt(ctx context.Context, f *opencard.Flags, reader, cert, from, outName string, in io.Reader, stdout io.Writer) (by string, err error) {
	list, err := opencard.ReadCertificates(cert)
	if err != nil {
		return "", err
	}
	var friends openpgp.EntityList
	if from != "" {
		if friends, err = opencard.ReadCertificates(from); err != nil {
			return "", err
		}
	}
	card, err := f.Open(ctx, reader)
	if err != nil {
		return "", err
	}
	defer card.Close()
	var bound []*pgp.Binding
	for _, e := range list {
		b, e := pgp.Bind(ctx, card, e, nil)
		if e != nil {
			err = e
			continue
		}
		bound = append(bound, b)
	}
	if bound == nil {
		return "", err
	}
	message := bufio.NewReader(in)
	var r io.Reader = message
	if b, err := message.Peek(1); err == nil && b[0]&0x80 == 0 {
		a, err := armor.Decode(message)
		if err != nil {
			return "", fmt.Errorf("no armored message: %w", err)
		}
		r = a.Body
	}
	md, err := pgp.Decrypt(ctx, r, bound, append(friends, list...), nil)
	if err != nil {
		return "", err
	}
	// What is not checked yet waits in a file that nobody else can read.
	tmp, err := os.CreateTemp("", "carddecrypt*")
	if err != nil {
		return "", err
	}
	defer tmp.Close()
	if err := os.Remove(tmp.Name()); err != nil { // it lives as long as it is open
		defer os.Remove(tmp.Name())
	}
	if _, err := io.Copy(tmp, md.UnverifiedBody); err != nil {
		return "", err
	}
	switch {
	case !md.IsSigned:
		by = "not signed"
	case md.SignedBy == nil:
		by = fmt.Sprintf("signed by an unknown key, %016X", md.SignedByKeyId)
	case md.SignatureError != nil:
		return "", fmt.Errorf("bad signature: %w", md.SignatureError)
	default:
		by = fmt.Sprintf("good signature by %X", md.SignedBy.PublicKey.Fingerprint)
	}
	if from != "" && (md.SignedBy == nil || len(friends.KeysById(md.SignedBy.PublicKey.KeyId)) == 0) {
		return "", errors.New(by + ", not by one of " + from)
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	out, err := opencard.Create(outName, stdout)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(out, tmp)
	return by, out.Finish(err)
}
