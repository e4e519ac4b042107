package softcard

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"sync"

	"signalbox.example/keycard"
)

// Personality is the kind of card that is played.
type Personality uint8

// V34 is a card of version 3.4 with everything: extended length and chaining,
// RSA, NIST curves and 25519, KDF, touch, three certificates. V34Chaining is
// the same without extended length, so long commands and answers go in
// pieces. V20 is a card of version 2.0: RSA only, chaining only, application
// data without the outer object, no KDF, no touch, one certificate, no life
// cycle management (it cannot be reset), and it calls a VERIFY without data
// an error.
const (
	V34 Personality = iota
	V34Chaining
	V20
)

// Fault stands between the card and whoever talks to it, to let it
// misbehave: it gets each command, counted from 0 since the card was made, and
// may answer itself, change the answer of process, return an error as a
// transport would, or wait for ctx to end.
type Fault func(ctx context.Context, n int, cmd []byte, process func([]byte) []byte) ([]byte, error)

// Config describes a card. The zero value is a blank card of personality V34
// in memory with the default PINs 123456 and 12345678.
type Config struct {
	Personality Personality

	// Serial is the card's serial number, 0 picks one at random. Programs
	// such as gpg take two cards with one number for the same card.
	Serial uint32
	// Manufacturer is 0 for FFFE, the range for random numbers.
	Manufacturer uint16

	// File keeps the card's state, keys and PINs readable, across runs. It
	// is written anew (temporary file, then rename) after each change. When
	// it exists, Personality, Serial and Manufacturer come from it.
	File string

	// Touch is called when a key with a touch policy is used and tells
	// whether somebody touched the card. nil: somebody always does.
	Touch func(ctx context.Context, slot keycard.Slot) bool

	// Fault, if not nil, stands before the card.
	Fault Fault

	// CountInStatus answers a wrong PIN with 63Cx, the tries left, instead
	// of 6982, which most cards say.
	CountInStatus bool
	// ClientKDF leaves the PINs alone when a KDF object is written, as
	// YubiKeys do; otherwise they are set from the hashes in it.
	ClientKDF bool
	// LaxAttributes stores algorithm attributes of curves that the card
	// does not have and keeps the old key, as a SmartPGP card was seen to.
	LaxAttributes bool
	// Without25519 takes the two 25519 curves away.
	Without25519 bool
	// PublicOnImport wants the public key with an imported elliptic curve
	// key (attributes end in FF).
	PublicOnImport bool
	// WithoutKDF takes the KDF object away.
	WithoutKDF bool
	// Attestation gives the card a fourth key, certified by a root of its
	// own, that attests keys made on the card as YubiKeys do.
	Attestation bool
}

// Card is one software card. It is a [keycard.Transport]; its methods may be
// called from several goroutines. Close takes the power away: verified PINs
// are forgotten, the rest stays and the card can be opened again.
type Card struct {
	mu  sync.Mutex
	cfg Config
	st  state

	verified  [3]bool // 81, 82, 83
	selected  bool
	chain     []byte  // data of a chained command so far
	chainHead [4]byte // its header
	chaining  bool
	pending   []byte // rest of an answer
	le        int    // what the current command asks for
	occ       int    // certificate occurrence
	app       []byte // cached application related data
	n         int
	dirty     bool
	keys      [4]crypto.PrivateKey
}

// state is what survives loss of power.
type state struct {
	Personality  Personality
	Serial       uint32
	Manufacturer uint16
	Terminated   bool
	PIN          [3]pin // user, resetting code, admin
	Multiple     bool   // C4 octet 1
	Objects      map[uint16][]byte
	Certificates [3][]byte
	Slots        [4]slot
	Signatures   uint32
	AttestCert   []byte
	AttestRoot   []byte
}

type pin struct {
	Value []byte
	Tries int
	Max   int
}

type slot struct {
	Attributes []byte
	Private    []byte // PKCS #8
	Origin     byte   // 1 generated, 2 imported
	UIF        byte
}

// New makes a card, or loads it from its file.
func New(cfg Config) (*Card, error) {
	c := &Card{cfg: cfg}
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	if loaded {
		return c, nil
	}
	c.st.Personality, c.st.Serial, c.st.Manufacturer = cfg.Personality, cfg.Serial, cfg.Manufacturer
	if c.st.Serial == 0 {
		var b [4]byte
		rand.Read(b[:])
		c.st.Serial = binary.BigEndian.Uint32(b[:]) | 1
	}
	if c.st.Manufacturer == 0 {
		c.st.Manufacturer = 0xfffe
	}
	c.blank()
	if cfg.Attestation {
		if err := c.makeAttestation(); err != nil {
			return nil, err
		}
	}
	if err := c.save(); err != nil {
		return nil, err
	}
	return c, nil
}

// MustNew is [New] for tests and examples with a card in memory: it panics on
// an error, which then cannot happen.
func MustNew(cfg Config) *Card {
	c, err := New(cfg)
	if err != nil {
		panic(err)
	}
	return c
}

const (
	defaultPIN   = "123456"
	defaultAdmin = "12345678"
	defaultTries = 3
)

// blank sets the factory state.
func (c *Card) blank() {
	s := &c.st
	for i := range s.PIN {
		clear(s.PIN[i].Value)
		s.PIN[i] = pin{Max: defaultTries}
	}
	s.PIN[0].Value, s.PIN[0].Tries = []byte(defaultPIN), defaultTries
	s.PIN[2].Value, s.PIN[2].Tries = []byte(defaultAdmin), defaultTries
	s.Multiple, s.Terminated, s.Signatures = false, false, 0
	s.Objects = map[uint16][]byte{0x5f35: []byte("9")}
	s.Certificates = [3][]byte{}
	for i := range s.Slots[:3] {
		s.Slots[i] = slot{Attributes: []byte{1, 8, 0, 0, 17, 0}}
		c.keys[i] = nil
	}
	c.powerOff()
}

func (c *Card) powerOff() {
	c.verified = [3]bool{}
	c.selected, c.chaining = false, false
	clear(c.pending)
	c.chain, c.pending, c.app, c.occ = nil, nil, nil, 0
}

// SerialNumber returns the card's serial number.
func (c *Card) SerialNumber() uint32 { return c.st.Serial }

// AttestationRoot returns the certificate that stands at the root of the
// card's attestations, nil without Config.Attestation.
func (c *Card) AttestationRoot() *x509.Certificate {
	cert, err := x509.ParseCertificate(c.st.AttestRoot)
	if err != nil {
		return nil
	}
	return cert
}

// Transmit lets the card answer one command. Commands of fewer than four
// octets are refused with an error that wraps [keycard.ErrMalformed].
func (c *Card) Transmit(ctx context.Context, cmd []byte) ([]byte, error) {
	if len(cmd) < 4 {
		return nil, fmt.Errorf("softcard: command of %d octets: %w", len(cmd), keycard.ErrMalformed)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.cfg.Fault == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n++
		return c.process(ctx, cmd), nil
	}
	c.mu.Lock()
	n := c.n
	c.n++
	c.mu.Unlock()
	return c.cfg.Fault(ctx, n, cmd, func(cmd []byte) []byte {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.process(ctx, cmd)
	})
}

// Close takes the card's power away. It can be used again.
func (c *Card) Close() error {
	c.Reset()
	return nil
}

// Reset does what taking the card out and putting it back does.
func (c *Card) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.powerOff()
}

// Commands returns how many commands the card has got since it was made.
func (c *Card) Commands() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// historical returns the historical octets (5F52).
func (c *Card) historical() []byte {
	switch c.st.Personality {
	case V20:
		return []byte{0, 0x73, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	case V34Chaining:
		return []byte{0, 0x31, 0xc5, 0x73, 0xc0, 1, 0x80, 5, 0x90, 0}
	}
	return []byte{0, 0x31, 0xc5, 0x73, 0xc0, 1, 0xc0, 5, 0x90, 0}
}

// ATR returns the answer to reset: protocol T=1 and the historical octets.
func (c *Card) ATR() []byte {
	h := c.historical()
	b := append([]byte{0x3b, 0x80 | byte(len(h)), 0x01}, h...)
	check := byte(0)
	for _, x := range b[1:] {
		check ^= x
	}
	return append(b, check)
}
