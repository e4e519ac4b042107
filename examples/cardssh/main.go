// Command cardssh is an ssh-agent whose only key is the authentication key on
// an OpenPGP card:
//
//	cardssh -print >>authorized_keys           # the public key, for the server
//	cardssh -socket $XDG_RUNTIME_DIR/card.sock # serve until interrupted
//	SSH_AUTH_SOCK=$XDG_RUNTIME_DIR/card.sock ssh server.example.org
//
// The card is opened when ssh asks for a signature, and given back afterwards,
// so that gpg can use it in between; -keep holds it open, and with it the PIN.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"signalbox.example/examples/internal/opencard"
	"signalbox.example/keycard"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	fs := flag.NewFlagSet("cardssh", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	reader := fs.String("reader", "", opencard.ReaderUsage)
	socket := fs.String("socket", "", "`path` of the socket to serve on; it must not exist")
	printKey := fs.Bool("print", false, "print the public key as a line of authorized_keys, and end")
	keep := fs.Bool("keep", false, "keep the card, and the verified PIN, between uses")
	a := &cardAgent{ctx: ctx, log: stderr}
	a.flags.Add(fs, stdin, stderr)
	err := fs.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stdout, "usage: cardssh -socket PATH [flags]\n       cardssh -print [flags]\n\nAn ssh-agent with the authentication key on a card.\n\nflags:")
		fs.SetOutput(stdout)
		fs.PrintDefaults()
		return 0
	}
	if err == nil && (fs.NArg() > 0 || (*socket == "") != *printKey) {
		err = errors.New("either -socket or -print is needed (cardssh -h explains)")
	}
	if err != nil {
		fmt.Fprintln(stderr, "cardssh:", opencard.Line(err))
		return 2
	}
	a.reader, a.keep = *reader, *keep
	defer a.close()
	if err := a.load(); err != nil {
		fmt.Fprintln(stderr, "cardssh:", opencard.Line(err))
		return 1
	}
	if *printKey {
		fmt.Fprintln(stdout, a.key.String())
		return 0
	}
	if err := serve(ctx, *socket, a); err != nil {
		fmt.Fprintln(stderr, "cardssh:", opencard.Line(err))
		return 1
	}
	return 0
}

// serve answers on a socket that only its owner can use.
func serve(ctx context.Context, path string, a agent.ExtendedAgent) error {
	l, err := listen(path)
	if err != nil {
		return err
	}
	defer os.Remove(path)
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			l.Close()
			return err
		}
		all.Go(func() {
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			defer conn.Close()
			agent.ServeAgent(a, conn) // ends with the connection
		})
	}
}

// listen makes the socket in a folder of its own and moves it to its place
// when nobody else can connect any more.
func listen(path string) (net.Listener, error) {
	if _, err := os.Lstat(path); err == nil {
		return nil, fmt.Errorf("%s exists", path)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	if err = os.Chmod(name, 0o600); err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// cardAgent is the agent. Requests take turns at the card.
type cardAgent struct {
	ctx    context.Context
	flags  opencard.Flags
	reader string
	keep   bool
	log    io.Writer

	mu   sync.Mutex
	key  agent.Key // as it was when the program started
	card *keycard.Card
}

// with calls f with the card's authentication key.
func (a *cardAgent) with(f func(*keycard.Key, ssh.Signer) error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.card == nil {
		c, err := a.flags.Open(a.ctx, a.reader)
		if err != nil {
			return err
		}
		a.card = c
	}
	err := func() error {
		k, err := a.card.Key(a.ctx, keycard.SlotAuth, nil)
		if err != nil {
			return err
		}
		s, err := ssh.NewSignerFromSigner(k.WithContext(a.ctx))
		if err != nil {
			return err
		}
		return f(k, s)
	}()
	if !a.keep || err != nil {
		a.card.Close()
		a.card = nil
	}
	return err
}

func (a *cardAgent) load() error {
	return a.with(func(k *keycard.Key, s ssh.Signer) error {
		p := s.PublicKey()
		a.key = agent.Key{Format: p.Type(), Blob: p.Marshal(), Comment: "cardno:" + k.Card().Info().Number()}
		return nil
	})
}

func (a *cardAgent) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.card != nil {
		a.card.Close()
		a.card = nil
	}
}

// List is part of agent.Agent.
func (a *cardAgent) List() ([]*agent.Key, error) { return []*agent.Key{&a.key}, nil }

// Sign is part of agent.Agent.
func (a *cardAgent) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	return a.SignWithFlags(key, data, 0)
}

// SignWithFlags is part of agent.ExtendedAgent; the flags choose the hash of
// RSA signatures.
func (a *cardAgent) SignWithFlags(key ssh.PublicKey, data []byte, flags agent.SignatureFlags) (*ssh.Signature, error) {
	var sig *ssh.Signature
	err := a.with(func(_ *keycard.Key, s ssh.Signer) error {
		want := string(key.Marshal())
		if want != string(a.key.Blob) {
			return errors.New("ssh asks for another key")
		}
		if string(s.PublicKey().Marshal()) != want {
			return errors.New("another card is in the reader")
		}
		algorithm := ""
		if key.Type() == ssh.KeyAlgoRSA {
			switch {
			case flags&agent.SignatureFlagRsaSha512 != 0:
				algorithm = ssh.KeyAlgoRSASHA512
			case flags&agent.SignatureFlagRsaSha256 != 0:
				algorithm = ssh.KeyAlgoRSASHA256
			}
		}
		var err error
		if as, ok := s.(ssh.AlgorithmSigner); ok && algorithm != "" {
			sig, err = as.SignWithAlgorithm(rand.Reader, data, algorithm)
		} else {
			sig, err = s.Sign(rand.Reader, data)
		}
		return err
	})
	if err != nil {
		fmt.Fprintln(a.log, "cardssh:", opencard.Line(err))
	}
	return sig, err
}

var errReadOnly = errors.New("the keys are on a card")

// Signers is part of agent.Agent.
func (a *cardAgent) Signers() ([]ssh.Signer, error) { return nil, errReadOnly }

// Add is part of agent.Agent.
func (a *cardAgent) Add(agent.AddedKey) error { return errReadOnly }

// Remove is part of agent.Agent.
func (a *cardAgent) Remove(ssh.PublicKey) error { return errReadOnly }

// RemoveAll is part of agent.Agent.
func (a *cardAgent) RemoveAll() error { return errReadOnly }

// Lock is part of agent.Agent.
func (a *cardAgent) Lock([]byte) error { return errReadOnly }

// Unlock is part of agent.Agent.
func (a *cardAgent) Unlock([]byte) error { return errReadOnly }

// Extension is part of agent.ExtendedAgent.
func (a *cardAgent) Extension(string, []byte) ([]byte, error) {
	return nil, agent.ErrExtensionUnsupported
}
