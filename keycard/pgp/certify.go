package pgp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	pgped25519 "github.com/ProtonMail/go-crypto/openpgp/ed25519"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/ProtonMail/go-crypto/openpgp/x25519"

	"signalbox.example/keycard"
)

// Certify signs a user ID of another certificate with the primary key on the
// card: the signer says that the key belongs to that user. The signature, of
// type 10 (no statement how it was checked), is added to target and returned.
func (b *Binding) Certify(ctx context.Context, target *openpgp.Entity, userID string, cfg *packet.Config) (*packet.Signature, error) {
	const op = "certify"
	k, err := b.primary(op)
	if err != nil {
		return nil, err
	}
	if got, ok := b.cert.CertificationKeyById(cfg.Now(), k.pub.KeyId); !ok || got.PublicKey != k.pub {
		return nil, b.fail(op, k, fmt.Errorf("expired, revoked, or not for certification: %w", ErrUsage))
	}
	id := target.Identities[userID]
	if id == nil {
		return nil, b.fail(op, k, fmt.Errorf("no user ID %q in %X: %w", userID, target.PrimaryKey.Fingerprint, ErrUsage))
	}
	sig, err := newSignature(k.pub, packet.SigTypeGenericCert, cfg)
	if err != nil {
		return nil, b.fail(op, k, err)
	}
	if err := b.complete(ctx, op, k, sig, func(p *packet.PrivateKey) error {
		return sig.SignUserId(userID, target.PrimaryKey, p, cfg)
	}); err != nil {
		return nil, err
	}
	id.Signatures = append(id.Signatures, sig)
	return sig, nil
}

// AddUserID adds a user ID, "Name (comment) <address>", to the certificate,
// with the flags, preferences and expiry of the present primary one. With
// primary set it becomes the primary user ID; the old one's signature is not
// touched, the newer one counts. The certificate is changed in place.
func (b *Binding) AddUserID(ctx context.Context, userID string, primary bool, cfg *packet.Config) error {
	const op = "add a user ID"
	k, err := b.primary(op)
	if err != nil {
		return err
	}
	if userID == "" || len(userID) > 2048 {
		return b.fail(op, k, fmt.Errorf("user ID of %d octets: %w", len(userID), ErrFormat))
	}
	if b.cert.Identities[userID] != nil {
		return b.fail(op, k, fmt.Errorf("user ID %q is there already: %w", userID, ErrUsage))
	}
	old, _ := b.cert.PrimarySelfSignature()
	if old == nil {
		return b.fail(op, k, fmt.Errorf("no self-signature to take flags from: %w", ErrUsage))
	}
	sig, err := b.renewed(ctx, old, packet.SigTypePositiveCert, cfg)
	if err != nil {
		return b.fail(op, k, err)
	}
	sig.IsPrimaryId = nil
	if primary {
		sig.IsPrimaryId = &primary
	}
	return b.addIdentity(ctx, op, k, userID, sig, cfg)
}

func (b *Binding) addIdentity(ctx context.Context, op string, k *boundKey, userID string, sig *packet.Signature, cfg *packet.Config) error {
	if err := b.complete(ctx, op, k, sig, func(p *packet.PrivateKey) error {
		return sig.SignUserId(userID, k.pub, p, cfg)
	}); err != nil {
		return err
	}
	b.cert.Identities[userID] = &openpgp.Identity{
		Name: userID, UserId: &packet.UserId{Id: userID}, SelfSignature: sig, Signatures: []*packet.Signature{sig},
	}
	return nil
}

// renewed copies what a self-signature says into a new one, which must be
// later: programs take the newest, and time is counted in seconds.
func (b *Binding) renewed(ctx context.Context, old *packet.Signature, t packet.SignatureType, cfg *packet.Config) (*packet.Signature, error) {
	sig, err := newSignature(b.cert.PrimaryKey, t, cfg)
	if err != nil {
		return nil, err
	}
	if wait := old.CreationTime.Add(time.Second).Sub(sig.CreationTime); wait > 0 && wait <= time.Second && (cfg == nil || cfg.Time == nil) {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		sig.CreationTime = cfg.Now()
	}
	if sig.CreationTime.Unix() <= old.CreationTime.Unix() {
		return nil, fmt.Errorf("the present signature is of %v, not before now: %w", old.CreationTime.UTC(), ErrUsage)
	}
	sig.KeyLifetimeSecs = old.KeyLifetimeSecs
	sig.PreferredSymmetric, sig.PreferredHash, sig.PreferredCompression = old.PreferredSymmetric, old.PreferredHash, old.PreferredCompression
	sig.PreferredCipherSuites, sig.SEIPDv1, sig.SEIPDv2 = old.PreferredCipherSuites, old.SEIPDv1, old.SEIPDv2
	sig.IsPrimaryId, sig.Notations = old.IsPrimaryId, old.Notations
	sig.KeyserverPrefsValid, sig.KeyserverPrefNoModify = old.KeyserverPrefsValid, old.KeyserverPrefNoModify
	sig.PreferredKeyserver, sig.PolicyURI = old.PreferredKeyserver, old.PolicyURI
	sig.FlagsValid, sig.FlagCertify, sig.FlagSign, sig.FlagAuthenticate = old.FlagsValid, old.FlagCertify, old.FlagSign, old.FlagAuthenticate
	sig.FlagEncryptCommunications, sig.FlagEncryptStorage = old.FlagEncryptCommunications, old.FlagEncryptStorage
	sig.FlagSplitKey, sig.FlagGroupKey = old.FlagSplitKey, old.FlagGroupKey
	sig.EmbeddedSignature = old.EmbeddedSignature
	return sig, nil
}

// SetExpiry makes the primary key end at a time (to the second), or never with
// the zero time: the self-signatures of all user IDs that are not revoked are
// made anew and replace the old ones. With subkeys set, those that are not
// revoked end then too. One signature each; if one fails the certificate is
// as it was.
func (b *Binding) SetExpiry(ctx context.Context, expires time.Time, subkeys bool, cfg *packet.Config) error {
	const op = "set the expiry"
	k, err := b.primary(op)
	if err != nil {
		return err
	}
	var apply []func()
	lifetime := func(created time.Time) (*uint32, error) {
		var s uint32
		if !expires.IsZero() {
			d := expires.Unix() - created.Unix()
			if d <= 0 || d > 1<<32-1 {
				return nil, fmt.Errorf("expiry %v of a key made at %v: %w", expires.UTC(), created.UTC(), ErrUsage)
			}
			s = uint32(d)
		}
		return &s, nil
	}
	primary, err := lifetime(k.pub.CreationTime)
	if err != nil {
		return b.fail(op, k, err)
	}
	now := cfg.Now()
	if old := b.cert.SelfSignature; old != nil {
		sig, err := b.renewed(ctx, old, packet.SigTypeDirectSignature, cfg)
		if err != nil {
			return b.fail(op, k, err)
		}
		sig.KeyLifetimeSecs = primary
		if err := b.complete(ctx, op, k, sig, func(p *packet.PrivateKey) error {
			return sig.SignDirectKeyBinding(k.pub, p, cfg)
		}); err != nil {
			return err
		}
		apply = append(apply, func() {
			b.cert.Signatures = replaceSignature(b.cert.Signatures, old, sig)
			b.cert.SelfSignature = sig
		})
	}
	for _, id := range b.cert.Identities {
		old := id.SelfSignature
		if old == nil || id.Revoked(now) || k.pub.Version == 6 {
			continue
		}
		sig, err := b.renewed(ctx, old, packet.SigTypePositiveCert, cfg)
		if err != nil {
			return b.fail(op, k, err)
		}
		sig.KeyLifetimeSecs = primary
		if err := b.complete(ctx, op, k, sig, func(p *packet.PrivateKey) error {
			return sig.SignUserId(id.UserId.Id, k.pub, p, cfg)
		}); err != nil {
			return err
		}
		apply = append(apply, func() {
			id.Signatures = replaceSignature(id.Signatures, old, sig)
			id.SelfSignature = sig
		})
	}
	for i := range b.cert.Subkeys {
		sub := &b.cert.Subkeys[i]
		if !subkeys || sub.Revoked(now) {
			continue
		}
		sig, err := b.renewed(ctx, sub.Sig, packet.SigTypeSubkeyBinding, cfg)
		if err != nil {
			return b.fail(op, k, err)
		}
		if sig.KeyLifetimeSecs, err = lifetime(sub.PublicKey.CreationTime); err != nil {
			return b.fail(op, k, err)
		}
		if err := b.bindSubkey(ctx, op, k, sub.PublicKey, sig, cfg); err != nil {
			return err
		}
		apply = append(apply, func() { sub.Sig = sig })
	}
	for _, f := range apply {
		f()
	}
	return nil
}

func replaceSignature(list []*packet.Signature, old, sig *packet.Signature) []*packet.Signature {
	out := []*packet.Signature{sig}
	for _, s := range list {
		if s != old {
			out = append(out, s)
		}
	}
	return out
}

// bindSubkey makes a subkey binding signature. SignKey would hash the private
// key packet's idea of the primary key; CrossSignKey takes it as an argument.
func (b *Binding) bindSubkey(ctx context.Context, op string, k *boundKey, sub *packet.PublicKey, sig *packet.Signature, cfg *packet.Config) error {
	return b.complete(ctx, op, k, sig, func(p *packet.PrivateKey) error {
		return sig.CrossSignKey(sub, k.pub, p, cfg)
	})
}

// Revocation makes a revocation signature for the whole certificate, to be
// kept in a safe place or, with [openpgp.Entity.Revocations], to be published.
// The certificate is not changed. See [WriteRevocation].
func (b *Binding) Revocation(ctx context.Context, reason packet.ReasonForRevocation, text string, cfg *packet.Config) (*packet.Signature, error) {
	const op = "revoke"
	k, err := b.primary(op)
	if err != nil {
		return nil, err
	}
	sig, err := newSignature(k.pub, packet.SigTypeKeyRevocation, cfg)
	if err != nil {
		return nil, b.fail(op, k, err)
	}
	sig.RevocationReason, sig.RevocationReasonText = &reason, text
	return sig, b.complete(ctx, op, k, sig, func(p *packet.PrivateKey) error {
		return sig.RevokeKey(k.pub, p, cfg)
	})
}

// RevokeSubkey revokes a subkey, by its index in the certificate, which is
// changed in place.
func (b *Binding) RevokeSubkey(ctx context.Context, index int, reason packet.ReasonForRevocation, text string, cfg *packet.Config) error {
	const op = "revoke a subkey"
	k, err := b.primary(op)
	if err != nil {
		return err
	}
	if index < 0 || index >= len(b.cert.Subkeys) {
		return b.fail(op, k, fmt.Errorf("no subkey %d: %w", index, ErrUsage))
	}
	sig, err := newSignature(k.pub, packet.SigTypeSubkeyRevocation, cfg)
	if err != nil {
		return b.fail(op, k, err)
	}
	sub := &b.cert.Subkeys[index]
	sig.RevocationReason, sig.RevocationReasonText = &reason, text
	if err := b.bindSubkey(ctx, op, k, sub.PublicKey, sig, cfg); err != nil {
		return err
	}
	sub.Revocations = append(sub.Revocations, sig)
	return nil
}

// WriteRevocation writes a revocation certificate with an armor, in the form
// that gpg --import takes. As with gpg's own the reader is told by the text
// around it what it is, since there is no armor type for it.
func WriteRevocation(w io.Writer, sig *packet.Signature) error {
	var body bytes.Buffer
	if err := sig.Serialize(&body); err != nil {
		return fail("write a revocation", err)
	}
	return writeArmored(w, openpgp.PublicKeyType, body.Bytes())
}

// WriteCertificate writes a certificate, public parts only, with an armor.
func WriteCertificate(w io.Writer, cert *openpgp.Entity) error {
	var body bytes.Buffer
	if err := cert.Serialize(&body); err != nil {
		return fail("write a certificate", err)
	}
	return writeArmored(w, openpgp.PublicKeyType, body.Bytes())
}

// CertificateOptions say what [NewCertificate] shall write.
type CertificateOptions struct {
	// UserIDs, at least one, the first is the primary one.
	UserIDs []string
	// Expires is when primary key and subkeys end; the zero time is never.
	Expires time.Time
	// Config may be nil.
	Config *packet.Config
	// Reason stands in the revocation certificate; empty is fine.
	Reason string
}

// NewCertificate makes a certificate of the keys on a card, as gpg does after
// generating on the card: the signature key becomes the primary key, for
// certification and signatures, those in the other slots become subkeys for
// decryption and authentication; empty slots are left out. The fingerprints
// and times must be those that the card stores. It also returns a revocation
// certificate, which [WriteRevocation] writes. One signature for each user ID
// and subkey and one for the revocation; auth is as in [Bind].
func NewCertificate(ctx context.Context, card *keycard.Card, auth keycard.PINFunc, o CertificateOptions) (*Binding, *packet.Signature, error) {
	const op = "make a certificate"
	cfg := o.Config
	cert := &openpgp.Entity{Identities: map[string]*openpgp.Identity{}}
	b := &Binding{card: card, cert: cert}
	if len(o.UserIDs) == 0 {
		return nil, nil, b.fail(op, nil, fmt.Errorf("no user ID: %w", ErrUsage))
	}
	info := card.Info()
	for slot := keycard.SlotSign; slot <= keycard.SlotAuth; slot++ {
		if st := info.Keys[slot]; st.Fingerprint.IsZero() && slot != keycard.SlotSign {
			continue
		}
		key, err := card.Key(ctx, slot, auth)
		if err != nil {
			return nil, nil, b.fail(op, nil, err)
		}
		pub, err := publicKeyPacket(key.PublicKey(), slot != keycard.SlotSign)
		if err != nil {
			return nil, nil, b.fail(op, nil, err)
		}
		k := &boundKey{pub: pub, sub: len(cert.Subkeys), key: key}
		if slot == keycard.SlotSign {
			k.sub = -1
			cert.PrimaryKey = pub
		} else {
			cert.Subkeys = append(cert.Subkeys, openpgp.Subkey{PublicKey: pub})
		}
		b.keys[slot] = k
	}
	primary := b.keys[keycard.SlotSign]
	lifetime := func(pub *packet.PublicKey) (*uint32, error) {
		var s uint32
		if !o.Expires.IsZero() {
			d := o.Expires.Unix() - pub.CreationTime.Unix()
			if d <= 0 || d > 1<<32-1 {
				return nil, fmt.Errorf("expiry %v of a key made at %v: %w", o.Expires.UTC(), pub.CreationTime.UTC(), ErrUsage)
			}
			s = uint32(d)
		}
		return &s, nil
	}
	for i, id := range o.UserIDs {
		sig, err := newSignature(primary.pub, packet.SigTypePositiveCert, cfg)
		if err != nil {
			return nil, nil, b.fail(op, primary, err)
		}
		if sig.KeyLifetimeSecs, err = lifetime(primary.pub); err != nil {
			return nil, nil, b.fail(op, primary, err)
		}
		if id == "" || cert.Identities[id] != nil {
			return nil, nil, b.fail(op, primary, fmt.Errorf("user ID %q empty or twice: %w", id, ErrUsage))
		}
		sig.FlagsValid, sig.FlagCertify, sig.FlagSign, sig.SEIPDv1 = true, true, true, true
		sig.PreferredSymmetric = []uint8{9, 8, 7} // AES 256, 192, 128
		sig.PreferredHash = []uint8{10, 9, 8}     // SHA-2 512, 384, 256
		sig.PreferredCompression = []uint8{0, 2, 1}
		if first := i == 0; first {
			sig.IsPrimaryId = &first
		}
		if err := b.addIdentity(ctx, op, primary, id, sig, cfg); err != nil {
			return nil, nil, err
		}
	}
	for slot := keycard.SlotDecrypt; slot <= keycard.SlotAuth; slot++ {
		k := b.keys[slot]
		if k == nil {
			continue
		}
		sig, err := newSignature(primary.pub, packet.SigTypeSubkeyBinding, cfg)
		if err != nil {
			return nil, nil, b.fail(op, k, err)
		}
		if sig.KeyLifetimeSecs, err = lifetime(k.pub); err != nil {
			return nil, nil, b.fail(op, k, err)
		}
		sig.FlagsValid = true
		if slot == keycard.SlotAuth {
			sig.FlagAuthenticate = true
		} else {
			sig.FlagEncryptCommunications, sig.FlagEncryptStorage = true, true
		}
		if err := b.bindSubkey(ctx, op, primary, k.pub, sig, cfg); err != nil {
			return nil, nil, err
		}
		cert.Subkeys[k.sub].Sig = sig
	}
	rev, err := b.Revocation(ctx, packet.NoReason, o.Reason, cfg)
	if err != nil {
		return nil, nil, err
	}
	return b, rev, nil
}

// publicKeyPacket makes the version 4 packet that belongs to the fingerprint
// on the card.
func publicKeyPacket(k *keycard.PublicKey, subkey bool) (*packet.PublicKey, error) {
	if k.Fingerprint.IsZero() {
		return nil, fmt.Errorf("the %v slot has no fingerprint and so no creation time: %w", k.Slot, keycard.ErrMismatch)
	}
	kdf, ok := k.Params()
	if p := newAlgorithm(k); !ok && p != nil && bytes.Equal(p.Fingerprint, k.Fingerprint[:]) {
		p.IsSubkey = subkey
		return p, nil
	}
	if !ok {
		return nil, fmt.Errorf("fingerprint %v in the %v slot is not that of the key: %w", k.Fingerprint, k.Slot, keycard.ErrMismatch)
	}
	body := k.Body(k.Created, kdf)
	tag := byte(6)
	if subkey {
		tag = 14
	}
	p, err := packet.Read(bytes.NewReader(newPacket(tag, body)))
	if err != nil {
		return nil, err
	}
	pub, ok := p.(*packet.PublicKey)
	if !ok {
		return nil, fmt.Errorf("public key packet: %w", ErrFormat)
	}
	return pub, nil
}

// newAlgorithm returns a 25519 key as one of algorithm 25 or 27, nil for other
// keys.
func newAlgorithm(k *keycard.PublicKey) *packet.PublicKey {
	switch k.Algorithm.Curve {
	case keycard.Ed25519:
		return packet.NewEd25519PublicKey(k.Created, &pgped25519.PublicKey{Point: k.Point})
	case keycard.X25519:
		return packet.NewX25519PublicKey(k.Created, &x25519.PublicKey{Point: k.Point})
	}
	return nil
}
