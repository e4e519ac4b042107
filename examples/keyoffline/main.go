// Command keyoffline shows, from the first step to the last, how to keep
// OpenPGP keys on cards and the primary key off line:
//
//  1. make a temporary key in memory: a primary key that only certifies, and
//     subkeys for signatures, decryption and authentication;
//  2. write down what is to be kept off line: the secret key, its revocation
//     certificate;
//  3. put the subkeys onto several cards, each a copy of the others, and
//     compare them;
//  4. name the holder, and the URL of the public key, on each card;
//  5. list the stubs: what is on a card (">"), what is elsewhere ("#");
//  6. fetch the public key from each card's URL, and sign and decrypt with each.
//
// By default the cards are three software cards, kept in files in the output
// folder, and the URL is served from here while the program runs:
//
//	keyoffline -out keys
//	keyoffline -out keys -reader "Reader A" -reader "Reader B" -url https://example.org/key.asc -yes
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/keycard"
	"signalbox.example/keycard/pgp"
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

type options struct {
	out, name, email, algorithm, url, passphrase string
	copies                                       int
	readers                                      []string
	kind                                         packet.Config // algorithm parsed
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var o options
	fs := flag.NewFlagSet("keyoffline", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.out, "out", "", "`folder` for the results; it is made, and must be empty if it is there")
	fs.StringVar(&o.name, "name", "Olivia Offline", "`name` in the user ID and on the cards")
	fs.StringVar(&o.email, "email", "olivia@example.org", "mail `address` in the user ID")
	fs.StringVar(&o.algorithm, "algorithm", "ed25519", "`algorithm` of the keys: ed25519, nistp256, nistp384, nistp521, rsa2048, rsa3072, rsa4096")
	fs.IntVar(&o.copies, "cards", 3, "how many software cards")
	fs.StringVar(&o.url, "url", "", "URL of the public key; with real cards it is only fetched from there with -fetch")
	fs.StringVar(&o.passphrase, "passphrase-file", "", "protect the secret key with the first line of this `file`")
	fetch := fs.Bool("fetch", false, "with -url: fetch the public key from there, where it must have been put")
	yes := fs.Bool("yes", false, "with -reader: yes, lose the keys that are on the cards")
	fs.Func("reader", "`NAME` of a reader with a card, once for each card, instead of software cards", func(s string) error {
		o.readers = append(o.readers, s)
		return nil
	})
	var f opencard.Flags
	f.Add(fs, stdin, stderr)
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "usage: keyoffline -out FOLDER [flags]\n\nMakes a key, keeps its primary part off line, and puts its subkeys onto several cards.\n\nflags:")
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return 0
	}
	switch {
	case err != nil:
	case fs.NArg() > 0:
		err = errors.New("there are no arguments, only flags")
	case o.out == "":
		err = errors.New("-out is needed")
	case o.copies < 1 || o.copies > 16:
		err = fmt.Errorf("-cards %d", o.copies)
	case len(o.readers) > 0 && !*yes:
		err = errors.New("the keys on the cards will be lost: say -yes if that is meant")
	case *fetch && o.url == "":
		err = errors.New("-fetch needs -url")
	default:
		o.kind, err = parseAlgorithm(o.algorithm)
	}
	if err != nil {
		fmt.Fprintln(stderr, "keyoffline:", opencard.Line(err))
		return 2
	}
	w := &workflow{ctx: ctx, o: o, flags: &f, w: stdout, fetch: *fetch || o.url == ""}
	if err := w.run(); err != nil {
		fmt.Fprintln(stderr, "keyoffline:", opencard.Line(err))
		return 1
	}
	return 0
}

// workflow is one run of the program.
type workflow struct {
	ctx   context.Context
	o     options
	flags *opencard.Flags
	w     io.Writer
	fetch bool
	pass  []byte // none: the secret key is not protected

	key   *openpgp.Entity
	cards []*keycard.Card
}

// slots says which subkey goes where, in the order in which makeKey adds them.
var slots = [...]keycard.Slot{keycard.SlotDecrypt, keycard.SlotSign, keycard.SlotAuth}

func (w *workflow) run() (err error) {
	if name := w.o.passphrase; name != "" { // before anything is made
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		b, _, _ = bytes.Cut(b, []byte("\n"))
		if w.pass = bytes.TrimRight(b, "\r"); len(w.pass) == 0 {
			return fmt.Errorf("%s: there is no passphrase in the first line", name)
		}
	}
	if err := os.MkdirAll(w.o.out, 0o700); err != nil {
		return err
	}
	if left, err := os.ReadDir(w.o.out); err != nil {
		return err
	} else if len(left) > 0 {
		return fmt.Errorf("%s is not empty", w.o.out)
	}
	if err := w.openCards(); err != nil {
		return err
	}
	defer func() {
		for _, c := range w.cards {
			if e := c.Close(); err == nil {
				err = e
			}
		}
	}()
	for _, step := range []func() error{w.makeKey, w.keep, w.toCards, w.describe, w.stubs, w.use} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (w *workflow) openCards() error {
	readers := w.o.readers
	if len(readers) == 0 {
		for i := range w.o.copies {
			readers = append(readers, "soft:"+filepath.Join(w.o.out, fmt.Sprintf("card-%d.json", i+1)))
		}
	}
	seen := map[string]bool{}
	for _, r := range readers {
		c, err := w.flags.Open(w.ctx, r)
		if err != nil {
			return fmt.Errorf("%s: %w", r, err)
		}
		w.cards = append(w.cards, c)
		if id := c.Info().Number(); seen[id] {
			return fmt.Errorf("%s: card %s is there already", r, c.Info().Ident())
		} else {
			seen[id] = true
		}
	}
	return nil
}

// parseAlgorithm returns what go-crypto is to make.
func parseAlgorithm(name string) (cfg packet.Config, err error) {
	a, err := keycard.ParseAlgorithm(name)
	if err != nil {
		return cfg, err
	}
	curves := map[keycard.Curve]packet.Curve{keycard.P256: packet.CurveNistP256, keycard.P384: packet.CurveNistP384, keycard.P521: packet.CurveNistP521}
	switch {
	case a.ID == keycard.AlgoRSA:
		cfg.Algorithm, cfg.RSABits = packet.PubKeyAlgoRSA, a.Bits
	case a.Curve == keycard.Ed25519 || a.Curve == keycard.X25519:
		cfg.Algorithm, cfg.Curve = packet.PubKeyAlgoEdDSA, packet.Curve25519
	case curves[a.Curve] != "":
		cfg.Algorithm, cfg.Curve = packet.PubKeyAlgoECDSA, curves[a.Curve]
	default:
		return cfg, fmt.Errorf("-algorithm %s: no software here makes such keys", name)
	}
	return cfg, nil
}

// makeKey makes the temporary key.
func (w *workflow) makeKey() error {
	now := time.Now().Truncate(time.Second)
	cfg := &w.o.kind
	cfg.Time = func() time.Time { return now }
	e, err := openpgp.NewEntity(w.o.name, "", w.o.email, cfg) // with a subkey for decryption
	if err != nil {
		return err
	}
	// The primary key shall certify and nothing else.
	id := e.PrimaryIdentity()
	id.SelfSignature.FlagSign = false
	if err := id.SelfSignature.SignUserId(id.Name, e.PrimaryKey, e.PrivateKey, cfg); err != nil {
		return err
	}
	for range 2 {
		if err := e.AddSigningSubkey(cfg); err != nil {
			return err
		}
	}
	auth := &e.Subkeys[2]
	auth.Sig.FlagSign, auth.Sig.FlagAuthenticate, auth.Sig.EmbeddedSignature = false, true, nil
	if err := auth.Sig.SignKey(auth.PublicKey, e.PrivateKey, cfg); err != nil {
		return err
	}
	w.key = e
	fmt.Fprintf(w.w, "made key %X, %s\n", e.PrimaryKey.Fingerprint, id.Name)
	return nil
}

// keep writes what belongs off line, and the public key.
func (w *workflow) keep() error {
	if err := w.file("public.asc", func(f io.Writer) error { return pgp.WriteCertificate(f, w.key) }); err != nil {
		return err
	}
	reason := packet.NoReason
	id := w.key.PrimaryKey.KeyId
	rev := &packet.Signature{
		Version: w.key.PrimaryKey.Version, SigType: packet.SigTypeKeyRevocation, PubKeyAlgo: w.key.PrimaryKey.PubKeyAlgo,
		Hash: (*packet.Config)(nil).Hash(), CreationTime: w.key.PrimaryKey.CreationTime, IssuerKeyId: &id,
		IssuerFingerprint: w.key.PrimaryKey.Fingerprint, RevocationReason: &reason,
	}
	if c, err := w.key.PrimaryKey.Curve(); err == nil && (c == packet.CurveNistP384 || c == packet.CurveNistP521) {
		rev.Hash = w.key.PrimaryIdentity().SelfSignature.Hash
	}
	if err := rev.RevokeKey(w.key.PrimaryKey, w.key.PrivateKey, nil); err != nil {
		return err
	}
	if err := w.file("revocation.asc", func(f io.Writer) error { return pgp.WriteRevocation(f, rev) }); err != nil {
		return err
	}
	var secret bytes.Buffer
	if err := w.key.SerializePrivateWithoutSigning(&secret, nil); err != nil {
		return err
	}
	how := "not protected"
	if len(w.pass) > 0 {
		// A copy, since the key itself is still needed.
		list, err := openpgp.ReadKeyRing(&secret)
		if err != nil {
			return err
		}
		if err := list[0].EncryptPrivateKeys(w.pass, nil); err != nil {
			return err
		}
		secret.Reset()
		if err := list[0].SerializePrivateWithoutSigning(&secret, nil); err != nil {
			return err
		}
		how = "protected by the passphrase"
	}
	err := w.file("secret.asc", func(f io.Writer) error {
		a, err := armor.Encode(f, openpgp.PrivateKeyType, nil)
		if err != nil {
			return err
		}
		if _, err := a.Write(secret.Bytes()); err != nil {
			return err
		}
		return a.Close()
	})
	clear(secret.Bytes())
	if err == nil {
		fmt.Fprintf(w.w, "wrote public.asc; secret.asc (%s) and revocation.asc belong off line\n", how)
	}
	return err
}

func (w *workflow) file(name string, write func(io.Writer) error) error {
	out, err := opencard.Create(filepath.Join(w.o.out, name), nil)
	if err != nil {
		return err
	}
	return out.Finish(write(out))
}

// toCards imports each subkey into all cards and compares the copies.
func (w *workflow) toCards() error {
	for i, slot := range slots {
		if _, err := pgp.Import(w.ctx, w.cards, slot, w.key.Subkeys[i].PrivateKey); err != nil {
			return err
		}
	}
	for _, slot := range slots {
		if err := keycard.CompareCopies(w.ctx, w.cards, slot); err != nil {
			return err
		}
	}
	for i, c := range w.cards {
		if problems, err := c.Check(w.ctx); err != nil || len(problems) > 0 {
			return fmt.Errorf("card %d: %v %v", i+1, problems, err)
		}
	}
	fmt.Fprintf(w.w, "put 3 subkeys onto each of %d cards; the copies are equal\n", len(w.cards))
	return nil
}

// describe writes the holder's name and the URL.
func (w *workflow) describe() error {
	if w.o.url == "" {
		stop, u, err := serve(filepath.Join(w.o.out, "public.asc"))
		if err != nil {
			return err
		}
		w.o.url = u
		context.AfterFunc(w.ctx, stop)
	}
	given, surname, ok := strings.Cut(w.o.name, " ")
	if !ok {
		given, surname = "", w.o.name
	}
	for _, c := range w.cards {
		if err := c.SetHolder(w.ctx, keycard.Holder{Given: given, Surname: surname, Language: "en", Salutation: '9'}); err != nil {
			return err
		}
		if err := c.SetURL(w.ctx, w.o.url); err != nil {
			return err
		}
	}
	return nil
}

// serve serves a file on loopback.
func serve(name string) (stop func(), u string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	s := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { http.ServeFile(rw, r, name) }), ReadHeaderTimeout: time.Minute}
	go s.Serve(l)
	u = (&url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/public.asc"}).String()
	return func() { s.Close() }, u, nil
}

// stubs writes and lists what gpg would have in the place of the secrets.
func (w *workflow) stubs() error {
	var b bytes.Buffer
	first := w.cards[0].Info()
	if err := pgp.WriteStubs(&b, w.key, func(p *packet.PublicKey) ([16]byte, bool) {
		return first.AID, p != w.key.PrimaryKey
	}); err != nil {
		return err
	}
	if err := w.file("stubs.pgp", func(f io.Writer) error { _, err := f.Write(b.Bytes()); return err }); err != nil {
		return err
	}
	_, stubs, err := pgp.ParseStubs(&b)
	if err != nil {
		return err
	}
	for _, s := range stubs {
		kind := "ssb"
		if s.Primary {
			kind = "sec"
		}
		where := "off line"
		if _, on := s.Card(); on {
			var list []string
			slot := keycard.SlotSign
			for _, c := range w.cards {
				if got, ok := s.Slot(c.Info()); ok {
					slot = got
					list = append(list, c.Info().Ident())
				}
			}
			where = fmt.Sprintf("%v slot of %s", slot, strings.Join(list, ", "))
		}
		fmt.Fprintf(w.w, "%s%-1s  %X  %s\n", kind, s.Kind.Mark(), s.Public.Fingerprint, where)
	}
	return nil
}

// use fetches the public key from each card's URL, and signs and decrypts with
// each card.
func (w *workflow) use() error {
	client := &http.Client{Timeout: time.Minute}
	for i, c := range w.cards {
		var list openpgp.EntityList
		if w.fetch {
			b, err := c.FetchKey(w.ctx, client, 1<<20)
			if err != nil {
				return err
			}
			if list, err = opencard.ParseCertificates(bytes.NewReader(b)); err != nil {
				return err
			}
		} else {
			var err error
			if list, err = opencard.ReadCertificates(filepath.Join(w.o.out, "public.asc")); err != nil {
				return err
			}
		}
		b, err := pgp.Bind(w.ctx, c, list[0], nil)
		if err != nil {
			return err
		}
		var sig, msg bytes.Buffer
		text := fmt.Sprintf("card %d\n", i+1)
		if err := b.DetachSign(w.ctx, &sig, strings.NewReader(text), nil); err != nil {
			return err
		}
		if _, err := openpgp.CheckDetachedSignature(list, strings.NewReader(text), &sig, nil); err != nil {
			return err
		}
		in, err := openpgp.Encrypt(&msg, list[:1], nil, nil, nil)
		if err != nil {
			return err
		}
		io.WriteString(in, text)
		if err := in.Close(); err != nil {
			return err
		}
		md, err := b.Decrypt(w.ctx, &msg, nil, nil)
		if err != nil {
			return err
		}
		if got, err := io.ReadAll(md.UnverifiedBody); err != nil || string(got) != text {
			return fmt.Errorf("card %d decrypts %q (%v)", i+1, got, err)
		}
		from := w.o.url
		if !w.fetch {
			from = "public.asc"
		}
		fmt.Fprintf(w.w, "card %s signs and decrypts with the key from %s\n", c.Info().Ident(), from)
	}
	return nil
}
