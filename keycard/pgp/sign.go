package pgp

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"signalbox.example/keycard"
)

const signatureType = "PGP SIGNATURE"

// DetachSign writes a detached binary signature (type 00) over message to w.
// The signature is made by the card's signature key, which must be one of the
// certificate's valid signing keys. cfg may be nil; its Rand, DefaultHash,
// Time, SigLifetimeSecs and SignatureNotations count. A hash that is too short
// for the key's curve is replaced by the shortest that is not. It takes two
// commands, one while the PIN is verified and the card allows it.
func (b *Binding) DetachSign(ctx context.Context, w io.Writer, message io.Reader, cfg *packet.Config) error {
	return b.detach(ctx, w, message, packet.SigTypeBinary, cfg)
}

// DetachSignText is DetachSign for text (type 01): line ends count as CR LF
// whatever they are.
func (b *Binding) DetachSignText(ctx context.Context, w io.Writer, message io.Reader, cfg *packet.Config) error {
	return b.detach(ctx, w, message, packet.SigTypeText, cfg)
}

// ArmoredDetachSign is DetachSign with an ASCII armor.
func (b *Binding) ArmoredDetachSign(ctx context.Context, w io.Writer, message io.Reader, cfg *packet.Config) error {
	var sig bytes.Buffer
	if err := b.DetachSign(ctx, &sig, message, cfg); err != nil {
		return err
	}
	return writeArmored(w, signatureType, sig.Bytes())
}

func writeArmored(w io.Writer, kind string, body []byte) error {
	a, err := armor.Encode(w, kind, nil)
	if err == nil {
		if _, err = a.Write(body); err == nil {
			err = a.Close()
		}
	}
	if err == nil {
		_, err = io.WriteString(w, "\n")
	}
	return err
}

func (b *Binding) detach(ctx context.Context, w io.Writer, message io.Reader, t packet.SignatureType, cfg *packet.Config) error {
	const op = "sign"
	k, sig, h, err := b.begin(op, t, cfg)
	if err != nil {
		return err
	}
	to := io.Writer(h)
	if t == packet.SigTypeText {
		to = openpgp.NewCanonicalTextHash(h)
	}
	if _, err := io.Copy(to, message); err != nil {
		return fail(op, err)
	}
	if err := b.sign(ctx, op, k, sig, h, cfg); err != nil {
		return err
	}
	return sig.Serialize(w)
}

// begin prepares a data signature.
func (b *Binding) begin(op string, t packet.SignatureType, cfg *packet.Config) (*boundKey, *packet.Signature, hash.Hash, error) {
	k, err := b.signer(op, cfg.Now())
	if err != nil {
		return nil, nil, nil, err
	}
	sig, err := newSignature(k.pub, t, cfg)
	if err != nil {
		return nil, nil, nil, b.fail(op, k, err)
	}
	h, err := sig.PrepareSign(cfg)
	if err != nil {
		return nil, nil, nil, b.fail(op, k, err)
	}
	return k, sig, h, nil
}

// ClearSign writes text with its signature in the cleartext framework (RFC
// 9580 section 7). Spaces and tabs at the ends of lines are dropped and line
// ends become LF. As with gpg the last line end is not part of what is signed.
// Text is read as it comes, one line in memory. Version 6 keys are refused.
func (b *Binding) ClearSign(ctx context.Context, w io.Writer, text io.Reader, cfg *packet.Config) error {
	const op = "sign clear text"
	k, sig, h, err := b.begin(op, packet.SigTypeText, cfg)
	if err != nil {
		return err
	}
	if sig.Version > 4 {
		return b.fail(op, k, fmt.Errorf("version %d key: %w", sig.Version, keycard.ErrUnsupported))
	}
	out := bufio.NewWriter(w)
	out.WriteString("-----BEGIN PGP SIGNED MESSAGE-----\nHash: " + hashName(sig.Hash) + "\n\n")
	in := bufio.NewReader(text)
	for first := true; ; first = false {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return fail(op, err)
		}
		if len(line) == 0 && err == io.EOF {
			break
		}
		line = bytes.TrimRight(line, " \t\r\n")
		if !first {
			io.WriteString(h, "\r\n")
		}
		h.Write(line)
		if bytes.HasPrefix(line, []byte("-")) || bytes.HasPrefix(line, []byte("From ")) {
			out.WriteString("- ")
		}
		out.Write(line)
		out.WriteByte('\n')
		if err == io.EOF {
			break
		}
	}
	if err := b.sign(ctx, op, k, sig, h, cfg); err != nil {
		return err
	}
	var body bytes.Buffer
	if err := sig.Serialize(&body); err != nil {
		return b.fail(op, k, err)
	}
	if err := writeArmored(out, signatureType, body.Bytes()); err != nil {
		return fail(op, err)
	}
	return out.Flush()
}

func hashName(h crypto.Hash) string {
	switch h {
	case crypto.SHA384:
		return "SHA384"
	case crypto.SHA512:
		return "SHA512"
	case crypto.SHA3_256:
		return "SHA3-256"
	case crypto.SHA3_512:
		return "SHA3-512"
	}
	return "SHA256"
}

// Sign starts a signed message (RFC 9580 section 10.3: one-pass signature,
// literal data, signature). What is written to the result is the data; Close
// makes the signature, with the card, and does not close w. hints may be nil.
// Without Close, or when it fails, the message is worthless.
func (b *Binding) Sign(ctx context.Context, w io.Writer, hints *openpgp.FileHints, cfg *packet.Config) (io.WriteCloser, error) {
	const op = "sign a message"
	k, sig, h, err := b.begin(op, packet.SigTypeBinary, cfg)
	if err != nil {
		return nil, err
	}
	ops := &packet.OnePassSignature{Version: 3, SigType: sig.SigType, Hash: sig.Hash, PubKeyAlgo: sig.PubKeyAlgo, KeyId: k.pub.KeyId, IsLast: true}
	if k.pub.Version == 6 {
		ops.Version, ops.KeyFingerprint, ops.Salt = 6, k.pub.Fingerprint, sig.Salt()
	}
	if err := ops.Serialize(w); err != nil {
		return nil, fail(op, err)
	}
	if hints == nil {
		hints = &openpgp.FileHints{IsBinary: true}
	}
	var modified uint32
	if !hints.ModTime.IsZero() {
		modified = uint32(hints.ModTime.Unix())
	}
	lit, err := packet.SerializeLiteral(keepOpen{w}, hints.IsBinary, hints.FileName, modified)
	if err != nil {
		return nil, fail(op, err)
	}
	return &signing{lit, h, func() error {
		if err := lit.Close(); err != nil {
			return fail(op, err)
		}
		if err := b.sign(ctx, op, k, sig, h, cfg); err != nil {
			return err
		}
		return sig.Serialize(w)
	}}, nil
}

// keepOpen is a writer whose Close does nothing.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// signing hashes what passes through.
type signing struct {
	w     io.Writer
	h     hash.Hash
	close func() error
}

func (s *signing) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.h.Write(p[:n])
	return n, err
}

func (s *signing) Close() error {
	if s.close == nil {
		return fail("sign a message", errors.New("closed twice"))
	}
	f := s.close
	s.close = nil
	return f()
}

// Encrypt starts a message to all these certificates that is signed by the
// card, as [openpgp.Encrypt] does it; hints and cfg may be nil. Close makes the
// signature and does not close w. A signature key of algorithm 27 gives
// [keycard.ErrUnsupported].
func (b *Binding) Encrypt(ctx context.Context, w io.Writer, to []*openpgp.Entity, hints *openpgp.FileHints, cfg *packet.Config) (io.WriteCloser, error) {
	const op = "sign and encrypt"
	k, err := b.signer(op, cfg.Now())
	if err != nil {
		return nil, err
	}
	e := *b.cert
	e.PrivateKey = nil
	e.Subkeys = append([]openpgp.Subkey(nil), e.Subkeys...)
	if newFormat(k.pub) {
		return nil, b.fail(op, k, errNoHook(k.pub))
	}
	p, h := privateKey(ctx, k.pub, k.key)
	if k.sub < 0 {
		e.PrivateKey = p
	} else {
		e.Subkeys[k.sub].PrivateKey = p
	}
	var c packet.Config
	if cfg != nil {
		c = *cfg
	}
	c.SigningKeyId = k.pub.KeyId
	in, err := openpgp.Encrypt(w, to, &e, hints, &c)
	if err != nil {
		return nil, fail(op, err)
	}
	return &encrypting{in, func(err error) error {
		if h.err != nil {
			err = h.err
		}
		return b.fail(op, k, err)
	}}, nil
}

// encrypting puts the card's error in the place of go-crypto's.
type encrypting struct {
	io.WriteCloser
	explain func(error) error
}

func (e *encrypting) Close() error { return e.explain(e.WriteCloser.Close()) }
