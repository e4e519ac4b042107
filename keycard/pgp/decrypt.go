package pgp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/aes/keywrap"
	pgperrors "github.com/ProtonMail/go-crypto/openpgp/errors"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/x25519"

	"signalbox.example/keycard"
)

func errNoHook(pub *packet.PublicKey) error {
	return fmt.Errorf("algorithm %d has no place for a card in go-crypto: %w", pub.PubKeyAlgo, keycard.ErrUnsupported)
}

// Decrypt is [Decrypt] with one binding.
func (b *Binding) Decrypt(ctx context.Context, message io.Reader, others openpgp.KeyRing, cfg *packet.Config) (*openpgp.MessageDetails, error) {
	return Decrypt(ctx, message, []*Binding{b}, others, cfg)
}

// Decrypt opens a message, not armored, that is encrypted to one or more
// recipients, with the decryption key of one of the cards; see
// [openpgp.ReadMessage] for the result, which must be read to its end before
// signature and integrity are known. Certificates in others, which may be nil,
// serve to check signatures; private keys in it that need no passphrase are used too. cfg may
// be nil. A message that is only signed is read as well.
//
// Only keys that the message names are used, in the message's order; for
// recipients that are not named all keys are tried, at most 16 times a card.
// Decryption takes two commands, one while the PIN is verified. If the message
// is for none of the keys the error wraps [ErrNotRecipient] and no card is
// asked.
func Decrypt(ctx context.Context, message io.Reader, cards []*Binding, others openpgp.KeyRing, cfg *packet.Config) (*openpgp.MessageDetails, error) {
	const op = "decrypt"
	ring := &keyring{others: others}
	var newKeys []*cardKey
	for _, b := range cards {
		k := b.keys[keycard.SlotDecrypt]
		if k == nil {
			continue
		}
		p, h := privateKey(ctx, k.pub, k.key)
		c := &cardKey{b, k, h, openpgp.Key{Entity: b.cert, PublicKey: k.pub, PrivateKey: p}}
		if k.sub >= 0 {
			c.full.SelfSignature, c.full.Revocations = b.cert.Subkeys[k.sub].Sig, b.cert.Subkeys[k.sub].Revocations
		} else {
			c.full.SelfSignature, _ = b.cert.PrimarySelfSignature()
			c.full.Revocations = b.cert.Revocations
		}
		if k.pub.PubKeyAlgo == packet.PubKeyAlgoX25519 {
			newKeys = append(newKeys, c)
			continue
		}
		ring.cards = append(ring.cards, c)
	}
	var readdress *readdressed
	if newKeys != nil {
		var err error
		if readdress, err = readdressTo(newKeys, message); err != nil {
			return nil, fail(op, err)
		}
		message = readdress.message
		ring.extra = readdress.keys
	}
	md, err := openpgp.ReadMessage(message, ring, nil, cfg)
	if err == nil {
		readdress.restore(md)
		return md, nil
	}
	for _, c := range append(ring.cards, newKeys...) {
		if c.h.err != nil && (c.h.fatal || errors.Is(err, pgperrors.ErrKeyIncorrect)) {
			return nil, c.b.fail(op, c.k, c.h.err)
		}
	}
	if errors.Is(err, pgperrors.ErrKeyIncorrect) && !ring.asked && (readdress == nil || !readdress.named) {
		err = ErrNotRecipient
		for _, b := range cards {
			if b.keys[keycard.SlotDecrypt] != nil {
				continue
			}
			// A subkey of the certificate may be meant that is not on the card.
			if want, ok := b.cert.EncryptionKey(cfg.Now()); ok && ring.names(want.PublicKey.KeyId) {
				return nil, &Error{op, fmt.Sprintf("%X", want.PublicKey.Fingerprint), b.card.Info().Ident(), absent(b.card.Info(), keycard.SlotDecrypt)}
			}
		}
	}
	return nil, fail(op, err)
}

// cardKey is a decryption key on a card, prepared for one message.
type cardKey struct {
	b    *Binding
	k    *boundKey
	h    *hook
	full openpgp.Key
}

// keyring is what ReadMessage gets: other people's certificates, software
// keys and the cards' keys.
type keyring struct {
	others openpgp.KeyRing
	cards  []*cardKey
	extra  []openpgp.Key
	ids    []uint64
	asked  bool // a card's key was called for
}

func (r *keyring) names(id uint64) bool {
	for _, i := range r.ids {
		if i == id {
			return true
		}
	}
	return false
}

func (r *keyring) KeysById(id uint64) (keys []openpgp.Key) {
	r.ids = append(r.ids, id)
	if r.others != nil {
		for _, k := range r.others.KeysById(id) {
			if k.PrivateKey != nil && !k.PrivateKey.Dummy() {
				keys = append(keys, k)
			}
		}
	}
	for _, c := range r.cards {
		if c.k.pub.KeyId == id {
			keys = append(keys, c.full)
			r.asked = true
		}
	}
	for _, k := range r.extra {
		if k.PrivateKey.KeyId == id {
			keys = append(keys, k)
		}
	}
	return keys
}

func (r *keyring) KeysByIdUsage(id uint64, usage byte) (keys []openpgp.Key) {
	if r.others != nil {
		keys = r.others.KeysByIdUsage(id, usage)
	}
	for _, c := range r.cards { // our own certificates verify too
		keys = append(keys, openpgp.EntityList{c.b.cert}.KeysByIdUsage(id, usage)...)
	}
	return keys
}

func (r *keyring) DecryptionKeys() (keys []openpgp.Key) {
	if r.others != nil {
		for _, k := range r.others.DecryptionKeys() {
			if k.PrivateKey != nil && !k.PrivateKey.Dummy() {
				keys = append(keys, k)
			}
		}
	}
	for _, c := range r.cards {
		keys = append(keys, c.full)
		r.asked = true
	}
	return keys
}

// readdressed is a message whose session key, for algorithm 25 (X25519), was
// taken out with a card and put in again for a key in memory: go-crypto has no
// way in for either the card or a session key.
type readdressed struct {
	message io.Reader
	keys    []openpgp.Key // true public key, throw-away private key
	ids     map[uint64]uint64
	named   bool // one of the cards' keys was
}

// Limits on what stands before the encrypted data.
const (
	maxEnvelopes    = 256
	maxEnvelopeSize = 8 << 10
)

func readdressTo(keys []*cardKey, message io.Reader) (*readdressed, error) {
	r := &readdressed{ids: map[uint64]uint64{}}
	in := bufio.NewReader(message)
	var front bytes.Buffer
	defer func() { r.message = io.MultiReader(bytes.NewReader(front.Bytes()), in) }()
	for range maxEnvelopes {
		head, size, ok := envelope(in)
		if !ok {
			break
		}
		raw := make([]byte, head+size)
		if _, err := io.ReadFull(in, raw); err != nil {
			return r, fmt.Errorf("session key packet: %w", ErrFormat)
		}
		p, err := packet.Read(bytes.NewReader(raw))
		e, ok := p.(*packet.EncryptedKey)
		if err != nil || !ok || e.Algo != packet.PubKeyAlgoX25519 {
			front.Write(raw)
			continue
		}
		done := false
		for _, c := range keys {
			if e.Version < 6 && e.KeyId != 0 && e.KeyId != c.k.pub.KeyId ||
				e.Version == 6 && e.KeyVersion != 0 && !bytes.Equal(e.KeyFingerprint, c.k.pub.Fingerprint) {
				continue
			}
			r.named = true
			key, cipher, err := c.sessionKey(raw[head:], e.Version)
			if err != nil {
				if c.h.fatal {
					return r, c.b.fail("decrypt", c.k, c.h.err)
				}
				c.h.done(err)
				continue
			}
			err = r.add(&front, c, e.Version, key, cipher)
			clear(key)
			if err != nil {
				return r, err
			}
			done = true
			break
		}
		if !done {
			front.Write(raw)
		}
	}
	return r, nil
}

// add writes the session key for a new throw-away key.
func (r *readdressed) add(w io.Writer, c *cardKey, version int, key []byte, cipher packet.CipherFunction) error {
	soft, err := x25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	p := packet.NewX25519PrivateKey(time.Unix(0, 0), soft)
	if err := packet.SerializeEncryptedKeyAEAD(w, &p.PublicKey, cipher, version == 6, key, nil); err != nil {
		return err
	}
	full := c.full
	full.PrivateKey = p
	r.keys = append(r.keys, full)
	r.ids[p.KeyId] = c.k.pub.KeyId
	return nil
}

// restore puts the true key ID in the place of the throw-away one.
func (r *readdressed) restore(md *openpgp.MessageDetails) {
	if r == nil {
		return
	}
	for i, id := range md.EncryptedToKeyIds {
		if own, ok := r.ids[id]; ok {
			md.EncryptedToKeyIds[i] = own
		}
	}
}

// envelope looks whether a session key packet (tags 1 and 3) comes next and
// returns the lengths of its header and body. Nothing is consumed.
func envelope(in *bufio.Reader) (head, size int, ok bool) {
	b, _ := in.Peek(6)
	if len(b) < 3 || b[0]&0x80 == 0 {
		return 0, 0, false
	}
	tag := b[0] & 0x3f
	if b[0]&0x40 == 0 {
		tag = tag >> 2
		switch n := 1 << (b[0] & 3); n {
		case 1:
			head, size = 2, int(b[1])
		case 2:
			head, size = 3, int(b[1])<<8|int(b[2])
		default: // longer, or of no given length: not one of ours
			return 0, 0, false
		}
	} else {
		switch n := int(b[1]); {
		case n < 192:
			head, size = 2, n
		case n < 224:
			head, size = 3, (n-192)<<8+int(b[2])+192
		case n == 255 && len(b) == 6:
			head, size = 6, int(min(binary.BigEndian.Uint32(b[2:]), maxEnvelopeSize+1))
		default:
			return 0, 0, false
		}
	}
	return head, size, (tag == 1 || tag == 3) && size <= maxEnvelopeSize
}

// sessionKey takes the session key out of the body of a packet for algorithm
// 25 (RFC 9580 section 5.1.6).
func (c *cardKey) sessionKey(body []byte, version int) ([]byte, packet.CipherFunction, error) {
	bad := fmt.Errorf("X25519 session key: %w: %w", ErrFormat, keycard.ErrData)
	skip := 1 + 8 + 1
	if version == 6 {
		if len(body) < 2 {
			return nil, 0, bad
		}
		skip = 2 + int(body[1]) + 1
	}
	if len(body) < skip+32+1 {
		return nil, 0, bad
	}
	ephemeral, rest := body[skip:skip+32], body[skip+32:]
	if int(rest[0]) != len(rest)-1 || len(rest) < 2 {
		return nil, 0, bad
	}
	rest = rest[1:]
	var cipher packet.CipherFunction
	if version < 6 {
		cipher, rest = packet.CipherFunction(rest[0]), rest[1:]
	}
	if len(rest) < 24 || len(rest)%8 != 0 {
		return nil, 0, bad
	}
	shared, err := c.h.derive(ephemeral)
	defer clear(shared)
	if err != nil {
		return nil, 0, err
	}
	secret := make([]byte, 0, 96)
	secret = append(append(append(secret, ephemeral...), point(c.k.pub)...), shared...)
	defer clear(secret)
	kek, err := hkdf.Key(sha256.New, secret, nil, "OpenPGP X25519", 16)
	if err != nil {
		return nil, 0, err
	}
	defer clear(kek)
	key, err := keywrap.Unwrap(kek, rest)
	if err != nil {
		return nil, 0, fmt.Errorf("X25519 session key: %w: %w", err, keycard.ErrData)
	}
	switch {
	case version == 6:
	case cipher != packet.CipherAES128 && cipher != packet.CipherAES192 && cipher != packet.CipherAES256, cipher.KeySize() != len(key):
		return nil, 0, bad
	}
	return key, cipher, nil
}
